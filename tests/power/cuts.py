"""Cuts the power of a virtual machine at random moments, and looks at what is left.

.venv/bin/python tests/power/cuts.py --cuts 100 --file-system ext4
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from power.check import Load, Tally, Verdict, look
from power.machine import IMAGE_BYTES, Machine, make_image, mounted

LOAD_SECONDS = 2.5


def cut_once(directory: Path, load: Load, options: argparse.Namespace) -> tuple[int, Verdict]:
    """One cut: how many requests had been acknowledged, and what came of it."""
    file_system, workers, seed = options.file_system, options.workers, load.seed
    image = directory / "disk.img"
    make_image(image, file_system)
    machine = Machine(image, file_system, load, workers, options.durability)
    try:
        machine.wait_for_bucket()
        time.sleep(random.Random(seed).uniform(0, options.load_seconds))
    finally:
        machine.cut()
    if machine.errors:
        return 0, Verdict(machine.errors)
    done = {worker: machine.done.get(worker, 0) for worker in range(workers)}
    with mounted(image, file_system, directory / "disk") as root:
        verdict = look(root / "tree", directory / "server.log", load, done, swept=seed % 2 == 0)
    return sum(done.values()), verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--file-system", choices=sorted(IMAGE_BYTES), default="ext4")
    parser.add_argument("--durability", choices=["full", "data", "none"], default="full")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="of the first cut; then the next"
    )
    parser.add_argument(
        "--load-seconds", type=float, default=LOAD_SECONDS, help="at most; more where the machine is slow"
    )
    parser.add_argument("--impersonate", action="store_true", help="the server acts as a user")
    options = parser.parse_args()
    tally, acknowledged = Tally(), 0
    with tempfile.TemporaryDirectory(prefix="slipway-power-") as directory:
        for seed in range(options.seed, options.seed + options.cuts):
            done, verdict = cut_once(Path(directory), Load(seed, options.impersonate), options)
            acknowledged += done
            tally.add(verdict)
            print(
                f"cut {seed - options.seed + 1}: seed {seed}, {done} acknowledged, "
                f"{len(verdict.wrong)} problems, {verdict}",
                flush=True,
            )
            for problem in verdict.wrong + verdict.mended:
                print(f"    {problem}"[:2000], flush=True)
    print(f"{options.file_system}: {options.cuts} cuts, {acknowledged} acknowledged, {tally}")
    return tally.bad > 0


if __name__ == "__main__":
    sys.exit(main())
