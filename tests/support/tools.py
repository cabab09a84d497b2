"""The operator's tools, as an operator runs them."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from .server import SIDECARS, binary

RECORD = "user.slipway"
CHECKED = {"x-amz-checksum-mode": "ENABLED"}
# More than an attribute holds on ext4, so that the record overflows there.
LONG = {**{f"x-amz-meta-{n}": "x" * 200 for n in range(9)}, "cache-control": "y" * 2500}


def run(*arguments: object, status: int = 0) -> str:
    """Runs `slipway` with `arguments`, which must end with `status`; what it printed."""
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "panicked" not in done.stderr, done.stderr
    return done.stdout if status < 2 else done.stderr


def aside(tree: Path, name: str) -> Path:
    """A directory as DeleteBucket makes it in DIR, with its mark; uploads in it are set aside."""
    path = tree / name
    path.mkdir(mode=0o700)
    if SIDECARS:
        (path / ".slipway,own").write_text(name)
    else:
        os.setxattr(path, "user.slipway.own", name.encode())
    (path / "uploads").mkdir(mode=0o700)
    return path


def identity(bucket: Path) -> str:
    """By which DeleteBucket tells a bucket from a later one of its name: inode and birth."""
    done = subprocess.run(["stat", "-c", "%i %.9W", bucket], capture_output=True, text=True, check=True)
    inode, birth = done.stdout.split()
    seconds, ns = map(int, birth.split("."))
    return f"{int(inode):x}-{seconds:x}-{ns:x}"


def stat(path: Path) -> list[dict]:
    return [json.loads(line) for line in run("stat", "--json", path).splitlines()]


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """But for what is said of a tree in which nothing was written yet."""
    return [line for line in done.stderr.splitlines() if "no gateway seems to have served" not in line]


def findings(tree: Path, *options: str) -> list[str]:
    """What `slipway fsck` finds in a tree, however young, a line each; with `--repair`, what it mended."""
    done = subprocess.run(
        [binary(), "fsck", "--json", "--min-age", "0", *options, str(tree)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1) and not complaints(done), done
    *problems, summary = map(json.loads, done.stdout.splitlines())
    assert (summary["left"] == 0) == (done.returncode == 0), done
    return [
        f"{found['problem']}: {Path(found['path']).relative_to(tree)} [{found['error'] or found['state']}]"
        for found in problems
    ]


def sweep(tree: Path) -> None:
    """As an operator does who has just had a crash."""
    done = subprocess.run(
        [binary(), "sweep", "--age", "0", str(tree)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0 and not complaints(done), done
