"""DeleteObjects."""

import re

import pytest

from support import expect
from support.checksums import ALGORITHMS, checksum, content_md5, header
from support.xml import Element, element

NAMESPACE = b"http://s3.amazonaws.com/doc/2006-03-01/"
INSTANCE = b"http://www.w3.org/2001/XMLSchema-instance"


def document(*keys: str, quiet: bool | None = None, **extra: str) -> bytes:
    """A Delete document; `extra` is put into every object."""
    objects = [element("Object", Key=key, **extra) for key in keys]
    quiet_element = [] if quiet is None else [element("Quiet", str(quiet).lower())]
    return element("Delete", *objects, *quiet_element).encode()


def delete(bucket, body: bytes, headers: dict[str, str] | None = None, **options):
    headers = {"content-md5": content_md5(body)} if headers is None else headers
    return bucket.raw.post(bucket.path(), body, query={"delete": ""}, headers=headers, **options)


def deleted(result: Element) -> list[str]:
    return [entry["Key"] for entry in result.all("Deleted")]


def test_deletes_what_is_named(bucket):
    for key in ("a", "b/c", "b/d", "kept"):
        bucket.put(key, b"x")
    result = expect.ok(delete(bucket, document("a", "b/c", "b/d", "never was"))).xml
    assert result.name == "DeleteResult"
    assert deleted(result) == ["a", "b/c", "b/d", "never was"]
    assert result.all("Error") == []
    assert bucket.keys() == ["kept"]
    assert bucket.files() == ["kept"]
    assert not bucket.file("b").exists()


def test_quiet(bucket):
    bucket.put("a", b"x")
    result = expect.ok(delete(bucket, document("a", "b", quiet=True))).xml
    assert result.names() == []
    assert bucket.keys() == []


def test_not_quiet(bucket):
    assert deleted(expect.ok(delete(bucket, document("a", quiet=False))).xml) == ["a"]


@pytest.mark.parametrize(
    "text, shown", [("TRUE", []), (" true ", []), ("1", []), ("0", ["a"]), ("perhaps", ["a"]), ("", ["a"])]
)
def test_any_text_in_quiet_is_taken(bucket, text, shown):
    """As S3 does. What does not say yes gets the whole answer."""
    bucket.put("a", b"x")
    body = element("Delete", element("Object", Key="a"), element("Quiet", text)).encode()
    assert deleted(expect.ok(delete(bucket, body)).xml) == shown
    assert bucket.keys() == []


def test_a_thousand_keys(bucket):
    keys = [f"k/{n:04}" for n in range(1000)]
    for key in keys:
        (bucket.tree / "k").mkdir(exist_ok=True)
        bucket.file(key).write_text(key)
    result = expect.ok(delete(bucket, document(*keys))).xml
    assert deleted(result) == keys
    assert bucket.files() == []


def test_more_than_a_thousand(bucket):
    bucket.put("k0", b"x")
    expect.error(delete(bucket, document(*[f"k{n}" for n in range(1001)])), "MalformedXML")
    assert bucket.exists("k0")


@pytest.mark.parametrize("extra", [{"VersionId": "v" * 1025}, {"ETag": "e" * 1025}])
def test_an_id_that_is_too_long(bucket, extra):
    bucket.put("a", b"x")
    expect.error(delete(bucket, document("a", **extra)), "MalformedXML")
    assert bucket.exists("a")


@pytest.mark.parametrize(
    "key", ["with space", "a&b<c>d", "plus+%41", "ünï/çø∂é", "a//b", "../up", "\U0001f600"]
)
def test_odd_keys(bucket, key):
    bucket.put(key, b"x")
    bucket.put("bystander", b"x")
    result = expect.ok(delete(bucket, document(key))).xml
    assert deleted(result) == [key]
    assert bucket.keys() == ["bystander"]


def test_white_space_in_keys_counts(bucket):
    bucket.put(" a ", b"x")
    bucket.put("a", b"x")
    expect.ok(delete(bucket, document(" a ")))
    assert bucket.keys() == ["a"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_checksum_will_do(bucket, algorithm):
    bucket.put("a", b"x")
    body = document("a")
    expect.ok(delete(bucket, body, {header(algorithm): checksum(algorithm, body)}))
    assert not bucket.exists("a")


def test_without_any_digest(bucket):
    """S3 insists, for this is the request that destroys."""
    bucket.put("a", b"x")
    expect.error(
        delete(bucket, document("a"), {}),
        "InvalidRequest",
        "Missing required header for this request: Content-MD5 OR x-amz-checksum-*",
    )
    assert bucket.exists("a")


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"content-md5": content_md5(b"other")}, "BadDigest"),
        ({"content-md5": "nonsense"}, "InvalidDigest"),
        ({"x-amz-checksum-sha256": checksum("SHA256", b"other")}, "BadDigest"),
    ],
)
def test_wrong_digests(bucket, headers, code):
    bucket.put("a", b"x")
    expect.error(delete(bucket, document("a"), headers), code, re.compile("."))
    assert bucket.exists("a")


def test_wrong_content_sha256(bucket):
    bucket.put("a", b"x")
    response = delete(bucket, document("a"), payload="0" * 64)
    expect.error(response, "XAmzContentSHA256Mismatch", ClientComputedContentSHA256="0" * 64)
    assert bucket.exists("a")


def test_without_a_body(bucket):
    expect.error(delete(bucket, b""), "MissingRequestBodyError")


@pytest.mark.parametrize(
    "body",
    [
        b"<Delete></Delete>",
        b"<Delete><Object></Object></Delete>",
        b"<Remove><Object><Key>a</Key></Object></Remove>",
        b"<Delete><Object><Key>a</Key></Object>",
        b"not xml",
        b"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
        b"<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet><Quiet>true</Quiet></Delete>",
        b"<Delete><Object><Key>a</Key></Object><New/></Delete>",
        b"<Delete><Object><Key>a</Key><New>1</New></Object></Delete>",
        b"<Delete><Object><Key>a</Key><Size>1</Size></Object></Delete>",
        b"<Delete><Object><Key>a</Key><LastModifiedTime>Thu, 01 Jan 1970 00:00:00 GMT</LastModifiedTime></Object></Delete>",
        b"<Delete><Object><Key></Key></Object><New/></Delete>",
        b'<Delete><Object DryRun="1"><Key>a</Key></Object></Delete>',
        b'<Delete DryRun="1"><Object><Key>a</Key></Object></Delete>',
        b'<Delete><Object><Key Mode="Prefix">a</Key></Object></Delete>',
        b'<Delete xmlns="urn:other"><Object><Key>a</Key></Object></Delete>',
        b'<Delete><Object xmlns="urn:other"><Key>a</Key></Object></Delete>',
        b'<Delete xmlns:o="urn:other"><o:Object><o:Key>a</o:Key></o:Object></Delete>',
        b"<Delete><o:Object><Key>a</Key></o:Object></Delete>",
        # Attributes that say something, whatever their prefix is called.
        b'<Delete><Object xsi:nil="true"><Key>a</Key></Object></Delete>',
        b'<Delete xmlns:xsi="%s"><Object xsi:nil="true"><Key>a</Key></Object></Delete>' % INSTANCE,
        b'<Delete xmlns:xsi="urn:dry"><Object xsi:DryRun="true"><Key>a</Key></Object></Delete>',
        b'<Delete xmlns:xsi="urn:dry" xsi:type="x"><Object><Key>a</Key></Object></Delete>',
        b'<Delete xmlns:xml="urn:dry"><Object xml:DryRun="true"><Key>a</Key></Object></Delete>',
        # Prefixes outside of the element that binds them, and bound again.
        b'<Delete><Quiet xmlns:s="%s">true</Quiet><s:Object><s:Key>a</s:Key></s:Object></Delete>' % NAMESPACE,
        b'<Delete><Object><Key xmlns:s="%s">a</Key></Object></Delete>' % NAMESPACE,
        b'<s:Delete xmlns:s="%s"><s:Object xmlns:s="urn:other"><s:Key>a</s:Key></s:Object></s:Delete>'
        % NAMESPACE,
        b'<s:Delete xmlns:s="%s" xmlns:s="urn:other"><s:Object><s:Key>a</s:Key></s:Object></s:Delete>'
        % NAMESPACE,
        b"\xff\xfe",
    ],
)
def test_malformed(bucket, body):
    bucket.put("a", b"x")
    expect.error(delete(bucket, body), "MalformedXML")
    assert bucket.exists("a")


def test_an_empty_key(bucket):
    bucket.put("a", b"x")
    expect.error(delete(bucket, document("a", "")), "UserKeyMustBeSpecified")
    assert bucket.exists("a")


def test_a_key_that_is_too_long(bucket):
    """It can't be one, which is no reason to keep the others."""
    bucket.put("a", b"x")
    bucket.put("b", b"x")
    result = expect.ok(delete(bucket, document("a", "k" * 1025, "b"))).xml
    assert deleted(result) == ["a", "b"]
    (failed,) = result.all("Error")
    assert (failed["Key"], failed["Code"]) == ("k" * 1025, "KeyTooLongError")
    assert failed["Message"] == "Your key is too long"
    assert bucket.keys() == []


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.usefixtures("no_bucket")
def test_there_is_no_retention_to_bypass(bucket, value):
    """S3 has the header in buckets with Object Lock alone."""
    bucket.put("a", b"x")
    name = "x-amz-bypass-governance-retention"
    message = "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets."
    body = document("a")
    for response in (
        delete(bucket, body, {"content-md5": content_md5(body), name: value}),
        bucket.delete("a", headers={name: value}),
    ):
        expect.error(response, "InvalidArgument", message, ArgumentName=name, ArgumentValue=None)
    assert bucket.exists("a")
    response = bucket.raw.delete("/no-such-bucket/a", headers={name: value})
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")


def test_namespaces_are_no_matter(bucket):
    bucket.put("a", b"x")
    body = (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<!-- c -->'
        b'<s:Delete xmlns:s="http://s3.amazonaws.com/doc/2006-03-01/">'
        b"<s:Object><s:Key>a</s:Key></s:Object></s:Delete>"
    )
    assert deleted(expect.ok(delete(bucket, body)).xml) == ["a"]
    assert not bucket.exists("a")


@pytest.mark.parametrize(
    "attributes",
    [
        b' xmlns=""',
        b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"',
        b' xmlns="https://s3.amazonaws.com/doc/2006-03-01"',
        b' xmlns="http://doc.s3.amazonaws.com/2006-03-01"',
        b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b"'
        b' xmlns:xsd="http://www.w3.org/2001/XMLSchema"',
        b' xsi:noNamespaceSchemaLocation="a" i:type="b" xmlns:xsi="%s" xmlns:i="%s"' % (INSTANCE, INSTANCE),
        b' xml:lang="en"',
    ],
)
def test_what_programs_write_into_the_root(bucket, attributes):
    bucket.put("a", b"x")
    body = b"<Delete" + attributes + b"><Object><Key>a</Key></Object></Delete>"
    assert deleted(expect.ok(delete(bucket, body)).xml) == ["a"]


def test_null_version(bucket):
    bucket.put("a", b"x")
    result = expect.ok(delete(bucket, document("a", VersionId="null"))).xml
    assert result.child("Deleted")["VersionId"] == "null"
    assert not bucket.exists("a")


@pytest.mark.parametrize("version", ["nonsense", "HPniJFCxqTsMuIH9KX8K8wEjNUgmABCD"])
def test_a_version_that_never_was(bucket, version):
    """One bad entry does not keep the others from being deleted."""
    bucket.put("a", b"x")
    bucket.put("b", b"x")
    body = element(
        "Delete", element("Object", Key="a", VersionId=version), element("Object", Key="b")
    ).encode()
    result = expect.ok(delete(bucket, body)).xml
    (failed,) = result.all("Error")
    assert (failed["Key"], failed["VersionId"]) == ("a", version)
    assert (failed["Code"], failed["Message"]) == ("NoSuchVersion", "The specified version does not exist.")
    assert deleted(result) == ["b"]
    assert bucket.keys() == ["a"]


class TestConditions:
    """The ETag of an entry."""

    @pytest.mark.parametrize("etag, gone", [("right", True), ("*", True), ('"wrong"', False)])
    def test_etag(self, bucket, etag, gone):
        right = bucket.put("a", b"x").etag
        self.check(bucket, document("a", ETag=right if etag == "right" else etag), gone)

    def check(self, bucket, body: bytes, gone: bool) -> None:
        result = expect.ok(delete(bucket, body)).xml
        assert bucket.exists("a") != gone
        if gone:
            assert deleted(result) == ["a"]
        else:
            (failed,) = result.all("Error")
            assert (failed["Key"], failed["Code"]) == ("a", "PreconditionFailed")
            assert failed["Message"] == "At least one of the pre-conditions you specified did not hold"


def test_anonymous(bucket):
    """Each key is denied by itself, as by Amazon S3, whether there is an object or not."""
    bucket.put("a", b"x")
    result = expect.ok(delete(bucket, document("a", "missing"), anonymous=True)).xml
    assert deleted(result) == []
    errors = [(error["Key"], error["Code"]) for error in result.all("Error")]
    assert errors == [("a", "AccessDenied"), ("missing", "AccessDenied")]
    assert bucket.exists("a")
