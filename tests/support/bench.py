"""Runs of `slipway bench`, and what they leave."""

import json
import subprocess
from pathlib import Path

from support.server import ACCESS_KEY, SECRET_KEY, Server, binary

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
QUICK = ("--duration", "1s", "--warm-up", "100ms")
# For steps that end by themselves: what is unanswered when the time is over would not count.
ENOUGH = ("--duration", "60s")


class Run:
    """One `slipway bench`, which is under way once this is made."""

    def __init__(
        self,
        directory: Path,
        endpoint: str,
        *arguments: str,
        keys: dict[str, str] | None = None,
        stderr: int = subprocess.PIPE,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        self.json = directory / "report.json"
        self.json.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [*wrapper, binary(), "bench", endpoint, *arguments, "--json", self.json],
            env=KEYS if keys is None else keys,
            text=True,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )

    def end(self, status: int = 0) -> dict:
        """Its report, once it has ended as it should."""
        try:
            self.out, self.err = self.process.communicate(timeout=240)
        finally:
            self.process.kill()
        assert self.process.returncode == status, (self.process.returncode, self.out, self.err)
        assert "panicked" not in self.err, self.err
        text = self.json.read_text() if self.json.exists() else "{}"
        for said in (self.out, self.err, text):
            assert SECRET_KEY not in said
        assert ACCESS_KEY not in self.out + text
        return json.loads(text)


def buckets(server: Server) -> list[str]:
    return [path.name for path in server.tree.iterdir() if path.name.startswith("slipway-bench-")]


def made(server: Server, pattern: str) -> list[Path]:
    """What is in its buckets up to now."""
    return [path for name in buckets(server) for path in (server.tree / name).glob(pattern)]


def errors(report: dict) -> dict[str, int]:
    found: dict[str, int] = {}
    for round_ in report["rounds"]:
        for part in (round_["errors_outside"], *(of["errors"] for of in round_["operations"])):
            for name, count in part.items():
                found[name] = found.get(name, 0) + count
    return found
