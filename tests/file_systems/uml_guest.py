"""Process 1 of the machine of `uml.py`: `uml_guest.py KIND RESULTS`. Mounts the disk, runs the suites that
RESULTS/task.json names on it, and tells each line and the end on the console. Only RESULTS can be written to of
what is the host's."""

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.guest import DEVICE, MOUNT, boot, insert, run, tell

KIND, RESULTS = sys.argv[1:3]
FILE_SYSTEM, _, QUOTAS = KIND.partition("-")


class Lines:
    """What is printed, line by line."""

    def __init__(self) -> None:
        self.rest = ""

    def write(self, text: str) -> None:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            tell(f"line {line}")

    def flush(self) -> None:
        pass


def prepare() -> None:
    boot()
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", HOME="/root", LANG="C.UTF-8")
    for directory in ("/tmp", "/run", "/var/tmp", "/dev/shm"):
        os.makedirs(directory, exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", directory)
    # Its root is mounted read only, this is not.
    run("mount", "-t", "hostfs", "-o", RESULTS, "results", RESULTS)
    options = []
    if QUOTAS:
        options = ["-o", "prjquota,usrquota"]
        os.environ["SLIPWAY_QUOTAS"] = MOUNT
        if FILE_SYSTEM == "ext4":
            insert("fs/quota/quota_tree")
            insert("fs/quota/quota_v2")
    run("mount", "-t", FILE_SYSTEM, *options, DEVICE, MOUNT)


def main() -> None:
    prepare()
    from file_systems import mounts
    from file_systems import run as runner

    task = json.loads(Path(RESULTS, "task.json").read_text())
    os.environ["SLIPWAY_BINARY"] = task["server"]
    # One processor, on which each system call takes long, of a host that may be busy.
    os.environ["SLIPWAY_START_SECONDS"] = "120"
    runner.SUITE_SECONDS *= 3
    programs = {name: Path(path) for name, path in task["programs"].items()}
    options = argparse.Namespace(only=task["suites"], without=task["without"], all=False, probes=False)
    sys.stdout = Lines()
    found = runner.check_mounted(f"uml-{KIND}", mounts.Mounted(Path(MOUNT)), programs, options)
    tell(f"end {json.dumps(found)}")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        for line in traceback.format_exc().splitlines():
            tell(f"line {line}")
        tell('end {"failed": 1}')
    while True:
        time.sleep(60)
