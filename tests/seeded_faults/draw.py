"""Which faults are seeded: a sample of all places for one that is balanced over kinds and modules."""

import json
import random
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOTS = ("crates/backend-posix/src/lib.rs", "crates/s3-wire/src/lib.rs", "crates/gateway/src/lib.rs")
# Of the gateway, what a request's head and body go through.
OF_GATEWAY = ("crates/gateway/src/body/", "crates/gateway/src/pipeline/")
STORAGE = "crates/backend-posix/"
# The number of each kind in a sample of 60. The wire has no flushes, renames and locks of files.
SHARES = {
    "storage": {
        "flush": 6,
        "rename": 6,
        "lock": 5,
        "step": 5,
        "condition": 6,
        "comparison": 3,
        "logic": 2,
        "arm": 4,
        "limit": 2,
        "boolean": 1,
    },
    "wire": {
        "condition": 6,
        "comparison": 3,
        "logic": 3,
        "step": 2,
        "arm": 2,
        "limit": 3,
        "arithmetic": 1,
    },
}


@dataclass(frozen=True)
class Site:
    """A place for a fault: `then` is the text instead of `now`, with @N@ for the fault's number."""

    file: str
    line: int
    start: int
    end: int
    function: str
    kind: str
    what: str
    now: str
    then: str

    @property
    def area(self) -> str:
        return "storage" if self.file.startswith(STORAGE) else "wire"

    @property
    def module(self) -> str:
        """The part of its crate that it is in."""
        crate, _, *inner = self.file.split("/")[1:]
        return f"{crate}/{inner[0].removesuffix('.rs')}"

    @property
    def name(self) -> str:
        """What stays the same when lines move."""
        return f"{self.file} {self.function}: {self.kind} {self.what}: {' '.join(self.now.split())}"

    def overlaps(self, other: "Site") -> bool:
        return self.file == other.file and self.start < other.end and other.start < self.end

    def as_json(self) -> dict:
        return asdict(self)


def find(repository: Path, cargo: str) -> list[Site]:
    """All places; `cargo` is the command."""
    command = [*shlex.split(cargo), "run", "-q", "-p", "xtask", "--example", "fault_sites", "--", *ROOTS]
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, text=True, check=True)
    sites = [Site(**site) for site in json.loads(done.stdout)]
    return [
        site
        for site in sites
        if not site.file.startswith("crates/gateway/") or site.file.startswith(OF_GATEWAY)
    ]


class Draw:
    """Draws in an order that only the seed and the sources decide."""

    def __init__(self, sites: Iterable[Site], count: int, seed: int, area: str | None = None) -> None:
        shuffled = sorted(sites, key=lambda site: (site.file, site.start, site.end, site.what))
        random.Random(seed).shuffle(shuffled)
        self.sites = shuffled
        self.wanted: Counter[tuple[str, str]] = Counter()
        order = [
            (of, kind)
            for of, kinds in SHARES.items()
            if area in (None, of)
            for kind, n in kinds.items()
            for _ in range(n)
        ]
        random.Random(seed).shuffle(order)
        for index in range(count):
            self.wanted[order[index % len(order)]] += 1

    def fill(self, drawn: list[Site], refused: Callable[[Site], bool]) -> list[Site]:
        """`drawn`, with more of each kind that has too few. Of a kind, the modules with the fewest come first."""
        drawn = list(drawn)
        have = Counter((site.area, site.kind) for site in drawn)
        modules = Counter(site.module for site in drawn)
        for stratum in sorted(self.wanted):
            candidates = [
                site for site in self.sites if (site.area, site.kind) == stratum and not refused(site)
            ]
            while have[stratum] < self.wanted[stratum]:
                candidates = [site for site in candidates if not any(map(site.overlaps, drawn))]
                if not candidates:
                    break
                # min() takes the first of equals: the order is that of the shuffle.
                site = min(candidates, key=lambda site: modules[site.module])
                drawn.append(site)
                have[stratum] += 1
                modules[site.module] += 1
        return drawn
