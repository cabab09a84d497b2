"""A User-Mode Linux on image files. Its root is this machine's, read only, and its process 1 is a Python program of
ours, which `support.guest` helps."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .guest import MARK

KERNEL = "linux.uml"
# What it does is told in the source.
REGISTERS = Path(__file__).with_name("uml_registers.c")
BUILT = Path(__file__).resolve().parents[2] / "target" / "uml_registers.so"


def with_sbin() -> dict[str, str]:
    return {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


def preload() -> dict[str, str]:
    """The environment in which the kernel runs on processors with registers that it does not know: AMX's."""
    if "amx_tile" not in Path("/proc/cpuinfo").read_text():
        return {}
    if not BUILT.exists() or BUILT.stat().st_mtime < REGISTERS.stat().st_mtime:
        with tempfile.TemporaryDirectory(dir=BUILT.parent) as directory:
            made = Path(directory, BUILT.name)
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, REGISTERS], check=True)
            made.rename(BUILT)
    return {"LD_PRELOAD": str(BUILT)}


class VirtualMachine:
    """Runs a program as process 1, until it ends or `cut`."""

    def __init__(
        self,
        python: str | Path,
        program: Path,
        *arguments: str,
        disks: Sequence[Path],
        memory: str,
        hear: Callable[[str, str], None],
    ) -> None:
        """`disks` are /dev/ubda, /dev/ubdb and so on. `hear` gets the first word and the rest of each line that the
        program told (`guest.tell`)."""
        command = [KERNEL, *(f"ubd{number}={disk}" for number, disk in enumerate(disks))]
        command += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"mem={memory}", "quiet"]
        command += [
            "panic=-1",
            "con=null",
            "con0=null,fd:1",
            f"init={python}",
            "--",
            str(program),
            *arguments,
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # UML keeps its guest's memory in a file, which is much faster in memory.
            env={"PATH": with_sbin()["PATH"], "HOME": "/", "TMPDIR": "/dev/shm", **preload()},
        )
        self.console: list[str] = []
        self._hear = hear
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            line = line.decode(errors="replace").rstrip()
            _, marker, told = line.partition(MARK)
            self.console.append(line)
            if marker:
                word, _, rest = told.partition(" ")
                self._hear(word, rest)

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
