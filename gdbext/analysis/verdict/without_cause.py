"""The answer where no cause was found: who waits where, and what would help."""

from __future__ import annotations

from typing import Sequence

from gdbext.analysis.causes.died_by_itself import signal_of
from gdbext.analysis.causes.log_quotes import last_words, without_stacks
from gdbext.analysis.causes.watchdog_logs import raised_by_watchdog
from gdbext.analysis.causes.witness_evidence import gpu_cores_alone
from gdbext.analysis.failures.gpu_findings import clean_reports
from gdbext.analysis.progress.between_looks import has_run
from gdbext.analysis.progress.nobody_acts import nobody_asks
from gdbext.analysis.progress.not_clear import longer_look
from gdbext.analysis.progress.own_work import looked_long
from gdbext.analysis.progress.pool_tasks import FED_KINDS
from gdbext.analysis.progress.running import in_own_code, is_alive, was_woken
from gdbext.analysis.verdict.chosen_remedies import what_the_text_shows
from gdbext.analysis.verdict.kernel_tasks import several_tasks, waits_for_lock
from gdbext.analysis.verdict.lone_stack import single_process_text
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.view.places import ended, in_places, where
from gdbext.analysis.view.wording import label_list, start, who
from gdbext.analysis.waits.awaited_thread import awaited_thread
from gdbext.knowledge.causes.slow import NO_RATE
from gdbext.knowledge.frames.python.python_libraries import REQUESTS
from gdbext.knowledge.labels import OF_ITS_OWN
from gdbext.model.codes import Given
from gdbext.model.text.patterns import regex

_EXCEPTION = regex(r"\s{0,8}[\w.]{0,120}(?:Error|Exception)(?:\(\w{1,80}\))?: \S")
_MOST_SHOWN = 2
_LONGEST = 160


def without_cause(view: JobView) -> Candidate:
    """What can be said without a cause: who waits where, and what would help."""
    parties = [party for party in view.parties if party.group not in ("idle",)] or list(view.parties)
    if not parties:
        found = gpu_cores_alone(view) or clean_reports(view)
        return found or _helpers_alone(view)
    kinds = {party.group for party in parties}
    alike = len({(party.kind, where(party)) for party in parties}) == 1
    stop = what_the_text_shows(view)
    if len(parties) == 1:
        idle = [party for party in view.parties if party.group == "idle"]
        text = raised_by_watchdog(view, parties[0]) or single_process_text(
            parties[0], idle, last_words(view, parties[0]), awaited_thread(view, parties[0])
        )
        also = _died_too(view, parties[0])
        text += f"{'' if text.endswith('.') else '.'} {also}" if also else ""
    elif {party.judged.collective for party in parties} == {"recv"}:
        text = (
            f"{start(who(parties))} {_all(parties)} wait to receive in {where(parties[0])}, and none of them sends. "
            "Either the sender is not among them, or they wait for each other."
        )
    elif stop is not None and stop.at_a_stop:
        text = f"{start(in_places(parties))}. {stop.open}"
    elif kinds == {"fatal"}:
        tracebacks = all(party.process.source == "text:traceback" for party in parties)
        reason = "exceptions below these tracebacks" if tracebacks else "log lines above these stacks may"
        text = f"{start(in_places(parties))}. {_exceptions(parties) or f'The {reason} give the reason.'}"
    elif waits_for_lock(parties):
        text = several_tasks(parties)
    elif alike and parties[0].kind == "ipc-queue":
        text = (
            f"{start(who(parties))} {_all(parties)} wait in {where(parties[0])} for something that another process or "
            "thread must give; their stacks do not name it. They wait for each other, or for one that is not shown."
        )
    elif alike:
        on_gpu = parties[0].kind not in ("gloo", "mpi", "io")
        more = f"just takes a long time; a second {'sample' if view.given is Given.LIVE else 'dump'} can tell."
        text = (
            f"{start(who(parties))} {_all(parties)} wait in {where(parties[0])}; on the CPU side they look the same. "
            f"Either the {'device or the ' if on_gpu else ''}network is stuck, or the step "
            f"{'takes longer than gdbext looked.' if view.before and looked_long(view) else more}"
        )
        if view.gaps:
            text = (
                f"{start(who(parties))} {_all(parties)} wait in {where(parties[0])}. The stacks of the other ranks are "
                "not in the text: one of them may be what these wait for."
            )
    elif "fatal" in kinds:
        dying = [party for party in parties if party.group == "fatal"]
        others = [party for party in parties if party.group != "fatal"]
        text = (
            f"{start(who(dying))} {ended(dying)}{signal_of(dying[0])} in {where(dying[0])}; {in_places(others)}. "
            f"The log lines around the stack of {who(dying[:1])} may give the reason."
        )
    elif view.given is Given.TEXT and sorted(str(party.judged.collective) for party in parties) == ["recv", "send"]:
        text = (
            f"{start(in_places(parties))}. If these are two ranks, the calls match: check that peer rank, tag and "
            "communicator agree; if they do, the transport does not deliver the message."
        )
    else:
        look = {Given.LIVE: "; a second sample can tell", Given.TEXT: "; a second dump can tell"}
        late = f"They may be waiting for each other, or one may just be slow{look.get(view.given, '')}."
        if stop is not None and stop.when:  # they do so no more
            late = "The text does not show whether they waited for each other, or one was just slow."
        text = f"{start(in_places(parties))}. {late}"
    waiting = tuple(party for party in parties if party.group != "fatal") if len(parties) > 1 else ()
    # Who sleeps, and ran between the two copies, may have got what it waited for.
    acts = any(map(_may_go_on, parties))
    acts = acts or (not looked_long(view) and (_others_act(view, parties) or all(map(_runs_in_mpi, parties))))
    may_go_on = nobody_asks(view) or (view.given is Given.LIVE and view.has_two_looks and acts)
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"It is not clear yet whether anything hangs. {text}" if may_go_on else text,
        victims=waiting,
        evidence=evidence_of((), parties),
        decided_by=longer_look(view) if may_go_on else None,
    )


def _helpers_alone(view: JobView) -> Candidate:
    """Of processes whose threads all belong to libraries and rest, as in run-times whose tasks cannot be read."""
    text = without_stacks(view)
    at_rest = view.given is Given.LIVE and view.has_two_looks and all(one.threads for one in view.snapshot.processes)
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"It is not clear yet whether anything hangs. {text}" if at_rest else text,
        decided_by=longer_look(view) if at_rest else None,
    )


def _exceptions(parties: Sequence[Party]) -> str:
    """What the tracebacks end with, as far as the text has it."""
    raised = {id(party): text for party in parties if (text := _raised(party))}
    shown = [f'{start(who([party]))} raised "{raised[id(party)]}".' for party in parties if id(party) in raised]
    others = [party for party in parties if id(party) not in raised]
    if shown and others:
        lines = "the last line of the traceback" if len(others) == 1 else "the last lines of the tracebacks"
        shown = [*shown[:_MOST_SHOWN], f"The text lacks {lines} of {who(others)}."]
    return " ".join(shown[: _MOST_SHOWN + 1])


def _raised(party: Party) -> str:
    lines = party.thread.problems if party.thread is not None else ()
    return next((line.strip()[:_LONGEST] for line in lines if _EXCEPTION.match(line)), "")


def _died_too(view: JobView, party: Party) -> str:
    """Others of which no stack was read, but the line of their own end."""
    kinds = {one.index: one.wait.kind for one in view.processes}
    others = [
        process
        for process in view.snapshot.processes
        if process.index != party.index and not process.threads and kinds.get(process.index) == party.kind
    ]
    if party.group != "fatal" or not others:
        return ""
    names = label_list([process.label for process in others])
    return f"{start(names)} died too; {'its stack is' if len(others) == 1 else 'their stacks are'} not in the text."


def _all(parties: Sequence[Party]) -> str:
    return "both" if len(parties) == 2 else "all"


def _others_act(view: JobView, parties: Sequence[Party]) -> bool:
    """Whether a thread beside one that waits for any thread of its process sleeps for a moment: it may be the one."""
    fed = [party for party in parties if party.kind in FED_KINDS]
    beside = (one for party in fed for one in threads_of(view, party.index) if one.thread is not party.thread)
    return any(one.judged.helper is None and in_own_code(one) and is_alive(one) for one in beside)


def _runs_in_mpi(party: Party) -> bool:
    """Whether it is in a call of MPI, which runs while it waits: it may have returned between the two copies, and be
    called again."""
    return party.kind == "mpi" and party.thread is not None and has_run(party.thread)


def _may_go_on(party: Party) -> bool:
    """Whether it got what it waited for between the two copies, or runs and waits for nobody, or has asked another
    process for one thing: the answer may be on its way while nobody is seen to work on it."""
    if party.thread is None:
        return False
    computes = party.kind in OF_ITS_OWN and (party.thread.cpu or 0.0) >= NO_RATE
    runs = (party.thread.state == "R" or computes) and party.group in ("elsewhere", "unknown")
    return was_woken(party.thread) or (runs and has_run(party.thread)) or party.judged.rule in REQUESTS
