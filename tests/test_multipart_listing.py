"""ListMultipartUploads and ListParts."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote_plus

import pytest

from support import expect
from support.checksums import checksum
from support.model import list_page
from support.xml import Element

KEYS = ["a", "a/b", "a/c", "a0", "b/c/d", "b/c/e", "ü", "z z"]


@pytest.fixture
def uploads(bucket) -> list[tuple[str, str]]:
    """(key, id) pairs in the order of the listing: two uploads of one key, one each of the others."""
    made = [(key, bucket.create_upload(key)) for key in reversed(KEYS)]
    made.append(("a/b", bucket.create_upload("a/b")))
    ids = {key: [upload_id for k, upload_id in made if k == key] for key in KEYS}
    return [(key, upload_id) for key in sorted(KEYS, key=str.encode) for upload_id in ids[key]]


def page(bucket, **query: str) -> Element:
    query = {name.replace("_", "-"): value for name, value in query.items()}
    document = expect.ok(bucket.raw.get(bucket.path(), query={"uploads": "", **query})).xml
    assert document.name == "ListMultipartUploadsResult"
    return document


def entries(document: Element) -> list[tuple[str, str]]:
    return [(unquote_plus(e["Key"]), e["UploadId"]) for e in document.all("Upload")]


class TestUploads:
    def test_all(self, bucket, uploads):
        document = page(bucket)
        assert sorted(entries(document)) == sorted(uploads)
        assert [key for key, _ in entries(document)] == [key for key, _ in uploads]
        assert (document["Bucket"], document["IsTruncated"], document["MaxUploads"]) == (
            bucket.name,
            "false",
            "1000",
        )
        entry = document.all("Upload")[0]
        assert entry["StorageClass"] == "STANDARD"
        assert entry.child("Owner")["ID"] == entry.child("Initiator")["ID"]
        initiated = datetime.fromisoformat(entry["Initiated"])
        assert abs(datetime.now(UTC) - initiated) < timedelta(minutes=1)

    def test_uploads_of_one_key_in_their_order(self, bucket):
        ids = [bucket.create_upload("key") for _ in range(5)]
        assert entries(page(bucket)) == [("key", upload_id) for upload_id in ids]

    @pytest.mark.parametrize("size", range(1, 11))
    def test_paging(self, bucket, uploads, size):
        seen, query = [], {"max_uploads": str(size)}
        for _ in range(20):
            document = page(bucket, **query)
            assert len(entries(document)) <= size
            seen += entries(document)
            if document["IsTruncated"] == "false":
                break
            query["key_marker"] = document["NextKeyMarker"]
            query["upload_id_marker"] = document["NextUploadIdMarker"]
        assert sorted(seen) == sorted(uploads)
        assert len(seen) == len(uploads)

    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    @pytest.mark.parametrize(
        "prefix, delimiter", [("", "/"), ("a/", "/"), ("b", "/"), ("a", ""), ("b/", "d"), ("none", "/")]
    )
    def test_prefixes(self, bucket, uploads, prefix, delimiter, size):
        seen: list[str] = []
        query = {"prefix": prefix, "delimiter": delimiter, "max_uploads": str(size)}
        for _ in range(20):
            document = page(bucket, **query)
            found = [key for key, _ in entries(document)] + [
                e["Prefix"] for e in document.all("CommonPrefixes")
            ]
            assert len(found) <= size
            seen += found
            if document["IsTruncated"] == "false":
                break
            query["key_marker"] = document["NextKeyMarker"]
            query["upload_id_marker"] = document.get("NextUploadIdMarker") or ""
        expected = list_page(KEYS, prefix, delimiter, "", 1000)
        both = [key for key in expected.keys for _ in range(2 if key == "a/b" else 1)]
        assert sorted(seen) == sorted(both + expected.prefixes)

    def test_key_marker(self, bucket, uploads):
        assert [key for key, _ in entries(page(bucket, key_marker="a/b"))] == [
            "a/c",
            "a0",
            "b/c/d",
            "b/c/e",
            "z z",
            "ü",
        ]

    def test_markers_of_the_next_page(self, bucket, uploads):
        """Always there: of the last upload that is listed, also if it is the last of all, and else empty."""
        names = ["Bucket", "KeyMarker", "UploadIdMarker", "NextKeyMarker", "NextUploadIdMarker"]
        document = page(bucket)
        assert document.names()[:5] == names
        assert (document["NextKeyMarker"], document["NextUploadIdMarker"]) == uploads[-1]
        assert "Prefix" not in document
        document = page(bucket, max_uploads="2")
        assert document["IsTruncated"] == "true"
        assert (document["NextKeyMarker"], document["NextUploadIdMarker"]) == uploads[1]
        document = page(bucket, delimiter="/", prefix="b/", max_uploads="1")
        assert document.names()[:7] == [*names, "Delimiter", "Prefix"]
        assert [entry["Prefix"] for entry in document.all("CommonPrefixes")] == ["b/c/"]
        for query in ({"prefix": "none"}, {"prefix": "b/", "delimiter": "/"}, {"key_marker": "ü"}):
            document = page(bucket, **query)
            assert entries(document) == []
            assert (document["NextKeyMarker"], document["NextUploadIdMarker"]) == ("", "")
            assert document["IsTruncated"] == "false"

    @pytest.mark.parametrize("marker", ["b/c/", "b/c/d", "b/c/d/x", "b/c"])
    def test_a_marker_in_a_group_is_behind_all_of_it(self, bucket, marker):
        for key in ("b/c/d", "b/c/e", "b/f", "b/g/h"):
            bucket.create_upload(key)
        document = page(bucket, prefix="b/", delimiter="/", key_marker=marker)
        shown = [entry["Prefix"] for entry in document.all("CommonPrefixes")]
        assert shown == (["b/c/", "b/g/"] if marker == "b/c" else ["b/g/"])
        assert [key for key, _ in entries(document)] == ["b/f"]

    def test_a_page_that_ends_with_a_group_has_a_next(self, bucket, uploads):
        """Amazon's own marker is empty there, so that no client gets further."""
        document = page(bucket, delimiter="/", max_uploads="2")
        assert [entry["Prefix"] for entry in document.all("CommonPrefixes")] == ["a/"]
        assert (document["IsTruncated"], document["NextKeyMarker"], document["NextUploadIdMarker"]) == (
            "true",
            "a/",
            "",
        )

    def test_an_id_marker_that_is_none(self, bucket, uploads):
        """Beside a key marker it must be an upload of that key; one that is gone is still a position."""
        (_, first), (key, second) = uploads[:2]
        for wrong in (first, "nonsense", "no/id", "0" * 47):
            response = bucket.raw.get(
                bucket.path(), query={"uploads": "", "key-marker": key, "upload-id-marker": wrong}
            )
            expect.error(
                response,
                "InvalidArgument",
                "Invalid uploadId marker",
                ArgumentName="upload-id-marker",
                ArgumentValue=wrong,
            )
        expect.ok(bucket.abort(key, second), 204)
        assert entries(page(bucket, key_marker=key, upload_id_marker=second)) == uploads[2:]

    def test_id_marker_without_key_marker(self, bucket, uploads):
        assert len(entries(page(bucket, upload_id_marker=uploads[3][1]))) == len(uploads)

    def test_url_encoding(self, bucket, uploads):
        document = page(bucket, encoding_type="url", prefix="z ")
        assert (document["EncodingType"], document["Prefix"]) == ("url", "z+")
        assert document.child("Upload")["Key"] == "z+z"

    def test_url_is_echoed_as_it_was_sent(self, bucket, uploads):
        document = page(bucket, encoding_type="URL", prefix="z ")
        assert (document["EncodingType"], document.child("Upload")["Key"]) == ("URL", "z+z")
        names = document.names()
        assert names[names.index("MaxUploads") + 1] == "EncodingType"

    @pytest.mark.parametrize("value, shown", [("0", 0), ("1001", 9), ("", 9)])
    def test_max_uploads(self, bucket, uploads, value, shown):
        document = page(bucket, max_uploads=value)
        assert len(entries(document)) == shown
        assert document["IsTruncated"] == "false"

    @pytest.mark.parametrize("value", ["-1", "many", "2147483648"])
    def test_bad_max_uploads(self, bucket, value):
        response = bucket.raw.get(bucket.path(), query={"uploads": "", "max-uploads": value})
        expect.error(
            response,
            "InvalidArgument",
            re.compile("integer"),
            ArgumentName="max-uploads",
            ArgumentValue=value,
        )

    def test_checksum(self, bucket):
        bucket.create_upload("key", headers={"x-amz-checksum-algorithm": "SHA256"})
        entry = page(bucket).child("Upload")
        assert (entry["ChecksumAlgorithm"], entry["ChecksumType"]) == ("SHA256", "COMPOSITE")

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_bucket(self, raw):
        response = raw.get("/no-such-bucket", query={"uploads": ""})
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")


class TestParts:
    NUMBERS = [1, 2, 5, 100, 10000]

    @pytest.fixture
    def upload_id(self, bucket) -> str:
        upload_id = bucket.create_upload("key")
        for number in reversed(self.NUMBERS):
            expect.ok(bucket.put_part("key", upload_id, number, f"part {number}".encode()))
        return upload_id

    def page(self, bucket, upload_id: str, **query: str) -> Element:
        query = {name.replace("_", "-"): value for name, value in query.items()}
        document = expect.ok(bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id, **query})).xml
        assert document.name == "ListPartsResult"
        return document

    def numbers(self, document: Element) -> list[int]:
        return [int(part["PartNumber"]) for part in document.all("Part")]

    def test_all(self, bucket, upload_id):
        document = self.page(bucket, upload_id)
        assert (document["Bucket"], document["Key"], document["UploadId"]) == (bucket.name, "key", upload_id)
        assert (document["IsTruncated"], document["MaxParts"], document["PartNumberMarker"]) == (
            "false",
            "1000",
            "0",
        )
        assert document["StorageClass"] == "STANDARD"
        assert document.child("Owner")["ID"] == document.child("Initiator")["ID"]
        assert self.numbers(document) == self.NUMBERS
        part = document.all("Part")[2]
        assert part["Size"] == "6"
        assert part["ETag"] == bucket.put_part("key", upload_id, 5, b"part 5").etag
        assert re.match(r"\d{4}-\d\d-\d\dT", part["LastModified"])

    @pytest.mark.parametrize("size", range(1, 7))
    def test_paging(self, bucket, upload_id, size):
        seen, marker = [], "0"
        for _ in range(10):
            document = self.page(bucket, upload_id, max_parts=str(size), part_number_marker=marker)
            assert document["PartNumberMarker"] == marker
            page = self.numbers(document)
            assert len(page) <= size
            seen += page
            if document["IsTruncated"] == "false":
                break
            marker = document["NextPartNumberMarker"]
            assert marker == str(page[-1])
        assert seen == self.NUMBERS

    @pytest.mark.parametrize(
        "marker, expected",
        [
            ("0", NUMBERS),
            ("1", [2, 5, 100, 10000]),
            ("3", [5, 100, 10000]),
            ("9999", [10000]),
            ("10000", []),
            ("2147483647", []),
        ],
    )
    def test_marker(self, bucket, upload_id, marker, expected):
        assert self.numbers(self.page(bucket, upload_id, part_number_marker=marker)) == expected

    def test_none_at_all(self, bucket):
        assert self.numbers(self.page(bucket, bucket.create_upload("key"))) == []

    def test_max_parts_0(self, bucket, upload_id):
        document = self.page(bucket, upload_id, max_parts="0")
        assert self.numbers(document) == []

    @pytest.mark.parametrize("name", ["max-parts", "part-number-marker"])
    @pytest.mark.parametrize("value", ["-1", "x", "2147483648"])
    def test_garbage(self, bucket, upload_id, name, value):
        response = bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id, name: value})
        expect.error(
            response, "InvalidArgument", re.compile("integer"), ArgumentName=name, ArgumentValue=value
        )

    def test_a_replaced_part_is_listed_once(self, bucket, upload_id):
        etag = bucket.put_part("key", upload_id, 2, b"another length").etag
        document = self.page(bucket, upload_id)
        assert self.numbers(document) == self.NUMBERS
        assert (document.all("Part")[1]["ETag"], document.all("Part")[1]["Size"]) == (etag, "14")

    def test_checksums(self, bucket):
        upload_id = bucket.create_upload("key", headers={"x-amz-checksum-algorithm": "SHA256"})
        bucket.put_part(
            "key", upload_id, 1, b"data", headers={"x-amz-checksum-sha256": checksum("SHA256", b"data")}
        )
        document = self.page(bucket, upload_id)
        assert (document["ChecksumAlgorithm"], document["ChecksumType"]) == ("SHA256", "COMPOSITE")
        assert document.child("Part")["ChecksumSHA256"] == checksum("SHA256", b"data")

    def test_no_checksums_where_none_was_chosen(self, bucket):
        """Whatever the parts came with."""
        upload_id = bucket.create_upload("key")
        for number, algorithm in ((1, "CRC32"), (2, "CRC64NVME")):
            headers = {f"x-amz-checksum-{algorithm.lower()}": checksum(algorithm, b"data")}
            expect.ok(bucket.put_part("key", upload_id, number, b"data", headers=headers))
        expect.ok(bucket.put_part("key", upload_id, 3, b"data"))
        document = self.page(bucket, upload_id)
        assert "ChecksumAlgorithm" not in document
        for part in document.all("Part"):
            assert sorted(part.names()) == ["ETag", "LastModified", "PartNumber", "Size"]

    @pytest.mark.usefixtures("no_bucket")
    def test_errors(self, bucket, upload_id):
        expect.error(bucket.raw.get(bucket.path("other"), query={"uploadId": upload_id}), "NoSuchUpload")
        expect.error(bucket.raw.get(bucket.path("key"), query={"uploadId": "nonsense"}), "NoSuchUpload")
        response = bucket.raw.get("/no-such-bucket/key", query={"uploadId": upload_id})
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")
