"""Whether a function may be called on a thread, by what the thread is doing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional

from gdbext.knowledge.vendor_calls.not_reentrant import BUSY_PLACES
from gdbext.model.stack import Frame, ThreadStack

RESTART_BLOCK = -516
"""The kernel's ERESTART_RESTARTBLOCK (include/linux/errno.h): poll, sleeps and waits with a timeout go on from a note,
of which each thread has one. A call that waits too would overwrite it."""


def obstacle(stack: ThreadStack) -> Optional[str]:
    """Why no function may be called on this thread, in words behind "thread 3 is"; None when one may."""
    if not stack.calls:
        return "not readable"
    found = next((reason for frame in stack.calls for reason in [_busy(frame)] if reason), None)
    return found or (f"readable in part only ({stack.truncated})" if stack.truncated else None)


def restart_obstacle(number: int, result: int) -> Optional[str]:
    """The same by the registers of a stopped thread: the system call it is in (-1: none) and what that returned."""
    return "in a system call that cannot be begun again" if number >= 0 and result == RESTART_BLOCK else None


def processor_obstacle(gdb_release: str, cpuinfo: str) -> Optional[str]:
    """Why this gdb can call nothing on this processor, by its version and the text of /proc/cpuinfo.

    To put a thread's registers back, gdb before 14 writes the 2.7 KB of extended state that it knows; AMX (Sapphire
    Rapids and later) makes them 11 KB, and the kernel refuses the shorter write (seen with 13.1).
    """
    release = re.search(r"\b(\d+)\.\d", gdb_release)
    if release is None or int(release.group(1)) >= 14 or not re.search(r"^flags\s*:.*\bamx_tile\b", cpuinfo, re.M):
        return None
    return f"gdb {release.group(1)} cannot write the registers of a processor with AMX"


def _busy(frame: Frame) -> Optional[str]:
    return _reason(frame.library or "", frame.function or "")


@lru_cache(maxsize=4096)
def _reason(library: str, function: str) -> Optional[str]:
    for row in BUSY_PLACES:
        pattern, text = (row.module, library) if row.module else (row.function, function)
        if re.fullmatch(pattern, text):
            return row.reason
    return None
