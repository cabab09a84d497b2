"""Fixtures. Every worker has one server for the session; tests that need other options start their own."""

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from file_systems import mounts

from support import codes, expect, tables
from support.bucket import Bucket, unique_bucket_name
from support.clients import boto3_client
from support.identities import master_key
from support.impersonation import Scene, scene_in
from support.server import DOMAIN, Server, assert_nothing_staged, remove_tree
from support.wire import RawClient

_seen_file = pytest.StashKey[Path]()
_unseen = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", action="store_true", help="every fault at every call in tests/faults")
    parser.addoption("--impersonate", action="store_true", help="tests/faults with --impersonate")
    parser.addoption("--slow", action="store_true", help="also run tests marked slow (several GiB, minutes)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes gigabytes or minutes; only run with --slow")
    if not hasattr(config, "workerinput"):
        config.stash[_seen_file] = Path(tempfile.mkdtemp(prefix="slipway-tests-")) / "codes"
        codes.record_in(config.stash[_seen_file])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes gigabytes or minutes; ./test --slow runs it"))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """After a whole run, every error code must have been seen, or be excused."""
    config = session.config
    remove_links(config)
    if hasattr(config, "workerinput"):
        return
    seen = codes.seen_in(config.stash[_seen_file])
    shutil.rmtree(config.stash[_seen_file].parent)
    whole_run = [Path(arg).resolve() for arg in config.args] == [Path(__file__).parent]
    if not whole_run or config.option.keyword or config.option.markexpr:
        return
    config.stash[_unseen] = sorted(set(tables.error_codes()) - seen - set(codes.NOT_TRIGGERED))
    if exitstatus == pytest.ExitCode.OK and config.stash[_unseen]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def remove_links(config: pytest.Config) -> None:
    """sshfs does not let anyone read the absolute links that pytest makes to its directories, at which pytest itself trips."""
    basetemp = config.getoption("basetemp", None)
    for link in Path(basetemp).glob("*current") if basetemp else []:
        if link.is_symlink():
            link.unlink()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_unseen, None):
        terminalreporter.section("FAILED: error codes that no test brought about", red=True)
        terminalreporter.line(", ".join(config.stash[_unseen]))


@pytest.fixture(scope="session")
def session_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tree")


@pytest.fixture(scope="session")
def server(session_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that most tests share, with default options."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    running = Server(session_tree, "--domain", DOMAIN, log=log)
    yield running
    status = running.stop()
    remove_tree(session_tree)
    assert "panicked" not in running.log, running.log
    assert status == 0, running.log


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the tests of attacks. It has a master key, so that there are users, roles and sessions, which
    tests make under names of their own (`support/intruders`)."""
    folder = tmp_path_factory.mktemp("guarded")
    tree = folder / "tree"
    tree.mkdir()
    options = ("--durability", "none", "--master-key-file", str(master_key(folder)))
    running = Server(tree, *options, log=folder / "server.log")
    yield running
    status = running.stop()
    remove_tree(tree)
    assert "panicked" not in running.log, running.log
    assert status == 0, running.log


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts further servers: `make_server("--option", ..., tree=..., env=...)`. They end with the test."""
    started: list[Server] = []

    def start(*options: str, tree: Path | str | None = None, **more) -> Server:
        if tree is None:
            tree = tmp_path / "tree"
            tree.mkdir(exist_ok=True)
        started.append(Server(tree, *options, log=tmp_path / f"server-{len(started)}.log", **more))
        return started[-1]

    yield start
    # On FUSE, what one of them has open can't be removed from a tree that they share.
    for running in started:
        running.stop()
    for running in started:
        remove_tree(running.tree)
        assert "panicked" not in running.log, running.log


@pytest.fixture
def own_server(make_server) -> Server:
    """One for this test alone, which flushes nothing: for what loads a server."""
    return make_server("--durability", "none")


@pytest.fixture
def scene(make_server, tmp_path) -> Iterator[Scene]:
    """A server that acts as its users, and three of these."""
    with scene_in(tmp_path, make_server) as found:
        yield found


@pytest.fixture
def raw(server: Server) -> RawClient:
    return server.raw


@pytest.fixture(scope="session")
def s3(server: Server):
    """A boto3 client with path-style addresses."""
    return boto3_client(server)


@pytest.fixture(params=["never there", "known and gone"])
def no_bucket(server: Server, request: pytest.FixtureRequest) -> None:
    """There is no bucket `no-such-bucket`: there never was, or the server knew it before a person removed it."""
    if request.param == "known and gone":
        bucket = Bucket(server, "no-such-bucket").create()
        for _ in range(3):
            expect.error(bucket.get("key"), "NoSuchKey")
            # Until a change would show in times.
            time.sleep(0.03)
        remove_tree(server.tree / bucket.name)


@pytest.fixture
def make_bucket(server: Server, request: pytest.FixtureRequest) -> Iterator[Callable[[], Bucket]]:
    """Makes buckets on the session's server. Whatever a test does, no staging file may be left in them."""
    made: list[Bucket] = []

    def make() -> Bucket:
        made.append(Bucket(server, unique_bucket_name(request.node.name)).create())
        return made[-1]

    yield make
    for bucket in made:
        assert_nothing_staged(bucket.tree)
        remove_tree(bucket.tree)
        # A person who removes a directory leaves its policy, which fsck reports.
        (server.tree / ".slipway" / "buckets" / bucket.name).unlink(missing_ok=True)


@pytest.fixture
def bucket(make_bucket: Callable[[], Bucket]) -> Bucket:
    return make_bucket()


@pytest.fixture
def resolve_test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets names below `.test` mean this machine."""
    real = socket.getaddrinfo

    def getaddrinfo(host, *arguments, **options):
        return real("127.0.0.1" if str(host).endswith(".test") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(scope="session")
def passthrough(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of our own file system."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount it for others")
    try:
        return mounts.build_passthrough(tmp_path_factory.mktemp("program"))
    except mounts.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def show(passthrough: Path, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a directory, always the same, by that program: `show("--no-links")`, or where `at` says. Until the
    test ends; a server whose tree it is has to be asked for later (`show, make_server`), to end before."""
    under = tmp_path / "under"
    under.mkdir()
    with ExitStack() as stack:

        def mounted(*options: str, at: Path | None = None) -> Path:
            target = at or tmp_path / f"shown{len(list(tmp_path.iterdir()))}"
            target.mkdir(exist_ok=True)
            mounts.mount_passthrough(passthrough, stack, under, target, *options)
            return target

        yield mounted
