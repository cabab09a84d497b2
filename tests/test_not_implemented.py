"""What S3 names and this server lacks is refused, and never taken for a plain GET, PUT or DELETE."""

import re

import pytest

from support import expect, tables

OPERATIONS = tables.operations()
MISSING = [row for row in OPERATIONS if not row.implemented]
BODY = b"<Whatever xmlns='http://s3.amazonaws.com/doc/2006-03-01/'/>"


def path_of(bucket, row) -> str:
    return {"Service": "/", "Bucket": bucket.path(), "Object": bucket.path("key")}[row.shape]


def send(bucket, row, **options):
    headers = {row.header: "x"} if row.header else {}
    body = BODY if row.method in ("PUT", "POST") else b""
    return bucket.raw.request(
        row.method, path_of(bucket, row), query=dict(row.query), headers=headers, body=body, **options
    )


def test_the_table_was_read():
    names = [row.name for row in OPERATIONS]
    assert len(names) == len(set(names)) > 90
    assert {"GetObject", "PutBucketPolicy", "UploadPartCopy"} <= set(names)
    assert len([row for row in OPERATIONS if row.implemented]) > 15


@pytest.mark.parametrize("row", MISSING, ids=str)
class TestMissing:
    def test_answers_501(self, bucket, row):
        bucket.put("key", b"data", headers={"x-amz-meta-a": "1"})
        response = send(bucket, row)
        if row.method == "HEAD":
            expect.head_error(response, 501)
        else:
            expect.error(response, "NotImplemented", re.compile("not implemented"))
        got = bucket.get("key")
        assert (got.body, got.headers["x-amz-meta-a"]) == (b"data", "1"), "nothing was done"
        assert bucket.keys() == ["key"]

    def test_signature_comes_first(self, bucket, row):
        """Who may do nothing is not told what there is to do."""
        response = send(bucket, row, signer=bucket.raw.signer.with_(secret_key="wrong"))
        assert response.status == 403
        assert response.code in ("SignatureDoesNotMatch", None)


@pytest.mark.parametrize(
    "method, shape, query",
    [
        ("DELETE", "Bucket", "acl"),
        ("PUT", "Object", "torrent"),
        ("PUT", "Object", "uploads"),
        ("POST", "Object", "acl"),
        ("DELETE", "Object", "acl"),
        ("DELETE", "Bucket", "versioning"),
        ("PUT", "Bucket", "uploads"),
        ("DELETE", "Bucket", "uploads"),
        ("PUT", "Object", "attributes"),
        ("DELETE", "Object", "retention"),
        ("PUT", "Bucket", "location"),
        ("POST", "Bucket", "tagging"),
        ("DELETE", "Bucket", "location"),
    ],
)
def test_subresources_with_other_methods(bucket, method, shape, query):
    bucket.put("key", b"data")
    path = bucket.path() if shape == "Bucket" else bucket.path("key")
    response = bucket.raw.request(
        method, path, query={query: ""}, body=b"evil" if method != "DELETE" else b""
    )
    expect.error(response, "MethodNotAllowed", Method=method, ResourceType=re.compile("."))
    assert bucket.read("key") == b"data"


@pytest.mark.parametrize(
    "method, shape, kind",
    [
        ("PATCH", "Object", "OBJECT"),
        ("POST", "Object", "OBJECT"),
        ("PUT", "Service", "SERVICE"),
        ("DELETE", "Service", "SERVICE"),
        ("POST", "Service", "SERVICE"),
        ("PATCH", "Bucket", "BUCKET"),
        ("TRACE", "Object", "OBJECT"),
        ("PROPFIND", "Object", "OBJECT"),
    ],
)
def test_methods_that_s3_lacks(bucket, method, shape, kind):
    path = {"Service": "/", "Bucket": bucket.path(), "Object": bucket.path("key")}[shape]
    response = bucket.raw.request(method, path)
    expect.error(response, "MethodNotAllowed", Method=method, ResourceType=kind)
    allowed = [name.strip() for name in response.headers["allow"].split(",")]
    assert "GET" in allowed
    assert bucket.is_untouched()


@pytest.mark.parametrize("query", ["acl&policy", "tagging&uploads", "cors&versioning"])
def test_two_subresources_at_once(bucket, query):
    response = bucket.raw.get(bucket.path(), query=query)
    expect.error(
        response, "InvalidArgument", "Conflicting query string parameters", ArgumentName="ResourceType"
    )


@pytest.mark.parametrize(
    "query", [{"foo": "bar"}, {"x-id": "GetObject"}, {"list-type": "2"}, {"_": "123"}, {"id": "x"}]
)
def test_parameters_without_a_meaning_are_ignored(bucket, query):
    bucket.put("key", b"data")
    assert expect.ok(bucket.get("key", query=query)).body == b"data"


@pytest.mark.parametrize(
    "query, headers, code",
    [
        ({"append": ""}, {}, None),
        ({"renameObject": ""}, {"x-amz-rename-source": "x"}, "NotImplemented"),
        ({}, {"x-amz-rename-source": "x"}, "NotImplemented"),
        ({}, {"x-amz-write-offset-bytes": "4"}, "NotImplemented"),
    ],
)
def test_writes_with_a_twist(bucket, query, headers, code):
    """The peers make an empty object of a rename, and overwrite where they are to append."""
    bucket.put("key", b"data")
    response = bucket.raw.put(bucket.path("key"), b"more", query=query, headers=headers)
    if code:
        expect.error(response, code, re.compile("."))
        assert bucket.read("key") == b"data"
    else:
        expect.ok(response)


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row.implemented], ids=str)
def test_what_the_table_calls_implemented_is(bucket, row):
    """The table is what COMPATIBILITY.md says; an operation in it has its code."""
    bucket.put("key", b"data")
    response = send(bucket, row)
    assert response.status != 501, response
