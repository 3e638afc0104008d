"""Whether a seccomp filter refuses us the calls of a look: the kernel is asked, by calls that can do nothing.

A child asks, for some filters kill the caller. /proc only says that there is a filter, not what is in it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import lru_cache
from typing import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_INTERRUPT = 0x4207  # PTRACE_INTERRUPT (linux/ptrace.h)
_DUMPABLE = 4  # PR_SET_DUMPABLE (linux/prctl.h)
_REFUSED = 1


@lru_cache(maxsize=None)
def refuses_ptrace() -> bool:
    """Without a filter there is no process 0 to interrupt (ESRCH), whatever rights we have."""
    return _end_of(lambda: _libc.ptrace(_INTERRUPT, 0, None, None) != 0 and ctypes.get_errno() != errno.ESRCH) != 0


@lru_cache(maxsize=None)
def kills_readers() -> bool:
    """Of process_vm_readv. Where the call is merely refused memory is read in another way."""
    return os.WIFSIGNALED(_end_of(lambda: _libc.process_vm_readv(0, None, 0, None, 0, 0) != 0))


def _end_of(refused: Callable[[], bool]) -> int:
    """How a child ended that asked, as waitpid(2) tells it; 0 where nobody can tell."""
    try:
        child = os.fork()
    except OSError:  # no more processes for this user: the look will tell
        return 0
    if child == 0:
        status = _REFUSED
        try:
            _libc.prctl(_DUMPABLE, 0, 0, 0, 0)  # being killed for it leaves no core file
            status = int(refused())
        finally:
            os._exit(status)
    try:
        return os.waitpid(child, 0)[1]
    except ChildProcessError:
        return 0  # somebody else noticed its end
