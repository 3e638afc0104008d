"""Threads of the GPU among those of a text: cuda-gdb prints their stacks as it prints those of the host."""

from __future__ import annotations

from typing import Optional

from gdbext.knowledge.device_code import DEVICE_FOCUS, WAVEFRONT
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex

_FOCUS, _WAVE = regex(DEVICE_FOCUS), regex(WAVEFRONT)


def wave_of(thread: Optional[ThreadStack]) -> str:
    """`(0,0,0)/0`, of the wavefront that the stack is of; "" of any other thread."""
    lines = thread.problems if thread is not None else ()
    found = next(filter(None, map(_WAVE.match, lines)), None)
    return found["wave"] if found else ""


def device_of(thread: Optional[ThreadStack]) -> Optional[int]:
    """The device that the stack is of, 0 where the tool does not tell its number; None for a thread of the host."""
    lines = thread.problems if thread is not None else ()
    found = next(filter(None, map(_FOCUS.match, lines)), None)
    return int(found["device"]) if found else 0 if wave_of(thread) else None
