"""Names in disguise: keys, buckets, versions and prefixes that seem to be others to a policy, or lead out of a bucket."""

import itertools
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest

from support import expect
from support.identities import allow, code_of, deny, policy
from support.intruders import Who, bucket, root, user
from support.sigv4 import Signer
from support.wire import RawClient

SECRET = b"the secret"

# Paths as they are sent. `{lab}` is a bucket in which `public/` may be read, and `private/` may not.
PATHS = [
    "/{lab}/public/../private/x",
    "/{lab}/public/%2e%2e/private/x",
    "/{lab}/public/%2E%2e/private/x",
    "/{lab}/public%2F..%2Fprivate%2Fx",
    "/{lab}/public/..%2fprivate/x",
    "/{lab}/public/%252e%252e/private/x",
    "/{lab}/public/%252e%252e%252fprivate%252fx",
    "/{lab}/public/..;/private/x",
    "/{lab}/public/..\\private\\x",
    "/{lab}/public/..%5cprivate%5cx",
    "/{lab}/public/%c0%ae%c0%ae/private/x",
    "/{lab}/public/%c0%ae%c0%ae%c0%afprivate/x",
    "/{lab}/public/%ef%bc%8e%ef%bc%8e/private/x",
    "/{lab}/public/%u002e%u002e/private/x",
    "/{lab}/public/.../private/x",
    "/{lab}/public/./../private/x",
    "/{lab}/./private/x",
    "/{lab}//private/x",
    "//{lab}/private/x",
    "/{lab}/private//x",
    "/{lab}/private/./x",
    "/{lab}/private/x",
    "/{lab}/%70rivate/x",
    "/{lab}%2fprivate%2fx",
    "/./{lab}/private/x",
    "/{lab}/public/../../{lab}/private/x",
    "/other/../{lab}/private/x",
    "/{lab}/private/x%00",
    "/{lab}/private/x%00public/x",
    "/{lab}/private/x?public/x",
    "/{lab}/private/x;public/x",
    "/{lab}/private/x%23",
    "/{lab}/private/x%0d%0aHost:%20x",
    "/{lab}/private/x%20",
    "/{lab}/private/x.",
    "/{lab}/PRIVATE/x",
    "/{upper}/private/x",
    "/{lab}./private/x",
    "/{lab}/public/%2e%2e%2f%2e%2e%2f.slipway/credentials.toml",
    "/.slipway/credentials.toml",
    "/{lab}/../.slipway/credentials.toml",
    "/%2eslipway/iam/keys.json",
    "/{lab}/.slipway/x",
    "/{lab}/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/{lab}//etc/passwd",
    "/{lab}/%2fetc%2fpasswd",
]


@pytest.fixture
def lab(guarded) -> str:
    return bucket(guarded, private__x=SECRET, public__x=b"for all")


def raw_of(who: Who) -> RawClient:
    return who.server.raw.with_(signer=Signer(*who.key[:2]))


def tell(*places: Path) -> dict[Path, bytes]:
    """The files of the server's machine that nobody may touch, and their bytes."""
    files = (path for place in places for path in place.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if not path.name.startswith((",", "used"))}


class TestKeys:
    @pytest.mark.parametrize("rights", ["what may be read", "what may not"])
    def test_a_path_is_decided_about_as_what_it_reads(self, guarded, lab, rights):
        arn = f"arn:aws:s3:::{lab}"
        statements = {
            "what may be read": [allow("s3:*", f"{arn}/public/*")],
            "what may not": [allow("s3:*"), deny("s3:*", f"{arn}/private/*")],
        }
        who = user(guarded, *statements[rights])
        raw = raw_of(who)
        assert expect.ok(raw.get(f"/{lab}/public/x")).body == b"for all"
        for path in PATHS:
            sent = path.format(lab=lab, upper=lab.upper())
            if "\\" in sent or "%u" in sent:
                # No path of HTTP.
                continue
            path, _, query = sent.partition("?")
            for method in ("GET", "HEAD"):
                answer = raw.request(method, path, query=query or None)
                assert answer.status in (400, 403, 404), (path, answer)
                assert SECRET not in answer.body and b"root:" not in answer.body

    def test_nothing_is_written_elsewhere(self, guarded, lab):
        """By whoever may do everything in its bucket, and nothing in others."""
        other = bucket(guarded)
        who = user(guarded, allow("s3:*", f"arn:aws:s3:::{other}/*"))
        raw = raw_of(who)
        watched = (guarded.tree / lab, guarded.tree / ".slipway")
        before = tell(*watched)
        for path in PATHS:
            sent = path.format(lab=lab, upper=lab.upper())
            aimed = (
                f"/{other}/a/../..{sent}",
                f"/{other}/a/%2e%2e/%2e%2e{sent}",
                f"/{other}/..%2f{sent[1:]}",
                sent,
            )
            for path in aimed:
                path, _, query = path.partition("?")
                for method in ("PUT", "DELETE"):
                    answer = raw.request(
                        method, path, query=query or None, body=b"changed" if method == "PUT" else b""
                    )
                    assert answer.status in (200, 204, 400, 403, 404, 501), (path, answer)
        assert tell(*watched) == before
        names = {path.name for path in guarded.tree.iterdir()}
        assert all(re.fullmatch(r"bucket-[\d-]+|\.slipway", name) for name in names), names
        assert not list(guarded.tree.parent.glob("x*"))

    def test_one_letter_in_two_forms_is_two_keys(self, guarded):
        """A policy names one of them. Each has a file of its own, of exactly its bytes."""
        composed, decomposed = (unicodedata.normalize(form, "caf\u00e9") for form in ("NFC", "NFD"))
        others = ["cafe", "caf\uff45", "ca\u0066\u200be", "CAF\u00c9"]
        name = bucket(guarded)
        s3 = root(guarded).s3
        for number, key in enumerate([composed, decomposed, *others]):
            s3.put_object(Bucket=name, Key=key, Body=str(number).encode())
        who = user(guarded, allow("s3:*"), deny("s3:*", f"arn:aws:s3:::{name}/{composed}"))
        assert code_of(who.s3.get_object, Bucket=name, Key=composed) == "AccessDenied"
        for number, key in enumerate([decomposed, *others], 1):
            assert who.s3.get_object(Bucket=name, Key=key)["Body"].read() == str(number).encode()

    @pytest.mark.parametrize("key", ["*", "?", "[a]", "${aws:username}", "${*}", "a*", "$", "{a}", "%2a"])
    def test_a_key_is_no_pattern(self, guarded, lab, key):
        """Nor one that a policy takes for one: its right is for the object of that name."""
        who = user(guarded, allow("s3:*", f"arn:aws:s3:::{lab}/public/*"))
        assert code_of(who.s3.get_object, Bucket=lab, Key=key) == "AccessDenied"
        assert code_of(who.s3.put_object, Bucket=lab, Key=key, Body=b"") == "AccessDenied"
        root(guarded).s3.delete_object(Bucket=lab, Key=key)
        assert (guarded.tree / lab / "private/x").read_bytes() == SECRET

    @pytest.mark.parametrize(
        "version",
        [
            "../private/x",
            "..",
            "/",
            "*",
            "null/../../private/x",
            "%00",
            "NULL",
            " null",
            "null ",
            "0",
            "-1",
            "'",
        ],
    )
    def test_a_version_is_no_path(self, guarded, lab, version):
        who = user(guarded, allow("s3:*", f"arn:aws:s3:::{lab}/public/*"))
        for call in (who.s3.get_object, who.s3.head_object, who.s3.get_object_acl):
            code = code_of(call, Bucket=lab, Key="public/x", VersionId=version)
            assert code in ("InvalidArgument", "NoSuchVersion", "404", "400"), code
        assert (guarded.tree / lab / "private/x").read_bytes() == SECRET

    def test_keys_of_a_deletion(self, guarded, lab):
        """Each is decided about as it is deleted."""
        who = user(guarded, allow("s3:*", f"arn:aws:s3:::{lab}/public/*"))
        keys = [path.format(lab=lab, upper=lab.upper()).removeprefix(f"/{lab}/") for path in PATHS]
        keys = [key for key in keys if not key.startswith("/") and "%0" not in key]
        answer = who.s3.delete_objects(Bucket=lab, Delete={"Objects": [{"Key": key} for key in keys]})
        assert {error["Code"] for error in answer["Errors"]} <= {"AccessDenied", "InvalidArgument"}
        assert (guarded.tree / lab / "private/x").read_bytes() == SECRET
        assert (guarded.tree / lab / "public/x").exists()


class TestBuckets:
    def test_names_that_seem_to_be_others(self, guarded):
        before = sorted(path.name for path in guarded.tree.iterdir())
        for name in (
            *(
                "..",
                ".",
                ".slipway",
                "%2e%2e",
                "%2eslipway",
                "a..b",
                "A-BUCKET",
                "b\u00fccket",
                "bucket\u200b",
            ),
            *("b\u0430cket", "xn--bucket", "bucket-s3alias", "bucket%00", "bucket%2f", "192.168.0.1"),
            *("bucket%0a", " bucket", "buck_et"),
        ):
            path = "/" + quote(name, safe="%")
            for answer in (guarded.raw.put(path), guarded.raw.get(path), guarded.raw.delete(path)):
                assert answer.status in (400, 403, 404, 405, 409), (name, answer)
        assert sorted(path.name for path in guarded.tree.iterdir()) == before


class TestListings:
    """Who may list below a prefix sees nothing else, however the prefix is sent."""

    QUERIES = [
        "prefix=",
        "prefix=private/",
        "prefix=p",
        "prefix=public",
        "prefix=PUBLIC/",
        "prefix=public/../private/",
        "prefix=%70rivate/",
        "Prefix=public/",
        "prefix=public/&prefix=private/",
        "prefix=private/&prefix=public/",
        "prefix=&prefix=public/",
        "prefix=public/&prefix=",
        "prefix=public/&%70refix=private/",
        "%70refix=private/&prefix=public/",
        "prefix=public/%00",
        "prefix=public/*",
        "prefix=*",
        "prefix=public/&start-after=private/",
        "prefix=public/&marker=private/",
        "prefix=public/&key-marker=private/",
        "prefix=public/&delimiter=p",
        "prefix=public/&continuation-token=private/x",
        "",
    ]

    @pytest.mark.parametrize("kind", ["", "list-type=2", "versions"])
    def test_below_a_prefix(self, guarded, lab, kind):
        lists = ["s3:ListBucket", "s3:ListBucketVersions"]
        below = {"StringEquals": {"s3:prefix": "public/"}}
        raw = raw_of(user(guarded, allow(lists, f"arn:aws:s3:::{lab}", Condition=below)))
        seen = expect.ok(raw.get(f"/{lab}", query="&".join(filter(None, [kind, "prefix=public/"]))))
        assert b"public/x" in seen.body
        for query in self.QUERIES:
            answer = raw.get(f"/{lab}", query="&".join(filter(None, [kind, query])))
            assert answer.status in (200, 400, 403), (query, answer)
            text = answer.body if answer.status == 200 else b""
            keys = re.findall(rb"<(?:Key|Prefix)>([^<]*)</", text)
            assert all(key.startswith(b"public/") for key in keys), (query, answer)

    def test_a_limit_of_keys_is_no_negative_number(self, guarded, lab):
        """-1 is no large number to anybody, in listings and elsewhere."""
        few = {"NumericLessThanEquals": {"s3:max-keys": "1"}}
        raw = raw_of(user(guarded, allow("s3:ListBucket", Condition=few)))
        expect.ok(raw.get(f"/{lab}", query="max-keys=1"))
        for number in (
            "-1",
            "2",
            "18446744073709551615",
            "4294967297",
            "1.5",
            "0x1",
            "+1",
            "1&max-keys=1000",
            "",
            "\uff11",
        ):
            answer = raw.get(f"/{lab}", query=f"max-keys={quote(number, safe='&=')}")
            keys = answer.body.count(b"<Key>")
            assert answer.status in (400, 403) or keys <= 1, (number, answer)


class TestNumbers:
    @pytest.mark.parametrize("number", ["-1", "-9223372036854775808", "4294967297", "18446744073709551616"])
    def test_that_wrap_around(self, guarded, lab, number):
        """None becomes another one by the number of its bits."""
        raw, place = guarded.raw, f"/{lab}/public/x"
        upload = root(guarded).s3.create_multipart_upload(Bucket=lab, Key="public/x")["UploadId"]
        for answer in (
            raw.get(f"/{lab}", query={"max-keys": number}),
            raw.get(f"/{lab}", query={"uploads": "", "max-uploads": number}),
            raw.get(f"/{lab}", query={"versions": "", "max-keys": number}),
            raw.get("/", query={"max-buckets": number}),
            raw.get(place, query={"uploadId": upload, "max-parts": number}),
            raw.get(place, query={"partNumber": number}),
            raw.put(place, b"x", query={"uploadId": upload, "partNumber": number}),
        ):
            assert answer.status == 400, answer
        assert root(guarded).s3.list_parts(Bucket=lab, Key="public/x", UploadId=upload).get("Parts", []) == []
        for name, action in itertools.product(
            ("MaxItems", "DurationSeconds"), ("ListUsers", "GetSessionToken")
        ):
            who = root(guarded)
            call, shape = (who.iam, "list_users") if action == "ListUsers" else (who.sts, "get_session_token")
            if (name == "MaxItems") == (action == "ListUsers"):
                assert code_of(getattr(call, shape), **{name: int(number)}) in (
                    "ValidationError",
                    "MalformedInput",
                )


def test_the_pages_of_the_policy_are_of_its_bucket(guarded, lab):
    """A policy of one bucket that names another one is refused, so that it opens nothing there."""
    other = bucket(guarded, x=SECRET)
    root(guarded).s3.delete_public_access_block(Bucket=lab)
    for arn in (
        f"arn:aws:s3:::{other}/*",
        f"arn:aws:s3:::{lab}*",
        "arn:aws:s3:::*",
        "*",
        f"arn:aws:s3:::{lab}/../{other}/*",
    ):
        text = policy(allow("s3:GetObject", arn, Principal="*"))
        try:
            root(guarded).s3.put_bucket_policy(Bucket=lab, Policy=text)
        except root(guarded).s3.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "MalformedPolicy"
        assert guarded.raw.get(f"/{other}/x", anonymous=True).code == "AccessDenied"
        assert guarded.raw.get(f"/{lab}/../{other}/x", anonymous=True).status in (403, 404)
