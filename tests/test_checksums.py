"""x-amz-checksum-* in headers and trailers. Uploads in parts: test_multipart_checksums.py."""

import re

import pytest

from support import expect
from support.checksums import ALGORITHMS, checksum, content_md5, header
from support.data import pattern

DATA = pattern(200_000)
MODE = {"x-amz-checksum-mode": "ENABLED"}


@pytest.mark.parametrize("mode", ["DISABLED", "foo", ""])
def test_a_mode_that_is_none(bucket, mode):
    bucket.put("key", b"data")
    headers = {"x-amz-checksum-mode": mode}
    expect.error(
        bucket.get("key", headers=headers),
        "InvalidRequest",
        "Value for x-amz-checksum-mode header is invalid.",
    )
    expect.head_error(bucket.head("key", headers=headers), 400)


UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def check(bucket, algorithm: str) -> None:
    """GET and HEAD show the checksum when they are asked to, and only then."""
    for method in ("GET", "HEAD"):
        shown = bucket.raw.request(method, bucket.path("key"), headers=MODE)
        assert shown.headers[header(algorithm)] == checksum(algorithm, DATA)
        assert shown.headers["x-amz-checksum-type"] == "FULL_OBJECT"
        assert len(shown.headers.starting("x-amz-checksum-")) == 2
        plain = bucket.raw.request(method, bucket.path("key"))
        assert not plain.headers.starting("x-amz-checksum-")
    assert bucket.page().child("Contents")["ChecksumAlgorithm"] == algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
class TestEachAlgorithm:
    def test_header(self, bucket, algorithm):
        value = checksum(algorithm, DATA)
        put = bucket.put(
            "key", DATA, headers={header(algorithm): value, "x-amz-sdk-checksum-algorithm": algorithm}
        )
        assert put.headers[header(algorithm)] == value
        assert put.headers["x-amz-checksum-type"] == "FULL_OBJECT"
        check(bucket, algorithm)

    def test_wrong_header(self, bucket, algorithm):
        response = bucket.raw.put(
            bucket.path("key"), DATA, headers={header(algorithm): checksum(algorithm, b"other")}
        )
        expect.error(
            response, "BadDigest", f"The {algorithm} you specified did not match the calculated checksum."
        )
        assert bucket.is_untouched()

    def test_trailer(self, bucket, algorithm):
        trailers = [(header(algorithm), checksum(algorithm, DATA))]
        put = expect.ok(bucket.put_signed_chunks("key", DATA, trailers=trailers))
        assert put.headers[header(algorithm)] == checksum(algorithm, DATA)
        check(bucket, algorithm)

    def test_wrong_trailer(self, bucket, algorithm):
        trailers = [(header(algorithm), checksum(algorithm, b"other"))]
        response = bucket.put_signed_chunks("key", DATA, trailers=trailers)
        expect.error(
            response, "BadDigest", f"The {algorithm} you specified did not match the calculated checksum."
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize("value", ["", "AAA=", "!!!!", "A" * 200, "AAAA"])
    def test_garbage(self, bucket, algorithm, value):
        response = bucket.raw.put(bucket.path("key"), DATA, headers={header(algorithm): value})
        expect.error(response, "InvalidRequest", f"Value for {header(algorithm)} header is invalid.")
        assert bucket.is_untouched()

    def test_empty_object(self, bucket, algorithm):
        bucket.put("key", b"", headers={header(algorithm): checksum(algorithm, b"")})
        assert bucket.head("key", headers=MODE).headers[header(algorithm)] == checksum(algorithm, b"")


class TestHeaders:
    def test_two_checksums(self, bucket):
        headers = {header(name): checksum(name, DATA) for name in ("CRC32", "SHA1")}
        expect.error(
            bucket.raw.put(bucket.path("key"), DATA, headers=headers),
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
        assert bucket.is_untouched()

    def test_an_unknown_algorithm(self, bucket):
        response = bucket.raw.put(bucket.path("key"), DATA, headers={"x-amz-checksum-rot13": "AAAA"})
        expect.error(
            response,
            "InvalidRequest",
            "The algorithm type you specified in x-amz-checksum- header is invalid.",
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "headers, message",
        [
            (
                {"x-amz-sdk-checksum-algorithm": "CRC32"},
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or "
                "x-amz-trailer headers were found.",
            ),
            (
                {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-sha1": checksum("SHA1", DATA)},
                "Value for x-amz-sdk-checksum-algorithm header is invalid.",
            ),
        ],
    )
    def test_what_the_sdk_announces(self, bucket, headers, message):
        expect.error(bucket.raw.put(bucket.path("key"), DATA, headers=headers), "InvalidRequest", message)
        assert bucket.is_untouched()

    def test_content_md5_beside_a_checksum(self, bucket):

        headers = {"content-md5": content_md5(DATA), "x-amz-checksum-crc32c": checksum("CRC32C", DATA)}
        bucket.put("key", DATA, headers=headers)
        check(bucket, "CRC32C")

    def test_by_default(self, bucket):
        bucket.put("key", DATA)
        check(bucket, "CRC64NVME")


class TestTrailers:
    def test_header_and_trailer(self, bucket):
        headers = {"x-amz-checksum-crc32": checksum("CRC32", DATA)}
        trailers = [("x-amz-checksum-crc32", checksum("CRC32", DATA))]
        response = bucket.put_signed_chunks("key", DATA, trailers=trailers, headers=headers)
        expect.error(response, "InvalidRequest", re.compile("^Expecting a single x-amz-checksum- header"))
        assert bucket.is_untouched()

    @pytest.mark.parametrize("name", ["x-amz-checksum-rot13", "content-type", "x-amz-meta-a"])
    def test_unsupported(self, bucket, name):
        response = bucket.put_signed_chunks("key", DATA, trailers=[(name, "x")])
        expect.error(
            response, "InvalidRequest", "The value specified in the x-amz-trailer header is not supported"
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "trailers",
        [
            "",
            "x-amz-checksum-crc32c:AAAAAA==\r\n",
            "nonsense\r\n",
            "x-amz-meta-a:1\r\nx-amz-checksum-crc32:{}\r\n",
            "x-amz-checksum-crc32:{}\r\nx-amz-checksum-crc32:{}\r\n",
            "x-amz-checksum-crc32:" + "A" * 5000 + "\r\n",
        ],
        ids=["missing", "another", "no colon", "undeclared", "twice", "long"],
    )
    def test_malformed(self, bucket, trailers):
        value = checksum("CRC32", b"data")
        framed = b"4\r\ndata\r\n0\r\n" + trailers.replace("{}", value).encode() + b"\r\n"
        response = bucket.put_chunked(
            "key", framed, 4, UNSIGNED_TRAILER, headers={"x-amz-trailer": "x-amz-checksum-crc32"}
        )
        expect.error(response, "MalformedTrailerError")
        assert bucket.is_untouched()

    def test_garbage_value(self, bucket):
        framed = b"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:garbage\r\n\r\n"
        response = bucket.put_chunked(
            "key", framed, 4, UNSIGNED_TRAILER, headers={"x-amz-trailer": "x-amz-checksum-crc32"}
        )
        expect.error(response, "InvalidRequest", re.compile("x-amz-checksum-crc32"))
        assert bucket.is_untouched()
