"""--access-log: a line for each request, nothing secret in it, and none lost when the file is rotated."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

import boto3
import pytest
from botocore.config import Config
from test_operations import metrics
from test_reload import reload

from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY, StartFailed, binary
from support.wire import poll

# Amazon's fields: words, [a time], "quoted text".
FIELD = re.compile(r'\[[^]]*\]|"[^"]*"|\S+')
FIELDS = 26


@pytest.fixture
def log(tmp_path):
    return tmp_path / "access.log"


@pytest.fixture
def server(make_server, log):
    return make_server("--access-log", str(log))


@pytest.fixture
def bucket(server) -> Bucket:
    return Bucket(server, "bucket").create()


def lines(log, count: int) -> list[dict]:
    """All of them, once there are so many."""
    assert poll(lambda: log.read_text().count("\n") >= count, 10)
    text = log.read_text()
    assert text.count("\n") == count and text.endswith("\n"), text
    return [json.loads(line) for line in text.splitlines()]


def line_of(log, request_id: str) -> dict:
    assert poll(lambda: request_id in log.read_text(), 10)
    return next(json.loads(line) for line in log.read_text().splitlines() if request_id in line)


def test_fields(bucket, log):
    answer = bucket.put("a b\n", pattern(MIB), headers={"user-agent": 'one "two"', "referer": "http://here/"})
    line = line_of(log, answer.headers["x-amz-request-id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("time"))
    assert 0 < line.pop("answered_us") <= line.pop("total_us") < 60_000_000
    assert line.pop("bytes_in") >= MIB
    host, port = bucket.server.address
    assert line == {
        "request_id": answer.headers["x-amz-request-id"],
        "remote_ip": "127.0.0.1",
        "user": "root",
        "access_key": ACCESS_KEY,
        "operation": "PutObject",
        "bucket": "bucket",
        "key": "a b\n",
        "method": "PUT",
        "target": bucket.path("a b\n"),
        "status": 200,
        "bytes_out": 0,
        "object_bytes": MIB,
        "signature": "SigV4",
        "presigned": False,
        "host": f"{host}:{port}",
        "user_agent": 'one "two"',
        "referer": "http://here/",
    }


def test_what_was_read(bucket, log):
    bucket.put("key", pattern(MIB))
    whole, part = bucket.get("key"), bucket.get("key", headers={"range": "bytes=5-9"})
    head, missing = bucket.raw.head(bucket.path("key")), bucket.get("nothing")
    found = [line_of(log, answer.headers["x-amz-request-id"]) for answer in (whole, part, head, missing)]
    assert [line["operation"] for line in found] == ["GetObject", "GetObject", "HeadObject", "GetObject"]
    assert [line["bytes_out"] for line in found] == [MIB, 5, 0, len(missing.body)]
    assert [line.get("object_bytes") for line in found] == [MIB, MIB, MIB, None]
    assert found[3]["status"] == 404 and found[3]["error"] == "NoSuchKey"


def test_what_was_made_of_other_objects(bucket, log):
    bucket.put("key", pattern(MIB))
    source = {"x-amz-copy-source": f"{bucket.name}/key"}
    copied = bucket.raw.request("PUT", bucket.path("copy"), headers=source)
    upload = bucket.create_upload("parts")
    parts = [(1, bucket.put_part("parts", upload, 1, pattern(5 * MIB)).etag)]
    parts.append((2, bucket.put_part("parts", upload, 2, b"end").etag))
    completed = bucket.complete("parts", upload, parts)
    gone = bucket.delete("key")
    found = [line_of(log, answer.headers["x-amz-request-id"]) for answer in (copied, completed, gone)]
    assert [line["operation"] for line in found] == [
        "CopyObject",
        "CompleteMultipartUpload",
        "DeleteObject",
    ]
    assert [line.get("object_bytes") for line in found] == [MIB, 5 * MIB + 3, None]


def test_a_download_that_is_broken_off(bucket, log):
    bucket.put("key", pattern(64 * MIB))
    with bucket.raw.connect() as connection:
        connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes)
        request_id = connection.head().headers["x-amz-request-id"]
        connection.read(1000)
        connection.reset()
    assert line_of(log, request_id)["bytes_out"] < 64 * MIB


def test_strangers(bucket, log):
    """Who a request says it is from is told only if it is."""
    anonymous = bucket.raw.get(bucket.path("key"), anonymous=True)
    forged = bucket.raw.get(bucket.path("key"), headers={"authorization": f"AWS {ACCESS_KEY}:AAAA"})
    for answer, error in ((anonymous, "AccessDenied"), (forged, None)):
        line = line_of(log, answer.headers["x-amz-request-id"])
        assert not {"user", "access_key", "signature"} & line.keys()
        assert line["status"] == answer.status >= 400
        assert line["bucket"] == "bucket" and line["key"] == "key"
        assert error is None or line["error"] == error


def test_requests_that_are_none(server, log):
    answer = server.raw.get("/no_bucket%ff", anonymous=True)
    assert line_of(log, answer.headers["x-amz-request-id"])["target"] == "/no_bucket%ff"


@pytest.mark.parametrize("form", ["json", "s3"])
def test_what_is_too_long_is_cut(make_server, log, form):
    """A stranger does not choose how long a line is."""
    server = make_server("--access-log", str(log), "--access-log-format", form)
    for method, target in (("GET", "/bucket?x=1&Signature=" + "s" * 60_000), ("M" * 60_000, "/")):
        with server.connect() as connection:
            connection.send(f"{method} {target} HTTP/1.1\r\nHost: me:hush@s3.test\r\n\r\n".encode())
            assert connection.head().status in (400, 501)
    assert poll(lambda: log.read_text().count("\n") == 2, 10)
    text = log.read_text()
    assert len(text) < 2000 and "hush" not in text and "sss" not in text
    assert "/bucket?x=1" in text and "M" * 32 in text and "M" * 33 not in text


@pytest.mark.parametrize("version, secret", [("s3v4", "X-Amz-Signature"), ("s3", "Signature")])
def test_no_signature_is_told(bucket, log, version, secret):
    s3 = boto3.client(
        "s3",
        endpoint_url=bucket.server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
        config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    bucket.put("key", b"text")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "key"})
    target = url.removeprefix(bucket.server.endpoint)
    answer = bucket.raw.get(target, anonymous=True, headers={"referer": url, "user-agent": url})
    assert answer.body == b"text"
    line = line_of(log, answer.headers["x-amz-request-id"])
    assert line["presigned"] is True
    signature = re.search(rf"{secret}=([^&]+)", url)[1]
    assert f"{secret}=REDACTED" in line["target"]
    assert line["referer"] == line["user_agent"] == url.partition("?")[0]
    assert signature not in log.read_text()
    assert SECRET_KEY not in log.read_text()


def test_the_format_of_amazon(make_server, log):
    server = make_server("--access-log", str(log), "--access-log-format", "s3")
    bucket = Bucket(server, "bucket").create()
    bucket.put("a b", b"text")
    bucket.get("a b", headers={"user-agent": 'says "hello"\\'})
    listing = bucket.raw.get("/bucket", query={"list-type": "2"})
    assert poll(lambda: listing.headers["x-amz-request-id"] in log.read_text(), 10)
    rows = {row[6]: row for row in (FIELD.findall(line) for line in log.read_text().splitlines())}
    assert all(len(row) == FIELDS for row in rows.values())
    assert rows.keys() == {"REST.PUT.BUCKET", "REST.PUT.OBJECT", "REST.GET.OBJECT", "REST.GET.BUCKET"}
    get = rows["REST.GET.OBJECT"]
    assert re.fullmatch(r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]", get[2])
    assert re.fullmatch(r"[0-9a-f]{64}", get[0]) and get[4] == get[0]
    assert (get[1], get[3], get[7]) == ("bucket", "127.0.0.1", "a%20b")
    assert get[8] == f'"GET {bucket.path("a b")} HTTP/1.1"'
    assert get[9:13] == ["200", "-", "4", "4"]
    assert get[16] == '"says %22hello%22%5C"'
    assert get[19:22] == ["SigV4", "-", "AuthHeader"]


def test_rotation(bucket, log):
    """What is under way while the file is renamed is in the old one or in the new one."""
    old = log.with_name("access.log.1")
    for n in range(50):
        bucket.put(f"key-{n}", b"")
        if n == 25:
            log.rename(old)
            reload(bucket.server)
    bucket.server.stop()
    rows = [json.loads(line) for file in (old, log) for line in file.read_text().splitlines()]
    # Lines of different threads may change places.
    assert sorted(row["key"] for row in rows if "key" in row) == sorted(f"key-{n}" for n in range(50))
    assert log.read_text()


def test_a_reload_takes_another_file(make_server, tmp_path):
    config, first, second = (tmp_path / name for name in ("slipway.toml", "first.log", "second.log"))
    config.write_text(f"access-log = '{first}'\n")
    server = make_server("--config", str(config))
    server.raw.get("/")
    config.write_text(f"access-log = '{tmp_path}/nowhere/access.log'\n")
    assert "nowhere" in reload(server, "not reloaded")
    config.write_text(f"access-log = '{second}'\n")
    assert "--access-log" in reload(server)
    server.raw.get("/")
    config.write_text("")
    assert "--access-log (turning it on or off)" in reload(server, "needs a restart")
    server.raw.get("/")
    server.stop()
    assert (first.read_text().count("\n"), second.read_text().count("\n")) == (1, 2)


def test_the_last_lines_are_written_at_the_end(bucket, log):
    bucket.put("last", b"")
    bucket.server.signal(signal.SIGTERM)
    assert bucket.server.wait() == 0
    assert json.loads(log.read_text().splitlines()[-1])["key"] == "last"


def test_only_owner_and_group_may_read_it(bucket, log):
    assert log.stat().st_mode & 0o777 == 0o640 & ~os.umask(0o022)


def test_it_goes_on_where_it_was(make_server, log):
    log.write_text("before\n")
    server = make_server("--access-log", str(log))
    server.raw.get("/")
    server.stop()
    assert log.read_text().startswith("before\n{")


def test_stderr(make_server):
    server = make_server("--access-log", "stderr")
    answer = server.raw.get("/")
    poll(lambda: answer.headers["x-amz-request-id"] in server.log, 10)
    line = next(line for line in server.log.splitlines() if answer.headers["x-amz-request-id"] in line)
    assert json.loads(line)["operation"] == "ListBuckets"


def test_a_file_that_can_not_be_opened_ends_the_start(make_server, tmp_path):
    with pytest.raises(StartFailed, match=f"--access-log {tmp_path}: Is a directory"):
        make_server("--access-log", str(tmp_path))


def test_what_does_not_fit_is_counted(make_server):
    server = make_server("--access-log", "/dev/full", "--ops-listen", "127.0.0.1:0")
    for _ in range(5):
        assert server.raw.get("/").status == 200
    assert poll(lambda: metrics(server)['slipway_access_log_lines_total{result="dropped"}'] == 5, 10)
    assert metrics(server)['slipway_access_log_lines_total{result="written"}'] == 0
    assert server.log.count("lines of the access log were dropped") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_line_that_a_full_disk_tore_stands_alone(make_server, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", disk], check=True)
    try:
        (disk / "filler").write_bytes(bytes(28 << 10))
        log = disk / "access.log"
        server = make_server("--access-log", str(log), "--ops-listen", "127.0.0.1:0")
        # One page is left, which is the end of one of these lines for few only.
        for _ in range(20):
            server.raw.get("/")
        poll(lambda: "lines of the access log were dropped" in server.log)
        assert log.stat().st_size == 4096
        (disk / "filler").unlink()
        server.raw.get("/")
        poll(lambda: log.read_text().count('"status"') > log.read_bytes()[:4096].count(b'"status"'))
        written, torn = [], []
        for line in log.read_text().splitlines():
            try:
                written.append(json.loads(line))
            except json.JSONDecodeError:
                torn.append(line)
        assert written and len(torn) <= 1, torn
        counts = {
            result: f'slipway_access_log_lines_total{{result="{result}"}}'
            for result in ("written", "dropped")
        }
        poll(lambda: sum(metrics(server)[name] for name in counts.values()) == 21)
        assert metrics(server)[counts["written"]] == len(written)
        # Told once lines are lost no more.
        server.raw.get("/")
        assert poll(lambda: "are missing from it lost=" in server.log, 10)
        server.stop()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_line_that_another_server_tore_stands_alone(make_server, log, tmp_path):
    log.write_text('{"time":"2026-')
    server = make_server("--access-log", str(log))
    server.raw.get("/")
    assert server.stop() == 0
    with open(log, "a") as file:
        file.write('{"time":"2027-')
    # The same of one that is open already, when a reload opens it anew.
    server = make_server("--access-log", str(log), tree=tmp_path / "other")
    server.raw.get("/")
    assert poll(lambda: log.read_text().count("\n") == 4, 10)
    with open(log, "a") as file:
        file.write('{"time":"2028-')
    reload(server)
    server.raw.get("/")
    assert server.stop() == 0
    torn, whole = [], []
    for line in log.read_text().splitlines():
        try:
            whole.append(json.loads(line))
        except json.JSONDecodeError:
            torn.append(line)
    assert torn == ['{"time":"2026-', '{"time":"2027-', '{"time":"2028-'] and len(whole) == 3


def test_standard_error_that_nobody_reads_holds_up_nobody(tmp_path):
    """Neither by lines of requests nor by those of the server itself, and the server stops when it is told to."""
    options = ["--listen", "127.0.0.1:0", "--access-log", "stderr", "--log", "debug"]
    process = subprocess.Popen(
        [binary(), "serve", *options, tmp_path / "tree"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
    )
    try:
        port = next(
            int(m[1]) for line in process.stdout if (m := re.search(rb"http://127.0.0.1:(\d+)", line))
        )
        # Each is refused, which `debug` logs, and far more than a pipe holds.
        for _ in range(600):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            client.request("GET", "/bucket/key", headers={"user-agent": "x" * 900})
            assert client.getresponse().status == 404
            client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_pipe_gets_whole_lines_as_fast_as_it_is_read(make_server, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        server = make_server("--access-log", str(pipe))
        for _ in range(300):
            server.raw.get("/")
        text, deadline = b"", time.monotonic() + 20
        while text.count(b"\n") < 300 and time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 1000)
        assert len([json.loads(line) for line in text.splitlines()]) == 300
    finally:
        os.close(reader)


def test_lines_are_counted(make_server, log):
    server = make_server("--access-log", str(log), "--ops-listen", "127.0.0.1:0")
    for _ in range(5):
        server.raw.get("/")
    assert poll(lambda: metrics(server)['slipway_access_log_lines_total{result="written"}'] == 5, 10)


def test_a_client_without_an_address(make_server, tmp_path, log):
    path = tmp_path / "socket"
    make_server("--access-log", str(log), listen=[f"unix:{path}"])
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET / HTTP/1.1\r\nHost: s3\r\nConnection: close\r\n\r\n")
        while client.recv(4096):
            pass
    assert "remote_ip" not in lines(log, 1)[0]
