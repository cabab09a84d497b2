"""`--impersonate` against a shell: what S3 does for a user is what coreutils may do as that user (setpriv), at the same
names. Whoever looks at it (`-s`) sees a table of each directory. Never is S3 allowed what the shell is refused; what the
shell is allowed and S3 refuses by design, `wanted` says, and nothing else is."""

import base64
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.rights import FILES, GROUP, OWNER, PLACES, USERS, Place, World, access_list, world_in
from support.server import SIDECARS
from support.wire import Response

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="needs util-linux's setpriv"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory) as world:
        yield world


@dataclass(frozen=True)
class Question:
    """Something that a user may do, or may not, at a file."""

    user: str
    action: str
    file: str

    @property
    def name(self) -> str:
        return f"{self.user}-{self.action}-{self.file}"


# By a shell with `$f`, the file, and `$d`, its directory. A PUT replaces a name, and does not write
# to a file.
IN_SHELL = {
    "get": 'cat "$f"',
    "head": 'cat "$f"',
    "copy from": 'cp "$f" "$home/copy"',
    "part from": 'cat "$f"',
    "new": 'cat < /dev/null > "$f"',
    "copy to": 'cat < /dev/null > "$f"',
    "new in new": 'mkdir -p "$f/d" && cat < /dev/null > "$f/d/e"',
    "replace": 'cat < /dev/null > "$f,new" && mv -f "$f,new" "$f"',
    "delete": 'rm -f "$f" && ! test -e "$f"',
    "delete many": 'rm -f "$f" && ! test -e "$f"',
    # An upload is that of a new file until it is completed.
    "create": 'cat < /dev/null > "$f"',
    "part": 'cat < /dev/null > "$f"',
    # It is that of who began it, whatever became of the directory: in the bucket.
    "parts": "true",
    "complete": 'cat < /dev/null > "$f"',
    "abort": "true",
    "complete over": 'cat < /dev/null > "$f,new" && mv -f "$f,new" "$f"',
    "list": 'ls -l "$d"',
}
# What differs from another in the request alone is asked of fewer files.
OF_FILES = {
    **dict.fromkeys(("get", "copy from", "replace", "delete"), tuple(FILES)),
    **dict.fromkeys(("head", "part from", "delete many", "complete over"), ("0640", "list")),
}
OF_UPLOADS = ("part", "parts", "complete", "abort", "complete over")
WRITES = {
    "new",
    "copy to",
    "new in new",
    "replace",
    "delete",
    "delete many",
    "create",
    "part",
    "complete",
    "complete over",
}
# What leaves a file of the user's.
MAKES = {"new", "copy to", "new in new", "replace", "complete", "complete over"}


def questions() -> list[Question]:
    return [
        Question(user, action, file)
        for user in USERS
        for action in IN_SHELL
        for file in OF_FILES.get(action, ("none",))
    ]


@dataclass(frozen=True)
class Eyes:
    """What the shell sees, by which S3 is stricter."""

    directory: bool
    above: bool
    bucket: bool
    file: bool

    def lets(self, question: Question) -> bool:
        """What S3 wants besides, by design (0044, "Learned"): who changes names in a directory has to be able to read
        it, and the bucket; who makes directories, to read each above them; who replaces or deletes a file, to read that,
        since its record may forbid it. Who lists in a bucket has to be able to read that."""
        if question.action in ("list", "parts", "abort"):
            return self.bucket
        if question.action not in WRITES:
            return True
        if question.action == "new in new" and not self.above:
            return False
        of_file = self.file or question.action not in ("replace", "delete", "delete many", "complete over")
        return self.directory and self.bucket and of_file


class Trial:
    """All questions at one place: once by the shell, once by S3, each with files of its own."""

    def __init__(self, world: World, place: Place) -> None:
        self.world, self.place = world, place
        self.bucket = f"bucket-{place.name}"
        assert world.raw.put(f"/{self.bucket}").status == 200
        self.root = world.server.tree / self.bucket
        # For what is copied.
        self.put("open", b"source")
        self.arms = {arm: self.root / "above" / arm for arm in ("shell", "s3")}
        self.uploads: dict[Question, tuple[str, str]] = {}
        self.furnish()

    def home(self, user: str) -> Path:
        """The user's own bucket."""
        return self.world.server.tree / f"home-of-{user}"

    def put(self, key: str, body: bytes) -> None:
        answer = self.world.raw.put(f"/{self.bucket}/{key}", body)
        assert answer.status == 200, answer

    def key(self, question: Question) -> str:
        return f"above/s3/{question.name.replace(' ', '-')}"

    def file(self, arm: str, question: Question) -> Path:
        return self.arms[arm] / question.name.replace(" ", "-")

    def furnish(self) -> None:
        # Root's key begins here, so that its directories are open to it; then they get their
        # rights.
        os.chmod(self.root, 0o777)
        for path in (self.root / "above", *self.arms.values()):
            path.mkdir()
            path.chmod(0o777)
        for question in questions():
            if question.action in OF_FILES:
                for arm in self.arms:
                    path = self.file(arm, question)
                    path.write_bytes(b"secret")
                    self.own(path, question.file)
            if question.action in OF_UPLOADS:
                self.uploads[question] = self.begin(question)
        for path in self.arms.values():
            self.place.close(self.root, path)

    def own(self, path: Path, mode: str) -> None:
        os.chown(path, OWNER, GROUP)
        path.chmod(FILES[mode])
        if mode == "list":
            os.setxattr(path, "system.posix_acl_access", access_list(6, 4, 0, 6, 4, 0))

    def begin(self, question: Question) -> tuple[str, str]:
        """An upload with a part, which the user began while all was open."""
        signer = self.world.signers[question.user]
        answer = self.ask("POST", question, query={"uploads": ""}, signer=signer)
        assert answer.status == 200, answer
        upload = answer.xml["UploadId"]
        part = self.ask(
            "PUT", question, b"part", query={"partNumber": "1", "uploadId": upload}, signer=signer
        )
        assert part.status == 200, part
        return upload, part.etag

    def ask(self, method: str, question: Question, body: bytes = b"", **options) -> Response:
        key = self.key(question) + ("/d/e" if question.action == "new in new" else "")
        signer = options.pop("signer", self.world.signers[question.user])
        return self.world.raw.request(method, f"/{self.bucket}/{key}", body=body, signer=signer, **options)

    def by_s3(self, question: Question) -> Response:
        source = {"x-amz-copy-source": f"{self.bucket}/{self.key(question)}"}
        home = f"/home-of-{question.user}/copy"
        mine = {"signer": self.world.signers[question.user]}
        upload, etag = self.uploads.get(question, ("", ""))
        of_upload = {"uploadId": upload}
        raw = self.world.raw
        match question.action:
            case "get":
                return self.ask("GET", question)
            case "head":
                return self.ask("HEAD", question)
            case "copy from":
                return raw.put(home, headers=source, **mine)
            case "part from":
                upload = raw.post(home, query={"uploads": ""}, **mine).xml["UploadId"]
                of_upload = {"uploadId": upload}
                answer = raw.put(home, headers=source, query=of_upload | {"partNumber": "1"}, **mine)
                assert raw.delete(home, query=of_upload, **mine).status == 204
                return answer
            case "new" | "new in new" | "replace":
                return self.ask("PUT", question, b"by s3")
            case "copy to":
                return self.ask("PUT", question, headers={"x-amz-copy-source": f"{self.bucket}/open"})
            case "delete":
                return self.ask("DELETE", question)
            case "delete many":
                return self.delete_many(question)
            case "create":
                return self.ask("POST", question, query={"uploads": ""})
            case "part":
                return self.ask("PUT", question, b"2", query=of_upload | {"partNumber": "2"})
            case "parts":
                return self.ask("GET", question, query=of_upload)
            case "complete" | "complete over":
                part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
                document = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"
                return self.ask("POST", question, document.encode(), query=of_upload)
            case "abort":
                return self.ask("DELETE", question, query=of_upload)
            case "list":
                query = {"list-type": "2", "prefix": "above/s3/"}
                return raw.get(f"/{self.bucket}", query=query, **mine)
        raise AssertionError(question)

    def delete_many(self, question: Question) -> Response:
        document = f"<Delete><Object><Key>{self.key(question)}</Key></Object></Delete>"
        digest = base64.b64encode(hashlib.md5(document.encode()).digest()).decode()
        answer = self.world.raw.post(
            f"/{self.bucket}",
            document.encode(),
            query={"delete": ""},
            headers={"content-md5": digest},
            signer=self.world.signers[question.user],
        )
        if answer.status == 200 and b"<Code>AccessDenied</Code>" in answer.body:
            answer.status = 403
        return answer

    def seen(self, path: Path) -> Path:
        return path.relative_to(self.world.server.tree)

    def by_shell(self, user: str, lines: list[str]) -> list[bool]:
        """Which of these lines the user's shell does."""
        uid, gid, *groups = USERS[user]
        who = [f"--reuid={uid}", f"--regid={gid}"]
        who.append(f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups")
        script = "\n".join(f"( {line} ) > /dev/null 2>&1; echo $?" for line in lines)
        prelude = f"umask 022\nhome={self.seen(self.home(user))}\nd={self.seen(self.arms['shell'])}\n"
        command = ["setpriv", *who, "sh"]
        # From the tree: what is above it is closed to all, and is neither way's.
        tree = self.world.server.tree
        done = subprocess.run(
            command, input=prelude + script, capture_output=True, text=True, check=True, cwd=tree
        )
        assert not done.stderr, done.stderr
        return [status == "0" for status in done.stdout.split()]

    def shell(self, asked: list[Question]) -> dict[Question, bool]:
        found = {}
        for user in USERS:
            mine = [question for question in asked if question.user == user]
            lines = [
                f"f='{self.seen(self.file('shell', question))}'; {IN_SHELL[question.action]}"
                for question in mine
            ]
            found.update(zip(mine, self.by_shell(user, lines), strict=True))
        return found

    def eyes(self, asked: list[Question]) -> dict[Question, Eyes]:
        """Asked before anything is changed."""
        found = {}
        for user in USERS:
            mine = [question for question in asked if question.user == user]
            shell = self.arms["shell"]
            paths = [shell, shell.parent, self.root, *(self.file("shell", question) for question in mine)]
            lines = [f"test -r '{self.seen(path)}'" for path in paths]
            sees = self.by_shell(user, lines)
            above, files = sees[:3], sees[3:]
            found.update({q: Eyes(*above, file) for q, file in zip(mine, files, strict=True)})
        return found


def made(path: Path, action: str) -> tuple:
    """What the kernel made of a new file: owner, group, mode and access list."""
    if action == "new in new":
        path = path / "d/e"
    status = path.stat()
    try:
        entries = os.getxattr(path, "system.posix_acl_access")
    except OSError:
        entries = b""
    return status.st_uid, status.st_gid, oct(status.st_mode), entries


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_s3_may_what_a_shell_may(world, place):
    try:
        trial = Trial(world, place)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    asked = questions()
    eyes = trial.eyes(asked)
    shell = trial.shell(asked)
    wrong: list[str] = []
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for question in asked:
        answer = trial.by_s3(question)
        if answer.status not in (200, 204, 403) or (
            answer.status == 403 and question.action != "head" and (b"AccessDenied" not in answer.body)
        ):
            wrong.append(f"{question}: {answer}")
        allowed = answer.status != 403
        wanted = shell[question] and eyes[question].lets(question)
        if allowed != wanted:
            more = "MORE THAN THE SHELL" if allowed and not shell[question] else "not as it is said"
            wrong.append(f"{question}: {more}: S3 {allowed}, shell {shell[question]}, {eyes[question]}")
        if allowed and shell[question] and question.action in MAKES:
            by = {arm: made(trial.file(arm, question), question.action) for arm in trial.arms}
            if by["s3"] != by["shell"]:
                wrong.append(f"{question}: made {by['s3']}, and the shell {by['shell']}")
        if question.action in ("delete", "delete many") and allowed == trial.file("s3", question).exists():
            wrong.append(f"{question}: {answer}, and the file is {'not ' if not allowed else ''}there")
        mark = "yes" if allowed else "strict" if shell[question] else "-"
        cells.setdefault((question.action, question.file), {})[question.user] = mark
    show(place, cells)
    assert not wrong, f"{len(wrong)} of {len(asked)}:\n" + "\n".join(wrong[:40])


def show(place: Place, cells: dict[tuple[str, str], dict[str, str]]) -> None:
    """`strict`: the shell may, and S3 wants more."""
    print(f"\n{place.name:30}" + "".join(f"{user:>15}" for user in USERS))
    for (action, file), row in cells.items():
        print(f"  {action:15}{file:>13}" + "".join(f"{row[user]:>15}" for user in USERS))
