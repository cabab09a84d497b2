"""Large objects arrive as they are, whichever way they take: from the page cache, read first, through TLS, by a unix socket."""

import contextlib
import os
import random
import re
import socket
import time

import pytest

from support import expect
from support.data import MIB
from support.transports import client_over
from support.wire import Closed, RawClient, poll

KIB = 1 << 10
# About what is small, what is sent at a time, and what is held back.
SIZES = [
    size + by
    for size in (64 * KIB, 128 * KIB, 256 * KIB, MIB, MIB + 64 * KIB, MIB + 256 * KIB, 5 * MIB)
    for by in (-1, 0, 1)
]


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


# The last is read first: nothing goes from the page cache to the socket.
WAYS = {
    "TCP": ("TCP", "--access-pattern", "streaming"),
    "TLS": ("TLS",),
    "unix socket": ("unix socket",),
    "read first": ("TCP", "--sendfile", "off", "--access-pattern", "random"),
}


@pytest.fixture(params=WAYS)
def raw(request, make_server, tmp_path) -> RawClient:
    transport, *options = WAYS[request.param]
    raw = client_over(transport, make_server, tmp_path, *options)
    expect.ok(raw.put("/bucket"))
    return raw


def test_sizes(raw):
    with raw.connect() as connection:
        for size in SIZES:
            data = content(size)
            expect.ok(raw.put(f"/bucket/{size}", data, connection=connection))
            for _ in range(2):
                assert expect.ok(raw.get(f"/bucket/{size}", connection=connection)).body == data


def test_ranges(raw):
    data = content(8 * MIB)
    expect.ok(raw.put("/bucket/key", data))
    chosen = random.Random(1)
    with raw.connect() as connection:
        for _ in range(60):
            first = chosen.randrange(len(data))
            last = min(first + chosen.choice([0, 70_000, 300_000, MIB, 3 * MIB]), len(data) - 1)
            got = raw.get("/bucket/key", headers={"range": f"bytes={first}-{last}"}, connection=connection)
            assert got.status == 206 and got.body == data[first : last + 1], (first, last)


def test_several_at_once_on_one_connection(raw):
    sizes = [3 * MIB, 10, 0, MIB, 700_000]
    for size in sizes:
        expect.ok(raw.put(f"/bucket/{size}", content(size)))
    wanted = sizes * 3
    requests = b"".join(raw.prepare("GET", f"/bucket/{size}").bytes for size in wanted)
    with raw.connect() as connection:
        connection.send(requests)
        for size in wanted:
            assert expect.ok(connection.response()).body == content(size)


def test_a_slow_reader(raw):
    """The socket is full most of the time."""
    data = content(6 * MIB)
    expect.ok(raw.put("/bucket/key", data))
    with raw.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)
        connection.send(raw.prepare("GET", "/bucket/key").bytes)
        assert connection.head().status == 200
        got = bytearray()
        while len(got) < len(data):
            got += connection.read(min(100_003, len(data) - len(got)))
            time.sleep(0.005)
        assert got == data


class TestFiles:
    """What may happen to the file, or the client, in the middle."""

    SIZE = 64 * MIB

    @pytest.fixture(params=[[], ["--sendfile", "off"]], ids=["sendfile", "read first"])
    def server(self, request, make_server):
        server = make_server(*request.param)
        expect.ok(server.raw.put("/bucket"))
        expect.ok(server.raw.put("/bucket/key", content(self.SIZE)))
        return server

    def begin(self, connection, raw) -> bytes:
        connection.send(raw.prepare("GET", "/bucket/key").bytes)
        assert connection.head().status == 200
        return connection.read(MIB)

    def test_it_becomes_shorter(self, server):
        with server.raw.connect() as connection:
            self.begin(connection, server.raw)
            os.truncate(server.path("bucket", "key"), 2 * MIB)
            with pytest.raises(Closed):
                connection.read(self.SIZE - MIB)
        poll(lambda: "a response was cut off" in server.log)
        (line,) = (line for line in server.log.splitlines() if "a response was cut off" in line)
        assert "WARN" in line and re.search(r"id=.{0,9}[0-9A-F]{16}", line), line

    def test_it_becomes_longer(self, server):
        with server.raw.connect() as connection:
            self.begin(connection, server.raw)
            with open(server.path("bucket", "key"), "ab") as file:
                file.write(b"more")
            with pytest.raises(Closed):
                connection.read(self.SIZE - MIB)

    def test_nothing_follows_what_was_broken_off(self, server):
        """Least of all the other file, for which the client has asked already."""
        expect.ok(server.raw.put("/bucket/other", content(MIB)))
        with server.raw.connect() as connection:
            first = self.begin(connection, server.raw)
            connection.send(server.raw.prepare("GET", "/bucket/other").bytes)
            with open(server.path("bucket", "key"), "ab") as file:
                file.write(b"more")
            rest = first
            while data := connection.read_some():
                rest += data
        assert len(rest) < self.SIZE and content(self.SIZE).startswith(rest)

    def test_it_is_deleted(self, server):
        with server.raw.connect() as connection:
            first = self.begin(connection, server.raw)
            expect.ok(server.raw.delete("/bucket/key"), 204)
            assert first + connection.read(self.SIZE - MIB) == content(self.SIZE)

    def test_the_client_goes(self, server):
        """Files that were being sent are closed."""

        def is_open() -> bool:
            key = str(server.path("bucket", "key"))
            for fd in os.listdir(f"/proc/{server.pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    if os.readlink(f"/proc/{server.pid}/fd/{fd}").startswith(key):
                        return True
            return False

        connections = [server.raw.connect() for _ in range(5)]
        for connection in connections:
            self.begin(connection, server.raw)
        assert is_open()
        for connection in connections:
            connection.socket.close()
        poll(lambda: not is_open(), 10)
        assert len(expect.ok(server.raw.get("/bucket/key")).body) == self.SIZE
