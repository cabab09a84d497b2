"""Directories that cannot be served, or cannot be made: the start says why, and what to do."""

import os
import subprocess
from pathlib import Path

import pytest

from support.server import KEYS, binary
from support.starts import start


def test_a_directory_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "slipway.toml"
    path.write_text('\ndir = ""\n')
    for arguments, env, named in [
        ([""], {}, "'' for '[DIR]'"),
        ([], {"SLIPWAY_DIR": ""}, "in SLIPWAY_DIR: "),
        (["--config", path], {}, f"{path}: line 2: "),
    ]:
        done = subprocess.run(
            [binary(), "serve", *arguments],
            capture_output=True, text=True, env={**KEYS, **env}, timeout=30, check=False,
        )  # fmt: skip
        assert done.returncode == 2 and named in done.stderr, done
        assert "the name is empty: name the directory to serve" in done.stderr, done


def test_the_root_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    before = sorted(os.listdir("/"))
    for root in (Path("/"), Path("/usr/.."), tmp_path / "link"):
        done = start(root, "--listen", "127.0.0.1:0")
        assert done.returncode == 2 and "/: the root directory cannot be served" in done.stderr, done
    assert sorted(os.listdir("/")) == before


@pytest.mark.parametrize("what, cure", [
    ("file", "it is a file: move it away"),
    ("link", ".slipway is a symbolic link: move it away"),
    ("open", "other users may write to it: if it is the server's, close it to others (chmod 700)"),
])  # fmt: skip
def test_a_state_directory_that_is_none(tmp_path: Path, what: str, cure: str) -> None:
    own = tmp_path / "tree" / ".slipway"
    own.parent.mkdir()
    if what == "file":
        own.write_text("")
    elif what == "link":
        own.symlink_to(tmp_path)
    else:
        own.mkdir()
        own.chmod(0o777)
    done = start(own.parent, "--listen", "127.0.0.1:0")
    assert done.returncode == 1 and cure in done.stderr and "os error" not in done.stderr, done


def test_a_directory_that_is_made_is_logged(make_server, tmp_path: Path) -> None:
    tree = tmp_path / "new" / "tree"
    for logged in (True, False):
        server = make_server(tree=tree)
        assert ("the directory to serve did not exist, and was created" in server.log) == logged
        server.stop()


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "slipway.toml"
    path.write_text("")
    done = start(path, "--listen", "127.0.0.1:0")
    assert (
        done.returncode == 1
        and f"{path}: this is a file, not a directory: did you mean --config {path}?" in done.stderr
    )
    other = tmp_path / "disk.img"
    other.write_text("")
    for file in (other, Path("/dev/null")):
        done = start(file, "--listen", "127.0.0.1:0")
        assert f"{file}: this is a file: name the directory to serve" in done.stderr, done


def test_an_access_log_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "slipway.toml"
    path.write_text(f'\naccess-log = "{tmp_path}/none/access.log"\n')
    done = start(tmp_path / "tree", "--config", str(path), "--listen", "127.0.0.1:0")
    assert done.returncode == 1, done
    assert f"{path}: line 2: --access-log {tmp_path}/none/access.log: No such file" in done.stderr, done
    assert "create its directory first" in done.stderr and not (tmp_path / "tree").exists()


def test_no_directory_is_named(tmp_path: Path) -> None:
    done = subprocess.run([binary(), "serve"], capture_output=True, text=True, env=KEYS, check=False)
    assert done.returncode == 2 and "nothing to serve: name the directory" in done.stderr, done
    assert "in SLIPWAY_DIR, or as dir =" in done.stderr and "[DIR]" in done.stderr, done


@pytest.mark.parametrize("option", ["--read-only", "--require-mount"])
def test_a_missing_directory_that_is_not_made(tmp_path: Path, option: str) -> None:
    done = start(tmp_path / "none", option, "--listen", "127.0.0.1:0")
    assert done.returncode == 1 and not (tmp_path / "none").exists(), done
    assert f"{tmp_path}/none: cannot be opened: No such file" in done.stderr, done
    assert "name a directory that exists: only `slipway serve` without" in done.stderr, done


@pytest.mark.parametrize("command", ["fsck", "sweep"])
def test_a_missing_directory_of_a_tool(tmp_path: Path, command: str) -> None:
    done = subprocess.run(
        [binary(), command, tmp_path / "none"], capture_output=True, text=True, env=KEYS, check=False
    )
    assert done.returncode == 2 and "name a directory that exists" in done.stderr, done


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """As /var/lib/slipway under systemd, where there is none: the system is read-only."""
    done = start(Path("/proc/none"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1, done
    assert "/proc/none: the directory does not exist and cannot be created: No such file" in done.stderr, done
    assert "create the directory, and give it to the server's user" in done.stderr, done


def test_why_a_directory_cannot_be_made(tmp_path: Path) -> None:
    """Each reason has its own cure."""
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for name, cure in [
        ("file/tree", "a component of its path is a file: name another directory"),
        ("link", "a symbolic link whose target does not exist"),
    ]:
        done = start(tmp_path / name, "--listen", "127.0.0.1:0")
        assert done.returncode == 1 and cure in done.stderr, done


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to mount a file system")
@pytest.mark.parametrize(
    "options, cure",
    [
        ("ro", "mount its file system writable"),
        ("nr_inodes=1", "free space or inodes on its file system"),
    ],
)
def test_a_file_system_that_takes_no_directory(tmp_path: Path, options: str, cure: str) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        done = start(place / "tree", "--listen", "127.0.0.1:0")
    finally:
        subprocess.run(["umount", place], check=True)
    assert done.returncode == 1 and cure in done.stderr, done
