"""Which paths lie on a file system that may not answer: by the table of mounts, without a look at any of them."""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from gdbext.knowledge.runtimes.file_systems import MAY_HANG, MAY_HANG_FAMILIES
from gdbext.safe_open import path_lookup

_FRESH = 5.0  # seconds that a table counts
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mount that may not answer. `point` is as the processes of its namespace see it."""

    point: str
    kind: str


_known: Dict[str, Tuple[float, Tuple[Mount, ...]]] = {}


def doubtful_mounts(root: Optional[str]) -> Tuple[Mount, ...]:
    """Those that a process sees; `root`: its root or its cwd in /proc/PID, or None for ours. Nothing where there is no
    table."""
    folder = os.path.dirname(root) if root else "/proc/self"
    try:
        key = os.readlink(f"{folder}/ns/mnt") + os.readlink(f"{folder}/root")
    except OSError:
        return ()
    at, found = _known.get(key, (0.0, ()))
    now = time.monotonic()
    if not at or now - at > _FRESH:
        found = tuple(sorted(_read(f"{folder}/mountinfo"), key=lambda mount: -len(mount.point)))
        _known.clear() if len(_known) > 64 else None
        _known[key] = now, found
    return found


def mount_of(path: str, root: Optional[str]) -> Optional[Mount]:
    """The mount that may not answer and that a path below `root` lies on, by its name alone; links are not followed."""
    mounts = doubtful_mounts(root)
    if not mounts:
        return None
    try:
        if root is None and path_lookup.is_of_the_kernel(path):
            path = os.readlink(path)
        elif root is not None and root.endswith("/cwd"):
            path = os.readlink(root) + "/" + path
    except OSError:
        return None
    whole = os.path.normpath(path if path.startswith("/") else os.path.join(os.getcwd(), path))
    return next((one for one in mounts if whole == one.point or whole.startswith(one.point.rstrip("/") + "/")), None)


def _read(path: str) -> Iterator[Mount]:
    try:
        with open(path, "rb") as file:  # of the kernel
            lines: List[bytes] = file.read().split(b"\n")
    except OSError:
        return
    for line in lines:
        first, dash, rest = line.decode("utf-8", "surrogateescape").partition(" - ")
        fields, kind = first.split(" "), rest.split(" ", 1)[0]
        if dash and len(fields) > 4 and (kind in MAY_HANG or kind.startswith(MAY_HANG_FAMILIES)):
            yield Mount(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4]), kind)
