"""Programs and S3 clients at work on the very same names: nothing that a program has saved is lost,
unless S3 was told to replace it.

A round has a directory of its own, with a few names that are files and directories of one another
(`a`, `a/b`, `a/b/c`, ...). Each name is written to by programs alone, by S3 clients alone, or by
both. Programs save (a temporary file, renamed over the old one), write to files where they are,
truncate, move and remove them, again and again as long as the clients are busy; these PUT, delete,
copy and complete uploads, through two gateways. Then all is looked at by file and through both
gateways, and must be explained: for each name there must be one order of all that was done to it,
in which nothing comes before what had ended before it began, and in which all that was read is true
(`support/history`). So

- what a program saved is there after its rename, until a later act on the same name;
- S3 may replace or delete it only by an operation on that very key that had not ended before the
  save began. A PUT of `a/b` is no reason for the loss of `a`;
- a file that was removed or moved away stays so, a file that was cut stays cut, and what S3 has
  acknowledged is as safe from programs as these are from it.

Bytes are compared, and nothing else. What is read during a round is read of names that no one
writes to in place in it.

    ./test --tests-only tests/test_programs.py           # a quarter of a minute
    SLIPWAY_PROGRAMS_SECONDS=600 SLIPWAY_PROGRAMS_SEED=7 ./test --tests-only tests/test_programs.py
    ./test --tests-only --slow tests/test_programs.py    # also five minutes of a new seed
"""

import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import expect
from support.actors import Client, New
from support.bucket import Bucket
from support.history import State, Step, explain, reading
from support.programs import Program, ProgramsClient, Versions, file_of, has, tell
from support.server import assert_nothing_staged, binary

SEED = int(os.environ.get("SLIPWAY_PROGRAMS_SEED", "1"))
SECONDS = float(os.environ.get("SLIPWAY_PROGRAMS_SECONDS", "15"))
LONG_SECONDS = 300
CLIENTS, PROGRAMS = 3, 2
NAMES = ["a", "a/b", "a/b/c", "d", "d/e", "f"]
# Below these there is nothing.
LEAVES = {"a/b/c", "d/e", "f"}
SIZES = [60, 3000, 100_000]
CLIENT_ACTS = ["put"] * 5 + ["get"] * 2 + ["upload", "copy", "delete", "delete_many"]
PROGRAM_ACTS = ["save", "save", "edit", "cut", "move", "remove", "directly"]
# So many acts of a program in a round at the most.
ACTS = 30


class Walk:
    def __init__(self, gateways: list[Bucket], seed: int, tmp_path: Path) -> None:
        self.gateways, self.seed = gateways, seed
        self.tree = gateways[0].tree
        self.versions = Versions()
        places = [tmp_path / f"program{number}" for number in range(PROGRAMS)]
        self.programs = [Program(self.tree, place, self.versions) for place in places]
        self.clients = [ProgramsClient(gateways, self.versions) for _ in range(CLIENTS)]
        self.observer = ProgramsClient(gateways, self.versions)
        self.pool = ThreadPoolExecutor(CLIENTS + PROGRAMS)

    def close(self) -> None:
        self.pool.shutdown()
        for client in [*self.clients, self.observer]:
            client.close()


class Round:
    def __init__(self, walk: Walk, number: int) -> None:
        self.walk, self.number = walk, number
        self.chance = random.Random(f"{walk.seed}/{number}")
        self.written = 0
        self.names = [f"r{number}/{name}" for name in NAMES]
        kinds = self.chance.choices(["programs", "clients", "both"], [4, 4, 2], k=len(NAMES))
        # What is most likely to go wrong: a program's file becomes a directory while it is saved.
        if self.chance.random() < 0.5:
            kinds[:2] = ["programs", "clients"]
        self.kinds = dict(zip(self.names, kinds, strict=True))
        self.edits = {name for name in self.names if self.chance.random() < 0.3}
        self.clients_are_done = threading.Event()

    def body(self, who: str) -> bytes:
        self.written += 1
        start = b"%s-%d-%d-" % (who.encode(), self.number, self.written)
        return start + self.chance.randbytes(self.chance.choice(SIZES))

    def new(self) -> New:
        body = self.body("s3")
        self.walk.versions.of(body)
        return New(f"{self.number}-{self.written}", body)

    def gateway(self) -> int:
        return self.chance.randrange(len(self.walk.gateways))

    def of_kind(self, *kinds: str) -> list[str]:
        return [name for name in self.names if self.kinds[name] in kinds]

    # What is to be done.

    def beginning(self) -> None:
        """Some of the names are there before."""
        program, client = self.walk.programs[0], self.walk.observer
        for name in self.names:
            if self.kinds[name] != "clients" and self.chance.random() < 0.6:
                program.save(name, self.body("before"), beside=False, flush=False)
            elif self.kinds[name] != "programs" and self.chance.random() < 0.3:
                client.put(self.gateway(), name, self.new())

    def client_plan(self) -> list[tuple]:
        writable, plan = self.of_kind("clients", "both"), []
        readable = [name for name in self.names if name not in self.edits]
        for _ in range(self.chance.randrange(1, 5)):
            kind = self.chance.choice(CLIENT_ACTS)
            gateway, name = self.gateway(), self.chance.choice(writable) if writable else None
            if kind == "get" or not name:
                plan += [("get", gateway, self.chance.choice(readable))] if readable else []
            elif kind == "put":
                plan.append(("put", gateway, name, self.new()))
            elif kind == "upload":
                new = self.new()
                plan.append(("upload", gateway, name, new, [new.body], None, "complete"))
            elif kind == "delete":
                plan.append(("delete", gateway, name))
            elif kind == "delete_many":
                keys = sorted(self.chance.sample(writable, self.chance.randint(1, len(writable))))
                plan.append(("delete_many", gateway, keys))
            elif sources := [source for source in readable if source != name]:
                plan.append(("copy", gateway, self.chance.choice(sources), name))
        return plan

    def program_plan(self, number: int) -> list[tuple]:
        own = self.of_kind("programs", "both")[number::PROGRAMS]
        plan: list[tuple] = []
        # Often the same few things again and again.
        kinds = self.chance.choice([["save"], PROGRAM_ACTS])
        for _ in range(ACTS if own else 0):
            name, other = self.chance.choice(own), self.chance.choice(own)
            kind = self.chance.choice(kinds)
            only_saved = name not in self.edits
            if kind == "edit" and not only_saved:
                plan.append(("edit", name, self.body("edit")))
            elif kind == "cut" and not only_saved:
                plan.append(("cut", name, self.chance.randrange(20, 80)))
            elif kind == "remove":
                plan.append(("remove", name))
            elif kind == "move":
                plan.append(("move", name, self.chance.choice([other, None])))
            elif kind == "directly" and self.is_ones_own_leaf(name) and name != other:
                plan.append(("move_directly", name, other))
            else:
                beside, flush = self.chance.random() < 0.5, self.chance.random() < 0.1
                plan.append(("save", name, self.body("save"), beside, flush))
        return plan

    def is_ones_own_leaf(self, name: str) -> bool:
        return self.kinds[name] == "programs" and name.partition("/")[2] in LEAVES

    # Doing it.

    def together(self) -> None:
        walk = self.walk
        clients = [(client, self.client_plan()) for client in walk.clients]
        programs = [(program, self.program_plan(n)) for n, program in enumerate(walk.programs)]
        barrier = threading.Barrier(CLIENTS + PROGRAMS)
        running = [walk.pool.submit(self.run_program, barrier, *one) for one in programs]
        busy = [walk.pool.submit(run_client, barrier, *one) for one in clients]
        try:
            for client in busy:
                client.result()
        finally:
            self.clients_are_done.set()
        for program in running:
            program.result()

    def run_program(self, barrier: threading.Barrier, program: Program, plan: list[tuple]) -> None:
        program.begin = barrier
        program.wait()
        for done, (act, *arguments) in enumerate(plan):
            if done > 3 and self.clients_are_done.is_set():
                return
            getattr(program, act)(*arguments)

    # Looking at it.

    def settle(self) -> int:
        """Looks at all names by file and through both gateways; returns how many files programs
        have saved.
        """
        walk = self.walk
        steps: dict[str, list[Step]] = {name: [] for name in self.names}
        for name in self.names:
            start, path = time.monotonic(), file_of(walk.tree, name)
            body = path.read_bytes() if path else None
            end, label = time.monotonic(), f"by file: {tell(body)}"
            steps[name].append(reading(name, label, start, end, has(body)))
            for gateway in range(len(walk.gateways)):
                walk.observer.get(gateway, name)
        saved = 0
        for actor in [*walk.clients, *walk.programs, walk.observer]:
            for step in actor.steps:
                steps[step.key].append(step)
            saved += len(actor.steps) if isinstance(actor, Program) else 0
            actor.steps = []
        ends = {name: explain(name, State(), steps[name]) for name in self.names}
        there = [name for name, states in ends.items() if any(state.version for state in states)]
        for bucket in walk.gateways:
            assert bucket.keys() == sorted(there), "what is listed"
        files = [str(file_of(walk.tree, name).relative_to(walk.tree)) for name in there]
        assert walk.gateways[0].files() == sorted(files)
        return saved

    def clean_up(self) -> None:
        bucket = self.walk.gateways[self.gateway()]
        expect.ok(bucket.delete_many(*self.names))
        assert bucket.is_untouched()
        # Directories that programs made.
        shutil.rmtree(self.walk.tree / f"r{self.number}", ignore_errors=True)


def run_client(barrier: threading.Barrier, client: Client, plan: list[tuple]) -> None:
    client.begin = barrier
    if not plan:
        client.wait()
    for act, *arguments in plan:
        getattr(client, act)(*arguments)


def run(make_server: Callable, seed: int, seconds: float, tmp_path: Path) -> None:
    # Flushes make some windows longer, and others shorter.
    first = make_server()
    servers = [first, make_server("--durability", "none", tree=first.tree)]
    Bucket(first, "bucket").create()
    walk = Walk([Bucket(server, "bucket") for server in servers], seed, tmp_path)
    rounds = acts = 0
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            try:
                one = Round(walk, rounds)
                one.beginning()
                one.together()
                acts += one.settle()
                one.clean_up()
            except Exception as error:
                error.add_note(f"round {rounds} of seed {seed}")
                raise
            rounds += 1
    finally:
        walk.close()
    print(f"{rounds} rounds, {acts} acts of programs")
    assert acts > rounds, "programs did something"
    set_aside_what_was_told(walk.tree, servers)
    assert_nothing_staged(walk.tree)


def set_aside_what_was_told(tree: Path, servers: list) -> None:
    """What a program put in a file's place just as that became a directory, and could neither go back nor into that, is kept
    in staging and told in the log (docs/SEMANTICS.md). It is never a file: a newer file is the object. Of a directory it is
    only what finds its name taken, as long as the one that has its place is there."""
    staging = tree / ".slipway" / "staging"
    # It moves what found a name taken that is free by now.
    subprocess.run([binary(), "sweep", "--age", "0", tree.parent], capture_output=True, check=True)
    told = {name for server in servers for name in re.findall(r'kept="?(x[0-9a-f]+)', server.log)}
    for name in told:
        kept, note = staging / name, staging / f"n{name[1:]}"
        if not kept.is_symlink() and not kept.exists():
            continue
        # The programs make no links.
        assert kept.is_dir() and not kept.is_symlink(), f"what is kept as {name} is no directory"
        directory, _, path = os.readlink(note).split(":", 2)
        place = tree / path
        if place.is_dir() and place.stat().st_ino == int(directory):
            names = os.listdir(kept)
            assert names and all((place / name).exists() for name in names), (
                f"{names} might have gone to {path}"
            )
        shutil.rmtree(kept)
        note.unlink(missing_ok=True)


def test_programs_lose_nothing(make_server, tmp_path):
    run(make_server, SEED, SECONDS, tmp_path)


@pytest.mark.slow
def test_programs_lose_nothing_for_long(make_server, tmp_path):
    seed = int(time.time())
    print(f"SLIPWAY_PROGRAMS_SEED={seed} SLIPWAY_PROGRAMS_SECONDS={LONG_SECONDS}")
    run(make_server, seed, LONG_SECONDS, tmp_path)
