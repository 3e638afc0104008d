"""Fixtures for tests that drive a real gdb."""

import os
import shutil
import sys
import zlib
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


def pytest_generate_tests(metafunc):
    """`turn_gdb`: a path of a gdb as well, for what hardly depends on its release: tests take turns with them.

    GDBEXT_EVERY_GDB=1 runs each with all.
    """
    if "turn_gdb" in metafunc.fixturenames:
        turn = zlib.crc32(metafunc.function.__name__.encode()) % 2
        chosen = (0, 1) if os.environ.get("GDBEXT_EVERY_GDB") else (turn,)
        names = [("distribution", "newest")[number] for number in chosen]
        metafunc.parametrize("turn_gdb", [gdbs()[number] for number in chosen], ids=names)
