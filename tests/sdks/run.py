#!/usr/bin/env python3
"""Runs the SDKs that people have against the server: URLs that they presign, sent by a plain HTTP client, and
requests of their own.

    .venv/bin/python tests/sdks/run.py [js js2 js2-sigv2 go java boto3 boto3-sigv2 minio-go minio-py rust]

Each has a small program here. What that needs is installed below `target/sdks` by npm, go, mvn or cargo, as
they are set up on the machine; the Python packages are the suite's own. An SDK that is not available is
skipped, and says why. The server is `SLIPWAY_BINARY` or `target/debug/slipway`, on a tree and with keys of
its own.

A program prints a line of JSON for each thing it does. It is told where and with what by its environment
(`SDK_...`), and called with

- `presign`: `{"case", "method", "url"}`, and `"headers"` if the SDK says which to send; or
  `{"case", "skip"}`, why the SDK can't;
- `presign-upload UPLOAD-ID`: the same for the parts of an upload and its completion;
- `use`: `{"step"}` for each of `STEPS`, done with the SDK's defaults, with `"wrong"` if it did not go as it
  should.

Prints a line for each SDK and case; the exit status is 1 if one failed. A request of the SDK that was
answered 501 by the way is a failure too. What a URL carries must be what `shapes.py` says, from which
`test_presigned_shapes.py` makes the like without SDKs; `--shapes` prints it.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from sdks.presigned import CASES, FACTS, PARTS, UPLOAD, VARIANTS, Presigned, create, parts_and_complete  # noqa: E402
from sdks.programs import PLACE, SDKS, Failed, Program, Unavailable  # noqa: E402
from sdks.shapes import differs  # noqa: E402
from support.bucket import Bucket  # noqa: E402
from support.server import KEYS, Server  # noqa: E402

# The bucket that the SDK itself uses.
USED = "by-sdk"
STEPS = [
    "create-bucket",
    "put",
    "put-sha256",
    "put-condition",
    "get",
    "head",
    "list",
    "copy",
    "multipart",
    "uploader",
    "others",
    "delete",
    "delete-many",
    "missing",
]
# What `use` leaves in its bucket.
LEFT = {
    "kept": b"kept",
    "checked": b"kept",
    "copied": b"kept",
    "multi": b"".join(PARTS),
    "uploaded": b"".join(PARTS),
}
# The step that leaves it, where an SDK may lack that.
OPTIONAL = {"checked": "put-sha256", "uploaded": "uploader"}


class Report:
    """Prints lines, and counts."""

    def __init__(self, name: str) -> None:
        self.name, self.found = name, Counter()

    def line(self, case: str, verdict: str, why: str = "") -> None:
        self.found[verdict] += 1
        print(f"{self.name:<12} {case:<28} {verdict:<7} {why}".rstrip(), flush=True)

    def check(self, case: str, action: Callable[[], object]) -> None:
        """Does it: a case fails by an exception."""
        try:
            action()
        except (AssertionError, Failed, OSError, KeyError, ValueError) as error:
            self.line(case, "FAILED", f"{type(error).__name__}: {error}")
        else:
            self.line(case, "ok")

    def gather(self, lines: list[dict], wanted: list[str], shapes: bool) -> dict[str, Presigned]:
        """The URLs of a program's lines. What it does not speak of has failed."""
        urls = {}
        for line in lines:
            case = line["case"]
            if "skip" in line:
                self.line(case, "skipped", line["skip"])
                continue
            urls[case] = Presigned(case, line["method"], line["url"], line.get("headers"))
            if shapes:
                carried = " ".join("=".join(pair) for pair in urls[case].pairs())
                print(f"{'':<12} {case:<28} {carried or '-'}; signed: {' '.join(urls[case].signed)}")
            if difference := differs(self.name, urls[case]):
                self.line(case, "FAILED", difference)
        spoken_of = {line["case"] for line in lines}
        for case in wanted:
            if case not in spoken_of:
                self.line(case, "FAILED", "the program does not speak of it")
        return urls


def presigned(report: Report, program: Program, bucket: Bucket, shapes: bool) -> None:
    """All that is done by URLs."""
    lines = program.call(bucket.name, FACTS, "presign")
    urls = report.gather(lines, [*CASES, "create"], shapes)
    for case, check in {**CASES, **VARIANTS}.items():
        if case in urls:
            report.check(case, lambda check=check, url=urls[case]: check(bucket, url))

    def upload() -> None:
        upload_id = create(bucket, urls.get("create"))
        lines = program.call(bucket.name, FACTS, "presign-upload", upload_id)
        parts_and_complete(bucket, upload_id, report.gather(lines, list(UPLOAD[1:]), shapes))

    report.check("upload", upload)


def used(report: Report, program: Program, bucket: Bucket) -> None:
    """What the SDK does itself."""
    lines = program.call(bucket.name, FACTS, "use")
    said = {line["step"]: line for line in lines}
    skipped = [step for step, line in said.items() if "skip" in line]
    for step in STEPS:
        if step in skipped:
            report.line(step, "skipped", said[step]["skip"])
            continue
        wrong = said.get(step, {"wrong": "the program does not speak of it"}).get("wrong", "")
        report.line(step, "FAILED" if wrong else "ok", wrong)

    def left() -> None:
        wanted = sorted(key for key in LEFT if OPTIONAL.get(key) not in skipped)
        assert bucket.files() == wanted, f"left are {bucket.files()}"
        for key in wanted:
            assert bucket.file(key).read_bytes() == LEFT[key], f"the file {key}"

    report.check("files", left)


def refused_in(bucket: str, log: str) -> list[str]:
    """The requests to a bucket that the server's access log tells to have been answered 501."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [
        f"{line['method']} {line['target']}"
        for line in lines
        if line["status"] == 501 and line.get("bucket") == bucket
    ]


def try_out(name: str, options: argparse.Namespace) -> Counter[str]:
    report = Report(name)
    sdk = SDKS[name]
    try:
        command = sdk.make(sdk.directory)
    except Unavailable as why:
        report.line("-", "skipped", str(why))
        return report.found
    with tempfile.TemporaryDirectory(prefix="slipway-sdks-") as made:
        tree = Path(made, "tree")
        tree.mkdir()
        log = PLACE / f"{name}.log"
        log.unlink(missing_ok=True)
        server = Server(tree, env={**KEYS, "SLIPWAY_ACCESS_LOG": "stderr"}, log=log)
        try:
            program = Program(sdk, command, server.endpoint)
            report.check(
                "presigned",
                lambda: presigned(report, program, Bucket(server, "by-url").create(), options.shapes),
            )
            if sdk.uses:
                report.check("use", lambda: used(report, program, Bucket(server, USED)))
        finally:
            # It writes the last lines of its access log.
            server.stop()
        if sdk.uses:
            refused = refused_in(USED, server.log)
            report.line("no 501", "FAILED" if refused else "ok", "; ".join(refused))
    return report.found


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("sdks", nargs="*", metavar="SDK", help=f"of {', '.join(SDKS)}; default all")
    parser.add_argument("--shapes", action="store_true", help="also print what each URL carries")
    options = parser.parse_args()
    if unknown := set(options.sdks) - set(SDKS):
        parser.error(f"no such SDK: {', '.join(sorted(unknown))}")
    PLACE.mkdir(parents=True, exist_ok=True)
    found = sum((try_out(name, options) for name in options.sdks or SDKS), Counter())
    print(", ".join(f"{found[verdict]} {word}" for verdict, word in VERDICTS.items()))
    return bool(found["FAILED"])


VERDICTS = {"ok": "passed", "FAILED": "failed", "skipped": "skipped"}


if __name__ == "__main__":
    sys.exit(main())
