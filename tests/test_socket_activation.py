"""Sockets that a service manager hands over (LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES)."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from test_operations import listening, look, metrics

from support import expect
from support.server import ACCESS_KEY, KEYS, SECRET_KEY, StartFailed, binary
from support.sigv4 import Signer
from support.wire import RawClient, poll


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as open_things:
        yield open_things


@pytest.fixture
def tcp(stack) -> socket.socket:
    return stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))


@pytest.fixture
def unix(stack, tmp_path) -> socket.socket:
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(str(tmp_path / "socket"))
    listener.listen()
    return listener


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"


# Not named at all, by name, and as systemd names those without FileDescriptorName=.
@pytest.mark.parametrize("name", ["", "unknown", "s3", "slipway.socket"])
def test_tcp(make_server, tcp, name):
    server = make_server(sockets=[(tcp.fileno(), name)])
    assert server.endpoints == [url(tcp)]
    expect.ok(server.raw.put("/bucket"))
    expect.ok(server.raw.put("/bucket/key", b"text"))
    assert expect.ok(server.raw.get("/bucket/key")).body == b"text"
    # In place of --listen, not beside it.
    assert len(listening(server.pid)) == 1
    assert "--listen is ignored" in server.log


def test_a_unix_socket_stays_when_the_server_goes(make_server, tcp, unix, tmp_path):
    path = tmp_path / "socket"
    server = make_server(sockets=[(unix.fileno(), "s3"), (tcp.fileno(), "s3")], listen=())
    assert server.endpoints == [f"unix:{path}", url(tcp)]
    raw = RawClient(str(path), Signer(ACCESS_KEY, SECRET_KEY))
    expect.ok(raw.put("/bucket"))
    assert expect.ok(server.raw.get("/bucket")).status == 200
    assert server.stop() == 0
    assert path.is_socket()


def test_one_for_operations(make_server, stack, tcp):
    operations = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    server = make_server(sockets=[(operations.fileno(), "ops"), (tcp.fileno(), "s3")], listen=())
    assert (server.operations, server.endpoints) == (url(operations), [url(tcp)])
    assert look(server, "/-/ready") == (200, "ready\n")
    assert server.raw.get("/-/ready", anonymous=True).status != 200
    assert metrics(server)["slipway_ready"] == 1


def test_one_for_operations_alone_leaves_the_others(make_server, tcp):
    server = make_server("--ops-listen", "127.0.0.1:0", sockets=[(tcp.fileno(), "ops")])
    assert server.operations == url(tcp)
    assert expect.ok(server.raw.get("/")).status == 200
    assert len(listening(server.pid)) == 2


def test_no_connection_is_refused_while_the_server_is_restarted(make_server, tcp, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    server = make_server(tree=tree, sockets=[(tcp.fileno(), "s3")])
    raw = server.raw
    expect.ok(raw.put("/bucket"))
    stopping, statuses, failures = threading.Event(), [], []

    def ask() -> None:
        while not stopping.is_set():
            try:
                # A connection of its own each time.
                statuses.append(raw.get("/bucket").status)
            except Exception as error:
                failures.append(error)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(3):
            assert server.stop() == 0
            # An answer that had arrived is on the list after that.
            time.sleep(0.2)
            answered = len(statuses)
            # Who comes now waits.
            time.sleep(0.2)
            assert len(statuses) == answered
            server = make_server(tree=tree, sockets=[(tcp.fileno(), "s3")])
            assert poll(lambda: len(statuses) > answered + 20, 10)  # noqa: B023
    finally:
        stopping.set()
        for asker in askers:
            asker.join(40)
    assert failures == []
    assert set(statuses) == {200}


def test_programs_that_are_started_by_it_get_none(make_server, tcp, stack):
    """It starts none; what it has closes itself if it ever does."""
    operations = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    server = make_server(sockets=[(tcp.fileno(), "s3"), (operations.fileno(), "ops")], listen=())
    process = Path(f"/proc/{server.pid}")
    for descriptor in (3, 4):
        assert os.readlink(process / "fd" / str(descriptor)).startswith("socket:")
        flags = (process / "fdinfo" / str(descriptor)).read_text().split("flags:")[1].split()[0]
        assert int(flags, 8) & os.O_CLOEXEC
    assert (process / "task" / str(server.pid) / "children").read_text() == ""


def test_those_of_another_process_are_let_be(make_server, tcp):
    server = make_server(
        env={**KEYS, "LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "s3"},
    )
    assert server.endpoints != [url(tcp)]
    assert expect.ok(server.raw.get("/")).status == 200


def a_file(stack: ExitStack) -> int:
    return stack.enter_context(open("/dev/null")).fileno()


def a_pipe(stack: ExitStack) -> int:
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends[0]


def datagrams(stack: ExitStack) -> int:
    return stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).fileno()


def a_connection(stack: ExitStack) -> int:
    ends = [stack.enter_context(end) for end in socket.socketpair()]
    return ends[0].fileno()


def not_listening(stack: ExitStack) -> int:
    return stack.enter_context(socket.socket()).fileno()


def a_listener(stack: ExitStack) -> int:
    return stack.enter_context(socket.create_server(("127.0.0.1", 0))).fileno()


@pytest.mark.parametrize(
    "made, names, says",
    [
        ([a_file], ["s3"], '"s3" from the service manager (LISTEN_FDS) is not a socket'),
        ([a_listener, a_pipe], ["s3", "ops"], '"ops" from the service manager (LISTEN_FDS) is not a socket'),
        ([datagrams], ["s3"], "is not a stream socket"),
        ([a_connection], ["s3"], "is not a listening socket: use Accept=no"),
        ([not_listening], [""], "is not a listening socket"),
        ([a_listener], ["web"], '"web" from the service manager (LISTEN_FDS) has an unknown name'),
        ([a_listener] * 2, ["ops", "ops"], "is the second one named ops"),
    ],
)
def test_what_is_no_socket_to_serve_on_is_refused(make_server, stack, tmp_path, made, names, says):
    tree = tmp_path / "none"
    sockets = [(make(stack), name) for make, name in zip(made, names, strict=True)]
    with pytest.raises(StartFailed) as failed:
        make_server(tree=tree, sockets=sockets)
    assert says in str(failed.value)
    assert not tree.exists()


@pytest.mark.parametrize(
    "variables, says",
    [
        ("LISTEN_FDS=1", "the descriptors that it announces are not open"),
        ("LISTEN_FDS=100000", "the descriptors that it announces are not open"),
        ("LISTEN_FDS=4294967295", "fd count overflowed"),
        ("LISTEN_FDS=some", "invalid LISTEN_FDS"),
        ("LISTEN_FDS=0 LISTEN_FDNAMES=a:b", "invalid LISTEN_FDNAMES"),
    ],
)
def test_variables_that_are_not_true_are_refused(tmp_path, variables, says):
    tree = tmp_path / "none"
    script = f'exec env LISTEN_PID=$$ {variables} "$0" serve --listen 127.0.0.1:0 {tree}'
    done = subprocess.run(
        ["bash", "-c", script, binary()],
        env={**KEYS, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 1
    assert says in done.stderr
    assert not tree.exists()
