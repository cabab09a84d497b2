"""A fresh Debian 12 in a directory, and its package manager."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

RELEASE = "bookworm"
# What a Debian 12 with systemd has, and what the package recommends.
PACKAGES = ["systemd", "logrotate", "man-db"]
# A copy of it is good for a week; then it lacks too many updates.
BASE_SECONDS_MAX = 7 * 24 * 3600
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
# What dpkg, apt, systemd-sysusers and logrotate write down whatever is installed.
BOOKKEEPING = (
    "dev/",
    "etc/group",
    "etc/gshadow",
    "etc/passwd",
    "etc/shadow",
    "etc/.pwd.lock",
    "proc/",
    "run/",
    "sys/",
    "tmp/",
    "var/cache/",
    "var/lib/apt/",
    "var/lib/dpkg/",
    "var/lib/logrotate/",
    "var/log/apt/",
    "var/log/dpkg.log",
    "var/log/alternatives.log",
)


def mirror() -> str:
    """Where this machine has Debian's packages from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    wanted = ["Created-By: Packages", "Origin: Debian", f"Codename: {RELEASE}", "Component: main"]
    found = subprocess.run([*command, *wanted], capture_output=True, text=True, check=True).stdout.split()
    assert found, f"apt knows no mirror of Debian's {RELEASE}: apt-get update"
    return found[0]


def base(cache: Path) -> Path:
    """An archive of a Debian 12 without anything of ours; made if there is none that is new enough."""
    archive = cache / f"{RELEASE}.tar"
    if archive.exists() and time.time() - archive.stat().st_mtime < BASE_SECONDS_MAX:
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        root = Path(scratch) / "root"
        command = [
            "debootstrap",
            "--variant=minbase",
            "--include",
            ",".join(PACKAGES),
            RELEASE,
            root,
            mirror(),
        ]
        run(command, quiet=True)
        run(["tar", "-C", root, "--one-file-system", "-cf", archive.with_suffix(".part"), "."])
    archive.with_suffix(".part").rename(archive)
    return archive


def run(command: list, *, quiet: bool = False, env: Mapping[str, str] | None = None) -> str:
    """Its standard output and error; a failure says both."""
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}"
    )
    return "" if quiet else done.stdout


class Debian:
    """One that was just installed, below `path`; in a mount namespace of its own, which ends its mounts."""

    def __init__(self, path: Path, archive: Path) -> None:
        self.path = path
        path.mkdir()
        run(["tar", "-C", path, "-xpf", archive])
        run(["mount", "-t", "proc", "proc", path / "proc"])
        run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path / "run"])
        run(["mount", "--rbind", "/dev", path / "dev"])

    def run(self, *command: str) -> str:
        """What a command prints there."""
        return run(["chroot", self.path, *command], env=ENVIRONMENT)

    def __truediv__(self, path: str) -> Path:
        return self.path / path

    def install(self, package: Path) -> str:
        """Installs, upgrades or goes back; nothing is fetched. Questions get dpkg's own default answers."""
        shutil.copy(package, self / "tmp")
        answers = [f"--option=Dpkg::Options::=--force-{which}" for which in ("confdef", "confold")]
        command = ["apt-get", "install", "-y", "--no-install-recommends", "--allow-downgrades", *answers]
        return self.run(*command, f"/tmp/{package.name}")

    def files(self) -> set[str]:
        """All paths but those of bookkeeping."""
        found = set()
        for where, directories, names in os.walk(self.path):
            for name in directories + names:
                path = os.path.relpath(os.path.join(where, name), self.path)
                if not f"{path}/".startswith(BOOKKEEPING) and not path.startswith(BOOKKEEPING):
                    found.add(path)
        return found
