"""Who waits for whom: what another gateway holds the lock of is left alone until it lets go."""

import fcntl
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.server import binary
from support.tools import findings
from support.wire import poll

# How long who waits is seen to.
A_WHILE_SECONDS = 0.5


@pytest.fixture
def bucket(own_server) -> Bucket:
    return Bucket(own_server, "bucket").create()


@contextmanager
def held(files: Iterable[Path]) -> Iterator[None]:
    """Locks files as a gateway does."""
    with ExitStack() as stack:
        for file in files:
            fcntl.flock(stack.enter_context(open(file, "r+b")), fcntl.LOCK_EX)
        yield


def key_locks(bucket: Bucket) -> list[Path]:
    """The files of all locks on keys, of which there is none before the first that is taken."""
    place = bucket.tree / ".slipway" / "locks"
    # What is replaced has the server make `.slipway`, which is its own then.
    for body in (b"1", b"2"):
        bucket.put("made", body)
    place.mkdir(exist_ok=True)
    files = [place / f"{number:02x}" for number in range(64)]
    for file in files:
        file.touch()
    return files


def are_open(files: Iterable[Path]) -> bool:
    """True if another process has one of the files open, as who waits for its lock does."""
    paths = {os.path.realpath(file) for file in files}
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        # It may end meanwhile, or be another user's.
        with suppress(OSError):
            for descriptor in os.listdir(process / "fd"):
                with suppress(OSError):
                    if os.readlink(process / "fd" / descriptor) in paths:
                        return True
    return False


def waits(files: Iterable[Path], work: Callable[[], object]) -> object:
    """What `work` gives, once it has been seen to wait for these files: it has one open, and does not end. A machine
    that is busy only takes longer to come so far."""
    files, results = list(files), []
    thread = threading.Thread(target=lambda: results.append(work()))
    with held(files):
        thread.start()
        while not are_open(files):
            thread.join(0.02)
            assert not results, f"it did not wait: {results}"
        thread.join(A_WHILE_SECONDS)
        assert not results and are_open(files), f"it did not wait: {results}"
    thread.join(30)
    assert results, "it never ended"
    return results[0]


def test_an_abort_waits_for_who_completes_the_upload(bucket):
    upload = bucket.create_upload("key")
    part = expect.ok(bucket.put_part("key", upload, 1, b"part")).etag
    description = bucket.tree / ".slipway" / "uploads" / upload / "upload"
    assert waits([description], lambda: bucket.abort("key", upload).status) == 204
    expect.error(bucket.complete("key", upload, [(1, part)]), "NoSuchUpload", UploadId=upload)


def test_a_completion_waits_for_who_aborts_the_upload(bucket):
    upload = bucket.create_upload("key")
    part = expect.ok(bucket.put_part("key", upload, 1, b"part")).etag
    description = bucket.tree / ".slipway" / "uploads" / upload / "upload"
    assert waits([description], lambda: bucket.complete("key", upload, [(1, part)]).status) == 200
    assert bucket.read("key") == b"part"


@pytest.mark.parametrize("work", ["put", "delete"])
def test_what_replaces_or_removes_a_name_waits_for_its_lock(bucket, work):
    bucket.put("key", b"old")
    requests = {
        "put": lambda: bucket.put("key", b"new").status,
        "delete": lambda: bucket.delete("key").status,
    }
    assert waits(key_locks(bucket), requests[work]) == {"put": 200, "delete": 204}[work]


def test_the_sweep_removes_no_companion_while_a_key_is_locked(bucket):
    """Who holds the lock may have written a companion whose object is yet to get its name."""
    locks, overflow = key_locks(bucket), bucket.tree / ".slipway" / "overflow"
    overflow.mkdir(exist_ok=True)
    companion = overflow / f"{7:032x}"
    companion.write_bytes(b"\x01")
    time.sleep(0.02)
    command = [binary(), "sweep", "--age", "0", bucket.server.tree]

    def swept() -> bool:
        return (
            subprocess.run(command, capture_output=True, timeout=30).returncode == 0
            and not companion.exists()
        )

    assert waits(locks[-1:], swept) is True


@pytest.mark.parametrize("name", ["damaged-00001,7", "00001"])
def test_a_repair_leaves_a_part_alone_whose_upload_is_locked(bucket, name):
    """A damaged part, also one that an interrupted repair set aside: it may be about to be part of the object."""
    upload = bucket.create_upload("key")
    place = bucket.tree / ".slipway" / "uploads" / upload
    part = place / name
    part.write_bytes(b"never recorded")
    time.sleep(0.02)
    with held([place / "upload"]):
        done = subprocess.run(
            [binary(), "fsck", "--repair", "--min-age", "0", bucket.server.tree],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1 and str(part) in done.stdout, done
        assert part.exists()
    findings(bucket.server.tree, "--repair")
    assert not part.exists()


class TestWhereNamesBlink:
    """Through FUSE and on a network a name may be missing while it is replaced: what is not there is looked for
    again under its lock."""

    @pytest.fixture
    def bucket(self, show, make_server) -> Bucket:
        tree = show() / "tree"
        tree.mkdir()
        return Bucket(make_server("--durability", "none", tree=tree), "bucket").create()

    def test_a_delete_of_what_seems_to_be_missing(self, bucket):
        bucket.put("other", b"1")
        assert waits(key_locks(bucket), lambda: bucket.delete("key").status) == 204

    def test_a_read_of_what_seems_to_be_missing(self, bucket):
        assert waits(key_locks(bucket), lambda: bucket.get("key").code) == "NoSuchKey"

    def test_an_abort(self, bucket):
        """The upload's description is moved away before it is removed: it is open, as its own lock."""
        upload = bucket.create_upload("key")
        expect.ok(bucket.abort("key", upload), 204)
        assert list((bucket.tree / ".slipway" / "uploads").iterdir()) == []
        expect.error(bucket.put_part("key", upload, 1, b"part"), "NoSuchUpload", UploadId=upload)

    def test_a_delete_of_what_comes_back(self, bucket):
        """The object is deleted, though it seemed to be missing."""
        bucket.put("key", b"1")
        file, away = bucket.file("key"), bucket.tree / "away"
        file.rename(away)
        results: list[int] = []
        thread = threading.Thread(target=lambda: results.append(bucket.delete("key").status))
        files = key_locks(bucket)
        with held(files):
            thread.start()
            poll(lambda: are_open(files), 30)
            os.rename(away, file)
        thread.join(30)
        assert results == [204] and not file.exists()
