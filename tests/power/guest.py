"""Process 1 of the virtual machine: mounts the image, starts the server on it, and writes until the power
goes.

`guest.py SEED WORKERS FILE_SYSTEM DURABILITY BINARY REQUESTS plain|impersonate`. What was acknowledged is told on the console
as it happens. If REQUESTS is not 0, each worker stops after so many, and the image is behind dm-log-writes,
which is told of each acknowledgement too."""

import itertools
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.guest import DEVICE, MOUNT, PATH, boot, insert, run, tell

SEED, WORKERS = int(sys.argv[1]), int(sys.argv[2])
FILE_SYSTEM, DURABILITY, BINARY = sys.argv[3:6]
# The kernel adds words of its own.
REQUESTS = int(sys.argv[6]) or None
IMPERSONATE = sys.argv[7] == "impersonate"
PORT = 9000


def mount() -> None:
    device = DEVICE
    if REQUESTS:
        for module in ("dm-mod", "dm-log-writes"):
            insert(f"drivers/md/{module}")
        sectors = int(Path("/sys/block/ubda/size").read_text())
        os.environ["DM_DISABLE_UDEV"] = "1"
        run("dmsetup", "create", "logged", "--table", f"0 {sectors} log-writes {DEVICE} /dev/ubdb")
        device = "/dev/mapper/logged"
    run("mount", "-t", FILE_SYSTEM, device, MOUNT)


def mark(text: str) -> None:
    if REQUESTS:
        run("dmsetup", "message", "logged", "0", "mark", text)


def serve() -> None:
    from power.check import Load
    from support.server import acting_as

    options, env = acting_as(Load(SEED, IMPERSONATE).user)
    tree = Path(MOUNT, "tree")
    tree.mkdir()
    os.sync()
    subprocess.Popen(
        [
            BINARY,
            "serve",
            "--listen",
            f"127.0.0.1:{PORT}",
            "--durability",
            DURABILITY,
            "--log",
            "warn",
            *options,
            str(tree),
        ],
        env={**env, "PATH": PATH},
        stdout=subprocess.DEVNULL,
    )
    while True:
        try:
            socket.create_connection(("127.0.0.1", PORT)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.01)


class Here:
    """As much of a `Server` as a `Bucket` needs."""

    def __init__(self) -> None:
        from support.server import ACCESS_KEY, SECRET_KEY
        from support.sigv4 import Signer
        from support.wire import RawClient

        # The guest may stand still for long where the host is busy.
        self.raw = RawClient(("127.0.0.1", PORT), Signer(ACCESS_KEY, SECRET_KEY), timeout=300)
        self.tree = Path(MOUNT, "tree")


def work(worker: int) -> None:
    from power.check import Load
    from power.load import BUCKET
    from support.bucket import Bucket

    bucket, upload = Bucket(Here(), BUCKET), {}
    try:
        for number, step in enumerate(itertools.islice(Load(SEED, IMPERSONATE).steps(worker), REQUESTS), 1):
            response = step.send(bucket, upload)
            if response.status not in (200, 204) or response.code:
                tell(f"error {worker} {number} {step} {response!r}"[:1500])
                return
            mark(f"{worker}-{number}")
            tell(f"done {worker} {number}")
    except BaseException:
        tell(f"error {worker} {traceback.format_exc()!r}")


def main() -> None:
    boot()
    mount()
    serve()
    from power.load import BUCKET
    from support.bucket import Bucket

    Bucket(Here(), BUCKET).create()
    mark("bucket")
    tell("bucket")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell("end")
    while True:
        time.sleep(1)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        tell(f"error {traceback.format_exc()!r}")
        time.sleep(60)
