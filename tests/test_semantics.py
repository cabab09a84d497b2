"""docs/SEMANTICS.md: each section's examples are run, and must print what the page says."""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from support import expect
from support.bucket import Bucket
from support.clients import environment
from support.marks import needs_attributes
from support.server import KEYS, RECORDS, REPOSITORY, binary
from support.tools import findings

PAGE = (REPOSITORY / "docs" / "SEMANTICS.md").read_text()
MARK = "=== end of a command ==="


@dataclass
class Example:
    command: str
    output: list[str]


def sections() -> dict[str, list[Example]]:
    found: dict[str, list[Example]] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        examples: list[Example] = []
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                if line.startswith("$ "):
                    examples.append(Example(line[2:], []))
                else:
                    examples[-1].output.append(line)
        found[title] = examples
    return found


SECTIONS = {title: examples for title, examples in sections().items() if examples}
# What a section says of its server, where that is not the ordinary one.
SERVERS = {
    "Owners and modes": {
        "options": ["--chown", "--metadata", "xattr"],
        "env": {**KEYS, "SLIPWAY_ROOT_UID": "1000", "SLIPWAY_ROOT_GID": "100"},
    },
    "Records beside files": {"options": ["--metadata", "sidecar"], "env": None},
}
DEFINITION = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1]


def with_slipway(env: dict[str, str]) -> dict[str, str]:
    return {**env, "PATH": f"{binary().parent}:{env.get('PATH', os.defpath)}"}


def pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))


def test_the_page_was_read():
    assert SERVERS.keys() <= SECTIONS.keys()
    assert len(SECTIONS) >= 6
    assert sum(map(len, SECTIONS.values())) > 30


@pytest.mark.parametrize("title", SECTIONS)
def test_examples(title, make_server, tmp_path):
    special = SERVERS.get(title, {"options": ["--metadata", "xattr"], "env": None})
    if special["env"] and os.geteuid() != 0:
        pytest.skip("only root may give files away")
    server = make_server(*special["options"], tree=tmp_path / "data", env=special["env"])
    expect.ok(server.raw.put("/lab"))
    # One shell for all: examples go on where the one before has left off.
    script = [DEFINITION, "exec 2>&1", "umask 022"]
    for example in SECTIONS[title]:
        script += [example.command, f"echo; echo '{MARK}'"]
    done = subprocess.run(
        ["bash"],
        input="\n".join(script),
        cwd=tmp_path,
        env=with_slipway(environment(server, tmp_path)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    outputs = done.stdout.split(f"{MARK}\n")
    assert len(outputs) == len(SECTIONS[title]) + 1, done.stdout
    for example, output in zip(SECTIONS[title], outputs[:-1], strict=True):
        lines = [line for line in output.split("\n") if line.strip()]
        matches = len(lines) == len(example.output) and all(
            re.fullmatch(pattern(expected), line)
            for expected, line in zip(example.output, lines, strict=True)
        )
        assert matches, f"$ {example.command}\nprinted:\n{output}\nexpected:\n" + "\n".join(example.output)


@pytest.mark.parametrize("metadata", [pytest.param("xattr", marks=needs_attributes), "sidecar"])
def test_a_file_that_became_one_is_given_back_by_hand(make_server, metadata):
    """Also an object of S3's, with records in files too: it keeps its ETag and metadata."""
    bucket = Bucket(make_server("--metadata", metadata), "lab").create()
    bucket.put("report", b"data", headers={"x-amz-meta-colour": "blue"})
    bucket.put("report/part", b"part")
    expect.ok(bucket.delete("report/part"), 204)
    place = bucket.file("report")
    assert set(os.listdir(place)) - {RECORDS} == {".slipway,self"}
    (place / ".slipway,self").rename(bucket.tree / "report.file")
    if metadata == "sidecar":
        (place / RECORDS / ".slipway,self").rename(bucket.tree / RECORDS / "report")
        shutil.rmtree(place / RECORDS)
    place.rmdir()
    (bucket.tree / "report.file").rename(place)
    got = expect.ok(bucket.get("report"))
    assert (got.body, got.etag) == (b"data", f'"{hashlib.md5(b"data").hexdigest()}"')
    assert got.headers["x-amz-meta-colour"] == "blue"
    assert bucket.keys() == ["report"] and place.read_bytes() == b"data"
    assert findings(bucket.server.tree) == []
