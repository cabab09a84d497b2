#!/usr/bin/env python3
"""Repeats the published studies (the presets of `slipway bench`) on this server and on others beside it, and sets the results side by side.

All servers run at once, each with a directory of its own below --dir, and are loaded one after the other, preset by preset, so that what
else the machine does falls on all alike. Writes PRESET-SERVER.json and .html to --out, and what `slipway bench compare` says of each to the
terminal and to PRESET-SERVER.txt.

    cargo build --release && bench/study.py --dir /mnt/x
    bench/study.py --presets put-1m head small --seconds 10 --scale 1
    bench/study.py --server 'peer=versitygw --port {address} --keep-alive posix {dir}'     # keys: ROOT_ACCESS_KEY, ROOT_SECRET_KEY
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from common import ACCESS_KEY, ROOT, SECRET_KEY
from put import BINARY, started

PRESETS = ["put-1m", "small", "head", "ranged-10g", "multipart-10g"]
OURS = "slipway"


def bench(preset: str, address: str, pid: int, name: str, options: argparse.Namespace) -> pathlib.Path:
    report = options.out / f"{preset}-{name}.json"
    command = [BINARY, "bench", f"http://{address}", "--preset", preset, "--scale", str(options.scale)]
    command += ["-d", f"{options.seconds}s", "--server-pid", str(pid), "--json", report]
    command += ["--html", report.with_suffix(".html"), "--repeat", str(options.repeat)]
    if options.concurrency:
        command += ["-c", options.concurrency]
    env = dict(os.environ, AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    print(f"\n== {preset}, {name}", flush=True)
    done = subprocess.run(command, env=env)
    # 1 is for errors among the answers, which the report has.
    if done.returncode > 1:
        sys.exit(f"{preset} on {name} could not be measured")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dir", default=None, help="where the data goes (default: the system's temporary directory)"
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=ROOT / "target/study", help="default: %(default)s"
    )
    parser.add_argument(
        "--presets", nargs="+", default=PRESETS, metavar="PRESET", help="default: %(default)s"
    )
    parser.add_argument(
        "--server", action="append", default=[], metavar="NAME=COMMAND", help="another server"
    )
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"], help="of ours")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of objects of gigabytes (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=int, default=10, help="of each step (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--concurrency", help="instead of the presets' own")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    servers = {OURS: f"{BINARY} serve --durability {options.durability} --listen {{address}} {{dir}}"}
    servers |= dict(given.split("=", 1) for given in options.server)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-study-"))
        )
        running = {
            name: stack.enter_context(started(command, work / name)) for name, command in servers.items()
        }
        for preset in options.presets:
            reports = {name: bench(preset, *of, name, options) for name, of in running.items()}
            ours = reports.pop(OURS)
            for name, theirs in reports.items():
                command = [BINARY, "bench", "compare", theirs, ours]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                theirs.with_suffix(".txt").write_text(text)
                print(f"\n-- {preset}: {OURS} over {name}\n{text}", flush=True)
    print(f"\nreports: {options.out}")


if __name__ == "__main__":
    main()
