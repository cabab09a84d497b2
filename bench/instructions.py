#!/usr/bin/env python3
"""Instructions that the server spends on one request, counted by callgrind, against what they were.

The whole way of a request through one process is counted: HTTP, signature, routing, the answer; the system calls
are not (bench/calls.py), nor is storage: the requests go to `null:`, since valgrind lacks openat2.

    cargo build --release -p gateway --example requests
    bench/instructions.py              # counts, and shows the baseline beside them
    bench/instructions.py --check      # exit status 1 if a count is above the baseline and its tolerance
    bench/instructions.py --update     # makes them the baseline (bench/instructions.json)
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from common import ACCESS_KEY, ROOT, SECRET_KEY

BASELINE = ROOT / "bench" / "instructions.json"
KINDS = {
    "head": "HEAD, presigned",
    "get": "GET, presigned",
    "get-signed": "GET, signed in headers",
    "put": "PUT of 1 KiB, signed in headers",
    "render": "a page of 100 keys, as XML",
}
# Two counts and what lies between them: start and end of the process cancel out.
FEW, MANY = 100, 600
TOLERANCE = 0.05
# Counted again with what operators look at switched on, and compared with the count without
# (decision 0019).
OBSERVED = ("head", "get", "put")
METRICS = ("--ops-listen", "127.0.0.1:0")
BOTH = "metrics and access log"
# What a request took before there were either (ebe79ef, 2026-11-21). With both it may take
# OBSERVED_TOLERANCE more than that (decision 0021).
BEFORE_EITHER = {"head": 70185, "get": 71285, "put": 70896}
OBSERVED_TOLERANCE = 0.03
# What it is with, how it is switched on, and how much more it may cost: as a share of the baseline, not of
# today's count, so that a request that becomes cheaper does not make the same observer too dear.
OBSERVED_WITH = [
    # A PUT takes 2.2 %, and a GET 6.1 % with both. The rest is room for glibc's malloc, whose cost
    # for buffers that its caches do not take varies by some 250 instructions with what else is on
    # the heap.
    ("metrics", METRICS, 0.026),
    (BOTH, (*METRICS, "--access-log", "/dev/null"), 0.065),
    # Nobody takes the spans: what is counted is to make them (decision 0027).
    ("traces", ("--traces", "http://127.0.0.1:9"), 0.15),
    ("traces, of none", ("--traces", "http://127.0.0.1:9", "--traces-ratio", "0"), 0.02),
]


# glibc's free lists of a thread, as long as they may be: with its own seven, a few allocations
# more can make each request sort the heap, or not, by the luck of its layout. That is 1 % that no
# observer is to blame for.
STEADY = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=127"}


def collected(
    program: pathlib.Path, kind: str, count: int, options: tuple[str, ...], more: dict[str, str]
) -> int:
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        program,
        "null:",
        kind,
        str(count),
    ]
    command += options
    env = dict(os.environ, SLIPWAY_ROOT_ACCESS_KEY=ACCESS_KEY, SLIPWAY_ROOT_SECRET_KEY=SECRET_KEY, **more)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{kind}: {done.stderr[-2000:]}")
    return int(found[1])


def of_a_request(
    program: pathlib.Path, kind: str, options: tuple[str, ...] = (), more: dict[str, str] | None = None
) -> int:
    few, many = (collected(program, kind, count, options, more or {}) for count in (FEW, MANY))
    return round((many - few) / (MANY - FEW))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--program", type=pathlib.Path, default=ROOT / "target" / "release" / "examples" / "requests"
    )
    parser.add_argument(
        "--check", action="store_true", help="fail if a count is above the baseline and its tolerance"
    )
    parser.add_argument("--update", action="store_true", help="make the counts the baseline")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"{options.program} does not exist: cargo build --release -p gateway --example requests")
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    counts, worse = {}, []
    for kind, title in KINDS.items():
        counts[kind] = of_a_request(options.program, kind)
        before = baseline.get(kind)
        change = f"{counts[kind] / before - 1:+.1%}" if before else "new"
        print(f"{title:32} {counts[kind]:9,}  {change}", flush=True)
        if options.check and (before is None or counts[kind] > before * (1 + TOLERANCE)):
            worse.append(kind)
        if kind not in OBSERVED:
            continue
        alone = of_a_request(options.program, kind, more=STEADY)
        for observer, options_of_it, tolerance in OBSERVED_WITH:
            observed = of_a_request(options.program, kind, options_of_it, STEADY)
            more = observed / alone - 1
            share = (observed - alone) / baseline.get(kind, alone)
            since = observed / BEFORE_EITHER[kind] - 1
            text = f", {since:+.1%} against what it took before either" if observer == BOTH else ""
            print(f"  with {observer:25} {observed:9,}  {more:+.1%}{text}", flush=True)
            too_much = observer == BOTH and since > OBSERVED_TOLERANCE
            if options.check and (share > tolerance or too_much):
                worse.append(f"{kind} with {observer}")
    if options.update:
        BASELINE.write_text(json.dumps(counts, indent=2) + "\n")
    if worse:
        allowed = ", ".join(f"{tolerance:.1%} with {observer}" for observer, _, tolerance in OBSERVED_WITH)
        limits = f"{TOLERANCE:.0%} above the baseline, or for an observer, of the baseline, {allowed}"
        sys.exit(f"more than {limits}: {', '.join(worse)}. If there is a reason, --update and say it")


if __name__ == "__main__":
    main()
