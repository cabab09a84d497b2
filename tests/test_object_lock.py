"""Object Lock: what S3 answers, who may lock and unlock, and who tries to cheat.

The answers are those that were recorded at Amazon S3, unless a comment says otherwise. The server is one of this
module's own, since locks outlive the buckets that tests remove by hand.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from support import expect
from support.bucket import Bucket, unique_bucket_name
from support.checksums import content_md5
from support.data import PART
from support.identities import allow, client, deny, master_key, new_user
from support.marks import needs_attributes
from support.object_locks import (
    ENABLED,
    NOT_EMPTY,
    PROTECTED,
    Versions,
    error_of,
    is_protected,
    lock_bucket,
    soon,
)
from support.server import Server, remove_tree

pytestmark = needs_attributes

MALFORMED = "The XML you provided was not well-formed or did not validate against our published schema"
MISSING = "Bucket is missing Object Lock Configuration"
BOTH = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied"
BYPASS = "x-amz-bypass-governance-retention"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("locks")
    (folder / "tree").mkdir()
    options = ("--durability", "none", "--master-key-file", str(master_key(folder)))
    running = Server(folder / "tree", *options, log=folder / "server.log")
    yield running
    assert running.stop() == 0, running.log
    remove_tree(running.tree)
    assert "panicked" not in running.log, running.log


@pytest.fixture(scope="module")
def s3(server):
    return client(server, "s3")


@pytest.fixture
def locked(server) -> Bucket:
    return lock_bucket(server)


@pytest.fixture
def plain(server) -> Bucket:
    return Bucket(server, unique_bucket_name("plain")).create()


@pytest.fixture
def versions(s3, locked) -> Versions:
    return Versions(s3, locked)


class TestConfiguration:
    def test_life(self, s3, locked):
        def get():
            return s3.get_object_lock_configuration(Bucket=locked.name)["ObjectLockConfiguration"]

        assert get() == ENABLED
        assert s3.get_bucket_versioning(Bucket=locked.name)["Status"] == "Enabled"
        for period in ({"Days": 1}, {"Years": 3}):
            rule = {"DefaultRetention": {"Mode": "GOVERNANCE", **period}}
            s3.put_object_lock_configuration(
                Bucket=locked.name, ObjectLockConfiguration={**ENABLED, "Rule": rule}
            )
            assert get() == {**ENABLED, "Rule": rule}
        s3.put_object_lock_configuration(Bucket=locked.name, ObjectLockConfiguration=ENABLED)
        assert get() == ENABLED

    def test_a_bucket_that_exists(self, s3, plain):
        configure = {"Bucket": plain.name, "ObjectLockConfiguration": ENABLED}
        missing = error_of(s3.get_object_lock_configuration, Bucket=plain.name)
        assert missing == {
            "Code": "ObjectLockConfigurationNotFoundError",
            "Message": "Object Lock configuration does not exist for this bucket",
            "BucketName": plain.name,
            "status": 404,
        }
        refused = {
            "Code": "InvalidBucketState",
            "Message": "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
            "status": 409,
        }
        assert error_of(s3.put_object_lock_configuration, **configure) == refused
        for status in ("Suspended", "Enabled"):
            s3.put_bucket_versioning(Bucket=plain.name, VersioningConfiguration={"Status": status})
            if status == "Suspended":
                assert error_of(s3.put_object_lock_configuration, **configure) == refused
        s3.put_object_lock_configuration(**configure)
        assert s3.get_object_lock_configuration(Bucket=plain.name)["ObjectLockConfiguration"] == ENABLED

    @pytest.mark.parametrize(
        "configuration",
        [
            {"Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}},
            {},
            {**ENABLED, "Rule": {}},
            {**ENABLED, "Rule": {"DefaultRetention": {}}},
            {**ENABLED, "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE"}}},
            {**ENABLED, "Rule": {"DefaultRetention": {"Mode": "BAD-VALUE", "Days": 1}}},
            {**ENABLED, "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1, "Years": 1}}},
        ],
    )
    def test_what_is_malformed(self, s3, locked, configuration):
        put = {"Bucket": locked.name, "ObjectLockConfiguration": configuration}
        malformed = {"Code": "MalformedXML", "Message": MALFORMED, "status": 400}
        assert error_of(s3.put_object_lock_configuration, **put) == malformed

    def test_versions_stay_on(self, s3, locked):
        def put(status):
            return {"Bucket": locked.name, "VersioningConfiguration": {"Status": status}}

        assert error_of(s3.put_bucket_versioning, **put("Suspended")) == {
            "Code": "InvalidBucketState",
            "Message": "An Object Lock configuration is present on this bucket, so the versioning state cannot be "
            "changed.",
            "status": 409,
        }
        s3.put_bucket_versioning(**put("Enabled"))

    def test_bodies_need_a_digest(self, locked):
        """The model says of these operations that S3 wants a checksum."""
        message = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
        for path, query in ((None, "object-lock"), ("key", "retention"), ("key", "legal-hold")):
            answer = locked.raw.put(locked.path(path), b"<x/>", query={query: ""})
            expect.error(answer, "InvalidRequest", message)

    def test_event_holds_are_refused(self, s3, locked, versions):
        """Those of September 2026 are not built."""
        hold = {"DefaultEventHold": {"Days": 1}, "Mode": "GOVERNANCE", "Days": 1}
        put = {"ObjectLockConfiguration": {**ENABLED, "Rule": {"DefaultRetention": hold}}}
        refused = error_of(s3.put_object_lock_configuration, Bucket=locked.name, **put)
        assert (refused["Code"], refused["status"]) == ("NotImplemented", 501)
        versions.put()
        refused = error_of(s3.put_object_retention, **versions.at, Retention={"EventHold": "ON"})
        assert (refused["Code"], refused["status"]) == ("NotImplemented", 501)
        assert error_of(versions.put, ObjectLockEventHold="ON")["Code"] == "NotImplemented"


class TestRetention:
    def test_life(self, s3, versions):
        first = versions.put()
        until = datetime(2099, 1, 1, tzinfo=UTC)
        never = error_of(s3.get_object_retention, **versions.at, VersionId=first)
        assert never == {
            "Code": "NoSuchObjectLockConfiguration",
            "Message": "The specified object does not have a ObjectLock configuration",
            "status": 404,
        }
        versions.retain("GOVERNANCE", until)
        found = s3.get_object_retention(**versions.at)["Retention"]
        assert found == {"Mode": "GOVERNANCE", "RetainUntilDate": until}
        assert versions.head() == {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
        is_protected(versions.delete, version=first)
        assert versions.delete(first, BypassGovernanceRetention=True)["VersionId"] == first
        second = versions.put(ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
        is_protected(versions.retain, mode="GOVERNANCE", until=soon(seconds=5))
        versions.retain(None, BypassGovernanceRetention=True)
        assert versions.head() == {}
        versions.retain("GOVERNANCE", soon(seconds=2))
        is_protected(versions.delete, version=second)
        time.sleep(2.1)
        versions.delete(second)

    def test_compliance(self, versions):
        version, end = versions.put(), soon(seconds=3)
        versions.retain("COMPLIANCE", end)
        is_protected(versions.delete, version=version)
        assert versions.delete(None)["DeleteMarker"]
        is_protected(versions.delete, version=version)
        named = {"VersionId": version, "BypassGovernanceRetention": True}
        is_protected(versions.retain, mode="COMPLIANCE", until=end - timedelta(seconds=1), **named)
        is_protected(versions.retain, mode="GOVERNANCE", until=end + timedelta(hours=1), **named)
        is_protected(versions.retain, mode=None, **named)
        is_protected(versions.delete, version=version, BypassGovernanceRetention=True)
        time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()) + 0.1)
        assert versions.delete(version)["VersionId"] == version

    def test_errors(self, s3, plain, locked, versions):
        wish = {"Mode": "GOVERNANCE", "RetainUntilDate": soon(days=1)}
        put = s3.put_object_retention
        gone = error_of(put, Bucket="no-such-bucket", Key="k", Retention=wish)
        assert (gone["Code"], gone["BucketName"]) == ("NoSuchBucket", "no-such-bucket")
        missing = error_of(put, Bucket=locked.name, Key="non-existing-key", Retention=wish)
        assert (missing["Code"], missing["Key"]) == ("NoSuchKey", "non-existing-key")
        versions.put()
        malformed = {"Code": "MalformedXML", "Message": MALFORMED, "status": 400}
        for retention in ({"Mode": "GOVERNANCE"}, {**wish, "Mode": "BAD-VALUE"}):
            assert error_of(put, **versions.at, Retention=retention) == malformed
        past = {"Mode": "GOVERNANCE", "RetainUntilDate": datetime(2020, 1, 1, tzinfo=UTC)}
        assert error_of(put, **versions.at, Retention=past) == {
            "Code": "InvalidArgument",
            "Message": "The retain until date must be in the future!",
            "ArgumentName": "RetainUntilDate",
            "ArgumentValue": "Tue Dec 31 16:00:00 PST 2019",
            "status": 400,
        }
        plain.put("key", b"1")
        for call, more in ((put, {"Retention": wish}), (s3.get_object_retention, {})):
            refused = error_of(call, Bucket=plain.name, Key="key", **more)
            assert refused == {"Code": "InvalidRequest", "Message": MISSING, "status": 400}

    @pytest.mark.parametrize(
        "headers, name, message",
        [
            ({"mode": "BAD-VALUE"}, "x-amz-object-lock-retain-until-date", BOTH),
            ({"retain-until-date": "2099-01-01T00:00:00Z"}, "x-amz-object-lock-mode", BOTH),
            (
                {"mode": "BAD-VALUE", "retain-until-date": "2099-01-01T00:00:00Z"},
                "x-amz-object-lock-mode",
                "Unknown wormMode directive.",
            ),
            # From memory.
            (
                {"mode": "GOVERNANCE", "retain-until-date": "2020-01-01T00:00:00Z"},
                "x-amz-object-lock-retain-until-date",
                "The retain until date must be in the future!",
            ),
            (
                {"legal-hold": "on"},
                "x-amz-object-lock-legal-hold",
                "Legal Hold must be either of 'ON' or 'OFF'",
            ),
        ],
    )
    def test_headers(self, locked, headers, name, message):
        sent = {f"x-amz-object-lock-{short}": value for short, value in headers.items()}
        sent["content-md5"] = content_md5(b"1")
        for query, body in ((None, b"1"), ({"uploads": ""}, b"")):
            method = locked.raw.put if query is None else locked.raw.post
            given = sent if query is None else {k: v for k, v in sent.items() if k != "content-md5"}
            answer = method(locked.path("key"), body, query=query or {}, headers=given)
            expect.error(answer, "InvalidArgument", message)
            assert answer.xml["ArgumentName"] == name
        assert locked.files() == []

    def test_a_locked_put_needs_a_digest(self, locked):
        hold = {"x-amz-object-lock-legal-hold": "ON"}
        message = (
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock "
            "parameters"
        )
        expect.error(locked.raw.put(locked.path("key"), b"1", headers=hold), "InvalidRequest", message)
        locked.put("key", b"1", headers={**hold, "content-md5": content_md5(b"1")})

    def test_plain_buckets_take_no_locks(self, s3, plain):
        plain.put("key", b"1")
        until = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": soon(days=1)}
        at = {"Bucket": plain.name, "Key": "key"}
        refused = {"Code": "InvalidRequest", "Message": MISSING, "status": 400}
        assert error_of(s3.put_object, **at, Body=b"2", **until) == refused
        assert error_of(s3.create_multipart_upload, **at, **until) == refused
        assert (
            error_of(s3.copy_object, **at, CopySource=f"{plain.name}/key", ObjectLockLegalHoldStatus="ON")
            == refused
        )
        for bypass in (True, False):
            no_bypass = {
                "Code": "InvalidArgument",
                "Message": f"{BYPASS} is only applicable to Object Lock enabled buckets.",
                "ArgumentName": BYPASS,
                "status": 400,
            }
            assert error_of(s3.delete_object, **at, BypassGovernanceRetention=bypass) == no_bypass
            delete = {"Objects": [{"Key": "key"}]}
            many = {"Bucket": plain.name, "Delete": delete, "BypassGovernanceRetention": bypass}
            assert error_of(s3.delete_objects, **many) == no_bypass
        assert plain.get("key").body == b"1"

    def test_delete_markers_have_none(self, s3, versions):
        versions.put(ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=soon(minutes=10))
        marker = versions.delete(None)["VersionId"]
        wish = {"Mode": "GOVERNANCE", "RetainUntilDate": soon(days=1)}
        for call, method, more in (
            (s3.put_object_retention, "PUT", {"Retention": wish}),
            (s3.get_object_retention, "GET", {}),
        ):
            assert error_of(call, **versions.at, VersionId=marker, **more) == {
                "Code": "MethodNotAllowed",
                "Message": "The specified method is not allowed against this resource.",
                "Method": method,
                "ResourceType": "DeleteMarker",
                "status": 405,
            }
        versions.delete(marker)


class TestDefaults:
    def test_every_new_version_gets_it(self, s3, locked, versions):
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        s3.put_object_lock_configuration(
            Bucket=locked.name, ObjectLockConfiguration={**ENABLED, "Rule": rule}
        )
        versions.put()
        upload = s3.create_multipart_upload(Bucket=locked.name, Key="up")["UploadId"]
        at = {"Bucket": locked.name, "Key": "up", "UploadId": upload}
        part = s3.upload_part(**at, PartNumber=1, Body=b"1")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        s3.complete_multipart_upload(**at, MultipartUpload=parts)
        s3.copy_object(Bucket=locked.name, Key="copy", CopySource=f"{locked.name}/key")
        for key in ("key", "up", "copy"):
            head = s3.head_object(Bucket=locked.name, Key=key)
            left = head["ObjectLockRetainUntilDate"] - head["LastModified"] - timedelta(days=1)
            assert abs(left) < timedelta(seconds=30)
            assert head["ObjectLockMode"] == "GOVERNANCE"
        end = soon(minutes=10).replace(microsecond=0)
        versions.put(
            ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=end, ObjectLockLegalHoldStatus="OFF"
        )
        assert versions.head() == {
            "ObjectLockMode": "COMPLIANCE",
            "ObjectLockRetainUntilDate": end,
            "ObjectLockLegalHoldStatus": "OFF",
        }

    def test_copies_do_not_take_locks_along(self, s3, locked, versions):
        versions.put(
            ObjectLockMode="GOVERNANCE",
            ObjectLockRetainUntilDate=soon(minutes=10),
            ObjectLockLegalHoldStatus="ON",
        )
        s3.copy_object(Bucket=locked.name, Key="copy", CopySource=f"{locked.name}/key")
        assert Versions(s3, locked, "copy").head() == {}

    def test_uploads_keep_the_lock_of_their_creation(self, s3, locked):
        end = soon(minutes=10).replace(microsecond=0)
        wish = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": end}
        at = {"Bucket": locked.name, "Key": "up"}
        upload = s3.create_multipart_upload(**at, **wish, ObjectLockLegalHoldStatus="ON")["UploadId"]
        parts = []
        for number, body in ((1, b"x" * PART), (2, b"y")):
            etag = s3.upload_part(**at, UploadId=upload, PartNumber=number, Body=body)["ETag"]
            parts.append({"PartNumber": number, "ETag": etag})
        s3.complete_multipart_upload(**at, UploadId=upload, MultipartUpload={"Parts": parts})
        assert Versions(s3, locked, "up").head() == {**wish, "ObjectLockLegalHoldStatus": "ON"}


class TestLegalHolds:
    def test_life(self, s3, versions):
        version = versions.put()
        named = {"VersionId": version}
        unset = error_of(s3.get_object_legal_hold, **versions.at, **named)
        assert (unset["Code"], unset["status"]) == ("NoSuchObjectLockConfiguration", 404)
        versions.hold("ON", **named)
        assert versions.head() == {"ObjectLockLegalHoldStatus": "ON"}
        assert s3.get_object_legal_hold(**versions.at, **named)["LegalHold"] == {"Status": "ON"}
        is_protected(versions.delete, version=version)
        is_protected(versions.delete, version=version, BypassGovernanceRetention=True)
        deleted = s3.delete_objects(
            Bucket=versions.name, Delete={"Objects": [{"Key": versions.key, **named}]}
        )
        refusal = {"Code": "AccessDenied", "Key": versions.key, "Message": PROTECTED, **named}
        assert deleted["Errors"] == [refusal]
        newer = versions.put()
        assert versions.head() == {} and versions.head(**named) == {"ObjectLockLegalHoldStatus": "ON"}
        versions.hold("OFF", **named)
        assert versions.head(**named) == {"ObjectLockLegalHoldStatus": "OFF"}
        assert versions.delete(version)["VersionId"] == version
        versions.delete(newer)

    def test_errors(self, s3, plain, locked):
        put, on = s3.put_object_legal_hold, {"LegalHold": {"Status": "ON"}}
        missing = error_of(put, Bucket=locked.name, Key="non-existing-key", **on)
        assert (missing["Code"], missing["Key"]) == ("NoSuchKey", "non-existing-key")
        plain.put("key", b"1")
        at = {"Bucket": plain.name, "Key": "key"}
        refused = {"Code": "InvalidRequest", "Message": MISSING, "status": 400}
        assert error_of(put, **at, **on) == refused
        assert error_of(s3.get_object_legal_hold, **at) == refused
        assert error_of(put, **at)["Code"] == "MalformedXML"


class TestPermissions:
    def user(self, server, name: str, *statements: dict):
        return client(
            server, "s3", new_user(server, f"{name}-{time.time_ns()}", *statements, allow("s3:ListBucket"))
        )

    def test_each_needs_its_own(self, server, s3, locked, versions):
        version = versions.put(ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=soon(hours=1))
        later = {"Mode": "GOVERNANCE", "RetainUntilDate": soon(hours=2)}
        hold = {"LegalHold": {"Status": "OFF"}}
        calls = {
            "s3:GetObjectRetention": lambda c: c.get_object_retention(**versions.at),
            "s3:PutObjectRetention": lambda c: c.put_object_retention(**versions.at, Retention=later),
            "s3:PutObjectLegalHold": lambda c: c.put_object_legal_hold(**versions.at, **hold),
            "s3:GetObjectLegalHold": lambda c: c.get_object_legal_hold(**versions.at),
            "s3:PutBucketObjectLockConfiguration": lambda c: c.put_object_lock_configuration(
                Bucket=locked.name, ObjectLockConfiguration=ENABLED
            ),
            "s3:GetBucketObjectLockConfiguration": lambda c: c.get_object_lock_configuration(
                Bucket=locked.name
            ),
        }
        for action, call in calls.items():
            call(self.user(server, "may", allow(action)))
            others = self.user(server, "not", allow("s3:*"), deny(action))
            with pytest.raises(ClientError) as denied:
                call(others)
            assert denied.value.response["Error"]["Code"] == "AccessDenied", action
        # The header is no permission: whoever has none deletes as if it were not there.
        may_delete = allow(["s3:DeleteObject", "s3:DeleteObjectVersion"])
        named = {**versions.at, "VersionId": version, "BypassGovernanceRetention": True}
        is_protected(self.user(server, "del", may_delete).delete_object, **named)
        bypasses = allow("s3:BypassGovernanceRetention")
        self.user(server, "bypass", may_delete, bypasses).delete_object(**named)

    def test_who_sees_the_headers(self, server, s3, versions):
        versions.put(
            ObjectLockMode="GOVERNANCE",
            ObjectLockRetainUntilDate=soon(hours=1),
            ObjectLockLegalHoldStatus="ON",
        )
        for actions, names in (
            ([], set()),
            (["s3:GetObjectRetention"], {"ObjectLockMode", "ObjectLockRetainUntilDate"}),
            (["s3:GetObjectLegalHold"], {"ObjectLockLegalHoldStatus"}),
        ):
            reader = self.user(server, "reader", allow(["s3:GetObject", *actions]))
            assert set(Versions(reader, Bucket(server, versions.name)).head()) == names

    def test_writes_that_lock(self, server, locked):
        at = {"Bucket": locked.name, "Key": "key", "Body": b"1"}
        retention = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": soon(hours=1)}
        for action, lock in (
            ("s3:PutObjectRetention", retention),
            ("s3:PutObjectLegalHold", {"ObjectLockLegalHoldStatus": "ON"}),
        ):
            writer = self.user(server, "writer", allow("s3:PutObject"))
            assert error_of(writer.put_object, **at, **lock)["Code"] == "AccessDenied"
            writer.put_object(**at)
            self.user(server, "locker", allow(["s3:PutObject", action])).put_object(**at, **lock)

    def test_conditions(self, server, versions):
        """A policy bounds what may be set: at most so many days, and no COMPLIANCE."""
        days = {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "10"}}
        mode = {"StringEquals": {"s3:object-lock-mode": "COMPLIANCE"}}
        held = {"StringEquals": {"s3:object-lock-legal-hold": "ON"}}
        puts = ["s3:PutObjectRetention", "s3:PutObjectLegalHold", "s3:PutObject"]
        denials = [deny(puts, Condition=condition) for condition in (days, mode, held)]
        bounded = Versions(
            self.user(server, "bounded", allow(["s3:*"]), *denials), Bucket(server, versions.name)
        )
        bounded.put()
        bounded.retain("GOVERNANCE", soon(days=9))
        for call, arguments in (
            (bounded.retain, {"mode": "GOVERNANCE", "until": soon(days=12)}),
            (bounded.retain, {"mode": "COMPLIANCE", "until": soon(days=9)}),
            (bounded.hold, {"status": "ON"}),
            (bounded.put, {"ObjectLockLegalHoldStatus": "ON"}),
            (bounded.put, {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": soon(days=1)}),
        ):
            refused = error_of(call, **arguments)
            assert refused["Code"] == "AccessDenied" and refused["Message"] != PROTECTED
        bounded.hold("OFF")


class TestCheats:
    """Nothing that a client does through S3 removes a locked version."""

    @pytest.fixture
    def firm(self, versions) -> str:
        """A version that nobody may delete."""
        return versions.put(ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=soon(hours=1))

    def still_there(self, versions, firm) -> None:
        body = versions.s3.get_object(**versions.at, VersionId=firm)["Body"].read()
        assert body == b"text"
        is_protected(versions.delete, version=firm, BypassGovernanceRetention=True)

    def test_overwriting_copying_deleting(self, s3, locked, versions, firm):
        versions.put(b"over")
        s3.copy_object(**versions.at, CopySource=f"{locked.name}/key", MetadataDirective="REPLACE")
        source = {"Bucket": locked.name, "Key": "key", "VersionId": firm}
        s3.copy_object(**versions.at, CopySource=source)
        versions.delete(None)
        s3.delete_objects(Bucket=locked.name, Delete={"Objects": [{"Key": "key"}]})
        # Below the key: its file becomes a directory.
        locked.put("key/below", b"1")
        self.still_there(versions, firm)

    def test_batches_with_mixed_keys(self, s3, locked, versions, firm):
        free = versions.put(b"free")
        other = Versions(s3, locked, "other")
        governed = other.put(ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=soon(hours=1))
        held = other.put(ObjectLockLegalHoldStatus="ON")
        objects = [
            {"Key": "key", "VersionId": firm},
            {"Key": "key", "VersionId": free},
            {"Key": "other", "VersionId": governed},
            {"Key": "other", "VersionId": held},
            {"Key": "missing"},
        ]
        for bypass, refused in ((False, {firm, governed, held}), (True, {firm, held})):
            answer = s3.delete_objects(
                Bucket=locked.name, Delete={"Objects": objects}, BypassGovernanceRetention=bypass
            )
            assert {error["VersionId"] for error in answer["Errors"]} == refused
            assert {error["Message"] for error in answer["Errors"]} == {PROTECTED}
        self.still_there(versions, firm)

    def test_renaming(self, locked, versions, firm):
        """RenameObject is for directory buckets, and refused."""
        answer = locked.raw.put(
            locked.path("new"), query={"renameObject": ""}, headers={"x-amz-rename-source": "/key"}
        )
        assert answer.status in (400, 405, 501)
        self.still_there(versions, firm)

    def test_the_bucket(self, s3, locked, versions, firm):
        versions.delete(None)
        expect.error(locked.raw.delete(locked.path()), "BucketNotEmpty", NOT_EMPTY)
        put = {"Bucket": locked.name, "VersioningConfiguration": {"Status": "Suspended"}}
        assert error_of(s3.put_bucket_versioning, **put)["Code"] == "InvalidBucketState"
        self.still_there(versions, firm)
