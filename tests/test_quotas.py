"""Quotas of users and of projects, on the file system that `SLIPWAY_QUOTAS` names, which enforces both: in a machine of
`file_systems/uml.py`.

A file with a project other than that of a directory whose files inherit one cannot get a name there (EXDEV), neither
by a link nor by a rename."""

import errno
import fcntl
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.data import MIB, PART, pattern
from support.faultlayer import FaultLayer, is_supported
from support.server import NOBODY, assert_nothing_staged
from support.tools import findings, sweep
from support.wire import poll

FILE_SYSTEM = os.environ.get("SLIPWAY_QUOTAS", "")
pytestmark = pytest.mark.skipif(
    not FILE_SYSTEM, reason="file_systems/uml.py runs it, where quotas are enforced"
)

# FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR and FS_XFLAG_PROJINHERIT of linux/fs.h.
GET, SET, INHERIT = 0x801C_581F, 0x401C_5820, 0x200
OF_BUCKET, PROJECT, OTHER = 11, 12, 13
LIMIT = 4 * MIB
# What directories, records and lists of extents may take.
SLACK = 256 << 10


def attributes(path: Path, change: tuple[int, int] | None = None) -> int:
    """The project of a file or directory. With `change`, gives it flags and a project."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        held = bytearray(fcntl.ioctl(descriptor, GET, bytes(28)))
        if change:
            struct.pack_into("I", held, 0, struct.unpack_from("I", held)[0] | change[0])
            struct.pack_into("I", held, 12, change[1])
            fcntl.ioctl(descriptor, SET, bytes(held))
        return struct.unpack_from("I", held, 12)[0]
    finally:
        os.close(descriptor)


def give(directory: Path, project: int) -> Path:
    """Gives a directory, and those in it, a project which new files inherit."""
    for path, _, _ in os.walk(directory):
        attributes(Path(path), (INHERIT, project))
    return directory


def directory_of(bucket: Bucket, name: str, project: int) -> Path:
    path = bucket.file(name)
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    return give(path, project)


def projects_below(directory: Path) -> dict[str, int]:
    """Of everything there but what is the server's own."""
    found = {}
    for path, names, files in os.walk(directory):
        if ".slipway" in names:
            names.remove(".slipway")
        for name in names + files:
            found[os.path.relpath(Path(path, name), directory)] = attributes(Path(path, name))
    return found


WHOSE = {"project": ("-P", OF_BUCKET), "user": ("-u", NOBODY)}


def used(kind: str) -> tuple[int, int]:
    """Bytes and inodes that count for the quota."""
    option, number = WHOSE[kind]
    command = ["repquota", option, "-n", "-O", "csv", FILE_SYSTEM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    columns = rows[0]
    row = next(row for row in rows if row[0] == f"#{number}")
    return int(row[columns.index("BlockUsed")]) * 1024, int(row[columns.index("FileUsed")])


@pytest.fixture
def limit() -> Iterator[Callable[..., None]]:
    """`limit("project", size_bytes=..., inodes=...)`, until the test ends; 0 is no limit."""

    def apply(kind: str, size_bytes: int = 0, inodes: int = 0) -> None:
        option, number = WHOSE[kind]
        numbers = ["0", str(size_bytes // 1024), "0", str(inodes)]
        subprocess.run(["setquota", option, str(number), *numbers, FILE_SYSTEM], check=True)

    yield apply
    for kind in WHOSE:
        apply(kind)


@pytest.fixture(params=["nameless", "named"])
def staging(request) -> str:
    if request.param == "named" and not is_supported():
        pytest.skip("O_TMPFILE can be refused on x86-64 alone")
    return request.param


@pytest.fixture
def bucket(make_server, staging: str, limit) -> Bucket:
    """A bucket of a server that is not root, whom quotas of ext4 do not concern."""
    place = Path(tempfile.mkdtemp(prefix="quotas-", dir=FILE_SYSTEM))
    place.chmod(0o755)
    os.chown(place, NOBODY, NOBODY)
    faults = FaultLayer() if staging == "named" else None
    server = make_server(tree=place, as_nobody=True, faults=faults)
    if faults:
        faults.arm(errno.EOPNOTSUPP, 1, only=["openat"], about="nameless file in", lasting=True)
    bucket = Bucket(server, "bucket").create()
    give(bucket.tree, OF_BUCKET)
    return bucket


def expect_another_project_to_fail(request: pytest.FixtureRequest, staging: str) -> None:
    """A named staging file is in `.slipway/staging`, and so is not linked into a directory of another project: EXDEV."""
    if staging == "named":
        reason = "named files are not staged beside their targets (decision 0035)"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))


def check_whole(bucket: Bucket) -> None:
    """Nothing is left of what failed."""
    assert_nothing_staged(bucket.tree)
    sweep(bucket.server.tree)
    assert findings(bucket.server.tree) == []


@pytest.mark.parametrize("kind", WHOSE)
def test_bytes(bucket, limit, kind):
    bucket.put("old", pattern(MIB))
    bucket.put("dir/old", pattern(MIB, 1))
    before = used(kind)
    limit(kind, size_bytes=LIMIT)
    for key in ("new", "old", "dir/new", "dir/old", "other/new", "old/below"):
        expect.error(bucket.raw.put(bucket.path(key), pattern(6 * MIB)), "InsufficientStorage")
    framed = b"".join(b"%x\r\n%s\r\n" % (MIB, pattern(MIB)) for _ in range(6)) + b"0\r\n\r\n"
    chunked = bucket.put_chunked("chunked", framed, 6 * MIB, "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    expect.error(chunked, "InsufficientStorage")
    assert bucket.keys() == bucket.files() == ["dir/old", "old"]
    assert bucket.read("old") == pattern(MIB) and bucket.read("dir/old") == pattern(MIB, 1)
    check_whole(bucket)
    poll(lambda: used(kind)[0] <= before[0] + SLACK, 20)
    # What fits is taken; and what was full can be emptied.
    bucket.put("fits", pattern(MIB, 2))
    assert bucket.read("fits") == pattern(MIB, 2)
    expect.error(bucket.raw.put(bucket.path("more"), pattern(2 * MIB)), "InsufficientStorage")
    for key in ("fits", "old", "dir/old"):
        expect.ok(bucket.delete(key), 204)
    poll(lambda: used(kind)[0] <= SLACK + MIB, 20)
    bucket.put("more", pattern(2 * MIB))
    assert bucket.read("more") == pattern(2 * MIB)


@pytest.mark.parametrize("kind", WHOSE)
def test_inodes(bucket, limit, kind):
    bucket.put("old", b"old")
    limit(kind, inodes=used(kind)[1] + 12)
    stored, refused = ["old"], 0
    for number in range(30):
        key = f"d{number}/key" if number % 2 else f"key{number}"
        response = bucket.raw.put(bucket.path(key), b"%d" % number)
        if response.status == 200:
            stored.append(key)
        else:
            expect.error(response, "InsufficientStorage")
            refused += 1
    assert len(stored) > 3 and refused > 10
    assert bucket.keys() == bucket.files() == sorted(stored)
    assert bucket.read("old") == b"old"
    expect.error(bucket.raw.put(bucket.path("old/below"), b"x"), "InsufficientStorage")
    assert bucket.read("old") == b"old"
    for key in stored:
        expect.ok(bucket.delete(key), 204)
    assert bucket.keys() == []
    limit(kind)
    check_whole(bucket)
    bucket.put("new", b"x")


@pytest.mark.parametrize("kind", WHOSE)
@pytest.mark.parametrize("size", [PART, PART + 1], ids=["in place", "odd"])
def test_parts(bucket, limit, kind, size):
    """A part beyond the quota is refused; those that are there, and the upload, stay as they were."""
    bucket.put("old", b"old")
    upload_id = bucket.create_upload("object")
    one = expect.ok(bucket.put_part("object", upload_id, 1, pattern(size, 1))).etag
    limit(kind, size_bytes=used(kind)[0] + MIB)
    expect.error(bucket.put_part("object", upload_id, 2, pattern(size, 2)), "InsufficientStorage")
    # Nor is the part replaced.
    expect.error(bucket.put_part("object", upload_id, 1, pattern(size, 3)), "InsufficientStorage")
    limit(kind)
    two = expect.ok(bucket.put_part("object", upload_id, 2, pattern(size, 2))).etag
    expect.ok(bucket.complete("object", upload_id, [(1, one), (2, two)]))
    assert bucket.read("object") == pattern(size, 1) + pattern(size, 2)
    check_whole(bucket)


@pytest.mark.parametrize("of_bucket", [True, False], ids=["another of the bucket", "none of the bucket"])
def test_files_inherit(bucket, staging, of_bucket, request):
    """Whatever makes a file, it has the project of its directory, as if a program had made it there."""
    expect_another_project_to_fail(request, staging)
    if not of_bucket:
        bucket = Bucket(bucket.server, "plain").create()
    directories = {
        directory_of(bucket, "d", PROJECT): PROJECT,
        directory_of(bucket, "e", OTHER): OTHER,
    }
    for top in ("d", "e"):
        bucket.put(f"{top}/small", b"1")
        bucket.put(f"{top}/small", b"2")
        bucket.put(f"{top}/large", pattern(3 * MIB))
        bucket.put(f"{top}/large", pattern(3 * MIB, 1))
        bucket.put(f"{top}/deep/er/key", b"3")
        bucket.put(f"{top}/marker/", b"")
        bucket.put(f"{top}/full/", b"bytes")
        bucket.put(f"{top}//odd", b"4")
        bucket.upload(f"{top}/in-place", [pattern(PART), pattern(PART, 1), b"end"])
        bucket.upload(f"{top}/in-place", [pattern(PART, 2), pattern(PART), b"end"])
        bucket.upload(f"{top}/odd", [pattern(PART + 1), b"end"])
        bucket.upload(f"{top}/new/in-place", [pattern(PART), pattern(PART, 1)])
        # A file becomes a directory, and more is put into it.
        bucket.put(f"{top}/both", b"5")
        bucket.put(f"{top}/both/below", b"6")
        bucket.put(f"{top}/both", b"7")
        bucket.file(f"{top}/program").write_bytes(b"by a program")
        os.chown(bucket.file(f"{top}/program"), NOBODY, NOBODY)
        bucket.put(f"{top}/program/below", b"8")
    for source, target in (
        ("d/small", "e/copy"),
        ("e/in-place", "d/copy"),
        ("d/large", "e/small"),
        ("d/odd", "top"),
    ):
        copied = bucket.raw.put(bucket.path(target), headers={"x-amz-copy-source": f"{bucket.name}/{source}"})
        expect.ok(copied)
    assert bucket.read("d/in-place") == pattern(PART, 2) + pattern(PART) + b"end"
    assert bucket.read("d/copy") == bucket.read("e/in-place")
    assert bucket.read("e/small") == pattern(3 * MIB, 1)
    assert bucket.read("e/both") == b"7" and bucket.read("e/both/below") == b"6"
    assert bucket.read("e/program") == b"by a program" and bucket.read("e/program/below") == b"8"
    for directory, project in directories.items():
        found = projects_below(directory)
        assert len(found) > 15 and {name for name, id in found.items() if id != project} == set()
    assert attributes(bucket.file("top")) == (OF_BUCKET if of_bucket else 0)
    check_whole(bucket)
    for key in bucket.keys():
        expect.ok(bucket.delete(key), 204)
    assert bucket.files() == []
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    assert not bucket.tree.exists()


def test_files_that_did_not_inherit(bucket, staging, request):
    """A directory was given a project, and what is in it was not: such a file can be read, replaced and deleted; the
    kernel does not let it be moved into a new directory there."""
    expect_another_project_to_fail(request, staging)
    path = bucket.file("d")
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    attributes(path, (0, 0))
    for name in ("replaced", "deleted", "becomes"):
        bucket.put(f"d/{name}", b"1")
        attributes(bucket.file(f"d/{name}"), (0, OTHER))
    give(path, PROJECT)
    assert bucket.read("d/replaced") == b"1"
    bucket.put("d/replaced", b"2")
    expect.ok(bucket.delete("d/deleted"), 204)
    assert attributes(bucket.file("d/replaced")) == PROJECT
    expect.error(bucket.raw.put(bucket.path("d/becomes/below"), b"3"), "AccessDenied")
    assert "could not move a file into a directory of another project (quota)" in bucket.server.log
    assert bucket.read("d/becomes") == b"1"
    assert bucket.files() == ["d/becomes", "d/replaced"]
    check_whole(bucket)


def test_a_bucket_with_uploads_is_not_deleted(bucket):
    """Where the served directory has a project of its own, so that they can't be moved there."""
    give(bucket.server.tree, OTHER)
    give(bucket.tree, OF_BUCKET)
    upload_id = bucket.create_upload("object")
    expect.ok(bucket.put_part("object", upload_id, 1, pattern(PART)))
    bucket.put("key", b"x")
    expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty")
    expect.ok(bucket.delete("key"), 204)
    expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty", re.compile("has uploads in progress"))
    assert "which cannot be set aside while it is deleted" in bucket.server.log
    assert upload_id in expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""})).body.decode()
    expect.ok(bucket.abort("object", upload_id), 204)
    expect.ok(bucket.raw.delete(bucket.path()), 204)
    assert findings(bucket.server.tree) == []
    bucket.create()
    assert attributes(bucket.tree) == OTHER
    bucket.put("key", b"y")
    assert bucket.read("key") == b"y"
