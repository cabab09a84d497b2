"""A server with `--impersonate`, and its users."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import ClientError

from .identities import allow, client, error_of, policy
from .registry import MASTER_KEY, Registry
from .server import KEYS, Server
from .sigv4 import Signer

# User id, group id, supplementary groups.
ROOT_IDS = (12100, 12100)
ANN = (12101, 12101)
BOB = (12102, 12102, 12200)
EVE = (12103, 12103)
GROUP = 12200
PART = 5 << 20
ENV = {
    **KEYS,
    "SLIPWAY_MASTER_KEY": MASTER_KEY,
    "SLIPWAY_ROOT_UID": str(ROOT_IDS[0]),
    "SLIPWAY_ROOT_GID": str(ROOT_IDS[1]),
}
DENIED = ("AccessDenied", 403)


class Scene:
    """A server that acts as its requesters, and its users."""

    def __init__(self, server: Server, registry: Registry) -> None:
        self.server, self.registry = server, registry
        self.root = client(server, "s3")
        self.ann, self.bob, self.eve = (
            self.user(name, *ids) for name, ids in (("ann", ANN), ("bob", BOB), ("eve", EVE))
        )
        # Of the group: ann owns it, bob may write, eve may do nothing.
        self.root.create_bucket(Bucket="lab")
        self.bucket = self.server.tree / "lab"
        self.give(self.bucket, ANN[0], GROUP, 0o2770)

    def user(self, name: str, *ids: int):
        """A client of a new user with these ids, who is allowed everything."""
        return self.client(self.signer(name, *ids))

    def client(self, signer: Signer):
        """A client that signs with a key."""
        return client(self.server, "s3", (signer.access_key, signer.secret_key, None))

    def signer(self, name: str, *ids: int) -> Signer:
        """The key of a new user with these ids, who is allowed everything."""
        signer = self.registry.user(name)
        if ids:
            self.registry.do("set-posix", name, *map(str, ids))
        self.registry.do("put-policy", name, policy(allow("*")))
        if ids:
            wait_until_known(self.client(signer))
        return signer

    @staticmethod
    def give(path: Path, uid: int, gid: int, mode: int) -> Path:
        os.chown(path, uid, gid)
        path.chmod(mode)
        return path

    def file(self, key: str) -> Path:
        return self.bucket / key


@contextmanager
def scene_in(directory: Path, make_server: Callable[..., Server]) -> Iterator[Scene]:
    """A scene at a server of its own, on a tree that its users may enter."""
    tree = directory / "tree"
    tree.mkdir()
    tree.chmod(0o755)
    server = make_server("--impersonate", "--durability", "none", tree=tree, env=ENV)
    with Registry(server.tree, server.account) as registry:
        yield Scene(server, registry)


def wait_until_known(s3) -> None:
    """The gateway looks for changes within a second."""
    deadline = time.monotonic() + 10
    while True:
        try:
            s3.list_buckets()
            return
        except ClientError as error:
            assert error.response["Error"]["Code"] in ("InvalidAccessKeyId", "AccessDenied"), error
        assert time.monotonic() < deadline
        time.sleep(0.02)


def owner(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_uid, status.st_gid


def refusal(call, *arguments, **members) -> tuple[str, int]:
    """The code and status of the error of a call; HEAD has no code."""
    code, status, _ = error_of(call, *arguments, **members)
    return ("AccessDenied" if code == "403" else code), status


def read(s3, key: str) -> bytes:
    return s3.get_object(Bucket="lab", Key=key)["Body"].read()


def keys(s3, **members) -> list[str]:
    return [found["Key"] for found in s3.list_objects_v2(Bucket="lab", **members).get("Contents", [])]
