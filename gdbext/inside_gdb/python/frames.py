"""The Python frames of the selected thread, of a process or of a core file, and readers of their objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

import gdb

from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import FrameLocals, Locals, locals_of
from gdbext.capture.python.python_frames import Frozen, Limits, Pages, freeze, thread_of
from gdbext.capture.python.runtime import Interpreter, Read, find_interpreter, interpreter_of
from gdbext.inside_gdb.base import compat, memory
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_objects import OBJECTS
from gdbext.model.missing import Maybe, Missing
from gdbext.snapshot_builder.core_job import OpenCore, open_cores

_SECONDS = 20.0  # for a core file: nobody stands still for it


@dataclass(frozen=True)
class PythonProcess:
    """The interpreter of what is selected, with all of its threads, and how its memory is read."""

    frozen: Frozen
    read: Read
    core: Optional[OpenCore]

    def frames_of(self, tid: int) -> Maybe[Tuple[FrameLocals, ...]]:
        """The Python frames of a thread, innermost first."""
        thread = thread_of(self.frozen, self.read, tid)
        if thread is None:
            return Missing("the selected thread runs no Python; `thread N` selects another one, llm-bt shows them")
        return locals_of(self.frozen, thread, self.read)

    def objects(self) -> Maybe[Attributes]:
        """A new reader of objects: what it remembers holds until the process runs again."""
        version = self.frozen.interpreter.version
        if version not in LOCALS or version not in OBJECTS:
            return Missing("objects of Python {}.{} are not known".format(*version))
        return Attributes(Containers(Locals(self.frozen, LOCALS[version], Pages(self.read)), OBJECTS[version]))


@dataclass(frozen=True)
class PythonThread:
    """The Python frames of the selected thread, innermost first."""

    process: PythonProcess
    number: int  # gdb's number of the thread
    tid: int
    frames: Tuple[FrameLocals, ...]
    objects: Attributes


_processes: Dict[int, Tuple[memory.TargetMemory, Maybe[PythonProcess]]] = {}
_threads: Dict[int, Tuple[memory.TargetMemory, int, Maybe[PythonThread]]] = {}
_cores: Dict[str, OpenCore] = {}


def python_process() -> Maybe[PythonProcess]:
    """Of the selected inferior; looked up once until it runs."""
    now, number = memory.current(), gdb.selected_inferior().num
    known = _processes.get(number)
    if known is None or known[0] is not now:
        known = _processes[number] = now, _found(gdb.selected_inferior(), now)
    return known[1]


def python_thread() -> Maybe[PythonThread]:
    """Of the selected thread; looked up once until the process runs."""
    selected, number = gdb.selected_thread(), gdb.selected_inferior().num
    if selected is None:
        return Missing("no thread is selected")
    now, tid = memory.current(), selected.ptid[1]
    known = _threads.get(number)
    if known is None or known[0] is not now or known[1] != tid:
        known = _threads[number] = now, tid, _thread(selected.num, tid)
    return known[2]


def thread_of_number(tid: int) -> Maybe[PythonThread]:
    """The Python frames of a thread of the selected inferior."""
    return _thread(next((one.num for one in gdb.selected_inferior().threads() if one.ptid[1] == tid), 0), tid)


def _thread(number: int, tid: int) -> Maybe[PythonThread]:
    process = python_process()
    if isinstance(process, Missing):
        return process
    objects, frames = process.objects(), process.frames_of(tid)
    if isinstance(objects, Missing):
        return objects
    return frames if isinstance(frames, Missing) else PythonThread(process, number, tid, frames, objects)


def _found(inferior: gdb.Inferior, now: memory.TargetMemory) -> Maybe[PythonProcess]:
    if compat.kind_of(inferior) == compat.HAS_PROCESS:
        interpreter = interpreter_of(inferior.pid)
        return _process(interpreter, ProcessMemory(inferior.pid).read, None, Limits())
    path = compat.core_path(inferior)
    if not path:
        return Missing("there is no process and no core file")
    core = _core(path)
    if isinstance(core, Missing):
        return core
    objects = core.objects
    program = objects.opens(objects.program) if objects.program else None
    found = find_interpreter(objects.opened_maps(), core.core.read, program)

    def read(address: int, size: int) -> Optional[bytes]:
        data = core.core.read(address, size)
        return now.read(address, size) if data is None else data

    return _process(found, read, core, Limits(seconds=_SECONDS))


def _process(found: Maybe[Interpreter], read: Read, core: Optional[OpenCore], limits: Limits) -> Maybe[PythonProcess]:
    if isinstance(found, Missing):
        return found
    return PythonProcess(freeze(found, read, limits), read, core)


def _core(path: str) -> Maybe[OpenCore]:
    if path not in _cores:
        opened = open_cores([path])
        if not opened.opened:
            return Missing(opened.unread[0][1] if opened.unread else f"{path} cannot be read")
        _cores[path] = opened.opened[0]
    return _cores[path]
