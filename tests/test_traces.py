"""--traces: a span for each request at a collector, tied to answer and logs; no secrets in it; a collector
that fails is nobody's trouble."""

import json
import os
import re
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from test_operations import metrics
from test_reload import reload

from support.bucket import Bucket
from support.collector import Answer, collector
from support.data import MIB, pattern
from support.server import ACCESS_KEY, KEYS, SECRET_KEY, StartFailed, binary
from support.transports import make_certificate
from support.wire import poll

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOT_TAKEN = "does not accept traces"


def traceparent(sampled: bool = True) -> str:
    return f"00-{TRACE}-{PARENT}-{int(sampled):02x}"


@pytest.fixture
def receiver():
    with collector() as running:
        yield running


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def start(make_server, receiver, log):
    def run(*options: str, to: str | None = None, **more):
        return make_server("--traces", to or receiver.url, "--access-log", str(log), *options, **more)

    return run


def line_of(log: Path, request_id: str) -> dict:
    assert poll(lambda: request_id in log.read_text(), 10)
    return next(json.loads(line) for line in log.read_text().splitlines() if request_id in line)


def samples(server) -> dict[str, float]:
    return {
        re.search(r'result="(\w+)"', name)[1]: value
        for name, value in metrics(server).items()
        if name.startswith("slipway_trace_spans_total")
    }


def test_a_span(start, receiver, log):
    server = start()
    bucket = Bucket(server, "bucket").create()
    before = time.time_ns()
    answer = bucket.put("a b\n", pattern(MIB), headers={"user-agent": "one \u00e9"})
    request_id = answer.headers["x-amz-request-id"]
    span = receiver.of(request_id)
    assert (span.name, span.wire.kind) == ("S3.PutObject", WireSpan.SPAN_KIND_SERVER)
    assert span.scope == "slipway"
    assert before <= span.wire.start_time_unix_nano < span.wire.end_time_unix_nano < time.time_ns()
    [event] = span.wire.events
    assert event.name == "answered"
    assert span.wire.start_time_unix_nano < event.time_unix_nano <= span.wire.end_time_unix_nano
    assert span.wire.status.code == Status.STATUS_CODE_UNSET
    assert (span.parent_id, span.wire.trace_state) == ("", "")
    assert span.wire.flags == 0x101
    host, port = server.address
    assert span.attributes.pop("http.request.body.size") >= MIB
    assert span.attributes.pop("user_agent.original").startswith("one ")
    assert span.attributes == {
        "http.request.method": "PUT",
        "http.response.status_code": 200,
        "http.response.body.size": 0,
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "server.address": host,
        "server.port": port,
        "url.scheme": "http",
        "url.path": bucket.path("a b\n"),
        "aws.request_id": request_id,
        "aws.s3.bucket": "bucket",
        "aws.s3.key": "a b\n",
    }
    assert span.resource.pop("service.version") == re.search(r"Slipway (\S+)", server.output)[1]
    assert span.resource == {
        "service.name": "slipway",
        "host.name": socket.gethostname(),
        "service.instance.id": answer.headers["x-amz-id-2"],
    }
    line = line_of(log, request_id)
    assert (line["trace_id"], line["span_id"]) == (span.trace_id, span.span_id)
    assert span.span_id == request_id.lower()
    [posted] = {(one.path, one.headers["content-type"]) for one in receiver.received}
    assert posted == ("/v1/traces", "application/x-protobuf")


def test_each_request_has_one(start, receiver):
    server = start()
    bucket = Bucket(server, "bucket").create()
    upload = bucket.create_upload("key")
    answers = [
        bucket.put_part("key", upload, 3, b"text"),
        bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": "/bucket/none"}),
        bucket.raw.get("/bucket", query="list-type=2&prefix=a%2Fb"),
        bucket.raw.request("BREW", bucket.path("key"), anonymous=True),
        bucket.raw.get("/no_bucket%ff", anonymous=True),
    ]
    assert server.stop() == 0
    spans = {span.request_id: span for span in receiver.spans}
    assert len(spans) == len(receiver.spans) == 2 + len(answers)
    part, copy, listing, brewed, none = (spans[answer.headers["x-amz-request-id"]] for answer in answers)
    assert part.name == "S3.UploadPart"
    assert (part.attributes["aws.s3.upload_id"], part.attributes["aws.s3.part_number"]) == (upload, 3)
    assert (copy.name, copy.attributes["aws.s3.copy_source"]) == ("S3.CopyObject", "/bucket/none")
    assert listing.attributes["url.query"] == "list-type=2&prefix=a%2Fb"
    assert "aws.s3.key" not in listing.attributes
    assert (brewed.name, brewed.attributes["http.request.method"]) == ("HTTP", "_OTHER")
    assert brewed.attributes["http.request.method_original"] == "BREW"
    assert none.name == "GET" and "aws.s3.bucket" not in none.attributes
    assert len({span.trace_id for span in spans.values()}) == len(spans)


def test_errors(start, receiver):
    server = start("--log", "debug")
    bucket = Bucket(server, "bucket").create()
    missing = receiver.of(bucket.get("nothing").headers["x-amz-request-id"])
    assert missing.attributes["http.response.status_code"] == 404
    assert missing.attributes["error.type"] == "NoSuchKey"
    assert missing.wire.status.code == Status.STATUS_CODE_UNSET
    # The server's own log is tied to it as well.
    line = next(line for line in server.log.splitlines() if missing.request_id in line)
    assert f"trace_id={missing.trace_id}" in line
    failed = receiver.of(bucket.raw.put("/bucket", b"", query={"cors": ""}).headers["x-amz-request-id"])
    assert failed.attributes["http.response.status_code"] == 501
    assert failed.attributes["error.type"] == "NotImplemented"
    assert failed.wire.status.code == Status.STATUS_CODE_ERROR


def test_a_download_that_is_broken_off(start, receiver):
    bucket = Bucket(start(), "bucket").create()
    bucket.put("key", pattern(64 * MIB))
    with bucket.raw.connect() as connection:
        connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes)
        request_id = connection.head().headers["x-amz-request-id"]
        connection.read(1000)
        connection.reset()
    assert receiver.of(request_id).attributes["http.response.body.size"] < 64 * MIB


@pytest.mark.parametrize("options", [(), ("--traces-from", "10.0.0.0/8,unix,2001:db8::/32")])
def test_a_trace_that_nobody_vouches_for_begins_anew(start, receiver, options):
    answer = start(*options).raw.get("/", headers={"traceparent": traceparent(), "tracestate": "a=b"})
    span = receiver.of(answer.headers["x-amz-request-id"])
    assert span.trace_id != TRACE
    assert (span.parent_id, span.wire.trace_state) == ("", "")


def test_a_trace_is_continued(start, receiver, log):
    server = start("--traces-from", "127.0.0.0/8", "--traces-ratio", "0")
    answer = server.raw.get("/", headers={"traceparent": traceparent(), "tracestate": "a=b,c=d"})
    span = receiver.of(answer.headers["x-amz-request-id"])
    assert (span.trace_id, span.parent_id) == (TRACE, PARENT)
    assert (span.wire.trace_state, span.wire.flags) == ("a=b,c=d", 0x301)
    assert line_of(log, span.request_id)["trace_id"] == TRACE
    # One that was not chosen where it began is not told, but named in the log; the rest is not
    # chosen here.
    for headers, trace in (({"traceparent": traceparent(sampled=False)}, TRACE), ({}, None)):
        line = line_of(log, server.raw.get("/", headers=headers).headers["x-amz-request-id"])
        assert line.get("trace_id") == trace
    assert server.stop() == 0
    assert [span.request_id for span in receiver.spans] == [answer.headers["x-amz-request-id"]]


def test_a_client_behind_a_proxy_vouches_for_itself(start, receiver):
    """A proxy that passes the header on as it came is not its author."""
    proxies = ("--client-address", "x-forwarded-for", "--trusted-proxy", "127.0.0.1")
    server = start(*proxies, "--traces-from", "192.0.2.0/24,127.0.0.1")
    for client, continued in (("192.0.2.7", True), ("198.51.100.7", False)):
        headers = {"traceparent": traceparent(), "x-forwarded-for": client}
        span = receiver.of(server.raw.get("/", headers=headers).headers["x-amz-request-id"])
        assert (span.trace_id == TRACE) is continued
        assert span.attributes["client.address"] == client


def test_on_a_unix_socket(start, receiver, tmp_path):
    path = tmp_path / "socket"
    start("--traces-from", "unix", listen=[f"unix:{path}"])
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        head = f"GET / HTTP/1.1\r\nHost: s3\r\ntraceparent: {traceparent()}\r\nConnection: close\r\n\r\n"
        client.sendall(head.encode())
        while client.recv(4096):
            pass
    assert poll(lambda: receiver.spans, 10)
    [span] = receiver.spans
    assert span.trace_id == TRACE
    assert "client.address" not in span.attributes and "server.port" not in span.attributes


def test_a_share_of_them(start, receiver, log):
    server = start("--traces-ratio", "0.5")
    with server.connect() as connection:
        for _ in range(200):
            server.raw.get("/", connection=connection)
    assert server.stop() == 0
    assert 50 < len(receiver.spans) < 150
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = {line["trace_id"] for line in lines if "trace_id" in line}
    assert len(lines) == 200 and told == {span.trace_id for span in receiver.spans}


@pytest.mark.parametrize("version, secret", [("s3v4", "X-Amz-Signature"), ("s3", "Signature")])
def test_no_signature_is_told(start, receiver, version, secret):
    server = start()
    bucket = Bucket(server, "bucket").create()
    bucket.put("key", b"text")
    s3 = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "key"})
    target = url.removeprefix(server.endpoint)
    span = receiver.of(bucket.raw.get(target, anonymous=True).headers["x-amz-request-id"])
    assert span.attributes["http.response.status_code"] == 200
    assert "url.query" not in span.attributes
    signature = re.search(rf"{secret}=([^&]+)", url)[1]
    sent = b"".join(one.body for one in receiver.received)
    for word in (signature, SECRET_KEY, ACCESS_KEY, "Credential", "AWS4-HMAC"):
        assert word.encode() not in sent, word


def test_none_without_the_option(make_server, receiver, log):
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "mine"}
    server = make_server("--access-log", str(log), env={**KEYS, **variables})
    answer = server.raw.get("/", headers={"traceparent": traceparent()})
    assert "trace_id" not in line_of(log, answer.headers["x-amz-request-id"])
    threads = [(task / "comm").read_text() for task in Path(f"/proc/{server.pid}/task").iterdir()]
    assert "traces\n" not in threads
    assert server.stop() == 0
    assert receiver.received == []


def test_the_variables_of_opentelemetry(start, receiver):
    server = start(
        to="env",
        env={
            **KEYS,
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url + "/base/",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20c2VjcmV0,x-tenant=lab",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=a%2Cb,host.name=me",
            "OTEL_SERVICE_NAME": "objects",
        },
    )
    server.raw.get("/")
    assert server.stop() == 0
    [span] = receiver.spans
    assert span.resource["service.name"] == "objects"
    assert span.resource["deployment.environment.name"] == "a,b"
    assert span.resource["host.name"] == "me"
    [posted] = receiver.received
    assert posted.path == "/base/v1/traces"
    assert posted.headers["authorization"] == "Basic c2VjcmV0" and posted.headers["x-tenant"] == "lab"
    assert "c2VjcmV0" not in server.log


@pytest.mark.parametrize("variable", [None, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_a_url_with_a_path_is_taken_as_it_is(start, receiver, variable):
    url = f"{receiver.url}/otlp/traces"
    server = start(to="env", env={**KEYS, variable: url}) if variable else start(to=url)
    server.raw.get("/")
    assert server.stop() == 0
    assert [one.path for one in receiver.received] == ["/otlp/traces"]


@pytest.mark.parametrize(
    "to, variables, says",
    [
        ("somewhere:4318", {}, "expected a URL such as http://127.0.0.1:4318"),
        ("grpc://127.0.0.1:4317", {}, "expected a URL such as http://127.0.0.1:4318"),
        ("http://me:hush@127.0.0.1:4318", {}, "put credentials into the variable OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://c?key=hush", {}, "the collector's URL must not have a query"),
        ("http://c:99999", {}, "--traces: the port must be a number from 1 to 65535"),
        ("env", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:0"}, "OTLP_ENDPOINT: the port must be a number"),
        ("env", {}, "nor OTEL_EXPORTER_OTLP_ENDPOINT is set"),
        ("env", {"OTEL_EXPORTER_OTLP_ENDPOINT": "hush"}, "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL"),
        (
            "env",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": slipway supports only http/protobuf',
        ),
        ("http://c", {"OTEL_EXPORTER_OTLP_HEADERS": "hush"}, "expected name=value,name=value"),
        (
            "http://c",
            {"OTEL_EXPORTER_OTLP_HEADERS": "a b=hush"},
            '"a b" is not a valid name of an HTTP header',
        ),
        (
            "http://c",
            {"OTEL_EXPORTER_OTLP_HEADERS": "a=hush%0a"},
            'the value of "a" is not valid in an HTTP header',
        ),
        *(
            (
                "http://c",
                {"OTEL_EXPORTER_OTLP_HEADERS": f"a=b,{name}=hush"},
                f'the header "{name}" is set by slipway itself',
            )
            for name in (
                "Content-Length",
                "transfer-encoding",
                "connection",
                "expect",
                "te",
                "trailer",
                "upgrade",
            )
        ),
        ("http://c", {"OTEL_RESOURCE_ATTRIBUTES": "hush"}, "OTEL_RESOURCE_ATTRIBUTES: expected name=value"),
        ("https://c", {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/none"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: /none"),
    ],
)
def test_what_is_wrong_is_said_at_the_start(start, tmp_path, to, variables, says):
    tree = tmp_path / "none"
    with pytest.raises(StartFailed) as failed:
        start(to=to, env={**KEYS, **variables}, tree=tree)
    message = " ".join(str(failed.value).replace('\\"', '"').split())
    assert says in message
    assert "hush" not in message
    assert not tree.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="hides the system's authorities with a mount of its own")
def test_a_system_without_authorities(tmp_path):
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /etc/ssl && exec "$@"', "sh"]
    serve = [binary(), "serve", tmp_path / "none", "--listen", "127.0.0.1:0", "--traces", "https://c"]
    done = subprocess.run(
        [*hidden, *serve],
        env={"PATH": os.environ["PATH"], **KEYS},
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = " ".join(done.stderr.split())
    assert done.returncode and "this system has no list of certificate authorities" in said
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in said and "--ca" not in said and "--insecure" not in said


@pytest.mark.parametrize("ratio", ["-1", "2", "half"])
def test_a_share_is_a_number(start, ratio):
    with pytest.raises(StartFailed, match="a number from 0 to 1"):
        start(f"--traces-ratio={ratio}")


def test_a_file_may_have_a_share(start, receiver, tmp_path):
    config = tmp_path / "slipway.toml"
    config.write_text("traces-ratio = 0.0\n")
    server = start("--config", str(config))
    server.raw.get("/")
    # What was kept for the collector is sent before the end.
    assert server.stop() == 0
    assert receiver.spans == []


def test_by_tls(start, make_server, tmp_path):
    certificate, key = make_certificate(tmp_path, "collector", "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with collector(tls) as receiver:
        server = start(to=receiver.url, env={**KEYS, "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate)})
        receiver.of(server.raw.get("/").headers["x-amz-request-id"])
        # Of those that the system trusts, none vouches for it.
        stranger = make_server("--traces", receiver.url, tree=tmp_path / "other")
        stranger.raw.get("/")
        assert stranger.stop() == 0
        assert NOT_TAKEN in stranger.log and "invalid peer certificate" in stranger.log
        assert len(receiver.spans) == 1


def test_a_connection_is_kept_and_one_that_was_closed_is_made_anew(start):
    with collector(idle=lambda: 1.5) as receiver:
        server = start(to=receiver.url)
        for pause in (0, 2.5):
            time.sleep(pause)
            receiver.of(server.raw.get("/").headers["x-amz-request-id"])
        assert NOT_TAKEN not in server.log


def test_what_is_refused_for_now_is_sent_again(start, receiver):
    receiver.answers = [Answer(503, {"retry-after": "1"}), Answer(429)]
    server = start("--ops-listen", "127.0.0.1:0")
    receiver.of(server.raw.get("/").headers["x-amz-request-id"])
    assert [one.answer.status for one in receiver.received] == [503, 429, 200]
    assert server.log.count(NOT_TAKEN) == 1 and "503" in server.log
    assert poll(lambda: "the collector accepts traces again" in server.log, 5)
    assert samples(server) == {"exported": 1, "dropped": 0, "failed": 0}


def test_what_is_refused_for_good_is_not(start, receiver):
    receiver.answers = [Answer(400), Answer(404)]
    server = start("--ops-listen", "127.0.0.1:0")
    for failed in (1, 2):
        server.raw.get("/")
        assert poll(lambda: samples(server)["failed"] == failed, 5)  # noqa: B023
    assert server.log.count(NOT_TAKEN) == 1
    receiver.of(server.raw.get("/").headers["x-amz-request-id"])
    assert poll(lambda: "the collector accepts traces again" in server.log, 5)
    assert samples(server) == {"exported": 1, "dropped": 0, "failed": 2}


@pytest.mark.parametrize("status, what", [(200, "exported"), (400, "failed")])
def test_an_answer_without_end(start, receiver, status, what):
    """Its status counts; the rest is not waited for, and the connection not used again."""
    receiver.answers = [Answer(status, endless=True)]
    server = start("--ops-listen", "127.0.0.1:0")
    server.raw.get("/")
    # Less than the time that a collector has.
    assert poll(lambda: samples(server)[what] == 1, 8)
    receiver.of(server.raw.get("/").headers["x-amz-request-id"])
    assert len({one.client for one in receiver.received}) == len(receiver.received) == 2


def test_what_is_taken_in_part(start, receiver):
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 1
    answer.partial_success.error_message = "too late"
    receiver.answers = [Answer(body=answer.SerializeToString())]
    server = start("--ops-listen", "127.0.0.1:0")
    server.raw.get("/")
    assert poll(lambda: samples(server)["failed"] == 1, 5)
    assert samples(server) == {"exported": 0, "dropped": 0, "failed": 1}
    assert "too late" in server.log


def test_a_collector_that_takes_and_rejects_in_turn_does_not_fill_the_log(start, receiver):
    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 1
    partial.partial_success.error_message = "late " * 10_000
    receiver.answers = [Answer(body=partial.SerializeToString()), Answer()] * 3
    server = start("--ops-listen", "127.0.0.1:0")
    for sent in range(1, 7):
        server.raw.get("/")
        assert poll(lambda: sum(samples(server).values()) == sent, 5)  # noqa: B023
    assert samples(server) == {"exported": 3, "dropped": 0, "failed": 3}
    for said in ("rejected some of the spans", "the collector accepts traces again"):
        assert server.log.count(said) == 1
    assert server.log.count("late ") == 100


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def fill(server, seconds: float) -> int:
    """Anonymous requests that have much to tell, until spans are dropped; how many."""
    deadline, sent = time.monotonic() + seconds, 0
    target = "/bucket/key?prefix=" + "x" * 7000

    def some(_: int) -> None:
        with server.connect() as connection:
            for _ in range(100):
                assert server.raw.get(target, anonymous=True, connection=connection).status == 404

    with ThreadPoolExecutor(4) as pool:
        while not samples(server)["dropped"]:
            assert time.monotonic() < deadline
            list(pool.map(some, range(4)))
            sent += 400
    return sent


@pytest.mark.parametrize("kind", ["refuses", "hangs"])
def test_a_collector_that_fails_is_nobodys_trouble(start, receiver, kind):
    receiver.answers = [Answer(0) for _ in range(100)]
    to = f"http://127.0.0.1:{closed_port()}" if kind == "refuses" else receiver.url
    server = start("--ops-listen", "127.0.0.1:0", to=to)
    resident = server.status_kib("VmRSS")
    sent = fill(server, 60)
    found = samples(server)
    assert found["exported"] == 0 and 0 < found["dropped"] + found["failed"] <= sent
    # A buffer for each processor, and what is on its way.
    assert server.status_kib("VmRSS") - resident < 100 << 10
    # One that hangs is given up after 10 s.
    assert server.log.count(NOT_TAKEN) == 1 or (kind == "hangs" and NOT_TAKEN not in server.log)
    started = time.monotonic()
    assert server.stop() == 0
    # 2 s and what a busy machine adds; a collector may take 10 s for one request.
    assert time.monotonic() - started < 9
    if kind == "hangs":
        assert "the last spans were dropped" in server.log


def test_what_is_left_is_sent_at_the_stop(start, receiver):
    server = start()
    ids = {server.raw.get("/").headers["x-amz-request-id"] for _ in range(5)}
    assert server.stop() == 0
    assert {span.request_id for span in receiver.spans} == ids


def test_a_reload_says_that_it_needs_a_restart(start, receiver, tmp_path):
    config = tmp_path / "slipway.toml"
    config.write_text("traces-from = '127.0.0.1'\n")
    server = start("--config", str(config))
    config.write_text("traces-from = '127.0.0.2'\n")
    assert "--traces-from" in reload(server, "needs a restart")


def test_a_reload_refuses_what_a_restart_would(make_server, tmp_path):
    config = tmp_path / "slipway.toml"
    config.write_text("")
    server = make_server("--config", str(config))
    config.write_text("\ntraces = 'http://me:hush@127.0.0.1:4318'\n")
    log = reload(server, "the previous one stays in effect")
    assert (
        f"{config}: line 2: --traces: the URL must not contain a user or password" in log
        and "hush" not in log
    )
