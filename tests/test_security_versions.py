"""Versions for who may not have them: by the right for the current one, and by a `versionId` where none belongs."""

import urllib.error
import urllib.request

import pytest

from support import expect, xml
from support.bucket import complete_document
from support.identities import allow, code_of, deny
from support.intruders import Who, bucket, root, user

SECRET = b"the secret"
OLD = {"Key": "x", "VersionId": "null"}


@pytest.fixture
def lab(guarded) -> str:
    """A bucket that keeps versions, whose object is older than that and so the null version."""
    name = bucket(guarded, x=SECRET)
    root(guarded).s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


def who_may(guarded, lab, *actions: str, **rest) -> Who:
    arn = f"arn:aws:s3:::{lab}"
    return user(guarded, allow([f"s3:{action}" for action in actions], [arn, f"{arn}/*"], **rest))


def untouched(guarded, lab: str) -> bool:
    return root(guarded).s3.get_object(Bucket=lab, **OLD)["Body"].read() == SECRET


class TestReads:
    def test_the_right_for_the_current_version_is_none_for_another(self, guarded, lab):
        actions = ["GetObject", "GetObjectAttributes", "GetObjectAcl", "GetObjectTagging", "ListBucket"]
        s3 = who_may(guarded, lab, *actions).s3
        for call, members in [
            (s3.get_object, {}),
            (s3.head_object, {}),
            (s3.get_object_attributes, {"ObjectAttributes": ["ETag"]}),
            (s3.get_object_acl, {}),
            (s3.get_object_tagging, {}),
        ]:
            call(Bucket=lab, Key="x", **members)
            assert code_of(call, Bucket=lab, **OLD, **members) in ("AccessDenied", "403"), call
        # And with the right for its attributes alone.
        s3 = who_may(guarded, lab, "GetObject", "GetObjectVersionAttributes").s3
        attributes = {"ObjectAttributes": ["ETag"]}
        assert code_of(s3.get_object_attributes, Bucket=lab, **OLD, **attributes) == "AccessDenied"

    def test_the_right_for_versions_is_none_for_the_current_one(self, guarded, lab):
        s3 = who_may(guarded, lab, "GetObjectVersion").s3
        assert s3.get_object(Bucket=lab, **OLD)["Body"].read() == SECRET
        assert code_of(s3.get_object, Bucket=lab, Key="x") == "AccessDenied"

    def test_another_version_than_the_policy_names(self, guarded, lab):
        named = {"StringEquals": {"s3:VersionId": "null"}}
        s3 = who_may(guarded, lab, "GetObjectVersion", "ListBucket", Condition=named).s3
        assert s3.get_object(Bucket=lab, **OLD)["Body"].read() == SECRET
        for version in ["NULL", "null ", "other"]:
            assert code_of(s3.get_object, Bucket=lab, Key="x", VersionId=version) in (
                "AccessDenied",
                "InvalidArgument",
            )
        assert code_of(s3.get_object, Bucket=lab, Key="x", VersionId="0011223344556677") == "AccessDenied"

    def test_a_header_names_no_version(self, guarded, lab):
        """It would be read without the right for versions."""
        root(guarded).s3.put_object(Bucket=lab, Key="x", Body=b"new")
        access_key, secret_key, _ = who_may(guarded, lab, "GetObject").key
        raw = guarded.raw.with_(signer=guarded.raw.signer.with_(access_key=access_key, secret_key=secret_key))
        response = raw.get(f"/{lab}/x", headers={"x-amz-version-id": "null"})
        assert expect.ok(response).body == b"new"

    def test_a_presigned_url_for_one_version_is_for_no_other(self, guarded, lab):
        s3 = root(guarded).s3
        url = s3.generate_presigned_url("get_object", Params={"Bucket": lab, **OLD})
        assert urllib.request.urlopen(url).read() == SECRET
        for other in ["versionId=other", "versionId=", "x=1"]:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url.replace("versionId=null", other))
            assert refused.value.code in (400, 403)
        plain = s3.generate_presigned_url("get_object", Params={"Bucket": lab, "Key": "x"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(plain + "&versionId=null")
        assert refused.value.code == 403

    def test_to_list_keys_is_not_to_list_versions(self, guarded, lab):
        keys, versions = (who_may(guarded, lab, f"ListBucket{what}").s3 for what in ("", "Versions"))
        assert keys.list_objects_v2(Bucket=lab)["KeyCount"] == 1
        assert code_of(keys.list_object_versions, Bucket=lab) == "AccessDenied"
        assert len(versions.list_object_versions(Bucket=lab)["Versions"]) == 1
        assert code_of(versions.list_objects_v2, Bucket=lab) == "AccessDenied"


class TestDeletes:
    def test_the_right_to_delete_is_none_for_a_version(self, guarded, lab):
        s3 = who_may(guarded, lab, "DeleteObject", "GetObject", "ListBucket").s3
        assert code_of(s3.delete_object, Bucket=lab, **OLD) == "AccessDenied"
        [failed] = s3.delete_objects(Bucket=lab, Delete={"Objects": [OLD]})["Errors"]
        assert (failed["Code"], failed["VersionId"]) == ("AccessDenied", "null")
        assert untouched(guarded, lab)

    def test_the_right_to_delete_versions_is_none_for_the_object(self, guarded, lab):
        s3 = who_may(guarded, lab, "DeleteObjectVersion").s3
        assert code_of(s3.delete_object, Bucket=lab, Key="x") == "AccessDenied"
        [failed] = s3.delete_objects(Bucket=lab, Delete={"Objects": [{"Key": "x"}]})["Errors"]
        assert failed["Code"] == "AccessDenied"
        assert untouched(guarded, lab)

    def test_keys_of_one_deletion_with_and_without_versions(self, guarded, lab):
        root(guarded).s3.put_object(Bucket=lab, Key="y", Body=b"y")
        s3 = who_may(guarded, lab, "DeleteObject").s3
        answer = s3.delete_objects(Bucket=lab, Delete={"Objects": [{"Key": "y"}, OLD]})
        assert [deleted["Key"] for deleted in answer["Deleted"]] == ["y"]
        assert [(failed["Key"], failed["Code"]) for failed in answer["Errors"]] == [("x", "AccessDenied")]
        assert untouched(guarded, lab)


class TestVersioning:
    def test_everything_but_the_right_to_set_it(self, guarded, lab):
        s3 = user(guarded, allow("s3:*"), deny("s3:PutBucketVersioning")).s3
        suspended = {"Status": "Suspended"}
        call = s3.put_bucket_versioning
        assert code_of(call, Bucket=lab, VersioningConfiguration=suspended) == "AccessDenied"
        assert s3.get_bucket_versioning(Bucket=lab)["Status"] == "Enabled"

    def test_to_set_it_is_not_to_read_it(self, guarded, lab):
        s3 = who_may(guarded, lab, "PutBucketVersioning").s3
        s3.put_bucket_versioning(Bucket=lab, VersioningConfiguration={"Status": "Enabled"})
        assert code_of(s3.get_bucket_versioning, Bucket=lab) == "AccessDenied"


@pytest.mark.parametrize("version", ["null", "0011223344556677"])
def test_a_version_smuggled_into_another_operation(guarded, lab, version):
    """A write that passed over it would act on the current version, and not on the one that is meant."""
    raw, s3 = guarded.raw, root(guarded).s3
    upload = s3.create_multipart_upload(Bucket=lab, Key="x")["UploadId"]
    part = {"Bucket": lab, "Key": "x", "UploadId": upload, "PartNumber": 1}
    etag = s3.upload_part(**part, Body=b"part")["ETag"].strip('"')
    suspended = xml.element("VersioningConfiguration", Status="Suspended").encode()
    of_part = {"partNumber": "1", "uploadId": upload}
    for method, key, query, body in [
        ("PUT", "/x", {}, b"evil"),
        ("POST", "/x", {"uploads": ""}, b""),
        ("PUT", "/x", of_part, b"evil"),
        ("POST", "/x", {"uploadId": upload}, complete_document([(1, etag)])),
        ("DELETE", "/x", {"uploadId": upload}, b""),
        ("GET", "/x", {"uploadId": upload}, b""),
        ("DELETE", "", {}, b""),
        ("PUT", "", {"versioning": ""}, suspended),
        ("GET", "", {"versions": ""}, b""),
        ("GET", "", {}, b""),
    ]:
        response = raw.request(method, f"/{lab}{key}", query={**query, "versionId": version}, body=body)
        expect.error(response, "InvalidArgument", "This operation does not accept a version-id.")
    copied = {"x-amz-copy-source": f"{lab}/x"}
    response = raw.put(f"/{lab}/x", query={"versionId": version}, headers=copied)
    expect.error(response, "InvalidArgument", "This operation does not accept a version-id.")
    for method, body in [("PUT", b"evil"), ("DELETE", b"")]:
        response = raw.request(method, f"/{lab}/x", headers={"x-amz-version-id": version}, body=body)
        expect.error(response, "NotImplemented", Header="x-amz-version-id")
    assert s3.get_object(Bucket=lab, Key="x")["Body"].read() == SECRET
    assert s3.get_bucket_versioning(Bucket=lab)["Status"] == "Enabled"
    assert s3.list_parts(Bucket=lab, Key="x", UploadId=upload)["Parts"]
