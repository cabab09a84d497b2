"""`slipway bench` on a server, and what came of it."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Sequence

from common import bench_command, bench_environment
from lab import Unmeasurable

TIMEOUT_SECONDS = 7200


def bench(
    binary: pathlib.Path, addresses: Sequence[str], pids: Sequence[int], words: Sequence[object]
) -> tuple[list[dict], list[str]]:
    """The rounds with answers of one run, as `slipway bench --json` has them; and what was wrong with it."""
    called = f"slipway bench {' '.join(map(str, words))}"
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = bench_command(binary, addresses, words, pids, report.name)
        try:
            done = subprocess.run(
                command, env=bench_environment(), capture_output=True, text=True, timeout=TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired as late:
            raise Unmeasurable(f"{called}: no end within {TIMEOUT_SECONDS} s") from late
        # 1 is for errors among the answers, which the report has.
        if done.returncode > 1:
            raise Unmeasurable(f"{called}: {done.stderr.strip()[-500:]}")
        found = json.load(report)
    rounds = [of for of in found["rounds"] if of["answers"]]
    if not rounds:
        said = "; ".join(found["problems"]) or done.stdout.strip()[-500:]
        raise Unmeasurable(f"{called}: no answers: {said}")
    empty = [f"no answers in a round of {of['title']}" for of in found["rounds"] if not of["answers"]]
    return rounds, [*found["problems"], *empty]


def main_operation(round_: dict) -> dict:
    """Of an upload its parts; of all else there is one."""
    return max(round_["operations"], key=lambda of: (of["bytes_per_second"], of["answers"]))


def errors(round_: dict) -> int:
    of = [round_["errors_outside"], *(one["errors"] for one in round_["operations"])]
    return sum(sum(each.values()) for each in of)


def brought_together(rounds: list[dict], middle=statistics.mean) -> dict:
    """A step over its rounds: rates, latencies (us), CPU of servers and load for each answer (us)."""

    def over(figure) -> float | None:
        numbers = [number for number in map(figure, rounds) if number is not None]
        return middle(numbers) if numbers else None

    def latency(name: str):
        return lambda of: (main_operation(of)["latency"] or {}).get(name)

    def cpu_per_gib(of: dict) -> float | None:
        gib = main_operation(of)["bytes_per_second"] * of["seconds"] / 2**30
        return sum(server["cpu_seconds"] for server in of["servers"]) / gib if gib and of["servers"] else None

    step = {
        "concurrency": rounds[0]["concurrency"],
        "rounds": len(rounds),
        "seconds": sum(of["seconds"] for of in rounds),
        # Also what was under way at the end of the measured time.
        "stored": sum(of["stored"]["objects"] for of in rounds),
        "answers": sum(main_operation(of)["answers"] for of in rounds),
        "per_second": over(lambda of: main_operation(of)["per_second"]),
        "mib_per_second": over(lambda of: main_operation(of)["bytes_per_second"] / 2**20),
        "p50": over(latency("p50")),
        "p99": over(latency("p99")),
        "p999": over(latency("p999")),
        "server_cpu_us": over(lambda of: of["server_cpu_us"]),
        "client_cpu_us": over(lambda of: of["client_cpu_us"]),
        "cpu_seconds_per_gib": over(cpu_per_gib),
        "errors": sum(map(errors, rounds)),
    }
    # Of a `slipway bench` that says what was the limit.
    if said := rounds[-1].get("verdict"):
        step["limit"] = said["limit"]
        step["limited_by"] = f"{said['limit'].replace('_', ' ')}: {said['reason']}"
    return step


class Device:
    """Writes of the block device below a directory, from /sys; flushed before each look."""

    def __init__(self, directory: pathlib.Path) -> None:
        number = os.stat(directory).st_dev
        self.directory = directory
        self.stat = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        self.began = self.look()

    def look(self) -> tuple[int, int]:
        """Writes and bytes since it is there."""
        subprocess.run(["sync", "-f", self.directory], check=True)
        fields = self.stat.read_text().split()
        return int(fields[4]), int(fields[6]) * 512

    def since(self) -> tuple[int, int]:
        """Writes and bytes since this was made."""
        writes, size = self.look()
        return writes - self.began[0], size - self.began[1]
