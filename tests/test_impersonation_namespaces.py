"""`--impersonate` in user namespaces, and with fewer capabilities than root has: it serves, or refuses to start and says
why."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import user_namespace
from support.identities import allow, client, policy
from support.impersonation import ANN, BOB, DENIED, ENV, ROOT_IDS, owner, refusal, wait_until_known
from support.registry import Registry
from support.server import NOBODY, SIDECARS, StartFailed

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="needs util-linux's setpriv"),
]
# The first id outside of the namespace, and how many there are.
FIRST, IDS = 100_000, 65_536
CANNOT = "--impersonate: the server cannot act as other users: "


def mapped(count: int) -> list[str]:
    """A command in a user namespace of so many ids, whose superuser it is."""
    made = [sys.executable, "-I", "-S", user_namespace.__file__, str(FIRST), str(count)]
    done = subprocess.run([*made, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no such user namespace can be made: {done.stderr.strip()}")
    return made


@pytest.fixture
def tree(tmp_path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    tree.chmod(0o755)
    return tree


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a tree is mounted, for the command alone: the way to the tree itself is closed to the namespace."""
    with tempfile.TemporaryDirectory(prefix="slipway-place-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def mounted(tree: Path, place: Path, within: list[str]) -> list[str]:
    script = f"mount --bind '{tree}' '{place}' && exec \"$@\""
    return ["unshare", "--mount", "sh", "-c", script, "sh", *within]


class TestUserNamespaces:
    def test_one_of_many_ids_serves(self, make_server, tree, place):
        os.chown(tree, FIRST, FIRST)
        within = mounted(tree, place, mapped(IDS))
        server = make_server("--impersonate", tree=place, env=ENV, within=within)
        server.tree = tree
        with Registry(place, server.account, within=within) as registry:
            clients = {}
            for name, ids in (
                ("ann", ANN),
                ("bob", BOB),
                ("far", (IDS + 1, 12000)),
                ("group", (12104, IDS + 1)),
            ):
                signer = registry.user(name)
                registry.do("set-posix", name, *map(str, ids))
                registry.do("put-policy", name, policy(allow("*")))
                clients[name] = client(server, "s3", (signer.access_key, signer.secret_key, None))
            ann, bob = clients["ann"], clients["bob"]
            wait_until_known(ann)
            wait_until_known(bob)
            for name, s3, ids in (("anns", ann, ANN), ("bobs", bob, BOB)):
                s3.create_bucket(Bucket=name)
                s3.put_object(Bucket=name, Key="d/a", Body=name.encode())
                for path in (tree / name, tree / name / "d", tree / name / "d/a"):
                    assert owner(path) == (FIRST + ids[0], FIRST + ids[1])
            assert ann.get_object(Bucket="anns", Key="d/a")["Body"].read() == b"anns"
            (tree / "anns/d/a").chmod(0o640)
            assert refusal(bob.get_object, Bucket="anns", Key="d/a") == DENIED
            assert refusal(bob.put_object, Bucket="anns", Key="d/b", Body=b"1") == DENIED
            # A supplementary group, as the namespace has it.
            os.chown(tree / "anns/d/a", -1, FIRST + BOB[2])
            assert bob.get_object(Bucket="anns", Key="d/a")["Body"].read() == b"anns"
            # What belongs to nobody in there is closed to all but others.
            (tree / "anns/outside").write_bytes(b"1")
            (tree / "anns/outside").chmod(0o600)
            assert refusal(ann.get_object, Bucket="anns", Key="outside") == DENIED
            # Ids that it does not have.
            for name in ("far", "group"):
                assert refusal(clients[name].get_object, Bucket="anns", Key="d/a") == DENIED
                assert refusal(clients[name].list_objects_v2, Bucket="anns") == DENIED

    def test_one_of_a_single_id_is_refused(self, make_server, tree, place):
        """As most people can make it (setgroups is denied in it), and as root can."""
        options = ("--impersonate", "--uid-min", "1")
        within = ["unshare", "--user", "--map-root-user"]
        with pytest.raises(StartFailed, match=re.escape(CANNOT + "setgroups(2) is switched off")):
            make_server(*options, tree=tree, env=ENV, within=within)
        os.chown(tree, FIRST, FIRST)
        with pytest.raises(StartFailed, match=re.escape(CANNOT + "a trial failed: the kernel does not let")):
            make_server("--impersonate", tree=place, env=ENV, within=mounted(tree, place, mapped(1)))
        assert os.listdir(tree) == []


class TestCapabilities:
    # All that the server keeps (privileges.rs).
    NEEDED = ("setuid", "setgid", "dac_override", "chown", "fowner")

    def only(self, *capabilities: str) -> list[str]:
        given = ",".join(f"+{name}" for name in capabilities)
        return ["setpriv", f"--bounding-set=-all,{given}"]

    def test_those_that_it_needs_suffice(self, make_server, tree):
        server = make_server("--impersonate", tree=tree, env=ENV, within=self.only(*self.NEEDED))
        root = client(server, "s3")
        root.create_bucket(Bucket="lab")
        root.put_object(Bucket="lab", Key="d/a", Body=b"1")
        root.put_object(Bucket="lab", Key="d/a", Body=b"2")
        assert owner(tree / "lab/d/a") == ROOT_IDS
        (tree / "lab/d/a").chmod(0)
        assert refusal(root.get_object, Bucket="lab", Key="d/a") == DENIED
        (tree / "lab/d/a").chmod(0o400)
        assert root.get_object(Bucket="lab", Key="d/a")["Body"].read() == b"2"
        root.delete_object(Bucket="lab", Key="d/a")
        root.delete_bucket(Bucket="lab")

    @pytest.mark.parametrize("lacking", NEEDED)
    def test_without_one_it_does_not_start(self, make_server, tree, lacking):
        held = [name for name in self.NEEDED if name != lacking]
        sentence = f"{CANNOT}the process lacks the capability CAP_{lacking.upper()}"
        with pytest.raises(StartFailed, match=re.escape(sentence)):
            make_server("--impersonate", tree=tree, env=ENV, within=self.only(*held))
        assert os.listdir(tree) == []

    def test_those_that_stay_with_a_user_are_refused(self, make_server, tree):
        within = ["setpriv", "--securebits=+no_setuid_fixup"]
        with pytest.raises(StartFailed, match=re.escape(CANNOT + "the process would keep its capabilities")):
            make_server("--impersonate", tree=tree, env=ENV, within=within)
        assert os.listdir(tree) == []

    def test_they_do_not_replace_the_superuser(self, make_server, tree):
        """As a program has them from its file (capabilities(7)), or its service manager."""
        os.chown(tree, NOBODY, NOBODY)
        given = ",".join(f"+{name}" for name in self.NEEDED)
        within = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        within += [f"--inh-caps={given}", f"--ambient-caps={given}"]
        with pytest.raises(StartFailed, match=re.escape(CANNOT + "the process is not the superuser (uid 0)")):
            make_server("--impersonate", tree=tree, env=ENV, within=within)
        assert os.listdir(tree) == []
