"""minio-py, which signs its bodies chunk by chunk over plain HTTP."""

import io
from datetime import timedelta

import pytest
import urllib3
from minio import Minio
from minio.commonconfig import ComposeSource, CopySource
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

from support import codes
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY


@pytest.fixture
def minio(server) -> Minio:
    pool = urllib3.PoolManager(retries=False, timeout=60)
    host = "{}:{}".format(*server.address)
    return Minio(
        host, access_key=ACCESS_KEY, secret_key=SECRET_KEY, secure=False, region="us-east-1", http_client=pool
    )


def test_buckets(minio, server):
    minio.make_bucket("minio-made-this")
    assert minio.bucket_exists("minio-made-this")
    assert "minio-made-this" in [bucket.name for bucket in minio.list_buckets()]
    minio.remove_bucket("minio-made-this")
    assert not minio.bucket_exists("minio-made-this")
    assert not (server.tree / "minio-made-this").exists()


@pytest.mark.parametrize("size", [0, 1, 100_000, 5 * MIB, 17 * MIB])
def test_put_and_get(minio, bucket, size):
    result = minio.put_object(
        bucket.name, "a b/ünï", io.BytesIO(pattern(size)), size, metadata={"Colour": "blue"}
    )
    assert bucket.file("a b/ünï").read_bytes() == pattern(size)
    response = minio.get_object(bucket.name, "a b/ünï")
    try:
        assert response.read() == pattern(size)
    finally:
        response.close()
    status = minio.stat_object(bucket.name, "a b/ünï")
    assert (status.size, status.etag, status.metadata["x-amz-meta-colour"]) == (size, result.etag, "blue")


def test_a_stream_of_unknown_length(minio, bucket):
    minio.put_object(bucket.name, "key", io.BytesIO(pattern(12 * MIB)), -1, part_size=5 * MIB)
    assert bucket.read("key") == pattern(12 * MIB)


def test_files(minio, bucket, tmp_path):
    (tmp_path / "source").write_bytes(pattern(MIB))
    minio.fput_object(bucket.name, "key", str(tmp_path / "source"))
    minio.fget_object(bucket.name, "key", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == pattern(MIB)


def test_list(minio, bucket):
    for key in ("a", "d/b", "d/c", "plus+", "ünï"):
        bucket.put(key, b"1234")
    assert [o.object_name for o in minio.list_objects(bucket.name)] == ["a", "plus+", "ünï", "d/"]
    assert [o.object_name for o in minio.list_objects(bucket.name, recursive=True)] == [
        "a",
        "d/b",
        "d/c",
        "plus+",
        "ünï",
    ]


def test_copy_and_compose(minio, bucket):
    bucket.put("source", pattern(6 * MIB))
    minio.copy_object(bucket.name, "copy", CopySource(bucket.name, "source"))
    assert bucket.read("copy") == pattern(6 * MIB)

    minio.compose_object(
        bucket.name, "both", [ComposeSource(bucket.name, "source"), ComposeSource(bucket.name, "copy")]
    )
    assert bucket.read("both") == pattern(6 * MIB) * 2


def test_remove(minio, bucket):
    for key in ("a", "b", "c"):
        bucket.put(key, b"x")
    minio.remove_object(bucket.name, "a")
    assert list(minio.remove_objects(bucket.name, [DeleteObject("b"), DeleteObject("c")])) == []
    assert bucket.is_untouched()


def test_presigned(minio, bucket):
    url = minio.presigned_put_object(bucket.name, "key", expires=timedelta(minutes=1))
    pool = urllib3.PoolManager(retries=False)
    assert pool.request("PUT", url, body=b"data").status == 200
    url = minio.presigned_get_object(bucket.name, "key", expires=timedelta(minutes=1))
    assert pool.request("GET", url).data == b"data"


def test_ranges(minio, bucket):
    bucket.put("key", pattern(1000))
    response = minio.get_object(bucket.name, "key", offset=10, length=20)
    assert response.read() == pattern(1000)[10:30]


def test_errors(minio, bucket):
    with pytest.raises(S3Error) as failure:
        minio.stat_object(bucket.name, "none")
    assert failure.value.code == "NoSuchKey"
    with pytest.raises(S3Error) as failure:
        minio.get_object("no-such-bucket", "none")
    codes.saw(failure.value.code)
    assert failure.value.code == "NoSuchBucket"
