"""From a path that somebody else named to the place it means: looked up, not opened, and never outside of its root.

`/proc/PID/root/...` is followed inside of that root: else an absolute link, or `..`, in a container leads to a file of
the host. Links of the kernel (`/proc/self/fd/0`) are followed only where we named them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from typing import List, Optional, Tuple

_IN_A_ROOT = re.compile(r"(/proc/\d+/root)(/.*)?", re.DOTALL)
_OF_THE_KERNEL = re.compile(r"/proc/(?:\d+|self)/(?:exe|fd/\d+|map_files/[0-9a-f]+-[0-9a-f]+)")
_OPENAT2 = 437  # the number of the call on every machine
_NO_MAGIC_LINKS, _NO_SYMLINKS, _IN_ROOT = 0x02, 0x04, 0x10  # linux/openat2.h
_PLACE = os.O_PATH | os.O_CLOEXEC
_HERE = -100  # AT_FDCWD
_MOST_LINKS = 40  # as the kernel's
_TRIES = 8
_ABSENT = (errno.ENOSYS, errno.EPERM)  # an old kernel, or a filter that does not know the call

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    """struct open_how (openat2(2))."""

    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def split_root(path: str) -> Tuple[Optional[str], str]:
    """(/proc/PID/root, the path inside of it); the first is None for a path of ours."""
    found = _IN_A_ROOT.fullmatch(path)
    return (found[1], found[2] or "/") if found else (None, path)


def is_of_the_kernel(path: str) -> bool:
    """Whether the kernel leads to a file without looking at any name."""
    return _OF_THE_KERNEL.fullmatch(path) is not None


def place(path: str, root: Optional[str] = None, links: bool = True) -> int:
    """A descriptor that only stands for the place (O_PATH). Nothing there notices, be it a FIFO or a device.

    `root`: a folder that no link leads out of; None: that in the path itself, if it is one of /proc/PID/root. Without
    `links` a path with a symbolic link in it is refused with ELOOP. Raises `OSError`.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "its name has a NUL in it", path)
    if root is None:
        if is_of_the_kernel(path):
            return os.open(path, _PLACE)
        root, path = split_root(path)
    if root is None:
        return _look_up(_HERE, path, _NO_MAGIC_LINKS, links)
    top = os.open(root, _PLACE | os.O_DIRECTORY)
    try:
        return _look_up(top, path, _IN_ROOT | _NO_MAGIC_LINKS, links)
    finally:
        os.close(top)


def is_link(error: OSError) -> bool:
    """Whether `place` refused a path for a link in it."""
    return error.errno == errno.ELOOP


def _look_up(top: int, path: str, resolve: int, links: bool) -> int:
    how = _OpenHow(_PLACE, 0, resolve if links else resolve | _NO_SYMLINKS)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        found = int(_libc.syscall(_OPENAT2, top, name, ctypes.byref(how), ctypes.sizeof(how)))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number in _ABSENT:
            return _walk(top, path, links)
        if number not in (errno.EAGAIN, errno.EINTR):  # a rename or a mount in between
            break
    raise OSError(number, os.strerror(number), path)


def _walk(top: int, path: str, links: bool) -> int:
    """The same by hand, name by name, where the kernel has no openat2(2) (before 5.6)."""
    own = top == _HERE
    folders = [os.open("/" if path.startswith("/") else ".", _PLACE | os.O_DIRECTORY) if own else top]
    todo = path.split("/")[::-1]
    left = _MOST_LINKS if links else 0
    try:
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                if len(folders) > 1:
                    os.close(folders.pop())
                continue
            here = os.open(name, _PLACE | os.O_NOFOLLOW, dir_fd=folders[-1])
            folders.append(here)
            if not stat.S_ISLNK(os.fstat(here).st_mode):
                continue
            if not left:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            left -= 1
            text = os.readlink("", dir_fd=here)
            os.close(folders.pop())
            if text.startswith("/"):
                _close(folders, 1)
            todo += text.split("/")[::-1]
        return os.dup(folders[-1])
    finally:
        _close(folders, 0 if own else 1)


def _close(folders: List[int], first: int) -> None:
    while len(folders) > first:
        os.close(folders.pop())
