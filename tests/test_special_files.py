"""What is never opened: special files, links that lead elsewhere, and the directories of the gateway's own."""

import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import time

import pytest

from support import expect
from support.bucket import Bucket
from support.server import binary


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


TAKEN = "The key is blocked by a special file or a symbolic link of the file system."


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

        with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(bucket.tree):
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
            with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(bucket.tree):
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
        # So often that it is in the kernel's cache of names, which is another way through the
        # server.
        for key in ("special", "link", "special", "special/", "special/below"):
            expect.error(raw.get(bucket.path(key)), "NoSuchKey", Key=key)
            expect.head_error(raw.head(bucket.path(key)), 404)
            wanted = {"x-amz-object-attributes": "ETag"}
            attributes = raw.get(bucket.path(key), query={"attributes": ""}, headers=wanted)
            expect.error(attributes, "NoSuchKey")
            copied = raw.put(bucket.path("copy"), headers={"x-amz-copy-source": f"/{bucket.name}/{key}"})
            expect.error(copied, "NoSuchKey")
            expect.error(raw.put(bucket.path(key), b"x"), "AccessDenied", TAKEN)
            expect.error(
                raw.put(bucket.path(key), b"x", headers={"if-none-match": "*"}), "AccessDenied", TAKEN
            )
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


class TestTheOperatorReadsWhy:
    """Of refusals that follow from what is in DIR and that no client can understand."""

    @staticmethod
    def lines(server, response) -> list[str]:
        return [line for line in server.log.splitlines() if response.headers["x-amz-request-id"] in line]

    @pytest.mark.parametrize("kind", ["obstructed", "other-name", "same-object", "bucket-name", "file-size"])
    def test_once(self, make_server, kind):
        server = make_server()
        bucket = Bucket(server, "bucket").create()
        bucket.put("real/file", b"data")
        bucket.file("dir").symlink_to("real")
        bucket.file("out").symlink_to("/etc/hostname")
        (server.tree / "taken").write_text("")
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        copy = {"x-amz-copy-source": "bucket/real/file"}
        request, code, *expected = {
            "obstructed": (
                lambda: bucket.raw.put(bucket.path("out"), b"x"),
                "AccessDenied",
                '"out"',
                "path is occupied",
            ),
            "other-name": (
                lambda: bucket.raw.delete(bucket.path("dir/file")),
                "AccessDenied",
                '"dir/file"',
                "object that has a key of its own",
            ),
            "same-object": (
                lambda: bucket.raw.put(bucket.path("dir/file"), headers=copy),
                "InvalidRequest",
                '"dir/file"',
                "are the same object",
            ),
            "bucket-name": (
                lambda: bucket.raw.put("/taken"),
                "BucketAlreadyExists",
                '"taken"',
                "another entry that is not a bucket",
            ),
            "file-size": (
                lambda: bucket.raw.put(bucket.path("large"), bytes(2 << 20)),
                "EntityTooLarge",
                '"large"',
                "larger than the file system",
            ),
        }[kind]
        response = request()
        expect.error(response, code, re.compile("."))
        (line,) = self.lines(server, response)
        assert "INFO" in line and all(text in line for text in expected), line
        assert kind == "bucket-name" or '"bucket"' in line

    def test_at_most_once_a_second_for_each_bucket(self, make_server):
        server = make_server()
        told = {}
        for name in ("one-bucket", "another-bucket"):
            bucket = Bucket(server, name).create()
            bucket.file("out").symlink_to("/etc/hostname")
            begun = time.monotonic()
            responses = [bucket.raw.put(bucket.path("out"), b"x") for _ in range(20)]
            took = time.monotonic() - begun
            told[name] = sum(len(self.lines(server, response)) for response in responses)
            assert 1 <= told[name] <= 1 + took, (told, took)


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_have_plain_values(make_server, form):
    """What the request does not name is left out, and an error has the fields of a refusal."""
    server = make_server("--log-format", form)
    bucket = Bucket(server, "bucket").create()
    try:
        os.mkfifo(bucket.file("fifo"))
    except PermissionError as error:
        pytest.skip(f"no special files on this file system: {error}")
    expect.error(bucket.raw.put(bucket.path("fifo"), b"x"), "AccessDenied", re.compile("."))
    (server.tree / "taken").write_text("")
    expect.error(server.raw.put("/taken"), "BucketAlreadyExists")
    shutil.rmtree(bucket.tree / ".slipway", ignore_errors=True)
    (bucket.tree / ".slipway").write_text("")
    expect.error(bucket.raw.post(bucket.path("a b"), query={"uploads": ""}), "AccessDenied")
    lines = [line for line in server.log.splitlines() if "causes" in line]
    assert len(lines) == 3 and "Some(" not in server.log and "None" not in server.log, server.log
    if form == "text":
        found = [(line.count("bucket="), line.count("key="), line.count(" path=")) for line in lines]
        assert 'bucket="bucket" key="fifo" causes="' in lines[0] and 'key="a b" causes="' in lines[2]
    else:
        fields = [json.loads(line)["fields"] for line in lines]
        found = [tuple(int(name in each) for name in ("bucket", "key", "path")) for each in fields]
        assert [each.get("key") for each in fields] == ["fifo", None, "a b"]
        assert not any(each["causes"].startswith('"') for each in fields)
    assert found == [(1, 1, 0), (1, 0, 0), (1, 1, 0)]
