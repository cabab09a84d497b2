"""The file by which the copy is told which fault is on, and tells which were reached (seeded-fault/src/lib.rs)."""

import mmap
from pathlib import Path

BYTES = 4096


class Control:
    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(BYTES))
        # For servers of other users, too.
        path.chmod(0o666)
        with open(path, "r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), BYTES)

    def set(self, fault: int) -> None:
        """Puts a fault on; 0 puts none on."""
        self.bytes[0] = fault

    def forget(self) -> None:
        """Forgets which were reached."""
        self.bytes[1:] = bytes(BYTES - 1)

    def reached(self) -> list[int]:
        return [number for number in range(1, BYTES) if self.bytes[number]]
