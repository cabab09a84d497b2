"""Study D: the tables of a clustered file system in a cloud, by `slipway plan`."""

import json
import pathlib
import re
import subprocess
import tempfile

from common import environment
from lab import Unmeasurable

from .rows import published
from .run import NO_FIGURE, Run

CLUSTER = ["--spread", "+2n", "--objects", "0", "--sizes", "30g", "--clients", "12"]
# What the preset has, of whose size `--scale` is a share.
STREAM_BYTES = 30 << 30
COUNTS = (5, 6, 10, 12, 15, 18, 20)


class Planner:
    def __init__(self, binary: pathlib.Path) -> None:
        self.binary = binary

    def said(self, *words: object) -> tuple[int, str]:
        command = [self.binary, "plan", *map(str, words)]
        try:
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired as late:
            raise Unmeasurable(f"slipway plan {' '.join(map(str, words))}: no end within 60 s") from late
        return done.returncode, (done.stdout + done.stderr).strip()

    def plan(
        self, nodes: int, kind: str, volumes: int, tib: float, *more: object, volume: str = "gp3"
    ) -> dict:
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            words = ["--nodes", nodes, "--node", kind, "--volumes", volumes, "--volume", volume]
            words += ["--volume-size", tib, *CLUSTER]
            status, said = self.said(*words, *more, "--json", report.name)
            if status == 2:
                raise Unmeasurable(f"slipway plan: {said}")
            return json.load(report)

    def refused(self, *words: object) -> str:
        """What it says of what it does not take; nothing if it takes it."""
        status, said = self.said(*words)
        return said if status == 2 else ""


def measure(run: Run) -> None:
    planner = Planner(run.binary)
    texts = {}
    _, listed = planner.said("--list")
    texts |= tables(listed)
    texts |= volumes(planner, listed)
    _, rows = published()
    for row in rows:
        if row.id in texts:
            run.row(row.id, None, text=texts[row.id], holds=texts[row.id] == row.published)
    best(run, planner)
    contradictions(run, planner, listed)
    streams(run)


def cells(listed: str, beginning: str) -> list[list[str]]:
    """Of the lines of a table that begin so."""
    return [line.split() for line in listed.splitlines() if line.strip().startswith(beginning)]


def tables(listed: str) -> dict[str, str]:
    texts = {}
    for line in cells(listed, "+2n"):
        _, nodes, strips, overhead, _, efficiency, _ = line
        texts[f"D-protection-{nodes}"] = f"{strips}, {overhead} %, {efficiency} %"
    for line in cells(listed, "m5dn."):
        kind, vcpus, gib, network, limit, _ = line
        number = re.search(r"\d+", kind.split(".")[1])[0]
        texts[f"D-node-{number}"] = f"{vcpus}, {gib}, {network}, {int(limit):,}"
    return texts


def volumes(planner: Planner, listed: str) -> dict[str, str]:
    node = ["--nodes", 6, "--node", "m5dn.12xlarge", "--volume", "gp3", *CLUSTER]
    texts = {}
    for key, count, tib, rate in (("D-price-10", 10, 1, 125), ("D-price-5", 5, 2, 250)):
        found = planner.plan(6, "m5dn.12xlarge", count, tib, "--volume-rate", rate)
        sum_ = limit(found, "put", "sum of a node's volumes")["limit"] * 1e6 / 2**20
        texts[key] = f"{sum_:,.0f} MiB/s, {found['price']['volumes'] / 6:.2f} USD/h"
    sixth = planner.plan(6, "m5dn.12xlarge", 6, 1)
    free = limit(sixth, "put", "sum of a node's volumes")["limit"] / 6 * 1e6 / 2**20
    operations = limit(sixth, "put", "operations of a node's volumes")["limit"] / 6
    said = [
        planner.refused(*node, "--volumes", 6, "--volume-size", 1, option, 1e6)
        for option in ("--volume-rate", "--volume-iops")
    ]
    most = [int(re.search(r"at most (\d+)", text)[1]) for text in said]
    texts["D-gp3-rates"] = f"{free:.0f} and {operations:,.0f}; {most[0]:,} and {most[1]:,}"
    rates = []
    for tib in (4, 10):
        found = planner.plan(4, "m5dn.8xlarge", 5, tib, volume="st1")
        rates.append(limit(found, "put", "sum of a node's volumes")["limit"] / 5 * 1e6 / 2**20)
    texts["D-st1-rate"] = f"{rates[0] / 4:.0f} a TiB: {rates[0]:.0f}, {rates[1]:.0f}"
    said = planner.refused(*node, "--volumes", 7, "--volume-size", 1)
    texts["D-counts"] = said.rpartition("use ")[2]
    said = planner.refused(*node, "--volumes", 5, "--volume-size", 17)
    largest = planner.refused(*node, "--volumes", 20, "--volume-size", 16)
    raw = int(re.search(r"and (\d+) are allowed", largest)[1]) / 1024
    texts["D-sizes"] = f"{re.search(r'has (1 to 16 TiB)', said)[1]}; {raw:g} PiB"
    for nodes in (4, 5, 6):
        texts[f"D-largest-{nodes}"] = ", ".join(f"{largest_tib(planner, nodes, n):g}" for n in COUNTS)
    texts["D-st1-allowed"] = st1(planner, listed)
    shares = [float(line[4]) / float(line[3]) for line in cells(listed, "gp3") if line[2] == "largest"]
    texts["D-usable"] = f"{', '.join(f'{share * 100:.0f}' for share in shares)} % of the raw space"
    return texts


def limit(found: dict, operation: str, name: str) -> dict:
    (ceiling,) = [of for of in found["ceilings"] if of["operation"] == operation]
    (binds,) = [of for of in ceiling["bottlenecks"] if of["name"] == name]
    return binds


def largest_tib(planner: Planner, nodes: int, count: int) -> float:
    """By asking for the largest size that there is, and for what it says instead."""
    node = ["--nodes", nodes, "--node", "m5dn.12xlarge", "--volume", "gp3", *CLUSTER]
    said = planner.refused(*node, "--volumes", count, "--volume-size", 16)
    return float(re.search(r"([\d.]+) TiB are the largest", said)[1]) if said else 16.0


def st1(planner: Planner, listed: str) -> str:
    node = ["--nodes", 4, "--node", "m5dn.8xlarge", *CLUSTER, "--volume", "st1"]
    counts = planner.refused(*node, "--volumes", 7, "--volume-size", 4).rpartition("use ")[2]
    sizes = planner.refused(*node, "--volumes", 5, "--volume-size", 5).rpartition("use one of ")[2]
    raw = [float(line[3]) for line in cells(listed, "st1")]
    sizes = sizes.removesuffix(" TiB").replace(", ", " or ")
    return f"{counts.replace(', ', ' or ')}, {sizes}, {min(raw):g} to {max(raw):g}"


def best(run: Run, planner: Planner) -> None:
    """The four figures of its clusters, beside what the plan gives at the most."""
    twelve = planner.plan(6, "m5dn.12xlarge", 12, 1, "--volume-rate", 125)
    six = planner.plan(6, "m5dn.12xlarge", 6, 2, "--volume-rate", 300)
    for operation, key, figure in (("put", "write", 3930), ("get", "read", 10305)):
        of_twelve, of_six = (
            next(of["mb_per_second"] for of in found["ceilings"] if of["operation"] == operation)
            for found in (twelve, six)
        )
        run.row(f"D-{key}-12", of_twelve, figure / of_twelve if key == "write" else None)
        run.row(f"D-{key}-6", of_six, of_six / of_twelve)
    written = next(of["mb_per_second"] for of in twelve["ceilings"] if of["operation"] == "put")
    share = f"{3930 / written * 100:.0f} %"
    run.row("D-write-share", None, text=share, holds=share == "83 %")
    network = limit(twelve, "put", "network into a node")
    from_clients = written / 6
    text = (
        f"{from_clients:.0f} MB/s from clients and {network['demand'] - from_clients:.0f} between nodes count"
        f" against one limit of {network['limit']:,.0f}"
    )
    run.row("D-network", None, text=text, holds=network["demand"] > from_clients and network["limit"] == 6250)


def contradictions(run: Run, planner: Planner, listed: str) -> None:
    smallest = next(line for line in cells(listed, "gp3") if line[1:3] == ["4", "smallest"])
    run.row("D-smallest", None, text=f"{float(smallest[3]):g}", holds=float(smallest[3]) == 20)
    node = ["--nodes", 6, "--node", "m5dn.8xlarge", "--volumes", 6, *CLUSTER, "--volume", "st1"]
    said = planner.refused(*node, "--volume-size", 8)
    run.row("D-st1-8", None, text=said.removeprefix("slipway: ") or "taken", holds=bool(said))


def streams(run: Run) -> None:
    """The load of its sequential test, on this machine."""
    words = ["--preset", "streams", "--scale", f"{run.scale.stream_bytes / STREAM_BYTES:.9f}"]
    words += [*run.scale.preset_timing(run.scale.b_seconds), "--payload", "signed"]
    rates = {}
    for step in run.all_steps(run.ours("files"), "streams", words):
        rates[step["title"].rpartition("ranges of ")[2]] = step["mib_per_second"] * 2**20 / 1e6
    if "128 KiB" in rates:
        by_others = [f"by requests of {size}: {rate:,.0f} MB/s" for size, rate in rates.items()]
        run.row("D-streams", rates["128 KiB"], note=", ".join(by_others[1:]))
    run.reason(["D-streams"], NO_FIGURE)
