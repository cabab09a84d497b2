"""Principals of bucket policies and roles: stored by unique id, shown by ARN."""

import json

import pytest
from botocore.exceptions import ClientError

from support.identities import allow, client, code_of, error_of, key_of, master_key, new_user, policy


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


@pytest.fixture
def s3(server):
    s3 = client(server, "s3")
    s3.create_bucket(Bucket="shared")
    s3.put_object(Bucket="shared", Key="key", Body=b"body")
    return s3


def granted(*arns: str) -> str:
    names = list(arns) if len(arns) > 1 else arns[0]
    return policy(allow("s3:GetObject", "arn:aws:s3:::shared/*", Principal={"AWS": names}))


def read(server, key: tuple) -> str:
    get = client(server, "s3", key).get_object
    try:
        return get(Bucket="shared", Key="key")["Body"].read().decode()
    except ClientError as error:
        return error.response["Error"]["Code"]


class TestBucketPolicies:
    def test_a_name_made_again_has_no_rights(self, server, iam, account, s3):
        ann = new_user(server, "ann")
        document = granted(f"arn:aws:iam::{account}:user/ann", account)
        s3.put_bucket_policy(Bucket="shared", Policy=document)
        assert s3.get_bucket_policy(Bucket="shared")["Policy"] == document
        assert read(server, ann) == "body"
        iam.delete_access_key(UserName="ann", AccessKeyId=ann[0])
        unique_id = iam.get_user(UserName="ann")["User"]["UserId"]
        iam.delete_user(UserName="ann")
        again = new_user(server, "ann")
        assert read(server, again) == "AccessDenied"
        # The id shows that whoever it was is gone, as on AWS; it cannot be put again.
        left = s3.get_bucket_policy(Bucket="shared")["Policy"]
        assert json.loads(left)["Statement"][0]["Principal"]["AWS"] == [unique_id, account]
        assert code_of(s3.put_bucket_policy, Bucket="shared", Policy=left) == "MalformedPolicy"
        s3.put_bucket_policy(Bucket="shared", Policy=document)
        assert read(server, again) == "body"

    def test_a_new_name_keeps_the_rights(self, server, iam, account, s3):
        ann = new_user(server, "ann")
        s3.put_bucket_policy(Bucket="shared", Policy=granted(f"arn:aws:iam::{account}:user/ann"))
        iam.update_user(UserName="ann", NewUserName="Anna", NewPath="/staff/")
        assert read(server, ann) == "body"
        shown = s3.get_bucket_policy(Bucket="shared")["Policy"]
        assert shown == granted(f"arn:aws:iam::{account}:user/staff/Anna")

    def test_a_session_of_a_role_made_again(self, server, iam, account, s3):
        key = new_user(server, "ann", allow("sts:AssumeRole"))
        role = {
            "RoleName": "reader",
            "AssumeRolePolicyDocument": policy(
                {"Effect": "Allow", "Principal": {"AWS": account}, "Action": "sts:AssumeRole"}
            ),
        }

        def session() -> tuple:
            arn = iam.create_role(**role)["Role"]["Arn"]
            assume = client(server, "sts", key).assume_role
            return key_of(assume(RoleArn=arn, RoleSessionName="nightly")["Credentials"])

        before = session()
        for name in (
            f"arn:aws:sts::{account}:assumed-role/reader/nightly",
            f"arn:aws:iam::{account}:role/reader",
        ):
            s3.put_bucket_policy(Bucket="shared", Policy=granted(name))
            assert s3.get_bucket_policy(Bucket="shared")["Policy"] == granted(name)
            assert read(server, before) == "body"
            iam.delete_role(RoleName="reader")
            before = session()
            assert read(server, before) == "AccessDenied"

    @pytest.mark.parametrize(
        "name",
        [
            "arn:aws:iam::{account}:user/nobody",
            "arn:aws:iam::{account}:user/ANN",
            "arn:aws:iam::{account}:user/other/ann",
            "arn:aws:iam::{account}:role/ann",
            "arn:aws:iam::999999999999:user/ann",
            "arn:aws:sts::{account}:assumed-role/nobody/s",
            "AIDAJQABLZS4A3QDU576Q",
        ],
    )
    def test_who_is_not_there(self, server, account, s3, name):
        new_user(server, "ann")
        name = name.format(account=account)
        s3.put_bucket_policy(Bucket="shared", Policy=granted(f"arn:aws:iam::{account}:user/ann"))
        with pytest.raises(ClientError) as caught:
            s3.put_bucket_policy(Bucket="shared", Policy=granted(name))
        error = caught.value.response["Error"]
        assert (error["Code"], error["Message"]) == ("MalformedPolicy", "Invalid principal in policy")
        assert error["Detail"] == f'"AWS" : "{name}"'
        shown = s3.get_bucket_policy(Bucket="shared")["Policy"]
        assert shown == granted(f"arn:aws:iam::{account}:user/ann")

    def test_accounts_need_not_be_there(self, s3):
        document = granted("999999999999", "arn:aws:iam::999999999999:root", "*")
        s3.delete_public_access_block(Bucket="shared")
        s3.put_bucket_policy(Bucket="shared", Policy=document)
        assert s3.get_bucket_policy(Bucket="shared")["Policy"] == document


class TestRoles:
    def trust(self, name: str) -> str:
        return policy({"Effect": "Allow", "Principal": {"AWS": name}, "Action": "sts:AssumeRole"})

    def test_a_name_made_again_may_not_assume(self, server, iam, account):
        ann = new_user(server, "ann")
        trust = self.trust(f"arn:aws:iam::{account}:user/ann")
        made = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]
        assert made["AssumeRolePolicyDocument"] == json.loads(trust)
        assume = {"RoleArn": made["Arn"], "RoleSessionName": "nightly"}
        assert client(server, "sts", ann).assume_role(**assume)
        iam.delete_access_key(UserName="ann", AccessKeyId=ann[0])
        unique_id = iam.get_user(UserName="ann")["User"]["UserId"]
        iam.delete_user(UserName="ann")
        again = new_user(server, "ann")
        assert code_of(client(server, "sts", again).assume_role, **assume) == "AccessDenied"
        for shown in (iam.get_role(RoleName="reader")["Role"], iam.list_roles()["Roles"][0]):
            principal = shown["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]
            assert principal == {"AWS": unique_id}
        iam.update_assume_role_policy(RoleName="reader", PolicyDocument=trust)
        assert iam.get_role(RoleName="reader")["Role"]["AssumeRolePolicyDocument"] == json.loads(trust)
        assert client(server, "sts", again).assume_role(**assume)

    def test_who_is_not_there(self, iam, account):
        name = f"arn:aws:iam::{account}:user/nobody"
        refused = ("MalformedPolicyDocument", 400, f'Invalid principal in policy: "AWS":"{name}"')
        create = {"RoleName": "reader", "AssumeRolePolicyDocument": self.trust(name)}
        assert error_of(iam.create_role, **create) == refused
        assert iam.list_roles()["Roles"] == []
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=self.trust(account))
        update = {"RoleName": "reader", "PolicyDocument": self.trust(name)}
        assert error_of(iam.update_assume_role_policy, **update) == refused

    def test_a_role_may_trust_itself_once_it_is_there(self, iam, account):
        arn = f"arn:aws:iam::{account}:role/reader"
        assert code_of(iam.create_role, RoleName="reader", AssumeRolePolicyDocument=self.trust(arn)) == (
            "MalformedPolicyDocument"
        )
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=self.trust(account))
        iam.update_assume_role_policy(RoleName="reader", PolicyDocument=self.trust(arn))
