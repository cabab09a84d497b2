"""Attacks by the wire: addresses that a client makes up, origins of browsers, headers that nobody signed, replays, and
what a server gives away by its endpoints or by how long it takes."""

import io
import re
import subprocess
import tarfile
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from support import expect
from support.bucket import Bucket
from support.identities import allow, code_of, deny, master_key, policy
from support.intruders import assume, bucket, role, root, user
from support.server import REPOSITORY
from support.sigv4 import STREAMING, STREAMING_UNSIGNED_TRAILER, UNSIGNED, Signer
from support.wire import RawClient, Response, poll


@pytest.fixture
def lab(guarded) -> str:
    return bucket(guarded, x=b"1")


def as_user(guarded, *statements) -> RawClient:
    return guarded.raw.with_(signer=Signer(*user(guarded, *statements).key[:2]))


MADE_UP = [
    {"X-Forwarded-For": "192.0.2.7"},
    {"X-Forwarded-For": "192.0.2.7, 127.0.0.1"},
    {"X-Real-IP": "192.0.2.7"},
    {"Forwarded": "for=192.0.2.7;proto=https"},
    {"X-Client-IP": "192.0.2.7"},
    {"CF-Connecting-IP": "192.0.2.7"},
    {"True-Client-IP": "192.0.2.7"},
    {"X-Forwarded-Host": "192.0.2.7", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"},
    {"Via": "1.1 192.0.2.7", "X-Original-Forwarded-For": "192.0.2.7"},
]


class TestAddresses:
    """Conditions on where a request comes from do not believe its headers."""

    @pytest.mark.parametrize("headers", MADE_UP, ids=lambda headers: next(iter(headers)))
    def test_of_a_client_that_makes_one_up(self, guarded, lab, headers):
        at_home = {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}
        only = {"Principal": "*", "Condition": at_home}
        text = policy(allow("s3:GetObject", f"arn:aws:s3:::{lab}/*", **only))
        root(guarded).s3.put_bucket_policy(Bucket=lab, Policy=text)
        path = f"/{lab}/x"
        expect.error(guarded.raw.get(path, anonymous=True, headers=headers), "AccessDenied")
        raw = as_user(guarded, allow("s3:GetObject", Condition=at_home))
        for unsigned in ([], [name.lower() for name in headers]):
            assert raw.get(path, headers=headers, unsigned=unsigned).status == 403
        # Nor does a denial end where a header says so.
        abroad = {"NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"}}
        raw = as_user(guarded, allow("s3:*"), deny("s3:*", Condition=abroad))
        assert raw.get(path, headers=headers).status == 403

    @pytest.mark.parametrize("headers", MADE_UP, ids=lambda headers: next(iter(headers)))
    def test_of_actions(self, guarded, headers):
        at_home = {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}
        who = user(guarded, allow(["iam:*", "sts:*"], Condition=at_home))
        form = b"Action=ListUsers&Version=2010-05-08"
        headers = {"content-type": "application/x-www-form-urlencoded", **headers}
        signer = Signer(*who.key[:2], service="iam")
        answer = guarded.raw.post("/", form, headers=headers, signer=signer)
        assert answer.status == 403 and b"<Code>AccessDenied</Code>" in answer.body

    def test_a_transport_that_is_made_up(self, guarded, lab):
        """`aws:SecureTransport` is what the connection is."""
        secure = {"Bool": {"aws:SecureTransport": "true"}}
        raw = as_user(guarded, allow("s3:*", Condition=secure))
        for headers in (
            {"X-Forwarded-Proto": "https"},
            {"Forwarded": "proto=https"},
            {"X-Forwarded-Ssl": "on"},
            {"Front-End-Https": "on"},
            {"X-Url-Scheme": "https"},
        ):
            assert raw.get(f"/{lab}/x", headers=headers).status == 403
        assert raw.get(f"/{lab}/x", query={"aws:SecureTransport": "true"}).status == 403

    def test_secrets_that_are_asked_for_from_afar(self, make_server, tmp_path):
        """In clear only on this machine: a proxy on it is a client from elsewhere, whatever it says of TLS."""
        options = ("--durability", "none", "--master-key-file", str(master_key(tmp_path)))
        trusted = ("--client-address", "x-forwarded-for", "--trusted-proxy", "127.0.0.1")
        form = b"Action=GetSessionToken&Version=2011-06-15"
        kind = {"content-type": "application/x-www-form-urlencoded"}
        server = make_server(*options, *trusted)
        signer = server.raw.signer.with_(service="sts")
        afar = {**kind, "X-Forwarded-For": "192.0.2.7"}
        answer = server.raw.post("/", form, headers=afar, signer=signer)
        assert answer.status == 403 and b"over TLS only. Use https; or" in answer.body
        by_tls = server.raw.post("/", form, headers={**afar, "X-Forwarded-Proto": "https"}, signer=signer)
        assert by_tls.status == 200


class TestBrowsers:
    ORIGINS = [
        "http://evil.example",
        "null",
        "http://127.0.0.1",
        "file://",
        "https://s3.slipway.test.evil.example",
    ]

    @pytest.mark.parametrize("origin", ORIGINS)
    def test_no_origin_is_let_in(self, guarded, lab, origin):
        """There is no CORS: nothing is reflected, with or without credentials, of S3 and of actions."""
        path = f"/{lab}/x"
        asked = {
            "Origin": origin,
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "x",
        }
        answers = [
            guarded.raw.request("OPTIONS", path, headers=asked, anonymous=True),
            guarded.raw.get(path, headers={"Origin": origin}),
            guarded.raw.get(path, headers={"Origin": origin}, anonymous=True),
            guarded.raw.get("/", headers={"Origin": origin}),
            guarded.raw.post("/", b"Action=ListUsers", headers={"Origin": origin}, anonymous=True),
        ]
        assert answers[0].status == 403
        for answer in answers:
            assert not answer.headers.starting("access-control-"), answer
            assert origin.encode() not in answer.body

    def test_no_link_is_an_action(self, guarded):
        """A page or a form of elsewhere sends no signature, and cookies and passwords of browsers are none."""
        for action in ("CreateUser&UserName=eve", "GetSessionToken", "CreateAccessKey"):
            query = f"Action={action}&Version=2010-05-08"
            for headers in ({}, {"Cookie": "session=1"}, {"Authorization": "Basic cm9vdDpyb290"}):
                answer = guarded.raw.get("/", query=query, headers=headers, anonymous=True)
                assert answer.status in (400, 403) and b"Response" not in answer.body, answer
                form = {"content-type": "text/plain", **headers}
                answer = guarded.raw.post("/", query.encode(), headers=form, anonymous=True)
                assert answer.status in (400, 403), answer

    def test_an_error_is_no_page(self, guarded, lab):
        """What a request says comes back as text of XML, in a document that is not HTML."""
        script = "<script>alert(1)</script>"
        for answer in (
            guarded.raw.get(f"/{lab}/%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
            guarded.raw.get(f"/{lab}", query={"prefix": script}),
            guarded.raw.get(f"/{lab}/x", query={"versionId": script}),
            guarded.raw.get(f"/{script}", anonymous=True),
            guarded.raw.post("/", f"Action={script}&Version=2010-05-08".encode(), anonymous=True),
        ):
            assert script.encode() not in answer.body
            assert answer.headers["content-type"] in ("application/xml", "text/xml"), answer

    def test_answers_of_actions_are_escaped(self, guarded):
        """What somebody wrote into an account is text to the administrator who lists it."""
        evil = "</Description><Arn>arn:aws:iam::1:role/x</Arn><script>alert(1)</script>&amp;"
        iam = root(guarded).iam
        name = role(guarded, user(guarded).arn, Description=evil).rpartition("/")[2]
        shown = iam.get_role(RoleName=name)["Role"]
        assert shown["Description"] == evil and shown["Arn"].endswith(name)
        for bad in ("a\x00b", "a\x1bb", "a\uffffb", "a\u2028b"):
            assert code_of(iam.update_role, RoleName=name, Description=bad) == "ValidationError"

    def test_a_form_uploads_nothing(self, guarded, lab):
        """POST forms are not served, so that there is no policy of theirs to be passed by."""
        boundary = "b"
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="key"\r\n\r\nup\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--{boundary}--\r\n'
        ).encode()
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        for anonymous in (True, False):
            answer = guarded.raw.post(f"/{lab}", body, headers=headers, anonymous=anonymous)
            assert answer.status in (403, 501), answer
        assert not (guarded.tree / lab / "up").exists()

    def test_an_archive_stays_one_object(self, guarded, lab):
        """Another server unpacks it by a header, with names that lead to other buckets."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("../other/x"))
            archive.addfile(tarfile.TarInfo("inner"))
        headers = {"x-amz-meta-snowball-auto-extract": "true"}
        expect.ok(guarded.raw.put(f"/{lab}/a.tar", packed.getvalue(), headers=headers))
        assert (guarded.tree / lab / "a.tar").read_bytes() == packed.getvalue()
        assert not (guarded.tree / lab / "inner").exists() and not (guarded.tree / "other").exists()
        for name in ("x-minio-extract", "x-rustfs-snowball-auto-extract", "x-amz-snowball-extract"):
            answer = guarded.raw.put(f"/{lab}/b.tar", packed.getvalue(), headers={name: "true"})
            assert answer.status in (200, 400, 501)
            assert not (guarded.tree / lab / "inner").exists()


class TestReplays:
    """A request that somebody read on the way is good for what it was, as long as S3's own is."""

    def test_with_another_body(self, guarded, lab):
        sent = guarded.raw.prepare("PUT", f"/{lab}/x", body=b"2")
        expect.ok(guarded.raw.send(sent))
        expect.error(guarded.raw.send(replace(sent, body=b"3")), "XAmzContentSHA256Mismatch")
        assert (guarded.tree / lab / "x").read_bytes() == b"2"

    def test_later(self, guarded, lab):
        for service, path in (("s3", f"/{lab}/x"), ("iam", "/"), ("sts", "/")):
            old = guarded.raw.signer.with_(service=service, shift=timedelta(minutes=-16))
            method = "GET" if service == "s3" else "POST"
            answer = guarded.raw.request(
                method,
                path,
                body=b"Action=GetUser&Version=2010-05-08" if method == "POST" else b"",
                signer=old,
            )
            assert answer.status in (400, 403), answer

    def test_at_another_host(self, guarded, make_server):
        """With the same keys, but another name."""
        other = make_server("--durability", "none")
        sent = guarded.raw.prepare("GET", "/")
        head = sent.head.replace(guarded.raw.host.encode(), other.raw.host.encode())
        expect.error(other.raw.send(replace(sent, head=head)), "SignatureDoesNotMatch")

    def test_of_an_action_as_another_one(self, guarded):
        """The body is signed, and the query, method and path."""
        who = user(guarded, allow("iam:*"))
        signer = Signer(*who.key[:2], service="iam")
        form = {"content-type": "application/x-www-form-urlencoded"}
        sent = guarded.raw.prepare(
            "POST", "/", body=b"Action=ListUsers&Version=2010-05-08", headers=form, signer=signer
        )
        assert guarded.raw.send(sent).status == 200
        other = b"Action=ListRoles&Version=2010-05-08"
        assert len(other) == len(sent.body)
        for changed in (
            replace(sent, body=other),
            replace(sent, head=sent.head.replace(b"POST / ", b"POST /?Action=ListRoles ")),
            replace(sent, head=sent.head.replace(b"POST / ", b"POST // ")),
            replace(sent, head=sent.head.replace(b"POST / ", b"GET / "), method="GET"),
        ):
            answer = guarded.raw.send(changed)
            assert answer.status in (400, 403, 404, 405), answer
            assert b"ListRolesResult" not in answer.body

    @pytest.mark.parametrize("payload", [UNSIGNED, STREAMING, STREAMING_UNSIGNED_TRAILER, "0" * 64])
    def test_of_an_action_without_its_body(self, guarded, payload):
        """What S3 lets be unsigned would let anybody put another action in its place."""
        signer = guarded.raw.signer.with_(service="iam")
        form = {"content-type": "application/x-www-form-urlencoded"}
        sent = {"headers": form, "signer": signer, "payload": payload}
        answer = guarded.raw.post("/", b"Action=ListUsers&Version=2010-05-08", **sent)
        assert answer.status in (400, 403) and b"ListUsersResult" not in answer.body, answer

    def test_of_chunks_at_another_place(self, guarded, lab):
        """A signed stream is no plain body, and its head is no other request's."""
        Bucket(guarded, lab).put_signed_chunks("stream", b"a" * 100_000)
        unframed = guarded.raw.put(f"/{lab}/y", b"5\r\nbytes\r\n0\r\n\r\n", payload=STREAMING)
        assert unframed.status in (400, 403, 411)
        assert not (guarded.tree / lab / "y").exists()


class TestUnsignedHeaders:
    """Headers that decide are signed, or not believed."""

    def test_a_connection_is_nobody(self, guarded, lab):
        """What is behind a signed request on its connection is not signed by that."""
        with guarded.raw.connect() as connection:
            expect.ok(guarded.raw.get(f"/{lab}/x", connection=connection))
            refused = guarded.raw.get(f"/{lab}/x", connection=connection, anonymous=True)
            expect.error(refused, "AccessDenied")
            for method, body in (("POST", b"Action=ListUsers&Version=2010-05-08"), ("GET", b"")):
                query = None if body else "Action=ListUsers&Version=2010-05-08"
                sent = {"query": query, "body": body, "anonymous": True}
                with guarded.raw.connect() as other:
                    signer = guarded.raw.signer.with_(service="iam")
                    form = {"content-type": "application/x-www-form-urlencoded"}
                    signed = {
                        "body": b"Action=ListUsers&Version=2010-05-08",
                        "headers": form,
                        "signer": signer,
                    }
                    assert guarded.raw.post("/", connection=other, **signed).status == 200
                    answer = guarded.raw.request(method, "/", connection=other, **sent)
                    assert answer.status == 403 and b"ListUsersResult" not in answer.body

    @pytest.mark.parametrize(
        "name, value",
        [
            ("x-amz-copy-source", "other/x"),
            ("x-amz-security-token", "token"),
            ("x-amz-acl", "public-read"),
            ("x-amz-grant-full-control", 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'),
            ("x-amz-meta-a", "b"),
            ("x-amz-expected-bucket-owner", "000000000001"),
            ("x-amz-date", "20260101T000000Z"),
            ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
            ("x-amz-mfa", "1 2"),
            ("x-amz-tagging", "a=b"),
        ],
    )
    def test_that_was_added_on_the_way(self, guarded, lab, name, value):
        sent = guarded.raw.prepare("PUT", f"/{lab}/x", body=b"2")
        head = sent.head[:-2] + f"{name}: {value}\r\n\r\n".encode()
        answer = guarded.raw.send(replace(sent, head=head))
        assert answer.status in (400, 403), answer
        assert (guarded.tree / lab / "x").read_bytes() == b"1"

    def test_without_the_host(self, guarded, lab):
        answer = guarded.raw.get(f"/{lab}/x", unsigned=["host"])
        assert answer.status == 403

    def test_a_session_is_no_root_by_a_header(self, guarded, lab):
        """None of the headers by which servers tell each other who asks."""
        ann = user(guarded)
        session = assume(ann, role(guarded, ann.arn))
        signer = Signer(*session.key[:2])
        for name in (
            "x-amz-request-payer",
            "x-minio-source",
            "x-remote-user",
            "x-amz-user",
            "x-internal",
            "x-admin",
            "x-user-id",
        ):
            headers = {"x-amz-security-token": session.key[2], name: "root"}
            answer = guarded.raw.get(f"/{lab}/x", headers=headers, signer=signer)
            assert answer.status in (403, 501), answer


class TestEndpoints:
    """What other servers leave open beside S3."""

    @pytest.mark.parametrize(
        "path",
        [
            "/metrics",
            "/-/ready",
            "/-/metrics",
            "/debug/pprof/",
            "/profile/cpu",
            "/minio/admin/v3/info",
            "/minio/v2/metrics/cluster",
            "/minio/health/live",
            "/rustfs/admin/v3/metrics",
            "/rustfs/console/license",
            "/status",
            "/server-status",
            "/actuator/env",
            "/health",
            "/.env",
            "/api/v1/login",
            "/index.html",
        ],
    )
    def test_on_the_port_of_s3(self, guarded, path):
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = guarded.raw.request(method, path, anonymous=True)
            assert answer.status in (400, 403, 404, 405, 412), answer
            assert len(answer.body) < 1000

    def test_who_asks_with_a_key_without_rights(self, guarded):
        raw = as_user(guarded)
        for path in ("/metrics", "/minio/admin/v3/list-users", "/debug/pprof/heap"):
            assert raw.get(path).status in (400, 403, 404)

    def test_the_server_tells_nothing_of_itself(self, guarded, lab):
        """Neither its version, nor paths of its machine."""
        for answer in (
            guarded.raw.get("/", anonymous=True),
            guarded.raw.get(f"/{lab}/none"),
            guarded.raw.get(f"/{lab}/x/y"),
            guarded.raw.put(f"/{lab}/x/y", b""),
            guarded.raw.get(f"/{lab}/" + "a" * 1025),
        ):
            text = answer.body + str(answer.headers.pairs).encode()
            assert str(guarded.tree).encode() not in text and b"os error" not in text
            assert not re.search(rb"slipway[ /]\d", text, re.IGNORECASE)


class TestTiming:
    def test_secrets_are_compared_in_constant_time(self):
        """How long a comparison takes is not measured here: every place that compares a secret, signature or token is
        listed, and calls the same function of aws-lc."""
        found = subprocess.run(
            ["grep", "-rln", "verify_slices_are_equal", "crates", "--include=*.rs"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert set(found) >= {
            f"crates/{path}.rs"
            for path in (
                "iam/src/tokens",
                *(f"s3-wire/src/auth/{name}" for name in ("key", "v2", "v4", "chunk")),
            )
        }
        # No file of these compares one by `==`, with which it would end at the first other byte.
        compared = re.compile(
            r"(?:signature|secret_key|token|digest|calculated)(?:\(\))?\s*[!=]=\s|[!=]=\s*(?:\w+\.)*(?:signature|secret_key|token)\b"
        )
        for path in found:
            source = (REPOSITORY / path).read_text().split("#[cfg(test)]")[0]
            code = "\n".join(line.split("//")[0] for line in source.splitlines())
            assert not compared.search(code), (path, compared.search(code)[0])

    def test_a_signature_that_is_nearly_right_is_answered_as_any_other(self, guarded, lab):
        """Nothing of an answer says how much of it was right."""
        sent = guarded.raw.prepare("GET", f"/{lab}/x")
        told = set()
        for at in (0, 1, 31, 62, 63):
            wrong = (
                sent.signature[:at] + ("0" if sent.signature[at] != "0" else "1") + sent.signature[at + 1 :]
            )
            answer = guarded.raw.send(
                replace(sent, head=sent.head.replace(sent.signature.encode(), wrong.encode()))
            )
            expect.error(answer, "SignatureDoesNotMatch")
            told.add(re.sub(rb"<(SignatureProvided|RequestId|HostId)>.*?</\1>", b"", answer.body))
            assert sent.signature.encode() not in answer.body
        assert len(told) == 1

    def test_codes_of_keys(self, guarded):
        """Of a key that is there and one that is not S3 tells which, as AWS; and of nothing else of them."""
        ann = user(guarded)
        unknown = ann.key[0][:-1] + ("A" if ann.key[0][-1] != "A" else "B")
        for key, code in ((unknown, "InvalidAccessKeyId"), (ann.key[0], "SignatureDoesNotMatch")):
            answer = guarded.raw.with_(signer=Signer(key, "wrong" * 8)).get("/")
            assert answer.code == code
            assert ann.name.encode() not in answer.body
        assert code_of(ann.s3.list_buckets) == "AccessDenied"


class TestPlacesOfActions:
    def test_slow_bodies_hold_them_for_ten_seconds(self, make_server):
        """Of who knows the id of a key, which is in every presigned URL: the signature needs the body. Others are told
        to come again, S3 does not notice, and the places are free again."""
        server = make_server("--durability", "none")
        signer = Signer(server.raw.signer.access_key, "wrong" * 8, service="iam")
        sent = server.raw.prepare("POST", "/", body=b"Action=ListUsers", signer=signer)
        good = {
            "body": b"Action=ListUsers&Version=2010-05-08",
            "headers": {"content-type": "application/x-www-form-urlencoded"},
            "signer": server.raw.signer.with_(service="iam"),
        }
        with ExitStack() as stack:
            slow = []

            def hold(places: int) -> None:
                for _ in range(places):
                    slow.append(stack.enter_context(server.raw.connect()))
                    slow[-1].send(sent.head + sent.body[:-1])

            def refused() -> Response | None:
                # A request that was served had a place that one of the others did not get.
                hold(2)
                answer = server.raw.post("/", **good)
                return answer if answer.status != 200 else None

            hold(128)
            answer = poll(refused, 5)
            assert b"<Code>Throttling</Code>" in answer.body
            expect.ok(server.raw.get("/"))
            assert slow[0].response("POST").status == 400
            assert poll(lambda: server.raw.post("/", **good).status == 200, 5)

    def test_slow_bodies_of_strangers_keep_no_login_out(self, make_server):
        """A login without a signature has a place once its form is whole: no key is needed to hold a connection."""
        server = make_server("--durability", "none")
        form = {"content-type": "application/x-www-form-urlencoded"}
        body = b"Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=me&WebIdentityToken=none&RoleArn="
        body += b"arn:aws:iam::123456789012:role/reader"
        sent = server.raw.prepare("POST", "/", body=body, headers=form, anonymous=True)
        with ExitStack() as stack:
            for _ in range(64):
                stack.enter_context(server.raw.connect()).send(sent.head + sent.body[:1])
            # The server reads the first bytes of the others meanwhile.
            for _ in range(50):
                answer = server.raw.post("/", body=body, headers=form, anonymous=True)
                assert answer.status == 400 and b"<Code>InvalidIdentityToken</Code>" in answer.body, (
                    answer.body
                )
            expect.ok(server.raw.get("/"))
