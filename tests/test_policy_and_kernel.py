"""`slipway policy explain` of a user whom the gateway acts as: what it says is what S3 does. Each question is first explained
and then asked, at files of its own in directories of all kinds (modes, access lists, sticky, setgid)."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.identities import allow, client, policy
from support.rights import FILES, GROUP, OWNER, PLACES, USERS, World, access_list, world_in
from support.server import SIDECARS, binary
from support.wire import Response

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
]

REFUSED = "refused by the kernel"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory) as world:
        yield world


def run(tree: Path, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    command = [*before, str(binary()), "policy", "explain", *words, "--tree", str(tree)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "panicked" not in told.stderr
    return told


def explain(world: World, user: str, action: str, resource: str, *words: str) -> dict:
    arn = f"arn:aws:s3:::{resource}"
    told = run(world.server.tree, f"s3:{action}", arn, "--user", user, "--json", *words)
    assert told.stdout, told.stderr
    found = json.loads(told.stdout)
    assert told.returncode == (0 if found["decision"] == "allowed" else 1), told
    return found


@dataclass(frozen=True)
class Question:
    user: str
    ask: str
    file: str = "none"

    @property
    def name(self) -> str:
        return f"{self.user}-{self.ask}-{self.file}".replace(" ", "-")


# The action, and whether there is a file.
ACTIONS = {
    "get": ("GetObject", tuple(FILES)),
    "get nothing": ("GetObject", ("none",)),
    "get inside": ("GetObject", ("0640",)),
    "put": ("PutObject", ("none",)),
    "put in new": ("PutObject", ("none",)),
    "put inside": ("PutObject", ("0640",)),
    "replace": ("PutObject", ("0640", "0600", "list")),
    "delete": ("DeleteObject", ("0640", "0644")),
    "delete nothing": ("DeleteObject", ("none",)),
    "delete inside": ("DeleteObject", ("0640",)),
    "list": ("ListBucket", ("none",)),
    "list all": ("ListBucket", ("none",)),
    "begin": ("PutObject", ("none",)),
    "abort": ("AbortMultipartUpload", ("none",)),
}


def questions() -> list[Question]:
    return [
        Question(user, ask, file) for user in USERS for ask, (_, files) in ACTIONS.items() for file in files
    ]


class Trial:
    """All questions in a directory of one kind."""

    def __init__(self, world: World, place) -> None:
        self.world, self.bucket = world, f"of-{place.name}"
        assert world.raw.put(f"/{self.bucket}").status == 200
        root = world.server.tree / self.bucket
        self.directory = root / "above" / "s3"
        for path in (root, self.directory.parent, self.directory):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        self.uploads: dict[Question, str] = {}
        for question in questions():
            path = self.directory / question.name
            if question.ask == "abort":
                answer = self.ask("POST", question, query={"uploads": ""})
                assert answer.status == 200, answer
                self.uploads[question] = answer.xml["UploadId"]
            if question.ask.endswith("inside"):
                # The key has keys below it, so that its file is in a directory of its name.
                path.mkdir()
                os.chown(path, OWNER, GROUP)
                path.chmod(0o775)
                path = path / ".slipway,self"
            if question.file != "none":
                path.write_bytes(b"secret")
                os.chown(path, OWNER, GROUP)
                path.chmod(FILES[question.file])
                if question.file == "list":
                    os.setxattr(path, "system.posix_acl_access", access_list(6, 4, 0, 6, 4, 0))
        place.close(root, self.directory)

    def key(self, question: Question) -> str:
        return f"above/s3/{question.name}" + ("/d/e" if question.ask == "put in new" else "")

    def ask(self, method: str, question: Question, body: bytes = b"", **options) -> Response:
        signer = self.world.signers[question.user]
        path = f"/{self.bucket}/{self.key(question)}"
        return self.world.raw.request(method, path, body=body, signer=signer, **options)

    def by_s3(self, question: Question) -> Response:
        match question.ask:
            case "get" | "get nothing" | "get inside":
                return self.ask("GET", question)
            case "put" | "put in new" | "put inside" | "replace":
                return self.ask("PUT", question, b"by s3")
            case "delete" | "delete nothing" | "delete inside":
                return self.ask("DELETE", question)
            case "begin":
                return self.ask("POST", question, query={"uploads": ""})
            case "abort":
                return self.ask("DELETE", question, query={"uploadId": self.uploads[question]})
        prefix = {"prefix": "above/s3/"} if question.ask == "list" else {}
        signer = self.world.signers[question.user]
        return self.world.raw.get(f"/{self.bucket}", query={"list-type": "2", **prefix}, signer=signer)

    def explained(self, question: Question) -> dict:
        action, _ = ACTIONS[question.ask]
        if action == "ListBucket":
            prefix = ("--condition", "s3:prefix=above/s3/") if question.ask == "list" else ()
            return explain(self.world, question.user, action, self.bucket, *prefix)
        return explain(self.world, question.user, action, f"{self.bucket}/{self.key(question)}")


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_what_is_explained_is_what_s3_does(world, place):
    try:
        trial = Trial(world, place)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    asked = questions()
    with ThreadPoolExecutor(4) as pool:
        told = dict(zip(asked, pool.map(trial.explained, asked), strict=True))
    wrong = []
    seen = set()
    for question in asked:
        answer = trial.by_s3(question)
        assert answer.status in (200, 204, 403, 404), (question, answer)
        seen.add((ACTIONS[question.ask][0], answer.status == 403))
        expected = REFUSED if answer.status == 403 else "allowed"
        if told[question]["decision"] != expected:
            wrong.append(f"{question}: {answer.status}, and explained: {told[question]}")
    assert not wrong, f"{len(wrong)} of {len(asked)}:\n" + "\n".join(wrong[:20])


@pytest.fixture(scope="module")
def bucket(world) -> Path:
    assert world.raw.put("/lab").status == 200
    bucket = world.server.tree / "lab"
    bucket.chmod(0o755)
    for name, mode in (("closed", 0o750), ("sticky", 0o1777), ("open", 0o777)):
        (bucket / name).mkdir()
        (bucket / name / "file").write_bytes(b"1")
        for path, bits in ((bucket / name, mode), (bucket / name / "file", 0o644)):
            os.chown(path, OWNER, 0)
            path.chmod(bits)
    return bucket


class TestSentences:
    """What is said of whom, for which file."""

    def test_the_first_directory_that_is_closed(self, world, bucket):
        told = run(world.server.tree, "s3:GetObject", "arn:aws:s3:::lab/closed/file", "--user", "stranger")
        lines = told.stdout.splitlines()
        assert lines[:2] == [
            f"refused by the kernel: {bucket}/closed (drwxr-x--- {OWNER}:root) gives stranger (uid 12406) no search "
            "permission",
            "policies: allowed: the principal's own policies allow it",
        ]
        assert told.returncode == 1
        found = explain(world, "stranger", "GetObject", "lab/closed/file")
        assert found["policies"]["decision"] == "allowed"
        assert found["kernel"] == {
            "verdict": "refuses it",
            "reason": lines[0].removeprefix("refused by the kernel: "),
            "identity": {"uid": 12406, "gid": 12406, "groups": []},
            "refusal": {
                "path": f"{bucket}/closed",
                "mode": "drwxr-x---",
                "uid": OWNER,
                "gid": 0,
                "access_list": False,
                "lacks": "search",
            },
            "note": None,
        }

    def test_who_is_allowed(self, world, bucket):
        told = run(
            world.server.tree, "s3:GetObject", "arn:aws:s3:::lab/closed/file", "--user", "owner"
        ).stdout.splitlines()
        assert told[0] == "allowed: the principal's own policies allow it"
        assert told[-1] == f"kernel: the kernel allows it to owner (uid {OWNER}, gid {OWNER})"
        told = explain(world, "supplementary", "GetObject", "lab/open/none")
        assert told["kernel"]["reason"].endswith(
            f"supplementary (uid 12403, gid 12403, groups {GROUP}, 12499); there is no such object"
        )

    def test_an_access_list_shows(self, world, bucket):
        path = bucket / "listed"
        path.mkdir()
        os.setxattr(path, "system.posix_acl_access", access_list(7, 7, 0, 5, 7, 0))
        found = explain(world, "stranger", "PutObject", "lab/listed/x")
        assert "(drwxrwx---+ root:root) gives stranger" in found["reason"]
        assert found["kernel"]["refusal"]["access_list"] is True

    def test_a_sticky_directory(self, world, bucket):
        for action in ("DeleteObject", "PutObject"):
            found = explain(world, "stranger", action, "lab/sticky/file")
            assert found["decision"] == REFUSED
            assert found["kernel"]["refusal"]["lacks"] == "ownership"
            assert f"{bucket}/sticky (drwxrwxrwt {OWNER}:root), which is sticky" in found["reason"]
            assert explain(world, "owner", action, "lab/sticky/file")["decision"] == "allowed"
            assert explain(world, "stranger", action, "lab/sticky/other")["decision"] == "allowed"
        assert world.raw.delete("/lab/sticky/file", signer=world.signers["stranger"]).status == 403

    @pytest.mark.skipif(not shutil.which("chattr"), reason="needs chattr")
    def test_an_immutable_file(self, world, bucket):
        path = bucket / "open/file"
        if subprocess.run(["chattr", "+i", str(path)], capture_output=True).returncode != 0:
            pytest.skip("the file system has no such attribute")
        try:
            found = explain(world, "stranger", "DeleteObject", "lab/open/file")
            assert (found["decision"], found["kernel"]["refusal"]["lacks"]) == (REFUSED, "a changeable file")
            assert world.raw.delete("/lab/open/file", signer=world.signers["stranger"]).status == 403
        finally:
            subprocess.run(["chattr", "-i", str(path)], check=True)

    def test_links(self, world, bucket):
        for name, to in (
            ("to-closed", "closed"),
            ("to-open", "open"),
            ("to-nowhere", "none"),
            ("out", "/etc"),
        ):
            (bucket / name).symlink_to(to)
        for key in ("to-closed/file", "to-open/file", "to-nowhere/file", "out/passwd"):
            status = world.raw.get(f"/lab/{key}", signer=world.signers["stranger"]).status
            found = explain(world, "stranger", "GetObject", f"lab/{key}")
            assert (status == 403) == (found["decision"] == REFUSED), (key, status, found)
        found = explain(world, "stranger", "GetObject", "lab/to-closed/file")
        assert found["kernel"]["refusal"]["path"] == f"{bucket}/closed"

    def test_a_file_in_the_place_of_a_directory(self, world, bucket):
        found = explain(world, "owner", "PutObject", "lab/open/file/below")
        assert found["decision"] == "allowed"
        assert "has the name of one of the key's directories" in found["kernel"]["note"]

    def test_buckets(self, world, bucket):
        closed = {"GetBucketLocation": 403, "GetBucketPolicy": 404}
        assert world.raw.put("/buckets").status == 200
        path = world.server.tree / "buckets"
        path.chmod(0o711)
        stranger = {"signer": world.signers["stranger"]}
        for action, status in closed.items():
            query = {"location": ""} if action == "GetBucketLocation" else {"policy": ""}
            assert world.raw.get("/buckets", query=query, **stranger).status == status
            found = explain(world, "stranger", action, "buckets")
            assert (found["decision"] == REFUSED) == (status == 403), found
        assert explain(world, "stranger", "DeleteBucket", "buckets")["decision"] == REFUSED
        assert world.raw.delete("/buckets", **stranger).status == 403
        path.chmod(0o777)
        (path / "closed").mkdir(mode=0o700)
        found = explain(world, "stranger", "DeleteBucket", "buckets")
        assert found["kernel"]["refusal"]["path"] == f"{path}/closed"
        assert world.raw.delete("/buckets", **stranger).status == 403
        (path / "closed").rmdir()
        assert explain(world, "stranger", "DeleteBucket", "buckets")["decision"] == "allowed"
        assert world.raw.delete("/buckets", **stranger).status == 204
        found = run(world.server.tree, "s3:ListAllMyBuckets", "*", "--user", "stranger")
        assert "buckets that it may not search are left out" in found.stdout
        assert found.returncode == 0


@pytest.fixture(scope="module")
def closed_bucket(world):
    assert world.raw.put("/who").status == 200
    (world.server.tree / "who/x").write_bytes(b"1")
    (world.server.tree / "who").chmod(0o700)


@pytest.mark.usefixtures("closed_bucket")
class TestWho:
    """Whom the principal is on the file system, and what becomes of the decision if that is not known."""

    GET = ("s3:GetObject", "arn:aws:s3:::who/x")

    def told(self, world, *words: str, status: int, **options) -> list[str]:
        told = run(world.server.tree, *self.GET, *words, **options)
        assert told.returncode == status, told
        return told.stdout.splitlines()

    def test_without_the_kernel(self, world):
        told = self.told(world, "--user", "stranger", "--policies-alone", status=0)
        assert not [line for line in told if "kernel" in line]

    def test_who_cannot_act_does_not_guess(self, world):
        """Without a capability, as anybody but root."""
        lacks = {
            "CAP_SETUID": ("setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid"),
            "CAP_SETGID": ("setpriv", "--bounding-set=-setgid", "--inh-caps=-setgid"),
        }
        for name, before in lacks.items():
            told = self.told(world, "--user", "owner", status=1, before=before)
            assert told[0].startswith("not decided: what the kernel says of it is not known: "), told
            assert f"the process lacks the capability {name}" in told[0]
            assert told[1] == "policies: allowed: the principal's own policies allow it"

    def test_policies_come_first(self, world):
        arn = f"arn:aws:iam::{world.server.account}:root"
        told = run(world.server.tree, *self.GET, "--principal", "anonymous", "--posix", "12406:12406")
        assert told.returncode == 1
        assert told.stdout.startswith("not allowed: ")
        assert f"kernel: refuses it as well: {world.server.tree}/who (drwx------" in told.stdout
        told = self.told(world, "--principal", arn, "--posix", "12406:12406", status=1)
        assert told[0].startswith("refused by the kernel: ")
        # The kernel is asked of no one whom nothing names; a note says so.
        told = self.told(world, "--principal", arn, status=0)
        assert [line.partition(":")[0] for line in told if "kernel" in line] == ["note"]

    def test_who_is_nobody(self, world):
        arn = f"arn:aws:iam::{world.server.account}:root"
        told = self.told(world, "--principal", arn, "--impersonate", status=1)
        assert told[0].startswith("refused: ") and "has no POSIX identity" in told[0]
        told = self.told(world, "--user", "owner", "--uid-min", "20000", status=1)
        assert told[0] == (
            f"refused: owner cannot be {OWNER}:{OWNER} on the file system: its uid is below --uid-min"
        )
        told = self.told(world, "--user", "owner", "--posix", "no-such-account", status=1)
        assert "no account" in told[0]

    def test_whom_a_session_is_is_not_always_known(self, world):
        """A role without a POSIX identity: its sessions have that of the user who assumed it."""
        iam, account = client(world.server, "iam"), world.server.account
        trust = {"Effect": "Allow", "Principal": {"AWS": account}, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName="visitor", AssumeRolePolicyDocument=policy(trust))
        iam.put_role_policy(RoleName="visitor", PolicyName="p", PolicyDocument=policy(allow("s3:*")))
        session = ("--principal", f"arn:aws:sts::{account}:assumed-role/visitor/night")
        told = self.told(world, *session, "--impersonate", status=1)
        assert told[0].startswith("not decided: ") and "give it by --posix" in told[0], told
        assert told[1].startswith("policies: allowed: "), told
        found = (world.server.tree / "who").stat()
        posix = ("--posix", f"{found.st_uid}:{found.st_gid}")
        assert self.told(world, *session, "--impersonate", *posix, status=0)[0].startswith("allowed: ")

    def test_wrong_options(self, world):
        for words, said in (
            (("--posix", "1:x"), "expected UID:GID"),
            (("--posix", "1:1:"), "expected UID:GID"),
            (("--posix", "1000"), "give UID:GID"),
            (("--posix", "0:1"), "may be neither root"),
            (("--posix", "1:1", "--policies-alone"), "cannot be used with"),
        ):
            told = run(world.server.tree, *self.GET, "--user", "owner", *words)
            assert told.returncode == 2 and said in told.stderr, told.stderr
        command = [str(binary()), "policy", "explain", *self.GET, "--principal", "anonymous", "--impersonate"]
        told = subprocess.run(command, capture_output=True, text=True)
        assert told.returncode == 2 and "--tree" in told.stderr
