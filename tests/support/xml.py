"""XML documents without their namespaces."""

import re
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape


class Element:
    """An element as a small dictionary: `doc["Key"]` is the text of its only child `Key`."""

    def __init__(self, node: ElementTree.Element) -> None:
        self.node = node

    @property
    def name(self) -> str:
        return self.node.tag.rpartition("}")[2]

    @property
    def text(self) -> str:
        return self.node.text or ""

    def all(self, name: str) -> list["Element"]:
        return [child for child in map(Element, self.node) if child.name == name]

    def texts(self, name: str) -> list[str]:
        return [child.text for child in self.all(name)]

    def get(self, name: str, default: str | None = None) -> str | None:
        found = self.all(name)
        assert len(found) <= 1, f"{len(found)} elements {name} in {self.name}"
        return found[0].text if found else default

    def child(self, name: str) -> "Element":
        (child,) = self.all(name)
        return child

    def __getitem__(self, name: str) -> str:
        return self.child(name).text

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))

    def names(self) -> list[str]:
        return [Element(child).name for child in self.node]


# References to characters that XML 1.0 does not have. S3 writes them where a key has such
# characters.
_ILLEGAL = re.compile(
    rb"&#(?:x0*(?:[0-8BCEF]|1[0-9A-F]|FFF[EF])|0*(?:[0-8]|1[12]|1[4-9]|2[0-9]|3[01]));", re.IGNORECASE
)


def parse(text: bytes) -> Element:
    """Reads a document; what no XML parser takes becomes U+FFFD."""
    return Element(ElementTree.fromstring(_ILLEGAL.sub("\ufffd".encode(), text)))


def element(name: str, *content: str, **children: object) -> str:
    """`<name>` with children by keyword and raw content."""
    inner = "".join(f"<{key}>{escape(str(value))}</{key}>" for key, value in children.items())
    return f"<{name}>{inner}{''.join(content)}</{name}>"
