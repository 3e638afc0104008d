"""Who is at the other end of a pipe or socket, in words."""

from __future__ import annotations

from gdbext.model.locks import Peer
from gdbext.model.missing import Missing

_MOST = 4
_STOPPED = "T"  # "t" is a stop by a debugger, which may be ours


def other_end(peer: Peer) -> str:
    """`pid 4711 (tokenizer, stopped)`, `held by pid 4711 (tokenizer)`, `no process has it open`, `unknown: ...`."""
    if isinstance(peer.processes, Missing):
        return f"unknown: {peer.processes.reason}"
    if not peer.processes and peer.lock:
        return "no process holds it"
    if not peer.processes:
        return "no process has it open"
    told = [
        f"pid {pid} ({name}{', stopped' if state == _STOPPED else ''})"
        for pid, name, state in list(zip(peer.processes, peer.names, peer.states))[:_MOST]
    ]
    left = len(peer.processes) - len(told)
    return "held by " * peer.lock + ", ".join(told) + (f" and {left} more" if left else "")
