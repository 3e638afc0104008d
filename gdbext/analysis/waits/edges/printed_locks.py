"""Locks that a runtime prints beside its stacks: which one a thread waits for, and which it has."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Match, Optional, Pattern, Tuple

from gdbext.analysis.view.job_view import Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.knowledge.causes.held_by_frames import (
    BLOCKS_LINE,
    HAS_LINE,
    INITIALISES,
    LEFT_LINE,
    WANTS_CLASS_LINE,
    WANTS_LINE,
)
from gdbext.model.text.patterns import regex
from gdbext.model.waits import Node

_WANTS, _HAS, _LEFT, _BLOCKS = map(regex, (WANTS_LINE, HAS_LINE, LEFT_LINE, BLOCKS_LINE))
_WANTS_CLASS, _INITIALISES = map(regex, (WANTS_CLASS_LINE, INITIALISES))
_OF_CLASS = regex(r"class .")


def draw(drawing: Drawing) -> None:
    """An edge from each thread to the lock that it wants, and on to the thread that has it; linear in lines."""
    for index, process in enumerate(drawing.view.snapshot.processes):
        waiting = {id(one) for one in process.threads if any(map(_is_wanted, one.problems))}
        if not waiting:
            continue
        parties = threads_of(drawing.view, index)
        holders, named = dict(_holders(parties)), _by_name(parties)
        for party in parties:
            wanted = next(_wanted(party), None) if id(party.thread) in waiting else None
            if wanted is None:
                continue
            lock, owner = wanted
            holder = holders.get(lock) or named.get(owner or "")
            if holder is party or (holder is None and owner is None):
                continue
            node = drawing.resource("lock", f"{index}:{lock}", _label(lock))
            drawing.join(drawing.of(party), node, "mutex", "named", drawing.fact(party))
            if drawing.waits(node):
                continue
            if holder is not None:
                drawing.join(node, drawing.of(holder), "holds", "named")
            else:
                _not_printed(drawing, party, node, owner or "")


def _not_printed(drawing: Drawing, party: Party, lock: Node, owner: str) -> None:
    """A holder of which there is no stack: it may be said to wait for a lock of the one that waits for it."""
    other = drawing.resource("thread", f"{party.index}:{owner}", f"thread {owner}")
    drawing.join(lock, other, "holds", "named")
    if any(owner == match.group("thread") for match in _matches(_BLOCKS, party)):
        back = drawing.resource("lock", f"{lock.id}:back", "another lock")
        drawing.join(other, back, "mutex", "named")
        drawing.join(back, drawing.of(party), "holds", "named")


def _label(lock: str) -> str:
    return f"the initialization lock of {lock}" if _OF_CLASS.match(lock) else f"lock {lock}"


def _is_wanted(line: str) -> bool:
    return bool(_WANTS.match(line) or _WANTS_CLASS.match(line))


def _wanted(party: Party) -> Iterator[Tuple[str, Optional[str]]]:
    """Locks with the name of who has them, where it is printed."""
    yield from ((match.group("lock"), match.group("holder")) for match in _matches(_WANTS, party))
    yield from ((f"class {match.group('lock')}", None) for match in _matches(_WANTS_CLASS, party))


def _holders(parties: Iterable[Party]) -> Iterator[Tuple[str, Party]]:
    for party in parties:
        left = {lock for lock, _ in _wanted(party)} | {match.group("lock") for match in _matches(_LEFT, party)}
        has = [match.group("lock") for match in _matches(_HAS, party)]
        has += [f"class {name}" for name in _initialised(party)]
        yield from ((lock, party) for lock in has if lock not in left)


def _initialised(party: Party) -> Iterator[str]:
    """Classes whose initialisation a thread runs: whoever else uses one waits for that."""
    for frame in party.thread.frames if party.thread is not None else ():
        match = _INITIALISES.match(frame.function or "")
        if match is not None:
            yield match.group("lock")


def _by_name(parties: Iterable[Party]) -> Dict[str, Party]:
    return {name: party for party in parties if party.thread is not None for name in (party.thread.name,) if name}


def _matches(pattern: Pattern[str], party: Party) -> Iterator[Match[str]]:
    lines = party.thread.problems if party.thread is not None else ()
    return filter(None, map(pattern.match, lines))
