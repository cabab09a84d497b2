#!/usr/bin/env python3
"""Which system calls on files one request costs, in their order, counted with strace.

Starts a server, warms it up, attaches strace to all its threads and sends each kind of request a few times; the calls of the last are
shown. Counted is what has to do with the file system: calls with a path, or a descriptor of a file or directory, or of inotify. Sockets,
futexes, epoll and memory are left out.

    cargo build --release && bench/calls.py
    bench/calls.py --dir /mnt/xfs --prefix ''       # elsewhere; keys in the bucket itself instead of a directory
    bench/calls.py --check                          # status 1 if a target is missed
    bench/calls.py --mount xfs                      # the bucket on a file system of its own (root; of a sparse file)

Needs strace, and the right to attach it (root, or kernel.yama.ptrace_scope = 0).
"""

import argparse
import collections
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from common import ROOT, Client, server

BUCKET = "bench"
PAGE_KEYS = 1000
ROUNDS = 3
# What the calls of a request end with may come after its answer.
SETTLE_SECONDS = 0.2
# What a request is to cost at most, close() included.
TARGETS = {"HEAD": 5, "HEAD, again": 5, "GET 1 KiB": 5, "GET 1 KiB, again": 5, "PUT 4 KiB, overwriting": 9}
NOT_FILES = (
    "socket:",
    "TCP",
    "UNIX",
    "pipe:",
    "anon_inode:[event",
    "anon_inode:[io",
    "NETLINK",
    "/dev/",
    "/proc/",
    "/sys/",
)


class Trace:
    """strace on all threads of a process."""

    def __init__(self, pid: int, file: pathlib.Path, tree: str) -> None:
        self.file, self.read_bytes, self.tree = file, 0, tree
        command = ["strace", "-f", "-y", "-s", "0", "-e", "trace=%file,%desc", "-o", file, "-p", str(pid)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        if "attached" not in said:
            sys.exit(f"strace did not attach: {said}")

    def take(self) -> list[str]:
        """The calls on files since the last time."""
        time.sleep(SETTLE_SECONDS)
        text = self.file.read_bytes()[self.read_bytes :]
        self.read_bytes += len(text)
        return [call for call in whole_calls(text.decode(errors="replace")) if is_of_files(call, self.tree)]

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=10)


def whole_calls(text: str) -> list[str]:
    """Calls in the order of their beginnings; strace cuts those in two that another thread's came between."""
    calls: list[str] = []
    begun: dict[str, int] = {}
    for line in text.splitlines():
        pid, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[pid] = len(calls)
            calls.append(call.removesuffix("<unfinished ...>").strip())
        elif resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", call):
            # One that began before the first line is of no request.
            if pid in begun:
                calls[begun.pop(pid)] += resumed[1]
        elif re.match(r"\w+\(", call):
            calls.append(call)
    return calls


def is_of_files(call: str, tree: str) -> bool:
    name, _, arguments = call.partition("(")
    # /proc/self/fd is how a name's attribute is read.
    if tree in arguments or '"/proc/self/fd' in arguments:
        return True
    descriptor = re.match(r"-?\w+<([^>]*)>", arguments)
    if name.startswith("epoll") or (descriptor and descriptor[1].startswith(NOT_FILES)):
        return False
    return bool(descriptor) or '"' in arguments


def short(call: str, tree: str) -> str:
    """A call as one reads it: paths from the tree on, and of the descriptor only what it is open on."""
    call = re.sub(r"(\d+|AT_FDCWD)<([^>]*)>", lambda found: f"<{found[2]}>", call).replace(tree, "")
    return re.sub(
        r"\s+",
        " ",
        re.sub(r"resolve=\w+(\|\w+)*|O_\w+EXEC\||O_LARGEFILE\||O_NOCTTY\||O_NONBLOCK\|", "", call),
    )[:130]


def folded(calls: list[str]) -> list[str]:
    """Long rows of the same one to three calls, as for the keys of a page, are counted instead of repeated."""
    lines, at = [], 0
    names = [call.partition("(")[0] for call in calls]
    while at < len(calls):
        for length in (1, 2, 3):
            times = 1
            while names[at : at + length] == names[at + times * length : at + (times + 1) * length]:
                times += 1
            if times >= 10:
                lines += [f"{times:>5} x  {call}" for call in calls[at : at + length]]
                at += times * length
                break
        else:
            lines.append(f"         {calls[at]}")
            at += 1
    return lines


def tell(what: str, calls: list[str], tree: str) -> bool:
    """Prints the calls of a request; false if there are more than there should be."""
    if not calls:
        sys.exit(f"{what}: no calls were seen, though there must be some")
    counts = collections.Counter(call.partition("(")[0] for call in calls)
    target = TARGETS.get(what)
    verdict = (
        "" if target is None else f"; target: at most {target}, {'met' if len(calls) <= target else 'MISSED'}"
    )
    print(f"\n{what}: {len(calls)} calls, of which {counts['close']} close{verdict}")
    for line in folded([short(call, tree) for call in calls]):
        print(line)
    return target is None or len(calls) <= target


def requests(client: Client, prefix: str):
    """Name, and what sends the n-th of its kind."""
    path = f"/{BUCKET}/{prefix}"
    listing = {"list-type": "2", "prefix": "page/"}
    yield "HEAD", lambda n: client.send("HEAD", f"{path}head{n}")
    yield "HEAD, again", lambda n: client.send("HEAD", f"{path}small")
    yield "GET 1 KiB", lambda n: client.send("GET", f"{path}get{n}")
    yield "GET 1 KiB, again", lambda n: client.send("GET", f"{path}small")
    yield "PUT 4 KiB, new", lambda n: client.send("PUT", f"{path}new{n}", body=b"x" * 4096)
    yield "PUT 4 KiB, overwriting", lambda n: client.send("PUT", f"{path}old", body=b"x" * 4096)
    yield f"LIST, a page of {PAGE_KEYS}", lambda n: client.send("GET", f"/{BUCKET}", query=listing)


@contextlib.contextmanager
def mounted(kind: str | None, where: pathlib.Path):
    """Has a fresh file system of this kind at a place, if one is given."""
    if kind is None:
        yield
        return
    image = where.parents[1] / "image"
    with open(image, "wb") as file:
        file.truncate(1 << 30)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, where], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", where], check=True)


def measure(options: argparse.Namespace, work: pathlib.Path) -> bool:
    bucket = work / "data" / BUCKET
    file_system = subprocess.run(
        ["stat", "-f", "-c", "%T", bucket], capture_output=True, text=True, check=True
    )
    with server(options, work) as (host, pid):
        client = Client(host)
        client.send("PUT", f"/{BUCKET}")
        read = ["small", *(f"{kind}{number}" for kind in ("head", "get") for number in range(-1, ROUNDS))]
        for name in read:
            client.send("PUT", f"/{BUCKET}/{options.prefix}{name}", body=b"x" * 1024)
        for number in range(PAGE_KEYS):
            client.send("PUT", f"/{BUCKET}/page/measurement-{number:08}", body=b"x")
        kinds = list(requests(client, options.prefix))
        for _, send in kinds:
            send(-1)
        print(
            f"file system {file_system.stdout.strip()}, durability {options.durability}, keys {options.prefix}..."
        )
        tree = str(work / "data")
        trace = Trace(pid, work / "trace", tree)
        met = True
        try:
            for what, send in kinds:
                for number in range(ROUNDS):
                    trace.take()
                    send(number)
                met &= tell(what, trace.take(), tree)
        finally:
            with contextlib.suppress(ProcessLookupError):
                trace.stop()
    return met


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", help="where to put the data (default: the system's temporary directory)")
    parser.add_argument("--prefix", default="dir/", help="of the keys (default: %(default)s)")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none", choices=["none", "data", "full"])
    parser.add_argument(
        "--mount", choices=["ext4", "xfs", "btrfs"], help="mount such a file system as the bucket"
    )
    parser.add_argument("--check", action="store_true", help="end with status 1 if a target is missed")
    options = parser.parse_args()
    options.null = False
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-calls-") as work:
        bucket = pathlib.Path(work) / "data" / BUCKET
        bucket.mkdir(parents=True)
        with mounted(options.mount, bucket):
            met = measure(options, pathlib.Path(work))
    sys.exit(1 if options.check and not met else 0)


if __name__ == "__main__":
    main()
