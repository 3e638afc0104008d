"""Signs that a process which looks idle has begun something: an idle process waits for requests, messages or orders,
not for a lock, a result, room to write or the end of another process's work."""

from __future__ import annotations

from itertools import islice
from typing import Iterator, Pattern, Sequence

from gdbext.analysis.progress.named_waits import waits_once
from gdbext.analysis.progress.overdue_answers import overdue_clients, overdue_text
from gdbext.analysis.progress.own_hangs.loop_tasks import unfinished
from gdbext.analysis.progress.pool_tasks import asks_for_result, inside_task, stands, unfinished_tasks, waits_for_result
from gdbext.analysis.progress.running import asks_for_file
from gdbext.analysis.stacks.decisive import exits
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    is_unaccepted,
    matches_any,
    other_ends,
    threads_of,
    waits_for_itself,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, signal_name, who
from gdbext.knowledge.engines.waits_between_parts import ANSWERS_OF_RANKS
from gdbext.knowledge.frames.idle import SIGNAL_WAIT
from gdbext.knowledge.frames.python.python_libraries import REQUESTS
from gdbext.knowledge.frames.python.request_calls import ASKS_BY_NAME, REQUEST_CALLS
from gdbext.knowledge.frames.system.libc import JOINS
from gdbext.knowledge.runtimes.system_calls import FLOCK, SENDMSG, SENDTO, WRITE, WRITEV
from gdbext.knowledge.runtimes.untimed_calls import BY_THREADS, CHILD_WAITS, LOADER_WAITS, POOL_WORKER
from gdbext.model.activity import Ended
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

_REQUESTS = [(regex(function), regex(file)) for function, file, _ in REQUEST_CALLS]
_ASKS, _OF_LIBRARIES = regex(ASKS_BY_NAME), regex(r"(^|/)(lib/python\d|site-packages|dist-packages)|^<")
_TAKES = ("__enter__", "acquire", "put")
MEETS = regex(r"Barrier\.wait$")
_QUEUES = regex(r"(^|/)(queue|multiprocessing/queues)\.py$")
_JOIN = regex(r"(^|\.)(join|shutdown|_terminate_pool)$")
_POOLS = regex(r"(^|/)(multiprocessing/pool|concurrent/futures/(thread|process))\.py$")
_GIVES = (WRITE, WRITEV, SENDTO, SENDMSG, FLOCK)
RULES = (*CHILD_WAITS, *LOADER_WAITS, *REQUESTS, "os-join")
HANDLERS = regex(r"(\w+\.)?(process_request\w*|finish_request|handle|do_[A-Z]+)$")
"""Functions of Python's servers in which a request is answered, or a client's next one is read."""
_OF_SUPERVISORS = (*CHILD_WAITS, *JOINS)
"""Rules of waits that an idle process has too: supervisors wait for the end of their workers."""


def awaits_answer(view: JobView, one: Party) -> bool:
    """Whether it waits for the answer to a request that it has sent to another process of the job."""
    ends = other_ends(one)  # most threads have none
    others = {process.pid for process in view.snapshot.processes} - {one.process.pid} if ends else set()
    if not ends or not all(pids and others.issuperset(pids) for pids in ends):
        return False
    return _is_in_request(one)


def asks_own_process(one: Party) -> bool:
    """Whether it waits for the answer to a request that another thread of its own process must give."""
    return waits_for_itself(one) and not is_unaccepted(one) and _is_in_request(one)


def _is_in_request(one: Party) -> bool:
    return any(one.is_inside(function, file) for function, file in _REQUESTS)


def seems_to_ask(one: Party) -> bool:
    """Whether it receives in a function whose name says that it asks for something."""
    if one.kind not in ("io", "ipc-queue") or one.judged.idle:
        return False
    own = (frame for frame in one.python_calls() if not _OF_LIBRARIES.search(frame.file or ""))
    return any(_ASKS.match(frame.function or "") for frame in islice(own, 1))


def is_owed_answer(view: JobView, one: Party) -> bool:
    """Whether it waits for an answer, by what it has called or by the names of its own functions."""
    return awaits_answer(view, one) or seems_to_ask(one)


def asks(one: Party) -> bool:
    """Whether it waits for work that it has started and another thread or process must finish. An idle one does not."""
    if one.judged.rule == POOL_WORKER:
        return False
    call = one.syscall
    joins = _joins(one, _QUEUES) or joins_pool(one)
    sends = bool(call) and call is not None and call[0] in _GIVES
    waits = wants_lock(one) or one.judged.rule in RULES or waits_for_result(one) or inside_task(one)
    return sends or waits or asks_for_file(one) or matches_any(MEETS, calls_of(one)) or _takes(one) or joins


def wants_lock(one: Party) -> bool:
    """Whether it waits for what one thread has; readers of a queue have a lock, too."""
    return one.kind == "mutex" and not _reads_queue(one)


def _takes(one: Party) -> bool:
    """Whether it waits for a lock or a slot of Python, or for room in a queue."""
    return not _reads_queue(one) and any(_name(frame) in _TAKES for frame in _innermost(one))


def _reads_queue(one: Party) -> bool:
    return any(_name(frame) == "get" and _QUEUES.search(frame.file or "") for frame in _innermost(one))


def _innermost(one: Party) -> Iterator[Frame]:
    return islice(one.python_calls(), 2)


def _name(frame: Frame) -> str:
    return (frame.function or "").rpartition(".")[2]


def joins_pool(one: Party) -> bool:
    """Whether it waits until a pool that it has closed ends."""
    return _joins(one, _POOLS)


def _joins(one: Party, files: Pattern[str]) -> bool:
    """Of a queue: whether it waits until all that was put into it is done."""
    calls = one.python_calls()
    return any(_JOIN.search(frame.function or "") and files.search(frame.file or "") for frame in calls)


def begun(view: JobView, party: Party) -> str:
    """What its process has begun and waits for, in words; "" where nothing shows that it has begun anything."""
    return next(_signs(view, party), "")


def _signs(view: JobView, party: Party) -> Iterator[str]:
    activity = party.process.activity
    ended = activity.ended if activity is not None else ()
    if party.judged.rule != SIGNAL_WAIT:  # one signal may stand for several children
        ended = tuple(child for child in ended if child.failed)
    for child in ended[:1]:
        yield f"{ended_child(child)} has ended, and its parent {who([party])} has not asked for the exit status"
    if party.judged.rule in ANSWERS_OF_RANKS:
        yield f"{who([party])} waits in {closed(where(party))} for what its ranks answer"
    overdue = overdue_clients(view, party)
    if overdue:
        yield overdue_text(overdue, who([party]))
    own = threads_of(view, party.index)
    for one in own:
        if awaits_answer(view, one) and stands(one):
            yield f"{who([one])} waits in {closed(where(one))} for the answer to a request"
    if seems_to_ask(party):
        yield f"{who([party])} waits in {closed(where(party))} for what seems to be the answer to a request"
    if waits_once(party):
        yield f"{who([party])} waits in {closed(where(party))}, outside of any loop, for one message"
    is_fed, is_cut_off = any(map(_feeds, own)), _is_cut_off(own)
    for loop in own:
        yield from unfinished(loop, is_fed, is_cut_off)
    for one in own:
        if one.judged.helper is None and one.thread is not None and stands(one) and exits(one.thread):
            yield f"{who([one])} is exiting, and waits in {closed(where(one))}"
    for one in unfinished_tasks(view, party.index):
        yield f"{who([one])} waits inside of a task in {closed(where(one))}"
    for one in filter(asks_for_result, own):
        yield f"{who([one])} looks again and again, inside of a task, for the result of another one, in {where(one)}"
    for one in filter(_stands_amid, own):
        yield f"{who([one])} waits in {closed(where(one))} for something that the program itself must give"


def _feeds(one: Party) -> bool:
    """Whether it takes messages, or runs a task of an executor: what it gets may go to a loop."""
    return one.judged.helper is None and (one.kind == "ipc-queue" or inside_task(one))


def _is_cut_off(own: Sequence[Party]) -> bool:
    """Whether threads of a library that takes messages for it wait for nothing but to be woken up by the process
    itself: none of its contexts has a connection."""
    takers = [one for one in own if one.judged.helper in BY_THREADS.values()]
    return bool(takers) and all(map(waits_for_itself, takers))


def _stands_amid(one: Party) -> bool:
    """Whether a thread waits without a limit for what it has asked for, or inside of a request that it answers. What a
    pool's task waits for may be orders."""
    if one.judged.helper is not None or one.judged.idle or one.judged.rule in _OF_SUPERVISORS:
        return False
    if not stands(one) or one.thread is None or one.thread.switches is None:  # nobody counted
        return False
    if one.kind != "io" and matches_any(HANDLERS, calls_of(one)):  # else it may read its client's next request
        return True
    return asks(one) and not (inside_task(one) and not waits_for_result(one))


def ended_child(child: Ended) -> str:
    """`pid 99 (python, SIGKILL)`."""
    how = signal_name(child.signal) if child.signal else f"status {child.status}"
    return f"pid {child.pid} ({child.name}, {how})"
