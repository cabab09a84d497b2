"""Trees as other gateways leave them, by the formats that they have."""

import json
import os
from pathlib import Path

from .tools import md5


def versitygw_file(bucket: Path, name: str, data: bytes, attributes: dict[str, bytes] | None = None) -> Path:
    """A file with the attributes that versitygw gives it."""
    path = bucket / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    given = {"etag": f'"{md5(data)}"'.encode(), "content-type": b"text/x-peer", **(attributes or {})}
    for attribute, value in given.items():
        os.setxattr(path, f"user.{attribute}", value)
    return path


def minio_tree(tree: Path) -> None:
    """What MinIO's "fs" backend leaves beside the buckets."""
    (tree / ".minio.sys" / "multipart").mkdir(parents=True)
    (tree / ".minio.sys" / "format.json").write_text(
        '{"version":"1","format":"fs","id":"6d2d0d4e-3c2b-4a52-b0b7-1f1f1f1f1f1f","fs":{"version":"2"}}'
    )


def minio_file(
    tree: Path,
    bucket: str,
    key: str,
    data: bytes,
    meta: dict[str, str] | str | None,
    parts: tuple[int, ...] = (),
) -> Path:
    """An object, and what MinIO wrote of it after it."""
    path = tree / bucket / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if meta is not None:
        known = tree / ".minio.sys" / "buckets" / bucket / key / "fs.json"
        known.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(meta, str):
            sizes = [
                {"number": n, "etag": "", "size": size, "actualSize": size} for n, size in enumerate(parts, 1)
            ]
            checksums = {"algorithm": "", "blocksize": 0, "hashes": None}
            document = {"version": "1.0.2", "checksum": checksums, "meta": {"etag": md5(data), **meta}}
            meta = json.dumps({**document, **({"parts": sizes} if sizes else {})})
        known.write_text(meta)
    return path
