"""Range and partNumber."""

import re

import pytest

from support import expect
from support.checksums import checksum
from support.data import MIB, PART, pattern
from support.xml import element

SIZE = 1000
DATA = pattern(SIZE)


@pytest.fixture
def thing(bucket):
    bucket.put("thing", DATA, headers={"x-amz-meta-a": "1"})
    return bucket


SATISFIABLE = [
    ("bytes=0-0", 0, 0),
    ("bytes=0-99", 0, 99),
    ("bytes=100-199", 100, 199),
    ("bytes=999-999", 999, 999),
    ("bytes=0-999", 0, 999),
    ("bytes=0-", 0, 999),
    ("bytes=500-", 500, 999),
    ("bytes=990-5000", 990, 999),
    ("bytes=-1", 999, 999),
    ("bytes=-300", 700, 999),
    ("bytes=-5000", 0, 999),
    ("bytes=0-18446744073709551615", 0, 999),
    ("bytes=1-99999999999999999999999", 1, 999),
    ("BYTES=1-2", 1, 2),
]


@pytest.mark.parametrize("value, first, last", SATISFIABLE)
def test_satisfiable(thing, value, first, last):
    got = expect.ok(thing.get("thing", headers={"range": value}), 206)
    assert got.body == DATA[first : last + 1]
    head = expect.ok(thing.head("thing", headers={"range": value}), 206)
    for response in (got, head):
        assert response.headers["content-range"] == f"bytes {first}-{last}/{SIZE}"
        assert response.headers["content-length"] == str(last - first + 1)
        assert response.headers["accept-ranges"] == "bytes"
        assert response.headers["x-amz-meta-a"] == "1"


@pytest.mark.parametrize(
    "value",
    ["bytes=1000-", "bytes=1000-1000", "bytes=5000-6000", "bytes=-0", "bytes=99999999999999999999999-"],
)
def test_unsatisfiable(thing, value):
    response = thing.get("thing", headers={"range": value})
    expect.error(response, "InvalidRange", RangeRequested=value, ActualObjectSize=str(SIZE))
    assert response.headers["content-range"] == f"bytes */{SIZE}"
    expect.head_error(thing.head("thing", headers={"range": value}), 416)


@pytest.mark.parametrize("value", ["bytes=-1", "bytes=-1000"])
def test_the_last_bytes_of_an_empty_object(bucket, value):
    """All that there are."""
    bucket.put("empty", b"")
    for response in (
        bucket.get("empty", headers={"range": value}),
        bucket.head("empty", headers={"range": value}),
    ):
        assert expect.ok(response, 200).body == b""
        assert response.headers["content-length"] == "0"
        assert "content-range" not in response.headers


@pytest.mark.parametrize("value", ["bytes=0-0", "bytes=0-", "bytes=-0"])
def test_of_an_empty_object(bucket, value):
    bucket.put("empty", b"")
    response = bucket.get("empty", headers={"range": value})
    expect.error(response, "InvalidRange", RangeRequested=value, ActualObjectSize="0")


IGNORED = [
    "bytes=2-1",
    "bytes=a-b",
    "bytes=",
    "bytes",
    "bytes=-",
    "bytes=0-1,5-6",
    "bytes=0-0,-1",
    "lines=1-2",
    "0-5",
    "bytes=0x1-0x2",
    "bytes=1--2",
    "bytes=+1-2",
    "bytes 0-5",
    "bytes= 0-5",
    "bytes=0 -5",
    "bytes=0- 5",
    "bytes= -1",
    "bytes =0-5",
    "",
]


@pytest.mark.parametrize("value", IGNORED)
def test_ignored(thing, value):
    """A range that is malformed, names several, or is of another unit: all of it, as if there were none."""
    got = expect.ok(thing.get("thing", headers={"range": value}), 200)
    assert got.body == DATA
    assert "content-range" not in got.headers


def test_two_range_headers(thing):
    got = thing.get("thing", headers=[("range", "bytes=0-1"), ("range", "bytes=2-3")])
    assert (got.status, got.body) == (200, DATA)


def test_across_read_buffers(bucket):
    data = pattern(3 * MIB)
    bucket.put("big", data)
    for first, last in [
        (0, 3 * MIB - 1),
        (262143, 262144),
        (262144, 1048577),
        (MIB - 1, 2 * MIB),
        (3 * MIB - 2, None),
    ]:
        got = expect.ok(
            bucket.get("big", headers={"range": f"bytes={first}-{'' if last is None else last}"}), 206
        )
        assert got.body == data[first : None if last is None else last + 1]


def test_no_checksum_with_part_of_the_bytes(thing):
    """No client could verify it."""
    got = thing.get("thing", headers={"range": "bytes=0-9", "x-amz-checksum-mode": "ENABLED"})
    assert got.status == 206
    assert not got.headers.starting("x-amz-checksum-crc")
    whole = thing.get("thing", headers={"range": "bytes=0-", "x-amz-checksum-mode": "ENABLED"})
    assert whole.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", DATA)


def test_if_match_comes_first(thing):
    response = thing.get("thing", headers={"range": "bytes=5000-", "if-match": '"other"'})
    expect.error(response, "PreconditionFailed", Condition="If-Match")


class TestPartNumber:
    PARTS = [pattern(PART, 1), pattern(PART, 2), b"the end"]

    @pytest.fixture
    def parted(self, bucket):
        bucket.upload("parted", self.PARTS, headers={"x-amz-meta-a": "1"})
        return bucket

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_each(self, parted, number):
        part = self.PARTS[number - 1]
        first = sum(map(len, self.PARTS[: number - 1]))
        query = {"partNumber": str(number)}
        got = expect.ok(parted.get("parted", query=query), 206)
        assert got.body == part
        head = expect.ok(parted.head("parted", query=query), 206)
        for response in (got, head):
            total = sum(map(len, self.PARTS))
            assert response.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{total}"
            assert response.headers["content-length"] == str(len(part))
            assert response.headers["x-amz-mp-parts-count"] == "3"
            assert response.headers["x-amz-meta-a"] == "1"

    def test_beyond_the_last(self, parted):
        expect.error(
            parted.get("parted", query={"partNumber": "4"}),
            "InvalidPartNumber",
            PartNumberRequested="4",
            ActualPartCount="3",
        )
        expect.head_error(parted.head("parted", query={"partNumber": "4"}), 416)

    @pytest.mark.parametrize("value", ["0", "10001", "-1", "x", "", "1.5", "99999999999999999999"])
    def test_no_number(self, parted, value):
        response = parted.get("parted", query={"partNumber": value})
        expect.error(
            response,
            "InvalidArgument",
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue=value,
        )

    def test_with_a_range(self, parted):
        response = parted.get("parted", query={"partNumber": "1"}, headers={"range": "bytes=0-1"})
        expect.error(
            response, "InvalidRequest", "Cannot specify both Range header and partNumber query parameter"
        )

    def test_of_an_object_in_one_piece(self, thing):
        """It counts as part 1 of itself."""
        got = expect.ok(thing.get("thing", query={"partNumber": "1"}), 206)
        assert got.body == DATA
        assert got.headers["content-range"] == f"bytes 0-{SIZE - 1}/{SIZE}"
        assert "x-amz-mp-parts-count" not in got.headers
        response = thing.get("thing", query={"partNumber": "2"})
        expect.error(response, "InvalidPartNumber", PartNumberRequested="2", ActualPartCount="1")
        assert response.xml.names()[2:4] == ["PartNumberRequested", "ActualPartCount"]

    def test_of_an_empty_object(self, bucket):
        bucket.put("empty", b"")
        got = bucket.get("empty", query={"partNumber": "1"})
        assert got.status in (200, 206) and got.body == b""

    @pytest.mark.parametrize("kind", ["FULL_OBJECT", "COMPOSITE"])
    def test_checksums(self, bucket, kind):
        """The part's where the object's is made of those of its parts; else none, unless it is all of it."""
        headers = {"x-amz-checksum-algorithm": "CRC32C", "x-amz-checksum-type": kind}
        for key, parts in (("many", self.PARTS), ("one", [b"all of it"])):
            upload_id = bucket.create_upload(key, headers=headers)
            listed = []
            for number, part in enumerate(parts, 1):
                value = checksum("CRC32C", part)
                sent = {"x-amz-checksum-crc32c": value}
                etag = expect.ok(bucket.put_part(key, upload_id, number, part, headers=sent)).etag
                listed.append(element("Part", PartNumber=number, ETag=etag, ChecksumCRC32C=value))
            expect.ok(bucket.complete(key, upload_id, element("CompleteMultipartUpload", *listed).encode()))
            for number, part in enumerate(parts, 1):
                for method in ("GET", "HEAD"):
                    response = bucket.raw.request(
                        method,
                        bucket.path(key),
                        query={"partNumber": str(number)},
                        headers={"x-amz-checksum-mode": "ENABLED"},
                    )
                    shown = dict(response.headers.starting("x-amz-checksum-"))
                    if kind == "FULL_OBJECT" and key == "many":
                        assert shown == {}
                    else:
                        assert shown == {
                            "x-amz-checksum-crc32c": checksum("CRC32C", part),
                            "x-amz-checksum-type": kind,
                        }


def test_range_of_a_file(bucket):
    bucket.file("by-hand").write_bytes(DATA)
    got = expect.ok(bucket.get("by-hand", headers={"range": "bytes=10-19"}), 206)
    assert got.body == DATA[10:20]
    assert re.fullmatch('"[^"]+"', got.etag)
