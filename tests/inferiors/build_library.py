"""Builds a shared library of tests/inferiors once per content of its source."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "build"
_COMMAND = (
    *("g++", "-std=c++17", "-g", "-O1", "-fno-omit-frame-pointer", "-fPIC", "-shared", "-pthread"),
    *("-Wall", "-Wextra", "-Werror"),
)


def shared_library(source: Path, name: str) -> Path:
    """The library, as build/HASH/NAME: engines are told by the paths of their libraries."""
    mark = hashlib.sha256(source.read_bytes() + " ".join(_COMMAND).encode()).hexdigest()[:12]
    made = BUILD / f"{source.parent.name}-{mark}" / name
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=made.parent)
        os.close(handle)
        subprocess.run([*_COMMAND, str(source), "-o", draft], check=True)
        os.rename(draft, made)
    return made
