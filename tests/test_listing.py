"""ListObjects and ListObjectsV2: parameters and the form of the answer. Contents: test_listing_model.py."""

import os
import re
from urllib.parse import quote

import pytest

from support import expect
from support.bucket import Bucket
from support.faultlayer import FaultLayer, is_supported
from support.xml import Element, parse

KEYS = ["a", "b/1", "b/2", "b/c/3", "d", "e/"]


@pytest.fixture
def listed(bucket):
    for key in KEYS:
        bucket.put(key, key.encode())
    return bucket


@pytest.fixture(params=["v1", "v2"])
def version(request) -> dict[str, str]:
    return {} if request.param == "v1" else {"list-type": "2"}


def page(bucket, query: dict[str, str]) -> Element:
    document = expect.ok(bucket.raw.get(bucket.path(), query=query)).xml
    assert document.name == "ListBucketResult"
    return document


def keys(document: Element) -> list[str]:
    return [entry["Key"] for entry in document.all("Contents")]


def encoded(key: str) -> str:
    """As `encoding-type=url` has it: Java's form encoding, but for slashes."""
    return quote(key, safe="/*").replace("%20", "+").replace("~", "%7E")


def prefixes(document: Element) -> list[str]:
    return [entry["Prefix"] for entry in document.all("CommonPrefixes")]


class TestForm:
    def test_entries(self, listed, version):
        document = page(listed, version)
        assert keys(document) == KEYS
        entry = document.all("Contents")[1]
        assert entry["Size"] == "3"
        assert entry["ETag"] == listed.head("b/1").etag
        assert entry["StorageClass"] == "STANDARD"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", entry["LastModified"])
        assert (entry["ChecksumAlgorithm"], entry["ChecksumType"]) == ("CRC64NVME", "FULL_OBJECT")

    def test_echo(self, listed, version):
        document = page(listed, {**version, "prefix": "b/", "delimiter": "/", "max-keys": "7"})
        assert (document["Name"], document["Prefix"], document["Delimiter"], document["MaxKeys"]) == (
            listed.name,
            "b/",
            "/",
            "7",
        )
        assert document["IsTruncated"] == "false"
        assert "EncodingType" not in document

    def test_v1_has_owners_and_marker(self, listed):
        document = page(listed, {"marker": "a"})
        assert document["Marker"] == "a"
        assert document.all("Contents")[0].child("Owner").names() == ["ID"]
        assert "KeyCount" not in document and "ContinuationToken" not in document

    def test_v2_has_owners_if_asked(self, listed):
        assert "Owner" not in page(listed, {"list-type": "2"}).all("Contents")[0]
        for value, shown in [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False)]:
            entry = page(listed, {"list-type": "2", "fetch-owner": value}).all("Contents")[0]
            assert ("Owner" in entry) == shown, value
            if shown:
                assert entry.child("Owner").names() == ["ID"]

    def test_v2_counts_keys_and_prefixes(self, listed):
        document = page(listed, {"list-type": "2", "delimiter": "/"})
        assert (keys(document), prefixes(document)) == (["a", "d"], ["b/", "e/"])
        assert document["KeyCount"] == "4"
        assert "Marker" not in document

    def test_v2_echoes_where_it_began(self, listed):
        document = page(listed, {"list-type": "2", "start-after": "a", "max-keys": "1"})
        assert document["StartAfter"] == "a"
        token = document["NextContinuationToken"]
        after = page(listed, {"list-type": "2", "continuation-token": token})
        assert after["ContinuationToken"] == token
        assert keys(after) == KEYS[2:]

    def test_v2_start_after_is_echoed_without_a_token_alone(self, listed):
        assert page(listed, {"list-type": "2", "start-after": ""})["StartAfter"] == ""
        assert "StartAfter" not in page(listed, {"list-type": "2"})
        token = page(listed, {"list-type": "2", "max-keys": "1"})["NextContinuationToken"]
        both = page(listed, {"list-type": "2", "continuation-token": token, "start-after": "z"})
        assert "StartAfter" not in both
        assert (both["ContinuationToken"], keys(both)) == (token, KEYS[1:])

    def test_v1_marker_in_a_common_prefix(self, listed):
        """The whole group is behind it; `start-after` is less strict."""
        document = page(listed, {"delimiter": "/", "marker": "b/1"})
        assert (keys(document), prefixes(document)) == (["d"], ["e/"])
        document = page(listed, {"delimiter": "/", "prefix": "b/", "marker": "b/c/0"})
        assert (keys(document), prefixes(document)) == ([], [])
        document = page(listed, {"list-type": "2", "delimiter": "/", "start-after": "b/1"})
        assert (keys(document), prefixes(document)) == (["d"], ["b/", "e/"])

    def test_v1_next_marker_only_with_a_delimiter(self, listed):
        assert "NextMarker" not in page(listed, {"max-keys": "2"})
        assert page(listed, {"max-keys": "2", "delimiter": "/"})["NextMarker"] == "b/"

    def test_empty(self, bucket, version):
        document = page(bucket, version)
        assert (keys(document), prefixes(document), document["IsTruncated"]) == ([], [], "false")

    @pytest.mark.usefixtures("no_bucket")
    def test_no_such_bucket(self, raw, version):
        expect.error(raw.get("/no-such-bucket", query=version), "NoSuchBucket", BucketName="no-such-bucket")

    def test_list_type_that_is_none(self, listed):
        assert "Marker" in page(listed, {"list-type": "1"})


class TestMaxKeys:
    @pytest.mark.parametrize(
        "value, shown",
        [("0", 0), ("1", 1), ("5", 5), ("6", 6), ("1000", 6), ("1001", 6), ("2147483647", 6), ("", 6)],
    )
    def test_values(self, listed, version, value, shown):
        document = page(listed, {**version, "max-keys": value})
        assert keys(document) == KEYS[:shown]
        assert document["MaxKeys"] == str(int(value or 1000)), "as it was sent, though a page has no more"
        assert document["IsTruncated"] == ("true" if 0 < shown < 6 else "false")

    @pytest.mark.parametrize("value", ["many", "1.5", "2147483648", "0x10", "+1"])
    def test_garbage(self, listed, version, value):
        response = listed.raw.get(listed.path(), query={**version, "max-keys": value})
        expect.error(
            response,
            "InvalidArgument",
            "Provided max-keys not an integer or within integer range",
            ArgumentName="max-keys",
            ArgumentValue=value,
        )

    def test_negative(self, listed, version):
        response = listed.raw.get(listed.path(), query={**version, "max-keys": "-1"})
        expect.error(
            response,
            "InvalidArgument",
            "Argument maxKeys must be an integer between 0 and 2147483647",
            ArgumentName="maxKeys",
            ArgumentValue="-1",
        )

    def test_a_page_has_a_thousand_at_most(self, bucket, version):
        for number in range(1003):
            bucket.file(f"k{number:04}").touch()
        document = page(bucket, {**version, "max-keys": "5000"})
        assert keys(document) == [f"k{number:04}" for number in range(1000)]
        assert document["IsTruncated"] == "true"
        assert document["MaxKeys"] == "5000"


class TestArgumentsOfTheOtherForm:
    """Refused, empty or not, before the bucket is looked for."""

    @pytest.mark.parametrize("value", ["x", ""])
    @pytest.mark.parametrize(
        "version, name, message",
        [
            (
                {},
                "continuation-token",
                "continuation-token only supported in REST.GET.BUCKET with list-type=2",
            ),
            ({}, "start-after", "startAfter only supported in REST.GET.BUCKET with list-type=2"),
            ({"list-type": "2"}, "marker", "Marker unsupported with REST.GET.BUCKET in list-type=2"),
        ],
    )
    @pytest.mark.usefixtures("no_bucket")
    def test_refused(self, raw, bucket, version, name, message, value):
        for path in (bucket.path(), "/no-such-bucket"):
            response = raw.get(path, query={**version, name: value, "max-keys": "-1"})
            expect.error(response, "InvalidArgument", message, ArgumentName=name, ArgumentValue=None)


class TestOrder:
    """What is refused before the bucket is looked for, and what after."""

    @pytest.mark.parametrize(
        "query",
        [{"max-keys": "-1"}, {"encoding-type": "x"}, {"list-type": "2", "continuation-token": "x"}],
        ids=["max-keys", "encoding-type", "continuation-token"],
    )
    @pytest.mark.usefixtures("no_bucket")
    def test_the_bucket_comes_first(self, raw, query):
        expect.error(raw.get("/no-such-bucket", query=query), "NoSuchBucket")
        if "list-type" not in query:
            response = raw.get("/no-such-bucket", query={**query, "versions": ""})
            expect.error(response, "NoSuchBucket")

    @pytest.mark.usefixtures("no_bucket")
    def test_a_number_comes_before_the_bucket(self, raw, version):
        response = raw.get("/no-such-bucket", query={**version, "max-keys": "x"})
        message = "Provided max-keys not an integer or within integer range"
        expect.error(response, "InvalidArgument", message, ArgumentName="max-keys")

    def test_encoding_then_token_then_number(self, listed):
        query = {"list-type": "2", "encoding-type": "x", "continuation-token": "x", "max-keys": "-1"}
        for name in ("encoding-type", "continuation-token", "maxKeys"):
            response = listed.raw.get(listed.path(), query=query)
            expect.error(response, "InvalidArgument", re.compile("."), ArgumentName=name)
            query.pop(name, None)


class TestEncoding:
    ODD = [
        "a b",
        "a+b",
        "a%b",
        "ünï",
        "a&b<c>",
        "q?x=1#y",
        "tab\there",
        "\x01\x1f",
        "new\nline",
        "\U0001f600/x",
    ]

    @pytest.fixture
    def odd(self, bucket):
        for key in self.ODD:
            bucket.put(key, b"x")
        return bucket

    def test_url(self, odd, version):
        document = page(odd, {**version, "encoding-type": "url"})
        assert document["EncodingType"] == "url"
        assert keys(document) == [encoded(key) for key in sorted(self.ODD, key=str.encode)]

    def test_url_is_echoed_as_it_was_sent(self, odd, version):
        document = page(odd, {**version, "encoding-type": "URL", "max-keys": "1"})
        assert (document["EncodingType"], keys(document)) == ("URL", ["%01%1F"])

    def test_url_encodes_what_is_echoed_too(self, odd, version):
        start = "start-after" if version else "marker"
        query = {"encoding-type": "url", "prefix": "a ", "delimiter": "b+~", start: "a b"}
        document = page(odd, {**version, **query})
        assert (document["Prefix"], document["Delimiter"]) == ("a+", "b%2B%7E")
        assert document["StartAfter" if version else "Marker"] == "a+b"

    def test_a_prefix_that_xml_cannot_hold(self, odd, version):
        document = page(odd, {**version, "encoding-type": "url", "prefix": "\x01"})
        assert document["Prefix"] == "%01"
        assert keys(document) == ["%01%1F"]

    def test_plain(self, bucket, version):
        for key in self.ODD:
            if "\x01" not in key:
                bucket.put(key, b"x")
        assert sorted(keys(page(bucket, version))) == sorted(key for key in self.ODD if "\x01" not in key)

    def test_plain_with_control_characters(self, odd, version):
        """XML 1.0 cannot hold them: a reference keeps the rest in one piece, as Amazon has it."""
        body = expect.ok(odd.raw.get(odd.path(), query=version)).body
        assert b"\x01" not in body
        assert b"&#x1;&#x1F;" in body or b"&#x1;&#x1f;" in body
        assert len(parse(body).all("Contents")) == len(self.ODD)

    @pytest.mark.parametrize("value", ["base64", ""])
    def test_unknown(self, listed, version, value):
        response = listed.raw.get(listed.path(), query={**version, "encoding-type": value})
        expect.error(
            response,
            "InvalidArgument",
            "Invalid Encoding Method specified in Request",
            ArgumentName="encoding-type",
            ArgumentValue=value,
        )


class TestTokens:
    @pytest.mark.parametrize("token", ["nonsense", "AAAA", "!!", "../../etc", ""])
    def test_that_were_never_given_out(self, listed, token):
        response = listed.raw.get(listed.path(), query={"list-type": "2", "continuation-token": token})
        expect.error(
            response,
            "InvalidArgument",
            "The continuation token provided is incorrect",
            ArgumentName="continuation-token",
            ArgumentValue=None,
        )

    def test_are_opaque(self, listed):
        token = page(listed, {"list-type": "2", "max-keys": "1"})["NextContinuationToken"]
        assert token != "a"

    def test_survive_changes(self, listed):
        """What was on the last page may be gone, and more may have come."""
        token = page(listed, {"list-type": "2", "max-keys": "2"})["NextContinuationToken"]
        listed.delete("b/1")
        listed.put("b/11", b"x")
        listed.put("a0", b"x")
        assert keys(page(listed, {"list-type": "2", "continuation-token": token})) == ["b/11", *KEYS[2:]]

    def test_go_with_start_after(self, listed):
        """The token wins."""
        token = page(listed, {"list-type": "2", "max-keys": "1"})["NextContinuationToken"]
        document = page(listed, {"list-type": "2", "continuation-token": token, "start-after": "d"})
        assert keys(document) == KEYS[1:]


def test_optional_attributes(listed, version):
    ok = listed.raw.get(
        listed.path(), query=version, headers={"x-amz-optional-object-attributes": "RestoreStatus"}
    )
    assert keys(expect.ok(ok).xml) == KEYS
    bad = listed.raw.get(listed.path(), query=version, headers={"x-amz-optional-object-attributes": "Colour"})
    expect.error(
        bad,
        "InvalidArgument",
        "Invalid attribute name specified.",
        ArgumentName="x-amz-optional-object-attributes",
        ArgumentValue="Colour",
    )


def test_a_write_is_listed_at_once(bucket):
    """After each of many writes and deletes, by us and by others, in one directory and below."""
    expected: set[str] = set()
    for number in range(60):
        key = f"{'d/' * (number % 3)}k{number % 20}"
        if key in expected:
            bucket.delete(key)
            expected.remove(key)
        elif number % 2:
            bucket.file(key).parent.mkdir(parents=True, exist_ok=True)
            bucket.file(key).write_text("x")
            expected.add(key)
        else:
            bucket.put(key, b"x")
            expected.add(key)
        assert set(keys(bucket.page())) == expected


class TestVersions:
    """ListObjectVersions, where every object is its own and only version."""

    def page(self, bucket, **query: str) -> Element:
        names = {name.replace("_", "-"): value for name, value in query.items()}
        return expect.ok(bucket.raw.get(bucket.path(), query={"versions": "", **names})).xml

    def test_entries(self, listed):
        document = self.page(listed)
        assert document.name == "ListVersionsResult"
        assert [entry["Key"] for entry in document.all("Version")] == KEYS
        entry = document.all("Version")[0]
        assert (entry["VersionId"], entry["IsLatest"]) == ("null", "true")
        assert entry.child("Owner").names() == ["ID"]
        assert entry["LastModified"].endswith(".000Z")
        assert (document["KeyMarker"], document["VersionIdMarker"], document["MaxKeys"]) == ("", "", "1000")
        assert "Delimiter" not in document and "EncodingType" not in document

    def test_pages(self, listed):
        """A page that ends with a common prefix has no version to go on with."""
        seen, query = [], {"delimiter": "/", "max_keys": "1"}
        for _ in range(10):
            document = self.page(listed, **query)
            if document["IsTruncated"] == "false":
                assert "NextKeyMarker" not in document and "NextVersionIdMarker" not in document
                break
            seen.append((document["NextKeyMarker"], document.get("NextVersionIdMarker")))
            query["key_marker"] = document["NextKeyMarker"]
        assert seen == [("a", "null"), ("b/", None), ("d", "null")]

    def test_markers(self, listed):
        document = self.page(listed, key_marker="b/1", version_id_marker="null")
        assert (document["KeyMarker"], document["VersionIdMarker"]) == ("b/1", "null")
        assert [entry["Key"] for entry in document.all("Version")] == KEYS[2:]
        document = self.page(listed, key_marker="", version_id_marker="null")
        assert document.all("Version") == [] and document["IsTruncated"] == "false"

    def test_echo(self, listed):
        document = self.page(listed, delimiter="", max_keys="5000", encoding_type="URL", prefix="b/")
        assert (document["Delimiter"], document["MaxKeys"], document["EncodingType"]) == ("", "5000", "URL")
        assert [entry["Key"] for entry in document.all("Version")] == KEYS[1:4]

    @pytest.mark.parametrize(
        "query, message, value",
        [
            (
                {"version-id-marker": "null"},
                "A version-id marker cannot be specified without a key marker.",
                "null",
            ),
            ({"version-id-marker": ""}, "A version-id marker cannot be specified without a key marker.", ""),
            ({"version-id-marker": "", "key-marker": "a"}, "A version-id marker cannot be empty.", ""),
            ({"version-id-marker": "NULL", "key-marker": "a"}, "Invalid version id specified", "NULL"),
        ],
    )
    def test_bad_versions(self, listed, query, message, value):
        response = listed.raw.get(listed.path(), query={"versions": "", **query})
        expect.error(
            response, "InvalidArgument", message, ArgumentName="version-id-marker", ArgumentValue=value
        )

    def test_bad_numbers(self, listed):
        response = listed.raw.get(listed.path(), query={"versions": "", "max-keys": "-1"})
        message = "max-keys cannot be negative"
        expect.error(response, "InvalidArgument", message, ArgumentName="max-keys", ArgumentValue=None)
        response = listed.raw.get(listed.path(), query={"versions": "", "max-keys": "x"})
        message = "Provided max-keys not an integer or within integer range"
        expect.error(response, "InvalidArgument", message, ArgumentName="max-keys", ArgumentValue="x")


@pytest.mark.skipif(not is_supported(), reason="the fault layer knows this processor's system calls only")
def test_a_rename_while_a_directory_is_searched_hides_no_prefix(make_server):
    """The object leaves the part of the directory that is still to be read for the part that was read."""
    layer = FaultLayer()
    bucket = Bucket(make_server(faults=layer), "bucket").create()
    searched = bucket.file("searched")
    searched.mkdir()
    # No objects, but more names than one call reads.
    for number in range(1500):
        os.mkfifo(searched / f"{number:0200}")
    first, *_, last = os.listdir(searched)
    file = bucket.file("file")
    file.write_bytes(b"data")
    file.replace(searched / last)
    if os.listdir(searched)[-1] != last:
        pytest.skip("this file system gives another place to a name that is replaced")

    def rename():
        (searched / last).replace(searched / first)

    layer.arm(rename, 2, reads=True, only={"getdents64"}, about="searched")
    document = page(bucket, {"delimiter": "/"})
    assert layer.disarm(), "one call has read all of the directory"
    assert prefixes(document) == ["searched/"]
    assert bucket.keys() == [f"searched/{first}"]
