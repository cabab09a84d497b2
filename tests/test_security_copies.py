"""Confused deputies: what the server copies, or does by a URL or an upload of somebody else, for who may not do it."""

import itertools
from collections.abc import Callable
from urllib.parse import quote

import pytest

from support import expect
from support.identities import allow, client, code_of, deny, policy
from support.intruders import Who, assume, bucket, everything_in, role, root, user
from support.sigv4 import Signer
from support.wire import Response

SECRET = b"the secret"
COPIES = ["object", "part"]


class Copy:
    """A copy of a source by CopyObject or UploadPartCopy to a bucket."""

    def __init__(self, by: Who, target: str, way: str) -> None:
        self.by, self.target, self.way = by, target, way
        self.key = "copy"
        self.upload = ""
        if way == "part":
            made = root(by.server).s3.create_multipart_upload(Bucket=target, Key=self.key)
            self.upload = made["UploadId"]

    def send(self, source: str, **headers: str) -> Response:
        access_key, secret_key, token = self.by.key
        if token:
            headers["x-amz-security-token"] = token
        raw = self.by.server.raw.with_(signer=Signer(access_key, secret_key))
        query = {"partNumber": "1", "uploadId": self.upload} if self.upload else None
        headers = {"x-amz-copy-source": source, **headers}
        return raw.put(f"/{self.target}/{self.key}", query=query, headers=headers)

    def taken(self) -> bytes:
        """What was copied: the object, or the part that is completed to one."""
        s3 = root(self.by.server).s3
        if self.upload:
            place = {"Bucket": self.target, "Key": self.key, "UploadId": self.upload}
            parts = s3.list_parts(**place).get("Parts", [])
            if not parts:
                return b""
            named = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts]
            s3.complete_multipart_upload(**place, MultipartUpload={"Parts": named})
        if not (self.by.server.tree / self.target / self.key).exists():
            return b""
        return s3.get_object(Bucket=self.target, Key=self.key)["Body"].read()


@pytest.fixture(params=COPIES)
def copy(request, guarded) -> Callable[[Who, str], Copy]:
    return lambda by, target: Copy(by, target, request.param)


@pytest.fixture
def lab(guarded) -> str:
    return bucket(guarded, private__x=SECRET, public__x=b"for all")


@pytest.fixture
def own(guarded) -> str:
    return bucket(guarded)


def refused(copy: Copy, response: Response, code: str = "AccessDenied") -> None:
    assert (response.status, response.code) == (403, code), response
    assert copy.taken() == b""


class TestSources:
    def test_without_the_right_to_read_it(self, guarded, copy, lab, own):
        """The rights of the target's bucket, or to list the source's, are none on the source."""
        lists = allow("s3:ListBucket", f"arn:aws:s3:::{lab}")
        attempt = copy(user(guarded, everything_in(own), lists), own)
        refused(attempt, attempt.send(f"{lab}/private/x"))

    def test_without_the_right_to_write_the_target(self, guarded, copy, lab, own):
        attempt = copy(user(guarded, everything_in(lab)), own)
        refused(attempt, attempt.send(f"{lab}/private/x"))

    def test_denied_by_the_policy_of_the_sources_bucket(self, guarded, copy, lab, own):
        ann = user(guarded, allow("s3:*"))
        shut = deny("s3:GetObject", f"arn:aws:s3:::{lab}/private/*", Principal={"AWS": ann.arn})
        root(guarded).s3.put_bucket_policy(Bucket=lab, Policy=policy(shut))
        attempt = copy(ann, own)
        refused(attempt, attempt.send(f"{lab}/private/x"))

    def test_a_session_for_the_target_alone(self, guarded, copy, lab, own):
        """Its role may read the source, and it may not."""
        ann = user(guarded)
        session = assume(ann, role(guarded, ann.arn, allow("s3:*")), Policy=policy(everything_in(own)))
        attempt = copy(session, own)
        refused(attempt, attempt.send(f"{lab}/private/x"))

    def test_a_version_needs_the_right_for_versions(self, guarded, copy, lab, own):
        reads = allow("s3:GetObject", f"arn:aws:s3:::{lab}/*")
        attempt = copy(user(guarded, everything_in(own), reads), own)
        refused(attempt, attempt.send(f"{lab}/private/x?versionId=null"))

    def test_the_right_for_versions_is_none_for_the_object(self, guarded, copy, lab, own):
        reads = allow("s3:GetObjectVersion", f"arn:aws:s3:::{lab}/*")
        attempt = copy(user(guarded, everything_in(own), reads), own)
        refused(attempt, attempt.send(f"{lab}/private/x"))

    def test_conditions_tell_nothing_of_a_source(self, guarded, copy, lab, own):
        """Neither whether it is there, nor its ETag, nor its time."""
        attempt = copy(user(guarded, everything_in(own)), own)
        etag = root(guarded).s3.head_object(Bucket=lab, Key="private/x")["ETag"]
        told = set()
        for key, headers in itertools.product(
            ("private/x", "private/none"),
            (
                {},
                {"x-amz-copy-source-if-match": etag},
                {"x-amz-copy-source-if-none-match": etag},
                {"x-amz-copy-source-if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"},
                {"x-amz-copy-source-if-unmodified-since": "Fri, 01 Jan 2010 00:00:00 GMT"},
            ),
        ):
            response = attempt.send(f"{lab}/{key}", **headers)
            told.add((response.status, response.code, response.xml["Message"].replace(key, "KEY")))
        assert len(told) == 1 and told.pop()[:2] == (403, "AccessDenied")
        assert attempt.taken() == b""

    def test_the_owner_that_is_expected(self, guarded, copy, lab, own):
        attempt = copy(root(guarded), own)
        owner = {"x-amz-source-expected-bucket-owner": "000000000001"}
        refused(attempt, attempt.send(f"{lab}/private/x", **owner))


SPELLINGS = [
    "{lab}/public/../private/x",
    "/{lab}/public/../private/x",
    "{lab}/public/%2e%2e/private/x",
    "{lab}%2Fpublic%2F..%2Fprivate%2Fx",
    "{lab}/public%2F%2E%2E%2Fprivate%2Fx",
    "{lab}/public/%252e%252e/private/x",
    "{lab}/public/./../private/x",
    "{lab}/public//../private/x",
    "{lab}/public\\..\\private\\x",
    "{own}/../{lab}/private/x",
    "{lab}//private/x",
    "{lab}/private/x",
    "/{lab}/private/x",
    "%2F{lab}%2Fprivate%2Fx",
    "{lab}/%70rivate/x",
    "{lab}/private/x?versionId=null",
    "{lab}/private/x?public/x",
    "{lab}/private/x#{lab}/public/x",
    "{lab}/private/x%00{lab}/public/x",
    "{lab}/public/x,{lab}/private/x",
    "{lab}/public/x?versionId=null/../../private/x",
    "{lab}/public/x?versionId=../private/x",
    "{lab}/public/%c0%ae%c0%ae/private/x",
    "{upper}/private/x",
    "{lab}./private/x",
    "./{lab}/private/x",
    "../{lab}/private/x",
    "{lab}/.slipway/x",
    ".slipway/credentials.toml",
    "{lab}/../.slipway/credentials.toml",
    "arn:aws:s3:::{lab}/private/x",
    "http://localhost/{lab}/private/x",
]


class TestSpellings:
    """A source under another spelling of its name is decided about as what is read."""

    def attempts(self, attempt: Copy, lab: str, own: str) -> None:
        for spelling in SPELLINGS:
            response = attempt.send(spelling.format(lab=lab, own=own, upper=lab.upper()))
            assert response.status in (400, 403, 404, 501), (spelling, response)
        assert SECRET not in attempt.taken()

    def test_beside_what_may_be_read(self, guarded, copy, lab, own):
        reads = allow(["s3:GetObject", "s3:GetObjectVersion"], f"arn:aws:s3:::{lab}/public/*")
        self.attempts(copy(user(guarded, everything_in(own), reads), own), lab, own)

    def test_beside_what_may_be_copied(self, guarded, copy, lab, own):
        """By a condition on the source, as in AWS's example of it. The requester may read both."""
        condition = {"StringLike": {"s3:x-amz-copy-source": f"{lab}/public/*"}}
        writes = allow("s3:PutObject", f"arn:aws:s3:::{own}/*", Condition=condition)
        self.attempts(copy(user(guarded, writes, everything_in(lab)), own), lab, own)

    def test_what_may_be_copied_is(self, guarded, copy, lab, own):
        condition = {"StringLike": {"s3:x-amz-copy-source": f"{lab}/public/*"}}
        writes = allow("s3:PutObject", f"arn:aws:s3:::{own}/*", Condition=condition)
        attempt = copy(user(guarded, writes, everything_in(lab)), own)
        expect.ok(attempt.send(f"/{lab}%2Fpublic/x"))
        assert attempt.taken() == b"for all"

    def test_who_may_not_copy_at_all(self, guarded, copy, lab, own):
        """A denial of every source counts for objects and parts."""
        never = deny("s3:PutObject", Condition={"Null": {"s3:x-amz-copy-source": "false"}})
        ann = user(guarded, allow("s3:*"), never)
        attempt = copy(ann, own)
        refused(attempt, attempt.send(f"{lab}/public/x"))
        ann.s3.put_object(Bucket=own, Key="bytes", Body=b"bytes")


class TestUrlsOfOthers:
    """A presigned URL is good for what was signed."""

    @pytest.mark.parametrize("signed", ["s3v4", "s3"])
    @pytest.mark.parametrize(
        "header",
        [
            ("x-amz-copy-source", "{lab}/private/x"),
            ("x-amz-acl", "public-read"),
            ("x-amz-website-redirect-location", "/elsewhere"),
            ("x-amz-meta-owner", "mallory"),
            ("x-amz-security-token", "token"),
            ("x-amz-bypass-governance-retention", "true"),
        ],
        ids=lambda header: header[0],
    )
    def test_no_header_is_added_to_an_upload(self, guarded, lab, own, signed, header):
        ann = user(guarded, allow("s3:*"))
        s3 = client(guarded, "s3", ann.key, signature_version=signed)
        url = s3.generate_presigned_url("put_object", Params={"Bucket": own, "Key": "inbox"})
        path = url.removeprefix(guarded.endpoint)
        name, value = header[0], header[1].format(lab=lab)
        response = guarded.raw.fetch(path, "PUT", headers={name: value})
        assert response.status in (400, 403), response
        assert not (guarded.tree / own / "inbox").exists()
        for query in (f"&{name}={quote(value, safe='')}", f"&{name.title()}={quote(value, safe='')}"):
            response = guarded.raw.fetch(path + query, "PUT")
            assert response.status in (400, 403, 501), response
        assert not (guarded.tree / own / "inbox").exists()

    @pytest.mark.parametrize("signed", ["s3v4", "s3"])
    def test_a_download_is_no_other_request(self, guarded, lab, signed):
        ann = user(guarded, allow("s3:*"))
        s3 = client(guarded, "s3", ann.key, signature_version=signed)
        url = s3.generate_presigned_url("get_object", Params={"Bucket": lab, "Key": "public/x"})
        path = url.removeprefix(guarded.endpoint)
        expect.ok(guarded.raw.fetch(path))
        for method in ("PUT", "DELETE", "POST", "PATCH"):
            assert guarded.raw.fetch(path, method).status in (403, 405)
        for changed in (
            path.replace("/public/x", "/private/x"),
            path.replace("/public/x", "/public/../private/x"),
            path.replace("/public/x", "/public%2F..%2Fprivate%2Fx"),
            path.replace("/public/x", ""),
            path + "&versionId=null",
            path + "&acl",
            path + "&partNumber=1",
            path + "&response-content-type=text/html",
        ):
            response = guarded.raw.fetch(changed)
            assert response.status in (400, 403), (changed, response)
            assert SECRET not in response.body
        assert (guarded.tree / lab / "public/x").read_bytes() == b"for all"

    def test_no_header_overrides_the_method(self, guarded, lab):
        """Some frameworks let a GET be a DELETE."""
        s3 = client(guarded, "s3", user(guarded, allow("s3:*")).key, signature_version="s3v4")
        url = s3.generate_presigned_url("get_object", Params={"Bucket": lab, "Key": "public/x"})
        path = url.removeprefix(guarded.endpoint)
        for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
            assert expect.ok(guarded.raw.fetch(path, headers={name: "DELETE"})).body == b"for all"
        assert expect.ok(guarded.raw.fetch(path)).body == b"for all"


class TestUploadsOfOthers:
    @pytest.fixture
    def upload(self, guarded, lab) -> dict:
        """An upload with a part, to a key that the requester of these tests has no right to."""
        s3 = root(guarded).s3
        upload = s3.create_multipart_upload(Bucket=lab, Key="private/up")["UploadId"]
        place = {"Bucket": lab, "Key": "private/up", "UploadId": upload}
        s3.upload_part(**place, PartNumber=1, Body=SECRET)
        return place

    def test_an_id_is_good_for_its_key_alone(self, guarded, lab, own, upload):
        public = allow("s3:*", [f"arn:aws:s3:::{lab}/public/*"])
        ann = user(guarded, everything_in(own), public)
        part = {"PartNumber": 1, "ETag": '"4d6d0d38e3ce2c3d2ba6b2ca96a1ee01"'}
        for place in (upload | {"Bucket": own}, upload | {"Key": "public/up"}):
            for call, members in (
                (ann.s3.list_parts, {}),
                (ann.s3.upload_part, {"PartNumber": 2, "Body": b"bytes"}),
                (ann.s3.upload_part_copy, {"PartNumber": 2, "CopySource": f"{lab}/public/x"}),
                (ann.s3.complete_multipart_upload, {"MultipartUpload": {"Parts": [part]}}),
                (ann.s3.abort_multipart_upload, {}),
            ):
                assert code_of(call, **place, **members) == "NoSuchUpload"
        for call, members in ((ann.s3.list_parts, {}), (ann.s3.abort_multipart_upload, {})):
            assert code_of(call, **upload, **members) == "AccessDenied"
        parts = root(guarded).s3.list_parts(**upload)["Parts"]
        assert [found["PartNumber"] for found in parts] == [1]

    def test_an_id_leads_nowhere_else(self, guarded, lab, upload):
        number = upload["UploadId"]
        ann = user(guarded, allow("s3:*"))
        named = {"Parts": [{"PartNumber": 1, "ETag": '"4d6d0d38e3ce2c3d2ba6b2ca96a1ee01"'}]}
        for other in (
            *("..", ".", "/", "*", "/etc/passwd", "../../../x", number.swapcase(), number[:-1]),
            *(f"../{number}", f"{number}/..", f"{number}/../{number}", f"./{number}", f"{number}/"),
            *(f"{number}%00", f"%2e%2e%2f{number}", f"{number} ", f" {number}", f"\u0430{number}"),
        ):
            place = upload | {"UploadId": other}
            for call, members in (
                (ann.s3.list_parts, {}),
                (ann.s3.upload_part, {"PartNumber": 2, "Body": b"bytes"}),
                (ann.s3.complete_multipart_upload, {"MultipartUpload": named}),
                (ann.s3.abort_multipart_upload, {}),
            ):
                assert code_of(call, **place, **members) == "NoSuchUpload", other
        assert len(root(guarded).s3.list_parts(**upload)["Parts"]) == 1

    def test_parts_have_no_key(self, guarded, lab, upload):
        """Wherever they are in the tree: every file below the bucket's own directory is asked for."""
        ann = user(guarded, allow("s3:*"))
        files = [path for path in (guarded.tree / lab).rglob("*") if path.is_file()]
        hidden = [path.relative_to(guarded.tree / lab) for path in files if ".slipway" in path.parts]
        assert hidden
        for path in hidden:
            assert code_of(ann.s3.get_object, Bucket=lab, Key=str(path)) in ("NoSuchKey", "AccessDenied")
            source = f"{lab}/{path}"
            assert code_of(ann.s3.copy_object, Bucket=lab, Key="y", CopySource=source) in (
                "NoSuchKey",
                "AccessDenied",
            )
