"""What is asked for and not understood destroys nothing: each subresource, parameter and header of the S3 API model,
and some that nobody has invented yet, on requests that would write."""

import itertools
from urllib.parse import quote

import pytest

from support import expect, s3_model, tables
from support.bucket import Bucket
from support.sigv4 import UNSIGNED
from support.wire import Response

INVENTED = [f"{word}{number}" for number in range(10) for word in ("frob", "frobName", "x", "2-", "Frob.")]
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


class State:
    """A bucket, an object and an upload that must stay what they are, and a bucket that nothing keeps from being deleted."""

    def __init__(self, bucket):
        self.bucket = bucket
        self.empty = Bucket(bucket.server, f"{bucket.name}-empty").create()
        bucket.put("key", b"data", headers={"x-amz-meta-a": "1"})
        self.upload = bucket.create_upload("key")
        self.before = self.now()

    def now(self):
        got = self.bucket.get("key")
        uploads = self.bucket.raw.get(self.bucket.path(), query={"uploads": ""}).xml.all("Upload")
        return (
            got.status,
            got.body,
            {**got.headers.starting("x-amz-meta"), "etag": got.headers.get("etag")},
            self.bucket.keys(),
            [upload["UploadId"] for upload in uploads],
            self.empty.raw.head(self.empty.path()).status,
        )

    def is_unchanged(self) -> bool:
        return self.now() == self.before


@pytest.fixture
def state(bucket) -> State:
    return State(bucket)


def ask(state: State, method: str, shape: str, signing: str, query, headers, connection) -> Response:
    # What is taken for a plain DELETE must be able to do harm.
    bucket = state.empty if (method, shape) == ("DELETE", "Bucket") else state.bucket
    path = bucket.path("key" if shape == "Object" else None)
    # A bucket's would be a document, and refused for what it is.
    body = b"evil" if (method, shape) != ("PUT", "Bucket") and method != "DELETE" else b""
    if signing == "signed":
        # Text: a subresource without a value is written as clients write it, without `=`.
        text = "&".join(quote(name) + (f"={quote(value)}" if value else "") for name, value in query)
        return bucket.raw.request(
            method, path, query=text, headers=headers, body=body, connection=connection
        )
    url = bucket.raw.signer.presign(method, path, bucket.raw.host, query=[*query, *headers])
    return bucket.raw.fetch(url, method, body)


SERVED = {("POST", "Object", "uploads")}


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("shape", ["Bucket", "Object"])
@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_that_is_not_understood_changes_nothing(state, method, shape, signing):
    with state.bucket.raw.connect() as connection:
        for name, value in itertools.product([*s3_model.all_parameters(), *INVENTED], ["", "x"]):
            if (method, shape, name) in SERVED:
                continue
            response = ask(state, method, shape, signing, [(name, value)], [], None)
            assert 400 <= response.status < 600 and response.status != 500, (name, value, response)
            if shape == "Bucket":
                assert state.empty.raw.head(state.empty.path()).status == 200, (name, value)
            got = state.bucket.get("key", connection=connection)
            assert (got.status, got.body) == (200, b"data"), (name, value)
    assert state.is_unchanged()


@pytest.mark.parametrize("name", ["x-id", "x-anything"])
def test_what_is_for_the_access_log_is_passed_over(bucket, name):
    """S3 User Guide, "Amazon S3 server access log format": parameters that begin with `x-`."""
    expect.ok(bucket.raw.put(bucket.path("key"), b"data", query={name: "1"}))
    assert bucket.read("key") == b"data"


# What a write answers to a header of the model that it does not have in its own input, or with a value of no meaning.
# What it does with those of its own: test_model_members.py.
def foreign_headers(operation: str) -> list[str]:
    own = s3_model.operations()[operation].headers
    names = [name for name in s3_model.all_headers() if name.startswith("x-amz-") and name not in own]
    return [name for name in names if name not in COMMON and not name.startswith("x-amz-meta-")]


COMMON = {
    # What any request may have: test_signatures.py, test_owners.py.
    "x-amz-request-payer",
    "x-amz-expected-bucket-owner",
    "x-amz-sdk-checksum-algorithm",
}
# S3 passes over these in these operations, and clients send them.
PASSED_OVER = {
    "PutObject": {"x-amz-checksum-algorithm", "x-amz-checksum-type"},
}
PLAIN = {
    ("PUT", "Bucket"): "CreateBucket",
    ("DELETE", "Bucket"): "DeleteBucket",
    ("PUT", "Object"): "PutObject",
    ("DELETE", "Object"): "DeleteObject",
}


@pytest.mark.parametrize("signing", ["signed", "presigned"])
@pytest.mark.parametrize("method, shape", PLAIN)
def test_a_header_that_is_not_understood_changes_nothing(state, method, shape, signing):
    operation = PLAIN[method, shape]
    invented = [f"x-amz-{name.lower().rstrip('.-')}" for name in INVENTED]
    names = [n for n in foreign_headers(operation) if n not in PASSED_OVER.get(operation, ())]
    for name in [*names, *invented]:
        if signing == "presigned" and name.startswith("x-amz-checksum-"):
            continue  # S3 passes over checksums in a URL: test_presigned.py.
        response = ask(state, method, shape, signing, [], [(name, "x")], None)
        assert 400 <= response.status < 600 and response.status != 500, (name, response)
        assert state.empty.raw.head(state.empty.path()).status == 200, name
    assert state.is_unchanged()


@pytest.mark.parametrize("method, shape", PLAIN)
@pytest.mark.parametrize(
    "name, value",
    [
        ("Content-Range", "bytes 4-7/8"),
        ("Range", "bytes=0-1"),
        ("x-minio-force-delete", "true"),
        ("x-minio-extract", "true"),
        ("x-emc-retention-period", "1"),
    ],
)
def test_a_part_of_an_object_is_not_taken_for_all_of_it(state, method, shape, name, value):
    """Nor are the extensions of others taken for what S3 does without them."""
    response = ask(state, method, shape, "signed", [], [(name, value)], None)
    expect.error(response, "NotImplemented", Header=name.lower())
    assert state.is_unchanged()


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
