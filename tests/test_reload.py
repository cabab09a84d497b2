"""SIGHUP: options, certificates and keys are read again while requests go on; what a service manager is told."""

import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.server import ACCESS_KEY, KEYS, SECRET_KEY
from support.sigv4 import Signer
from support.transports import make_certificate
from support.wire import RawClient, poll

OTHER_KEY, OTHER_SECRET = "OTHERACCESSKEY", "another-secret-for-tests"


def write_keys(path, access_key: str, secret_key: str, more: str = "") -> None:
    new = path.with_suffix(".new")
    new.write_text(f'access_key = "{access_key}"\nsecret_key = "{secret_key}"\n{more}')
    new.chmod(0o600)
    new.rename(path)


def reload(server, says: str = "reloaded") -> str:
    """What the log says of it."""
    before = len(server.log)
    server.signal(signal.SIGHUP)
    poll(lambda: says in server.log[before:], 10)
    return server.log[before:]


def test_keys(make_server, tmp_path):
    keys = tmp_path / "keys.toml"
    write_keys(keys, ACCESS_KEY, SECRET_KEY)
    server = make_server("--credentials-file", str(keys), env={})
    bucket = Bucket(server, "bucket").create()
    other = RawClient(server.address, Signer(OTHER_KEY, OTHER_SECRET))
    expect.error(other.get("/bucket"), "InvalidAccessKeyId")
    with bucket.raw.connect() as connection:
        assert bucket.raw.get("/bucket", connection=connection).status == 200
        write_keys(keys, OTHER_KEY, OTHER_SECRET)
        log = reload(server)
        assert "root's keys" in log
        assert OTHER_SECRET not in log and OTHER_KEY not in log
        # Also on a connection that was open.
        response = bucket.raw.get("/bucket", connection=connection)
        expect.error(response, "InvalidAccessKeyId")
    assert other.get("/bucket").status == 200
    assert "nothing" in reload(server)


@pytest.mark.parametrize(
    "spoil, says",
    [
        (lambda config, keys: config.write_text("regoin = 'x'\n"), "unknown key"),
        (lambda config, keys: config.write_text("region = \n"), "line 1: not valid TOML"),
        (lambda config, keys: config.write_text("log = 'shout'\n"), "not a log level"),
        (lambda config, keys: config.unlink(), "No such file"),
        (lambda config, keys: keys.unlink(), "No such file"),
        (lambda config, keys: keys.chmod(0o644), "other users may read it"),
        (lambda config, keys: keys.write_text("access_key = 'abc'\n"), "keys.toml"),
    ],
)
def test_what_is_wrong_changes_nothing(make_server, tmp_path, spoil, says):
    config, keys = tmp_path / "slipway.toml", tmp_path / "keys.toml"
    write_keys(keys, ACCESS_KEY, SECRET_KEY)
    config.write_text("domain = 's3.test'\n")
    server = make_server("--config", str(config), "--credentials-file", str(keys), env={})
    bucket = Bucket(server, "bucket").create()
    spoil(config, keys)
    log = reload(server, "not reloaded")
    assert says in log
    assert bucket.raw.get("/bucket").status == 200
    assert bucket.raw.get("/", headers={"host": "bucket.s3.test"}).xml.name == "ListBucketResult"


def test_uid_and_gid(make_server, tmp_path):
    keys = tmp_path / "keys.toml"
    write_keys(keys, ACCESS_KEY, SECRET_KEY, "uid = 1000\ngid = 1000\n")
    server = make_server("--credentials-file", str(keys), "--chown", env={})
    assert "no uid and gid are known" not in server.log
    write_keys(keys, ACCESS_KEY, SECRET_KEY, "uid = 1001\ngid = 1000\n")
    assert "new=root's uid and gid" in reload(server)
    assert "new=nothing" in reload(server)
    write_keys(keys, ACCESS_KEY, SECRET_KEY)
    log = reload(server)
    assert "root's uid and gid" in log and "--chown: no uid and gid are known for root" in log


class TestAFileThatBlocks:
    """A pipe that nobody writes to, as a file of a network that hangs."""

    @pytest.fixture
    def keys(self, tmp_path):
        keys = tmp_path / "keys.toml"
        write_keys(keys, ACCESS_KEY, SECRET_KEY)
        return keys

    @pytest.fixture
    def server(self, make_server, keys):
        server = make_server("--credentials-file", str(keys), env={})
        keys.unlink()
        os.mkfifo(keys, 0o600)
        server.signal(signal.SIGHUP)
        return server

    def test_keeps_it_neither_from_serving_nor_from_stopping(self, server):
        poll(lambda: waits_for_a_pipe(server.pid), 10)
        assert server.raw.get("/").status == 200
        server.signal(signal.SIGTERM)
        assert server.wait() == 0

    def test_what_comes_meanwhile_is_one_more_reload(self, server, keys):
        poll(lambda: waits_for_a_pipe(server.pid), 10)
        for _ in range(5):
            server.signal(signal.SIGHUP)
        pipe = os.open(keys, os.O_WRONLY)
        write_keys(keys, OTHER_KEY, OTHER_SECRET)
        os.write(pipe, b"access_key = 1")
        os.close(pipe)
        poll(lambda: "reloaded new=root's keys" in server.log, 10)
        # Others would be done soon.
        time.sleep(0.5)
        assert re.findall("(?:not )?reloaded", server.log) == ["not reloaded", "reloaded"]


def waits_for_a_pipe(pid: int) -> bool:
    """Whether one of its threads opens a pipe whose other end nobody has."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return any((task / "wchan").read_text() == "wait_for_partner" for task in tasks)


def test_tls_is_off(make_server, tmp_path):
    config = tmp_path / "slipway.toml"
    config.write_text("domain = 's3.test'\n")
    server = make_server("--config", str(config))
    config.write_text("tls-cert = '/nonexistent'\ntls-key = '/nonexistent'\n")
    assert f"{config}: line 1: --tls-cert /nonexistent: No such file" in reload(server, "not reloaded")
    config.write_text("\ntls-key = '/nonexistent'\n")
    log = reload(server, "not reloaded")
    assert f"{config}: line 2: 0 --tls-cert but 1 --tls-key: give one" in log
    certificate, key = make_certificate(tmp_path, "one", "localhost")
    config.write_text(f"tls-cert = '{certificate}'\ntls-key = '{key}'\n")
    for _ in range(2):
        before = len(server.log)
        reload(server)
        poll(lambda before=before: server.log[before:].count("needs a restart") == 2, 10)
        assert "new=--domain" in server.log[before:] or "new=nothing" in server.log[before:]
        assert "option=--tls-cert" in server.log[before:] and "option=--tls-key" in server.log[before:]


def test_options(make_server, tmp_path):
    config = tmp_path / "slipway.toml"
    config.write_text("domain = 's3.test'\n")
    server = make_server("--config", str(config))
    bucket = Bucket(server, "bucket").create()
    config.write_text("domain = 'other.test'\nregion = 'elsewhere'\nlog = 'info,gateway::server=debug'\n")
    log = reload(server)
    assert "--domain" in log and "--log" in log
    poll(lambda: "needs a restart" in server.log, 10)
    assert "option=--region" in server.log
    assert bucket.raw.get("/", headers={"host": "bucket.other.test"}).xml.name == "ListBucketResult"
    # It is no bucket's host any more, and so the list of all.
    assert bucket.raw.get("/", headers={"host": "bucket.s3.test"}).xml.name == "ListAllMyBucketsResult"
    with bucket.raw.connect() as connection:
        connection.send(b"no request\r\n\r\n")
        connection.is_closed(10)
    assert poll(lambda: "connection ended" in server.log, 10)
    # What is not taken is told again, since it still differs.
    assert "--region" in reload(server, "needs a restart")


def test_a_service_manager_is_told(make_server, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(10)
        server = make_server(env={**KEYS, "NOTIFY_SOCKET": path})
        assert manager.recv(1000) == b"READY=1\n"
        server.signal(signal.SIGHUP)
        told = manager.recv(1000)
        assert told.startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert manager.recv(1000) == b"READY=1\n"
        os.kill(server.pid, signal.SIGTERM)
        assert manager.recv(1000) == b"STOPPING=1\n"
        assert server.wait() == 0
