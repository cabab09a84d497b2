"""restic: backup, check, restore, compare."""

import re
import shutil

import pytest

from support.clients import Program, environment
from support.server import ACCESS_KEY, SECRET_KEY
from support.trees import contents, copy_real_tree, make_tree


@pytest.fixture
def restic(server, bucket, tmp_path) -> Program:
    assert shutil.which("restic"), "restic is missing: ./test installs it"
    env = environment(
        server,
        tmp_path,
        RESTIC_REPOSITORY=f"s3:{server.endpoint}/{bucket.name}/backups",
        RESTIC_PASSWORD="correct horse",
        RESTIC_CACHE_DIR=str(tmp_path / "cache"),
        AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
    )
    return Program(["restic"], env, tmp_path)


def test_backup_and_restore(restic, bucket, tmp_path):
    source = tmp_path / "source"
    make_tree(source)
    copy_real_tree(source / "doc", files_max=800, bytes_max=20 << 20)
    restic.run("init")
    restic.run("backup", "source")
    first = contents(source)
    assert first
    restic.run("check", "--read-data")
    names = sorted(first)
    (source / names[0]).unlink()
    (source / names[1]).write_text("changed")
    restic.run("backup", "source")
    restic.run("check", "--read-data")
    snapshots = re.findall(r"^([0-9a-f]{8})  ", restic.run("snapshots"), re.MULTILINE)
    assert len(snapshots) == 2
    for snapshot, expected in zip(snapshots, (first, contents(source)), strict=True):
        target = tmp_path / f"restored-{snapshot}"
        restic.run("restore", snapshot, "--target", target)
        assert contents(target / "source") == expected
    assert "source/" in restic.run("diff", *snapshots)
    restic.run("forget", "--prune", "--keep-last", "1")
    restic.run("check", "--read-data")
    assert len(re.findall(r"^[0-9a-f]{8}  ", restic.run("snapshots"), re.MULTILINE)) == 1
    assert (bucket.file("backups") / "config").is_file(), (
        "a repository that restic could also open as a directory"
    )


def test_the_repository_as_a_directory(restic, bucket, tmp_path):
    """What went in through S3 is read back by restic from the files."""
    tree = make_tree(tmp_path / "source", count=20)
    restic.run("init")
    restic.run("backup", "source")
    restic.env["RESTIC_REPOSITORY"] = str(bucket.file("backups"))
    restic.run("check", "--read-data")
    restic.run("restore", "latest", "--target", tmp_path / "restored")
    assert contents(tmp_path / "restored" / "source") == tree


def test_locks_are_removed(restic, bucket):
    restic.run("init")
    restic.run("list", "snapshots")
    assert bucket.keys(prefix="backups/locks/") == []
