"""Whose the files are: modes, groups that directories leave, and `--chown`."""

import errno
import os
import stat
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.data import PART, pattern
from support.faultlayer import KILL, FaultLayer, is_supported
from support.server import ACCESS_KEY, KEYS, RECORDS, SECRET_KEY, SIDECARS, assert_nothing_staged, binary
from support.tools import sweep
from support.wire import Closed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")

UID, GID = 12001, 12002
ACCOUNT = {**KEYS, "SLIPWAY_ROOT_UID": str(UID), "SLIPWAY_ROOT_GID": str(GID)}


@pytest.fixture
def given(make_server) -> Bucket:
    """A bucket of a server that gives files to root's account."""
    return Bucket(make_server("--chown", env=ACCOUNT), "bucket").create()


def owner(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_uid, status.st_gid


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


class TestChown:
    def test_objects_and_their_directories(self, given):
        assert owner(given.tree) == (UID, GID)
        given.put("a", b"1")
        given.put("d/e/f", b"2")
        given.put("long", pattern(2 << 20))
        given.put("empty", b"")
        given.put("marker/", b"")
        given.put("bytes/", b"with bytes")
        for key in ("a", "d", "d/e", "d/e/f", "long", "empty", "marker", "bytes", "bytes/.slipway,dir"):
            assert owner(given.file(key)) == (UID, GID), key
        assert given.read("d/e/f") == b"2"

    def test_what_was_there_keeps_its_owner_until_it_is_replaced(self, given):
        given.file("mine").mkdir()
        given.file("mine/file").write_bytes(b"by a program")
        os.chown(given.file("mine/file"), 12010, 12011)
        given.put("mine/other", b"1")
        given.put("mine/", b"")
        assert owner(given.file("mine")) == (0, 0)
        assert owner(given.file("mine/file")) == (12010, 12011)
        given.put("mine/file", b"replaced")
        assert owner(given.file("mine/file")) == (UID, GID)

    def test_a_file_that_becomes_a_directory(self, given):
        given.file("a").write_bytes(b"by a program")
        given.put("a/b", b"1")
        assert owner(given.file("a")) == (UID, GID)
        assert owner(given.file("a/.slipway,self")) == (0, 0), "the program's own file stays the program's"
        assert owner(given.file("a/b")) == (UID, GID)

    def test_copies(self, given):
        given.file("source").write_bytes(pattern(PART))
        copy = {"x-amz-copy-source": f"/{given.name}/source"}
        expect.ok(given.raw.put(given.path("d/copy"), headers=copy))
        assert owner(given.file("d/copy")) == owner(given.file("d")) == (UID, GID)
        # Onto itself, for other metadata: a new file, which belongs to who wrote it.
        itself = copy | {"x-amz-metadata-directive": "REPLACE", "x-amz-meta-a": "b"}
        expect.ok(given.raw.put(given.path("source"), headers=itself))
        assert owner(given.file("source")) == (UID, GID)

    @pytest.mark.parametrize("sizes", [(PART, PART, 9), (PART, PART + 1, 9)], ids=["in place", "copied"])
    def test_uploads(self, given, sizes):
        upload_id = given.create_upload("d/up")
        etags = [
            (n, expect.ok(given.put_part("d/up", upload_id, n, pattern(size, n))).etag)
            for n, size in enumerate(sizes, 1)
        ]
        parts = given.tree / ".slipway" / "uploads" / upload_id
        for name in ("00001", "00002", "00003", *([] if SIDECARS else ["assembly1"])):
            assert owner(parts / name) == (UID, GID), name
        expect.ok(given.complete("d/up", upload_id, etags))
        assert owner(given.file("d/up")) == owner(given.file("d")) == (UID, GID)
        assert given.file("d/up").stat().st_size == sum(sizes)

    def test_copied_parts(self, given):
        given.put("source", pattern(PART))
        upload_id = given.create_upload("up")
        copy = {"x-amz-copy-source": f"/{given.name}/source", "x-amz-copy-source-range": "bytes=0-99"}
        expect.ok(given.put_part("up", upload_id, 1, b"", headers=copy))
        assert owner(given.tree / ".slipway" / "uploads" / upload_id / "00001") == (UID, GID)

    def test_the_account_may_stand_with_the_keys(self, make_server, tmp_path):
        keys = tmp_path / "keys.toml"
        lines = [f'access_key = "{ACCESS_KEY}"', f'secret_key = "{SECRET_KEY}"', "uid = 12003", "gid = 12004"]
        keys.write_text("\n".join(lines))
        keys.chmod(0o600)
        bucket = Bucket(
            make_server("--chown", "--credentials-file", str(keys), env=ACCOUNT), "bucket"
        ).create()
        bucket.put("a", b"1")
        assert owner(bucket.file("a")) == (12003, 12004)

    def test_without_the_option_an_account_changes_nothing(self, make_server):
        bucket = Bucket(make_server(env=ACCOUNT), "bucket").create()
        bucket.put("d/a", b"1")
        assert {owner(bucket.tree), owner(bucket.file("d")), owner(bucket.file("d/a"))} == {(0, 0)}

    def test_without_an_account_files_are_the_servers(self, make_server):
        server = make_server("--chown")
        bucket = Bucket(server, "bucket").create()
        bucket.put("a", b"1")
        assert owner(bucket.file("a")) == (0, 0)
        assert "no uid and gid are known for root" in server.log

    @pytest.mark.parametrize(
        "capabilities, starts", [("-all", False), ("-all,+chown", False), ("-all,+chown,+dac_override", True)]
    )
    def test_a_server_that_may_not_says_so_at_its_start(self, tmp_path, capabilities, starts):
        """What is given away must still be read and replaced, which takes the second capability."""
        tree = tmp_path / "tree"
        tree.mkdir()
        # An account that is none ends the start that would succeed.
        (tree / ".slipway").mkdir(0o700)
        (tree / ".slipway" / "account.toml").write_text("none\n")
        command = [binary(), "serve", "--chown", "--listen", "127.0.0.1:0", tree]
        command = ["setpriv", "--bounding-set", capabilities, *command]
        done = subprocess.run(command, env=ACCOUNT, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1
        says = "account.toml" if starts else "CAP_CHOWN, and CAP_DAC_OVERRIDE"
        assert says in done.stderr, done.stderr

    @pytest.mark.skipif(not is_supported(), reason="the fault layer knows this processor's system calls only")
    def test_a_refusal_leaves_nothing(self, make_server):
        """A file system may refuse what the capability allows: NFS that squashes root does."""
        layer = FaultLayer()
        server = make_server("--chown", env=ACCOUNT, faults=layer)
        bucket = Bucket(server, "bucket").create()
        bucket.put("old", b"old")
        upload_id = bucket.create_upload("up")
        etag = expect.ok(bucket.put_part("up", upload_id, 1, pattern(PART))).etag

        def refused(request, at=1):
            layer.arm(errno.EPERM, at, only={"fchown"})
            response = request()
            assert layer.disarm(), "nothing was given away"
            return expect.error(response, "AccessDenied")

        refused(lambda: bucket.raw.put(bucket.path("new"), b"new"))
        refused(lambda: bucket.raw.put(bucket.path("d/e/new"), b"new"))
        # The first directory that is made, and the second.
        refused(lambda: bucket.raw.put(bucket.path("d/e/new"), b"new"), at=2)
        refused(lambda: bucket.raw.put(bucket.path("d/e/new"), b"new"), at=3)
        refused(lambda: bucket.raw.put(bucket.path("d/"), b""))
        refused(lambda: bucket.raw.put(bucket.path("old"), b"new"))
        refused(lambda: bucket.raw.put(bucket.path("old/below"), b"new"), at=2)
        refused(lambda: bucket.put_part("up", upload_id, 2, pattern(PART)))
        refused(lambda: bucket.complete("up", upload_id, [(1, etag)]))
        refused(lambda: server.raw.put("/other-bucket"))
        assert set(os.listdir(bucket.tree)) - {RECORDS} == {".slipway", "old"}
        assert bucket.files() == bucket.keys() == ["old"]
        assert bucket.read("old") == b"old"
        assert not (server.tree / "other-bucket").exists()
        assert_nothing_staged(bucket.tree)
        # Nor has the upload come to harm.
        expect.ok(bucket.complete("up", upload_id, [(1, etag)]))
        assert bucket.read("up") == pattern(PART)

    @pytest.mark.skipif(not is_supported(), reason="the fault layer knows this processor's system calls only")
    @pytest.mark.parametrize("end", ["sweep", "delete"])
    def test_what_a_crash_leaves_of_what_was_given_away_goes(self, show, make_server, end):
        """Without nameless files, those of a directory that leaves its group are staged in that itself."""
        tree = show() / "tree"
        tree.mkdir()
        layer = FaultLayer()
        server = make_server("--chown", tree=tree, env=ACCOUNT, faults=layer)
        bucket = Bucket(server, "bucket").create()
        bucket.file("d").mkdir()
        os.chown(bucket.file("d"), 0, 12020)
        bucket.file("d").chmod(0o2777)
        layer.arm(KILL, 1, only={"linkat"})
        with suppress(Closed, ConnectionError):
            bucket.raw.put(bucket.path("d/new"), b"new")
        server.wait()
        assert layer.disarm()
        [left] = (path for path in bucket.file("d").iterdir() if path.name != RECORDS)
        assert left.name.startswith(".slipway,t") and owner(left)[0] == UID
        if end == "sweep":
            sweep(tree)
            assert {path.name for path in bucket.file("d").iterdir()} <= {RECORDS}
            assert_nothing_staged(bucket.tree)
        again = Bucket(make_server("--chown", tree=tree, env=ACCOUNT), "bucket")
        expect.ok(again.raw.delete("/bucket"), 204)
        assert not bucket.tree.exists()


class TestDirectoriesDecide:
    """Without `--chown` what is made gets what its directory leaves to it, as any program's files do."""

    ACL_GROUP = 12020

    def default_acl(self, path: Path) -> None:
        """The owning user and a named group may do all, others nothing."""
        nobody = 0xFFFF_FFFF
        entries = [(1, 7, nobody), (4, 5, nobody), (8, 7, self.ACL_GROUP), (16, 7, nobody), (32, 0, nobody)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(path, "system.posix_acl_default", acl)
        except OSError as error:
            pytest.skip(f"no ACLs here: {error}")

    def acl(self, path: Path, kind: str = "access") -> bytes:
        return os.getxattr(path, f"system.posix_acl_{kind}")

    def writes(self, bucket: Bucket) -> list[str]:
        """Everything that makes a file or directory below `d`; returns what was made."""
        bucket.put("d/file", b"1")
        bucket.put("d/new/deep/file", b"2")
        bucket.put("d/marker/", b"")
        bucket.upload("d/up", [pattern(PART), b"2"])
        copy = {"x-amz-copy-source": f"/{bucket.name}/d/file"}
        expect.ok(bucket.raw.put(bucket.path("d/copy"), headers=copy))
        bucket.put("d/file", b"replaced")
        bucket.put("d/was-file", b"3")
        bucket.put("d/was-file/below", b"4")
        made = ["file", "new", "new/deep", "new/deep/file", "marker", "up", "copy"]
        return [*made, "was-file", "was-file/below"]

    def test_the_group_of_a_setgid_directory(self, bucket):
        top = bucket.file("d")
        top.mkdir()
        os.chown(top, -1, 12021)
        top.chmod(0o2775)
        for name in self.writes(bucket):
            assert owner(top / name) == (0, 12021), name
            assert not (top / name).is_dir() or mode(top / name) & stat.S_ISGID, name
        assert bucket.read("d/was-file") == b"3"

    def test_default_acls(self, bucket):
        top = bucket.file("d")
        top.mkdir()
        self.default_acl(top)
        for name in self.writes(bucket):
            assert struct.pack("<HHI", 8, 7, self.ACL_GROUP) in self.acl(top / name), name
            assert mode(top / name) & 0o007 == 0, name
            assert not (top / name).is_dir() or self.acl(top / name, "default"), name
        assert bucket.read("d/was-file") == b"3"
