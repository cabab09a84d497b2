"""A virtual machine that serves and writes (`guest.py`), and whose power can be cut."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.server import binary
from support.virtual_machine import VirtualMachine, with_sbin
from support.wire import poll

from .check import Load

GUEST = Path(__file__).with_name("guest.py")
IMAGE_BYTES = {"ext4": 600 << 20, "xfs": 600 << 20}
# It boots in three seconds at rest; on a machine that is busy with much else it took over a minute.
BOOT_SECONDS = 300


def make_image(path: Path, file_system: str) -> None:
    """A sparse image with an empty file system. A new file: a loop device that is not gone yet would
    be found to be this one's, with what it remembers of the old."""
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES[file_system])
    quiet = {"ext4": ["-q", "-F", "-E", "lazy_itable_init=1"], "xfs": ["-q", "-f"]}[file_system]
    subprocess.run([f"mkfs.{file_system}", *quiet, str(path)], check=True, env=with_sbin())


class Machine(VirtualMachine):
    """Runs `guest.py` until `cut`."""

    def __init__(
        self,
        image: Path,
        file_system: str,
        load: Load,
        workers: int,
        durability: str = "full",
        log: tuple[Path, int] | None = None,
    ) -> None:
        """With a `log`, each worker stops after so many requests, and all that reaches the disk is written
        down."""
        # What each worker has been acknowledged, and whatever went wrong.
        self.done: dict[int, int] = {}
        self.has_bucket = self.has_ended = False
        self.errors: list[str] = []
        arguments = [str(load.seed), str(workers), file_system, durability, str(binary().resolve())]
        super().__init__(
            shutil.which("python3", path="/usr/bin:/usr/local/bin"),
            GUEST,
            *arguments,
            str(log[1] if log else 0),
            "impersonate" if load.impersonate else "plain",
            disks=[image, *([log[0]] if log else [])],
            memory="640M",
            hear=self._note,
        )

    def _note(self, word: str, rest: str) -> None:
        if word == "done":
            worker, number = map(int, rest.split())
            self.done[worker] = number
        elif word == "bucket":
            self.has_bucket = True
        elif word == "end":
            self.has_ended = True
        elif word == "error":
            self.errors.append(rest)

    def wait_for_bucket(self) -> None:
        poll(lambda: self.has_bucket or self.errors or self.process.poll() is not None, BOOT_SECONDS)
        assert self.has_bucket, "\n".join(self.console[-40:])

    def wait_for_end(self) -> None:
        poll(lambda: self.has_ended or self.errors or self.process.poll() is not None, 600)
        assert self.has_ended and not self.errors, "\n".join(self.console[-40:])


@contextlib.contextmanager
def mounted(image: Path, file_system: str, at: Path) -> Iterator[Path]:
    """Mounts an image, which recovers its journal."""
    at.mkdir(exist_ok=True)
    options = "loop,nouuid" if file_system == "xfs" else "loop"
    subprocess.run(["mount", "-t", file_system, "-o", options, str(image), str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)
