"""One request, again and again, each time with a fault one system call later, until none is left to fail."""

import errno
import itertools
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from support import expect
from support.bucket import Bucket
from support.faultlayer import KILL, SHORT, Call, FaultLayer
from support.server import Server, acting_as, remove_tree
from support.tools import findings, sweep
from support.wire import Closed, Response, poll

from .cases import Case
from .state import Torn, observe, shape, strangers, versions

# More calls than any request makes: a request that never comes to its end is a bug, too.
CALLS_MAX = 1000
# 5xx of S3: our fault, or the disk's.
FAILURES = {"InternalError": 500, "SlowDown": 503, "ServiceUnavailable": 503, "InsufficientStorage": 507}

# Calls that a signal may interrupt on some file system. Nowhere else would anyone look for it.
INTERRUPTIBLE = {"openat", "openat2", "flock", "fallocate", "copy_file_range", "fsync", "pread64"}
# Whatever fails has cleaned up by itself; only after a crash is that for the sweep. But for those
# calls whose own failure leaves something, with the reason.
LEAVES = {"unlinkat": "what could not be removed is still there"}
# And what an error leaves to the sweep by design, by the names of cases.
FOR_THE_SWEEP = {
    # The object is gone, and a note tells of the directories that could not be removed after it.
    r"delete-.*": r"\.slipway/staging/\*|[^.].*/",
    # The journal, by which who asks again, or the sweep, ends what may be published already
    # (decision 0007); or parts that nobody can find any more, in a directory that could not be
    # read.
    r"(versioned-)?complete.*": r"\.slipway/uploads/\*/.*",
    # Parts stay as long as a power cut might bring the upload back.
    r"abort": r"\.slipway/uploads/\*/.*",
    # The old object's companion, when a power cut might bring its name back, or when it could not
    # be read whether it is another's too.
    r"(delete|overwrite-of|overwrite-by)-big-record": r"\.slipway/overflow/\* \(of no object\)",
    # A chain that was made, and into which no version came; or one that lost its last.
    r"versioned-.*|delete-(old|current)-version": r"\.slipway/versions/.*/ \(unmarked\)",
    # The name of a delete marker that is no longer the newest version.
    r"versioned-put-over-marker": r"\.slipway/versions/.*/\.slipway,vdeleted",
    # What was the bucket, with what could not be read of it.
    r"delete-(empty-)?bucket": r"\.slipway,deleting,.*",
}
# The same where the error was that something could not be read: a record beside its file, and a
# note of it.
UNREAD = r"\.slipway,records/.* \(of nothing\)|\.slipway/staging/\*"
WRITES = {"pwrite64", "pwritev", "pwritev2"}


@dataclass(frozen=True)
class Fault:
    name: str
    does: str | int
    reads: bool = False
    only: frozenset[str] | None = None


KILLED = Fault("kill", KILL)
IO_ERROR = Fault("EIO", errno.EIO)
EVERY_FAULT = [
    KILLED,
    IO_ERROR,
    Fault("ENOSPC", errno.ENOSPC),
    Fault("EDQUOT", errno.EDQUOT),
    Fault("EINTR", errno.EINTR, only=frozenset(INTERRUPTIBLE | WRITES)),
    Fault("short write", SHORT, only=frozenset(WRITES)),
    Fault("EIO of a read", errno.EIO, reads=True),
    Fault("EINTR of a read", errno.EINTR, reads=True, only=frozenset(INTERRUPTIBLE)),
]


@dataclass
class Finding:
    case: str
    fault: str
    number: int
    call: str
    what: str

    def __str__(self) -> str:
        return f"{self.case} | {self.fault} | {self.number} | {self.call} | {self.what}"


@dataclass
class Report:
    case: str
    # How many faults of each kind were met.
    met: Counter = field(default_factory=Counter)
    # What came of them: (fault, outcome).
    outcomes: Counter = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        content = {
            "case": self.case,
            "met": self.met,
            "outcomes": {f"{fault}: {outcome}": n for (fault, outcome), n in self.outcomes.items()},
            "findings": [asdict(finding) for finding in self.findings],
        }
        (directory / f"{self.case}.json").write_text(json.dumps(content, indent=1))


class Campaign:
    """All faults of one case, on a tree of its own."""

    def __init__(self, case: Case, directory: Path, user: tuple[int, int] | None = None) -> None:
        """With a `user`, the requests are made as that (`--impersonate`)."""
        self.case, self.user = case, user
        self.directory = directory
        self.tree = directory / "tree"
        self.tree.mkdir()
        self.report = Report(case.name)
        self.buckets = itertools.count()
        self.start()
        try:
            self.reference()
        except BaseException:
            self.server.kill()
            raise

    def start(self) -> None:
        self.layer = FaultLayer()
        options, env = acting_as(self.user)
        self.server = Server(self.tree, *options, env=env, log=self.directory / "log", faults=self.layer)

    def close(self) -> None:
        self.server.stop()
        assert "panicked" not in self.server.log, self.server.log
        remove_tree(self.tree)

    def make(self) -> tuple[Bucket, object]:
        """A bucket in its state before, and what `prepare` said of it."""
        bucket = Bucket(self.server, f"bucket-{next(self.buckets)}")
        if self.case.no_bucket:
            return bucket, None
        bucket.create()
        return bucket, self.case.prepare(bucket)

    def reference(self) -> None:
        """Learns both states from a run without faults."""
        bucket, made = self.make()
        self.sweep()
        assert self.fsck() == []
        self.old, self.old_shape = observe(bucket), shape(self.tree, bucket.name)
        response = self.case.request(bucket, made)
        assert response.status in (200, 204), response
        self.sweep()
        assert self.fsck() == []
        self.new, self.new_shape = observe(bucket), shape(self.tree, bucket.name)
        assert self.old != self.new, "a case in which nothing happens shows nothing"
        assert (problem := self.clear(bucket)) is None, problem

    def run(self, fault: Fault, step: int = 1) -> None:
        """The fault at each call; with a `step` only at some."""
        for number in range(1, CALLS_MAX, step):
            self.bucket, made = self.make()
            self.layer.arm(fault.does, number, fault.reads, fault.only)
            try:
                response = self.case.request(self.bucket, made)
            except (Closed, ConnectionError):
                response = None
            if fault is KILLED and response is None:
                self.server.wait()
            call = self.layer.disarm()
            if fault is KILLED and call:
                self.server.wait()
                self.server.kill()
                self.start()
                self.bucket = Bucket(self.server, self.bucket.name)
            if call is None:
                assert response is not None and response.status in (200, 204), response
                self.clear(self.bucket)
                return
            self.report.met[fault.name] += 1
            for problem in self.judge(fault, call, response, made):
                self.report.findings.append(Finding(self.case.name, fault.name, number, str(call), problem))
            self.forget()
        raise AssertionError(f"{self.case.name} made {CALLS_MAX} calls")

    def judge(self, fault: Fault, call: Call, response: Response | None, made: object) -> list[str]:
        """What is wrong after a fault."""
        try:
            return self.check(fault, call, response, made)
        except (Torn, AssertionError) as error:
            return [f"{type(error).__name__}: {error}"[:600]]

    def check(self, fault: Fault, call: Call, response: Response | None, made: object) -> list[str]:
        problems = []
        state = observe(self.bucket)
        now = self.which(state)
        answer = "none"
        if response is not None:
            answer = "success" if response.status in (200, 204) and not response.code else str(response.code)
        self.report.outcomes[fault.name, f"{answer}, {now}"] += 1
        problems += self.strangers()
        if now == "neither":
            problems.append(f"neither the old state nor the new: {difference(self.old, state)}")
        if fault is not KILLED:
            problems += self.check_answer(call, response, answer, now)
            if call.name not in LEAVES:
                problems += [f"before any sweep, {problem}" for problem in self.leftovers(now, fault)]
        if self.case.once and now != "old" and self.case.once in (state or {}):
            return problems + self.check_once(fault, self.case.once, made)
        self.sweep()
        swept = observe(self.bucket)
        if now == "between" and self.which(swept) in ("old", "new"):
            now = self.which(swept)
        elif swept != state:
            problems.append(f"the sweep changed what S3 sees: {difference(state, swept)}")
        elif now == "between" and not self.case.by_key:
            problems.append(f"the sweep did not end it: {difference(self.new, swept)}")
        problems += self.leftovers(now) + self.fsck() + self.strangers()
        if now != "new" or not self.case.adds:
            again = self.case.request(self.bucket, made)
            if again.status not in (self.case.again if now == "new" else (200, 204)) or (
                again.status == 200 and again.code
            ):
                problems.append(f"cannot be repeated: {again}")
            elif (state := observe(self.bucket)) != self.new:
                problems.append(f"after it was repeated: {difference(self.new, state)}")
            else:
                self.sweep()
                problems += [f"after it was repeated, {problem}" for problem in self.leftovers("new")]
        if (problem := self.clear(self.bucket)) is not None:
            problems.append(problem)
        return problems

    def check_once(self, fault: Fault, key: str, made: object) -> list[str]:
        """What was published, and deleted since, stays away when the request is repeated, and does not return
        by the sweep."""
        expect.ok(self.bucket.delete(key), 204)
        without = {name: value for name, value in (self.new or {}).items() if name != key}
        # What could not be noted for those who ask again is not known any more.
        known = self.case.again if fault is KILLED else (*self.case.again, 404)
        problems = []
        for _ in range(2):
            again = self.case.request(self.bucket, made)
            if again.status not in known or (again.status == 200 and again.code):
                problems.append(f"cannot be repeated after the object was deleted: {again}")
            if (state := observe(self.bucket)) != without:
                problems.append(f"repeated after the object was deleted: {difference(without, state)}")
            self.sweep()
        problems += self.fsck()
        if (problem := self.clear(self.bucket)) is not None:
            problems.append(problem)
        return problems

    def check_answer(self, call: Call, response: Response | None, answer: str, now: str) -> list[str]:
        if response is None:
            return ["no answer"]
        if answer == "success":
            return [] if now == "new" else [f"success, but the state is {now}"]
        # DeleteObjects answers 200, with an error for each key that is still there.
        if self.case.by_key and response.status == 200:
            failed = {error["Key"] for error in response.xml.all("Error")}
            deleted = {entry["Key"] for entry in response.xml.all("Deleted")}
            state = observe(self.bucket)
            wrong = [key for key in deleted if key in state]
            wrong += [key for key in failed if key in self.old and key not in state and call.name != "fsync"]
            return [f"not true of {wrong}: {response}"] if wrong else []
        problems = []
        if FAILURES.get(answer) != response.status:
            problems.append(f"an odd answer: {response}")
        # What an fsync failed to put on disk is there all the same, for now. S3's 5xx does not say
        # that nothing happened.
        if now != "old" and call.name != "fsync" and not self.case.halfway:
            problems.append(f"{answer}, but the state is {now}")
        return problems

    def which(self, state: object) -> str:
        if state == self.new:
            return "new"
        if state == self.old:
            return "old"
        old, new, either = self.old or {}, self.new or {}, self.case.by_key or self.case.in_steps
        if either and all(state.get(key) in (old.get(key), new.get(key)) for key in {*old, *new, *state}):
            return "between"
        return "neither"

    def leftovers(self, now: str, fault: Fault | None = None) -> list[str]:
        """What is there and should not be, or the other way round; right after a fault without what is for the sweep."""
        found = shape(self.tree, self.bucket.name)
        if fault is not None:
            designs = [left for case, left in FOR_THE_SWEEP.items() if re.fullmatch(case, self.case.name)]
            designs += [UNREAD] if fault.reads else []
            found = {name for name in found if not any(re.fullmatch(left, name) for left in designs)}
        wanted = {"old": self.old_shape, "new": self.new_shape}.get(now, self.old_shape | self.new_shape)
        extra, missing = sorted(found - wanted), sorted(wanted - found)
        if now == "between" or fault is not None or self.case.halfway:
            missing = []
        return ([f"left over: {extra}"] if extra else []) + ([f"missing: {missing}"] if missing else [])

    def strangers(self) -> list[str]:
        """What belongs to somebody else than it should."""
        return strangers(self.tree, self.bucket.name, self.user) if self.user else []

    def sweep(self) -> None:
        sweep(self.tree)

    def fsck(self) -> list[str]:
        """What it finds where it must find nothing."""
        return [f"fsck finds {found}" for found in findings(self.tree)]

    def clear(self, bucket: Bucket) -> str | None:
        """Deletes the bucket with all that S3 sees in it. Nothing that S3 does not see may keep it from
        that."""
        if observe(bucket) is None:
            return None
        kept = versions(bucket)
        for key, version, _, _ in kept:
            bucket.delete(key, query={"versionId": version})
        for key in [] if kept else bucket.keys():
            bucket.delete(key)
        response = bucket.raw.delete(bucket.path())
        if response.status != 204:
            there = shape(self.tree, bucket.name)
            return f"the empty bucket cannot be deleted: {response.code}; there are {there}"
        poll(lambda: not (self.tree / bucket.name).exists(), 5)
        return None

    def forget(self) -> None:
        """Whatever one fault left, the next shall not find."""
        for path in self.tree.iterdir():
            if path.name != ".slipway":
                remove_tree(path)
        for documents in self.tree.glob(".slipway/buckets/bucket-*"):
            documents.unlink()


def difference(wanted: object, found: object) -> str:
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return f"{short(found)} instead of {short(wanted)}"
    keys = sorted({*wanted, *found})
    return "; ".join(
        f"{key}: {short(found.get(key))} instead of {short(wanted.get(key))}"
        for key in keys
        if wanted.get(key) != found.get(key)
    )


def short(value: object) -> str:
    text = str(value)
    return text if len(text) < 200 else text[:200] + "..."
