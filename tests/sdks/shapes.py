"""What SDKs put into the URLs that they presign, so that the suite can make such URLs without them.

`run.py` compares it with what the SDKs make; `test_presigned_shapes.py` makes URLs of it. .NET's and Ruby's
are from the source of AWSSDK.S3 (`AWS4PreSignedUrlSigner`) and of issues of aws-sdk-ruby (2762, 3027), and
were never run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from support.sigv2 import presign_v2
from support.sigv4 import Pairs, Signer

from .presigned import BODY, ODD_KEY, VALUES, Presigned


@dataclass(frozen=True)
class Request:
    """What is presigned, before an SDK has a say."""

    method: str
    operation: str
    headers: Mapping[str, str]
    query: Pairs = ()


def _put(*names: str) -> Request:
    return Request("PUT", "PutObject", {name: VALUES[name] for name in names})


OVERRIDES = [
    ("response-content-disposition", 'attachment; filename="a b"'),
    ("response-content-type", "text/other"),
]
# By the names of the cases.
REQUESTS = {
    "put": _put(),
    "put-odd-key": _put(),
    "put-metadata": _put("x-amz-meta-one", "x-amz-meta-two", "content-type", "cache-control"),
    "put-acl": _put("x-amz-acl"),
    "put-if-none-match": _put("if-none-match"),
    "put-content-length": Request("PUT", "PutObject", {"content-length": str(len(BODY))}),
    "put-sha256": _put("x-amz-checksum-sha256"),
    "put-tagging": _put("x-amz-tagging"),
    "put-encrypted": _put("x-amz-server-side-encryption"),
    "get": Request("GET", "GetObject", {}),
    "get-overrides": Request("GET", "GetObject", {}, OVERRIDES),
    "get-checksum": Request("GET", "GetObject", {"x-amz-checksum-mode": "ENABLED"}),
    "get-missing": Request("GET", "GetObject", {}),
    "head": Request("HEAD", "HeadObject", {}),
    "delete": Request("DELETE", "DeleteObject", {}),
}


@dataclass(frozen=True)
class Shape:
    """`place` says where a header goes: `query`, `signed` (as a header, which is to be sent), `both`, or
    `sent` (by the uploader, unsigned). `more` are the parameters that the SDK adds by itself. `raw` are
    characters that it leaves as they are in its query."""

    place: Callable[[str], str]
    more: Callable[[Request], Pairs] = lambda _: ()
    version: int = 4
    raw: str = ""
    # Cases that the SDK can't make, or not by its presigner's usual way.
    without: tuple[str, ...] = ()

    def pairs(self, request: Request) -> list[tuple[str, str]]:
        """The parameters beside the signature's own."""
        return [*self.more(request), *request.query, *self.placed(request, "query")]

    def signed(self, request: Request) -> list[tuple[str, str]]:
        """The headers beside `host` that are signed as such."""
        return self.placed(request, "signed")

    def placed(self, request: Request, where: str) -> list[tuple[str, str]]:
        return [pair for pair in request.headers.items() if self.place(pair[0]) in (where, "both")]

    def url(self, case: str, signer: Signer, path: str, host: str) -> Presigned:
        request = REQUESTS[case]
        query, headers = self.pairs(request), self.signed(request)
        if self.version == 4:
            target = signer.presign(request.method, path, host, query=query, headers=headers)
            for character in self.raw:
                before, mark, after = target.partition("?")
                target = before + mark + after.replace(quote(character, safe=""), character)
        else:
            target = presign_v2(signer, request.method, path, query)
        return Presigned(case, request.method, f"http://{host}{target}")


def _signed(_: str) -> str:
    return "signed"


def _js(name: str) -> str:
    if name.startswith("x-amz-"):
        return "signed" if "server-side-encryption" in name else "query"
    return "sent" if name in ("content-type", "cache-control") else "signed"


def _js_more(request: Request) -> Pairs:
    pairs = [("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")]
    if request.operation == "PutObject" and "x-amz-checksum-sha256" not in request.headers:
        # Of an empty body, as there is none yet.
        pairs += [("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-sdk-checksum-algorithm", "CRC32")]
    if request.operation == "GetObject" and "x-amz-checksum-mode" not in request.headers:
        pairs.append(("x-amz-checksum-mode", "ENABLED"))
    return [*pairs, *_id(request)]


def _id(request: Request) -> Pairs:
    return [] if request.operation == "HeadObject" else [("x-id", request.operation)]


def _js2(name: str) -> str:
    if name.startswith("x-amz-") or name == "cache-control":
        return "both"
    return "query" if name == "content-type" else "signed"


def _go(name: str) -> str:
    return "query" if name == "x-amz-checksum-mode" else "signed"


def _parameters(name: str) -> str:
    """minio-py: parameters alone."""
    return "sent" if name in ("content-type", "cache-control") else "query"


def _boto3_sigv2(name: str) -> str:
    return "query" if name.startswith("x-amz-") or name == "content-type" else "sent"


def _ruby(name: str) -> str:
    if name.startswith("x-amz-"):
        return "query"
    return "sent" if name in ("cache-control", "content-length") else "signed"


SHAPES = {
    "js": Shape(_js, _js_more),
    "js2": Shape(_js2, without=("put-content-length",)),
    "js2-sigv2": Shape(lambda _: "query", version=2, without=("put-content-length",)),
    "go": Shape(_go, _id),
    "java": Shape(_signed),
    "boto3": Shape(_signed),
    "boto3-sigv2": Shape(_boto3_sigv2, version=2, without=("put-if-none-match",)),
    "minio-go": Shape(_signed),
    "minio-py": Shape(_parameters, without=("put-content-length",)),
    "rust": Shape(_signed, _id, without=("get-checksum",)),
    "dotnet": Shape(_signed, raw=";/"),
    "ruby": Shape(_ruby),
}
# Of these, the case is made by another way than the SDK's own, which the shape does not tell.
OTHERWISE = {("js", "put-sha256")}


def key(case: str) -> str:
    return ODD_KEY if case == "put-odd-key" else f"presigned/{'get' if case == 'get-overrides' else case}"


def differs(name: str, made: Presigned) -> str | None:
    """How a URL that the SDK made differs from its shape, if it does."""
    request, shape = REQUESTS.get(made.case), SHAPES[name]
    if request is None or (name, made.case) in OTHERWISE:
        return None
    wanted = sorted((parameter.lower(), value) for parameter, value in shape.pairs(request))
    if (found := made.pairs()) != wanted:
        return f"the query is {found}, the shape has {wanted}"
    wanted = sorted(["host", *(header for header, _ in shape.signed(request))])
    if shape.version == 4 and made.signed != wanted:
        return f"signed is {made.signed}, the shape has {wanted}"
    return None
