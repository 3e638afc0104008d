"""Fixtures for tests that drive a real gdb."""

import shutil
import sys
from pathlib import Path

import pytest

NEWEST = Path(sys.executable).parent / "gdb"
"""gdb of the `gdb-for-pwndbg` package, beside the distribution's."""


def gdbs():
    """Every gdb that the suite must pass on. One that is not installed fails its tests: a skip would hide it."""
    return [shutil.which("gdb", path="/usr/local/bin:/usr/bin:/bin") or "gdb", str(NEWEST)]


@pytest.fixture(params=["distribution", "newest"])
def any_gdb(request):
    """Path of a gdb; the test runs once with each."""
    return gdbs()[request.param == "newest"]
