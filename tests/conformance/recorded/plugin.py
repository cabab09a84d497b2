"""The pytest plugin: `pytest -p recorded.plugin --noconftest`, in a checkout of localstack/localstack."""

import json
import os
import sys
import time
import types
from collections import Counter
from pathlib import Path

import pytest

from . import server

# The checkout's test configuration reads these, on import.
os.environ.update(
    TEST_TARGET="AWS_CLOUD",
    TEST_AWS_ACCESS_KEY_ID=server.ACCESS_KEY,
    TEST_AWS_SECRET_ACCESS_KEY=server.SECRET_KEY,
    AWS_ACCESS_KEY_ID=server.ACCESS_KEY,
    AWS_SECRET_ACCESS_KEY=server.SECRET_KEY,
    AWS_DEFAULT_REGION=server.REGION,
    AWS_ENDPOINT_URL=server.ENDPOINT,
    AWS_EC2_METADATA_DISABLED="true",
    TZ="UTC",
)


def _stand_in(name: str, **contents) -> None:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(contents)


# A file that only a build of the checkout makes, and a library of which it wants one constant.
_stand_in("localstack.version", __version__="0", version="0", __version_tuple__=(0,), version_tuple=(0,))
_stand_in("moto", __path__=[])
_stand_in("moto.wafv2", __path__=[])
_stand_in("moto.wafv2.models", US_EAST_1_REGION="us-east-1")
_stand_in("localstack.services.iam.iam_patches", ADDITIONAL_MANAGED_POLICIES={})

from . import grades, trace  # noqa: E402
from .fixtures import *  # noqa: E402, F403
from .trace import TRACE  # noqa: E402

server.resolve_names()
trace.install()

# Tests with one of these marks tell nothing about S3.
MARKS = {
    "aws_only_localstack": "about LocalStack itself",
    "only_localstack": "about LocalStack itself",
    "aws_unknown": "never validated against AWS",
    "aws_needs_fixing": "fails on AWS",
}
OTHER_MARKS = (
    "aws_validated", "aws_manual_setup_required", "skip_snapshot_verify", "requires_in_process",
    "requires_in_container", "resource_heavy", "skip_offline", "only_on_amd64", "multiruntime",
    "acceptance_test",
)  # fmt: skip


# Of more tests than these, the terminal does not show each difference.
DETAILED_MAX = 20


class Differs(AssertionError):
    """The test ran to its end; an answer is not what was recorded."""


# What became of each test, by its name.
ROWS: dict[str, dict] = {}


def pytest_configure(config):
    for mark in (*MARKS, *OTHER_MARKS):
        config.addinivalue_line("markers", mark)


def pytest_sessionstart(session):
    try:
        session.config.janitor = server.Janitor()
        if "iam" in server.SERVICES and not os.environ.get("RECORDED_AS_ROOT"):
            server.become_user()
    except Exception as error:
        pytest.exit(f"no S3 server answers at {server.ENDPOINT}: {error}", returncode=3)
    if report := os.environ.get("RECORDED_REPORT"):
        open(report, "w").close()


def pytest_collection_modifyitems(session, items):
    for module in {item.module for item in items}:
        _name_the_server(module)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        why = next((why for mark, why in MARKS.items() if mark in marks), None)
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        known = session._fixturemanager.getfixturedefs
        lacking = sorted(
            name
            for name in item.fixturenames
            if name != "request" and name not in parameters and not known(name, item)
        )
        if why or lacking:
            item.add_marker(pytest.mark.skip(reason=why or f"needs {', '.join(lacking)}"))


def _name_the_server(module) -> None:
    """The suite's own functions would give the URLs of AWS."""

    def endpoint_url(region="", localstack_host=None):
        server.check_region(region)
        return server.NAMED_ENDPOINT

    def bucket_url(bucket_name, region="", localstack_host=None):
        return f"{endpoint_url(region)}/{bucket_name}"

    def bucket_url_vhost(bucket_name, region="", localstack_host=None):
        server.check_region(region)
        return server.bucket_url_vhost(bucket_name)

    def website_bucket_url(bucket_name):
        pytest.skip("needs website hosting")

    for function in (endpoint_url, bucket_url, bucket_url_vhost, website_bucket_url):
        if hasattr(module, f"_{function.__name__}"):
            setattr(module, f"_{function.__name__}", function)


def pytest_runtest_setup(item):
    TRACE.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    TRACE.in_setup = False
    item.differences, failure = [], None
    try:
        yield
    except (pytest.skip.Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        failure = error
    recording = getattr(item, "recording", None)
    if recording is not None and recording.observed_state:
        try:
            recorded, answered = recording.recorded_state or {}, recording.answered()
            item.differences = grades.differences(item.name, recorded, answered, failure is not None)
        except Exception:
            # After a failure, what was noted may be of a form that the recording can't have.
            if failure is None:
                raise
    if failure is not None:
        raise failure
    if TRACE.silent and not item.differences:
        raise AssertionError(f"no error from: {', '.join(TRACE.silent)}")
    if item.differences:
        worst = max(item.differences, key=lambda difference: grades.GRADES.index(grades.grade_of(difference)))
        line = grades.describe(worst, recording.operations)
        raise Differs(
            line if len(item.differences) == 1 else f"{line} (and {len(item.differences) - 1} more)"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    name = item.nodeid.split("/services/")[-1].removeprefix("s3/")
    row = ROWS.setdefault(name, {"test": name, "grade": "strict", "seconds": 0.0})
    row["seconds"] = round(row["seconds"] + report.duration, 2)
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        row.update(grade="skipped", why=reason.removeprefix("Skipped: "))
    elif report.failed and report.when != "teardown":
        row.update(grade=_grade(item, call.excinfo.value), why=_reason(call.excinfo))
    if report.when == "call":
        _describe(item, row)
        if report.failed and row["grade"] == "aws":
            # What only lacks the default of encryption has passed.
            report.outcome, report.longrepr = "passed", None
    if report.when == "teardown":
        _end(row, session=item.session)
    else:
        row["unimplemented"] = _unimplemented(item)
    return report


def _unimplemented(item) -> list[str]:
    """What was answered 501, less what S3 was recorded to answer so (`If-Match: *` on a PUT)."""
    recording = getattr(item, "recording", None)
    left = list(TRACE.unimplemented)
    for step, answer in ((recording and recording.recorded_state) or {}).items():
        operation = recording.operations.get(step)
        metadata = answer.get("ResponseMetadata", {}) if isinstance(answer, dict) else {}
        if metadata.get("HTTPStatusCode") == 501 and operation in left:
            left.remove(operation)
    return sorted(set(left))


def _grade(item, error: BaseException) -> str:
    if not isinstance(error, Differs):
        return "none"
    return grades.worst(grades.grade_of(difference) for difference in item.differences)


def _reason(excinfo) -> str:
    if isinstance(excinfo.value, Differs):
        return f"{Differs.__name__}: {excinfo.value}"
    text = excinfo.exconly()[:500].replace("\n", " ")
    steps = [step for step in excinfo.traceback if "tests/aws/services/" in str(step.path)]
    where = f"line {steps[-1].lineno + 1}, " if steps else ""
    return f"{where}after {TRACE.last}: {text}"


def _describe(item, row: dict) -> None:
    operations = getattr(getattr(item, "recording", None), "operations", {})
    row["differences"] = [
        [grades.grade_of(difference), grades.describe(difference, operations)]
        for difference in item.differences
    ]


def _end(row: dict, session) -> None:
    if row["grade"] == "none" and not _alive():
        row["why"] = f"THE SERVER DIED: {row.get('why')}"
    if report := os.environ.get("RECORDED_REPORT"):
        with open(report, "a") as out:
            out.write(json.dumps(row, default=str) + "\n")
    if row.get("why", "").startswith("THE SERVER DIED"):
        pytest.exit(f"the server died during {row['test']}", returncode=9)
    if TRACE.operations:
        TRACE.active = False
        session.config.janitor.clean()


def _alive() -> bool:
    for _ in range(3):
        if server.answers():
            return True
        time.sleep(1)
    return False


def pytest_terminal_summary(terminalreporter):
    rows = list(ROWS.values())
    ran = [row for row in rows if row["grade"] != "skipped"]
    failed = [row for row in ran if row["grade"] not in ("strict", "aws")]
    details = "\n".join(line for row in failed for line in _details(row))
    if report := os.environ.get("RECORDED_REPORT"):
        Path(report).with_suffix(".txt").write_text(details + "\n")
        terminalreporter.write_line(f"each difference: {Path(report).with_suffix('.txt')}")
    if len(failed) <= DETAILED_MAX or not report:
        terminalreporter.write_line(details)
    reached = Counter(row["grade"] for row in ran)
    total, words = 0, []
    for grade in grades.GRADES[:-1]:
        total += reached[grade]
        words.append(f"{grade} {total}")
    refused = sum(bool(row.get("unimplemented")) for row in failed)
    skipped = Counter(row.get("why") for row in rows if row["grade"] == "skipped")
    reasons = "; ".join(f"{why} {count}" for why, count in skipped.most_common())
    terminalreporter.write_line(f"skipped {len(rows) - len(ran)}: {reasons}")
    terminalreporter.write_line(f"run {len(ran)}: {', '.join(words)}")
    without = len(failed) - refused
    terminalreporter.write_line(f"below aws {len(failed)}: {refused} with a 501, {without} without")


def _details(row: dict) -> list[str]:
    refused = f"  [501: {', '.join(row['unimplemented'])}]" if row.get("unimplemented") else ""
    differences = [f"  {line}" for best, line in row.get("differences", []) if best != "aws"]
    stopped = [] if row["why"].startswith(Differs.__name__) else [f"  stopped: {row['why']}"]
    return ["", f"{row['test']}  {row['grade']}{refused}", *differences, *stopped]
