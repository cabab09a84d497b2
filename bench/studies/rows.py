"""The published rows, and what our figures are held to."""

import dataclasses
import pathlib
import tomllib

PUBLISHED = pathlib.Path(__file__).with_name("published.toml")
COMPARE = {">=": lambda ours, bound: ours >= bound, "<=": lambda ours, bound: ours <= bound}


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


def published() -> tuple[dict[str, dict], list[Row]]:
    """What the studies were, by letter, and all their rows."""
    read = tomllib.loads(PUBLISHED.read_text())
    return read["study"], [Row(**row) for row in read["row"]]


def holds(wanted: list, ours: float) -> bool:
    sign, bound = wanted
    return COMPARE[sign](ours, bound)


def verdict(row: Row, found: dict | None) -> str:
    """Of a row: met, shape met, missed, measured (no figure to hold it to), or why it can't be said."""
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
        return shape_verdict(row, found)
    if row.not_comparable:
        return f"not comparable: {row.not_comparable}"
    return "**missed**" if row.wanted else "measured"


def shape_verdict(row: Row, found: dict) -> str:
    if "shape" not in found:
        missing = (
            f"{row.shape['over']} is not in this run" if "over" in row.shape else "its shape is not known"
        )
        return f"**missed**; {missing}" if row.wanted else f"not measured: {missing}"
    if found.get("highest", found["shape"]) > row.shape.get("most", float("inf")):
        return "not clear: more than linear: the single gateway was slower than its share"
    if not holds(row.shape["wanted"], found["shape"]):
        return "**missed**, also its shape" if row.wanted else "**missed**"
    if row.wanted:
        return "shape met; the figure is not reached here"
    return f"shape met; not comparable: {row.not_comparable}" if row.not_comparable else "shape met"
