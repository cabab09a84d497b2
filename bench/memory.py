#!/usr/bin/env python3
"""Resident memory of the server: idle, with many uploads at once, with many idle connections.

    cargo build --release && bench/memory.py
    bench/memory.py --check                 # status 1 if a target is missed

Each figure is of a server of its own. Of uploads the peak counts, of the rest what is resident then.
"""

import argparse
import pathlib
import re
import resource
import socket
import sys
import tempfile
import time

from common import KEYS, ROOT, bench, peak_resident_mib, presign, request, server

UPLOADS, CONNECTIONS = 350, 10_000
# MiB
TARGETS = {"idle": 12, "uploads": 64, "connections": 120}


def resident_now_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def idle(_: argparse.Namespace, host: str, pid: int) -> float:
    request("PUT", host, "/bench", KEYS)
    time.sleep(1)
    return resident_now_mib(pid)


def uploads(options: argparse.Namespace, host: str, pid: int) -> float:
    bench(options.binary, [host], ["put", "--size", "1m", "-c", UPLOADS, "-d", "5s"], seconds=300)
    return peak_resident_mib(pid)


def connections(_: argparse.Namespace, host: str, pid: int) -> float:
    """Each asks once, and stays."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 100,) * 2)
    request("PUT", host, "/bench", KEYS)
    request("PUT", host, "/bench/small", KEYS, b"x")
    address, _, port = host.partition(":")
    head = f"HEAD {presign('HEAD', host, '/bench/small', KEYS)} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    opened = []
    for _ in range(CONNECTIONS):
        connection = socket.create_connection((address, int(port)), timeout=30)
        connection.sendall(head)
        opened.append(connection)
        if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
            sys.exit(f"connection {len(opened)} was not answered")
    time.sleep(1)
    return resident_now_mib(pid)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", help="where to put the data (default: the system's temporary directory)")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"])
    parser.add_argument("--check", action="store_true", help="end with status 1 if a target is missed")
    options = parser.parse_args()
    options.null = False
    missed = False
    titles = {
        "idle": "idle",
        "uploads": f"{UPLOADS} PUTs of 1 MiB at once, peak",
        "connections": f"{CONNECTIONS} idle connections",
    }
    for kind, measure in (("idle", idle), ("uploads", uploads), ("connections", connections)):
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-memory-") as work:
            (pathlib.Path(work) / "data").mkdir()
            with server(options, pathlib.Path(work)) as (host, pid):
                mib = measure(options, host, pid)
        met = mib < TARGETS[kind]
        missed |= not met
        print(
            f"{titles[kind]:32} {mib:6.1f} MiB; target: under {TARGETS[kind]}, {'met' if met else 'MISSED'}",
            flush=True,
        )
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
