"""Connections: kept alive, pipelined, refused, drained, over TCP and unix sockets."""

import fcntl
import os
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from support import codes, expect, tables
from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import StartFailed
from support.transports import make_certificate
from support.wire import Closed, Connection, poll


def opened_by(pid: int) -> list[str]:
    """What a process has open."""
    paths = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            paths.append(os.readlink(entry))
    return paths


@pytest.fixture
def thing(bucket):
    bucket.put("key", b"data")
    return bucket


class TestKeepAlive:
    def test_many_requests(self, thing):
        with thing.raw.connect() as connection:
            for number in range(50):
                expect.ok(thing.raw.put(thing.path(f"k{number}"), b"x" * number, connection=connection))
                got = thing.raw.get(thing.path(f"k{number}"), connection=connection)
                assert expect.ok(got).body == b"x" * number
                expect.error(thing.raw.get(thing.path("none"), connection=connection), "NoSuchKey")

    @pytest.mark.parametrize(
        "body",
        [
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n",
            b"HTTP/1.0 500 oops",
            b"HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * (256 << 10),
        ],
    )
    def test_objects_that_look_like_answers(self, bucket, body):
        """Saved responses are data like any other, whole, in ranges, from disk and from memory."""
        with bucket.raw.connect() as connection:
            expect.ok(bucket.raw.put(bucket.path("warc"), b"--" + body, connection=connection))
            expect.ok(bucket.raw.put(bucket.path("saved"), body, connection=connection))
            for _ in range(3):
                assert expect.ok(bucket.raw.get(bucket.path("saved"), connection=connection)).body == body
                got = bucket.raw.get(
                    bucket.path("warc"), connection=connection, headers={"range": "bytes=2-"}
                )
                assert (got.status, got.body) == (206, body)
                time.sleep(0.1)

    def test_pipelined(self, thing):
        """Several requests at once are answered in their order."""
        raw = thing.raw
        requests = [
            raw.prepare("PUT", thing.path("new"), body=b"1"),
            raw.prepare("GET", thing.path("new")),
            raw.prepare("HEAD", thing.path("none")),
            raw.prepare("PUT", thing.path("new"), body=b"22"),
            raw.prepare("GET", thing.path("new")),
            raw.prepare("DELETE", thing.path("new")),
            raw.prepare("GET", thing.path("new")),
        ]
        with raw.connect() as connection:
            connection.send(b"".join(request.bytes for request in requests))
            answers = [connection.response(request.method) for request in requests]
        assert [answer.status for answer in answers] == [200, 200, 404, 200, 200, 204, 404]
        assert (answers[1].body, answers[4].body) == (b"1", b"22")

    def test_close_when_asked(self, thing):
        with thing.raw.connect() as connection:
            got = thing.raw.get(thing.path("key"), headers={"connection": "close"}, connection=connection)
            assert got.body == b"data"
            assert connection.is_closed(5)

    def test_http_1_0(self, thing):
        with thing.raw.connect() as connection:
            connection.send(thing.raw.prepare("GET", thing.path("key"), version="HTTP/1.0").bytes)
            response = connection.response()
            assert expect.ok(response).body == b"data"
            assert "transfer-encoding" not in response.headers
            assert connection.is_closed(5)

    def test_http_1_0_kept_alive(self, thing):
        with thing.raw.connect() as connection:
            for _ in range(2):
                request = thing.raw.prepare(
                    "GET", thing.path("key"), version="HTTP/1.0", headers={"connection": "keep-alive"}
                )
                connection.send(request.bytes)
                assert connection.response().body == b"data"

    def test_half_closed(self, thing):
        """A client may stop sending after its request and still read the answer."""
        with thing.raw.connect() as connection:
            connection.send(thing.raw.prepare("GET", thing.path("key")).bytes)
            connection.socket.shutdown(1)
            assert expect.ok(connection.response()).body == b"data"


class TestContinue:
    """`100 Continue` is sent when the body is wanted, and not before the request was allowed."""

    def head(self, bucket, path: str | None = None, **options):
        headers = {"expect": "100-continue", "content-length": "4"}
        return bucket.raw.prepare(
            "PUT", path or bucket.path("new"), headers=headers, payload="UNSIGNED-PAYLOAD", **options
        )

    def test_wanted(self, bucket):
        with bucket.raw.connect() as connection:
            connection.send(self.head(bucket).head)
            assert connection.head().status == 100
            assert connection.is_silent(0.2)
            connection.send(b"data")
            expect.ok(connection.response())
            expect.ok(bucket.raw.head(bucket.path("new"), connection=connection))
        assert bucket.read("new") == b"data"

    @pytest.mark.parametrize("kind", ["secret", "key", "anonymous", "route", "bucket", "header"])
    def test_not_wanted(self, bucket, kind):
        signer = bucket.raw.signer
        request, code = {
            "secret": lambda: (
                self.head(bucket, signer=signer.with_(secret_key="x")),
                "SignatureDoesNotMatch",
            ),
            "key": lambda: (self.head(bucket, signer=signer.with_(access_key="x")), "InvalidAccessKeyId"),
            "anonymous": lambda: (self.head(bucket, anonymous=True), "AccessDenied"),
            "route": lambda: (self.head(bucket, query={"acl": ""}), "NotImplemented"),
            "bucket": lambda: (self.head(bucket, "/no-such-bucket/key"), "NoSuchBucket"),
            "header": lambda: (
                bucket.raw.prepare(
                    "PUT",
                    bucket.path("new"),
                    payload="UNSIGNED-PAYLOAD",
                    headers={
                        "expect": "100-continue",
                        "content-length": "4",
                        "x-amz-server-side-encryption": "AES256",
                    },
                ),
                "NotImplemented",
            ),
        }[kind]()
        with bucket.raw.connect() as connection:
            connection.send(request.head)
            response = connection.response()
            assert response.informational == [], "the body was asked for"
            assert response.code == code, response
        assert bucket.is_untouched()

    def test_failed_conditions_are_told_before_the_body(self, thing):
        request = thing.raw.prepare(
            "PUT",
            thing.path("key"),
            payload="UNSIGNED-PAYLOAD",
            headers={"expect": "100-continue", "content-length": "4", "if-none-match": "*"},
        )
        with thing.raw.connect() as connection:
            connection.send(request.head)
            response = connection.response()
            expect.error(response, "PreconditionFailed")
            assert response.informational == []

    @pytest.mark.parametrize("kind", ["empty", "error"])
    def test_an_answer_without_it_ends_the_connection(self, bucket, kind):
        """boto3 would take the status line of this answer for that of the connection's next one, and hang."""
        signer = bucket.raw.signer if kind == "empty" else bucket.raw.signer.with_(secret_key="wrong")
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("new"),
            signer=signer,
            payload="UNSIGNED-PAYLOAD",
            headers={"expect": "100-continue", "content-length": "0" if kind == "empty" else "4"},
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head)
            response = connection.response()
            assert response.status == (200 if kind == "empty" else 403)
            if response.informational != [100]:
                assert response.headers["connection"] == "close"
                assert connection.is_closed(10)

    def test_a_client_that_does_not_wait(self, bucket):
        with bucket.raw.connect() as connection:
            connection.send(self.head(bucket).head + b"data")
            expect.ok(connection.response())
        assert bucket.read("new") == b"data"


class TestCaps:
    def slow_put(self, bucket: Bucket, connection: Connection) -> None:
        """A request in progress: its body does not come."""
        connection.send(
            bucket.raw.prepare(
                "PUT",
                bucket.path("slow"),
                payload="UNSIGNED-PAYLOAD",
                headers={"content-length": "10", "expect": "100-continue"},
            ).head
        )
        assert connection.head().status == 100

    @staticmethod
    def admitted(bucket: Bucket) -> Connection | None:
        """A connection with a place. Those of closed connections become free a little later."""
        connection = bucket.raw.connect()
        if bucket.raw.head(bucket.path(), connection=connection).status == 200:
            return connection
        connection.close()
        return None

    def test_requests(self, make_server):
        bucket = Bucket(make_server("--max-requests", "2"), "bucket").create()
        with bucket.raw.connect() as one, bucket.raw.connect() as two, bucket.raw.connect() as three:
            self.slow_put(bucket, one)
            self.slow_put(bucket, two)
            for _ in range(3):
                response = bucket.raw.get(bucket.path("key"), connection=three)
                expect.error(response, "SlowDown")
            one.send(b"0123456789")
            expect.ok(one.response())
            expect.error(bucket.raw.get(bucket.path("key"), connection=three), "NoSuchKey")

    def test_a_download_counts_until_its_end(self, make_server):
        bucket = Bucket(make_server("--max-requests", "1"), "bucket").create()
        bucket.put("big", pattern(32 * MIB))
        with bucket.raw.connect() as reader:
            reader.send(bucket.raw.prepare("GET", bucket.path("big")).bytes)
            assert reader.head().status == 200
            expect.error(bucket.get("key"), "SlowDown")
            reader.read(32 * MIB)
            poll(lambda: bucket.get("key").code == "NoSuchKey")

    def test_connections(self, make_server):
        bucket = Bucket(make_server("--max-connections", "2"), "bucket").create()

        with poll(lambda: self.admitted(bucket)) as one, poll(lambda: self.admitted(bucket)):
            with bucket.raw.connect() as three:
                response = three.response()
                assert (response.status, response.code) == (503, "SlowDown"), response
                assert response.xml["Message"] == codes.EXPECTED["SlowDown"][1]
                assert three.is_closed(5)
            one.close()
            poll(lambda: bucket.raw.head(bucket.path()).status == 200)

    @pytest.fixture
    def full(self, make_server) -> Iterator[Bucket]:
        """A bucket of a server that has as many connections as it may have."""
        bucket = Bucket(make_server("--max-connections", "1", "--drain-timeout", "1"), "bucket").create()
        with poll(lambda: self.admitted(bucket)):
            yield bucket

    def test_a_refused_client_may_send_its_request(self, full):
        """It gets its answer, not a reset while it sends."""
        request = full.raw.prepare("PUT", full.path("key"), body=pattern(3 * MIB))
        with full.raw.connect() as connection:
            connection.send(request.bytes)
            expect.error(connection.response(), "SlowDown")
            assert connection.is_closed(5)
        assert full.files() == []

    def test_refused_connections_hold_few_descriptors(self, full):
        """Those that neither send nor close stay for a while, and only so many of them."""

        def opened() -> int:
            return len(opened_by(full.server.pid))

        at_rest, lingering = opened(), tables.limit("REFUSED_LINGERING_MAX")
        with ExitStack() as stack:
            for _ in range(lingering + 40):
                connection = stack.enter_context(full.raw.connect())
                expect.error(connection.response(), "SlowDown")
            poll(lambda: opened() <= at_rest + lingering, seconds=2)
            poll(lambda: opened() <= at_rest, seconds=20)

    def test_refused_connections_do_not_hold_up_a_drain(self, full):
        with full.raw.connect() as connection:
            expect.error(connection.response(), "SlowDown")
            full.server.signal(signal.SIGTERM)
            assert full.server.wait() == 0
        assert "were cut off" not in full.server.log

    def test_a_thousand_idle_connections(self, server, bucket):
        """They cost little, and keep nobody out."""
        before = server.status_kib("VmRSS")
        connections = [server.connect() for _ in range(1000)]
        try:
            expect.ok(bucket.raw.head(bucket.path()))
            assert server.status_kib("VmRSS") - before < 48 << 10
        finally:
            for connection in connections:
                connection.close()


class TestDrain:
    def test_a_download_in_progress_is_finished(self, make_server):
        bucket = Bucket(make_server(), "bucket").create()
        data = pattern(48 * MIB)
        bucket.put("big", data)
        with bucket.raw.connect() as reader, bucket.raw.connect() as idle:
            expect.ok(bucket.raw.head(bucket.path("big"), connection=idle))
            reader.send(bucket.raw.prepare("GET", bucket.path("big")).bytes)
            assert reader.head().status == 200
            bucket.server.signal(signal.SIGTERM)
            assert idle.is_closed(5), "idle connections are closed at once"
            poll(lambda: self.refuses_connections(bucket.server))
            assert bucket.server.process.poll() is None
            assert reader.read(len(data)) == data
        assert bucket.server.wait() == 0

    @staticmethod
    def begin_upload(bucket: Bucket, writer: Connection) -> None:
        """Of 8 bytes, whose head has been read."""
        headers = {"content-length": "8", "expect": "100-continue"}
        put = bucket.raw.prepare("PUT", bucket.path("key"), payload="UNSIGNED-PAYLOAD", headers=headers)
        writer.send(put.head)
        assert writer.head().status == 100

    def test_an_upload_in_progress_is_finished(self, make_server):
        bucket = Bucket(make_server(), "bucket").create()
        with bucket.raw.connect() as writer:
            self.begin_upload(bucket, writer)
            bucket.server.signal(signal.SIGTERM)
            poll(lambda: self.refuses_connections(bucket.server))
            writer.send(b"complete")
            expect.ok(writer.response())
            assert writer.is_closed(5)
        assert bucket.server.wait() == 0
        assert bucket.file("key").read_bytes() == b"complete"

    def test_but_not_for_ever(self, make_server):
        bucket = Bucket(make_server("--drain-timeout", "1"), "bucket").create()
        with bucket.raw.connect() as writer:
            self.begin_upload(bucket, writer)
            bucket.server.signal(signal.SIGTERM)
            bucket.server.wait(10)
        assert not bucket.file("key").exists()

    def test_told_twice(self, make_server):
        bucket = Bucket(make_server(), "bucket").create()
        with bucket.raw.connect() as writer:
            request = bucket.raw.prepare(
                "PUT",
                bucket.path("key"),
                payload="UNSIGNED-PAYLOAD",
                headers={"content-length": "8", "expect": "100-continue"},
            )
            writer.send(request.head)
            assert writer.head().status == 100
            bucket.server.signal(signal.SIGTERM)
            poll(lambda: self.refuses_connections(bucket.server))
            bucket.server.signal(signal.SIGTERM)
            bucket.server.wait(10)
        assert not bucket.file("key").exists()

    @contextmanager
    def copy_without_a_client(self, bucket: Bucket) -> Iterator[None]:
        """Meanwhile a copy to `key` goes on without its connection: the key's lock is taken. That the client is gone
        is noticed when the copy's answer begins, after ten seconds."""
        bucket.put("source", b"new")
        for _ in range(2):
            bucket.put("key", b"old")
        locks = bucket.tree / ".slipway" / "locks"

        def has_open(what: str) -> int:
            return sum(what in path for path in opened_by(bucket.server.pid))

        sockets = has_open("socket:")
        with ExitStack() as stack:
            for path in locks.iterdir():
                fcntl.flock(stack.enter_context(open(path)), fcntl.LOCK_EX)
            connection = stack.enter_context(bucket.raw.connect())
            headers = {"x-amz-copy-source": bucket.path("source")}
            connection.send(bucket.raw.prepare("PUT", bucket.path("key"), headers=headers).bytes)
            poll(lambda: has_open(str(locks)))
            connection.reset()
            poll(lambda: has_open("socket:") <= sockets, seconds=60)
            assert has_open(str(locks))
            yield

    def test_a_copy_without_a_client_is_finished(self, make_server):
        bucket = Bucket(make_server(), "bucket").create()
        with self.copy_without_a_client(bucket):
            bucket.server.signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                bucket.server.wait(3)
        assert bucket.server.wait() == 0
        assert bucket.file("key").read_bytes() == b"new"
        assert "were cut off" not in bucket.server.log

    @pytest.mark.slow
    def test_nor_does_that_take_for_ever(self, make_server):
        bucket = Bucket(make_server("--drain-timeout", "1"), "bucket").create()
        with self.copy_without_a_client(bucket):
            bucket.server.signal(signal.SIGTERM)
            bucket.server.wait(10)
        assert "were cut off" in bucket.server.log
        assert bucket.file("key").read_bytes() == b"old"

    def test_half_a_head_holds_nobody_up(self, make_server):
        """Whoever sends it need not be anyone that the server knows."""
        server = make_server()
        with server.connect() as fresh, server.connect() as used:
            used.send(b"GET /none HTTP/1.1\r\nhost: a\r\n\r\n")
            expect.error(used.response(), "NoSuchBucket")
            for stranger in (fresh, used):
                stranger.send(b"PUT /bucket/key HTTP/1.1\r\nhost:")
            time.sleep(0.2)
            server.signal(signal.SIGTERM)
            assert server.wait(3) == 0
        assert "were cut off" not in server.log

    def test_a_head_that_is_sent_soon_is_answered(self, make_server):
        bucket = Bucket(make_server(), "bucket").create()
        bucket.put("key", b"data")
        request = bucket.raw.prepare("GET", bucket.path("key"))
        with bucket.raw.connect() as client:
            client.send(request.bytes[:30])
            time.sleep(0.2)
            bucket.server.signal(signal.SIGTERM)
            time.sleep(0.2)
            client.send(request.bytes[30:])
            assert expect.ok(client.response()).body == b"data"
        assert bucket.server.wait(3) == 0

    def test_the_first_request_of_a_connection_is_waited_for(self, make_server):
        """No other server can take it: the connection was accepted. One that never comes holds nobody up."""
        first = Bucket(make_server(), "bucket").create()
        first.put("key", b"data")
        first.server.stop()
        # One that nobody has connected to yet.
        bucket = Bucket(make_server(tree=first.server.tree), "bucket")

        def sockets() -> int:
            return sum("socket:" in path for path in opened_by(bucket.server.pid))

        before = sockets()
        with bucket.raw.connect() as client, bucket.raw.connect() as silent:
            poll(lambda: sockets() == before + 2)
            bucket.server.signal(signal.SIGTERM)
            time.sleep(0.2)
            got = bucket.raw.get(bucket.path("key"), connection=client)
            assert expect.ok(got).body == b"data"
            assert silent.is_closed(3)
        assert bucket.server.wait(3) == 0

    @pytest.mark.parametrize("expects", [False, True])
    @pytest.mark.parametrize("seconds", [0.2, 3.0])
    def test_a_body_that_nobody_wants_holds_nobody_up(self, make_server, seconds, expects):
        """Neither while it is dropped, to keep the connection, nor after the answer, which arrives."""
        server = make_server()
        head = b"PUT /bucket/key HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n"
        with server.connect() as stranger:
            stranger.send(head + (b"expect: 100-continue\r\n\r\n" if expects else b"\r\n") + b"some")
            time.sleep(seconds)
            server.signal(signal.SIGTERM)
            assert server.wait(3.5) == 0
            expect.error(stranger.response(), "NoSuchBucket")
        assert "were cut off" not in server.log

    @pytest.mark.parametrize("reads", [False, True])
    @pytest.mark.parametrize("tls", [False, True])
    def test_refusals_that_nobody_reads_hold_nobody_up(self, make_server, tmp_path, tls, reads):
        """Whoever asks need not be anyone that the server knows, nor in a hurry."""
        certificate, key = make_certificate(tmp_path, "one", "one.test")
        server = make_server(*(["--tls-cert", str(certificate), "--tls-key", str(key)] if tls else []))
        context = ssl.create_default_context(cafile=certificate) if tls else None
        with server.raw.with_(tls=context, server_name="one.test").connect() as stranger:
            stranger.socket.settimeout(1)
            with suppress(TimeoutError):
                stranger.send(b"GET /bucket/kkk HTTP/1.1\r\nhost: a\r\n\r\n" * 400_000)
                pytest.fail("all was read and answered")
            server.signal(signal.SIGTERM)
            until = time.monotonic() + 3
            while reads and time.monotonic() < until:
                with suppress(OSError):
                    stranger.socket.recv(2048)
                time.sleep(0.25)
            assert server.wait(0.5 if reads else 3.5) == 0
        assert "were cut off" not in server.log

    def test_an_answer_that_is_no_refusal_is_waited_for(self, make_server):
        """Also among others that are."""
        bucket = Bucket(make_server(), "bucket").create()
        data = pattern(16 * MIB)
        bucket.put("big", data)
        refused = b"GET /bucket/kkk HTTP/1.1\r\nhost: a\r\n\r\n"
        with bucket.raw.connect() as reader:
            reader.send(refused + bucket.raw.prepare("GET", bucket.path("big")).bytes + refused)
            expect.error(reader.response(), "AccessDenied")
            bucket.server.signal(signal.SIGTERM)
            time.sleep(3)
            assert reader.response().body == data
        assert bucket.server.wait(5) == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_idle(self, make_server, number):
        server = make_server()
        server.signal(number)
        assert server.wait(5) == 0

    def refuses_connections(self, server) -> bool:
        try:
            server.connect().close()
        except (ConnectionRefusedError, ConnectionResetError):
            # Reset: it was in the queue when the listener was closed.
            return True
        return False


def test_several_listeners(make_server):
    server = make_server(listen=["127.0.0.1:0", "127.0.0.1:0", "[::1]:0"])
    assert len(set(server.endpoints)) == 3
    expect.ok(server.raw.put("/bucket"))
    for endpoint in server.endpoints:
        host, _, port = endpoint.removeprefix("http://").rpartition(":")
        raw = server.raw.with_(address=(host.strip("[]"), int(port)))
        expect.ok(raw.head("/bucket", headers={"host": "localhost"}))


def test_a_port_in_use(make_server):

    server = make_server()
    with pytest.raises(StartFailed, match=r"--listen 127\.\S+: cannot listen there"):
        make_server(listen=[f"127.0.0.1:{server.address[1]}"])


def test_many_clients_at_once(bucket):
    """64 connections, each with its own objects."""
    failures: list[object] = []

    def work(number: int) -> None:
        try:
            with bucket.raw.connect() as connection:
                for turn in range(5):
                    key, data = f"c{number}/k{turn}", f"{number} {turn}".encode() * 1000
                    expect.ok(bucket.raw.put(bucket.path(key), data, connection=connection))
                    assert bucket.raw.get(bucket.path(key), connection=connection).body == data
        except (AssertionError, OSError, Closed) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(bucket.keys()) == 320
