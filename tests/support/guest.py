"""What process 1 of a virtual machine (`support.virtual_machine`) needs. The host's programs are there, but not all
hosts have all of them."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEVICE, MOUNT = "/dev/ubda", "/mnt/disk"
# What the host listens to on the console begins with it.
MARK = "@@ "
_console = threading.Lock()


def tell(line: str) -> None:
    """Tells the host."""
    with _console:
        os.write(1, f"{MARK}{line}\n".encode())


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def insert(module: str) -> None:
    """`insmod`, by a path below the directory of the kernel's modules."""
    path = Path("/usr/lib/uml/modules", os.uname().release, "kernel", f"{module}.ko")
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file:
        if libc.syscall(313, file.fileno(), b"", 0):  # finit_module
            raise OSError(ctypes.get_errno(), str(path))


def _network() -> None:
    """`ip link set lo up`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = 0x1 | 0x8 | 0x40  # UP, LOOPBACK, RUNNING
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", flags))


def boot() -> None:
    """Mounts what a system needs, and makes the directory `MOUNT`."""
    os.environ["PATH"] = PATH
    run("mount", "-t", "proc", "proc", "/proc")
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    if not os.path.exists(DEVICE):
        run("mount", "-t", "devtmpfs", "devtmpfs", "/dev")
    run("mount", "-t", "tmpfs", "tmpfs", "/mnt")
    os.mkdir(MOUNT)
    _network()
