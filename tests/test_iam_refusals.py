"""Each action of IAM and STS is refused without its own right, whatever other rights there are."""

import pytest
from test_admin import refusal

from support.actions import Action, actions, operation, value
from support.identities import allow, client, deny, error_of, master_key, new_key, new_user, policy
from support.server import Server

# What each member of an input may be, so that requests are well-formed.
MEMBERS = {
    "AccessKeyId": "AKIAIOSFODNN7EXAMPLE",
    "ActionNames": ["s3:GetObject"],
    "AccountAlias": "the-alias",
    "ClientID": "client",
    "AssumeRolePolicyDocument": '{"Version":"2012-10-17","Statement":[]}',
    "Description": "text",
    "GroupName": "target-group",
    "Name": "somebody",
    "OpenIDConnectProviderArn": "arn:aws:iam::{account}:oidc-provider/idp.lab",
    "PermissionsBoundary": "arn:aws:iam::aws:policy/AmazonS3FullAccess",
    "PolicyArn": "arn:aws:iam::aws:policy/AmazonS3FullAccess",
    "PolicyDocument": '{"Version":"2012-10-17","Statement":[]}',
    "PolicyInputList": ['{"Version":"2012-10-17","Statement":[]}'],
    "PolicyName": "target-policy",
    "PolicySourceArn": "arn:aws:iam::{account}:user/target",
    "RoleArn": "arn:aws:iam::{account}:role/target-role",
    "RoleName": "target-role",
    "RoleSessionName": "session",
    "Status": "Inactive",
    "TagKeys": ["key"],
    "ThumbprintList": ["a" * 40],
    "Tags": [{"Key": "key", "Value": "value"}],
    "Url": "https://idp.lab",
    "UserName": "target",
    "VersionId": "v1",
}
# All actions of the table that policies decide about, but those that are not implemented.
SERVED = [
    action
    for action in actions()
    if action.state not in ("later", "refused")
    # `administrator`: test_security_actions.py.
    and action.permission not in ("unasked", "administrator")
    # Nobody signs for it (test_openid.py).
    and action.name != "AssumeRoleWithWebIdentity"
]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("each")
    (folder / "tree").mkdir()
    options = ("--durability", "none", "--master-key-file", str(master_key(folder)))
    running = Server(folder / "tree", *options, log=folder / "log")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def keys(shared_server):
    server = shared_server
    iam = client(server, "iam")
    iam.create_user(UserName="target")
    iam.create_group(GroupName="target-group")
    iam.create_role(
        RoleName="target-role",
        AssumeRolePolicyDocument=policy({"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sts:*"}),
    )
    return {"nobody": new_user(server, "nobody"), "all-but": new_user(server, "all-but")}


def members_of(action: Action, values: dict) -> dict:
    """The members that a request of the action must have, and the name of the user if it may have one."""
    if action.service == "slipway":
        return {"UserName": values["UserName"]}
    shape = operation(action.name).input_shape
    if shape is None:
        return {}
    names = dict.fromkeys([*shape.required_members, *({"UserName"} & set(shape.members))])
    return {name: values.get(name) or value(name, shape.members[name]) for name in names}


def refused(server: Server, action: Action, key: tuple, members: dict) -> tuple[str, int]:
    """The code and the status of the answer."""
    if action.service == "slipway":
        return refusal(server, action.name, key, **members)
    return error_of(client(server, action.service, key)._make_api_call, action.name, members)[:2]


class TestEachAction:
    """A user without rights, and one with all rights but this one, may do no action: whether what it is about is
    there, or not."""

    @pytest.mark.parametrize("action", SERVED, ids=str)
    def test_is_refused(self, shared_server, keys, action):
        server = shared_server
        account = client(server, "sts").get_caller_identity()["Account"]
        of_account = {
            name: sent.format(account=account) for name, sent in MEMBERS.items() if "{account}" in sent
        }
        members = members_of(action, MEMBERS | of_account)
        client(server, "iam").put_user_policy(
            UserName="all-but", PolicyName="p", PolicyDocument=policy(allow("*"), deny(action.permission))
        )
        missing = members | {
            name: "not-there"
            for name in ("UserName", "GroupName", "RoleName", "PolicyName")
            if name in members
        }
        for who in ("nobody", "all-but"):
            for sent in (members, missing):
                assert refused(server, action, keys[who], sent) == ("AccessDenied", 403), (who, sent)


def test_the_sentence_names_the_kind_of_policy(shared_server, keys):
    """As AWS's does. That of AssumeRole names none, so that a role that denies is like one that is not there."""
    server = shared_server
    iam = client(server, "iam")
    arn = client(server, "sts").get_caller_identity()["Arn"].replace(":root", ":user/target")
    boundary = "arn:aws:iam::aws:policy/AmazonS3FullAccess"
    iam.create_user(UserName="limited", PermissionsBoundary=boundary)
    limited = new_key(server, "limited")
    head = f"User: {arn.replace('target', '{}')} is not authorized to perform: iam:GetUser on resource: {arn}"

    def message(key: tuple) -> str:
        return error_of(client(server, "iam", key).get_user, UserName="target")[2]

    silent = "because no {} allows the iam:GetUser action"
    assert message(keys["nobody"]) == f"{head.format('nobody')} {silent.format('identity-based policy')}"
    iam.put_user_policy(UserName="limited", PolicyName="p", PolicyDocument=policy(allow("*")))
    assert message(limited) == f"{head.format('limited')} {silent.format('permissions boundary')}"
    iam.put_user_policy(UserName="limited", PolicyName="p", PolicyDocument=policy(deny("iam:*")))
    assert message(limited) == f"{head.format('limited')} with an explicit deny in an identity-based policy"
    session = client(server, "sts", keys["nobody"])
    for role in ("target-role", "not-there"):
        role_arn = arn.replace("user/target", f"role/{role}")
        code, _, said = error_of(session.assume_role, RoleArn=role_arn, RoleSessionName="session")
        assert (code, said) == (
            "AccessDenied",
            f"User: {arn.replace('target', 'nobody')} is not authorized to perform: sts:AssumeRole on resource: {role_arn}",
        )
