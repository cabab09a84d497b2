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

from power.check import problems
from power.machine import IMAGE_BYTES, Machine, make_image, mounted

LONGEST_LOAD_SECONDS = 2.5


def cut_once(
    directory: Path, file_system: str, durability: str, seed: int, workers: int
) -> tuple[int, list[str]]:
    """One cut: how many requests had been acknowledged, and what is wrong."""
    image = directory / "disk.img"
    make_image(image, file_system)
    machine = Machine(image, file_system, seed, workers, durability)
    try:
        machine.wait_for_bucket()
        time.sleep(random.Random(seed).uniform(0, LONGEST_LOAD_SECONDS))
    finally:
        machine.cut()
    if machine.errors:
        return 0, machine.errors
    done = {worker: machine.done.get(worker, 0) for worker in range(workers)}
    with mounted(image, file_system, directory / "disk") as root:
        found = problems(root / "tree", directory / "server.log", seed, done)
    return sum(done.values()), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--file-system", choices=sorted(IMAGE_BYTES), default="ext4")
    parser.add_argument("--durability", choices=["full", "data", "none"], default="full")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="of the first cut; then the next"
    )
    options = parser.parse_args()
    bad = acknowledged = 0
    with tempfile.TemporaryDirectory(prefix="slipway-power-") as directory:
        for seed in range(options.seed, options.seed + options.cuts):
            done, found = cut_once(
                Path(directory), options.file_system, options.durability, seed, options.workers
            )
            acknowledged += done
            bad += bool(found)
            print(
                f"cut {seed - options.seed + 1}: seed {seed}, {done} acknowledged, {len(found)} problems",
                flush=True,
            )
            for problem in found:
                print(f"    {problem}"[:2000], flush=True)
    print(f"{options.file_system}: {options.cuts} cuts, {acknowledged} acknowledged, {bad} with problems")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
