"""The table of IAM's and STS's actions, their forms, answers and errors, compared with botocore's models.

No server runs: `crates/iam-wire/tests/golden` has what the crate `iam-wire` reads and writes, and its own tests hold these
files to the code. `BLESS=1` writes `forms.txt` anew.
"""

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from botocore.model import Shape
from botocore.parsers import QueryParser
from botocore.serialize import create_serializer

from support import actions

NOT_AWS = {"AssumeRoleWithLDAPIdentity"}
"""Actions with AWS's versions that AWS does not have."""

OTHER_RULES = {
    "Marker": r"text 1..1024 [\u0020-\u00FF]+",
    # Keys that were imported from MinIO and Versity S3 Gateway have names as ids.
    "AccessKeyId": r"text 3..128 [\w.@+-]+",
}
"""Members whose constraints differ from the model's: `rule.rs` says why."""

LEFT_OUT = {
    "User": {"PasswordLastUsed"},
    "EvaluationResult": {"OrganizationsDecisionDetail"},
    "ResourceSpecificResult": {"EvalDecisionDetails"},
    "Role": {"MaxSigninSessionDuration", "SourceRoleTemplate"},
    "GetOpenIDConnectProviderResponse": {"ContextProvider", "IdentityCenterInstanceArn", "IdentityStoreArn"},
    "OpenIDConnectProviderListEntry": {"IsTrustedIdentityPropagationEnabled"},
    "AssumeRoleResponse": {"SessionTokenUtilization", "SessionTokenSize"},
    "AssumeRoleWithWebIdentityResponse": {
        "SessionTokenUtilization",
        "SessionTokenSize",
        "TrustedIdentityPropagationContext",
    },
    "GetFederationTokenResponse": {"SessionTokenUtilization", "SessionTokenSize"},
    "GetSessionTokenResponse": {"SessionTokenUtilization", "SessionTokenSize"},
}
"""Members of answers that this server never has."""


@pytest.mark.parametrize("service", ["iam", "sts"])
def test_the_table_has_the_actions_of_the_model(service: str) -> None:
    table = {action.name for action in actions.actions() if action.service == service}
    assert table - NOT_AWS == set(actions.model(service).operation_names)
    assert actions.model(service).api_version in actions.VERSIONS


def _is_sensitive(shape: Shape | None, seen: frozenset[str] = frozenset()) -> bool:
    if shape is None or shape.name in seen:
        return False
    seen |= {shape.name}
    match shape.type_name:
        case "structure":
            return any(_is_sensitive(member, seen) for member in shape.members.values())
        case "list":
            return _is_sensitive(shape.member, seen)
    return bool(shape.metadata.get("sensitive"))


@pytest.mark.parametrize("action", [a for a in actions.actions() if a.service != "slipway"], ids=str)
def test_secrets_are_where_the_model_has_them(action: actions.Action) -> None:
    if action.name in NOT_AWS:
        assert action.secrets == "both"
        return
    model = actions.operation(action.name)
    takes, gives = _is_sensitive(model.input_shape), _is_sensitive(model.output_shape)
    # A list without anything in it has no secrets.
    gives = gives and not action.state.startswith("empty")
    expected = {(False, False): "plain", (True, False): "takes", (False, True): "gives", (True, True): "both"}
    assert action.secrets == expected[takes, gives]


def test_reads_are_named_so() -> None:
    for action in actions.actions():
        reads = re.match("Get|List|Simulate|Decode|Explain", action.name)
        gives_sessions = action.service == "sts" and action.secrets != "plain"
        assert (action.effect == "reads") == (bool(reads) and not gives_sessions), action


@pytest.mark.parametrize("name", [name for name in actions.with_members() if name not in NOT_AWS])
def test_members_are_the_models(name: str) -> None:
    shape = actions.operation(name).input_shape
    model = dict(shape.members) if shape else {}
    required = set(shape.required_members) if shape else set()
    ours = actions.members(name)
    assert [member.name for member in ours if member.rule != "refused"] == [
        member for member in model if member not in {m.name for m in ours if m.rule == "refused"}
    ]
    assert {member.name for member in ours} == set(model)
    for member in ours:
        if member.rule != "refused":
            expected = OTHER_RULES.get(member.name) or actions.rule(member.name, model[member.name])
            assert (member.name, member.rule) == (member.name, expected)
            assert member.is_required == (member.name in required), member.name


def _form(name: str, *, is_whole: bool) -> str:
    """The body that botocore sends."""
    if name in NOT_AWS:
        version = "2011-06-15"
        body = {
            "Action": name,
            "Version": version,
            "LDAPUsername": "ldapusername",
            "LDAPPassword": "ldappassword",
        }
        return urlencode(body | ({"Policy": '{"a": 1}', "DurationSeconds": "915"} if is_whole else {}))
    operation = actions.operation(name)
    refused = {member.name for member in actions.members(name) if member.rule == "refused"}
    shape = operation.input_shape
    members = shape.members if shape else {}
    taken = (
        [member for member in members if member not in refused]
        if is_whole
        else shape.required_members
        if shape
        else []
    )
    parameters = {member: actions.value(member, members[member]) for member in taken}
    serialized = create_serializer("query").serialize_to_request(parameters, operation)
    return urlencode(serialized["body"])


def test_forms_are_botocores() -> None:
    forms = [_form(name, is_whole=is_whole) for name in actions.with_members() for is_whole in (True, False)]
    path = actions.GOLDEN / "forms.txt"
    text = "".join(f"{form}\n" for form in forms)
    if "BLESS" in os.environ:
        path.write_text(text)
    assert path.read_text() == text


def _answers() -> list[tuple[str, str]]:
    return [tuple(line.split(" ", 1)) for line in (actions.GOLDEN / "answers.txt").read_text().splitlines()]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            if key != "ResponseMetadata":
                yield from _leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    else:
        yield str(value).lower() if isinstance(value, bool) else str(value)


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _check_order(element: ElementTree.Element, shape: Shape) -> None:
    """Each member is one of the model's, and they come in its order; those left out are known."""
    match shape.type_name:
        case "structure":
            names = [_local(child) for child in element]
            assert names == [member for member in shape.members if member in names], shape
            assert not LEFT_OUT.get(shape.name, set()) & set(names)
            for child in element:
                _check_order(child, shape.members[_local(child)])
        case "list":
            for child in element:
                assert _local(child) == "member"
                _check_order(child, shape.member)


@pytest.mark.parametrize(("name", "answer"), _answers())
def test_botocore_reads_answers(name: str, answer: str) -> None:
    root = ElementTree.fromstring(answer)
    assert _local(root) == f"{name}Response"
    if name in NOT_AWS:
        assert root.find("{*}AssumeRoleWithLDAPIdentityResult/{*}Credentials/{*}SecretAccessKey") is not None
        return
    operation = actions.operation(name)
    assert root.tag.startswith("{" + operation.service_model.metadata["xmlNamespace"] + "}")
    response = {"status_code": 200, "headers": {}, "body": answer.encode()}
    parsed = QueryParser().parse(response, operation.output_shape)
    assert parsed["ResponseMetadata"]["RequestId"] == "request-1"
    result = root.find("{*}" + f"{name}Result")
    assert (result is not None) == (operation.output_shape is not None)
    if result is None:
        assert set(parsed) == {"ResponseMetadata"}
        return
    _check_order(result, operation.output_shape)
    leaves = [element for element in result.iter() if element is not result and len(element) == 0]
    texts = [element.text or "" for element in leaves if _local(element) != "key"]
    # Lists and structures without anything in them are elements without text, and times are read.
    read = [leaf for leaf in _leaves(parsed) if not re.fullmatch(r"\d{4}-\d\d-\d\d .*", leaf)]
    sent = [text for text in texts if not re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", text)]
    empty = sent.count("") - read.count("")
    assert sorted(leaf for leaf in read if leaf) == sorted(text for text in sent if text)
    assert empty == sum(value in ([], {}) for value in _containers(parsed))
    _check_required(parsed, operation.output_shape)


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for key, member in value.items():
            if key != "ResponseMetadata":
                yield from _containers(member)
    elif isinstance(value, list):
        yield value
        for member in value:
            yield from _containers(member)


def _check_required(value: Any, shape: Shape) -> None:
    match shape.type_name:
        case "structure":
            assert set(shape.required_members) <= set(value), shape
            for name, member in value.items():
                if name != "ResponseMetadata":
                    _check_required(member, shape.members[name])
        case "list":
            for member in value:
                _check_required(member, shape.member)


@pytest.mark.parametrize(
    "action", [a for a in actions.actions() if a.name in actions.with_members()], ids=str
)
def test_answers_have_all_members(action: actions.Action) -> None:
    """Some answer of each action has every member that this server ever has."""
    if action.name in NOT_AWS or not action.state.startswith("wave"):
        return
    shape = actions.operation(action.name).output_shape
    expected = set(shape.members) - LEFT_OUT.get(shape.name, set()) if shape else set()
    answers = [ElementTree.fromstring(answer) for name, answer in _answers() if name == action.name]
    found = {
        _local(member)
        for answer in answers
        for result in answer
        if _local(result).endswith("Result")
        for member in result
    }
    assert found == expected


def test_documents_are_percent_encoded() -> None:
    answer = next(answer for name, answer in _answers() if name == "GetUserPolicy")
    text = ElementTree.fromstring(answer).find("{*}GetUserPolicyResult/{*}PolicyDocument").text
    assert re.fullmatch(r"(%[0-9A-F]{2}|[A-Za-z0-9._~-])+", text)
    assert "%2Fa%252Fb%20c%2Bd~%C3%A4" in text


def test_the_summary_is_a_map() -> None:
    answer = next(answer for name, answer in _answers() if name == "GetAccountSummary")
    response = {"status_code": 200, "headers": {}, "body": answer.encode()}
    parsed = QueryParser().parse(response, actions.operation("GetAccountSummary").output_shape)
    assert parsed["SummaryMap"] == {"Users": 4, "UsersQuota": 5000}


def test_botocore_reads_errors() -> None:
    lines = (actions.GOLDEN / "errors.txt").read_text().splitlines()
    codes = actions.error_codes()
    assert len(lines) == 4 * len(codes)
    for line in lines:
        status, code, document = line.split(" ", 2)
        assert codes[code] == int(status)
        response = {"status_code": int(status), "headers": {}, "body": document.encode()}
        error = QueryParser().parse(response, None)
        expected = {"Code": code, "Message": 'A sentence with <, & and "quotes".'}
        assert error["Error"] == expected | {"Type": "Receiver" if int(status) >= 500 else "Sender"}
        assert error["ResponseMetadata"]["RequestId"] == "request-1"


@pytest.mark.parametrize("service", ["iam", "sts"])
def test_statuses_are_the_models(service: str) -> None:
    ours = actions.error_codes()
    for shape in actions.model(service).error_shapes:
        error = shape.metadata.get("error", {})
        if error.get("code") in ours:
            assert ours[error["code"]] == error["httpStatusCode"], error
