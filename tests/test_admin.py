"""Several accounts in one tree: our own actions, which make them, and what an account may do with another's."""

import json
import os
from contextlib import suppress
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from support.identities import ROOT, allow, client, code_of, error_of, master_key, policy
from support.server import KEYS, SIDECARS, Server
from support.wire import poll

NS = "{urn:slipway:1}"


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


def ours(server: Server, action: str, key: tuple = ROOT, **members: str) -> tuple[int, ElementTree.Element]:
    """The status and the document of one of our own actions."""
    body = urlencode({"Action": action, "Version": "slipway-1"} | members)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    request = AWSRequest("POST", server.endpoint + "/", data=body, headers=headers)
    SigV4Auth(Credentials(*key), "iam", "us-east-1").add_auth(request)
    answer = server.raw.post("/", body.encode(), headers=dict(request.headers), anonymous=True)
    return answer.status, ElementTree.fromstring(answer.body)


def done(server: Server, action: str, key: tuple = ROOT, **members: str) -> ElementTree.Element:
    status, document = ours(server, action, key, **members)
    assert status == 200, ElementTree.tostring(document)
    return document


def refusal(server: Server, action: str, key: tuple = ROOT, **members: str) -> tuple[str, int]:
    status, document = ours(server, action, key, **members)
    return document.findtext(".//{*}Code"), status


def text(document: ElementTree.Element, name: str) -> str:
    found = document.findtext(f".//{NS}{name}")
    assert found is not None, ElementTree.tostring(document)
    return found


def key_in(document: ElementTree.Element) -> tuple:
    return (text(document, "AccessKeyId"), text(document, "SecretAccessKey"), None)


def new_account(server: Server, name: str) -> tuple[str, tuple]:
    """A new account: its id and the key of its root."""
    made = done(server, "CreateAccount", AccountName=name)
    return text(made, "AccountId"), key_in(made)


class TestAccounts:
    def test_a_life(self, server):
        own = client(server, "sts").get_caller_identity()["Account"]
        account, root = new_account(server, "lab")
        identity = client(server, "sts", root).get_caller_identity()
        assert (identity["Account"], identity["Arn"]) == (account, f"arn:aws:iam::{account}:root")
        shown = done(server, "GetAccount", AccountId=account)
        assert [text(shown, name) for name in ("AccountName", "Status", "Users", "OwnsTree")] == [
            "lab",
            "Active",
            "0",
            "false",
        ]
        listed = done(server, "ListAccounts").findall(f".//{NS}AccountId")
        assert {element.text for element in listed} == {own, account}
        assert refusal(server, "CreateAccount", AccountName="LAB") == ("EntityAlreadyExists", 409)
        done(server, "UpdateAccount", AccountId=account, NewAccountName="Labor")
        assert text(done(server, "GetAccount", AccountId=account), "AccountName") == "Labor"

        client(server, "s3", root).create_bucket(Bucket="data")
        assert refusal(server, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
        done(server, "UpdateAccount", AccountId=account, Status="Disabled")
        assert code_of(client(server, "s3", root).list_buckets) == "InvalidAccessKeyId"
        assert refusal(server, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
        client(server, "s3").delete_bucket(Bucket="data")
        done(server, "DeleteAccount", AccountId=account)
        assert refusal(server, "GetAccount", AccountId=account) == ("NoSuchEntity", 404)
        assert code_of(client(server, "sts", root).get_caller_identity) == "InvalidClientTokenId"
        assert refusal(server, "DeleteAccount", AccountId=own) == ("DeleteConflict", 409)

    def test_names_that_would_be_another_account(self, server):
        account, _ = new_account(server, "lab")
        for name in (account, "000000000000", " lab", "lab ", "\u00a0lab", ""):
            # Such as the form's own limit for the empty one.
            assert refusal(server, "CreateAccount", AccountName=name)[1] == 400, name
            assert refusal(server, "UpdateAccount", AccountId=account, NewAccountName=name)[1] == 400, name
        for name in ("00000000000", "the lab", "123456789012a"):
            done(server, "UpdateAccount", AccountId=account, NewAccountName=name)

    def test_that_of_the_directory_is_not_disabled(self, server):
        own = client(server, "sts").get_caller_identity()["Account"]
        told = refusal(server, "UpdateAccount", AccountId=own, Status="Disabled")
        assert told == ("UnmodifiableEntity", 400)
        done(server, "UpdateAccount", AccountId=own, Status="Active")
        assert text(done(server, "GetAccount", AccountId=own), "Status") == "Active"

    def test_both_changes_are_made_or_none(self, server):
        own = client(server, "sts").get_caller_identity()["Account"]
        before = text(done(server, "GetAccount", AccountId=own), "AccountName")
        both = {"NewAccountName": "renamed", "Status": "Disabled"}
        assert refusal(server, "UpdateAccount", AccountId=own, **both) == ("UnmodifiableEntity", 400)
        assert text(done(server, "GetAccount", AccountId=own), "AccountName") == before
        account, _ = new_account(server, "both")
        new_account(server, "renamed")
        assert refusal(server, "UpdateAccount", AccountId=account, **both) == ("EntityAlreadyExists", 409)
        assert text(done(server, "GetAccount", AccountId=account), "Status") == "Active"
        done(server, "UpdateAccount", AccountId=account, NewAccountName="other", Status="Disabled")
        answer = done(server, "GetAccount", AccountId=account)
        assert (text(answer, "AccountName"), text(answer, "Status")) == ("other", "Disabled")

    def test_keys_of_a_root_are_changed(self, server):
        account, first = new_account(server, "lab")
        second = key_in(done(server, "CreateRootAccessKey", AccountId=account))
        assert refusal(server, "CreateRootAccessKey", AccountId=account) == ("LimitExceeded", 409)
        listed = done(server, "ListRootAccessKeys", AccountId=account).findall(f".//{NS}AccessKeyId")
        assert {element.text for element in listed} == {first[0], second[0]}
        done(server, "DeleteRootAccessKey", AccountId=account, AccessKeyId=first[0])
        assert code_of(client(server, "s3", first).list_buckets) == "InvalidAccessKeyId"
        client(server, "s3", second).list_buckets()
        gone = refusal(server, "DeleteRootAccessKey", AccountId=account, AccessKeyId=first[0])
        assert gone == ("NoSuchEntity", 404)

    def test_only_the_administrator_of_the_tree_may(self, server):
        """Neither the root of another account, nor another key of the tree's root, nor an administrator of the account."""
        account, root = new_account(server, "lab")
        iam = client(server, "iam")
        second = iam.create_access_key()["AccessKey"]
        iam.create_user(UserName="ann")
        iam.attach_user_policy(UserName="ann", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        ann = iam.create_access_key(UserName="ann")["AccessKey"]
        keys = [root, *((key["AccessKeyId"], key["SecretAccessKey"], None) for key in (second, ann))]
        calls = {
            "CreateAccount": {"AccountName": "more"},
            "GetAccount": {"AccountId": account},
            "ListAccounts": {},
            "UpdateAccount": {"AccountId": account, "Status": "Disabled"},
            "DeleteAccount": {"AccountId": account},
            "CreateRootAccessKey": {"AccountId": account},
            "ListRootAccessKeys": {"AccountId": account},
            "DeleteRootAccessKey": {"AccountId": account, "AccessKeyId": root[0]},
            "SetDisabled": {"UserName": "ann", "Disabled": "true"},
            "SetPosixIdentity": {"UserName": "ann", "Identity": "12101:12101"},
            "SetGroupOfDirectory": {"GroupName": "staff", "DirectoryGroup": "cn=staff,dc=lab"},
            "ListGroupsOfDirectory": {},
        }
        for action, members in calls.items():
            for key in keys:
                assert refusal(server, action, key, **members) == ("AccessDenied", 403), (action, key[0])
        assert text(done(server, "GetAccount", AccountId=account), "Status") == "Active"

    def test_what_is_wrong_is_said(self, server):
        assert refusal(server, "GetAccount", AccountId="1") == ("ValidationError", 400)
        assert refusal(server, "GetAccount", AccountId="000000000000") == ("NoSuchEntity", 404)
        assert refusal(server, "CreateAccount", AccountName="two\nlines") == ("InvalidInput", 400)
        assert refusal(server, "SetDisabled", Disabled="true") == ("InvalidInput", 400)
        assert refusal(server, "SetDisabled", UserName="nobody", Disabled="true") == ("NoSuchEntity", 404)

    def test_without_a_master_key_no_account_is_made(self, make_server):
        server = make_server("--durability", "none")
        assert refusal(server, "CreateAccount", AccountName="lab") == ("NotImplemented", 501)
        assert len(done(server, "ListAccounts").findall(f".//{NS}member")) == 1


def test_a_user_is_switched_off(server):
    account, root = new_account(server, "lab")
    iam = client(server, "iam", root)
    iam.create_user(UserName="ann")
    iam.attach_user_policy(UserName="ann", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    ann = client(server, "s3", (key["AccessKeyId"], key["SecretAccessKey"], None))
    ann.list_buckets()
    done(server, "SetDisabled", AccountId=account, UserName="ann", Disabled="true")
    assert code_of(ann.list_buckets) == "InvalidAccessKeyId"
    done(server, "SetDisabled", AccountId=account, UserName="ann", Disabled="false")
    ann.list_buckets()


class TestTenants:
    """Two accounts beside that of the tree, each with the root's key."""

    @pytest.fixture
    def one(self, server):
        return new_account(server, "one")

    @pytest.fixture
    def other(self, server):
        return new_account(server, "other")

    def test_a_bucket_is_its_makers(self, server, one, other):
        s3, strange = client(server, "s3", one[1]), client(server, "s3", other[1])
        s3.create_bucket(Bucket="ones")
        s3.put_object(Bucket="ones", Key="a", Body=b"1")
        assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["ones"]
        assert strange.list_buckets()["Buckets"] == []
        for call in (
            lambda s3: s3.get_object(Bucket="ones", Key="a"),
            lambda s3: s3.put_object(Bucket="ones", Key="b", Body=b""),
            lambda s3: s3.delete_object(Bucket="ones", Key="a"),
            lambda s3: s3.list_objects_v2(Bucket="ones"),
            lambda s3: s3.get_bucket_policy(Bucket="ones"),
            lambda s3: s3.delete_bucket(Bucket="ones"),
        ):
            assert code_of(call, strange) == "AccessDenied"
        assert code_of(strange.create_bucket, Bucket="ones") == "BucketAlreadyExists"
        assert "is taken by a file" not in server.log
        # The administrator of the tree may all.
        assert client(server, "s3").get_object(Bucket="ones", Key="a")["Body"].read() == b"1"

    def test_rights_in_one_account_are_none_in_the_other(self, server, one, other):
        client(server, "s3", one[1]).create_bucket(Bucket="ones")
        iam = client(server, "iam", other[1])
        iam.create_user(UserName="ann")
        iam.attach_user_policy(UserName="ann", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        made = iam.create_access_key(UserName="ann")["AccessKey"]
        key = (made["AccessKeyId"], made["SecretAccessKey"], None)
        ann = client(server, "s3", key)
        assert code_of(ann.list_objects_v2, Bucket="ones") == "AccessDenied"
        # Both have to allow it.
        grant = allow(
            "s3:ListBucket", "arn:aws:s3:::ones", Principal={"AWS": f"arn:aws:iam::{other[0]}:user/ann"}
        )
        client(server, "s3", one[1]).put_bucket_policy(Bucket="ones", Policy=policy(grant))
        poll(lambda: _is_allowed(lambda: ann.list_objects_v2(Bucket="ones")))
        assert code_of(ann.put_object, Bucket="ones", Key="a") == "AccessDenied"
        iam.detach_user_policy(UserName="ann", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        assert code_of(ann.list_objects_v2, Bucket="ones") == "AccessDenied"

    def test_names_are_an_accounts_own(self, server, one, other):
        for account, key in (one, other):
            iam = client(server, "iam", key)
            made = iam.create_user(UserName="ann")["User"]
            assert made["Arn"] == f"arn:aws:iam::{account}:user/ann"
            assert [user["UserId"] for user in iam.list_users()["Users"]] == [made["UserId"]]
        assert client(server, "iam").list_users()["Users"] == []
        arn = client(server, "iam", one[1]).create_policy(
            PolicyName="p", PolicyDocument=policy(allow("s3:ListAllMyBuckets"))
        )["Policy"]["Arn"]
        strange = client(server, "iam", other[1])
        assert code_of(strange.get_policy, PolicyArn=arn) in ("AccessDenied", "NoSuchEntity")
        assert code_of(strange.attach_user_policy, UserName="ann", PolicyArn=arn) == "NoSuchEntity"

    def test_a_role_lets_the_other_account_in(self, server, one, other):
        trust = json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "sts:AssumeRole",
                        "Principal": {"AWS": f"arn:aws:iam::{other[0]}:root"},
                    }
                ],
            }
        )
        iam = client(server, "iam", one[1])
        role = iam.create_role(RoleName="guest", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        theirs = client(server, "iam", other[1])
        theirs.create_user(UserName="ann")
        made = theirs.create_access_key(UserName="ann")["AccessKey"]
        sts = client(server, "sts", (made["AccessKeyId"], made["SecretAccessKey"], None))
        assert code_of(sts.assume_role, RoleArn=role, RoleSessionName="ann") == "AccessDenied"
        theirs.put_user_policy(
            UserName="ann", PolicyName="own", PolicyDocument=policy(allow("sts:AssumeRole", role))
        )
        user = sts.assume_role(RoleArn=role, RoleSessionName="ann")["AssumedRoleUser"]
        assert user["Arn"] == f"arn:aws:sts::{one[0]}:assumed-role/guest/ann"

    def test_a_disabled_account_keeps_its_data(self, server, one):
        s3 = client(server, "s3", one[1])
        s3.create_bucket(Bucket="ones")
        s3.put_object(Bucket="ones", Key="a", Body=b"1")
        done(server, "UpdateAccount", AccountId=one[0], Status="Disabled")
        code, status, _ = error_of(s3.get_object, Bucket="ones", Key="a")
        assert (code, status) == ("InvalidAccessKeyId", 403)
        done(server, "UpdateAccount", AccountId=one[0], Status="Active")
        assert s3.get_object(Bucket="ones", Key="a")["Body"].read() == b"1"


def _is_allowed(call) -> bool:
    with suppress(ClientError):
        call()
        return True
    return False


@pytest.mark.skipif(os.geteuid() != 0 or SIDECARS, reason="--impersonate needs root, and no records in files")
def test_who_cannot_see_all_buckets_deletes_no_account(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o755)
    env = {**KEYS, "SLIPWAY_ROOT_UID": "12100", "SLIPWAY_ROOT_GID": "12100"}
    key = ("--master-key-file", str(master_key(tmp_path)))
    plain = make_server("--durability", "none", *key, tree=tree)
    account, root = new_account(plain, "lab")
    client(plain, "s3", root).create_bucket(Bucket="hidden")
    (tree / "hidden").chmod(0o700)
    done(plain, "UpdateAccount", AccountId=account, Status="Disabled")
    server = make_server("--impersonate", "--durability", "none", *key, tree=tree, env=env)
    assert refusal(server, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
    assert refusal(plain, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
    client(plain, "s3").delete_bucket(Bucket="hidden")
    assert refusal(server, "DeleteAccount", AccountId=account) == ("DeleteConflict", 409)
    done(plain, "DeleteAccount", AccountId=account)
