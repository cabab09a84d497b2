"""docs/STUDIES.md, from the published rows and a file of measurements."""

from .rows import Row, published, verdict

HEAD = """# Published studies, repeated

<!-- Written by `bench/study.py --write`. Change published.toml, or measure again. -->

Each figure that four published studies give, and ours beside it. One command repeats a study (`bench/study.py a`, `b`, `c` or `d`; `--all` for all four,
`--scale full` with their own sizes, steps and repeats); the rows are in [published.toml](../bench/studies/published.toml), what was measured here in
[measured.json](../bench/studies/measured.json), and both make this page.

The studies had machines that are not here. So a row is held to its figure first; where that is out of reach, to its shape (linearity, a ratio, cost of a request) beside it:

| verdict | |
|---|---|
| met | ours reaches the published figure on this machine; in study D: the plan says the same |
| shape met | the figure is out of reach here, its shape is not |
| missed | neither; or there is no shape to hold it to |
| measured | the study has no figure to hold it to |
| not comparable, not measured | and why |

Where a study has words and no number, they are taken for: a plateau, nearly the same: at least 0.8 of the fastest; (near) linear: at least 0.9; several times faster: at least 2; gains
nothing: at most 1.1; no disaster: at most 1.25 with ten times as many.

MB are 1000 squared as the studies have them, MiB 1024 squared. Beside it: the same load on other servers in the same run. Server CPU is user and system time of the gateway, the kernel's share included.
"""
# Columns that only some steps have.
MORE = {
    "cpu_seconds_per_gib": "CPU s/GiB",
    "linear": "of linear",
    "writes_each": "device writes an object",
    "bytes_each": "device bytes an object",
    "inodes_each": "inodes an object",
    "space_each": "bytes on disk an object",
    "limited_by": "limit",
}
SCALES = {
    "small": "**small scale**: fewer and shorter steps than the study's; single figures vary by a third",
    "full": "full scale: the study's sizes and steps",
    "tiny": "tiny scale: a test of the plumbing; the figures say nothing",
}


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ours(row: Row, found: dict) -> str:
    if "text" in found:
        return found["text"]
    return f"{number(found['value'])} {row.unit}" if "value" in found else ""


def beside(found: dict) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in found.get("others", {}).items())


def shape(row: Row, found: dict) -> str:
    if not row.shape:
        return ""
    sign, bound = row.shape["wanted"]
    said = f"{row.shape['what']}: "
    said += f"**{found['shape']:.2f}**" if "shape" in found else "-"
    return f"{said} (wanted {'at least' if sign == '>=' else 'at most'} {bound:g})"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def rows_table(rows: list[Row], found: dict[str, dict]) -> str:
    lines = [
        "| row | what | published | ours | beside it | shape | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        of = found.get(row.id, {})
        said = verdict(row, of or None)
        more = [row.note, f"by {row.by}" if row.by else "", of.get("note", "")]
        said = ". ".join([said, *filter(None, more)])
        cells = [f"`{row.id}`", row.work, row.published, ours(row, of), beside(of), shape(row, of), said]
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(lines)


def shown(value) -> str:
    return number(value) if isinstance(value, float | int) else value or ""


def micro(value: float | None) -> str:
    if value is None:
        return ""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:.0f} us"


def steps_table(steps: list[dict]) -> str:
    """What was run, each with its rate, latencies and what the server used."""
    head = ["load", "at once", "on", "server", "1/s", "MiB/s", "p50", "p99", "p99.9", "server CPU"]
    head += ["resident MB", "page faults", "switches: waiting, taken", "errors"]
    more = [name for name in MORE if any(name in step for step in steps)]
    head += [MORE[name] for name in more]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for step in steps:
        resident = step.get("resident_mb")
        switches = f"{step['voluntary']:,}, {step['involuntary']:,}" if "voluntary" in step else ""
        faults = f"{step['minor_faults'] + step['major_faults']:,}" if "minor_faults" in step else ""
        cells = [step["title"], str(step["concurrency"]), step["storage"], step["server"]]
        cells += [
            number(step["per_second"]),
            number(step["mib_per_second"]) if step["mib_per_second"] else "",
        ]
        cells += [micro(step[name]) for name in ("p50", "p99", "p999", "server_cpu_us")]
        cells += [f"{resident:.1f}" if resident else "", faults, switches, str(step["errors"] or "")]
        cells += [shown(step.get(name)) for name in more]
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(lines)


def machine(of: dict) -> str:
    at = of["machine"]
    load = f"*load {of['load'][0]:.1f} before, {of['load'][1]:.1f} after*"
    if of.get("nice"):
        load += f", at nice {of['nice']}: what else ran went first, and rates say little; CPU, memory and bytes do"
    return (
        f"{of['date']}, {at['processors']} x {at['processor']}, {at['memory_gib']} GiB, Linux {at['kernel']},"
        f" {at['file_system']}; commit {of['commit']}; {load}; it took {of['seconds']:.0f} s"
    )


def summary(rows: list[Row], studies: dict) -> str:
    """How many rows of each study have which verdict."""
    kinds = ["met", "shape met", "missed", "measured", "not comparable", "not measured"]
    lines = [f"| | rows | {' | '.join(kinds)} |", "|---" * (len(kinds) + 2) + "|"]
    for letter in "ABCD":
        said = [verdict(row, rows_of(studies, letter).get(row.id)) for row in rows if row.study == letter]
        kind = [next((k for k in kinds if text.lstrip("*").startswith(k)), "") for text in said]
        counts = " | ".join(str(kind.count(k) or "") for k in kinds)
        lines.append(f"| [{letter}](#study-{letter.lower()}) | {len(said)} | {counts} |")
    return "\n".join(lines)


def rows_of(studies: dict, letter: str) -> dict:
    return studies.get(letter, {}).get("rows", {})


def render(measured: dict) -> str:
    """The page. `measured` is what bench/study.py writes as JSON."""
    about, rows = published()
    studies = measured["studies"]
    parts = [HEAD, summary(rows, studies)]
    for letter, study in about.items():
        parts.append(f"## Study {letter}\n\n{study['title']}. {study['setup']}")
        if of := studies.get(letter):
            parts.append(f"`{of['command']}`, {SCALES[of['scale']]}.\n{machine(of)}.")
            if of["problems"]:
                parts.append("\n".join(f"- {cell(text)}" for text in of["problems"]))
        else:
            parts.append("Not measured here yet.")
        parts.append(rows_table([row for row in rows if row.study == letter], rows_of(studies, letter)))
        if of and of["steps"]:
            parts.append(f"### Steps of study {letter}\n\n{steps_table(of['steps'])}")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"
