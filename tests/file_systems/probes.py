"""What a file system can do, found out by trying."""

import ctypes
import errno
import fcntl
import os
import shutil
import time
from pathlib import Path

AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
NOREPLACE, EXCHANGE = 1, 2
FICLONE = 0x40049409
KEEP_SIZE, PUNCH_HOLE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def _answer(work) -> str:
    """ "yes", or the error's name."""
    try:
        result = work()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "yes" if result is None else str(result)


def _call(name: str, *arguments) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def _file(path: Path, content: bytes = b"x") -> Path:
    path.write_bytes(content)
    return path


def xattr_bytes(directory: Path) -> str:
    """The longest value that one attribute takes."""
    path = _file(directory / "xattr")
    low, high, refusal = 0, 65537, "the kernel's own limit"
    while high - low > 1:
        middle = (low + high) // 2
        refusal_here = _answer(lambda size=middle: os.setxattr(path, "user.probe", b"x" * size))
        if refusal_here == "yes":
            low = middle
            os.removexattr(path, "user.probe")
        else:
            high, refusal = middle, refusal_here
    return f"{low} ({refusal})"


def unnamed(directory: Path) -> str:
    def work() -> None:
        fd = os.open(directory, os.O_TMPFILE | os.O_RDWR)
        try:
            old, new = f"/proc/self/fd/{fd}".encode(), os.fsencode(directory / "unnamed")
            _call("linkat", AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW)
        finally:
            os.close(fd)

    return _answer(work)


def link(directory: Path) -> str:
    _file(directory / "one")
    return _answer(lambda: os.link(directory / "one", directory / "two"))


def _renameat2(directory: Path, flags: int) -> str:
    old, new = _file(directory / f"old{flags}"), directory / f"new{flags}"
    if flags == EXCHANGE:
        new.mkdir()
    paths = (AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new))
    return _answer(lambda: _call("renameat2", *paths, flags))


def ficlone(directory: Path) -> str:
    def work() -> None:
        original = _file(directory / "source", b"x" * 65536)
        with open(original) as source, open(directory / "clone", "wb") as clone:
            fcntl.ioctl(clone, FICLONE, source.fileno())

    return _answer(work)


def ctime(directory: Path) -> str:
    """In how many of 200 tries a write that follows a look shows in the ctime, and whether in whole seconds."""
    path = _file(directory / "ctime")
    seen = 0
    with open(path, "r+b", buffering=0) as file:
        for _ in range(200):
            before = os.stat(path).st_ctime_ns
            file.write(b"x")
            seen += os.stat(path).st_ctime_ns != before
    steps = os.stat(path).st_ctime_ns % 1_000_000_000 == 0
    return f"{seen}/200" + (", whole seconds" if steps else "")


def fallocate(directory: Path) -> str:
    def work(mode: int) -> str:
        with open(_file(directory / "allocated", b"x" * 65536), "r+b") as file:
            length = ctypes.c_long(32768)
            return _answer(lambda: _call("fallocate", file.fileno(), mode, ctypes.c_long(0), length))

    reserve, punch = work(KEEP_SIZE), work(KEEP_SIZE | PUNCH_HOLE)
    return reserve if reserve == punch else f"reserve {reserve}, punch {punch}"


def locks(directory: Path, other: Path | None) -> str:
    """Whether `flock` excludes another opener, by the other mount if there is one."""
    path = _file(directory / "lock")
    with open(path, "r+b") as held, open((other or directory) / "lock", "r+b") as wanted:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "hold across mounts" if other else "hold"
    return "do NOT hold"


def case(directory: Path) -> str:
    _file(directory / "name")
    return "does not tell names apart" if (directory / "NAME").exists() else "tells names apart"


def readers_lock(directory: Path) -> str:
    """Whether who only reads may exclude others, which NFS refuses."""

    def work() -> None:
        with open(_file(directory / "read")) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    return _answer(work)


def removed_while_open(directory: Path) -> str:
    """What becomes of the name."""
    (directory / "open").mkdir()
    path = _file(directory / "open" / "file")
    with open(path, "rb") as file:
        path.unlink()
        left = [name.rstrip("0123456789abcdef") for name in os.listdir(path.parent)]
        readable = _answer(lambda: None if file.read() == b"x" else "lost")
    time.sleep(0.1)
    return (f"leaves {left[0]}*" if left else "goes") + ("" if readable == "yes" else f", bytes {readable}")


def table(directory: Path, other: Path | None = None) -> dict[str, str]:
    """All probes, run in a directory of their own. `other` is the same directory by another mount."""
    place = directory / "probes"
    place.mkdir()
    try:
        return {
            "xattr bytes": xattr_bytes(place),
            "O_TMPFILE": unnamed(place),
            "link": link(place),
            "NOREPLACE": _renameat2(place, NOREPLACE),
            "EXCHANGE": _renameat2(place, EXCHANGE),
            "FICLONE": ficlone(place),
            "ctime": ctime(place),
            "fallocate": fallocate(place),
            "flock": locks(place, other / "probes" if other else None),
            "flock of a reader": readers_lock(place),
            "case": case(place),
            "free space": "told" if os.statvfs(place).f_blocks else "not told",
            "removed while open": removed_while_open(place),
        }
    finally:
        shutil.rmtree(place, ignore_errors=True)
