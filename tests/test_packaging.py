"""packaging/: what is shipped beside the program."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from support.identities import client
from support.impersonation import DENIED, ENV, ROOT_IDS, owner, refusal
from support.server import REPOSITORY, SIDECARS

PACKAGING = REPOSITORY / "packaging"
MONITORING = PACKAGING / "monitoring"
METRICS = set(re.findall(r"^\| `(\S+)` \|", (REPOSITORY / "docs" / "METRICS.md").read_text(), re.MULTILINE))
needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="needs promtool (Debian's package prometheus)"
)


def metrics_of(expression: str) -> set[str]:
    names = set(re.findall(r"\b(?:slipway|process)_\w+", expression))
    return {re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name for name in names}


def expressions() -> list[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = re.findall(
        r"expr: (?:>-\n)?(.*?)\n\s+(?:for|labels):", (MONITORING / "alerts.yml").read_text(), re.DOTALL
    )
    return queries + rules


def test_what_is_asked_for_is_counted():
    found = expressions()
    assert len(found) > 20
    for expression in found:
        names = metrics_of(expression) - {"slipway_info"}
        assert names or expression.startswith("up{"), expression
        assert names <= METRICS, expression


@needs_promtool
def test_each_alert_is_tested():
    rules, tests = ((MONITORING / name).read_text() for name in ("alerts.yml", "alerts.test.yml"))
    alerts = set(re.findall(r"alert: (\w+)", rules))
    fires = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", tests))
    assert alerts == fires
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="needs systemd-analyze (Debian's package systemd)"
)


@needs_systemd
def test_the_unit_is_as_closed_as_it_says():
    unit = PACKAGING / "systemd" / "slipway.service"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # With the socket beside it, as they are installed.
    assert complaints_about(unit, unit.with_suffix(".socket")) == []


def complaints_about(*units: Path) -> list[str]:
    verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    # The program and its manual are not installed here.
    return [
        line
        for line in verified.stderr.splitlines()
        if "/usr/bin/slipway" not in line and "man slipway(1)" not in line
    ]


def calls_of(names: list[str]) -> set[str]:
    """The system calls of a filter, with those of the groups in it."""
    found = set()
    for name in names:
        if name.startswith("@"):
            shown = subprocess.run(
                ["systemd-analyze", "syscall-filter", "--no-pager", name],
                capture_output=True,
                text=True,
                check=True,
            )
            members = [line.strip() for line in shown.stdout.splitlines()[1:]]
            found |= calls_of([member for member in members if member and not member.startswith("#")])
        else:
            found.add(name)
    return found


class TestImpersonate:
    """What --impersonate needs, in a unit's drop-in and in values of the chart."""

    DROP_IN = PACKAGING / "systemd" / "impersonate.conf"
    VALUES = PACKAGING / "helm" / "slipway" / "ci" / "impersonate.yaml"

    def settings(self, name: str) -> list[str]:
        """The values of a setting, in the unit and then in the drop-in."""
        text = (PACKAGING / "systemd" / "slipway.service").read_text() + self.DROP_IN.read_text()
        return re.findall(f"^{name}=(.*)$", text, re.MULTILINE)

    @needs_systemd
    def test_systemd_takes_the_drop_in(self, tmp_path):
        drop_ins = tmp_path / "slipway.service.d"
        drop_ins.mkdir()
        shutil.copy(self.DROP_IN, drop_ins)
        for unit in ("slipway.service", "slipway.socket"):
            shutil.copy(PACKAGING / "systemd" / unit, tmp_path)
        assert complaints_about(tmp_path / "slipway.service", tmp_path / "slipway.socket") == []

    @needs_systemd
    def test_the_calls_of_a_switch_are_allowed(self):
        allowed: set[str] = set()
        for setting in self.settings("SystemCallFilter"):
            calls = calls_of(setting.removeprefix("~").split())
            allowed = allowed - calls if setting.startswith("~") else allowed | calls
        assert {"openat2", "faccessat2"} <= allowed
        assert {"setfsuid", "setfsgid", "setgroups", "capset", "prctl", "fchown", "fchownat"} <= allowed
        # No more than that: what else @privileged has stays away.
        assert not {"chroot", "mount", "bpf", "open_by_handle_at", "pivot_root", "swapon"} & allowed

    def capabilities(self, where: str) -> list[str]:
        if where == "helm":
            names = yaml.safe_load(self.VALUES.read_text())["securityContext"]["capabilities"]["add"]
        else:
            names = self.settings("CapabilityBoundingSet")[-1].split()
        return [name.removeprefix("CAP_").lower() for name in names]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users")
    @pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files")
    @pytest.mark.skipif(not shutil.which("setpriv"), reason="needs util-linux's setpriv")
    @pytest.mark.parametrize("where", ["systemd", "helm"])
    def test_its_capabilities_suffice(self, where, make_server, tmp_path):
        tree = tmp_path / "tree"
        tree.mkdir()
        tree.chmod(0o755)
        given = ",".join(f"+{name}" for name in self.capabilities(where))
        within = ["setpriv", "--no-new-privs", f"--bounding-set=-all,{given}"]
        server = make_server("--impersonate", tree=tree, env=ENV, within=within)
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="d/a", Body=b"1")
        assert owner(tree / "lab/d/a") == ROOT_IDS
        (tree / "lab/d/a").chmod(0)
        assert refusal(root.get_object, Bucket="lab", Key="d/a") == DENIED


USER = 4711
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to others")


class TestTheTreesOwners:
    """What is in /var/lib/slipway stays whose it is: it may be a mount, which others serve too."""

    def test_the_unit_does_not_change_them(self):
        unit = (PACKAGING / "systemd" / "slipway.service").read_text()
        # systemd gives all below it to the unit's user.
        assert not re.search("^StateDirectory", unit, re.MULTILINE)
        assert re.search("^ReadWritePaths=-/var/lib/slipway$", unit, re.MULTILINE)

    @needs_root
    @pytest.mark.skipif(not shutil.which("systemd-tmpfiles"), reason="needs systemd-tmpfiles")
    def test_it_is_made_where_it_is_not_there(self, tmp_path):
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/passwd").write_text(f"root:x:0:0::/:/bin/sh\nslipway:x:{USER}:{USER}::/:/bin/sh\n")
        (tmp_path / "etc/group").write_text(f"root:x:0:\nslipway:x:{USER}:\n")
        tree, entry = tmp_path / "var/lib/slipway", PACKAGING / "systemd" / "slipway.tmpfiles"

        def create() -> tuple[int, int, int]:
            subprocess.run(["systemd-tmpfiles", f"--root={tmp_path}", "--create", entry], check=True)
            about = tree.stat()
            return about.st_uid, about.st_gid, about.st_mode & 0o777

        assert create() == (USER, USER, 0o750)
        os.chown(tree, 1234, 1235)
        tree.chmod(0o711)
        (tree / "file").touch()
        assert create() == (1234, 1235, 0o711)
        assert (tree / "file").stat().st_uid == 0


@needs_root
class TestPurge:
    """postrm, in a namespace whose /var/lib and /var/log are its own."""

    @contextmanager
    def purging(self, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
        """Yields its /var/lib and /var/log; what it does afterwards is in `self.done`."""
        library, logs, programs = tmp_path / "lib", tmp_path / "log", tmp_path / "bin"
        for directory in (library, logs):
            (directory / "slipway").mkdir(parents=True)
        programs.mkdir()
        yield library, logs
        for place in (library / "slipway", logs / "slipway"):
            for found in (place, *place.rglob("*")):
                os.chown(found, USER, USER, follow_symlinks=False)
        passwd, group = tmp_path / "passwd", tmp_path / "group"
        passwd.write_text(Path("/etc/passwd").read_text() + f"slipway:x:{USER}:{USER}::/:/bin/sh\n")
        group.write_text(Path("/etc/group").read_text() + f"slipway:x:{USER}:\n")
        # debhelper's part is about files that are not here.
        script = (PACKAGING / "debian" / "slipway.postrm").read_text().replace("#DEBHELPER#", "")
        (tmp_path / "postrm").write_text(script)
        mounts = [(passwd, "/etc/passwd"), (group, "/etc/group")]
        mounts += [(library, "/var/lib"), (logs, "/var/log"), (programs, "/usr/local/bin")]
        binds = "".join(f"mount --bind {of} {at}; " for of, at in mounts)
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        run = f"set -e; {binds} PATH={path} exec sh {tmp_path}/postrm purge"
        self.done = subprocess.run(["unshare", "--mount", "sh", "-c", run], capture_output=True, text=True)

    def make_unused(self, library: Path) -> Path:
        state = library / "slipway" / ".slipway"
        state.mkdir()
        for name in ("account.toml", "credentials.toml", "tree.toml"):
            (state / name).touch()
        return state

    def test_what_was_never_used_goes(self, tmp_path):
        with self.purging(tmp_path) as (library, logs):
            self.make_unused(library)
            for name in ("access.log", "access.log.1", "access.log.2.gz"):
                (logs / "slipway" / name).touch()
        assert self.done.returncode == 0, self.done.stderr
        assert list(library.iterdir()) == [] and list(logs.iterdir()) == []

    @pytest.mark.parametrize("more", ["lab", ".slipway/more"])
    def test_what_was_used_stays(self, tmp_path, more):
        with self.purging(tmp_path) as (library, _):
            state = self.make_unused(library)
            (library / "slipway" / more).touch()
        assert self.done.returncode == 0 and "stays as it is" in self.done.stdout
        assert (state / "credentials.toml").exists() and (library / "slipway" / more).exists()

    def test_a_directory_among_the_logs_stays(self, tmp_path):
        with self.purging(tmp_path) as (_, logs):
            (logs / "slipway" / "access.log.d").mkdir()
            (logs / "slipway" / "access.log.d" / "file").touch()
            (logs / "slipway" / "access.log.1").touch()
        assert self.done.returncode == 0, self.done.stderr
        assert [path.name for path in (logs / "slipway").iterdir()] == ["access.log.d"]

    def test_links_that_come_meanwhile_lead_nowhere(self, tmp_path):
        """The user `slipway` may have a program that puts a link in the place of what is looked at."""
        with self.purging(tmp_path) as (library, _):
            victim = library / "victim"
            victim.mkdir()
            (victim / "credentials.toml").touch()
            self.make_unused(library)
            # What is called between the look and the removal.
            swap = tmp_path / "bin" / "grep"
            tree = "/var/lib/slipway"
            swap.write_text(
                f"#!/bin/sh\nmv {tree}/.slipway {tree}/away && ln -s ../victim {tree}/.slipway\nexit 1\n"
            )
            swap.chmod(0o755)
        assert self.done.returncode == 0, self.done.stderr
        assert (library / "slipway" / ".slipway").is_symlink(), "the swap did not happen"
        assert (victim / "credentials.toml").exists()


@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt-get")
def test_the_image_is_made_of_debians_own_packages(tmp_path):
    """apt may have other sources, and these may come first."""
    lists, sources, programs = tmp_path / "lists", tmp_path / "sources.list", tmp_path / "bin"
    (lists / "partial").mkdir(parents=True)
    programs.mkdir()
    architecture = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    suite = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)[1]
    text = ""
    for host, origin, codename in [
        ("aaa.test", "Somebody", suite),
        ("bbb.test", "Debian", "trixie" if suite != "trixie" else "bookworm"),
        ("debian.test", "Debian", suite),
    ]:
        text += f"deb [trusted=yes] http://{host}/debian {codename} main\n"
        release = f"Origin: {origin}\nCodename: {codename}\nSuite: {codename}\nComponents: main\n"
        release += f"Architectures: {architecture}\n"
        (lists / f"{host}_debian_dists_{codename}_Release").write_text(release)
        (lists / f"{host}_debian_dists_{codename}_main_binary-{architecture}_Packages").touch()
    sources.write_text(text)
    settings = tmp_path / "apt.conf"
    settings.write_text(
        f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
        f'Dir::State::lists "{lists}";\n'
    )
    for name, does in [("debootstrap", 'echo "$@"; exit 1'), ("buildah", "exit 1"), ("id", "echo 0")]:
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [PACKAGING / "container" / "build", "--debootstrap", "--binary", "/bin/true"],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "APT_CONFIG": str(settings)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.split()[-1] == "http://debian.test/debian/", done.stderr
    assert "--include=ca-certificates" in done.stderr
