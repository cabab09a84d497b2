"""Users, roles, sessions and buckets of the tests of attacks, which share a server: each has a name of its own."""

import itertools
import os
from dataclasses import dataclass
from functools import cached_property

from support.identities import ROOT, allow, client, key_of, new_key, policy
from support.server import Server

_numbers = itertools.count(1)


def unused(word: str) -> str:
    """A name that no other test uses."""
    return f"{word}-{os.getpid()}-{next(_numbers)}"


@dataclass(frozen=True)
class Who:
    """A key, and the clients that sign with it. They send what the model does not allow, too."""

    server: Server
    name: str
    arn: str
    key: tuple

    @cached_property
    def s3(self):
        return client(self.server, "s3", self.key, parameter_validation=False)

    @cached_property
    def iam(self):
        return client(self.server, "iam", self.key, parameter_validation=False)

    @cached_property
    def sts(self):
        return client(self.server, "sts", self.key, parameter_validation=False)


def root(server: Server) -> Who:
    return Who(server, "root", f"arn:aws:iam::{server.account}:root", ROOT)


def user(server: Server, *statements: dict, **members) -> Who:
    """A new user whose policy has these statements; `members` are those of CreateUser."""
    name = unused("user")
    iam = client(server, "iam")
    arn = iam.create_user(UserName=name, **members)["User"]["Arn"]
    if statements:
        iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=policy(*statements))
    return Who(server, name, arn, new_key(server, name))


def role(server: Server, trusted: list[str] | str, *statements: dict, actions=None, **members) -> str:
    """The ARN of a new role that these principals may assume, and whose policy has these statements."""
    name = unused("role")
    iam = client(server, "iam")
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": trusted},
        "Action": actions or ["sts:AssumeRole", "sts:TagSession"],
    }
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust), **members)["Role"]["Arn"]
    if statements:
        iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(*statements))
    return arn


def assume(who: Who, arn: str, **members) -> Who:
    """A session of a role."""
    members.setdefault("RoleSessionName", "session")
    answer = who.sts.assume_role(RoleArn=arn, **members)
    name = arn.rpartition("/")[2]
    return Who(who.server, name, answer["AssumedRoleUser"]["Arn"], key_of(answer["Credentials"]))


def bucket(server: Server, **objects: bytes) -> str:
    """A new bucket of root with these objects (`__` in names stands for a slash)."""
    name = unused("bucket")
    s3 = client(server, "s3")
    s3.create_bucket(Bucket=name)
    for key, body in objects.items():
        s3.put_object(Bucket=name, Key=key.replace("__", "/"), Body=body)
    return name


def everything_in(name: str) -> dict:
    return allow("s3:*", [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"])
