"""How this gdbext was installed: said by `gdbext --version`."""

from __future__ import annotations

import os
from pathlib import Path

import gdbext


def installed() -> str:
    """`one file, build 3f2a...`, `a clone`, `pip` or `a folder`, each with its place."""
    parent = Path(os.path.realpath(gdbext.__file__)).parents[1]
    try:
        build = (parent / "ONE_FILE").read_text("ascii")
        return f"one file, build {build[:12]}, unpacked in {parent}"
    except (OSError, ValueError):
        pass
    if (parent / ".git").exists():
        return f"a clone, {parent}"
    return f"{'pip' if next(parent.glob('gdbext-*.dist-info'), None) else 'a folder'}, {parent}"
