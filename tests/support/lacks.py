"""What a file system may lack, and what the server says of it, as the table of docs/SEMANTICS.md has it."""

import itertools
from pathlib import Path

UNSUITABLE = "The file system of this bucket cannot hold objects; the server's log says why."
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "SEMANTICS.md"


def table_of_lacks() -> dict[str, tuple[str, str]]:
    """What becomes of a tree whose file system lacks something, and the sentence that says so, by the lack's name."""
    lines = itertools.dropwhile(lambda line: not line.startswith("| lack |"), _PAGE.read_text().splitlines())
    rows = itertools.takewhile(lambda line: line.startswith("|"), itertools.islice(lines, 2, None))
    cells = (line.strip("| ").split(" | ") for line in rows)
    return {name: (what, says) for name, what, says in cells}
