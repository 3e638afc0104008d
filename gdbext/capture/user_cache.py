"""Small files between two looks: in the user's folder for caches, bounded, and never needed.

Whatever is wrong with the folder or a file, the answer is "nothing kept": it can be deleted at any time, shared by
hosts, full or read-only. What another user could have written is not read.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from typing import List, Optional, Tuple

LIMIT = 256 << 20  # bytes of all files; the longest unused go first
_ENTRY = re.compile(r"[\w.-]{1,200}")
_OFF = "GDBEXT_CACHE"  # =off: nothing is kept


def folder_of(environ: Optional[os._Environ[str]] = None) -> Optional[str]:
    """The folder, made when it is missing; `None` when there is none that is ours alone."""
    known = os.environ if environ is None else environ
    if known.get(_OFF, "").lower() in ("off", "0", "no"):
        return None
    base = known.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as its specification wants it
        home = known.get("HOME", "")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    path = os.path.join(base, "gdbext")
    try:
        os.makedirs(base, 0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
    except OSError:
        return None
    return path if stat.S_ISDIR(found.st_mode) and _is_own_folder(found) else None


def _is_own_folder(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def read(folder: Optional[str], name: str, limit: int = LIMIT) -> Optional[bytes]:
    """The content of a file that we wrote; it counts as used now."""
    if folder is None or not _ENTRY.fullmatch(name):
        return None
    path = os.path.join(folder, name)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or not _is_own_folder(found) or found.st_size > limit:
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        os.utime(path)
    return data


def write(folder: Optional[str], name: str, data: bytes, limit: int = LIMIT) -> bool:
    """Keep a file, whole or not at all; False when it cannot be."""
    if folder is None or not _ENTRY.fullmatch(name) or len(data) > limit:
        return False
    draft = None
    try:
        descriptor, draft = tempfile.mkstemp(prefix=".new-", dir=folder)  # 0600
        with open(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(draft, os.path.join(folder, name))
    except OSError:
        if draft is not None:
            remove_file(draft)
        return False
    _shrink(folder, limit)
    return True


def remove_file(path: str) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _shrink(folder: str, limit: int) -> None:
    """The longest unused go, drafts of writers that died among them, until the rest fits."""
    files: List[Tuple[float, int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    files.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            return
        remove_file(path)
        total -= size
