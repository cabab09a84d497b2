"""Listening on unix sockets."""

import socket
import subprocess
from contextlib import ExitStack

import pytest

from support import expect
from support.clients import environment
from support.server import ACCESS_KEY, SECRET_KEY, StartFailed
from support.sigv4 import Signer
from support.wire import RawClient


class TestUnixSocket:
    @pytest.fixture
    def path(self, tmp_path) -> str:
        return str(tmp_path / "s.sock")

    def raw(self, path: str) -> RawClient:
        return RawClient(path, Signer(ACCESS_KEY, SECRET_KEY))

    def test_requests(self, make_server, path):
        server = make_server(listen=[f"unix:{path}", "127.0.0.1:0"])
        assert server.endpoints[0] == f"unix:{path}"
        raw = self.raw(path)
        expect.ok(raw.put("/bucket"))
        expect.ok(raw.put("/bucket/key", b"data"))
        assert expect.ok(server.raw.get("/bucket/key")).body == b"data"
        assert expect.ok(raw.get("/bucket/key")).body == b"data"

    def test_curl(self, make_server, path, tmp_path):
        server = make_server(listen=[f"unix:{path}", "127.0.0.1:0"])
        expect.ok(server.raw.put("/bucket"))
        done = subprocess.run(
            [
                "curl",
                "-sS",
                "--fail",
                "--unix-socket",
                path,
                "--aws-sigv4",
                "aws:amz:us-east-1:s3",
                "--user",
                f"{ACCESS_KEY}:{SECRET_KEY}",
                "-H",
                f"x-amz-content-sha256: {'UNSIGNED-PAYLOAD'}",
                "http://localhost/bucket",
            ],
            env=environment(server, tmp_path),
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert b"<Name>bucket</Name>" in done.stdout, done

    def test_goes_with_the_server(self, make_server, path, tmp_path):
        server = make_server(listen=[f"unix:{path}", "127.0.0.1:0"])
        assert (tmp_path / "s.sock").is_socket()
        server.stop()
        assert not (tmp_path / "s.sock").exists()

    def test_left_by_a_server_that_was_killed(self, make_server, path, tmp_path):
        make_server(listen=[f"unix:{path}", "127.0.0.1:0"]).kill()
        assert (tmp_path / "s.sock").is_socket()
        make_server(listen=[f"unix:{path}", "127.0.0.1:0"])
        expect.ok(self.raw(path).get("/"))

    def test_in_use(self, make_server, path):

        make_server(listen=[f"unix:{path}", "127.0.0.1:0"])
        with pytest.raises(StartFailed, match=r"--listen unix:\S+: cannot listen there"):
            make_server(listen=[f"unix:{path}"])
        expect.ok(self.raw(path).get("/"))

    def test_in_use_by_a_server_that_is_busy(self, make_server, path, tmp_path):
        """One that accepts nothing for now, and has no room for who waits, is no dead one."""
        with socket.socket(socket.AF_UNIX) as busy, ExitStack() as waiting:
            busy.bind(path)
            busy.listen(1)
            for _ in range(2):
                client = waiting.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(path)
            with pytest.raises(StartFailed, match="may be using it"):
                make_server(listen=[f"unix:{path}"])
            assert (tmp_path / "s.sock").is_socket()

    def test_the_socket_of_another_stays(self, make_server, path, tmp_path):
        first = make_server(listen=[f"unix:{path}", "127.0.0.1:0"], tree=tmp_path / "first")
        (tmp_path / "s.sock").unlink()
        make_server(listen=[f"unix:{path}", "127.0.0.1:0"], tree=tmp_path / "second")
        first.stop()
        expect.ok(self.raw(path).get("/"))

    def test_a_file_is_not_replaced(self, make_server, path, tmp_path):

        (tmp_path / "s.sock").write_text("precious")
        with pytest.raises(StartFailed, match=r"--listen unix:\S+: cannot listen there"):
            make_server(listen=[f"unix:{path}"])
        assert (tmp_path / "s.sock").read_text() == "precious"
