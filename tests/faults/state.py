"""What can be known of a bucket: by S3, and by looking at the tree."""

import hashlib
import os
import re
from pathlib import Path

from support.bucket import Bucket
from support.wire import Response
from support.xml import Element

ATTRIBUTE, SELF = "user.slipway", ".slipway,self"
RECORDS, OF_DIRECTORY = ".slipway,records", ".slipway,directory"
VOLATILE = ("date", "server", "x-amz-request-id", "x-amz-id-2", "last-modified", "connection")

# Directories of the server's own that stay once they were needed, as do lock files; receipts stay
# for a day.
KEPT = {
    ".slipway",
    ".slipway/.slipway,own",
    *(
        f".slipway/{name}"
        for name in ("staging", "locks", "overflow", "uploads", "completed", "scattered", "versions")
    ),
}


class Torn(AssertionError):
    """S3 tells different things about one object."""


def observe(bucket: Bucket) -> dict[str, object] | None:
    """All that S3 says of a bucket, but for times and ids: objects with bytes and headers, uploads with
    parts. None if there is no bucket."""
    response = bucket.raw.get(bucket.path(), query={"list-type": "2"})
    if response.code == "NoSuchBucket":
        return None
    if response.status != 200:
        raise Torn(f"listing: {response}")
    state: dict[str, object] = {}
    for entry in response.xml.all("Contents"):
        key = entry["Key"]
        got, head = bucket.get(key), bucket.head(key)
        if (got.status, head.status) != (200, 200):
            raise Torn(f"{key} is listed, and answers {got} and {head}")
        headers = told(got)
        if headers != told(head):
            raise Torn(f"{key}: GET says {headers}, HEAD says {told(head)}")
        md5 = hashlib.md5(got.body).hexdigest()
        etag = got.etag.strip('"')
        if (entry["ETag"].strip('"'), int(entry["Size"])) != (etag, len(got.body)):
            raise Torn(f"{key}: listed with {entry['ETag']} and {entry['Size']} bytes, GET says {got}")
        if "-" not in etag and etag != md5:
            raise Torn(f"{key}: {len(got.body)} bytes with MD5 {md5}, ETag {etag}")
        state[key] = (md5, headers)
    for key, version, latest, kind in versions(bucket):
        state.setdefault(f"versions of {key}", []).append(
            (kind, latest, observe_version(bucket, key, version, kind))
        )
    for upload in bucket.raw.get(bucket.path(), query={"uploads": ""}).xml.all("Upload"):
        parts = bucket.raw.get(bucket.path(upload["Key"]), query={"uploadId": upload["UploadId"]})
        if parts.status != 200:
            raise Torn(f"an upload of {upload['Key']} is listed, and answers {parts}")
        listed = [(part["PartNumber"], part["ETag"], part["Size"]) for part in parts.xml.all("Part")]
        state.setdefault(f"uploads of {upload['Key']}", []).append(listed)
    return state


def versions(bucket: Bucket) -> list[tuple[str, str, str, str]]:
    """Key, id, whether it is the latest, and kind of each version and delete marker; none of a bucket that never kept any."""
    setting = bucket.raw.get(bucket.path(), query={"versioning": ""})
    if setting.status != 200:
        raise Torn(f"versioning: {setting}")
    if not setting.xml.all("Status"):
        return []
    response = bucket.raw.get(bucket.path(), query={"versions": ""})
    if response.status != 200:
        raise Torn(f"listing of versions: {response}")
    entries = [
        entry for entry in map(Element, response.xml.node) if entry.name in ("Version", "DeleteMarker")
    ]
    return [(entry["Key"], entry["VersionId"], entry["IsLatest"], entry.name) for entry in entries]


def observe_version(bucket: Bucket, key: str, version: str, kind: str) -> object:
    """What S3 says of one version."""
    got = bucket.get(key, query={"versionId": version})
    if kind == "DeleteMarker":
        if got.status != 405:
            raise Torn(f"the delete marker {version} of {key} is listed, and answers {got}")
        return anonymous(version)
    if got.status != 200 or got.headers["x-amz-version-id"] != version:
        raise Torn(f"version {version} of {key} is listed, and answers {got}")
    return hashlib.md5(got.body).hexdigest(), told(got)


def anonymous(version: str) -> str:
    """An id as it is in every run."""
    return version if version == "null" else "some id"


def told(response: Response) -> tuple[tuple[str, str], ...]:
    # What the ETag of a foreign file is made of is random, too.
    pairs = (
        (name.lower(), re.sub(r'^"foreign-.*', "foreign", value)) for name, value in response.headers.pairs
    )
    pairs = ((name, anonymous(value) if name == "x-amz-version-id" else value) for name, value in pairs)
    return tuple(sorted(pair for pair in pairs if pair[0] not in VOLATILE))


def shape(root: Path, bucket: str) -> set[str]:
    """Every name in a bucket's tree, and those beside it, with what is random left out. Companions count only
    where no object mentions them."""
    found = {name for name in os.listdir(root) if name not in (".slipway", bucket)}
    records = []
    companions = []
    for directory, names, files in os.walk(root / bucket):
        if RECORDS in names:
            names.remove(RECORDS)
            of = set(os.listdir(Path(directory, RECORDS))) - {OF_DIRECTORY, *names, *files}
            found.update(f"{RECORDS}/{name} (of nothing)" for name in of)
        for name in [*names, *files]:
            path = Path(directory, name)
            relative = str(path.relative_to(root / bucket))
            record = attribute(path)
            records.append(record)
            if relative in KEPT or re.match(
                r"\.slipway/(locks/[0-9a-f]{2}$|completed/|converting$)", relative
            ):
                continue
            if relative.startswith(".slipway/scattered/") and (root / bucket / path.read_text()).is_dir():
                # A note stays as long as the directory that it names, in which something was
                # staged. Where a fault hides what a file system can do, a write stages beside
                # its target.
                continue
            if relative.startswith(".slipway/overflow/"):
                companions.append(name)
                continue
            plain = re.sub(r"[0-9a-f]{12,}", "*", relative)
            if name in names and set(os.listdir(path)) - {RECORDS} == {SELF}:
                # Where a file became a directory, and then nothing came into it.
                found.add(plain)
                continue
            if name == SELF and set(os.listdir(directory)) - {RECORDS} == {SELF}:
                continue
            if name in names:
                plain += "/" if record else "/ (unmarked)"
            found.add(plain)
    for name in companions:
        identity = bytes.fromhex(name)
        if not any(identity in record or identity[::-1] in record for record in records):
            found.add(".slipway/overflow/* (of no object)")
    return found


def attribute(path: Path) -> bytes:
    sidecar = path / RECORDS / OF_DIRECTORY if path.is_dir() else path.parent / RECORDS / path.name
    if sidecar.exists():
        return sidecar.read_bytes()
    try:
        return os.getxattr(path, ATTRIBUTE, follow_symlinks=False)
    except OSError:
        return b""


def strangers(root: Path, bucket: str, user: tuple[int, int]) -> list[str]:
    """Names in a bucket that do not belong to whom they should: the user, and in `.slipway` to this process's."""
    found = []
    for directory, names, files in os.walk(root / bucket):
        for name in [*names, *files]:
            path = Path(directory, name)
            status = path.lstat()
            relative = path.relative_to(root / bucket)
            wanted = (os.geteuid(), os.getegid()) if relative.parts[0] == ".slipway" else user
            if (status.st_uid, status.st_gid) != wanted:
                found.append(f"{relative} belongs to {status.st_uid}:{status.st_gid}")
    return sorted(found)
