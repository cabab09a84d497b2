"""The requests and the tools that meet faults, each with the state of the bucket before it."""

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support import expect
from support.bucket import Bucket
from support.data import PART, pattern
from support.peers import minio_file, minio_tree, versitygw_file
from support.server import RECORDS, SIDECARS
from support.tools import RECORD, aside, identity, md5
from support.wire import Response
from support.xml import element

OLD, NEW = b"old " * 100, b"new" * 200
LONG_OLD, LONG_NEW = pattern(3 << 20), pattern((3 << 20) + 1)[::-1]
OLD_HEADERS = {"content-type": "text/old", "x-amz-meta-age": "old"}
NEW_HEADERS = {"content-type": "text/new", "x-amz-meta-age": "new"}
# More than ext4 keeps beside a file.
BIG = {"x-amz-meta-big": "m" * 1900, "content-disposition": "d" * 1500, "cache-control": "c" * 1500}


def nothing(_: Bucket) -> None:
    pass


@dataclass(frozen=True)
class Case:
    name: str
    request: Callable[[Bucket, Any], Response]
    # Makes the state before; what it returns goes to the request.
    prepare: Callable[[Bucket], Any] = nothing
    # The bucket is not there before.
    no_bucket: bool = False
    # In an ordinary run of the tests, faults come at every so many-th call; 0 is for not at all.
    sample: int = 0
    # Whether each key is for itself old or new, instead of all together.
    by_key: bool = False
    # A crash may leave the object new and the upload not yet gone, or its uploads away and the
    # bucket not yet: the sweep ends that.
    in_steps: bool = False
    # A key that the request makes once only: deleted after the fault, it is not made by repeating
    # that.
    once: str | None = None
    # Done twice, it makes two: an upload, a version.
    adds: bool = False
    # It may show before it is ended: the object is an old version, and its delete marker is one
    # that nobody made (decision 0059).
    halfway: bool = False
    # What the request answers if it had been done already.
    again: tuple[int, ...] = (200, 204)
    # The bucket keeps versions, which is refused with --impersonate.
    keeps_versions: bool = False


def of_versions(*arguments: Any, **fields: Any) -> Case:
    return Case(*arguments, **fields, keeps_versions=True)


def put_old(*keys: str, body: bytes = OLD) -> Callable[[Bucket], None]:
    def prepare(bucket: Bucket) -> None:
        for key in keys:
            bucket.put(key, body, headers=OLD_HEADERS)

    return prepare


def put(
    key: str, body: bytes = NEW, headers: dict[str, str] = NEW_HEADERS
) -> Callable[[Bucket, Any], Response]:
    return lambda bucket, _: bucket.raw.put(bucket.path(key), body, headers=headers)


def delete(key: str) -> Callable[[Bucket, Any], Response]:
    return lambda bucket, _: bucket.delete(key)


def put_two(bucket: Bucket) -> None:
    put_old("a")(bucket)
    bucket.put("b", NEW, headers=NEW_HEADERS)


def put_big(bucket: Bucket) -> None:
    bucket.put("a", OLD, headers=OLD_HEADERS | BIG)


def delete_both(bucket: Bucket, _: None) -> Response:
    return bucket.delete_many("a", "d/b", "none")


def copy(source: str, target: str) -> Callable[[Bucket, Any], Response]:
    return lambda bucket, _: bucket.raw.put(
        bucket.path(target), headers={"x-amz-copy-source": f"/{bucket.name}/{source}"}
    )


def kept(
    prepare: Callable[[Bucket], Any] = nothing, status: str = "Enabled", before: tuple[str, ...] = ()
) -> Callable[[Bucket], Any]:
    """Has the bucket keep versions from `prepare` on; objects of the keys `before` are there already."""

    def prepared(bucket: Bucket) -> Any:
        put_old(*before)(bucket)
        expect.ok(set_versioning(bucket, "Enabled"))
        made = prepare(bucket)
        if status != "Enabled":
            expect.ok(set_versioning(bucket, status))
        return made

    return prepared


def set_versioning(bucket: Bucket, status: str) -> Response:
    document = element("VersioningConfiguration", Status=status)
    return bucket.raw.put(bucket.path(), document.encode(), query={"versioning": ""})


def two_versions(bucket: Bucket) -> tuple[str, str]:
    return tuple(
        bucket.put("a", body, headers=OLD_HEADERS).headers["x-amz-version-id"] for body in (OLD, LONG_OLD)
    )


def version_and_marker(bucket: Bucket) -> tuple[str, str]:
    first = bucket.put("a", OLD, headers=OLD_HEADERS).headers["x-amz-version-id"]
    return first, expect.ok(bucket.delete("a"), 204).headers["x-amz-version-id"]


def delete_version(number: int) -> Callable[[Bucket, Any], Response]:
    """Of those that `prepare` made: 0 is the oldest, -1 the current one."""
    return lambda bucket, made: bucket.delete("a", query={"versionId": made[number]})


def create_upload(bucket: Bucket, _: None) -> Response:
    return bucket.raw.post(bucket.path("up"), query={"uploads": ""}, headers=NEW_HEADERS)


def begun(bucket: Bucket) -> str:
    return bucket.create_upload("d/up", headers=NEW_HEADERS)


def with_part(bucket: Bucket) -> str:
    upload_id = begun(bucket)
    expect.ok(bucket.put_part("d/up", upload_id, 1, OLD))
    return upload_id


def with_parts(bucket: Bucket) -> tuple[str, list[tuple[int, str]]]:
    upload_id = begun(bucket)
    etags = [
        expect.ok(bucket.put_part("d/up", upload_id, n, body)).etag
        for n, body in ((1, pattern(PART)), (2, NEW))
    ]
    return upload_id, [(1, etags[0]), (2, etags[1])]


def with_small_part(bucket: Bucket) -> tuple[str, list[tuple[int, str]]]:
    """Which is not put in place: completing it copies."""
    upload_id = begun(bucket)
    return upload_id, [(1, expect.ok(bucket.put_part("d/up", upload_id, 1, NEW)).etag)]


def with_parts_and_object(bucket: Bucket) -> tuple[str, list[tuple[int, str]]]:
    put_old("d/up")(bucket)
    return with_parts(bucket)


CASES = [
    Case("put", put("a"), sample=1),
    Case("put-empty", put("a", b"")),
    Case("put-long", put("a", LONG_NEW)),
    Case("put-deep", put("d/e/f"), sample=1),
    Case("put-directory", put("d/", b"")),
    Case("put-directory-with-bytes", put("d/e/")),
    Case("overwrite", put("a"), put_old("a"), sample=1),
    Case("overwrite-long", put("a", LONG_NEW), put_old("a", body=LONG_OLD)),
    Case("overwrite-directory", put("d/", b""), put_old("d/", "d/e")),
    Case("file-becomes-directory", put("a/b"), put_old("a"), sample=1),
    Case("overwrite-file-in-directory", put("a"), put_old("a", "a/b")),
    Case("put-big-record", put("a", headers=NEW_HEADERS | BIG)),
    Case("overwrite-by-big-record", put("a", headers=NEW_HEADERS | BIG), put_big, sample=2),
    Case("overwrite-of-big-record", put("a"), put_big),
    Case("put-directory-big-record", put("d/", b"", NEW_HEADERS | BIG), put_old("d/")),
    Case("delete", delete("a"), put_old("a", "b")),
    Case("delete-last-of-directory", delete("d/e/f"), put_old("d/e/f", "b"), sample=2),
    Case("delete-directory", delete("d/"), put_old("d/")),
    Case("delete-big-record", delete("a"), put_big),
    Case("delete-many", delete_both, put_old("a", "d/b", "c"), by_key=True, sample=3),
    Case("copy", copy("a", "d/b"), put_old("a", body=LONG_OLD)),
    Case("copy-over", copy("a", "b"), put_two),
    Case("create-upload", create_upload, adds=True),
    Case("upload-part", lambda b, upload: b.put_part("d/up", upload, 1, NEW), begun, sample=2),
    Case("upload-part-again", lambda b, upload: b.put_part("d/up", upload, 1, NEW), with_part),
    Case("complete", lambda b, made: b.complete("d/up", *made), with_parts, in_steps=True, sample=5),
    Case("complete-once", lambda b, made: b.complete("d/up", *made), with_parts, in_steps=True, once="d/up"),
    Case("complete-copied", lambda b, made: b.complete("d/up", *made), with_small_part, in_steps=True),
    Case(
        "complete-copied-once",
        lambda b, made: b.complete("d/up", *made),
        with_small_part,
        in_steps=True,
        once="d/up",
        sample=1,
    ),
    Case("complete-over", lambda b, made: b.complete("d/up", *made), with_parts_and_object, in_steps=True),
    Case("abort", lambda b, upload: b.abort("d/up", upload), with_part, again=(204, 404)),
    Case("create-bucket", lambda b, _: b.raw.put(b.path()), no_bucket=True, again=(200, 409), sample=1),
    Case("delete-empty-bucket", lambda b, _: b.raw.delete(b.path()), again=(204, 404)),
    Case(
        "delete-bucket",
        lambda b, _: b.raw.delete(b.path()),
        with_part,
        in_steps=True,
        again=(204, 404),
        sample=40,
    ),
    of_versions("versioned-put", put("d/a"), kept(), adds=True),
    of_versions("versioned-overwrite", put("a"), kept(two_versions), adds=True, sample=3),
    of_versions("versioned-overwrite-of-null", put("a"), kept(before=("a",)), adds=True),
    of_versions("versioned-put-over-marker", put("a"), kept(version_and_marker), adds=True),
    of_versions("versioned-overwrite-directory", put("d/", b""), kept(put_old("d/", "d/e")), adds=True),
    of_versions("versioned-copy-over", copy("a", "b"), kept(put_two), adds=True),
    of_versions(
        "versioned-complete-over",
        lambda b, made: b.complete("d/up", *made),
        kept(with_parts_and_object),
        in_steps=True,
        sample=5,
    ),
    of_versions("versioned-delete", delete("a"), kept(two_versions), adds=True, halfway=True, sample=3),
    of_versions("versioned-delete-of-null", delete("a"), kept(before=("a", "b")), adds=True, halfway=True),
    of_versions("versioned-delete-of-none", delete("a"), kept(), adds=True),
    of_versions("delete-old-version", delete_version(0), kept(two_versions)),
    of_versions("delete-current-version", delete_version(-1), kept(two_versions), sample=3),
    of_versions("delete-version-below-marker", delete_version(0), kept(version_and_marker)),
    of_versions("suspended-overwrite", put("a"), kept(two_versions, "Suspended"), halfway=True),
]


@dataclass(frozen=True)
class ToolCase:
    name: str
    command: Callable[[Bucket], list[str]]
    prepare: Callable[[Bucket], None]
    sample: int
    # It adds to what is known of files, and leaves them as they are.
    keeps_files: bool = True
    # What it does is one decision for each object.
    by_key: bool = True
    in_steps: bool = False
    halfway: bool = False


# Too much for an attribute on ext4, and for two records' worth of attributes to be there at once.
BIG_NOTE = {"note": "n" * 1500}


def foreign_files(bucket: Bucket) -> None:
    """Foreign ones of all kinds, and objects."""
    put_old("known", "d/", "both/x", "edited")(bucket)
    bucket.put("big", OLD, headers=OLD_HEADERS | BIG)
    bucket.put("both", OLD)
    for name in ("made.html", "deep/er/made", "both/.slipway,self", "edited", "big"):
        bucket.file(name).parent.mkdir(parents=True, exist_ok=True)
        bucket.file(name).write_bytes(NEW)


def of_versitygw(bucket: Bucket) -> None:
    put_old("known")(bucket)
    versitygw_file(
        bucket.tree,
        "dir/plain",
        NEW,
        {"metadata": b'{"colour":"blue"}', "cache-control": b"no-store"},
    )
    parts = [b"x" * 70_000, b"yz"]
    whole = md5(b"".join(hashlib.md5(part).digest() for part in parts)) + "-2"
    ends = gzip.compress(json.dumps({"uploadId": "u", "parts": [70_000, 70_002]}).encode())
    versitygw_file(
        bucket.tree, "multi", b"".join(parts), {"etag": f'"{whole}"'.encode(), "mp-metadata": ends}
    )
    versitygw_file(
        bucket.tree, "big", OLD, {"metadata": json.dumps(BIG_NOTE).encode(), "expires": b"e" * 900}
    )
    versitygw_file(bucket.tree, "tagged", OLD, {"X-Amz-Tagging": b'{"a":"b"}'})
    bucket.file("made").write_bytes(OLD)
    bucket.file("folder").mkdir()
    os.setxattr(bucket.file("folder"), "user.etag", f'"{md5(b"")}"'.encode())
    os.setxattr(bucket.file("folder"), "user.metadata", b'{"colour":"red"}')


def of_minio(bucket: Bucket) -> None:
    tree, name = bucket.server.tree, bucket.name
    minio_tree(tree)
    put_old("known")(bucket)
    minio_file(tree, name, "dir/plain", NEW, {"content-type": "text/x-peer", "X-Amz-Meta-Colour": "blue"})
    parts = [b"x" * 70_000, b"yz"]
    whole = md5(b"".join(hashlib.md5(part).digest() for part in parts)) + "-2"
    minio_file(tree, name, "multi", b"".join(parts), {"etag": whole}, (70_000, 2))
    minio_file(tree, name, "big", OLD, {"x-amz-meta-note": "n" * 3000, "cache-control": "c" * 1500})
    minio_file(tree, name, "made", OLD, None)


def left_behind(bucket: Bucket) -> None:
    """What crashes leave."""
    put_old("a", "d/e")(bucket)
    for key in ("big", "gone"):
        bucket.put(key, OLD, headers=OLD_HEADERS | BIG)
    bucket.file("gone").unlink()
    if SIDECARS:
        (bucket.tree / RECORDS / "gone").unlink()
    own = bucket.tree / ".slipway"
    begun, moved = (bucket.create_upload(key) for key in ("begun", "aside"))
    (own / "uploads" / begun / "upload").unlink()
    beside = aside(bucket.server.tree, f".slipway,deleting,{bucket.name},{identity(bucket.tree)},1")
    (own / "uploads" / moved).rename(beside / "uploads" / moved)
    (own / "staging").mkdir(exist_ok=True)
    # All else there is a person's.
    file, tree = (own / "staging" / f"{number:032x}" for number in (1, 2))
    file.write_bytes(OLD)
    tree.mkdir()
    (tree / "left").write_bytes(OLD)


def damaged(bucket: Bucket) -> None:
    """One of each kind that can be repaired, and what is whole beside it."""
    put_old("p/q/r")(bucket)
    left_behind(bucket)
    own = bucket.tree / ".slipway"
    bucket.put_part("whole", bucket.create_upload("whole"), 1, OLD)
    bucket.upload("done", [NEW])
    part = bucket.create_upload("part")
    for number in (1, 2):
        expect.ok(bucket.put_part("part", part, number, OLD))
    with open(own / "uploads" / part / "00001", "r+b") as file:
        file.write(b"damage")
    (own / "uploads" / bucket.create_upload("unreadable") / "upload").write_bytes(b"\x01\xff")
    (own / "overflow").mkdir(exist_ok=True)
    (own / "completed" / "abc").write_bytes(b"\x01\xff")
    (own / "locks" / "zz").touch()
    (own / "overflow" / f"{7:032x}").write_bytes(b"\x01")
    bucket.file("p/q/r").unlink()
    damaged_records(bucket)


def damaged_records(bucket: Bucket) -> None:
    put_old("unreadable", "torn.html", "moved")(bucket)
    if SIDECARS:
        # What has not the form of one is left to the operator.
        record = bucket.tree / RECORDS / "unreadable"
        record.write_bytes(record.read_bytes()[:-4] + b"\xff" * 4)
        bucket.file("moved").unlink()
        return
    os.setxattr(bucket.file("unreadable"), RECORD, b"\x01\x02\xff")
    # Tag 23 names a companion.
    record = os.getxattr(bucket.file("torn.html"), RECORD)
    os.setxattr(bucket.file("torn.html"), RECORD, record + bytes([23, 16]) + bytes(16))


# One job: else the n-th call is another each time.
ONE = ["--jobs", "1"]
TOOL_CASES = [
    ToolCase("rehash", lambda b: ["rehash", *ONE, str(b.tree)], foreign_files, sample=5),
    ToolCase(
        "import-versitygw",
        lambda b: ["import", "versitygw", *ONE, str(b.server.tree)],
        of_versitygw,
        sample=5,
    ),
    ToolCase(
        "import-minio-fs", lambda b: ["import", "minio-fs", *ONE, str(b.server.tree)], of_minio, sample=5
    ),
    ToolCase(
        "sweep",
        lambda b: ["sweep", "--age", "0", str(b.server.tree)],
        left_behind,
        sample=10,
        keeps_files=False,
    ),
    ToolCase(
        "fsck-repair",
        lambda b: ["fsck", "--repair", "--min-age", "0", *ONE, str(b.server.tree)],
        damaged,
        sample=10,
        keeps_files=False,
    ),
]
