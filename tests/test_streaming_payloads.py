"""aws-chunked bodies: signed, signed with trailers, unsigned with trailers."""

import hashlib
import re

import pytest

from support import expect, sigv4
from support.checksums import checksum, content_md5
from support.data import PART, pattern
from support.sigv4 import STREAMING, STREAMING_TRAILER, STREAMING_UNSIGNED_TRAILER, frame

DATA = pattern(200_000)
CRC = [("x-amz-checksum-crc32", checksum("CRC32", DATA))]


class TestWhole:
    @pytest.mark.parametrize("length", [0, 1, 8192, 65536, 65537, 200_000])
    @pytest.mark.parametrize("trailer", [False, True])
    def test_signed(self, bucket, length, trailer):
        data = DATA[:length]
        trailers = [("x-amz-checksum-sha256", checksum("SHA256", data))] if trailer else None
        put = expect.ok(bucket.put_signed_chunks("key", data, trailers=trailers))
        assert put.etag.strip('"') == hashlib.md5(data).hexdigest()
        assert bucket.read("key") == data

    @pytest.mark.parametrize("size", [8192, 10_000, 1 << 20])
    def test_chunk_sizes(self, bucket, size):
        data = pattern(3 << 20)
        expect.ok(bucket.put_signed_chunks("key", data, size=size))
        assert bucket.read("key") == data

    @pytest.mark.parametrize("size", [8192, 10_000, 65536])
    def test_unsigned(self, bucket, size):
        expect.ok(self.put_unsigned(bucket, size))
        assert bucket.read("key") == DATA[:30_000]

    @pytest.mark.parametrize("size", [1, 100, 8191])
    def test_unsigned_and_small(self, bucket, size):
        response = self.put_unsigned(bucket, size)
        expect.error(response, "InvalidChunkSizeError", Chunk="2", BadChunkSize=str(size))
        assert not bucket.exists("key")

    def put_unsigned(self, bucket, size):
        data = DATA[:30_000]
        framed = frame(data, size, trailers=[("x-amz-checksum-crc32", checksum("CRC32", data))])
        named = {"x-amz-trailer": "x-amz-checksum-crc32"}
        return bucket.put_chunked("key", framed, len(data), STREAMING_UNSIGNED_TRAILER, headers=named)

    def test_unsigned_without_any_trailer(self, bucket):
        expect.ok(bucket.put_chunked("key", frame(b"data", trailers=[]), 4, STREAMING_UNSIGNED_TRAILER))
        assert bucket.read("key") == b"data"

    def test_part(self, bucket):
        upload_id = bucket.create_upload("key")
        framed = frame(pattern(PART), trailers=[])
        sent = bucket.raw.put(
            bucket.path("key"),
            framed,
            payload=STREAMING_UNSIGNED_TRAILER,
            query={"partNumber": "1", "uploadId": upload_id},
            headers={"x-amz-decoded-content-length": str(PART)},
        )
        expect.ok(bucket.complete("key", upload_id, [(1, expect.ok(sent).etag)]))
        assert bucket.read("key") == pattern(PART)

    def test_content_md5_is_of_the_decoded_bytes(self, bucket):
        expect.ok(bucket.put_signed_chunks("key", DATA, headers={"content-md5": content_md5(DATA)}))
        response = bucket.put_signed_chunks("other", DATA, headers={"content-md5": content_md5(b"other")})
        expect.error(response, "BadDigest")
        assert bucket.keys() == ["key"]

    def test_within_chunked_transfer(self, bucket):
        """HTTP's own chunks around S3's: what some SDKs send over HTTP/1.1."""
        framed = frame(b"data", trailers=[])
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            payload=STREAMING_UNSIGNED_TRAILER,
            headers={
                "content-length": None,
                "transfer-encoding": "chunked",
                "x-amz-decoded-content-length": "4",
            },
        )
        pieces = b"".join(
            b"%x\r\n%s\r\n" % (len(framed[at : at + 3]), framed[at : at + 3])
            for at in range(0, len(framed), 3)
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head + pieces + b"0\r\n\r\n")
            expect.ok(connection.response())
        assert bucket.read("key") == b"data"


class TestSpoiled:
    """Nothing may be visible, or left, of any of these."""

    @pytest.fixture(autouse=True)
    def check_that_nothing_is_there(self, bucket):
        yield
        assert bucket.is_untouched()

    @pytest.mark.parametrize("spoil", ["chunk", "last-chunk"])
    @pytest.mark.parametrize("trailer", [False, True])
    def test_chunk_signature(self, bucket, spoil, trailer):
        response = bucket.put_signed_chunks("key", DATA, spoil=spoil, trailers=CRC if trailer else None)
        expect.error(response, "SignatureDoesNotMatch")

    def test_trailer_signature(self, bucket):
        expect.error(
            bucket.put_signed_chunks("key", DATA, spoil="trailer", trailers=CRC), "SignatureDoesNotMatch"
        )

    def test_changed_data(self, bucket):
        request = self.signed(bucket, b"a" * 20_000, STREAMING)
        expect.error(self.send(bucket, request.replace(b"aaaa", b"aaba", 1)), "SignatureDoesNotMatch")

    def test_changed_trailer(self, bucket):
        other = checksum("CRC32", b"other").encode()
        request = self.signed(bucket, DATA, STREAMING_TRAILER, CRC)
        right = CRC[0][1].encode()
        assert right in request
        response = self.send(bucket, request.replace(right, other))
        assert response.code in ("SignatureDoesNotMatch", "BadDigest"), response

    def test_chunks_in_another_order(self, bucket):
        request = self.signed(bucket, b"a" * 8192 + b"b" * 8192, STREAMING, size=8192)
        head, _, body = request.partition(b"\r\n\r\n")
        pieces = re.match(rb"(2000;.{80}\r\na+\r\n)(2000;.{80}\r\nb+\r\n)(.*)", body, re.DOTALL)
        assert pieces
        swapped = pieces[2] + pieces[1] + pieces[3]
        expect.error(self.send(bucket, head + b"\r\n\r\n" + swapped), "SignatureDoesNotMatch")

    def test_without_trailer_signature(self, bucket):
        request = self.signed(bucket, DATA, STREAMING_TRAILER, CRC)
        shortened = re.sub(rb"x-amz-trailer-signature:[0-9a-f]{64}\r\n", b"", request)
        removed = len(request) - len(shortened)
        length = int(re.search(rb"content-length: (\d+)", request)[1])
        shortened = shortened.replace(
            b"content-length: %d" % length, b"content-length: %d" % (length - removed)
        )
        response = self.send(bucket, shortened)
        assert response.code in ("MalformedTrailerError", "SignatureDoesNotMatch"), response

    def test_small_chunks_before_the_last(self, bucket):
        response = bucket.put_signed_chunks("key", DATA, size=8191)
        expect.error(response, "InvalidChunkSizeError", Chunk="2", BadChunkSize="8191")

    def test_less_than_announced(self, bucket):
        response = bucket.put_signed_chunks("key", DATA, length=200_001)
        expect.error(response, "IncompleteBody", NumberBytesExpected="200001")

    @pytest.mark.parametrize("declared", [0, 199_999])
    def test_more_than_announced(self, bucket, declared):
        response = bucket.put_signed_chunks("key", DATA, length=declared)
        expect.error(response, "IncompleteBody", "The request body terminated unexpectedly")

    def test_without_a_decoded_length(self, bucket):
        response = bucket.put_chunked("key", frame(b"data", trailers=[]), None, STREAMING_UNSIGNED_TRAILER)
        expect.error(response, "MissingContentLength")

    @pytest.mark.parametrize("length", ["-1", "four"])
    def test_a_decoded_length_that_is_none(self, bucket, length):
        response = bucket.put_chunked(
            "key",
            frame(b"data", trailers=[]),
            None,
            STREAMING_UNSIGNED_TRAILER,
            headers={"x-amz-decoded-content-length": length},
        )
        assert response.code in ("InvalidArgument", "MissingContentLength"), response
        assert response.status in (400, 411)

    @pytest.mark.parametrize(
        "framed",
        [
            b"data",
            b"4\r\ndata\r\n",
            b"4\r\nda",
            b"4\r\ndataX\r\n0\r\n\r\n",
            b"xyz\r\ndata\r\n0\r\n\r\n",
            b"-4\r\ndata\r\n0\r\n\r\n",
            b"4;" + b"x" * 300 + b"\r\ndata\r\n0\r\n\r\n",
            b"0x4\r\ndata\r\n0\r\n\r\n",
            b"4\r\ndata\r\n0\r\n\r\nmore",
            b"ffffffffffffffffff\r\ndata",
            b"",
            b"4\ndata\n0\n\n",
        ],
        ids=[
            "no framing",
            "no last chunk",
            "short",
            "long",
            "no hex",
            "negative",
            "long line",
            "0x",
            "more",
            "huge",
            "empty",
            "bare line feeds",
        ],
    )
    def test_framing(self, bucket, framed):
        response = bucket.put_chunked("key", framed, 4, STREAMING_UNSIGNED_TRAILER)
        expect.error(response, "IncompleteBody", re.compile("."))

    def test_signed_framing_without_signatures(self, bucket):
        response = bucket.put_chunked("key", frame(b"data"), 4, STREAMING)
        assert response.code in ("IncompleteBody", "SignatureDoesNotMatch"), response

    def test_seed_signature(self, bucket):
        response = bucket.put_chunked(
            "key", frame(b"data"), 4, STREAMING, signer=bucket.raw.signer.with_(secret_key="wrong")
        )
        expect.error(response, "SignatureDoesNotMatch")

    @pytest.mark.parametrize(
        "payload",
        ["STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER"],
    )
    def test_sigv4a(self, bucket, payload):
        response = bucket.put_chunked("key", frame(b"data"), 4, payload)
        expect.error(response, "NotImplemented", re.compile("SigV4A"))

    def test_trailers_where_none_belong(self, bucket):
        response = bucket.put_signed_chunks("key", DATA, headers={"x-amz-trailer": "x-amz-checksum-crc32"})
        assert response.status == 400
        assert response.code in ("MalformedTrailerError", "InvalidRequest"), response

    def test_anonymous_signed_chunks(self, bucket):
        response = bucket.raw.put(
            bucket.path("key"),
            frame(b"data"),
            anonymous=True,
            headers={"x-amz-content-sha256": STREAMING, "x-amz-decoded-content-length": "4"},
        )
        assert response.code in ("InvalidRequest", "AccessDenied"), response

    def signed(self, bucket, data: bytes, payload: str, trailers=None, size: int = 64 << 10) -> bytes:
        """A valid request as bytes, to be tampered with. Its length is not under the signature."""
        signer = bucket.raw.signer.with_(at=bucket.raw.signer.now())
        headers = {"x-amz-decoded-content-length": str(len(data))}
        if trailers:
            headers["x-amz-trailer"] = ",".join(name for name, _ in trailers)
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            headers={**headers, "content-length": "LENGTH"},
            payload=payload,
            signer=signer,
        )
        chunks = sigv4.ChunkSigner(signer, signer.now(), request.signature)
        framed = frame(data, size, chunks=chunks, trailers=trailers)
        return request.head.replace(b"LENGTH", str(len(framed)).encode()) + framed

    def send(self, bucket, request: bytes):
        with bucket.raw.connect() as connection:
            connection.send_as_far_as_possible(request)
            return connection.response()


def test_the_tampering_helper_makes_valid_requests(bucket):
    helper = TestSpoiled()
    for payload, trailers in ((STREAMING, None), (STREAMING_TRAILER, CRC)):
        expect.ok(helper.send(bucket, helper.signed(bucket, DATA, payload, trailers)))
    assert bucket.read("key") == DATA


@pytest.mark.parametrize("payload", ["garbage", "0" * 63, "STREAMING-SOMETHING", "g" * 64])
def test_unknown_payload_modes(bucket, payload):
    response = bucket.raw.put(bucket.path("key"), b"data", payload=payload)
    expect.error(
        response,
        "InvalidArgument",
        re.compile("^x-amz-content-sha256 must be UNSIGNED-PAYLOAD"),
        ArgumentName="x-amz-content-sha256",
        ArgumentValue=payload,
    )
    assert bucket.is_untouched()


@pytest.mark.parametrize("method, key", [("GET", "key"), ("DELETE", "key"), ("GET", None)])
@pytest.mark.parametrize("payload", [STREAMING_TRAILER, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
def test_only_uploads_have_trailers(bucket, method, key, payload):
    bucket.put("key", DATA)
    response = bucket.raw.request(method, bucket.path(key), payload=payload)
    message = "The value of x-amz-content-sha256 header is invalid."
    expect.error(response, "InvalidRequest", message)
    assert bucket.read("key") == DATA


class TestPlainBodies:
    """A body that is not framed, of a client that says how long the payload inside a framing is."""

    LENGTHS = {"another": "3", "longer": "5", "framed": "40", "none": "x", "negative": "-4"}

    @pytest.mark.parametrize("payload", ["UNSIGNED-PAYLOAD", None])
    @pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
    def test_a_length_that_is_not_the_bodys(self, bucket, payload, length):
        bucket.put("key", b"old")
        response = self.put(bucket, b"data", payload, length)
        assert response.status in (400, 411), response
        if length.isdigit():
            expect.error(response, "IncompleteBody", NumberBytesExpected=length, NumberBytesProvided="4")
        assert bucket.read("key") == b"old"

    def test_a_framing_is_not_stored(self, bucket):
        framed = frame(b"data", trailers=[])
        response = self.put(bucket, framed, "UNSIGNED-PAYLOAD", "4")
        expect.error(response, "IncompleteBody", NumberBytesProvided=str(len(framed)))
        assert bucket.is_untouched()

    def test_nor_in_a_part(self, bucket):
        upload_id = bucket.create_upload("key")
        headers = {"x-amz-decoded-content-length": "3"}
        expect.error(bucket.put_part("key", upload_id, 1, b"data", headers=headers), "IncompleteBody")

    @pytest.mark.parametrize("length", ["4", "40", None])
    def test_the_encoding_names_no_framing_of_an_unsigned_body(self, bucket, length):
        """As seen of S3 in September 2026: the client may have framed it all the same."""
        bucket.put("key", b"old")
        message = (
            "aws-chunked encoding is not supported when x-amz-content-sha256 UNSIGNED-PAYLOAD is supplied"
        )
        response = self.put(bucket, b"data", "UNSIGNED-PAYLOAD", length, "aws-chunked")
        expect.error(response, "InvalidArgument", message, ArgumentName="Content-Encoding")
        assert bucket.read("key") == b"old"

    def test_it_is_the_objects_where_nothing_is_framed(self, bucket):
        """As seen of S3 in September 2026: the client signed these very bytes."""
        expect.ok(self.put(bucket, b"data", None, None, "aws-chunked"))
        got = bucket.get("key")
        assert (got.body, got.headers["content-encoding"]) == (b"data", "aws-chunked")

    def put(self, bucket, body, payload, length, encoding=None):
        headers = {"content-encoding": encoding, "x-amz-decoded-content-length": length}
        return bucket.raw.put(bucket.path("key"), body, payload=payload, headers=headers)
