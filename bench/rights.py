#!/usr/bin/env python3
"""What the policies of a user cost: CPU time of a signed GET of 1 KiB by a user, above that of root's.

The user has 10 managed policies of 3 statements each, of which the last allows the GET; the bucket has a policy of 20
statements that do not decide, half of them with conditions. Requests of both come in turns, in the same run on the
same connections: what the machine does besides falls on both.

    cargo build --release && bench/rights.py
    bench/rights.py --impersonate       # and of --impersonate, above root's at a server that keeps no objects in memory
    bench/rights.py --audit-log         # what a line of the audit log costs: the user at a server with one and without

The figure is the median over the rounds of the difference within a round, in microseconds of the server's threads.
Rounds are short and many: with 20 of 4000 requests, the figure varied by 2 us on a shared machine, now by 0.5 us."""

import argparse
import datetime
import hashlib
import hmac
import json
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from common import KEYS, REGION, ROOT, request, server
from costs import cpu_ns

POLICIES, STATEMENTS, BUCKET_STATEMENTS = 10, 3, 20
# The user, with a group of supplementary ones.
IDENTITY = "12101:12101:12100,12200,12201,12202,12203"
CONNECTIONS = 8


def signed(
    method: str, host: str, path: str, keys: tuple[str, str], service: str, body: bytes = b"", query: str = ""
) -> dict[str, str]:
    """The headers of a request that is signed in them (SigV4)."""
    now, digest = f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}", hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
    names, scope = ";".join(headers), f"{now[:8]}/{REGION}/{service}/aws4_request"
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
    to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + keys[1]).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers | {"authorization": authorization}


def act(host: str, action: str, **parameters: str) -> str:
    """An action of IAM by root; returns the answer's XML."""
    body = urllib.parse.urlencode({"Action": action, "Version": "2010-05-08", **parameters}).encode()
    headers = signed("POST", host, "/", KEYS, "iam", body)
    headers["content-type"] = "application/x-www-form-urlencoded"
    asked = urllib.request.Request(f"http://{host}/", data=body, headers=headers, method="POST")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return answer.read().decode()


def statement(sid: str, effect: str, actions: list[str], resource: str, **more) -> dict:
    return {
        "Sid": sid,
        "Effect": effect,
        "Action": actions,
        "Resource": [f"arn:aws:s3:::{resource}", f"arn:aws:s3:::{resource}/*"],
        **more,
    }


def document(statements: list[dict]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def managed(number: int) -> str:
    """A policy about other buckets; the last one is also about the one that is read."""
    buckets = [f"team-{number}-{index}" for index in range(STATEMENTS)]
    if number == POLICIES - 1:
        buckets[-1] = "bench"
    actions = ["s3:GetObject", "s3:PutObject", "s3:ListBucket"]
    return document([statement(f"S{at}", "Allow", actions, bucket) for at, bucket in enumerate(buckets)])


def of_bucket() -> str:
    """A policy that says something to others, and of other keys and networks."""
    found = []
    for number in range(BUCKET_STATEMENTS):
        conditions = {
            0: {},
            1: {"Condition": {"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "127.0.0.0/8"]}}},
        }
        effect, principal = [("Allow", {"AWS": f"11112222{3000 + number}"}), ("Deny", "*")][number % 2]
        resource = f"bench/private-{number}" if number % 4 < 2 else "bench"
        one = statement(f"B{number}", effect, ["s3:GetObject", "s3:PutObject"], resource)
        one["Resource"] = one["Resource"][1:]
        found.append(one | {"Principal": principal} | conditions[number % 2])
    return document(found)


def prepare(host: str) -> tuple[str, str]:
    """The bucket, its object and the user, whose keys are returned."""
    request("PUT", host, "/bench", KEYS)
    request("PUT", host, "/bench/1KiB", KEYS, b"x" * 1024)
    act(host, "CreateUser", UserName="ann")
    for number in range(POLICIES):
        made = act(host, "CreatePolicy", PolicyName=f"p{number}", PolicyDocument=managed(number))
        act(host, "AttachUserPolicy", UserName="ann", PolicyArn=re.search("<Arn>(.*?)</Arn>", made)[1])
    body = of_bucket().encode()
    put = urllib.request.Request(f"http://{host}/bench?policy=", data=body, method="PUT")
    for name, value in signed("PUT", host, "/bench", KEYS, "s3", body, "policy=").items():
        put.add_header(name, value)
    urllib.request.urlopen(put, timeout=30).close()
    made = act(host, "CreateAccessKey", UserName="ann")
    return tuple(re.search(f"<{name}>(.*?)</{name}>", made)[1] for name in ("AccessKeyId", "SecretAccessKey"))


class Gets:
    """Connections on which GETs go in bursts, signed once with a key."""

    def __init__(self, host: str) -> None:
        address, port = host.split(":")
        self.host = host
        self.sockets = [socket.create_connection((address, int(port)), 60) for _ in range(CONNECTIONS)]

    def request(self, keys: tuple[str, str]) -> bytes:
        headers = signed("GET", self.host, "/bench/1KiB", keys, "s3")
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"GET /bench/1KiB HTTP/1.1\r\n{lines}\r\n".encode()

    def send(self, asked: bytes, count: int) -> None:
        for _ in range(count // CONNECTIONS):
            for connection in self.sockets:
                connection.sendall(asked)
            for connection in self.sockets:
                answer = b""
                while not answer.endswith(b"x" * 1024):
                    answer += (piece := connection.recv(65536))
                    if not piece or not answer.startswith(b"HTTP/1.1 200 "):
                        raise ConnectionError(answer[:300].decode(errors="replace"))


class Side:
    """Whose requests are measured, at which server."""

    def __init__(self, name: str, host: str, pid: int, keys: tuple[str, str]) -> None:
        self.name, self.pid, self.keys = name, pid, keys
        self.gets, self.found = Gets(host), []

    def round(self, count: int, *, counts: bool) -> None:
        asked = self.gets.request(self.keys)
        self.gets.send(asked, count // 10)
        before = cpu_ns(self.pid)
        self.gets.send(asked, count)
        time.sleep(0.05)
        if counts:
            self.found.append((cpu_ns(self.pid) - before) / 1e3 / count)


def measure(options: argparse.Namespace, sides: list[Side]) -> None:
    for number in range(options.rounds + 1):
        # Each goes first in half of the rounds.
        for side in sides[:: 1 if number % 2 else -1]:
            side.round(options.count, counts=number > 0)


def of_policies(options: argparse.Namespace, work: pathlib.Path, key: tuple[str, str]) -> list[Side]:
    """Root and the user, at one server."""
    with server(options, work, *key) as (host, pid):
        user = prepare(host)
        sides = [Side("root", host, pid, KEYS), Side("user", host, pid, user)]
        measure(options, sides)
        return sides


def of_impersonation(options: argparse.Namespace, work: pathlib.Path, key: tuple[str, str]) -> list[Side]:
    """Root at a server that keeps no objects in memory, and the user at one that acts as its users."""
    for name in ("plain", "acting"):
        (work / name / "data").mkdir(parents=True)
        (work / name / "data").chmod(0o755)
    root = {"SLIPWAY_ROOT_UID": "12100", "SLIPWAY_ROOT_GID": "12100"}
    with (
        server(options, work / "plain", *key, "--object-cache", "0") as (host, pid),
        server(options, work / "acting", *key, "--impersonate", env=root) as (acting, acting_pid),
    ):
        prepare(host)
        user = prepare(acting)
        act(acting, "SetPosixIdentity", Version="slipway-1", UserName="ann", Identity=IDENTITY)
        sides = [Side("root", host, pid, KEYS), Side("user", acting, acting_pid, user)]
        measure(options, sides)
        return sides


def of_audit_log(options: argparse.Namespace, work: pathlib.Path, key: tuple[str, str]) -> list[Side]:
    """The user at a server without an audit log, and at one that writes a line for each GET."""
    for name in ("plain", "noted"):
        (work / name / "data").mkdir(parents=True)
    log = work / "audit.log"
    with (
        server(options, work / "plain", *key) as (host, pid),
        server(options, work / "noted", *key, "--audit-log", str(log)) as (noted, noted_pid),
    ):
        sides = [Side("plain", host, pid, prepare(host)), Side("noted", noted, noted_pid, prepare(noted))]
        measure(options, sides)
    # A dropped line would cost less than one that is written.
    bursts = [count // CONNECTIONS * CONNECTIONS for count in (options.count // 10, options.count)]
    wanted, found = (options.rounds + 1) * sum(bursts), log.read_text().count('"operation":"GetObject"')
    if found != wanted:
        raise SystemExit(f"the audit log has {found} lines of {wanted} GETs")
    return sides


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--binary", default=str(ROOT / "target/release/slipway"))
    parser.add_argument("--count", type=int, default=800, help="requests of each in a round")
    parser.add_argument("--rounds", type=int, default=150)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--impersonate", action="store_true", help="a server that acts as the user (as root)")
    what.add_argument("--audit-log", action="store_true", help="a server that writes an audit log")
    parser.add_argument("--check", action="store_true", help="exit status 1 if it is more than the limit")
    options = parser.parse_args()
    options.null, options.durability = False, "none"
    with tempfile.TemporaryDirectory(prefix="slipway-rights-") as work:
        key = pathlib.Path(work, "master-key")
        subprocess.run([options.binary, "master-key", "new", key], check=True, capture_output=True)
        run, limit = of_policies, 3.0
        if options.impersonate:
            run, limit = of_impersonation, 8.0
        elif options.audit_log:
            run, limit = of_audit_log, None
        if options.check and limit is None:
            parser.error("there is no limit for the audit log")
        first, second = run(options, pathlib.Path(work), ("--master-key-file", str(key)))
    for side in (first, second):
        print(f"{side.name:5} {statistics.median(side.found):6.2f} us a GET, at least {min(side.found):.2f}")
    more = [one - other for one, other in zip(second.found, first.found, strict=True)]
    print(
        f"more for {second.name}: {statistics.median(more):.2f} us (a round's {min(more):.2f} to {max(more):.2f})"
    )
    if options.check and statistics.median(more) > limit:
        raise SystemExit(f"more than {limit} us")


if __name__ == "__main__":
    main()
