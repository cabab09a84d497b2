"""Every S3 key has a place, and no two share one (docs/SEMANTICS.md)."""

import os
import random

import pytest

from support import expect
from support.checksums import content_md5
from support.xml import element

LONG = "n" * 300

# Keys that would meet on a file system if they were taken for paths, or that no file system takes.
ODD_KEYS = [
    "a",
    "a/",
    "a//",
    "a//b",
    "a/b",
    "a///b",
    "/a",
    "//a",
    "/",
    "//",
    "///",
    "a/./b",
    "./a",
    ".",
    "./",
    "a/.",
    "a/./",
    "x/../a/b",
    "..",
    "../",
    "../a",
    "a/..",
    "a/../",
    "../../../../etc/passwd",
    "...",
    ".hidden",
    ".hidden/a",
    ".slipway",
    ".slipway/",
    ".slipway/staging",
    ".slipway/staging/x",
    ".slipway/credentials.toml",
    "a/.slipway/b",
    ".slipway,",
    ".slipway,self",
    ".slipway,dir",
    ".slipway,empty",
    ".slipway,=a",
    "a/.slipway,self",
    ".slipwayx",
    LONG,
    f"{LONG}/",
    f"{LONG}/{LONG}",
    f"{LONG}//{LONG}",
    f"a/{LONG}/b",
    "é" * 150,
    "\U0001f600" * 100,
    "m" * 255,
    "m" * 256,
    "/".join(["d"] * 500),
    "k" * 1024,
    "/" * 1024,
    "é" * 512,
    "." * 1024,
    "with space",
    " leading",
    "trailing ",
    " ",
    "a/ /b",
    "plus+sign",
    "100%",
    "%41",
    "%2F",
    "%00",
    "a%2Fb",
    "?",
    "#",
    "a?b#c",
    "a&b=c",
    "<tag>",
    '"quoted"',
    "'single'",
    "back\\slash",
    "C:\\x",
    "a:b",
    "a;b",
    "a,b",
    "*",
    "~",
    "|",
    "`",
    "$HOME",
    "$(id)",
    "{a}",
    "[a]",
    "^",
    "tab\t",
    "line\nfeed",
    "return\r",
    "\x01\x02\x1f\x7f",
    "\x00",
    "a\x00b",
    "\x00/",
    "ünïcödé",
    "U\u0308",
    "Ü",
    "\u202eevil",
    "\ufeff",
    "\ufffd",
    "漢字/テスト",
    "\U0010ffff",
    "Ａ",
    "A",
    "ß",
    "ﬁ",
    "-",
    "-rf",
    "CON",
    "nul.txt",
    "~user",
    ".git/config",
    "e" * 200 + ".txt",
    "x.tmp",
    "lost+found",
]
# Where each level is a call to a server, or no file may be deeper than a path is long
# (tests/file_systems).
if os.environ.get("SLIPWAY_SHALLOW"):
    ODD_KEYS = [key for key in ODD_KEYS if key.count("/") < 100]


def body(key: str) -> bytes:
    return f"this is {key!r}".encode()


def is_directory_object(key: str) -> bool:
    return key.endswith("/")


@pytest.mark.parametrize("key", ODD_KEYS, ids=lambda key: ascii(key)[:40])
def test_alone(bucket, key):
    """Put, get, head, range, list with and without delimiter, copy, delete."""
    data = body(key)
    bucket.put(key, data, headers={"x-amz-meta-a": "1"})
    got = expect.ok(bucket.get(key))
    assert (got.body, got.headers["x-amz-meta-a"]) == (data, "1")
    assert bucket.head(key).headers["content-length"] == str(len(data))
    assert bucket.get(key, headers={"range": "bytes=1-3"}).body == data[1:4]
    assert bucket.keys() == [key]
    assert bucket.keys(prefix=key) == [key]
    assert bucket.keys(start_after=key) == []
    document = bucket.page(delimiter="/", encoding_type="url")
    assert len(document.all("Contents")) + len(document.all("CommonPrefixes")) == 1
    expect.ok(bucket.raw.put(bucket.path("copied"), headers={"x-amz-copy-source": bucket.path(key)}))
    assert bucket.read("copied") == data
    bucket.delete("copied")
    bucket.put(key, b"again")
    assert bucket.read(key) == b"again"
    expect.ok(bucket.delete(key), 204)
    expect.error(bucket.get(key), "NoSuchKey")
    assert bucket.is_untouched()
    assert {path.name for path in bucket.tree.iterdir()} <= {".slipway", ".slipway,records"}


@pytest.mark.parametrize("order", ["as listed", "reversed", "shuffled"])
def test_all_together(bucket, order):
    """None overwrites, hides or removes another, whatever the order in which they come and go."""
    keys = list(ODD_KEYS)
    if order == "reversed":
        keys.reverse()
    elif order == "shuffled":
        random.Random(5).shuffle(keys)
    for key in keys:
        bucket.put(key, body(key))
    assert bucket.keys() == sorted(keys, key=str.encode)
    for key in keys:
        assert bucket.read(key) == body(key), key
    left = list(keys)
    for number, key in enumerate(keys):
        expect.ok(bucket.delete(key), 204)
        left.remove(key)
        if number % 40 == 0:
            assert bucket.keys() == sorted(left, key=str.encode)
            for other in left:
                assert bucket.exists(other), (key, other)
    assert bucket.is_untouched()
    assert {path.name for path in bucket.tree.iterdir()} <= {".slipway", ".slipway,records"}


@pytest.mark.parametrize(
    "key", [k for k in ODD_KEYS if "\x00" not in k and len(k) < 300][::4], ids=lambda key: ascii(key)[:40]
)
def test_upload_in_parts(bucket, key):
    upload_id = bucket.create_upload(key)
    etag = expect.ok(bucket.put_part(key, upload_id, 1, body(key))).etag
    listed = bucket.raw.get(bucket.path(), query={"uploads": "", "encoding-type": "url"}).xml.all("Upload")
    assert len(listed) == 1
    expect.ok(bucket.complete(key, upload_id, [(1, etag)]))
    assert bucket.read(key) == body(key)
    assert bucket.keys() == [key]


@pytest.mark.parametrize(
    "one, other",
    [
        ("a", "a/b"),
        ("a", "a/"),
        ("a/", "a/b"),
        ("a", "a//"),
        ("a/b", "a//b"),
        ("a/b", "a/./b"),
        ("a/b", "x/../a/b"),
        ("a", "/a"),
        ("a", "./a"),
        ("A", "a"),
        ("Ü", "U\u0308"),
        ("a", "a "),
        ("a", "a."),
        (LONG, f"{LONG}/x"),
        (LONG, LONG[:255]),
        ("a\x00b", "a%00b"),
        (".slipway,=.slipway", ".slipway"),
        ("a/.slipway,self", "a"),
        ("a", "a\x00"),
        ("a/b/c", "a/b"),
    ],
)
def test_pairs(bucket, one, other):
    """Each of two keys survives the other's coming, changing and going."""
    for first, second in ((one, other), (other, one)):
        bucket.put(first, b"first", headers={"x-amz-meta-is": "first"})
        bucket.put(second, b"second")
        got = bucket.get(first)
        assert (got.body, got.headers["x-amz-meta-is"]) == (b"first", "first")
        assert bucket.read(second) == b"second"
        assert bucket.keys() == sorted([first, second], key=str.encode)
        bucket.put(first, b"new")
        assert bucket.read(second) == b"second"
        expect.ok(bucket.delete(second), 204)
        expect.error(bucket.get(second), "NoSuchKey")
        assert bucket.read(first) == b"new"
        assert bucket.keys() == [first]
        expect.ok(bucket.delete(first), 204)
        assert bucket.is_untouched()


class TestPlainKeys:
    """Nearly all keys are their own paths: that is what makes the tree useful to others."""

    @pytest.mark.parametrize(
        "key",
        [
            "a",
            "a/b/c.txt",
            ".hidden",
            ".a/..b",
            "with space",
            "ünï/漢字",
            "100%",
            "a\nb",
            "m" * 255,
            ".slipwayx/y",
            "-rf",
            "*",
        ],
    )
    def test_path(self, bucket, key):
        bucket.put(key, b"data")
        assert bucket.files() == [key]
        assert bucket.file(key).read_bytes() == b"data"

    def test_a_file_beside_its_own_directory(self, bucket):
        """`a/b` is where it belongs; only `a` has to move aside."""
        bucket.put("a", b"1")
        bucket.put("a/b", b"2")
        assert bucket.file("a/b").read_bytes() == b"2"
        bucket.delete("a/b")
        assert bucket.read("a") == b"1"


class TestDirectoryObjects:
    def test_a_directory_that_a_put_made(self, bucket):
        bucket.put("d/")
        assert bucket.file("d").is_dir()
        assert bucket.keys() == ["d/"]
        assert expect.ok(bucket.head("d/")).headers["content-length"] == "0"
        expect.error(bucket.get("d"), "NoSuchKey", Key="d")

    def test_with_metadata_and_data(self, bucket):
        bucket.put("d/", b"data in a directory", headers={"x-amz-meta-a": "1", "content-type": "text/x"})
        got = bucket.get("d/")
        assert (got.body, got.headers["x-amz-meta-a"], got.headers["content-type"]) == (
            b"data in a directory",
            "1",
            "text/x",
        )
        assert bucket.file("d").is_dir()

    def test_survives_its_contents(self, bucket):
        bucket.put("d/")
        bucket.put("d/e", b"x")
        bucket.delete("d/e")
        assert bucket.keys() == ["d/"]

    def test_contents_survive_it(self, bucket):
        bucket.put("d/")
        bucket.put("d/e", b"x")
        expect.ok(bucket.delete("d/"), 204)
        assert bucket.keys() == ["d/e"]
        bucket.delete("d/e")
        assert not bucket.file("d").exists()

    def test_many_at_once(self, bucket):
        for key in ("d/", "d/e/", "d/e/f"):
            bucket.put(key, b"x" if key[-1] != "/" else b"")
        entries = [element("Object", Key=key) for key in ("d/", "d/e/", "d/e/f")]
        document = element("Delete", *entries).encode()

        expect.ok(
            bucket.raw.post(
                bucket.path(), document, query={"delete": ""}, headers={"content-md5": content_md5(document)}
            )
        )
        assert bucket.is_untouched()
        assert not bucket.file("d").exists()
