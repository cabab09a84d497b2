"""Seeds faults in the storage and the wire, and sees whether a test catches each.

    .venv/bin/python tests/seeded_faults/run.py [--count 60] [--seed N]

All faults are in one build of a copy of the workspace, each behind a switch. A first run without a fault notes which
tests reach which. Then each fault is put on by itself, and the tests that reach it are run, quick ones first, up to
the first that fails. The table is in target/seeded-faults/faults.md; the same command goes on where it was ended.
The exit status is 1 if fewer than 95 of 100 are caught. What equivalent.toml says can't be told from the program
without it does not count."""

import argparse
import json
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from seeded_faults.control import Control
from seeded_faults.draw import Draw, Site, find
from seeded_faults.suites import Ran, Suites, Turn
from seeded_faults.tree import Tree

REPOSITORY = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
CAUGHT_PERCENT = 95
# No more can be told apart.
COUNT_MAX = 255


class Campaign:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.at: Path = options.directory
        self.at.mkdir(parents=True, exist_ok=True)
        # Numbers of faults mean something for one draw alone.
        draw = f"{options.seed}-{options.count}"
        self.file, self.reached = self.at / f"state-{draw}.json", self.at / f"reached-{draw}.json"
        state = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.drawn: list[str] = state.get("drawn", [])
        self.refused: set[str] = set(state.get("refused", []))
        self.is_built: bool = state.get("is_built", False)
        self.results: dict[str, dict] = state.get("results", {})
        self.tree = Tree(REPOSITORY, self.at, options.cargo)

    def save(self) -> None:
        state = {
            "drawn": self.drawn,
            "refused": sorted(self.refused),
            "is_built": self.is_built,
            "results": self.results,
        }
        self.file.write_text(json.dumps(state, indent=1))

    def seed(self) -> dict[int, Site]:
        """Draws faults that compile, and writes the copy."""
        found = find(REPOSITORY, self.options.cargo)
        print(f"{len(found)} places; seed {self.options.seed}", flush=True)
        by_name: dict[str, Site] = {}
        for site in found:
            by_name.setdefault(site.name, site)
        sites = [by_name[name] for name in self.drawn if name in by_name]
        if len(sites) < len(self.drawn):
            gone = [name for name in self.drawn if name not in by_name]
            sys.exit(f"the sources have changed; --seed draws anew. Gone: {gone}")
        draw = Draw(by_name.values(), self.options.count, self.options.seed)
        while True:
            if not self.is_built:
                sites = draw.fill(sites, lambda site: site.name in self.refused)
            self.drawn = [site.name for site in sites]
            faults = dict(enumerate(sites, 1))
            self.tree.write(faults)
            wrong = self.tree.build()
            print(f"{len(faults)} faults, of which {len(wrong)} do not compile", flush=True)
            if not wrong:
                break
            self.refused |= {faults[number].name for number in wrong}
            sites = [site for number, site in faults.items() if number not in wrong]
            self.save()
        self.is_built = True
        self.save()
        return faults

    def run(self) -> bool:
        faults = self.seed()
        if self.options.build_only:
            return True
        control = Control(self.tree.control)
        turn = Turn(self.options.lock)
        suites = Suites(REPOSITORY, self.tree, control, turn, self.reached)
        print("What the tests reach:", flush=True)
        suites.record_programs(self.options.programs)
        if not self.options.rust_only:
            suites.record_black_box(self.options.black_box)
        failing = [test for test, entry in suites.known.items() if not entry["passed"]]
        if failing:
            print(f"without a fault these fail, and are left out: {failing}", flush=True)
        for number, site in faults.items():
            if self.options.only and number not in self.options.only:
                continue
            self.one(suites, number, site)
        turn.give_back()
        return self.report(faults)

    def one(self, suites: Suites, number: int, site: Site) -> None:
        """Looks for a test that catches a fault, unless one did."""
        result = self.results.setdefault(site.name, {"caught": "", "tried": [], "seconds": 0.0})
        if result["caught"]:
            return
        begun = time.monotonic()
        for is_black_box in (False,) if self.options.rust_only else (False, True):
            for program, names, seconds in suites.rounds(number, is_black_box=is_black_box):
                names = [name for name in names if name not in result["tried"]]
                if not names:
                    continue
                tests = suites.tests(names)
                ran = suites.look(number, program, tests, seconds)
                if not ran.passed and self.holds(suites, program, tests, seconds, ran):
                    how = ran.failed[0] if ran.failed else ("crash" if ran.in_time else "time limit")
                    result["caught"] = f"{program} {how}".strip()
                    break
                result["tried"] += names
            if result["caught"]:
                break
        result["seconds"] = round(result["seconds"] + time.monotonic() - begun, 1)
        self.save()
        print(f"{number:3} {site.name[:90]}: {result['caught'] or 'SURVIVED'}", flush=True)

    @staticmethod
    def holds(suites: Suites, program: str, tests: list[str], seconds: float, ran: Ran) -> bool:
        """True if the fault is why: without it the same tests pass."""
        again = [test for test in tests if any(name in test for name in ran.failed)] or tests
        return suites.look(0, program, again, seconds).passed

    def report(self, faults: dict[int, Site]) -> bool:
        """Writes the table; true if enough are caught."""
        told = tomllib.loads(EQUIVALENT.read_text())["equivalent"] if EQUIVALENT.exists() else []
        equivalent = {entry["fault"]: entry["reason"] for entry in told}
        lines = ["| | place | fault | caught by | seconds |", "|---|---|---|---|---|"]
        caught, all_of, survivors = Counter(), Counter(), []
        for number, site in faults.items():
            result = self.results.get(site.name, {"caught": "", "seconds": 0})
            told = result["caught"] or ("equivalent" if site.name in equivalent else "**nothing**")
            now = " ".join(site.now.split()).replace("|", "\\|")
            lines.append(
                f"| {number} | {site.file.removeprefix('crates/')}:{site.line} `{site.function}` "
                f"| {site.kind}, {site.what}: `{now[:80]}` | {told} | {result['seconds']} |"
            )
            if result["caught"] or site.name not in equivalent:
                kind = (site.area, site.kind)
                all_of[kind] += 1
                caught[kind] += bool(result["caught"])
                if not result["caught"]:
                    survivors.append(f"{number} {site.name}")
        (self.at / "faults.md").write_text("\n".join(lines) + "\n")
        for kind, count in sorted(all_of.items()):
            print(f"{kind[0]:8} {kind[1]:11} {caught[kind]:3} of {count}")
        total = sum(all_of.values())
        print(f"seed {self.options.seed}: {sum(caught.values())} of {total} caught", flush=True)
        print("\n".join(survivors))
        return sum(caught.values()) * 100 >= CAUGHT_PERCENT * total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--count", type=int, default=60, choices=range(1, COUNT_MAX + 1), metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", default=[], help="these faults, by number")
    parser.add_argument("--build-only", action="store_true", help="draw and build; run no test")
    parser.add_argument("--rust-only", action="store_true", help="no black-box tests")
    parser.add_argument(
        "--black-box", nargs="*", default=[], help="these files: races for tests/test_races.py"
    )
    parser.add_argument("--programs", nargs="*", default=[], help="these test programs: backend-posix/lib")
    parser.add_argument("--cargo", default="cargo", help="the command for cargo")
    parser.add_argument("--lock", type=Path, help="a file to lock while tests run")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "target" / "seeded-faults")
    return 0 if Campaign(parser.parse_args()).run() else 1


if __name__ == "__main__":
    sys.exit(main())
