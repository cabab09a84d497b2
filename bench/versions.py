#!/usr/bin/env python3
"""What versions cost: requests for objects of a bucket that keeps versions, beside those of one that does not.

One server serves both buckets. Each round sends PUTs of 1 KiB over the same keys in both, then HEADs and GETs, on one
connection and in turns, so that what the machine does besides falls on both. Each PUT leaves one version more. Printed
are CPU time of the server and time to the answer, as medians over the rounds, and the median of the ratios within a
round. At the end, all versions are listed, and one chain alone.

    cargo build --release && bench/versions.py --dir /mnt/x
    bench/versions.py --durability full --check      # exit status 1 if a PUT takes more than 1.3 times the CPU time

With --pages, what a page of 1000 takes of many versions of one key, and of many keys with three versions each, at the
beginning, in the middle and near the end; then deletes of the newest versions of the one key, by their ids. The versions
are hard links to those of one key, with records, made beside the server: use a file system that allows many links (tmpfs).

    bench/versions.py --pages 1000 1000000 --dir /dev/shm
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

from common import ROOT, Client, server
from costs import cpu_ns

LIMIT = 1.3
BUCKETS = ("plain", "kept")
ENABLED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
BODIES = {"PUT": b"x" * 1024, "HEAD": None, "GET": None}


def burst(
    client: Client, pid: int, method: str, bucket: str, options: argparse.Namespace
) -> tuple[float, float]:
    """CPU time of the server, and time to the answer, in us a request."""
    cpu, start = cpu_ns(pid), time.monotonic_ns()
    for number in range(options.count):
        client.send(method, f"/{bucket}/directory/{number % options.keys}", None, BODIES[method])
    passed = time.monotonic_ns() - start
    time.sleep(0.02)
    return tuple(spent / 1e3 / options.count for spent in (cpu_ns(pid) - cpu, passed))


def pages(client: Client, prefix: str) -> tuple[int, float]:
    """How many versions there are, and how long a page of 1000 takes, in ms."""
    found, count, start, marks = 0, 0, time.monotonic(), {}
    while True:
        text = client.send("GET", "/kept", {"versions": "", "prefix": prefix, **marks}).decode()
        found, count = found + text.count("<Version>"), count + 1
        if "<IsTruncated>true" not in text:
            return found, (time.monotonic() - start) * 1e3 / count
        names = {"key-marker": "NextKeyMarker", "version-id-marker": "NextVersionIdMarker"}
        marks = {mark: text.split(f"<{name}>")[1].split("<")[0] for mark, name in names.items()}


class Spent:
    """CPU time of the server since this was made, and time, in ms."""

    def __init__(self, pid: int):
        self.pid, self.cpu, self.begun = pid, cpu_ns(pid), time.monotonic()

    def since(self) -> tuple[float, float]:
        passed = (time.monotonic() - self.begun) * 1e3
        # Threads that the server waits for may end a moment later.
        time.sleep(0.02)
        return (cpu_ns(self.pid) - self.cpu) / 1e6, passed


def page(client: Client, pid: int, bucket: str, marks: dict[str, str], rounds: int) -> str:
    """What a page costs the server, and how long it takes: the medians of some."""
    costs = []
    for _ in range(rounds):
        spent = Spent(pid)
        text = client.send("GET", f"/{bucket}", {"versions": "", **marks})
        costs.append(spent.since())
        assert b"<Version>" in text, text[:500]
    cpu, passed = (statistics.median(cost[at] for cost in costs) for at in (0, 1))
    return f"{cpu:.0f} ms of CPU ({passed:.0f} ms)"


def templates(client: Client, tree: pathlib.Path, bucket: str, key: str) -> list[pathlib.Path]:
    """The files of three versions of a key, from the oldest, the current one last."""
    for _ in range(3):
        client.send("PUT", f"/{bucket}/{key}", None, b"x" * 1024)
        # The orders between are for the links.
        time.sleep(0.1)
    chain = tree / bucket / ".slipway/versions" / key
    return [*sorted(chain.iterdir()), tree / bucket / key]


def name(order: int) -> str:
    return f".slipway,v{order:016x}"


def one_key(client: Client, tree: pathlib.Path, count: int) -> list[int]:
    """Makes a key with many versions; their orders, from the oldest."""
    client.send("PUT", "/one")
    client.send("PUT", "/one", {"versioning": ""}, ENABLED)
    oldest, newer, _ = templates(client, tree, "one", "key")
    first, last = (int(path.name.removeprefix(".slipway,v"), 16) for path in (oldest, newer))
    # A record counts for a name whose order is not less than its own.
    step = (last - first) // count & ~1
    assert step >= 2, "the versions are too close together"
    orders = [first + step * number for number in range(1, count - 2)]
    for order in orders:
        os.link(oldest, oldest.with_name(name(order)))
    return [first, *orders, last]


def many_keys(client: Client, tree: pathlib.Path, count: int) -> None:
    """Makes keys with three versions each."""
    client.send("PUT", "/many")
    client.send("PUT", "/many", {"versioning": ""}, ENABLED)
    *olds, current = templates(client, tree, "many", "key0000000")
    chains, bucket = olds[0].parent.parent, current.parent
    for number in range(1, count):
        chain = chains / f"key{number:07}"
        chain.mkdir(mode=0o700)
        for old in olds:
            os.link(old, chain / old.name)
        os.link(current, bucket / chain.name)


def measure_shape(host: str, pid: int, rounds: int, bucket: str, marks: list[dict[str, str]]) -> str:
    """What pages of a bucket cost: the first of all, and those at the beginning, in the middle and near the end."""
    # A connection that was idle for long is closed.
    client = Client(host)
    first = page(client, pid, bucket, {}, 1)
    beginning, middle, end = (page(client, pid, bucket, mark, rounds) for mark in ({}, *marks))
    return (
        f"first page {first}; then at the beginning {beginning}, in the middle {middle}, near the end {end}"
    )


def measure_pages(options: argparse.Namespace, count: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="slipway-versions-", dir=options.dir) as work,
        server(options, pathlib.Path(work)) as (host, pid),
    ):
        tree = pathlib.Path(work) / "data"
        orders = one_key(Client(host), tree, count)
        spots = (count // 2, count - 400)
        marks = [{"key-marker": "key", "version-id-marker": f"{orders[count - 1 - at]:016x}"} for at in spots]
        shape = measure_shape(host, pid, options.rounds, "one", marks)
        print(f"{count} versions of one key: {shape}", flush=True)
        client = Client(host)
        current = client.send("GET", "/one", {"versions": "", "max-keys": "1"}).decode()
        ids = [current.split("<VersionId>")[1].split("<")[0]]
        ids += [f"{order:016x}" for order in orders[: -options.deletes : -1]]
        spent = Spent(pid)
        for version in ids:
            client.send("DELETE", "/one/key", {"versionId": version})
        cpu, passed = (cost / len(ids) for cost in spent.since())
        print(
            f"{count} versions of one key: a delete of the current one by its id {cpu:.2f} ms of CPU ({passed:.2f} ms)",
            flush=True,
        )
        many_keys(client, tree, count)
        marks = [{"key-marker": f"key{at:07}"} for at in spots]
        shape = measure_shape(host, pid, options.rounds, "many", marks)
        print(f"{count} keys with three versions: {shape}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--binary", default=str(ROOT / "target/release/slipway"))
    parser.add_argument("--dir", help="where the data goes (default: the system's temporary directory)")
    parser.add_argument("--durability", default="none")
    parser.add_argument("--count", type=int, default=200, help="requests of each kind in a round")
    parser.add_argument("--keys", type=int, default=100, help="objects in each bucket")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--check", action="store_true", help=f"exit status 1 above {LIMIT} times for a PUT")
    parser.add_argument(
        "--pages", type=int, nargs="+", metavar="VERSIONS", help="measure pages of so many instead"
    )
    parser.add_argument("--deletes", type=int, default=200, help="versions that are deleted with --pages")
    options = parser.parse_args()
    options.null = False
    if options.pages:
        for count in options.pages:
            measure_pages(options, count)
        return
    found = {(method, bucket): [] for method in BODIES for bucket in BUCKETS}
    with (
        tempfile.TemporaryDirectory(prefix="slipway-versions-", dir=options.dir) as work,
        server(options, pathlib.Path(work)) as (host, pid),
    ):
        client = Client(host)
        for bucket in BUCKETS:
            client.send("PUT", f"/{bucket}")
        client.send("PUT", "/kept", {"versioning": ""}, ENABLED)
        for number in range(options.rounds + 1):
            for method in BODIES:
                # Each goes first in half of the rounds.
                for bucket in BUCKETS[:: 1 if number % 2 else -1]:
                    spent = burst(client, pid, method, bucket, options)
                    if number > 0:
                        found[method, bucket].append(spent)
        versions, page_ms = pages(client, "")
        of_one, chain_ms = pages(client, "directory/0")
    ratios = {}
    for method in BODIES:
        plain, kept = (found[method, bucket] for bucket in BUCKETS)
        for at, what in enumerate(("CPU", "to the answer")):
            one, other = ([spent[at] for spent in side] for side in (plain, kept))
            ratio = statistics.median(b / a for a, b in zip(one, other, strict=True))
            ratios[method, what] = ratio
            medians = (
                f"{statistics.median(one):7.1f} us without, {statistics.median(other):7.1f} us with versions"
            )
            print(f"{method:4} {what:13} {medians}: {ratio:.2f} times")
    print(
        f"a page of 1000 of {versions} versions: {page_ms:.1f} ms; of the {of_one} of one key: {chain_ms:.1f} ms"
    )
    if options.check and ratios["PUT", "CPU"] > LIMIT:
        raise SystemExit(f"more than {LIMIT} times the CPU time")


if __name__ == "__main__":
    main()
