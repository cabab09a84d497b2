"""Configurations that are wrong: refused at the start with file, line, option and cure, leaving nothing in DIR; at a reload,
everything stays as it was."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.server import ACCESS_KEY, KEYS, SECRET_KEY, Server, binary
from support.starts import start
from support.transports import make_certificate
from support.wire import poll

SWITCHES = (
    "require-mount",
    "allow-same-names",
    "allow-nested",
    "chown",
    "impersonate",
    "posix-names",
    "trust-versitygw",
    "rehash-on-read",
    "secrets-in-clear",
    "ldap-in-clear",
    "audit-log-required",
    "read-only",
)


CHOICES = {
    "durability": "full, data, none",
    "metadata": "xattr, sidecar",
    "symlinks": "follow-within, refuse",
    "etag": "md5, checksum",
    "default-public-access-block": "on, off",
    "sigv2": "presigned, all, off",
    "access-pattern": "automatic, streaming, random",
    "log-format": "text, json",
    "sendfile": "on, off",
    "client-address": "connection, x-forwarded-for, forwarded, proxy-protocol",
    "access-log-format": "json, s3",
}


SECONDS = ("header-timeout", "idle-timeout", "stall-timeout", "drain-timeout")
COUNTS = ("max-connections", "max-requests")
SIZES = ("index-cache", "object-cache", "ready-free", "upload-age")
MODES = ("file-mode", "dir-mode")
ADDRESSES = ("listen", "ops-listen")
# What a reload would take, and what not.
OTHERS = ["domain = 'other.test'\n", "listen = '127.0.0.1:1'\n"]
KEYS_TEXT = f'access_key = "{ACCESS_KEY}"\nsecret_key = "{SECRET_KEY}"\n'


@dataclass(frozen=True)
class Bad:
    """A line of the file, what is said of it, and of which option."""

    line: str
    cure: str
    option: str = ""
    # What else has to be there for it.
    prepare: Callable[[Path], None] = lambda directory: None

    def __str__(self) -> str:
        return self.line


def of(key: str, values: list[str], cure: str) -> list[Bad]:
    return [Bad(f"{key} = {value}", cure, key) for value in values]


def values() -> list[Bad]:
    """Wrong types, and what is out of range, of all options."""
    bad = []
    for key in SWITCHES:
        bad += of(key, ["3", '"perhaps"'], "expected true or false")
    for key, choices in CHOICES.items():
        bad += of(key, ['"perhaps"'], f"[possible values: {choices}]")
    for key in SECONDS:
        bad += of(key, ["0", "4294967296", '"soon"'], "a whole number of seconds, 1 to 4294967295")
    bad += of("drain-delay", ["-1", '"soon"'], "a whole number of seconds, 0 to 4294967295")
    for key in COUNTS:
        bad += of(key, ["0", "1000001", '"many"'], "a whole number, 1 to 1000000")
        bad += of(key, ["4.5"], "expected a whole number")
    for key in SIZES:
        bad += of(key, ["-1", "1000000001"], "a whole number, 0 to 1")
    for key in MODES:
        bad += of(key, ['"9"', '"77777"'], "such as 0640")
        bad += of(key, ["0o640"], 'expected a string such as "0640"')
    bad += of("file-mode", ['"0"', '"0444"'], "give the owner read and write permission")
    bad += of("dir-mode", ['"0000"', '"0644"'], "give the owner all permissions")
    for key in ADDRESSES:
        bad += of(key, ['"nowhere"'], "expected ADDRESS:PORT, :PORT or unix:PATH")
        bad += of(key, ['":65536"'], "the port must be a number from 0 to 65535")
        bad += of(key, ['"unix:"'], "a path")
    bad += of("listen", ["[]"], "give an address, or leave out the key")
    bad += of("region", ['""', '"a b"'], "letters, digits, hyphens and underscores")
    bad += of("region", ['["a", "b"]'], "expected one value")
    bad += of("domain", ['"http://s3.test"', '"s3.test:9000"'], "a domain name such as s3.example.org")
    bad += of("account-id", ['"12"'], "12 decimal digits")
    bad += of("identities", ['""', '"/srv/iam"', '"ldap:https://a.test/b"'], "expected vault:https://")
    bad += of("identities", ['"s3:http://store.test/ids"', '"vault:http://store.test/kv/ids"'], "by https")
    bad += of("identities", ['"s3:https://store.test/ids"'], "give it by --identities-credentials-file")
    bad += of("uid-min", ["0", "4294967295", '"low"'], "a whole number, 1 to 4294967294")
    bad += of("anonymous-user", ['"a:b"', '"1:2:3"', '"a/b"'], "")
    bad += of("anonymous-user", ['"0:5"', '"5:0"'], "neither root nor in root's group")
    bad += of("anonymous-user", ['"1000"'], "give UID:GID")
    bad += of("anonymous-user", ['"1:"', '"1:2:3"'], "expected UID:GID")
    bad += of("anonymous-user", ['"nobody"'], "no effect without --impersonate or --chown")
    bad += of("posix-names", ["true"], "no effect without --impersonate or --chown")
    bad += of("impersonate", ["true\nread-only = true"], "contradicts --read-only")
    cure = "a network such as 10.0.0.0/8, an address, or unix"
    bad += of("trusted-proxy", ['"proxy.test"', '"10.0.0.0/33"'], cure)
    bad += of("traces-from", ['"client.test"', '"10.0.0.9/8"'], "10.0.0.")
    bad += of("traces-ratio", ['"2"', '"half"', '"-1"'], "0 to 1")
    bad += of("traces", ['"ftp://127.0.0.1"', '"127.0.0.1:4318"'], "http")
    bad += of("access-log", ['""'], "a file, or stderr")
    bad += of("audit-log", ['""'], "a file, or stderr")
    bad += of("ldap-server", ['"dc1.lab"', '"http://dc1.lab"', '"ldap://a:b"'], "give a URL such as ldaps://")
    bad += of("ldap-server", ['"ldap://dc1.lab"'], "needs --ldap-base")
    bad += of("ldap-user-filter", ['"(uid=ann)"'], "the filter has no {user}")
    bad += of("ldap-user-filter", ['"(uid={user}"'], "no filter of LDAP, such as (uid={user})")
    bad += of("ldap-group-filter", ['"(member=ann)"'], "the filter has no {dn} and no {user}")
    bad += of("ldap-name-attribute", ['"a b"'], "the name of an attribute, such as uid")
    for name in ("ldap-access-key-attribute", "ldap-secret-key-attribute"):
        bad += of(name, ['"a b"', '"key=*)(uid"'], "the name of an attribute, such as uid")
    bad += of("ldap-attempts", ["0", "1001"], "a whole number, 1 to 1000")
    bad += of("log", ['"shout"'], "known are off, error, warn, info, debug and trace")
    bad += [
        Bad(f"{key} = {value}", f"or leave out --{key}", key)
        for key, value in (
            ("access-log-format", '"s3"'),
            ("audit-log-required", "true"),
            ("traces-ratio", "0.5"),
            ("traces-from", '"unix"'),
            ("identities-credentials-file", '"keys.toml"'),
            ("identities-credentials-command", '"/bin/true"'),
            ("identities-ca", '"none"'),
            ("ldap-base", '"dc=lab"'),
            ("ldap-access-key-attribute", '"s3AccessKey"'),
            ("ldap-secret-key-attribute", '"s3SecretKey"'),
            ("ldap-group-base", '"dc=lab"'),
            ("ldap-bind-dn", '"cn=slipway,dc=lab"'),
            ("ldap-bind-password-file", '"none"'),
            ("ldap-bind-password-command", '"/bin/true"'),
            ("ldap-ca", '"none"'),
            ("ldap-client-cert", '"none"'),
            ("ldap-client-key", '"none"'),
        )
    ]
    bad += of("dir", ["true", "1.5", "2020-01-01", "{}"], "expected a string")
    return bad


def names() -> list[Bad]:
    """Keys that are none."""
    misspelt = [
        ("regoin", "region"),
        ("listn", "listen"),
        ("durabilty", "durability"),
        ("tls_cert", "tls-cert"),
        ("max-conections", "max-connections"),
        ("credential-file", "credentials-file"),
    ]
    bad = [Bad(f'{key} = "x"', f'did you mean "{meant}"?', key) for key, meant in misspelt]
    return bad + [
        Bad(f'{key} = "x"', "the known keys are dir, ", key) for key in ("config", "secret_key", "colour")
    ]


def syntax() -> list[Bad]:
    bad = [
        Bad(text, "not valid TOML: expected key = value")
        for text in ("region", "region = ", 'log = "info', "a = 1\na = 2", "[", "= 3")
    ]
    # What the parser itself says.
    bad += [
        Bad("a = [1, 2", "each key once: unclosed array"),
        Bad("a = 1\na = 2", "each key once: duplicate key"),
    ]
    return [*bad, Bad("max-requests = 99999999999999999999", "a number is larger than any option allows")]


def write_keys(text: str, mode: int = 0o600) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        path = directory / "keys.toml"
        path.write_text(text)
        path.chmod(mode)

    return write


def write_pair(directory: Path) -> None:
    make_certificate(directory, "one", "one.test")
    (directory / "other.key").write_bytes(make_certificate(directory, "two", "two.test")[1].read_bytes())
    (directory / "empty").write_text("")


def stores() -> list[Bad]:
    """A store of identities, and what it is asked with."""
    bucket, vault = (
        'identities = "s3:https://localhost/ids"\n',
        'identities = "vault:https://localhost/kv/ids"\n',
    )
    file, key = 'identities-credentials-file = "keys.toml"', "identities-credentials-file"
    command = 'identities-credentials-command = "/bin/false"'
    form, secret = "line 1: expected access_key", "identities-credentials-command"
    token = write_keys('token = "t"\n')
    return [
        Bad(bucket + file, "create the file, or give the path of another", key),
        Bad(bucket + file, "chmod 600 it", key, write_keys(KEYS_TEXT, 0o644)),
        Bad(bucket + file, form, key, write_keys("access_key = 'abc'\n")),
        Bad(vault + file, "line 1: expected token =", key, write_keys(KEYS_TEXT)),
        Bad(vault + file, "expected one of: token =", key, write_keys('token = "t"\nrole_id = "r"\n')),
        Bad(vault + file, "token_file /none", key, write_keys('token_file = "/none"\n')),
        Bad(vault + file, "jwt_file /none", key, write_keys('kubernetes_role = "r"\njwt_file = "/none"\n')),
        Bad(bucket + command, "it failed (exit status: 1)", secret),
        Bad(bucket + command + "\n" + file, "contradict each other", secret),
        Bad(vault + file + '\nidentities-ca = "none"', "No such file", "identities-ca", token),
    ]


def files() -> list[Bad]:
    """What the file names is not there, can't be read, or does not fit."""
    keys = 'credentials-file = "keys.toml"'
    master = 'master-key-file = "keys.toml"'
    pair = 'tls-cert = "{}"\ntls-key = "{}"'
    ldap = 'ldap-server = "ldap://127.0.0.1:1"\nldap-base = "dc=lab"\n'
    bind = ldap + 'ldap-bind-dn = "cn=slipway,dc=lab"\n'
    named = 'ldap-access-key-attribute = "{}"\nldap-secret-key-attribute = "{}"'
    return [
        Bad(keys, "create the file, or give the path of another", "credentials-file"),
        Bad(keys, "chmod 600 it", "credentials-file", write_keys(KEYS_TEXT, 0o644)),
        Bad(keys, "line 1: expected access_key =", "credentials-file", write_keys("access_key = 'abc'\n")),
        Bad(
            keys, "line 3: expected access_key =", "credentials-file", write_keys(KEYS_TEXT + "colour = 1\n")
        ),
        Bad(keys, "give both", "credentials-file", write_keys(KEYS_TEXT + "uid = 1\n")),
        Bad(
            'credentials-file = "."',
            "other users may read it",
            "credentials-file",
            lambda directory: directory.chmod(0o755),
        ),
        Bad(master, "create the file, or give the path of another", "master-key-file"),
        Bad(master, "chmod 600 it", "master-key-file", write_keys(KEYS_TEXT, 0o644)),
        Bad(master, "line 1 is not a master key", "master-key-file", write_keys(KEYS_TEXT)),
        Bad('master-key-command = "/bin/false"', "it failed (exit status: 1)", "master-key-command"),
        Bad('master-key-command = ""', "give the path of a program", "master-key-command"),
        *stores(),
        Bad('oidc-ca = "none"', "give a file with certificates", "oidc-ca"),
        Bad(ldap + 'ldap-ca = "none"', "give files with certificates", "ldap-ca"),
        Bad(ldap + 'ldap-client-cert = "one.crt"', "give both, or none", "ldap-client-cert"),
        Bad(bind.strip(), "needs its password", "ldap-bind-dn"),
        Bad(bind + 'ldap-access-key-attribute = "uid"', "give both, or none", "ldap-access-key-attribute"),
        Bad(bind + named.format("uid", "UID"), "are the same", "ldap-access-key-attribute"),
        Bad(
            bind + named.format("uid", "userpassword"), "passwords are no secret", "ldap-secret-key-attribute"
        ),
        Bad(ldap + named.format("uid", "s3SecretKey"), "anybody may read", "ldap-secret-key-attribute"),
        Bad(
            bind + 'ldap-bind-password-file = "keys.toml"',
            "chmod 600 it",
            "ldap-bind-password-file",
            write_keys("hush\n", 0o644),
        ),
        Bad(
            bind + 'ldap-bind-password-file = "keys.toml"',
            "it has to have one line",
            "ldap-bind-password-file",
            write_keys("\n"),
        ),
        Bad(
            bind + 'ldap-bind-password-command = "/bin/false"',
            "it failed (exit status: 1)",
            "ldap-bind-password-command",
        ),
        Bad('tls-cert = "one.crt"', "give one key for each certificate", "tls-cert"),
        Bad('tls-key = "one.key"', "give one key for each certificate", "tls-key"),
        Bad('client-address = "forwarded"', "without --trusted-proxy", "client-address"),
        Bad('trusted-proxy = "10.0.0.0/8"', "without --client-address", "trusted-proxy"),
        Bad('access-log = "none/access.log"', "create its directory first", "access-log"),
        Bad('audit-log = "none/audit.log"', "create its directory first", "audit-log"),
        Bad(pair.format("none", "none"), "create the file, or give the path of another", "tls-cert"),
        Bad(
            pair.format("empty", "empty"),
            "the file contains no certificate: expected PEM",
            "tls-cert",
            write_pair,
        ),
        Bad(pair.format("CERT", "empty"), "the file contains no private key", "tls-key", write_pair),
        Bad(
            pair.format("CERT", "other.key"),
            "give the keys in the order of the certificates",
            "tls-key",
            write_pair,
        ),
    ]


ALL = values() + names() + syntax() + files()


def write_file(directory: Path, bad: Bad, before: str) -> tuple[Path, range]:
    """The configuration, and which of its lines are bad."""
    bad.prepare(directory)
    text = bad.line
    if "CERT" in text:
        text = text.replace("CERT", str(make_certificate(directory, "one", "one.test")[0]))
    for name in ("keys.toml", "one.crt", "one.key", "none", "none/access.log", "empty", "other.key"):
        text = text.replace(f'"{name}"', f'"{directory / name}"')
    text = text.replace('"."', f'"{directory}"')
    path = directory / "slipway.toml"
    path.write_text(before + text + "\n")
    first = before.count("\n") + 1
    return path, range(first, first + text.count("\n") + 1)


def check(said: str, path: Path, lines: range, bad: Bad) -> None:
    assert any(f"{path}: line {line}: " in said for line in lines), said
    assert bad.cure in said and bad.option in said, said
    assert SECRET_KEY not in said and "panicked" not in said, said


def contents(tree: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(tree.rglob("*"))}


def test_there_are_many() -> None:
    assert len(ALL) >= 50 and len({str(bad) + bad.cure for bad in ALL}) == len(ALL)


@pytest.mark.parametrize("bad", ALL, ids=str)
def test_at_the_start(tmp_path: Path, bad: Bad) -> None:
    path, lines = write_file(tmp_path, bad, "# Ours.\n\n")
    # Nothing else is wrong, whoever listens on the default port.
    listen = [] if bad.option == "listen" else ["--listen", "127.0.0.1:0"]
    done = start(tmp_path / "tree", "--config", str(path), *listen)
    assert done.returncode == (
        1 if bad.line.startswith(('access-log = "none/', 'audit-log = "none/')) else 2
    ), done
    check(done.stderr, path, lines, bad)
    assert done.stdout == "" and not (tmp_path / "tree").exists()


def wait_for_reload(server: Server, size: int, bad: Bad) -> str:
    """What the log says from `size` on, once it tells of a reload."""
    outcomes = ("not reloaded: the previous one stays in effect", "reloaded new")
    try:
        poll(lambda: any(outcome in server.log[size:] for outcome in outcomes), 30)
    except AssertionError:
        # Whether the signal is pending, blocked or taken, and what the threads wait for.
        process = Path(f"/proc/{server.pid}")
        signals = [
            line for line in (process / "status").read_text().splitlines() if line.startswith(("Sig", "Shd"))
        ]
        threads = [
            (task.name, (task / "wchan").read_text(), (task / "stat").read_text().split()[2])
            for task in (process / "task").iterdir()
        ]
        pytest.fail(f"no word of a reload: {bad}, {server.log[size:]!r}, {signals}, {threads}")
    return server.log[size:]


def test_at_a_reload(make_server, tmp_path: Path) -> None:
    """One server, which all of them are tried on in turn."""
    good = "domain = 's3.test'\nlisten = '127.0.0.1:0'\n"
    path = tmp_path / "slipway.toml"
    path.write_text(good)
    server = make_server("--config", str(path), listen=())
    bucket = Bucket(server, "bucket").create()
    before = contents(server.tree)
    for number, bad in enumerate(ALL):
        directory = tmp_path / str(number)
        directory.mkdir()
        others = "".join(line for line in OTHERS if not bad.option or not line.startswith(bad.option))
        wrong, lines = write_file(directory, bad, others)
        path.write_text(wrong.read_text())
        size = len(server.log)
        server.signal(signal.SIGHUP)
        said = wait_for_reload(server, size, bad)
        assert "not reloaded" in said, (bad, said)
        assert said.count("\n") == 1, said
        check(said, path, lines, bad)
    answer = bucket.raw.get("/", headers={"host": "bucket.s3.test"})
    assert expect.ok(answer).xml.name == "ListBucketResult"
    assert contents(server.tree) == before
    path.write_text(good)
    size = len(server.log)
    server.signal(signal.SIGHUP)
    poll(lambda: "reloaded new=nothing" in server.log[size:], 10)


def test_the_file_is_read_once_at_the_start(make_server, tmp_path: Path) -> None:
    """What it says from the greeting on is for a reload."""
    path = tmp_path / "slipway.toml"
    path.write_text("region = 'first'\n")
    server = make_server("--config", str(path))
    path.write_text("region = ")
    server.signal(signal.SIGHUP)
    poll(lambda: "not reloaded" in server.log)
    path.write_text("region = 'second'\n")
    server.signal(signal.SIGHUP)
    poll(lambda: "needs a restart" in server.log)
    assert "option=--region" in server.log


def test_each_option_can_be_wrong() -> None:
    reference = Path(__file__).parent.parent / "docs/CONFIGURATION.md"
    options = set(re.findall(r"^\| `--([a-z0-9-]+)`", reference.read_text(), re.M))
    assert options <= {bad.option for bad in ALL} and len(options) > 30


def test_an_empty_file_names_no_directory(make_server, tmp_path: Path) -> None:
    path = tmp_path / "slipway.toml"
    path.write_text("")
    done = subprocess.run(
        [binary(), "serve", "--config", path], capture_output=True, text=True, env=KEYS, check=False
    )
    assert done.returncode == 2 and f"{path}: nothing to serve: name the directory" in done.stderr, done


@pytest.mark.parametrize("key, value, cure", [
    ("durability", "perhaps", "[possible values: full, data, none]"),
    ("max-requests", "many", "a whole number, 1 to 1000000"),
    ("index-cache", "-1", "a whole number, 0 to 16777216"),
    ("header-timeout", "0", "1 to 4294967295"),
    ("dir-mode", "0644", "give the owner all permissions"),
    ("access-log-format", "s3", "--access-log-format has no effect without --access-log"),
    ("traces-ratio", "0.5", "--traces-ratio has no effect without --traces"),
    ("region", "a b", "letters, digits"),
    ("domain", "a..b", "a domain name such as"),
    ("listen", "nowhere", "expected ADDRESS:PORT"),
    ("log", "shout", "known are off"),
    ("tls-cert", "/nonexistent", "give one key for each certificate"),
    ("credentials-file", "/nonexistent", "create the file, or give the path of another"),
    ("master-key-file", "/nonexistent", "create the file, or give the path of another"),
    ("master-key-command", "/nonexistent", "it cannot be run"),
    ("identities", "/srv/iam", "expected vault:https://"),
    ("identities-ca", "/none", "--identities-ca has no effect without --identities"),
    ("config", "/nonexistent", "create the file, or give the path of another"),
])  # fmt: skip
def test_flags_and_variables(tmp_path: Path, key: str, value: str, cure: str) -> None:
    variable = "SLIPWAY_" + key.upper().replace("-", "_")
    for options, env, named in [
        ([f"--{key}={value}"], {}, [f"--{key}"]),
        ([], {variable: value}, [variable, f"--{key}"]),
    ]:
        done = start(tmp_path / "tree", *options, env=env)
        assert done.returncode == 2 and cure in done.stderr, done
        assert any(name in done.stderr for name in named), done
        assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize("options, env", [
    (["--read-only", "--rehash-on-read"], {}),
    (["--trusted-proxy", "10.0.0.0/8"], {}),
    (["--traces", "foo"], {}),
    ([], {"SLIPWAY_ROOT_SECRET_KEY": "short"}),
])  # fmt: skip
def test_the_exit_status_of_what_does_not_fit(
    tmp_path: Path, options: list[str], env: dict[str, str]
) -> None:
    # What is wrong is said without a warning about what it would have needed.
    done = start(tmp_path / "tree", *options, "--max-connections", "1000000", env=env)
    assert done.returncode == 2 and not (tmp_path / "tree").exists(), done
    assert done.stderr.startswith("slipway: ") and done.stderr.count("\n") == 1, done


@pytest.mark.parametrize("key", SWITCHES)
def test_a_switch_in_the_environment(tmp_path: Path, key: str) -> None:
    variable = "SLIPWAY_" + key.upper().replace("-", "_")
    done = start(tmp_path / "tree", env={variable: "maybe"})
    assert done.returncode == 2 and f"in {variable}: " in done.stderr, done
    assert "expected 1, true, yes or on; or 0, false, no or off" in done.stderr, done


def test_a_line_that_belongs_to_a_flag(make_server, tmp_path: Path) -> None:
    """What the file says counts together with flags and variables."""
    path = tmp_path / "slipway.toml"
    path.write_text(f'access-log = "{tmp_path}/access.log"\n')
    make_server("--config", str(path), "--access-log-format", "s3").stop()
    path.write_text('access-log-format = "s3"\n')
    make_server("--config", str(path), "--access-log", str(tmp_path / "access.log"))


@pytest.mark.parametrize("second", ["--listen", "--ops-listen"])
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_an_address_that_is_given_twice(tmp_path: Path, second: str, kind: str) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address = f"127.0.0.1:{port}" if kind == "tcp" else f"unix:{tmp_path}/socket"
    done = start(tmp_path / "tree", "--listen", address, second, address)
    assert done.returncode == 1 and not (tmp_path / "tree").exists(), done
    assert f"{second} {address}: cannot listen there: " in done.stderr, done
    assert f"--listen {address} names the same address: choose another" in done.stderr, done


def test_an_address_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        for key in ADDRESSES:
            path = tmp_path / "slipway.toml"
            path.write_text(f'\n{key} = "{address}"\n')
            free = [] if key == "listen" else ["--listen", "127.0.0.1:0"]
            done = start(tmp_path / "tree", "--config", str(path), *free)
            assert done.returncode == 1, done
            assert f"{path}: line 2: --{key} {address}: " in done.stderr, done
            assert "stop the program that listens there, or choose another address" in done.stderr
            assert not (tmp_path / "tree").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user")
def test_a_file_that_the_servers_user_may_not_read(make_server, tmp_path: Path) -> None:
    path = tmp_path / "slipway.toml"
    path.write_text("\n")
    path.chmod(0o600)
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        binary(),
        "serve",
        "--config",
        path,
        tmp_path / "tree",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=KEYS, check=False)
    assert (
        done.returncode == 2
        and "give the server's user read permission" in done.stderr
        and str(path) in done.stderr
    ), done
