"""Bodies are streamed: however large they are, the server stays small."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import expect
from support.bucket import Bucket
from support.data import MIB, pattern
from support.sigv4 import STREAMING_UNSIGNED_TRAILER
from support.wire import Connection

GIB = 1 << 30
RESIDENT_KIB_MAX = 64 << 10
TIMEOUT = 120.0
SIZES = [pytest.param(GIB, id="1 GiB"), pytest.param(5 * GIB, id="5 GiB", marks=pytest.mark.slow)]


def block(number: int) -> bytes:
    """The n-th MiB of a large object: every one is different."""
    return number.to_bytes(8, "big") + BLOCK


BLOCK = pattern(MIB - 8)


@pytest.fixture
def lone(make_server) -> Bucket:
    """A server of its own: its high-water mark is for life. Syncing is not what is measured."""
    return Bucket(make_server("--durability", "none"), "bucket").create()


def put(bucket: Bucket, size: int) -> str:
    """Stores an object of `size` bytes without ever holding it; returns its MD5."""
    request = bucket.raw.prepare(
        "PUT", bucket.path("big"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(size)}
    )
    md5 = hashlib.md5()
    with Connection(bucket.server.address, TIMEOUT) as connection:
        connection.send(request.head)
        for number in range(size // MIB):
            piece = block(number)
            md5.update(piece)
            connection.send(piece)
        assert expect.ok(connection.response()).etag == f'"{md5.hexdigest()}"'
    return md5.hexdigest()


def get(bucket: Bucket, size: int) -> None:
    """Reads the object and compares each MiB."""
    with Connection(bucket.server.address, TIMEOUT) as connection:
        connection.send(bucket.raw.prepare("GET", bucket.path("big")).bytes)
        head = connection.head()
        assert (head.status, head.headers["content-length"]) == (200, str(size))
        for number in range(size // MIB):
            assert connection.read(MIB) == block(number), f"MiB {number}"


@pytest.mark.parametrize("size", SIZES)
def test_put_and_get(lone, size):
    put(lone, size)
    assert lone.server.status_kib("VmHWM") < RESIDENT_KIB_MAX
    assert lone.file("big").stat().st_size == size
    get(lone, size)
    assert lone.server.status_kib("VmHWM") < RESIDENT_KIB_MAX


def test_a_large_part_and_a_copy(lone):
    put(lone, GIB // 4)
    upload_id = lone.create_upload("key")
    copied = lone.raw.with_(timeout=TIMEOUT).put(
        lone.path("key"),
        query={"partNumber": "1", "uploadId": upload_id},
        headers={"x-amz-copy-source": "bucket/big", "x-amz-copy-source-range": f"bytes=1-{GIB // 4 - 1}"},
    )
    etag = expect.ok(copied).xml["ETag"]
    expect.ok(lone.complete("key", upload_id, [(1, etag)]))
    assert lone.head("key").headers["content-length"] == str(GIB // 4 - 1)
    assert lone.server.status_kib("VmHWM") < RESIDENT_KIB_MAX


def test_many_uploads_that_wait(lone):
    """Each costs its buffers (limits.rs), whatever it has sent."""
    count = 64
    expect.ok(lone.raw.head(lone.path()))
    before = lone.server.status_kib("VmRSS")
    connections = [lone.raw.connect() for _ in range(count)]
    try:

        def start(number: int) -> None:
            request = lone.raw.prepare(
                "PUT",
                lone.path(f"k{number}"),
                payload="UNSIGNED-PAYLOAD",
                headers={"content-length": str(8 * MIB)},
            )
            connections[number].send(request.head + pattern(8 * MIB - 1))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(start, range(count)))
        per_connection = (lone.server.status_kib("VmRSS") - before) / count
        assert per_connection < 768, f"{per_connection:.0f} KiB each"
        for connection in connections:
            connection.send(b"!")
            expect.ok(connection.response())
    finally:
        for connection in connections:
            connection.close()
    assert len(lone.keys()) == count


def test_very_many_uploads_that_wait(lone):
    """What all hold together is bounded: the more there are, the less each."""
    count = 350
    data, length = pattern(MIB - 1), {"content-length": str(MIB)}
    connections = [lone.raw.connect() for _ in range(count)]
    try:

        def start(number: int) -> None:
            request = lone.raw.prepare(
                "PUT", lone.path(f"k{number}"), payload="UNSIGNED-PAYLOAD", headers=length
            )
            connections[number].send(request.head + data)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(start, range(count)))
        # What is on its way is read meanwhile.
        for number in range(20):
            lone.put(f"other-{number}", data)
        for connection in connections:
            connection.send(b"!")
        for connection in connections:
            assert expect.ok(connection.response()).etag == f'"{hashlib.md5(data + b"!").hexdigest()}"'
        per_connection = lone.server.status_kib("VmHWM") / count
        assert per_connection < 400, f"{per_connection:.0f} KiB each"
    finally:
        for connection in connections:
            connection.close()


def test_many_downloads_that_wait(lone):
    count = 64
    lone.put("key", pattern(32 * MIB))
    before = lone.server.status_kib("VmRSS")
    connections = [lone.raw.connect() for _ in range(count)]
    try:
        for connection in connections:
            connection.send(lone.raw.prepare("GET", lone.path("key")).bytes)
        for connection in connections:
            assert connection.head().status == 200
        per_connection = (lone.server.status_kib("VmRSS") - before) / count
        assert per_connection < 1024, f"{per_connection:.0f} KiB each"
    finally:
        for connection in connections:
            connection.close()


def test_framing_is_not_held(lone):
    """What a piece of payload came with may be far more than the piece: chunks of one byte, with headers that say nothing."""
    count, rounds, piece = 150, 12, pattern(4200)
    filler = (b"1;" + b"e" * 230 + b"\r\nx\r\n") * 132
    unit = b"%x\r\n" % len(piece) + piece + b"\r\n" + filler
    headers = {
        "content-encoding": "aws-chunked",
        "content-length": str(10 * MIB),
        "x-amz-decoded-content-length": str(rounds * (len(piece) + 132) + 1),
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    connections = [lone.raw.connect() for _ in range(count)]
    try:
        for number, connection in enumerate(connections):
            path = lone.path(f"k{number}")
            connection.send(
                lone.raw.prepare("PUT", path, payload=STREAMING_UNSIGNED_TRAILER, headers=headers).head
            )
        before = lone.server.status_kib("VmRSS")
        for _ in range(rounds):
            for connection in connections:
                connection.send(unit)
            time.sleep(0.1)
        assert (lone.server.status_kib("VmRSS") - before) / count < 200
    finally:
        for connection in connections:
            connection.close()


# So many that a kilobyte left by each shows.
REQUESTS = 3000
GROWTH_KIB_MAX = REQUESTS
SMALL, LARGE = pattern(40 << 10), pattern(300 << 10)


@pytest.mark.parametrize(
    ("method", "key", "query", "body", "status"),
    [
        pytest.param("PUT", "new", {}, SMALL, 200, id="PUT"),
        pytest.param("GET", "large", {}, b"", 200, id="GET"),
        pytest.param("HEAD", "large", {}, b"", 200, id="HEAD"),
        pytest.param("GET", "", {"list-type": "2"}, b"", 200, id="LIST"),
        pytest.param("DELETE", "none", {}, b"", 204, id="DELETE"),
        pytest.param("GET", "none", {}, b"", 404, id="refused"),
    ],
)
def test_requests_leave_nothing(lone, method, key, query, body, status):
    """What each leaves behind would add up for as long as a server runs."""
    expect.ok(lone.put("large", LARGE))
    path = lone.path(key) if key else lone.path()
    request = lone.raw.prepare(method, path, query=query, body=body)
    with Connection(lone.server.address, TIMEOUT) as connection:

        def ask(times: int) -> None:
            for _ in range(times):
                connection.send(request.bytes)
                assert connection.response(method).status == status

        ask(REQUESTS // 3)
        before = lone.server.status_kib("RssAnon")
        ask(REQUESTS)
        assert lone.server.status_kib("RssAnon") - before < GROWTH_KIB_MAX
