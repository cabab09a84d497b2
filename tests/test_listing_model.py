"""Listings of a random tree, page by page, compared with a model."""

import random
from urllib.parse import unquote_plus

import pytest

from support import expect
from support.bucket import Bucket, unique_bucket_name
from support.model import Page, list_page
from support.server import remove_tree

# Few different letters, so that prefixes collide; a character below '/' and two above, and one of
# two bytes.
ALPHABET = ["a", "b", "ab", "-", "0", "/", "/", "é", " ", "//"]
PREFIXES = ["", "a", "a/", "b/", "a/b", "é", "/", "zzz", "ab", "a//"]
DELIMITERS = ["", "/", "b", "//", "/a", "é"]


def random_keys(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    keys: set[str] = set()
    while len(keys) < count:
        key = "".join(chance.choice(ALPHABET) for _ in range(chance.randrange(1, 7)))
        keys.add(key)
    return sorted(keys, key=str.encode)


@pytest.fixture(scope="module")
def tree(server):
    """A bucket with 60 random keys, some of them directory objects. Tests only read it."""

    bucket = Bucket(server, unique_bucket_name("listing model")).create()
    keys = random_keys(1, 60)
    for key in keys:
        bucket.put(key, b"x" if not key.endswith("/") else b"")
    yield bucket, keys
    remove_tree(bucket.tree)


def read_page(document) -> Page:
    keys = [unquote_plus(entry["Key"]) for entry in document.all("Contents")]
    prefixes = [unquote_plus(entry["Prefix"]) for entry in document.all("CommonPrefixes")]
    return Page(keys, prefixes, document["IsTruncated"] == "true", "")


def compare(got: Page, expected: Page, context: object) -> None:
    assert got.keys == expected.keys, context
    assert got.prefixes == expected.prefixes, context
    assert got.truncated == expected.truncated, context


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_v2_every_page_size(tree, prefix, delimiter):
    bucket, keys = tree
    total = len(list_page(keys, prefix, delimiter, "", 10_000).keys) + 2
    for size in range(1, total + 1):
        after, query = (
            "",
            {"encoding_type": "url", "max_keys": str(size), "prefix": prefix, "delimiter": delimiter},
        )
        for _ in range(100):
            document = bucket.page(**query)
            expected = list_page(keys, prefix, delimiter, after, size)
            compare(read_page(document), expected, (prefix, delimiter, size, after))
            assert int(document["KeyCount"]) == len(expected.keys) + len(expected.prefixes)
            if not expected.truncated:
                assert "NextContinuationToken" not in document
                break
            after, query["continuation_token"] = expected.last, document["NextContinuationToken"]
        else:
            pytest.fail("the listing does not end")


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_v1_by_markers(tree, prefix, delimiter):
    bucket, keys = tree
    for size in (1, 2, 3, 7, 50):
        after = ""
        for _ in range(100):
            query = {
                "encoding-type": "url",
                "max-keys": str(size),
                "prefix": prefix,
                "delimiter": delimiter,
                "marker": after,
            }
            document = expect.ok(bucket.raw.get(bucket.path(), query=query)).xml
            expected = list_page(keys, prefix, delimiter, after, size)
            compare(read_page(document), expected, (prefix, delimiter, size, after))
            if not expected.truncated:
                break
            after = expected.last
            if delimiter:
                assert unquote_plus(document["NextMarker"]) == after
        else:
            pytest.fail("the listing does not end")


def test_start_after_anything(tree):
    """Keys that exist and such that don't, before, amid and after the prefix."""
    bucket, keys = tree
    chance = random.Random(3)
    starts = [
        *chance.sample(keys, 15),
        *random_keys(2, 25),
        "\x01",
        "\U0010ffff",
        "a/",
        "a//",
        "b/\U0010ffff",
    ]
    for start in starts:
        for prefix, delimiter in [("", ""), ("", "/"), ("a", "/"), ("a/", "/"), ("b", "é")]:
            document = bucket.page(encoding_type="url", start_after=start, prefix=prefix, delimiter=delimiter)
            expected = list_page(keys, prefix, delimiter, start, 1000)
            compare(read_page(document), expected, (start, prefix, delimiter))


@pytest.mark.parametrize("versions", [False, True])
def test_markers_anywhere(tree, versions):
    """A marker in a common prefix is past all of it."""
    bucket, keys = tree
    chance = random.Random(4)
    for marker in [*chance.sample(keys, 15), *random_keys(5, 25), "a/", "b/\U0010ffff"]:
        for prefix, delimiter in [("", ""), ("", "/"), ("a", "/"), ("a/", "/"), ("b", "é"), ("", "//")]:
            shown = {"encoding-type": "url", "prefix": prefix, "delimiter": delimiter}
            shown |= {"versions": "", "key-marker": marker} if versions else {"marker": marker}
            document = expect.ok(bucket.raw.get(bucket.path(), query=shown)).xml
            found = [unquote_plus(e["Key"]) for e in document.all("Version" if versions else "Contents")]
            cut = marker.find(delimiter, len(prefix)) if delimiter and marker.startswith(prefix) else -1
            after = marker if cut < 0 else marker[: cut + len(delimiter)]
            expected = list_page(keys, prefix, delimiter, after, 1000)
            assert found == expected.keys, (marker, prefix, delimiter)
            groups = [unquote_plus(e["Prefix"]) for e in document.all("CommonPrefixes")]
            assert groups == expected.prefixes, (marker, prefix, delimiter)


def test_common_prefixes_need_an_object(bucket):
    """A directory without files is no prefix, nor is one of files that are no objects."""
    (bucket.tree / "empty" / "deeper").mkdir(parents=True)
    bucket.put("full/er/key", b"x")
    document = bucket.page(delimiter="/")
    assert [entry["Prefix"] for entry in document.all("CommonPrefixes")] == ["full/"]
    assert document["KeyCount"] == "1"
    assert bucket.keys() == ["full/er/key"]


def test_pages_over_many_empty_directories(bucket):
    for number in range(300):
        (bucket.tree / f"d{number:03}" / "empty").mkdir(parents=True)
    bucket.put("d150/key", b"x")
    bucket.put("zz", b"x")
    document = bucket.page(delimiter="/", max_keys="1")
    assert [entry["Prefix"] for entry in document.all("CommonPrefixes")] == ["d150/"]
    assert document["IsTruncated"] == "true"


def test_truncation_looks_no_further_than_it_must_nor_less(bucket):
    """IsTruncated is false when nothing but empty directories follow."""
    bucket.put("a", b"x")
    (bucket.tree / "b" / "c").mkdir(parents=True)
    document = bucket.page(max_keys="1")
    assert [entry["Key"] for entry in document.all("Contents")] == ["a"]
    assert document["IsTruncated"] == "false"


def test_a_large_flat_directory(bucket):
    """5,000 files: paged whole, in order, none missing or twice."""
    for number in range(5000):
        bucket.file(f"f{(number * 7919) % 5000:05}").touch()
    assert bucket.keys() == [f"f{number:05}" for number in range(5000)]


def test_changes_between_pages(bucket):
    """What is there from the first to the last page is listed once, whatever comes and goes beside it."""
    stable = [f"s{number:03}" for number in range(50)]
    for key in stable:
        bucket.put(key, b"x")
    seen, query = [], {"max_keys": "3"}
    for number in range(200):
        document = bucket.page(**query)
        seen += [entry["Key"] for entry in document.all("Contents")]
        if document["IsTruncated"] == "false":
            break
        query["continuation_token"] = document["NextContinuationToken"]
        bucket.put(f"s{number:03}-new", b"x")
        bucket.delete(f"s{max(number - 3, 0):03}-new")
    assert [key for key in seen if key in stable] == stable
