"""Records in files beside the objects', as on file systems without extended attributes."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.faultlayer import FaultLayer, is_supported
from support.server import Server, StartFailed, binary

MIB = 1 << 20


@pytest.fixture
def server(make_server):
    return make_server("--metadata", "sidecar")


@pytest.fixture
def bucket(server):
    return Bucket(server, "lab").create()


def fsck(bucket: Bucket, *options: str) -> list[tuple[str, str]]:
    command = [binary(), "fsck", "--json", "--min-age", "0", *options, bucket.server.tree]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    problems = [json.loads(line) for line in done.stdout.splitlines()]
    return [(p["problem"], p["state"]) for p in problems if "problem" in p]


def test_nothing_is_in_attributes(bucket):
    bucket.put("a/b", b"1", headers={"x-amz-meta-k": "v", "content-type": "text/x"})
    expect.ok(bucket.raw.put(bucket.path("c"), headers={"x-amz-copy-source": bucket.path("a/b")}))
    for path in [bucket.tree, *bucket.tree.rglob("*")]:
        assert os.listxattr(path) == []
    for key in ["a/b", "c"]:
        got = bucket.get(key)
        assert (got.body, got.headers["x-amz-meta-k"], got.headers["content-type"]) == (b"1", "v", "text/x")
    assert fsck(bucket) == []


def forget_metadata(tree: Path) -> None:
    """As a tree is that an earlier version served first: what is in it has to tell."""
    note = tree / ".slipway" / "tree.toml"
    lines = note.read_text().splitlines(keepends=True)
    note.write_text("".join(line for line in lines if not line.startswith("metadata")))


def test_a_tree_remembers(bucket, make_server):
    bucket.put("a", b"1", headers={"x-amz-meta-k": "v"})
    again = Bucket(make_server(tree=bucket.server.tree), "lab")
    assert again.head("a").headers["x-amz-meta-k"] == "v"
    with pytest.raises(StartFailed, match="served with --metadata sidecar since its first start"):
        make_server("--metadata", "xattr", tree=bucket.server.tree)
    forget_metadata(bucket.server.tree)
    with pytest.raises(StartFailed, match="served with --metadata sidecar before"):
        make_server("--metadata", "xattr", tree=bucket.server.tree)
    done = subprocess.run([binary(), "stat", "--json", bucket.file("a")], capture_output=True, text=True)
    assert json.loads(done.stdout)["record"]["sidecar"] is True


def test_a_tree_whose_note_is_lost(bucket, make_server):
    """Its options say where records are, to tools as well, and the next start writes the note again."""
    bucket.put("a", b"1", headers={"x-amz-meta-k": "v"})
    tree = bucket.server.tree
    bucket.server.stop()
    note = tree / ".slipway" / "metadata"
    note.unlink()
    assert fsck(bucket) == []
    done = subprocess.run([binary(), "stat", "--json", bucket.file("a")], capture_output=True, text=True)
    assert json.loads(done.stdout)["record"]["sidecar"] is True
    with pytest.raises(StartFailed, match="Give --metadata sidecar"):
        make_server("--metadata", "xattr", tree=tree)
    reader = make_server("--read-only", tree=tree)
    assert Bucket(reader, "lab").head("a").headers["x-amz-meta-k"] == "v"
    reader.stop()
    assert not note.exists()
    again = Bucket(make_server(tree=tree), "lab")
    assert again.head("a").headers["x-amz-meta-k"] == "v" and note.read_text() == "sidecar\n"


def test_buckets_without_their_tree(bucket, make_server, tmp_path):
    """As from a backup of buckets alone."""
    bucket.put("a", b"1", headers={"x-amz-meta-k": "v"})
    bucket.server.stop()
    for name in ("one", "two"):
        shutil.copytree(bucket.tree, tmp_path / name / "lab")
    done = subprocess.run([binary(), "fsck", tmp_path / "one"], capture_output=True, text=True)
    assert "start it once with --metadata sidecar" in done.stdout and "rename" not in done.stdout, done
    for tree in (tmp_path / "one", tmp_path / "two"):
        with pytest.raises(StartFailed, match='"lab": records of objects are in files there'):
            make_server(tree=tree)
        assert not (tree / ".slipway").exists()
    one = make_server("--metadata", "sidecar", tree=tmp_path / "one")
    assert Bucket(one, "lab").head("a").headers["x-amz-meta-k"] == "v"
    two = make_server("--metadata", "xattr", tree=tmp_path / "two")
    assert "x-amz-meta-k" not in Bucket(two, "lab").head("a").headers
    two.stop()
    told = "these buckets have records in files (.slipway,records), which are not used"
    assert told in make_server(tree=tmp_path / "two").log
    assert "not used" not in make_server(tree=tmp_path / "one").log


def test_a_tree_with_records_in_attributes_is_not_hidden(make_server, tmp_path):
    """Their objects would look as if another program had made them, and get new records."""
    first = make_server("--metadata", "xattr")
    bucket = Bucket(first, "lab").create()
    bucket.put("a", b"1", headers={"x-amz-meta-k": "v"})
    forget_metadata(first.tree)
    with pytest.raises(StartFailed, match="lab/a has its record in an extended attribute"):
        make_server("--metadata", "sidecar", tree=first.tree)
    assert bucket.head("a").headers["x-amz-meta-k"] == "v"
    (tmp_path / "other" / "lab").mkdir(parents=True)
    (tmp_path / "other" / "lab" / "foreign").write_bytes(b"1")
    make_server("--metadata", "sidecar", tree=tmp_path / "other")


def test_parts(bucket):
    parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), b"end"]
    upload = bucket.create_upload("big")
    etags = [bucket.put_part("big", upload, n, b"x" * 100).etag for n in (1, 2, 3)]
    # Sent again, they replace the first ones.
    etags = [bucket.put_part("big", upload, n, body).etag for n, body in enumerate(parts, 1)]
    completed = expect.ok(bucket.complete("big", upload, list(enumerate(etags, 1))))
    assert bucket.read("big") == b"".join(parts)
    assert bucket.head("big").etag == completed.xml["ETag"]
    assert fsck(bucket) == []


def test_records_of_what_was_moved_by_hand(bucket):
    bucket.put("d/a", b"1")
    bucket.put("d/b", b"1")
    os.rename(bucket.file("d/a"), bucket.file("d/c"))
    assert "foreign" in bucket.head("d/c").etag
    assert fsck(bucket) == [("record-orphaned", "repairable")]
    assert fsck(bucket, "--repair") == [("record-orphaned", "repaired")]
    assert fsck(bucket) == []
    # With the last object, the directory goes, although a person has left a record in it.
    os.remove(bucket.file("d/c"))
    expect.ok(bucket.delete("d/b"), 204)
    assert not bucket.file("d").exists()


def test_rehash(bucket):
    bucket.file("f").write_bytes(b"1")
    subprocess.run([binary(), "rehash", bucket.file("f")], check=True, capture_output=True, timeout=60)
    assert bucket.head("f").etag.strip('"') == hashlib.md5(b"1").hexdigest()
    assert os.listxattr(bucket.file("f")) == []


def test_a_used_bucket_is_kept_and_an_empty_one_goes(bucket):
    bucket.put("a/", b"")
    expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty")
    expect.ok(bucket.delete("a/"), 204)
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    assert not bucket.tree.exists()


def test_no_key_leads_to_records(bucket):
    bucket.put("a", b"1")
    for key in [".slipway,records/a", ".slipway,records", ".slipway,records/"]:
        expect.error(bucket.get(key), "NoSuchKey")
        bucket.put(key, b"mine")
        assert bucket.read(key) == b"mine"
    os.symlink(".slipway,records/a", bucket.file("link"))
    os.symlink(".slipway,records", bucket.file("links"))
    expect.error(bucket.get("link"), "NoSuchKey")
    expect.error(bucket.get("links/a"), "NoSuchKey")
    assert sorted(bucket.keys()) == [".slipway,records", ".slipway,records/", ".slipway,records/a", "a"]


def test_a_link_to_the_bucket(bucket):
    """It is no object, as where records are attributes, and listings end there."""
    bucket.put("d/key", b"1")
    bucket.put("key", b"2")
    (bucket.tree / "d" / "loop").symlink_to("..")
    (bucket.tree / "here").symlink_to(".")
    for key in ("d/loop", "here"):
        expect.error(bucket.get(key), "NoSuchKey")
        expect.head_error(bucket.head(key), 404)
    assert bucket.keys() == ["d/key", "key"]
    assert bucket.read("d/loop/key") == b"2"


class TestAfterAPowerCut:
    """What is left of records that were not flushed."""

    LEFT = {
        "nothing": lambda _: b"",
        "zeros": lambda whole: bytes(len(whole)),
        "beginning": lambda whole: whole[:30],
    }

    def leave(self, bucket: Bucket, what: str) -> None:
        for key in ("a", "b"):
            bucket.put(key, b"1", headers={"x-amz-meta-k": "v"})
            record = bucket.file(f".slipway,records/{key}")
            whole = record.read_bytes()
            if what == "beginning" and whole[17:25] == bytes(8):
                pytest.skip("inode numbers do not last here")
            record.write_bytes(self.LEFT[what](whole))

    @pytest.mark.parametrize("what", LEFT)
    def test_keys_are_not_closed_for_ever(self, make_server, what):
        bucket = Bucket(make_server("--metadata", "sidecar", "--durability", "none"), "lab").create()
        self.leave(bucket, what)
        for key in ("a", "b"):
            got = bucket.get(key)
            assert got.body == b"1" and "x-amz-meta-k" not in got.headers
            assert got.headers["etag"].startswith('"foreign-')
        bucket.put("a", b"2", headers={"x-amz-meta-k": "new"})
        assert bucket.head("a").headers["x-amz-meta-k"] == "new"
        for key in ("a", "b"):
            expect.ok(bucket.delete(key), 204)
        assert fsck(bucket) == []
        expect.ok(bucket.raw.delete(bucket.path()), 204)

    @pytest.mark.parametrize("what", ["nothing", "zeros"])
    def test_a_server_that_flushes_leaves_what_may_be_somebody_s(self, bucket, what):
        self.leave(bucket, what)
        expect.error(bucket.raw.put(bucket.path("a"), b"2"), "AccessDenied")
        assert bucket.read("a") == b"1"


@pytest.mark.skipif(not is_supported(), reason="the filter knows the call numbers of x86-64 only")
def test_a_record_that_cannot_get_its_name(tmp_path):
    """Nothing is written then: the object stays what it was, with its own record."""
    tree = tmp_path / "tree"
    tree.mkdir()
    layer = FaultLayer()
    server = Server(tree, "--metadata", "sidecar", log=tmp_path / "log", faults=layer)
    try:
        bucket = Bucket(server, "lab").create()
        bucket.put("a", b"old", headers={"x-amz-meta-k": "old"})
        layer.arm(errno.EIO, 1, only={"renameat"})
        expect.error(bucket.raw.put(bucket.path("a"), b"new"), "InternalError")
        assert layer.disarm().about == "a"
        got = bucket.get("a")
        assert (got.body, got.headers["x-amz-meta-k"]) == (b"old", "old")
        assert fsck(bucket) == []
    finally:
        server.stop()
