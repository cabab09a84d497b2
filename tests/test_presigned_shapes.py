"""Presigned URLs as each SDK makes them, made here by the suite's own signer: what is moved into the query,
what is signed as a header.

`sdks/run.py` does the same with the SDKs themselves, and sees that the shapes are theirs.
"""

import pytest
from sdks.presigned import CASES
from sdks.shapes import REQUESTS, SHAPES, key

MADE = [(name, case) for name, shape in SHAPES.items() for case in REQUESTS if case not in shape.without]


@pytest.mark.parametrize("name, case", MADE)
def test_shape(bucket, name, case):
    url = SHAPES[name].url(case, bucket.raw.signer, bucket.path(key(case)), bucket.raw.host)
    CASES[case](bucket, url)
