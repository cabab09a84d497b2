"""One run of a tool, again and again, each time with a fault one system call later; and then once more,
without any.

A server has the tree open all the while, and shows what S3 makes of it."""

import hashlib
import os
import subprocess
from pathlib import Path

from support.bucket import Bucket
from support.faultlayer import FaultLayer
from support.server import RECORDS, Server, binary
from support.tools import RECORD

from .campaign import CALLS_MAX, KILLED, Campaign, Fault, Finding, difference
from .cases import ToolCase
from .state import observe, shape

# What the names in DIR begin with of what the sweep removes.
ASIDE = ".slipway,deleting,"


def run_tool(arguments: list[str], layer: FaultLayer | None = None) -> subprocess.CompletedProcess:
    command = [str(binary()), *arguments]
    process = subprocess.Popen(
        layer.wrap(command) if layer else command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=layer.inherited if layer else (),
    )
    if layer:
        layer.watch(process.pid)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class ToolCampaign(Campaign):
    """All faults of one tool, on a tree of its own."""

    case: ToolCase

    def start(self) -> None:
        self.server = Server(self.tree, log=self.directory / "log")

    def make(self) -> tuple[Bucket, object]:
        bucket = Bucket(self.server, f"bucket-{next(self.buckets)}").create()
        return bucket, self.case.prepare(bucket)

    def tool(self, bucket: Bucket, layer: FaultLayer | None = None) -> subprocess.CompletedProcess:
        return run_tool(self.case.command(bucket), layer)

    def reference(self) -> None:
        bucket, _ = self.make()
        self.old, self.before = observe(bucket), self.files()
        done = self.tool(bucket)
        assert done.returncode == 0, done
        self.new, self.new_attributes = observe(bucket), self.attributes(bucket)
        self.sweep()
        assert (found := self.fsck()) == [], found
        self.new_shape = self.old_shape = shape(self.tree, bucket.name)
        assert observe(bucket) == self.new != self.old, "a tool that does nothing shows nothing"
        assert (lost := self.lost()) == [], lost
        self.forget()

    def run(self, fault: Fault, step: int = 1) -> None:
        for number in range(1, CALLS_MAX, step):
            self.bucket, _ = self.make()
            self.before = self.files()
            layer = FaultLayer()
            layer.arm(fault.does, number, fault.reads, fault.only, since=str(self.tree))
            done = self.tool(self.bucket, layer)
            call = layer.disarm()
            if call is None:
                assert done.returncode == 0, done
                self.forget()
                return
            self.report.met[fault.name] += 1
            try:
                problems = self.check_tool(fault, done)
            except AssertionError as error:
                problems = [f"{type(error).__name__}: {error}"[:600]]
            self.report.findings += [
                Finding(self.case.name, fault.name, number, str(call), problem) for problem in problems
            ]
            self.forget()
        raise AssertionError(f"{self.case.name} made {CALLS_MAX} calls")

    def check_tool(self, fault: Fault, done: subprocess.CompletedProcess) -> list[str]:
        state = observe(self.bucket)
        now = self.which(state)
        answer = {0: "success", 1: "not all", 2: "failed"}.get(done.returncode, "none")
        if answer == "success" and " WARN " in done.stderr:
            answer = "not all"
        self.report.outcomes[fault.name, f"{answer}, {now}"] += 1
        problems = []
        if now == "neither":
            problems.append(f"neither the old state nor the new: {difference(self.old, state)}")
        if (answer == "none") != (fault is KILLED) or "panicked" in done.stderr:
            problems.append(f"it ended with {done}")
        if answer == "success" and now != "new":
            problems.append(f"success, but the state is {now}: {difference(self.new, state)}")
        if answer in ("not all", "failed") and not (done.stdout + done.stderr).strip():
            problems.append("it failed without a word")
        problems += self.lost()
        return problems + self.check_again()

    def check_again(self) -> list[str]:
        """The same tool once more: what it had done stays, and the rest is done."""
        again = self.tool(self.bucket)
        problems = [] if again.returncode == 0 else [f"cannot be repeated: {again}"]
        state = observe(self.bucket)
        if state != self.new:
            problems.append(f"after it was repeated: {difference(self.new, state)}")
        if (attributes := self.attributes(self.bucket)) != self.new_attributes:
            problems.append(
                f"after it was repeated, attributes: {difference(self.new_attributes, attributes)}"
            )
        problems += self.lost()
        self.sweep()
        if (swept := observe(self.bucket)) != state:
            problems.append(f"the sweep changed what S3 sees: {difference(state, swept)}")
        return problems + self.leftovers("new") + self.fsck()

    def lost(self) -> list[str]:
        """What a tool that only adds to what is known of files changed of them."""
        if not self.case.keeps_files or (files := self.files()) == self.before:
            return []
        return [f"files were changed: {difference(self.before, files)}"]

    def files(self) -> dict[str, tuple[str, int]]:
        """Bytes and mtimes of all files but our own."""
        paths = [path for path in self.entries() if path.is_file()]
        return {
            str(path.relative_to(self.tree)): (
                hashlib.md5(path.read_bytes()).hexdigest(),
                path.stat().st_mtime_ns,
            )
            for path in paths
        }

    def attributes(self, bucket: Bucket) -> dict[str, list[str]]:
        """The attributes of other programs."""
        return {
            str(path.relative_to(self.tree)).replace(bucket.name, "bucket"): sorted(
                set(os.listxattr(path)) - {RECORD}
            )
            for path in self.entries()
        }

    def entries(self) -> list[Path]:
        found = []
        for directory, names, files in os.walk(self.tree):
            ours = (".slipway", RECORDS)
            names[:] = [name for name in names if name not in ours and not name.startswith(ASIDE)]
            found += [Path(directory, name) for name in names + files]
        return found
