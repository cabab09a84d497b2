"""Loads of `slipway bench` as in published studies: bursts, churn, streams, endpoints, shares of a peak."""

import csv
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.bench import ENOUGH, QUICK, Run, buckets, errors, made
from support.server import Server, binary
from support.wire import poll

KIB = 1024


def operations(round_: dict) -> dict[str, int]:
    return {of["operation"]: of["answers"] for of in round_["operations"]}


def logged(log: Path) -> list[dict]:
    """The lines of an access log, in the order of their times."""
    return sorted((json.loads(line) for line in log.read_text().splitlines()), key=lambda line: line["time"])


class TestBurst:
    def test_each_verb_in_turn(self, own_server, tmp_path):
        run = Run(tmp_path, own_server.endpoint, "burst", "--size", "20k", "-c", "5,12", *QUICK)
        report = run.end()
        assert [(r["title"], operations(r)) for r in report["rounds"]] == [
            (f"burst of {count} x 20 KiB, {verb}", {operation: count})
            for count in (5, 12)
            for verb, operation in (("put", "PutObject"), ("get", "GetObject"), ("delete", "DeleteObject"))
        ]
        put, get, delete = report["rounds"][3:]
        for round_, size in ((put, 20 * KIB), (get, 20 * KIB), (delete, 0)):
            (of,) = round_["operations"]
            assert of["bytes_per_second"] == pytest.approx(of["per_second"] * size)
            assert of["per_second"] == pytest.approx(12 / round_["seconds"])
        assert errors(report) == {} and report["problems"] == [] and buckets(own_server) == []

    def test_it_takes_as_long_as_it_needs(self, own_server, tmp_path):
        """The time of a step ends no burst, and has no part in its rate."""
        arguments = ("burst", "--size", "1k", "--objects", "900", "-c", "2", "-d", "1ms", "--warm-up", "9s")
        report = Run(tmp_path, own_server.endpoint, *arguments).end()
        assert [r["answers"] for r in report["rounds"]] == [900] * 3

    def test_an_early_end(self, own_server, tmp_path):
        arguments = ("burst", "--size", "64k", "--objects", "19000", "-c", "2")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: made(own_server, "burst-*/*"), 30)
        run.process.terminate()
        report = run.end(status=1)
        assert report["interrupted"] and len(report["rounds"]) == 1 and buckets(own_server) == []


class TestChurn:
    def test_as_many_as_asked_stay_alive(self, own_server, tmp_path):
        arguments = ("churn", "--size", "2k", "--objects", "50", "-c", "4", "-d", "3s", "--warm-up", "200ms")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        # They are there before the first request that counts.
        poll(lambda: len(made(own_server, "churn-*/*")) >= 50, 20)
        seen, began = [], time.monotonic()
        while time.monotonic() - began < 2:
            seen.append(len(made(own_server, "churn-*/*")))
        report = run.end()
        # One more for each lane that has put and not deleted yet; and a listing is no moment in
        # time.
        assert all(40 <= count <= 64 for count in seen), seen
        found = operations(report["rounds"][0])
        assert set(found) == {"PutObject", "GetObject", "DeleteObject"}
        assert max(found.values()) - min(found.values()) <= 4 and min(found.values()) > 10
        assert errors(report) == {} and buckets(own_server) == []

    def test_each_object_is_read_once(self, make_server, tmp_path):
        log = tmp_path / "access.log"
        server = make_server("--durability", "none", "--access-log", str(log))
        arguments = ("churn", "--size", "1k", "--objects", "6", "-c", "3", "--count", "400", *ENOUGH)
        report = Run(tmp_path, server.endpoint, *arguments).end()
        assert sum(operations(report["rounds"][0]).values()) == 400
        server.stop()
        verbs: dict[str, list[str]] = {}
        for entry in logged(log):
            if entry.get("key", "").startswith("churn-1/"):
                verbs.setdefault(entry["key"], []).append(entry["operation"])
        assert len(verbs) >= 6
        for key, sequence in verbs.items():
            # The last ones are read by nobody; cleaning up deletes what is left.
            text = "".join(verb[0] for verb in sequence)
            assert re.fullmatch("(PGD)*(PG?D?)?", text), (key, text)

    def test_a_share_of_its_peak_goes_on_with_what_there_is(self, own_server, tmp_path):
        arguments = ("churn", "--size", "1k", "--objects", "30", "-c", "4", "--rate", "30%", *QUICK)
        report = Run(tmp_path, own_server.endpoint, *arguments).end()
        assert [r["title"] for r in report["rounds"]] == ["churn 1 KiB", "churn 1 KiB at 30 % of its peak"]
        assert errors(report) == {}


class TestParts:
    @pytest.mark.parametrize(("threads", "lanes"), [("1", "3"), ("2", "3"), ("4", "7"), ("8", "2")])
    def test_all_threads_send_the_parts_of_one_upload(self, own_server, tmp_path, threads, lanes):
        arguments = ("multipart", "--size", "23m", "--part-size", "5m", "--count", "3", "--payload", "signed")
        arguments += ("-c", lanes, "--threads", threads, "--keep", *ENOUGH)
        report = Run(tmp_path, own_server.endpoint, *arguments).end()
        (round_,) = report["rounds"]
        assert operations(round_) == {
            "CreateMultipartUpload": 3,
            "UploadPart": 15,
            "CompleteMultipartUpload": 3,
        }
        assert errors(report) == {}
        (uploaded,) = made(own_server, "multipart-*/*")
        whole = uploaded.read_bytes()
        # Each part begins with the same MiB; the last one has three of them.
        assert len(whole) == 23 << 20 and whole == whole[: 1 << 20] * 23

    def test_an_upload_whose_parts_fail_is_given_up_by_all_threads(self, own_server, tmp_path):
        arguments = ("multipart", "--size", "4g", "--part-size", "5m", "-c", "6", "--threads", "3", *ENOUGH)
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: buckets(own_server), 10)
        time.sleep(0.5)
        own_server.kill()
        report = run.end(status=1)
        (round_,) = report["rounds"]
        assert "CompleteMultipartUpload" not in operations(round_) and errors(report)


class TestStreams:
    @pytest.mark.parametrize(("given", "range_"), [([], 128 * KIB), (["--range", "512k"], 512 * KIB)])
    def test_each_reader_has_an_object(self, own_server, tmp_path, given, range_):
        page = tmp_path / "report.html"
        arguments = ("streams", "--size", "5m", "-c", "3", "--html", str(page), *given, *QUICK)
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: len(made(own_server, "data-*/*")) == 3, 20)
        report = run.end()
        (round_,) = report["rounds"]
        assert round_["title"] == f"streams of 5 MiB in ranges of {range_ // KIB} KiB"
        (of,) = round_["operations"]
        assert of["operation"] == "GetObject"
        assert of["bytes_per_second"] == pytest.approx(of["per_second"] * range_)
        streams = round_["by_stream"]
        assert [stream["name"] for stream in streams] == ["stream 1", "stream 2", "stream 3"]
        assert sum(stream["answers"] for stream in streams) == round_["answers"]
        assert sum(stream["bytes_per_second"] for stream in streams) == pytest.approx(of["bytes_per_second"])
        assert all(stream["answers"] > 0 and stream["latency"] is None for stream in streams)
        assert "3 streams: " in run.out and "<h2>Streams</h2>" in page.read_text()
        assert round_["by_endpoint"] == [] and errors(report) == {} and buckets(own_server) == []

    def test_it_is_read_from_the_first_byte_to_the_last(self, make_server, tmp_path):
        """Also where the last range is shorter; then again from the first."""
        log = tmp_path / "access.log"
        server = make_server("--durability", "none", "--access-log", str(log))
        arguments = ("streams", "--size", "300k", "--range", "128k", "-c", "2", "--count", "40", *ENOUGH)
        report = Run(tmp_path, server.endpoint, *arguments).end()
        server.stop()
        assert errors(report) == {}
        sent: dict[str, list[int]] = {}
        for entry in logged(log):
            if entry["operation"] == "GetObject":
                sent.setdefault(entry["key"], []).append(entry["bytes_out"])
        assert len(sent) == 2 and sum(len(lengths) for lengths in sent.values()) == 40
        for lengths in sent.values():
            whole = [128 * KIB, 128 * KIB, 44 * KIB] * 14
            assert lengths == whole[: len(lengths)]


class TestEndpoints:
    @pytest.fixture
    def two(self, make_server) -> list[Server]:
        tree_of = make_server("--durability", "none")
        return [tree_of, make_server("--durability", "none", tree=tree_of.tree)]

    def test_figures_for_each_and_in_sum(self, two, tmp_path):
        page = tmp_path / "report.html"
        endpoints = ",".join(server.endpoint for server in two)
        arguments = ("get", "--size", "16k", "--objects", "20", "-c", "5", "--html", str(page), *QUICK)
        run = Run(tmp_path, endpoints, *arguments)
        report = run.end()
        (round_,) = report["rounds"]
        parts = round_["by_endpoint"]
        assert [part["name"] for part in parts] == [server.endpoint for server in two]
        assert [part["connections"] for part in parts] == [3, 2]
        for figure in ("answers", "per_second", "bytes_per_second"):
            of = round_ if figure == "answers" else round_["operations"][0]
            assert sum(part[figure] for part in parts) == pytest.approx(of[figure])
        requests = round_["operations"][0]["latency"]["requests"]
        assert sum(part["latency"]["requests"] for part in parts) == requests
        assert all(part["errors"] == 0 and part["answers"] > 0 for part in parts)
        assert f"{two[1].endpoint}, 2 connections: " in run.out
        assert "<h2>Endpoints</h2>" in page.read_text()
        assert {watched["pid"] for watched in round_["servers"]} == {server.pid for server in two}

    @pytest.mark.parametrize("preset", ["gateways-put-10g", "gateways-get-10g"])
    def test_one_large_object_through_one_and_two(self, two, tmp_path, preset):
        endpoints = ",".join(server.endpoint for server in two)
        arguments = ("--preset", preset, "--scale", "0.02", "-c", "1,2", *QUICK)
        report = Run(tmp_path, endpoints, *arguments).end()
        found = [(r["endpoints"], r["concurrency"]) for r in report["rounds"]]
        assert found == [(1, 1), (1, 2), (2, 2), (2, 4)]
        for round_ in report["rounds"]:
            parts = round_["by_endpoint"]
            assert [part["connections"] for part in parts] == (
                [] if round_["endpoints"] == 1 else [round_["concurrency"] // 2] * 2
            )
        if preset == "gateways-put-10g":
            # 3 parts of 64 MiB, of which each endpoint has some.
            assert all(operations(r)["UploadPart"] == 3 for r in report["rounds"])
            assert all(part["bytes_per_second"] > 0 for part in report["rounds"][2]["by_endpoint"])
        assert errors(report) == {} and buckets(two[0]) == []

    def test_errors_are_those_of_their_endpoint(self, two, tmp_path):
        arguments = ("put", "--size", "1k", "-c", "4", "-d", "3s", "--warm-up", "0s")
        endpoints = ",".join(server.endpoint for server in two)
        run = Run(tmp_path, endpoints, *arguments)
        poll(lambda: made(two[0], "put-*/*"), 10)
        time.sleep(0.5)
        two[1].kill()
        (round_,) = run.end(status=1)["rounds"]
        well, ill = round_["by_endpoint"]
        assert well["errors"] == 0 and ill["errors"] > 0
        assert well["answers"] > ill["answers"]


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
            ["burst", "--rate", "70%"],
            ["burst", "--rate", "70"],
            ["get", "--rate", "0%"],
            ["get", "--rate", "x%"],
            ["put", "--rate", "70%", "--payload", "signed", "--duration", "6m"],
            ["delete", "-c", "fastest"],
            ["churn", "-c", "fastest"],
            ["multipart", "-c", "fastest"],
            ["get", "-c", "fastest", "--count", "9"],
            ["get", "-c", "fastest,4"],
            ["streams", "--objects", "4"],
            ["streams", "--size", "0"],
            ["burst", "--count", "4"],
            ["put", "--range", "4k"],
        ],
        ids=" ".join,
    )
    def test_what_makes_no_sense_is_refused(self, tmp_path, arguments):
        run = Run(tmp_path, "http://127.0.0.1:9000", *arguments)
        run.end(status=2)
        assert run.err and run.out == ""


class TestFastest:
    def test_it_is_found_and_measured(self, own_server, tmp_path):
        page = tmp_path / "report.html"
        run = Run(tmp_path, own_server.endpoint, "--preset", "query", "--html", str(page), *QUICK)
        report = run.end()
        (round_,) = report["rounds"]
        trials = dict(round_["trials"])
        assert list(trials)[:3] == [1, 2, 4] and all(rate > 0 for rate in trials.values())
        chosen = round_["concurrency"]
        assert trials[chosen] >= 0.97 * max(trials.values())
        assert all(rate < 0.97 * max(trials.values()) for tried, rate in trials.items() if tried < chosen)
        assert "tried (requests at once: req/s): 1: " in run.out
        assert "<h2>The fastest</h2>" in page.read_text() and buckets(own_server) == []

    def test_two_servers_are_compared_each_at_its_fastest(self, own_server, tmp_path):
        run = Run(tmp_path, own_server.endpoint, "--preset", "query", *QUICK)
        report = run.end()
        report["rounds"][0]["concurrency"] += 1
        (tmp_path / "other.json").write_text(json.dumps(report))
        command = [binary(), "bench", "compare", run.json, tmp_path / "other.json"]
        compared = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        assert re.search(r"HeadObject +1\.00\? +1\.00\?", compared) and "only in" not in compared

    def test_what_is_written_meanwhile_is_removed(self, own_server, tmp_path):
        report = Run(tmp_path, own_server.endpoint, "put", "--size", "1k", "-c", "fastest", *QUICK).end()
        (round_,) = report["rounds"]
        assert len(round_["trials"]) >= 3 and round_["answers"] > 0 and buckets(own_server) == []


@pytest.mark.parametrize("preset", ["bursts", "churn", "streams"])
def test_presets(own_server, tmp_path, preset):
    arguments = ("--preset", preset, "--scale", "0.0002", "-c", "2", "-d", "500ms", "--warm-up", "50ms")
    report = Run(tmp_path, own_server.endpoint, *arguments).end()
    assert all(r["concurrency"] == 2 for r in report["rounds"]) and errors(report) == {}
    assert len(report["rounds"]) == {"bursts": 3, "churn": 4, "streams": 2}[preset]
    assert buckets(own_server) == []
