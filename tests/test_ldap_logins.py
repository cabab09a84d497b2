"""Logins by an LDAP directory: names that belong to one entry, slow passwords, lines of the audit log
(docs/IDENTITY.md)."""

# ruff: noqa: F811

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_ldap import AWAY, DENIED, OWN, WRITES, give, options, pytestmark, s3, slapd  # noqa: F401

from support.identities import client, code_of
from support.ldap import GROUPS, ask, entry, form, group_dn, log_in, person_dn, refused
from support.server import Server
from support.wire import poll


class TestNames:
    """A name belongs to one entry: whoever logs in by another attribute is not somebody else here."""

    FILTER = ("--ldap-user-filter", "(|(uid={user})(mail={user}))")
    INTERN = "uid=ann,ou=interns,dc=lab"
    INTERNS = entry("ou=interns,dc=lab", "organizationalUnit", ou="interns") + entry(
        INTERN,
        "inetOrgPerson",
        uid="ANN",
        cn="i",
        sn="i",
        mail="intern@lab.example",
        userPassword="of-intern",
    )

    @pytest.fixture
    def server(self, make_server, slapd, tmp_path, options) -> Server:
        server = make_server(*options, *slapd.options(tmp_path), *self.FILTER)
        give(server, "posix", f"cn=proj,{GROUPS}", OWN)
        give(server, "writers", group_dn("staff"), WRITES)
        return server

    def test_of_somebody_else(self, server, slapd, make_server, options, tmp_path):
        ann = log_in(server, "ann@lab.example", "of-ann")
        client(server, "sts", ann).get_caller_identity()
        slapd.add(self.INTERNS)
        assert refused(server, "intern@lab.example", "of-intern") == DENIED
        # The name is nobody's now, also for those who had it before.
        assert refused(server, "ann@lab.example", "of-ann") == DENIED
        other = make_server(*options, *slapd.options(tmp_path), *self.FILTER, tree=server.tree)
        assert code_of(s3(other, ann).list_buckets) == "InvalidAccessKeyId"
        slapd.delete(self.INTERN)
        log_in(server, "ann@lab.example", "of-ann")

    def test_several(self, server, slapd):
        """An entry that gives itself a name besides its own, which no other entry has."""
        slapd.modify(f"dn: {person_dn('ann')}\nchangetype: modify\nadd: uid\nuid: aaron\n")
        assert refused(server, "ann@lab.example", "of-ann") == DENIED
        assert refused(server, "aaron", "of-ann") == DENIED


class TestTheAuditLog:
    def test_each_login_has_a_line(self, make_server, slapd, tmp_path, options):
        log = tmp_path / "audit.log"
        server = make_server(*options, *slapd.options(tmp_path), "--audit-log", str(log))
        give(server, "writers", group_dn("staff"), WRITES)

        def lines() -> list[dict]:
            text = log.read_text()
            all_lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
            return [line for line in all_lines if line.get("operation") == "AssumeRoleWithLDAPIdentity"]

        def line(name: str, password: str) -> dict:
            before = len(lines())
            ask(server, form(name, password))
            poll(lambda: len(lines()) > before)
            (found,) = lines()[before:]
            assert password not in log.read_text()
            return {
                key: found[key] for key in found.keys() - {"operation", "time", "request_id", "remote_ip"}
            }

        account = client(server, "sts").get_caller_identity()["Account"]

        def whose(name: str, found: dict) -> dict:
            assert found.pop("entry").endswith(f" {person_dn(name)}")
            return found

        def somebody(name: str) -> dict:
            return {
                "kind": "directory-user",
                "account": account,
                "principal": f"arn:aws:sts::{account}:federated-user/ldap/{name}",
                "principal_id": f"{account}:ldap/{name}",
                "session": name,
            }

        allowed = {"outcome": "allow", "decided_by": "directory"}
        denied = {"outcome": "deny", "error": "AccessDenied"}
        assert whose("ann", line("ann", "of-ann")) == somebody("ann") | allowed
        # A wrong password, which is not sent the second time.
        for _ in range(2):
            assert whose("ann", line("ann", "wrong")) == denied | {"decided_by": "authentication"}
        assert whose("eve", line("eve", "of-eve")) == somebody("eve") | denied | {"decided_by": "server"}
        assert line("no-such-name", "of-ann") == denied | {"decided_by": "authentication"}


class SlowBinds:
    """A proxy of a directory whose answers to passwords of people take some seconds, for as long as `delay` says."""

    def __init__(self, port: int) -> None:
        self.delay, self.target = 0.0, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._carry, args=self.listener.accept()[:1], daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(("127.0.0.1", self.target)) as server,
            contextlib.suppress(OSError),
        ):
            is_bind = False
            while True:
                for ready in select.select([client, server], [], [], 60)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is client:
                        # A BindRequest (RFC 4511, 4.2) of a person, shorter than 128 bytes.
                        is_bind = data[5:6] == b"\x60" and b"ou=people" in data
                        server.sendall(data)
                    else:
                        time.sleep(self.delay if is_bind else 0)
                        client.sendall(data)

    def stop(self) -> None:
        self.listener.close()


class TestSlowPasswords:
    @pytest.fixture
    def proxy(self, slapd) -> Iterator[SlowBinds]:
        proxy = SlowBinds(slapd.port)
        yield proxy
        proxy.stop()

    @pytest.fixture
    def server(self, make_server, slapd, proxy, tmp_path, options) -> Server:
        given = [one.replace(str(slapd.port), str(proxy.port)) for one in slapd.options(tmp_path)]
        server = make_server(*options, *given)
        give(server, "all", group_dn("more"), WRITES)
        give(server, "writers", group_dn("staff"), WRITES)
        return server

    def test_many_logins_of_one_keep_nobody_out(self, server, proxy):
        log_in(server, "ann", "of-ann")
        proxy.delay = 0.8
        with ThreadPoolExecutor(12) as pool:
            many = [pool.submit(ask, server, form("ann", "of-ann")) for _ in range(24)]
            began = time.monotonic()
            for _ in range(6):
                log_in(server, "bob", "of-bob")
            assert time.monotonic() - began < 15
            answers = [one.result()[0] for one in many]
        assert set(answers) <= {200, 503} and answers.count(200) >= 6
        # None of the right passwords was taken for a wrong one.
        log_in(server, "ann", "of-ann")

    def test_no_answer_is_no_refusal(self, server, proxy):
        proxy.delay = 6
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(refused, server, "ann", "of-ann")
            time.sleep(5.5)
            # Others are not told that the directory is away.
            proxy.delay = 0
            log_in(server, "bob", "of-bob")
            assert slow.result() == AWAY
        log_in(server, "ann", "of-ann")
