"""`--impersonate` under load: nobody gets what is another's, and nothing is made in another's name.

Eight users share 64 connections: who signs is another from one request to the next, on each of them. What a user may do
is worked out here from owner, mode and groups, of which two users' change all the time. An answer that gives more is a
leak; one that refuses what is allowed was made as somebody else, too."""

import os
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.impersonation import ENV, Scene, owner
from support.registry import Registry
from support.server import SIDECARS
from support.sigv4 import Signer
from support.wire import Response

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
]

CONNECTIONS = 64
SECONDS = float(os.environ.get("SLIPWAY_IMPERSONATION_SECONDS", "5"))
FIRST, RED, BLUE = 12300, 12400, 12401
# Supplementary groups. Those of `fay` and `gus` change; `hal` has as many as NFS takes, and more.
GROUPS = {
    "ada": (RED,),
    "ben": (RED,),
    "cyd": (BLUE,),
    "dan": (BLUE, RED),
    "eli": (),
    "fay": (RED,),
    "gus": (),
    "hal": (*range(12500, 12530), BLUE),
}
CHANGES = [(RED,), (), (BLUE,), (RED, BLUE)]
CHANGE_SECONDS = 1.5
# A change counts at the gateway within a second; on a busy machine later.
CHANGE_COUNTS_SECONDS = 10
# Sizes that are read in other ways, with how often.
SIZES = {1: 20, 4000: 20, 200_000: 8, 3 << 20: 1}
KINDS = {"own": (0o600, None), "red": (0o640, RED), "blue": (0o640, BLUE)}


@dataclass
class User:
    name: str
    uid: int
    signer: Signer
    # The sets of groups that it may have now, each until a time.
    groups: list[tuple[float, frozenset[int]]] = field(default_factory=list)

    def become(self, groups: tuple[int, ...]) -> None:
        """It will have these groups; those of before count for a while."""
        now = time.monotonic()
        before = [
            (min(until, now + CHANGE_COUNTS_SECONDS), held) for until, held in self.groups if until > now
        ]
        self.groups = [*before, (float("inf"), frozenset(groups))]

    def may_have(self, group: int | None, since: float) -> set[bool]:
        """Whether it was in a group at some time since then."""
        return {group in held for until, held in self.groups if until > since}


@dataclass
class Load:
    scene: Scene
    users: dict[str, User]
    end: float
    found: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def connection(self, number: int) -> None:
        try:
            Worker(self, number).run()
        except Exception as error:
            self.found.append(f"connection {number}: {type(error).__name__}: {error}")

    def is_over(self) -> bool:
        return bool(self.found) or time.monotonic() > self.end

    def count(self, what: str) -> None:
        # Of one thread for each name: see `Worker`.
        self.counts[what] = self.counts.get(what, 0) + 1


class Worker:
    """The requests of one connection."""

    def __init__(self, load: Load, number: int) -> None:
        self.load, self.number = load, number
        self.choose = random.Random(number)
        self.raw = load.scene.server.raw
        self.rounds = 0

    def run(self) -> None:
        actions = [
            (self.read, 70),
            (self.list, 8),
            (self.write, 10),
            (self.write_shared, 10),
            (self.upload, 2),
        ]
        with self.raw.connect() as self.wire:
            while not self.load.is_over():
                self.rounds += 1
                user = self.load.users[self.choose.choice(list(self.load.users))]
                self.choose.choices([a for a, _ in actions], [share for _, share in actions])[0](user)

    def ask(self, user: User, method: str, key: str | None, body: bytes = b"", **options) -> Response:
        path = "/lab" if key is None else f"/lab/{key}"
        while True:
            answer = self.raw.request(
                method, path, body=body, signer=user.signer, connection=self.wire, **options
            )
            self.load.count(f"{self.number} {answer.status}")
            if answer.status != 503:
                return answer
            time.sleep(0.05)

    def expect(self, answer: Response, allowed: set[bool], what: str) -> bool:
        """Whether it was allowed, which has to be one of these."""
        if answer.status not in (200, 204, 403):
            self.load.found.append(f"{what}: {answer}")
            return False
        if (answer.status != 403) not in allowed:
            self.load.found.append(f"{what}: {answer.status}, though {allowed} is right")
        return answer.status != 403

    def read(self, user: User) -> None:
        whose = self.load.users[self.choose.choice(list(self.load.users))]
        kind = self.choose.choice(list(KINDS))
        size = self.choose.choices(list(SIZES), list(SIZES.values()))[0]
        method = self.choose.choice(("GET", "GET", "HEAD"))
        since = time.monotonic()
        answer = self.ask(user, method, f"{whose.name}/{kind}-{size}")
        allowed = {True} if user is whose else user.may_have(KINDS[kind][1], since)
        what = f"{user.name} reads {kind}-{size} of {whose.name} ({method})"
        if (
            self.expect(answer, allowed, what)
            and method == "GET"
            and answer.body != content(whose, kind, size)
        ):
            self.load.found.append(f"{what}: other bytes")

    def list(self, user: User) -> None:
        whose = self.load.users[self.choose.choice(list(self.load.users))]
        query = {"list-type": "2", "prefix": f"{whose.name}/closed/"}
        answer = self.ask(user, "GET", None, query=query)
        what = f"{user.name} lists what {whose.name} keeps closed"
        if self.expect(answer, {user is whose}, what) and b"closed/secret" not in answer.body:
            self.load.found.append(f"{what}: it is not there")

    def write(self, user: User) -> None:
        """In a directory where its owner alone may write."""
        whose = (
            user if self.choose.random() < 0.5 else self.load.users[self.choose.choice(list(self.load.users))]
        )
        key = f"{whose.name}/by-{self.number}"
        body = user.name.encode() * self.choose.choice((1, 100_000))
        answer = self.ask(user, "PUT", key, body)
        what = f"{user.name} writes {key}"
        if self.expect(answer, {user is whose}, what):
            self.look(key, user, what)
            if self.choose.random() < 0.3:
                other = self.load.users[self.choose.choice(list(self.load.users))]
                what = f"{other.name} deletes {key}"
                # Whoever may not read it does not delete it, as its record may forbid that.
                self.expect(self.ask(other, "DELETE", key), {other is whose}, what)

    def write_shared(self, user: User) -> None:
        """In one where all may, and nobody removes what is another's (its sticky bit)."""
        key = f"shared/{self.number}-{self.rounds}"
        what = f"{user.name} writes {key}"
        if self.expect(self.ask(user, "PUT", key, user.name.encode()), {True}, what):
            self.look(key, user, what)
        other = self.load.users[self.choose.choice(list(self.load.users))]
        what = f"{other.name} deletes {key} of {user.name}"
        if not self.expect(self.ask(other, "DELETE", key), {other is user}, what):
            self.expect(self.ask(user, "DELETE", key), {True}, f"{user.name} deletes {key}")

    def upload(self, user: User) -> None:
        """Of two halves of one file, begun by one and tried by another between."""
        key = f"{user.name}/upload-{self.number}"
        answer = self.ask(user, "POST", key, query={"uploads": ""})
        if not self.expect(answer, {True}, f"{user.name} begins an upload"):
            return
        upload = answer.xml["UploadId"]
        part = {"partNumber": "1", "uploadId": upload}
        other = self.load.users[self.choose.choice(list(self.load.users))]
        if other is not user:
            self.expect(
                self.ask(other, "PUT", key, b"foreign", query=part), {False}, f"{other.name} at {key}"
            )
        etag = self.ask(user, "PUT", key, user.name.encode() * 30_000, query=part).etag
        document = (
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
            f"<ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        )
        answer = self.ask(user, "POST", key, document.encode(), query={"uploadId": upload})
        if self.expect(answer, {True}, f"{user.name} completes {key}"):
            self.look(key, user, f"{user.name}'s upload {key}")

    def look(self, key: str, user: User, what: str) -> None:
        """At the file of a key that this connection alone writes."""
        path = self.load.scene.file(key)
        if owner(path) != (user.uid, user.uid):
            self.load.found.append(f"{what}: the file belongs to {owner(path)}")


def content(whose: User, kind: str, size: int) -> bytes:
    """What no other file has."""
    text = f"{whose.name} {kind} ".encode()
    return (text * (size // len(text) + 1))[:size] if size > 1 else text[:1]


def furnish(scene: Scene, user: User) -> None:
    """A directory of a user's, with files for itself, for each of two groups, and a closed directory."""
    raw = scene.server.raw

    def put(key: str, body: bytes) -> Path:
        answer = raw.put(f"/lab/{user.name}/{key}", body, signer=user.signer)
        assert answer.status == 200, answer
        assert owner(scene.file(f"{user.name}/{key}")) == (user.uid, user.uid)
        return scene.file(f"{user.name}/{key}")

    for kind, (mode, group) in KINDS.items():
        for size in SIZES:
            scene.give(put(f"{kind}-{size}", content(user, kind, size)), user.uid, group or user.uid, mode)
    put("closed/secret", b"1").parent.chmod(0o700)
    scene.file(user.name).chmod(0o755)


def change_groups(load: Load, registry: Registry) -> None:
    choose = random.Random(0)
    while not load.is_over():
        user = load.users[choose.choice(("fay", "gus"))]
        groups = choose.choice(CHANGES)
        user.become(groups)
        registry.do("set-posix", user.name, *map(str, (user.uid, user.uid, *groups)))
        # From now on, the change counts.
        user.become(groups)
        time.sleep(CHANGE_SECONDS if choose.random() < 0.8 else CHANGE_COUNTS_SECONDS * 1.5)


def test_users_that_alternate_get_what_is_theirs_alone(make_server, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.chmod(0o755)
    server = make_server("--impersonate", "--durability", "none", tree=tree, env=ENV)
    with Registry(server.tree, server.account) as registry:
        scene = Scene(server, registry)
        scene.bucket.chmod(0o1777)
        users = {}
        for number, (name, groups) in enumerate(GROUPS.items()):
            uid = FIRST + number
            signer = scene.signer(name, uid, uid, *groups)
            users[name] = User(name, uid, signer)
            users[name].become(groups)
            furnish(scene, users[name])
        shared = scene.file("shared")
        shared.mkdir()
        shared.chmod(0o1777)
        load = Load(scene, users, time.monotonic() + SECONDS)
        threads = [threading.Thread(target=load.connection, args=(number,)) for number in range(CONNECTIONS)]
        threads.append(threading.Thread(target=change_groups, args=(load, registry)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS + 120)
    assert not load.found, f"{len(load.found)}: {load.found[:10]}"
    answers = {}
    for what, count in load.counts.items():
        status = what.split()[1]
        answers[status] = answers.get(status, 0) + count
    print(f"{SECONDS:.0f} s, {CONNECTIONS} connections: {sum(answers.values())} answers {answers}")
    assert answers["200"] > SECONDS * 10 and answers["403"] > SECONDS * 5, answers
    for above, directories, files in os.walk(scene.bucket):
        directories[:] = [name for name in directories if name != ".slipway"]
        for name in files:
            assert owner(Path(above) / name)[0] != 0, name
