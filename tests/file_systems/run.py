#!/usr/bin/env python3
"""Runs the suites of the storage on file systems that it makes for that.

    .venv/bin/python tests/file_systems/run.py [FILE-SYSTEM...]

Needs root, and the programs of each file system. The server under test is `target/debug/slipway`: `cargo build`
first. It and the Rust suites are copied, so that a build meanwhile is no matter. With `SLIPWAY_METADATA=sidecar`
records are in files everywhere. A run is of the suites that show most of what a file system does; `--all` is of all.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from file_systems import mounts, probes, results
from file_systems.results import Result
from support.lacks import table_of_lacks
from support.server import KEYS, Server, StartFailed, binary

REPOSITORY = Path(__file__).resolve().parents[2]
LOGS = REPOSITORY / "target" / "file-systems"
# With what their requests go through: the rest of the black-box tests is about the wire.
BLACK_BOX = [
    "test_gateways",
    "test_races",
    "test_model",
    "test_listing_model",
    "test_keys",
    "test_multipart",
    "test_files",
    "test_special_files",
]
# One took that long only where something hung.
SUITE_SECONDS = 3600
# It measures memory, with indexes that are kept at once only of local file systems.
NOT_OF_FILES = ["index_memory"]
# Each of 6,000 levels is a call to a server there, and again for each level below it.
LEFT_OUT = {"moosefs": ["depths"]}
# For `--all`: of these, `./test` runs all on its own file system, and others show less of what a
# file system does.
LONG = ["backend_posix", "uploads", "listing_model", "test_listing_model", "test_keys", "test_multipart"]
# Where every call is a message to another process, and nothing is cached, it takes many minutes.
SLOW = {"bindfs": ["depths"], "sshfs": ["depths"]}
# Nor are there keys of hundreds of levels in other suites, but for `depths`.
SHALLOW = {"SLIPWAY_SHALLOW": "1"}
# A request is a hundred messages there, one after the other: fewer rounds.
FEWER = {"SLIPWAY_RACE_ROUNDS": "40", "SLIPWAY_RACE_SHARE": "5", "SLIPWAY_MODEL_ROUNDS": "12"}
# They are there to lack something, which these suites show.
LACKING = [*mounts.OF_OURS, "exfat", "ntfs"]
TELLING = ["conformance", "races", "test_races"]
MORE_ENV = {"bindfs": SHALLOW, "moosefs": SHALLOW, "sshfs": SHALLOW | FEWER} | dict.fromkeys(
    LACKING, SHALLOW | FEWER
)
# No file may be deeper than a path is long, which the Rust suites find out for themselves.
BOUNDED = ["bindfs", "bindfs-plain", "sshfs", "exfat", "ntfs"]
# They keep no extended attributes: served only with records in files, refused without.
SIDECAR = {"SLIPWAY_METADATA": "sidecar"}
WITHOUT_ATTRIBUTES = ["sshfs", "exfat"]
# Where a gateway must refuse to serve at all, for what is lacking. Then there is nothing else to
# test.
MUST_REFUSE = {"no-case": "names by case", "no-links": "hard links", "exfat": "names by case"}
# What fails today, by file system and suite (tests/README.md says why), and so is no failure of a
# run.
KNOWN: dict[str, set[str]] = {
    "lost-answers": {"conformance", "races", "test_races"},
}


def rust_suites(copies: Path) -> dict[str, Path]:
    """Copies of backend-posix's test programs, by their names."""
    command = ["cargo", "test", "-p", "backend-posix", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    messages = (json.loads(line) for line in built.stdout.splitlines())
    programs = [Path(m["executable"]) for m in messages if m.get("executable") and m["profile"]["test"]]
    return {program.name.rpartition("-")[0]: Path(shutil.copy(program, copies)) for program in programs}


# How they are told, by cargo's last line or pytest's.
TOLD = {"error": "failed", "errors": "failed", "xfailed": results.EXPECTED}


def counts(log: Path) -> Counter[str]:
    """How many tests passed, failed and were skipped, by the last line that tells, of cargo's kind or of pytest's."""
    lines = log.read_text(errors="replace").splitlines()
    numbers = [re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed)\b", line) for line in lines]
    found: Counter[str] = Counter()
    for number, what in next(filter(None, reversed(numbers)), []):
        found[TOLD.get(what, what)] += int(number)
    # A Rust test that can say nothing here says so, and passes.
    silent = sum("*** SKIPPED" in line for line in lines)
    found["passed"] -= silent
    found["skipped"] += silent
    return +found


def told(found: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in found.items())


def suite(
    name: str, command: list[str], where: Path, log: Path, env: dict[str, str], known: bool
) -> Counter[str]:
    """Runs one, and prints its line. Not passed, it counts as failed, unless it is `known` to fail."""
    began = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=where,
            stdout=output,
            stderr=output,
            env={**os.environ, **env},
            start_new_session=True,
        )
        try:
            status = process.wait(SUITE_SECONDS)
        except subprocess.TimeoutExpired:
            status = "too long"
        finally:
            # Also what it started, and also when this is interrupted.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                time.sleep(1)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    found = counts(log)
    if status != 0:
        found["failed"] += not found["failed"]
    outcome = "passed" if status == 0 else f"fails ({found['failed']}), as is known" if known else "failed"
    results.keep(log.parent, Result(name, outcome, found))
    verdict = "ok" if status == 0 else f"FAILED ({status}), see {log}"
    if known:
        verdict = "ok now: KNOWN tells otherwise" if status == 0 else f"fails ({status}), as is known"
        found = Counter({"known to fail": found["failed"], "passed": found["passed"]})
    print(f"  {name:<24} {verdict:<8} {time.monotonic() - began:6.1f} s  {told(found)}", flush=True)
    return found


def refused(lack: str, directory: Path, log: Path, env: dict[str, str]) -> Counter[str]:
    """Starts a gateway, which must not serve the tree for what it lacks, and say the sentence that SEMANTICS.md has for that."""
    what, says = table_of_lacks()[lack]
    assert what == "refused", lack
    # Of the suites' own variables it would say that they are none of its.
    own = {name: value for name, value in env.items() if name in ("TMPDIR", *SIDECAR)}
    try:
        Server(directory, log=log, env=KEYS | own).stop()
        said = "it was served"
    except StartFailed as failure:
        said = str(failure)
    right = f"cannot be served: {says}\n" in f"{said}\n"
    results.keep(log.parent, Result(lack, results.REFUSED if right else f"not refused: {said}"))
    print(f"  {'serve':<24} {f'refused: {lack}' if right else f'FAILED: {said}'}", flush=True)
    return Counter(passed=1) if right else Counter(failed=1)


def logs_of(kind: str) -> Path:
    """Where its output is, and what was found: with records in files everywhere, apart."""
    return LOGS / (f"{kind}-sidecar" if SIDECAR.items() <= os.environ.items() else kind)


def check(kind: str, programs: dict[str, Path], options: argparse.Namespace) -> Counter[str]:
    """Makes a file system, and runs what is wanted on it."""
    with mounts.mounted(kind, Path(tempfile.mkdtemp(prefix=f"slipway-{kind}-"))) as made:
        return check_mounted(kind, made, programs, options)


def check_mounted(
    kind: str, made: mounts.Mounted, programs: dict[str, Path], options: argparse.Namespace
) -> Counter[str]:
    logs = logs_of(kind)
    logs.mkdir(parents=True, exist_ok=True)
    for probe, answer in probes.table(made.directory, made.second).items():
        print(f"  {probe:<24} {answer}")
    temporary = made.directory / "tmp"
    temporary.mkdir()
    if options.probes:
        return Counter()
    known = KNOWN.get(kind, set())
    found, env = [], {"TMPDIR": str(temporary), **made.env, **MORE_ENV.get(kind, {})}
    if kind in WITHOUT_ATTRIBUTES and not SIDECAR.items() <= os.environ.items():
        found.append(refused("attributes", temporary, logs / "serve.log", env))
        env |= SIDECAR
    if kind in MUST_REFUSE:
        tree = mounts.directory(temporary, "tree")
        found.append(refused(MUST_REFUSE[kind], tree, logs / "serve.log", env))
        return sum(found, Counter())
    wanted = wanted_suites(kind, programs, options)
    for name in filter(programs.get, wanted):
        command, where = [str(programs[name]), "--show-output"], REPOSITORY / "crates/backend-posix"
        found.append(suite(name, command, where, logs / f"{name}.log", env, name in known))
        mounts.unmount_below(made.directory)
    if kind in BOUNDED:
        env |= SHALLOW
    if made.second:
        env["SLIPWAY_TWO_MOUNTS"] = f"{made.directory}:{made.second}"
    for name in wanted:
        if name in programs:
            continue
        # pytest's own directory for it has a link that sshfs does not follow.
        base = f"--basetemp={temporary / name}"
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", base, f"{name}.py"]
        log = logs / f"{name}.log"
        found.append(suite(name, command, REPOSITORY / "tests", log, env, name in known))
        mounts.unmount_below(made.directory)
    return sum(found, Counter())


def wanted_suites(kind: str, programs: dict[str, Path], options: argparse.Namespace) -> list[str]:
    narrow = kind in LACKING and not options.all
    wanted = options.only or (TELLING if narrow else [*programs, *BLACK_BOX])
    slow = [] if options.all or options.only else LONG + SLOW.get(kind, [])
    left_out = options.without + NOT_OF_FILES + LEFT_OUT.get(kind, []) + slow
    return [name for name in wanted if name not in left_out]


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    known = f"of {', '.join(mounts.KINDS)}; default all"
    parser.add_argument("kinds", nargs="*", metavar="FILE-SYSTEM", help=known)
    parser.add_argument("--probes", action="store_true", help="only find out what they can do")
    parser.add_argument(
        "--table", action="store_true", help="only show what the last runs found, in Markdown"
    )
    parser.add_argument("--all", action="store_true", help="all suites (hours)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many file systems at a time")
    parser.add_argument("--only", action="append", metavar="SUITE", help="run a suite, and others named so")
    parser.add_argument("--without", action="append", default=[], metavar="SUITE", help="leave out a suite")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(mounts.KINDS):
        parser.error(f"no such file system: {', '.join(sorted(unknown))}")
    if options.table:
        print(results.table(sorted(LOGS.glob("*/"))))
        return 0
    # So that what was made is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kinds = options.kinds or list(mounts.KINDS)
    began = time.monotonic()
    totals = side_by_side(kinds, options.jobs) if options.jobs > 1 < len(kinds) else in_turn(kinds, options)
    failed = [kind for kind, total in totals.items() if total["failed"]]
    verdict = f"failed: {', '.join(failed)}" if failed else "all passed"
    print(f"{verdict}; {(time.monotonic() - began) / 60:.0f} min, {told(sum(totals.values(), Counter()))}")
    return bool(failed)


def in_turn(kinds: list[str], options: argparse.Namespace) -> dict[str, Counter[str]]:
    totals = {}
    with tempfile.TemporaryDirectory(prefix="slipway-programs-") as copies:
        programs = {} if options.probes else rust_suites(Path(copies))
        os.environ["SLIPWAY_BINARY"] = shutil.copy(binary(), copies)
        for kind in kinds:
            print(f"{kind}", flush=True)
            begun = time.monotonic()
            try:
                totals[kind] = check(kind, programs, options)
            except mounts.Missing as missing:
                print(f"  skipped: {missing}")
                continue
            print(f"  {'':<24} {'':<8} {time.monotonic() - begun:6.1f} s  {told(totals[kind])}", flush=True)
    return totals


def side_by_side(kinds: list[str], jobs: int) -> dict[str, Counter[str]]:
    """Each by a process of its own, `jobs` at a time."""
    arguments = sys.argv[1:]
    running: dict[str, subprocess.Popen] = {}
    totals: dict[str, Counter[str]] = {}
    waiting = list(kinds)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                kind = waiting.pop(0)
                options = [argument for argument in arguments if argument not in mounts.KINDS]
                command = [sys.executable, __file__, kind, *options, "--jobs=1"]
                with open(run_log(kind), "wb") as output:
                    running[kind] = subprocess.Popen(command, stdout=output, stderr=output)
            time.sleep(0.5)
            for kind in [kind for kind, process in running.items() if process.poll() is not None]:
                status = running.pop(kind).returncode
                totals[kind] = counts(run_log(kind))
                totals[kind]["failed"] += status != 0 and not totals[kind]["failed"]
                print(run_log(kind).read_text(), end="", flush=True)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    return totals


def run_log(kind: str) -> Path:
    path = logs_of(kind) / "run.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    sys.exit(main())
