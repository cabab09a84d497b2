"""Request lines and headers that are too long, too many, malformed, or never end."""

import pytest

from support import expect, tables
from support.wire import Closed, poll

HEADER_MAX = tables.limit("HEADER_SECTION_BYTES_MAX")
LINES_MAX = tables.limit("HEADER_LINES_MAX")


class TestSize:
    def test_just_fits(self, bucket):
        bucket.put("key", b"data")
        got = bucket.get("key", headers={"x-padding": "p" * (HEADER_MAX - 1000)})
        assert expect.ok(got).body == b"data"

    @pytest.mark.parametrize(
        "extra", [{"x-padding": "p" * HEADER_MAX}, {f"x-padding-{n}": "p" * 100 for n in range(80)}]
    )
    def test_too_large(self, bucket, extra):
        bucket.put("key", b"data")
        response = bucket.get("key", headers=extra)
        expect.error(response, "RequestHeaderSectionTooLarge", MaxSizeAllowed=str(HEADER_MAX))

    def test_too_large_is_told_before_the_signature(self, bucket):
        response = bucket.get("key", headers={"x-padding": "p" * HEADER_MAX}, anonymous=True)
        expect.error(response, "RequestHeaderSectionTooLarge")

    def test_nothing_is_written(self, bucket):
        response = bucket.raw.put(bucket.path("key"), b"data", headers={"x-padding": "p" * HEADER_MAX})
        expect.error(response, "RequestHeaderSectionTooLarge")
        assert bucket.is_untouched()

    def test_many_lines(self, bucket):
        """More than hyper takes by itself (100), among others on one connection: alone and pipelined."""
        bucket.put("key", b"data")
        numbers = [1, 150, 2, LINES_MAX - 20, 3]
        prepared = [
            bucket.raw.prepare("GET", bucket.path("key"), headers={f"x-h{n}": "1" for n in range(number)})
            for number in numbers
        ]
        for together in (False, True):
            with bucket.raw.connect() as connection:
                if together:
                    connection.send(b"".join(request.bytes for request in prepared))
                for request in prepared:
                    if not together:
                        connection.send(request.bytes)
                    assert expect.ok(connection.response()).body == b"data"

    @pytest.mark.parametrize("before", [0, 150])
    def test_too_many_lines(self, bucket, before):
        with bucket.raw.connect() as connection:
            for number in filter(None, (before, LINES_MAX)):
                headers = {f"x-h{n}": "1" for n in range(number)}
                connection.send(bucket.raw.prepare("HEAD", bucket.path("none"), headers=headers).bytes)
                if number < LINES_MAX:
                    assert connection.response("HEAD").status == 404
            self.refused(connection)

    def test_100_000_headers(self, bucket):
        """Refused without being held, and the server goes on."""
        lines = "".join(f"x-h{n}: 1\r\n" for n in range(100_000)).encode()
        before = bucket.server.status_kib("VmRSS")
        with bucket.raw.connect() as connection:
            connection.send_as_far_as_possible(
                f"GET {bucket.path('key')} HTTP/1.1\r\nHost: x\r\n".encode() + lines + b"\r\n"
            )
            self.refused(connection)
        assert bucket.server.status_kib("VmRSS") - before < 16 << 10
        assert bucket.head("none").status == 404

    @pytest.mark.parametrize(
        "start",
        [b"GET /" + b"a" * (1 << 20), b"GET / HTTP/1.1\r\nx: " + b"a" * (1 << 20)],
        ids=["request line", "header"],
    )
    def test_a_line_without_end(self, bucket, start):
        with bucket.raw.connect() as connection:
            connection.send_as_far_as_possible(start)
            self.refused(connection)
        assert bucket.head("none").status == 404

    def refused(self, connection) -> None:
        """An error with all that errors have, and the end of the connection."""
        response = connection.response()
        assert response.code in ("RequestHeaderSectionTooLarge", "InvalidURI"), response
        expect.error(response, response.code)
        assert connection.is_closed(10)


MALFORMED = {
    "no version": b"GET /\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "wrong version": b"GET / HTTP/3.7\r\nHost: x\r\n\r\n",
    "space in a name": b"GET / HTTP/1.1\r\nHost: x\r\nbad name: 1\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost: x\r\nname : 1\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost: x\r\na: 1\r\n 2\r\n\r\n",
    "nul in a value": b"GET / HTTP/1.1\r\nHost: x\r\na: \x00\r\n\r\n",
    "control character in the path": b"GET /a\x01b HTTP/1.1\r\nHost: x\r\n\r\n",
    "no path": b"GET  HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "transfer encoding unknown": b"PUT /a/b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    "chunk size that is none": b"PUT /abc/b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}
# Refused before its body is looked at.
MALFORMED_CODES = {"chunk size that is none": "NoSuchBucket"}


def test_malformed_behind_a_good_one(bucket):
    """Pipelined: the first is answered, then the second is refused."""
    bucket.put("key", b"data")
    with bucket.server.connect() as connection:
        connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes + b"nonsense\r\n\r\n")
        assert expect.ok(connection.response()).body == b"data"
        expect.error(connection.response(), "BadRequest")


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(server, name):
    with server.connect() as connection:
        connection.send_as_far_as_possible(MALFORMED[name])
        if name == "HTTP/2 preface":
            # There is nothing in HTTP/1.1 that such a client would understand.
            assert connection.is_closed(10)
            return
        response = connection.response()
        expect.error(response, MALFORMED_CODES.get(name, "BadRequest"))
    assert server.raw.head("/no-such-bucket").status == 404


@pytest.mark.parametrize(
    "target",
    [
        "*",
        "http://",
        "no-slash",
        "//",
        "/?",
        "/%",
        "/bucket/%",
        "/bucket/%zz",
        "/bucket?%zz",
        "/bucket?a=%ff",
        "/bucket/a?x=%80",
    ],
)
def test_odd_targets(server, target):
    """Answered somehow, but never by a 500 or a crash."""
    with server.connect() as connection:
        connection.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        response = connection.response()
        assert 400 <= response.status < 500 or response.status == 501, response


def test_missing_host(bucket):
    """HTTP/1.1 demands one, and the signature covers it."""
    response = bucket.get("key", headers={"host": None})
    assert response.status in (400, 403), response


@pytest.mark.parametrize("version, code", [("1.1", "BadRequest"), ("1.0", "AccessDenied")])
def test_only_http_1_0_does_without_a_host(bucket, version, code):
    bucket.put("key", b"data")
    with bucket.raw.connect() as connection:
        connection.send(f"GET {bucket.path('key')} HTTP/{version}\r\n\r\n".encode())
        expect.error(connection.response(), code)


def test_lines_may_end_without_a_carriage_return(bucket):
    """As RFC 9112, section 2.2 allows; nothing but the end of a line is made of it (decision 0005)."""
    bucket.put("key", b"data")
    with bucket.raw.connect() as connection:
        connection.send(f"GET {bucket.path('key')} HTTP/1.1\nHost: x\nx-a: 1\n\n".encode())
        expect.error(connection.response(), "AccessDenied")
        connection.send(f"GET {bucket.path('key')} HTTP/1.1\r\nHost: x\r\nx-a: 1\rx-b: 2\r\n\r\n".encode())
        assert connection.response().status == 400


def test_two_hosts(bucket):
    bucket.put("key", b"data")
    response = bucket.get("key", headers=[("host", bucket.raw.host), ("host", "other.example")])
    assert response.status in (200, 400, 403), response


class TestHalfSent:
    """Slowloris: a head that never ends is given up after --header-timeout."""

    @pytest.fixture
    def impatient(self, make_server):
        return make_server("--header-timeout", "1", "--idle-timeout", "2")

    @pytest.mark.parametrize("start", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\na: "])
    def test_held_open(self, impatient, start):
        with impatient.connect() as connection:
            connection.send(start)
            self.given_up(connection)

    def test_trickled(self, impatient):
        """A byte now and then does not help."""
        with impatient.connect() as connection:
            for byte in b"GET / HTTP/1.1\r\nHost: x":
                connection.send_as_far_as_possible(bytes([byte]))
                if not connection.is_silent(0.15):
                    break
            else:
                pytest.fail("still open after 3.3 s")
            self.given_up(connection)

    def test_second_request(self, impatient):
        with impatient.connect() as connection:
            expect.head_error(impatient.raw.head("/none", connection=connection), 404)
            connection.send(b"GET / HTT")
            self.given_up(connection)

    def test_idle(self, impatient):
        """Nothing sent at all, before the first request or after one."""
        with impatient.connect() as fresh, impatient.connect() as used:
            expect.head_error(impatient.raw.head("/none", connection=used), 404)
            self.given_up(used)
            self.given_up(fresh)

    def given_up(self, connection) -> None:
        def ended() -> bool:
            try:
                return connection.response().status == 408
            except Closed:
                return True

        connection.socket.settimeout(8)
        assert poll(ended, 8)
