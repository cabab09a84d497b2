"""If-Match and If-None-Match on PUT, copy, Complete and DELETE. In races: test_races.py."""

import re

import pytest

from support import expect
from support.bucket import Bucket


class Writer:
    """A way to write `key`, with headers."""

    def __init__(self, bucket: Bucket, way: str) -> None:
        self.bucket, self.way = bucket, way

    def write(self, key: str, body: bytes, headers: dict[str, str], bucket: Bucket | None = None):
        bucket = bucket or self.bucket
        match self.way:
            case "put":
                return bucket.raw.put(bucket.path(key), body, headers=headers)
            case "copy":
                bucket.put("source", body)
                source = {"x-amz-copy-source": f"{bucket.name}/source"}
                return bucket.raw.put(bucket.path(key), headers={**source, **headers})
            case "complete":
                upload_id = bucket.create_upload(key)
                etag = expect.ok(bucket.put_part(key, upload_id, 1, body)).etag
                return bucket.complete(key, upload_id, [(1, etag)], headers=headers)
        raise AssertionError(self.way)


@pytest.fixture(params=["put", "copy", "complete"])
def writer(request, bucket) -> Writer:
    return Writer(bucket, request.param)


def one_part(bucket: Bucket, key: str) -> tuple[str, list[tuple[int, str]]]:
    """An upload that would make `new` of a key: id and parts."""
    upload_id = bucket.create_upload(key)
    return upload_id, [(1, expect.ok(bucket.put_part(key, upload_id, 1, b"new")).etag)]


def complete_if(bucket: Bucket, key: str, upload_id: str, parts: list[tuple[int, str]], etag: str):
    return bucket.complete(key, upload_id, parts, headers={"if-match": etag})


class TestWrites:
    def test_if_none_match_on_nothing(self, writer):
        expect.ok(writer.write("key", b"new", {"if-none-match": "*"}))
        assert writer.bucket.read("key") == b"new"

    def test_if_none_match_on_something(self, writer):
        writer.bucket.put("key", b"old")
        response = writer.write("key", b"new", {"if-none-match": "*"})
        expect.error(response, "PreconditionFailed", Condition="If-None-Match")
        assert writer.bucket.read("key") == b"old"

    def test_if_none_match_on_a_file(self, writer):
        writer.bucket.file("key").write_text("by hand")
        response = writer.write("key", b"new", {"if-none-match": "*"})
        expect.error(response, "PreconditionFailed", Condition="If-None-Match")
        assert writer.bucket.file("key").read_text() == "by hand"

    def test_if_none_match_beside_a_prefix(self, writer):
        """`key/below` is no object `key`."""
        writer.bucket.put("key/below", b"x")
        expect.ok(writer.write("key", b"new", {"if-none-match": "*"}))
        expect.error(writer.write("key", b"newer", {"if-none-match": "*"}), "PreconditionFailed")
        assert writer.bucket.read("key") == b"new"
        assert writer.bucket.read("key/below") == b"x"

    def test_if_match(self, writer):
        etag = writer.bucket.put("key", b"old").etag
        expect.ok(writer.write("key", b"new", {"if-match": etag}))
        assert writer.bucket.read("key") == b"new"

    def test_if_match_of_another(self, writer):
        writer.bucket.put("key", b"old")
        response = writer.write("key", b"new", {"if-match": '"00000000000000000000000000000000"'})
        expect.error(response, "PreconditionFailed", Condition="If-Match")
        assert writer.bucket.read("key") == b"old"

    def test_if_match_on_nothing(self, writer):
        expect.error(writer.write("key", b"new", {"if-match": '"0"'}), "NoSuchKey", Key="key")
        assert not writer.bucket.exists("key")

    def test_if_match_after_an_edit(self, writer):
        """The ETag belongs to bytes that are gone."""
        etag = writer.bucket.put("key", b"old").etag
        writer.bucket.file("key").write_bytes(b"edited")
        expect.error(
            writer.write("key", b"new", {"if-match": etag}), "PreconditionFailed", Condition="If-Match"
        )
        assert writer.bucket.read("key") == b"edited"

    @pytest.mark.parametrize(
        "headers, named, why",
        [
            (
                {"if-none-match": '"0"'},
                "If-None-Match",
                "We don't accept the provided value of If-None-Match header for this API",
            ),
            (
                {"if-match": "*"},
                "If-Match",
                "We don't accept the provided value of If-Match header for this API",
            ),
            (
                {"if-match": '"0"', "if-none-match": "*"},
                "If-Match,If-None-Match",
                "Multiple conditional request headers present in the request",
            ),
            ({"if-modified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}, "If-Modified-Since", None),
            ({"if-unmodified-since": "Sun, 06 Nov 1994 08:49:37 GMT"}, "If-Unmodified-Since", None),
        ],
    )
    def test_what_s3_does_not_know_on_writes(self, writer, headers, named, why):
        response = writer.write("key", b"new", headers)
        expect.error(response, "NotImplemented", Header=named, additionalMessage=why)
        assert not writer.bucket.exists("key")

    @pytest.mark.parametrize("key", ["key", "key/", "deep/key"])
    @pytest.mark.parametrize("change", ["put", "delete and put", "edit", "copy", "complete"])
    def test_a_complete_needs_the_object_of_its_creation(self, bucket, key, change):
        """Even if its ETag is the same."""
        etag = bucket.put(key, b"old").etag
        upload_id, parts = one_part(bucket, key)
        match change:
            case "put":
                etag = bucket.put(key, b"old").etag
            case "delete and put":
                bucket.delete(key)
                expect.error(complete_if(bucket, key, upload_id, parts, etag), "NoSuchKey", Key=key)
                etag = bucket.put(key, b"old").etag
            case "copy":
                headers = {"x-amz-copy-source": f"{bucket.name}/{key}", "x-amz-metadata-directive": "REPLACE"}
                etag = expect.ok(bucket.raw.put(bucket.path(key), headers=headers)).xml["ETag"]
            case "complete":
                etag = bucket.upload(key, [b"old"]).xml["ETag"]
            case "edit" if key.endswith("/"):
                pytest.skip("a directory object's bytes are in a file of the server's own")
            case "edit":
                bucket.file(key).write_bytes(b"edited")
                etag = bucket.head(key).etag
        expect.error(
            complete_if(bucket, key, upload_id, parts, etag),
            "ConditionalRequestConflict",
            Condition="If-Match",
            Key=key,
        )
        # Another ETag is told first; and an upload that begins now is about the object of now.
        expect.error(complete_if(bucket, key, upload_id, parts, '"0"'), "PreconditionFailed")
        upload_id, parts = one_part(bucket, key)
        expect.ok(complete_if(bucket, key, upload_id, parts, etag))
        assert bucket.read(key) == b"new"

    def test_a_complete_over_an_object_that_came_since(self, bucket):
        upload_id, parts = one_part(bucket, "key")
        etag = bucket.put("key", b"since").etag
        expect.error(
            complete_if(bucket, "key", upload_id, parts, etag),
            "ConditionalRequestConflict",
            Condition="If-Match",
            Key="key",
        )
        response = bucket.complete("key", upload_id, parts, headers={"if-none-match": "*"})
        expect.error(response, "PreconditionFailed", Condition="If-None-Match")
        # Without a condition there is nothing that must not have changed.
        expect.ok(bucket.complete("key", upload_id, parts))

    @pytest.mark.parametrize("by", ["S3", "hand"])
    @pytest.mark.parametrize("key", ["key", "key/"])
    def test_a_complete_where_an_object_was_deleted(self, bucket, key, by):
        bucket.put(key, b"old")
        upload_id, parts = one_part(bucket, key)
        if by == "S3" or key == "key/":
            expect.ok(bucket.delete(key), 204)
        else:
            bucket.file(key).unlink()
        expect.error(
            bucket.complete(key, upload_id, parts, headers={"if-none-match": "*"}),
            "ConditionalRequestConflict",
            Condition="If-None-Match",
            Key=key,
        )
        assert not bucket.exists(key)
        upload_id, parts = one_part(bucket, key)
        expect.ok(bucket.complete(key, upload_id, parts, headers={"if-none-match": "*"}))

    def test_a_complete_over_what_only_seems_to_have_changed(self, bucket):
        """A file that S3 did not write, whose mode changes, and which becomes a directory's own file."""
        bucket.file("key").write_text("by hand")
        upload_id, parts = one_part(bucket, "key")
        etag = expect.ok(bucket.get("key")).etag
        bucket.file("key").chmod(0o640)
        bucket.put("key/below", b"x")
        expect.ok(complete_if(bucket, "key", upload_id, parts, etag))
        assert bucket.read("key") == b"new"

    def test_a_failed_complete_can_be_repeated(self, bucket):
        bucket.put("key", b"old")
        upload_id = bucket.create_upload("key")
        etag = bucket.put_part("key", upload_id, 1, b"new").etag
        response = bucket.complete("key", upload_id, [(1, etag)], headers={"if-none-match": "*"})
        expect.error(response, "PreconditionFailed", Condition="If-None-Match")
        expect.ok(bucket.complete("key", upload_id, [(1, etag)]))
        assert bucket.read("key") == b"new"


class TestDeletes:
    def test_if_match(self, bucket):
        etag = bucket.put("key", b"data").etag
        expect.error(
            bucket.delete("key", headers={"if-match": '"0"'}), "PreconditionFailed", Condition="If-Match"
        )
        assert bucket.exists("key")
        expect.ok(bucket.delete("key", headers={"if-match": etag}), 204)
        assert not bucket.exists("key")

    def test_if_match_star(self, bucket):
        bucket.put("key", b"data")
        expect.ok(bucket.delete("key", headers={"if-match": "*"}), 204)
        assert not bucket.exists("key")

    def test_if_match_on_nothing(self, bucket):
        expect.error(bucket.delete("key", headers={"if-match": '"0"'}), "NoSuchKey", Key="key")

    @pytest.mark.parametrize("value", ["right", "garbage"])
    def test_conditions_of_directory_buckets_delete_nothing(self, bucket, value):
        bucket.put("key", b"data")
        right = {
            "x-amz-if-match-last-modified-time": bucket.head("key").headers["last-modified"],
            "x-amz-if-match-size": "4",
        }
        for name, text in right.items():
            response = bucket.delete("key", headers={name: text if value == "right" else value})
            expect.error(response, "NotImplemented", Header=name, additionalMessage=None)
        response = bucket.delete("key", headers={**right, "if-match": '"x"'})
        expect.error(response, "NotImplemented", Header="x-amz-if-match-last-modified-time")
        assert bucket.exists("key")

    @pytest.mark.parametrize("name", ["If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])
    def test_others_delete_nothing(self, bucket, name):
        bucket.put("key", b"data")
        response = bucket.delete("key", headers={name: "Sun, 06 Nov 1994 08:49:37 GMT"})
        expect.error(response, "NotImplemented", re.compile("A header you provided"), Header=name)
        assert bucket.exists("key")
