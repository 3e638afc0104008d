"""Which Python frame of the selected thread is the selected one: chosen by llm-py-up, or by gdb's own frame."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

import gdb

from gdbext.analysis.stacks.interleave import python_frame_at
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.python.frames import PythonThread
from gdbext.inside_gdb.stacks.held_ranks import some_threads

_MOST_LEVELS = 1 << 16


class _Chosen(NamedTuple):
    """What was selected when a person chose. It holds while that is selected and nothing has run."""

    memory: memory.TargetMemory
    tid: int
    level: int
    number: int


_chosen: Dict[int, _Chosen] = {}


def selected_number(thread: PythonThread) -> int:
    """The number of the selected frame, counted from the innermost Python frame on."""
    level, known = native_level(), _chosen.get(gdb.selected_inferior().num)
    last = max(len(thread.frames) - 1, 0)
    if known is not None and known[:3] == (memory.current(), thread.tid, level):
        return min(known.number, last)
    return min(_executed_by(thread, level), last) if level else 0


def choose(thread: PythonThread, number: int) -> None:
    """Make a frame the selected one."""
    _chosen[gdb.selected_inferior().num] = _Chosen(memory.current(), thread.tid, native_level(), number)


def native_level() -> int:
    """The number of gdb's selected frame."""
    try:
        frame: Optional[gdb.Frame] = gdb.selected_frame()
    except gdb.error:
        return 0
    level = getattr(frame, "level", None)  # gdb 11
    if level is not None:
        return int(level())
    count = -1
    while frame is not None and count < _MOST_LEVELS:
        frame, count = frame.newer(), count + 1
    return count


def _executed_by(thread: PythonThread, level: int) -> int:
    """The innermost Python frame that gdb's frame of this number executes, or that stands outside of it."""
    selected = gdb.selected_thread()
    if selected is None:
        return 0
    inferior = gdb.selected_inferior()
    is_core = compat.kind_of(inferior) != compat.HAS_PROCESS
    look = some_threads(inferior, [selected], is_core, thread.process.core)[0]
    return python_frame_at(look.native, look.python, level) if look.python is not None else 0
