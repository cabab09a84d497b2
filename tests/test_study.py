"""bench/study.py: each published row is on the page, which says what was measured; and it can be run."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.server import REPOSITORY, binary

BENCH = REPOSITORY / "bench"
PAGE = REPOSITORY / "docs" / "STUDIES.md"
sys.path.insert(0, str(BENCH))

import common  # noqa: E402 (bench/ is no package)
import study  # noqa: E402 (bench/ is no package)
from lab import Unmeasurable, profile  # noqa: E402 (bench/ is no package)
from studies import load, study_a, study_b, study_c  # noqa: E402 (bench/ is no package)
from studies.document import render, steps_table  # noqa: E402 (bench/ is no package)
from studies.rows import RATES, Row, holds, published, verdict  # noqa: E402
from studies.run import NO_FIGURE, Run  # noqa: E402
from studies.scale import SCALES  # noqa: E402

ROWS = published()[1]
MEASURED = json.loads((BENCH / "studies" / "measured.json").read_text())


def rows_of_the_page() -> dict[str, list[str]]:
    """The cells of each row, by its id."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    # Of a study that was measured at two scales the first counts.
    return {row[0].strip("`"): row for row in reversed(cells)}


def test_ids_are_unique_and_of_a_study() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids))
    assert {row.study for row in ROWS} == set(published()[0]) == set("ABCD")


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_each_published_row_is_on_the_page(row: Row) -> None:
    found = rows_of_the_page()
    assert row.id in found
    _, _, shown, ours, _, _, said = found[row.id]
    assert row.published.replace("|", "\\|") == shown
    # Either a figure, or why there is none.
    assert ours or said.startswith("not measured: "), said
    assert said


def test_the_page_has_no_other_rows() -> None:
    assert set(rows_of_the_page()) == {row.id for row in ROWS}


def test_the_page_is_what_was_measured() -> None:
    """Written by `bench/study.py --write --json bench/studies/measured.json`, not by hand."""
    assert PAGE.read_text() == render(MEASURED)


def test_the_command_is_shown_as_it_measured(monkeypatch) -> None:
    given = [
        "a",
        "--json",
        "x",
        "--binary=y",
        "--dir",
        "/mnt/x",
        "--write",
        "--json=z",
        "--any-commit",
        "--nginx",
    ]
    monkeypatch.setattr(sys, "argv", ["bench/study.py", *given])
    assert study.command_shown() == "bench/study.py a --dir /mnt/x --nginx"


def run_of(commit: str, **more) -> dict:
    """Study D as it was measured, by another commit."""
    run = {**MEASURED["studies"]["D"][0], "commit": commit, **more}
    run.pop("origin", None)
    return {"format": 1, "studies": {"D": [run]}}


def head() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"these sources have no history: {done.stderr.strip()}")
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"commit": "0000000"}, "not in this history"),
        ({"has_changes": True}, "changes that were not committed"),
    ],
)
def test_only_what_can_be_repeated_is_written(tmp_path, monkeypatch, more: dict, said: str) -> None:
    page, path = tmp_path / "STUDIES.md", tmp_path / "measured.json"
    monkeypatch.setattr(study, "DOCUMENT", page)
    measured = run_of(**{"commit": head(), **more})
    with pytest.raises(SystemExit, match=said):
        study.write(measured, path, any_commit=False)
    assert not page.exists() and not path.exists()
    study.write(measured, path, any_commit=True)
    # The page says so, also when it is made of the file alone.
    assert said in page.read_text() == render(json.loads(path.read_text()))


def test_a_commit_of_this_history_is_written(tmp_path, monkeypatch) -> None:
    page, path = tmp_path / "STUDIES.md", tmp_path / "measured.json"
    monkeypatch.setattr(study, "DOCUMENT", page)
    measured = run_of(head())
    measured["studies"]["D"][0]["origin"] = "of an earlier --any-commit"
    study.write(measured, path, any_commit=False)
    assert f"commit {head()};" in page.read_text() and "origin" not in path.read_text()


@pytest.mark.parametrize("letter", sorted(published()[0]))
def test_the_page_says_how_it_was_measured(letter: str) -> None:
    part = PAGE.read_text().split(f"## Study {letter}\n")[1].split("\n## ")[0]
    for run in MEASURED["studies"][letter]:
        assert run["command"].startswith("bench/study.py ") and run["scale"] != "tiny"
        for said in (run["command"], run["date"], run["commit"], run["machine"]["kernel"]):
            assert said and said in part


@pytest.mark.parametrize(
    ("row", "found", "said"),
    [
        ({"wanted": [">=", 10]}, {"value": 10}, "met"),
        ({"wanted": [">=", 10]}, {"value": 9.9}, "**missed**"),
        ({"wanted": ["<=", 10]}, {"value": 11}, "**missed**"),
        ({"wanted": [">=", 10]}, None, "not measured: not in this run"),
        ({"wanted": [">=", 10]}, {"reason": "no root"}, "not measured: no root"),
        ({"not_measured": "no disk"}, None, "not measured: no disk"),
        ({}, {"value": 3}, "measured"),
        ({"not_comparable": "other disk"}, {"value": 3}, "not comparable: other disk"),
        ({}, {"text": "a", "holds": True}, "met"),
        ({}, {"text": "a", "holds": False}, "**missed**"),
    ],
)
def test_verdicts_of_figures(row: dict, found: dict | None, said: str) -> None:
    assert verdict(Row(id="A-x", work="", published="", **row), found) == said


@pytest.mark.parametrize(
    ("row", "found", "said"),
    [
        ({}, {"value": 1, "shape": 0.8}, "shape met"),
        ({}, {"value": 1, "shape": 0.79}, "**missed**"),
        ({"wanted": [">=", 10]}, {"value": 1, "shape": 0.9}, "shape met; the figure is not reached here"),
        ({"wanted": [">=", 10]}, {"value": 1, "shape": 0.7}, "**missed**, also its shape"),
        ({"wanted": [">=", 10]}, {"value": 10, "shape": 0.7}, "met"),
        ({"not_comparable": "x"}, {"value": 1, "shape": 0.9}, "shape met; not comparable: x"),
        # A figure that is not comparable is never met.
        (
            {"wanted": [">=", 1], "not_comparable": "x"},
            {"value": 5, "shape": 0.1},
            "**missed**, also its shape",
        ),
        ({}, {"value": 1}, "not measured: its shape is not known"),
    ],
)
def test_verdicts_of_shapes(row: dict, found: dict, said: str) -> None:
    shape = {"what": "slowest over fastest", "wanted": [">=", 0.8]}
    assert verdict(Row(id="A-x", work="", published="", shape=shape, **row), found) == said


def test_more_than_linear_is_no_finding() -> None:
    shape = {"what": "share of linear", "wanted": [">=", 0.9], "most": 1.1}
    row = Row(id="B-x", work="", published="", shape=shape, not_comparable="x")
    assert verdict(row, {"value": 1, "shape": 1.1}) == "shape met; not comparable: x"
    assert verdict(row, {"value": 1, "shape": 1.11}).startswith("not clear: more than linear")
    # Of several shares the least is the shape, and the highest says what it is worth.
    assert verdict(row, {"value": 1, "shape": 0.95, "highest": 1.11}).startswith(
        "not clear: more than linear"
    )
    assert verdict(row, {"value": 1, "shape": 0.5, "highest": 1.1}) == "**missed**"


def test_shares_are_of_what_one_gateway_did() -> None:
    first: dict[str, float] = {}
    # Without an answer of the first nothing is known of the others.
    assert study_b.of_linear(first, "PUT", 1, 0) is None and study_b.of_linear(first, "PUT", 2, 9.0) is None
    assert study_b.of_linear(first, "GET", 3, 9.0) is None and first == {"PUT": 0}
    assert study_b.of_linear(first, "GET", 1, 10) == 1 and study_b.of_linear(first, "GET", 4, 36) == 0.9


def run_at(scale: str, directory: Path) -> Run:
    return Run(Path("slipway"), directory, SCALES[scale], "none", [], with_nginx=False)


def test_the_highest_share_is_kept_beside_the_least(tmp_path) -> None:
    run = run_at("small", tmp_path)
    name = "PUT in parts, 2 threads"
    linear = {(name, 1): 1, (name, 2): 1.3, (name, 3): 0.95, (name, 5): 0.92}
    study_b.fill_rows(run, linear, {key: 100 for key in linear})
    found = run.rows["B-parts-few"]
    assert (found["shape"], found["highest"]) == (0.92, 1.3)
    (row,) = (row for row in ROWS if row.id == "B-parts-few")
    assert verdict(row, found).startswith("not clear: more than linear")


def test_a_figure_that_says_little_is_not_clear() -> None:
    row = Row(id="C-x", work="", published="", wanted=[">=", 10])
    for value in (9, 11):
        assert verdict(row, {"value": value, "unclear": "too short"}) == "not clear: too short"


def test_a_rate_is_not_missed_where_other_work_went_first() -> None:
    rate = Row(id="A-x", work="", published="", unit="MiB/s", wanted=[">=", 10])
    assert verdict(rate, {"value": 9}, 19) == "not clear: at nice 19"
    assert verdict(rate, {"value": 10}, 19) == "met" and verdict(rate, {"value": 9}, 0) == "**missed**"
    shape = {"what": "slowest over fastest", "wanted": [">=", 0.8]}
    plateau = dataclasses.replace(rate, shape=shape)
    assert verdict(plateau, {"value": 9, "shape": 0.7}, 19) == "not clear: at nice 19"
    memory = dataclasses.replace(rate, unit="MB", wanted=["<=", 10])
    assert verdict(memory, {"value": 11}, 19) == "**missed**"


def test_a_rate_is_not_missed_where_the_load_was_the_limit() -> None:
    steps = {
        ("slipway", 1): {"limit": "gateway"},
        ("slipway", 8): {"limit": "client"},
        ("slipway", 9): None,
        ("other", 8): {"limit": "client"},
    }
    found = study_a.held_up(steps)
    assert found == {"doubt": "the load generator was the limit with 8 at once"}
    assert study_a.held_up({("slipway", 1): {}}) == {}
    row = Row(id="A-x", work="", published="", wanted=[">=", 10])
    assert verdict(row, {"value": 9, **found}) == "not clear: the load generator was the limit with 8 at once"
    assert verdict(row, {"value": 10, **found}) == "met"


def test_what_has_no_published_figure_is_held_to_none() -> None:
    without = [row for row in ROWS if row.published.startswith("no figure")]
    assert without and all(row.wanted is None and row.shape is None for row in without)


def test_each_unit_of_a_rate_is_known() -> None:
    rates = {row.unit for row in ROWS if "/s" in row.unit or "minutes" in row.unit}
    # What `slipway plan` says of a machine is not slower for other work on this one.
    assert rates - RATES == {"MB/s at the most, by the plan"} and rates >= RATES


def test_a_quantile_of_few_answers_is_not_shown() -> None:
    step = {"title": "PUT", "rounds": 2, "p50": 10.0, "p99": 99.0, "p999": 999.0}
    step |= {"mib_per_second": 0, "per_second": 5, "errors": 0}
    for answers, shown in ((199, ["10 us"]), (200, ["10 us", "99 us"]), (2000, ["10 us", "99 us", "999 us"])):
        table = steps_table([{**step, "answers": answers}]).splitlines()
        assert re.findall(r"\d+ us", table[2]) == shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "**full scale**"),
        ({"other_times": True}, "**full sizes, other times**"),
        ({"scale": "small", "other_times": True}, "**small scale**"),
    ],
)
def test_the_page_says_how_much_was_run(more: dict, said: str) -> None:
    measured = run_of("0000000", **{"scale": "full", "other_times": False, **more})
    assert f"`, {said}: " in render(measured)


def puts(per_second: float, spent: list):
    """A server that takes so many new objects a second."""

    def put(count: int, left: float) -> list[dict]:
        seconds = min(left, count / per_second)
        spent.append((count, seconds))
        return [{"seconds": seconds, "stored": {"objects": round(seconds * per_second)}}]

    return put


def test_new_keys_are_put_for_the_whole_time() -> None:
    spent: list[tuple] = []
    # More than are signed at once; fewer; and no more than there is room for.
    for per_second, calls, seconds in ((15_000, 4, 5), (300, 1, 5), (100_000, 10, 2)):
        rounds = study_c.batches(puts(per_second, spent), 200_000, 5)
        assert len(rounds) == len(spent) == calls and all(count <= 20_000 for count, _ in spent)
        assert sum(of["seconds"] for of in rounds) == pytest.approx(seconds)
        spent.clear()


def test_too_few_objects_are_a_problem() -> None:
    with pytest.raises(Unmeasurable, match="only 7 of 100 objects"):
        study_c.batches(lambda *_: [{"seconds": 0.1, "stored": {"objects": 7}}], 100, 5)


@pytest.mark.parametrize(
    ("stored", "rounds", "said"),
    [(900, 1, "new keys"), (20_000, 1, "new keys"), (150_000, 3, "20,000 keys, each written 2.5 times")],
)
def test_a_row_says_whether_keys_were_new(stored: int, rounds: int, said: str) -> None:
    assert study_c.keys_written({"stored": stored, "rounds": rounds}, 20_000) == said


def fake_bench(directory: Path, report: dict, seconds: float = 0) -> Path:
    """A program that writes this report, after so many seconds."""
    program = directory / "bench"
    (directory / "report").write_text(json.dumps(report))
    program.write_text(
        f'#!/bin/sh\n[ {seconds} = 0 ] || exec sleep {seconds}\nwhile [ "$1" != --json ]; do shift; done\ncp {directory}/report "$2"\n'
    )
    program.chmod(0o755)
    return program


def test_a_load_signs_with_the_keys_of_the_servers_alone(monkeypatch) -> None:
    for name in ("SLIPWAY_ROOT_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("KEPT", "kept")
    found = common.bench_environment()
    assert "mine" not in found.values() and found["KEPT"] == "kept"
    assert found["AWS_ACCESS_KEY_ID"] == common.ACCESS_KEY
    command = common.bench_command("slipway", ["a:1", "b:2"], ["put", "-c", 4], [7, 8], "report")
    assert command == [
        *("slipway", "bench", "http://a:1,http://b:2", "put", "-c", "4"),
        *("--server-pid", "7", "--server-pid", "8", "--json", "report"),
    ]


def test_rounds_without_answers_are_told(tmp_path) -> None:
    rounds = [{"title": "put 1 KiB", "answers": 7}, {"title": "get 1 KiB", "answers": 0}]
    report = {"rounds": rounds, "problems": ["get 1 KiB: could not prepare its objects"]}
    found, problems = load.bench(fake_bench(tmp_path, report), ["127.0.0.1:1"], [], ["put"])
    assert [of["title"] for of in found] == ["put 1 KiB"]
    assert problems == [*report["problems"], "no answers in a round of get 1 KiB"]
    report["rounds"] = rounds[1:]
    with pytest.raises(Unmeasurable, match="no answers: get 1 KiB: could not prepare"):
        load.bench(fake_bench(tmp_path, report), ["127.0.0.1:1"], [], ["put"])


def test_a_load_without_end_ends_its_step_alone(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(load, "TIMEOUT_SECONDS", 0.2)
    program = fake_bench(tmp_path, {}, seconds=20)
    with pytest.raises(Unmeasurable, match=r"slipway bench put --size 1k: no end within 0\.2 s"):
        load.bench(program, ["127.0.0.1:1"], [], ["put", "--size", "1k"])


def test_a_short_rate_is_not_clear() -> None:
    assert study_c.short({"seconds": 4.99, "answers": 9}) == {} == study_c.short(None)
    assert study_c.short({"seconds": 0.12, "answers": 2000})["unclear"].startswith("too short: 2,000 objects")


def test_a_server_that_is_not_there_is_said() -> None:
    shape = {"what": "over it", "wanted": [">=", 3], "over": "minio"}
    row = Row(id="C-x", work="", published="", shape=shape)
    assert verdict(row, {"value": 1}) == "not measured: minio is not in this run"
    assert holds([">=", 3], 3) and not holds(["<=", 3], 3.1)


def test_one_volume_keeps_its_metadata_once_as_a_stripe_does() -> None:
    assert profile("btrfs", 1) == ["-d", "single", "-m", "single"]
    assert profile("btrfs", 4) == ["-d", "raid0", "-m", "raid0"] and profile("xfs", 1) == []


def start(directory: Path, *arguments: str | Path) -> subprocess.Popen:
    command = [sys.executable, BENCH / "study.py", "--binary", binary(), "--dir", directory]
    command += ["--scale", "tiny", "--json", directory / "measured.json"]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def end(process: subprocess.Popen, status: int) -> str:
    try:
        said, _ = process.communicate(timeout=300)
    finally:
        # Not killed: it has to remove what it made.
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == status, said
    assert "Traceback" not in said, said
    return said


def test_all_studies_can_be_run(tmp_path: Path) -> None:
    """At a scale that says nothing of speed: each row has a figure, or is one that can't be measured here."""
    said = end(start(tmp_path, "--all"), 0)
    studies = json.loads((tmp_path / "measured.json").read_text())["studies"]
    assert set(studies) == set(published()[0])
    for row in ROWS:
        found = studies[row.study][0]["rows"].get(row.id)
        if row.not_measured:
            assert found is None, row.id
        elif "reason" in found:
            too_short = row.unit.startswith("CPU") and found["reason"] == NO_FIGURE
            assert too_short or found["reason"].startswith("needs "), found
        else:
            assert found["text"] if "holds" in found else found["value"] > 0, (row.id, found)
        assert row.id in said
    for letter in "AC":
        steps = studies[letter][0]["steps"]
        assert steps and all(step["per_second"] > 0 for step in steps)
        # An open loop counts what was due and not sent in time, which a busy machine has.
        assert not any(step["errors"] for step in steps if "open loop" not in step["title"])
    assert {step["storage"] for step in studies["A"][0]["steps"]} == {"null", "files"}
    titles = [step["title"] for of in "CD" for step in studies[of][0]["steps"]]
    # The presets' own steps, all of them.
    for size in ("1 KiB", "4 KiB", "16 KiB", "128 KiB"):
        assert {f"read once, {kept}: churn {size}" for kept in ("kept", "not kept")} <= set(titles)
    for size in ("128 KiB", "512 KiB"):
        assert f"streams: streams of 4 MiB in ranges of {size}" in titles
    # From so few objects no rate follows.
    best = studies["C"][0]["rows"].get("C-best", {})
    assert "reason" in best or best["unclear"].startswith("too short: 100 objects")
    # `slipway plan` gives what was published, at any scale.
    plans = [of for of in studies["D"][0]["rows"].values() if "holds" in of]
    assert len(plans) > 20 and all(of["holds"] for of in plans)
    assert [path.name for path in tmp_path.iterdir()] == ["measured.json"]
    # The page of a run is of that run.
    page = render({"studies": studies})
    assert "tiny scale" in page and all(f"`{row.id}`" in page for row in ROWS)


def test_other_servers_are_measured_beside_ours(tmp_path: Path) -> None:
    other = f"{binary()} serve --durability none --listen {{address}}"
    given = ["--server", f"files={other} {{dir}}", "--server", f"null={other} null:"]
    end(start(tmp_path, "a", *given), 0)
    study = json.loads((tmp_path / "measured.json").read_text())["studies"]["A"][0]
    for name in ("null", "files"):
        steps = [step for step in study["steps"] if step["server"] == name]
        assert len(steps) == len(study["steps"]) / 4 and {step["storage"] for step in steps} == {name}
        # A burst's second and third part are noted without what the server used in its life.
        assert all(
            step["resident_mb"] > 1 and step["voluntary"] > 0 for step in steps if ": " not in step["title"]
        )
    rows = study["rows"]
    assert list(rows["A-put-one"]["others"]) == ["null"] and list(rows["A-put-files"]["others"]) == ["files"]


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    said = end(start(tmp_path, "a", "--server", "other=false {address} {dir}"), 1)
    assert "study.py: ended at once: false" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        ["x"],
        [],
        ["a", "--server", "slipway=x {address}"],
        ["a", "--server", "x=y"],
        ["a", "--server", "{address}"],
    ],
)
def test_wrong_options(tmp_path: Path, given: list[str]) -> None:
    end(start(tmp_path, *given), 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_by_an_early_end(tmp_path: Path, number: int) -> None:
    process = start(tmp_path, "c")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(tmp_path.glob("*/server-*")):
        time.sleep(0.02)
    process.send_signal(number)
    assert "ended early" in end(process, 1)
    assert list(tmp_path.iterdir()) == []
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert not left.split()
