"""What /proc says of one thread: its state, and who traces it."""

from __future__ import annotations

import os
from typing import Dict

from gdbext.capture.proc_texts import text_of


def thread_state(pid: int, tid: int) -> str:
    """The state letter of a thread; "X" when it is gone."""
    fields = text_of(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()
    return fields[0] if fields else "X"


def tracer_of(pid: int, tid: int) -> int:
    """The pid that traces a thread, 0 when none does or when the thread is gone."""
    tracer = _status(f"/proc/{pid}/task/{tid}").get("TracerPid", "0")
    # The kernel names the OS thread that traces; people know the process.
    return int(_status(f"/proc/{tracer}").get("Tgid", tracer))


def _status(folder: str) -> Dict[str, str]:
    pairs = (line.partition(":") for line in text_of(f"{folder}/status").split("\n"))
    return {name: value.strip() for name, _, value in pairs}


def why_refused(pid: int, tid: int) -> str:
    """Why the kernel may have refused to let us trace a thread, as part of a sentence."""
    if thread_state(pid, tid) in "ZX":
        return "it has ended"
    tracer = tracer_of(pid, tid)
    if tracer:
        return f"it is already traced by pid {tracer}"
    if pid == os.getpid():
        return "it is the gdbext process itself"
    return "not permitted (another user's, a security module or a filter: `gdbext doctor PID` says more)"
