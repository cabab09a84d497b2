"""GetObjectAttributes."""

import re

import pytest

from support import expect
from support.checksums import checksum, composite
from support.data import PART, pattern
from support.xml import element

ALL = "ETag,Checksum,ObjectParts,StorageClass,ObjectSize"


def attributes(bucket, key: str, names: str | None = ALL, **more: str):
    headers = {} if names is None else {"x-amz-object-attributes": names}
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return bucket.get(key, query={"attributes": ""}, headers=headers)


def test_of_a_plain_object(bucket):
    etag = bucket.put("key", b"data").etag
    response = expect.ok(attributes(bucket, "key"))
    document = response.xml
    assert document.name == "GetObjectAttributesResponse"
    assert document["ETag"] == etag.strip('"'), "the one place where S3 leaves out the quotes"
    assert document["ObjectSize"] == "4"
    assert document["StorageClass"] == "STANDARD"
    assert document.child("Checksum")["ChecksumCRC64NVME"] == checksum("CRC64NVME", b"data")
    assert document.child("Checksum")["ChecksumType"] == "FULL_OBJECT"
    assert "ObjectParts" not in document
    assert response.headers["last-modified"] == bucket.head("key").headers["last-modified"]


@pytest.mark.parametrize(
    "names", [["ETag"], ["ObjectSize"], ["StorageClass"], ["Checksum"], ["ETag", "ObjectSize"]]
)
@pytest.mark.parametrize("joint", [",", ", "])
def test_only_what_is_asked_for(bucket, names, joint):
    bucket.put("key", b"data")
    document = expect.ok(attributes(bucket, "key", joint.join(names))).xml
    assert sorted(document.names()) == sorted(names)


def test_in_several_headers(bucket):
    bucket.put("key", b"data")
    response = bucket.get(
        "key",
        query={"attributes": ""},
        headers=[("x-amz-object-attributes", "ETag"), ("x-amz-object-attributes", "ObjectSize")],
    )
    assert sorted(expect.ok(response).xml.names()) == ["ETag", "ObjectSize"]


class TestParts:
    @pytest.fixture
    def parted(self, bucket):
        self.parts = [pattern(PART, 1), pattern(PART, 2), b"end"]
        upload_id = bucket.create_upload("key", headers={"x-amz-checksum-algorithm": "SHA256"})
        etags = [
            bucket.put_part(
                "key", upload_id, n, part, headers={"x-amz-checksum-sha256": checksum("SHA256", part)}
            ).etag
            for n, part in enumerate(self.parts, 1)
        ]
        listed = [
            element("Part", PartNumber=n, ETag=etag, ChecksumSHA256=checksum("SHA256", part))
            for n, (etag, part) in enumerate(zip(etags, self.parts, strict=True), 1)
        ]
        expect.ok(bucket.complete("key", upload_id, element("CompleteMultipartUpload", *listed).encode()))
        return bucket

    def test_all(self, parted):
        shown = expect.ok(attributes(parted, "key")).xml.child("ObjectParts")
        assert shown["PartsCount"] == "3"
        assert (shown["IsTruncated"], shown["MaxParts"], shown["PartNumberMarker"]) == ("false", "1000", "0")
        assert [(p["PartNumber"], p["Size"], p["ChecksumSHA256"]) for p in shown.all("Part")] == [
            (str(n), str(len(part)), checksum("SHA256", part)) for n, part in enumerate(self.parts, 1)
        ]

    def test_the_checksum_is_without_the_number_of_parts(self, parted):
        shown = expect.ok(attributes(parted, "key")).xml.child("Checksum")
        whole = composite("SHA256", self.parts)
        assert (shown["ChecksumSHA256"], shown["ChecksumType"]) == (whole.split("-")[0], "COMPOSITE")
        head = parted.head("key", headers={"x-amz-checksum-mode": "ENABLED"})
        assert head.headers["x-amz-checksum-sha256"] == whole

    @pytest.mark.parametrize(
        "headers", [{}, {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT"}]
    )
    def test_only_their_number_where_the_checksum_is_of_the_whole(self, bucket, headers):
        bucket.upload("key", [pattern(PART), b"end"], headers=headers)
        shown = expect.ok(attributes(bucket, "key", x_amz_max_parts="1")).xml.child("ObjectParts")
        assert (shown.names(), shown["PartsCount"]) == (["PartsCount"], "2")

    def test_paging(self, parted):
        seen, marker = [], "0"
        for _ in range(3):
            shown = attributes(
                parted, "key", "ObjectParts", x_amz_max_parts="1", x_amz_part_number_marker=marker
            ).xml.child("ObjectParts")
            assert shown["MaxParts"] == "1"
            seen += [p["PartNumber"] for p in shown.all("Part")]
            marker = shown["NextPartNumberMarker"]
            if shown["IsTruncated"] == "false":
                break
        assert seen == ["1", "2", "3"]
        assert shown["IsTruncated"] == "false"

    def test_of_an_object_in_one_piece(self, bucket):
        bucket.put("key", b"data")
        assert "ObjectParts" not in expect.ok(attributes(bucket, "key", "ObjectParts,ETag")).xml


def test_of_a_file(bucket):
    bucket.file("by-hand").write_bytes(b"data")
    document = expect.ok(attributes(bucket, "by-hand")).xml
    assert document["ObjectSize"] == "4"
    assert "Checksum" not in document


class TestErrors:
    @pytest.mark.parametrize("names", [None, ",", ",,"])
    @pytest.mark.usefixtures("no_bucket")
    def test_nothing_asked_for(self, bucket, names):
        """Told once the bucket is found, and before the key is looked for."""
        message = re.compile("x-amz-object-attributes header")
        bucket.put("key", b"data")
        expect.error(attributes(bucket, "key", names), "InvalidRequest", message)
        expect.error(attributes(bucket, "none", names), "InvalidRequest", message)
        headers = {} if names is None else {"x-amz-object-attributes": names}
        response = bucket.raw.get("/no-such-bucket/key", query={"attributes": ""}, headers=headers)
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.parametrize(
        "names, refused",
        [("ETag,Colour", "Colour"), ("etag", "etag"), ("", ""), (",ETag", ""), ("ETag, ,ObjectSize", "")],
    )
    def test_unknown_name(self, bucket, names, refused):
        bucket.put("key", b"data")
        expect.error(
            attributes(bucket, "key", names),
            "InvalidArgument",
            "Invalid attribute name specified.",
            ArgumentName="x-amz-object-attributes",
            ArgumentValue=refused,
        )

    def test_commas_at_the_end(self, bucket):
        bucket.put("key", b"data")
        assert expect.ok(attributes(bucket, "key", "ETag,,")).xml.names() == ["ETag"]

    def test_no_such_version(self, bucket):
        response = bucket.get(
            "none", query={"attributes": "", "versionId": "null"}, headers={"x-amz-object-attributes": ALL}
        )
        expect.error(response, "NoSuchVersion", Key="none", VersionId="null")

    def test_no_such_key(self, bucket):
        expect.error(attributes(bucket, "none"), "NoSuchKey", Key="none")

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_bucket(self, raw):
        response = raw.get(
            "/no-such-bucket/key", query={"attributes": ""}, headers={"x-amz-object-attributes": "ETag"}
        )
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")
