"""Servers to measure beside each other: started on an address of their own, watched, ended."""

import contextlib
import dataclasses
import http.client
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

from common import ACCESS_KEY, ENDS, ROOT, SECRET_KEY, environment

BINARY = ROOT / "target/release/slipway"
VARNISH_EXAMPLE = ROOT / "packaging/proxies/varnish.vcl"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
START_SECONDS, STOP_SECONDS = 30, 60
NGINX = """
worker_processes 2; pid {work}/nginx.pid; error_log {work}/error.log; daemon off; {user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/octet-stream;
  client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
  {more}
}}
"""
# It takes PUTs as files, without digests, signatures or flushes, and knows no buckets or lists.
NGINX_FILES = """
  server {{
    listen {address}; root {data}; client_max_body_size 0; dav_methods PUT DELETE; create_full_put_path on;
    location = /bench {{ return 200; }}
  }}
"""


class NotStarted(Exception):
    """A server that could not be started, for the script's user."""


@dataclasses.dataclass
class Running:
    """A server under way; what it used is known once it has ended."""

    address: str
    pid: int
    # By name: seconds, faults, context switches, MB resident; see end().
    usage: dict[str, float] = dataclasses.field(default_factory=dict)
    # Processes that answer with it: what is behind a proxy.
    others: list[int] = dataclasses.field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        """It, its children, and what answers with it."""
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children), *self.others]

    def resident_mb(self) -> float:
        """The most that was resident since it began (MB); of the largest of its processes."""
        status = (pathlib.Path(f"/proc/{pid}/status").read_text() for pid in self.pids)
        return max(int(re.search(r"VmHWM:\s+(\d+)", text)[1]) for text in status) * 1024 / 1e6


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def ours(command: str) -> str:
    """A command that does not say where is one of ours."""
    if "{address}" in command:
        return command
    words = shlex.split(command)
    command = shlex.join(words if "serve" in words else [*words, "serve"])
    return command + " --durability none --listen {address} {dir}"


def answers(address: str) -> bool:
    """Some listen before they can answer, with 503."""
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/")
        return connection.getresponse().status != 503
    return False


@contextlib.contextmanager
def started(command: str, directory: pathlib.Path) -> Iterator[Running]:
    """A server on `directory`, which is made. In its command are {address} and maybe {dir}."""
    address = free_address()
    directory.mkdir(exist_ok=True)
    env = environment()
    for prefix in ("SLIPWAY_ROOT", "ROOT"):
        env |= {f"{prefix}_ACCESS_KEY": ACCESS_KEY, f"{prefix}_SECRET_KEY": SECRET_KEY}
    env |= {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY}
    line = ours(command).replace("{address}", address).replace("{dir}", shlex.quote(str(directory)))
    words = shlex.split(line)
    with watched(words, address, env) as running:
        yield running


@contextlib.contextmanager
def watched(words: list[str], address: str, env: dict[str, str]) -> Iterator[Running]:
    """A server that listens there, until it is no longer wanted."""
    running = None
    try:
        # An early end of the script in the midst of this would leave the server behind.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        try:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(words, env=env, preexec_fn=take_signals, **quiet)
            running = Running(address, process.pid)
        except OSError as error:
            raise NotStarted(f"{words[0]}: {error}") from error
        finally:
            take_signals()
        wait(running, process, words)
        yield running
    finally:
        if running:
            end(running, process)


def take_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


def wait(running: Running, process: subprocess.Popen, words: list[str]) -> None:
    until = time.monotonic() + START_SECONDS
    while not answers(running.address):
        # Not poll(), which would take away what the process used.
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            raise NotStarted(f"ended at once: {shlex.join(words)}")
        if time.monotonic() > until:
            raise NotStarted(f"no answer within {START_SECONDS} s: {shlex.join(words)}")
        time.sleep(0.02)


def end(running: Running, process: subprocess.Popen) -> None:
    """Ends it for certain, and notes what it used in its life."""
    with contextlib.suppress(OSError, TypeError):
        running.usage["resident_mb"] = running.resident_mb()
    # Not by methods of `process`, which would take away what it used.
    os.kill(process.pid, signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > until:
            os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    running.usage |= {
        "user_seconds": used.ru_utime,
        "system_seconds": used.ru_stime,
        "minor_faults": used.ru_minflt,
        "major_faults": used.ru_majflt,
        "voluntary": used.ru_nvcsw,
        "involuntary": used.ru_nivcsw,
    }


def nginx_configuration(work: pathlib.Path, more: str) -> str:
    user = "user root;" if os.geteuid() == 0 else ""
    return NGINX.format(work=work, more=more, user=user)


@contextlib.contextmanager
def nginx(directory: pathlib.Path) -> Iterator[Running]:
    """nginx on files: a bucket named bench, for loads that neither make nor list buckets."""
    (directory / "data" / "bench").mkdir(parents=True, exist_ok=True)
    address = free_address()
    more = NGINX_FILES.format(address=address, data=directory / "data")
    (directory / "nginx.conf").write_text(nginx_configuration(directory, more))
    words = ["nginx", "-c", str(directory / "nginx.conf"), "-e", str(directory / "error.log")]
    with watched(words, address, {"PATH": PATH}) as running:
        yield running


@contextlib.contextmanager
def varnish(directory: pathlib.Path, gateway: Running) -> Iterator[Running]:
    """packaging/proxies/varnish.vcl before a gateway, as its own comment starts it, with another address."""
    host, port = gateway.address.split(":")
    text = VARNISH_EXAMPLE.read_text()
    text = text.replace('.host = "127.0.0.1"', f'.host = "{host}"').replace(
        '.port = "9000"', f'.port = "{port}"'
    )
    (directory / "slipway.vcl").write_text(text)
    address = free_address()
    line = re.search(r"^#   varnishd (.*)$", text, re.M)[1]
    line = line.replace("-a :8080", f"-a {address}")
    line = line.replace("/etc/varnish/slipway.vcl", str(directory / "slipway.vcl"))
    # Its child would give up root, and then could not read the directory.
    words = ["varnishd", *shlex.split(line), "-j", "none", "-n", str(directory / "varnish")]
    with watched(words, address, {"PATH": PATH}) as running:
        running.others = gateway.pids
        yield running
