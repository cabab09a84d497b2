"""Each action of IAM and STS is refused without its own right, whatever other rights there are."""

import pytest

from support.actions import actions
from support.identities import allow, client, code_of, deny, error_of, master_key, new_user, policy
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
SERVED = [
    action
    for action in actions()
    if action.state.startswith(("wave-1", "wave-2", "wave-3", "wave-4", "empty", "missing"))
    and action.permission != "unasked"
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


class TestEachAction:
    """A user without rights, and one with all rights but this one, may do no action: whether what it is about is
    there, or not."""

    @pytest.mark.parametrize("action", SERVED, ids=lambda action: action.name)
    def test_is_refused(self, shared_server, keys, action):
        server = shared_server
        own = client(server, action.service.lower(), keys["all-but"])
        model = own.meta.service_model.operation_model(action.name)
        shape = model.input_shape
        account = client(server, "sts").get_caller_identity()["Account"]
        members = {}
        for name in shape.required_members if shape else []:
            value = MEMBERS[name]
            members[name] = (
                value.format(account=account) if isinstance(value, str) and "{account}" in value else value
            )
        optional = {"UserName"} & set(shape.members if shape else ())
        members |= {name: MEMBERS[name] for name in optional}
        client(server, "iam").put_user_policy(
            UserName="all-but",
            PolicyName="p",
            PolicyDocument=policy(allow("*"), deny(f"{action.service.lower()}:{action.name}")),
        )
        for who in ("nobody", "all-but"):
            caller = client(server, action.service.lower(), keys[who])
            code, status, message = error_of(caller._make_api_call, action.name, members)
            assert (code, status) == ("AccessDenied", 403), (who, message)
            missing = dict(members)
            for name in ("UserName", "GroupName", "RoleName", "PolicyName"):
                if name in missing:
                    missing[name] = "not-there"
            assert code_of(caller._make_api_call, action.name, missing) == "AccessDenied", who
