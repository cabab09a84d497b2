"""What minio-py presigns and sends. `run.py` says how it is called, and what it prints."""

import io
import json
import os
import sys
from datetime import timedelta
from urllib.parse import urlsplit

from minio import Minio
from minio.commonconfig import ComposeSource, CopySource
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

BUCKET = os.environ["SDK_BUCKET"]
client = Minio(
    urlsplit(os.environ["SDK_ENDPOINT"]).netloc,
    access_key=os.environ["SDK_ACCESS_KEY"],
    secret_key=os.environ["SDK_SECRET_KEY"],
    region=os.environ["SDK_REGION"],
    secure=False,
)


def say(**line):
    print(json.dumps(line), flush=True)


def presigned(name, method, key=None, responses=None, **parameters):
    """Hyphens of parameters are underscores here."""
    url = client.get_presigned_url(
        method,
        BUCKET,
        key or f"presigned/{name}",
        expires=timedelta(minutes=5),
        response_headers=responses,
        extra_query_params={name.replace("_", "-"): value for name, value in parameters.items()} or None,
    )
    say(case=name, method=method, url=url)


def presign():
    """It presigns no headers, but any parameter."""
    presigned("put", "PUT")
    presigned("put-odd-key", "PUT", key=os.environ["SDK_ODD_KEY"])
    presigned("put-metadata", "PUT", x_amz_meta_one="1", x_amz_meta_two="second")
    presigned("put-acl", "PUT", x_amz_acl="private")
    presigned("put-if-none-match", "PUT", If_None_Match="*")
    say(case="put-content-length", skip="it presigns no headers")
    presigned("put-sha256", "PUT", x_amz_checksum_sha256=os.environ["SDK_BODY_SHA256"])
    presigned("put-tagging", "PUT", x_amz_tagging="a=b")
    presigned("put-encrypted", "PUT", x_amz_server_side_encryption="AES256")
    presigned("get", "GET")
    overrides = {
        "response-content-type": "text/other",
        "response-content-disposition": 'attachment; filename="a b"',
    }
    presigned("get-overrides", "GET", key="presigned/get", responses=overrides)
    presigned("get-checksum", "GET", x_amz_checksum_mode="ENABLED")
    presigned("get-missing", "GET")
    presigned("head", "HEAD")
    presigned("delete", "DELETE")
    presigned("create", "POST", key="presigned/upload", uploads="")


def presign_upload(upload_id):
    for number in ("1", "2"):
        parameters = {"partNumber": number, "uploadId": upload_id}
        presigned(f"part-{number}", "PUT", key="presigned/upload", **parameters)
    presigned("complete", "POST", key="presigned/upload", uploadId=upload_id)


def put(key, data=b"kept", **more):
    client.put_object(BUCKET, key, io.BytesIO(data), len(data), **more)


def expect(right, got):
    return None if right else f"got {got!r}"


def get(key):
    answer = client.get_object(BUCKET, key)
    try:
        return answer.read()
    finally:
        answer.close()
        answer.release_conn()


def put_kept():
    put("kept", metadata={"one": "1"}, content_type="text/x")


def get_kept():
    got = get("kept")
    return expect(got == b"kept", got)


def head():
    got = client.stat_object(BUCKET, "kept")
    right = got.size == 4 and got.metadata["x-amz-meta-one"] == "1" and got.content_type == "text/x"
    return expect(right, got.metadata)


def listed():
    got = [item.object_name for item in client.list_objects(BUCKET, prefix="k")]
    return expect(got == ["kept"], got)


def copy():
    client.copy_object(BUCKET, "copied", CopySource(BUCKET, "kept"))


def multipart():
    put("multi", b"a" * (5 << 20) + b"b" * 1000, part_size=5 << 20)


def uploader():
    """From a stream whose length is not known."""
    body = io.BytesIO(b"a" * (5 << 20) + b"b" * 1000)
    client.put_object(BUCKET, "uploaded", body, -1, part_size=5 << 20)


def others():
    assert client.bucket_exists(BUCKET)
    client.list_buckets()
    client.get_object(BUCKET, "kept", offset=1, length=2).close()
    client.compose_object(BUCKET, "gone", [ComposeSource(BUCKET, "multi"), ComposeSource(BUCKET, "kept")])
    size = client.stat_object(BUCKET, "gone").size
    client.remove_object(BUCKET, "gone")
    return expect(size == (5 << 20) + 1004, size)


def delete():
    put("gone")
    client.remove_object(BUCKET, "gone")


def delete_many():
    for key in ("gone-1", "gone-2"):
        put(key)
    problems = list(client.remove_objects(BUCKET, [DeleteObject("gone-1"), DeleteObject("gone-2")]))
    return expect(not problems, problems)


def missing():
    try:
        get("gone")
    except S3Error as error:
        return expect(error.code == "NoSuchKey", error)
    return "no error"


def step(name, action):
    try:
        wrong = action()
    except Exception as error:
        wrong = repr(error)
    say(step=name, **({"wrong": wrong} if wrong else {}))


def use():
    step("create-bucket", lambda: client.make_bucket(BUCKET))
    step("put", put_kept)
    say(step="put-sha256", skip="it computes no checksums")
    say(step="put-condition", skip="it has no conditions")
    for name, action in {
        "get": get_kept,
        "head": head,
        "list": listed,
        "copy": copy,
        "multipart": multipart,
        "uploader": uploader,
        "others": others,
        "delete": delete,
        "delete-many": delete_many,
        "missing": missing,
    }.items():
        step(name, action)


if __name__ == "__main__":
    {"presign": presign, "presign-upload": presign_upload, "use": use}[sys.argv[1]](*sys.argv[2:])
