"""If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since on GET, HEAD and the source of copies; If-Range."""

from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

import pytest

from support import expect

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
OK, NOT_MODIFIED = 200, 304

# The values are made when the object is there: R is its ETag, T its time.
# Reads ignore what is no date.
NO_DATES = [
    {"if-modified-since": "yesterday"},
    {"if-modified-since": "2032-01-01T00:00:00Z"},
    {"if-unmodified-since": "0"},
    {"if-unmodified-since": ""},
]
CASES = [
    # If-Match
    ({"if-match": "R"}, OK),
    ({"if-match": "R unquoted"}, OK),
    ({"if-match": "*"}, OK),
    ({"if-match": '"x", R'}, OK),
    ({"if-match": "R,R"}, OK),
    ({"if-match": '"x"'}, "If-Match"),
    ({"if-match": '"x", "y"'}, "If-Match"),
    # If-None-Match
    ({"if-none-match": "R"}, NOT_MODIFIED),
    ({"if-none-match": "R unquoted"}, NOT_MODIFIED),
    ({"if-none-match": "W/R"}, NOT_MODIFIED),
    ({"if-none-match": "*"}, NOT_MODIFIED),
    ({"if-none-match": '"x", R'}, NOT_MODIFIED),
    ({"if-none-match": '"x"'}, OK),
    # If-Modified-Since
    ({"if-modified-since": "T"}, NOT_MODIFIED),
    # A time to come is none that the client can have seen.
    ({"if-modified-since": "T + 1 h"}, OK),
    ({"if-modified-since": "T - 1 s"}, OK),
    ({"if-modified-since": "T - 1 h"}, OK),
    # If-Unmodified-Since
    ({"if-unmodified-since": "T"}, OK),
    ({"if-unmodified-since": "T + 1 h"}, OK),
    ({"if-unmodified-since": "T - 1 s"}, "If-Unmodified-Since"),
    # Two at once: an ETag makes the date of its kind irrelevant (RFC 9110, section 13.2.2).
    ({"if-match": "R", "if-unmodified-since": "T - 1 h"}, OK),
    ({"if-match": '"x"', "if-unmodified-since": "T + 1 h"}, "If-Match"),
    ({"if-none-match": '"x"', "if-modified-since": "T + 1 h"}, OK),
    ({"if-none-match": "R", "if-modified-since": "T - 1 h"}, NOT_MODIFIED),
    ({"if-match": "R", "if-none-match": "R"}, NOT_MODIFIED),
    ({"if-match": '"x"', "if-none-match": "R"}, "If-Match"),
    ({"if-unmodified-since": "T", "if-modified-since": "T"}, NOT_MODIFIED),
    *((headers, OK) for headers in NO_DATES),
    # RFC 850 and asctime forms are dates too.
    ({"if-unmodified-since": "Sunday, 06-Nov-94 08:49:37 GMT"}, "If-Unmodified-Since"),
    ({"if-unmodified-since": "Sun Nov  6 08:49:37 1994"}, "If-Unmodified-Since"),
]


@pytest.fixture
def thing(bucket):
    bucket.put("thing", b"data", headers={"cache-control": "max-age=5"})
    return bucket


def values(headers: dict[str, str], head) -> dict[str, str]:
    """The headers with R and T replaced by what the object has."""
    modified = parsedate_to_datetime(head.headers["last-modified"])
    times = {
        "T": modified,
        "T + 1 h": modified + HOUR,
        "T - 1 h": modified - HOUR,
        "T - 1 s": modified - SECOND,
    }

    def value(text: str) -> str:
        if text in times:
            return format_datetime(times[text], usegmt=True)
        return (
            text.replace("R unquoted", head.etag.strip('"')).replace("R", head.etag) if "R" in text else text
        )

    return {name: value(text) for name, text in headers.items()}


@pytest.mark.parametrize(
    "headers, outcome", CASES, ids=[" ".join(map(": ".join, h.items())) for h, _ in CASES]
)
def test_read(thing, headers, outcome):
    head = thing.head("thing")
    sent = values(headers, head)
    for method in ("GET", "HEAD"):
        response = thing.raw.request(method, thing.path("thing"), headers=sent)
        if isinstance(outcome, str):
            if method == "GET":
                expect.error(response, "PreconditionFailed", Condition=outcome)
            else:
                expect.head_error(response, 412)
            continue
        expect.ok(response, outcome)
        assert response.etag == head.etag
        assert response.headers["last-modified"] == head.headers["last-modified"]
        assert response.headers["cache-control"] == "max-age=5"
        if outcome == NOT_MODIFIED:
            assert response.body == b""
            assert response.headers.get("content-length", "0") in ("0", "4")
        elif method == "GET":
            assert response.body == b"data"


COPY_CASES = [(h, o) for h, o in CASES if "" not in h.values()]


@pytest.mark.parametrize(
    "headers, outcome", COPY_CASES, ids=[" ".join(map(": ".join, h.items())) for h, _ in COPY_CASES]
)
def test_copy_source(thing, headers, outcome):
    """The same four on what is copied from; "not modified" is a failure there, and so is what is no date: a
    write is not done under a condition that was not understood."""
    sent = {f"x-amz-copy-source-{name}": v for name, v in values(headers, thing.head("thing")).items()}
    source = {"x-amz-copy-source": f"{thing.name}/thing"}
    upload_id = thing.create_upload("part")
    for response in (
        thing.raw.put(thing.path("copy"), headers={**source, **sent}),
        thing.raw.put(
            thing.path("part"), headers={**source, **sent}, query={"partNumber": "1", "uploadId": upload_id}
        ),
    ):
        if headers in NO_DATES:
            (name,) = sent
            expect.error(response, "InvalidArgument", f"Value for {name} header is invalid.")
        elif outcome == OK:
            expect.ok(response)
            assert response.xml["ETag"] == thing.head("thing").etag
        else:
            expect.error(response, "PreconditionFailed")
    assert thing.exists("copy") == (outcome == OK and headers not in NO_DATES)


def test_conditions_do_not_hide_that_there_is_nothing(bucket):
    expect.error(bucket.get("none", headers={"if-match": '"x"'}), "NoSuchKey", Key="none")
    expect.error(bucket.get("none", headers={"if-none-match": "*"}), "NoSuchKey", Key="none")


def test_attributes_of_an_edited_file_change(thing):
    """Who revalidates after a file was edited gets the new bytes."""
    etag = thing.head("thing").etag
    with open(thing.file("thing"), "r+b") as file:
        file.write(b"atad")
    got = thing.get("thing", headers={"if-none-match": etag})
    assert (got.status, got.body) == (200, b"atad")
    expect.error(thing.get("thing", headers={"if-match": etag}), "PreconditionFailed", Condition="If-Match")


class TestIfRange:
    """The rest of what a client has some of already; all of it, if that is something else by now."""

    @pytest.mark.parametrize(
        "value, rest",
        [
            ("R", True),
            ("R unquoted", True),
            ("T", True),
            ('"00000000000000000000000000000000"', False),
            ("W/R", False),
            ("T - 1 s", False),
            ("T + 1 h", False),
            ("nonsense", False),
            ("", False),
        ],
    )
    def test_read(self, thing, value, rest):
        sent = values({"if-range": value}, thing.head("thing")) | {"range": "bytes=1-2"}
        for method in ("GET", "HEAD"):
            response = expect.ok(
                thing.raw.request(method, thing.path("thing"), headers=sent), 206 if rest else 200
            )
            assert ("content-range" in response.headers) == rest
            assert response.headers["content-length"] == ("2" if rest else "4")
            if method == "GET":
                assert response.body == (b"at" if rest else b"data")

    def test_an_object_that_was_replaced(self, thing):
        """Of a large file too, which is not read at once."""
        for size in (4, 3 << 20):
            thing.put("thing", b"a" * size)
            etag = thing.head("thing").etag
            headers = {"range": f"bytes={size - 2}-", "if-range": etag}
            assert expect.ok(thing.get("thing", headers=headers), 206).body == b"aa"
            thing.put("thing", b"b" * size)
            assert expect.ok(thing.get("thing", headers=headers), 200).body == b"b" * size

    def test_what_is_beyond_the_end(self, thing):
        beyond = {"range": "bytes=10-"}
        sent = beyond | {"if-range": thing.head("thing").etag}
        expect.error(thing.get("thing", headers=sent), "InvalidRange", RangeRequested="bytes=10-")
        assert expect.ok(thing.get("thing", headers=beyond | {"if-range": '"x"'}), 200).body == b"data"

    def test_without_a_range(self, thing):
        assert expect.ok(thing.get("thing", headers={"if-range": '"x"'}), 200).body == b"data"

    def test_other_conditions_come_first(self, thing):
        sent = {"range": "bytes=1-2", "if-range": '"x"', "if-match": '"x"'}
        expect.error(thing.get("thing", headers=sent), "PreconditionFailed", Condition="If-Match")


@pytest.mark.parametrize("year", ["99999", "32768", "00001994"])
def test_a_year_of_more_than_four_digits(bucket, year):
    """It is no date: the header counts for nothing."""
    bucket.put("key", b"data")
    date = f"Sun, 06 Nov {year} 08:49:37 GMT"
    for name in ("if-modified-since", "if-unmodified-since"):
        assert expect.ok(bucket.get("key", headers={name: date})).body == b"data"
