"""TLS: two certificates by SNI, read again on SIGHUP."""

import re
import signal
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from support import expect
from support.clients import boto3_client
from support.server import StartFailed
from support.transports import make_certificate
from support.wire import poll


@pytest.fixture
def certificates(tmp_path) -> list[tuple[Path, Path]]:
    return [
        make_certificate(tmp_path, "one", "one.test", "*.one.test"),
        make_certificate(tmp_path, "two", "two.test"),
    ]


@pytest.fixture
def server(make_server, certificates):
    options = [
        part
        for certificate, key in certificates
        for part in ("--tls-cert", str(certificate), "--tls-key", str(key))
    ]
    return make_server(*options, "--domain", "one.test")


def trusting(*certificates: Path) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for certificate in certificates:
        context.load_verify_locations(certificate)
    return context


def presented(server, name: str | None) -> str:
    """The common name of the certificate that a client of this name is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with server.raw.with_(tls=context, server_name=name).connect() as connection:
        certificate = x509.load_der_x509_certificate(connection.socket.getpeercert(binary_form=True))
        return certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


def test_requests(server, certificates):
    assert server.endpoint.startswith("https://")
    raw = server.raw.with_(tls=trusting(certificates[0][0]), server_name="one.test")
    expect.ok(raw.put("/bucket"))
    expect.ok(raw.put("/bucket/key", b"d" * 300_000))
    assert expect.ok(raw.get("/bucket/key")).body == b"d" * 300_000


@pytest.mark.parametrize(
    "name, shown",
    [
        ("one.test", "one.test"),
        ("a.one.test", "one.test"),
        ("two.test", "two.test"),
        ("three.test", "one.test"),
        (None, "one.test"),
    ],
)
def test_the_name_chooses(server, name, shown):
    assert presented(server, name) == shown


def test_boto3_with_buckets_as_hosts(server, certificates, resolve_test_names):
    endpoint = f"https://one.test:{server.address[1]}"
    client = boto3_client(server, endpoint=endpoint, style="virtual", verify=str(certificates[0][0]))
    client.create_bucket(Bucket="bucket")
    client.put_object(Bucket="bucket", Key="a/b", Body=b"data")
    assert client.get_object(Bucket="bucket", Key="a/b")["Body"].read() == b"data"
    assert server.path("bucket", "a/b").read_bytes() == b"data"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_versions(server):
    """TLS 1.2 and 1.3, nothing older."""
    for version, works in (
        (ssl.TLSVersion.TLSv1_3, True),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_1, False),
    ):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        raw = server.raw.with_(tls=context, server_name="one.test")
        if works:
            expect.ok(raw.get("/"))
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                raw.get("/")


def test_plain_http_on_a_tls_port(server):
    """Who forgot the `s` is told, and nothing else of what is sent is looked at."""
    with server.raw.connect() as connection:
        response = server.raw.put("/bucket", connection=connection)
        expect.error(response, "BadRequest", re.compile("speaks TLS: use https"))
        assert connection.is_closed(10)
    assert presented(server, "one.test") == "one.test"


def test_reload(server, certificates, tmp_path):
    """Connections that are open go on; new ones get the new certificate."""
    old = x509.load_pem_x509_certificate(certificates[0][0].read_bytes()).serial_number
    raw = server.raw.with_(tls=trusting(certificates[0][0]), server_name="one.test")

    def serial() -> int:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with server.raw.with_(tls=context, server_name="one.test").connect() as connection:
            return x509.load_der_x509_certificate(
                connection.socket.getpeercert(binary_form=True)
            ).serial_number

    with raw.connect() as before:
        expect.ok(raw.get("/", connection=before))
        make_certificate(tmp_path, "one", "one.test")
        assert serial() == old
        server.signal(signal.SIGHUP)
        poll(lambda: serial() != old)
        expect.ok(raw.get("/", connection=before))
    new = x509.load_pem_x509_certificate((tmp_path / "one.pem").read_bytes()).serial_number
    assert serial() == new
    expect.ok(server.raw.with_(tls=trusting(tmp_path / "one.pem"), server_name="one.test").get("/"))


def test_a_bad_reload_changes_nothing(server, certificates, tmp_path):
    (tmp_path / "two.pem").write_text("nonsense")
    make_certificate(tmp_path, "one", "other.test")
    server.signal(signal.SIGHUP)
    poll(lambda: "the previous one stays in effect" in server.log)
    assert presented(server, "two.test") == "two.test"
    assert presented(server, "one.test") == "one.test"


@pytest.mark.parametrize("spoil", ["missing file", "no key", "wrong key", "garbage"])
def test_bad_files_at_the_start(make_server, certificates, tmp_path, spoil):
    (one, one_key), (_, two_key) = certificates
    options = ["--tls-cert", str(one), "--tls-key", str(one_key)]
    match spoil:
        case "missing file":
            options[1] = str(tmp_path / "none.pem")
        case "no key":
            options = options[:2]
        case "wrong key":
            options[3] = str(two_key)
        case "garbage":
            one.write_text("garbage")
    with pytest.raises(StartFailed):
        make_server(*options)


def test_a_handshake_that_never_ends(make_server, certificates):
    certificate, key = certificates[0]
    server = make_server("--tls-cert", str(certificate), "--tls-key", str(key), "--header-timeout", "1")
    with server.connect() as connection:
        connection.send(b"\x16\x03\x01")
        assert connection.is_closed(5)


def test_a_handshake_that_does_not_end_holds_no_drain_up(server):
    with server.connect() as stranger:
        stranger.send(b"\x16\x03\x01")
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        assert server.wait(3) == 0
