"""What a user without privileges needs to run gdbext, in a folder that is open to all: a checkout, its environment and
its interpreter may lie below somebody's closed home."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

import gdbext
from tests.inferiors.capture_process import build

NOBODY = 65534
USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
_KEPT = ("tabulate", "pygments", "elftools")  # install_requires of setup.py
_PYTHONS = (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3")


@functools.lru_cache(maxsize=None)
def place() -> Path:
    """A folder with copies of gdbext and of the libraries that it needs; gone when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="gdbext-open-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    for name in _KEPT:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        _copy(Path(found.origin), folder)
    _copy(Path(gdbext.__file__), folder)
    return folder


def _copy(origin: Path, folder: Path) -> None:
    """A module, or the whole package of an `__init__.py`."""
    if origin.name != "__init__.py":
        shutil.copy(origin, folder)
        return
    shutil.copytree(origin.parent, folder / origin.parent.name, ignore=shutil.ignore_patterns("__pycache__"))


@functools.lru_cache(maxsize=None)
def program(path: str = "") -> str:
    """A copy of a file, of capture_threads when none is named."""
    return shutil.copy(path or build(), place())


def environment() -> Dict[str, str]:
    """Of a Python that finds the copies."""
    return {**os.environ, "PYTHONPATH": str(place()), "PYTHONDONTWRITEBYTECODE": "1"}


@functools.lru_cache(maxsize=None)
def python() -> str:
    """An interpreter that the user can run. setpriv starts one in a closed folder, too, and it finds no library."""
    words = ["-c", "import gdbext.collect.live_ranks, gdbext.render"]
    said = ""
    for path in filter(os.path.exists, _PYTHONS):
        done = subprocess.run([*USER, path, *words], cwd="/", env=environment(), capture_output=True, text=True)
        if done.returncode == 0:
            return path
        said += f"{path}: {done.stderr}\n"
    raise AssertionError(f"install a Python for all users, as /usr/bin/python3:\n{said}")
