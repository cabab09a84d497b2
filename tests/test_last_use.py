"""When roles and keys were last used (GetRole, GetAccessKeyLastUsed)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from test_transitive_tags import assume, new_role

from support.identities import allow, client, master_key, new_user


@pytest.fixture
def keys(tmp_path) -> str:
    return str(master_key(tmp_path))


@pytest.fixture
def server(make_server, keys):
    return make_server("--durability", "none", "--master-key-file", keys)


def last_used(server, role: str) -> dict:
    return client(server, "iam").get_role(RoleName=role)["Role"]["RoleLastUsed"]


def test_a_role_is_used_by_its_sessions(server, make_server, keys):
    ann = new_user(server, "ann", allow("sts:*"))
    role, other = (new_role(server, name, allow("s3:*")) for name in ("one", "two"))
    session = assume(server, ann, role)
    # A session that nobody uses is no use of the role.
    assert last_used(server, "one") == {}
    client(server, "s3", session).list_buckets()
    now = datetime.now(UTC)
    used = last_used(server, "one")
    assert used["Region"] == "us-east-1"
    assert now - timedelta(hours=1, minutes=1) < used["LastUsedDate"] <= now
    assert used["LastUsedDate"].minute == used["LastUsedDate"].second == 0
    assert last_used(server, "two") == {}
    client(server, "sts", assume(server, session, other)).get_caller_identity()
    assert last_used(server, "two") != {}
    # Of a user it is the key that was used.
    key = client(server, "iam").get_access_key_last_used(AccessKeyId=ann[0])["AccessKeyLastUsed"]
    assert key["ServiceName"] == "sts"

    # It is written at the end of the server, for all others.
    server.stop()
    again = make_server("--durability", "none", "--master-key-file", keys, tree=server.tree)
    assert last_used(again, "one") == used

    # A role that is made again is another one.
    iam = client(again, "iam")
    iam.delete_role_policy(RoleName="one", PolicyName="own")
    iam.delete_role(RoleName="one")
    new_role(again, "one")
    assert last_used(again, "one") == {}


def test_a_damaged_document_of_last_uses_refuses_nothing(server, make_server, keys):
    """It is read once for all roles, and counts as one without last uses until the next write replaces it."""
    ann = new_user(server, "ann", allow("sts:*"))
    role = new_role(server, "one", allow("s3:*"))
    new_role(server, "two")
    client(server, "s3", assume(server, ann, role)).list_buckets()
    used = last_used(server, "one")
    server.stop()
    document = server.tree / ".slipway" / "iam" / "used.json"
    written = document.read_bytes()
    document.write_bytes(b"{")
    again = make_server("--durability", "none", "--master-key-file", keys, tree=server.tree)
    iam = client(again, "iam")
    assert last_used(again, "one") == {}
    assert iam.get_access_key_last_used(AccessKeyId=ann[0])["AccessKeyLastUsed"]["ServiceName"] == "N/A"
    roles = iam.get_account_authorization_details(Filter=["Role"])["RoleDetailList"]
    assert [role["RoleName"] for role in roles] == ["one", "two"]
    assert again.log.count("used.json") == 1, again.log
    client(again, "s3", assume(again, ann, role)).list_buckets()
    assert last_used(again, "one")["Region"] == used["Region"]
    again.stop()
    assert set(json.loads(document.read_text())["keys"]) == set(json.loads(written)["keys"])
