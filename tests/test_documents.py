"""Documents lead where they say, and to each other."""

import re
from pathlib import Path

import pytest

from support import checksums
from support.server import REPOSITORY

FORMAT = REPOSITORY / "docs" / "FORMAT.md"
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "tests" / "README.md"]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[tuple[Path, str]]:
    """The files and headings that a page leads to, but for other sites."""
    targets = re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page))
    split = [target.partition("#") for target in targets]
    return [((page.parent / path).resolve() if path else page, heading) for path, _, heading in split]


def headings(page: Path) -> set[str]:
    """As GitHub makes anchors of them."""
    found = re.findall(r"^#+ (.*)", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    for path, heading in links(page):
        assert path.exists(), path
        assert not heading or heading in headings(path), f"{path}#{heading}"


def test_the_readme_leads_to_each_page_in_few_steps():
    seen, ahead = set(), [REPOSITORY / "README.md"]
    for _ in range(3):
        seen.update(ahead)
        ahead = [
            path for page in ahead for path, _ in links(page) if path.suffix == ".md" and path not in seen
        ]
    assert {page for page in PAGES if page.is_relative_to(REPOSITORY / "docs")} <= seen | set(ahead)


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next."""
    return re.split(rf"^#+ {heading}$", page.read_text(), flags=re.MULTILINE)[1].partition("\n#")[0]


def sources(name: str) -> list[Path]:
    """The source files of the crates whose path ends so."""
    return [path for path in REPOSITORY.glob("crates/*/src/**/*.rs") if path.as_posix().endswith("/" + name)]


def test_the_format_names_files_that_are_there():
    named = set(re.findall(r"`([\w/]+\.rs)`", FORMAT.read_text()))
    assert len(named) > 20
    assert [name for name in sorted(named) if not sources(name)] == []


def numbers(text: str) -> dict[str, int]:
    """The constants of one byte in a source file, also those that are made of others and of bits."""
    found: dict[str, int] = {}
    for name, value in re.findall(r"^pub const (\w+): u8 = (.+);", text, re.MULTILINE):
        found[name] = 0
        for part in value.split("|"):
            found[name] |= found[part.strip()] if part.strip() in found else int(part, 0)
    return found


def test_numbers_are_read_however_they_are_written():
    text = (
        "pub const BIT: u8 = 0x40;\n/// One.\npub const ONE: u8 = 1;\npub const BOTH: u8 = BIT | 0x80 | 29;\n"
    )
    assert numbers(text) == {"BIT": 0x40, "ONE": 1, "BOTH": 0xC0 + 29}


def test_the_format_has_the_numbers_of_the_code():
    """Fields, algorithms and content types: numbers that are on disk."""
    [tag] = sources("record/tag.rs")
    tags = numbers(tag.read_text())
    bits = {name: tags.pop(name) for name in ("CRITICAL", "ATTACHED")}
    assert bits == {"CRITICAL": 0x80, "ATTACHED": 0x40}
    fields = re.findall(r"^\| (\d+) \| ([A-Z]\w+) \|", section(FORMAT, "Records"), re.MULTILINE)
    assert [(name, int(number)) for number, name in fields] == list(tags.items())

    [checksum] = sources("s3-types/src/checksum.rs")
    variants = re.findall(r"^    (\w+) = (\d+),", checksum.read_text(), re.MULTILINE)
    algorithms = re.findall(r"^\| (\d+) \| (\w+) \| (\d+) \|", section(FORMAT, "Algorithms"), re.MULTILINE)
    assert [(name.lower(), number) for number, name, _ in algorithms] == [
        (variant.lower(), number) for variant, number in variants
    ]
    for _, name, length in algorithms:
        assert len(checksums.digest(name, b"")) == int(length), name

    [content_types] = sources("content_types.rs")
    common = re.findall(r'^    "(.+)",$', content_types.read_text(), re.MULTILINE)
    told = re.findall(r"^ *(\d+) (.+)$", section(FORMAT, "Common content types"), re.MULTILINE)
    assert told == [(str(number), name) for number, name in enumerate(common)]
