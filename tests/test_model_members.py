"""Every header and parameter that the S3 API model gives an operation which is served: its effect, or its refusal.

A member that a newer model adds fails `test_every_member_has_a_line`, until it has one.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from support import expect, s3_model, tables, xml
from support.bucket import Bucket, complete_document
from support.checksums import ALGORITHMS, checksum, content_md5
from support.wire import Response

DATA = b"the data of the request"
OLD = b"what was there"
TAGGING = b"<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"
LOCKING = b"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"
HOLD = b"<LegalHold><Status>OFF</Status></LegalHold>"
# The subresource and the body of a write.
BUCKET_ACCESS = {
    "PutPublicAccessBlock": (
        "publicAccessBlock",
        xml.element("PublicAccessBlockConfiguration", BlockPublicAcls="true").encode(),
    ),
    "PutBucketOwnershipControls": (
        "ownershipControls",
        xml.element("OwnershipControls", xml.element("Rule", ObjectOwnership="BucketOwnerEnforced")).encode(),
    ),
}
LATE, EARLY = "Wed, 01 Jan 2020 00:00:00 GMT", "Tue, 01 Jan 2019 00:00:00 GMT"
SERVED = [row.name for row in tables.operations() if row.support == "served"]
WRONG_ETAG = '"00000000000000000000000000000000"'


@dataclass
class Case:
    """A member with a value, and what comes of it."""

    value: str | Callable[["Scene"], str]
    """A text, or what the scene makes of it."""
    code: str | None = None
    """The error; None if the request must succeed."""
    status: int | None = None
    effect: Callable[["Scene", Response], bool] | None = None
    beside: dict[str, str] = field(default_factory=dict)
    """What the request needs beside it: headers."""
    query: dict[str, str] = field(default_factory=dict)
    """The same: parameters."""
    before: Callable[["Scene"], object] | None = None
    """What the scene needs."""

    def tells(self) -> bool:
        """False if the request would come to the same without the member, as far as anyone looks."""
        return bool(self.code or self.status or self.effect)


def ok(value, effect=None, status=None, **beside) -> Case:
    return Case(
        value, effect=effect, status=status, beside={k.replace("_", "-"): v for k, v in beside.items()}
    )


def error(value, code, **beside) -> Case:
    return Case(value, code=code, beside={k.replace("_", "-"): v for k, v in beside.items()})


LACKING = [error("x", "NotImplemented")]


class Scene:
    """A bucket with `key`, `source` and an upload of one part to `key`, and requests of each operation on them."""

    def __init__(self, bucket) -> None:
        self.bucket = bucket
        self.raw = bucket.raw
        bucket.put("key", OLD, headers={"x-amz-meta-old": "1"})
        bucket.put("source", b"the source", headers={"x-amz-meta-s": "1"})
        self.upload = bucket.create_upload("key")
        self.part = expect.ok(bucket.put_part("key", self.upload, 1, DATA)).etag

    @property
    def etag(self) -> str:
        return self.bucket.head("key").etag

    def modified(self, key: str) -> str:
        return self.bucket.head(key).headers["last-modified"]

    def complete(self, upload: str) -> None:
        part = expect.ok(self.bucket.put_part("key", upload, 1, DATA)).etag
        expect.ok(self.bucket.complete("key", upload, [(1, part)]))

    def compose(self) -> None:
        """Makes `key` an object of two parts with a checksum each."""
        algorithm = {"x-amz-checksum-algorithm": "SHA256"}
        upload = self.bucket.create_upload("key", headers=algorithm)
        parts = []
        for number, body in enumerate([b"x" * (5 << 20), b"y"], 1):
            sha256 = checksum("SHA256", body)
            headers = {"x-amz-checksum-sha256": sha256}
            put = expect.ok(self.bucket.put_part("key", upload, number, body, headers=headers))
            parts.append(xml.element("Part", PartNumber=number, ETag=put.etag, ChecksumSHA256=sha256))
        document = xml.element("CompleteMultipartUpload", *parts).encode()
        expect.ok(self.bucket.complete("key", upload, document))

    def policy(self, action: str, effect: str = "Deny", resource: str = "/*") -> bytes:
        arn = f"arn:aws:s3:::{self.bucket.name}{resource}"
        statement = {"Effect": effect, "Principal": "*", "Action": action, "Resource": arn}
        return json.dumps({"Version": "2012-10-17", "Statement": statement}).encode()

    @property
    def suspended(self) -> bytes:
        return xml.element("VersioningConfiguration", Status="Suspended").encode()

    def lock_bucket(self) -> Bucket:
        """A bucket with a version that is locked, but for seconds only."""
        locks = Bucket(self.bucket.server, f"{self.bucket.name}-locks")
        expect.ok(self.raw.put(locks.path(), headers={"x-amz-bucket-object-lock-enabled": "true"}))
        until = (datetime.now(UTC) + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lock = {"mode": "GOVERNANCE", "retain-until-date": until, "legal-hold": "OFF"}
        headers = {f"x-amz-object-lock-{name}": value for name, value in lock.items()}
        locks.put("key", OLD, headers={**headers, "content-md5": content_md5(OLD)})
        return locks

    def set_policy(self) -> None:
        document = self.policy("s3:PutObject")
        expect.ok(self.raw.put(self.bucket.path(), document, query={"policy": ""}), 204)

    def request(self, operation: str) -> dict:
        """Method, path, query, headers and body of a request that succeeds."""
        path, bucket_path = self.bucket.path("key"), self.bucket.path()
        upload = {"uploadId": self.upload}
        part = {"partNumber": "1", **upload}
        source = {"x-amz-copy-source": f"{self.bucket.name}/source"}
        keys = xml.element("Delete", xml.element("Object", Key="key")).encode()
        match operation:
            case "ListBuckets":
                return {"method": "GET", "path": "/"}
            case "CreateBucket":
                return {"method": "PUT", "path": bucket_path + "-2"}
            case "HeadBucket":
                return {"method": "HEAD", "path": bucket_path}
            case "DeleteBucket":
                return {"method": "DELETE", "path": bucket_path}
            case "GetBucketPolicy" | "GetBucketPolicyStatus":
                self.set_policy()
                selector = operation.removeprefix("GetBucket")
                return {
                    "method": "GET",
                    "path": bucket_path,
                    "query": {selector[0].lower() + selector[1:]: ""},
                }
            case "PutBucketPolicy":
                body = self.policy("s3:GetObject")
                return {"method": "PUT", "path": bucket_path, "query": {"policy": ""}, "body": body}
            case "DeleteBucketPolicy":
                return {"method": "DELETE", "path": bucket_path, "query": {"policy": ""}}
            case "GetBucketVersioning":
                return {"method": "GET", "path": bucket_path, "query": {"versioning": ""}}
            case "PutBucketVersioning":
                return {
                    "method": "PUT",
                    "path": bucket_path,
                    "query": {"versioning": ""},
                    "body": self.suspended,
                }
            case "PutObjectTagging" | "PutBucketTagging":
                headers = {"content-md5": content_md5(TAGGING)}
                at = path if operation == "PutObjectTagging" else bucket_path
                query = {"tagging": ""}
                return {"method": "PUT", "path": at, "query": query, "headers": headers, "body": TAGGING}
            case "GetObjectTagging" | "DeleteObjectTagging":
                method = operation.removesuffix("ObjectTagging").upper()
                return {"method": method, "path": path, "query": {"tagging": ""}}
            case "GetBucketTagging" | "DeleteBucketTagging":
                request = self.request("PutBucketTagging")
                expect.ok(self.raw.request(**{"query": {}, **request}), 204)
                method = operation.removesuffix("BucketTagging").upper()
                return {"method": method, "path": bucket_path, "query": {"tagging": ""}}
            case "PutObjectLockConfiguration" | "GetObjectLockConfiguration":
                locks, query = self.lock_bucket().path(), {"object-lock": ""}
                if operation.startswith("Get"):
                    return {"method": "GET", "path": locks, "query": query}
                digest = {"content-md5": content_md5(LOCKING)}
                return {"method": "PUT", "path": locks, "query": query, "headers": digest, "body": LOCKING}
            case "PutObjectRetention" | "PutObjectLegalHold":
                # What sets nothing that outlasts the test.
                body = b"<Retention/>" if operation == "PutObjectRetention" else HOLD
                query = {"retention" if operation == "PutObjectRetention" else "legal-hold": ""}
                headers, locks = {"content-md5": content_md5(body)}, self.lock_bucket().path("key")
                if operation == "PutObjectRetention":
                    headers["x-amz-bypass-governance-retention"] = "true"
                return {"method": "PUT", "path": locks, "query": query, "headers": headers, "body": body}
            case "GetObjectRetention" | "GetObjectLegalHold":
                query = {"retention" if operation == "GetObjectRetention" else "legal-hold": ""}
                return {"method": "GET", "path": self.lock_bucket().path("key"), "query": query}
            case "GetPublicAccessBlock" | "GetBucketOwnershipControls":
                selector = "publicAccessBlock" if operation == "GetPublicAccessBlock" else "ownershipControls"
                return {"method": "GET", "path": bucket_path, "query": {selector: ""}}
            case "PutPublicAccessBlock" | "PutBucketOwnershipControls":
                selector, body = BUCKET_ACCESS[operation]
                headers = {"content-md5": content_md5(body)}
                query = {selector: ""}
                return {
                    "method": "PUT",
                    "path": bucket_path,
                    "query": query,
                    "headers": headers,
                    "body": body,
                }
            case "DeletePublicAccessBlock":
                return {"method": "DELETE", "path": bucket_path, "query": {"publicAccessBlock": ""}}
            case "GetBucketLocation":
                return {"method": "GET", "path": bucket_path, "query": {"location": ""}}
            case "ListMultipartUploads":
                return {"method": "GET", "path": bucket_path, "query": {"uploads": ""}}
            case "ListObjectVersions":
                return {"method": "GET", "path": bucket_path, "query": {"versions": ""}}
            case "ListObjectsV2":
                return {"method": "GET", "path": bucket_path, "query": {"list-type": "2"}}
            case "ListObjects":
                return {"method": "GET", "path": bucket_path}
            case "DeleteObjects":
                digest = {"content-md5": content_md5(keys)}
                query = {"delete": ""}
                return {
                    "method": "POST",
                    "path": bucket_path,
                    "query": query,
                    "headers": digest,
                    "body": keys,
                }
            case "HeadObject" | "GetObject" | "DeleteObject":
                return {"method": operation.removesuffix("Object").upper(), "path": path}
            case "GetObjectAttributes":
                headers = {"x-amz-object-attributes": "ETag"}
                return {"method": "GET", "path": path, "query": {"attributes": ""}, "headers": headers}
            case "PutObject":
                return {"method": "PUT", "path": path, "body": DATA}
            case "CopyObject":
                return {"method": "PUT", "path": path, "headers": source}
            case "CreateMultipartUpload":
                return {"method": "POST", "path": path, "query": {"uploads": ""}}
            case "UploadPart":
                return {"method": "PUT", "path": path, "query": part, "body": DATA}
            case "UploadPartCopy":
                return {"method": "PUT", "path": path, "query": part, "headers": source}
            case "CompleteMultipartUpload":
                body = complete_document([(1, self.part)])
                return {"method": "POST", "path": path, "query": upload, "body": body}
            case "AbortMultipartUpload":
                return {"method": "DELETE", "path": path, "query": upload}
            case "ListParts":
                return {"method": "GET", "path": path, "query": upload}
        raise AssertionError(f"no request of {operation}")

    def state(self) -> tuple:
        """What an operation that is refused must not change."""
        got = self.bucket.get("key")
        uploads = self.raw.get(self.bucket.path(), query={"uploads": ""}).xml.all("Upload")
        parts = self.raw.get(self.bucket.path("key"), query={"uploadId": self.upload})
        listed = [(part["PartNumber"], part["ETag"]) for part in parts.xml.all("Part")]
        return got.body, got.etag, got.headers.starting("x-amz-meta"), len(uploads), listed


def policy_is_set(scene: Scene, response: Response) -> bool:
    stored = scene.raw.get(scene.bucket.path(), query={"policy": ""})
    return stored.body == scene.policy("s3:GetObject")


def versioning_is_set(scene: Scene, response: Response) -> bool:
    return scene.raw.get(scene.bucket.path(), query={"versioning": ""}).xml["Status"] == "Suspended"


def shows(header: str, value: str):
    """The object has the header from then on."""
    return lambda scene, response: scene.bucket.head("key").headers.get(header) == value


def answers(header: str, value: str):
    return lambda scene, response: response.headers.get(header) == value


def has(name: str, text: str):
    """The document has an element with the text."""
    return lambda scene, response: text in response.xml.texts(name)


def once_complete(effect):
    """The effect is seen once the upload that the answer names is complete."""

    def seen(scene: Scene, response: Response) -> bool:
        scene.complete(response.xml["UploadId"])
        return effect(scene, response)

    return seen


def parts_shown(*numbers: str):
    def shown(scene: Scene, response: Response) -> bool:
        parts = response.xml.child("ObjectParts")
        return parts["PartsCount"] == "2" and [p["PartNumber"] for p in parts.all("Part")] == list(numbers)

    return shown


def listed(element: str, *expected: str):
    return lambda scene, response: [e["Key"] for e in response.xml.all(element)] == list(expected)


def of_checksum(algorithm: str) -> list[Case]:
    return [
        ok(
            checksum(algorithm, DATA),
            answers(f"x-amz-checksum-{algorithm.lower()}", checksum(algorithm, DATA)),
        ),
        error(checksum(algorithm, b"other"), "BadDigest"),
    ]


def overrides(header: str, value: str) -> list[Case]:
    return [ok(value, answers(header, value))]


CONDITIONS = {
    "if-match": [ok(lambda s: s.etag), error(WRONG_ETAG, "PreconditionFailed")],
    "if-none-match": [error("*", "PreconditionFailed")],
}
READ_CONDITIONS = {
    "if-match": [ok(lambda s: s.etag), error(WRONG_ETAG, "PreconditionFailed")],
    "if-none-match": [ok(WRONG_ETAG), ok(lambda s: s.etag, status=304)],
    "if-modified-since": [ok(EARLY), ok(lambda s: s.modified("key"), status=304)],
    "if-unmodified-since": [error(EARLY, "PreconditionFailed")],
}
SOURCE_CONDITIONS = {
    "x-amz-copy-source-if-match": [
        error(WRONG_ETAG, "PreconditionFailed"),
        error(",", "InvalidArgument"),
    ],
    "x-amz-copy-source-if-none-match": [
        ok(WRONG_ETAG),
        error(lambda s: s.bucket.head("source").etag, "PreconditionFailed"),
        error(",", "InvalidArgument"),
    ],
    "x-amz-copy-source-if-modified-since": [
        ok(EARLY),
        ok("Fri, 01 Jan 2100 00:00:00 GMT"),
        error(lambda s: s.modified("source"), "PreconditionFailed"),
        error("yesterday", "InvalidArgument"),
        error("0", "InvalidArgument"),
    ],
    "x-amz-copy-source-if-unmodified-since": [
        error(EARLY, "PreconditionFailed"),
        error("yesterday", "InvalidArgument"),
        error("2000-01-01T00:00:00Z", "InvalidArgument"),
    ],
}
# Wherever they stand, unless an operation has a line of its own.
EVERYWHERE: dict[str, list[Case]] = {
    "x-amz-request-payer": [ok("requester")],
    "x-amz-expected-bucket-owner": [error("111122223333", "AccessDenied")],
    "x-amz-source-expected-bucket-owner": [error("111122223333", "AccessDenied")],
    "x-amz-acl": [
        ok("private"),
        ok("bucket-owner-full-control"),
        error("public-read", "AccessControlListNotSupported"),
    ],
    **{
        f"x-amz-grant-{right}": [error("id=0", "AccessControlListNotSupported")]
        for right in ("full-control", "read", "read-acp", "write", "write-acp")
    },
    **{f"x-amz-checksum-{name.lower()}": of_checksum(name) for name in ALGORITHMS},
    "x-amz-checksum-algorithm": [ok("SHA256", answers("x-amz-checksum-algorithm", "SHA256"))],
    "x-amz-checksum-mode": [ok("ENABLED", answers("x-amz-checksum-type", "FULL_OBJECT"))],
    "x-amz-sdk-checksum-algorithm": [
        ok("CRC32", x_amz_checksum_crc32=checksum("CRC32", DATA)),
        error("CRC32C", "InvalidRequest", x_amz_checksum_crc32=checksum("CRC32", DATA)),
    ],
    "x-amz-storage-class": [ok("STANDARD"), error("GLACIER", "InvalidStorageClass")],
    "x-amz-tagging": [ok(""), error("a=b&a=c", "InvalidArgument")],
    "x-amz-tagging-directive": [ok("COPY"), error("FROB", "InvalidArgument")],
    "x-amz-website-redirect-location": [ok("/x", shows("x-amz-website-redirect-location", "/x"))],
    "x-amz-meta-": [ok("2", shows("x-amz-meta-b", "2"))],
    "cache-control": [ok("no-store", shows("cache-control", "no-store"))],
    "content-disposition": [ok("inline", shows("content-disposition", "inline"))],
    "content-encoding": [ok("gzip", shows("content-encoding", "gzip"))],
    "content-language": [ok("de", shows("content-language", "de"))],
    "content-type": [ok("a/b", shows("content-type", "a/b"))],
    "expires": [ok(LATE, shows("expires", LATE))],
    "content-md5": [ok(content_md5(DATA)), error(content_md5(b"other"), "BadDigest")],
    "content-length": [ok(str(len(DATA)))],
    "range": [ok("bytes=0-3", status=206)],
    # In a bucket without Object Lock; the others are in test_object_lock.py.
    "x-amz-bypass-governance-retention": [error("true", "InvalidArgument")],
    "x-amz-object-lock-mode": [error("GOVERNANCE", "InvalidArgument")],
    "x-amz-object-lock-retain-until-date": [error("2099-01-01T00:00:00Z", "InvalidArgument")],
    "x-amz-object-lock-legal-hold": [error("ON", "InvalidRequest")],
    "x-amz-optional-object-attributes": [ok("RestoreStatus"), error("x", "InvalidArgument")],
    **dict.fromkeys(
        [
            "x-amz-mfa",
            "x-amz-write-offset-bytes",
            "x-amz-object-annotation-directive",
            *(f"x-amz-object-lock-event-hold{name}" for name in ("", "-duration-days", "-duration-years")),
            *(
                f"x-amz-{side}server-side-encryption{name}"
                for side in ("", "copy-source-")
                for name in (
                    "",
                    "-customer-algorithm",
                    "-customer-key",
                    "-customer-key-md5",
                    "-aws-kms-key-id",
                    "-context",
                    "-bucket-key-enabled",
                )
            ),
        ],
        LACKING,
    ),
    # Parameters.
    "delimiter": [ok("o", lambda s, r: [p["Prefix"] for p in r.xml.all("CommonPrefixes")] == ["so"])],
    "encoding-type": [ok("url", has("EncodingType", "url")), error("x", "InvalidArgument")],
    "prefix": [ok("s", lambda s, r: [e["Key"] for e in r.xml.all("Contents")] == ["source"])],
    "max-keys": [ok("1", has("MaxKeys", "1")), error("x", "InvalidArgument")],
    "versionId": [ok("null"), error("x", "InvalidArgument")],
    "partNumber": [ok("1", status=206), error("2", "InvalidPartNumber")],
    "uploadId": [error("none", "NoSuchUpload")],
}
RESPONSES = {
    f"response-{name}": overrides(name, value)
    for name, value in {
        "cache-control": "no-store",
        "content-disposition": "inline",
        "content-encoding": "gzip",
        "content-language": "de",
        "content-type": "a/b",
        "expires": LATE,
    }.items()
}
PARTS = {"x-amz-object-attributes": "ObjectParts"}


def of_document(body: bytes) -> dict[str, list[Case]]:
    return {
        "content-md5": [ok(content_md5(body)), error(content_md5(b"other"), "BadDigest")],
        "x-amz-sdk-checksum-algorithm": [error("CRC32", "InvalidRequest")],
    }


OF_TAGGING = of_document(TAGGING)
OF_LOCKS = {"versionId": [error("null", "NoSuchVersion")]}
OWN: dict[str, dict[str, list[Case]]] = {
    "PutObject": CONDITIONS,
    "CopyObject": {
        **CONDITIONS,
        **SOURCE_CONDITIONS,
        "x-amz-copy-source": [
            ok(lambda s: f"/{s.bucket.name}/source", lambda s, r: s.bucket.read("key") == b"the source"),
            error("x", "InvalidArgument"),
        ],
        "x-amz-metadata-directive": [
            ok("COPY", shows("x-amz-meta-s", "1")),
            ok("REPLACE", shows("x-amz-meta-b", "2"), x_amz_meta_b="2"),
            error("x", "InvalidArgument"),
        ],
        "x-amz-checksum-algorithm": [ok("SHA256", lambda s, r: "ChecksumSHA256" in r.xml)],
        # These count with the metadata that replaces the source's.
        **{
            name: [
                Case(c.value, effect=c.effect, beside={"x-amz-metadata-directive": "REPLACE"}) for c in cases
            ]
            for name, cases in EVERYWHERE.items()
            if name.startswith(("content-", "cache-")) or name in ("expires", "x-amz-meta-")
        },
    },
    "CreateMultipartUpload": {
        "x-amz-checksum-type": [
            ok(
                "FULL_OBJECT",
                answers("x-amz-checksum-type", "FULL_OBJECT"),
                x_amz_checksum_algorithm="CRC32",
            ),
            error("FULL_OBJECT", "InvalidRequest", x_amz_checksum_algorithm="SHA256"),
        ],
        # They are the object's once it is complete.
        **{
            name: [ok(c.value, once_complete(c.effect)) for c in cases]
            for name, cases in EVERYWHERE.items()
            if name.startswith(("content-", "cache-"))
            or name in ("expires", "x-amz-meta-", "x-amz-website-redirect-location")
        },
    },
    "UploadPartCopy": {
        **SOURCE_CONDITIONS,
        "x-amz-copy-source": [error("x", "InvalidArgument")],
        "x-amz-copy-source-range": [ok("bytes=0-2"), error("x", "InvalidArgument")],
        "partNumber": [ok("2"), error("0", "InvalidArgument")],
    },
    "UploadPart": {"partNumber": [ok("2"), error("0", "InvalidArgument")]},
    "CompleteMultipartUpload": {
        **CONDITIONS,
        "x-amz-mp-object-size": [ok(str(len(DATA))), error("1", "InvalidRequest")],
        "x-amz-checksum-type": [error("FULL_OBJECT", "InvalidRequest")],
        # Of the object, and of the upload's own algorithm: test_multipart_checksums.py.
        **{f"x-amz-checksum-{name.lower()}": [error("x", "InvalidRequest")] for name in ALGORITHMS},
    },
    "AbortMultipartUpload": {"x-amz-if-match-initiated-time": [error(EARLY, "PreconditionFailed")]},
    "DeleteObject": {
        "if-match": [
            ok(lambda s: s.etag, lambda s, r: not s.bucket.exists("key")),
            error(WRONG_ETAG, "PreconditionFailed"),
        ],
        # S3 has these in directory buckets alone.
        "x-amz-if-match-size": [error(str(len(OLD)), "NotImplemented")],
        "x-amz-if-match-last-modified-time": [error(EARLY, "NotImplemented")],
    },
    "DeleteObjects": {
        "x-amz-sdk-checksum-algorithm": [error("CRC32", "InvalidRequest")],
    },
    "PutBucketPolicy": {
        "content-md5": [
            ok(lambda s: content_md5(s.policy("s3:GetObject"))),
            error(content_md5(b"other"), "BadDigest"),
        ],
        "x-amz-sdk-checksum-algorithm": [error("CRC32", "InvalidRequest")],
        # That it counts takes a requester who can lose a right, and root cannot: the Rust tests
        # (who_puts_a_policy_keeps_the_right_to_change_it).
        "x-amz-confirm-remove-self-bucket-access": [ok("true", policy_is_set), ok("false", policy_is_set)],
    },
    "PutBucketVersioning": {
        "content-md5": [
            ok(lambda s: content_md5(s.suspended), versioning_is_set),
            error(content_md5(b"other"), "BadDigest"),
        ],
        "x-amz-sdk-checksum-algorithm": [error("CRC32", "InvalidRequest")],
    },
    "PutObjectTagging": OF_TAGGING,
    "PutObjectLockConfiguration": {
        **of_document(LOCKING),
        "x-amz-bucket-object-lock-token": [error("x", "NotImplemented")],
    },
    "PutObjectRetention": {
        **of_document(b"<Retention/>"),
        **OF_LOCKS,
        "x-amz-bypass-governance-retention": [ok("true"), error("false", "AccessDenied")],
    },
    "PutObjectLegalHold": {**of_document(HOLD), **OF_LOCKS},
    "GetObjectRetention": OF_LOCKS,
    "GetObjectLegalHold": OF_LOCKS,
    "PutBucketTagging": OF_TAGGING,
    "PutPublicAccessBlock": of_document(BUCKET_ACCESS["PutPublicAccessBlock"][1]),
    "PutBucketOwnershipControls": of_document(BUCKET_ACCESS["PutBucketOwnershipControls"][1]),
    "CreateBucket": {
        "x-amz-object-ownership": [
            ok("BucketOwnerEnforced"),
            error("ObjectWriter", "NotImplemented"),
            error("Other", "InvalidArgument"),
        ],
        "x-amz-bucket-namespace": [ok("global"), error("account-regional", "NotImplemented")],
        "x-amz-bucket-object-lock-enabled": [ok("false"), error("maybe", "NotImplemented")],
    },
    "GetObject": {**READ_CONDITIONS, **RESPONSES},
    "HeadObject": {**READ_CONDITIONS, **RESPONSES},
    "GetObjectAttributes": {
        "x-amz-object-attributes": [ok("ObjectSize", has("ObjectSize", str(len(OLD))))],
        "x-amz-max-parts": [Case("1", effect=parts_shown("1"), beside=PARTS, before=Scene.compose)],
        "x-amz-part-number-marker": [Case("1", effect=parts_shown("2"), beside=PARTS, before=Scene.compose)],
    },
    "ListBuckets": {
        "prefix": [ok("no-such-bucket-here", lambda s, r: not r.xml.child("Buckets").all("Bucket"))],
        "max-buckets": [
            ok("1", lambda s, r: len(r.xml.child("Buckets").all("Bucket")) == 1),
            error("0", "InvalidArgument"),
        ],
        "continuation-token": [error("x", "InvalidArgument")],
        "bucket-region": [ok("us-east-1"), error("eu-west-1", "InvalidArgument")],
    },
    "ListObjects": {"marker": [ok("key", listed("Contents", "source"))]},
    "ListObjectsV2": {
        "start-after": [ok("key", listed("Contents", "source"))],
        "continuation-token": [error("x", "InvalidArgument")],
        "fetch-owner": [ok("true", lambda s, r: "Owner" in r.xml.all("Contents")[0])],
    },
    "ListObjectVersions": {
        "prefix": [ok("s", listed("Version", "source"))],
        "key-marker": [ok("key", listed("Version", "source"))],
        "version-id-marker": [error("x", "InvalidArgument")],
    },
    "ListMultipartUploads": {
        "delimiter": [ok("e", lambda s, r: [p["Prefix"] for p in r.xml.all("CommonPrefixes")] == ["ke"])],
        "prefix": [ok("s", listed("Upload"))],
        "key-marker": [ok("key", listed("Upload"))],
        # Alone it is passed over.
        "upload-id-marker": [
            ok("x"),
            Case("x", code="InvalidArgument", query={"key-marker": "key"}),
            Case(
                lambda s: s.upload,
                effect=listed("Upload", "key"),
                query={"key-marker": "key"},
                before=lambda s: s.bucket.create_upload("key"),
            ),
        ],
        "max-uploads": [ok("1", has("MaxUploads", "1")), error("x", "InvalidArgument")],
    },
    "ListParts": {
        "max-parts": [ok("1", has("MaxParts", "1")), error("x", "InvalidArgument")],
        "part-number-marker": [ok("1", lambda s, r: not r.xml.all("Part")), error("x", "InvalidArgument")],
    },
}


def cases_of(operation: str, member: str) -> list[Case] | None:
    return OWN.get(operation, {}).get(member) or EVERYWHERE.get(member)


def members() -> list[tuple[str, str, str]]:
    """Operation, `header` or `query`, and name."""
    found = []
    for name in SERVED:
        modelled = s3_model.operations().get(name)
        if modelled:
            found += [(name, "header", member) for member in modelled.headers]
            found += [(name, "query", member) for member in modelled.parameters]
    return found


@pytest.mark.parametrize("operation, place, member", members())
def test_every_member_has_a_line(operation, place, member):
    assert cases_of(operation, member), f"{operation} has {member}: what comes of it?"


# Of which no request can show what came of it.
TELL_NOTHING = {
    "x-amz-request-payer": "no one pays",
    "content-length": "the frame of the body: test_bad_bodies.py, test_bad_heads.py",
}


@pytest.mark.parametrize("operation, place, member", members())
def test_every_member_has_a_case_that_tells(operation, place, member):
    """One that a server which passes the member over would fail."""
    tells = any(case.tells() for case in cases_of(operation, member) or [])
    assert tells != (member in TELL_NOTHING), f"{operation}: nothing tells that {member} counts"


def all_cases() -> list:
    return [
        pytest.param(operation, place, member, case, id=f"{operation}-{member}-{number}")
        for operation, place, member in members()
        for number, case in enumerate(cases_of(operation, member) or [])
    ]


@pytest.mark.parametrize("operation, place, member, case", all_cases())
def test_members(bucket, operation, place, member, case):
    scene = Scene(bucket)
    if operation == "DeleteBucket":
        scene.bucket.abort("key", scene.upload)
        expect.ok(scene.bucket.delete_many("key", "source"))
    if case.before:
        case.before(scene)
    before = scene.state() if operation != "DeleteBucket" else None
    request = {"query": {}, "headers": {}, **scene.request(operation)}
    value = case.value(scene) if callable(case.value) else case.value
    request["headers"] = {**request["headers"], **case.beside}
    request["query"] = {**request["query"], **case.query}
    name = "x-amz-meta-b" if member == "x-amz-meta-" else member
    request["headers" if place == "header" else "query"][name] = value
    response = scene.raw.request(request.pop("method"), request.pop("path"), **request)
    if case.code:
        if operation.startswith("Head"):
            assert response.status >= 400, response
        else:
            assert response.code == case.code, response
        if before:
            assert scene.state() == before, "what is refused changes nothing"
        return
    assert response.status in ([case.status] if case.status else [200, 204, 206]), response
    if case.effect:
        assert case.effect(scene, response), response
