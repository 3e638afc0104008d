"""Patterns of locks inside one process by the names of frames: the GIL, the driver's lock, the loader's, a fork."""

from __future__ import annotations

from typing import Iterator, Optional

from gdbext.analysis.candidate import Candidate, evidence_of, shows
from gdbext.analysis.classify import known
from gdbext.analysis.view import COMMUNICATION, WATCHDOG, JobView, Party, calls_of, matches_any, threads, threads_of
from gdbext.analysis.wording import start, verb, where, who
from gdbext.knowledge.frames import owners
from gdbext.model.patterns import regex

_DRIVER = regex(owners.CUDA_DRIVER_MODULES)
_LOADER = regex(r"_*(GI_)?_*(dl_iterate_phdr|dl_open\w*|dlopen\w*|dl_close\w*|dlclose|dl_fini)$")
_POOLS = ("openmp-caller",)  # frame rules: waits for a pool of threads, which a forked child does not have
_FORK = regex(r"(fork|_launch|__libc_fork|os_fork)$")
_CUPTI = regex(r"(cupti\w+|_nv\d+cupti)")


def gil_deadlock(view: JobView) -> Optional[Candidate]:
    """A thread wants the GIL while holding something that the GIL's owner waits for."""
    for waiter in threads(view, ("gil",)):
        outside = calls_of(waiter, waiter.judged.frame or 0)
        loader, driver = matches_any(_LOADER, outside), _under_driver(waiter)
        for owner in _owners(view, waiter):
            wants_loader = owner.kind == "mutex" and matches_any(_LOADER, calls_of(owner))
            same_lock = loader and wants_loader
            proven = owner.thread is not None and owner.thread.gil is True
            if (
                same_lock
                or (driver and owner.group in ("implicit", "lock", *COMMUNICATION))
                or (proven and owner.group == "lock")
            ):
                return _gil(waiter, owner, "high" if same_lock or (driver and proven) else "medium")
            if proven and waiter.judged.helper == WATCHDOG and owner.group in ("implicit", "teardown", *COMMUNICATION):
                return _gil(waiter, owner, "low")
        if driver:
            return _gil(waiter, None, "low")
    return None


def _owners(view: JobView, waiter: Party) -> Iterator[Party]:
    """Threads of the waiter's process that may own the GIL: the known one, else those blocked in native code."""
    others = [one for one in threads_of(view, waiter.index) if one.judged.id != waiter.judged.id and one.kind != "gil"]
    certain = [one for one in others if one.thread is not None and one.thread.gil]
    for one in certain or others:
        if one.judged.helper is None and one.group in ("lock", "implicit", *COMMUNICATION, "teardown"):
            yield one


def _gil(waiter: Party, owner: Optional[Party], confidence: str) -> Candidate:
    reason = f"{start(who([waiter]))} waits for the GIL inside {where(waiter)}, holding what it entered before. "
    if owner is not None:
        reason += f"{start(who([owner]))} is in {where(owner)} and does not give the GIL back before it gets that."
    else:
        reason += (
            "It runs as a callback of the driver, whose lock it keeps; the GIL's owner most likely waits for that lock."
        )
    parties = (waiter,) if owner is None else (waiter, owner)
    strength = {"high": 90, "medium": 72, "low": 40}[confidence]
    return Candidate(
        "gil-deadlock",
        confidence,
        strength,
        reason,
        parties[-1:],
        parties[:1],
        (),
        tuple(shows(one) for one in parties),
    )


def _under_driver(party: Party) -> bool:
    """Whether the wait stands in code that the CUDA driver called: a callback, or a hook of its allocations."""
    if party.thread is None or party.judged.frame is None:
        return False
    stack = known(party.thread.frames)
    inside = True
    for frame in stack[party.judged.frame + 1 :]:
        if _DRIVER.match(frame.library):
            return not inside
        inside = inside and (frame.system or frame.name is None)
    return False


def lock_inside_driver(view: JobView) -> Optional[Candidate]:
    """A hook or callback that runs inside the driver waits for a lock of another library."""
    for party in threads(view, ("mutex",)):
        if _under_driver(party):
            summary = (
                f"{start(who([party]))} waits for a lock in {where(party)}, in a hook that the CUDA driver called "
                f"with its own lock held. "
                "A thread that holds that lock and calls CUDA waits for this one."
            )
            return Candidate("lock-order-deadlock", "medium", 58, summary, (party,), (), (), (shows(party),))
    return None


def loader_lock(view: JobView) -> Optional[Candidate]:
    """Nothing but threads that wait for locks: the decisive one and another one, in one process."""
    for process in view.processes:
        locked = [one for one in threads_of(view, process.index) if one.kind == "mutex" and one.judged.helper is None]
        profiled = any(matches_any(_CUPTI, calls_of(one)) for one in locked)
        if len(locked) > 1 and process.wait.kind == "mutex" and not profiled:
            summary = (
                f"{start(who(locked))} wait for locks, and no thread of the process works. "
                f"If one of them holds what another wants, in {where(locked[0])} and {where(locked[1])}, neither "
                f"goes on."
            )
            return Candidate(
                "lock-order-deadlock", "low", 42, summary, tuple(locked[:2]), (), (), evidence_of(locked[:2], ())
            )
    return None


def profiler_lock(view: JobView) -> Optional[Candidate]:
    """Threads of the profiler and of the driver wait for each other's locks."""
    inside = [party for party in threads(view, ("mutex",)) if matches_any(_CUPTI, calls_of(party))]
    if not inside:
        return None
    summary = (
        f"{start(who(inside))} {verb(inside, 'waits', 'wait')} for a lock between the profiler (CUPTI) and the driver. "
        "Such deadlocks were fixed by newer drivers or a CUPTI that fits the driver."
    )
    return Candidate("driver-bug", "low", 43, summary, tuple(inside), (), (), evidence_of(inside, ()))


def forked_child(view: JobView) -> Optional[Candidate]:
    """A child that was forked, has one thread, and waits for a lock that its parent's thread held."""
    waiting = [party for party in view.parties if party.group in ("lock", "implicit") or party.judged.rule in _POOLS]
    for party in waiting:
        names = calls_of(party)
        if len(party.process.threads) <= 2 and matches_any(_FORK, names) and party.kind != "gil":
            summary = (
                f"{start(who([party]))} is a forked child and waits in {where(party)}. "
                "A lock, a pool of threads or a CUDA context that its parent had at the moment of the fork does not "
                "work in the child."
            )
            return Candidate("fork-after-cuda", "low", 71, summary, (party,), (), (), (shows(party),))
    return None


PATTERNS = (gil_deadlock, lock_inside_driver, loader_lock, profiler_lock, forked_child)
