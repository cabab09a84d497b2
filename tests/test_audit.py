"""--audit-log: a line for each decision, who and what decided, and nothing secret in any of them."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError
from test_admin import ours
from test_operations import look, metrics
from test_reload import reload

from support import expect
from support.identities import (
    ROOT,
    allow,
    client,
    code_of,
    deny,
    key_of,
    master_key,
    new_user,
    policy,
)
from support.server import ACCESS_KEY, NOBODY, SECRET_KEY, StartFailed, acting_as, binary
from support.wire import poll

WHO = {"kind", "account", "principal", "principal_id", "access_key"}


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def server(make_server, tmp_path, log):
    keys = ("--master-key-file", str(master_key(tmp_path)))
    return make_server("--durability", "none", *keys, "--audit-log", str(log), "--ops-listen", "127.0.0.1:0")


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


@pytest.fixture
def lab(server):
    """A bucket with an object, of root's."""
    s3 = client(server, "s3")
    s3.create_bucket(Bucket="lab")
    s3.put_object(Bucket="lab", Key="k", Body=b"text")
    return s3


def all_lines(log: Path) -> list[dict]:
    text = log.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def lines_of(log: Path, answer: dict, count: int = 1) -> list[dict]:
    """The lines of a request, without what is the same in all of them."""
    wanted = answer["ResponseMetadata"]["RequestId"]

    def found() -> list[dict]:
        lines = [line for line in all_lines(log) if line["request_id"] == wanted]
        # Those of different threads may change places.
        return sorted(lines, key=lambda line: line["time"])

    assert poll(lambda: len(found()) >= count, 10), log.read_text()
    lines = found()
    assert len(lines) == count, lines
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("time"))
        assert line.pop("remote_ip") == "127.0.0.1"
        del line["request_id"]
    return lines


def line_of(log: Path, answer: dict) -> dict:
    return lines_of(log, answer)[0]


def raw_line(log: Path, answer) -> dict:
    """The line of a request by the raw client."""
    return line_of(log, {"ResponseMetadata": {"RequestId": answer.headers["x-amz-request-id"]}})


def refusal(call, **members) -> dict:
    """The answer of a call that is refused."""
    with pytest.raises(ClientError) as raised:
        call(**members)
    return raised.value.response


def without_who(line: dict) -> dict:
    return {name: value for name, value in line.items() if name not in WHO}


def test_an_identity_policy_allows(server, account, lab, log):
    key = new_user(
        server, "ann", deny("s3:Delete*"), allow("s3:GetObject", "arn:aws:s3:::lab/*", Sid="Reads")
    )
    line = line_of(log, client(server, "s3", key).get_object(Bucket="lab", Key="k"))
    assert line.pop("principal_id").startswith("AIDA")
    assert line == {
        "kind": "user",
        "account": account,
        "principal": f"arn:aws:iam::{account}:user/ann",
        "access_key": key[0],
        "operation": "GetObject",
        "outcome": "allow",
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::lab/k",
        "decided_by": "statement",
        "statements": [
            {
                "source": "identity",
                "policy_number": 1,
                "policy": "inline:user/ann/own",
                "statement": 2,
                "sid": "Reads",
            }
        ],
    }


def test_a_managed_policy_of_a_group_and_a_boundary(server, account, lab, log):
    iam, key = client(server, "iam"), new_user(server, "ann")
    made = {
        name: iam.create_policy(PolicyName=name, PolicyDocument=policy(allow("s3:Get*")))["Policy"]["Arn"]
        for name in ("reads", "limit")
    }
    iam.create_group(GroupName="staff")
    iam.attach_group_policy(GroupName="staff", PolicyArn=made["reads"])
    iam.add_user_to_group(GroupName="staff", UserName="ann")
    iam.put_user_permissions_boundary(UserName="ann", PermissionsBoundary=made["limit"])
    s3 = client(server, "s3", key)
    line = line_of(log, s3.get_object(Bucket="lab", Key="k"))
    told = [(one["source"], one["policy"], one["statement"]) for one in line["statements"]]
    assert told == [("identity", made["reads"], 1), ("boundary", made["limit"], 1)]
    line = line_of(log, refusal(s3.delete_object, Bucket="lab", Key="k"))
    assert line["decided_by"] == "no-statement" and line["lacking"] == ["identity", "boundary"]


def test_the_policy_of_a_bucket_allows_and_denies(server, account, lab, log):
    key = new_user(server, "ann", allow("s3:*"))
    arn = f"arn:aws:iam::{account}:user/ann"
    document = policy(
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::lab/*"},
        {
            "Sid": "NoDeletes",
            "Effect": "Deny",
            "Principal": {"AWS": arn},
            "Action": "s3:DeleteObject",
            "Resource": "arn:aws:s3:::lab/*",
        },
    )
    lab.delete_public_access_block(Bucket="lab")
    lab.put_bucket_policy(Bucket="lab", Policy=document)
    answer = refusal(client(server, "s3", key).delete_object, Bucket="lab", Key="k")
    line = line_of(log, answer)
    assert (line["outcome"], line["principal"]) == ("deny", arn)
    assert line["statements"] == [
        {"source": "resource", "policy_number": 1, "statement": 2, "sid": "NoDeletes"}
    ]
    answer = server.raw.get("/lab/k", anonymous=True)
    assert answer.status == 200
    assert without_who(raw_line(log, answer)) == {
        "operation": "GetObject",
        "outcome": "allow",
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::lab/k",
        "decided_by": "statement",
        "statements": [{"source": "resource", "policy_number": 1, "statement": 1}],
    }


def test_nothing_allows(server, lab, log):
    key = new_user(server, "ann", allow("s3:GetObject"))
    line = line_of(log, refusal(client(server, "s3", key).put_object, Bucket="lab", Key="new", Body=b""))
    assert without_who(line) == {
        "operation": "PutObject",
        "outcome": "deny",
        "action": "s3:PutObject",
        "resource": "arn:aws:s3:::lab/new",
        "decided_by": "no-statement",
        "lacking": ["identity"],
    }
    anonymous = raw_line(log, server.raw.get("/lab/k", anonymous=True))
    assert (anonymous["kind"], anonymous["lacking"]) == ("anonymous", ["resource"])
    assert anonymous.keys().isdisjoint(WHO - {"kind"})


def test_roots(server, account, lab, log):
    line = line_of(log, lab.get_object(Bucket="lab", Key="k"))
    root = {"kind": "root", "account": account, "principal": f"arn:aws:iam::{account}:root"}
    assert root.items() <= line.items() and line["access_key"] == ACCESS_KEY
    assert (line["outcome"], line["decided_by"]) == ("allow", "root")
    key = client(server, "iam").create_access_key()["AccessKey"]
    of_account = client(server, "s3", (key["AccessKeyId"], key["SecretAccessKey"], None))
    line = line_of(log, of_account.get_object(Bucket="lab", Key="k"))
    assert (line["kind"], line["decided_by"]) == ("account-root", "account-root")
    line = line_of(log, of_account.list_buckets())
    assert (line["action"], line["resource"]) == ("s3:ListAllMyBuckets", "*")


def test_a_copy_has_two_decisions(server, lab, log):
    key = new_user(server, "ann", allow("s3:*", "arn:aws:s3:::lab/*", Sid="All"))
    s3 = client(server, "s3", key)
    lines = lines_of(log, s3.copy_object(Bucket="lab", Key="copy", CopySource="lab/k"), 2)
    assert [(line["action"], line["resource"]) for line in lines] == [
        ("s3:PutObject", "arn:aws:s3:::lab/copy"),
        ("s3:GetObject", "arn:aws:s3:::lab/k"),
    ]
    assert {line["operation"] for line in lines} == {"CopyObject"}
    lab.create_bucket(Bucket="other")
    answer = refusal(s3.copy_object, Bucket="lab", Key="copy", CopySource="other/k")
    assert [line["outcome"] for line in lines_of(log, answer, 2)] == ["allow", "deny"]


def test_each_key_of_many_deletions(server, lab, log):
    key = new_user(server, "ann", allow("s3:DeleteObject", "arn:aws:s3:::lab/a*"))
    keys = [{"Key": name} for name in ("a1", "b1", "a2")]
    answer = client(server, "s3", key).delete_objects(Bucket="lab", Delete={"Objects": keys})
    lines = lines_of(log, answer, 3)
    assert [line["outcome"] for line in lines] == ["allow", "deny", "allow"]


def test_a_decision_by_the_tags_of_an_object_is_told_once(server, lab, log):
    tagged = {"StringEquals": {"s3:ExistingObjectTag/a": "b"}}
    key = new_user(server, "ann", allow("s3:GetObject", Condition=tagged), allow("s3:ListBucket"))
    line = line_of(log, refusal(client(server, "s3", key).get_object, Bucket="lab", Key="k"))
    assert (line["outcome"], line["lacking"]) == ("deny", ["identity"])


def test_actions_of_iam(server, account, log):
    line = line_of(log, client(server, "iam").create_user(UserName="bob"))
    assert (line["operation"], line["action"], line["decided_by"]) == ("CreateUser", "iam:CreateUser", "root")
    assert line["resource"] == f"arn:aws:iam::{account}:user/bob"
    key = new_user(server, "ann", allow("iam:GetUser", Sid="Looks"))
    iam, sts = client(server, "iam", key), client(server, "sts", key)
    line = line_of(log, iam.get_user(UserName="bob"))
    assert (line["outcome"], line["statements"][0]["sid"]) == ("allow", "Looks")
    line = line_of(log, refusal(iam.delete_user, UserName="bob"))
    assert (line["outcome"], line["action"], line["lacking"]) == ("deny", "iam:DeleteUser", ["identity"])
    line = line_of(log, sts.get_caller_identity())
    assert (line["action"], line["decided_by"]) == ("sts:GetCallerIdentity", "anybody")


def test_whom_actions_are_about(server, account, log):
    """The resource of each action that is done with something is its ARN, also of Slipway's own; keys and policies
    are named besides."""
    iam = client(server, "iam")
    iam.create_user(UserName="bob", Path="/staff/")
    trust = {"Effect": "Allow", "Principal": {"AWS": account}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=policy(trust))
    iam.create_group(GroupName="dev")
    bob, role = f"arn:aws:iam::{account}:user/staff/bob", f"arn:aws:iam::{account}:role/reader"

    def line(call, **members) -> dict:
        return line_of(log, call(**members))

    reads = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
    for call, members in (
        (iam.attach_user_policy, {"PolicyArn": reads}),
        (iam.put_user_permissions_boundary, {"PermissionsBoundary": reads}),
        (iam.detach_user_policy, {"PolicyArn": reads}),
    ):
        told = line(call, UserName="bob", **members)
        assert (told["resource"], told["target_policy"]) == (bob, reads)
    assert "target_policy" not in line(iam.delete_user_permissions_boundary, UserName="bob")
    made = iam.create_policy(PolicyName="own", PolicyDocument=policy(allow("s3:GetObject")))
    own = made["Policy"]["Arn"]
    assert line_of(log, made)["resource"] == line(iam.get_policy, PolicyArn=own)["resource"] == own
    key = iam.create_access_key(UserName="bob")["AccessKey"]["AccessKeyId"]
    told = line(iam.update_access_key, UserName="bob", AccessKeyId=key, Status="Inactive")
    assert (told["resource"], told["target_key"]) == (bob, key)
    told = line(iam.get_access_key_last_used, AccessKeyId=key)
    assert (told["resource"], told["target_key"]) == (bob, key)
    # What is no key of the user's may be a secret.
    told = line_of(log, refusal(iam.delete_access_key, UserName="bob", AccessKeyId="wJalrXUtnFEMIK7MDENGbPx"))
    assert told["resource"] == bob and "target_key" not in told
    told = line(iam.delete_access_key, UserName="bob", AccessKeyId=key)
    assert (told["resource"], told["target_key"]) == (bob, key)

    def mine(action: str, **members) -> dict:
        _, document = ours(server, action, **members)
        request = document.findtext(".//{*}RequestId")
        return line_of(log, {"ResponseMetadata": {"RequestId": request}})

    for action, members, resource in (
        ("SetDisabled", {"UserName": "bob", "Disabled": "true"}, bob),
        ("SetDisabled", {"RoleName": "reader", "Disabled": "true"}, role),
        ("SetPosixIdentity", {"UserName": "bob", "Identity": "1001:100"}, bob),
        ("SetPosixIdentity", {"RoleName": "reader", "Identity": "1001:100"}, role),
        (
            "SetGroupOfDirectory",
            {"GroupName": "dev", "DirectoryGroup": "cn=dev,dc=lab"},
            f"arn:aws:iam::{account}:group/dev",
        ),
        ("GetAccount", {"AccountId": account}, f"arn:aws:iam::{account}:root"),
        ("ListAccounts", {}, "*"),
        ("SetBucketOwner", {"BucketName": "lab", "AccountId": account}, "arn:aws:s3:::lab"),
    ):
        told = mine(action, **members)
        assert (told["action"], told["decided_by"]) == (f"slipway:{action}", "administrator")
        assert told["resource"] == resource, action
    other = mine("CreateAccount", AccountName="lab")
    assert other["resource"] == "*", "it has no id yet"


def test_sessions_of_roles(server, account, lab, log):
    ann = new_user(server, "ann", allow("sts:AssumeRole"))
    trust = {"Sid": "Ann", "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:user/ann"}}
    actions = {"Action": ["sts:AssumeRole", "sts:SetSourceIdentity"]}
    iam, sts = client(server, "iam"), client(server, "sts", ann)
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=policy({**trust, **actions}))
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=policy(allow("s3:GetObject")))
    role = f"arn:aws:iam::{account}:role/reader"
    answer = sts.assume_role(RoleArn=role, RoleSessionName="night-run", SourceIdentity="ann")
    lines = lines_of(log, answer, 2)
    assert [line["action"] for line in lines] == ["sts:AssumeRole", "sts:SetSourceIdentity"]
    assert all(line["statements"][-1]["sid"] == "Ann" and line["resource"] == role for line in lines)
    key = key_of(answer["Credentials"])
    line = line_of(log, client(server, "s3", key).get_object(Bucket="lab", Key="k"))
    assert line["kind"] == "role" and line["session"] == "night-run" and line["source_identity"] == "ann"
    assert line["principal"] == f"arn:aws:sts::{account}:assumed-role/reader/night-run"
    assert line["issuer"] == role and line["access_key"] == key[0]
    assert line["statements"][0]["policy"] == "inline:role/reader/p"
    answer = refusal(sts.assume_role, RoleArn=role + "x", RoleSessionName="night-run")
    line = line_of(log, answer)
    assert (line["outcome"], line["action"], line["resource"]) == ("deny", "sts:AssumeRole", role + "x")


def test_who_cannot_be_verified(server, lab, log):
    for service, call, members in (
        ("s3", "get_object", {"Bucket": "lab", "Key": "k"}),
        ("iam", "list_users", {}),
    ):
        for key in (("AKIANOBODY", SECRET_KEY, None), (ACCESS_KEY, "another-secret-key", None)):
            answer = refusal(getattr(client(server, service, key), call), **members)
            line = line_of(log, answer)
            assert (line["outcome"], line["decided_by"]) == ("deny", "authentication")
            assert line["error"] == answer["Error"]["Code"] and not WHO & line.keys()
            # A key that does not exist may be a secret in the wrong place.
            assert line.get("presented_key") == (ACCESS_KEY if key[0] == ACCESS_KEY else None)
    line = line_of(
        log, refusal(client(server, "s3", ("A" * 4 + "KIA" + "2" * 16, SECRET_KEY, None)).list_buckets)
    )
    assert "presented_key" not in line
    line = line_of(log, refusal(client(server, "s3", ("AKIA" + "2" * 16, SECRET_KEY, None)).list_buckets))
    assert line["presented_key"] == "AKIA" + "2" * 16


def test_a_key_that_is_disabled(server, lab, log):
    iam, key = client(server, "iam"), new_user(server, "ann", allow("s3:*"))
    client(server, "s3", key).list_buckets()
    iam.update_access_key(UserName="ann", AccessKeyId=key[0], Status="Inactive")
    for service, call in (("s3", "list_buckets"), ("iam", "list_users")):
        line = line_of(log, refusal(getattr(client(server, service, key), call)))
        assert (line["disabled_key"], line["decided_by"]) == (key[0], "authentication")
        assert not WHO & line.keys()


@pytest.fixture(params=["as nobody", "--impersonate"])
def of_nobody(make_server, request):
    """A server that runs as nobody, or whose requests act as a user, and its log: the kernel may refuse something."""
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    # pytest's own directories are closed to others, and the checkout may be.
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        tree, logs = place / "tree", place / "logs"
        is_user = request.param == "--impersonate"
        user = (12101, 12100) if is_user else (NOBODY, NOBODY)
        for made in (tree, logs):
            made.mkdir()
            os.chown(made, *user)
        if is_user:
            # The tree itself is the gateway's.
            os.chown(tree, 0, 0)
        log, program = logs / "audit.log", shutil.copy(binary(), place / "slipway")
        options, env = acting_as(user if is_user else None)
        server = make_server(
            "--audit-log", str(log), *options, tree=tree, as_nobody=not is_user, program=program, env=env
        )
        client(server, "s3").create_bucket(Bucket="lab")
        yield server, log
        server.stop()


def test_a_file_that_the_server_may_not_read(of_nobody):
    server, log = of_nobody
    s3 = client(server, "s3")
    s3.put_object(Bucket="lab", Key="k", Body=b"text")
    (server.tree / "lab" / "k").chmod(0)
    lines = lines_of(log, refusal(s3.get_object, Bucket="lab", Key="k"), 2)
    told = [(line["outcome"], line["decided_by"], line.get("error")) for line in lines]
    assert told == [("allow", "root", None), ("deny", "file-system", "AccessDenied")]


def test_each_of_many_keys_that_the_kernel_refuses(of_nobody):
    server, log = of_nobody
    s3 = client(server, "s3")
    for key in ("closed/a", "closed/b", "open/a"):
        s3.put_object(Bucket="lab", Key=key, Body=b"text")
    (server.tree / "lab" / "closed").chmod(0o555)
    keys = [{"Key": key} for key in ("closed/a", "open/a", "closed/b")]
    answer = s3.delete_objects(Bucket="lab", Delete={"Objects": keys})
    assert [error["Code"] for error in answer["Errors"]] == ["AccessDenied"] * 2
    lines = lines_of(log, answer, 5)
    assert [line["decided_by"] for line in lines[:3]] == ["root"] * 3
    refused = sorted(lines[3:], key=lambda line: line["resource"])
    assert [line["resource"] for line in refused] == [
        "arn:aws:s3:::lab/closed/a",
        "arn:aws:s3:::lab/closed/b",
    ]
    for line in refused:
        told = (line["outcome"], line["decided_by"], line["error"], line["operation"])
        assert told == ("deny", "file-system", "AccessDenied", "DeleteObjects")


def test_a_read_only_server_refuses(make_server, log):
    first = make_server()
    client(first, "s3").create_bucket(Bucket="lab")
    first.stop()
    s3 = client(make_server("--read-only", "--audit-log", str(log), tree=first.tree), "s3")
    lines = lines_of(log, refusal(s3.put_object, Bucket="lab", Key="n", Body=b""), 2)
    assert lines[0]["outcome"] == "allow"
    assert (lines[1]["outcome"], lines[1]["decided_by"], lines[1]["error"]) == (
        "deny",
        "server",
        "AccessDenied",
    )


def test_no_secrets(server, account, lab, log):
    iam = client(server, "iam")
    ann = new_user(server, "ann", allow("sts:*"), allow("s3:*"), allow("iam:*"))
    sts, s3 = client(server, "sts", ann), client(server, "s3", ann)
    session = key_of(sts.get_session_token()["Credentials"])
    federated = key_of(
        sts.get_federation_token(
            Name="web", Policy=policy(allow("s3:GetObject"), allow("s3:*", "arn:aws:s3:::secret-limit"))
        )["Credentials"]
    )
    signatures = []
    for key in (ann, session, federated):
        for version, name in (("s3v4", "X-Amz-Signature"), ("s3", "Signature")):
            signed = client(server, "s3", key, signature_version=version)
            url = signed.generate_presigned_url("get_object", Params={"Bucket": "lab", "Key": "k"})
            target = url.removeprefix(server.endpoint)
            assert server.raw.get(target, anonymous=True).status == 200
            # Encoded once more, it is the path of a request that nobody signed.
            answer = server.raw.get("/lab/" + quote(target.removeprefix("/lab/")), anonymous=True)
            assert answer.status == 403 and "REDACTED" in raw_line(log, answer)["resource"]
            server.raw.get(target.replace(f"{name}=", f"{name}=0"), anonymous=True)
            signatures.append(re.search(rf"{name}=([^&]+)", url)[1])
    new = iam.create_access_key(UserName="ann")["AccessKey"]["SecretAccessKey"]
    code_of(client(server, "s3", (session[0], session[1], "broken-token-of-mine")).list_buckets)
    s3.put_object(Bucket="lab", Key="s", Body=b"", Metadata={"password": "hush-hush"})
    server.stop()
    text = log.read_text()
    for secret in (SECRET_KEY, ann[1], session[1], session[2], federated[1], federated[2], new, *signatures):
        assert secret and secret not in text
    for word in ("broken-token-of-mine", "hush-hush", "secret-limit", "SignedHeaders=host,"):
        assert word not in text
    assert text.count("\n") > 20 and ann[0] in text and session[0] in text


def test_no_line_is_forged(server, account, lab, log):
    """What a client writes into a key or the name of a session stays there."""
    key = 'k"}\n{"outcome":"allow","principal":"root"}\u2028\u001b[31m'
    ann = new_user(server, "ann", allow("s3:GetObject"))
    line = line_of(log, refusal(client(server, "s3", ann).put_object, Bucket="lab", Key=key, Body=b""))
    assert (line["outcome"], line["resource"]) == ("deny", f"arn:aws:s3:::lab/{key}")
    answer = server.raw.get("/lab/" + quote(key), anonymous=True)
    assert raw_line(log, answer)["resource"] == f"arn:aws:s3:::lab/{key}"
    assert "\u001b" not in log.read_text() and "\u2028" not in log.read_text()


def test_rotation(lab, server, log):
    """No line is lost, and none is in both."""
    old = log.with_name("audit.log.1")
    for n in range(60):
        lab.head_object(Bucket="lab", Key="k")
        if n == 30:
            log.rename(old)
            assert "nothing" in reload(server)
    server.stop()
    found = [line for file in (old, log) for line in all_lines(file) if line.get("operation") == "HeadObject"]
    assert len(found) == len({line["request_id"] for line in found}) == 60
    assert all_lines(old) and all_lines(log)


def test_a_reload_takes_another_file(make_server, tmp_path):
    config, first, second = (tmp_path / name for name in ("slipway.toml", "first.log", "second.log"))
    config.write_text(f"audit-log = '{first}'\n")
    server = make_server("--config", str(config))
    server.raw.get("/")
    config.write_text(f"audit-log = '{tmp_path}/nowhere/audit.log'\n")
    assert "--audit-log" in (says := reload(server, "not reloaded")) and "nowhere" in says
    config.write_text(f"audit-log = '{second}'\n")
    assert "--audit-log" in reload(server)
    requests = 1

    def is_taken() -> bool:
        """True once the log's thread has changed the file."""
        nonlocal requests
        server.raw.get("/")
        requests += 1
        return bool(second.read_text())

    assert poll(is_taken, 10)
    config.write_text("")
    assert "--audit-log (turning it on or off)" in reload(server, "needs a restart")
    before = second.read_text().count("\n")
    server.raw.get("/")
    server.stop()
    assert second.read_text().count("\n") > before
    assert first.read_text().count("\n") + second.read_text().count("\n") == requests + 1


def test_strangers_cannot_read_it(server, log):
    assert log.stat().st_mode & 0o777 == 0o640 & ~os.umask(0o022)
    assert log.stat().st_mode & 0o007 == 0


def test_stderr(make_server):
    server = make_server("--audit-log", "stderr")
    answer = server.raw.get("/")
    assert poll(lambda: answer.headers["x-amz-request-id"] in server.log, 10)
    line = next(line for line in server.log.splitlines() if answer.headers["x-amz-request-id"] in line)
    assert json.loads(line)["action"] == "s3:ListAllMyBuckets"


def test_a_file_that_can_not_be_opened_ends_the_start(make_server, tmp_path):
    with pytest.raises(StartFailed, match=f"--audit-log {tmp_path}: Is a directory"):
        make_server("--audit-log", str(tmp_path))


def test_what_does_not_fit_is_counted(make_server):
    server = make_server("--audit-log", "/dev/full", "--ops-listen", "127.0.0.1:0")
    for _ in range(5):
        assert server.raw.get("/").status == 200
    assert poll(lambda: metrics(server)['slipway_audit_log_lines_total{result="dropped"}'] == 5, 10)
    assert metrics(server)['slipway_audit_log_lines_total{result="written"}'] == 0
    assert server.log.count("lines of the audit log were dropped") == 1


def test_what_is_required_is_kept(make_server, tmp_path):
    """No request is served while its line could not be written, and no line is lost."""
    config, log = tmp_path / "slipway.toml", tmp_path / "audit.log"
    config.write_text("audit-log = '/dev/full'\naudit-log-required = true\nops-listen = '127.0.0.1:0'\n")
    server = make_server("--config", str(config))
    served = []

    def is_refused() -> bool:
        answer = server.raw.get("/")
        if answer.status == 200:
            served.append(answer.headers["x-amz-request-id"])
        return answer.status == 503

    assert poll(is_refused, 10)
    assert served
    expect.error(server.raw.get("/"), "ServiceUnavailable")
    status, why = look(server, "/-/ready")
    assert status == 503 and "the audit log cannot be written" in why
    config.write_text(config.read_text().replace("/dev/full", str(log)))
    assert "--audit-log" in reload(server)
    assert poll(lambda: not is_refused(), 10)
    assert metrics(server)['slipway_audit_log_lines_total{result="dropped"}'] == 0
    server.stop()
    assert sorted(line["request_id"] for line in all_lines(log)) == sorted(served)


def test_off_there_is_nothing(make_server):
    server = make_server("--ops-listen", "127.0.0.1:0")
    client(server, "s3", ROOT).list_buckets()
    assert not any(name.startswith("slipway_audit_log_lines_total{") for name in metrics(server))
