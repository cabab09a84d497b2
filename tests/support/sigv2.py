"""Presigned URLs of AWS signature version 2, as SDKs make them: what is signed of the headers is in the query."""

import base64
import hashlib
import hmac
import time

from .sigv4 import Pairs, Signer, encode_query


def presign_v2(signer: Signer, method: str, path: str, query: Pairs) -> str:
    """The path and query of a URL for path style, whose headers are among its parameters."""
    names = {name.lower(): value for name, value in query}
    expires = str(int(time.time()) + 300)
    amz = [f"{name}:{value}" for name, value in sorted(names.items()) if name.startswith("x-amz-")]
    asked = sorted(f"{name}={value}" for name, value in names.items() if name.startswith("response-"))
    resource = path + ("?" + "&".join(asked) if asked else "")
    described = [names.get("content-md5", ""), names.get("content-type", "")]
    text = "\n".join([method, *described, expires, *amz, resource])
    mac = hmac.new(signer.secret_key.encode(), text.encode(), hashlib.sha1).digest()
    own = [("AWSAccessKeyId", signer.access_key), ("Expires", expires)]
    own.append(("Signature", base64.b64encode(mac).decode()))
    return f"{path}?{encode_query([*query, *own])}"
