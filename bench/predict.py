#!/usr/bin/env python3
"""How well `slipway plan` predicts what it was not calibrated with.

For each place below --dir (by default the system's temporary directory alone) a server of ours, and in rounds, so that what else the
machine does falls on all alike: the sizes that calibrate, at the first place alone, and the sizes that are predicted, at all. Then `slipway plan
--calibrate` makes costs of the former, and `--against` sets them beside the latter. Ends with status 1 if one is off by more than 15 %.

On loopback the kernel does what the reader receives in the name of whoever sends, more of it for some sizes than for others: a GET of 2 MiB
took a third more than the sizes around it foretell. Between two machines each does its own. So servers have one processor here and the load
generator another, in a network namespace whose loopback device delivers on the latter (receive packet steering). That needs root and two processors.

    cargo build --release && bench/predict.py
    bench/predict.py --dir /mnt/ext4 /mnt/xfs /dev/shm --durability full      # calibrated on the first, predicted on all
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from common import ROOT, bench
from servers import BINARY, Running, started

# On both sides of 256 KiB, from which on GETs are sent another way and bodies of PUTs wait to be
# digested together, and of the step between 512 KiB and 1 MiB, from which on a GET's answer does
# not fit into a socket.
CALIBRATED = {"head": None, "get": "1k,64k,512k,1m,4m,16m", "put": "1k,128k,512k,2m,16m"}
PREDICTED = {"get": "16k,2m,8m", "put": "8k,256k,4m"}
CONCURRENCY = {"head": 20, "get": 20, "put": 64}
SERVERS, LOAD = 0, 1
# The masks of processors are hexadecimal.
STEERED = f"""
mount -t sysfs sysfs /sys
ip link set lo up
echo {1 << LOAD:x} >/sys/class/net/lo/queues/rx-0/rps_cpus
exec "$@"
"""
INSIDE = "SLIPWAY_PREDICT_INSIDE"


def enter_namespace() -> None:
    """Starts this script again in a network namespace of its own, whose loopback device delivers on the load generator's processor."""
    if os.environ.get(INSIDE):
        return
    if os.geteuid() or not {SERVERS, LOAD} <= os.sched_getaffinity(0):
        sys.exit(f"needs root, and the processors {SERVERS} and {LOAD}")
    os.environ[INSIDE] = "yes"
    words = ["unshare", "--net", "--mount", "sh", "-e", "-c", STEERED, "sh", sys.executable, *sys.argv]
    os.execvp(words[0], words)


def measure(server: Running, operation: str, sizes: str | None, report: pathlib.Path, seconds: int) -> None:
    words = [operation, "-c", CONCURRENCY[operation], "-d", f"{seconds}s", "--objects", 64]
    words += ["--size", sizes] if sizes else []
    bench(BINARY, [server.address], words, server.pids, report)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", nargs="+", default=[tempfile.gettempdir()], help="where the data goes")
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"])
    parser.add_argument("--seconds", type=int, default=3, help="of each size (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="medians are taken of them (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=ROOT / "target/predict", help="default: %(default)s"
    )
    options = parser.parse_args()
    enter_namespace()
    options.out.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[pathlib.Path]] = {"calibrated": [], **{place: [] for place in options.dir}}
    with contextlib.ExitStack() as stack:
        servers = {}
        for place in options.dir:
            work = stack.enter_context(tempfile.TemporaryDirectory(dir=place, prefix="slipway-predict-"))
            command = f"taskset --cpu-list {SERVERS} {BINARY} serve --durability {options.durability} --listen {{address}} {{dir}}"
            servers[place] = stack.enter_context(started(command, pathlib.Path(work) / "data"))
        os.sched_setaffinity(0, {LOAD})
        first = options.dir[0]
        steps = [("calibrated", first, *step) for step in CALIBRATED.items()]
        steps += [(place, place, *step) for place in options.dir for step in PREDICTED.items()]
        for number in range(options.rounds):
            for kind, place, operation, sizes in steps:
                report = options.out / f"{kind.strip('/').replace('/', '-')}-{operation}-{number}.json"
                measure(servers[place], operation, sizes, report, options.seconds)
                runs[kind].append(report)
    costs = options.out / "costs.toml"
    made = subprocess.run(
        [BINARY, "plan", "--calibrate", *runs["calibrated"]], check=True, capture_output=True
    )
    costs.write_bytes(made.stdout)
    print(f"load {os.getloadavg()[0]:.1f}, durability {options.durability}; calibrated at {first}")
    worst = 0
    for place in options.dir:
        print(f"\n== {place}", flush=True)
        done = subprocess.run([BINARY, "plan", "--costs", costs, "--against", *runs[place]], check=False)
        worst = max(worst, done.returncode)
    sys.exit(worst)


if __name__ == "__main__":
    main()
