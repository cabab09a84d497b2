#!/usr/bin/env python3
"""Requests per second and server CPU per request, measured with wrk and presigned URLs.

Starts a server on a fresh directory (or takes one with --endpoint and --pid), prepares objects, and for each kind of
request and size runs wrk for a while. CPU is user and system time of the server's process from /proc/PID/stat.

    cargo build --release && bench/wrk.py
    bench/wrk.py --null                     # the gateway alone, without files
    bench/wrk.py --durability full          # with every write flushed
    bench/wrk.py --json                     # for machines

Needs wrk, and ab for HEAD. The client runs on the same machine: compare within one run, and look at CPU before rate.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

from common import ACCESS_KEY, ROOT, SECRET_KEY, cpu_seconds, peak_resident_mib, presign, request, server

SIZES = {"1KiB": 1 << 10, "16KiB": 16 << 10, "1MiB": 1 << 20}
BUCKET = "bench"
# Overwrites and new keys both occur: wrk goes round this many keys.
PUT_KEYS = 2000


def script(work: pathlib.Path, method: str, paths: list[str], size: int) -> pathlib.Path:
    """A wrk script that goes round `paths`."""
    file = work / "wrk.lua"
    listed = ",\n".join(f'"{path}"' for path in paths)
    body = f'string.rep("x", {size})' if method == "PUT" else "nil"
    file.write_text(
        f"local paths = {{\n{listed}\n}}\nlocal body = {body}\nlocal requests, n = {{}}, 0\n"
        "function init()\n"
        f'  for i, p in ipairs(paths) do requests[i] = wrk.format("{method}", p, nil, body) end\n'
        "end\n"
        "function request() n = n % #requests + 1; return requests[n] end\n"
    )
    return file


def run_wrk(host: str, file: pathlib.Path, seconds: int, connections: int) -> dict:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file, f"http://{host}"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    socket_errors = re.search(r"Socket errors: (.*)", out)
    return {
        "requests": int(re.search(r"(\d+) requests in", out)[1]),
        "per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
        "p50": re.search(r"50%\s+(\S+)", out)[1],
        "p99": re.search(r"99%\s+(\S+)", out)[1],
        "errors": int(errors[1]) if errors else 0,
        "socket_errors": socket_errors[1] if socket_errors else None,
    }


def run_ab(host: str, path: str, seconds: int, connections: int) -> dict:
    """HEAD, which wrk cannot do: it waits for the body that Content-Length promises."""
    command = [
        "ab",
        "-i",
        "-k",
        "-q",
        "-n",
        "10000000",
        "-t",
        str(seconds),
        "-c",
        str(connections),
        f"http://{host}{path}",
    ]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    errors = re.search(r"Non-2xx responses:\s+(\d+)", out)
    return {
        "requests": int(re.search(r"Complete requests:\s+(\d+)", out)[1]),
        "per_second": float(re.search(r"Requests per second:\s+([\d.]+)", out)[1]),
        "p50": re.search(r"50%\s+(\S+)", out)[1] + "ms",
        "p99": re.search(r"99%\s+(\S+)", out)[1] + "ms",
        "errors": int(errors[1]) if errors else 0,
        "socket_errors": None,
    }


def measure(host: str, pid: int, options: argparse.Namespace, work: pathlib.Path, keys: tuple[str, str]):
    request("PUT", host, f"/{BUCKET}", keys)
    for name, size in SIZES.items():
        request("PUT", host, f"/{BUCKET}/{name}", keys, b"x" * size)
    for method in options.methods.split(","):
        for name, size in SIZES.items():
            # Large bodies all to few keys, or the disk fills.
            count = max(PUT_KEYS * 1024 // size, 16)
            targets = (
                [f"/{BUCKET}/put/{name}/{n}" for n in range(count)]
                if method == "PUT"
                else [f"/{BUCKET}/{name}"]
            )
            paths = [presign(method, host, target, keys) for target in targets]
            file = script(work, method, paths, size)

            load = (
                functools.partial(run_ab, host, paths[0], connections=options.connections)
                if method == "HEAD"
                else functools.partial(run_wrk, host, file, connections=options.connections)
            )
            load(seconds=1)
            best = None
            for _ in range(options.rounds):
                before = cpu_seconds(pid)
                result = load(seconds=options.seconds)
                # Requests in flight at the end are not counted; that error is below 1 %.
                result["cpu_us"] = (cpu_seconds(pid) - before) * 1e6 / max(result["requests"], 1)
                if best is None or result["cpu_us"] < best["cpu_us"]:
                    best = result
            yield {"method": method, "size": name, **best}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--null", action="store_true", help="measure the gateway without files")
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"])
    parser.add_argument("--methods", default="HEAD,GET,PUT")
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=4, help="of each round")
    parser.add_argument("--rounds", type=int, default=3, help="the one with the least CPU counts")
    parser.add_argument("--dir", help="where to put the data (default: a temporary directory)")
    parser.add_argument("--endpoint", help="HOST:PORT of another server that runs already; needs --pid")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--keys", help="ACCESS:SECRET for --endpoint")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(
            f"{os.cpu_count()} cpus, {time.strftime('%Y-%m-%d')}, wrk -c{options.connections}, "
            f"durability {options.durability}{', null backend' if options.null else ''}; best of {options.rounds}"
        )
        print(f"{'':5}{'size':>7}{'req/s':>10}{'CPU us':>9}{'p50':>10}{'p99':>10}")
    with (
        tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-bench-") as name,
        contextlib.ExitStack() as stack,
    ):
        work = pathlib.Path(name)
        if options.endpoint:
            host, pid, keys = options.endpoint, options.pid, tuple(options.keys.split(":", 1))
        else:
            host, pid = stack.enter_context(server(options, work))
            keys = (ACCESS_KEY, SECRET_KEY)
        rows = []
        for row in measure(host, pid, options, work, keys):
            rows.append(row)
            if not options.json:
                bad = (
                    f"  {row['errors']} errors {row['socket_errors'] or ''}"
                    if row["errors"] or row["socket_errors"]
                    else ""
                )
                print(
                    f"{row['method']:5}{row['size']:>7}{row['per_second']:>10.0f}{row['cpu_us']:>9.1f}"
                    f"{row['p50']:>10}{row['p99']:>10}{bad}",
                    flush=True,
                )
        if options.json:
            print(json.dumps({"rows": rows, "peak_resident_mib": peak_resident_mib(pid)}, indent=1))
        else:
            print(f"peak resident {peak_resident_mib(pid):.0f} MiB")


if __name__ == "__main__":
    main()
