"""`slipway import minio-fs`."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from support import expect
from support.checksums import checksum
from support.data import MIB
from support.peers import minio_file, minio_tree
from support.server import StartFailed
from support.tools import CHECKED, RECORD, md5, run, stat


class TestImportFromMinio:
    """The tree is made by the format that MinIO's "fs" backend had: no MinIO is available to tests."""

    @staticmethod
    def file(
        tree: Path, key: str, data: bytes, meta: dict[str, str] | str | None, parts: tuple[int, ...] = ()
    ) -> Path:
        return minio_file(tree, "lab", key, data, meta, parts)

    @pytest.fixture
    def peers(self, tmp_path):
        tree = tmp_path / "tree"
        minio_tree(tree)
        self.file(
            tree, "dir/plain", b"plain",
            {"content-type": "text/x-peer", "X-Amz-Meta-Colour": "blue", "cache-control": "no-store"},
        )  # fmt: skip
        parts = [b"x" * 5 * MIB, b"yz"]
        whole = md5(b"".join(hashlib.md5(part).digest() for part in parts)) + "-2"
        self.file(tree, "multi", b"".join(parts), {"etag": whole}, (5 * MIB, 2))
        edited = self.file(tree, "edited", b"before", {"content-type": "text/x-peer"})
        edited.write_bytes(b"after!")
        at = time.time() + 5
        os.utime(edited, (at, at))
        self.file(tree, "tagged", b"1", {"X-Amz-Tagging": "a=b"})
        self.file(tree, "packed", b"snappy", {"X-Minio-Internal-compression": "klauspost/compress/s2"})
        self.file(tree, "locked", b"dare", {"X-Minio-Internal-Server-Side-Encryption-Iv": "x"})
        self.file(tree, "empty-json", b"2", "")
        self.file(tree, "made", b"by a person", None)
        (tree / ".minio.sys" / "buckets" / "lab" / ".metadata.bin").write_bytes(b"\x01")
        return tree, whole

    def test_objects_are_what_they_were(self, peers, make_server):
        tree, whole = peers
        lab = tree / "lab"
        dry = run("import", "minio-fs", "--dry-run", tree, status=1)
        assert "3 to import" in dry
        assert not any(RECORD in os.listxattr(path) for path in lab.rglob("*"))
        before = sorted(str(path) for path in (tree / ".minio.sys").rglob("*"))
        said = run("import", "minio-fs", tree, status=1)
        assert (
            "3 imported, 0 already had Slipway's records, 1 had neither these nor the other server's metadata, 4 not imported"
            in said
        )
        assert f"stale: {lab / 'edited'}: its bytes do not match its ETag" in said
        assert f"stale: {lab / 'empty-json'}: its fs.json is damaged" in said
        assert f"failed: {lab / 'packed'}: MinIO stored it compressed" in said
        assert f"failed: {lab / 'locked'}: MinIO stored it encrypted" in said
        assert f"left: {lab / 'tagged'}: not imported: tags" in said
        assert f"left: {lab}: the bucket's configuration" in said
        assert f"left: {tree / '.minio.sys' / 'multipart'}: uploads in progress" in said
        assert sorted(str(path) for path in (tree / ".minio.sys").rglob("*")) == before
        again = run("import", "minio-fs", tree, status=1)
        assert (
            "0 imported, 3 already had Slipway's records, 1 had neither these nor the other server's metadata, 4 not imported"
            in again
        )

        raw = make_server("--metadata", "xattr", tree=tree).raw
        got = expect.ok(raw.get("/lab/dir/plain", headers=CHECKED))
        assert got.body == b"plain" and got.etag == f'"{md5(b"plain")}"'
        assert got.headers["x-amz-meta-colour"] == "blue" and got.headers["cache-control"] == "no-store"
        assert got.headers["content-type"] == "text/x-peer"
        assert got.headers["x-amz-checksum-crc64nvme"] == checksum("CRC64NVME", b"plain")
        got = expect.ok(raw.get("/lab/multi", query={"partNumber": "2"}), 206)
        assert got.body == b"yz" and got.etag == f'"{whole}"' and got.headers["x-amz-mp-parts-count"] == "2"
        for key in ("edited", "packed", "locked", "made"):
            assert raw.head(f"/lab/{key}").etag.startswith('"foreign-'), key
        buckets = expect.ok(raw.get("/")).xml.child("Buckets").all("Bucket")
        assert [bucket["Name"] for bucket in buckets] == ["lab"]

    def test_trust_ends_where_the_file_is_younger(self, peers):
        tree, _ = peers
        kept = self.file(tree, "old-time", b"before", {})
        kept.write_bytes(b"after!")
        os.utime(kept, (1_000_000_000, 1_000_000_000))
        said = run("import", "minio-fs", "--trust-etags", tree, status=1)
        assert f"stale: {tree / 'lab' / 'edited'}: " in said
        # It could not know.
        assert stat(kept)[0]["object"]["etag"] == md5(b"before")

    def test_a_tree_that_is_served_before(self, peers, make_server, tmp_path):
        """As someone does who takes Slipway for MinIO's successor: told what is amiss, or refused."""
        tree, _ = peers
        assert "slipway import minio-fs" not in make_server(tree=tmp_path / "other").log
        server = make_server("--metadata", "xattr", tree=tree)
        (line,) = [line for line in server.log.splitlines() if "slipway import minio-fs" in line]
        assert "WARN" in line and f'dir="{tree}"' in line, line
        server.stop()
        format_file = tree / ".minio.sys" / "format.json"
        for text in ("{", "x" * 100_000):
            format_file.write_text(text)
            server = make_server("--metadata", "xattr", tree=tree)
            assert "it is unknown whether the objects" in server.log
            server.stop()
        format_file.unlink()
        format_file.symlink_to("elsewhere.json")
        server = make_server("--metadata", "xattr", tree=tree)
        assert "it is unknown whether the objects" in server.log
        server.stop()
        format_file.unlink()
        assert "MinIO" not in make_server("--metadata", "xattr", tree=tree).log

    @pytest.mark.parametrize("kind", ["xl", "xl-single"])
    def test_a_tree_that_cannot_be_served(self, make_server, tmp_path, kind):
        """Its buckets have directories where the objects should be."""
        tree = tmp_path / "drive"
        minio_tree(tree)
        (tree / "lab" / "key").mkdir(parents=True)
        (tree / "lab" / "key" / "xl.meta").write_bytes(b"XL2 ")
        (tree / ".minio.sys" / "format.json").write_text(f'{{"version":"1","format":"{kind}","{kind}":{{}}}}')
        with pytest.raises(StartFailed) as failure:
            make_server(tree=tree)
        said = str(failure.value)
        assert f'{tree}: MinIO stored the objects here in its format "{kind}", not "fs"' in said, said
        assert "Copy them through S3, from a running MinIO" in said, said
        assert not (tree / ".slipway").exists()

    def test_other_trees_are_refused(self, peers, tmp_path):
        tree, _ = peers
        format_file = tree / ".minio.sys" / "format.json"
        format_file.write_text('{"version":"1","format":"xl-single","xl":{}}')
        assert 'format "xl-single", not "fs"' in run("import", "minio-fs", tree, status=2)
        format_file.write_text("{")
        assert "is not in the form that MinIO writes" in run("import", "minio-fs", tree, status=2)
        format_file.unlink()
        assert "MinIO has not served this directory" in run("import", "minio-fs", tree, status=2)
        run("import", "minio-fs", tmp_path / "missing", status=2)
