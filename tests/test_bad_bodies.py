"""Bodies that break off, are too long, stall, or are not what they claim. Nothing of them may be left."""

import os
import re

import pytest

from support import expect, sigv4
from support.bucket import Bucket
from support.data import MIB, pattern
from support.server import assert_nothing_staged
from support.wire import poll


def put_head(bucket, key: str, length: int, **options):
    headers = {"content-length": str(length), **options.pop("headers", {})}
    return bucket.raw.prepare("PUT", bucket.path(key), headers=headers, payload="UNSIGNED-PAYLOAD", **options)


def open_files_below(pid: int, directory) -> list[str]:
    """What a process has open below a directory, also what has no name any more."""
    found = []
    for link in os.scandir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(link.path)
        except FileNotFoundError:
            continue
        if target.startswith(str(directory)):
            found.append(target)
    return found


def assert_nothing_left(bucket) -> None:
    assert bucket.is_untouched()
    assert_nothing_staged(bucket.tree)
    poll(lambda: not open_files_below(bucket.server.pid, bucket.tree), 10)


class TestClientGoesAway:
    @pytest.mark.parametrize("sent", [0, 1, 100_000, 5 * MIB])
    @pytest.mark.parametrize("how", ["close", "reset", "half-close"])
    def test_amid_a_put(self, bucket, sent, how):
        request = put_head(bucket, "key", 20 * MIB)
        connection = bucket.raw.connect()
        connection.send(request.head + pattern(sent))
        if how == "close":
            connection.close()
        elif how == "reset":
            connection.reset()
        else:
            connection.socket.shutdown(1)
            expect.error(connection.response(), "IncompleteBody", re.compile("."))
            connection.close()
        assert_nothing_left(bucket)

    def test_amid_an_overwrite(self, bucket):
        bucket.put("key", b"old")
        connection = bucket.raw.connect()
        connection.send(put_head(bucket, "key", MIB).head + b"new")
        connection.reset()
        poll(lambda: len(open_files_below(bucket.server.pid, bucket.tree)) == 0, 10)
        assert bucket.read("key") == b"old"

    def test_amid_a_new_directory(self, bucket):
        """Directories made for an object that never came go, too."""
        connection = bucket.raw.connect()
        connection.send(put_head(bucket, "deep/er/key", MIB).head + b"new")
        connection.reset()
        assert_nothing_left(bucket)
        poll(lambda: not bucket.file("deep").exists(), 5)

    def test_amid_a_part(self, bucket):
        upload_id = bucket.create_upload("key")
        connection = bucket.raw.connect()
        query = {"partNumber": "1", "uploadId": upload_id}
        connection.send(put_head(bucket, "key", 20 * MIB, query=query).head + pattern(MIB))
        connection.reset()
        poll(lambda: not open_files_below(bucket.server.pid, bucket.tree), 10)
        listed = bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id}).xml
        assert listed.all("Part") == []
        expect.ok(bucket.abort("key", upload_id), 204)

    def test_amid_a_get(self, bucket):
        bucket.put("key", pattern(32 * MIB))
        for _ in range(5):
            connection = bucket.raw.connect()
            connection.send(bucket.raw.prepare("GET", bucket.path("key")).bytes)
            assert connection.head().status == 200
            connection.reset()
        poll(lambda: not open_files_below(bucket.server.pid, bucket.tree), 10)
        assert bucket.read("key") == pattern(32 * MIB)

    def test_amid_a_document(self, bucket):
        bucket.put("key", b"x")
        request = bucket.raw.prepare(
            "POST",
            bucket.path(),
            query={"delete": ""},
            payload="UNSIGNED-PAYLOAD",
            headers={"content-length": "1000", "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="},
        )
        connection = bucket.raw.connect()
        connection.send(request.head + b"<Delete><Object><Key>key</Key></Object></Delete>")
        connection.socket.shutdown(1)
        expect.error(connection.response(), "IncompleteBody", re.compile("."))
        connection.close()
        assert bucket.exists("key")

    def test_a_signed_body_that_breaks_off(self, bucket):
        """Its chunk signatures are all right, as far as it goes."""

        signer = bucket.raw.signer.with_(at=bucket.raw.signer.now())
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            payload=sigv4.STREAMING,
            signer=signer,
            headers={"x-amz-decoded-content-length": "131072", "content-length": "131500"},
        )
        chunks = sigv4.ChunkSigner(signer, signer.now(), request.signature)
        framed = sigv4.frame(bytes(131072), 65536, chunks=chunks)
        with bucket.raw.connect() as connection:
            connection.send(request.head + framed[:66_000])
            connection.socket.shutdown(1)
            expect.error(connection.response(), "IncompleteBody", re.compile("."))
        assert_nothing_left(bucket)


class TestLengths:
    def test_more_than_was_said(self, bucket):
        """What is beyond Content-Length is the next request, and here it is none."""
        with bucket.raw.connect() as connection:
            connection.send(put_head(bucket, "key", 4).head + b"data and more\r\n\r\n")
            expect.ok(connection.response())
            assert connection.response().status == 400
        assert bucket.read("key") == b"data"

    @pytest.mark.parametrize("length", ["-1", "4x", "18446744073709551616", "0x4", "4, 5", " ", "+4"])
    def test_that_are_none(self, bucket, length):
        request = bucket.raw.prepare(
            "PUT", bucket.path("key"), payload="UNSIGNED-PAYLOAD", headers={"content-length": length}
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head + b"data")
            response = connection.response()
            assert response.status in (400, 411), response
        assert bucket.is_untouched()

    def test_two_that_differ(self, bucket):
        """A proxy might believe the other one."""
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            payload="UNSIGNED-PAYLOAD",
            headers=[("content-length", "4"), ("content-length", "5")],
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head + b"data!")
            assert connection.response().status == 400
            assert connection.is_closed(5)
        assert bucket.is_untouched()

    def test_length_and_chunked_transfer(self, bucket):
        """The classic of request smuggling: refused, or the connection does not go on."""
        request = bucket.raw.prepare(
            "PUT",
            bucket.path("key"),
            payload="UNSIGNED-PAYLOAD",
            headers={"content-length": "4", "transfer-encoding": "chunked"},
        )
        smuggled = bucket.raw.prepare("DELETE", bucket.path("victim")).bytes
        bucket.put("victim", b"alive")
        with bucket.raw.connect() as connection:
            connection.send_as_far_as_possible(request.head + b"0\r\n\r\n" + smuggled)
            assert connection.response().status in (400, 501)
        assert bucket.exists("victim")
        assert not bucket.exists("key")


class TestSlowBodies:
    @pytest.fixture
    def impatient(self, make_server):

        return Bucket(make_server("--stall-timeout", "1"), "bucket").create()

    def test_a_put_that_stalls(self, impatient):
        with impatient.raw.connect() as connection:
            connection.send(put_head(impatient, "key", MIB).head + b"some")
            expect.error(connection.response(), "RequestTimeout")
            assert connection.is_closed(10)
        assert_nothing_left(impatient)

    def test_a_document_that_stalls(self, impatient):
        request = impatient.raw.prepare(
            "PUT", "/another", payload="UNSIGNED-PAYLOAD", headers={"content-length": "100"}
        )
        with impatient.raw.connect() as connection:
            connection.send(request.head + b"<CreateBucket")
            expect.error(connection.response(), "RequestTimeout")
        assert not (impatient.server.tree / "another").exists()

    def test_a_get_that_is_not_read(self, impatient):
        """The server gives up, and lets go of the file."""
        impatient.put("key", pattern(64 * MIB))
        with impatient.raw.connect() as connection:
            connection.send(impatient.raw.prepare("GET", impatient.path("key")).bytes)
            assert connection.head().status == 200
            poll(lambda: not open_files_below(impatient.server.pid, impatient.tree), 15)

    @pytest.mark.slow
    def test_a_body_that_trickles(self, bucket):
        """Never stalled, and never done: given up after a minute's grace."""
        with bucket.raw.connect() as connection:
            connection.send(put_head(bucket, "key", MIB).head)
            for _ in range(400):
                connection.send_as_far_as_possible(b"x")
                if not connection.is_silent(0.25):
                    break
            expect.error(connection.response(), "RequestTimeout")
        assert_nothing_left(bucket)

    def test_a_slow_body_that_goes_on(self, impatient):
        """A pause shorter than the limit is no reason to give up."""
        with impatient.raw.connect() as connection:
            connection.send(put_head(impatient, "key", 8).head)
            for byte in b"12345678":
                connection.send(bytes([byte]))
                assert connection.is_silent(0.2) or byte == ord("8")
            expect.ok(connection.response())
        assert impatient.read("key") == b"12345678"


class TestEarlyAnswers:
    @pytest.mark.parametrize("size", [1000, 60_000, MIB, 16 * MIB])
    def test_the_error_is_read_whatever_was_sent(self, bucket, size):
        """A client that sends first and reads then gets the answer, not a reset."""
        signer = bucket.raw.signer.with_(secret_key="wrong")
        for _ in range(3):
            response = bucket.raw.put(bucket.path("key"), pattern(size), signer=signer)
            expect.error(response, "SignatureDoesNotMatch")
        assert_nothing_left(bucket)

    @pytest.mark.usefixtures("no_bucket")
    def test_small_unwanted_bodies_keep_the_connection(self, bucket):
        with bucket.raw.connect() as connection:
            response = bucket.raw.put("/no-such-bucket/key", pattern(1000), connection=connection)
            expect.error(response, "NoSuchBucket")
            expect.ok(bucket.raw.put(bucket.path("key"), b"data", connection=connection))
        assert bucket.read("key") == b"data"

    @pytest.mark.usefixtures("no_bucket")
    def test_large_unwanted_bodies_end_it(self, bucket):
        request = bucket.raw.prepare(
            "PUT", "/no-such-bucket/key", payload="UNSIGNED-PAYLOAD", headers={"content-length": str(1 << 30)}
        )
        with bucket.raw.connect() as connection:
            connection.send_as_far_as_possible(request.head + pattern(MIB))
            response = connection.response()
            expect.error(response, "NoSuchBucket")
            assert response.headers["connection"] == "close"

    def test_bodies_of_requests_that_have_none(self, bucket):
        """GET, HEAD and DELETE with a body: it is ignored and does not disturb the next request."""
        bucket.put("key", b"data")
        with bucket.raw.connect() as connection:
            for method, status in (("GET", 200), ("HEAD", 200), ("DELETE", 204)):
                response = bucket.raw.request(
                    method, bucket.path("key"), body=b"unwanted", connection=connection
                )
                assert response.status == status, response
        assert not bucket.exists("key")
