"""What the benchmarks share: signing, a server on a fresh directory, and what it used."""

import argparse
import contextlib
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import re
import shlex
import signal
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
ACCESS_KEY, SECRET_KEY, REGION = "SLIPWAYBENCH", "slipway-bench-secret", "us-east-1"
KEYS = (ACCESS_KEY, SECRET_KEY)
ENDS = (signal.SIGINT, signal.SIGTERM)


def take_ends() -> None:
    """Both become a KeyboardInterrupt, and all is removed on the way out, which a second one does not cut short."""

    def end_early(*_) -> None:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in ENDS:
        signal.signal(number, end_early)


def presign(
    method: str, host: str, path: str, keys: tuple[str, str], query: dict[str, str] | None = None
) -> str:
    """Path and query of a presigned request (SigV4, an hour, payload not signed)."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    query = {
        **(query or {}),
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys[0]}/{scope}",
        "X-Amz-Date": now,
        "X-Amz-Expires": "3600",
        "X-Amz-SignedHeaders": "host",
    }
    text = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="~")
    canonical = f"{method}\n{path}\n{text}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + keys[1]).encode()
    for part in (now[:8], REGION, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return f"{path}?{text}&X-Amz-Signature={hmac.digest(key, to_sign.encode(), 'sha256').hex()}"


def request(
    method: str, host: str, path: str, keys: tuple[str, str], body: bytes | None = None, *, tls: bool = False
) -> None:
    """Sends one request. No certificate is checked."""
    url = f"http{'s' * tls}://{host}{presign(method, host, path, keys)}"
    context = ssl._create_unverified_context() if tls else None
    with urllib.request.urlopen(
        urllib.request.Request(url, data=body, method=method), timeout=30, context=context
    ) as answer:
        answer.read()


class Client:
    """One connection to a server."""

    def __init__(self, host: str) -> None:
        self.host, self.connection = host, http.client.HTTPConnection(host, timeout=120)

    def send(
        self, method: str, path: str, query: dict[str, str] | None = None, body: bytes | None = None
    ) -> bytes:
        self.connection.request(method, presign(method, self.host, path, KEYS, query), body)
        response = self.connection.getresponse()
        text = response.read()
        if response.status // 100 != 2:
            sys.exit(f"{method} {path}: {response.status} {text[:500]!r}")
        return text


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_resident_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def environment() -> dict[str, str]:
    """Ours without what tests and scripts are told by SLIPWAY_..., which a server refuses."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}


def bench_environment() -> dict[str, str]:
    """With the keys for `slipway bench`, and nothing else that it would sign with."""
    without = {name: value for name, value in environment().items() if not name.startswith("AWS_")}
    return {**without, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


def bench_command(
    binary: str | os.PathLike,
    addresses: Sequence[str],
    words: Sequence[object],
    pids: Sequence[int] = (),
    report: str | os.PathLike | None = None,
) -> list[str | os.PathLike]:
    """`slipway bench` on servers with these processes, with its report there."""
    command = [binary, "bench", ",".join(f"http://{address}" for address in addresses), *map(str, words)]
    command += [part for pid in pids for part in ("--server-pid", str(pid))]
    return [*command, "--json", report] if report else command


def bench(*given, seconds: float | None = None) -> None:
    """Runs bench_command of `given`; ends this script if that fails."""
    command = bench_command(*given)
    done = subprocess.run(command, env=bench_environment(), capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))}: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def server(options: argparse.Namespace, work: pathlib.Path, *more: str, env: dict[str, str] | None = None):
    """Yields host and pid of a server on a fresh directory, with `more` options and variables."""
    binary = pathlib.Path(options.binary)
    if not binary.exists():
        sys.exit(f"{binary} does not exist: cargo build --release")
    where = "null:" if options.null else str(work / "data")
    command = [binary, "serve", "--listen", "127.0.0.1:0", "--durability", options.durability, *more, where]
    keys = {"SLIPWAY_ROOT_ACCESS_KEY": ACCESS_KEY, "SLIPWAY_ROOT_SECRET_KEY": SECRET_KEY}
    env = environment() | keys | (env or {})
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if found := re.search(r"endpoint\s+https?://(\S+)", line):
                yield found[1], process.pid
                break
        else:
            sys.exit("the server did not start")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
