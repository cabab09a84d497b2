"""The linearizability check of `linearizable/run.py`: a short run, and histories that its checker must reject.

.venv/bin/python tests/linearizable/run.py --help      # longer runs
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import binary

HERE = Path(__file__).parent / "linearizable"
CHECKER = HERE / "checker"
# A limit that only a hang reaches: the run takes 5 s, the compiler longer on a busy machine.
SECONDS_MAX = 600


def run(*command: str | Path, cwd: Path = CHECKER, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS_MAX,
    )


@pytest.fixture(scope="module", autouse=True)
def modules() -> None:
    """Go, and the module that the checker needs."""
    if not shutil.which("go"):
        pytest.skip("there is no go here")
    if (got := run("go", "mod", "download")).returncode:
        pytest.skip(f"the checker's modules are not available: {got.stdout.strip()[-200:]}")


@pytest.fixture(scope="module")
def recorded(modules: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a short run, which must be linearizable."""
    out = tmp_path_factory.mktemp("linearizable")
    size = ("--seconds", "5", "--gateways", "2", "--clients", "4")
    done = run(
        sys.executable, HERE / "run.py", *size, "--out", out, "--directory", out, SLIPWAY_BINARY=str(binary())
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout)
    return out


def history(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


def verdict(out: Path, place: Path, lines: list[dict]) -> subprocess.CompletedProcess[str]:
    path = place / "history.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return run(out / "checker", "-out", place, path)


def test_the_checker_rejects_what_it_should():
    if shutil.which("gofmt"):
        formatted = run("gofmt", "-l", ".")
        assert formatted.returncode == 0 and formatted.stdout == "", formatted.stdout
    for step in ("vet", "test"):
        done = run("go", step, "./...")
        assert done.returncode == 0, done.stdout


def test_a_short_run(recorded):
    lines = history(recorded)
    assert sum(line["op"] == "kill" for line in lines) >= 3
    kinds = {line["op"] for line in lines if line.get("status") in (200, 204)}
    assert kinds >= {"put", "complete", "copy", "delete", "delete-many", "get", "head", "list"}


def test_a_write_that_was_seen_is_missed(recorded, tmp_path):
    lines = history(recorded)
    seen = {line["sees"]["writer"] for line in lines if line["op"] in ("get", "head") and "sees" in line}
    writes = [line for line in lines if line["op"] == "put" and line["makes"]["writer"] in seen]
    lines.remove(writes[len(writes) // 2])
    done = verdict(recorded, tmp_path, lines)
    assert done.returncode == 1 and "No order explains" in done.stdout, done.stdout
    assert (tmp_path / "violation.txt").exists() and (tmp_path / "violation.html").exists()


def test_another_answer_is_noticed(recorded, tmp_path):
    """The last read of a key, after all writes, sees another version."""
    lines = history(recorded)
    gets = [line for line in lines if line["op"] == "get" and "sees" in line]
    last = max(gets, key=lambda line: line["start"])
    others = [line for line in gets if line["sees"]["writer"] != last["sees"]["writer"]]
    last["sees"] = min(others, key=lambda line: (line["key"] != last["key"], line["start"]))["sees"]
    done = verdict(recorded, tmp_path, lines)
    assert done.returncode == 1 and "No order explains" in done.stdout, done.stdout
