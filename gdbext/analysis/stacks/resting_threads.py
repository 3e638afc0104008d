"""A thread that nobody knows by name and that waits for work, as the shape of its stack tells."""

from __future__ import annotations

from typing import Sequence

from gdbext.analysis.stacks.frame_facts import Known
from gdbext.knowledge.frame_precedence import LEAF
from gdbext.knowledge.row_kinds import FrameRule

AT_REST = "waiting for work"
_FUNCTIONS = 1
"""Functions between the wait and the thread's entry: one is the thread's own loop, two are somebody's work."""


def rests(rule: FrameRule, stack: Sequence[Known]) -> bool:
    """Whether the thread's own function, called from its entry, waits by itself to be woken.

    A loop that takes its work from a list does that while the list is empty. Whoever waits while it works has called
    something, and stands deeper. The main thread begins in `main`, which is no entry.
    """
    if rule.kind != "condvar-idle" or rule.rank > LEAF or not stack or not stack[-1].entry:
        return False
    own = [frame for frame in stack if not frame.system and not frame.entry]
    return len(own) == _FUNCTIONS and own[0].name is not None and not own[0].python
