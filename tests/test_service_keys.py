"""Service keys: access keys of a user, each with a policy of its own that limits it, and an end."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from test_admin import done, key_in, new_account, ours, refusal, text

from support.admin import Admin, facts
from support.identities import (
    ROOT,
    allow,
    client,
    code_of,
    deny,
    error_of,
    key_of,
    master_key,
    new_user,
    policy,
)

READ = policy(allow(["s3:GetObject", "s3:ListBucket"]))


@pytest.fixture
def server(make_server, tmp_path):
    server = make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
    s3 = client(server, "s3")
    for name in ("data", "other"):
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="a", Body=b"1")
    return server


@pytest.fixture
def ann(server) -> tuple:
    """A user who may all in one bucket, and change her own keys."""
    own = "arn:aws:iam::*:user/${aws:username}"
    return new_user(
        server,
        "ann",
        allow("s3:*", ["arn:aws:s3:::data", "arn:aws:s3:::data/*"]),
        allow("iam:*AccessKey*", own),
    )


def service_key(server, key: tuple = ROOT, **members: str) -> tuple:
    return key_in(done(server, "CreateServiceKey", key, **members))


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class TestLimits:
    def test_user_and_policy_both_have_to_allow(self, server, ann):
        key = service_key(server, UserName="ann", PolicyDocument=READ)
        s3 = client(server, "s3", key)
        assert s3.get_object(Bucket="data", Key="a")["Body"].read() == b"1"
        # The policy does not allow it, though the user may.
        assert code_of(s3.put_object, Bucket="data", Key="b", Body=b"") == "AccessDenied"
        client(server, "s3", ann).put_object(Bucket="data", Key="b", Body=b"")
        # The user may not, though the policy allows it.
        assert code_of(s3.get_object, Bucket="other", Key="a") == "AccessDenied"
        # What the user gets and loses later counts for the key.
        iam = client(server, "iam")
        iam.put_user_policy(UserName="ann", PolicyName="more", PolicyDocument=policy(allow("s3:*")))
        assert s3.get_object(Bucket="other", Key="a")["Body"].read() == b"1"
        iam.put_user_policy(UserName="ann", PolicyName="more", PolicyDocument=policy(deny("s3:*")))
        assert code_of(s3.get_object, Bucket="data", Key="a") == "AccessDenied"

    def test_without_a_policy_it_may_what_its_user_may(self, server, ann):
        s3 = client(server, "s3", service_key(server, UserName="ann", Description="all"))
        s3.put_object(Bucket="data", Key="b", Body=b"2")
        assert code_of(s3.get_object, Bucket="other", Key="a") == "AccessDenied"

    def test_it_is_limited_where_a_bucket_names_its_user(self, server, ann):
        """But not where the bucket lets everybody in (decision 0039)."""
        arn = client(server, "sts", ann).get_caller_identity()["Arn"]
        key = service_key(server, UserName="ann", PolicyDocument=policy(allow("s3:ListBucket")))
        s3, owner = client(server, "s3", key), client(server, "s3")
        assert client(server, "sts", key).get_caller_identity()["Arn"] == arn
        grant = allow("s3:GetObject", "arn:aws:s3:::other/*")
        owner.put_bucket_policy(Bucket="other", Policy=policy(grant | {"Principal": {"AWS": arn}}))
        client(server, "s3", ann).get_object(Bucket="other", Key="a")
        assert code_of(s3.get_object, Bucket="other", Key="a") == "AccessDenied"
        owner.delete_public_access_block(Bucket="other")
        owner.put_bucket_policy(Bucket="other", Policy=policy(grant | {"Principal": "*"}))
        s3.get_object(Bucket="other", Key="a")

    def test_it_makes_no_keys_of_its_own_user(self, server, ann):
        """They would be without its limits, and outlive its end."""
        key = service_key(server, UserName="ann", Expires=in_seconds(600))
        iam = client(server, "iam", key)
        iam.list_access_keys()
        refused = error_of(iam.create_access_key, UserName="ann")
        assert refused[:2] == ("AccessDenied", 403) and "service key" in refused[2]
        assert code_of(iam.create_access_key) == "AccessDenied"
        assert refusal(server, "CreateServiceKey", key) == ("AccessDenied", 403)
        sts = client(server, "sts", key)
        assert code_of(sts.get_session_token) == "AccessDenied"

    def test_sessions_of_roles_are_not_its_own(self, server, ann):
        """A role's session has the role's rights: the key's policy decides about assuming it."""
        arn = client(server, "sts", ann).get_caller_identity()["Arn"]
        trust = policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": arn}})
        role = client(server, "iam").create_role(RoleName="r", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        sent = {"RoleArn": role, "RoleSessionName": "ann"}
        client(server, "sts", ann).assume_role(**sent)
        limited = service_key(server, UserName="ann", PolicyDocument=policy(allow("s3:*")))
        assert code_of(client(server, "sts", limited).assume_role, **sent) == "AccessDenied"
        free = service_key(server, UserName="ann", PolicyDocument=policy(allow("sts:AssumeRole")))
        client(server, "sts", free).assume_role(**sent)


class TestEnds:
    def test_a_key_is_refused_within_the_second(self, server, ann):
        key = service_key(server, UserName="ann", Expires=in_seconds(4))
        s3, iam = client(server, "s3", key), client(server, "iam", key)
        url = s3.generate_presigned_url("get_object", {"Bucket": "data", "Key": "a"}, ExpiresIn=600)
        path = url.removeprefix(server.endpoint)
        assert server.raw.get(path, anonymous=True).status == 200
        s3.get_object(Bucket="data", Key="a")
        listed = done(server, "ListServiceKeys", UserName="ann")
        ends = datetime.fromisoformat(text(listed, "Expires"))
        time.sleep(max(0, (ends - datetime.now(UTC)).total_seconds()) + 0.05)
        assert code_of(s3.get_object, Bucket="data", Key="a") == "ExpiredToken"
        assert code_of(iam.list_access_keys) == "ExpiredToken"
        assert server.raw.get(path, anonymous=True).status == 400
        assert text(done(server, "ListServiceKeys", UserName="ann"), "Status") == "Expired"
        # Nobody is told that it is accepted.
        update = {"UserName": "ann", "AccessKeyId": key[0]}
        error = error_of(client(server, "iam").update_access_key, **update, Status="Active")
        assert error[:2] == ("InvalidInput", 400) and "it has expired" in error[2]
        shown = client(server, "iam").list_access_keys(UserName="ann")["AccessKeyMetadata"]
        assert {there["AccessKeyId"]: there["Status"] for there in shown} == {
            ann[0]: "Active",
            key[0]: "Expired",
        }

    def test_sessions_of_roles_end_with_the_key(self, server, ann):
        """Those of a user's key without an end do not, as on AWS."""
        arn = client(server, "sts", ann).get_caller_identity()["Arn"]
        iam = client(server, "iam")
        roles = []
        for name, trusted in (("one", arn), ("two", arn.replace("user/ann", "role/one"))):
            trust = policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": trusted}})
            made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust, MaxSessionDuration=43200)
            roles.append(made["Role"]["Arn"])
            iam.put_role_policy(
                RoleName=name, PolicyName="p", PolicyDocument=policy(allow("s3:*"), allow("sts:AssumeRole"))
            )

        def session(key: tuple, role: str, seconds: int = 43200) -> tuple:
            sts = client(server, "sts", key)
            answer = sts.assume_role(RoleArn=role, RoleSessionName="ann", DurationSeconds=seconds)
            return key_of(answer["Credentials"]), answer["Credentials"]["Expiration"]

        may_assume = policy(allow("sts:AssumeRole"))
        lasting, _ = session(ann, roles[0])
        key = service_key(server, UserName="ann", PolicyDocument=may_assume)
        first, _ = session(key, roles[0])
        second, _ = session(first, roles[1], 3600)
        both = [client(server, "s3", key) for key in (first, second)]
        for s3 in both:
            s3.list_buckets()
        member = {"UserName": "ann", "AccessKeyId": key[0]}
        iam.update_access_key(**member, Status="Inactive")
        for s3 in both:
            assert code_of(s3.list_buckets) == "InvalidAccessKeyId"
        iam.update_access_key(**member, Status="Active")
        for s3 in both:
            s3.list_buckets()
        iam.delete_access_key(**member)
        for s3 in both:
            assert code_of(s3.list_buckets) == "InvalidAccessKeyId"

        ends = datetime.now(UTC) + timedelta(seconds=6)
        key = service_key(server, UserName="ann", PolicyDocument=may_assume, Expires=in_seconds(6))
        first, told = session(key, roles[0])
        second, told_then = session(first, roles[1], 900)
        assert max(told, told_then) <= ends
        client(server, "s3", second).list_buckets()
        time.sleep(max(0, (ends - datetime.now(UTC)).total_seconds()) + 0.05)
        for ended in (first, second):
            assert code_of(client(server, "s3", ended).list_buckets) == "ExpiredToken"
        iam.delete_access_key(UserName="ann", AccessKeyId=ann[0])
        client(server, "s3", lasting).list_buckets()

    @pytest.mark.parametrize(
        ("expires", "code"),
        [
            ("2020-01-01T00:00:00Z", "InvalidInput"),
            ("tomorrow", "ValidationError"),
            ("2027-01-31", "ValidationError"),
            ("4000000000", "ValidationError"),
        ],
    )
    def test_ends_that_are_none(self, server, ann, expires, code):
        assert refusal(server, "CreateServiceKey", UserName="ann", Expires=expires) == (code, 400)


class TestActions:
    def test_who_may(self, server, ann):
        """Users their own with iam:CreateAccessKey, as they may make access keys; nobody one of another account."""
        bob = new_user(server, "bob")
        service_key(server, ann)
        service_key(server, ann, UserName="ann")
        assert refusal(server, "CreateServiceKey", ann, UserName="bob") == ("AccessDenied", 403)
        for action in ("CreateServiceKey", "ListServiceKeys"):
            assert refusal(server, action, bob) == ("AccessDenied", 403)
            assert refusal(server, action, bob, UserName="ann") == ("AccessDenied", 403)
        assert refusal(server, "CreateServiceKey", UserName="nobody") == ("NoSuchEntity", 404)
        # Root has none: its keys cannot be limited.
        assert refusal(server, "CreateServiceKey", PolicyDocument=READ) == ("InvalidInput", 400)
        account, root = new_account(server, "lab")
        assert refusal(server, "CreateServiceKey", root, UserName="ann") == ("NoSuchEntity", 404)
        client(server, "iam", root).create_user(UserName="ann")
        service_key(server, root, UserName="ann")
        assert account in client(server, "sts", root).get_caller_identity()["Arn"]

    @pytest.mark.parametrize(
        ("document", "code"),
        [
            ("{}", "MalformedPolicyDocument"),
            (policy(allow("s3:GetObjekt")), "MalformedPolicyDocument"),
            (policy(allow("s3:*") | {"Principal": "*"}), "MalformedPolicyDocument"),
            (policy(allow("s3:*", "arn:aws:s3:::" + "x" * 2100)), "ValidationError"),
        ],
    )
    def test_policies_that_are_none(self, server, ann, document, code):
        assert refusal(server, "CreateServiceKey", UserName="ann", PolicyDocument=document) == (code, 400)
        assert not done(server, "ListServiceKeys", UserName="ann").findall(".//{*}member")

    def test_they_are_counted_apart(self, server, ann):
        iam = client(server, "iam")
        keys = [service_key(server, UserName="ann")[0] for _ in range(100)]
        assert refusal(server, "CreateServiceKey", UserName="ann") == ("LimitExceeded", 409)
        iam.create_access_key(UserName="ann")
        assert code_of(iam.create_access_key, UserName="ann") == "LimitExceeded"
        pages = iam.get_paginator("list_access_keys").paginate(
            UserName="ann", PaginationConfig={"PageSize": 40}
        )
        listed = [key["AccessKeyId"] for page in pages for key in page["AccessKeyMetadata"]]
        assert len(listed) == 102 and set(keys) < set(listed)
        first = done(server, "ListServiceKeys", UserName="ann", MaxItems="60")
        rest = done(server, "ListServiceKeys", UserName="ann", MaxItems="60", Marker=text(first, "Marker"))
        found = [e.text for page in (first, rest) for e in page.findall(".//{*}AccessKeyId")]
        assert sorted(found) == sorted(keys) and text(rest, "IsTruncated") == "false"

    def test_iam_changes_them(self, server, ann):
        iam, key = client(server, "iam"), service_key(server, UserName="ann", PolicyDocument=READ)
        s3 = client(server, "s3", key)
        iam.update_access_key(UserName="ann", AccessKeyId=key[0], Status="Inactive")
        assert code_of(s3.get_object, Bucket="data", Key="a") == "InvalidAccessKeyId"
        iam.update_access_key(UserName="ann", AccessKeyId=key[0], Status="Active")
        s3.get_object(Bucket="data", Key="a")
        iam.delete_access_key(UserName="ann", AccessKeyId=key[0])
        assert code_of(s3.get_object, Bucket="data", Key="a") == "InvalidAccessKeyId"

    def test_unknown_parameters_are_refused(self, server, ann):
        status, document = ours(server, "CreateServiceKey", UserName="ann", Policy=READ)
        assert status == 501 and document.findtext(".//{*}Message").endswith("Policy")

    def test_the_secret_is_shown_once(self, server, ann):
        made = done(server, "CreateServiceKey", UserName="ann", Description="backup & <co>")
        secret = text(made, "SecretAccessKey")
        assert text(made, "Description") == "backup & <co>"
        status, document = ours(server, "ListServiceKeys", UserName="ann")
        assert status == 200 and secret not in "".join(document.itertext())
        assert text(document, "Description") == "backup & <co>"


class TestCommand:
    @pytest.fixture
    def admin(self, server, tmp_path) -> Admin:
        root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
        return Admin(tmp_path, AWS_ENDPOINT_URL=server.endpoint, **root)

    def test_a_life(self, server, ann, admin, tmp_path: Path):
        (tmp_path / "read.json").write_text(READ)
        words = ("--policy", str(tmp_path / "read.json"), "--expires", "90d", "--description", "nightly copy")
        made = facts(admin("key", "create", "ann", *words))
        key = (made["access key"], made["secret key"], None)
        s3 = client(server, "s3", key)
        s3.get_object(Bucket="data", Key="a")
        assert code_of(s3.delete_object, Bucket="data", Key="a") == "AccessDenied"
        listed = admin("key", "list", "ann")
        line = next(line for line in listed.splitlines() if line.startswith(key[0]))
        assert line.endswith("nightly copy") and " Active " in line
        all_keys = {there["AccessKeyId"]: there for there in admin.json("key", "list", "ann")}
        assert set(all_keys) == {ann[0], key[0]} and all_keys[key[0]]["PolicyDocument"] == json.loads(READ)
        shown = admin.json("key", "show", key[0])
        assert (shown["UserName"], shown["Description"]) == ("ann", "nightly copy")
        ends = datetime.fromisoformat(shown["Expires"]) - datetime.now(UTC)
        assert timedelta(days=89, hours=23) < ends <= timedelta(days=90)
        text = admin("key", "show", key[0])
        assert json.loads(text[text.index("{") :]) == json.loads(READ)
        assert "{" not in admin("key", "show", ann[0])
        lines = json.dumps(json.loads(READ), indent=2)
        (tmp_path / "lines.json").write_text(lines)
        of_lines = facts(admin("key", "create", "ann", "--policy", str(tmp_path / "lines.json")))[
            "access key"
        ]
        assert lines in admin("key", "show", of_lines)
        admin("key", "delete", of_lines)
        # The description is Ann's text: it looks like no other key's row.
        forged = f"nightly\n{ann[0]}  ann  Active  nightly"
        other = facts(admin("key", "create", "ann", *words[:4], "--description", forged))["access key"]
        rows = admin("key", "list", "ann").splitlines()
        assert len(rows) == 4 and sorted(row.split()[0] for row in rows[1:]) == sorted(
            [ann[0], key[0], other]
        )
        admin("key", "delete", other)
        admin("key", "disable", key[0])
        assert code_of(s3.get_object, Bucket="data", Key="a") == "InvalidAccessKeyId"
        admin("key", "delete", key[0])
        assert [there["AccessKeyId"] for there in admin.json("key", "list", "ann")] == [ann[0]]

    def test_what_is_refused(self, ann, admin):
        refused = admin.refused("key", "create", "ann", "--policy", "-", given="{}")
        assert refused.startswith("MalformedPolicyDocument")
        assert admin.refused("key", "create", "ann", "--expires", "2020-01-01").startswith("InvalidInput")
        assert "--expires" in admin.refused("key", "create", "ann", "--expires", "soon", status=2)
        assert admin.refused("key", "create", "--expires", "1d").startswith("InvalidInput")
