"""Policies of buckets: how they are put and read, and what they allow to those who sign nothing."""

import base64
import concurrent.futures
import hashlib
import json
import re

import pytest
from botocore.exceptions import ClientError

from support import expect
from support.bucket import Bucket
from support.checksums import checksum
from support.tools import run
from support.wire import poll


@pytest.fixture
def bucket(bucket) -> Bucket:
    return bucket.unblock()


def statement(
    bucket: Bucket, actions, resource: str = "/*", effect: str = "Allow", principal="*", **rest
) -> dict:
    arn = f"arn:aws:s3:::{bucket.name}{resource}"
    return {"Effect": effect, "Principal": principal, "Action": actions, "Resource": arn, **rest}


def policy(*statements: dict) -> bytes:
    return json.dumps({"Version": "2012-10-17", "Statement": statements}).encode()


def put(bucket: Bucket, document: bytes, **options):
    return bucket.raw.put(bucket.path(), document, query={"policy": ""}, **options)


def get(bucket: Bucket, **options):
    return bucket.raw.get(bucket.path(), query={"policy": ""}, **options)


def set_policy(bucket: Bucket, *statements: dict) -> None:
    expect.ok(put(bucket, policy(*statements)), 204)


class TestDocuments:
    def test_letter_for_letter(self, bucket):
        expect.error(get(bucket), "NoSuchBucketPolicy", BucketName=bucket.name)
        text = policy(statement(bucket, "s3:GetObject", Sid="a")).decode()
        for document in (
            text,
            json.dumps(json.loads(text), indent="\t"),
            text.replace('"a"', '"\\u0061"') + "\n \n",
        ):
            answer = expect.ok(put(bucket, document.encode()), 204)
            assert answer.body == b""
            answer = expect.ok(get(bucket))
            assert (answer.body, answer.headers["content-type"]) == (document.encode(), "application/json")
        # On a key's path, it is the bucket's all the same.
        assert expect.ok(bucket.get("no-key", query={"policy": ""})).body == document.encode()
        for _ in range(2):
            expect.ok(bucket.raw.delete(bucket.path(), query={"policy": ""}), 204)
        expect.error(get(bucket), "NoSuchBucketPolicy")

    @pytest.mark.parametrize(
        "document, message",
        [
            ("", "Policies must be valid JSON and the first byte must be '{'"),
            ("invalid json", "Policies must be valid JSON and the first byte must be '{'"),
            ("{}", "Missing required field Statement"),
            ('{"Statement"', "This policy contains invalid Json"),
            ('{"Statement": [], "Statement": []}', "This policy contains invalid Json"),
            ('{"Version": "2030-01-01", "Statement": []}', "The policy must contain a valid version string"),
            ('{"Statement": [], "Frob": 1}', "Unknown field Frob"),
        ],
    )
    def test_what_is_no_policy(self, bucket, document, message):
        expect.error(put(bucket, document.encode()), "MalformedPolicy", message)
        expect.error(get(bucket), "NoSuchBucketPolicy")

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"Action": "s3:Frob"}, "Policy has invalid action"),
            ({"Action": "iam:GetUser"}, "Policy has invalid action"),
            ({"Action": "s3:ListBucket"}, "Action does not apply to any resource(s) in statement"),
            ({"Resource": "arn:aws:s3:::another-bucket/*"}, "Policy has invalid resource"),
            ({"Principal": {"AWS": "ann"}}, "Invalid principal in policy"),
            ({"Effect": "Perhaps"}, "Invalid effect: Perhaps"),
            ({"Condition": {"StringIs": {"s3:prefix": "a"}}}, "Invalid Condition type : StringIs"),
            (
                {"Condition": {"StringEquals": {"s3:frob": "a"}}},
                "Policy has an invalid condition key",
            ),
        ],
    )
    def test_what_is_no_statement(self, bucket, change, message):
        kept = policy(statement(bucket, "s3:GetObject"))
        expect.ok(put(bucket, kept), 204)
        expect.error(
            put(bucket, policy(statement(bucket, "s3:GetObject") | change)), "MalformedPolicy", message
        )
        assert expect.ok(get(bucket)).body == kept

    def test_sizes(self, bucket):
        def sized(size: int) -> bytes:
            small = (
                policy(statement(bucket, "s3:GetObject", Sid="")).replace(b": ", b":").replace(b", ", b",")
            )
            return small.replace(b'"Sid":""', b'"Sid":"%s"' % (b"a" * (size - len(small))))

        expect.ok(put(bucket, sized(20_480)), 204)
        message = "Normalized policy document exceeds the maximum allowed size of 20480 bytes"
        expect.error(put(bucket, sized(20_481)), "MalformedPolicy", message)
        # White space between values does not count.
        spaced = sized(20_480).replace(b"{", b"{" + b" " * 40_000, 1)
        expect.ok(put(bucket, spaced), 204)
        assert expect.ok(get(bucket)).body == spaced
        expect.error(put(bucket, b"{" + b" " * (128 << 10)), "MaxMessageLengthExceeded")

    def test_digests(self, bucket):
        document = policy(statement(bucket, "s3:GetObject"))
        md5 = base64.b64encode(hashlib.md5(document).digest()).decode()
        expect.ok(put(bucket, document, headers={"content-md5": md5}), 204)
        crc = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32": checksum("CRC32", document)}
        expect.ok(put(bucket, document, headers=crc), 204)
        other = document + b" "
        expect.error(put(bucket, other, headers={"content-md5": md5}), "BadDigest")
        message = "The CRC32 you specified did not match the calculated checksum."
        expect.error(put(bucket, other, headers=crc), "BadDigest", message)
        expect.error(put(bucket, other, headers={"content-md5": "x"}), "InvalidDigest")
        assert expect.ok(get(bucket)).body == document

    def test_owners(self, bucket):
        document = policy(statement(bucket, "s3:GetObject"))
        headers = {"x-amz-expected-bucket-owner": "000000000002"}
        expect.error(put(bucket, document, headers=headers), "AccessDenied")
        expect.ok(put(bucket, document), 204)
        expect.error(get(bucket, headers=headers), "AccessDenied")
        query = {"policy": ""}
        expect.error(bucket.raw.delete(bucket.path(), query=query, headers=headers), "AccessDenied")
        assert expect.ok(get(bucket)).body == document

    def test_status(self, bucket):
        def status() -> str:
            answer = expect.ok(bucket.raw.get(bucket.path(), query={"policyStatus": ""}))
            assert answer.xml.name == "PolicyStatus"
            return answer.xml["IsPublic"]

        missing = bucket.raw.get(bucket.path(), query={"policyStatus": ""})
        expect.error(missing, "NoSuchBucketPolicy", BucketName=bucket.name)
        at_home = {"Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}}
        for statements, public in [
            ([statement(bucket, "s3:GetObject")], "true"),
            ([statement(bucket, "s3:GetObject", **at_home)], "false"),
            ([statement(bucket, "s3:GetObject", principal={"AWS": "111122223333"})], "false"),
            ([statement(bucket, "s3:GetObject", effect="Deny")], "false"),
        ]:
            set_policy(bucket, *statements)
            assert status() == public, statements

    @pytest.mark.usefixtures("no_bucket")
    def test_no_bucket(self, raw):
        for query in ("policy", "policyStatus"):
            expect.error(raw.get("/no-such-bucket-here", query=query), "NoSuchBucket")
        expect.error(raw.put("/no-such-bucket-here", b"{}", query="policy"), "NoSuchBucket")
        expect.error(raw.delete("/no-such-bucket-here", query="policy"), "NoSuchBucket")


class TestClients:
    def test_boto3(self, s3, bucket):
        with pytest.raises(ClientError) as failure:
            s3.get_bucket_policy(Bucket=bucket.name)
        error = failure.value.response["Error"]
        assert (error["Code"], error["BucketName"]) == ("NoSuchBucketPolicy", bucket.name)
        document = policy(statement(bucket, "s3:GetObject")).decode()
        done = s3.put_bucket_policy(Bucket=bucket.name, Policy=document, ConfirmRemoveSelfBucketAccess=False)
        assert done["ResponseMetadata"]["HTTPStatusCode"] == 204
        s3.put_bucket_policy(Bucket=bucket.name, Policy=document, ChecksumAlgorithm="SHA256")
        assert s3.get_bucket_policy(Bucket=bucket.name)["Policy"] == document
        assert s3.get_bucket_policy_status(Bucket=bucket.name)["PolicyStatus"] == {"IsPublic": True}
        done = s3.delete_bucket_policy(Bucket=bucket.name)
        assert done["ResponseMetadata"]["HTTPStatusCode"] == 204
        # What scripts do before they put a public policy.
        s3.delete_public_access_block(Bucket=bucket.name)
        with pytest.raises(ClientError) as failure:
            s3.get_public_access_block(Bucket=bucket.name)
        assert failure.value.response["Error"]["Code"] == "NoSuchPublicAccessBlockConfiguration"


class TestAnybody:
    def test_is_let_in_where_the_policy_says(self, bucket):
        for key in ("public/a", "private/a"):
            bucket.put(key, b"data")
        expect.error(bucket.get("public/a", anonymous=True), "AccessDenied")
        set_policy(bucket, statement(bucket, "s3:GetObject", "/public/*"))
        assert expect.ok(bucket.get("public/a", anonymous=True)).body == b"data"
        assert bucket.head("public/a", anonymous=True).status == 200
        answer = bucket.get("public/a", anonymous=True, headers={"range": "bytes=1-2"})
        assert (answer.status, answer.body) == (206, b"at")
        expect.error(bucket.get("private/a", anonymous=True), "AccessDenied")
        for query in ("uploadId=x&partNumber=1", "tagging", "acl"):
            expect.error(bucket.raw.put(bucket.path("public/a"), query=query, anonymous=True), "AccessDenied")
        expect.error(bucket.raw.put(bucket.path("public/b"), b"x", anonymous=True), "AccessDenied")
        expect.error(bucket.delete("public/a", anonymous=True), "AccessDenied")
        expect.error(bucket.raw.get(bucket.path(), anonymous=True), "AccessDenied")
        expect.ok(bucket.raw.delete(bucket.path(), query={"policy": ""}), 204)
        expect.error(bucket.get("public/a", anonymous=True), "AccessDenied")

    def test_learns_that_a_key_is_missing_only_with_the_right_to_list(self, bucket):
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        expect.error(bucket.get("gone", anonymous=True), "AccessDenied")
        assert bucket.head("gone", anonymous=True).status == 403
        set_policy(bucket, statement(bucket, "s3:GetObject"), statement(bucket, "s3:ListBucket", ""))
        expect.error(bucket.get("gone", anonymous=True), "NoSuchKey", Key="gone")
        assert bucket.head("gone", anonymous=True).status == 404
        # As to list with the key as the prefix.
        below = {"StringLike": {"s3:prefix": "public/*"}}
        listing = statement(bucket, "s3:ListBucket", "", Condition=below)
        set_policy(bucket, statement(bucket, "s3:GetObject"), listing)
        expect.error(bucket.get("public/gone", anonymous=True), "NoSuchKey")
        expect.error(bucket.get("private/gone", anonymous=True), "AccessDenied")

    def test_lists_below_a_prefix(self, bucket):
        bucket.put("public/a", b"")
        condition = {"StringLike": {"s3:prefix": "public/*"}}
        set_policy(bucket, statement(bucket, "s3:ListBucket", "", Condition=condition))

        def listing(**query: str):
            return bucket.raw.get(bucket.path(), query={"list-type": "2", **query}, anonymous=True)

        assert [entry["Key"] for entry in expect.ok(listing(prefix="public/")).xml.all("Contents")] == [
            "public/a"
        ]
        for query in ({}, {"prefix": ""}, {"prefix": "private/"}):
            expect.error(listing(**query), "AccessDenied")

    def test_conditions_of_the_request(self, bucket):
        bucket.put("a", b"data")
        for condition, allowed in [
            ({"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, True),
            ({"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}, False),
            ({"Bool": {"aws:SecureTransport": "true"}}, False),
            ({"Bool": {"aws:SecureTransport": "false"}}, True),
            ({"StringLike": {"aws:Referer": "http://example.org/*"}}, True),
            ({"StringEquals": {"aws:UserAgent": "nobody"}}, False),
            ({"StringEquals": {"aws:PrincipalType": "Anonymous"}}, True),
            ({"Null": {"aws:username": "true"}}, True),
            ({"DateLessThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, False),
            ({"StringEquals": {"s3:authType": "REST-HEADER"}}, False),
        ]:
            set_policy(bucket, statement(bucket, "s3:GetObject", Condition=condition))
            answer = bucket.get("a", anonymous=True, headers={"referer": "http://example.org/page"})
            assert answer.status == (200 if allowed else 403), condition

    def test_writes_and_deletes(self, bucket):
        set_policy(bucket, statement(bucket, ["s3:PutObject", "s3:DeleteObject"], "/inbox/*"))
        expect.ok(bucket.raw.put(bucket.path("inbox/a"), b"data", anonymous=True))
        assert bucket.read("inbox/a") == b"data"
        expect.error(bucket.get("inbox/a", anonymous=True), "AccessDenied")
        expect.error(bucket.raw.put(bucket.path("a"), b"data", anonymous=True), "AccessDenied")
        body = b"<Delete><Object><Key>inbox/a</Key></Object><Object><Key>b</Key></Object></Delete>"
        digest = base64.b64encode(hashlib.md5(body).digest()).decode()
        answer = bucket.raw.post(
            bucket.path(), body, query={"delete": ""}, headers={"content-md5": digest}, anonymous=True
        )
        document = expect.ok(answer).xml
        assert [entry["Key"] for entry in document.all("Deleted")] == ["inbox/a"]
        assert [(entry["Key"], entry["Code"]) for entry in document.all("Error")] == [("b", "AccessDenied")]

    def test_a_denial_counts_whatever_is_allowed(self, bucket):
        bucket.put("public/a", b"data")
        bucket.put("public/secret", b"data")
        set_policy(
            bucket,
            statement(bucket, "s3:*"),
            statement(bucket, "s3:GetObject", "/public/secret", "Deny"),
        )
        assert expect.ok(bucket.get("public/a", anonymous=True)).body == b"data"
        expect.error(bucket.get("public/secret", anonymous=True), "AccessDenied")
        # The server's own root is denied nothing.
        assert bucket.read("public/secret") == b"data"

    def test_nobody_has_to_do_with_policies_without_a_signature(self, bucket):
        set_policy(bucket, statement(bucket, "s3:*", ""), statement(bucket, "s3:*"))
        kept = expect.ok(get(bucket)).body
        for method in ("GET", "PUT", "DELETE"):
            answer = bucket.raw.request(method, bucket.path(), query="policy", anonymous=True)
            expect.error(answer, "MethodNotAllowed", Method=method, ResourceType="BUCKETPOLICY")
        assert expect.ok(get(bucket)).body == kept

    def test_neither_copies_nor_begins_uploads(self, bucket):
        bucket.put("a", b"data")
        set_policy(bucket, statement(bucket, "s3:*"))
        source = {"x-amz-copy-source": f"{bucket.name}/a"}
        answer = bucket.raw.put(bucket.path("b"), headers=source, anonymous=True)
        message = "Anonymous users cannot copy objects.  Please authenticate."
        expect.error(answer, "AccessDenied", message)
        answer = bucket.raw.post(bucket.path("b"), query="uploads", anonymous=True)
        message = "Anonymous users cannot initiate multipart uploads.  Please authenticate."
        expect.error(answer, "AccessDenied", message)
        assert bucket.keys() == ["a"]


class TestGateways:
    @pytest.fixture
    def bucket(self, make_server) -> Bucket:
        bucket = Bucket(make_server(), "bucket").create().unblock()
        bucket.put("a", b"data")
        return bucket

    def test_a_policy_stays_and_counts_on_all_gateways(self, make_server, bucket):
        other = Bucket(make_server(tree=bucket.server.tree), "bucket")
        expect.error(other.get("a", anonymous=True), "AccessDenied")
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        poll(lambda: other.get("a", anonymous=True).status == 200)
        expect.ok(other.raw.delete(other.path(), query={"policy": ""}), 204)
        poll(lambda: bucket.get("a", anonymous=True).status == 403)
        set_policy(other, statement(bucket, "s3:GetObject"))
        again = Bucket(make_server(tree=bucket.server.tree), "bucket")
        assert again.get("a", anonymous=True).status == 200
        assert run("fsck", bucket.server.tree)

    def test_a_policy_goes_with_its_bucket(self, bucket):
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        expect.ok(bucket.delete("a"), 204)
        expect.ok(bucket.raw.delete(bucket.path()), 204)
        bucket.create()
        bucket.put("a", b"data")
        expect.error(get(bucket), "NoSuchBucketPolicy")
        expect.error(bucket.get("a", anonymous=True), "AccessDenied")

    def test_who_only_reads_keeps_to_it(self, make_server, bucket):
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        reader = Bucket(make_server("--read-only", tree=bucket.server.tree), "bucket")
        assert reader.get("a", anonymous=True).status == 200
        assert expect.ok(get(reader)).body == expect.ok(get(bucket)).body
        message = "The storage is read-only."
        expect.error(put(reader, policy(statement(bucket, "s3:*"))), "AccessDenied", message)
        answer = reader.raw.delete(reader.path(), query={"policy": ""})
        expect.error(answer, "AccessDenied", message)

    def test_where_several_keys_may_be_one_object_only_root_gets_in(self, make_server, bucket):
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        loose = Bucket(make_server("--allow-same-names", tree=bucket.server.tree), "bucket")
        expect.error(loose.get("a", anonymous=True), "AccessDenied")
        assert loose.read("a") == b"data"
        answer = put(loose, policy(statement(bucket, "s3:GetObject")))
        expect.error(answer, "NotImplemented", re.compile("with --allow-same-names"))
        expect.ok(loose.raw.delete(loose.path(), query={"policy": ""}), 204)

    def test_the_log_names_buckets_that_become_public(self, bucket):
        set_policy(bucket, statement(bucket, "s3:GetObject", principal={"AWS": "111122223333"}))
        assert "makes its bucket public" not in bucket.server.log
        set_policy(bucket, statement(bucket, "s3:GetObject"))
        line = next(line for line in bucket.server.log.splitlines() if "makes its bucket public" in line)
        assert "INFO" in line and "bucket=" in line

    def test_changes_at_once(self, make_server, bucket):
        """Each is made, whichever others come first, and one of them is left."""
        others = Bucket(make_server(tree=bucket.server.tree), "bucket")
        documents = [policy(statement(bucket, "s3:GetObject", f"/{n}/*")) for n in range(24)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda n: put([bucket, others][n % 2], documents[n]), range(len(documents)))
            )
        # Who has lost ten times in a row is told so.
        codes = {answer.code or answer.status for answer in answers}
        assert codes <= {204, "OperationAborted"} and 204 in codes, codes
        assert expect.ok(get(bucket)).body in documents
        assert expect.ok(get(bucket)).body == expect.ok(get(others)).body
