"""Seeds faults in the storage and the wire, and sees whether a test catches each.

    .venv/bin/python tests/seeded_faults/run.py [--count 60] [--seed N]

All faults are in one build of a copy of the workspace, each behind a switch. A first run without a fault notes which
tests reach which. Then each fault is put on by itself, and the tests that reach it are run, quick ones first, up to
the first that fails: those of Rust for all faults, then the black-box ones file by file for what is left. The table is
in target/seeded-faults/faults.md; the same command goes on where it was ended.
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
from seeded_faults.draw import SHARES, Draw, Site, find
from seeded_faults.suites import Suites, Turn, black_box_files, full_name
from seeded_faults.tree import Tree

REPOSITORY = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
CAUGHT_PERCENT = 95
# For a test that caught a fault before.
AGAIN_SECONDS = 60
# No more can be told apart.
COUNT_MAX = 255


class Campaign:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.at: Path = options.directory
        self.at.mkdir(parents=True, exist_ok=True)
        # Numbers of faults mean something for one draw alone.
        draw = f"{options.seed}-{options.count}" + (f"-{options.area}" if options.area else "")
        self.file, self.reached = self.at / f"state-{draw}.json", self.at / f"reached-{draw}.json"
        self.verdicts = Path(__file__).with_name(f"verdicts-{draw}.json")
        state = json.loads(self.file.read_text()) if self.file.exists() else self.committed()
        self.drawn: list[str] = state.get("drawn", [])
        self.refused: set[str] = set(state.get("refused", []))
        self.is_built: bool = state.get("is_built", False)
        self.results: dict[str, dict] = state.get("results", {})
        told = tomllib.loads(EQUIVALENT.read_text())["equivalent"] if EQUIVALENT.exists() else []
        self.equivalent = {entry["fault"] for entry in told}
        self.tree = Tree(REPOSITORY, self.at, options.cargo)

    def committed(self) -> dict:
        """The state that follows from the verdicts in the repository: the draw, and which test caught each fault."""
        verdicts = json.loads(self.verdicts.read_text()) if self.verdicts.exists() else {}
        results = {name: {"caught": test, "tried": [], "seconds": 0.0} for name, test in verdicts.items()}
        return {"drawn": list(verdicts), "results": results}

    def keep(self) -> None:
        verdicts = {name: self.results.get(name, {}).get("caught", "") for name in self.drawn}
        self.verdicts.write_text(json.dumps(verdicts, indent=1) + "\n")

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
        if gone := [name for name in self.drawn if name not in by_name]:
            print(f"no longer in the sources, and replaced: {gone}", flush=True)
            # The faults after them get other numbers.
            self.is_built = False
            self.reached.unlink(missing_ok=True)
        draw = Draw(by_name.values(), self.options.count, self.options.seed, self.options.area)
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
        looked_at = {n: site for n, site in faults.items() if n in (self.options.only or faults)}
        if self.options.again:
            for number, site in looked_at.items():
                self.again(suites, number, site)
        elif any(map(self.is_open, looked_at.values())):
            self.search(suites, looked_at)
        turn.give_back()
        if self.options.keep:
            self.keep()
        return self.report(faults)

    def search(self, suites: Suites, looked_at: dict[int, Site]) -> None:
        """Looks for tests that catch the faults: of the programs, then of the black-box files until nothing is left."""
        print("What the tests reach:", flush=True)
        suites.record_programs(self.options.programs)
        for number, site in looked_at.items():
            self.one(suites, number, site, is_black_box=False)
        files = [] if self.options.rust_only else black_box_files(self.options.black_box)
        for index, file in enumerate(files):
            left = {n: site for n, site in looked_at.items() if self.is_open(site)}
            print(f"{len(left)} left for {file} and {len(files) - index - 1} more: {list(left)}", flush=True)
            if not left:
                break
            suites.record_black_box(file)
            for number, site in left.items():
                self.one(suites, number, site, is_black_box=True)
        failing = [test for test, entry in suites.known.items() if not entry["passed"]]
        if failing:
            print(f"without a fault these fail, and are left out: {failing}", flush=True)

    def is_open(self, site: Site) -> bool:
        return site.name not in self.equivalent and not self.results.get(site.name, {}).get("caught")

    def one(self, suites: Suites, number: int, site: Site, *, is_black_box: bool) -> None:
        """Looks for a test that catches a fault, unless one did."""
        result = self.results.setdefault(site.name, {"caught": "", "tried": [], "seconds": 0.0})
        if result["caught"]:
            return
        begun, before = time.monotonic(), len(result["tried"])
        rounds = suites.rounds(number, set(result["tried"]), is_black_box=is_black_box)
        for program, tests, seconds in rounds:
            if self.catches(suites, number, result, program, tests, seconds):
                break
        result["seconds"] = round(result["seconds"] + time.monotonic() - begun, 1)
        self.save()
        told = result["caught"] or f"not by {len(result['tried']) - before} tests"
        print(f"{number:3} {site.name[:90]}: {told}", flush=True)

    def again(self, suites: Suites, number: int, site: Site) -> None:
        """Looks whether the test that caught a fault before still does."""
        result = self.results.get(site.name)
        if not result or not result["caught"]:
            return
        caught, result["caught"], result["tried"] = result["caught"], "", []
        program, test = ("", caught) if caught.startswith("tests/") else caught.split(" ", 1)
        self.catches(suites, number, result, program, [test], AGAIN_SECONDS)
        self.save()
        print(f"{number:3} {site.name[:90]}: {result['caught'] or 'no longer by ' + caught}", flush=True)

    def catches(
        self, suites: Suites, number: int, result: dict, program: str, tests: list[str], seconds: float
    ) -> bool:
        """Runs tests with a fault, and notes the result. A failure counts if the fault is why: without it the same tests
        pass."""
        ran = suites.look(number, program, tests, seconds)
        if not ran.passed and suites.look(0, program, ran.failed or tests, seconds).passed:
            how = ran.failed[0] if ran.failed else ("crash" if ran.in_time else "time limit")
            result["caught"] = full_name(program, how)
            return True
        result["tried"] += [full_name(program, test) for test in tests]
        return False

    def report(self, faults: dict[int, Site]) -> bool:
        """Writes the table; true if enough are caught."""
        lines = ["| | place | fault | caught by | seconds |", "|---|---|---|---|---|"]
        caught, all_of, survivors = Counter(), Counter(), []
        for number, site in faults.items():
            result = self.results.get(site.name, {"caught": "", "seconds": 0})
            told = result["caught"] or ("equivalent" if site.name in self.equivalent else "**nothing**")
            now = " ".join(site.now.split()).replace("|", "\\|")
            lines.append(
                f"| {number} | {site.file.removeprefix('crates/')}:{site.line} `{site.function}` "
                f"| {site.kind}, {site.what}: `{now[:80]}` | {told} | {result['seconds']} |"
            )
            if result["caught"] or site.name not in self.equivalent:
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
    parser.add_argument("--area", choices=SHARES, help="of this alone")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="these faults, by number")
    parser.add_argument("--build-only", action="store_true", help="draw and build; run no test")
    parser.add_argument("--rust-only", action="store_true", help="no black-box tests")
    parser.add_argument(
        "--black-box", nargs="*", default=[], help="these files: races for tests/test_races.py"
    )
    parser.add_argument(
        "--programs",
        nargs="*",
        default=[],
        help="these test programs: backend-posix/lib; or 'PROGRAM MODULE'",
    )
    parser.add_argument("--again", action="store_true", help="only whether what was caught before still is")
    parser.add_argument("--keep", action="store_true", help="write the verdicts into the repository")
    parser.add_argument("--cargo", default="cargo", help="the command for cargo")
    parser.add_argument("--lock", type=Path, help="a file to lock while tests run")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "target" / "seeded-faults")
    return 0 if Campaign(parser.parse_args()).run() else 1


if __name__ == "__main__":
    sys.exit(main())
