"""Connections that wait for their next request give up their buffers, and nothing else."""

import resource
import signal
import time

import pytest

from support import expect
from support.data import MIB, pattern
from support.transports import client_over
from support.wire import RawClient

# Long enough for a connection to be parked.
IDLE_SECONDS = 1.3


@pytest.fixture(params=["TCP", "TLS", "unix socket"])
def raw(request, make_server, tmp_path) -> RawClient:
    raw = client_over(request.param, make_server, tmp_path)
    expect.ok(raw.put("/bucket"))
    return raw


def test_requests_after_a_while(raw):
    """Small and large ones, bodies both ways, and several at once."""
    data = pattern(3 * MIB)
    with raw.connect() as connection:
        time.sleep(IDLE_SECONDS)
        for body in (b"small", data):
            expect.ok(raw.put("/bucket/key", body, connection=connection))
            time.sleep(IDLE_SECONDS)
            assert expect.ok(raw.get("/bucket/key", connection=connection)).body == body
            time.sleep(IDLE_SECONDS)
        connection.send(raw.prepare("HEAD", "/bucket/key").bytes * 3)
        for _ in range(3):
            expect.ok(connection.response("HEAD"))
        time.sleep(IDLE_SECONDS)
        expect.error(raw.get("/bucket/none", connection=connection), "NoSuchKey")


def test_a_head_in_pieces(raw):
    expect.ok(raw.put("/bucket/key", b"data"))
    request = raw.prepare("GET", "/bucket/key").bytes
    with raw.connect() as connection:
        for begin in (1, 20, len(request) - 1):
            connection.send(request[:begin])
            time.sleep(IDLE_SECONDS)
            connection.send(request[begin:])
            assert expect.ok(connection.response()).body == b"data"
            # The beginning of the next comes with the end of this one.
            connection.send(request + request[:begin])
            assert expect.ok(connection.response()).body == b"data"
            time.sleep(IDLE_SECONDS)
            connection.send(request[begin:])
            assert expect.ok(connection.response()).body == b"data"
            time.sleep(IDLE_SECONDS)


def test_nonsense_after_a_while(raw):
    with raw.connect() as connection:
        expect.ok(raw.head("/bucket", connection=connection))
        time.sleep(IDLE_SECONDS)
        connection.send(b"nonsense\r\n\r\n")
        assert connection.response().status == 400
        assert connection.is_closed(10)


@pytest.mark.parametrize("first", [True, False])
def test_the_idle_timeout_still_holds(make_server, first):
    server = make_server("--idle-timeout", "3", "--header-timeout", "2")
    with server.raw.connect() as connection:
        if first:
            assert server.raw.get("/", connection=connection).status == 200
        began = time.monotonic()
        assert connection.is_closed(10)
        assert 2.5 < time.monotonic() - began < 6


def test_a_slow_head_after_a_while(make_server):
    server = make_server("--header-timeout", "2")
    with server.raw.connect() as connection:
        assert server.raw.get("/", connection=connection).status == 200
        time.sleep(IDLE_SECONDS)
        began = time.monotonic()
        connection.send(b"GET / HTTP/1.1\r\n")
        assert connection.is_closed(10)
        assert 1.5 < time.monotonic() - began < 5


def test_they_do_not_keep_the_server(make_server):
    server = make_server()
    connections = [server.raw.connect() for _ in range(20)]
    for connection in connections[:10]:
        assert server.raw.get("/", connection=connection).status == 200
    time.sleep(IDLE_SECONDS)
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert time.monotonic() - began < 5
    for connection in connections:
        assert connection.is_closed(1)
        connection.close()


@pytest.fixture
def open_files():
    """Lets this process, and those that it starts, have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def let(number: int) -> None:
        if hard < number:
            pytest.skip("so many files may not be open")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))

    yield let
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_many_take_little_memory(make_server, open_files):
    number = 4000
    open_files(number + 500)
    server = make_server()
    expect.ok(server.raw.put("/bucket"))
    head = server.raw.prepare("HEAD", "/bucket").bytes
    before = server.status_kib("VmRSS")
    connections = []
    try:
        for _ in range(number):
            connections.append(server.raw.connect())
            connections[-1].send(head)
            expect.ok(connections[-1].response("HEAD"))
        # Those of the first thousand are kept; an unoptimised build's requests take more than those
        # of a release.
        assert server.status_kib("VmRSS") - before < number * 12
        for connection in connections[::100]:
            connection.send(head)
            expect.ok(connection.response("HEAD"))
    finally:
        for connection in connections:
            connection.close()


class TestManyConnections:
    """Beyond a thousand, connections are parked after every answer. Nothing that was read may get lost by that."""

    @pytest.fixture
    def server(self, make_server, open_files):
        open_files(2500)
        server = make_server("--durability", "none")
        expect.ok(server.raw.put("/bucket"))
        idle = [server.raw.connect() for _ in range(1100)]
        yield server
        for connection in idle:
            connection.close()

    @pytest.mark.parametrize("number", [20, 40, 60, 300])
    def test_pipelined(self, server, number):
        raw = server.raw
        for key in range(5):
            expect.ok(raw.put(f"/bucket/{key}", b"%d" % key))
            # Answered from memory, without leaving the task.
            for _ in range(3):
                expect.ok(raw.get(f"/bucket/{key}"))
                time.sleep(0.1)
        requests = [raw.prepare("GET", f"/bucket/{n * n % 5}").bytes for n in range(number)]
        with raw.connect() as connection:
            connection.send(b"".join(requests))
            for n in range(number):
                assert expect.ok(connection.response()).body == b"%d" % (n * n % 5), n

    def test_a_body_is_no_request(self, server):
        """Bodies that are requests, between requests, are only stored."""
        raw = server.raw
        expect.ok(raw.put("/bucket/key", b"data"))
        expect.ok(raw.put("/bucket/victim", b"data"))
        body = raw.prepare("DELETE", "/bucket/victim").bytes * 5
        for before in range(10, 34, 3):
            requests = [raw.prepare("GET", "/bucket/key") for _ in range(before)]
            requests.append(raw.prepare("PUT", "/bucket/saved", body=body))
            requests += [raw.prepare("GET", "/bucket/key") for _ in range(20)]
            with raw.connect() as connection:
                connection.send(b"".join(request.bytes for request in requests))
                for _ in requests:
                    expect.ok(connection.response())
            assert raw.get("/bucket/saved").body == body
            expect.ok(raw.get("/bucket/victim"))
