"""Who acts in a race: S3 clients, and a person with files. What each did is kept as steps of histories."""

import contextlib
import errno
import itertools
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_plus

from . import expect
from .bucket import Bucket, complete_document
from .checksums import content_md5
from .history import State, Step, Version, etag_of, etag_of_parts, reading
from .server import RECORDS, SIDECARS
from .wire import Connection, Response
from .xml import element


@dataclass(frozen=True)
class New:
    """What a write is about to make."""

    writer: str
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        return {"x-amz-meta-writer": self.writer}

    def version(self, etag: str | None = None) -> Version:
        return Version(self.body, etag or etag_of(self.body), self.writer)


@dataclass
class Listing:
    """What one listing showed, over all its pages."""

    gateway: int
    prefix: str
    delimiter: str
    start: float = 0.0
    end: float = 0.0
    # Key -> (ETag, size).
    entries: dict[str, tuple[str, int]] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"LIST prefix={self.prefix!r} delimiter={self.delimiter!r} through {self.gateway}"


@dataclass
class CopyMade:
    """A copy, whose version is known once the source's versions are (see `resolve_copies` in test_model)."""

    source: str
    target: str
    etag: str
    # With the directive REPLACE; None takes the source's metadata along.
    writer: str | None
    read: Step
    write: Step
    # Source version -> what it became.
    made: dict[Version, Version] = field(default_factory=dict)


class Answer(NamedTuple):
    """What a rule looks at of a response."""

    status: int
    code: str | None


ACCEPTED = Answer(200, None)


def write_rule(version: Version, condition: tuple[str, str] | None, response: Response | Answer) -> Callable:
    """What a PUT or Complete that was answered so may have been done to."""
    outcome = response.status if response.status == 200 else (response.status, response.code)
    kind, etag = condition or ("", "")

    def rule(state: State) -> list[State]:
        old = state.version
        if kind == "if-none-match":
            expected = 200 if old is None else (412, "PreconditionFailed")
        elif kind == "if-match" and old is None:
            expected = (404, "NoSuchKey")
        elif kind == "if-match" and not old.has_etag(etag):
            expected = (412, "PreconditionFailed")
        else:
            expected = 200
        if outcome != expected:
            return []
        return [state._replace(version=version)] if outcome == 200 else [state]

    return rule


def conditional_rule(upload: str, rule: Callable, accepted: Callable, response: Response) -> Callable:
    """The rule of a conditional Complete that was answered so.

    Where a PUT would be `accepted`, the key must also have what it had when the upload was created. `rule` is
    that of a PUT with the same answer.
    """
    outcome = (response.status, response.code)

    def with_conflict(state: State) -> list[State]:
        then = next((note for note in state.noted if note[0] == upload), None)
        if then is None:
            return []  # It cannot have come before its upload was created.
        ended = state._replace(noted=state.noted - {then})
        if accepted(ended) and then[1] is not ended.version:
            # Empty ones that follow each other within a tick of the clock may be the same file to
            # all eyes.
            alike = then[1] and ended.version and then[1].body == ended.version.body
            conflict = [ended] if outcome == (409, "ConditionalRequestConflict") else []
            return conflict or (rule(ended) if alike else [])
        return rule(ended)

    return with_conflict


def slice_of(body: bytes, spec: str) -> tuple[str, bytes] | None:
    """Content-Range and bytes of a Range header's `first-last`, None if it cannot be satisfied.

    The last bytes of an empty object are all of it, without a Content-Range.
    """
    first, last = spec.split("-")
    if not body and not first:
        return "", b""
    if first:
        begin, end = int(first), min(int(last) if last else len(body), len(body) - 1)
    else:
        begin, end = max(len(body) - int(last), 0), len(body) - 1
    if begin >= len(body):
        return None
    return f"bytes {begin}-{end}/{len(body)}", body[begin : end + 1]


class Racer(Connection):
    """A connection that is made anew if the server closes it, as after an error that leaves a body unread.

    The first request, signed already, waits for `begin`.
    """

    # On sshfs a request is a hundred calls to a server, and others have their turns meanwhile.
    TIMEOUT_SECONDS = 90
    IDLE_SECONDS = 15

    def __init__(self, address: tuple[str, int] | str) -> None:
        self.address = address
        self.begin: threading.Barrier | None = None
        self._connect()

    def _connect(self) -> None:
        super().__init__(self.address, timeout=self.TIMEOUT_SECONDS)
        self.used = time.monotonic()

    def send(self, data: bytes) -> None:
        if time.monotonic() - self.used > self.IDLE_SECONDS:
            # Before the server gives it up.
            self.close()
            self._connect()
        begin, self.begin = self.begin, None
        if begin:
            begin.wait(20)
        super().send(data)

    def response(self, method: str = "GET") -> Response:
        response = super().response(method)
        self.used = time.monotonic()
        if response.headers.get("connection") == "close":
            self.close()
            self._connect()
        return response


class Actor:
    """Someone who waits for the others before the first thing is done."""

    begin: threading.Barrier | None = None

    def wait(self) -> None:
        if self.begin:
            self.begin.wait(20)
            self.begin = None


class Client(Actor):
    """An S3 client with a connection to each gateway."""

    def __init__(self, gateways: list[Bucket]) -> None:
        self.gateways = gateways
        self.connections = [Racer(gateway.server.address) for gateway in gateways]
        self.steps: list[Step] = []
        self.listings: list[Listing] = []
        self.copies: list[CopyMade] = []

    def close(self) -> None:
        for connection in self.connections:
            connection.close()

    def send(self, gateway: int, method: str, key: str | None, **options) -> tuple[float, float, Response]:
        """Sends a request that was signed before its time begins."""
        bucket = self.gateways[gateway]
        request = bucket.raw.prepare(method, bucket.path(key), **options)
        self.wait()
        start = time.monotonic()
        response = bucket.raw.send(request, self.connections[gateway])
        return start, time.monotonic(), response

    def add(self, key: str, label: str, times: tuple[float, float], rule: Callable, **more) -> Step:
        step = Step(key, label, *times, rule, **more)
        self.steps.append(step)
        return step

    # Writes.

    def put(self, gateway: int, key: str, new: New, condition: tuple[str, str] | None = None) -> None:
        headers = new.headers | ({condition[0]: condition[1]} if condition else {})
        start, end, response = self.send(gateway, "PUT", key, body=new.body, headers=headers)
        version = new.version()
        if response.status == 200:
            assert expect.ok(response).etag == version.etag, response
        label = f"PUT {condition or ''} {version} through {gateway}: {response.status} {response.code or ''}"
        rule = write_rule(version, condition, response)
        makes = version if response.status == 200 else None
        self.add(key, label, (start, end), rule, writes=True, makes=makes)

    def delete(self, gateway: int, key: str, etag: str | None = None) -> None:
        headers = {"if-match": etag} if etag else {}
        start, end, response = self.send(gateway, "DELETE", key, headers=headers)

        def rule(state: State) -> list[State]:
            expected = 204
            if etag and state.version is None:
                expected = 404
            elif etag and not state.version.has_etag(etag):
                expected = 412
            if response.status != expected:
                return []
            return [state._replace(version=None)] if expected == 204 else [state]

        label = f"DELETE {etag or ''} through {gateway}: {response.status} {response.code or ''}"
        self.add(key, label, (start, end), rule, writes=True)

    def delete_many(self, gateway: int, keys: list[str]) -> None:
        document = element("Delete", *[element("Object", Key=key) for key in keys]).encode()
        headers = {"content-md5": content_md5(document)}
        start, end, response = self.send(
            gateway, "POST", None, body=document, query={"delete": ""}, headers=headers
        )
        assert [entry["Key"] for entry in expect.ok(response).xml.all("Deleted")] == keys, response
        for key in keys:
            rule = lambda state: [state._replace(version=None)]  # noqa: E731
            self.add(key, f"DeleteObjects of {len(keys)} through {gateway}", (start, end), rule, writes=True)

    def copy(self, gateway: int, source: str, target: str, writer: str | None) -> None:
        headers = {"x-amz-copy-source": self.gateways[gateway].path(source)}
        if writer:
            headers |= {"x-amz-metadata-directive": "REPLACE", "x-amz-meta-writer": writer}
        start, end, response = self.send(gateway, "PUT", target, headers=headers)
        label = f"{source!r} -> {target!r} as {writer} through {gateway}: {response.status}"
        if response.status != 200:
            expect.error(response, "NoSuchKey", Key=source)
            self.steps.append(
                reading(source, f"copy of nothing {label}", start, end, lambda version: version is None)
            )
            return
        etag = expect.ok(response).xml["ETag"]
        # Reading and writing are two steps: that they are one is promised nowhere.
        read = reading(source, f"copy from {label}", start, end, lambda version: version in copied.made)
        write = Step(target, f"copy to {label}", start, end, lambda state: copied_states(state), read, True)

        def copied_states(state: State) -> list[State]:
            return [state._replace(version=version) for version in copied.made.values()]

        if source != target:
            write.after = None
        copied = CopyMade(source, target, etag, writer, read, write)
        self.copies.append(copied)
        self.steps += [read, write]

    # Multipart uploads.

    def start_upload(
        self, gateway: int, key: str, new: New, parts: list[bytes], *, noted: bool = False
    ) -> tuple[str, bytes]:
        """Id of a new upload with all its parts, and the document that completes it.

        If `noted`, what the key had when it was created counts: there must be a `conditional_rule` to come.
        """
        start, end, response = self.send(gateway, "POST", key, query={"uploads": ""}, headers=new.headers)
        upload = expect.ok(response).xml["UploadId"]
        if noted:

            def note(state: State) -> list[State]:
                return [state._replace(noted=state.noted | {(upload, state.version)})]

            self.add(key, f"Create through {gateway}", (start, end), note, writes=True)
        etags = []
        for number, part in enumerate(parts, 1):
            query = {"partNumber": str(number), "uploadId": upload}
            # Every part by the next gateway.
            _, _, response = self.send(
                (gateway + number) % len(self.gateways), "PUT", key, body=part, query=query
            )
            etags.append((number, expect.ok(response).etag))
        return upload, complete_document(etags)

    def upload(
        self,
        gateway: int,
        key: str,
        new: New,
        parts: list[bytes],
        condition: tuple[str, str] | None,
        end: str,
    ) -> None:
        """A whole upload, which `end` says to complete or to abort."""
        noted = end == "complete" and condition is not None
        upload, document = self.start_upload(gateway, key, new, parts, noted=noted)
        if end == "complete":
            headers = dict([condition]) if condition else {}
            start, finish, response = self.send(
                gateway, "POST", key, body=document, query={"uploadId": upload}, headers=headers
            )
            version = new.version(etag_of_parts(parts))
            rule = write_rule(version, condition, response)
            if noted:
                rule = conditional_rule(upload, rule, write_rule(version, condition, ACCEPTED), response)
            label = (
                f"Complete {condition or ''} {version} through {gateway}: {response.status} {response.code}"
            )
            makes = version if response.status == 200 else None
            self.add(key, label, (start, finish), rule, writes=True, makes=makes)
            if response.status == 200:
                assert expect.ok(response).xml["ETag"] == version.etag
                return
        _, _, response = self.send(gateway, "DELETE", key, query={"uploadId": upload})
        expect.ok(response, 204)

    def complete(self, gateway: int, key: str, upload: str, document: bytes, version: Version) -> None:
        """Completes an upload that others complete or abort as well."""
        start, end, response = self.send(gateway, "POST", key, body=document, query={"uploadId": upload})

        def rule(state: State) -> list[State]:
            match response.status, response.code:
                case 200, None if (upload, "completed") in state.uploads:
                    # It is told again what it was told before, and does nothing.
                    return [state]
                case 200, None if (upload, "aborted") not in state.uploads:
                    uploads = state.uploads | {(upload, "completed")}
                    return [state._replace(version=version, uploads=uploads)]
                case 404, "NoSuchUpload" if (upload, "aborted") in state.uploads:
                    return [state]
            return []

        if response.status == 200:
            assert expect.ok(response).xml["ETag"] == version.etag
        label = f"Complete {upload} {version} through {gateway}: {response.status} {response.code or ''}"
        self.add(key, label, (start, end), rule, writes=True, makes=version)

    def abort(self, gateway: int, key: str, upload: str) -> None:
        start, end, response = self.send(gateway, "DELETE", key, query={"uploadId": upload})

        def rule(state: State) -> list[State]:
            over = {how for which, how in state.uploads if which == upload}
            match response.status, response.code:
                case 204, None if not over:
                    return [state._replace(uploads=state.uploads | {(upload, "aborted")})]
                case 404, "NoSuchUpload" if over:
                    return [state]
            return []

        label = f"Abort {upload} through {gateway}: {response.status} {response.code or ''}"
        self.add(key, label, (start, end), rule, writes=True)

    # Reads.

    def get(self, gateway: int, key: str, spec: str | None = None) -> Response:
        headers = {"range": f"bytes={spec}"} if spec else {}
        start, end, response = self.send(gateway, "GET", key, headers=headers)
        status, body = response.status, response.body

        def is_true(version: Version | None) -> bool:
            if version is None:
                return response.code == "NoSuchKey"
            piece = slice_of(version.body, spec) if spec else ("", version.body)
            if piece is None:
                return response.code == "InvalidRange"
            found = (
                status == (206 if piece[0] else 200) and response.headers.get("content-range", "") == piece[0]
            )
            return found and body == piece[1] and is_of(response, version)

        label = f"GET {spec or ''} through {gateway}: {tell(response)}"
        self.steps.append(reading(key, label, start, end, is_true))
        return response

    def head(self, gateway: int, key: str) -> Response:
        start, end, response = self.send(gateway, "HEAD", key)

        def is_true(version: Version | None) -> bool:
            if version is None:
                return response.status == 404
            length = response.headers.get("content-length")
            return response.status == 200 and length == str(len(version.body)) and is_of(response, version)

        label = f"HEAD through {gateway}: {tell(response)}"
        self.steps.append(reading(key, label, start, end, is_true))
        return response

    def list(self, gateway: int, prefix: str = "", delimiter: str = "", size: int = 1000) -> Listing:
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix, "max-keys": str(size)}
        query |= {"delimiter": delimiter} if delimiter else {}
        listing = Listing(gateway, prefix, delimiter)
        order: list[bytes] = []
        while True:
            start, listing.end, response = self.send(gateway, "GET", None, query=query)
            listing.start = listing.start or start
            page = expect.ok(response).body.decode()
            order += read_page(page, listing)
            token = re.search("<NextContinuationToken>([^<]+)<", page)
            assert bool(token) == ("<IsTruncated>true<" in page), page
            if not token:
                break
            query["continuation-token"] = token[1]
        assert all(one < two for one, two in itertools.pairwise(order)), f"{listing}: {order}"
        self.listings.append(listing)
        return listing


def listed(listing: Listing, key: str, attributes: bool = True) -> Step:
    """That a listing showed a key, or did not: a read, with `attributes` of ETag and size too."""
    entry = listing.entries.get(key)

    def is_true(version: Version | None) -> bool:
        if version is None or entry is None:
            return version is None and entry is None
        return not attributes or (version.has_etag(entry[0]) and len(version.body) == entry[1])

    return reading(key, f"{listing}: {entry}", listing.start, listing.end, is_true)


def read_page(page: str, listing: Listing) -> list[bytes]:
    """Adds a page to a listing; returns its keys and prefixes in one order."""
    shown: list[bytes] = []
    for contents in re.findall("<Contents>(.*?)</Contents>", page, re.DOTALL):
        found = {name: text for name, text in re.findall("<(Key|ETag|Size)>([^<]*)<", contents)}
        key = unquote_plus(found["Key"])
        listing.entries[key] = (found["ETag"].replace("&quot;", '"'), int(found["Size"]))
        shown.append(key.encode())
    assert shown == sorted(shown), page
    for text in re.findall("<CommonPrefixes>\\s*<Prefix>([^<]*)<", page):
        listing.prefixes.append(unquote_plus(text))
        shown.append(unquote_plus(text).encode())
    return sorted(shown)


def is_of(response: Response, version: Version) -> bool:
    """Whether ETag and metadata are those of a version."""
    writer = response.headers.get("x-amz-meta-writer")
    return version.has_etag(response.etag) and writer == version.writer


def tell(response: Response) -> str:
    headers = response.headers
    writer, etag = headers.get("x-amz-meta-writer", "no writer"), headers.get("etag", "no ETag")
    return f"{response.status} {response.code or ''} {writer}, {etag}, {headers.get('content-length')} bytes"


# The writes of all persons of a process.
WRITES = itertools.count(1)


class Person(Actor):
    """Someone with a shell, in the directories of a bucket. Only one at a time, with files of its own."""

    def __init__(self, tree: Path, outside: Path) -> None:
        self.tree, self.outside = tree, outside
        self.steps: list[Step] = []
        # What the person's files hold, by the person's own account.
        self.files: dict[str, Version] = {}
        # Directories it was in: the gateway leaves some of these.
        self.touched: set[Path] = set()
        self.has_whole_seconds = tree.stat().st_ctime_ns % 1_000_000_000 == 0

    def _apart(self, body: bytes) -> bytes:
        """Where times are whole seconds, no two writes of a person have the same size: they may else have one ETag."""
        return body + bytes(next(WRITES)) if self.has_whole_seconds else body

    def _step(self, key: str, what: str, start: float, version: Version | None) -> None:
        rule = lambda state: [state._replace(version=version)]  # noqa: E731
        end = time.monotonic()
        self.steps.append(Step(key, f"{what} by hand", start, end, rule, writes=True, makes=version))
        if version:
            self.files[key] = version
        else:
            self.files.pop(key, None)

    def _touch(self, path: Path) -> None:
        self.touched |= {path, *path.parents}

    def create(self, key: str, body: bytes) -> None:
        """Makes or replaces a file by rename, in a directory that is made if it is missing."""
        path, body = self.tree / key, self._apart(body)
        self._touch(path.parent)
        for _ in range(100):
            self.outside.write_bytes(body)
            # A gateway may remove the directory before the file is in it, or have an object in its
            # place.
            with contextlib.suppress(FileNotFoundError):
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    start = time.monotonic()
                    self.outside.rename(path)
                except (FileExistsError, NotADirectoryError):
                    return
                self._step(key, "create", start, Version(body, None, None))
                return
        raise AssertionError(f"no directory for {key!r} is available")

    def edit(self, key: str, body: bytes, append: bool) -> None:
        """Writes to a file where it is, which is not one step: no one else reads the key in this round."""
        if key not in self.files:
            return
        old = self.files[key].body if append else b""
        body = self._apart(body)
        start = time.monotonic()
        with open(self.tree / key, "ab" if append else "wb") as file:
            file.write(body)
        if not self.files[key].body and not old + body:
            # libfuse 2 (bindfs) does not touch the time of an empty file that is emptied.
            os.utime(self.tree / key)
        self._step(key, "edit", start, Version(old + body, None, None))

    def remove(self, key: str) -> None:
        if key in self.files:
            self._touch((self.tree / key).parent)
            start = time.monotonic()
            (self.tree / key).unlink()
            self._step(key, "rm", start, None)

    def move(self, source: str, target: str) -> None:
        """Renames a file, or a directory with all that is in it; nothing happens where that can't be."""
        self._touch((self.tree / source).parent)
        self._touch((self.tree / target).parent)
        moved = {key: version for key, version in self.files.items() if (key + "/").startswith(source + "/")}
        start = time.monotonic()
        try:
            self._move_with_record(self.tree / source, self.tree / target)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            # A directory with something in it is in the way, or inside the moved one. XFS says
            # EEXIST of a directory that is not empty, sshfs EPERM of whatever its server can't do.
            known = {errno.ENOTEMPTY, errno.EEXIST, errno.EINVAL} | ({errno.EPERM} if SIDECARS else set())
            assert error.errno in known, error
            return
        if source == target:
            return
        for key in moved:
            self._step(key, f"mv to {target!r}", start, None)
        for key, version in moved.items():
            self._step(target + key.removeprefix(source), f"mv of {source!r}", start, version)

    @staticmethod
    def _move_with_record(source: Path, target: Path) -> None:
        """Where its record is in a file, a person who wants to keep that has to move it too."""
        record = source.parent / RECORDS / source.name
        with_record = SIDECARS and source.is_file() and record.exists() and source != target
        os.rename(source, target)
        if with_record:
            (target.parent / RECORDS).mkdir(exist_ok=True)
            os.rename(record, target.parent / RECORDS / target.name)

    def make_directory(self, key: str) -> None:
        self._touch(self.tree / key)
        with contextlib.suppress(FileExistsError, NotADirectoryError, FileNotFoundError):
            (self.tree / key).mkdir()

    def remove_directory(self, key: str) -> None:
        with contextlib.suppress(OSError):
            (self.tree / key).rmdir()
