"""A small HTTP/1.1 client on plain sockets, which signs requests and can send what no proper client would."""

import contextlib
import re
import select
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from . import codes, sigv4, xml
from .sigv4 import Pairs, Signer

TIMEOUT = 30.0


class Headers:
    """Response headers: case-insensitive, duplicates kept."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key.lower() == name.lower()]

    def get(self, name: str, default: str | None = None) -> str | None:
        found = self.all(name)
        assert len(found) <= 1, f"{name} is there {len(found)} times"
        return found[0] if found else default

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        assert value is not None, f"no {name} in {self.pairs}"
        return value

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))

    def starting(self, prefix: str) -> dict[str, str]:
        return {key.lower(): value for key, value in self.pairs if key.lower().startswith(prefix)}


@dataclass
class Response:
    status: int
    reason: str
    headers: Headers
    body: bytes
    informational: list[int] = field(default_factory=list)
    version: str = "HTTP/1.1"

    @property
    def xml(self) -> xml.Element:
        return xml.parse(self.body)

    @property
    def code(self) -> str | None:
        """The code, if this is an S3 error with a body."""
        found = re.search(rb"<Error>.*?<Code>(\w+)</Code>", self.body, re.DOTALL)
        return found[1].decode() if found else None

    @property
    def etag(self) -> str:
        return self.headers["etag"]

    def __repr__(self) -> str:
        usual = ("date", "server", "x-amz-id-2", "x-amz-request-id")
        headers = [pair for pair in self.headers.pairs if pair[0].lower() not in usual]
        return f"<{self.status} {self.reason} {headers} {self.body[:2000]!r}>"


class Closed(Exception):
    """The server closed the connection where a response was due."""


class Connection:
    """One connection. Requests are bytes; responses are read one by one, so that they may be pipelined."""

    def __init__(
        self,
        address: tuple[str, int] | str,
        timeout: float = TIMEOUT,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=server_name)
        self.buffer = b""

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Goes away as a crashed client does: RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_as_far_as_possible(self, data: bytes) -> None:
        """The server may answer, and close, before it has read everything."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.socket.sendall(data)

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def _line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            data = self._receive()
            if not data:
                raise Closed(f"the connection ended after {self.buffer!r}")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def read(self, length: int) -> bytes:
        """Exactly so many bytes of a body."""
        pieces = [self.buffer[:length]]
        self.buffer = self.buffer[length:]
        missing = length - len(pieces[0])
        while missing:
            data = self._receive()
            if not data:
                raise Closed(f"the connection ended {missing} bytes before the end of the body")
            pieces.append(data[:missing])
            self.buffer += data[missing:]
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def read_some(self) -> bytes:
        """What has come, or comes next; empty at the connection's end."""
        data, self.buffer = self.buffer or self._receive(), b""
        return data

    def head(self) -> Response:
        """The head of a response, without its body."""
        version, status, reason = (self._line().decode("latin-1") + "  ").split(" ", 2)
        pairs = []
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            pairs.append((name, value.strip()))
        return Response(int(status), reason.strip(), Headers(pairs), b"", version=version)

    def response(self, method: str = "GET") -> Response:
        informational = []
        while (response := self.head()).status < 200:
            informational.append(response.status)
        response.informational = informational
        response.body = self._body(method, response)
        codes.saw(response.code)
        return response

    def _body(self, method: str, response: Response) -> bytes:
        if method == "HEAD" or response.status in (204, 304):
            return b""
        if response.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._line(), 16):
                body += self.read(size)
                assert self._line() == b""
            assert self._line() == b""
            return body
        if "content-length" in response.headers:
            return self.read(int(response.headers["content-length"]))
        while data := self._receive():
            self.buffer += data
        body, self.buffer = self.buffer, b""
        return body

    def is_closed(self, within: float) -> bool:
        """Whether the server closes the connection, without sending anything more, in so many seconds."""
        if self.buffer:
            return False
        ready, _, _ = select.select([self.socket], [], [], within)
        return bool(ready) and self._receive() == b""

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so many seconds."""
        return not self.buffer and not select.select([self.socket], [], [], seconds)[0]


@dataclass(frozen=True)
class Request:
    """A request as bytes, and what its signature was made of."""

    method: str
    head: bytes
    body: bytes
    signature: str = ""

    @property
    def bytes(self) -> bytes:
        return self.head + self.body


def key_path(bucket: str, key: str | None = None) -> str:
    """The path of a bucket or object as a careful client writes it."""
    return f"/{bucket}" if key is None else f"/{bucket}/{quote(key, safe='/-_.~')}"


def head_bytes(method: str, target: str, headers: Pairs, version: str = "HTTP/1.1") -> bytes:
    lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n"


def pairs_of(items: Mapping[str, str] | Iterable[tuple[str, str]] | None) -> list[tuple[str, str]]:
    return list(items.items() if isinstance(items, Mapping) else items or [])


@dataclass(frozen=True)
class RawClient:
    """Makes requests to one server. Every request has its own connection unless one is given."""

    address: tuple[str, int] | str
    signer: Signer
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    timeout: float = TIMEOUT

    @property
    def host(self) -> str:
        if isinstance(self.address, str):
            return "localhost"
        return f"{self.server_name or self.address[0]}:{self.address[1]}"

    def with_(self, **changes) -> "RawClient":
        return replace(self, **changes)

    def connect(self) -> Connection:
        return Connection(self.address, self.timeout, self.tls, self.server_name)

    def prepare(
        self,
        method: str,
        path: str = "/",
        *,
        query: Mapping[str, str] | Pairs | str | None = None,
        headers: Mapping[str, str | None] | Pairs | None = None,
        body: bytes = b"",
        payload: str | None = None,
        signer: Signer | None = None,
        anonymous: bool = False,
        unsigned: Iterable[str] = (),
        version: str = "HTTP/1.1",
    ) -> Request:
        """Signs a request.

        A header given as None is left out; one named in `unsigned` is sent but not signed. `payload` is sent
        as `x-amz-content-sha256` instead of the body's hash. A `query` that is text is sent as it stands.
        """
        signer = signer or self.signer
        when = signer.now()
        raw_query = query if isinstance(query, str) else sigv4.encode_query(pairs_of(query))
        payload = payload or sigv4.sha256_hex(body)
        given = pairs_of(headers)
        defaults = [("Host", self.host)]
        if not anonymous:
            defaults += [("x-amz-date", f"{when:%Y%m%dT%H%M%SZ}"), ("x-amz-content-sha256", payload)]
        if body or method in ("PUT", "POST"):
            defaults.append(("Content-Length", str(len(body))))
        named = {name.lower() for name, _ in given}
        all_headers = [(n, v) for n, v in defaults if n.lower() not in named]
        all_headers += [(n, v) for n, v in given if v is not None]
        signature = ""
        if not anonymous and "authorization" not in named:
            left_out = {"content-length", "expect", "connection", "transfer-encoding"} | set(unsigned)
            signed = ";".join(sorted({n.lower() for n, _ in all_headers} - left_out))
            signature = signer.sign(method, path, raw_query, all_headers, payload, signed, when)
            credential = f"{signer.access_key}/{signer.scope(when)}"
            all_headers.append(
                (
                    "Authorization",
                    f"{sigv4.ALGORITHM} Credential={credential}, "
                    f"SignedHeaders={signed}, Signature={signature}",
                )
            )
        target = f"{path}?{raw_query}" if raw_query else path
        return Request(method, head_bytes(method, target, all_headers, version), body, signature)

    def request(
        self, method: str, path: str = "/", *, connection: Connection | None = None, **options
    ) -> Response:
        """Sends a request (see `prepare`) and reads the answer."""
        return self.send(self.prepare(method, path, **options), connection)

    def send(self, request: Request, connection: Connection | None = None) -> Response:
        if connection:
            connection.send(request.bytes)
            return connection.response(request.method)
        with self.connect() as own:
            own.send_as_far_as_possible(request.bytes)
            return own.response(request.method)

    def get(self, path: str = "/", **options) -> Response:
        return self.request("GET", path, **options)

    def head(self, path: str = "/", **options) -> Response:
        return self.request("HEAD", path, **options)

    def put(self, path: str = "/", body: bytes = b"", **options) -> Response:
        return self.request("PUT", path, body=body, **options)

    def post(self, path: str = "/", body: bytes = b"", **options) -> Response:
        return self.request("POST", path, body=body, **options)

    def delete(self, path: str = "/", **options) -> Response:
        return self.request("DELETE", path, **options)

    def fetch(
        self, target: str, method: str = "GET", body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        """Uses a presigned URL's path and query as it is."""
        pairs = [("Host", self.host), *pairs_of(headers)]
        if body or method in ("PUT", "POST"):
            pairs.append(("Content-Length", str(len(body))))
        return self.send(Request(method, head_bytes(method, target, pairs), body))


def poll(check, seconds: float = 10.0, interval: float = 0.02):
    """The first true value of `check()`; fails if there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        if value := check():
            return value
        assert time.monotonic() < deadline, f"{check} did not become true in {seconds} s"
        time.sleep(interval)
