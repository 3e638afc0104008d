"""One line of /proc/PID/task/TID/syscall: where a blocked thread stands (proc_pid_syscall(5))."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from gdbext.capture.machine import this_machine
from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stack import UNREAD

RUNNING = Missing(f"running, {UNREAD}", Code.RAN)
"""Of threads that run, nothing but that is said."""
REFUSED = Missing("the kernel does not show the current call", Code.DENIED)
GONE = Missing("it has ended", Code.GONE)
NO_CALL = -1
_WORD = 1 << 64


class Standing(NamedTuple):
    """Where a blocked thread stands. `number` is -1 outside of any system call (a page fault, a job-control stop)."""

    number: int
    arguments: Tuple[int, ...]
    sp: int
    pc: int


def call_number(standing: Standing) -> Optional[int]:
    """The number of the call as the model has it; None for none, and for one that has no number there."""
    row = this_machine()
    return None if row is None or standing.number == NO_CALL else row.call_number(standing.number)


def parse_standing(text: str) -> Maybe[Standing]:
    """One line of /proc/PID/task/TID/syscall, or why it says nothing: one of the words above."""
    if text.strip() == "running":
        return RUNNING
    fields = text.split()
    if len(fields) not in (3, 9):
        return REFUSED
    try:
        number, *values = int(fields[0]), *(int(field, 16) for field in fields[1:])
    except ValueError:
        return REFUSED
    *arguments, sp, pc = values
    if not 0 < sp < _WORD or not 0 < pc < _WORD:
        return GONE  # a thread on its way out has neither
    return Standing(number if arguments else NO_CALL, tuple(arguments), sp, pc)
