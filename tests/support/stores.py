"""Stores of identities beside the tree: a bucket of another Slipway, and a KV engine of OpenBao or Vault."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from .clients import boto3_client
from .server import Server
from .wire import poll

FOLDER = "identities"
# The server's own keys, unlike those of the gateways that use it.
ACCESS_KEY, SECRET_KEY = "AKIDOFTHESTORE000000", "secret-of-the-store-0123456789abcdef"
OWN = {"SLIPWAY_ROOT_ACCESS_KEY": ACCESS_KEY, "SLIPWAY_ROOT_SECRET_KEY": SECRET_KEY}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class BucketStore:
    """A bucket of a second Slipway, which may be stopped, started again, and made to hang."""

    kind = "bucket"

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        (folder / "tree").mkdir(parents=True)
        self._starts = 0
        self.start()
        boto3_client(self.server, access_key=ACCESS_KEY, secret_key=SECRET_KEY).create_bucket(Bucket="ids")

    @property
    def url(self) -> str:
        return f"s3:http://127.0.0.1:{self._port}/ids/{FOLDER}"

    credentials = f'access_key = "{ACCESS_KEY}"\nsecret_key = "{SECRET_KEY}"\n'
    wrong_credentials = 'access_key = "AKIDOFNOBODY00000000"\nsecret_key = "the-wrong-secret-0123456789"\n'
    refusal = "InvalidAccessKeyId"

    def start(self, *options: str, env: dict[str, str] = OWN) -> None:
        self._starts += 1
        log, listen = self._folder / f"store-{self._starts}.log", (f"127.0.0.1:{self._port}",)
        self.server = Server(self._folder / "tree", *options, log=log, env=env, listen=listen)

    def stop(self) -> None:
        self.server.stop()

    @property
    def pid(self) -> int:
        return self.server.pid

    def at_rest(self) -> bytes:
        """All that is kept of the documents."""
        files = (self._folder / "tree" / "ids" / FOLDER).rglob("*")
        return b"\n".join(path.read_bytes() for path in files if path.is_file())

    def count_requests(self) -> Callable[[], int]:
        """Starts to count them; a call says how many there were."""
        log = self._folder / "access.log"
        self.stop()
        self.start("--access-log", str(log))
        return lambda: len(log.read_text().splitlines())

    def documents(self) -> dict[str, str]:
        files = (self._folder / "tree" / "ids" / FOLDER).glob("*.json")
        return {path.stem: path.read_text() for path in files}


def program() -> str | None:
    """OpenBao or Vault: what `SLIPWAY_BAO` names, or what is on PATH."""
    return os.environ.get("SLIPWAY_BAO") or shutil.which("bao") or shutil.which("vault")


class VaultError(Exception):
    """Vault refused a request; the message has its status and what it said."""


class VaultStore:
    """A Vault with a KV engine at `kv`, whose storage (raft) outlives its process."""

    kind = "vault"
    refusal = "permission denied"

    def __init__(self, folder: Path) -> None:
        self._folder, self._port, self._starts = folder, free_port(), 0
        (folder / "raft").mkdir(parents=True)
        self._configuration = folder / "vault.json"
        address = f"127.0.0.1:{self._port}"
        configuration = {
            "storage": {"raft": {"path": str(folder / "raft"), "node_id": "one"}},
            "listener": [{"tcp": {"address": address, "tls_disable": True}}],
            "api_addr": f"http://{address}",
            "cluster_addr": f"http://127.0.0.1:{free_port()}",
            "disable_mlock": True,
            # Vault needs no such word.
            "unsafe_allow_api_audit_creation": True,
        }
        self._configuration.write_text(json.dumps(configuration))
        self.root, self._unseal = "", ""
        self.start()
        self._prepare()

    @property
    def url(self) -> str:
        return f"vault:http://127.0.0.1:{self._port}/kv/{FOLDER}"

    @property
    def credentials(self) -> str:
        return f'role_id = "{self.role_id}"\nsecret_id = "{self.secret_id}"\n'

    wrong_credentials = 'token = "s.of-nobody"\n'

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, method: str, path: str, body: dict | None = None, token: str | None = None) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/{path}",
            json.dumps(body).encode() if body is not None else None,
            {"X-Vault-Token": token or self.root},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise VaultError(f"{error.code} {error.read().decode()}") from None

    def start(self) -> None:
        self._starts += 1
        with open(self._folder / f"store-{self._starts}.log", "ab") as log:
            self._process = subprocess.Popen(
                [program(), "server", f"-config={self._configuration}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
            )

        def listens() -> bool:
            assert self._process.poll() is None, "the server has ended"
            try:
                self.call("GET", "sys/seal-status")
            except OSError:
                return False
            return True

        poll(listens, 60)
        if not self._unseal:
            made = self.call("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
            self.root, self._unseal = made["root_token"], made["keys_base64"][0]
        self.call("PUT", "sys/unseal", {"key": self._unseal})
        poll(lambda: self.call("GET", "sys/leader")["is_self"], 60)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        self._process.wait(30)

    def _prepare(self) -> None:
        self.call("POST", "sys/mounts/kv", {"type": "kv", "options": {"version": "2"}})
        # The engine is being made ready for a moment.
        poll(self._answers, 30)
        rules = "".join(
            f'path "kv/{kind}/{folder}/*" {{ capabilities = [{capabilities}] }}\n'
            for folder in (FOLDER, f"{FOLDER}-other")
            for kind, capabilities in (
                ("data", '"create", "read", "update"'),
                ("delete", '"update"'),
                ("metadata", '"list", "read"'),
                ("detailed-metadata", '"list"'),
            )
        )
        self.call("PUT", "sys/policies/acl/slipway", {"policy": rules})
        self.call("POST", "sys/auth/approle", {"type": "approle"})
        self.role(token_ttl="1h")

    def _answers(self) -> bool:
        try:
            self.call("GET", "kv/config")
        except VaultError:
            return False
        return True

    def role(self, **settings) -> None:
        """Makes the role that gateways log in with, anew."""
        self.call("POST", "auth/approle/role/gateway", {"token_policies": "slipway", **settings})
        self.role_id = self.call("GET", "auth/approle/role/gateway/role-id")["data"]["role_id"]
        self.secret_id = self.call("POST", "auth/approle/role/gateway/secret-id")["data"]["secret_id"]

    def count_requests(self) -> Callable[[], int]:
        """Starts to count them; a call says how many there were."""
        log = self._folder / "audit.log"
        self.call("POST", "sys/audit/file", {"type": "file", "options": {"file_path": str(log)}})
        return lambda: log.read_text().count('"type":"response"')

    def documents(self) -> dict[str, str]:
        names = self.call("GET", f"kv/metadata/{FOLDER}?list=true")["data"]["keys"]
        secrets = {name: self.call("GET", f"kv/data/{FOLDER}/{name}")["data"]["data"] for name in names}
        return {name: secret["document"] for name, secret in secrets.items()}

    def at_rest(self) -> bytes:
        """All that Vault gives to whoever may read it: what it keeps is encrypted besides."""
        return json.dumps(self.documents()).encode()


class TokenReviews:
    """A stand-in for the one request of Kubernetes' API that Vault makes: whose a token of a service account is."""

    def __init__(self, good: str) -> None:
        outer = self
        self.asked: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(self.path)
                is_good = review["spec"]["token"] == good
                user = {"username": "system:serviceaccount:lab:slipway", "uid": "1", "groups": []}
                audiences = review["spec"]["audiences"]
                known = {"authenticated": True, "user": user, "audiences": audiences}
                status = known if is_good else {"error": "not this one"}
                kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
                answer = json.dumps({**kind, "status": status}).encode()
                self.send_response(201)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def make(kind: str, folder: Path) -> BucketStore | VaultStore:
    """A store; skips the test if its server is not there."""
    if kind == "vault" and not program():
        pytest.skip("there is no OpenBao or Vault: SLIPWAY_BAO, or bao or vault on PATH, names one")
    return {"bucket": BucketStore, "vault": VaultStore}[kind](folder)
