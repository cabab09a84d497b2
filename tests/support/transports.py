"""Ways to reach a server: TCP, TLS, a unix socket."""

import datetime
import ssl
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .server import ACCESS_KEY, SECRET_KEY, Server
from .sigv4 import Signer
from .wire import RawClient


def make_certificate(directory: Path, file: str, *names: str) -> tuple[Path, Path]:
    """A self-signed certificate for these names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = directory / f"{file}.pem", directory / f"{file}.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate_file, key_file


def client_over(
    transport: str, make_server: Callable[..., Server], directory: Path, *options: str
) -> RawClient:
    """A client of a new server with these options, over "TCP", "TLS" or a "unix socket"."""
    if transport == "TCP":
        return make_server(*options).raw
    if transport == "TLS":
        certificate, key = make_certificate(directory, "local", "local.test")
        server = make_server(*options, "--tls-cert", str(certificate), "--tls-key", str(key))
        context = ssl.create_default_context(cafile=certificate)
        return server.raw.with_(tls=context, server_name="local.test")
    path = str(directory / "s.sock")
    make_server(*options, listen=[f"unix:{path}", "127.0.0.1:0"])
    return RawClient(path, Signer(ACCESS_KEY, SECRET_KEY))
