"""What policies would decide (SimulatePrincipalPolicy, SimulateCustomPolicy), what they ask for, and all of an account
in one list (GetAccountAuthorizationDetails)."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.identities import allow, client, code_of, deny, error_of, master_key, new_user, policy

READ = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


def arn_of(iam, user: str) -> str:
    return iam.get_user(UserName=user)["User"]["Arn"]


def custom(iam, *policies: str, action: str = "s3:GetObject", **members) -> dict:
    (result,) = iam.simulate_custom_policy(
        PolicyInputList=list(policies),
        ActionNames=[action],
        **{"ResourceArns": ["arn:aws:s3:::lab/a"]} | members,
    )["EvaluationResults"]
    return result


def entry(key: str, *values: str, kind: str = "string") -> dict:
    return {"ContextKeyName": key, "ContextKeyValues": list(values), "ContextKeyType": kind}


class TestCustomPolicy:
    def test_decisions(self, iam):
        may = policy(allow("s3:GetObject", "arn:aws:s3:::lab/*"))
        must_not = policy(deny("s3:*", "arn:aws:s3:::lab/a"))
        assert custom(iam, may)["EvalDecision"] == "allowed"
        assert custom(iam, may, must_not)["EvalDecision"] == "explicitDeny"
        nothing = custom(iam, may, action="s3:PutObject")
        assert (nothing["EvalDecision"], nothing["MatchedStatements"]) == ("implicitDeny", [])
        other = custom(iam, may, ResourceArns=["arn:aws:s3:::other/a"])
        assert (other["EvalDecision"], other["EvalResourceName"]) == ("implicitDeny", "arn:aws:s3:::other/a")
        assert other["EvalActionName"] == "s3:GetObject"

    def test_the_statements_that_decide_are_named(self, iam):
        text = json.dumps(
            {"Version": "2012-10-17", "Statement": [allow("s3:PutObject"), allow("s3:Get*")]}, indent=2
        )
        (found,) = custom(iam, policy(allow("s3:List*")), text)["MatchedStatements"]
        assert (found["SourcePolicyId"], found["SourcePolicyType"]) == ("PolicyInputList.2", "IAM Policy")
        lines = text.splitlines()
        start, end = found["StartPosition"], found["EndPosition"]
        # Behind the braces.
        assert lines[start["Line"] - 1][start["Column"] - 2] == "{" and start["Line"] == 9
        assert lines[end["Line"] - 1][end["Column"] - 2] == "}" and end["Line"] == 13

    def test_places_are_those_of_iam(self, iam):
        """What AWS answered about this document on 21 April 2025, in localstack's recording."""
        statement = {"Sid": "", "Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}
        text = json.dumps({"Version": "2012-10-17", "Statement": statement})
        (found,) = custom(iam, text, action="s3:PutObject")["MatchedStatements"]
        assert (found["StartPosition"], found["EndPosition"]) == (
            {"Line": 1, "Column": 41},
            {"Line": 1, "Column": 113},
        )

    def test_a_resource_that_was_sent_has_a_result_of_its_own(self, iam):
        may, boundary = policy(allow("s3:GetObject")), policy(allow("s3:*"))
        result = custom(iam, may, PermissionsBoundaryPolicyInputList=[boundary])
        shared = "MatchedStatements", "MissingContextValues", "PermissionsBoundaryDecisionDetail"
        assert result["EvalDecisionDetails"] == {} and result["ResourceSpecificResults"] == [
            {name: result[name] for name in shared}
            | {"EvalResourceName": "arn:aws:s3:::lab/a", "EvalResourceDecision": "allowed"}
        ]
        (of_any,) = iam.simulate_custom_policy(PolicyInputList=[may], ActionNames=["s3:GetObject"])[
            "EvaluationResults"
        ]
        assert of_any["EvalResourceName"] == "*"
        assert not {"EvalDecisionDetails", "ResourceSpecificResults"} & set(of_any)

    def test_values_of_conditions(self, iam):
        text = policy(
            allow("s3:GetObject", Condition={"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}),
            allow("s3:GetObject", "arn:aws:s3:::${aws:username}/*"),
        )
        without = custom(iam, text)
        assert without["EvalDecision"] == "implicitDeny" and without["MissingContextValues"] == [
            "aws:SourceIp"
        ]
        inside = custom(iam, text, ContextEntries=[entry("AWS:sourceip", "192.0.2.7", kind="ip")])
        assert (inside["EvalDecision"], inside["MissingContextValues"]) == ("allowed", [])
        outside = custom(iam, text, ContextEntries=[entry("aws:SourceIp", "198.51.100.7", kind="ip")])
        assert outside["EvalDecision"] == "implicitDeny"
        account = client_account(iam)
        lab = custom(iam, text, CallerArn=f"arn:aws:iam::{account}:user/lab")
        assert lab["EvalDecision"] == "allowed"
        keys = iam.get_context_keys_for_custom_policy(PolicyInputList=[text])["ContextKeyNames"]
        assert keys == ["aws:SourceIp", "aws:username"]
        many = policy(
            allow("s3:GetObject", Condition={"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}})
        )
        for values, decision in ((["a", "b"], "allowed"), (["a", "c"], "implicitDeny")):
            sent = [entry("aws:TagKeys", *values, kind="stringList")]
            assert custom(iam, many, ContextEntries=sent)["EvalDecision"] == decision

    def test_boundaries(self, iam):
        may, limit = policy(allow("s3:*")), policy(allow("s3:List*"))
        result = custom(iam, may, PermissionsBoundaryPolicyInputList=[limit])
        assert result["EvalDecision"] == "implicitDeny"
        assert result["PermissionsBoundaryDecisionDetail"] == {"AllowedByPermissionsBoundary": False}
        result = custom(iam, may, PermissionsBoundaryPolicyInputList=[may])
        assert result["EvalDecision"] == "allowed"
        assert result["PermissionsBoundaryDecisionDetail"] == {"AllowedByPermissionsBoundary": True}

    def test_the_policy_of_a_bucket(self, iam):
        account = client_account(iam)
        ann, other = f"arn:aws:iam::{account}:user/ann", "arn:aws:iam::999999999999:root"
        grant = policy(allow("s3:GetObject", "arn:aws:s3:::lab/*", Principal={"AWS": ann}))
        none = policy(allow("iam:GetUser"))
        sent = {"ResourcePolicy": grant, "CallerArn": ann}
        result = custom(iam, none, **sent)
        assert result["EvalDecision"] == "allowed"
        assert result["MatchedStatements"][0]["SourcePolicyType"] == "resource"
        # Of another account both have to allow it.
        assert custom(iam, none, **sent, ResourceOwner=other)["EvalDecision"] == "implicitDeny"
        may = policy(allow("s3:GetObject"))
        assert custom(iam, may, **sent, ResourceOwner=other)["EvalDecision"] == "allowed"
        bob = sent | {"CallerArn": f"arn:aws:iam::{account}:user/bob"}
        assert custom(iam, may, **bob, ResourceOwner=other)["EvalDecision"] == "implicitDeny"

    def test_pages(self, iam):
        actions = [f"s3:{name}" for name in ("GetObject", "PutObject", "DeleteObject")]
        resources = [f"arn:aws:s3:::lab/{name}" for name in "zab"]
        sent = {
            "PolicyInputList": [policy(allow("s3:Get*"))],
            "ActionNames": actions,
            "ResourceArns": resources,
        }
        pages = list(
            iam.get_paginator("simulate_custom_policy").paginate(**sent, PaginationConfig={"PageSize": 4})
        )
        assert [len(page["EvaluationResults"]) for page in pages] == [4, 4, 1]
        found = [
            (one["EvalActionName"], one["EvalResourceName"])
            for page in pages
            for one in page["EvaluationResults"]
        ]
        assert found == [(action, resource) for action in actions for resource in resources]

    def test_many_statements_make_short_pages(self, iam):
        """A form of 64 KiB could ask for a million statements in one answer."""
        many = json.dumps({"Version": "2012-10-17", "Statement": [{**allow("*"), "Resource": "*"}] * 40})
        sent = {
            "PolicyInputList": [many] * 5,
            "ActionNames": ["s3:GetObject", "s3:PutObject"],
            "ResourceArns": [f"arn:aws:s3:::lab/{number}" for number in range(60)],
        }
        pages = list(
            iam.get_paginator("simulate_custom_policy").paginate(**sent, PaginationConfig={"PageSize": 1000})
        )
        assert [len(page["EvaluationResults"]) for page in pages] == [25, 25, 25, 25, 20]
        results = [one for page in pages for one in page["EvaluationResults"]]
        assert all(len(one["MatchedStatements"]) == 200 for one in results)
        last = results[-1]["MatchedStatements"][-1]
        assert (
            many[last["StartPosition"]["Column"] - 2] == "{"
            and many[last["EndPosition"]["Column"] - 2] == "}"
        )

    def test_slow_patterns_keep_nobody_waiting(self, server, iam):
        """Parts of 120 `?` between two `*`: such a page took many seconds, in a row."""
        resources = [f"arn:aws:s3:::*{'?' * 120}z{number}*" for number in range(40)]
        slow = json.dumps({"Version": "2012-10-17", "Statement": [{**allow("s3:*"), "Resource": resources}]})
        sent = {
            "PolicyInputList": [slow] * 2,
            "ActionNames": [
                f"s3:{verb}Object{of}" for verb in ("Get", "Put") for of in ("", "Acl", "Tagging")
            ],
            "ResourceArns": [f"arn:aws:s3:::lab/{number:03}{'y' * 900}" for number in range(20)],
        }
        with ThreadPoolExecutor(4) as pool:
            simulations = [pool.submit(iam.simulate_custom_policy, **sent) for _ in range(4)]
            waited = []
            while not all(one.done() for one in simulations):
                begun = time.monotonic()
                assert server.raw.get("/").status == 200
                waited.append(time.monotonic() - begun)
        assert max(waited, default=0) < 2
        for one in simulations:
            assert len(one.result()["EvaluationResults"]) == 100

    @pytest.mark.parametrize(
        ("members", "code"),
        [
            ({"PolicyInputList": ["{}"]}, "InvalidInput"),
            ({"PolicyInputList": [policy(allow("s3:GetObjekt"))]}, "InvalidInput"),
            ({"ActionNames": ["s3:GetObjekt"]}, "InvalidInput"),
            ({"ActionNames": ["ec2:RunInstances"]}, "InvalidInput"),
            ({"ActionNames": ["s3:*"]}, "InvalidInput"),
            ({"CallerArn": "ann"}, "InvalidInput"),
            ({"ResourceOwner": "nobody"}, "InvalidInput"),
            ({"ResourcePolicy": policy(allow("s3:*"))}, "InvalidInput"),
            ({"PermissionsBoundaryPolicyInputList": [policy(allow("s3:*"))] * 2}, "InvalidInput"),
            ({"ResourceHandlingOption": "EC2-VPC"}, "NotImplemented"),
        ],
    )
    def test_what_is_refused(self, iam, members, code):
        sent = {
            "PolicyInputList": [policy(allow("s3:*"))],
            "ActionNames": ["s3:GetObject"],
            "ResourceArns": ["arn:aws:s3:::lab/a"],
        }
        assert code_of(iam.simulate_custom_policy, **sent | members) == code


def client_account(iam) -> str:
    return iam.get_user()["User"]["Arn"].split(":")[4]


class TestPrincipalPolicy:
    def test_a_user_has_all_of_its_policies(self, server, iam):
        """And what is simulated is what is decided."""
        key = new_user(server, "ann", allow("s3:PutObject", "arn:aws:s3:::lab/*"))
        client(server, "s3").create_bucket(Bucket="lab")
        iam.create_group(GroupName="staff")
        iam.add_user_to_group(GroupName="staff", UserName="ann")
        iam.attach_group_policy(GroupName="staff", PolicyArn=READ)
        document = policy(deny("s3:PutObject", "arn:aws:s3:::lab/closed/*"))
        made = iam.create_policy(PolicyName="closed", PolicyDocument=document)["Policy"]["Arn"]
        iam.attach_user_policy(UserName="ann", PolicyArn=made)
        names = {"s3:PutObject", "s3:GetObject", "s3:DeleteObject"}
        resources = ["arn:aws:s3:::lab/a", "arn:aws:s3:::lab/closed/a"]
        results = iam.simulate_principal_policy(
            PolicySourceArn=arn_of(iam, "ann"), ActionNames=sorted(names), ResourceArns=resources
        )["EvaluationResults"]
        found = {(one["EvalActionName"], one["EvalResourceName"][13:]): one for one in results}
        assert {key: one["EvalDecision"] for key, one in found.items()} == {
            ("s3:PutObject", "lab/a"): "allowed",
            ("s3:PutObject", "lab/closed/a"): "explicitDeny",
            ("s3:GetObject", "lab/a"): "allowed",
            ("s3:GetObject", "lab/closed/a"): "allowed",
            ("s3:DeleteObject", "lab/a"): "implicitDeny",
            ("s3:DeleteObject", "lab/closed/a"): "implicitDeny",
        }
        sources = {
            key: [(one["SourcePolicyId"], one["SourcePolicyType"]) for one in result["MatchedStatements"]]
            for key, result in found.items()
        }
        assert sources["s3:PutObject", "lab/a"] == [("user_ann_own", "IAM Policy")]
        assert sources["s3:PutObject", "lab/closed/a"] == [("closed", "IAM Policy")]
        assert sources["s3:GetObject", "lab/a"] == [("AmazonS3ReadOnlyAccess", "IAM Policy")]
        s3 = client(server, "s3", key)
        s3.put_object(Bucket="lab", Key="a", Body=b"")
        assert code_of(s3.put_object, Bucket="lab", Key="closed/a", Body=b"") == "AccessDenied"
        assert code_of(s3.delete_object, Bucket="lab", Key="a") == "AccessDenied"

    def test_boundaries_and_variables(self, server, iam):
        new_user(server, "ann", allow("s3:*", "arn:aws:s3:::${aws:username}/*"))
        sent = {"PolicySourceArn": arn_of(iam, "ann"), "ActionNames": ["s3:PutObject"]}
        own = sent | {"ResourceArns": ["arn:aws:s3:::ann/a"]}
        (result,) = iam.simulate_principal_policy(**own)["EvaluationResults"]
        assert result["EvalDecision"] == "allowed" and "PermissionsBoundaryDecisionDetail" not in result
        iam.put_user_permissions_boundary(UserName="ann", PermissionsBoundary=READ)
        (result,) = iam.simulate_principal_policy(**own)["EvaluationResults"]
        assert result["EvalDecision"] == "implicitDeny"
        assert result["PermissionsBoundaryDecisionDetail"] == {"AllowedByPermissionsBoundary": False}
        free = policy(allow("s3:*"))
        (result,) = iam.simulate_principal_policy(**own, PermissionsBoundaryPolicyInputList=[free])[
            "EvaluationResults"
        ]
        assert result["EvalDecision"] == "allowed"
        keys = iam.get_context_keys_for_principal_policy(PolicySourceArn=arn_of(iam, "ann"))[
            "ContextKeyNames"
        ]
        assert keys == ["aws:username"]

    def test_another_caller_is_another_user(self, server, iam):
        new_user(server, "ann", allow("s3:*", "arn:aws:s3:::lab/${aws:userid}/*"))
        new_user(server, "bob")
        ann = iam.get_user(UserName="ann")["User"]
        sent = {
            "PolicySourceArn": ann["Arn"],
            "ActionNames": ["s3:PutObject"],
            "ResourceArns": [f"arn:aws:s3:::lab/{ann['UserId']}/a"],
        }
        for members, decision, missing in (
            ({}, "allowed", []),
            ({"CallerArn": ann["Arn"]}, "allowed", []),
            ({"CallerArn": arn_of(iam, "bob")}, "implicitDeny", ["aws:userid"]),
        ):
            (result,) = iam.simulate_principal_policy(**sent, **members)["EvaluationResults"]
            assert (result["EvalDecision"], result["MissingContextValues"]) == (decision, missing), members

    def test_groups_and_roles(self, iam):
        group = iam.create_group(GroupName="staff")["Group"]["Arn"]
        iam.attach_group_policy(GroupName="staff", PolicyArn=READ)
        trust = policy({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"})
        role = iam.create_role(RoleName="r", Path="/lab/", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        named = {"StringEquals": {"aws:PrincipalArn": role.replace("/lab/", "/")}}
        iam.put_role_policy(
            RoleName="r", PolicyName="p", PolicyDocument=policy(allow("s3:*", Condition=named))
        )
        for arn, source in ((group, "AmazonS3ReadOnlyAccess"), (role, "role_r_p")):
            (result,) = iam.simulate_principal_policy(
                PolicySourceArn=arn, ActionNames=["s3:ListBucket"], ResourceArns=["arn:aws:s3:::lab"]
            )["EvaluationResults"]
            assert result["EvalDecision"] == "allowed", arn
            assert result["MatchedStatements"][0]["SourcePolicyId"] == source

    def test_who_may(self, server, iam):
        """Whoever may simulate a user may not simulate others."""
        new_user(server, "bob")
        bob = arn_of(iam, "bob")
        ann = client(server, "iam", new_user(server, "ann", allow("iam:SimulatePrincipalPolicy", bob)))
        sent = {"ActionNames": ["s3:GetObject"]}
        ann.simulate_principal_policy(PolicySourceArn=bob, **sent)
        for arn in (arn_of(iam, "ann"), bob + "s", bob.replace("user/", "user/x/")):
            assert code_of(ann.simulate_principal_policy, PolicySourceArn=arn, **sent) == "AccessDenied"
        assert code_of(ann.simulate_custom_policy, PolicyInputList=["{}"], **sent) == "AccessDenied"
        assert code_of(ann.get_account_authorization_details) == "AccessDenied"

    def test_what_is_not_there(self, iam):
        account = client_account(iam)
        iam.create_user(UserName="ann", Path="/lab/")
        sent = {"ActionNames": ["s3:GetObject"]}
        for arn in ("user/nobody", "group/none", "role/none", "user/ann", "user/other/ann"):
            gone = error_of(
                iam.simulate_principal_policy, PolicySourceArn=f"arn:aws:iam::{account}:{arn}", **sent
            )
            assert gone[:2] == ("NoSuchEntity", 404), arn
        iam.simulate_principal_policy(PolicySourceArn=f"arn:aws:iam::{account}:user/lab/ann", **sent)
        for arn in (f"arn:aws:iam::{account}:policy/a", "arn:aws:s3:::a-long-bucket", "x" * 20):
            assert code_of(iam.simulate_principal_policy, PolicySourceArn=arn, **sent) == "InvalidInput"


class TestAuthorizationDetails:
    @pytest.fixture
    def account(self, server, iam) -> dict:
        new_user(server, "ann", allow("s3:*"))
        iam.create_group(GroupName="staff", Path="/lab/")
        iam.add_user_to_group(GroupName="staff", UserName="ann")
        iam.put_group_policy(GroupName="staff", PolicyName="g", PolicyDocument=policy(deny("s3:*")))
        made = iam.create_policy(
            PolicyName="p", PolicyDocument=policy(allow("s3:*")), Description="all of S3"
        )
        arn = made["Policy"]["Arn"]
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=policy(allow("iam:*")), SetAsDefault=True)
        iam.attach_group_policy(GroupName="staff", PolicyArn=arn)
        iam.attach_user_policy(UserName="ann", PolicyArn=READ)
        iam.put_user_permissions_boundary(UserName="ann", PermissionsBoundary=arn)
        iam.tag_user(UserName="ann", Tags=[{"Key": "team", "Value": "red"}])
        trust = policy(
            {"Effect": "Allow", "Principal": {"AWS": arn_of(iam, "ann")}, "Action": "sts:AssumeRole"}
        )
        iam.create_role(RoleName="r", AssumeRolePolicyDocument=trust)
        return {"policy": arn, "trust": json.loads(trust)}

    def test_all_of_it(self, iam, account):
        shown = iam.get_account_authorization_details()
        assert shown["IsTruncated"] is False
        (ann,) = shown["UserDetailList"]
        one = iam.get_user(UserName="ann")["User"]
        assert {name: ann[name] for name in ("Path", "UserName", "UserId", "Arn", "CreateDate", "Tags")} == {
            name: one[name] for name in ("Path", "UserName", "UserId", "Arn", "CreateDate", "Tags")
        }
        assert ann["GroupList"] == ["staff"] and ann["UserPolicyList"][0]["PolicyName"] == "own"
        assert ann["UserPolicyList"][0]["PolicyDocument"] == json.loads(policy(allow("s3:*")))
        assert ann["AttachedManagedPolicies"] == [{"PolicyName": "AmazonS3ReadOnlyAccess", "PolicyArn": READ}]
        assert ann["PermissionsBoundary"]["PermissionsBoundaryArn"] == account["policy"]
        (staff,) = shown["GroupDetailList"]
        assert staff["Arn"].endswith(":group/lab/staff") and staff["GroupPolicyList"][0]["PolicyName"] == "g"
        (role,) = shown["RoleDetailList"]
        assert role["AssumeRolePolicyDocument"] == account["trust"]
        assert (role["InstanceProfileList"], role["RoleLastUsed"]) == ([], {})
        own = next(one for one in shown["Policies"] if one["Arn"] == account["policy"])
        assert own["Description"] == "all of S3" and own["DefaultVersionId"] == "v2"
        assert (own["AttachmentCount"], own["PermissionsBoundaryUsageCount"]) == (1, 1)
        assert [(one["VersionId"], one["IsDefaultVersion"]) for one in own["PolicyVersionList"]] == [
            ("v2", True),
            ("v1", False),
        ]
        assert own["PolicyVersionList"][1]["Document"] == json.loads(policy(allow("s3:*")))
        assert READ in {one["Arn"] for one in shown["Policies"]}

    def test_filters_and_pages(self, iam, account):
        lists = ("UserDetailList", "GroupDetailList", "RoleDetailList", "Policies")
        for kind, full in zip(("User", "Group", "Role", "LocalManagedPolicy"), lists, strict=True):
            shown = iam.get_account_authorization_details(Filter=[kind])
            assert {name for name in lists if shown[name]} == {full}
        both = iam.get_account_authorization_details(Filter=["User", "AWSManagedPolicy"])
        assert len(both["UserDetailList"]) == 1 and len(both["Policies"]) >= 5
        pager = iam.get_paginator("get_account_authorization_details")
        pages = list(pager.paginate(PaginationConfig={"PageSize": 2}))
        assert len(pages) > 3
        whole = iam.get_account_authorization_details()
        for name in lists:
            assert [one["Arn"] for page in pages for one in page[name]] == [one["Arn"] for one in whole[name]]
        assert code_of(iam.get_account_authorization_details, Marker="x y") == "ValidationError"
