"""What each suite found on each file system, kept beside its output until it runs there again, and a table of it."""

import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

FILE = "results.json"
REFUSED = "refused"
EXPECTED = "expected to fail"


@dataclass(frozen=True)
class Result:
    suite: str
    """Or what the file system lacks, if the `verdict` is `REFUSED`."""
    verdict: str
    tests: Counter[str] = field(default_factory=Counter)
    kernel: str = field(default_factory=lambda: os.uname().release)
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d", time.gmtime()))

    @property
    def is_refusal(self) -> bool:
        return self.verdict == REFUSED


def keep(directory: Path, result: Result) -> None:
    results = {one.suite: one for one in kept(directory)} | {result.suite: result}
    # `asdict` would count the pairs of a Counter.
    rows = [vars(one) | {"tests": dict(one.tests)} for one in results.values()]
    (directory / FILE).write_text(json.dumps(rows, indent=1))


def kept(directory: Path) -> list[Result]:
    path = directory / FILE
    rows = json.loads(path.read_text()) if path.exists() else []
    return [Result(**(row | {"tests": Counter(row["tests"])})) for row in rows]


def table(directories: list[Path]) -> str:
    """A row for each file system: in Markdown."""
    head = "| file system | Linux | start | suites passed | tests passed | skipped | but | last run |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    lines += [_row(path.name, found) for path in directories if (found := kept(path))]
    return "\n".join(lines)


def _row(name: str, results: list[Result]) -> str:
    refusals = [one.suite for one in results if one.is_refusal]
    suites = [one for one in results if not one.is_refusal]
    tests = sum((one.tests for one in suites), Counter())
    passed = [one for one in suites if one.verdict == "passed"]
    remarks = [f"{one.suite} {remark}" for one in suites if (remark := _remark(one))]
    cells = [
        f"`{name}`",
        " ".join(sorted({one.kernel for one in results})),
        _start(refusals, served=bool(suites)),
        f"{len(passed)} of {len(suites)}" if suites else "",
        str(tests["passed"]) if suites else "",
        str(tests["skipped"]) if suites else "",
        "; ".join(remarks),
        max(one.date for one in results),
    ]
    return f"| {' | '.join(cells)} |"


def _remark(result: Result) -> str:
    """What is to be said of a suite in which not all is as it should be."""
    if result.verdict != "passed":
        return result.verdict
    expected = result.tests[EXPECTED]
    return f"passed ({expected} {EXPECTED})" if expected else ""


def _start(refusals: list[str], served: bool) -> str:
    said = [f"refused: {lack}" for lack in refusals]
    if served:
        said.append("with records in files served" if refusals else "served")
    return "; ".join(said)
