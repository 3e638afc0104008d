"""Waits of a program's own code, by the names of its functions."""

from __future__ import annotations

from itertools import islice
from typing import List, Optional, Pattern

from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.stacks.decisive import exits, is_main
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.knowledge.frames.system.code_owners import C_LIBRARY_FUNCTIONS
from gdbext.knowledge.frames.system.libc import JOINS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.untimed_calls import (
    ALLOCATES_BY_NAME,
    CHILD_WAITS,
    COLLECTIVES_BY_NAME,
    ENDS_BY_NAME,
    GIVES_BY_NAME,
    LOCKS_BY_NAME,
    LOCKS_OF_PYTHON,
    LOOPS_BY_NAME,
    SETS_UP_BY_NAME,
    STOPS_BY_NAME,
    TAKES_BY_NAME,
    WAITS_BY_NAME,
    WATCHES_BY_NAME,
)
from gdbext.model.codes import LoopKind
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.model.text.source_names import source_name

_ENDS, _COLLECTIVES, _LOCKS = map(regex, (ENDS_BY_NAME, COLLECTIVES_BY_NAME, LOCKS_BY_NAME))
_ALLOCATES = regex(ALLOCATES_BY_NAME)
_GIVES, _TAKES, _WAITS = map(regex, (GIVES_BY_NAME, TAKES_BY_NAME, WAITS_BY_NAME))
_LOCKS_OF_PYTHON, _SETS_UP, _STOPS = map(regex, (LOCKS_OF_PYTHON, SETS_UP_BY_NAME, STOPS_BY_NAME))
_LOOPS, _WATCHES = regex(LOOPS_BY_NAME), regex(WATCHES_BY_NAME)
_STANDARD_LIBRARY = regex(
    r"(^|/)(socket|ssl|selectors|threading|(asyncio|multiprocessing|concurrent/futures)/\w+)\.py$|/include/c\+\+/"
)
_SLEEPS = regex(rf"{C_LIBRARY_FUNCTIONS}|(py_?sleep|time_sleep|floatsleep)$")
_LAST_NAME, _NEXT_WORD = regex(r"\.|::"), regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NEAR = 4
"""Functions of Python within which the wait for a thread of one's own was called."""


def naps_for_end(one: Party) -> bool:
    """Whether it sleeps again and again in a function whose name says that it ends something: what it looks for, others
    must do."""
    return _naps_by_name(one, _ENDS)


def naps_for_others(one: Party) -> bool:
    """Whether it looks again and again whether something has ended, or whether a lock is free that others have, or part
    of a store."""
    return naps_for_end(one) or tries_lock(one) or naps_for_part(one)


def runs_until_done(one: Party) -> bool:
    """Whether it runs in a function of Python whose name says that it waits until something is so."""
    if one.kind != "python-code":
        return False
    inner = next(one.python_calls(), None)
    return inner is not None and _WAITS.match(words_of(inner.function or "")) is not None


def goes_round(one: Party) -> bool:
    """Whether one of its own functions of Python has a name that says that it takes one piece of work after the
    other."""
    own = (frame for frame in one.python_calls() if not _STANDARD_LIBRARY.search(frame.file or ""))
    return any(is_loop(frame) for frame in own)


def is_loop(frame: Frame) -> bool:
    """The same for one function."""
    return _LOOPS.match(words_of(frame.function or "")) is not None


def watches(one: Party) -> bool:
    """Whether it runs in a function of Python whose name says that it looks or reports from time to time."""
    return any(_WATCHES.match(words_of(frame.function or "")) for frame in one.python_calls())


def sets_up(one: Party) -> bool:
    """Whether the innermost function of its own, of Python, has a name that says that it connects processes."""
    own = (frame for frame in one.python_calls() if not _STANDARD_LIBRARY.search(frame.file or ""))
    inner = next(own, None)
    return inner is not None and _SETS_UP.match(words_of(inner.function or "")) is not None


def waits_once(one: Party) -> bool:
    """Whether its main thread waits for a message in no loop, by the text of its functions: for this one alone. A
    server waits in a loop."""
    receives = one.kind in ("io", "ipc-queue") and not one.judged.idle
    return receives and kind_of_loop(one) is LoopKind.NONE


def kind_of_loop(one: Party) -> Optional[LoopKind]:
    """Of the loop that a thread is in, where its text is known and says anything."""
    return next((loop.kind for loop in one.process.loops_in_text if loop.thread == one.lwp), None)


def stops_something(one: Party) -> bool:
    """Whether it waits for the end of a thread or child in a function of its own whose name says that it stops
    something: no server that waits for requests does."""
    calls = one.calls[(one.judged.frame or 0) + 1 :] if one.judged.rule in (*JOINS, *CHILD_WAITS) else ()
    own = (frame for frame in calls if frame.file and not _STANDARD_LIBRARY.search(frame.file))
    inner = next((frame for frame in own if not (frame.function or "").startswith("std::")), None)
    return inner is not None and _is_named(inner, _STOPS)


def is_stopping(one: Party) -> bool:
    """The same, or it waits so while its process exits."""
    waits = one.judged.rule in (*JOINS, *CHILD_WAITS) and one.thread is not None and exits(one.thread)
    return waits or stops_something(one)


def naps_for_room(one: Party) -> bool:
    """Whether it sleeps again and again in a function whose name says that it gives something to others, who must make
    room for it."""
    return _naps_by_name(one, _GIVES)


def naps_for_part(one: Party) -> bool:
    """Whether it sleeps again and again in a function whose name says that it takes a part of a store (a block, a
    buffer), and no other thread of its process did anything: none gives one back."""
    others = (thread for thread in one.process.threads if thread.lwp != one.lwp)
    return _naps_by_name(one, _ALLOCATES) and not any(thread.switches or thread.state == "R" for thread in others)


def naps_for_message(one: Party) -> bool:
    """Whether it sleeps again and again in a function whose name says that it takes something from others."""
    return _naps_by_name(one, _TAKES)


def naps_for_lock(one: Party) -> bool:
    """Whether it sleeps again and again in a function whose name says that it takes a lock, and its process has no
    other thread that could release it. A lock that Python code tries again is one of a file or of a server."""
    nap = _naps_in(one) if len(one.process.threads) == 1 else None
    return nap is not None and nap.language != "python" and _is_named(nap, _LOCKS)


def tries_lock(one: Party) -> bool:
    """Whether it sleeps again and again in a function of Python whose name says that it takes a lock: of a file, or of
    a server."""
    nap = _naps_in(one)
    return nap is not None and nap.language == "python" and _LOCKS_OF_PYTHON.match(nap.function or "") is not None


def _naps_by_name(one: Party, names: Pattern[str]) -> bool:
    nap = _naps_in(one)
    return nap is not None and _is_named(nap, names)


def _is_named(nap: Frame, names: Pattern[str]) -> bool:
    return names.match(words_of(source_name(nap.function or ""))) is not None


def _naps_in(one: Party) -> Optional[Frame]:
    """The function that has sent it to sleep; None where it does not sleep by its own will."""
    if one.thread is None or one.thread.sleeps is None or one.judged.rule not in OWN_SLEEPS:
        return None
    return next((frame for frame in one.thread.calls if not _SLEEPS.match(source_name(frame.function or ""))), None)


def waits_in_collective(one: Party) -> bool:
    """Whether it waits without a limit for another thread of its process, in a function named as a collective: that
    thread is to carry it out, as soon as all ranks have asked for it."""
    return one.kind == "condvar-idle" and stands(one) and collective_call(one) is not None


def collective_call(one: Party) -> Optional[Frame]:
    """The function named so that it waits in."""
    near = islice(one.python_calls(), _NEAR)
    return next((frame for frame in near if _COLLECTIVES.match(words_of(frame.function or ""))), None)


def mains_in_collective(view: JobView) -> List[Party]:
    """The main threads of several processes, all of which wait so; [] where one does not. Meanwhile threads beside them
    may well talk to each other."""
    found: List[Party] = []
    for index in dict.fromkeys(party.index for party in view.parties):
        own = threads_of(view, index)
        main = next((one for one in own if one.thread is not None and is_main(one.process, one.thread)), None)
        if main is None or not waits_in_collective(main):
            return []
        found.append(main)
    return found if len(found) > 1 else []


def words_of(name: str) -> str:
    """The last part of a name as words: `Pool::waitForAll<int>` is `wait_for_all`."""
    return _NEXT_WORD.sub("_", _LAST_NAME.split(name.partition("<")[0])[-1]).lower()
