"""ListBuckets, CreateBucket, HeadBucket, DeleteBucket, GetBucketLocation."""

import os
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import content_md5
from support.server import remove_tree
from support.xml import element

INVALID_NAMES = [
    "ab",
    "Abc",
    "a_b_c",
    "-abc",
    "abc-",
    "abc.",
    "a..b",
    "192.168.5.4",
    "xn--abc",
    "abc-s3alias",
    "abc--ol-s3",
    "a" * 64,
    "a%20b",
    ".slipway",
]


@pytest.fixture
def name(server) -> Iterator[str]:
    """A free name; whatever is made of it goes away."""
    name = f"free-{uuid.uuid4()}"
    yield name
    remove_tree(server.tree / name)


def location_constraint(region: str) -> bytes:
    return element("CreateBucketConfiguration", LocationConstraint=region).encode()


class TestCreate:
    def test_makes_a_directory(self, server, raw, name):
        response = expect.ok(raw.put(f"/{name}"))
        assert response.headers["location"] == f"/{name}"
        assert response.headers["x-amz-bucket-arn"] == f"arn:aws:s3:::{name}"
        assert response.body == b""
        assert (server.tree / name).is_dir()

    def test_a_trailing_slash_is_the_bucket_too(self, server, raw, name):
        expect.ok(raw.put(f"/{name}/"))
        assert (server.tree / name).is_dir()

    def test_again_changes_nothing(self, bucket, raw):
        """us-east-1 answers 200 to whoever owns the bucket; other regions don't."""
        bucket.put("kept", b"1")
        expect.ok(raw.put(bucket.path()))
        assert bucket.read("kept") == b"1"

    def test_again_elsewhere_is_an_error(self, make_server):
        server = make_server("--region", "eu-lab-1")
        raw = server.raw.with_(signer=server.raw.signer.with_(region="eu-lab-1"))
        expect.ok(raw.put("/bucket", location_constraint("eu-lab-1")))
        expect.error(
            raw.put("/bucket", location_constraint("eu-lab-1")),
            "BucketAlreadyOwnedByYou",
            BucketName="bucket",
        )

    @pytest.mark.parametrize("bad", INVALID_NAMES)
    def test_invalid_names(self, server, raw, bad):
        expect.error(raw.put(f"/{bad}"), "InvalidBucketName", BucketName=bad.replace("%20", " "))
        assert not (server.tree / bad).exists() or bad == ".slipway"

    @pytest.mark.parametrize("region", ["", "auto"])
    def test_location_constraint_of_here(self, server, raw, name, region):
        expect.ok(raw.put(f"/{name}", location_constraint(region)))
        assert (server.tree / name).is_dir()

    @pytest.mark.parametrize("region", ["us-east-1", "mars-1", "EU"])
    def test_location_constraint_of_elsewhere(self, server, raw, name, region):
        """us-east-1 itself is named by naming nothing."""
        expect.error(
            raw.put(f"/{name}", location_constraint(region)),
            "InvalidLocationConstraint",
            LocationConstraint=region,
        )
        assert not (server.tree / name).exists()

    @pytest.mark.parametrize("asked", ["us-east-1", "mars-1", "EU"])
    def test_location_constraint_of_another_region(self, make_server, asked):
        server = make_server("--region", "eu-lab-1")
        raw = server.raw.with_(signer=server.raw.signer.with_(region="eu-lab-1"))
        expect.error(
            raw.put("/bucket", location_constraint(asked)),
            "IllegalLocationConstraintException",
            f"The {asked} location constraint is incompatible for the region specific endpoint "
            "this request was sent to.",
        )
        assert not (server.tree / "bucket").exists()

    def test_body_with_namespace_and_unknown_elements(self, server, raw, name):
        body = (
            b'<?xml version="1.0"?><CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            b"<Unknown><Deep/></Unknown></CreateBucketConfiguration>"
        )
        expect.ok(raw.put(f"/{name}", body))
        assert (server.tree / name).is_dir()

    def test_malformed_body(self, server, raw, name):
        expect.error(raw.put(f"/{name}", b"<CreateBucketConfiguration>"), "MalformedXML")
        assert not (server.tree / name).exists()

    @pytest.mark.parametrize(
        "header, value, code",
        [
            ("x-amz-bucket-object-lock-enabled", "maybe", "NotImplemented"),
            ("x-amz-acl", "public-read", "AccessControlListNotSupported"),
            ("x-amz-grant-read", 'id="x"', "AccessControlListNotSupported"),
            ("x-amz-object-ownership", "ObjectWriter", "NotImplemented"),
        ],
    )
    def test_headers_that_mean_something_else(self, server, raw, name, header, value, code):
        response = raw.put(f"/{name}", headers={header: value})
        message = re.compile("A header you provided implies functionality that is not implemented")
        if code == "NotImplemented":
            expect.error(response, code, message, Header=header)
        else:
            expect.error(response, code)
        assert not (server.tree / name).exists()

    def test_acl_private_is_what_there_is(self, raw, name):
        expect.ok(raw.put(f"/{name}", headers={"x-amz-acl": "private"}))


class TestHeadAndLocation:
    def test_head(self, bucket, raw):
        response = expect.ok(raw.head(bucket.path()))
        assert response.headers["x-amz-bucket-region"] == "us-east-1"
        assert response.headers["x-amz-bucket-arn"] == f"arn:aws:s3:::{bucket.name}"
        assert response.body == b""

    @pytest.mark.usefixtures("no_bucket")
    def test_head_of_none(self, raw):
        expect.head_error(raw.head("/no-such-bucket"), 404)

    def test_head_of_an_invalid_name(self, raw):
        expect.head_error(raw.head("/No_Bucket"), 400)

    def test_location_of_us_east_1_is_empty(self, bucket, raw):
        response = expect.ok(raw.get(bucket.path(), query={"location": ""}))
        assert response.xml.name == "LocationConstraint"
        assert response.xml.text == ""
        assert response.body.endswith(
            b'<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>'
        )

    def test_location_elsewhere(self, make_server):
        server = make_server("--region", "eu-lab-1")
        raw = server.raw.with_(signer=server.raw.signer.with_(region="eu-lab-1"))
        expect.ok(raw.put("/bucket"))
        assert expect.ok(raw.get("/bucket", query={"location": ""})).xml.text == "eu-lab-1"

    @pytest.mark.usefixtures("no_bucket")
    def test_location_of_none(self, raw):
        response = raw.get("/no-such-bucket", query={"location": ""})
        expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")

    def test_a_bucket_that_a_person_made(self, server, raw, name):
        (server.tree / name).mkdir()
        expect.ok(raw.head(f"/{name}"))

    def test_a_file_is_no_bucket(self, server, raw, name):
        (server.tree / name).write_text("x")
        try:
            expect.head_error(raw.head(f"/{name}"), 404)
            expect.error(raw.get(f"/{name}/x"), "NoSuchBucket", BucketName=name)
            expect.error(raw.put(f"/{name}"), "BucketAlreadyExists", BucketName=name)
        finally:
            (server.tree / name).unlink()

    def test_a_symlink_is_no_bucket(self, server, raw, name, tmp_path):
        (tmp_path / "secret").write_text("x")
        (server.tree / name).symlink_to(tmp_path)
        try:
            expect.head_error(raw.head(f"/{name}"), 404)
            expect.error(raw.get(f"/{name}/secret"), "NoSuchBucket", BucketName=name)
            expect.error(raw.put(f"/{name}"), "BucketAlreadyExists", BucketName=name)
            listed = expect.ok(raw.get("/")).xml.child("Buckets").all("Bucket")
            assert name not in [b["Name"] for b in listed]
        finally:
            (server.tree / name).unlink()


class TestDelete:
    def test_empty(self, server, raw, name):
        expect.ok(raw.put(f"/{name}"))
        response = expect.ok(raw.delete(f"/{name}"), 204)
        assert response.body == b""
        assert not (server.tree / name).exists()
        expect.head_error(raw.head(f"/{name}"), 404)

    def test_after_use(self, server, raw, name):
        bucket = Bucket(server, name).create()
        bucket.put("a/b/c", b"1")
        bucket.put("a/b/c", b"2")
        expect.ok(bucket.delete("a/b/c"), 204)
        expect.ok(raw.delete(f"/{name}"), 204)
        assert not (server.tree / name).exists()

    def test_not_empty(self, bucket, raw):
        bucket.put("a", b"1")
        expect.error(raw.delete(bucket.path()), "BucketNotEmpty", BucketName=bucket.name)
        assert bucket.read("a") == b"1"

    def test_not_empty_by_a_file(self, bucket, raw):
        (bucket.tree / "deep" / "er").mkdir(parents=True)
        (bucket.tree / "deep" / "er" / "file").write_text("x")
        expect.error(raw.delete(bucket.path()), "BucketNotEmpty", BucketName=bucket.name)
        assert (bucket.tree / "deep" / "er" / "file").read_text() == "x"

    def test_of_empty_directories(self, bucket, raw):
        """Nothing is in it that S3 could see, whoever made the directories."""
        (bucket.tree / "raw" / "2026" / ("d" * 250)).mkdir(parents=True)
        (bucket.tree / ".hidden").mkdir()
        expect.ok(raw.delete(bucket.path()), 204)
        assert not bucket.tree.exists()

    @pytest.mark.parametrize("what", ["fifo", "link", "name", "directory"])
    def test_of_what_is_no_object(self, bucket, raw, what, tmp_path):
        (bucket.tree / "empty").mkdir()
        match what:
            case "fifo":
                os.mkfifo(bucket.tree / "empty" / "fifo")
            case "link":
                (bucket.tree / "empty" / "link").symlink_to(tmp_path)
            case "name":
                Path(os.fsdecode(bytes(bucket.tree) + b"/empty/\xff")).write_text("x")
            case "directory":
                Path(os.fsdecode(bytes(bucket.tree) + b"/\xff")).mkdir()
        assert bucket.keys() == []
        expect.error(
            raw.delete(bucket.path()),
            "BucketNotEmpty",
            "The bucket you tried to delete is not empty: it holds files that are not objects.",
            BucketName=bucket.name,
        )
        assert (bucket.tree / "empty").exists()

    @pytest.mark.parametrize(
        "path, why",
        [
            (".slipway,notes", "reserved"),
            (".slipway,self", "reserved"),
            ("empty/.slipway,=plain", "reserved"),
            ("/".join("d" * 250 for _ in range(5)) + "/file", "1024 bytes"),
            (".snapshot/daily", "snapshots"),
            ("empty/link", "a symbolic link"),
            (".slipway/notes", "not created by the gateway"),
        ],
    )
    def test_the_log_tells_what_keeps_it(self, bucket, raw, path, why):
        """The listing is empty, so that the client can't know."""
        kept = bucket.tree / path
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.symlink_to("nowhere") if kept.name == "link" else kept.write_text("x")
        except OSError as error:
            pytest.skip(f"not available on this file system: {error}")
        assert bucket.keys() == []
        refused = raw.delete(bucket.path())
        expect.error(refused, "BucketNotEmpty", re.compile("not objects"), BucketName=bucket.name)
        assert os.path.lexists(kept)
        request_id = refused.headers["x-amz-request-id"]
        (line,) = [line for line in bucket.server.log.splitlines() if request_id in line]
        told = ".snapshot" if why == "snapshots" else path
        assert f'"{bucket.name}/{told}' in line and why in line and " INFO " in line, line

    def test_of_what_is_not_ours_in_our_directory(self, bucket, raw):
        """Told at once, and nothing of it is taken."""
        bucket.put("a", b"1")
        bucket.put("a", b"2")
        bucket.delete("a")
        (bucket.tree / ".slipway" / "notes").write_text("x")
        upload_id = bucket.create_upload("up")
        expect.error(
            raw.delete(bucket.path()), "BucketNotEmpty", re.compile("not objects"), BucketName=bucket.name
        )
        assert (bucket.tree / ".slipway" / "notes").read_text() == "x"
        expect.ok(bucket.put_part("up", upload_id, 1, b"x"))

    def test_with_a_directory_object(self, bucket, raw):
        bucket.put("a/b/", b"")
        expect.error(raw.delete(bucket.path()), "BucketNotEmpty", BucketName=bucket.name)
        assert bucket.exists("a/b/")

    def test_with_an_upload_in_progress(self, bucket, raw):
        """As on S3, uploads end with their bucket; a bucket of the same name begins without them."""
        upload_id = bucket.create_upload("a")
        expect.ok(raw.delete(bucket.path()), 204)
        assert not bucket.tree.exists()
        expect.ok(raw.put(bucket.path()))
        expect.error(bucket.abort("a", upload_id), "NoSuchUpload")

    @pytest.mark.usefixtures("no_bucket")
    def test_of_none(self, raw):
        expect.error(raw.delete("/no-such-bucket"), "NoSuchBucket", BucketName="no-such-bucket")


class TestList:
    @pytest.fixture
    def own(self, make_server):
        """A server with five buckets, and things that are none."""
        server = make_server()
        for name in ("alpha", "beta-1", "beta-2", "beta-3", "gamma"):
            expect.ok(server.raw.put(f"/{name}"))
        (server.tree / "Not_A_Bucket").mkdir()
        (server.tree / "file-in-root").write_text("x")
        return server

    def names(self, document) -> list[str]:
        return [b["Name"] for b in document.child("Buckets").all("Bucket")]

    def test_all(self, own):
        document = expect.ok(own.raw.get("/")).xml
        assert document.name == "ListAllMyBucketsResult"
        assert self.names(document) == ["alpha", "beta-1", "beta-2", "beta-3", "gamma"]
        assert document.child("Owner").names() == ["ID"]
        shown = [b["BucketArn"] for b in document.child("Buckets").all("Bucket")]
        assert shown[:2] == ["arn:aws:s3:::alpha", "arn:aws:s3:::beta-1"]
        created = datetime.fromisoformat(document.child("Buckets").all("Bucket")[0]["CreationDate"])
        assert abs(datetime.now(UTC) - created) < timedelta(minutes=1)

    def test_a_bucket_made_by_hand(self, own):
        (own.tree / "by-hand").mkdir()
        assert "by-hand" in self.names(own.raw.get("/").xml)

    def test_prefix(self, own):
        document = expect.ok(own.raw.get("/", query={"prefix": "beta-"})).xml
        assert self.names(document) == ["beta-1", "beta-2", "beta-3"]
        assert document["Prefix"] == "beta-"
        bucket = document.child("Buckets").all("Bucket")[0]
        assert (bucket["BucketRegion"], bucket["BucketArn"]) == ("us-east-1", "arn:aws:s3:::beta-1")
        assert expect.ok(own.raw.get("/", query={"prefix": ""})).xml["Prefix"] == ""

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
    def test_paging(self, own, size):
        seen, query = [], {"max-buckets": str(size)}
        for _ in range(10):
            document = expect.ok(own.raw.get("/", query=query)).xml
            page = self.names(document)
            assert len(page) <= size
            seen += page
            token = document.get("ContinuationToken")
            if not token:
                break
            query["continuation-token"] = token
        assert seen == ["alpha", "beta-1", "beta-2", "beta-3", "gamma"]

    def test_region(self, own):
        for here in ("us-east-1", "US-East-1"):
            assert len(self.names(own.raw.get("/", query={"bucket-region": here}).xml)) == 5

    @pytest.mark.parametrize(
        "region, message",
        [
            (
                "eu-west-1",
                "Requests with bucket-region specified must be made to the corresponding regional endpoint",
            ),
            ("eu-east-1", "Argument value eu-east-1 is not a valid AWS Region"),
            ("", "Argument value  is not a valid AWS Region"),
        ],
    )
    def test_another_region(self, raw, region, message):
        response = raw.get("/", query={"bucket-region": region})
        expect.error(response, "InvalidArgument", message, ArgumentName="bucket-region", ArgumentValue=None)

    def test_an_empty_token_is_none(self, own):
        document = expect.ok(own.raw.get("/", query={"continuation-token": "", "max-buckets": "1"})).xml
        assert self.names(document) == ["alpha"]

    @pytest.mark.parametrize("value", ["0", "-1", "10001", "many"])
    def test_bad_size(self, raw, value):
        expect.error(
            raw.get("/", query={"max-buckets": value}),
            "InvalidArgument",
            re.compile("max-buckets"),
            ArgumentName="max-buckets",
            ArgumentValue=value,
        )

    def test_bad_token(self, raw):
        expect.error(
            raw.get("/", query={"continuation-token": "never given out"}),
            "InvalidArgument",
            "The continuation token provided is incorrect",
            ArgumentName="continuation-token",
            ArgumentValue=None,
        )

    def test_anonymous(self, raw):
        expect.error(raw.get("/", anonymous=True), "AccessDenied")


@pytest.mark.parametrize(
    "operation", ["get", "head", "put", "delete", "list", "copy", "upload", "delete-many"]
)
@pytest.mark.usefixtures("no_bucket")
def test_operations_in_no_bucket(raw, operation):
    """NoSuchBucket wins over whatever else would be wrong."""
    query: dict[str, str] = {}
    method, path, headers, body = "GET", "/no-such-bucket/key", {}, b""
    match operation:
        case "head":
            expect.head_error(raw.head(path), 404)
            return
        case "put":
            method, body = "PUT", b"x"
        case "delete":
            method = "DELETE"
        case "list":
            path, query = "/no-such-bucket", {"list-type": "2", "max-keys": "0"}
        case "copy":
            method, headers = "PUT", {"x-amz-copy-source": "no-such-bucket/other"}
        case "upload":
            method, query = "POST", {"uploads": ""}
        case "delete-many":
            method, path, query = "POST", "/no-such-bucket", {"delete": ""}
            body = element("Delete", element("Object", Key="a")).encode()
            headers = {"content-md5": content_md5(body)}
    response = raw.request(method, path, query=query, headers=headers, body=body)
    expect.error(response, "NoSuchBucket", BucketName="no-such-bucket")
