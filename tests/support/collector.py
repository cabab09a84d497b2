"""An OpenTelemetry collector, as far as it takes traces: HTTP, and OTLP's own Protocol Buffers."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from .wire import poll


def value(any_value: AnyValue) -> str | int:
    kind = any_value.WhichOneof("value")
    assert kind in ("string_value", "int_value"), any_value
    return getattr(any_value, kind)


def attributes(pairs: list[KeyValue]) -> dict[str, str | int]:
    found = {pair.key: value(pair.value) for pair in pairs}
    assert len(found) == len(pairs), "a name is there twice"
    return found


@dataclass(frozen=True)
class Span:
    """A span, and whose it is."""

    wire: WireSpan
    resource: dict[str, str | int]
    scope: str
    attributes: dict[str, str | int]

    @property
    def name(self) -> str:
        return self.wire.name

    @property
    def trace_id(self) -> str:
        return self.wire.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.wire.span_id.hex()

    @property
    def parent_id(self) -> str:
        return self.wire.parent_span_id.hex()

    @property
    def request_id(self) -> str:
        return self.attributes["aws.request_id"]


@dataclass
class Answer:
    """What a request is answered; `status` 0 for nothing until the end. An `endless` one has a body that goes
    on until nobody reads it."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = ExportTraceServiceResponse().SerializeToString()
    endless: bool = False


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    answer: Answer
    client: tuple[str, int]

    def spans(self) -> Iterator[Span]:
        request = ExportTraceServiceRequest.FromString(self.body)
        for of_resource in request.resource_spans:
            resource = attributes(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                assert of_scope.schema_url.startswith("https://opentelemetry.io/schemas/")
                for span in of_scope.spans:
                    yield Span(span, resource, of_scope.scope.name, attributes(span.attributes))


class Collector:
    """Takes what is posted. `answers` are given first, one for each request; then 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[Answer] = []
        self.ended = threading.Event()
        self.url = ""

    @property
    def spans(self) -> list[Span]:
        """Those that were taken."""
        return [span for one in list(self.received) if one.answer.status == 200 for span in one.spans()]

    def of(self, request_id: str) -> Span:
        """The span of this request, once it is there."""
        found = poll(lambda: [span for span in self.spans if span.request_id == request_id], 10)
        assert len(found) == 1
        return found[0]


@contextmanager
def collector(
    tls: ssl.SSLContext | None = None, idle: Callable[[], float] | None = None
) -> Iterator[Collector]:
    """One on this machine."""
    of = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A connection that waits so long for another request is closed.
        timeout = idle and idle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = of.answers.pop(0) if of.answers else Answer()
            headers = {name.lower(): text for name, text in self.headers.items()}
            of.received.append(Received(self.path, headers, body, answer, self.client_address))
            if not answer.status:
                of.ended.wait()
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(1 << 60 if answer.endless else len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            with suppress(OSError):
                while answer.endless and not of.ended.is_set():
                    self.wfile.write(b"x" * 1000)
                    of.ended.wait(0.01)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    of.url = f"{'https://localhost' if tls else 'http://127.0.0.1'}:{server.server_port}"
    try:
        yield of
    finally:
        of.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
