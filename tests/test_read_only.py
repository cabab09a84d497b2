"""`serve --read-only`: reads as ever, writes refused before their bodies, and a tree that stays as it was."""

import re
import stat
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import content_md5
from support.data import MIB, PART, pattern
from support.server import KEYS, Server, StartFailed
from support.tools import LONG
from support.wire import poll

REFUSED = "The storage is read-only."


def snapshot(tree: Path) -> dict[str, tuple]:
    """All that is in a tree: the bytes of files, and what changes with any other change of them (ctime)."""
    found = {}
    for path in [tree, *sorted(tree.rglob("*"))]:
        info = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
        found[str(path.relative_to(tree))] = (
            *(info.st_mode, info.st_ino, info.st_nlink, info.st_size, info.st_mtime_ns, info.st_ctime_ns),
            content,
        )
    return found


@pytest.fixture
def upload(make_server, tmp_path) -> tuple[Path, str]:
    """A tree with all sorts of objects and an upload; and the upload's id."""
    tree = tmp_path / "tree"
    tree.mkdir()
    server = make_server(tree=tree)
    bucket = Bucket(server, "bucket").create()
    for key in ("small", "d/e/f", "d/e", "marker/", "odd//key", *(f"many/{n}" for n in range(50))):
        bucket.put(key, key.encode())
    bucket.put("large", pattern(3 * MIB))
    bucket.put("long", b"1", headers=LONG)
    bucket.file("foreign").write_bytes(b"by a program")
    upload_id = bucket.create_upload("parts")
    bucket.put_part("parts", upload_id, 1, pattern(PART))
    server.stop()
    return tree, upload_id


def last_sweep(server: Server) -> float:
    with urllib.request.urlopen(f"{server.operations}/metrics", timeout=20) as answer:
        found = re.search(
            r"^slipway_last_sweep_timestamp_seconds (.*)$", answer.read().decode(), re.MULTILINE
        )
    assert found
    return float(found[1])


def read_all(bucket: Bucket, upload_id: str) -> None:
    assert bucket.read("small") == b"small" and bucket.read("d/e") == b"d/e"
    assert bucket.read("foreign") == b"by a program"
    assert bucket.read("large") == pattern(3 * MIB)
    assert bucket.head("long").headers["x-amz-meta-1"] == "x" * 200
    assert (
        expect.ok(bucket.get("large", headers={"range": "bytes=1-70000"}), 206).body
        == pattern(3 * MIB)[1:70001]
    )
    assert len(bucket.keys(max_keys="7")) == 58
    assert bucket.page(delimiter="/").all("CommonPrefixes")
    expect.error(bucket.get("nothing"), "NoSuchKey")
    raw, path = bucket.raw, bucket.path
    expect.ok(raw.get(path("large"), query={"attributes": ""}, headers={"x-amz-object-attributes": "ETag"}))
    expect.ok(raw.get(path(), query={"uploads": ""}))
    assert expect.ok(raw.get(path("parts"), query={"uploadId": upload_id})).xml.all("Part")
    expect.ok(raw.get(path(), query={"versions": ""}))
    expect.ok(raw.get(path(), query={"location": ""}))
    expect.ok(raw.head(path()))
    expect.ok(raw.get("/"))


def write_all(bucket: Bucket, upload_id: str) -> None:
    raw, path = bucket.raw, bucket.path
    copy = {"x-amz-copy-source": "/bucket/small"}
    part = {"partNumber": "2", "uploadId": upload_id}
    for response in (
        raw.put("/another"),
        raw.delete(path()),
        raw.put(path("new"), b"x"),
        raw.put(path("small"), b"x"),
        raw.put(path("new"), headers=copy),
        bucket.delete("small"),
        bucket.delete("nothing"),
        bucket.delete_many("small", "d/e"),
        raw.post(path("new"), query={"uploads": ""}),
        raw.put(path("parts"), b"x", query=part),
        raw.put(path("parts"), query=part, headers=copy),
        bucket.complete("parts", upload_id, [(1, '"0"')]),
        bucket.abort("parts", upload_id),
    ):
        expect.error(response, "AccessDenied", REFUSED)
    expect.error(raw.put("/nowhere-at-all/key", b"x"), "NoSuchBucket")


def test_the_tree_stays_as_it_was(make_server, upload):
    tree, upload_id = upload
    before = snapshot(tree)
    server = make_server("--read-only", "--upload-age", "1", "--ops-listen", "127.0.0.1:0", tree=tree)
    bucket = Bucket(server, "bucket")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: (read_all(bucket, upload_id), write_all(bucket, upload_id)), range(8)))
    assert snapshot(tree) == before
    assert last_sweep(server) == 0
    assert server.stop() == 0
    assert snapshot(tree) == before
    assert "ERROR" not in server.log, server.log
    # One that may write sweeps at its start, and tries what the file system can do.
    other = make_server("--ops-listen", "127.0.0.1:0", tree=tree)
    poll(lambda: last_sweep(other) > 0, 20)
    assert snapshot(tree) != before


def test_no_body_is_asked_for(make_server, upload):
    bucket = Bucket(make_server("--read-only", tree=upload[0]), "bucket")
    headers = {"expect": "100-continue", "content-length": str(PART)}
    for method, key, query in (("PUT", "new", {}), ("POST", None, {"delete": ""})):
        if method == "POST":
            headers["content-md5"] = content_md5(b"")
        request = bucket.raw.prepare(
            method, bucket.path(key), query=query, payload="UNSIGNED-PAYLOAD", headers=headers
        )
        with bucket.raw.connect() as connection:
            connection.send(request.head)
            response = connection.response()
            expect.error(response, "AccessDenied", REFUSED)
            assert response.informational == []


def test_a_directory_that_was_never_served(make_server, tmp_path):
    """The account is for this run alone; keys are not made."""
    tree = tmp_path / "tree"
    (tree / "bucket" / "d").mkdir(parents=True)
    (tree / "bucket" / "d" / "key").write_text("1")
    before = snapshot(tree)
    with pytest.raises(StartFailed, match=re.compile("credentials.toml.*--credentials-file", re.DOTALL)):
        make_server("--read-only", tree=tree, env={})
    server = make_server("--read-only", tree=tree)
    bucket = Bucket(server, "bucket")
    assert bucket.read("d/key") == b"1" and bucket.keys() == ["d/key"]
    assert "each start generates another id" in server.log
    given = make_server("--read-only", "--account-id", "123456789012", tree=tree)
    assert Bucket(given, "bucket").keys() == ["d/key"]
    assert snapshot(tree) == before


def test_what_is_not_there_is_not_made(make_server, tmp_path):
    with pytest.raises(StartFailed, match="cannot be opened"):
        make_server("--read-only", tree=tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_the_tree_changes_under_it(make_server, upload):
    """A gateway that only reads shows what another one writes."""
    tree = upload[0]
    reader, writer = (
        Bucket(make_server(*options, tree=tree, env=KEYS), "bucket") for options in (("--read-only",), ())
    )
    assert reader.read("small") == b"small"
    writer.put("small", b"anew")
    writer.put("d/e/new", b"1")
    assert reader.read("small") == b"anew" and "d/e/new" in reader.keys(prefix="d/e/")
    expect.ok(writer.delete("d/e/new"), 204)
    expect.error(reader.get("d/e/new"), "NoSuchKey")


def test_what_would_write_is_not_taken_with_it(make_server, tmp_path):
    with pytest.raises(StartFailed, match="--rehash-on-read contradicts --read-only"):
        make_server("--read-only", "--rehash-on-read", tree=tmp_path)
    assert not list(tmp_path.glob(".slipway"))


def test_nothing_is_sent_to_a_storage_that_stores_nothing(make_server):
    bucket = Bucket(make_server("--read-only", tree="null:"), "bucket")
    assert len(bucket.read("any/1024")) == 1024
    expect.error(bucket.raw.put(bucket.path("any"), b"x"), "AccessDenied", REFUSED)
