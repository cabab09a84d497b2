"""Files are objects and objects are files, whoever made them."""

import hashlib
import os
import random
import re
import shutil
import subprocess
import threading
from email.utils import parsedate_to_datetime

import pytest

from support import expect
from support.checksums import checksum
from support.data import MIB, pattern
from support.marks import needs_attributes
from support.server import assert_nothing_staged
from support.wire import Closed, poll


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def random_tree(seed: int = 11, count: int = 40) -> dict[str, bytes]:
    """Relative paths with contents, of sizes from nothing to a megabyte."""
    chance = random.Random(seed)
    names = ["docs", "src", "a b", ".config", "ünï", "x.tar", "README", "data.bin", "deep"]
    tree: dict[str, bytes] = {}
    for number in range(count):
        parts = [chance.choice(names) + str(chance.randrange(3)) for _ in range(chance.randrange(1, 5))]
        tree["/".join([*parts, f"file{number}"])] = chance.randbytes(
            chance.choice([0, 1, 100, 5000, 70_000, MIB])
        )
    return tree


class TestFilesAreObjects:
    def test_a_tree_copied_by_cp(self, bucket, tmp_path):
        tree = random_tree()
        for name, data in tree.items():
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        subprocess.run(["cp", "-r", f"{tmp_path}/source/.", bucket.tree], check=True)
        assert bucket.keys() == sorted(tree, key=str.encode)
        for name, data in tree.items():
            got = expect.ok(bucket.get(name))
            assert sha256(got.body) == sha256(data)
            assert got.headers["content-length"] == str(len(data))

    def test_what_a_file_itself_says(self, bucket):
        path = bucket.file("page.html")
        path.write_text("<p>")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        got = expect.ok(bucket.get("page.html", headers={"x-amz-checksum-mode": "ENABLED"}))
        assert got.headers["content-type"] == "text/html"
        assert parsedate_to_datetime(got.headers["last-modified"]).timestamp() == 1_000_000_000
        assert not got.headers.starting("x-amz-checksum-")
        assert not re.fullmatch('"[0-9a-f]{32}(-[0-9]+)?"', got.etag), "no client may take it for an MD5"
        listed = bucket.page().child("Contents")
        assert listed["ETag"] == got.etag
        assert listed["LastModified"].startswith("2001-09-09T01:46:40")

    def test_no_type_that_can_be_told(self, bucket):
        bucket.file("noext").write_text("x")
        assert bucket.head("noext").headers["content-type"] == "binary/octet-stream"

    def test_dotfiles(self, bucket):
        for name in (".profile", ".ssh/config"):
            bucket.file(name).parent.mkdir(exist_ok=True)
            bucket.file(name).write_text(name)
        assert bucket.keys() == [".profile", ".ssh/config"]
        assert bucket.read(".ssh/config") == b".ssh/config"

    def test_a_name_that_is_not_utf8(self, bucket):
        """It is no key; it disturbs nothing."""
        (bucket.tree / os.fsdecode(b"bad\xff")).write_text("x")
        bucket.file("good").write_text("x")
        assert bucket.keys() == ["good"]

    def test_deleted_by_rm(self, bucket):
        bucket.put("d/key", b"x")
        shutil.rmtree(bucket.file("d"))
        expect.error(bucket.get("d/key"), "NoSuchKey", Key="d/key")
        assert bucket.keys() == []
        bucket.put("d/key", b"again")
        assert bucket.read("d/key") == b"again"

    @needs_attributes
    def test_renamed_by_mv(self, bucket):
        """The record goes with the file."""
        put = bucket.put("old", b"x", headers={"x-amz-meta-a": "1"})
        bucket.file("old").rename(bucket.file("new"))
        head = bucket.head("new")
        assert (head.etag, head.headers["x-amz-meta-a"]) == (put.etag, "1")
        expect.error(bucket.get("old"), "NoSuchKey", Key="old")

    def test_a_whole_directory_renamed(self, bucket):
        for number in range(5):
            bucket.put(f"old/k{number}", b"x")
        assert len(bucket.keys()) == 5
        bucket.file("old").rename(bucket.file("new"))
        assert bucket.keys() == [f"new/k{number}" for number in range(5)]

    def test_deleting_a_file_by_s3(self, bucket):
        bucket.file("d").mkdir()
        bucket.file("d/key").write_text("x")
        expect.ok(bucket.delete("d/key"), 204)
        assert not bucket.file("d/key").exists()

    def test_overwriting_a_file_by_s3(self, bucket):
        bucket.file("key").write_text("by hand")
        os.link(bucket.file("key"), bucket.file("other link"))
        bucket.put("key", b"by s3")
        assert bucket.file("key").read_bytes() == b"by s3"
        assert bucket.file("other link").read_text() == "by hand", "replaced, not written over"


class TestObjectsAreFiles:
    def test_a_tree_put_by_s3(self, bucket):
        tree = random_tree(12)
        for name, data in tree.items():
            bucket.put(name, data)
        assert bucket.files() == sorted(tree)
        for name, data in tree.items():
            assert sha256(bucket.file(name).read_bytes()) == sha256(data)

    def test_cat(self, bucket):
        bucket.put("key", b"some text\n")
        assert (
            subprocess.run(["cat", bucket.file("key")], capture_output=True, check=True).stdout
            == b"some text\n"
        )

    def test_modes(self, bucket):
        bucket.put("d/key", b"x")
        assert bucket.file("d/key").stat().st_mode & 0o777 == 0o644
        assert bucket.file("d").stat().st_mode & 0o777 == 0o755

    def test_modes_as_configured(self, make_server):
        server = make_server("--file-mode", "0640", "--dir-mode", "0750")
        expect.ok(server.raw.put("/bucket"))
        expect.ok(server.raw.put("/bucket/d/key", b"x"))
        assert server.path("bucket", "d/key").stat().st_mode & 0o777 == 0o640
        assert server.path("bucket", "d").stat().st_mode & 0o777 == 0o750

    def test_modification_time(self, bucket):
        bucket.put("key", b"x")
        modified = parsedate_to_datetime(bucket.head("key").headers["last-modified"]).timestamp()
        assert int(bucket.file("key").stat().st_mtime) == modified


class TestEdits:
    """A record speaks of the bytes it was written for, and of no others."""

    @pytest.fixture
    def put(self, bucket):
        return bucket.put("key", b"0123456789", headers={"x-amz-meta-a": "1", "content-type": "text/x"})

    @pytest.mark.parametrize("edit", ["in place", "appended", "truncated", "replaced"])
    def test_edited(self, bucket, put, edit):
        path = bucket.file("key")
        bucket.await_clock("key")
        match edit:
            case "in place":
                with open(path, "r+b") as file:
                    file.write(b"9876543210")
            case "appended":
                with open(path, "ab") as file:
                    file.write(b"!")
            case "truncated":
                os.truncate(path, 5)
            case "replaced":
                bucket.file("new").write_bytes(b"0123456789")
                bucket.file("new").rename(path)
        got = expect.ok(bucket.get("key", headers={"x-amz-checksum-mode": "ENABLED"}))
        assert got.body == path.read_bytes()
        assert got.headers["content-length"] == str(path.stat().st_size)
        assert got.etag != put.etag
        assert not got.headers.starting("x-amz-checksum-")
        assert bucket.page().child("Contents")["ETag"] == got.etag

    def test_twice(self, bucket, put):
        etags = {put.etag}
        for text in (b"one", b"two", b"six"):
            bucket.await_clock("key")
            bucket.file("key").write_bytes(text)
            etags.add(bucket.head("key").etag)
        assert len(etags) == 4

    def test_put_again(self, bucket, put):
        bucket.file("key").write_bytes(b"edited")
        again = bucket.put("key", b"0123456789")
        assert again.etag == put.etag
        got = bucket.get("key", headers={"x-amz-checksum-mode": "ENABLED"})
        assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"0123456789")

    def test_while_it_is_read(self, bucket):
        """The download ends in an error, not in a mixture that looks whole."""
        data = pattern(64 * MIB)
        bucket.put("key", data)
        request = bucket.raw.prepare("GET", bucket.path("key"))
        with bucket.raw.connect() as connection:
            connection.send(request.bytes)
            head = connection.head()
            assert head.status == 200
            first = connection.read(MIB)
            bucket.await_clock("key")
            with open(bucket.file("key"), "r+b") as file:
                file.seek(32 * MIB)
                file.write(b"edited")
            with pytest.raises(Closed):
                rest = connection.read(len(data) - MIB)
                assert first + rest == data, "a mixture was passed off as whole"
        lines = [line for line in bucket.server.log.splitlines() if head.headers["x-amz-request-id"] in line]
        assert len(lines) == 1 and "changed while it was read" in lines[0], lines

    def test_replaced_while_it_is_read(self, bucket):
        """Who began with the old object gets all of it."""
        data = pattern(32 * MIB)
        bucket.put("key", data)
        request = bucket.raw.prepare("GET", bucket.path("key"))
        with bucket.raw.connect() as connection:
            connection.send(request.bytes)
            assert connection.head().status == 200
            bucket.put("key", b"new")
            assert connection.read(len(data)) == data
        assert bucket.read("key") == b"new"


class TestDirectories:
    def test_made_by_a_put_vanish(self, bucket):
        bucket.put("a/b/c/key", b"x")
        bucket.put("a/other", b"x")
        expect.ok(bucket.delete("a/b/c/key"), 204)
        assert not bucket.file("a/b").exists()
        assert bucket.file("a").exists()
        expect.ok(bucket.delete("a/other"), 204)
        assert not bucket.file("a").exists()

    def test_made_by_a_person_stay(self, bucket):
        bucket.file("mine/too").mkdir(parents=True)
        bucket.put("mine/too/key", b"x")
        bucket.put("mine/too/made/key", b"x")
        expect.ok(bucket.delete("mine/too/key"), 204)
        expect.ok(bucket.delete("mine/too/made/key"), 204)
        assert bucket.file("mine/too").is_dir()
        assert not bucket.file("mine/too/made").exists()

    def test_with_a_persons_file_stay(self, bucket):
        bucket.put("d/key", b"x")
        bucket.file("d/mine").write_text("x")
        expect.ok(bucket.delete("d/key"), 204)
        assert bucket.file("d/mine").read_text() == "x"


def test_readers_see_the_old_object_or_the_new(bucket):
    """Through S3 and through open(), while it is written over and over."""
    bodies = [bytes([65 + n]) * (200_000 + n) for n in range(4)]
    bucket.put("key", bodies[0])
    stop = threading.Event()
    seen: list[bytes] = []

    def read_file() -> None:
        while not stop.is_set():
            seen.append(bucket.file("key").read_bytes())

    reader = threading.Thread(target=read_file)
    reader.start()
    try:
        for number in range(40):
            bucket.put("key", bodies[number % 4])
            got = bucket.get("key")
            assert got.body == bodies[number % 4]
            assert got.etag.strip('"') == hashlib.md5(got.body).hexdigest()
    finally:
        stop.set()
        reader.join()
    assert seen and all(data in bodies for data in seen)
    assert_nothing_staged(bucket.tree)
    assert poll(lambda: bucket.files() == ["key"])


@needs_attributes
def test_a_copy_by_cp_shares_nothing_that_a_delete_takes(bucket):
    """More metadata than an attribute holds on ext4 is in a companion file, of which `cp -a` copies only the name."""
    headers = {**{f"x-amz-meta-{n}": "x" * 200 for n in range(9)}, "cache-control": "y" * 2500}
    bucket.put("a", b"data", headers=headers)
    subprocess.run(["cp", "-a", bucket.file("a"), bucket.file("b")], check=True)
    assert bucket.head("b").headers["x-amz-meta-0"] == "x" * 200
    bucket.delete("b")
    assert bucket.head("a").headers["x-amz-meta-0"] == "x" * 200
    subprocess.run(["cp", "-a", bucket.file("a"), bucket.file("b")], check=True)
    bucket.put("b", b"other")
    assert bucket.head("a").headers["x-amz-meta-8"] == "x" * 200
    assert bucket.head("a").headers["cache-control"] == "y" * 2500
