"""Signatures in the Authorization header."""

import base64
import hashlib
import hmac
import re
from datetime import timedelta

import pytest

from support import expect, sigv4
from support.server import ACCESS_KEY, SECRET_KEY

MALFORMED = "The authorization header is malformed; "


@pytest.fixture(autouse=True)
def thing(bucket):
    bucket.put("key", b"data")
    yield
    assert bucket.keys() == ["key"]


class TestWrong:
    def test_secret(self, bucket):
        """The answer shows what the server would have signed, byte for byte."""
        signer = bucket.raw.signer.with_(secret_key="wrong", at=bucket.raw.signer.now())
        request = bucket.raw.prepare("GET", bucket.path("key"), signer=signer)
        response = bucket.raw.send(request)
        when = signer.now()
        canonical = "\n".join(
            [
                "GET",
                bucket.path("key"),
                "",
                f"host:{bucket.raw.host}",
                f"x-amz-content-sha256:{sigv4.EMPTY_SHA256}",
                f"x-amz-date:{when:%Y%m%dT%H%M%SZ}",
                "",
                "host;x-amz-content-sha256;x-amz-date",
                sigv4.EMPTY_SHA256,
            ]
        )
        to_sign = "\n".join(
            [
                "AWS4-HMAC-SHA256",
                f"{when:%Y%m%dT%H%M%SZ}",
                signer.scope(when),
                sigv4.sha256_hex(canonical.encode()),
            ]
        )
        expect.error(
            response,
            "SignatureDoesNotMatch",
            AWSAccessKeyId=ACCESS_KEY,
            StringToSign=to_sign,
            SignatureProvided=request.signature,
            StringToSignBytes=to_sign.encode().hex(" "),
            CanonicalRequest=canonical,
            CanonicalRequestBytes=canonical.encode().hex(" "),
        )
        assert SECRET_KEY.encode() not in response.body

    def test_secret_on_head(self, bucket):
        signer = bucket.raw.signer.with_(secret_key="wrong")
        expect.head_error(bucket.raw.head(bucket.path("key"), signer=signer), 403)

    def test_access_key(self, bucket):
        signer = bucket.raw.signer.with_(access_key="AKIDNOBODY")
        response = bucket.raw.get(bucket.path("key"), signer=signer)
        expect.error(response, "InvalidAccessKeyId", AWSAccessKeyId="AKIDNOBODY")

    @pytest.mark.parametrize("change", ["method", "path", "query", "header", "host"])
    def test_what_is_not_what_was_signed(self, bucket, change):
        request = bucket.raw.prepare(
            "GET", bucket.path("key"), query={"a": "1"}, headers={"x-amz-meta-a": "1"}
        )
        head = request.head
        match change:
            case "method":
                head = head.replace(b"GET ", b"DELETE ", 1)
            case "path":
                head = head.replace(b"/key?", b"/kex?", 1)
            case "query":
                head = head.replace(b"?a=1", b"?a=2", 1)
            case "header":
                head = head.replace(b"x-amz-meta-a: 1", b"x-amz-meta-a: 2", 1)
            case "host":
                head = re.sub(rb"Host: [^\r]*", b"Host: other.example", head)
        assert head != request.head
        with bucket.raw.connect() as connection:
            connection.send(head)
            expect.error(connection.response(), "SignatureDoesNotMatch")

    def test_an_added_subresource(self, bucket):
        request = bucket.raw.prepare("DELETE", bucket.path("key"))
        with bucket.raw.connect() as connection:
            connection.send(request.head.replace(b"/key ", b"/key?uploadId=x ", 1))
            expect.error(connection.response(), "SignatureDoesNotMatch")

    def test_added_headers(self, bucket):
        """A header with a meaning that is not signed could have been added on the way."""
        response = bucket.raw.put(
            bucket.path("new"), b"data", headers={"x-amz-meta-evil": "1"}, unsigned=["x-amz-meta-evil"]
        )
        expect.error(
            response,
            "AccessDenied",
            "There were headers present in the request which were not signed",
            HeadersNotSigned="x-amz-meta-evil",
        )

    def test_unsigned_host(self, bucket):
        response = bucket.raw.get(bucket.path("key"), unsigned=["host"])
        expect.error(
            response,
            "AccessDenied",
            "There were headers present in the request which were not signed",
            HeadersNotSigned="host",
        )

    def test_headers_without_meaning_need_no_signature(self, bucket):
        got = bucket.raw.get(bucket.path("key"), headers={"accept": "*/*"}, unsigned=["accept"])
        assert expect.ok(got).body == b"data"


def test_a_wrong_signature_is_not_answered_at_length(bucket):
    """Who knows an access key's id can make the server send no more than some KiB for a request of 20 KiB."""
    wrong = bucket.raw.signer.with_(secret_key="wrong")
    query = {f"x{number}": "y" * 200 for number in range(90)}
    response = bucket.raw.get(bucket.path("key"), query=query, signer=wrong)
    expect.error(response, "SignatureDoesNotMatch")
    assert response.xml["CanonicalRequest"].startswith("GET\n")
    assert len(response.body) < 24 << 10


@pytest.mark.parametrize("times", [20, 11_000])
def test_a_list_of_signed_headers_that_repeats_some(bucket, times):
    """What would be signed could be made of many MiB by a request of some KiB."""
    names = ";".join(["host", *["a"] * times])
    query = f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ACCESS_KEY}/{{}}&X-Amz-Date={{}}"
    when = bucket.raw.signer.now()
    query = query.format(bucket.raw.signer.scope(when), f"{when:%Y%m%dT%H%M%SZ}")
    target = f"{bucket.path('key')}?{query}&X-Amz-Expires=300&X-Amz-SignedHeaders={names}&X-Amz-Signature=0"
    response = bucket.raw.fetch(target, headers={"a": "x" * 7000})
    expect.error(response, "SignatureDoesNotMatch")
    assert len(response.body) < 1000


class TestTime:
    @pytest.mark.parametrize("minutes", [-16, -60, 16, 60 * 24])
    def test_too_far_away(self, bucket, minutes):
        signer = bucket.raw.signer.with_(shift=timedelta(minutes=minutes))
        response = bucket.raw.get(bucket.path("key"), signer=signer)
        expect.error(
            response,
            "RequestTimeTooSkewed",
            RequestTime=re.compile(r"^\d{8}T\d{6}Z$"),
            ServerTime=re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
            MaxAllowedSkewMilliseconds="900000",
        )

    @pytest.mark.parametrize("minutes", [-14, 14])
    def test_near_enough(self, bucket, minutes):
        signer = bucket.raw.signer.with_(shift=timedelta(minutes=minutes))
        expect.ok(bucket.raw.get(bucket.path("key"), signer=signer))

    @pytest.mark.parametrize("date", [None, "yesterday", "2032-01-01"])
    def test_no_date(self, bucket, date):
        response = bucket.raw.get(bucket.path("key"), headers={"x-amz-date": date})
        expect.error(
            response, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header"
        )

    def test_date_header(self, bucket):
        """Without x-amz-date, Date will do."""
        signer = bucket.raw.signer.with_(at=bucket.raw.signer.now())
        date = f"{signer.now():%a, %d %b %Y %H:%M:%S GMT}"
        got = bucket.raw.get(bucket.path("key"), signer=signer, headers={"x-amz-date": None, "date": date})
        assert expect.ok(got).body == b"data"

    def test_another_day_in_the_scope(self, bucket):
        when = bucket.raw.signer.now()
        signer = bucket.raw.signer.with_(at=when - timedelta(days=1))
        response = bucket.raw.get(
            bucket.path("key"), signer=signer, headers={"x-amz-date": f"{when:%Y%m%dT%H%M%SZ}"}
        )
        expect.error(
            response,
            "AuthorizationHeaderMalformed",
            MALFORMED + "Invalid credential date. Date is not the same as X-Amz-Date.",
        )


class TestScope:
    def test_region(self, bucket):
        response = bucket.raw.get(bucket.path("key"), signer=bucket.raw.signer.with_(region="eu-west-1"))
        expect.error(
            response,
            "AuthorizationHeaderMalformed",
            MALFORMED + "the region 'eu-west-1' is wrong; expecting 'us-east-1'",
            Region="us-east-1",
        )

    def test_region_auto(self, bucket):
        expect.ok(bucket.raw.get(bucket.path("key"), signer=bucket.raw.signer.with_(region="auto")))

    def test_region_of_the_server(self, make_server):
        server = make_server("--region", "mars-1")
        signer = server.raw.signer.with_(region="mars-1")
        expect.ok(server.raw.get("/", signer=signer))
        expect.error(
            server.raw.get("/"), "AuthorizationHeaderMalformed", re.compile("mars-1"), Region="mars-1"
        )

    def test_service(self, bucket):
        response = bucket.raw.get(bucket.path("key"), signer=bucket.raw.signer.with_(service="ec2"))
        expect.error(
            response,
            "AuthorizationHeaderMalformed",
            MALFORMED + 'incorrect service "ec2". This endpoint belongs to "s3".',
        )

    def test_terminal(self, bucket):
        response = bucket.raw.get(bucket.path("key"), signer=bucket.raw.signer.with_(terminal="aws5_request"))
        expect.error(
            response,
            "AuthorizationHeaderMalformed",
            MALFORMED + 'incorrect terminal "aws5_request". This endpoint uses "aws4_request".',
        )


GOOD = "Credential=A/20320101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=" + "0" * 64


@pytest.mark.parametrize(
    "value, code",
    [
        ("AWS4-HMAC-SHA256", "InvalidArgument"),
        ("AWS4-HMAC-SHA256 ", "InvalidArgument"),
        ("AWS4-HMAC-SHA256 nonsense", "AuthorizationHeaderMalformed"),
        ("AWS4-HMAC-SHA256 " + GOOD.replace("Credential=", "Who="), "AuthorizationHeaderMalformed"),
        ("AWS4-HMAC-SHA256 " + GOOD.replace("SignedHeaders=host, ", ""), "AuthorizationHeaderMalformed"),
        ("AWS4-HMAC-SHA256 " + GOOD.replace("/20320101", ""), "AuthorizationHeaderMalformed"),
        ("AWS4-HMAC-SHA256 " + GOOD.replace("20320101", "today"), "AuthorizationHeaderMalformed"),
        ("AWS4-HMAC-SHA256 " + GOOD.replace("=A/", "=/"), "AuthorizationHeaderMalformed"),
        ("AWS4-ECDSA-P256-SHA256 " + GOOD, "NotImplemented"),
        ("AWS AKID:c2lnbmF0dXJl", "InvalidRequest"),
        ("Basic dXNlcjpwYXNz", "InvalidArgument"),
        ("Bearer token", "InvalidArgument"),
        ("nonsense", "InvalidArgument"),
    ],
)
def test_authorization_headers_that_are_none(bucket, value, code):
    response = bucket.raw.get(bucket.path("key"), headers={"authorization": value})
    expect.error(response, code, re.compile("."))


def test_both_header_and_query(bucket):
    presigned = bucket.raw.signer.presign("GET", bucket.path("key"), bucket.raw.host)
    response = bucket.raw.fetch(presigned, headers={"authorization": "AWS4-HMAC-SHA256 " + GOOD})
    expect.error(
        response,
        "InvalidArgument",
        re.compile("^Only one auth mechanism allowed"),
        ArgumentName="Authorization",
    )


@pytest.mark.parametrize("presigned", [False, True])
def test_temporary_credentials(bucket, presigned):
    """Root's keys have no token: one that comes with them was never given out."""
    if presigned:
        query = [("X-Amz-Security-Token", "token")]
        response = bucket.raw.fetch(
            bucket.raw.signer.presign("GET", bucket.path("key"), bucket.raw.host, query=query)
        )
    else:
        response = bucket.get("key", headers={"x-amz-security-token": "token"})
    expect.error(response, "InvalidToken", **{"Token-0": "token"})


def test_without_content_sha256(bucket):
    response = bucket.raw.get(bucket.path("key"), headers={"x-amz-content-sha256": None})
    expect.error(response, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_anonymous(bucket, method):
    response = bucket.raw.request(
        method, bucket.path("key"), anonymous=True, body=b"x" if method == "PUT" else b""
    )
    expect.error(response, "AccessDenied")
    assert bucket.read("key") == b"data"


@pytest.mark.parametrize("method", ["HEAD"])
def test_anonymous_head(bucket, method):
    expect.head_error(bucket.raw.request(method, bucket.path("key"), anonymous=True), 403)


class TestCanonicalForm:
    """What signers and servers must agree on."""

    @pytest.mark.parametrize(
        "headers",
        [
            [("x-amz-meta-a", "  many   blanks  inside ")],
            [("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")],
            [("X-Amz-Meta-UPPER", "Case")],
            [("x-amz-meta-empty", "")],
            [("x-amz-meta-tab", "a\tb")],
        ],
    )
    def test_headers(self, bucket, headers):
        expect.ok(bucket.raw.put(bucket.path("key"), b"data", headers=headers))

    @pytest.mark.parametrize(
        "query",
        [
            "prefix=a%20b",
            "prefix=a+b",
            "prefix=%E2%82%AC",
            "prefix=a%2Fb",
            "prefix=a/b",
            "b=2&a=1",
            "a=2&a=1",
            "a=1&A=1",
            "prefix=~-_.",
            "prefix=%7e",
            "x",
            "x=",
            "prefix=%3D%26",
            "=x",
            "&&a=1&",
            "prefix=a*b",
            "prefix=a=b",
        ],
    )
    def test_queries(self, bucket, query):
        expect.ok(bucket.raw.get(bucket.path(), query=query))

    @pytest.mark.parametrize(
        "raw_key",
        [
            "a%2Fb",
            "a/b",
            "a%20b",
            "a%2Bb",
            "~tilde",
            "%C3%A9",
            "a%25b",
            "(x)",
            "a*b'!",
            "a:b@c",
            "a;b,c=d&e$f",
            "x..y",
        ],
    )
    def test_paths(self, bucket, raw_key):
        """The path is signed as it is sent."""
        path = f"{bucket.path()}/{raw_key}"
        expect.ok(bucket.raw.put(path, b"odd"))
        assert expect.ok(bucket.raw.get(path)).body == b"odd"
        expect.ok(bucket.raw.delete(path), 204)

    @pytest.mark.parametrize(
        "sent, signed", [("a+b", "a%2Bb"), ("(x)", "%28x%29"), ("a:b", "a%3Ab"), ("a=b", "a%3Db")]
    )
    def test_paths_that_are_signed_in_their_normal_form(self, bucket, sent, signed):
        """Some clients encode more strictly when they sign than when they send."""
        request = bucket.raw.prepare("PUT", f"{bucket.path()}/{signed}", body=b"x")
        other = request.head.replace(f"/{signed} ".encode(), f"/{sent} ".encode(), 1)
        assert other != request.head
        with bucket.raw.connect() as connection:
            connection.send(other + b"x")
            expect.ok(connection.response())
        expect.ok(bucket.raw.delete(f"{bucket.path()}/{signed}"), 204)

    @pytest.mark.parametrize("path", ["%FF", "%C3%28", "a%80"])
    def test_what_is_no_utf8(self, bucket, path):
        expect.error(bucket.raw.get(f"{bucket.path()}/{path}"), "InvalidURI")


class TestSigV2:
    """Off in headers unless the server is told otherwise."""

    def authorization(self, method: str, path: str, date: str, secret: str = SECRET_KEY) -> str:

        to_sign = f"{method}\n\n\n{date}\n{path}"
        signature = base64.b64encode(
            hmac.new(secret.encode(), to_sign.encode(), hashlib.sha1).digest()
        ).decode()
        return f"AWS {ACCESS_KEY}:{signature}"

    def request(self, raw, secret: str = SECRET_KEY):
        date = f"{raw.signer.now():%a, %d %b %Y %H:%M:%S GMT}"
        return raw.get(
            "/",
            anonymous=True,
            headers={"date": date, "authorization": self.authorization("GET", "/", date, secret)},
        )

    def test_refused(self, raw):
        expect.error(
            self.request(raw),
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
        )

    def test_accepted_if_wanted(self, make_server):
        server = make_server("--sigv2", "all")
        expect.ok(self.request(server.raw))
        expect.error(self.request(server.raw, "wrong"), "SignatureDoesNotMatch", AWSAccessKeyId=ACCESS_KEY)
