"""The torch tensors in the Python frames of the selected thread: names, dtypes and shapes, without a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Optional, Union

import gdb

from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python.local_variables import FrameLocals, locals_of
from gdbext.capture.python.python_frames import freeze, thread_of
from gdbext.capture.python.runtime import interpreter_of
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.tensors.python_objects import tensor_of
from gdbext.inside_gdb.tensors.target_object import Node, Read, Unreadable
from gdbext.inside_gdb.tensors.torch_offsets import Release, tensor_at
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorList, TensorMapInfo
from gdbext.model.text.ranges import counted

MOST_TENSORS = 256


def in_python_frames(
    describe: Callable[[Node, str, str], Union[TensorInfo, TensorMapInfo]], read: Read, release: Optional[Release]
) -> TensorList:
    """Every tensor that a local variable of a Python function is bound to. Raises `NothingFound` when none can be.

    `describe` takes a TensorImpl, its name and what its kind should say of how it was read.
    """
    inferior, thread = gdb.selected_inferior(), gdb.selected_thread()
    if thread is None or compat.kind_of(inferior) != compat.HAS_PROCESS:
        raise NothingFound("tensors of Python frames are listed in live processes only", "llm-attach-all attaches")
    if release is None:
        raise NothingFound("there is no torch in this process (no libc10.so is loaded)")
    frames = _frames(inferior.pid, thread.ptid[1])
    found: List[TensorInfo] = []
    for frame in frames:
        for variable in frame.variables:
            try:
                node, note = tensor_at(tensor_of(variable.address, read, release), read, release)
            except Unreadable:  # any other object
                continue
            name = f"{(frame.function or '?').rpartition('<locals>.')[2]}.{variable.name}"
            one = describe(node, name, note)
            if isinstance(one, TensorInfo):
                found.append(replace(one, notes=(f"{variable.address:#x}", *one.notes)))
    problems = [] if len(found) <= MOST_TENSORS else [f"only the first {MOST_TENSORS} tensors are listed"]
    modules = sum(frame.is_module for frame in frames)
    if modules:
        problems.append(f"variables at the top level of a module are not read ({counted(modules, 'frame')})")
    place = f"{counted(len(frames), 'Python frame')} of thread {thread.num}; llm-tensor p NOTE --as pyobject shows one"
    return TensorList(place, tuple(found[:MOST_TENSORS]), tuple(problems))


def _frames(pid: int, tid: int) -> List[FrameLocals]:
    read = ProcessMemory(pid).read
    found = interpreter_of(pid)
    if isinstance(found, Missing):
        raise NothingFound(f"no Python frames: {found.reason}")
    frozen = freeze(found, read)
    thread = thread_of(frozen, read, tid)
    if thread is None:
        raise UsageError("the selected thread runs no Python", "`thread N` selects another one; llm-bt shows them")
    frames = locals_of(frozen, thread, read)
    if isinstance(frames, Missing):
        raise NothingFound(frames.reason)
    return list(frames)
