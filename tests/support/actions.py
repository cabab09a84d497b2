"""The table of IAM's and STS's actions as the code has it, and botocore's models of both.

Tests of the crate `iam-wire` hold `crates/iam-wire/tests/golden` to the code.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape

GOLDEN = Path(__file__).parents[2] / "crates/iam-wire/tests/golden"

VERSIONS = {"2010-05-08": "iam", "2011-06-15": "sts", "slipway-1": "slipway"}


@dataclass(frozen=True)
class Action:
    """A row of the table of actions."""

    name: str
    version: str
    permission: str
    """An action of policies, `unasked` or `administrator`."""
    effect: str
    """`reads` or `changes`."""
    secrets: str
    """`plain`, `takes`, `gives` or `both`."""
    state: str
    """`wave-1` to `wave-4`, `ours`, `later`, `empty-LIST`, `missing` or `refused`."""

    @property
    def service(self) -> str:
        return VERSIONS[self.version]

    def __str__(self) -> str:
        return self.name


def actions() -> list[Action]:
    return [Action(*row.split(" ")) for row in (GOLDEN / "actions.txt").read_text().splitlines()]


def error_codes() -> dict[str, int]:
    """The codes of errors of actions, with their status."""
    rows = (GOLDEN / "codes.txt").read_text().splitlines()
    return {code: int(status) for code, status in (row.split(" ") for row in rows)}


@dataclass(frozen=True)
class Member:
    """A member of an input, as the code asks for it."""

    name: str
    is_required: bool
    rule: str
    """Such as `text 1..64 [\\w+=,.@-]+`, `number 1..1000`, `refused`."""


@cache
def _members() -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    action = ""
    for line in (GOLDEN / "members.txt").read_text().splitlines():
        if member := re.fullmatch(r"  (\S+?)(!?) (.*)", line):
            found[action].append(Member(member[1], member[2] == "!", member[3]))
        else:
            action = line
            found[action] = []
    return found


def members(action: str) -> list[Member]:
    return _members()[action]


def with_members() -> list[str]:
    """The actions whose inputs are read."""
    return list(_members())


@cache
def model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


def operation(name: str) -> OperationModel:
    """The model of an action of IAM or STS."""
    service = "iam" if name in model("iam").operation_names else "sts"
    return model(service).operation_model(name)


def constraints(shape: Shape) -> str:
    """Length and pattern of a text, written as the code does it."""
    bounds = shape.metadata
    text = f"{bounds.get('min', '')}..{bounds.get('max', '')}"
    # botocore leaves patterns out of `metadata`.
    pattern = shape._shape_model.get("pattern")
    return f"{text} {pattern}" if pattern else text


def rule(name: str, shape: Shape) -> str:
    """The constraints of a member by the model, written as the code does it."""
    bounds = shape.metadata
    match shape.type_name:
        case "string" if shape.enum:
            return f"one of {', '.join(shape.enum)}"
        case "string":
            return f"text {constraints(shape)}"
        case "integer":
            return f"number {bounds['min']}..{bounds['max']}"
        case "boolean":
            return "boolean"
        case "list" if name == "Tags":
            assert bounds["max"] == 50
            return "tags"
        case "list" if name == "ContextEntries":
            return "context entries"
        case "list" if shape.member.type_name == "string" and shape.member.enum:
            return f"list of one of {', '.join(shape.member.enum)}"
        case "list" if name == "PolicyArns":
            return f"list .. of arn {constraints(shape.member.members['arn'])}"
        case "list":
            return f"list ..{bounds.get('max', '')} of text {constraints(shape.member)}"
    raise AssertionError(f"{name}: {shape}")


def value(name: str, shape: Shape) -> Any:
    """A value that the model allows, and that shows which member it is of."""
    word = name.lower()
    match shape.type_name:
        case "string" if shape.enum:
            return shape.enum[-1]
        case "string" if name.endswith("Arn") or name == "PermissionsBoundary":
            kind = "role" if name == "RoleArn" else "policy"
            return f"arn:aws:iam::123456789012:{kind}/{word}"
        case "string" if "Path" in name:
            return f"/{word}/"
        case "string" if "Policy" in name and name != "PolicyName":
            return '{"Version": "2012-10-17", "Id": "' + word + ' \u00e4+&=%"}'
        case "string" if name == "VersionId":
            return "v12"
        case "string" if name == "Marker":
            return "YWxpY2U"
        case "string" if name == "Description":
            return "a description, \u00fc & more"
        case "string" if name == "Url":
            return "https://idp.lab/realms/a?b"
        case "string":
            return word.ljust(shape.metadata.get("min", 0), "x")
        case "integer":
            return shape.metadata["min"] + len(name)
        case "boolean":
            return True
        case "list" if name == "Tags":
            return [{"Key": f"key {n}", "Value": "v" * n} for n in range(12)]
        case "list" if name == "PolicyArns":
            return [{"arn": f"arn:aws:iam::123456789012:policy/{n}"} for n in "ab"]
        case "list" if name == "ContextEntries":
            entry = {"ContextKeyName": "aws:TagKeys", "ContextKeyType": "stringList"}
            return [entry | {"ContextKeyValues": [f"v{n}" for n in range(12)]}]
        case "list" if shape.member.type_name == "string" and shape.member.enum:
            return shape.member.enum[-2:]
        case "list" if name == "ThumbprintList":
            return ["a" * 40, "b" * 40]
        case "list" if name == "TransitiveTagKeys":
            return ["key 1"]
        case "list":
            return [f"{word} {n}" for n in range(2)]
    raise AssertionError(f"{name}: {shape}")
