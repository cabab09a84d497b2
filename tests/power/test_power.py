"""A few power cuts; `cuts.py` and `replay.py` make many."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.virtual_machine import KERNEL

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which(KERNEL), reason="needs Debian's package user-mode-linux"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the images"),
]


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
@pytest.mark.parametrize(
    "command", [["cuts.py", "--cuts", "3"], ["replay.py", "--requests", "5"]], ids=lambda c: c[0]
)
def test_power(command, file_system):
    if not shutil.which(f"mkfs.{file_system}", path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        pytest.skip(f"needs mkfs.{file_system}")
    script, *options = command
    done = subprocess.run(
        [sys.executable, HERE / script, *options, "--file-system", file_system],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
