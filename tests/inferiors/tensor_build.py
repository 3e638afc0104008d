"""Builds the programs that hold tensors as the engines do, once per content of their sources and flags."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Sequence

SOURCES = Path(__file__).resolve().parent / "tensors"
BUILD = Path(__file__).resolve().parent / "build"


def program(
    source: str, *flags: str, compiler: Sequence[str] = ("g++", "-std=c++17"), libraries: Sequence[str] = ()
) -> Path:
    """Path of the program made from `source` (a name in tensors/) with these flags."""
    command = [*compiler, "-Wall", "-Wextra", "-Werror", *flags]
    text = (
        b"".join(path.read_bytes() for path in (SOURCES / source, *sorted(SOURCES.glob("*.h"))))
        + " ".join([*command, *libraries]).encode()
    )
    made = BUILD / f"{Path(source).stem}-{hashlib.sha256(text).hexdigest()[:12]}"
    if made.exists():
        return made
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "tensors.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            handle, draft = tempfile.mkstemp(dir=BUILD)
            os.close(handle)
            subprocess.run([*command, str(SOURCES / source), "-o", draft, *libraries], check=True)
            os.chmod(draft, 0o755)
            os.rename(draft, made)
    return made
