"""Tags that go on from the session of a role to that of the next one, and sessions that are revoked."""

import time

import pytest

from support.admin import Admin
from support.identities import (
    ROOT,
    allow,
    client,
    code_of,
    error_of,
    key_of,
    master_key,
    new_user,
    policy,
)

ASSUME = ["sts:AssumeRole", "sts:TagSession"]


@pytest.fixture
def server(make_server, tmp_path):
    server = make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
    client(server, "s3").create_bucket(Bucket="data")
    return server


@pytest.fixture
def ann(server) -> tuple:
    return new_user(server, "ann", allow(ASSUME))


def tags(**pairs: str) -> list[dict]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def new_role(server, name: str, *statements: dict, actions=ASSUME, condition=None, **members) -> str:
    """A role that everybody in the account may assume whose own policies allow it; returns its ARN."""
    account = client(server, "sts").get_caller_identity()["Account"]
    trust = {"Effect": "Allow", "Action": actions, "Principal": {"AWS": account}}
    trust |= {"Condition": condition} if condition else {}
    iam = client(server, "iam")
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust), **members)["Role"]
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(allow(ASSUME), *statements))
    return made["Arn"]


def assume(server, key: tuple, role: str, **members) -> tuple:
    sts = client(server, "sts", key)
    return key_of(sts.assume_role(RoleArn=role, RoleSessionName="s1", **members)["Credentials"])


def has_tag(key: str, value: str) -> dict:
    return allow("s3:ListBucket", Condition={"StringEquals": {f"aws:PrincipalTag/{key}": value}})


def may_list(server, key: tuple) -> bool:
    s3 = client(server, "s3", key)
    try:
        s3.list_objects_v2(Bucket="data")
    except s3.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDenied"
        return False
    return True


class TestTransitiveTags:
    def test_they_go_on_to_each_role(self, server, ann):
        roles = [new_role(server, name, has_tag("team", "red")) for name in ("one", "two", "three")]
        sent = {"Tags": tags(team="red", shift="day"), "TransitiveTagKeys": ["Team"]}
        key = assume(server, ann, roles[0], **sent)
        assert may_list(server, key)
        for role in (roles[1], roles[2], roles[0]):
            key = assume(server, key, role)
            assert may_list(server, key)

    def test_others_do_not(self, server, ann):
        one, two = (new_role(server, name, has_tag("team", "red")) for name in ("one", "two"))
        key = assume(server, ann, one, Tags=tags(team="red", shift="day"), TransitiveTagKeys=["shift"])
        assert may_list(server, key) and not may_list(server, assume(server, key, two))

    def test_the_next_session_adds_its_own(self, server, ann):
        both = {"aws:PrincipalTag/team": "red", "aws:PrincipalTag/site": "a"}
        last = [allow("s3:ListBucket", Condition={"StringEquals": both})]
        one, two, three = (new_role(server, name, *last) for name in ("one", "two", "three"))
        key = assume(server, ann, one, Tags=tags(team="red"), TransitiveTagKeys=["team"])
        key = assume(server, key, two, Tags=tags(site="a"), TransitiveTagKeys=["site"])
        assert may_list(server, key)
        assert may_list(server, assume(server, key, three))

    @pytest.mark.parametrize("name", ["team", "TEAM"])
    def test_they_cannot_be_set_again(self, server, ann, name):
        one, two = (new_role(server, role) for role in ("one", "two"))
        key = assume(server, ann, one, Tags=tags(team="red"), TransitiveTagKeys=["team"])
        sts = client(server, "sts", key)
        for value in ("blue", "red"):
            sent = {"RoleArn": two, "RoleSessionName": "s1", "Tags": tags(**{name: value})}
            assert error_of(sts.assume_role, **sent) == (
                "InvalidParameterValue",
                400,
                "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag "
                "key from the calling session.",
            )

    def test_they_take_the_place_of_the_roles_own(self, server, ann):
        one = new_role(server, "one")
        two = new_role(server, "two", has_tag("team", "red"), Tags=tags(TEAM="blue"))
        key = assume(server, ann, one, Tags=tags(team="red"), TransitiveTagKeys=["team"])
        assert may_list(server, assume(server, key, two))

    def test_the_next_role_has_to_take_tags(self, server, ann):
        """Who may not tag the sessions of a role gets none that tags go on to."""
        one = new_role(server, "one")
        two = new_role(server, "two", actions=["sts:AssumeRole"])
        account = two.split(":")[4]
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": account}}
        denied = {"Effect": "Deny", "Action": "sts:TagSession", "Principal": {"AWS": account}}
        iam = client(server, "iam")
        iam.update_assume_role_policy(RoleName="two", PolicyDocument=policy(trust, denied))
        assume(server, assume(server, ann, one), two)
        key = assume(server, ann, one, Tags=tags(team="red"), TransitiveTagKeys=["team"])
        sent = {"RoleArn": two, "RoleSessionName": "s1"}
        assert code_of(client(server, "sts", key).assume_role, **sent) == "AccessDenied"

    def test_a_trust_policy_says_which(self, server, ann):
        only = {"ForAllValues:StringEquals": {"sts:TransitiveTagKeys": ["team"]}}
        one = new_role(server, "one", condition=only)
        assume(server, ann, one, Tags=tags(team="red", site="a"), TransitiveTagKeys=["team"])
        sts = client(server, "sts", ann)
        sent = {"RoleArn": one, "RoleSessionName": "s1", "Tags": tags(team="red", site="a")}
        assert code_of(sts.assume_role, **sent, TransitiveTagKeys=["site"]) == "AccessDenied"

    def test_keys_without_a_tag(self, server, ann):
        sts, one = client(server, "sts", ann), new_role(server, "one")
        sent = {
            "RoleArn": one,
            "RoleSessionName": "s1",
            "Tags": tags(team="red"),
            "TransitiveTagKeys": ["site"],
        }
        assert code_of(sts.assume_role, **sent) == "InvalidParameterValue"


class TestRevokedSessions:
    @pytest.fixture
    def admin(self, server, tmp_path) -> Admin:
        root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
        return Admin(tmp_path, AWS_ENDPOINT_URL=server.endpoint, **root)

    def test_sessions_from_before_are_refused(self, server, ann, admin):
        role, other = (new_role(server, name, allow("s3:ListBucket")) for name in ("one", "two"))
        key, spared = assume(server, ann, role), assume(server, ann, other)
        assert may_list(server, key)
        assert "are refused" in admin("role", "revoke-sessions", "one")
        assert not may_list(server, key) and may_list(server, spared)
        # By the policy that AWS's console makes.
        shown = client(server, "iam").get_role_policy(RoleName="one", PolicyName="AWSRevokeOlderSessions")
        (statement,) = shown["PolicyDocument"]["Statement"]
        assert (statement["Effect"], list(statement["Condition"])) == ("Deny", ["DateLessThan"])
        time.sleep(1.1)
        new = assume(server, ann, role)
        assert may_list(server, new) and not may_list(server, key)
        admin("role", "revoke-sessions", "one")
        assert not may_list(server, new)

    def test_what_is_refused(self, server, admin):
        assert admin.refused("role", "revoke-sessions", "nobody").startswith("NoSuchEntity")
