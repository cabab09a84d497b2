"""What a HEAD costs one gateway: instructions, system calls, lock waits, switches. For bench/cluster.py."""

import collections
import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import platform
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from common import KEYS, presign

CONNECTIONS = 8
# What requests end with may come after their answers.
SETTLE_SECONDS = 0.3
# How long a server without requests is watched.
IDLE_SECONDS = 2.0
# Each takes a second or two.
STEPPED_HEADS = 4
SINGLE_STEPS = "single steps from recvfrom to writev"
# Of <sys/ptrace.h>, <sys/reg.h> (in bytes) and <sys/syscall.h>, of x86-64.
PEEK, SINGLESTEP, TO_CALL, SEIZE, INTERRUPT = 3, 9, 24, 0x4206, 0x4207
TRACE_CALLS, TRACE_CLONE, WAIT_ALL, CALL = 1, 1 << 3, 0x40000000, signal.SIGTRAP | 0x80
RAX, ORIGINAL_RAX, RIP, WRITEV, RECVFROM = 80, 120, 128, 20, 45


class Heads:
    """Connections to a gateway, each with a HEAD at a time, all sent before the first answer is read."""

    def __init__(self, address: str, path: str, connections: int) -> None:
        target = presign("HEAD", address, path, KEYS)
        self.head = f"HEAD {target} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode()
        host, port = address.split(":")
        self.sockets = [socket.create_connection((host, int(port)), 60) for _ in range(connections)]

    def burst(self) -> None:
        for connection in self.sockets:
            connection.sendall(self.head)
        for connection in self.sockets:
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                more = connection.recv(4096)
                answer += more
                if not more:
                    raise ConnectionError("a gateway closed a connection")
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise ConnectionError(answer[:200].decode(errors="replace"))

    def send(self, count: int) -> int:
        """How many it were: of whole bursts."""
        bursts = max(count // len(self.sockets), 1)
        for _ in range(bursts):
            self.burst()
        return bursts * len(self.sockets)

    def close(self) -> None:
        for connection in self.sockets:
            connection.close()


@contextlib.contextmanager
def busy(addresses: list[str], path: str):
    """The others have HEADs of the same object all the while."""

    def work() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        heads = [Heads(address, path, CONNECTIONS) for address in addresses]
        while os.getppid() == parent:
            for one in heads:
                one.burst()
            served.value += len(heads) * CONNECTIONS

    parent, served = os.getpid(), multiprocessing.RawValue(ctypes.c_ulonglong, 0)
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    if addresses:
        process.start()
    try:
        yield served
    finally:
        if addresses:
            process.terminate()
            process.join(10)


def switches(pid: int) -> collections.Counter:
    """Context switches of all its threads, of their own will (waits) and not."""
    found = collections.Counter()
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):
            for kind, count in re.findall(r"^(\w+)_ctxt_switches:\s+(\d+)", status.read_text(), re.M):
                found[kind] += int(count)
    return found


def of_a_head(pid: int, address: str, path: str, count: int, way: str | None) -> dict:
    """All figures of one gateway."""
    with contextlib.ExitStack() as stack:
        many, one = (Heads(address, path, number) for number in (CONNECTIONS, 1))
        stack.callback(many.close)
        stack.callback(one.close)
        many.send(count // 4)
        found = of_time(pid, many, count) | of_calls(pid, many, count // 2)
        one.send(10)
        instructions = of_instructions(pid, one, STEPPED_HEADS, way) if way else None
        return found | ({} if instructions is None else {"instructions": instructions})


def cpu_ns(pid: int) -> int:
    """Of the threads that there are; /proc/PID/stat counts in steps of 10 ms."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


def of_time(pid: int, heads: Heads, count: int) -> dict[str, float]:
    before, cpu = switches(pid), cpu_ns(pid)
    sent = heads.send(count)
    time.sleep(SETTLE_SECONDS)
    after = switches(pid)
    return {
        "CPU us": (cpu_ns(pid) - cpu) / 1e3 / sent,
        "switches, waiting": (after["voluntary"] - before["voluntary"]) / sent,
        "switches, taken": (after["nonvoluntary"] - before["nonvoluntary"]) / sent,
    }


def calls_of(lines: list[str]) -> list[str]:
    return [found[1] for line in lines if (found := re.match(r"\d+\s+(\w+\(.*)", line))]


def files_of(calls: list[str]) -> int:
    """How many calls are about names and files."""
    return sum(bool(re.match(r"(open|f?stat|newf|f?getx|pread|close)\w*\(", call)) for call in calls)


def of_calls(pid: int, heads: Heads, count: int) -> dict[str, float]:
    """By strace, which slows all: how threads find work for each other is not as without it."""
    with tempfile.TemporaryDirectory(prefix="slipway-calls-") as work:
        file = pathlib.Path(work, "trace")
        command = ["strace", "-f", "-s", "0", "-o", file, "-p", str(pid)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            if "attached" not in (said := process.stderr.readline()):
                raise ConnectionError(f"strace did not attach: {said}")
            heads.burst()
            time.sleep(SETTLE_SECONDS)
            skipped, since = file.stat().st_size, time.monotonic()
            sent = heads.send(count)
            time.sleep(SETTLE_SECONDS)
            ended, seconds = file.stat().st_size, time.monotonic() - since
            # Not before the requests: what the server knows of the bucket would be too old.
            time.sleep(IDLE_SECONDS)
            with open(file) as trace:
                trace.seek(skipped)
                lines = trace.read(ended - skipped).splitlines()
                idle = trace.read().splitlines()
        finally:
            process.terminate()
            process.communicate(timeout=10)
    calls = calls_of(lines)
    names = collections.Counter(call.partition("(")[0] for call in calls)
    waits = sum("FUTEX_WAIT" in call for call in calls if call.startswith("futex("))
    # A server looks for changed identities twice a second, whether or not there are requests.
    by_itself = files_of(calls_of(idle)) / IDLE_SECONDS * seconds
    files = files_of(calls) - by_itself
    return {
        "system calls": len(calls) / sent,
        "  but futex, epoll_wait": (len(calls) - names["futex"] - names["epoll_wait"]) / sent,
        "  of names and files": files / sent,
        "futex waits": waits / sent,
        "calls": {name: number / sent for name, number in names.most_common(12)},
    }


def instructions_way() -> str:
    """How they can be counted here."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "instructions:u", "true"],
            capture_output=True,
            text=True,
            timeout=20,
        )
        if re.search(r"^\d+,.*instructions:u", done.stderr, re.M):
            return "perf stat -e instructions:u"
    return SINGLE_STEPS


def of_instructions(pid: int, heads: Heads, count: int, way: str) -> float | None:
    """Those of user mode, for each HEAD."""
    if way == SINGLE_STEPS:
        return by_steps(pid, heads, count)
    command = ["perf", "stat", "-x,", "-e", "instructions:u", "-p", str(pid)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # It says nothing when it begins.
    time.sleep(1)
    sent = heads.send(count * 50)
    time.sleep(SETTLE_SECONDS)
    process.send_signal(signal.SIGINT)
    found = re.search(r"^(\d+),", process.communicate(timeout=20)[1], re.M)
    return int(found[1]) / sent if found else None


def by_steps(pid: int, heads: Heads, count: int) -> float | None:
    """Where the processor counts nothing: single steps from the request's arrival (recvfrom) to its answer (writev).

    What wakes the thread up is not among them, nor is the clock (vDSO). valgrind is no way to it, since it lacks
    openat2. Ends the gateway.
    """
    if platform.machine() != "x86_64":
        return None
    ready, counts = multiprocessing.RawValue(ctypes.c_bool, False), multiprocessing.SimpleQueue()
    tracer = multiprocessing.get_context("fork").Process(target=trace, args=(pid, ready, counts), daemon=True)
    tracer.start()
    try:
        while not ready.value and tracer.is_alive():
            time.sleep(0.01)
        heads.send(count)
        time.sleep(SETTLE_SECONDS)
        found = []
        while not counts.empty():
            found.append(counts.get())
        # The first finds nothing in caches.
        return statistics.median(found[1:]) if found[1:] else None
    except OSError:
        return None
    finally:
        # A thread that is let go in the middle of a step would end the process by the trap of it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        tracer.join(5)
        tracer.kill()


def trace(pid: int, ready, counts) -> None:
    """Follows all threads of a process from call to call, and by single steps within a request, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ptrace = ctypes.CDLL(None).ptrace
    ptrace.argtypes, ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
    # On one processor the switch from one to the other is cheap.
    os.sched_setaffinity(0, {0})
    for thread in [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]:
        os.sched_setaffinity(thread, {0})
        ptrace(SEIZE, thread, 0, TRACE_CLONE | TRACE_CALLS)
        ptrace(INTERRUPT, thread, 0, 0)
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    clock_begin, clock_end = (
        int(at, 16) for at in re.search(r"^(\w+)-(\w+) .*\[vdso\]$", maps, re.M).groups()
    )
    ready.value, steps = True, collections.Counter()
    with contextlib.suppress(ChildProcessError):
        while True:
            thread, status = os.waitpid(-1, WAIT_ALL)
            if not os.WIFSTOPPED(status):
                continue
            number, event = os.WSTOPSIG(status), status >> 16
            if number == signal.SIGTRAP and not event:
                # The clock's code goes round again when the clock has ticked meanwhile:
                # with steps this slow it does.
                if not clock_begin <= ptrace(PEEK, thread, RIP, 0) < clock_end:
                    steps[thread] += 1
                if ptrace(PEEK, thread, ORIGINAL_RAX, 0) == WRITEV:
                    counts.put(steps.pop(thread))
            # RAX is negative before the call.
            elif (
                number == CALL
                and ptrace(PEEK, thread, ORIGINAL_RAX, 0) == RECVFROM
                and ptrace(PEEK, thread, RAX, 0) > 0
            ):
                steps[thread] = 0
            # Of signals only those that are not of tracing are passed on.
            passed = 0 if event or number in (CALL, signal.SIGTRAP) else number
            ptrace(SINGLESTEP if thread in steps else TO_CALL, thread, 0, passed)
