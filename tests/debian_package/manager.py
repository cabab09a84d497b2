"""Does with a unit what systemd would: a systemctl for maintainer scripts, the service as the unit has it.

All that the unit says is either done here or in `NOT_DONE`; what is in neither fails the test. Filters of
system calls and most of the sandbox are systemd's own: `systemd-analyze` looks at them. What may be written
to is done.
"""

import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path

from debian_package.debian import ENVIRONMENT, Debian

UNIT = "usr/lib/systemd/system/slipway.service"
SOCKET = "usr/lib/systemd/system/slipway.socket"
NOT_DONE = """
Description Documentation After Wants WantedBy Restart RestartSec ProtectHome PrivateDevices
ProtectClock ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectProc
ProtectKernelTunables LockPersonality MemoryDenyWriteExecute RestrictAddressFamilies
RestrictNamespaces RestrictRealtime RestrictSUIDSGID RemoveIPC SystemCallArchitectures
SystemCallFilter SystemCallErrorNumber
"""
DIRECTORIES = {"LogsDirectory": "var/log", "RuntimeDirectory": "run"}
SYSTEMCTL = """\
#!/bin/sh
for word; do
    case $word in
        -*) ;;
        # About files alone: systemd's own does it.
        preset | enable | disable | is-enabled | mask | unmask) exec /usr/bin/systemctl.distrib "$@" ;;
        *) break ;;
    esac
done
# All else is asked of the test, one caller at a time.
exec 9>/run/systemctl/lock
flock 9
printf '%s\\n' "$*" >/run/systemctl/request
{ read -r status; cat; } </run/systemctl/answer
exit "$status"
"""
START_SECONDS = 30


class Failed(Exception):
    """The service did not start."""


class Manager:
    """Stands in for systemd in a `Debian`."""

    def __init__(self, debian: Debian, journal: Path) -> None:
        self.debian = debian
        self.journal = journal
        journal.touch()
        self.process: subprocess.Popen | None = None
        # Of each stop.
        self.statuses: list[int] = []
        # What was asked of the service, in order.
        self.asked: list[str] = []
        # What it told of itself, in order.
        self.told: list[str] = []
        # deb-systemd-invoke and others look for this.
        (debian / "run/systemd/system").mkdir(parents=True)
        directory = debian / "run/systemctl"
        directory.mkdir()
        self._request, self._answer = directory / "request", directory / "answer"
        os.mkfifo(self._request)
        os.mkfifo(self._answer)
        debian.run("dpkg-divert", "--local", "--rename", "/usr/bin/systemctl")
        stub = debian / "usr/bin/systemctl"
        stub.write_text(SYSTEMCTL)
        stub.chmod(0o755)
        self._notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notified.bind(str(debian / "run/systemd/notify"))
        os.chmod(debian / "run/systemd/notify", 0o777)
        for work in (self._listen, self._note):
            threading.Thread(target=work, daemon=True).start()

    def _listen(self) -> None:
        while True:
            words = self._request.read_text().split()
            try:
                status, text = self._do([word for word in words if not word.startswith("-")])
            except Exception as error:
                status, text = 1, f"{type(error).__name__}: {error}\n"
            self._answer.write_text(f"{status}\n{text}")

    def _note(self) -> None:
        while True:
            self.told += self._notified.recv(4096).decode().split("\n")

    def _do(self, words: list[str]) -> tuple[int, str]:
        verb, *units = words
        if units == ["slipway.socket"]:
            # Nobody enables it here.
            return (3, "inactive\n") if verb == "is-active" else (0, "")
        if not any(unit.removesuffix(".service") == "slipway" for unit in units):
            return 0, ""
        self.asked.append(verb)
        match verb:
            case "is-active":
                return (0, "active\n") if self.active else (3, "inactive\n")
            case "start":
                self.start()
            case "stop":
                self.stop()
            case "restart" | "try-restart":
                if self.active or verb == "restart":
                    self.stop()
                    self.start()
            case "reload":
                self.reload()
            case _:
                return 1, f"the test knows no systemctl {verb}\n"
        return 0, ""

    @property
    def active(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        """What the service wrote to its journal."""
        return self.journal.read_text()

    def unit(self) -> dict[str, str]:
        """What the unit and its drop-ins say; of what is there more than once, all, a line each."""
        says: dict[str, list[str]] = defaultdict(list)
        drop_ins = sorted((self.debian / "etc/systemd/system/slipway.service.d").glob("*.conf"))
        for path in (self.debian / UNIT, *drop_ins):
            for line in path.read_text().splitlines():
                if line and line[0] not in "#;[":
                    key, _, value = line.partition("=")
                    says[key].append(value)
        return {key: "\n".join(values) for key, values in says.items()}

    def start(self) -> None:
        """As `Type=notify`: until the service says that it is ready."""
        if self.active:
            return
        unit = self.unit()
        self.told.clear()
        with open(self.journal, "ab") as journal:
            self.process = subprocess.Popen(
                ["sh", "-ec", self._script(unit)],
                stdin=subprocess.DEVNULL,
                stdout=journal,
                stderr=journal,
                env=ENVIRONMENT
                | {
                    "NOTIFY_SOCKET": "/run/systemd/notify",
                    "JOURNAL_STREAM": "8:1",
                    "HOME": "/var/lib/slipway",
                },
            )
        deadline = time.monotonic() + START_SECONDS
        while "READY=1" not in self.told:
            if not self.active or time.monotonic() > deadline:
                self.stop()
                raise Failed(f"{self.log}")
            time.sleep(0.01)

    def _script(self, unit: dict[str, str]) -> str:
        """A shell's: mounts, limits, capabilities, user, and then the service in its place."""
        take = unit.pop
        assert (
            take("Type") == "notify"
            and take("NoNewPrivileges") == "yes"
            and take("ProtectSystem") == "strict"
        )
        take("ExecReload")
        user, group = take("User"), take("Group")
        root = str(self.debian.path)
        writable = []
        for path in take("ReadWritePaths", "").split():
            needed = path.removeprefix("-")
            # As systemd does: without "-", what is missing keeps the unit from starting.
            if not path.startswith("-") or (self.debian / needed.lstrip("/")).exists():
                writable.append(needed)
        for key, below in DIRECTORIES.items():
            path = f"/{below}/{take(key)}"
            self.debian.run("install", "-d", "-o", user, "-g", group, "-m", "755", path)
            writable.append(path)
        assert take("PrivateTmp") == "yes"
        capabilities = [
            f"--{kind}=-all,"
            + ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in take(key).split())
            for kind, key in (
                ("bounding-set", "CapabilityBoundingSet"),
                ("ambient-caps", "AmbientCapabilities"),
            )
        ]
        capabilities.append(capabilities[1].replace("ambient", "inh"))
        command = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={group}",
            "--init-groups",
            "--no-new-privs",
            *capabilities,
        ]
        self._as_the_service = command
        self.stop_seconds = float(take("TimeoutStopSec").removesuffix("s"))
        lines = [
            "mount --make-rprivate /",
            f"mount --rbind {root} {root}",
            *(f"mount --bind {root}{path} {root}{path}" for path in writable),
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
            *(f"mount -o remount,bind,ro {root}{path}" for path in ("", "/run")),
            # Root of a container may not raise its limits.
            f"ulimit -n {take('LimitNOFILE')} 2>/dev/null || ulimit -n $(ulimit -Hn)",
            f"umask {take('UMask')}",
            f"exec chroot {root} {shlex.join(command)} -- {take('ExecStart')}",
        ]
        left = set(unit) - set(NOT_DONE.split())
        assert not left, f"the unit says what the test neither does nor leaves out: {left}"
        return shlex.join(["exec", "unshare", "--mount", "sh", "-ec", "\n".join(lines)])

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after the time that the unit gives."""
        if not self.process:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.statuses.append(self.process.wait(self.stop_seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None

    def reload(self) -> None:
        """What `ExecReload=` says; returns when the service says that it has read all again."""
        assert self.process and self.active, "the service is not active"
        told = len(self.told)
        main = str(self.process.pid)
        command = [main if word == "$MAINPID" else word for word in shlex.split(self.unit()["ExecReload"])]
        self.debian.run("env", f"MAINPID={main}", *self._as_the_service, "--", *command)
        deadline = time.monotonic() + START_SECONDS
        while "READY=1" not in self.told[told:]:
            assert time.monotonic() < deadline and self.active, f"not reloaded\n{self.log}"
            time.sleep(0.01)
