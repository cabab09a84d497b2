"""Puts two gateways on one tree to work for a long time, and looks for what adds up.

.venv/bin/python tests/soak/run.py --minutes 30

Each round asks for everything in turn, with clients that go away in the middle, and ends with a rest. A round of its own
before the first warms up. What a gateway has at rest may not grow from then on: memory, descriptors. At the end
the tree is checked, and has to be empty.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import expect
from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import ACCESS_KEY, KEYS, SECRET_KEY, Server, assert_nothing_staged, binary, remove_tree
from support.wire import poll

CLIENT_KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
# Operation, options. Sizes on both sides of what is kept in memory, digested in lanes, read ahead.
WORK = [
    ("put", "--size", "1,4k,100k,1m", "-c", "32"),
    ("get", "--size", "1k,60k,300k,5m", "-c", "32"),
    ("get", "--size", "5m", "--range", "64k", "-c", "16"),
    ("head", "--size", "1k", "-c", "64"),
    ("list", "--size", "1", "--objects", "3000", "-c", "8"),
    ("delete", "--size", "1k", "-c", "16"),
    ("multipart", "--size", "40m", "--part-size", "5m", "-c", "8"),
    ("mixed", "--mix", "get=45,put=25,head=20,list=5,delete=5", "--size", "40k", "-c", "300"),
]
STEP = ("--duration", "2s", "--warm-up", "100ms")
# The runtime keeps a thread for 10 s that has nothing to do, and each has a stack and free lists of
# its own: 80 of them took 10 MiB, and how many there are depends on what else the machine does.
REST_SECONDS = 12
# Full after the first round, so that what grows from then on is none of theirs.
CACHES = ("--index-cache", "4", "--object-cache", "4")
# By default the C library's allocator gives each thread an arena of its own, up to eight for each
# processor, and keeps some of what was in each: 15 MiB more at rest after 17 rounds on two
# processors, of which (by malloc_stats) 2 MiB were in use, all of them caches that fill. With two
# arenas what is left over is seen sooner.
ALLOCATOR = {"MALLOC_ARENA_MAX": "2"}
GROWTH_KIB_MAX = 8 << 10


@dataclass(frozen=True)
class Rest:
    """What a gateway has when nobody asks for anything."""

    memory_kib: int
    descriptors: int
    threads: int

    @classmethod
    def of(cls, server: Server) -> "Rest":
        process = Path(f"/proc/{server.pid}")
        return cls(
            server.status_kib("RssAnon"), len(os.listdir(process / "fd")), len(os.listdir(process / "task"))
        )

    def __str__(self) -> str:
        return f"{self.memory_kib / 1024:.1f} MiB, {self.descriptors} descriptors, {self.threads} threads"


def bench(servers: list[Server], *work: str) -> None:
    endpoints = ",".join(server.endpoint for server in servers)
    done = subprocess.run(
        [binary(), "bench", endpoints, *work, *STEP],
        env=CLIENT_KEYS,
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{work}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"


def go_away(bucket: Bucket, chance: random.Random) -> None:
    """Clients that break off uploads, parts and downloads somewhere, and requests that are refused."""
    body = pattern(MIB)
    bucket.put("large", body * 8)
    upload_id = bucket.create_upload("parts")
    targets = [("gone", {}), ("parts", {"partNumber": "1", "uploadId": upload_id})]
    for _ in range(200):
        key, query = chance.choice(targets)
        sent = chance.randrange(len(body))
        request = bucket.raw.prepare("PUT", bucket.path(key), query=query, body=body)
        with bucket.raw.connect() as connection:
            connection.send(request.head + body[:sent])
            if chance.random() < 0.5:
                connection.reset()
        with bucket.raw.connect() as connection:
            connection.send(bucket.raw.prepare("GET", bucket.path("large")).bytes)
            connection.head()
            connection.read(chance.randrange(8 * MIB))
            connection.reset()
        wrong = {"content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}
        expect.error(bucket.raw.put(bucket.path("bad"), body, headers=wrong), "BadDigest")
    expect.ok(bucket.abort("parts", upload_id), 204)
    bucket.delete("large")


def one_round(servers: list[Server], number: int) -> list[Rest]:
    for work in WORK:
        bench(servers, *work)
    for server in servers:
        bucket = Bucket(server, f"gone-{number}-{server.pid}").create()
        go_away(bucket, random.Random(number))
        assert poll(lambda bucket=bucket: bucket.keys() == [], 10)
        assert_nothing_staged(bucket.tree)
        expect.ok(bucket.raw.delete(bucket.path()), 204)
    time.sleep(REST_SECONDS)
    return [Rest.of(server) for server in servers]


def grown(before: Rest, after: Rest) -> list[str]:
    what = []
    if after.memory_kib > before.memory_kib + GROWTH_KIB_MAX:
        what.append("memory")
    if after.descriptors > before.descriptors:
        what.append("descriptors")
    return what


def soak(tree: Path, minutes: float, options: list[str]) -> bool:
    servers = [
        Server(
            tree,
            *("--durability", "none", *CACHES, *options),
            env={**KEYS, **ALLOCATOR},
            log=tree.parent / f"server-{number}.log",
        )
        for number in range(2)
    ]
    try:
        first = one_round(servers, 0)
        print("warm:", *first, sep="\n    ", flush=True)
        end, number, rest = time.monotonic() + minutes * 60, 0, first
        while time.monotonic() < end:
            number += 1
            rest = one_round(servers, number)
            print(f"round {number}:", *rest, sep="\n    ", flush=True)
        wrong = [what for before, after in zip(first, rest, strict=True) for what in grown(before, after)]
        left = [entry.name for entry in tree.iterdir() if entry.name != ".slipway"]
        assert not left, left
    finally:
        for server in servers:
            server.stop()
    checked = subprocess.run([binary(), "fsck", str(tree)], text=True, capture_output=True, timeout=600)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    print(f"{number} rounds: " + (f"GREW: {', '.join(wrong)}" if wrong else "nothing grew"))
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("options", nargs="*", help="for the servers, behind --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slipway-soak-") as directory:
        tree = Path(directory) / "tree"
        tree.mkdir()
        try:
            return 0 if soak(tree, options.minutes, options.options) else 1
        finally:
            remove_tree(tree)


if __name__ == "__main__":
    sys.exit(main())
