"""`slipway admin`, with the real program at a real server."""

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from support.admin import FAILED, Admin, code_or_none, facts, key_in, profile, rows
from support.identities import ROOT, allow, client, code_of, master_key, policy
from support.server import KEYS, NOBODY, SIDECARS, binary
from support.transports import make_certificate
from support.wire import poll

# A trust policy.
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def home(server, tmp_path) -> Path:
    """A home with the files of the AWS CLI: root's key and the server in the profile `default`."""
    folder = tmp_path / "home" / ".aws"
    folder.mkdir(parents=True)
    (folder / "credentials").write_text(profile("default", ROOT))
    (folder / "config").write_text(f"[default]\nendpoint_url = {server.endpoint}\n")
    return folder.parent


@pytest.fixture
def admin(home) -> Admin:
    return Admin(home)


class TestUsers:
    def test_one_line_makes_a_user_who_may_read(self, server, admin):
        client(server, "s3").create_bucket(Bucket="data")
        made = facts(admin("user", "create", "ann", "--policy", "AmazonS3ReadOnlyAccess", "--key"))
        ann = (made["access key"], made["secret key"], None)
        client(server, "s3", ann).list_objects_v2(Bucket="data")
        assert code_of(client(server, "s3", ann).put_object, Bucket="data", Key="a") == "AccessDenied"
        shown = facts(admin("user", "show", "ann"))
        assert shown["user"] == "ann" and shown["policies"] == "AmazonS3ReadOnlyAccess"
        assert shown["keys"] == f"{ann[0]} (Active)" and "own policies" not in shown
        assert rows(admin("user", "list"))[1][:2] == ["ann", "/"]
        assert ann[1] not in admin("user", "show", "ann") + admin("--json", "key", "list", "ann")

    def test_nobody_deletes_the_key_that_signs(self, server, home, admin):
        made = facts(admin("user", "create", "ann", "--policy", "IAMFullAccess", "--key"))
        ann = (made["access key"], made["secret key"], None)
        with open(home / ".aws" / "credentials", "a") as file:
            file.write(profile("ann", ann))
        own = Admin(home, AWS_PROFILE="ann", AWS_ENDPOINT_URL=server.endpoint)
        says = own.refused("user", "delete", "--all", "ann")
        assert f"the access key {ann[0]} signs this command" in says and "Nothing was deleted" in says, says
        shown = facts(own("user", "show", "ann"))
        assert shown["keys"] == f"{ann[0]} (Active)" and shown["policies"] == "IAMFullAccess"
        # To others nothing is told of keys that they may not see.
        admin("user", "detach", "ann", "IAMFullAccess")
        assert own.refused("key", "show", "AKIANOPE000000000000").startswith("AccessDenied")
        admin("user", "delete", "--all", "ann")

    def test_a_life(self, server, admin):
        iam = client(server, "iam")
        admin("group", "create", "staff")
        admin("user", "create", "bob", "--path", "/lab/", "--group", "staff", "--key")
        document = policy(allow("s3:ListAllMyBuckets"))
        admin("user", "put-policy", "bob", "own", "-", given=document)
        assert json.loads(admin("user", "show-policy", "bob", "own")) == json.loads(document)
        admin("user", "attach", "bob", "iamreadonlyaccess")
        admin("user", "set-boundary", "bob", "AmazonS3FullAccess")
        shown = admin.json("user", "show", "bob")
        assert shown["Path"] == "/lab/" and shown["PolicyNames"] == ["own"]
        assert [group["GroupName"] for group in shown["Groups"]] == ["staff"]
        assert shown["PermissionsBoundary"]["PermissionsBoundaryArn"].endswith("/AmazonS3FullAccess")
        assert admin.refused("user", "delete", "bob") == (
            "DeleteConflict: Cannot delete entity, must detach all policies first. "
            "`slipway admin user delete --all bob` deletes those as well"
        )
        admin("user", "rename", "bob", "rob")
        admin("user", "detach", "rob", "IAMReadOnlyAccess")
        admin("user", "delete-boundary", "rob")
        assert iam.list_attached_user_policies(UserName="rob")["AttachedPolicies"] == []
        admin("user", "delete", "--all", "rob")
        assert code_of(iam.get_user, UserName="rob") == "NoSuchEntity"
        assert iam.get_group(GroupName="staff")["Users"] == []

    def test_keys_are_switched_off_whosever_they_are(self, server, admin):
        admin("user", "create", "ann")
        key = admin.json("key", "create", "ann")
        sts = client(server, "sts", key_in(key))
        sts.get_caller_identity()
        admin("key", "disable", key["AccessKeyId"])
        assert code_of(sts.get_caller_identity) == "InvalidClientTokenId"
        admin("key", "enable", key["AccessKeyId"])
        assert facts(admin("key", "show", key["AccessKeyId"]))["user"] == "ann"
        admin("user", "disable", "ann")
        assert code_of(sts.get_caller_identity) == "InvalidClientTokenId"
        admin("user", "enable", "ann")
        sts.get_caller_identity()
        admin("key", "delete", key["AccessKeyId"])
        assert admin.json("key", "list", "ann") == []
        # Root's own, which have no user.
        account = client(server, "sts").get_caller_identity()["Account"]
        for command in ("show", "disable", "enable", "delete"):
            assert admin.refused("key", command, "AKIANOPE000000000000") == (
                f"NoSuchEntity: there is no access key AKIANOPE000000000000 in the account {account}"
            )
            says = admin.refused("key", command, ROOT[0])
            assert "the key that the server was started with" in says and "GetAccessKeyLastUsed" not in says
        mine = admin.json("key", "create")
        assert rows(admin("key", "list"))[1][0] == mine["AccessKeyId"]
        admin("key", "delete", mine["AccessKeyId"])

    def test_what_is_disabled_is_shown(self, server, admin, tmp_path):
        key = admin.json("user", "create", "ann", "--key")["AccessKey"]["AccessKeyId"]
        admin("user", "create", "bob", "--key")
        assert rows(admin("user", "list"))[0] == ["NAME", "PATH", "ID", "MADE"]
        assert facts(admin("key", "show", key))["status"] == "Active"
        admin("user", "disable", "ann")
        assert facts(admin("user", "show", "ann"))["status"] == "Disabled"
        assert "status" not in facts(admin("user", "show", "bob"))
        header, *listed = rows(admin("user", "list"))
        assert (header[-1], [row[-1] == "Disabled" for row in listed]) == ("STATUS", [True, False])
        assert [user.get("Status") for user in admin.json("user", "list")] == ["Disabled", None]
        assert facts(admin("key", "show", key))["status"] == "Active (the user is disabled)"
        assert admin("key", "list", "ann").endswith("ann is disabled: all its keys are refused\n")
        assert "disabled" not in admin("key", "list", "bob")
        admin("user", "enable", "ann")
        admin("key", "disable", key)
        assert facts(admin("key", "show", key))["status"] == "Inactive"
        assert admin.json("key", "show", key)["Status"] == "Inactive"
        trust = tmp_path / "trust.json"
        arn = admin.json("user", "show", "ann")["Arn"]
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": arn}}
        trust.write_text(policy(statement))
        admin("role", "create", "reader", str(trust))
        admin("role", "disable", "reader")
        assert facts(admin("role", "show", "reader"))["status"] == "Disabled"
        assert rows(admin("role", "list"))[1][-1] == "Disabled"
        # AWS's clients read the answers as before.
        assert client(server, "iam").get_role(RoleName="reader")["Role"]["RoleName"] == "reader"

    def test_a_user_without_the_key_that_it_was_to_have(self, make_server, tmp_path):
        server = make_server()
        admin = Admin(
            tmp_path,
            AWS_ACCESS_KEY_ID=ROOT[0],
            AWS_SECRET_ACCESS_KEY=ROOT[1],
            AWS_ENDPOINT_URL=server.endpoint,
        )
        admin("group", "create", "staff")
        create = ("user", "create", "ann", "--group", "staff", "--policy", "AmazonS3ReadOnlyAccess")
        told = admin.refused(*create, "--key")
        assert "master key" in told and told.endswith("The user ann was not made"), told
        assert admin.json("user", "list") == []
        admin(*create)

    def test_what_is_not_there_is_found_before_a_user_is_made(self, server, admin):
        error = admin.refused("user", "create", "ann", "--policy", "Nope")
        assert error == "NoSuchEntity: there is no policy Nope: `slipway admin policy list` shows all"
        assert admin.refused("user", "create", "ann", "--group", "nope").startswith("NoSuchEntity")
        assert admin.json("user", "list") == []

    def test_values_of_tags_stay_texts(self, server, admin):
        admin("user", "create", "ann")
        tags = [{"Key": "cost", "Value": "007"}, {"Key": "size", "Value": "12"}]
        client(server, "iam").tag_user(UserName="ann", Tags=tags)
        assert admin.json("user", "show", "ann")["Tags"] == tags

    def test_lists_are_longer_than_a_page(self, server, admin):
        admin("user", "create", "user-0")
        (path,) = (server.tree / ".slipway" / "iam").glob("account-*.json")
        document = json.loads(path.read_text())
        (first,) = document["users"].values()
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
        for number in range(1, 2102):
            unique = (
                "AIDA" + "A" * 14 + digits[number // 1024] + digits[number // 32 % 32] + digits[number % 32]
            )
            document["users"][f"user-{number}"] = first | {"id": unique}
        document["revision"] += 1
        new = path.with_name(f"{uuid.uuid4()}")
        new.write_text(json.dumps(document))
        new.chmod(0o600)
        new.rename(path)
        poll(lambda: len(admin.json("user", "list")) == 2102)
        assert len(rows(admin("user", "list"))) == 2103


class TestGroupsPoliciesRoles:
    def test_a_group(self, server, admin):
        admin("group", "create", "staff")
        admin("user", "create", "ann")
        admin("user", "create", "bob")
        admin("group", "add", "staff", "ann", "bob")
        admin("group", "attach", "staff", "AmazonS3FullAccess")
        admin("group", "put-policy", "staff", "own", "-", given=policy(allow("iam:GetUser")))
        shown = facts(admin("group", "show", "staff"))
        assert (shown["users"], shown["policies"], shown["own policies"]) == (
            "ann, bob",
            "AmazonS3FullAccess",
            "own",
        )
        admin("group", "directory", "staff", "cn=staff,dc=lab")
        for name in ("staff", "STAFF"):
            assert facts(admin("group", "show", name))["directory"] == "cn=staff,dc=lab"
        admin("group", "directory", "staff")
        assert "directory" not in facts(admin("group", "show", "staff"))
        admin("group", "remove", "staff", "bob")
        assert [user["UserName"] for user in admin.json("group", "show", "staff")["Users"]] == ["ann"]
        admin("group", "rename", "staff", "people")
        told = admin.refused("group", "delete", "people")
        assert told.startswith("DeleteConflict") and "group delete --all people" in told
        admin("group", "delete", "--all", "people")
        assert rows(admin("group", "list")) == [["NAME", "PATH", "ID", "MADE"]]

    def test_a_policy(self, server, admin, tmp_path):
        document = tmp_path / "readers.json"
        document.write_text(policy(allow("s3:GetObject")))
        admin("policy", "create", "readers", str(document), "--description", "who reads")
        admin("user", "create", "ann", "--policy", "readers")
        shown = admin.json("policy", "show", "readers")
        assert shown["PolicyVersion"]["Document"] == json.loads(document.read_text())
        assert shown["PolicyUsers"][0]["UserName"] == "ann" and shown["AttachmentCount"] == 1
        assert policy(allow("s3:GetObject")) in admin("policy", "show", "readers")
        for number in range(2, 8):
            document.write_text(policy(allow(f"s3:Get{'*' * (number % 2 + 1)}")))
            assert admin("policy", "update", "readers", str(document)).rstrip().endswith(f"v{number} counts")
        versions = [version["VersionId"] for version in admin.json("policy", "versions", "readers")]
        assert sorted(versions) == ["v3", "v4", "v5", "v6", "v7"]
        # What is no policy costs no version.
        document.write_text("{}")
        assert admin.refused("policy", "update", "readers", str(document)).startswith("MalformedPolicy")
        assert len(admin.json("policy", "versions", "readers")) == 5
        admin("policy", "set-version", "readers", "v3")
        assert admin.json("policy", "show", "readers")["DefaultVersionId"] == "v3"
        own = [row[0] for row in rows(admin("policy", "list", "--own"))[1:]]
        every = [row[0] for row in rows(admin("policy", "list"))[1:]]
        assert own == ["readers"] and {"readers", "AdministratorAccess", "OwnBuckets"} <= set(every)
        told = admin.refused("policy", "delete", "readers")
        assert "`slipway admin policy delete --all readers` takes it from all" in told
        admin("user", "set-boundary", "ann", "readers")
        assert "is the boundary of ann" in admin.refused("policy", "delete", "--all", "readers")
        admin("user", "delete-boundary", "ann")
        admin("policy", "delete", "--all", "readers")
        assert admin.json("policy", "list", "--own") == []

    def test_a_name_of_two_policies_is_none(self, server, admin, tmp_path):
        """A policy of the account's does not take the place of a built-in one, nor the other way round."""
        document = tmp_path / "own.json"
        document.write_text(policy(allow("s3:GetObject")))
        own = admin.json("policy", "create", "administratoraccess", str(document))["Arn"]
        built_in = "arn:aws:iam::aws:policy/AdministratorAccess"
        admin("user", "create", "ann")
        for words in (
            ("user", "attach", "ann", "AdministratorAccess"),
            ("user", "set-boundary", "ann", "administratoraccess"),
            ("user", "create", "bob", "--policy", "AdministratorAccess"),
            ("policy", "show", "AdministratorAccess"),
            ("policy", "delete", "AdministratorAccess"),
        ):
            says = admin.refused(*words)
            assert "several policies have the name" in says and f"{own} or {built_in}" in says, says
        assert [user["UserName"] for user in admin.json("user", "list")] == ["ann"]
        admin("user", "attach", "ann", own)
        admin("user", "attach", "ann", built_in)
        attached = {there["PolicyArn"] for there in admin.json("user", "show", "ann")["AttachedPolicies"]}
        assert attached == {own, built_in}
        admin("policy", "delete", "--all", own)
        admin("user", "detach", "ann", "AdministratorAccess")

    def test_a_policy_is_named_with_its_path_as_well(self, admin, tmp_path):
        document = tmp_path / "own.json"
        document.write_text(policy(allow("s3:GetObject")))
        sales = admin.json("policy", "create", "reads", str(document), "--path", "/sales/eu/")["Arn"]
        admin("user", "create", "ann")
        for name, arn in (
            ("slipway/OwnBuckets", "arn:aws:iam::aws:policy/slipway/OwnBuckets"),
            ("sales/eu/reads", sales),
            ("reads", sales),
        ):
            assert arn in admin("user", "attach", "ann", name)
            assert arn in admin("user", "detach", "ann", name)
        assert admin.refused("user", "attach", "ann", "sales/reads").startswith("NoSuchEntity")

    @pytest.mark.parametrize("kind", ["user", "role"])
    def test_a_policy_that_is_a_boundary_stays_attached(self, server, admin, tmp_path, kind):
        iam = client(server, "iam")
        (tmp_path / "trust.json").write_text(policy(TRUST))
        arn = admin.json("policy", "create", "readers", "-", given=policy(allow("s3:GetObject")))["Arn"]
        admin("policy", "update", "readers", "-", given=policy(allow("s3:Get*")))
        admin("user", "create", "ann", "--policy", "readers")
        admin("group", "create", "staff")
        admin("group", "attach", "staff", "readers")
        if kind == "user":
            admin("user", "create", "zoe")
            admin("user", "set-boundary", "zoe", "readers")
        else:
            admin("role", "create", "zoe", str(tmp_path / "trust.json"))
            iam.put_role_permissions_boundary(RoleName="zoe", PermissionsBoundary=arn)
        assert "is the boundary of zoe" in admin.refused("policy", "delete", "--all", "readers")
        shown = admin.json("policy", "show", "readers")
        assert shown["AttachmentCount"] == 2 and len(admin.json("policy", "versions", "readers")) == 2
        getattr(iam, f"delete_{kind}_permissions_boundary")(**{f"{kind.title()}Name": "zoe"})
        admin("policy", "delete", "--all", "readers")

    def test_what_is_not_there_is_found_before_a_role_is_made(self, server, admin):
        error = admin.refused("role", "create", "reader", "-", "--policy", "Nope", given=policy(TRUST))
        assert error == "NoSuchEntity: there is no policy Nope: `slipway admin policy list` shows all"
        arn = "arn:aws:iam::aws:policy/Nope"
        for create in (("role", "create", "reader", "-"), ("user", "create", "ann")):
            error = admin.refused(*create, "--policy", arn, given=policy(TRUST))
            assert error.startswith("NoSuchEntity"), error
        assert admin.json("role", "list") == admin.json("user", "list") == []

    def test_a_role(self, server, admin, tmp_path):
        made = facts(admin("user", "create", "ann", "--key"))
        trust = tmp_path / "trust.json"
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": made["arn"]}}
        trust.write_text(policy(statement))
        arguments = ("--max-session", "7200", "--policy", "AmazonS3ReadOnlyAccess")
        role = facts(admin("role", "create", "reader", str(trust), *arguments))
        sts = client(server, "sts", (made["access key"], made["secret key"], None))
        session = sts.assume_role(RoleArn=role["arn"], RoleSessionName="ann")["Credentials"]
        key = (session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
        client(server, "s3", key).list_buckets()
        # With a session the program signs as well.
        token = Admin(
            tmp_path,
            AWS_ACCESS_KEY_ID=key[0],
            AWS_SECRET_ACCESS_KEY=key[1],
            AWS_SESSION_TOKEN=key[2],
            AWS_ENDPOINT_URL=server.endpoint,
        )
        assert token.refused("user", "list").startswith("AccessDenied: User: arn:aws:sts::")
        # Half of it would be done: the session has its rights by what is taken away first.
        admin("role", "attach", "reader", "IAMFullAccess")
        says = token.refused("role", "delete", "--all", "Reader")
        assert "is a session of Reader" in says and "Nothing was deleted" in says
        assert len(admin.json("role", "show", "reader")["AttachedPolicies"]) == 2
        admin("role", "detach", "reader", "IAMFullAccess")
        shown = facts(admin("role", "show", "reader"))
        assert shown["longest session"] == "7200 s"
        admin("role", "disable", "reader")
        assert code_of(client(server, "s3", key).list_buckets) == "InvalidAccessKeyId"
        admin("role", "enable", "reader")
        trust.write_text(policy(statement | {"Effect": "Deny"}))
        admin("role", "set-trust", "reader", str(trust))
        assert code_of(sts.assume_role, RoleArn=role["arn"], RoleSessionName="ann") == "AccessDenied"
        admin("role", "delete", "--all", "reader")
        assert admin.json("role", "list") == []

    def test_lists_without_members_are_lists(self, server, admin):
        client(server, "iam").create_open_id_connect_provider(Url="https://idp.lab")
        shown = admin.json("provider", "show", "idp.lab")
        assert (shown["ClientIDList"], shown["ThumbprintList"], shown["Tags"]) == ([], [], [])


class TestAccounts:
    def test_a_tenant(self, server, admin, home):
        made = admin.json("account", "create", "lab")
        (home / ".aws" / "credentials").open("a").write(profile("lab", key_in(made["AccessKey"])))
        (home / ".aws" / "config").open("a").write(f"[profile lab]\nendpoint_url = {server.endpoint}\n")
        admin("--profile", "lab", "user", "create", "ann")
        assert admin.json("user", "list") == []
        lab = Admin(home, AWS_PROFILE="lab")
        assert [user["UserName"] for user in lab.json("user", "list")] == ["ann"]
        assert lab.refused("account", "list").startswith("AccessDenied")
        told = lab.refused("user", "disable", "ann")
        assert told.startswith("AccessDenied: ")
        assert "SetDisabled because only the key that the server was started with may" in told
        assert facts(admin("account", "show", "LAB"))["users"] == "1"
        admin("account", "rename", "lab", "physics")
        assert [row[1] for row in rows(admin("account", "list"))[1:] if row[-1] == "false"] == ["physics"]
        # The account of the directory is marked.
        assert [row[-1] for row in rows(admin("account", "list"))].count("true") == 1
        admin("account", "disable", "physics")
        why = f"(access key {made['AccessKey']['AccessKeyId']} of the profile lab)"
        assert lab.refused("user", "list").endswith(why)
        admin("account", "enable", made["Account"]["AccountId"])
        second = admin.json("account", "create-key", "physics")
        assert len(rows(admin("account", "list-keys", "physics"))) == 3
        admin("account", "delete-key", "physics", second["AccessKeyId"])
        assert admin.refused("account", "delete", "physics").startswith("DeleteConflict")
        admin("account", "disable", "physics")
        admin("account", "delete", "physics")
        assert admin.refused("account", "show", "physics") == "NoSuchEntity: there is no account physics"


class TestConnections:
    def test_root_of_the_directory_by_its_file(self, make_server, tmp_path):
        server = make_server(env={"SLIPWAY_ROOT_ACCESS_KEY": "", "SLIPWAY_ROOT_SECRET_KEY": ""})
        file = server.tree / ".slipway" / "credentials.toml"
        admin = Admin(tmp_path)
        by = ("--credentials-file", str(file), "--endpoint-url", server.endpoint)
        assert rows(admin("account", "list", *by))[0][0] == "ACCOUNT"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of other users that it may read")
    def test_root_with_the_file_of_the_gateways_user(self, server, tmp_path):
        """It only signs with it; a server takes no keys that another user may choose."""
        file = tmp_path / "credentials.toml"
        file.write_text(f'access_key = "{ROOT[0]}"\nsecret_key = "{ROOT[1]}"\n')
        os.chown(file, NOBODY, NOBODY)
        file.chmod(0o600)
        by = ("--credentials-file", str(file), "--endpoint-url", server.endpoint)
        assert Admin(tmp_path).json("user", "list", *by) == []
        file.chmod(0o640)
        assert "other users may read it" in Admin(tmp_path).refused("user", "list", *by, status=FAILED)

    def test_what_tls_lacks_is_said(self, make_server, tmp_path):
        certificate, key = make_certificate(tmp_path, "own", "localhost")
        server = make_server("--tls-cert", str(certificate), "--tls-key", str(key))
        root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
        url = f"https://localhost:{server.endpoint.rpartition(':')[2]}"
        admin = Admin(tmp_path, AWS_ENDPOINT_URL=url, **root)
        told = admin.refused("user", "list", status=FAILED)
        assert "give the file with the certificate of the server, or of its authority, by --ca" in told
        assert admin.json("--ca", str(certificate), "user", "list") == []
        plain = make_server()
        admin = Admin(tmp_path, AWS_ENDPOINT_URL=plain.endpoint.replace("http:", "https:"), **root)
        told = admin.refused("user", "list", status=FAILED)
        assert "does not speak TLS there: give a URL of http://" in told
        # A token of another session is left in the environment.
        admin = Admin(tmp_path, AWS_ENDPOINT_URL=plain.endpoint, AWS_SESSION_TOKEN="x", **root)
        told = admin.refused("user", "list")
        assert told.endswith(f"(access key {ROOT[0]} of the environment, with AWS_SESSION_TOKEN)")

    def test_what_is_not_there_is_said(self, admin, tmp_path):
        admin("user", "create", "ann")
        told = admin.refused("user", "detach", "ann", "AmazonS3FullAccess")
        assert told.startswith("NoSuchEntity") and "`slipway admin user show ann`" in told
        admin("group", "create", "staff")
        for wrong in ("garbage", "cn=staff,lab", "=x"):
            told = admin.refused("group", "directory", "staff", wrong)
            assert told.startswith("InvalidInput") and "is not the DN of a group" in told, told
        admin("group", "directory", "staff", "CN=Staff, OU=groups,DC=lab")
        broken = tmp_path / "broken.json"
        broken.write_text('{"Version": "2012-10-17",\n "Statement": [],}')
        told = admin.refused("user", "put-policy", "ann", "own", str(broken))
        assert "Syntax errors in policy. (line 2, column " in told, told

    def test_no_account_is_named_by_nothing(self, admin):
        """The account of the directory has no name."""
        for command in ("show", "disable", "enable", "list-keys", "create-key", "delete"):
            assert "an account has a number or a name" in admin.refused("account", command, "")
        assert [account["Status"] for account in admin.json("account", "list")] == ["Active"]

    def test_what_cannot_be_asked(self, server, admin, home, tmp_path):
        none = Admin(tmp_path / "nowhere")
        assert none.refused("user", "list", status=FAILED).startswith("no keys: set AWS_ACCESS_KEY_ID")
        assert "no profile nobody" in admin.refused("--profile", "nobody", "user", "list", status=FAILED)
        closed = admin.refused("--endpoint-url", "http://127.0.0.1:1", "user", "list", status=FAILED)
        assert closed.startswith("http://127.0.0.1:1: no connection: ")
        assert admin.refused("user", "put-policy", "a", "b", "/nowhere", status=FAILED).startswith(
            "/nowhere: "
        )
        (home / ".aws" / "credentials").write_text(profile("default", (ROOT[0], "wrong", None)))
        assert admin.refused("user", "list").endswith(f"(access key {ROOT[0]} of the profile default)")
        (home / ".aws" / "credentials").write_text("nonsense\n")
        assert "line 1: a section is expected" in admin.refused("user", "list", status=FAILED)


def commands(*above: str) -> list[tuple[str, ...]]:
    text = subprocess.run(
        [binary(), "admin", *above, "--help"], capture_output=True, text=True, check=True
    ).stdout
    below = text.partition("Commands:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in below.splitlines() if line.startswith("  ") and line[2] != " "]
    return [above, *(found for name in names if name != "help" for found in commands(*above, name))]


def test_each_command_has_an_example():
    found = commands()
    assert ("user", "attach") in found and len(found) > 50
    for words in found:
        text = subprocess.run(
            [binary(), "admin", *words, "--help"], capture_output=True, text=True, check=True
        ).stdout
        assert len(words) < 2 or "\nExample: " in text, words


@pytest.mark.skipif(os.geteuid() != 0 or SIDECARS, reason="--impersonate needs root, and no records in files")
def test_whom_a_user_is_on_the_file_system(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o755)
    env = {**KEYS, "SLIPWAY_ROOT_UID": "12100", "SLIPWAY_ROOT_GID": "12100"}
    key_file = str(master_key(tmp_path))
    server = make_server("--impersonate", "--master-key-file", key_file, tree=tree, env=env)
    root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
    admin = Admin(tmp_path, AWS_ENDPOINT_URL=server.endpoint, **root)
    made = admin.json("user", "create", "ann", "--policy", "AmazonS3FullAccess", "--key")["AccessKey"]
    ann = client(server, "s3", (made["AccessKeyId"], made["SecretAccessKey"], None))
    # Nobody, until it is said who.
    assert code_of(ann.create_bucket, Bucket="anns") == "AccessDenied"
    assert "12101:12101:12200" in admin("user", "set-posix", "ann", "12101:12101:12200")
    assert ["posix", "12101:12101:12200"] in rows(admin("user", "show", "ann"))
    assert admin.json("user", "show", "ann")["PosixIdentity"] == "12101:12101:12200"
    poll(lambda: code_or_none(ann.create_bucket, Bucket="anns") is None, 10)
    ann.put_object(Bucket="anns", Key="a", Body=b"1")
    status = (tree / "anns" / "a").stat()
    assert (status.st_uid, status.st_gid) == (12101, 12101)
    # A supplementary group.
    (tree / "anns" / "b").write_bytes(b"2")
    os.chown(tree / "anns" / "b", 0, 12200)
    (tree / "anns" / "b").chmod(0o040)
    assert ann.get_object(Bucket="anns", Key="b")["Body"].read() == b"2"
    admin("user", "delete-posix", "ann")
    poll(lambda: code_or_none(ann.get_object, Bucket="anns", Key="a") == "AccessDenied", 10)
    for wrong in (
        "0:100",
        "100:0",
        "12101:12101:0",
        "root",
        "12101:x",
        "4294967295:1",
        "-1:1",
        "a/b",
        "12101:12101:",
    ):
        assert "InvalidInput" in admin.refused("user", "set-posix", "--", "ann", wrong)
    assert "give UID:GID" in admin.refused("user", "set-posix", "ann", "12101")
    admin.refused("role", "set-posix", "nobody", "12101:12101")
    # With which each request would be refused, as far as this server knows.
    for identity, why in (
        ("500:100", "its uid is below --uid-min (1000) of the server"),
        ("daemon", "daemon is 1:1: its uid is below --uid-min (1000)"),
        ("nosuchaccount", "the server's system has no account nosuchaccount"),
    ):
        refused = admin.refused("user", "set-posix", "ann", identity)
        assert "InvalidInput" in refused and why in refused, refused
    assert "nobody" in admin("user", "set-posix", "ann", "nobody")
    server.stop()
    # A server that uses no POSIX identities has no rules for them.
    server = make_server("--master-key-file", key_file, tree=tree, env=env)
    admin = Admin(tmp_path, AWS_ENDPOINT_URL=server.endpoint, **root)
    assert "500:100" in admin("user", "set-posix", "ann", "500:100")
    assert "InvalidInput" in admin.refused("user", "set-posix", "ann", "0:0")
