"""Secrets stay where they belong: in no log, answer to others, span, metric, message or file, whatever is asked."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from botocore.exceptions import ClientError
from test_operations import metrics

from support.bucket import Bucket
from support.collector import collector
from support.identities import allow, client, key_of, master_key, policy
from support.intruders import Who, root
from support.server import ACCESS_KEY, NOBODY, SECRET_KEY, Server, binary
from support.sigv4 import Signer, wrong_hex
from support.wire import Response

PASSWORD = "hunter2-hunter2"


@dataclass
class Run:
    """A server with all that it may write to, and what was secret in what it was asked."""

    server: Server
    access_log: Path
    spans: Callable[[], bytes]
    secrets: dict[str, str] = field(default_factory=dict)
    """What each secret is called."""
    answers: list[bytes] = field(default_factory=list)
    """Bodies of errors, with the headers of their answers."""

    def secret(self, name: str, value: str) -> str:
        assert len(value) >= 12, (name, value)
        self.secrets[value] = name
        return value

    def key(self, name: str, key: tuple) -> tuple:
        self.secret(f"secret key of {name}", key[1])
        if key[2]:
            self.secret(f"token of {name}", key[2])
        return key

    def noted(self, answer: Response) -> Response:
        if answer.status >= 400:
            headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.pairs)
            self.answers.append(headers.encode() + answer.body)
        return answer

    def who(self, name: str, key: tuple) -> Who:
        """Its clients note the signatures that they send, and the errors that they get."""
        who = Who(self.server, name, "", self.key(name, key))
        for made in (who.s3, who.iam, who.sts):
            made.meta.events.register("before-send.*", self.sending)
            made.meta.events.register("after-call.*", self.received)
        return who

    def sending(self, request, **_) -> None:
        signed = [request.headers.get("Authorization", b""), request.url.encode()]
        for found in re.findall(rb"(?:Signature=|signature=)([^&\s,]+)", b" ".join(map(_bytes, signed))):
            self.secret("a signature", unquote(found.decode()))

    def received(self, http_response, **_) -> None:
        if http_response.status_code >= 400:
            self.answers.append(http_response.content)


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value


@pytest.fixture(params=[("text", "json"), ("json", "s3")], ids=lambda formats: "-".join(formats))
def run(request, make_server, tmp_path) -> Iterator[Run]:
    log_format, access_format = request.param
    access_log = tmp_path / "access.log"
    key = master_key(tmp_path)
    with collector() as receiver:
        server = make_server(
            *("--durability", "none", "--master-key-file", str(key), "--sigv2", "all"),
            *("--log", "trace", "--log-format", log_format, "--ops-listen", "127.0.0.1:0"),
            *("--access-log", str(access_log), "--access-log-format", access_format),
            *("--audit-log", str(access_log.with_name("audit.log"))),
            *("--traces", receiver.url),
        )
        run = Run(server, access_log, lambda: b"".join(received.body for received in receiver.received))
        run.secret("the secret key of root", SECRET_KEY)
        run.secret("the master key", key.read_text().strip().splitlines()[-1])
        yield run


class TestARun:
    def test_of_all_that_has_secrets(self, run):
        server = run.server
        admin = run.who("root", root(server).key)
        people = self.people(run, admin)
        self.uses(run, people)
        for who in people:
            self.urls(run, who)
            self.wrong(run, who)
        self.misplaced(run, people)
        self.look(run)

    def people(self, run: Run, admin: Who) -> list[Who]:
        """A user with two keys, a role, sessions of all kinds."""
        admin.s3.create_bucket(Bucket="lab")
        admin.s3.put_object(Bucket="lab", Key="x", Body=b"1")
        made = admin.iam.create_user(UserName="ann")["User"]["Arn"]
        text = policy(allow(["s3:*", "sts:*", "iam:*AccessKey*"]))
        admin.iam.put_user_policy(UserName="ann", PolicyName="p", PolicyDocument=text)
        ann = run.who("ann", _key(admin.iam.create_access_key(UserName="ann")))
        second = run.who("ann's second", _key(ann.iam.create_access_key()))
        another = run.who("root's second", _key(admin.iam.create_access_key()))
        trust = policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": made}})
        role = admin.iam.create_role(RoleName="role", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        admin.iam.put_role_policy(RoleName="role", PolicyName="p", PolicyDocument=text)
        asked = {
            "role": ann.sts.assume_role(RoleArn=role, RoleSessionName="s1"),
            "session": ann.sts.get_session_token(),
            "session of root": admin.sts.get_session_token(),
            "federated": ann.sts.get_federation_token(Name="eve", Policy=text),
        }
        sessions = [run.who(name, key_of(answer["Credentials"])) for name, answer in asked.items()]
        return [admin, ann, second, another, *sessions]

    def uses(self, run: Run, people: list[Who]) -> None:
        """Requests that succeed, and others that are refused."""
        for who in people:
            who.s3.get_object(Bucket="lab", Key="x")
            who.s3.put_object(Bucket="lab", Key="y", Body=b"bytes" * 1000)
            who.sts.get_caller_identity()
            for call, members in (
                (who.s3.get_object, {"Bucket": "lab", "Key": "none"}),
                (who.s3.list_objects_v2, {"Bucket": "none"}),
                (who.s3.put_bucket_policy, {"Bucket": "lab", "Policy": "{"}),
                (who.iam.create_user, {"UserName": "a/b"}),
                (who.iam.get_user, {"UserName": "none"}),
                (who.iam.create_access_key, {"UserName": "none"}),
                (
                    who.sts.assume_role,
                    {"RoleArn": "arn:aws:iam::000000000000:role/x", "RoleSessionName": "s1"},
                ),
                (who.sts.get_federation_token, {"Name": "a/b"}),
                (who.sts.assume_role_with_web_identity, self.web(run)),
            ):
                with pytest.raises(ClientError):
                    call(**members)

    def web(self, run: Run) -> dict:
        token = run.secret("a web identity token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl")
        return {
            "RoleArn": "arn:aws:iam::000000000000:role/x",
            "RoleSessionName": "s1",
            "WebIdentityToken": token,
        }

    def urls(self, run: Run, who: Who) -> None:
        """Presigned URLs of both kinds, in time, expired, cut, and as whoever pastes them has them."""
        raw = run.server.raw
        for path in self.signed_urls(run, who):
            url = run.server.endpoint + path
            (signature,) = re.findall(r"[&?](?:X-Amz-)?Signature=([^&]+)", url)
            run.secret("a signature of a URL", unquote(signature))
            head, _, query = path.partition("?")
            for sent in (
                path,
                path + "x",
                f"{head}?x=1&{query}",
                f"{head}%3F{query}",
                f"{head}?{query.replace('=', '%3D')}",
                f"{head}?{query.replace('Signature', 'Signatur%65')}",
                f"{head}/{query}",
                f"/{quote(url, safe='')}",
                f"/lab?prefix={quote(url, safe='')}",
            ):
                run.noted(raw.fetch(sent))
            run.noted(raw.get("/lab/x", headers={"referer": url}, anonymous=True))
            run.noted(raw.get("/lab/x", headers={"referer": url}))

    def signed_urls(self, run: Run, who: Who) -> Iterator[str]:
        """Paths of URLs of the versions 4 and 2, for now and for an hour ago."""
        access_key, secret_key, token = who.key
        for shift in (timedelta(), timedelta(hours=-1)):
            signer = Signer(access_key, secret_key, shift=shift)
            with_token = [("X-Amz-Security-Token", token)] if token else []
            yield signer.presign("GET", "/lab/x", run.server.raw.host, query=with_token)
        s3 = client(run.server, "s3", who.key, signature_version="s3")
        url = s3.generate_presigned_url("get_object", Params={"Bucket": "lab", "Key": "x"})
        yield url.removeprefix(run.server.endpoint)

    def wrong(self, run: Run, who: Who) -> None:
        """Wrong signatures, in headers of both versions. The right one is told to nobody either."""
        access_key, secret_key, token = who.key
        with_token = {"x-amz-security-token": token} if token else {}
        raw = run.server.raw.with_(signer=Signer(access_key, secret_key))
        prepared = raw.prepare("GET", "/lab/x", headers=with_token)
        run.secret("the signature that would be right", prepared.signature)
        wrong = prepared.head.replace(prepared.signature.encode(), wrong_hex(prepared.signature).encode())
        answer = run.noted(raw.send(type(prepared)("GET", wrong, b"")))
        assert answer.status == 403
        # As a client that has its time wrong.
        for service in ("iam", "sts", "s3"):
            late = Signer(access_key, secret_key, service=service)
            body = b"Action=GetCallerIdentity&Version=2011-06-15"
            headers = {"content-type": "application/x-www-form-urlencoded", **with_token}
            sent = raw.prepare("POST", "/", body=body, headers=headers, signer=late, payload="00" * 32)
            run.secret("a signature", sent.signature)
            run.noted(raw.send(sent))
        run.noted(
            raw.get("/lab/x", headers={"authorization": f"AWS {access_key}:{secret_key}"}, anonymous=True)
        )

    def misplaced(self, run: Run, people: list[Who]) -> None:
        """Secrets where they do not belong: id and secret the other way round, passwords in queries and forms."""
        run.secret("a password", PASSWORD)
        raw = run.server.raw
        for who in people:
            swapped = Signer(who.key[1], who.key[0])
            # It is in the answer, as S3 has it: to whoever sent it.
            raw.get("/lab/x", signer=swapped)
            raw.post("/", b"Action=ListUsers&Version=2010-05-08", signer=swapped.with_(service="iam"))
        query = (
            f"Action=AssumeRoleWithLDAPIdentity&Version=2011-06-15&LDAPUsername=ann&LDAPPassword={PASSWORD}"
        )
        form = {"content-type": "application/x-www-form-urlencoded"}
        run.noted(raw.post("/", b"", query=query, anonymous=True))
        run.noted(raw.post("/", query.encode(), headers=form, anonymous=True))
        run.noted(raw.post("/", query.encode(), headers=form, signer=raw.signer.with_(service="sts")))
        sse = {"x-amz-server-side-encryption-customer-key": quote(PASSWORD)}
        run.noted(raw.put("/lab/z", b"x", headers=sse))

    def look(self, run: Run) -> None:
        server = run.server
        exposed = "\n".join(f"{name} {value}" for name, value in metrics(server).items())
        server.stop()
        places = {
            "the log": server.log,
            "standard output": server.output,
            "the access log": run.access_log.read_text(errors="replace"),
            "the audit log": run.access_log.with_name("audit.log").read_text(),
            "a span": run.spans().decode("latin-1"),
            "the metrics": exposed,
            "an error": b"\n".join(run.answers).decode("latin-1"),
        }
        files = [path for path in server.tree.rglob("*") if path.is_file()]
        places |= {str(path): path.read_bytes().decode("latin-1") for path in files}
        assert (
            all(places[name] for name in ("the log", "the access log", "the audit log", "a span", "an error"))
            and len(files) > 2
        )
        assert "ann" in places["the access log"] and len(run.secrets) > 100
        found = set()
        for place, text in places.items():
            for secret, name in run.secrets.items():
                for form in {secret, quote(secret, safe=""), quote(quote(secret, safe=""), safe="")}:
                    if form in text and not self.is_echo(place, name):
                        at = text.index(form)
                        found.add((place, name, text[max(0, at - 200) : at + 30]))
        assert not found, "\n".join(map(str, found))

    def is_echo(self, place: str, name: str) -> bool:
        """What an error says to its sender, which sent it: S3 shows what was signed, with its token, and the
        signature that came."""
        return place == "an error" and (name.startswith("token") or name == "a signature of a URL")


def _key(answer: dict) -> tuple:
    made = answer["AccessKey"]
    return (made["AccessKeyId"], made["SecretAccessKey"], None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_nobody_reads_the_memory_of_the_server(make_server):
    """Not even other processes of its user: the environment has root's secret, the memory all of them. Nor does it
    leave them in a core dump, which such a process has none of."""
    with tempfile.TemporaryDirectory(prefix="slipway-nobody-", dir="/tmp") as directory:
        place = Path(directory)
        place.chmod(0o755)
        program = shutil.copy(binary(), place / "slipway")
        tree = place / "tree"
        tree.mkdir()
        os.chown(tree, NOBODY, NOBODY)
        server = make_server("--durability", "none", tree=tree, as_nobody=True, program=program)
        bucket = Bucket(server, "bucket").create()
        bucket.put("key", b"data")
        assert bucket.read("key") == b"data"
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        for name in ("environ", "maps", "mem"):
            asked = [*as_nobody, "head", "-c", "1", f"/proc/{server.pid}/{name}"]
            answer = subprocess.run(asked, capture_output=True, text=True)
            assert answer.returncode and "Permission denied" in answer.stderr, (name, answer)


def test_no_flag_takes_a_secret():
    """Whoever runs `ps` sees flags."""
    help_text = subprocess.run(
        [binary(), "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    flags = re.findall(r"^\s+(--[\w-]+)", help_text, re.MULTILINE)
    assert "--credentials-file" in flags
    for flag in flags:
        secret = re.search(r"secret|password|token|key", flag)
        assert not secret or flag.endswith(("-file", "-command", "-in-clear", "-key", "-attribute")), flag


def test_there_are_no_keys_that_everybody_knows(make_server):
    """Neither those of other servers, nor the same ones twice."""
    first = make_server("--durability", "none", env={})
    made = (first.tree / ".slipway/credentials.toml").read_text()
    for key in ("minioadmin", "rustfsadmin", "admin", "root", "slipway", "test", "password", ACCESS_KEY):
        raw = first.raw.with_(signer=Signer(key, key))
        assert raw.get("/").code == "InvalidAccessKeyId"
    secret = re.search(r'secret_key = "(.+)"', made)[1]
    assert len(secret) >= 40
    second = make_server("--durability", "none", env={}, tree=first.tree.parent / "other")
    assert secret not in (second.tree / ".slipway/credentials.toml").read_text()
    assert secret not in first.log + first.output
