"""What someone who may write in a bucket's directory puts there leads no one anywhere else."""

import ctypes
import os
import subprocess
import threading
import time

import pytest

from support import expect
from support.bucket import Bucket
from support.server import StartFailed, binary

KEPT = "kept"
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def outside(tmp_path):
    """A directory that is none of the server's business, with things of the names that the server uses."""
    place = tmp_path / "outside"
    for name in ["uploads/x", "locks/2a", "overflow", "staging", "completed", "sub"]:
        (place / name).mkdir(parents=True)
    for name in ["target", "a", ".slipway,directory", "uploads/x/upload"]:
        (place / name).write_text(KEPT)
    return place


def shape(place):
    return {
        str(path.relative_to(place)): (path.stat().st_uid, path.is_dir() or path.read_text())
        for path in place.rglob("*")
    }


def sweep(tree, *options):
    done = subprocess.run([binary(), "sweep", "--age", "0", tree], capture_output=True, text=True, timeout=60)
    assert "panicked" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("metadata", ["xattr", "sidecar"])
def test_links_in_the_place_of_our_own(make_server, outside, metadata):
    server = make_server("--metadata", metadata)
    before = shape(outside)
    for name in [".slipway", ".slipway,records"]:
        bucket = Bucket(server, f"of{name.replace(',', '-').replace('.', '-')}").create()
        bucket.put("a", b"1")
        bucket.put("d/a", b"1")
        subprocess.run(["rm", "-rf", bucket.file(name)], check=True)
        os.symlink(outside, bucket.file(name))
        if name == ".slipway,records":
            subprocess.run(["rm", "-rf", bucket.file(f"d/{name}")], check=True)
            os.symlink(outside, bucket.file(f"d/{name}"))
        for key in ["a", "d/a", "target"]:
            bucket.raw.put(bucket.path(key), b"2")
            bucket.raw.put(bucket.path(f"{key}/below"), b"2")
            bucket.get(key)
            bucket.delete(key)
        bucket.raw.post(bucket.path("k"), query={"uploads": ""})
        bucket.raw.get(bucket.path(), query={"uploads": ""})
        sweep(server.tree)
        bucket.raw.delete(bucket.path())
        sweep(server.tree)
    assert shape(outside) == before


def test_a_file_in_the_place_of_our_own_keeps_nothing_else_from_the_sweep(make_server):
    server = make_server()
    for name in ["one", "two"]:
        Bucket(server, name).create().put("a", b"1")
        (server.tree / name / ".slipway/uploads/left").mkdir(parents=True)
    assert sweep(server.tree).returncode == 0
    for name in ["one", "two"]:
        (server.tree / name / ".slipway/uploads/left").mkdir(parents=True)
    strange = server.tree / "one/.slipway/scattered"
    strange.write_text("")
    done = sweep(server.tree)
    assert done.returncode == 1, done
    assert "2 uploads" in done.stdout, done
    assert "one" in done.stderr and "two" not in done.stderr, done
    strange.unlink()
    assert sweep(server.tree).returncode == 0


def test_notes_that_someone_wrote(make_server, outside):
    server = make_server("--metadata", "sidecar")
    bucket = Bucket(server, "lab").create()
    bucket.put("a", b"1")
    os.makedirs(bucket.file("evil"))
    os.symlink(outside, bucket.file("evil/.slipway,records"))
    before = shape(outside)
    notes = ["record:evil/target", "record:../../outside/target", "record:evil/..", "0:../../outside/sub", "0:evil"]
    for number, text in enumerate(notes):
        os.symlink(text, bucket.file(f".slipway/staging/note{number}"))
    sweep(server.tree)
    assert shape(outside) == before
    # A record that someone put a link in the place of is no one's.
    bucket.file("evil/target").write_text("x")
    expect.ok(bucket.delete("evil/target"), 204)
    assert shape(outside) == before


def test_tools_of_root_give_nothing_away(make_server, outside):
    """Locks are swapped for a link all the while, as who owns the bucket can do."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    server = make_server()
    bucket = Bucket(server, "lab").create()
    for number in range(200):
        bucket.file(f"f{number}").write_text("x")
    bucket.put("a", b"1")
    bucket.put("a", b"2")
    for path in [bucket.tree, *bucket.tree.rglob("*")]:
        os.chown(path, 1000, 1000)
    for number in range(64):
        (outside / "locks" / f"{number:02x}").mkdir(exist_ok=True)
    before = shape(outside)
    locks, link = bucket.file(".slipway/locks"), bucket.file(".slipway/link")
    os.symlink(outside / "locks", link)
    stop = threading.Event()

    def flip():
        renameat2 = ctypes.CDLL(None).renameat2
        while not stop.is_set():
            renameat2(AT_FDCWD, bytes(locks), AT_FDCWD, bytes(link), RENAME_EXCHANGE)

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            subprocess.run([binary(), "rehash", bucket.tree], capture_output=True, timeout=60)
            for number in range(0, 200, 7):
                bucket.file(f"f{number}").write_text("y")
    finally:
        stop.set()
        flipper.join()
    assert shape(outside) == before


NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_nobody(place, script):
    """What a local user does who may write in `place`, and has no other rights."""
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-ec", script]
    subprocess.run(command, cwd=place, check=True, timeout=60)


@only_root
def test_an_account_that_someone_else_keeps(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.chmod(0o1777)
    as_nobody(tree, "mkdir -m 777 .slipway; echo 'account_id = \"111122223333\"' > .slipway/account.toml")
    with pytest.raises(StartFailed, match="only this user"):
        make_server()
    for owner, mode in [(0, 0o777), (NOBODY, 0o700)]:
        os.chown(tree / ".slipway", owner, owner)
        (tree / ".slipway").chmod(mode)
        with pytest.raises(StartFailed, match="only this user"):
            make_server()
    os.chown(tree / ".slipway", 0, 0)
    assert make_server().account == "111122223333"
