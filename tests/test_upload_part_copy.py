"""UploadPartCopy."""

import os
import re
import time

import pytest

from support import expect
from support.checksums import checksum, multipart_etag
from support.data import MIB, PART, pattern

SOURCE = pattern(2 * PART)
MOST = 5 << 30


@pytest.fixture
def upload_id(bucket) -> str:
    bucket.put("source", SOURCE)
    return bucket.create_upload("key")


def copy(bucket, upload_id: str, number: int, source: str | None = None, **headers: str):
    source = f"{bucket.name}/source" if source is None else source
    return bucket.raw.put(
        bucket.path("key"),
        query={"partNumber": str(number), "uploadId": upload_id},
        headers={
            "x-amz-copy-source": source,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
    )


def test_whole_objects(bucket, upload_id):
    response = expect.ok(copy(bucket, upload_id, 1))
    result = response.xml
    assert result.name == "CopyPartResult"
    assert re.match(r"\d{4}-\d\d-\d\dT", result["LastModified"])
    tail = bucket.put_part("key", upload_id, 2, b"end").etag
    expect.ok(bucket.complete("key", upload_id, [(1, result["ETag"]), (2, tail)]))
    got = bucket.get("key")
    assert got.body == SOURCE + b"end"
    assert got.etag == multipart_etag([SOURCE, b"end"])


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, PART - 1), (PART, 2 * PART - 1)],
        [(1, PART), (PART + 7, 2 * PART - 1)],
        [(5, PART + 4), (0, 0)],
        [(4096, PART + 4095), (100, 200)],
    ],
)
def test_ranges(bucket, upload_id, ranges):
    """Bytes, ETags and checksums are those of the range, not of the source."""
    parts, etags = [SOURCE[first : last + 1] for first, last in ranges], []
    for number, (first, last) in enumerate(ranges, 1):
        result = expect.ok(
            copy(bucket, upload_id, number, x_amz_copy_source_range=f"bytes={first}-{last}")
        ).xml
        etags.append(result["ETag"])
    expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1))))
    got = bucket.get("key", headers={"x-amz-checksum-mode": "ENABLED"})
    assert got.body == b"".join(parts)
    assert got.etag == multipart_etag(parts)
    assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"".join(parts))


def test_sources_beyond_what_one_request_copies(bucket):
    """A hole takes no space, so that it could be copied in no time, too."""
    bucket.put("six", b"")
    os.truncate(bucket.file("six"), MOST + 1)
    upload_id = bucket.create_upload("key")
    whole = bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": f"{bucket.name}/six"})
    part = copy(bucket, upload_id, 1, f"{bucket.name}/six")
    a_range = copy(bucket, upload_id, 1, f"{bucket.name}/six", x_amz_copy_source_range=f"bytes=0-{MOST}")
    for refused in [whole, part, a_range]:
        message = "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120"
        expect.error(refused, "InvalidRequest", message)
    beyond = copy(bucket, upload_id, 1, f"{bucket.name}/six", x_amz_copy_source_range=f"bytes=0-{MOST + 1}")
    expect.error(beyond, "InvalidArgument", re.compile("^Range specified is not valid"))
    expect.ok(
        copy(bucket, upload_id, 1, f"{bucket.name}/six", x_amz_copy_source_range=f"bytes={MOST}-{MOST}")
    )
    assert not bucket.file("copy").exists()


def test_holes_stay_holes(bucket):
    """Of an object that takes no space, a part takes little: bytes are copied by the MiB."""
    size = 130 * MIB
    with open(bucket.file("sparse"), "wb") as file:
        for at, text in [(0, b"first"), (70 * MIB + 5, b"inner"), (100 * MIB, b"later")]:
            file.seek(at)
            file.write(text)
        file.truncate(size)
    if bucket.file("sparse").stat().st_blocks * 512 > MIB:
        pytest.skip("files have no holes here")
    upload_id = bucket.create_upload("key")
    etags = [expect.ok(copy(bucket, upload_id, n, f"{bucket.name}/sparse")).xml["ETag"] for n in (2, 1)]
    etags.insert(2, bucket.put_part("key", upload_id, 3, b"end").etag)
    uploads = bucket.file(f".slipway/uploads/{upload_id}")
    assert sum(path.stat().st_blocks for path in uploads.iterdir()) * 512 < 8 * MIB
    expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1))))
    assert bucket.file("key").stat().st_size == 2 * size + 3
    assert bucket.file("key").stat().st_blocks * 512 < 8 * MIB
    with open(bucket.file("key"), "rb") as whole, open(bucket.file("sparse"), "rb") as source:
        for _ in range(2):
            source.seek(0)
            for _ in range(size // MIB):
                assert whole.read(MIB) == source.read(MIB)
        assert whole.read() == b"end"


def test_a_copy_for_an_aborted_upload_ends(bucket):
    """However long the rest would take."""
    bucket.put("large", b"")
    os.truncate(bucket.file("large"), MOST)
    upload_id = bucket.create_upload("key")
    with bucket.raw.with_(timeout=60).connect() as connection:
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            query={"partNumber": "1", "uploadId": upload_id},
            headers={"x-amz-copy-source": f"{bucket.name}/large"},
        )
        connection.send(request.bytes)
        time.sleep(0.5)
        expect.ok(bucket.abort("key", upload_id), 204)
        answer = connection.response()
    assert b"<Code>NoSuchUpload</Code>" in answer.body, answer


def test_checksum_of_the_upload(bucket):
    bucket.put("source", SOURCE)
    upload_id = bucket.create_upload("key", headers={"x-amz-checksum-algorithm": "SHA256"})
    result = expect.ok(copy(bucket, upload_id, 1, x_amz_copy_source_range="bytes=0-9")).xml
    assert result["ChecksumSHA256"] == checksum("SHA256", SOURCE[:10])


@pytest.mark.parametrize("value", ["bytes=0-", "bytes=-5", "0-5", "bytes=5-1", "bytes=a-b", "bytes=0-1,3-4"])
def test_malformed_ranges(bucket, upload_id, value):
    """Unlike in a GET, nothing is ignored here."""
    response = copy(bucket, upload_id, 1, x_amz_copy_source_range=value)
    expect.error(
        response,
        "InvalidArgument",
        re.compile("^The x-amz-copy-source-range value must be of the form bytes=first-last"),
        ArgumentName="x-amz-copy-source-range",
        ArgumentValue=value,
    )


def test_no_checksum_where_the_upload_chose_none(bucket, upload_id):
    for headers in ({}, {"x_amz_copy_source_range": "bytes=0-9"}):
        result = expect.ok(copy(bucket, upload_id, 1, **headers)).xml
        assert sorted(result.names()) == ["ETag", "LastModified"]


@pytest.mark.parametrize("value", [f"bytes={2 * PART}-{2 * PART + 5}", f"bytes={3 * PART}-{4 * PART}"])
def test_ranges_that_begin_beyond_the_end(bucket, upload_id, value):
    response = copy(bucket, upload_id, 1, x_amz_copy_source_range=value)
    expect.error(response, "InvalidRequest", "The specified copy range is invalid for the source object size")


@pytest.mark.parametrize("value", [f"bytes=0-{2 * PART}", f"bytes={2 * PART - 1}-{2 * PART}"])
def test_ranges_beyond_the_end(bucket, upload_id, value):
    response = copy(bucket, upload_id, 1, x_amz_copy_source_range=value)
    expect.error(
        response,
        "InvalidArgument",
        f"Range specified is not valid for source object of size: {2 * PART}",
        ArgumentName="x-amz-copy-source-range",
        ArgumentValue=value,
    )


def test_of_the_object_that_is_replaced(bucket, upload_id):
    """Appending: the object's own bytes, then more."""
    bucket.put("key", pattern(PART, 9))
    head = expect.ok(copy(bucket, upload_id, 1, f"{bucket.name}/key")).xml["ETag"]
    tail = bucket.put_part("key", upload_id, 2, b"more").etag
    expect.ok(bucket.complete("key", upload_id, [(1, head), (2, tail)]))
    assert bucket.read("key") == pattern(PART, 9) + b"more"


def test_of_a_file(bucket, upload_id):
    bucket.file("by-hand").write_bytes(b"by hand")
    etag = expect.ok(copy(bucket, upload_id, 1, f"{bucket.name}/by-hand")).xml["ETag"]
    expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
    assert bucket.read("key") == b"by hand"


class TestErrors:
    def test_no_such_source(self, bucket, upload_id):
        expect.error(copy(bucket, upload_id, 1, f"{bucket.name}/none"), "NoSuchKey", Key="none")

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_source_bucket(self, bucket, upload_id):
        response = copy(bucket, upload_id, 1, "no-such-bucket/none")
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    def test_no_such_upload(self, bucket, upload_id):
        expect.error(copy(bucket, "nonsense", 1), "NoSuchUpload")

    def test_number_out_of_range(self, bucket, upload_id):
        response = copy(bucket, upload_id, 10001)
        expect.error(
            response,
            "InvalidArgument",
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue="10001",
        )

    def test_bad_source(self, bucket, upload_id):
        response = copy(bucket, upload_id, 1, "nonsense")
        expect.error(response, "InvalidArgument", re.compile("copy source"), ArgumentName="x-amz-copy-source")
