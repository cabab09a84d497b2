"""Directory trees to send somewhere and to compare."""

import hashlib
import os
import random
import shutil
from pathlib import Path

from .server import RECORDS

# A real tree with many small files, symbolic links and odd names.
DOCUMENTATION = Path("/usr/share/doc")


def make_tree(root: Path, seed: int = 17, count: int = 60) -> dict[str, str]:
    """A tree of small and not so small files below `root`; returns what `contents` would."""
    chance = random.Random(seed)
    names = ["docs", "src", "a b", ".config", "ünï", "x.tar", "plus+", "100%", "deep"]
    for number in range(count):
        parts = [chance.choice(names) + str(chance.randrange(2)) for _ in range(chance.randrange(0, 4))]
        path = root.joinpath(*parts, f"file {number}.txt" if number % 7 == 0 else f"file{number}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.choice([0, 1, 100, 5000, 70_000, 1 << 20])))
    return contents(root)


def copy_real_tree(target: Path, files_max: int, bytes_max: int = 60 << 20) -> int:
    """A bounded part of a real tree, symbolic links included; returns how many files there are."""
    count = size = 0
    for directory, names, files in os.walk(DOCUMENTATION):
        names.sort()
        for name in sorted(files):
            source = Path(directory, name)
            status = source.lstat()
            if count >= files_max or size + status.st_size > bytes_max:
                return count
            place = target / source.relative_to(DOCUMENTATION)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place, follow_symlinks=False)
            if not source.is_symlink():
                count += 1
                size += status.st_size
    return count


def contents(root: Path) -> dict[str, str]:
    """Relative path -> SHA-256 of every regular file; links and our own directories are left out."""
    found = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".slipway", RECORDS)]
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
