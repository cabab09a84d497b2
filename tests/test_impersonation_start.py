"""`--impersonate`: with what a server starts and acts, and who is whom."""

import os
import pwd
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from test_admin import new_account

from support.identities import allow, client, policy
from support.impersonation import (
    ANN,
    DENIED,
    ENV,
    EVE,
    owner,
    refusal,
    wait_until_known,
)
from support.marks import needs_impersonation
from support.registry import Registry
from support.server import KEYS, StartFailed
from support.wire import poll

pytestmark = needs_impersonation
# Of an account that each system has.
GAMES = f"{pwd.getpwnam('games').pw_uid}:{pwd.getpwnam('games').pw_gid}"


class TestAnonymous:
    OPEN = policy({"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}).replace(
        '"Resource": "*"', '"Resource": ["arn:aws:s3:::lab", "arn:aws:s3:::lab/*"]'
    )

    @pytest.mark.parametrize("user", [None, f"{EVE[0]}:{EVE[1]}"])
    def test_is_nobody_or_whom_the_operator_says(self, make_server, tmp_path, user):
        tree = tmp_path / "tree"
        tree.mkdir(mode=0o755)
        options = ("--anonymous-user", user) if user else ()
        server = make_server("--impersonate", *options, tree=tree, env=ENV)
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="a", Body=b"1")
        root.delete_public_access_block(Bucket="lab")
        root.put_bucket_policy(Bucket="lab", Policy=self.OPEN)

        def status() -> int:
            try:
                with urllib.request.urlopen(f"{server.endpoint}/lab/a", timeout=10) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        assert status() == (200 if user else 403)
        (tree / "lab/a").chmod(0o600)
        assert status() == 403


class TestStart:
    @pytest.mark.parametrize(
        ("options", "env", "says"),
        [
            (("--read-only",), {}, "--impersonate contradicts --read-only"),
            (("--allow-same-names",), {}, "--impersonate contradicts --allow-same-names"),
            (("--metadata", "sidecar"), {}, "--impersonate contradicts --metadata sidecar"),
            ((), {"SLIPWAY_ROOT_UID": "0", "SLIPWAY_ROOT_GID": "0"}, "root cannot be 0:0"),
            ((), {"SLIPWAY_ROOT_UID": "12", "SLIPWAY_ROOT_GID": "12"}, "its uid is below --uid-min"),
            (
                ("--anonymous-user", "33:33"),
                {},
                "--anonymous-user: 33:33 cannot be used: its uid is below --uid-min",
            ),
            (
                ("--anonymous-user", "games"),
                {},
                f"--anonymous-user: games is {GAMES}: its uid is below --uid-min (1000) of the server",
            ),
        ],
    )
    def test_what_contradicts_it(self, make_server, options, env, says):
        with pytest.raises(StartFailed, match=re.escape(says)):
            make_server("--impersonate", *options, env=ENV | env)

    def test_an_anonymous_user_that_the_system_does_not_know(self, make_server):
        """A directory may know it later, so that the server starts."""
        says = "anonymous requests that access files are refused for now: the server's system has no account nosuch"
        assert says in make_server("--impersonate", "--anonymous-user", "nosuch", env=ENV).log

    def test_without_capabilities(self, make_server, tmp_path):
        tree = tmp_path / "tree"
        tree.mkdir()
        os.chown(tree, 65534, 65534)
        with pytest.raises(StartFailed, match="is not the superuser"):
            make_server("--impersonate", tree=tree, env=ENV, as_nobody=True)

    @pytest.mark.parametrize("mode", [0o700, 0o755])
    def test_a_tree_that_is_closed_to_its_users(self, make_server, tmp_path, mode):
        tree = tmp_path / "tree"
        tree.mkdir()
        tree.chmod(mode)
        server = make_server("--impersonate", tree=tree, env=ENV)
        says = f"{tree} has the mode 0700, and users whom it gives no right to search it (x) can read and write no object"
        assert (says in server.log) == (mode == 0o700), server.log

    def test_the_process_gives_up_what_it_does_not_need(self, scene):
        status = Path(f"/proc/{scene.server.pid}/status").read_text()
        effective = int(re.search(r"CapEff:\s+(\w+)", status)[1], 16)
        # SYS_ADMIN, SYS_RESOURCE, DAC_READ_SEARCH.
        assert not effective & (1 << 21 | 1 << 24 | 1 << 2)
        for task in Path(f"/proc/{scene.server.pid}/task").iterdir():
            lines = (task / "status").read_text()
            assert int(re.search(r"CapEff:\s+(\w+)", lines)[1], 16) & ~effective == 0, lines


class TestNames:
    def test_a_user_is_the_account_of_its_name(self, make_server, tmp_path):
        """`games` is in each passwd, below the lowest uid that is allowed without --uid-min."""
        tree = tmp_path / "tree"
        tree.mkdir(mode=0o755)
        server = make_server("--impersonate", "--posix-names", "--uid-min", "1", tree=tree, env=ENV)
        with Registry(server.tree, server.account) as registry:
            signer = registry.user("games")
            registry.do("put-policy", "games", policy(allow("*")))
            other = registry.user("no-such-account")
            registry.do("put-policy", "no-such-account", policy(allow("*")))
            games, nobody = (
                client(server, "s3", (key.access_key, key.secret_key, None)) for key in (signer, other)
            )
            wait_until_known(games)
            games.create_bucket(Bucket="lab")
            account = pwd.getpwnam("games")
            assert owner(tree / "lab") == (account.pw_uid, account.pw_gid)
            time.sleep(1)
            assert refusal(nobody.list_objects_v2, Bucket="lab") == DENIED
            assert "the system has no account of this name" in server.log

    def test_a_user_of_another_account_is_nobody(self, make_server, tmp_path):
        """Its root gives users the names that it likes."""
        tree = tmp_path / "tree"
        tree.mkdir(mode=0o755)
        server = make_server("--impersonate", "--posix-names", "--uid-min", "1", tree=tree, env=ENV)
        _, root = new_account(server, "tenant")
        iam = client(server, "iam", root)
        iam.create_user(UserName="games")
        iam.put_user_policy(UserName="games", PolicyName="all", PolicyDocument=policy(allow("*")))
        key = iam.create_access_key(UserName="games")["AccessKey"]
        games = client(server, "s3", (key["AccessKeyId"], key["SecretAccessKey"], None))
        assert refusal(games.create_bucket, Bucket="lab") == DENIED
        assert not (tree / "lab").exists()


def test_the_sweep_reaches_buckets_that_are_closed_to_root(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o755)
    plain = make_server("--durability", "none", tree=tree, env=KEYS)
    client(plain, "s3").create_bucket(Bucket="lab")
    plain.stop()
    os.chown(tree / "lab", ANN[0], ANN[1])
    (tree / "lab").chmod(0o700)
    server = make_server("--impersonate", "--ops-listen", "127.0.0.1:0", tree=tree, env=ENV)

    def metrics() -> str:
        with urllib.request.urlopen(f"{server.operations}/metrics", timeout=10) as answer:
            return answer.read().decode()

    ended = r"^slipway_last_sweep_timestamp_seconds [1-9]"
    assert poll(lambda: re.search(ended, metrics(), re.MULTILINE), 20), server.log
    for line in ("slipway_sweeps_failed_total 0", "slipway_unswept 0"):
        assert line in metrics().splitlines(), metrics()
