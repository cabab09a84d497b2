"""What the studies share: the servers, the steps that were run, and what became of each row."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import statistics
import tempfile
from collections.abc import Iterator

from lab import Unmeasurable
from servers import PATH, NotStarted, Running, nginx, started

from .load import bench, brought_together
from .scale import Scale

OURS = "slipway"
NGINX = "nginx"
# CPU time is counted in steps of 10 ms, so that short steps show none.
NO_FIGURE = "its step failed, or was too short to see what it took"
# The names under which `--server` must give them, for rows that are held to them.
VERSITYGW, MINIO = "versitygw", "minio"


@dataclasses.dataclass(frozen=True)
class Server:
    """A name, and the command with {address} and, if it keeps what it gets, {dir}."""

    name: str
    command: str

    @property
    def storage(self) -> str:
        return "files" if "{dir}" in self.command else "null"


@dataclasses.dataclass
class Run:
    """One study being measured."""

    binary: pathlib.Path
    directory: pathlib.Path
    scale: Scale
    durability: str
    others: list[Server]
    with_nginx: bool
    rows: dict[str, dict] = dataclasses.field(default_factory=dict)
    steps: list[dict] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)

    def ours(self, storage: str, durability: str | None = None) -> Server:
        where = "{dir}" if storage == "files" else "null:"
        kept = f" --durability {durability or self.durability}"
        return Server(OURS, f"{self.binary} serve --listen {{address}}{kept} {where}")

    def servers(self, storage: str) -> list[Server]:
        """Ours first, then all others of that kind."""
        found = [self.ours(storage), *(other for other in self.others if other.storage == storage)]
        if self.with_nginx and storage == "files":
            found.append(Server(NGINX, "{dir}"))
        return found

    @contextlib.contextmanager
    def started(self, server: Server, directory: pathlib.Path | None = None) -> Iterator[Running]:
        """On a fresh directory, which is removed, unless one is given."""
        with contextlib.ExitStack() as stack:
            if directory is None:
                made = tempfile.TemporaryDirectory(dir=self.directory, prefix="server-")
                directory = pathlib.Path(stack.enter_context(made))
            starting = nginx(directory) if server.name == NGINX else started(server.command, directory)
            yield stack.enter_context(starting)

    def step(
        self, server: Server, title: str, words: list, *, storage: str = "", of: str = ""
    ) -> dict | None:
        """One load on a server of its own; None, and a problem, if it could not be measured."""
        steps = self.all_steps(server, title, words, storage=storage, of=of)
        return steps[0] if steps else None

    def all_steps(
        self, server: Server, title: str, words: list, *, storage: str = "", of: str = ""
    ) -> list[dict]:
        """All parts of one load on a server of its own; none, and a problem, if it could not be measured."""
        try:
            with self.started(server) as running:
                steps = self.all_on(running, server, title, words, storage=storage, of=of)
        except (Unmeasurable, NotStarted) as error:
            self.problem(f"{title}, {server.name}: {error}")
            return []
        # In its life the server did all of them: with the first one it is shown.
        steps[0] |= running.usage
        return steps

    def on(self, running: Running, server: Server, title: str, words: list, *, storage="", of="") -> dict:
        """One load on a server that runs. `of` is "mean" or "median" of its rounds.

        Of a load that has parts, one after the other, it is the first; the others are only noted.
        """
        return self.all_on(running, server, title, words, storage=storage, of=of)[0]

    def all_on(
        self, running: Running, server: Server, title: str, words: list, *, storage="", of=""
    ) -> list[dict]:
        """The same, with a step for each part."""
        return self.noted(self.rounds(running, server, words), server, title, words, storage=storage, of=of)

    def rounds(self, running: Running, server: Server, words: list) -> list[dict]:
        """Of one `slipway bench`."""
        if server.name == NGINX:
            words = [*words, "--bucket", "bench", "--keep"]
        rounds, problems = bench(self.binary, [running.address], running.pids, words)
        for text in problems:
            self.problem(f"{server.name}: {text}")
        return rounds

    def noted(
        self, rounds: list[dict], server: Server, title: str, words: list, *, storage="", of=""
    ) -> list[dict]:
        """Steps of rounds, one for each part."""
        middle = statistics.median if of == "median" else statistics.mean
        parts: dict[str, list[dict]] = {}
        for round_ in rounds:
            parts.setdefault(round_["title"], []).append(round_)
        steps = []
        for name, own in parts.items():
            called = f"{title}: {name.rpartition(', ')[2]}" if len(parts) > 1 else title
            step = {"title": called, "server": server.name, "storage": storage or server.storage}
            step |= brought_together(own, middle)
            self.say(step)
            # In an open loop what was due and not sent in time is an error too: the step shows it.
            if step["errors"] and "--rate" not in words:
                self.problem(f"{called}, {server.name}: {step['errors']} errors")
            steps.append(step)
        self.steps += steps
        return steps

    def say(self, step: dict) -> None:
        cpu = step.get("server_cpu_us")
        print(
            f"{step['title']:34} {step['concurrency']:4} at once  {step['storage']:12} {step['server']:10}"
            f" {step['per_second']:9.0f}/s {step['mib_per_second']:7.0f} MiB/s"
            f" {f'{cpu:9.0f} us' if cpu else '           -'}",
            flush=True,
        )

    def problem(self, text: str) -> None:
        print(f"problem: {text}", flush=True)
        self.problems.append(text)

    def row(self, id: str, value: float | None, shape: float | None = None, **more) -> None:
        """What is found for a published row."""
        found = {"value": value, "shape": shape, **more}
        if value is None and "holds" not in more:
            found = {"reason": NO_FIGURE}
        self.rows[id] = {name: of for name, of in found.items() if of is not None}

    def reason(self, ids: list[str], text: str) -> None:
        """Why these rows have no figure in this run."""
        for id in ids:
            self.rows.setdefault(id, {"reason": text})


def lacking(*programs: str) -> str:
    """Why something can't be done here that needs root and these; empty if it can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in programs if not shutil.which(name, path=PATH)]
    return f"needs {', '.join(missing)}" if missing else ""


def ratio(least: list[float], over: list[float]) -> float | None:
    return min(least) / max(over) if least and over and max(over) else None


def per_server(steps: dict[tuple, dict | None], figure: str, best=max) -> dict[str, float]:
    """The best figure of each server among steps, whose keys begin with the server's name."""
    found: dict[str, list[float]] = {}
    for (name, *_), step in steps.items():
        if step and step.get(figure) is not None:
            found.setdefault(name, []).append(step[figure])
    return {name: best(numbers) for name, numbers in found.items()}
