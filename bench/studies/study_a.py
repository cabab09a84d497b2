"""Study A: one gateway, on a null backend and on files."""

import time

from .run import NGINX, OURS, Run, Server, per_server, ratio
from .scale import MIB

PART = 64 * MIB


def measure(run: Run) -> None:
    for storage in ("null", "files"):
        servers = run.servers(storage)
        puts(run, storage, servers)
        parts(run, storage, servers)
        heads(run, storage, servers)
    idle(run, run.servers("null"))


def sweep(run: Run, storage: str, servers: list[Server], title: str, loads: dict[int, list]) -> dict:
    """Each load, by what is at once, on each server in turn: what else the machine does falls on all."""
    return {
        (server.name, at_once): run.step(server, title, words, storage=storage)
        for at_once, words in loads.items()
        for server in servers
    }


def fill(run: Run, id: str, found: dict[str, float], shape: float | None = None, **more) -> None:
    """A row of ours, and the other servers' figures beside it."""
    others = {name: value for name, value in found.items() if name != OURS}
    run.row(id, found.get(OURS), shape, others=others or None, **more)


def held_up(steps: dict[tuple, dict | None]) -> dict:
    """Why a rate of ours may be the load's, as a row has it."""
    by_load = [
        str(at_once)
        for (name, at_once), step in steps.items()
        if name == OURS and step and step.get("limit") == "client"
    ]
    return {"doubt": f"the load generator was the limit with {', '.join(by_load)} at once"} if by_load else {}


def puts(run: Run, storage: str, servers: list[Server]) -> None:
    def each_once(objects: int, at_once: int) -> list:
        many = ["--count", objects, "--objects", objects, "-c", at_once, "-d", "60s"]
        return ["put", "--size", "1m", *many, "--payload", "signed", "--repeat", run.scale.repeat_a]

    def burst(objects: int) -> list:
        many = ["--size", "1m", "-c", objects, "--payload", "signed"]
        return ["burst", *many, "--repeat", run.scale.repeat_a]

    # nginx checks no signature of a body: study C shows what its PUTs take.
    servers = [server for server in servers if server.name != NGINX]
    one = sweep(run, storage, servers, "PUT 1 MiB", {1: each_once(run.scale.one_at_a_time, 1)})
    many = sweep(run, storage, servers, "PUT 1 MiB, burst", {n: each_once(n, n) for n in run.scale.bursts})
    # On servers of their own: what these GETs take is not to count for the PUTs.
    sweep(run, storage, servers, "all at once", {n: burst(n) for n in run.scale.bursts[-1:]})
    largest = {key: step for key, step in many.items() if key[1] == max(run.scale.bursts)}
    rates = [step["mib_per_second"] for (name, _), step in many.items() if step and name == OURS]
    best, resident = per_server(many, "mib_per_second"), per_server(largest, "resident_mb")
    if storage == "files":
        fill(run, "A-put-files", best)
        fill(run, "A-put-resident-files", resident)
        return
    fill(run, "A-put-one", per_server(one, "mib_per_second"), **held_up(one))
    fill(run, "A-put-plateau", best, ratio(rates, rates), **held_up(many))
    fill(run, "A-put-resident", resident)
    fill(run, "A-put-resident-one", per_server(one, "resident_mb"))
    cpu = per_server(largest, "server_cpu_us", min)
    fill(run, "A-put-cpu", {name: us / 1e3 for name, us in cpu.items()})


def parts(run: Run, storage: str, servers: list[Server]) -> None:
    size, most = run.scale.parts_bytes, run.scale.parts_bytes // PART
    servers = [server for server in servers if server.name != NGINX]

    def upload(at_once: int) -> list:
        words = ["multipart", "--size", size, "--part-size", PART, "-c", at_once, "--count", 1]
        return [*words, "--payload", "signed", "--repeat", run.scale.repeat_a, "--timeout", "600s"]

    loads = {n: upload(n) for n in run.scale.parts_at_once if n <= most}
    steps = sweep(run, storage, servers, f"{size / 2**30:g} GiB in parts of 64 MiB", loads)
    ours = {key[1]: step for key, step in steps.items() if key[0] == OURS and step}
    rates = [step["mib_per_second"] for n, step in ours.items() if n > 1]
    best, resident = per_server(steps, "mib_per_second"), per_server(steps, "resident_mb")
    if storage == "files":
        fill(run, "A-parts-files", best)
        fill(run, "A-parts-resident-files", resident)
        return
    one = {key: step for key, step in steps.items() if key[1] == 1}
    fill(run, "A-parts-one", per_server(one, "mib_per_second"), **held_up(one))
    fill(run, "A-parts-plateau", best, ratio(rates, rates), **held_up(steps))
    fill(run, "A-parts-resident", resident)
    fill(run, "A-parts-cost", per_server(steps, "cpu_seconds_per_gib", min))
    costs = [step["cpu_seconds_per_gib"] for step in ours.values() if step["cpu_seconds_per_gib"]]
    run.row("A-parts-cpu", 10 * sum(costs) / len(costs) if costs else None)


def heads(run: Run, storage: str, servers: list[Server]) -> None:
    def words(clients: int) -> list:
        timing = run.scale.timing(run.scale.head_seconds, 0)
        return ["head", "--size", "4k", "--objects", 16, "-c", clients, *timing, "--payload", "signed"]

    loads = {n: [*words(n), "--repeat", run.scale.repeat_a] for n in run.scale.head_clients}
    steps = sweep(run, storage, servers, "HEAD", loads)
    most = max(run.scale.head_clients)
    many = {key: step for key, step in steps.items() if key[1] == most}
    if storage == "files":
        fill(run, "A-head-files", per_server(many, "per_second"), **held_up(many))
        return
    one = {key: step for key, step in steps.items() if key[1] == 1}
    fill(run, "A-head-one", per_server(one, "per_second"), **held_up(one))
    fill(run, "A-head-many", per_server(many, "per_second"), **held_up(many))
    fill(run, "A-head-cost", per_server(many, "server_cpu_us", min))
    fill(run, "A-head-resident", per_server(many, "resident_mb"))
    for step in many.values():
        if step and "voluntary" in step:
            step["voluntary_per_answer"] = step["voluntary"] / max(step["answers"], 1)
    fill(run, "A-head-switches", per_server(many, "voluntary_per_answer", min))


def idle(run: Run, servers: list[Server]) -> None:
    found = {}
    for server in servers:
        with run.started(server) as running:
            time.sleep(1)
            found[server.name] = running.resident_mb()
    fill(run, "A-idle", found)
