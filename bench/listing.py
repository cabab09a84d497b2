#!/usr/bin/env python3
"""What it costs to list a flat directory: the first page, the later ones, all of them, and memory.

Makes a bucket of N empty files (not through S3), starts a server on it and lists it, ListObjectsV2 with 1000 keys a page, over
one connection. Beside it, as a plain baseline, this program reads the directory, sorts the names and stats them all.

    cargo build --release && bench/listing.py
    bench/listing.py --files 100000 --dir /mnt/xfs
    bench/listing.py --writes           # with a PUT before each page
    bench/listing.py --writes --files 200000 --index-cache 16     # the index does not fit: windows
    bench/listing.py --files 10000000 --pages 300 --rate 100      # 300 pages, beside 100 PUTs a second
    bench/listing.py --below 400000     # instead: directories below one prefix, listed with a delimiter

With --below, each of the directories holds one file (none with --empty, when all of them have to be looked at), and the bucket is
listed with the delimiter `/`, which has one common prefix: by one client, then by eight at once.

Needs room for the files' inodes. The first page is measured with cold directory caches if this runs as root.
"""

import argparse
import contextlib
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time

from common import ROOT, Client, cpu_seconds, peak_resident_mib, server

BUCKET = "bench"


def make_files(directory: pathlib.Path, count: int) -> None:
    directory.mkdir(parents=True)
    fd = os.open(directory, os.O_RDONLY)
    for number in range(count):
        # Spread, as real names are: the file system's order is not that of the names.
        name = f"measurement-{number * 7919 % count:08}.dat"
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=fd))
    os.close(fd)


def drop_caches() -> None:
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("2")
    except OSError:
        print("not root: caches stay warm", file=sys.stderr)


def baseline(directory: pathlib.Path) -> float:
    began = time.perf_counter()
    with os.scandir(directory) as entries:
        names = sorted(entry.name for entry in entries)
    fd = os.open(directory, os.O_RDONLY)
    for name in names:
        os.stat(name, dir_fd=fd)
    os.close(fd)
    return time.perf_counter() - began


def page(
    client: Client, token: str | None, more: dict[str, str] | None = None
) -> tuple[int, str | None, float]:
    query = {"list-type": "2", **(more or {})} | ({"continuation-token": token} if token else {})
    began = time.perf_counter()
    text = client.send("GET", f"/{BUCKET}", query).decode()
    elapsed = time.perf_counter() - began
    found = re.search("<NextContinuationToken>([^<]+)", text)
    return text.count("<Contents>"), found and found[1], elapsed


def list_all(client: Client, writes: bool, pages: int | None) -> tuple[int, float, list[float]]:
    """How many keys, and the seconds of the first page and of the later ones (`pages` of them at most)."""
    listed, token, first = page(client, None)
    later = []
    while token and (pages is None or len(later) < pages):
        if writes:
            client.send("PUT", f"/{BUCKET}/written-{len(later):06}", body=b"x")
        count, token, elapsed = page(client, token)
        listed += count
        later.append(elapsed)
    return listed, first, later


@contextlib.contextmanager
def writing(host: str, rate: float | None):
    """Sends PUTs of new keys at this rate meanwhile, as far as the server keeps up; yields how many it sent."""
    sent, ends = [], threading.Event()

    def write() -> None:
        client, began = Client(host), time.monotonic()
        while not ends.wait(max(0.0, began + len(sent) / rate - time.monotonic())):
            client.send("PUT", f"/{BUCKET}/during-{time.time_ns()}", body=b"x")
            sent.append(time.monotonic())

    thread = threading.Thread(target=write)
    if rate:
        thread.start()
    try:
        yield sent
    finally:
        ends.set()
        if rate:
            thread.join()


def tell(what: str, first: float, later: list[float], cpu: float) -> None:
    print(f"{what}: first page {first * 1000:.0f} ms, whole listing {first + sum(later):.2f} s")
    if later:
        ordered = sorted(later)
        print(
            f"  later pages              median {statistics.median(later) * 1000:.1f} ms, "
            f"99 % {ordered[int(len(later) * 0.99)] * 1000:.1f} ms, longest {ordered[-1] * 1000:.1f} ms"
        )
        print(f"  server CPU a page        {cpu / (len(later) + 1) * 1000:.1f} ms")


def measure(options: argparse.Namespace, work: pathlib.Path) -> None:
    directory = work / "data" / BUCKET
    print(f"making {options.files} files in {directory}", file=sys.stderr)
    make_files(directory, options.files)
    more = ["--index-cache", str(options.index_cache)] if options.index_cache else []
    with server(options, work, *more) as (host, pid):
        client = Client(host)
        client.send("GET", "/", {})
        before = peak_resident_mib(pid)
        drop_caches()
        print(f"{options.files} files")
        expected = options.files
        for what in ("cold", "warm"):
            cpu_before, first_of_all = cpu_seconds(pid), time.monotonic()
            with writing(host, options.rate) as sent:
                listed, first, later = list_all(client, options.writes and what == "cold", options.pages)
            expected += len(later) if options.writes and what == "cold" else 0
            if not options.rate and options.pages is None and listed != expected:
                sys.exit(f"{listed} keys were listed, {expected} are there")
            tell(what, first, later, cpu_seconds(pid) - cpu_before)
            if sent:
                rate = len(sent) / (time.monotonic() - first_of_all)
                print(f"  PUTs meanwhile           {len(sent)}, {rate:.0f} a second")
        print(f"resident growth            {peak_resident_mib(pid) - before:.1f} MiB")
    if options.pages is not None:
        return
    drop_caches()
    print(
        f"baseline (scandir + sort + stat, this program)  cold {baseline(directory):.2f} s, warm {baseline(directory):.2f} s"
    )


def measure_below(options: argparse.Namespace, work: pathlib.Path) -> None:
    above = work / "data" / BUCKET / "many"
    print(f"making {options.below} directories in {above}", file=sys.stderr)
    above.mkdir(parents=True)
    for number in range(options.below):
        (above / f"{number:07}").mkdir()
        if not options.empty:
            (above / f"{number:07}" / "object").touch()
    more = ["--index-cache", str(options.index_cache)] if options.index_cache else []
    with server(options, work, *more) as (host, pid):
        client = Client(host)
        client.send("GET", "/", {})
        before = peak_resident_mib(pid)
        drop_caches()
        print(
            f"{options.below} {'empty directories' if options.empty else 'directories with an object each'}"
        )
        for what in ("cold", "warm", "again"):
            cpu_before = cpu_seconds(pid)
            _, _, elapsed = page(client, None, {"delimiter": "/"})
            cpu = cpu_seconds(pid) - cpu_before
            print(f"{what}: a page {elapsed * 1000:.1f} ms, server CPU {cpu * 1000:.0f} ms")
        print(f"resident growth, one client       {peak_resident_mib(pid) - before:.1f} MiB")
        clients = [Client(host) for _ in range(8)]
        threads = [threading.Thread(target=page, args=(one, None, {"delimiter": "/"})) for one in clients]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"eight at once: {(time.perf_counter() - began) * 1000:.1f} ms")
        print(f"resident growth, eight clients    {peak_resident_mib(pid) - before:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--dir", help="where to make them (default: the system's temporary directory)")
    parser.add_argument("--writes", action="store_true", help="a PUT before each page")
    parser.add_argument("--pages", type=int, help="this many pages after the first (default: all)")
    parser.add_argument("--rate", type=float, help="PUTs of new keys a second, from another client")
    parser.add_argument("--below", type=int, help="this many directories below one prefix, instead of files")
    parser.add_argument("--empty", action="store_true", help="with --below: directories without a file")
    parser.add_argument("--index-cache", type=int, help="MiB (default: the server's)")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none")
    options = parser.parse_args()
    options.null = False
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-listing-") as work:
        (measure_below if options.below else measure)(options, pathlib.Path(work))


if __name__ == "__main__":
    main()
