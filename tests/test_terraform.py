"""The calls of Terraform's AWS provider, replayed in Go (`terraform/main.go` says what was read and where), and the S3
backend of Terraform itself."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.identities import ROOT, allow, client, master_key, new_user
from support.server import REPOSITORY, Server, remove_tree

HERE = Path(__file__).parent / "terraform"
PLACE = REPOSITORY / "target" / "terraform"
# A limit that only a hang reaches: the compiler takes a quarter of a minute, once.
BUILD_SECONDS = 600
SECONDS_MAX = 60

PLANS = ["apply", "plan without a change"]
GONE = ["destroy", "plan after another has destroyed it", "destroy what is gone"]


def life(changes: int = 0, *before_the_end: str) -> list[str]:
    """The steps of a resource."""
    change = [name for n in range(1, changes + 1) for name in (f"change {n}", f"plan after change {n}")]
    return [*PLANS, *change, *before_the_end, *GONE]


RESOURCES = {
    "aws_iam_user": life(3, "import", "meanwhile"),
    "aws_iam_access_key": life(2, "import"),
    "aws_iam_user_policy": life(1, "import"),
    "aws_iam_user_policy_attachment": life(0, "import"),
    "aws_iam_group": life(2, "import"),
    "aws_iam_group_membership": life(2),
    "aws_iam_user_group_membership": life(1, "import"),
    "aws_iam_group_policy": life(1, "import"),
    "aws_iam_group_policy_attachment": life(0, "import"),
    "aws_iam_policy": life(7, "import"),
    "aws_iam_role": life(3, "import"),
    "aws_iam_role_policy": life(1, "import"),
    "aws_iam_role_policy_attachment": life(0, "import"),
    "aws_iam_openid_connect_provider": life(1, "import"),
    "aws_iam_account_alias": life(0, "import"),
}
# What is no resource has steps of its own: how many.
OTHERS = {"data": 7, "conflicts": 6, "parallel": 3, "assumed": 4}


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        text=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BUILD_SECONDS,
    )


def sources(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.*")}


def build() -> None:
    for name in (*sources(PLACE), "program"):
        (PLACE / name).unlink(missing_ok=True)
    for name, text in sources(HERE).items():
        (PLACE / name).write_bytes(text)
    if (got := run("go", "mod", "download", cwd=PLACE)).returncode:
        pytest.skip(f"the SDK's modules are not available: {got.stderr.strip()[-200:]}")
    built = run("go", "build", "-o", "program", ".", cwd=PLACE)
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built below `target` by the first worker that comes."""
    if not shutil.which("go"):
        pytest.skip("there is no go here")
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(PLACE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if sources(PLACE) != sources(HERE) or not (PLACE / "program").exists():
            build()
    return PLACE / "program"


def start(folder: Path, *options: str) -> Iterator[Server]:
    tree = folder / "tree"
    tree.mkdir()
    options = ("--durability", "none", "--master-key-file", str(master_key(folder)), *options)
    running = Server(tree, *options, log=folder / "server.log")
    yield running
    status = running.stop()
    remove_tree(tree)
    assert "panicked" not in running.log, running.log
    assert status == 0, running.log


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    yield from start(tmp_path_factory.mktemp("terraform"))


@pytest.fixture(scope="module")
def key(server) -> tuple:
    """An access key of a user who may do what Terraform does, as an operator has one."""
    return new_user(server, "terraform", allow(["iam:*", "sts:*", "s3:*"]))


def replay(
    program: Path, servers: list[Server], key: tuple, name: str, region: str = "us-east-1"
) -> list[dict]:
    """The steps of one replay, all of which were done. The servers get its calls in turn."""
    done = subprocess.run(
        [program, name],
        env={
            "TF_ENDPOINTS": ",".join(server.endpoint for server in servers),
            "TF_REGION": region,
            "TF_ACCESS_KEY": key[0],
            "TF_SECRET_KEY": key[1],
        },
        text=True,
        capture_output=True,
        timeout=SECONDS_MAX,
    )
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    for step in steps:
        assert "failure" not in step, f"{step['step']}: {step['failure']}; called {step['calls']}"
    assert done.returncode == 0, done.stderr[-2000:]
    return steps


def test_the_program_is_in_order(program):
    formatted = run("gofmt", "-l", ".", cwd=HERE)
    assert (formatted.returncode, formatted.stdout) == (0, ""), formatted.stderr
    assert (checked := run("go", "vet", ".", cwd=PLACE)).returncode == 0, checked.stderr
    names = subprocess.run([program], text=True, capture_output=True, check=True).stdout.split()
    assert names == sorted([*RESOURCES, *OTHERS, "start"])


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource(program, server, key, resource):
    steps = replay(program, [server], key, resource)
    assert [step["step"] for step in steps] == RESOURCES[resource]
    # A plan only reads.
    for step in steps:
        if step["step"].startswith("plan"):
            assert all(call.startswith(("Get", "List")) for call in step["calls"]), step


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_resource(program, server, key, what):
    assert len(replay(program, [server], key, what)) == OTHERS[what]


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[list[Server]]:
    """Two gateways on one tree."""
    folder = tmp_path_factory.mktemp("pair")
    for first in start(folder):
        options = ("--durability", "none", "--master-key-file", str(folder / "master-key"))
        second = Server(first.tree, *options, log=folder / "second.log")
        yield [first, second]
        assert second.stop() == 0 and "panicked" not in second.log, second.log


@pytest.mark.parametrize("what", [*RESOURCES, *OTHERS])
def test_two_gateways(program, pair, what):
    """What one of them has done is so at the other, though the provider never waits here."""
    replay(program, pair, ROOT if what != "assumed" else new_user(pair[0], "tf", allow("*")), what)


@pytest.mark.parametrize("who", ["root", "user"])
def test_the_start(program, server, key, who):
    assert len(replay(program, [server], ROOT if who == "root" else key, "start")) == 3


def test_the_start_in_a_region_of_ones_own(program, tmp_path):
    """The provider signs for its own region, which need be none of AWS's (`skip_region_validation`)."""
    for server in start(tmp_path, "--region", "lab-7"):
        for region in ("lab-7", "us-east-1"):
            assert len(replay(program, [server], ROOT, "start", region)) == 3


CONFIGURATION = """
terraform {
  backend "s3" {
    bucket                 = "states"
    key                    = "lab/one two.tfstate"
    region                 = "us-east-1"
    use_path_style         = true
    use_lockfile           = true
    %s
    endpoints = { s3 = "%s", iam = "%s", sts = "%s" }
  }
}
variable "colour" {}
resource "terraform_data" "one" { input = var.colour }
output "colour" { value = terraform_data.one.output }
"""


class TestTheBackend:
    """States of Terraform itself, with its lock, in a bucket. It needs no provider for that."""

    @pytest.fixture
    def terraform(self, server, key, tmp_path):
        tool = shutil.which("terraform")
        if not tool:
            pytest.skip("there is no terraform here")
        environment = {
            "AWS_SECRET_ACCESS_KEY": key[1],
            "AWS_EC2_METADATA_DISABLED": "true",
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "TF_CLI_CONFIG_FILE": str(tmp_path / "terraformrc"),
        }
        # What the user of this machine has configured does not count.
        (tmp_path / "terraformrc").touch()

        def call(*arguments: str, status: int = 0, access_key: str = key[0]) -> str:
            done = run(tool, *arguments, cwd=tmp_path, AWS_ACCESS_KEY_ID=access_key, **environment)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout + done.stderr

        return call

    @pytest.mark.parametrize(
        ("option", "asked"),
        [
            ("", ["GetCallerIdentity"]),
            ("skip_credentials_validation = true", ["GetCallerIdentity", "ListRoles"]),
        ],
    )
    def test_a_state(self, server, terraform, tmp_path, option, asked):
        """It asks who it is as the provider does."""
        s3 = client(server, "s3")
        s3.create_bucket(Bucket="states")
        endpoint = server.endpoint
        (tmp_path / "main.tf").write_text(CONFIGURATION % (option, endpoint, endpoint, endpoint))
        refused = terraform("init", "-input=false", status=1, access_key="AKIDNOBODY")
        assert "InvalidClientTokenId" in refused
        # Before it says so, IAM's GetUser has told it the same.
        assert [call for call in ("GetCallerIdentity", "ListRoles") if call in refused] == asked
        terraform("init", "-input=false")
        terraform("apply", "-auto-approve", "-input=false", "-var=colour=blue")
        assert "No changes" in terraform("plan", "-input=false", "-var=colour=blue", "-detailed-exitcode")
        terraform("plan", "-input=false", "-var=colour=red", "-detailed-exitcode", status=2)
        state = json.loads(s3.get_object(Bucket="states", Key="lab/one two.tfstate")["Body"].read())
        assert state["outputs"]["colour"]["value"] == "blue"
        # Somebody else is at it.
        s3.put_object(Bucket="states", Key="lab/one two.tfstate.tflock", Body=b'{"ID": "1"}')
        held = terraform("apply", "-auto-approve", "-input=false", "-var=colour=red", status=1)
        assert "Error acquiring the state lock" in held
        s3.delete_object(Bucket="states", Key="lab/one two.tfstate.tflock")
        terraform("workspace", "new", "second")
        assert "second" in terraform("workspace", "list")
        terraform("workspace", "select", "default")
        terraform("workspace", "delete", "second")
        terraform("destroy", "-auto-approve", "-input=false", "-var=colour=blue")
        left = [entry["Key"] for entry in s3.list_objects_v2(Bucket="states").get("Contents", [])]
        assert left == ["lab/one two.tfstate"]
        s3.delete_object(Bucket="states", Key=left[0])
        s3.delete_bucket(Bucket="states")
