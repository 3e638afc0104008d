"""What the rooms call: a regular file or a folder, by a path that a target, a core file or a snapshot named."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import BinaryIO, Iterator, List, Optional

from gdbext.safe_open import path_lookup, regular_files
from gdbext.safe_open.mounts import doubtful_mounts, mount_of
from gdbext.safe_open.regular_files import LARGEST
from gdbext.safe_open.slow_mounts import NoHelper, Patient

_slow = Patient()


def descriptor(path: str, root: Optional[str] = None, most: int = LARGEST) -> int:
    """To read a regular file, of `root` where that is given (see lookup.place). Raises `OSError`: `regular.Refused`
    for what is none, TimeoutError where nobody answers. Never waits for longer than `slow_mounts.SECONDS`."""
    return _open(path, root, most, folder=False)


def stream(path: str, root: Optional[str] = None, most: int = LARGEST) -> BinaryIO:
    """The same as a file object."""
    return os.fdopen(descriptor(path, root, most), "rb")


def read_beginning(path: str, size: int) -> bytes:
    """The first bytes of a regular file, as of one with text in it. Raises `OSError`."""
    with stream(path) as file:
        return file.read(size)


def status(path: str, root: Optional[str] = None) -> os.stat_result:
    """Of a regular file that can be read. Raises `OSError`."""
    opened = descriptor(path, root)
    try:
        return os.fstat(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def folder(path: str, root: Optional[str] = None) -> Iterator[int]:
    """A descriptor of a folder, for os.scandir, os.statvfs and the like. Raises `OSError`."""
    opened = _open(path, root, 0, folder=True)
    try:
        yield opened
    finally:
        os.close(opened)


def names_in(path: str, most: int) -> List[str]:
    """Names in a folder, in no order, at most so many. Raises `OSError`."""
    with folder(path) as opened, os.scandir(opened) as entries:
        return [entry.name for entry in itertools.islice(entries, most)]


def _open(path: str, root: Optional[str], most: int, folder: bool) -> int:
    if root is None:
        root, path = path_lookup.split_root(path)

    def directly(links: bool = True) -> int:
        if folder:
            return regular_files.open_folder(path, root, links)
        return regular_files.open_regular(path, root, most, links)

    if not doubtful_mounts(root):
        return directly()
    mount = mount_of(path, root)
    if mount is None:
        try:  # a link may lead to a file system that does not answer
            return directly(links=False)
        except OSError as error:
            if not path_lookup.is_link(error):
                raise
    where = f"{mount.point} ({mount.kind})" if mount else os.path.dirname(path)
    try:
        return _slow.open(path, root, most, folder, where)
    except NoHelper:
        return directly()
