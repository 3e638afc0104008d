"""Others stand still for what we do now: no signal, no garbage collection and no other program comes in between."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from typing import Callable, Dict, Iterator, List, Tuple

from gdbext.model.errors import GdbextError

_NOW_AND_THEN = 0.1  # seconds

# What could end or stop us while we hold somebody. They wait until the targets are free.
_HELD_BACK = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGTTIN", "SIGTTOU")


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """While others stand still for us we neither collect garbage nor wait for a processor (if we have CAP_SYS_NICE).

    All our threads: the one that waits for us wakes up now and then, and if it then waited for a processor with the
    lock of the interpreter in its hands, so would we."""
    collecting, before = gc.isenabled(), _own_threads()
    gc.disable()
    try:
        for tid in before:
            _schedule(tid, os.SCHED_FIFO, os.sched_param(1))
        yield
    finally:
        for tid, (policy, priority) in before.items():
            _schedule(tid, policy, priority)
        if collecting:
            gc.enable()


def _own_threads() -> Dict[int, Tuple[int, os.sched_param]]:
    """How each of our threads is scheduled."""
    try:
        tids = [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:  # no more files for us
        tids = [0]  # this one
    found = {}
    for tid in tids:
        with contextlib.suppress(OSError):  # it has just ended
            found[tid] = os.sched_getscheduler(tid), os.sched_getparam(tid)
    return found


def _schedule(tid: int, policy: int, priority: os.sched_param) -> None:
    try:
        os.sched_setscheduler(tid, policy, priority)
    except OSError:
        pass  # not permitted: the stop may take longer on a busy machine


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """What could end us waits until the end of the block; processes and threads that begin in it inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in _HELD_BACK})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_own_thread(work: Callable[[], None], meanwhile: Callable[[], None]) -> None:
    """Run `work` in an OS thread of its own and wait for it; signals that would end us wait, too. `meanwhile` is called
    now and then until it ends.

    When that thread ends the kernel lets go of everything that it still traces: threads in the kernel that never
    stopped (state D) cannot be released in another way, and nothing can be forgotten.
    """
    failure: List[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  handed to the caller below
            failure.append(error)

    with signals_wait():
        try:
            worker = threading.Thread(target=guarded, name="gdbext-stop")
            worker.start()
            while worker.is_alive():
                worker.join(_NOW_AND_THEN)
                meanwhile()
        except RuntimeError as error:
            raise GdbextError(f"no thread could be started to do the work ({error})") from None
    if failure:
        raise failure[0]
