"""Threads of the GPU among those of a text: cuda-gdb prints their stacks as it prints those of the host."""

from __future__ import annotations

from typing import Optional

from gdbext.knowledge.device_code import DEVICE_FOCUS
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex

_FOCUS = regex(DEVICE_FOCUS)


def device_of(thread: Optional[ThreadStack]) -> Optional[int]:
    """The number of the device that the stack is of; None for a thread of the host."""
    lines = thread.problems if thread is not None else ()
    found = next(filter(None, map(_FOCUS.match, lines)), None)
    return int(found["device"]) if found else None
