"""The copy of the workspace in which all faults are, each behind a switch, and its one build."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from .draw import Site

HERE = Path(__file__).parent
CRATES = ("backend-posix", "s3-wire", "gateway")
DEPENDENCY = b'[dependencies]\nseeded-fault = { path = "../seeded-fault" }\n'


class DoesNotBuild(Exception):
    """The message is the compiler's."""


class Tree:
    def __init__(self, repository: Path, at: Path, cargo: str) -> None:
        self.repository, self.at, self.cargo = repository, at / "tree", shlex.split(cargo)
        self.control = at / "control"
        self.environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(at / "build"),
            "SEEDED_FAULT_CONTROL": str(self.control),
        }
        # Where each fault is in the copy.
        self.spans: dict[str, list[tuple[int, int, int]]] = {}
        # The test programs by name, and the server.
        self.programs: dict[str, Path] = {}
        self.server: Path | None = None
        # What the last build made, until a file changes.
        self.built = at / "built.json"

    def write(self, faults: dict[int, Site]) -> None:
        """Copies the files that Git knows, and seeds the faults. What is as before is not written: cargo goes by times."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.repository,
            stdout=subprocess.PIPE,
            check=True,
        )
        manifests = {f"crates/{crate}/Cargo.toml" for crate in CRATES}
        for name in filter(None, listed.stdout.decode().split("\0")):
            source = self.repository / name
            # The lock gets the added crate, and then stays.
            if source.is_symlink() or not source.is_file() or name == "Cargo.lock":
                continue
            content = source.read_bytes()
            if name in manifests:
                content = content.replace(b"[dependencies]\n", DEPENDENCY)
            of_file = {number: site for number, site in faults.items() if site.file == name}
            self._put(name, self._seeded(name, content, of_file), source)
        for name in ("Cargo.toml", "src/lib.rs"):
            source = HERE / "seeded-fault" / name
            self._put(f"crates/seeded-fault/{name}", source.read_bytes(), source)
        if not (self.at / "Cargo.lock").exists():
            shutil.copy(self.repository / "Cargo.lock", self.at / "Cargo.lock")

    def _put(self, name: str, content: bytes, source: Path) -> None:
        target = self.at / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Nothing of Rust reads the black-box tests but their tables.
            if not name.startswith("tests/") or name.endswith(".json"):
                self.built.unlink(missing_ok=True)
            target.write_bytes(content)
            shutil.copymode(source, target)

    def _seeded(self, name: str, content: bytes, faults: dict[int, Site]) -> bytes:
        done, last, spans = b"", 0, []
        for number, site in sorted(faults.items(), key=lambda item: item[1].start):
            assert content[site.start : site.end].decode() == site.now, site
            done += content[last : site.start]
            there = site.then.replace("@N@", str(number)).encode()
            spans.append((len(done), len(done) + len(there), number))
            done += there
            last = site.end
        self.spans[name] = spans
        return done + content[last:]

    def _run(self, *arguments: str) -> list[dict]:
        command = [*self.cargo, *arguments, "--offline", "--message-format=json"]
        done = subprocess.run(
            command,
            cwd=self.at,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not messages:
            raise DoesNotBuild(done.stderr)
        return messages

    def build(self) -> set[int]:
        """Builds all. Returns the faults that don't compile."""
        if self.built.exists():
            known = json.loads(self.built.read_text())
            self.server = Path(known["server"])
            self.programs = {name: Path(path) for name, path in known["programs"].items()}
            return set()
        wrong, unexplained = set(), []
        packages = [part for crate in CRATES for part in ("-p", crate)]
        for message in self._run("build", "--lib", "--bins", "--tests", "--keep-going", *packages):
            if message["reason"] == "compiler-artifact" and message["executable"]:
                self._note(message)
            if message["reason"] != "compiler-message" or message["message"]["level"] != "error":
                continue
            found = self._blamed(message["message"])
            wrong |= found
            if not found and message["message"]["spans"]:
                unexplained.append(message["message"]["rendered"])
        if not wrong and (unexplained or not self.server):
            raise DoesNotBuild("\n".join(unexplained))
        if not wrong:
            programs = {name: str(path) for name, path in self.programs.items()}
            self.built.write_text(json.dumps({"server": str(self.server), "programs": programs}))
        return wrong

    def _note(self, artifact: dict) -> None:
        crate, target = Path(artifact["manifest_path"]).parent.name, artifact["target"]
        if not artifact["profile"]["test"]:
            self.server = Path(artifact["executable"])
        elif target["kind"] != ["bin"]:
            name = target["name"] if target["kind"] == ["test"] else "lib"
            self.programs[f"{crate}/{name}"] = Path(artifact["executable"])

    def _blamed(self, diagnostic: dict) -> set[int]:
        """The faults that an error points at; else those nearest in its file."""
        spans = list(diagnostic["spans"])
        for child in diagnostic["children"]:
            spans += child["spans"]
        found = set()
        for span in spans:
            for start, end, number in self.spans.get(span["file_name"], []):
                if span["byte_start"] <= end and start <= span["byte_end"]:
                    found.add(number)
        if not found:
            near = [
                (abs(start - span["byte_start"]), number)
                for span in spans
                for start, _, number in self.spans.get(span["file_name"], [])
            ]
            found = {min(near)[1]} if near else set()
        return found
