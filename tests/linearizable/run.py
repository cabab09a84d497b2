#!/usr/bin/env python3
"""Checks the linearizability of concurrent clients through several gateways on one tree, which are killed.

    .venv/bin/python tests/linearizable/run.py [--seconds 60] [--gateways 3] [--clients 8] [--keys 8] [--seed N]

The clients record each request with its times and its answer (`clients.py` describes the format). A checker in
Go (`checker/`, on porcupine) then searches an order of each key's operations that explains all answers. A write
without an answer, for example because its gateway was killed, may take effect at any time after its start, or
never.

The gateways are `SLIPWAY_BINARY`, by default target/release/slipway, on a tree in a temporary directory. The
history and each gateway's log are left in `--out`. If a key is not linearizable, the exit status is 1, and
`violation.txt` and `violation.html` show the smallest part of the history that was found not to be.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from linearizable.clients import BUCKET, Client, Plan, work  # noqa: E402
from support.bucket import Bucket  # noqa: E402
from support.history import etag_of  # noqa: E402
from support.server import REPOSITORY, Server, binary, remove_tree  # noqa: E402

CHECKER = Path(__file__).resolve().parent / "checker"
# The first few are related already. The directory `d` has many other files.
KEYS = [
    "k",
    "k/",
    "k/a",
    "d/k",
    "k/a/b",
    "d/k/",
    "d/k/a",
    "e",
    "e/a",
    "d/l",
    "k/b",
    "l",
    "l/",
    "l/a",
    "d/l/a",
    "m",
]
# Enough for a directory to be indexed and watched; smaller ones are read anew for each listing.
FILLING = {f"d/filling{number:03}": b"x" * number for number in range(1, 151)}
# The time after which a request counts as unanswered.
TIMEOUT = 20.0
# The seconds between a kill and the next start.
PAUSES = [0.0, 0.0, 0.2, 1.0]
# The share of kills that hit all gateways at once.
ALL_AT_ONCE = 0.2
# Below the ports that the kernel gives to clients.
PORTS = range(20_000, 32_000)


class Gateways:
    """The servers of a run. Each keeps its address when it is started again."""

    def __init__(self, tree: Path, options: argparse.Namespace) -> None:
        self.tree, self.out, self.options = tree, options.out, options
        self.chance = random.Random(f"{options.seed}/gateways")
        self.ports = [self.free_port() for _ in range(options.gateways)]
        self.servers: list[Server] = []
        self.kills: list[dict] = []
        for number in range(options.gateways):
            self.servers.append(self.start(number))

    def free_port(self) -> int:
        while True:
            port = self.chance.choice(PORTS)
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port

    def start(self, number: int) -> Server:
        options = ("--durability", self.options.durability)
        address = f"127.0.0.1:{self.ports[number]}"
        return Server(self.tree, *options, listen=(address,), log=self.out / f"gateway-{number}.log")

    def kill(self) -> None:
        """Kills one gateway, or all, and starts them again."""
        numbers = [self.chance.randrange(len(self.servers))]
        if self.chance.random() < ALL_AT_ONCE:
            numbers = list(range(len(self.servers)))
        start = time.monotonic_ns()
        for number in numbers:
            self.servers[number].process.kill()
        for number in numbers:
            self.servers[number].kill()
        time.sleep(self.chance.choice(PAUSES))
        for number in numbers:
            self.servers[number] = self.start(number)
            times = {"start": start, "end": time.monotonic_ns()}
            self.kills.append({"op": "kill", "gateway": number, **times})

    def stop(self) -> list[str]:
        """Stops all gateways. Returns what went wrong."""
        wrong = []
        for number, server in enumerate(self.servers):
            if (status := server.stop()) != 0:
                wrong.append(f"gateway {number} ended with status {status}")
            if "panicked" in server.log:
                wrong.append(f"gateway {number} panicked: see {server.log_file}")
        return wrong


def record(gateways: Gateways, options: argparse.Namespace) -> Path:
    """Performs a run. Returns the file with its history."""
    bucket = Bucket(gateways.servers[0], BUCKET).create()
    filling = FILLING if any(key.startswith("d/") for key in KEYS[: options.keys]) else {}
    for key, body in filling.items():
        bucket.put(key, body)
    plan = Plan(
        options.seed,
        [server.address for server in gateways.servers],
        KEYS[: options.keys],
        {key: etag_of(body) for key, body in filling.items()},
        options.seconds,
        TIMEOUT,
    )
    files = [options.out / f"client-{number}.jsonl" for number in range(options.clients)]
    # The process has threads, which read what the servers print: it must not fork.
    processes = multiprocessing.get_context("spawn")
    begin = processes.Barrier(options.clients + 1)
    clients = [
        processes.Process(target=work, args=(number, plan, file, begin), daemon=True)
        for number, file in enumerate(files)
    ]
    for client in clients:
        client.start()
    begin.wait(60)
    lines = [{"op": "about", "hot_keys": plan.hot}]
    kill_often(gateways, options)
    for number, client in enumerate(clients):
        client.join(options.seconds + 3 * TIMEOUT)
        if client.exitcode != 0:
            lines.append({"op": "wrong", "what": f"client {number} ended with status {client.exitcode}"})
    last = Client(options.clients, plan, lines.append)
    last.read_all()
    lines += gateways.kills
    lines += [{"op": "wrong", "what": what} for what in gateways.stop()]
    history = options.out / "history.jsonl"
    with open(history, "w") as all_lines:
        for line in lines:
            print(json.dumps(line), file=all_lines)
        for file in files:
            with open(file) as own:
                shutil.copyfileobj(own, all_lines)
            file.unlink()
    return history


def kill_often(gateways: Gateways, options: argparse.Namespace) -> None:
    """Divides the run into as many spans as there are kills, with a kill in each. Returns when the run ends."""
    begin = time.monotonic()
    spans = options.kills if options.kill else 0
    for number in range(spans):
        moment = begin + (number + gateways.chance.uniform(0.1, 0.9)) * options.seconds / spans
        time.sleep(max(0.0, moment - time.monotonic()))
        gateways.kill()
    time.sleep(max(0.0, begin + options.seconds - time.monotonic()))


def summary(history: Path) -> list[str]:
    """A line for each kind of request, with the number of each answer."""
    answers: dict[str, Counter[str]] = {}
    with open(history) as lines:
        for line in map(json.loads, lines):
            if "client" in line:
                name = line["op"] + "".join(f" {c}" for c in ("if_match", "if_none_match") if c in line)
                answers.setdefault(name, Counter())[str(line.get("status", "no answer"))] += 1
    return [
        f"{name:<24} " + ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
        for name, counts in sorted(answers.items())
    ]


def build_checker(out: Path) -> Path:
    """Builds the checker. Returns its path."""
    program = out / "checker"
    command = ["go", "build", "-o", program, "."]
    built = subprocess.run(command, cwd=CHECKER, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if built.returncode:
        sys.exit(f"the checker could not be built: {built.stderr}")
    return program


def parse() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--seconds", type=float, default=60, help="how long clients send (default 60)")
    parser.add_argument("--seed", type=int, help="of all random choices (default: the time)")
    parser.add_argument("--gateways", type=int, default=3, help="number of gateways (default 3)")
    parser.add_argument("--clients", type=int, default=8, help="number of client processes (default 8)")
    parser.add_argument("--keys", type=int, default=8, help=f"number of keys, 2 to {len(KEYS)} (default 8)")
    parser.add_argument(
        "--kill",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="kill gateways (SIGKILL) and start them again during the run (the default)",
    )
    parser.add_argument(
        "--kills", type=int, help="number of kills (default: one every 8 seconds, at least 3)"
    )
    parser.add_argument(
        "--durability",
        choices=["full", "data", "none"],
        default="none",
        help="of the gateways (default none)",
    )
    parser.add_argument(
        "--directory", type=Path, help="where the tree is made and removed (default: TMPDIR, or /tmp)"
    )
    parser.add_argument("--limit", default="120s", help="the checker's time for each key (default 120s)")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "target" / "linearizable", help="where the results go"
    )
    options = parser.parse_args()
    if not 2 <= options.keys <= len(KEYS):
        parser.error(f"--keys takes 2 to {len(KEYS)}")
    if options.gateways < 1 or options.clients < 1 or options.seconds <= 0:
        parser.error("there must be gateways, clients, and time for them")
    if options.seed is None:
        options.seed = time.time_ns() // 1_000_000
    if options.kills is None:
        options.kills = max(3, int(options.seconds / 8))
    options.out = options.out.resolve()
    return options


def main() -> int:
    options = parse()
    os.environ.setdefault("SLIPWAY_BINARY", str(REPOSITORY / "target" / "release" / "slipway"))
    binary()
    options.out.mkdir(parents=True, exist_ok=True)
    for stale in [*options.out.glob("gateway-*.log"), *options.out.glob("violation.*")]:
        stale.unlink()
    checker = build_checker(options.out)
    print(f"seed {options.seed}", flush=True)
    tree = Path(tempfile.mkdtemp(prefix="slipway-linearizable-", dir=options.directory))
    gateways = Gateways(tree, options)
    try:
        history = record(gateways, options)
    finally:
        for server in gateways.servers:
            server.kill()
        remove_tree(tree)
    print("\n".join(summary(history)), flush=True)
    command = [checker, "-limit", options.limit, "-out", options.out, history]
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
