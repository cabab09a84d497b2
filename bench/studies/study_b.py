"""Study B: one to five gateways on one tree, each with an equal share of the processors (lab.py)."""

import os
import pathlib
import statistics
import tempfile

from lab import PORT, Lab, Unmeasurable

from .load import bench, brought_together
from .run import NO_FIGURE, OURS, Run, lacking
from .scale import MIB

# Of all processors, for all gateways; and of a gateway's share in GETs, or the load would set
# the rate.
GATEWAYS_SHARE, GET_SHARE = 0.25, 0.4
PUTS_AT_ONCE, HEADS_AT_ONCE = 4, 16
ROWS = ["B-parts-few", "B-parts-many", "B-get", "B-put", "B-head"]


def measure(run: Run) -> None:
    if lack := lacking("ip", "nsenter"):
        run.reason(ROWS, lack)
        return
    found: dict[tuple[str, int], list[dict]] = {}
    try:
        for _ in range(run.scale.repeat_b):
            one_round(run, found)
    except Unmeasurable as error:
        run.problem(f"study B: {error}")
        run.reason(ROWS, str(error))
    # Linear within a round, whose steps share what else the machine did; then the middle of the
    # rounds.
    linear = {key: statistics.median(of["linear"] for of in rounds) for key, rounds in found.items()}
    rates = {key: statistics.median(of["rate"] for of in rounds) for key, rounds in found.items()}
    fill_rows(run, linear, rates)


def one_round(run: Run, found: dict) -> None:
    share = os.cpu_count() * GATEWAYS_SHARE / max(run.scale.gateways)
    first: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(dir=run.directory, prefix="study-b-") as work,
        tempfile.TemporaryDirectory(prefix="study-b-") as logs,
    ):
        tree = pathlib.Path(work) / "tree"
        tree.mkdir()
        with Lab(run.binary, tree, pathlib.Path(logs)) as lab:
            for count in run.scale.gateways:
                for number in range(len(lab.gateways) + 1, count + 1):
                    lab.add(number, run.durability, share)
                for title, words, part in loads(run, count):
                    for gateway in lab.gateways.values():
                        gateway.share.set(share * part)
                    for step in measured(run, lab, title, words):
                        name = f"{title}, {step['concurrency'] // count} threads"
                        rate = step["per_second"] if title == "HEAD" else step["mib_per_second"]
                        linear = of_linear(first, name, count, rate)
                        if linear is not None:
                            step["linear"] = linear
                            found.setdefault((name, count), []).append({"rate": rate, "linear": linear})


def of_linear(first: dict[str, float], name: str, count: int, rate: float) -> float | None:
    """The share of `count` times what one gateway did, which is kept in `first`; None if that is not known."""
    if count == 1:
        first[name] = rate
    return rate / (first[name] * count) if rate and first.get(name) else None


def measured(run: Run, lab: Lab, title: str, words: list) -> list[dict]:
    """A step for each number of requests at once."""
    addresses = [f"{gateway.address}:{PORT}" for gateway in lab.gateways.values()]
    steps = []
    try:
        pids = [gateway.pid for gateway in lab.gateways.values()]
        rounds, problems = bench(run.binary, addresses, pids, words)
    except Unmeasurable as error:
        rounds, problems = [], [str(error)]
    for text in problems:
        run.problem(f"study B, {title}, {len(addresses)} gateways: {text}")
    for round_ in rounds:
        step = {"title": title, "server": OURS, "storage": f"{len(addresses)} gateways"}
        step |= brought_together([round_])
        run.steps.append(step)
        run.say(step)
        steps.append(step)
    return steps


def loads(run: Run, count: int) -> list[tuple[str, list, float]]:
    """Title, words, and what part of its share a gateway has."""
    scale = run.scale
    timed = [*scale.timing(scale.b_seconds, 0.5), "--payload", "signed"]
    found = [
        ("HEAD", ["head", "--size", "4k", "--objects", 64, "-c", HEADS_AT_ONCE * count, *timed], 1.0),
        ("PUT 1 MiB", ["put", "--size", "1m", "--objects", 64, "-c", PUTS_AT_ONCE * count, *timed], 1.0),
    ]
    for threads in scale.put_threads:
        size = scale.b_bytes or 2 * scale.b_part_bytes * threads * count
        words = [
            "multipart",
            "--size",
            size,
            "--part-size",
            scale.b_part_bytes,
            "-c",
            threads * count,
            "--count",
            1,
        ]
        found.append(("PUT in parts", [*words, "--payload", "signed", "--timeout", "900s"], 1.0))
    at_once = ",".join(str(threads * count) for threads in scale.get_threads)
    words = ["get", "--size", scale.b_get_bytes, "--range", scale.b_part_bytes, "--objects", 1, "-c", at_once]
    words += [*scale.timing(scale.b_get_seconds, 1), "--payload", "signed"]
    found.append(("GET in ranges", [*words, "--timeout", "900s"], GET_SHARE))
    return found


def fill_rows(run: Run, linear: dict, rates: dict) -> None:
    most = max(run.scale.gateways)

    def of(table: dict, name: str, counts) -> list[float]:
        return [value for (title, count), value in table.items() if title == name and count in counts]

    def row(id: str, name: str, counts, factor: float = 1.0) -> None:
        value, shares = of(rates, name, [most]), of(linear, name, counts)
        if value and shares:
            all_shares = of(linear, name, run.scale.gateways)
            run.row(id, value[0] * factor, min(shares), highest=max(shares), linear=all_shares)

    more = [count for count in run.scale.gateways if count > 1]
    row("B-parts-few", f"PUT in parts, {min(run.scale.put_threads)} threads", more)
    many = [count for count in more if count <= 3]
    row("B-parts-many", f"PUT in parts, {max(run.scale.put_threads)} threads", many)
    row("B-put", f"PUT 1 MiB, {PUTS_AT_ONCE} threads", [most], MIB / 1e6)
    row("B-head", f"HEAD, {HEADS_AT_ONCE} threads", [most])
    names = [f"GET in ranges, {threads} threads" for threads in run.scale.get_threads]
    shares = [share for name in names for share in of(linear, name, [most])]
    values = [rate for name in names for rate in of(rates, name, [most])]
    if shares:
        run.row("B-get", max(values), statistics.median(shares), highest=max(shares), linear=shares)
    run.reason(ROWS, NO_FIGURE)
