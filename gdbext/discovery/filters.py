"""Whether a seccomp filter refuses us the calls of a look: the kernel is asked, by calls that can do nothing.

A child asks, for some filters kill the caller. /proc only says that there is a filter, not what is in it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import lru_cache

_libc = ctypes.CDLL(None, use_errno=True)
_INTERRUPT = 0x4207  # PTRACE_INTERRUPT (linux/ptrace.h)
_DUMPABLE = 4  # PR_SET_DUMPABLE (linux/prctl.h)
_REFUSED = 1


@lru_cache(maxsize=None)
def refuses_ptrace() -> bool:
    """Without a filter there is no process 0 to interrupt (ESRCH), whatever rights we have."""
    try:
        child = os.fork()
    except OSError:  # no more processes for this user: the attach will tell
        return False
    if child == 0:
        status = _REFUSED
        try:
            _libc.prctl(_DUMPABLE, 0, 0, 0, 0)  # being killed for it leaves no core file
            answer = _libc.ptrace(_INTERRUPT, 0, None, None)
            status = int(answer != 0 and ctypes.get_errno() != errno.ESRCH)
        finally:
            os._exit(status)
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        return False  # somebody else noticed its end
    return status != 0
