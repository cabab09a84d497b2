#!/usr/bin/env python3
"""What versions cost: requests for objects of a bucket that keeps versions, beside those of one that does not.

One server serves both buckets. Each round sends PUTs of 1 KiB over the same keys in both, then HEADs and GETs, on one
connection and in turns, so that what the machine does besides falls on both. Each PUT leaves one version more. Printed
are CPU time of the server and time to the answer, as medians over the rounds, and the median of the ratios within a
round. At the end, all versions are listed, and one chain alone.

    cargo build --release && bench/versions.py --dir /mnt/x
    bench/versions.py --durability full --check      # exit status 1 if a PUT takes more than 1.3 times the CPU time
"""

import argparse
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
    options = parser.parse_args()
    options.null = False
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
