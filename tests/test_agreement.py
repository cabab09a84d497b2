"""Gateways of one tree that were started with different options are told so."""

import os
import re

import pytest

from support import expect
from support.bucket import Bucket
from support.registry import MASTER_KEY, Registry
from support.server import StartFailed
from support.tools import run


def noted(tree):
    return tree / ".slipway" / "tree.toml"


def test_the_first_start_notes_what_it_was_started_with(make_server, tmp_path):
    tree = tmp_path / "tree"
    make_server("--region", "lab-1", "--durability", "none", tree=tree).stop()
    text = noted(tree).read_text()
    assert (
        'region = "lab-1"\ndurability = "none"\netag = "md5"\ndefault-public-access-block = "on"\nidentities = "tree"\nmetadata = "'
        in text
    )
    again = make_server("--region", "lab-1", "--durability", "none", tree=tree)
    assert "must use the same value" not in again.log
    assert noted(tree).read_text() == text


@pytest.mark.parametrize(
    "options, says",
    [
        (("--region", "lab-2"), "--region lab-2: the directory was first served with us-east-1"),
        (("--durability", "none"), "--durability none: the directory was first served with full"),
        (("--etag", "checksum"), "--etag checksum: the directory was first served with md5"),
        (
            ("--default-public-access-block", "off"),
            "--default-public-access-block off: the directory was first served with on",
        ),
    ],
)
def test_another_is_told(make_server, tmp_path, options, says):
    tree = tmp_path / "tree"
    make_server(tree=tree)
    # While the first one serves.
    log = make_server(*options, tree=tree).log
    assert says in log and str(noted(tree)) in log
    assert log.count("must use the same value") == 1
    text = noted(tree).read_text()
    noted(tree).write_text(
        "\n".join(line for line in text.splitlines() if not line.startswith(options[0][2:]))
    )
    assert "must use the same value" not in make_server(*options, tree=tree).log


def test_another_store_of_identities_is_told(make_server, tmp_path):
    """Who is deleted in one would live on in the other. The store itself is asked only after that."""
    tree, file = tmp_path / "tree", tmp_path / "store.toml"
    file.write_text('access_key = "nobody"\nsecret_key = "secret/of+nobody=0123456789"\n')
    file.chmod(0o600)
    credentials = ("--identities-credentials-file", str(file))
    make_server(tree=tree)
    with pytest.raises(StartFailed) as failed:
        make_server("--identities", "s3:http://127.0.0.1:1/ids", *credentials, tree=tree)
    said = "--identities s3:http://127.0.0.1:1/ids/: the directory was first served with tree"
    assert said in str(failed.value) and str(noted(tree)) in str(failed.value)
    text = noted(tree).read_text()
    noted(tree).write_text(text.replace('identities = "tree"', 'identities = "vault:https://bao.lab/kv/ids"'))
    log = make_server(tree=tree).log
    assert "(no --identities): the directory was first served with vault:https://bao.lab/kv/ids" in log
    # As of a directory that an earlier version has served.
    noted(tree).write_text(text.replace('identities = "tree"\n', ""))
    assert "must use the same value" not in make_server(tree=tree).log


def test_a_start_that_fails_notes_nothing(make_server, tmp_path):
    """A mistyped store would be the one that all later starts are told to use."""
    tree, file = tmp_path / "tree", tmp_path / "store.toml"
    file.write_text('access_key = "nobody"\nsecret_key = "secret/of+nobody=0123456789"\n')
    file.chmod(0o600)
    store = ("--identities", "s3:http://127.0.0.1:1/ids", "--identities-credentials-file", str(file))
    with pytest.raises(StartFailed, match=r"127\.0\.0\.1:1"):
        make_server("--region", "lab-1", *store, tree=tree)
    assert not noted(tree).exists()
    log = make_server(tree=tree).log
    assert "must use the same value" not in log
    assert (
        'region = "us-east-1"' in noted(tree).read_text() and 'identities = "tree"' in noted(tree).read_text()
    )


def test_tools_do_not_look_into_another_store(make_server, tmp_path):
    """Those that are not told of the store would find no users, or the wrong ones, in the directory."""
    tree, key = tmp_path / "tree", tmp_path / "master.key"
    make_server(tree=tree).stop()
    key.touch(0o600)
    key.write_text(MASTER_KEY + "\n")
    text = noted(tree).read_text()
    noted(tree).write_text(text.replace('identities = "tree"', 'identities = "vault:https://bao.lab/kv/ids"'))
    before = contents(tree)
    explain = ["policy", "explain", "s3:GetObject", "arn:aws:s3:::lab/x", "--tree", tree]
    for command in (
        ["master-key", "rotate", tree, "--master-key-file", key],
        ["master-key", "rotate", tree, "--master-key-file", key, "--yes"],
        ["master-key", "forget", tree, "--master-key-file", key, "--yes"],
        [*explain, "--principal", "anonymous"],
        [*explain, "--user", "ann"],
    ):
        says = run(*command, status=2)
        assert "with --identities vault:https://bao.lab/kv/ids" in says and str(noted(tree)) in says, says
        assert contents(tree) == before
    noted(tree).write_text(text)
    # It looks into the directory then, which has no users.
    says = run("master-key", "rotate", tree, "--master-key-file", key, status=2)
    assert "there are no users and no access keys in" in says and "vault:" not in says
    server = make_server("--master-key-file", str(key), tree=tree)
    with Registry(tree, server.account) as registry:
        registry.user("ann")
    says = run("master-key", "rotate", tree, "--master-key-file", key, status=1)
    assert "--identities" not in says


@pytest.mark.parametrize("first, other", [("xattr", "sidecar"), ("sidecar", "xattr")])
def test_records_elsewhere_are_refused(make_server, tmp_path, first, other):
    """Those that are there would not be seen: their objects would be a person's files, without metadata."""
    tree = tmp_path / "tree"
    bucket = Bucket(make_server("--metadata", first, tree=tree), "bucket").create()
    # Below a prefix, where a look at each bucket's first names does not come.
    expect.ok(bucket.put("runs/key", b"data", headers={"x-amz-meta-who": "a"}))
    with pytest.raises(StartFailed, match=f"served with (--metadata )?{first}"):
        make_server("--metadata", other, tree=tree)
    bucket.server.stop()
    with pytest.raises(StartFailed, match=f"served with (--metadata )?{first}"):
        make_server("--metadata", other, tree=tree)
    again = Bucket(make_server("--metadata", first, tree=tree), "bucket")
    assert again.head("runs/key").headers["x-amz-meta-who"] == "a"


def test_a_newer_format_is_not_served(make_server, tmp_path):
    tree = tmp_path / "tree"
    make_server(tree=tree).stop()
    text = noted(tree).read_text()
    noted(tree).write_text(text.replace("format = 1", "format = 3\nwhat-is-new = true"))
    with pytest.raises(StartFailed, match="has format 3, but this version of slipway knows only 1 and 2"):
        make_server(tree=tree)
    noted(tree).write_text(text + "what-is-new = true\n")
    make_server(tree=tree)


NEWER = r"has format 99, but this version of slipway knows only 1 and 2"
UNKNOWN = r'\.slipway/format: the directory uses the feature "time-travel", which this version of slipway does not know'


def of_newer_format(tree):
    """A tree with a foreign file, as a newer slipway may have left it; all that is in it."""
    (tree / "bucket").mkdir(parents=True)
    (tree / "bucket" / "foreign").write_text("1")
    noted(tree).parent.mkdir(mode=0o700, exist_ok=True)
    noted(tree).write_text("format = 99\n")
    return contents(tree)


def contents(tree):
    paths = [tree, *tree.rglob("*")]
    return {
        str(path): (path.stat().st_mtime_ns, path.is_file() and path.read_bytes(), os.listxattr(path))
        for path in paths
    }


@pytest.mark.parametrize(
    "command",
    [
        ["sweep", "--age", "0"],
        ["fsck", "--min-age", "0"],
        ["fsck", "--min-age", "0", "--repair"],
        ["rehash"],
        ["import", "versitygw"],
        ["import", "minio-fs"],
    ],
)
def test_nor_touched_by_a_tool(tmp_path, command):
    tree = tmp_path / "tree"
    before = of_newer_format(tree)
    places = [tree / "bucket", "--tree", tree] if command == ["rehash"] else [tree]
    assert NEWER in run(*command, *places, status=2)
    assert contents(tree) == before


def of_features(tree, *features):
    """A tree as it is upgraded for features, with a bucket; all that is in it."""
    (tree / "bucket").mkdir(parents=True, exist_ok=True)
    noted(tree).parent.mkdir(mode=0o700, exist_ok=True)
    noted(tree).write_text("format = 2\n")
    (tree / ".slipway/metadata").write_text("xattr format-2\n")
    (tree / ".slipway/format").write_text("".join(f"{feature}\n" for feature in features))
    return contents(tree)


def test_a_feature_that_is_not_known_is_named(make_server, tmp_path):
    tree = tmp_path / "tree"
    before = of_features(tree, "time-travel")
    with pytest.raises(StartFailed, match=UNKNOWN):
        make_server(tree=tree)
    assert re.search(UNKNOWN, run("sweep", "--age", "0", tree, status=2))
    assert re.search(UNKNOWN, run("fsck", "--min-age", "0", "--repair", tree, status=2))
    assert contents(tree) == before
    # Whatever else tells of the format.
    noted(tree).unlink()
    with pytest.raises(StartFailed, match=UNKNOWN):
        make_server(tree=tree)
    assert not noted(tree).exists()


def test_a_tree_of_format_2_is_served_and_stays_one(make_server, tmp_path):
    tree = tmp_path / "tree"
    of_features(tree)
    bucket = Bucket(make_server("--metadata", "xattr", tree=tree), "bucket")
    bucket.put("key", b"1")
    assert bucket.read("key") == b"1"
    bucket.server.stop()
    # With the options of the first start.
    text = noted(tree).read_text()
    assert "\nformat = 2\nregion = " in text
    make_server("--metadata", "xattr", tree=tree).stop()
    assert noted(tree).read_text() == text
    assert (tree / ".slipway/metadata").read_text() == "xattr format-2\n"
    # Without one of both files the other does not count.
    (tree / ".slipway/format").unlink()
    with pytest.raises(
        StartFailed, match=r"format: \.slipway/tree\.toml has format = 2, but \.slipway/format"
    ):
        make_server(tree=tree)
    of_features(tree)
    noted(tree).unlink()
    names = r"\.slipway/format names features, but \.slipway/tree\.toml is missing"
    for text in (None, "format = 1\n"):
        if text:
            noted(tree).write_text(text)
        with pytest.raises(StartFailed, match=names):
            make_server(tree=tree)
    # As each sentence says, from one that cannot be read to one that is served.
    noted(tree).write_text("no toml\n")
    with pytest.raises(StartFailed, match="format exists, write a new file with the line `format = 2`"):
        make_server(tree=tree)
    noted(tree).write_text("format = 2\n")
    make_server("--metadata", "xattr", tree=tree)


@pytest.mark.parametrize("options", [(), ("--metadata", "sidecar")])
def test_nor_written_to_by_a_start(make_server, tmp_path, options):
    tree = tmp_path / "tree"
    before = of_newer_format(tree)
    with pytest.raises(StartFailed, match=NEWER):
        make_server(*options, tree=tree)
    assert contents(tree) == before


@pytest.mark.parametrize("text", ["", "format = 'one'\n", "no toml\n", "format = 1\n#" + 65536 * "x"])
def test_what_is_no_note(make_server, tmp_path, text):
    tree = tmp_path / "tree"
    make_server(tree=tree).stop()
    noted(tree).write_text(text)
    with pytest.raises(StartFailed, match=r"tree\.toml: expected format = 1 or 2"):
        make_server(tree=tree)


def test_others_may_read_it(make_server, tmp_path):
    tree = tmp_path / "tree"
    make_server(tree=tree)
    assert noted(tree).stat().st_mode & 0o777 == 0o644


def test_what_is_noted_begins_no_line_of_the_log(make_server, tmp_path):
    tree = tmp_path / "tree"
    make_server(tree=tree).stop()
    noted(tree).write_text('format = 1\nregion = "x\\nERROR forged"\n')
    log = make_server(tree=tree).log
    assert "ERROR forged" in log and not any(line.startswith("ERROR") for line in log.splitlines()), log


def test_a_feature_that_a_crash_kept_from_its_name_counts(make_server, tmp_path):
    tree = tmp_path / "tree"
    of_features(tree, "bucket-documents")
    named, pending = tree / ".slipway/format", tree / ".slipway/format.pending"
    for before, after in [(named, named), (named, pending)]:
        before.rename(after)
        bucket = Bucket(make_server("--metadata", "xattr", tree=tree), "bucket")
        bucket.put("key", b"1")
        bucket.server.stop()
    assert pending.read_text() == "bucket-documents\n"
    pending.write_text("time-travel\n")
    with pytest.raises(StartFailed, match=UNKNOWN.replace("format:", "format.pending:")):
        make_server(tree=tree)
    pending.unlink()
    with pytest.raises(StartFailed, match=r"tree\.toml has format = 2, but \.slipway/format, which names"):
        make_server(tree=tree)
