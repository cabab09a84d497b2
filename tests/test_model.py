"""Random operations of 1 to 8 clients through 2 or 3 gateways, and by hand, compared with a dictionary.

A walk is a row of rounds. In each, up to eight clients start at once, with one to three requests each,
through gateways drawn by chance, on a few keys that are related (`k`, `k/`, `k/a`, ...: independent objects,
whose files share directories and become directories). When all have ended, the state is looked at: a full
listing through every gateway, GET and HEAD of every key that was in the round through every gateway, then
listings with a delimiter, a prefix, small pages. All that was answered, in the round and after it, must be
explained.

What explains it. Objects are registers, so linearizability is decided key by key (it is a local property):
for each key there must be one order of what was done to it, in which nothing comes before what had ended
before it began, and in which every answer is the one that a dictionary gives. `support/history` searches for
that order, and so finds out the state for the next round. In particular

- of writes with `If-None-Match: *` or `If-Match` as many succeed as there is an order for; 412 and 404 need
  a moment to be true in;
- a GET (whole or a range), HEAD, or entry of a listing is one version, with its own bytes, length, ETag and
  metadata, one that was there while it ran. Every write has its own bytes (unless it is empty) and its own
  `x-amz-meta-writer`;
- a listing says of each key below its prefix that it is there or is not, at some moment while the listing
  ran. Keys that were not touched in the round leave no choice. A common prefix needs a key below it that can
  have been there. A listing is no snapshot: nothing is asked of two keys together;
- DeleteObjects is one DELETE for each key, in no order. CopyObject reads the source and later writes the
  target, two steps: which version it took, its ETag tells. Completes of one upload by several clients, and
  aborts, write at most once, and agree: who comes second waits for the first. A Complete with a condition
  also needs the key to have what it had when its upload was created, else it is answered 409;
- 409 is for nothing else; 5xx is never an answer.

By hand, with plain calls in the tree, while clients are at work in the same directories:

- create, replace (rename of a file into place), rm, mv of files and directories, mkdir, rmdir are single
  steps of the file system: reads and listings at the same time must be explained as for any write. Gateways
  never write those keys in a round: a file user takes no lock, so that what a condition was compared with
  may be gone, and the last one wins. That is as it must be, and nothing to test;
- writing to a file in place is not one step. It is done to keys that are not read in the round. Listings
  have to show the key; which length and ETag they give is not looked at before the writing is done;
- edit, rm and mv of files that gateways wrote are rounds of their own: what they do to S3's view is defined,
  races of them with writes of the same key are not.

The seed is in the test's name and in every failure. The same seed draws the same rounds as long as races end
the same way; timing is not repeated.

    ./test --tests-only tests/test_model.py
    SLIPWAY_MODEL_SEED=17 SLIPWAY_MODEL_ROUNDS=2000 ./test --tests-only tests/test_model.py
    ./test --tests-only --slow tests/test_model.py         # also 2000 rounds of a new seed (minutes)
"""

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from file_systems.probes import removed_while_open

from support import expect
from support.actors import Client, CopyMade, Listing, New, Person, listed
from support.bucket import Bucket
from support.history import State, Step, Version, etag_of, etag_of_parts, explain
from support.model import list_page
from support.server import LINGERING, MAKER, RECORDS, assert_nothing_staged, by_other_mount, remove_tree
from support.wire import poll

SEEDS = [int(seed) for seed in os.environ.get("SLIPWAY_MODEL_SEED", "1 2 3").split()]
ROUNDS = int(os.environ.get("SLIPWAY_MODEL_ROUNDS", "20"))
SLOW_ROUNDS = 2000
CLIENTS = 8
# Few components, so that files, directories, directory objects and escaped names meet all the time.
COMPONENTS = ["a", "a", "b", "b", "", ".", "..", ".slipway", "n" * 256, "é"]
PLAIN = {"a", "b", "é"}
# What a person calls files and directories. No client writes there.
NAMES = ["h0", "h1", "made0/h0", "made1/h1"]
SIZES = [0, 1, 50, 3000, 100_000, 300_000]
RANGES = ["0-0", "10-40", "2000-2999", "90000-", "-20"]
# Enough for a directory to be indexed and watched; smaller ones are read anew for each listing.
FILLING = 140
PART_BYTES_MIN = 5 << 20


class Walk:
    """The truth as far as it is known, and those who change it."""

    def __init__(self, gateways: list[Bucket], seed: int, tmp_path: Path) -> None:
        self.gateways, self.seed = gateways, seed
        self.tree = gateways[0].tree
        self.chance = random.Random(seed)
        self.truth: dict[str, Version] = {}
        # Files are moved from there, so it is on the bucket's device; such a name is not served.
        self.person = Person(self.tree, self.tree / ".snapshot" if MAKER else tmp_path / "by-hand")
        self.clients = [Client(gateways) for _ in range(CLIENTS)]
        self.observer = Client(gateways)
        self.pool = ThreadPoolExecutor(CLIENTS + 1)
        self.written = 0
        self.foreign_etags: dict[str, bytes] = {}

    def fill(self, directory: str) -> None:
        """Files in a directory, so many that the listing keeps an index of it."""
        for number in range(FILLING):
            self.person.create(f"{directory}filling{number:03}", b"x" * number)
        self.truth |= self.person.files
        self.person.steps.clear()
        self.person.files.clear()

    def random_key(self) -> str:
        while True:
            key = "/".join(self.chance.choice(COMPONENTS) for _ in range(self.chance.randrange(1, 4)))
            if key:
                return key

    def new(self, sizes: list[int] = SIZES) -> New:
        self.written += 1
        return New(f"writer-{self.written}", self.chance.randbytes(self.chance.choice(sizes)))

    def gateway(self) -> int:
        return self.chance.randrange(len(self.gateways))

    def round(self, number: int) -> None:
        # One round's plan does not depend on how many numbers others drew.
        self.chance = random.Random(f"{self.seed}/{number}")
        done = Round(self)
        if not (self.chance.random() < 0.15 and done.alone()):
            done.together()
        done.settle()

    def close(self) -> None:
        self.pool.shutdown()
        for client in [*self.clients, self.observer]:
            client.close()


class Round:
    def __init__(self, walk: Walk) -> None:
        self.walk, self.chance = walk, walk.chance
        stem = walk.random_key().rstrip("/") or "a"
        others = [walk.random_key() for _ in range(2)]
        written_before = [key for key in sorted(walk.truth) if "filling" not in key and not is_by_hand(key)]
        others += self.chance.sample(written_before, min(2, len(written_before)))
        self.hot = [stem, stem, f"{stem}/", f"{stem}/a", f"{stem}/a/b", *others]
        directories = ["", "hand/"] + [f"{key.rstrip('/')}/" for key in self.hot if is_plain(key)]
        self.by_hand = [self.chance.choice(directories) + name for name in NAMES] + sorted(walk.person.files)
        # Not read by clients in this round.
        self.edited: set[str] = set()
        # New versions of this round: ETags for conditions that come true only if another's write
        # does.
        self.planned: list[New] = []
        self.uploads: list[tuple[str, str, bytes, Version]] = []
        self.steps: list[Step] = []
        self.listings: list[Listing] = []
        self.copies: list[CopyMade] = []

    # What is to be done.

    def key(self) -> str:
        return self.chance.choice(self.hot)

    def source(self) -> str:
        readable = [key for key in self.by_hand if key not in self.edited]
        return self.chance.choice(readable) if readable and self.chance.random() < 0.2 else self.key()

    def new(self) -> New:
        self.planned.append(self.walk.new())
        return self.planned[-1]

    def etag(self, key: str) -> str:
        """One that the key has now, one that it may get, or one that no key has."""
        known = [version.etag for version in [self.walk.truth.get(key)] if version and version.etag]
        known = known * 3 + [etag_of(new.body) for new in self.planned[-3:]]
        return self.chance.choice([*known, '"00000000000000000000000000000000"'])

    def condition(self, key: str) -> tuple[str, str] | None:
        kind = self.chance.choice(["none", "none", "if-none-match", "if-match", "if-match"])
        return None if kind == "none" else (kind, "*" if kind == "if-none-match" else self.etag(key))

    def client_plan(self) -> list[tuple]:
        plan: list[tuple] = []
        for _ in range(self.chance.randrange(1, 4)):
            gateway, key = self.walk.gateway(), self.key()
            kinds = (
                ["put"] * 5 + ["get"] * 3 + ["delete", "list"] * 2 + ["head", "delete_many", "copy", "upload"]
            )
            match self.chance.choice(kinds):
                case "put":
                    plan.append(("put", gateway, key, self.new(), self.condition(key)))
                case "get":
                    spec = self.chance.choice([None, None, *RANGES])
                    plan.append(("get", gateway, self.source(), spec))
                case "head":
                    plan.append(("head", gateway, self.source()))
                case "delete":
                    etag = self.etag(key) if self.chance.random() < 0.3 else None
                    plan.append(("delete", gateway, key, etag))
                case "delete_many":
                    keys = sorted({self.key() for _ in range(self.chance.randrange(1, 5))})
                    plan.append(("delete_many", gateway, keys))
                case "copy":
                    source, replace = self.source(), self.chance.random() < 0.5
                    writer = self.walk.new().writer if replace or source == key else None
                    plan.append(("copy", gateway, source, key, writer))
                case "upload":
                    new, parts = self.parts()
                    end = self.chance.choice(["complete"] * 3 + ["abort"])
                    plan.append(("upload", gateway, key, new, parts, self.condition(key), end))
                case "list":
                    plan.append(("list", gateway, *self.listing()))
        return plan

    def parts(self) -> tuple[New, list[bytes]]:
        new = self.walk.new()
        if self.chance.random() < 0.95:
            return new, [new.body]
        first = self.chance.randbytes(1000) * (PART_BYTES_MIN // 1000 + 1)
        return New(new.writer, first + new.body), [first, new.body]

    def listing(self) -> tuple[str, str, int]:
        prefix = self.chance.choice(["", "", "a", "a/", "hand/", "./", "é/", ".slipway/", self.key()])
        return prefix, self.chance.choice(["", "/", "/", "b"]), self.chance.choice([3, 1000, 1000, 1000])

    def person_plan(self) -> list[tuple]:
        plan: list[tuple] = []
        for _ in range(self.chance.randrange(1, 6)):
            key, other = (self.chance.choice(self.by_hand) for _ in range(2))
            body = self.chance.randbytes(self.chance.choice(SIZES))
            directories = [name for name in (parent(key), parent(other)) if "made" in name]
            match self.chance.choice(
                ["create", "create", "edit", "remove", "move", "mkdir", "rmdir", "move all"]
            ):
                case "create":
                    plan.append(("create", key, body))
                case "edit":
                    self.edited.add(key)
                    plan.append(("edit", key, body, self.chance.random() < 0.5))
                case "remove":
                    plan.append(("remove", key))
                case "move":
                    plan.append(("move", key, other))
                case "mkdir" if directories:
                    plan.append(("make_directory", directories[0]))
                case "rmdir" if directories:
                    plan.append(("remove_directory", directories[0]))
                case "move all" if len(directories) == 2:
                    plan.append(("move", *directories))
        return plan

    # Doing it.

    def together(self) -> None:
        """Up to eight clients, and perhaps a person, all at once."""
        walk = self.walk
        plans: list[tuple[object, list[tuple]]] = []
        if self.chance.random() < 0.5:
            plans.append((walk.person, self.person_plan()))
        count = self.chance.choice([1, 2, 3, 4, 6, 8, 8])
        clients = walk.clients[:count]
        plans += [(client, self.client_plan()) for client in clients]
        if count > 1 and self.chance.random() < 0.2:
            self.race_for_upload(plans[-2:])
        elif self.chance.random() < 0.5:
            self.duel(plans[-count:])
        barrier = threading.Barrier(len(plans))
        list(walk.pool.map(lambda plan: act(barrier, *plan), plans))
        for actor, _ in plans:
            self.take(actor)

    def duel(self, plans: list[tuple[object, list[tuple]]]) -> None:
        """Every client begins with a write of the same key, most with the same condition."""
        there = [key for key in self.hot if key in self.walk.truth]
        key = self.chance.choice(there or self.hot)
        version = self.walk.truth.get(key)
        usual = ("if-match", version.etag) if version and version.etag else ("if-none-match", "*")
        # All with the condition, or some without it, and some deletes, of which the first decides
        # for many.
        all_alike = self.chance.random() < 0.6
        for number, (_, plan) in enumerate(plans):
            # Through all gateways in turn.
            gateway = number % len(self.walk.gateways)
            if not all_alike and usual[0] == "if-match" and self.chance.random() < 0.4:
                plan.insert(0, ("delete", gateway, key, self.chance.choice([None, usual[1]])))
            else:
                condition = usual if all_alike or self.chance.random() < 0.7 else None
                # Small ones, so that none is late.
                plan.insert(0, ("put", gateway, key, self.walk.new(SIZES[1:3]), condition))

    def race_for_upload(self, plans: list[tuple[object, list[tuple]]]) -> None:
        """Two clients begin with the end of the same upload."""
        key, (new, parts) = self.key(), self.parts()
        upload, document = self.walk.observer.start_upload(self.walk.gateway(), key, new, parts)
        version = Version(new.body, etag_of_parts(parts), new.writer)
        self.uploads.append((key, upload, document, version))
        for number, (_, plan) in enumerate(plans):
            if number == 0 or self.chance.random() < 0.6:
                plan.insert(0, ("complete", self.walk.gateway(), key, upload, document, version))
            else:
                plan.insert(0, ("abort", self.walk.gateway(), key, upload))

    def alone(self) -> bool:
        """A person does something to a file that a gateway wrote; false if there is none."""
        walk, chance = self.walk, self.chance
        keys = [key for key in sorted(walk.truth) if is_plain(key) and (walk.tree / key).is_file()]
        if not keys:
            return False
        person, key = Person(walk.tree, walk.person.outside), chance.choice(keys)
        person.files[key] = walk.truth[key]
        target = chance.choice(["a", "b", "é", "a/b", "b/a/é", "é/b"])
        match chance.choice(["edit", "append", "remove", "move", "move"]):
            case "edit":
                # As long as before, sometimes.
                size = chance.choice([len(walk.truth[key].body), *SIZES])
                person.edit(key, chance.randbytes(size), append=False)
            case "append":
                person.edit(key, chance.randbytes(chance.choice([1, 5000])), append=True)
            case "remove":
                person.remove(key)
            case "move" if not (walk.tree / target).exists():
                person.move(key, target)
        walk.person.touched |= person.touched
        self.take(person)
        return True

    def take(self, actor: Client | Person) -> None:
        """What an actor did is the round's now."""
        self.steps += actor.steps
        actor.steps = []
        if isinstance(actor, Client):
            self.listings += actor.listings
            self.copies += actor.copies
            actor.listings, actor.copies = [], []

    # Looking at it.

    def settle(self) -> None:
        """Looks at the state through every gateway, and explains all that was seen."""
        walk, observer = self.walk, self.walk.observer
        touched = sorted({step.key for step in self.steps})
        await_times(walk.tree, touched)
        for gateway in range(len(walk.gateways)):
            observer.list(gateway)
            for key in touched:
                observer.head(gateway, key)
                observer.get(gateway, key)
        for key, upload, document, version in self.uploads:
            observer.complete(walk.gateway(), key, upload, document, version)
        full = list(observer.listings)
        self.take(observer)
        self.resolve_copies()
        self.explain()
        for listing in full:
            self.learn_foreign_etags(listing)
        for gateway in range(len(walk.gateways)):
            for prefix, delimiter, size in [("", "/", 1000), self.listing()]:
                listing = observer.list(gateway, prefix, delimiter, size)
                expected = list_page(list(walk.truth), prefix, delimiter, "", 1 << 20)
                assert list(listing.entries) == expected.keys, listing
                assert listing.prefixes == expected.prefixes, listing
        observer.listings.clear()

    def resolve_copies(self) -> None:
        """Finds out which versions each copy may have taken; one may have taken what another made."""
        versions: dict[str, set[Version]] = {key: {version} for key, version in self.walk.truth.items()}
        for step in self.steps:
            if step.makes:
                versions.setdefault(step.key, set()).add(step.makes)
        made: dict[tuple, Version] = {}
        changed = True
        while changed:
            changed = False
            for copy in self.copies:
                for source in list(versions.get(copy.source, ())):
                    if source in copy.made or source.plain_etag != copy.etag:
                        continue
                    writer = copy.writer or source.writer
                    version = made.setdefault(
                        (source.body, writer), Version(source.body, source.plain_etag, writer)
                    )
                    copy.made[source] = version
                    versions.setdefault(copy.target, set()).add(version)
                    changed = True

    def explain(self) -> None:
        walk = self.walk
        histories: dict[str, list[Step]] = {key: [] for key in walk.truth}
        for step in self.steps:
            histories.setdefault(step.key, []).append(step)
        for listing in self.listings:
            self.check_prefixes(listing, histories)
            assert listing.entries.keys() <= histories.keys(), f"{listing} shows keys that no one wrote"
            for key in histories:
                if key.startswith(listing.prefix) and (step := self.as_step(listing, key)):
                    histories[key].append(step)
        for key, steps in histories.items():
            finals = explain(key, State(walk.truth.get(key)), steps) if steps else ()
            for state in finals:
                # If there are several, nothing that was seen after the round tells them apart.
                walk.truth.pop(key, None)
                if state.version:
                    walk.truth[key] = state.version

    def as_step(self, listing: Listing, key: str) -> Step | None:
        """What a listing says of a key, if anything."""
        prefix = common_prefix(key, listing)
        if prefix:
            assert key not in listing.entries, f"{listing} shows {key!r}"
            if prefix in listing.prefixes:
                return None
        return listed(listing, key, attributes=key not in self.edited)

    def check_prefixes(self, listing: Listing, histories: dict[str, list[Step]]) -> None:
        """Each common prefix has a key below it that can have been there."""
        below: set[str] = set()
        for key, steps in histories.items():
            if key.startswith(listing.prefix) and (prefix := common_prefix(key, listing)):
                written = any(step.writes and step.start < listing.end for step in steps)
                if key in self.walk.truth or written:
                    below.add(prefix)
        assert set(listing.prefixes) <= below, f"{listing} shows {set(listing.prefixes) - below}"

    def learn_foreign_etags(self, listing: Listing) -> None:
        """A file's ETag is never that of other bytes, and the same through all gateways."""
        for key, (etag, _) in listing.entries.items():
            version = self.walk.truth[key]
            if version.etag is None:
                body = self.walk.foreign_etags.setdefault(etag, version.body)
                assert body == version.body, f"{key!r} has the ETag of other bytes"
                version.etag = etag
            assert version.etag == etag, f"{listing}: {key!r} has {etag}, and had {version.etag}"


def await_times(tree: Path, keys: list[str]) -> None:
    """Until two mounts agree on the times of files: MooseFS tells others a second later of what a program has written by one."""
    other = by_other_mount(tree)
    for path in (tree / key for key in keys if other != tree and is_plain_path(key)):
        if path.is_file():
            there = other / path.relative_to(tree)
            poll(lambda here=path, there=there: here.stat().st_mtime_ns == there.stat().st_mtime_ns, 20)


def act(barrier: threading.Barrier, actor: Client | Person, plan: list[tuple]) -> None:
    actor.begin = barrier
    if not plan or isinstance(actor, Person):
        actor.wait()
    for name, *arguments in plan:
        getattr(actor, name)(*arguments)


def common_prefix(key: str, listing: Listing) -> str | None:
    cut = key.find(listing.delimiter, len(listing.prefix)) if listing.delimiter else -1
    return None if cut < 0 else key[: cut + len(listing.delimiter)]


def is_plain(key: str) -> bool:
    return set(key.split("/")) <= PLAIN


def is_plain_path(key: str) -> bool:
    return set(key.split("/")) <= PLAIN | set("/".join(NAMES).split("/")) | {"hand"}


def is_by_hand(key: str) -> bool:
    return any(key.endswith(name) for name in NAMES)


def parent(key: str) -> str:
    return key.rpartition("/")[0]


def run(make_server: Callable, seed: int, rounds: int, tmp_path: Path) -> None:
    first = make_server("--durability", "none")
    others = [
        make_server("--durability", "none", tree=by_other_mount(first.tree)) for _ in range(1 + seed % 2)
    ]
    servers = [first, *others]
    Bucket(servers[0], "bucket").create()
    walk = Walk([Bucket(server, "bucket") for server in servers], seed, tmp_path)
    try:
        # Directories of all sizes: at the top and below it with many entries, or none.
        if directory := {1: "/", 2: "a/"}.get(seed % 3):
            walk.fill(directory.removeprefix("/"))
        for number in range(rounds):
            try:
                walk.round(number)
            except Exception as error:
                error.add_note(f"round {number} of seed {seed}")
                raise
        finish(walk)
    finally:
        walk.close()


def finish(walk: Walk) -> None:
    """All is as it should be to the end, and goes without a trace."""
    for bucket in walk.gateways:
        for key, version in walk.truth.items():
            assert bucket.read(key) == version.body, key
        assert expect.ok(bucket.raw.get(bucket.path(), query={"uploads": ""})).xml.all("Upload") == []
    clients = zip(walk.truth, range(len(walk.truth)), strict=True)
    list(walk.pool.map(lambda one: walk.gateways[one[1] % len(walk.gateways)].delete(one[0]), clients))
    remove_tree(walk.person.outside)
    assert walk.gateways[-1].is_untouched()
    assert_nothing_staged(walk.tree)
    own = {".slipway", RECORDS, *(name.partition("/")[0] for name in NAMES)}
    left = {path for path in walk.tree.rglob("*") if not own & set(path.relative_to(walk.tree).parts)}
    if removed_while_open(walk.person.outside.parent) != "goes":
        # A directory that still had the name of an open file could not go with its last key, and
        # libfuse leaves some such names for good.
        left = {path for path in left if not path.is_dir() and not LINGERING.fullmatch(path.name)}
    assert left <= walk.person.touched, "only directories that a person was in are left"
    walk.gateways[0].remove()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_walk(make_server, tmp_path, seed):
    run(make_server, seed, ROUNDS, tmp_path)


@pytest.mark.slow
def test_long_walk(make_server, tmp_path):
    seed = int(time.time())
    print(f"SLIPWAY_MODEL_SEED={seed} SLIPWAY_MODEL_ROUNDS={SLOW_ROUNDS}")
    run(make_server, seed, SLOW_ROUNDS, tmp_path)
