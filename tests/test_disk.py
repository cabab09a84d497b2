"""Disks that are full, read-only or not ours to read: S3 errors, nothing torn, nothing left."""

import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import content_md5
from support.data import MIB, PART, pattern
from support.server import NOBODY, SIDECARS, assert_nothing_staged, binary, remove_tree
from support.sigv4 import STREAMING_UNSIGNED_TRAILER, frame
from support.wire import poll

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may mount file systems and change owners"
)

DISK = 64 * MIB


def mount(kind: str, directory: Path, options: str = "") -> None:
    """A file system of 64 MiB."""
    where = directory / "disk"
    where.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0755{options}", "tmpfs", where]
    else:
        image = directory / "image"
        with open(image, "wb") as file:
            file.truncate(DISK)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        command = ["mount", "-o", f"loop{options}", image, where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not mount {kind} here: {done.stderr.strip()}")


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request, tmp_path) -> Iterator[Path]:
    mount(request.param, tmp_path)
    yield tmp_path / "disk"
    subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


@pytest.fixture
def small(disk, make_server) -> Bucket:
    """A bucket on the small disk."""
    tree = disk / "tree"
    tree.mkdir()
    return Bucket(make_server(tree=tree), "bucket").create()


def free(bucket: Bucket) -> int:
    status = os.statvfs(bucket.tree)
    return status.f_bavail * status.f_frsize


def full(response) -> None:
    expect.error(response, "InsufficientStorage", status=507)


class TestFullDisk:
    @pytest.fixture(autouse=True)
    def check_that_space_comes_back(self, small):
        before = free(small)
        yield
        assert_nothing_staged(small.tree)
        for key in small.keys():
            expect.ok(small.delete(key), 204)
        poll(lambda: free(small) >= before - MIB // 2, 10)
        small.put("after", pattern(MIB))
        assert small.read("after") == pattern(MIB)

    def test_one_put_that_is_too_large(self, small):
        full(small.raw.put(small.path("key"), pattern(DISK + MIB)))
        assert small.is_untouched()

    def test_it_is_told_early(self, small):
        """By the length alone, not when the disk is full of what came so far."""
        request = small.raw.prepare(
            "PUT", small.path("key"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(4 * DISK)}
        )
        with small.raw.connect() as connection:
            connection.send_as_far_as_possible(request.head + pattern(8 * MIB))
            full(connection.response())
        assert small.is_untouched()

    def test_many_puts(self, small):
        """Each is there whole, or not at all."""
        answers = {}
        for number in range(40):
            answers[f"k{number:02}"] = small.raw.put(small.path(f"k{number:02}"), pattern(2 * MIB, number))
        stored = [key for key, response in answers.items() if response.status == 200]
        assert 20 < len(stored) < 40
        for key, response in answers.items():
            if response.status != 200:
                full(response)
                expect.error(small.get(key), "NoSuchKey")
        assert small.keys() == stored
        for key in stored:
            assert small.read(key) == pattern(2 * MIB, int(key[1:]))

    def test_an_overwrite_leaves_the_old_object(self, small):
        small.put("key", pattern(20 * MIB), headers={"x-amz-meta-is": "old"})
        full(small.raw.put(small.path("key"), pattern(60 * MIB, 1), headers={"x-amz-meta-is": "new"}))
        got = small.get("key")
        assert (got.body == pattern(20 * MIB), got.headers["x-amz-meta-is"]) == (True, "old")

    def test_a_framed_body(self, small):
        data = pattern(DISK + MIB)
        full(small.put_chunked("key", frame(data, MIB, trailers=[]), len(data), STREAMING_UNSIGNED_TRAILER))
        assert small.is_untouched()

    def test_parts(self, small):
        upload_id = small.create_upload("key")
        etags = []
        for number in range(1, 20):
            response = small.put_part("key", upload_id, number, pattern(PART, number))
            if response.status != 200:
                full(response)
                break
            etags.append((number, response.etag))
        else:
            pytest.fail("the disk is not full")
        # What was acknowledged is whole.
        listed = small.raw.get(small.path("key"), query={"uploadId": upload_id}).xml
        assert [(int(part["PartNumber"]), part["ETag"]) for part in listed.all("Part")] == etags
        self.complete_or_abort(small, upload_id, etags, [pattern(PART, number) for number, _ in etags])

    def complete_or_abort(
        self, small, upload_id: str, etags: list[tuple[int, str]], parts: list[bytes]
    ) -> None:
        """Completing may take the space twice. If that is too much, the upload survives the failure."""
        response = small.complete("key", upload_id, etags)
        if response.status == 200:
            assert small.read("key") == b"".join(parts)
            return
        full(response)
        assert small.is_untouched()
        listed = small.raw.get(small.path("key"), query={"uploadId": upload_id}).xml
        assert len(listed.all("Part")) == len(parts)
        expect.ok(small.abort("key", upload_id), 204)

    def test_a_completion_that_must_copy(self, small):
        """Parts of unequal sizes."""
        upload_id = small.create_upload("key")
        sizes = [PART + 1, PART, PART + 2, PART + 3, PART, PART + 5, PART + 4]
        parts = [pattern(size, number) for number, size in enumerate(sizes)]
        etags = [
            (n, expect.ok(small.put_part("key", upload_id, n, part)).etag) for n, part in enumerate(parts, 1)
        ]
        self.complete_or_abort(small, upload_id, etags, parts)

    def test_a_copy(self, small):
        small.put("source", pattern(40 * MIB))
        response = small.raw.put(small.path("copy"), headers={"x-amz-copy-source": f"{small.name}/source"})
        full(response)
        assert small.keys() == ["source"]
        assert small.read("source") == pattern(40 * MIB)

    def test_a_delete_always_works(self, small):
        # Without a buffer: what did not fit must not be written again by closing.
        with open(small.tree / "filler", "wb", buffering=0) as filler:
            while True:
                try:
                    filler.write(bytes(MIB))
                except OSError:
                    break
        full(small.raw.put(small.path("deep/key"), pattern(MIB)))
        assert small.keys() == ["filler"]
        expect.ok(small.delete("filler"), 204)
        small.put("deep/key", pattern(MIB))


def test_no_inodes_left(tmp_path, make_server):
    """Space there is, but no more names."""
    mount("tmpfs", tmp_path, ",nr_inodes=60")
    try:
        tree = tmp_path / "disk" / "tree"
        tree.mkdir()
        bucket = Bucket(make_server(tree=tree), "bucket").create()
        answers = [bucket.raw.put(bucket.path(f"d{n}/key"), b"data") for n in range(80)]
        assert {response.status for response in answers} == {200, 507}
        stored = [f"d{n}/key" for n, response in enumerate(answers) if response.status == 200]
        full(answers[-1])
        assert "no space or no inodes left, or a quota is exceeded" in bucket.server.log
        assert bucket.keys() == sorted(stored)
        assert sorted(p.name for p in bucket.tree.iterdir() if p.name[0] == "d") == sorted(
            key.split("/")[0] for key in stored
        ), "no directory is left of those that failed"
        for key in stored:
            assert bucket.read(key) == b"data"
            expect.ok(bucket.delete(key), 204)
        bucket.put("after/all", b"x")
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


@pytest.mark.parametrize("size", ["0", str(DISK)])
def test_a_file_system_without_a_limit(tmp_path, make_server, size):
    """It says that it has no blocks, and none that are free."""
    where = tmp_path / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", where], check=True)
    try:
        bucket = Bucket(make_server(tree=where), "bucket").create()
        bucket.put("key", pattern(2 * MIB))
        bucket.upload("parted", [pattern(PART), pattern(2 * MIB)])
        assert bucket.read("key") == pattern(2 * MIB)
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


@contextmanager
def btrfs(tmp_path: Path, options: str = "rw") -> Iterator[Path]:
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("needs mkfs.btrfs (Debian's package btrfs-progs)")
    image, where = tmp_path / "image", tmp_path / "disk"
    where.mkdir()
    with open(image, "wb") as file:
        file.truncate(256 * MIB)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", f"loop,{options}", image, where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


def test_btrfs_compresses(tmp_path, make_server):
    """Space that is reserved ahead would be written as it is."""
    if not shutil.which("filefrag"):
        pytest.skip("needs filefrag (Debian's package e2fsprogs)")
    with btrfs(tmp_path, "compress=zstd") as where:
        bucket = Bucket(make_server(tree=where / "tree"), "bucket").create()
        bucket.put("small", b"abcd" * (MIB // 8))
        bucket.put("large", b"abcd" * (3 * MIB))
        bucket.upload("parted", [b"abcd" * (2 * MIB), b"abcd" * (2 * MIB)])
        os.sync()
        for key in ("small", "large", "parted"):
            done = subprocess.run(
                ["filefrag", "-v", bucket.file(key)], capture_output=True, text=True, check=True
            )
            extents = [line for line in done.stdout.splitlines() if re.match(r"\s*\d+:", line)]
            assert extents and all("encoded" in line for line in extents), done.stdout


def test_copied_ranges_share_their_blocks(tmp_path, make_server):
    def used() -> int:
        os.sync()
        room = os.statvfs(where)
        return (room.f_blocks - room.f_bfree) * room.f_frsize

    def copy(number: int, first: int, last: int) -> tuple[int, str]:
        query = {"partNumber": str(number), "uploadId": upload}
        source = {"x-amz-copy-source": "bucket/source", "x-amz-copy-source-range": f"bytes={first}-{last}"}
        answer = expect.ok(bucket.raw.put(bucket.path("key"), query=query, headers=source))
        return number, answer.xml["ETag"]

    with btrfs(tmp_path) as where:
        bucket = Bucket(make_server(tree=where / "tree"), "bucket").create()
        # The last part ends within a block, and so is copied.
        body = os.urandom(17 * MIB + 5)
        bucket.put("source", body)
        before = used()
        upload = bucket.create_upload("key")
        parts = [copy(1, 8 * MIB, 16 * MIB - 1), copy(2, 0, 8 * MIB - 1), copy(3, 16 * MIB, len(body) - 1)]
        expect.ok(bucket.complete("key", upload, parts))
        grown = used() - before
        assert bucket.read("key") == body[8 * MIB : 16 * MIB] + body[: 8 * MIB] + body[16 * MIB :]
        # With records in files, parts are copied when they are put together.
        assert SIDECARS or grown < 4 * MIB


def test_a_read_only_file_system(tmp_path, make_server):
    mount("ext4", tmp_path)
    disk = tmp_path / "disk"
    try:
        (disk / "bucket").mkdir()
        (disk / "bucket" / "key").write_text("data")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        bucket = Bucket(make_server("--ops-listen", "127.0.0.1:0", tree=disk), "bucket")
        assert bucket.read("key") == b"data"
        assert bucket.keys() == ["key"]
        for response in (
            bucket.raw.put(bucket.path("new"), b"x"),
            bucket.raw.put(bucket.path("key"), b"x"),
            bucket.delete("key"),
            bucket.raw.put("/another"),
            bucket.raw.post(bucket.path("key"), query={"uploads": ""}),
        ):
            expect.error(response, "AccessDenied", re.compile("read-only"))
        assert bucket.read("key") == b"data"
        assert "writes will fail, except" in bucket.server.log
        with urllib.request.urlopen(f"{bucket.server.operations}/metrics", timeout=20) as answer:
            assert 'slipway_storage_calls_failed_total{call="delete_object"} 1\n' in answer.read().decode()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


class TestPermissions:
    """A server that is not root, on files that are partly not its own."""

    def test_a_directory_of_root_with_a_bucket_of_its_own(self, make_server):
        """What the log says of it at the start is so."""
        with tempfile.TemporaryDirectory(prefix="slipway-nobody-", dir="/tmp") as directory:
            place = Path(directory)
            place.chmod(0o755)
            program = shutil.copy(binary(), place / "slipway")
            (place / "tree" / "bucket").mkdir(parents=True)
            os.chown(place / "tree" / "bucket", NOBODY, NOBODY)
            bucket = Bucket(make_server(tree=place / "tree", as_nobody=True, program=program), "bucket")
            bucket.put("key", b"1")
            upload = bucket.create_upload("parts")
            expect.ok(bucket.complete("parts", upload, [(1, bucket.put_part("parts", upload, 1, b"2").etag)]))
            assert bucket.read("parts") == b"2"
            expect.ok(bucket.delete("key"), 204)
            expect.error(bucket.raw.put("/another"), "AccessDenied")
            expect.ok(bucket.delete("parts"), 204)
            expect.error(bucket.raw.delete(bucket.path()), "AccessDenied")
            assert "buckets can be neither created nor deleted" in bucket.server.log
            assert "writes will fail" not in bucket.server.log

    @pytest.fixture
    def foreign(self, make_server) -> Iterator[Bucket]:
        place = Path(tempfile.mkdtemp(prefix="slipway-nobody-", dir="/tmp"))
        place.chmod(0o755)
        program = place / "slipway"
        shutil.copy(binary(), program)
        tree = place / "tree"
        bucket = tree / "bucket"
        (bucket / "open").mkdir(parents=True)
        (bucket / "locked").mkdir()
        (bucket / "readable").mkdir()
        for key in ("open/key", "open/secret", "locked/key", "readable/key", "zz"):
            (bucket / key).write_text(key)
        for path in (tree, bucket, bucket / "open", bucket / "open/key"):
            os.chown(path, NOBODY, NOBODY)
        (bucket / "locked").chmod(0o700)
        (bucket / "open/secret").chmod(0o600)
        yield Bucket(make_server(tree=tree, as_nobody=True, program=program), "bucket")
        remove_tree(place)

    def test_runs_as_nobody(self, foreign):
        status = Path(f"/proc/{foreign.server.pid}/status").read_text()
        assert re.search(rf"^Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}", status, re.MULTILINE)

    def test_an_unreadable_directory(self, foreign):
        expect.error(foreign.get("locked/key"), "AccessDenied")
        expect.head_error(foreign.head("locked/key"), 403)
        expect.error(foreign.raw.put(foreign.path("locked/new"), b"x"), "AccessDenied")
        expect.error(foreign.delete("locked/key"), "AccessDenied")
        assert foreign.read("open/key") == b"open/key"

    def test_listing_over_it(self, foreign):
        """The rest is listed: a bucket that is a mount point has a `lost+found` that only root may read."""
        assert foreign.keys() == ["open/key", "open/secret", "readable/key", "zz"]
        assert foreign.keys(prefix="open/") == ["open/key", "open/secret"]
        warned = 'bucket="bucket" key="locked/" error=Permission denied'
        assert warned in foreign.server.log or warned.replace("locked/", "locked") in foreign.server.log
        response = foreign.raw.get(foreign.path(), query={"list-type": "2", "prefix": "locked/"})
        expect.error(response, "AccessDenied")

    def test_a_bucket_that_may_not_be_opened(self, foreign):
        (foreign.server.tree / "closed").mkdir(mode=0o700)
        names = expect.ok(foreign.raw.get("/")).xml.child("Buckets").all("Bucket")
        assert [bucket["Name"] for bucket in names] == ["bucket"]
        assert (
            "bucket=closed error=could not open a bucket: the file system denied permission"
            in foreign.server.log
        )

    def test_a_sweep_that_cannot_open_a_bucket(self, foreign):
        tree = foreign.server.tree
        (tree / "closed").mkdir(mode=0o700)
        program = [tree.parent / "slipway", "sweep", tree]
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        done = subprocess.run([*as_nobody, *program], capture_output=True, text=True)
        assert done.returncode == 1 and "bucket=closed" in done.stderr, done
        (tree / "closed").rmdir()
        done = subprocess.run([*as_nobody, *program], capture_output=True, text=True)
        assert done.returncode == 0, done

    def test_an_unreadable_file(self, foreign):
        expect.error(foreign.get("open/secret"), "AccessDenied")
        copied = foreign.raw.put(
            foreign.path("open/copy"), headers={"x-amz-copy-source": "bucket/open/secret"}
        )
        expect.error(copied, "AccessDenied")
        assert not foreign.exists("open/copy")

    def test_a_directory_without_write_permission(self, foreign):
        assert foreign.read("readable/key") == b"readable/key"
        for response in (
            foreign.raw.put(foreign.path("readable/new"), b"x"),
            foreign.raw.put(foreign.path("readable/key"), b"x"),
            foreign.raw.put(foreign.path("readable/deep/er"), b"x"),
            foreign.delete("readable/key"),
        ):
            expect.error(response, "AccessDenied")
        assert foreign.file("readable/key").read_text() == "readable/key"
        assert sorted(os.listdir(foreign.file("readable"))) == ["key"]
        assert_nothing_staged(foreign.tree)

    def test_what_is_allowed_works(self, foreign):
        foreign.put("open/new", b"data")
        foreign.put("open/new", b"again")
        assert foreign.read("open/new") == b"again"
        assert foreign.file("open/new").stat().st_uid == NOBODY
        foreign.upload("open/parted", [pattern(PART), b"end"])
        expect.ok(foreign.delete("open/new"), 204)

    def test_nothing_of_the_file_system_is_told(self, foreign):
        body = foreign.get("locked/key").body
        for word in (b"denied)", b"os error", b"EACCES", str(foreign.tree).encode(), b"ermission"):
            assert word not in body

    def test_many_at_once(self, foreign):
        """Of several keys, only those that may not be deleted are reported."""
        body = b"<Delete><Object><Key>open/key</Key></Object><Object><Key>locked/key</Key></Object></Delete>"
        response = foreign.raw.post(
            foreign.path(), body, query={"delete": ""}, headers={"content-md5": content_md5(body)}
        )
        result = expect.ok(response).xml
        assert [entry["Key"] for entry in result.all("Deleted")] == ["open/key"]
        assert [(e["Key"], e["Code"]) for e in result.all("Error")] == [("locked/key", "AccessDenied")]
