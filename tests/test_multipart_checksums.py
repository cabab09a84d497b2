"""Checksums of uploads in parts: composite and of the whole object."""

import re

import pytest

from support import expect
from support.checksums import ALGORITHMS, COMPOSITE, FULL_OBJECT, checksum, composite, header
from support.data import PART, pattern
from support.xml import element

PARTS = [pattern(PART, 1), pattern(PART, 2), b"the end"]
WHOLE = b"".join(PARTS)


def create(bucket, algorithm: str, kind: str | None = None) -> str:
    headers = {"x-amz-checksum-algorithm": algorithm}
    if kind:
        headers["x-amz-checksum-type"] = kind
    response = expect.ok(bucket.raw.post(bucket.path("key"), query={"uploads": ""}, headers=headers))
    assert response.headers["x-amz-checksum-algorithm"] == algorithm
    assert response.headers["x-amz-checksum-type"] == (
        kind or ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")
    )
    return response.xml["UploadId"]


def put_parts(bucket, upload_id: str, algorithm: str, parts: list[bytes] = PARTS) -> list[str]:
    etags = []
    for number, part in enumerate(parts, 1):
        value = checksum(algorithm, part)
        response = expect.ok(
            bucket.put_part("key", upload_id, number, part, headers={header(algorithm): value})
        )
        assert response.headers[header(algorithm)] == value
        etags.append(response.etag)
    return etags


def document(etags: list[str], algorithm: str, parts: list[bytes] = PARTS) -> bytes:
    return element(
        "CompleteMultipartUpload",
        *[
            element("Part", PartNumber=n, ETag=etag, **{f"Checksum{algorithm}": checksum(algorithm, part)})
            for n, (etag, part) in enumerate(zip(etags, parts, strict=True), 1)
        ],
    ).encode()


def check(bucket, result, algorithm: str, value: str, kind: str) -> None:
    """Complete, HEAD, GET and the attributes all say the same."""
    assert result[f"Checksum{algorithm}"] == value
    assert result["ChecksumType"] == kind
    for method in ("HEAD", "GET"):
        response = bucket.raw.request(method, bucket.path("key"), headers={"x-amz-checksum-mode": "ENABLED"})
        assert response.headers[header(algorithm)] == value
        assert response.headers["x-amz-checksum-type"] == kind
    listed = bucket.page().child("Contents")
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"]) == (algorithm, kind)
    attributes = bucket.get(
        "key", query={"attributes": ""}, headers={"x-amz-object-attributes": "Checksum"}
    ).xml
    shown = attributes.child("Checksum")
    assert shown[f"Checksum{algorithm}"] == value.split("-")[0] or shown[f"Checksum{algorithm}"] == value
    assert shown["ChecksumType"] == kind


@pytest.mark.parametrize("algorithm", COMPOSITE)
def test_composite(bucket, algorithm):
    upload_id = create(bucket, algorithm)
    etags = put_parts(bucket, upload_id, algorithm)
    result = expect.ok(bucket.complete("key", upload_id, document(etags, algorithm))).xml
    check(bucket, result, algorithm, composite(algorithm, PARTS), "COMPOSITE")
    assert bucket.read("key") == WHOLE


@pytest.mark.parametrize("algorithm", FULL_OBJECT)
def test_full_object(bucket, algorithm):
    upload_id = create(bucket, algorithm, "FULL_OBJECT")
    etags = put_parts(bucket, upload_id, algorithm)
    value = checksum(algorithm, WHOLE)
    result = expect.ok(
        bucket.complete(
            "key",
            upload_id,
            document(etags, algorithm),
            headers={header(algorithm): value, "x-amz-checksum-type": "FULL_OBJECT"},
        )
    ).xml
    check(bucket, result, algorithm, value, "FULL_OBJECT")


def test_by_default(bucket):
    """A client that says nothing gets CRC64NVME of the whole object."""
    result = bucket.upload("key", PARTS).xml
    check(bucket, result, "CRC64NVME", checksum("CRC64NVME", WHOLE), "FULL_OBJECT")


@pytest.mark.parametrize("algorithm", FULL_OBJECT)
def test_full_object_with_parts_that_say_nothing(bucket, algorithm):
    upload_id = create(bucket, algorithm, "FULL_OBJECT")
    etags = [expect.ok(bucket.put_part("key", upload_id, n, part)).etag for n, part in enumerate(PARTS, 1)]
    result = expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1)))).xml
    check(bucket, result, algorithm, checksum(algorithm, WHOLE), "FULL_OBJECT")


@pytest.mark.parametrize("sizes", [[PART + 7, PART, 3], [PART, PART + 7, 3]])
def test_full_object_of_unequal_parts(bucket, sizes):
    parts = [pattern(size, n) for n, size in enumerate(sizes)]
    upload_id = create(bucket, "CRC64NVME")
    etags = put_parts(bucket, upload_id, "CRC64NVME", parts)
    expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1))))
    head = bucket.head("key", headers={"x-amz-checksum-mode": "ENABLED"})
    assert head.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"".join(parts))


@pytest.mark.parametrize(
    "algorithm, kind",
    [("CRC64NVME", "COMPOSITE")] + [(name, "FULL_OBJECT") for name in ALGORITHMS if name not in FULL_OBJECT],
)
def test_impossible_combinations(bucket, algorithm, kind):
    response = bucket.raw.post(
        bucket.path("key"),
        query={"uploads": ""},
        headers={"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind},
    )
    expect.error(
        response,
        "InvalidRequest",
        f"The {kind} checksum type cannot be used with the {algorithm.lower()} checksum algorithm.",
    )


@pytest.mark.parametrize(
    "headers, message",
    [
        ({"x-amz-checksum-type": "FULL_OBJECT"}, "can only be used with the x-amz-checksum-algorithm header"),
        ({"x-amz-checksum-algorithm": "ROT13"}, "Checksum algorithm provided is unsupported"),
        ({"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "HALF"}, "x-amz-checksum-type"),
    ],
)
def test_bad_creations(bucket, headers, message):
    response = bucket.raw.post(bucket.path("key"), query={"uploads": ""}, headers=headers)
    expect.error(response, "InvalidRequest", re.compile(message))


class TestParts:
    def test_another_algorithm(self, bucket):
        upload_id = create(bucket, "SHA256")
        response = bucket.put_part(
            "key", upload_id, 1, b"data", headers={"x-amz-checksum-crc32": checksum("CRC32", b"data")}
        )
        expect.error(
            response,
            "InvalidRequest",
            "Checksum Type mismatch occurred, expected checksum Type: sha256, actual checksum Type: crc32",
        )

    def test_none_where_one_is_needed(self, bucket):
        upload_id = create(bucket, "SHA256")
        response = bucket.put_part("key", upload_id, 1, b"data")
        expect.error(
            response,
            "InvalidRequest",
            "Checksum Type mismatch occurred, expected checksum Type: sha256, actual checksum Type: null",
        )

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_wrong_value(self, bucket, algorithm):
        upload_id = create(bucket, algorithm)
        response = bucket.put_part(
            "key", upload_id, 1, b"data", headers={header(algorithm): checksum(algorithm, b"other")}
        )
        expect.error(
            response, "BadDigest", f"The {algorithm} you specified did not match the calculated checksum."
        )


class TestComplete:
    def test_wrong_checksum_of_a_part(self, bucket):
        upload_id = create(bucket, "SHA256")
        etags = put_parts(bucket, upload_id, "SHA256", [b"data"])
        response = bucket.complete("key", upload_id, document(etags, "SHA256", [b"other"]))
        expect.error(response, "InvalidPart", PartNumber="1")
        assert bucket.is_untouched()

    def test_garbage_for_a_checksum(self, bucket):
        upload_id = create(bucket, "SHA256")
        etags = put_parts(bucket, upload_id, "SHA256", [b"data"])
        part = element("Part", PartNumber=1, ETag=etags[0], ChecksumSHA256="garbage")
        response = bucket.complete("key", upload_id, element("CompleteMultipartUpload", part).encode())
        expect.error(response, "InvalidPart", PartNumber="1")

    @pytest.mark.parametrize(
        "algorithm, kind", [("CRC32", "FULL_OBJECT"), ("CRC64NVME", "FULL_OBJECT"), ("SHA256", "COMPOSITE")]
    )
    def test_wrong_checksum_of_the_whole(self, bucket, algorithm, kind):
        upload_id = create(bucket, algorithm, kind)
        etags = put_parts(bucket, upload_id, algorithm, [b"data"])
        wrong = checksum(algorithm, b"other") + ("-1" if kind == "COMPOSITE" else "")
        response = bucket.complete(
            "key",
            upload_id,
            document(etags, algorithm, [b"data"]),
            headers={header(algorithm): wrong, "x-amz-checksum-type": kind},
        )
        expect.error(response, "BadDigest", re.compile("did not match the calculated checksum"))
        assert bucket.is_untouched()

    def test_another_type_than_the_upload(self, bucket):
        upload_id = create(bucket, "CRC32", "COMPOSITE")
        etags = put_parts(bucket, upload_id, "CRC32", [b"data"])
        response = bucket.complete(
            "key",
            upload_id,
            document(etags, "CRC32", [b"data"]),
            headers={"x-amz-checksum-type": "FULL_OBJECT"},
        )
        expect.error(response, "InvalidRequest", re.compile("."))
        assert bucket.is_untouched()

    def test_right_size_and_checksum(self, bucket):
        upload_id = create(bucket, "CRC32", "FULL_OBJECT")
        etags = put_parts(bucket, upload_id, "CRC32")
        expect.ok(
            bucket.complete(
                "key",
                upload_id,
                list(enumerate(etags, 1)),
                headers={
                    "x-amz-mp-object-size": str(len(WHOLE)),
                    "x-amz-checksum-crc32": checksum("CRC32", WHOLE),
                },
            )
        )
