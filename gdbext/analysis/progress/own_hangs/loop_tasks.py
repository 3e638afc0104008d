"""Tasks of an event loop of Python that wait for each other, or for what only another task could give.

The thread of such a loop looks like an idle server's: it waits for events. What its tasks wait for, memory tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Pattern, Sequence, Tuple

from gdbext.analysis.progress.pool_tasks import stands, takes_clients_alone
from gdbext.analysis.progress.running import handler_of, stays_in_place
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, threads_of, waits_for_itself
from gdbext.analysis.view.places import place
from gdbext.analysis.view.wording import closed, start, who
from gdbext.knowledge.causes.asyncio_waits import (
    CHANGES,
    CODE_OF_ENGINES,
    ENGINE_ANSWERS,
    FIRST_TASK,
    FUTURE,
    HANDLES,
    LOCKS,
    OTHERS,
    READS_WORK,
    ROOM,
    RUNS_LOOP,
    TASK,
    TURNS,
    WAITS,
    WORK,
)
from gdbext.knowledge.causes.held_by_frames import ENDS, STOPS
from gdbext.knowledge.frames.python.python_helpers import EVENT_LOOP
from gdbext.knowledge.frames.python.request_calls import ASKS_BY_NAME
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.system_calls import FUTEX
from gdbext.model.codes import Given
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame
from gdbext.model.tasks import MOST_TASKS, PythonTask
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import counted

_WAITS = [(kind, regex(function), regex(file)) for kind, function, file in WAITS]
_ENGINE_ANSWERS = [(regex(function), regex(file)) for function, file, _ in ENGINE_ANSWERS]
_HANDLES = [(regex(function), regex(file)) for function, file, _ in HANDLES]
_LOOP, _LOOP_FILES = regex(RUNS_LOOP), regex(r"(^|/)(asyncio|uvloop)/")
_OF_LOOPS = regex(r"(^|/)((asyncio|uvloop)/|selectors\.py$)")
_OF_ENGINES = regex(CODE_OF_ENGINES)
_ASKS = regex(ASKS_BY_NAME)
_ASYNCIO = regex(r"(^|/)asyncio/")
_LOCK, _READS_WORK = regex(r"Lock\."), regex(READS_WORK)
_NAPS, _ENDS = regex(r"sleep$"), tuple(map(regex, (ENDS, STOPS)))
_MOST_SHOWN = 4
_BRIEF = 1.0  # seconds of a sleep of who looks for something again and again
_OUTSIDE = ""
_FROM_OUTSIDE = {_OUTSIDE, ROOM}


def tasks_in_circle(view: JobView) -> Optional[Candidate]:
    """Each has a lock of asyncio that the next one wants."""
    for loop, tasks in _loops(view):
        circle = _circle(tasks)
        if not circle:
            continue
        rests = stands(loop)
        seen = view.given is Given.CORE or _seen_before(view, loop, circle)  # a core is of one moment
        if not rests and (any(task.limited for task in circle) or not seen):
            continue
        following = [*circle[1:], circle[0]]
        pairs = [f"{_label(one)} waits in {_place(one)} for a lock that {_label(other)} holds"
                 for one, other in zip(circle, following)][:_MOST_SHOWN]  # fmt: skip
        lead, end = f"Tasks of the event loop of {_process(view, loop)} wait for each other", "None of them can proceed"
        if len(circle) == 1:
            lead, end = f"A task of the event loop of {_process(view, loop)} waits for itself", "It can never proceed"
            pairs = [f"{_label(circle[0])} waits in {_place(circle[0])} for a lock that it already holds"]
        summary = f"{lead}: {'; '.join(pairs)}. {end}."
        return _found(view, loop, summary, "high" if rests else "medium")
    return None


def no_task_left(view: JobView) -> Optional[Candidate]:
    """Some wait for what only another task could give, and no other task waits for anything from outside. One look,
    as at what gdb holds, does not show whether somebody was about to go on."""
    if not view.has_two_looks:
        return None
    for loop, tasks in _loops(view):
        kinds = [_kind(task) for task in tasks]
        if not _FROM_OUTSIDE.isdisjoint(kinds) or len(tasks) >= MOST_TASKS or not stands(loop):
            continue
        others = threads_of(view, loop.index, lambda one: one.helper in (None, EVENT_LOOP))
        waiting = _lost(view, loop, tasks, kinds) if all(stands(one) for one in others) else []
        if not waiting:
            continue
        many, wait, ends = ("A task", "waits", "this wait")
        if len(waiting) > 1:
            many, wait, ends = (f"{len(waiting)} tasks", "wait", "these waits")
        summary = (
            f"{many} of the event loop of {_process(view, loop)} {wait} in {closed(_place(waiting[0]))} and only "
            f"another task could end {ends}. No task is left that can: none waits for a reply or a timer. The one that "
            "should act has ended, or waits as well."
        )
        sure = _wakes_itself(loop) or (takes_clients_alone(loop) and not _victims(view, loop))
        sure = sure and all(map(stands, threads_of(view, loop.index)))  # else one of its threads may still answer
        return _found(view, loop, summary, "medium" if sure else "low")
    return None


def cut_off(view: JobView) -> Optional[Candidate]:
    """A task waits for a future of the program's own, and only its process can wake the loop: no thread of that works,
    or waits for anything from outside."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for loop, tasks in _loops(view):
        if not _wakes_itself(loop) or not stands(loop) or len(tasks) >= MOST_TASKS or handler_of(loop.process):
            continue
        every = threads_of(view, loop.index)
        futures = [task for task in tasks if _is_own_future(task)]
        if len(futures) < len(tasks) or not futures or not all(_waits_inside(one) for one in every):
            continue
        threads = "its process has no other thread" if len(every) == 1 else "no other thread of its process works"
        summary = (
            f"{start(_label(futures[0]))} of the event loop of {_process(view, loop)} waits in "
            f"{closed(_place(futures[0]))} for a future. This loop watches no connection, and {threads} or waits for "
            "one that another process can end: nobody is left to set it."
        )
        return replace(_found(view, loop, summary, "low"), cause="other")
    return None


def _is_own_future(task: PythonTask) -> bool:
    """Whether it waits without a limit for a future that no function of asyncio has made."""
    own = bool(task.frames) and not _ASYNCIO.search(task.frames[0].file or "")
    return own and not task.limited and task.waits_for == FUTURE


def _waits_inside(one: Party) -> bool:
    """Whether it waits without a limit for what only a thread of its own process can give."""
    call = one.syscall
    if not stands(one) or call is None:
        return False
    return call[0] == FUTEX or waits_for_itself(one)


def _lost(view: JobView, loop: Party, tasks: Sequence[PythonTask], kinds: Sequence[str]) -> List[PythonTask]:
    """Whose wait no new client ends. A client's task may take from a full queue, or release what counts as an order: so
    these count where no client can come, or where one waits for this process."""
    held = {lock for task in tasks for lock in task.holds}
    waiting = [task for task, kind in zip(tasks, kinds) if kind == LOCKS and (_is_lock(task) or task.wants in held)]
    if _wakes_itself(loop) or _victims(view, loop):
        waiting = [task for task, kind in zip(tasks, kinds) if kind in (LOCKS, TURNS)]
    joining = [task for task, kind in zip(tasks, kinds) if kind == OTHERS]
    if not waiting and len(joining) > 1 and not {WORK, LOCKS, TURNS, CHANGES}.intersection(kinds):
        return joining  # all wait for the end of others
    if not waiting and joining and _victims(view, loop) and set(kinds) == {OTHERS, WORK}:
        return joining  # for the end of some who wait for more to do, while somebody waits for this process
    return waiting


def unfinished(loop: Party, is_fed: bool, is_cut_off: bool = False) -> Iterator[str]:
    """What tasks of a thread's loop have begun, in words: they wait without a limit for what another task must give, or
    for a future of the program's own while nothing from outside can reach the loop but new clients. `is_fed`: a thread
    takes what comes from outside, and may set a future. `is_cut_off`: no message can come to its process."""
    tasks = _unlimited(loop)
    owed = [task for task in tasks if is_request(task)]
    if owed:
        yield waiting_requests(owed, loop.process.label)
    for task in tasks:
        if _kind(task) in (LOCKS, TURNS, CHANGES):
            yield f"{_label(task)} of an event loop waits in {closed(_place(task))} for another task"
        if _ends_something(task):
            yield f"{_label(task)} of an event loop checks in {closed(_place(task))} again and again for an end"
        if _kind(task) == ROOM and stands(loop):
            yield f"{_label(task)} of an event loop waits in {closed(_place(task))} for room to write"
    futures = own_futures(loop)
    asking = [task for task in futures if _ASKS.match(task.frames[0].function or "")]
    if asking:
        spot = closed(_place(asking[0]))
        yield f"{_label(asking[0])} of an event loop waits in {spot} for what seems to be an answer"
    forever = len(futures) == 1 and futures[0].name == FIRST_TASK
    if futures and not (forever or is_fed) and (is_cut_off or _wakes_itself(loop) or takes_clients_alone(loop)):
        yield f"{_label(futures[0])} of an event loop waits in {closed(_place(futures[0]))} for a future"


def own_futures(loop: Party) -> List[PythonTask]:
    """Tasks of a thread's loop that wait without a limit for a future in code of the program."""
    return [
        task for task in _unlimited(loop) if task.waits_for == FUTURE and not _ASYNCIO.search(task.frames[0].file or "")
    ]


def _unlimited(loop: Party) -> List[PythonTask]:
    return [task for task in loop.process.tasks if task.thread == loop.lwp and task.frames and not task.limited]


def runs_loop(one: Party) -> bool:
    """Whether its thread is somewhere inside of an event loop: of its selector, or of what a task has called."""
    return any(_LOOP.search(frame.function or "") and _LOOP_FILES.search(frame.file or "") for frame in one.calls)


def blocks_loop(one: Party) -> bool:
    """Whether code that a loop has called waits by itself: meanwhile the loop serves nobody. In uvloop an idle loop
    shows no frame of Python further in than the call that runs it."""
    inner = next(one.python_calls(), None)
    return inner is not None and not _OF_LOOPS.search(inner.file or "") and runs_loop(one)


def naps_in_loop(view: JobView, one: Party) -> bool:
    """Whether code that a loop has called sleeps briefly again and again, with the same local variables in all looks,
    and tasks of that loop wait for their turn."""
    nap = one.thread.sleeps if one.thread is not None and one.judged.rule in OWN_SLEEPS else None
    if nap is None or nap > _BRIEF or not one.process.tasks:
        return False
    return blocks_loop(one) and stays_in_place(view, one)


def answers_client(party: Party) -> bool:
    """Whether a web server in it has a request under way, which some handler has not answered yet."""
    return any(_is_one_of(frame, _HANDLES) for task in party.process.tasks for frame in task.frames)


def requests_of(party: Party) -> List[PythonTask]:
    """The requests that wait in a front end, without a limit of their own."""
    return [task for task in party.process.tasks if not task.limited and is_request(task)]


def is_request(task: PythonTask) -> bool:
    """Whether a client's request waits in it for what the engine answers, or on the way to the engine; not for the
    client to read."""
    return _engine_call(task) is not None and _kind(task) != ROOM


def waiting_requests(tasks: Sequence[PythonTask], front_end: str) -> str:
    """`2 requests wait in AsyncLLM.generate (async_llm.py:767) of front end for an answer of the engine`; else what one
    waits for before the engine has it."""
    first = next((task for task in tasks if is_on_the_way(task) or waits_elsewhere(task)), tasks[0])
    spot, what = place(_engine_call(first)), "an answer of the engine"
    if _is_paused(first):
        spot, what = _place(first), "another task there, which may have paused the engine"
    elif is_on_the_way(first):
        spot, what = _place(first), "another task there"
    elif waits_elsewhere(first):
        spot, what = _place(first), "something other than the engine"
    waits = "waits" if len(tasks) == 1 else "wait"
    return f"{counted(len(tasks), 'request')} {waits} in {spot} of {front_end} for {what}"


def is_on_the_way(task: PythonTask) -> bool:
    """Whether another task of the front end must let it go on to the engine."""
    return _kind(task) in (LOCKS, TURNS, CHANGES)


def waits_elsewhere(task: PythonTask) -> bool:
    """Whether it is in code that some plugin has added, or waits until somebody lets the engine go on: nothing shows
    that the engine owes it an answer."""
    return _is_paused(task) or not (is_on_the_way(task) or _is_of_engine(_caller(task)))


def _is_paused(task: PythonTask) -> bool:
    return _kind(task) == CHANGES and _is_of_engine(_caller(task))


def _is_of_engine(frame: Frame) -> bool:
    return bool(_OF_ENGINES.search(frame.file or ""))


def _engine_call(task: PythonTask) -> Optional[Frame]:
    """Where it waits for what the engine answers."""
    return next((frame for frame in task.frames if _is_one_of(frame, _ENGINE_ANSWERS)), None)


def _is_one_of(frame: Frame, calls: Sequence[Tuple[Pattern[str], Pattern[str]]]) -> bool:
    """Whether it is one of these functions, each in its file."""
    return any(call.search(frame.function or "") and file.search(frame.file or "") for call, file in calls)


def _ends_something(task: PythonTask) -> bool:
    """Whether it naps in a function that ends something, for what has not ended yet."""
    return _naps(task) and any(pattern.match(_caller(task).function or "") for pattern in _ENDS)


def _naps(task: PythonTask) -> bool:
    inner = next(iter(task.frames), None)
    return inner is not None and bool(_NAPS.match(inner.function or "") and _ASYNCIO.search(inner.file or ""))


def place_of_naps(loop: Party) -> str:
    """Where the tasks of its loop sleep, which wait for nothing else: no request can come; "" where some do."""
    own = [task for task in loop.process.tasks if task.thread == loop.lwp]
    return _place(own[0]) if own and all(map(_naps, own)) else ""


def _loops(view: JobView) -> Iterator[Tuple[Party, Sequence[PythonTask]]]:
    """Threads that run a loop and wait for events, with their tasks."""
    if view.given not in (Given.LIVE, Given.CORE):
        return
    for process in view.snapshot.processes:
        by_thread: Dict[int, List[PythonTask]] = {}
        for task in process.tasks:
            by_thread.setdefault(task.thread, []).append(task)
        for party in threads_of(view, process.index) if by_thread else ():
            tasks = by_thread.get(party.lwp or 0)
            if tasks and (party.judged.idle or party.judged.helper == EVENT_LOOP):
                yield party, tasks


def _kind(task: PythonTask) -> str:
    """What a task waits for, by its innermost coroutine (knowledge.causes.asyncio_waits.py); "": something that may
    come from outside, or that is not known."""
    for inner in task.frames[:1]:
        for kind, function, file in _WAITS:
            if function.search(inner.function or "") and file.search(inner.file or ""):
                return WORK if kind == CHANGES and _READS_WORK.search(_caller(task).function or "") else kind
    return OTHERS if task.waits_for == TASK else _OUTSIDE


def _circle(tasks: Sequence[PythonTask]) -> List[PythonTask]:
    """Of locks alone: a semaphore may have other holders, who let it go."""
    holder = {lock: task for task in tasks for lock in task.holds}
    for first in tasks:
        way: List[PythonTask] = []
        task: Optional[PythonTask] = first
        while task is not None and task not in way:
            way.append(task)
            task = holder.get(task.wants) if _is_lock(task) else None
        if task is first:
            return way
    return []


def _seen_before(view: JobView, loop: Party, circle: Sequence[PythonTask]) -> bool:
    """Whether an earlier look saw the same: of a loop that works somebody may give up after a while."""
    earlier = (look.same_process(loop.process) for look in view.before)
    return any(process is not None and all(task in process.tasks for task in circle) for process in earlier)


def _is_lock(task: PythonTask) -> bool:
    """Whether it asks for what one task alone can have."""
    return bool(task.wants) and any(_LOCK.match(inner.function or "") for inner in task.frames[:1])


def _wakes_itself(loop: Party) -> bool:
    """Whether nothing but its own threads can wake it."""
    ends = [one.processes for one in loop.process.peers if one.thread == loop.lwp]
    return any(not isinstance(pids, Missing) and set(pids) == {loop.process.pid} for pids in ends)


def _victims(view: JobView, loop: Party) -> List[Party]:
    """Other processes that wait for this one."""
    others = (party for party in view.parties if party.index != loop.index)
    return [
        party
        for party in others
        if any(one.thread == party.lwp and _is_end(one.processes, loop.process.pid) for one in party.process.peers)
    ]


def _found(view: JobView, loop: Party, summary: str, confidence: str) -> Candidate:
    victims = _victims(view, loop)
    return Candidate(
        cause="lock-order-deadlock",
        confidence=confidence,
        summary=summary,
        culprits=(loop,),
        victims=tuple(victims),
        evidence=evidence_of([loop], victims),
    )


def _is_end(processes: object, pid: Optional[int]) -> bool:
    return isinstance(processes, tuple) and pid in processes


def _process(view: JobView, loop: Party) -> str:
    own = [party for party in view.parties if party.index == loop.index]
    return who(own) if own else loop.process.label


def _label(task: PythonTask) -> str:
    return f"task {task.name}" if task.name else "a task"


def _place(task: PythonTask) -> str:
    """`Lock.acquire, called from move (cache.py:19)`."""
    inner, caller = task.frames[0], _caller(task)
    said = f"{inner.function}, called from " if caller is not inner else ""
    return f"{said}{place(caller)}"


def _caller(task: PythonTask) -> Frame:
    """Its innermost function outside of asyncio."""
    return next((one for one in task.frames if not _ASYNCIO.search(one.file or "")), task.frames[0])


LOST = (tasks_in_circle, no_task_left, cut_off)
