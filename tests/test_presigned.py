"""Presigned URLs, version 4 and version 2."""

import hashlib
import re
import urllib.request
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from support import expect
from support.checksums import checksum, content_md5
from support.clients import boto3_client
from support.server import ACCESS_KEY
from support.sigv2 import presign_v2


@pytest.fixture
def thing(bucket):
    bucket.put("key", b"data", headers={"content-type": "text/plain"})
    return bucket


def presign(bucket, method: str = "GET", key: str = "key", **options) -> str:
    signer = options.pop("signer", bucket.raw.signer)
    return signer.presign(method, bucket.path(key), bucket.raw.host, **options)


class TestV4:
    def test_get_and_head(self, thing):
        assert expect.ok(thing.raw.fetch(presign(thing))).body == b"data"
        assert expect.ok(thing.raw.fetch(presign(thing, "HEAD"), "HEAD")).headers["content-length"] == "4"

    def test_put_and_delete(self, bucket):
        expect.ok(bucket.raw.fetch(presign(bucket, "PUT", "new"), "PUT", b"new"))
        assert bucket.read("new") == b"new"
        expect.ok(bucket.raw.fetch(presign(bucket, "DELETE", "new"), "DELETE"), 204)
        assert not bucket.exists("new")

    def test_list(self, thing):
        target = thing.raw.signer.presign("GET", thing.path(), thing.raw.host, query=[("list-type", "2")])
        assert expect.ok(thing.raw.fetch(target)).xml.child("Contents")["Key"] == "key"

    def test_overrides(self, thing):
        got = thing.raw.fetch(presign(thing, query=[("response-content-type", "text/other")]))
        assert expect.ok(got).headers["content-type"] == "text/other"

    def test_signed_headers(self, bucket):
        target = presign(bucket, "PUT", "new", headers=[("x-amz-meta-a", "1")])
        expect.ok(bucket.raw.fetch(target, "PUT", b"new", {"x-amz-meta-a": "1"}))
        assert bucket.head("new").headers["x-amz-meta-a"] == "1"
        expect.error(bucket.raw.fetch(target, "PUT", b"new", {"x-amz-meta-a": "2"}), "SignatureDoesNotMatch")
        expect.error(bucket.raw.fetch(target, "PUT", b"new"), "SignatureDoesNotMatch")

    def test_headers_that_were_not_signed(self, bucket):
        response = bucket.raw.fetch(presign(bucket, "PUT", "new"), "PUT", b"new", {"x-amz-meta-a": "1"})
        expect.error(
            response,
            "AccessDenied",
            "There were headers present in the request which were not signed",
            HeadersNotSigned="x-amz-meta-a",
        )
        assert bucket.is_untouched()

    def test_headers_moved_into_the_query(self, bucket):
        """As SDKs do when they presign."""
        target = presign(bucket, "PUT", "new", query=[("x-amz-meta-a", "1")])
        expect.ok(bucket.raw.fetch(target, "PUT", b"data"))
        assert bucket.head("new").headers["x-amz-meta-a"] == "1"

    @pytest.mark.parametrize("empty", ["", " "])
    def test_an_empty_authorization_is_none(self, bucket, empty):
        target = presign(bucket, "PUT", "new", query=[("x-amz-meta-a", "1")])
        expect.ok(bucket.raw.fetch(target, "PUT", b"data", headers={"authorization": empty}))
        assert bucket.head("new").headers["x-amz-meta-a"] == "1"

    def test_checksums_in_the_query_are_passed_over(self, bucket):
        """SDKs put that of an empty body there, since they sign before there is one. S3 does not look at it."""
        query = [("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-sdk-checksum-algorithm", "CRC32")]
        query.append(("X-Amz-Checksum-Sha256", "no checksum"))
        expect.ok(bucket.raw.fetch(presign(bucket, "PUT", "new", query=query), "PUT", b"data"))
        assert bucket.read("new") == b"data"
        # One that is sent as a header, and signed, counts.
        header = ("x-amz-checksum-crc32", checksum("CRC32", b"other"))
        target = presign(bucket, "PUT", "next", headers=[header])
        response = bucket.raw.fetch(target, "PUT", b"data", headers=dict([header]))
        expect.error(response, "BadDigest", re.compile("CRC32"))
        assert not bucket.exists("next")

    def test_headers_that_are_signed_and_in_the_query(self, bucket):
        """As the JavaScript SDK v2 presigns: who has the URL may send the header, or not."""
        pair = ("x-amz-meta-a", "1")
        target = presign(bucket, "PUT", "new", query=[pair], headers=[pair])
        for sent in ({}, dict([pair])):
            expect.ok(bucket.raw.fetch(target, "PUT", b"data", sent))
            assert bucket.head("new").headers["x-amz-meta-a"] == "1"
            bucket.delete("new")
        expect.error(bucket.raw.fetch(target, "PUT", b"evil", {"x-amz-meta-a": "2"}), "SignatureDoesNotMatch")
        other = target.replace("x-amz-meta-a=1", "x-amz-meta-a=2")
        expect.error(bucket.raw.fetch(other, "PUT", b"evil"), "SignatureDoesNotMatch")
        # Such a checksum was meant: it counts.
        pair = ("x-amz-checksum-crc32", checksum("CRC32", b"other"))
        target = presign(bucket, "PUT", "new", query=[pair], headers=[pair])
        expect.error(bucket.raw.fetch(target, "PUT", b"data"), "BadDigest", re.compile("CRC32"))
        # A header without `x-amz-` has to be sent.
        pair = ("cache-control", "no-cache")
        target = presign(bucket, "PUT", "new", query=[pair], headers=[pair])
        expect.error(bucket.raw.fetch(target, "PUT", b"evil"), "SignatureDoesNotMatch")
        assert bucket.is_untouched()

    def test_a_copy_source_that_is_signed_and_in_the_query(self, thing):
        pair = ("x-amz-copy-source", f"{thing.name}/key")
        target = presign(thing, "PUT", "copy", query=[pair], headers=[pair])
        assert expect.ok(thing.raw.fetch(target, "PUT")).xml.name == "CopyObjectResult"
        assert thing.read("copy") == b"data"

    @pytest.mark.parametrize("form", [str.title, str.lower])
    def test_what_describes_the_body_counts_in_the_query(self, bucket, form):
        query = [(form("content-type"), "image/png"), (form("cache-control"), "no-cache")]
        target = presign(bucket, "PUT", "new", query=query)
        expect.ok(bucket.raw.fetch(target, "PUT", b"data"))
        assert bucket.head("new").headers["content-type"] == "image/png"
        assert bucket.head("new").headers["cache-control"] == "no-cache"
        # A header that is not signed replaces nothing.
        expect.ok(bucket.raw.fetch(target, "PUT", b"data", {"content-type": "text/plain"}))
        assert bucket.head("new").headers["content-type"] == "image/png"
        target = presign(bucket, "PUT", "new", query=[(form("content-md5"), "rL0Y20zC+Fzt72VPzMSk2A==")])
        expect.error(bucket.raw.fetch(target, "PUT", b"evil"), "BadDigest")
        assert bucket.read("new") == b"data"

    @pytest.mark.parametrize("name", ["If-None-Match", "if-none-match"])
    def test_conditions_in_the_query_count(self, bucket, name):
        target = presign(bucket, "PUT", "new", query=[(name, "*")])
        expect.ok(bucket.raw.fetch(target, "PUT", b"data"))
        expect.error(bucket.raw.fetch(target, "PUT", b"evil"), "PreconditionFailed")
        assert bucket.read("new") == b"data"
        stale = [(name.replace("None-", "").replace("none-", ""), '"00000000000000000000000000000000"')]
        target = presign(bucket, "PUT", "new", query=stale)
        expect.error(bucket.raw.fetch(target, "PUT", b"evil"), "PreconditionFailed")
        target = presign(bucket, "DELETE", "new", query=stale)
        expect.error(bucket.raw.fetch(target, "DELETE"), "PreconditionFailed")
        assert bucket.read("new") == b"data"

    def test_what_is_signed_can_not_be_lifted(self, bucket):
        """Who holds a URL may send headers that are not signed. They replace nothing."""
        etag = bucket.put("new", b"data").etag
        stale = [("If-Match", '"00000000000000000000000000000000"')]
        for header in ({"if-match": etag}, {"if-match": "*"}):
            target = presign(bucket, "PUT", "new", query=stale)
            expect.error(bucket.raw.fetch(target, "PUT", b"evil", headers=header), "PreconditionFailed")
            target = presign(bucket, "DELETE", "new", query=stale)
            expect.error(bucket.raw.fetch(target, "DELETE", headers=header), "PreconditionFailed")
        md5 = [("Content-MD5", content_md5(b"data"))]
        target = presign(bucket, "PUT", "new", query=md5)
        response = bucket.raw.fetch(target, "PUT", b"evil", headers={"content-md5": content_md5(b"evil")})
        expect.error(response, "BadDigest")
        target = presign(bucket, "PUT", "typed", query=[("Content-Type", "image/png")])
        expect.ok(bucket.raw.fetch(target, "PUT", b"data", headers={"content-type": "text/html"}))
        assert bucket.head("typed").headers["content-type"] == "image/png"
        assert bucket.read("new") == b"data"

    @pytest.mark.parametrize("name", ["x-amz-a b", "x-amz-tagging ", "x-amz-\u00e9"])
    def test_a_name_that_no_header_has(self, bucket, name):
        target = presign(bucket, "PUT", "new", query=[(name, "1")])
        expect.error(bucket.raw.fetch(target, "PUT", b"data"), "NotImplemented", re.compile("."))
        assert bucket.is_untouched()

    def test_the_hash_of_the_body_need_not_be_signed(self, bucket):
        """A header beside a URL that says by itself how the body is protected."""
        unsigned = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
        expect.ok(bucket.raw.fetch(presign(bucket, "PUT", "new"), "PUT", b"data", headers=unsigned))
        assert bucket.read("new") == b"data"
        pair = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        target = presign(bucket, "PUT", "new", headers=[pair])
        expect.ok(bucket.raw.fetch(target, "PUT", b"data", headers=unsigned))
        # Signed, it must be there.
        expect.error(bucket.raw.fetch(target, "PUT", b"evil"), "SignatureDoesNotMatch")
        others = {**unsigned, "x-amz-meta-a": "1"}
        response = bucket.raw.fetch(presign(bucket, "PUT", "new"), "PUT", b"evil", headers=others)
        message = "There were headers present in the request which were not signed"
        expect.error(response, "AccessDenied", message, HeadersNotSigned="x-amz-meta-a")
        assert bucket.read("new") == b"data"

    @pytest.mark.parametrize(
        "query", [("x-amz-object-lock-event-hold", "ON"), ("x-amz-server-side-encryption", "AES256")]
    )
    def test_meaning_in_the_query_is_not_lost(self, bucket, query):
        response = bucket.raw.fetch(presign(bucket, "PUT", "new", query=[query]), "PUT", b"data")
        expect.error(response, "NotImplemented", re.compile("A header you provided"), Header=query[0])
        assert bucket.is_untouched()

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD"])
    def test_other_method(self, thing, method):
        response = thing.raw.fetch(presign(thing), method, b"evil" if method == "PUT" else b"")
        if method == "HEAD":
            expect.head_error(response, 403)
        else:
            expect.error(response, "SignatureDoesNotMatch")
        assert thing.read("key") == b"data"

    def test_other_key(self, thing):
        expect.error(thing.raw.fetch(presign(thing).replace("/key?", "/kex?")), "SignatureDoesNotMatch")

    def test_tampered_parameters(self, thing):
        for old, new in (
            ("X-Amz-Expires=300", "X-Amz-Expires=301"),
            ("SignedHeaders=host", "SignedHeaders=Host"),
        ):
            target = presign(thing)
            assert old in target
            response = thing.raw.fetch(target.replace(old, new))
            assert response.status == 403, response

    def test_wrong_secret(self, thing):
        target = presign(thing, signer=thing.raw.signer.with_(secret_key="wrong"))
        expect.error(
            thing.raw.fetch(target),
            "SignatureDoesNotMatch",
            AWSAccessKeyId=ACCESS_KEY,
            CanonicalRequest=re.compile("^GET\n"),
        )

    def test_unknown_key(self, thing):
        target = presign(thing, signer=thing.raw.signer.with_(access_key="NOBODY"))
        expect.error(thing.raw.fetch(target), "InvalidAccessKeyId", AWSAccessKeyId="NOBODY")

    def test_body_hash(self, bucket):

        right = hashlib.sha256(b"data").hexdigest()
        headers = [("x-amz-content-sha256", right)]
        target = presign(bucket, "PUT", "new", headers=headers, payload=right)
        expect.error(bucket.raw.fetch(target, "PUT", b"atad", dict(headers)), "XAmzContentSHA256Mismatch")
        assert bucket.is_untouched()
        expect.ok(bucket.raw.fetch(target, "PUT", b"data", dict(headers)))


class TestTime:
    def test_expired(self, thing):
        signer = thing.raw.signer.with_(shift=timedelta(seconds=-20))
        response = thing.raw.fetch(presign(thing, signer=signer, expires=5))
        expect.error(
            response,
            "AccessDenied",
            "Request has expired",
            Expires=re.compile(r"^\d{4}-\d\d-\d\dT"),
            ServerTime=re.compile(r"^\d{4}-\d\d-\d\dT"),
            **{"X-Amz-Expires": "5"},
        )

    def test_not_yet(self, thing):
        signer = thing.raw.signer.with_(shift=timedelta(minutes=20))
        expect.error(
            thing.raw.fetch(presign(thing, signer=signer)), "AccessDenied", "Request is not yet valid"
        )

    @pytest.mark.parametrize(
        "expires, ok", [(1, True), (604800, True), (604801, False), (-1, False), ("soon", False), ("", False)]
    )
    def test_life(self, thing, expires, ok):
        response = thing.raw.fetch(presign(thing, expires=expires))
        if ok:
            expect.ok(response)
        else:
            expect.error(response, "AuthorizationQueryParametersError", re.compile("X-Amz-Expires"))

    def test_days_old_and_still_good(self, thing):
        signer = thing.raw.signer.with_(shift=timedelta(days=-6))
        expect.ok(thing.raw.fetch(presign(thing, signer=signer, expires=604800)))


@pytest.mark.parametrize(
    "name",
    [
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
    ],
)
def test_missing_parameters(thing, name):
    target = re.sub(rf"[?&]{name}=[^&]*", "", presign(thing)).replace("/key&", "/key?")
    response = thing.raw.fetch(target)
    expect.error(response, "AuthorizationQueryParametersError")


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("X-Amz-Algorithm", "AWS4-HMAC-MD5", "X-Amz-Algorithm only supports"),
        ("X-Amz-Date", "yesterday", "X-Amz-Date must be in the ISO8601 Long Format"),
        (
            "X-Amz-Credential",
            "nonsense",
            "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed",
        ),
    ],
)
def test_bad_parameters(thing, name, value, message):
    target = re.sub(rf"{name}=[^&]*", f"{name}={value}", presign(thing))
    expect.error(thing.raw.fetch(target), "AuthorizationQueryParametersError", re.compile(re.escape(message)))


def test_wrong_region(thing):
    target = presign(thing, signer=thing.raw.signer.with_(region="eu-west-1"))
    expect.error(
        thing.raw.fetch(target),
        "AuthorizationQueryParametersError",
        "Error parsing the X-Amz-Credential parameter; "
        "the region 'eu-west-1' is wrong; expecting 'us-east-1'",
        Region="us-east-1",
    )


class TestBoto3:
    """URLs as boto3 makes them, used by another HTTP client."""

    @pytest.fixture(params=["s3v4", "s3"])
    def client(self, request, server):
        return boto3_client(server, signature_version=request.param)

    def open(self, url: str, method: str = "GET", data: bytes | None = None) -> tuple[int, bytes]:
        request = urllib.request.Request(url, data, method=method)
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read()

    def test_version(self, client, thing):
        url = self.url(client, thing, "get_object")
        expected = "X-Amz-Signature=" if client.meta.config.signature_version == "s3v4" else "&Signature="
        assert expected in url.replace("?", "&")

    def url(self, client, bucket, operation: str, **parameters) -> str:
        return client.generate_presigned_url(
            operation, {"Bucket": bucket.name, "Key": "key", **parameters}, 300
        )

    def test_get(self, client, thing):
        assert self.open(self.url(client, thing, "get_object")) == (200, b"data")

    def test_head(self, client, thing):
        assert self.open(self.url(client, thing, "head_object"), "HEAD") == (200, b"")

    def test_put(self, client, thing):
        request = urllib.request.Request(self.url(client, thing, "put_object"), b"new", method="PUT")
        request.add_unredirected_header("Content-Type", "")
        with urllib.request.urlopen(request, timeout=20) as response:
            assert response.status == 200
        assert thing.read("key") == b"new"

    def test_delete(self, client, thing):
        assert self.open(self.url(client, thing, "delete_object"), "DELETE")[0] == 204
        assert not thing.exists("key")

    def test_overrides(self, client, thing):
        url = self.url(client, thing, "get_object", ResponseContentType="text/other")
        with urllib.request.urlopen(url, timeout=20) as response:
            assert response.headers["content-type"] == "text/other"

    def test_default_signature(self, s3, thing):
        """What boto3 makes without being told a version."""
        assert self.open(self.url(s3, thing, "get_object")) == (200, b"data")


class TestV2:
    @pytest.fixture
    def target(self, server, thing) -> str:
        client = boto3_client(server, signature_version="s3")
        url = urlsplit(client.generate_presigned_url("get_object", {"Bucket": thing.name, "Key": "key"}, 300))
        return f"{url.path}?{url.query}"

    def test_works(self, thing, target):
        assert expect.ok(thing.raw.fetch(target)).body == b"data"

    def test_tampered(self, thing, target):
        expect.error(
            thing.raw.fetch(target.replace("/key?", "/kex?")),
            "SignatureDoesNotMatch",
            AWSAccessKeyId=ACCESS_KEY,
            StringToSign=re.compile("^GET\n"),
        )

    @pytest.mark.parametrize(
        "expires, message",
        [("1", "Request has expired"), ("soon", "Invalid date (should be seconds since epoch): soon")],
    )
    def test_time(self, thing, target, expires, message):
        response = thing.raw.fetch(re.sub(r"Expires=\d+", f"Expires={expires}", target))
        expect.error(response, "AccessDenied", message)

    @pytest.mark.parametrize("name", ["Signature", "Expires"])
    def test_missing_parameters(self, thing, target, name):
        response = thing.raw.fetch(re.sub(rf"(?<=[?&]){name}=[^&]*&?", "", target).rstrip("&"))
        expect.error(response, "AccessDenied", re.compile("^Query-string authentication requires"))

    @pytest.mark.parametrize("name", ["Content-Type", "content-type"])
    def test_a_content_type_in_the_query(self, thing, name):
        """As the JavaScript SDK v2 and boto3 write it."""
        query = [(name, "image/png"), ("Cache-Control", "no-cache")]
        target = presign_v2(thing.raw.signer, "PUT", thing.path("new"), query)
        expect.ok(thing.raw.fetch(target, "PUT", b"data"))
        headers = thing.head("new").headers
        assert headers["content-type"] == "image/png"
        # It is not under the signature, so that anyone could have written it; S3 passes over it.
        assert "cache-control" not in headers
        expect.ok(thing.raw.fetch(target, "PUT", b"data", {"content-type": "image/png"}))
        response = thing.raw.fetch(target, "PUT", b"evil", {"content-type": "text/html"})
        expect.error(response, "SignatureDoesNotMatch")
        response = thing.raw.fetch(target.replace("image%2Fpng", "text%2Fhtml"), "PUT", b"evil")
        expect.error(response, "SignatureDoesNotMatch")
        assert thing.read("new") == b"data"

    def test_a_condition_in_the_query_is_refused(self, thing):
        """It is not under the signature: whoever has the URL could take it out."""
        target = presign_v2(thing.raw.signer, "PUT", thing.path("key"), [("If-None-Match", "*")])
        expect.error(thing.raw.fetch(target, "PUT", b"evil"), "NotImplemented", re.compile("A parameter"))
        assert thing.read("key") == b"data"

    def test_unknown_key(self, thing, target):
        response = thing.raw.fetch(target.replace(ACCESS_KEY, "NOBODY"))
        expect.error(response, "InvalidAccessKeyId", AWSAccessKeyId="NOBODY")

    def test_an_added_subresource(self, thing, target):
        expect.error(thing.raw.fetch(target + "&uploadId=x"), "SignatureDoesNotMatch")

    def test_off(self, make_server):
        server = make_server("--sigv2", "off")
        (server.tree / "bucket").mkdir()
        (server.tree / "bucket" / "key").write_text("data")
        client = boto3_client(server, signature_version="s3")
        url = urlsplit(client.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "key"}, 300))
        response = server.raw.fetch(f"{url.path}?{url.query}")
        expect.error(response, "InvalidRequest", re.compile("is not supported. Please use AWS4-HMAC-SHA256"))
