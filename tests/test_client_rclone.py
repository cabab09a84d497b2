"""rclone: sync, check, bisync of a real tree, and the rest of its day."""

import os
import shutil

import pytest

from support.clients import Program, environment
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY
from support.trees import contents, copy_real_tree, make_tree


@pytest.fixture
def rclone(server, tmp_path) -> Program:
    """rclone with a remote `s3:`. A generic server, no retries, so that nothing is glossed over."""
    assert shutil.which("rclone"), "rclone is missing: ./test installs it"
    remote = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENDPOINT": server.endpoint,
        "ACCESS_KEY_ID": ACCESS_KEY,
        "SECRET_ACCESS_KEY": SECRET_KEY,
        "REGION": "us-east-1",
        "FORCE_PATH_STYLE": "true",
    }
    env = environment(
        server,
        tmp_path,
        RCLONE_RETRIES="1",
        RCLONE_LOW_LEVEL_RETRIES="1",
        RCLONE_CONFIG="/dev/null",
        **{f"RCLONE_CONFIG_S3_{name}": value for name, value in remote.items()},
    )
    return Program(["rclone"], env, tmp_path)


def test_a_real_tree(rclone, bucket, tmp_path):
    """Sync, check by hash and by download, change, sync again, delete."""
    source = tmp_path / "source"
    count = copy_real_tree(source, files_max=1500)
    assert count > 100, "/usr/share/doc is nearly empty here"
    os.symlink("nowhere", source / "a-link")
    target = f"s3:{bucket.name}/mirror"
    rclone.run("sync", "--checksum", "--transfers", "8", source, target)
    assert contents(bucket.file("mirror")) == contents(source)
    rclone.run("check", source, target)
    rclone.run("check", "--download", source, target)
    names = sorted(contents(source))
    (source / names[0]).unlink()
    (source / names[1]).write_text("changed")
    (source / "new" / "dir").mkdir(parents=True)
    (source / "new" / "dir" / "file").write_text("new")
    assert "differences found" in rclone.run("check", source, target, status=1)
    rclone.run("sync", "--checksum", source, target)
    rclone.run("check", "--download", source, target)
    assert contents(bucket.file("mirror")) == contents(source)
    rclone.run("sync", target, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(source)
    rclone.run("purge", target)
    assert bucket.is_untouched()


def test_bisync(rclone, bucket, tmp_path):
    """Both sides change: one through rclone's own directory, one through the bucket's files."""
    local = tmp_path / "local"
    make_tree(local, count=25)
    remote = f"s3:{bucket.name}/shared"
    bucket.put("shared/RCLONE_TEST", b"")
    arguments = ["bisync", local, remote, "--workdir", tmp_path / "state", "--verbose"]
    rclone.run(*arguments, "--resync")
    assert contents(bucket.file("shared")) == contents(local)
    names = sorted(contents(local))
    (local / "from-local").write_text("local")
    (local / names[0]).unlink()
    bucket.put("shared/from-s3", b"s3")
    (bucket.file("shared") / "from-file").write_text("file")
    bucket.delete(f"shared/{names[1]}")
    rclone.run(*arguments)
    both = contents(local)
    assert contents(bucket.file("shared")) == both
    assert {"from-local", "from-s3", "from-file"} <= set(both)
    assert names[0] not in both and names[1] not in both
    rclone.run(*arguments)
    assert contents(local) == contents(bucket.file("shared")) == both


def test_modification_times_are_kept(rclone, bucket, tmp_path):
    """rclone keeps them as user metadata: a second sync has nothing to do, even without reading."""
    make_tree(tmp_path / "source", count=10)
    rclone.run("sync", "source", f"s3:{bucket.name}/d")
    output = rclone.run("sync", "--verbose", "source", f"s3:{bucket.name}/d")
    assert "There was nothing to transfer" in output
    os.utime(tmp_path / "source" / sorted(contents(tmp_path / "source"))[0], (1_000_000_000, 1_000_000_000))
    rclone.run("sync", "source", f"s3:{bucket.name}/d")
    assert "1000000000" in "".join(
        bucket.head(key).headers.get("x-amz-meta-mtime") or "" for key in bucket.keys()
    )


def test_uploads_in_parts(rclone, bucket, tmp_path):
    (tmp_path / "big").write_bytes(pattern(40 * MIB + 3))
    rclone.run("copy", "--s3-upload-cutoff", "10M", "--s3-chunk-size", "6M", "big", f"s3:{bucket.name}/d")
    assert bucket.file("d/big").read_bytes() == pattern(40 * MIB + 3)
    assert bucket.head("d/big").etag.endswith('-7"')
    rclone.run("check", "--download", "big", f"s3:{bucket.name}/d")
    rclone.run("copyto", f"s3:{bucket.name}/d/big", f"s3:{bucket.name}/copy", "--s3-copy-cutoff", "10M")
    assert bucket.read("copy") == pattern(40 * MIB + 3)


def test_a_stream_of_unknown_length(rclone, bucket):
    rclone.run("rcat", f"s3:{bucket.name}/streamed", stdin=pattern(12 * MIB))
    assert bucket.read("streamed") == pattern(12 * MIB)


def test_listings(rclone, bucket):
    for key in ("a", "d/b", "d/e/c"):
        bucket.put(key, b"1234")
    assert bucket.name in rclone.run("lsd", "s3:")
    assert sorted(rclone.run("lsf", "-R", f"s3:{bucket.name}").split()) == ["a", "d/", "d/b", "d/e/", "d/e/c"]
    assert "Total objects: 3" in rclone.run("size", f"s3:{bucket.name}")
    assert rclone.run("cat", f"s3:{bucket.name}/d/e/c") == "1234"
    assert rclone.run("md5sum", f"s3:{bucket.name}/a").split() == ["81dc9bdb52d04dc20036dbd8313ed055", "a"]


def test_buckets(rclone, server):
    rclone.run("mkdir", "s3:rclone-made-this")
    assert (server.tree / "rclone-made-this").is_dir()
    rclone.run("rmdir", "s3:rclone-made-this")
    assert not (server.tree / "rclone-made-this").exists()


def test_foreign_files(rclone, bucket, tmp_path):
    """A tree that cp made can be fetched and checked; there are no hashes to compare, and rclone knows."""
    make_tree(bucket.tree, count=20)
    rclone.run("copy", f"s3:{bucket.name}", tmp_path / "back")
    assert contents(tmp_path / "back") == contents(bucket.tree)
    rclone.run("check", "--download", f"s3:{bucket.name}", tmp_path / "back")


def test_server_side_move(rclone, bucket):
    bucket.put("a/one", b"1")
    bucket.put("a/two", b"2")
    rclone.run("move", f"s3:{bucket.name}/a", f"s3:{bucket.name}/b")
    assert bucket.keys() == ["b/one", "b/two"]
    assert bucket.files() == ["b/one", "b/two"]
