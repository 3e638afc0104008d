"""What the heads of processes and threads say together, and whom a message is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict

from gdbext.parsers.assemble.building import Process
from gdbext.parsers.line_events import LogMessage, ProcessHead, ThreadHead


def is_about(process: Process, said: LogMessage) -> bool:
    """Whether a message can be of this process: what both tell of pid and rank is equal."""
    head = process.head
    return said.pid in (None, head.pid) and said.rank in (None, head.rank)


def merge_process_heads(first: ProcessHead, second: ProcessHead) -> ProcessHead:
    """Both heads' knowledge; where they differ they are of two processes and the second one stays."""
    for name in ("pid", "rank", "host"):
        one, other = getattr(first, name), getattr(second, name)
        if one is not None and other is not None and one != other:
            return second
    known: Dict[str, object] = {
        name: getattr(second, name) or getattr(first, name) for name in ("title", "host", "python")
    }
    return replace(
        second,
        pid=first.pid if second.pid is None else second.pid,
        rank=first.rank if second.rank is None else second.rank,
        **known,  # type: ignore[arg-type]
    )


def merge_mention(head: ThreadHead, mention: ThreadHead) -> ThreadHead:
    """The head with what the prose before it said of the thread."""
    return replace(head, gil=mention.gil if head.gil is None else head.gil, name=head.name or mention.name)
