"""curl with its own signatures (--aws-sigv4)."""

import shutil

import pytest

from support.clients import Program, environment
from support.data import MIB, pattern
from support.server import ACCESS_KEY, SECRET_KEY

# Before 8.7, curl does not send the hash of the body by itself; S3 wants to be told.
UNSIGNED = ("-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD")


@pytest.fixture
def curl(server, tmp_path) -> Program:
    assert shutil.which("curl"), "curl is missing: ./test installs it"
    return Program(
        [
            "curl",
            "-sS",
            "--aws-sigv4",
            "aws:amz:us-east-1:s3",
            "--user",
            f"{ACCESS_KEY}:{SECRET_KEY}",
            *UNSIGNED,
        ],
        environment(server, tmp_path),
        tmp_path,
    )


def url(bucket, key: str = "", query: str = "") -> str:
    return f"{bucket.server.endpoint}{bucket.path(key) if key else bucket.path()}{query}"


@pytest.mark.parametrize("size", [0, 100, 100_000, 20 * MIB])
def test_put_and_get(curl, bucket, tmp_path, size):
    """Above 1 MiB, curl asks before it sends (Expect: 100-continue)."""
    (tmp_path / "file").write_bytes(pattern(size))
    curl.run("--fail", "-T", "file", url(bucket, "deep/key"))
    assert bucket.file("deep/key").read_bytes() == pattern(size)
    curl.run("--fail", "-o", "back", url(bucket, "deep/key"))
    assert (tmp_path / "back").read_bytes() == pattern(size)


def test_list(curl, bucket):
    bucket.put("a/b", b"x")
    assert "<Key>a/b</Key>" in curl.run("--fail", url(bucket))
    assert "<KeyCount>1</KeyCount>" in curl.run("--fail", url(bucket, query="?list-type=2"))
    assert f"<Name>{bucket.name}</Name>" in curl.run("--fail", bucket.server.endpoint + "/")


def test_head_range_delete(curl, bucket):
    bucket.put("key", b"0123456789")
    assert "content-length: 10" in curl.run("--fail", "-I", url(bucket, "key")).lower()
    assert curl.run("--fail", "-r", "2-4", url(bucket, "key")) == "234"
    curl.run("--fail", "-X", "DELETE", url(bucket, "key"))
    assert bucket.is_untouched()


def test_make_and_remove_buckets(curl, server):
    place = f"{server.endpoint}/curl-made-this"
    curl.run("--fail", "-X", "PUT", place)
    assert (server.tree / "curl-made-this").is_dir()
    curl.run("--fail", "-X", "DELETE", place)
    assert not (server.tree / "curl-made-this").exists()


def test_a_stream_of_unknown_length(curl, bucket):
    """S3 wants a length."""
    output = curl.run("-T", "-", url(bucket, "key"), stdin=b"data")
    assert "<Code>NotImplemented</Code>" in output or "<Code>MissingContentLength</Code>" in output
    assert bucket.is_untouched()


def test_errors(curl, bucket):
    assert "<Code>NoSuchKey</Code>" in curl.run(url(bucket, "none"))
    curl.command[curl.command.index("--user") + 1] = f"{ACCESS_KEY}:wrong"
    assert "<Code>SignatureDoesNotMatch</Code>" in curl.run(url(bucket, "none"))


def test_presigned(curl, bucket):
    """A URL needs nothing but curl."""
    bucket.put("key", b"data")
    target = bucket.raw.signer.presign("GET", bucket.path("key"), bucket.raw.host)
    plain = Program(["curl", "-sS", "--fail"], curl.env, curl.cwd)
    assert plain.run(bucket.server.endpoint + target) == "data"
