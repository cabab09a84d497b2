#!/usr/bin/env python3
"""How long CompleteMultipartUpload takes, and what it writes, beside `cp` of the same bytes.

Starts a server on a fresh directory, uploads parts of one size (several at a time, in no order), completes the upload, and
says how much the server wrote meanwhile (`wchar` of /proc/PID/io, which counts copies made in the kernel too).

    cargo build --release && bench/multipart.py --dir /mnt/xfs
    bench/multipart.py --dir /mnt/xfs --unequal     # every part a different size: what is copied, or shared by the file system
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

from common import KEYS, ROOT, cpu_seconds, peak_resident_mib, presign, server

BUCKET = "bench"
MIB = 1 << 20


def call(
    host: str, method: str, key: str, query: dict[str, str], body=None, headers: dict[str, str] | None = None
):
    """Headers and body of the answer."""
    connection = http.client.HTTPConnection(host, timeout=600)
    with contextlib.closing(connection):
        path = f"/{BUCKET}/{key}" if key else f"/{BUCKET}"
        connection.request(method, presign(method, host, path, KEYS, query), body=body, headers=headers or {})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} {query}: {answer.status} {text.decode()}")
        return answer.headers, text.decode()


def written(pid: int) -> int:
    return int(re.search(r"wchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text())[1])


def upload(host: str, options: argparse.Namespace, sizes: list[int]) -> tuple[str, list[str]]:
    """Id and ETags."""
    _, text = call(host, "POST", "object", {"uploads": ""})
    upload_id = re.search(r"<UploadId>(.+)</UploadId>", text)[1]
    block = os.urandom(max(sizes))

    def put(number: int) -> str:
        query = {"partNumber": str(number), "uploadId": upload_id}
        headers, _ = call(host, "PUT", "object", query, memoryview(block)[: sizes[number - 1]])
        return headers["ETag"]

    numbers = list(range(1, options.parts + 1))
    shuffled = random.sample(numbers, len(numbers))
    with concurrent.futures.ThreadPoolExecutor(options.connections) as pool:
        etags = dict(zip(shuffled, pool.map(put, shuffled), strict=True))
    return upload_id, [etags[number] for number in numbers]


def copy(source: pathlib.Path, how: str) -> str:
    target = source.with_name("copy")
    begun = time.monotonic()
    subprocess.run(["cp", f"--reflink={how}", "--sparse=never", source, target], check=True)
    seconds = time.monotonic() - begun
    target.unlink()
    return f"{seconds * 1000:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", default=ROOT / "target/release/slipway")
    parser.add_argument("--durability", default="full", choices=["none", "data", "full"])
    parser.add_argument("--parts", type=int, default=100)
    parser.add_argument("--part-mib", type=int, default=64)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--unequal", action="store_true")
    parser.add_argument("--dir", help="where to put the data (default: a temporary directory)")
    options = parser.parse_args()
    options.null = False
    size = options.part_mib * MIB
    sizes = [size - 4096 * (n % 7) if options.unequal else size for n in range(options.parts)]
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="slipway-bench-") as name:
        work = pathlib.Path(name)
        with server(options, work) as (host, pid):
            call(host, "PUT", "", {})
            begun, cpu = time.monotonic(), cpu_seconds(pid)
            upload_id, etags = upload(host, options, sizes)
            seconds, cpu = time.monotonic() - begun, cpu_seconds(pid) - cpu
            print(
                f"{options.parts} parts of {options.part_mib} MiB{' and a little less' if options.unequal else ''}, "
                f"durability {options.durability}, {options.connections} at a time: "
                f"{sum(sizes) / seconds / 1e6:.0f} MB/s, {cpu:.1f} s of CPU"
            )
            parts = "".join(
                f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>"
                for n, etag in enumerate(etags, 1)
            )
            body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
            before, begun = written(pid), time.monotonic()
            _, text = call(host, "POST", "object", {"uploadId": upload_id}, body)
            milliseconds = (time.monotonic() - begun) * 1000
            if "<ETag>" not in text:
                raise SystemExit(text)
            print(
                f"completed in {milliseconds:.1f} ms; the server wrote {written(pid) - before:,} bytes meanwhile "
                f"(peak memory {peak_resident_mib(pid):.0f} MiB)"
            )
            file = work / "data" / BUCKET / "object"
            if file.stat().st_size != sum(sizes):
                raise SystemExit("the object has another size")
            print(
                f"cp of the same bytes: {copy(file, 'never')}; with blocks shared where possible: {copy(file, 'auto')}"
            )


if __name__ == "__main__":
    main()
