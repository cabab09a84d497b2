"""The server as a process."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from file_systems import mounts

from .faultlayer import FaultLayer
from .sigv4 import Signer
from .wire import Connection, RawClient, poll

REPOSITORY = Path(__file__).resolve().parents[2]
ACCESS_KEY, SECRET_KEY = "AKIDSLIPWAYTESTS", "test/secret+key=0123456789abcdefghij"
KEYS = {"SLIPWAY_ROOT_ACCESS_KEY": ACCESS_KEY, "SLIPWAY_ROOT_SECRET_KEY": SECRET_KEY}
NOBODY = 65534
# Buckets are hosts below this name too, on the server that most tests share.
DOMAIN = "s3.slipway.test"
START_SECONDS = float(os.environ.get("SLIPWAY_START_SECONDS", "20"))
# Records are in files, in this directory beside those that they are of, where the environment asks
# for that.
RECORDS = ".slipway,records"
# What a file is called that was removed through FUSE while it was open.
LINGERING = re.compile(r"\.fuse_hidden[0-9a-f]{16}")
# What gives a new bucket a device of its own, if there is such a program (file_systems/makers).
MAKER = os.environ.get("SLIPWAY_BUCKET_MAKER")
SIDECARS = os.environ.get("SLIPWAY_METADATA") == "sidecar"


def binary() -> Path:
    """The program under test; `SLIPWAY_BINARY` names another."""
    path = Path(os.environ.get("SLIPWAY_BINARY") or REPOSITORY / "target" / "debug" / "slipway")
    assert path.exists(), f"{path} does not exist: build it with `cargo build`, or run ./test"
    return path


def acting_as(user: tuple[int, int] | None) -> tuple[list[str], dict[str, str]]:
    """Options and environment of a server that acts as this user for root's key; its own, if None."""
    if user is None:
        return [], KEYS
    uid, gid = map(str, user)
    return ["--impersonate"], {**KEYS, "SLIPWAY_ROOT_UID": uid, "SLIPWAY_ROOT_GID": gid}


def handing_over(descriptors: Sequence[int], names: Sequence[str]) -> list[str]:
    """What starts a program with these descriptors, as systemd would (sd_listen_fds(3)); without names if
    none has one."""
    moves = " ".join(f"{3 + place}<&{descriptor}-" for place, descriptor in enumerate(descriptors))
    variables = f"LISTEN_PID=$$ LISTEN_FDS={len(descriptors)}"
    if any(names):
        variables += f" LISTEN_FDNAMES={':'.join(names)}"
    # dash knows no descriptors beyond 9.
    return ["bash", "-c", f'exec {moves}; {variables} exec "$@"', "bash"]


class StartFailed(Exception):
    """The server ended before it listened. The message is what it said."""


class Server:
    """`slipway serve` on a directory, from start to stop."""

    def __init__(
        self,
        tree: Path | str,
        *options: str,
        env: Mapping[str, str] | None = None,
        listen: Sequence[str] = ("127.0.0.1:0",),
        sockets: Sequence[tuple[int, str]] | None = None,
        as_nobody: bool = False,
        within: Sequence[str] = (),
        log: Path,
        program: Path | None = None,
        faults: FaultLayer | None = None,
    ) -> None:
        """`env` replaces the tests' own keys; an empty one starts the server without any. `sockets` are
        descriptors and their names, handed over as a service manager does. `within` is a command that becomes the
        server, such as unshare(1). `faults` gets to see its system calls."""
        self.tree = Path(tree)
        self.log_file = log
        command = [str(program or binary()), "serve"]
        for address in listen:
            command += ["--listen", address]
        command += [*options, str(tree)]
        if as_nobody:
            command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        command = [*within, *command]
        handed: list[int] = []
        if sockets is not None:
            handed = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 100) for descriptor, _ in sockets]
            command = [*handing_over(handed, [name for _, name in sockets]), *command]
        if faults:
            command = faults.wrap(command)
        # LLVM_PROFILE_FILE lets a coverage build be tested.
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LLVM_PROFILE_FILE", "TMPDIR", "SLIPWAY_METADATA")
            if name in os.environ
        }
        self.lines: list[str] = []
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**kept, **(KEYS if env is None else env)},
                pass_fds=(*(faults.inherited if faults else ()), *handed),
            )
        for descriptor in handed:
            os.close(descriptor)
        if faults:
            faults.watch(self.process.pid)
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        try:
            self.endpoints = self._wait_until_listening()
        except BaseException:
            self.kill()
            raise

    def _read_output(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def _wait_until_listening(self) -> list[str]:
        deadline = time.monotonic() + START_SECONDS
        while True:
            for line in list(self.lines):
                if found := re.match(r"\s+endpoint\s+(.*)", line):
                    return found[1].split()
            if self.process.poll() is not None:
                self._reader.join(5)
                raise StartFailed(f"exit status {self.process.returncode}\n{self.output}\n{self.log}")
            assert time.monotonic() < deadline, (
                f"not listening after {START_SECONDS} s\n{self.output}\n{self.log}"
            )
            time.sleep(0.005)

    @property
    def output(self) -> str:
        """What it printed."""
        return "\n".join(self.lines)

    @property
    def account(self) -> str:
        """The id of the account that it serves for."""
        return next(line.split()[1] for line in list(self.lines) if line.startswith("  account "))

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def endpoint(self) -> str:
        """The URL of its first TCP listener."""
        return next(e for e in self.endpoints if not e.startswith("unix:"))

    @property
    def operations(self) -> str:
        """Where its --ops-listen is: a URL, or unix:PATH."""
        return next(line.split()[1] for line in list(self.lines) if line.startswith("  operations "))

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.endpoint.partition("://")[2].rpartition(":")
        return host, int(port)

    @property
    def raw(self) -> RawClient:
        return RawClient(self.address, Signer(ACCESS_KEY, SECRET_KEY))

    def connect(self) -> Connection:
        return Connection(self.address)

    def path(self, bucket: str, key: str = "") -> Path:
        """The file of an object with a plain key."""
        return self.tree / bucket / key

    def status_kib(self, field: str) -> int:
        """A field of /proc/PID/status such as VmHWM, in KiB."""
        found = re.search(
            rf"^{field}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE
        )
        assert found, field
        return int(found[1])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 15) -> int:
        """Its exit status, once it has ended."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait(40)
        finally:
            self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        if not self._reader.is_alive():
            self.process.stdout.close()


@contextmanager
def first_start_on_a_terminal(tree: Path) -> Iterator[str]:
    """What a first start shows to who sits at a terminal. The server serves meanwhile."""
    terminal, end = pty.openpty()
    command = [binary(), "serve", "--listen", "127.0.0.1:0", tree]
    process = subprocess.Popen(
        command, stdout=end, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env={}
    )
    os.close(end)
    try:
        shown = b""
        while b"s3 ls" not in shown:
            shown += os.read(terminal, 4096)
        yield shown.decode().replace("\r", "")
    finally:
        process.terminate()
        process.wait(20)
        os.close(terminal)


def by_other_mount(tree: Path) -> Path:
    """The same directory by another mount, if `SLIPWAY_TWO_MOUNTS=FIRST:SECOND` tells of two."""
    first, _, second = os.environ.get("SLIPWAY_TWO_MOUNTS", "").partition(":")
    return Path(second) / tree.relative_to(first) if second and tree.is_relative_to(first) else tree


def staging_files(bucket: Path) -> list[str]:
    """What lies in a bucket's staging area, but for what libfuse keeps of files that were removed while they were open."""
    staging = bucket / ".slipway" / "staging"
    names = os.listdir(staging) if staging.is_dir() else []
    return sorted(name for name in names if not LINGERING.fullmatch(name))


def assert_nothing_staged(bucket: Path) -> None:
    """Nothing of a write that failed or was given up is left, or only for a moment."""
    try:
        poll(lambda: not staging_files(bucket), 5)
    except AssertionError:
        staging = bucket / ".slipway" / "staging"
        # Notes of directories are links.
        left = [os.readlink(path) if path.is_symlink() else path.name for path in staging.iterdir()]
        raise AssertionError(f"left in staging: {left}") from None


def objects_on_disk(bucket: Path) -> list[str]:
    """All files of a bucket's tree but the server's own, as relative paths. What FUSE keeps of a file that was removed while it was open
    is none: libfuse leaves some for good."""
    found = []
    for directory, names, files in os.walk(bucket):
        if Path(directory) == bucket and ".slipway" in names:
            names.remove(".slipway")
        if RECORDS in names:
            names.remove(RECORDS)
        files = [name for name in files if not LINGERING.fullmatch(name)]
        found += [str((Path(directory) / name).relative_to(bucket)) for name in files]
    return sorted(found)


def remove_tree(path: Path) -> None:
    """Python's own rmtree gives up on trees as deep as some keys are. Unmounts buckets that are mounts."""
    if MAKER:
        mounts.unmount_below(path)
        mounts.unmount(path)
    removed = ["rm", "-rf", "--", path]
    # On FUSE, a file that was removed while it was open has a name until its last closing arrives
    # there, which may be after the end of the process.
    for _ in range(50):
        if not subprocess.run(removed, capture_output=True).returncode:
            return
        time.sleep(0.1)
    subprocess.run(removed, check=True)
