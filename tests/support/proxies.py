"""Proxies before gateways, as packaging/proxies has them: only addresses and paths are others."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from .server import REPOSITORY, Server
from .wire import poll

EXAMPLES = REPOSITORY / "packaging" / "proxies"
START_SECONDS = 20
# Debian's packages; ./test installs them.
PACKAGES = {"haproxy": "haproxy", "nginx": "nginx-light", "varnishd": "varnish"}


def program(name: str) -> str:
    """Where a program is, or the test is skipped."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not path:
        pytest.skip(f"needs {name} (Debian's package {PACKAGES[name]})")
    return path


def free_port() -> int:
    """A port below those that the kernel gives to outgoing connections: nothing takes it meanwhile."""
    first = 20000 + os.getpid() % 100 * 100
    for port in (*range(first, 32000), *range(20000, first)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
    raise AssertionError("no port is free")


_given: set[int] = set()


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The text with other addresses: each of the old ones must be there."""
    for old, new in pairs:
        assert old in text, f"the example has no {old!r}"
        text = text.replace(old, new)
    return text


class Proxy:
    """A running proxy."""

    def __init__(self, command: list[str], directory: Path, *ports: int) -> None:
        self.log_file = directory / f"{Path(command[0]).name}.log"
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port = ports[0]
        self.ports = ports
        try:
            poll(self._listens, START_SECONDS)
        except BaseException:
            self.stop()
            raise

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def access_log(self) -> str:
        """What it says of requests; HAProxy says it with all else."""
        own = self.log_file.with_name("access.log")
        return own.read_text(errors="replace") if own.exists() else self.log

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.log
        for port in self.ports:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
            except OSError:
                return False
        return True

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def start_haproxy(directory: Path, servers: list[Server], certificate: tuple[Path, Path]) -> Proxy:
    binary, plain, tls = program("haproxy"), free_port(), free_port()
    pem = directory / "s3.pem"
    pem.write_bytes(b"".join(path.read_bytes() for path in certificate))
    text = (EXAMPLES / "haproxy.cfg").read_text()
    if os.geteuid() != 0:
        text = replaced(text, ("    user haproxy\n", ""), ("    group haproxy\n", ""))
    for number, server in enumerate(servers, 1):
        host, port = server.address
        operations = server.operations.rpartition(":")[2]
        # Ports for operations are the same on all machines; these gateways are on one.
        text = replaced(text, (f"10.0.0.{number}:9000", f"{host}:{port} port {operations}"))
    text = replaced(
        text,
        ("bind :80", f"bind 127.0.0.1:{plain}"),
        ("bind :443", f"bind 127.0.0.1:{tls}"),
        ("/etc/haproxy/s3.pem", str(pem)),
        ("/run/haproxy/admin.sock", str(directory / "admin.sock")),
    )
    config = directory / "haproxy.cfg"
    config.write_text(text)
    return Proxy([binary, "-db", "-f", str(config)], directory, plain, tls)


def start_nginx(directory: Path, servers: list[Server], certificate: tuple[Path, Path]) -> Proxy:
    binary, plain, tls = program("nginx"), free_port(), free_port()
    text = (EXAMPLES / "nginx.conf").read_text()
    for number, server in enumerate(servers, 1):
        host, port = server.address
        text = replaced(text, (f"10.0.0.{number}:9000", f"{host}:{port}"))
    text = replaced(
        text,
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{tls} ssl;"),
        ("/var/log/nginx/access.log", str(directory / "access.log")),
        ("/etc/nginx/s3.pem", str(certificate[0])),
        ("/etc/nginx/s3.key", str(certificate[1])),
    )
    # What a system's own nginx.conf has around such a file.
    site, main = directory / "site.conf", directory / "nginx.conf"
    site.write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # The workers' user could not read pytest's directories.
    user = "user root;" if os.geteuid() == 0 else ""
    main.write_text(
        f"{user} daemon off; pid {directory}/nginx.pid; error_log stderr; worker_processes 2;"
        f" events {{ worker_connections 1000; }}"
        f" http {{ access_log off; {temporary} include {site}; }}\n"
    )
    return Proxy([binary, "-p", str(directory), "-c", str(main)], directory, plain, tls)


def start_varnish(directory: Path, backend: tuple[str, int]) -> Proxy:
    """The command is the example's own."""
    binary, port = program("varnishd"), free_port()
    text = (EXAMPLES / "varnish.vcl").read_text()
    command = re.search(r"^#   (varnishd .*)$", text, re.MULTILINE)
    assert command
    arguments = replaced(
        command[1],
        ("-a :8080", f"-a 127.0.0.1:{port}"),
        ("/etc/varnish/slipway.vcl", str(directory / "slipway.vcl")),
        ("malloc,1G", "malloc,64M"),
    ).split()
    host, at = backend
    (directory / "slipway.vcl").write_text(
        replaced(text, ('.host = "127.0.0.1"', f'.host = "{host}"'), ('.port = "9000"', f'.port = "{at}"'))
    )
    # Its child would give up root, and then could not read pytest's directories.
    own = ["-j", "none", "-n", str(directory / "varnish")]
    return Proxy([binary, *arguments[1:], *own], directory, port)
