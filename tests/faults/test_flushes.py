"""What is flushed before an answer, and what gets its name between that: of every kind of write, and of the tools.

A kill loses nothing of the page cache, so that the other tests here miss no flush; `power/` does, in a long time."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from file_systems import mounts

from support.bucket import Bucket
from support.faultlayer import Call, FaultLayer, is_supported
from support.server import SIDECARS, Server

from .campaign import CALLS_MAX
from .cases import CASES, TOOL_CASES, Case, ToolCase
from .tools import run_tool

# `sync_file_range` is enough before a flush of the directory, if the file system keeps the order.
FLUSHES = {"fsync", "fdatasync", "sync_file_range", "syncfs"}
NAMINGS = {"link", "linkat", "rename", "renameat", "renameat2"}
# What makes `.slipway` is at the beginning of what is the first to need it.
MAKES_OWN = "name .slipway, flush .slipway, flush bucket, flush .slipway"
MAKES_MARKER = "flush .slipway,t*, name .slipway,vdeleted"
COMPLETES = "flush .slipway, name *, flush completed"
EXPECTED = {
    "put": "flush file, name a, flush bucket",
    "put-empty": "flush file, name a, flush bucket",
    "put-long": "flush file, name a, flush bucket",
    "put-deep": f"flush file, {MAKES_OWN}, flush .slipway, flush bucket, flush d, name f, flush e",
    "put-directory": f"{MAKES_OWN}, flush .slipway, flush bucket, flush d",
    "put-directory-with-bytes": f"flush file, {MAKES_OWN}, flush .slipway, flush bucket, flush d, "
    "name .slipway,dir, flush e",
    "overwrite": f"flush file, name a, {MAKES_OWN}, flush .slipway, name *, name a, flush bucket",
    "overwrite-long": f"flush file, name a, {MAKES_OWN}, flush .slipway, name *, name a, flush bucket",
    "overwrite-directory": "flush d",
    "file-becomes-directory": f"flush file, {MAKES_OWN}, flush .slipway, name x*, name .slipway,self, flush x*, "
    "flush staging, name a, flush a, flush bucket, name b, flush a",
    "overwrite-file-in-directory": "flush file, name a, name *, name .slipway,self, flush a",
    "put-big-record": f"flush file, {MAKES_OWN}, flush .slipway, flush *, flush overflow, name a, flush bucket",
    "overwrite-by-big-record": "flush file, flush *, flush overflow, flush .slipway, name *, name a, flush bucket",
    "overwrite-of-big-record": "flush file, name a, flush .slipway, name *, name a, flush bucket",
    "put-directory-big-record": "flush .slipway, flush *, flush overflow, flush d",
    "delete": f"{MAKES_OWN}, flush bucket",
    "delete-last-of-directory": "flush e",
    "delete-directory": "flush d",
    "delete-big-record": "flush bucket",
    "delete-many": "flush bucket, flush d",
    "copy": f"flush file, {MAKES_OWN}, flush .slipway, flush bucket, name b, flush d",
    "copy-over": f"flush file, name b, {MAKES_OWN}, flush .slipway, name *, name b, flush bucket",
    "create-upload": f"{MAKES_OWN}, flush upload, flush *, flush uploads",
    "upload-part": "flush file, name 00001, flush *",
    "upload-part-again": "flush file, name 00001, flush .slipway, name *, name 00001, flush *",
    "complete": "flush assembly1, flush completing, flush .slipway, flush .slipway, flush bucket, name up, flush d, "
    f"{COMPLETES}",
    "complete-once": "flush assembly1, flush completing, flush .slipway, flush .slipway, flush bucket, name up, "
    f"flush d, {COMPLETES}",
    "complete-copied": "flush file, name whole, flush completing, flush *, flush .slipway, flush .slipway, "
    f"flush bucket, name up, flush d, {COMPLETES}",
    "complete-copied-once": "flush file, name whole, flush completing, flush *, flush .slipway, flush .slipway, "
    f"flush bucket, name up, flush d, {COMPLETES}",
    "complete-over": f"flush assembly1, flush completing, name up, name up, flush d, {COMPLETES}",
    "abort": "flush *",
    "create-bucket": "flush tree",
    "delete-empty-bucket": "flush tree",
    "delete-bucket": "flush .slipway, flush .slipway,deleting,bucket,*,*, flush tree, name uploads, name locks, "
    "flush tree",
    "versioned-put": f"flush file, {MAKES_OWN}, flush .slipway, flush bucket, name a, flush d",
    "versioned-overwrite": "flush file, name .slipway,v*, name a, flush a, flush bucket",
    "versioned-overwrite-of-null": f"flush file, {MAKES_OWN}, flush .slipway, flush versions, flush file, "
    "name .slipway,v*,null, name a, flush a, flush bucket",
    # If its new name is lost, the marker beside an object is an old one all the same.
    "versioned-put-over-marker": "flush file, name a, name .slipway,v*, flush bucket",
    "versioned-overwrite-directory": "flush file, flush .slipway, flush versions, name .slipway,u*, "
    "name .slipway,dir, flush d, flush d",
    "versioned-copy-over": "flush file, flush .slipway, flush versions, name .slipway,v*, name b, flush b, "
    "flush bucket",
    "versioned-complete-over": "flush assembly1, flush completing, flush .slipway, flush versions, flush d, "
    f"name .slipway,v*, name up, flush up, flush d, {COMPLETES}",
    "versioned-delete": f"name .slipway,v*, flush a, {MAKES_MARKER}, flush bucket, flush a",
    "versioned-delete-of-null": f"{MAKES_OWN}, flush .slipway, flush versions, name .slipway,v*,null, "
    f"flush a, {MAKES_MARKER}, flush bucket, flush a",
    "versioned-delete-of-none": f"{MAKES_OWN}, flush .slipway, flush versions, {MAKES_MARKER}, flush bucket, "
    "flush a",
    "delete-old-version": "flush bucket, flush a",
    "delete-current-version": "name a, flush bucket, flush a",
    "delete-version-below-marker": "flush bucket, flush a",
    "suspended-overwrite": "flush file, name .slipway,v*, name a, flush a, flush bucket",
}
# Where a file system keeps the order (decision 0014): what can't come before what it needs.
EXPECTED_IN_ORDER = EXPECTED | {
    "file-becomes-directory": f"flush file, {MAKES_OWN}, flush .slipway, name x*, name .slipway,self, name a, "
    "flush bucket, name b, flush a",
    "delete-bucket": "flush .slipway, name uploads, name locks, flush tree",
    "versioned-overwrite": "flush file, name .slipway,v*, name a, flush bucket",
    "versioned-overwrite-of-null": f"flush file, {MAKES_OWN}, flush .slipway, flush versions, "
    "name .slipway,v*,null, name a, flush bucket",
    "versioned-overwrite-directory": "flush file, flush .slipway, flush versions, name .slipway,u*, "
    "name .slipway,dir, flush d",
    "versioned-copy-over": "flush file, flush .slipway, flush versions, name .slipway,v*, name b, flush bucket",
    "versioned-complete-over": "flush assembly1, flush completing, flush .slipway, flush versions, flush d, "
    f"name .slipway,v*, name up, flush d, {COMPLETES}",
    "versioned-delete": f"name .slipway,v*, {MAKES_MARKER}, flush bucket, flush a",
    "versioned-delete-of-null": f"{MAKES_OWN}, flush .slipway, flush versions, name .slipway,v*,null, "
    f"{MAKES_MARKER}, flush bucket, flush a",
    "suspended-overwrite": "flush file, name .slipway,v*, name a, flush bucket",
}
# The requests whose bytes get a name in a directory that is flushed afterwards.
WRITTEN_OUT = ("put", "put-long", "overwrite", "overwrite-long")
# Files are in no certain order.
EXPECTED_OF_TOOLS = {
    "rehash": "flush .slipway,self, flush big, flush edited, flush made, flush made.html",
    "import-versitygw": "flush *, flush .slipway, flush .slipway, flush .slipway, flush big, flush bucket, "
    "flush multi, flush overflow, flush plain, flush tagged, name .slipway",
    "import-minio-fs": "flush big, flush multi, flush plain, name .slipway",
    "sweep": "name *",
    "fsck-repair": "flush torn.html, name *, name damaged-00001,*",
}


def told(calls: list[Call]) -> list[str]:
    """Flushes and new names in their order."""
    found = []
    for call in calls:
        word = "flush" if call.name in FLUSHES else "name" if call.name in NAMINGS else None
        if word:
            # A bucket's identity is numbers that are its own.
            about = re.sub(r"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+", "*", call.about)
            found.append(f"{word} {about.replace('nameless file', 'file')}")
    return found


pytestmark = [
    pytest.mark.skipif(not is_supported(), reason="the filter knows the call numbers of x86-64 only"),
    pytest.mark.skipif(SIDECARS, reason="records in files have names and flushes of their own"),
]


def need_overflow(case: Case | ToolCase, tmp_path: Path) -> None:
    """Some records are to be too long for an attribute, of which ext4 keeps 4 KiB."""
    if "big-record" not in case.name and case.name != "import-versitygw":
        return
    for length, fits in ((3000, True), (8000, False)):
        try:
            os.setxattr(tmp_path, "user.long", b"x" * length)
        except OSError:
            if fits:
                pytest.skip("this file system has room for less in an attribute")
        else:
            if not fits:
                pytest.skip("this file system has room for more in an attribute")


def keeps_order(server: Server, layer: FaultLayer) -> bool:
    """True if the server relies on the order in which the file system brings changes to the disk."""
    bucket = Bucket(server, "other").create()
    layer.arm(0, CALLS_MAX)
    bucket.put("a", b"1")
    layer.disarm()
    return any(call.name == "sync_file_range" for call in layer.calls)


@pytest.fixture
def ordered(tmp_path: Path) -> Iterator[Path]:
    """An ext4 with its journal inside, which keeps the order of changes wherever the tests run."""
    with ExitStack() as stack:
        try:
            where = mounts.loop(tmp_path, stack, "ext4", "-j")
        except (mounts.Missing, RuntimeError) as why:
            pytest.skip(f"this machine mounts no ext4 here: {why}")
        yield where


def calls_of(case: Case, tree: Path, log: Path) -> tuple[bool, list[Call]]:
    """Whether the server relies on the order, and what it called for this request."""
    tree.mkdir()
    layer = FaultLayer()
    server = Server(tree, "--durability", "full", log=log, faults=layer)
    try:
        in_order = keeps_order(server, layer)
        bucket, made = Bucket(server, "bucket"), None
        if not case.no_bucket:
            bucket.create()
            made = case.prepare(bucket)
        layer.arm(0, CALLS_MAX)
        assert case.request(bucket, made).status in (200, 204)
        assert layer.disarm() is None
    finally:
        server.stop()
    return in_order, layer.calls


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_flushes(case, tmp_path: Path):
    need_overflow(case, tmp_path)
    in_order, calls = calls_of(case, tmp_path / "tree", tmp_path / "log")
    expected, seen = EXPECTED_IN_ORDER if in_order else EXPECTED, told(calls)
    # Its keys are deleted side by side.
    assert ", ".join(sorted(seen) if case.by_key else seen) == expected[case.name]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in WRITTEN_OUT], ids=lambda case: case.name
)
def test_bytes_are_written_out_before_their_name(case, tmp_path: Path, ordered: Path):
    """The flush of the directory brings no bytes to the disk, but the name of them."""
    _, calls = calls_of(case, ordered / "tree", tmp_path / "log")
    assert ", ".join(told(calls)) == EXPECTED_IN_ORDER[case.name]
    assert next(call.name for call in calls if call.name in FLUSHES) == "sync_file_range"


@pytest.mark.parametrize("case", TOOL_CASES, ids=lambda case: case.name)
def test_flushes_of_tools(case, tmp_path: Path):
    need_overflow(case, tmp_path)
    tree = tmp_path / "tree"
    tree.mkdir()
    server = Server(tree, log=tmp_path / "log")
    try:
        bucket = Bucket(server, "bucket").create()
        case.prepare(bucket)
        layer = FaultLayer()
        layer.arm(0, CALLS_MAX, since=str(tree))
        done = run_tool(case.command(bucket), layer)
        assert done.returncode == 0, done
        assert layer.disarm() is None
    finally:
        server.stop()
    assert ", ".join(sorted(told(layer.calls))) == EXPECTED_OF_TOOLS[case.name]


def test_flushes_of_documents(tmp_path: Path):
    """What documents forbid must not come back with a power cut, so that their place is flushed at every level; and
    before it the root, but where the file system keeps the order."""
    probe = tmp_path / "probe"
    probe.mkdir()
    layer = FaultLayer()
    server = Server(probe, "--durability", "full", log=tmp_path / "log", faults=layer)
    try:
        in_order = keeps_order(server, layer)
    finally:
        server.stop()
    tree = tmp_path / "tree"
    tree.mkdir()
    layer = FaultLayer()
    server = Server(tree, "--durability", "none", log=tmp_path / "log", faults=layer)
    try:
        bucket = Bucket(server, "bucket").create()
        place = tree / ".slipway" / "buckets"
        place.mkdir(mode=0o700)
        (place / "bucket").write_bytes(b"")
        layer.arm(0, CALLS_MAX)
        assert bucket.raw.delete(bucket.path()).status == 204
        assert layer.disarm() is None
    finally:
        server.stop()
    assert told(layer.calls) == (["flush buckets"] if in_order else ["flush tree", "flush buckets"])


def test_flushes_of_where_records_are(tmp_path: Path):
    """A tree whose first server keeps records in files says so before anything is in it."""
    tree = tmp_path / "tree"
    tree.mkdir()
    layer = FaultLayer()
    layer.arm(0, CALLS_MAX)
    server = Server(tree, "--metadata", "sidecar", log=tmp_path / "log", faults=layer)
    try:
        Bucket(server, "bucket").create()
        assert layer.disarm() is None
    finally:
        server.stop()
    seen = told(layer.calls)
    assert seen[:4] == ["flush metadata.*.tmp", "name metadata", "flush .slipway", "flush tree"]
    # The bucket's own record.
    assert seen[-4:] == ["flush *", "name .slipway,directory", "flush .slipway,records", "flush tree"]


def test_flushes_of_what_documents_are_bound_to(tmp_path: Path):
    """A bucket in whose place another one left documents has its record on disk before it has its name, at every level.
    A record in a file is in a directory of its own."""
    tree = tmp_path / "tree"
    tree.mkdir()
    layer = FaultLayer()
    options = ("--metadata", "sidecar", "--durability", "none")
    server = Server(tree, *options, log=tmp_path / "log", faults=layer)
    try:
        place = tree / ".slipway" / "buckets"
        place.mkdir(mode=0o700)
        (place / "bucket").write_bytes(b"")
        layer.arm(0, CALLS_MAX)
        Bucket(server, "bucket").create()
        assert layer.disarm() is None
    finally:
        server.stop()
    calls = [(call.name, call.about) for call in layer.calls if call.name in FLUSHES | NAMINGS]
    named = [name for name, about in calls].index("renameat")
    assert calls[named] == ("renameat", ".slipway,directory")
    assert calls[named + 1 : named + 3] == [(flush, ".slipway,deleting,,*") for flush in ("syncfs", "fsync")]


def test_flushes_of_an_upgrade(tmp_path: Path):
    """A directory of the tree's own that an upgrade makes has its name on disk before the upgrade begins."""
    tree = tmp_path / "tree"
    tree.mkdir()
    server = Server(tree, log=tmp_path / "log")
    Bucket(server, "bucket").create()
    server.stop()
    # As of a tree that only early builds have served.
    shutil.rmtree(tree / ".slipway")
    layer = FaultLayer()
    layer.arm(0, CALLS_MAX, since=str(tree))
    done = run_tool(["upgrade", "--all-gateways-are-stopped", str(tree)], layer)
    assert done.returncode == 0, done
    assert layer.disarm() is None
    assert ", ".join(told(layer.calls)) == (
        "flush tree, "
        "flush metadata.*.tmp, name metadata, flush .slipway, "
        "flush format.pending.*.tmp, name format.pending, flush .slipway, "
        "flush tree.toml.*.tmp, name tree.toml, flush .slipway, "
        "name format, flush .slipway"
    )
