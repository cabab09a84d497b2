"""XML that is meant to hurt: each is refused, quickly and with little memory."""

import time

import pytest

from support import expect, tables
from support.checksums import content_md5

DTD = (
    b'<?xml version="1.0"?><!DOCTYPE Delete [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)
FILE = b'<?xml version="1.0"?><!DOCTYPE Delete [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


def delete_of(key: bytes) -> bytes:
    return b"<Delete><Object><Key>" + key + b"</Key></Object></Delete>"


BOMBS = {
    "billion laughs": DTD + delete_of(b"&c;"),
    "external entity": FILE + delete_of(b"&x;"),
    "DTD alone": b"<!DOCTYPE Delete>" + delete_of(b"victim"),
    "undefined entity": delete_of(b"&nope;"),
    "deep": b"<Delete>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</Delete>",
    "deep and unclosed": b"<Delete>" + b"<a>" * 500_000,
    "deeper than allowed": b"<Delete><Object><Key>victim</Key></Object>"
    + b"<a>" * 20
    + b"</a>" * 20
    + b"</Delete>",
    "many elements": b"<Delete><Object><Key>victim</Key></Object>" + b"<a/>" * 200_000 + b"</Delete>",
    "huge tag": b"<Delete " + b"a" * 100_000 + b"='1'>" + delete_of(b"victim")[8:],
    "many attributes": b"<Delete " + b" ".join(b"a%d='1'" % n for n in range(10_000)) + b"/>",
    "huge comment": b"<!--" + b"x" * (9 << 20) + b"-->" + delete_of(b"victim"),
    "huge": delete_of(b"k" * (9 << 20)),
    "control characters": delete_of(b"a\x01b"),
    "reference beyond Unicode": delete_of(b"&#x110000;"),
    "reference without a number": delete_of(b"&#;"),
    "reference to a surrogate": delete_of(b"&#xD800;"),
    "UTF-16": delete_of(b"victim").decode().encode("utf-16"),
    "wrong encoding": b'<?xml version="1.0" encoding="ISO-8859-1"?>' + delete_of(b"\xe9"),
    "crossed tags": b"<Delete><Object><Key>victim</Object></Key></Delete>",
    "two roots": delete_of(b"victim") + delete_of(b"victim"),
    "rest": delete_of(b"victim") + b"rest",
    "text between": b"<Delete>victim<Object><Key>victim</Key></Object></Delete>",
    "CDATA bomb": b"<Delete><Object><Key>" + b"<![CDATA[]]>" * 500_000 + b"</Key></Object></Delete>",
    "nul": b"\x00" * 1000,
    "nothing but space": b" \n\t",
}


@pytest.mark.parametrize("name", BOMBS)
def test_delete_objects(bucket, name):
    body = BOMBS[name]
    bucket.put("victim", b"alive")
    before = bucket.server.status_kib("VmRSS")
    began = time.monotonic()
    response = bucket.raw.post(
        bucket.path(), body, query={"delete": ""}, headers={"content-md5": content_md5(body)}
    )
    if name == "rest" and response.status == 200:
        pytest.fail("text behind the root element was accepted")
    # Which it is depends on how much of it is read, and on whether a Key comes to nothing.
    assert response.code in ("MalformedXML", "MaxMessageLengthExceeded", "UserKeyMustBeSpecified"), response
    expect.error(response, response.code)
    assert time.monotonic() - began < 10
    assert bucket.server.status_kib("VmRSS") - before < 48 << 10
    assert bucket.exists("victim")
    assert b"root:" not in response.body


SMALL_BOMBS = [name for name in BOMBS if len(BOMBS[name]) < 1 << 20]


def test_references_that_listings_write(bucket):
    """XML 1.0 forbids them, but that is how S3 lists keys with control characters: they can be sent back."""
    bucket.put("a\x01b", b"x")
    bucket.put("a\x00b", b"x")
    body = b"<Delete><Object><Key>a&#x1;b</Key></Object><Object><Key>a&#x0;b</Key></Object></Delete>"
    expect.ok(
        bucket.raw.post(bucket.path(), body, query={"delete": ""}, headers={"content-md5": content_md5(body)})
    )
    assert bucket.is_untouched()


@pytest.mark.parametrize("name", SMALL_BOMBS)
def test_complete_upload(bucket, name):
    upload_id = bucket.create_upload("key")
    bucket.put_part("key", upload_id, 1, b"data")
    body = BOMBS[name].replace(b"Delete", b"CompleteMultipartUpload").replace(b"Object>", b"Part>")
    response = bucket.complete("key", upload_id, body)
    assert response.code in ("MalformedXML", "MaxMessageLengthExceeded"), response
    assert bucket.is_untouched()


@pytest.mark.parametrize("name", SMALL_BOMBS)
def test_create_bucket(raw, server, name):
    body = BOMBS[name].replace(b"Delete", b"CreateBucketConfiguration")
    response = raw.put("/bomb-bucket", body)
    try:
        assert response.status == 400, response
        assert response.code in ("MalformedXML", "MaxMessageLengthExceeded"), response
        assert not (server.tree / "bomb-bucket").exists()
    finally:
        if (server.tree / "bomb-bucket").exists():
            (server.tree / "bomb-bucket").rmdir()


def test_documents_that_are_too_large(raw, bucket):
    """Each kind has its own limit (limits.rs)."""
    for limit, method, path, query in [
        ("XML_BODY_BYTES_MAX", "PUT", "/another-bucket", {}),
        ("DELETE_BODY_BYTES_MAX", "POST", bucket.path(), {"delete": ""}),
    ]:
        body = b"<a>" + b" " * tables.limit(limit) + b"</a>"
        response = raw.request(
            method, path, query=query, body=body, headers={"content-md5": content_md5(body)}
        )
        assert response.code in ("MalformedXML", "MaxMessageLengthExceeded"), response
        assert response.status == 400
