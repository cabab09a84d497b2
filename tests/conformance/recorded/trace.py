"""What a test asks of the server, step by step: operations for the report, and which of them got a 501."""

import re
import threading
from urllib.parse import urlparse

import botocore.client
import pytest
import requests
from botocore.exceptions import ClientError

from . import server

# Parameters of a signature, which don't belong to the name of a request.
_SIGNATURE = re.compile(r"(?i)x-amz-|signature|expires|awsaccess")


class Trace:
    """The steps of the test that runs now. One for the whole run: clients are shared, tests have threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()
        # What is asked between tests belongs to none.
        self.active = False

    def begin(self) -> None:
        """A test begins, with its setup."""
        self.operations: list[str] = []
        self.unimplemented: list[str] = []
        # Blocks that should have raised an error, and didn't: the operation in each.
        self.silent: list[str] = []
        self.active = self.in_setup = True
        self.expecting = 0
        self._answers: dict[int, tuple[object, str]] = {}

    @property
    def last(self) -> str:
        """The latest operation."""
        return self.operations[-1] if self.operations else "?"

    def note(self, operation: str, answer: object, status: int | None) -> None:
        """Something was answered."""
        if not self.active:
            return
        with self._lock:
            self.operations.append(operation)
            self._remember(answer, operation)
            # Tests compare parts of an answer, too.
            for part in list(answer.values()) if isinstance(answer, dict) else []:
                if isinstance(part, dict | list):
                    self._remember(part, operation)
            if status == 501:
                self.unimplemented.append(operation)

    def _remember(self, answer: object, operation: str) -> None:
        # With the answer itself, so that no other object can have its id.
        self._answers[id(answer)] = (answer, operation)

    def operation_of(self, answer: object) -> str:
        """Which operation gave this answer; a guess if the test has made something else of it."""
        return self._answers.get(id(answer), (None, self.last))[1]


TRACE = Trace()


def install() -> None:
    """Notes what botocore and requests send, and lets tests go on where an expected error does not come."""
    _trace_botocore()
    _trace_requests()
    _forgive_missing_errors()


def _status(answer: object) -> int | None:
    return answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None


def _trace_botocore() -> None:
    call = botocore.client.BaseClient._make_api_call

    def traced(self, operation, parameters):
        service = self.meta.service_model.service_name
        if service not in server.SERVICES:
            pytest.skip(f"needs {service}")
        try:
            answer = call(self, operation, parameters)
        except ClientError as error:
            if operation == "CreateBucket" and not TRACE.expecting and _names_other_region(parameters, error):
                pytest.skip("needs a second region")
            if TRACE.in_setup and operation in ("DeletePublicAccessBlock", "DeleteBucketOwnershipControls"):
                # What AWS needs before a test of ACLs can begin, and another server may not have.
                return {}
            TRACE.note(operation, error.response, _status(error.response))
            raise
        TRACE.note(operation, answer, _status(answer))
        return answer

    botocore.client.BaseClient._make_api_call = traced


def _names_other_region(parameters: dict, error: ClientError) -> bool:
    region = (parameters.get("CreateBucketConfiguration") or {}).get("LocationConstraint", "")
    refused = error.response["Error"].get("Code") == "InvalidLocationConstraint"
    return refused and region != server.REGION and re.fullmatch(r"[a-z]{2}-[a-z]+-\d", region) is not None


def _trace_requests() -> None:
    send = requests.Session.send

    def sent(self, request, **kwargs):
        url = urlparse(request.url)
        if not TRACE.active:
            return send(self, request, **kwargs)
        if not server.is_ours(url.hostname):
            pytest.skip(f"asks another host: {url.hostname}")
        answer = send(self, request, **kwargs)
        names = {pair.split("=")[0] for pair in url.query.split("&") if pair and not _SIGNATURE.match(pair)}
        operation = f"{request.method} /bucket{'/key' if url.path.count('/') > 1 else ''}"
        operation += ("?" + "&".join(sorted(names))) if names else ""
        operation += " (presigned)" if re.search("(?i)signature=", url.query) else ""
        TRACE.note(operation, answer, answer.status_code)
        return answer

    requests.Session.send = sent


class _Expected:
    """`with pytest.raises(ClientError)`. Where no error comes, the test gets one that says so and goes on, so
    that the comparison names what AWS answers there. What follows in such a test may differ in its wake."""

    def __init__(self) -> None:
        self.value: ClientError | None = None

    def __enter__(self):
        TRACE.expecting += 1
        self._before = len(TRACE.operations)
        return self

    def __exit__(self, _kind, error, _traceback):
        TRACE.expecting -= 1
        if error is not None and not isinstance(error, ClientError):
            return False
        if error is None:
            operation = TRACE.operations[-1] if len(TRACE.operations) > self._before else "?"
            TRACE.silent.append(operation)
            said = {"Code": "NO ERROR", "Message": f"{operation} succeeded"}
            metadata = {"HTTPStatusCode": 200, "HTTPHeaders": {}}
            error = ClientError({"Error": said, "ResponseMetadata": metadata}, operation)
            TRACE._remember(error.response, operation)
        self.value, self.type, self.typename = error, type(error), type(error).__name__
        return True

    def match(self, pattern: str) -> bool:
        """As pytest's own."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} not in {str(self.value)!r}"
        return True


def _forgive_missing_errors() -> None:
    raises = pytest.raises

    def expecting(error=None, *args, **kwargs):
        if error is ClientError and not args and not kwargs:
            return _Expected()
        return raises(error, *args, **kwargs) if error is not None else raises(*args, **kwargs)

    pytest.raises = expecting
