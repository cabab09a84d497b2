"""Access keys in entries of an LDAP directory (docs/IDENTITY.md): requests that they sign.

The directory is OpenLDAP's slapd. What it says of a key counts for a second (decision 0067)."""

import concurrent.futures
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from test_admin import done

from support.identities import allow, client, code_of, deny, error_of, master_key, new_user, policy
from support.ldap import (
    GATEWAY_PASSWORD,
    Slapd,
    group,
    group_dn,
    installed,
    log_in,
    person,
    person_dn,
)
from support.server import SIDECARS, Server
from support.wire import poll

pytestmark = pytest.mark.skipif(not installed(), reason="slapd or ldap-utils is not installed")

READS = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
WRITES = "arn:aws:iam::aws:policy/AmazonS3FullAccess"
IDS = 12301
AWAY = ("ServiceUnavailable", 503)
UNKNOWN = "InvalidAccessKeyId"
# How long an answer of the directory counts, and some time for the clocks of two programs.
SECOND = 1.1


def with_key(name: str, ids: int | None = None, key: object = None, secret: object = None, **more) -> str:
    known = {"s3AccessKey": key or f"KEY-OF-{name}", "s3SecretKey": secret or secret_of(name)}
    return person(name, f"of-{name}", ids, **(known | more)).replace(
        "objectClass: inetOrgPerson", "objectClass: inetOrgPerson\nobjectClass: s3Account", 1
    )


def secret_of(name: str) -> str:
    return f"s3cret/of+{name}=0123456789"


def key_of(name: str) -> tuple:
    return (f"KEY-OF-{name}", secret_of(name), None)


ENTRIES = (
    with_key("ann", IDS)
    + with_key("bob", IDS + 1)
    + with_key("rooty", 0)
    + with_key("eve")
    + with_key("two words")
    + with_key("twin1", key="KEY-OF-twins")
    + with_key("twin2", key="KEY-OF-twins")
    + with_key("many", key=["KEY-OF-many", "KEY-OF-more"])
    + with_key("secrets", secret=[secret_of("secrets"), secret_of("ann")])
    + with_key("short", secret="sh0rt!")
    # Where the directory compares without regard to case.
    + person("cased", "of-cased", employeeNumber="KEY-Of-Cased", carLicense=secret_of("cased"))
    + group("staff", *map(person_dn, ("ann", "rooty", "cased", "two words", "many", "secrets", "short")))
    + group("inner", person_dn("bob"), person_dn("twin1"), person_dn("twin2"))
    + group("outer", group_dn("inner"))
)


@pytest.fixture
def slapd(tmp_path) -> Iterator[Slapd]:
    running = Slapd(tmp_path, ENTRIES)
    yield running
    running.stop()


@pytest.fixture
def options(slapd, tmp_path) -> list[str]:
    return [
        *("--durability", "none", "--master-key-file", str(master_key(tmp_path)), *slapd.options(tmp_path)),
        *("--ldap-access-key-attribute", "s3AccessKey", "--ldap-secret-key-attribute", "s3SecretKey"),
    ]


@pytest.fixture
def server(make_server, options) -> Server:
    server = make_server(*options)
    ready(server)
    return server


def ready(server: Server) -> None:
    """Makes a bucket with an object, and groups that name the directory's."""
    iam, s3 = client(server, "iam"), client(server, "s3")
    for name, dn, arn in (("writers", group_dn("staff"), WRITES), ("readers", group_dn("outer"), READS)):
        iam.create_group(GroupName=name)
        iam.attach_group_policy(GroupName=name, PolicyArn=arn)
        done(server, "SetGroupOfDirectory", GroupName=name, DirectoryGroup=dn)
    s3.create_bucket(Bucket="lab")
    s3.put_object(Bucket="lab", Key="a", Body=b"1")


def get(server: Server, key: tuple):
    return client(server, "s3", key).get_object(Bucket="lab", Key="a")["Body"].read()


def refused(server: Server, key: tuple) -> str:
    return code_of(client(server, "s3", key).get_object, Bucket="lab", Key="a")


class TestRequests:
    def test_a_signed_request(self, server, slapd):
        s3 = client(server, "s3", key_of("ann"))
        s3.put_object(Bucket="lab", Key="b", Body=b"2")
        assert s3.get_object(Bucket="lab", Key="b")["Body"].read() == b"2"
        url = s3.generate_presigned_url("get_object", {"Bucket": "lab", "Key": "a"}, ExpiresIn=60)
        assert server.raw.get(url.removeprefix(server.endpoint), anonymous=True).body == b"1"
        identity = client(server, "sts", key_of("ann")).get_caller_identity()
        assert identity["Arn"].endswith(":federated-user/ldap/ann")
        # It is nobody else's, with no other secret and no token.
        assert refused(server, (key_of("ann")[0], secret_of("bob"), None)) == "SignatureDoesNotMatch"
        session = log_in(server, "ann", "of-ann")
        assert refused(server, (*key_of("ann")[:2], session[2])) == "InvalidToken"
        assert client(server, "sts", session).get_caller_identity()["Arn"] == identity["Arn"]

    def test_the_groups_decide(self, server, slapd):
        """Bob is in a group that is in a group whose policy reads; eve and nobody's words are in none."""
        bob = client(server, "s3", key_of("bob"))
        assert get(server, key_of("bob")) == b"1"
        assert code_of(bob.put_object, Bucket="lab", Key="b", Body=b"") == "AccessDenied"
        assert refused(server, key_of("eve")) == UNKNOWN
        iam = client(server, "iam")
        no = policy(deny("s3:GetObject"))
        iam.put_group_policy(GroupName="readers", PolicyName="own", PolicyDocument=no)
        assert refused(server, key_of("bob")) == "AccessDenied"
        done(server, "SetGroupOfDirectory", GroupName="readers")
        assert refused(server, key_of("bob")) == UNKNOWN
        slapd.add(with_key("max"))
        slapd.modify(
            f"dn: {group_dn('staff')}\nchangetype: modify\nadd: member\nmember: {person_dn('max')}\n"
        )
        assert get(server, key_of("max")) == b"1"

    def test_no_iam(self, server):
        client(server, "iam").attach_group_policy(
            GroupName="writers", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess"
        )
        get(server, key_of("ann"))
        assert code_of(client(server, "iam", key_of("ann")).list_users) == "InvalidClientTokenId"
        sts = client(server, "sts", key_of("ann"))
        assert code_of(sts.get_session_token) == "InvalidClientTokenId"
        wanted = {"RoleArn": "arn:aws:iam::123456789012:role/x", "RoleSessionName": "s1"}
        assert code_of(sts.assume_role, **wanted) == "InvalidClientTokenId"

    @pytest.mark.parametrize("name", ["twins", "many", "more", "secrets", "short", "two words"])
    def test_entries_whose_keys_cannot_be_used(self, server, name):
        """Two of a key, several values, a secret that is none, and a name that is none."""
        secret = (
            "sh0rt!" if name == "short" else secret_of({"twins": "twin1", "more": "many"}.get(name, name))
        )
        key = f"KEY-OF-{name}"
        signer = replace(server.raw.signer, access_key=key, secret_key=secret)
        assert server.raw.get("/lab/a", signer=signer).code in (UNKNOWN, "InvalidArgument")
        if " " not in name:
            assert "an entry's access key cannot be used" in server.log
        assert secret not in server.log

    def test_ids_are_compared_letter_for_letter(self, make_server, options):
        for old, new in (("s3AccessKey", "employeeNumber"), ("s3SecretKey", "carLicense")):
            options[options.index(old)] = new
        server = make_server(*options)
        ready(server)
        assert get(server, ("KEY-Of-Cased", secret_of("cased"), None)) == b"1"
        assert refused(server, ("KEY-OF-CASED", secret_of("cased"), None)) == UNKNOWN

    def test_without_the_attributes_nothing_is_asked(self, make_server, options, slapd):
        server = make_server(*options[: options.index("--ldap-access-key-attribute")])
        ready(server)
        assert refused(server, key_of("ann")) == UNKNOWN
        assert slapd.searches("s3AccessKey") == 0


class TestChanges:
    """Each counts a second after it was made."""

    def test_another_secret(self, server, slapd):
        get(server, key_of("ann"))
        changed = (
            f"dn: {person_dn('ann')}\nchangetype: modify\nreplace: s3SecretKey\ns3SecretKey: another-secret\n"
        )
        slapd.modify(changed)
        time.sleep(SECOND)
        assert refused(server, key_of("ann")) == "SignatureDoesNotMatch"
        assert get(server, (key_of("ann")[0], "another-secret", None)) == b"1"

    def test_an_entry_goes_and_comes(self, server, slapd):
        get(server, key_of("ann"))
        slapd.delete(person_dn("ann"))
        time.sleep(SECOND)
        assert refused(server, key_of("ann")) == UNKNOWN
        slapd.add(with_key("ann"))
        time.sleep(SECOND)
        assert get(server, key_of("ann")) == b"1"

    def test_a_key_is_taken_away(self, server, slapd):
        get(server, key_of("ann"))
        slapd.modify(f"dn: {person_dn('ann')}\nchangetype: modify\ndelete: s3AccessKey\n")
        time.sleep(SECOND)
        assert refused(server, key_of("ann")) == UNKNOWN

    def test_whoever_the_filter_leaves_out(self, make_server, options, slapd):
        server = make_server(*options, "--ldap-user-filter", "(&(uid={user})(!(employeeType=left)))")
        ready(server)
        get(server, key_of("ann"))
        left = f"dn: {person_dn('ann')}\nchangetype: modify\nreplace: employeeType\nemployeeType: left\n"
        slapd.modify(left)
        time.sleep(SECOND)
        assert refused(server, key_of("ann")) == UNKNOWN


class TestStrangers:
    @pytest.mark.parametrize(
        "key",
        [
            "*", "KEY-OF-*", "KEY-OF-ann)(uid=*", "*)(uid=ann))(|(uid=*", "KEY\\2dOF", "\\00", "{user}", "ab",
            "ASIAIOSFODNN7EXAMPLE", "x" * 129,
        ],
    )  # fmt: skip
    def test_ids_that_are_none_are_not_asked_about(self, server, slapd, key):
        signer = replace(server.raw.signer, access_key=key, secret_key=secret_of("ann"))
        assert server.raw.get("/lab/a", signer=signer).status in (400, 403)
        assert slapd.searches("s3AccessKey") == 0
        assert get(server, key_of("ann")) == b"1"

    def test_a_flood_of_unknown_ids(self, server, slapd):
        """200 searches at once and 20 a second; keys that there are, of whichever kind, are served meanwhile."""
        user = new_user(server, "iams", allow("s3:*"))
        get(server, key_of("ann"))
        before, began = slapd.searches("s3AccessKey=NOBODY"), time.monotonic()

        def flood(at: int) -> list[int]:
            statuses = []
            with server.raw.connect() as connection:
                for number in range(150):
                    signer = replace(server.raw.signer, access_key=f"NOBODYS-{at}-{number}")
                    statuses.append(server.raw.get("/lab/a", signer=signer, connection=connection).status)
            return statuses

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            floods = [pool.submit(flood, at) for at in range(8)]
            while not all(one.done() for one in floods):
                for key in (key_of("ann"), user):
                    assert get(server, key) == b"1"
            statuses = [status for one in floods for status in one.result()]
        seconds = time.monotonic() - began
        searches = slapd.searches("s3AccessKey=NOBODY") - before
        assert 0 < searches <= 200 + 20 * seconds + 1
        assert set(statuses) <= {403, 503} and statuses.count(403) == searches
        assert "too many unknown access keys" in server.log
        # A new key waits for its turn, which comes.
        poll(lambda: may(server, "bob"), 10)

    def test_an_unknown_id_is_asked_about_once_a_second(self, server, slapd):
        key, began = ("NOBODYS-KEY", "none-of-anybody", None), time.monotonic()
        for _ in range(50):
            assert refused(server, key) == UNKNOWN
        assert slapd.searches("NOBODYS-KEY") <= 1 + time.monotonic() - began

    def test_one_search_for_all_who_wait(self, server, slapd):
        slapd.stall(True)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(get, server, key_of("ann")) for _ in range(16)]
            time.sleep(1)
            slapd.stall(False)
            assert {one.result() for one in asked} == {b"1"}
        assert slapd.searches("KEY-OF-ann") <= 2


def may(server: Server, name: str) -> bool:
    signer = replace(server.raw.signer, access_key=key_of(name)[0], secret_key=key_of(name)[1])
    return server.raw.get("/lab/a", signer=signer).status == 200


class TestTheDirectoryIsAway:
    def test_it_is_stopped(self, server, slapd):
        user = new_user(server, "iams", allow("s3:*"))
        get(server, key_of("ann"))
        slapd.stop()
        time.sleep(SECOND)
        for key in (key_of("ann"), key_of("bob"), ("NOBODYS-KEY", "none-of-anybody", None)):
            assert error_of(client(server, "s3", key).list_buckets)[:2] == AWAY
        # Root's key and those of users do not need it, nor does one that is new.
        for key in (user, new_user(server, "more", allow("s3:*"))):
            assert get(server, key) == b"1"
        client(server, "s3").list_buckets()
        slapd.start()
        poll(lambda: may(server, "ann"))

    def test_it_stalls(self, server, slapd):
        slapd.stall(True)
        began = time.monotonic()
        assert error_of(client(server, "s3", key_of("ann")).list_buckets)[:2] == AWAY
        client(server, "s3").list_buckets()
        assert time.monotonic() - began < 15
        slapd.stall(False)
        poll(lambda: may(server, "ann"))

    def test_nothing_is_asked_without_tls(self, make_server, options, slapd):
        options.remove("--ldap-in-clear")
        server = make_server(*options)
        assert error_of(client(server, "s3", key_of("ann")).list_buckets)[:2] == AWAY
        assert "BIND" not in slapd.log.read_text()


class TestBoth:
    def test_a_users_key_counts(self, server, slapd):
        """Whatever the directory says of its id, which is logged once."""
        user = new_user(server, "max", allow("s3:*"))
        slapd.add(with_key("other", key=user[0]))
        slapd.modify(
            f"dn: {group_dn('staff')}\nchangetype: modify\nadd: member\nmember: {person_dn('other')}\n"
        )
        assert refused(server, (user[0], secret_of("other"), None)) == "SignatureDoesNotMatch"
        said = "has the same access key as a user of this server"
        for service in ("s3", "sts", "s3"):
            asked = client(server, service, user)
            asked.list_buckets() if service == "s3" else asked.get_caller_identity()
            poll(lambda: said in server.log)
        assert server.log.count(said) == 1 and secret_of("other") not in server.log
        arn = client(server, "sts", user).get_caller_identity()["Arn"]
        assert arn.endswith(":user/max")


class TestSecrets:
    def test_they_are_in_no_log(self, make_server, options, slapd, tmp_path):
        server = make_server(*options, "--log", "trace", "--access-log", str(tmp_path / "access"))
        ready(server)
        for name in ("ann", "bob", "twins", "many", "secrets", "short"):
            may(server, name)
        slapd.stop()
        time.sleep(SECOND)
        may(server, "ann")
        said = server.log + (tmp_path / "access").read_text()
        assert "KEY-OF-ann" in said
        names = ("ann", "bob", "twin1", "twin2", "many", "secrets")
        assert not any(secret in said for secret in (GATEWAY_PASSWORD, *map(secret_of, names)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users")
@pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files")
class TestFiles:
    def test_files_belong_to_people(self, make_server, options, tmp_path):
        """posixAccount and posixGroup, as after a login; nobody is root, or has a uid of the system."""
        tree = tmp_path / "tree"
        tree.mkdir()
        tree.chmod(0o755)
        for parent in (tmp_path, *tmp_path.parents):
            if parent.stat().st_mode & 0o1 == 0:
                parent.chmod(parent.stat().st_mode | 0o1)
        server = make_server(*options, "--impersonate", tree=tree)
        iam = client(server, "iam")
        iam.create_group(GroupName="writers")
        iam.attach_group_policy(GroupName="writers", PolicyArn=WRITES)
        done(server, "SetGroupOfDirectory", GroupName="writers", DirectoryGroup=group_dn("staff"))
        bucket = tree / "lab"
        bucket.mkdir()
        bucket.chmod(0o777)
        client(server, "s3", key_of("ann")).put_object(Bucket="lab", Key="a", Body=b"1")
        assert ((bucket / "a").stat().st_uid, (bucket / "a").stat().st_gid) == (IDS, IDS)
        put = client(server, "s3", key_of("rooty")).put_object
        assert code_of(put, Bucket="lab", Key="b", Body=b"1") == "AccessDenied"
        assert not (bucket / "b").exists()
