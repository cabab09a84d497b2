"""`slipway stat`, `rehash`, `sweep` and `import`, on trees that a server has open."""

import contextlib
import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import checksum
from support.data import MIB, pattern
from support.peers import versitygw_file
from support.server import NOBODY, SIDECARS, binary, remove_tree
from support.tools import CHECKED, LONG, RECORD, md5, run, stat


class TestStat:
    def test_an_object(self, bucket):
        bucket.put("a/b.txt", b"12345", headers={"content-type": "text/x", "x-amz-meta-colour": "blue"})
        (found,) = stat(bucket.file("a/b.txt"))
        assert (found["is"], found["foreign"], found["key"], found["bucket"]) == (
            "object",
            False,
            "a/b.txt",
            bucket.name,
        )
        assert found["object"]["etag"] == md5(b"12345")
        assert found["object"]["checksum"] == {
            "algorithm": "CRC64NVME",
            "type": "FULL_OBJECT",
            "value": checksum("CRC64NVME", b"12345"),
        }
        assert found["object"]["headers"] == {"content-type": "text/x", "x-amz-meta-colour": "blue"}
        assert found["record"]["stamp_matches"] is True
        assert found["record"]["sidecar"] is SIDECARS
        if not SIDECARS:
            assert found["record"]["bytes"] == len(os.getxattr(bucket.file("a/b.txt"), RECORD))
        text = run("stat", bucket.file("a/b.txt"))
        for said in (
            str(bucket.file("a/b.txt")),
            md5(b"12345"),
            "x-amz-meta-colour",
            "it matches the file's size",
        ):
            assert said in text

    def test_what_is_not_shown(self, bucket):
        bucket.put("key", b"1")
        deep = bucket.tree / "/".join("d" * 250 for _ in range(5))
        try:
            deep.mkdir(parents=True)
            (deep / "file").write_bytes(b"1")
        except OSError:
            deep = bucket.tree
        hidden = bucket.tree / ".fuse_hidden0123456789abcdef"
        hidden.write_bytes(b"1")
        snapshots = bucket.tree / "d" / ".snapshots"
        snapshots.mkdir(parents=True)
        (snapshots / "file").write_bytes(b"1")
        odd = os.fsencode(bucket.tree) + b"/\xff"
        with contextlib.suppress(OSError):
            Path(os.fsdecode(odd)).write_bytes(b"1")
        with contextlib.suppress(OSError):
            os.mkfifo(bucket.tree / "fifo")
        wanted = {os.fsencode(hidden), os.fsencode(snapshots)} | {
            name for name in (odd, os.fsencode(bucket.tree / "fifo")) if os.path.lexists(name)
        }
        wanted |= {os.fsencode(deep / "file")} if deep != bucket.tree else set()
        how = ("fsck", "--json", "--not-shown", "--bucket", bucket.name, bucket.server.tree)
        *notes, summary = [json.loads(line) for line in run(*how).splitlines()]
        assert (summary["problems"], summary["not_shown"]) == (0, len(wanted))
        told = {note["path"] for note in notes if note["problem"] == "not-shown" and note["state"] == "note"}
        assert told == {path.decode(errors="replace") for path in wanted}
        exact = {bytes.fromhex(note["path_hex"]) for note in notes if "path_hex" in note}
        assert exact == wanted & {odd}
        text = run("fsck", "--bucket", bucket.name, bucket.server.tree)
        assert f"0 problems; {len(wanted)} not shown by S3 (--not-shown lists them)" in text
        for path in wanted - {odd}:
            (found,) = stat(Path(os.fsdecode(path)))
            assert (found["is"], found["key"], found["object"]) == ("no object", None, None), found
        (found,) = stat(snapshots / "file")
        assert (found["is"], found["key"]) == ("no object", None) and "snapshots" in found["why"]
        assert bucket.keys() == ["key"]

    def test_directories_that_no_person_made(self, bucket):
        bucket.put("key", b"1")
        tree = bucket.server.tree
        assert stat(tree)[0]["why"] == "the root of the tree: each directory in it is a bucket"
        for own in (".slipway", ".slipway/locks"):
            (bucket.tree / own).mkdir(exist_ok=True)
            assert stat(bucket.tree / own)[0]["why"] == "the server's own directory: it is never removed"
        (bucket.tree / "made").mkdir()
        assert (
            stat(bucket.tree / "made")[0]["why"]
            == "no PUT created it: it stays when its last object is deleted"
        )

    def test_a_tree_without_traces(self, tmp_path):
        (tmp_path / "bucket").mkdir()
        (tmp_path / "bucket" / "file").write_bytes(b"1")
        for command in ("fsck", "sweep"):
            done = subprocess.run([binary(), command, tmp_path], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and "no gateway seems to have served" in done.stderr

    @pytest.mark.parametrize("command", ["fsck", "sweep", "rehash"])
    def test_a_tree_that_is_not_there(self, tmp_path, command):
        done = subprocess.run(
            [binary(), command, tmp_path / "missing"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2 and "No such file or directory" in done.stderr
        assert "served" not in done.stderr, done.stderr

    @pytest.mark.parametrize("command", ["fsck", "sweep"])
    def test_a_part_of_a_tree(self, bucket, command):
        """A bucket is not taken for a tree in which all is well."""
        bucket.put("a/b", b"1")
        tree = bucket.server.tree
        for part, says in (
            (
                bucket.tree,
                f'this is the bucket "{bucket.name}" of the directory {tree}: give {tree} (and to fsck',
            ),
            (bucket.tree / "a", f'entry "{bucket.name}": give {tree}'),
        ):
            assert says in run(command, part, status=2)
        run("fsck", bucket.server.tree)

    def test_parts_and_upload(self, bucket):
        upload = bucket.create_upload("big")
        sizes = {2: 5 * MIB, 5: 7}
        etags = [bucket.put_part("big", upload, n, b"x" * size).etag for n, size in sizes.items()]
        expect.ok(bucket.complete("big", upload, [(2, etags[0]), (5, etags[1])]))
        (found,) = stat(bucket.file("big"))
        assert found["upload_id"] == upload
        assert {p["part_number"]: p["size_bytes"] for p in found["object"]["parts"]} == sizes
        assert "2 (2: 5242880 bytes, 5: 7 bytes)" in run("stat", bucket.file("big"))

    def test_why_a_file_is_foreign(self, bucket):
        bucket.file("made").write_bytes(b"1")
        assert "no record" in stat(bucket.file("made"))[0]["why"]
        bucket.put("edited", b"1")
        status = bucket.file("edited").stat()
        bucket.file("edited").write_bytes(b"22")
        assert "size and mtime differ" in stat(bucket.file("edited"))[0]["why"]
        os.utime(bucket.file("edited"), ns=(status.st_atime_ns, status.st_mtime_ns))
        assert stat(bucket.file("edited"))[0]["why"].endswith("its size differs")
        bucket.put("touched", b"1")
        os.utime(bucket.file("touched"), (1, 1))
        assert stat(bucket.file("touched"))[0]["why"].endswith("its mtime differs")
        for name in ("made", "edited", "touched"):
            (found,) = stat(bucket.file(name))
            assert found["foreign"] and found["is"] == "foreign file"
            assert found["object"]["etag"] == bucket.head(name).etag.strip('"')

    def test_an_overflowing_record(self, bucket):
        bucket.put("a", b"1", headers=LONG)
        (found,) = stat(bucket.file("a"))
        assert found["object"]["headers"].items() >= LONG.items()
        companion = found["record"]["companion"]
        if companion is None:
            pytest.skip("this file system takes long attributes")
        assert companion["matches"] and companion["size_bytes"] > 4040
        (bucket.tree / companion["path"]).unlink()
        (found,) = stat(bucket.file("a"))
        assert found["is"] == "object" and not found["record"]["companion"]["matches"]
        assert "missing" in run("stat", bucket.file("a"))

    def test_keys_that_share_a_name(self, bucket):
        for key in ("a", "a/b", "a/"):
            bucket.put(key, key.encode())
        assert [found["key"] for found in stat(bucket.file("a"))] == ["a/", "a", "a/"]
        assert stat(bucket.tree)[0]["is"] == "bucket"

    # A link in a bucket, and why it is not followed; nothing if it is.
    LINKS = {
        "file": ("real.html", None),
        "d/up": ("../real.html", None),
        "other.css": ("made", None),
        "directory": ("d", None),
        "d/loop": ("..", None),
        "passwd": ("/etc/passwd", "leads out of its bucket"),
        "above": ("..", "leads out of its bucket"),
        "dangling": ("nowhere", "its target does not exist"),
        "itself": ("itself", "leads to itself"),
        "own": (".slipway/notes", "belongs to the gateway or the file system"),
        "fifo": ("pipe", "neither a file nor a directory"),
        "d/.slipway,self": ("../made", "a name of the gateway's own"),
        ".slipway,x": ("made", "reserved"),
    }

    def link(self, bucket: Bucket) -> Path:
        """A bucket with links in it."""
        bucket.put("real.html", b"1", headers={"x-amz-meta-colour": "blue"})
        (bucket.tree / "d").mkdir()
        (bucket.tree / "made").write_bytes(b"22")
        (bucket.tree / ".slipway").mkdir(exist_ok=True)
        (bucket.tree / ".slipway" / "notes").write_bytes(b"22")
        os.mkfifo(bucket.tree / "pipe")
        for name, (target, _) in self.LINKS.items():
            (bucket.tree / name).symlink_to(target)
        return bucket.tree

    def test_links(self, bucket):
        """What is said of them is what the server does."""
        tree = self.link(bucket)
        for name, (target, why) in self.LINKS.items():
            (found,) = stat(tree / name)
            assert found["is"] == "link" and found["link"]["target"] == target, found
            assert found["link"]["followed"] is (why is None), found
            answer = bucket.head(name)
            if why:
                assert why in found["why"] and "S3 does not follow it" in found["why"], found
                assert (found["object"], found["key"], found["stamp"]) == (None, None, None)
                assert answer.status == 404, name
            elif (tree / name).is_file():
                assert found["key"] == name and f'"{found["object"]["etag"]}"' == expect.ok(answer).etag
                assert (
                    found["object"]["headers"].get("content-type", "binary/octet-stream")
                    == answer.headers["content-type"]
                )
            else:
                assert found["key"] == f"{name}/" and answer.status == 404
        assert "listings do not enter it" in stat(tree / "d" / "loop")[0]["why"]
        text = run("stat", tree / "passwd")
        assert "leads to       /etc/passwd\n" in text and "etag" not in text and "size" not in text

    def test_what_is_behind_a_link(self, bucket, tmp_path):
        tree = self.link(bucket)
        (tmp_path / "file").write_bytes(b"1")
        (tree / "outside").symlink_to(tmp_path)
        (found,) = stat(tree / "outside" / "file")
        assert (found["is"], found["object"], found["key"]) == ("no object", None, None)
        assert "outside, a link to" in found["why"] and "leads out of its bucket" in found["why"]
        assert bucket.head("outside/file").status == 404
        (tree / "d" / "file").write_bytes(b"1")
        (found,) = stat(tree / "directory" / "file")
        assert f'"{found["object"]["etag"]}"' == expect.ok(bucket.head("directory/file")).etag
        # A link from elsewhere is none of S3's.
        (tmp_path / "into").symlink_to(tree)
        (found,) = stat(tmp_path / "into" / "real.html")
        assert (found["is"], found["key"], found["link"]) == ("object", "real.html", None)

    def test_beside_the_buckets(self, make_server):
        tree = make_server().tree
        (tree / "bucket").mkdir()
        (tree / "plain").write_bytes(b"1")
        (tree / "link").symlink_to("bucket")
        for name, why in (("plain", "beside the buckets"), ("link", "at the place of a bucket")):
            (found,) = stat(tree / name)
            assert found["bucket"] is None and found["object"] is None and why in found["why"], found

    def test_in_no_tree(self, tmp_path):
        (tmp_path / "file").write_bytes(b"1")
        (found,) = stat(tmp_path / "file")
        assert (found["is"], found["object"], found["foreign"]) == ("no object", None, False)
        assert "known to have served" in found["why"] and "--tree" in found["why"]
        assert "etag" not in run("stat", tmp_path / "file")

    def test_sentences_are_not_escaped(self, bucket):
        bucket.file("it's").write_bytes(b"1")
        assert "key            it's\n" in run("stat", bucket.file("it's"))
        (bucket.tree / "lost+found").mkdir()
        assert "a file system's own files\n" in run("stat", bucket.tree / "lost+found")

    def test_what_is_not_there(self, tmp_path):
        run("stat", tmp_path / "missing", status=1)
        run("stat", status=2)

    def test_a_name_is_one_line(self, bucket):
        path = bucket.file("a\nobject")
        path.write_bytes(b"1")
        assert "\nobject" not in run("stat", path)


class TestRehash:
    def test_sdk_downloads_verify(self, bucket, s3):
        data = {"a.html": pattern(3 * MIB), "d/e.bin": b"", "d/f.json": b"{}"}
        for name, content in data.items():
            bucket.file(name).parent.mkdir(exist_ok=True)
            bucket.file(name).write_bytes(content)
            os.utime(bucket.file(name), (1_000_000_000, 1_000_000_000))
        before = {name: bucket.head(name).headers["last-modified"] for name in data}
        assert "3 rehashed, 0 already had records, 0 failed" in run("rehash", bucket.tree)
        for name, content in data.items():
            got = s3.get_object(Bucket=bucket.name, Key=name, ChecksumMode="ENABLED")
            assert got["Body"].read() == content
            assert got["ChecksumCRC64NVME"] == checksum("CRC64NVME", content)
            assert got["ETag"] == f'"{md5(content)}"'
            assert bucket.head(name).headers["last-modified"] == before[name]
        assert bucket.head("a.html").headers["content-type"] == "text/html"
        assert "0 rehashed, 3 already had records, 0 failed" in run("rehash", bucket.tree)

    def test_an_edited_object(self, bucket):
        bucket.put("a", b"1", headers={"content-type": "text/x", "x-amz-meta-colour": "blue"})
        bucket.put("b", b"1")
        bucket.file("a").write_bytes(b"22")
        dry = run("rehash", "--dry-run", bucket.tree)
        assert f"foreign: {bucket.file('a')}\n" in dry and "1 foreign, 1 already had records" in dry
        assert bucket.head("a").etag.startswith('"foreign-')
        assert "1 rehashed" in run("rehash", bucket.file("a"))
        got = bucket.head("a", headers=CHECKED)
        assert got.etag == f'"{md5(b"22")}"'
        # What was said of other bytes does not come back.
        assert "x-amz-meta-colour" not in got.headers

    def test_beside_a_gateway_that_writes(self, bucket):
        """Whatever wins, every object has the ETag of its bytes in the end."""
        stop = threading.Event()
        chance = random.Random(5)

        def write() -> None:
            while not stop.is_set():
                name = f"k{chance.randrange(5)}"
                data = chance.randbytes(chance.choice([10, 100_000]))
                if chance.random() < 0.5:
                    bucket.put(name, data)
                else:
                    (bucket.tree / "new").write_bytes(data)
                    os.replace(bucket.tree / "new", bucket.tree / name)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(10):
                subprocess.run([binary(), "rehash", bucket.tree], capture_output=True, timeout=60)
        finally:
            stop.set()
            writer.join()
        run("rehash", bucket.tree)
        for name in bucket.keys():
            got = expect.ok(bucket.get(name, headers=CHECKED))
            assert got.etag == f'"{md5(got.body)}"'
            assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", got.body)

    def test_the_tree_must_be_known(self, tmp_path):
        (tmp_path / "tree" / "bucket").mkdir(parents=True)
        (tmp_path / "tree" / "bucket" / "a").write_bytes(b"1")
        assert "--tree" in run("rehash", tmp_path / "tree", status=2)
        assert "1 rehashed" in run("rehash", "--tree", tmp_path / "tree", tmp_path / "tree" / "bucket")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another")
    def test_root_hands_over(self, bucket, tmp_path):
        place = tmp_path / "tree" / "bucket"
        place.mkdir(parents=True)
        (place / "a").write_bytes(b"1")
        for path in (tmp_path / "tree", place, place / "a"):
            os.chown(path, NOBODY, NOBODY)
        run("rehash", "--tree", tmp_path / "tree", place)
        own = [place / ".slipway", *(place / ".slipway").rglob("*")]
        assert len(own) >= 3
        assert {path.stat().st_uid for path in own} == {NOBODY}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another")
class TestSweepByRoot:
    """Of a tree that another user serves."""

    @pytest.fixture
    def served(self, make_server) -> Iterator[Bucket]:
        # Where that user may go.
        place = Path(tempfile.mkdtemp(prefix="slipway-sweep-", dir="/tmp"))
        place.chmod(0o755)
        program = place / "slipway"
        shutil.copy(binary(), program)
        tree = place / "tree"
        tree.mkdir()
        os.chown(tree, NOBODY, NOBODY)
        yield Bucket(make_server(tree=tree, as_nobody=True, program=program), "bucket").create()
        remove_tree(place)

    def test_it_hands_over(self, served):
        for number in range(200):
            served.put(f"k{number}")
        own = served.tree / ".slipway"
        own.mkdir(mode=0o700, exist_ok=True)
        for name in ("staging", "overflow"):
            (own / name).mkdir(exist_ok=True)
        (own / ".slipway,own").touch()
        # A crash left a note of directories, and the rest of a record.
        note = own / "staging" / (31 * "0" + "7")
        os.symlink("0:gone", note)
        (own / "overflow" / "00000000000000000000000000000007").write_bytes(b"\x01")
        for path in (own, *own.glob("*"), *own.glob("*/*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        run("sweep", "--age", "0", served.server.tree)
        assert not note.is_symlink()
        assert len(os.listdir(own / "locks")) >= 64
        owners = {path.stat().st_uid for path in [own, *own.rglob("*")]}
        assert owners == {NOBODY}
        for number in range(200):
            served.put(f"k{number}", b"again")
            expect.ok(served.delete(f"k{number}"), 204)

    def test_a_lock_of_another_is_told(self, served):
        served.put("key")
        locks = served.tree / ".slipway" / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        for number in range(65):
            (locks / f"{number:02x}").touch(mode=0o600)
            os.chown(locks / f"{number:02x}", 0, 0)
        for path in (locks.parent, locks):
            os.chown(path, NOBODY, NOBODY)
        expect.error(served.raw.put(served.path("key"), b"x"), "AccessDenied")
        log = served.server.log
        assert f'path="{locks}/' in log and "owner=0" in log and f"gateway={NOBODY}" in log
        assert "belongs to another user" in log


class TestImport:
    file = staticmethod(versitygw_file)

    @pytest.fixture
    def peers(self, tmp_path):
        """A tree that versitygw served."""
        bucket = tmp_path / "tree" / "lab"
        bucket.mkdir(parents=True)
        crc = {"CRC64NVME": checksum("CRC64NVME", b"plain"), "CRC32": None}
        checksums = json.dumps({"Algorithm": "CRC64NVME", "Type": "FULL_OBJECT", **crc}).encode()
        self.file(
            bucket,
            "dir/plain",
            b"plain",
            {"metadata": b'{"colour":"blue"}', "cache-control": b"no-store", "checksums": checksums},
        )
        parts = [b"x" * 5 * MIB, b"yz"]
        whole = md5(b"".join(hashlib.md5(part).digest() for part in parts)) + "-2"
        ends = gzip.compress(json.dumps({"uploadId": "u", "parts": [5 * MIB, 5 * MIB + 2]}).encode())
        self.file(bucket, "multi", b"".join(parts), {"etag": f'"{whole}"'.encode(), "mp-metadata": ends})
        self.file(bucket, "older", b"older", {"X-Amz-Meta.shape": b"round"})
        self.file(bucket, "edited", b"before").write_bytes(b"after")
        self.file(bucket, "tagged", b"1", {"X-Amz-Tagging": b'{"a":"b"}'})
        (bucket / "made").write_bytes(b"by a person")
        (bucket / "folder").mkdir()
        os.setxattr(bucket / "folder", "user.etag", b'"d41d8cd98f00b204e9800998ecf8427e"')
        self.file(bucket, ".sgwtmp/multipart/abc/1", b"part")
        return bucket, whole

    def test_objects_are_what_they_were(self, peers, make_server):
        tree, whole = peers
        dry = run("import", "versitygw", "--dry-run", tree.parent, status=1)
        assert "5 to import" in dry
        assert not any(RECORD in os.listxattr(path) for path in tree.rglob("*"))
        said = run("import", "versitygw", tree.parent, status=1)
        assert (
            "5 imported, 0 already had Slipway's records, 1 had neither these nor the other server's metadata, 1 not imported"
            in said
        )
        assert f"stale: {tree / 'edited'}: " in said
        assert f"left: {tree / '.sgwtmp'}: " in said
        assert os.listxattr(tree / "tagged") == [RECORD]

        raw = make_server("--metadata", "xattr", tree=tree.parent).raw
        got = expect.ok(raw.get("/lab/dir/plain", headers=CHECKED))
        assert got.body == b"plain" and got.etag == f'"{md5(b"plain")}"'
        assert got.headers["x-amz-meta-colour"] == "blue" and got.headers["cache-control"] == "no-store"
        assert got.headers["content-type"] == "text/x-peer"
        assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"plain")
        got = expect.ok(raw.get("/lab/multi", query={"partNumber": "2"}), 206)
        assert got.body == b"yz" and got.etag == f'"{whole}"' and got.headers["x-amz-mp-parts-count"] == "2"
        assert expect.ok(raw.head("/lab/older")).headers["x-amz-meta-shape"] == "round"
        [tag] = expect.ok(raw.get("/lab/tagged", query={"tagging": ""})).xml.child("TagSet").all("Tag")
        assert (tag["Key"], tag["Value"]) == ("a", "b")
        assert expect.ok(raw.head("/lab/folder/")).etag == '"d41d8cd98f00b204e9800998ecf8427e"'
        assert raw.head("/lab/edited").etag.startswith('"foreign-')
        (tree / "dir" / "plain").write_bytes(b"edited")
        again = run("import", "versitygw", "--keep-attributes", tree.parent, status=1)
        told = "it has a record of Slipway's already (written or imported later), and another program changed it since"
        assert f"stale: {tree / 'dir/plain'}: {told}" in again

    def test_a_bucket_in_place_of_the_tree(self, peers):
        """Nothing is imported of it, and that may not be what was meant."""
        bucket = peers[0].parent / "files"
        self.file(bucket, "a", b"1", {})
        for directory, asks in [(bucket, True), (bucket.parent, False)]:
            command = [binary(), "import", "versitygw", "--dry-run", directory]
            done = subprocess.run(command, capture_output=True, text=True)
            assert ("is it the right one?" in done.stderr) == asks, done

    def test_rehash_keeps_what_versitygw_noted(self, peers, make_server):
        """Also of a file that import leaves, since it was edited."""
        tree, _ = peers
        raw = make_server("--metadata", "xattr", tree=tree.parent).raw
        shown = ["content-type", "cache-control", "x-amz-meta-colour"]
        before = {key: expect.ok(raw.head(f"/lab/{key}")) for key in ["edited", "dir/plain"]}
        run("rehash", "--tree", tree.parent, tree.parent)
        for key, old in before.items():
            now = expect.ok(raw.head(f"/lab/{key}"))
            assert [now.headers.get(name) for name in shown] == [old.headers.get(name) for name in shown]
            assert old.etag.startswith('"foreign-') and now.etag == f'"{md5((tree / key).read_bytes())}"'

    def test_kept_attributes_and_trust(self, peers):
        tree, _ = peers
        said = run("import", "versitygw", "--keep-attributes", "--trust-etags", tree.parent)
        assert "6 imported" in said
        assert "user.etag" in os.listxattr(tree / "dir" / "plain")
        # It could not know.
        assert stat(tree / "edited")[0]["object"]["etag"] == md5(b"before")

    def test_sidecars(self, tmp_path):
        (tmp_path / "tree" / "lab").mkdir(parents=True)
        (tmp_path / "tree" / "lab" / "a").write_bytes(b"1")
        meta = tmp_path / "sidecar" / "lab" / "a" / "meta"
        meta.mkdir(parents=True)
        (meta / "etag").write_text(f'"{md5(b"1")}"')
        (meta / "metadata").write_text('{"colour":"blue"}')
        said = run("import", "versitygw", "--sidecar", tmp_path / "sidecar", tmp_path / "tree")
        assert "1 imported" in said and (meta / "etag").exists()
        (found,) = stat(tmp_path / "tree" / "lab" / "a")
        assert found["object"]["etag"] == md5(b"1")
        assert found["object"]["headers"] == {"x-amz-meta-colour": "blue"}

    def test_versions_are_refused(self, tmp_path):
        said = run("import", "versitygw", "--versioning-dir", tmp_path, tmp_path, status=2)
        assert "older versions cannot be imported yet" in said
        run("import", "versitygw", tmp_path / "missing", status=2)

    def test_on_the_fly(self, peers, make_server):
        tree, _ = peers
        raw = make_server("--metadata", "xattr", tree=tree.parent).raw
        got = expect.ok(raw.get("/lab/dir/plain", headers=CHECKED))
        assert got.headers["x-amz-meta-colour"] == "blue" and got.headers["content-type"] == "text/x-peer"
        assert got.etag.startswith('"foreign-') and "x-amz-checksum-crc64nvme" not in got.headers
        assert "can import" in run("stat", tree / "dir" / "plain")
        raw.put("/lab/dir/plain", b"new")
        got = raw.head("/lab/dir/plain")
        assert got.etag == f'"{md5(b"new")}"' and "x-amz-meta-colour" not in got.headers

    def test_on_the_fly_with_trust(self, peers, make_server):
        tree, whole = peers
        raw = make_server("--trust-versitygw", tree=tree.parent).raw
        assert raw.head("/lab/multi").etag == f'"{whole}"'
        page = expect.ok(raw.get("/lab", query={"list-type": "2", "prefix": "multi"})).xml
        assert [entry["ETag"] for entry in page.all("Contents")] == [f'"{whole}"']
        expect.ok(raw.put("/lab/multi", b"new", headers={"if-match": f'"{whole}"'}))
        # A checksum that might be of older bytes is never shown.
        got = raw.head("/lab/dir/plain", headers=CHECKED)
        assert got.etag == f'"{md5(b"plain")}"' and "x-amz-checksum-crc64nvme" not in got.headers

    def test_hostile_attributes(self, tmp_path, make_server):
        tree = tmp_path / "tree" / "lab"
        bomb = gzip.compress(b" " * (64 << 20))
        self.file(
            tree,
            "a",
            b"1",
            {
                "content-type": b"text/plain\r\nx-evil: 1",
                "metadata": b'{"bad name":"x","line":"a\\nb","fine":"1"}',
                "mp-metadata": bomb[:3000] if len(bomb) > 3000 else bomb,
                "checksums": b64encode(b"{"),
            },
        )
        got = expect.ok(make_server(tree=tree.parent).raw.get("/lab/a"))
        assert "x-evil" not in got.headers and got.headers.starting("x-amz-meta-") == {"x-amz-meta-fine": "1"}
