"""Documents of buckets (`.slipway/buckets`): what cannot be read closes its bucket, until it is gone."""

import os
import re

import pytest

from support import expect
from support.bucket import Bucket
from support.tools import run
from support.wire import poll


@pytest.fixture
def bucket(make_server) -> Bucket:
    bucket = Bucket(make_server(), "bucket").create()
    bucket.put("key", b"data")
    return bucket


def refusal(bucket: Bucket) -> str:
    """What a stranger is told."""
    return bucket.get("key", anonymous=True).code


def test_what_cannot_be_read_closes_its_bucket_to_all_but_root(bucket):
    other = Bucket(bucket.server, "other").create()
    assert [refusal(bucket), refusal(other)] == ["AccessDenied"] * 2
    place = bucket.server.tree / ".slipway" / "buckets"
    place.mkdir(mode=0o700)
    (place / "bucket").write_bytes(b"\x01 torn")
    # On a local file system with the next request.
    poll(lambda: refusal(bucket) == "InternalError")
    for _ in range(5):
        expect.error(bucket.get("key", anonymous=True), "InternalError")
        response = bucket.raw.put(bucket.path("key"), b"new", anonymous=True)
        expect.error(response, "InternalError")
    assert refusal(other) == "AccessDenied"
    # Root goes on.
    assert bucket.read("key") == b"data"
    bucket.put("key", b"new")
    # Once a minute.
    lines = re.findall(r".*requests of all but root are refused.*", bucket.server.log)
    assert len(lines) == 1 and "ERROR" in lines[0] and "bucket=" in lines[0] and "damaged" in lines[0], lines
    found = run("fsck", bucket.server.tree, status=1)
    assert "documents-damaged" in found and "other" not in found, found
    (place / "bucket").unlink()
    poll(lambda: refusal(bucket) == "AccessDenied")


def test_a_directory_that_others_may_write_in_closes_all_buckets(bucket):
    place = bucket.server.tree / ".slipway" / "buckets"
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    if os.stat(place).st_mode & 0o777 != 0o777:
        pytest.skip("no modes here")
    poll(lambda: refusal(bucket) == "InternalError")
    assert bucket.read("key") == b"data"
    assert "stranger" in run("fsck", bucket.server.tree, status=1)
    place.chmod(0o700)
    poll(lambda: refusal(bucket) == "AccessDenied")


def test_a_bucket_is_deleted_with_its_documents(bucket):
    place = bucket.server.tree / ".slipway" / "buckets"
    place.mkdir(mode=0o700)
    file = place / "bucket"
    file.write_bytes(b"")
    expect.ok(bucket.delete("key"), 204)
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    assert not file.exists()
    # What a crash left of one before.
    file.write_bytes(b"")
    bucket.create()
    assert not file.exists()
    assert refusal(bucket) == "AccessDenied"


def test_who_only_reads_makes_nothing(make_server, bucket):
    reader = make_server("--read-only", tree=bucket.server.tree)
    theirs = Bucket(reader, "bucket")
    assert theirs.read("key") == b"data"
    assert not (bucket.server.tree / ".slipway" / "buckets").exists()
