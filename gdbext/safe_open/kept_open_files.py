"""Files that stay open for as long as somebody reads them: what was checked once is what everybody gets, gdb too."""

from __future__ import annotations

import errno
import mmap
import os
import resource
from typing import BinaryIO, Dict, Optional

from gdbext.safe_open import files
from gdbext.safe_open.regular_files import LARGEST, Identity, Refused, identity_of

_MOST_OPEN = 1 << 16


class Opened:
    """A regular file, open to read; closed when nobody has it any more. `path` is where it was found."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path, self._descriptor, self._owner = path, descriptor, os.getpid()
        status = os.fstat(descriptor)
        self.size, self.owner, self.identity = status.st_size, status.st_uid, identity_of(status)

    @property
    def link(self) -> str:
        """A path by which another process of the same user opens this very file, whatever its name means by now."""
        return f"/proc/{self._owner}/fd/{self._descriptor}"

    @property
    def real_path(self) -> str:
        """Where it lies, without links: as the kernel knows it."""
        return os.readlink(f"/proc/self/fd/{self._descriptor}")

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file, shorter where it ends or cannot be read."""
        if not 0 <= offset < 1 << 62:
            return b""
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError:
            return b""

    def stream(self) -> BinaryIO:
        """With a position of its own. Raises `OSError`."""
        return open(f"/proc/self/fd/{self._descriptor}", "rb", opener=_quietly)

    def mapped(self) -> mmap.mmap:
        """All of it. Raises `ValueError` for an empty file, `OSError`."""
        return mmap.mmap(self._descriptor, 0, prot=mmap.PROT_READ)

    def __del__(self) -> None:
        if self._owner == os.getpid():  # a child that was forked has its own
            os.close(self._descriptor)


def _quietly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


class Shelf:
    """Opens each file once, however many processes and names lead to it."""

    def __init__(self) -> None:
        self._by_identity: Dict[Identity, Opened] = {}

    def open(self, path: str, same: Optional[Identity] = None, most: int = LARGEST) -> Opened:
        """The file. `same`: only if it still is this one. Raises `OSError`."""
        try:
            descriptor = files.descriptor(path, None, most)
        except OSError as error:
            if error.errno != errno.EMFILE or not _more_files():
                raise
            descriptor = files.descriptor(path, None, most)
        found = Opened(path, descriptor)
        if same is not None and found.identity != same:
            raise Refused(errno.ESTALE, "another file has replaced it", path)
        return self._by_identity.setdefault(found.identity, found)


def _more_files() -> bool:
    """Ask the kernel for more descriptors: a job may have thousands of libraries in use."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_OPEN if most == resource.RLIM_INFINITY else min(most, _MOST_OPEN)
    if wanted <= now:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return True
