"""`slipway policy check` and `explain`: documents as people write them, and files that are none."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from support.server import NOBODY, REPOSITORY, binary

ACCOUNT, OTHER = "111122223333", "444455556666"
ANN = f"arn:aws:iam::{ACCOUNT}:user/staff/ann"
TWICE = ("--condition", "aws:SourceIp=1", "--condition", "aws:sourceip=2")
NIGHT = f"arn:aws:sts::{ACCOUNT}:assumed-role/backup/night"

HOME = """{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "FindBuckets",
      "Effect": "Allow",
      "Action": ["s3:ListAllMyBuckets", "s3:GetBucketLocation"],
      "Resource": "*"
    },
    {
      "Sid": "ListHome",
      "Effect": "Allow",
      "Action": "s3:ListBucket",
      "Resource": "arn:aws:s3:::lab",
      "Condition": {"StringLike": {"s3:prefix": ["home/${aws:username}/*"]}}
    },
    {
      "Sid": "Home",
      "Effect": "Allow",
      "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
      "Resource": "arn:aws:s3:::lab/home/${aws:username}/*"
    }
  ]
}
"""
# A bucket policy: everybody of another account reads, nobody without TLS does anything.
SHARED = json.dumps(
    {
        "Version": "2012-10-17",
        "Id": "shared",
        "Statement": [
            {
                "Sid": "PartnerReads",
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{OTHER}:root"},
                "Action": "s3:GetObject",
                "Resource": "arn:aws:s3:::lab/*",
            },
            {
                "Sid": "OnlyTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": ["arn:aws:s3:::lab", "arn:aws:s3:::lab/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    },
    indent=2,
)
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Principal": {"AWS": ANN},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": "42"}},
        },
    }
)
# What the console writes for somebody who works with more than S3.
OPERATOR = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["ec2:StartInstances", "ec2:StopInstances"], "Resource": "*"},
            {"Effect": "Allow", "Action": ["s3:*", "cloudwatch:PutMetricData"], "Resource": "*"},
            {
                "Effect": "Deny",
                "Action": "s3:*",
                "Resource": "*",
                "Condition": {"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}},
            },
        ],
    }
)
# Of docs/TOOLS.md.
EXAMPLE = """{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Home",
      "Effect": "Allow",
      "Action": ["s3:GetObject", "s3:PutObject", "ec2:Describe*"],
      "Resource": "arn:aws:s3:::lab/home/${aws:username}/*"
    },
    {
      "Sid": "WithKey",
      "Effect": "Deny",
      "Action": "s3:DeleteObject",
      "Resource": "*",
      "Condition": {"Bool": {"aws:MultiFactorAuthPresent": "false"}}
    }
  ]
}
"""
READ_ONLY = json.dumps(
    {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}}
)


def policy(*words: object, status: int = 0, given: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `slipway policy`, which must end with `status`."""
    done = subprocess.run(
        [binary(), "policy", *map(str, words)], input=given or b"", capture_output=True, timeout=60
    )
    told = subprocess.CompletedProcess(
        done.args, done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr)
    )
    assert told.returncode == status, told
    assert "panicked" not in told.stderr
    return told


def check(*words: object, status: int = 0, given: bytes | None = None) -> list[dict]:
    done = policy("check", "--json", *words, status=status, given=given)
    return [json.loads(line) for line in done.stdout.splitlines()]


def explain(*words: object, status: int = 0) -> dict:
    return json.loads(policy("explain", "--json", *words, status=status).stdout)


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_the_examples_of_the_documentation(write):
    folder = write("ann.json", EXAMPLE).parent
    text = (REPOSITORY / "docs" / "TOOLS.md").read_text()
    examples = re.findall(r"^\$ (slipway policy .*)\n((?:.+\n)+?)```", text, re.MULTILINE)
    assert len(examples) == 2
    for command, shown in examples:
        words = [binary(), *shlex.split(command)[1:]]
        assert subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout == shown


class TestCheck:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            (HOME, "identity"),
            (HOME, "user"),
            (HOME, "boundary"),
            (READ_ONLY, "session"),
            (SHARED, "resource"),
            (TRUST, "trust"),
        ],
    )
    def test_documents_of_each_type(self, write, text, kind):
        path = write("policy.json", text)
        (found,) = check("--type", kind, path)
        assert (found["accepted"], found["type"], found["file"]) == (True, kind, str(path))
        assert found["bucket"] == ("lab" if kind == "resource" else None)
        assert 0 < found["size"] <= found["size_max"]

    def test_the_default_is_told(self, write):
        path = write("home.json", HOME)
        (line,) = policy("check", path).stdout.splitlines()
        assert line.startswith(f"{path}: accepted as an identity policy: version 2012-10-17, 3 statements, ")
        (line,) = policy("check", write("shared.json", SHARED), status=1).stdout.splitlines()
        assert "refused as an identity policy: line 8, column 20, at Statement[0]:" in line
        assert "--type resource" in line

    @pytest.mark.parametrize(
        ("old", "new", "line", "column", "path", "said"),
        [
            (
                '"s3:ListBucket"',
                '"s3:ListBuckets"',
                13,
                17,
                "Statement[1].Action",
                'no action "s3:ListBuckets"',
            ),
            ('"StringLike"', '"StringsLike"', 15, 21, "Statement[1].Condition", 'no operator "StringsLike"'),
            (
                "s3:prefix",
                "s3:prefixes",
                15,
                36,
                "Statement[1].Condition.StringLike",
                'no condition key "s3:prefixes"',
            ),
            ('"Sid": "Home"', '"SID": "Home"', 18, 7, "Statement[2]", 'no element "SID"'),
            ('"Sid": "Home"', '"Sid": "ListHome"', 17, 5, "Statement[2]", "two statements have the Sid"),
            ('${aws:username}/*"\n', '${aws:name}/*"\n', 21, 19, "Statement[2].Resource", "not a variable"),
            (
                '"Effect": "Allow",\n      "Action": "s3:ListBucket"',
                '"Effect": "Allow"\n      "Action": "s3:ListBucket"',
                13,
                7,
                "",
                "not JSON",
            ),
            ("2012-10-17", "2012-10-18", 2, 14, "Version", "the version must be"),
        ],
    )
    def test_faults_have_their_place(self, write, old, new, line, column, path, said):
        assert old in HOME
        (found,) = check(write("p.json", HOME.replace(old, new, 1)), status=1)
        fault = found["fault"]
        assert said in fault["text"], fault
        assert (fault["line"], fault["column"], fault["path"]) == (line, column, path)
        assert fault["aws_message"]

    def test_what_is_meant_is_suggested(self, write):
        (found,) = check(write("p.json", HOME.replace("s3:ListBucket", "s3:ListBuckets", 1)), status=1)
        assert "s3:ListBucket" in found["fault"]["advice"]

    def test_what_has_no_effect(self, write):
        path = write("operator.json", OPERATOR)
        (found,) = check(path)
        assert [(note["note"], note["path"], note["names"]) for note in found["notes"]] == [
            ("other-service", "Statement[0].Action", ["ec2:StartInstances", "ec2:StopInstances"]),
            ("other-service", "Statement[1].Action", ["cloudwatch:PutMetricData"]),
            (
                "absent-key",
                "Statement[2].Condition.BoolIfExists.aws:MultiFactorAuthPresent",
                ["aws:MultiFactorAuthPresent"],
            ),
        ]
        assert found["notes"][0]["text"].endswith("the statement allows nothing")
        assert found["notes"][2]["text"].endswith("the condition always holds")
        lines = policy("check", path).stdout.splitlines()
        assert len(lines) == 4 and all(f"{path}: note: line 1, at " in line for line in lines[1:])
        assert len(check("--strict", path, status=1)) == 1
        check("--strict", write("home.json", HOME))
        (found,) = check("--type", "trust", write("trust.json", TRUST))
        assert found["notes"] == [], "actions of STS have a value of sts:ExternalId"

    def test_claims_of_a_provider_have_values(self, write):
        url = "idp.example.org/realms/lab"
        statement = {
            "Effect": "Allow",
            "Principal": {"Federated": f"arn:aws:iam::111122223333:oidc-provider/{url}"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {f"{url}:aud": "slipway", f"{url.upper()}:email": "a@b", "x.org:aud": "s"}
            },
        }
        trust = write("oidc.json", json.dumps({"Version": "2012-10-17", "Statement": statement}))
        (found,) = check("--type", "trust", trust)
        assert [note["names"] for note in found["notes"]] == [["x.org:aud"]]

    def test_a_bucket_policy_is_of_its_bucket(self, write):
        path = write("shared.json", SHARED)
        (found,) = check("--type", "resource", "--bucket", "other", path, status=1)
        assert '"arn:aws:s3:::lab/*" is not in the policy' in found["fault"]["text"]
        assert found["fault"]["aws_message"] == "Policy has invalid resource"
        assert "--type resource" in policy("check", "--bucket", "lab", path, status=2).stderr
        assert policy("check", "--type", "resource", "--bucket", "A", path, status=2).stderr

    def test_standard_input(self, write):
        (found,) = check("-", given=HOME.encode())
        assert (found["accepted"], found["file"]) == (True, "-")
        assert policy("check", "-", given=HOME.encode()).stdout.startswith("standard input: accepted")
        assert "once" in policy("check", "-", "-", given=HOME.encode(), status=2).stderr

    @pytest.mark.parametrize(
        ("content", "line", "column", "said"),
        [
            (b"", 1, 1, "begins with {"),
            (b"x" * (3 << 20), 1, 1, "more than 131072 bytes, and may have a size of 6144"),
            (READ_ONLY.encode() + b" " * (3 << 20), 1, 1, "more than 131072 bytes"),
            (b'{\n"Version":"\xff"}', 2, 12, "not UTF-8"),
            (b"\xef\xbb\xbf" + READ_ONLY.encode(), 1, 1, "begins with {"),
            (READ_ONLY.encode() * 2, 1, len(READ_ONLY) + 1, "something follows"),
            (b"[" * 5000, 1, 1, "begins with {"),
            (b'{"a":' * 5000, 1, 86, "nested more than 16 deep"),
            (bytes(range(256)), 2, 118, "not UTF-8"),
            (b"\x7fELF" + b"\0" * 900, 1, 1, "begins with {"),
        ],
    )
    def test_files_that_are_no_policies(self, write, content, line, column, said):
        path = write("p.json", content)
        (found,) = check(path, status=1)
        assert said in found["fault"]["text"]
        assert (found["fault"]["line"], found["fault"]["column"]) == (line, column)
        (text,) = policy("check", path, status=1).stdout.splitlines()
        assert text.startswith(f"{path}: refused as an identity policy: line {line}, ") and said in text

    def test_files_that_cannot_be_read(self, write, tmp_path):
        good, gone, endless = write("p.json", READ_ONLY), tmp_path / "gone", Path("/dev/zero")
        for paths, status in [((gone,), 2), ((tmp_path,), 2), ((good, gone), 1), ((gone, tmp_path, good), 1)]:
            done = policy("check", *paths, status=status)
            assert done.stdout.count("\n") == paths.count(good)
            complaints = done.stderr.splitlines()
            assert len(complaints) == len(paths) - paths.count(good)
            for path, complaint in zip([path for path in paths if path != good], complaints, strict=True):
                assert complaint.startswith(f"slipway: {path}: ")
        (found,) = check(endless, status=1)
        assert "more than 131072 bytes" in found["fault"]["text"]
        assert policy("check", status=2).stderr

    def test_a_file_without_permission(self, write):
        path = write("p.json", READ_ONLY)
        path.chmod(0)
        # Root may read everything.
        user = NOBODY if os.geteuid() == 0 else None
        done = subprocess.run([binary(), "policy", "check", path], capture_output=True, text=True, user=user)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"slipway: {path}: Permission denied (os error 13)\n"

    def test_names_that_hurt_a_terminal(self, write):
        path = write("a\x1b[2J\n.json", READ_ONLY)
        (line,) = policy("check", path).stdout.splitlines()
        assert "\x1b" not in line
        (found,) = check(path)
        assert found["file"] == str(path)
        text = READ_ONLY.replace("s3:Get*", r"s3:\u001b[2J\n")
        (line,) = policy("check", write("p.json", text), status=1).stdout.splitlines()
        assert "\x1b" not in line


class TestExplain:
    def ask(
        self, *words: object, action="s3:GetObject", resource="arn:aws:s3:::lab/home/ann/x", status=0
    ) -> dict:
        return explain(action, resource, *words, status=status)

    def test_a_users_own_policies(self, write):
        home = write("home.json", HOME)
        found = self.ask("--principal", ANN, "--identity", home)
        assert (found["decision"], found["reason"]) == ("allowed", "the principal's own policies allow it")
        assert [one for one in found["statements"] if one["decides"]] == [
            {
                "file": str(home),
                "source": "identity",
                "statement": 3,
                "sid": "Home",
                "line": 17,
                "finding": "allows it",
                "applies": True,
                "decides": True,
            }
        ]
        other = self.ask(
            "--principal", ANN, "--identity", home, resource="arn:aws:s3:::lab/home/bob/x", status=1
        )
        assert (other["decision"], other["reason"]) == ("not allowed", "no statement allows it")
        assert other["statements"][2]["finding"] == "does not apply: other resources"

    def test_lines_for_people(self, write):
        home = write("home.json", HOME)
        words = ("explain", "s3:ListBucket", "arn:aws:s3:::lab", "--principal", ANN, "--identity", home)
        lines = policy(*words, status=1).stdout.splitlines()
        assert lines[0] == "not allowed: no statement allows it"
        assert (
            f"{home}: line 10: statement 2 (ListHome) does not apply: StringLike s3:prefix does not hold "
            "(no value is given: --condition s3:prefix=VALUE)"
        ) in lines
        lines = policy(*words, "--condition", "s3:prefix=home/ann/").stdout.splitlines()
        assert lines[:2] == [
            "allowed: the principal's own policies allow it",
            f"{home}: line 10: statement 2 (ListHome) allows it",
        ]
        assert len(lines) == 4

    def test_a_bucket_of_another_account(self, write):
        home, shared = write("home.json", HOME), write("shared.json", SHARED)
        principal = f"arn:aws:iam::{OTHER}:user/ann"
        both = ("--principal", principal, "--bucket-account", ACCOUNT)
        found = self.ask(*both, "--identity", home, "--resource-policy", shared)
        assert found["reason"].endswith("the resource belongs to another account")
        assert {one["source"] for one in found["statements"] if one["decides"]} == {"identity", "resource"}
        found = self.ask(*both, "--identity", home, status=1)
        assert found["reason"].endswith(": the resource policy does not")
        found = self.ask(*both, "--resource-policy", shared, status=1)
        assert found["reason"].endswith(": the principal's own policies do not")

    def test_a_deny_decides(self, write):
        home, shared = write("home.json", HOME), write("shared.json", SHARED)
        words = ("--principal", ANN, "--identity", home, "--resource-policy", shared)
        assert self.ask(*words)["decision"] == "allowed"
        found = self.ask(*words, "--condition", "aws:SecureTransport=false", status=1)
        assert found["decision"] == "denied"
        (one,) = [one for one in found["statements"] if one["decides"]]
        assert (one["source"], one["sid"]) == ("resource", "OnlyTls")

    def test_limits(self, write):
        all_of_it = write("all.json", READ_ONLY.replace("s3:Get*", "s3:*"))
        reads = write("read.json", READ_ONLY)
        words = ("--principal", NIGHT, "--identity", all_of_it)
        for limit, name in (("--boundary", "the boundary"), ("--session", "the session policies")):
            found = self.ask(*words, limit, reads)
            assert found["reason"] == f"the principal's own policies allow it, and {name} do".replace(
                "boundary do", "boundary does"
            )
            found = self.ask(*words, limit, reads, action="s3:PutObject", status=1)
            assert found["reason"].startswith(f"other policies allow it, but {name} do")
            assert found["decision"] == "not allowed" and not any(
                one["decides"] for one in found["statements"]
            )

    def test_trust_policies(self, write):
        trust, may = (
            write("trust.json", TRUST),
            write("may.json", READ_ONLY.replace("s3:Get*", "sts:AssumeRole")),
        )
        ask = (
            "explain",
            "--json",
            "sts:AssumeRole",
            f"arn:aws:iam::{ACCOUNT}:role/backup",
            "--principal",
            ANN,
        )
        found = json.loads(
            policy(*ask, "--resource-policy", trust, "--condition", "sts:ExternalId=42").stdout
        )
        assert found["reason"] == "the trust policy allows it to the principal by name"
        assert found["notes"] == []
        found = json.loads(policy(*ask, "--identity", may, "--resource-policy", trust, status=1).stdout)
        assert found["reason"] == "the trust policy has to allow it, and does not"

    def test_tags_have_to_be_told(self, write):
        tagged = write(
            "tagged.json",
            READ_ONLY.replace(
                '"Resource"',
                '"Condition": {"StringEquals": {"s3:ExistingObjectTag/team": "red"}}, "Resource"',
            ),
        )
        words = ("--principal", ANN, "--identity", tagged)
        found = self.ask(*words, status=1)
        assert found["decision"] == "not decided" and "--condition s3:ExistingObjectTag" in found["reason"]
        assert self.ask(*words, "--condition", "s3:ExistingObjectTag/team=red")["decision"] == "allowed"
        assert (
            self.ask(*words, "--condition", "s3:ExistingObjectTag/x=", status=1)["decision"] == "not allowed"
        )

    def test_an_asterisk_is_a_character(self, write):
        words = ("--principal", ANN, "--identity", write("home.json", HOME))
        found = self.ask(*words, resource="arn:aws:s3:::lab/home/*", status=1)
        assert '"home/*"' in found["notes"][0]

    def test_values_that_follow(self, write):
        conditions = {
            "aws:username": "ann",
            "aws:PrincipalArn": ANN,
            "aws:PrincipalAccount": ACCOUNT,
            "aws:PrincipalType": "User",
            "aws:ResourceAccount": ACCOUNT,
            "s3:ResourceAccount": ACCOUNT,
        }
        document = json.loads(READ_ONLY)
        document["Statement"]["Condition"] = {
            "StringEquals": conditions,
            "DateGreaterThan": {"aws:CurrentTime": "2026-11-01T00:00:00Z"},
            "NumericGreaterThan": {"aws:EpochTime": "1790000000"},
        }
        path = write("p.json", json.dumps(document))
        assert self.ask("--principal", ANN, "--identity", path)["decision"] == "allowed"
        found = self.ask("--principal", ANN, "--identity", path, "--condition", "aws:username=bob", status=1)
        assert found["statements"][0]["finding"] == "does not apply: StringEquals aws:username does not hold"

    def test_who_needs_no_policies(self):
        assert self.ask("--principal", f"arn:aws:iam::{ACCOUNT}:root")["reason"].startswith(
            "the root of an account"
        )
        assert self.ask("--principal", "anonymous", status=1)["decision"] == "not allowed"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("s3:GetObjects", "arn:aws:s3:::lab/x", "--principal", ANN), "did you mean s3:GetObject?"),
            (("s3:Get*", "arn:aws:s3:::lab/x", "--principal", ANN), "no such action"),
            (("s3:GetObject", "arn:aws:s3:::lab", "--principal", ANN), "is done with an object"),
            (("s3:ListBucket", "arn:aws:s3:::lab/x", "--principal", ANN), "is done with a bucket"),
            (("s3:GetObject", "lab/x", "--principal", ANN), "expected an ARN"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", "ann"), "expected the ARN of a user"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", f"arn:aws:iam::{ACCOUNT}:role/r"), "assumed-role/r/SESSION"),
            (("s3:GetObject", "arn:aws:s3:::lab/x"), "--principal"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, "--issuer", "x"), "leave it out"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, "--bucket-account", "1"), "12 decimal digits"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, "--condition", "aws:Source=1"), "no condition key"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, *TWICE), "one value at most"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, "--identity", "/gone"), "/gone: No such file"),
            (("s3:GetObject", "arn:aws:s3:::lab/x", "--principal", "anonymous", "--identity", "x"), "have no policies"),
            (("iam:GetUser", ANN, "--principal", ANN, "--resource-policy", "/dev/null"), "only buckets"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_told(self, words, said):
        done = policy("explain", *words, status=2)
        assert said in done.stderr and not done.stdout

    def test_a_policy_that_is_refused_decides_nothing(self, write):
        path = write("p.json", HOME.replace("s3:GetObject", "s3:GetObjects"))
        done = policy(
            "explain", "s3:GetObject", "arn:aws:s3:::lab/x", "--principal", ANN, "--identity", path, status=2
        )
        assert f"{path}: refused as an identity policy: line 20, column 18" in done.stderr
