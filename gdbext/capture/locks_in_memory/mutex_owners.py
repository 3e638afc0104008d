"""From a wait in the kernel to a lock and its owner: what the frames name and what the memory holds must agree."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.locks_in_memory.futexes import FutexCall
from gdbext.capture.locks_in_memory.lock_context import Surroundings
from gdbext.knowledge.runtimes.glibc_locks import (
    BARRIER_ROUND,
    CONDVAR_FUTEXES,
    DRIVER_MODULES,
    GIL_CALL,
    HANDED_OVER,
    INSIDE,
    LET_GO,
    LIBRARY_MODULES,
    LOADER_MODULES,
    LOCKS_OF_KERNEL,
    MOST_IDS,
    MUTEX,
    MUTEX_TYPES,
    NO_OWNER,
    PARKED,
    RWLOCK,
    kind_of_call,
)
from gdbext.model.codes import Code
from gdbext.model.locks import LockWait
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stack import Frame, ThreadStack

_GIL = re.compile(GIL_CALL)
_INSIDE = re.compile(rf"(?:{INSIDE})\Z")
_LIBRARY, _LOADER, _DRIVER = (re.compile(text) for text in (LIBRARY_MODULES, LOADER_MODULES, DRIVER_MODULES))
_DEPTH = 24  # frames looked at: the wait is at the inner end
_MOST_READERS = 1 << 16
_MOST_SHARERS = 4
_UNREADABLE = Missing("the lock's memory cannot be read")


class _Found(NamedTuple):
    """A lock as its memory shows it."""

    address: int
    owner: Maybe[int]  # as it stands in memory
    shared: bool = False
    detail: str = ""
    readers: bool = False  # hold it


def resolve(
    frozen: Mapping[int, FutexCall], stacks: Sequence[ThreadStack], around: Surroundings
) -> Tuple[LockWait, ...]:
    """One row for each thread that waits in a futex, in the order of the stacks."""
    gil = [stack.lwp for stack in stacks if stack.gil and stack.lwp is not None]
    rows = (_row(frozen.get(stack.lwp or 0), stack, around, gil) for stack in stacks)
    return tuple(_named(row, around) for row in rows if row is not None)


def _named(row: LockWait, around: Surroundings) -> LockWait:
    """Whoever joins a thread sleeps on a word of glibc's."""
    name = around.variable(row.address) if row.address and row.kind not in ("join", "gil", "loader") else ""
    return replace(row, name=name) if name else row


def _row(call: Optional[FutexCall], stack: ThreadStack, around: Surroundings, gil: Sequence[int]) -> Optional[LockWait]:
    kind, frame = kind_by_frames(stack.frames)
    if kind == "gil" and stack.lwp is not None:
        return _gil(call, stack.lwp, gil, around)
    if call is None:
        return None
    if kind == "futex" and call.address in around.words:  # pthread_join of a stripped C library has no name
        kind = "join"
    return _wait(call, kind, stack.frames[frame + 1 :], around)


def _gil(call: Optional[FutexCall], waiter: int, gil: Sequence[int], around: Surroundings) -> LockWait:
    """Waiters look every few milliseconds whether they shall ask for it: between two of them there is no call. Who
    sleeps in that call and has the GIL asks for it a second time: it did not know that it has it."""
    address = 0 if call is None else _condvar_of(call)
    again = call is not None and call.asleep
    holders = [lwp for lwp in gil if lwp != waiter or again]
    owner = holders[0] if len(holders) == 1 else Missing("no thread of Python's list holds it")
    return LockWait(thread=waiter, kind="gil", address=address, owner=owner, place=around.place(address))


def _wait(call: FutexCall, kind: str, callers: Sequence[Frame], around: Surroundings) -> LockWait:
    row = LockWait(
        thread=call.tid,
        kind=kind,
        address=call.address,
        owner=Missing("not looked for"),
        timed=call.timed,
        place=around.place(call.address),
    )
    reader = _READERS.get(kind)
    if reader is None:
        nobody = Missing(NO_OWNER.get(kind, "no frame names what it waits for"))
        shared = not call.private and around.shared(call.address)
        return replace(row, owner=LET_GO if call.woken else nobody, shared=shared)
    found = reader(call)
    if isinstance(found, Missing):
        return replace(row, owner=found)
    shared = (found.shared or not call.private) and around.shared(found.address)
    detail = ", ".join(filter(None, (found.detail, _sharers(around.sharers(found.address)) if shared else "")))
    row = replace(row, address=found.address, shared=shared, detail=detail, readers=found.readers)
    if kind in ("mutex", "rwlock"):
        row = replace(row, kind=_refined(row, callers))
    if isinstance(found.owner, Missing):
        woken = call.woken and kind in NO_OWNER
        return replace(row, owner=LET_GO if woken else found.owner, gone=found.owner.code is Code.PARKED)
    return _owned(row, found.owner, around) if call.asleep else replace(row, owner=LET_GO)


def kind_by_frames(frames: Sequence[Frame]) -> Tuple[str, int]:
    """What the inner end of a stack says the thread waits for, and the number of the frame that says it."""
    for number, frame in enumerate(frames[:_DEPTH]):
        name = frame.function or "??"
        kind = kind_of_call(name)
        if kind is not None:
            return ("gil", number) if _for_gil(frames[number + 1 : number + 6]) else (kind, number)
        if _GIL.match(name):
            return "gil", number
        if not (_INSIDE.match(name) and (frame.inlined or _LIBRARY.match(frame.library or "libc.so.6"))):
            break
    return "futex", 0


def _for_gil(frames: Sequence[Frame]) -> bool:
    for frame in frames:
        if _GIL.match(frame.function or ""):
            return True
        if not (frame.inlined or _INSIDE.match(frame.function or "??") or kind_of_call(frame.function or "??")):
            return False
    return False


def _refined(row: LockWait, callers: Sequence[Frame]) -> str:
    """Whose lock it is, by the memory it lies in, else by who takes it."""
    place = (row.place or "").rsplit("/", 1)[-1]
    if _LOADER.match(place):
        return "loader"
    caller = next((frame for frame in callers if not _LIBRARY.match(frame.library or "")), None)
    taken_by_driver = caller is not None and _DRIVER.match(caller.library or "")
    return "driver" if _DRIVER.match(place) or taken_by_driver else row.kind


def _owned(row: LockWait, owner: int, around: Surroundings) -> LockWait:
    """The row with the owner that memory names, if it is a thread that there is."""
    if owner in around.ids:
        return replace(row, owner=around.ids[owner])
    if not 0 < owner < MOST_IDS:
        return replace(
            row, owner=Missing(f"its memory names {owner} as owner, which is not a thread id: the lock is damaged")
        )
    if row.shared:
        if owner in around.others:
            process, lwp = around.others[owner]
            return replace(row, owner=lwp, owner_process=process)
        if around.complete and not around.exists(owner):
            return replace(row, owner=owner, gone=True)
        return replace(row, owner=Missing(f"its owner {owner} is not a thread of the inspected processes"))
    if not around.complete:
        return replace(row, owner=Missing(f"its memory names {owner} as owner, which is not a thread that gdbext read"))
    of_parent = owner in around.parents_threads or owner < around.before_fork
    parent = around.parent if of_parent else None
    return replace(row, owner=owner, owner_process=parent, gone=True)


def _sharers(pids: Sequence[int]) -> str:
    more = f" and {len(pids) - _MOST_SHARERS} more" if len(pids) > _MOST_SHARERS else ""
    return f"shared with pid {', '.join(map(str, pids[:_MOST_SHARERS]))}{more}" if pids else ""


# --- what each kind looks like in memory ---


def _mutex(call: FutexCall) -> Maybe[_Found]:
    lock, count, owner, kind = (call.word(at) for at in (MUTEX.lock, MUTEX.count, MUTEX.owner, MUTEX.kind))
    if lock is None or owner is None or kind is None:
        return _UNREADABLE
    if call.expected == lock == 0 and not call.timed:  # nobody waits for a lock that is free
        return _Found(call.address, PARKED)
    in_lock = bool(kind & (MUTEX.robust | MUTEX.inherits))
    if kind & ~MUTEX.known_kinds or (call.operation in LOCKS_OF_KERNEL) != bool(kind & MUTEX.inherits):
        return Missing("a frame shows a mutex, but the memory at its address is not a mutex")
    if not in_lock and lock > 2:
        return Missing(f"a frame shows a mutex, but its lock word is {lock}")
    words = [MUTEX_TYPES[kind & 3]] if kind & 3 else []
    words += ["robust"] * bool(kind & MUTEX.robust) + ["priority-inheriting"] * bool(kind & MUTEX.inherits)
    words += [f"taken {count} times"] * bool(kind & 3 == 1 and count and 1 < count < _MOST_READERS)
    holder = lock & MUTEX.owner_in_lock if in_lock else owner
    return _Found(call.address, holder or HANDED_OVER, bool(kind & MUTEX.shared), ", ".join(words))


def _rwlock(call: FutexCall) -> Maybe[_Found]:
    """The waiter sleeps on one of two neighbouring words; the lock is aligned to 8 bytes."""
    found = next((_rwlock_at(call, -one) for one in RWLOCK.futexes if (call.address - one) % 8 == 0), None)
    return found or Missing("a frame shows a reader-writer lock, but the memory at its address is not one")


def _rwlock_at(call: FutexCall, start: int) -> Optional[_Found]:
    readers, writer, shared = (call.word(start + at) for at in (RWLOCK.readers, RWLOCK.writer, RWLOCK.shared))
    if readers is None or writer is None or shared not in (0, 1):
        return None
    reading = readers >> RWLOCK.reader_shift
    held_by_writer = bool(writer and readers & RWLOCK.write_locked and writer < 1 << 30)
    held_by_readers = bool(not writer and 0 < reading < _MOST_READERS and not readers & RWLOCK.write_phase)
    if not (held_by_writer or held_by_readers):
        return None
    address, is_shared = call.address + start, bool(shared)
    if held_by_writer:
        return _Found(address, writer, is_shared, "held for writing")
    count = f"{reading} reader{'s' if reading > 1 else ''}"
    nobody = Missing(f"held by {count}; the lock does not record which")
    return _Found(address, nobody, is_shared, f"held by {count}", readers=True)


def _join(call: FutexCall) -> Maybe[_Found]:
    """The waiter sleeps on the id in the other thread's descriptor, which the kernel clears when that one ends."""
    return _Found(call.address, call.word(0) or LET_GO)


def _semaphore(call: FutexCall) -> Maybe[_Found]:
    if call.word(0):
        return LET_GO
    waiting = call.word(4)
    detail = f"{waiting} waiting" if waiting and waiting < _MOST_READERS else ""
    return _Found(call.address, Missing(NO_OWNER["semaphore"]), detail=detail)


def _condvar(call: FutexCall) -> Maybe[_Found]:
    return _Found(_condvar_of(call), Missing(NO_OWNER["condvar"]))


def _condvar_of(call: FutexCall) -> int:
    """Waiters sleep on one of two neighbouring words; the variable is aligned to 8 bytes."""
    return call.address - CONDVAR_FUTEXES[call.address // 4 % 2]


def _barrier(call: FutexCall) -> Maybe[_Found]:
    arrived, current, count = (call.word(at - BARRIER_ROUND) for at in (0, BARRIER_ROUND, 8))
    detail = ""
    if arrived is not None and current is not None and count and count < _MOST_READERS:
        come = (arrived - current) % (1 << 32)
        detail = f"{come} of {count} have arrived" if come <= count else ""
    return _Found(call.address - BARRIER_ROUND, Missing(NO_OWNER["barrier"]), detail=detail)


_READERS: Dict[str, Callable[[FutexCall], Maybe[_Found]]] = {
    "mutex": _mutex,
    "rwlock": _rwlock,
    "join": _join,
    "semaphore": _semaphore,
    "condvar": _condvar,
    "barrier": _barrier,
}


# --- two looks ---


def mark_unchanged(first: Sequence[LockWait], second: Sequence[LockWait]) -> Tuple[LockWait, ...]:
    """The waits of the first look, each with whether the second one found the same: same lock, same owner."""
    later = {wait.thread: wait for wait in second}
    rows: List[LockWait] = []
    for wait in first:
        now = later.get(wait.thread)
        same = now is not None and (now.kind, now.owner) == (wait.kind, wait.owner)
        # Who waits for the GIL asks again every few milliseconds: its word may be another one, or none at the moment.
        here = now is not None and (now.address == wait.address or wait.kind == "gil")
        rows.append(replace(wait, still=same and here))
    return tuple(rows)
