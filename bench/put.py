#!/usr/bin/env python3
"""Server CPU of 1 MiB PUTs, alone and many at once, of several servers in turn.

Each server gets a directory of its own below --dir; all run at once and are loaded one after the other, in rounds, so that what
else the machine does falls on all alike. Prints the least of all rounds (CPU us a request, from /proc), and the peak of resident memory.

    cargo build --release && bench/put.py --dir /dev/shm
    bench/put.py --dir /mnt/x --concurrency 1 64 --payload unsigned signed
    bench/put.py --server main=/tmp/slipway-main --server 'checksum=target/release/slipway serve --etag checksum'
    bench/put.py --server 'peer=versitygw --port {address} posix {dir}'     # keys: ROOT_ACCESS_KEY, ROOT_SECRET_KEY
"""

import argparse
import contextlib
import json
import os
import pathlib
import tempfile

from common import bench, peak_resident_mib
from servers import BINARY, Running, started


def measure(server: Running, options: argparse.Namespace, concurrency: int, payload: str) -> dict:
    words = ["put", "--size", options.size, "-c", concurrency, "-d", f"{options.seconds}s"]
    words += ["--payload", payload, "--objects", options.objects]
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        bench(BINARY, [server.address], words, server.pids, report.name)
        (found,) = json.load(report)["rounds"]
    latency = found["operations"][0]["latency"]
    return {"cpu": found["server_cpu_us"], "rate": found["answers"] / found["seconds"], "p50": latency["p50"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dir", default=None, help="where the data goes (default: the system's temporary directory)"
    )
    parser.add_argument("--server", action="append", metavar="NAME=COMMAND")
    parser.add_argument("--size", default="1m")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 64])
    parser.add_argument("--payload", nargs="+", default=["unsigned", "signed"])
    parser.add_argument("--objects", type=int, default=256)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    servers = dict(given.split("=", 1) for given in options.server or [f"slipway={BINARY}"])
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir)))
        running = {
            name: stack.enter_context(started(command, work / name)) for name, command in servers.items()
        }
        best: dict[tuple, dict] = {}
        for _ in range(options.rounds):
            for concurrency in options.concurrency:
                for payload in options.payload:
                    for name, server in running.items():
                        now = measure(server, options, concurrency, payload)
                        step = (concurrency, payload, name)
                        best[step] = min(now, best.get(step, now), key=lambda found: found["cpu"])
        print(f"load {os.getloadavg()[0]:.1f}")
        for (concurrency, payload, name), found in best.items():
            print(
                f"{options.size} PUT, {payload:8} {concurrency:4} at once  {name:12} {found['cpu']:7.0f} us CPU"
                f"  {found['rate']:7.0f}/s  p50 {found['p50'] / 1e3:6.1f} ms"
            )
        for name, server in running.items():
            print(f"{name:12} peak resident memory {peak_resident_mib(server.pid):.0f} MiB")


if __name__ == "__main__":
    main()
