"""Users and directories of all kinds, at a server with `--impersonate`: whoever compares what S3 answers there with what
somebody else says of it."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from .identities import allow, policy
from .impersonation import ENV
from .registry import Registry
from .server import Server, remove_tree
from .sigv4 import Signer
from .wire import RawClient, poll

OWNER, GROUP, LISTED_GROUP = 12401, 12490, 12491
LISTED = 12404
# User id, group id, supplementary groups.
USERS = {
    "owner": (OWNER, OWNER),
    "in-group": (12402, GROUP),
    "supplementary": (12403, 12403, GROUP, 12499),
    "listed": (LISTED, LISTED),
    "in-listed": (12405, 12405, LISTED_GROUP),
    "stranger": (12406, 12406),
}
# Modes of files of the owner's and the group's; `list` is 0600 with an access list.
FILES = {"0600": 0o600, "0640": 0o640, "0644": 0o644, "0004": 0o004, "list": 0o600}
NONE = 0xFFFF_FFFF


def access_list(owner: int, user: int, group: int, listed: int, mask: int, others: int) -> bytes:
    """With rights for the listed user and the listed group (linux/posix_acl_xattr.h)."""
    entries = [
        (1, owner, NONE),
        (2, user, LISTED),
        (4, group, NONE),
        (8, listed, LISTED_GROUP),
        (16, mask, NONE),
        (32, others, NONE),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@dataclass(frozen=True)
class Place:
    """A directory of a bucket, and what is above it."""

    name: str
    mode: int
    uid: int = OWNER
    access: bytes = b""
    default: bytes = b""
    # Mode of the directory above, and of the bucket.
    above: int = 0o755
    bucket: int = 0o755

    def __str__(self) -> str:
        return self.name

    def close(self, bucket: Path, path: Path) -> None:
        """Gives the directory, which was open to all, its rights."""
        os.chown(path, self.uid, GROUP)
        for kind, bits in (("access", self.access), ("default", self.default)):
            if bits:
                os.setxattr(path, f"system.posix_acl_{kind}", bits)
        # Where there is a list, the group's bits are its mask.
        if not self.access:
            path.chmod(self.mode)
        path.parent.chmod(self.above)
        bucket.chmod(self.bucket)


PLACES = [
    Place("0700", 0o700),
    Place("2770", 0o2770),
    Place("2750", 0o2750),
    Place("0755", 0o755),
    Place("0707", 0o707),
    Place("1777", 0o1777, uid=0),
    Place("1777-of-the-owner", 0o1777),
    # The list gives the user all, its group the reading; then its mask takes the writing back.
    Place("listed", 0, access=access_list(7, 7, 0, 5, 7, 0)),
    Place("masked", 0, access=access_list(7, 7, 7, 7, 5, 0)),
    Place("default-list", 0, access=access_list(7, 7, 7, 7, 7, 0), default=access_list(6, 6, 0, 4, 7, 0)),
    Place("default-list-alone", 0o2770, default=access_list(7, 0, 7, 6, 6, 4)),
    # Names can be made and not seen (a drop box); seen and not used; the other way round.
    Place("0733", 0o733),
    Place("0744", 0o744),
    Place("0711", 0o711),
    # Open, below what has no `x`, or no `r`, for others; or in a bucket without.
    Place("below-0744", 0o777, above=0o744),
    Place("below-0711", 0o777, above=0o711),
    Place("in-0711", 0o777, bucket=0o711),
    Place("in-0744", 0o777, bucket=0o744),
]


@dataclass
class World:
    server: Server
    signers: dict[str, Signer]

    @property
    def raw(self) -> RawClient:
        return self.server.raw


@contextmanager
def world_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with the users, each of whom is allowed everything by policies and has a bucket."""
    folder = tmp_path_factory.mktemp("rights")
    tree = folder / "tree"
    tree.mkdir()
    for directory in (folder, tree):
        directory.chmod(0o755)
    server = Server(tree, "--impersonate", "--durability", "none", env=ENV, log=folder / "server.log")
    with Registry(server.tree, server.account) as registry:
        signers = {name: registry.user(name) for name in USERS}
        for name, ids in USERS.items():
            registry.do("set-posix", name, *map(str, ids))
            registry.do("put-policy", name, policy(allow("*")))
        # The last change is known, so that all are.
        poll(lambda: server.raw.get("/", signer=signers["stranger"]).status == 200)
        for name, signer in signers.items():
            assert server.raw.put(f"/home-of-{name}", signer=signer).status == 200
        yield World(server, signers)
    assert server.stop() == 0, server.log
    assert "panicked" not in server.log, server.log
    remove_tree(tree)
