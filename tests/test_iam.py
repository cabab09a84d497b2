"""The actions of IAM and STS on the port of S3: users, keys, groups, policies, roles and sessions, by boto3."""

import json

import pytest

from support.identities import (
    allow,
    client,
    code_of,
    deny,
    error_of,
    key_of,
    master_key,
    new_key,
    new_user,
    policy,
)


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


class TestUsers:
    def test_a_life(self, iam, account):
        made = iam.create_user(UserName="Ann", Path="/staff/", Tags=[{"Key": "team", "Value": "a"}])["User"]
        assert made["Arn"] == f"arn:aws:iam::{account}:user/staff/Ann"
        assert made["UserId"].startswith("AIDA") and made["Tags"] == [{"Key": "team", "Value": "a"}]
        assert iam.get_user(UserName="ann")["User"] == made
        assert error_of(iam.create_user, UserName="ANN") == (
            "EntityAlreadyExists",
            409,
            "User with name ANN already exists.",
        )
        iam.update_user(UserName="Ann", NewUserName="anna", NewPath="/")
        renamed = iam.get_user(UserName="anna")["User"]
        assert (renamed["UserId"], renamed["Path"]) == (made["UserId"], "/")
        assert error_of(iam.get_user, UserName="Ann") == (
            "NoSuchEntity",
            404,
            "The user with name Ann cannot be found.",
        )
        iam.untag_user(UserName="anna", TagKeys=["team"])
        assert iam.list_user_tags(UserName="anna")["Tags"] == []
        iam.delete_user(UserName="anna")
        assert code_of(iam.delete_user, UserName="anna") == "NoSuchEntity"
        # A name that is made again is somebody else.
        assert iam.create_user(UserName="Ann")["User"]["UserId"] != made["UserId"]

    def test_lists_have_pages(self, iam):
        names = [f"user-{number}" for number in range(7)]
        for name in names:
            iam.create_user(UserName=name, Path="/a/" if name == "user-3" else "/")
        pages = list(iam.get_paginator("list_users").paginate(PaginationConfig={"PageSize": 3}))
        assert [len(page["Users"]) for page in pages] == [3, 3, 1]
        assert [user["UserName"] for page in pages for user in page["Users"]] == names
        below = iam.list_users(PathPrefix="/a/")
        assert [user["UserName"] for user in below["Users"]] == ["user-3"]
        assert code_of(iam.list_users, Marker="x!") == "ValidationError"

    def test_whoever_has_something_is_not_deleted(self, server, iam):
        new_user(server, "ann", allow("s3:*"))
        iam.create_group(GroupName="staff")
        iam.add_user_to_group(GroupName="staff", UserName="ann")
        (key,) = iam.list_access_keys(UserName="ann")["AccessKeyMetadata"]
        for undo in (
            lambda: iam.delete_user_policy(UserName="ann", PolicyName="own"),
            lambda: iam.delete_access_key(UserName="ann", AccessKeyId=key["AccessKeyId"]),
            lambda: iam.remove_user_from_group(GroupName="staff", UserName="ann"),
        ):
            assert code_of(iam.delete_user, UserName="ann") == "DeleteConflict"
            undo()
        iam.delete_user(UserName="ann")

    def test_the_root(self, iam, account):
        user = iam.get_user()["User"]
        assert (user["UserId"], user["Arn"]) == (account, f"arn:aws:iam::{account}:root")


class TestKeys:
    def test_two_keys_and_their_status(self, server, iam):
        first = new_user(server, "ann", allow("s3:ListAllMyBuckets"))
        second = new_key(server, "ann")
        assert code_of(iam.create_access_key, UserName="ann") == "LimitExceeded"
        for key in (first, second):
            client(server, "s3", key).list_buckets()
        iam.update_access_key(UserName="ann", AccessKeyId=first[0], Status="Inactive")
        assert code_of(client(server, "s3", first).list_buckets) == "InvalidAccessKeyId"
        assert code_of(client(server, "sts", first).get_caller_identity) == "InvalidClientTokenId"
        client(server, "s3", second).list_buckets()
        iam.update_access_key(UserName="ann", AccessKeyId=first[0], Status="Active")
        client(server, "s3", first).list_buckets()
        iam.delete_access_key(UserName="ann", AccessKeyId=first[0])
        assert code_of(client(server, "s3", first).list_buckets) == "InvalidAccessKeyId"
        shown = iam.list_access_keys(UserName="ann")["AccessKeyMetadata"]
        assert [(key["AccessKeyId"], key["Status"]) for key in shown] == [(second[0], "Active")]

    def test_a_secret_is_shown_once(self, server, iam, tmp_path):
        _, secret, _ = new_user(server, "ann")
        shown = json.dumps([iam.list_access_keys(UserName="ann"), iam.get_user(UserName="ann")], default=str)
        assert secret not in shown and secret not in server.log
        kept = list((server.tree / ".slipway/iam").iterdir())
        assert kept and all(secret.encode() not in path.read_bytes() for path in kept if path.is_file())

    def test_the_last_use_is_known_to_the_hour(self, server, iam):
        key = new_user(server, "ann", allow("s3:*"))
        last = iam.get_access_key_last_used(AccessKeyId=key[0])
        assert last["UserName"] == "ann"
        assert (last["AccessKeyLastUsed"]["ServiceName"], last["AccessKeyLastUsed"]["Region"]) == (
            "N/A",
            "N/A",
        )
        client(server, "s3", key).list_buckets()
        used = iam.get_access_key_last_used(AccessKeyId=key[0])["AccessKeyLastUsed"]
        assert used["ServiceName"] == "s3" and used["LastUsedDate"].minute == 0
        unknown = error_of(iam.get_access_key_last_used, AccessKeyId="AKIAIOSFODNN7EXAMPLE")
        assert unknown[:2] == ("AccessDenied", 403)

    def test_users_rotate_their_own(self, server):
        key = new_user(server, "ann", allow(["iam:*AccessKey*"], "arn:aws:iam::*:user/${aws:username}"))
        own = client(server, "iam", key)
        second = own.create_access_key()["AccessKey"]
        assert {shown["AccessKeyId"] for shown in own.list_access_keys()["AccessKeyMetadata"]} == {
            key[0],
            second["AccessKeyId"],
        }
        client(server, "iam").create_user(UserName="bob")
        assert code_of(own.create_access_key, UserName="bob") == "AccessDenied"
        own.delete_access_key(AccessKeyId=key[0])

    def test_without_a_master_key(self, make_server):
        iam = client(make_server("--durability", "none"), "iam")
        iam.create_user(UserName="ann")
        code, status, message = error_of(iam.create_access_key, UserName="ann")
        assert (code, status) == ("NotImplemented", 501) and "slipway master-key new" in message
        assert iam.list_access_keys(UserName="ann")["AccessKeyMetadata"] == []


class TestRights:
    """What policies, of every place that may have them, allow on S3."""

    def test_inline_attached_and_by_group(self, server, iam, account):
        key = new_user(server, "ann")
        s3, root = client(server, "s3", key), client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="x", Body=b"1")

        def may() -> set[str]:
            allowed = set()
            for name, call in {
                "get": lambda: s3.get_object(Bucket="lab", Key="x"),
                "put": lambda: s3.put_object(Bucket="lab", Key="y", Body=b""),
                "list": lambda: s3.list_objects_v2(Bucket="lab"),
            }.items():
                try:
                    call()
                    allowed.add(name)
                except s3.exceptions.ClientError as error:
                    assert error.response["Error"]["Code"] == "AccessDenied", error
            return allowed

        assert may() == set()
        iam.put_user_policy(
            UserName="ann", PolicyName="p", PolicyDocument=policy(allow("s3:GetObject", "arn:aws:s3:::lab/*"))
        )
        assert may() == {"get"}
        arn = iam.create_policy(
            PolicyName="list", PolicyDocument=policy(allow("s3:ListBucket", "arn:aws:s3:::lab"))
        )["Policy"]["Arn"]
        iam.attach_user_policy(UserName="ann", PolicyArn=arn)
        assert may() == {"get", "list"}
        iam.create_group(GroupName="writers")
        iam.put_group_policy(
            GroupName="writers", PolicyName="w", PolicyDocument=policy(allow("s3:PutObject"))
        )
        assert may() == {"get", "list"}
        iam.add_user_to_group(GroupName="writers", UserName="ann")
        assert may() == {"get", "list", "put"}
        iam.attach_group_policy(GroupName="writers", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
        iam.put_user_permissions_boundary(UserName="ann", PermissionsBoundary=arn)
        assert may() == {"list"}
        iam.delete_user_permissions_boundary(UserName="ann")
        iam.put_user_policy(UserName="ann", PolicyName="no", PolicyDocument=policy(deny("s3:Get*")))
        assert may() == {"list", "put"}
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=policy(deny("s3:Put*")), SetAsDefault=True)
        assert may() == {"list"}
        versions = iam.list_policy_versions(PolicyArn=arn)["Versions"]
        assert [(version["VersionId"], version["IsDefaultVersion"]) for version in versions] == [
            ("v2", True),
            ("v1", False),
        ]

    def test_documents_that_are_none(self, iam):
        iam.create_user(UserName="ann")
        for text in (
            "{}",
            policy(allow("s3:NoSuchAction")),
            policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Principal": "*"}),
            policy(allow("s3:*", Condition={"StringEqual": {"aws:username": "a"}})),
        ):
            put = {"UserName": "ann", "PolicyName": "p", "PolicyDocument": text}
            code, _, message = error_of(iam.put_user_policy, **put)
            assert code == "MalformedPolicyDocument", text
            assert (
                "NoSuchAction" not in text
                or 'at Statement[0].Action: there is no action "s3:NoSuch' in message
            )
            assert (
                code_of(iam.create_policy, PolicyName="p", PolicyDocument=text) == "MalformedPolicyDocument"
            )
        assert iam.list_user_policies(UserName="ann")["PolicyNames"] == []

    def test_who_renames_may_have_both_names(self, server, iam):
        """Or somebody could become the user that a policy names."""
        iam.create_user(UserName="victim", Path="/staff/")
        iam.create_group(GroupName="admins")
        right = allow(
            ["iam:UpdateUser", "iam:UpdateGroup"], ["arn:aws:iam::*:user/dev/*", "arn:aws:iam::*:group/dev/*"]
        )
        key = new_user(server, "clerk", right)
        iam.create_user(UserName="mine", Path="/dev/")
        iam.create_group(GroupName="ours", Path="/dev/")
        own = client(server, "iam", key)
        own.update_user(UserName="mine", NewUserName="mine-2")
        own.update_group(GroupName="ours", NewGroupName="ours-2")
        assert code_of(own.update_user, UserName="victim", NewPath="/dev/") == "AccessDenied"
        assert code_of(own.update_user, UserName="mine-2", NewPath="/staff/") == "AccessDenied"
        assert code_of(own.update_user, UserName="mine-2", NewPath="/") == "AccessDenied"
        assert code_of(own.update_group, GroupName="ours-2", NewPath="/") == "AccessDenied"

    @pytest.mark.parametrize("kind", ["user", "role"])
    def test_conditions_on_boundary_and_tags(self, server, iam, kind):
        """Who delegates by a boundary relies on it in each action on an entity's policies and keys."""
        limit = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
        member = f"{kind.title()}Name"
        make = getattr(iam, f"create_{kind}")
        trust = policy({"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sts:*"})
        rest = {"AssumeRolePolicyDocument": trust} if kind == "role" else {}
        make(**{member: "limited"}, PermissionsBoundary=limit, **rest)
        make(**{member: "locked"}, Tags=[{"Key": "Team", "Value": "ops"}], **rest)
        make(**{member: "free"}, **rest)
        key = new_user(
            server,
            "clerk",
            allow("iam:*"),
            deny("iam:*", Condition={"StringEquals": {"aws:ResourceTag/Team": "ops"}}),
            deny("iam:*Policy", Condition={"StringEquals": {"iam:PermissionsBoundary": limit}}),
            deny("iam:Attach*", Condition={"ArnLike": {"iam:PolicyARN": "arn:aws:iam::aws:policy/Admin*"}}),
        )
        own = client(server, "iam", key)
        text = policy(allow("s3:*"))
        calls = {
            f"put_{kind}_policy": {"PolicyName": "p", "PolicyDocument": text},
            f"delete_{kind}_policy": {"PolicyName": "p"},
            f"attach_{kind}_policy": {"PolicyArn": limit},
            f"detach_{kind}_policy": {"PolicyArn": limit},
        }
        for name, members in calls.items():
            getattr(own, name)(**{member: "free"}, **members)
            for target in ("limited", "locked"):
                assert code_of(getattr(own, name), **{member: target}, **members) == "AccessDenied", name
        admin = "arn:aws:iam::aws:policy/AdministratorAccess"
        assert (
            code_of(getattr(own, f"attach_{kind}_policy"), **{member: "free"}, PolicyArn=admin)
            == "AccessDenied"
        )
        if kind == "user":
            own.create_access_key(UserName="free")
            assert code_of(own.create_access_key, UserName="locked") == "AccessDenied"
            locked = new_key(server, "locked")[0]
            assert code_of(own.delete_access_key, UserName="locked", AccessKeyId=locked) == "AccessDenied"
            assert code_of(own.get_access_key_last_used, AccessKeyId=locked) == "AccessDenied"
            for list_something in ("list_access_keys", "list_groups_for_user", "list_mfa_devices"):
                assert code_of(getattr(own, list_something), UserName="locked") == "AccessDenied"

    def test_a_shared_bucket(self, server, account):
        """The bucket's policy names users; each sees what it may."""
        ann, bob = new_user(server, "ann"), new_user(server, "bob")
        root = client(server, "s3")
        root.create_bucket(Bucket="shared")
        arn = "arn:aws:s3:::shared"
        everything = {"Principal": {"AWS": f"arn:aws:iam::{account}:user/ann"}}
        reading = {"Principal": {"AWS": f"arn:aws:iam::{account}:user/bob"}}
        root.put_bucket_policy(
            Bucket="shared",
            Policy=policy(
                allow("s3:*", [arn, f"{arn}/*"], **everything),
                allow("s3:GetObject", f"{arn}/public/*", **reading),
            ),
        )
        for_ann, for_bob = client(server, "s3", ann), client(server, "s3", bob)
        for key in ("public/a", "private/a"):
            for_ann.put_object(Bucket="shared", Key=key, Body=key.encode())
        assert for_bob.get_object(Bucket="shared", Key="public/a")["Body"].read() == b"public/a"
        assert code_of(for_bob.get_object, Bucket="shared", Key="private/a") == "AccessDenied"
        assert code_of(for_bob.put_object, Bucket="shared", Key="public/b", Body=b"") == "AccessDenied"
        source = {"Bucket": "shared", "Key": "private/a"}
        copy = {"Bucket": "shared", "Key": "public/c", "CopySource": source}
        assert code_of(for_bob.copy_object, **copy) == "AccessDenied"


class TestSessions:
    TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole"}

    def test_a_role(self, server, iam, account):
        ann = new_user(server, "ann")
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="x", Body=b"1")
        trust = policy(self.TRUST | {"Principal": {"AWS": f"arn:aws:iam::{account}:user/ann"}})
        role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]
        iam.attach_role_policy(RoleName="reader", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
        sts = client(server, "sts", ann)
        asked = {"RoleArn": role["Arn"], "RoleSessionName": "s1"}
        answer = sts.assume_role(**asked, Policy=policy(allow("s3:GetObject")))
        assert answer["AssumedRoleUser"] == {
            "AssumedRoleId": f"{role['RoleId']}:s1",
            "Arn": f"arn:aws:sts::{account}:assumed-role/reader/s1",
        }
        key = key_of(answer["Credentials"])
        s3 = client(server, "s3", key)
        assert s3.get_object(Bucket="lab", Key="x")["Body"].read() == b"1"
        # Less than the role may, as the session's policy says.
        assert code_of(s3.put_object, Bucket="lab", Key="y", Body=b"") == "AccessDenied"
        assert client(server, "sts", key).get_caller_identity()["Arn"] == answer["AssumedRoleUser"]["Arn"]
        # The key is nothing without its token, nor with another one's.
        other = key_of(sts.assume_role(**asked)["Credentials"])
        for wrong in ((key[0], key[1], None), (key[0], key[1], other[2]), (key[0], other[1], key[2])):
            assert code_of(client(server, "s3", wrong).get_object, Bucket="lab", Key="x") in (
                "InvalidAccessKeyId",
                "InvalidToken",
                "SignatureDoesNotMatch",
            )
        # A trust policy that changed stops new sessions; a role that is gone ends all of them.
        iam.update_assume_role_policy(
            RoleName="reader",
            PolicyDocument=policy(self.TRUST | {"Principal": {"AWS": account}, "Effect": "Deny"}),
        )
        assert code_of(sts.assume_role, **asked) == "AccessDenied"
        s3.get_object(Bucket="lab", Key="x")
        iam.detach_role_policy(RoleName="reader", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
        assert code_of(s3.get_object, Bucket="lab", Key="x") == "AccessDenied"
        iam.delete_role(RoleName="reader")
        assert code_of(s3.get_object, Bucket="lab", Key="x") == "InvalidAccessKeyId"
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)
        assert code_of(s3.get_object, Bucket="lab", Key="x") == "InvalidAccessKeyId"

    def test_who_may_not(self, server, iam, account):
        ann, bob = new_user(server, "ann"), new_user(server, "bob", allow("sts:AssumeRole"))
        conditions = {"StringEquals": {"sts:ExternalId": "4711"}}
        trust = self.TRUST | {
            "Principal": {"AWS": f"arn:aws:iam::{account}:user/ann"},
            "Condition": conditions,
        }
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=policy(trust))
        asked = {"RoleArn": f"arn:aws:iam::{account}:role/reader", "RoleSessionName": "s1"}
        assert code_of(client(server, "sts", bob).assume_role, **asked, ExternalId="4711") == "AccessDenied"
        sts = client(server, "sts", ann)
        assert code_of(sts.assume_role, **asked) == "AccessDenied"
        assert code_of(sts.assume_role, **asked, ExternalId="4712") == "AccessDenied"
        sts.assume_role(**asked, ExternalId="4711")
        assert code_of(client(server, "sts").assume_role, **asked, ExternalId="4711") == "AccessDenied"
        for arn in (f"arn:aws:iam::{account}:role/none", "arn:aws:iam::000000000000:role/reader"):
            assert code_of(sts.assume_role, RoleArn=arn, RoleSessionName="s1") == "AccessDenied"
        too_long = sts.assume_role, {**asked, "ExternalId": "4711", "DurationSeconds": 7200}
        assert code_of(too_long[0], **too_long[1]) == "ValidationError"
        tags = {"Tags": [{"Key": "team", "Value": "a"}]}
        assert code_of(sts.assume_role, **asked, **tags, ExternalId="4711") == "AccessDenied"

    def test_a_source_identity_goes_on(self, server, iam, account):
        """Each role of a chain has to allow it, and may deny it."""
        ann = new_user(server, "ann")
        by_ann = {"AWS": f"arn:aws:iam::{account}:user/ann"}
        setting = {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:SetSourceIdentity"]}
        iam.create_role(RoleName="first", AssumeRolePolicyDocument=policy(setting | {"Principal": by_ann}))
        of_first = {"AWS": f"arn:aws:iam::{account}:role/first"}
        denied = deny("sts:AssumeRole", Condition={"StringEquals": {"sts:SourceIdentity": "Alice"}})
        denied = {name: value for name, value in denied.items() if name != "Resource"} | {
            "Principal": of_first
        }
        for name, statements in {
            "without": [self.TRUST | {"Principal": of_first}],
            "with": [setting | {"Principal": of_first}],
            "denying": [setting | {"Principal": of_first}, denied],
        }.items():
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(*statements))
        sts = client(server, "sts", ann)

        def assume(sts, role: str, **members):
            return sts.assume_role(
                RoleArn=f"arn:aws:iam::{account}:role/{role}", RoleSessionName="s1", **members
            )

        plain = client(server, "sts", key_of(assume(sts, "first")["Credentials"]))
        assume(plain, "without")
        first = assume(sts, "first", SourceIdentity="Alice")
        assert first["SourceIdentity"] == "Alice"
        chained = client(server, "sts", key_of(first["Credentials"]))
        assert code_of(assume, chained, "without") == "AccessDenied"
        assert code_of(assume, chained, "denying") == "AccessDenied"
        assert assume(chained, "with")["SourceIdentity"] == "Alice"
        assert code_of(assume, chained, "with", SourceIdentity="Bob") == "AccessDenied"

    def test_session_and_federation_tokens(self, server, iam):
        key = new_user(server, "ann", allow(["s3:ListAllMyBuckets", "sts:GetFederationToken", "iam:*"]))
        sts = client(server, "sts", key)
        session = key_of(sts.get_session_token()["Credentials"])
        client(server, "s3", session).list_buckets()
        # Nothing of IAM, and no sessions for others.
        assert code_of(client(server, "iam", session).list_users) == "InvalidClientTokenId"
        assert code_of(client(server, "sts", session).get_session_token) == "InvalidClientTokenId"
        federated = sts.get_federation_token(Name="eve", Policy=policy(allow("s3:ListAllMyBuckets")))
        assert federated["FederatedUser"]["Arn"].endswith(":federated-user/eve")
        client(server, "s3", key_of(federated["Credentials"])).list_buckets()
        without = key_of(sts.get_federation_token(Name="eve")["Credentials"])
        assert code_of(client(server, "s3", without).list_buckets) == "AccessDenied"
        # They end with the key that asked for them.
        iam.update_access_key(UserName="ann", AccessKeyId=key[0], Status="Inactive")
        for ended in (session, key_of(federated["Credentials"])):
            assert code_of(client(server, "s3", ended).list_buckets) == "InvalidAccessKeyId"
