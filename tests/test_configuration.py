"""Flags, environment and file; credentials and where they must not show."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import expect
from support.data import MIB
from support.server import (
    ACCESS_KEY,
    KEYS,
    NOBODY,
    SECRET_KEY,
    Server,
    StartFailed,
    binary,
    first_start_on_a_terminal,
)
from support.sigv4 import Signer
from support.wire import RawClient


def region_of(server) -> str:
    found = re.search(r"^  region +(\S+)$", server.output, re.MULTILINE)
    assert found, server.output
    return found[1]


def kept_keys(tree: Path) -> tuple[str, str]:
    """Root's keys, as the first start left them."""
    kept = tomllib.loads((tree / ".slipway" / "credentials.toml").read_text())
    return kept["access_key"], kept["secret_key"]


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "slipway.toml"
    path.write_text(text)
    return str(path)


class TestPrecedence:
    """A flag wins over the environment, the environment over the file, the file over the default."""

    @pytest.mark.parametrize(
        "flag, env, file, expected",
        [
            (None, None, None, "us-east-1"),
            (None, None, "file-1", "file-1"),
            (None, "env-1", None, "env-1"),
            ("flag-1", None, None, "flag-1"),
            (None, "env-1", "file-1", "env-1"),
            ("flag-1", None, "file-1", "flag-1"),
            ("flag-1", "env-1", None, "flag-1"),
            ("flag-1", "env-1", "file-1", "flag-1"),
        ],
    )
    def test_region(self, make_server, tmp_path, flag, env, file, expected):
        options = ["--region", flag] if flag else []
        if file:
            options += ["--config", config(tmp_path, f'region = "{file}"\n')]
        server = make_server(*options, env={**KEYS, **({"SLIPWAY_REGION": env} if env else {})})
        assert region_of(server) == expected
        expect.ok(server.raw.get("/", signer=server.raw.signer.with_(region=expected)))

    @pytest.mark.parametrize(
        "value, on",
        [
            *((value, True) for value in ("1", "true", "yes", "on", "ON")),
            *((value, False) for value in ("0", "false", "no", "off")),
        ],
    )
    def test_switches_by_environment(self, make_server, tmp_path, value, on):
        """Also against the file, whose value is the other one."""
        file = config(tmp_path, f"rehash-on-read = {str(not on).lower()}\n")
        server = make_server("--config", file, env={**KEYS, "SLIPWAY_REHASH_ON_READ": value})
        threads = Path(f"/proc/{server.pid}/task").iterdir()
        assert any((thread / "comm").read_text() == "rehash\n" for thread in threads) == on

    def test_a_switch_that_is_neither_on_nor_off(self, make_server):
        with pytest.raises(StartFailed, match=r"SLIPWAY_REHASH_ON_READ.*perhaps"):
            make_server(env={**KEYS, "SLIPWAY_REHASH_ON_READ": "perhaps"})

    def test_the_file_by_environment(self, make_server, tmp_path):
        file = config(tmp_path, 'region = "file-1"\n')
        assert region_of(make_server(env={**KEYS, "SLIPWAY_CONFIG": file})) == "file-1"

    def test_everything_in_a_file(self, make_server, tmp_path):
        socket = tmp_path / "s.sock"
        file = config(
            tmp_path,
            f"""
            listen = ["127.0.0.1:0", "unix:{socket}"]
            region = "lab-1"
            domain = ["one.test", "two.test"]
            durability = "none"
            file-mode = "0600"
            max-connections = 50
            max-requests = 10
            header-timeout = 3
            access-log = "{tmp_path}/access.log"
            log = "debug"
            log-format = "json"
        """,
        )
        server = make_server("--config", file, listen=[])
        assert len(server.endpoints) == 2
        raw = server.raw.with_(signer=server.raw.signer.with_(region="lab-1"))
        expect.ok(raw.put("/bucket"))
        for domain in ("one.test", "two.test"):
            expect.ok(raw.put("/key", b"data", headers={"host": f"bucket.{domain}"}))
        assert server.path("bucket", "key").stat().st_mode & 0o777 == 0o600
        server.stop()
        assert re.search(r'^\{.*"stopping', server.log, re.MULTILINE), server.log
        assert (tmp_path / "access.log").read_text().count("\n") == 3

    def test_lists_in_the_environment(self, make_server, tmp_path):
        listen = f"127.0.0.1:0,unix:{tmp_path}/s.sock"
        assert len(make_server(listen=[], env={**KEYS, "SLIPWAY_LISTEN": listen}).endpoints) == 2


class TestMistakes:
    @pytest.mark.parametrize(
        "text, message",
        [
            ('regoin = "x"', 'unknown key "regoin"'),
            ("region = ", "slipway.toml"),
            ("region = true", "region"),
            ("max-requests = 0", "1 to 1000000"),
            ('durability = "some"', "durability"),
            ('file-mode = "9"', "octal"),
            ('config = "x"', "unknown key"),
            ('secret_key = "hush"', "unknown key"),
        ],
    )
    def test_in_the_file(self, make_server, tmp_path, text, message):
        with pytest.raises(StartFailed, match=re.escape(message)) as failure:
            make_server("--config", config(tmp_path, text))
        assert "hush" not in str(failure.value)

    @pytest.mark.parametrize(
        "options, message",
        [
            (["--listen", "nowhere"], "'nowhere' for '--listen"),
            (["--listen", ":65536"], "65535"),
            (["--listen", "unix:"], "a path"),
            (["--max-connections", "0"], "1 to 1000000"),
            (["--no-such-flag"], "no-such"),
            (["--sigv2", "perhaps"], "perhaps"),
            (["--header-timeout", "soon"], "seconds"),
            (["--log", "=,="], "--log"),
            (["--config", "/does/not/exist.toml"], "/does/not/exist.toml"),
            (["--dir-mode", "77777"], "octal"),
        ],
    )
    def test_in_flags(self, make_server, options, message):
        with pytest.raises(StartFailed, match=re.escape(message)) as failure:
            make_server(*options)
        # What clap and every other command say of a wrong command line.
        assert "exit status 2\n" in str(failure.value)

    def test_in_the_environment(self, make_server):
        with pytest.raises(StartFailed, match="many"):
            make_server(env={**KEYS, "SLIPWAY_MAX_REQUESTS": "many"})

    @pytest.mark.parametrize(
        "name, near",
        [
            ("SLIPWAY_DURABILTY", ": did you mean SLIPWAY_DURABILITY?"),
            ("SLIPWAY_ROOT_SECRETKEY", ": did you mean SLIPWAY_ROOT_SECRET_KEY?"),
            ("SLIPWAY_PORT", ": unset it"),
        ],
    )
    def test_a_variable_that_is_none(self, make_server, name, near):
        with pytest.raises(StartFailed) as failure:
            make_server(env={**KEYS, name: "hush"})
        assert f"{name} in the environment is not an option of slipway{near}\n" in str(failure.value)
        assert "exit status 2\n" in str(failure.value) and "hush" not in str(failure.value)

    def test_the_variables_of_a_service(self, make_server):
        """As Kubernetes sets them for a service of this name, in all containers beside it."""
        service = {
            "SLIPWAY_SERVICE_HOST": "10.0.0.1",
            "SLIPWAY_SERVICE_PORT": "9000",
            "SLIPWAY_SERVICE_PORT_S3": "9000",
            "SLIPWAY_PORT": "tcp://10.0.0.1:9000",
            "SLIPWAY_PORT_9000_TCP": "tcp://10.0.0.1:9000",
            "SLIPWAY_PORT_9000_TCP_PROTO": "tcp",
            "SLIPWAY_PORT_9000_TCP_PORT": "9000",
            "SLIPWAY_PORT_9000_TCP_ADDR": "10.0.0.1",
        }
        expect.ok(make_server(env={**KEYS, **service}).raw.get("/"))

    def test_a_file_where_the_directory_should_be(self, make_server, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(StartFailed, match="file"):
            make_server(tree=tmp_path / "file")


class TestCredentials:
    def check(self, server, access_key: str, secret_key: str) -> None:
        raw = RawClient(server.address, Signer(access_key, secret_key))
        expect.ok(raw.get("/"))
        expect.error(RawClient(server.address, Signer(access_key, "wrong")).get("/"), "SignatureDoesNotMatch")

    @pytest.mark.parametrize(
        "names",
        [
            ("SLIPWAY_ROOT_ACCESS_KEY", "SLIPWAY_ROOT_SECRET_KEY"),
            ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"),
            ("ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"),
        ],
    )
    def test_from_the_environment(self, make_server, names):
        server = make_server(env={names[0]: "somebody", names[1]: "hush-hush-hush"})
        self.check(server, "somebody", "hush-hush-hush")
        assert "somebody" in server.output
        assert "hush" not in server.output + server.log
        assert not (server.tree / ".slipway" / "credentials.toml").exists()

    def test_ours_come_first(self, make_server):
        self.check(
            make_server(env={**KEYS, "MINIO_ROOT_USER": "other", "MINIO_ROOT_PASSWORD": "other-secret"}),
            ACCESS_KEY,
            SECRET_KEY,
        )

    @pytest.mark.parametrize(
        "env", [{"SLIPWAY_ROOT_ACCESS_KEY": "somebody"}, {"MINIO_ROOT_PASSWORD": "hush"}]
    )
    def test_half_of_them(self, make_server, env):
        with pytest.raises(StartFailed, match="only one of") as failure:
            make_server(env=env)
        assert "hush" not in str(failure.value)

    @pytest.mark.parametrize(
        "wrong, length",
        [("SLIPWAY_ROOT_ACCESS_KEY", 2), ("SLIPWAY_ROOT_SECRET_KEY", 3)],
    )
    def test_the_wrong_one_is_named(self, make_server, wrong, length):
        with pytest.raises(StartFailed) as failure:
            make_server(env={**KEYS, wrong: "x" * length})
        said = str(failure.value)
        assert f"{wrong}: " in said and said.count("SLIPWAY_ROOT_") == 1, said

    def test_names_that_are_read_no_more(self, make_server):
        """MinIO's before 2021. Without other keys they are missed."""
        old = {"MINIO_ACCESS_KEY": "somebody", "MINIO_SECRET_KEY": "hush-hush-hush"}
        log = make_server(env=old).log
        for name, new in (("ACCESS_KEY", "ROOT_USER"), ("SECRET_KEY", "ROOT_PASSWORD")):
            assert f"the variable MINIO_{name} is ignored: set MINIO_{new} instead" in log
        assert "hush" not in log
        assert "is ignored" not in make_server(env={**KEYS, **old}).log

    def test_made_at_the_first_start(self, make_server):
        first = make_server(env={})
        file = first.tree / ".slipway" / "credentials.toml"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        access_key, secret_key = kept_keys(first.tree)
        assert len(access_key) >= 16 and len(secret_key) >= 32
        self.check(first, access_key, secret_key)
        # Standard output is no terminal here, as under systemd, whose journal would keep it.
        assert f"  access key  {access_key} (made just now; secret in {file})" in first.output
        assert secret_key not in first.log + first.output
        first.stop()

        second = make_server(env={})
        self.check(second, access_key, secret_key)
        assert access_key in second.output
        assert secret_key not in second.output + second.log
        assert set(os.listdir(file.parent)) - {"metadata"} == {
            "account.toml",
            "credentials.toml",
            "gateways",
            "tree.toml",
        }

    def test_made_for_who_sits_at_a_terminal(self, tmp_path):
        tree = tmp_path / "tree"
        with first_start_on_a_terminal(tree) as shown:
            access_key, secret_key = kept_keys(tree)
        assert f"  secret key  {secret_key}\n" in shown
        assert f"AWS_ACCESS_KEY_ID={access_key} AWS_SECRET_ACCESS_KEY={secret_key}\n" in shown, (
            "ready to paste"
        )

    def test_made_for_one_run(self, make_server):
        """There is no file: without being shown they would be of no use."""
        server = make_server(tree="null:", env={})
        access, secret = (
            re.search(rf"^  {kind} key +(\S+)$", server.output, re.M)[1] for kind in ("access", "secret")
        )
        expect.ok(RawClient(server.address, Signer(access, secret)).get("/"))

    def test_others_are_made_for_another_directory(self, make_server, tmp_path):
        trees = [tmp_path / name for name in ("one", "two")]
        for tree in trees:
            make_server(env={}, tree=tree)
        assert kept_keys(trees[0]) != kept_keys(trees[1])

    def test_two_gateways_that_start_at_once_agree(self, make_server, tmp_path):

        tree = tmp_path / "shared"
        tree.mkdir()

        with ThreadPoolExecutor(4) as pool:
            servers = list(pool.map(lambda n: Server(tree, env={}, log=tmp_path / f"s{n}.log"), range(4)))
        try:
            access, secret = kept_keys(tree)
            for server in servers:
                self.check(server, access, secret)
        finally:
            for server in servers:
                server.stop()

    def test_a_file_that_others_can_read(self, make_server):
        server = make_server(env={})
        server.stop()
        (server.tree / ".slipway" / "credentials.toml").chmod(0o644)
        with pytest.raises(StartFailed, match="chmod 600"):
            make_server(env={})

    def test_a_credentials_file(self, make_server, tmp_path):
        file = tmp_path / "keys.toml"
        file.write_text('access_key = "from-file"\nsecret_key = "sesame-sesame"\n')
        file.chmod(0o600)
        server = make_server("--credentials-file", str(file))
        self.check(server, "from-file", "sesame-sesame")
        assert "sesame" not in server.output + server.log

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
    @pytest.mark.parametrize(
        ("owner", "mode", "served"),
        [
            (0, 0o440, True),
            (0, 0o444, False),
            (0, 0o460, False),
            (NOBODY, 0o400, True),
            (NOBODY, 0o440, False),
            (1, 0o400, False),
        ],
    )
    def test_whose_a_credentials_file_is(self, make_server, owner, mode, served):
        """Kubernetes mounts a secret as root's, readable by the group of a pod without root (`fsGroup`)."""
        # pytest's own directories are closed to others, and the checkout may be.
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            place.chmod(0o755)
            program = shutil.copy(binary(), place / "slipway")
            tree, file = place / "tree", place / "keys.toml"
            tree.mkdir()
            os.chown(tree, NOBODY, NOBODY)
            file.write_text('access_key = "from-file"\nsecret_key = "sesame-sesame"\n')
            file.chmod(mode)
            os.chown(file, owner, NOBODY)
            options = {"tree": tree, "as_nobody": True, "program": program}
            if served:
                server = make_server("--credentials-file", str(file), **options)
                self.check(server, "from-file", "sesame-sesame")
                server.stop()
            else:
                refused = r"other users may read it|belongs to the user|Permission denied"
                with pytest.raises(StartFailed, match=refused):
                    make_server("--credentials-file", str(file), **options)

    def test_a_broken_credentials_file_is_not_quoted(self, make_server, tmp_path):
        file = tmp_path / "keys.toml"
        file.write_text('access_key = "from-file"\nsecret_key = "sesame\n')
        file.chmod(0o600)
        with pytest.raises(StartFailed) as failure:
            make_server("--credentials-file", str(file))
        assert "sesame" not in str(failure.value)

    def test_secrets_do_not_show(self, make_server):
        """Neither in ps nor in the most talkative log, whatever is asked."""
        server = make_server("--log", "trace")
        raw = server.raw
        expect.ok(raw.put("/bucket"))
        expect.ok(raw.put("/bucket/key", b"data"))
        expect.error(raw.get("/", signer=raw.signer.with_(secret_key="wrong")), "SignatureDoesNotMatch")
        raw.fetch(raw.signer.presign("GET", "/bucket/key", raw.host))
        command_line = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert SECRET_KEY not in command_line
        assert SECRET_KEY not in server.log + server.output
        assert server.log, "trace says something"

    def test_the_file_of_the_gateway_is_no_object(self, make_server):
        server = make_server(env={})
        access, secret = kept_keys(server.tree)
        raw = RawClient(server.address, Signer(access, secret))
        response = raw.get("/.slipway/credentials.toml")
        expect.error(response, "InvalidBucketName")
        assert secret.encode() not in response.body
        assert raw.get("/").xml.child("Buckets").all("Bucket") == []


class TestCommandLine:
    def run(self, *arguments: str) -> str:
        return subprocess.run(
            [binary(), *arguments], capture_output=True, check=True, text=True, timeout=20
        ).stdout

    def test_help(self):
        assert "serve" in self.run("--help")
        assert self.run("--help").startswith(
            "An S3 server whose storage is the file system you already have\n"
        )
        text = self.run("serve", "--help")
        for flag in ("--listen", "--durability", "--tls-cert", "--header-timeout", "--sigv2"):
            assert flag in text
        names = [word.rstrip(",") for word in text.split() if word.startswith("--")]
        secrets = [name for name in names if "secret-key" in name and not name.endswith("-attribute")]
        assert secrets == [], "secrets are no flags"

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completions(self, shell):
        assert "slipway" in self.run("completions", shell)


def test_a_directory_that_does_not_exist_is_made(make_server, tmp_path):
    server = make_server(tree=tmp_path / "new" / "deep")
    expect.ok(server.raw.put("/bucket"))
    assert (tmp_path / "new" / "deep" / "bucket").is_dir()


def test_null_storage(make_server):
    """`null:` reads all, stores nothing, answers at once: for measuring."""
    server = make_server(tree="null:")
    expect.ok(server.raw.put("/bucket/key", b"x" * 100_000))
    # Small, and large enough to be digested by other threads.
    for body in (b"x", bytes(MIB)):
        expect.error(server.raw.put("/bucket/key", body, payload="0" * 64), "XAmzContentSHA256Mismatch")
        expect.ok(server.raw.put("/bucket/key", body))


@pytest.mark.parametrize("level", ["full", "data", "none"])
def test_durability_levels(make_server, level):
    server = make_server("--durability", level)
    expect.ok(server.raw.put("/bucket"))
    for _ in range(3):
        expect.ok(server.raw.put("/bucket/deep/key", b"data"))
    assert expect.ok(server.raw.get("/bucket/deep/key")).body == b"data"
    expect.ok(server.raw.delete("/bucket/deep/key"), 204)
    assert not server.path("bucket", "deep").exists()


def test_what_is_not_served_is_told(make_server, tmp_path):
    """Once, at the start: how many there are, and some names."""
    tree = tmp_path / "tree"
    for name in ("bucket", ".hidden", "UPPER", "lost+found", ".slipway"):
        (tree / name).mkdir(parents=True)
    (tree / ".slipway").chmod(0o700)
    (tree / "link").symlink_to("bucket")
    (tree / "plain").write_text("x")
    log = make_server(tree=tree).log
    (line,) = [line for line in log.splitlines() if "are not served as buckets: " in line]
    # Escapes are those of a log that goes to a file.
    assert 'count=4 names=".hidden", "UPPER", "link", "plain"' in line, line
    for number in range(50):
        (tree / f"F{number:02}").touch()
    (line,) = [
        line for line in make_server(tree=tree).log.splitlines() if "are not served as buckets: " in line
    ]
    assert "count=54" in line and '"F06"' in line and '"F07"' not in line, line


class TestNested:
    """A tree in a tree: what one makes of its own keeps the other's bucket."""

    def warnings(self, server) -> list[str]:
        return [
            line
            for line in server.log.splitlines()
            if "that another gateway serves or once served" in line or "as its own DIR" in line
        ]

    def test_a_bucket_is_served(self, make_server, tmp_path):
        outer = make_server()
        expect.ok(outer.raw.put("/bucket"))
        assert not self.warnings(outer)
        for inner in (outer.tree / "bucket", outer.tree / "bucket" / "deep"):
            before = sorted(os.listdir(outer.tree / "bucket"))
            with pytest.raises(StartFailed, match=f"lies inside {inner.parent}, which a gateway serves"):
                make_server(tree=inner)
            missing = inner / "not" / "there"
            with pytest.raises(StartFailed, match="or give --allow-nested, if this is meant"):
                make_server(tree=missing)
            assert sorted(os.listdir(outer.tree / "bucket")) == before
            make_server("--allow-nested", tree=inner).stop()
            # It was meant, and is a directory of its own now.
            (line,) = self.warnings(make_server(tree=inner))
            assert f'outer="{outer.tree}"' in line or (
                "deep" in str(inner) and f'outer="{outer.tree}/bucket"' in line
            )
        again = make_server(tree=outer.tree)
        (line,) = self.warnings(again)
        assert 'count=1 names="bucket"' in line
        expect.error(again.raw.delete("/bucket"), "BucketNotEmpty", re.compile("."))

    def test_is_not_swept(self, make_server, tmp_path):
        """Nor is it said to be repaired: its own gateways need it as it is."""
        make_server(tree=tmp_path / "above" / "data").stop()
        server = make_server(tree=tmp_path / "above")
        done = subprocess.run([binary(), "sweep", server.tree], capture_output=True, text=True)
        (line,) = done.stderr.splitlines()[:-1]
        assert "WARN" in line and "this server removes no leftovers of crashes from it" in line, done
        assert f'path="{tmp_path}/above/data"' in line and done.returncode == 1, done
        done = subprocess.run([binary(), "fsck", server.tree], capture_output=True, text=True)
        told = "it looks like that of a tree of its own, which other gateways serve or served"
        assert (
            f"stranger: {tmp_path}/above/data/.slipway: {told}" in done.stdout and "chmod" not in done.stdout
        )
        make_server("--allow-nested", tree=tmp_path / "above" / "data" / "deep" / "er").stop()
        done = subprocess.run([binary(), "fsck", server.tree], capture_output=True, text=True)
        assert f"/deep/er/.slipway: {told}" in done.stdout and "rename" not in done.stdout, done
        expect.error(server.raw.delete("/data"), "BucketNotEmpty", re.compile("."))
        for said in ("chmod", "leftovers of crashes could", "ERROR slipway"):
            assert said not in server.log and said not in done.stderr, server.log

    def test_only_what_is_ours(self, make_server, tmp_path):
        """A name alone, or a link, is no trace of a gateway."""
        tree = tmp_path / "above" / "tree"
        for place, text in ((tree.parent, "x"), (tree / "bucket", "account_id = 1\n"), (tree / "empty", "")):
            (place / ".slipway").mkdir(parents=True)
            (place / ".slipway" / "account.toml").write_text(text)
        served = make_server(tree=tmp_path / "served")
        (tree / "link").symlink_to(served.tree)
        assert not self.warnings(make_server(tree=tree))
