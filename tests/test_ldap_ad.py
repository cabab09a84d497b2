"""Sessions for people of an Active Directory (Samba's): its names, nested groups, StartTLS and disabled accounts."""

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_ldap import DENIED, give, s3

from support.active_directory import SUFFIX, ActiveDirectory, unusable
from support.identities import client, code_of, master_key
from support.ldap import log_in, refused
from support.server import Server
from support.transports import make_certificate

WRITES = "arn:aws:iam::aws:policy/AmazonS3FullAccess"
GATEWAY_PASSWORD = "Of-the-gateway-1"
IN_CHAIN = "(member:1.2.840.113556.1.4.1941:={dn})"


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Iterator[ActiveDirectory]:
    # Its ports are those of LDAP: one process of tests at a time.
    with (Path(tempfile.gettempdir()) / "slipway-tests-samba").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if why := unusable():
            pytest.skip(why)
        yield from domain(tmp_path_factory.mktemp("domain"))


def domain(folder: Path) -> Iterator[ActiveDirectory]:
    made = ActiveDirectory(folder, make_certificate(folder, "directory", "localhost"))
    for name, ids in (("ann", 12301), ("bob", 12302), ("eve", None), ("gateway", None)):
        made.user(name, f"Of-{name}-1" if name != "gateway" else GATEWAY_PASSWORD, ids)
    made.group("inner", "ann", gid=12350)
    made.group("outer", "inner", "bob")
    made.start()
    try:
        yield made
    finally:
        made.stop()


def start(make_server, folder: Path, directory: ActiveDirectory, scheme: str, *more: str, **rest) -> Server:
    password = folder / "ldap-password"
    password.write_text(GATEWAY_PASSWORD + "\n")
    password.chmod(0o600)
    key = folder / "master-key"
    return make_server(
        *("--durability", "none", "--master-key-file", str(key if key.exists() else master_key(folder))),
        *("--ldap-server", f"{scheme}://localhost", "--ldap-ca", str(directory.certificate[0])),
        *("--ldap-base", SUFFIX, "--ldap-bind-dn", f"cn=gateway,cn=users,{SUFFIX}"),
        *("--ldap-bind-password-file", str(password), "--ldap-name-attribute", "sAMAccountName"),
        *("--ldap-user-filter", "(&(objectClass=user)(sAMAccountName={user}))"),
        *more,
        **rest,
    )


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
@pytest.mark.parametrize("groups", ["(member={dn})", IN_CHAIN])
def test_logins(make_server, tmp_path, directory, scheme, groups):
    """Over StartTLS and TLS; groups of groups by searches, and by the directory itself."""
    server = start(make_server, tmp_path, directory, scheme, "--ldap-group-filter", groups)
    give(server, "writers", f"CN=outer,CN=Users,{SUFFIX.upper()}", WRITES)
    for name in ("ann", "ANN", "bob"):
        key = log_in(server, name, f"Of-{name.lower()}-1")
        s3(server, key).list_buckets()
        arn = client(server, "sts", key).get_caller_identity()["Arn"]
        assert arn.endswith(f"federated-user/ldap/{name.lower()}")
    assert refused(server, "eve", "Of-eve-1") == DENIED
    assert refused(server, "ann", "wrong") == DENIED
    assert refused(server, "ann)(cn=*", "Of-ann-1") == DENIED


def test_a_disabled_account(make_server, tmp_path, directory):
    """At a gateway that has asked nothing yet."""
    directory.user("dan", "Of-dan-1")
    directory.group("dans", "dan")
    server = start(make_server, tmp_path, directory, "ldaps")
    give(server, "dans", f"cn=dans,cn=users,{SUFFIX}", WRITES)
    key = log_in(server, "dan", "Of-dan-1")
    directory.disable("dan")
    other = start(make_server, tmp_path, directory, "ldaps", tree=server.tree)
    assert code_of(s3(other, key).list_buckets) == "InvalidAccessKeyId"
    assert refused(other, "dan", "Of-dan-1") == DENIED


def test_without_tls_it_refuses(make_server, tmp_path, directory):
    """Samba takes no password without TLS; what it says is in the log."""
    server = start(make_server, tmp_path, directory, "ldap", "--ldap-in-clear")
    assert refused(server, "ann", "Of-ann-1") == ("ServiceUnavailable", 503)
    assert "the gateway itself was refused: 8" in server.log
