"""README's picture shows what its commands print today."""

import os
import re
import subprocess
import sys

from support.marks import needs_attributes
from support.server import REPOSITORY, binary

PICTURES = REPOSITORY / "docs" / "picture"


@needs_attributes
def test_the_session_is_as_drawn():
    done = subprocess.run(
        [sys.executable, PICTURES / "make", "--check"],
        env={**os.environ, "SLIPWAY_BINARY": str(binary())},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_it():
    """And for who does not see it, says what is in it."""
    alternative, path = re.search(
        r"!\[(.*)\]\((docs/picture/.*)\)", (REPOSITORY / "README.md").read_text()
    ).groups()
    assert (REPOSITORY / path).is_file()
    assert len(alternative) > 20
