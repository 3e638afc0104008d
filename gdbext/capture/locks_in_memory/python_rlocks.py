"""Who holds a threading.RLock: its object has the thread's ident, and how often that has taken it. And whose end a
thread waits for: join() has the other one's ident.

`_thread.RLock` (Modules/_threadmodule.c, 3.8 to 3.13): behind the object's head the address of the lock, which is a
semaphore on Linux, the owner's pthread_self(), and the count. The waiter has called a method of the object, so its
stack holds the object's address. From 3.14 on the lock is a byte of the object, and its waiters sleep elsewhere.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.locks_in_memory.process_locks import is_of_type
from gdbext.knowledge.runtimes.cpython_frames import JOINED
from gdbext.model.locks import LockWait
from gdbext.model.stack import ThreadStack

_WAITS = re.compile(r"PyThread_acquire_lock(?:_timed)?\Z")
_DEPTH = 24  # frames, from the wait outwards
_RLOCK = struct.Struct("<QQQQ")  # type, lock, owner, count
_TYPE = b"_thread.RLock\0"
_HEAD = 8  # the count of references
_STACK = 4096  # bytes from the stack pointer on: the call that waits is at the inner end
_FIRST = 1 << 16  # no object lies below
_MOST_COUNT = 1 << 20
_MOST_WAITS = 256  # that are looked at; each takes a third of a millisecond
_INSIDE_JOIN = ("_wait_for_tstate_lock", "_join_os_thread")

ReadMany = Callable[[Sequence[Tuple[int, int]]], Sequence[Optional[bytes]]]


def with_owners(
    waits: Sequence[LockWait],
    stacks: Sequence[ThreadStack],
    pointers: Mapping[int, int],
    threads: Mapping[int, int],
    read_many: ReadMany,
) -> Tuple[LockWait, ...]:
    """The waits; those for an RLock with the thread that holds it. `pointers`: stack pointers by LWP; `threads`: LWP by
    pthread_self()."""
    joined = {stack.lwp: threads.get(ident) for stack, ident in _joining(stacks)}
    asking = {stack.lwp for stack in stacks if any(_WAITS.match(one.function or "") for one in stack.calls[:_DEPTH])}
    found = [_joins(one, joined.get(one.thread)) for one in waits]
    looked_at = [at for at, one in enumerate(found) if one.kind == "semaphore" and one.thread in asking][:_MOST_WAITS]
    for at in looked_at:
        found[at] = _owned(found[at], pointers.get(found[at].thread), threads, read_many)
    return tuple(found)


def _joining(stacks: Sequence[ThreadStack]) -> Iterator[Tuple[ThreadStack, int]]:
    """Threads that wait for the end of another one, and its ident. A handler of a signal may wait inside of join()."""
    for stack in stacks:
        python = (frame for frame in stack.calls[:_DEPTH] if frame.language == "python")
        join = next((one for one in python if (one.function or "").rpartition(".")[2] not in _INSIDE_JOIN), None)
        ident = join.captures.get(JOINED) if join is not None else None
        if isinstance(ident, int):
            yield stack, ident


def _joins(wait: LockWait, lwp: Optional[int]) -> LockWait:
    if lwp is None or wait.kind != "semaphore" or lwp == wait.thread:
        return wait
    return replace(wait, kind="join", owner=lwp, detail="")


def _owned(wait: LockWait, pointer: Optional[int], threads: Mapping[int, int], read_many: ReadMany) -> LockWait:
    for type_, owner, count in _objects(pointer, wait.address, read_many) if pointer else ():
        lwp = threads.get(owner)
        if lwp is None or not 0 < count < _MOST_COUNT or not _is_rlock(type_, read_many):
            continue
        return replace(wait, kind="mutex", owner=lwp, detail=f"an RLock of Python{_taken(count)}")
    return wait


def _taken(count: int) -> str:
    return f", taken {count} times" if count > 1 else ""


def _objects(pointer: int, lock: int, read_many: ReadMany) -> Iterator[Tuple[int, int, int]]:
    """Type, owner and count of what may be the object of a lock, by the words of a stack."""
    data = read_many([(pointer, _STACK)])[0] or b""
    words = struct.unpack_from(f"<{len(data) // 8}Q", data)
    addresses: List[int] = list(dict.fromkeys(word for word in words if word > _FIRST and word % 8 == 0))
    for piece in read_many([(address + _HEAD, _RLOCK.size) for address in addresses]):
        if piece is not None:
            type_, its_lock, owner, count = _RLOCK.unpack(piece)
            if its_lock == lock:
                yield type_, owner, count


def _is_rlock(type_: int, read_many: ReadMany) -> bool:
    return is_of_type(lambda address, size: read_many([(address, size)])[0], type_, _TYPE)
