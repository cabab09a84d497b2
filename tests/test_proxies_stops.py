"""Gateways behind a proxy that stop, or are not ready."""

import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from test_operations import metrics

from support import proxies
from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY
from support.sigv4 import Signer
from support.transports import make_certificate
from support.wire import Closed, RawClient, poll

SIGNER = Signer(ACCESS_KEY, SECRET_KEY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "s3", "s3.example.org", "localhost")


class Load:
    """Clients that write and read through a proxy until told to stop, each on a connection that it keeps.
    Nothing is tried again."""

    def __init__(self, bucket: Bucket, clients: int = 6) -> None:
        self.bucket, self.stopping = bucket, threading.Event()
        self.written: dict[str, bytes] = {}
        self.failed: list[str] = []
        self.pool = ThreadPoolExecutor(clients)
        self.clients = [self.pool.submit(self._run, number) for number in range(clients)]

    def _run(self, number: int) -> None:
        turn, connection = 0, self.bucket.raw.connect()
        while not self.stopping.is_set():
            turn += 1
            key, data = f"client{number}/{turn}", f"{number}/{turn} ".encode() * 2000
            path = self.bucket.path(key)
            try:
                answer = self.bucket.raw.put(path, data, connection=connection)
                if answer.status != 200:
                    self.failed.append(f"PUT {key}: {answer}")
                    continue
                self.written[key] = data
                answer = self.bucket.raw.get(path, connection=connection)
                if (answer.status, answer.body) != (200, data):
                    self.failed.append(f"GET {key}: {answer}")
            except (OSError, Closed) as error:
                self.failed.append(f"{key}: {error!r}")
                connection = self.bucket.raw.connect()

    def stop(self) -> None:
        self.stopping.set()
        for client in self.clients:
            client.result(30)


@pytest.mark.parametrize("kind", ["haproxy", "nginx"])
def test_a_gateway_is_stopped_under_load(make_server, certificate, tmp_path, kind):
    """One after the other is stopped and started again. What was acknowledged is there.

    HAProxy sees that a gateway is not ready, and nothing fails. nginx sends to it until it is gone, and what
    meets the end of a kept connection may fail, for the client to send again.
    """
    options = ("--ops-listen", "127.0.0.1:0", "--drain-delay", "3" if kind == "haproxy" else "0")
    servers = [make_server(*options) for _ in range(2)]
    start = proxies.start_haproxy if kind == "haproxy" else proxies.start_nginx
    proxy = start(tmp_path, servers, certificate)
    try:
        server = SimpleNamespace(raw=RawClient(proxy.address, SIGNER), tree=servers[0].tree)
        bucket = Bucket(server, "bucket").create()
        load = Load(bucket)
        try:
            for stopped in servers:
                before = len(load.written)
                poll(lambda before=before: len(load.written) > before + 50, 20)
                assert stopped.stop() == 0, stopped.log
                before = len(load.written)
                poll(lambda before=before: len(load.written) > before + 50, 20)
                host, port = stopped.address
                operations = stopped.operations.partition("//")[2]
                again = make_server("--ops-listen", operations, listen=[f"{host}:{port}"])
                poll(lambda again=again: metrics(again)["slipway_connections_accepted_total"] > 0, 20)
        finally:
            load.stop()
        for key, data in load.written.items():
            assert bucket.file(key).read_bytes() == data
        assert len(load.failed) <= (0 if kind == "haproxy" else 6), load.failed
    finally:
        proxy.stop()


def test_who_is_not_ready_gets_nothing(make_server, certificate, tmp_path):
    """HAProxy takes a gateway out while /-/ready says 503, without disturbing what is in progress there."""
    servers = [make_server("--ops-listen", "127.0.0.1:0") for _ in range(2)]
    proxy = proxies.start_haproxy(tmp_path, servers, certificate)
    try:
        server = SimpleNamespace(raw=RawClient(proxy.address, SIGNER), tree=servers[0].tree)
        bucket = Bucket(server, "bucket").create()
        bucket.put("large", pattern(64 * MIB))

        def requests() -> list[float]:
            name = 'slipway_request_seconds_count{operation="HeadBucket"}'
            return [metrics(server).get(name, 0) for server in servers]

        def both_are_asked() -> bool:
            before = requests()
            for _ in range(4):
                bucket.raw.head(bucket.path())
            return all(now > then for now, then in zip(requests(), before, strict=True))

        poll(both_are_asked, 10)
        with bucket.raw.connect() as first, bucket.raw.connect() as second:
            # One of them is at each gateway.
            for connection in (first, second):
                connection.send(bucket.raw.prepare("GET", bucket.path("large")).bytes)
                assert connection.head().status == 200
            limits = resource.prlimit(servers[0].pid, resource.RLIMIT_NOFILE)
            soft = len(os.listdir(f"/proc/{servers[0].pid}/fd")) + 3
            resource.prlimit(servers[0].pid, resource.RLIMIT_NOFILE, (soft, limits[1]))
            poll(lambda: not both_are_asked(), 10)
            resource.prlimit(servers[0].pid, resource.RLIMIT_NOFILE, limits)
            poll(both_are_asked, 10)
            for connection in (first, second):
                assert connection.read(64 * MIB) == pattern(64 * MIB)
    finally:
        proxy.stop()
