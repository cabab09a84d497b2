"""How actions of IAM and STS come on the port of S3: forms, signatures, refusals, logs, and other gateways."""

import time
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from support import expect
from support.identities import (
    ROOT,
    allow,
    client,
    deny,
    error_of,
    key_of,
    master_key,
    new_key,
    new_user,
    policy,
)
from support.wire import poll


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


class TestWire:
    def post(self, server, body: str, service: str = "iam", region: str = "us-east-1", **headers):
        """Sends a form that is signed for a service."""
        headers = {"content-type": "application/x-www-form-urlencoded", **headers}
        request = AWSRequest("POST", server.endpoint + "/", headers=headers, data=body)
        SigV4Auth(Credentials(*ROOT[:2]), service, region).add_auth(request)
        return server.raw.post("/", body.encode(), headers=dict(request.headers), anonymous=True)

    def test_who_does_not_sign(self, server):
        """Is refused before the body: strangers hold none of the places of actions."""
        for body in (b"", b"Action=ListUsers&Version=2010-05-08", b"Action=Frob"):
            answer = server.raw.post("/", body, anonymous=True)
            assert answer.status == 403 and b"<Code>MissingAuthenticationToken</Code>" in answer.body
            assert answer.headers["cache-control"] == "no-store"
        with server.raw.connect() as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\nAction=")
            assert connection.response("POST").status == 403
        unknown = AWSRequest("POST", server.endpoint + "/", data="Action=ListUsers&Version=2010-05-08")
        SigV4Auth(Credentials("AKIANOBODY", "secret"), "iam", "us-east-1").add_auth(unknown)
        answer = server.raw.post("/", b"", headers=dict(unknown.headers), anonymous=True)
        assert answer.status == 403 and b"<Code>InvalidClientTokenId</Code>" in answer.body

    @pytest.mark.parametrize(
        "body, code, status",
        [
            ("", "MissingAction", 400),
            ("Action=Frob&Version=2010-05-08", "InvalidAction", 400),
            ("Action=No%00pe&Version=2010-05-08", "InvalidAction", 400),
            ("Action=ListUsers", "InvalidAction", 400),
            ("Action=ListUsers&Action=ListUsers&Version=2010-05-08", "ValidationError", 400),
            ("Action=CreateVirtualMFADevice&Version=2010-05-08", "NotImplemented", 501),
            ("Action=AssumeRoleWithSAML&Version=2011-06-15", "NotImplemented", 501),
            ("Action=ExplainRequest&Version=slipway-1", "NotImplemented", 501),
            ("a=" + "b" * (64 << 10), "ValidationError", 400),
            ("&".join(f"a{number}=" for number in range(1001)), "ValidationError", 400),
            ("a=%zz", "ValidationError", 400),
        ],
    )
    def test_what_is_refused(self, server, body, code, status):
        answer = self.post(server, body)
        assert (answer.status, f"<Code>{code}</Code>".encode() in answer.body) == (status, True), answer.body
        ElementTree.fromstring(answer.body)

    def test_another_content_type(self, server):
        body = "Action=ListUsers&Version=2010-05-08"
        answer = self.post(server, body, **{"content-type": "application/json"})
        assert answer.status == 400 and b"<Code>ValidationError</Code>" in answer.body

    def test_refusals_tell_no_names(self, server, iam):
        """Neither whether there is such a user, role or key, nor its path and spelling."""
        iam.create_user(UserName="Boss", Path="/secret/")
        trust = policy({"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sts:*"})
        role = iam.create_role(RoleName="Denied", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        owned = new_key(server, "Boss")[0]
        nobody = new_user(server, "nobody")
        own, sts = client(server, "iam", nobody), client(server, "sts", nobody)

        def told(call, there: str, missing: str, **members) -> None:
            (name,) = [key for key, value in members.items() if value is None]
            messages = [error_of(call, **members | {name: value})[2] for value in (there, missing)]
            assert messages[0].replace(there, "X") == messages[1].replace(missing, "X"), messages

        told(own.get_user, "BOSS", "GHOST", UserName=None)
        told(own.get_role, "DENIED", "GHOST", RoleName=None)
        told(own.get_access_key_last_used, owned, "AKIAIOSFODNN7EXAMPLE", AccessKeyId=None)
        told(sts.assume_role, role, role.replace("Denied", "Ghosts"), RoleArn=None, RoleSessionName="s1")

    def test_presigned(self, server):
        query = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
        request = AWSRequest("GET", f"{server.endpoint}/?{query}")
        SigV4QueryAuth(Credentials(*ROOT[:2]), "sts", "us-east-1", expires=60).add_auth(request)
        path = request.url.removeprefix(server.endpoint)
        answer = expect.ok(server.raw.get(path, anonymous=True))
        assert b"<GetCallerIdentityResponse" in answer.body
        tampered = path.replace("GetCallerIdentity", "GetSessionToken")
        refused = server.raw.get(tampered, anonymous=True)
        assert refused.status == 403 and b"SignatureDoesNotMatch" in refused.body
        # Without a signature it is S3's.
        assert b"ListAllMyBuckets" not in refused.body
        expect.error(server.raw.get(f"/?{query}", anonymous=True), "AccessDenied")

    def test_the_wrong_service(self, server):
        """What is signed for one service is good for no other."""
        form = "Action=GetCallerIdentity&Version=2011-06-15"
        for service, region, status in (
            ("sts", "us-east-1", 200),
            ("iam", "us-east-1", 403),
            ("s3", "us-east-1", 403),
            ("sts", "eu-west-1", 403),
        ):
            answer = self.post(server, form, service, region)
            assert answer.status == status, (service, region, answer.body)

    def test_the_log_says_where_the_signature_is(self, make_server, tmp_path):
        log = tmp_path / "access.log"
        server = make_server("--durability", "none", "--access-log-format", "s3", "--access-log", str(log))
        client(server, "sts").get_caller_identity()
        query = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
        request = AWSRequest("GET", f"{server.endpoint}/?{query}")
        SigV4QueryAuth(Credentials(*ROOT[:2]), "sts", "us-east-1", expires=60).add_auth(request)
        expect.ok(server.raw.get(request.url.removeprefix(server.endpoint), anonymous=True))
        server.stop()
        lines = log.read_text().splitlines()
        found = [
            next((word for word in ("AuthHeader", "QueryString") if word in line), None) for line in lines
        ]
        assert found == ["AuthHeader", "QueryString"], lines

    def test_a_password_in_the_query_is_not_in_the_log(self, make_server, tmp_path):
        """MinIO's clients send it there. The action is not performed, and the log is written all the same."""
        log = tmp_path / "access.log"
        server = make_server("--durability", "none", "--access-log", str(log))
        query = "Action=AssumeRoleWithLDAPIdentity&Version=2011-06-15&LDAPUsername=ann&LDAPPassword=hush-hush"
        for text in (query, query.replace("LDAPPassword", "%4cDAPPassword")):
            answer = server.raw.post("/", b"", query=text, anonymous=True)
            # There is no directory.
            assert answer.status == 501, answer.body
        server.stop()
        assert "LDAPUsername=ann" in log.read_text() and "hush-hush" not in log.read_text() + server.log

    def test_secrets_are_not_in_the_log(self, make_server, tmp_path):
        log = tmp_path / "access.log"
        options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)), "--log", "debug")
        server = make_server(*options, "--access-log", str(log))
        key = new_user(server, "ann", allow("s3:*"))
        credentials = client(server, "sts", key).get_session_token()["Credentials"]
        session = key_of(credentials)
        client(server, "s3", session).list_buckets()
        server.stop()
        for secret in (key[1], session[1], session[2]):
            assert secret not in server.log and secret not in log.read_text()


class TestGateways:
    def test_a_change_counts_on_the_other_within_a_second(self, make_server, tmp_path):
        options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
        one = make_server(*options)
        other = make_server(*options, tree=one.tree)
        key = new_user(one, "ann", allow("s3:ListAllMyBuckets"))
        # A key that is not known yet is looked for.
        client(other, "s3", key).list_buckets()
        iam = client(one, "iam")

        def refused_after(code: str) -> float:
            begun = time.monotonic()
            s3 = client(other, "s3", key)

            def is_refused() -> bool:
                try:
                    s3.list_buckets()
                    return False
                except s3.exceptions.ClientError as error:
                    assert error.response["Error"]["Code"] == code, error
                    return True

            poll(is_refused, 5)
            return time.monotonic() - begun

        iam.put_user_policy(UserName="ann", PolicyName="own", PolicyDocument=policy(deny("s3:*")))
        times = [refused_after("AccessDenied")]
        iam.put_user_policy(UserName="ann", PolicyName="own", PolicyDocument=policy(allow("s3:*")))
        time.sleep(1)
        client(other, "s3", key).list_buckets()
        iam.update_access_key(UserName="ann", AccessKeyId=key[0], Status="Inactive")
        times.append(refused_after("InvalidAccessKeyId"))
        assert max(times) < 1.0, times
