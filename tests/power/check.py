"""Whether a tree holds what was acknowledged."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from faults.state import Torn, observe, shape, strangers

from support.bucket import Bucket
from support.server import Server, acting_as
from support.tools import findings, sweep

from .load import BUCKET, PART, State, Step, steps

# Whom a server with --impersonate acts as.
USER = (12100, 12100)


@dataclass(frozen=True)
class Load:
    """What was written, and how."""

    seed: int
    impersonate: bool = False

    @property
    def user(self) -> tuple[int, int] | None:
        return USER if self.impersonate else None

    def steps(self, worker: int) -> Iterator[Step]:
        # With --impersonate no file becomes a directory.
        return steps(self.seed, worker, conversions=not self.impersonate)


def states(load: Load, worker: int, done: int) -> list[State]:
    """What a worker's keys may be after so many acknowledgements."""
    state = State()
    for step in itertools.islice(load.steps(worker), done):
        state = step.apply(state)
    under_way = next(itertools.islice(load.steps(worker), done, None))
    possible = [state, under_way.apply(state)]
    if under_way.kind == "delete-many":
        # Which is one decision for each key.
        for key in (under_way.key, under_way.other):
            possible.append(replace(under_way, key=key, other="").apply(state))
    if under_way.kind == "complete":
        # The upload goes after the object is there.
        possible.append(State(possible[1].objects, state.uploads))
    return possible


@dataclass
class Verdict:
    wrong: list[str]
    # What fsck found and mended.
    mended: list[str] = field(default_factory=list)
    swept: bool = False
    # What a server showed of the tree, before anything was mended.
    found: tuple[dict, dict] | None = None
    unchanged: bool = False

    def __str__(self) -> str:
        if self.unchanged:
            return "as the one before"
        return f"{'swept' if self.swept else 'not swept'}, fsck {'mended' if self.mended else 'clean'}"


@dataclass
class Tally:
    """Of many verdicts: how many were bad, and how often fsck had something to mend."""

    looked: int = 0
    bad: int = 0
    fsck: Counter = field(default_factory=Counter)
    mended: Counter = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.looked += 1
        self.bad += bool(verdict.wrong)
        self.fsck[str(verdict)] += 1
        self.mended.update(found.partition(":")[0] for found in verdict.mended)

    def __str__(self) -> str:
        counts = [f"{count} {what}" for what, count in sorted(self.fsck.items())]
        counts += [f"{count} {what}" for what, count in sorted(self.mended.items())]
        return f"{self.bad} bad; {', '.join(counts)}"


def look(tree: Path, log: Path, load: Load, done: dict[int, int], swept: bool) -> Verdict:
    """What is missing or torn, by a fresh server on the tree. It is swept, and then fsck finds
    nothing; or it is not swept, and fsck mends it."""
    verdict = Verdict([], swept=swept)
    options, env = acting_as(load.user)
    server = Server(tree, *options, env=env, log=log)
    try:
        bucket = Bucket(server, BUCKET)
        verdict.found = found = contents(bucket)
        verdict.wrong = compare(found, load, done) + torn_parts(bucket)
        verdict.wrong += strangers(tree, BUCKET, load.user) if load.user else []
        if swept:
            sweep(tree)
        verdict.mended = mend(tree)
        if swept:
            verdict.wrong += [f"fsck finds what the sweep left: {what}" for what in verdict.mended]
        after = contents(bucket)
        if after[0] != found[0]:
            verdict.wrong.append("objects have changed by the sweep or fsck")
        elif after != found:
            # A Complete may have been ended.
            verdict.wrong += compare(after, load, done)
        verdict.wrong += [f"left over: {name}" for name in garbage(tree, after)]
        verdict.wrong += strangers(tree, BUCKET, load.user) if load.user else []
    except AssertionError as torn:
        verdict.wrong.append(f"{type(torn).__name__}: {torn}")
    finally:
        server.stop()
    return verdict


def look_again(before: Verdict, load: Load, done: dict[int, int]) -> Verdict:
    """At a tree that has not changed, when more was acknowledged."""
    wrong = ["it could not be read"] if before.found is None else compare(before.found, load, done)
    return Verdict(wrong, swept=before.swept, found=before.found, unchanged=True)


def mend(tree: Path) -> list[str]:
    """Has fsck repair what it finds, after which it must find nothing."""
    found = findings(tree)
    if found:
        mended = findings(tree, "--repair")
        assert all(line.endswith("[repaired]") for line in mended), mended
        assert (left := findings(tree)) == [], left
    return found


def contents(bucket: Bucket) -> tuple[dict, dict]:
    state = observe(bucket)
    if state is None:
        raise Torn("the bucket is missing")
    objects, uploads = {}, {}
    for key, value in state.items():
        if key.startswith("uploads of "):
            uploads[key.removeprefix("uploads of ")] = [
                {int(number): etag.strip('"') for number, etag, _ in parts} for parts in value
            ]
        else:
            md5, headers = value
            headers = dict(headers)
            objects[key] = (
                md5,
                int(headers["content-length"]),
                headers["etag"].strip('"'),
                headers.get("x-amz-meta-note"),
            )
    return objects, uploads


def torn_parts(bucket: Bucket) -> list[str]:
    """Parts of uploads in progress whose bytes are not those that their ETags are of. They can be read only
    from the tree."""
    torn = []
    for upload in bucket.raw.get(bucket.path(), query={"uploads": ""}).xml.all("Upload"):
        key, upload_id = upload["Key"], upload["UploadId"]
        directory = bucket.tree / ".slipway/uploads" / upload_id
        listed = bucket.raw.get(bucket.path(key), query={"uploadId": upload_id}).xml
        parts = listed.all("Part")
        if is_the_object(bucket, key, parts):
            continue
        for part in parts:
            number, size = int(part["PartNumber"]), int(part["Size"])
            bytes_ = (directory / f"{number:05}").read_bytes()
            if not bytes_ and not (directory / "assembly1").exists():
                files = sorted(path.name for path in directory.iterdir())
                torn.append(f"part {number} of the upload of {key} has no bytes; its directory has {files}")
                continue
            if not bytes_:
                with open(directory / "assembly1", "rb") as assembly:
                    assembly.seek((number - 1) * PART)
                    bytes_ = assembly.read(size)
            if (len(bytes_), hashlib.md5(bytes_).hexdigest()) != (size, part["ETag"].strip('"')):
                torn.append(f"part {number} of the upload of {key} has other bytes than were acknowledged")
    return torn


def is_the_object(bucket: Bucket, key: str, parts: list) -> bool:
    """Whether the object at the key was made of these parts. A cut between the object's publication and the
    upload's removal leaves both: the upload is listed until it is completed again, aborted or swept, and the
    parts' bytes are the object's."""
    md5s = b"".join(bytes.fromhex(part["ETag"].strip('"')) for part in parts)
    etag = bucket.raw.head(bucket.path(key)).headers.get("etag", "")
    return etag.strip('"') == f"{hashlib.md5(md5s).hexdigest()}-{len(parts)}"


def worker_of(key: str) -> int:
    """Whose key it is: the number after its first hyphen."""
    return int("".join(itertools.takewhile(str.isdigit, key.partition("-")[2])))


def compare(found: tuple[dict, dict], load: Load, done: dict[int, int]) -> list[str]:
    objects, uploads = found
    wrong = []
    for worker, number in done.items():
        mine = {key: value for key, value in objects.items() if worker_of(key) == worker}
        my_uploads = {key: value for key, value in uploads.items() if worker_of(key) == worker}
        complaints = [differences(state, mine, my_uploads) for state in states(load, worker, number)]
        if all(complaints):
            wrong.append(
                f"worker {worker} after {number} requests: {'; or else: '.join(map(str, complaints))}"
            )
    return wrong


def differences(state: State, objects: dict, uploads: dict) -> list[str]:
    wrong = []
    for key in sorted({*state.objects, *objects}):
        want, have = state.objects.get(key), objects.get(key)
        if want is None or have is None or (want.md5, want.size, want.etag, want.note) != have:
            wrong.append(f"{key} is {have}, not {want}")
    for key in sorted({*state.uploads, *uploads}):
        want, have = state.uploads.get(key), uploads.get(key)
        if have != (None if want is None else [want]):
            wrong.append(f"the upload of {key} has {have}, not {want}")
    return wrong


def garbage(tree: Path, found: tuple[dict, dict]) -> list[str]:
    """What is in the tree without being part of an object or an upload."""
    objects, uploads = found
    known = set()
    for key in objects:
        above = key.rstrip("/").split("/")[:-1]
        known |= {"/".join(above[: n + 1]) + "/" for n in range(len(above))} | {key, key.rstrip("/") + "/"}
    left = []
    for name in shape(tree, BUCKET):
        plain = name.removesuffix(".slipway,self").removesuffix(".slipway,dir")
        if plain in known or plain.rstrip("/") in known or name.startswith(".slipway/completed/"):
            continue
        if uploads and name.startswith(".slipway/uploads/"):
            continue
        if name in ("lost+found",):
            continue
        left.append(name)
    return sorted(left)
