"""The clients of a run: processes that send requests, and the history that they write.

Each line of a history is a JSON object with

- `op`, `client`, `gateway`, `start` and `end`: nanoseconds of the machine's monotonic clock, before the first
  byte of the request and after the last byte of the answer. Without an answer, `end` is missing: the write may
  have taken effect at any later time, or never. Reads without an answer are left out;
- `put`, `complete`, `copy`, `delete`: `key`, the condition (`if_none_match`, `if_match`), `makes` (ETag, MD5,
  writer and size of the new version), the answer (`status`, `code`). A `copy` has its `source`, and the answered
  ETag in `sees`; its `makes` has only the writer if the copy replaces metadata, and is missing if it does not;
- `delete-many`: `keys`;
- `get`, `head`: `key`, `status`, `code`, `sees` (MD5 and size are those of the received bytes);
- `list`: one page: `prefix`, `delimiter`, `after` (the last key or prefix of the page before), `until` (the last
  one of this page; missing on the last page), `entries` (ETag and size of each hot key), `prefixes`;
- `wrong`: `what`, a sentence about an answer that is wrong in every state.
"""

import hashlib
import itertools
import json
import random
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.actors import Listing, read_page
from support.bucket import complete_document
from support.checksums import content_md5
from support.history import etag_of, etag_of_parts
from support.server import ACCESS_KEY, SECRET_KEY
from support.sigv4 import Signer
from support.wire import Closed, Connection, RawClient, Response, key_path
from support.xml import element

BUCKET = "bucket"
SIZES = [0, *[40] * 20, *[3000] * 15, *[100_000] * 10, *[300_000] * 3]
PART_BYTES_MIN = 5 << 20
# The share of uploads that have two parts.
TWO_PARTS = 0.03
PAGES_MAX = 4
# The share of writes whose client waits at most so long, and closes the connection then.
IMPATIENT = 0.03
PATIENCE_SECONDS = 0.005
# The weight of each operation.
OPERATIONS = {
    "put": 14,
    "create": 10,
    "replace": 14,
    "get": 16,
    "head": 10,
    "delete": 6,
    "delete_match": 4,
    "delete_many": 3,
    "copy": 9,
    "upload": 6,
    "list_keys": 12,
}


@dataclass(frozen=True)
class Plan:
    """What all clients of a run share."""

    seed: int
    addresses: list[tuple[str, int]]
    hot: list[str]
    # Keys that nobody changes, and their ETags.
    filling: dict[str, str]
    seconds: float
    timeout: float


def work(number: int, plan: Plan, history: Path, begin) -> None:
    """A client from start to end. `begin` is a barrier for all."""
    with open(history, "w") as lines:
        client = Client(number, plan, lambda line: print(json.dumps(line), file=lines))
        begin.wait(60)
        deadline = time.monotonic() + plan.seconds
        while time.monotonic() < deadline:
            client.act()
        client.close()


class Client:
    def __init__(self, number: int, plan: Plan, write: Callable[[dict], None]) -> None:
        self.number, self.plan, self.write = number, plan, write
        self.chance = random.Random(f"{plan.seed}/{number}")
        signer = Signer(ACCESS_KEY, SECRET_KEY)
        self.raw = [RawClient(address, signer, timeout=plan.timeout) for address in plan.addresses]
        self.connections: list[Connection | None] = [None] * len(plan.addresses)
        self.etags = {key: deque(maxlen=3) for key in plan.hot}
        self.written = 0

    def close(self) -> None:
        for gateway in range(len(self.connections)):
            self.drop(gateway)

    def drop(self, gateway: int) -> None:
        if connection := self.connections[gateway]:
            connection.close()
        self.connections[gateway] = None

    # Requests.

    def connect(self) -> tuple[int, Connection]:
        """A random gateway that accepts connections, and a connection to it."""
        while True:
            gateway = self.chance.randrange(len(self.raw))
            try:
                return gateway, self.connect_to(gateway)
            except OSError:
                time.sleep(0.005)

    def connect_to(self, gateway: int) -> Connection:
        connection = self.connections[gateway]
        if connection and connection.is_closed(0):
            self.drop(gateway)
        self.connections[gateway] = self.connections[gateway] or self.raw[gateway].connect()
        return self.connections[gateway]

    def send(self, line: dict, method: str, key: str | None, **options) -> Response | None:
        """The answer, if there is one. Adds client, gateway, times and status to the line."""
        gateway, connection = self.connect()
        request = self.raw[gateway].prepare(method, key_path(BUCKET, key), **options)
        line |= {"client": self.number, "gateway": gateway, "start": time.monotonic_ns()}
        try:
            connection.send(request.bytes)
            if method not in ("GET", "HEAD") and self.chance.random() < IMPATIENT:
                connection.socket.settimeout(self.chance.uniform(0, PATIENCE_SECONDS))
            response = connection.response(method)
            connection.socket.settimeout(self.plan.timeout)
        except (OSError, Closed, ValueError):
            # ValueError: a part of a head. BlockingIOError: no patience at all.
            self.drop(gateway)
            return None
        line |= {"end": time.monotonic_ns(), "status": response.status}
        if response.code:
            line["code"] = response.code
        if response.headers.get("connection") == "close":
            self.drop(gateway)
        return response

    def wrong(self, line: dict, what: str) -> None:
        self.write({"op": "wrong", "what": f"{what}: {json.dumps(line)}"})

    # Random choices.

    def act(self) -> None:
        names, weights = zip(*OPERATIONS.items(), strict=True)
        getattr(self, self.chance.choices(names, weights)[0])()

    def key(self) -> str:
        return self.chance.choice(self.plan.hot)

    def body(self) -> tuple[str, bytes]:
        """A new writer, and bytes that no other version has."""
        self.written += 1
        writer = f"{self.number}-{self.written}"
        return writer, body_of(f"{self.plan.seed}/{writer}", self.chance.choice(SIZES))

    def known_etag(self, key: str) -> str | None:
        """An ETag that the key had a moment ago, or earlier."""
        if self.chance.random() < 0.7:
            self.read(self.chance.choice(["GET", "HEAD"]), key)
            return self.etags[key][-1] if self.etags[key] else None
        return self.chance.choice(self.etags[key]) if self.etags[key] else None

    # Writes.

    def put(self, condition: dict | None = None, key: str | None = None) -> None:
        key = key or self.key()
        writer, body = self.body()
        line = {"op": "put", "key": key, **conditions(condition), "makes": makes(writer, body)}
        headers = {"x-amz-meta-writer": writer, **(condition or {})}
        response = self.send(line, "PUT", key, body=body, headers=headers)
        self.wrote(line, response)

    def wrote(
        self, line: dict, response: Response | None, etag: Callable = lambda response: response.etag
    ) -> None:
        self.write(line)
        if response and response.status == 200:
            if etag(response) != line["makes"]["etag"]:
                self.wrong(line, f"the answer has the ETag {etag(response)}")
            self.etags[line["key"]].append(line["makes"]["etag"])

    def create(self) -> None:
        self.put({"if-none-match": "*"})

    def replace(self) -> None:
        key = self.key()
        if etag := self.known_etag(key):
            self.put({"if-match": etag}, key)

    def upload(self) -> None:
        """A whole multipart upload, with a condition in half of the cases."""
        key = self.key()
        writer, body = self.body()
        parts = [body]
        if self.chance.random() < TWO_PARTS:
            parts = [body_of(f"{self.plan.seed}/{writer}/1", PART_BYTES_MIN), body]
        kind = self.chance.choice([None, None, "if-none-match", "if-match"])
        etag = self.known_etag(key) if kind == "if-match" else "*"
        condition = {kind: etag} if kind and etag else None
        line: dict = {"op": "create-upload", "key": key}
        response = self.send(line, "POST", key, query={"uploads": ""}, headers={"x-amz-meta-writer": writer})
        if not self.succeeded(line, response):
            return
        upload = response.xml["UploadId"]
        etags = []
        for number, part in enumerate(parts, 1):
            line = {"op": "part", "key": key, "upload": upload}
            query = {"partNumber": str(number), "uploadId": upload}
            response = self.send(line, "PUT", key, body=part, query=query)
            if not self.succeeded(line, response):
                return
            etags.append((number, response.etag))
        made = makes(writer, b"".join(parts)) | {"etag": etag_of_parts(parts)}
        line = {"op": "complete", "key": key, **conditions(condition), "makes": made}
        document = complete_document(etags)
        response = self.send(
            line, "POST", key, body=document, query={"uploadId": upload}, headers=condition or {}
        )
        if response and response.status == 200 and response.code:
            self.wrong(line, f"an error with status 200: {response.code}")
        self.wrote(line, response, lambda response: response.xml["ETag"])

    def succeeded(self, line: dict, response: Response | None) -> bool:
        """Whether a step of an upload was answered 200; any other answer is wrong."""
        if response and response.status != 200:
            self.wrong(line, "an upload that can be continued")
        return bool(response and response.status == 200)

    def copy(self) -> None:
        """Copies to another key: the order of the two steps of a copy to itself could not be checked."""
        source, key = self.chance.sample(self.plan.hot, 2)
        headers = {"x-amz-copy-source": key_path(BUCKET, source)}
        line = {"op": "copy", "key": key, "source": source}
        if self.chance.random() < 0.7:
            self.written += 1
            writer = f"{self.number}-{self.written}"
            headers |= {"x-amz-metadata-directive": "REPLACE", "x-amz-meta-writer": writer}
            line["makes"] = {"writer": writer}
        response = self.send(line, "PUT", key, headers=headers)
        if response and response.status == 200:
            etag = response.xml["ETag"]
            line["sees"] = {"etag": etag, "md5": etag.strip('"')}
            self.etags[key].append(etag)
        self.write(line)

    def delete(self, condition: dict | None = None, key: str | None = None) -> None:
        key = key or self.key()
        line = {"op": "delete", "key": key, **conditions(condition)}
        self.send(line, "DELETE", key, headers=condition or {})
        self.write(line)

    def delete_match(self) -> None:
        key = self.key()
        if etag := self.known_etag(key):
            self.delete({"if-match": etag}, key)

    def delete_many(self) -> None:
        keys = self.chance.sample(self.plan.hot, self.chance.randint(1, min(4, len(self.plan.hot))))
        document = element("Delete", *[element("Object", Key=key) for key in keys]).encode()
        line = {"op": "delete-many", "keys": keys}
        headers = {"content-md5": content_md5(document)}
        response = self.send(line, "POST", None, body=document, query={"delete": ""}, headers=headers)
        if response and response.status == 200:
            deleted = [entry["Key"] for entry in response.xml.all("Deleted")]
            if deleted != keys:
                self.wrong(line, f"deleted are {deleted}")
        self.write(line)

    # Reads.

    def get(self) -> None:
        self.read("GET", self.key())

    def head(self) -> None:
        self.read("HEAD", self.key())

    def read(self, method: str, key: str) -> None:
        line: dict = {"op": method.lower(), "key": key}
        response = self.send(line, method, key)
        if not response:
            return
        if response.status == 200:
            sees = {"etag": response.etag, "writer": response.headers.get("x-amz-meta-writer", "none")}
            sees["size"] = int(response.headers["content-length"])
            if method == "GET":
                sees["md5"] = hashlib.md5(response.body).hexdigest()
            line["sees"] = sees
            self.etags[key].append(response.etag)
        self.write(line)

    def list_keys(
        self, prefix: str | None = None, delimiter: str | None = None, size: int | None = None
    ) -> None:
        prefixes = ["", "", "k", "k/", "d/", "d/k", self.key()]
        prefix = self.chance.choice(prefixes) if prefix is None else prefix
        delimiter = self.chance.choice(["", "/", "/"]) if delimiter is None else delimiter
        size = size or self.chance.choice([2, 3, 1000, 1000])
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix, "max-keys": str(size)}
        query |= {"delimiter": delimiter} if delimiter else {}
        after = ""
        for _ in range(PAGES_MAX):
            line = {"op": "list", "prefix": prefix, "delimiter": delimiter, "after": after}
            response = self.send(line, "GET", None, query=query)
            if not response:
                return
            if response.status != 200:
                self.wrong(line, "a listing")
                return
            page = response.body.decode()
            shown = self.page(line, page)
            token = re.search("<NextContinuationToken>([^<]+)<", page)
            if not token:
                return
            after = shown[-1].decode()
            query["continuation-token"] = token[1]

    def page(self, line: dict, page: str) -> list[bytes]:
        """Writes what a page shows of hot keys, and checks the filling. Returns keys and prefixes in order."""
        listing = Listing(line["gateway"], line["prefix"], line["delimiter"])
        shown = read_page(page, listing)
        if "<IsTruncated>true<" in page:
            line["until"] = shown[-1].decode()
        expected, groups = filling_of(line, self.plan.filling)
        found = {key: etag for key, (etag, _) in listing.entries.items() if key in self.plan.filling}
        if found != expected or not groups <= set(listing.prefixes):
            odd = sorted(found.items() ^ expected.items()), sorted(groups - set(listing.prefixes))
            self.wrong(line, f"of the filling a listing shows other keys: {odd}")
        if any(one >= two for one, two in itertools.pairwise(shown)):
            self.wrong(line, f"a listing is not in order: {shown}")
        hot = {key: entry for key, entry in listing.entries.items() if key not in self.plan.filling}
        line["entries"] = {key: {"etag": etag, "size": size} for key, (etag, size) in hot.items()}
        line["prefixes"] = listing.prefixes
        for key, (etag, _) in hot.items():
            if key in self.etags:
                self.etags[key].append(etag)
        self.write(line)
        return shown

    def read_all(self) -> None:
        """Reads each key through each gateway, when no request is in progress any more."""
        gateways, connections = self.raw, self.connections
        for number in range(len(gateways)):
            self.raw, self.connections = [gateways[number]], [None]
            self.list_keys("", "", 1000)
            for key in self.plan.hot:
                self.read("GET", key)
                self.read("HEAD", key)
            self.close()
        self.raw, self.connections = gateways, connections


def body_of(name: str, size: int) -> bytes:
    return (hashlib.sha256(name.encode()).digest() * (size // 32 + 1))[:size]


def makes(writer: str, body: bytes) -> dict:
    etag = etag_of(body)
    return {"writer": writer, "etag": etag, "md5": etag.strip('"'), "size": len(body)}


def conditions(condition: dict | None) -> dict:
    """The fields of a line for the headers of a condition."""
    if not condition:
        return {}
    return {"if_match": condition["if-match"]} if "if-match" in condition else {"if_none_match": True}


def filling_of(line: dict, filling: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """The filling's keys that a page must show, and their common prefixes."""
    prefix, delimiter = line["prefix"], line["delimiter"]
    keys, groups = {}, set()
    for key, etag in filling.items():
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        place = key if cut < 0 else key[: cut + len(delimiter)]
        until = line.get("until")
        if not key.startswith(prefix) or place <= line["after"] or (until is not None and place > until):
            continue
        if cut < 0:
            keys[key] = etag
        else:
            groups.add(place)
    return keys, groups
