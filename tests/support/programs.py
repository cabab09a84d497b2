"""Other programs: they save, edit, move and remove files by the names that S3 writes to at the same
time.

Their acts are steps of histories (`history`), by what is in a file: its first bytes are unique, so
that bytes tell which act of whom made them. A program that finds a directory in the place of its
file, or nothing, has done nothing.
"""

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from . import expect
from .actors import Actor, Client
from .bucket import Bucket
from .history import State, Step, Version, reading

# What may be in the way of an act by name: nothing is done then.
OBSTACLES = (FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError)
SELF = ".slipway,self"
MKDIR_TRIES = 20


class Versions:
    """All that anyone has written, by the MD5 of its bytes."""

    def __init__(self) -> None:
        self._by_etag: dict[str, Version] = {}

    def of(self, body: bytes) -> Version:
        version = Version(body, None, None)
        return self._by_etag.setdefault(version.plain_etag, version)

    def with_etag(self, etag: str) -> Version | None:
        return self._by_etag.get(etag)


def has(body: bytes | None) -> Callable[[Version | None], bool]:
    return lambda version: (version and version.body) == body


class ProgramsClient(Client):
    """An S3 client that looks at bytes alone: a file that was moved or cut may have kept its record
    or not.
    """

    def __init__(self, gateways: list[Bucket], versions: Versions) -> None:
        super().__init__(gateways)
        self.versions = versions

    def get(self, gateway: int, key: str) -> None:
        start, end, response = self.send(gateway, "GET", key)
        if response.status == 200:
            body = response.body
        else:
            expect.error(response, "NoSuchKey", Key=key)
            body = None
        label = f"GET through {gateway}: {tell(body)}"
        self.steps.append(reading(key, label, start, end, has(body)))

    def copy(self, gateway: int, source: str, target: str) -> None:
        headers = {"x-amz-copy-source": self.gateways[gateway].path(source)}
        start, end, response = self.send(gateway, "PUT", target, headers=headers)
        if response.status != 200:
            expect.error(response, "NoSuchKey", Key=source)
            label = f"copy to {target!r} of nothing"
            self.steps.append(reading(source, label, start, end, has(None)))
            return
        version = self.versions.with_etag(expect.ok(response).xml["ETag"])
        assert version, f"the copy of {source!r} has bytes that no one has written: {response}"
        # Reading and writing are two steps, of two histories.
        self.steps.append(reading(source, f"copy to {target!r}", start, end, has(version.body)))
        label = f"copy of {source!r} through {gateway}: {tell(version.body)}"
        self.add(target, label, (start, end), becomes(version), writes=True)


def becomes(version: Version | None) -> Callable[[State], list[State]]:
    return lambda state: [state._replace(version=version)]


def goes(body: bytes) -> Callable[[State], list[State]]:
    return lambda state: [State()] if has(body)(state.version) else []


def tell(body: bytes | None) -> str:
    return "nothing" if body is None else f"{body[:24]!r}, {len(body)} bytes"


class Program(Actor):
    """One of them, with files that are no other program's. Paths are `root` and a key.

    `outside` is a directory of its own on the same file system.
    """

    def __init__(self, root: Path, outside: Path, versions: Versions) -> None:
        self.root, self.outside, self.versions = root, outside, versions
        self.outside.mkdir()
        self.steps: list[Step] = []
        self.temporaries = 0

    def _step(self, key: str, what: str, start: float, rule: Callable) -> None:
        self.steps.append(Step(key, what, start, time.monotonic(), rule, writes=True))

    def _temporary(self, directory: Path, body: bytes) -> Path:
        self.temporaries += 1
        path = directory / f"temporary-{self.outside.name}-{self.temporaries}"
        path.write_bytes(body)
        return path

    def _try_below(self, key: str, act: Callable[[Path], None]) -> None:
        """Does something in the directory of a key, which S3 may remove when it is empty, or put an
        object in its place.
        """
        path = self.root / key
        for _ in range(MKDIR_TRIES):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError:
                continue
            except OBSTACLES:
                return
            try:
                act(path)
            except FileNotFoundError:
                continue
            except OBSTACLES:
                pass
            return

    def save(self, key: str, body: bytes, beside: bool, flush: bool) -> None:
        """Writes another file, `beside` it or elsewhere, and renames it over the old one."""

        # Known before anyone can copy it.
        version = self.versions.of(body)

        def act(path: Path) -> None:
            temporary = self._temporary(path.parent if beside else self.outside, body)
            try:
                if flush:
                    with open(temporary, "rb") as file:
                        os.fsync(file.fileno())
                start = time.monotonic()
                temporary.rename(path)
            finally:
                # Unless it was renamed, or went with the directory.
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    temporary.unlink()
            self._step(key, f"save: {tell(body)}", start, becomes(version))

        self._try_below(key, act)

    def edit(self, key: str, body: bytes) -> None:
        """Writes to the file itself, from its beginning, and makes it if it is missing. No one
        reads it meanwhile.
        """

        def act(path: Path) -> None:
            start = time.monotonic()
            with open(path, "wb", buffering=0) as file:
                # In two pieces, as most programs write.
                for piece in (body[: len(body) // 2], body[len(body) // 2 :]):
                    file.write(piece)
            self._step(key, f"edit: {tell(body)}", start, becomes(self.versions.of(body)))

        self._try_below(key, act)

    def cut(self, key: str, length: int) -> None:
        """truncate(2)."""
        start = time.monotonic()
        try:
            os.truncate(self.root / key, length)
        except OBSTACLES:
            return

        def rule(state: State) -> list[State]:
            if state.version is None:
                return []
            return [State(self.versions.of(state.version.body[:length].ljust(length, b"\0")))]

        self._step(key, f"truncate to {length} bytes", start, rule)

    def remove(self, key: str) -> None:
        start = time.monotonic()
        try:
            os.unlink(self.root / key)
        except OBSTACLES:
            return
        self._step(key, "rm", start, lambda state: [State()] if state.version else [])

    def move(self, source: str, target: str | None) -> None:
        """Takes a file away, whoever has written it, and puts it to another name. `None`: it stays
        away.

        Over a file of its own, since only a file can be renamed to there: what has become a
        directory meanwhile stays.
        """
        away = self._temporary(self.outside, b"")
        start = time.monotonic()
        try:
            os.rename(self.root / source, away)
        except OBSTACLES:
            away.unlink()
            return
        body = away.read_bytes()
        self._step(source, f"mv away: {tell(body)}", start, goes(body))

        def act(path: Path) -> None:
            start = time.monotonic()
            away.rename(path)
            what = f"mv of {source!r}: {tell(body)}"
            self._step(target, what, start, becomes(self.versions.of(body)))

        if target:
            self._try_below(target, act)
        away.unlink(missing_ok=True)

    def move_directly(self, source: str, target: str) -> None:
        """The same in one step, for a file that no one else writes to, and that never is a
        directory.
        """
        try:
            body = (self.root / source).read_bytes()
        except OBSTACLES:
            return

        def act(path: Path) -> None:
            start = time.monotonic()
            try:
                os.rename(self.root / source, path)
            except OSError as error:
                # Onto a directory that it is in.
                if error.errno == errno.ENOTEMPTY:
                    return
                raise
            self._step(source, f"mv to {target!r}", start, goes(body))
            what = f"mv of {source!r}: {tell(body)}"
            self._step(target, what, start, becomes(self.versions.of(body)))

        self._try_below(target, act)


def file_of(root: Path, key: str) -> Path | None:
    """Where an object's bytes are, when no one is at it."""
    path = root / key
    if path.is_dir():
        path /= SELF
    return path if path.is_file() else None
