"""Study C: tiny objects, what they cost on disks, and a cache in front."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from common import ROOT, environment
from lab import Unmeasurable, image, stop
from servers import PATH, NotStarted, Running, varnish

from .load import TIMEOUT_SECONDS, Device
from .run import MINIO, NGINX, NO_FIGURE, OURS, VERSITYGW, Run, Server, lacking, ratio
from .scale import MIB

KIB = 1 << 10
SIZES = (KIB, 4 * KIB, 16 * KIB, 128 * KIB)
AT_ONCE, CACHED_AT_ONCE, OPEN_LOOP = 64, 256, 0.7
# The most for each size of objects that are read once: there are eight of these steps.
CHURN_SECONDS = 60
# So many keys are signed for one step at the most.
BATCH = 20_000
# Seconds. In less, all is in memory, and nothing has been written back.
LONG_ENOUGH = 5
ON_DEVICES = ["C-best", "C-10g", "C-amplification-bytes", "C-amplification-calls", "C-device-bytes"]
ON_DEVICES += ["C-creates", "C-inodes-ext4", "C-inodes-xfs", "C-space-ext4", "C-space-xfs", "C-flushed"]
ON_DEVICES += ["C-stripe", "C-one-directory"]


def measure(run: Run) -> None:
    sizes(run)
    caches(run)
    churn(run)
    if lack := lacking("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "losetup"):
        run.reason(ON_DEVICES, lack)
        return
    with tempfile.TemporaryDirectory(dir=run.directory, prefix="study-c-") as work:
        disks = Disks(run, pathlib.Path(work))
        for part in (devices, stripe):
            try:
                part(disks)
            except (Unmeasurable, OSError) as error:
                run.problem(f"study C, {part.__name__}: {error}")
    one_directory(run)
    run.reason(ON_DEVICES, NO_FIGURE)


def shown(size: int) -> str:
    return f"{size // KIB} KiB"


def timed(run: Run, seconds: float | None = None, warm_up: float | None = None) -> list:
    seconds = run.scale.tiny_seconds if seconds is None else seconds
    warm_up = run.scale.warm_up_seconds if warm_up is None else warm_up
    return [*run.scale.timing(seconds, warm_up), "--repeat", run.scale.repeat_c]


def sizes(run: Run) -> None:
    """PUT and GET of each size on each server; then both again in an open loop, at 70 % of that rate."""
    steps: dict[tuple[str, int, str], dict] = {}
    for size in SIZES:
        for server in run.servers("files"):
            try:
                with run.started(server) as running:
                    for operation in ("put", "get"):
                        words = [operation, "--size", size, "-c", AT_ONCE, "--payload", "signed"]
                        title = f"{operation.upper()} {shown(size)}"
                        objects = {"put": run.scale.put_objects, "get": run.scale.read_objects}
                        words += ["--objects", objects[operation]]
                        step = run.on(running, server, title, [*words, *timed(run)], of="median")
                        steps[operation, size, server.name] = step
                        open_loop(run, running, server, title, words, step["per_second"])
            except (Unmeasurable, NotStarted) as error:
                run.problem(f"{shown(size)}, {server.name}: {error}")
    rates = {key: step["per_second"] for key, step in steps.items()}
    for (operation, size, name), step in steps.items():
        if name == OURS:
            note = keys_written(step, run.scale.put_objects) if operation == "put" else None
            size_row(run, operation, size, rates, note)
    for operation in ("put", "get"):
        few = [rates[operation, size, OURS] for size in SIZES[:3] if (operation, size, OURS) in rates]
        if len(few) == 3:
            run.row(f"C-flat-{operation}", few[-1], ratio(few, few))


def open_loop(run: Run, running: Running, server: Server, title: str, words: list, peak: float) -> None:
    rate = max(1, int(peak * OPEN_LOOP))
    # As many seconds again would not be the study's.
    words = [*words, "--rate", rate, *timed(run, min(run.scale.tiny_seconds, 30))]
    try:
        run.on(running, server, f"{title}, open loop at 70 %", words, of="median")
    except Unmeasurable as error:
        # The machine became too busy to answer any of it in time; the rows are of the closed loop.
        run.problem(f"{title}, {server.name}, open loop: {error}")


def keys_written(step: dict, keys: int) -> str:
    """Whether a step wrote new keys or overwrote its own. Each round has keys of its own."""
    times = step["stored"] / step["rounds"] / keys
    return "new keys" if times <= 1 else f"{keys:,} keys, each written {times:.1f} times"


def size_row(run: Run, operation: str, size: int, rates: dict, note: str | None) -> None:
    others = {name: of for (op, at, name), of in rates.items() if (op, at) == (operation, size)}
    rate = others.pop(OURS)
    beside = others.get(MINIO) if operation == "put" else rates.get(("put", size, OURS))
    shape = rate / beside if beside else None
    run.row(f"C-{operation}-{size // KIB}k", rate, shape, others=others or None, note=note)


def caches(run: Run) -> None:
    ours = run.ours("files")
    with_varnish = shutil.which("varnishd", path=PATH) is not None
    if not with_varnish:
        run.reason(["C-cache-4k", "C-cache-32k"], "needs varnishd")
    for size in (4 * KIB, 32 * KIB):
        words = ["get", "--size", size, "--objects", 100, "-c", CACHED_AT_ONCE]
        words += timed(run, warm_up=run.scale.cache_warm_up_seconds)
        kind, title = f"{size // KIB}k", f"GET {shown(size)}, many"
        try:
            with run.started(ours) as running, tempfile.TemporaryDirectory(prefix="study-c-") as place:
                step = run.on(running, ours, title, words, of="median")
                run.row(f"C-no-cache-{kind}", step["per_second"])
                if not with_varnish:
                    continue
                with varnish(pathlib.Path(place), running) as cache:
                    step = run.on(cache, ours, title, words, storage="via Varnish", of="median")
                run.row(f"C-cache-{kind}", step["per_second"])
        except (Unmeasurable, NotStarted) as error:
            run.problem(f"{title}: {error}")
            run.reason([f"C-cache-{kind}", f"C-no-cache-{kind}"], str(error))


def churn(run: Run) -> None:
    """Each object is read once: with memory for what was read, and without."""
    ours = run.ours("files")
    without = Server(OURS, f"{ours.command} --object-cache 0")
    words = ["--preset", "churn", *run.scale.preset_timing(min(run.scale.tiny_seconds, CHURN_SECONDS))]
    words += ["--payload", "signed", "--repeat", run.scale.repeat_c]
    rates = []
    for server, kept in ((ours, "kept"), (without, "not kept")):
        steps = run.all_steps(server, f"read once, {kept}", words, of="median")
        rates.append({step["title"].rpartition("churn ")[2]: step["per_second"] for step in steps})
    kept, not_kept = rates
    over = {size: kept[size] / not_kept[size] for size in kept if not_kept.get(size)}
    if (size := shown(4 * KIB)) in over:
        others = ", ".join(f"{other} {share:.2f}" for other, share in over.items() if other != size)
        run.row("C-churn", kept[size], over[size], note=f"the other sizes: {others}")
    run.reason(["C-churn"], NO_FIGURE)


def batches(wanted: Callable[[int, float], list[dict]], most: int, seconds: float) -> list[dict]:
    """Rounds of puts of new keys, for so many seconds in sum, or up to so many objects.

    `wanted` puts at most that many in at most that time. No run of `slipway bench` has more keys than BATCH.
    """
    rounds: list[dict] = []
    stored, left = 0, seconds
    # Of the clock's steps there may be a rest.
    while stored < most and left > seconds / 100:
        count = min(BATCH, most - stored)
        found = wanted(count, left)
        rounds += found
        put, spent = sum(of["stored"]["objects"] for of in found), sum(of["seconds"] for of in found)
        if put < count and spent < left * 0.9:
            raise Unmeasurable(f"only {put} of {count} objects were put in {spent:.1f} s, of {left:.1f}")
        stored, left = stored + put, left - spent
    return rounds


@dataclasses.dataclass
class Disks:
    """File systems in files, each for one step alone, on devices that nothing else writes to."""

    run: Run
    work: pathlib.Path

    @contextlib.contextmanager
    def made(self, kind: str, volumes: int = 1) -> Iterator[pathlib.Path]:
        with (
            tempfile.TemporaryDirectory(dir=self.work, prefix=f"{kind}-") as place,
            image(kind, pathlib.Path(place), self.run.scale.image_bytes, volumes) as mount,
        ):
            yield mount

    def new_objects(
        self, server: Server, kind: str, size: int, title: str, *, rate=False, volumes=1
    ) -> dict | None:
        """PUTs of new keys, and what each left on the device; None, and a problem, if they can't be measured.

        With `rate` for long enough to be a rate, else as few as bytes and inodes can be told from.
        """
        scale = self.run.scale
        most, seconds = (scale.device_objects, scale.device_seconds) if rate else (scale.new_objects, 120)
        words = ["put", "--size", size, "-c", AT_ONCE, "--payload", "signed", "--keep"]
        try:
            with self.made(kind, volumes) as mount, self.run.started(server, mount / "tree") as running:
                # Of a stripe there is no one device.
                device = Device(mount) if kind != "btrfs" else None
                before = used(mount)

                def put(count: int, left: float) -> list[dict]:
                    more = ["--objects", count, "--count", count, "-d", f"{max(left * 1000, 1):.0f}ms"]
                    return self.run.rounds(running, server, [*words, *more])

                rounds = batches(put, most, seconds)
                storage = "stripe" if kind == "btrfs" else kind
                (step,) = self.run.noted(rounds, server, title, words, storage=storage)
                writes, written = device.since() if device else (0, 0)
                after = used(mount)
        except (Unmeasurable, NotStarted, OSError, subprocess.SubprocessError) as error:
            return self.run.problem(f"{title}, {kind}, {server.name}: {error}")
        stored = step["stored"]
        # Rounds are of different lengths.
        step["per_second"] = step["answers"] / step["seconds"]
        step["mib_per_second"] = step["per_second"] * size / MIB
        step |= {f"{name}_each": (after[name] - before[name]) / stored for name in before}
        if device:
            step |= {"writes_each": writes / stored, "bytes_each": written / stored}
        return step

    def each(self, servers: list[Server], *given, **more) -> dict[str, dict]:
        """The same of each server; without those that could not be measured."""
        steps = {server.name: self.new_objects(server, *given, **more) for server in servers}
        return {name: step for name, step in steps.items() if step}


def used(mount: pathlib.Path) -> dict[str, int]:
    """Inodes and bytes."""
    of = os.statvfs(mount)
    return {"inodes": of.f_files - of.f_ffree, "space": (of.f_blocks - of.f_bfree) * of.f_frsize}


def short(step: dict | None) -> dict:
    """Why a rate says little, as a row has it: what a moment's work leaves to the kernel was not paid for."""
    if not step or step["seconds"] >= LONG_ENOUGH * 0.98:
        return {}
    return {"unclear": f"too short: {step['answers']:,} objects in {step['seconds']:.2g} s"}


def devices(disks: Disks) -> None:
    """ext4 and XFS."""
    run = disks.run
    servers = [server for server in run.servers("files") if server.name != NGINX]
    of_each: dict[str, list[dict]] = {}
    for kind in ("ext4", "xfs"):
        kept = disks.each(servers, kind, KIB, "PUT 1 KiB, new keys", rate=True)
        for name, step in kept.items():
            of_each.setdefault(name, []).append(step)
        figures(run, f"C-inodes-{kind}", kept, "inodes_each")
        figures(run, f"C-space-{kind}", kept, "space_each")
        full = disks.new_objects(run.ours("files", "full"), kind, KIB, "PUT 1 KiB, new keys, flushed")
        if kind == "ext4":
            if full and OURS in kept:
                rate = full["per_second"]
                run.row("C-flushed", rate, note=flushed_note(full, rate / kept[OURS]["per_second"]))
            on_ext4(disks, servers, kept)
    best = {name: max(steps, key=lambda step: step["per_second"]) for name, steps in of_each.items()}
    if OURS not in best:
        return
    rates = {name: step["per_second"] for name, step in best.items()}
    others = {name: rate for name, rate in rates.items() if name != OURS}
    shape = rates[OURS] / others[VERSITYGW] if VERSITYGW in others else None
    run.row("C-best", rates[OURS], shape, others=others or None, **short(best[OURS]))
    minutes = {name: 10 * 2**20 / rate / 60 for name, rate in rates.items()}
    run.row("C-10g", minutes.pop(OURS), others=minutes or None, **short(best[OURS]))


def figures(run: Run, id: str, steps: dict[str, dict], name: str, factor: float = 1.0, **more) -> None:
    """A row of ours, and the others' figures beside it."""
    found = {server: step[name] * factor for server, step in steps.items()}
    if OURS in found:
        run.row(id, found.pop(OURS), others=found or None, **more)


def flushed_note(step: dict, share: float) -> str:
    writes = f"{step['writes_each']:.2f} writes and {step['bytes_each'] / 1e3:.1f} KB of the device"
    return f"{share:.2f} of the rate without; {writes} for each object"


def on_ext4(disks: Disks, servers: list[Server], kept: dict[str, dict]) -> None:
    run = disks.run
    figures(run, "C-amplification-calls", kept, "writes_each")
    figures(run, "C-device-bytes", kept, "bytes_each", 1e-3)
    larger = disks.each(servers, "ext4", 4 * KIB, "PUT 4 KiB, new keys")
    figures(run, "C-amplification-bytes", larger, "bytes_each", 1 / (4 * KIB))
    nothing = disks.each(servers, "ext4", 0, "PUT nothing, new keys", rate=True)
    note = f"one program makes {creates(disks):,.0f} files a second there"
    figures(run, "C-creates", nothing, "per_second", note=note, **short(nothing.get(OURS)))


def creates(disks: Disks) -> float:
    """Empty files a second, by this program."""
    scale = disks.run.scale
    with disks.made("ext4") as mount:
        began, count = time.monotonic(), 0
        while count < scale.device_objects and time.monotonic() - began < scale.device_seconds:
            os.close(os.open(mount / f"{count:07}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            count += 1
        return count / (time.monotonic() - began)


def stripe(disks: Disks) -> None:
    """btrfs, since there are neither md nor device-mapper on every machine."""
    found = {}
    for volumes in (1, 4):
        title = f"PUT 1 KiB, new keys, btrfs of {volumes}"
        found[volumes] = disks.new_objects(disks.run.ours("files"), "btrfs", KIB, title, volumes=volumes)
    if all(found.values()):
        one, four = (found[volumes]["per_second"] for volumes in (1, 4))
        disks.run.row("C-stripe", four, note=f"{one:,.0f}/s on one such volume")


def one_directory(run: Run) -> None:
    """By bench/flat.py, on ext4: what a PUT takes with ten times the names in its directory."""
    command = [sys.executable, ROOT / "bench/flat.py", "--binary", run.binary, "--dir", run.directory]
    command += ["--names", *map(str, run.scale.names), "--file-systems", "ext4"]
    few = ["--rounds", "3", "--requests", "300", "--pages", "1"] if run.scale.names[1] < 100_000 else []
    process = subprocess.Popen(
        [*command, *few], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        run.problem(f"bench/flat.py: no end within {TIMEOUT_SECONDS} s")
        return
    finally:
        # Not killed: it has a file system to unmount.
        stop(process, signal.SIGINT)
    # | ext4 | names | a program's create | create: CPU us / us waited | ...
    creates = re.findall(r"^\| ext4 \| [\d,]+ \| [\d.]+ \| ([\d.]+)( ms)? /", out, re.M)
    if process.returncode or len(creates) != 2:
        run.problem(f"bench/flat.py: {err.strip()[-300:]}")
        return
    low, high = (float(text) * (1000 if unit else 1) for text, unit in creates)
    few, many = run.scale.names
    note = f"{few:,} and {many:,} names: {low:.0f} and {high:.0f} us"
    run.row("C-one-directory", high, high / low, note=note)
