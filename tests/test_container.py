"""The image of packaging/container, run by podman as anywhere else, where `SLIPWAY_IMAGE` names one."""

import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.bucket import Bucket
from support.data import MIB, pattern
from support.proxies import free_port
from support.server import ACCESS_KEY, KEYS, SECRET_KEY
from support.sigv4 import Signer
from support.wire import RawClient, poll

IMAGE = os.environ.get("SLIPWAY_IMAGE", "")
OWNER = 12345
pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="SLIPWAY_IMAGE names no image; packaging/container/build makes one"),
    pytest.mark.skipif(not shutil.which("podman"), reason="needs podman (Debian's packages podman and crun)"),
]
# crun refuses cgroups of both versions at once; containers that have none need not see them.
HIDE_CGROUPS = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
HYBRID = os.geteuid() == 0 and Path("/sys/fs/cgroup/unified").is_dir()


def podman(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess:
    command = [*(HIDE_CGROUPS if HYBRID else []), "podman", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


def limits() -> list[str]:
    """podman asks for more than its own limits, which not every root may have."""
    found = []
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        most = min(limit for limit in (*resource.getrlimit(kind), 10000) if limit != resource.RLIM_INFINITY)
        found += ["--ulimit", f"{name}={most}:{most}"]
    return found


class Container:
    """A container on this machine's network."""

    def __init__(self, *options: str | Path, arguments: tuple[str, ...] = ()) -> None:
        self.name = f"slipway-test-{uuid.uuid4().hex[:12]}"
        self.port = free_port()
        variables = {
            **KEYS,
            "SLIPWAY_LISTEN": f"127.0.0.1:{self.port}",
            "SLIPWAY_OPS_LISTEN": f"127.0.0.1:{free_port()}",
        }
        given = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        # What Kubernetes' profile "restricted" asks for, and a little more.
        closed = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
        # Without systemd nothing runs health checks by itself.
        where = ["--network=host", "--cgroups=disabled", "--health-interval=disable", *limits()]
        podman("run", "--detach", "--name", self.name, *closed, *where, *given, *options, IMAGE, *arguments)

    def is_healthy(self) -> bool:
        return podman("healthcheck", "run", self.name, check=False).returncode == 0

    def inspect(self) -> dict:
        return json.loads(podman("inspect", self.name).stdout)[0]

    @property
    def log(self) -> str:
        done = podman("logs", self.name)
        return done.stdout + done.stderr

    def bucket(self, tree: Path) -> Bucket:
        raw = RawClient(("127.0.0.1", self.port), Signer(ACCESS_KEY, SECRET_KEY))
        return Bucket(SimpleNamespace(raw=raw, tree=tree), "bucket")

    def stop(self) -> int:
        """SIGTERM, and the exit status; after a minute it would be killed, which is 137."""
        podman("stop", "--time", "60", self.name)
        return self.inspect()["State"]["ExitCode"]


@pytest.fixture
def run() -> Iterator[Callable[..., Container]]:
    started: list[Container] = []

    def start(*options: str | Path, **more) -> Container:
        started.append(Container(*options, **more))
        return started[-1]

    yield start
    for container in started:
        podman("rm", "--force", "--volumes", "--time", "5", container.name)


@pytest.fixture
def tree() -> Iterator[Path]:
    # pytest's own directories are closed to others.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        tree = Path(directory) / "tree"
        tree.mkdir()
        os.chown(tree, OWNER, OWNER)
        yield tree


def test_a_directory_of_another_user(tree, run):
    container = run("--user", f"{OWNER}:{OWNER}", "--volume", f"{tree}:/data")
    poll(container.is_healthy, 20)
    assert container.inspect()["State"]["Health"]["Status"] == "healthy"
    bucket = container.bucket(tree).create()
    bucket.put("dir/key", pattern(MIB), headers={"x-amz-meta-a": "b"})
    file = bucket.file("dir/key")
    assert file.read_bytes() == pattern(MIB)
    for path in (file, file.parent, bucket.tree):
        assert (path.stat().st_uid, path.stat().st_gid) == (OWNER, OWNER), path

    podman("restart", "--time", "60", container.name)
    poll(container.is_healthy, 20)
    answer = bucket.get("dir/key")
    assert answer.body == pattern(MIB)
    assert answer.headers["x-amz-meta-a"] == "b"

    assert container.stop() == 0, container.log
    assert not container.is_healthy()


def test_requests_in_progress_end_before_it_does(tree, run):
    where = ("--user", f"{OWNER}:{OWNER}", "--volume", f"{tree}:/data")
    container = run(*where, "--env", "SLIPWAY_DRAIN_TIMEOUT=20")
    poll(container.is_healthy, 20)
    bucket = container.bucket(tree).create()
    request = bucket.raw.prepare("PUT", bucket.path("key"), body=pattern(MIB))
    with bucket.raw.connect() as connection:
        connection.send(request.head + request.body[: MIB // 2])
        before = time.monotonic()
        podman("kill", "--signal", "TERM", container.name)
        poll(lambda: not container.is_healthy(), 20)
        connection.send(request.body[MIB // 2 :])
        assert connection.response("PUT").status == 200
    assert podman("wait", container.name).stdout.strip() == "0"
    assert time.monotonic() - before < 20
    assert bucket.file("key").read_bytes() == pattern(MIB)


def test_a_volume_of_its_own(run):
    """Without options the image's user can write to the image's volume."""
    container = run()
    poll(container.is_healthy, 20)
    container.bucket(Path("/nowhere")).create()
    assert container.inspect()["Config"]["User"] == "10001:10001"
    assert container.stop() == 0, container.log


def test_a_secret_of_kubernetes(tree, run):
    """A file of root's that fsGroup lets the image's user read."""
    os.chown(tree, 10001, 10001)
    secret = tree.parent / "credentials.toml"
    secret.write_text('access_key = "from-file"\nsecret_key = "sesame-sesame"\n')
    secret.chmod(0o440)
    os.chown(secret, 0, 10001)
    mounts = ("--volume", f"{secret}:/etc/slipway/credentials.toml:ro", "--volume", f"{tree}:/data")
    container = run(*mounts, "--env", "SLIPWAY_CREDENTIALS_FILE=/etc/slipway/credentials.toml")
    poll(container.is_healthy, 20)
    raw = container.bucket(tree).raw
    signer = raw.signer.with_(access_key="from-file", secret_key="sesame-sesame")
    assert raw.with_(signer=signer).get("/").status == 200
    assert raw.get("/").status == 403


def test_who_is_not_ready_is_not_healthy(run):
    container = run("--env", "SLIPWAY_READY_FREE=1000000000")
    poll(lambda: "endpoint" in container.log, 20)
    assert not container.is_healthy()
    status = container.inspect()["State"]["Health"]
    assert "bytes are free" in status["Log"][-1]["Output"], status


def test_other_commands():
    options = ["--rm", "--network=none", "--cgroups=disabled", "--health-interval=disable", *limits()]
    done = podman("run", *options, IMAGE, "--version")
    assert done.stdout.startswith("slipway ")
    labels = json.loads(podman("image", "inspect", "--format", "{{json .Labels}}", IMAGE).stdout)
    version, commit = (labels[f"org.opencontainers.image.{name}"] for name in ("version", "revision"))
    assert done.stdout == f"slipway {version} ({commit})\n"


def test_it_has_authorities_to_trust():
    """Those of collectors with https."""
    options = ["--rm", "--network=none", "--cgroups=disabled", "--health-interval=disable", *limits()]
    podman("run", *options, "--entrypoint=test", IMAGE, "-s", "/etc/ssl/certs/ca-certificates.crt")
