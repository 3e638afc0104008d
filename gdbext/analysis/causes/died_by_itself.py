"""Processes that died by themselves, as their frames show: a check of their own state, or a fault of their code."""

from __future__ import annotations

import itertools
import re
from typing import Mapping, Optional, Sequence, Tuple

from gdbext.analysis.stacks.frame_facts import NAMES
from gdbext.analysis.stacks.reporting_frames import reports_failure
from gdbext.analysis.stacks.text_kind import missing_inside
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, calls_of, matches_any, threads
from gdbext.analysis.view.places import (
    ONLY_REPORTS,
    died_at,
    ended,
    held,
    only_reports,
    place,
    says_nothing,
    stopped_in_wait,
    where,
)
from gdbext.analysis.view.wording import of_process, start, verb, who
from gdbext.knowledge.causes.held_by_frames import EXITS, INTERRUPTED
from gdbext.knowledge.frames.failures import (
    ASSERTED,
    CALLED_OFF,
    DEVICE_CHECKS,
    DUMPED,
    ENDS_ITSELF,
    FAULT_ADDRESS,
    HANDLER_FIRST,
    LOCK_CHECKS,
    OF_FILE,
    OF_FUNCTION,
    OF_LINE,
    OWN_CHECKS,
    OWN_FAULTS,
    REPORTERS,
    THROWS,
    UNCAUGHT,
    UNDONE,
    WINDOWS_FAULTS,
)
from gdbext.knowledge.frames.system.code_owners import EXPORTS_OF_STRIPPED
from gdbext.knowledge.labels import OF_ITS_OWN
from gdbext.model.codes import Given
from gdbext.model.stack import Captured, Frame
from gdbext.model.text.patterns import regex

_OWN_CHECK, _DEVICE_CHECK, _LOCK_CHECK = map(regex, (OWN_CHECKS, DEVICE_CHECKS, LOCK_CHECKS))
_OWN_FAULT, _CALLED_OFF, _EXIT, _INTERRUPTED = map(regex, (OWN_FAULTS, CALLED_OFF, EXITS, INTERRUPTED))
_DUMPED = regex(DUMPED)
_SIGNAL = regex(r"\b(SIG(?:SEGV|ILL|FPE))\b|Segmentation fault|Segfault encountered|^Signal \(11\) received")
_RETURNS_FROM_HANDLER = regex(r"lib(?:pthread|c|ucs)[-.]")
"""Libraries whose innermost frames, if they have no names, are the signal handler (UCX) or the return from it."""
_C_LIBRARY = regex(r"lib(?:pthread|c)[-.]")
_NAMES_RETURNS = regex(r"text:(?:gdb|lldb)|core")
"""Sources whose tool has a name for that return."""
_REASON_OF_UCX = regex(r"Caught signal \d{1,2} \([^:()]{1,40}: ((?:[^()]|\(nil\)){1,120})\)")
_DECLARED = regex(r"(?:.{0,300}?[ *&])?(?P<name>[\w:~]{1,200})(?:\(.*)?$")
"""__PRETTY_FUNCTION__, or __func__ alone."""
_ADDRESS = regex(FAULT_ADDRESS)
_FIRST_PAGES = 65536  # an access here is one through a null pointer
_EXPORTS = [(library, regex(names)) for library, names in EXPORTS_OF_STRIPPED]
_NOTHING = regex(r"(?!)")
_WRITES = regex(r"write\w*$|flush$|print$|emit$")
_IN_HANDLER, _FATAL = regex(REPORTERS), regex(r"Fatal Python error")
_UNDOES, _SETS_UP = map(regex, UNDONE)
_OF_WINDOWS = [(regex(pattern), name) for pattern, name in WINDOWS_FAULTS]
_IN_A_ROW = 3
_UNCAUGHT, _THROWS = map(regex, (UNCAUGHT, THROWS))


def told_by_frames(view: JobView, waited: bool) -> Optional[Candidate]:
    """A check of the program's own state, on the stack of the thread that it ended, or one of the order of locks; else
    a fault of its own. `waited`: a line tells of waiting for others."""
    checking = [one for one in threads(view, ("mutex", "exited-or-crashed")) if matches_any(_LOCK_CHECK, calls_of(one))]
    if checking and len(checking) == len(view.parties):
        return Candidate(
            cause="lock-order-deadlock",
            confidence="low",
            summary=f"{start(who(checking))} {verb(checking, 'is', 'are')} in {_lock_check(checking[0])}, a "
            "deadlock check built into the lock, which reports that locks were taken in different orders.",
            culprits=tuple(checking),
            evidence=evidence_of(checking, ()),
        )
    dying = [one for one in threads(view, ("exited-or-crashed",)) if _checked_itself(one)]
    if waited:
        return None
    if not dying:
        return _fell_over(view)
    dead = {one.index for one in dying}
    victims = tuple(party for party in view.of(*COMMUNICATION, "init") if party.index not in dead)
    return Candidate(
        cause="other",
        confidence="low",
        summary=(
            f"{start(who(dying))} aborted on {_assertion(dying[0]) or f'a failed assertion in {where(dying[0])}'}."
            f"{held(dying[0])}"
        ),
        culprits=tuple(dying),
        victims=victims,
        evidence=evidence_of(dying, victims),
    )


def _assertion(one: Party) -> str:
    """The condition that failed, and where it stands in the source, as a debugger printed the arguments of assert()."""
    calls = one.calls
    for at, frame in reversed(list(enumerate(calls))):  # the outermost says most: the compiler left less of it out
        said = frame.captures
        condition, file, function = (_text_of(said, names) for names in (ASSERTED, OF_FILE, OF_FUNCTION))
        if condition is None:
            continue
        line = said.get(OF_LINE)
        caller = next(
            (outer for outer in calls[at + 1 :] if outer.function and not reports_failure(outer.function)), None
        )
        declared = _DECLARED.match(function) if function is not None else None
        own = Frame(declared["name"] if declared is not None else None) if caller is None else caller
        spot = Frame(
            function=own.function,
            file=own.file if file is None else file,
            line=line if isinstance(line, int) else None,
        )
        shown = condition.replace('\\"', '"')
        return f"the failed assertion `{shown}` in {place(spot)}"
    return ""


def _text_of(said: Mapping[str, Captured], names: Sequence[str]) -> Optional[str]:
    """The first of these arguments that is a text."""
    values = (said.get(name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)


def _lock_check(one: Party) -> str:
    """Where the check itself is: the lock that called it has another name."""
    return place(next((frame for frame in one.calls if _LOCK_CHECK.match(frame.function or "")), None))


def _fell_over(view: JobView) -> Optional[Candidate]:
    """The one process that was read died of a fault of the code that it ran, at a place that is known."""
    dead = [one for one in view.parties if one.kind == "exited-or-crashed" and one.judged.helper is None]
    alone = len(view.snapshot.processes) == len(view.parties) == 1 and view.given is not Given.LIVE
    if not alone or (dead and stopped_in_wait(dead[0])):
        return None
    if not (dead and _own_fault(dead[0])):
        return _ended_too_early(view)
    if _another_crashed(dead[0]):
        return Candidate(
            cause="other",
            confidence="low",
            summary=f"{start(who(dead))} died{signal_of(dead[0])}. The text does not show the thread that crashed, "
            f'which faulthandler calls "Current thread"; at that moment thread {dead[0].id} was in {where(dead[0])}.',
            culprits=tuple(dead),
            evidence=evidence_of(dead, ()),
        )
    spot, missing = _place_of_fault(dead[0]), missing_inside(dead[0].thread)
    spot = f"a call from {spot} ({missing} are not in the text)" if missing else spot
    ending = any(matches_any(_EXIT, calls_of(one)) for one in (dead[0], *threads(view)))
    when = " while it was exiting" if ending else ""
    return Candidate(
        cause="destructor-or-teardown" if ending else "other",
        confidence="low",
        summary=f"{start(_dead(dead[0]))} {ended(dead[:1])}{signal_of(dead[0])} in {spot}{when}{_address(dead[0])}."
        + held(dead[0])
        + (f" {ONLY_REPORTS}" if only_reports(dead[0]) else "")
        + _on_error_path(dead[0]),
        culprits=tuple(dead),
        evidence=evidence_of(dead, ()),
    )


def _dead(one: Party) -> str:
    """`thread 9218 of pid 9192`, where the tool's heading names the thread by its LWP and it is not the main one."""
    process, thread = one.process, one.thread
    if thread is None or thread.lwp is None or thread.id != str(thread.lwp) or thread.lwp == process.pid:
        return who([one])
    return f"thread {thread.lwp}{of_process(process.label)}"


def _another_crashed(one: Party) -> bool:
    """faulthandler lists all threads and marks the one that took the signal; the text has another one alone."""
    lines = one.thread.problems if one.thread is not None else ()
    return one.process.source == "text:faulthandler" and not any(map(_FATAL.match, lines))


def _place_of_fault(one: Party) -> str:
    """What a signal interrupted, where the stack goes on behind its handler; who called it, where it has no name."""
    calls = one.calls
    left = max((number for number, name in enumerate(calls_of(one), 1) if _INTERRUPTED.match(name)), default=0)
    handler = left or _handler_frames(one.process.source, calls)
    inside = calls[handler:]
    behind = next((frame for frame in inside if frame.function and not NAMES.known_frame(frame).entry), None)
    export = _nearest_export(one)
    if export:
        return export
    if not inside or (not handler and (behind is None or calls[0].function)):
        return died_at(one)
    if behind is None or inside[0] is behind:
        return place(inside[0])
    between = [one for one in inside[:2] if one.function is None and _C_LIBRARY.match(inside[0].library or "")]
    return ", called from ".join(dict.fromkeys(map(place, (*(between or inside[:1]), behind))))


def _handler_frames(source: str, calls: Sequence[Frame]) -> int:
    """How many frames are of the signal handler that printed the stack, up to its return, which the C library does not
    name; 0 where there is none, or where the tool has a name for that return."""
    if _NAMES_RETURNS.match(source):
        return 0
    found = 1 if source in HANDLER_FIRST and calls and calls[0].function is None else 0
    left = False
    for number, frame in enumerate(calls[:-1], 1):
        nameless = frame.function is None
        returns = nameless and _C_LIBRARY.match(frame.library or "") is not None
        if returns and left:
            break  # behind the return from the handler: the function of the C library that it interrupted
        left = left or returns
        if reports_failure(frame.function) or (nameless and _RETURNS_FROM_HANDLER.match(frame.library or "")):
            found = number
        elif found or not nameless or number > 2:  # the program's own handler may have no name
            break
    return found


def _nearest_export(one: Party) -> str:
    """Of a library without symbols, for whose own functions the tool prints the nearest names that it exports. Whoever
    called the library has a name that is right."""
    frames = [frame for frame in one.calls if not _IN_HANDLER.match(frame.function or "")]
    name = (frames[0].function if frames else None) or ""
    library, exports = next((row for row in _EXPORTS if row[1].match(name)), ("", _NOTHING))
    alike = exports if library else regex(re.escape(name) + "$")
    same = list(itertools.takewhile(lambda frame: alike.match(frame.function or ""), frames))
    if len(same) < _IN_A_ROW or not exports.match(name):
        return ""
    places = {frame.pc for frame in same}
    recursive = "a recursive function" if len(places) < len(same) else "a function"  # the same addresses come again
    caller = next((frame for frame in frames[len(same) :] if not says_nothing(frame)), None)
    called = f", called from {place(caller)}" if caller is not None else ""
    owner = f" of {library}" if library else ""
    return f"{recursive}{owner} without a name (nearest exported symbol: {name}){called}"


def stream_keeper(view: JobView) -> str:
    """Which thread held a stream's lock as Python shut down: the only other one, or the only other one that writes."""
    others = [
        (process, thread)
        for process in view.snapshot.processes
        for thread in process.threads
        if thread.frames and thread.id.startswith("0x") and not any(map(_FATAL.match, thread.problems))
    ]
    writing = [one for one in others if any(_WRITES.match(frame.function or "") for frame in one[1].calls[:2])]
    found = others if len(others) == 1 else writing
    if len(found) != 1:
        return ""
    thread = found[0][1]
    return f"Thread {thread.id} was then in {place(thread.calls[0])}{_caller(thread.calls)}."


def _caller(calls: Sequence[Frame]) -> str:
    return f", called from {place(calls[1])}" if len(calls) > 1 else ""


def _on_error_path(one: Party) -> str:
    """Where a set-up that has failed undoes what it did, the first failure was another one."""
    names = [name for name in calls_of(one) if name]
    outer = next((name for name in names[1:] if _SETS_UP.match(name)), None)
    if not names or outer is None or not _UNDOES.match(names[0]):
        return ""
    return f" {outer} calls {names[0]} only after an error, so something in {outer} had failed first."


def signal_of(one: Party) -> str:
    """` of SIGSEGV`, where a line names the signal."""
    found = next(filter(None, map(_SIGNAL.search, _lines(one))), None)
    if found:
        return f" {'with' if held(one) else 'of'} {found[1] or 'SIGSEGV'}"
    return next((f" of {name}" for pattern, name in _OF_WINDOWS if any(map(pattern.search, _lines(one)))), "")


def _address(one: Party) -> str:
    """`, at address 0x8 (a null pointer)`, or in quotes what UCX says, where a line names the address."""
    quote = next(filter(None, map(_REASON_OF_UCX.search, _lines(one))), None)
    if quote:
        return f'; the log says "{quote[1]}"'
    found = next(filter(None, map(_ADDRESS.search, _lines(one))), None)
    address = next(filter(None, found.groups()), "") if found else ""
    if not address:
        return ""
    null = int(address, 16) < _FIRST_PAGES
    return f", on an access to address {address}{' (a null pointer)' if null else ''}"


def _lines(one: Party) -> Tuple[str, ...]:
    return (*(one.thread.problems if one.thread is not None else ()), *one.process.said)


def _ended_too_early(view: JobView) -> Optional[Candidate]:
    """A core that was dumped while one thread ran what a process runs at its end, and another one still worked."""
    process = view.parties[0].process
    ending = [one for one in threads(view) if one.kind in OF_ITS_OWN and matches_any(_EXIT, calls_of(one))]
    others = [one for one in threads(view) if one.judged.helper is None and one not in ending]
    lines = (*process.said, *view.snapshot.said, *(text for one in process.threads for text in one.problems))
    if not (any(map(_DUMPED.search, lines)) and len(ending) == 1 and others):
        return None
    return Candidate(
        cause="destructor-or-teardown",
        confidence="low",
        summary=f"While {who(ending)} was exiting in {where(ending[0])}, thread {others[0].id} was still working in "
        f"{where(others[0])}, and the process died. Data that thread {others[0].id} uses may already have been "
        "destroyed.",
        culprits=(others[0],),
        evidence=evidence_of((others[0], ending[0]), ()),
    )


def _own_fault(one: Party) -> bool:
    if one.thread is None or matches_any(_DEVICE_CHECK, calls_of(one)):
        return False
    if one.judged.rule in ENDS_ITSELF:
        nameless = matches_any(_UNCAUGHT, calls_of(one)) and not matches_any(_THROWS, calls_of(one))
        return not (nameless or matches_any(_CALLED_OFF, calls_of(one)))
    return any(map(_OWN_FAULT.search, _lines(one))) and any(frame.function for frame in one.thread.calls)


def _checked_itself(one: Party) -> bool:
    return matches_any(_OWN_CHECK, calls_of(one)) and not matches_any(_DEVICE_CHECK, calls_of(one))
