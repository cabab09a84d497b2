"""The file system that is made for tests does what it is asked for, and nothing else."""

import errno
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from file_systems import probes
from support import expect
from support.bucket import Bucket
from support.data import PART, pattern
from support.wire import poll


def refusal(work: Callable[[], object]) -> str:
    try:
        work()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "none"


def test_without_options(show):
    first, second = show(), show()
    found = probes.table(first, second)
    assert found["O_TMPFILE"] == "ENOTSUP" and found["NOREPLACE"] == found["EXCHANGE"] == "EINVAL"
    assert found["link"] == found["flock of a reader"] == "yes"
    assert found["flock"] == "hold across mounts" and found["case"] == "tells names apart"
    assert found["free space"] == "told" and found["removed while open"] == "goes"
    (first / "d").mkdir()
    path = first / "d" / "file"
    path.write_bytes(b"12345")
    os.truncate(path, 3)
    path.chmod(0o640)
    os.chown(path, 1234, 1235)
    os.utime(path, ns=(5, 1_000_000_007))
    (first / "link").symlink_to("d/file")
    shown = (second / "link").stat()
    assert (second / "link").read_bytes() == b"123" and os.readlink(second / "link") == "d/file"
    assert (shown.st_mode & 0o777, shown.st_uid, shown.st_gid) == (0o640, 1234, 1235)
    assert (shown.st_mtime_ns, shown.st_ino) == (1_000_000_007, path.stat().st_ino)
    assert refusal((first / "d").rmdir) == "ENOTEMPTY"
    directory = os.open(first / "d", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    path.rename(first / "moved")
    assert sorted(os.listdir(second)) == ["d", "link", "moved"]


def test_many_at_once(show):
    top = show()

    def work(number: int) -> None:
        for turn in range(50):
            path = top / f"d{number % 3}"
            path.mkdir(exist_ok=True)
            file = path / f"{number}-{turn}"
            file.write_bytes(b"x" * 70_000)
            os.setxattr(file, "user.number", b"%d" % number)
            file.rename(path / f"{number}")
            assert len((path / f"{number}").read_bytes()) == 70_000
            assert os.getxattr(path / f"{number}", "user.number") == b"%d" % number
            assert str(number) in os.listdir(path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_who_makes_a_file_has_it(show):
    top = show()
    top.chmod(0o777)

    def as_user(number: int, *command: str) -> bool:
        user = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        # From there: pytest's own directories are no one else's.
        return subprocess.run([*user, *command], cwd=top, capture_output=True).returncode == 0

    assert as_user(1234, "mkdir", "-m", "700", "theirs") and as_user(1234, "touch", "theirs/file")
    for made in ("theirs", "theirs/file"):
        assert ((top / made).stat().st_uid, (top / made).stat().st_gid) == (1234, 1234)
    assert not as_user(4321, "touch", "theirs/file")


def test_no_case(show):
    top = show("--no-case")
    (top / "Grüße").write_bytes(b"1")
    assert (top / "gRÜßE").read_bytes() == b"1"
    assert refusal(lambda: (top / "GRÜßE").touch(exist_ok=False)) == "EEXIST"
    (top / "d").mkdir()
    assert refusal((top / "D").mkdir) == "EEXIST"
    (top / "other").write_bytes(b"2")
    (top / "OTHER").rename(top / "GRÜßE")
    assert sorted(os.listdir(top)) == ["Grüße", "d"] and (top / "Grüße").read_bytes() == b"2"


def test_no_links(show):
    top = show("--no-links")
    (top / "a").write_bytes(b"")
    assert refusal(lambda: os.link(top / "a", top / "b")) == "EPERM"
    assert os.listdir(top) == ["a"]


def test_no_attributes(show):
    top = show("--no-attributes")
    (top / "a").write_bytes(b"")
    for work in (
        lambda: os.setxattr(top / "a", "user.a", b"1"),
        lambda: os.getxattr(top / "a", "user.a"),
        lambda: os.removexattr(top / "a", "user.a"),
        lambda: os.listxattr(top / "a"),
    ):
        assert refusal(work) == "ENOTSUP"


def test_rename_flags(show):
    found = probes.table(show("--rename-flags"))
    assert found["NOREPLACE"] == found["EXCHANGE"] == "yes"
    assert found["link"] == "yes"
    assert probes.table(show("--rename-flags", "--no-links"))["link"] == "EPERM"


def test_nfs_locks(show):
    top = show("--nfs-locks")
    (top / "a").write_bytes(b"")
    with open(top / "a") as reader, open(top / "a", "ab") as writer:
        assert refusal(lambda: fcntl.flock(reader, fcntl.LOCK_EX)) == "EBADF"
        assert refusal(lambda: fcntl.flock(writer, fcntl.LOCK_SH)) == "EBADF"
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert refusal(lambda: fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)) == "EAGAIN"
        fcntl.flock(reader, fcntl.LOCK_UN)
        fcntl.flock(writer, fcntl.LOCK_EX)


def test_lost_answers(show):
    top = show("--lose=link,mkdir,unlink", "--share=2")
    (top / "a").write_bytes(b"")
    refusals = [refusal(lambda n=n: os.link(top / "a", top / f"b{n}")) for n in range(4)]
    assert refusals == ["none", "EEXIST"] * 2
    assert [refusal((top / f"d{n}").mkdir) for n in range(2)] == ["none", "EEXIST"]
    assert [refusal((top / f"b{n}").unlink) for n in range(4)] == ["none", "ENOENT"] * 2
    assert sorted(os.listdir(top)) == ["a", "d0", "d1"], "all of it was done"
    others = show("--lose=mkdir", "--share=1", "--for=someone-else")
    (others / "d2").mkdir()


def test_whole_seconds(show):
    top = show("--whole-seconds")
    (top / "a").write_bytes(b"")
    os.utime(top / "a", ns=(5, 7_000_000_005))
    shown = (top / "a").stat()
    assert (shown.st_atime_ns, shown.st_mtime_ns) == (0, 7_000_000_000)
    assert shown.st_ctime_ns % 1_000_000_000 == 0


def test_changing_inodes(show):
    first, second = show("--changing-inodes"), show("--changing-inodes")
    path = first / "a"
    path.write_bytes(b"")
    number = path.stat().st_ino
    assert (second / "a").stat().st_ino != number
    poll(lambda: path.stat().st_ino != number, 5)
    with open(path) as file:
        number = os.fstat(file.fileno()).st_ino
        time.sleep(0.3)
        assert path.stat().st_ino == os.fstat(file.fileno()).st_ino == number, "while it is open"


def test_links_apart(show):
    top = show("--links-apart")
    (top / "a").write_bytes(b"1")
    (top / "d").mkdir()
    os.link(top / "a", top / "d" / "b")
    numbers = [(top / name).stat().st_ino for name in ("a", "d/b", "a", "d/b")]
    assert numbers[:2] == numbers[2:] and numbers[0] != numbers[1]
    (top / "a").write_bytes(b"22")
    assert (top / "d" / "b").read_bytes() == b"22" and (top / "a").stat().st_nlink == 1
    (top / "a").rename(top / "d" / "c")
    assert (top / "d" / "c").stat().st_ino == numbers[0]
    (top / "d" / "c").rename(top / "d" / "b")
    assert sorted(os.listdir(top / "d")) == ["b", "c"], "two names of one file"


def test_no_statfs(show):
    shown = os.statvfs(show("--no-statfs"))
    assert (shown.f_blocks, shown.f_bavail, shown.f_files) == (0, 0, 0)


def test_failures(show):
    top = show("--fail=unlink:bad*", "--fail=fsync:bad", "--fail=flock:bad", "--fail=link:?")
    for name in ("bad", "good"):
        (top / name).write_bytes(b"")
    with open(top / "bad", "ab") as bad, open(top / "good", "ab") as good:
        assert refusal(lambda: os.fsync(bad.fileno())) == "EIO"
        assert refusal(lambda: fcntl.flock(bad, fcntl.LOCK_EX)) == "EIO"
        os.fsync(good.fileno())
        fcntl.flock(good, fcntl.LOCK_EX)
    assert refusal((top / "bad").unlink) == "EIO" and (top / "bad").exists()
    assert refusal(lambda: os.link(top / "good", top / "x")) == "EIO"
    os.link(top / "good", top / "long")
    (top / "good").unlink()
    (top / "d").mkdir()
    for options, answer in ((), "none"), (("--fail=fsyncdir:d",), "EIO"), (("--fail=fsync:d",), "none"):
        directory = os.open(show(*options) / "d", os.O_RDONLY)
        assert refusal(lambda fd=directory: os.fsync(fd)) == answer
        os.close(directory)


@pytest.mark.parametrize("operation", ["open", "getattr", "getxattr", "read", "lookup"])
def test_what_a_disk_does_not_give_is_no_answer(show, make_server, operation):
    """A file that can't be read, or its record: neither missing, nor another object, nor in the way of others."""
    plain = show()
    shutil.rmtree(plain / "tree", ignore_errors=True)
    (plain / "tree").mkdir()
    first = Bucket(make_server(tree=plain / "tree"), "bucket").create()
    for name in ("broken", "whole"):
        first.put(name, b"1" * 5000, headers={"x-amz-meta-a": "b"})
    assert first.server.stop() == 0
    bad = show(f"--fail={operation}:broken", "--for=slipway,tokio-rt-worker")
    bucket = Bucket(make_server(tree=bad / "tree"), "bucket")
    expect.error(bucket.get("broken"), "InternalError")
    if operation not in ("open", "read"):
        assert bucket.head("broken").status == 500
    assert bucket.read("whole") == b"1" * 5000
    bucket.server.stop()
    again = Bucket(make_server(tree=plain / "tree"), "bucket")
    assert again.get("broken").headers["x-amz-meta-a"] == "b"


def test_an_upload_is_completed_whatever_its_parts_are_numbered(show, make_server):
    """Its parts are told by something else: the numbers of their files change while bytes are copied."""
    tree = show("--changing-inodes") / "tree"
    tree.mkdir()
    bucket = Bucket(make_server(tree=tree), "bucket").create()
    parts = [pattern(PART + number, number) for number in range(12)]
    bucket.upload("key", parts)
    assert bucket.read("key") == b"".join(parts)


def test_a_file_whose_link_is_a_file_of_its_own_becomes_a_directory(show, make_server):
    """As on sshfs: the two names of the file that goes into the directory have different inode numbers."""
    tree = show("--links-apart") / "tree"
    tree.mkdir()
    bucket = Bucket(make_server(tree=tree), "bucket").create()
    bucket.put("both", b"1", headers={"x-amz-meta-a": "b"})
    bucket.put("both/below", b"2")
    assert (bucket.read("both"), bucket.read("both/below")) == (b"1", b"2")
    assert bucket.head("both").headers["x-amz-meta-a"] == "b"
    assert sorted(os.listdir(bucket.tree / "both")) == [".slipway,self", "below"]
    for key in ("both/below", "both"):
        expect.ok(bucket.delete(key), 204)
    assert sorted(os.listdir(bucket.tree)) == [".slipway"]


def test_a_lost_answer_is_nothing_that_is_lacking(show, make_server):
    """What is tried at the start was done, whatever the answer to a second try says of it."""
    tree = show("--lose=link,mkdir", "--share=1", "--for=slipway,tokio-rt-worker") / "tree"
    tree.mkdir()
    make_server(tree=tree)


def test_what_was_done_without_an_answer_is_done(show, make_server):
    """A directory that was made for a key goes with its last object, and a conditional DELETE that was done has
    succeeded, although a second try found the one there and the other gone."""
    plain = show()
    (plain / "tree").mkdir()
    first = Bucket(make_server(tree=plain / "tree"), "bucket").create()
    for key in ("f/there", "there"):
        first.put(key, b"1")
    assert first.server.stop() == 0
    bad = show("--lose=mkdir,unlink", "--share=1", "--for=slipway,tokio-rt-worker")
    bucket = Bucket(make_server(tree=bad / "tree"), "bucket")
    bucket.put("d/e/key", b"2")
    assert (bucket.tree / "d" / "e" / "key").read_bytes() == b"2"
    for key in ("d/e/key", "f/there", "there"):
        etag = bucket.head(key).etag
        expect.ok(bucket.raw.delete(bucket.path(key), headers={"If-Match": etag}), 204)
        expect.error(bucket.raw.delete(bucket.path(key), headers={"If-Match": etag}), "NoSuchKey")
    assert sorted(os.listdir(bucket.tree)) == [".slipway"]


def test_what_a_writer_left_goes_with_the_bucket(show, make_server):
    """Who removes it locks it, for which NFS wants a file that is open for writing."""
    tree = show("--nfs-locks") / "tree"
    tree.mkdir()
    bucket = Bucket(make_server(tree=tree), "bucket").create()
    bucket.put("key", b"1")
    expect.ok(bucket.delete("key"), 204)
    (bucket.tree / ".slipway" / "staging" / f"{2:032x}").write_bytes(b"2")
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    assert not bucket.tree.exists()
