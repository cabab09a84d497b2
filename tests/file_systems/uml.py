#!/usr/bin/env python3
"""Runs the suites of the storage on an older kernel, in a User-Mode Linux, on file systems that it makes for that.

    .venv/bin/python tests/file_systems/uml.py [ext4 xfs ext4-quotas xfs-quotas]

Needs root, and Debian's `user-mode-linux`, `xfsprogs` and, for the quotas, `quota`. The server under test is
`target/debug/slipway`: `cargo build` first."""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from file_systems import mounts, run
from support.server import binary
from support.virtual_machine import KERNEL, VirtualMachine, with_sbin

GUEST = Path(__file__).with_name("uml_guest.py")
SUITES = [
    "conformance",
    "files",
    "races",
    "listing_model",
    "test_gateways",
    "test_races",
    "test_listing",
    "test_listing_model",
    "test_model",
]
QUOTAS = ["test_quotas"]
# What runs on each, and what is made for that.
KINDS = {
    "ext4": (SUITES, ["mkfs.ext4", "-q", "-F"]),
    "xfs": (SUITES, ["mkfs.xfs", "-q"]),
    "ext4-quotas": (QUOTAS, ["mkfs.ext4", "-q", "-F", "-O", "quota,project"]),
    "xfs-quotas": (QUOTAS, ["mkfs.xfs", "-q"]),
}
MEMORY = "3G"
# One took that long only where the machine hung: suites have a limit of their own.
MACHINE_SECONDS = 3 * 3600


def check(kind: str, programs: dict[str, Path], options: argparse.Namespace) -> Counter[str]:
    """Boots a machine on a fresh file system, and shows what it says."""
    suites, make = KINDS[kind]
    results = run.LOGS / f"uml-{kind}"
    results.mkdir(parents=True, exist_ok=True)
    # The machine reads them by its root, which may lack what is in this one's /tmp.
    named = {name: shutil.copy(program, results / name) for name, program in programs.items()}
    server = shutil.copy(binary(), results / "slipway")
    wanted = [suite for suite in options.only or suites if suite not in options.without]
    task = {"suites": wanted, "programs": {name: str(path) for name, path in named.items()}}
    task |= {"server": str(server), "without": options.without}
    (results / "task.json").write_text(json.dumps(task))
    ended: list[Counter[str]] = []

    def hear(word: str, rest: str) -> None:
        if word == "line":
            print(rest, flush=True)
        elif word == "end":
            ended.append(Counter(json.loads(rest)))

    with tempfile.TemporaryDirectory(prefix="slipway-uml-") as place:
        disk = mounts.image(Path(place), "disk.img")
        subprocess.run([*make, str(disk)], check=True, env=with_sbin())
        machine = VirtualMachine(
            sys.executable, GUEST, kind, str(results), disks=[disk], memory=MEMORY, hear=hear
        )
        try:
            deadline = time.monotonic() + MACHINE_SECONDS
            while not ended and machine.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
        finally:
            machine.cut()
    for name in [*named, "slipway"]:
        (results / name).unlink()
    if not ended:
        print("  the machine did not come to its end:", *machine.console[-40:], sep="\n    ", flush=True)
        return Counter(failed=1)
    return ended[0]


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    known = f"of {', '.join(KINDS)}; default all"
    parser.add_argument("kinds", nargs="*", metavar="FILE-SYSTEM", help=known)
    parser.add_argument("--only", action="append", metavar="SUITE", help="run a suite, and others named so")
    parser.add_argument("--without", action="append", default=[], metavar="SUITE", help="leave out a suite")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no such file system: {', '.join(sorted(unknown))}")
    if not shutil.which(KERNEL):
        parser.error("needs Debian's package user-mode-linux")
    # So that what was made is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began, failed, total = time.monotonic(), [], Counter()
    with tempfile.TemporaryDirectory(prefix="slipway-programs-") as copies:
        programs = run.rust_suites(Path(copies))
        for kind in options.kinds or KINDS:
            print(kind, flush=True)
            found = check(kind, programs, options)
            print(f"  {'':<24} {run.told(found)}", flush=True)
            total += found
            failed += [kind] if found["failed"] or not found["passed"] else []
    verdict = f"failed: {', '.join(failed)}" if failed else "all passed"
    print(f"{verdict}; {(time.monotonic() - began) / 60:.0f} min, {run.told(total)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
