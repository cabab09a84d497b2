"""A real Active Directory: Samba's, provisioned into a folder, with LDAP alone of its services."""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

from support.wire import poll

REALM = "lab.example"
SUFFIX = "dc=lab,dc=example"
PORTS = (389, 636)
# Debian's packages that samba only recommends, each by a file of its own, without which no domain
# can be made.
MODULES = {
    "samba-dsdb-modules": "*/samba/ldb/samba_secrets.so",
    "samba-vfs-modules": "*/samba/vfs/acl_xattr.so",
}


def unusable() -> str:
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "only root may listen on LDAP's ports, which Samba does not let one choose"
    if not all(shutil.which(name) for name in ("samba", "samba-tool")):
        return "samba and samba-ad-provision are not installed"
    if missing := [package for package, module in MODULES.items() if not list(Path("/usr/lib").glob(module))]:
        return f"{' and '.join(missing)} are not installed"
    for port in PORTS:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return f"something else listens on port {port}"
    return ""


class ActiveDirectory:
    """A domain whose server shows this certificate, which has to name `localhost`."""

    def __init__(self, folder: Path, certificate: tuple[Path, Path]) -> None:
        self.folder = folder / "ad"
        self.folder.mkdir()
        self.process: subprocess.Popen | None = None
        self.certificate = certificate
        # Samba takes no key that others may read.
        certificate[1].chmod(0o600)
        self.run(
            *("domain", "provision", f"--realm={REALM}", "--domain=LAB", "--adminpass=Of-the-admin-1"),
            *("--server-role=dc", "--use-rfc2307", "--dns-backend=NONE", f"--targetdir={self.folder}"),
            *("--host-name=dc1", "--host-ip=127.0.0.1", "--backend-store=mdb"),
            *("--option=interfaces=lo", "--option=bind interfaces only=yes"),
        )

    @property
    def base(self) -> str:
        return str(self.folder / "private/sam.ldb")

    @staticmethod
    def run(*words: str) -> None:
        subprocess.run(["samba-tool", *words], check=True, capture_output=True, timeout=300)

    def user(self, name: str, password: str, ids: int | None = None) -> None:
        posix = []
        if ids is not None:
            posix = [f"--uid-number={ids}", f"--gid-number={ids}", "--unix-home=/", f"--uid={name}"]
            posix += ["--login-shell=/bin/false", "--nis-domain=lab"]
        self.run("user", "create", name, password, *posix, "-H", self.base)

    def group(self, name: str, *members: str, gid: int | None = None) -> None:
        posix = [] if gid is None else [f"--gid-number={gid}", "--nis-domain=lab"]
        self.run("group", "add", name, *posix, "-H", self.base)
        self.run("group", "addmembers", name, ",".join(members), "-H", self.base)

    def disable(self, name: str) -> None:
        self.run("user", "disable", name, "-H", self.base)

    def start(self) -> None:
        options = {
            "server services": "ldap",
            "dcerpc endpoint servers": "",
            "tls certfile": self.certificate[0],
            "tls keyfile": self.certificate[1],
            "tls cafile": self.certificate[0],
        }
        command = ["samba", "-i", "-M", "single", "-s", str(self.folder / "etc/smb.conf")]
        command += [f"--option={name}={value}" for name, value in options.items()]
        log = self.folder / "samba.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

        def answers() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORTS[1]), 1):
                return True
            return False

        poll(answers, 60)

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
