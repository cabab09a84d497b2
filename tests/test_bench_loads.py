"""Loads of `slipway bench` as in published studies: shares of a peak."""

import csv
import signal
import time

import pytest

from support.bench import Run, made
from support.wire import poll


class TestShareOfThePeak:
    def test_both_are_in_the_reports(self, own_server, tmp_path):
        page, table = tmp_path / "report.html", tmp_path / "report.csv"
        arguments = ("head", "--objects", "5", "-c", "4", "--rate", "50%", "-d", "2s", "--warm-up", "200ms")
        run = Run(tmp_path, own_server.endpoint, *arguments, "--html", str(page), "--csv", str(table))
        report = run.end()
        peak, open_loop = report["rounds"]
        assert (peak["title"], open_loop["title"]) == ("head 1 MiB", "head 1 MiB at 50 % of its peak")
        assert peak["rate"] is None and report["settings"]["rate_of_peak"] == 0.5
        rate = peak["operations"][0]["per_second"] / 2
        assert open_loop["rate"] == pytest.approx(rate)
        # All that was due in the time was sent, however late.
        latency = open_loop["operations"][0]["latency"]
        assert latency["requests"] == pytest.approx(rate * 2, abs=5)
        assert latency["p50"] <= latency["p99"] <= latency["p999"]
        assert "open loop at 50 % of it" in run.out
        rows = list(csv.DictReader(table.open(newline="")))
        assert rows[0]["rate_asked"] == "" and float(rows[1]["rate_asked"]) == pytest.approx(rate, rel=0.01)
        assert "at 50 % of it" in page.read_text()

    def test_latencies_count_from_when_requests_were_due(self, own_server, tmp_path):
        """A server that stands still in the second half delays all that was due, not what was under way."""
        arguments = ("head", "--objects", "5", "-c", "2", "--rate", "5%", "-d", "4s", "--warm-up", "100ms")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: made(own_server, "data-*/0000004-*"), 10)
        # Into the open loop, which begins 4.2 seconds after the objects are there.
        time.sleep(6)
        own_server.signal(signal.SIGSTOP)
        time.sleep(1)
        own_server.signal(signal.SIGCONT)
        _, open_loop = run.end()["rounds"]
        latency = open_loop["operations"][0]["latency"]
        assert latency["requests"] == pytest.approx(open_loop["rate"] * 4, abs=5)
        # A quarter of all was due in that second; in a closed loop it would be two requests.
        assert latency["p90"] > 300_000

    @pytest.mark.parametrize(
        "arguments",
        [
            ["delete", "--rate", "70%"],
            ["put", "--count", "9", "--rate", "70%"],
            ["get", "--rate", "0%"],
            ["get", "--rate", "x%"],
            ["put", "--rate", "70%", "--payload", "signed", "--duration", "6m"],
            ["put", "--range", "4k"],
        ],
        ids=" ".join,
    )
    def test_what_makes_no_sense_is_refused(self, tmp_path, arguments):
        run = Run(tmp_path, "http://127.0.0.1:9000", *arguments)
        run.end(status=2)
        assert run.err and run.out == ""
