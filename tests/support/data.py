"""Bytes and headers that several tests store."""

MIB = 1 << 20
PART = 5 * MIB

SYSTEM_HEADERS = {
    "content-type": "text/x-odd; charset=utf-8",
    "content-encoding": "zstd",
    "content-language": "de, fr",
    "content-disposition": 'attachment; filename="f\'f.txt"',
    "cache-control": "max-age=17, private",
    "expires": "Wed, 21 Oct 2032 07:28:00 GMT",
}


def pattern(size: int, seed: int = 0) -> bytes:
    """Bytes in which every position can be told from its neighbours."""
    block = b"".join((i + seed * 4096).to_bytes(4, "big") for i in range(4096))
    return (block * (size // len(block) + 1))[:size]
