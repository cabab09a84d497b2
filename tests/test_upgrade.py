"""`slipway upgrade`: a directory gets the features of this version, while nobody serves it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.server import KEYS, NOBODY, SIDECARS, StartFailed, binary
from support.tools import findings, run, sweep

FEATURES = "bucket-documents\nobject-lock\nversions\n"
STOPPED = "--all-gateways-are-stopped"
WORD = f"{'sidecar' if SIDECARS else 'xattr'} format-2\n"


def own(tree: Path) -> Path:
    return tree / ".slipway"


def formats(tree: Path) -> dict[str, str]:
    """What builds look at before they open a tree."""
    names = ("tree.toml", "format", "format.pending", "metadata")
    return {name: path.read_text() for name in names if (path := own(tree) / name).exists()}


def upgraded(tree: Path) -> None:
    said = formats(tree)
    assert "format = 2\n" in said["tree.toml"] and said["format"] == FEATURES, said
    assert said["metadata"] == WORD and "format.pending" not in said, said


@pytest.fixture
def tree(make_server, tmp_path) -> Path:
    """One that was served, with an object."""
    server = make_server(tree=tmp_path / "tree")
    expect.ok(Bucket(server, "bucket").create().put("key", b"data"))
    server.stop()
    return server.tree


def test_a_directory_is_upgraded_in_place(tree, make_server):
    before = formats(tree)
    assert "format = 1\n" in before["tree.toml"]
    shown = run("upgrade", "--dry-run", tree)
    assert (
        "format 1, without features" in shown and "to be added: bucket-documents: buckets may have" in shown
    )
    assert "to be added: versions: " in shown
    assert "would give it format 2" in shown and "would no longer open" in shown
    # Without a word that all have stopped, nothing is done.
    assert f"give {STOPPED}" in run("upgrade", tree, status=2)
    assert formats(tree) == before
    shown = run("upgrade", STOPPED, tree)
    assert (
        "added: bucket-documents" in shown and "added: versions" in shown and "upgraded to format 2" in shown
    )
    upgraded(tree)
    noted = formats(tree)
    assert noted["tree.toml"] == before["tree.toml"].replace("format = 1", "format = 2")
    for words in [(STOPPED,), (), ("--dry-run",)]:
        shown = run("upgrade", *words, tree)
        assert (
            "format 2, with the features bucket-documents, object-lock, versions" in shown
            and "nothing to upgrade" in shown
        )
    assert formats(tree) == noted
    server = make_server(tree=tree)
    assert Bucket(server, "bucket").read("key") == b"data"
    assert "slipway upgrade" not in server.log and "same value" not in server.log
    assert findings(tree) == []


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_a_gateway_that_serves_is_named(tree, make_server, stop):
    before = formats(tree)
    servers = [make_server(tree=tree) for _ in range(2)]
    for words, status in [((STOPPED,), 2), (("--dry-run",), 0), ((), 2)]:
        done = subprocess.run([binary(), "upgrade", *words, tree], capture_output=True, text=True)
        told = done.stdout + done.stderr
        assert done.returncode == status, done
        assert "these gateways are serving this directory: " in told and "stop all gateways" in told, told
        # What an upgrade would do needs no lock to be shown.
        assert ("to be added: bucket-documents" in told) == (words != (STOPPED,)), told
        for server in servers:
            address = server.endpoint.partition("://")[2]
            named = rf"{address} \(slipway [\d.]+, process {server.pid} on {os.uname().nodename}\)"
            assert re.search(named, told), told
    getattr(servers[0], stop)()
    told = run("upgrade", STOPPED, tree, status=2)
    assert f"process {servers[1].pid} " in told and f"process {servers[0].pid} " not in told, told
    assert formats(tree) == before
    # It goes on, and another starts.
    make_server(tree=tree).stop()
    assert Bucket(servers[1], "bucket").read("key") == b"data"
    getattr(servers[1], stop)()
    run("upgrade", STOPPED, tree)
    upgraded(tree)


def test_a_gateway_that_stops_leaves_nothing(tree, make_server):
    server = make_server(tree=tree)
    place = own(tree) / "gateways"
    [name] = {path.name for path in place.iterdir()} - {",lock"}
    assert (place / name).read_text().startswith(server.endpoint.partition("://")[2])
    assert [path.stat().st_mode & 0o077 for path in (place, place / name, place / ",lock")] == [0, 0, 0]
    server.stop()
    assert [path.name for path in place.iterdir()] == [",lock"]
    assert "stopped" in server.log.splitlines()[-1]


def test_a_gateway_that_only_reads_is_noticed(tree, make_server):
    reader = make_server("--read-only", tree=tree)
    assert "a gateway with --read-only or a command" in run("upgrade", STOPPED, tree, status=2)
    reader.stop()
    run("upgrade", STOPPED, tree)
    reader = make_server("--read-only", tree=tree)
    assert Bucket(reader, "bucket").read("key") == b"data"


def test_a_gateway_that_hangs_is_noticed(tree, make_server):
    server = make_server(tree=tree)
    server.signal(signal.SIGSTOP)
    assert f"process {server.pid} " in run("upgrade", STOPPED, tree, status=2)
    server.signal(signal.SIGCONT)


def test_tools_work_on_what_was_upgraded(tree, make_server):
    (tree / "bucket/mine").write_text("a person's")
    run("upgrade", STOPPED, tree)
    assert "1 rehashed" in run("rehash", tree)
    sweep(tree)
    assert findings(tree, "--repair") == []
    server = make_server(tree=tree)
    bucket = Bucket(server, "bucket")
    assert bucket.read("mine") == b"a person's"
    bucket.delete("mine"), bucket.delete("key")
    assert bucket.raw.delete(bucket.path()).status == 204


def test_options_are_noted_by_the_next_start_where_there_were_none(tree, make_server):
    """As in a tree that only builds have served which noted none."""
    for name in ("tree.toml", "account.toml"):
        (own(tree) / name).unlink()
    run("upgrade", STOPPED, tree)
    assert formats(tree)["tree.toml"] == "format = 2\n"
    make_server("--region", "lab-2", tree=tree).stop()
    text = formats(tree)["tree.toml"]
    assert "format = 2\n" in text and 'region = "lab-2"\n' in text and "metadata = " in text
    assert "served with lab-2" in make_server("--region", "lab-1", tree=tree).log
    assert formats(tree)["tree.toml"] == text
    upgraded(tree)


def test_what_is_no_tree_is_not_upgraded(tree, tmp_path):
    other = tmp_path / "other"
    (other / "Pictures").mkdir(parents=True)
    assert "is it the right one?" in run("upgrade", STOPPED, other, status=2)
    assert os.listdir(other) == ["Pictures"]
    assert f'the bucket "bucket" of the directory {tree}' in run(
        "upgrade", STOPPED, tree / "bucket", status=2
    )
    assert "name a directory that exists" in run("upgrade", STOPPED, tmp_path / "none", status=2)
    own(tree).joinpath("format").write_text("time-travel\n")
    assert '"time-travel"' in run("upgrade", STOPPED, tree, status=2)
    own(tree).joinpath("format").unlink()
    own(tree).joinpath("tree.toml").write_text("no toml")
    run("upgrade", STOPPED, tree, status=2)
    assert formats(tree)["tree.toml"] == "no toml"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_root_makes_belongs_to_the_owner(make_server):
    """A gateway that is not root's has to read it."""
    # Where another user gets to, with a program that it may run.
    place = Path(tempfile.mkdtemp(prefix="slipway-upgrade-", dir="/tmp"))
    try:
        place.chmod(0o755)
        program = Path(shutil.copy(binary(), place / "slipway"))
        tree = place / "tree"
        tree.mkdir()
        os.chown(tree, NOBODY, NOBODY)
        server = make_server(tree=tree, as_nobody=True, program=program)
        Bucket(server, "bucket").create().put("key", b"data")
        server.stop()
        # As a build before this one has left it.
        shutil.rmtree(own(tree) / "gateways")
        run("upgrade", STOPPED, tree)
        upgraded(tree)
        for path in [own(tree), *own(tree).rglob("*")]:
            assert path.lstat().st_uid == NOBODY, path
        server = make_server(tree=tree, as_nobody=True, program=program)
        assert Bucket(server, "bucket").read("key") == b"data"
        server.stop()
        # Of a tree without a directory of its own.
        shutil.rmtree(own(tree))
        run("upgrade", STOPPED, tree)
        assert (own(tree).stat().st_uid, own(tree).stat().st_mode & 0o777) == (NOBODY, 0o700)
    finally:
        shutil.rmtree(place)


def test_a_start_during_an_upgrade_waits_and_is_refused(tree, make_server):
    """An upgrade that takes long, as on a file system that hangs: its lock, held by a program of ours."""
    lock = own(tree) / "gateways" / ",lock"
    holder = subprocess.Popen(["flock", "--exclusive", lock, "cat"], stdin=subprocess.PIPE)
    try:
        done = subprocess.run(["flock", "--nonblock", lock, "true"], check=False)
        while done.returncode == 0:
            done = subprocess.run(["flock", "--nonblock", lock, "true"], check=False)
        with pytest.raises(StartFailed, match="slipway upgrade is upgrading the directory: start again"):
            make_server(tree=tree)
        refused = run("sweep", tree, status=2)
        assert "slipway upgrade is upgrading the directory" in refused, refused
        # What only looks is not held up.
        assert findings(tree) == []
    finally:
        holder.communicate()
    make_server(tree=tree)


def test_the_help_says_what_it_is_for():
    help_text = " ".join(run("upgrade", "--help").split())
    for words in (
        "all features of this version can be used in it",
        "without it, everything works as before",
        STOPPED,
        "--dry-run",
    ):
        assert words in help_text, help_text
    assert "upgrade" in run("completions", "bash")
    done = subprocess.run([binary(), "upgrade"], capture_output=True, text=True, env=KEYS, check=False)
    assert done.returncode == 2 and "DIR" in done.stderr
