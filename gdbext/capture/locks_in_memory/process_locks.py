"""Who holds a lock of multiprocessing: each process counts for itself how often it has acquired a semaphore.

`_multiprocessing.SemLock` (Modules/_multiprocessing/semaphore.c, 3.8 to 3.13): behind the object's head the address of
the semaphore, the thread that acquired it last, how often it is acquired, its greatest value, and its kind.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from gdbext.capture.memory.maps import Mapping as Mapped
from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import TYPE_NAME
from gdbext.model.locks import LockWait
from gdbext.model.stack import Frame, ThreadStack

_SEMLOCK = struct.Struct("<QQQiii")  # type, semaphore, thread, count, greatest value, kind
_TYPE = b"_multiprocessing.SemLock\0"
_PLACE = "/dev/shm/sem."  # noqa: S108 - where glibc keeps them (sem_overview(7))
_ACQUIRES, _PACKAGE = "_multiprocessing_SemLock_acquire", "multiprocessing/"
_ENTERS, _FILE = "__enter__", "multiprocessing/synchronize.py"
_MOST_BYTES = 256 << 20  # of one process that are searched
_MOST_FOUND = 64
_DEPTH = 24  # frames, from the wait outwards


class Searched(NamedTuple):
    """A process that may hold locks."""

    pid: int
    maps: MemoryMap
    read: Read
    threads: Mapping[int, int]  # LWP by pthread_self()


def with_owners(
    waits: Sequence[LockWait], stacks: Sequence[ThreadStack], own: Searched, all_: Sequence[Searched]
) -> Tuple[LockWait, ...]:
    """The waits; those of `with lock:` with the thread that holds the lock, and those of `lock.acquire()` in code of
    the program itself if another process holds it: who has it and asks for it again may wait for others to release it,
    as for a signal. Elsewhere a semaphore may be one that others post, as queues have them."""
    entering = {stack.lwp for stack in stacks if any(map(_enters, stack.calls[:_DEPTH]))}
    asking = {stack.lwp for stack in stacks if _asks(stack)}
    found = [_owned(one, own.maps, all_) if one.thread in entering | asking else one for one in waits]
    return tuple(
        one if one.thread in entering or one.owner_process != own.pid else was for was, one in zip(waits, found)
    )


def _asks(stack: ThreadStack) -> bool:
    """Whether a function of the program itself, and none of multiprocessing, has called `acquire`."""
    calls = stack.calls[:_DEPTH]
    inner = next((frame for frame in calls if frame.language == "python"), None)
    return (
        inner is not None
        and _PACKAGE not in (inner.file or "")
        and any((frame.function or "").startswith(_ACQUIRES) for frame in calls)
    )


def _enters(frame: Frame) -> bool:
    return (frame.function or "").rpartition(".")[2] == _ENTERS and (frame.file or "").endswith(_FILE)


def _owned(wait: LockWait, own: MemoryMap, all_: Sequence[Searched]) -> LockWait:
    home = own.find(wait.address)
    if wait.kind != "semaphore" or home is None or not home.path.startswith(_PLACE):
        return wait
    found = [(one, *state) for one in all_ for state in _states(one, home, wait.address)]
    holders = [(one, thread) for one, thread, count in found if count > 0]
    if len(holders) != 1 or any(count < 0 for _, _, count in found):
        return wait  # who has released what another one acquired uses it as no lock
    process, thread = holders[0]
    lwp = process.threads.get(thread)
    return wait if lwp is None else replace(wait, kind="mutex", owner=lwp, owner_process=process.pid)


def _states(one: Searched, home: Mapped, address: int) -> Iterator[Tuple[int, int]]:
    """The last thread and the count of each lock object of a process on this semaphore."""
    key = (home.device, home.inode)
    for mapping in one.maps:
        if (mapping.device, mapping.inode) == key:
            yield from _objects(one, mapping.start - mapping.offset + address - home.start + home.offset)


def _objects(one: Searched, semaphore: int) -> Iterator[Tuple[int, int]]:
    room, word = _MOST_BYTES, struct.pack("<Q", semaphore)
    for mapping in one.maps:
        size = mapping.end - mapping.start
        if mapping.is_file or not mapping.permissions.startswith("rw") or size > room:
            continue
        room -= size
        data = one.read(mapping.start, size) or b""
        for at in _places(data, word):
            kind, _, thread, count, most, _ = _SEMLOCK.unpack_from(data, at - 8)
            if most == 1 and is_of_type(one.read, kind, _TYPE):
                yield thread, count


def _places(data: bytes, word: bytes) -> List[int]:
    found: List[int] = []
    at = data.find(word, 8)
    while at >= 0 and len(found) < _MOST_FOUND:
        if not at % 8 and at - 8 + _SEMLOCK.size <= len(data):
            found.append(at)
        at = data.find(word, at + 1)
    return found


def is_of_type(read: Read, kind: int, name: bytes) -> bool:
    """Whether a type has this name, which ends with a NUL."""
    pointer = read(kind + TYPE_NAME, 8)
    return pointer is not None and read(struct.unpack("<Q", pointer)[0], len(name)) == name
