"""Master keys: where they come from, what is refused, and that no secret can be kept without one."""

import os
import re
import signal
import stat
import subprocess
import urllib.error
import urllib.request

import pytest

from support import expect, identities
from support.registry import MASTER_KEY, OTHER_MASTER_KEY, Refused, Registry, check_known, client
from support.server import KEYS, NOBODY, StartFailed, binary
from support.tools import run
from support.wire import poll


def ids(server) -> list[str]:
    """The keys in use, as the tree knows them."""
    text = (server.tree / ".slipway" / "iam" / "keys.json").read_text()
    return re.findall(r'"([0-9a-f]{8})"', text)


def new(path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(binary()), "master-key", "new", str(path)], capture_output=True, text=True, timeout=20
    )


def key_file(path, *keys: str):
    path.touch(0o600)
    path.write_text("# keys\n\n" + "\n".join(keys) + "\n")
    return path


def reload(server, says: str) -> str:
    before = len(server.log)
    server.signal(signal.SIGHUP)
    poll(lambda: says in server.log[before:], 10)
    return server.log[before:]


def test_a_new_key(make_server, tmp_path):
    """It is private, random, never shown and never written over; a server takes it."""
    made = new(tmp_path / "key")
    assert made.returncode == 0, made
    key_id = re.search(r"the master key ([0-9a-f]{8}) was made", made.stdout)[1]
    file = tmp_path / "key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    comment, line = file.read_text().splitlines()
    assert key_id in comment and line not in made.stdout + made.stderr
    again = new(file)
    assert (again.returncode, file.read_text().splitlines()[1]) == (2, line) and "exists" in again.stderr
    assert new(tmp_path / "other").returncode == 0
    assert (tmp_path / "other").read_text().splitlines()[1] != line
    nowhere = new(tmp_path / "no" / "key")
    says = f"the directory {tmp_path}/no does not exist: make it (mkdir -p {tmp_path}/no)"
    assert nowhere.returncode == 2 and says in nowhere.stderr
    server = make_server("--master-key-file", str(file))
    assert ids(server) == [key_id]
    for inside in (server.tree / "key", server.tree / "bucket" / "key"):
        inside.parent.mkdir(exist_ok=True)
        refused = new(inside)
        assert refused.returncode == 2 and f"would lie in {server.tree}" in refused.stderr, refused
        assert not inside.exists()
    assert line not in server.log + server.output


@pytest.mark.parametrize("way", ["file", "command", "environment"])
def test_where_it_comes_from(make_server, tmp_path, way):
    """With each, users' keys are accepted; the secrets are not in the tree."""
    options, env = [], dict(KEYS)
    if way == "file":
        options = ["--master-key-file", str(key_file(tmp_path / "key", MASTER_KEY))]
    elif way == "command":
        options = ["--master-key-command", f"/bin/echo {MASTER_KEY}"]
    else:
        env["SLIPWAY_MASTER_KEY"] = MASTER_KEY
    server = make_server(*options, env=env)
    assert len(ids(server)) == 1
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    check_known(client(server, alice))
    kept = "".join(path.read_text() for path in (server.tree / ".slipway/iam").glob("*.json"))
    assert alice.access_key in kept and alice.secret_key not in kept and MASTER_KEY not in kept


def test_without_one(make_server, tmp_path):
    """All is as before, and nothing is made in the tree; a key of a user is refused with what to do."""
    server = make_server()
    assert server.raw.get("/").status == 200
    assert not (server.tree / ".slipway" / "iam").exists()
    with Registry(server.tree, server.account, master_key=None) as registry:
        registry.do("create-user", "alice")
        with pytest.raises(Refused, match=r"slipway master-key new FILE.*--master-key-file"):
            registry.key("alice")


@pytest.mark.parametrize(
    "keys, env, says",
    [
        ((), {}, r"the secrets of users are sealed with a master key \([0-9a-f]{8}\), and none was given"),
        ((OTHER_MASTER_KEY,), {}, r"sealed with another master key \([0-9a-f]{8}\) than the one that was"),
        ((), {"SLIPWAY_MASTER_KEY": "short"}, "SLIPWAY_MASTER_KEY: line 1 is not a master key"),
        ((MASTER_KEY, MASTER_KEY), {}, r"--master-key-file .*key: line 4 repeats a master key"),
    ],
)
def test_a_tree_that_needs_another(make_server, tmp_path, keys, env, says):
    server = make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})
    assert server.stop() == 0
    options = ["--master-key-file", str(key_file(tmp_path / "key", *keys))] if keys else []
    with pytest.raises(StartFailed, match=says) as failed:
        make_server(*options, env={**KEYS, **env})
    assert "exit status 2" in str(failed.value)
    assert MASTER_KEY not in str(failed.value)


@pytest.mark.parametrize(
    "way, says",
    [
        ("readable", "other users may read it .*contains the master key: chmod 600"),
        ("missing", "No such file"),
        ("empty", "there is no master key in it"),
        ("in the tree", "the file lies in .*: move it elsewhere"),
        ("both", "contradict each other"),
        ("command fails", "it failed .exit status: 1."),
        ("no command", "it cannot be run"),
    ],
)
def test_what_keeps_it_from_starting(make_server, tmp_path, way, says):
    tree = tmp_path / "tree"
    (tree / "bucket").mkdir(parents=True)
    file = tree / "bucket" / "key" if way == "in the tree" else tmp_path / "key"
    if way != "missing":
        key_file(file, *([] if way == "empty" else [MASTER_KEY]))
    if way == "readable":
        file.chmod(0o640)
        if file.stat().st_uid == 0:
            file.chmod(0o644)
    options = ["--master-key-file", str(file)]
    if way == "both":
        options += ["--master-key-command", "/bin/true"]
    if way == "command fails":
        options = ["--master-key-command", "/bin/false"]
    if way == "no command":
        options = ["--master-key-command", str(tmp_path / "none")]
    with pytest.raises(StartFailed, match=says) as failed:
        make_server(*options)
    assert "exit status 2" in str(failed.value)
    assert MASTER_KEY not in str(failed.value)


def test_another_one_by_a_reload(make_server, tmp_path):
    """Both are in the file meanwhile: users' keys are accepted all the time. A file that lacks the one in use is
    refused, and the present keys stay."""
    file = key_file(tmp_path / "key", MASTER_KEY)
    server = make_server("--master-key-file", str(file))
    [first] = ids(server)
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    check_known(client(server, alice))
    assert "nothing" in reload(server, "was reloaded")
    key_file(file, OTHER_MASTER_KEY, MASTER_KEY)
    assert "master keys" in reload(server, "was reloaded")
    assert len(ids(server)) == 2 and first in ids(server)
    check_known(client(server, alice))
    # The new one counts: what it seals is opened here.
    with Registry(server.tree, server.account, f"{OTHER_MASTER_KEY}\n{MASTER_KEY}") as registry:
        bob = registry.user("bob")
    check_known(client(server, bob))
    key_file(file, "A" * 42 + "E=")
    assert "sealed with another master key" in reload(server, "was not reloaded")
    for user in (alice, bob):
        check_known(client(server, user))


def test_secrets_are_encrypted_anew(make_server, tmp_path):
    """While gateways go on: after it the old key is needed no more, and does not start a gateway."""
    file, old = key_file(tmp_path / "key", MASTER_KEY), key_file(tmp_path / "old", MASTER_KEY)
    server = make_server("--master-key-file", str(file))
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    key_file(file, OTHER_MASTER_KEY, MASTER_KEY)
    reload(server, "was reloaded")
    options = [server.tree, "--master-key-file", file, "--yes"]
    assert run("master-key", "rotate", *options) == f"{server.tree}: secrets encrypted anew: 1\n"
    assert run("master-key", "rotate", *options) == f"{server.tree}: secrets encrypted anew: 0\n"
    assert len(ids(server)) == 1
    key_file(file, OTHER_MASTER_KEY)
    reload(server, "was reloaded")
    check_known(client(server, alice))
    with pytest.raises(StartFailed, match="sealed with another master key"):
        make_server("--master-key-file", str(old))
    assert "with another master key" in run(
        "master-key", "rotate", server.tree, "--master-key-file", old, status=2
    )


def test_a_directory_without_users_is_not_rotated(make_server, tmp_path):
    """Nothing to encrypt would be taken for done, where another directory or store is meant."""
    server = make_server()
    server.stop()
    file = key_file(tmp_path / "key", MASTER_KEY)
    for command in ("rotate", "forget"):
        for yes in ([], ["--yes"]):
            says = run("master-key", command, server.tree, "--master-key-file", file, *yes, status=2)
            assert (
                f"{server.tree}: there are no users and no access keys in {server.tree}/.slipway/iam" in says
            )
    assert not (server.tree / ".slipway" / "iam").exists()


def test_a_rotation_asks_first(make_server, tmp_path):
    """It names the gateways that can be seen and what to check, and changes nothing without --yes."""
    file, new_file = key_file(tmp_path / "key", MASTER_KEY), tmp_path / "new"
    server = make_server("--master-key-file", str(file))
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    kept, [first] = documents(server), ids(server)
    key_file(new_file, OTHER_MASTER_KEY, MASTER_KEY)
    rotate = ["master-key", "rotate", server.tree, "--master-key-file", new_file]
    says = run(*rotate, status=1)
    second = re.search("no gateway has the master key ([0-9a-f]{8}) as its first one yet", says)[1]
    assert f"would be encrypted with the master key {second}: 1. Nothing was changed" in says
    assert "is serving this directory" in says and "refuse all users (503)" in says and "--yes" in says
    assert documents(server) == kept and ids(server) == [first]
    # What is seen to be false cannot be confirmed.
    says = run(*rotate, "--yes", status=1)
    assert f"no gateway has the master key {second} as its first one yet" in says
    assert "Nothing was changed" in says and "stop" in says
    assert documents(server) == kept and ids(server) == [first]
    check_known(client(server, alice))
    key_file(file, OTHER_MASTER_KEY, MASTER_KEY)
    assert "master keys" in reload(server, "was reloaded")
    says = run(*rotate, status=1)
    assert "as its first one yet" not in says and "Nothing was changed" in says
    assert run(*rotate, "--yes").endswith("secrets encrypted anew: 1\n")
    assert ids(server) == [second] and documents(server) != kept
    check_known(client(server, alice))
    # A key that is not in use is no reason to wait for an answer.
    says = run(
        "master-key",
        "rotate",
        server.tree,
        "--master-key-file",
        key_file(tmp_path / "x", MASTER_KEY),
        status=2,
    )
    assert "with another master key" in says and "temporary" not in says, says


def test_a_rotation_without_gateways(make_server, tmp_path):
    """No gateway can have the key yet, and none can lack it."""
    server = make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    assert server.stop() == 0
    file = key_file(tmp_path / "key", OTHER_MASTER_KEY, MASTER_KEY)
    says = run("master-key", "rotate", server.tree, "--master-key-file", file, "--yes")
    assert says == f"{server.tree}: secrets encrypted anew: 1\n"
    again = make_server("--master-key-file", str(key_file(tmp_path / "new", OTHER_MASTER_KEY)))
    check_known(client(again, alice))


def documents(server) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (server.tree / ".slipway" / "iam").glob("account-*")}


def test_a_rotation_that_a_gateway_was_not_told_of(make_server, tmp_path):
    """It can accept no user: it is not ready, and says which key it needs. Another gateway has the key."""
    server = make_server("--ops-listen", "127.0.0.1:0", env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})
    with Registry(server.tree, server.account) as registry:
        alice = client(server, registry.user("alice"))
    check_known(alice)
    file = key_file(tmp_path / "key", OTHER_MASTER_KEY, MASTER_KEY)
    make_server("--master-key-file", str(file), tree=server.tree)
    run("master-key", "rotate", server.tree, "--master-key-file", file, "--yes")
    (key,) = ids(server)
    says = f"encrypted with the master key {key}, which this gateway does not have: add the line of this key"
    poll(lambda: says in server.log, 10)
    assert server.log.count(says) == 1
    with pytest.raises(urllib.error.HTTPError, match="503") as error:
        urllib.request.urlopen(server.operations + "/-/ready", timeout=10)
    assert says in error.value.read().decode()
    assert alice.get("/").status == 503
    poll(lambda: "a master key is missing" in server.log, 10)


def test_a_lost_key_is_forgotten(make_server, tmp_path):
    server = make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})
    with Registry(server.tree, server.account) as registry:
        alice = registry.user("alice")
    assert server.stop() == 0
    file = key_file(tmp_path / "key", OTHER_MASTER_KEY)
    forget = ["master-key", "forget", server.tree, "--master-key-file", file]
    kept = documents(server)
    says = run(*forget, status=1)
    assert f"alice: {alice.access_key}: encrypted with the master key" in says
    assert "would lose their secrets for good, and become inactive: 1." in says and "--yes" in says
    assert documents(server) == kept
    # Not while somebody may still have the key.
    running = make_server(env={**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY})
    assert "serving this directory: stop all gateways" in run(*forget, "--yes", status=2)
    assert documents(server) == kept
    assert running.stop() == 0
    says = run(*forget, "--yes")
    assert says.endswith("inactive, since their secrets are lost: 1\n")
    server = make_server("--master-key-file", str(file))
    expect.error(client(server, alice).get("/"), "InvalidAccessKeyId")
    # It cannot be accepted any more, and nobody is told that it is.
    iam = identities.client(server, "iam")
    update = {"UserName": "alice", "AccessKeyId": alice.access_key}
    code, status, says = identities.error_of(iam.update_access_key, **update, Status="Active")
    assert (code, status) == ("InvalidInput", 400) and "its secret is lost: make another key" in says
    assert iam.list_access_keys(UserName="alice")["AccessKeyMetadata"][0]["Status"] == "Inactive"
    iam.update_access_key(**update, Status="Inactive")
    with Registry(server.tree, server.account, OTHER_MASTER_KEY) as registry:
        check_known(client(server, registry.key("alice")))


def test_what_it_needs(tmp_path):
    """A key, a directory that was served, and the user of its gateways, who alone may read what it writes."""
    file = key_file(tmp_path / "key", MASTER_KEY)
    (tmp_path / "tree").mkdir()
    for command in ("rotate", "forget"):
        refused = [command, tmp_path / "tree", "--master-key-file", file]
        assert "no gateway has served it" in run("master-key", *refused, status=2)
        assert "no master key is given" in run("master-key", *refused[:2], status=2)
    own = tmp_path / "tree" / ".slipway"
    own.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(own, NOBODY, NOBODY)
        assert f"uid {NOBODY}: run this command as that user" in run("master-key", *refused, status=2)
        # Not to give the key's file to root, which its gateways could not read then.
        os.chown(file, NOBODY, NOBODY)
        told = run("master-key", *refused, status=2)
        assert f"uid {NOBODY}: run this command as that user" in told and "chown" not in told
    assert not (own / "iam").exists()
