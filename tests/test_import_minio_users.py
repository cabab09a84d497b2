"""Users of MinIO: `slipway import minio-iam`, also of archives that are damaged or hostile."""

import json
import struct
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support import identities
from support.clients import boto3_client
from support.imports import (
    SECRETS,
    allowed,
    check_that_it_can_be_revoked,
    client,
    kept,
    refused,
    result,
    rows,
    run,
)
from support.registry import MASTER_KEY
from support.server import KEYS, Server


@pytest.fixture
def served(make_server) -> Server:
    return make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})


def statement(effect: str, actions: list[str], resources: list[str], **more) -> dict:
    return {
        "Effect": effect,
        "Action": actions,
        "Resource": [f"arn:aws:s3:::{name}" for name in resources],
        **more,
    }


def minio_policy(*statements: dict) -> dict:
    """As Go's policy.Policy is written."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def mapping(*policies: str) -> dict:
    return {"version": 1, "policy": ",".join(policies), "updatedAt": "2026-11-27T08:00:00Z"}


def minio_user(name: str, status: str = "enabled") -> dict:
    return {"secretKey": SECRETS.get(name, SECRETS["ann"]), "status": status}


def minio_group(*members: str, status: str = "enabled") -> dict:
    return {"version": 1, "status": status, "members": list(members), "updatedAt": "2026-11-27T08:00:00Z"}


def service_account(parent: str, policy: dict | None = None, **members: object) -> dict:
    """As madmin's SRSvcAccCreate is written; times that are none are the beginning of 1970."""
    kind = "embedded-policy" if policy else "inherited-policy"
    return {
        "parent": parent, "accessKey": "SVC", "secretKey": SECRETS["ann"], "groups": None,
        "claims": {"accessKey": "SVC", "parent": parent, "sa-policy": kind}, "sessionPolicy": policy,
        "status": "on", "name": "", "description": "", "expiration": "1970-01-01T00:00:00Z", **members,
    }  # fmt: skip


def archive(path: Path, **files: object) -> Path:
    """What `mc admin cluster iam export` stores: cmd/admin-handlers-users.go, ExportIAMHandler."""
    names = (
        "policies", "users", "groups", "svcaccts", "user_mappings", "group_mappings", "stsuser_mappings",
    )  # fmt: skip
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name in names:
            zip_file.writestr(f"iam-assets/{name}.json", json.dumps(files.get(name, {})))
    return path


# Those that MinIO has always, as its ListPolicies returns them.
CANNED = {
    "consoleAdmin": minio_policy(
        {"Effect": "Allow", "Action": ["admin:*"]},
        {"Effect": "Allow", "Action": ["kms:*"]},
        statement("Allow", ["s3:*"], ["*"]),
    ),
    "diagnostics": minio_policy(statement("Allow", ["admin:Prometheus", "admin:ServerTrace"], ["*"])),
    "readonly": minio_policy(
        statement("Allow", ["s3:GetBucketLocation", "s3:GetObject"], ["*"]),
        statement("Deny", ["admin:CreateUser"], ["*"]),
    ),
    "readwrite": minio_policy(statement("Allow", ["s3:*"], ["*"])),
    "writeonly": minio_policy(statement("Allow", ["s3:PutObject"], ["*"])),
}


class TestMinio:
    """No MinIO is available to tests: archives are made by the format that its code has."""

    @pytest.fixture
    def buckets(self, served) -> Server:
        root = boto3_client(served)
        for bucket in ("lab", "secret"):
            root.create_bucket(Bucket=bucket)
            root.put_object(Bucket=bucket, Key="a", Body=b"1")
        return served

    @pytest.fixture
    def lab(self, tmp_path) -> Path:
        """Users with policies of their own, by a group, and without any."""
        return archive(
            tmp_path / "iam.zip",
            policies={
                **CANNED,
                "lab": minio_policy(statement("Allow", ["s3:*"], ["lab/*"])),
                "open": minio_policy(
                    statement("Allow", ["s3:*"], ["*"]), statement("Deny", ["s3:*"], ["secret/*"])
                ),
            },
            users={
                "ann": minio_user("ann"), "bob": minio_user("bob"), "carol": minio_user("carol"),
                "dave": minio_user("dave", "disabled"), "eve": minio_user("eve"),
            },
            groups={"staff": minio_group("bob", "eve"), "gone": minio_group("eve", status="disabled")},
            user_mappings={"ann": mapping("lab"), "carol": mapping("consoleAdmin", "diagnostics"), "dave": mapping("readwrite")},
            group_mappings={"staff": mapping("readonly", "writeonly"), "gone": mapping("readwrite")},
        )  # fmt: skip

    def test_users_groups_and_policies(self, buckets, lab):
        said = run("minio-iam", "--json", buckets.tree, lab, status=0)
        assert result(said, "diagnostics", "policy") == "not needed"
        assert rows(said)["policy", "consoleAdmin"]["note"] == "without admin:*, kms:*"
        assert "disabled" in rows(said)["group", "gone"]["note"]
        ann, bob, carol, eve = (client(buckets, name) for name in ("ann", "bob", "carol", "eve"))
        # MinIO takes what is said of a bucket's objects for the bucket, too.
        assert allowed(ann.put_object, Bucket="lab", Key="b", Body=b"2")
        assert allowed(ann.list_objects_v2, Bucket="lab")
        assert not allowed(ann.get_object, Bucket="secret", Key="a")
        for member in (bob, eve):
            assert allowed(member.get_object, Bucket="lab", Key="a")
            assert allowed(member.put_object, Bucket="secret", Key="c", Body=b"3")
            assert not allowed(member.list_objects_v2, Bucket="lab")
            assert not allowed(member.delete_object, Bucket="lab", Key="a")
        assert allowed(carol.create_bucket, Bucket="new-of-carol")
        assert refused(buckets, "dave") == "InvalidAccessKeyId"
        # An administrator of MinIO is none here.
        assert not allowed(identities.client(buckets, "iam", ("carol", SECRETS["carol"], None)).list_users)
        assert set(kept(buckets)["policies"]) == {
            "consoleAdmin",
            "lab",
            "open",
            "readonly",
            "readwrite",
            "writeonly",
        }
        assert kept(buckets)["groups"]["gone"]["attached"] == []

    def test_keys_can_be_revoked(self, buckets, tmp_path):
        users = {name: minio_user(name) for name in ("ann", "a.b@c+d-e_f")}
        mappings = {name: mapping("readwrite") for name in users}
        path = archive(tmp_path / "iam.zip", policies=CANNED, users=users, user_mappings=mappings)
        run("minio-iam", buckets.tree, path, status=0)
        for name in users:
            check_that_it_can_be_revoked(buckets, name)

    def test_a_dry_run_and_a_second_run(self, buckets, lab):
        assert "0 there already, 0 not or not whole" in run(
            "minio-iam", "--dry-run", buckets.tree, lab, status=0
        )
        assert kept(buckets) == {}
        run("minio-iam", buckets.tree, lab, status=0)
        once = kept(buckets)
        assert once["revision"] == 1
        assert "0 imported, 13 there already, 0 not or not whole" in run(
            "minio-iam", buckets.tree, lab, status=0
        )
        assert kept(buckets) == once

    def test_a_second_export_in_another_order(self, buckets, tmp_path):
        """Go writes sets in another order each time."""
        actions, names = ["s3:PutObject", "s3:GetObject", "s3:ListBucket"], ["lab/*", "lab", "a/b/*"]
        condition = {"Condition": {"StringNotEquals": {"aws:Referer": ["x", "y"]}}}
        for turn in (1, -1):
            condition["Condition"]["StringNotEquals"]["aws:Referer"] = ["x", "y"][::turn]
            path = archive(
                tmp_path / "iam.zip",
                policies={
                    "lab": minio_policy(statement("Allow", actions[::turn], names[::turn], **condition))
                },
                users={"ann": minio_user("ann")},
                user_mappings={"ann": mapping("lab")},
            )
            said = run("minio-iam", "--json", buckets.tree, path, status=0)
        assert {row["result"] for row in rows(said).values()} == {"there already"}

    def test_a_denial_of_objects_denies_the_bucket_too(self, buckets, tmp_path):
        path = archive(
            tmp_path / "iam.zip",
            policies={
                "open": minio_policy(
                    statement("Allow", ["s3:*"], ["*"]), statement("Deny", ["s3:*"], ["secret/*"])
                ),
                "but": minio_policy(
                    {"Effect": "Allow", "NotAction": ["s3:DeleteObject"], "Resource": ["arn:aws:s3:::*"]}
                ),
                "all": minio_policy({"Effect": "Allow", "Action": ["*", "iam:*"], "Resource": ["*"]}),
            },
            users={name: minio_user(name) for name in ("ann", "bob", "carol")},
            user_mappings={"ann": mapping("open"), "bob": mapping("but"), "carol": mapping("all")},
        )
        run("minio-iam", buckets.tree, path, status=0)
        ann, bob, carol = (client(buckets, name) for name in ("ann", "bob", "carol"))
        assert allowed(ann.list_objects_v2, Bucket="lab")
        assert not allowed(ann.list_objects_v2, Bucket="secret")
        assert not allowed(ann.get_object, Bucket="secret", Key="a")
        assert allowed(bob.put_object, Bucket="lab", Key="b", Body=b"2")
        assert not allowed(bob.delete_object, Bucket="lab", Key="a")
        assert allowed(carol.delete_object, Bucket="lab", Key="a")
        # MinIO's administration is not IAM's.
        for name in ("bob", "carol"):
            assert not allowed(identities.client(buckets, "iam", (name, SECRETS[name], None)).list_users)

    def test_who_might_do_more_without_a_policy_is_disabled(self, buckets, tmp_path):
        """A policy that cannot be taken may deny what another one allows."""
        jwt = {"Condition": {"StringNotEquals": {"jwt:sub": ["x"]}}}
        path = archive(
            tmp_path / "iam.zip",
            policies={
                "readwrite": CANNED["readwrite"],
                "no/name": minio_policy(statement("Deny", ["s3:*"], ["secret/*"])),
                "odd": minio_policy(statement("Deny", ["s3:DeleteObject"], ["*"], **jwt)),
                "more": minio_policy(statement("Allow", ["s3:GetObject"], ["*"], **jwt)),
            },
            users={name: minio_user(name) for name in ("ann", "bob", "carol", "dave")},
            groups={"staff": minio_group("bob")},
            user_mappings={
                "ann": mapping("readwrite", "no/name"), "bob": mapping("readwrite"),
                "carol": mapping("readwrite", "more"), "dave": mapping("readwrite", "not-there"),
            },
            group_mappings={"staff": mapping("odd")},
        )  # fmt: skip
        said = run("minio-iam", "--json", buckets.tree, path, status=1)
        assert [result(said, name, "policy") for name in ("no/name", "odd", "more")] == ["not imported"] * 3
        for name in ("ann", "bob"):
            assert "disabled" in rows(said)["user", name]["note"]
            assert refused(buckets, name) == "InvalidAccessKeyId"
        for name in ("carol", "dave"):
            assert result(said, name) == "imported in part"
            assert allowed(client(buckets, name).get_object, Bucket="lab", Key="a")
        again = run("minio-iam", "--json", buckets.tree, path, status=1)
        assert "disabled" in rows(again)["user", "ann"]["note"] and kept(buckets)["revision"] == 1

    def test_what_has_no_place_is_told_by_name(self, buckets, tmp_path):
        path = archive(
            tmp_path / "iam.zip",
            policies=CANNED,
            users={"ann": minio_user("ann"), "a/b": minio_user("ann"), "odd": {"secretKey": "short", "status": "enabled"}},
            svcaccts={
                "SVC1": service_account("minioadmin", minio_policy(statement("Allow", ["s3:*"], ["*"]))),
                "SVC2": service_account("uid=eve,dc=lab", claims={"parent": "uid=eve,dc=lab", "ldapUser": "uid=eve,dc=lab"}),
                "SVC3": service_account("a/b"),
                "SVC4": service_account("ann", secretKey=""),
                "SVC5": service_account("ann", expiration="2026-01-01T00:00:00Z"),
                "SVC6": service_account("ann", minio_policy({"Effect": "Allow", "Action": ["admin:*"]})),
                "SVC7": service_account("ann", minio_policy(statement("Allow", ["s3:*"], ["*"]) | {"Condition": {"StringEquals": {"jwt:sub": "x"}}})),
                "ASIA8": service_account("ann"),
            },
            stsuser_mappings={"uid=eve,dc=lab": mapping("readwrite")},
            group_mappings={"cn=staff,dc=lab": mapping("readwrite")},
            user_mappings={"nobody": mapping("readwrite")},
        )  # fmt: skip
        said = run("minio-iam", "--json", buckets.tree, path, status=1)
        told = {key: row["note"] for key, row in rows(said).items() if row["result"] == "not imported"}
        assert set(told) == {
            ("user", "a/b"), ("user", "odd"), ("service account", "ASIA8"),
            *(("service account", f"SVC{number}") for number in range(1, 8)),
            ("mapping", "uid=eve,dc=lab"), ("mapping", "cn=staff,dc=lab"), ("mapping", "nobody"),
        }  # fmt: skip
        # Its parent is MinIO's root, who would be root here.
        accounts = {name: note for (kind, name), note in told.items() if kind == "service account"}
        for name, why in {
            "SVC1": "MinIO's root", "SVC2": "LDAP", "SVC3": "not taken over", "SVC4": "secret key", "SVC5": "ended",
            "SVC6": "nothing that is here", "SVC7": "cannot be taken over", "ASIA8": "cannot be taken over",
        }.items():  # fmt: skip
            assert why in accounts[name], accounts
        document = json.dumps(kept(buckets))
        assert list(kept(buckets)["users"]) == ["ann"] and "SVC" not in document and "ASIA" not in document
        assert kept(buckets)["root_keys"] == []

    def test_service_accounts_are_keys_of_their_users(self, buckets, tmp_path):
        """Each may what its user and its own policy both allow, as it could there."""
        soon = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S.25Z")
        read = minio_policy(statement("Allow", ["s3:GetObject"], ["*"]))
        files = {
            "policies": {"lab": minio_policy(statement("Allow", ["s3:*"], ["lab/*"])), **CANNED},
            "users": {"ann": minio_user("ann"), "bob": minio_user("bob", "disabled")},
            "groups": {"staff": minio_group("ann")},
            "user_mappings": {"bob": mapping("readwrite")},
            "group_mappings": {"staff": mapping("lab")},
            "svcaccts": {
                "READS": service_account(
                    "ann", read, groups=["staff"], name="backup", description="each night"
                ),
                "ALL-OF-ANN": service_account("ann", expiration=soon),
                "SWITCHED-OFF": service_account("ann", status="off"),
                "OF-BOB": service_account("bob"),
                "OTHER-GROUP": service_account("ann", groups=["staff", "closed"]),
            },
        }
        path = archive(tmp_path / "iam.zip", **files)
        dry = run("minio-iam", "--json", "--dry-run", buckets.tree, path, status=1)
        assert result(dry, "READS", "service account") == "to import" and kept(buckets) == {}
        said = run("minio-iam", "--json", buckets.tree, path, status=1)
        told = {name: row for (kind, name), row in rows(said).items() if kind == "service account"}
        assert {name for name, row in told.items() if row["result"] == "imported"} == {
            "READS", "ALL-OF-ANN", "SWITCHED-OFF", "OF-BOB",
        }  # fmt: skip
        assert "closed" in told["OTHER-GROUP"]["note"] and "disabled" in told["SWITCHED-OFF"]["note"]
        reads, everything = client(buckets, "READS"), client(buckets, "ALL-OF-ANN")
        assert allowed(reads.get_object, Bucket="lab", Key="a")
        assert not allowed(reads.put_object, Bucket="lab", Key="b", Body=b"2")
        assert not allowed(reads.get_object, Bucket="secret", Key="a")
        assert allowed(everything.put_object, Bucket="lab", Key="b", Body=b"2")
        assert not allowed(everything.get_object, Bucket="secret", Key="a")
        for name in ("SWITCHED-OFF", "OF-BOB", "OTHER-GROUP"):
            assert refused(buckets, name) == "InvalidAccessKeyId"
        keys = {key["id"]: key for key in kept(buckets)["users"]["ann"]["keys"]}
        assert keys["READS"]["description"] == "backup: each night" and keys["READS"]["expires"] is None
        assert keys["ALL-OF-ANN"]["expires"] == soon.replace(".25Z", "Z")
        # A second time nothing changes; another secret does not count, nor another policy.
        again = run("minio-iam", "--json", buckets.tree, path, status=1)
        assert result(again, "READS", "service account") == "there already"
        files["svcaccts"]["READS"]["secretKey"] = SECRETS["eve"]
        files["svcaccts"]["ALL-OF-ANN"]["sessionPolicy"] = read
        again = run("minio-iam", "--json", buckets.tree, archive(tmp_path / "iam.zip", **files), status=1)
        for name, what in (("READS", "another secret key"), ("ALL-OF-ANN", "another policy")):
            assert result(again, name, "service account") == "differs"
            assert what in rows(again)["service account", name]["note"]
        assert kept(buckets)["revision"] == 1

    def test_keys_follow_no_other_user_of_the_name(self, buckets, tmp_path):
        identities.client(buckets, "iam").create_user(UserName="ann")
        path = archive(
            tmp_path / "iam.zip", users={"ann": minio_user("ann")}, svcaccts={"SVC": service_account("ann")}
        )
        said = run("minio-iam", "--json", buckets.tree, path, status=1)
        assert result(said, "SVC", "service account") == "not imported"
        assert kept(buckets)["users"]["ann"]["keys"] == []

    def test_who_is_there_is_left_as_it_is(self, buckets, lab):
        iam = identities.client(buckets, "iam")
        iam.create_user(UserName="ann")
        iam.create_user(UserName="bob")
        iam.create_group(GroupName="staff")
        before = kept(buckets)
        said = run("minio-iam", "--json", buckets.tree, lab, status=1)
        assert [result(said, name) for name in ("ann", "bob", "eve")] == [
            "differs",
            "differs",
            "imported in part",
        ]
        assert result(said, "staff", "group") == "differs"
        after = kept(buckets)
        assert all(after["users"][name] == before["users"][name] for name in ("ann", "bob"))
        assert after["groups"]["staff"] == before["groups"]["staff"] and after["users"]["eve"]["groups"] == [
            "gone"
        ]


class TestHostileArchives:
    """Each is refused whole: nothing is made, and nothing is written anywhere."""

    @pytest.mark.parametrize(
        "name", ["/iam-assets/users.json", "../iam-assets/users.json", "iam-assets/../../x", "iam-assets\\..\\users.json"]
    )  # fmt: skip
    def test_names_that_lead_out(self, served, tmp_path, name):
        path = archive(tmp_path / "iam.zip", users={"ann": minio_user("ann")})
        with zipfile.ZipFile(path, "a") as zip_file:
            zip_file.writestr(name, "{}")
        assert "leads out" in run("minio-iam", served.tree, path, status=2)
        assert kept(served) == {}

    def test_two_files_of_one_name(self, served, tmp_path):
        path = archive(tmp_path / "iam.zip", users={"ann": minio_user("ann")})
        with zipfile.ZipFile(path, "a") as zip_file, pytest.warns(UserWarning, match="Duplicate name"):
            zip_file.writestr("iam-assets/users.json", json.dumps({"ann": minio_user("bob")}))
        assert "one name" in run("minio-iam", served.tree, path, status=2)

    def test_two_users_of_one_name(self, served, tmp_path):
        path = tmp_path / "iam.zip"
        user = json.dumps(minio_user("ann"))
        with zipfile.ZipFile(path, "w") as zip_file:
            zip_file.writestr("iam-assets/users.json", f'{{"ann": {user}, "ann": {user}}}')
        assert "users.json" in run("minio-iam", served.tree, path, status=2)

    def test_a_bomb(self, served, tmp_path):
        path = tmp_path / "iam.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
            for name in ("users", "groups", "policies"):
                zip_file.writestr(f"iam-assets/{name}.json", " " * (30 << 20))
        assert path.stat().st_size < 1 << 20
        assert "more than 67108864 bytes" in run("minio-iam", served.tree, path, status=2)

    def test_a_size_that_is_a_lie(self, served, tmp_path):
        """An entry that says that it has one byte."""
        path = tmp_path / "iam.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
            zip_file.writestr("iam-assets/users.json", " " * (70 << 20))
        data = bytearray(path.read_bytes())
        size = struct.pack("<I", 70 << 20)
        while (at := data.find(size)) >= 0:
            data[at : at + 4] = struct.pack("<I", 1)
        path.write_bytes(data)
        run("minio-iam", served.tree, path, status=2)
        assert kept(served) == {}

    def test_too_many_entries(self, served, tmp_path):
        path = archive(tmp_path / "iam.zip")
        with zipfile.ZipFile(path, "a") as zip_file:
            for number in range(60):
                zip_file.writestr(f"iam-assets/{number}", "")
        assert "more than 64 entries" in run("minio-iam", served.tree, path, status=2)

    def test_files_that_no_export_has_are_told(self, served, tmp_path):
        path = archive(tmp_path / "iam.zip", users={"ann": minio_user("ann")})
        with zipfile.ZipFile(path, "a") as zip_file:
            zip_file.writestr("iam-assets/more.json", "{}")
        said = run("minio-iam", "--json", served.tree, path, status=1)
        assert (
            result(said, "iam-assets/more.json", "file") == "not imported"
            and result(said, "ann") == "imported"
        )

    @pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"{}", b"PK\x03\x04" + bytes(100)])
    def test_what_is_no_archive(self, served, tmp_path, data):
        path = tmp_path / "iam.zip"
        path.write_bytes(data)
        assert "iam.zip" in run("minio-iam", served.tree, path, status=2)

    @pytest.mark.parametrize("damage", ["cut", "changed"])
    def test_one_that_is_damaged(self, served, tmp_path, damage):
        path = archive(tmp_path / "iam.zip", users={f"user{n}": minio_user("ann") for n in range(200)})
        data = bytearray(path.read_bytes())
        if damage == "cut":
            del data[len(data) // 2 :]
        else:
            at = data.find(b"users.json") + 200
            data[at] ^= 0x55
        path.write_bytes(data)
        run("minio-iam", served.tree, path, status=2)
        assert kept(served) == {}
