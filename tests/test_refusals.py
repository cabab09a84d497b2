"""What is asked for and not understood destroys nothing: each subresource, parameter and header of the S3 API model,
and some that nobody has invented yet, on requests that would write."""

import base64
import hashlib
import itertools
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from support import expect, s3_model, tables, xml
from support.bucket import Bucket, complete_document
from support.checksums import content_md5
from support.sigv4 import UNSIGNED
from support.wire import Response

INVENTED = [f"{word}{number}" for number in range(10) for word in ("frob", "frobName", "x", "2-", "Frob.")]
TAGGING = b"<Tagging><TagSet><Tag><Key>name</Key><Value/></Tag></TagSet></Tagging>"
NO_BLOCK = xml.element(
    "PublicAccessBlockConfiguration", BlockPublicAcls="false", RestrictPublicBuckets="true"
).encode()
OWNERSHIP = xml.element(
    "OwnershipControls", xml.element("Rule", ObjectOwnership="BucketOwnerEnforced")
).encode()
METHODS = ["PUT", "POST", "DELETE"]
TABLE = {row.name: row for row in tables.operations()}
# The model has deprecated names for operations, and two that are asked for at other hosts.
OTHER_NAMES = {
    "GetBucketLifecycle": "GetBucketLifecycleConfiguration",
    "GetBucketNotification": "GetBucketNotificationConfiguration",
    "ListDirectoryBuckets": "ListBuckets",
    "PutBucketLifecycle": "PutBucketLifecycleConfiguration",
    "PutBucketNotification": "PutBucketNotificationConfiguration",
}
ELSEWHERE = {"WriteGetObjectResponse": "an upper-case path that can be no bucket"}


def test_fifty_are_invented():
    assert len(set(INVENTED)) == 50
    assert not set(INVENTED) & set(s3_model.all_parameters())


@pytest.mark.parametrize("modelled", s3_model.operations().values(), ids=str)
def test_every_operation_of_the_model_is_in_the_table(modelled):
    if modelled.name in ELSEWHERE:
        return
    row = TABLE[OTHER_NAMES.get(modelled.name, modelled.name)]
    assert (row.method, row.shape) == (modelled.method, modelled.shape)
    named = [name for name, _ in row.query]
    if modelled.selector and modelled.selector != "x-id":
        assert modelled.selector in named
    elif row.query:
        # The model puts what selects it among its parameters.
        assert set(named) <= set(modelled.parameters)


def test_what_is_elsewhere_is_refused(bucket):
    response = bucket.raw.post("/WriteGetObjectResponse", b"data")
    expect.error(response, "InvalidBucketName")


@dataclass(frozen=True)
class Write:
    """A request that would succeed without what is added to it."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


# What `State.write` has a request for.
WRITES = [row.name for row in TABLE.values() if row.support == "served" and row.method in METHODS]
BARE = ["POST Bucket", "POST Object"]


class State:
    """What must stay as it is: an object, an upload with a part, a policy, a bucket that nothing keeps from being
    deleted, and that another does not exist."""

    def __init__(self, bucket):
        self.bucket = bucket
        self.empty = Bucket(bucket.server, f"{bucket.name}-empty").create()
        self.absent = Bucket(bucket.server, f"{bucket.name}-absent")
        bucket.put("key", b"data", headers={"x-amz-meta-a": "1"})
        bucket.put("source", b"source")
        self.upload = bucket.create_upload("key")
        self.part = expect.ok(bucket.put_part("key", self.upload, 1, b"part")).etag
        expect.ok(bucket.raw.put(bucket.path(), self.policy("s3:GetObject"), query={"policy": ""}), 204)
        for path, name in ((bucket.path("key"), b"old"), (bucket.path(), b"name")):
            tags = TAGGING.replace(b"name", name)
            headers = {"content-md5": content_md5(tags)}
            assert bucket.raw.put(path, tags, query={"tagging": ""}, headers=headers).status in (200, 204)
        self.locks = self.lock_bucket()
        self.before = self.now()

    def lock_bucket(self) -> Bucket:
        """A bucket with a version that is retained for half a minute, and held: neither outlasts the tests for long."""
        locks = Bucket(self.bucket.server, f"{self.bucket.name}-locks")
        headers = {"x-amz-bucket-object-lock-enabled": "true"}
        expect.ok(locks.raw.put(locks.path(), headers=headers))
        until = (datetime.now(UTC) + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        locks.put(
            "key",
            b"data",
            headers={
                "content-md5": content_md5(b"data"),
                "x-amz-object-lock-mode": "GOVERNANCE",
                "x-amz-object-lock-retain-until-date": until,
            },
        )
        return locks

    def policy(self, action: str) -> bytes:
        arn = f"arn:aws:s3:::{self.bucket.name}/*"
        statement = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": arn}
        return json.dumps({"Version": "2012-10-17", "Statement": statement}).encode()

    def now(self):
        got = self.bucket.get("key")
        uploads = self.bucket.raw.get(self.bucket.path(), query={"uploads": ""}).xml.all("Upload")
        parts = self.bucket.get("key", query={"uploadId": self.upload}).xml.all("Part")
        return (
            got.status,
            got.body,
            {**got.headers.starting("x-amz-meta"), "etag": got.headers.get("etag")},
            self.bucket.keys(),
            [upload["UploadId"] for upload in uploads],
            [(part["PartNumber"], part["ETag"]) for part in parts],
            [other.raw.head(other.path()).status for other in (self.empty, self.absent)],
            self.bucket.raw.get(self.bucket.path(), query={"policy": ""}).body,
            self.bucket.raw.get(self.bucket.path(), query={"versioning": ""}).body,
            self.bucket.get("key", query={"tagging": ""}).body,
            self.bucket.raw.get(self.bucket.path(), query={"tagging": ""}).status,
            self.locks.raw.get(self.locks.path(), query={"object-lock": ""}).body,
            self.locks.head("key").headers.starting("x-amz-object-lock"),
            self.bucket.raw.get(self.bucket.path(), query={"publicAccessBlock": ""}).body,
        )

    def write(self, name: str) -> Write:
        """The request of an operation, or a method on a path where it has none."""
        key, bucket = self.bucket.path("key"), self.bucket.path()
        source = ("x-amz-copy-source", self.bucket.path("source"))
        of_upload = ("uploadId", self.upload)
        of_part = (("partNumber", "1"), of_upload)
        many = xml.element("Delete", xml.element("Object", Key="key")).encode()
        md5 = base64.b64encode(hashlib.md5(many).digest()).decode()
        parts = complete_document([(1, self.part)])
        suspended = xml.element("VersioningConfiguration", Status="Suspended").encode()
        none = b"<Tagging/>"
        locks, rule = self.locks.path("key"), xml.element("DefaultRetention", Mode="GOVERNANCE", Days="1")
        locking = xml.element(
            "ObjectLockConfiguration", xml.element("Rule", rule), ObjectLockEnabled="Enabled"
        ).encode()
        off = xml.element("LegalHold", Status="OFF").encode()
        bypass = ("x-amz-bypass-governance-retention", "true")
        md5_of_none = content_md5(none)

        def document(selector: str, body: bytes) -> Write:
            return Write("PUT", bucket, ((selector, ""),), (("content-md5", content_md5(body)),), body)

        return {
            "CreateBucket": Write("PUT", self.absent.path()),
            "DeleteBucket": Write("DELETE", self.empty.path()),
            "PutBucketPolicy": Write("PUT", bucket, (("policy", ""),), body=self.policy("s3:PutObject")),
            "PutBucketVersioning": Write("PUT", bucket, (("versioning", ""),), body=suspended),
            "DeleteBucketPolicy": Write("DELETE", bucket, (("policy", ""),)),
            "PutObjectTagging": Write(
                "PUT", key, (("tagging", ""),), (("content-md5", content_md5(TAGGING)),), TAGGING
            ),
            "DeleteObjectTagging": Write("DELETE", key, (("tagging", ""),)),
            "PutBucketTagging": Write(
                "PUT", bucket, (("tagging", ""),), (("content-md5", md5_of_none),), none
            ),
            "DeleteBucketTagging": Write("DELETE", bucket, (("tagging", ""),)),
            "PutObjectLockConfiguration": Write(
                "PUT",
                self.locks.path(),
                (("object-lock", ""),),
                (("content-md5", content_md5(locking)),),
                locking,
            ),
            "PutObjectRetention": Write(
                "PUT",
                locks,
                (("retention", ""),),
                (("content-md5", content_md5(b"<Retention/>")), bypass),
                b"<Retention/>",
            ),
            "PutObjectLegalHold": Write(
                "PUT", locks, (("legal-hold", ""),), (("content-md5", content_md5(off)),), off
            ),
            "PutPublicAccessBlock": document("publicAccessBlock", NO_BLOCK),
            "PutBucketOwnershipControls": document("ownershipControls", OWNERSHIP),
            "DeletePublicAccessBlock": Write("DELETE", bucket, (("publicAccessBlock", ""),)),
            "PutObject": Write("PUT", key, body=b"evil"),
            "CopyObject": Write("PUT", key, headers=(source,)),
            "DeleteObject": Write("DELETE", key),
            "DeleteObjects": Write("POST", bucket, (("delete", ""),), (("content-md5", md5),), many),
            "CreateMultipartUpload": Write("POST", key, (("uploads", ""),)),
            "UploadPart": Write("PUT", key, of_part, body=b"evil"),
            "UploadPartCopy": Write("PUT", key, of_part, (source,)),
            "CompleteMultipartUpload": Write("POST", key, (of_upload,), body=parts),
            "AbortMultipartUpload": Write("DELETE", key, (of_upload,)),
            "POST Bucket": Write("POST", bucket, body=b"evil"),
            "POST Object": Write("POST", key, body=b"evil"),
        }[name]


@pytest.fixture
def state(bucket) -> State:
    return State(bucket)


def ask(state: State, write: Write, signing: str, query=(), headers=()) -> Response:
    """The write with more parameters and headers, which are parameters too where it is presigned."""
    raw, query = state.bucket.raw, [*write.query, *query]
    if signing == "presigned":
        url = raw.signer.presign(
            write.method, write.path, raw.host, query=[*query, *headers], headers=write.headers
        )
        return raw.fetch(url, write.method, write.body, dict(write.headers))
    # Text: a subresource without a value is written as clients write it, without `=`.
    text = "&".join(quote(name) + (f"={quote(value)}" if value else "") for name, value in query)
    headers = [*write.headers, *headers]
    return raw.request(write.method, write.path, query=text, headers=headers, body=write.body)


def must_be_refused(state: State, write: Write, signing: str, query=(), headers=()) -> None:
    response = ask(state, write, signing, query, headers)
    assert 400 <= response.status < 600 and response.status != 500, (query, headers, response)


def must_succeed_without(state: State, name: str, signing: str) -> None:
    """The state is as it was before all that was refused; and it was refused for nothing else."""
    assert state.now() == state.before
    if name not in BARE:
        response = ask(state, state.write(name), signing)
        assert response.status in (200, 204), response
        # The only rule that can be put is the one that every bucket has.
        assert (state.now() != state.before) == (name != "PutBucketOwnershipControls")


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("name", [*WRITES, *BARE])
def test_a_parameter_that_is_not_understood_changes_nothing(state, name, signing):
    write = state.write(name)
    # Its own. The others are of other operations, which are served.
    others = {
        "POST Object": {"uploads"},
        "DeleteBucket": {"policy", "publicAccessBlock", "tagging"},
        "DeleteObject": {"tagging"},
    }
    own = {parameter for parameter, _ in write.query} | others.get(name, set())
    for parameter, value in itertools.product([*s3_model.all_parameters(), *INVENTED], ["", "x"]):
        if parameter not in own:
            must_be_refused(state, write, signing, query=[(parameter, value)])
    must_succeed_without(state, name, signing)


@pytest.mark.parametrize("query", ["x-id", "x-id=PutObject", "x-anything=1", "x-anything=1&x-anything=2"])
def test_what_is_for_the_access_log_is_passed_over(bucket, query):
    """S3 User Guide, "Amazon S3 server access log format": parameters that begin with `x-`."""
    expect.ok(bucket.raw.put(bucket.path("key"), b"data", query=query))
    assert bucket.read("key") == b"data"


OTHER_OPERATIONS = ["PutObjectTagging", "GetObject", "DeleteObjects", "putobject", "PutObjectOfTomorrow"]


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("name", WRITES)
def test_an_sdk_that_means_another_operation(state, name, signing):
    """SDKs write the operation that they mean into `x-id`. What made it another one was lost, or is unknown here."""
    for named in OTHER_OPERATIONS:
        if named != name:
            response = ask(state, state.write(name), signing, query=[("x-id", named)])
            expect.error(response, "NotImplemented", re.compile(f"x-id asks for {named},"), Parameter="x-id")
    must_succeed_without(state, name, signing)


# One of each family of headers and parameters that other servers have.
FOREIGN = [
    "cf-copy-destination-if-none-match",
    "x-archive-keep-old-version",
    "x-bce-storage-class",
    "x-cos-forbid-overwrite",
    "x-emc-retention-period",
    "x-goog-if-generation-match",
    "x-minio-extract",
    "x-obs-forbid-overwrite",
    "x-oss-forbid-overwrite",
    "x-tigris-rename",
    "x-tos-forbid-overwrite",
    "x-wasabi-prefix",
]


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("name", WRITES)
def test_a_parameter_of_another_server_is_refused(state, name, signing):
    for parameter in [*FOREIGN, "X-Goog-If-Generation-Match"]:
        response = ask(state, state.write(name), signing, query=[(parameter, "0")])
        message = re.compile("^A parameter you provided")
        expect.error(response, "NotImplemented", message, Parameter=parameter)
    must_succeed_without(state, name, signing)


def test_a_read_passes_over_those_of_another_server(bucket):
    bucket.put("key", b"data")
    for name in FOREIGN:
        expect.ok(bucket.get("key", headers={name: "0"}))
        expect.ok(bucket.get("key", query={name: "0"}))


class TestTwice:
    """Of two values one would be passed over."""

    @pytest.mark.parametrize("second", ["null", "abc"])
    def test_version(self, state, second):
        response = state.bucket.delete("key", query=f"versionId=null&versionId={second}")
        self.check(state, response, "versionId")

    @pytest.mark.parametrize("second", ["0" * 48, None])
    def test_upload(self, state, second):
        query = f"uploadId={state.upload}&uploadId={second or state.upload}"
        self.check(state, state.bucket.delete("key", query=query), "uploadId")

    def test_part(self, state):
        query = f"partNumber=1&partNumber=2&uploadId={state.upload}"
        self.check(state, self.put(state, "key", query=query), "partNumber")

    def test_operation(self, state):
        response = self.put(state, "key", query="x-id=PutObject&x-id=PutObject")
        self.check(state, response, "x-id")

    @pytest.mark.parametrize(
        "name, first, second",
        [
            ("PutObject", "If-Match", "If-Match"),
            ("DeleteObject", "If-Match", "If-Match"),
            ("DeleteObject", "If-Match", "if-match"),
            ("PutObject", "x-amz-acl", "X-Amz-Acl"),
        ],
    )
    def test_in_a_url(self, state, name, first, second):
        values = ["public-read", "private"] if first == "x-amz-acl" else ['"bad"', state.before[2]["etag"]]
        query = list(zip([first, second], values, strict=True))
        self.check(state, ask(state, state.write(name), "presigned", query), second)

    @pytest.mark.parametrize(
        "name",
        ["x-amz-copy-source", "x-amz-copy-source-if-match", "x-amz-copy-source-if-unmodified-since"],
    )
    def test_copies(self, state, name):
        bucket = state.bucket
        source = f"/{bucket.name}/key"
        values = {
            "x-amz-copy-source": [source, f"/{bucket.name}/other"],
            "x-amz-copy-source-if-match": [state.before[2]["etag"], '"other"'],
        }.get(name, ["Fri, 01 Jan 2100 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"])
        headers = [("x-amz-copy-source", source)] if name != "x-amz-copy-source" else []
        headers += [(name, value) for value in values]
        self.check(state, self.put(state, "copy", headers=headers), name)

    @pytest.mark.parametrize("name, value", [("Content-Type", "a/b"), ("x-amz-storage-class", "STANDARD")])
    def test_what_describes_an_object(self, state, name, value):
        response = self.put(state, "key", headers=[(name, value), (name, value)])
        self.check(state, response, name.lower())

    def test_reads_take_the_first(self, bucket):
        bucket.put("key", b"data")
        got = bucket.get("key", query="response-content-type=a/b&response-content-type=c/d")
        assert expect.ok(got).headers["content-type"] == "a/b"

    def put(self, state, key, **options):
        return state.bucket.raw.put(state.bucket.path(key), b"" if key == "copy" else b"evil", **options)

    def check(self, state, response, name):
        expect.error(response, "InvalidArgument", f"{name} was given more than once.", ArgumentName=name)
        assert state.now() == state.before


# What a write answers to a header of the model that it does not have in its own input, or with a
# value of no meaning. What it does with those of its own: test_model_members.py.
def foreign_headers(operation: str) -> list[str]:
    own = {*s3_model.operations()[operation].headers, *COMMON, *PASSED_OVER.get(operation, ())}
    return [name for name in s3_model.all_headers() if name.startswith(("x-amz-", "if-")) and name not in own]


COMMON = {
    # What any request may have: test_signatures.py, test_owners.py.
    "x-amz-request-payer",
    "x-amz-expected-bucket-owner",
    "x-amz-sdk-checksum-algorithm",
}
# S3 passes over these in these operations, and clients send them.
PASSED_OVER = {
    "PutObject": {"x-amz-checksum-algorithm", "x-amz-checksum-type"},
    "UploadPart": {"x-amz-checksum-algorithm"},
}


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("name", WRITES)
def test_a_header_that_is_not_understood_changes_nothing(state, name, signing):
    write = state.write(name)
    invented = [f"x-amz-{word.lower().rstrip('.-')}" for word in INVENTED]
    for header in [*foreign_headers(name), *invented]:
        if signing == "presigned" and header.startswith("x-amz-checksum-"):
            continue  # S3 passes over checksums in a URL: test_presigned.py.
        must_be_refused(state, write, signing, headers=[(header, "x")])
    must_succeed_without(state, name, signing)


CONDITIONAL = ["PutObject", "CopyObject", "CompleteMultipartUpload", "DeleteObject"]


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("name", [name for name in WRITES if name not in CONDITIONAL])
def test_a_write_that_has_no_conditions_is_not_done_under_one(state, name, signing):
    """Whether it holds or not: a server that has it would have done something else."""
    date = "Fri, 01 Jan 2100 00:00:00 GMT"
    for header, value in [
        ("If-Match", '"no"'),
        ("If-Match", "*"),
        ("If-None-Match", "*"),
        ("If-Modified-Since", date),
        ("If-Unmodified-Since", date),
    ]:
        response = ask(state, state.write(name), signing, headers=[(header, value)])
        expect.error(response, "NotImplemented", re.compile("^A (header|parameter) you provided"))
    must_succeed_without(state, name, signing)


@pytest.mark.parametrize("name", WRITES)
def test_a_part_of_an_object_is_not_taken_for_all_of_it(state, name):
    """Nor are the extensions of others taken for what S3 does without them."""
    for header, value in [
        ("Content-Range", "bytes 4-7/8"),
        ("Range", "bytes=0-1"),
        *((foreign, "true") for foreign in FOREIGN),
    ]:
        response = ask(state, state.write(name), "signed", headers=[(header, value)])
        expect.error(response, "NotImplemented", Header=header.lower())
    must_succeed_without(state, name, "signed")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_pass_over_what_is_no_ones(bucket, method):
    bucket.put("key", b"data")
    for name in INVENTED:
        expect.ok(bucket.raw.request(method, bucket.path("key"), query={name: ""}))
        expect.ok(bucket.raw.request(method, bucket.path("key"), headers={f"x-amz-{name.lower()}": "1"}))


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
@pytest.mark.parametrize("presigned", [False, True])
def test_an_rdma_proposal_is_declined(bucket, method, presigned):
    """The client reads the header, and asks again without RDMA."""
    bucket.put("key", b"data")
    token = ("x-amz-rdma-token", "0000:1000:0001")
    path = bucket.path("key")
    if presigned:
        url = bucket.raw.signer.presign(method, path, bucket.raw.host, headers=[token])
        response = bucket.raw.fetch(url, method, headers=dict([token]))
    else:
        response = bucket.raw.request(method, path, headers=dict([token]), payload=UNSIGNED)
    assert (response.status, response.body) == (501, b"")
    assert response.headers["x-amz-rdma-reply"] == "501"
    assert bucket.read("key") == b"data"
