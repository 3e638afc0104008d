"""What can be said of a single process whose stack alone proves no cause."""

from __future__ import annotations

import itertools
from typing import Optional, Pattern, Sequence, Tuple

from gdbext.analysis.causes.died_by_itself import signal_of
from gdbext.analysis.stacks.decisive import lacks_head
from gdbext.analysis.stacks.device_threads import device_of, wave_of
from gdbext.analysis.stacks.frame_facts import NAMES
from gdbext.analysis.stacks.outer_names import begun_work, is_wait, lacks_main, runs_locked
from gdbext.analysis.stacks.text_kind import ending, interrupted_in, lost_inside, missing_inside, past, shown_by
from gdbext.analysis.verdict.pending_messages import pending_messages
from gdbext.analysis.view.job_view import Party
from gdbext.analysis.view.on_device import kernel_of, needs_all, on_gpu, shown_on_device
from gdbext.analysis.view.places import (
    LOCKED,
    ONLY_REPORTS,
    calls_from,
    died_at,
    ended,
    held,
    only_reports,
    place,
    says_nothing,
    stopped_in_wait,
    where,
)
from gdbext.analysis.view.resident_kernels import collective_of
from gdbext.analysis.view.wording import filled_in, label_list, of_process, start, verb, who
from gdbext.analysis.waits.edges.assumed_holders import variable_of
from gdbext.knowledge.causes.lone_waits import (
    BEGUN,
    BEGUN_WAIT,
    BESIDE_MAIN,
    DOES,
    ENDS_WITH_ALL,
    FOLLOWS,
    FOR_A_TASK,
    IDLE_OR_LOST,
    LOST_INSIDE,
    LOST_PLACE,
    MAIN_UNREAD,
    MOVED,
    MOVES,
    NAMED_LOCK,
    OPEN,
    OPEN_THERE,
    RUNS_LOCKED,
    UNENDED,
    UNSEEN_PLACE,
    WITHOUT_TIMER,
    OpenThere,
)
from gdbext.knowledge.causes.remedies.remedy_constants import FOR_THE_GPU
from gdbext.knowledge.frames.failures import DUMPED
from gdbext.knowledge.frames.system.checkers import CHECKERS
from gdbext.knowledge.log_lines.last_words import CALLS, CHILD, DEFUNCT, OF_ANOTHER, SENT_BY
from gdbext.knowledge.runtimes.glibc_locks import SYMBOL, UNTIL
from gdbext.knowledge.runtimes.untimed_calls import THREAD_TASK
from gdbext.model.codes import Given
from gdbext.model.job import ONLY
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_UNREAD = {
    "unread": "is not in the text",
    "unseen": "the text does not show",
    "Unseen": "The text does not show",
}
_UNREAD_OF_CORES = {
    "unread": "was not read",
    "unseen": "what was read does not show",
    "Unseen": "What was read does not show",
}
_EXITS = "kernel-exit"
"""The frame rule of a process that ends, for whatever reason."""
_NUMBERS_THREADS = ("text:gdb", "text:eu-stack")
"""Tools that give each thread a number of its own."""
_ONE_WORD = regex(r"[a-z]+")
"""A function that reads like a word of the sentence, as `back`."""
_CALLS = regex(CALLS.format(what=r"(?P<what>.{1,80})"))
_NOWHERE = ("unknown", "python-code", "native-compute")
"""Kinds of threads of which no row knows the wait."""
_POOL_RUNS = regex(THREAD_TASK[0]), regex(THREAD_TASK[1])
_POOL_GIVES = regex(r"(?:Future\.)?result$"), regex(r"concurrent/futures/_base\.py$")
"""A task of a pool runs, and somebody waits for the result of one: function and file."""
_CHILD, _DUMPED, _DEFUNCT = regex(CHILD), regex(DUMPED), regex(DEFUNCT)
_OF_ANOTHER, _SENT_BY = regex(OF_ANOTHER), regex(SENT_BY)
_FROM_OUTSIDE = regex(r"SIGTERM|Termination signal|Terminated \(15\)|\b15 \(Terminated\)|signal 15\b")


def single_process_text(party: Party, idle: Sequence[Party], last_words: str = "", awaited: str = "") -> str:
    """The sentences about the one process that was read beside idle ones, where they are all that can be said.
    `last_words`: the line in which a process tells of its end; `awaited`: which thread it waits for."""
    name, given = _alone_name(party), party.process.given
    if party.process.source in CHECKERS and not last_words:
        return (
            "The text is the end of a sanitizer or Valgrind report; its first lines, which name the error, are "
            f"missing. The stack shows the place: {where(party)}."
        )
    if party.thread is not None and device_of(party.thread) is not None:
        return _on_device(party.thread)
    if party.group != "fatal":
        there = _special(party)
        usual = DOES.get(party.kind, "is in {where}")
        captures = party.judged.captures
        named = (variable_of(party) or captures.get(SYMBOL)) if party.kind == "mutex" else None
        usual = NAMED_LOCK if named else WITHOUT_TIMER.get(usual, usual) if captures.get(UNTIL) == 0 else usual
        does = (there.does if there is not None else "") or usual
        spot = where(party)
        spot = f"{spot}()" if _ONE_WORD.fullmatch(spot) else spot
        does = filled_in(does, {"where": spot, "lock": str(named), "call": _call(party, there)})
        shown = shown_by(party.process, party.thread)
        one_frame = given is Given.TEXT and party.thread is not None and len(party.thread.calls) == 1
        nobody = party.kind == "mutex" and party.thread is not None and all(map(says_nothing, party.thread.calls))
        if nobody:
            shows = "the text has only the innermost frame of its stack, which" if one_frame else "its stack"
            does = f"waits for a lock; {shows} does not show which code asked for it"
        lost = lost_inside(party.thread) if party.kind in _NOWHERE and there is None else ""
        begins = (
            bool(lost) and party.thread is not None and all(NAMES.known_frame(one).entry for one in party.thread.calls)
        )
        if lost:
            does = filled_in(LOST_PLACE if begins else LOST_INSIDE, {"where": spot, "frames": lost})
        if shown is not None:
            own = shown.row.does or (shown.row.inside if party.kind in _NOWHERE else "")
            does = filled_in(own, {"where": where(party)}) if own else shown.past(does)
        if shown is not None and shown.open:
            explanation = shown.open
        elif awaited:
            explanation = awaited
        elif party.takes_orders and party.judged.idle and given is Given.TEXT:
            explanation = FOLLOWS
        elif idle:
            is_, are = ("was", "were") if shown is not None and shown.when else ("is", "are")
            subject = name[:1].lower() + name[1:]
            explanation = (
                f"{start(who(idle))} {verb(idle, is_, are)} idle. The stacks do not show whether {subject} {is_} stuck "
                "or working."
                if party not in idle
                else "An idle thread waits there too; the stacks do not show whether the rest of the process "
                f"{is_} stuck or working."
            )
        elif party.kind == "gil" and any(thread.gil for thread in party.process.threads):
            explanation = _holder(party)
        elif party.kind in LOCKED and len(party.process.threads) > 1:
            explanation = f"The stacks do not show which thread holds {LOCKED[party.kind].replace('a ', 'the ')}."
        elif given in (Given.TEXT, Given.CORE):
            usual = UNSEEN_PLACE if begins else OPEN.get(party.kind, MOVES)
            listed = pending_messages(party.process.said) if party.kind == "mpi" else ""
            explanation = (
                listed or _keeps_gpu_busy(party) or _further_out(party, usual if there is None else there.open)
            )
            if shown is not None and shown.row.moves:
                explanation = explanation.replace(MOVES, shown.row.moves)
            if _is_of_core(party):
                explanation = explanation.replace(MOVES, MOVED)
            if one_frame and there is None and not (nobody or lost):
                explanation = f"The text has only this one frame of the stack. {explanation}"
            explanation = filled_in(explanation, _UNREAD if given is Given.TEXT else _UNREAD_OF_CORES)
            explanation = past(explanation) if shown is not None and shown.when else explanation
        else:
            explanation = (
                "Only this process was read, so it is unknown whether it holds up other ranks or waits for one."
            )
        explanation += _for_this_task(party, shown is not None and bool(shown.when))
        return f"{name} {does}. {explanation}{_ended_beside(party)}"
    if stopped_in_wait(party):
        inside = next(itertools.filterfalse(says_nothing, interrupted_in(party.thread)), None)
        at = f", called by {place(inside)}" if inside is not None else ""
        return (
            f"A signal stopped {name[:1].lower()}{name[1:]} in a wait{at}. A wait raises no fault, so another thread "
            f"or process caused the signal; the text does not show which.{held(party)}"
        )
    is_traceback = party.process.source == "text:traceback"
    of_another = is_traceback and _OF_ANOTHER.search(last_words) is not None
    end = "failed" if of_another else f"{ended([party])}{signal_of(party)}"
    outside = _FROM_OUTSIDE.search(last_words) is not None
    end = f"was ended by SIGTERM{_sender(party)} while it was" if outside else end
    state = f"{end} in {died_at(party)}" if party.thread is not None and party.thread.calls else "died"
    why = "The stack does not show why; the log lines above it may."
    called = next(filter(None, map(_CALLS.match, party.thread.problems)), None) if party.thread is not None else None
    state += f", in a line that calls {called['what']}" if called is not None else ""
    missing = missing_inside(party.thread)
    if party.judged.rule == _EXITS:
        state = f"is exiting, and is still in {where(party)}"
        ends = ending(party.thread)
        if ends is not None and ends.signals:
            state, why = f"{ends.does}; it is still in {where(party)}", ""
    elif missing:
        unseen = f"a function that the text does not show ({missing} are missing)"
        inner = next(itertools.filterfalse(says_nothing, party.calls), None)
        through = place(inner) if inner is not None and inner.function else where(party)
        state = f"died in {unseen}, reached through {through}"
    if is_traceback:
        why = "The exception itself is not in the text."
    child, why = _child_of(party, name, why)
    if is_traceback and not last_words and child == name:
        owner = "" if name == start(ONLY) else f" of {name[:1].lower()}{name[1:]}"
        at = f"ends in {where(party)}" if party.thread is not None and party.thread.calls else "is cut"
        return f"The traceback{owner} {at}; the lines behind it, with the exception, are not in the text."
    name = child
    reason = f"The log says: {last_words}" if last_words else why
    reason += " The stack only shows where the thread was at that moment." if outside and not is_traceback else ""
    reason += " That exception tells of the end of another process, the engine or a worker." if of_another else ""
    only = f" {ONLY_REPORTS}" if only_reports(party) else ""
    only += held(party)
    return f"{name} {state}.{only} {reason}".rstrip()


def _for_this_task(party: Party, then: bool) -> str:
    """The one thread that waits for the task of a pool which only this thread runs. `then`: when the text was made."""
    threads = party.process.threads
    if party.thread is None or [one for one in threads if _has(one, *_POOL_RUNS)] != [party.thread]:
        return ""
    waiting = [one for one in threads if one is not party.thread and _has(one, *_POOL_GIVES)]
    if len(waiting) != 1 or party.process.given is not Given.TEXT:
        return ""
    outer = [one for one in waiting[0].calls if not (_POOL_GIVES[1].search(one.file or "") or _is_threading(one))]
    at = f"{waiting[0].calls[0].function}" if not outer else f"Future.result, called from {place(outer[0])}"
    return f" {filled_in(FOR_A_TASK, {'waiter': waiting[0].id, 'waits': 'waited' if then else 'waits', 'where': at})}"


def _has(thread: ThreadStack, function: Pattern[str], file: Pattern[str]) -> bool:
    """Whether a function of that file is on its stack."""
    return any(function.match(one.function or "") and file.search(one.file or "") for one in thread.calls)


def _is_threading(frame: Frame) -> bool:
    return (frame.file or "").endswith("threading.py")


def _ended_beside(party: Party) -> str:
    """The processes that a list in the text shows as ended."""
    found = [match["pid"] for match in map(_DEFUNCT.match, party.process.said) if match is not None]
    if not found or party.process.given is not Given.TEXT:
        return ""
    have, they = ("has", "it is its worker") if len(found) == 1 else ("have", "they are its workers")
    return (
        f" Of the listed processes {label_list(found)} {have} ended (defunct): if {they}, nothing will come from there."
    )


def _sender(party: Party) -> str:
    """` from pid 12`, where the handler says who sent the signal."""
    lines = (*(party.thread.problems if party.thread is not None else ()), *party.process.said)
    found = next(filter(None, map(_SENT_BY.search, lines)), None)
    return f" from pid {found['pid'] or found['sender']}" if found is not None else ""


def _is_of_core(party: Party) -> bool:
    """Whether the stack was read from a core file, or is what a tool has printed of one."""
    process = party.process
    return process.given is Given.CORE or process.source == "text:coredump" or any(map(_DUMPED.search, process.said))


def _on_device(thread: ThreadStack) -> str:
    """Of a stack of the GPU: the text has no thread of the host that decides."""
    if wave_of(thread):
        return f"{shown_on_device(thread)}. The text does not show whether it waits for another wavefront or rank."
    others = ", or what the other ranks do" if collective_of(kernel_of(thread)) else ""
    return f"{shown_on_device(thread)}. The text does not show whether the kernel is making progress{others}."


def _keeps_gpu_busy(party: Party) -> str:
    """What cuda-gdb shows or lists on the GPU, where the thread waits for that; "" where the text has nothing of it."""
    if party.kind not in FOR_THE_GPU:
        return ""
    told, kernel = on_gpu(party.process)
    return f"{told}. {ENDS_WITH_ALL if needs_all(kernel) else UNENDED}" if told else ""


def _child_of(party: Party, name: str, why: str) -> Tuple[str, str]:
    """Who died, where Python's multiprocessing names the one child whose traceback stands under the name of its
    parent."""
    thread = party.thread
    lines = (*party.process.said, *(thread.problems if thread is not None else ()))
    found = {match["child"] for match in map(_CHILD.match, lines) if match}
    if len(found) != 1 or party.process.source != "text:traceback" or len(party.process.threads) != 1:
        return name, why
    if party.process.label == ONLY:
        return f"The child process {found.pop()}", why
    parent = party.process.label
    open_ = f"The text does not show whether {parent} itself has ended."
    return f"{found.pop()}, a child process of {parent},", f"{why} {open_}"


def _further_out(party: Party, explanation: str) -> str:
    """What is open, with what the names of frames further out tell of it."""
    calls = calls_from(party, party.frame(party.judged.frame))
    caller, text = None, ""
    if explanation == IDLE_OR_LOST:
        caller = begun_work(calls)
        text = BEGUN_WAIT if caller is not None and is_wait(caller) else BEGUN
    elif explanation == OPEN["mutex"]:
        caller, text = runs_locked(calls), RUNS_LOCKED
    if caller is not None:
        return text.replace("{caller}", place(caller))
    alone = explanation in BESIDE_MAIN and lacks_main(party.process)
    return f"{explanation} {MAIN_UNREAD}" if alone else explanation


def _special(party: Party) -> Optional[OpenThere]:
    """The row of special code that it waits in."""
    at = party.frame(party.judged.frame)
    calls = party.calls
    owner = next((frame for frame in calls_from(party, at) if not says_nothing(frame)), at) or Frame(None)
    function, library = owner.function or "", owner.library or ""
    outer = next((number for number, frame in enumerate(calls) if not says_nothing(frame)), len(calls))
    waits = [frame.function or "" for frame in calls[:outer]]
    waits_in = calls[outer].library or "" if outer < len(calls) else ""
    around = [frame.function or "" for frame in calls[outer:]]
    fitting = (row for row in OPEN_THERE if party.kind in row.kinds)
    fitting = (row for row in fitting if not row.rules or party.judged.rule in row.rules)
    asleep = party.thread is not None and party.thread.state == "S" and party.process.given is Given.TEXT
    fitting = (row for row in fitting if asleep or not row.asleep)
    fitting = (row for row in fitting if not row.under or any(map(regex(row.under).match, around)))
    fitting = (
        row
        for row in fitting
        if not row.through or (any(map(regex(row.through).match, waits)) and regex(row.module).match(waits_in))
    )
    return next(
        (row for row in fitting if regex(row.function).match(function) and regex(row.module).match(library)), None
    )


def _call(party: Party, there: Optional[OpenThere]) -> str:
    """The frame that the row asks for somewhere on the stack."""
    asked = regex(there.under) if there is not None and there.under else None
    calls = party.thread.calls if party.thread is not None and asked is not None else ()
    return place(next((frame for frame in calls if asked is not None and asked.match(frame.function or "")), None))


def _holder(party: Party) -> str:
    """Who holds the GIL, as the dump itself marks it."""
    holder = next(thread for thread in party.process.threads if thread.gil)
    inside = next((one for one in holder.calls if NAMES.known_frame(one).name and not says_nothing(one)), None)
    return f"Thread {holder.id} holds it{f', in {place(inside)}' if inside is not None else ''}."


def _alone_name(party: Party) -> str:
    """`Thread 12`, where the text has several threads of one process without a name, or numbers its only one so."""
    process = party.process
    lacking = party.group != "fatal" and lacks_main(process)
    unnamed = process.label == ONLY or party.kind in LOCKED or lacking
    several = len(process.threads) > 1 or lacking or (process.source in _NUMBERS_THREADS and party.id != "1")
    if process.given is Given.TEXT and party.thread is not None and lacks_head(process, party.thread):
        headed = party.group != "fatal" and any(one.language == "python" for one in party.thread.calls[:1])
        return f"A thread{of_process(process.label)}{' whose heading is not in the text' if headed else ''}"
    if process.given is Given.TEXT and party.id and unnamed and several:
        return f"Thread {party.id}{of_process(process.label)}"
    return start(who([party]))
