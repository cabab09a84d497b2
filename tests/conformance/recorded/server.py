"""The server under test: where it is, how its names resolve, clients for it, and cleaning up after a test."""

import os
import socket
from urllib.parse import urlparse

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = os.environ["RECORDED_ENDPOINT"].rstrip("/")
ACCESS_KEY = os.environ["RECORDED_ACCESS_KEY"]
SECRET_KEY = os.environ["RECORDED_SECRET_KEY"]
ACCOUNT = os.environ.get("RECORDED_ACCOUNT") or "482915637204"
DOMAIN = os.environ.get("RECORDED_DOMAIN")
# The services that are asked; a test that needs another one is skipped.
SERVICES = os.environ.get("RECORDED_SERVICES", "s3").split()
# The region that the answers were recorded in. Tests of a second one are skipped.
REGION = "us-east-1"

_PARTS = urlparse(ENDPOINT)
HOST, PORT = _PARTS.hostname, _PARTS.port
# The endpoint by name, below which buckets are hosts.
NAMED_ENDPOINT = f"{_PARTS.scheme}://{DOMAIN}:{PORT}" if DOMAIN else ENDPOINT


def is_ours(host: str | None) -> bool:
    """Whether a host name leads to the server under test."""
    return host == HOST or bool(DOMAIN and host and (host == DOMAIN or host.endswith("." + DOMAIN)))


def resolve_names() -> None:
    """From now on every name below the domain has the server's address, in this process."""
    getaddrinfo = socket.getaddrinfo

    def resolve(host, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        return getaddrinfo(HOST if isinstance(name, str) and is_ours(name) else host, *args, **kwargs)

    socket.getaddrinfo = resolve


def bucket_url_vhost(bucket: str) -> str:
    """The URL of a bucket as a host."""
    if not DOMAIN:
        pytest.skip("needs virtual hosts")
    return f"{_PARTS.scheme}://{bucket}.{DOMAIN}:{PORT}"


def check_region(region: str | None) -> None:
    """Skips the test if it asks for another region."""
    if region and region != REGION:
        pytest.skip("needs a second region")


def client(service: str = "s3", *, region_name=None, endpoint_url=None, config=None, **credentials):
    """A boto3 client of the server. Without credentials it has those of the environment."""
    if service not in SERVICES:
        pytest.skip(f"needs {service}")
    check_region(region_name)
    style = ((config and config.s3) or {}).get("addressing_style")
    if style == "virtual" and not DOMAIN:
        pytest.skip("needs virtual hosts")
    credentials.setdefault("aws_access_key_id", ACCESS_KEY)
    credentials.setdefault("aws_secret_access_key", SECRET_KEY)
    url = endpoint_url or (NAMED_ENDPOINT if style == "virtual" else ENDPOINT)
    return boto3.client(service, region_name=REGION, endpoint_url=url, config=config, **credentials)


def become_user() -> None:
    """From now on an administrator asks, as when AWS was asked: root may not assume roles."""
    global ACCESS_KEY, SECRET_KEY
    iam, name = client("iam"), "recorder"
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
    key = iam.create_access_key(UserName=name)["AccessKey"]
    ACCESS_KEY, SECRET_KEY = key["AccessKeyId"], key["SecretAccessKey"]


def answers() -> bool:
    """Whether the server still takes connections."""
    try:
        socket.create_connection((HOST, PORT), 5).close()
    except OSError:
        return False
    return True


class Janitor:
    """Removes the buckets that were not there when it came."""

    def __init__(self) -> None:
        patient = Config(retries={"max_attempts": 0}, connect_timeout=5, read_timeout=20)
        self._client = client(config=patient)
        self._known = set(self._buckets())

    def _buckets(self) -> list[str]:
        return [bucket["Name"] for bucket in self._client.list_buckets().get("Buckets", [])]

    def clean(self) -> None:
        """What can't be removed stays: it is in the way of no other test, since names are random."""
        try:
            left = [name for name in self._buckets() if name not in self._known]
        except Exception:
            return
        for bucket in left:
            for step in (self.empty, lambda name: self._client.delete_bucket(Bucket=name)):
                try:
                    step(bucket)
                except Exception as error:
                    print(f"{bucket} stays: {error}")

    def empty(self, bucket: str) -> None:
        """Removes uploads, versions and objects."""
        s3 = self._client
        for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
            s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
                self._delete(bucket, page.get("Versions", []) + page.get("DeleteMarkers", []))
        except ClientError:
            # A server without versions may refuse to list them.
            pass
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            self._delete(bucket, page.get("Contents", []))

    def _delete(self, bucket: str, listed: list[dict]) -> None:
        objects = [{k: entry[k] for k in ("Key", "VersionId") if k in entry} for entry in listed]
        if objects:
            self._client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
