"""s3cmd."""

import shutil
import urllib.request

import pytest

from support.clients import Program, environment
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY
from support.trees import contents, make_tree


@pytest.fixture
def s3cmd(server, tmp_path) -> Program:
    assert shutil.which("s3cmd"), "s3cmd is missing: ./test installs it"
    config = tmp_path / "s3cfg"
    host = "{}:{}".format(*server.address)
    config.write_text(
        "\n".join(
            [
                "[default]",
                f"access_key = {ACCESS_KEY}",
                f"secret_key = {SECRET_KEY}",
                f"host_base = {host}",
                f"host_bucket = {host}",
                "use_https = False",
                "bucket_location = us-east-1",
                "max_retries = 1",
                "",
            ]
        )
    )
    return Program(["s3cmd", "-c", str(config), "--no-progress"], environment(server, tmp_path), tmp_path)


def test_buckets(s3cmd, server):
    s3cmd.run("mb", "s3://s3cmd-made-this")
    assert (server.tree / "s3cmd-made-this").is_dir()
    assert "s3://s3cmd-made-this" in s3cmd.run("ls")
    s3cmd.run("rb", "s3://s3cmd-made-this")
    assert not (server.tree / "s3cmd-made-this").exists()
    assert "NoSuchBucket" in s3cmd.run("ls", "s3://s3cmd-made-this", status=12)


def test_put_and_get(s3cmd, bucket, tmp_path):
    (tmp_path / "file").write_bytes(pattern(100_000))
    s3cmd.run("put", "file", f"s3://{bucket.name}/a b/ünï")
    assert bucket.file("a b/ünï").read_bytes() == pattern(100_000)
    s3cmd.run("get", f"s3://{bucket.name}/a b/ünï", "back")
    assert (tmp_path / "back").read_bytes() == pattern(100_000)
    assert "100000" in s3cmd.run("info", f"s3://{bucket.name}/a b/ünï")
    s3cmd.run("cp", f"s3://{bucket.name}/a b/ünï", f"s3://{bucket.name}/copy")
    s3cmd.run("mv", f"s3://{bucket.name}/copy", f"s3://{bucket.name}/moved")
    assert bucket.keys() == ["a b/ünï", "moved"]


def test_in_parts(s3cmd, bucket, tmp_path):
    (tmp_path / "big").write_bytes(pattern(17 * MIB))
    s3cmd.run("put", "--multipart-chunk-size-mb=5", "big", f"s3://{bucket.name}/big")
    assert bucket.file("big").read_bytes() == pattern(17 * MIB)
    assert bucket.head("big").etag.endswith('-4"')
    s3cmd.run("get", f"s3://{bucket.name}/big", "back")
    assert (tmp_path / "back").read_bytes() == pattern(17 * MIB)


def test_sync(s3cmd, bucket, tmp_path):
    tree = make_tree(tmp_path / "source", count=25)
    s3cmd.run("sync", "source/", f"s3://{bucket.name}/mirror/")
    assert contents(bucket.file("mirror")) == tree
    assert "upload:" not in s3cmd.run("sync", "source/", f"s3://{bucket.name}/mirror/")
    (tmp_path / "source" / sorted(tree)[0]).unlink()
    s3cmd.run("sync", "--delete-removed", "source/", f"s3://{bucket.name}/mirror/")
    assert contents(bucket.file("mirror")) == contents(tmp_path / "source")
    (tmp_path / "back").mkdir()
    s3cmd.run("sync", f"s3://{bucket.name}/mirror/", "back/")
    assert contents(tmp_path / "back") == contents(tmp_path / "source")


def test_ls_and_del(s3cmd, bucket):
    for key in ("a", "d/b", "d/c"):
        bucket.put(key, b"1234")
    lines = s3cmd.run("ls", f"s3://{bucket.name}").splitlines()
    assert [line.split()[-1].removeprefix(f"s3://{bucket.name}/") for line in lines] == ["d/", "a"]
    assert "12" in s3cmd.run("du", f"s3://{bucket.name}")
    s3cmd.run("del", f"s3://{bucket.name}/a")
    s3cmd.run("del", "--recursive", f"s3://{bucket.name}/d/")
    assert bucket.is_untouched()


def test_signed_urls(s3cmd, bucket):
    """Signed in the old way, which is accepted in URLs."""

    bucket.put("key", b"data")
    url = s3cmd.run("signurl", f"s3://{bucket.name}/key", "+60").strip()
    assert "Signature=" in url
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.read() == b"data"
