"""Versions of objects, as boto3 sees them. What is compared was recorded at Amazon S3, where there is a recording.

What the storage makes of versions beside other programs, crashes and many gateways is tested elsewhere."""

import json

import pytest
from botocore.exceptions import ClientError

from support import expect
from support.bucket import Bucket
from support.clients import boto3_client
from support.wire import poll
from support.xml import Element


def set_versioning(s3, bucket, status: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": status})


@pytest.fixture
def kept(s3, bucket):
    """A bucket that keeps versions."""
    set_versioning(s3, bucket, "Enabled")
    return bucket


def put(s3, bucket, key: str, body: bytes = b"", **members) -> str:
    return s3.put_object(Bucket=bucket.name, Key=key, Body=body, **members)["VersionId"]


def delete(s3, bucket, key: str, **members) -> dict:
    answer = s3.delete_object(Bucket=bucket.name, Key=key, **members)
    return {name: answer.get(name) for name in ("VersionId", "DeleteMarker")}


def body_of(s3, bucket, key: str, **members) -> bytes:
    return s3.get_object(Bucket=bucket.name, Key=key, **members)["Body"].read()


def failure(call, **members) -> dict:
    with pytest.raises(ClientError) as failed:
        call(**members)
    response = failed.value.response
    return {"Headers": response["ResponseMetadata"]["HTTPHeaders"], **response["Error"]}


def listed(s3, bucket, **members) -> list[tuple]:
    """Versions and delete markers in the order of the document: key, id, whether it is the latest, kind."""
    names = {"MaxKeys": "max-keys", "KeyMarker": "key-marker", "VersionIdMarker": "version-id-marker"}
    query = {"versions": "", **{names.get(name, name.lower()): str(value) for name, value in members.items()}}
    document = expect.ok(bucket.raw.get(bucket.path(), query=query)).xml
    entries = [e for e in map(Element, document.node) if e.name in ("Version", "DeleteMarker")]
    return [(e["Key"], e["VersionId"], e["IsLatest"] == "true", e.name) for e in entries]


class TestWrites:
    def test_every_write_is_a_version(self, s3, kept):
        first, second = put(s3, kept, "k", b"1"), put(s3, kept, "k", b"2")
        assert len({first, second, "null"}) == 3
        got = s3.get_object(Bucket=kept.name, Key="k")
        assert (got["VersionId"], got["Body"].read()) == (second, b"2")
        for version, body in [(first, b"1"), (second, b"2")]:
            got = s3.get_object(Bucket=kept.name, Key="k", VersionId=version)
            assert (got["VersionId"], got["Body"].read()) == (version, body)
            head = s3.head_object(Bucket=kept.name, Key="k", VersionId=version)
            assert (head["VersionId"], head["ContentLength"]) == (version, 1)
        assert listed(s3, kept) == [("k", second, True, "Version"), ("k", first, False, "Version")]
        # The current version is the plain file.
        assert kept.file("k").read_bytes() == b"2"

    def test_what_was_there_before(self, s3, bucket):
        """test_s3_put_object_versioned"""
        answer = s3.put_object(Bucket=bucket.name, Key="old", Body=b"old")
        assert "VersionId" not in answer
        assert "VersionId" not in s3.get_object(Bucket=bucket.name, Key="old", VersionId="null")
        set_versioning(s3, bucket, "Enabled")
        assert s3.get_object(Bucket=bucket.name, Key="old")["VersionId"] == "null"
        new = put(s3, bucket, "old", b"new")
        assert body_of(s3, bucket, "old", VersionId="null") == b"old"
        assert listed(s3, bucket) == [("old", new, True, "Version"), ("old", "null", False, "Version")]

    def test_suspended(self, s3, kept):
        """test_put_object_on_suspended_bucket"""
        first = put(s3, kept, "k", b"1")
        set_versioning(s3, kept, "Suspended")
        for body in (b"null 1", b"null 2"):
            assert "VersionId" not in s3.put_object(Bucket=kept.name, Key="k", Body=body)
            got = s3.get_object(Bucket=kept.name, Key="k")
            assert (got["VersionId"], got["Body"].read()) == ("null", body)
            assert listed(s3, kept) == [("k", "null", True, "Version"), ("k", first, False, "Version")]
        assert body_of(s3, kept, "k", VersionId=first) == b"1"

    def test_multipart(self, s3, kept):
        first = put(s3, kept, "k", b"1")
        place = {"Bucket": kept.name, "Key": "k"}
        created = s3.create_multipart_upload(**place)
        upload = {**place, "UploadId": created["UploadId"]}
        part = s3.upload_part(**upload, PartNumber=1, Body=b"part")
        # Made current by its completion, which is the newer.
        second = put(s3, kept, "k", b"2")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        assert "VersionId" not in failure(s3.head_object, **place, VersionId=created["VersionId"])
        copied = s3.upload_part_copy(**upload, PartNumber=2, CopySource=place)
        named = [created, part, copied, s3.list_parts(**upload)]
        done = s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        # Repeated, it says the same, also when another version is the current one.
        repeated = s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        third = put(s3, kept, "k", b"3")
        again = s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        [version] = {answer["VersionId"] for answer in [*named, done, repeated, again]}
        assert [version for _, version, _, _ in listed(s3, kept)] == [third, version, second, first]
        assert body_of(s3, kept, "k", VersionId=version) == b"part"
        # A page may begin after it.
        rest = listed(s3, kept, KeyMarker="k", VersionIdMarker=version)
        assert [version for _, version, _, _ in rest] == [second, first]
        s3.delete_object(**place, VersionId=version)
        assert [version for _, version, _, _ in listed(s3, kept)] == [third, second, first]

    def test_uploads_of_buckets_whose_versioning_changes(self, s3, bucket):
        place = {"Bucket": bucket.name, "Key": "k"}

        def begun() -> tuple[dict, dict]:
            created = s3.create_multipart_upload(**place)
            upload = {**place, "UploadId": created["UploadId"]}
            etag = s3.upload_part(**upload, PartNumber=1, Body=b"part")["ETag"]
            return created, {**upload, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": etag}]}}

        before, unversioned = begun()
        set_versioning(s3, bucket, "Enabled")
        enabled, versioned = begun()
        aborted, rest = begun()
        assert "VersionId" not in before
        assert enabled["VersionId"] != aborted["VersionId"]
        del rest["MultipartUpload"]
        assert s3.abort_multipart_upload(**rest)["VersionId"] == aborted["VersionId"]
        first = s3.complete_multipart_upload(**unversioned)["VersionId"]
        assert s3.complete_multipart_upload(**unversioned)["VersionId"] == first
        set_versioning(s3, bucket, "Suspended")
        assert "VersionId" not in begun()[0]
        assert s3.complete_multipart_upload(**versioned)["VersionId"] == "null"
        assert [version for _, version, _, _ in listed(s3, bucket)] == ["null", first]

    def test_conditions_see_the_current_version(self, s3, kept):
        """test_put_object_if_none_match_versioned_bucket, test_put_object_if_match_versioned_bucket"""
        place = {"Bucket": kept.name, "Key": "k"}
        s3.put_object(**place, Body=b"1", IfNoneMatch="*")
        error = failure(s3.put_object, **place, IfNoneMatch="*")
        assert (error["Code"], error["Condition"]) == ("PreconditionFailed", "If-None-Match")
        etag = s3.head_object(**place)["ETag"]
        s3.delete_object(**place)
        assert failure(s3.put_object, **place, IfMatch=etag)["Code"] == "NoSuchKey"
        etag = s3.put_object(**place, Body=b"2", IfNoneMatch="*")["ETag"]
        s3.put_object(**place, Body=b"3", IfMatch=etag)
        assert len(listed(s3, kept)) == 4


class TestReads:
    def test_attributes(self, s3, kept):
        """test_get_object_attributes_versioned"""
        first, second = put(s3, kept, "k", b"first"), put(s3, kept, "k", b"2")
        place = {"Bucket": kept.name, "Key": "k", "ObjectAttributes": ["ObjectSize"]}
        told = s3.get_object_attributes(**place)
        assert (told["VersionId"], told["ObjectSize"]) == (second, 1)
        marker = delete(s3, kept, "k")["VersionId"]
        error = failure(s3.get_object_attributes, **place)
        assert (error["Code"], error["Key"]) == ("NoSuchKey", "k")
        assert error["Headers"]["x-amz-version-id"] == marker
        told = s3.get_object_attributes(**place, VersionId=first)
        assert (told["VersionId"], told["ObjectSize"]) == (first, 5)

    def test_not_modified(self, s3, kept):
        version = put(s3, kept, "k", b"1")
        etag = kept.head("k").headers["etag"]
        response = kept.get("k", headers={"if-none-match": etag})
        assert (response.status, response.headers["x-amz-version-id"]) == (304, version)

    def test_versions_that_are_not_there(self, s3, kept):
        """test_delete_object_versioned"""
        version = put(s3, kept, "k")
        delete(s3, kept, "k", VersionId=version)
        error = failure(s3.get_object, Bucket=kept.name, Key="k", VersionId=version)
        assert (error["Code"], error["Key"], error["VersionId"]) == ("NoSuchVersion", "k", version)
        for call in (s3.get_object, s3.delete_object, s3.get_object_tagging):
            error = failure(call, Bucket=kept.name, Key="k", VersionId="HPniJFCxqTsMuIH9KX8K8wEjNUgmABCD")
            told = (error["Code"], error["Message"], error["ArgumentName"])
            assert told == ("InvalidArgument", "Invalid version id specified", "versionId")

    def test_tags_and_acls_say_whose_they_are(self, s3, kept):
        first = put(s3, kept, "k")
        second = put(s3, kept, "k")
        place = {"Bucket": kept.name, "Key": "k"}
        assert s3.get_object_tagging(**place)["VersionId"] == second
        assert s3.get_object_tagging(**place, VersionId=first)["VersionId"] == first
        marker = delete(s3, kept, "k")["VersionId"]
        # test_object_tagging_versioned, test_put_object_acl_on_delete_marker
        for call, members, code in [
            (s3.get_object_tagging, {}, "MethodNotAllowed"),
            (s3.get_object_tagging, {"VersionId": marker}, "MethodNotAllowed"),
            (s3.get_object_acl, {}, "NoSuchKey"),
            (s3.get_object_acl, {"VersionId": marker}, "MethodNotAllowed"),
        ]:
            error = failure(call, **place, **members)
            assert error["Code"] == code
            if code == "MethodNotAllowed":
                assert (error["Method"], error["ResourceType"]) == ("GET", "DeleteMarker")

    def test_each_version_has_its_own_tags(self, s3, kept):
        """test_object_tagging_versioned"""
        first = put(s3, kept, "k", b"1", Tagging="a=1")
        second = put(s3, kept, "k", b"2")
        place = {"Bucket": kept.name, "Key": "k"}

        def tags(**members) -> dict:
            return {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(**place, **members)["TagSet"]}

        def set_tags(value: str, **members) -> str:
            tagging = {"TagSet": [{"Key": "a", "Value": value}]}
            return s3.put_object_tagging(**place, Tagging=tagging, **members)["VersionId"]

        assert (tags(VersionId=first), tags()) == ({"a": "1"}, {})
        assert set_tags("2", VersionId=first) == first
        assert set_tags("3") == second
        assert (tags(VersionId=first), tags(VersionId=second)) == ({"a": "2"}, {"a": "3"})
        assert set_tags("4", VersionId=second) == second
        assert tags() == {"a": "4"}
        assert s3.delete_object_tagging(**place, VersionId=first)["VersionId"] == first
        assert (tags(VersionId=first), tags()) == ({}, {"a": "4"})
        assert (body_of(s3, kept, "k", VersionId=first), body_of(s3, kept, "k")) == (b"1", b"2")
        set_tags("5", VersionId=first)
        # What was current keeps its tags as an old version, and when it is current again.
        marker = delete(s3, kept, "k")["VersionId"]
        assert (tags(VersionId=first), tags(VersionId=second)) == ({"a": "5"}, {"a": "4"})
        tagging = {"TagSet": []}
        for members in ({}, {"VersionId": marker}):
            error = failure(s3.put_object_tagging, **place, Tagging=tagging, **members)
            assert error["Code"] == "MethodNotAllowed"
        delete(s3, kept, "k", VersionId=marker)
        assert tags() == {"a": "4"}
        delete(s3, kept, "k", VersionId=second)
        assert tags() == {"a": "5"}
        error = failure(s3.put_object_tagging, **place, Tagging=tagging, VersionId=second)
        assert error["Code"] == "NoSuchVersion"

    def test_tags_name_no_version_where_none_are_kept(self, s3, bucket):
        place = {"Bucket": bucket.name, "Key": "k"}
        s3.put_object(**place)
        told = [
            s3.put_object_tagging(**place, Tagging={"TagSet": []}),
            s3.get_object_tagging(**place),
            s3.delete_object_tagging(**place),
        ]
        assert not any("VersionId" in answer for answer in told)
        set_versioning(s3, bucket, "Enabled")
        assert s3.get_object_tagging(**place)["VersionId"] == "null"
        assert s3.put_object_tagging(**place, Tagging={"TagSet": []}, VersionId="null")["VersionId"] == "null"


class TestDeletes:
    def test_markers(self, s3, kept):
        """test_delete_object_versioned"""
        version = put(s3, kept, "k", b"data")
        first = delete(s3, kept, "k")
        assert first["DeleteMarker"] is True and first["VersionId"] not in (version, "null", None)
        marker = first["VersionId"]
        error = failure(s3.get_object, Bucket=kept.name, Key="k")
        assert (error["Code"], error["Key"]) == ("NoSuchKey", "k")
        assert error["Headers"]["x-amz-delete-marker"] == "true"
        assert error["Headers"]["x-amz-version-id"] == marker
        head = kept.head("k")
        assert (head.status, head.headers["x-amz-delete-marker"]) == (404, "true")
        assert not kept.file("k").exists()
        for method in (kept.get, kept.head):
            named = method("k", query={"versionId": marker})
            assert (named.status, named.headers["allow"]) == (405, "DELETE")
            assert named.headers["x-amz-delete-marker"] == "true"
            assert named.headers["x-amz-version-id"] == marker
            assert named.headers["last-modified"].endswith(" GMT")
        error = failure(s3.get_object, Bucket=kept.name, Key="k", VersionId=marker)
        assert (error["Method"], error["ResourceType"]) == ("GET", "DeleteMarker")
        # One more on top, also where there is nothing else.
        second = delete(s3, kept, "k")["VersionId"]
        assert listed(s3, kept) == [
            ("k", second, True, "DeleteMarker"),
            ("k", marker, False, "DeleteMarker"),
            ("k", version, False, "Version"),
        ]
        assert delete(s3, kept, "wrong-key")["DeleteMarker"] is True

    def test_by_version(self, s3, kept):
        first, second = put(s3, kept, "k", b"1"), put(s3, kept, "k", b"2")
        marker = delete(s3, kept, "k")["VersionId"]
        assert delete(s3, kept, "k", VersionId=marker) == {"VersionId": marker, "DeleteMarker": True}
        assert body_of(s3, kept, "k") == b"2"
        assert delete(s3, kept, "k", VersionId=second) == {"VersionId": second, "DeleteMarker": None}
        assert body_of(s3, kept, "k") == b"1" == kept.file("k").read_bytes()
        # Twice is as once.
        assert delete(s3, kept, "k", VersionId=second) == {"VersionId": second, "DeleteMarker": None}
        assert delete(s3, kept, "k", VersionId=first) == {"VersionId": first, "DeleteMarker": None}
        assert listed(s3, kept) == [] and not kept.file("k").exists()

    def test_suspended(self, s3, kept):
        """test_delete_object_on_suspended_bucket"""
        first = put(s3, kept, "k", b"1")
        set_versioning(s3, kept, "Suspended")
        null_marker = [("k", "null", True, "DeleteMarker"), ("k", first, False, "Version")]
        for _ in range(2):
            assert delete(s3, kept, "k") == {"VersionId": "null", "DeleteMarker": True}
            assert listed(s3, kept) == null_marker
            s3.put_object(Bucket=kept.name, Key="k", Body=b"null")
            assert listed(s3, kept) == [("k", "null", True, "Version"), ("k", first, False, "Version")]
        assert delete(s3, kept, "k", VersionId="null") == {"VersionId": "null", "DeleteMarker": None}
        assert body_of(s3, kept, "k") == b"1"

    def test_many(self, s3, kept):
        """test_delete_objects_versioned, test_delete_keys_in_versioned_bucket"""
        version = put(s3, kept, "k")

        def many(*objects: dict) -> dict:
            return s3.delete_objects(Bucket=kept.name, Delete={"Objects": list(objects)})

        deleted = {entry["Key"]: entry for entry in many({"Key": "k"}, {"Key": "wrong"})["Deleted"]}
        assert all(entry["DeleteMarker"] is True for entry in deleted.values())
        assert "VersionId" not in deleted["k"] and len(deleted) == 2
        marker = deleted["k"]["DeleteMarkerVersionId"]
        [entry] = many({"Key": "k", "VersionId": marker})["Deleted"]
        expected = {"DeleteMarker": True, "DeleteMarkerVersionId": marker, "Key": "k", "VersionId": marker}
        assert entry == expected
        fake = "HPniJFCxqTsMuIH9KX8K8wEjNUgmABCD"
        [error] = many({"Key": "k", "VersionId": fake})["Errors"]
        assert (error["Code"], error["VersionId"]) == ("NoSuchVersion", fake)
        assert many({"Key": "k", "VersionId": version})["Deleted"] == [{"Key": "k", "VersionId": version}]

    def test_many_with_conditions(self, s3, kept):
        old, new = put(s3, kept, "k", b"old"), put(s3, kept, "k", b"new")
        etag = s3.head_object(Bucket=kept.name, Key="k", VersionId=old)["ETag"]
        objects = [
            {"Key": "k", "VersionId": new, "ETag": etag},
            {"Key": "k", "VersionId": old, "ETag": etag},
        ]
        answer = s3.delete_objects(Bucket=kept.name, Delete={"Objects": objects})
        assert [error["Code"] for error in answer["Errors"]] == ["PreconditionFailed"]
        assert answer["Deleted"] == [{"Key": "k", "VersionId": old}]
        assert body_of(s3, kept, "k") == b"new"

    def test_a_bucket_with_versions_is_not_empty(self, s3, kept):
        """test_delete_versioned_bucket_with_objects"""
        version = put(s3, kept, "k")
        marker = delete(s3, kept, "k")["VersionId"]
        for left in (version, marker):
            error = failure(s3.delete_bucket, Bucket=kept.name)
            assert error["Code"] == "BucketNotEmpty"
            assert error["Message"].endswith(" You must delete all versions in the bucket.")
            delete(s3, kept, "k", VersionId=left)
        s3.delete_bucket(Bucket=kept.name)


class TestCopies:
    def source(self, bucket, **version) -> dict:
        return {"Bucket": bucket.name, "Key": "k", **version}

    def test_from_a_version(self, s3, kept):
        old, new = put(s3, kept, "k", b"old"), put(s3, kept, "k", b"new")

        def copy(source: dict) -> dict:
            return s3.copy_object(Bucket=kept.name, Key="copy", CopySource=source)

        answer = copy(self.source(kept))
        assert answer["CopySourceVersionId"] == new and answer["VersionId"] not in (old, new)
        assert copy(self.source(kept, VersionId=old))["CopySourceVersionId"] == old
        assert body_of(s3, kept, "copy") == b"old"
        upload = {"Bucket": kept.name, "Key": "parts"}
        upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
        part = s3.upload_part_copy(**upload, PartNumber=1, CopySource=self.source(kept, VersionId=old))
        assert part["CopySourceVersionId"] == old

    def test_from_markers(self, s3, kept):
        """test_s3_copy_object_src_not_exists"""
        version = put(s3, kept, "k", b"data")
        marker = delete(s3, kept, "k")["VersionId"]
        place = {"Bucket": kept.name, "Key": "copy"}
        error = failure(s3.copy_object, **place, CopySource=self.source(kept))
        assert (error["Code"], error["Key"]) == ("NoSuchKey", "k")
        error = failure(s3.copy_object, **place, CopySource=self.source(kept, VersionId=marker))
        message = "The source of a copy request may not specifically refer to a delete marker by version id."
        assert (error["Code"], error["Message"]) == ("InvalidRequest", message)
        s3.copy_object(**place, CopySource=self.source(kept, VersionId=version))
        assert body_of(s3, kept, "copy") == b"data"

    def test_in_place(self, s3, kept):
        """test_s3_copy_object_in_place_versioned"""
        version = put(s3, kept, "k", b"data")
        place = {"Bucket": kept.name, "Key": "k", "CopySource": self.source(kept)}
        assert failure(s3.copy_object, **place)["Code"] == "InvalidRequest"
        replace = {**place, "MetadataDirective": "REPLACE"}
        answer = s3.copy_object(**replace)
        assert answer["CopySourceVersionId"] == version
        second = answer["VersionId"]
        set_versioning(s3, kept, "Suspended")
        answer = s3.copy_object(**replace)
        assert (answer["VersionId"], answer["CopySourceVersionId"]) == ("null", second)
        assert s3.head_object(Bucket=kept.name, Key="k")["VersionId"] == "null"
        set_versioning(s3, kept, "Enabled")
        answer = s3.copy_object(**replace)
        assert "CopySourceVersionId" not in answer and answer["VersionId"] not in ("null", second)

    def test_an_old_version_is_made_current_again(self, s3, kept):
        old, new = put(s3, kept, "k", b"old"), put(s3, kept, "k", b"new")
        source = self.source(kept, VersionId=old)
        again = s3.copy_object(Bucket=kept.name, Key="k", CopySource=source)["VersionId"]
        assert body_of(s3, kept, "k") == b"old"
        assert [version for _, version, _, _ in listed(s3, kept)] == [again, new, old]


class TestFilesOfOthers:
    def test_two_null_versions_have_two_ids(self, s3, kept):
        """A file that another program puts over a null delete marker or version is null, too: S3 deletes neither."""
        place = {"Bucket": kept.name, "Key": "k"}
        kept.file("k").write_bytes(b"older")
        delete(s3, kept, "k")
        kept.file("k").write_bytes(b"newer")
        (newer, older, marker) = listed(s3, kept)[0:3]
        # The newest is in place, whatever the clock of the others says.
        if older[3] == "DeleteMarker":
            older, marker = marker, older
        assert newer == ("k", "null", True, "Version")
        assert (older[2:], marker[2:]) == ((False, "Version"), (False, "DeleteMarker"))
        assert len({"null", older[1], marker[1]}) == 3
        pages = [listed(s3, kept, MaxKeys=1, KeyMarker="k", VersionIdMarker=id) for id in ("null", marker[1])]
        assert pages == [[marker], [older]]
        assert body_of(s3, kept, "k", VersionId="null") == b"newer"
        got = s3.get_object(**place, VersionId=older[1])
        assert (got["VersionId"], got["Body"].read()) == (older[1], b"older")
        # A write gives the older one this id for good.
        put(s3, kept, "k", b"newest")
        assert body_of(s3, kept, "k", VersionId=older[1]) == b"older"
        assert body_of(s3, kept, "k", VersionId="null") == b"newer"
        delete(s3, kept, "k", VersionId=older[1])
        assert older[1] not in [id for _, id, _, _ in listed(s3, kept)]
        assert body_of(s3, kept, "k", VersionId="null") == b"newer"

    def test_a_null_version_beside_a_newer_one_is_deleted_by_its_order(self, s3, kept):
        kept.file("k").write_bytes(b"older")
        delete(s3, kept, "k")
        kept.file("k").write_bytes(b"newer")
        older = next(id for _, id, latest, kind in listed(s3, kept) if not latest and kind == "Version")
        assert delete(s3, kept, "k", VersionId=older) == {"VersionId": older, "DeleteMarker": None}
        assert [(id, kind) for _, id, _, kind in listed(s3, kept) if kind == "Version"] == [
            ("null", "Version")
        ]
        assert body_of(s3, kept, "k") == b"newer"


class TestListings:
    @pytest.fixture
    def ids(self, s3, kept) -> list[str]:
        """test_list_objects_versions_markers: the ids in the order in which they were made."""
        keys = [f"test_{number}" for number in range(3)]
        ids = [put(s3, kept, key, b"version 1") for key in keys]
        ids.append(put(s3, kept, keys[2], b"version 2"))
        ids += [delete(s3, kept, key)["VersionId"] for key in keys]
        return ids + [put(s3, kept, key, b"version 2") for key in keys[:2]]

    ORDER = [8, 5, 1, 9, 6, 2, 7, 4, 3]

    def test_the_newest_first(self, s3, kept, ids):
        found = listed(s3, kept)
        assert [version for _, version, _, _ in found] == [ids[number - 1] for number in self.ORDER]
        latest = [ids[number - 1] for number in (8, 9, 7)]
        assert [version for _, version, is_latest, _ in found if is_latest] == latest
        assert s3.list_objects_v2(Bucket=kept.name)["KeyCount"] == 2

    @pytest.mark.parametrize("size", range(1, 10))
    def test_pages_of_any_size(self, s3, kept, ids, size):
        pages = s3.get_paginator("list_object_versions").paginate(
            Bucket=kept.name, PaginationConfig={"PageSize": size}
        )
        found = []
        for page in pages:
            entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            assert len(entries) <= size
            found += [entry["VersionId"] for entry in entries]
            if page["IsTruncated"]:
                assert (page["NextKeyMarker"], page["NextVersionIdMarker"]) in [
                    (entry["Key"], entry["VersionId"]) for entry in entries
                ]
        assert sorted(found) == sorted(ids)

    def test_markers(self, s3, kept, ids):
        page = s3.list_object_versions(Bucket=kept.name, MaxKeys=5)
        assert (page["NextKeyMarker"], page["NextVersionIdMarker"]) == ("test_1", ids[5])
        found = listed(s3, kept, MaxKeys=1, KeyMarker="test_1")
        assert found == [("test_2", ids[6], True, "DeleteMarker")]
        assert listed(s3, kept, KeyMarker="test_2") == []
        found = listed(s3, kept, MaxKeys=1, KeyMarker="test_1", VersionIdMarker=ids[5])
        assert found == [("test_1", ids[1], False, "Version")]
        found = listed(s3, kept, KeyMarker="test_2", VersionIdMarker=ids[3])
        assert found == [("test_2", ids[2], False, "Version")]
        page = s3.list_object_versions(Bucket=kept.name, MaxKeys=1, KeyMarker="")
        assert (page["NextKeyMarker"], page["NextVersionIdMarker"]) == ("test_0", ids[7])
        page = s3.list_object_versions(Bucket=kept.name, MaxKeys=0)
        assert not page["IsTruncated"] and "Versions" not in page
        error = failure(s3.list_object_versions, Bucket=kept.name, VersionIdMarker=ids[5])
        assert error["Message"] == "A version-id marker cannot be specified without a key marker."

    def test_a_page_goes_on_after_a_version_that_was_deleted(self, s3, kept):
        """test_list_objects_versions_with_prefix_only_and_pagination"""
        ids = [put(s3, kept, "prefixed_key") for _ in range(5)][::-1]
        put(s3, kept, "non_prefixed_key")
        page = s3.list_object_versions(Bucket=kept.name, Prefix="prefix", MaxKeys=3)
        place = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
        assert place["VersionIdMarker"] == ids[2]
        rest = listed(s3, kept, Prefix="prefix", **place)
        assert [(version, latest) for _, version, latest, _ in rest] == [(ids[3], False), (ids[4], False)]
        for version in ids[:3]:
            delete(s3, kept, "prefixed_key", VersionId=version)
        rest = listed(s3, kept, Prefix="prefix", **place)
        assert [(version, latest) for _, version, latest, _ in rest] == [(ids[3], True), (ids[4], False)]

    def test_groups(self, s3, kept):
        """test_list_object_versions_pagination_common_prefixes"""
        keys = ["aSubfolder/subFile1", "aSubfolder/subFile2", "file1", "file2"]
        ids = {key: put(s3, kept, f"folder/{key}") for key in keys}
        # A group of nothing but a delete marker is one, too.
        marker = delete(s3, kept, "folder/gone/x")["VersionId"]
        place = {"Bucket": kept.name, "Prefix": "folder/", "Delimiter": "/", "MaxKeys": 1}
        page = s3.list_object_versions(**place)
        assert page["CommonPrefixes"] == [{"Prefix": "folder/aSubfolder/"}]
        assert page["NextKeyMarker"] == "folder/aSubfolder/" and "NextVersionIdMarker" not in page
        for begin in ("folder/aSubfolder/", "folder/aSubfolder/subFile1"):
            page = s3.list_object_versions(**place, KeyMarker=begin)
            assert [entry["VersionId"] for entry in page["Versions"]] == [ids["file1"]]
            assert (page["NextKeyMarker"], page["NextVersionIdMarker"]) == ("folder/file1", ids["file1"])
        page = s3.list_object_versions(**place, KeyMarker="folder/file2")
        assert page["CommonPrefixes"] == [{"Prefix": "folder/gone/"}] and not page["IsTruncated"]
        assert listed(s3, kept, Prefix="folder/gone/") == [("folder/gone/x", marker, True, "DeleteMarker")]

    def test_markers_that_are_none(self, s3, kept):
        put(s3, kept, "k")
        query = {"versions": "", "key-marker": "k", "version-id-marker": "NULL"}
        response = kept.raw.get(kept.path(), query=query)
        told = {"ArgumentName": "version-id-marker", "ArgumentValue": "NULL"}
        expect.error(response, "InvalidArgument", "Invalid version id specified", **told)


def test_the_access_log_tells_the_version(make_server, tmp_path):
    log = tmp_path / "access.log"
    server = make_server("--access-log", str(log))
    s3, bucket = boto3_client(server), Bucket(server, "bucket").create()
    set_versioning(s3, bucket, "Enabled")
    for answer in (
        s3.put_object(Bucket="bucket", Key="k", Body=b"1"),
        s3.get_object(Bucket="bucket", Key="k"),
        s3.delete_object(Bucket="bucket", Key="k"),
    ):
        request = answer["ResponseMetadata"]["RequestId"]
        assert poll(lambda request=request: request in log.read_text(), 10)
        [line] = [line for line in log.read_text().splitlines() if request in line]
        assert json.loads(line)["version"] == answer["VersionId"]
