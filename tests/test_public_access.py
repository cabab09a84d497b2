"""Public access blocks and the owners of objects: what a bucket says of both, and what a block keeps out."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from support import expect, xml
from support.bucket import Bucket
from support.checksums import content_md5
from support.tools import run
from support.wire import poll

SWITCHES = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
MALFORMED = "MalformedXML"
NO_DIGEST = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
BLOCKED = re.compile(
    r"^User: arn:aws:iam::\d{12}:root is not authorized to perform: s3:PutBucketPolicy on resource: "
    r'"arn:aws:s3:::[a-z0-9-]+" because public policies are blocked by the BlockPublicPolicy block public access '
    r"setting\.$"
)


def policy(bucket: Bucket, principal="*", **rest) -> bytes:
    arn = f"arn:aws:s3:::{bucket.name}/*"
    statement = {"Effect": "Allow", "Principal": principal, "Action": "s3:GetObject", "Resource": arn, **rest}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()


def put_policy(bucket: Bucket, document: bytes):
    return bucket.raw.put(bucket.path(), document, query={"policy": ""})


def document(root: str, *children: str, **fields: str) -> bytes:
    return xml.element(root, *children, **fields).encode()


def block(**switches: bool) -> bytes:
    fields = {name: "true" if is_on else "false" for name, is_on in switches.items()}
    return document("PublicAccessBlockConfiguration", **fields)


def put(bucket: Bucket, selector: str, body: bytes):
    headers = {"content-md5": content_md5(body)}
    return bucket.raw.put(bucket.path(), body, query={selector: ""}, headers=headers)


def shown(bucket: Bucket) -> list[str]:
    """The switches that are on."""
    answer = expect.ok(bucket.raw.get(bucket.path(), query={"publicAccessBlock": ""})).xml
    assert [answer[name] in ("true", "false") for name in SWITCHES] == [True] * 4
    return [name for name in SWITCHES if answer[name] == "true"]


def status(bucket: Bucket, key: str = "a") -> int:
    return bucket.get(key, anonymous=True).status


class TestBlocks:
    def test_a_new_bucket_is_blocked(self, bucket):
        assert shown(bucket) == list(SWITCHES)

    def test_as_it_was_put(self, bucket):
        expect.ok(put(bucket, "publicAccessBlock", block(BlockPublicAcls=False, IgnorePublicAcls=False)))
        assert shown(bucket) == []
        expect.ok(put(bucket, "publicAccessBlock", block(IgnorePublicAcls=True, RestrictPublicBuckets=True)))
        assert shown(bucket) == ["IgnorePublicAcls", "RestrictPublicBuckets"]

    def test_a_deletion_is_kept(self, make_server, bucket):
        for _ in range(2):
            expect.ok(bucket.raw.delete(bucket.path(), query={"publicAccessBlock": ""}), 204)
            answer = bucket.raw.get(bucket.path(), query={"publicAccessBlock": ""})
            expect.error(answer, "NoSuchPublicAccessBlockConfiguration", BucketName=bucket.name)
        bucket.remove()
        bucket.create()
        assert shown(bucket) == list(SWITCHES)

    @pytest.mark.parametrize(
        "body",
        [
            document("PublicAccessBlockConfiguration"),
            document("PublicAccessBlockConfiguration", BlockPublicAcls="yes"),
            document("PublicAccessBlockConfiguration", BlockPublicAcl="true"),
            document("PublicAccessBlock", BlockPublicAcls="true"),
            block(BlockPublicAcls=True).replace(
                b"</Public", b"<BlockPublicAcls>false</BlockPublicAcls></Public"
            ),
        ],
    )
    def test_what_is_malformed_changes_nothing(self, bucket, body):
        expect.error(put(bucket, "publicAccessBlock", body), MALFORMED)
        assert shown(bucket) == list(SWITCHES)

    def test_a_digest_is_wanted(self, bucket):
        for selector in ("publicAccessBlock", "ownershipControls"):
            answer = bucket.raw.put(bucket.path(), block(BlockPublicAcls=True), query={selector: ""})
            expect.error(answer, "InvalidRequest", NO_DIGEST)

    def test_boto3(self, s3, bucket):
        of = {"Bucket": bucket.name}
        wanted = dict.fromkeys(SWITCHES, False) | {"BlockPublicPolicy": True}
        s3.put_public_access_block(**of, PublicAccessBlockConfiguration={"BlockPublicPolicy": True})
        assert s3.get_public_access_block(**of)["PublicAccessBlockConfiguration"] == wanted
        s3.delete_public_access_block(**of)
        with pytest.raises(ClientError) as failure:
            s3.get_public_access_block(**of)
        assert failure.value.response["Error"]["Code"] == "NoSuchPublicAccessBlockConfiguration"


class TestEffects:
    def test_a_public_policy_is_refused(self, bucket):
        bucket.put("a", b"data")
        expect.error(put_policy(bucket, policy(bucket)), "AccessDenied", BLOCKED)
        expect.error(bucket.raw.get(bucket.path(), query={"policy": ""}), "NoSuchBucketPolicy")
        assert status(bucket) == 403
        # What is not public is not refused.
        at_home = {"Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}}
        for kept in (policy(bucket, **at_home), policy(bucket, {"AWS": "111122223333"})):
            expect.ok(put_policy(bucket, kept), 204)
        expect.error(put_policy(bucket, policy(bucket)), "AccessDenied", BLOCKED)
        assert expect.ok(bucket.raw.get(bucket.path(), query={"policy": ""})).body == kept

    def test_what_a_public_policy_allows_can_be_restricted(self, bucket):
        bucket.put("a", b"data")
        expect.ok(put_policy(bucket.unblock(), policy(bucket)), 204)
        assert status(bucket) == 200
        for switch, wanted in [
            ("BlockPublicPolicy", 200),
            ("BlockPublicAcls", 200),
            ("IgnorePublicAcls", 200),
            ("RestrictPublicBuckets", 403),
        ]:
            expect.ok(put(bucket, "publicAccessBlock", block(**{switch: True})))
            assert status(bucket) == wanted, switch
            # A policy that is there stays, and says that it is public.
            answer = expect.ok(bucket.raw.get(bucket.path(), query={"policyStatus": ""})).xml
            assert answer["IsPublic"] == "true"
        # To what is not public it does nothing.
        at_home = {"Condition": {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}}
        expect.ok(put_policy(bucket, policy(bucket, **at_home)), 204)
        assert status(bucket) == 200

    def test_on_all_gateways(self, make_server):
        bucket = Bucket(make_server(), "bucket").create().unblock()
        bucket.put("a", b"data")
        expect.ok(put_policy(bucket, policy(bucket)), 204)
        other = Bucket(make_server(tree=bucket.server.tree), "bucket")
        assert status(other) == 200
        expect.ok(put(bucket, "publicAccessBlock", block(RestrictPublicBuckets=True)))
        poll(lambda: status(other) == 403)
        assert run("fsck", bucket.server.tree)


class TestDefaults:
    def test_off(self, make_server, tmp_path):
        """And what was public then stays public."""
        tree = tmp_path / "tree"
        server = make_server("--default-public-access-block", "off", tree=tree)
        bucket = Bucket(server, "bucket").create()
        for made_by_a_person in ("other", "third"):
            (tree / made_by_a_person).mkdir()
            (tree / made_by_a_person / "a").write_bytes(b"data")
        bucket.put("a", b"data")
        answer = bucket.raw.get(bucket.path(), query={"publicAccessBlock": ""})
        expect.error(answer, "NoSuchPublicAccessBlockConfiguration")
        for name in ("bucket", "other"):
            one = Bucket(server, name)
            expect.ok(put_policy(one, policy(one)), 204)
            assert status(one) == 200
        third = Bucket(server, "third")
        expect.ok(put(third, "publicAccessBlock", block(BlockPublicPolicy=True)))
        expect.error(put_policy(third, policy(third)), "AccessDenied", BLOCKED)
        server.stop()
        again = make_server(tree=tree)
        for name in ("bucket", "other"):
            one = Bucket(again, name)
            assert status(one) == 200
            answer = one.raw.get(one.path(), query={"publicAccessBlock": ""})
            expect.error(answer, "NoSuchPublicAccessBlockConfiguration")
        assert shown(Bucket(again, "third")) == ["BlockPublicPolicy"]

    def test_on(self, make_server, tmp_path):
        tree = tmp_path / "tree"
        (tree / "made").mkdir(parents=True)
        bucket = Bucket(make_server(tree=tree), "made")
        assert shown(bucket) == list(SWITCHES)
        expect.error(put_policy(bucket, policy(bucket)), "AccessDenied", BLOCKED)
        # The whole of it goes with the document that is in its way.
        expect.ok(put_policy(bucket.unblock(), policy(bucket)), 204)
        expect.ok(bucket.raw.delete(bucket.path(), query={"policy": ""}), 204)
        answer = bucket.raw.get(bucket.path(), query={"publicAccessBlock": ""})
        expect.error(answer, "NoSuchPublicAccessBlockConfiguration")


class TestOwnership:
    def controls(self, *ownership: str) -> bytes:
        rules = [xml.element("Rule", ObjectOwnership=one) for one in ownership]
        return document("OwnershipControls", *rules)

    def test_the_buckets_owner_owns_all_objects(self, bucket):
        def owner() -> str:
            answer = expect.ok(bucket.raw.get(bucket.path(), query={"ownershipControls": ""})).xml
            return answer.child("Rule")["ObjectOwnership"]

        assert owner() == "BucketOwnerEnforced"
        expect.ok(put(bucket, "ownershipControls", self.controls("BucketOwnerEnforced")))
        assert owner() == "BucketOwnerEnforced"

    def test_what_is_malformed(self, bucket):
        for body in (
            self.controls(),
            self.controls("RandomValue"),
            self.controls("BucketOwnerEnforced", "BucketOwnerEnforced"),
            document("OwnershipControls", xml.element("Rule")),
            document("OwnershipControls", ObjectOwnership="BucketOwnerEnforced"),
        ):
            expect.error(put(bucket, "ownershipControls", body), MALFORMED)

    def test_what_is_not_implemented(self, bucket):
        for ownership in ("ObjectWriter", "BucketOwnerPreferred"):
            message = f"ObjectOwnership {ownership} is not implemented."
            expect.error(
                put(bucket, "ownershipControls", self.controls(ownership)), "NotImplemented", message
            )
        deleted = bucket.raw.delete(bucket.path(), query={"ownershipControls": ""})
        expect.error(deleted, "NotImplemented", "DeleteBucketOwnershipControls is not implemented.")

    def test_of_a_new_bucket(self, bucket):
        for value in ("RandomValue", ""):
            answer = bucket.raw.put(f"{bucket.path()}-2", headers={"x-amz-object-ownership": value})
            message = f"Invalid x-amz-object-ownership header: {value}"
            expect.error(answer, "InvalidArgument", message, ArgumentName="x-amz-object-ownership")
        assert bucket.raw.head(f"{bucket.path()}-2").status == 404
