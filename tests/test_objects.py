"""PutObject, GetObject, HeadObject, DeleteObject: bytes, headers, metadata."""

import hashlib
import re
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.utils import parsedate_to_datetime

import pytest

from support import expect
from support.checksums import checksum, content_md5
from support.data import SYSTEM_HEADERS, pattern

SIZES = [
    0,
    1,
    15,
    16,
    4095,
    4096,
    4097,
    65535,
    65536,
    131072,
    131073,
    262143,
    262144,
    262145,
    1 << 20,
    (5 << 20) + 7,
]


class TestRoundTrip:
    @pytest.mark.parametrize("size", SIZES)
    def test_bytes(self, bucket, size):
        data = pattern(size)
        put = bucket.put("key", data)
        assert put.etag == f'"{hashlib.md5(data).hexdigest()}"'
        got = expect.ok(bucket.get("key"))
        assert got.body == data
        assert got.headers["content-length"] == str(size)
        assert got.etag == put.etag
        head = expect.ok(bucket.head("key"))
        assert head.headers["content-length"] == str(size)
        assert head.etag == put.etag
        assert bucket.file("key").read_bytes() == data

    def test_overwrite(self, bucket):
        bucket.put(
            "key", b"first, which is longer", headers={"x-amz-meta-a": "1", "content-type": "text/plain"}
        )
        bucket.put("key", b"second")
        got = expect.ok(bucket.get("key"))
        assert got.body == b"second"
        assert "x-amz-meta-a" not in got.headers
        assert got.headers["content-type"] == "binary/octet-stream"

    def test_unsigned_payload(self, bucket):
        bucket.put("key", b"data", payload="UNSIGNED-PAYLOAD")
        assert bucket.read("key") == b"data"

    def test_last_modified(self, bucket):
        bucket.put("key", b"data")
        modified = parsedate_to_datetime(bucket.get("key").headers["last-modified"])
        assert abs((datetime.now(UTC) - modified).total_seconds()) < 60

    def test_default_headers(self, bucket):
        put = bucket.put("key", b"data")
        assert "x-amz-storage-class" not in put.headers
        assert "x-amz-version-id" not in put.headers
        assert put.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"data"), (
            "the default checksum is answered"
        )
        assert put.headers["x-amz-checksum-type"] == "FULL_OBJECT"
        got = bucket.get("key")
        assert got.headers["content-type"] == "binary/octet-stream"
        assert got.headers["accept-ranges"] == "bytes"
        for absent in (
            "x-amz-storage-class",
            "x-amz-version-id",
            "content-encoding",
            "cache-control",
            "expires",
            "x-amz-mp-parts-count",
            "x-amz-checksum-crc64nvme",
            "content-range",
        ):
            assert absent not in got.headers


class TestMetadata:
    def test_system_headers_come_back(self, bucket):
        bucket.put("key", b"data", headers=SYSTEM_HEADERS)
        for response in (bucket.get("key"), bucket.head("key")):
            for name, value in SYSTEM_HEADERS.items():
                assert response.headers[name] == value

    def test_expires_is_verbatim(self, bucket):
        bucket.put("key", b"", headers={"expires": "never, ever"})
        assert bucket.head("key").headers["expires"] == "never, ever"

    def test_user_metadata(self, bucket):
        sent = {"x-amz-meta-one": "1", "x-amz-meta-Two-Words": "a  b", "x-amz-meta-empty": ""}
        bucket.put("key", b"data", headers=sent)
        for response in (bucket.get("key"), bucket.head("key")):
            found = response.headers.starting("x-amz-meta-")
            assert found == {"x-amz-meta-one": "1", "x-amz-meta-two-words": "a  b", "x-amz-meta-empty": ""}

    def test_repeated_user_metadata_is_joined(self, bucket):
        bucket.put("key", b"", headers=[("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")])
        assert bucket.head("key").headers["x-amz-meta-a"] == "1,2"

    def test_metadata_beyond_ascii(self, bucket):
        """S3 sends it back as an encoded word."""
        bucket.put("key", b"", headers={"x-amz-meta-name": "Žluťoučký"})
        value = bucket.head("key").headers["x-amz-meta-name"]
        assert str(make_header(decode_header(value))) == "Žluťoučký"

    @pytest.mark.parametrize(
        "sent, shown",
        [
            ("ÄMÄZÕÑ S3", "=?UTF-8?Q?=C3=84M=C3=84Z=C3=95=C3=91_S3?="),
            ("éé", "=?UTF-8?B?w6nDqQ==?="),
            ("=?UTF-8?Q?actually-ascii?=", "actually-ascii"),
            ("=?UTF-8?B?YWJj?=", "abc"),
            ("a =?utf-8?b?w6k=?= b", "=?UTF-8?Q?a_=C3=A9_b?="),
            ("=?UTF-8?B?AAECAw==?=", "=?UTF-8?B?AAECAw==?="),
            ("=?UTF-8?Q?=0D=0AX-Evil:_1?=", "=?UTF-8?Q?=0D=0AX-Evil:_1?="),
            ("=?UTF-8?B?=GGG?=", "=?UTF-8?B?=GGG?="),
            ("tab\there", "tab\there"),
        ],
    )
    def test_encoded_words(self, bucket, sent, shown):
        """They are read, and what is beyond ASCII is written as Amazon writes it: mostly ASCII in the form Q, else B."""
        bucket.put("key", b"", headers={"x-amz-meta-name": sent})
        expect.ok(bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": f"{bucket.name}/key"}))
        for key in ("key", "copy"):
            response = bucket.head(key)
            assert response.headers["x-amz-meta-name"] == shown
            assert "x-evil" not in response.headers

    def test_aws_chunked_is_no_encoding_of_the_object(self, bucket):
        bucket.put_signed_chunks("key", b"data", headers={"content-encoding": "aws-chunked,gzip"})
        assert bucket.head("key").headers["content-encoding"] == "gzip"

    @pytest.mark.parametrize("size, fits", [(2048, True), (2049, False)])
    def test_user_metadata_limit(self, bucket, size, fits):
        """Names without their prefix and values count together."""
        headers = {"x-amz-meta-abcd": "v" * (size - 4)}
        if fits:
            bucket.put("key", b"data", headers=headers)
            assert bucket.head("key").headers["x-amz-meta-abcd"] == headers["x-amz-meta-abcd"]
        else:
            response = bucket.raw.put(bucket.path("key"), b"data", headers=headers)
            expect.error(response, "MetadataTooLarge", Size="2049", MaxSizeAllowed="2048")
            assert bucket.is_untouched()

    def test_large_metadata_that_no_inode_holds(self, bucket):
        headers = {f"x-amz-meta-{n}": chr(97 + n) * 120 for n in range(15)}
        bucket.put("key", b"data", headers=headers)
        assert bucket.head("key").headers.starting("x-amz-meta-") == headers

    def test_website_redirect(self, bucket):
        bucket.put("key", b"", headers={"x-amz-website-redirect-location": "https://elsewhere.test/"})
        assert bucket.get("key").headers["x-amz-website-redirect-location"] == "https://elsewhere.test/"

    def test_bad_website_redirect(self, bucket):
        response = bucket.raw.put(
            bucket.path("key"), b"x", headers={"x-amz-website-redirect-location": "gopher:x"}
        )
        expect.error(response, "InvalidRedirectLocation")
        assert bucket.is_untouched()

    def test_expect_headers_of_others_are_ignored(self, bucket):
        bucket.put("key", b"data", headers={"x-unknown": "1", "if-range": "x", "cookie": "a=b"})
        assert bucket.read("key") == b"data"


class TestOverrides:
    OVERRIDES = {
        "response-content-type": "text/override",
        "response-content-language": "eo",
        "response-expires": "Thu, 01 Jan 1970 00:00:00 GMT",
        "response-cache-control": "no-store",
        "response-content-disposition": 'attachment; filename="ü.txt"',
        "response-content-encoding": "br",
    }

    def test_override(self, bucket):
        bucket.put("key", b"data", headers=SYSTEM_HEADERS)
        got = expect.ok(bucket.get("key", query=self.OVERRIDES))
        for name, value in self.OVERRIDES.items():
            assert got.headers[name.removeprefix("response-")] == value

    def test_on_head_too(self, bucket):
        bucket.put("key", b"data")
        head = expect.ok(bucket.head("key", query={"response-content-type": "text/override"}))
        assert head.headers["content-type"] == "text/override"

    def test_no_header_can_be_smuggled_in(self, bucket):
        bucket.put("key", b"data")
        response = bucket.get("key", query={"response-content-type": "text/plain\r\nx-evil: 1"})
        expect.error(response, "InvalidArgument", re.compile("."), ArgumentName="response-content-type")
        assert "x-evil" not in response.headers

    def test_beyond_latin_1(self, bucket):
        bucket.put("key", b"data")
        response = bucket.get("key", query={"response-content-disposition": "attachment; filename=漢.txt"})
        expect.error(response, "InvalidArgument", re.compile("ISO-8859-1"))

    def test_anonymous_requests_have_none(self, bucket):
        bucket.put("key", b"data")
        response = bucket.get("key", query=self.OVERRIDES, anonymous=True)
        assert response.code in ("InvalidRequest", "AccessDenied"), response


class TestDelete:
    def test_delete(self, bucket):
        bucket.put("key", b"data")
        response = expect.ok(bucket.delete("key"), 204)
        assert response.body == b""
        expect.error(bucket.get("key"), "NoSuchKey", Key="key")
        assert bucket.files() == []

    def test_of_nothing_is_a_success(self, bucket):
        expect.ok(bucket.delete("never/was"), 204)

    @pytest.mark.parametrize("method", ["get", "head", "delete"])
    def test_null_version_is_the_object(self, bucket, method):
        bucket.put("key", b"data")
        response = bucket.raw.request(method.upper(), bucket.path("key"), query={"versionId": "null"})
        assert response.status == (204 if method == "delete" else 200)
        assert bucket.exists("key") == (method != "delete")

    def test_null_version_of_nothing(self, bucket):
        response = bucket.get("none", query={"versionId": "null"})
        expect.error(response, "NoSuchVersion", Key="none", VersionId="null")
        expect.head_error(bucket.head("none", query={"versionId": "null"}), 404)
        expect.ok(bucket.raw.delete(bucket.path("none"), query={"versionId": "null"}), 204)

    @pytest.mark.parametrize(
        "version, message",
        [
            ("", "Version id cannot be the empty string"),
            ("3sL4kqtJlcpXroDTDmJ", "Invalid version id specified"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    def test_no_such_version(self, bucket, method, version, message):
        bucket.put("key", b"data")
        response = bucket.raw.request(method, bucket.path("key"), query={"versionId": version})
        expect.error(response, "InvalidArgument", message, ArgumentName="versionId", ArgumentValue=version)
        assert bucket.exists("key")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_such_bucket_before_no_such_version(raw, bucket, method):
    response = raw.request(method, "/no-such-bucket/key", query={"versionId": "3sL4kqtJlcpXroDTDmJ"})
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")
    source = {"x-amz-copy-source": f"{bucket.name}/key?versionId=3sL4kqtJlcp"}
    copy = raw.request("PUT", "/no-such-bucket/key", headers=source)
    expect.error(copy, "NoSuchBucket", BucketName="no-such-bucket")


class TestMissing:
    def test_get(self, bucket):
        expect.error(bucket.get("a/b"), "NoSuchKey", Key="a/b")

    def test_head(self, bucket):
        expect.head_error(bucket.head("a/b"), 404)

    def test_below_an_object(self, bucket):
        bucket.put("a", b"file")
        expect.error(bucket.get("a/b"), "NoSuchKey", Key="a/b")

    def test_a_directory_is_no_object(self, bucket):
        bucket.put("a/b", b"file")
        expect.error(bucket.get("a"), "NoSuchKey", Key="a")
        expect.error(bucket.get("a/"), "NoSuchKey", Key="a/")


NOT_IMPLEMENTED_HEADERS = {
    "x-amz-server-side-encryption": "AES256",
    "x-amz-server-side-encryption-aws-kms-key-id": "key",
    "x-amz-server-side-encryption-customer-algorithm": "AES256",
    "x-amz-server-side-encryption-customer-key": "k",
    "x-amz-object-lock-event-hold": "ON",
    "x-amz-object-lock-event-hold-duration-days": "1",
    "x-amz-write-offset-bytes": "0",
}


@pytest.mark.parametrize("name", NOT_IMPLEMENTED_HEADERS)
@pytest.mark.parametrize("operation", ["put", "upload"])
def test_headers_that_ask_for_more(bucket, operation, name):
    """What is to be encrypted, held or appended is not stored plainly instead."""
    headers = {name: NOT_IMPLEMENTED_HEADERS[name]}
    if operation == "put":
        response = bucket.raw.put(bucket.path("key"), b"secret", headers=headers)
    else:
        response = bucket.raw.post(bucket.path("key"), query={"uploads": ""}, headers=headers)
    expect.error(
        response,
        "NotImplemented",
        re.compile("^A header you provided implies functionality that is not implemented"),
        Header=name,
    )
    assert bucket.is_untouched()
    assert bucket.raw.get(bucket.path(), query={"uploads": ""}).xml.all("Upload") == []


@pytest.mark.parametrize(
    "storage_class, code",
    [("STANDARD", None), ("GLACIER", "InvalidStorageClass"), ("NONSENSE", "InvalidStorageClass")],
)
def test_storage_class(bucket, storage_class, code):
    response = bucket.raw.put(bucket.path("key"), b"x", headers={"x-amz-storage-class": storage_class})
    if code:
        expect.error(response, code, StorageClassRequested=storage_class)
        assert bucket.is_untouched()
    else:
        expect.ok(response)


@pytest.mark.parametrize(
    "acl, code",
    [
        ("private", None),
        ("bucket-owner-full-control", None),
        ("public-read", "AccessControlListNotSupported"),
        ("public-read-write", "AccessControlListNotSupported"),
    ],
)
def test_canned_acl(bucket, acl, code):
    response = bucket.raw.put(bucket.path("key"), b"x", headers={"x-amz-acl": acl})
    if code:
        expect.error(response, code)
        assert bucket.is_untouched()
    else:
        expect.ok(response)


def test_an_acl_that_there_is_not(bucket):
    """S3's sentence is empty."""
    response = bucket.raw.put(bucket.path("key"), b"x", headers={"x-amz-acl": "fake-acl"})
    nothing = re.compile("^$")
    expect.error(response, "InvalidArgument", nothing, ArgumentName="x-amz-acl", ArgumentValue="fake-acl")
    assert bucket.is_untouched()


class TestDigests:
    """Content-MD5 and what is wrong with it. Other checksums: test_checksums.py."""

    def test_right(self, bucket):
        bucket.put("key", b"data", headers={"content-md5": content_md5(b"data")})

    def test_wrong(self, bucket):
        response = bucket.raw.put(bucket.path("key"), b"data", headers={"content-md5": content_md5(b"other")})
        # Here alone the expected one is in hexadecimal digits.
        expect.error(
            response,
            "BadDigest",
            CalculatedDigest=content_md5(b"data"),
            ExpectedDigest=hashlib.md5(b"other").hexdigest(),
        )
        names = response.xml.names()
        assert names.index("CalculatedDigest") < names.index("ExpectedDigest")
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "value", ["", "x", "AAAA", "=" * 24, "1B2M2Y8AsgTpgAmY7PhCfg", content_md5(b"d")[:-2]]
    )
    def test_none(self, bucket, value):
        response = bucket.raw.put(bucket.path("key"), b"data", headers={"content-md5": value})
        expect.error(response, "InvalidDigest")
        assert bucket.is_untouched()

    def test_wrong_sha256(self, bucket):
        wrong = hashlib.sha256(b"other").hexdigest()
        response = bucket.raw.put(bucket.path("key"), b"data", payload=wrong)
        expect.error(
            response,
            "XAmzContentSHA256Mismatch",
            ClientComputedContentSHA256=wrong,
            S3ComputedContentSHA256=hashlib.sha256(b"data").hexdigest(),
        )
        assert bucket.is_untouched()

    def test_a_failed_overwrite_leaves_the_old_object(self, bucket):
        bucket.put("key", b"old", headers={"x-amz-meta-is": "old"})
        response = bucket.raw.put(
            bucket.path("key"), b"new", headers={"content-md5": content_md5(b"other"), "x-amz-meta-is": "new"}
        )
        expect.error(response, "BadDigest")
        got = bucket.get("key")
        assert (got.body, got.headers["x-amz-meta-is"]) == (b"old", "old")


class TestSize:
    def test_without_a_length(self, bucket):
        response = bucket.raw.put(bucket.path("key"), b"", headers={"content-length": None})
        expect.error(response, "MissingContentLength")
        assert bucket.is_untouched()

    def test_chunked_transfer_has_no_length(self, bucket):
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            payload="UNSIGNED-PAYLOAD",
            headers={"content-length": None, "transfer-encoding": "chunked"},
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head + b"4\r\ndata\r\n0\r\n\r\n")
            expect.error(
                connection.response(),
                "NotImplemented",
                re.compile("^A header you provided implies"),
                Header="Transfer-Encoding",
            )
        assert bucket.is_untouched()

    def test_too_large(self, bucket):
        """Refused by what the client says, before any of it comes."""
        size = (5 << 30) + 1
        request = bucket.raw.prepare(
            "PUT", bucket.path("key"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(size)}
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head)
            expect.error(
                connection.response(), "EntityTooLarge", ProposedSize=str(size), MaxSizeAllowed=str(5 << 30)
            )
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "key, fits", [("k" * 1024, True), ("k" * 1025, False), ("é" * 512, True), ("é" * 512 + "k", False)]
    )
    def test_key_length(self, bucket, key, fits):
        response = bucket.raw.put(bucket.path(key), b"x")
        if fits:
            expect.ok(response)
            assert bucket.keys() == [key]
        else:
            expect.error(response, "KeyTooLongError", Size="1025", MaxSizeAllowed="1024")
            assert bucket.is_untouched()
