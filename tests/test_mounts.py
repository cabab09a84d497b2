"""What is mounted over what is served, and file systems that can't do what is asked of them."""

import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.data import MIB, PART, pattern
from support.identities import client, error_of, master_key
from support.lacks import UNSUITABLE
from support.server import StartFailed
from support.tools import run
from support.wire import poll

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems")
# Whoever cannot do something for that reason names it, too.
REFUSED = "leads to another directory than at the start: something"


@pytest.fixture
def mount(make_server) -> Iterator[Callable[..., Path]]:
    """`mount("-t", ..., where)`, until the test ends: before the servers' trees are removed."""
    with ExitStack() as stack:

        def make(*arguments: str | Path, command: str = "mount") -> Path:
            done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"this machine does not mount that: {done.stderr.strip()}")
            where = Path(arguments[-1])
            stack.callback(unmount, where)
            return where

        yield make


def unmount(where: Path) -> None:
    subprocess.run(["umount", "--lazy", where], capture_output=True)


def image(path: Path, size: int = 64 * MIB) -> Path:
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def mount_kind(kind: str, where: Path, mount) -> None:
    """Mounts an empty file system of this kind."""
    if kind == "tmpfs":
        mount("-t", "tmpfs", "tmpfs", where)
        return
    if not shutil.which(f"mkfs.{kind}"):
        pytest.skip(f"needs mkfs.{kind}, which ./test does not install")
    disk = image(where.with_name(f"{where.name}.{kind}"), 512 * MIB)
    subprocess.run([f"mkfs.{kind}", "-q", disk], check=True, capture_output=True)
    mount("-o", "loop", disk, where)


def await_refusal(bucket: Bucket) -> None:
    poll(lambda: bucket.head("old").status == 503, 10)


def await_service(bucket: Bucket) -> None:
    poll(lambda: bucket.head("old").status == 200, 10)


def check_refused(bucket: Bucket) -> None:
    for response in (
        bucket.get("old"),
        bucket.raw.put(bucket.path("new"), b"x"),
        bucket.raw.put(bucket.path("large"), pattern(3 * MIB)),
        bucket.delete("old"),
        bucket.raw.get(bucket.path(), query={"list-type": "2"}),
        bucket.raw.post(bucket.path("new"), query={"uploads": ""}),
        bucket.raw.get("/"),
        bucket.raw.put("/another"),
    ):
        expect.error(response, "ServiceUnavailable")
    assert bucket.server.log.count(REFUSED) == 1


@pytest.fixture
def bucket(make_server) -> Bucket:
    bucket = Bucket(make_server(), "bucket").create()
    bucket.put("old", b"data")
    return bucket


def test_another_directory_has_the_path(bucket):
    tree = bucket.server.tree
    aside = tree.with_name("aside")
    tree.rename(aside)
    shutil.copytree(aside, tree)
    await_refusal(bucket)
    check_refused(bucket)
    assert sorted(os.listdir(tree / "bucket")) == sorted(os.listdir(aside / "bucket"))
    shutil.rmtree(tree)
    check_refused(bucket)
    aside.rename(tree)
    await_service(bucket)
    assert bucket.read("old") == b"data"
    bucket.put("new", b"x")


@only_root
class TestOver:
    def test_the_tree(self, bucket, mount):
        """As where a volume is mounted after the server was started."""
        tree = bucket.server.tree
        below = sorted(os.listdir(tree / "bucket"))
        mount("-t", "tmpfs", "tmpfs", tree)
        await_refusal(bucket)
        check_refused(bucket)
        assert os.listdir(tree) == []
        unmount(tree)
        await_service(bucket)
        assert sorted(os.listdir(tree / "bucket")) == below
        assert bucket.read("old") == b"data"

    def test_while_a_body_arrives(self, bucket, mount):
        body = pattern(3 * MIB)
        request = bucket.raw.prepare("PUT", bucket.path("new"), body=body)
        with bucket.raw.connect() as connection:
            connection.send(request.head + body[: 2 * MIB])
            mount("-t", "tmpfs", "tmpfs", bucket.server.tree)
            await_refusal(bucket)
            connection.send(body[2 * MIB :])
            expect.error(connection.response(), "ServiceUnavailable")
        unmount(bucket.server.tree)
        await_service(bucket)
        assert bucket.keys() == ["old"]

    def test_unmounted_lazily(self, tmp_path, mount, make_server):
        tree = tmp_path / "tree"
        tree.mkdir()
        mount("-t", "tmpfs", "tmpfs", tree)
        bucket = Bucket(make_server("--require-mount", tree=tree), "bucket").create()
        bucket.put("old", b"data")
        unmount(tree)
        await_refusal(bucket)
        check_refused(bucket)
        assert os.listdir(tree) == []

    def test_a_bucket(self, bucket, mount):
        """Opened by its name each time: what is there is what is served."""
        mount("-t", "tmpfs", "tmpfs", bucket.tree)
        expect.error(bucket.get("old"), "NoSuchKey")
        bucket.put("new", b"x")
        bucket.put("large", pattern(3 * MIB))
        assert bucket.keys() == ["large", "new"]
        unmount(bucket.tree)
        assert bucket.keys() == ["old"]

    def test_a_bucket_that_is_unmounted(self, tmp_path, mount, make_server):
        """The directory below is not served in its place: it is on another disk, and hidden later."""
        tree = tmp_path / "tree"
        for name in ("bucket", "late", "plain"):
            (tree / name).mkdir(parents=True)
        disk = image(tmp_path / "disk")
        subprocess.run(["mkfs.ext4", "-q", disk], check=True, capture_output=True)
        mount("-o", "loop", disk, tree / "bucket")
        server = make_server(tree=tree)
        bucket, late, plain = (Bucket(server, name) for name in ("bucket", "late", "plain"))
        mount("-t", "tmpfs", "tmpfs", late.tree)
        for each in (bucket, late, plain):
            each.put("old", b"data")
            each.put("warm", b"data")
            assert each.read("old") == b"data"
        for each in (bucket, late):
            unmount(each.tree)
            await_refusal(each)
            source = {"x-amz-copy-source": f"{each.name}/old"}
            for response in (
                each.get("warm"),
                each.raw.put(each.path("new"), b"x"),
                each.raw.put(each.path("large"), pattern(3 * MIB)),
                each.raw.get(each.path(), query={"list-type": "2"}),
                each.raw.post(each.path("new"), query={"uploads": ""}),
                each.raw.delete(each.path()),
                plain.raw.put(plain.path("copy"), headers=source),
            ):
                expect.error(response, "ServiceUnavailable")
            listed = expect.ok(server.raw.get("/")).xml.child("Buckets").all("Bucket")
            assert "plain" in [one["Name"] for one in listed]
            assert each.name not in [one["Name"] for one in listed]
            assert os.listdir(each.tree) == []
            assert server.log.count("the file system of a bucket was unmounted") == 1 + (each is late)
            assert plain.read("old") == b"data"
        mount("-o", "loop", disk, bucket.tree)
        await_service(bucket)
        assert bucket.keys() == ["old", "warm"]
        bucket.put("new", b"x")
        # Without the directory there is no bucket, and a new one is none that was unmounted.
        late.tree.rmdir()
        poll(lambda: late.head("old").status == 404, 10)
        late.create()
        late.put("new", b"x")

    def test_a_bucket_is_not_deleted(self, bucket, mount):
        """Nor one that has a mount point inside."""
        told = "The bucket is a mount point on the server, and can only be removed there."

        def explained(cause):
            """Whether a line of the log has the cause, and the id that the request's answer has."""
            lines = [line for line in bucket.server.log.splitlines() if cause in line]
            return bool(lines) and all(re.search(r'id="?[0-9A-F]{16}', line) for line in lines)

        mount("-t", "tmpfs", "tmpfs", bucket.tree)
        for _ in range(2):
            expect.error(bucket.raw.delete(bucket.path()), "AccessDenied", told)
            assert bucket.raw.put(bucket.path("key"), b"x").status == 200
        assert explained("the bucket is a mount point") and "denied" not in bucket.server.log
        unmount(bucket.tree)
        assert bucket.delete("old").status == 204
        (bucket.tree / "inside").mkdir()
        mount("-t", "tmpfs", "tmpfs", bucket.tree / "inside")
        refused = bucket.raw.delete(bucket.path())
        expect.error(refused, "BucketNotEmpty", re.compile("holds files that are not objects"))
        assert explained("a file system is mounted there")
        unmount(bucket.tree / "inside")
        bucket.remove()

    @pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs"])
    def test_a_bucket_of_another_kind(self, bucket, mount, kind):
        """What is remembered of it is as true as elsewhere: a program's changes show at once."""
        mount_kind(kind, bucket.tree, mount)
        for body in (b"one", b"two", pattern(3 * MIB)):
            bucket.put("dir/key", body)
            # From its record, from memory, and after a program's change.
            for _ in range(3):
                assert bucket.read("dir/key") == body
                assert bucket.head("dir/key").headers["content-length"] == str(len(body))
            time.sleep(0.1)
            assert bucket.read("dir/key") == bucket.read("dir/key") == body
            (bucket.tree / "dir/key").write_bytes(b"by a program")
            assert bucket.read("dir/key") == b"by a program"
        expect.ok(bucket.raw.put(bucket.path("copy"), headers={"x-amz-copy-source": "bucket/dir/key"}))
        bucket.upload("parted", [pattern(PART), pattern(PART, 1)])
        assert bucket.read("parted") == pattern(PART) + pattern(PART, 1)
        assert bucket.keys() == ["copy", "dir/key", "parted"]
        assert bucket.delete("dir/key").status == 204
        expect.error(bucket.get("dir/key"), "NoSuchKey")

    def test_a_subvolume(self, tmp_path, mount, make_server):
        """On another device than the tree, and no mount."""
        tree = tmp_path / "tree"
        tree.mkdir()
        mount_kind("btrfs", tree, mount)
        subprocess.run(["btrfs", "subvolume", "create", tree / "bucket"], check=True, capture_output=True)
        bucket = Bucket(make_server(tree=tree), "bucket")
        for body in (b"one", b"two"):
            bucket.put("key", body)
            time.sleep(0.1)
            assert bucket.read("key") == bucket.read("key") == body
            (bucket.tree / "key").write_bytes(b"by a program")
            assert bucket.read("key") == b"by a program"
        # Uploads can't be moved out of it, and so keep it; an empty directory of theirs does not.
        upload_id = bucket.create_upload("object")
        etag = expect.ok(bucket.put_part("object", upload_id, 1, b"part")).etag
        expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty")
        expect.ok(bucket.delete("key"), 204)
        refused = bucket.raw.delete(bucket.path())
        told = "The bucket has uploads in progress: complete or abort them first."
        expect.error(refused, "BucketNotEmpty", told)
        assert "which cannot be set aside while it is deleted, since it is a subvolume" in bucket.server.log
        expect.ok(bucket.complete("object", upload_id, [(1, etag)]))
        assert bucket.read("object") == b"part"
        expect.ok(bucket.delete("object"), 204)
        expect.ok(bucket.raw.delete(bucket.path()), 204)
        assert [path.name for path in tree.iterdir()] == [".slipway"]

    def test_stat_tells_of_a_mounted_bucket(self, bucket, mount):
        """Without a trial: what is known of its kind. Of a bucket on the tree's file system that is the tree's."""

        def volume() -> dict | None:
            return json.loads(run("stat", "--json", bucket.tree))["volume"]

        assert volume() is None
        mount("-t", "tmpfs", "tmpfs", bucket.tree)
        found = volume()
        assert (found["kind"], found["driver"], found["tried"]) == ("tmpfs", "tmpfs", False)
        assert volume() == found and os.listdir(bucket.tree) == []

    def test_many_other_mounts(self, bucket, mount, tmp_path):
        for number in range(50):
            (tmp_path / f"m{number}").mkdir()
            mount("-t", "tmpfs", "tmpfs", tmp_path / f"m{number}")
        assert bucket.read("old") == b"data"


class TestRequireMount:
    def test_nothing_is_mounted(self, tmp_path, make_server):
        (tmp_path / "tree").mkdir()
        with pytest.raises(
            StartFailed, match="--require-mount is given, but no file system is mounted there"
        ):
            make_server("--require-mount", tree=tmp_path / "tree")
        with pytest.raises(StartFailed, match="cannot be opened: No such file"):
            make_server("--require-mount", tree=tmp_path / "missing")
        assert not (tmp_path / "missing").exists()


def with_exfat(place: Path, mount) -> Path:
    """No hard links, no attributes, no case."""
    if not shutil.which("mkfs.exfat") or not shutil.which("mount.exfat-fuse"):
        pytest.skip(
            "needs exfatprogs and exfat-fuse, which ./test does not install; TestLacking says the same"
        )
    place.mkdir(exist_ok=True)
    disk = image(place.with_name(f"{place.name}.img"))
    subprocess.run(["mkfs.exfat", disk], check=True, capture_output=True)
    # Not of a file. It is given back once it is unmounted.
    done = subprocess.run(["losetup", "--find", "--show", disk], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        return mount(device, place, command="mount.exfat-fuse")
    finally:
        subprocess.run(["losetup", "--detach", device], capture_output=True)


def with_ntfs(place: Path, mount, options: str) -> Path:
    if not shutil.which("mkfs.ntfs") or not shutil.which("lowntfs-3g"):
        pytest.skip("needs ntfs-3g, which ./test does not install: TestLacking says the same")
    place.mkdir(exist_ok=True)
    disk = image(place.with_name(f"{place.name}.img"))
    subprocess.run(["mkfs.ntfs", "--force", "--quick", disk], check=True, capture_output=True)
    return mount("-o", options, disk, place, command="lowntfs-3g")


@only_root
class TestLackingForReal:
    """The same of file systems that people have."""

    @pytest.mark.parametrize("options", [(), ("--allow-same-names",)])
    def test_exfat(self, tmp_path, mount, make_server, options):
        tree = with_exfat(tmp_path / "tree", mount)
        says = "does not distinguish the names KEY and key" if not options else "no hard links"
        with pytest.raises(StartFailed, match=says):
            make_server("--metadata", "sidecar", *options, tree=tree)
        assert [name for name in os.listdir(tree) if name != ".slipway"] == []

    def test_a_bucket_of_exfat(self, tmp_path, mount, make_server):
        bucket = Bucket(make_server("--metadata", "sidecar"), "bucket").create()
        shutil.rmtree(bucket.tree)
        with_exfat(bucket.tree, mount)
        for body in (b"x", pattern(3 * MIB)):
            response = bucket.raw.put(bucket.path("key"), body)
            expect.error(response, "NotImplemented", UNSUITABLE)
        assert bucket.keys() == []
        assert "does not distinguish the names KEY and key" in bucket.server.log

    def test_without_case(self, tmp_path, mount, make_server):
        tree = with_ntfs(tmp_path / "tree", mount, "ignore_case")
        with pytest.raises(StartFailed, match="does not distinguish the names KEY and key"):
            make_server("--metadata", "sidecar", tree=tree)
        asked = make_server("--metadata", "sidecar", "--allow-same-names", tree=tree)
        bucket = Bucket(asked, "bucket").create()
        bucket.put("key", b"one")
        assert bucket.read("KEY") == b"one"

    def test_with_case(self, tmp_path, mount, make_server):
        tree = with_ntfs(tmp_path / "tree", mount, "big_writes")
        bucket = Bucket(make_server("--metadata", "sidecar", tree=tree), "bucket").create()
        bucket.put("key", b"one")
        bucket.put("KEY", b"two")
        assert (bucket.read("key"), bucket.read("KEY")) == (b"one", b"two")


def debugfs(disk: Path, command: str) -> str:
    done = subprocess.run(["debugfs", "-w", "-R", command, disk], capture_output=True, text=True, check=True)
    # The first line tells the version.
    assert done.stderr.count("\n") <= 1, done.stderr
    return done.stdout


def damage_attributes(disk: Path, path: str) -> None:
    block = re.search(r"File ACL: (\d+)", debugfs(disk, f"stat {path}"))[1]
    assert block != "0"
    debugfs(disk, f"zap_block -p 0xa5 {block}")


@only_root
class TestDamage:
    """What can't be read hides nothing else."""

    @pytest.fixture
    def damaged(self, tmp_path, mount, make_server) -> Bucket:
        if not shutil.which("debugfs"):
            pytest.skip("needs debugfs")
        disk, place = image(tmp_path / "image"), tmp_path / "disk"
        place.mkdir()
        subprocess.run(["mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal", disk], check=True)
        mount("-o", "loop", disk, place)
        server = make_server("--metadata", "xattr", tree=place / "tree")
        bucket = Bucket(server, "bucket").create()
        for key in ("a", "bad", "bad-dir/deep/x", "d/bad", "d/gone", "d/good", "marked/", "marked/x", "z"):
            # More than an inode has room for.
            body = b"" if key.endswith("/") else key.encode()
            bucket.put(key, body, headers={"x-amz-meta-long": "x" * 1500})
        server.stop()
        subprocess.run(["umount", place], check=True)
        top = "tree/bucket"
        for path in ("bad", "d/bad", "marked"):
            damage_attributes(disk, f"{top}/{path}")
        # What can't even be looked at, and what can't be looked into.
        debugfs(disk, f"set_inode_field {top}/d/gone file_acl 0xfffffff")
        debugfs(disk, f"set_inode_field {top}/bad-dir/deep block[0] 0")
        subprocess.run(["mount", "-o", "loop", disk, place], check=True)
        return Bucket(make_server("--metadata", "xattr", tree=place / "tree"), "bucket")

    def test_listings(self, damaged):
        with pytest.raises(OSError):
            os.getxattr(damaged.file("bad"), "user.slipway")
        with pytest.raises(OSError):
            os.listdir(damaged.file("bad-dir/deep"))
        with pytest.raises(OSError):
            damaged.file("d/gone").stat()
        assert damaged.keys() == ["a", "bad", "d/bad", "d/good", "marked/x", "z"]
        assert damaged.keys(prefix="d/") == ["d/bad", "d/good"]
        page = damaged.page(delimiter="/")
        assert [c["Key"] for c in page.all("Contents")] == ["a", "bad", "z"]
        shown = {c["Key"]: c for c in page.all("Contents")}
        assert shown["bad"]["Size"] == "3"
        assert shown["bad"]["ETag"].strip('"').startswith("foreign-")
        assert not shown["a"]["ETag"].strip('"').startswith("foreign-")
        assert [p["Prefix"] for p in page.all("CommonPrefixes")] == ["d/", "marked/"]
        log = damaged.server.log
        for told in (
            'key="bad"',
            'key="d/bad"',
            'key="d/gone"',
            'key="bad-dir/deep/"',
            'directory="marked" ',
        ):
            assert told in log

    def test_a_directory_whose_record_is_damaged(self, damaged):
        with pytest.raises(OSError):
            os.getxattr(damaged.file("marked"), "user.slipway")
        for prefix in ("m", "marked", "marked/"):
            assert damaged.keys(prefix=prefix) == ["marked/x"]
        assert damaged.read("marked/x") == b"marked/x"
        # Of the key itself nothing is known.
        assert damaged.head("marked/").status == 500

    def test_who_asks_for_it_alone_is_told(self, damaged):
        response = damaged.raw.get(damaged.path(), query={"list-type": "2", "prefix": "bad-dir/deep/"})
        expect.error(response, "InternalError")


@only_root
def test_twins_of_one_second(tmp_path, mount, make_server):
    """Times in whole seconds, and two objects of one size: `mv` gives one the other's name, no record."""
    disk, place = image(tmp_path / "image"), tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-I", "128", disk], check=True, capture_output=True)
    mount("-o", "loop", disk, place)
    server = make_server("--metadata", "sidecar", "--durability", "none", tree=place / "tree")
    bucket, rounds = Bucket(server, "bucket").create(), itertools.count()

    def twins() -> tuple[str, str] | None:
        # Others each time: what is written again within a second has its time set apart.
        a, b = (f"{name}{next(rounds)}" for name in "ab")
        etags = [bucket.put(a, b"one").etag, bucket.put(b, b"two").etag]
        assert etags == [bucket.head(key).etag for key in (a, b)]
        return (a, b) if bucket.file(a).stat().st_mtime_ns == bucket.file(b).stat().st_mtime_ns else None

    a, b = poll(twins, 30)
    before = bucket.head(b).etag
    os.rename(bucket.file(a), bucket.file(b))
    got = bucket.get(b)
    assert got.body == b"one" and got.etag != before
    assert {c["Key"]: c["ETag"] for c in bucket.page().all("Contents")}[b] == got.headers["etag"]
    bucket.put(b, b"six")
    assert bucket.head(b).etag == bucket.put("c", b"six").etag


@only_root
def test_what_is_mounted_twice_is_not_copied_onto_itself(make_bucket, mount):
    """Whoever moves would delete the source then."""
    bucket, other = make_bucket(), make_bucket()
    bucket.put("real/file", b"data")
    for at in (bucket.file("again"), other.file("again")):
        at.mkdir()
        mount("--bind", bucket.file("real"), at)
    message = re.compile("to copy an object to itself")
    for target in (bucket, other):
        header = {"x-amz-copy-source": f"{bucket.name}/real/file"}
        response = target.raw.put(target.path("again/file"), headers=header)
        expect.error(response, "InvalidRequest", message)
    assert bucket.read("real/file") == b"data"


@only_root
def test_users_cannot_be_changed_where_the_file_system_only_reads(make_server, mount, tmp_path):
    """It is not said that the server has an option which it was not given."""
    tree, at = tmp_path / "tree", tmp_path / "read-only"
    first = make_server("--master-key-file", str(master_key(tmp_path)), tree=tree)
    client(first, "iam").create_user(UserName="ann")
    first.stop()
    at.mkdir()
    mount("--bind", tree, at)
    mount("-o", "remount,bind,ro", at)
    iam = client(make_server("--master-key-file", str(tmp_path / "master-key"), tree=at), "iam")
    assert [user["UserName"] for user in iam.list_users()["Users"]] == ["ann"]
    code, _, message = error_of(iam.create_user, UserName="bob")
    assert code == "UnmodifiableEntity" and "or the file system of its directory is mounted so" in message
