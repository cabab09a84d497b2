#!/usr/bin/env python3
"""Compares our decisions with those of an independent evaluator, npm's @cloud-copilot/iam-simulate.

    cargo build -p policy --example evaluate
    npm install --prefix FOLDER @cloud-copilot/iam-simulate
    tests/policies/compare.py --node FOLDER/node_modules [--seed N] [--count N]

Policies and requests are drawn from the seed. Differences that docs/decisions/0039-policies.md
judges are counted by kind; others are printed, and the exit code is 1.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWNER, OTHER = "111122223333", "444455556666"
BUCKET = "bucket"

KEYS = ["a", "ab", "home/ann/x", "home/bob/x", "home/ann", "x/y/z", "a${b", "$", "ann", "ü"]
ACTIONS = {
    "s3:GetObject": True,
    "s3:PutObject": True,
    "s3:DeleteObject": True,
    "s3:GetObjectTagging": True,
    "s3:ListBucket": False,
}
ACTION_PATTERNS = [
    "s3:*",
    "s3:Get*",
    "s3:?etObject",
    "S3:putobject",
    "s3:*Object",
    "s3:List*",
    "s3:GetObjectTagging",
    "s3:DeleteObject*",
    "*",
    "iam:*",
]
RESOURCES = [
    "*",
    "arn:aws:s3:::*",
    "arn:aws:s3:::bucket",
    "arn:aws:s3:::bucket/*",
    "arn:aws:s3:::bucket/home/${aws:username}/*",
    "arn:aws:s3:::buck?t/a*",
    "arn:aws:s3:::bucket/${aws:PrincipalTag/team}*",
    "arn:aws:s3:::*/a?",
    "arn:*:s3:::bucket/x/*/z",
    "arn:aws:s3:::bucket/${*}",
    "arn:aws:s3:::bucket/a${?}b",
    "arn:aws:s3:::bucket/${aws:username, 'home'}/*",
]
OF_BUCKET = [r for r in RESOURCES if not r.startswith("arn:aws:s3:::*/")]
TEXTS = [
    "a",
    "b",
    "A",
    "a*",
    "?",
    "home/${aws:username}/*",
    "${aws:username}",
    "${aws:PrincipalTag/team, 'b'}",
    "${*}",
    "",
    "ann",
]
STRINGS = [
    "StringEquals",
    "StringNotEquals",
    "StringEqualsIgnoreCase",
    "StringNotEqualsIgnoreCase",
    "StringLike",
    "StringNotLike",
]
NUMBERS = ["Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"]
ARNS = [
    "arn:aws:iam::*:user/*",
    "arn:aws:iam::111122223333:role/${aws:PrincipalTag/team}",
    "arn:aws:iam::111122223333:user/a??",
    "arn:*:*:*:*:*",
    "arn:aws:iam::444455556666:root",
]
MANY = ["aws:TagKeys", "aws:PrincipalOrgPaths"]


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, options):
        return self.random.choice(options)

    def chance(self, share):
        return self.random.random() < share

    def some(self, options, most=2):
        drawn = self.random.sample(options, self.random.randint(1, most))
        return drawn[0] if len(drawn) == 1 and self.chance(0.5) else drawn

    def condition(self):
        kind = self.one(["string", "string", "string", "many", "number", "date", "bool", "ip", "arn", "null"])
        if_exists = "IfExists" if self.chance(0.25) else ""
        if kind == "string":
            key = self.one(
                [
                    "aws:username",
                    "aws:PrincipalTag/team",
                    "AWS:principaltag/Team",
                    "aws:UserAgent",
                    "aws:Referer",
                ]
            )
            return self.one(STRINGS) + if_exists, key, self.some(TEXTS)
        if kind == "many":
            prefix = self.one(["ForAllValues:", "ForAnyValue:"])
            return (
                prefix + self.one(STRINGS) + if_exists,
                self.one(MANY),
                self.some(["a", "b", "c", "A", "a*"]),
            )
        if kind == "number":
            values = ["0", "1", "1.5", "10", "-3", "1.2", "1.3"]
            return (
                "Numeric" + self.one(NUMBERS) + if_exists,
                self.one(["s3:TlsVersion", "s3:signatureAge"]),
                self.some(values),
            )
        if kind == "date":
            values = [
                "2026-11-25T00:00:00Z",
                "2026-11-25",
                "2027-01-01T12:00:00+01:00",
                "2020-01-01T00:00:01Z",
            ]
            return "Date" + self.one(NUMBERS) + if_exists, "aws:CurrentTime", self.some(values)
        if kind == "bool":
            return (
                "Bool" + if_exists,
                self.one(["aws:SecureTransport", "aws:MultiFactorAuthPresent"]),
                self.one(["true", "false", "True"]),
            )
        if kind == "ip":
            values = ["10.0.0.0/8", "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0"]
            return self.one(["IpAddress", "NotIpAddress"]) + if_exists, "aws:SourceIp", self.some(values)
        if kind == "arn":
            operator = self.one(["ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike"]) + if_exists
            return operator, "aws:PrincipalArn", self.some(ARNS)
        return (
            "Null",
            self.one(["aws:username", "aws:PrincipalTag/team", "aws:TagKeys"]),
            self.one(["true", "false"]),
        )

    def statement(self, principals):
        statement = {"Effect": "Deny" if self.chance(0.25) else "Allow"}
        if principals:
            name = "Principal"
            if statement["Effect"] == "Deny" and self.chance(0.1):
                name = "NotPrincipal"
            statement[name] = self.one(principals)
        bucket = bool(principals)
        patterns = [p for p in ACTION_PATTERNS if not (bucket and p.startswith("iam"))]
        statement["NotAction" if self.chance(0.15) else "Action"] = self.some(patterns)
        statement["NotResource" if self.chance(0.15) else "Resource"] = self.some(
            OF_BUCKET if bucket else RESOURCES
        )
        if self.chance(0.5):
            condition = statement["Condition"] = {}
            for _ in range(self.random.randint(1, 2)):
                operator, key, values = self.condition()
                of_operator = condition.setdefault(operator, {})
                if key.lower() not in (known.lower() for known in of_operator):
                    of_operator[key] = values
        return statement

    def document(self, principals=None):
        statements = [self.statement(principals) for _ in range(self.random.randint(1, 3))]
        return {"Version": "2012-10-17", "Statement": statements}

    def case(self):
        account, owner = self.one([OWNER, OWNER, OTHER]), OWNER
        kind = self.one(["user", "user", "role", "federated", "anonymous"])
        issuer = None
        if kind == "user":
            arn = f"arn:aws:iam::{account}:user/ann"
        elif kind == "role":
            arn, issuer = f"arn:aws:sts::{account}:assumed-role/r/s", f"arn:aws:iam::{account}:role/r"
        elif kind == "federated":
            arn, issuer = f"arn:aws:sts::{account}:federated-user/ann", f"arn:aws:iam::{account}:user/ann"
        else:
            arn, account = "", ""
        principals = [
            "*",
            {"AWS": "*"},
            {"AWS": "arn:aws:iam::111122223333:user/bob"},
            {"AWS": [OWNER, "arn:aws:iam::444455556666:user/ann"]},
            {"AWS": OTHER},
        ]
        if arn:
            principals += [{"AWS": arn}] * 2 + ([{"AWS": issuer}] * 2 if issuer else [])
        context = {
            "aws:SecureTransport": self.one(["true", "false"]),
            "aws:SourceIp": self.one(["10.1.2.3", "192.0.2.7", "2001:db8::5", "203.0.113.1"]),
            "aws:CurrentTime": self.one(
                ["2026-11-25T00:00:00Z", "2026-12-31T23:59:59Z", "2019-01-01T00:00:00Z"]
            ),
        }
        if kind == "user":
            context["aws:username"] = self.one(["ann", "a", "*"])
        if arn:
            context["aws:PrincipalArn"] = issuer if kind == "role" else arn
        for key, values in [
            ("aws:PrincipalTag/team", ["a", "b", "r", "*", "A"]),
            ("aws:UserAgent", ["a", "ab", "A"]),
            ("aws:Referer", ["a", ""]),
            ("s3:TlsVersion", ["1.2", "1.3"]),
            ("s3:signatureAge", ["0", "10", "1000"]),
            ("aws:MultiFactorAuthPresent", ["true", "false"]),
        ]:
            if self.chance(0.5):
                context[key] = self.one(values)
        for key in MANY:
            if self.chance(0.5):
                context[key] = self.random.sample(["a", "b", "ab", "d"], self.random.randint(1, 2))
        action = self.one(list(ACTIONS))
        case = {
            "kind": kind,
            "account": account,
            "arn": arn,
            "owner": owner,
            "action": action,
            "bucket": BUCKET,
            "context": context,
            "identity": [self.document() for _ in range(self.random.randint(0, 2))] if arn else [],
            "boundary": [self.document()] if kind in ("user", "role") and self.chance(0.25) else [],
            "resource": [self.document(principals)] if self.chance(0.8) else [],
        }
        if issuer:
            case["issuer"] = issuer
        if ACTIONS[action]:
            case["key"] = self.one(KEYS)
        if kind in ("role", "federated") and self.chance(0.3):
            case["session"] = [self.document()]
        return case


def uses(case, part):
    return part in json.dumps([case["identity"], case["boundary"], case["resource"], case.get("session", [])])


def limited_by_session(case, ours, theirs):
    """A grant to a session's own ARN or to everybody passes by its policy, as AWS documents; they let
    the policy limit it."""
    return "session" in case and ours == "allow" and theirs == "no grant" and case["account"] == case["owner"]


def not_principal(case, ours, theirs):
    """They spare who is in the list at all, AWS only whole chains, and nobody with a boundary."""
    return uses(case, "NotPrincipal") and ours == "deny"


def statements(case):
    for part in ("identity", "boundary", "resource", "session"):
        for document in case.get(part, []):
            yield from document["Statement"]


def conditions(case):
    for statement in statements(case):
        for operator, keys in statement.get("Condition", {}).items():
            for key, values in keys.items():
                yield operator, key, values if isinstance(values, list) else [values]


def variable_without_value(case, ours, theirs):
    """What has a variable without a value matches nothing, so that NotResource does not spare it, and
    a negated operator holds, as AWS documents ("inverted condition operators do match against a null
    value"); with theirs the whole statement does not apply."""
    missing = [
        f"${{{key}}}" for key in ("aws:username", "aws:PrincipalTag/team") if key not in case["context"]
    ]
    used = [value for operator, _, values in conditions(case) if "Not" in operator for value in values]
    used += [json.dumps(statement.get("NotResource", "")) for statement in statements(case)]
    return any(variable in value for variable in missing for value in used)


def any_value_if_exists(case, ours, theirs):
    """...IfExists holds for an absent key, whatever its prefix ("if the key is not present, evaluate the
    condition element as true"); with theirs ForAnyValue does not."""
    return any(
        "ForAnyValue" in operator and "IfExists" in operator and key not in case["context"]
        for operator, key, _ in conditions(case)
    )


def addresses(case, ours, theirs):
    """0.0.0.0/0 is all of IPv4, and an address of IPv6 is in no network of IPv4, so that NotIpAddress
    holds for it; theirs has both otherwise."""
    of_six = ":" in case["context"]["aws:SourceIp"]
    return any(
        "IpAddress" in operator and any(value == "0.0.0.0/0" or of_six != (":" in value) for value in values)
        for operator, _, values in conditions(case)
    )


def special_characters(case, ours, theirs):
    """${*} and ${?} are * and ? in values of all text operators ("in any string where you can use regular
    policy variables"); theirs has them only where wildcards are."""
    return any(
        "Equals" in operator and any("${*}" in value or "${?}" in value for value in values)
        for operator, _, values in conditions(case)
    )


KNOWN = [
    limited_by_session,
    not_principal,
    variable_without_value,
    any_value_if_exists,
    addresses,
    special_characters,
]


def process(command, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--node", required=True, help="the node_modules that has the evaluator")
    parser.add_argument("--evaluate", default=str(ROOT / "target/debug/examples/evaluate"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    options = parser.parse_args()
    draw = Draw(options.seed)
    cases = [draw.case() for _ in range(options.count)]
    ours = process([options.evaluate], cases)
    theirs = process(["node", str(pathlib.Path(__file__).with_name("simulate.mjs")), options.node], cases)
    counts, shown = collections.Counter(), 0
    for case, mine, other in zip(cases, ours, theirs, strict=True):
        if "error" in mine or "error" in other:
            counts[
                "refused by both"
                if "error" in mine and "error" in other
                else "refused by " + ("us" if "error" in mine else "them")
            ] += 1
            error = mine.get("error", "") + " | " + other.get("error", "")
            counts["  " + " ".join(error.split()[-12:])[:110]] += 1
            continue
        if mine["verdict"] == other["verdict"]:
            counts["same: " + mine["verdict"]] += 1
            continue
        kind = next(
            (known.__name__ for known in KNOWN if known(case, mine["verdict"], other["verdict"])), None
        )
        counts[f"differs: {kind or 'NOT JUDGED'}: {mine['verdict']}, they {other['verdict']}"] += 1
        if kind is None and shown < options.show:
            shown += 1
            print(
                json.dumps(
                    {
                        k: v
                        for k, v in case.items()
                        if k not in ("identity", "boundary", "resource", "session")
                    }
                )
            )
            for part in ("resource", "boundary", "session", "identity"):
                for number, document in enumerate(case.get(part, [])):
                    for statement in document["Statement"]:
                        print("  ", part, number, json.dumps(statement))
            print("ours:", mine["verdict"], *mine["notes"], sep="\n   ")
            print("theirs:", other["verdict"], "\n")
    for name, count in sorted(
        counts.items(), key=lambda item: (not item[0].startswith(("same", "differs")), -item[1])
    )[:60]:
        print(f"{count:7} {name}")
    sys.exit(1 if any("NOT JUDGED" in name for name in counts) else 0)


if __name__ == "__main__":
    main()
