"""The AWS command line, version 1."""

import json
import os
import re
import time
import urllib.request
from pathlib import Path

import pytest

from support.clients import Program, environment
from support.data import MIB, pattern
from support.server import REPOSITORY, first_start_on_a_terminal
from support.trees import contents, make_tree


@pytest.fixture
def aws(server, tmp_path) -> Program:
    return Program([str(REPOSITORY / ".venv" / "bin" / "aws")], environment(server, tmp_path), tmp_path)


def test_make_and_remove_buckets(aws, server):
    name = "awscli-made-this"
    assert f"make_bucket: {name}" in aws.run("s3", "mb", f"s3://{name}")
    assert (server.tree / name).is_dir()
    assert name in aws.run("s3", "ls")
    aws.run("s3", "cp", "-", f"s3://{name}/a/b", stdin=b"data")
    assert "BucketNotEmpty" in aws.run("s3", "rb", f"s3://{name}", status=1)
    aws.run("s3", "rb", "--force", f"s3://{name}")
    assert not (server.tree / name).exists()


def test_cp(aws, bucket, tmp_path):
    (tmp_path / "file.html").write_bytes(pattern(100_000))
    aws.run("s3", "cp", tmp_path / "file.html", f"s3://{bucket.name}/deep/file.html")
    assert bucket.file("deep/file.html").read_bytes() == pattern(100_000)
    assert bucket.head("deep/file.html").headers["content-type"] == "text/html"
    aws.run("s3", "cp", f"s3://{bucket.name}/deep/file.html", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == pattern(100_000)
    aws.run("s3", "mv", f"s3://{bucket.name}/deep/file.html", f"s3://{bucket.name}/moved")
    assert bucket.keys() == ["moved"]
    assert aws.bytes("s3", "cp", f"s3://{bucket.name}/moved", "-") == pattern(100_000)


def test_cp_in_parts(aws, bucket, tmp_path):
    data = pattern(30 * MIB + 5)
    (tmp_path / "big").write_bytes(data)
    aws.run("s3", "cp", "big", f"s3://{bucket.name}/big")
    assert bucket.file("big").read_bytes() == data
    assert bucket.head("big").etag.endswith('-4"')
    aws.run("s3", "cp", f"s3://{bucket.name}/big", "back")
    assert (tmp_path / "back").read_bytes() == data
    aws.run("s3", "cp", f"s3://{bucket.name}/big", f"s3://{bucket.name}/copy")
    assert bucket.read("copy") == data


def test_sync(aws, bucket, tmp_path):
    tree = make_tree(tmp_path / "source")
    # Times of objects are in whole seconds: what is written in the second of its upload seems
    # newer.
    past = time.time() - 10
    for name in tree:
        os.utime(tmp_path / "source" / name, (past, past))
    aws.run("s3", "sync", "source", f"s3://{bucket.name}/mirror")
    assert contents(bucket.file("mirror")) == tree
    assert aws.run("s3", "sync", "source", f"s3://{bucket.name}/mirror") == "", (
        "nothing to do the second time"
    )
    (tmp_path / "source" / sorted(tree)[0]).unlink()
    aws.run("s3", "sync", "--delete", "source", f"s3://{bucket.name}/mirror")
    assert contents(bucket.file("mirror")) == contents(tmp_path / "source")
    aws.run("s3", "sync", f"s3://{bucket.name}/mirror", "back")
    assert contents(tmp_path / "back") == contents(tmp_path / "source")


def test_ls(aws, bucket):
    for key in ("a", "d/b", "d/c", "ünï"):
        bucket.put(key, b"1234")
    lines = aws.run("s3", "ls", f"s3://{bucket.name}/").splitlines()
    assert [line.split()[-1] for line in lines] == ["d/", "a", "ünï"]
    output = aws.run("s3", "ls", "--recursive", "--summarize", f"s3://{bucket.name}")
    assert "Total Objects: 4" in output and "Total Size: 16" in output


def test_rm_recursive(aws, bucket):
    for number in range(30):
        bucket.put(f"d/{number}/x", b"x")
    bucket.put("kept", b"x")
    aws.run("s3", "rm", "--recursive", f"s3://{bucket.name}/d/")
    assert bucket.keys() == ["kept"]
    assert bucket.files() == ["kept"]


def test_presign(aws, bucket):
    bucket.put("a b", b"data")
    url = aws.run("s3", "presign", f"s3://{bucket.name}/a b", "--expires-in", "60").strip()
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.read() == b"data"


class TestApi:
    def api(self, aws: Program, *arguments: str) -> dict:
        return json.loads(aws.run("s3api", *arguments, "--output", "json") or "{}")

    def test_buckets(self, aws, bucket):
        assert bucket.name in [b["Name"] for b in self.api(aws, "list-buckets")["Buckets"]]
        assert self.api(aws, "get-bucket-location", "--bucket", bucket.name) == {"LocationConstraint": None}
        aws.run("s3api", "head-bucket", "--bucket", bucket.name)
        assert "(404)" in aws.run("s3api", "head-bucket", "--bucket", "no-such-bucket", status=255)

    def test_objects(self, aws, bucket, tmp_path):
        (tmp_path / "f").write_bytes(b"data")
        put = self.api(
            aws,
            "put-object",
            "--bucket",
            bucket.name,
            "--key",
            "k",
            "--body",
            "f",
            "--metadata",
            "a=1",
            "--checksum-algorithm",
            "SHA256",
        )
        assert put["ChecksumSHA256"]
        head = self.api(
            aws, "head-object", "--bucket", bucket.name, "--key", "k", "--checksum-mode", "ENABLED"
        )
        assert (head["ETag"], head["Metadata"], head["ChecksumSHA256"]) == (
            put["ETag"],
            {"a": "1"},
            put["ChecksumSHA256"],
        )
        got = self.api(
            aws, "get-object", "--bucket", bucket.name, "--key", "k", "--range", "bytes=1-2", "back"
        )
        assert got["ContentRange"] == "bytes 1-2/4"
        assert (tmp_path / "back").read_bytes() == b"at"
        attributes = self.api(
            aws,
            "get-object-attributes",
            "--bucket",
            bucket.name,
            "--key",
            "k",
            "--object-attributes",
            "ETag",
            "ObjectSize",
            "Checksum",
        )
        assert (attributes["ObjectSize"], attributes["Checksum"]["ChecksumSHA256"]) == (
            4,
            put["ChecksumSHA256"],
        )
        listed = self.api(aws, "list-objects-v2", "--bucket", bucket.name)
        assert [(e["Key"], e["Size"]) for e in listed["Contents"]] == [("k", 4)]
        self.api(
            aws, "copy-object", "--bucket", bucket.name, "--key", "k2", "--copy-source", f"{bucket.name}/k"
        )
        deleted = self.api(
            aws, "delete-objects", "--bucket", bucket.name, "--delete", "Objects=[{Key=k},{Key=k2}]"
        )
        assert sorted(d["Key"] for d in deleted["Deleted"]) == ["k", "k2"]
        assert bucket.is_untouched()

    def test_uploads(self, aws, bucket, tmp_path):
        (tmp_path / "part").write_bytes(b"the part")
        where = ["--bucket", bucket.name, "--key", "k"]
        upload_id = self.api(aws, "create-multipart-upload", *where)["UploadId"]
        etag = self.api(
            aws, "upload-part", *where, "--upload-id", upload_id, "--part-number", "1", "--body", "part"
        )["ETag"]
        assert len(self.api(aws, "list-multipart-uploads", "--bucket", bucket.name)["Uploads"]) == 1
        parts = self.api(aws, "list-parts", *where, "--upload-id", upload_id)["Parts"]
        assert [(p["PartNumber"], p["ETag"]) for p in parts] == [(1, etag)]
        document = json.dumps({"Parts": [{"PartNumber": 1, "ETag": etag}]})
        self.api(
            aws, "complete-multipart-upload", *where, "--upload-id", upload_id, "--multipart-upload", document
        )
        assert bucket.read("k") == b"the part"

    def test_bucket_policies(self, aws, bucket):
        arn = f"arn:aws:s3:::{bucket.name}/*"
        statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": arn}
        document, of = (
            json.dumps({"Version": "2012-10-17", "Statement": statement}),
            ("--bucket", bucket.name),
        )
        blocked = aws.run("s3api", "put-bucket-policy", *of, "--policy", document, status=255)
        assert "(AccessDenied)" in blocked and "BlockPublicPolicy" in blocked
        self.api(aws, "delete-public-access-block", *of)
        self.api(aws, "put-bucket-policy", *of, "--policy", document)
        assert self.api(aws, "get-bucket-policy", *of)["Policy"] == document
        assert self.api(aws, "get-bucket-policy-status", *of)["PolicyStatus"] == {"IsPublic": True}
        self.api(aws, "delete-bucket-policy", *of)
        assert "(NoSuchBucketPolicy)" in aws.run("s3api", "get-bucket-policy", *of, status=255)

    def test_what_is_not_implemented(self, aws, bucket):
        of = ["--bucket", bucket.name]
        assert "(NoSuchCORSConfiguration)" in aws.run("s3api", "get-bucket-cors", *of, status=255)
        assert "(NotImplemented)" in aws.run("s3api", "delete-bucket-cors", *of, status=255)


def test_wrong_keys(aws, bucket):
    aws.env["AWS_SECRET_ACCESS_KEY"] = "wrong"
    assert "SignatureDoesNotMatch" in aws.run("s3", "ls", f"s3://{bucket.name}", status=255)
    aws.env["AWS_ACCESS_KEY_ID"] = "NOBODY"
    assert "InvalidAccessKeyId" in aws.run("s3", "ls", f"s3://{bucket.name}", status=255)


def test_the_lines_that_the_server_prints(server, tmp_path):
    """What it shows at its first start can be pasted."""
    tree = tmp_path / "tree"
    with first_start_on_a_terminal(tree) as shown:
        script = "\n".join(re.findall(r"^  ((?:export|aws) .*)$", shown, re.MULTILINE))
        assert "export AWS_ENDPOINT_URL=" in script and "aws s3 mb" in script
        variables = {"PATH": environment(server, tmp_path)["PATH"], "HOME": str(tmp_path)}
        Program(["bash", "-euc"], variables, tmp_path).run(script)
    assert (tree / "first" / "hostname").read_bytes() == Path("/etc/hostname").read_bytes()
