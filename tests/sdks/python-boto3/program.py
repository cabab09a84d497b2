"""What boto3 presigns and sends. `run.py` says how it is called, and what it prints."""

import base64
import hashlib
import io
import json
import os
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET = os.environ["SDK_BUCKET"]
# "" leaves the choice to boto3.
SIGNATURE = os.environ.get("SDK_SIGNATURE")


def client(**options):
    return boto3.client(
        "s3",
        endpoint_url=os.environ["SDK_ENDPOINT"],
        aws_access_key_id=os.environ["SDK_ACCESS_KEY"],
        aws_secret_access_key=os.environ["SDK_SECRET_KEY"],
        region_name=os.environ["SDK_REGION"],
        config=Config(retries={"max_attempts": 0}, **options),
    )


def say(**line):
    print(json.dumps(line), flush=True)


def presign():
    s3 = client(**({"signature_version": SIGNATURE} if SIGNATURE else {}))

    def case(name, operation, method, key=None, **parameters):
        parameters = {"Bucket": BUCKET, "Key": key or f"presigned/{name}", **parameters}
        say(case=name, method=method, url=s3.generate_presigned_url(operation, parameters, 300))

    def put(name, **parameters):
        case(name, "put_object", "PUT", **parameters)

    put("put")
    put("put-odd-key", key=os.environ["SDK_ODD_KEY"])
    put("put-metadata", Metadata={"one": "1", "Two": "second"}, ContentType="text/x", CacheControl="no-cache")
    put("put-acl", ACL="private")
    if SIGNATURE == "s3v4":
        put("put-if-none-match", IfNoneMatch="*")
    else:
        say(case="put-if-none-match", skip="boto3 leaves conditions out of URLs of SigV2, and says nothing")
    put("put-sha256", ChecksumSHA256=os.environ["SDK_BODY_SHA256"])
    put("put-content-length", ContentLength=int(os.environ["SDK_BODY_LENGTH"]))
    put("put-tagging", Tagging="a=b")
    put("put-encrypted", ServerSideEncryption="AES256")
    case("get", "get_object", "GET")
    overrides = {"ResponseContentType": "text/other"}
    overrides["ResponseContentDisposition"] = 'attachment; filename="a b"'
    case("get-overrides", "get_object", "GET", key="presigned/get", **overrides)
    case("get-checksum", "get_object", "GET", ChecksumMode="ENABLED")
    case("get-missing", "get_object", "GET")
    case("head", "head_object", "HEAD")
    case("delete", "delete_object", "DELETE")
    case("create", "create_multipart_upload", "POST", key="presigned/upload")


def presign_upload(upload_id):
    s3 = client(**({"signature_version": SIGNATURE} if SIGNATURE else {}))
    common = {"Bucket": BUCKET, "Key": "presigned/upload", "UploadId": upload_id}

    def case(name, operation, method, **parameters):
        say(case=name, method=method, url=s3.generate_presigned_url(operation, {**common, **parameters}, 300))

    case("part-1", "upload_part", "PUT", PartNumber=1)
    case("part-2", "upload_part", "PUT", PartNumber=2)
    case("complete", "complete_multipart_upload", "POST")


def step(name, action):
    """Says how `action` went. What it returns is what is wrong, if anything is."""
    try:
        wrong = action()
    except Exception as error:
        wrong = repr(error)
    say(step=name, **({"wrong": str(wrong)} if wrong else {}))


def expect(right, got):
    return None if right else f"got {got!r}"


def refused(code, action):
    try:
        action()
    except ClientError as error:
        return expect(error.response["Error"]["Code"] == code, error)
    return "no error"


def made(action):
    """That there was no error is enough."""
    action()


def put(s3, key, **more):
    return s3.put_object(Bucket=BUCKET, Key=key, Body=b"kept", **more)


def write_and_read(s3):
    def get():
        got = s3.get_object(Bucket=BUCKET, Key="kept")["Body"].read()
        return expect(got == b"kept", got)

    def head():
        got = s3.head_object(Bucket=BUCKET, Key="kept")
        told = (got["ContentLength"], got["Metadata"], got["ContentType"])
        return expect(told == (4, {"one": "1"}, "text/x"), told)

    def listed():
        got = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix="k")["Contents"]]
        return expect(got == ["kept"], got)

    digest = base64.b64encode(hashlib.sha256(b"kept").digest()).decode()
    source = {"Bucket": BUCKET, "Key": "kept"}
    step("create-bucket", lambda: made(lambda: s3.create_bucket(Bucket=BUCKET)))
    step("put", lambda: made(lambda: put(s3, "kept", Metadata={"one": "1"}, ContentType="text/x")))
    step("put-sha256", lambda: made(lambda: put(s3, "checked", ChecksumSHA256=digest)))
    step("put-condition", lambda: refused("PreconditionFailed", lambda: put(s3, "kept", IfNoneMatch="*")))
    step("get", get)
    step("head", head)
    step("list", listed)
    step("copy", lambda: made(lambda: s3.copy_object(Bucket=BUCKET, Key="copied", CopySource=source)))


def upload_in_parts(s3):
    first, second = b"a" * (5 << 20), b"b" * 1000

    def multipart():
        upload = {"Bucket": BUCKET, "Key": "multi"}
        upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
        parts = []
        for number, body in enumerate([first, second], 1):
            got = s3.upload_part(**upload, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": got["ETag"]})
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})

    def uploader():
        config = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
        s3.upload_fileobj(io.BytesIO(first + second), BUCKET, "uploaded", Config=config)

    step("multipart", multipart)
    step("uploader", uploader)


def ask_for_the_rest(s3):
    """One call of each operation that the others leave out."""
    of = {"Bucket": BUCKET, "Key": "kept"}
    s3.head_bucket(Bucket=BUCKET)
    s3.list_buckets()
    s3.get_bucket_location(Bucket=BUCKET)
    s3.list_objects(Bucket=BUCKET)
    s3.list_object_versions(Bucket=BUCKET)
    s3.get_object(**of, Range="bytes=1-2")
    s3.get_object_attributes(**of, ObjectAttributes=["ETag", "ObjectSize", "Checksum"])
    upload = {"Bucket": BUCKET, "Key": "copied-part"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    source = {"Bucket": BUCKET, "Key": "multi"}
    s3.upload_part_copy(**upload, PartNumber=1, CopySource=source, CopySourceRange="bytes=0-99")
    parts = s3.list_parts(**upload)["Parts"]
    uploads = s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    s3.abort_multipart_upload(**upload)
    return expect(parts[0]["Size"] == 100 and len(uploads) == 1, (parts, uploads))


def delete(s3):
    def delete_many():
        for key in ("gone-1", "gone-2"):
            put(s3, key)
        objects = [{"Key": key} for key in ("gone-1", "gone-2")]
        got = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects})
        return expect(len(got.get("Deleted", [])) == 2, got)

    step("delete", lambda: made(lambda: (put(s3, "gone"), s3.delete_object(Bucket=BUCKET, Key="gone"))))
    step("delete-many", delete_many)
    step("missing", lambda: refused("NoSuchKey", lambda: s3.get_object(Bucket=BUCKET, Key="gone")))


def use():
    s3 = client()
    write_and_read(s3)
    upload_in_parts(s3)
    step("others", lambda: ask_for_the_rest(s3))
    delete(s3)


if __name__ == "__main__":
    {"presign": presign, "presign-upload": presign_upload, "use": use}[sys.argv[1]](*sys.argv[2:])
