"""`--impersonate`: whose each file call is. Below a bucket each is the requester's, with its ids and groups, and in
`.slipway` each is the gateway's; the kernel tells it of each call (`support/callers`)."""

import os
import re
import threading
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
from faults.cases import CASES, Case

from support import expect
from support.bucket import Bucket
from support.callers import Callers, MadeCall
from support.data import PART, pattern
from support.faultlayer import is_supported
from support.impersonation import ANN, BOB, ENV, GROUP, ROOT_IDS, Scene
from support.registry import Registry
from support.server import SIDECARS, Server
from support.sigv4 import Signer
from support.wire import RawClient, poll

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
    pytest.mark.skipif(not is_supported(), reason="the filter knows the call numbers of x86-64 only"),
]
GATEWAY = (0, 0)
LONG = pattern(PART)
# The sweep acts as the gateway everywhere. The next one comes after hours.
SWEPT = r"^slipway_last_sweep_timestamp_seconds [1-9]"
# A file that becomes a directory is refused (501), and so are versions.
NOT_SERVED = ("file-becomes-directory", "overwrite-file-in-directory")
SERVED = [case for case in CASES if case.name not in NOT_SERVED and not case.keeps_versions]


@pytest.fixture
def callers() -> Callers:
    return Callers()


@pytest.fixture
def server(make_server, tmp_path, callers) -> Server:
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.chmod(0o755)
    # Flushes and their order are a part of what is done.
    options = ("--impersonate", "--durability", "full", "--ops-listen", "127.0.0.1:0")
    server = make_server(*options, tree=tree, env=ENV, faults=callers)
    poll(lambda: re.search(SWEPT, metrics(server), re.MULTILINE), 20)
    return server


def metrics(server: Server) -> str:
    with urllib.request.urlopen(f"{server.operations}/metrics", timeout=10) as answer:
        return answer.read().decode()


def zone(server: Server, call: MadeCall) -> tuple[str, str]:
    """Whose a name is, and the bucket; "" for what is none's."""
    try:
        first, *rest = Path(call.path).relative_to(server.tree.resolve()).parts or ("",)
    except ValueError:
        return "", ""
    if first == "" or first.startswith("."):
        return ("gateway" if first else ""), ""
    if not rest:
        # The gateway makes and removes it; all look it up.
        return "", first
    return ("gateway" if rest[0] == ".slipway" else "user"), first


def wrong(server: Server, made: list[MadeCall], user: tuple[int, ...]) -> list[str]:
    """The calls that somebody else made than should have."""
    uid, gid, *groups = user
    users = (uid, gid, tuple(groups))
    found = []
    for call in made:
        whose, _ = zone(server, call)
        by = (call.uid, call.gid, call.groups)
        # The gateway's own are made with whatever groups the thread has: the superuser needs none.
        right = by == users if whose == "user" else by[:2] == GATEWAY if whose == "gateway" else True
        if not right:
            found.append(f"{call.name} {call.path} by {by}: it is the {whose}'s")
    return found


@pytest.mark.parametrize("case", SERVED, ids=lambda case: case.name)
def test_each_kind_of_request(server, callers, case: Case):
    """Those that meet faults (`faults/cases`), by root's key, which acts as a user, too."""
    bucket = Bucket(server, "lab")
    made_before = None
    if not case.no_bucket:
        bucket.create()
        made_before = case.prepare(bucket)
    with callers.taken() as made:
        response = case.request(bucket, made_before)
        assert response.status in (200, 204), response
    counts = Counter((zone(server, call)[0], call.name, call.uid) for call in made)
    print(case.name, *(f"\n    {of} {count}" for of, count in sorted(counts.items())))
    assert not (found := wrong(server, made, ROOT_IDS)), "\n".join(found)
    assert any(zone(server, call)[0] for call in made)


class Person:
    """Who asks for all kinds of things below a directory of its own."""

    def __init__(self, server: Server, name: str, signer: Signer) -> None:
        self.server, self.name, self.signer = server, name, signer

    @property
    def raw(self) -> RawClient:
        return self.server.raw.with_(signer=self.signer)

    @property
    def tree(self) -> Path:
        return self.server.tree

    def work(self) -> None:
        bucket, mine = Bucket(self, "lab"), self.name
        for key, body in (
            (f"{mine}/a", b"1"),
            (f"{mine}/b", LONG),
            (f"{mine}/d/e/f", b"2"),
            (f"{mine}/g/", b""),
        ):
            for _ in range(2):
                bucket.put(key, body)
            assert bucket.read(key) == body and bucket.head(key).status == 200
        bucket.put(f"{mine}/large", b"3", headers={f"x-amz-meta-{n}": "x" * 180 for n in range(10)})
        for source in ("a", "b", "large"):
            copied = {"x-amz-copy-source": f"lab/{mine}/{source}"}
            expect.ok(bucket.raw.put(bucket.path(f"{mine}/copy/{source}"), headers=copied))
        assert len(bucket.keys(prefix=f"{mine}/")) == 8
        assert bucket.page(prefix=f"{mine}/", delimiter="/")["KeyCount"] == "6"
        bucket.upload(f"{mine}/u/uploaded", [LONG[:PART], b"end"])
        begun = bucket.create_upload(f"{mine}/a")
        expect.ok(bucket.put_part(f"{mine}/a", begun, 1, b"1"))
        expect.ok(bucket.raw.get(bucket.path(f"{mine}/a"), query={"uploadId": begun}))
        expect.ok(bucket.raw.get(bucket.path(), query={"uploads": "", "prefix": f"{mine}/"}))
        expect.ok(bucket.abort(f"{mine}/a", begun), 204)
        expect.error(bucket.get(f"{mine}/none"), "NoSuchKey")
        expect.ok(bucket.delete_many(f"{mine}/a", f"{mine}/copy/a", f"{mine}/none"))
        for key in ("b", "d/e/f", "g/", "large", "copy/b", "copy/large", "u/uploaded"):
            expect.ok(bucket.delete(f"{mine}/{key}"), 204)


def test_two_users_at_once(server, callers):
    with Registry(server.tree, server.account) as registry:
        scene = Scene(server, registry)
        people = {}
        for name, ids in (("one", ANN), ("two", BOB)):
            people[name] = (Person(server, name, scene.signer(name, *ids)), ids)
            scene.file(name).mkdir()
            scene.give(scene.file(name), ids[0], GROUP, 0o2770)
        failed: list[str] = []

        def work(person: Person) -> None:
            try:
                for _ in range(3):
                    person.work()
            except Exception as error:
                failed.append(f"{person.name}: {type(error).__name__}: {error}")

        with callers.taken() as made:
            threads = [threading.Thread(target=work, args=(person,)) for person, _ in people.values()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
    assert not failed
    found = []
    for name, (_, ids) in people.items():
        mine = [call for call in made if scene.file(name) in (Path(call.path), *Path(call.path).parents)]
        assert len(mine) > 200
        found += wrong(server, mine, ids)
    own = [call for call in made if zone(server, call)[0] == "gateway"]
    assert len(own) > 200
    found += wrong(server, own, ANN)
    assert not found, "\n".join(found[:20])
    both = {call.uid for call in made if zone(server, call)[0] == "user"}
    assert both == {ANN[0], BOB[0]}, both
