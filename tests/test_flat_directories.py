"""Directories of ext4 with as many names as it has an index for: what is told, what still works, the cure.

On blocks of 1 KiB, without `large_dir`: there some 20,000 long names are enough, which are links to one file.
"""

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from file_systems import mounts

from support import expect
from support.bucket import Bucket
from support.data import MIB
from support.marks import needs_attributes
from support.server import Server, assert_nothing_staged
from support.tools import run

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems"),
    # Their records would fill a directory of their own first.
    needs_attributes,
]

BLOCK = 1024
# The root, as many blocks of the index as it has room for, and as many blocks of names as these
# have.
LIMIT = BLOCK * (1 + (BLOCK - 32) // 8 + (BLOCK - 32) // 8 * ((BLOCK - 8) // 8))
NO_ROOM = "The file system has no room for this name in its directory."
CURE = "tune2fs -O large_dir"


@dataclass
class Disk:
    image: Path
    mount: Path

    def attach(self) -> None:
        mounts.run("mount", "-o", "loop", self.image, self.mount)

    def detach(self) -> None:
        mounts.unmount(self.mount)


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "image", mounts.directory(tmp_path, "disk"))
    with open(disk.image, "wb") as file:
        file.truncate(96 * MIB)
    mounts.run("mkfs.ext4", "-q", "-b", str(BLOCK), "-O", "^large_dir,dir_index", disk.image)
    with ExitStack() as stack:
        try:
            disk.attach()
        except RuntimeError as refused:
            pytest.skip(f"this machine does not mount ext4 here: {refused}")
        stack.callback(disk.detach)
        yield disk


# Before `make_server`, whose servers have to end before what they serve is unmounted.
@pytest.fixture
def start(disk, make_server) -> Callable[[], Bucket]:
    tree = mounts.directory(disk.mount, "tree")
    return lambda: Bucket(make_server(tree=tree), "bucket")


@pytest.fixture
def bucket(start) -> Bucket:
    bucket = start().create()
    bucket.put("flat/object", b"1")
    return bucket


def fill(directory: Path, *, up_to: int | None = None) -> str | None:
    """Gives a file names, until the directory has so many bytes, or one is refused, which it returns."""
    source, number = directory / "source", 0
    source.write_bytes(b"foreign")
    handle = os.open(directory, os.O_RDONLY)
    try:
        while up_to is None or number % 256 or os.fstat(handle).st_size < up_to:
            name = f"{number:06}".ljust(240, "n")
            os.link("source", name, src_dir_fd=handle, dst_dir_fd=handle)
            number += 1
    except OSError as refused:
        assert refused.errno == errno.ENOSPC
        status = os.statvfs(directory)
        assert status.f_bavail > 1000 and status.f_favail > 1000, "the disk is full indeed"
        return name
    finally:
        os.close(handle)
    return None


def lines_about(server: Server, directory: Path) -> list[str]:
    """Of the log, without colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", server.log)
    return [line for line in plain.splitlines() if f'path="{directory}" ' in line]


def notes(bucket: Bucket) -> list[dict]:
    """Of `fsck`, which finds no problem."""
    lines = run("fsck", "--json", "--min-age", "0", "--not-shown", bucket.server.tree).splitlines()
    *found, summary = map(json.loads, lines)
    assert (summary["problems"], summary["notes"], summary["not_shown"]) == (0, len(found), 0)
    return found


def kernel_tells(directory: Path) -> bool:
    """Whether anyone may ask ext4 what it was made with: EXT4_IOC_GET_TUNE_SB_PARAM, since Linux 6.18."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, 2 << 30 | 232 << 16 | ord("f") << 8 | 45, bytearray(232))
        return True
    except OSError as refused:
        assert refused.errno == errno.ENOTTY
        return False
    finally:
        os.close(handle)


def refused(response) -> None:
    expect.error(response, "InsufficientStorage", NO_ROOM, status=507)


def test_a_full_directory(bucket, start, disk):
    flat = bucket.file("flat")
    name = fill(flat)
    key = f"flat/{name}"

    # Whatever needs the name.
    refused(bucket.raw.put(bucket.path(key), b"2"))
    refused(bucket.raw.put(bucket.path(key), b"2", headers={"if-none-match": "*"}))
    refused(bucket.raw.put(bucket.path(key), bytes(2 * MIB)))
    refused(bucket.raw.put(bucket.path(f"{key}/below"), b"2"))
    refused(bucket.raw.put(bucket.path(f"{key}/"), b""))
    source = f"/{bucket.name}/flat/object"
    refused(bucket.raw.put(bucket.path(key), headers={"x-amz-copy-source": source}))
    upload = bucket.create_upload(key)
    part = bucket.put_part(key, upload, 1, b"part").headers["etag"]
    refused(bucket.complete(key, upload, [(1, part)]))
    assert not bucket.exists(key)
    assert_nothing_staged(bucket.tree)

    # Whatever does not.
    bucket.put("elsewhere/object", b"3")
    assert bucket.read("flat/object") == b"1"
    bucket.put("flat/object", b"4")
    assert bucket.read("flat/object") == b"4"
    first = "flat/" + "000000".ljust(240, "n")
    bucket.put(first, b"5")
    assert bucket.read(first) == b"5"
    assert len(bucket.page(prefix="flat/").all("Contents")) == 1000
    expect.ok(bucket.delete(first), 204)
    assert not bucket.exists(first)
    source = f"/{bucket.name}/elsewhere/object"
    expect.ok(bucket.raw.put(bucket.path("flat/object"), headers={"x-amz-copy-source": source}))
    assert bucket.read("flat/object") == b"3"

    # Told once, with cause, bytes and cure, and nothing of a full disk.
    (line,) = lines_about(bucket.server, flat)
    assert "ERROR" in line and CURE in line and "for this name is full" in line
    assert f"size_bytes={flat.stat().st_size}" in line and f"limit_bytes={LIMIT}" in line
    assert "the file system is full" not in bucket.server.log
    (note,) = notes(bucket)
    assert (note["problem"], note["path"], note["state"]) == ("flat-directory", str(flat), "note")
    assert CURE in note["explanation"] and str(LIMIT) in note["explanation"]
    assert "0 problems, 1 note" in run("fsck", bucket.server.tree)

    # The cure.
    bucket.server.stop()
    disk.detach()
    mounts.run("tune2fs", "-O", "large_dir", disk.image)
    disk.attach()
    cured = start()
    # Its parts are still there.
    expect.ok(cured.complete(key, upload, [(1, part)]))
    assert cured.read(key) == b"part"
    cured.put(key, b"6")
    assert cured.read(key) == b"6"
    assert cured.read("flat/object") == b"3"
    if kernel_tells(flat):
        assert notes(cured) == []
        assert lines_about(cured.server, flat) == []


def test_a_directory_that_is_nearly_full(bucket, start):
    flat = bucket.file("flat")
    fill(flat, up_to=LIMIT * 42 // 100)
    bucket.server.stop()
    bucket = start()
    # The first new name after a start is one of those that it looks after.
    for number in range(3):
        bucket.put(f"flat/new{number}", b"1")
    (line,) = lines_about(bucket.server, flat)
    assert "WARN" in line and CURE in line and "is nearly full" in line
    (note,) = notes(bucket)
    assert note["path"] == str(flat) and "is nearly full" in note["explanation"]


def test_a_small_directory_is_nothing_to_tell_of(bucket, start):
    fill(bucket.file("flat"), up_to=LIMIT // 4)
    bucket.server.stop()
    bucket = start()
    # The first new name after a start is one of those that it looks after.
    bucket.put("flat/new", b"1")
    assert lines_about(bucket.server, bucket.file("flat")) == []
    assert notes(bucket) == []


def test_the_tree_itself(start, disk):
    """Buckets have names, too, of up to 63 bytes."""
    bucket = start().create()
    handle = os.open(bucket.server.tree, os.O_RDONLY)
    deadline, taken = time.monotonic() + 120, 0
    try:
        while True:
            if taken % 60_000 == 0:
                source = disk.mount / f"source{taken}"
                source.touch()
            name = f"{taken:07}".ljust(63, "n")
            os.link(source, name, dst_dir_fd=handle)
            taken += 1
            assert time.monotonic() < deadline
    except OSError as full:
        assert full.errno == errno.ENOSPC
    finally:
        os.close(handle)
    refused(bucket.raw.put(f"/{name}"))
    (line,) = lines_about(bucket.server, bucket.server.tree)
    assert CURE in line
