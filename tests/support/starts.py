"""Starts of a server that are to fail."""

import subprocess
from pathlib import Path

from support.server import KEYS, binary


def start(tree: Path, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [binary(), "serve", *options, tree]
    return subprocess.run(
        command, capture_output=True, text=True, env={**KEYS, **(env or {})}, timeout=30, check=False
    )
