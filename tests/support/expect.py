"""What every answer must look like."""

import re

from .codes import EXPECTED
from .wire import Response


def ok(response: Response, status: int = 200) -> Response:
    """A success with its ids."""
    assert response.status == status, response
    _check_ids(response)
    return response


def error(
    response: Response,
    code: str,
    message: str | re.Pattern | None = None,
    *,
    status: int | None = None,
    **details: str | re.Pattern | None,
) -> Response:
    """An S3 error: status, code, sentence, the given extra elements, and what all errors have.

    Without `message` or `status` those of the code itself are expected. A detail of None must be missing.
    """
    expected_status, sentence = EXPECTED[code]
    assert response.code == code, response
    assert response.status == (status or expected_status), response
    document = response.xml
    assert document.name == "Error"
    _check_text("Message", document["Message"], message or sentence)
    for name, value in details.items():
        if value is None:
            assert name not in document, response
        else:
            _check_text(name, document[name], value)
    assert response.headers["content-type"] == "application/xml", response
    assert "Resource" not in document, "the API reference shows one, S3 sends none"
    request_id, host_id = _check_ids(response)
    assert document["RequestId"] == request_id
    assert document["HostId"] == host_id
    return response


def head_error(response: Response, status: int) -> Response:
    """An error in answer to HEAD: a status and ids, no body."""
    assert response.status == status, response
    assert response.body == b""
    _check_ids(response)
    return response


def _check_text(name: str, text: str, expected: str | re.Pattern) -> None:
    if isinstance(expected, re.Pattern):
        assert expected.search(text), f"{name}: {text!r}, expected {expected.pattern!r}"
    else:
        assert text == expected, f"{name}: {text!r}, expected {expected!r}"


def _check_ids(response: Response) -> tuple[str, str]:
    request_ids = response.headers.all("x-amz-request-id")
    host_ids = response.headers.all("x-amz-id-2")
    assert len(request_ids) == 1 and len(request_ids[0]) == 16, response
    assert len(host_ids) == 1 and host_ids[0], response
    return request_ids[0], host_ids[0]
