"""The command `slipway admin`, and what it prints."""

import json
import os
import subprocess
from pathlib import Path

from botocore.exceptions import ClientError

from support.server import binary

REFUSED, FAILED = 1, 2


def profile(name: str, key: tuple) -> str:
    return f"[{name}]\naws_access_key_id = {key[0]}\naws_secret_access_key = {key[1]}\n"


class Admin:
    """Runs the command with a home, and nothing else of AWS in the environment."""

    def __init__(self, home: Path, **environment: str) -> None:
        mine = {
            name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SLIPWAY_"))
        }
        self.environment = mine | {"HOME": str(home)} | environment

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [binary(), "admin", *words],
            input=given,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=60,
            check=False,
        )

    def __call__(self, *words: str, given: str = "") -> str:
        done = self.run(*words, given=given)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *words: str, given: str = ""):
        return json.loads(self("--json", *words, given=given))

    def refused(self, *words: str, given: str = "", status: int = REFUSED) -> str:
        done = self.run(*words, given=given)
        assert (done.returncode, done.stdout) == (status, ""), done
        return done.stderr.removeprefix("slipway: ").rstrip()


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def facts(text: str) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return {name: value.strip() for name, value in pairs}


def key_in(made: dict) -> tuple:
    return (made["AccessKeyId"], made["SecretAccessKey"], None)


def code_or_none(call, **members) -> str | None:
    try:
        call(**members)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None
