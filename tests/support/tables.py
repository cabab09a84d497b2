"""What the server's own sources say it knows: operations, error codes, limits.

`cargo xtask docs` writes it to tables.json; a test of `xtask` holds it to the code.
"""

import json
from dataclasses import dataclass
from pathlib import Path

_TABLES = json.loads(Path(__file__).with_name("tables.json").read_text())


@dataclass(frozen=True)
class Operation:
    """A row of the operation table."""

    name: str
    method: str
    shape: str
    query: tuple[tuple[str, str], ...]
    """The parameters that ask for it, with values that may stand there."""
    header: str | None
    support: str
    """`served`, `refused`, or `unset`: answered as S3 does where nothing is configured."""

    def __str__(self) -> str:
        return self.name


def _query(parameters: list[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    values = ("1", "x") if len(parameters) == 2 else ("",) * len(parameters)
    return tuple(
        (name, example if value is None else value)
        for (name, value), example in zip(parameters, values, strict=True)
    )


def operations() -> list[Operation]:
    rows = [dict(row) for row in _TABLES["operations"]]
    return [Operation(query=_query(row.pop("parameters")), **row) for row in rows]


def error_codes() -> list[str]:
    """The names of `ErrorCode`."""
    return list(_TABLES["error_codes"])


def limit(name: str) -> int:
    """A limit of a crate's `limits.rs`, such as `HEADER_SECTION_BYTES_MAX`; xtask's tables.rs lists them."""
    return _TABLES["limits"][name]
