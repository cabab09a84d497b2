"""PUTs while a gateway comes and goes, each of them looked for afterwards. For bench/cluster.py."""

import argparse
import collections
import contextlib
import ctypes
import hashlib
import http.client
import multiprocessing
import os
import pathlib
import pickle
import queue
import signal
import statistics
import threading
import time

from common import KEYS, presign, request
from lab import HAProxy, Lab, Unmeasurable, stop

SIZE = 32 << 10
DURABILITY = "full"
PROCESSES, CONNECTIONS = 2, 16
BUCKET = "change"
# Of the new middle: from then on throughput has followed.
FOLLOWED = 0.9
ANSWER_SECONDS = 30


def body(key: str) -> bytes:
    """What belongs to a key, and to no other."""
    digest = hashlib.sha256(key.encode()).digest()
    return digest * (SIZE // len(digest))


class Writer:
    """A process that writes keys of its own, each once, over connections of which each waits for its answer."""

    def __init__(self, host: str, number: int, file: pathlib.Path) -> None:
        self.host, self.number, self.file = host, number, file
        self.going = multiprocessing.RawValue(ctypes.c_bool, True)
        self.parent = os.getpid()
        self.process = multiprocessing.get_context("fork").Process(target=self._run, daemon=True)
        self.process.start()

    def _run(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        done: queue.SimpleQueue = queue.SimpleQueue()
        threads = [threading.Thread(target=self._write, args=(n, done)) for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers = [done.get() for _ in range(done.qsize())]
        self.file.write_bytes(pickle.dumps(answers))

    def _write(self, thread: int, done: queue.SimpleQueue) -> None:
        connection, count = http.client.HTTPConnection(self.host, timeout=ANSWER_SECONDS), 0
        while self.going.value and os.getppid() == self.parent:
            key = f"{self.number}/{thread}/{count}"
            count += 1
            path = f"/{BUCKET}/{key}"
            try:
                connection.request("PUT", presign("PUT", self.host, path, KEYS), body(key))
                answer = connection.getresponse()
                text = answer.read()
                wrong = (
                    None if answer.status == 200 else f"{answer.status} {text[:300].decode(errors='replace')}"
                )
            except (OSError, http.client.HTTPException) as error:
                wrong = repr(error)
                connection.close()
            done.put((time.monotonic(), key, wrong))

    def answers(self) -> list[tuple[float, str, str | None]]:
        self.going.value = False
        self.process.join(ANSWER_SECONDS + 10)
        if self.process.exitcode != 0:
            raise Unmeasurable("a writer did not end as it should")
        return pickle.loads(self.file.read_bytes())

    def stop(self) -> None:
        self.going.value = False
        if self.process.is_alive():
            self.process.kill()
            self.process.join(10)


def lost(host: str, tree: pathlib.Path, keys: list[str]) -> list[str]:
    """Keys whose bytes are not what was acknowledged: in the tree, or by a gateway, which is asked for each tenth."""
    bad = []
    connection = http.client.HTTPConnection(host, timeout=ANSWER_SECONDS)
    for number, key in enumerate(keys):
        expected, path = body(key), f"/{BUCKET}/{key}"
        try:
            same = (tree / path[1:]).read_bytes() == expected
        except OSError:
            same = False
        if same and number % 10 == 0:
            connection.request("GET", presign("GET", host, path, KEYS))
            answer = connection.getresponse()
            same = answer.read() == expected and answer.status == 200
        if not same:
            bad.append(key)
    connection.close()
    return bad


def measure(lab: Lab, proxy: HAProxy, options: argparse.Namespace) -> dict:
    """Three parts of the same length: before, with one more gateway, without it again."""
    before = min(2, options.gateways - 1)
    last, delay = before + 1, options.drain_delay
    for number in range(1, before + 1):
        lab.add(number, DURABILITY, options.share)
    proxy.wait(range(1, before + 1))
    # Its network is made before: that takes a second, and is not the gateway's.
    lab.namespace(last)
    request("PUT", proxy.host, f"/{BUCKET}", KEYS)
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        writers = []
        for number in range(PROCESSES):
            writers.append(Writer(proxy.host, number, lab.work / f"writer{number}"))
            stack.callback(writers[-1].stop)
        time.sleep(options.change_seconds)
        added = time.monotonic() - began
        lab.add(last, DURABILITY, options.share, "--drain-delay", str(delay))
        time.sleep(options.change_seconds)
        removed = time.monotonic() - began
        gateway = lab.gateways.pop(last)
        stop(gateway.process)
        gone = time.monotonic() - began
        if gateway.process.returncode != 0:
            raise Unmeasurable(f"the gateway that was stopped ended with {gateway.process.returncode}")
        time.sleep(options.change_seconds)
        end = time.monotonic() - began
        answers = [answer for writer in writers for answer in writer.answers()]
    seconds = collections.Counter(int(at - began) for at, _, wrong in answers if not wrong)
    rates = [seconds[second] for second in range(int(end))]
    kept = [key for _, key, wrong in answers if not wrong]
    return {
        "gateways": before,
        "size": SIZE,
        "durability": DURABILITY,
        "connections": PROCESSES * CONNECTIONS,
        "drain_delay": delay,
        "added_at": added,
        "removed_at": removed,
        "gone_at": gone,
        "per_second": rates,
        **followed(rates, added, removed),
        "acknowledged": len(kept),
        "failed": [f"{at - began:.1f} s: {wrong}" for at, _, wrong in sorted(answers) if wrong],
        "lost": lost(proxy.host, lab.tree, kept),
    }


def followed(rates: list[int], added: float, removed: float) -> dict:
    """The middle second of each part's second half, and how many seconds it took to get nine tenths of the way there."""
    parts = {
        "before": (0, int(added)),
        "with": (int(added) + 1, int(removed)),
        "after": (int(removed) + 1, len(rates)),
    }
    middle = {}
    for name, (first, end) in parts.items():
        middle[name] = statistics.median(rates[(first + end) // 2 : end] or [0])
    follows: dict[str, int | None] = {"added": None, "removed": None}
    for what, old, new, at in (
        ("added", "before", "with", int(added)),
        ("removed", "with", "after", int(removed)),
    ):
        goal = middle[old] + FOLLOWED * (middle[new] - middle[old])
        rising = middle[new] > middle[old]
        for second in range(at, parts[new][1]):
            if rates[second] >= goal if rising else rates[second] <= goal:
                follows[what] = second - at
                break
    return {"middle": middle, "follows": follows}
