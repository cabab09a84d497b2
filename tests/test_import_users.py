"""Users of versitygw: `slipway import versitygw-users`."""

import json
import os
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

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
from support.registry import MASTER_KEY, OTHER_MASTER_KEY, Registry
from support.server import ACCESS_KEY, KEYS, Server


@pytest.fixture
def served(make_server) -> Server:
    return make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})


def versitygw_user(name: str, role: str, uid: int = 0, gid: int = 0) -> dict:
    return {
        "access": name, "secret": SECRETS.get(name, SECRETS["ann"]), "role": role,
        "userID": uid, "groupID": gid, "projectID": 0,
    }  # fmt: skip


def versitygw_users(path: Path, *users: dict) -> Path:
    """users.json as versitygw's internal IAM writes it."""
    path.write_text(json.dumps({"accessAccounts": {user["access"]: user for user in users}}))
    return path


def versitygw_acl(bucket: Path, owner: str, *grants: tuple[str, str, str]) -> None:
    """The access list of a bucket, as versitygw writes it."""
    all_grants = [("FULL_CONTROL", owner, "CanonicalUser"), *grants]
    names = ("Permission", "Access", "Type")
    acl = {"Owner": owner, "Grantees": [dict(zip(names, grant, strict=True)) for grant in all_grants]}
    os.setxattr(bucket, "user.acl", json.dumps(acl).encode())


class TestVersitygw:
    @pytest.fixture
    def users(self, tmp_path) -> Path:
        return versitygw_users(
            tmp_path / "users.json",
            versitygw_user("ann", "user", 1001, 1002),
            versitygw_user("bob", "user"),
            versitygw_user("carol", "userplus"),
            versitygw_user("dave", "admin"),
        )

    @pytest.fixture
    def buckets(self, served) -> Server:
        root = boto3_client(served)
        for bucket, owner in (("anns", "ann"), ("shared", "carol"), ("roots", ACCESS_KEY)):
            root.create_bucket(Bucket=bucket)
            root.put_object(Bucket=bucket, Key="a", Body=b"1")
            grants = [("READ", "bob", "CanonicalUser")] if bucket == "shared" else []
            versitygw_acl(served.tree / bucket, owner, *grants)
        return served

    def test_each_role_can_do_what_it_could(self, buckets, users):
        said = run("versitygw-users", "--json", buckets.tree, users, status=0)
        assert {row["result"] for row in rows(said).values()} == {"imported"}
        assert "uid 1001, gid 1002" in rows(said)["user", "ann"]["note"]
        ann, bob, carol, dave = (client(buckets, name) for name in ("ann", "bob", "carol", "dave"))
        # An owner of a bucket: everything in it, and nothing elsewhere.
        assert allowed(ann.put_object, Bucket="anns", Key="b", Body=b"2")
        assert allowed(ann.get_object, Bucket="anns", Key="a")
        assert allowed(ann.delete_object, Bucket="anns", Key="b")
        assert allowed(ann.list_buckets)
        assert not allowed(ann.get_object, Bucket="shared", Key="a")
        assert not allowed(ann.list_objects_v2, Bucket="roots")
        assert not allowed(ann.create_bucket, Bucket="new-of-ann")
        # By a grant to read.
        assert allowed(bob.get_object, Bucket="shared", Key="a")
        assert allowed(bob.list_objects_v2, Bucket="shared")
        assert not allowed(bob.put_object, Bucket="shared", Key="b", Body=b"2")
        assert not allowed(bob.get_object, Bucket="anns", Key="a")
        # One who may make buckets, and has no rights in others'.
        assert allowed(carol.create_bucket, Bucket="new-of-carol")
        assert allowed(carol.put_object, Bucket="shared", Key="b", Body=b"2")
        assert not allowed(carol.get_object, Bucket="anns", Key="a")
        # Administrators.
        assert allowed(dave.create_bucket, Bucket="new-of-dave")
        assert allowed(dave.get_object, Bucket="anns", Key="a")
        document = kept(buckets)
        assert document["users"]["ann"]["posix"] == {"uid": 1001, "gid": 1002, "groups": []}
        assert document["users"]["bob"]["posix"] is None
        assert not any(secret in json.dumps(document) for secret in SECRETS.values())

    def test_keys_can_be_revoked(self, buckets, users):
        run("versitygw-users", buckets.tree, users, status=0)
        for name in ("ann", "carol"):
            check_that_it_can_be_revoked(buckets, name)

    def test_a_dry_run_writes_nothing_and_a_second_run_changes_nothing(self, buckets, users):
        before = kept(buckets)
        said = run("versitygw-users", "--dry-run", buckets.tree, users, status=0)
        assert "to import" in said and "4 to import, 0 there already, 0 not or not whole" in said
        assert kept(buckets) == before and refused(buckets, "ann") == "InvalidAccessKeyId"
        run("versitygw-users", buckets.tree, users, status=0)
        once = kept(buckets)
        again = run("versitygw-users", buckets.tree, users, status=0)
        assert "0 imported, 4 there already, 0 not or not whole" in again
        assert kept(buckets) == once and once["revision"] == 1

    def test_who_is_there_is_left_as_it_is(self, buckets, users, tmp_path):
        with Registry(buckets.tree, buckets.account) as registry:
            registry.do("create-user", "Ann")
            bob = registry.user("bob")
        before = kept(buckets)
        said = run("versitygw-users", "--json", buckets.tree, users, status=1)
        assert [result(said, name) for name in ("ann", "bob", "carol")] == ["differs", "differs", "imported"]
        assert "same but for case" in rows(said)["user", "ann"]["note"]
        assert "not this access key" in rows(said)["user", "bob"]["note"]
        after = kept(buckets)
        assert [after["users"][name] for name in ("Ann", "bob")] == [
            before["users"][name] for name in ("Ann", "bob")
        ]
        assert boto3_client(buckets, access_key=bob.access_key, secret_key=bob.secret_key)
        # Another secret is another user's.
        other = versitygw_user("carol", "userplus") | {"secret": "another-secret-of-carol"}
        said = run("versitygw-users", "--json", buckets.tree, versitygw_users(users, other), status=1)
        assert "another secret key" in rows(said)["user", "carol"]["note"]
        assert "another-secret" not in said
        assert allowed(client(buckets, "carol").list_buckets)

    @pytest.mark.parametrize(
        ("uid", "gid"), [(0, 1000), (1000, 0), (999, 1000), (-1, 1000), (2**32 - 1, 1000), (2**32, 1000)]
    )
    def test_ids_of_root_and_of_the_system_are_not_taken(self, buckets, tmp_path, uid, gid):
        users = versitygw_users(tmp_path / "users.json", versitygw_user("ann", "user", uid, gid))
        said = run("versitygw-users", "--json", buckets.tree, users, status=1)
        row = rows(said)["user", "ann"]
        assert row["result"] == "imported in part" and f"uid {uid}, gid {gid}" in row["note"]
        assert kept(buckets)["users"]["ann"]["posix"] is None

    def test_the_smallest_uid_is_that_of_the_server(self, buckets, tmp_path):
        users = versitygw_users(tmp_path / "users.json", versitygw_user("ann", "user", 500, 500))
        run("versitygw-users", "--uid-min", "500", buckets.tree, users, status=0)
        assert kept(buckets)["users"]["ann"]["posix"]["uid"] == 500

    def test_root_is_nobody_who_can_be_imported(self, buckets, tmp_path):
        """Its access key would be a user's, and a user's secret the root's."""
        env = {**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY}
        users = versitygw_users(
            tmp_path / "users.json", versitygw_user(ACCESS_KEY, "admin"), versitygw_user("bob", "user")
        )
        said = run("versitygw-users", "--json", buckets.tree, users, status=1, env=env)
        assert result(said, ACCESS_KEY) == "not imported" and result(said, "bob") == "imported"
        assert "root" in rows(said)["user", ACCESS_KEY]["note"]
        # Who does not tell the command root's key makes a user who cannot sign: root is asked first.
        run("versitygw-users", "--json", buckets.tree, users, status=0)
        with pytest.raises(ClientError) as error:
            boto3_client(buckets, access_key=ACCESS_KEY, secret_key=SECRETS["ann"]).list_buckets()
        assert error.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
        assert allowed(boto3_client(buckets).list_buckets)

    def test_what_cannot_be_a_user_is_told_by_name_and_the_rest_goes_on(self, buckets, tmp_path):
        bad = {
            "a/b": "name",
            "m\u00fcller": "name",
            "x" * 65: "userName",
            "ab": "access key",
            "ASIAABCDEFGHIJKLMNOP": "cannot be taken over",
        }
        users = [versitygw_user(name, "user") for name in bad]
        users.append(versitygw_user("short", "user") | {"secret": "short"})
        users.append(versitygw_user("odd", "owner"))
        path = versitygw_users(tmp_path / "users.json", *users, versitygw_user("bob", "user"))
        said = run("versitygw-users", "--json", buckets.tree, path, status=1)
        for name, why in bad.items():
            row = rows(said)["user", name]
            assert row["result"] == "not imported" and why in row["note"], row
        assert "secret key" in rows(said)["user", "short"]["note"]
        assert "role" in rows(said)["user", "odd"]["note"]
        assert list(kept(buckets)["users"]) == ["bob"]

    def test_rights_that_have_no_place_are_told(self, buckets, users):
        tree = buckets.tree
        versitygw_acl(
            tree / "anns", "ann", ("READ", "all-users", "Group"), ("WRITE_ACP", "bob", "CanonicalUser")
        )
        os.setxattr(tree / "shared", "user.policy", b"{}")
        os.setxattr(tree / "roots", "user.acl", b'{"Owner":["x"]}')
        said = run("versitygw-users", "--json", tree, users, status=1)
        told = [(row["name"], row["note"]) for row in json.loads(said) if row["kind"] == "bucket"]
        assert sorted(name for name, _ in told) == ["anns", "anns", "roots", "shared"]
        assert any("everybody" in note for _, note in told) and any("bob" in note for _, note in told)
        assert not allowed(client(buckets, "bob").get_object, Bucket="shared", Key="a")
        assert not allowed(client(buckets, "carol").get_object, Bucket="shared", Key="a")

    def test_attributes_beside_the_tree(self, served, users, tmp_path):
        boto3_client(served).create_bucket(Bucket="anns")
        meta = tmp_path / "sidecar" / "anns" / "meta"
        meta.mkdir(parents=True)
        (meta / "acl").write_text(json.dumps({"Owner": "ann", "Grantees": None}))
        run("versitygw-users", "--sidecar", tmp_path / "sidecar", served.tree, users, status=0)
        assert allowed(client(served, "ann").put_object, Bucket="anns", Key="a", Body=b"1")

    @pytest.mark.parametrize(
        "text",
        [
            "", "[]", "{}", '{"accessAccounts": []}', '{"accessAccounts": {"ann": {"secret": 7, "role": "user"}}}',
            '{"accessAccounts": {"ann": {"secret": ["a-secret-of-mine"], "role": "user"}}}',
            '{"accessAccounts": {"ann": {"secret": "12345678", "role": "user"}, "ann": {"secret": "12345678", "role": "admin"}}}',
        ],
    )  # fmt: skip
    def test_other_files_are_refused_whole(self, served, tmp_path, text):
        path = tmp_path / "users.json"
        path.write_text(text)
        said = run("versitygw-users", served.tree, path, status=2)
        assert "users.json" in said and "a-secret" not in said
        assert kept(served) == {}

    def test_without_the_master_key_nothing_is_made(self, served, users):
        said = run("versitygw-users", served.tree, users, status=2, env={})
        assert "no master key" in said
        other = {"SLIPWAY_MASTER_KEY": OTHER_MASTER_KEY}
        assert "another master key" in run("versitygw-users", served.tree, users, status=2, env=other)
        assert kept(served) == {}

    def test_a_tree_that_was_never_served(self, users, tmp_path):
        tree = tmp_path / "fresh"
        tree.mkdir()
        assert "no gateway has served it" in run("versitygw-users", tree, users, status=2)
        assert list(tree.iterdir()) == []

    def test_more_than_an_account_may_have_is_told(self, served, tmp_path):
        many = [versitygw_user(f"user{n:04}", "user") for n in range(5_002)]
        path = versitygw_users(tmp_path / "users.json", *many)
        said = run("versitygw-users", "--json", served.tree, path, status=1)
        results = [row["result"] for row in json.loads(said)]
        assert results.count("imported") == 5_000 and results.count("not imported") == 2
