"""Checksums as S3 writes them: base64, big-endian. CRCs and xxHashes are Amazon's own code."""

import base64
import hashlib
from collections.abc import Callable

from awscrt import checksums as crt


def _xxhash(method: str) -> Callable[[bytes], bytes]:
    return lambda data: getattr(crt.XXHash, f"compute_{method}")(data)


_DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "CRC32": lambda data: crt.crc32(data).to_bytes(4, "big"),
    "CRC32C": lambda data: crt.crc32c(data).to_bytes(4, "big"),
    "CRC64NVME": lambda data: crt.crc64nvme(data).to_bytes(8, "big"),
    "SHA1": lambda data: hashlib.sha1(data).digest(),
    "SHA256": lambda data: hashlib.sha256(data).digest(),
    "SHA512": lambda data: hashlib.sha512(data).digest(),
    "MD5": lambda data: hashlib.md5(data).digest(),
    "XXHASH64": _xxhash("xxhash64"),
    "XXHASH3": _xxhash("xxhash3_64"),
    "XXHASH128": _xxhash("xxhash3_128"),
}

ALGORITHMS = list(_DIGESTS)
# A whole object's value follows from those of its parts.
FULL_OBJECT = ["CRC32", "CRC32C", "CRC64NVME"]
COMPOSITE = [name for name in ALGORITHMS if name != "CRC64NVME"]


def digest(algorithm: str, data: bytes) -> bytes:
    return _DIGESTS[algorithm](data)


def checksum(algorithm: str, data: bytes) -> str:
    return base64.b64encode(digest(algorithm, data)).decode()


def composite(algorithm: str, parts: list[bytes]) -> str:
    """The checksum of the parts' checksums, as S3 shows it."""
    together = b"".join(digest(algorithm, part) for part in parts)
    return f"{checksum(algorithm, together)}-{len(parts)}"


def header(algorithm: str) -> str:
    return f"x-amz-checksum-{algorithm.lower()}"


def content_md5(data: bytes) -> str:
    return checksum("MD5", data)


def multipart_etag(parts: list[bytes]) -> str:
    md5s = b"".join(hashlib.md5(part).digest() for part in parts)
    return f'"{hashlib.md5(md5s).hexdigest()}-{len(parts)}"'
