"""A bucket as the tests use it: through the raw client, and as a directory."""

import base64
import hashlib
import itertools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_plus

from file_systems import mounts

from . import expect, sigv4, xml
from .server import MAKER, Server, objects_on_disk
from .wire import RawClient, Response, key_path, poll

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Bucket:
    server: Server
    name: str

    @property
    def raw(self) -> RawClient:
        return self.server.raw

    @property
    def tree(self) -> Path:
        return self.server.tree / self.name

    def path(self, key: str | None = None) -> str:
        """The path in a URL."""
        return key_path(self.name, key)

    def file(self, key: str) -> Path:
        """The file of a plain key."""
        return self.tree / key

    def files(self) -> list[str]:
        return objects_on_disk(self.tree)

    def await_clock(self, key: str) -> None:
        """Waits until what is written now has another time than the file of a key, however coarse the file system's clock is."""
        before, probe = self.file(key).stat().st_mtime_ns, self.server.tree / ".clock"

        def moved_on() -> bool:
            probe.write_bytes(b"x")
            return probe.stat().st_mtime_ns > before

        try:
            poll(moved_on, 5)
        finally:
            probe.unlink(missing_ok=True)

    def create(self) -> "Bucket":
        expect.ok(self.raw.put(self.path()))
        if MAKER:
            subprocess.run([MAKER, self.tree], check=True)
        return self

    def unblock(self) -> "Bucket":
        """Deletes the public access block, which a new bucket has, so that a policy may let anybody in."""
        expect.ok(self.raw.delete(self.path(), query={"publicAccessBlock": ""}), 204)
        return self

    def remove(self) -> None:
        """DeleteBucket, which must succeed. A mount point is refused, until its administrator has unmounted it."""
        if mounts.is_mounted(self.tree):
            expect.error(
                self.raw.delete(self.path()), "AccessDenied", re.compile("is a mount point on the server")
            )
            mounts.unmount(self.tree)
        expect.ok(self.raw.delete(self.path()), 204)

    def put(self, key: str, body: bytes = b"", **options) -> Response:
        """PutObject, which must succeed."""
        return expect.ok(self.raw.put(self.path(key), body, **options))

    def get(self, key: str, **options) -> Response:
        return self.raw.get(self.path(key), **options)

    def head(self, key: str, **options) -> Response:
        return self.raw.head(self.path(key), **options)

    def delete(self, key: str, **options) -> Response:
        return self.raw.delete(self.path(key), **options)

    def read(self, key: str) -> bytes:
        return expect.ok(self.get(key)).body

    def exists(self, key: str) -> bool:
        return self.head(key).status == 200

    def page(self, **query: str) -> xml.Element:
        """One page of ListObjectsV2. Underscores in names stand for hyphens."""
        query = {name.replace("_", "-"): value for name, value in query.items()}
        return expect.ok(self.raw.get(self.path(), query={"list-type": "2", **query})).xml

    def keys(self, **query: str) -> list[str]:
        """All keys, over as many pages as it takes."""
        keys: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = self.page(encoding_type="url", **query, **token)
            keys += [unquote_plus(entry["Key"]) for entry in page.all("Contents")]
            if page["IsTruncated"] == "false":
                return keys
            token = {"continuation_token": page["NextContinuationToken"]}

    def delete_many(self, *keys: str) -> Response:
        """DeleteObjects."""
        body = xml.element("Delete", *(xml.element("Object", Key=key) for key in keys)).encode()
        digest = base64.b64encode(hashlib.md5(body).digest()).decode()
        return self.raw.post(self.path(), body, query={"delete": ""}, headers={"content-md5": digest})

    def is_untouched(self) -> bool:
        """Whether no object is there, to the wire and to the eye."""
        return self.keys() == [] and self.files() == []

    # Multipart uploads.

    def create_upload(self, key: str, **options) -> str:
        response = expect.ok(self.raw.post(self.path(key), query={"uploads": ""}, **options))
        return response.xml["UploadId"]

    def put_part(self, key: str, upload_id: str, number: int, body: bytes, **options) -> Response:
        query = {"partNumber": str(number), "uploadId": upload_id}
        return self.raw.put(self.path(key), body, query=query, **options)

    def complete(self, key: str, upload_id: str, parts: list[tuple[int, str]] | bytes, **options) -> Response:
        """CompleteMultipartUpload with (number, ETag) pairs, or a document."""
        body = parts if isinstance(parts, bytes) else complete_document(parts)
        return self.raw.post(self.path(key), body, query={"uploadId": upload_id}, **options)

    def abort(self, key: str, upload_id: str) -> Response:
        return self.raw.delete(self.path(key), query={"uploadId": upload_id})

    def upload(self, key: str, parts: list[bytes], **options) -> Response:
        """A whole multipart upload, which must succeed."""
        upload_id = self.create_upload(key, **options)
        etags = [expect.ok(self.put_part(key, upload_id, n, part)).etag for n, part in enumerate(parts, 1)]
        return expect.ok(self.complete(key, upload_id, list(enumerate(etags, 1))))

    def put_chunked(
        self,
        key: str,
        framed: bytes,
        length: int | None,
        payload: str,
        *,
        headers: dict[str, str | None] | None = None,
        **options,
    ) -> Response:
        """PutObject of a body that is in aws-chunked framing already."""
        decoded = {} if length is None else {"x-amz-decoded-content-length": str(length)}
        return self.raw.put(
            self.path(key), framed, payload=payload, headers={**decoded, **(headers or {})}, **options
        )

    def put_signed_chunks(
        self,
        key: str,
        data: bytes,
        *,
        size: int = 64 << 10,
        spoil: str = "",
        trailers: list[tuple[str, str]] | None = None,
        length: int | None = None,
        headers: dict[str, str | None] | None = None,
    ) -> Response:
        """PutObject with a signature on each chunk, and on the trailers if there are any."""
        payload = sigv4.STREAMING if trailers is None else sigv4.STREAMING_TRAILER
        named = {} if trailers is None else {"x-amz-trailer": ",".join(name for name, _ in trailers)}
        signer = self.raw.signer.with_(at=self.raw.signer.now())
        # The length of the framing does not depend on the signatures in it.
        blank = sigv4.ChunkSigner(signer, signer.now(), "0" * 64)
        framed_length = len(sigv4.frame(data, size, chunks=blank, trailers=trailers))
        headers = {
            "content-encoding": "aws-chunked",
            "x-amz-decoded-content-length": str(len(data) if length is None else length),
            "content-length": str(framed_length),
            **named,
            **(headers or {}),
        }
        request = self.raw.prepare("PUT", self.path(key), headers=headers, payload=payload, signer=signer)
        chunks = sigv4.ChunkSigner(signer, signer.now(), request.signature)
        framed = sigv4.frame(data, size, chunks=chunks, trailers=trailers, spoil=spoil)
        assert len(framed) == framed_length
        with self.raw.connect() as connection:
            connection.send_as_far_as_possible(request.head + framed)
            return connection.response()


def unique_bucket_name(test: str) -> str:
    """A name that tells whose bucket it is. Workers share nothing, so that counting is enough."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:40].strip("-")
    return f"b{next(_numbers)}-{words}"


def complete_document(parts: list[tuple[int, str]]) -> bytes:
    entries = [xml.element("Part", PartNumber=number, ETag=etag) for number, etag in parts]
    return xml.element("CompleteMultipartUpload", *entries).encode()
