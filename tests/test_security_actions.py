"""Rights that are none: actions under the name of another one, who may administer a part, and policies in disguise."""

from urllib.parse import quote, urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from test_iam_refusals import MEMBERS, SERVED, members_of, refused

from support.actions import actions
from support.identities import allow, code_of, deny, error_of, policy
from support.intruders import Who, bucket, role, root, unused, user

BUILT_IN = "arn:aws:iam::aws:policy/"
# What our own actions must be told.
ACCOUNT = {"AccountId": "111122223333"}
PROVIDER = "arn:aws:iam::111122223333:oidc-provider/idp.lab"
OURS = {
    "CreateAccount": {"AccountName": "more"},
    "GetAccount": ACCOUNT,
    "UpdateAccount": ACCOUNT | {"Status": "Disabled"},
    "DeleteAccount": ACCOUNT,
    "CreateRootAccessKey": ACCOUNT,
    "ListRootAccessKeys": ACCOUNT,
    "DeleteRootAccessKey": ACCOUNT | {"AccessKeyId": "AKIAIOSFODNN7EXAMPLE"},
    "SetDisabled": {"UserName": "ann", "Disabled": "true"},
    "SetOpenIDConnectProviderClaims": {"OpenIDConnectProviderArn": PROVIDER},
    "GetOpenIDConnectProviderClaims": {"OpenIDConnectProviderArn": PROVIDER},
    "SetBucketOwner": ACCOUNT | {"BucketName": "data"},
    "SetPosixIdentity": {"UserName": "ann", "Identity": "12101:12101"},
    "SetGroupOfDirectory": {"GroupName": "staff", "DirectoryGroup": "cn=staff,dc=lab"},
}
SHUT = policy({"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sts:*"})


def with_policy(server, name: str) -> Who:
    """A user with a built-in policy."""
    who = user(server)
    root(server).iam.attach_user_policy(UserName=who.name, PolicyArn=BUILT_IN + name)
    return who


class TestNamesOfActions:
    """A right counts for the action of its name, and for no other."""

    @pytest.fixture
    def members(self, guarded) -> dict:
        there = user(guarded)
        arn = role(guarded, there.arn)
        provider = f"{arn.partition(':role/')[0]}:oidc-provider/idp.lab"
        named = {"UserName": there.name, "RoleName": arn.rpartition("/")[2], "RoleArn": arn}
        named |= {"OpenIDConnectProviderArn": provider, "PolicySourceArn": there.arn}
        return MEMBERS | named

    @pytest.mark.parametrize(
        "name", ["IAMReadOnlyAccess", "AmazonS3FullAccess", "AmazonS3ReadOnlyAccess", "slipway/OwnBuckets"]
    )
    def test_whoever_reads_changes_nothing(self, guarded, members, name):
        who = with_policy(guarded, name)
        changes = [action for action in SERVED if action.effect == "changes" or "IAM" not in name]
        assert len(changes) > 40
        for action in changes:
            sent = members_of(action, members)
            assert refused(guarded, action, who.key, sent) == ("AccessDenied", 403), action.name

    def test_whoever_administers_identities_has_no_objects(self, guarded):
        lab = bucket(guarded, x=b"1")
        who = with_policy(guarded, "IAMFullAccess")
        for call, sent in (
            (who.s3.get_object, {"Key": "x"}),
            (who.s3.put_object, {"Key": "y", "Body": b""}),
            (who.s3.delete_object, {"Key": "x"}),
            (who.s3.list_objects_v2, {}),
            (who.s3.put_bucket_policy, {"Policy": "{}"}),
            (who.s3.delete_bucket, {}),
        ):
            assert code_of(call, Bucket=lab, **sent) == "AccessDenied"

    SIBLINGS = {
        "get_object": ("s3:GetObject", {"Key": "x"}),
        "head_object": ("s3:GetObject", {"Key": "x"}),
        "get_object_acl": ("s3:GetObjectAcl", {"Key": "x"}),
        "get_object_attributes": ("s3:GetObjectAttributes", {"Key": "x", "ObjectAttributes": ["ETag"]}),
        "put_object": ("s3:PutObject", {"Key": "y", "Body": b""}),
        "create_multipart_upload": ("s3:PutObject", {"Key": "y"}),
        "delete_object": ("s3:DeleteObject", {"Key": "y"}),
        "list_objects": ("s3:ListBucket", {}),
        "list_objects_v2": ("s3:ListBucket", {}),
        "list_object_versions": ("s3:ListBucketVersions", {}),
        "list_multipart_uploads": ("s3:ListBucketMultipartUploads", {}),
        "head_bucket": ("s3:ListBucket", {}),
        "get_bucket_location": ("s3:GetBucketLocation", {}),
        "get_bucket_policy": ("s3:GetBucketPolicy", {}),
        "get_bucket_policy_status": ("s3:GetBucketPolicyStatus", {}),
        "put_bucket_policy": ("s3:PutBucketPolicy", {"Policy": "{}"}),
        "delete_bucket_policy": ("s3:DeleteBucketPolicy", {}),
        "delete_bucket": ("s3:DeleteBucket", {}),
    }

    def test_siblings_on_buckets_and_objects(self, guarded):
        """Whoever has all rights on a bucket but one is refused what needs this one."""
        lab = bucket(guarded, x=b"1")
        who = user(guarded, allow("s3:*"))
        for name, (action, sent) in self.SIBLINGS.items():
            text = policy(allow("*"), deny(action))
            root(guarded).iam.put_user_policy(UserName=who.name, PolicyName="own", PolicyDocument=text)
            assert code_of(getattr(who.s3, name), Bucket=lab, **sent) in ("AccessDenied", "403"), name
        assert (guarded.tree / lab / "x").read_bytes() == b"1"

    @pytest.mark.parametrize("action", [a for a in actions() if a.permission == "administrator"], ids=str)
    def test_our_own_actions_are_roots(self, guarded, action):
        """An administrator by policy is not root. Those that are not built yet are refused to all."""
        who = with_policy(guarded, "AdministratorAccess")
        sent = urlencode({"Action": action.name, "Version": action.version} | OURS.get(action.name, {}))
        answer = post(who, sent)
        status, code = (501, "NotImplemented") if action.state == "later" else (403, "AccessDenied")
        assert answer.status == status and f"<Code>{code}</Code>".encode() in answer.body, answer.body

    def test_few_actions_are_served_without_a_permission(self):
        """Each of these is decided by something else, which its own tests have."""
        served = [a.name for a in actions() if a.permission == "unasked" and a.state != "refused"]
        assert served == ["GetCallerIdentity", "GetSessionToken", "AssumeRoleWithLDAPIdentity"]

    def test_names_are_exact(self, guarded):
        """No other spelling is an action, so that none passes by a policy that names it."""
        for sent in (
            *(
                "listusers",
                "LISTUSERS",
                "ListUsers%20",
                "%20ListUsers",
                "iam:ListUsers",
                "List%00Users",
                "*",
                "",
            ),
            *("ListUsers/../CreateUser", "ListUsers&Action=CreateUser", quote("ListUser\u017f")),
            *(quote("L\u0456stUsers"), quote("ListUsers\u200b")),
        ):
            answer = post(root(guarded), f"Action={sent}&Version=2010-05-08")
            codes = (b"InvalidAction", b"ValidationError", b"MissingAction")
            assert answer.status == 400 and any(code in answer.body for code in codes), (sent, answer.body)

    def test_of_another_service(self, guarded):
        for action, version in (("ListUsers", "2011-06-15"), ("GetCallerIdentity", "2010-05-08")):
            answer = post(root(guarded), f"Action={action}&Version={version}")
            assert answer.status == 400 and b"<Code>InvalidAction</Code>" in answer.body

    def test_of_policies_have_no_case(self, guarded):
        """A denial in lower case counts as AWS has it."""
        lab = bucket(guarded, x=b"1")
        who = user(guarded, allow("*"), deny(["s3:getobject", "IAM:listUSERS"]))
        assert code_of(who.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"
        assert code_of(who.iam.list_users) == "AccessDenied"


def post(who: Who, form: str, service: str = "iam"):
    """Sends a form as it stands."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    request = AWSRequest("POST", who.server.endpoint + "/", headers=headers, data=form.encode())
    SigV4Auth(Credentials(*who.key), service, "us-east-1").add_auth(request)
    return who.server.raw.post("/", form.encode(), headers=dict(request.headers), anonymous=True)


class TestDelegatedAdministrators:
    """Whoever may make users only with a boundary makes nobody without it, and does not become more itself."""

    @pytest.fixture
    def limit(self, guarded) -> str:
        text = policy(allow("s3:GetObject"))
        made = root(guarded).iam.create_policy(PolicyName=unused("limit"), PolicyDocument=text)
        return made["Policy"]["Arn"]

    @pytest.fixture
    def clerk(self, guarded, limit) -> Who:
        """As "Delegating responsibility to others using permissions boundaries" of the IAM User Guide has it."""
        limited = {"StringEquals": {"iam:PermissionsBoundary": limit}}
        changing = [
            *("iam:CreateUser", "iam:PutUserPolicy", "iam:DeleteUserPolicy", "iam:AttachUserPolicy"),
            *(
                "iam:DetachUserPolicy",
                "iam:PutUserPermissionsBoundary",
                "iam:CreateRole",
                "iam:PutRolePolicy",
            ),
            *("iam:AttachRolePolicy", "iam:PutRolePermissionsBoundary"),
        ]
        removing = ["iam:DeleteUserPermissionsBoundary", "iam:DeleteRolePermissionsBoundary"]
        of_limit = ["iam:CreatePolicyVersion", "iam:DeletePolicy*", "iam:SetDefaultPolicyVersion"]
        return user(
            guarded,
            allow(changing, Condition=limited),
            allow(["iam:CreateAccessKey", "iam:GetUser", "iam:CreatePolicy", *of_limit, *removing]),
            deny(of_limit, limit),
            deny(removing),
        )

    def test_makes_users_with_the_boundary_alone(self, guarded, clerk, limit):
        name = unused("made")
        for boundary in ({}, {"PermissionsBoundary": BUILT_IN + "AdministratorAccess"}):
            assert code_of(clerk.iam.create_user, UserName=name, **boundary) == "AccessDenied"
            sent = {"RoleName": name, "AssumeRolePolicyDocument": SHUT, **boundary}
            assert code_of(clerk.iam.create_role, **sent) == "AccessDenied"
        clerk.iam.create_user(UserName=name, PermissionsBoundary=limit)
        all_rights = policy(allow("*"))
        clerk.iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=all_rights)
        made = clerk.iam.create_access_key(UserName=name)["AccessKey"]
        who = Who(guarded, name, "", (made["AccessKeyId"], made["SecretAccessKey"], None))
        lab = bucket(guarded, x=b"1")
        who.s3.get_object(Bucket=lab, Key="x")
        assert code_of(who.s3.put_object, Bucket=lab, Key="x", Body=b"") == "AccessDenied"
        assert code_of(who.iam.delete_user_permissions_boundary, UserName=name) == "AccessDenied"

    def test_takes_no_boundary_off(self, clerk, limit):
        name = unused("made")
        clerk.iam.create_user(UserName=name, PermissionsBoundary=limit)
        wide = {"PermissionsBoundary": BUILT_IN + "AdministratorAccess"}
        assert code_of(clerk.iam.put_user_permissions_boundary, UserName=name, **wide) == "AccessDenied"
        assert code_of(clerk.iam.delete_user_permissions_boundary, UserName=name) == "AccessDenied"
        version = {"PolicyDocument": policy(allow("*")), "SetAsDefault": True}
        assert code_of(clerk.iam.create_policy_version, PolicyArn=limit, **version) == "AccessDenied"
        assert code_of(clerk.iam.delete_policy, PolicyArn=limit) == "AccessDenied"

    def test_gives_nobody_else_more(self, guarded, clerk):
        """Neither itself nor another user without the boundary, nor a role."""
        other, arn = user(guarded), role(guarded, clerk.arn)
        text = {"PolicyName": "p", "PolicyDocument": policy(allow("*"))}
        managed = {"PolicyArn": BUILT_IN + "AdministratorAccess"}
        for name in (clerk.name, other.name):
            assert code_of(clerk.iam.put_user_policy, UserName=name, **text) == "AccessDenied"
            assert code_of(clerk.iam.attach_user_policy, UserName=name, **managed) == "AccessDenied"
        of_role = {"RoleName": arn.rpartition("/")[2]}
        assert code_of(clerk.iam.put_role_policy, **of_role, **text) == "AccessDenied"
        assert code_of(clerk.iam.attach_role_policy, **of_role, **managed) == "AccessDenied"
        assert code_of(clerk.iam.update_assume_role_policy, **of_role, PolicyDocument=SHUT) == "AccessDenied"

    def test_own_names_lead_to_nobody_else(self, guarded):
        """A right for what has the user's own name: other case, paths and patterns of names."""
        own = "arn:aws:iam::*:user/${aws:username}"
        who, other = user(guarded, allow("iam:*", own)), user(guarded, Path="/staff/")
        who.iam.get_user()
        who.iam.get_user(UserName=who.name.upper())
        for name in (other.name, other.name.upper(), f"{who.name}*", f"{who.name}/../{other.name}", "*", "?"):
            for call in (who.iam.get_user, who.iam.create_access_key, who.iam.list_access_keys):
                assert code_of(call, UserName=name) in ("AccessDenied", "ValidationError"), name
        for name in ("*", "${aws:username}", "a/b", "a\u0430", "a\u200bb", "a:b", "a\n", "\u212aelvin"):
            assert code_of(root(guarded).iam.create_user, UserName=name) == "ValidationError", name


class TestDocuments:
    """Policies that mean something else than they seem to."""

    @pytest.mark.parametrize(
        "text",
        [
            '{"Statement":{"Effect":"Deny","Effect":"Allow","Action":"s3:*","Resource":"*"}}',
            '{"Statement":[],"Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"true"},"Bool":{"aws:SecureTransport":"false"}}}}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*","condition":{}}}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*","Conditions":{"Null":{"aws:userid":"true"}}}}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","NotAction":"s3:Get*","Resource":"*"}}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*","NotResource":"arn:aws:s3:::a"}}',
            '{"Statement":{"Effect":"allow","Action":"s3:*","Resource":"*"}}',
            '{"Statement":{"Effect":"Allow ","Action":"s3:*","Resource":"*"}}',
            '{"Statement":{"Effect":"Allow","Action":"s3\\u200b:*","Resource":"*"}}',
            '{"Statement":{"Effect":"Allow","Action":"\\u0455 3:*","Resource":"*"}}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::a/${nobody}"},"Version":"2012-10-17"}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"},"Version":"2012-10-18"}',
            '{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}{"Statement":[]}',
            '\ufeff{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}',
        ],
    )
    def test_that_two_readers_read_differently(self, guarded, text):
        if '"Version"' not in text:
            text = text.replace("{", '{"Version":"2012-10-17",', 1)
        who = user(guarded)
        sent = {"UserName": who.name, "PolicyName": "p", "PolicyDocument": text}
        code, status, _ = error_of(root(guarded).iam.put_user_policy, **sent)
        assert (code, status) in (("MalformedPolicyDocument", 400), ("ValidationError", 400))
        assert root(guarded).iam.list_user_policies(UserName=who.name)["PolicyNames"] == []

    def test_escapes_are_what_they_stand_for(self, guarded):
        """A name in escapes of JSON is that name."""
        lab = bucket(guarded, x=b"1")
        who = user(guarded, allow("s3:*"))
        text = policy(deny("s3:GetObject")).replace("Deny", "\\u0044eny")
        root(guarded).iam.put_user_policy(UserName=who.name, PolicyName="p", PolicyDocument=text)
        assert code_of(who.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"

    def test_too_deep_and_too_large(self, guarded):
        who = user(guarded)
        for text in ("[" * 3_000, '{"Statement":' * 1_000, policy(allow(["s3:GetObject"] * 400))):
            sent = {"UserName": who.name, "PolicyName": "p", "PolicyDocument": text}
            code = code_of(root(guarded).iam.put_user_policy, **sent)
            assert code in ("MalformedPolicyDocument", "LimitExceeded")
