"""What all answers have in common, and the order in which requests are checked."""

import re

import pytest

from support import codes, expect, tables
from support.checksums import content_md5
from support.server import DOMAIN
from support.wire import head_bytes


class TestIds:
    def test_are_unique(self, bucket):
        ids = [bucket.head("none").headers["x-amz-request-id"] for _ in range(50)]
        assert len(set(ids)) == 50

    def test_on_every_kind_of_answer(self, bucket):
        bucket.put("key", b"data")
        etag = bucket.head("key").etag
        raw = bucket.raw
        for response in (
            raw.get("/"),
            bucket.get("key"),
            bucket.head("key"),
            bucket.get("none"),
            bucket.head("none"),
            bucket.get("key", headers={"range": "bytes=0-1"}),
            bucket.get("key", headers={"if-none-match": etag}),
            bucket.get("key", headers={"range": "bytes=9-"}),
            bucket.delete("key"),
            raw.get("/", anonymous=True),
            raw.put("/A_B"),
            raw.request("PATCH", "/"),
        ):
            assert len(response.headers.all("x-amz-request-id")) == 1, response
            assert len(response.headers.all("x-amz-id-2")) == 1, response
            assert len(response.headers.all("date")) == 1, response
            assert len(response.headers.all("server")) == 1, response

    def test_are_in_the_log(self, make_server):
        server = make_server("--log", "debug")
        request_id = server.raw.get("/none/key").headers["x-amz-request-id"]
        assert request_id in server.log

    def test_log_lines_cannot_be_forged(self, make_server):
        server = make_server("--log", "debug")
        expect.error(server.raw.get("/bucket/a%0A2032-01-01%20ERROR%20forged%0D%0A"), "NoSuchBucket")
        expect.error(
            server.raw.get("/bucket", query={"website": "x\nforged line"}),
            "InvalidArgument",
            re.compile("."),
        )
        assert not re.search(r"^(2032|forged)", server.log, re.MULTILINE)


class TestErrorDocuments:
    def test_form(self, bucket):
        response = bucket.get("a b/ü&<c>")
        expect.error(response, "NoSuchKey", Key="a b/ü&<c>")
        assert response.body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>')
        assert int(response.headers["content-length"]) == len(response.body)

    def test_keys_with_control_characters_keep_it_in_one_piece(self, bucket):
        response = bucket.get("a\x01\x1fb")
        assert (response.status, response.code) == (404, "NoSuchKey")
        assert b"\x01" not in response.body

    @pytest.mark.parametrize("path, status", [("/none/key", 404), ("/A_B", 400), ("/none", 404)])
    def test_head_has_no_body(self, raw, path, status):
        expect.head_error(raw.head(path), status)

    def test_head_and_get_agree(self, bucket):
        for headers in ({}, {"range": "bytes=9-"}, {"if-match": '"x"'}):
            bucket.put("key", b"data")
            get, head = bucket.get("key", headers=headers), bucket.head("key", headers=headers)
            assert get.status == head.status
            skip = ("x-amz-request-id", "x-amz-id-2", "date", "content-length", "content-type")
            get_headers, head_headers = (
                [p for p in r.headers.pairs if p[0].lower() not in skip] for r in (get, head)
            )
            assert get_headers == head_headers


WRONG_SECRET = {"secret_key": "wrong"}


class TestOrder:
    """Conflicts and integers, signature, names, method, bucket, permission and parameters, key, body: the first that is
    wrong is told (docs/decisions/0002-order-of-checks.md)."""

    def bad(self, bucket):
        return bucket.raw.signer.with_(secret_key="wrong")

    @pytest.mark.parametrize("path", ["/A_B/key", "/abc/" + "k" * 1025, "/%2Fabc/key"])
    def test_signature_before_names(self, bucket, path):
        response = bucket.raw.get(path, signer=self.bad(bucket))
        expect.error(response, "SignatureDoesNotMatch")
        # The path as S3 writes it when it signs.
        shown = path.replace("%2F", "/")
        assert response.xml["CanonicalRequest"].startswith(f"GET\n{shown}\n")
        assert bucket.raw.get(path).code in ("InvalidBucketName", "KeyTooLongError")

    def test_signature_before_method(self, bucket):
        response = bucket.raw.request("PATCH", bucket.path("key"), signer=self.bad(bucket))
        expect.error(response, "SignatureDoesNotMatch")
        response = bucket.raw.request("PATCH", bucket.path("key"), anonymous=True)
        expect.error(response, "MethodNotAllowed")

    def test_signature_before_parameters(self, bucket):
        response = bucket.raw.get(bucket.path(), query={"encoding-type": "x"}, signer=self.bad(bucket))
        expect.error(response, "SignatureDoesNotMatch")

    @pytest.mark.parametrize(
        "query, name",
        [
            ("max-keys=x", "max-keys"),
            ("versions&max-keys=x", "max-keys"),
            ("uploads&max-uploads=x", "max-uploads"),
        ],
    )
    def test_integers_before_signature(self, bucket, query, name):
        response = bucket.raw.get(bucket.path(), query=query, signer=self.bad(bucket))
        expect.error(response, "InvalidArgument", re.compile(name), ArgumentName=name)

    def test_signature_before_existence(self, bucket):
        response = bucket.raw.get("/no-such-bucket/key", signer=self.bad(bucket))
        expect.error(response, "SignatureDoesNotMatch")

    def test_parameters_before_permission(self, bucket):
        response = bucket.raw.get(bucket.path(), query={"max-keys": "x"}, anonymous=True)
        assert response.code in ("InvalidArgument", "AccessDenied"), response

    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_parameters(self, raw):
        response = raw.get("/no-such-bucket", query={"encoding-type": "x"})
        expect.error(response, "NoSuchBucket")
        response = raw.put("/no-such-bucket/key", b"data", headers={"content-md5": "x"})
        expect.error(response, "NoSuchBucket")
        query = {"uploads": "", "key-marker": "k", "upload-id-marker": "x"}
        expect.error(raw.get("/no-such-bucket", query=query), "NoSuchBucket")

    @pytest.mark.parametrize(
        "headers", [{}, {"content-md5": content_md5(b"<")}, {"content-md5": content_md5(b"other")}]
    )
    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_documents(self, raw, headers):
        for path, query in [
            ("/no-such-bucket", {"delete": ""}),
            ("/no-such-bucket/key", {"uploadId": "x"}),
        ]:
            response = raw.post(path, b"<", query=query, headers=headers)
            expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.parametrize("path, query", [("", {"delete": ""}), ("/key", {"uploadId": "x"})])
    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_the_size_of_documents(self, raw, path, query):
        headers = {"content-length": str(64 << 20), "content-md5": content_md5(b"")}
        request = raw.prepare(
            "POST", f"/no-such-bucket{path}", query=query, payload="UNSIGNED-PAYLOAD", headers=headers
        )
        with raw.connect() as connection:
            connection.send(request.head)
            expect.error(connection.response(), "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.parametrize("length", [None, str((5 << 30) + 1)])
    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_the_length_of_a_body(self, raw, length):
        for query in ({}, {"partNumber": "1", "uploadId": "x"}):
            request = raw.prepare(
                "PUT",
                "/no-such-bucket/key",
                query=query,
                payload="UNSIGNED-PAYLOAD",
                headers={"content-length": length},
            )
            with raw.connect() as connection:
                connection.send(request.head)
                expect.error(connection.response(), "NoSuchBucket", BucketName="no-such-bucket")

    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_permission(self, bucket):
        expect.error(bucket.raw.get("/no-such-bucket/key", anonymous=True), "NoSuchBucket")
        expect.head_error(bucket.raw.head("/no-such-bucket/key", anonymous=True), 404)
        expect.error(bucket.raw.put("/no-such-bucket/key", anonymous=True), "NoSuchBucket")
        expect.error(bucket.get("key", anonymous=True), "AccessDenied")
        expect.head_error(bucket.head("key", anonymous=True), 403)

    @pytest.mark.usefixtures("no_bucket")
    def test_bucket_before_what_is_not_implemented(self, bucket):
        expect.error(bucket.raw.put("/no-such-bucket", query="cors"), "NoSuchBucket")
        expect.error(bucket.raw.put(bucket.path(), query="cors", anonymous=True), "AccessDenied")

    def test_strangers_make_no_buckets(self, raw):
        message = "Anonymous users cannot invoke this API. Please authenticate."
        expect.error(raw.put("/a-new-bucket", anonymous=True), "AccessDenied", message)

    @pytest.mark.usefixtures("no_bucket")
    def test_existence_before_body(self, bucket):

        response = bucket.raw.put(
            "/no-such-bucket/key", b"data", headers={"content-md5": content_md5(b"other")}
        )
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")


class TestAddressing:
    """Path style and virtual-host style at once (the session's server has --domain)."""

    def test_bucket_as_a_host(self, bucket):

        headers = {"host": f"{bucket.name}.{DOMAIN}:9999"}
        expect.ok(bucket.raw.put("/a/b", b"data", headers=headers))
        assert bucket.read("a/b") == b"data"
        assert expect.ok(bucket.raw.get("/a/b", headers=headers)).body == b"data"
        listed = expect.ok(bucket.raw.get("/", query={"list-type": "2"}, headers=headers)).xml
        assert listed["Name"] == bucket.name
        expect.ok(bucket.raw.head("/", headers=headers))
        upper = {"host": f"{bucket.name.upper()}.{DOMAIN.upper()}"}
        assert expect.ok(bucket.raw.get("/a/b", headers=upper)).body == b"data"

    def test_the_domain_itself_is_path_style(self, bucket):

        bucket.put("key", b"data")
        assert expect.ok(bucket.get("key", headers={"host": DOMAIN})).body == b"data"
        assert expect.ok(bucket.raw.get("/", headers={"host": DOMAIN})).xml.name == "ListAllMyBucketsResult"

    def test_other_hosts_are_path_style(self, bucket):
        bucket.put("key", b"data")
        for host in ("example.org", "127.0.0.1:1", "[::1]:80", "localhost"):
            assert expect.ok(bucket.get("key", headers={"host": host})).body == b"data"

    def test_presigned(self, bucket):

        bucket.put("key", b"data")
        host = f"{bucket.name}.{DOMAIN}"
        target = bucket.raw.signer.presign("GET", "/key", host)
        with bucket.raw.connect() as connection:
            connection.send(head_bytes("GET", target, [("Host", host)]))
            assert expect.ok(connection.response()).body == b"data"

    def test_absolute_urls(self, bucket):
        bucket.put("key", b"data")
        request = bucket.raw.prepare("GET", bucket.path("key"))
        absolute = request.head.replace(b"GET /", f"GET http://{bucket.raw.host}/".encode(), 1)
        with bucket.raw.connect() as connection:
            connection.send(absolute)
            assert expect.ok(connection.response()).body == b"data"


def test_every_code_has_its_expected_sentence():
    """The server's table and the tests' own agree on which codes there are."""
    assert sorted(tables.error_codes()) == sorted(codes.EXPECTED)
    assert set(codes.NOT_TRIGGERED) <= set(codes.EXPECTED)
    assert all(reason for reason in codes.NOT_TRIGGERED.values())
