"""Clients of IAM, STS and S3, for whoever a test asks as."""

import json
import subprocess
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from support import codes
from support.server import ACCESS_KEY, SECRET_KEY, Server, binary

ROOT = (ACCESS_KEY, SECRET_KEY, None)


def master_key(folder: Path) -> Path:
    """A file with a new master key, without which no access keys are made."""
    path = folder / "master-key"
    subprocess.run([str(binary()), "master-key", "new", str(path)], check=True, capture_output=True)
    return path


def client(server: Server, service: str, key: tuple = ROOT, **config):
    """A client of a service that signs with a key: id, secret and token or none. Error codes of S3 are recorded."""
    access_key, secret_key, token = key
    retries = {"max_attempts": 0}
    made = boto3.client(
        service,
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        aws_session_token=token,
        config=Config(retries=retries, s3={"addressing_style": "path"}, **config),
    )
    codes.record_of(made)
    return made


def policy(*statements: dict) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def allow(actions, resource="*", **rest) -> dict:
    return {"Effect": "Allow", "Action": actions, "Resource": resource, **rest}


def deny(actions, resource="*", **rest) -> dict:
    return {"Effect": "Deny", "Action": actions, "Resource": resource, **rest}


def new_key(server: Server, user: str) -> tuple:
    """A new access key of a user."""
    key = client(server, "iam").create_access_key(UserName=user)["AccessKey"]
    return (key["AccessKeyId"], key["SecretAccessKey"], None)


def new_user(server: Server, user: str, *statements: dict) -> tuple:
    """A new user with an inline policy of these statements; returns its access key."""
    iam = client(server, "iam")
    iam.create_user(UserName=user)
    if statements:
        iam.put_user_policy(UserName=user, PolicyName="own", PolicyDocument=policy(*statements))
    return new_key(server, user)


def key_of(credentials: dict) -> tuple:
    """The key of a session that STS gave out."""
    return (credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"])


def error_of(call, *arguments, **members) -> tuple[str, int, str]:
    """The code, status and message of the error that a call must end with."""
    try:
        answer = call(*arguments, **members)
    except ClientError as error:
        response = error.response
        return (
            response["Error"]["Code"],
            response["ResponseMetadata"]["HTTPStatusCode"],
            response["Error"]["Message"],
        )
    raise AssertionError(f"no error: {answer}")


def code_of(call, *arguments, **members) -> str:
    return error_of(call, *arguments, **members)[0]
