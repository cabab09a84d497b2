"""File systems that lack something that the server needs."""

import json
import os
import re
import shutil
import subprocess

import pytest

from support import expect
from support.bucket import Bucket
from support.data import MIB, PART, pattern
from support.lacks import UNSUITABLE, table_of_lacks
from support.server import StartFailed, binary
from support.tools import run

TABLE = table_of_lacks()
# What makes our own file system lack something, by the names of that table.
PROVOKED = {
    "names by case": ["--no-case"],
    "hard links": ["--no-links"],
    "replacing": ["--fail=rename:new"],
    "locks": ["--fail=flock:Name"],
    "flushes": ["--fail=fsyncdir:*"],
    "attributes": ["--no-attributes"],
    "nameless files": [],
    "exchange": [],
    "steady names": [],
    "locks between mounts": [],
    "one machine": [],
    "lasting inodes": [],
    "fine times": ["--whole-seconds"],
    "shared blocks": [],
    "reserving": [],
    "room": ["--no-statfs"],
}


# It has these whatever it is asked; unit tests of the storage have volumes without them.
NOT_PROVOKED = {"names by bytes", "exclusive creation", "naming", "modes"}
LACKS = {
    name: (PROVOKED[name], says)
    for name, (what, says) in TABLE.items()
    if what == "refused" and name in PROVOKED
}


# What it is served with all the same.
SERVED_WITH = {
    "names by case": ["--allow-same-names"],
    "flushes": ["--durability", "data"],
    "attributes": ["--metadata", "sidecar"],
}


IN_ATTRIBUTES = ["--metadata", "xattr"]


def of_bucket(says: str) -> str:
    """Where the records of a tree are is settled, when a bucket of it is looked at."""
    return says.replace(
        ", use another file system, or keep records in files with --metadata sidecar",
        ", or use another file system",
    )


class TestLacking:
    """Said at the start, or of a bucket before the first write, not in the middle of a request."""

    @pytest.mark.parametrize("lack", LACKS)
    def test_at_the_start(self, show, make_server, lack):
        options, says = LACKS[lack]
        tree = show(*options)
        with pytest.raises(StartFailed, match=f"cannot be served: {re.escape(says)}"):
            make_server(*IN_ATTRIBUTES, tree=tree)
        assert os.listdir(tree) == []

    @pytest.mark.parametrize("lack", SERVED_WITH)
    def test_it_is_served_if_that_is_asked_for(self, show, make_server, lack):
        tree = show(*LACKS[lack][0]) / "tree"
        tree.mkdir()
        bucket = Bucket(make_server(*SERVED_WITH[lack], tree=tree), "bucket").create()
        for body in (b"one", pattern(3 * MIB)):
            bucket.put("key", body, headers={"x-amz-meta-a": "b"})
            assert bucket.read("key") == body
            assert bucket.head("key").headers["x-amz-meta-a"] == "b"
        assert bucket.raw.get(bucket.path("KEY")).status == (200 if lack == "names by case" else 404)

    @pytest.mark.parametrize("made", [False, True])
    @pytest.mark.parametrize("lack", LACKS)
    def test_of_a_bucket(self, make_server, show, lack, made):
        """It may be mounted later, and on its own."""
        options, says = LACKS[lack]
        server = make_server(*IN_ATTRIBUTES)
        bucket, other = (Bucket(server, name).create() for name in ("bucket", "other"))
        other.put("key", b"one")
        shutil.rmtree(bucket.tree)
        show(*options, at=bucket.tree)
        if made:
            # As of a bucket that was written to before, where nothing takes a flush to be made.
            for name in ("staging", "uploads", "locks"):
                (bucket.tree / ".slipway" / name).mkdir(parents=True)
        (bucket.tree / "foreign").write_bytes(b"two")
        copy = {"x-amz-copy-source": "other/key"}
        for response in (
            bucket.raw.put(bucket.path("key"), b"x"),
            bucket.raw.put(bucket.path("key"), pattern(3 * MIB)),
            bucket.raw.put(bucket.path("key"), headers=copy),
            bucket.raw.put(bucket.path("directory/"), b""),
            bucket.raw.put(bucket.path("directory/"), b"x"),
            bucket.raw.post(bucket.path("key"), query={"uploads": ""}),
        ):
            expect.error(response, "NotImplemented", UNSUITABLE)
        assert not any((bucket.tree / ".slipway").glob("uploads/*"))
        assert bucket.keys() == ["foreign"] and bucket.read("foreign") == b"two"
        assert set(os.listdir(bucket.tree)) == {".slipway", "foreign"}
        assert of_bucket(says) in server.log and "--metadata" not in server.log
        other.put("key", b"three")

    @pytest.mark.parametrize("lack", LACKS)
    def test_of_a_bucket_that_is_mounted_at_the_start(self, tmp_path, make_server, show, lack):
        """Told before any client asks."""
        options, says = LACKS[lack]
        tree = tmp_path / "tree"
        (tree / "bucket").mkdir(parents=True)
        show(*options, at=tree / "bucket")
        server = make_server(*IN_ATTRIBUTES, tree=tree)
        assert of_bucket(says) in server.log and "--metadata" not in server.log
        bucket = Bucket(server, "bucket")
        response = bucket.raw.put(bucket.path("key"), b"x")
        expect.error(response, "NotImplemented", UNSUITABLE)

    def test_where_others_keep_files_nothing_is_made_at_the_start(self, tmp_path, make_server, show):
        tree = tmp_path / "tree"
        (tree / "bucket").mkdir(parents=True)
        show(at=tree / "bucket")
        (tree / "bucket" / "foreign").write_bytes(b"1")
        bucket = Bucket(make_server(tree=tree), "bucket")
        assert os.listdir(bucket.tree) == ["foreign"] and bucket.read("foreign") == b"1"
        bucket.put("key", b"2")
        assert bucket.keys() == ["foreign", "key"]

    def test_the_table_is_complete(self):
        assert set(TABLE) == set(PROVOKED) | NOT_PROVOKED
        assert {what for what, _ in TABLE.values()} == {"refused", "done another way"}

    def test_stat_of_what_takes_no_directory(self):
        done = subprocess.run([binary(), "stat", "--try", "/proc"], capture_output=True, text=True)
        assert done.returncode == 1, done
        assert "/proc: what its file system can do cannot be tried there: No such file" in done.stderr, done

    @pytest.mark.parametrize("lack", PROVOKED)
    def test_stat_tells(self, show, lack):
        """Once it is tried, and leaves nothing."""
        tree = show(*PROVOKED[lack])
        done = subprocess.run([binary(), "stat", "--try", "--json", tree], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        volume = json.loads(done.stdout)["volume"]
        assert (volume["kind"], volume["driver"], volume["tried"]) == ("FUSE", "fuse.passthrough", True)
        what, says = TABLE[lack]
        assert {"lack": lack, "refused": what == "refused", "says": says} in volume["lacks"]
        assert os.listdir(tree) == []

    @pytest.mark.parametrize(("option", "needs"), [("--rename-flags", "no"), ("--nfs-locks", "yes")])
    def test_stat_tells_whether_locks_need_writing(self, show, option, needs):
        """As on NFS."""
        volume = json.loads(run("stat", "--try", "--json", show(option)))["volume"]
        assert volume["facts"]["locks need writing"] == needs

    def test_an_exchange_is_tried(self, show, make_server):
        """A file becomes a directory in one step where that is possible, and in two elsewhere."""
        for options, announced in (("--rename-flags",), False), ((), True):
            tree = show(*options) / f"tree{announced}"
            tree.mkdir()
            bucket = Bucket(make_server(tree=tree), "bucket").create()
            for key in ("a", "a/b"):
                bucket.put(key, key.encode())
            expect.error(bucket.get("missing"), "NoSuchKey")
            assert bucket.keys() == ["a", "a/b"] and bucket.read("a") == b"a"
            assert os.path.lexists(bucket.tree / ".slipway" / "converting") == announced
            bucket.server.stop()

    def test_what_does_not_tell_its_space(self, show, make_server):
        """Of a file system without blocks none is known to be full."""
        tree = show("--no-statfs") / "tree"
        tree.mkdir()
        bucket = Bucket(make_server(tree=tree), "bucket").create()
        data = pattern(3 * MIB)
        bucket.put("key", data)
        expect.ok(bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": "bucket/key"}))
        bucket.upload("parted", [pattern(PART), pattern(PART, 1)])
        assert bucket.read("key") == bucket.read("copy") == data
        assert bucket.read("parted") == pattern(PART) + pattern(PART, 1)
