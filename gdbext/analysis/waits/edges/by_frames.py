"""What the frames further out of a wait tell: which lock the thread has already, and what it is about to end."""

from __future__ import annotations

import functools
from typing import Dict, List, NamedTuple, Optional, Sequence

from gdbext.analysis.progress.own_work import looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.stacks.thread_kind import known_frames
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.assumed_holders import owner_of
from gdbext.analysis.waits.edges.other_frames import is_exiting
from gdbext.knowledge.causes.held_by_frames import (
    ENDS,
    EXITS,
    FILE_LOCKS,
    HELD,
    INSIDE_LOCKS,
    INTERRUPTED,
    SCOPES,
    STOPS,
    HeldLock,
)
from gdbext.knowledge.frames.system.libc import ENDS_ZMQ, JOINS
from gdbext.model.codes import KERNEL_TEXT, Given
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.model.waits import Edge, Node

_AT_REST = (Given.TEXT, Given.CORE)
_WAITS = ("elsewhere", "lock", "device", "implicit")
_OPEN = ("condition", "device", "lock", "peer", "process", "queue", "unknown")
"""What a thread waits for without saying who has to act."""
_WORKS = ("native-compute", "python-code", "gil")  # who waits for the GIL may well get it
_pattern = functools.lru_cache(maxsize=None)(regex)
"""Compiled when a thread is first asked: most looks have no such wait."""


class _Locks(NamedTuple):
    """A thread that waits for a lock: which one, and which it has."""

    wants: Optional[HeldLock]
    has: Optional[HeldLock]
    interrupted: bool  # it is in a signal handler, and what that interrupted may have it


def held_locks(drawing: Drawing, waiters: Sequence[Party]) -> None:
    """Locks of libraries that threads wait for, and that threads have because of where they were called from: of what
    is alive, only where it stood still, as such a wait is short when all is well."""
    still = drawing.view.still if drawing.view.given not in _AT_REST else range(len(drawing.view.processes))
    locks_of: Dict[Party, _Locks] = {}
    for party in waiters:
        known_node = drawing.known(party)
        if party.kind == "mutex" and party.index in still and not (known_node and drawing.waits(known_node)):
            locks_of[party] = _locks(party)
    for party, locks in locks_of.items():
        node = drawing.of(party)
        if locks.wants is not None and (locks.has is locks.wants or locks.interrupted or _holders(locks_of, party)):
            lock = _lock(drawing, party, locks.wants)
            drawing.join(node, lock, party.kind, "named", drawing.fact(party))
            if locks.has is locks.wants or locks.interrupted:
                drawing.join(lock, node, "holds", "inferred" if locks.has is locks.wants else "assumed")
            for holder in _holders(locks_of, party) if not drawing.waits(lock) else ():
                drawing.join(lock, drawing.of(holder), "holds", "inferred")
        elif locks.interrupted or (locks.has is not None and locks.has.hooks):
            own = drawing.resource("lock", node.id, "a lock")
            drawing.join(node, own, party.kind, "named", drawing.fact(party))
            if locks.has is None:
                drawing.join(own, node, "holds", "assumed")
                continue
            lock = _lock(drawing, party, locks.has)
            others = [one for one, theirs in locks_of.items() if one.index == party.index and theirs.wants is locks.has]
            other = drawing.of(others[0]) if others else drawing.resource("unknown", own.id, "another thread")
            drawing.join(own, other, "holds", "assumed")
            if not others:
                drawing.join(other, lock, "mutex", "assumed")
            if not drawing.waits(lock):
                drawing.join(lock, node, "holds", "inferred")


def _holders(locks_of: Dict[Party, _Locks], waiter: Party) -> List[Party]:
    """Other threads of its process that have what it wants, by their frames."""
    wanted = locks_of[waiter].wants
    return [
        one for one, locks in locks_of.items() if one.index == waiter.index and locks.has is wanted and one != waiter
    ]


def _lock(drawing: Drawing, party: Party, row: HeldLock) -> Node:
    return drawing.resource("lock", f"{party.index}:{row.name}", row.name)


def _locks(party: Party) -> _Locks:
    if party.thread is None:
        return _Locks(None, None, False)
    names = [frame.function or "" for frame in party.thread.calls]
    system = [one.system for one in known_frames(party.thread.calls)]
    first_own = _own_end(names, system, party.judged.frame or 0)
    wants = next((row for row in HELD for name in names[:first_own] if _is(row.wants, name)), None)
    while wants is not None and first_own < len(names) and _is(wants.wants, names[first_own]):
        first_own += 1
    stop = next((number for number in range(first_own, len(names)) if _is(INTERRUPTED, names[number])), None)
    has = next((row for row in HELD if _has(row, names, system, first_own, stop)), None)
    if has is None and wants is None and stop is not None:  # a signal may find it in the middle of that call
        has = next((row for row in HELD for name in names[stop + 1 : stop + 2] if _is(row.wants, name)), None)
    return _Locks(wants, has, stop is not None and _may_have(party.thread.calls, first_own, stop, wants))


def _may_have(calls: Sequence[Frame], asks: int, stop: int, wants: Optional[HeldLock]) -> bool:
    """Whether what a signal interrupted may have the lock that its handler wants: code that a row knows, or of the same
    class, file or library; or nobody knows what it was."""
    interrupted = calls[stop + 1 :]
    if not interrupted or any(frame.function is None for frame in interrupted):
        return True
    if wants is not None:
        names = [frame.function or "" for frame in interrupted]
        return any(_is(wants.wants, name) or _is(wants.holds, name) for name in names)
    handler = [frame for frame in calls[asks:stop] if frame.function]
    owners = {name for frame in handler for name in (owner_of(frame), frame.library) if name}
    return any(name in owners for frame in interrupted for name in (owner_of(frame), frame.library))


def _own_end(names: Sequence[str], system: Sequence[bool], at: int) -> int:
    """Where the code that asked for the lock begins: behind the frames of locks, of the C library and of one library
    that a row knows."""
    number = at + 1
    while number < len(names) and (system[number] or _is(INSIDE_LOCKS, names[number])):
        if any(_is(row.wants, names[number]) for row in HELD) or _is(INTERRUPTED, names[number]):
            break
        number += 1
    asks = number < len(names) and any(_is(row.wants, names[number]) for row in HELD)
    return number + 1 if asks else number


def _has(row: HeldLock, names: Sequence[str], system: Sequence[bool], first_own: int, stop: Optional[int]) -> bool:
    """Whether code that is not its own stands between the wait and a function that has the lock."""
    foreign = False
    for number in range(first_own, len(names)):
        if foreign and _is(row.holds, names[number]):
            return True
        own = _is(row.wants, names[number])
        foreign = foreign or number == stop or not (own or system[number] or _is(row.holds, names[number]))
    return False


def end_waits(drawing: Drawing) -> None:
    """Threads of a text that wait inside of the end of an object, a pool or the process, for nobody who works; of a
    live process one that is exiting or ends a ZeroMQ context, where looks have followed it for long."""
    view = drawing.view
    if view.given is Given.LIVE and not looked_long(view):
        return
    for party in view.parties:
        if view.given not in _AT_REST and not (stands(party) and (is_exiting(party) or party.judged.rule == ENDS_ZMQ)):
            continue
        rank = drawing.rank(party)
        open_ = all(_open(drawing, edge) for edge in drawing.leaving(rank))
        end = (_end_of(party) or _ended_by_another(view, party)) if open_ else None
        if end is None or _others_work(view, party):
            continue
        node = drawing.resource("object", rank.id, end, "external")
        drawing.clear(rank)
        drawing.join(rank, node, "ends", "assumed", drawing.fact(party))


def lock_files(drawing: Drawing) -> None:
    """Of texts: a lock that is a file, whose holder no stack shows."""
    for party in drawing.view.parties if drawing.view.given in _AT_REST else ():
        rank = drawing.rank(party)
        if party.judged.rule in FILE_LOCKS and all(_open(drawing, edge) for edge in drawing.leaving(rank)):
            node = drawing.resource("file", rank.id, "a lock file", "external")
            drawing.clear(rank)
            drawing.join(rank, node, "file lock", "assumed", drawing.fact(party))


def _open(drawing: Drawing, edge: Edge) -> bool:
    """Whether nobody is known whom the wait is for; also of the thread whose end it is for."""
    after = drawing.leaving(edge.target)
    if edge.target.kind == "thread" and after:
        return all(one.target.kind in _OPEN and not drawing.leaving(one.target) for one in after)
    return edge.target.kind in _OPEN and all(one.target.kind == "unknown" for one in after)


def _end_of(party: Party) -> Optional[str]:
    """The innermost call further out than the wait that ends something."""
    if party.group not in _WAITS or party.kind in _WORKS or party.thread is None:
        return None
    if party.process.source == KERNEL_TEXT:  # its functions end what belongs to the driver
        return None
    names = [frame.function or "" for frame in party.thread.calls[party.judged.frame or 0 :]]
    joins = party.judged.rule in JOINS
    around = zip(names, [*names[1:], ""])
    return next((name for name, caller in around if _ends(name, joins) and not _is(SCOPES, caller)), None)


def _ended_by_another(view: JobView, party: Party) -> Optional[str]:
    """Of a thread that waits for a lock: the call in which another thread ends something and waits for the end of a
    thread, where these two are all that is there."""
    others = threads_of(view, party.index, lambda one: one.helper is None) if party.kind == "mutex" else []
    joining = [one for one in others if one.thread is not party.thread and one.judged.rule in JOINS]
    return _end_of(joining[0]) if len(others) == 2 and joining else None


def _ends(name: str, joins: bool) -> bool:
    return _is(f"{ENDS}|{EXITS}|{STOPS}" if joins else f"{ENDS}|{EXITS}", name)


@functools.lru_cache(maxsize=4096)
def _is(pattern: str, name: str) -> bool:
    """Whether a function is one of those; jobs have few different ones."""
    return _pattern(pattern).match(name) is not None


def _others_work(view: JobView, party: Party) -> bool:
    others = threads_of(view, party.index, lambda one: one.helper is None and (one.kind in _WORKS or one.running))
    return any(one.thread is not party.thread for one in others)
