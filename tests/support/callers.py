"""Whom a server makes its file calls as: the kernel's own word, for each call and name.

The filter of `faultlayer` holds each call; while it waits, /proc tells the ids of its thread and where its descriptors
are. So nothing is inferred from earlier calls."""

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .faultlayer import NAMES, FaultLayer, text

# Which arguments of a call are a directory's descriptor and a name below it; None for the working
# directory. What asks the kernel for rights by an open descriptor alone has no name.
AT, PLAIN = ((0, 1),), ((None, 0),)
BY_NAME = {
    "linkat": ((0, 1), (2, 3)), "renameat": ((0, 1), (2, 3)), "renameat2": ((0, 1), (2, 3)), "symlinkat": ((1, 2),),
    "link": ((None, 0), (None, 1)), "rename": ((None, 0), (None, 1)),
    **dict.fromkeys(("openat", "openat2", "mkdirat", "unlinkat", "mknodat", "fchmodat", "fchownat", "utimensat",
                     "newfstatat", "statx", "readlinkat", "faccessat2"), AT),
    **dict.fromkeys(("open", "truncate", "unlink", "mkdir", "rmdir", "setxattr", "lsetxattr", "removexattr",
                     "lremovexattr", "getxattr", "lgetxattr"), PLAIN),
}  # fmt: skip
BY_DESCRIPTOR = ("fsetxattr", "fgetxattr", "fremovexattr", "fchmod", "fchown")
# Of an open file, without a name, anybody may ask for these.
FREE_OF_DESCRIPTORS = ("statx", "newfstatat", "linkat", "readlinkat")


@dataclass(frozen=True)
class MadeCall:
    """One call, and one of its names."""

    name: str
    path: str
    # Ids of file calls, and supplementary groups.
    uid: int
    gid: int
    groups: tuple[int, ...]


class Callers(FaultLayer):
    """Takes down calls. Give it to `Server` as its faults."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[MadeCall] | None = None
        self._taking = threading.Lock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[list[MadeCall]]:
        """The calls from now on, in a list that grows."""
        with self._taking:
            self._made = made = []
        try:
            yield made
        finally:
            with self._taking:
                self._made = None
            if self._failure:
                raise self._failure

    def _answer(self, listener: int, note: bytearray) -> None:
        identity, thread, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", note)
        with self._taking:
            if self._made is not None and thread:
                self._made += calls_of(thread, NAMES[number], arguments)
        fcntl.ioctl(listener, 0xC018_2101, struct.pack("=QqiI", identity, 0, 0, 1))


def calls_of(thread: int, name: str, arguments: list[int]) -> list[MadeCall]:
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{thread}/status").read_text().splitlines()
        if ":\t" in line
    )
    uid, gid = (int(status[of].split()[3]) for of in ("Uid", "Gid"))
    groups = tuple(map(int, status["Groups"].split()))
    paths = []
    if name in BY_DESCRIPTOR:
        paths.append(where(thread, arguments[0]))
    for directory, at in BY_NAME.get(name, ()):
        given = text(thread, arguments[at]) if arguments[at] else ""
        if given == "" and name in FREE_OF_DESCRIPTORS:
            continue
        paths.append(resolved(thread, None if directory is None else arguments[directory], given))
    return [MadeCall(name, path, uid, gid, groups) for path in paths]


def where(thread: int, descriptor: int) -> str:
    return os.readlink(f"/proc/{thread}/fd/{descriptor & 0xFFFF_FFFF}").removesuffix(" (deleted)")


def resolved(thread: int, directory: int | None, given: str) -> str:
    """The path that a call is about; links in it stay."""
    for own in ("/proc/self/fd/", "/proc/thread-self/fd/"):
        if given.startswith(own):
            number, _, rest = given.removeprefix(own).partition("/")
            return os.path.normpath(os.path.join(where(thread, int(number)), rest))
    if given.startswith("/"):
        return os.path.normpath(given)
    is_here = directory is None or directory & 0xFFFF_FFFF == 0xFFFF_FF9C
    above = os.readlink(f"/proc/{thread}/cwd") if is_here else where(thread, directory)
    return os.path.normpath(os.path.join(above, given))
