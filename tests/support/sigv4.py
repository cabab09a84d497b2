"""AWS signature version 4, written from its specification so that requests can also be signed wrongly."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote_plus

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAMING_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
STREAMING_UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()

Pairs = Sequence[tuple[str, str]]


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def uri_encode(text: str | bytes, safe: str = "") -> str:
    return quote(text, safe="-_.~" + safe)


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """A query string in which every parameter has a `=`, as SigV4 wants it."""
    return "&".join(f"{uri_encode(name)}={uri_encode(value)}" for name, value in pairs)


def canonical_query(raw_query: str) -> str:
    pairs = []
    for part in filter(None, raw_query.split("&")):
        name, _, value = part.partition("=")
        # Percent-encoded bytes need not be UTF-8.
        decode = lambda text: unquote_plus(text, encoding="latin-1").encode("latin-1")  # noqa: E731
        pairs.append((uri_encode(decode(name)), uri_encode(decode(value))))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


@dataclass(frozen=True)
class Signer:
    """Keys, scope and time of signatures."""

    access_key: str
    secret_key: str
    region: str = "us-east-1"
    service: str = "s3"
    shift: timedelta = timedelta()
    terminal: str = "aws4_request"
    at: datetime | None = None

    def now(self) -> datetime:
        return self.at or datetime.now(UTC) + self.shift

    def with_(self, **changes) -> "Signer":
        return replace(self, **changes)

    def scope(self, when: datetime) -> str:
        return f"{when:%Y%m%d}/{self.region}/{self.service}/{self.terminal}"

    def key(self, when: datetime) -> bytes:
        key = b"AWS4" + self.secret_key.encode()
        for part in (f"{when:%Y%m%d}", self.region, self.service, self.terminal):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key

    def sign(
        self,
        method: str,
        raw_path: str,
        raw_query: str,
        headers: Pairs,
        payload: str,
        signed: str,
        when: datetime,
    ) -> str:
        """The signature in hex. `headers` may repeat a name; `signed` names those covered, joined by `;`."""
        values: dict[str, list[str]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(" ".join(value.split()))
        canonical_headers = "".join(
            f"{name}:{','.join(values.get(name, []))}\n" for name in signed.split(";")
        )
        canonical = "\n".join(
            [method, raw_path, canonical_query(raw_query), canonical_headers, signed, payload]
        )
        to_sign = "\n".join(
            [ALGORITHM, f"{when:%Y%m%dT%H%M%SZ}", self.scope(when), sha256_hex(canonical.encode())]
        )
        return hmac.new(self.key(when), to_sign.encode(), hashlib.sha256).hexdigest()

    def presign(
        self,
        method: str,
        raw_path: str,
        host: str,
        *,
        query: Pairs = (),
        headers: Pairs = (),
        expires: int | str = 300,
        payload: str = UNSIGNED,
    ) -> str:
        """The path and query of a presigned URL."""
        when = self.now()
        headers = [("host", host), *headers]
        signed = ";".join(sorted({name.lower() for name, _ in headers}))
        raw_query = encode_query(
            [
                *query,
                ("X-Amz-Algorithm", ALGORITHM),
                ("X-Amz-Credential", f"{self.access_key}/{self.scope(when)}"),
                ("X-Amz-Date", f"{when:%Y%m%dT%H%M%SZ}"),
                ("X-Amz-Expires", str(expires)),
                ("X-Amz-SignedHeaders", signed),
            ]
        )
        signature = self.sign(method, raw_path, raw_query, headers, payload, signed, when)
        return f"{raw_path}?{raw_query}&X-Amz-Signature={signature}"


@dataclass
class ChunkSigner:
    """Signs the chunks of a body, each chained to the one before."""

    signer: Signer
    when: datetime
    previous: str
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.signer.key(self.when)

    def _sign(self, kind: str, *hashes: str) -> str:
        lines = [
            f"{ALGORITHM}-{kind}",
            f"{self.when:%Y%m%dT%H%M%SZ}",
            self.signer.scope(self.when),
            self.previous,
            *hashes,
        ]
        self.previous = hmac.new(self.key, "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        return self.previous

    def chunk(self, data: bytes) -> str:
        return self._sign("PAYLOAD", EMPTY_SHA256, sha256_hex(data))

    def trailer(self, lines: bytes) -> str:
        return self._sign("TRAILER", sha256_hex(lines))


def frame(
    data: bytes,
    size: int = 64 << 10,
    *,
    chunks: ChunkSigner | None = None,
    trailers: Pairs | None = None,
    spoil: str = "",
) -> bytes:
    """`data` in aws-chunked framing; signed if `chunks` is given, with trailers unless they are None.

    `spoil` names what is made wrong: `chunk` or `last-chunk` (its signature), `trailer` (the signature).
    """
    pieces = [data[at : at + size] for at in range(0, len(data), size)] + [b""]
    out = bytearray()
    for number, piece in enumerate(pieces):
        line = f"{len(piece):x}"
        if chunks:
            signature = chunks.chunk(piece)
            wrong = (spoil == "chunk" and number == 0) or (spoil == "last-chunk" and not piece)
            line += f";chunk-signature={wrong_hex(signature) if wrong else signature}"
        out += line.encode() + b"\r\n" + piece
        if piece:
            out += b"\r\n"
    if trailers is not None:
        out += "".join(f"{name}:{value}\r\n" for name, value in trailers).encode()
        if chunks:
            signature = chunks.trailer("".join(f"{name}:{value}\n" for name, value in trailers).encode())
            if spoil == "trailer":
                signature = wrong_hex(signature)
            out += f"x-amz-trailer-signature:{signature}\r\n".encode()
    return bytes(out + b"\r\n")


def wrong_hex(text: str) -> str:
    """Another hex string of the same length."""
    return ("0" if text[0] != "0" else "1") + text[1:]
