"""CopyObject. Copies into parts: test_upload_part_copy.py."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import expect
from support.checksums import checksum, header
from support.data import SYSTEM_HEADERS, pattern


@pytest.fixture
def source(bucket):
    """An object to copy from, with everything attached that there is."""
    return bucket.put("source", pattern(100_000), headers={**SYSTEM_HEADERS, "x-amz-meta-a": "1"})


def copy(bucket, key: str, source: str | None = None, target=None, **headers: str):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    source = f"{bucket.name}/source" if source is None else source
    return (target or bucket).raw.put(
        (target or bucket).path(key), headers={"x-amz-copy-source": source, **names}
    )


class TestCopy:
    @pytest.mark.parametrize("prefix", ["", "/"])
    def test_within_a_bucket(self, bucket, source, prefix):
        response = expect.ok(copy(bucket, "deep/copy", f"{prefix}{bucket.name}/source"))
        result = response.xml
        assert result.name == "CopyObjectResult"
        assert result["ETag"] == source.etag
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", result["LastModified"])
        got = bucket.get("deep/copy")
        assert got.body == pattern(100_000)
        assert got.etag == source.etag
        assert got.headers["x-amz-meta-a"] == "1"
        for name, value in SYSTEM_HEADERS.items():
            assert got.headers[name] == value
        assert bucket.file("deep/copy").read_bytes() == pattern(100_000)

    def test_is_not_a_link(self, bucket, source):
        expect.ok(copy(bucket, "copy"))
        bucket.file("source").write_bytes(b"edited in place")
        assert bucket.read("copy") == pattern(100_000)

    def test_to_another_bucket(self, make_bucket):
        one, two = make_bucket(), make_bucket()
        one.put("source", b"data")
        expect.ok(copy(one, "copy", target=two))
        assert two.read("copy") == b"data"
        assert one.read("source") == b"data"

    def test_over_an_object(self, bucket, source):
        bucket.put("copy", b"old", headers={"x-amz-meta-old": "1"})
        expect.ok(copy(bucket, "copy"))
        got = bucket.get("copy")
        assert got.body == pattern(100_000)
        assert "x-amz-meta-old" not in got.headers

    @pytest.mark.parametrize("size", [0, 1, (5 << 20) + 1])
    def test_sizes(self, bucket, size):
        bucket.put("source", pattern(size))
        expect.ok(copy(bucket, "copy"))
        assert bucket.read("copy") == pattern(size)

    @pytest.mark.parametrize(
        "key", ["with space", "plus+sign", "100%25 %", "a//b", "ünï", "q?versionId=x", "#hash"]
    )
    def test_odd_source_keys(self, bucket, key):
        bucket.put(key, b"data")
        expect.ok(copy(bucket, "copy", bucket.path(key)))
        assert bucket.read("copy") == b"data"

    def test_of_a_multipart_object(self, bucket):
        """The copy is one object, with a plain MD5 for its ETag."""
        parts = [pattern(5 << 20), b"end"]
        bucket.upload("source", parts)
        expect.ok(copy(bucket, "copy"))
        assert bucket.read("copy") == b"".join(parts)
        assert re.fullmatch('"[0-9a-f]{32}"', bucket.head("copy").etag)

    def test_of_a_file(self, bucket):
        """A file that no PUT made has no MD5 until it is copied."""
        bucket.file("source").write_bytes(b"by hand")
        expect.ok(copy(bucket, "copy"))
        got = bucket.get("copy", headers={"x-amz-checksum-mode": "ENABLED"})
        assert got.body == b"by hand"
        assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"by hand")

    def test_null_version(self, bucket, source):
        expect.ok(copy(bucket, "copy", f"{bucket.name}/source?versionId=null"))
        assert bucket.exists("copy")


class TestMetadata:
    def test_replace(self, bucket, source):
        expect.ok(
            copy(bucket, "copy", x_amz_metadata_directive="REPLACE", x_amz_meta_b="2", content_type="text/b")
        )
        head = bucket.head("copy")
        assert head.headers.starting("x-amz-meta-") == {"x-amz-meta-b": "2"}
        assert head.headers["content-type"] == "text/b"
        assert "cache-control" not in head.headers

    def test_copy_ignores_what_the_request_says(self, bucket, source):
        expect.ok(copy(bucket, "copy", x_amz_metadata_directive="COPY", x_amz_meta_b="2"))
        assert bucket.head("copy").headers.starting("x-amz-meta-") == {"x-amz-meta-a": "1"}

    def test_onto_itself(self, bucket, source):
        expect.ok(copy(bucket, "source", x_amz_metadata_directive="REPLACE", x_amz_meta_b="2"))
        got = bucket.get("source")
        assert got.headers.starting("x-amz-meta-") == {"x-amz-meta-b": "2"}
        assert got.body == pattern(100_000)
        assert got.etag == source.etag

    def test_onto_itself_without_a_change(self, bucket, source):
        expect.error(
            copy(bucket, "source"),
            "InvalidRequest",
            re.compile(
                "^This copy request is illegal because it is "
                "trying to copy an object to itself without changing the object's metadata"
            ),
        )
        assert bucket.head("source").headers["x-amz-meta-a"] == "1"

    @pytest.mark.parametrize("directive", ["COPY", "REPLACE", None])
    def test_where_it_leads_is_an_object_s_own(self, bucket, directive):
        """The request's redirect, with either directive, and never the source's."""
        name = "x-amz-website-redirect-location"
        bucket.put("source", b"data", headers={name: "/there", "x-amz-meta-a": "1"})
        headers = {"x_amz_metadata_directive": directive} if directive else {}
        expect.ok(copy(bucket, "plain", **headers))
        assert name not in bucket.head("plain").headers
        expect.ok(copy(bucket, "led", **headers, x_amz_website_redirect_location="https://else.where/"))
        head = bucket.head("led").headers
        assert head[name] == "https://else.where/"
        assert head.get("x-amz-meta-a") == (None if directive == "REPLACE" else "1")
        response = copy(bucket, "bad", **headers, x_amz_website_redirect_location="gopher:x")
        expect.error(response, "InvalidRedirectLocation")
        assert not bucket.exists("bad")

    def test_onto_itself_with_a_redirect(self, bucket, source):
        """To name one is a change, be it the same."""
        for _ in range(2):
            expect.ok(copy(bucket, "source", x_amz_website_redirect_location="/there"))
            head = bucket.head("source").headers
            assert (head["x-amz-website-redirect-location"], head["x-amz-meta-a"]) == ("/there", "1")

    def test_unknown_directive(self, bucket, source):
        response = copy(bucket, "copy", x_amz_metadata_directive="MERGE")
        expect.error(
            response,
            "InvalidArgument",
            re.compile("directive"),
            ArgumentName="x-amz-metadata-directive",
            ArgumentValue="MERGE",
        )
        assert not bucket.exists("copy")


class TestChecksums:
    @pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
    def test_another_algorithm(self, bucket, source, algorithm):
        """Calculated over the bytes, also when an object is copied onto itself."""
        for key in ("copy", "source"):
            result = expect.ok(copy(bucket, key, x_amz_checksum_algorithm=algorithm)).xml
            expected = checksum(algorithm, pattern(100_000))
            assert result[f"Checksum{algorithm}"] == expected
            assert result["ChecksumType"] == "FULL_OBJECT"
            head = bucket.head(key, headers={"x-amz-checksum-mode": "ENABLED"})
            assert head.headers[header(algorithm)] == expected

    def test_that_of_the_source(self, bucket):
        bucket.put("source", b"data", headers={"x-amz-checksum-sha1": checksum("SHA1", b"data")})
        result = expect.ok(copy(bucket, "copy")).xml
        assert result["ChecksumSHA1"] == checksum("SHA1", b"data")

    def test_unknown_algorithm(self, bucket, source):
        response = copy(bucket, "copy", x_amz_checksum_algorithm="ROT13")
        expect.error(response, "InvalidRequest", re.compile("^Checksum algorithm provided is unsupported"))


class TestErrors:
    def test_no_such_source(self, bucket):
        expect.error(copy(bucket, "copy", f"{bucket.name}/none"), "NoSuchKey", Key="none")
        assert bucket.is_untouched()

    def test_a_source_that_comes_and_goes(self, bucket):
        """It is the source that was missing, though it may be there again when the error is written."""
        missed, stop = 0, threading.Event()

        def come_and_go():
            with bucket.raw.connect() as connection:
                while not stop.is_set():
                    bucket.put("source", connection=connection)
                    expect.ok(bucket.delete("source", connection=connection), 204)

        with ThreadPoolExecutor(1) as pool, bucket.raw.connect() as connection:
            working = pool.submit(come_and_go)
            try:
                for _ in range(300):
                    headers = {"x-amz-copy-source": f"{bucket.name}/source"}
                    response = bucket.raw.put(bucket.path("copy"), headers=headers, connection=connection)
                    if response.status != 200:
                        expect.error(response, "NoSuchKey", Key="source")
                        missed += 1
            finally:
                stop.set()
                working.result(20)
        assert missed > 0

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_source_bucket(self, bucket):
        response = copy(bucket, "copy", "no-such-bucket/x")
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_target_bucket(self, bucket, source):
        response = bucket.raw.put(
            "/no-such-bucket/copy", headers={"x-amz-copy-source": f"{bucket.name}/source"}
        )
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.parametrize(
        "value, message",
        [
            ("A_B/c", "Invalid copy source bucket name"),
            ("bucket/%zz", "Invalid copy source encoding"),
            ("bucket/k?versionId=", "Version id cannot be the empty string"),
        ],
    )
    def test_bad_source(self, bucket, value, message):
        expect.error(
            copy(bucket, "copy", value),
            "InvalidArgument",
            message,
            ArgumentName="x-amz-copy-source",
            ArgumentValue=value,
        )

    @pytest.mark.parametrize("value", ["no-key", "no-key/"])
    def test_source_without_a_key(self, bucket, value):
        """Where the value belongs, S3 has the name."""
        expect.error(
            copy(bucket, "copy", value),
            "InvalidArgument",
            "Invalid copy source object key",
            ArgumentName="x-amz-copy-source",
            ArgumentValue="x-amz-copy-source",
        )

    def test_an_access_point(self, bucket):
        response = copy(bucket, "copy", "arn:aws:s3:us-east-1:123456789012:accesspoint/a/object/b")
        expect.error(
            response,
            "NotImplemented",
            re.compile("A header you provided implies functionality"),
            Header="x-amz-copy-source",
        )

    def test_own_directory_as_source(self, bucket):
        bucket.put("a", b"1")
        bucket.put("a", b"2")
        expect.error(copy(bucket, "copy", f"{bucket.name}/.slipway/staging"), "NoSuchKey")

    @pytest.mark.parametrize(
        "name, value",
        [
            ("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
            ("x-amz-server-side-encryption", "AES256"),
        ],
    )
    def test_headers_that_ask_for_more(self, bucket, source, name, value):
        response = copy(bucket, "copy", **{name: value})
        expect.error(response, "NotImplemented", re.compile("A header you provided"), Header=name)
        assert not bucket.exists("copy")
