"""Files of which other programs hold a lease."""

import os
import subprocess
import sys
import time

import pytest

from support import expect
from support.bucket import Bucket

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@only_root
class TestLeases:
    """Programs as Samba keep leases on files, and give them up when someone else opens the file."""

    @pytest.fixture
    def bucket(self, make_server):
        bucket = Bucket(make_server(), "lab").create()
        bucket.put("key", b"1")
        return bucket

    def hold(self, bucket, gives_up):
        """Takes a lease in a process of its own, and returns that process."""
        script = (
            "import fcntl, os, signal, sys, time\n"
            "fd = os.open(sys.argv[1], os.O_RDWR)\n"
            "def give_up(*_):\n"
            "    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n"
            f"signal.signal(signal.SIGIO, {'give_up' if gives_up else 'signal.SIG_IGN'})\n"
            "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
            "print('held', flush=True)\n"
            "time.sleep(60)\n"
        )
        command = [sys.executable, "-c", script, bucket.file("key")]
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if holder.stdout.readline() != "held\n":
            holder.wait(10)
            pytest.skip("the file system has no leases")
        return holder

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_who_gives_up_is_waited_for(self, bucket, method):
        holder = self.hold(bucket, gives_up=True)
        try:
            answer = bucket.raw.request(method, bucket.path("key"), body=b"2" if method == "PUT" else b"")
            expect.ok(answer, 204 if method == "DELETE" else 200)
        finally:
            holder.kill()
            holder.wait(10)

    def test_who_does_not_is_named(self, bucket):
        holder = self.hold(bucket, gives_up=False)
        try:
            began = time.monotonic()
            answers = [bucket.get("key") for _ in range(3)]
            assert time.monotonic() - began < 10
            for answer in answers:
                expect.error(answer, "SlowDown")
            lines = [line for line in bucket.server.log.splitlines() if "holds a lease on the file" in line]
            assert lines and all(" INFO " in line for line in lines), bucket.server.log
            assert "kept changing" not in bucket.server.log
        finally:
            holder.kill()
            holder.wait(10)
        assert bucket.read("key") == b"1"
