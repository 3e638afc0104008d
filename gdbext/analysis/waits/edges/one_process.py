"""Processes of which every thread waits for what only another of its threads could give: nobody is left to give it."""

from __future__ import annotations

from typing import Iterator, List, Mapping, Optional, Tuple

from gdbext.analysis.progress.running import handler_of
from gdbext.analysis.view.candidate import shows
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import label_list
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.other_frames import left_by_fork
from gdbext.analysis.waits.thread_numbers import Threads
from gdbext.knowledge.frames.idle import ACCEPT, PYTHON_ACCEPT
from gdbext.knowledge.frames.system.libc import JOINS as JOINS_OF_THREADS
from gdbext.knowledge.runtimes.glibc_locks import BY_HANDLER, CHILD_ENDED, KEYBOARD, NO_OWNER, TOLD_TO_END
from gdbext.model.codes import Given, ReadState
from gdbext.model.evidence import Evidence
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockWait, Peer
from gdbext.model.missing import Maybe, Missing
from gdbext.model.waits import ANY, JOINS, STRENGTHS, Node

_OF_OTHERS = (*COMMUNICATION, "implicit", "init", "teardown")
"""Waits that look like those inside of a process, and are for other ranks or the GPU."""
_ENDED = ("Z", "X")


def draw(drawing: Drawing, threads: Threads) -> None:
    """Of each such process: what has no owner waits for any of its threads."""
    for process in drawing.view.snapshot.processes:
        own = {one.thread for one in process.peers if is_own(process, one)}
        found = list(_waits(drawing.view, threads, process)) if process.locks or own else []
        known = {one.thread for one in process.peers if not isinstance(one.processes, Missing)} - own
        away = [party for party, _, one in found if isinstance(one, Missing) and (party.lwp or 0) in known]
        found = [one for one in found if one[0] not in away]
        if not any(_needs_any(wait) for _, wait, _ in found if wait.address):  # then no new client ends the waits
            found = [one for one in found if one[0].judged.rule not in (ACCEPT, PYTHON_ACCEPT)]
        strengths = [one for _, _, one in found if isinstance(one, str)]
        unowned = own or any(_needs_any(wait) for _, wait, _ in found)
        if not (unowned and found) or len(strengths) < len(found) or _forked(drawing.view, process):
            continue
        strength = min(strengths, key=tuple(STRENGTHS).index)
        hub = drawing.resource("condition", hub_of(process), f"a thread of {process.label} (all wait)")
        for party, wait, _ in found:
            node = drawing.of(party)
            if _needs_any(wait) and (party.lwp or 0) not in own:  # the edges of files are drawn with all others
                given = _given(drawing, party, wait, strength)
                if not drawing.waits(given):
                    drawing.join(given, hub, "left", strength, needs=ANY)
            drawing.join(hub, node, "left", strength, drawing.fact(party), ANY)
        for party in away:  # what these wait for from other processes is drawn for itself
            drawing.join(hub, drawing.of(party), "left", strength, drawing.fact(party), ANY)


def is_own(process: RankSnapshot, peer: Peer) -> bool:
    """Whether nobody but this process has the other end of a file, or holds the lock on it: a thread of its own must
    act."""
    return peer.processes == (process.pid,) and len(process.threads) > 1


def hub_of(process: RankSnapshot) -> str:
    """What stands for all threads of a process of which none can act."""
    return f"left:{process.index}"


def _given(drawing: Drawing, party: Party, wait: LockWait, strength: str) -> Node:
    """What a thread waits for: a lock that readers hold was drawn already."""
    node = drawing.of(party)
    if drawing.waits(node):
        return drawing.leaving(node)[0].target
    key = f"{party.index}:{wait.address:#x}" if wait.address else f"{party.index}:{wait.thread}"
    given = drawing.resource("condition", key, name(wait))
    drawing.join(node, given, JOINS, strength, drawing.fact(party), ANY)
    return given


def ways_out(view: JobView, party: Party) -> Tuple[Evidence, ...]:
    """Why a thread that waits for others of its process may go on: what those wait for."""
    found = list(_waits(view, Threads(view), party.process)) if party.process.locks else []
    own = any(isinstance(one, str) for waiter, _, one in found if waiter.thread is party.thread)
    reasons = [one.reason for _, _, one in found if isinstance(one, Missing)]
    if not own or not reasons:
        return ()
    return (shows(party, f"what may wake the waiting threads of {party.process.label}: {label_list(reasons)}"),)


def name(wait: LockWait) -> str:
    """What is waited for, without its article: `mutex serve::cache`, `mutex 0x55..`."""
    if wait.kind in ("gil", "loader"):
        return KINDS[wait.kind]
    kind = "futex" if wait.kind == "futex" else KINDS[wait.kind].split(" ", 1)[-1]
    return f"{kind} {wait.name or hex(wait.address)}" if wait.address else kind


def _forked(view: JobView, process: RankSnapshot) -> bool:
    return any(left_by_fork(view, one) is not None for one in _parties(view, process))


def _parties(view: JobView, process: RankSnapshot) -> List[Party]:
    return [party for party in view.parties if party.index == process.index]


def _needs_any(wait: LockWait) -> bool:
    """Whether it has no owner: any thread might end it."""
    return wait.kind in NO_OWNER or wait.kind == "futex" or (wait.kind == "rwlock" and isinstance(wait.owner, Missing))


def _waits(view: JobView, threads: Threads, process: RankSnapshot) -> Iterator[Tuple[Party, LockWait, Maybe[str]]]:
    """Each thread with how sure only its own process can end its wait, or with what else might."""
    waits: Mapping[int, LockWait] = {wait.thread: wait for wait in process.locks}
    files: Mapping[int, Peer] = {one.thread: one for one in process.peers if is_own(process, one)}
    nothing = LockWait(thread=0, kind="futex", address=0, owner=Missing("it does not wait for a lock"))
    for party in threads_of(view, process.index):
        thread = party.thread
        if thread is None or thread.state in _ENDED:
            continue
        wait = waits.get(thread.lwp or 0)
        subject = f"thread {party.id}"
        if party.lwp in files:
            yield party, nothing, _of_file(process, party, files[party.lwp or 0])
        elif wait is None:
            yield party, nothing, Missing(f"{subject} is in {where(party)}")
        elif not _is_known(process):
            yield party, wait, Missing("not all of the process was read")
        elif party.judged.helper is None and party.group in _OF_OTHERS:
            yield party, wait, Missing(f"{subject} waits for other ranks or the GPU")
        else:
            why = _elsewhere(threads, process, wait, party.judged.rule in JOINS_OF_THREADS)
            yield party, wait, Missing(f"{subject} {why}") if why else _strength(process, wait)


def _is_known(process: RankSnapshot) -> bool:
    """Whether it is known of all its threads what they wait for. Of a copy, stacks may lack their outer end."""
    if process.state == ReadState.OK:
        return True
    copied = process.given is Given.LIVE and process.state == ReadState.PARTIAL
    return copied and all(thread.frames and thread.syscall for thread in process.threads)


def _of_file(process: RankSnapshot, party: Party, peer: Peer) -> Maybe[str]:
    """A handler may write to a file, and does not let go of a lock on one."""
    thread = party.thread
    why = None if peer.lock else _handler(process, "semaphore")
    if thread is not None and thread.switches:
        why = "was woken"
    return Missing(f"thread {party.id} {why}") if why else "inferred"


def _elsewhere(threads: Threads, process: RankSnapshot, wait: LockWait, joins: bool) -> Optional[str]:
    """What but a thread of the process may end the wait. No handler ends a thread that another one `joins`."""
    if wait.timed:
        return "waits with a time-out"
    if wait.shared or wait.owner_process not in (None, process.pid):
        return "waits for an object that other processes share"
    reason = wait.owner.reason if isinstance(wait.owner, Missing) else ""
    if wait.still is False or wait.moving:
        return "is about to resume"
    if wait.kind in BY_HANDLER:
        return None if joins else _handler(process, wait.kind)
    known = wait.gone or threads.owner(process, wait) is not None or _needs_any(wait)
    readers = wait.kind != "rwlock" or not reason or wait.readers
    return None if known and readers else f"waits for an object of unknown owner ({reason or 'its owner was not seen'})"


def _handler(process: RankSnapshot, kind: str) -> Optional[str]:
    if process.handlers is None:
        return "may be woken by a signal handler, if the process has one" if BY_HANDLER[kind] else None
    handler = handler_of(process, besides=_that_only_end(process))
    return f"may be woken by the handler of signal {handler}" if handler is not None else None


def _that_only_end(process: RankSnapshot) -> Tuple[int, ...]:
    """Signals that only end the program, or cannot come. Its main thread must join another one already: else it may be
    waiting for such a signal."""
    activity = process.activity
    if not any(wait.kind == "join" and wait.thread == process.pid for wait in process.locks):
        return ()
    childless = activity is not None and not (activity.child_lives or activity.ended)
    return (TOLD_TO_END, CHILD_ENDED) if childless else (TOLD_TO_END,)


def _strength(process: RankSnapshot, wait: LockWait) -> str:
    """Of a wait that two looks saw, or one look at threads that all stood still."""
    by_keyboard = wait.kind in BY_HANDLER and (process.handlers is None or KEYBOARD in process.handlers)
    if wait.kind in BY_HANDLER and handler_of(process) is not None:
        return "assumed"
    if wait.kind == "futex" or (by_keyboard and (BY_HANDLER[wait.kind] or process.handlers is None)):
        return "inferred"
    return "proven" if wait.still else "named"
