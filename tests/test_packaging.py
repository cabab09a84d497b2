"""packaging/: what is shipped beside the program."""

import json
import os
import re
import shutil
import subprocess

import pytest

from support.server import REPOSITORY

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


@pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="needs systemd-analyze (Debian's package systemd)"
)
def test_the_unit_is_as_closed_as_it_says():
    unit = PACKAGING / "systemd" / "slipway.service"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    # The program and its manual are not installed here.
    complaints = [
        line
        for line in verified.stderr.splitlines()
        if "/usr/bin/slipway" not in line and "man slipway(1)" not in line
    ]
    assert complaints == []


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
