"""boto3 clients, and the programs that are run as other people run them."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import boto3
from botocore.config import Config

from . import codes
from .server import ACCESS_KEY, REPOSITORY, SECRET_KEY, Server


def boto3_client(
    server: Server,
    *,
    style: str = "path",
    endpoint: str | None = None,
    region: str = "us-east-1",
    access_key: str = ACCESS_KEY,
    secret_key: str = SECRET_KEY,
    verify: str | None = None,
    **config,
):
    """An S3 client without retries, whose error codes are recorded."""
    session = boto3.session.Session()
    client = session.client(
        "s3",
        endpoint_url=endpoint or server.endpoint,
        region_name=region,
        verify=verify,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=Config(
            **{
                "s3": {"addressing_style": style},
                "retries": {"total_max_attempts": 1},
                "connect_timeout": 5,
                "read_timeout": 60,
                **config,
            }
        ),
    )
    codes.record_of(client)
    return client


def environment(server: Server, home: Path, **more: str) -> dict[str, str]:
    """What AWS-like programs read their keys from, and nothing else of ours."""
    return {
        "PATH": f"{REPOSITORY / '.venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_PAGER": "",
        **more,
    }


class Program:
    """A command line client with its environment."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.command, self.env, self.cwd = list(command), dict(env), cwd

    def run(
        self, *arguments: str | Path, status: int = 0, stdin: bytes | None = None, timeout: float = 300
    ) -> str:
        """What it prints, both ways; it must end with `status`."""
        line = [*self.command, *map(str, arguments)]
        done = subprocess.run(
            line,
            env=self.env,
            cwd=self.cwd,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        assert done.returncode == status, f"{line} ended with {done.returncode}:\n{output}"
        for code in re.findall(r"\b(?:\(|<Code>)(\w+)(?:\)|</Code>)", output):
            codes.saw(code)
        return output

    def bytes(self, *arguments: str | Path, timeout: float = 300) -> bytes:
        """Its standard output as it is."""
        line = [*self.command, *map(str, arguments)]
        done = subprocess.run(
            line, env=self.env, cwd=self.cwd, capture_output=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, (
            f"{line} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}"
        )
        return done.stdout
