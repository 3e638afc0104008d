"""Small files of /proc, read in one go: by a descriptor, for a stream takes twice the time."""

from __future__ import annotations

import os
from typing import List

_LONGEST = 1 << 16  # bytes


def read_text(path: str) -> str:
    """Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def text_of(path: str) -> str:
    """Nothing, where it cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return ""


def threads_of(pid: int, proc: str = "/proc") -> List[int]:
    """In the kernel's order, the main thread first; none of a process that is gone."""
    try:
        return [int(name) for name in os.listdir(f"{proc}/{pid}/task")]
    except OSError:
        return []
