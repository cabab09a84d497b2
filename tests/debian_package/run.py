#!/usr/bin/env python3
"""Builds the Debian package, and takes it through its life on a fresh Debian 12.

    .venv/bin/python tests/debian_package/run.py [--packages DIR]

Needs root, and Debian's `debootstrap`, `debhelper` and `lintian`. A line for each step; exit status 1 if one
failed. systemd does not run there: `manager.py` stands in for it. All of it has its own network, mounts and
processes, which end with it. `--packages` takes a package that is built already.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import boto3
from botocore.config import Config

from debian_package.debian import Debian, base, run
from debian_package.manager import SOCKET, UNIT, Manager

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / "target" / "debian-12"
ENDPOINT = "http://127.0.0.1:9000"
WANTED = "etc/systemd/system/multi-user.target.wants/slipway.service"
TREE = "var/lib/slipway"
KEYS = f"{TREE}/.slipway/credentials.toml"
CONFIGURATION = "etc/slipway/slipway.toml"
LOG = "var/log/slipway/access.log"
BODY = b"through S3\n" * 100_000


class Life:
    """A package, an installation of it, and what happens to them. Each step stands on those before it."""

    def __init__(self, scratch: Path, package: Path) -> None:
        self.scratch = scratch
        self.package = package
        self.debian = Debian(scratch / "debian", CACHE / "bookworm.tar")
        self.manager = Manager(self.debian, scratch / "journal")
        self.before = self.debian.files()

    # What several steps use.

    def shipped(self, change: str) -> Path:
        """The package in a higher version, whose configuration file has one line more."""
        old = run(["dpkg-deb", "-f", self.package, "Version"]).strip()
        root = self.scratch / "unpacked"
        run(["dpkg-deb", "-R", self.package, root])
        control = root / "DEBIAN" / "control"
        control.write_text(control.read_text().replace(f"Version: {old}\n", f"Version: {old}+{change}\n"))
        with open(root / CONFIGURATION, "a") as file:
            file.write(f"# {change}\n")
        package = self.scratch / f"slipway_{change}.deb"
        run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", root, package], quiet=True)
        shutil.rmtree(root)
        return package

    def client(self):
        """Whoever has read root's keys."""
        keys = dict(re.findall(r'^(\w+) = "(.*)"$', (self.debian / KEYS).read_text(), re.MULTILINE))
        return boto3.client(
            "s3",
            endpoint_url=ENDPOINT,
            region_name="us-east-1",
            aws_access_key_id=keys["access_key"],
            aws_secret_access_key=keys["secret_key"],
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def state(self) -> dict[str, object]:
        """All that is in the tree: who owns it, and what is in it."""
        found = {}
        for path in sorted((self.debian / TREE).rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_ino, content)
        return found

    def configure(self, text: str) -> None:
        with open(self.debian / CONFIGURATION, "a") as file:
            file.write(text)

    def identity(self, name: str) -> int:
        return int(self.debian.run("id", "-u", name))

    # The steps.

    def installs(self) -> None:
        """It is installed, started and enabled, and says where the keys are"""
        said = self.debian.install(self.package)
        assert f"/{KEYS}" in said and ENDPOINT in said, said
        assert self.manager.active, f"{said}\n{self.manager.asked}\n{self.manager.log}"
        assert os.path.lexists(self.debian / WANTED), "not enabled"
        assert (self.debian / SOCKET).exists(), "the socket's unit is there for those who want it"
        assert not (self.debian / "etc/systemd/system/sockets.target.wants").exists(), "the socket is enabled"
        version = run(["dpkg-deb", "-f", self.package, "Version"]).strip()
        number = re.match(r"[\d.]*\d", version)[0]
        assert self.debian.run("slipway", "--version").startswith(f"slipway {number} ("), version

    def runs_as_the_unit_says(self) -> None:
        """The process is the user's, with one capability and the unit's limits"""
        pid = self.manager.process.pid
        status = dict(re.findall(r"^(\w+):\t(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
        user = self.identity("slipway")
        assert user and status["Uid"].split() == [str(user)] * 4, status
        assert 0 < user < 1000, "no system user"
        only = 1 << 10  # CAP_NET_BIND_SERVICE
        assert {int(status[f"Cap{kind}"], 16) for kind in ("Bnd", "Amb", "Prm", "Eff")} == {only}, status
        assert status["NoNewPrivs"] == "1" and status["Umask"] == "0027", status
        descriptors = re.search(r"Max open files\s+(\d+)", Path(f"/proc/{pid}/limits").read_text())[1]
        assert int(descriptors) in (65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]), descriptors
        tree = (self.debian / TREE).stat()
        assert (tree.st_uid, oct(tree.st_mode & 0o777)) == (user, "0o750")

    def is_exposed_to_nobody(self) -> None:
        """It listens on loopback alone, and its secret is in one file of its own"""
        listening = set()
        for table in ("tcp", "tcp6"):
            rows = [line.split() for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
            listening |= {row[1] for row in rows if row[3] == "0A"}
        assert listening == {"0100007F:2328"}, listening  # 127.0.0.1:9000
        keys = self.debian / KEYS
        about = keys.stat()
        assert (about.st_uid, oct(about.st_mode & 0o777)) == (self.identity("slipway"), "0o600")
        secret = re.search(r'secret_key = "(.*)"', keys.read_text())[1]
        assert f"endpoint    {ENDPOINT}" in self.manager.log and f"/{KEYS}" in self.manager.log, (
            self.manager.log
        )
        assert secret not in self.manager.log, "the journal has the secret key"

    def has_its_manual(self) -> None:
        """Each command has its page, which renders; shells have completions; apropos knows them"""
        pages = {
            path.name.removesuffix(".gz") for path in (self.debian / "usr/share/man/man1").glob("slipway*")
        }
        commands = re.findall(r"^  (\w+) ", self.debian.run("slipway", "--help"), re.MULTILINE)
        wanted = {"slipway.1", *(f"slipway-{command}.1" for command in commands if command != "help")}
        assert len(wanted) > 8 and wanted <= pages, wanted - pages
        for page in [*(name.removesuffix(".1") for name in pages), "slipway.toml"]:
            said = self.debian.run("sh", "-c", f"MANWIDTH=100 man --warnings {page} 2>&1 >/dev/null")
            assert said == "", said
        assert "slipway.toml (5)" in self.debian.run("man", "-f", "slipway.toml")
        for path in ("bash-completion/completions/slipway", "zsh/vendor-completions/_slipway"):
            assert "slipway" in (self.debian / "usr/share" / path).read_text()
        assert "slipway" in (self.debian / "usr/share/fish/vendor_completions.d/slipway.fish").read_text()
        run(["bash", "-n", self.debian / "usr/share/bash-completion/completions/slipway"])

    def has_a_unit_that_systemd_takes(self) -> None:
        """systemd-analyze finds nothing wrong with the unit, and it closed"""
        path = f"/{UNIT}"
        assert self.debian.run("systemd-analyze", "verify", path, f"/{SOCKET}") == ""
        self.debian.run("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", path)

    def serves(self) -> None:
        """A client puts, gets, lists and deletes; what it put is a file"""
        client = self.client()
        client.create_bucket(Bucket="lab")
        client.put_object(Bucket="lab", Key="runs/001/note.txt", Body=BODY, Metadata={"made": "by hand"})
        client.put_object(Bucket="lab", Key="gone", Body=b"")
        client.delete_object(Bucket="lab", Key="gone")
        assert [found["Key"] for found in client.list_objects_v2(Bucket="lab")["Contents"]] == [
            "runs/001/note.txt"
        ]
        self.holds()
        file = self.debian / TREE / "lab/runs/001/note.txt"
        assert file.read_bytes() == BODY
        assert (file.stat().st_uid, oct(file.stat().st_mode & 0o777)) == (self.identity("slipway"), "0o640")

    def holds(self) -> None:
        """The object is what was put"""
        answer = self.client().get_object(Bucket="lab", Key="runs/001/note.txt")
        assert answer["Body"].read() == BODY and answer["Metadata"] == {"made": "by hand"}

    def reloads(self) -> None:
        """A reload takes what it can, and names what it can't"""
        self.configure(f'ops-listen = "127.0.0.1:9090"\nlog = "debug"\naccess-log = "/{LOG}"\n')
        self.debian.run("systemctl", "reload", "slipway")
        assert re.search(r"reloaded new=.*--log", self.manager.log), self.manager.log
        assert "option=--ops-listen" in self.manager.log, self.manager.log
        self.debian.run("systemctl", "restart", "slipway")

    def is_watched(self) -> None:
        """Metrics count the request, and the access log has its line"""
        self.holds()
        with urllib.request.urlopen("http://127.0.0.1:9090/-/ready", timeout=10) as answer:
            assert answer.status == 200
        with urllib.request.urlopen("http://127.0.0.1:9090/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        assert re.search(r'^slipway_requests_total\{.*operation="GetObject".*\} 1$', metrics, re.MULTILINE), (
            metrics
        )
        # Lines wait for others for a moment.
        time.sleep(1)
        assert '"operation":"GetObject"' in (self.debian / LOG).read_text()

    def binds_low_ports(self) -> None:
        """Port 443 is had without root"""
        path = self.debian / CONFIGURATION
        text = path.read_text()
        path.write_text(text.replace("127.0.0.1:9000", "127.0.0.1:443"))
        self.debian.run("systemctl", "restart", "slipway")
        assert "http://127.0.0.1:443" in self.manager.log
        path.write_text(text)
        self.debian.run("systemctl", "restart", "slipway")

    def serves_elsewhere(self) -> None:
        """Another directory is served once a drop-in names it, and not before"""
        path = self.debian / CONFIGURATION
        text = path.read_text()
        path.write_text(text.replace(f'"/{TREE}"', '"/srv/objects"'))
        self.debian.run("install", "-d", "-o", "slipway", "-g", "slipway", "/srv/objects")
        try:
            self.debian.run("systemctl", "restart", "slipway")
        except AssertionError:
            assert "Read-only file system" in self.manager.log, self.manager.log
            assert self.manager.statuses.pop() == 1
        else:
            raise AssertionError("it wrote where the unit does not let it")
        drop_in = self.debian / "etc/systemd/system/slipway.service.d/override.conf"
        drop_in.parent.mkdir()
        drop_in.write_text("[Service]\nReadWritePaths=/srv/objects\n")
        self.debian.run("systemctl", "restart", "slipway")
        assert (self.debian / "srv/objects/.slipway/credentials.toml").exists()
        shutil.rmtree(drop_in.parent)
        path.write_text(text)
        self.debian.run("systemctl", "restart", "slipway")

    def rotates(self) -> None:
        """logrotate sets the access log aside, readable by few, and reloads the service"""
        log = self.debian / LOG
        self.debian.run("install", "-o", "slipway", "-g", "slipway", "-m", "0640", "/dev/null", f"/{LOG}")
        for line in ("first\n", "second\n"):
            log.write_text(line)
            self.manager.asked.clear()
            self.debian.run("logrotate", "--force", "/etc/logrotate.d/slipway")
            assert self.manager.asked == ["is-active", "reload"], self.manager.asked
        older = {path.name: path for path in log.parent.iterdir()}
        assert sorted(older) == ["access.log", "access.log.1", "access.log.2.gz"], older
        assert log.read_text() == "" and older["access.log.1"].read_text() == "second\n"
        for path in older.values():
            about = path.stat()
            assert (about.st_uid, oct(about.st_mode & 0o777)) == (self.identity("slipway"), "0o640"), path
        self.debian.run("systemctl", "stop", "slipway")
        log.write_text("third\n")
        self.manager.asked.clear()
        self.debian.run("logrotate", "--force", "/etc/logrotate.d/slipway")
        assert self.manager.asked == ["is-active"], "a service that was stopped stays so"
        self.debian.run("systemctl", "start", "slipway")

    def upgrades(self) -> None:
        """An upgrade keeps the admin's configuration and the tree, and restarts the service"""
        configuration = (self.debian / CONFIGURATION).read_text()
        tree, process = self.state(), self.manager.process
        newer = self.shipped("second")
        said = self.debian.install(newer)
        installed = self.debian.run("dpkg-query", "-W", "-f", "${Version}\n", "slipway")
        assert installed == run(["dpkg-deb", "-f", newer, "Version"])
        assert (self.debian / CONFIGURATION).read_text() == configuration
        assert (self.debian / f"{CONFIGURATION}.dpkg-dist").read_text().endswith("# second\n")
        assert ENDPOINT not in said, "an upgrade need not say what the installation said"
        assert self.manager.active and process.poll() == 0, self.manager.log
        assert self.manager.process is not process, "not restarted"
        assert self.state() == tree
        self.holds()

    def removes(self) -> None:
        """Removing it stops the service, and keeps configuration, keys, log and tree"""
        tree = self.state()
        self.debian.run("apt-get", "remove", "-y", "slipway")
        assert not self.manager.active and set(self.manager.statuses) == {0}, self.manager.statuses
        assert not (self.debian / "usr/bin/slipway").exists()
        assert (self.debian / CONFIGURATION).exists() and (self.debian / LOG).exists()
        assert self.state() == tree

    def returns(self) -> None:
        """Installed again, it serves the same objects with the same keys"""
        tree = self.state()
        self.debian.install(self.package)
        assert self.manager.active
        self.holds()
        assert self.state() == tree

    def purges_all_but_the_tree(self) -> None:
        """A purge leaves the tree, says so, and leaves nothing else"""
        # Other people's files beside it: what `remove everything below` would take.
        (self.debian / "etc/slipway/key.pem").write_text("of the admin")
        tree = self.state()
        said = self.debian.run("apt-get", "purge", "-y", "slipway")
        assert self.state() == tree and len(tree) > 4, "the tree is not as it was"
        assert f"/{TREE} stays as it is" in said, said
        left = self.debian.files() - self.before
        kept = {path for path in left if path.startswith((TREE, "srv/objects"))}
        assert "srv/objects/.slipway/account.toml" in kept
        assert left - kept == {"etc/slipway", "etc/slipway/key.pem"}, left - kept
        assert self.identity("slipway"), "files have an owner's number, which must not go to another user"

    def leaves_nothing_unused(self) -> None:
        """Installed and purged without a bucket, nothing is left; where something was mounted, all is"""
        for path in (TREE, "srv/objects", "etc/slipway"):
            shutil.rmtree(self.debian / path)
        self.debian.install(self.package)
        assert (self.debian / KEYS).exists()
        self.debian.run("apt-get", "purge", "-y", "slipway")
        assert self.debian.files() <= self.before, self.debian.files() - self.before
        tree = self.debian / TREE
        tree.mkdir()
        run(["mount", "-t", "tmpfs", "-o", f"mode=770,uid=0,gid={self.identity('slipway')}", "tmpfs", tree])
        (tree / "lab").mkdir()
        (tree / "lab/data").write_text("of somebody")
        owners = {
            tree: (0, self.identity("slipway")),
            tree / "lab": (1234, 1235),
            tree / "lab/data": (1234, 1236),
        }
        for path, (user, group) in list(owners.items())[1:]:
            os.chown(path, user, group)
        self.debian.install(self.package)
        assert self.manager.active, self.manager.log
        keys = (self.debian / KEYS).read_text()
        self.debian.run("apt-get", "purge", "-y", "slipway")
        assert (self.debian / KEYS).read_text() == keys, "other gateways may serve what is mounted there"
        found = {path: (path.stat().st_uid, path.stat().st_gid) for path in owners}
        assert found == owners, "what is there already stays whose it is"

    def takes_the_new_configuration(self) -> None:
        """An upgrade brings the new configuration to those who changed nothing"""
        run(["umount", self.debian / TREE])
        # That was root's, and would stay so.
        (self.debian / TREE).rmdir()
        self.debian.install(self.package)
        self.debian.install(self.shipped("third"))
        assert (self.debian / CONFIGURATION).read_text().endswith("# third\n")
        assert not list((self.debian / "etc/slipway").glob("*.dpkg-*"))
        assert self.manager.active

    def obeys_a_policy(self) -> None:
        """Where a policy forbids services, none is started, and the installation succeeds"""
        self.debian.run("apt-get", "purge", "-y", "slipway")
        policy = self.debian / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        self.debian.install(self.package)
        assert not self.manager.active
        self.debian.run("apt-get", "purge", "-y", "slipway")


STEPS: list[Callable[[Life], None]] = [
    Life.installs,
    Life.runs_as_the_unit_says,
    Life.is_exposed_to_nobody,
    Life.has_its_manual,
    Life.has_a_unit_that_systemd_takes,
    Life.serves,
    Life.reloads,
    Life.is_watched,
    Life.binds_low_ports,
    Life.serves_elsewhere,
    Life.rotates,
    Life.upgrades,
    Life.removes,
    Life.returns,
    Life.purges_all_but_the_tree,
    Life.leaves_nothing_unused,
    Life.takes_the_new_configuration,
    Life.obeys_a_policy,
]


def timed(name: str, work: Callable[[], object]):
    start = time.monotonic()
    result = work()
    print(f"ok    {name} ({time.monotonic() - start:.1f} s)", flush=True)
    return result


def live(package: Path) -> int:
    """All steps, up to the first that fails."""
    run(["ip", "link", "set", "lo", "up"])
    with tempfile.TemporaryDirectory(prefix="slipway-") as scratch:
        life = timed("a fresh Debian 12", lambda: Life(Path(scratch), package))
        try:
            for step in STEPS:
                try:
                    timed(step.__doc__.strip(), lambda step=step: step(life))
                except Exception:
                    print(f"FAIL  {step.__doc__.strip()}\n{traceback.format_exc()}")
                    return 1
        finally:
            life.manager.stop()
            # With what is mounted in it, it could not be removed.
            run(
                [
                    "umount",
                    "--recursive",
                    "--lazy",
                    *(life.debian / below for below in ("dev", "run", "proc")),
                ]
            )
    size = package.stat().st_size
    installed = run(["dpkg-deb", "-f", package, "Installed-Size"]).strip()
    print(f"{package.name}: {size / 1e6:.1f} MB, {int(installed) / 1000:.1f} MB installed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, help="where a package is that is built already")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return live(options.inside)
    packages = options.packages or REPOSITORY / "target" / "debian"
    if not options.packages:
        build = [REPOSITORY / "packaging" / "debian" / "build", packages]
        timed("the package is built, and lintian finds nothing", lambda: run(build))
    timed("a Debian 12 to install it in", lambda: base(CACHE))
    built = [path for path in packages.glob("slipway_*.deb")]
    assert built, f"no package in {packages}"
    package = max(built, key=lambda path: path.stat().st_mtime).resolve()
    apart = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return subprocess.run([*apart, sys.executable, __file__, "--inside", package]).returncode


if __name__ == "__main__":
    sys.exit(main())
