"""boto3, as programs use it."""

import hashlib
import io
import threading

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from support.checksums import checksum, composite, header
from support.clients import boto3_client
from support.data import MIB, PART, pattern
from support.server import DOMAIN

# Those that botocore calculates itself; it only sends others if it is given the value.
ALGORITHMS = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", "SHA512", "XXHASH64", "XXHASH3", "XXHASH128"]


def member(algorithm: str) -> str:
    return f"Checksum{algorithm}"


class TestObjects:
    def test_round_trip(self, s3, bucket):
        s3.put_object(Bucket=bucket.name, Key="a/b", Body=b"data", Metadata={"k": "v"}, ContentType="text/x")
        got = s3.get_object(Bucket=bucket.name, Key="a/b")
        assert got["Body"].read() == b"data"
        assert (got["Metadata"], got["ContentType"], got["ContentLength"]) == ({"k": "v"}, "text/x", 4)
        assert bucket.file("a/b").read_bytes() == b"data"

    def test_errors_as_exceptions(self, s3, bucket):
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket=bucket.name, Key="none")
        with pytest.raises(s3.exceptions.NoSuchBucket):
            s3.list_objects_v2(Bucket="no-such-bucket")
        with pytest.raises(ClientError) as failure:
            s3.head_object(Bucket=bucket.name, Key="none")
        assert failure.value.response["Error"]["Code"] == "404"
        with pytest.raises(s3.exceptions.NoSuchUpload):
            s3.abort_multipart_upload(Bucket=bucket.name, Key="a", UploadId="none")

    def test_a_stream_of_unknown_length(self, s3, bucket):
        s3.upload_fileobj(io.BytesIO(pattern(3 * MIB)), bucket.name, "key")
        assert bucket.read("key") == pattern(3 * MIB)

    def test_unsigned_payload(self, server, bucket):
        client = boto3_client(server, s3={"payload_signing_enabled": False, "addressing_style": "path"})
        client.put_object(Bucket=bucket.name, Key="key", Body=b"data")
        assert bucket.read("key") == b"data"

    def test_without_checksums(self, server, bucket):
        client = boto3_client(
            server, request_checksum_calculation="when_required", response_checksum_validation="when_required"
        )
        client.put_object(Bucket=bucket.name, Key="key", Body=b"data")
        assert client.get_object(Bucket=bucket.name, Key="key")["Body"].read() == b"data"
        client.delete_objects(Bucket=bucket.name, Delete={"Objects": [{"Key": "key"}]})
        assert bucket.is_untouched()

    @pytest.mark.parametrize(
        "key", ["a b", "ünï/漢字", "a+b%20c", "q?a=1&b#c", "a//b", "\x01", "\U0001f600", "~"]
    )
    def test_odd_keys(self, s3, bucket, key):
        s3.put_object(Bucket=bucket.name, Key=key, Body=b"data")
        assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket.name)["Contents"]] == [key]
        s3.copy_object(Bucket=bucket.name, Key=f"{key}-copy", CopySource={"Bucket": bucket.name, "Key": key})
        assert s3.get_object(Bucket=bucket.name, Key=f"{key}-copy")["Body"].read() == b"data"
        s3.delete_object(Bucket=bucket.name, Key=key)

    def test_virtual_hosts(self, server, bucket, resolve_test_names):
        client = boto3_client(server, style="virtual", endpoint=f"http://{DOMAIN}:{server.address[1]}")
        client.put_object(Bucket=bucket.name, Key="a/b", Body=b"data")
        assert client.get_object(Bucket=bucket.name, Key="a/b")["Body"].read() == b"data"
        assert client.list_objects_v2(Bucket=bucket.name)["KeyCount"] == 1
        assert bucket.file("a/b").read_bytes() == b"data"

    def test_waiters_and_paginators(self, s3, bucket):
        s3.get_waiter("bucket_exists").wait(Bucket=bucket.name)
        for number in range(25):
            bucket.file(f"k{number:02}").write_text("x")
        s3.get_waiter("object_exists").wait(Bucket=bucket.name, Key="k00")
        for operation in ("list_objects", "list_objects_v2"):
            pages = s3.get_paginator(operation).paginate(Bucket=bucket.name, PaginationConfig={"PageSize": 7})
            assert [e["Key"] for page in pages for e in page["Contents"]] == [f"k{n:02}" for n in range(25)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
class TestChecksums:
    """Calculated by boto3 as it sends, verified by it as it reads."""

    def test_put_and_get(self, s3, bucket, algorithm):
        data = pattern(100_000)
        put = s3.put_object(Bucket=bucket.name, Key="key", Body=data, ChecksumAlgorithm=algorithm)
        assert put[member(algorithm)] == checksum(algorithm, data)
        got = s3.get_object(Bucket=bucket.name, Key="key", ChecksumMode="ENABLED")
        assert got["Body"].read() == data
        assert got[member(algorithm)] == checksum(algorithm, data)
        assert got["ResponseMetadata"]["HTTPHeaders"][header(algorithm)] == checksum(algorithm, data)

    def test_wrong(self, s3, bucket, algorithm):
        with pytest.raises(ClientError) as failure:
            s3.put_object(
                Bucket=bucket.name,
                Key="key",
                Body=b"data",
                **{member(algorithm): checksum(algorithm, b"other")},
            )
        assert failure.value.response["Error"]["Code"] == "BadDigest"

    def test_upload_in_parts(self, s3, bucket, algorithm):
        parts = [pattern(PART, 1), b"end"]
        upload = s3.create_multipart_upload(Bucket=bucket.name, Key="key", ChecksumAlgorithm=algorithm)
        sent = []
        for number, part in enumerate(parts, 1):
            answer = s3.upload_part(
                Bucket=bucket.name,
                Key="key",
                UploadId=upload["UploadId"],
                PartNumber=number,
                Body=part,
                ChecksumAlgorithm=algorithm,
            )
            sent.append(
                {"PartNumber": number, "ETag": answer["ETag"], member(algorithm): answer[member(algorithm)]}
            )
        done = s3.complete_multipart_upload(
            Bucket=bucket.name, Key="key", UploadId=upload["UploadId"], MultipartUpload={"Parts": sent}
        )
        whole = b"".join(parts)
        expected = checksum(algorithm, whole) if algorithm == "CRC64NVME" else composite(algorithm, parts)
        assert done[member(algorithm)] == expected
        got = s3.get_object(Bucket=bucket.name, Key="key", ChecksumMode="ENABLED")
        assert got["Body"].read() == whole
        assert got[member(algorithm)] == expected

    def test_delete_many(self, s3, bucket, algorithm):
        bucket.put("key", b"x")
        s3.delete_objects(
            Bucket=bucket.name, Delete={"Objects": [{"Key": "key"}]}, ChecksumAlgorithm=algorithm
        )
        assert bucket.is_untouched()


class TestTransfers:
    @pytest.mark.parametrize("size", [0, PART, 8 * MIB, 8 * MIB + 1, 50 * MIB + 3])
    @pytest.mark.parametrize("threads", [1, 8])
    def test_files(self, s3, bucket, tmp_path, size, threads):
        config = TransferConfig(
            multipart_threshold=8 * MIB, multipart_chunksize=5 * MIB, max_concurrency=threads
        )
        source, back = tmp_path / "source", tmp_path / "back"
        source.write_bytes(pattern(size))
        s3.upload_file(
            str(source), bucket.name, "deep/key", Config=config, ExtraArgs={"Metadata": {"k": "v"}}
        )
        s3.download_file(bucket.name, "deep/key", str(back), Config=config)
        digest = hashlib.sha256(source.read_bytes()).digest()
        assert hashlib.sha256(back.read_bytes()).digest() == digest
        assert hashlib.sha256(bucket.file("deep/key").read_bytes()).digest() == digest
        assert s3.head_object(Bucket=bucket.name, Key="deep/key")["Metadata"] == {"k": "v"}

    def test_managed_copy_in_parts(self, s3, bucket):
        config = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=6 * MIB)
        bucket.put("source", pattern(20 * MIB))
        s3.copy({"Bucket": bucket.name, "Key": "source"}, bucket.name, "copy", Config=config)
        assert bucket.read("copy") == pattern(20 * MIB)
        assert bucket.head("copy").etag.endswith('-4"')

    def test_a_download_of_a_foreign_file(self, s3, bucket, tmp_path):
        bucket.file("by-hand").write_bytes(pattern(20 * MIB))
        config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
        s3.download_file(bucket.name, "by-hand", str(tmp_path / "back"), Config=config)
        assert (tmp_path / "back").read_bytes() == pattern(20 * MIB)

    def test_a_download_of_an_edited_object(self, s3, bucket):
        """With the old ETag or checksum it would fail for ever."""
        s3.put_object(Bucket=bucket.name, Key="key", Body=b"before")
        bucket.file("key").write_bytes(b"edited")
        assert (
            s3.get_object(Bucket=bucket.name, Key="key", ChecksumMode="ENABLED")["Body"].read() == b"edited"
        )

    def test_conditional_writes(self, s3, bucket):
        s3.put_object(Bucket=bucket.name, Key="key", Body=b"1", IfNoneMatch="*")
        with pytest.raises(ClientError) as failure:
            s3.put_object(Bucket=bucket.name, Key="key", Body=b"2", IfNoneMatch="*")
        assert failure.value.response["Error"]["Code"] == "PreconditionFailed"
        assert failure.value.response["Error"]["Condition"] == "If-None-Match"

    def test_clients_in_threads(self, server, bucket):
        failures: list[Exception] = []

        def work(number: int) -> None:
            try:
                client = boto3_client(server)
                for turn in range(10):
                    client.put_object(Bucket=bucket.name, Key=f"{number}/{turn}", Body=f"{number}".encode())
                    assert (
                        client.get_object(Bucket=bucket.name, Key=f"{number}/{turn}")["Body"].read()
                        == f"{number}".encode()
                    )
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(bucket.keys()) == 80
