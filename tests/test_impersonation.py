"""`--impersonate`: the kernel decides about each request's files by the ids, groups and ACLs of its requester.

All users here are allowed everything by their policies, so that whatever is refused the kernel refused."""

import os
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from support import tables
from support.identities import error_of
from support.impersonation import (
    ANN,
    BOB,
    DENIED,
    EVE,
    GROUP,
    PART,
    keys,
    owner,
    read,
    refusal,
)
from support.marks import needs_impersonation
from support.wire import poll

pytestmark = needs_impersonation


class TestFiles:
    def test_a_file_is_its_writers_own(self, scene):
        for number, body in enumerate((b"", b"small", bytes(3 << 20))):
            for key in (f"a{number}", f"new{number}/d/a"):
                scene.bob.put_object(Bucket="lab", Key=key, Body=body)
                # The directory's group, as its bit says.
                assert owner(scene.file(key)) == (BOB[0], GROUP)
                assert read(scene.bob, key) == body
            assert owner(scene.file(f"new{number}/d")) == (BOB[0], GROUP)
            assert stat.S_IMODE(scene.file(f"new{number}/d").stat().st_mode) & stat.S_ISGID

    def test_modes_decide_who_reads(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"secret", Metadata={"m": "secret"})
        for mode, by_group in ((0o640, True), (0o600, False)):
            scene.file("a").chmod(mode)
            assert read(scene.ann, "a") == b"secret"
            if by_group:
                assert read(scene.bob, "a") == b"secret"
                assert scene.bob.head_object(Bucket="lab", Key="a")["Metadata"] == {"m": "secret"}
            for s3 in (scene.eve, scene.root) + (() if by_group else (scene.bob,)):
                # Often: nothing that was kept for another is told.
                for _ in range(3):
                    assert refusal(s3.get_object, Bucket="lab", Key="a") == DENIED
                    assert refusal(s3.head_object, Bucket="lab", Key="a") == DENIED
                    assert (
                        refusal(s3.get_object_attributes, Bucket="lab", Key="a", ObjectAttributes=["ETag"])
                        == DENIED
                    )
        # Once it is open to others, the directory still is not.
        scene.file("a").chmod(0o644)
        assert refusal(scene.eve.get_object, Bucket="lab", Key="a") == DENIED
        scene.bucket.chmod(0o2775)
        assert read(scene.eve, "a") == b"secret"

    def test_replacing_and_deleting_are_rights_on_the_directory(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
        scene.bucket.chmod(0o2755)
        for s3 in (scene.bob, scene.eve):
            assert refusal(s3.put_object, Bucket="lab", Key="a", Body=b"2") == DENIED
            assert refusal(s3.put_object, Bucket="lab", Key="new", Body=b"2") == DENIED
            assert refusal(s3.put_object, Bucket="lab", Key="d/new", Body=bytes(2 << 20)) == DENIED
            assert refusal(s3.delete_object, Bucket="lab", Key="a") == DENIED
            errors = s3.delete_objects(Bucket="lab", Delete={"Objects": [{"Key": "a"}]})["Errors"]
            assert [error["Code"] for error in errors] == ["AccessDenied"]
        assert os.listdir(scene.bucket) == ["a"] or sorted(os.listdir(scene.bucket)) == [".slipway", "a"]
        scene.bucket.chmod(0o2775)
        scene.bob.put_object(Bucket="lab", Key="a", Body=b"2")
        assert (read(scene.ann, "a"), owner(scene.file("a"))) == (b"2", (BOB[0], GROUP))
        scene.ann.delete_object(Bucket="lab", Key="a")
        assert not scene.file("a").exists()

    def test_sticky_directories(self, scene):
        scene.bucket.chmod(0o1777)
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
        assert refusal(scene.bob.put_object, Bucket="lab", Key="a", Body=b"2") == DENIED
        assert refusal(scene.bob.delete_object, Bucket="lab", Key="a") == DENIED
        scene.bob.put_object(Bucket="lab", Key="b", Body=b"2")
        assert read(scene.ann, "a") == b"1"
        assert sorted(name for name in os.listdir(scene.bucket) if name != ".slipway") == ["a", "b"]

    def test_directories_go_with_their_last_object(self, scene):
        scene.bob.put_object(Bucket="lab", Key="x/y/a", Body=b"1")
        scene.bob.delete_object(Bucket="lab", Key="x/y/a")
        assert not scene.file("x").exists()
        # A person's stays.
        scene.file("mine").mkdir()
        mine = scene.give(scene.file("mine"), BOB[0], GROUP, 0o2770)
        scene.bob.put_object(Bucket="lab", Key="mine/a", Body=b"1")
        scene.bob.delete_object(Bucket="lab", Key="mine/a")
        assert mine.exists()

    def test_directory_objects(self, scene):
        scene.bob.put_object(Bucket="lab", Key="d/", Body=b"")
        scene.bob.put_object(Bucket="lab", Key="e/", Body=b"bytes")
        assert owner(scene.file("d")) == (BOB[0], GROUP)
        assert owner(scene.file("e/.slipway,dir")) == (BOB[0], GROUP)
        for key in ("d/", "e/"):
            assert refusal(scene.eve.get_object, Bucket="lab", Key=key) == DENIED
            assert refusal(scene.eve.delete_object, Bucket="lab", Key=key) == DENIED
            scene.bob.delete_object(Bucket="lab", Key=key)

    def test_a_file_does_not_become_a_directory(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
        assert refusal(scene.bob.put_object, Bucket="lab", Key="a/b", Body=b"2") == ("NotImplemented", 501)
        assert read(scene.ann, "a") == b"1"
        assert not [name for name in os.listdir(scene.bucket) if name.startswith(".slipway,")]

    def test_many_attributes(self, scene):
        """A record that fits no attribute is in a file of the gateway's."""
        large = {f"m{number}": "x" * 190 for number in range(10)}
        for _ in range(2):
            scene.bob.put_object(Bucket="lab", Key="a", Body=b"1", Metadata=large)
            assert scene.ann.head_object(Bucket="lab", Key="a")["Metadata"] == large
        assert refusal(scene.eve.head_object, Bucket="lab", Key="a") == DENIED
        scene.bob.delete_object(Bucket="lab", Key="a")


class TestGroupsAndLists:
    def test_access_lists(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
        scene.file("a").chmod(0o600)
        assert refusal(scene.eve.get_object, Bucket="lab", Key="a") == DENIED
        set_list(scene.bucket, "access", user=7, eve=5, group=7, others=0)
        set_list(scene.file("a"), "access", user=6, eve=4, group=0, others=0)
        assert read(scene.eve, "a") == b"1"
        assert refusal(scene.eve.put_object, Bucket="lab", Key="a", Body=b"2") == DENIED
        assert refusal(scene.bob.get_object, Bucket="lab", Key="a") == DENIED
        # What is made here inherits it.
        set_list(scene.bucket, "default", user=7, eve=6, group=0, others=0)
        for key in ("inherits", "inherits"):
            scene.ann.put_object(Bucket="lab", Key=key, Body=b"2")
            assert read(scene.eve, key) == b"2"
            assert refusal(scene.bob.get_object, Bucket="lab", Key=key) == DENIED

    def test_supplementary_groups_are_those_of_now(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
        scene.file("a").chmod(0o640)
        assert read(scene.bob, "a") == b"1"
        scene.registry.do("set-posix", "bob", *map(str, BOB[:2]))
        deadline = time.monotonic() + 10
        while True:
            try:
                read(scene.bob, "a")
            except ClientError as error:
                assert error.response["Error"]["Code"] == "AccessDenied"
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        scene.registry.do("set-posix", "eve", *map(str, (*EVE, GROUP)))
        deadline = time.monotonic() + 10
        while True:
            try:
                assert read(scene.eve, "a") == b"1"
                break
            except ClientError:
                assert time.monotonic() < deadline
            time.sleep(0.05)


def set_list(path: Path, kind: str, *, user: int, eve: int, group: int, others: int) -> None:
    """An access list with rights for eve beside the three of the mode."""
    nobody = 0xFFFF_FFFF
    entries = [(1, user, nobody), (2, eve, EVE[0]), (4, group, nobody), (16, 7, nobody), (32, others, nobody)]
    bits = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", bits)
    except OSError as error:
        pytest.skip(f"no ACLs here: {error}")


class TestListings:
    def test_what_is_closed_is_left_out(self, scene):
        for key in ("a", "closed/b", "open/c", "open/deep/d"):
            scene.ann.put_object(Bucket="lab", Key=key, Body=b"1", Metadata={"m": "1"})
        scene.file("closed").chmod(0o700)
        scene.file("open/c").chmod(0o600)
        etag = scene.ann.head_object(Bucket="lab", Key="open/c")["ETag"]
        # A directory that the gateway has an index of, and one of many names.
        for name in range(300):
            scene.file(f"closed/n{name:03}").write_bytes(b"")
        for _ in range(3):
            assert len(keys(scene.ann)) == 304
            assert keys(scene.bob) == ["a", "open/c", "open/deep/d"]
            assert keys(scene.bob, Prefix="open/") == ["open/c", "open/deep/d"]
            assert refusal(scene.bob.list_objects_v2, Bucket="lab", Prefix="closed/") == DENIED
            assert refusal(scene.eve.list_objects_v2, Bucket="lab") == DENIED
            found = scene.bob.list_objects_v2(Bucket="lab", Delimiter="/")
            assert [prefix["Prefix"] for prefix in found["CommonPrefixes"]] == ["open/"]
            # As ls -l shows it: what is in its record is its readers'.
            shown = scene.bob.list_objects_v2(Bucket="lab", Prefix="open/c")["Contents"][0]
            assert shown["Size"] == 1 and shown["ETag"] != etag
            assert scene.ann.list_objects_v2(Bucket="lab", Prefix="open/c")["Contents"][0]["ETag"] == etag
        assert "cannot be read" not in scene.server.log

    def test_buckets(self, scene):
        names = lambda s3: [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]  # noqa: E731
        assert (names(scene.ann), names(scene.bob), names(scene.eve)) == (["lab"], ["lab"], [])
        scene.bob.head_bucket(Bucket="lab")
        assert refusal(scene.eve.head_bucket, Bucket="lab") == DENIED
        assert refusal(scene.eve.delete_bucket, Bucket="lab") == DENIED
        scene.eve.create_bucket(Bucket="eves")
        assert owner(scene.server.tree / "eves") == EVE
        (scene.server.tree / "eves").chmod(0o700)
        assert names(scene.eve) == ["eves"]
        assert refusal(scene.ann.head_bucket, Bucket="eves") == DENIED
        assert refusal(scene.ann.delete_bucket, Bucket="eves") == DENIED
        scene.eve.put_object(Bucket="eves", Key="a", Body=b"1")
        scene.eve.delete_object(Bucket="eves", Key="a")
        scene.eve.delete_bucket(Bucket="eves")
        assert not (scene.server.tree / "eves").exists()

    def test_a_bucket_goes_with_what_its_deleter_may_remove(self, scene):
        """Directories that were made in it by hand, in which nothing is."""
        eves, hers = scene.server.tree / "eves", scene.server.tree / "eves/hers"
        scene.eve.create_bucket(Bucket="eves")
        (hers / "deep").mkdir(parents=True)
        scene.give(eves, *EVE, 0o777)
        scene.give(hers / "deep", *ANN, 0o777)
        for mode in (0o700, 0o755):
            scene.give(hers, *ANN, mode)
            assert refusal(scene.eve.delete_bucket, Bucket="eves") == DENIED
            assert (hers / "deep").exists()
        # Nor is anybody told what is in there.
        os.mkfifo(hers / "deep/secret")
        hers.chmod(0o700)
        code, status, message = error_of(scene.eve.delete_bucket, Bucket="eves")
        assert (code, status) == DENIED and "secret" not in message
        (hers / "deep/secret").unlink()
        hers.chmod(0o777)
        # A sticky bit of another's.
        scene.give(eves, *ANN, 0o1777)
        assert refusal(scene.eve.delete_bucket, Bucket="eves") == DENIED
        assert hers.exists()
        eves.chmod(0o777)
        scene.eve.delete_bucket(Bucket="eves")
        assert not eves.exists()


class TestCopies:
    def test_a_source_is_read_and_a_target_written_by_the_requester(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"secret")
        scene.eve.create_bucket(Bucket="eves")
        source = {"Bucket": "lab", "Key": "a"}
        for mode in (0o600, 0o640):
            scene.file("a").chmod(mode)
            assert refusal(scene.eve.copy_object, Bucket="eves", Key="b", CopySource=source) == DENIED
        assert os.listdir(scene.server.tree / "eves") in ([], [".slipway"])
        scene.bob.copy_object(Bucket="lab", Key="c/b", CopySource=source)
        assert (read(scene.bob, "c/b"), owner(scene.file("c/b"))) == (b"secret", (BOB[0], GROUP))
        scene.bucket.chmod(0o2750)
        assert refusal(scene.bob.copy_object, Bucket="lab", Key="d", CopySource=source) == DENIED

    def test_parts(self, scene):
        scene.ann.put_object(Bucket="lab", Key="a", Body=b"secret")
        scene.file("a").chmod(0o600)
        scene.eve.create_bucket(Bucket="eves")
        upload = {"Bucket": "eves", "Key": "b"}
        upload["UploadId"] = scene.eve.create_multipart_upload(**upload)["UploadId"]
        source = {"Bucket": "lab", "Key": "a"}
        assert refusal(scene.eve.upload_part_copy, PartNumber=1, CopySource=source, **upload) == DENIED
        assert "Parts" not in scene.eve.list_parts(**upload)


class TestUploads:
    def upload(self, s3, key: str, parts: list[bytes]) -> dict:
        upload = {"Bucket": "lab", "Key": key}
        upload["UploadId"] = s3.create_multipart_upload(**upload, Metadata={"m": "1"})["UploadId"]
        self.parts = [
            {"PartNumber": number, "ETag": s3.upload_part(PartNumber=number, Body=body, **upload)["ETag"]}
            for number, body in enumerate(parts, 1)
        ]
        return upload

    def complete(self, s3, upload: dict):
        return s3.complete_multipart_upload(MultipartUpload={"Parts": self.parts}, **upload)

    def test_the_object_belongs_to_its_user(self, scene):
        bodies = [bytes([number]) * PART for number in (1, 2)] + [b"end"]
        for key in ("a", "new/d/a", "a"):
            upload = self.upload(scene.bob, key, bodies)
            answer = self.complete(scene.bob, upload)
            assert owner(scene.file(key)) == (BOB[0], GROUP)
            assert read(scene.ann, key) == b"".join(bodies)
            # Again, as a client whose answer was lost.
            assert self.complete(scene.bob, upload)["ETag"] == answer["ETag"]
            assert scene.bob.head_object(Bucket="lab", Key=key)["Metadata"] == {"m": "1"}
        assert not os.listdir(scene.bucket / ".slipway/uploads")

    def refused(self, s3, upload: dict) -> None:
        calls = (
            lambda: s3.upload_part(PartNumber=1, Body=b"2", **upload),
            lambda: s3.upload_part(PartNumber=1, Body=bytes(2 << 20), **upload),
            lambda: s3.list_parts(**upload),
            lambda: self.complete(s3, upload),
            lambda: s3.abort_multipart_upload(**upload),
        )
        for call in calls:
            assert refusal(call) == DENIED
        assert "Uploads" not in s3.list_multipart_uploads(Bucket="lab")

    def test_who_may_write_at_the_key_does_not_take_it_over(self, scene):
        """Neither by rights on the directory, nor by renaming it."""
        upload = self.upload(scene.bob, "a", [b"1"])
        self.refused(scene.ann, upload)
        self.complete(scene.bob, upload)
        # What the object was made of is not told either, although no upload is there any more.
        assert refusal(self.complete, scene.ann, upload) == DENIED
        secret = scene.file("secret")
        secret.mkdir()
        scene.give(secret, BOB[0], GROUP, 0o700)
        upload = self.upload(scene.bob, "secret/a", [b"1"])
        secret.rename(scene.file("moved"))
        secret.mkdir()
        scene.give(secret, ANN[0], GROUP, 0o700)
        self.refused(scene.ann, upload)
        assert refusal(self.complete, scene.bob, upload) == DENIED
        # It is still there to be removed.
        assert [found["Key"] for found in scene.bob.list_multipart_uploads(Bucket="lab")["Uploads"]] == [
            "secret/a"
        ]
        scene.bob.abort_multipart_upload(**upload)
        assert not os.listdir(scene.bucket / ".slipway/uploads")

    def test_pages_name_no_upload_of_others(self, scene):
        for number in range(4):
            s3 = (scene.ann, scene.bob)[number % 2]
            self.upload(s3, f"{number}/a", [])
        for s3, own in ((scene.ann, ("0", "2")), (scene.bob, ("1", "3"))):
            for delimiter in ({}, {"Delimiter": "/"}):
                marker, seen = {}, []
                for _ in range(2):
                    page = s3.list_multipart_uploads(Bucket="lab", MaxUploads=1, **delimiter, **marker)
                    seen += [found["Key"] for found in page.get("Uploads", [])]
                    seen += [found["Prefix"] for found in page.get("CommonPrefixes", [])]
                    marker = {
                        name: page[f"Next{name}"]
                        for name in ("KeyMarker", "UploadIdMarker")
                        if page.get(f"Next{name}")
                    }
                    assert not marker or marker["KeyMarker"].startswith(own)
                assert [key[0] for key in seen] == list(own) and not page["IsTruncated"]

    def test_nobody_else_works_on_it(self, scene):
        upload = self.upload(scene.bob, "a", [b"1"])
        # Even who may read in the bucket.
        scene.bucket.chmod(0o2775)
        scene.bob.put_object(Bucket="lab", Key="open", Body=b"1")
        source = {"Bucket": "lab", "Key": "open"}
        for call in (
            lambda: scene.eve.create_multipart_upload(Bucket="lab", Key="x"),
            lambda: scene.eve.upload_part_copy(PartNumber=1, CopySource=source, **upload),
        ):
            assert refusal(call) == DENIED
        self.refused(scene.eve, upload)
        assert [found["Key"] for found in scene.bob.list_multipart_uploads(Bucket="lab")["Uploads"]] == ["a"]
        # Whoever lost the right to the key does not complete it.
        scene.bucket.chmod(0o2755)
        assert refusal(self.complete, scene.bob, upload) == DENIED
        scene.bucket.chmod(0o2775)
        self.complete(scene.bob, upload)
        assert read(scene.bob, "a") == b"1"

    def test_the_buckets_owner_does_not_keep_it(self, scene):
        """Who owns the bucket's directory may put anything there, also in the place of the gateway's own."""
        own = scene.bucket / ".slipway"
        if own.exists():
            own.rename(scene.bucket / "moved")
        own.mkdir()
        scene.give(own, *ANN, 0o700)
        scene.bob.put_object(Bucket="lab", Key="a", Body=b"1")
        for _ in range(2):
            assert refusal(scene.bob.create_multipart_upload, Bucket="lab", Key="b") == DENIED
            assert refusal(scene.bob.put_object, Bucket="lab", Key="a", Body=b"2") == DENIED
        assert not list(own.rglob("upload*")) and read(scene.bob, "a") == b"1"
        assert "another owner or mode than the server gives it" in scene.server.log

    def test_an_aborted_one_leaves_nothing(self, scene):
        upload = self.upload(scene.bob, "a", [bytes(PART), b"1"])
        scene.bob.abort_multipart_upload(**upload)
        assert not os.listdir(scene.bucket / ".slipway/uploads")


def requests_of_all_operations() -> dict[str, Callable]:
    """A request of each operation of S3 that is served, as a client's call."""
    lab = {"Bucket": "lab"}
    a = {**lab, "Key": "a"}
    attributes = {"ObjectAttributes": ["ETag"]}
    tagging = {"Tagging": {"TagSet": [{"Key": "t", "Value": "1"}]}}
    return {
        "AbortMultipartUpload": lambda s3, upload: s3.abort_multipart_upload(**a, UploadId=upload),
        "CompleteMultipartUpload": lambda s3, upload: s3.complete_multipart_upload(
            **a, UploadId=upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": '"x"'}]}
        ),
        "CopyObject": lambda s3, _: s3.copy_object(**lab, Key="b", CopySource=a),
        "CreateMultipartUpload": lambda s3, _: s3.create_multipart_upload(**a),
        "DeleteBucket": lambda s3, _: s3.delete_bucket(**lab),
        "DeleteObject": lambda s3, _: s3.delete_object(**a),
        "DeleteObjects": lambda s3, _: s3.delete_objects(**lab, Delete={"Objects": [{"Key": "a"}]}),
        "DeleteObjectTagging": lambda s3, _: s3.delete_object_tagging(**a),
        "GetObject": lambda s3, _: s3.get_object(**a),
        "GetObjectAttributes": lambda s3, _: s3.get_object_attributes(**a, **attributes),
        "GetObjectTagging": lambda s3, _: s3.get_object_tagging(**a),
        "HeadBucket": lambda s3, _: s3.head_bucket(**lab),
        "HeadObject": lambda s3, _: s3.head_object(**a),
        "ListMultipartUploads": lambda s3, _: s3.list_multipart_uploads(**lab),
        "ListObjects": lambda s3, _: s3.list_objects(**lab),
        "ListObjectsV2": lambda s3, _: s3.list_objects_v2(**lab),
        "ListObjectVersions": lambda s3, _: s3.list_object_versions(**lab),
        "ListParts": lambda s3, upload: s3.list_parts(**a, UploadId=upload),
        "PutObject": lambda s3, _: s3.put_object(**a, Body=b"2"),
        "PutObjectTagging": lambda s3, _: s3.put_object_tagging(**a, **tagging),
        "UploadPart": lambda s3, upload: s3.upload_part(**a, UploadId=upload, PartNumber=1, Body=b"2"),
        "UploadPartCopy": lambda s3, upload: s3.upload_part_copy(
            **a, UploadId=upload, PartNumber=1, CopySource=a
        ),
    }


# Decided by policies alone: they touch no file of a user's, but documents of the gateway's. A bucket is made in DIR,
# which is the gateway's own, and a list of buckets leaves out what is closed.
BY_POLICY = {
    "CreateBucket",
    "DeleteBucketPolicy",
    "DeleteBucketTagging",
    "DeletePublicAccessBlock",
    "GetBucketLocation",
    "GetBucketOwnershipControls",
    "GetBucketPolicy",
    "GetBucketPolicyStatus",
    "GetBucketTagging",
    "GetBucketVersioning",
    "GetPublicAccessBlock",
    "ListBuckets",
    "PutBucketOwnershipControls",
    "PutBucketPolicy",
    "PutBucketTagging",
    "PutBucketVersioning",
    "PutPublicAccessBlock",
}

# Object locks need versions, which are refused here.
BY_POLICY |= {
    "GetObjectLegalHold",
    "GetObjectLockConfiguration",
    "GetObjectRetention",
    "PutObjectLegalHold",
    "PutObjectLockConfiguration",
    "PutObjectRetention",
}


class TestEveryOperation:
    @pytest.mark.parametrize("who", ["eve", "nobody"])
    def test_is_refused_to_whom_the_kernel_refuses_it(self, scene, who):
        """By eve, who has no right in the bucket, and by a user who is nobody on the file system."""
        scene.bob.put_object(Bucket="lab", Key="a", Body=b"1")
        upload = scene.bob.create_multipart_upload(Bucket="lab", Key="a")["UploadId"]
        before = tree_of(scene.bucket)
        s3 = scene.eve
        if who == "nobody":
            s3 = scene.user("nobody")
            # Policies decide about this alone.
            poll(lambda: error_of(s3.get_bucket_policy, Bucket="lab")[0] == "NoSuchBucketPolicy")
        for name, call in requests_of_all_operations().items():
            assert refusal(call, s3, upload) == DENIED, name
        if who == "nobody":
            assert refusal(s3.list_buckets) == DENIED
            assert refusal(s3.create_bucket, Bucket="mine") == DENIED
        assert tree_of(scene.bucket) == before

    def test_has_a_request_here(self):
        served = {operation.name for operation in tables.operations() if operation.support == "served"}
        assert set(requests_of_all_operations()) | BY_POLICY == served


def tree_of(path: Path) -> dict[str, tuple]:
    """All names below, with their attributes, but for the gateway's own."""
    found = {}
    for above, directories, files in os.walk(path):
        directories[:] = [name for name in directories if name != ".slipway"]
        for name in directories + files:
            status = os.lstat(Path(above) / name)
            found[str(Path(above) / name)] = (
                status.st_mode,
                status.st_uid,
                status.st_ino,
                status.st_mtime_ns,
            )
    return found
