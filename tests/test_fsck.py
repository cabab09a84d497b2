"""`slipway fsck`, on trees that a server has open."""

import fcntl
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from support import expect
from support.data import MIB, pattern
from support.marks import needs_attributes
from support.server import NOBODY, RECORDS, binary
from support.tools import LONG, RECORD, aside, md5, run


def fsck(bucket, *options: str, status: int) -> list[dict]:
    """The problems found in a bucket, however young."""
    how = ("--json", "--min-age", "0", "--bucket", bucket.name, *options)
    out = run("fsck", *how, bucket.server.tree, status=status)
    lines = [json.loads(line) for line in out.splitlines()]
    *problems, summary = lines
    assert summary["problems"] == len(problems)
    return problems


def check(bucket, problem: str, path: Path, repairable: bool = True) -> None:
    """The problem is found, stays without --repair, and is gone after it, if it can be repaired."""
    time.sleep(0.02)  # The kernel's clock for files ticks every 4 to 10 ms; "older than 0 s" needs one tick.
    state = "repairable" if repairable else "manual"
    for _ in range(2):
        found = fsck(bucket, status=1)
        assert [(p["problem"], p["path"], p["state"]) for p in found] == [(problem, str(path), state)]
    text = run("fsck", "--min-age", "0", "--bucket", bucket.name, bucket.server.tree, status=1)
    assert text.startswith(f"{problem}: {path}: ")
    found = fsck(bucket, "--repair", status=0 if repairable else 1)
    assert [(p["problem"], p["state"]) for p in found] == [(problem, "repaired" if repairable else "manual")]
    assert fsck(bucket, status=0 if repairable else 1) == ([] if repairable else found)


class TestFsck:
    @pytest.fixture
    def bucket(self, bucket):
        """A bucket that was used, and is clean before it is damaged."""
        for key in ("a", "a/b", "d/", "x//y", "é" * 200, "m/../n"):
            bucket.put(key, b"1")
        bucket.put("a", b"2")
        bucket.create_upload("up")
        bucket.upload("multi", [b"x" * 5 * MIB, b"y"])
        bucket.file("foreign").write_bytes(b"1")
        (bucket.tree / "empty").mkdir()
        time.sleep(0.02)
        assert fsck(bucket, status=0) == []
        return bucket

    def test_staging(self, bucket):
        staging = bucket.tree / ".slipway" / "staging"
        staging.mkdir(exist_ok=True)
        left = staging / (31 * "0" + "7")
        left.write_bytes(b"1")
        run("fsck", "--repair", "--bucket", bucket.name, bucket.server.tree)
        assert left.exists(), "it is young"
        check(bucket, "staging-leftover", left)

    def test_upload_without_description(self, bucket):
        path = bucket.tree / ".slipway" / "uploads" / bucket.create_upload("b")
        (path / "upload").unlink()
        check(bucket, "upload-leftover", path)

    def test_upload_that_cannot_be_read(self, bucket):
        path = bucket.tree / ".slipway" / "uploads" / bucket.create_upload("b")
        (path / "upload").write_bytes(b"\x01\xff")
        check(bucket, "upload-damaged", path)

    def test_part_that_was_changed(self, bucket):
        upload = bucket.create_upload("b")
        etags = [bucket.put_part("b", upload, n, bytes([n]) * 5 * MIB).etag for n in (1, 2)]
        part = bucket.tree / ".slipway" / "uploads" / upload / "00001"
        with open(part, "r+b") as file:
            file.write(b"damage")
        check(bucket, "part-damaged", part)
        # A client that looks sends it again.
        assert bucket.put_part("b", upload, 1, b"\1" * 5 * MIB).etag == etags[0]
        expect.ok(bucket.complete("b", upload, [(1, etags[0]), (2, etags[1])]))

    def test_receipt(self, bucket):
        completed = bucket.tree / ".slipway" / "completed"
        (completed / "abc").write_bytes(b"\x01\xff")
        check(bucket, "receipt-damaged", completed / "abc")

    def test_lock(self, bucket):
        (bucket.tree / ".slipway" / "locks" / "zz").touch()
        check(bucket, "bad-lock", bucket.tree / ".slipway" / "locks" / "zz")

    def test_lock_that_someone_keeps(self, bucket):
        lock = next((bucket.tree / ".slipway" / "locks").iterdir())
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (found,) = fsck(bucket, "--repair", status=1)
            assert (found["problem"], found["path"], found["state"]) == ("lock-held", str(lock), "manual")
        assert fsck(bucket, status=0) == []

    @pytest.mark.parametrize("field", [b"", b"\x1b\x04gone", b"\x13\x04gone"])
    def test_companion_without_an_object(self, bucket, field):
        """The second and the third name its path, now and as earlier builds did."""
        overflow = bucket.tree / ".slipway" / "overflow"
        overflow.mkdir(exist_ok=True)
        (overflow / f"{7:032x}").write_bytes(b"\x01" + field)
        time.sleep(0.02)
        (found,) = fsck(bucket, status=1)
        assert found["explanation"].endswith('it was of "gone"') == bool(field)
        check(bucket, "companion-orphaned", overflow / f"{7:032x}")

    @needs_attributes
    def test_object_without_its_companion(self, bucket):
        bucket.put("o.html", b"1")
        record = os.getxattr(bucket.file("o.html"), RECORD)
        # Tag 23 names a companion.
        os.setxattr(bucket.file("o.html"), RECORD, record + bytes([23, 16]) + bytes(16))
        etag = bucket.head("o.html").etag
        check(bucket, "companion-missing", bucket.file("o.html"))
        assert bucket.head("o.html").etag == etag == f'"{md5(b"1")}"'
        assert bucket.head("o.html").headers["content-type"] == "text/html"

    @needs_attributes
    def test_damaged_record(self, bucket):
        os.setxattr(bucket.file("multi"), RECORD, b"\x01\x02\xff")
        check(bucket, "record-damaged", bucket.file("multi"))
        assert "1 rehashed" in run("rehash", bucket.file("multi"))
        assert bucket.head("multi").etag == f'"{md5(b"x" * 5 * MIB + b"y")}"'

    @needs_attributes
    @pytest.mark.parametrize("record", [b"\x03new", b"\x02\xc1\x04hold", b"\x01\xc1\x04hold"])
    def test_newer_record(self, bucket, record):
        """The second and the third have a field that must be understood."""
        bucket.put("held", b"1")
        os.setxattr(bucket.file("held"), RECORD, record)
        check(bucket, "record-newer", bucket.file("held"), repairable=False)
        (found,) = fsck(bucket, status=1)
        unknown = "its record has version 3, which this Slipway does not know: a newer one wrote it, or it is damaged"
        assert found["explanation"].startswith(unknown) == (record[0] == 3), found
        assert "0 rehashed" in run("rehash", bucket.file("held"), status=1)
        for method in ("GET", "PUT", "DELETE"):
            expect.error(bucket.raw.request(method, bucket.path("held")), "AccessDenied")
        assert "held" in bucket.keys()
        assert (bucket.file("held").read_bytes(), os.getxattr(bucket.file("held"), RECORD)) == (b"1", record)
        assert f"{bucket.file('held')}" in bucket.server.log and "slipway fsck lists" in bucket.server.log

    @pytest.mark.parametrize("name", [".slipway,foo", "d/.slipway", ".slipway,.x", ".slipway,=plain"])
    def test_reserved_names(self, bucket, name):
        bucket.file(name).write_bytes(b"1")
        check(bucket, "reserved-name", bucket.file(name), repairable=False)
        assert bucket.file(name).exists()

    def test_bytes_in_a_place_of_no_object(self, bucket):
        bucket.file(".slipway,self").write_bytes(b"1")
        check(bucket, "misplaced", bucket.file(".slipway,self"), repairable=False)

    def test_empty_directory_that_a_put_made(self, bucket):
        bucket.put("p/q/r", b"1")
        bucket.file("p/q/r").unlink()
        (bucket.file("p/q") / RECORDS / "r").unlink(missing_ok=True)
        check(bucket, "empty-directory", bucket.file("p/q"))
        assert not bucket.file("p").exists() and bucket.file("empty").exists()

    def test_uploads_set_aside(self, bucket):
        place = aside(bucket.server.tree, f".slipway,deleting,{bucket.name},0,1")
        (place / "uploads" / "abc").mkdir()
        check(bucket, "uploads-aside", place)

    @pytest.mark.parametrize("name", [".slipway,deleting,,1", ".slipway,deleting,{},0,1"])
    def test_what_only_has_the_name_of_something_set_aside(self, bucket, name):
        place = bucket.server.tree / name.format(bucket.name)
        (place / "uploads" / "abc").mkdir(parents=True)
        check(bucket, "stranger", place, repairable=False)
        assert (place / "uploads" / "abc").exists()
        subprocess.run(["rm", "-r", place], check=True)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
    def test_a_bucket_that_cannot_be_read(self):
        """It is not passed over in silence."""
        # pytest's own directories are closed to others.
        with tempfile.TemporaryDirectory() as directory:
            tree = Path(directory)
            tree.chmod(0o755)
            (tree / "mine").mkdir(mode=0o755)
            (tree / "theirs").mkdir(mode=0o700)
            as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            done = subprocess.run(
                [*as_nobody, binary(), "fsck", tree], capture_output=True, text=True, timeout=60
            )
        assert done.returncode == 1, done
        assert done.stdout.startswith(f"unreadable: {tree / 'theirs'}: ")

    def test_what_cannot_be_checked(self, bucket, tmp_path):
        run("fsck", tmp_path / "missing", status=2)
        run("fsck", "--bucket", "no-such-bucket", bucket.server.tree, status=2)
        run("fsck", "--bucket", "X", bucket.server.tree, status=2)

    @needs_attributes
    def test_uploads_in_progress(self, bucket):
        """Parts in place, in a file of their own, and sent twice; and one whose bytes are not all there."""
        upload_id = bucket.create_upload("key")
        for number, size in [(1, 5 * MIB), (2, 5 * MIB), (2, 5 * MIB), (3, 6 * MIB), (4, 10)]:
            expect.ok(bucket.put_part("key", upload_id, number, pattern(size)))
        assert fsck(bucket, status=0) == []
        directory = bucket.tree / ".slipway" / "uploads" / upload_id
        os.truncate(directory / "assembly1", 15 * MIB)
        check(bucket, "part-damaged", directory / "00004")

    def test_it_repairs_nothing_that_is_in_use(self, bucket):
        """Objects with long records come and go while the bucket is repaired over and over."""
        stop = threading.Event()
        failures: list[str] = []

        def work(worker: int) -> None:
            chance, n = random.Random(worker), 0
            while not stop.is_set():
                key, n = f"w{worker}/{chance.randrange(4)}/k", n + 1
                bucket.put(key, str(n).encode(), headers=LONG)
                got = bucket.head(key)
                if got.status != 200 or "x-amz-meta-8" not in got.headers:
                    failures.append(f"{key}: {got.status} {got.headers}")
                if chance.random() < 0.5:
                    bucket.delete(key)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for worker in workers:
            worker.start()
        try:
            for _ in range(15):
                found = run("fsck", "--json", "--repair", "--min-age", "2", bucket.server.tree)
                assert len(found.splitlines()) == 1, found
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        assert failures == []
