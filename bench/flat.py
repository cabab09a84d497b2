#!/usr/bin/env python3
"""What one flat directory costs, by its number of names: create, HEAD, a page of a listing, delete.

Makes ext4 (with large_dir) and XFS in sparse image files, mounts them, and fills the directory of a bucket with empty files (not
through S3) up to each scale in turn. At each, in rounds, over one connection: PUTs of 1 KiB of new keys, HEADs of them, DELETEs of them; and after a
remount, so that the file system has nothing in memory (the image file may be), HEADs of objects, the first page of a listing, which
reads the directory, and pages from anywhere in it. Prints CPU us of the server a request, kernel and all, and the median of what the client
waited: of each the least of all rounds.

    cargo build --release && bench/flat.py                              # 100,000 and 1,000,000 names; needs root
    bench/flat.py --names 1000000 10000000 --dir /mnt/large             # a quiet machine, 40 GB and an hour
    bench/flat.py --extrapolate 100000000                               # and what a scale beyond would cost, guessed

Each step ends after --seconds, with what it has done by then. Filling ends after --fill-seconds: then that scale is left out.
"""

import argparse
import contextlib
import math
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from common import ROOT, Client, peak_resident_mib, server
from lab import Unmeasurable, image, remounted

BUCKET, KEPT = "bench", "kept"
BODY = bytes(1024)
STEPS = ["create", "HEAD", "delete", "HEAD, remounted", "first page", "page"]


def file_system(
    kind: str, place: pathlib.Path, names: int
) -> contextlib.AbstractContextManager[pathlib.Path]:
    """One with room for so many files."""
    place.mkdir()
    options = ["-O", "large_dir", "-N", str(names + names // 10 + 100_000)] if kind == "ext4" else []
    # XFS gives inodes a quarter of it.
    return image(kind, place, max(2 << 30, names * 4096), options=options)


def name(number: int) -> str:
    """Spread, as real names are: the order in which they are made is not that of the names."""
    return f"measurement-{number * 2_654_435_761 % (1 << 32):010}.dat"


def fill(directory: pathlib.Path, first: int, end: int, seconds: float) -> float | None:
    """CPU us a file; `None` if it took too long."""
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY)
    began, cpu = time.monotonic(), time.process_time()
    try:
        for number in range(first, end):
            os.close(os.open(name(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=handle))
            if number % 10_000 == 0 and time.monotonic() - began > seconds:
                return None
    finally:
        os.close(handle)
    return (time.process_time() - cpu) * 1e6 / max(1, end - first)


class Measure:
    """One server at work."""

    def __init__(self, host: str, pid: int, options: argparse.Namespace) -> None:
        self.send, self.options = Client(host).send, options
        # The process's CPU clock, see clock_getcpuclockid(3).
        self.clock = (~pid << 3) | 2
        self.send("GET", "/")

    def step(self, requests: list[tuple]) -> tuple[float, float, int]:
        """CPU us, median us of the client, and how many were sent."""
        deadline, times = time.monotonic() + self.options.seconds, []
        before = time.clock_gettime(self.clock)
        for request in requests:
            began = time.perf_counter()
            self.send(*request)
            times.append(time.perf_counter() - began)
            if time.monotonic() > deadline:
                break
        cpu = time.clock_gettime(self.clock) - before
        return cpu * 1e6 / len(times), statistics.median(times) * 1e6, len(times)


def keys(prefix: str, count: int) -> list[str]:
    found = [f"/{BUCKET}/{prefix}-{name(number)}" for number in range(count)]
    random.Random(7).shuffle(found)
    return found


def one_round(
    options: argparse.Namespace, mount: pathlib.Path, number: int, remount: Callable[[], None]
) -> tuple[dict, float]:
    """What each step took, and MiB of memory at the end."""
    found = {}
    fresh, kept = keys(f"new{number}", options.requests), keys(KEPT, options.requests)
    with server(options, mount, "--log", "error") as (host, pid):
        measure = Measure(host, pid, options)
        if number == 0:
            # Objects with records: what the fill makes has none.
            for key in kept:
                measure.send("PUT", key, None, BODY)
        found["create"] = measure.step([("PUT", key, None, BODY) for key in fresh])
        done = sorted(fresh[: found["create"][2]], key=hash)
        found["HEAD"] = measure.step([("HEAD", key) for key in done])
        found["delete"] = measure.step([("DELETE", key) for key in done])
        for key in done[found["delete"][2] :]:
            measure.send("DELETE", key)
    remount()
    with server(options, mount, "--log", "error") as (host, pid):
        measure = Measure(host, pid, options)
        found["HEAD, remounted"] = measure.step([("HEAD", key) for key in kept])
        page = {"list-type": "2"}
        found["first page"] = measure.step([("GET", f"/{BUCKET}", page)])
        starts = [name(random.Random(number + at).randrange(1 << 31)) for at in range(options.pages)]
        found["page"] = measure.step(
            [("GET", f"/{BUCKET}", {**page, "start-after": start}) for start in starts]
        )
        memory = peak_resident_mib(pid)
    return found, memory


def at_scale(
    options: argparse.Namespace, mount: pathlib.Path, remount: Callable[[], None]
) -> tuple[dict, float]:
    """The least of all rounds."""
    best: dict[str, tuple[float, float]] = {}
    for number in range(options.rounds):
        remount()
        found, memory = one_round(options, mount, number, remount)
        for step, (cpu, waited, _) in found.items():
            old = best.get(step, (math.inf, math.inf))
            best[step] = (min(cpu, old[0]), min(waited, old[1]))
    return best, memory


def shown(value: float) -> str:
    return (
        f"{value / 1e6:.2f} s"
        if value >= 1e6
        else f"{value / 1e3:.1f} ms"
        if value >= 10_000
        else f"{value:.0f}"
    )


def tell(kind: str, names: int, by_program: float | None, best: dict, rest: str) -> None:
    cells = [f"{shown(best[step][0])} / {shown(best[step][1])}" if step in best else "" for step in STEPS]
    made = "" if by_program is None else f"{by_program:.1f}"
    print(f"| {kind} | {names:,} | {made} | " + " | ".join(cells) + f" | {rest} |", flush=True)


def extrapolate(kind: str, names: int, found: dict[int, dict]) -> None:
    """From the two largest scales: what reads the directory grows with it; requests of one key by as much for each tenfold. Nothing
    of pages from anywhere: once the index of a directory is larger than --index-cache, each may read the directory."""
    if len(found) < 2:
        return
    (small, low), (large, high) = sorted(found.items())[-2:]
    decades = math.log(names / large) / math.log(large / small)

    def guess(step: str, at: int) -> float:
        if step == "first page":
            return high[step][at] * names / large
        return high[step][at] + max(0.0, high[step][at] - low[step][at]) * decades

    guesses = {step: (guess(step, 0), guess(step, 1)) for step in STEPS if step != "page"}
    tell(f"{kind}, *guessed*", names, None, guesses, "")


def measure_kind(options: argparse.Namespace, kind: str, place: pathlib.Path) -> None:
    found: dict[int, dict] = {}
    with file_system(kind, place / kind, max(options.names)) as mount:
        directory, there = mount / "data" / BUCKET, 0
        for names in sorted(options.names):
            made = fill(directory, there, names, options.fill_seconds)
            if made is None:
                print(f"{kind}: {names:,} names are not made in {options.fill_seconds} s", file=sys.stderr)
                break
            there = names
            best, memory = at_scale(options, mount, lambda: remounted(mount))
            found[names] = best
            tell(kind, names, made, best, f"{directory.stat().st_size >> 20} MiB, {memory:.0f} MiB")
    if options.extrapolate:
        extrapolate(kind, options.extrapolate, found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--file-systems", nargs="+", choices=["ext4", "xfs"], default=["ext4", "xfs"])
    parser.add_argument("--dir", help="where the images are made (default: the system's temporary directory)")
    parser.add_argument("--requests", type=int, default=2000, help="of each step, at most")
    parser.add_argument("--pages", type=int, default=50, help="of a listing, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20, help="for each step")
    parser.add_argument("--fill-seconds", type=float, default=3600, help="for the files of each scale")
    parser.add_argument("--extrapolate", type=int, metavar="NAMES", help="also a guess for so many")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none")
    options = parser.parse_args()
    options.null = False
    if os.geteuid() != 0:
        sys.exit("only root may mount file systems")
    print(
        f"load {os.getloadavg()[0]:.1f}, durability {options.durability}; us of CPU / us waited; a page has 1000 keys"
    )
    print("| | names | a program's create | " + " | ".join(STEPS) + " | directory, resident |")
    print("|---" * (len(STEPS) + 4) + "|", flush=True)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-flat-") as place:
        try:
            for kind in options.file_systems:
                measure_kind(options, kind, pathlib.Path(place))
        except Unmeasurable as error:
            sys.exit(f"flat.py: {error}")


if __name__ == "__main__":
    main()
