"""When tests have nothing to say. Apart from the rest, which runs where there is no pytest too (`tests/power`)."""

import os

import pytest

from .server import SIDECARS

needs_attributes = pytest.mark.skipif(
    SIDECARS, reason="is about records in attributes; test_sidecar is about files"
)

needs_impersonation = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users"),
    pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files"),
]
