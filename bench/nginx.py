#!/usr/bin/env python3
"""Server CPU of downloads beside nginx (sendfile), which serves the same files: presigned URLs, wrk, in turn.

    cargo build --release && bench/nginx.py --dir /mnt/x
    bench/nginx.py --sizes 1m 64m --connections 8
    bench/nginx.py --sizes 64m --range 1000000-2048575      # a piece of each
    bench/nginx.py --tls                    # both with TLS 1.3 and the same certificate; needs openssl

Needs nginx and wrk. nginx knows nothing of S3: it does no signatures, no metadata, no conditions. Prints the least of all rounds.
"""

import argparse
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

from common import KEYS, ROOT, cpu_seconds, presign, request, server
from servers import nginx_configuration

UNITS = {"k": 1 << 10, "m": 1 << 20}
SERVER = "server {{ listen 127.0.0.1:{port}{tls}; root {data}; }}"


def make_certificate(work: pathlib.Path) -> tuple[str, str]:
    certificate, key = str(work / "tls.pem"), str(work / "tls.key")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


def workers(pid: int) -> list[int]:
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def wrk(url: str, options: argparse.Namespace, pids: list[int]) -> float:
    """CPU us a request."""
    before = sum(map(cpu_seconds, pids))
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", url]
    if options.range:
        command[1:1] = ["-H", f"Range: bytes={options.range}"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    if "Non-2xx" in out:
        raise SystemExit(out)
    return (sum(map(cpu_seconds, pids)) - before) / int(re.search(r"(\d+) requests in", out)[1]) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", help="where to put the data (default: the system's temporary directory)")
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="none")
    parser.add_argument("--range", metavar="FIRST-LAST", help="read only these bytes of each")
    parser.add_argument("--sizes", nargs="+", default=["1k", "128k", "1m", "64m"])
    parser.add_argument("--tls", action="store_true", help="with TLS")
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.null = False
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-nginx-") as directory:
        work = pathlib.Path(directory)
        (work / "data").mkdir()
        work.chmod(0o755)
        tls, more = "", []
        if options.tls:
            certificate, key = make_certificate(work)
            tls = f" ssl; ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.3"
            more = ["--tls-cert", certificate, "--tls-key", key]
        scheme = "https" if options.tls else "http"
        with server(options, work, *more) as (host, pid), socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            probe.close()
            more = SERVER.format(port=port, data=work / "data", tls=tls)
            (work / "nginx.conf").write_text(nginx_configuration(work, more))
            nginx = subprocess.Popen(["nginx", "-c", work / "nginx.conf", "-e", work / "error.log"])
            try:
                time.sleep(1)
                request("PUT", host, "/bench", KEYS, tls=options.tls)
                for size in options.sizes:
                    path, length = f"/bench/{size}", int(size[:-1]) * UNITS[size[-1]]
                    request("PUT", host, path, KEYS, b"x" * length, tls=options.tls)
                    time.sleep(0.2)
                    ours, theirs = [], []
                    for _ in range(options.rounds):
                        ours.append(
                            wrk(f"{scheme}://{host}{presign('GET', host, path, KEYS)}", options, [pid])
                        )
                        theirs.append(wrk(f"{scheme}://127.0.0.1:{port}{path}", options, workers(nginx.pid)))
                    mine, other = min(ours), min(theirs)
                    print(
                        f"GET {size:5} slipway {mine:9.1f} us  nginx {other:9.1f} us  {mine / other:5.2f} x",
                        flush=True,
                    )
            finally:
                nginx.send_signal(signal.SIGTERM)
                nginx.wait(timeout=30)


if __name__ == "__main__":
    main()
