"""Sessions for people of an LDAP directory, by AssumeRoleWithLDAPIdentity (docs/IDENTITY.md).

The directory is OpenLDAP's slapd. What it says is kept for a minute, so that most changes are looked at through another
gateway of the tree, which has asked nothing yet."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_admin import done
from test_reload import reload

from support.identities import allow, client, code_of, deny, error_of, master_key, policy
from support.ldap import (
    GATEWAY,
    GATEWAY_PASSWORD,
    GROUPS,
    SUFFIX,
    Slapd,
    ask,
    entry,
    form,
    group,
    group_dn,
    installed,
    log_in,
    person,
    person_dn,
    refused,
)
from support.server import KEYS, SIDECARS, Server, StartFailed
from support.transports import make_certificate
from support.wire import poll

pytestmark = pytest.mark.skipif(not installed(), reason="slapd or ldap-utils is not installed")

READS = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
WRITES = "arn:aws:iam::aws:policy/AmazonS3FullAccess"
OWN = "arn:aws:iam::aws:policy/slipway/OwnBuckets"
IDS = 12201
STRANGE = "a*b(c)\\d"
DENIED = ("AccessDenied", 403)
AWAY = ("ServiceUnavailable", 503)

# `staff` and `data` are in each other, `far` is in a group that is in a group.
PEOPLE = (
    person("ann", "of-ann", IDS, mail="ann@lab.example")
    + person("bob", "of-bob", IDS + 1)
    + person("carl", "of-carl")
    + person("eve", "of-eve")
    + person("rooty", "of-rooty", 0)
    + person("Mixed.Case", "of-mixed")
    + person("two words", "of-two")
    + entry(
        "cn=odd,ou=people,dc=lab", "inetOrgPerson", cn="odd", sn="odd", uid=STRANGE, userPassword="of-odd"
    )
    + group("staff", person_dn("ann"), person_dn("rooty"), group_dn("data"), person_dn("Mixed.Case"))
    + group("data", person_dn("bob"), group_dn("staff"))
    + group("more", group_dn("data"), person_dn("two words"), "cn=odd,ou=people,dc=lab")
    + entry(f"cn=proj,{GROUPS}", "posixGroup", cn="proj", gidNumber=IDS + 50, memberUid=["carl", "ann"])
    + entry(f"cn=wheel,{GROUPS}", "posixGroup", cn="wheel", gidNumber=0, memberUid=["ann"])
)


@pytest.fixture
def slapd(tmp_path) -> Iterator[Slapd]:
    running = Slapd(tmp_path, PEOPLE)
    yield running
    running.stop()


@pytest.fixture
def options(tmp_path) -> list[str]:
    return ["--durability", "none", "--master-key-file", str(master_key(tmp_path))]


@pytest.fixture
def server(make_server, slapd, tmp_path, options) -> Server:
    server = make_server(*options, *slapd.options(tmp_path))
    give(server, "readers", group_dn("data"), READS)
    give(server, "writers", group_dn("staff"), WRITES)
    give(server, "posix", f"CN=Proj, {GROUPS.upper()}", OWN)
    return server


def give(server: Server, name: str, dn: str, *policies: str) -> None:
    """Makes a group, whose policies members of one of the directory's have."""
    iam = client(server, "iam")
    iam.create_group(GroupName=name)
    for arn in policies:
        iam.attach_group_policy(GroupName=name, PolicyArn=arn)
    done(server, "SetGroupOfDirectory", GroupName=name, DirectoryGroup=dn)


def s3(server: Server, key: tuple):
    return client(server, "s3", key)


class TestLogins:
    def test_a_session(self, server):
        client(server, "s3").create_bucket(Bucket="lab")
        key = log_in(server, "ann", "of-ann")
        identity = client(server, "sts", key).get_caller_identity()
        assert identity["Arn"].endswith(":federated-user/ldap/ann")
        assert identity["UserId"] == identity["Account"] + ":ldap/ann"
        s3(server, key).put_object(Bucket="lab", Key="a", Body=b"1")
        # Whoever is in a group whose policy only reads.
        bob = s3(server, log_in(server, "bob", "of-bob"))
        assert bob.get_object(Bucket="lab", Key="a")["Body"].read() == b"1"

    def test_in_the_query_as_minio_documents_it(self, server):
        key = log_in(server, "ann", "of-ann", in_query=True)
        s3(server, key).list_buckets()
        assert "of-ann" not in server.log

    def test_a_session_policy_limits_it(self, server):
        client(server, "s3").create_bucket(Bucket="lab")
        key = log_in(server, "ann", "of-ann", Policy=policy(allow("s3:ListAllMyBuckets")))
        s3(server, key).list_buckets()
        assert code_of(s3(server, key).put_object, Bucket="lab", Key="a", Body=b"1") == "AccessDenied"
        assert refused(server, "ann", "of-ann", Policy="{")[0] == "MalformedPolicyDocument"

    def test_seconds(self, server):
        status, body = ask(server, form("ann", "of-ann", DurationSeconds="900"))
        assert status == 200 and b"<Expiration>" in body
        assert refused(server, "ann", "of-ann", DurationSeconds="899") == ("ValidationError", 400)
        assert refused(server, "ann", "of-ann", DurationSeconds="604800") == ("ValidationError", 400)

    def test_sessions_do_no_iam(self, server):
        iam = client(server, "iam")
        iam.attach_group_policy(GroupName="writers", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        key = log_in(server, "ann", "of-ann")
        assert code_of(client(server, "iam", key).list_users) == "InvalidClientTokenId"
        assert code_of(client(server, "sts", key).get_session_token) == "InvalidClientTokenId"
        wanted = {"RoleArn": "arn:aws:iam::123456789012:role/x", "RoleSessionName": "s1"}
        assert code_of(client(server, "sts", key).assume_role, **wanted) == "InvalidClientTokenId"

    def test_without_a_directory(self, make_server, options):
        assert refused(make_server(*options), "ann", "of-ann") == ("NotImplemented", 501)


class TestRefusals:
    def test_what_is_wrong_is_not_told(self, server):
        answers = [
            ask(server, form(name, password))
            for name, password in (("ann", "wrong"), ("nobody", "wrong"), ("ann", "OF-ANN"))
        ]
        texts = {body.partition(b"<Message>")[2].partition(b"</Message>")[0] for _, body in answers}
        assert [status for status, _ in answers] == [403] * 3 and len(texts) == 1

    def test_an_empty_password_is_sent_nowhere(self, server, slapd):
        assert refused(server, "ann", "") == ("ValidationError", 400)
        assert slapd.binds(person_dn("ann")) == 0

    @pytest.mark.parametrize(
        "name",
        [
            "*",
            "a*",
            "ann)(|(uid=*",
            "ann)(objectClass=*",
            "*)(uid=ann",
            "(uid=ann)",
            "ann\\2a",
            "{user}",
            "{dn}",
            "a\0",
        ],
    )
    def test_names_are_no_filters(self, server, slapd, name):
        assert refused(server, name, "of-ann") == DENIED
        assert slapd.binds(person_dn("ann")) == 0

    def test_a_name_of_such_letters_is_found(self, server, slapd):
        """The entry is found and the password is right; but IAM has no such names."""
        assert refused(server, STRANGE, "of-odd") == DENIED
        assert slapd.binds("cn=odd,ou=people,dc=lab") == 1
        assert refused(server, "two words", "of-two") == DENIED

    def test_the_spelling_is_the_directorys(self, server):
        key = log_in(server, "mixed.CASE", "of-mixed")
        assert client(server, "sts", key).get_caller_identity()["Arn"].endswith("/Mixed.Case")

    def test_several_entries_of_a_name(self, make_server, slapd, tmp_path, options):
        server = make_server(
            *options, *slapd.options(tmp_path), "--ldap-user-filter", "(|(uid={user})(sn=*))"
        )
        for _ in range(7):
            assert refused(server, "ann", "of-ann") == DENIED
        assert slapd.binds(person_dn("ann")) == 0
        assert server.log.count("several entries of the LDAP directory have this name") == 5

    def test_whoever_is_in_no_group_of_ours(self, server):
        status, body = ask(server, form("eve", "of-eve"))
        assert status == 403 and b"No group of this server" in body

    def test_few_wrong_passwords_are_sent(self, server, slapd):
        for number in range(8):
            # In other spellings, which are one entry.
            assert refused(server, ("bob", "BOB", " bob")[number % 3], f"wrong{number}") == DENIED
        assert refused(server, "bob", "of-bob") == DENIED
        assert slapd.binds(person_dn("bob")) == 3
        log_in(server, "ann", "of-ann")

    def test_a_wrong_password_is_sent_once(self, server, slapd):
        for _ in range(6):
            assert refused(server, "bob", "wrong") == DENIED
        log_in(server, "bob", "of-bob")
        assert slapd.binds(person_dn("bob")) == 2

    def test_tokens_of_others(self, server):
        ann, bob = log_in(server, "ann", "of-ann"), log_in(server, "bob", "of-bob")
        assert code_of(s3(server, (*ann[:2], bob[2])).list_buckets) == "InvalidToken"


class TestGroups:
    def test_groups_of_groups(self, server):
        """`data` is in `more`, and in `staff`, which is in `data`."""
        iam = client(server, "iam")
        bob = log_in(server, "bob", "of-bob")
        s3(server, bob).create_bucket(Bucket="of-bob")
        iam.create_group(GroupName="denied")
        iam.put_group_policy(
            GroupName="denied", PolicyName="own", PolicyDocument=policy(deny("s3:CreateBucket"))
        )
        done(server, "SetGroupOfDirectory", GroupName="denied", DirectoryGroup=group_dn("more"))
        assert code_of(s3(server, bob).create_bucket, Bucket="of-bob2") == "AccessDenied"

    def test_posix_groups_by_name(self, server):
        """A group of names; its DN is written in another way, and its policy has the name as a variable."""
        carl = s3(server, log_in(server, "carl", "of-carl"))
        carl.create_bucket(Bucket="carl")
        carl.put_object(Bucket="carl", Key="a", Body=b"1")
        assert code_of(carl.create_bucket, Bucket="other") == "AccessDenied"

    def test_too_many_groups(self, server, slapd):
        """More than the directory tells (slapd's limit is 500): a Deny could be among the rest. Others log in."""
        slapd.add("".join(group(f"g{number}", person_dn("eve")) for number in range(501)))
        give(server, "many", group_dn("g1"), READS)
        assert refused(server, "eve", "of-eve") == AWAY
        assert "more groups than" in server.log
        log_in(server, "ann", "of-ann")

    def test_groups_that_are_nested_too_deep(self, server, slapd):
        """A Deny could be among those that are further up."""
        chain = [group("d0", person_dn("eve"))]
        chain += [group(f"d{depth}", group_dn(f"d{depth - 1}")) for depth in range(1, 10)]
        slapd.add("".join(chain))
        give(server, "deep", group_dn("d0"), READS)
        log_in(server, "eve", "of-eve")
        slapd.add(group("d10", group_dn("d9")))
        assert refused(server, "eve", "of-eve") == AWAY
        assert "nested deeper" in server.log
        log_in(server, "ann", "of-ann")

    def test_a_group_is_taken_away(self, server):
        carl = log_in(server, "carl", "of-carl")
        s3(server, carl).list_buckets()
        done(server, "SetGroupOfDirectory", GroupName="posix")
        assert code_of(s3(server, carl).list_buckets) == "AccessDenied"
        assert refused(server, "carl", "of-carl") == DENIED
        assert [one.text for one in done(server, "ListGroupsOfDirectory").iterfind(".//{*}GroupName")] == [
            "readers",
            "writers",
        ]

    def test_a_bucket_policy_names_somebody(self, server):
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        account = client(server, "sts").get_caller_identity()["Account"]
        names = {"Principal": {"AWS": f"arn:aws:sts::{account}:federated-user/ldap/bob"}}
        statement = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::lab/*"} | names
        root.put_bucket_policy(Bucket="lab", Policy=policy(statement))
        give(server, "many", group_dn("more"))
        for name, may in (("bob", True), ("carl", False)):
            put = s3(server, log_in(server, name, f"of-{name}")).put_object
            if may:
                put(Bucket="lab", Key="a", Body=b"1")
            else:
                assert code_of(put, Bucket="lab", Key="a", Body=b"1") == "AccessDenied"
        # A federated user of that name is somebody else.
        iam = client(server, "iam")
        iam.create_user(UserName="max")
        iam.attach_user_policy(UserName="max", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        made = iam.create_access_key(UserName="max")["AccessKey"]
        sts = client(server, "sts", (made["AccessKeyId"], made["SecretAccessKey"], None))
        assert code_of(sts.get_federation_token, Name="ldap/bob") == "ValidationError"


class TestTheDirectorysWord:
    """What a session is worth when the directory says something else: at a gateway that has not asked yet."""

    @pytest.fixture
    def other(self, server, make_server, slapd, tmp_path) -> Server:
        master = str(tmp_path / "master-key")
        return make_server(
            "--durability", "none", "--master-key-file", master, *slapd.options(tmp_path), tree=server.tree
        )

    def test_somebody_is_deleted_and_made_anew(self, server, other, slapd):
        ann = log_in(server, "ann", "of-ann")
        slapd.delete(person_dn("ann"))
        assert code_of(s3(other, ann).list_buckets) == "InvalidAccessKeyId"
        # The first one has what it was told up to a minute.
        s3(server, ann).list_buckets()
        slapd.add(person("ann", "of-ann"))
        time.sleep(10.5)
        assert code_of(s3(other, ann).list_buckets) == "InvalidAccessKeyId"
        s3(other, log_in(other, "ann", "of-ann")).list_buckets()

    def test_somebody_leaves_a_group(self, server, other, slapd):
        ann = log_in(server, "ann", "of-ann")
        slapd.modify(
            f"dn: {group_dn('staff')}\nchangetype: modify\ndelete: member\nmember: {person_dn('ann')}\n"
        )
        assert code_of(s3(other, ann).create_bucket, Bucket="lab") == "AccessDenied"
        s3(server, ann).create_bucket(Bucket="lab")

    def test_somebody_is_disabled_by_the_filter(self, server, make_server, slapd, tmp_path):
        ann = log_in(server, "ann", "of-ann")
        master = str(tmp_path / "master-key")
        active = "(&(uid={user})(!(employeeType=left)))"
        other = make_server(
            *("--durability", "none", "--master-key-file", master, *slapd.options(tmp_path)),
            *("--ldap-user-filter", active),
            tree=server.tree,
        )
        s3(other, ann).list_buckets()
        bob = log_in(server, "bob", "of-bob")
        for name in ("ann", "bob"):
            slapd.modify(
                f"dn: {person_dn(name)}\nchangetype: modify\nreplace: employeeType\nemployeeType: left\n"
            )
        assert code_of(s3(other, bob).list_buckets) == "InvalidAccessKeyId"
        assert refused(other, "bob", "of-bob") == DENIED

    def test_the_directory_is_away(self, server, other, slapd):
        ann = log_in(server, "ann", "of-ann")
        slapd.stop()
        # What was told counts on.
        s3(server, ann).list_buckets()
        assert error_of(s3(other, ann).list_buckets)[:2] == AWAY
        assert refused(other, "ann", "of-ann") == AWAY
        slapd.start()
        poll(lambda: ask(other, form("ann", "of-ann"))[0] == 200)
        s3(other, ann).list_buckets()

    def test_the_directory_stalls(self, server, other, slapd):
        ann = log_in(server, "ann", "of-ann")
        slapd.stall(True)
        began = time.monotonic()
        assert error_of(s3(other, ann).list_buckets)[:2] == AWAY
        assert refused(server, "bob", "of-bob") == AWAY
        assert time.monotonic() - began < 15
        # Others are served meanwhile.
        client(other, "s3").list_buckets()
        slapd.stall(False)
        poll(lambda: ask(server, form("bob", "of-bob"))[0] == 200)

    @pytest.mark.slow
    def test_a_minute_is_the_longest(self, server, slapd):
        ann, bob = log_in(server, "ann", "of-ann"), log_in(server, "bob", "of-bob")
        began = time.monotonic()
        slapd.delete(person_dn("ann"))
        s3(server, ann).list_buckets()
        poll(lambda: gone(server, ann), 65, 1)
        assert time.monotonic() - began < 62
        slapd.stop()
        poll(lambda: away(server, bob), 65, 1)


def gone(server: Server, key: tuple) -> bool:
    try:
        s3(server, key).list_buckets()
    except Exception as error:
        return "InvalidAccessKeyId" in str(error)
    return False


def away(server: Server, key: tuple) -> bool:
    try:
        s3(server, key).list_buckets()
    except Exception as error:
        return "ServiceUnavailable" in str(error)
    return False


class TestTransport:
    @pytest.fixture
    def certificate(self, tmp_path) -> tuple[Path, Path]:
        return make_certificate(tmp_path, "directory", "localhost")

    @pytest.fixture
    def over_tls(self, tmp_path, certificate) -> Iterator[Slapd]:
        running = Slapd(tmp_path, PEOPLE, certificate)
        yield running
        running.stop()

    @staticmethod
    def logs_in(server: Server) -> bool:
        give(server, "writers", group_dn("staff"), WRITES)
        return ask(server, form("ann", "of-ann"))[0] == 200

    @pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
    def test_tls(self, make_server, over_tls, tmp_path, options, certificate, scheme):
        url = over_tls.url if scheme == "ldap" else over_tls.tls_url
        base = [option for option in over_tls.options(tmp_path) if option != "--ldap-in-clear"]
        base[base.index(over_tls.url)] = url
        trusted = make_server(*options, *base, "--ldap-ca", str(certificate[0]))
        assert self.logs_in(trusted)
        # Under another name, by another authority, and by the system's.
        other, _ = make_certificate(tmp_path, "other", "localhost")
        for changed, ca in (
            ([option.replace("localhost", "127.0.0.1") for option in base], certificate[0]),
            (base, other),
            (base, None),
        ):
            trust = ["--ldap-ca", str(ca)] if ca else []
            binds = over_tls.binds(person_dn("ann"))
            server = make_server(*options, *changed, *trust)
            assert refused(server, "ann", "of-ann") == AWAY
            assert over_tls.binds(person_dn("ann")) == binds and "certificate" in server.log
            server.stop()

    def test_a_server_without_starttls(self, make_server, slapd, tmp_path, options):
        """Nothing is sent in clear because TLS cannot be begun."""
        base = [option for option in slapd.options(tmp_path) if option != "--ldap-in-clear"]
        server = make_server(*options, *base)
        assert refused(server, "ann", "of-ann") == AWAY
        assert "StartTLS: the server refused it" in server.log
        assert "BIND" not in slapd.log.read_text()

    def test_a_certificate_of_the_gateway(self, make_server, tmp_path, options, certificate):
        """The gateway is known by its certificate alone (SASL EXTERNAL); one that shows none is not talked to."""
        own, key = make_certificate(tmp_path, "gateway", "gateway")
        running = Slapd(tmp_path, PEOPLE, certificate, clients=own)
        try:
            base = ["--ldap-server", running.tls_url, "--ldap-base", SUFFIX, "--ldap-ca", str(certificate[0])]
            shown = ["--ldap-client-cert", str(own), "--ldap-client-key", str(key)]
            server = make_server(*options, *base, *shown)
            assert self.logs_in(server)
            assert f'dn="{GATEWAY}" mech=EXTERNAL' in running.log.read_text()
            server.stop()
            assert refused(make_server(*options, *base), "ann", "of-ann") == AWAY
        finally:
            running.stop()

    def test_the_next_server(self, make_server, slapd, tmp_path, options):
        base = slapd.options(tmp_path)
        base[1] = "ldap://127.0.0.1:1," + base[1]
        server = make_server(*options, *base)
        assert self.logs_in(server)

    def test_the_gateways_own_password(self, make_server, slapd, tmp_path, options):
        """A wrong one says so in the log; a reload reads the file again."""
        base = slapd.options(tmp_path)
        (tmp_path / "ldap-password").write_text("wrong\n")
        server = make_server(*options, *base)
        give(server, "writers", group_dn("staff"), WRITES)
        assert refused(server, "ann", "of-ann") == AWAY
        assert "the gateway itself was refused: 49" in server.log
        (tmp_path / "ldap-password").write_text(GATEWAY_PASSWORD + "\n")
        reload(server)
        poll(lambda: ask(server, form("ann", "of-ann"))[0] == 200)
        assert GATEWAY_PASSWORD not in server.log

    def test_a_password_from_elsewhere(self, make_server, slapd, tmp_path, options):
        base = slapd.options(tmp_path)
        at = base.index("--ldap-bind-password-file")
        del base[at : at + 2]
        script = tmp_path / "print"
        script.write_text(f"#!/bin/sh\necho {GATEWAY_PASSWORD}\n")
        script.chmod(0o755)
        server = make_server(*options, *base, "--ldap-bind-password-command", str(script))
        assert self.logs_in(server)
        server.stop()
        server = make_server(*options, *base, env=KEYS | {"SLIPWAY_LDAP_BIND_PASSWORD": GATEWAY_PASSWORD})
        log_in(server, "ann", "of-ann")


class TestStart:
    """The settings are tried; a directory that does not answer keeps no server from starting."""

    @pytest.mark.parametrize(
        "wrong, says",
        [
            (("--ldap-server", "ldap://127.0.0.1:1"), "ldap://127.0.0.1:1: it cannot be connected to"),
            (("--ldap-base", "dc=nowhere"), 'below "dc=nowhere" failed: 32 noSuchObject'),
            (("--ldap-group-base", "ou=no,dc=lab"), "check --ldap-group-base"),
            (("--ldap-bind-dn", "cn=nobody,dc=lab"), "refused: 49 invalidCredentials"),
            ((), None),
        ],
    )
    def test_what_nobody_can_log_in_with(self, make_server, slapd, tmp_path, options, wrong, says):
        base = slapd.options(tmp_path)
        if wrong and wrong[0] in base:
            base[base.index(wrong[0]) + 1] = wrong[1]
        else:
            base += wrong
        server = make_server(*options, *base, "--log", "debug")
        tried = "the LDAP directory was tried at the start"
        if says:
            poll(lambda: tried in server.log, 10)
            (line,) = [line for line in server.log.splitlines() if tried in line]
            assert "WARN" in line and says in line.replace("\\", ""), line
        else:
            poll(lambda: "the LDAP directory answers" in server.log, 10)
            assert tried not in server.log
        assert GATEWAY_PASSWORD not in server.log

    def test_one_that_stalls(self, make_server, slapd, tmp_path, options):
        """The start does not wait for it."""
        slapd.stall(True)
        began = time.monotonic()
        server = make_server(*options, *slapd.options(tmp_path))
        assert time.monotonic() - began < 5
        client(server, "s3").list_buckets()
        poll(lambda: "it did not answer within 5 s" in server.log, 20)
        slapd.stall(False)
        give(server, "writers", group_dn("staff"), WRITES)
        poll(lambda: ask(server, form("ann", "of-ann"))[0] == 200)

    def test_what_can_never_work(self, make_server, slapd, tmp_path, options):
        base = slapd.options(tmp_path)
        with pytest.raises(StartFailed, match="--ldap-server needs a master key"):
            make_server("--durability", "none", *base)
        keys = ("--ldap-access-key-attribute", "s3AccessKey", "--ldap-secret-key-attribute", "s3SecretKey")
        server = make_server("--durability", "none", *base, *keys)
        assert "since no master key is given" in server.log
        base[base.index("--ldap-server") + 1] = slapd.tls_url
        with pytest.raises(StartFailed, match="--ldap-in-clear has no effect on servers of ldaps"):
            make_server(*options, *base)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users")
@pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files")
class TestFiles:
    """Whom people of the directory are on the file system: posixAccount and posixGroup."""

    @pytest.fixture
    def server(self, make_server, slapd, tmp_path, options) -> Server:
        tree = tmp_path / "tree"
        tree.mkdir()
        tree.chmod(0o755)
        for parent in (tmp_path, *tmp_path.parents):
            if parent.stat().st_mode & 0o1 == 0:
                parent.chmod(parent.stat().st_mode | 0o1)
        server = make_server(*options, "--impersonate", *slapd.options(tmp_path), tree=tree)
        give(server, "writers", group_dn("staff"), WRITES)
        give(server, "readers", group_dn("data"), WRITES)
        give(server, "posix", f"cn=proj,{GROUPS}", WRITES)
        return server

    def test_files_belong_to_people(self, server):
        bucket = server.tree / "lab"
        bucket.mkdir()
        os.chown(bucket, 0, IDS + 50)
        bucket.chmod(0o770)
        ann, bob = (s3(server, log_in(server, name, f"of-{name}")) for name in ("ann", "bob"))
        # By the group of the directory.
        ann.put_object(Bucket="lab", Key="a", Body=b"1")
        found = (bucket / "a").stat()
        assert (found.st_uid, found.st_gid) == (IDS, IDS)
        assert code_of(bob.get_object, Bucket="lab", Key="a") == "AccessDenied"
        bucket.chmod(0o777)
        bob.put_object(Bucket="lab", Key="b", Body=b"1")
        assert (bucket / "b").stat().st_uid == IDS + 1

    def test_nobody_is_root(self, server):
        """Neither by a uid of 0 nor by a group, nor without an identity."""
        bucket = server.tree / "lab"
        bucket.mkdir()
        bucket.chmod(0o777)
        for name in ("rooty", "carl"):
            key = s3(server, log_in(server, name, f"of-{name}"))
            assert code_of(key.put_object, Bucket="lab", Key="a", Body=b"1") == "AccessDenied"
        os.chown(bucket, 0, 0)
        bucket.chmod(0o770)
        ann = s3(server, log_in(server, "ann", "of-ann"))
        assert code_of(ann.put_object, Bucket="lab", Key="a", Body=b"1") == "AccessDenied"
