"""Which locks the threads of an inferior wait for: by registers and memory, in attached processes and in cores."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

import gdb

from gdbext.capture.locks_in_memory import futexes, lock_context, mutex_owners
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.maps import MemoryMap
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory, map_of
from gdbext.inside_gdb.base.symbols import symbol_at
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.digits import is_whole

_WORD = (1 << 64) - 1


def lock_waits(inferior: gdb.Inferior, stacks: Sequence[ThreadStack], is_core: bool) -> Tuple[LockWait, ...]:
    """The waits of the threads that were walked. The selection comes back."""
    walked = {stack.lwp for stack in stacks if stack.frames}
    calls: Dict[int, Tuple[int, ...]] = {}
    pointers: Dict[int, int] = {}
    with compat.inferior_selected(inferior):
        memory = TargetMemory(inferior)
        threads = inferior.threads()
        for thread in threads:
            if thread.ptid[1] in walked:
                _look(thread, calls, pointers)

        def read_many(ranges: Sequence[Tuple[int, int]]) -> List[Optional[bytes]]:
            return [memory.read(address, size) for address, size in ranges]

        frozen = futexes.freeze(calls, read_many)
        ids = futexes.ids_at(pointers, read_many)
        around = _surroundings(inferior, ids, len(ids.lwps) == len(threads), is_core)
        return mutex_owners.resolve(frozen, stacks, around)


def _look(thread: gdb.InferiorThread, calls: Dict[int, Tuple[int, ...]], pointers: Dict[int, int]) -> None:
    """The system call that a thread is in, and where its descriptor lies."""
    row = this_machine()
    if row is None or row.gdb is None:
        return
    try:
        thread.switch()
        frame = gdb.newest_frame()
        number = int(frame.read_register(row.gdb.call_number))
        pointers[thread.ptid[1]] = int(frame.read_register(row.gdb.thread_pointer)) & _WORD
        known = row.call_number(number) if number >= 0 else None
        if known is not None:
            arguments = (int(frame.read_register(name)) & _WORD for name in row.gdb.call_arguments)
            calls[thread.ptid[1]] = (known, *arguments)
    except (gdb.error, ValueError):  # it runs, or it is no thread of Linux on such a machine
        pass


def _surroundings(
    inferior: gdb.Inferior, ids: futexes.ThreadIds, complete: bool, is_core: bool
) -> lock_context.Surroundings:
    memory = map_of(inferior) or MemoryMap(())
    if is_core:
        place = lock_context.place_in(memory)
        return lock_context.Surroundings(ids.lwps, ids.words, complete, place, _variable)
    proc = ProcFS()
    stat = proc.stat(inferior.pid)
    parent = None if isinstance(stat, Missing) else stat.parent
    siblings = frozenset(proc.tasks(parent) if parent else ())
    return lock_context.Surroundings(
        ids.lwps,
        ids.words,
        complete,
        lock_context.place_in(memory),
        _variable,
        lock_context.shared_in(memory),
        others=_beside(inferior, ids, proc),
        exists=lock_context.exists_beside(ids.lwps),
        parent=parent,
        parents_threads=siblings,
        before_fork=lock_context.oldest_id(inferior.pid, parent, ids.lwps),
    )


def _beside(inferior: gdb.Inferior, ids: futexes.ThreadIds, proc: ProcFS) -> Dict[int, Tuple[int, int]]:
    """Threads of the other processes that gdb holds; not where ids in memory are those of a container."""
    if any(known != lwp for known, lwp in ids.lwps.items()):
        return {}
    pids = [other.pid for other in gdb.inferiors() if other.pid not in (0, inferior.pid)]
    return {tid: (pid, tid) for pid in pids for tid in proc.tasks(pid)}


def _variable(address: int) -> str:
    """`cache`, or `table+0x40`, of the selected inferior."""
    name, _, offset = (symbol_at(address) or "").split(" in section ")[0].strip().rpartition(" + ")
    return f"{name}+{int(offset):#x}" if name and is_whole(offset) else f"{name}{offset}"
