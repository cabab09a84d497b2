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
    assert shown[f"Checksum{algorithm}"] == value.split("-")[0]
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
        (
            {"x-amz-checksum-algorithm": "ROT13"},
            r"^Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
            r"\[CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64\]$",
        ),
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
        for listed, told in [
            ({"ChecksumSHA256": "garbage"}, "SHA256:garbage;"),
            # Bits behind the last byte.
            ({"ChecksumCRC32": "y/Q5Jh=="}, "CRC32:y/Q5Jh==;"),
            (
                {"ChecksumSHA256": checksum("SHA256", b"data"), "ChecksumCRC32": "y/Q5Jg=="},
                f"CRC32:y/Q5Jg==;SHA256:{checksum('SHA256', b'data')};",
            ),
        ]:
            part = element("Part", PartNumber=1, ETag=etags[0], **listed)
            expect.error(
                bucket.complete("key", upload_id, element("CompleteMultipartUpload", part).encode()),
                "InvalidArgument",
                "Invalid Base64 or multiple checksums present in request",
                ArgumentName="Checksum",
                ArgumentValue=told,
            )
        assert bucket.is_untouched()

    @pytest.mark.parametrize("algorithm", COMPOSITE)
    def test_parts_without_their_checksums(self, bucket, algorithm):
        """A composite checksum is made of them; S3 wants to be told each."""
        upload_id = create(bucket, algorithm)
        etags = put_parts(bucket, upload_id, algorithm, [b"data"])
        expect.error(
            bucket.complete("key", upload_id, [(1, etags[0])]),
            "InvalidRequest",
            f"The upload was created using a {algorithm.lower()} checksum. The complete request must include "
            "the checksum for each part. It was missing for part 1 in the request.",
        )
        assert bucket.is_untouched()
        expect.ok(bucket.complete("key", upload_id, document(etags, algorithm, [b"data"])))

    @pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
    def test_checksum_of_a_part_by_another_algorithm(self, bucket, kind):
        upload_id = create(bucket, "CRC32", kind)
        etags = put_parts(bucket, upload_id, "CRC32", [b"data"])
        expect.error(
            bucket.complete("key", upload_id, document(etags, "SHA256", [b"data"])),
            "BadDigest",
            "The sha256 you specified for part 1 did not match what we received.",
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize("algorithm", ["CRC32C", "CRC64NVME", "SHA256"])
    def test_checksum_of_a_part_where_none_was_chosen(self, bucket, algorithm):
        """Whether it is right, and whether the part was sent with it."""
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part(
            "key", upload_id, 1, b"data", headers={header("CRC32C"): checksum("CRC32C", b"data")}
        ).etag
        expect.error(
            bucket.complete("key", upload_id, document([etag], algorithm, [b"data"])),
            "InvalidPart",
            PartNumber="1",
            ETag=etag.strip('"'),
            UploadId=upload_id,
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
    def test_a_type_where_none_was_chosen(self, bucket, kind):
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"data").etag
        expect.error(
            bucket.complete("key", upload_id, [(1, etag)], headers={"x-amz-checksum-type": kind}),
            "InvalidRequest",
            "The upload was created using the null checksum mode. The complete request must use the same "
            "checksum mode.",
        )
        assert bucket.is_untouched()

    def test_checksum_of_the_whole_where_none_was_chosen(self, bucket):
        """Only that which the object gets anyway is compared."""
        upload_id = bucket.create_upload("key")
        listed = [(1, bucket.put_part("key", upload_id, 1, b"data").etag)]
        wrong = {"x-amz-checksum-crc64nvme": checksum("CRC64NVME", b"other")}
        expect.error(
            bucket.complete("key", upload_id, listed, headers=wrong),
            "BadDigest",
            "The crc64nvme you specified did not match the calculated checksum.",
        )
        other = {"x-amz-checksum-crc32c": composite("CRC32C", [b"data", b"more"])}
        result = expect.ok(bucket.complete("key", upload_id, listed, headers=other)).xml
        check(bucket, result, "CRC64NVME", checksum("CRC64NVME", b"data"), "FULL_OBJECT")

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
        expect.error(
            response,
            "BadDigest",
            f"The {algorithm.lower()} you specified did not match the calculated checksum.",
        )
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "algorithm, kind, given, named",
        [
            # Without a type it is taken for a composite one, which CRC32C's are where nothing else
            # is said.
            ("CRC32C", "FULL_OBJECT", checksum("CRC32C", b"data"), None),
            ("CRC32C", "FULL_OBJECT", composite("CRC32C", [b"data"]), None),
            ("SHA256", "COMPOSITE", composite("SHA256", [b"data"]).replace("-1", "-2"), None),
            ("SHA256", "COMPOSITE", composite("SHA256", [b"other"]), "COMPOSITE"),
        ],
    )
    def test_checksums_of_the_whole_that_are_another(self, bucket, algorithm, kind, given, named):
        upload_id = create(bucket, algorithm, kind)
        listed = document(put_parts(bucket, upload_id, algorithm, [b"data"]), algorithm, [b"data"])
        headers = {header(algorithm): given} | ({"x-amz-checksum-type": named} if named else {})
        message = f"The {algorithm.lower()} you specified did not match the calculated checksum."
        expect.error(bucket.complete("key", upload_id, listed, headers=headers), "BadDigest", message)
        # That of another algorithm is none of this upload's.
        headers = {"x-amz-checksum-crc64nvme": checksum("CRC64NVME", b"data")}
        expect.error(bucket.complete("key", upload_id, listed, headers=headers), "BadDigest", message)
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "algorithm, given",
        [
            ("CRC64NVME", checksum("CRC64NVME", b"data")),
            ("SHA256", composite("SHA256", [b"data"])),
            # The number of parts may be left out.
            ("SHA256", composite("SHA256", [b"data"]).split("-")[0]),
        ],
    )
    def test_checksums_of_the_whole_without_a_type(self, bucket, algorithm, given):
        upload_id = create(bucket, algorithm)
        listed = document(put_parts(bucket, upload_id, algorithm, [b"data"]), algorithm, [b"data"])
        expect.ok(bucket.complete("key", upload_id, listed, headers={header(algorithm): given}))

    def test_another_type_than_the_upload(self, bucket):
        upload_id = create(bucket, "CRC32", "COMPOSITE")
        etags = put_parts(bucket, upload_id, "CRC32", [b"data"])
        response = bucket.complete(
            "key",
            upload_id,
            document(etags, "CRC32", [b"data"]),
            headers={"x-amz-checksum-type": "FULL_OBJECT"},
        )
        expect.error(
            response,
            "InvalidRequest",
            "The upload was created using the COMPOSITE checksum mode. The complete request must use the "
            "same checksum mode.",
        )
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
                    "x-amz-checksum-type": "FULL_OBJECT",
                },
            )
        )
