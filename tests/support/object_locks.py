"""Buckets with Object Lock, and the versions of their keys."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from support.bucket import Bucket, unique_bucket_name
from support.identities import client
from support.server import Server

PROTECTED = "Access Denied because object protected by object lock."
NOT_EMPTY = "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
ENABLED = {"ObjectLockEnabled": "Enabled"}


def lock_bucket(server: Server, name: str = "lock") -> Bucket:
    bucket = Bucket(server, unique_bucket_name(name))
    client(server, "s3").create_bucket(Bucket=bucket.name, ObjectLockEnabledForBucket=True)
    return bucket


def soon(**delta) -> datetime:
    return datetime.now(UTC) + timedelta(**delta)


def error_of(call, **arguments) -> dict:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    answer = caught.value.response
    return {**answer["Error"], "status": answer["ResponseMetadata"]["HTTPStatusCode"]}


def is_protected(call, **arguments) -> None:
    expected = {"Code": "AccessDenied", "Message": PROTECTED, "status": 403}
    assert error_of(call, **arguments) == expected


class Versions:
    """The versions of one key of a bucket, by boto3."""

    def __init__(self, s3, bucket: Bucket, key: str = "key") -> None:
        self.s3, self.name, self.key = s3, bucket.name, key
        self.at = {"Bucket": self.name, "Key": self.key}

    def put(self, body: bytes = b"text", **members) -> str:
        return self.s3.put_object(**self.at, Body=body, **members)["VersionId"]

    def retain(self, mode: str | None, until: datetime | None = None, **more) -> None:
        retention = {} if mode is None else {"Mode": mode, "RetainUntilDate": until}
        self.s3.put_object_retention(**self.at, Retention=retention, **more)

    def hold(self, status: str, **more) -> None:
        self.s3.put_object_legal_hold(**self.at, LegalHold={"Status": status}, **more)

    def head(self, **more) -> dict:
        head, get = self.s3.head_object(**self.at, **more), self.s3.get_object(**self.at, **more)
        get["Body"].close()
        names = ("ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")
        found = {name: head[name] for name in names if name in head}
        assert {name: get[name] for name in names if name in get} == found
        return found

    def delete(self, version: str | None, **more) -> dict:
        named = {} if version is None else {"VersionId": version}
        return self.s3.delete_object(**self.at, **named, **more)
