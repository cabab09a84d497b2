"""Files are objects and objects are files, whoever made them."""

import contextlib
import ctypes
import hashlib
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import threading
import time
from email.utils import parsedate_to_datetime

import pytest

from support import expect
from support.checksums import checksum
from support.data import MIB, pattern
from support.marks import needs_attributes
from support.server import assert_nothing_staged, binary
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


class Opens:
    """Counts how often something is opened (inotify); to hold its name by O_PATH is not to open it."""

    OPEN, NONBLOCK, EVENT_BYTES = 0x20, 0o4000, 16

    def __init__(self, path) -> None:
        self._path = os.fsencode(path)

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = libc.inotify_init1(self.NONBLOCK)
        assert self._queue >= 0 and libc.inotify_add_watch(self._queue, self._path, self.OPEN) >= 0
        return self

    def __exit__(self, *_) -> None:
        os.close(self._queue)

    def count(self) -> int:
        """Since it was last asked. Equal events in a row are one."""
        try:
            return len(os.read(self._queue, 4096)) // self.EVENT_BYTES
        except BlockingIOError:
            return 0


TAKEN = "A special file or symbolic link of the file system has this key's place."


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
        os.link(bucket.file("key"), bucket.tree.parent / f"{bucket.name}-other-link")
        try:
            bucket.put("key", b"by s3")
            assert bucket.file("key").read_bytes() == b"by s3"
            assert (bucket.tree.parent / f"{bucket.name}-other-link").read_text() == "by hand", (
                "replaced, not written over"
            )
        finally:
            (bucket.tree.parent / f"{bucket.name}-other-link").unlink()


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
        assert len(lines) == 1 and "changed while it was sent" in lines[0], lines

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


def no_special_files() -> None:
    pytest.skip("the file system has no special files (sshfs)")


def make_fifo(path) -> None:
    try:
        os.mkfifo(path)
    except PermissionError:
        no_special_files()


def bind(listener: socket.socket, name: str) -> None:
    try:
        listener.bind(name)
    except PermissionError:
        no_special_files()


class TestSpecialFiles:
    def test_fifo(self, bucket):
        make_fifo(bucket.file("fifo"))
        bucket.put("key", b"x")
        assert bucket.keys() == ["key"]
        raw = bucket.raw.with_(timeout=5.0)
        expect.error(raw.get(bucket.path("fifo")), "NoSuchKey", Key="fifo")
        expect.head_error(raw.head(bucket.path("fifo")), 404)

    def test_socket_and_device(self, bucket):

        with socket.socket(socket.AF_UNIX) as listener:
            with contextlib.chdir(bucket.tree):
                bind(listener, "socket")
        try:
            os.mknod(bucket.file("null"), 0o666 | 0o020000, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root may make devices")
        assert bucket.keys() == []
        for name in ("socket", "null"):
            expect.error(bucket.raw.with_(timeout=5.0).get(bucket.path(name)), "NoSuchKey", Key=name)

    @pytest.fixture(params=["fifo", "socket", "device"])
    def special(self, request, bucket):
        """A thing that is no file, and what tells how often it was opened."""
        path = bucket.file("special")
        if request.param == "fifo":
            make_fifo(path)
        elif request.param == "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                with contextlib.chdir(bucket.tree):
                    bind(listener, "special")
        else:
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only root may make devices")
        bucket.file("link").symlink_to("special")
        with Opens(path) as opens:
            yield opens

    def test_is_never_opened(self, bucket, special):
        """To open a FIFO wakes its writers; to open a device may set it in motion."""
        bucket.put("key", b"x")
        raw = bucket.raw.with_(timeout=5.0)
        # So often that it is in the kernel's cache of names, which is another way through the server.
        for key in ("special", "link", "special", "special/", "special/below"):
            expect.error(raw.get(bucket.path(key)), "NoSuchKey", Key=key)
            expect.head_error(raw.head(bucket.path(key)), 404)
            wanted = {"x-amz-object-attributes": "ETag"}
            attributes = raw.get(bucket.path(key), query={"attributes": ""}, headers=wanted)
            expect.error(attributes, "NoSuchKey")
            copied = raw.put(bucket.path("copy"), headers={"x-amz-copy-source": f"/{bucket.name}/{key}"})
            expect.error(copied, "NoSuchKey")
            expect.error(raw.put(bucket.path(key), b"x"), "AccessDenied", TAKEN)
            expect.error(raw.put(bucket.path(key), b"x", headers={"if-none-match": "*"}), "AccessDenied", TAKEN)
            expect.ok(raw.delete(bucket.path(key)), 204)
        assert bucket.keys() == ["key"]
        assert bucket.page(delimiter="/").all("CommonPrefixes") == []
        tool = [binary(), "stat", bucket.file("special"), bucket.file("link")]
        subprocess.run(tool, stdout=subprocess.DEVNULL, timeout=30)
        subprocess.run([binary(), "rehash", bucket.tree], stdout=subprocess.DEVNULL, timeout=30, check=True)
        assert bucket.file("special").exists()
        assert special.count() == 0

    def test_who_counts_opens_would_see_one(self, tmp_path):
        make_fifo(tmp_path / "fifo")
        with Opens(tmp_path / "fifo") as opens:
            os.close(os.open(tmp_path / "fifo", os.O_PATH))
            assert opens.count() == 0
            os.close(os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK))
            assert opens.count() == 1

    def test_who_waits_to_write_to_a_fifo_goes_on_waiting(self, bucket):
        make_fifo(bucket.file("fifo"))
        writer = subprocess.Popen(["sh", "-c", 'echo data > "$0"', bucket.file("fifo")])
        try:
            raw = bucket.raw.with_(timeout=5.0)
            for _ in range(3):
                expect.error(raw.get(bucket.path("fifo")), "NoSuchKey")
                expect.head_error(raw.head(bucket.path("fifo")), 404)
                copy = {"x-amz-copy-source": f"/{bucket.name}/fifo"}
                expect.error(raw.put(bucket.path("copy"), headers=copy), "NoSuchKey")
                expect.ok(raw.delete(bucket.path("fifo")), 204)
                assert bucket.keys() == []
            time.sleep(0.2)
            assert writer.poll() is None
            assert bucket.file("fifo").read_text() == "data\n"
            assert writer.wait(10) == 0
        finally:
            writer.kill()
            writer.wait()

    def test_a_file_that_becomes_a_fifo(self, bucket):
        """What was read before is no reason to open what is there now."""
        bucket.put("key", b"x")
        assert bucket.read("key") == b"x"
        bucket.file("key").unlink()
        make_fifo(bucket.file("key"))
        with Opens(bucket.file("key")) as opens:
            expect.error(bucket.raw.with_(timeout=5.0).get(bucket.path("key")), "NoSuchKey")
            assert opens.count() == 0

    def test_fifo_in_the_way(self, bucket):
        """A write is refused; it does not hang and does not go into the pipe."""
        make_fifo(bucket.file("fifo"))
        for key in ("fifo", "fifo/below"):
            response = bucket.raw.with_(timeout=5.0).put(bucket.path(key), b"x")
            expect.error(response, "AccessDenied", TAKEN)


class TestSymlinks:
    @pytest.fixture
    def outside(self, tmp_path):
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "dir").mkdir()
        (tmp_path / "dir" / "secret").write_text("secret")
        return tmp_path

    def test_out_of_the_bucket(self, bucket, outside):
        bucket.file("absolute").symlink_to(outside / "secret")
        up = "../" * (len(bucket.tree.parts) - 1)
        bucket.file("relative").symlink_to(f"{up}{str(outside).lstrip('/')}/secret")
        bucket.file("dir").symlink_to(outside / "dir")
        bucket.file("other-bucket").symlink_to("../other")
        for key in ("absolute", "relative", "dir/secret", "dir", "other-bucket"):
            expect.error(bucket.get(key), "NoSuchKey", Key=key)
            expect.head_error(bucket.head(key), 404)
        assert bucket.keys() == []
        expect.error(bucket.raw.put(bucket.path("dir/new"), b"x"), "AccessDenied", TAKEN)
        assert not (outside / "dir" / "new").exists()
        bucket.delete("dir/secret")
        assert (outside / "dir" / "secret").read_text() == "secret"
        copied = bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": f"{bucket.name}/absolute"})
        expect.error(copied, "NoSuchKey")

    def test_writing_over_a_link(self, bucket, outside):
        bucket.file("link").symlink_to(outside / "secret")
        response = bucket.raw.put(bucket.path("link"), b"evil")
        assert (outside / "secret").read_text() == "secret"
        if response.status == 200:
            assert bucket.read("link") == b"evil"

    def test_into_our_own_directory(self, bucket):
        bucket.put("key", b"1")
        bucket.put("key", b"2")
        (bucket.tree / ".slipway").mkdir(exist_ok=True)
        (bucket.tree / ".slipway" / "private").write_text("secret")
        bucket.file("link").symlink_to(".slipway/private")
        bucket.file("dir").symlink_to(".slipway")
        for key in ("link", "dir/private"):
            expect.error(bucket.get(key), "NoSuchKey", Key=key)
        assert bucket.keys() == ["key"]

    def test_within_the_bucket(self, bucket):
        bucket.put("real/file", b"data")
        bucket.file("link").symlink_to("real/file")
        bucket.file("dir").symlink_to("real")
        assert bucket.read("link") == b"data"
        assert bucket.read("dir/file") == b"data"
        assert "link" in bucket.keys()

    def test_nothing_is_deleted_by_a_key_that_leads_through_a_link(self, bucket):
        bucket.put("real/file", b"data")
        bucket.put("real/directory/", b"")
        bucket.file("dir").symlink_to("real")
        message = re.compile("change the object by its own key")
        for key in ("dir/file", "dir/directory/"):
            expect.error(bucket.raw.delete(bucket.path(key)), "AccessDenied", message)
        removed = bucket.delete_many("dir/file", "real/nothing", "dir/nothing").xml
        assert [entry["Code"] for entry in removed.all("Error")] == ["AccessDenied"]
        assert bucket.read("real/file") == b"data"
        assert bucket.exists("real/directory/")
        bucket.delete("dir/nothing")
        bucket.delete("dir")
        bucket.delete("real/file")
        assert bucket.file("dir").is_symlink()

    def test_a_link_to_a_directory_is_no_object_of_its_own(self, bucket):
        """Its key and the directory's would have two locks."""
        bucket.put("real/file", b"1")
        bucket.file("dir").symlink_to("real")
        expect.error(bucket.raw.put(bucket.path("dir"), b"x"), "AccessDenied", re.compile("symbolic link"))
        assert not bucket.exists("real")
        bucket.put("real", b"data")
        assert bucket.read("dir") == b"data"
        message = re.compile("change the object by its own key")
        for request in (bucket.raw.put, bucket.raw.delete):
            expect.error(request(bucket.path("dir")), "AccessDenied", message)
        assert bucket.read("real") == b"data"

    def test_nothing_is_copied_onto_itself_through_a_link(self, bucket):
        """Whoever moves would delete the source then."""
        bucket.put("real/file", b"data")
        bucket.file("dir").symlink_to("real")
        message = re.compile("to copy an object to itself")
        for source, target in [("real/file", "dir/file"), ("dir/file", "real/file")]:
            header = {"x-amz-copy-source": f"{bucket.name}/{source}"}
            for more in ({}, {"x-amz-metadata-directive": "REPLACE"}):
                response = bucket.raw.put(bucket.path(target), headers={**header, **more})
                expect.error(response, "InvalidRequest", message)
            query = {"partNumber": "1", "uploadId": bucket.create_upload(target)}
            response = bucket.raw.put(bucket.path(target), query=query, headers=header)
            expect.error(response, "InvalidRequest", message)
        # An object that is a directory, too.
        bucket.put("real", b"data")
        for source, target in [("real", "dir"), ("dir", "real")]:
            header = {"x-amz-copy-source": f"{bucket.name}/{source}"}
            expect.error(bucket.raw.put(bucket.path(target), headers=header), "InvalidRequest", message)
        header = {"x-amz-copy-source": f"{bucket.name}/dir/file"}
        expect.ok(bucket.raw.put(bucket.path("real/other"), headers=header))
        assert bucket.read("dir/other") == b"data"

    @pytest.mark.parametrize("target", ["loop", "loop/loop", "dangling-target", "link-b"])
    def test_nowhere(self, bucket, target):
        bucket.file("loop").symlink_to(target)
        if target == "link-b":
            bucket.file("link-b").symlink_to("loop")
        bucket.put("key", b"x")
        expect.error(bucket.raw.with_(timeout=5.0).get(bucket.path("loop")), "NoSuchKey", Key="loop")
        assert bucket.keys() == ["key"]

    def test_a_directory_linked_into_itself(self, bucket):
        """Listings end."""
        bucket.put("d/key", b"x")
        bucket.file("d/again").symlink_to("../d")
        keys = bucket.keys()
        assert "d/key" in keys
        assert len(keys) < 200

    def test_refused(self, make_server):
        server = make_server("--symlinks", "refuse")
        tree = server.tree / "bucket"
        tree.mkdir()
        (tree / "real").write_text("data")
        (tree / "link").symlink_to("real")
        expect.error(server.raw.get("/bucket/link"), "NoSuchKey", Key="link")
        listed = server.raw.get("/bucket", query={"list-type": "2"}).xml
        assert [entry["Key"] for entry in listed.all("Contents")] == ["real"]


class TestOwnDirectories:
    """.slipway is reached by no key, at any depth."""

    def test_of_the_gateway(self, server, raw):
        expect.error(raw.get("/.slipway/credentials.toml"), "InvalidBucketName")
        expect.error(raw.get("/.slipway"), "InvalidBucketName")

    @pytest.mark.parametrize(
        "key",
        [
            ".slipway/staging",
            ".slipway",
            ".slipway/",
            "a/../.slipway/x",
            "./.slipway/x",
            ".slipway//x",
            ".Slipway/../.slipway/x",
        ],
    )
    def test_of_a_bucket(self, bucket, key):
        (bucket.tree / ".slipway").mkdir(exist_ok=True)
        (bucket.tree / ".slipway" / "x").write_text("private")
        response = bucket.get(key)
        assert b"private" not in response.body
        expect.error(response, "NoSuchKey")
        bucket.put(key, b"an object")
        assert bucket.read(key) == b"an object"
        assert (bucket.tree / ".slipway" / "x").read_text() == "private"
        expect.ok(bucket.delete(key), 204)
        assert (bucket.tree / ".slipway" / "x").read_text() == "private"

    def test_is_never_listed(self, bucket):
        (bucket.tree / ".slipway").mkdir(exist_ok=True)
        (bucket.tree / ".slipway" / "x").write_text("private")
        bucket.put("key", b"x")
        assert bucket.keys() == ["key"]
        assert bucket.keys(prefix=".slipway") == []
        assert bucket.page(delimiter="/").all("CommonPrefixes") == []


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
