"""docs/SECURITY-CASES.md names tests that are there, and each test of attacks is in it."""

import ast
import re
from functools import cache
from pathlib import Path

from support.server import REPOSITORY

PAGE = REPOSITORY / "docs" / "SECURITY-CASES.md"
TESTS = REPOSITORY / "tests"
# `test_iam.py::TestKeys::test_name`, or `iam/src/tokens/tests.rs::name` of a crate.
CITED = re.compile(r"`([\w/.-]+\.(?:py|rs))::([\w:]+)`")
NOT_HERE = "not here: "


@cache
def of_python(path: Path) -> frozenset[str]:
    """The tests of a file and their classes, as pytest names them."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found.add(node.name)
            names = [inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)]
            found |= {f"{node.name}::{name}" for name in names if name.startswith("test_")}
    return frozenset(found)


@cache
def of_rust(path: Path) -> frozenset[str]:
    """The tests of a file: functions after `#[test]`, in `proptest!` as well."""
    after = r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)"
    return frozenset(re.findall(after, path.read_text()))


def is_there(file: str, name: str) -> bool:
    path = (TESTS if file.endswith(".py") else REPOSITORY / "crates") / file
    return path.is_file() and name in (of_python if file.endswith(".py") else of_rust)(path)


def rows() -> list[list[str]]:
    """The cells of all rows, without heads and rulers."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [cells for cells in found if cells[0] != "attack" and not cells[0].startswith("pattern")]


def cited() -> list[tuple[str, str]]:
    return CITED.findall(PAGE.read_text())


def test_the_page_was_read():
    assert len(rows()) > 100 and len(cited()) > 200


def test_each_test_that_is_named_is_there():
    assert [f"{file}::{name}" for file, name in cited() if not is_there(file, name)] == []


def test_each_attack_has_a_test_or_a_reason():
    for cells in rows():
        assert len(cells) == 3 and all(cells), cells
        assert CITED.search(cells[2]) or cells[2].startswith(NOT_HERE), cells


def test_nothing_else_is_written_as_a_test():
    """A misspelt name would be looked for by nobody."""
    text = CITED.sub("", PAGE.read_text())
    assert re.findall(r"\S*(?:\.py|\.rs)::\S*", text) == []


def test_each_test_of_attacks_is_on_the_page():
    """Itself, or its class."""
    named = set(cited())
    for path in sorted(TESTS.glob("test_security_*.py")):
        if path.name == Path(__file__).name:
            continue
        for name in of_python(path):
            classes = {name.partition("::")[0], name}
            is_class = name.startswith("Test") and "::" not in name
            assert is_class or any((path.name, one) in named for one in classes), f"{path.name}::{name}"


def test_a_test_that_is_not_there_is_missed():
    assert is_there("test_iam.py", "TestKeys::test_a_secret_is_shown_once")
    assert not is_there("test_iam.py", "TestKeys::test_a_secret_is_shown_twice")
    assert not is_there("test_iam.py", "test_a_secret_is_shown_once")
    assert is_there("iam/src/tokens/tests.rs", "a_bit_flipped_cut_or_added")
    assert not is_there("iam/src/tokens/tests.rs", "claims")
    assert not is_there("iam/src/no-file.rs", "claims")
