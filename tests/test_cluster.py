"""bench/cluster.py at its smallest: gateways in network namespaces behind HAProxy, and what it leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import REPOSITORY, binary
from support.wire import poll

NEEDED = {"ip": "iproute2", "nsenter": "util-linux", "haproxy": "haproxy", "strace": "strace"}
SMALLEST = [
    "--quick",
    "--gateways",
    "2",
    "--seconds",
    "0.5",
    "--repeat",
    "1",
    "--heads",
    "800",
    "--change-seconds",
    "3",
]
# Single steps through an unoptimised program take minutes.
SMALLEST += ["--drain-delay", "2", "--concurrency", "8", "--no-instructions"]


@pytest.fixture(autouse=True)
def _means() -> None:
    """Skips where there is no right or no program to make networks with."""
    if os.geteuid() != 0:
        pytest.skip("makes network namespaces: needs root")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for program, package in NEEDED.items():
        if not shutil.which(program, path=path):
            pytest.skip(f"needs {program} (Debian's package {package})")
    name = f"slipway-test-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made: {made.stderr.strip()}")
    subprocess.run(["ip", "netns", "del", name], check=True)
    bridge = ["ip", "link", "add", f"slwt{os.getpid()}", "type", "bridge"]
    if subprocess.run(bridge, capture_output=True, check=False).returncode:
        pytest.skip("no bridge can be made")
    subprocess.run(["ip", "link", "del", bridge[3]], check=True)


def start(directory: Path, *arguments: str | Path) -> subprocess.Popen:
    command = [sys.executable, REPOSITORY / "bench" / "cluster.py", "--binary", binary(), "--dir", directory]
    return subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen, status: int) -> str:
    try:
        said, _ = process.communicate(timeout=200)
    finally:
        # Not killed: it has to remove what it made.
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == status, said
    assert "Traceback" not in said, said
    return said


def left(pid: int) -> list[str]:
    """Of what one of them made: networks, control groups, processes."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    found = [line for line in links.splitlines() if f"slw{pid}" in line]
    found += map(str, Path("/run/netns").glob(f"slipway-{pid}-*"))
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/slipway-{pid}") if path.is_dir()]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = command.read_text(errors="replace")
        except OSError:
            continue
        if f"slipway-{pid}" in text:
            found.append(text)
    return found


def test_all_of_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    report = tmp_path / "report.json"
    process = start(tree, *SMALLEST, "--json", report)
    said = end(process, 0)
    found = json.loads(report.read_text())

    assert {(row["load"], row["gateways"]) for row in found["scale"]} == {
        (load, count) for load in ("HEAD", "GET 1 MiB", "PUT 1 MiB", "PUT 1 MiB, full") for count in (1, 2)
    }
    assert all(row["per_second"] > 0 and row["errors"] == 0 for row in found["scale"]), found["scale"]
    # The calls of a HEAD are the same whoever else is there: four. epoll_wait and futex depend
    # on when what arrives. What a server asks by itself in the same time is taken off, and
    # known to a few calls.
    names = [of["  of names and files"][0] for of in found["cost"]["figures"].values()]
    assert all(3.5 < calls < 4.5 for calls in names), (names, found["cost"])

    change = found["change"]
    assert change["lost"] == []
    assert change["failed"] == []
    assert change["acknowledged"] == pytest.approx(sum(change["per_second"]), rel=0.3)
    assert change["added_at"] < change["removed_at"] < change["gone_at"] - 2
    for line in ("gateways on", "shares by", "of linear", "system calls", "writes acknowledged", "load "):
        assert line in said
    assert list(tree.iterdir()) == []
    assert left(process.pid) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_early_end_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, *SMALLEST, "--steps", "change", "--change-seconds", "60")
    # Writers are at work.
    poll(lambda: any(tmp_path.glob("slipway-*/tree/change/1/*/*")) or process.poll() is not None, 60)
    assert process.poll() is None and left(process.pid), process.communicate()[0]
    process.send_signal(number)
    assert "ended early" in end(process, 2)
    assert list(tmp_path.iterdir()) == []
    assert left(process.pid) == []


def test_what_cannot_be_measured(tmp_path: Path) -> None:
    said = end(start(tmp_path, "--binary", tmp_path / "missing"), 2)
    assert "does not exist" in said
    assert list(tmp_path.iterdir()) == []
