"""Patterns inside one process: two threads that block each other, a teardown, a fatal signal."""

from __future__ import annotations

import re
from typing import Optional

from gdbext.analysis.candidate import Candidate, evidence_of, shows
from gdbext.analysis.classify import known
from gdbext.analysis.view import COMMUNICATION, JobView, Party, calls_of, matches_any, threads, threads_of, without
from gdbext.analysis.wording import start, verb, where, who
from gdbext.knowledge.frames import python
from gdbext.model.patterns import regex

_EXIT = regex(
    r"(exit|__run_exit_handlers|__cxa_finalize|_dl_fini|Py_FinalizeEx|finalize_modules|atexit\w*)$|\w+::~|.*::~"
)
_LEADER_FIRST = regex(python.LEADER_FIRST)
_LOADS_DATA = regex(r"(__next__|__iter__|_next_data|_get_data|_try_get_data|get_batch\w*|next_batch\w*|prefetch\w*)$")
_DISTRIBUTED = regex(r"(distributed|ddp|fsdp|deepspeed|megatron|horovod|torchrun|launch)", re.IGNORECASE)
_SHARED_MEMORY = regex(r"(shm|SharedMemory|ftruncate|memset|nccl)", re.IGNORECASE)

_DRIVER_STATES = ("D",)
_NVIDIA_WAITS = regex(r"(nv(?!me|dimm|mem)|uvm|os_acquire)")


def teardown(view: JobView) -> Optional[Candidate]:
    """A communicator or a context is being torn down, and that does not end."""
    tearing = [party for party in view.parties if party.group == "teardown"]
    if not tearing:
        return _in_destructor(view)
    others = view.of(*COMMUNICATION, "implicit")
    summary = (
        f"{start(who(tearing))} {verb(tearing, 'tears', 'tear')} down a communicator in {where(tearing[0])} and "
        f"{verb(tearing, 'does', 'do')} not come out. "
        + (
            f"{start(who(others))} still {verb(others, 'waits', 'wait')} in {where(others[0])}."
            if others
            else "It waits for work of that communicator that cannot end."
        )
    )
    inner = any(_blocked_inside(party) for party in tearing)
    confidence = "high" if inner and (others or len(view.parties) > 1) else "medium"
    victims = tuple(others)
    return Candidate(
        "destructor-or-teardown", confidence, 81, summary, tuple(tearing), victims, (), evidence_of(tearing, victims)
    )


def _blocked_inside(party: Party) -> bool:
    """Whether the stack inside the teardown shows a join, a CUDA call or a lock: it is stuck, not about to start."""
    names = [frame.name or "" for frame in known(party.thread.frames if party.thread else ())][
        : party.judged.frame or 0
    ]
    return matches_any(regex(r"(.*join|cu(da)?[A-Z])"), names)


def _in_destructor(view: JobView) -> Optional[Candidate]:
    for party in view.of("implicit", "device"):
        names = calls_of(party, party.judged.frame or 0)
        if matches_any(_EXIT, names) and any(
            name.startswith(("exit", "__run_exit", "_dl_fini", "Py_Finalize")) for name in names
        ):
            summary = (
                f"{start(who([party]))} is exiting and calls {where(party)} from a destructor. "
                "The device still runs work that cannot end, or the driver is already gone."
            )
            return Candidate("destructor-or-teardown", "medium", 83, summary, (party,), (), (), (shows(party),))
    return None


def communicators_in_threads(view: JobView) -> Optional[Candidate]:
    """Threads of one process are in calls of NCCL for different purposes at the same time, blocked in the driver."""
    for process in view.processes:
        inside = [one for one in threads_of(view, process.index) if one.judged.helper is None and _in_nccl(one)]
        purposes = {(one.group, one.judged.collective, one.judged.communicator) for one in inside}
        tearing = any(one.group == "teardown" for one in inside)  # with one other call that is a teardown in flight
        if len(purposes) > 1 + tearing and any(one.group in ("collective", "launch") for one in inside):
            summary = (
                f"{start(who(inside))} are in different NCCL calls at once, for example {where(inside[0])} and "
                f"{where(inside[1])}. "
                "Each can hold what the other needs to launch, and the peers may launch them in another order."
            )
            confidence = (
                "medium" if len({one.judged.communicator for one in inside}) > 1 or len(purposes) > 2 else "low"
            )
            return Candidate(
                "multi-comm-ordering", confidence, 82, summary, tuple(inside), (), (), evidence_of(inside, ())
            )
    return None


def _in_nccl(party: Party) -> bool:
    rule = party.judged.rule or ""
    if party.group in ("collective", "init", "teardown"):
        return rule.startswith(("nccl-", "torch-"))
    return party.group == "launch" and any("nccl" in name.lower() for name in calls_of(party))


def local_barrier(view: JobView) -> Optional[Candidate]:
    """NCCL's barrier of the ranks inside one process: a local rank has not made the call."""
    for party in threads(view):
        if party.judged.rule == "nccl-cpu-barrier":
            summary = (
                f"{start(who([party]))} waits on the CPU until all ranks of its process have made the same call. "
                "A local rank has not made it: no thread drives that GPU."
            )
            return Candidate("missing-rank", "low", 46, summary, (), (party,), (), (shows(party),))
    return None


def leader_first(view: JobView) -> Optional[Candidate]:
    """Ranks wait on purpose until the first one has done some work alone."""
    waiting = [party for party in view.parties if matches_any(_LEADER_FIRST, calls_of(party))]
    if not waiting or len(waiting) < len([party for party in view.parties if party.group != "elsewhere"]):
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {where(waiting[0])} until the first rank has "
        f"finished work that it does alone. "
        "It is late or slow (data preparation longer than the timeout is usual), not blocked by these ranks."
    )
    first = tuple(party for party in without(view.parties, waiting) if party.process.rank == 0)
    absent = tuple(rank for rank in view.snapshot.absent if rank == 0)
    return Candidate("missing-rank", "low", 84, summary, first, tuple(waiting), absent, evidence_of(first, waiting))


def starved(view: JobView) -> Optional[Candidate]:
    """The only process seen belongs to a distributed job and waits for its input data, outside of any collective."""
    if len(view.parties) != 1 or view.parties[0].kind not in ("ipc-queue", "io"):
        return None
    party = view.parties[0]
    files = [frame.file or "" for frame in party.thread.frames] if party.thread is not None else []
    names = calls_of(party)
    if not matches_any(_LOADS_DATA, names) or not any(_DISTRIBUTED.search(text) for text in (*files, *names)):
        return None
    summary = (
        f"{start(who([party]))} waits for input data in {where(party)} and is in no collective. "
        "It is a member of a distributed job, so the others wait for it as soon as they reach the next collective."
    )
    return Candidate("missing-rank", "low", 44, summary, (party,), (), (), (shows(party),))


def kernel_driver(view: JobView) -> Optional[Candidate]:
    """A thread that cannot be interrupted inside the kernel's GPU driver."""
    for party in threads(view):
        thread = party.thread
        if thread is not None and thread.state in _DRIVER_STATES and _NVIDIA_WAITS.match(thread.wchan or ""):
            summary = (
                f"{start(who([party]))} is in state D inside the kernel's GPU driver ({thread.wchan}): it cannot "
                f"even be killed. "
                "The driver or the GPU is stuck; the kernel log has the Xid."
            )
            return Candidate("driver-bug", "medium", 87, summary, (party,), (), (), (shows(party),))
    return None


def bus_error(view: JobView) -> Optional[Candidate]:
    """A thread whose memory is not there."""
    dying = list(threads(view, ("sigbus",)))
    if not dying:
        return None
    dead = {one.index for one in dying}
    victims = [party for party in view.of(*COMMUNICATION, "init") if party.index not in dead]
    shared = any(_SHARED_MEMORY.search(name) for one in dying for name in calls_of(one))
    summary = f"{start(who(dying))} got SIGBUS in {where(dying[0])}: the memory behind a mapping is not there. " + (
        "For NCCL's shared memory that mostly means that /dev/shm was full."
        if shared
        else "A full /dev/shm or a truncated file does that."
    )
    return Candidate(
        "shm-too-small",
        "medium" if shared else "low",
        95,
        summary,
        tuple(dying),
        tuple(victims),
        (),
        evidence_of(dying, victims),
    )


PATTERNS = (
    bus_error,
    kernel_driver,
    teardown,
    communicators_in_threads,
    local_barrier,
    leader_first,
    starved,
)
