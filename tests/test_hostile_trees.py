"""What someone who may write in a bucket's directory puts there leads no one anywhere else."""

import ctypes
import os
import shutil
import subprocess
import threading
import time

import pytest

from support import expect
from support.bucket import Bucket
from support.server import StartFailed, binary
from support.tools import identity

KEPT = "kept"
LEFT = 47 * "0" + "7"


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
        bucket = Bucket(server, name)
        bucket.put("a", b"2")
        bucket.file(f".slipway/uploads/{LEFT}").mkdir(parents=True)
    assert sweep(server.tree).returncode == 0
    for name in ["one", "two"]:
        (server.tree / name / f".slipway/uploads/{LEFT}").mkdir()
    strange = server.tree / "one/.slipway/scattered"
    strange.write_text("")
    done = sweep(server.tree)
    assert done.returncode == 1, done
    assert "2 finished or abandoned uploads" in done.stdout, done
    assert "one" in done.stderr and "two" not in done.stderr, done
    strange.unlink()
    assert sweep(server.tree).returncode == 0


@pytest.mark.parametrize("metadata", ["xattr", "sidecar"])
@pytest.mark.parametrize("what", ["link", "file", "fifo", "mount"])
def test_what_stands_in_the_place_of_our_own_is_told(make_server, outside, metadata, what):
    server = make_server("--metadata", metadata)
    bucket = Bucket(server, "lab").create()
    bucket.put("a", b"1")
    bucket.put("a", b"2")
    own = bucket.file(".slipway")
    own.rename(bucket.file("moved"))
    if what == "link":
        own.symlink_to(outside)
    elif what == "file":
        own.write_text("x")
    elif what == "fifo":
        os.mkfifo(own)
    else:
        own.mkdir(mode=0o700)
        command = ["mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", own]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("this machine does not mount")
    try:
        began = time.monotonic()
        expect.error(bucket.raw.put(bucket.path("a"), b"3"), "AccessDenied")
        expect.error(bucket.raw.post(bucket.path("k"), query={"uploads": ""}), "AccessDenied")
        assert time.monotonic() - began < 1
        assert bucket.read("a") == b"2"
        (line,) = [line for line in server.log.splitlines() if "chmod +t" in line]
        assert f'path="{own}" ' in f"{line} " and "chmod +t" in line, line
        done = sweep(server.tree)
        assert done.returncode == 1 and "chmod +t" in done.stderr, done
        found = subprocess.run([binary(), "fsck", server.tree], capture_output=True, text=True, timeout=60)
        assert found.returncode == 1 and found.stdout.count("stranger: ") == 1, found
        assert f"stranger: {own}: " in found.stdout, found
    finally:
        if what == "mount":
            subprocess.run(["umount", "--lazy", own], check=True)
            own.rmdir()
        else:
            own.unlink()
    bucket.file("moved").rename(own)
    bucket.put("a", b"3")


def test_notes_that_someone_wrote(make_server, outside):
    server = make_server("--metadata", "sidecar")
    bucket = Bucket(server, "lab").create()
    bucket.put("a", b"1")
    os.makedirs(bucket.file("evil"))
    os.symlink(outside, bucket.file("evil/.slipway,records"))
    before = shape(outside)
    notes = [
        "record:evil/target",
        "record:../../outside/target",
        "record:evil/..",
        "0:../../outside/sub",
        "0:evil",
    ]
    for number, text in enumerate(notes):
        os.symlink(text, bucket.file(f".slipway/staging/{number:032x}"))
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


NOBODY, VICTIM = 65534, 12077


ANNOUNCED, KEPT_OUT = "x" + 31 * "0" + "1", 31 * "0" + "2"


ATTRIBUTES = ("--metadata", "xattr")


def as_nobody(place, script):
    """What a local user does who may write in `place`, and has no other rights."""
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-ec", script]
    subprocess.run(command, cwd=place, check=True, timeout=60)


def of_victim(place, *files):
    """A directory of another user's, which is closed to all others."""
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(KEPT)
    for path in [place, *place.rglob("*")]:
        os.chown(path, VICTIM, VICTIM)
    place.chmod(0o700)


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@only_root
class TestAnotherInThePlaceOfOurOwn:
    """`mv .slipway old; mkdir .slipway`, as whoever may write in a bucket's directory can do."""

    @pytest.fixture
    def open_bucket(self, make_server):
        bucket = Bucket(make_server(*ATTRIBUTES), "lab").create()
        for key in ["a", "priv/cfg", "priv/cfg/below"]:
            bucket.put(key, b"1")
            bucket.put(key, b"2")
        bucket.tree.chmod(0o777)
        bucket.file("priv").chmod(0o700)
        return bucket

    def nothing_is_done(self, bucket, is_untouched):
        """By the sweep and `fsck --repair`, which tell of it."""
        done = sweep(bucket.server.tree)
        assert is_untouched(), done
        told = "chmod +t" in done.stderr
        assert done.returncode == 1 and told, done
        command = [binary(), "fsck", "--min-age", "0", "--repair", bucket.server.tree]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert found.returncode == 1 and "stranger" in found.stdout and "lab/.slipway" in found.stdout, found
        assert is_untouched(), found

    def test_an_announcement_moves_nothing(self, open_bucket):
        as_nobody(
            open_bucket.tree,
            f"mv .slipway old; mkdir -p .slipway/staging/{ANNOUNCED};"
            f"echo x > .slipway/staging/{ANNOUNCED}/.slipway,self;"
            f"ln -s 1:{ANNOUNCED}:priv/planted .slipway/converting",
        )
        self.nothing_is_done(open_bucket, lambda: not open_bucket.file("priv/planted").exists())

    def test_a_note_of_an_exchange_replaces_nothing(self, open_bucket):
        own = open_bucket.file("priv/cfg/.slipway,self")
        inodes = f"{own.parent.stat().st_ino}:{own.stat().st_ino}"
        as_nobody(
            open_bucket.tree,
            f"mv .slipway old; mkdir -p .slipway/staging; echo evil > .slipway/staging/x{KEPT_OUT};"
            f"ln -s {inodes}:priv/cfg .slipway/staging/n{KEPT_OUT}",
        )
        self.nothing_is_done(open_bucket, lambda: own.read_text() == "2")

    @pytest.mark.parametrize("of", ["a user", "the server"])
    def test_what_others_have_is_not_removed(self, open_bucket, of):
        if of == "a user":
            of_victim(open_bucket.file("project"), "staging/deep/thesis", "uploads/u/00001", "completed/c")
        else:
            for key in ["staging/deep/thesis", "uploads/u/00001", "completed/c"]:
                open_bucket.put(f"project/{key}", b"1")
        before = shape(open_bucket.file("project"))
        as_nobody(open_bucket.tree, "mv .slipway old; mv project .slipway")
        self.nothing_is_done(open_bucket, lambda: shape(open_bucket.file(".slipway")) == before)

    def test_nor_with_the_bucket(self, make_server):
        bucket = Bucket(make_server(*ATTRIBUTES), "lab").create()
        bucket.tree.chmod(0o777)
        of_victim(bucket.file("project"), "completed/thesis", "overflow/thesis")
        before = shape(bucket.file("project"))
        as_nobody(bucket.tree, "mv project .slipway")
        expect.error(bucket.raw.delete(bucket.path()), "AccessDenied")
        assert shape(bucket.file(".slipway")) == before

    @pytest.mark.parametrize("metadata", ["xattr", "sidecar"])
    @pytest.mark.parametrize("owner", [0, VICTIM])
    def test_what_looks_like_ours_has_no_mark(self, make_server, metadata, owner):
        """A private directory of the server's user, or of the bucket's owner, with names that the server gives."""
        bucket = Bucket(make_server("--metadata", metadata), "lab").create()
        bucket.put("a", b"1")
        bucket.put("a", b"2")
        staged, upload = 31 * "0" + "7", 47 * "0" + "7"
        of_victim(bucket.file("webapp"), f"staging/{staged}", f"uploads/{upload}/00001", "completed/c")
        for path in [bucket.file("webapp"), *bucket.file("webapp").rglob("*")]:
            os.chown(path, owner, owner)
        os.chown(bucket.tree, owner, owner)
        bucket.tree.chmod(0o777)
        before = shape(bucket.file("webapp"))
        as_nobody(bucket.tree, "mv -nT .slipway old; mv -nT webapp .slipway")
        self.nothing_is_done(bucket, lambda: shape(bucket.file(".slipway")) == before)
        expect.error(bucket.raw.delete(bucket.path()), "BucketNotEmpty")
        for name in ["a", "old"]:
            subprocess.run(["rm", "-rf", bucket.file(name)], check=True)
        expect.error(bucket.raw.delete(bucket.path()), "AccessDenied")
        kept = shape(bucket.file(".slipway"))
        assert all(kept[name] == before[name] for name in before)
        assert "nothing shows that the server made it" in bucket.server.log
        # As the operator does who knows that it is the server's.
        (bucket.file(".slipway/.slipway,own")).touch()
        os.chown(bucket.file(".slipway/.slipway,own"), owner, owner)
        assert sweep(bucket.server.tree).returncode == 0
        assert not bucket.file(f".slipway/staging/{staged}").exists()

    def test_what_others_may_enter_is_used_and_kept(self, open_bucket):
        """What is told of it is what happens."""
        own = open_bucket.file(".slipway")
        own.chmod(0o755)
        open_bucket.put("a", b"3")
        assert open_bucket.read("a") == b"3"
        done = sweep(open_bucket.server.tree)
        assert done.returncode == 1 and "but removes nothing from it" in done.stderr, done
        assert "its contents are ignored" not in done.stderr, done
        command = [binary(), "fsck", open_bucket.server.tree]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "writes go on" in found.stdout and "refused" not in found.stdout, found
        own.chmod(0o700)
        assert sweep(open_bucket.server.tree).returncode == 0

    def test_in_a_sticky_bucket_the_first_to_come_gets_nothing(self, make_server):
        """Until the operator has it out of the way."""
        server = make_server(*ATTRIBUTES)
        bucket = Bucket(server, "lab")
        bucket.tree.mkdir()
        bucket.tree.chmod(0o1777)
        making = "mkdir .slipway; for d in staging locks uploads; do mkdir -m 777 .slipway/$d; done"
        as_nobody(bucket.tree, making)
        bucket.put("a", b"1")
        for _ in range(2):
            expect.error(bucket.raw.put(bucket.path("a"), b"2"), "AccessDenied")
            expect.error(bucket.raw.post(bucket.path("k"), query={"uploads": ""}), "AccessDenied")
        assert bucket.read("a") == b"1"
        assert not any((bucket.tree / ".slipway/staging").iterdir())
        (line,) = [line for line in server.log.splitlines() if "chmod +t" in line]
        assert f"{bucket.tree}/.slipway" in line and f"owner={NOBODY}" in line and "chmod +t" in line, line
        bucket.file(".slipway").rename(bucket.file("theirs"))
        bucket.put("a", b"3")
        as_nobody(bucket.tree, "! mv .slipway old 2>/dev/null")
        assert bucket.read("a") == b"3"

    def test_what_the_bucket_s_owner_has_counts(self, make_server):
        """Of tools that root runs, and of who served it before."""
        bucket = Bucket(make_server(*ATTRIBUTES), "lab").create()
        bucket.put("a", b"1")
        bucket.put("a", b"2")
        for path in [bucket.tree, *bucket.tree.rglob("*")]:
            os.chown(path, VICTIM, VICTIM)
        bucket.put("a", b"3")
        assert bucket.read("a") == b"3"
        assert sweep(bucket.server.tree).returncode == 0


@only_root
class TestAnotherNamedAsWhatIsSetAside:
    """`mv thesis .slipway,deleting,,x`, as whoever may write in DIR can do."""

    @pytest.mark.parametrize("metadata", ["xattr", "sidecar"])
    @pytest.mark.parametrize(
        "name", [".slipway,deleting,,x", ".slipway,deleting,lab,{},x", ".slipway,deleting,gone,1,x"]
    )
    @pytest.mark.parametrize("marked", [False, True])
    def test_what_others_have_stays(self, make_server, metadata, name, marked):
        server = make_server("--metadata", metadata)
        bucket = Bucket(server, "lab").create()
        bucket.put("a", b"1")
        bucket.put("a", b"2")
        tree = server.tree
        tree.chmod(0o777)
        name = name.format(identity(bucket.tree))
        of_victim(tree / "project", "uploads/thesis", "locks/2a")
        if marked:
            # As who owns it could, and has others' things in it.
            os.setxattr(tree / "project", "user.slipway.own", name.encode())
        before = shape(tree / "project")
        as_nobody(tree, f"mv project {name}")
        for _ in range(2):
            done = sweep(tree)
            assert (
                done.returncode == 1
                and "a name of the form that the server gives to temporary" in done.stderr
            ), done
            assert shape(tree / name) == before
        command = [binary(), "fsck", "--min-age", "0", "--repair", tree]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert found.returncode == 1 and f"stranger: {tree / name}: " in found.stdout, found
        assert shape(tree / name) == before
        # Nor does it keep a bucket from being deleted.
        expect.ok(bucket.delete("a"), 204)
        expect.ok(bucket.raw.delete(bucket.path()), 204)
        assert shape(tree / name) == before

    def test_a_sticky_directory(self, make_server):
        """In which its owner alone can rename it."""
        tree = make_server().tree
        tree.chmod(0o1777)
        as_nobody(tree, "mkdir -p own/uploads/u; mv own .slipway,deleting,,x")
        assert sweep(tree).returncode == 1
        assert (tree / ".slipway,deleting,,x/uploads/u").exists()
        as_nobody(tree, "mkdir .slipway,deleting,,y")
        sweep(tree)
        assert not (tree / ".slipway,deleting,,y").exists()


def test_no_name_begins_a_line_of_the_log(make_server):
    """Of a directory that a client made, with a line break in its key."""
    server = make_server("--metadata", "sidecar")
    bucket = Bucket(server, "lab").create()
    directory = "x\n2026-01-01T00:00:00.000000Z ERROR forged: owner=0 \x1b[31m"
    bucket.put(f"{directory}/a", b"1")
    bucket.file(f"{directory}/.slipway,records/a").write_bytes(b"")
    expect.error(bucket.raw.put(bucket.path(f"{directory}/a"), b"2"), "AccessDenied")
    log = server.log
    assert (
        "expects the record of an object at this path" in log
        and 'forged: owner=0 \\u{1b}[31m/.slipway,records/a"' in log
    ), log
    assert not any(line.startswith("2026-01-01") for line in log.splitlines()) and "\x1b[31m" not in log, log


def test_a_link_in_a_bucket_leads_no_start_anywhere(make_server, tmp_path):
    """Where it is looked whether a bucket was served by itself."""
    inner = make_server(tree=tmp_path / "inner")
    inner.stop()
    tree = tmp_path / "tree"
    for name in ["linked", "served", "fifo-in-it"]:
        (tree / name).mkdir(parents=True)
    os.symlink(inner.tree / ".slipway", tree / "linked" / ".slipway")
    shutil.copytree(inner.tree / ".slipway", tree / "served" / ".slipway")
    (tree / "fifo-in-it" / ".slipway").mkdir()
    os.mkfifo(tree / "fifo-in-it" / ".slipway" / "account.toml")
    log = make_server(tree=tree).log
    (line,) = [line for line in log.splitlines() if "as its own DIR" in line]
    assert '"served"' in line and "count=1 " in line, line


@only_root
class TestAnotherInThePlaceOfRecords:
    @pytest.fixture
    def bucket(self, make_server):
        bucket = Bucket(make_server("--metadata", "sidecar"), "lab").create()
        bucket.put("d/a", b"1")
        bucket.file("d").chmod(0o777)
        return bucket

    @pytest.mark.parametrize("owner", [VICTIM, 0])
    def test_what_is_no_record_is_neither_replaced_nor_removed(self, bucket, owner):
        of_victim(bucket.file("d/v"), "a", "b")
        # Neither a record nor what a newer version may have written, with which the object would
        # stay.
        bucket.file("d/v/a").write_text("\0" + KEPT)
        for path in [bucket.file("d/v"), *bucket.file("d/v").iterdir()]:
            os.chown(path, owner, owner)
        before = shape(bucket.file("d/v"))
        as_nobody(bucket.file("d"), "mv .slipway,records old; mv v .slipway,records")
        expect.error(bucket.raw.put(bucket.path("d/b"), b"2"), "AccessDenied")
        expect.ok(bucket.delete("d/a"), 204)
        sweep(bucket.server.tree)
        assert shape(bucket.file("d/.slipway,records")) == before
        assert not bucket.file("d/a").exists()

    def test_what_may_be_a_file_of_root_s_is_no_torn_record(self, bucket):
        """Root's directory, renamed: with a flag, an image and a binary."""
        place = bucket.file("d/conf")
        place.mkdir(mode=0o700)
        for name, content in [("flag", b""), ("zeros", bytes(100)), ("bin", b"\1\2binary"), ("first", b"\2")]:
            (place / name).write_bytes(content)
        with open(place / "image", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 64 << 20)
            os.pwrite(file.fileno(), b"data", 50_000_000)
        before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in place.iterdir()}
        as_nobody(bucket.file("d"), "mv .slipway,records old; mv conf .slipway,records")
        for name in before:
            expect.error(bucket.raw.put(bucket.path(f"d/{name}"), b"2"), "AccessDenied")
            bucket.file(f"d/{name}").write_text("x")
            expect.error(bucket.raw.put(bucket.path(f"d/{name}"), b"2"), "AccessDenied")
            bucket.raw.delete(bucket.path(f"d/{name}"))
        sweep(bucket.server.tree)
        place = bucket.file("d/.slipway,records")
        assert {
            path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in place.iterdir()
        } == before
        assert f"{place}/flag" in bucket.server.log

    def test_a_damaged_record_is_replaced(self, bucket):
        """One that has the form of a record, and what is no longer understood in it."""
        record = bucket.file("d/.slipway,records/a")
        content = record.read_bytes()
        record.write_bytes(content[:40] + bytes(len(content) - 40))
        bucket.put("d/a", b"2", headers={"x-amz-meta-m": "1"})
        assert bucket.head("d/a").headers["x-amz-meta-m"] == "1"


@only_root
def test_an_account_that_someone_else_keeps(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.chmod(0o1777)
    as_nobody(tree, "mkdir -m 777 .slipway; echo 'account_id = \"111122223333\"' > .slipway/account.toml")
    with pytest.raises(StartFailed, match="no other user may write"):
        make_server()
    for owner, mode in [(0, 0o777), (NOBODY, 0o700)]:
        os.chown(tree / ".slipway", owner, owner)
        (tree / ".slipway").chmod(mode)
        with pytest.raises(StartFailed, match="no other user may write"):
            make_server()
    os.chown(tree / ".slipway", 0, 0)
    assert make_server().account == "111122223333"


MADE = b"\x01\x11\x01\x01"


@only_root
@pytest.mark.parametrize("mode, owner", [(0o777, 0), (0o2777, 0), (0o755, NOBODY)])
def test_a_mark_that_someone_set_has_no_directory_removed(make_server, mode, owner):
    """Who may write in a directory can say that a PUT made it, and who could not remove it stays so."""
    server = make_server(*ATTRIBUTES)
    bucket = Bucket(server, "lab").create()
    shared = bucket.file("shared")
    shared.mkdir()
    shared.chmod(mode)
    os.chown(shared, owner, owner)
    number = shared.stat().st_ino
    as_nobody_sets(shared, MADE)

    def is_untouched():
        return shared.stat().st_ino == number and shared.stat().st_mode & 0o7777 == mode

    bucket.put("shared/x", b"1")
    expect.ok(bucket.delete("shared/x"), 204)
    assert is_untouched()
    bucket.put("shared/below/x", b"1")
    expect.ok(bucket.delete("shared/below/x"), 204)
    assert is_untouched() and not any(shared.iterdir())
    assert sweep(server.tree).returncode == 0
    assert is_untouched()
    command = [binary(), "fsck", "--min-age", "0", "--repair", server.tree]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "empty-directory" not in done.stdout, done
    assert is_untouched()


def as_nobody_sets(place, mark):
    """By a descriptor, since the directories above may be closed to others."""
    descriptor = os.open(place, os.O_RDONLY)
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.setxattr(descriptor, "user.slipway", mark)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0


@only_root
@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077])
def test_directories_of_a_put_go_with_their_last_object_by_any_umask(make_server, mask):
    before = os.umask(mask)
    try:
        server = make_server(*ATTRIBUTES)
    finally:
        os.umask(before)
    bucket = Bucket(server, "lab").create()
    bucket.put("a/b/c", b"1")
    assert bucket.file("a/b").stat().st_mode & 0o777 == 0o777 & ~mask
    expect.ok(bucket.delete("a/b/c"), 204)
    assert not bucket.file("a").exists()


def test_a_record_that_is_not_understood_fills_no_log(make_server):
    """Its file's owner can write it, and who may only read can ask for it as often as they like."""
    server = make_server(*ATTRIBUTES)
    bucket = Bucket(server, "lab").create()
    bucket.put("key", b"1")
    os.setxattr(bucket.file("key"), "user.slipway", b"\x09")
    for _ in range(60):
        expect.error(bucket.get("key"), "AccessDenied")
    lines = [line for line in server.log.splitlines() if "newer version" in line]
    assert lines and not [line for line in lines if " ERROR " in line], lines
    assert len(lines) < 50, lines
