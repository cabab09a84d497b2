"""PutBucketVersioning and GetBucketVersioning: what a bucket says of itself, and what is refused. The versions
themselves are in `test_versions.py`."""

import pytest

from support import expect, xml
from support.bucket import Bucket
from support.wire import Response


def document(**members: str) -> bytes:
    return xml.element("VersioningConfiguration", **members).encode()


def put(bucket, body: bytes, **options) -> Response:
    return bucket.raw.put(bucket.path(), body, query={"versioning": ""}, **options)


def status(bucket) -> str | None:
    answer = expect.ok(bucket.raw.get(bucket.path(), query={"versioning": ""})).xml
    return answer.get("Status")


def test_it_is_suspended_and_enabled_and_never_unset(bucket):
    """As it was recorded at Amazon S3."""
    assert status(bucket) is None
    for wanted in ["Suspended", "Enabled", "Enabled", "Suspended", "Enabled"]:
        expect.ok(put(bucket, document(Status=wanted)))
        assert status(bucket) == wanted
    for wrong in ["enabled", "Disabled", "", " Suspended"]:
        expect.error(put(bucket, document(Status=wrong)), "MalformedXML")
    expect.error(put(bucket, document()), "IllegalVersioningConfigurationException")
    expect.error(put(bucket, b""), "MissingRequestBodyError")
    expect.error(put(bucket, b"<Versioning/>"), "MalformedXML")
    assert status(bucket) == "Enabled"


def test_mfa_delete_is_refused_by_name(bucket):
    on = document(Status="Enabled", MfaDelete="Enabled")
    expect.error(put(bucket, on), "NotImplemented", "MFA delete is not implemented.")
    response = put(bucket, document(Status="Enabled"), headers={"x-amz-mfa": "1 2"})
    expect.error(response, "NotImplemented", Header="x-amz-mfa")
    assert status(bucket) is None
    expect.ok(put(bucket, document(Status="Enabled", MfaDelete="Disabled")))
    assert status(bucket) == "Enabled"


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_of_a_bucket_that_is_not_there(raw, method):
    body = document(Status="Enabled") if method == "PUT" else b""
    response = raw.request(method, "/no-such-bucket", query={"versioning": ""}, body=body)
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")


def test_it_goes_with_its_bucket(bucket):
    expect.ok(put(bucket, document(Status="Suspended")))
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    bucket.create()
    assert status(bucket) is None


def test_nobody_without_the_permission(bucket):
    for method in ["GET", "PUT"]:
        response = bucket.raw.request(
            method, bucket.path(), query={"versioning": ""}, body=document(Status="Enabled"), anonymous=True
        )
        expect.error(response, "AccessDenied")
    assert status(bucket) is None


def test_where_versions_cannot_be_kept_the_answer_says_why(make_server):
    server = make_server("--metadata", "sidecar", "--log", "debug")
    bucket = Bucket(server, "beside").create()
    told = "This server cannot keep versions, since it has its records in files beside the objects."
    refused = put(bucket, document(Status="Enabled"))
    expect.error(refused, "NotImplemented", told)
    assert status(bucket) is None
    lines = server.log.splitlines()
    assert any("requests for versions of this bucket are refused" in line for line in lines)
    [line] = [line for line in lines if refused.headers["x-amz-request-id"] in line and " DEBUG " in line]
    assert "(--metadata sidecar)" in line
