"""`serve --rehash-on-read`: foreign files that are read get real ETags, by and by."""

import hashlib
import os
import threading
import time

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import checksum
from support.wire import poll

# Younger files are left alone.
AGE_SECONDS = 5
RECORD = "user.slipway"


@pytest.fixture
def lazy(make_server) -> Bucket:
    return Bucket(make_server("--rehash-on-read"), "bucket").create()


def md5(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def is_rehashed(bucket: Bucket, key: str) -> bool:
    return not bucket.head(key).etag.startswith('"foreign-')


def test_what_is_read_whole_and_nothing_else(lazy):
    for key in ("page.html", "d/both", "headed", "ranged", "unread"):
        lazy.file(key).parent.mkdir(exist_ok=True)
        lazy.file(key).write_bytes(key.encode())
    lazy.put("d/both/below", b"x")
    lazy.put("edited", b"before")
    lazy.file("edited").write_bytes(b"afterwards")
    lazy.file("link").symlink_to("unread")
    modified = lazy.file("page.html").stat().st_mtime_ns
    young = lazy.get("page.html").etag
    time.sleep(AGE_SECONDS + 0.5)
    assert lazy.head("page.html").etag == young, "it was too young when it was read, and a HEAD is no read"
    read = ("page.html", "d/both", "edited")
    for key in (*read, "link"):
        assert lazy.get(key).etag.startswith('"foreign-')
    expect.ok(lazy.get("ranged", headers={"range": "bytes=0-1"}), 206)
    lazy.head("headed")
    poll(lambda: all(is_rehashed(lazy, key) for key in read), 20)
    got = lazy.get("page.html", headers={"x-amz-checksum-mode": "ENABLED"})
    assert got.etag == md5(b"page.html") and got.headers["content-type"] == "text/html"
    assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"page.html")
    assert lazy.file("page.html").stat().st_mtime_ns == modified
    assert lazy.head("d/both").etag == md5(b"d/both") and lazy.head("edited").etag == md5(b"afterwards")
    time.sleep(0.5)
    for key in ("headed", "ranged", "unread", "link"):
        assert lazy.head(key).etag.startswith('"foreign-'), key
    # And again, if it is changed again.
    lazy.file("edited").write_bytes(b"once more")
    assert lazy.get("edited").etag.startswith('"foreign-')


def test_off_by_default(bucket):
    bucket.file("a").write_bytes(b"1")
    time.sleep(AGE_SECONDS + 0.5)
    assert bucket.get("a").etag.startswith('"foreign-')
    time.sleep(1)
    assert RECORD not in os.listxattr(bucket.file("a"))


def test_a_file_that_is_written_to_stays_foreign(lazy):
    path, end = lazy.file("log"), time.monotonic() + AGE_SECONDS + 3
    path.write_bytes(b"line\n")

    def write() -> None:
        while time.monotonic() < end:
            with path.open("ab") as file:
                file.write(b"line\n")
            time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        # A GET of a file that changes under it may well end in an error; it is never a mixture.
        assert lazy.get("log").status in (200, 500, 503)
        assert RECORD not in os.listxattr(path)
        time.sleep(0.2)
    writer.join()
    assert lazy.head("log").etag.startswith('"foreign-')


def test_what_another_gateway_knows_of_it_is_kept(lazy):
    path = lazy.file("theirs")
    path.write_bytes(b"1")
    os.setxattr(path, "user.etag", f"{md5(b'1')}".encode())
    os.setxattr(path, "user.metadata", b'{"colour":"blue"}')
    time.sleep(AGE_SECONDS + 0.5)
    lazy.get("theirs")
    time.sleep(1)
    got = lazy.head("theirs")
    assert got.headers["x-amz-meta-colour"] == "blue" and got.etag.startswith('"foreign-')
