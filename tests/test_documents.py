"""Documents lead where they say, and to each other."""

import re
from pathlib import Path

import pytest

from support.server import REPOSITORY

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
