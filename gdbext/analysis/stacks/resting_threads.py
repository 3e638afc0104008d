"""A thread that nobody knows by name and that waits for work, as the shape of its stack tells."""

from __future__ import annotations

from typing import Sequence

from gdbext.analysis.stacks.frame_facts import Known
from gdbext.knowledge.frame_precedence import LEAF
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.row_kinds import FrameRule
from gdbext.model.text.patterns import regex

AT_REST = "waiting for work"
_FUNCTIONS = 1
"""Functions between the wait and the thread's entry: one is the thread's own loop, two are somebody's work."""

_MAIN = regex(code_owners.MAIN_FUNCTIONS)
_TASK = regex(code_owners.TASKS)
_STARTER = regex(code_owners.STARTS_THREADS)
_UNNAMED = regex(code_owners.UNNAMED_FUNCTIONS)


def is_resting(rule: FrameRule, stack: Sequence[Known]) -> bool:
    """Whether the thread's own function, called from its entry, waits by itself to be woken.

    A loop that takes its work from a list does that while the list is empty. Whoever waits while it works has called
    something, and stands deeper. An unnamed function that only calls the loop counts as the entry. The main thread
    begins in `main`, wherever the debugger stops.
    """
    if rule.kind != "condvar-idle" or rule.rank > LEAF or not stack or not stack[-1].entry:
        return False
    names = [frame.name for frame in stack if frame.name is not None]
    if any(_MAIN.match(name) or _TASK.match(name) for name in names):
        return False
    own = [frame for frame in stack if not frame.system and not frame.entry]
    if not own:
        return any(_STARTER.match(name) for name in names)
    if len(own) > _FUNCTIONS and _UNNAMED.match(own[-1].name or ""):
        own.pop()
    return len(own) == _FUNCTIONS and own[0].name is not None and not own[0].python
