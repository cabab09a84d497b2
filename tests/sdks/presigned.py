"""URLs that SDKs have presigned: sent by a plain HTTP client, and what must come of them."""

import base64
import hashlib
import http.client
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from support import expect, xml
from support.bucket import Bucket, complete_document

BODY = b"the body, all of it\n"
OTHER = b"other bytes, as many"
ODD_KEY = "odd/é +&=#?%41~ä .txt"
PARTS = [b"a" * (5 << 20), b"b" * 1000]
SHA256 = base64.b64encode(hashlib.sha256(BODY).digest()).decode()
FACTS = {"SDK_ODD_KEY": ODD_KEY, "SDK_BODY_LENGTH": str(len(BODY)), "SDK_BODY_SHA256": SHA256}
# What an uploader sends for a header that the URL wants signed, and whose value is not in the URL.
VALUES = {
    "cache-control": "no-cache",
    "content-type": "text/x",
    "if-none-match": "*",
    "x-amz-acl": "private",
    "x-amz-checksum-mode": "ENABLED",
    "x-amz-checksum-sha256": SHA256,
    "x-amz-meta-one": "1",
    "x-amz-meta-two": "second",
    "x-amz-sdk-checksum-algorithm": "SHA256",
    "x-amz-server-side-encryption": "AES256",
    "x-amz-tagging": "a=b",
}
# What the parameters of the signature itself are called, in lower case.
_NAMES = ("algorithm", "credential", "date", "expires", "signature", "signedheaders")
SIGNATURE_V4 = {f"x-amz-{name}" for name in _NAMES}
SIGNATURE_V2 = {"awsaccesskeyid", "signature", "expires"}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def must_be(self, status: int, text: bytes = b"") -> "Answer":
        assert self.status == status and text in self.body, f"answered {self}"
        return self

    def __str__(self) -> str:
        return f"{self.status} {self.body.decode(errors='replace')[:700]}"


@dataclass(frozen=True)
class Presigned:
    """A URL that an SDK has made. `told` are the headers that the SDK says to send, if it says any."""

    case: str
    method: str
    url: str
    told: dict[str, str] | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """In lower case, the names."""
        pairs = parse_qsl(urlsplit(self.url).query, keep_blank_values=True)
        return {name.lower(): value for name, value in pairs}

    @property
    def signed(self) -> list[str]:
        """The headers that are signed as headers."""
        return self.parameters.get("x-amz-signedheaders", "host").split(";")

    def headers(self) -> dict[str, str]:
        """What an uploader sends."""
        if self.told is not None:
            skipped = ("host", "content-length")
            return {name.lower(): value for name, value in self.told.items() if name.lower() not in skipped}
        unknown = set(self.signed) - {"host", "content-length"} - set(self.parameters)
        sent = {name: VALUES[name] for name in unknown}
        if self.case == "put-metadata":
            sent |= {name: VALUES[name] for name in ("cache-control", "content-type")}
        return sent

    def send(self, body: bytes = b"", without: tuple[str, ...] = ()) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        try:
            connection.putrequest(self.method, f"{parts.path}?{parts.query}", skip_accept_encoding=True)
            if self.method in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            for name, value in self.headers().items():
                if name not in without:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            got = connection.getresponse()
            headers = {name.lower(): value for name, value in got.getheaders()}
            return Answer(got.status, headers, got.read())
        finally:
            connection.close()

    def pairs(self) -> list[tuple[str, str]]:
        """The parameters beside the signature's own, with names in lower case."""
        own = SIGNATURE_V4 if "x-amz-signature" in self.parameters else SIGNATURE_V2
        return sorted(pair for pair in self.parameters.items() if pair[0] not in own)


def shown(bucket: Bucket, key: str, **headers: str) -> None:
    """The object is there with the body, as a file too, and S3 shows these headers."""
    assert bucket.file(key).read_bytes() == BODY, f"the file is {bucket.file(key).read_bytes()[:80]!r}"
    assert bucket.read(key) == BODY
    got = bucket.head(key).headers
    for name, value in headers.items():
        name = name.replace("_", "-")
        assert got.get(name) == value, f"{name} is {got.get(name)!r}, not {value!r}"


def put(bucket: Bucket, url: Presigned, key: str | None = None, **headers: str) -> None:
    url.send(BODY).must_be(200)
    shown(bucket, key or f"presigned/{url.case}", **headers)


def put_metadata(bucket: Bucket, url: Presigned) -> None:
    meta = {"x_amz_meta_one": "1", "x_amz_meta_two": "second"}
    put(bucket, url, **meta, content_type="text/x", cache_control="no-cache")


def put_once(bucket: Bucket, url: Presigned) -> None:
    """With the condition that nothing is there. SigV2 does not sign one: whoever has the URL could take it
    out, and so it is refused."""
    if "awsaccesskeyid" in url.parameters:
        put_refused(bucket, url)
        return
    put(bucket, url)
    url.send(OTHER).must_be(412, b"PreconditionFailed")
    if "if-none-match" in url.signed:
        url.send(OTHER, without=("if-none-match",)).must_be(403, b"SignatureDoesNotMatch")
    shown(bucket, f"presigned/{url.case}")


def put_with_length(bucket: Bucket, url: Presigned) -> None:
    put(bucket, url)
    if "content-length" in url.signed:
        url.send(OTHER + b"longer").must_be(403, b"SignatureDoesNotMatch")
        shown(bucket, f"presigned/{url.case}")


def put_with_checksum(bucket: Bucket, url: Presigned) -> None:
    """A checksum that is signed as a header counts, and SigV2 signs all so; S3 passes over one in the query
    of SigV4."""
    if "x-amz-checksum-sha256" in url.signed or "awsaccesskeyid" in url.parameters:
        url.send(OTHER).must_be(400, b"BadDigest")
        assert not bucket.exists(f"presigned/{url.case}")
        put(bucket, url, x_amz_checksum_sha256=None)
    else:
        url.send(OTHER).must_be(200)
        put(bucket, url)


def put_tagged(bucket: Bucket, url: Presigned) -> None:
    put(bucket, url)
    answer = bucket.get(f"presigned/{url.case}", query={"tagging": ""})
    assert b"<Tag><Key>a</Key><Value>b</Value></Tag>" in answer.body


def put_refused(bucket: Bucket, url: Presigned) -> None:
    """With what this server lacks."""
    url.send(BODY).must_be(501, b"NotImplemented")
    assert not bucket.file(f"presigned/{url.case}").exists() and not bucket.exists(f"presigned/{url.case}")


def there(bucket: Bucket, url: Presigned) -> str:
    """Makes the object that the URL is of."""
    key = f"presigned/{'get' if url.case == 'get-overrides' else url.case}"
    bucket.put(key, BODY, headers={"x-amz-checksum-sha256": SHA256})
    return key


def get(bucket: Bucket, url: Presigned, **headers: str) -> Answer:
    there(bucket, url)
    got = url.send().must_be(200)
    assert got.body == BODY, f"the body is {got.body[:80]!r}"
    for name, value in headers.items():
        name = name.replace("_", "-")
        assert got.headers.get(name) == value, f"{name} is {got.headers.get(name)!r}, not {value!r}"
    return got


def get_overrides(bucket: Bucket, url: Presigned) -> None:
    get(bucket, url, content_type="text/other", content_disposition='attachment; filename="a b"')


def get_checksum(bucket: Bucket, url: Presigned) -> None:
    get(bucket, url, x_amz_checksum_sha256=SHA256)


def get_checksum_unsigned(bucket: Bucket, url: Presigned) -> None:
    """The SDK for Rust says to send a header that it has not signed. S3 answers the same (aws-sdk-rust 1253)."""
    there(bucket, url)
    url.send().must_be(403, b"<HeadersNotSigned>x-amz-checksum-mode</HeadersNotSigned>")


def get_missing(_: Bucket, url: Presigned) -> None:
    url.send().must_be(404, b"NoSuchKey")


def head(bucket: Bucket, url: Presigned) -> None:
    there(bucket, url)
    got = url.send().must_be(200)
    assert got.headers["content-length"] == str(len(BODY))


def delete(bucket: Bucket, url: Presigned) -> None:
    key = there(bucket, url)
    url.send().must_be(204)
    assert not bucket.file(key).exists()


# By the names that the programs print. Those of the upload are in `upload`.
CASES: dict[str, Callable[[Bucket, Presigned], object]] = {
    "put": put,
    "put-odd-key": lambda bucket, url: put(bucket, url, ODD_KEY),
    "put-metadata": put_metadata,
    "put-acl": put,
    "put-if-none-match": put_once,
    "put-content-length": put_with_length,
    "put-sha256": put_with_checksum,
    "put-tagging": put_tagged,
    "put-encrypted": put_refused,
    "get": get,
    "get-overrides": get_overrides,
    "get-checksum": get_checksum,
    "get-missing": get_missing,
    "head": head,
    "delete": delete,
}
# Other ways of the same, which not every SDK has.
VARIANTS: dict[str, Callable[[Bucket, Presigned], object]] = {
    "put-if-none-match-in-query": put_once,
    "put-sha256-in-query": put_with_checksum,
    "put-tagging-in-query": put_tagged,
    "get-checksum-unsigned": get_checksum_unsigned,
}
UPLOAD = ("create", "part-1", "part-2", "complete")
UPLOAD_KEY = "presigned/upload"


def create(bucket: Bucket, url: Presigned | None) -> str:
    """The id of a new upload, by the URL if there is one."""
    if url is None:
        return bucket.create_upload(UPLOAD_KEY)
    return xml.parse(url.send().must_be(200).body)["UploadId"]


def parts_and_complete(bucket: Bucket, upload_id: str, urls: dict[str, Presigned]) -> None:
    parts = []
    for number, body in enumerate(PARTS, 1):
        parts.append((number, urls[f"part-{number}"].send(body).must_be(200).headers["etag"]))
    if "complete" in urls:
        urls["complete"].send(complete_document(parts)).must_be(200, b"CompleteMultipartUploadResult")
    else:
        expect.ok(bucket.complete(UPLOAD_KEY, upload_id, parts))
    assert bucket.file(UPLOAD_KEY).read_bytes() == b"".join(PARTS), "the parts are not the file"
