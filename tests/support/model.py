"""What a listing must be, by the book: a model in a dozen lines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    keys: list[str]
    prefixes: list[str]
    truncated: bool
    last: str


def list_page(all_keys: list[str], prefix: str, delimiter: str, after: str, size: int) -> Page:
    """The page that follows `after`, a key, or the common prefix that ended the page before.

    Where `after` lies amid the keys of a common prefix, what is left of them still shows it.
    """
    items: list[tuple[str, bool]] = []
    for key in sorted(all_keys, key=str.encode):
        if not key.startswith(prefix) or key.encode() <= after.encode():
            continue
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        item = (key, False) if cut < 0 else (key[: cut + len(delimiter)], True)
        if item != (after, True) and (not items or items[-1] != item):
            items.append(item)
    page = items[:size]
    keys = [text for text, is_prefix in page if not is_prefix]
    prefixes = [text for text, is_prefix in page if is_prefix]
    return Page(keys, prefixes, len(items) > size, page[-1][0] if page else "")
