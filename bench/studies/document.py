"""docs/STUDIES.md, from the published rows and a file of measurements."""

from .rows import Row, published, verdict

HEAD = """# Published studies, repeated

<!-- Written by `bench/study.py --write`. Change published.toml, or measure again. -->

Each figure that four published studies give, and ours beside it; of a study that was measured at two scales the larger comes first and counts. One command repeats a study (`bench/study.py a`, `b`, `c` or `d`; `--all` for all four,
`--scale full` with their own sizes, steps and repeats); the rows are in [published.toml](../bench/studies/published.toml), what was measured here in
[measured.json](../bench/studies/measured.json), and both make this page.

Why they are compared as they are: [decision 0029](decisions/0029-published-studies.md). The studies had machines that are not here. So a row is held to its figure first; where that is out of reach, to its shape (linearity, a ratio, cost of a request) beside it:

| verdict | |
|---|---|
| met | ours reaches the published figure on this machine; in study D: the plan says the same |
| shape met | the figure is out of reach here, its shape is not |
| missed | neither; or there is no shape to hold it to |
| measured | the study has no figure to hold it to |
| not clear, not comparable, not measured | and why |

Where a study has words and no number, they are taken for: a plateau, nearly the same: at least 0.8 of the fastest; (near) linear: at least 0.9; several times faster: at least 2; gains
nothing: at most 1.1; no disaster: at most 1.25 with ten times as many.

MB are 1000 squared as the studies have them, MiB 1024 squared. Beside it: the same load on other servers in the same run. Server CPU is user and system time of the gateway, the kernel's share included.
"""
SCALES = {
    "small": "**small scale**: fewer and shorter steps than the study's, objects of half a GiB and less in"
    " place of 10; single figures vary by a third",
    "full": "**full scale**: the study's sizes, steps, times and repeats",
    "full, other times": "**full sizes, other times**: the study's sizes and steps, for the times and repeats of this command",
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


def rows_table(rows: list[Row], found: dict[str, dict], nice: int = 0) -> str:
    lines = [
        "| row | what | published | ours | beside it | shape | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        of = found.get(row.id, {})
        said = verdict(row, of or None, nice)
        more = [row.note, f"by {row.by}" if row.by else "", of.get("note", "")]
        said = ". ".join([said, *filter(None, more)])
        cells = [f"`{row.id}`", row.work, row.published, ours(row, of), beside(of), shape(row, of), said]
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(lines)


def micro(value: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:.0f} us"


def large(step: dict) -> bool:
    """What a GiB costs says something of objects of at least a MiB."""
    return step["mib_per_second"] >= step["per_second"] * 0.99


def switches(step: dict) -> str:
    return f"{step['voluntary']:,}, {step['involuntary']:,}" if "voluntary" in step else ""


def faults(step: dict) -> str:
    return f"{step['minor_faults'] + step['major_faults']:,}" if "minor_faults" in step else ""


def column(name: str, show=lambda value: number(value)):
    """A column that only some steps have."""
    return lambda step: "" if step.get(name) is None else show(step[name])


def quantile(name: str, least: int):
    """A latency, where there are so many answers in a round that it is not just the slowest."""
    return lambda step: column(name, micro)(step) if step["answers"] >= least * step["rounds"] else ""


COLUMNS = {
    "load": column("title", str),
    "at once": column("concurrency", str),
    "on": column("storage", str),
    "server": column("server", str),
    "answers": column("answers", lambda value: f"{value:,}"),
    "1/s": column("per_second"),
    "MiB/s": lambda step: number(step["mib_per_second"]) if step["mib_per_second"] else "",
    "p50": column("p50", micro),
    "p99": quantile("p99", 100),
    "p99.9": quantile("p999", 1000),
    "server CPU": column("server_cpu_us", micro),
    "CPU s/GiB": lambda step: column("cpu_seconds_per_gib")(step) if large(step) else "",
    "resident MB": column("resident_mb"),
    "page faults": faults,
    "switches: waiting, taken": switches,
    "of linear": column("linear"),
    "device writes an object": column("writes_each"),
    "device bytes an object": column("bytes_each"),
    "inodes an object": column("inodes_each"),
    "bytes on disk an object": column("space_each"),
    "limit": column("limited_by", str),
    "errors": lambda step: str(step["errors"] or ""),
}


def steps_table(steps: list[dict]) -> str:
    """What was run, each with its rate, latencies and what the server used; without empty columns."""
    columns = {name: [cell(show(step)) for step in steps] for name, show in COLUMNS.items()}
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(cells)} |" for cells in zip(*columns.values(), strict=True)]
    return "\n".join(lines)


def machine(study: dict) -> str:
    at = study["machine"]
    load = f"*load {study['load'][0]:.1f} before, {study['load'][1]:.1f} after*"
    said = f"{study['date']}, {at['processors']} x {at['processor']}, {at['memory_gib']} GiB"
    said += f", Linux {at['kernel']}, {at['file_system']}; commit {study['commit']}"
    if study.get("origin"):
        said += f" (**{study['origin']}**)"
    said += f"; it took {study['seconds']:.0f} s; {load}."
    if study.get("nice"):
        said += (
            f" **At nice {study['nice']}**: what else ran went first, so that a rate that is missed is not"
        )
        said += " clear, and latencies say little; CPU, memory and bytes do."
    return said


def summary(rows: list[Row], studies: dict) -> str:
    """How many rows of each study have which verdict."""
    kinds = ["met", "shape met", "missed", "measured", "not clear", "not comparable", "not measured"]
    lines = [f"| | rows | {' | '.join(kinds)} |", "|---" * (len(kinds) + 2) + "|"]
    for letter in sorted({row.study for row in rows}):
        found, nice = rows_of(studies, letter)
        said = [verdict(row, found.get(row.id), nice) for row in rows if row.study == letter]
        kind = [next((k for k in kinds if text.lstrip("*").startswith(k)), "") for text in said]
        counts = " | ".join(str(kind.count(k) or "") for k in kinds)
        lines.append(f"| [{letter}](#study-{letter.lower()}) | {len(said)} | {counts} |")
    return "\n".join(lines)


def rows_of(studies: dict, letter: str) -> tuple[dict, int]:
    """Of its largest scale, and at what nice."""
    if letter not in studies:
        return {}, 0
    return studies[letter][0]["rows"], studies[letter][0]["nice"]


def section(run: dict, rows: list[Row], steps_title: str) -> list[str]:
    """One run of a study."""
    scale = "full, other times" if run["scale"] == "full" and run.get("other_times") else run["scale"]
    parts = [f"`{run['command']}`, {SCALES[scale]}.\n{machine(run)}"]
    if run["problems"]:
        parts.append("\n".join(f"- {cell(text)}" for text in run["problems"]))
    parts.append(rows_table(rows, run["rows"], run["nice"]))
    if run["steps"]:
        parts.append(f"### {steps_title}\n\n{steps_table(run['steps'])}")
    return parts


def render(measured: dict) -> str:
    """The page. `measured` is what bench/study.py writes as JSON."""
    about, all_rows = published()
    studies = measured["studies"]
    parts = [HEAD, summary(all_rows, studies)]
    for letter, study in about.items():
        rows = [row for row in all_rows if row.study == letter]
        parts.append(f"## Study {letter}\n\n{study['title']}. {study['setup']}")
        if letter not in studies:
            parts += ["Not measured here yet.", rows_table(rows, {})]
        for run in studies.get(letter, []):
            parts += section(run, rows, f"Steps of study {letter}, {run['scale']}")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"
