"""What `slipway bench` tells beside its rates: what servers and devices did, and what limited a step."""

import csv
import importlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bench import ENOUGH, QUICK, Run, made
from support.data import MIB
from support.server import REPOSITORY, Server
from support.wire import poll

KIB = 1024


def verdict(report: dict) -> dict:
    (round_,) = report["rounds"]
    return round_["verdict"]


class TestServer:
    def test_switches_and_writes(self, own_server, tmp_path):
        arguments = ("put", "--size", "64k", "--count", "60", "--objects", "60", "-c", "4", *ENOUGH)
        run = Run(tmp_path, own_server.endpoint, *arguments)
        report = run.end()
        (round_,) = report["rounds"]
        (watched,) = round_["servers"]
        # Each request waits for the next one; a load of other programs makes for the others.
        assert 0 <= watched["system_cpu_seconds"] <= watched["cpu_seconds"]
        assert watched["voluntary_switches"] > 0 and watched["involuntary_switches"] >= 0
        assert round_["stored"] == {"objects": 60, "bytes": 60 * 64 * KIB}
        io = watched["io"]
        # Of what was under way as it began, four at most, a part was written before.
        assert io["write_calls"] >= 60 and io["write_bytes"] >= 56 * 64 * KIB
        assert "voluntary and" in run.out and "context switches per answer" in run.out
        assert round_["devices"] == []

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root has a capability to give up")
    def test_what_may_not_be_read_is_left_out(self, own_server, tmp_path):
        """Reads and writes of a process are not everyone's to know; the rest is."""
        arguments = ("put", "--size", "1k", "--server-pid", str(own_server.pid), *QUICK)
        wrapper = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
        run = Run(tmp_path, own_server.endpoint, *arguments, wrapper=wrapper)
        (watched,) = run.end()["rounds"][0]["servers"]
        assert watched["io"] is None and watched["voluntary_switches"] > 0
        assert "context switches per answer" in run.out and "write calls" not in run.out


def image(directory: Path) -> Path:
    """A file system on a device that nothing else writes to."""
    path, where = directory / "image", directory / "disk"
    where.mkdir()
    with open(path, "wb") as file:
        file.truncate(256 * MIB)
    # What is left to be initialized later would be written while it is measured.
    lazily = "lazy_itable_init=0,lazy_journal_init=0"
    subprocess.run(["mkfs.ext4", "-q", "-E", lazily, path], check=True)
    done = subprocess.run(["mount", "-o", "loop", path, where], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not mount ext4 here: {done.stderr.strip()}")
    return where


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems")
class TestDevice:
    @pytest.fixture
    def disk(self, tmp_path) -> Iterator[Path]:
        where = image(tmp_path)
        yield where
        subprocess.run(["umount", "--lazy", where], check=True)

    @pytest.fixture
    def disk_server(self, disk, make_server) -> Server:
        tree = disk / "tree"
        tree.mkdir()
        return make_server("--durability", "none", tree=tree)

    def test_what_is_written_later_counts(self, disk, disk_server, tmp_path):
        """This server flushes nothing; the kernel would write it all when the step is long over."""
        page, table = tmp_path / "report.html", tmp_path / "report.csv"
        arguments = ("put", "--size", "1m", "--count", "40", "--objects", "40", "-c", "4", *ENOUGH)
        arguments += ("--device", str(disk), "--html", str(page), "--csv", str(table))
        run = Run(tmp_path, disk_server.endpoint, *arguments)
        report = run.end()
        (round_,) = report["rounds"]
        (device,) = round_["devices"]
        assert device["name"].startswith("loop") and 0 <= device["busy"] <= 1
        assert round_["stored"]["bytes"] == 40 * MIB
        # All data, and ext4's own beside it.
        assert 40 * MIB <= device["write_bytes"] <= 80 * MIB
        assert device["write_requests"] >= 20
        amplification = device["write_bytes"] / (40 * MIB)
        (row,) = csv.DictReader(table.open(newline=""))
        assert float(row["step_write_amplification"]) == pytest.approx(amplification, rel=0.01)
        assert int(row["step_device_write_bytes"]) == device["write_bytes"]
        (watched,) = round_["servers"]
        assert watched["io"]["storage_write_bytes"] >= 40 * MIB
        assert f"write amplification {amplification:.2f}" in run.out
        assert "<h2>Devices</h2>" in page.read_text() and device["name"] in page.read_text()

    def test_a_warm_up_is_no_amplification(self, disk, disk_server, tmp_path):
        """Bytes of the warm-up reach the device too: they are set beside what was stored in it."""
        arguments = ("put", "--size", "64k", "--objects", "400", "-c", "2", "-d", "1s", "--warm-up", "1s")
        report = Run(tmp_path, disk_server.endpoint, *arguments, "--device", str(disk)).end()
        (round_,) = report["rounds"]
        assert round_["stored"]["objects"] > round_["answers"]
        # Keys that are written again before the kernel has written them cost nothing.
        assert round_["devices"][0]["write_bytes"] < 2 * round_["stored"]["bytes"]

    def test_a_device_has_several_names(self, disk, disk_server, tmp_path):
        arguments = ("head", "--objects", "1", *QUICK)
        name = os.path.basename(
            subprocess.run(
                ["findmnt", "-no", "SOURCE", disk], capture_output=True, text=True, check=True
            ).stdout.strip()
        )
        for given in (name, f"/dev/{name}", f"{name},{disk}"):
            report = Run(tmp_path, disk_server.endpoint, *arguments, "--device", given).end()
            assert {device["name"] for device in report["rounds"][0]["devices"]} == {name}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-such-disk", "no-such-disk"),
        ("/dev/null", "give the block device below it"),
        ("/nonexistent", "No such file"),
    ],
)
def test_what_is_no_device(tmp_path, given, said):
    run = Run(tmp_path, "http://127.0.0.1:9000", "put", "--device", given)
    run.end(status=2)
    assert said in run.err


class TestVerdict:
    def test_a_rate_that_is_kept(self, own_server, tmp_path):
        arguments = ("head", "--objects", "5", "-c", "8", "--rate", "50", "-d", "3s", "--warm-up", "200ms")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        found = verdict(run.end())
        assert found["limit"] == "rate" and "50.0 a second were kept" in found["reason"]
        assert "limited by the rate asked for" in run.out

    def test_a_server_that_stands_still(self, own_server, tmp_path):
        arguments = ("head", "--objects", "5", "-c", "2", "-d", "1s", "--warm-up", "1s", "--timeout", "20s")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: made(own_server, "data-*/0000004-*"), 10)
        time.sleep(0.5)
        own_server.signal(signal.SIGSTOP)
        time.sleep(4)
        own_server.signal(signal.SIGCONT)
        report = run.end(status=1)
        found = verdict(report)
        assert found["limit"] == "not_clear" and found["reason"] == "nothing was answered"

    @pytest.fixture
    def shares(self, monkeypatch) -> Iterator:
        """Control groups, which are removed once the servers in them have ended."""
        monkeypatch.syspath_prepend(str(REPOSITORY / "bench"))
        made = importlib.import_module("lab").Shares(f"slipway-test-{os.getpid()}")
        if not made.top:
            pytest.skip("this machine lets us make no control groups")
        yield made
        made.close()

    def test_a_server_that_uses_all_of_its_quota(self, shares, own_server, tmp_path):
        """So little is soon used, and can be had on a busy machine too, some time or other."""
        group = shares.group("server", 0.05)
        (group.directory / "cgroup.procs").write_text(str(own_server.pid))
        arguments = ("head", "--objects", "5", "-c", "8", "-d", "5s", "--warm-up", "500ms")
        for _ in range(5):
            run = Run(tmp_path, own_server.endpoint, *arguments)
            report = run.end()
            (watched,) = report["rounds"][0]["servers"]
            assert watched["processors"] == pytest.approx(0.05)
            found = verdict(report)
            if found["limit"] == "gateway":
                break
        assert found["limit"] == "gateway", found
        assert f"limited by gateway: slipway (pid {own_server.pid}) uses all processors" in run.out

    def test_evidence_is_of_what_each_may_use(self, own_server, tmp_path):
        """A server that may use one processor is full with one, whatever the machine has."""
        processor = min(os.sched_getaffinity(own_server.pid))
        for thread in os.listdir(f"/proc/{own_server.pid}/task"):
            os.sched_setaffinity(int(thread), {processor})
        page, table = tmp_path / "report.html", tmp_path / "report.csv"
        arguments = ("head", "--objects", "5", "-c", "8", "--html", str(page), "--csv", str(table), *QUICK)
        run = Run(tmp_path, own_server.endpoint, *arguments)
        report = run.end()
        found = verdict(report)
        assert report["rounds"][0]["servers"][0]["processors"] == 1
        evidence = "; ".join(found["evidence"])
        assert f"slipway (pid {own_server.pid}) " in evidence and " of 1 processor;" in evidence
        assert "load generator " in evidence and "all programs of this machine " in evidence
        assert found["limit"] in {"client", "gateway", "storage", "not_clear"}
        assert found["reason"] in run.out
        assert "<h2>What limited each step</h2>" in page.read_text()
        (row,) = csv.DictReader(table.open(newline=""))
        assert row["step_limit"] == found["limit"].replace("_", " ")
