"""`slipway versions`, `fsck` and `stat` on buckets that keep versions, and who may switch versions on."""

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from support import expect, xml
from support.bucket import Bucket
from support.marks import needs_attributes
from support.server import SIDECARS
from support.tools import run, stat

pytestmark = [needs_attributes, pytest.mark.skipif(SIDECARS, reason="versions need records in attributes")]

ENABLED = xml.element("VersioningConfiguration", Status="Enabled").encode()


def enable(bucket):
    return bucket.raw.put(bucket.path(), ENABLED, query={"versioning": ""})


@pytest.fixture
def kept(bucket):
    """A bucket that keeps versions."""
    expect.ok(enable(bucket))
    return bucket


def put(bucket, key: str, body: bytes, **options) -> str:
    return bucket.put(key, body, **options).headers["x-amz-version-id"]


def delete(bucket, key: str) -> str:
    return expect.ok(bucket.delete(key), 204).headers["x-amz-version-id"]


def read(bucket, key: str, version: str) -> bytes:
    return expect.ok(bucket.get(key, query={"versionId": version})).body


def versions(bucket, command: str, *options: object, status: int = 0) -> list[dict] | str:
    text = run("versions", command, *options, bucket.server.tree, bucket.name, status=status)
    return [json.loads(line) for line in text.splitlines()] if "--json" in options else text


def listed(bucket, *options: str) -> list[tuple]:
    found = versions(bucket, "list", "--json", *options)
    return [(v["key"], v["version_id"], v["is_latest"], v.get("size_bytes")) for v in found]


class TestVersions:
    def test_list(self, kept):
        first, second = put(kept, "a/k", b"1"), put(kept, "a/k", b"22")
        other = put(kept, "b", b"333")
        marker = delete(kept, "b")
        expected = [
            ("a/k", second, True, 2),
            ("a/k", first, False, 1),
            ("b", marker, True, None),
            ("b", other, False, 3),
        ]
        assert listed(kept) == expected
        assert listed(kept, "--prefix", "a/") == expected[:2]
        text = versions(kept, "list")
        assert f"{second}  " in text and "current" in text and "deleted" in text and text.count("\n") == 4

    def test_prune_keeps_what_is_wanted(self, kept):
        ids = [put(kept, "a", bytes([n])) for n in range(5)]
        others = [put(kept, "b/c", bytes([n])) for n in range(3)]
        run("versions", "prune", kept.server.tree, kept.name, status=2)  # Neither a number nor an age.
        run("versions", "prune", "--keep", 0, kept.server.tree, kept.name, status=2)
        text = versions(kept, "prune", "--keep", 2, "--dry-run")
        assert text.count("would remove: ") == 2 and f"would remove: {ids[0]} a (1 bytes)" in text
        assert "2 keys with old versions: would remove 2 old versions, 2 bytes, and 0 delete markers" in text
        assert len(listed(kept)) == 8
        assert versions(kept, "prune", "--older-than", "1h").count("removed: ") == 0
        removed = versions(kept, "prune", "--keep", 2, "--json")
        assert {(r["state"], r["version_id"]) for r in removed} == {("removed", id_) for id_ in ids[:2]}
        assert [version for _, version, *_ in listed(kept, "--prefix", "a")] == ids[:1:-1]
        versions(kept, "prune", "--older-than", "0s", "--prefix", "b/")
        assert [version for _, version, *_ in listed(kept, "--prefix", "b/")] == others[-1:]
        assert kept.read("a") == bytes([4]) and read(kept, "a", ids[2]) == bytes([2])

    def test_prune_of_markers(self, kept):
        put(kept, "a", b"1")
        delete(kept, "a")
        versions(kept, "prune", "--older-than", "0s")
        assert [size for *_, size in listed(kept)] == [None]
        versions(kept, "prune", "--older-than", "0s", "--markers")
        assert listed(kept) == [] and not list((kept.tree / ".slipway/versions").iterdir())

    def test_a_version_is_restored_with_all_that_it_had(self, kept):
        headers = {"x-amz-meta-colour": "blue", "x-amz-tagging": "place=here", "content-type": "text/x"}
        first = put(kept, "a", b"first", headers=headers)
        put(kept, "a", b"second")
        delete(kept, "a")
        assert "would restore: a" in versions(
            kept, "restore", "--key", "a", "--version-id", first, "--dry-run"
        )
        expect.error(kept.get("a"), "NoSuchKey")
        versions(kept, "restore", "--key", "a", "--version-id", first)
        found = expect.ok(kept.get("a"))
        assert found.body == b"first" and found.headers["x-amz-meta-colour"] == "blue"
        assert found.headers["content-type"] == "text/x" and found.headers["x-amz-tagging-count"] == "1"
        assert found.headers["x-amz-version-id"] != first and read(kept, "a", first) == b"first"
        assert len(listed(kept)) == 4
        versions(kept, "restore", "--key", "a", "--version-id", "00000000deadbeef", status=1)

    def test_keys_are_restored_as_they_were(self, kept):
        for key in ("changed", "deleted", "same"):
            put(kept, key, b"then")
        put(kept, "gone", b"x")
        delete(kept, "gone")
        time.sleep(1.1)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        time.sleep(1.1)
        put(kept, "changed", b"now")
        delete(kept, "deleted")
        put(kept, "gone", b"again")
        put(kept, "new", b"new")
        text = versions(kept, "restore", "--at", at)
        assert text.count("restored: ") == 2 and text.count("left: ") == 2
        assert {key: kept.read(key) for key in ("changed", "deleted", "same", "gone", "new")} == {
            "changed": b"then",
            "deleted": b"then",
            "same": b"then",
            "gone": b"again",
            "new": b"new",
        }
        text = versions(kept, "restore", "--at", at, "--delete")
        assert text.count("deleted: ") == 2 and text.count("restored: ") == 0
        expect.error(kept.get("new"), "NoSuchKey")
        assert versions(kept, "restore", "--at", at, "--delete") == ""

    def test_a_restore_needs_a_bucket_that_keeps_all(self, bucket):
        bucket.put("a", b"1")
        how = ("versions", "restore", "--at", "2026-01-01T00:00:00Z", bucket.server.tree, bucket.name)
        assert "keeps no versions" in run(*how, status=2)
        suspended = xml.element("VersioningConfiguration", Status="Suspended").encode()
        expect.ok(bucket.raw.put(bucket.path(), suspended, query={"versioning": ""}))
        assert "suspended" in run(*how, status=2)


class TestStat:
    def test_versions_of_a_key(self, kept):
        first = put(kept, "d/a", b"1", headers={"x-amz-tagging": "place=here"})
        second = put(kept, "d/a", b"22")
        (found,) = stat(kept.file("d/a"))
        assert (found["is"], found["version"]["version_id"]) == ("object", second)
        (old,) = found["older_versions"]
        assert (old["version_id"], old["size_bytes"], old["tags"]) == (first, 1, {"place": "here"})
        (found,) = stat(kept.tree / old["path"])
        assert (found["is"], found["key"]) == ("old version", "d/a")
        text = run("stat", kept.file("d/a"))
        assert f"version        {second}" in text and f"older          {first} 20" in text

    def test_a_key_that_is_deleted(self, kept):
        first = put(kept, "d/a", b"1")
        marker = delete(kept, "d/a")
        (found,) = stat(kept.file("d/a"))
        assert (found["is"], found["key"]) == ("deleted", "d/a")
        assert [(v["version_id"], v["delete_marker"]) for v in found["older_versions"]] == [
            (marker, True),
            (first, False),
        ]
        run("stat", kept.file("d/b"), status=1)


class TestFsck:
    def test_old_versions_are_counted_apart(self, kept):
        for body in (b"1", b"22", b"333"):
            put(kept, "a", body)
        delete(kept, "b")
        how = ("fsck", "--bucket", kept.name, kept.server.tree)
        assert "1 objects, 3 bytes; 2 old versions, 3 bytes; 1 delete markers\n" in run(*how)
        sums = json.loads(run(*how, "--json").splitlines()[-1])
        assert (sums["objects"], sums["old_versions"], sums["delete_markers"]) == (1, 2, 1)
        assert (sums["object_bytes"], sums["old_version_bytes"], sums["problems"]) == (3, 3, 0)

    def test_a_marker_beside_a_file_gets_its_name(self, kept):
        put(kept, "a", b"1")
        marker = delete(kept, "a")
        kept.file("a").write_bytes(b"2")
        time.sleep(0.02)
        how = ("fsck", "--min-age", 0, "--bucket", kept.name, kept.server.tree)
        assert run(*how, status=1).startswith("marker-unsettled: ")
        assert "[repaired]" in run(*how, "--repair")
        assert (kept.tree / f".slipway/versions/a/.slipway,v{marker}").exists()
        assert [version for _, version, *_ in listed(kept)][:2] == ["null", marker]


def gateway_files(tree: Path) -> list[Path]:
    return [path for path in (tree / ".slipway/gateways").iterdir() if path.name != ",lock"]


def test_the_first_bucket_with_versions_waits_for_gateways_of_older_builds(make_server, tmp_path):
    server = make_server(tree=tmp_path / "tree")
    bucket = Bucket(server, "bucket").create()
    (own,) = gateway_files(server.tree)
    assert own.read_text().splitlines()[1] == "features: bucket-documents versions object-lock"
    # As a gateway of an older build has it, which runs.
    older = own.with_name("0" * 32)
    older.write_text("10.0.0.5:9000 (slipway 0.0.9, process 812 on gw1)\n")
    with older.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = enable(bucket)
        assert refused.status == 409, refused.body
        assert b"A server of an older version" in refused.body
        assert "10.0.0.5:9000 (slipway 0.0.9" in server.log
        assert (
            not (server.tree / ".slipway/format").exists()
            or "versions" not in (server.tree / ".slipway/format").read_text()
        )
    expect.ok(enable(bucket))
    with older.open("r+") as held:
        # By now the tree has the feature, and such a gateway would not have started.
        fcntl.flock(held, fcntl.LOCK_EX)
        expect.ok(enable(bucket))
    os.unlink(older)
