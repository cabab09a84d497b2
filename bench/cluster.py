#!/usr/bin/env python3
"""Many gateways on one tree: what each adds, what a request costs with others beside it, and what becomes of writes
when one comes or goes.

Each gateway has a network namespace (veth, on a bridge) and a control group with an equal share of the CPU; HAProxy
(packaging/proxies/haproxy.cfg with other addresses, without TLS) stands before them, and `slipway bench` loads it; both
have shares of their own. All on this machine: it is a simulation of many machines by the processors of one, and says
nothing about networks or shared storages. Needs root, ip, nsenter, haproxy, and strace for `cost`.

    cargo build --release && bench/cluster.py
    bench/cluster.py --quick                          # two minutes
    bench/cluster.py --dir /mnt/x --json report.json  # the tree below another directory
    bench/cluster.py --image xfs --steps scale        # on a file system made for it, of a sparse file

Steps:
  scale    1 to N gateways: HEAD, GET and PUT of 1 MiB, with durability none and PUT with full. Requests a second; CPU
           of the gateways for each; the rate as a share of N times that of one gateway in the same round (least, middle
           and most of all rounds). "used" is what the gateways took of their shares: only where that is nearly all of
           them was it they who set the rate. GETs get two fifths of the share, or HAProxy would.
  cost     a HEAD on one gateway, alone and with the others at work on the same object: CPU, context switches (/proc),
           system calls and futex waits (strace), instructions of user mode (perf, or else by single steps). The target
           is a difference within 1 %.
  change   PUTs through HAProxy while a gateway is added, and later removed (SIGTERM, --drain-delay): writes in each
           second, requests that failed, and in the end the bytes of each write that was acknowledged.

Exit status: 0 measured; 1 an acknowledged write is lost or damaged; 2 it could not be measured. What it makes is removed
in any case, also after Ctrl-C or SIGTERM.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import change
import costs
from common import KEYS, ROOT, bench_command, bench_environment, request, take_ends
from lab import PORT, HAProxy, Lab, Unmeasurable, image, stop

STEPS = ["scale", "cost", "change"]
BUCKET = "cluster"
# Of the machine, all told: half for who loads.
HAPROXY_SHARE, LOAD_SHARE, GATEWAYS_SHARE = 0.4, 0.35, 0.25
# Name, operation and options of `slipway bench`, durability, of a gateway's share.
LOADS = [
    ("HEAD", ["head", "--objects", "64", "--size", "4k"], "none", 1.0),
    ("GET 1 MiB", ["get", "--objects", "8", "--size", "1m"], "none", 0.4),
    ("PUT 1 MiB", ["put", "--objects", "64", "--size", "1m"], "none", 1.0),
    ("PUT 1 MiB, full", ["put", "--objects", "64", "--size", "1m"], "full", 1.0),
]


def load(lab: Lab, name: str, words: list[str], options: argparse.Namespace, proxy: HAProxy) -> dict:
    """One `slipway bench` through HAProxy."""
    report = lab.work / "bench.json"
    # Each gateway has as many, so that it works as it would alone.
    at_once = len(lab.gateways) * (
        options.concurrency if name == "HEAD" else max(options.concurrency // 4, 1)
    )
    words = [*words, "-c", at_once, "-d", f"{options.seconds * 1000:.0f}ms", "--warm-up", "1s"]
    pids = [gateway.pid for gateway in lab.gateways.values()]
    command = bench_command(options.binary, [proxy.host], words, pids, report)
    before = proxy.cpu()
    process = lab.command(
        "load",
        options.load_share,
        command,
        env=bench_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=options.seconds * 4 + 120)
    except subprocess.TimeoutExpired as late:
        raise Unmeasurable(f"slipway bench, {name}: no end") from late
    finally:
        stop(process, signal.SIGINT)
    # 1 is for errors among the answers, which the report has.
    if process.returncode > 1:
        raise Unmeasurable(f"slipway bench, {name}: {said[-2000:]}")
    found = json.loads(report.read_text())["rounds"][0]
    if not found["answers"]:
        raise Unmeasurable(f"slipway bench, {name}: no answers\n{said[-2000:]}")
    rate = found["answers"] / found["seconds"]
    errors = sum(
        sum(of.values()) for of in [found["errors_outside"], *(of["errors"] for of in found["operations"])]
    )
    return {
        "per_second": rate,
        # None if it was none that /proc could see.
        "cpu_us": found["server_cpu_us"] or 0.0,
        "load_cpu_us": found["client_cpu_us"],
        # Before and after the measured time it works too; so this is a little more than its use.
        "proxy_cpu_seconds": proxy.cpu() - before,
        "errors": errors,
    }


def counts(options: argparse.Namespace) -> list[int]:
    """Of gateways, to go through."""
    n = options.gateways
    return [1, n] if options.quick else list(range(1, n + 1))


def scale(lab: Lab, options: argparse.Namespace) -> list[dict]:
    """Rows of each load and number of gateways."""
    rows = []
    for durability in ("none", "full"):
        loads = [of for of in LOADS if of[2] == durability]
        for repeat in range(options.repeat):
            with proxied(lab, options) as proxy:
                for count in counts(options):
                    for number in range(len(lab.gateways) + 1, count + 1):
                        lab.add(number, durability, options.share)
                    proxy.wait(lab.gateways)
                    for name, words, _, part in loads:
                        for gateway in lab.gateways.values():
                            gateway.share.set(options.share * part)
                        found = load(lab, name, words, options, proxy)
                        used = found["cpu_us"] * found["per_second"] / 1e6 / (count * options.share * part)
                        row = {"load": name, "gateways": count, "repeat": repeat, "used": used, **found}
                        first = next(
                            of for of in [*rows, row] if (of["load"], of["repeat"]) == (name, repeat)
                        )
                        row["linear"] = row["per_second"] / (first["per_second"] * count)
                        rows.append(row)
                        say(f"  {name}, {count} gateways, round {repeat + 1}: {row['per_second']:.0f}/s")
    return rows


@contextlib.contextmanager
def proxied(lab: Lab, options: argparse.Namespace):
    """HAProxy; it and all gateways are stopped in the end."""
    proxy = HAProxy(lab, options.gateways, options.proxy_share)
    try:
        yield proxy
    finally:
        for number in list(lab.gateways):
            lab.remove(number)
        proxy.stop()


def tell_scale(rows: list[dict], options: argparse.Namespace) -> None:
    print(
        f"\n1 to {options.gateways} gateways, each with {options.share:.3f} of a processor (GET: two fifths of that), "
        f"{options.concurrency} requests at once for each (1 MiB: a quarter), {options.repeat} rounds of {options.seconds:g} s"
    )
    print(
        f"{'':17}{'gateways':>8}{'req/s':>9}{'CPU us':>9}{'of linear':>11}{'least':>7}{'most':>7}{'used':>7}{'errors':>8}"
    )
    for name, *_ in LOADS:
        for count in counts(options):
            of = [row for row in rows if (row["load"], row["gateways"]) == (name, count)]
            linear = [row["linear"] for row in of]
            print(
                f"{name:17}{count:>8}{statistics.median(row['per_second'] for row in of):>9.0f}"
                f"{min(row['cpu_us'] for row in of):>9.1f}{statistics.median(linear):>11.2f}{min(linear):>7.2f}"
                f"{max(linear):>7.2f}{statistics.median(row['used'] for row in of):>7.0%}"
                f"{sum(row['errors'] for row in of):>8}"
            )
    print(
        "req/s, of linear, used: the middle of all rounds; CPU us: the least. Used is of the gateways' shares."
    )


def cost_rounds(options: argparse.Namespace) -> int:
    return 1 if options.quick else options.repeat


def cost(lab: Lab, options: argparse.Namespace) -> dict:
    """Of a HEAD on the first gateway, by how many there are."""
    found: dict[str, dict[str, list[float]]] = {}
    calls, path = {}, f"/{BUCKET}/head"
    way = None if options.no_instructions else costs.instructions_way()
    for repeat in range(cost_rounds(options)):
        for count in (1, options.gateways):
            try:
                for number in range(1, count + 1):
                    lab.add(number, "none", None)
                first, *others = (f"{gateway.address}:{PORT}" for gateway in lab.gateways.values())
                for method, target, body in (("PUT", f"/{BUCKET}", None), ("PUT", path, b"x" * 4096)):
                    if not repeat and count == 1:
                        request(method, first, target, KEYS, body)
                of = found.setdefault(str(count), {})
                with costs.busy(others, path) as served:
                    figures = costs.of_a_head(lab.gateways[1].pid, first, path, options.heads, way)
                    calls[str(count)] = figures.pop("calls")
                    if others and not served.value:
                        raise Unmeasurable("the other gateways served nothing meanwhile")
                for name, figure in figures.items():
                    of.setdefault(name, []).append(figure)
            finally:
                for number in list(lab.gateways):
                    lab.remove(number)
            say(f"  cost of a HEAD, {count} gateways, round {repeat + 1}")
    return {"instructions by": way, "figures": found, "calls": calls}


def tell_cost(found: dict, options: argparse.Namespace) -> None:
    alone, among = found["figures"]["1"], found["figures"][str(options.gateways)]
    print(
        f"\nA HEAD on one gateway, alone and with {options.gateways - 1} others at work on the same object; "
        f"the least of {cost_rounds(options)} rounds, and its range"
    )
    print(f"{'':26}{'alone':>12}{'among ' + str(options.gateways):>12}{'change':>9}   ranges")
    for name in alone:
        one, many = min(alone[name]), min(among[name])
        change_of = f"{many / one - 1:+.1%}" if one else ""
        ranges = " and ".join(f"{min(of):.2f} to {max(of):.2f}" for of in (alone[name], among[name]))
        print(f"{name:26}{one:>12.3f}{many:>12.3f}{change_of:>9}   {ranges}")
    print(
        f"instructions by {found['instructions by']}; calls: "
        + ", ".join(f"{name} {number:.2f}" for name, number in found["calls"][str(options.gateways)].items())
    )


def tell_change(found: dict) -> None:
    print(
        f"\nA gateway added and removed under PUTs of {found['size'] >> 10} KiB, durability {found['durability']}, "
        f"{found['connections']} connections, drain delay {found['drain_delay']} s"
    )
    marks = {found["added_at"]: "added", found["removed_at"]: "SIGTERM", found["gone_at"]: "its end"}
    for second, rate in enumerate(found["per_second"]):
        said = ", ".join(f"{what} at {at:.1f}" for at, what in marks.items() if int(at) == second)
        print(f"{second:>4} s{rate:>7}/s  {'#' * round(rate * 40 / max(found['per_second'])):40}  {said}")
    middle = found["middle"]
    print(
        f"middle of a second with {found['gateways']} gateways {middle['before']:.0f}, with one more "
        f"{middle['with']:.0f}, without it again {middle['after']:.0f}"
    )
    follows = {name: "never" if at is None else f"{at} s" for name, at in found["follows"].items()}
    print(f"throughput followed after {follows['added']} (added) and {follows['removed']} (removed)")
    print(
        f"{found['acknowledged']} writes acknowledged, {len(found['lost'])} of them lost or damaged, "
        f"{len(found['failed'])} failed {found['failed'][:3] or ''}"
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gateways", type=int, default=5, help="N, 2 to 50 (default: %(default)s)")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, help="default: all")
    parser.add_argument("--quick", action="store_true", help="1 and N gateways, shorter rounds: two minutes")
    parser.add_argument("--dir", help="where the tree is made (default: the system's temporary directory)")
    parser.add_argument(
        "--image", choices=["ext4", "xfs"], help="make the tree a file system of its own, of 8 GiB"
    )
    parser.add_argument(
        "--binary", type=pathlib.Path, default=ROOT / "target/release/slipway", help="default: %(default)s"
    )
    share = "of a processor for each gateway (default: a quarter of the machine for all)"
    parser.add_argument("--share", type=float, help=share)
    parser.add_argument(
        "--concurrency",
        type=int,
        default=16,
        help="HEADs at once for each gateway, of the rest a quarter (default: %(default)s)",
    )
    parser.add_argument("--seconds", type=float, help="of each round of scale (default: 5; 1 if quick)")
    parser.add_argument(
        "--repeat", type=int, help="rounds of scale, and of cost unless quick (default: 3; 2 if quick)"
    )
    parser.add_argument("--heads", type=int, help="to count in cost (default: 4000; 1000 if quick)")
    parser.add_argument(
        "--no-instructions", action="store_true", help="don't count them: single steps take 10 s a round"
    )
    parser.add_argument(
        "--change-seconds", type=int, help="of each of the three parts of change (default: 12; 5 if quick)"
    )
    parser.add_argument(
        "--drain-delay", type=int, default=3, help="of the gateway that is removed (default: %(default)s)"
    )
    parser.add_argument("--json", type=pathlib.Path, help="write all figures there")
    options = parser.parse_args()
    if not 2 <= options.gateways <= 50:
        parser.error("--gateways: 2 to 50")
    for name, long, short in (
        ("seconds", 5, 1),
        ("repeat", 3, 2),
        ("heads", 4000, 1000),
        ("change_seconds", 12, 5),
    ):
        if getattr(options, name) is None:
            setattr(options, name, short if options.quick else long)
        elif getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')}: more than 0")
    processors = os.cpu_count()
    options.share = options.share or processors * GATEWAYS_SHARE / options.gateways
    options.proxy_share, options.load_share = processors * HAPROXY_SHARE, processors * LOAD_SHARE
    return options


def measure(options: argparse.Namespace) -> dict:
    found: dict = {
        "date": time.strftime("%Y-%m-%d"),
        "processors": os.cpu_count(),
        "kernel": os.uname().release,
    }
    found |= {"gateways": options.gateways, "share": options.share, "load_before": os.getloadavg()[0]}
    with contextlib.ExitStack() as stack:
        prefix = f"slipway-{os.getpid()}-"
        # Of the two the one for the tree may have a name too long for HAProxy's socket.
        work, scratch = (
            pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=place, prefix=prefix)))
            for place in (options.dir, None)
        )
        place = stack.enter_context(image(options.image, work)) if options.image else work
        tree = place / "tree"
        tree.mkdir()
        lab = stack.enter_context(Lab(options.binary, tree, scratch))
        found["shares by"] = lab.shares.kind
        system = subprocess.run(["stat", "-f", "-c", "%T", tree], capture_output=True, text=True, check=True)
        found["file system"] = system.stdout.strip()
        print(
            f"{options.gateways} gateways on {found['processors']} processors (a simulation), kernel {found['kernel']}, "
            f"{found['date']}, load {found['load_before']:.1f}, {found['file system']}, shares by {found['shares by']}"
        )
        if lab.shares.kind == "none":
            print(
                "no control group could be made: each process is bound to a processor in turn, shares are not equal"
            )
        if "scale" in options.steps:
            found["scale"] = scale(lab, options)
            tell_scale(found["scale"], options)
        if "cost" in options.steps:
            found["cost"] = cost(lab, options)
            tell_cost(found["cost"], options)
        if "change" in options.steps:
            with proxied(lab, options) as proxy:
                found["change"] = change.measure(lab, proxy, options)
            tell_change(found["change"])
    found["load_after"] = os.getloadavg()[0]
    print(f"\nload {found['load_after']:.1f}")
    return found


def main() -> None:
    options = arguments()
    take_ends()
    try:
        if os.geteuid() != 0:
            raise Unmeasurable("network namespaces and control groups need root")
        if not options.binary.exists():
            raise Unmeasurable(f"{options.binary} does not exist: cargo build --release")
        found = measure(options)
    # 1 is for lost writes alone.
    except (Unmeasurable, OSError, http.client.HTTPException, subprocess.SubprocessError) as error:
        say(f"cluster.py: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("cluster.py: ended early; all that was made is removed")
        sys.exit(2)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(1 if found.get("change", {}).get("lost") else 0)


if __name__ == "__main__":
    main()
