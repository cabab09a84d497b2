"""Trees that earlier builds wrote are served, listed, checked and written to in place.

`fixtures/trees` has them as text, with what the build that wrote them answered; `fixtures/make.py` made them."""

import json
import os
import re
from pathlib import Path

import pytest
from faults import state
from fixtures import answers, packed

from support import checksums, expect, xml
from support.bucket import Bucket
from support.data import PART
from support.server import RECORDS, Server
from support.tools import findings, md5, run, stat, sweep

TREES = Path(__file__).parent / "fixtures" / "trees"
WHOLE = sorted(path.stem for path in TREES.glob("*.json") if path.stem.count("-") == 1)
# The first is of the build that was the first with VERSION.
VERSIONED = sorted(path.stem for path in TREES.glob("*-versions.json"))
CRASHED = [
    (path.stem, name)
    for path in sorted(TREES.glob("*-crashed.json"))
    for name in json.loads(path.read_text())["crashes"]
]
# Commits that wrote the trees, in order; and the days of those that were the first with PATH, and
# with TAGS.
BUILDS = ["23d2703", "251fcc5", "c6408cf", "e9fd556", "c4fc4b8", "20261124", "20261127"]
# What builds that did not escape these names have in a bucket. S3 shows it once it is renamed
# (UPGRADING.md).
HIDDEN = [".fuse_hidden0012ab3400000001", ".snapshot", ".nfs-file"]


def told(name: str) -> dict:
    """What the build that wrote a tree said of it."""
    return json.loads((TREES / f"{name}.json").read_text())


def unpack(name: str, tree: Path, **options) -> Path:
    tree.mkdir(exist_ok=True)
    os.utime(tree, ns=(1_000_000_001, 1_000_000_001))
    if tree.stat().st_mtime_ns != 1_000_000_001:
        pytest.skip("times of files have no nanoseconds here, so that no record would be of its file")
    if told(name)["metadata"] == "xattr":
        try:
            os.setxattr(tree, "user.slipway.tried", b"1")
        except OSError:
            pytest.skip("no extended attributes here")
        os.removexattr(tree, "user.slipway.tried")
    packed.unpack(TREES / f"{name}.tree", tree, **options)
    return tree


def unescaped(tree: Path) -> list[Path]:
    return [path for name in HIDDEN if (path := tree / "lab" / name).exists()]


def unpack_and_rename(name: str, tree: Path, **options) -> Path:
    unpack(name, tree, **options)
    rename_unescaped(tree)
    return tree


def rename_unescaped(tree: Path) -> None:
    """As UPGRADING.md says."""
    for path in unescaped(tree):
        record = path.parent / RECORDS / path.name
        for place in [record, path] if record.exists() else [path]:
            place.rename(place.with_name(f".slipway,={path.name}"))


def serve(make_server, name: str, tree: Path) -> Server:
    """As the build that wrote the tree did, whatever the environment says."""
    return make_server("--metadata", told(name)["metadata"], tree=tree)


def mark(tree: Path) -> None:
    """Builds from before 22 November 2026 gave a bucket's `.slipway` no mark. fsck says so, and the operator
    does what UPGRADING.md says."""
    lacking = [own for own in sorted(tree.glob("*/.slipway")) if not is_marked(own)]
    if lacking:
        found = map(json.loads, run("fsck", "--json", "--min-age", "0", tree, status=1).splitlines())
        strangers = [entry for entry in found if entry.get("problem") == "stranger"]
        assert sorted(entry["path"] for entry in strangers) == [str(own) for own in lacking]
        assert all("it lacks the server's mark" in entry["explanation"] for entry in strangers)
    for own in lacking:
        own.chmod(0o700)
        (own / ".slipway,own").touch()


def is_marked(own: Path) -> bool:
    return (own / ".slipway,own").exists() or "user.slipway.own" in os.listxattr(own)


def test_there_are_trees():
    assert {name.partition("-")[0] for name in WHOLE} == set(BUILDS)
    assert {name.partition("-")[2] for name in WHOLE} == {"xattr", "sidecar"} and CRASHED


@pytest.mark.parametrize("name", WHOLE)
def test_a_tree_has_what_its_build_wrote(name):
    """Nobody has made it anew by a later one."""
    entries = [json.loads(line) for line in (TREES / f"{name}.tree").read_text().splitlines()]
    entries = {entry["path"]: entry for entry in entries}
    build = BUILDS.index(name.partition("-")[0])
    assert ("lab/.slipway,=.snapshot" in entries) == (build >= 2)
    marked = "attributes" in entries["lab/.slipway"] or "lab/.slipway/.slipway,own" in entries
    assert marked == (build >= 3) == (".slipway/tree.toml" in entries)
    assert ("lab/tagged" in entries) == (build >= 6)
    assert (build >= 4) == ("metadata = " in str(entries.get(".slipway/tree.toml")))
    if told(name)["metadata"] == "sidecar":
        [_, beside] = entries["lab/.slipway,records/large"]["content"][0]
        assert int(beside[:2], 16) == (2 if build >= 2 else 1)
    else:
        # The path "long" as PATH, and as KEY.
        overflow = str([entry for path, entry in entries.items() if "/overflow/" in path])
        assert ("1b 04 6c 6f 6e 67" in overflow) == (build >= 5)
        assert ("13 04 6c 6f 6e 67" in overflow) == (1 <= build < 5)
    # What a key had when its upload was created.
    hello = [
        entry
        for path, entry in entries.items()
        if path.endswith("/upload") and "68 65 6c 6c 6f" in str(entry)
    ]
    assert len(hello) == 1 and (" 15 02 04 01 1a " in str(hello[0])) == (build >= 3)


def test_a_tree_is_unpacked_as_it_was_packed(tmp_path):
    name = "c4fc4b8-xattr"
    tree = unpack(name, tmp_path / "tree")
    again = packed.pack(tree).splitlines()
    before = (TREES / f"{name}.tree").read_text().splitlines()
    for was, now in zip(before, again, strict=True):
        assert {**json.loads(now), "inode": 0} == {**json.loads(was), "inode": 0}


@pytest.mark.parametrize("name", WHOLE)
def test_an_old_tree_says_what_it_said(name, make_server, tmp_path):
    tree = unpack_and_rename(name, tmp_path / "tree")
    server = serve(make_server, name, tree)
    for bucket, said in told(name)["buckets"].items():
        assert answers.of_bucket(Bucket(server, bucket)) == said
    assert Bucket(server, "bare").keys() == []
    mark(tree)
    assert findings(tree) == []
    # Serving notes the format, and changes nothing else.
    assert "format = 1\n" in (tree / ".slipway/tree.toml").read_text()


@pytest.mark.parametrize("name", WHOLE)
def test_an_old_tree_is_upgraded_in_place(name, make_server, tmp_path):
    """As an older version left it, and none of this one has served it."""
    tree = unpack_and_rename(name, tmp_path / "tree")
    before = {path: path.lstat().st_mtime_ns for path in tree.rglob("*") if path.parent != tree / ".slipway"}
    assert "upgraded to format 2" in run("upgrade", "--all-gateways-are-stopped", tree)
    changed = [path for path, mtime_ns in before.items() if path.lstat().st_mtime_ns != mtime_ns]
    assert changed in ([], [tree / ".slipway"]), changed
    assert (tree / ".slipway/metadata").read_text() == f"{told(name)['metadata']} format-2\n"
    assert (tree / ".slipway/format").read_text() == "bucket-documents\nobject-lock\nversions\n"
    server = serve(make_server, name, tree)
    bucket = Bucket(server, "lab")
    assert answers.of_bucket(bucket) == told(name)["buckets"]["lab"]
    assert "format = 2\n" in (tree / ".slipway/tree.toml").read_text()
    complete_uploads(bucket)
    bucket.put("hello", b"replaced")
    assert bucket.read("hello") == b"replaced"
    server.stop()
    mark(tree)
    assert findings(tree) == []
    assert "nothing to upgrade" in run("upgrade", tree)


@pytest.mark.parametrize("name", [name for name in WHOLE if told(name)["metadata"] == "sidecar"])
def test_a_restored_tree_says_so_too(name, make_server, tmp_path):
    """All inode numbers in it are wrong ones."""
    tree = unpack_and_rename(name, tmp_path / "tree", as_a_copy=True)
    bucket = Bucket(serve(make_server, name, tree), "lab")
    assert answers.of_bucket(bucket) == told(name)["buckets"]["lab"]


def complete_uploads(bucket: Bucket) -> None:
    """Those that `fixtures/make.py` began."""
    before = answers.of_bucket(bucket)
    for upload in before["uploads"]:
        key, upload_id, parts = upload["Key"], upload["UploadId"], upload["parts"]
        if not parts:
            assert bucket.abort(key, upload_id).status == 204
            continue
        if key == "hello":
            value = checksums.checksum("SHA1", b"only")
            document = f"<PartNumber>1</PartNumber><ETag>{parts[0]['ETag']}</ETag><ChecksumSHA1>{value}</ChecksumSHA1>"
            body = f"<CompleteMultipartUpload><Part>{document}</Part></CompleteMultipartUpload>".encode()
            expected = [b"only"]
        else:
            body = [(int(part["PartNumber"]), part["ETag"]) for part in parts]
            expected = [b"part %d\n" % n + b"%d" % n * (PART - 7) for n in (1, 2)] + [b"end"]
        completed = expect.ok(bucket.complete(key, upload_id, body))
        etag = checksums.multipart_etag(expected)
        assert completed.xml["ETag"] == etag and bucket.head(key).etag == etag
        assert bucket.read(key) == b"".join(expected)
        # Who asks again gets the same.
        assert expect.ok(bucket.complete(key, upload_id, body)).xml["ETag"] == etag


@pytest.mark.parametrize("name", WHOLE)
def test_uploads_of_an_old_tree_are_completed(name, make_server, tmp_path):
    tree = unpack_and_rename(name, tmp_path / "tree")
    bucket = Bucket(serve(make_server, name, tree), "lab")
    complete_uploads(bucket)
    assert answers.of_bucket(bucket)["uploads"] == []
    assert bucket.head("pending/slots").headers["x-amz-meta-age"] == "new"
    mark(tree)
    assert findings(tree) == []
    # A new upload, on what is there.
    bucket.upload("pending/slots", [b"another"])
    assert bucket.read("pending/slots") == b"another"


@pytest.mark.parametrize("name", WHOLE)
def test_receipts_of_an_old_tree_answer(name, make_server, tmp_path):
    """A Complete that is repeated after the upgrade."""
    tree = unpack_and_rename(name, tmp_path / "tree")
    bucket = Bucket(serve(make_server, name, tree), "lab")
    receipts = sorted((tree / "lab/.slipway/completed").iterdir())
    assert len(receipts) == 3
    bodies = [b"part %d\n" % n + b"%d" % n * (PART - 7) for n in (1, 2)] + [b"end"]
    parts = [(number, f'"{md5(body)}"') for number, body in enumerate(bodies, 1)]
    for receipt in receipts:
        [key] = [
            key for key in ("parts/plain", "parts/composite", "parts/full") if key.encode() in receipt.read_bytes()
        ]  # fmt: skip
        answer = expect.ok(bucket.complete(key, receipt.name, parts))
        assert answer.xml["ETag"] == bucket.head(key).etag


@pytest.mark.parametrize("name", WHOLE)
def test_an_old_tree_is_written_to(name, make_server, tmp_path):
    """Each object is replaced, copied or deleted, and the rest is as it was."""
    tree = unpack_and_rename(name, tmp_path / "tree")
    server = serve(make_server, name, tree)
    bucket = Bucket(server, "lab")
    before = answers.of_bucket(bucket)["objects"]
    for number, key in enumerate(before):
        source = {"x-amz-copy-source": bucket.path(key)}
        expect.ok(bucket.raw.put(bucket.path(f"copies/{number}"), headers=source))
        copied = bucket.head(f"copies/{number}", headers=answers.CHECKED)
        kept = {
            name: value
            for name, value in before[key]["head"].items()
            if re.match("content-|x-amz-meta-|cache-|expires", name)
        }
        assert kept.items() <= answers.told(copied).items(), key
        assert bucket.read(f"copies/{number}") == bucket.read(key)
    assert {
        key: value for key, value in answers.of_bucket(bucket)["objects"].items() if key in before
    } == before
    for number, key in enumerate(before):
        if number % 2:
            bucket.put(key, b"replaced " + key.encode(), headers={"x-amz-meta-age": "newest"})
            assert bucket.read(key) == b"replaced " + key.encode()
            assert bucket.head(key).headers["x-amz-meta-age"] == "newest"
    for key in [*before, *bucket.keys(prefix="copies/")]:
        assert bucket.delete(key).status == 204
    assert bucket.keys() == []
    mark(tree)
    if name.startswith("23d2703"):
        # Its overflow files don't say whose they are: they are left to the sweep.
        assert {found.partition(":")[0] for found in findings(tree)} == {"companion-orphaned"}
        sweep(tree)
    assert findings(tree) == []
    # What a person made stays; records and escaped names went with their objects.
    left = {path.name for path in (tree / "lab").iterdir()}
    assert left - {RECORDS} == {".slipway", "mine"}, left
    for upload in expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""})).xml.all("Upload"):
        assert bucket.abort(upload["Key"], upload["UploadId"]).status == 204
    assert server.raw.delete(bucket.path()).status == 204


@pytest.mark.parametrize("name", WHOLE)
def test_tools_take_an_old_tree(name, tmp_path):
    """Before any gateway of this version has served it."""
    tree = unpack_and_rename(name, tmp_path / "tree")
    mark(tree)
    assert findings(tree) == []
    sweep(tree)
    said = told(name)["buckets"]["lab"]["objects"]
    for key in ("hello", "long", "parts/composite", "large"):
        path = tree / "lab" / key
        [shown] = stat(path / ".slipway,self" if path.is_dir() else path)
        assert f'"{shown["object"]["etag"]}"' == said[key]["head"]["etag"] and shown["why"] is None
    # The file of another program, and the one that was changed.
    assert run("rehash", tree).splitlines()[-1].startswith("2 rehashed, "), said
    assert findings(tree) == []


@pytest.mark.parametrize("as_a_copy", [False, True])
@pytest.mark.parametrize("name", VERSIONED)
def test_old_versions_are_what_they_were(name, as_a_copy, make_server, tmp_path):
    """Restored, too: then their bucket's documents name another directory."""
    tree = unpack(name, tmp_path / "tree", as_a_copy=as_a_copy)
    packed_names = [json.loads(line)["path"] for line in (TREES / f"{name}.tree").read_text().splitlines()]
    assert any(path.startswith("kept/.slipway/versions/") for path in packed_names)
    assert findings(tree) == []
    server = serve(make_server, name, tree)
    bucket = Bucket(server, "kept")
    said = told(name)["buckets"]["kept"]
    assert answers.of_versions(bucket) == said
    assert {kind for entry in said for kind in entry} >= {"version", "marker"}
    assert any(entry.get("tags", {}).get("TagSet") for entry in said)
    sweep(tree)
    assert answers.of_versions(bucket) == said
    assert findings(tree) == []


def key_of(entry: dict) -> str:
    """The key of one of `answers.of_versions`."""
    return (entry.get("version") or entry["marker"])["Key"]


@pytest.mark.parametrize("name", VERSIONED)
def test_old_versions_are_written_to(name, make_server, tmp_path):
    """Each key gets a version more, and gives back all that it had."""
    tree = unpack(name, tmp_path / "tree")
    bucket = Bucket(serve(make_server, name, tree), "kept")
    enabled = xml.element("VersioningConfiguration", Status="Enabled").encode()
    expect.ok(bucket.raw.put(bucket.path(), enabled, query={"versioning": ""}))

    def versions() -> list[dict]:
        """Without the key whose newest marker nobody made: that does not come back."""
        return [entry for entry in answers.of_versions(bucket) if key_of(entry) != "removed"]

    before = versions()
    keys = dict.fromkeys(map(key_of, answers.of_versions(bucket)))
    news = [(key, bucket.put(key, b"new " + key.encode()).headers["x-amz-version-id"]) for key in keys]
    assert all(bucket.read(key) == b"new " + key.encode() for key in keys)
    assert len(versions()) == len(before) + len(keys) - 1
    for key, version in news:
        assert bucket.delete(key, query={"versionId": version}).status == 204
    assert versions() == before
    while left := answers.of_versions(bucket):
        entry = left[0].get("version") or left[0]["marker"]
        assert bucket.delete(key_of(left[0]), query={"versionId": entry["VersionId"]}).status == 204
        assert len(answers.of_versions(bucket)) < len(left)
    assert findings(tree) == []
    assert bucket.raw.delete(bucket.path()).status == 204


@pytest.mark.parametrize("name", ["23d2703-xattr", "251fcc5-xattr", "251fcc5-sidecar"])
def test_names_that_were_not_escaped_are_hidden(name, make_server, tmp_path):
    tree = unpack(name, tmp_path / "tree")
    assert unescaped(tree)
    keys = set(Bucket(serve(make_server, name, tree), "lab").keys())
    missing = told(name)["buckets"]["lab"]["objects"].keys() - keys
    assert {key.partition("/")[0] for key in missing} == {path.name for path in unescaped(tree)}


@pytest.mark.parametrize(("name", "crash"), CRASHED)
def test_what_a_kill_left_is_ended(name, crash, make_server, tmp_path):
    """As the build that was killed would have done: what was asked for is done, or it is not."""
    tree = unpack(name, tmp_path / "tree")
    said = told(name)["crashes"][crash]
    bucket = Bucket(serve(make_server, name, tree), crash)

    def now() -> dict:
        return json.loads(json.dumps(state.observe(bucket)))

    # An upload that was published goes by and by.
    meanwhile = [{**said["before"], **said["after"]}] if "upload" in said else []
    assert now() in [said["before"], said["after"], *meanwhile]
    mark(tree)
    sweep(tree)
    assert findings(tree) == []
    assert now() in [said["before"], said["after"]]
    if "upload" in said:
        parts = [(number, etag) for number, etag in said["parts"]]
        expect.ok(bucket.complete("object", said["upload"], parts))
        assert now() == said["after"]
