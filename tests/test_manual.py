"""The manual that `slipway man` writes for packages."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.server import REPOSITORY, binary


def slipway(*words: str) -> str:
    done = subprocess.run([binary(), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("man")
    slipway("man", str(directory), "--date", "2026-11-22")
    return {path.name: path for path in directory.glob("man*/*")}


def plain(page: Path) -> str:
    """Without roff's own characters."""
    text = re.sub(r"\\f[BIR]|\\&", "", page.read_text())
    return text.replace(r"\*(Aq", "'").replace(r"\(ti", "~").replace("\\", "")


def commands(*above: str) -> list[tuple[str, ...]]:
    """This one, and all below it, by what help says."""
    below = re.search(r"^Commands:\n((?:  .*\n)+)", slipway(*above, "--help"), re.MULTILINE)
    names = re.findall(r"^  (\S+)", below[1], re.MULTILINE) if below else []
    return [above, *(found for name in names if name != "help" for found in commands(*above, name))]


def test_each_command_has_a_page_with_all_its_options(pages):
    found = commands()
    assert ("import", "versitygw") in found
    assert {"-".join(("slipway", *words)) + ".1" for words in found} == set(pages) - {"slipway.toml.5"}
    for words in found:
        text = plain(pages["-".join(("slipway", *words)) + ".1"])
        flags = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", slipway(*words, "--help"), re.MULTILINE)
        assert "--help" in flags
        for flag in flags:
            assert re.search(rf"^(-\w, )?{flag}\b", text, re.MULTILINE), (words, flag)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
            assert f".SH {section}\n" in text or f'.SH "{section}"\n' in text, (words, section)


def test_each_page_that_is_named_exists(pages):
    names = {name.removesuffix(".1") for name in pages} | {"slipway.toml"}
    for page in pages.values():
        for name, section in re.findall(r"(slipway[\w.-]*)\((\d)\)", plain(page)):
            assert name in names and section == ("5" if name == "slipway.toml" else "1"), (page.name, name)


def test_each_key_of_the_file_is_in_its_page(pages):
    reference = (REPOSITORY / "docs" / "CONFIGURATION.md").read_text()
    rows = re.findall(r"^\| `--([\w-]+)` \| `(\w+)`", reference, re.MULTILINE)
    assert len(rows) > 30
    text = plain(pages["slipway.toml.5"])
    for key, variable in rows:
        if key != "config":
            assert re.search(rf"^\.TP\n{key}( \[default: .*\])?\n", text, re.MULTILINE), key
            assert f"Variable: {variable}." in text
    assert ".TP\nconfig\n" not in text


@pytest.mark.skipif(not shutil.which("man"), reason="needs man (Debian's package man-db)")
def test_pages_render(pages):
    for path in pages.values():
        command = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), path.name


@pytest.mark.skipif(not shutil.which("mandoc"), reason="needs mandoc (Debian's package mandoc)")
def test_pages_have_nothing_to_warn_of(pages):
    done = subprocess.run(
        ["mandoc", "-Tlint", "-W", "warning", *pages.values()], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(not shutil.which("lexgrog"), reason="needs lexgrog (Debian's package man-db)")
def test_apropos_understands_them(pages):
    for name, path in pages.items():
        done = subprocess.run(["lexgrog", path], capture_output=True, text=True)
        assert done.returncode == 0 and f'"{name[:-2]} - ' in done.stdout, done.stdout
