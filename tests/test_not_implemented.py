"""What S3 names and this server lacks is refused, and never taken for a plain GET, PUT or DELETE."""

import re

import pytest

from support import expect, tables

OPERATIONS = tables.operations()
# A form's request is refused by what it is: test_forms_are_not_implemented.
MISSING = [row for row in OPERATIONS if row.support == "refused" and row.name != "PostObject"]
UNSET = [row for row in OPERATIONS if row.support == "unset"]
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
    assert len([row for row in OPERATIONS if row.support == "served"]) > 15


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
        ("PATCH", "Bucket", "BUCKET"),
    ],
)
def test_methods_that_s3_lacks(bucket, method, shape, kind):
    path = {"Service": "/", "Bucket": bucket.path(), "Object": bucket.path("key")}[shape]
    response = bucket.raw.request(method, path)
    expect.error(response, "MethodNotAllowed", Method=method, ResourceType=kind)
    allowed = [name.strip() for name in response.headers["allow"].split(",")]
    assert "GET" in allowed
    assert bucket.is_untouched()


@pytest.mark.parametrize("method", ["TRACE", "PROPFIND", "FOO"])
def test_methods_that_nobody_has(bucket, method):
    response = bucket.raw.request(method, bucket.path("key"))
    expect.error(response, "BadRequest")
    assert "allow" not in response.headers


@pytest.mark.parametrize(
    "query, names",
    [
        ("policy&acl", ["acl", "policy"]),
        ("tagging&uploads", ["tagging", "uploads"]),
        ("versioning&cors&acl", ["acl", "cors", "versioning"]),
        ("partNumber=1&acl", ["acl", "partNumber"]),
    ],
)
@pytest.mark.parametrize("signer", [{}, {"secret_key": "wrong"}])
def test_two_subresources_at_once(bucket, query, names, signer):
    """Told to anyone, before the signature is looked at."""
    response = bucket.raw.get(bucket.path(), query=query, signer=bucket.raw.signer.with_(**signer))
    expect.error(
        response,
        "InvalidArgument",
        f"Conflicting query string parameters: {', '.join(names)}",
        ArgumentName="ResourceType",
        ArgumentValue=names[0],
    )


@pytest.mark.parametrize(
    "method, shape, query, kind, allow",
    [
        ("POST", "Bucket", "acl", "ACL", "GET, PUT"),
        ("DELETE", "Bucket", "location", "LOCATION", "GET"),
        ("PUT", "Bucket", "partNumber=1&uploadId=x", "PART", None),
        ("GET", "Bucket", "delete", "MULTI_OBJECT_DELETE", "POST"),
        ("PUT", "Object", "uploadId=x", "UPLOAD", "DELETE, GET, POST"),
        ("GET", "Object", "restore", "RESTORE", "POST"),
        ("POST", "Object", "policy", "BUCKETPOLICY", "DELETE, GET, PUT"),
        ("DELETE", "Object", "partNumber=1&uploadId=x", "PART", "PUT"),
    ],
)
def test_a_subresource_says_what_it_is_and_what_it_takes(bucket, method, shape, query, kind, allow):
    path = bucket.path() if shape == "Bucket" else bucket.path("key")
    response = bucket.raw.request(method, path, query=query)
    expect.error(response, "MethodNotAllowed", Method=method, ResourceType=kind)
    assert response.headers.get("allow") == allow
    # A signature that is sent and wrong is refused first.
    wrong = bucket.raw.signer.with_(secret_key="wrong")
    expect.error(bucket.raw.request(method, path, query=query, signer=wrong), "SignatureDoesNotMatch")


@pytest.mark.parametrize(
    "method, query, code, message, details",
    [
        ("GET", "partNumber=1", "InvalidRequest", "Object must have a valid key name.", {}),
        ("PUT", "partNumber=1", "InvalidRequest", "Object must have a valid key name.", {}),
        (
            "DELETE",
            "versionId=x",
            "InvalidArgument",
            "This operation does not accept a version-id.",
            {"ArgumentName": "versionId", "ArgumentValue": "x"},
        ),
        (
            "GET",
            "versionId=x",
            "InvalidArgument",
            "This operation does not accept a version-id.",
            {"ArgumentName": "versionId", "ArgumentValue": "x"},
        ),
        ("GET", "acl&versionId=x", "InvalidArgument", "Invalid version id specified", {}),
        ("DELETE", "uploadId=x", "InvalidRequest", "A key must be specified", {}),
        ("POST", "uploadId=x", "InvalidRequest", "A key must be specified", {}),
        ("POST", "restore", "UserKeyMustBeSpecified", None, {}),
        ("GET", "website=x", "InvalidArgument", "The website parameter must not have a value", {}),
    ],
)
def test_what_belongs_to_an_object_on_a_buckets_path(bucket, method, query, code, message, details):
    bucket.put("key", b"data")
    response = bucket.raw.request(method, bucket.path(), query=query)
    expect.error(response, code, message, **details)
    assert bucket.read("key") == b"data"


@pytest.mark.parametrize(
    "query, code, message",
    [
        ("versions", "InvalidRequest", "There is no such thing as the ?versions sub-resource for a key"),
        ("logging", "NoLoggingStatusForKey", None),
        ("uploads", "InvalidRequest", "Key is not expected for the GET method ?uploads subresource"),
        ("policy", "NoSuchBucketPolicy", None),
        ("cors", "NoSuchCORSConfiguration", None),
    ],
)
@pytest.mark.usefixtures("no_bucket")
def test_what_belongs_to_a_bucket_on_a_keys_path(bucket, query, code, message):
    """S3 answers for the bucket, whether there is such a key or not."""
    bucket.put("key", b"data")
    for key in ("key", "no-key"):
        expect.error(bucket.get(key, query=query), code, message)
    missing = bucket.raw.get("/no-such-bucket-here/key", query=query)
    expect.error(missing, "NoSuchBucket")
    assert expect.ok(bucket.get("key", query="location")).xml.name == "LocationConstraint"
    assert expect.ok(bucket.get("key", query="analytics")).body == b"data", "means nothing there"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_only_a_put_copies(bucket, method):
    bucket.put("key", b"data")
    response = bucket.raw.request(method, bucket.path("key"), headers={"x-amz-copy-source": "a/b"})
    if method == "HEAD":
        expect.head_error(response, 400)
    else:
        message = "You can only specify a copy source header for copy requests."
        details = {"ArgumentName": "x-amz-copy-source", "ArgumentValue": "a/b"}
        expect.error(response, "InvalidArgument", message, **details)
    assert bucket.read("key") == b"data"


def test_forms_are_not_implemented(bucket):
    """A POST that is no form is told so, whoever sends it."""
    response = bucket.raw.post(bucket.path(), b"x", anonymous=True)
    condition = "Bucket POST must be of the enclosure-type multipart/form-data"
    expect.error(response, "PreconditionFailed", Condition=condition)
    form = {"content-type": "multipart/form-data; boundary=x"}
    for anonymous in (False, True):
        response = bucket.raw.post(bucket.path(), b"--x--", headers=form, anonymous=anonymous)
        expect.error(response, "NotImplemented", "PostObject is not implemented.")


class TestPreflight:
    """No bucket has a CORS configuration."""

    def ask(self, bucket, path, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return bucket.raw.request("OPTIONS", path, headers=headers, anonymous=True)

    @pytest.mark.usefixtures("no_bucket")
    def test_without_an_origin(self, bucket):
        message = "Insufficient information. Origin request header needed."
        expect.error(self.ask(bucket, bucket.path()), "BadRequest", message)
        expect.error(self.ask(bucket, "/no-such-bucket-here"), "BadRequest", message)

    @pytest.mark.usefixtures("no_bucket")
    def test_with_one(self, bucket):
        asked = {"origin": "http://example.org"}
        details = {"Method": "OPTIONS", "ResourceType": "BUCKET"}
        expect.error(self.ask(bucket, bucket.path("key"), **asked), "AccessForbidden", **details)
        missing = self.ask(bucket, "/no-such-bucket-here", **asked)
        expect.error(missing, "AccessForbidden", "CORSResponse: Bucket not found", **details)
        asked["access_control_request_method"] = "PUT"
        expect.error(self.ask(bucket, bucket.path(), **asked), "AccessForbidden", Method="PUT")
        asked["access_control_request_method"] = "put"
        message = "Invalid Access-Control-Request-Method: put"
        expect.error(self.ask(bucket, bucket.path(), **asked), "BadRequest", message)


@pytest.mark.parametrize("row", UNSET, ids=str)
class TestUnset:
    """Reads of configuration are answered as on a new bucket."""

    def test_answers(self, bucket, row):
        bucket.put("key", b"data")
        response = send(bucket, row)
        assert response.status in (200, 400, 404, 405), response
        if response.status == 200:
            expect.ok(response)
            assert response.headers["content-type"] == "application/xml"
        else:
            expect.error(response, response.code, re.compile("."))

    @pytest.mark.usefixtures("no_bucket")
    def test_of_no_bucket(self, bucket, row):
        path = {"Bucket": "/no-such-bucket-here", "Object": "/no-such-bucket-here/key"}[row.shape]
        response = bucket.raw.request(row.method, path, query=dict(row.query))
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket-here")

    def test_of_nobodys_business(self, bucket, row):
        response = send(bucket, row, anonymous=True)
        expect.error(response, "AccessDenied")


class TestUnsetAnswers:
    """What clients look at in them."""

    def read(self, bucket, query, key=None):
        return expect.ok(bucket.raw.get(bucket.path(key), query=query)).xml

    def test_documents(self, bucket):
        bucket.put("key", b"data")
        assert self.read(bucket, "versioning").text == ""
        assert self.read(bucket, "requestPayment")["Payer"] == "BucketOwner"
        for key in (None, "key"):
            acl = self.read(bucket, "acl", key)
            grant = acl.child("AccessControlList").child("Grant")
            assert grant["Permission"] == "FULL_CONTROL"
            assert grant.child("Grantee")["ID"] == acl.child("Owner")["ID"]
        for name in ("analytics", "intelligent-tiering", "inventory", "metrics"):
            assert self.read(bucket, name)["IsTruncated"] == "false"

    @pytest.mark.parametrize(
        "query, code",
        [
            ("cors", "NoSuchCORSConfiguration"),
            ("encryption", "ServerSideEncryptionConfigurationNotFoundError"),
            ("lifecycle", "NoSuchLifecycleConfiguration"),
            ("metadataConfiguration", "MetadataConfigurationNotFound"),
            ("metadataTable", "V1APIsNotAllowed"),
            ("replication", "ReplicationConfigurationNotFoundError"),
            ("website", "NoSuchWebsiteConfiguration"),
            ("metrics&id=x", "NoSuchConfiguration"),
            ("metrics&continuation-token=x", "MalformedContinuationToken"),
        ],
    )
    def test_there_is_none(self, bucket, query, code):
        response = bucket.raw.get(bucket.path(), query=query)
        expect.error(response, code)
        if code not in ("V1APIsNotAllowed", "NoSuchConfiguration", "MalformedContinuationToken"):
            assert response.xml["BucketName"] == bucket.name

    def test_of_objects(self, bucket):
        bucket.put("key", b"data")
        for query in ("acl", "annotation", "annotation&annotationName=n"):
            expect.error(bucket.get("no-key", query=query), "NoSuchKey", Key="no-key")
        response = bucket.get("key", query="annotation&annotationName=n")
        expect.error(response, "NoSuchAnnotation", AnnotationName="n")
        response = bucket.get("key", query="annotation&annotationName=")
        expect.error(response, "UserAnnotationNameMustBeSpecified")
        assert self.read(bucket, "annotation", "key")["AnnotationCount"] == "0"
        expect.error(bucket.get("key", query="torrent"), "MethodNotAllowed", ResourceType="TORRENT")


@pytest.mark.parametrize(
    "query", [{"foo": "bar"}, {"x-id": "GetObject"}, {"list-type": "2"}, {"_": "123"}, {"id": "x"}]
)
def test_parameters_without_a_meaning_are_ignored(bucket, query):
    bucket.put("key", b"data")
    assert expect.ok(bucket.get("key", query=query)).body == b"data"


@pytest.mark.parametrize(
    "query, headers, code",
    [
        ({"append": ""}, {}, "NotImplemented"),
        ({"renameObject": ""}, {"x-amz-rename-source": "x"}, "NotImplemented"),
        ({}, {"x-amz-rename-source": "x"}, "NotImplemented"),
        ({}, {"x-amz-write-offset-bytes": "4"}, "NotImplemented"),
    ],
)
def test_writes_with_a_twist(bucket, query, headers, code):
    """The peers make an empty object of a rename, and overwrite where they are to append."""
    bucket.put("key", b"data")
    response = bucket.raw.put(bucket.path("key"), b"more", query=query, headers=headers)
    expect.error(response, code, re.compile("."))
    assert bucket.read("key") == b"data"


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row.support == "served"], ids=str)
def test_what_the_table_calls_implemented_is(bucket, row):
    """The table is what COMPATIBILITY.md says; an operation in it has its code."""
    bucket.put("key", b"data")
    response = send(bucket, row)
    assert response.status != 501, response
