"""Sessions of roles for those whom OpenID providers vouch for (docs/IDENTITY.md)."""

import base64
import contextlib
import json
import socket
import ssl
import threading
import time
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from test_audit import line_of, refusal

from support.identities import (
    ROOT,
    allow,
    client,
    code_of,
    deny,
    error_of,
    key_of,
    master_key,
    policy,
)
from support.openid import Idp, Key, by_secret, claims_of, fresh_claims, installed, unsigned
from support.transports import make_certificate
from support.wire import poll

THUMBPRINT = "a" * 40


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


TRUSTED = {"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity"}


@pytest.fixture(scope="session")
def program():
    """The provider's program."""
    found = installed()
    if found is None:
        pytest.skip("oidc-provider cannot be installed: there is no node, no npm, or no registry")
    return found


@pytest.fixture
def idp(tmp_path, program):
    running = Idp(tmp_path, program)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def one():
    return Key("one")


def provide(iam, idp: Idp, *clients: str) -> str:
    """Makes the provider known; returns its ARN."""
    clients = clients or ("client",)
    made = iam.create_open_id_connect_provider(Url=idp.issuer, ClientIDList=list(clients))
    return made["OpenIDConnectProviderArn"]


def new_role(iam, name: str, arn: str, conditions: dict | None = None, **statement) -> str:
    """Makes a role that trusts a provider, and may use S3; returns its ARN."""
    trust = TRUSTED | {"Principal": {"Federated": arn}} | statement
    if conditions:
        trust["Condition"] = conditions
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]
    iam.attach_role_policy(RoleName=name, PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
    return role["Arn"]


def assume(server, role: str, token: str, **members) -> dict:
    """Asks for a session without a signature, as all clients do."""
    sts = client(server, "sts", ("unused", "unused", None))
    asked = {"RoleArn": role, "RoleSessionName": "s1", "WebIdentityToken": token} | members
    return sts.assume_role_with_web_identity(**asked)


def refused(server, role: str, token: str, **members) -> str:
    return code_of(assume, server, role, token, **members)


class TestLogins:
    def test_a_session(self, server, iam, account, idp, one):
        idp.start(one)
        arn = provide(iam, idp)
        role = new_role(iam, "reader", arn)
        token = idp.log_in("ann")
        answer = assume(server, role, token, Policy=policy(allow(["s3:GetObject", "s3:ListAllMyBuckets"])))
        assert answer["SubjectFromWebIdentityToken"] == "ann"
        assert (answer["Provider"], answer["Audience"]) == (arn, "client")
        assert answer["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{account}:assumed-role/reader/s1"
        assert 3590 < answer["Credentials"]["Expiration"].timestamp() - time.time() < 3610
        key = key_of(answer["Credentials"])
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="x", Body=b"1")
        s3 = client(server, "s3", key)
        assert s3.get_object(Bucket="lab", Key="x")["Body"].read() == b"1"
        assert code_of(s3.put_object, Bucket="lab", Key="y", Body=b"") == "AccessDenied"
        assert client(server, "sts", key).get_caller_identity()["Arn"] == answer["AssumedRoleUser"]["Arn"]
        # The token is no secret of one use, and lasts on its own.
        again = key_of(assume(server, role, token, DurationSeconds=900)["Credentials"])
        client(server, "s3", again).put_object(Bucket="lab", Key="y", Body=b"")
        assert refused(server, role, token, DurationSeconds=7200) == "ValidationError"
        # Both sessions end with the provider.
        iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=arn)
        for ended in (key, again):
            assert code_of(client(server, "s3", ended).list_buckets) == "InvalidAccessKeyId"
        assert refused(server, role, token) == "InvalidIdentityToken"
        provide(iam, idp)
        assert code_of(client(server, "s3", key).list_buckets) == "InvalidAccessKeyId"
        client(server, "s3", key_of(assume(server, role, token)["Credentials"])).list_buckets()

    def test_sessions_end_with_their_role(self, server, iam, idp, one):
        idp.start(one)
        arn = provide(iam, idp)
        role = new_role(iam, "reader", arn)
        token = idp.log_in("ann")
        s3 = client(server, "s3", key_of(assume(server, role, token)["Credentials"]))
        s3.list_buckets()
        iam.update_assume_role_policy(
            RoleName="reader",
            PolicyDocument=policy(TRUSTED | {"Principal": {"Federated": arn}, "Effect": "Deny"}),
        )
        assert refused(server, role, token) == "AccessDenied"
        s3.list_buckets()
        iam.detach_role_policy(RoleName="reader", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
        iam.delete_role(RoleName="reader")
        assert code_of(s3.list_buckets) == "InvalidAccessKeyId"
        new_role(iam, "reader", arn)
        assert code_of(s3.list_buckets) == "InvalidAccessKeyId"

    def test_by_the_query_and_by_a_signed_request(self, server, iam, idp, one):
        """MinIO's clients send all in the query; a signature neither helps nor hurts."""
        idp.start(one)
        role = new_role(iam, "reader", provide(iam, idp))
        asked = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": "s1",
            "WebIdentityToken": idp.log_in("ann"),
        }
        answer = server.raw.post("/", b"", query=urlencode(asked), anonymous=True)
        assert answer.status == 200 and b"<AccessKeyId>ASIA" in answer.body
        assert answer.headers["cache-control"] == "no-store"
        form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        body = urlencode(asked).encode()
        answer = server.raw.post("/", body, headers=form, anonymous=True)
        assert answer.status == 200 and b"<AccessKeyId>ASIA" in answer.body
        signed = AWSRequest("POST", server.endpoint + "/", data=urlencode(asked), headers=form)
        SigV4Auth(Credentials(*ROOT[:2]), "sts", "us-east-1").add_auth(signed)
        answer = server.raw.post("/", body, headers=dict(signed.headers), anonymous=True)
        assert answer.status == 200, answer.body
        # A link logs nobody in, and no other action comes by this way.
        answer = server.raw.get("/", query=urlencode(asked), anonymous=True)
        assert answer.status == 403 and b"<AccessKeyId>" not in answer.body
        other = urlencode(asked | {"Action": "AssumeRole"}).encode()
        answer = server.raw.post("/", other, headers=form, anonymous=True)
        assert answer.status == 403 and b"<Code>MissingAuthenticationToken</Code>" in answer.body

    def test_the_trust_policy_asks_for_claims(self, server, iam, idp, one):
        idp.start(one, claims={"email": "ann@idp.lab", "verified": True})
        arn = provide(iam, idp, "client", "stranger")
        token = idp.log_in("ann")
        key = f"{idp.name}:"
        for number, (may, conditions) in enumerate(
            [
                (True, {"StringEquals": {key + "sub": "ann", key + "aud": "client"}}),
                (False, {"StringEquals": {key + "sub": "bob"}}),
                (False, {"StringEquals": {key + "aud": "stranger"}}),
                (False, {"StringEquals": {"idp.lab:sub": "ann"}}),
                (True, {"StringLike": {key + "email": "*@idp.lab"}}),
                (False, {"StringLike": {key + "email": "*@other.lab"}}),
                (True, {"Bool": {key + "verified": "true"}}),
                (False, {"StringEquals": {key + "azp": "client"}}),
                (True, {"StringEquals": {"aws:FederatedProvider": arn}}),
                (True, {"StringEquals": {"sts:RoleSessionName": "s1"}}),
                (False, {"StringEquals": {"sts:RoleSessionName": "s2"}}),
                (True, {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}),
            ]
        ):
            role = new_role(iam, f"role-{number}", arn, conditions)
            told = code_or_none(server, role, token)
            assert told == (None if may else "AccessDenied"), (conditions, claims_of(token))
        proved = one.token(fresh_claims(idp, amr=["pwd", "mfa"], azp="client"))
        for value, told in (("mfa", None), ("otp", "AccessDenied")):
            conditions = {
                "ForAnyValue:StringEquals": {key + "amr": value},
                "StringEquals": {key + "azp": "client"},
            }
            assert code_or_none(server, new_role(iam, value, arn, conditions), proved) == told
        # A role that trusts another provider, or an account, or nobody for this.
        other = arn.replace(idp.name, "other.lab")
        assert refused(server, new_role(iam, "other", other), token) == "AccessDenied"
        role = new_role(iam, "plain", arn, Principal={"AWS": arn.split(":")[4]}, Action="sts:AssumeRole")
        assert refused(server, role, token) == "AccessDenied"
        # Nobody is told what roles there are.
        told = {
            error_of(assume, server, role, token)
            for role in (role, role.replace("plain", "none"), role.replace(arn.split(":")[4], "000000000000"))
        }
        assert len(told) == 1, told
        for name in ("none", "plain"):
            assert refused(server, role.replace("plain", name), unsigned(fresh_claims(idp))) == (
                "InvalidIdentityToken"
            )

    def test_tags_and_source_identity_of_the_token(self, server, iam, idp, one):
        tags = {"principal_tags": {"team": ["a"]}}
        claims = {"https://aws.amazon.com/tags": tags, "https://aws.amazon.com/source_identity": "ann.a"}
        idp.start(one, claims=claims)
        arn = provide(iam, idp)
        token = idp.log_in("ann")
        assert refused(server, new_role(iam, "without", arn), token) == "AccessDenied"
        actions = ["sts:AssumeRoleWithWebIdentity", "sts:TagSession", "sts:SetSourceIdentity"]
        wrong = {"StringEquals": {"aws:RequestTag/team": "b"}}
        assert refused(server, new_role(iam, "wrong", arn, wrong, Action=actions), token) == "AccessDenied"
        right = {"StringEquals": {"aws:RequestTag/team": "a", "sts:SourceIdentity": "ann.a"}}
        role = new_role(iam, "right", arn, right, Action=actions)
        answer = assume(server, role, token)
        assert answer["SourceIdentity"] == "ann.a"
        s3 = client(server, "s3", key_of(answer["Credentials"]))
        s3.list_buckets()
        for name, value in (("aws:PrincipalTag/team", "a"), ("aws:SourceIdentity", "ann.a")):
            iam.put_role_policy(
                RoleName="right",
                PolicyName="p",
                PolicyDocument=policy(deny("s3:*", Condition={"StringEquals": {name: value}})),
            )
            assert code_of(s3.list_buckets) == "AccessDenied", name
            iam.delete_role_policy(RoleName="right", PolicyName="p")
        tags["transitive_tag_keys"] = ["team"]
        going_on = one.token(fresh_claims(idp, **claims))
        session = key_of(assume(server, role, going_on)["Credentials"])
        next_role = new_role(iam, "next", arn)
        account = next_role.split(":")[4]
        actions = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]
        trust = {"Effect": "Allow", "Action": actions, "Principal": {"AWS": account}}
        iam.update_assume_role_policy(RoleName="next", PolicyDocument=policy(trust))
        named = {"StringNotEquals": {"aws:PrincipalTag/team": "a"}}
        iam.put_role_policy(
            RoleName="next", PolicyName="p", PolicyDocument=policy(deny("s3:*", Condition=named))
        )
        iam.put_role_policy(RoleName="right", PolicyName="p", PolicyDocument=policy(allow("sts:*")))
        sent = {"RoleArn": next_role, "RoleSessionName": "ann"}
        going_on = client(server, "sts", session).assume_role(**sent)["Credentials"]
        client(server, "s3", key_of(going_on)).list_buckets()
        tags["transitive_tag_keys"] = ["other"]
        wrong = one.token(fresh_claims(idp, **claims))
        assert refused(server, role, wrong) == "InvalidIdentityToken"

    def test_keys_are_rotated(self, server, iam, idp, one):
        idp.start(one)
        role = new_role(iam, "reader", provide(iam, idp))
        old = idp.log_in("ann")
        assume(server, role, old)
        two = Key("two", "ES256")
        idp.stop()
        # The old key goes on to be shown for a while, as providers do.
        idp.start(two, one)
        new = idp.log_in("ann")
        assert json.loads(base64.urlsafe_b64decode(new.split(".")[0] + "=="))["kid"] == "two"
        assume(server, role, old)
        # At most every 10 s a key that is not known is looked for.
        poll(lambda: may(server, role, new), seconds=30, interval=0.5)
        assume(server, role, old)
        idp.stop()
        idp.start(two)
        time.sleep(10)
        assert refused(server, role, two.token(fresh_claims(idp), kid="three")) == "InvalidIdentityToken"
        assert refused(server, role, old) == "InvalidIdentityToken"
        assume(server, role, new)

    def test_over_tls(self, make_server, tmp_path, program, one):
        """A provider is trusted by its certificate, and not by a thumbprint."""
        shown, key = make_certificate(tmp_path, "idp", "localhost")
        tls = {"key": str(key), "certificate": str(shown)}
        idp = Idp(tmp_path, program, tls)
        idp.start(one)
        try:
            token = idp.log_in("ann", context=ssl.create_default_context(cafile=tls["certificate"]))
            options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
            server = make_server(*options, "--oidc-ca", tls["certificate"])
            iam = client(server, "iam")
            role = new_role(iam, "reader", provide(iam, idp))
            assume(server, role, token)
            server.stop()
            server = make_server(*options)
            assert refused(server, role, token) == "IDPCommunicationError"
        finally:
            idp.stop()


class TestTheAuditLog:
    @pytest.fixture
    def log(self, tmp_path):
        return tmp_path / "audit.log"

    @pytest.fixture
    def server(self, make_server, tmp_path, log):
        options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
        return make_server(*options, "--audit-log", str(log))

    def test_a_token_that_does_not_count(self, server, iam, idp, one, log):
        idp.start(one)
        role = new_role(iam, "reader", provide(iam, idp))
        now = int(time.time())
        tokens = {
            "InvalidIdentityToken": one.token(fresh_claims(idp, aud="stranger")),
            "ExpiredTokenException": one.token(fresh_claims(idp, exp=now - 5)),
        }
        for code, token in tokens.items():
            line = line_of(log, refusal(assume, server=server, role=role, token=token))
            assert line == {
                "operation": "AssumeRoleWithWebIdentity",
                "outcome": "deny",
                "decided_by": "authentication",
                "error": code,
            }
            assert token not in log.read_text()

    def test_provider_and_subject(self, server, iam, account, idp, one, log):
        idp.start(one)
        arn = provide(iam, idp)
        role = new_role(iam, "reader", arn)
        other = new_role(iam, "other", arn, {"StringEquals": {f"{idp.name}:sub": "bob"}})
        token = one.token(fresh_claims(idp, sub="ann"))
        subject = {"provider": arn, "subject": "ann"}
        login = {"kind": "web-identity", "operation": "AssumeRoleWithWebIdentity"} | subject
        answer = assume(server, role, token)
        line = line_of(log, answer)
        assert line.items() >= (login | {"outcome": "allow", "resource": role}).items()
        s3 = client(server, "s3", key_of(answer["Credentials"]))
        assert line_of(log, s3.list_buckets()).items() >= ({"kind": "role"} | subject).items()
        answer = refusal(assume, server=server, role=other, token=token)
        assert line_of(log, answer).items() >= (login | {"outcome": "deny", "resource": other}).items()
        answer = refusal(assume, server=server, role=role + "x", token=token)
        assert line_of(log, answer).items() >= (login | {"decided_by": "server"}).items()

    def test_a_provider_that_cannot_be_asked(self, server, iam, idp, one, log):
        role = new_role(iam, "reader", provide(iam, idp))
        answer = refusal(assume, server=server, role=role, token=one.token(fresh_claims(idp)))
        line = line_of(log, answer)
        assert (line["decided_by"], line["error"]) == ("authentication", "IDPCommunicationError")


def may(server, role: str, token: str) -> bool:
    try:
        assume(server, role, token)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "InvalidIdentityToken"
        return False
    return True


class TestForgedTokens:
    """Tokens that the provider did not give out, or not for this."""

    @pytest.fixture
    def role(self, iam, idp, one):
        idp.start(one)
        return new_role(iam, "reader", provide(iam, idp, "client", "other"))

    def test_what_is_signed_is_compared(self, server, idp, one, role):
        now = int(time.time())
        assume(server, role, one.token(fresh_claims(idp)))
        for code, others in (
            ("InvalidIdentityToken", {"iss": idp.issuer + "/"}),
            ("InvalidIdentityToken", {"iss": idp.issuer.replace("http:", "https:")}),
            ("InvalidIdentityToken", {"iss": "https://other.lab"}),
            ("InvalidIdentityToken", {"iss": None}),
            ("InvalidIdentityToken", {"aud": "stranger"}),
            ("InvalidIdentityToken", {"aud": ["client", "other"]}),
            ("InvalidIdentityToken", {"aud": ["client", "stranger"], "azp": "stranger"}),
            ("InvalidIdentityToken", {"aud": "stranger", "azp": "client"}),
            ("InvalidIdentityToken", {"sub": None}),
            ("InvalidIdentityToken", {"exp": None}),
            ("InvalidIdentityToken", {"exp": str(now + 600)}),
            ("ExpiredTokenException", {"exp": now - 5}),
            ("InvalidIdentityToken", {"nbf": now + 300}),
            ("InvalidIdentityToken", {"iat": now + 300}),
        ):
            assert refused(server, role, one.token(fresh_claims(idp, **others))) == code, others
        token = one.token(fresh_claims(idp, azp="other", aud=["client", "more"]))
        assert assume(server, role, token)["Audience"] == "other"

    def test_who_signed_is_known(self, server, idp, one, role):
        claims = fresh_claims(idp)
        mallory = Key("one")
        good = one.token(claims)
        header, payload, signature = good.split(".")
        bob = one.token(fresh_claims(idp, sub="bob")).split(".")[1]
        forged = [
            unsigned(claims),
            unsigned(claims, "None"),
            unsigned(claims, "HS256"),
            mallory.token(claims),
            mallory.token(claims, kid=None),
            mallory.token(
                claims, jwk={k: v for k, v in mallory.jwk().items() if k in ("kty", "n", "e", "kid")}
            ),
            mallory.token(claims, jku="http://127.0.0.1:1/keys", kid="two"),
            one.token(claims, kid="two"),
            one.token(claims, kid="../../../../etc/passwd"),
            one.token(claims, kid="one\x00"),
            one.token(claims, kid="http://127.0.0.1:1/"),
            one.token(claims, kid=1),
            one.token(claims, alg="RS384"),
            one.token(claims, alg="ES256"),
            one.token(claims, typ="logout+jwt"),
            one.token(claims, crit=["exp"]),
            f"{header}.{bob}.{signature}",
            f"{header}.{payload}.",
            f"{header}.{payload}",
            good + "=",
            good + "." + signature,
            "a" * 200,
        ]
        modulus = one.jwk()["n"].encode()
        for secret in (one.public_pem(), one.public_pem().strip(), modulus, b""):
            forged += [by_secret(claims, secret), by_secret(claims, secret, kid="one")]
        for token in forged:
            assert refused(server, role, token) == "InvalidIdentityToken", token[:200]
        assume(server, role, good)

    def test_a_huge_token(self, server, idp, one, role):
        long = one.token(fresh_claims(idp, filler="a" * 20_000))
        assert refused(server, role, long) == "ValidationError"
        huge = one.token(fresh_claims(idp, filler="a" * (20 << 20)))
        body = urlencode({"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": huge}).encode()
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = server.raw.post("/", body[: 1 << 20], headers=form, anonymous=True)
        assert answer.status == 400 and b"<Code>ValidationError</Code>" in answer.body

    def test_a_token_of_another_client(self, server, iam, idp, one, role):
        token = idp.log_in("ann", client="stranger")
        assert error_of(assume, server, role, token) == (
            "InvalidIdentityToken",
            400,
            "Incorrect token audience",
        )
        arn = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"][0]["Arn"]
        iam.add_client_id_to_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID="stranger")
        assert assume(server, role, token)["Audience"] == "stranger"
        iam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID="stranger")
        assert refused(server, role, token) == "InvalidIdentityToken"

    def test_a_token_that_has_ended(self, server, iam, idp, one):
        idp.start(one, seconds=2)
        role = new_role(iam, "reader", provide(iam, idp))
        token = idp.log_in("ann")
        poll(lambda: claims_of(token)["exp"] <= time.time(), seconds=20)
        code, status, message = error_of(assume, server, role, token)
        assert (code, status) == ("ExpiredTokenException", 400) and message.startswith("Token expired")


class TestUnreachable:
    def test_the_provider_is_away(self, server, iam, idp, one):
        arn = provide(iam, idp)
        role = new_role(iam, "reader", arn)
        token = one.token(fresh_claims(idp))
        assert error_of(assume, server, role, token)[:2] == ("IDPCommunicationError", 400)
        # No port and no name is shown to whoever asks.
        assert str(idp.port) not in error_of(assume, server, role, token)[2]
        idp.start(one)
        poll(lambda: code_or_none(server, role, token) is None, seconds=30, interval=0.5)
        # Its keys are known now.
        idp.stop()
        assume(server, role, token)

    def test_a_server_that_is_no_provider(self, server, iam, one, tmp_path):
        """The gateway asks whatever a URL names, and tells nothing of the answer."""
        answers = {
            "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/secret\r\nContent-Length: 0\r\n\r\n",
            "text": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret",
            "endless": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"secret" * 100_000,
            "silent": b"",
        }
        for name, answer in answers.items():
            with Answering(answer) as other:
                issuer = f"http://127.0.0.1:{other.port}"
                made = iam.create_open_id_connect_provider(Url=issuer, ClientIDList=["client"])
                role = new_role(iam, name, made["OpenIDConnectProviderArn"])
                now = int(time.time())
                claims = {"iss": issuer, "sub": "ann", "aud": "client", "exp": now + 600}
                began = time.monotonic()
                told = error_of(assume, server, role, one.token(claims))
                assert told[0] == "IDPCommunicationError" and "secret" not in told[2]
                assert time.monotonic() - began < 30
                # It is left alone for a while, however many tokens come.
                for kid in ("a", "b", "c"):
                    assert refused(server, role, one.token(claims, kid=kid)) == "IDPCommunicationError"
                assert other.asked == 1, name


def code_or_none(server, role: str, token: str) -> str | None:
    try:
        assume(server, role, token)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


class Answering:
    """A server that answers everything with the same bytes, and counts how often."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.asked = answer, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.kept = []
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(20)
        self.listener.close()
        for connection in self.kept:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.asked += 1
            self.kept.append(connection)
            with contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(self.answer)
                if self.answer:
                    connection.shutdown(socket.SHUT_WR)


class TestSecrets:
    def test_no_token_is_in_a_log(self, make_server, tmp_path, idp, one):
        log = tmp_path / "access.log"
        options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)), "--log", "debug")
        audit = tmp_path / "audit.log"
        server = make_server(*options, "--access-log", str(log), "--audit-log", str(audit))
        iam = client(server, "iam")
        idp.start(one)
        role = new_role(iam, "reader", provide(iam, idp))
        token = idp.log_in("ann")
        session = key_of(assume(server, role, token)["Credentials"])
        query = urlencode({"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": token, "RoleArn": role})
        for text in (query, query.replace("WebIdentityToken", "%57ebIdentityToken")):
            server.raw.post("/", b"", query=text, anonymous=True)
        assert refused(server, role, token[:-5]) == "InvalidIdentityToken"
        server.stop()
        for secret in (*token.split("."), session[1], session[2]):
            assert secret not in server.log + log.read_text() + audit.read_text()
        told = [json.loads(line) for line in audit.read_text().splitlines()]
        logins = [line for line in told if line.get("action") == "sts:AssumeRoleWithWebIdentity"]
        assert (logins[0]["outcome"], logins[0]["resource"], logins[0]["kind"]) == (
            "allow",
            role,
            "web-identity",
        )
        assert logins[0]["statements"][0]["source"] == "resource"
        assert logins[0]["operation"] == "AssumeRoleWithWebIdentity"

    def test_no_session_in_clear(self, server):
        """A peer that is neither here nor uses TLS is refused before anything is looked at; other actions that
        nobody signs are refused before their bodies."""
        with server.raw.connect() as connection:
            connection.send(
                b"POST /?Action=ListUsers HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\nVer"
            )
            assert connection.response("POST").status == 403
        answer = server.raw.post("/", b"Action=AssumeRoleWithWebIdentity&Version=2011-06-15", anonymous=True)
        assert answer.status == 403 and b"<Code>MissingAuthenticationToken</Code>" in answer.body
