"""Object Lock and the files of a tree: what other programs do to locked versions and to locks, and whose time counts."""

import json
import os
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.identities import client
from support.marks import needs_attributes
from support.object_locks import (
    ENABLED,
    NOT_EMPTY,
    PROTECTED,
    Versions,
    error_of,
    is_protected,
    lock_bucket,
    soon,
)
from support.server import Server, binary
from support.tools import RECORD, run

pytestmark = needs_attributes


def entries(server: Server, bucket: str) -> list[Path]:
    """The files of the locks of a bucket."""
    return sorted(p for p in (server.tree / ".slipway" / "locked" / bucket).rglob("*") if p.is_file())


def problems(
    server: Server, bucket: Bucket, *options: str, status: int | None = None
) -> list[tuple[str, str]]:
    how = ("fsck", "--json", "--min-age", "0", "--bucket", bucket.name, *options)
    done = subprocess.run([binary(), *how, str(server.tree)], capture_output=True, text=True, timeout=60)
    assert done.returncode in ((0, 1) if status is None else (status,)), (done.stdout, done.stderr)
    *found, _ = [json.loads(line) for line in done.stdout.splitlines()]
    return [(problem["problem"], problem["state"]) for problem in found]


class TestOtherPrograms:
    """What a person does by hand is not prevented, but found; and it opens no lock."""

    @pytest.fixture
    def own(self, make_server):
        return make_server("--durability", "none")

    @pytest.fixture
    def bucket(self, own) -> Bucket:
        return lock_bucket(own)

    @pytest.fixture
    def versions(self, own, bucket) -> Versions:
        return Versions(client(own, "s3"), bucket)

    @pytest.fixture
    def version(self, own, bucket, versions) -> str:
        version = versions.put(ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=soon(hours=1))
        assert len(entries(own, bucket.name)) == 1
        assert problems(own, bucket) == []
        return version

    def test_locks_are_closed_to_others(self, own, bucket, version):
        for path in (own.tree / ".slipway" / "locked", *entries(own, bucket.name)):
            assert path.stat().st_mode & 0o077 == 0, path

    @pytest.mark.parametrize("way", ["touch", "write", "replace"])
    def test_changes(self, own, bucket, versions, version, way):
        path = bucket.file("key")
        if way == "touch":
            os.utime(path, (1, 1))
        elif way == "write":
            path.write_bytes(b"other text")
        else:
            attribute = os.getxattr(path, RECORD)
            path.unlink()
            path.write_bytes(b"text")
            os.setxattr(path, RECORD, attribute)
        is_protected(versions.delete, version=version, BypassGovernanceRetention=True)
        assert problems(own, bucket) == [("locked-version-changed", "manual")]
        assert problems(own, bucket, "--repair") == [("locked-version-changed", "manual")]

    @pytest.mark.parametrize("way", ["rm", "mv", "attribute", "order"])
    def test_a_version_that_is_gone(self, own, bucket, versions, version, way):
        """The file that has its place, or its bytes, is not deleted either."""
        path = bucket.file("key")
        if way == "rm":
            path.unlink()
        elif way == "mv":
            path.rename(bucket.file("elsewhere"))
        elif way == "attribute":
            os.removexattr(path, RECORD)
        else:
            versions.put(b"newer")
            attribute = os.getxattr(path, RECORD)
            bucket.file("spare").write_bytes(b"")
            path.unlink()
            # The record of the newer version on a file of the same name.
            path.write_bytes(b"newer")
            os.setxattr(path, RECORD, attribute)
            assert problems(own, bucket) == []
            is_protected(versions.delete, version=version)
            return
        found = [("locked-version-missing", "manual")]
        assert problems(own, bucket) == found
        assert problems(own, bucket, "--repair") == found
        if way == "attribute":
            is_protected(versions.delete, version="null")
            assert path.exists()
        expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty", NOT_EMPTY)

    def test_nobody_deletes_in_doubt(self, own, bucket, versions, version):
        versions.put(b"newer")
        assert len(entries(own, bucket.name)) == 1
        # As somebody with the gateway's rights could: the old version goes, its lock stays.
        chain = bucket.tree / ".slipway" / "versions" / "key"
        shutil.rmtree(chain)
        current = versions.s3.head_object(**versions.at)["VersionId"]
        is_protected(versions.delete, version=current)
        assert problems(own, bucket) == [("locked-version-missing", "manual")]

    def test_a_lock_that_is_damaged_holds(self, own, bucket, versions, version):
        (entry,) = entries(own, bucket.name)
        text = entry.read_text()
        for damaged in ("", text[:20], text.replace("COMPLIANCE", "GOVERNANCE"), "slipway object lock 2\n"):
            entry.write_text(damaged)
            is_protected(versions.delete, version=version, BypassGovernanceRetention=True)
            assert versions.head()["ObjectLockLegalHoldStatus"] == "ON"
            is_protected(versions.retain, mode="GOVERNANCE", until=soon(days=400))
            assert problems(own, bucket) == [("object-lock-damaged", "manual")]
        entry.write_text(text)
        assert problems(own, bucket) == []

    def test_what_a_crash_leaves(self, own, bucket, versions, version):
        (entry,) = entries(own, bucket.name)
        unsettled = entry.with_name(f"{entry.name},new")
        entry.rename(unsettled)
        is_protected(versions.delete, version=version)
        assert versions.head()["ObjectLockMode"] == "COMPLIANCE"
        time.sleep(0.05)
        assert problems(own, bucket) == [("object-lock-leftover", "repairable")]
        assert problems(own, bucket, "--repair") == [("object-lock-leftover", "repaired")]
        assert entries(own, bucket.name) == [entry]
        # One of a version that was never published.
        left = entry.with_name(f".slipway,v{1:016x},new")
        left.write_text(entry.read_text())
        time.sleep(0.05)
        assert problems(own, bucket, "--repair") == [("object-lock-leftover", "repaired")]
        assert entries(own, bucket.name) == [entry]
        assert problems(own, bucket) == []

    def test_tools_leave_it_alone(self, own, bucket, versions, version):
        path = bucket.file("key")
        path.write_bytes(b"other text")
        record = os.getxattr(path, RECORD)
        done = subprocess.run([binary(), "rehash", str(path)], capture_output=True, text=True, timeout=60)
        assert "locked version" in done.stdout + done.stderr
        done = subprocess.run(
            [binary(), "import", "versitygw", str(own.tree)], capture_output=True, text=True, timeout=60
        )
        run("sweep", own.tree)
        problems(own, bucket, "--repair")
        assert (path.read_bytes(), os.getxattr(path, RECORD)) == (b"other text", record)
        is_protected(versions.delete, version=version)

    def test_no_locks_without_their_directory(self, own, bucket, versions, version):
        place = own.tree / ".slipway" / "locked"
        place.chmod(0o755)
        refused = error_of(versions.delete, version=version)
        assert refused["Code"] == "AccessDenied" and refused["Message"] != PROTECTED
        place.chmod(0o700)
        is_protected(versions.delete, version=version)


class TestTime:
    """Locks end by the tree's own time."""

    def stopped(self, make_server, tmp_path, seconds: float) -> tuple[Server, Versions, str]:
        server = make_server("--durability", "none")
        versions = Versions(client(server, "s3"), lock_bucket(server))
        version = versions.put(ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=soon(seconds=seconds))
        assert server.stop() == 0
        return server, versions, version

    def again(self, make_server, server: Server, versions: Versions) -> tuple[Server, Versions]:
        server = make_server("--durability", "none", tree=server.tree)
        return server, Versions(client(server, "s3"), Bucket(server, versions.name))

    def note(self, server: Server, time_: datetime) -> None:
        clock = server.tree / ".slipway" / "locked" / ",clock"
        assert clock.exists()
        clock.write_text(time_.strftime("%Y-%m-%dT%H:%M:%SZ\n"))

    def test_a_clock_that_is_far_ahead(self, make_server, tmp_path):
        """To the gateway, a noted time two days ago is a clock that was set two days ahead."""
        server, versions, version = self.stopped(make_server, tmp_path, 2)
        self.note(server, soon(days=-2))
        time.sleep(2.1)
        server, versions = self.again(make_server, server, versions)
        is_protected(versions.delete, version=version)
        assert "more than a day ahead" in server.log
        # A new retention is counted from the clock nevertheless, so that it is not too short.
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        versions.s3.put_object_lock_configuration(
            Bucket=versions.name, ObjectLockConfiguration={**ENABLED, "Rule": rule}
        )
        other = Versions(versions.s3, Bucket(server, versions.name), "other")
        other.put()
        assert other.head()["ObjectLockRetainUntilDate"] > soon(hours=23)
        said = run("fsck", "--accept-clock", server.tree)
        assert "object locks end by the clock again" in said
        versions.delete(version)

    def test_a_clock_that_is_a_little_ahead(self, make_server, tmp_path):
        server, versions, version = self.stopped(make_server, tmp_path, 2)
        self.note(server, soon(hours=-23))
        time.sleep(2.1)
        _, versions = self.again(make_server, server, versions)
        versions.delete(version)

    def test_a_clock_that_was_set_back(self, make_server, tmp_path):
        """What has ended stays ended, by the time that was noted."""
        server, versions, version = self.stopped(make_server, tmp_path, 3600)
        self.note(server, soon(hours=2))
        _, versions = self.again(make_server, server, versions)
        versions.delete(version)

    def test_a_second_gateway_with_another_clock(self, make_server, tmp_path):
        server, versions, version = self.stopped(make_server, tmp_path, 2)
        first, versions = self.again(make_server, server, versions)
        second = make_server("--durability", "none", tree=first.tree)
        beside = Versions(client(second, "s3"), Bucket(second, versions.name))
        for seen in (versions, beside):
            seen.put(b"newer")
        assert problems(first, Bucket(first, versions.name)) == []
        time.sleep(2.1)
        beside.delete(version)

    def test_there_is_no_time_without_locks(self, make_server):
        server = make_server()
        assert "no object locks" in run("fsck", "--accept-clock", server.tree)
        assert not (server.tree / ".slipway" / "locked").exists()


def test_older_gateways_are_kept_away(make_server):
    server = make_server("--durability", "none")
    assert "object-lock" not in (
        (server.tree / ".slipway" / "format").read_text()
        if (server.tree / ".slipway" / "format").exists()
        else ""
    )
    lock_bucket(server)
    assert "object-lock" in (server.tree / ".slipway" / "format").read_text().split()
