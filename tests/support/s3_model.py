"""The S3 API as botocore's model describes it: operations, with their headers and parameters.

The model is that of the botocore that is installed (tests/requirements.txt pins it); `SLIPWAY_S3_MODEL` names another
`service-2.json`, plain or gzipped.
"""

import gzip
import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import botocore


@dataclass(frozen=True)
class Modelled:
    """One operation of the model."""

    name: str
    method: str
    shape: str
    """`Service`, `Bucket` or `Object`."""
    selector: str | None
    """The subresource in its URI."""
    headers: tuple[str, ...]
    """In lower case; `x-amz-meta-` stands for all that begin so."""
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def _model_file() -> Path:
    if path := os.environ.get("SLIPWAY_S3_MODEL"):
        return Path(path)
    folder = Path(botocore.__file__).parent / "data" / "s3" / "2006-03-01"
    return next(folder.glob("service-2.json*"))


@cache
def operations() -> dict[str, Modelled]:
    file = _model_file()
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    model = json.loads(text)
    return {name: _modelled(name, entry, model["shapes"]) for name, entry in model["operations"].items()}


def _modelled(name: str, entry: dict, shapes: dict) -> Modelled:
    path, _, query = entry["http"]["requestUri"].partition("?")
    shape = "Object" if "{Key+}" in path else "Bucket" if "{Bucket}" in path else "Service"
    members = shapes[entry["input"]["shape"]]["members"].values() if "input" in entry else []
    places = [(member.get("location"), member.get("locationName")) for member in members]
    return Modelled(
        name,
        entry["http"]["method"],
        shape,
        re.split("[=&]", query)[0] or None,
        tuple(sorted(text.lower() for place, text in places if place in ("header", "headers"))),
        tuple(sorted(text for place, text in places if place == "querystring")),
    )


def all_headers() -> list[str]:
    return sorted({header for operation in operations().values() for header in operation.headers})


def all_parameters() -> list[str]:
    """Every parameter that some operation has, subresources among them."""
    names = {name for operation in operations().values() for name in operation.parameters}
    return sorted(names | {operation.selector for operation in operations().values() if operation.selector})
