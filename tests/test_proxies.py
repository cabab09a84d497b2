"""packaging/proxies/: HAProxy, nginx and Varnish before two gateways of one tree, as they are shipped."""

import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote_plus

import pytest
from test_operations import metrics

from support import expect, proxies
from support.bucket import Bucket, unique_bucket_name
from support.clients import boto3_client
from support.data import MIB, pattern
from support.proxies import Proxy
from support.server import ACCESS_KEY, DOMAIN, SECRET_KEY, Server
from support.sigv4 import Signer
from support.transports import make_certificate
from support.wire import RawClient, poll

ACCESS_LOG = "access.log"
KINDS = ("haproxy", "nginx", "varnish")
SIGNER = Signer(ACCESS_KEY, SECRET_KEY)
KEYS = [
    "with space",
    " leading",
    "plus+sign",
    "a&b=c;d?e#f:g@h,i!j$k'l(m)n*o[p]",
    "100%",
    "%2F",
    "%41",
    "a%2Fb",
    "/leading",
    "a//b",
    "a///b/",
    "dir/",
    "a/./b",
    "a/../b",
    "a/..",
    "..",
    "../above",
    "back\\slash",
    'quote"d',
    "~tilde^`|{}<>",
    "ümläut",
    "u\u0308",
    "日本語/\U0001f600",
    "tab\tand\x01",
    "k" * 1024,
    "é" * 512,
]


# nginx refuses paths that lead above the root before it looks at anything else. "/bucket/.." does
# not.
NGINX_REFUSES = ["../../above", "../../../above"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "s3", "s3.example.org", "localhost")


@pytest.fixture(scope="module")
def gateways(tmp_path_factory) -> Iterator[list[Server]]:
    tree = tmp_path_factory.mktemp("tree")
    log = tmp_path_factory.mktemp("log")
    options = ("--ops-listen", "127.0.0.1:0", "--domain", DOMAIN, "--access-log", str(log / ACCESS_LOG))
    # Alone what comes from the proxies' own address is from a proxy.
    options += ("--client-address", "x-forwarded-for", "--trusted-proxy", "127.0.0.1")
    servers = [Server(tree, *options, log=log / f"gateway{n}.log") for n in (1, 2)]
    yield servers
    for server in servers:
        assert server.stop() == 0, server.log
        assert "panicked" not in server.log, server.log


@pytest.fixture(scope="module")
def started(gateways, certificate, tmp_path_factory) -> Iterator:
    """Starts each kind of proxy once."""
    running: dict[str, Proxy] = {}

    def start(kind: str) -> Proxy:
        if kind not in running:
            directory = tmp_path_factory.mktemp(kind.replace(" ", "-"))
            if kind == "haproxy":
                running[kind] = proxies.start_haproxy(directory, gateways, certificate)
            elif kind == "nginx":
                running[kind] = proxies.start_nginx(directory, gateways, certificate)
            elif kind == "varnish before a gateway":
                running[kind] = proxies.start_varnish(directory, gateways[0].address)
            else:
                running[kind] = proxies.start_varnish(directory, start("haproxy").address)
        return running[kind]

    yield start
    for proxy in running.values():
        proxy.stop()


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def proxy(started, kind) -> Proxy:
    return started(kind)


@pytest.fixture
def bucket(proxy, gateways, request) -> Bucket:
    """A bucket that is used through the proxy."""
    server = SimpleNamespace(raw=RawClient(proxy.address, SIGNER), tree=gateways[0].tree)
    return Bucket(server, unique_bucket_name(request.node.name)).create()


@pytest.fixture
def s3(proxy):
    return boto3_client(proxy)


class Stranger:
    """A client at another address than the proxies', which says of itself what is not so."""

    ADDRESS = "127.0.0.88"

    def __init__(self, proxy: Proxy, encrypted: bool) -> None:
        self.port, self.encrypted = proxy.ports[1 if encrypted else 0], encrypted
        self.raw = RawClient(("127.0.0.1", self.port), SIGNER)
        self.lies = {
            "x-forwarded-for": "6.6.6.6",
            "x-forwarded-proto": "http" if encrypted else "https",
            "forwarded": "for=6.6.6.6",
        }

    def prepare(self, *what, **more) -> bytes:
        """A request with its lies, which it does not sign: proxies replace them."""
        return self.raw.prepare(*what, headers=self.lies, unsigned=self.lies, **more).bytes

    def ask(self, *requests: bytes) -> str:
        """All at once, on one connection; what comes back until it closes, or is silent for a while."""
        plain = socket.create_connection(("127.0.0.1", self.port), source_address=(self.ADDRESS, 0))
        answers = b""
        with unverified().wrap_socket(plain) if self.encrypted else plain as client:
            client.sendall(b"".join(requests))
            client.settimeout(3)
            with suppress(TimeoutError, ConnectionResetError):
                while piece := client.recv(65536):
                    answers += piece
        return answers.decode()


@pytest.fixture(params=["haproxy", "haproxy, TLS", "nginx", "nginx, TLS", "varnish before a gateway"])
def stranger(request, started) -> Stranger:
    kind, _, encrypted = request.param.partition(", ")
    return Stranger(started(kind), bool(encrypted))


def test_the_gateway_knows_the_client(stranger, gateways):
    """Whatever the client says of itself, in its first request or a later one."""
    bucket = unique_bucket_name("knows-the-client")
    stranger.ask(*(stranger.prepare(method, f"/{bucket}/key") for method in ("HEAD", "GET", "PUT", "HEAD")))
    log = gateways[0].log_file.with_name(ACCESS_LOG)
    poll(lambda: bucket in log.read_text(), 10)
    # What else was let through would be there soon.
    time.sleep(1)
    lines = [json.loads(line) for line in log.read_text().splitlines() if bucket in line]
    assert {line["remote_ip"] for line in lines} == {Stranger.ADDRESS}


def test_the_gateway_knows_the_scheme(stranger):
    """The location of a completed upload has the one that the client used."""
    raw, path = stranger.raw, f"/{unique_bucket_name('knows-the-scheme')}"
    if stranger.encrypted:
        raw = raw.with_(tls=unverified())
    assert raw.put(path).status == 200
    upload = raw.post(f"{path}/key", query={"uploads": ""}).xml["UploadId"]
    etag = raw.put(f"{path}/key", b"data", query={"partNumber": "1", "uploadId": upload}).etag
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    document = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    answer = stranger.ask(stranger.prepare("POST", f"{path}/key", query={"uploadId": upload}, body=document))
    scheme = "https" if stranger.encrypted else "http"
    assert f"<Location>{scheme}://" in answer


@pytest.mark.parametrize("kind", ["haproxy", "nginx"])
def test_logs_have_no_queries(started, bucket, kind):
    """Who has the query of a presigned URL has the object."""
    path = bucket.path(f"logged by {kind}")
    bucket.raw.put(path, b"data")
    url = SIGNER.presign("GET", path, bucket.raw.host)
    assert bucket.raw.fetch(url, headers={"referer": f"http://{bucket.raw.host}{url}"}).body == b"data"
    proxy = started(kind)
    logged = poll(
        lambda: [line for line in proxy.access_log.splitlines() if "GET" in line and kind in line], 10
    )
    assert any(path in line and " 200 " in line for line in logged), logged
    assert "X-Amz-Signature" not in proxy.access_log and "X-Amz-Credential" not in proxy.access_log


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_the_operations(bucket, s3):
    """One client, which keeps its connection."""
    name = bucket.name
    for number in range(20):
        s3.put_object(Bucket=name, Key=f"dir/{number:02}", Body=b"x" * number)
    assert s3.head_object(Bucket=name, Key="dir/07")["ContentLength"] == 7
    assert s3.get_object(Bucket=name, Key="dir/19")["Body"].read() == b"x" * 19
    page = s3.list_objects_v2(Bucket=name, Prefix="dir/", MaxKeys=15)
    assert len(page["Contents"]) == 15
    rest = s3.list_objects_v2(Bucket=name, Prefix="dir/", ContinuationToken=page["NextContinuationToken"])
    assert len(rest["Contents"]) == 5
    s3.copy_object(Bucket=name, Key="copy", CopySource={"Bucket": name, "Key": "dir/09"})
    s3.delete_object(Bucket=name, Key="dir/00")
    done = s3.delete_objects(
        Bucket=name, Delete={"Objects": [{"Key": f"dir/{number:02}"} for number in range(1, 20)]}
    )
    assert len(done["Deleted"]) == 19
    assert [found["Key"] for found in s3.list_objects_v2(Bucket=name)["Contents"]] == ["copy"]
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=name, Key="dir/00")
    with pytest.raises(s3.exceptions.ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=name, Key="copy", Body=b"other", IfNoneMatch="*")


def test_multipart(bucket, s3):
    name, parts, data = bucket.name, [], pattern(11 * MIB)
    upload = s3.create_multipart_upload(Bucket=name, Key="big")["UploadId"]
    for number in range(3):
        part = s3.upload_part(
            Bucket=name,
            Key="big",
            UploadId=upload,
            PartNumber=number + 1,
            Body=data[number * 5 * MIB : (number + 1) * 5 * MIB],
        )
        parts.append({"PartNumber": number + 1, "ETag": part["ETag"]})
    assert len(s3.list_parts(Bucket=name, Key="big", UploadId=upload)["Parts"]) == 3
    s3.complete_multipart_upload(Bucket=name, Key="big", UploadId=upload, MultipartUpload={"Parts": parts})
    answer = s3.get_object(Bucket=name, Key="big")
    assert answer["Body"].read() == data
    assert answer["ETag"].endswith('-3"')


def test_odd_keys(bucket, s3, kind):
    """What a signature covers arrives as it was sent, also where a proxy would have a nicer path."""
    keys = KEYS if kind == "nginx" else KEYS + NGINX_REFUSES
    for number, key in enumerate(keys):
        s3.put_object(Bucket=bucket.name, Key=key, Body=b"%d" % number)
    for number, key in enumerate(keys):
        assert s3.get_object(Bucket=bucket.name, Key=key)["Body"].read() == b"%d" % number
        assert bucket.raw.get(bucket.path(key)).body == b"%d" % number, key
        url = SIGNER.presign("GET", bucket.path(key), bucket.raw.host)
        assert bucket.raw.fetch(url).body == b"%d" % number, key
        url = SIGNER.presign("GET", "/", bucket.raw.host, query=[("prefix", key), ("list-type", "2")])
        assert bucket.raw.fetch(url).status == 200, key
    listed = s3.list_objects_v2(Bucket=bucket.name, EncodingType="url")["Contents"]
    assert sorted(unquote_plus(found["Key"]) for found in listed) == sorted(keys)
    for key in keys:
        s3.delete_object(Bucket=bucket.name, Key=key)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket.name)


def test_what_nginx_refuses(started, gateways):
    raw = RawClient(started("nginx").address, SIGNER)
    assert raw.get("/bucket/../../above").status == 400
    assert raw.get("/bucket/%00").status == 400


def test_presigned(bucket, s3):
    def url(method: str, **more) -> str:
        made = s3.generate_presigned_url(method, Params={"Bucket": bucket.name, "Key": "a b+c/é", **more})
        return made.partition(str(s3.meta.endpoint_url))[2]

    assert bucket.raw.fetch(url("put_object"), "PUT", b"data").status == 200
    for _ in range(3):
        assert bucket.raw.fetch(url("get_object")).body == b"data"
    answer = bucket.raw.fetch(url("get_object", ResponseContentType="text/x-other"))
    assert answer.headers["content-type"] == "text/x-other"
    assert bucket.raw.fetch(url("head_object"), "HEAD").headers["content-length"] == "4"
    assert bucket.raw.fetch(url("get_object"), headers={"range": "bytes=1-2"}).body == b"at"
    other = bucket.raw.fetch(url("get_object").replace("%20b", "%20c", 1))
    expect.error(other, "SignatureDoesNotMatch")
    assert bucket.raw.fetch(url("delete_object"), "DELETE").status == 204
    expect.error(bucket.raw.fetch(url("get_object")), "NoSuchKey")


def test_ranges_and_conditions(bucket):
    data = pattern(MIB)
    etag = bucket.put("key", data).etag
    path = bucket.path("key")
    for header, wanted in (("bytes=0-0", data[:1]), ("bytes=1000-", data[1000:]), ("bytes=-7", data[-7:])):
        answer = bucket.raw.get(path, headers={"range": header})
        assert (answer.status, answer.body) == (206, wanted)
        assert answer.headers["content-range"].endswith(f"/{MIB}")
        assert answer.etag == etag
    expect.error(bucket.raw.get(path, headers={"range": f"bytes={MIB}-"}), "InvalidRange")
    assert bucket.raw.get(path, headers={"if-none-match": etag}).status == 304
    expect.error(bucket.raw.get(path, headers={"if-match": '"other"'}), "PreconditionFailed")
    head = bucket.raw.head(path)
    assert head.headers["content-length"] == str(MIB)
    assert head.headers["accept-ranges"] == "bytes"


def test_virtual_hosts(bucket):
    bucket.put("key", b"data")
    for host in (f"{bucket.name}.{DOMAIN}", f"{bucket.name}.{DOMAIN}:8443"):
        assert bucket.raw.get("/key", headers={"host": host}).body == b"data"


def test_large_heads(bucket):
    """As large as the gateway itself takes them, names that are rare among headers included."""
    metadata = {f"x-amz-meta-{number}_x.y": "v" * 8 for number in range(40)}
    metadata["x-amz-meta-long"] = "m" * 1000
    padding = {f"x-padding-{number}": "p" * 30 for number in range(60)}
    expect.ok(bucket.raw.put(bucket.path("key"), b"data", headers={**metadata, **padding}))
    found = bucket.raw.head(bucket.path("key"))
    assert found.headers.starting("x-amz-meta-") == metadata
    query = [("list-type", "2"), ("prefix", "\U0001f600" * 250), ("start-after", "x" * 1000)]
    answer = bucket.raw.get(bucket.path(), query=query)
    assert expect.ok(answer).xml.name == "ListBucketResult"
    query = [("list-type", "2"), *((f"unknown-{number}", "é" * 500) for number in range(7))]
    assert bucket.raw.get(bucket.path(), query=query).status == 200


def open_files(server: Server, bucket: Bucket) -> list[int]:
    """The sizes of what a gateway has open in a bucket."""
    sizes = []
    for entry in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(OSError):
            if os.readlink(entry).startswith(str(bucket.tree)):
                sizes.append(entry.stat().st_size)
    return sizes


@pytest.mark.parametrize("method", ["signed", "chunks"])
def test_large_bodies_are_streamed(bucket, gateways, method):
    """100 MiB, of which the gateway has the first half before the second is sent."""
    data = pattern(100 * MIB)
    path = bucket.path("large")
    if method == "chunks":
        bucket.put_signed_chunks("large", data[: 20 * MIB], size=1 << 20)
        assert bucket.raw.get(path).body == data[: 20 * MIB]
        return
    request = bucket.raw.prepare("PUT", path, body=data)
    with bucket.raw.connect() as connection:
        connection.send(request.head + data[: 50 * MIB])

        def received() -> bool:
            """Some gateway has it in a file, which has no name yet."""
            return any(size > 40 * MIB for server in gateways for size in open_files(server, bucket))

        poll(received, 20)
        connection.send(data[50 * MIB :])
        expect.ok(connection.response("PUT"))
    assert bucket.raw.get(path).body == data
    url = SIGNER.presign("GET", path, bucket.raw.host)
    assert bucket.raw.fetch(url).body == data


def test_expect_100_continue(bucket, kind):
    request = bucket.raw.prepare("PUT", bucket.path("key"), body=b"data", headers={"expect": "100-continue"})
    for _ in range(2):
        with bucket.raw.connect() as connection:
            for _ in range(1 if kind == "varnish" else 2):
                connection.send(request.head)
                assert connection.head().status == 100
                connection.send(request.body)
                expect.ok(connection.response("PUT"))
    assert bucket.read("key") == b"data"


def test_a_refusal_arrives_while_the_body_is_sent(bucket):
    wrong = bucket.raw.with_(signer=SIGNER.with_(secret_key="wrong"))
    expect.error(wrong.put(bucket.path("key"), pattern(3 * MIB)), "SignatureDoesNotMatch")
    missing = f"/{bucket.name}-missing/key"
    expect.error(bucket.raw.put(missing, pattern(3 * MIB)), "NoSuchBucket")
    headers = {"expect": "100-continue", "content-length": str(8 * MIB)}
    with bucket.raw.connect() as connection:
        connection.send(bucket.raw.prepare("PUT", missing, headers=headers).head)
        answer = connection.head()
        # nginx says it by itself, the others ask.
        assert answer.status in (100, 404)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
@pytest.mark.parametrize("kind", ["haproxy", "nginx"])
def test_tls(started, kind, bucket, certificate):
    port = started(kind).ports[1]
    s3 = boto3_client(None, endpoint=f"https://localhost:{port}", verify=str(certificate[0]))
    s3.put_object(Bucket=bucket.name, Key="key", Body=pattern(MIB))
    assert s3.get_object(Bucket=bucket.name, Key="key")["Body"].read() == pattern(MIB)
    context = ssl.create_default_context(cafile=certificate[0])
    # Else this end would refuse to speak it.
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    connection = http.client.HTTPSConnection("localhost", port, context=context)
    with pytest.raises(OSError):
        connection.request("GET", "/")


class TestVarnish:
    """Varnish keeps the bytes of what anyone with the URL may read, and lets the gateway decide each time."""

    @pytest.fixture
    def kind(self) -> str:
        return "varnish"

    @pytest.fixture
    def asked(self, gateways):
        """How many GetObjects the gateways answered since the last call, by class of their status."""

        def count() -> dict[str, float]:
            found: dict[str, float] = {}
            for server in gateways:
                for name, value in metrics(server).items():
                    if name.startswith('slipway_requests_total{operation="GetObject"'):
                        status = name.partition('status="')[2][:3]
                        found[status] = found.get(status, 0) + value
            return found

        before = count()

        def since(**wanted: int) -> None:
            """Compares with what is wanted; begins anew."""
            nonlocal before
            expected = {status: before.get(status, 0) + more for status, more in wanted.items()}

            def reached() -> bool:
                now = count()
                return all(now.get(status, 0) == value for status, value in expected.items())

            try:
                poll(reached, 5)
            except AssertionError:
                raise AssertionError(f"{before}, then {count()}; wanted {expected}") from None
            before = count()

        return since

    def url(self, bucket: Bucket, key: str = "key", **more) -> str:
        return SIGNER.presign("GET", bucket.path(key), bucket.raw.host, **more)

    def age(self, bucket: Bucket) -> None:
        """Makes an object old enough to be kept."""
        written = bucket.file("key").stat().st_mtime
        poll(lambda: time.time() > written + 4, 10)

    def test_bytes_are_kept_and_the_gateway_is_asked(self, bucket, asked):
        data = pattern(MIB)
        etag = bucket.put("key", data, headers={"x-amz-meta-a": "b", "content-type": "text/x-own"}).etag
        self.age(bucket)
        url = self.url(bucket)
        asked()
        assert bucket.raw.fetch(url).body == data
        asked(**{"2xx": 1})
        for _ in range(3):
            answer = bucket.raw.fetch(url)
            assert (answer.body, answer.etag) == (data, etag)
            assert answer.headers["x-amz-meta-a"] == "b"
            assert answer.headers["content-type"] == "text/x-own"
        asked(**{"2xx": 0, "3xx": 3})
        assert bucket.raw.fetch(url, headers={"if-none-match": etag}).status == 304
        assert bucket.raw.fetch(url, headers={"if-none-match": '"other"'}).body == data
        asked(**{"2xx": 0, "3xx": 2})

    def test_what_was_replaced_is_not_shown(self, bucket):
        url = self.url(bucket)
        for turn in range(5):
            bucket.put("key", b"%d" % turn)
            for _ in range(2):
                assert bucket.raw.fetch(url).body == b"%d" % turn
        bucket.file("key").write_bytes(b"by another program")
        assert bucket.raw.fetch(url).body == b"by another program"
        bucket.raw.delete(bucket.path("key"))
        expect.error(bucket.raw.fetch(url), "NoSuchKey")
        bucket.put("key", b"again")
        assert bucket.raw.fetch(url).body == b"again"

    def test_other_metadata_of_the_same_bytes(self, bucket):
        url = self.url(bucket)
        for turn in range(4):
            bucket.put("key", b"data", headers={"x-amz-meta-turn": str(turn)})
            for _ in range(2):
                assert bucket.raw.fetch(url).headers["x-amz-meta-turn"] == str(turn)
            if turn == 1:
                self.age(bucket)
                assert bucket.raw.fetch(url).headers["x-amz-meta-turn"] == str(turn)

    def test_a_url_that_has_expired(self, bucket):
        bucket.put("key", b"data")
        url = self.url(bucket, expires=1)
        assert bucket.raw.fetch(url).body == b"data"

        def expired() -> bool:
            return bucket.raw.fetch(url).status == 403

        poll(expired, 10)
        expect.error(bucket.raw.fetch(url), "AccessDenied", "Request has expired")

    def test_nobody_gets_what_they_may_not(self, bucket):
        bucket.put("key", b"data")
        assert bucket.raw.fetch(self.url(bucket)).body == b"data"
        assert bucket.raw.get(bucket.path("key")).body == b"data"
        expect.error(bucket.raw.get(bucket.path("key"), anonymous=True), "AccessDenied")
        wrong = SIGNER.with_(secret_key="wrong").presign("GET", bucket.path("key"), bucket.raw.host)
        expect.error(bucket.raw.fetch(wrong), "SignatureDoesNotMatch")

    def test_what_is_signed_is_not_kept(self, bucket, asked):
        bucket.put("key", b"data")
        for _ in range(3):
            assert bucket.raw.get(bucket.path("key")).body == b"data"
        asked(**{"2xx": 3, "3xx": 0})

    def test_what_is_stored_compressed_stays_so(self, bucket):
        data = bytes.fromhex("1f8b08000000000000034b492c4904006dd5adf304000000")
        bucket.put("key", data, headers={"content-encoding": "gzip"})
        for _ in range(2):
            answer = bucket.raw.fetch(self.url(bucket))
            assert (answer.body, answer.headers["content-encoding"]) == (data, "gzip")

    def test_what_is_too_large_goes_through(self, bucket):
        bucket.put("key", pattern(65 * MIB))
        url = self.url(bucket)
        for _ in range(2):
            answer = bucket.raw.fetch(url)
            assert answer.body == pattern(65 * MIB)
            assert "x-varnish" not in answer.headers

    def test_many_at_once(self, bucket):
        bucket.put("key", pattern(MIB))
        url = self.url(bucket)
        with ThreadPoolExecutor(8) as pool:
            for answer in pool.map(lambda _: bucket.raw.fetch(url), range(40)):
                assert answer.body == pattern(MIB)
