"""Source files in few characters."""

from __future__ import annotations

_PLAIN = ("__init__", "__main__", "_utils", "api", "base", "common", "core", "main", "util", "utils")
_SAYS_NOTHING = frozenset(f"{name}.py" for name in _PLAIN)
"""Names that many packages have: they say nothing without their folder."""


def short_file(path: str) -> str:
    """`attention.cc`; `tqdm/utils.py` where the name alone says nothing."""
    folder, _, file = path.replace("\\", "/").rpartition("/")
    return f"{folder.rpartition('/')[2]}/{file}".lstrip("/") if file in _SAYS_NOTHING else file
