"""The requests that meet faults, each with the state of the bucket before it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support import expect
from support.bucket import Bucket
from support.data import PART, pattern
from support.wire import Response

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
    # A crash may leave the object new and the upload not yet gone, or its uploads away and the bucket not
    # yet: the sweep ends that.
    in_steps: bool = False
    # A key that the request makes once only: deleted after the fault, it is not made by repeating that.
    once: str | None = None
    # What the request answers if it had been done already.
    again: tuple[int, ...] = (200, 204)


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
    Case("create-upload", create_upload),
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
]
