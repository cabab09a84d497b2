"""`slipway plan`: the examples of docs/PLAN.md, files that it reads and writes, and costs from real measurements."""

import html.parser
import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from support.server import ACCESS_KEY, SECRET_KEY, Server, binary

PAGE = Path(__file__).parent.parent / "docs" / "PLAN.md"
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
SERVER = ["--cpus", "16", "--network", "25", "--volume-size", "18", "--volume-rate", "200"]


def examples() -> list[tuple[str, str]]:
    """Commands of the page, and what it says they show."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.replace("\\\n", " ").splitlines()
            found.append((lines[0], "\n".join(lines[1:]).strip("\n")))
    return found


def plan(*arguments: str | Path, status: int = 0) -> str:
    """What it shows, and complains of."""
    done = subprocess.run(
        [binary(), "plan", *arguments], capture_output=True, text=True, env=KEYS, check=False
    )
    assert done.returncode == status, (arguments, done)
    assert "panicked" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("command", "shown"), examples(), ids=[command for command, _ in examples()])
def test_the_examples_of_the_page(command: str, shown: str) -> None:
    words = shlex.split(command)
    assert words[:2] == ["slipway", "plan"]
    done = subprocess.run([binary(), *words[1:]], capture_output=True, text=True, env={}, check=False)
    assert (done.stdout + done.stderr).strip("\n") == shown


def test_the_page_has_examples_of_all_ends() -> None:
    shown = [shown for _, shown in examples()]
    for end in ("it fits", "it does not fit", "slipway: "):
        assert any(end in text for text in shown), end


@pytest.fixture
def own_server(make_server) -> Server:
    """Whose CPU is used by nothing else."""
    return make_server()


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "line", "rect", "circle", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_figures_and_a_page_are_written(tmp_path: Path) -> None:
    load = ["--sizes", "4k=70,1m=30", "--objects", "1e6", "--gets", "10", "--growth", "30", "--years", "3"]
    plan(
        *SERVER,
        "--volumes",
        "8",
        "--local",
        "raid6",
        *load,
        "--json",
        tmp_path / "a",
        "--html",
        tmp_path / "b",
    )
    figures = json.loads((tmp_path / "a").read_text())
    assert figures["fits"] is True
    assert figures["capacity"] == {
        "raw_tib": 144.0,
        "usable_tib": 108.0,
        "efficiency": 0.75,
        "overhead": 0.25,
    }
    assert [one["bytes"] for one in figures["footprints"]] == [4096.0, 1048576.0]
    assert {one["operation"] for one in figures["ceilings"]} == {"head", "get", "put"}
    page = (tmp_path / "b").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.seen.count("svg") == 6
    assert "http" not in page.split("</style>")[1]


@pytest.mark.parametrize("form", ["--json", "--html"])
def test_a_dash_is_standard_output(tmp_path: Path, form: str) -> None:
    """In place of the text, and no file of that name."""
    load = ["--objects", "1e6", "--gets", "10"]
    done = subprocess.run(
        [binary(), "plan", *SERVER, *load, form, "-"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plan(*SERVER, *load, form, tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    if form == "--json":
        assert json.loads(done.stdout) == json.loads((tmp_path / "file").read_text())
    else:
        assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.rstrip().endswith("</html>")


def test_what_can_not_be_is_refused_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[node.a]\nvcpus = 0\nnetwork_gbit = 1.0\n")
    for arguments, why in [
        ([], "--node NAME (--list shows the names)"),
        (["--node", "m5dn.8xlarge"], "--volume-size TIB"),
        (["--cpus", "2", "--network", "1", "--volume-size", "1"], "--volume-rate MIB"),
        (["--cpus", "2"], "--network"),
        ([*SERVER, "--volumes", "3", "--local", "raid6"], "raid6 needs at least 4 volumes"),
        ([*SERVER, "--spread", "4+2"], "4+2 needs 6 nodes"),
        ([*SERVER, "--spread", "+2n", "--nodes", "7"], "give the protection as numbers, such as 4+2"),
        ([*SERVER, "--gateways", "2"], "use at most 1"),
        ([*SERVER, "--gets=-1"], "a number of 0 or more"),
        ([*SERVER, "--sizes", "4k,1m"], "each of several sizes needs a share"),
        ([*SERVER, "--volume-iops", "0"], "a volume's operations a second: 0 is not between"),
        ([*SERVER, "--growth", "20000"], "a number from 0 to 10000"),
        ([*SERVER, "--from-memory", "150"], "a number from 0 to 100"),
        ([*SERVER, "--nodes", "x"], "a whole number, 1 to 1000000"),
        (["--list", "--json", tmp_path / "x"], "cannot be used with"),
        (["--against", tmp_path / "x", "--html", tmp_path / "x"], "cannot be used with"),
        (["--calibrate", tmp_path / "x", "--json", tmp_path / "x"], "cannot be used with"),
        ([*SERVER, "--catalogue", tmp_path / "bad.toml"], "bad.toml: node a"),
        ([*SERVER, "--catalogue", tmp_path / "none.toml"], "none.toml: No such file"),
        ([*SERVER, "--costs", tmp_path / "bad.toml"], "bad.toml: "),
        (["--calibrate", tmp_path / "bad.toml"], "not a report of slipway bench"),
        ([*SERVER, "--json", tmp_path / "none" / "x"], "No such file"),
        ([*SERVER, "--json", "-", "--html", "-"], "only one of the two can be written to standard output"),
    ]:
        assert why in plan(*arguments, status=2), arguments


def test_gateways_count_what_nodes_tell_each_other() -> None:
    load = ["--puts", "100", "--spread", "2x", "--gets", "2000"]
    of = [
        "--cpus",
        "16",
        "--network",
        "25",
        "--nodes",
        "2",
        "--volumes",
        "8",
        "--volume-size",
        "18",
        "--volume-rate",
        "2000",
    ]
    one = plan(*of, *load, "--gateways", "1")
    assert re.search(r"network out of a node .* 87 %", one), one
    assert "2 needed for at most 70 % busy" in one
    note = (
        "note: too few gateways for peaks: 2 needed for at most 70 % busy, 1 planned: --gateways 2\n"
        "  note: operations a second of a volume are not given (--volume-iops), so they are not looked at\n  it fits"
    )
    assert note in one, one
    assert "too few gateways" not in plan(*of, *load)


def test_mb_are_not_mib() -> None:
    shown = plan(*SERVER, "--sizes", "1MB=50,1MiB=50")
    assert re.search(r"^  976\.6 KiB", shown, re.M), shown
    assert re.search(r"^  1 MiB", shown, re.M), shown


@pytest.mark.parametrize("load", [[], ["--gets", "1e9"]], ids=["fits", "does not"])
def test_a_closed_pipe_is_no_verdict(load: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [binary(), "plan", *SERVER, *load], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_result_that_can_not_be_written_is_a_failure() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [binary(), "plan", "--list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2 and "standard output: No space left" in done.stderr, done


def test_a_catalogue_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        "[node.ours]\nvcpus = 8\nnetwork_gbit = 10.0\nusd_per_hour = 0.5\n"
        "[volume.disk]\nmib_per_second = 100.0\nusd_per_gib_month = 0.01\n"
        "[[cluster]]\nprotection = 'safe'\nnodes = 3\nspread = '3x'\n"
    )
    shown = plan("--catalogue", own, "--nodes", "3", "--node", "ours", "--volume", "disk", "--volume-size", "1",
                 "--spread", "safe")  # fmt: skip
    assert "any 2 nodes" in shown
    assert re.search(r"together +1\.54 USD/h", shown), shown
    assert "m5dn" not in plan("--catalogue", own, "--list")


def test_costs_come_from_measurements(own_server: Server, tmp_path: Path) -> None:
    runs = []
    for operation, sizes in [("head", "1k"), ("get", "1k,8m"), ("put", "1k,8m")]:
        runs.append(tmp_path / f"{operation}.json")
        command = [
            binary(),
            "bench",
            own_server.endpoint,
            operation,
            "--size",
            sizes,
            "-c",
            "4",
            "--objects",
            "4",
        ]
        command += ["--duration", "1s", "--warm-up", "100ms", "--json", runs[-1]]
        subprocess.run(command, env=KEYS, check=True, capture_output=True)
    missing = plan("--calibrate", runs[0], runs[1], status=2)
    assert "the reports contain PUT of 0 sizes" in missing
    costs = tmp_path / "costs.toml"
    costs.write_text(plan("--calibrate", *runs))
    # What it was made of, it says: medians, one for each size.
    shown = plan("--costs", costs, "--against", *runs)
    assert shown.count("+0.0 %") + shown.count("-0.0 %") == 5, shown
    assert "slipway bench" in plan(*SERVER, "--costs", costs, "--gets", "1")
    # A machine that takes half of that is seen to be another.
    text = costs.read_text()
    halved = re.sub(r"(seconds_per_request = )(\S+)", lambda m: f"{m[1]}{float(m[2]) / 2:.12f}", text)
    assert halved != text
    costs.write_text(halved)
    assert "-50.0 %" in plan("--costs", costs, "--against", *runs, status=1)


def test_what_is_no_plain_measurement_is_left_out(own_server: Server, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    command = [
        binary(),
        "bench",
        own_server.endpoint,
        "get",
        "--size",
        "1m",
        "--range",
        "1k",
        "-c",
        "2",
        "--objects",
        "2",
    ]
    command += ["--duration", "1s", "--warm-up", "100ms", "--json", run]
    subprocess.run(command, env=KEYS, check=True, capture_output=True)
    shown = plan("--against", run, status=2)
    assert "ignored: get 1 MiB in ranges of 1 KiB" in shown
    assert "the files contain nothing that can be compared" in shown
