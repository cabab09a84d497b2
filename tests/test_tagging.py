"""Tags of objects, uploads and buckets: what S3 answers, who may see and set them, and what other programs do to them.

The answers are those that were recorded at Amazon S3, unless a comment says otherwise.
"""

import os

import pytest
from botocore.exceptions import ClientError

from support import expect
from support.checksums import content_md5
from support.data import PART
from support.identities import allow, client, deny, master_key, new_user
from support.tools import run

MESSAGE_OF_HEADER = (
    "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name "
    "duplicates."
)


def tag_set(**tags: str) -> list[dict]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def document(*pairs: tuple[str, str]) -> bytes:
    tags = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in pairs)
    return f"<Tagging><TagSet>{tags}</TagSet></Tagging>".encode()


def put_raw(bucket, key: str | None, body: bytes, **options):
    headers = {"content-md5": content_md5(body)}
    return bucket.raw.put(bucket.path(key), body, query={"tagging": ""}, headers=headers, **options)


def error_of(call, **arguments) -> dict:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    answer = caught.value.response
    return {**answer["Error"], "status": answer["ResponseMetadata"]["HTTPStatusCode"]}


def status(answer: dict) -> int:
    return answer["ResponseMetadata"]["HTTPStatusCode"]


class Objects:
    """The tags of the keys of a bucket, by boto3."""

    def __init__(self, s3, bucket) -> None:
        self.s3, self.name = s3, bucket.name

    def get(self, key: str, **more) -> dict:
        answer = self.s3.get_object_tagging(Bucket=self.name, Key=key, **more)
        return {tag["Key"]: tag["Value"] for tag in answer["TagSet"]}

    def put(self, key: str, **tags: str) -> dict:
        return self.s3.put_object_tagging(Bucket=self.name, Key=key, Tagging={"TagSet": tag_set(**tags)})

    def delete(self, key: str) -> dict:
        return self.s3.delete_object_tagging(Bucket=self.name, Key=key)

    def count(self, key: str) -> int | None:
        head = self.s3.head_object(Bucket=self.name, Key=key).get("TagCount")
        assert self.s3.get_object(Bucket=self.name, Key=key).get("TagCount") == head
        return head


@pytest.fixture
def objects(s3, bucket) -> Objects:
    return Objects(s3, bucket)


class TestObjects:
    @pytest.mark.parametrize("key", ["key", "d/", "a/b/c"])
    def test_life(self, objects, bucket, key):
        bucket.put(key, b"text")
        before = bucket.head(key)
        assert (objects.get(key), objects.count(key)) == ({}, None)
        assert status(objects.put(key, tag1="tag1", tag2="")) == 200
        assert (objects.get(key), objects.count(key)) == ({"tag1": "tag1", "tag2": ""}, 2)
        assert status(objects.put(key, tag3="ä +=")) == 200
        assert (objects.get(key), objects.count(key)) == ({"tag3": "ä +="}, 1)
        now = bucket.head(key)
        for name in ("etag", "last-modified", "content-length", "content-type"):
            assert now.headers[name] == before.headers[name]
        assert objects.get(key, VersionId="null") == {"tag3": "ä +="}
        assert status(objects.delete(key)) == 204
        assert status(objects.delete(key)) == 204
        assert (objects.get(key), objects.count(key)) == ({}, None)
        objects.put(key, a="1")
        objects.put(key)
        assert objects.get(key) == {}

    def test_a_write_replaces_them(self, objects, bucket, s3):
        s3.put_object(Bucket=bucket.name, Key="key", Body=b"1", Tagging="tag1=tag1&tag2=tag2&tag=")
        assert (objects.get("key"), objects.count("key")) == ({"tag1": "tag1", "tag2": "tag2", "tag": ""}, 3)
        bucket.put("key", b"2")
        assert (objects.get("key"), objects.count("key")) == ({}, None)
        objects.put("key", a="1")
        bucket.raw.delete(bucket.path("key"))
        bucket.put("key", b"3")
        assert objects.get("key") == {}
        for text, tags in (
            ("wrongquery&wrongagain", {"wrongagain": "", "wrongquery": ""}),
            ("key1&&&key2", {"key1": "", "key2": ""}),
            ("a%20b=c+d", {"a b": "c d"}),
        ):
            s3.put_object(Bucket=bucket.name, Key="key", Body=b"", Tagging=text)
            assert objects.get("key") == tags

    @pytest.mark.parametrize("text", ["key1=val1&key1=val2", "key1=val1,key2=val2"])
    def test_headers_that_are_no_tags(self, s3, bucket, text):
        arguments = {"Bucket": bucket.name, "Key": "key", "Tagging": text}
        copy = {"CopySource": f"{bucket.name}/key", "TaggingDirective": "REPLACE"}
        for call, more in (
            (s3.put_object, {"Body": b"1"}),
            (s3.create_multipart_upload, {}),
            (s3.copy_object, copy),
        ):
            assert error_of(call, **arguments, **more) == {
                "Code": "InvalidArgument",
                "Message": MESSAGE_OF_HEADER,
                "ArgumentName": "x-amz-tagging",
                "ArgumentValue": text,
                "status": 400,
            }
        assert bucket.files() == []

    @pytest.mark.parametrize(
        "pairs, message, details",
        [
            (
                [("Key1", "1"), ("Key1", "1")],
                "Cannot provide multiple Tags with the same key",
                {"TagKey": "Key1"},
            ),
            ([("Key1,Key2", "1")], "The TagKey you have provided is invalid", {"TagKey": "Key1,Key2"}),
            (
                [("Key1", "1,2")],
                "The TagValue you have provided is invalid",
                {"TagKey": "Key1", "TagValue": "1,2"},
            ),
            ([("aws:a", "1")], "Your TagKey cannot be prefixed with aws:", {"TagKey": "aws:a"}),
        ],
    )
    def test_refused(self, bucket, objects, pairs, message, details):
        bucket.put("key", b"text")
        objects.put("key", a="1")
        expect.error(put_raw(bucket, "key", document(*pairs)), "InvalidTag", message, **details)
        assert objects.get("key") == {"a": "1"}

    def test_limits(self, bucket, objects):
        bucket.put("key", b"text")
        most = {f"{n}{'部' * 127}": "部" * 256 for n in range(10)}
        objects.put("key", **most)
        assert (objects.get("key"), objects.count("key")) == (most, 10)
        too_many = put_raw(bucket, "key", document(*[(str(n), "") for n in range(11)]))
        # Seen in reports of users of Amazon S3.
        expect.error(too_many, "BadRequest", "Object tags cannot be greater than 10")
        for pair in (("a" * 129, ""), ("a", "b" * 257), ("", "a"), ("𠀀" * 65, "")):
            assert put_raw(bucket, "key", document(pair)).code == "InvalidTag"
        assert objects.get("key") == most

    def test_bodies_that_are_no_tags(self, bucket):
        bucket.put("key", b"text")
        for body in (
            b"<Tagging><TagSet><Tag><Value>1</Value></Tag></TagSet></Tagging>",
            b"<Tagging><TagSet><Tag><Key>1</Key></Tag></TagSet></Tagging>",
            b"<Tags/>",
        ):
            for key in ("key", None):
                expect.error(put_raw(bucket, key, body), "MalformedXML")
        for key in ("key", None):
            without = bucket.raw.put(bucket.path(key), document(), query={"tagging": ""})
            message = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
            expect.error(without, "InvalidRequest", message)

    def test_missing(self, bucket, raw):
        read = bucket.get("none", query={"tagging": ""})
        expect.error(read, "NoSuchKey", Key=f"{bucket.name}/none")
        expect.error(put_raw(bucket, "none", document()), "NoSuchKey", Key="none")
        expect.error(bucket.raw.delete(bucket.path("none"), query={"tagging": ""}), "NoSuchKey", Key="none")
        assert bucket.files() == []
        for key in ("/key", ""):
            expect.error(raw.get(f"/no-such-bucket{key}", query={"tagging": ""}), "NoSuchBucket")
            expect.error(raw.delete(f"/no-such-bucket{key}", query={"tagging": ""}), "NoSuchBucket")

    @pytest.mark.parametrize("directive", [None, "COPY", "REPLACE"])
    def test_copies(self, s3, bucket, objects, directive):
        s3.put_object(Bucket=bucket.name, Key="source", Body=b"text", Tagging="key1=value1")
        more = {"TaggingDirective": directive} if directive else {}
        for given, replaced in (({"Tagging": "key2=value2"}, {"key2": "value2"}), ({}, {})):
            s3.copy_object(
                Bucket=bucket.name, Key="copy", CopySource=f"{bucket.name}/source", **given, **more
            )
            assert objects.get("copy") == (replaced if directive == "REPLACE" else {"key1": "value1"})
        assert objects.get("source") == {"key1": "value1"}
        wrong = bucket.raw.put(
            bucket.path("copy"),
            headers={"x-amz-copy-source": f"/{bucket.name}/source", "x-amz-tagging-directive": "FROB"},
        )
        expect.error(wrong, "InvalidArgument", "Unknown tagging directive.", ArgumentValue="FROB")

    def test_uploads(self, s3, bucket, objects):
        upload = s3.create_multipart_upload(Bucket=bucket.name, Key="key", Tagging="a=1&b=")["UploadId"]
        part = expect.ok(bucket.put_part("key", upload, 1, b"x" * PART)).etag
        expect.ok(bucket.complete("key", upload, [(1, part)]))
        assert (objects.get("key"), objects.count("key")) == ({"a": "1", "b": ""}, 2)

    def test_other_versions_are_refused(self, bucket, objects):
        bucket.put("key", b"text")
        for call in (bucket.get, lambda key, query: bucket.raw.delete(bucket.path(key), query=query)):
            answer = call("key", query={"tagging": "", "versionId": "abc"})
            assert answer.status in (400, 404), answer


class TestFiles:
    """What other programs do to files with tags."""

    def test_a_file_that_a_program_made(self, bucket, objects):
        bucket.file("page.html").write_text("<p>")
        etag = bucket.head("page.html").etag
        assert "foreign" in etag
        objects.put("page.html", a="1")
        assert (objects.get("page.html"), objects.count("page.html")) == ({"a": "1"}, 1)
        head = bucket.head("page.html")
        assert (head.etag, head.headers["content-type"]) == (etag, "text/html")
        run("rehash", bucket.file("page.html"))
        assert "foreign" not in bucket.head("page.html").etag
        assert objects.get("page.html") == {"a": "1"}

    def test_edits_keep_them(self, bucket, objects):
        bucket.put("key", b"text")
        objects.put("key", a="1")
        bucket.await_clock("key")
        bucket.file("key").write_text("other text")
        assert (objects.get("key"), objects.count("key")) == ({"a": "1"}, 1)
        objects.put("key", b="2")
        assert objects.get("key") == {"b": "2"}
        os.rename(bucket.file("key"), bucket.file("moved"))
        assert objects.get("moved") == {"b": "2"}
        # Another file is another object.
        bucket.file("new").write_text("text")
        os.rename(bucket.file("new"), bucket.file("moved"))
        assert objects.get("moved") == {}

    def test_fsck_and_stat(self, bucket, objects):
        bucket.put("key", b"text")
        bucket.file("foreign").write_text("text")
        for key in ("key", "foreign"):
            objects.put(key, team="red", b="")
            assert "team=red" in run("stat", bucket.file(key))
        run("fsck", bucket.server.tree)


class TestBuckets:
    def test_life(self, s3, bucket):
        name = bucket.name

        def put(**tags: str) -> int:
            return status(s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tag_set(**tags)}))

        def get() -> list[dict]:
            return s3.get_bucket_tagging(Bucket=name)["TagSet"]

        missing = {
            "Code": "NoSuchTagSet",
            "Message": "The TagSet does not exist",
            "BucketName": name,
            "status": 404,
        }
        assert error_of(s3.get_bucket_tagging, Bucket=name) == missing
        assert put(tag1="tag1", tag2="") == 204
        assert get() == tag_set(tag1="tag1", tag2="")
        assert put(tag3="tag3 & <ä>".replace("&", "+").replace("<", "").replace(">", "")) == 204
        assert get() == tag_set(tag3="tag3 + ä")
        for _ in range(2):
            assert status(s3.delete_bucket_tagging(Bucket=name)) == 204
        assert error_of(s3.get_bucket_tagging, Bucket=name) == missing
        assert put(**{f"k{n}": "v" for n in range(50)}) == 204
        assert len(get()) == 50
        assert put() == 204
        assert error_of(s3.get_bucket_tagging, Bucket=name) == missing

    @pytest.mark.parametrize(
        "pairs, code, message",
        [
            ([("Key1", "1"), ("Key1", "1")], "InvalidTag", "Cannot provide multiple Tags with the same key"),
            ([("Key1,Key2", "1")], "InvalidTag", "The TagKey you have provided is invalid"),
            ([("Key1", "1,2")], "InvalidTag", "The TagValue you have provided is invalid"),
            ([("aws:a", "1")], "InvalidTag", "System tags cannot be added/updated by requester"),
            ([(str(n), "") for n in range(51)], "BadRequest", "Bucket tag count cannot be greater than 50"),
        ],
    )
    def test_refused(self, bucket, pairs, code, message):
        expect.error(put_raw(bucket, None, document(*pairs)), code, message)
        expect.error(bucket.raw.get(bucket.path(), query={"tagging": ""}), "NoSuchTagSet")

    def test_of_a_new_bucket(self, s3, bucket):
        name = bucket.name
        s3.delete_bucket(Bucket=name)

        def create(tags: list[dict] | None) -> int:
            more = {} if tags is None else {"CreateBucketConfiguration": {"Tags": tags}}
            return status(s3.create_bucket(Bucket=name, **more))

        for tags, message in (
            (
                tag_set(**{"aws:a": "1"}),
                'User-defined tag keys can\'t start with "aws:". This prefix is reserved for system tags. Remove '
                '"aws:" from your tag keys and try again.',
            ),
            (tag_set(test="1,2"), "The TagValue you have provided is invalid"),
        ):
            configuration = {"Tags": tags}
            error = error_of(s3.create_bucket, Bucket=name, CreateBucketConfiguration=configuration)
            assert (error["Code"], error["Message"]) == ("InvalidTag", message)
        assert not bucket.tree.exists()
        assert create(tag_set(tag1="value1")) == 200
        assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == tag_set(tag1="value1")
        for tags in (tag_set(tag1="value1"), tag_set(tag2="value2")):
            configuration = {"Tags": tags}
            error = error_of(s3.create_bucket, Bucket=name, CreateBucketConfiguration=configuration)
            assert (error["Code"], error["status"]) == ("BucketAlreadyOwnedByYou", 409)
        for tags in (None, []):
            assert create(tags) == 200
        assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == tag_set(tag1="value1")


@pytest.fixture
def own(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def lab(own):
    """A bucket with an object that has the tag `team=red`, of root's."""
    s3 = client(own, "s3")
    s3.create_bucket(Bucket="lab")
    s3.put_object(Bucket="lab", Key="k", Body=b"text", Tagging="team=red")
    s3.put_object(Bucket="lab", Key="plain", Body=b"text")
    return s3


def is_denied(call, **arguments) -> bool:
    try:
        call(Bucket="lab", **arguments)
    except ClientError as error:
        # HEAD has no body.
        assert error.response["Error"]["Code"] in ("AccessDenied", "403"), error
        return True
    return False


class TestRights:
    def user(self, own, *statements, name: str = "ann"):
        return client(own, "s3", new_user(own, name, *statements, allow("s3:ListBucket")))

    def test_each_operation_has_its_action(self, own, lab):
        tagging = {"TagSet": tag_set(a="1")}
        calls = {
            "s3:GetObjectTagging": ("get_object_tagging", {}),
            "s3:PutObjectTagging": ("put_object_tagging", {"Tagging": tagging}),
            "s3:DeleteObjectTagging": ("delete_object_tagging", {}),
        }
        for action in calls:
            ann = self.user(own, allow(action), name=action.removeprefix("s3:"))
            for other, (call, more) in calls.items():
                assert is_denied(getattr(ann, call), Key="k", **more) == (other != action), (action, call)
        ann = self.user(own, allow("s3:PutBucketTagging", "arn:aws:s3:::lab"), name="buckets")
        assert is_denied(ann.get_bucket_tagging)
        assert not is_denied(ann.put_bucket_tagging, Tagging=tagging)
        assert not is_denied(ann.delete_bucket_tagging)

    def test_tags_of_writes_need_a_right(self, own, lab):
        ann = self.user(own, allow(["s3:PutObject", "s3:GetObject"]))
        source = {"CopySource": "lab/plain", "TaggingDirective": "REPLACE"}
        for call, more in (
            (ann.put_object, {"Body": b"1"}),
            (ann.create_multipart_upload, {}),
            (ann.copy_object, source),
        ):
            assert is_denied(call, Key="new", Tagging="a=1", **more)
            assert not is_denied(call, Key="new", **more)

    def test_a_copy_takes_no_tags_that_may_not_be_read_or_set(self, own, lab):
        copies = allow(["s3:PutObject", "s3:GetObject"])
        for number, (more, wanted) in enumerate(
            [
                ([], True),
                ([allow("s3:GetObjectTagging")], True),
                ([allow("s3:PutObjectTagging")], True),
                ([allow(["s3:GetObjectTagging", "s3:PutObjectTagging"])], False),
                # To a policy, the copied tags are those of the request.
                (
                    [
                        allow(["s3:GetObjectTagging", "s3:PutObjectTagging"]),
                        deny(
                            "s3:PutObjectTagging",
                            Condition={"StringEquals": {"s3:RequestObjectTag/team": "red"}},
                        ),
                    ],
                    True,
                ),
            ]
        ):
            ann = self.user(own, copies, *more, name=f"ann{number}")
            target = f"copy{number}"
            assert is_denied(ann.copy_object, Key=target, CopySource="lab/k") == wanted, number
            assert not is_denied(ann.copy_object, Key=target, CopySource="lab/plain")
            left = ann.copy_object(Bucket="lab", Key=target, CopySource="lab/k", TaggingDirective="REPLACE")
            assert status(left) == 200
            assert lab.get_object_tagging(Bucket="lab", Key=target)["TagSet"] == []

    def test_the_number_is_told_to_those_who_may_read_them(self, own, lab):
        reads = self.user(own, allow("s3:GetObject"))
        knows = self.user(own, allow(["s3:GetObject", "s3:GetObjectTagging"]), name="bob")
        for s3, count in ((reads, None), (knows, 1), (lab, 1)):
            assert s3.head_object(Bucket="lab", Key="k").get("TagCount") == count
            assert s3.get_object(Bucket="lab", Key="k").get("TagCount") == count

    def test_conditions_on_the_tags_of_a_request(self, own, lab):
        red = {"StringEquals": {"s3:RequestObjectTag/team": "red"}}
        keys = {"ForAllValues:StringEquals": {"s3:RequestObjectTagKeys": ["team", "size"]}}
        ann = self.user(own, allow("s3:PutObject"), allow("s3:PutObjectTagging", Condition={**red, **keys}))
        for text, tags, wanted in (
            ("team=red", tag_set(team="red"), False),
            ("team=red&size=1", tag_set(team="red", size="1"), False),
            ("team=blue", tag_set(team="blue"), True),
            ("team=red&other=1", tag_set(team="red", other="1"), True),
            ("size=1", tag_set(size="1"), True),
        ):
            assert is_denied(ann.put_object, Key="new", Body=b"1", Tagging=text) == wanted, text
            assert is_denied(ann.create_multipart_upload, Key="new", Tagging=text) == wanted, text
            assert is_denied(ann.put_object_tagging, Key="plain", Tagging={"TagSet": tags}) == wanted, text

    def test_conditions_on_the_tags_of_an_object(self, own, lab):
        red = {"StringEquals": {"s3:ExistingObjectTag/team": "red"}}
        everything = allow("s3:*")
        closed = deny(["s3:GetObject", "s3:*ObjectTagging", "s3:GetObjectAttributes"], Condition=red)
        ann = self.user(own, everything, closed)
        attributes = {"ObjectAttributes": ["ETag"]}
        calls = (
            (ann.get_object, {}),
            (ann.head_object, {}),
            (ann.get_object_tagging, {}),
            (ann.get_object_attributes, attributes),
            # Neither taking the tag away, nor setting another, opens the object.
            (ann.delete_object_tagging, {}),
            (ann.put_object_tagging, {"Tagging": {"TagSet": []}}),
        )
        for call, more in calls:
            assert is_denied(call, Key="k", **more), call
            assert not is_denied(call, Key="plain", **more), call
        # Nor do copies of the object, or of parts of it.
        for more in ({}, {"TaggingDirective": "REPLACE"}):
            assert is_denied(ann.copy_object, Key="mine", CopySource="lab/k", **more)
        upload = ann.create_multipart_upload(Bucket="lab", Key="mine")["UploadId"]
        part = {"UploadId": upload, "PartNumber": 1}
        assert is_denied(ann.upload_part_copy, Key="mine", CopySource="lab/k", **part)
        assert not is_denied(ann.upload_part_copy, Key="mine", CopySource="lab/plain", **part)
        assert lab.get_object_tagging(Bucket="lab", Key="k")["TagSet"] == tag_set(team="red")
        # A policy that allows by a tag.
        bob = self.user(own, allow("s3:GetObject", Condition=red), name="bob")
        assert not is_denied(bob.get_object, Key="k")
        assert is_denied(bob.get_object, Key="plain")
        lab.put_object_tagging(Bucket="lab", Key="plain", Tagging={"TagSet": tag_set(team="red")})
        assert not is_denied(bob.get_object, Key="plain")
        lab.delete_object_tagging(Bucket="lab", Key="plain")
        assert is_denied(bob.get_object, Key="plain")
