"""A User-Mode Linux on an image file, whose power can be cut."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from support.server import binary
from support.wire import poll

KERNEL = "linux.uml"
GUEST = Path(__file__).with_name("guest.py")
IMAGE_BYTES = {"ext4": 600 << 20, "xfs": 600 << 20}


def make_image(path: Path, file_system: str) -> None:
    """A sparse image with an empty file system. A new file: a loop device that is not gone yet would
    be found to be this one's, with what it remembers of the old."""
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES[file_system])
    quiet = {"ext4": ["-q", "-F", "-E", "lazy_itable_init=1"], "xfs": ["-q", "-f"]}[file_system]
    subprocess.run([f"mkfs.{file_system}", *quiet, str(path)], check=True, env=with_sbin())


def with_sbin() -> dict[str, str]:
    return {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


class Machine:
    """Runs `guest.py` until `cut`."""

    def __init__(
        self,
        image: Path,
        file_system: str,
        seed: int,
        workers: int,
        durability: str = "full",
        log: tuple[Path, int] | None = None,
    ) -> None:
        """With a `log`, each worker stops after so many requests, and all that reaches the disk is written
        down."""
        disks = [f"ubd0={image}"] + ([f"ubd1={log[0]}"] if log else [])
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
        guest = [str(GUEST), str(seed), str(workers), file_system, durability, str(binary().resolve())]
        guest += [str(log[1] if log else 0)]
        command = [
            KERNEL,
            *disks,
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "mem=640M",
            "quiet",
        ]
        command += ["con=null", "con0=null,fd:1", f"init={python}", "--", *guest]
        # UML keeps its guest's memory in a file, which is much faster in memory.
        memory = {"TMPDIR": "/dev/shm"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"PATH": with_sbin()["PATH"], "HOME": "/", **memory},
        )
        # What each worker has been acknowledged, and whatever went wrong.
        self.done: dict[int, int] = {}
        self.has_bucket = self.has_ended = False
        self.errors: list[str] = []
        self.console: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            line = line.decode(errors="replace").rstrip()
            _, marker, told = line.partition("@@ ")
            self.console.append(line)
            if not marker:
                continue
            word, _, rest = told.partition(" ")
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
        poll(lambda: self.has_bucket or self.errors or self.process.poll() is not None, 60)
        assert self.has_bucket, "\n".join(self.console[-40:])

    def wait_for_end(self) -> None:
        poll(lambda: self.has_ended or self.errors or self.process.poll() is not None, 600)
        assert self.has_ended and not self.errors, "\n".join(self.console[-40:])

    def cut(self) -> None:
        """Kills the virtual machine with all its processes, and reads what it said until then."""
        session = self.process.pid
        deadline = time.monotonic() + 20
        while members := processes_of(session):
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            assert time.monotonic() < deadline, members
            time.sleep(0.005)
        self.process.wait()
        self._reader.join(20)


def processes_of(session: int) -> list[int]:
    """The living processes of a session that we started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(entry))
    return found


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
