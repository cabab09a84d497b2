"""Makes the n-th system call of a server fail, or be the last thing it ever tried.

The server makes its system calls itself, so that no preloaded library could stand in between. A seccomp
filter in front of it hands those that concern files to this process, which lets them pass, answers for the
kernel, or kills the server while the call waits. All threads share the filter, and calls come one at a time:
"the n-th" means the same to all of them.

The file is also a program: `faultlayer.py SOCKET COMMAND...` installs the filter, sends its descriptor, and
becomes COMMAND."""

import array
import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import re
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

# Numbers of x86-64.
CHANGES = {
    "pwrite64": 18, "pwritev": 296, "pwritev2": 328, "copy_file_range": 326, "fsync": 74, "fdatasync": 75,
    "sync_file_range": 277, "syncfs": 306, "truncate": 76, "ftruncate": 77, "fallocate": 285, "rename": 82,
    "renameat": 264, "renameat2": 316, "link": 86, "linkat": 265, "symlinkat": 266, "unlink": 87, "unlinkat": 263,
    "mkdir": 83, "mkdirat": 258, "rmdir": 84, "mknodat": 259, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "fchmod": 91, "fchmodat": 268, "fchown": 93,
    "fchownat": 260, "utimensat": 280, "flock": 73, "ioctl": 16,
}  # fmt: skip
READS = {
    "newfstatat": 262, "fstat": 5, "statx": 332, "fstatfs": 138, "getxattr": 191, "lgetxattr": 192, "fgetxattr": 193,
    "flistxattr": 196, "getdents64": 217, "pread64": 17, "preadv": 295, "preadv2": 327, "readlinkat": 267, "faccessat2": 439,
}  # fmt: skip
# Either, which their flags tell.
OPENS = {"open": 2, "openat": 257, "openat2": 437}
NAMES = {number: name for name, number in (CHANGES | READS | OPENS).items()}
# Which argument is the name, for those that have one that tells more than their descriptor.
NAMED = {
    "open": 0, "openat": 1, "openat2": 1, "mkdirat": 1, "unlinkat": 1, "linkat": 3, "renameat": 3, "renameat2": 3,
    "newfstatat": 1, "statx": 1, "lgetxattr": 0, "symlinkat": 2, "readlinkat": 1, "faccessat2": 1,
}  # fmt: skip

KILL, SHORT = "kill", "short"
CLONE_RANGES = (0x4004_9409, 0x4020_940D)
CREATES = os.O_CREAT | os.O_TMPFILE & ~os.O_DIRECTORY

_RECEIVE, _SEND = 0xC050_2100, 0xC018_2101
_CONTINUE = 1


def is_supported() -> bool:
    return platform.machine() == "x86_64"


@dataclass(frozen=True)
class Call:
    name: str
    # What it is about, with what is random left out.
    about: str
    changes: bool

    def __str__(self) -> str:
        return f"{self.name} {self.about}"


class FaultLayer:
    """Stands between one server and the kernel. Give it to `Server`."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self.inherited = (theirs.detach(),)
        self._lock = threading.Lock()
        self._armed = False
        self._fault: str | int | Callable[[], None] = KILL
        self._at, self._reads = 0, False
        self._only: Collection[str] | None = None
        self._about = ""
        self._since: str | None = None
        self._lasting = False
        # Once this thread is gone, all calls fail, and none is counted.
        self._failure: Exception | None = None
        # What was called since it was armed, and which of these met the fault.
        self.calls: list[Call] = []
        self.hit: Call | None = None

    def wrap(self, command: list[str]) -> list[str]:
        """A command line that runs `command` behind the filter."""
        return [sys.executable, "-I", "-S", __file__, str(self.inherited[0]), *command]

    def watch(self, pid: int) -> None:
        """Answers the calls of this process from now on, until it ends."""
        os.close(self.inherited[0])
        self._pid = pid
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def arm(
        self,
        fault: str | int | Callable[[], None],
        at: int,
        reads: bool = False,
        only: Collection[str] | None = None,
        about: str = "",
        since: str | None = None,
        lasting: bool = False,
    ) -> None:
        """Lets the `at`-th call from now on meet the fault: KILL, SHORT, an errno, or what is done before the call, as
        by another program between two calls. With `reads` those calls
        count that change nothing, else those that do; with `only`, just those of these names; with `about`, those
        about what begins so; with `since`, those after the first that opens this path. If it is `lasting`, all that
        follow meet it too."""
        with self._lock:
            self.calls, self.hit = [], None
            self._fault, self._at, self._reads, self._armed = fault, at, reads, True
            self._only, self._about, self._since, self._lasting = only, about, since, lasting

    def disarm(self) -> Call | None:
        """The call that met the fault, if there were so many."""
        with self._lock:
            self._armed = False
            if self._failure:
                raise self._failure
            assert self._since is None, f"{self._since} was not opened"
            return self.hit

    def _counts(self, call: Call) -> bool:
        of_these = self._only is None or call.name in self._only
        return call.changes != self._reads and of_these and call.about.startswith(self._about)

    def _serve(self) -> None:
        try:
            _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        except OSError:
            descriptors = []
        self._ours.close()
        if not descriptors:
            return
        listener = descriptors[0]
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        with contextlib.closing(os.fdopen(listener)):
            while not any(event & select.POLLHUP for _, event in poll.poll()):
                note = bytearray(80)
                # ENOENT: the thread was killed meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    fcntl.ioctl(listener, _RECEIVE, note)
                    try:
                        self._answer(listener, note)
                    except FileNotFoundError:
                        raise
                    except Exception as error:
                        self._failure = error
                        raise

    def _answer(self, listener: int, note: bytearray) -> None:
        identity, thread, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", note)
        value, error, flags = 0, 0, _CONTINUE
        with self._lock:
            if self._since is not None:
                if number in OPENS.values() and text(thread, arguments[NAMED[NAMES[number]]]) == self._since:
                    self._since = None
            elif self._armed:
                try:
                    call = describe(thread, NAMES[number], arguments)
                except OSError as unknown:
                    call = Call(NAMES[number], f"({unknown})", NAMES[number] in CHANGES)
                if call and self._counts(call) and (self._lasting or not self.hit):
                    self.calls.append(call)
                    if len(self.calls) >= self._at:
                        self.hit = call
                        if self._fault == KILL:
                            os.kill(self._pid, signal.SIGKILL)
                            return
                        if self._fault == SHORT:
                            value = write_half(self._pid, thread, call.name, arguments)
                            flags = 0 if value else _CONTINUE
                        elif callable(self._fault):
                            self._fault()
                        else:
                            error, flags = -int(self._fault), 0
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", identity, value, error, flags))


def memory(thread: int, address: int, length: int) -> bytes:
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as file:
        found = os.pread(file.fileno(), length, address)
    if length and not found:
        raise OSError(errno.EFAULT, hex(address))
    return found


def text(thread: int, address: int) -> str:
    # Page by page, since the one after the last may not be there.
    found = b""
    while b"\0" not in found:
        found += memory(thread, address + len(found), 4096 - (address + len(found)) % 4096)
    return found.split(b"\0")[0].decode(errors="replace")


def describe(thread: int, name: str, arguments: list[int]) -> Call | None:
    """What a call is about; None for those that are none of the tree's."""
    changes = name in CHANGES
    if name == "ioctl" and arguments[1] not in CLONE_RANGES:
        return None
    if name == "open":
        changes = bool(arguments[1] & CREATES)
    if name == "openat":
        changes = bool(arguments[2] & CREATES)
    if name == "openat2":
        changes = bool(struct.unpack("Q", memory(thread, arguments[2], 8))[0] & CREATES)
    about = ""
    if name in NAMED:
        about = text(thread, arguments[NAMED[name]])
    if name != "lgetxattr" and about in ("", "."):
        about = os.readlink(f"/proc/{thread}/fd/{arguments[0]}")
        about = "nameless file" if re.search(r"/#\d+( \(deleted\))?$", about) else os.path.basename(about)
    if about.startswith(("/proc/self/task", "/proc/self/maps", "/sys/", "/etc/", "/dev/")):
        return None
    about = re.sub(r"^/proc/self/fd/\d+", "", about)
    if name == "openat" and arguments[2] & CREATES == os.O_TMPFILE & ~os.O_DIRECTORY:
        about = f"nameless file in {about}"
    return Call(name, re.sub(r"[0-9a-f]{12,}", "*", about)[:60], changes)


def write_half(process: int, thread: int, name: str, arguments: list[int]) -> int:
    """Does half of a write, as the kernel may, and tells how much that is; 0 if it is no write."""
    if name == "pwrite64":
        data = memory(thread, arguments[1], arguments[2])
    elif name in ("pwritev", "pwritev2"):
        vectors = memory(thread, arguments[1], 16 * arguments[2])
        data = b"".join(memory(thread, at, length) for at, length in struct.iter_unpack("QQ", vectors))
    else:
        return 0
    if len(data) < 2:
        return 0
    with contextlib.closing(os.fdopen(os.pidfd_open(process))) as pidfd:
        descriptor = _syscall(438, pidfd.fileno(), arguments[0], 0)
    try:
        return os.pwrite(descriptor, data[: len(data) // 2], arguments[3])
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: int | ctypes.Array | object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno()))
    return result


def install_filter() -> int:
    """Has all calls of `NAMES` handed to the descriptor that is returned."""

    def statement(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, true, false, value)

    load, equal, answer = 0x20, 0x15, 0x06
    allow, notify = 0x7FFF_0000, 0x7FC0_0000
    numbers = sorted(NAMES)
    program = [
        statement(load, 4),
        statement(equal, 0xC000_003E, 1, 0),
        statement(answer, allow),
        statement(load, 0),
    ]
    program += [statement(equal, number, len(numbers) - place, 0) for place, number in enumerate(numbers)]
    program += [statement(answer, allow), statement(answer, notify)]
    code = b"".join(program)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    no_new_privileges, set_filter, new_listener = 38, 1, 8
    _syscall(157, no_new_privileges, 1, 0, 0, 0)  # prctl
    argument = Program(len(program), code)
    return _syscall(317, set_filter, new_listener, ctypes.byref(argument))  # seccomp


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    # Whatever this calls itself now waits until the other side has the descriptor.
    listener = install_filter()
    channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    channel.close()
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
