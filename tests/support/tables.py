"""What the server's own sources say it knows: operations, error codes, limits."""

import re
from dataclasses import dataclass
from pathlib import Path

CRATES = Path(__file__).resolve().parents[2] / "crates"
WIRE = CRATES / "s3-wire" / "src"


@dataclass(frozen=True)
class Operation:
    """A row of `operation.rs`."""

    name: str
    method: str
    shape: str
    query: tuple[tuple[str, str], ...]
    header: str | None
    support: str
    """`yes`, `no`, or `unset`: answered as S3 does where nothing is configured."""

    def __str__(self) -> str:
        return self.name


_ROW = re.compile(
    r"^    (?P<name>\w+) (?P<method>Get|Head|Put|Post|Delete|Options) (?P<shape>Service|Bucket|Object) "
    r"(?P<selector>\w+)(?:\((?P<words>[^)]*)\))?, \"(?P<action>[^\"]+)\" (?P<support>yes|unset|no)$",
    re.MULTILINE,
)


def _selector(kind: str, words: list[str]) -> tuple[tuple[tuple[str, str], ...], str | None]:
    match kind, words:
        case "Plain", []:
            return (), None
        case "Sub", [name]:
            return ((name, ""),), None
        case "SubValue", [name, value]:
            return ((name, value),), None
        case "SubBoth", [a, b]:
            return ((a, "1"), (b, "x")), None
        case "Header", [name]:
            return (), name
        case "SubBothHeader", [a, b, name]:
            return ((a, "1"), (b, "x")), name
    raise AssertionError(f"operation.rs has a selector that tables.py does not know: {kind}{words}")


def operations() -> list[Operation]:
    text = (WIRE / "operation.rs").read_text()
    table = text[text.index("\noperations! {") :]
    rows = []
    for row in _ROW.finditer(table[: table.index("\n}")]):
        query, header = _selector(row["selector"], re.findall(r'"([^"]*)"', row["words"] or ""))
        rows.append(
            Operation(row["name"], row["method"].upper(), row["shape"], query, header, row["support"])
        )
    expected = len(re.findall(r'" (?:yes|unset|no)$', table, re.MULTILINE))
    assert rows and len(rows) == expected, f"{len(rows)} rows read of {expected}"
    return rows


def error_codes() -> list[str]:
    """The codes of `error/code.rs`."""
    text = (WIRE / "error" / "code.rs").read_text()
    names = re.findall(r'^    (\w+) \d{3} "', text[text.index("\ncodes! {") :], re.MULTILINE)
    assert len(names) > 40
    return names


def limit(name: str, crate: str = "s3-wire") -> int:
    """A limit of a crate's `limits.rs`, such as `HEADER_SECTION_BYTES_MAX`."""
    text = (CRATES / crate / "src" / "limits.rs").read_text()
    found = re.search(rf"^pub const {name}: \w+ = ([\d_ <*]+);$", text, re.MULTILINE)
    assert found, f"limits.rs has no {name}"
    return int(eval(found[1], {"__builtins__": {}}))
