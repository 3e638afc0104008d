"""A system call that goes on after a stop, as the call that it was begun as.

Where a stop has interrupted a poll(2) or a sleep that has no absolute end, the kernel goes on with restart_syscall(2):
the arguments are still there, and the innermost function tells what they are of.
"""

from __future__ import annotations

from typing import Optional, Pattern, Sequence, Tuple

from gdbext.knowledge.runtimes.system_calls import CLOCK_NANOSLEEP, NANOSLEEP, POLL, RESTART
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex

_BEGUN_BY: Tuple[Tuple[Pattern[str], int], ...] = (
    (regex(r"_*(GI_+)?_*poll$"), POLL),
    (regex(r"_*(GI_+)?_*clock_nanosleep\w*$"), CLOCK_NANOSLEEP),
    (regex(r"_*(GI_+)?_*nanosleep\w*$"), NANOSLEEP),
)


def as_begun(call: Optional[Sequence[int]], stack: ThreadStack) -> Optional[Tuple[int, ...]]:
    """Number and arguments of the call that a thread with this stack is in; any other call as it is."""
    if not call or call[0] != RESTART:
        return None if call is None else tuple(call)
    innermost = next((frame.function or "" for frame in stack.calls), "")
    begun = (number for function, number in _BEGUN_BY if function.match(innermost))
    return (next(begun, RESTART), *call[1:])
