"""Programs on PATH that nobody else can have put there.

gdb is often run as root, on ranks of others, with the PATH of a user (`sudo -E`, a container's shell). A program in the
present folder, or in one that others can write, would then run as root. So the search passes over folders that are not
absolute, over what everybody can replace, and, as root, over what another user or group can replace. The owner of
gdbext is trusted: that code runs already. A program that is named by its path is taken as it is.
"""

from __future__ import annotations

import functools
import os
import stat
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

import gdbext

_OVERFLOW = 65534  # of kernel.overflowuid: an owner that has no number in this user namespace


class Search(NamedTuple):
    """`path`: the program, None where there is none. `passed_over`: others of that name before it, and why."""

    path: Optional[str]
    passed_over: Tuple[str, ...] = ()


def find(name: str, environ: Optional[Mapping[str, str]] = None) -> Search:
    """The program of that name; of that path where it has a slash."""
    environ = os.environ if environ is None else environ
    if os.sep in name:
        return Search(name if _runs(name) else None)
    passed_over: List[str] = []
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if not _runs(path):
            continue
        why = why_not(path)
        if why is None:
            return Search(path, tuple(passed_over))
        passed_over.append(f"{path} ({why})")
    return Search(None, tuple(passed_over))


def why_not(path: str) -> Optional[str]:
    """Who else could have put a program there, or may replace it; `None`: nobody."""
    if not os.path.isabs(path):
        return "PATH contains the current directory"
    for step in _steps(path):
        try:
            who = _who_else(step)
        except OSError as error:
            return f"{step}: {error.strerror}"
        if who is not None:
            return f"{who} can replace {'it' if step == path else step}"
    return None


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _steps(path: str) -> List[str]:
    """The program, the folders above it, and the same of each link on the way."""
    found: Dict[str, None] = {}
    left = [path]
    while left:
        step = left.pop()
        while step not in found:
            found[step] = None
            folder = os.path.dirname(step)
            if os.path.islink(step):
                left.append(os.path.normpath(os.path.join(os.path.realpath(folder), os.readlink(step))))
            step = folder
    return list(found)


def _who_else(step: str) -> Optional[str]:
    found, above = os.lstat(step), os.stat(os.path.dirname(step))
    mode = 0 if stat.S_ISLNK(found.st_mode) else found.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        mode = 0  # what others put there is looked at by its owner
    if mode & stat.S_IWOTH:
        return "everybody"
    root = os.geteuid() == 0
    if (root or above.st_mode & stat.S_IWOTH) and found.st_uid not in _trusted():
        return f"user {found.st_uid}"
    return f"group {found.st_gid}" if root and mode & stat.S_IWGRP and found.st_gid != 0 else None


@functools.lru_cache(maxsize=None)
def _trusted() -> FrozenSet[int]:
    """Root, this user, and the owner of gdbext. In a user namespace owners from outside have a number of their own."""
    found = {0, os.geteuid(), os.stat(gdbext.__file__).st_uid}
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            if file.read().split() != ["0", "0", "4294967295"]:
                found.add(_OVERFLOW)
    except OSError:
        pass  # no user namespaces
    return frozenset(found)
