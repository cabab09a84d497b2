"""`slipway bench` against the real server: what it measures, what it counts as an error, what it leaves."""

import contextlib
import csv
import html.parser
import http.server
import itertools
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.bench import ENOUGH, KEYS, QUICK, Run, buckets, errors, made
from support.server import ACCESS_KEY, SECRET_KEY, binary, objects_on_disk
from support.transports import make_certificate
from support.wire import poll

# For a mix whose rarest operation has to occur on a busy machine too, and answers of many MiB.
MANY = ("--duration", "3s", "--warm-up", "100ms")


@contextlib.contextmanager
def answering(body: Callable[[http.server.BaseHTTPRequestHandler], str]) -> Iterator[str]:
    """The endpoint of a server that answers each request with 200 and what `body` makes of it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            text = body(self).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_DELETE = answer

        def log_message(self, *_) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("arguments", "operations", "bytes_each"),
    [
        (["put", "--size", "3k"], {"PutObject"}, 3072),
        (["put", "--size", "3k", "--payload", "signed"], {"PutObject"}, 3072),
        (["put", "--size", "3m", "--payload", "signed", "--count", "9"], {"PutObject"}, 3 << 20),
        (["put", "--size", "0"], {"PutObject"}, 0),
        (["get", "--size", "3k", "--objects", "20"], {"GetObject"}, 3072),
        (["get", "--size", "1m", "--range", "256k", "--objects", "2"], {"GetObject"}, 256 << 10),
        (["head", "--size", "3k", "--objects", "20"], {"HeadObject"}, 0),
        (["list", "--objects", "50", "--page", "20"], {"ListObjectsV2"}, None),
        (["delete", "--size", "3k", "--objects", "150"], {"DeleteObject"}, 0),
        (
            ["mixed", "--size", "3k", "--objects", "40", "--mix", "get=40,put=20,head=20,delete=15,list=5"],
            {"PutObject", "GetObject", "HeadObject", "DeleteObject", "ListObjectsV2"},
            None,
        ),
        (
            ["mixed", "--size", "3k", "--objects", "5", "--count", "300"],
            {"PutObject", "GetObject", "HeadObject", "DeleteObject"},
            None,
        ),
        (
            ["multipart", "--size", "16m", "--part-size", "5m"],
            {"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"},
            None,
        ),
        (
            ["multipart", "--size", "11m", "--part-size", "5m", "--payload", "signed", "--count", "2"],
            {"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"},
            None,
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_operations(own_server, tmp_path, arguments, operations, bytes_each):
    ends = arguments[0] == "delete" or "--count" in arguments
    time_limit = ENOUGH if ends else MANY if arguments[0] == "mixed" else QUICK
    run = Run(tmp_path, own_server.endpoint, *arguments, "--concurrency", "1,4", *time_limit)
    report = run.end()
    assert [r["concurrency"] for r in report["rounds"]] == [1, 4]
    for round_ in report["rounds"]:
        assert {of["operation"] for of in round_["operations"]} == operations
        for of in round_["operations"]:
            latency = of["latency"]
            figures = [latency[name] for name in ("min", "p50", "p90", "p99", "p999", "max")]
            assert of["answers"] > 0 and figures == sorted(figures) and figures[0] > 0
            assert of["per_second"] == pytest.approx(of["answers"] / round_["seconds"])
            if bytes_each is not None:
                assert of["bytes_per_second"] == pytest.approx(bytes_each * of["per_second"])
        assert round_["client_cpu_us"] > 0
        (watched,) = round_["servers"]
        assert (watched["pid"], watched["name"]) == (own_server.pid, "slipway")
        assert watched["resident_bytes_max"] > 1 << 20
        assert watched["threads_max"] > 1 and watched["open_files_max"] > 3
    if arguments[0] == "delete":
        assert [r["answers"] for r in report["rounds"]] == [150, 150]
    if arguments[0] == "mixed" and "--count" in arguments:
        assert [r["answers"] for r in report["rounds"]] == [300, 300]
    for operation in operations:
        assert operation in run.out
    assert errors(report) == {} and report["problems"] == [] and not report["interrupted"]
    assert buckets(own_server) == []


def test_what_is_written_is_what_was_asked_for(own_server, tmp_path):
    arguments = ("put", "--size", "1500k", "--count", "7", "--objects", "7", "--keep", *ENOUGH)
    report = Run(tmp_path, own_server.endpoint, *arguments).end()
    assert report["rounds"][0]["answers"] == 7
    (bucket,) = buckets(own_server)
    tree = own_server.tree / bucket
    assert [(tree / name).stat().st_size for name in objects_on_disk(tree)] == [1500 << 10] * 7
    shutil.rmtree(own_server.tree / bucket)


def test_a_given_bucket_keeps_what_it_has(own_server, tmp_path):
    raw = own_server.raw
    assert raw.put("/mine").status == 200
    assert raw.put("/mine/kept", body=b"1").status == 200
    for arguments in (
        ["mixed", "--size", "1k", "--objects", "40"],
        ["multipart", "--size", "6m", "--part-size", "5m"],
    ):
        report = Run(tmp_path, own_server.endpoint, *arguments, "--bucket", "mine", *QUICK).end()
        assert report["rounds"][0]["answers"] > 0
        assert objects_on_disk(own_server.tree / "mine") == ["kept"]
        assert sorted(path.name for path in (own_server.tree / "mine").iterdir()) == [".slipway", "kept"]


class TestErrors:
    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            ({**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"}, "403 SignatureDoesNotMatch"),
            ({**KEYS, "AWS_ACCESS_KEY_ID": "NOBODY"}, "403 InvalidAccessKeyId"),
            ({**KEYS, "AWS_REGION": "eu-lab-7"}, "--region"),
            ({}, "AWS_ACCESS_KEY_ID is not set"),
        ],
    )
    def test_keys(self, own_server, tmp_path, keys, said):
        run = Run(tmp_path, own_server.endpoint, "get", keys=keys)
        assert run.end(status=2) == {}
        assert said in run.err and run.out == ""

    def test_where_there_is_nothing(self, own_server, tmp_path):
        run = Run(tmp_path, own_server.endpoint, "get", "--bucket", "none-of-this-name")
        run.end(status=2)
        assert "404 NoSuchBucket" in run.err
        own_server.stop()
        run = Run(tmp_path, own_server.endpoint, "get")
        run.end(status=2)
        assert "connection refused" in run.err

    @pytest.mark.parametrize(
        "arguments",
        [
            ["127.0.0.1:9000", "get"],
            ["http://127.0.0.1:9000/bucket", "get"],
            ["http://127.0.0.1:9000", "get", "--size", "1x"],
            ["http://127.0.0.1:9000", "get", "--concurrency", "4..2"],
            ["http://127.0.0.1:9000", "mixed", "--mix", "get=1,delete=2"],
            ["http://127.0.0.1:9000", "get", "--server-pid", "4194304"],
            ["http://127.0.0.1:9000", "put", "--payload", "signed", "--duration", "20m"],
            ["http://127.0.0.1:9000", "multipart", "--size", "1t", "--part-size", "5m"],
            ["http://127.0.0.1:9000", "get", "--preset", "head"],
            ["http://127.0.0.1:9000", "get", "--scale", "0.1"],
            ["http://127.0.0.1:9000", "put", "--range", "4k"],
            ["http://127.0.0.1:9000", "get", "--mix", "get=1"],
            ["http://127.0.0.1:9000", "get", "--size", "0", "--range", "4k"],
            ["http://127.0.0.1:9000", "list", "--objects", "20001"],
            ["http://127.0.0.1:9000", "multipart", "--rate", "10"],
            ["http://127.0.0.1:9000", "--preset", "multipart-10g", "--rate", "10"],
            ["http://127.0.0.1:9000", "get", "--html", "/nonexistent/report.html"],
            ["http://127.0.0.1:9000", "--preset", "other"],
            ["http://127.0.0.1:9000"],
        ],
        ids=" ".join,
    )
    def test_bad_arguments(self, tmp_path, arguments):
        run = Run(tmp_path, *arguments)
        run.end(status=2)
        assert run.err and run.out == ""

    def test_errors_are_counted_by_their_code(self, own_server, tmp_path):
        """Objects that go, and one that another program makes longer, while they are read."""
        arguments = ("get", "--size", "1k", "--objects", "4", "-c", "4", "-d", "3s", "--warm-up", "0s")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: buckets(own_server), 10)
        data = own_server.tree / buckets(own_server)[0] / "data-1024"
        poll(lambda: data.is_dir() and len(list(data.iterdir())) == 4, 10)
        time.sleep(1)
        (data / "0000000-1024").unlink()
        (data / "0000001-1024").write_bytes(b"x" * 2000)
        report = run.end(status=1)
        found = errors(report)
        assert set(found) == {"404 NoSuchKey", "an answer of the wrong length"}
        # A quarter of the requests each, from then on.
        (of,) = report["rounds"][0]["operations"]
        assert of["answers"] > sum(found.values()) / 4
        assert found["404 NoSuchKey"] == pytest.approx(found["an answer of the wrong length"], rel=0.2, abs=8)
        assert f"{found['404 NoSuchKey']} x 404 NoSuchKey" in run.out
        assert buckets(own_server) == []

    @pytest.mark.parametrize("tls", [False, True])
    def test_a_body_that_is_refused(self, make_server, tmp_path, tls):
        """The answer comes while the body is being sent, and counts, not the connection that ends with it."""
        options, trust = [], []
        if tls:
            certificate, key = make_certificate(tmp_path, "local", "localhost")
            options, trust = ["--tls-cert", str(certificate), "--tls-key", str(key)], ["--insecure"]
        server = make_server(*options)
        arguments = ("put", "--size", "6g", "--count", "3", "-c", "1", "--objects", "1", *trust, *QUICK)
        report = Run(tmp_path, server.endpoint, *arguments).end(status=1)
        found = errors(report)
        assert set(found) == {"400 EntityTooLarge"} and 1 <= found["400 EntityTooLarge"] <= 3
        assert report["rounds"][0]["answers"] == 0

    def test_a_server_that_dies(self, own_server, tmp_path):
        arguments = ("put", "--size", "64k", "-c", "4", "-d", "3s", "--warm-up", "0s")
        run = Run(tmp_path, own_server.endpoint, *arguments)
        poll(lambda: made(own_server, "put-*/*"), 10)
        time.sleep(0.5)
        own_server.kill()
        report = run.end(status=1)
        (round_,) = report["rounds"]
        found = errors(report)
        # Up to four that were under way, and then each lane every tenth of a second.
        assert set(found) <= {"connection refused", "connection reset", "connection closed"}
        assert 4 <= found["connection refused"] <= 200
        assert round_["operations"][0]["answers"] > 0
        assert round_["servers"][0]["ended"] and "has ended" in run.out
        (problem,) = report["problems"]
        assert "what this run created in slipway-bench-" in problem and "connection refused" in problem

    @pytest.mark.parametrize(
        ("uploads", "listed"),
        [
            ("", "precious/report.pdf"),
            ("", "../other/0000001-1"),
            ("", "put-1/0000001-1024"),
            ("x HTTP/1.1&#13;&#10;host: evil&#13;&#10;&#13;&#10;DELETE /b HTTP/1.1&#13;&#10;a: ", ""),
            ("precious/report.pdf", ""),
            ("/", ""),
        ],
        ids=str,
    )
    def test_a_server_that_lists_what_is_not_asked_for(self, tmp_path, uploads, listed):
        """Nothing is deleted that this run has not made, nor what a given bucket has beside its prefix."""
        asked: list[str] = []

        def body(request: http.server.BaseHTTPRequestHandler) -> str:
            asked.append(request.requestline)
            path = request.path
            key = uploads if "uploads=" in path else listed if "max-keys=1000" in path else ""
            entry = f"<Contents><Key>{key}</Key><UploadId>1</UploadId></Contents>" if key else ""
            return f"<R>{entry}</R>"

        arguments = ("put", "--size", "1k", "--count", "4", "-c", "2", "--bucket", "mine", *QUICK)
        with answering(body) as endpoint:
            report = Run(tmp_path, endpoint, *arguments).end(status=1)
        assert "was not created by this run" in report["problems"][0]
        assert [line for line in asked if not line.startswith(("PUT", "GET"))] == []

    def test_a_server_that_lists_without_end(self, tmp_path):
        """The run ends, however many keys of its own kind a server makes up."""
        deleted: list[str] = []
        numbers = itertools.count()

        def body(request: http.server.BaseHTTPRequestHandler) -> str:
            if request.command == "DELETE":
                deleted.append(request.path)
            if "max-keys=1000" not in request.path:
                return ""
            prefix = request.path.partition("prefix=")[2].partition("&")[0] or "put-1/"
            return f"<R><Key>{prefix}{next(numbers):07}-1024</Key></R>"

        arguments = ("put", "--size", "1k", "--count", "20", "--objects", "20", "-c", "2", *QUICK)
        with answering(body) as endpoint:
            report = Run(tmp_path, endpoint, *arguments).end(status=1)
        assert "the server lists more objects than were created" in report["problems"][0]
        assert len(deleted) < 200

    def test_an_endpoint_that_is_not_there(self, own_server, make_server, tmp_path):
        (tmp_path / "other").mkdir()
        other = make_server("--durability", "none", tree=tmp_path / "other")
        run = Run(tmp_path, f"{own_server.endpoint},{other.endpoint}", "put", *QUICK)
        run.end(status=2)
        assert "the endpoints do not have the same buckets" in run.err and buckets(own_server) == []
        other.stop()
        run = Run(tmp_path, f"{own_server.endpoint},{other.endpoint}", "put", *QUICK)
        run.end(status=2)
        assert "connection refused" in run.err and buckets(own_server) == []

    def test_one_server_of_two_that_dies(self, own_server, make_server, tmp_path):
        other = make_server("--durability", "none", tree=own_server.tree)
        arguments = ("put", "--size", "1k", "-c", "4", "-d", "2s", "--warm-up", "0s")
        run = Run(tmp_path, f"{other.endpoint},{own_server.endpoint}", *arguments)
        poll(lambda: made(own_server, "put-*/*"), 10)
        other.kill()
        report = run.end(status=1)
        assert errors(report) and report["problems"] == [] and buckets(own_server) == []
        assert report["rounds"][0]["server_cpu_us"] is None, "not that of one server for the answers of two"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_early_end(own_server, tmp_path, number):
    arguments = ("put", "--size", "1k", "-c", "1,2", "-d", "40s", "--warm-up", "0s")
    run = Run(tmp_path, own_server.endpoint, *arguments)
    poll(lambda: made(own_server, "put-*/*"), 10)
    time.sleep(1)
    began = time.monotonic()
    run.process.send_signal(number)
    report = run.end(status=1)
    assert time.monotonic() - began < 15
    (round_,) = report["rounds"]
    assert report["interrupted"] and round_["answers"] > 0 and 0 < round_["seconds"] < 10
    assert "interrupted: the figures above" in run.err
    assert buckets(own_server) == []


def test_an_open_loop_keeps_its_rate(own_server, tmp_path):
    arguments = ("head", "--objects", "5", "-c", "8", "--rate", "100", "-d", "2s", "--warm-up", "0s")
    report = Run(tmp_path, own_server.endpoint, *arguments).end()
    (of,) = report["rounds"][0]["operations"]
    assert of["latency"]["requests"] == 200 and 150 <= of["answers"] <= 200


def test_an_open_loop_that_is_too_much_ends(own_server, tmp_path):
    arguments = ("head", "--objects", "5", "-c", "2", "--rate", "1000000", "-d", "1s", "--warm-up", "0s")
    began = time.monotonic()
    report = Run(tmp_path, own_server.endpoint, *arguments).end(status=1)
    assert time.monotonic() - began < 12
    (of,) = report["rounds"][0]["operations"]
    unsent = report["rounds"][0]["errors_outside"]["due, and never sent"]
    # Those that were sent late are among the latencies.
    assert unsent + of["latency"]["requests"] == pytest.approx(1_000_000, abs=4)


def test_what_stays_is_told(own_server, tmp_path):
    run = Run(tmp_path, own_server.endpoint, "put", "--size", "1k", "--keep", *QUICK)
    report = run.end()
    (left,) = buckets(own_server)
    assert f"not removed: {left}" in run.out and report["settings"]["bucket"] == left


def test_the_default_region_counts(make_server, tmp_path):
    server = make_server("--region", "eu-lab-1")
    Run(tmp_path, server.endpoint, "head", *QUICK, keys={**KEYS, "AWS_DEFAULT_REGION": "eu-lab-1"}).end()


def test_an_open_loop_counts_from_when_requests_were_due(own_server, tmp_path):
    """A server that stands still for a second delays all that was due in it, not only what was under way."""
    arguments = ("head", "--objects", "5", "-c", "4", "--rate", "200", "-d", "4s", "--warm-up", "0s")
    run = Run(tmp_path, own_server.endpoint, *arguments)
    poll(lambda: made(own_server, "data-*/0000004-*"), 10)
    time.sleep(1)
    own_server.signal(signal.SIGSTOP)
    time.sleep(1.2)
    own_server.signal(signal.SIGCONT)
    report = run.end()
    latency = report["rounds"][0]["operations"][0]["latency"]
    assert latency["requests"] == 800 and latency["max"] > 1_000_000
    # 240 of 800 were due meanwhile, half of them at least half a second late.
    assert latency["p90"] > 400_000


def test_several_endpoints(make_server, tmp_path):
    server = make_server("--durability", "none", listen=("127.0.0.1:0", "127.0.0.1:0"))
    endpoints = ",".join(server.endpoints)
    report = Run(tmp_path, endpoints, "--preset", "gateways", "-c", "2", *QUICK).end()
    assert [(r["endpoints"], r["concurrency"]) for r in report["rounds"]] == [(1, 2), (2, 4)] * 3
    assert all(r["servers"][0]["pid"] == server.pid for r in report["rounds"])
    assert buckets(server) == []


@pytest.mark.parametrize(
    "arguments",
    [["get", "--size", "64k"], ["get", "--size", "1m", "--range", "64k"], ["put"], ["head"], ["mixed"]],
)
def test_a_server_that_stores_nothing(make_server, tmp_path, arguments):
    server = make_server(tree="null:")
    report = Run(tmp_path, server.endpoint, *arguments, "--objects", "40", *QUICK).end()
    assert report["rounds"][0]["answers"] > 0


def test_tls(make_server, tmp_path):
    certificate, key = make_certificate(tmp_path, "local", "localhost")
    server = make_server("--durability", "none", "--tls-cert", str(certificate), "--tls-key", str(key))
    endpoint = f"https://localhost:{server.address[1]}"
    for trust in (["--insecure"], ["--ca", str(certificate)]):
        report = Run(tmp_path, endpoint, "get", "--size", "1m", "--objects", "2", *trust, *QUICK).end()
        assert report["rounds"][0]["answers"] > 0
        report = Run(tmp_path, endpoint, "put", "--size", "3m", "--count", "5", *trust, *ENOUGH).end()
        assert report["rounds"][0]["answers"] == 5
    other, _ = make_certificate(tmp_path, "other", "localhost")
    run = Run(tmp_path, endpoint, "get", "--ca", str(other))
    run.end(status=2)
    assert "certificate" in run.err


def test_keys_from_a_file(own_server, tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(f'access_key = "{ACCESS_KEY}"\nsecret_key = "{SECRET_KEY}"\n')
    file.chmod(0o600)
    arguments = ("head", "--objects", "1", "--size", "1", "--credentials-file", str(file), *QUICK)
    assert Run(tmp_path, own_server.endpoint, *arguments, keys={}).end()["rounds"][0]["answers"] > 0


def test_a_terminal_shows_how_far_it_is(own_server, tmp_path):
    ours, theirs = pty.openpty()
    run = Run(tmp_path, own_server.endpoint, "head", "--objects", "3", *QUICK, stderr=theirs)
    os.close(theirs)
    shown = b""
    # Reading fails once the other end is closed.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    assert run.process.wait(20) == 0
    for part in (
        b"warming up",
        b"step 1 of 1: head 1 MiB, 16 at once: 0 of 1 s, ",
        b"removing what was created",
    ):
        assert part in shown
    assert shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize("preset", ["head", "multipart-10g", "ranged-10g"])
def test_presets(own_server, tmp_path, preset):
    arguments = ("--preset", preset, "--scale", "0.02", "-c", "2,3", *MANY)
    report = Run(tmp_path, own_server.endpoint, *arguments).end()
    assert report["settings"]["preset"] == preset
    assert [r["concurrency"] for r in report["rounds"]] == [2, 3] and errors(report) == {}
    if preset == "multipart-10g":
        # 3 parts of 64 MiB, once.
        for round_ in report["rounds"]:
            assert {of["operation"]: of["answers"] for of in round_["operations"]}["UploadPart"] == 3
    assert buckets(own_server) == []


class Page(html.parser.HTMLParser):
    """Finds what a page would fetch, and whether its elements are closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched, self.open, self.seen = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href", "srcset", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_reports_and_comparison(own_server, tmp_path):
    page, table = tmp_path / "report.html", tmp_path / "report.csv"
    arguments = ("mixed", "--size", "1k", "-c", "1,3", "--repeat", "2", "--objects", "20", *QUICK)
    run = Run(tmp_path, own_server.endpoint, *arguments, "--html", str(page), "--csv", str(table))
    report = run.end()
    assert [(r["round"], r["concurrency"]) for r in report["rounds"]] == [(1, 1), (1, 3), (2, 1), (2, 3)]
    assert "medians of all rounds" in run.out
    parsed = Page(page.read_text())
    assert parsed.fetched == [] and "script" not in parsed.seen
    assert parsed.seen.count("svg") > 8 and parsed.seen.count("polyline") > 8
    assert "@import" not in page.read_text() and "url(" not in page.read_text()
    rows = list(csv.DictReader(table.open(newline="")))
    assert len(rows) == sum(len(r["operations"]) for r in report["rounds"])
    assert float(rows[0]["per_second"]) == pytest.approx(
        report["rounds"][0]["operations"][0]["per_second"], rel=0.01
    )
    for written in (page, table):
        assert SECRET_KEY not in written.read_text() and ACCESS_KEY not in written.read_text()

    for round_ in report["rounds"]:
        for of in round_["operations"]:
            of["per_second"] *= 2
    (tmp_path / "twice.json").write_text(json.dumps(report))
    compared = compare(run.json, tmp_path / "twice.json")
    lines = re.findall(r"^ +(?:1|3) (?:Get|Put|Head|Delete)Object +2\.00.? +1\.00~", compared, re.MULTILINE)
    assert len(lines) >= 6, compared
    for text, said in [
        ('{"format": 2}', "not a report of slipway bench"),
        ('{"format": 1}', "the report has format 1"),
        ("x", "not a report of slipway bench"),
        (json.dumps({**report, "rounds": []}), "no step in common"),
    ]:
        (tmp_path / "bad.json").write_text(text)
        assert said in compare(run.json, tmp_path / "bad.json", status=2)


def compare(first: Path, second: Path, status: int = 0) -> str:
    command = [binary(), "bench", "compare", first, second]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == status, done
    return done.stdout + done.stderr
