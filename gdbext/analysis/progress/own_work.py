"""Programs that wait for nobody but themselves: for threads and children that work, for requests from outside.

Where no rank waits for another one, the processes that were read are all there is. A main thread that waits for its
threads, a pool's parent, a server: nothing hangs while somebody of them works, or while all of them wait for requests.
Whoever waits without a timeout and was woken between two copies has got what it waited for.
"""

from __future__ import annotations

from typing import List, Optional

from gdbext.analysis.progress.begun import begun, wants_lock
from gdbext.analysis.progress.named_waits import (
    naps_for_lock,
    naps_for_others,
    runs_until_done,
    stops_something,
    waits_once,
    watches,
)
from gdbext.analysis.progress.own_hangs.loop_tasks import naps_in_loop, place_of_naps, requests_of
from gdbext.analysis.progress.pool_tasks import FED_KINDS, waits_for_result
from gdbext.analysis.progress.running import has_changed, in_own_code, is_alive, own_locks, was_woken
from gdbext.analysis.progress.slow import busy_child, moves_much
from gdbext.analysis.progress.waits_for_ranks import may_progress
from gdbext.analysis.stacks.decisive import exits
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    is_unaccepted,
    other_ends,
    threads_of,
    waits_for_itself,
)
from gdbext.knowledge.causes.slow import CHILD_CPU, LOOPS_CPU, NO_RATE
from gdbext.knowledge.frames.python.python_helpers import EVENT_LOOP, SERVER_THREAD
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.untimed_calls import BY_THREADS, CHILD_WAITS, LOADER_WAITS, RUNS_COMMAND, YIELD
from gdbext.knowledge.spinning import LONG_SLEEP, MOMENT, MOST_OF_A_MOMENT, SPINNING_AFTER
from gdbext.model.codes import Code, Given
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import LISTENING, Peer
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex

_YIELDS = regex(YIELD)
_SERVER_THREAD = tuple(map(regex, SERVER_THREAD))
_JOIN, _TIMED = "os-join", regex(r"wait_(for|until)|timedjoin")


def is_yielding(one: Party) -> bool:
    """Yields its processor in both copies, or sleeps for moments: it polls memory, and its CPU time is no work."""
    innermost = one.thread.calls[:1] if one.thread is not None and not one.thread.left else ()
    if innermost and sleeps_for_a_moment(one):
        return True
    return any(_YIELDS.match(frame.function or "") for frame in innermost)


def sleeps_for_a_moment(one: Party) -> bool:
    """Whether it sleeps that briefly again and again; one look alone may catch the end of a longer sleep."""
    activity, thread = one.process.activity, one.thread
    if activity is None or activity.own_bytes or thread is None or thread.sleeps is None or thread.sleeps > MOMENT:
        return False
    return (thread.switches or 0) * MOST_OF_A_MOMENT >= activity.seconds


def only_naps(party: Party) -> bool:
    """Whether all that its process was seen to do is to sleep for a while again and again: what it looks for in between
    may never come."""
    activity, thread = party.process.activity, party.thread
    if party.judged.rule not in OWN_SLEEPS or activity is None or thread is None or (thread.cpu or 0.0) >= NO_RATE:
        return False
    if activity.read_bytes or activity.written_bytes or busy_child(party) is not None:
        return False
    return not any(one.switches for one in party.process.threads if one is not thread)  # a helper may serve others


def is_serving(view: JobView, party: Party) -> bool:
    """Waits for requests, or for a thread of its own that does, and has no task that waits inside."""
    if begun(view, party) or place_of_naps(party):
        return False
    if party.judged.idle or listens(view, party):
        return not waits_for_child(view, party)
    return is_fed(view, party)


def is_fed(view: JobView, party: Party) -> bool:
    """Whether it waits for a thread of its own that waits for requests, or sleeps for so long that it has left
    everything to such a thread of a library."""
    if party.judged.rule in OWN_SLEEPS and party.thread is not None and (party.thread.sleeps or 0.0) >= LONG_SLEEP:
        others = (one for one in threads_of(view, party.index) if one.thread is not party.thread)
        return any(one.is_inside(*_SERVER_THREAD) for one in others)
    fed = party.kind in FED_KINDS and not stops_something(party)
    own = threads_of(view, party.index, lambda one: one.helper is None) if fed else ()
    at_rest = {one.thread for one in party.process.peers if is_at_rest(view, one)}
    return any(one.judged.idle or one.lwp in at_rest for one in own)


def waits_for_child(view: JobView, party: Party) -> bool:
    """Whether another thread waits for the end of a child, and no child works: it may wait for the idle one."""
    if busy_child(party) is not None:
        return False
    return any(one.judged.rule in CHILD_WAITS for one in threads_of(view, party.index, lambda one: one.helper is None))


def listens(view: JobView, party: Party) -> bool:
    """Whether it accepts connections, or reads from one on which no answer is due: itself, or a thread of the library
    that it waits in."""
    helper = BY_THREADS.get(party.judged.rule or "")
    own = {one.lwp for one in threads_of(view, party.index, lambda one: one.helper == helper)} if helper else set()
    peers = [one for one in party.process.peers if one.thread in {party.lwp, *own}]
    anybody = (isinstance(one.processes, Missing) and one.processes.code == Code.ANYBODY for one in peers)
    return any(anybody) or any(is_at_rest(view, one) for one in peers)


def listens_to_network(process: RankSnapshot) -> bool:
    """Whether a thread of it waits for clients over TCP."""
    return any(peer.file.startswith("tcp") and LISTENING in peer.file for peer in process.peers)


def goes_on_alone(starter: Party, child: Party) -> bool:
    """Whether a program that waits for its children at its end has one that the network can reach: a server."""
    leaves = starter.thread is not None and exits(starter.thread) and not stops_something(starter)
    return leaves and listens_to_network(child.process)


def is_at_rest(view: JobView, peer: Peer) -> bool:
    """Whether both ends read from a connection, and no answer is due on it."""
    pids = () if isinstance(peer.processes, Missing) else peer.processes
    others = (one.peers for one in view.snapshot.processes if one.pid in pids)
    return peer.unowed and any(one.unowed and one.file == peer.back for some in (*others, peer.then) for one in some)


def is_independent_job(view: JobView) -> bool:
    """Whether two copies of all there is were read, and nobody waits for other ranks."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.unseen or view.gone or view.snapshot.absent:
        return False
    return not view.threads_as_ranks and all(party.group in ("elsewhere", "idle", "lock") for party in view.parties)


def looked_long(view: JobView) -> bool:
    """Whether looks followed the job for as long as an endless loop takes to be called one."""
    seconds = seconds_looked(view)
    return bool(view.before) if seconds is None else seconds >= view.spinning_after


def seconds_looked(view: JobView) -> Optional[float]:
    """From the first look to the end of the last one; None where there is only one, or its time is not known."""
    then = view.before[0].snapshot.taken_at if view.before else None
    now = view.snapshot.taken_at
    return None if then is None or now is None else now + (view.snapshot.apart or 0.0) - then


def naps_with_gil(view: JobView, one: Party) -> bool:
    """Whether it sleeps for moments, or gives its processor away, while it has the GIL that another thread wants."""
    if one.thread is None or one.thread.gil is not True or not (one.thread.sleeps is not None or is_yielding(one)):
        return False
    return any(other.kind == "gil" for other in threads_of(view, one.index))


def checks_beside_failed_child(party: Party) -> bool:
    """Whether all that it does is to look again and again, by naps or by its function's name, and a child of it was
    killed or has failed: perhaps for what that one was to do."""
    activity = party.process.activity
    if activity is None:
        return False
    if party.judged.rule in OWN_SLEEPS:
        return bool(activity.killed)
    return runs_until_done(party) and bool(activity.failed)


def is_working(view: JobView, party: Party) -> bool:
    if party.group == "idle" and (party.takes_orders or party.polls):  # the loop in which it waits for orders polls
        return False
    if checks_beside_failed_child(party) or any(naps_with_gil(view, one) for one in threads_of(view, party.index)):
        return False
    if not is_yielding(party) and (
        may_progress(party)
        or (party.thread is not None and was_woken(party.thread))
        or (in_own_code(party) and is_alive(party) and not _naps_alone(view, party))
    ):
        return True
    if party.judged.rule in CHILD_WAITS and party.process.activity is not None:
        return busy_child(party) is not None
    if party.judged.rule in LOADER_WAITS and busy_child(party) is not None:
        return True
    if _has_joined(party) or _worked_between_tries(party) or _runs_commands(view, party):
        return True
    accepted = waits_for_itself(party) and not is_unaccepted(party)  # another thread may answer
    if accepted and any(is_active(one) for one in threads_of(view, party.index)):
        return True
    if waits_for_result(party) and any(map(is_active, threads_of(view, party.index))):
        return True
    joined = joined_threads(view, party)
    if any(map(is_yielding, joined)):  # for what any of the others may give
        joined = threads_of(view, party.index)
    if any(is_active(one) or _got_lock(one) for one in joined):
        return True
    if party.kind not in FED_KINDS or wants_lock(party):
        return False
    fed = _is_fed_by_one(view, party) or _loops_work(view, party)
    side = [one for one in side_threads(view, party) if is_active(one)]
    if waits_once(party):  # what wakes up again and again there may be a heartbeat
        side = [one for one in side if one.thread is not None and not was_woken(one.thread)]
    return fed or bool(side)


def _loops_work(view: JobView, party: Party) -> bool:
    """Whether its event loops, in threads beside it, use a good part of a core: they run functions of the program."""
    loops = threads_of(view, party.index, lambda one: one.helper == EVENT_LOOP)
    return sum(one.thread.cpu or 0.0 for one in loops if one.thread is not None) >= LOOPS_CPU


def _is_fed_by_one(view: JobView, party: Party) -> bool:
    """Whether only one other thread can end its wait, and that one goes on: its local variables change from look to
    look."""
    others = threads_of(view, party.index, lambda one: one.helper is None)
    others = [one for one in others if one.thread is not party.thread]
    return len(others) == 1 and has_changed(view, others[0]) and not watches(others[0])


def _naps_alone(view: JobView, party: Party) -> bool:
    """Whether it looks again and again for a lock that nobody else can let go, or whether something has ended or a
    file's lock is free, and neither a thread nor a child of it works; one that only naps as well may feed what it waits
    for."""
    if naps_for_lock(party) or naps_in_loop(view, party):
        return True
    if not naps_for_others(party) or busy_child(party) is not None:
        return False
    return not any(is_active(one) for one in threads_of(view, party.index) if one.thread is not party.thread)


def _got_lock(one: Party) -> bool:
    """Whether the call in which it waited for a lock was over in the second copy: it had the lock in between."""
    left = one.thread.left or 0 if one.thread is not None else 0
    return one.kind == "mutex" and left > (one.judged.frame or 0)


def _has_joined(party: Party) -> bool:
    """Whether the call in which it waited for the end of a thread, without a timeout, was over in the second copy."""
    left = party.thread.left or 0 if party.thread is not None else 0
    ended = party.judged.rule == _JOIN and left > (party.judged.frame or 0)
    return ended and not any(_TIMED.search(name) for name in calls_of(party))


def _runs_commands(view: JobView, party: Party) -> bool:
    """Whether a thread of it runs one command after the other: the one that it waited for at first is over."""
    activity = party.process.activity
    own = threads_of(view, party.index) if activity is not None and activity.replaced else ()
    return any(one.judged.rule == RUNS_COMMAND for one in own)


def _worked_between_tries(party: Party) -> bool:
    """Whether it asks for a lock again and again, and used more of a processor than that takes: it had the lock."""
    thread = party.thread
    naps = thread is not None and thread.sleeps is not None and thread.sleeps <= SPINNING_AFTER
    return naps and party.kind in ("mutex", "io") and thread is not None and (thread.cpu or 0.0) >= CHILD_CPU


def joined_threads(view: JobView, party: Party) -> List[Party]:
    """The thread whose end it waits for, or that has the lock that it waits for, as memory shows it."""
    ends = {wait.owner for wait in own_locks(party)}
    return [one for one in threads_of(view, party.index) if one.lwp in ends] if ends else []


def waits_inside(view: JobView, party: Party) -> bool:
    """Whether somebody of the same program may end its wait."""
    if is_serving(view, party) or party.kind in ("ipc-queue", "condvar-idle") or party.judged.rule in CHILD_WAITS:
        return True
    if requests_of(party):
        return True
    others = {process.pid for process in view.snapshot.processes} - {party.process.pid}
    return any(not others.isdisjoint(pids) for pids in other_ends(party))


def has_code(party: Party, code: Code) -> bool:
    """Whether its thread waits for a file of which that is said in the place of its other end."""
    peers = (one.processes for one in party.process.peers if one.thread == party.lwp)
    return any(isinstance(one, Missing) and one.code == code for one in peers)


def side_threads(view: JobView, party: Party) -> List[Party]:
    """Other threads of its process that run code of Python."""
    return [
        one
        for one in threads_of(view, party.index)
        if one.thread is not party.thread
        and one.thread is not None
        and any(frame.language == "python" for frame in one.thread.calls)
    ]


def is_active(one: Party) -> bool:
    """Computes, or waits without a timeout and was woken."""
    if one.judged.helper is not None or one.thread is None or is_yielding(one) or spins_for_lock(one):
        return False
    # Beside a load it may get less of a processor.
    runs = one.kind == "native-compute" and one.thread.state == "R" and bool(one.thread.switches)
    return runs or (one.thread.cpu or 0.0) >= CHILD_CPU or was_woken(one.thread)


def spins_for_lock(one: Party) -> bool:
    """Whether it runs, in a function that takes a lock, and its stack did not change between the copies of a look."""
    still = one.thread.still if one.thread is not None else None
    return one.kind == "mutex" and still is not None and still <= (one.judged.frame or 0)


def works_within(view: JobView, party: Party) -> bool:
    """Whether a child or any thread of its process works, or reads or writes much."""
    if party.polls:
        return False
    if party.process.activity is not None and moves_much(party.process.activity):
        return True
    own = threads_of(view, party.index)
    return busy_child(party) is not None or any(map(_computes, own))


def may_be_fed(view: JobView, party: Party) -> bool:
    """Whether what it waits for may come from a child or thread of its own that wakes up: one may load something
    slowly."""
    activity = party.process.activity
    if waits_for_own_process(party):
        return activity is None or bool(activity.napping)
    side = (one for one in threads_of(view, party.index) if one.lwp != party.lwp and one.judged.helper is None)
    return party.kind in FED_KINDS and any(one.thread is not None and bool(one.thread.switches) for one in side)


def waits_for_own_process(party: Party) -> bool:
    return party.judged.rule in (*CHILD_WAITS, *LOADER_WAITS)


def _computes(one: Party) -> bool:
    """A library's thread that polls may be caught running, and so may one that wakes up for a moment."""
    thread = one.thread
    if thread is None:
        return False
    if one.judged.helper is None and thread.state == "R" and thread.switches:
        return thread.cpu is None or thread.cpu >= NO_RATE
    return (thread.cpu or 0.0) >= CHILD_CPU
