"""XML of more than a mebibyte, in requests and in answers: it is read and written piece by piece."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import checksum, content_md5, header
from support.data import MIB
from support.xml import element, escape

COUNT = 1000
# As long as keys can be, and each "&" takes five bytes in XML.
FOLDER = "/".join(["&" * 200] * 4)
KEYS = [f"{FOLDER}/{n:04}{'k' * 200}" for n in range(COUNT)]


@pytest.fixture
def long(bucket) -> Bucket:
    """1000 objects, put there by hand."""
    bucket.file(FOLDER).mkdir(parents=True)
    for key in KEYS:
        bucket.file(key).write_bytes(b"x")
    return bucket


def delete_document(keys: list[str]) -> bytes:
    body = element("Delete", *(element("Object", Key=key) for key in keys)).encode()
    assert len(body) > MIB
    return body


def delete(bucket: Bucket, body: bytes, headers: dict[str, str]):
    return bucket.raw.post(bucket.path(), body, query={"delete": ""}, headers=headers)


class TestListings:
    @pytest.mark.parametrize(
        "query", [{}, {"list-type": "2"}, {"versions": ""}], ids=["v1", "v2", "versions"]
    )
    def test_objects(self, long, query):
        response = expect.ok(long.raw.get(long.path(), query=query))
        assert len(response.body) > MIB
        # Nobody knew how long it would be when it was begun.
        assert response.headers["transfer-encoding"] == "chunked"
        entries = response.xml.all("Version" if "versions" in query else "Contents")
        assert [entry["Key"] for entry in entries] == KEYS
        assert response.xml["IsTruncated"] == "false"

    def test_a_shorter_one_has_a_length(self, long):
        response = expect.ok(long.raw.get(long.path(), query={"max-keys": "100"}))
        assert int(response.headers["content-length"]) == len(response.body)

    def test_common_prefixes(self, bucket):
        for n in range(COUNT):
            bucket.file(f"{n:03}{'&' * 240}").mkdir()
            bucket.file(f"{n:03}{'&' * 240}/x").write_bytes(b"")
        response = expect.ok(bucket.raw.get(bucket.path(), query={"list-type": "2", "delimiter": "/"}))
        assert len(response.body) > MIB
        prefixes = [entry["Prefix"] for entry in response.xml.all("CommonPrefixes")]
        assert prefixes == [f"{n:03}{'&' * 240}/" for n in range(COUNT)]

    def test_uploads(self, bucket):
        keys = [f"{FOLDER}/{n:04}" for n in range(300)]
        ids = {bucket.create_upload(key): key for key in keys}
        response = expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""}))
        assert len(response.body) > MIB
        assert {entry["UploadId"]: entry["Key"] for entry in response.xml.all("Upload")} == ids

    def test_over_one_connection(self, long):
        with long.raw.connect() as connection:
            for _ in range(3):
                connection.send(long.raw.prepare("GET", long.path()).bytes)
                assert len(expect.ok(connection.response()).xml.all("Contents")) == COUNT

    def test_a_reader_that_goes_away(self, long):
        for _ in range(5):
            with long.raw.connect() as connection:
                connection.send(long.raw.prepare("GET", long.path()).bytes)
                assert connection.head().status == 200
        assert long.head(KEYS[0]).status == 200


class TestDeleteObjects:
    def test_all(self, long):
        body = delete_document(KEYS)
        response = expect.ok(delete(long, body, {"content-md5": content_md5(body)}))
        assert [entry["Key"] for entry in response.xml.all("Deleted")] == KEYS
        assert long.is_untouched()

    @pytest.mark.parametrize("algorithm", ["CRC32", "SHA256"])
    def test_with_a_checksum(self, long, algorithm):
        body = delete_document(KEYS)
        expect.ok(delete(long, body, {header(algorithm): checksum(algorithm, body)}))
        assert long.is_untouched()

    @pytest.mark.parametrize(
        "headers",
        [{"content-md5": content_md5(b"other")}, {"x-amz-checksum-crc32": checksum("CRC32", b"other")}],
        ids=["MD5", "CRC32"],
    )
    def test_with_another_digest(self, long, headers):
        """Nothing is deleted before all has been read and verified."""
        response = delete(long, delete_document(KEYS), headers)
        expect.error(response, "BadDigest", re.compile("did not match"))
        assert len(long.keys()) == COUNT

    def test_with_another_signature(self, long):
        body = delete_document(KEYS)
        request = long.raw.prepare(
            "POST", long.path(), body=body, query={"delete": ""}, headers={"content-md5": content_md5(body)}
        )
        changed = body.replace(b"0999k", b"0999x")
        assert len(changed) == len(body)
        with long.raw.connect() as connection:
            connection.send(request.head + changed)
            expect.error(connection.response(), "XAmzContentSHA256Mismatch")
        assert len(long.keys()) == COUNT

    @pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
    def test_malformed(self, long, at):
        body = delete_document(KEYS)
        middle = body.index(b"<Object>", int(at * body.rindex(b"<Object>")))
        body = body[:middle] + b"<Object><Key></Object>" + body[middle:]
        expect.error(delete(long, body, {"content-md5": content_md5(body)}), "MalformedXML")
        assert len(long.keys()) == COUNT

    def test_a_client_that_goes_away(self, long):
        body = delete_document(KEYS)
        request = long.raw.prepare(
            "POST", long.path(), body=body, query={"delete": ""}, headers={"content-md5": content_md5(body)}
        )
        with long.raw.connect() as connection:
            connection.send(request.head + body[:-1])
        assert len(long.keys()) == COUNT

    def test_byte_by_byte(self, long):
        """A byte order mark in the first pieces is understood, and so is the rest."""
        body = "\ufeff".encode() + delete_document(KEYS)
        request = long.raw.prepare(
            "POST", long.path(), body=body, query={"delete": ""}, headers={"content-md5": content_md5(body)}
        )
        with long.raw.connect() as connection:
            connection.send(request.head)
            for at in range(5):
                connection.send(body[at : at + 1])
            connection.send(body[5:])
            expect.ok(connection.response())
        assert long.is_untouched()

    def test_more_at_once_than_take_turns(self, bucket):
        """More than LARGE_DOCUMENTS_MAX wait for each other, and none is lost."""
        # Long by what is between few keys: they wait for documents, not for deletes.
        padding = ["<!--" + "-x" * 60 + "-->"] * 9000
        body = element("Delete", *(element("Object", Key=key) for key in KEYS[:10]), *padding).encode()
        assert len(body) > MIB
        headers = {"content-md5": content_md5(body)}
        with ThreadPoolExecutor(40) as pool:
            for response in pool.map(lambda _: delete(bucket, body, headers), range(40)):
                assert len(expect.ok(response).xml.all("Deleted")) == 10


def test_complete_upload(bucket):
    """10,000 parts are named, of which one is there."""
    upload_id = bucket.create_upload("key")
    etag = expect.ok(bucket.put_part("key", upload_id, 1, b"data")).etag
    part = "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag>{}</Part>"
    padding = "<!--" + "-x" * 60 + "-->"
    parts = [part.format(n, escape(etag), padding) for n in range(1, 10_001)]
    body = element("CompleteMultipartUpload", *parts).encode()
    assert len(body) > MIB
    expect.error(bucket.complete("key", upload_id, body), "InvalidPart", PartNumber="2")
    padded = element("CompleteMultipartUpload", *[padding] * 10_000, parts[0]).encode()
    expect.ok(bucket.complete("key", upload_id, padded))
    assert bucket.read("key") == b"data"
