"""The tests that look for the faults: the test programs of the crates, then black-box tests."""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .control import Control
from .tree import Tree

FAILED = re.compile(r"^test (\S+).* \.\.\. FAILED$", re.MULTILINE)
# The black-box tests of what is mutated, without those of servers, clients, packages and
# documents.
BLACK_BOX = """
    objects buckets delete_objects copy attributes multipart upload_part_copy listing multipart_listing ranges
    checksums multipart_checksums conditional_reads conditional_writes signatures presigned presigned_shapes
    streaming_payloads answers not_implemented refusals bad_heads bad_bodies bad_documents long_documents keys files
    special_files semantics races gateways locks connections bucket_documents hostile_trees owners sidecar
    flat_directories old_trees tools fsck rehash_on_read import_minio mounts read_only disk digests large_reads
    model programs faults/flushes faults/every_call
"""
# How much time each round of a fault's tests takes at most, when all is well: quick ones first.
TURN_SECONDS = 240
ROUNDS_SECONDS = (3, 15, 60, 600)


def full_name(program: str, test: str) -> str:
    return f"{program} {test}".strip()


def black_box_files(only: list[str]) -> list[str]:
    names = (name.rpartition("/") for name in only or BLACK_BOX.split())
    return [str(Path("tests", folder, f"test_{subject}.py")) for folder, _, subject in names]


@dataclass(frozen=True)
class Ran:
    passed: bool
    seconds: float
    # The tests that failed; none if the time limit ended it, or a crash.
    failed: list[str]
    output: str
    in_time: bool = True


class Turn:
    """A lock on a machine that others use too: held for some minutes at a time."""

    def __init__(self, path: Path | None) -> None:
        self.file = open(path, "a") if path else None  # noqa: SIM115
        self.since = 0.0

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        if self.file and not self.since:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.monotonic()
        try:
            yield
        finally:
            if self.file and time.monotonic() - self.since > TURN_SECONDS:
                self.give_back()

    def give_back(self) -> None:
        if self.file and self.since:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            self.since = 0.0


def failures(output: str, tests: list[str]) -> list[str]:
    """Those of the tests that an output tells have failed. pytest's names may have spaces, so that only the
    names themselves say where one ends."""
    of_rust = set(FAILED.findall(output))
    lines = [line.removeprefix("FAILED ").removeprefix("ERROR ") for line in output.splitlines()]
    return [
        test
        for test in tests
        if test in of_rust or any(line == test or line.startswith(f"{test} - ") for line in lines)
    ]


def run(command: list[str], tests: list[str], limit: float, **options) -> Ran:
    """Runs tests by a command up to the first that fails, and ends all its processes."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [*command, *tests],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        **options,
    )
    lines: list[str] = []

    def read() -> None:
        for line in process.stdout:
            lines.append(line)
            if re.match(r"test .* \.\.\. FAILED$", line):
                # Its neighbours need not end.
                time.sleep(0.05)
                kill(process)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    in_time = True
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        in_time = False
    kill(process)
    process.wait()
    reader.join(5)
    output = "".join(lines)
    failed = failures(output, tests)
    passed = in_time and process.returncode == 0
    return Ran(passed, time.monotonic() - begun, failed, output, in_time)


def kill(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Suites:
    def __init__(self, repository: Path, tree: Tree, control: Control, turn: Turn, file: Path) -> None:
        self.repository, self.tree, self.programs = repository, tree.at, tree.programs
        self.control, self.turn = control, turn
        self.at = tree.at.parent
        self.environment = {
            **os.environ,
            "SLIPWAY_BINARY": str(tree.server),
            "SEEDED_FAULT_CONTROL": str(self.at / "control"),
            "PYTHONPATH": str(repository / "tests"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.file = file
        # What each test reaches, by "program test" or by pytest's name of it.
        self.known: dict[str, dict] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def save(self) -> None:
        self.file.write_text(json.dumps(self.known, indent=0))

    def program(self, name: str, tests: list[str], limit: float) -> Ran:
        """Runs some tests of a program as cargo would."""
        crate = self.tree / "crates" / name.split("/")[0]
        environment = {**self.environment, "CARGO_MANIFEST_DIR": str(crate)}
        command = [str(self.programs[name]), "--test-threads=2", "--exact"]
        return run(command, tests, limit, cwd=crate, env=environment)

    def black_box(self, tests: list[str], limit: float, reached: Path) -> Ran:
        command = [sys.executable, "-m", "pytest", "--config-file", "tests/pytest.ini", "-x", "-q"]
        command += ["-p", "seeded_faults.reached"]
        environment = {**self.environment, "SEEDED_FAULT_REACHED": str(reached)}
        return run(command, tests, limit, cwd=self.repository, env=environment)

    def record_programs(self, only: list[str]) -> None:
        """Runs the tests of each module by themselves, without a fault, and notes what they reach."""
        self.control.set(0)
        for name, path in sorted(
            self.programs.items(), key=lambda item: (not item[0].endswith("/lib"), item[0])
        ):
            if only and not any(chosen.split(" ")[0] == name for chosen in only):
                continue
            listed = subprocess.run(
                [str(path), "--list", "--format", "terse"], capture_output=True, text=True, check=True
            )
            modules: dict[str, list[str]] = {}
            for test in re.findall(r"^(.*): test$", listed.stdout, re.MULTILINE):
                modules.setdefault(test.rpartition("::")[0] or test, []).append(test)
            for module, tests in modules.items():
                is_chosen = not only or name in only or f"{name} {module}" in only
                if not is_chosen or self.known.get(f"{name} {module}", {}).get("tests") == tests:
                    continue
                with self.turn.taken():
                    self.control.forget()
                    ran = self.program(name, tests, 300)
                    self.known[f"{name} {module}"] = {
                        "passed": ran.passed,
                        "seconds": round(ran.seconds, 3),
                        "reached": self.control.reached(),
                        "tests": tests,
                    }
                self.save()
            print(f"  {name}: {sum(map(len, modules.values()))} tests", flush=True)

    def record_black_box(self, file: str) -> None:
        """Runs a file of black-box tests without a fault, and notes what each test reaches."""
        if any(test.startswith(f"{file}::") for test in self.known):
            return
        self.control.set(0)
        out = self.at / "reached.jsonl"
        out.unlink(missing_ok=True)
        with self.turn.taken():
            self.black_box([file, "--maxfail=1000"], 900, out)
        for line in out.read_text().splitlines() if out.exists() else []:
            entry = json.loads(line)
            # pytest names tests by where its configuration is.
            test = entry.pop("test")
            self.known[test if test.startswith("tests/") else f"tests/{test}"] = entry
        self.save()

    def rounds(
        self, fault: int, tried: set[str], *, is_black_box: bool
    ) -> Iterator[tuple[str, list[str], float]]:
        """What to run for a fault, quick ones first: the program, those of its tests that were not tried, and their
        time without a fault."""
        reaching = []
        for name, entry in self.known.items():
            program = "" if name.startswith("tests/") else name.split(" ")[0]
            tests = [test for test in entry.get("tests", [name]) if full_name(program, test) not in tried]
            if tests and entry["passed"] and fault in entry["reached"] and is_black_box == (not program):
                reaching.append((entry["seconds"], program, tests))
        reaching.sort()
        for limit in ROUNDS_SECONDS:
            spent, chosen = 0.0, {}
            while reaching and (not chosen or spent + reaching[0][0] <= limit):
                seconds, program, tests = reaching.pop(0)
                spent += seconds
                sum_of, all_of = chosen.get(program, (0.0, []))
                chosen[program] = (sum_of + seconds, all_of + tests)
            for program, (seconds, tests) in sorted(chosen.items()):
                yield program, tests, seconds

    def look(self, fault: int, program: str, tests: list[str], seconds: float) -> Ran:
        """Runs tests with a fault; 0 for none."""
        limit = 20 + 6 * seconds
        with self.turn.taken():
            self.control.set(fault)
            try:
                if program:
                    return self.program(program, tests, limit)
                return self.black_box(tests, limit, Path(os.devnull))
            finally:
                self.control.set(0)
