"""Words for people: the place that a thread is in, or died in."""

from __future__ import annotations

import itertools
from typing import Callable, Dict, List, Optional, Sequence

from gdbext.analysis.stacks.frame_facts import NAMES
from gdbext.analysis.stacks.reporting_frames import reports_failure
from gdbext.analysis.stacks.text_kind import holder_for_debuggers, interrupted_in
from gdbext.analysis.stacks.thread_kind import rules_matching
from gdbext.analysis.view.job_view import Party
from gdbext.analysis.view.wording import CALLED, REACHED, closed, verb, who
from gdbext.knowledge.frames.failures import DEVICE_CHECKS, OWN_CHECKS
from gdbext.knowledge.frames.system.checkers import BELOW_PROGRAM, CHECKERS, RUNTIMES
from gdbext.knowledge.frames.system.code_owners import (
    C_LIBRARY_FUNCTIONS,
    CALLS_C,
    LAMBDA_OWNER,
    NAMELESS_PYTHON,
    STANDARD_FILES,
    STANDARD_NAMES,
    WAITS_OF_WINDOWS,
)
from gdbext.knowledge.frames.system.libc import SIGNAL
from gdbext.knowledge.log_lines.last_words import ENDED, HIT_ALONE, IN_NATIVE_CODE, LOGGED
from gdbext.model.stack import Frame
from gdbext.model.text.paths import short_file
from gdbext.model.text.patterns import regex
from gdbext.model.text.source_names import source_name

LONGEST_NAME = 80
ONLY_REPORTS = "That call only raises or reports the failure; the call that failed is not on this stack."
_MOST_PLACES = 2
_OF_A_LIBRARY = ("mutex", "condvar-idle")
"""Waits for something of the code that called the C library, whoever asked that code for it."""
LOCKED = {"gil": "the GIL", "mutex": "a lock"}
_SLEEPS = ("mutex", "condvar-idle", "io")
_STANDARD_FILE, _LAMBDA_OWNER, _WAITS = map(regex, (STANDARD_FILES, LAMBDA_OWNER, C_LIBRARY_FUNCTIONS))
_SCOPES = regex(r"(?<=[<, ])(?:[A-Za-z_]\w*::)+(?=[A-Za-z_]\w*[>,])")
_CHECKS_DEVICE, _OWN_CHECK = regex(DEVICE_CHECKS), regex(OWN_CHECKS)
_BELOW, _RUNTIME = regex(BELOW_PROGRAM), regex(RUNTIMES)
_HIT = regex(HIT_ALONE.format(r"(?P<name>\S{1,200})") + r"(?: at (?P<place>\S{1,400}))?$")
_SIGNAL_IN_NATIVE = regex(IN_NATIVE_CODE)
_ENDED = regex(ENDED)
_OF_CONDITION = regex(r"PyCOND_\w+$|_?PyMUTEX_\w+$")
_LEFT_BY_SIGNAL, _OF_WINDOWS = map(regex, (SIGNAL, WAITS_OF_WINDOWS))
_TAKES = regex(r"take_gil|PyEval_(?:Restore|Acquire)\w+|PyGILState_\w+|_PyThreadState_\w+")


def place(frame: Optional[Frame]) -> str:
    """`decode (parallel_gpt.cc:66)`; the library where there is no source line of its own."""
    if frame is None:
        return "an unknown place"
    name = NAMES.known_frame(frame).name
    if name is None and frame.pc == 0:
        return "a call of address 0"
    if name is None:
        nameless = f"an unnamed function of {_file(frame.library)}" if frame.library else "code without symbols"
        return f"{short_file(frame.file)}:{frame.line}" if frame.file and frame.line else nameless
    owner = _LAMBDA_OWNER.search(name) if name.startswith(STANDARD_NAMES) else None
    if owner is not None:  # the library's function that calls it
        return owner["owner"]
    name = source_name(name)
    if len(name) > LONGEST_NAME and name.startswith(STANDARD_NAMES):  # its template's arguments say more
        name = f"{name[:18]}…{name[19 - LONGEST_NAME :]}"
    name = name if len(name) <= LONGEST_NAME else _without_arguments(name)
    if frame.file and (name.startswith(STANDARD_NAMES) or not _STANDARD_FILE.search(frame.file)):
        file = short_file(frame.file)
        where = f"{file}:{frame.line}" if frame.line else file
        return where if name in NAMELESS_PYTHON else f"{name} ({where})"
    return f"{name} ({_file(frame.library)})" if frame.library else name


def _file(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _without_arguments(name: str) -> str:
    """`Reader<Request>::Read`, `std::default_delete<…>::operator()`: a long name with the last names alone of what
    stands between angle brackets, or without that."""
    plain = _SCOPES.sub("", name)
    if len(plain) <= LONGEST_NAME:
        return plain
    pieces, depth = [], 0
    for sign in name:
        if sign == ">" and depth:
            depth -= 1
        if not depth:
            pieces.append(sign)
        if sign == "<":
            pieces += "…" if not depth else ""
            depth += 1
    short = "".join(pieces) if not depth else name
    return short if len(short) <= LONGEST_NAME else short[: LONGEST_NAME - 1] + "…"


def where(party: Party) -> str:
    """What the party's thread is in, and the engine's call that led there."""
    judged = party.judged
    inner, outer = party.frame(judged.frame), party.frame(judged.engine_frame)
    reported = reported_place(party)
    if reported is not None:
        return place(reported)
    if inner is None and outer is None:
        calls = party.calls
        telling = _telling(party, calls[0]) if calls else None
        return _library_alone(party) or (place(telling) if telling is not None else "a place that could not be read")
    if judged.rule in _SIGNALS:
        inner = party.frame((judged.frame or 0) + 1) or inner
    inner = _caller_of_report(party, inner) or inner
    inner = _exported(party, inner)
    if party.kind == "gil":
        inner = _gil_taker(party, inner) or inner
    if judged.kind == "cuda-error-throw" and outer is not None:
        return place(outer)
    if inner is None or (
        outer is not None
        and judged.rule is not None
        and judged.rule.startswith(("os-", "python-sleep", "python-thread", "python-select"))
        and judged.rule not in (*_LOCKS, *_SIGNALS)
    ):
        inner, outer = outer or inner, None
    telling = _telling(party, inner)
    if telling is not None and telling is not inner and NAMES.known_frame(telling).name is None:
        own = NAMES.known_frame(inner).name if inner is not None and party.group != "fatal" else None
        return called_from(party, own, inner, telling) if own else place(telling)
    of_library = party.kind in _OF_A_LIBRARY or party.group == "fatal"
    nameless = _library_before(party, inner, telling) if of_library else None
    if nameless is not None:
        return called_from(party, place(nameless), nameless, telling)
    if (
        telling is None
        or outer is None
        or says_nothing(outer)
        or outer is telling
        or (judged.engine_frame or 0) < (judged.frame or 0)
    ):
        caller = _caller_of_check(party, telling)
        return called_from(party, place(telling), telling, caller) if caller is not None else place(telling)
    name = telling.function or "an unnamed function"
    if telling.language == "python" or NAMES.known_frame(telling).name is None:
        name = place(telling)
    return called_from(party, name, telling, outer)


def died_at(party: Party) -> str:
    """Where a thread died: a signal hits native code, of which CPython prints no frame."""
    calls = party.calls
    problems = (*party.process.said, *(party.thread.problems if party.thread is not None else ()))
    hit = next(filter(None, map(_HIT.match, problems)), None)
    if hit is not None and hit["place"]:
        return f"{hit['name']} ({hit['place']})"
    if hit is not None and not any(frame.function for frame in calls):
        return str(hit["name"])
    below_python = bool(calls) and calls[0].language == "python" and any(map(_SIGNAL_IN_NATIVE.search, problems))
    native = below_python or (bool(calls) and calls[0].function in CALLS_C)
    return f"native code called from {where(party)}" if native else where(party)


def reported_place(party: Party) -> Optional[Frame]:
    """Of a checker's report the program's own function, not the call that the checker intercepts."""
    if party.process.source not in CHECKERS or party.thread is None:
        return None
    outer = [one for one in party.thread.calls if not _RUNTIME.match(one.library or "")]
    return next((one for one in outer if (one.function or one.library) and not _BELOW.match(one.function or "")), None)


def called_from(party: Party, name: str, inner: Optional[Frame], outer: Optional[Frame]) -> str:
    """`poll, called from decode`; `poll, reached from decode`, where a function with another name is between them."""
    calls = party.calls
    first, last = (next((at for at, frame in enumerate(calls) if frame is one), 0) for one in (inner, outer))
    between = [frame for frame in calls[first + 1 : last] if NAMES.known_frame(frame).name]
    names = {one.function for one in (inner, outer) if one is not None}
    indirectly = any(frame.function not in names and not says_nothing(frame) for frame in between)
    return f"{name}{REACHED if indirectly else CALLED}{place(outer)}"


def calls_from(party: Party, inner: Optional[Frame]) -> Sequence[Frame]:
    """That very frame of its thread and those further out; nothing where it is not among them."""
    calls = party.calls
    return calls[next((number for number, frame in enumerate(calls) if frame is inner), len(calls)) :]


def _library_before(party: Party, inner: Optional[Frame], telling: Optional[Frame]) -> Optional[Frame]:
    """The frame without a name of the library that waits, where the one that has a name only called the library."""
    found = next((frame for frame in calls_from(party, inner) if not _is_beside(party, frame)), None)
    if found is None or found is telling or found.library is None:
        return None
    known = NAMES.known_frame(found)
    return found if known.name is None and not known.system else None


def _telling(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """The frame itself, or the first one further out that is no wait of the C library and has a name, or a library."""
    calls = calls_from(party, inner)
    outwards = [frame for frame in calls if not _is_beside(party, frame)]
    own = [frame for frame in outwards if NAMES.known_frame(frame).name or not NAMES.known_frame(frame).system]
    named = [frame for frame in calls if NAMES.known_frame(frame).name and not NAMES.known_frame(frame).entry]
    some = (
        [one for one in own if NAMES.known_frame(one).name]
        or [one for one in own if one.library]
        or [frame for frame in named if _LAMBDA_OWNER.search(frame.function or "")]
        or named[-1:]
    )
    return some[0] if some else inner


def _is_beside(party: Party, frame: Frame) -> bool:
    """Whether a frame does not say where a thread is: a wait of the C library, or on the way to a death the report of
    it."""
    if party.group != "fatal":
        return says_nothing(frame)
    return says_nothing(frame) or reports_failure(frame.function) or NAMES.known_frame(frame).system


def waits_in(party: Party, module: str) -> bool:
    """Whether the frame that decides is of that library. `module`: a pattern of its name."""
    frame = party.frame(party.judged.frame)
    return frame is not None and regex(module).match(frame.library or "") is not None


def says_nothing(frame: Frame) -> bool:
    name = frame.function or ""
    waits = _WAITS.match(name) or _LEFT_BY_SIGNAL.match(name) or _OF_WINDOWS.match(name)
    return waits is not None or NAMES.known_frame(frame).entry


def _caller_of_report(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """Of a thread that only reports a failure the call that failed: the first one further out that has a name."""
    if party.group != "fatal" or inner is None or not reports_failure(inner.function):
        return None
    calls = calls_from(party, inner)
    return next((frame for frame in calls if frame.function and not reports_failure(frame.function)), None)


def _caller_of_check(party: Party, telling: Optional[Frame]) -> Optional[Frame]:
    """Whose call of the device it was that a check found to have failed."""
    if party.group != "fatal" or telling is None or not _CHECKS_DEVICE.match(telling.function or ""):
        return None
    callers = calls_from(party, telling)[1:]
    return next((frame for frame in callers if frame.function and not _CHECKS_DEVICE.match(frame.function)), None)


def _exported(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """What was called of a library without symbols: for its inner functions UCX prints the nearest exported name."""
    if inner is None or party.process.source != "text:ucx" or not _is_of_nccl(inner):
        return inner
    calls = calls_from(party, inner)
    return calls[next((number for number, frame in enumerate(calls) if not _is_of_nccl(frame)), len(calls)) - 1]


def _is_of_nccl(frame: Frame) -> bool:
    return frame.file is None and frame.library is None and (frame.function or "").startswith("nccl")


def _gil_taker(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """CPython's own function that takes the GIL, not the one of its condition variable."""
    if inner is None or not _OF_CONDITION.match(inner.function or ""):
        return None
    calls = calls_from(party, inner)
    return next((frame for frame in calls[1:3] if _TAKES.match(frame.function or "")), None)


def in_places(parties: Sequence[Party]) -> str:
    """`rank 0 is in poll and ranks 1-2 are in decode (gpt.cc:66)`: the first two places, and how many are elsewhere."""
    shown = list(_grouped(parties, where).items())[:_MOST_PLACES]
    *most, last = [f"{who(some)} {is_in(some)} {place}" for place, some in shown]
    text = " and ".join([*map(closed, most), last])
    more = len(parties) - sum(len(some) for _, some in shown)
    return f"{text}, and {more} more {'is' if more == 1 else 'are'} elsewhere" if more else text


def only_raised(party: Party) -> bool:
    """Whether all that is known of its end is a traceback that a logger printed: the program caught the exception."""
    lines = party.thread.problems if party.thread is not None else ()
    return LOGGED in lines and not any(map(_ENDED.search, (*lines, *party.process.said)))


def stopped_in_wait(party: Party) -> bool:
    """Whether the signal whose handler runs came while the thread slept: in a wait no code raises a fault."""
    inside = itertools.takewhile(says_nothing, interrupted_in(party.thread))
    return any(row.kind in _SLEEPS for frame in inside for row in rules_matching(frame))


def failed_before(party: Party) -> str:
    """What a process whose signal handler runs was failing in, as a sentence; "" where nothing shows that it was."""
    reporting = itertools.takewhile(_reports, interrupted_in(party.thread))
    check = next((frame for frame in [*reporting][::-1] if _OWN_CHECK.match(frame.function or "")), None)
    return f" The handler ran because the process was failing already, in {place(check)}." if check is not None else ""


def _reports(frame: Frame) -> bool:
    return reports_failure(frame.function) or _OWN_CHECK.match(frame.function or "") is not None


def ended(parties: Sequence[Party]) -> str:
    """`died`, or what is known instead of threads that a logger's traceback shows."""
    if all(holder_for_debuggers(party.thread) for party in parties):
        return "failed"
    return "raised an exception" if all(map(only_raised, parties)) else "died"


def held(party: Party) -> str:
    """What keeps a process that failed, as a sentence."""
    holder = holder_for_debuggers(party.thread)
    return f" The process still exists: {holder} holds it for a debugger." if holder else ""


def is_in(parties: Sequence[Party]) -> str:
    """`are in`, `died in`; of waits for a lock that too, because their place is who asked for it."""
    if all(party.group == "fatal" for party in parties):
        return f"{ended(parties)} in"
    held = LOCKED.get(parties[0].kind) if len({party.kind for party in parties}) == 1 else None
    return f"{verb(parties, 'waits', 'wait')} for {held} in" if held else verb(parties, "is in", "are in")


def only_reports(party: Party) -> bool:
    """Whether its stack has nothing but the report of its end, and nothing else tells where that was."""
    if party.thread is None or not party.thread.calls:
        return False
    hits = [hit["name"] for hit in map(_HIT.match, party.thread.problems) if hit is not None]
    names = [frame.function for frame in party.thread.calls]
    return all(map(reports_failure, hits if hits and not any(names) else [*hits, *names]))


def taken_in(party: Party) -> str:
    """The engine's call that takes a lock; what kind of lock it is needs no second name."""
    engine = party.frame(party.judged.engine_frame)
    return place(engine) if engine is not None else where(party)


_LOCKS = ("os-once", "os-loader-lock")
"""Frame rules whose function says more than that the thread waits."""

_SIGNALS = ("signal-shared-memory", "signal-in-nccl", "os-signal", "signal-in-wait")
"""Frame rules of the frame that a signal leaves: what was interrupted stands behind it."""


def _library_alone(party: Party) -> str:
    """The library whose frames without a name are all there is, the C library apart."""
    nameless = {frame.library for frame in party.calls if frame.function is None and frame.library}
    return f"{nameless.pop()} (no symbols)" if len(nameless) == 1 else ""


def operation(party: Party) -> str:
    """`all_reduce` where the stack names a collective, else the call it waits in."""
    judged = party.judged
    if judged.collective:
        return judged.collective
    frame = party.frame(judged.frame)
    return (frame.function if frame is not None and frame.function else None) or judged.kind


def what(parties: Sequence[Party]) -> str:
    """What they wait in, in words: `gather (rank 0) and broadcast (rank 1)` where they differ."""
    return told_apart(parties, operation)


def what_places(parties: Sequence[Party]) -> str:
    """The place of all of them; where they differ, who is where, without who called that."""
    places = list(_grouped(parties, where))
    if len(places) == 1:
        return places[0]
    return told_apart(parties, lambda party: where(party).partition(REACHED)[0].partition(CALLED)[0])


def told_apart(parties: Sequence[Party], of: Callable[[Party], str]) -> str:
    """What most of them are in comes first."""
    groups = _grouped(parties, of)
    if len(groups) == 1:
        return next(iter(groups))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    pieces = [_with_subject(name, who(members)) for name, members in ordered[:_MOST_PLACES]]
    rest = len(ordered) - len(pieces)
    others = "" if not rest else " and one other call" if rest == 1 else f" and {rest:,} other calls"
    return f"{', '.join(pieces)}{others}" if others else " and ".join(pieces)


def _grouped(parties: Sequence[Party], of: Callable[[Party], str]) -> Dict[str, List[Party]]:
    """The parties by those words, in the order in which they first come."""
    groups: Dict[str, List[Party]] = {}
    for party in parties:
        groups.setdefault(of(party), []).append(party)
    return groups


def _with_subject(name: str, subject: str) -> str:
    """`decode (engine.py:3, rank 0)`."""
    return f"{name[:-1]}, {subject})" if name.endswith(")") and not name.endswith("()") else f"{name} ({subject})"
