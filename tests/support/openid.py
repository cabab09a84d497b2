"""A real OpenID provider (npm's `oidc-provider`), logins at it, and tokens that it never gave out."""

import base64
import hashlib
import hmac
import json
import shutil
import socket
import subprocess
import time
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from support.server import REPOSITORY

HERE = Path(__file__).resolve().parent.parent / "openid"
PLACE = REPOSITORY / "target" / "openid"
INSTALL_SECONDS = 300


def installed() -> Path | None:
    """The program with all that it needs, which npm installs once; None where that cannot be."""
    if not (shutil.which("npm") and shutil.which("node")):
        return None
    PLACE.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    done = PLACE / "installed"
    if not done.exists() or done.read_bytes() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, PLACE)
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        command = ["npm", "ci", *quiet]
        ended = subprocess.run(command, cwd=PLACE, capture_output=True, timeout=INSTALL_SECONDS, check=False)
        if ended.returncode:
            return None
        done.write_bytes(lock)
    return Path(shutil.copy(HERE / "provider.mjs", PLACE))


def text(data: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Key:
    """A key pair, with which a provider signs, or somebody who would like to be one."""

    def __init__(self, kid: str, algorithm: str = "RS256") -> None:
        self.kid, self.algorithm = kid, algorithm
        is_rsa = algorithm == "RS256"
        self.private = (
            rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
        )

    def jwk(self) -> dict:
        """The private key, as the provider's configuration has it."""
        common = {"kid": self.kid, "use": "sig", "alg": self.algorithm}
        numbers = self.private.private_numbers()
        public = numbers.public_numbers
        if self.algorithm == "RS256":
            parts = {"n": public.n, "e": public.e, "d": numbers.d, "p": numbers.p, "q": numbers.q}
            parts |= {"dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp}
            return common | {"kty": "RSA"} | {name: number(value) for name, value in parts.items()}
        parts = {"x": public.x, "y": public.y, "d": numbers.private_value}
        fixed = {name: text(value.to_bytes(32, "big")) for name, value in parts.items()}
        return common | {"kty": "EC", "crv": "P-256"} | fixed

    def public_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(self, claims: dict, **header) -> str:
        """A token of these claims, signed. The header has this key's id if nothing else is said."""
        head = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT"} | header
        message = f"{text(json.dumps(head).encode())}.{text(json.dumps(claims).encode())}"
        if self.algorithm == "RS256":
            signature = self.private.sign(message.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            r, s = utils.decode_dss_signature(self.private.sign(message.encode(), ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return f"{message}.{text(signature)}"


def unsigned(claims: dict, algorithm: str = "none") -> str:
    """A token that nobody has signed."""
    return (
        f"{text(json.dumps({'alg': algorithm, 'typ': 'JWT'}).encode())}.{text(json.dumps(claims).encode())}."
    )


def by_secret(claims: dict, secret: bytes, **header) -> str:
    """A token with an HMAC by a secret."""
    head = {"alg": "HS256", "typ": "JWT"} | header
    message = f"{text(json.dumps(head).encode())}.{text(json.dumps(claims).encode())}"
    return f"{message}.{text(hmac.new(secret, message.encode(), hashlib.sha256).digest())}"


def claims_of(token: str) -> dict:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None


class Idp:
    """A provider that runs, at an address that it keeps."""

    def __init__(
        self, folder: Path, program: Path, tls: dict | None = None, *, port: int | None = None, path: str = ""
    ) -> None:
        self.folder, self.program, self.tls = folder, program, tls
        self.port = port or free_port()
        self.issuer = f"{'https://localhost' if tls else 'http://127.0.0.1'}:{self.port}{path}"
        self.name = self.issuer.split("://")[1]
        self.process = None

    def start(
        self, *keys: Key, clients=("client", "stranger"), seconds: int = 3600, claims: dict | None = None
    ):
        """Starts it, with these keys, the first of which signs."""
        given = {
            "issuer": self.issuer,
            "port": self.port,
            "keys": [key.jwk() for key in keys],
            "algorithm": keys[0].algorithm,
            "clients": list(clients),
            "seconds": seconds,
            "claims": claims or {},
            "tls": self.tls,
        }
        path = self.folder / "idp.json"
        path.write_text(json.dumps(given))
        log = (self.folder / "idp.log").open("ab")
        command = ["node", str(self.program), str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        line = self.process.stdout.readline()
        assert line == b"ready\n", (line, (self.folder / "idp.log").read_text())

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(20)
            self.process.stdout.close()
            self.process = None

    def log_in(self, name: str, client: str = "client", context=None) -> str:
        """Logs in as a browser does, and returns the token of the client."""
        handlers = [HTTPCookieProcessor(CookieJar()), NoRedirects()]
        if context:
            from urllib.request import HTTPSHandler

            handlers.append(HTTPSHandler(context=context))
        opener = build_opener(*handlers)

        def ask(url: str, form: dict | None = None) -> str:
            data = urlencode(form).encode() if form else None
            try:
                with opener.open(Request(url, data=data), timeout=20) as answer:
                    raise AssertionError(answer.read()[:500])
            except HTTPError as answer:
                assert answer.code in (302, 303), (answer.code, answer.read()[:2000])
                return urljoin(url, answer.headers["location"])

        asked = {
            "client_id": client,
            "response_type": "id_token",
            "redirect_uri": "https://client.lab/back",
            "scope": "openid",
            "nonce": "a-nonce",
        }
        at = ask(f"{self.issuer}/auth?{urlencode(asked)}")
        for form in ({"prompt": "login", "login": name, "password": "any"}, {"prompt": "consent"}):
            assert "/interaction/" in at, at
            at = ask(ask(at, form))
        found = parse_qs(urlsplit(at).fragment)
        return found["id_token"][0]


def fresh_claims(idp: Idp, **others) -> dict:
    """The claims of a token that would be good; None takes one away."""
    now = int(time.time())
    claims = {"iss": idp.issuer, "sub": "ann", "aud": "client", "exp": now + 600, "iat": now} | others
    return {name: value for name, value in claims.items() if value is not None}
