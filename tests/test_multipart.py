"""CreateMultipartUpload, UploadPart, CompleteMultipartUpload, AbortMultipartUpload."""

import hashlib
import os
import random
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest

from support import expect
from support.bucket import complete_document
from support.checksums import checksum, content_md5, multipart_etag
from support.data import PART, SYSTEM_HEADERS, pattern
from support.xml import element

NO_UPLOAD = ["nonsense", "../../x", "0" * 200, "a" * 32, "."]


def uploads(bucket) -> list[str]:
    document = expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""})).xml
    return [entry["UploadId"] for entry in document.all("Upload")]


class TestComplete:
    @pytest.mark.parametrize(
        "sizes",
        [
            [0],
            [1],
            [PART],
            [PART, PART],
            [PART, 1],
            [PART, 0],
            [PART, PART, PART + 1],
            [PART + 1, PART, 7],
            [PART, PART + 4096, PART, 3],
            [PART + 1, PART + 1, PART + 1, 5],
        ],
        ids=lambda sizes: "+".join(map(str, sizes)),
    )
    def test_bytes(self, bucket, sizes):
        parts = [pattern(size, n) for n, size in enumerate(sizes)]
        result = bucket.upload("deep/key", parts).xml
        whole = b"".join(parts)
        assert result.name == "CompleteMultipartUploadResult"
        assert (result["Bucket"], result["Key"]) == (bucket.name, "deep/key")
        assert result["ETag"] == multipart_etag(parts)
        assert result["Location"].endswith(bucket.path("deep/key"))
        got = expect.ok(bucket.get("deep/key"))
        assert got.body == whole
        assert got.etag == multipart_etag(parts)
        assert got.headers["content-length"] == str(len(whole))
        assert bucket.file("deep/key").read_bytes() == whole
        assert bucket.page().child("Contents")["ETag"] == multipart_etag(parts)
        assert uploads(bucket) == []

    def test_nothing_is_visible_before(self, bucket):
        upload_id = bucket.create_upload("key")
        bucket.put_part("key", upload_id, 1, pattern(PART))
        assert bucket.is_untouched()
        expect.error(bucket.get("key"), "NoSuchKey", Key="key")

    def test_over_an_object(self, bucket):
        bucket.put("key", b"old", headers={"x-amz-meta-old": "1"})
        bucket.upload("key", [pattern(PART), b"end"])
        got = bucket.get("key")
        assert got.body == pattern(PART) + b"end"
        assert "x-amz-meta-old" not in got.headers

    def test_metadata_of_the_creation(self, bucket):
        headers = {**SYSTEM_HEADERS, "x-amz-meta-a": "1"}
        bucket.upload("key", [b"data"], headers=headers)
        got = bucket.get("key")
        for name, value in headers.items():
            assert got.headers[name] == value

    @pytest.mark.parametrize("numbers", [[3, 1, 2], [1, 2, 3], [10, 5000, 10000], [2, 1, 4]])
    def test_parts_in_any_order_and_with_gaps(self, bucket, numbers):
        """The order of the numbers counts, not that of the uploads."""
        upload_id = bucket.create_upload("key")
        sent = {}
        for number in numbers:
            body = pattern(PART, number) if number != max(numbers) else b"end"
            sent[number] = (body, expect.ok(bucket.put_part("key", upload_id, number, body)).etag)
        listed = [(number, sent[number][1]) for number in sorted(sent)]
        expect.ok(bucket.complete("key", upload_id, listed))
        assert bucket.read("key") == b"".join(sent[number][0] for number in sorted(sent))

    @pytest.mark.parametrize(
        "first, second", [(PART, PART), (PART, PART + 5), (PART + 5, PART), (PART * 2, PART)]
    )
    def test_a_part_sent_again(self, bucket, first, second):
        """The later one counts, whatever their sizes."""
        upload_id = bucket.create_upload("key")
        bucket.put_part("key", upload_id, 1, pattern(first, 1))
        tail = bucket.put_part("key", upload_id, 2, b"end").etag
        again = bucket.put_part("key", upload_id, 1, pattern(second, 2)).etag
        expect.ok(bucket.complete("key", upload_id, [(1, again), (2, tail)]))
        assert bucket.read("key") == pattern(second, 2) + b"end"

    def test_the_etag_of_a_part_that_was_replaced(self, bucket):
        upload_id = bucket.create_upload("key")
        old = bucket.put_part("key", upload_id, 1, b"old").etag
        bucket.put_part("key", upload_id, 1, b"new")
        expect.error(bucket.complete("key", upload_id, [(1, old)]), "InvalidPart", PartNumber="1")
        assert not bucket.exists("key")

    def test_a_subset_of_the_parts(self, bucket):
        upload_id = bucket.create_upload("key")
        etags = [bucket.put_part("key", upload_id, n, pattern(PART, n)).etag for n in (1, 2, 3)]
        expect.ok(bucket.complete("key", upload_id, [(1, etags[0]), (3, etags[2])]))
        assert bucket.read("key") == pattern(PART, 1) + pattern(PART, 3)

    def test_etags_without_quotes(self, bucket):
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"data").etag
        expect.ok(bucket.complete("key", upload_id, [(1, etag.strip('"'))]))

    def test_parts_in_parallel(self, bucket):
        """Random sizes, 8 at a time."""
        chance = random.Random(7)
        parts = [pattern(PART + chance.randrange(0, 3) * 1000, n) for n in range(12)]
        upload_id = bucket.create_upload("key")
        with ThreadPoolExecutor(8) as pool:
            sent = pool.map(lambda n: bucket.put_part("key", upload_id, n + 1, parts[n]), range(12))
            etags = [expect.ok(response).etag for response in sent]
        expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1))))
        assert hashlib.sha256(bucket.read("key")).digest() == hashlib.sha256(b"".join(parts)).digest()

    def test_twice(self, bucket):
        """A client whose first answer was lost asks again."""
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"data").etag
        first = expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        second = expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        assert first.xml["ETag"] == second.xml["ETag"]
        assert bucket.read("key") == b"data"

    @pytest.mark.parametrize("numbers", [[1], [2], [2, 1], [1, 2, 3], []])
    def test_twice_with_another_list(self, bucket, numbers):
        """Not what was completed, and there is no upload any more to complete it with."""
        upload_id = bucket.create_upload("key")
        etags = [bucket.put_part("key", upload_id, n, pattern(PART, n)).etag for n in (1, 2, 3)]
        expect.ok(bucket.complete("key", upload_id, [(1, etags[0]), (2, etags[1])]))
        body = complete_document([(n, etags[n - 1]) for n in numbers]) if numbers else b""
        expect.error(bucket.complete("key", upload_id, body), "NoSuchUpload", UploadId=upload_id)
        sized = {"x-amz-mp-object-size": "1"}
        response = bucket.complete("key", upload_id, [(1, etags[0]), (2, etags[1])], headers=sized)
        expect.error(response, "NoSuchUpload", UploadId=upload_id)
        expect.ok(bucket.complete("key", upload_id, [(1, etags[0]), (2, etags[1])]))

    def test_twice_at_once(self, bucket):
        """Who comes second waits for the first, and is answered the same."""
        for size in (PART + 1, PART):
            upload_id = bucket.create_upload("key")
            parts = [pattern(size + n % 2, n) for n in range(8)]
            etags = [bucket.put_part("key", upload_id, n, part).etag for n, part in enumerate(parts, 1)]
            listed = list(enumerate(etags, 1))
            with ThreadPoolExecutor(6) as pool:
                asked = [pool.submit(bucket.complete, "key", upload_id, listed) for _ in range(6)]
            answers = [future.result() for future in asked]
            assert {expect.ok(answer).xml["ETag"] for answer in answers} == {multipart_etag(parts)}

    def test_twice_after_an_overwrite(self, bucket):
        """The repeated request must not bring the old bytes back."""
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"data").etag
        expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        bucket.put("key", b"newer")
        bucket.complete("key", upload_id, [(1, etag)])
        assert bucket.read("key") == b"newer"

    def test_many_small_uploads_of_one_key(self, bucket):
        ids = [bucket.create_upload("key") for _ in range(5)]
        assert len(set(ids)) == 5
        assert sorted(uploads(bucket)) == sorted(ids)
        etags = [
            bucket.put_part("key", upload_id, 1, f"{n}".encode()).etag for n, upload_id in enumerate(ids)
        ]
        expect.ok(bucket.complete("key", ids[3], [(1, etags[3])]))
        assert bucket.read("key") == b"3"
        assert len(uploads(bucket)) == 4

    @pytest.mark.parametrize("count", [120, pytest.param(1000, marks=pytest.mark.slow)])
    def test_many_parts(self, bucket, count):
        """What must be remembered of so many does not fit beside an ext4 file's other attributes."""
        bucket.put("source", pattern(PART))
        upload_id = bucket.create_upload("key")
        source = {"x-amz-copy-source": f"{bucket.name}/source"}

        def part(number: int) -> str:
            query = {"partNumber": str(number), "uploadId": upload_id}
            return expect.ok(bucket.raw.put(bucket.path("key"), headers=source, query=query)).xml["ETag"]

        with ThreadPoolExecutor(4) as pool:
            etags = list(pool.map(part, range(1, count + 1)))
        result = expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1)))).xml
        assert result["ETag"].endswith(f'-{count}"')
        seam = PART * (count - 1)
        got = bucket.get("key", headers={"range": f"bytes={seam - 2}-{seam + 1}"})
        assert got.body == pattern(PART)[-2:] + pattern(PART)[:2]
        assert bucket.head("key").headers["content-length"] == str(PART * count)
        last = bucket.head("key", query={"partNumber": str(count)})
        assert last.headers["x-amz-mp-parts-count"] == str(count)


class TestCompleteErrors:
    @pytest.fixture
    def upload(self, bucket):
        """An upload of two parts: (id, etags)."""
        upload_id = bucket.create_upload("key")
        return upload_id, [bucket.put_part("key", upload_id, n, pattern(PART, n)).etag for n in (1, 2)]

    @pytest.fixture(autouse=True)
    def check_that_nothing_happened(self, bucket, upload):
        yield
        assert bucket.is_untouched()
        assert uploads(bucket) == [upload[0]]
        # The upload is as good as before.
        expect.ok(bucket.complete("key", upload[0], list(enumerate(upload[1], 1))))
        assert bucket.read("key") == pattern(PART, 1) + pattern(PART, 2)

    def test_missing_part(self, bucket, upload):
        parts = [(1, upload[1][0]), (3, upload[1][1])]
        expect.error(
            bucket.complete("key", upload[0], parts),
            "InvalidPart",
            PartNumber="3",
            ETag=re.compile(upload[1][1].strip('"')),
        )

    def test_wrong_etag(self, bucket, upload):
        parts = [(1, upload[1][0]), (2, '"00000000000000000000000000000000"')]
        expect.error(bucket.complete("key", upload[0], parts), "InvalidPart", PartNumber="2")

    def test_wrong_order(self, bucket, upload):
        parts = [(2, upload[1][1]), (1, upload[1][0])]
        expect.error(bucket.complete("key", upload[0], parts), "InvalidPartOrder", UploadId=upload[0])

    def test_a_part_twice(self, bucket, upload):
        parts = [(1, upload[1][0]), (1, upload[1][0])]
        expect.error(bucket.complete("key", upload[0], parts), "InvalidPartOrder")

    @pytest.mark.parametrize(
        "body",
        [
            b"<CompleteMultipartUpload></CompleteMultipartUpload>",
            b"<CompleteMultipartUpload><Part/></CompleteMultipartUpload>",
            b"<Other><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></Other>",
            b"<CompleteMultipart",
            b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
            b"<CompleteMultipartUpload><Part><PartNumber>one</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
            b"{}",
            b'<CompleteMultipartUpload DryRun="1">%s</CompleteMultipartUpload>',
            b'<CompleteMultipartUpload xmlns="urn:other">%s</CompleteMultipartUpload>',
            b'<CompleteMultipartUpload xmlns:o="urn:other"><o:New/>%s</CompleteMultipartUpload>',
        ],
    )
    def test_malformed(self, bucket, upload, body):
        parts = complete_document([(number, etag) for number, etag in enumerate(upload[1], 1)])
        body = body.replace(b"%s", parts.partition(b">")[2].rpartition(b"<")[0])
        expect.error(bucket.complete("key", upload[0], body), "MalformedXML")
        assert not bucket.exists("key")

    def test_no_body(self, bucket, upload):
        response = bucket.complete("key", upload[0], b"")
        expect.error(response, "InvalidRequest", "You must specify at least one part")
        none = "0" * 48
        expect.error(bucket.complete("key", none, b""), "NoSuchUpload", UploadId=none)

    @pytest.mark.parametrize("number", ["0", "-1", "10001"])
    def test_numbers_out_of_range(self, bucket, upload, number):
        body = element("CompleteMultipartUpload", element("Part", PartNumber=number, ETag="x")).encode()
        expect.error(
            bucket.complete("key", upload[0], body),
            "InvalidArgument",
            re.compile("(?i)part ?number"),
            ArgumentName="PartNumber",
            ArgumentValue=number,
        )

    def test_more_than_10_000_parts(self, bucket, upload):
        body = complete_document([(n, upload[1][0]) for n in range(1, 10_002)])
        response = bucket.complete("key", upload[0], body)
        assert response.code in ("MalformedXML", "InvalidArgument"), response
        assert response.status == 400

    def test_other_key(self, bucket, upload):
        expect.error(bucket.complete("other", upload[0], [(1, upload[1][0])]), "NoSuchUpload")

    @pytest.mark.parametrize("size", ["1", str(PART * 2 + 1)])
    def test_wrong_size(self, bucket, upload, size):
        response = bucket.complete(
            "key", upload[0], list(enumerate(upload[1], 1)), headers={"x-amz-mp-object-size": size}
        )
        expect.error(
            response,
            "InvalidRequest",
            f"The provided 'x-amz-mp-object-size' header value {size} does not match what was computed: "
            f"{PART * 2}",
        )

    def test_garbage_for_a_size(self, bucket, upload):
        response = bucket.complete(
            "key", upload[0], list(enumerate(upload[1], 1)), headers={"x-amz-mp-object-size": "big"}
        )
        expect.error(response, "InvalidRequest", re.compile("x-amz-mp-object-size"))

    def test_wrong_signature(self, bucket, upload):
        signer = bucket.raw.signer.with_(secret_key="wrong")
        response = bucket.complete("key", upload[0], list(enumerate(upload[1], 1)), signer=signer)
        expect.error(response, "SignatureDoesNotMatch")


def test_too_small(bucket):
    upload_id = bucket.create_upload("key")
    etags = [bucket.put_part("key", upload_id, n, pattern(PART - 1, n)).etag for n in (1, 2)]
    response = bucket.complete("key", upload_id, list(enumerate(etags, 1)))
    expect.error(
        response,
        "EntityTooSmall",
        ProposedSize=str(PART - 1),
        MinSizeAllowed=str(PART),
        PartNumber="1",
        ETag=re.compile(etags[0].strip('"')),
    )
    assert bucket.is_untouched()
    expect.ok(bucket.complete("key", upload_id, [(2, etags[1])]))


class TestParts:
    def test_answer(self, bucket):
        upload_id = bucket.create_upload("key")
        response = expect.ok(bucket.put_part("key", upload_id, 1, b"data"))
        assert response.etag == f'"{hashlib.md5(b"data").hexdigest()}"'
        assert not response.headers.starting("x-amz-checksum-")

    def test_the_checksum_that_was_sent(self, bucket):
        """It is told, whether the upload chose one or not."""
        upload_id = bucket.create_upload("key")
        headers = {"x-amz-checksum-crc32c": checksum("CRC32C", b"data")}
        response = expect.ok(bucket.put_part("key", upload_id, 1, b"data", headers=headers))
        assert response.headers["x-amz-checksum-crc32c"] == headers["x-amz-checksum-crc32c"]
        assert "x-amz-checksum-type" not in response.headers

    def test_wrong_md5(self, bucket):
        """Unlike that of an object, a part's digests are both told in base64."""
        upload_id = bucket.create_upload("key")
        response = bucket.put_part("key", upload_id, 1, b"data", headers={"content-md5": content_md5(b"x")})
        expect.error(
            response,
            "BadDigest",
            CalculatedDigest=content_md5(b"data"),
            ExpectedDigest=content_md5(b"x"),
        )
        names = response.xml.names()
        assert names.index("CalculatedDigest") < names.index("ExpectedDigest")

    @pytest.mark.parametrize("number", ["0", "10001", "-1", "x", ""])
    def test_number_out_of_range(self, bucket, number):
        upload_id = bucket.create_upload("key")
        response = bucket.raw.put(
            bucket.path("key"), b"data", query={"partNumber": number, "uploadId": upload_id}
        )
        expect.error(
            response,
            "InvalidArgument",
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue=number,
        )

    @pytest.mark.parametrize("upload_id", NO_UPLOAD)
    def test_no_such_upload(self, bucket, upload_id):
        expect.error(bucket.put_part("key", upload_id, 1, b"data"), "NoSuchUpload")
        assert bucket.is_untouched()

    def test_of_another_key(self, bucket):
        upload_id = bucket.create_upload("key")
        expect.error(bucket.put_part("other", upload_id, 1, b"data"), "NoSuchUpload")

    def test_of_another_bucket(self, make_bucket):
        one, two = make_bucket(), make_bucket()
        expect.error(two.put_part("key", one.create_upload("key"), 1, b"data"), "NoSuchUpload")

    @pytest.mark.parametrize("query", [{"uploadId": "x"}, {"partNumber": "1"}])
    def test_half_a_part(self, bucket, query):
        """Never a plain PUT of the object."""
        response = bucket.raw.put(bucket.path("key"), b"data", query=query)
        assert response.status in (400, 405), response
        assert response.code in ("InvalidArgument", "InvalidRequest", "MethodNotAllowed")
        assert bucket.is_untouched()

    def test_a_part_of_no_upload(self, bucket):
        response = bucket.raw.put(bucket.path("key"), b"data", query={"partNumber": "1"})
        message = "This operation does not accept partNumber without uploadId"
        names = {"ArgumentName": "partNumber", "ArgumentValue": "partNumber"}
        expect.error(response, "InvalidArgument", message, **names)

    @pytest.mark.parametrize(
        "headers, code",
        [
            ({"content-md5": content_md5(b"other")}, "BadDigest"),
            ({"content-md5": "x"}, "InvalidDigest"),
            ({"x-amz-checksum-crc32": "AAAAAA=="}, "BadDigest"),
        ],
    )
    def test_bad_digests(self, bucket, headers, code):
        upload_id = bucket.create_upload("key")
        expect.error(bucket.put_part("key", upload_id, 1, b"data", headers=headers), code, re.compile("."))
        assert self.parts(bucket, upload_id) == []

    def test_a_failed_part_leaves_the_one_before(self, bucket):
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"good").etag
        bad = bucket.put_part("key", upload_id, 1, b"evil", headers={"content-md5": content_md5(b"other")})
        expect.error(bad, "BadDigest")
        expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        assert bucket.read("key") == b"good"

    def test_too_large(self, bucket):
        upload_id = bucket.create_upload("key")
        size = (5 << 30) + 1
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            query={"partNumber": "1", "uploadId": upload_id},
            payload="UNSIGNED-PAYLOAD",
            headers={"content-length": str(size)},
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head)
            expect.error(connection.response(), "EntityTooLarge", ProposedSize=str(size))

    def parts(self, bucket, upload_id: str) -> list[str]:
        document = expect.ok(bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id})).xml
        return [part["PartNumber"] for part in document.all("Part")]


class TestAbort:
    def test_abort(self, bucket):
        upload_id = bucket.create_upload("key")
        bucket.put_part("key", upload_id, 1, pattern(PART))
        response = expect.ok(bucket.abort("key", upload_id), 204)
        assert response.body == b""
        assert uploads(bucket) == []
        for answer in (
            bucket.abort("key", upload_id),
            bucket.put_part("key", upload_id, 1, b"x"),
            bucket.complete("key", upload_id, [(1, "x")]),
            bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id}),
        ):
            expect.error(answer, "NoSuchUpload")
        assert bucket.is_untouched()

    def test_frees_the_space(self, bucket):
        before = disk_usage(bucket.tree)
        upload_id = bucket.create_upload("key")
        for number in (1, 2, 3):
            bucket.put_part("key", upload_id, number, pattern(PART, number))
        assert disk_usage(bucket.tree) >= before + 3 * PART
        expect.ok(bucket.abort("key", upload_id), 204)
        assert disk_usage(bucket.tree) < before + (1 << 20)

    @pytest.mark.parametrize("upload_id", NO_UPLOAD)
    def test_no_such_upload(self, bucket, upload_id):
        expect.error(bucket.abort("key", upload_id), "NoSuchUpload")

    def test_if_it_was_created_then(self, bucket):
        upload_id = bucket.create_upload("key")
        document = expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""})).xml
        initiated = datetime.fromisoformat(document.child("Upload")["Initiated"])

        def abort(time: str):
            headers = {"x-amz-if-match-initiated-time": time}
            return bucket.raw.delete(bucket.path("key"), query={"uploadId": upload_id}, headers=headers)

        expect.error(
            abort(format_datetime(initiated - timedelta(seconds=1), usegmt=True)),
            "PreconditionFailed",
            Condition="x-amz-if-match-initiated-time",
        )
        expect.error(
            abort("once"),
            "InvalidArgument",
            re.compile("x-amz-if-match-initiated-time"),
            ArgumentName="x-amz-if-match-initiated-time",
            ArgumentValue="once",
        )
        assert uploads(bucket) == [upload_id]
        expect.ok(abort(format_datetime(initiated, usegmt=True)), 204)
        expect.error(abort(format_datetime(initiated, usegmt=True)), "NoSuchUpload")

    def test_completed(self, bucket):
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"data").etag
        expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        assert bucket.abort("key", upload_id).status in (204, 404)
        assert bucket.read("key") == b"data"


def disk_usage(path) -> int:
    """Bytes that the files below a directory take."""
    return sum(
        (os.lstat(os.path.join(at, name)).st_blocks * 512) for at, _, names in os.walk(path) for name in names
    )


def test_completing_takes_no_second_copy(bucket):
    """Parts of one size are in their place already: completing neither copies nor keeps them twice."""
    upload_id = bucket.create_upload("key")
    parts = [pattern(PART, n) for n in range(4)] + [b"end"]
    etags = [bucket.put_part("key", upload_id, n, part).etag for n, part in enumerate(parts, 1)]
    before = disk_usage(bucket.tree)
    expect.ok(bucket.complete("key", upload_id, list(enumerate(etags, 1))))
    assert disk_usage(bucket.tree) < before + PART
    assert bucket.file("key").stat().st_size == 4 * PART + 3


@pytest.mark.usefixtures("no_bucket")
def test_creation_in_no_bucket(raw):
    response = raw.post("/no-such-bucket/key", query={"uploads": ""})
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")


@pytest.mark.usefixtures("no_bucket")
def test_completion_in_no_bucket(raw):
    body = complete_document([(1, '"' + "0" * 32 + '"')])
    response = raw.post("/no-such-bucket/key", body, query={"uploadId": "a" * 48})
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket", UploadId=None)


def test_parts_are_no_objects(bucket):
    """Neither by the names that they have on disk nor in listings."""
    upload_id = bucket.create_upload("key")
    bucket.put_part("key", upload_id, 1, b"secret part")
    own = [str(path.relative_to(bucket.tree)) for path in bucket.tree.rglob("*") if path.is_file()]
    assert own, "the part is somewhere"
    for name in own:
        expect.error(bucket.get(name), "NoSuchKey")
    assert bucket.is_untouched()
