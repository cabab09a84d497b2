"""Study C: tiny objects, what they cost on disks, and a cache in front."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import ROOT, environment
from lab import Unmeasurable, image, stop
from servers import PATH, NotStarted, Running, varnish

from .load import Device
from .run import MINIO, NGINX, NO_FIGURE, OURS, VERSITYGW, Run, Server, lacking, ratio

KIB = 1 << 10
SIZES = (KIB, 4 * KIB, 16 * KIB, 128 * KIB)
AT_ONCE, CACHED_AT_ONCE, OPEN_LOOP = 64, 256, 0.7
# The most for each size of objects that are read once: there are eight of these steps.
CHURN_SECONDS = 60
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
        try:
            devices(run, pathlib.Path(work))
            stripe(run, pathlib.Path(work))
        except (Unmeasurable, NotStarted, OSError) as error:
            run.problem(f"study C, file systems: {error}")
            run.reason(ON_DEVICES, str(error))
    one_directory(run)


def shown(size: int) -> str:
    return f"{size // KIB} KiB"


def timed(run: Run, seconds: float | None = None, warm_up: float | None = None) -> list:
    seconds = run.scale.tiny_seconds if seconds is None else seconds
    warm_up = run.scale.warm_up_seconds if warm_up is None else warm_up
    return [*run.scale.timing(seconds, warm_up), "--repeat", run.scale.repeat_c]


def sizes(run: Run) -> None:
    """PUT and GET of each size on each server; then both again in an open loop, at 70 % of that rate."""
    rates: dict[tuple[str, int, str], float] = {}
    for size in SIZES:
        for server in run.servers("files"):
            try:
                with run.started(server) as running:
                    for operation in ("put", "get"):
                        words = [operation, "--size", size, "-c", AT_ONCE, "--payload", "signed"]
                        title = f"{operation.upper()} {shown(size)}"
                        if operation == "get":
                            words += ["--objects", run.scale.read_objects]
                        step = run.on(running, server, title, [*words, *timed(run)], of="median")
                        rates[operation, size, server.name] = step["per_second"]
                        open_loop(run, running, server, title, words, step["per_second"])
            except (Unmeasurable, NotStarted) as error:
                run.problem(f"{shown(size)}, {server.name}: {error}")
    for (operation, size, name), rate in list(rates.items()):
        if name == OURS:
            size_row(run, operation, size, rate, rates)
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
        # A machine that became too busy to answer any of it in time.
        print(error, flush=True)


def size_row(run: Run, operation: str, size: int, rate: float, rates: dict) -> None:
    others = {name: of for (op, at, name), of in rates.items() if (op, at) == (operation, size)}
    del others[OURS]
    beside = others.get(MINIO) if operation == "put" else rates.get(("put", size, OURS))
    shape = rate / beside if beside else None
    run.row(f"C-{operation}-{size // KIB}k", rate, shape, others=others or None)


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


def used(mount: pathlib.Path) -> tuple[int, int]:
    """Inodes and bytes."""
    of = os.statvfs(mount)
    return of.f_files - of.f_ffree, (of.f_blocks - of.f_bfree) * of.f_frsize


def new_objects(run: Run, server: Server, mount: pathlib.Path, size: int, storage: str, title: str) -> dict:
    """PUTs of so many new keys, and what they left on the device, for each object."""
    count = run.scale.new_objects
    words = ["put", "--size", size, "--objects", count, "--count", count, "-c", AT_ONCE, "--keep"]
    directory = pathlib.Path(tempfile.mkdtemp(dir=mount))
    with run.started(server, directory) as running:
        # Of a stripe there is no one device.
        device = Device(mount) if storage != "stripe" else None
        inodes, space = used(mount)
        words += ["--payload", "signed", "-d", "120s"]
        step = run.on(running, server, title, words, storage=storage)
        writes, written = device.since() if device else (0, 0)
        after = used(mount)
    step |= {"inodes_each": (after[0] - inodes) / count, "space_each": (after[1] - space) / count}
    if device:
        step |= {"writes_each": writes / count, "bytes_each": written / count}
    return step


def devices(run: Run, work: pathlib.Path) -> None:
    """ext4 and XFS in files, each on a device that nothing else writes to."""
    flushed = run.ours("files", "full")
    servers = [server for server in run.servers("files") if server.name != NGINX]
    rates: dict[str, list[float]] = {}
    for kind in ("ext4", "xfs"):
        with contextlib.ExitStack() as stack:
            place = work / kind
            place.mkdir()
            mount = stack.enter_context(image(kind, place, run.scale.image_bytes))
            kept = {
                server.name: new_objects(run, server, mount, KIB, kind, "PUT 1 KiB, new keys")
                for server in servers
            }
            for name, step in kept.items():
                rates.setdefault(name, []).append(step["per_second"])
            run.row(f"C-inodes-{kind}", **figures(kept, "inodes_each"))
            run.row(f"C-space-{kind}", **figures(kept, "space_each"))
            full = new_objects(run, flushed, mount, KIB, kind, "PUT 1 KiB, new keys, flushed")
            if kind == "ext4":
                rate = full["per_second"]
                note = flushed_note(full, rate / kept[OURS]["per_second"])
                run.row("C-flushed", rate, note=note)
                on_ext4(run, servers, mount, kept)
    best = {name: max(of) for name, of in rates.items()}
    others = {name: rate for name, rate in best.items() if name != OURS}
    shape = best[OURS] / others[VERSITYGW] if VERSITYGW in others else None
    run.row("C-best", best[OURS], shape, others=others or None)
    minutes = {name: 10 * 2**20 / rate / 60 for name, rate in best.items()}
    run.row("C-10g", minutes.pop(OURS), others=minutes or None)


def figures(steps: dict[str, dict], name: str, factor: float = 1.0) -> dict:
    """Ours, and the others' beside it, as a row has them."""
    found = {server: step[name] * factor for server, step in steps.items()}
    return {"value": found.pop(OURS), "others": found or None}


def flushed_note(step: dict, share: float) -> str:
    writes = f"{step['writes_each']:.2f} writes and {step['bytes_each'] / 1e3:.1f} KB of the device"
    return f"{share:.2f} of the rate without; {writes} for each object"


def on_ext4(run: Run, servers: list[Server], mount: pathlib.Path, kept: dict[str, dict]) -> None:
    run.row("C-amplification-calls", **figures(kept, "writes_each"))
    run.row("C-device-bytes", **figures(kept, "bytes_each", 1e-3))
    larger = {
        server.name: new_objects(run, server, mount, 4 * KIB, "ext4", "PUT 4 KiB, new keys")
        for server in servers
    }
    run.row("C-amplification-bytes", **figures(larger, "bytes_each", 1 / (4 * KIB)))
    nothing = {
        server.name: new_objects(run, server, mount, 0, "ext4", "PUT nothing, new keys") for server in servers
    }
    by_program = creates(mount, run.scale.new_objects)
    found = figures(nothing, "per_second")
    note = f"one program makes {by_program:,.0f} files a second there"
    run.row("C-creates", **found, note=note)


def creates(mount: pathlib.Path, count: int) -> float:
    """Empty files a second, by this program."""
    directory = tempfile.mkdtemp(dir=mount)
    began = time.monotonic()
    for number in range(count):
        os.close(os.open(f"{directory}/{number:07}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    return count / (time.monotonic() - began)


def stripe(run: Run, work: pathlib.Path) -> None:
    """btrfs, since there are neither md nor device-mapper on every machine."""
    found = {}
    for volumes in (1, 4):
        place = work / f"btrfs-{volumes}"
        place.mkdir()
        with image("btrfs", place, run.scale.image_bytes, volumes) as mount:
            title = f"PUT 1 KiB, new keys, btrfs of {volumes}"
            found[volumes] = new_objects(run, run.ours("files"), mount, KIB, "stripe", title)["per_second"]
    run.row("C-stripe", found[4], note=f"{found[1]:,.0f}/s on one such volume")


def one_directory(run: Run) -> None:
    """By bench/flat.py, on ext4: what a PUT takes with ten times the names in its directory."""
    command = [sys.executable, ROOT / "bench/flat.py", "--binary", run.binary, "--dir", run.directory]
    command += ["--names", *map(str, run.scale.names), "--file-systems", "ext4"]
    few = ["--rounds", "3", "--requests", "300", "--pages", "1"] if run.scale.names[1] < 100_000 else []
    process = subprocess.Popen(
        [*command, *few], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate(timeout=7200)
    finally:
        # Not killed: it has a file system to unmount.
        stop(process, signal.SIGINT)
    # | ext4 | names | a program's create | create: CPU us / us waited | ...
    creates = re.findall(r"^\| ext4 \| [\d,]+ \| [\d.]+ \| ([\d.]+)( ms)? /", out, re.M)
    if process.returncode or len(creates) != 2:
        run.problem(f"bench/flat.py: {err.strip()[-300:]}")
        run.reason(["C-one-directory"], "bench/flat.py did not measure it")
        return
    low, high = (float(text) * (1000 if unit else 1) for text, unit in creates)
    few, many = run.scale.names
    note = f"{few:,} and {many:,} names: {low:.0f} and {high:.0f} us"
    run.row("C-one-directory", high, high / low, note=note)
