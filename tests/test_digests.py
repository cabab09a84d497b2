"""ETags of many bodies at once, and with `--etag checksum`."""

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import ALGORITHMS, checksum, content_md5, digest, header, multipart_etag
from support.data import MIB, PART, pattern
from support.server import Server, remove_tree
from support.sigv4 import STREAMING_UNSIGNED_TRAILER, frame
from support.wire import poll

# Around the sizes at which a body is digested elsewhere, is due, and is made to wait.
SIZES = [0, 1, 63, 64, 32_768, 32_769, 65_536, 131_071, 131_072, 262_145, MIB, MIB + 77, 3 * MIB + 1]


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def crc_etag(data: bytes) -> str:
    return f'"crc64nvme-{digest("CRC64NVME", data).hex()}"'


class Uploads:
    """Uploads of one kind each, of a size and with bytes of their own."""

    def __init__(self, bucket: Bucket, etag) -> None:
        self.bucket, self.etag = bucket, etag

    def plain(self, key: str, data: bytes) -> None:
        put = self.bucket.raw.put(self.bucket.path(key), data, payload="UNSIGNED-PAYLOAD")
        assert expect.ok(put).etag == self.etag(data)

    def signed(self, key: str, data: bytes) -> None:
        headers = {header("SHA256"): checksum("SHA256", data), "content-md5": content_md5(data)}
        put = self.bucket.put(key, data, headers=headers)
        assert put.etag == self.etag(data)
        assert put.headers[header("SHA256")] == checksum("SHA256", data)

    def signed_chunks(self, key: str, data: bytes) -> None:
        put = expect.ok(self.bucket.put_signed_chunks(key, data, size=8192))
        assert put.etag == self.etag(data)

    def trailer(self, key: str, data: bytes) -> None:
        name, value = header("CRC32"), checksum("CRC32", data)
        put = self.bucket.put_chunked(
            key,
            frame(data, 8192, trailers=[(name, value)]),
            len(data),
            STREAMING_UNSIGNED_TRAILER,
            headers={"x-amz-trailer": name},
        )
        assert expect.ok(put).etag == self.etag(data)

    def checksum(self, key: str, data: bytes) -> None:
        headers = {header("SHA256"): checksum("SHA256", data)}
        put = self.bucket.raw.put(self.bucket.path(key), data, payload="UNSIGNED-PAYLOAD", headers=headers)
        assert expect.ok(put).etag == self.etag(data)
        assert put.headers[header("SHA256")] == checksum("SHA256", data)

    def part(self, key: str, data: bytes) -> None:
        upload_id = self.bucket.create_upload(key)
        put = expect.ok(self.bucket.put_part(key, upload_id, 1, data))
        assert put.etag == self.etag(data)
        expect.ok(self.bucket.complete(key, upload_id, [(1, put.etag)]))

    def wrong(self, key: str, data: bytes) -> None:
        headers = {"content-md5": content_md5(b"x" + data)}
        expect.error(self.bucket.raw.put(self.bucket.path(key), data, headers=headers), "BadDigest")

    def forged(self, key: str, data: bytes) -> None:
        signed = hashlib.sha256(b"x" + data).hexdigest()
        put = self.bucket.raw.put(self.bucket.path(key), data, payload=signed)
        expect.error(put, "XAmzContentSHA256Mismatch")

    def aborted(self, key: str, data: bytes) -> None:
        """The client goes away when nearly all has been sent."""
        request = self.bucket.raw.prepare(
            "PUT",
            self.bucket.path(key),
            payload="UNSIGNED-PAYLOAD",
            headers={"content-length": str(len(data) + 1)},
        )
        connection = self.bucket.raw.connect()
        connection.send(request.head + data)
        connection.reset()


GOOD = ["plain", "signed", "signed_chunks", "trailer", "checksum", "part"]
KINDS = [*GOOD, "wrong", "forged", "aborted"]


def all_at_once(bucket: Bucket, of) -> None:
    uploads = Uploads(bucket, of)
    work = [(kind, size, f"{kind}-{size}") for kind in KINDS for size in SIZES]
    random.Random(7).shuffle(work)
    bodies = {key: pattern(size, n) for n, (_, size, key) in enumerate(work)}
    with ThreadPoolExecutor(32) as pool:
        for done in [pool.submit(getattr(uploads, kind), key, bodies[key]) for kind, _, key in work]:
            done.result()
    good = sorted(key for kind, _, key in work if kind in GOOD)
    # Those whose clients are gone may take a moment to be.
    assert poll(lambda: bucket.keys() == good, 5)
    for key in good:
        assert bucket.file(key).read_bytes() == bodies[key], key


def test_many_at_once(bucket):
    all_at_once(bucket, etag)


def test_slow_ones_hold_nobody_up(bucket):
    """Streams that have begun and wait for their clients, more than there are lanes."""
    data = pattern(MIB)
    request = bucket.raw.prepare(
        "PUT", bucket.path("slow"), payload="UNSIGNED-PAYLOAD", headers={"content-length": str(MIB)}
    )
    slow = [bucket.raw.connect() for _ in range(40)]
    try:
        for n, connection in enumerate(slow):
            connection.send(request.head + data[: 50_000 + n * 10_000])
        for n in range(20):
            assert bucket.put(f"fast-{n}", data).etag == etag(data)
        for n, connection in enumerate(slow):
            connection.send(data[50_000 + n * 10_000 :])
            assert expect.ok(connection.response()).etag == etag(data)
    finally:
        for connection in slow:
            connection.close()
    assert bucket.read("slow") == data


def test_one_sha256_serves_for_both(bucket):
    """The SHA-256 that is signed is the checksum, unless the checksum says otherwise."""
    data = pattern(100_000)
    right = {header("SHA256"): checksum("SHA256", data)}
    bad = bucket.raw.put(bucket.path("bad"), data, headers={header("SHA256"): checksum("SHA256", b"other")})
    expect.error(bad, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")
    other = hashlib.sha256(b"other").hexdigest()
    signed_as_other = bucket.raw.put(bucket.path("bad"), data, payload=other, headers=right)
    expect.error(signed_as_other, "XAmzContentSHA256Mismatch")
    assert bucket.is_untouched()
    bucket.put("key", data, headers={"x-amz-sdk-checksum-algorithm": "SHA256", **right})
    shown = bucket.head("key", headers={"x-amz-checksum-mode": "ENABLED"})
    assert shown.headers[header("SHA256")] == checksum("SHA256", data)


class TestChecksums:
    """`--etag checksum`."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, tmp_path_factory):
        tree = tmp_path_factory.mktemp("tree")
        running = Server(tree, "--etag", "checksum", log=tmp_path_factory.mktemp("log") / "server.log")
        yield running
        running.stop()
        remove_tree(tree)
        assert "panicked" not in running.log, running.log

    def test_many_at_once(self, bucket):
        all_at_once(bucket, crc_etag)

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_one_etag_whatever_the_checksum(self, bucket, algorithm):
        data = pattern(100_000)
        put = bucket.put("key", data, headers={header(algorithm): checksum(algorithm, data)})
        listed = bucket.page().child("Contents")["ETag"]
        assert put.etag == bucket.head("key").etag == listed == crc_etag(data)
        assert put.headers[header(algorithm)] == checksum(algorithm, data)

    def test_conditions(self, bucket):
        one, two = bucket.put("key", b"one").etag, crc_etag(b"two")
        early = bucket.raw.put(bucket.path("key"), b"two", headers={"if-match": two})
        expect.error(early, "PreconditionFailed")
        bucket.put("key", b"two", headers={"if-match": one})
        assert bucket.get("key", headers={"if-none-match": two}).status == 304
        assert bucket.get("key", headers={"if-match": two}).body == b"two"

    def test_parts(self, bucket):
        parts = [pattern(PART), pattern(1000, 1)]
        upload_id = bucket.create_upload("key")
        answers = [bucket.put_part("key", upload_id, n, part) for n, part in enumerate(parts, 1)]
        sent = [(n, expect.ok(answer).etag) for n, answer in enumerate(answers, 1)]
        assert [tag for _, tag in sent] == [crc_etag(part) for part in parts]
        expect.error(bucket.complete("key", upload_id, [(1, etag(parts[0]))]), "InvalidPart")
        expect.ok(bucket.complete("key", upload_id, sent))
        assert bucket.head("key").etag.endswith('-2"')
        assert bucket.read("key") == b"".join(parts)

    def test_copies(self, bucket):
        data = pattern(200_000)
        bucket.put("key", data)
        for target, headers in [("same", {}), ("other", {"x-amz-checksum-algorithm": "SHA256"})]:
            source = {"x-amz-copy-source": f"{bucket.name}/key", **headers}
            copied = expect.ok(bucket.raw.put(bucket.path(target), headers=source))
            assert copied.xml["ETag"] == crc_etag(data)
            assert bucket.head(target).etag == crc_etag(data)
            assert bucket.read(target) == data


def test_trees_outlive_the_option(make_server, tmp_path):
    """Objects keep the ETags they have; so do copies, which need not be read again."""
    data, tree = pattern(100_000), tmp_path / "shared"
    tree.mkdir()
    first = Bucket(make_server("--etag", "checksum", tree=tree), "bucket").create()
    first.put("checksum", data)
    first.server.stop()
    second = Bucket(make_server(tree=tree), "bucket")
    second.put("md5", data)
    for key, expected in [("checksum", crc_etag(data)), ("md5", etag(data))]:
        assert second.head(key).etag == expected
        copied = second.raw.put(second.path(f"{key}-copy"), headers={"x-amz-copy-source": f"bucket/{key}"})
        assert expect.ok(copied).xml["ETag"] == expected
    upload_id = second.create_upload("both")
    parts = [second.put_part("both", upload_id, 1, pattern(PART)).etag]
    expect.ok(second.complete("both", upload_id, [(1, parts[0])]))
    assert second.head("both").etag == multipart_etag([pattern(PART)])
