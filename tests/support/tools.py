"""The operator's tools, as an operator runs them."""

import hashlib
import json
import subprocess
from pathlib import Path

from .server import binary

RECORD = "user.slipway"
CHECKED = {"x-amz-checksum-mode": "ENABLED"}


def run(*arguments: object, status: int = 0) -> str:
    """Runs `slipway` with `arguments`, which must end with `status`; what it printed."""
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "panicked" not in done.stderr, done.stderr
    return done.stdout if status < 2 else done.stderr


def stat(path: Path) -> list[dict]:
    return [json.loads(line) for line in run("stat", "--json", path).splitlines()]


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()
