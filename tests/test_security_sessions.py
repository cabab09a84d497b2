"""Attacks by sessions: more than their role, more than their user, and tokens that were not given out for them."""

import base64
import json
import re
import zlib
from dataclasses import replace
from email.utils import parsedate_to_datetime

import pytest

from support import expect
from support.identities import allow, client, code_of, deny, error_of, key_of, master_key, policy
from support.intruders import Who, assume, bucket, everything_in, role, root, unused, user
from support.sigv4 import Signer

ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
READ_ONLY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"


@pytest.fixture
def lab(guarded) -> str:
    """A bucket with an object."""
    return bucket(guarded, x=b"1")


class TestMoreThanTheRole:
    """A session has what its role has, or less."""

    @pytest.fixture
    def reader(self, guarded, lab) -> tuple[Who, str]:
        """A user, and a role that reads, which the user may assume."""
        ann = user(guarded)
        return ann, role(guarded, ann.arn, allow("s3:GetObject", f"arn:aws:s3:::{lab}/*"))

    @pytest.mark.parametrize(
        "limit",
        [
            {"Policy": policy(allow("*"))},
            {"PolicyArns": [{"arn": ADMINISTRATOR}]},
            {"Policy": policy(allow("*")), "PolicyArns": [{"arn": ADMINISTRATOR}]},
        ],
        ids=["inline", "managed", "both"],
    )
    def test_a_session_policy_adds_nothing(self, reader, lab, limit):
        ann, arn = reader
        session = assume(ann, arn, **limit)
        session.s3.get_object(Bucket=lab, Key="x")
        assert code_of(session.s3.put_object, Bucket=lab, Key="x", Body=b"2") == "AccessDenied"
        assert code_of(session.s3.list_objects_v2, Bucket=lab) == "AccessDenied"
        assert code_of(session.iam.list_users) == "AccessDenied"

    def test_a_session_policy_that_only_denies_allows_nothing(self, reader, lab):
        ann, arn = reader
        session = assume(ann, arn, Policy=policy(deny("s3:PutObject")))
        assert code_of(session.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"

    def test_a_session_policy_limits_what_the_bucket_gives_to_the_role(self, guarded, lab):
        """But not what it gives to that very session (as AWS documents it)."""
        ann = user(guarded)
        arn = role(guarded, ann.arn)
        name = arn.rpartition("/")[2]
        of_session = f"arn:aws:sts::{guarded.account}:assumed-role/{name}/named"
        grants = [
            everything_in(lab) | {"Principal": {"AWS": arn}},
            allow("s3:DeleteObject", f"arn:aws:s3:::{lab}/*", Principal={"AWS": of_session}),
        ]
        root(guarded).s3.put_bucket_policy(Bucket=lab, Policy=policy(*grants))
        limit = policy(allow("s3:GetObject"))
        limited, named = (assume(ann, arn, RoleSessionName=name, Policy=limit) for name in ("other", "named"))
        for session in (limited, named):
            session.s3.get_object(Bucket=lab, Key="x")
            assert code_of(session.s3.put_object, Bucket=lab, Key="x", Body=b"2") == "AccessDenied"
        assert code_of(limited.s3.delete_object, Bucket=lab, Key="x") == "AccessDenied"
        named.s3.delete_object(Bucket=lab, Key="x")

    def test_a_boundary_limits_each_session(self, guarded, lab):
        ann = user(guarded)
        arn = role(guarded, ann.arn, allow("*"), PermissionsBoundary=READ_ONLY)
        session = assume(ann, arn, PolicyArns=[{"arn": ADMINISTRATOR}])
        session.s3.get_object(Bucket=lab, Key="x")
        assert code_of(session.s3.put_object, Bucket=lab, Key="x", Body=b"2") == "AccessDenied"
        name = arn.rpartition("/")[2]
        for call, members in (
            (session.iam.delete_role_permissions_boundary, {}),
            (session.iam.put_role_permissions_boundary, {"PermissionsBoundary": ADMINISTRATOR}),
            (session.iam.put_role_policy, {"PolicyName": "p", "PolicyDocument": policy(allow("*"))}),
        ):
            assert code_of(call, RoleName=name, **members) == "AccessDenied"

    def test_nothing_of_who_assumed_it_comes_along(self, guarded, lab):
        """The user may do everything, its session of a role without rights nothing."""
        ann = user(guarded, allow("*"))
        session = assume(ann, role(guarded, ann.arn))
        assert code_of(session.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"
        assert code_of(session.iam.list_users) == "AccessDenied"

    def test_a_limited_session_takes_on_no_other_role(self, guarded, lab):
        """The second role would have no limit. Only a trust policy that names that very session is above it."""
        ann = user(guarded)
        first = role(guarded, ann.arn)
        name = first.rpartition("/")[2]
        second = role(guarded, first, allow("*"))
        limit = policy(allow("s3:GetObject"))
        limited = assume(ann, first, Policy=limit)
        assert code_of(limited.sts.assume_role, RoleArn=second, RoleSessionName="s1") == "AccessDenied"
        assume(assume(ann, first), second)
        third = role(guarded, f"arn:aws:sts::{guarded.account}:assumed-role/{name}/named")
        assume(assume(ann, first, RoleSessionName="named", Policy=limit), third)
        assert code_of(limited.sts.assume_role, RoleArn=third, RoleSessionName="s1") == "AccessDenied"

    def test_a_limit_that_is_gone_allows_nothing(self, guarded, lab):
        """The only policy of a session was deleted, or a group's or user's was: nothing is unlimited by that."""
        iam = root(guarded).iam
        limit = iam.create_policy(PolicyName=unused("limit"), PolicyDocument=policy(allow("s3:GetObject")))
        limit = limit["Policy"]["Arn"]
        ann = user(guarded)
        session = assume(ann, role(guarded, ann.arn, allow("*")), PolicyArns=[{"arn": limit}])
        session.s3.get_object(Bucket=lab, Key="x")
        iam.delete_policy(PolicyArn=limit)
        assert code_of(session.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"
        # One that is the boundary of somebody stays.
        limit = iam.create_policy(PolicyName=unused("limit"), PolicyDocument=policy(allow("s3:GetObject")))
        limit = limit["Policy"]["Arn"]
        user(guarded, PermissionsBoundary=limit)
        assert code_of(iam.delete_policy, PolicyArn=limit) == "DeleteConflict"

    def test_a_role_for_the_account_is_not_for_all_of_it(self, guarded):
        """Who is in the account needs the right to assume it besides."""
        arn = role(guarded, guarded.account, allow("*"))
        asked = {"RoleArn": arn, "RoleSessionName": "s1"}
        assert code_of(user(guarded, allow("s3:*")).sts.assume_role, **asked) == "AccessDenied"
        assert (
            code_of(user(guarded, allow("sts:AssumeRole", arn + "x")).sts.assume_role, **asked)
            == "AccessDenied"
        )
        assume(user(guarded, allow("sts:AssumeRole", arn)), arn)

    def test_sessions_do_not_prolong_themselves(self, guarded):
        ann = user(guarded, allow("sts:*"))
        first = role(guarded, ann.arn, allow("sts:*"), MaxSessionDuration=43_200)
        again = role(guarded, first, MaxSessionDuration=43_200)
        session = assume(ann, first, DurationSeconds=43_200)
        asked = {"RoleArn": again, "RoleSessionName": "s1"}
        assert code_of(session.sts.assume_role, **asked, DurationSeconds=3_601) == "ValidationError"
        assert code_of(session.sts.get_session_token) == "AccessDenied"
        assert code_of(session.sts.get_federation_token, Name="eve") == "AccessDenied"
        for seconds in (-1, 0, 899, 43_201, 2**31 - 1):
            refused = error_of(
                ann.sts.assume_role, RoleArn=first, RoleSessionName="s1", DurationSeconds=seconds
            )
            assert refused[:2] == ("ValidationError", 400)

    @pytest.mark.parametrize(
        "name", ["a/b", "a:b", "*", "${aws:username}", "..", "../x", "admin\u200b", "\u0430dmin", "a b"]
    )
    def test_the_name_of_a_session_is_one_word(self, reader, name):
        """Its ARN has it, and policies name sessions by ARN."""
        ann, arn = reader
        if name == "..":
            assert assume(ann, arn, RoleSessionName=name).arn.endswith("/..")
            return
        assert code_of(ann.sts.assume_role, RoleArn=arn, RoleSessionName=name) == "ValidationError"

    def test_an_arn_that_is_nearly_that_of_a_role(self, reader, guarded):
        """Neither case, wildcards, paths nor white space find a role. None of them is told from a missing one."""
        ann, arn = reader
        name = arn.rpartition("/")[2]
        for wrong in (
            arn.replace(name, name.upper()),
            arn.replace(name, "*"),
            arn.replace(name, "?" * len(name)),
            arn.replace(name, f"/{name}"),
            arn.replace(name, f"a/../{name}"),
            arn.replace(":role/", ":role/x/"),
            arn.replace("arn:aws:", "arn:aws-cn:"),
            arn.replace(guarded.account, "*"),
            arn.replace(guarded.account, ""),
            arn.replace("arn:", "ARN:"),
            arn + " ",
            arn + "\n",
        ):
            code = code_of(ann.sts.assume_role, RoleArn=wrong, RoleSessionName="s1")
            assert code in ("AccessDenied", "ValidationError"), wrong

    def test_a_session_makes_no_keys_of_root(self, guarded):
        """Without a name an action on keys is about who asks, which a session is not."""
        ann = user(guarded)
        session = assume(ann, role(guarded, ann.arn, allow("iam:*")))
        before = root(guarded).iam.list_access_keys()["AccessKeyMetadata"]
        assert code_of(session.iam.create_access_key) == "ValidationError"
        assert code_of(session.iam.list_access_keys) == "ValidationError"
        assert code_of(session.iam.create_access_key, UserName="root") == "NoSuchEntity"
        assert root(guarded).iam.list_access_keys()["AccessKeyMetadata"] == before


class TestTags:
    """Policies decide by the tags of sessions."""

    def test_need_their_own_right(self, guarded):
        ann = user(guarded, allow("sts:AssumeRole"))
        arn = role(guarded, ann.arn, actions="sts:AssumeRole")
        tags = [{"Key": "team", "Value": "ops"}]
        assert code_of(ann.sts.assume_role, RoleArn=arn, RoleSessionName="s1", Tags=tags) == "AccessDenied"
        bob = user(guarded, allow("sts:GetFederationToken"))
        assert code_of(bob.sts.get_federation_token, Name="eve", Tags=tags) == "AccessDenied"

    @pytest.mark.parametrize("key", ["KIND", "\u212aind", "\u212aIND"], ids=["capitals", "kelvin", "mixed"])
    def test_a_tag_of_the_role_is_not_taken_off(self, guarded, lab, key):
        """By one whose name is the same to some that compare without case, and another one to those that do not."""
        ann = user(guarded)
        decided = {"StringEquals": {"aws:PrincipalTag/kind": "guest"}}
        arn = role(
            guarded,
            ann.arn,
            allow("s3:*"),
            deny("s3:*", Condition=decided),
            Tags=[{"Key": "kind", "Value": "guest"}],
        )
        name = arn.rpartition("/")[2]
        trust = [
            {
                "Effect": "Allow",
                "Principal": {"AWS": ann.arn},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
            },
            {
                "Effect": "Deny",
                "Principal": {"AWS": ann.arn},
                "Action": "sts:TagSession",
                "Condition": {"Null": {"aws:RequestTag/kind": "false"}},
            },
        ]
        root(guarded).iam.update_assume_role_policy(RoleName=name, PolicyDocument=policy(*trust))
        assert code_of(assume(ann, arn).s3.get_object, Bucket=lab, Key="x") == "AccessDenied"
        tags = [{"Key": key, "Value": "staff"}]
        try:
            session = assume(ann, arn, Tags=tags)
        except ann.sts.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "AccessDenied"
            return
        assert code_of(session.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"

    @pytest.mark.parametrize("kind", ["user", "role"])
    def test_a_tag_that_decides_is_neither_replaced_nor_removed(self, guarded, kind):
        """By a clerk who may set any tag but that one, under another spelling of its name."""
        decided = {"ForAnyValue:StringEqualsIgnoreCase": {"aws:TagKeys": "kind"}}
        exact = {"ForAnyValue:StringEquals": {"aws:TagKeys": ["kind", "Kind", "KIND"]}}
        clerk = user(guarded, allow("iam:*"), deny("iam:*", Condition=exact))
        guest = [{"Key": "kind", "Value": "guest"}]
        arn = role(guarded, clerk.arn, Tags=guest) if kind == "role" else user(guarded, Tags=guest).arn
        member = {f"{kind.title()}Name": arn.rpartition("/")[2]}
        tag, untag, shown = (getattr(clerk.iam, f"{verb}_{kind}") for verb in ("tag", "untag", "get"))
        for key in ("KIND", "\u212aind"):
            for call, members in (
                (tag, {"Tags": [{"Key": key, "Value": "staff"}]}),
                (untag, {"TagKeys": [key]}),
            ):
                try:
                    call(**member, **members)
                except clerk.iam.exceptions.ClientError as error:
                    assert error.response["Error"]["Code"] == "AccessDenied"
                assert guest[0] in shown(**member)[kind.title()]["Tags"], (call, key)
        careful = user(guarded, allow("iam:*"), deny("iam:*", Condition=decided))
        for key in ("KIND", "\u212aind", "kInD"):
            tags = {"Tags": [{"Key": key, "Value": "staff"}]}
            assert code_of(getattr(careful.iam, f"tag_{kind}"), **member, **tags) == "AccessDenied"

    @pytest.mark.parametrize(
        "spelling", [("Kind", "kind"), ("kind", "Kind"), ("KIND", "kind"), ("kind", "KIND")]
    )
    @pytest.mark.parametrize("thing", ["policy", "provider"])
    def test_two_spellings_of_a_tag_in_one_request(self, guarded, thing, spelling):
        """By a clerk whose things all have to be safe: a condition sees one of the tags, and both were made."""
        safe = {"StringEquals": {"aws:RequestTag/Kind": "safe"}}
        clerk = user(guarded, allow("iam:Create*", Condition=safe), allow("iam:Tag*", Condition=safe))
        good, bad = (
            {"Key": key, "Value": value} for key, value in zip(spelling, ("safe", "evil"), strict=True)
        )
        name = unused("p")
        if thing == "policy":
            create, tag = clerk.iam.create_policy, clerk.iam.tag_policy
            members = {"PolicyName": name, "PolicyDocument": policy(allow("s3:*"))}
        else:
            create, tag = clerk.iam.create_open_id_connect_provider, clerk.iam.tag_open_id_connect_provider
            members = {"Url": f"https://idp.lab/{name}"}
        twice = "Duplicate tag keys found. Please note that Tag keys are case insensitive."
        for tags in ([good, bad], [bad, good]):
            code, _, message = error_of(create, **members, Tags=tags)
            assert code == "AccessDenied" or (code, message) == ("InvalidInput", twice), message
        made = create(**members, Tags=[good])
        of = (
            {"PolicyArn": made["Policy"]["Arn"]}
            if thing == "policy"
            else {"OpenIDConnectProviderArn": made["OpenIDConnectProviderArn"]}
        )
        for tags in ([good, bad], [bad, good]):
            assert code_of(tag, **of, Tags=tags) in ("InvalidInput", "AccessDenied")
        assert code_of(tag, **of, Tags=[bad]) == "AccessDenied"

    @pytest.mark.parametrize("team", ["*", "?", "${aws:username}", "a,b", "a\n"])
    def test_a_value_is_no_pattern(self, guarded, lab, team):
        """In the resource of a policy, by a variable; most are no values of tags at all."""
        ann = user(guarded)
        arn = role(guarded, ann.arn, allow("s3:GetObject", f"arn:aws:s3:::{lab}/${{aws:PrincipalTag/team}}"))
        assume(ann, arn, Tags=[{"Key": "team", "Value": "x"}]).s3.get_object(Bucket=lab, Key="x")
        code = code_of(
            ann.sts.assume_role, RoleArn=arn, RoleSessionName="s1", Tags=[{"Key": "team", "Value": team}]
        )
        assert code in ("ValidationError", "InvalidInput", "InvalidParameterValue")


class TestSessionsOfUsers:
    def test_a_federated_user_has_no_more_than_who_asked(self, guarded, lab):
        ann = user(guarded, allow("sts:GetFederationToken"), allow("s3:GetObject", f"arn:aws:s3:::{lab}/*"))
        asked = ann.sts.get_federation_token(Name="eve", Policy=policy(allow("*")))
        eve = Who(guarded, "eve", asked["FederatedUser"]["Arn"], key_of(asked["Credentials"]))
        eve.s3.get_object(Bucket=lab, Key="x")
        assert code_of(eve.s3.put_object, Bucket=lab, Key="x", Body=b"") == "AccessDenied"
        # No IAM, and no sessions of others, whatever the policies say.
        assert code_of(eve.iam.get_user) == "InvalidClientTokenId"
        assert code_of(eve.sts.get_session_token) == "InvalidClientTokenId"
        open_to_all = role(guarded, "*", allow("*"))
        assert (
            code_of(eve.sts.assume_role, RoleArn=open_to_all, RoleSessionName="s1") == "InvalidClientTokenId"
        )

    def test_a_name_of_a_federated_user_makes_no_other_arn(self, guarded):
        ann = user(guarded, allow("sts:GetFederationToken"))
        for name in ("a/b", "a:b", "*", "x", "\u0430dmin"):
            assert code_of(ann.sts.get_federation_token, Name=name) == "ValidationError"

    def test_a_session_of_root_does_no_iam(self, guarded):
        """And is root for an hour at most."""
        asked = root(guarded).sts.get_session_token(DurationSeconds=129_600)["Credentials"]
        session = Who(guarded, "root", "", key_of(asked))
        assert session.sts.get_caller_identity()["Arn"] == root(guarded).arn
        assert code_of(session.iam.list_users) == "InvalidClientTokenId"
        assert code_of(session.iam.create_access_key) == "InvalidClientTokenId"
        assert code_of(session.sts.get_federation_token, Name="eve") == "InvalidClientTokenId"
        begun = asked["Expiration"].timestamp() - 3600
        now = root(guarded).s3.list_buckets()["ResponseMetadata"]["HTTPHeaders"]["date"]
        assert begun <= _seconds(now) + 2

    def test_a_session_of_a_deleted_user_ends(self, guarded):
        ann = user(guarded, allow("s3:ListAllMyBuckets"))
        session = Who(guarded, ann.name, ann.arn, key_of(ann.sts.get_session_token()["Credentials"]))
        session.s3.list_buckets()
        iam = root(guarded).iam
        iam.delete_user_policy(UserName=ann.name, PolicyName="own")
        iam.delete_access_key(UserName=ann.name, AccessKeyId=ann.key[0])
        iam.delete_user(UserName=ann.name)
        assert code_of(session.s3.list_buckets) == "InvalidAccessKeyId"
        # Nor does a user of the same name give it its rights.
        iam.create_user(UserName=ann.name)
        iam.attach_user_policy(UserName=ann.name, PolicyArn=ADMINISTRATOR)
        assert code_of(session.s3.list_buckets) == "InvalidAccessKeyId"

    def test_a_user_named_root_is_not_root(self, guarded, lab):
        iam = root(guarded).iam
        arn = iam.create_user(UserName="root")["User"]["Arn"]
        made = iam.create_access_key(UserName="root")["AccessKey"]
        who = Who(guarded, "root", arn, (made["AccessKeyId"], made["SecretAccessKey"], None))
        try:
            assert arn == f"arn:aws:iam::{guarded.account}:user/root"
            assert code_of(who.s3.get_object, Bucket=lab, Key="x") == "AccessDenied"
            assert code_of(who.iam.list_access_keys) == "AccessDenied"
            assert [
                key["AccessKeyId"] for key in iam.list_access_keys(UserName="root")["AccessKeyMetadata"]
            ] == [made["AccessKeyId"]]
            # Its key is none of root's, and root's own is none of the user's.
            assert code_of(iam.delete_access_key, AccessKeyId=made["AccessKeyId"]) == "NoSuchEntity"
            own = root(guarded).key[0]
            for call in (iam.delete_access_key, iam.update_access_key):
                members = {"Status": "Inactive"} if call == iam.update_access_key else {}
                assert code_of(call, UserName="root", AccessKeyId=own, **members) == "NoSuchEntity"
        finally:
            iam.delete_access_key(UserName="root", AccessKeyId=made["AccessKeyId"])
            iam.delete_user(UserName="root")


def _seconds(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()


class TestTokens:
    """A token that was changed, cut, made up, or given out for another key."""

    @pytest.fixture
    def session(self, guarded) -> Who:
        ann = user(guarded)
        return assume(ann, role(guarded, ann.arn, allow("s3:ListAllMyBuckets")))

    def wrong(self, session: Who, token: str, key: str | None = None) -> str:
        """The code that a token gets, with the key of the session or another one."""
        access_key, secret_key = (session.key[0], session.key[1]) if key is None else (key, session.key[1])
        raw = session.server.raw.with_(signer=Signer(access_key, secret_key))
        answer = raw.get("/", headers={"x-amz-security-token": token})
        assert answer.status in (400, 403), answer
        return answer.code

    def test_the_right_one_is_right(self, session):
        raw = session.server.raw.with_(signer=Signer(*session.key[:2]))
        expect.ok(raw.get("/", headers={"x-amz-security-token": session.key[2]}))

    def test_truncated_and_prolonged(self, session):
        token = session.key[2]
        for wrong in (
            *(token[:length] for length in (1, 6, 7, 24, len(token) // 2, len(token) - 1)),
            token + "A",
            "A" + token,
            token * 2,
            token + "==",
        ):
            assert self.wrong(session, wrong) == "InvalidToken"

    def test_changed(self, session):
        token = session.key[2]
        for at in range(0, len(token), 17):
            other = "A" if token[at] != "A" else "B"
            assert self.wrong(session, token[:at] + other + token[at + 1 :]) == "InvalidToken"

    @pytest.mark.parametrize(
        "seal",
        [lambda text: text, zlib.compress, lambda text: zlib.compress(text)[2:-4]],
        ids=["plain", "zlib", "deflate"],
    )
    def test_made_up(self, session, seal):
        """Claims that nothing seals, also behind the version and the key's id of a real token."""
        account = session.server.account
        claims = {
            "version": 1,
            "kind": "user",
            "account": account,
            "principal": {"root": account},
            "ends": 2**33,
        }
        body = seal(json.dumps(claims).encode())
        front = base64.urlsafe_b64decode(session.key[2] + "==")[:5]
        for text in (body, front + body, front + bytes(12) + body + bytes(16)):
            token = base64.urlsafe_b64encode(text).rstrip(b"=").decode()
            assert self.wrong(session, token) == "InvalidToken"

    def test_of_a_json_web_token_without_a_signature(self, session):
        part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()  # noqa: E731
        token = ".".join(
            (part({"alg": "none"}), part({"accessKey": session.key[0], "policy": "consoleAdmin"}), "")
        )
        assert self.wrong(session, token) == "InvalidToken"

    def test_too_long(self, session):
        assert self.wrong(session, "A" * 7_000) == "InvalidToken"
        assert self.wrong(session, "A" * 20_000) == "RequestHeaderSectionTooLarge"

    def test_of_another_key(self, guarded, session):
        """Neither the key of another session, nor one that lasts, nor root's."""
        ann = user(guarded, allow("s3:*"))
        other = assume(ann, role(guarded, ann.arn, allow("s3:*")))
        assert self.wrong(session, other.key[2]) == "InvalidToken"
        for key in (ann.key, root(guarded).key):
            assert code_of(client(guarded, "s3", (*key[:2], session.key[2])).list_buckets) == "InvalidToken"

    def test_of_another_server(self, guarded, session, make_server, tmp_path):
        other = make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
        elsewhere = Who(other, session.name, session.arn, session.key)
        assert code_of(elsewhere.s3.list_buckets) == "InvalidToken"
        assert code_of(elsewhere.sts.get_caller_identity) in ("InvalidClientTokenId", "InvalidToken")

    def test_that_is_not_signed(self, session):
        raw = session.server.raw.with_(signer=Signer(*session.key[:2]))
        answer = raw.get(
            "/", headers={"x-amz-security-token": session.key[2]}, unsigned=["x-amz-security-token"]
        )
        assert answer.status == 403 and answer.code == "AccessDenied"

    def test_twice(self, session, guarded):
        """Of two that are signed, the first one counts; one is not added to what was signed."""
        ann = user(guarded)
        other = assume(ann, role(guarded, ann.arn, allow("s3:*"))).key[2]
        raw = session.server.raw.with_(signer=Signer(*session.key[:2]))
        name = "x-amz-security-token"
        assert raw.get("/", headers=[(name, other), (name, session.key[2])]).code == "InvalidToken"
        signed = raw.prepare("GET", "/", headers={name: session.key[2]})
        for place in (signed.head.index(b"x-amz-date"), signed.head.index(b"Authorization")):
            head = signed.head[:place] + f"{name}: {other}\r\n".encode() + signed.head[place:]
            answer = raw.send(replace(signed, head=head))
            assert answer.code in ("InvalidToken", "SignatureDoesNotMatch"), answer

    def test_the_id_of_a_session_without_its_token(self, session):
        raw = session.server.raw.with_(signer=Signer(*session.key[:2]))
        assert raw.get("/").code == "InvalidAccessKeyId"

    def test_ids_are_not_guessed(self, guarded, session):
        """A key that is made up of the id of a session and the secret of another is none."""
        ann = user(guarded)
        other = assume(ann, role(guarded, ann.arn, allow("s3:*")))
        mixed = (session.key[0], other.key[1], session.key[2])
        assert code_of(client(guarded, "s3", mixed).list_buckets) == "SignatureDoesNotMatch"


def presigned(session: Who, name: str) -> str:
    """The path of a URL for the object `x` of a bucket."""
    s3 = client(session.server, "s3", session.key, signature_version="s3v4")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": "x"})
    return url.removeprefix(session.server.endpoint)


class TestPresignedBySessions:
    def test_the_token_is_part_of_what_is_signed(self, guarded, lab):
        ann = user(guarded)
        session = assume(ann, role(guarded, ann.arn, allow("s3:GetObject")))
        other = assume(ann, role(guarded, ann.arn, allow("s3:*")))
        path = presigned(session, lab)
        expect.ok(guarded.raw.fetch(path))
        head, name, rest = path.partition("X-Amz-Security-Token=")
        assert name
        token, _, rest = rest.partition("&")
        for changed in (
            head + rest,
            f"{head}X-Amz-Security-Token=&{rest}",
            f"{head}X-Amz-Security-Token={other.key[2]}&{rest}",
            f"{head}X-Amz-Security-Token={token[:-2]}AA&{rest}",
            f"{head}X-Amz-Security-Token={token}&X-Amz-Security-Token={other.key[2]}&{rest}",
        ):
            answer = guarded.raw.fetch(changed)
            assert answer.status in (400, 403), answer

    def test_it_ends_with_the_rights_of_its_session(self, guarded, lab):
        ann = user(guarded)
        arn = role(guarded, ann.arn, allow("s3:GetObject"))
        session = assume(ann, arn)
        path = presigned(session, lab)
        expect.ok(guarded.raw.fetch(path))
        name = arn.rpartition("/")[2]
        root(guarded).iam.delete_role_policy(RoleName=name, PolicyName="own")
        expect.error(
            guarded.raw.fetch(path), "AccessDenied", status=403, message=re.compile("not authorized")
        )
