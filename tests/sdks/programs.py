"""The SDKs, and how their programs are made ready and called."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.server import ACCESS_KEY, REPOSITORY, SECRET_KEY

HERE = Path(__file__).resolve().parent
PLACE = REPOSITORY / "target" / "sdks"
PROGRAM_SECONDS = 180
INSTALL_SECONDS = 1800

Command = list[str | Path]


class Failed(Exception):
    """A command did not do what it should; its last words."""


class Unavailable(Exception):
    """An SDK can't be had here; why."""


def run(command: Command, where: Path, seconds: float, env: Mapping[str, str] | None = None) -> str:
    """What a command prints on its standard output."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=where,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{name} was not done after {seconds} s") from None
    if done.returncode:
        words = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        raise Failed(f"{name}: exit status {done.returncode}: {' | '.join(words[-8:])[-1500:]}")
    return done.stdout.decode()


def install(directory: str, *commands: Command) -> Path:
    """Copies a program to below `target`, and builds it there. Where it is."""
    tool = str(commands[0][0])
    if not shutil.which(tool):
        raise Unavailable(f"there is no {tool} here")
    place = PLACE / directory
    shutil.copytree(HERE / directory, place, dirs_exist_ok=True)
    for command in commands:
        try:
            run(command, place, INSTALL_SECONDS)
        except Failed as failure:
            raise Unavailable(str(failure)) from None
    return place


def javascript(directory: str) -> Command:
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    return ["node", "--no-warnings", install(directory, ["npm", "install", *quiet]) / "program.js"]


def go(directory: str) -> Command:
    place = install(directory, ["go", "mod", "tidy"], ["go", "build", "-o", "program", "."])
    return [place / "program"]


def java(directory: str) -> Command:
    jars = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=target/jars"]
    place = install(directory, ["mvn", "-q", "-B", "package", *jars])
    return ["java", "-cp", f"{place}/target/classes:{place}/target/jars/*", "Program"]


def rust(directory: str) -> Command:
    place = install(directory, ["cargo", "build", "--quiet"])
    return [place / "target" / "debug" / "program"]


def python(directory: str) -> Command:
    """The suite's own packages."""
    return [sys.executable, HERE / directory / "program.py"]


@dataclass(frozen=True)
class Sdk:
    """`directory` has its program, which `make` makes ready; `env` is what else the program is told."""

    directory: str
    make: Callable[[str], Command]
    env: Mapping[str, str] = field(default_factory=dict)
    # False where the program's other requests are another SDK's.
    uses: bool = True


SDKS = {
    "js": Sdk("js", javascript),
    "js2": Sdk("js2", javascript, uses=False),
    "js2-sigv2": Sdk("js2", javascript, {"SDK_SIGNATURE": "v2"}, uses=False),
    "go": Sdk("go", go),
    "java": Sdk("java", java),
    "boto3": Sdk("python-boto3", python, {"SDK_SIGNATURE": "s3v4"}),
    "boto3-sigv2": Sdk("python-boto3", python, {"SDK_SIGNATURE": "s3"}, uses=False),
    "minio-go": Sdk("go-minio", go),
    "minio-py": Sdk("python-minio", python),
    "rust": Sdk("rust", rust),
}


@dataclass(frozen=True)
class Program:
    """An SDK's program, ready to be called."""

    sdk: Sdk
    command: Command
    endpoint: str

    def call(self, bucket: str, facts: Mapping[str, str], *arguments: str) -> list[dict]:
        """The lines that it prints. `facts` are what the cases are made of."""
        env = {
            "SDK_ENDPOINT": self.endpoint,
            "SDK_BUCKET": bucket,
            "SDK_ACCESS_KEY": ACCESS_KEY,
            "SDK_SECRET_KEY": SECRET_KEY,
            "SDK_REGION": "us-east-1",
            **facts,
            **self.sdk.env,
        }
        printed = run([*self.command, *arguments], PLACE, PROGRAM_SECONDS, env)
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
