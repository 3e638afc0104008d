"""The call that the process at the other end is blocked in, at one moment with the thread that waits for it."""

from __future__ import annotations

import os
from typing import Optional, Sequence, Tuple

from gdbext.discovery.procfs import ProcFS
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing

_MACHINE = "x86_64"  # whose numbers of calls the model has (knowledge/system_calls.py); no other's are translated here
_WORDS = 9  # of proc_pid_syscall(5): number, six arguments, sp, pc
_ASLEEP = ("S", "D")  # one that is stopped may have an answer that it has not taken yet


def call_beyond(proc: ProcFS, pid: int, peer: Peer) -> Optional[Tuple[int, Sequence[int]]]:
    """The process with its number and arguments, where there is one process with one thread. The thread that waits must
    not have run while that was read: else each may be seen to wait, in turns."""
    pids = () if isinstance(peer.processes, Missing) else peer.processes
    if len(pids) != 1 or pid in pids or len(proc.tasks(pids[0])) != 1 or os.uname().machine != _MACHINE:
        return None
    before = _place(proc, pid, peer.thread)
    call = _blocked_in(proc, f"{pids[0]}/task/{pids[0]}")
    return (pids[0], call) if call and before is not None and before == _place(proc, pid, peer.thread) else None


def _place(proc: ProcFS, pid: int, tid: int) -> Optional[Tuple[object, ...]]:
    """What changes whenever the thread runs; None for one that does not sleep."""
    status, call = proc.text(f"{pid}/task/{tid}/status"), _blocked_in(proc, f"{pid}/task/{tid}")
    if isinstance(status, Missing) or call is None:
        return None
    rows = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    switches = [value for name, value in rows.items() if name.endswith("ctxt_switches")]
    return (*call, *switches) if rows.get("State", "").startswith(_ASLEEP) else None


def _blocked_in(proc: ProcFS, thread: str) -> Optional[Sequence[int]]:
    text = proc.text(f"{thread}/syscall")
    words = [] if isinstance(text, Missing) else text.split()
    return [int(word, 0) for word in words[:7]] if len(words) == _WORDS else None
