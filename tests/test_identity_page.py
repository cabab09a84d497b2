"""docs/IDENTITY.md as a new user reads it: each of its commands, from top to bottom, at a real server."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.marks import needs_impersonation
from support.server import ACCESS_KEY, REPOSITORY, SECRET_KEY, binary

PAGE = REPOSITORY / "docs" / "IDENTITY.md"
# They take a provider, a store or a directory that is there: test_openid.py, test_openid_claims.py,
# test_identity_stores.py and test_ldap.py have one.
OF_OTHER_SERVERS = (
    "aws sts assume-role-with-web-identity",
    "slipway admin provider set-claims",
    "slipway serve --identities",
    "cat /etc/slipway/slipway.toml",
    "read -rs password",
)

# Servers go to the background, and the keys that `aws configure` asks for are those that were
# printed last.
SHELL = """
set -eo pipefail
slipway() {
  if [ "$1" = serve ]; then
    [ -z "$server" ] || { kill $server; wait $server || true; }
    "$BINARY" "$@" --listen 127.0.0.1:$PORT >>server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && return; sleep 0.1; done
    cat server.log; return 1
  fi
  "$BINARY" "$@" | tee -a printed
}
aws() {
  if [ "$1" = configure ]; then
    { for name in access secret; do sed -n "s/^$name key  *//p" printed | tail -n 1; done; echo; echo; } |
      command aws "$@" >/dev/null
  else
    command aws "$@"
  fi
}
trap '[ -z "$server" ] || kill $server' EXIT
"""


def commands() -> list[str]:
    """The commands of the page in their order, each with the lines that belong to it."""
    found: list[str] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines(keepends=True):
            if line.startswith(("$ ", "# ")):
                found.append(line[2:])
            else:
                found[-1] += line
    return found


@pytest.fixture
def run(tmp_path):
    """Runs commands in one shell, with what the page names where the test has it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {
        "/etc/slipway": f"{tmp_path}/etc",
        "/srv/lab": f"{tmp_path}/lab",
        "127.0.0.1:9000": f"127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...": (
            f"AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={SECRET_KEY}"
        ),
    }
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SLIPWAY_"))}
    environment = mine | {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{mine['PATH']}",
        "BINARY": str(binary()),
        "PORT": str(port),
        "SLIPWAY_ROOT_ACCESS_KEY": ACCESS_KEY,
        "SLIPWAY_ROOT_SECRET_KEY": SECRET_KEY,
        "AWS_PAGER": "",
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def run(script: list[str]) -> str:
        text = "".join(f"echo '@{number}'\n{command}" for number, command in enumerate(script))
        for named, here in places.items():
            text = text.replace(named, here)
        done = subprocess.run(
            ["bash", "-c", SHELL + text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        last = re.findall(r"^@(\d+)$", done.stdout, re.MULTILINE)
        where = script[int(last[-1])] if last else "the beginning"
        assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


pytestmark = needs_impersonation


def test_each_command_works_in_its_order(run):
    found = commands()
    assert len(found) > 30
    left_out = [command for command in found if command.startswith(OF_OTHER_SERVERS)]
    assert len(left_out) == len(OF_OTHER_SERVERS)
    told = run([command for command in found if command not in left_out])
    # Ann is shown to herself, by the policy of the page.
    assert re.search(r"^policies +AmazonS3ReadOnlyAccess, own$", told, re.MULTILINE), told
