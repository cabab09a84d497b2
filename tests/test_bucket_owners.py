"""Buckets that are given to other accounts, by the key that the server was started with."""

import json

import pytest
from test_admin import done, new_account, refusal, text

from support.admin import Admin, code_or_none, rows
from support.identities import ROOT, allow, client, code_of, master_key, new_user, policy
from support.wire import poll


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


def owners(server) -> dict[str, str]:
    found = done(server, "ListBucketOwners").findall(".//{*}member")
    return {member.findtext("{*}BucketName"): member.findtext("{*}AccountId") for member in found}


def own_id(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


class TestOwners:
    def test_a_bucket_is_given_away_and_back(self, server):
        own, (account, lab) = own_id(server), new_account(server, "lab")
        s3, labs = client(server, "s3"), client(server, "s3", lab)
        ann = client(server, "s3", new_user(server, "ann", allow("s3:*")))
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="a", Body=b"1")
        assert code_of(labs.get_object, Bucket="data", Key="a") == "AccessDenied"
        assert [bucket["Name"] for bucket in ann.list_buckets()["Buckets"]] == ["data"]
        assert owners(server) == {"data": own}
        done(server, "SetBucketOwner", BucketName="data", AccountId=account)
        assert owners(server) == {"data": account}
        assert labs.get_object(Bucket="data", Key="a")["Body"].read() == b"1"
        labs.put_object(Bucket="data", Key="b", Body=b"2")
        assert [bucket["Name"] for bucket in labs.list_buckets()["Buckets"]] == ["data"]
        assert labs.get_bucket_acl(Bucket="data")["Owner"]["ID"] != s3.list_buckets()["Owner"]["ID"]
        assert code_of(ann.get_object, Bucket="data", Key="a") == "AccessDenied"
        assert ann.list_buckets()["Buckets"] == []
        # The account has a bucket now.
        done(server, "UpdateAccount", AccountId=account, Status="Disabled")
        assert refusal(server, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
        done(server, "SetBucketOwner", BucketName="data", AccountId=own)
        done(server, "DeleteAccount", AccountId=account)
        assert ann.get_object(Bucket="data", Key="b")["Body"].read() == b"2"

    def test_all_gateways_see_it_within_a_second(self, server, make_server, tmp_path):
        account, lab = new_account(server, "lab")
        client(server, "s3").create_bucket(Bucket="data")
        keys = str(tmp_path / "master-key")
        other = make_server("--durability", "none", "--master-key-file", keys, tree=server.tree)
        s3 = client(other, "s3", lab)
        assert code_of(s3.list_objects_v2, Bucket="data") == "AccessDenied"
        done(server, "SetBucketOwner", BucketName="data", AccountId=account)
        poll(lambda: code_or_none(s3.list_objects_v2, Bucket="data") is None, 3)

    def test_its_policy_stays(self, server):
        account, lab = new_account(server, "lab")
        s3, ann = client(server, "s3"), new_user(server, "ann", allow("s3:*"))
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="a", Body=b"1")
        arn = client(server, "sts", ann).get_caller_identity()["Arn"]
        grant = allow("s3:GetObject", "arn:aws:s3:::data/*", Principal={"AWS": arn})
        s3.put_bucket_policy(Bucket="data", Policy=policy(grant))
        done(server, "SetBucketOwner", BucketName="data", AccountId=account)
        client(server, "s3", ann).get_object(Bucket="data", Key="a")
        shown = json.loads(client(server, "s3", lab).get_bucket_policy(Bucket="data")["Policy"])
        assert shown["Statement"][0]["Principal"] == {"AWS": arn}

    def test_what_a_person_made_has_an_owner_then(self, server):
        account, lab = new_account(server, "lab")
        (server.tree / "by-hand").mkdir()
        (server.tree / "by-hand" / "a").write_bytes(b"1")
        done(server, "SetBucketOwner", BucketName="by-hand", AccountId=account)
        assert client(server, "s3", lab).get_object(Bucket="by-hand", Key="a")["Body"].read() == b"1"

    def test_what_is_refused(self, server):
        account, lab = new_account(server, "lab")
        client(server, "s3").create_bucket(Bucket="data")
        sent = {"BucketName": "data", "AccountId": account}
        assert refusal(server, "SetBucketOwner", **sent | {"BucketName": "none"}) == ("NoSuchEntity", 404)
        assert refusal(server, "SetBucketOwner", **sent | {"BucketName": "../x"}) == ("NoSuchEntity", 404)
        assert refusal(server, "SetBucketOwner", **sent | {"AccountId": "000000000000"}) == (
            "NoSuchEntity",
            404,
        )
        assert refusal(server, "SetBucketOwner", BucketName="data") == ("ValidationError", 400)
        done(server, "UpdateAccount", AccountId=account, Status="Disabled")
        assert refusal(server, "SetBucketOwner", **sent) == ("InvalidInput", 400)
        done(server, "UpdateAccount", AccountId=account, Status="Active")
        iam = client(server, "iam")
        made = iam.create_access_key()["AccessKey"]
        admin = new_user(server, "ann", allow("*"))
        for key in (lab, admin, (made["AccessKeyId"], made["SecretAccessKey"], None)):
            assert refusal(server, "SetBucketOwner", key, **sent) == ("AccessDenied", 403)
            assert refusal(server, "ListBucketOwners", key) == ("AccessDenied", 403)
        assert owners(server) == {"data": own_id(server)}

    def test_a_server_that_only_reads(self, server, make_server, tmp_path):
        account, _ = new_account(server, "lab")
        client(server, "s3").create_bucket(Bucket="data")
        keys = str(tmp_path / "master-key")
        reader = make_server("--read-only", "--master-key-file", keys, tree=server.tree)
        sent = {"BucketName": "data", "AccountId": account}
        assert refusal(reader, "SetBucketOwner", **sent) == ("UnmodifiableEntity", 400)
        assert owners(reader) == {"data": own_id(server)}

    def test_pages(self, server):
        s3 = client(server, "s3")
        names = sorted(f"bucket-{number}" for number in range(5))
        for name in names:
            s3.create_bucket(Bucket=name)
        found, marker = [], {}
        for _ in range(3):
            page = done(server, "ListBucketOwners", MaxItems="2", **marker)
            found += [element.text for element in page.findall(".//{*}BucketName")]
            if text(page, "IsTruncated") == "false":
                break
            marker = {"Marker": text(page, "Marker")}
        assert found == names


def test_the_command(server, tmp_path):
    account, lab = new_account(server, "lab")
    admin = Admin(
        tmp_path, AWS_ENDPOINT_URL=server.endpoint, AWS_ACCESS_KEY_ID=ROOT[0], AWS_SECRET_ACCESS_KEY=ROOT[1]
    )
    client(server, "s3").create_bucket(Bucket="data")
    assert account in admin("bucket", "owner", "data", "lab")
    client(server, "s3", lab).list_objects_v2(Bucket="data")
    assert rows(admin("bucket", "list"))[1][:3] == ["data", account, "lab"]
    assert [bucket["AccountId"] for bucket in admin.json("bucket", "list")] == [account]
    assert admin.refused("bucket", "owner", "data", "nobody") == "NoSuchEntity: there is no account nobody"
    assert admin.refused("bucket", "owner", "none", account).startswith("NoSuchEntity")
