"""--client-address and --trusted-proxy: who a client is, behind proxies."""

import json
import socket
import ssl
import struct
import subprocess

import pytest
from test_operations import metrics

from support.server import StartFailed
from support.transports import make_certificate
from support.wire import RawClient, poll

CLIENT = "192.0.2.7"
V2 = b"\r\n\r\n\0\r\nQUIT\n"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "access.log"


@pytest.fixture
def start(make_server, log):
    return lambda *options, **more: make_server("--access-log", str(log), *options, **more)


def told(log, request_id: str) -> str | None:
    """The client's address in the access log."""
    assert poll(lambda: request_id in log.read_text(), 10)
    line = next(line for line in log.read_text().splitlines() if request_id in line)
    return json.loads(line).get("remote_ip")


def asked(raw: RawClient, **headers: str):
    return raw.get("/", headers={name.replace("_", "-"): value for name, value in headers.items()})


def v2(command: int, source: str, tls: bool | None = None) -> bytes:
    body = socket.inet_aton(source) + socket.inet_aton("10.0.0.9") + struct.pack(">HH", 1234, 9000)
    if tls is not None:
        body += struct.pack(">BHBI", 0x20, 5, int(tls), 0)
    return V2 + bytes([0x20 | command, 0x11]) + struct.pack(">H", len(body)) + body


def by_proxy(server, header: bytes, request: bytes | None = None):
    request = request or server.raw.prepare("GET", "/").bytes
    with server.connect() as connection:
        connection.send_as_far_as_possible(header + request)
        return connection.response()


@pytest.mark.parametrize(
    "source, header, value",
    [
        ("x-forwarded-for", "x_forwarded_for", f"1.1.1.1, {CLIENT}"),
        ("forwarded", "forwarded", f"for=1.1.1.1, for={CLIENT}"),
    ],
)
def test_headers(start, log, source, header, value):
    server = start("--client-address", source, "--trusted-proxy", "127.0.0.0/8")
    answer = asked(server.raw, **{header: value})
    assert answer.status == 200
    assert told(log, answer.headers["x-amz-request-id"]) == CLIENT
    without = asked(server.raw)
    assert told(log, without.headers["x-amz-request-id"]) == "127.0.0.1"


@pytest.mark.parametrize(
    "value, expected",
    [
        # What the proxy quotes, such as the client's Host, is its word of the host, not of the
        # client.
        (f'for={CLIENT};host="x;for=6.6.6.6"', CLIENT),
        (f'proto=http;host="x;for=6.6.6.6";for={CLIENT}', CLIENT),
        (f'for={CLIENT};host="x, for=6.6.6.6;proto=https"', CLIENT),
        # Nor does it matter what a client wrote before it.
        (f'host=", for={CLIENT}', CLIENT),
        (f"host=\xff, for={CLIENT}", CLIENT),
        # These are nobody's word.
        (f"for={CLIENT};for=6.6.6.6", "127.0.0.1"),
        ('for="6.6.6.6', "127.0.0.1"),
        ('for="_x, for=6.6.6.6"', "127.0.0.1"),
    ],
)
def test_forwarded_as_rfc_7239_has_it(start, log, value, expected):
    server = start("--client-address", "forwarded", "--trusted-proxy", "127.0.0.1")
    request = f"GET / HTTP/1.1\r\nHost: s3\r\nForwarded: {value}\r\nConnection: close\r\n\r\n"
    with server.connect() as connection:
        connection.send(request.encode("latin-1"))
        answer = connection.response()
    assert told(log, answer.headers["x-amz-request-id"]) == expected


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--client-address", "x-forwarded-for", "--trusted-proxy", "10.0.0.0/8,127.0.0.2"),
        ("--client-address", "forwarded", "--trusted-proxy", "127.0.0.1"),
        ("--client-address", "proxy-protocol", "--trusted-proxy", "10.0.0.0/8"),
    ],
)
def test_what_nobody_vouches_for_does_not_count(start, log, options):
    server = start(*options)
    answer = asked(server.raw, x_forwarded_for=CLIENT, x_forwarded_proto="https")
    assert told(log, answer.headers["x-amz-request-id"]) == "127.0.0.1"


def test_on_a_unix_socket(start, log, tmp_path):
    path = tmp_path / "socket"
    start("--client-address", "x-forwarded-for", "--trusted-proxy", "unix", listen=[f"unix:{path}"])
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(
            b"GET / HTTP/1.1\r\nHost: s3\r\nX-Forwarded-For: 192.0.2.7\r\nConnection: close\r\n\r\n"
        )
        while client.recv(4096):
            pass
    assert poll(lambda: log.read_text(), 10)
    assert json.loads(log.read_text())["remote_ip"] == CLIENT


@pytest.mark.parametrize(
    "header, expected",
    [
        (f"PROXY TCP4 {CLIENT} 10.0.0.9 1234 9000\r\n".encode(), CLIENT),
        (b"PROXY TCP6 2001:db8::7 ::1 1234 9000\r\n", "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        (v2(1, CLIENT), CLIENT),
        (v2(0, CLIENT), "127.0.0.1"),
    ],
)
def test_the_proxy_protocol(start, log, header, expected):
    server = start("--client-address", "proxy-protocol", "--trusted-proxy", "127.0.0.1")
    answer = by_proxy(server, header)
    assert answer.status == 200
    assert told(log, answer.headers["x-amz-request-id"]) == expected


@pytest.mark.parametrize(
    "header", [b"", b"PROXY TCP4 nonsense\r\n", V2 + b"\x21\x11\xff\xff", b"\x16\x03\x01" + bytes(20)]
)
def test_connections_that_do_not_begin_with_it_are_closed(start, log, header):
    server = start(
        *("--client-address", "proxy-protocol", "--trusted-proxy", "127.0.0.1"),
        *("--ops-listen", "127.0.0.1:0", "--header-timeout", "2"),
    )
    with server.connect() as connection:
        connection.send_as_far_as_possible(header + server.raw.prepare("GET", "/").bytes)
        assert connection.read_some() == b""
    assert metrics(server)["slipway_proxy_headers_failed_total"] == 1
    assert log.read_text() == ""


def test_a_header_that_never_ends(start):
    server = start(
        *("--client-address", "proxy-protocol", "--trusted-proxy", "127.0.0.1", "--header-timeout", "1"),
    )
    with server.connect() as connection:
        connection.send(b"PROXY TCP4 ")
        assert connection.is_closed(5)


@pytest.mark.parametrize(
    "source, headers, begin, scheme",
    [
        ("x-forwarded-for", {"x-forwarded-for": CLIENT, "x-forwarded-proto": "https"}, b"", "https"),
        ("x-forwarded-for", {"x-forwarded-for": CLIENT}, b"", "http"),
        ("forwarded", {"forwarded": f"for={CLIENT};proto=https"}, b"", "https"),
        ("proxy-protocol", {}, v2(1, CLIENT, tls=True), "https"),
        ("proxy-protocol", {}, v2(1, CLIENT, tls=False), "http"),
    ],
)
def test_tls_that_ends_at_the_proxy(start, source, headers, begin, scheme):
    """The location of a completed upload has the scheme that the client used."""
    server = start("--client-address", source, "--trusted-proxy", "127.0.0.1")

    def ask(method: str, path: str, body: bytes = b"", **more):
        request = server.raw.prepare(method, path, body=body, headers=headers, **more).bytes
        return by_proxy(server, begin, request)

    assert ask("PUT", "/bucket").status == 200
    upload = ask("POST", "/bucket/key", query={"uploads": ""}).xml["UploadId"]
    part = ask("PUT", "/bucket/key", b"text", query={"partNumber": "1", "uploadId": upload})
    document = (
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
        f"<ETag>{part.headers['etag']}</ETag></Part></CompleteMultipartUpload>"
    )
    done = ask("POST", "/bucket/key", document.encode(), query={"uploadId": upload})
    assert done.xml["Location"].startswith(f"{scheme}://")


def test_haproxy(start, log, tmp_path):
    """A real proxy, with both versions."""
    server = start("--client-address", "proxy-protocol", "--trusted-proxy", "127.0.0.1")
    host, port = server.address
    for version in ("send-proxy", "send-proxy-v2", "send-proxy-v2 check inter 100"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            front = free.getsockname()[1]
        config = tmp_path / "haproxy.cfg"
        config.write_text(
            "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n"
            f"listen s3\n bind 127.0.0.1:{front}\n server one {host}:{port} {version}\n"
        )
        proxy = subprocess.Popen(["haproxy", "-f", config, "-db"], stderr=subprocess.DEVNULL)
        try:
            raw = RawClient(("127.0.0.1", front), server.raw.signer)
            assert poll(lambda raw=raw: connects(raw), 10)
            with socket.create_connection(("127.0.0.1", front), source_address=("127.0.0.77", 0)) as client:
                client.sendall(raw.prepare("GET", "/").bytes)
                head = client.recv(65536).decode()
            request_id = next(
                line.split(": ")[1] for line in head.split("\r\n") if line.startswith("x-amz-request-id")
            )
            assert told(log, request_id) == "127.0.0.77"
        finally:
            proxy.terminate()
            proxy.wait(10)


def connects(raw: RawClient) -> bool:
    try:
        raw.connect().close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize(
    "options, says",
    [
        (("--client-address", "forwarded"), "without --trusted-proxy"),
        (("--trusted-proxy", "10.0.0.0/8"), "without --client-address"),
        (("--client-address", "forwarded", "--trusted-proxy", "everybody"), "10.0.0.0/8"),
        (
            ("--client-address", "forwarded", "--trusted-proxy", "10.0.0.9/8"),
            "10.0.0.0/8 for the whole network",
        ),
        (("--client-address", "forwarded", "--trusted-proxy", "0.0.0.0/0"), "give the proxies' addresses"),
        (("--client-address", "forwarded", "--trusted-proxy", "::/0"), "give the proxies' addresses"),
        (("--client-address", "x-real-ip", "--trusted-proxy", "10.0.0.1"), "x-forwarded-for"),
    ],
)
def test_options(start, options, says):
    with pytest.raises(StartFailed, match=says):
        start(*options)


def test_tls_behind_the_proxy_protocol(start, log, tmp_path):
    """The header comes before the handshake."""
    chain, key = make_certificate(tmp_path, "one", "one.test")
    server = start(
        *("--client-address", "proxy-protocol", "--trusted-proxy", "127.0.0.1"),
        *("--tls-cert", str(chain), "--tls-key", str(key)),
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(server.address)
    plain.sendall(v2(1, CLIENT))
    with context.wrap_socket(plain) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: s3\r\nConnection: close\r\n\r\n")
        while client.recv(4096):
            pass
    assert poll(lambda: log.read_text(), 10)
    line = json.loads(log.read_text())
    assert (line["remote_ip"], line["tls"]) == (CLIENT, "TLSv1.3")
