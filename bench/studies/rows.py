"""The published rows, and what our figures are held to."""

import dataclasses
import pathlib
import tomllib

PUBLISHED = pathlib.Path(__file__).with_name("published.toml")
COMPARE = {">=": lambda ours, bound: ours >= bound, "<=": lambda ours, bound: ours <= bound}
# Units of figures that suffer when other work runs. CPU, memory and bytes do not.
RATES = {"MiB/s", "MiB/s with 5", "MB/s", "MB/s with 5", "1/s", "1/s with 5", "1/s at 16 KiB", "minutes"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A published figure; published.toml says what the fields are."""

    id: str
    work: str
    published: str
    unit: str = ""
    wanted: list | None = None
    shape: dict | None = None
    not_comparable: str = ""
    not_measured: str = ""
    note: str = ""
    by: str = ""

    @property
    def study(self) -> str:
        return self.id[0]

    @property
    def is_rate(self) -> bool:
        return self.unit in RATES


def published() -> tuple[dict[str, dict], list[Row]]:
    """What the studies were, by letter, and all their rows."""
    read = tomllib.loads(PUBLISHED.read_text())
    return read["study"], [Row(**row) for row in read["row"]]


def holds(wanted: list, ours: float) -> bool:
    sign, bound = wanted
    return COMPARE[sign](ours, bound)


def verdict(row: Row, found: dict | None, nice: int = 0) -> str:
    """Of a row: met, shape met, missed, measured (no figure to hold it to), or why it can't be said.

    `nice` is what the run had: other work may have been the reason for a rate that is missed.
    """
    found = found or {}
    if "holds" in found:
        return "met" if found["holds"] else "**missed**"
    if "value" not in found:
        return f"not measured: {row.not_measured or found.get('reason') or 'not in this run'}"
    if "unclear" in found:
        return f"not clear: {found['unclear']}"
    if row.wanted and not row.not_comparable and holds(row.wanted, found["value"]):
        return "met"
    if row.shape:
        return shape_verdict(row, found, nice)
    if row.not_comparable:
        return f"not comparable: {row.not_comparable}"
    return missed(row, found, nice) if row.wanted else "measured"


def missed(row: Row, found: dict, nice: int, more: str = "") -> str:
    if "doubt" in found:
        return f"not clear: {found['doubt']}"
    if nice > 0 and row.is_rate:
        return f"not clear: at nice {nice}"
    return f"**missed**{more}"


def shape_verdict(row: Row, found: dict, nice: int) -> str:
    if "shape" not in found:
        missing = (
            f"{row.shape['over']} is not in this run" if "over" in row.shape else "its shape is not known"
        )
        return missed(row, found, nice, f"; {missing}") if row.wanted else f"not measured: {missing}"
    if found.get("highest", found["shape"]) > row.shape.get("most", float("inf")):
        return "not clear: more than linear: the single gateway was slower than its share"
    if not holds(row.shape["wanted"], found["shape"]):
        return missed(row, found, nice, ", also its shape" if row.wanted else "")
    if row.wanted:
        return "shape met; the figure is not reached here"
    return f"shape met; not comparable: {row.not_comparable}" if row.not_comparable else "shape met"
