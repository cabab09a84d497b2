#!/usr/bin/env python3
"""Repeats four published studies of S3 servers, and sets their figures beside ours: docs/STUDIES.md.

    cargo build --release && bench/study.py --all --scale small      # all rows, within five minutes
    bench/study.py a --scale full --dir /mnt/x                       # one gateway, as the study did it
    bench/study.py a c --nginx \\
        --server 'versitygw=versitygw --port {address} --keep-alive --quiet posix {dir}' \\
        --server 'minio=env MINIO_CI_CD=1 MINIO_STORAGE_CLASS_STANDARD=EC:1 minio server --quiet --address {address} {dir}/d{1...4}'
    bench/study.py --all --json bench/studies/measured.json --write  # and docs/STUDIES.md from it
    bench/study.py --write --json bench/studies/measured.json        # the document alone

--write takes what a commit of this history measured, from a tree without changes; --any-commit takes the rest as
well, and the document says so.

Studies: a, one gateway on a null backend and on files; b, one to five gateways on one tree (as root); c,
tiny objects, and what they leave on disks (some of it as root); d, the tables of a cluster in a cloud, by
`slipway plan`.

Each server has a directory of its own below --dir; they are loaded in turn, step by step. A command with
{dir} is measured on files, one without it beside our null backend. Servers get the keys as ROOT_ACCESS_KEY
and MINIO_ROOT_USER have them; name them versitygw and minio, since rows are held to these. What is measured
goes to --json, each study in place of what that had of it at this scale.

--scale full is the studies' own, and takes about six hours, and three more for each other server; --seconds
and --repeat shorten it. docs/decisions/0029-published-studies.md has why all this is as it is.

Exit status: 0 measured, whatever the verdicts; 1 some of it could not be, and why; 2 wrong options.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from common import ROOT, take_ends
from lab import Unmeasurable
from servers import BINARY, NotStarted
from studies import study_a, study_b, study_c, study_d
from studies.document import render
from studies.rows import published, verdict
from studies.run import OURS, Run, Server
from studies.scale import SCALES, changed

STUDIES = {"a": study_a, "b": study_b, "c": study_c, "d": study_d}
DOCUMENT = ROOT / "docs/STUDIES.md"
# Files that may have changes when figures are measured: no figure depends on them.
APART = ["docs", "bench/studies/measured.json"]
FORMAT = 1
ORDER = ["full", "small", "tiny"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # The page shows options as they are given.
        allow_abbrev=False,
    )
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="a, b, c, d")
    parser.add_argument("--all", action="store_true", help="all four")
    parser.add_argument("--scale", choices=list(SCALES), default="small", help="default: %(default)s")
    parser.add_argument(
        "--dir", type=pathlib.Path, help="where data goes (default: the system's temporary directory)"
    )
    parser.add_argument("--seconds", type=float, help="of a step, instead of the scale's")
    parser.add_argument("--repeat", type=int, help="instead of the scale's")
    parser.add_argument(
        "--server", action="append", default=[], metavar="NAME=COMMAND", help="another server"
    )
    parser.add_argument("--nginx", action="store_true", help="beside nginx too, where it can do the same")
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"], help="of ours")
    parser.add_argument("--binary", type=pathlib.Path, default=BINARY, help="default: %(default)s")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "target/study/measured.json")
    parser.add_argument(
        "--write", action="store_true", help=f"write {DOCUMENT.relative_to(ROOT)} from --json"
    )
    parser.add_argument(
        "--any-commit", action="store_true", help="write what can't be measured again from this history, too"
    )
    options = parser.parse_args()
    if unknown := [name for name in options.studies if name not in STUDIES]:
        parser.error(f"no study {unknown[0]}")
    if options.all:
        options.studies = list(STUDIES)
    if not options.studies and not options.write:
        parser.error("which study? a, b, c, d, or --all")
    for given in options.server:
        name, found, command = given.partition("=")
        if not found or name == OURS or "{address}" not in command:
            parser.error(
                f"--server {given}: NAME=COMMAND with {{address}} in it, and another name than {OURS}"
            )
    return options


def said(*command: str | os.PathLike) -> str:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def has_changes() -> bool:
    """True if a file of this checkout that figures may depend on is not as its commit has it."""
    others = [f":!{path}" for path in APART]
    return bool(said("git", "status", "--porcelain", "--untracked-files=no", "--", ".", *others))


def origin(found: dict) -> str:
    """Why a run can't be repeated from this history; nothing if it can."""
    command = ["git", "merge-base", "--is-ancestor", found["commit"], "HEAD"]
    if subprocess.run(command, capture_output=True, cwd=ROOT).returncode:
        return "which is not in this history"
    return "with changes that were not committed" if found.get("has_changes") else ""


def machine(directory: pathlib.Path) -> dict:
    text = pathlib.Path("/proc/cpuinfo").read_text()
    processor = next(
        (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")),
        "",
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processors": os.cpu_count(),
        "processor": processor,
        "memory_gib": round(memory / 2**30),
        "kernel": os.uname().release,
        "file_system": said("df", "--output=fstype", directory).split()[-1],
    }


def command_shown() -> str:
    """As it can be typed again: without what has no part in the figures."""
    words, left = iter(sys.argv[1:]), []
    for word in words:
        if word in ("--json", "--binary"):
            next(words, None)
        elif word not in ("--write", "--any-commit") and not word.startswith(("--json=", "--binary=")):
            left.append(word)
    return f"bench/study.py {shlex.join(left)}"


def measure(letter: str, options: argparse.Namespace, directory: pathlib.Path) -> dict:
    """A study, as --json keeps it."""
    others = [
        Server(name, command) for name, _, command in (given.partition("=") for given in options.server)
    ]
    scale = changed(SCALES[options.scale], options.seconds, options.repeat)
    run = Run(options.binary, directory, scale, options.durability, others, with_nginx=options.nginx)
    for server in run.servers("files") + run.servers("null"):
        # Else each of its steps would wait for it in vain.
        with run.started(server):
            pass
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        STUDIES[letter].measure(run)
    except (NotStarted, Unmeasurable, subprocess.SubprocessError) as error:
        # What was measured before is kept.
        run.problem(f"study {letter.upper()}: {error}")
    return {
        "date": datetime.date.today().isoformat(),
        "commit": said(options.binary, "--version").rpartition("(")[2].rstrip(")"),
        "has_changes": has_changes(),
        "command": command_shown(),
        "scale": options.scale,
        "other_times": options.seconds is not None or options.repeat is not None,
        "durability": options.durability,
        "machine": machine(directory),
        "nice": os.nice(0),
        "load": [load, os.getloadavg()[0]],
        "seconds": time.monotonic() - began,
        "rows": run.rows,
        "steps": run.steps,
        "problems": run.problems,
    }


def read(path: pathlib.Path) -> dict:
    if not path.exists():
        return {"format": FORMAT, "studies": {}}
    found = json.loads(path.read_text())
    if found.get("format") != FORMAT:
        sys.exit(f"{path}: of another format; remove it, and measure again")
    return found


def rounded(value):
    """Four digits: more are noise, in a file that is kept."""
    if isinstance(value, dict):
        return {name: rounded(of) for name, of in value.items()}
    if isinstance(value, list):
        return [rounded(of) for of in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def tell(letter: str, found: dict) -> None:
    _, rows = published()
    print(f"\nstudy {letter}: {found['seconds']:.0f} s")
    for row in (row for row in rows if row.study == letter):
        of = found["rows"].get(row.id, {})
        ours = of.get("text") or (f"{of['value']:,.4g} {row.unit}" if "value" in of else "")
        shape = f", {row.shape['what']}: {of['shape']:.3g}" if row.shape and "shape" in of else ""
        print(
            f"  {row.id:24} {row.published}\n{'':27}{ours}{shape}: {verdict(row, of or None, found['nice'])}"
        )
    print(flush=True)


def save(measured: dict, path: pathlib.Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measured, indent=1) + "\n")


def write(measured: dict, path: pathlib.Path, *, any_commit: bool) -> None:
    """The document, and into the measurements at `path` what is odd about their commits."""
    for letter, runs in measured["studies"].items():
        for found in runs:
            found.pop("origin", None)
            if odd := origin(found):
                found["origin"] = odd
                if not any_commit:
                    scale, commit = found["scale"], found["commit"]
                    sys.exit(
                        f"study.py: study {letter}, {scale} scale, was measured with commit {commit}, {odd}: "
                        f"measure it again, or give --any-commit; {DOCUMENT.name} is as it was"
                    )
    save(measured, path)
    DOCUMENT.write_text(render(measured))


def main() -> None:
    options = arguments()
    measured = read(options.json)
    began = time.monotonic()
    if options.studies and not options.binary.exists():
        sys.exit(f"{options.binary} does not exist: cargo build --release")
    failed = False
    for name in options.studies:
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-study-") as directory:
            # nginx's workers may be someone else.
            os.chmod(directory, 0o755)
            found = rounded(measure(name, options, pathlib.Path(directory)))
        others = measured["studies"].get(name.upper(), [])
        others = [found, *(of for of in others if of["scale"] != options.scale)]
        # The largest first: it is what the study did.
        measured["studies"][name.upper()] = sorted(others, key=lambda of: ORDER.index(of["scale"]))
        failed |= bool(found["problems"])
        tell(name.upper(), found)
        save(measured, options.json)
    if options.studies:
        print(f"{len(options.studies)} studies in {time.monotonic() - began:.0f} s: {options.json}")
    if options.write:
        write(measured, options.json, any_commit=options.any_commit)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    take_ends()
    try:
        main()
    except NotStarted as error:
        sys.exit(f"study.py: {error}")
    except KeyboardInterrupt:
        sys.exit("study.py: ended early; all that was made is removed")
