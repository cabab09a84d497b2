"""--ops-listen: live, ready, metrics."""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from file_systems import mounts

from support import expect, tables
from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import NOBODY, REPOSITORY, binary
from support.wire import poll

OPTIONS = ("--ops-listen", "127.0.0.1:0")


def look(server, path: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(server.operations + path, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(server) -> dict[str, float]:
    """Each sample by its name and labels, as they are written."""
    status, text = look(server, "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture
def server(make_server):
    return make_server(*OPTIONS)


@pytest.fixture
def bucket(server) -> Bucket:
    return Bucket(server, "bucket").create()


def test_live_and_ready(server):
    assert look(server, "/-/live") == (200, "live\n")
    assert look(server, "/-/ready") == (200, "ready\n")
    assert look(server, "/-/ready", "HEAD") == (200, "")
    assert metrics(server)["slipway_ready"] == 1


def test_nothing_else(server, bucket):
    for path in ("/", "/bucket", "/-/", "/-/stop", "/metrics/", "/../metrics"):
        assert look(server, path)[0] == 404, path
    for method in ("PUT", "POST", "DELETE", "OPTIONS"):
        assert look(server, "/metrics", method)[0] == 405, method


def test_not_on_the_port_of_s3(server, bucket):
    for path in ("/-/live", "/-/ready", "/metrics"):
        assert server.raw.get(path, anonymous=True).status in (400, 403, 404)


def operations(server) -> tuple[str, int]:
    host, _, port = server.operations.removeprefix("http://").rpartition(":")
    return host, int(port)


LIVE = b"GET /-/live HTTP/1.1\r\nHost: x\r\n\r\n"


class TestThoseWhoKeepConnections:
    @pytest.mark.parametrize("sent", [b"", b"GET /-/li", LIVE])
    def test_keep_nobody_out(self, server, sent):
        with ExitStack() as stack:
            for _ in range(3 * tables.limit("OPERATIONS_CONNECTIONS_MAX")):
                stack.enter_context(socket.create_connection(operations(server))).sendall(sent)
            started = time.monotonic()
            for path in ("/-/live", "/-/ready", "/metrics"):
                assert look(server, path)[0] == 200
            # A head has three seconds.
            assert time.monotonic() - started < 2

    def test_also_if_they_come_again_and_again(self, server):
        done = threading.Event()

        def hold() -> None:
            while not done.is_set():
                with suppress(OSError), socket.create_connection(operations(server), 10) as connection:
                    connection.settimeout(10)
                    while not done.is_set():
                        connection.sendall(LIVE)
                        if not connection.recv(1000):
                            break
                        done.wait(0.5)

        with ThreadPoolExecutor(100) as pool:
            for _ in range(100):
                pool.submit(hold)
            try:
                time.sleep(0.5)
                for _ in range(5):
                    started = time.monotonic()
                    assert look(server, "/-/ready")[0] == 200
                    assert time.monotonic() - started < 2
            finally:
                done.set()

    def test_have_one_answer_each(self, server):
        with socket.create_connection(operations(server)) as connection:
            connection.sendall(LIVE * 10)
            connection.settimeout(10)
            with suppress(ConnectionResetError):
                answers = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answers.count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize("path", ["/-/live", "/-/ready", "/metrics"])
def test_a_client_that_closes_its_side_is_answered(server, path):
    with socket.create_connection(operations(server), 10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")


def listening(pid: int) -> list[str]:
    """Its sockets that take connections, TCP's and others."""
    process = Path(f"/proc/{pid}")
    sockets = {os.readlink(fd) for fd in (process / "fd").iterdir() if fd.is_symlink()}
    found = []
    for table, state, inode, of_listener in [
        ("tcp", 3, 9, "0A"),
        ("tcp6", 3, 9, "0A"),
        ("unix", 3, 6, "00010000"),
    ]:
        lines = [line.split() for line in (process / "net" / table).read_text().splitlines()[1:]]
        found += [
            f"{table} {words[inode]}"
            for words in lines
            if words[state] == of_listener and f"socket:[{words[inode]}]" in sockets
        ]
    return found


def test_none_without_the_option(make_server, tmp_path):
    server = make_server()
    assert not any("operations" in line for line in server.lines)
    assert len(listening(server.pid)) == 1
    assert len(listening(make_server("--ops-listen", "127.0.0.1:0", tree=tmp_path / "other").pid)) == 2


def test_requests_are_counted(server, bucket):
    bucket.put("key", pattern(MIB))
    for _ in range(3):
        assert bucket.get("key").status == 200
    bucket.get("nothing")
    server.raw.get("/no_bucket%ff")
    # The last bytes of an answer arrive before the request has ended.
    poll(lambda: metrics(server).get('slipway_errors_total{code="NoSuchKey"}') == 1, 10)
    found = metrics(server)
    assert found['slipway_requests_total{operation="GetObject",status="2xx"}'] == 3
    assert found['slipway_requests_total{operation="GetObject",status="4xx"}'] == 1
    assert found['slipway_request_seconds_count{operation="GetObject"}'] == 4
    assert found['slipway_sent_bytes_total{operation="GetObject"}'] > 3 * MIB
    assert found['slipway_received_bytes_total{operation="PutObject"}'] == MIB
    assert found['slipway_storage_call_seconds_count{call="commit"}'] == 1
    assert found['slipway_storage_calls_refused_total{call="get_object"}'] == 1
    assert found['slipway_storage_calls_failed_total{call="get_object"}'] == 0
    assert found['slipway_storage_call_bytes_total{call="get_object"}'] == 3 * MIB
    assert found['slipway_storage_call_bytes_total{call="write"}'] == MIB
    assert found["slipway_requests_in_progress"] == 0
    assert found["slipway_connections_accepted_total"] >= 1
    buckets = [
        value
        for name, value in found.items()
        if name.startswith('slipway_request_seconds_bucket{operation="GetObject"')
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 4


def test_what_is_given_up_is_counted_when_it_is(server, bucket):
    bucket.put("key", pattern(64 * MIB))
    before = metrics(server)
    with bucket.raw.connect() as connection:
        connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes)
        connection.socket.recv(1000)
        assert metrics(server)["slipway_requests_in_progress"] == 1
    name = 'slipway_request_seconds_count{operation="GetObject"}'
    poll(lambda: metrics(server).get(name, 0) == before.get(name, 0) + 1, 20)
    assert metrics(server)['slipway_sent_bytes_total{operation="GetObject"}'] < 64 * MIB


def test_a_unix_socket(make_server, tmp_path):
    path = tmp_path / "operations"
    server = make_server("--ops-listen", f"unix:{path}")
    assert server.operations == f"unix:{path}"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(b"GET /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nready\n")


class TestNotReady:
    def check(self, server, why: str) -> None:
        poll(lambda: look(server, "/-/ready")[0] == 503, 10)
        assert why in look(server, "/-/ready")[1]
        assert look(server, "/-/live")[0] == 200
        assert metrics(server)["slipway_ready"] == 0

    def test_without_the_directory(self, server):
        away = server.tree.with_name("away")
        server.tree.rename(away)
        self.check(server, "leads to another directory than at the start")
        away.rename(server.tree)
        poll(lambda: look(server, "/-/ready")[0] == 200, 10)

    def test_without_the_room_that_is_wanted(self, make_server):
        server = make_server(*OPTIONS, "--ready-free", "1000000000")
        self.check(server, "DIR: ")
        self.check(server, "bytes are free")

    def test_without_descriptors(self, make_server):
        server = make_server(*OPTIONS)

        def leave_three() -> bool:
            soft = len(os.listdir(f"/proc/{server.pid}/fd")) + 3
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, soft))
            return look(server, "/-/ready")[0] == 503

        # Again and again: what the start had open may be closed in between.
        poll(leave_three)
        self.check(server, "file descriptors")

    def test_while_it_stops(self, server, bucket):
        bucket.put("key", pattern(64 * MIB))
        with bucket.raw.connect() as connection:
            connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes)
            connection.socket.recv(1000)
            server.signal(signal.SIGTERM)
            self.check(server, "the server is stopping")


@contextmanager
def a_tmpfs(where: Path, options: str) -> Iterator[None]:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", where], capture_output=True)
    if done.returncode:
        pytest.skip(f"this machine does not mount that: {done.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


def test_what_comes_before_connections_are_closed(make_server):
    """With --drain-delay a gateway that was told to stop answers on, also who comes then."""
    server = make_server(*OPTIONS, "--drain-delay", "2")
    bucket = Bucket(server, "bucket").create()
    with bucket.raw.connect() as connection:
        assert bucket.raw.put(bucket.path("key"), b"data", connection=connection).status == 200
        before = time.monotonic()
        server.signal(signal.SIGTERM)
        poll(lambda: look(server, "/-/ready")[0] == 503, 10)
        assert bucket.raw.get(bucket.path("key"), connection=connection).body == b"data"
        assert bucket.get("key").body == b"data"
        assert server.wait() == 0
        assert time.monotonic() - before >= 2
        assert connection.is_closed(5)
    said = "serving goes on for --drain-delay (2 s), then requests in progress have --drain-timeout (30 s)"
    assert f"stopping: {said}" in server.log


def test_a_second_signal_ends_the_delay(make_server):
    server = make_server(*OPTIONS, "--drain-delay", "600")
    server.signal(signal.SIGTERM)
    poll(lambda: look(server, "/-/ready")[0] == 503, 10)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


class TestAsking:
    """`slipway ready`."""

    def ask(self, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [binary(), "ready", *arguments], env=env or {}, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    def test_ready(self, make_server, tmp_path):
        server = make_server("--ops-listen", "0.0.0.0:0")
        port = server.operations.rpartition(":")[2]
        for host in ("", "127.0.0.1", "localhost", "0.0.0.0"):
            assert self.ask(f"{host}:{port}") == (0, "ready\n"), host
        assert self.ask(server.operations) == (0, "ready\n")
        # What tells the server where to listen tells where to ask.
        assert self.ask(env={"SLIPWAY_OPS_LISTEN": f":{port}"}) == (0, "ready\n")
        unix = make_server("--ops-listen", f"unix:{tmp_path / 'operations'}")
        assert self.ask(unix.operations) == (0, "ready\n")

    def test_not_ready(self, make_server):
        server = make_server(*OPTIONS, "--ready-free", "1000000000")
        status, text = self.ask(server.operations)
        assert status == 1
        assert "not ready" in text and "bytes are free" in text

    def test_no_answer(self, server, tmp_path):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            status, text = self.ask(f"127.0.0.1:{nobody.getsockname()[1]}")
            assert status == 1
            assert "refused" in text
        status, text = self.ask(server.endpoint)
        assert status == 1
        assert "not that of a gateway's --ops-listen" in text
        for wrong in ("foo", "9090", "localhost:", "a:b", "unix:"):
            status, text = self.ask(wrong)
            assert status == 2 and "expected HOST:PORT, :PORT or unix:PATH" in text, text
        for address in ("unix:/none", "example.invalid:1"):
            assert self.ask(address)[0] == 1, address
        assert self.ask()[0] == 2

    def test_an_answer_that_does_not_end(self):
        """The time that there is for an answer is not that of each of its bytes."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            done = threading.Event()

            def drip() -> None:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    while not done.wait(0.5):
                        connection.sendall(b"r")

            dripping = threading.Thread(target=drip)
            dripping.start()
            started = time.monotonic()
            try:
                status, text = self.ask(f"127.0.0.1:{listener.getsockname()[1]}")
            finally:
                done.set()
                dripping.join()
        assert status == 1 and "no answer within 5 s" in text
        assert time.monotonic() - started < 10

    def test_a_socket_that_nobody_accepts_on(self, tmp_path):
        path = tmp_path / "operations"
        with ExitStack() as stack:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen(0)
            # Until there is no room any more.
            with suppress(BlockingIOError):
                while True:
                    waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                    waiting.setblocking(False)
                    waiting.connect(str(path))
            started = time.monotonic()
            status, text = self.ask(f"unix:{path}")
            assert status == 1 and "no answer within 5 s" in text
            assert time.monotonic() - started < 10

    def test_waiting(self, make_server, tmp_path):
        path = tmp_path / "operations"
        command = [binary(), "ready", "--wait", "60", f"unix:{path}"]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, env={})
        make_server("--ops-listen", f"unix:{path}")
        assert waiting.communicate(timeout=60) == (b"ready\n", None)
        before = time.monotonic()
        assert self.ask("--wait", "1", "unix:/none")[0] == 1
        assert time.monotonic() - before < 10


class TestTop:
    """`slipway top`."""

    def look(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        command = [binary(), "top", "--interval", "1", "--count", "1", *arguments]
        return subprocess.run(command, env=env or {}, capture_output=True, text=True, timeout=60)

    def test_what_happens_between_two_looks(self, server, bucket):
        bucket.put("key", b"text")
        command = [binary(), "top", "--interval", "1", "--count", "2", server.operations]
        shown = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={})
        while shown.poll() is None:
            bucket.get("key")
            bucket.get("nothing")
            time.sleep(0.01)
        text = shown.stdout.read()
        assert shown.returncode == 0
        assert text.count("1 gateway, 1 ready") == 2
        get = re.search(r"^GetObject +(\S+) +(\d\S*[um]s) +(\d\S*[um]s) +(\S+) +0 ", text, re.M)
        assert float(get[1]) > float(get[4]) > 0, text
        assert "errors: NoSuchKey" in text
        assert re.search(r"^get_object +\d", text, re.M), text
        assert "PutObject" not in text, "that was before"
        assert re.search(r"^DIR: .* free$", text, re.M), text
        assert "\x1b" not in text, "nobody sits at a terminal"

    def test_several(self, server, make_server, tmp_path):
        other = make_server("--ops-listen", f"unix:{tmp_path / 'operations'}", tree=tmp_path / "other")
        done = self.look(server.operations, other.operations)
        assert done.returncode == 0 and "2 gateways, 2 ready" in done.stdout
        both = f"{server.operations},{other.operations}"
        assert "2 gateways, 2 ready" in self.look(env={"SLIPWAY_OPS_LISTEN": both}).stdout
        done = self.look(server.operations, "unix:/none")
        assert done.returncode == 1
        assert "2 gateways, 1 ready, 1 does not answer" in done.stdout
        assert "unix:/none: No such file" in done.stdout

    def test_nobody(self, server):
        done = self.look("unix:/none")
        assert done.returncode == 2 and "unix:/none: No such file" in done.stderr
        done = self.look(server.endpoint)
        assert done.returncode == 2 and "not that of a gateway's --ops-listen" in done.stderr
        assert self.look().returncode == 2


def test_volumes(server, bucket):
    found = metrics(server)
    room = os.statvfs(server.tree)
    assert found['slipway_volume_bytes{volume="."}'] == room.f_blocks * room.f_frsize
    assert 0 < found['slipway_volume_free_bytes{volume="."}'] <= room.f_bfree * room.f_frsize


def test_a_bucket_that_is_a_volume(server, bucket, tmp_path):
    where = server.tree / "mounted"
    where.mkdir()
    with a_tmpfs(where, "size=8m"):
        assert metrics(server)['slipway_volume_bytes{volume="mounted"}'] == 8 * MIB


@pytest.fixture
def hang(passthrough, tmp_path) -> Iterator[Callable[[Path], subprocess.Popen]]:
    """Mounts a file system there that has stopped; its process goes on after a SIGCONT."""
    under = tmp_path / "under"
    under.mkdir()
    with ExitStack() as stack:

        def hung(target: Path) -> subprocess.Popen:
            target.mkdir()
            process = mounts.mount_passthrough(passthrough, stack, under, target)
            stack.callback(process.send_signal, signal.SIGCONT)
            process.send_signal(signal.SIGSTOP)
            return process

        yield hung


def threads(server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/task"))


class TestVolumesThatDoNotAnswer:
    def test_take_one_thread_however_many_ask(self, make_server, hang):
        """And leave the gateway ready for the other buckets, and the others' figures to be seen."""
        server = make_server(*OPTIONS)
        bucket = Bucket(server, "bucket").create()
        other = server.tree / "other"
        other.mkdir()
        with a_tmpfs(other, "size=8m"):
            assert look(server, "/-/ready")[0] == 200
            process, before = hang(server.tree / "hung"), threads(server)
            paths = ["/-/ready", "/-/ready", "/metrics"] * 100
            with ThreadPoolExecutor(60) as pool:
                answers = list(pool.map(lambda path: look(server, path), paths))
            assert threads(server) < before + 20
            expect.ok(bucket.put("key", b"data"))
            ready = [answer for path, answer in zip(paths, answers, strict=True) if path == "/-/ready"]
            assert set(ready) == {(200, "ready\n")}
            found = metrics(server)
            assert found["slipway_ready"] == 1
            assert found['slipway_volume_answers{volume="hung"}'] == 0
            assert 'slipway_volume_bytes{volume="hung"}' not in found
            for name in (".", "other"):
                assert found[f'slipway_volume_answers{{volume="{name}"}}'] == 1
                assert found[f'slipway_volume_bytes{{volume="{name}"}}'] > 0
            assert 'slipway_cache_hits_total{cache="objects"}' in found
            process.send_signal(signal.SIGCONT)
            poll(lambda: metrics(server)['slipway_volume_answers{volume="hung"}'] == 1)
            assert metrics(server)['slipway_volume_bytes{volume="hung"}'] > 0

    def test_but_that_of_all_buckets_does_not_leave_it_ready(self, make_server, hang, tmp_path):
        process = hang(tmp_path / "tree")
        process.send_signal(signal.SIGCONT)
        server = make_server(*OPTIONS, "--metadata", "sidecar", tree=tmp_path / "tree")
        assert look(server, "/-/ready")[0] == 200
        before = threads(server)
        process.send_signal(signal.SIGSTOP)
        # The gateway waits for the storage, which waits for DIR: on a busy machine the first may
        # give up first.
        not_ready = {(503, f"not ready: {of}the storage does not answer\n") for of in ("DIR: ", "")}
        with ThreadPoolExecutor(60) as pool:
            answers = list(pool.map(lambda _: look(server, "/-/ready"), range(200)))
        assert set(answers) <= not_ready
        assert threads(server) < before + 20
        assert metrics(server)['slipway_volume_answers{volume="."}'] == 0
        process.send_signal(signal.SIGCONT)
        poll(lambda: look(server, "/-/ready")[0] == 200)

    def test_and_are_no_buckets_are_not_asked(self, make_server, hang):
        server = make_server(*OPTIONS)
        hang(server.tree / "Not_Bucket")
        assert look(server, "/-/ready") == (200, "ready\n")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
    def test_nor_those_that_it_may_not_enter(self, make_server):
        """Any user who may mount something in DIR could make one."""
        with tempfile.TemporaryDirectory(prefix="slipway-nobody-", dir="/tmp") as directory:
            place = Path(directory)
            place.chmod(0o755)
            program = shutil.copy(binary(), place / "slipway")
            where = place / "tree" / "closed"
            where.mkdir(parents=True)
            os.chown(where.parent, NOBODY, NOBODY)
            server = make_server(*OPTIONS, tree=where.parent, as_nobody=True, program=program)
            with a_tmpfs(where, "mode=700"):
                assert look(server, "/-/ready") == (200, "ready\n")
                assert not any("closed" in name for name in metrics(server))
            server.stop()


def test_a_volume_that_is_read_only_is_ready(make_server):
    """It can be read from; all gateways of the tree would be taken out of service at once."""
    server = make_server(*OPTIONS)
    where = server.tree / "mounted"
    where.mkdir()
    with a_tmpfs(where, "size=8m"):
        assert metrics(server)['slipway_volume_read_only{volume="mounted"}'] == 0
        subprocess.run(["mount", "-o", "remount,ro", where], check=True)
        found = metrics(server)
        assert found['slipway_volume_read_only{volume="mounted"}'] == 1
        assert found['slipway_volume_read_only{volume="."}'] == 0
        assert look(server, "/-/ready") == (200, "ready\n")


def test_caches(server, bucket):
    bucket.put("key", b"data")
    # Small directories are read as they are, without an index.
    for n in range(1500):
        bucket.file(f"file{n}").touch()

    def hits(cache: str) -> float:
        bucket.get("key")
        bucket.page(max_keys="10")
        return metrics(server)[f'slipway_cache_hits_total{{cache="{cache}"}}']

    for cache in ("objects", "indexes"):
        # What was written just now is not kept.
        poll(lambda cache=cache: hits(cache) >= 1, 10)
        found = metrics(server)
        assert found[f'slipway_cache_misses_total{{cache="{cache}"}}'] >= 1, cache
        used = found[f'slipway_cache_bytes{{cache="{cache}"}}']
        assert 0 < used <= found[f'slipway_cache_bytes_max{{cache="{cache}"}}'], cache


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian's package prometheus)")
def test_prometheus_takes_the_text(server, bucket):
    bucket.put("key", b"data")
    _, text = look(server, "/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_metrics_are_in_the_table(server, bucket):
    """docs/METRICS.md has all, and no more."""
    bucket.put("key", b"data")
    _, text = look(server, "/metrics")
    told = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    table = set(re.findall(r"^\| `(\S+)` \|", (REPOSITORY / "docs" / "METRICS.md").read_text(), re.MULTILINE))
    assert told == table
