"""Gateways of one tree as if each had a machine: a network namespace, a share of the CPU, HAProxy before them.

All that is made here has `slipway-PID` (the script's) in its name and is removed when the lab is left. Needs root.
"""

import contextlib
import csv
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from common import ACCESS_KEY, ROOT, SECRET_KEY, cpu_seconds, environment

HAPROXY_EXAMPLE = ROOT / "packaging/proxies/haproxy.cfg"
# As in the example: each gateway has an address, all have the same ports.
PORT, OPERATIONS_PORT = 9000, 9090
# The kernel takes no quota below a millisecond.
PERIOD_US, LEAST_QUOTA_US = 50_000, 2_000
IMAGE_BYTES = 8 << 30
# Else the kernel writes the tables later, while something is measured.
MKFS = {"ext4": ["-E", "lazy_itable_init=0,lazy_journal_init=0"]}
START_SECONDS, STOP_SECONDS, RUN_SECONDS = 20, 40, 60
# What writes gigabytes out.
DISK_SECONDS = 1800


class Unmeasurable(Exception):
    """What keeps the script from measuring, for its user."""


def run(*command: str | os.PathLike, seconds: float = RUN_SECONDS) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise Unmeasurable(f"{' '.join(map(str, command))}: no end within {seconds:g} s") from late
    if done.returncode:
        raise Unmeasurable(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def poll(what: str, ready, seconds: float = START_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise Unmeasurable(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)


def stop(process: subprocess.Popen, number: int = signal.SIGTERM) -> None:
    """Ends a process of ours for certain."""
    if process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()


class Shares:
    """CPU shares by control groups (version 2 or 1); where neither can be made, a processor for each process in turn."""

    def __init__(self, name: str) -> None:
        self.name, self.top = name, []
        # Processes that have a share, by which they get processors in turn.
        self.given = 0
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        v2 = [pathlib.Path(of[1]) for of in mounts if of[2] == "cgroup2"]
        v1 = [pathlib.Path(of[1]) for of in mounts if of[2] == "cgroup" and "cpu" in of[3].split(",")]
        self.kind = "none"
        for kind, places in (("cgroup v2", v2), ("cgroup v1", v1)):
            for place in places:
                with contextlib.suppress(OSError):
                    self._make(kind, place)
                    self.kind = kind
                    return

    def _make(self, kind: str, place: pathlib.Path) -> None:
        if kind == "cgroup v2":
            if "cpu" not in (place / "cgroup.controllers").read_text().split():
                raise OSError("no cpu controller")
            if "cpu" not in (place / "cgroup.subtree_control").read_text().split():
                (place / "cgroup.subtree_control").write_text("+cpu")
        top = place / self.name
        top.mkdir()
        self.top.append(top)
        try:
            if kind == "cgroup v2":
                (top / "cgroup.subtree_control").write_text("+cpu")
            elif not (top / "cpu.cfs_quota_us").exists():
                raise OSError("no quota")
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Once all processes in them have ended."""
        for top in self.top:
            for group in (*(path for path in top.iterdir() if path.is_dir()), top):
                for _ in range(100):
                    try:
                        group.rmdir()
                        break
                    except OSError:
                        time.sleep(0.05)
                else:
                    print(f"{group} can't be removed", file=sys.stderr)
        self.top = []

    def group(self, name: str, share: float | None) -> "Share":
        self.given += 1
        return Share(self, name, share)


class Share:
    """What a process may use of the machine, in processors; None for as much as there is."""

    def __init__(self, shares: Shares, name: str, share: float | None) -> None:
        self.kind, self.directory = shares.kind, None
        self.processor = (shares.given - 1) % os.cpu_count()
        if shares.top:
            self.directory = shares.top[0] / name
            self.directory.mkdir(exist_ok=True)
            self.set(share)

    def set(self, share: float | None) -> None:
        period = PERIOD_US if share is None else min(max(PERIOD_US, round(LEAST_QUOTA_US / share)), 1_000_000)
        if self.kind == "cgroup v2":
            quota = "max" if share is None else f"{share * period:.0f}"
            (self.directory / "cpu.max").write_text(f"{quota} {period}")
        elif self.kind == "cgroup v1":
            (self.directory / "cpu.cfs_quota_us").write_text("-1")
            (self.directory / "cpu.cfs_period_us").write_text(str(period))
            (self.directory / "cpu.cfs_quota_us").write_text(f"{-1 if share is None else share * period:.0f}")

    def enter(self) -> None:
        """In the process that is to have it, before it becomes another program."""
        if self.directory:
            (self.directory / "cgroup.procs").write_text("0")
        else:
            os.sched_setaffinity(0, {self.processor})


class Lab:
    """A bridge, a network namespace for each gateway, and what runs there."""

    def __init__(self, binary: pathlib.Path, tree: pathlib.Path, work: pathlib.Path) -> None:
        self.binary, self.tree, self.work = binary, tree, work
        self.name = f"slipway-{os.getpid()}"
        self.bridge = f"slw{os.getpid()}"
        self.gateways: dict[int, Gateway] = {}
        self.network, self.stack = "", contextlib.ExitStack()

    def __enter__(self) -> "Lab":
        with contextlib.ExitStack() as undo:
            self.shares = Shares(self.name)
            undo.callback(self.shares.close)
            run("ip", "link", "add", self.bridge, "type", "bridge")
            undo.callback(run, "ip", "link", "del", self.bridge)
            # Two of these scripts are not to find the same network free.
            one_at_a_time = os.open("/run", os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
                self.network = free_network()
                run("ip", "address", "add", f"{self.network}.254/24", "dev", self.bridge)
            finally:
                os.close(one_at_a_time)
            run("ip", "link", "set", self.bridge, "up")
            self.stack = undo.pop_all()
        return self

    def __exit__(self, *_) -> None:
        for number in list(self.gateways):
            with contextlib.suppress(Exception):
                self.remove(number)
        self.stack.close()

    def namespace(self, number: int) -> str:
        """The name of a gateway's network namespace, which is made."""
        name, outside = f"{self.name}-{number}", f"slw{os.getpid()}-{number}"
        if pathlib.Path("/run/netns", name).exists():
            return name
        run("ip", "netns", "add", name)
        self.stack.callback(run, "ip", "netns", "del", name)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        # The kernel removes a namespace, and the veth in it, some time after its last process;
        # not before the next run.
        self.stack.callback(subprocess.run, ["ip", "link", "del", outside], capture_output=True, check=False)
        run("ip", "link", "set", outside, "master", self.bridge, "up")
        for words in (
            f"address add {self.address(number)}/24 dev eth0",
            "link set eth0 up",
            "link set lo up",
        ):
            run("ip", "-n", name, *words.split())
        return name

    def address(self, number: int) -> str:
        return f"{self.network}.{number}"

    def add(self, number: int, durability: str, share: float | None, *more: str) -> "Gateway":
        gateway = Gateway(self, number, durability, share, more)
        self.gateways[number] = gateway
        gateway.wait()
        return gateway

    def remove(self, number: int) -> None:
        self.gateways.pop(number).stop()

    def command(self, name: str, share: float | None, command: list, **more) -> subprocess.Popen:
        """A process with a share of its own. Ctrl-C is this script's alone: it ends the others in their order."""
        group = self.shares.group(name, share)
        return subprocess.Popen(command, preexec_fn=group.enter, start_new_session=True, **more)


def free_network() -> str:
    """The first three numbers of a private network that nobody here uses."""
    taken = run("ip", "-4", "route", "show", "table", "all") + run("ip", "-4", "address")
    for number in range(200, 250):
        if f"10.213.{number}." not in taken:
            return f"10.213.{number}"
    raise Unmeasurable("10.213.200.0 to 10.213.249.0 are all in use")


class Gateway:
    def __init__(
        self, lab: Lab, number: int, durability: str, share: float | None, more: tuple[str, ...]
    ) -> None:
        self.lab, self.address = lab, lab.address(number)
        command = ["nsenter", f"--net=/run/netns/{lab.namespace(number)}", lab.binary, "serve", lab.tree]
        command += ["--listen", f"{self.address}:{PORT}", "--ops-listen", f"{self.address}:{OPERATIONS_PORT}"]
        command += ["--durability", durability, "--client-address", "x-forwarded-for"]
        command += ["--trusted-proxy", f"{lab.network}.254", *more]
        env = dict(environment(), SLIPWAY_ROOT_ACCESS_KEY=ACCESS_KEY, SLIPWAY_ROOT_SECRET_KEY=SECRET_KEY)
        self.log = lab.work / f"gateway{number}.log"
        self.share = lab.shares.group(f"gateway{number}", share)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, env=env, stdout=log, stderr=log, preexec_fn=self.share.enter, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """nsenter has become the gateway."""
        return self.process.pid

    def wait(self) -> None:
        def ready() -> bool:
            if self.process.poll() is not None:
                raise Unmeasurable(f"a gateway did not start:\n{self.log.read_text()[-2000:]}")
            url = f"http://{self.address}:{OPERATIONS_PORT}/-/ready"
            with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=2):
                return True
            return False

        poll("a gateway's start", ready)

    def stop(self) -> None:
        stop(self.process)


class HAProxy:
    """packaging/proxies/haproxy.cfg before the gateways 1 to `count`, with other addresses, on the bridge."""

    def __init__(self, lab: Lab, count: int, share: float | None) -> None:
        self.host, self.socket = f"{lab.network}.254:8000", lab.work / "admin.sock"
        text = HAPROXY_EXAMPLE.read_text()
        servers = re.findall(r"^    server gateway\d+ 10\.0\.0\.\d+:9000\n", text, re.M)
        ours = "".join(f"    server gateway{n} {lab.address(n)}:{PORT}\n" for n in range(1, count + 1))
        changes = [
            ("".join(servers), ours),
            ("bind :80\n", f"bind {self.host}\n"),
            # No TLS in this lab: it would cost HAProxy as much as all else.
            ("    bind :443 ssl crt /etc/haproxy/s3.pem alpn http/1.1\n", ""),
            ("/run/haproxy/admin.sock", str(self.socket)),
        ]
        for old, new in changes:
            if not old or old not in text:
                raise Unmeasurable(f"{HAPROXY_EXAMPLE} has no {old!r}")
            text = text.replace(old, new)
        config = lab.work / "haproxy.cfg"
        config.write_text(text)
        binary = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        self.log = (lab.work / "haproxy.log").open("ab")
        self.process = lab.command(
            "haproxy",
            share,
            [binary, "-db", "-f", config],
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
        )
        try:
            poll("HAProxy's start", self._answers)
        except BaseException:
            self.stop()
            raise

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise Unmeasurable(f"HAProxy did not start: {pathlib.Path(self.log.name).read_text()[-2000:]}")
        with contextlib.suppress(OSError):
            return bool(self.up())
        return False

    def up(self) -> set[str]:
        """The gateways that are given requests."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(str(self.socket))
            control.sendall(b"show stat\n")
            text = b"".join(iter(lambda: control.recv(1 << 16), b"")).decode().lstrip("# ")
        rows = csv.DictReader(text.splitlines())
        return {
            row["svname"]
            for row in rows
            if row["svname"].startswith("gateway") and row["status"].startswith("UP")
        }

    def wait(self, numbers) -> None:
        """Until its health checks know who is there."""
        expected = {f"gateway{number}" for number in numbers}
        poll(f"HAProxy's view of {', '.join(sorted(expected))}", lambda: self.up() == expected)

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def stop(self) -> None:
        stop(self.process)
        self.log.close()


def profile(kind: str, volumes: int) -> list[str]:
    """Of btrfs, which else has its metadata twice on one volume, and once on a stripe."""
    if kind != "btrfs":
        return []
    of = "raid0" if volumes > 1 else "single"
    return ["-d", of, "-m", of]


@contextlib.contextmanager
def image(
    kind: str,
    work: pathlib.Path,
    size: int = IMAGE_BYTES,
    volumes: int = 1,
    *,
    options: list[str] | None = None,
) -> Iterator[pathlib.Path]:
    """Where a file system of so many bytes is mounted: on one file, or (btrfs) striped over several.

    `options` of mkfs are in place of those that keep the kernel from writing by itself.
    """
    place = work / "mount"
    place.mkdir()
    with contextlib.ExitStack() as undo:
        devices = []
        for number in range(volumes):
            file = work / f"image{number}"
            with open(file, "wb") as made:
                made.truncate(size // volumes)
            undo.callback(file.unlink)
            devices.append(run("losetup", "--find", "--show", file).strip())
            undo.callback(run, "losetup", "--detach", devices[-1])
        given = MKFS.get(kind, []) if options is None else options
        run(f"mkfs.{kind}", "-q", *given, *profile(kind, volumes), *devices, seconds=DISK_SECONDS)
        others = ["-o", ",".join(f"device={device}" for device in devices)] if volumes > 1 else []
        run("mount", *others, devices[0], place)
        undo.callback(run, "umount", place, seconds=DISK_SECONDS)
        yield place


def remounted(place: pathlib.Path) -> None:
    """So that its file system has nothing in memory; that the image is in it, it does not know."""
    device = run("findmnt", "--noheadings", "--output", "SOURCE", place).strip()
    run("umount", place, seconds=DISK_SECONDS)
    run("mount", device, place)
