"""One look at a time on a host: a lock that all services here share.

It is a courtesy (two looks at once cost the host twice the CPU), so whoever holds it for ever keeps nobody: after
`PATIENCE` seconds a look is taken all the same. The kernel frees it when its holder ends, however that happens.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from typing import Optional, Tuple

_NAME = "gdbext-look.lock"
_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - what lies there is opened with care, and only locked
PATIENCE = 300.0
"""Seconds; a look takes 120 at most unless asked otherwise."""


class HostLock:
    """`take` before a look, `free` after it. `why_none`: why there is no lock."""

    def __init__(self, path: str) -> None:
        self.path = path or next((f"{folder}/{_NAME}" for folder in _FOLDERS if os.access(folder, os.W_OK)), "")
        self.why_none = "" if self.path else "no folder for it can be written"
        self._descriptor: Optional[int] = None
        self._asked: Optional[float] = None

    def take(self) -> bool:
        """Whether a look may begin; asked again until it may."""
        self._asked = time.monotonic() if self._asked is None else self._asked
        self._descriptor = self._descriptor if self._descriptor is not None else self._opened()
        if self._descriptor is not None:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() - self._asked < PATIENCE:
                    return False
                self.free()
        self._asked = None
        return True

    @property
    def descriptors(self) -> Tuple[int, ...]:
        """For the look itself: should we be killed, the lock lasts as long as the look."""
        return () if self._descriptor is None else (self._descriptor,)

    def free(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _opened(self) -> Optional[int]:
        """A file of ours, or of another user's service: a plain file, never a link or a pipe."""
        flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        for how in (os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
            try:
                descriptor = os.open(self.path, how | flags, 0o644)
            except OSError as error:
                self.why_none = f"{self.path}: {error.strerror}"
                continue
            if how & os.O_CREAT:
                os.fchmod(descriptor, 0o644)  # others lock it, too, whatever our umask
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self.why_none = ""
                return descriptor
            os.close(descriptor)
            self.why_none = f"{self.path} is not a file"
        return None
