"""A thread that keeps Python's GIL while it sleeps or gives its processor away, again and again, for what only code of
Python could change.

Who computes with the GIL may come to an end; who waits should have given it back (PyEval_SaveThread, PyDLL).
"""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.progress.own_work import is_active, looked_long, naps_with_gil
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import has_acted, in_all_looks, stood
from gdbext.analysis.stacks.process_kind import has_gpu_libraries
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without, threads_of, waits_for_itself
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.runtimes.system_calls import FUTEX
from gdbext.model.codes import Given
from gdbext.model.text.patterns import regex

_OF_ITS_OWN = ("elsewhere", "lock")
"""Groups of waits that are neither for the GPU nor for other ranks."""
_ENTERS = regex(r"^PyGILState_Ensure$|gil_scoped_acquire")
"""What native code calls before it calls Python (Python/pystate.c, pybind11)."""


def keeps_gil(view: JobView) -> Optional[Candidate]:
    """In all looks, over as long as an endless loop takes to be called one, the same thread had it, and another one
    waited for it and executed nothing."""
    if view.given is not Given.LIVE or not looked_long(view):
        return None
    for index in range(len(view.processes)):
        threads = threads_of(view, index)
        keeper = next((one for one in threads if naps_with_gil(view, one) and one.group in _OF_ITS_OWN), None)
        starved = [one for one in threads if one.kind == "gil" and in_all_looks(view, one)]
        if keeper is None or not starved or not in_all_looks(view, keeper, True):
            continue
        if any(is_active(one) for one in threads if one.lwp != keeper.lwp):  # it may wait for native work
            continue
        summary = (
            f"{start(who([keeper]))} holds Python's GIL while it waits in {where(keeper)}; {who(starved)} "
            f"{verb(starved, 'has', 'have')} waited for the GIL in all samples. If that wait needs Python code to run, "
            "it never ends: native code must release the GIL before it waits."
        )
        return Candidate(
            cause="gil-deadlock",
            confidence="medium",
            summary=summary,
            culprits=(keeper,),
            evidence=evidence_of([keeper], starved),
        )
    return None


def keeps_gil_for_itself(view: JobView) -> Optional[Candidate]:
    """It waits without a limit for what only its own process can send, and nobody acts: all threads of that want the
    GIL or rest. One that waits for something else may answer as soon as that has come."""
    if view.given is not Given.LIVE or not view.has_two_looks or not looked_long(view):
        return None
    every = (one for index in range(len(view.processes)) for one in threads_of(view, index))
    if any(has_acted(one) for one in every if one.kind != "gil"):
        return None
    for index in range(len(view.processes)):
        threads = threads_of(view, index)
        keeper = next((one for one in threads if _keeps_for_itself(one)), None)
        starved = [one for one in threads if one.kind == "gil" and one.judged.helper is None]
        if keeper is None or not starved or not stood(view, [keeper]):
            continue
        others = (one for one in threads if one.lwp != keeper.lwp and one.judged.helper is None)
        if not all(one.kind == "gil" or one.judged.idle or (waits_for_itself(one) and stands(one)) for one in others):
            continue
        summary = (
            f"{start(who([keeper]))} holds Python's GIL while it waits for data in {where(keeper)}; the other end of "
            f"that connection is in the same process, and {who(starved)} {verb(starved, 'waits', 'wait')} for the GIL. "
            "Native code must release the GIL before it waits."
        )
        return Candidate(
            cause="gil-deadlock",
            confidence="medium",
            summary=summary,
            culprits=(keeper,),
            evidence=evidence_of([keeper], starved),
        )
    return None


def _keeps_for_itself(one: Party) -> bool:
    return waits_for_itself(one) and one.thread is not None and one.thread.gil is True and stands(one)


def keeps_gil_in_collective(view: JobView) -> Optional[Candidate]:
    """No rank does anything but wait for others, and one of them has the GIL meanwhile, which another of its threads
    wants: what that was to do comes too late for whoever waits for it."""
    stand = all(party.group in (*COMMUNICATION, "init", "lock") for party in view.parties)
    if view.given is not Given.LIVE or not view.has_two_looks or view.moved or not stand or len(view.parties) < 2:
        return None
    for index in range(len(view.processes)):
        threads = threads_of(view, index)
        keeper = next((one for one in threads if _keeps_for_others(one)), None)
        starved = [one for one in threads if one.kind == "gil" and one.judged.helper is None]
        if keeper is None or not starved:
            continue
        summary = (
            f"{start(who([keeper]))} holds Python's GIL while it waits for other ranks in {closed(where(keeper))} and "
            f"{who(starved)} {verb(starved, 'waits', 'wait')} for the GIL. If another rank waits for a call of "
            f"{who(starved)}, neither side goes on: native code must release the GIL before it waits."
        )
        others = parties_without(view.parties, [party for party in view.parties if party.index == index])
        return Candidate(
            cause="gil-deadlock",
            confidence="low",
            summary=summary,
            culprits=(keeper,),
            victims=tuple(others),
            evidence=evidence_of([keeper, *starved], others),
        )
    return None


def keeps_gil_from_callback(view: JobView) -> Optional[Candidate]:
    """It waits without a limit for another thread of its process, and a thread that native code has started wants the
    GIL to call a function of Python. That is what the first one waits for, unless a third thread acts."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.of("collective", "launch", "init"):
        return None
    for index in range(len(view.processes)):
        threads = threads_of(view, index)
        keeper = next((one for one in threads if _waits_with_gil(one)), None)
        calling = [one for one in threads if one.kind == "gil" and _calls_back(one)]
        if keeper is None or not calling or not stood(view, [keeper]):
            continue
        others = [one for one in threads if one.lwp != keeper.lwp and one not in calling]
        if not all(one.kind == "gil" or stands(one) or one.judged.idle for one in others):
            continue
        on_gpu = keeper.group not in _OF_ITS_OWN and has_gpu_libraries(keeper.process)
        summary = (
            f"{start(who([keeper]))} holds Python's GIL while it waits in {closed(where(keeper))} and {who(calling)}, "
            f"started by native code, {verb(calling, 'needs', 'need')} the GIL to call back into Python. Neither side "
            "goes on: native code must release the GIL before it waits."
        )
        return Candidate(
            cause="gil-deadlock",
            confidence="low" if on_gpu else "medium",
            summary=summary,
            culprits=(keeper,),
            evidence=evidence_of([keeper], calling),
        )
    return None


def _waits_with_gil(one: Party) -> bool:
    call = one.syscall
    return one.thread is not None and one.thread.gil is True and call is not None and call[0] == FUTEX and stands(one)


def _calls_back(one: Party) -> bool:
    """Whether no function of Python has called it: it comes from a thread of a library."""
    calls = one.calls
    native = all(frame.language != "python" for frame in calls)
    return native and any(_ENTERS.search(frame.function or "") for frame in calls)


def _keeps_for_others(one: Party) -> bool:
    return one.thread is not None and one.thread.gil is True and one.group in (*COMMUNICATION, "init")


LOST = (keeps_gil, keeps_gil_for_itself, keeps_gil_from_callback, keeps_gil_in_collective)
