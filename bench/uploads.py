#!/usr/bin/env python3
"""What it costs to list the uploads in progress: the first page, the later ones, and pages while uploads come.

Begins N uploads, and lists them with 1000 a page, over one connection.

    cargo build --release && bench/uploads.py
"""

import argparse
import html
import pathlib
import re
import statistics
import tempfile
import time

from common import ROOT, Client, cpu_seconds, peak_resident_mib, server

BUCKET = "bench"


def page(client: Client, marker: dict[str, str], more: dict[str, str]) -> tuple[int, dict[str, str], float]:
    began = time.perf_counter()
    text = client.send("GET", f"/{BUCKET}", {"uploads": "", **marker, **more}).decode()
    elapsed = time.perf_counter() - began
    names = {"key-marker": "NextKeyMarker", "upload-id-marker": "NextUploadIdMarker"}
    found = {name: re.search(f"<{tag}>([^<]+)", text) for name, tag in names.items()}
    marker = {name: html.unescape(value[1]) for name, value in found.items() if value}
    truncated = "<IsTruncated>true" in text
    return text.count("<Upload>") + text.count("<CommonPrefixes>"), marker if truncated else {}, elapsed


def run(client: Client, what: str, pid: int, writes: bool = False, **more: str) -> None:
    listed, marker, times, cpu = 0, {}, [], cpu_seconds(pid)
    while True:
        if writes:
            client.send("POST", f"/{BUCKET}/zz-{time.time_ns()}", {"uploads": ""})
        count, marker, elapsed = page(client, marker, more)
        listed += count
        times.append(elapsed * 1000)
        if not marker:
            break
    rest = (
        f", later median {statistics.median(times[1:]):.1f} ms, longest {max(times[1:]):.1f} ms"
        if times[1:]
        else ""
    )
    used = (cpu_seconds(pid) - cpu) / len(times) * 1000
    print(
        f"{what:32} {listed:6} in {len(times):3} pages: first {times[0]:.1f} ms{rest}, server CPU a page {used:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--uploads", type=int, default=10_000)
    parser.add_argument("--dir", help="where (default: the system's temporary directory)")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none")
    options = parser.parse_args()
    options.null = False
    with (
        tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-uploads-") as work,
        server(options, pathlib.Path(work)) as (host, pid),
    ):
        client = Client(host)
        client.send("PUT", f"/{BUCKET}")
        for number in range(options.uploads):
            spread = number * 7919 % options.uploads
            client.send("POST", f"/{BUCKET}/run{spread % 100:02}/measurement-{spread:08}", {"uploads": ""})
        before = peak_resident_mib(pid)
        run(client, "all", pid)
        run(client, "all, again", pid)
        run(client, "an upload before each page", pid, writes=True)
        run(client, "one prefix of a hundred", pid, prefix="run42/")
        run(client, "rolled up", pid, delimiter="/")
        print(f"resident growth {peak_resident_mib(pid) - before:.1f} MiB")


if __name__ == "__main__":
    main()
