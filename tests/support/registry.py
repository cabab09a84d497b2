"""The identities of a tree, changed from beside its gateways, as another gateway does it
(crates/gateway/examples/registry.rs)."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .server import REPOSITORY, Server
from .sigv4 import Signer
from .wire import RawClient

PROGRAM = REPOSITORY / "target" / "debug" / "examples" / "registry"
# Any 32 bytes; all are not equal.
MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER_MASTER_KEY = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="


class Refused(Exception):
    """The change was refused; the message says why."""


class Registry:
    """Changes identities; each call returns when its change is acknowledged."""

    def __init__(
        self, tree: Path, account: str, master_key: str | None = MASTER_KEY, within: Sequence[str] = ()
    ) -> None:
        """`within` is a command that becomes the program, such as unshare(1)."""
        assert PROGRAM.exists(), f"{PROGRAM} does not exist: cargo build -p gateway --example registry"
        env = {"PATH": os.environ["PATH"]} | ({"SLIPWAY_MASTER_KEY": master_key} if master_key else {})
        self._process = subprocess.Popen(
            [*within, str(PROGRAM), str(tree), account],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def do(self, *words: str) -> str:
        """Performs a command of the program, and returns its answer."""
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        assert answer, "the program has ended"
        if answer.startswith("error "):
            raise Refused(answer.removeprefix("error "))
        return answer

    def user(self, name: str) -> Signer:
        """Makes a user, and returns a key of it."""
        self.do("create-user", name)
        return self.key(name)

    def key(self, name: str) -> Signer:
        """Makes a key of a user."""
        return Signer(*self.do("create-key", name).split())


def client(server: Server, signer: Signer) -> RawClient:
    """A client that signs with a key."""
    return RawClient(server.address, signer)


def check_known(client: RawClient, target: str = "/") -> None:
    """The client's key is accepted, and nothing is allowed to its user."""
    response = client.get(target)
    assert (response.status, response.code) == (403, "AccessDenied"), response
