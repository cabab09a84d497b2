"""A stream of writes that can be told again: the same seed gives the same requests, and what the tree holds
after each.

Each worker has keys of its own, in directories that all share, and never two requests at a time. So whenever
the power goes, a worker's keys are as after its last acknowledged request, or as after the one it was waiting
for."""

import contextlib
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from support.bucket import Bucket
from support.wire import Response

BUCKET = "bucket"
PART = 5 << 20
DIRECTORIES = ("", "d0/", "d0/e/", "d1/x/y/", "d2/")
SIZES = (0, 1, 700, 4096, 70_000, 1_500_000, 3_200_000)


def body(label: str, size: int) -> bytes:
    """Bytes that no other request has, to the last block."""
    block = b"".join(hashlib.sha256(f"{label} {number}".encode()).digest() for number in range(16))
    return (block * (size // len(block) + 1))[:size]


@dataclass(frozen=True)
class Object:
    md5: str
    size: int
    etag: str
    note: str


@dataclass
class State:
    """What one worker's keys must be."""

    objects: dict[str, Object] = field(default_factory=dict)
    # The upload in progress, if there is one: its key and the MD5 of each part.
    uploads: dict[str, dict[int, str]] = field(default_factory=dict)

    def copy(self) -> "State":
        return State(dict(self.objects), {key: dict(parts) for key, parts in self.uploads.items()})


@dataclass(frozen=True)
class Step:
    """One request."""

    kind: str
    key: str
    label: str = ""
    size: int = 0
    other: str = ""

    def object(self, state: State) -> Object:
        if self.kind == "copy":
            source = state.objects[self.other]
            return replace(source, etag=source.md5)
        if self.kind == "complete":
            parts = [body(f"{self.label} {n}", size) for n, size in ((1, PART), (2, self.size))]
            etag = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest() + "-2"
            whole = b"".join(parts)
            return Object(hashlib.md5(whole).hexdigest(), len(whole), etag, self.label)
        data = body(self.label, self.size)
        md5 = hashlib.md5(data).hexdigest()
        return Object(md5, len(data), md5, self.label)

    def apply(self, state: State) -> State:
        """What is there once it was done."""
        after = state.copy()
        if self.kind in ("put", "put-big", "copy", "complete"):
            after.objects[self.key] = self.object(state)
        if self.kind in ("complete", "abort"):
            del after.uploads[self.key]
        if self.kind in ("delete", "delete-many"):
            for key in filter(None, (self.key, self.other)):
                after.objects.pop(key, None)
        if self.kind == "create":
            after.uploads[self.key] = {}
        if self.kind == "part":
            number = 1 if self.size == PART else 2
            after.uploads[self.key][number] = hashlib.md5(
                body(f"{self.label} {number}", self.size)
            ).hexdigest()
        return after

    def send(self, bucket: Bucket, upload: dict[str, str]) -> Response:
        """Makes the request; `upload` keeps ids from one step to the next."""
        raw, path = bucket.raw, bucket.path(self.key)
        note = {"x-amz-meta-note": self.label}
        match self.kind:
            case "put":
                return raw.put(path, body(self.label, self.size), headers=note)
            case "put-big":
                # More than ext4 keeps beside a file.
                big = {
                    "x-amz-meta-big": "m" * 1800,
                    "cache-control": "c" * 1500,
                    "content-disposition": "d" * 1500,
                }
                return raw.put(path, body(self.label, self.size), headers=note | big)
            case "copy":
                return raw.put(path, headers={"x-amz-copy-source": bucket.path(self.other)})
            case "delete":
                return raw.delete(path)
            case "delete-many":
                return bucket.delete_many(*filter(None, (self.key, self.other)))
            case "create":
                response = raw.post(path, query={"uploads": ""}, headers=note)
                upload["id"] = response.xml["UploadId"] if response.status == 200 else ""
                return response
            case "part":
                number = 1 if self.size == PART else 2
                with contextlib.ExitStack() as stack:
                    if self.other:
                        stack.enter_context(half_a_part(bucket, self.key, upload["id"]))
                    return bucket.put_part(
                        self.key, upload["id"], number, body(f"{self.label} {number}", self.size)
                    )
            case "complete":
                sizes = ((1, PART), (2, self.size))
                etags = [(n, hashlib.md5(body(f"{self.label} {n}", size)).hexdigest()) for n, size in sizes]
                return bucket.complete(self.key, upload["id"], etags)
            case "abort":
                return bucket.abort(self.key, upload["id"])
        raise AssertionError(self.kind)


@contextlib.contextmanager
def half_a_part(bucket: Bucket, key: str, upload_id: str) -> Iterator[None]:
    """Has another part written to the same file, of which only half comes."""
    query = {"partNumber": "3", "uploadId": upload_id}
    request = bucket.raw.prepare("PUT", bucket.path(key), query=query, body=bytes(PART))
    with bucket.raw.connect() as connection:
        connection.send_as_far_as_possible(request.bytes[: -PART // 2])
        yield
        connection.reset()


def steps(seed: int, worker: int, conversions: bool = True) -> Iterator[Step]:
    """A worker's requests, without end. Without `conversions` no file becomes a directory."""
    chance = random.Random(f"{seed} {worker}")
    mine = [f"{directory}{name}-{worker}" for directory in DIRECTORIES for name in ("a", "b")]
    # A file that becomes a directory, and an object that is one.
    mine += [
        f"f-{worker}",
        f"f-{worker}/g" if conversions else f"g-{worker}",
        f"m-{worker}/",
        f"only-{worker}/deep/key",
    ]
    there: set[str] = set()
    number = 0
    while True:
        number += 1
        key, label = chance.choice(mine), f"{seed}-{worker}-{number}"
        kind = chance.choices(
            ("put", "put-big", "delete", "delete-many", "copy", "upload"), (50, 8, 24, 4, 8, 10)
        )[0]
        if kind in ("delete", "delete-many", "copy") and not there:
            continue
        if kind == "upload":
            size = chance.choice((1, 70_000))
            yield Step("create", key, label)
            beside = chance.choice(("", "half a part"))
            yield Step("part", key, label, PART, other=beside)
            yield Step("part", key, label, size, other=beside)
            if chance.random() < 0.2:
                yield Step("abort", key, label)
            else:
                yield Step("complete", key, label, size)
                there.add(key)
        elif kind == "copy":
            source = chance.choice(sorted(there))
            if source != key:
                yield Step(kind, key, label, other=source)
                there.add(key)
        elif kind in ("delete", "delete-many"):
            key = chance.choice(sorted(there))
            other = chance.choice(sorted(there)) if kind == "delete-many" else ""
            yield Step(kind, key, label, other="" if other == key else other)
            there -= {key, other}
        else:
            size = chance.choices(SIZES, (1, 2, 8, 8, 6, 2, 1))[0]
            yield Step(kind, key, label, size)
            there.add(key)
