"""Users and their keys, on several gateways of one tree: what was changed at one counts at all others within a
second, and what cannot be read is refused."""

import dataclasses
import json
import shutil
import statistics
import time
import urllib.error
import urllib.request
from datetime import datetime

import pytest

from support import expect
from support.bucket import Bucket
from support.registry import MASTER_KEY, Refused, Registry, check_known, client
from support.server import KEYS
from support.tools import run
from support.wire import poll

# For each kind of change; a run of this file alone may have more (decision 0064: 1,000).
ROUNDS = 6
SECOND = 1.0
ENV = {**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY}


@pytest.fixture
def gateways(make_server):
    """Two gateways of a tree, which a third one changes."""
    return [make_server("--ops-listen", "127.0.0.1:0", env=ENV) for _ in range(2)]


@pytest.fixture
def registry(gateways):
    with Registry(gateways[0].tree, gateways[0].account) as registry:
        yield registry


def wait_for(asker, code: str) -> float:
    """Sends requests until one is answered with the code, and returns how long after now the last one was sent that
    was not."""
    acknowledged = last = time.monotonic()
    while True:
        sent = time.monotonic()
        if asker.get("/").code == code:
            return last - acknowledged
        last = sent
        assert sent - acknowledged < 5 * SECOND
        time.sleep(0.005)


def metric(server, name: str) -> float:
    with urllib.request.urlopen(server.operations + "/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(name + " ")))


def readiness(server) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(server.operations + "/-/ready", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_key_works_everywhere_when_it_was_made(gateways, registry):
    registry.do("create-user", "alice")
    # No more than 20 in a second: further ones would have to wait for the regular look.
    for _ in range(ROUNDS):
        key = registry.key("alice")
        for gateway in gateways:
            check_known(client(gateway, key))
        registry.do("delete-key", "alice", key.access_key)


def test_a_key_that_is_disabled_is_refused_within_a_second(gateways, registry):
    key = registry.user("alice")
    askers = [client(gateway, key) for gateway in gateways]
    times = []
    for round in range(ROUNDS):
        asker = askers[round % 2]
        # It may have seen the round before.
        wait_for(asker, "AccessDenied")
        registry.do("disable-key", "alice", key.access_key)
        times.append(wait_for(asker, "InvalidAccessKeyId"))
        registry.do("enable-key", "alice", key.access_key)
        times.append(wait_for(asker, "AccessDenied"))
    print(f"seen after {statistics.median(times):.3f} s (median), {max(times):.3f} s (most)")
    assert max(times) < SECOND, times


def test_a_user_that_is_deleted_is_refused_within_a_second(gateways, registry):
    times = []
    for round in range(ROUNDS):
        key = registry.user("alice")
        asker = client(gateways[round % 2], key)
        check_known(asker)
        registry.do("delete-key", "alice", key.access_key)
        registry.do("delete-user", "alice")
        times.append(wait_for(asker, "InvalidAccessKeyId"))
    print(f"seen after {statistics.median(times):.3f} s (median), {max(times):.3f} s (most)")
    assert max(times) < SECOND, times


def test_a_restored_directory_counts(gateways, registry, tmp_path):
    """A copy that is put back as a whole: what was changed since is lost."""
    key = registry.user("alice")
    there, copy = gateways[0].tree / ".slipway" / "iam", tmp_path / "copy"
    shutil.copytree(there, copy)
    registry.do("delete-key", "alice", key.access_key)
    wait_for(client(gateways[0], key), "InvalidAccessKeyId")
    there.rename(tmp_path / "moved away")
    copy.rename(there)
    for gateway in gateways:
        assert wait_for(client(gateway, key), "AccessDenied") < 2 * SECOND


def test_files_that_are_restored_in_place_count(gateways, registry, tmp_path):
    """`cp backup/account-*.json DIR/.slipway/iam/`: the time of the directory does not change."""
    key = registry.user("alice")
    there = gateways[0].tree / ".slipway" / "iam"
    copy = tmp_path / "copy"
    shutil.copytree(there, copy)
    registry.do("delete-key", "alice", key.access_key)
    askers = [client(gateway, key) for gateway in gateways]
    for asker in askers:
        wait_for(asker, "InvalidAccessKeyId")
    time.sleep(2)
    for file in copy.glob("account-*.json"):
        (there / file.name).write_bytes(file.read_bytes())
    # The first attempt finds another file than it knew, and the second one reads it.
    registry.do("create-user", "bob")
    for asker in askers:
        assert wait_for(asker, "AccessDenied") < 2 * SECOND
    time.sleep(2)
    (file,) = there.glob("account-*.json")
    whole = file.read_bytes()
    file.write_bytes(whole[:-2])
    for asker in askers:
        assert wait_for(asker, "ServiceUnavailable") < 2 * SECOND
    with pytest.raises(Refused, match="temporary failure"):
        registry.do("create-user", "carol")
    file.write_bytes(whole)
    for asker in askers:
        assert wait_for(asker, "AccessDenied") < 2 * SECOND
    registry.do("create-user", "carol")


def test_fsck_finds_what_is_damaged(gateways, registry):
    server = gateways[0]
    registry.user("alice")
    there = server.tree / ".slipway" / "iam"
    (file,) = there.glob("account-*.json")
    assert "0 problems" in run("fsck", server.tree)
    whole = file.read_text()
    for damage, says in (("", "the account is closed"), (whole.replace(server.account, "1" * 12), "1" * 12)):
        file.write_text(damage)
        said = run("fsck", server.tree, status=1)
        assert f"identities-damaged: {file}: " in said and says in said and "1 problem" in said
    file.write_text(whole)
    (there / "keys.json").write_text("{")
    assert f"identities-damaged: {there / 'keys.json'}: it is no JSON" in run("fsck", server.tree, status=1)
    (there / "keys.json").write_text("{}")
    there.chmod(0o755)
    says = "its mode is 0755: chmod 700 DIR/.slipway/iam"
    said = run("fsck", server.tree, status=1)
    assert f"identities-damaged: {there}: " in said and says in said
    # The gateways say it, too.
    poll(lambda: says in server.log, 20)
    poll(lambda: says in readiness(server)[1], 20)
    there.chmod(0o700)


def test_a_store_that_cannot_be_read(gateways, registry, tmp_path):
    """Users are refused, root is not, and operators are told; all goes on by itself."""
    server = gateways[0]
    key = registry.user("alice")
    alice = client(server, key)
    check_known(alice)
    there, away = server.tree / ".slipway" / "iam", tmp_path / "away"
    there.rename(away)
    there.write_text("not a directory\n")
    wait_for(alice, "ServiceUnavailable")
    assert server.raw.get("/").status == 200
    says = "requests with other keys than root's are refused"
    poll(lambda: says in server.log, 10)
    poll(lambda: readiness(server)[0] == 503, 20)
    assert "identities cannot be read" in readiness(server)[1]
    assert metric(server, "slipway_identities_looks_failed_total") > 1
    assert metric(server, "slipway_identities_age_seconds") > 1
    assert server.log.count(says) == 1
    there.unlink()
    away.rename(there)
    wait_for(alice, "AccessDenied")
    poll(lambda: "identities can be read again" in server.log, 10)
    assert readiness(server)[0] == 200
    assert metric(server, "slipway_identities_age_seconds") < 2


@pytest.mark.parametrize("damage", ["empty", "cut", "newer", "unknown member"])
def test_a_document_that_cannot_be_read(gateways, registry, damage):
    """Its account is closed until it can be read, and the log says which."""
    server = gateways[0]
    key = registry.user("alice")
    alice = client(server, key)
    check_known(alice)
    file = server.tree / ".slipway" / "iam" / f"account-{server.account}.json"
    whole = file.read_text()
    document = json.loads(whole)
    bad = {
        "empty": "",
        "cut": whole[: len(whole) // 2],
        "newer": json.dumps(document | {"format": 2}),
        "unknown member": json.dumps(document | {"more": 1}),
    }

    def put(text: str) -> None:
        other = file.with_name("other")
        other.write_text(text)
        other.chmod(0o600)
        other.rename(file)

    put(bad[damage])
    wait_for(alice, "ServiceUnavailable")
    assert server.raw.get("/").status == 200
    poll(
        lambda: (
            "a stored document with users, keys and policies is damaged or contradicts another" in server.log
        ),
        10,
    )
    [line] = [line for line in server.log.splitlines() if "is damaged or contradicts another" in line]
    assert server.account in line and key.secret_key not in line
    assert metric(server, "slipway_identities_faults") == 1
    status, body = readiness(server)
    assert status == 200, "root and other accounts are served"
    assert body.startswith(
        f"ready\nnote: the account {server.account} is closed, since its document cannot be read"
    )
    said = run("ready", server.operations.removeprefix("http://"))
    assert said.startswith("ready\n") and "is closed" in said
    put(whole)
    wait_for(alice, "AccessDenied")
    assert metric(server, "slipway_identities_faults") == 0


def test_a_document_that_was_removed(gateways, registry):
    """The account's users are not unknown: the account is closed, and the log, `slipway ready` and `fsck` say so."""
    server = gateways[0]
    key = registry.user("alice")
    alice = client(server, key)
    check_known(alice)
    file = server.tree / ".slipway" / "iam" / f"account-{server.account}.json"
    whole = file.read_bytes()
    assert json.loads((file.parent / "accounts.json").read_text())["accounts"] == [server.account]
    file.unlink()
    wait_for(alice, "ServiceUnavailable")
    with pytest.raises(Refused, match="temporary failure"):
        registry.do("create-user", "carol")
    assert server.raw.get("/").status == 200
    says = "the document was removed, and the account was not deleted: restore it from a backup"
    poll(lambda: says in server.log, 10)
    time.sleep(2)
    logged = [line for line in server.log.splitlines() if "is damaged or contradicts another" in line]
    assert len(logged) == 1 and says in logged[0]
    status, body = readiness(server)
    assert status == 200 and body.startswith("ready\nnote: the account ") and says in body
    said = run("ready", server.operations.removeprefix("http://"))
    assert said.startswith("ready\n") and f"the account {server.account} is closed" in said
    said = run("fsck", server.tree, status=1)
    assert f"identities-damaged: {file}: the document is gone" in said and "1 problem" in said
    # A gateway that starts later has not seen that there was one.
    assert server.stop() == 0
    file.write_bytes(whole)
    file.chmod(0o600)
    assert wait_for(client(gateways[1], key), "AccessDenied") < 2 * SECOND
    assert readiness(gateways[1]) == (200, "ready\n")
    assert "0 problems" in run("fsck", server.tree)


def test_a_start_without_the_document(make_server):
    server = make_server(env=ENV)
    with Registry(server.tree, server.account) as registry:
        key = registry.user("alice")
    assert server.stop() == 0
    there = server.tree / ".slipway" / "iam"
    (there / f"account-{server.account}.json").unlink()
    server = make_server(env=ENV)
    wait_for(client(server, key), "ServiceUnavailable")
    poll(lambda: "the document was removed" in server.log, 10)
    # Its users are given up by taking it out of the list.
    (there / "accounts.json").unlink()
    wait_for(client(server, key), "InvalidAccessKeyId")


def test_when_a_key_was_last_used(gateways, registry):
    """To the hour, written at the end at the latest; nothing is written for root."""
    used = gateways[0].tree / ".slipway" / "iam" / "used.json"
    alice, bob = registry.user("alice"), registry.user("bob")
    began = time.time()
    assert gateways[1].raw.get("/").status == 200
    assert gateways[1].stop() == 0
    assert not used.exists()
    for _ in range(3):
        check_known(client(gateways[0], alice))
    # One that is refused for its signature has not used the key.
    forged = dataclasses.replace(bob, secret_key="x" * 40)
    expect.error(client(gateways[0], forged).get("/"), "SignatureDoesNotMatch")
    assert gateways[0].stop() == 0
    assert used.stat().st_mode & 0o777 == 0o600
    [(key, last)] = json.loads(used.read_text())["keys"].items()
    hour = datetime.fromisoformat(last.pop("hour")).timestamp()
    assert (key, last) == (alice.access_key, {"service": "s3", "region": "us-east-1"})
    assert hour % 3600 == 0 and began - 3600 < hour <= time.time()


def test_tools_leave_them_alone(make_server, tmp_path):
    """`fsck --repair`, `sweep` and `import` change nothing of the identities, and complain of nothing."""
    server = make_server(env=ENV)
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    there = server.tree / ".slipway" / "iam"
    Bucket(server, "bucket").create().put("key", b"bytes")
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in there.iterdir()}
    assert {"keys.json", f"account-{server.account}.json"} <= before.keys()
    for command in (["fsck"], ["fsck", "--repair"], ["sweep"], ["import", "versitygw"], ["rehash"]):
        assert "iam" not in run(*command, server.tree)
        assert {path.name: (path.stat().st_ino, path.read_bytes()) for path in there.iterdir()} == before
    check_known(client(server, alice))


def test_a_policy_that_changed_counts_within_a_second(gateways, registry):
    key = registry.user("alice")
    Bucket(gateways[0], "bucket").create().put("key", b"bytes")
    asker = client(gateways[1], key)
    policy = {
        "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}]
    }
    deny = {"Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}
    check_known(asker, "/bucket/key")
    times = []
    for _ in range(ROUNDS):
        for document, status in ((policy, 200), (deny, 403)):
            registry.do("put-policy", "alice", json.dumps({"Version": "2012-10-17"} | document))
            acknowledged = last = time.monotonic()
            while asker.get("/bucket/key").status != status:
                last = time.monotonic()
                assert last - acknowledged < 5 * SECOND
                time.sleep(0.005)
            times.append(last - acknowledged)
    print(f"seen after {statistics.median(times):.3f} s (median), {max(times):.3f} s (most)")
    assert max(times) < SECOND, times
    assert asker.get("/bucket/key").code == "AccessDenied"
