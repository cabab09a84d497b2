"""When the machine itself fails: an error that tells nothing, and a server that recovers."""

import errno
import fcntl
import hashlib
import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support import expect
from support.bucket import Bucket, complete_document
from support.data import PART, pattern
from support.faultlayer import FaultLayer, is_supported
from support.server import SIDECARS, assert_nothing_staged, remove_tree


@pytest.fixture
def lone(make_server) -> Bucket:
    return Bucket(make_server(), "bucket").create()


@contextmanager
def no_descriptors(pid: int) -> Iterator[None]:
    """A process that can open nothing more."""
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def test_no_descriptors_left(lone):
    lone.put("key", b"data")
    upload_id = lone.create_upload("parted")
    etag = lone.put_part("parted", upload_id, 1, b"part").etag
    with lone.raw.connect() as connection:
        expect.ok(lone.raw.head(lone.path("key"), connection=connection))
        with no_descriptors(lone.server.pid):
            for method, key, query, body in [
                ("GET", "key", {}, b""),
                ("PUT", "key", {}, b"new"),
                ("PUT", "deep/key", {}, b"new"),
                ("DELETE", "key", {}, b""),
                ("GET", None, {"list-type": "2"}, b""),
                ("POST", "key", {"uploads": ""}, b""),
                ("PUT", "parted", {"uploadId": upload_id, "partNumber": "2"}, b"two"),
            ]:
                response = lone.raw.request(
                    method, lone.path(key), query=query, body=body, connection=connection
                )
                expect.error(response, "SlowDown")
                assert b"descriptor" not in response.body and b"os error" not in response.body
            expect.head_error(lone.raw.head(lone.path("key"), connection=connection), 503)
        assert expect.ok(lone.raw.get(lone.path("key"), connection=connection)).body == b"data"
    assert "file descriptors" in lone.server.log, "the log tells what clients are not told"
    expect.ok(lone.complete("parted", upload_id, [(1, etag)]))
    assert lone.keys() == ["key", "parted"]
    assert lone.files() == ["key", "parted"]
    assert_nothing_staged(lone.tree)


def test_something_stands_in_the_way(lone):
    """Where the server keeps its locks, somebody has made directories of their names."""
    lone.put("key", b"old")
    remove_tree(lone.tree / ".slipway")
    for number in range(64):
        (lone.tree / ".slipway" / "locks" / f"{number:02x}").mkdir(parents=True)
    response = lone.raw.put(lone.path("key"), b"new")
    expect.error(response, "InternalError")
    assert b"locks" not in response.body and b"os error" not in response.body
    assert "Is a directory" in lone.server.log, "the log tells what clients are not told"
    assert lone.read("key") == b"old"
    assert_nothing_staged(lone.tree)


def test_a_bucket_that_is_removed_by_hand(lone):
    """Also while an upload is in progress; and one that is made again is there at once."""
    lone.put("key", b"data")
    upload_id = lone.create_upload("parted")
    remove_tree(lone.tree)
    for response in (
        lone.get("key"),
        lone.raw.put(lone.path("key"), b"x"),
        lone.raw.get(lone.path()),
        lone.put_part("parted", upload_id, 1, b"x"),
        lone.complete("parted", upload_id, [(1, "x")]),
    ):
        expect.error(response, "NoSuchBucket", BucketName="bucket")
    lone.tree.mkdir()
    lone.put("key", b"again")
    assert lone.keys() == ["key"]


def test_a_bucket_that_is_replaced_while_something_is_written(lone):
    """What is acknowledged is in the bucket, and nothing is in the one that had its name before."""
    for size in (1000, PART):
        request = lone.raw.prepare(
            "PUT", lone.path(f"key{size}"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(size)}
        )
        with lone.raw.connect() as connection:
            connection.send(request.head + pattern(size)[:-1])
            # Until the server has seen the head.
            time.sleep(0.2)
            lone.tree.rename(lone.server.tree / f"renamed{size}")
            lone.tree.mkdir()
            connection.send(b"!")
            response = connection.response()
        assert not (lone.server.tree / f"renamed{size}" / f"key{size}").exists()
        assert lone.file(f"key{size}").exists() == (response.status == 200), response
        assert lone.keys() == lone.files()


def test_a_bucket_in_which_a_large_put_is_under_way(lone):
    """Where the file system has no unnamed files, what is being written has a name and is locked."""
    upload_id = lone.create_upload("parted")
    staging = lone.tree / ".slipway" / "staging"
    staging.mkdir(exist_ok=True)
    with open(staging / f"{7:032x}", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        expect.error(lone.raw.delete(lone.path()), "OperationAborted")
        assert (staging / f"{7:032x}").exists()
    expect.ok(lone.put_part("parted", upload_id, 1, b"part"))
    expect.ok(lone.raw.delete(lone.path()), 204)


@pytest.mark.skipif(SIDECARS, reason="parts have no assembly where records are in files")
def test_a_part_whose_upload_is_being_completed_or_was(lone):
    """As if a completion without it were copying at that moment; and when it has come to its end."""
    upload_id = lone.create_upload("parted")
    etag = expect.ok(lone.put_part("parted", upload_id, 1, pattern(PART))).etag
    query = {"partNumber": "2", "uploadId": upload_id}
    headers = {"content-length": str(PART)}
    request = lone.raw.prepare(
        "PUT", lone.path("parted"), query=query, payload="UNSIGNED-PAYLOAD", headers=headers
    )

    def interrupted(meanwhile):
        with lone.raw.connect() as connection:
            connection.send(request.head + pattern(PART)[: PART // 2])
            # Until the server has claimed the part's place.
            time.sleep(0.5)
            with meanwhile():
                connection.send(pattern(PART)[PART // 2 :])
                return connection.response()

    @contextmanager
    def held():
        (layout,) = (lone.tree / ".slipway" / "uploads").glob("*/layout1")
        with open(layout) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def completed():
        expect.ok(lone.complete("parted", upload_id, [(1, etag)]))
        yield

    expect.error(interrupted(held), "OperationAborted")
    assert "ERROR" not in lone.server.log
    expect.error(interrupted(completed), "NoSuchUpload", UploadId=upload_id)
    assert lone.read("parted") == pattern(PART)


def test_a_limit_of_the_size_of_files(lone):
    """A signal tells of it, which by default ends the process."""
    resource.prlimit(lone.server.pid, resource.RLIMIT_FSIZE, (PART, PART))
    upload_id = lone.create_upload("parted")
    lone.put_part("parted", upload_id, 1, pattern(PART))
    for refused in (
        lone.raw.put(lone.path("key"), pattern(PART) + b"!"),
        lone.raw.put(lone.path("key"), pattern(3 * PART)),
        lone.put_part("parted", upload_id, 2, pattern(PART)),
    ):
        expect.error(refused, "EntityTooLarge")
    lone.put("key", pattern(PART))
    assert lone.keys() == lone.files() == ["key"]
    assert_nothing_staged(lone.tree)


def test_killed_and_started_again(make_server):
    """kill -9 amid a write: what was acknowledged is there, what was not is not."""
    bucket = Bucket(make_server(), "bucket").create()
    bucket.put("kept", pattern(PART))
    upload_id = bucket.create_upload("parted")
    etag = bucket.put_part("parted", upload_id, 1, pattern(PART)).etag
    connection = bucket.raw.connect()
    request = bucket.raw.prepare(
        "PUT", bucket.path("deep/lost"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(PART)}
    )
    connection.send(request.head + pattern(PART)[:-1])
    bucket.server.kill()
    again = Bucket(make_server(), "bucket")
    assert again.keys() == ["kept"]
    assert again.read("kept") == pattern(PART)
    assert again.head("kept").etag == bucket_etag(pattern(PART))
    expect.ok(again.complete("parted", upload_id, [(1, etag)]))
    assert again.read("parted") == pattern(PART)
    assert not again.file("deep/lost").exists()


@pytest.mark.parametrize("equal", [True, False], ids=["in place", "copied"])
def test_killed_while_completing(make_server, equal):
    """kill -9 at any moment of a completion: whoever asks afterwards gets one of the two legal answers, and the same again."""
    parts = [pattern(PART + (0 if equal else n), n) for n in range(3)]
    whole = b"".join(parts)
    bucket = Bucket(make_server(), "bucket").create()
    for attempt in range(12):
        key = f"parted{attempt}"
        upload_id = bucket.create_upload(key)
        etags = [
            (n, expect.ok(bucket.put_part(key, upload_id, n, part)).etag) for n, part in enumerate(parts, 1)
        ]
        request = bucket.raw.prepare(
            "POST", bucket.path(key), body=complete_document(etags), query={"uploadId": upload_id}
        )
        with bucket.raw.connect() as connection:
            connection.send(request.bytes)
            time.sleep(attempt * 0.001)
            bucket.server.kill()
        bucket = Bucket(make_server(), "bucket")
        if attempt % 3 == 2:
            aborted = bucket.abort(key, upload_id)
            if aborted.status == 204:
                expect.error(bucket.get(key), "NoSuchKey")
                expect.error(bucket.complete(key, upload_id, etags), "NoSuchUpload")
                continue
            expect.error(aborted, "NoSuchUpload")
        first = expect.ok(bucket.complete(key, upload_id, etags)).xml["ETag"]
        assert bucket.read(key) == whole
        assert expect.ok(bucket.complete(key, upload_id, etags)).xml["ETag"] == first
        expect.error(bucket.abort(key, upload_id), "NoSuchUpload")
        assert bucket.head(key).etag == first
    assert not bucket.raw.get(bucket.path(), query={"uploads": ""}).xml.all("Upload")


def bucket_etag(data: bytes) -> str:

    return f'"{hashlib.md5(data).hexdigest()}"'


@pytest.mark.skipif(not is_supported(), reason="the fault layer knows this processor's system calls only")
def test_who_always_comes_too_late_is_told_of_the_condition(make_server):
    """As if another gateway took the lock's file away each time: NFS says so of a lock. At last it is given up, and
    the log says what was in the way."""
    layer = FaultLayer()
    bucket = Bucket(make_server(faults=layer), "bucket").create()
    etag = bucket.put("key", b"old").etag
    upload_id = bucket.create_upload("key")
    parts = [(1, expect.ok(bucket.put_part("key", upload_id, 1, b"part")).etag)]
    copy = {"x-amz-copy-source": "bucket/key", "x-amz-metadata-directive": "REPLACE"}
    path, match, absent = bucket.path("key"), {"if-match": etag}, {"if-none-match": "*"}

    def refused(request, condition, key="key"):
        layer.arm(errno.ESTALE, 1, only={"flock"}, lasting=True)
        response = request()
        assert layer.disarm() and len(layer.calls) > 2
        request_id = response.headers["x-amz-request-id"]
        lines = [line for line in bucket.server.log.splitlines() if request_id in line]
        # Work that may copy a whole object is tried less often.
        what = "could not lock in (250|3) attempts, each time for the same reason"
        cause = what + r" \(at crates/backend-posix/src/\S+\.rs:\d+\): Stale file handle"
        assert len(lines) == 1 and "ERROR" in lines[0] and re.search(cause, lines[0]), lines
        if condition is None:
            return expect.error(response, "SlowDown")
        return expect.error(response, "ConditionalRequestConflict", Condition=condition, Key=key)

    refused(lambda: bucket.raw.put(path, b"new"), None)
    refused(lambda: bucket.raw.put(path, b"new", headers=match), "If-Match")
    # A file that is new takes no lock.
    marker = bucket.path("new/")
    refused(lambda: bucket.raw.put(marker, b"new", headers=absent), "If-None-Match", key="new/")
    refused(lambda: bucket.raw.put(path, headers=copy | match), "If-Match")
    refused(lambda: bucket.raw.delete(path, headers=match), "If-Match")
    refused(lambda: bucket.complete("key", upload_id, parts), None)
    refused(lambda: bucket.complete("key", upload_id, parts, headers=match), "If-Match")
    assert bucket.read("key") == b"old"
    assert_nothing_staged(bucket.tree)
    expect.ok(bucket.complete("key", upload_id, parts))


@pytest.mark.skipif(not is_supported(), reason="the fault layer knows this processor's system calls only")
def test_a_directory_that_was_just_made_for_a_bucket_is_another_programs(make_server):
    """Between mkdir and open, as another machine may in its place: CreateBucket makes one more, and leaves that alone."""
    layer = FaultLayer()
    server = make_server(faults=layer)
    # A bucket for which documents are there already is made under another name first.
    place = server.tree / ".slipway" / "buckets"
    place.mkdir(mode=0o700)
    (place / "bucket").write_bytes(b"")

    def written_to():
        [made] = server.tree.glob(".slipway,deleting,*")
        (made / "theirs").write_bytes(b"data")

    layer.arm(written_to, 1, reads=True, only={"openat2"}, about=".slipway,deleting,")
    bucket = Bucket(server, "bucket").create()
    assert layer.disarm()
    assert bucket.keys() == []
    [theirs] = server.tree.glob(".slipway,deleting,*")
    assert [path.read_bytes() for path in theirs.iterdir()] == [b"data"]
