"""Words for people: who, where, in which call."""

from __future__ import annotations

from collections import Counter
from string import Formatter
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence

from gdbext.analysis.failures.check_messages import reports_failure
from gdbext.analysis.stacks.frame_facts import FrameBook
from gdbext.analysis.stacks.outer_names import begun_work, lacks_main, runs_locked
from gdbext.analysis.stacks.text_kind import hung_task, killed, missing_inside, shown_by
from gdbext.knowledge.causes.lone_waits import (
    BEGUN,
    DOES,
    IDLE_OR_LOST,
    MAIN_UNREAD,
    NAMED_LOCK,
    OPEN,
    OPEN_THERE,
    RUNS_LOCKED,
    WITHOUT_TIMER,
    OpenThere,
)
from gdbext.knowledge.frames.system.checkers import BELOW_PROGRAM, CHECKERS, RUNTIMES
from gdbext.knowledge.frames.system.code_owners import (
    C_LIBRARY_FUNCTIONS,
    LAMBDA_OWNER,
    NAMELESS_PYTHON,
    STANDARD_FILES,
    STANDARD_NAMES,
    WAITS_OF_WINDOWS,
)
from gdbext.knowledge.frames.system.libc import SIGNAL
from gdbext.knowledge.log_lines.last_words import HIT, IN_NATIVE_CODE
from gdbext.knowledge.runtimes.glibc_locks import SYMBOL, UNTIL
from gdbext.model.codes import Given
from gdbext.model.job import ONLY, RankSnapshot
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks

if TYPE_CHECKING:
    from gdbext.analysis.verdict.job_view import Party

LONGEST_NAME = 80
ONLY_REPORTS = "That call only reports the crash; the call that failed is not on this stack."
_MOST_PLACES = 2
_NAMES = FrameBook(rules=())
_OF_A_LIBRARY = ("mutex", "condvar-idle")
"""Waits for something of the code that called the C library, whoever asked that code for it."""
_LOCKED = {"gil": "the GIL", "mutex": "a lock"}
_CALLED, _REACHED = ", called from ", ", reached from "
_EXITS = "kernel-exit"
"""The frame rule of a process that ends, for whatever reason."""
_STANDARD_FILE, _LAMBDA_OWNER, _WAITS = map(regex, (STANDARD_FILES, LAMBDA_OWNER, C_LIBRARY_FUNCTIONS))
_BELOW, _RUNTIME = regex(BELOW_PROGRAM), regex(RUNTIMES)
_HIT = regex(HIT.format(r"(?P<name>\S{1,200})", r"(?P<place>\S{1,400})"))
_FROM_OUTSIDE = regex(r"SIGTERM|Termination signal|Terminated \(15\)|signal 15\b")
_SIGNAL_IN_NATIVE = regex(IN_NATIVE_CODE)
_OF_CONDITION = regex(r"PyCOND_\w+$|_?PyMUTEX_\w+$")
_LEFT_BY_SIGNAL, _OF_WINDOWS = map(regex, (SIGNAL, WAITS_OF_WINDOWS))
_TAKES = regex(r"take_gil|PyEval_(?:Restore|Acquire)\w+|PyGILState_\w+|_PyThreadState_\w+")


def who(parties: Sequence[Party]) -> str:
    """`ranks 0-2,5`, `pid 4711`, `thread 3 of rank 0`: what people call them."""
    if any(party.is_thread for party in parties):
        owners: Dict[str, List[str]] = {}
        for party in parties:
            owners.setdefault(party.process.label, []).append(str(party.id))
        return label_list([f"{_threads(ids)} {label_list(ids)}{_of(process)}" for process, ids in owners.items()])
    if len(parties) == 1 and parties[0].group != "fatal" and _one_of_many(parties[0].process):
        return f"thread {parties[0].id}"
    known = [party.process.rank for party in parties if party.process.rank is not None]
    if len(known) == len(parties):
        return ranks(known)
    return label_list([party.process.label for party in parties])


def _one_of_many(process: RankSnapshot) -> bool:
    """Whether the only thread that was read of the only process is not its first."""
    return process.label == ONLY and len(process.threads) == 1 and lacks_main(process)


def _of(process: str) -> str:
    return "" if process == ONLY else f" of {process}"


def _threads(ids: Sequence[str]) -> str:
    return "thread" if len(set(ids)) == 1 else "threads"


def label_list(labels: Sequence[str]) -> str:
    """`pid 1, pid 2 and 7 more`, each once."""
    labels = list(dict.fromkeys(labels))
    *first, last = [*labels[:4], f"{len(labels) - 4} more"] if len(labels) > 4 else labels
    return f"{', '.join(first)} and {last}" if first else last


def start(text: str) -> str:
    """The text with a capital letter."""
    return text[:1].upper() + text[1:]


def verb(parties: Sequence[Party], singular: str, plural: str) -> str:
    """`waits` for one, `wait` for several."""
    return singular if len(parties) == 1 else plural


def closed(text: str) -> str:
    """`poll, called from decode,`: a place for the middle of a sentence, where what follows needs the second comma."""
    last = text.rpartition(". ")[2].rpartition("; ")[2]
    return f"{text}," if (_CALLED in last or _REACHED in last) and not text.endswith((".", ",", ";", ":")) else text


def filled_in(template: str, words: Mapping[str, str]) -> str:
    """The template with its words, and with the second comma behind places in the middle of a sentence."""
    text = ""
    for literal, name, _, _ in reversed(list(Formatter().parse(template))):
        word = words[name] if name is not None else ""
        text = literal + (closed(word) if text.startswith(" ") and text[1:2] != "(" else word) + text
    return text


def place(frame: Optional[Frame]) -> str:
    """`decode (parallel_gpt.cc:66)`; the library where there is no source line of its own."""
    if frame is None:
        return "an unknown place"
    name = _NAMES.known_frame(frame).name
    if name is None:
        nameless = f"{_file(frame.library)} (no symbols)" if frame.library else "a function without a name"
        return f"{_file(frame.file)}:{frame.line}" if frame.file and frame.line else nameless
    owner = _LAMBDA_OWNER.search(name) if name.startswith(STANDARD_NAMES) else None
    if owner is not None:  # the library's function that calls it
        return owner["owner"]
    if len(name) > LONGEST_NAME and name.startswith(STANDARD_NAMES):  # its template's arguments say more
        name = f"{name[:18]}…{name[19 - LONGEST_NAME :]}"
    name = name if len(name) <= LONGEST_NAME else _without_arguments(name)
    if frame.file and (name.startswith(STANDARD_NAMES) or not _STANDARD_FILE.search(frame.file)):
        folder, _, file = frame.file.replace("\\", "/").rpartition("/")
        file = f"{folder.rpartition('/')[2]}/{file}".lstrip("/") if file == "__init__.py" else file
        where = f"{file}:{frame.line}" if frame.line else file
        return where if name in NAMELESS_PYTHON else f"{name} ({where})"
    return f"{name} ({_file(frame.library)})" if frame.library else name


def _file(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _without_arguments(name: str) -> str:
    """`std::default_delete<…>::operator()`: a long name without what stands between angle brackets."""
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
        calls = party.thread.calls if party.thread is not None else ()
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
    if telling is not None and telling is not inner and _NAMES.known_frame(telling).name is None:
        own = _NAMES.known_frame(inner).name if inner is not None and party.group != "fatal" else None
        return called_from(party, own, inner, telling) if own else place(telling)
    nameless = _library_before(party, inner, telling) if party.kind in _OF_A_LIBRARY else None
    if nameless is not None:
        return called_from(party, place(nameless), nameless, telling)
    if (
        telling is None
        or outer is None
        or _says_nothing(outer)
        or outer is telling
        or (judged.engine_frame or 0) < (judged.frame or 0)
    ):
        return place(telling)
    name = telling.function or "an unnamed function"
    if telling.language == "python" or _NAMES.known_frame(telling).name is None:
        name = place(telling)
    return called_from(party, name, telling, outer)


def died_at(party: Party) -> str:
    """Where a thread died: a signal hits native code, of which CPython prints no frame."""
    calls = party.thread.calls if party.thread is not None else ()
    problems = (*party.process.said, *(party.thread.problems if party.thread is not None else ()))
    hit = next(filter(None, map(_HIT.match, problems)), None)
    if hit is not None:
        return f"{hit['name']} ({hit['place']})"
    native = bool(calls) and calls[0].language == "python" and any(map(_SIGNAL_IN_NATIVE.search, problems))
    return f"native code called by {where(party)}" if native else where(party)


def reported_place(party: Party) -> Optional[Frame]:
    """Of a checker's report the program's own function, not the call that the checker intercepts."""
    if party.process.source not in CHECKERS or party.thread is None:
        return None
    outer = [one for one in party.thread.calls if not _RUNTIME.match(one.library or "")]
    return next((one for one in outer if (one.function or one.library) and not _BELOW.match(one.function or "")), None)


def called_from(party: Party, name: str, inner: Optional[Frame], outer: Optional[Frame]) -> str:
    """`poll, called from decode`; `poll, reached from decode`, where a function with another name is between them."""
    calls = party.thread.calls if party.thread is not None else ()
    first, last = (next((at for at, frame in enumerate(calls) if frame is one), 0) for one in (inner, outer))
    between = [frame for frame in calls[first + 1 : last] if _NAMES.known_frame(frame).name]
    names = {one.function for one in (inner, outer) if one is not None}
    indirectly = any(frame.function not in names and not _says_nothing(frame) for frame in between)
    return f"{name}{_REACHED if indirectly else _CALLED}{place(outer)}"


def _calls_from(party: Party, inner: Optional[Frame]) -> Sequence[Frame]:
    """That very frame of its thread and those further out; nothing where it is not among them."""
    calls = party.thread.calls if party.thread is not None else ()
    return calls[next((number for number, frame in enumerate(calls) if frame is inner), len(calls)) :]


def _library_before(party: Party, inner: Optional[Frame], telling: Optional[Frame]) -> Optional[Frame]:
    """The frame without a name of the library that waits, where the one that has a name only called the library."""
    calls = _calls_from(party, inner)
    found = next((frame for frame in calls if not _says_nothing(frame)), None)
    if found is None or found is telling or found.library is None:
        return None
    known = _NAMES.known_frame(found)
    return found if known.name is None and not known.system else None


def _telling(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """The frame itself, or the first one further out that is no wait of the C library and has a name, or a library."""
    calls = _calls_from(party, inner)
    outwards = [frame for frame in calls if not _says_nothing(frame)]
    own = [frame for frame in outwards if _NAMES.known_frame(frame).name or not _NAMES.known_frame(frame).system]
    named = [frame for frame in calls if _NAMES.known_frame(frame).name and not _NAMES.known_frame(frame).entry]
    for some in ([one for one in own if _NAMES.known_frame(one).name], [one for one in own if one.library], named[-1:]):
        if some:
            return some[0]
    return inner


def _says_nothing(frame: Frame) -> bool:
    name = frame.function or ""
    waits = _WAITS.match(name) or _LEFT_BY_SIGNAL.match(name) or _OF_WINDOWS.match(name)
    return waits is not None or _NAMES.known_frame(frame).entry


def _caller_of_report(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """Of a thread that only reports a failure the call that failed: the first one further out that has a name."""
    if party.group != "fatal" or inner is None or not reports_failure(inner.function):
        return None
    calls = _calls_from(party, inner)
    return next((frame for frame in calls if frame.function and not reports_failure(frame.function)), None)


def _exported(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """What was called of a library without symbols: for its inner functions UCX prints the nearest exported name."""
    if inner is None or party.process.source != "text:ucx" or not _is_of_nccl(inner):
        return inner
    calls = _calls_from(party, inner)
    return calls[next((number for number, frame in enumerate(calls) if not _is_of_nccl(frame)), len(calls)) - 1]


def _is_of_nccl(frame: Frame) -> bool:
    return frame.file is None and frame.library is None and (frame.function or "").startswith("nccl")


def _gil_taker(party: Party, inner: Optional[Frame]) -> Optional[Frame]:
    """CPython's own function that takes the GIL, not the one of its condition variable."""
    if inner is None or not _OF_CONDITION.match(inner.function or ""):
        return None
    calls = _calls_from(party, inner)
    return next((frame for frame in calls[1:3] if _TAKES.match(frame.function or "")), None)


def in_places(parties: Sequence[Party]) -> str:
    """`rank 0 is in poll and ranks 1-2 are in decode (gpt.cc:66)`: the first two places, and how many are elsewhere."""
    places: Dict[str, List[Party]] = {}
    for party in parties:
        places.setdefault(where(party), []).append(party)
    shown = list(places.items())[:_MOST_PLACES]
    *most, last = [f"{who(some)} {is_in(some)} {place}" for place, some in shown]
    text = " and ".join([*map(closed, most), last])
    more = len(parties) - sum(len(some) for _, some in shown)
    return f"{text}, and {more} more {'is' if more == 1 else 'are'} elsewhere" if more else text


def is_in(parties: Sequence[Party]) -> str:
    """`are in`, `died in`; of waits for a lock that too, because their place is who asked for it."""
    if all(party.group == "fatal" for party in parties):
        return "died in"
    held = _LOCKED.get(parties[0].kind) if len({party.kind for party in parties}) == 1 else None
    return f"{verb(parties, 'waits', 'wait')} for {held} in" if held else verb(parties, "is in", "are in")


def single_process_text(party: Party, idle: Sequence[Party], last_words: str = "") -> str:
    """The sentences about the one process that was read beside idle ones, where they are all that can be said.
    `last_words`: the line in which a process tells of its end."""
    name, given = _alone_name(party), party.process.given
    if party.process.source in CHECKERS and not last_words:
        return (
            "The text is the end of a checker's report: its head, which names the error, is missing. The stack shows "
            f"what led to it: {where(party)}."
        )
    if party.group != "fatal":
        there = _special(party)
        usual = DOES.get(party.kind, "is in {where}")
        captures = party.judged.captures
        named = captures.get(SYMBOL) if party.kind == "mutex" else None
        usual = NAMED_LOCK if named else WITHOUT_TIMER.get(usual, usual) if captures.get(UNTIL) == 0 else usual
        does = (there.does if there is not None else "") or usual
        does = filled_in(does, {"where": where(party), "lock": str(named)})
        shown = shown_by(party.process, party.thread)
        if party.kind == "mutex" and party.thread is not None and all(map(_says_nothing, party.thread.calls)):
            does = "waits for a lock; who asked for it is not on its stack"
        if shown is not None:
            does = filled_in(shown.row.does, {"where": where(party)}) if shown.row.does else shown.past(does)
        if shown is not None and shown.open:
            explanation = shown.open
        elif idle:
            is_, are = ("was", "were") if shown is not None and shown.when else ("is", "are")
            others = f"{start(who(idle))} {verb(idle, is_, are)} idle"
            explanation = f"{others}. That does not show whether {who([party])} {is_} stuck or at work."
        elif party.kind == "gil" and any(thread.gil for thread in party.process.threads):
            explanation = _holder(party)
        elif party.kind in _LOCKED and len(party.process.threads) > 1:
            explanation = f"Nothing that was read shows which thread holds {_LOCKED[party.kind].replace('a ', 'the ')}."
        elif given in (Given.TEXT, Given.CORE):
            usual = OPEN.get(party.kind, "One look cannot show whether it makes progress.")
            explanation = _further_out(party, usual if there is None else there.open)
            one_frame = given is Given.TEXT and party.thread is not None and len(party.thread.calls) == 1
            if one_frame and there is None:
                explanation = f"The text has only this frame of its stack. {explanation}"
            explanation = explanation.replace(
                "{unread}", "is not in the text" if given is Given.TEXT else "was not read"
            )
            explanation = explanation.replace("makes", "made") if shown is not None and shown.when else explanation
        else:
            explanation = (
                "Only this process was read, so it is unknown whether it holds up other ranks or waits for one."
            )
        return f"{name} {does}. {explanation}"
    from_outside = _FROM_OUTSIDE.search(last_words) is not None
    state = (
        f"{'was ended by SIGTERM while it was' if from_outside else 'died'} in {died_at(party)}"
        if party.thread is not None and party.thread.calls
        else "died"
    )
    why = "The stack does not show why; the log before it may."
    missing = missing_inside(party.thread)
    if party.judged.rule == _EXITS:
        state = f"is exiting, and is still in {where(party)}"
        if killed(party.thread):
            state, why = f"{killed(party.thread)}; it is still in {where(party)}", ""
        why = " ".join(filter(None, [why, hung_task(party.process)]))
    elif missing:
        state = f"died in a call from {where(party)}; {missing}, the innermost ones, are not in the text"
    if party.process.source == "text:traceback":
        why = "The exception itself is not in the text."
    reason = f"Its log says: {last_words}" if last_words else why
    only = f" {ONLY_REPORTS}" if only_reports(party) else ""
    return f"{name} {state}.{only} {reason}".rstrip()


def only_reports(party: Party) -> bool:
    """Whether its stack has nothing but the report of its end, and nothing else tells where that was."""
    calls = party.thread.calls if party.thread is not None else ()
    named = any(map(_HIT.match, party.thread.problems)) if party.thread is not None else False
    return bool(calls) and not named and all(reports_failure(frame.function) for frame in calls)


def _further_out(party: Party, explanation: str) -> str:
    """What is open, with what the names of frames further out tell of it."""
    calls = _calls_from(party, party.frame(party.judged.frame))
    caller, text = None, ""
    if explanation == IDLE_OR_LOST:
        caller, text = begun_work(calls), BEGUN
    elif explanation == OPEN["mutex"]:
        caller, text = runs_locked(calls), RUNS_LOCKED
    if caller is not None:
        return text.replace("{caller}", place(caller))
    alone = explanation in (IDLE_OR_LOST, OPEN["io"]) and lacks_main(party.process)
    return f"{explanation} {MAIN_UNREAD}" if alone else explanation


def _special(party: Party) -> Optional[OpenThere]:
    """The row of special code that it waits in."""
    at = party.frame(party.judged.frame)
    calls = party.thread.calls if party.thread is not None else ()
    owner = next((frame for frame in _calls_from(party, at) if not _says_nothing(frame)), at) or Frame(None)
    function, library = owner.function or "", owner.library or ""
    outer = next((number for number, frame in enumerate(calls) if not _says_nothing(frame)), len(calls))
    waits = [frame.function or "" for frame in calls[:outer]]
    waits_in = calls[outer].library or "" if outer < len(calls) else ""
    fitting = (row for row in OPEN_THERE if party.kind in row.kinds)
    fitting = (
        row
        for row in fitting
        if not row.through or (any(map(regex(row.through).match, waits)) and regex(row.module).match(waits_in))
    )
    return next(
        (row for row in fitting if regex(row.function).match(function) and regex(row.module).match(library)), None
    )


def _holder(party: Party) -> str:
    """Who holds the GIL, as the dump itself marks it."""
    holder = next(thread for thread in party.process.threads if thread.gil)
    inside = next((one for one in holder.calls if _NAMES.known_frame(one).name and not _says_nothing(one)), None)
    return f"Thread {holder.id} holds it{f', in {place(inside)}' if inside is not None else ''}."


def _alone_name(party: Party) -> str:
    """`Thread 12`, where the text has several threads of one process without a name, or numbers its only one so."""
    process = party.process
    lacking = party.group != "fatal" and lacks_main(process)
    unnamed = process.label == ONLY or party.kind in _LOCKED or lacking
    several = len(process.threads) > 1 or lacking or (process.source == "text:gdb" and party.id != "1")
    if process.given is Given.TEXT and party.id and unnamed and several:
        return f"Thread {party.id}{_of(process.label)}"
    return start(who([party]))


def taken_in(party: Party) -> str:
    """The engine's call that takes a lock; what kind of lock it is needs no second name."""
    engine = party.frame(party.judged.engine_frame)
    return place(engine) if engine is not None else where(party)


_LOCKS = ("os-once", "os-loader-lock")
"""Frame rules whose function says more than that the thread waits."""

_SIGNALS = ("signal-shared-memory", "signal-in-nccl", "os-signal")
"""Frame rules of the frame that a signal leaves: what was interrupted stands behind it."""


def _library_alone(party: Party) -> str:
    """The library whose frames without a name are all there is, the C library apart."""
    frames = party.thread.calls if party.thread is not None else ()
    nameless = {frame.library for frame in frames if frame.function is None and frame.library}
    return f"{nameless.pop()} (no symbols)" if len(nameless) == 1 else ""


def operation(party: Party) -> str:
    """`all_reduce` where the stack names a collective, else the call it waits in."""
    judged = party.judged
    if judged.collective:
        return judged.collective
    frame = party.frame(judged.frame)
    return (frame.function if frame is not None and frame.function else None) or judged.kind


def what(parties: Sequence[Party]) -> str:
    """What most of them wait in, in words."""
    return Counter(map(operation, parties)).most_common(1)[0][0]
