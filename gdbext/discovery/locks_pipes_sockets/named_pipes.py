"""A thread that opens a named pipe, and waits in there until another process opens its other end (fifo(7))."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import OPEN, OPENAT
from gdbext.model.locks import UNOPENED, Peer

_WAITS = "wait_for_partner"  # fs/pipe.c
_FLAGS = {OPEN: 2, OPENAT: 3}
"""Place of the flags in (number, arguments ...)."""
_ACCESS, _WRITES = 3, 1  # O_ACCMODE, O_WRONLY


def opens_pipe(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """The row of a thread that opens one to write. Who opens one to read may be a server that waits for a client."""
    place = _FLAGS.get(call[0])
    if place is None or len(call) <= place or call[place] & _ACCESS != _WRITES:
        return None
    return Peer(thread=tid, file=UNOPENED, processes=()) if proc.text(f"{pid}/task/{tid}/wchan") == _WAITS else None
