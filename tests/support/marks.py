"""When tests have nothing to say. Apart from the rest, which runs where there is no pytest too (`tests/power`)."""

import pytest

from .server import SIDECARS

needs_attributes = pytest.mark.skipif(
    SIDECARS, reason="is about records in attributes; test_sidecar is about files"
)
