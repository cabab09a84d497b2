"""Writes down every write and flush of the disk, and looks at what it would hold had the power gone at any
flush.

    .venv/bin/python tests/power/replay.py --requests 30 --file-system ext4

Harder than a cut: of what was written after the last flush, nothing is on the disk. It is checked after each
flush, each write that is a flush of its own (FUA), and each acknowledgement."""

import argparse
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from power.check import Load, Tally, look, look_again
from power.machine import IMAGE_BYTES, Machine, make_image, mounted

LOG_BYTES = 4 << 30
SAY_EVERY = 100
# From the kernel's drivers/md/dm-log-writes.c.
MAGIC, VERSION = 0x6A73_6677_7368_72, 1
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


@dataclass(frozen=True)
class Entry:
    offset: int
    length: int
    flags: int
    data: bytes

    @property
    def is_flush(self) -> bool:
        return bool(self.flags & (FLUSH | FUA))

    def apply(self, disk) -> None:
        if self.flags & (MARK | DISCARD) == 0:
            disk.seek(self.offset)
            disk.write(self.data)


def entries(log: Path) -> Iterator[Entry]:
    with open(log, "rb") as file:
        magic, version, count, sector_bytes = struct.unpack("<QQQI", file.read(28))
        assert (magic, version) == (MAGIC, VERSION), "no log of dm-log-writes"
        at = sector_bytes
        for _ in range(count):
            file.seek(at)
            head = file.read(sector_bytes)
            sector, sectors, flags, data_bytes = struct.unpack_from("<QQQQ", head)
            at += sector_bytes
            length = sectors * sector_bytes
            if flags & MARK:
                data = head[32 : 32 + data_bytes]
            elif flags & DISCARD:
                data = b""
            else:
                data = file.read(length)
                assert len(data) == length
                at += length
            yield Entry(sector * sector_bytes, length, flags, data)


def load_of(options: argparse.Namespace) -> Load:
    return Load(options.seed, options.impersonate)


def record(directory: Path, options: argparse.Namespace) -> tuple[Path, Path]:
    """Lets the server work; returns the empty disk and the log."""
    image, log = directory / "disk.img", directory / "log.img"
    make_image(image, options.file_system)
    empty = directory / "empty.img"
    copy(image, empty)
    with open(log, "wb") as file:
        file.truncate(LOG_BYTES)
    machine = Machine(
        image,
        options.file_system,
        load_of(options),
        options.workers,
        options.durability,
        (log, options.requests),
    )
    try:
        machine.wait_for_bucket()
        machine.wait_for_end()
    finally:
        machine.cut()
    image.unlink()
    return empty, log


def copy(source: Path, target: Path) -> None:
    """To a new file, as in `make_image`. Holes stay holes; where the file system can, the rest is shared."""
    target.unlink(missing_ok=True)
    subprocess.run(["cp", "--reflink=auto", "--sparse=auto", str(source), str(target)], check=True)


def replay(directory: Path, options: argparse.Namespace, disk_image: Path, log: Path) -> Tally:
    """Looks at every moment."""
    done: dict[int, int] = {}
    tally = Tally()
    verdict, changed = None, True
    with open(disk_image, "r+b", buffering=0) as disk:
        for number, entry in enumerate(entries(log)):
            entry.apply(disk)
            if entry.length and entry.flags & (MARK | DISCARD) == 0:
                changed = True
            if entry.flags & MARK:
                text = entry.data.rstrip(b"\0").decode()
                if text == "bucket":
                    done = dict.fromkeys(range(options.workers), 0)
                else:
                    worker, count = map(int, text.split("-"))
                    done[worker] = count
            if not done or not (entry.is_flush or entry.flags & MARK):
                continue
            moment = f"entry {number}, {'mark' if entry.flags & MARK else 'flush'}"
            if changed or verdict is None:
                swept = not (verdict and verdict.swept)
                copy(disk_image, directory / "moment.img")
                with mounted(directory / "moment.img", options.file_system, directory / "disk") as root:
                    verdict = look(root / "tree", directory / "server.log", load_of(options), done, swept)
                changed = False
            else:
                verdict = look_again(verdict, load_of(options), done)
            tally.add(verdict)
            for problem in verdict.wrong:
                print(f"    {moment}, {sum(done.values())} acknowledged: {problem}"[:2000], flush=True)
            if tally.looked % SAY_EVERY == 0:
                print(f"{tally.looked} moments, {sum(done.values())} acknowledged, {tally}", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=30, help="of each worker")
    parser.add_argument("--file-system", choices=sorted(IMAGE_BYTES), default="ext4")
    parser.add_argument("--durability", choices=["full", "data", "none"], default="full")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--impersonate", action="store_true", help="the server acts as a user")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slipway-power-") as directory:
        directory = Path(directory)
        empty, log = record(directory, options)
        tally = replay(directory, options, empty, log)
    requests = options.requests * options.workers
    print(f"{options.file_system}: seed {options.seed}, {requests} requests, {tally.looked} moments, {tally}")
    return tally.bad > 0


if __name__ == "__main__":
    sys.exit(main())
