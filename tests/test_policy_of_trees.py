"""`slipway policy explain --tree`: what a directory that is served has to say about a request."""

import json
import os
import subprocess

import pytest
from botocore.exceptions import ClientError

from support.identities import ROOT, allow, client, master_key, new_user, policy
from support.server import binary


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


@pytest.fixture(autouse=True)
def _lab(server):
    client(server, "s3").create_bucket(Bucket="lab")


def run(server, *words: str, status: int = 0, tree=None) -> subprocess.CompletedProcess:
    command = [str(binary()), "policy", "explain", *words, "--tree", str(tree or server.tree)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert told.returncode == status, told.stdout + told.stderr
    assert "panicked" not in told.stderr
    return told


def explain(server, *words: str, status: int = 0) -> dict:
    return json.loads(run(server, *words, "--json", status=status).stdout)


GET = ("s3:GetObject", "arn:aws:s3:::lab/k")


def deciding(told: dict) -> list[tuple]:
    return [(one["policy"], one["statement"], one["sid"]) for one in told["statements"] if one["decides"]]


def test_a_user_and_its_groups(server, account):
    iam = client(server, "iam")
    new_user(server, "ann", allow("s3:ListBucket", Sid="Lists"))
    assert explain(server, *GET, "--user", "ann", status=1)["decision"] == "not allowed"
    arn = iam.create_policy(PolicyName="reads", PolicyDocument=policy(allow("s3:Get*", Sid="Reads")))
    iam.create_group(GroupName="staff")
    iam.attach_group_policy(GroupName="staff", PolicyArn=arn["Policy"]["Arn"])
    iam.add_user_to_group(GroupName="staff", UserName="ann")
    told = explain(server, *GET, "--user", "ann")
    assert told["principal"] == f"arn:aws:iam::{account}:user/ann"
    assert deciding(told) == [(arn["Policy"]["Arn"], 1, "Reads")]
    assert [one["policy"] for one in told["statements"]] == ["inline:user/ann/own", arn["Policy"]["Arn"]]
    assert deciding(explain(server, *GET, "--principal", told["principal"])) == deciding(told)


def test_the_kernel_may_decide_besides(server):
    """Where it is not known whom the principal is on the file system, the answer says what it leaves out."""
    new_user(server, "ann", allow("s3:*"), allow("iam:*"))
    says = "Where gateways have --impersonate, the kernel decides after them"
    allowed = run(server, *GET, "--user", "ann").stdout.splitlines()
    assert allowed[0].startswith("allowed: ") and allowed[-1].startswith("note: ") and says in allowed[-1]
    assert says in explain(server, *GET, "--user", "ann")["notes"][-1]
    for words in (
        (*GET, "--policies-alone", "--user", "ann"),
        ("s3:PutBucketPolicy", "arn:aws:s3:::lab", "--user", "ann"),
        ("iam:GetUser", "arn:aws:iam::aws:user/bob", "--user", "ann"),
    ):
        assert says not in run(server, *words).stdout, words
    for words in ((*GET, "--principal", "anonymous"), (*GET, "--impersonate", "--user", "ann")):
        assert says not in run(server, *words, status=1).stdout, words


def test_a_user_without_policies(server, account):
    new_user(server, "ann")
    ann = f"arn:aws:iam::{account}:user/ann"
    told = run(server, *GET, "--user", "ann", status=1).stdout.splitlines()
    assert told[1:] == [f"{ann} has no policies, and the bucket lab has none"]
    told = run(server, "iam:GetUser", ann, "--user", "ann", status=1).stdout.splitlines()
    assert told[1:] == [f"{ann} has no policies"]


def test_the_policy_of_the_bucket(server, account):
    new_user(server, "ann", allow("s3:*"))
    statement = {"Sid": "NotNow", "Effect": "Deny", "Principal": "*", "Action": "s3:GetObject"}
    document = policy({**statement, "Resource": "arn:aws:s3:::lab/*"})
    client(server, "s3").put_bucket_policy(Bucket="lab", Policy=document)
    assert run(server, *GET, "--user", "ann", status=1).stdout.splitlines() == [
        "denied: a statement denies it, which counts more than all that allow it",
        "policy of the bucket lab: line 1: statement 1 (NotNow) denies it, as it does everybody",
        "inline:user/ann/own: line 1: statement 1 allows it",
    ]
    assert deciding(explain(server, *GET, "--principal", "anonymous", status=1)) == [
        ("policy of the bucket lab", 1, "NotNow")
    ]
    # What a gateway does is the same.
    client(server, "s3").delete_bucket_policy(Bucket="lab")
    assert explain(server, *GET, "--user", "ann")["decision"] == "allowed"


def test_who_is_named(server, account):
    """Stored documents have the unique ids of those whom they name."""
    new_user(server, "ann")
    role = {"Effect": "Allow", "Principal": {"AWS": account}, "Action": "sts:AssumeRole"}
    client(server, "iam").create_role(RoleName="reader", AssumeRolePolicyDocument=policy(role))
    named = [f"arn:aws:iam::{account}:user/ann", f"arn:aws:iam::{account}:role/reader"]
    grant = {"Effect": "Allow", "Principal": {"AWS": named}, "Action": "s3:GetObject"}
    document = policy({**grant, "Resource": "arn:aws:s3:::lab/*"})
    client(server, "s3").put_bucket_policy(Bucket="lab", Policy=document)
    told = explain(server, *GET, "--user", "ann")
    assert told["reason"] == "the resource policy allows it to the principal by name"
    session = f"arn:aws:sts::{account}:assumed-role/reader/night"
    assert "to the role" in explain(server, *GET, "--principal", session)["reason"]


def test_boundaries_and_tags(server):
    iam = client(server, "iam")
    tagged = {"StringEquals": {"aws:PrincipalTag/team": "red"}}
    new_user(server, "ann", allow("s3:GetObject", Condition=tagged))
    assert explain(server, *GET, "--user", "ann", status=1)["decision"] == "not allowed"
    iam.tag_user(UserName="ann", Tags=[{"Key": "team", "Value": "red"}])
    assert explain(server, *GET, "--user", "ann")["decision"] == "allowed"
    limit = iam.create_policy(PolicyName="limit", PolicyDocument=policy(allow("s3:PutObject")))
    iam.put_user_permissions_boundary(UserName="ann", PermissionsBoundary=limit["Policy"]["Arn"])
    told = explain(server, *GET, "--user", "ann", status=1)
    assert told["reason"] == "other policies allow it, but the boundary does not"


def test_roles(server, account):
    iam = client(server, "iam")
    new_user(server, "ann", allow("sts:AssumeRole"))
    ann = {"AWS": f"arn:aws:iam::{account}:user/ann"}
    trust = {"Sid": "Ann", "Effect": "Allow", "Principal": ann, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="reader", Path="/r/", AssumeRolePolicyDocument=policy(trust))["Role"]
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=policy(allow("s3:Get*")))
    session = f"arn:aws:sts::{account}:assumed-role/reader/night"
    assert deciding(explain(server, *GET, "--principal", session)) == [("inline:role/reader/p", 1, None)]
    told = explain(server, "sts:AssumeRole", role["Arn"], "--user", "ann")
    assert ("trust policy", 1, "Ann") in deciding(told)
    client(server, "iam").create_user(UserName="bob")
    assert (
        explain(server, "sts:AssumeRole", role["Arn"], "--user", "bob", status=1)["decision"] == "not allowed"
    )


def test_what_is_not_there(server, account, tmp_path):
    new_user(server, "ann")
    for words, said in (
        ((*GET, "--user", "bob"), "there is no user"),
        (
            (*GET, "--principal", f"arn:aws:iam::{account}:user/x/ann"),
            f"did you mean arn:aws:iam::{account}:user/ann",
        ),
        ((*GET, "--principal", "arn:aws:iam::999988887777:user/ann"), "there is no account 999988887777"),
        (("s3:GetObject", "arn:aws:s3:::none/k", "--user", "ann"), "there is no bucket none"),
        (("sts:AssumeRole", f"arn:aws:iam::{account}:role/x", "--user", "ann"), "there is no role"),
        ((*GET, "--user", "ann", "--identity", "x.json"), "cannot be used with"),
        ((*GET,), "--principal"),
    ):
        assert said in run(server, *words, status=2).stderr, words
    assert "no gateway has served it" in run(server, *GET, "--user", "ann", status=2, tree=tmp_path).stderr


def test_nothing_is_written(server):
    new_user(server, "ann", allow("s3:*"))
    server.stop()
    before = {path: path.stat().st_mtime_ns for path in server.tree.rglob("*")}
    explain(server, *GET, "--user", "ann")
    assert {path: path.stat().st_mtime_ns for path in server.tree.rglob("*")} == before


def test_whoever_is_disabled_is_refused(server, account):
    """Whatever the policies allow, as a gateway does; this is said first."""
    key = new_user(server, "ann", allow("s3:*"))
    assert explain(server, *GET, "--user", "ann")["decision"] == "allowed"
    admin = [str(binary()), "admin", "user"]
    root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
    env = {**os.environ, **root, "AWS_ENDPOINT_URL": server.endpoint}
    subprocess.run([*admin, "disable", "ann"], env=env, check=True, timeout=30, capture_output=True)
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        client(server, "s3", key).get_object(Bucket="lab", Key="k")
    told = run(server, *GET, "--user", "ann", status=1).stdout.splitlines()
    assert told[0].startswith("refused: the user ann is disabled: all its keys and sessions are refused")
    assert told[1] == "policies: allowed: the principal's own policies allow it"
    told = explain(server, *GET, "--user", "ann", status=1)
    assert told["decision"] == "refused" and told["policies"]["decision"] == "allowed"
    subprocess.run([*admin, "enable", "ann"], env=env, check=True, timeout=30, capture_output=True)
    assert explain(server, *GET, "--user", "ann")["decision"] == "allowed"


def test_nobody_is_named(server):
    """Both ways to say who asks are in the sentence."""
    told = run(server, *GET, status=2).stderr
    assert "--principal" in told and "--user" in told
