"""The version: it is in Cargo.toml, and all else that names it names the same."""

import re
import subprocess
import tomllib

import pytest
import yaml

from support.server import REPOSITORY, binary

WORKSPACE = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]
VERSION = WORKSPACE["package"]["version"]
# Each is compared below, or tells of the past.
NAMED_IN = (
    "Cargo.toml",
    "Cargo.lock",
    "CHANGELOG.md",
    "README.md",
    "packaging/helm/slipway/Chart.yaml",
    "docs/UPGRADING.md",
    "docs/decisions/",
    "docs/picture/session.svg",
)


def text(path: str) -> str:
    return (REPOSITORY / path).read_text()


def test_the_program_tells_it():
    said = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"slipway {re.escape(VERSION)} \((?:[0-9a-f]{{7}}|unknown)\)\n", said)


def test_so_do_its_manual_and_metrics(make_server, tmp_path):
    subprocess.run([binary(), "man", tmp_path], check=True)
    titles = [re.search(r"^\.TH .*", page.read_text(), re.M)[0] for page in tmp_path.glob("man*/*")]
    assert titles and all(f'"Slipway {VERSION}"' in title for title in titles)
    server = make_server("--ops-listen", "127.0.0.1:0")
    assert server.lines[0].startswith(f"Slipway {VERSION} serves ")
    metrics = subprocess.run(
        ["curl", "-fsS", f"{server.operations}/metrics"], capture_output=True, text=True, check=True
    ).stdout
    assert f'slipway_info{{version="{VERSION}"' in metrics


def test_each_crate_has_the_workspace_s():
    for manifest in REPOSITORY.glob("*/*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text())["package"]["version"] == {"workspace": True}, manifest


def test_the_lock_file_has_it():
    packages = tomllib.loads(text("Cargo.lock"))["package"]
    ours = {package["name"]: package["version"] for package in packages if "source" not in package}
    assert ours["gateway"] == VERSION
    assert set(ours.values()) == {VERSION}


def test_the_chart_has_it():
    chart = yaml.safe_load(text("packaging/helm/slipway/Chart.yaml"))
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_changelog_tells_of_it():
    headings = re.findall(r"^## (.*)", text("CHANGELOG.md"), re.M)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(VERSION)} - \d{{4}}-\d\d-\d\d", headings[1])
    # Lines of several branches are joined there without asking: nothing may come back that was
    # condensed.
    for section in text("CHANGELOG.md").split("\n## ")[2:]:
        assert len(section.split()) < 1500, (
            "more than can be read within five minutes: what a user gets, not how"
        )


def test_the_readme_greets_with_it():
    assert f"\nSlipway {VERSION} serves ./data\n" in text("README.md")


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs a checkout: git knows its files")
def test_nothing_else_names_it():
    """What is not compared above would be forgotten at the next release."""
    pattern = rf"(?<![\d.]){re.escape(VERSION)}(?!\.?\d)"
    listed = subprocess.run(
        ["git", "grep", "-lP", pattern], cwd=REPOSITORY, capture_output=True, text=True
    ).stdout.split()
    assert "Cargo.toml" in listed
    assert [path for path in listed if not path.startswith(NAMED_IN)] == []
