"""Patterns inside one process: two threads that block each other, a teardown, a fatal signal."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Iterator, List, Optional, Pattern, Sequence, Tuple

from gdbext.analysis.candidate import Candidate, evidence_of, shows
from gdbext.analysis.classify import known
from gdbext.analysis.view import COMMUNICATION, JobView, Party
from gdbext.analysis.wording import start, verb, where, who
from gdbext.knowledge.frames import owners, python
from gdbext.knowledge.labels import WAIT_GROUPS

_DRIVER = re.compile(owners.CUDA_DRIVER_MODULES)
_LOADER = re.compile(r"_*(GI_)?_*(dl_iterate_phdr|dl_open\w*|dlopen\w*|dl_close\w*|dlclose|dl_fini)$")
_EXIT = re.compile(
    r"(exit|__run_exit_handlers|__cxa_finalize|_dl_fini|Py_FinalizeEx|finalize_modules|atexit\w*)$|\w+::~|.*::~"
)
_LEADER_FIRST = re.compile(python.LEADER_FIRST)
_LOADS_DATA = re.compile(
    r"(__next__|__iter__|_next_data|_get_data|_try_get_data|get_batch\w*|next_batch\w*|prefetch\w*)$"
)
_DISTRIBUTED = re.compile(r"(distributed|ddp|fsdp|deepspeed|megatron|horovod|torchrun|launch)", re.IGNORECASE)
_POOLS = ("openmp-caller",)  # frame rules: waits for a pool of threads, which a forked child does not have
_FORK = re.compile(r"(fork|_launch|__libc_fork|os_fork)$")
_SHARED_MEMORY = re.compile(r"(shm|SharedMemory|ftruncate|memset|nccl)", re.IGNORECASE)
_CUPTI = re.compile(r"(cupti\w+|_nv\d+cupti)")

_DRIVER_STATES = ("D",)
_WATCHDOG = "NCCL watchdog"  # of torch: the name its frames and its thread have in knowledge/
_NVIDIA_WAITS = re.compile(r"(nv(?!me|dimm|mem)|uvm|os_acquire)")


def _threads(view: JobView, kinds: Sequence[str] = ()) -> Iterator[Party]:
    """Every thread of every process as a party of its own; only those of these kinds if given."""
    for process, judged in zip(view.snapshot.processes, view.processes):
        for thread, one in zip(process.threads, judged.threads):
            if not kinds or one.kind in kinds:
                yield Party(process, thread, one, WAIT_GROUPS[one.kind], is_thread=True)


def _names(party: Party, outside: int = -1) -> List[str]:
    """Names of the party's frames further out than frame `outside`, innermost first."""
    if party.thread is None:
        return []
    return [frame.function or "" for frame in party.thread.frames[outside + 1 :]]


def _any(pattern: Pattern[str], names: Iterable[str]) -> bool:
    return any(pattern.match(name) for name in names)


def gil_deadlock(view: JobView) -> Optional[Candidate]:
    """A thread wants the GIL while holding something that the GIL's owner waits for."""
    for waiter in _threads(view, ("gil",)):
        outside = _names(waiter, waiter.judged.frame or 0)
        loader, driver = _any(_LOADER, outside), _under_driver(waiter)
        for owner in _owners(view, waiter):
            wants_loader = owner.kind == "mutex" and _any(_LOADER, _names(owner))
            same_lock = loader and wants_loader
            proven = owner.thread is not None and owner.thread.gil is True
            if (
                same_lock
                or (driver and owner.group in ("implicit", "lock", *COMMUNICATION))
                or (proven and owner.group == "lock")
            ):
                return _gil(waiter, owner, "high" if same_lock or (driver and proven) else "medium")
            if proven and waiter.judged.helper == _WATCHDOG and owner.group in ("implicit", "teardown", *COMMUNICATION):
                return _gil(waiter, owner, "low")
        if driver:
            return _gil(waiter, None, "low")
    return None


def _owners(view: JobView, waiter: Party) -> Iterator[Party]:
    """Threads of the waiter's process that may own the GIL: the known one, else those blocked in native code."""
    others = [one for one in _threads_of(view, waiter.index) if one.judged.id != waiter.judged.id and one.kind != "gil"]
    certain = [one for one in others if one.thread is not None and one.thread.gil]
    for one in certain or others:
        if one.judged.helper is None and one.group in ("lock", "implicit", *COMMUNICATION, "teardown"):
            yield one


def _threads_of(view: JobView, index: int) -> Iterator[Party]:
    process, judged = view.snapshot.processes[index], view.processes[index]
    for thread, one in zip(process.threads, judged.threads):
        yield Party(process, thread, one, WAIT_GROUPS[one.kind], is_thread=True)


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
    for party in _threads(view, ("mutex",)):
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
        locked = [one for one in _threads_of(view, process.index) if one.kind == "mutex" and one.judged.helper is None]
        if len(locked) > 1 and process.wait.kind == "mutex" and not any(_any(_CUPTI, _names(one)) for one in locked):
            summary = (
                f"{start(who(locked))} wait for locks, and no thread of the process works. "
                f"If one of them holds what another wants, in {where(locked[0])} and {where(locked[1])}, neither "
                f"goes on."
            )
            return Candidate(
                "lock-order-deadlock", "low", 42, summary, tuple(locked[:2]), (), (), evidence_of(locked[:2], ())
            )
    return None


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
    return _any(re.compile(r"(.*join|cu(da)?[A-Z])"), names)


def _in_destructor(view: JobView) -> Optional[Candidate]:
    for party in view.of("implicit", "device"):
        names = _names(party, party.judged.frame or 0)
        if _any(_EXIT, names) and any(
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
        inside = [one for one in _threads_of(view, process.index) if one.judged.helper is None and _in_nccl(one)]
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
    return party.group == "launch" and any("nccl" in name.lower() for name in _names(party))


def local_barrier(view: JobView) -> Optional[Candidate]:
    """NCCL's barrier of the ranks inside one process: a local rank has not made the call."""
    for party in _threads(view):
        if party.judged.rule == "nccl-cpu-barrier":
            summary = (
                f"{start(who([party]))} waits on the CPU until all ranks of its process have made the same call. "
                "A local rank has not made it: no thread drives that GPU."
            )
            return Candidate("missing-rank", "low", 46, summary, (), (party,), (), (shows(party),))
    return None


def leader_first(view: JobView) -> Optional[Candidate]:
    """Ranks wait on purpose until the first one has done some work alone."""
    waiting = [party for party in view.parties if _any(_LEADER_FIRST, _names(party))]
    if not waiting or len(waiting) < len([party for party in view.parties if party.group != "elsewhere"]):
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {where(waiting[0])} until the first rank has "
        f"finished work that it does alone. "
        "It is late or slow (data preparation longer than the timeout is usual), not blocked by these ranks."
    )
    first = tuple(party for party in view.parties if party.process.rank == 0 and party not in waiting)
    absent = tuple(rank for rank in view.snapshot.absent if rank == 0)
    return Candidate("missing-rank", "low", 84, summary, first, tuple(waiting), absent, evidence_of(first, waiting))


def starved(view: JobView) -> Optional[Candidate]:
    """The only process seen belongs to a distributed job and waits for its input data, outside of any collective."""
    if len(view.parties) != 1 or view.parties[0].kind not in ("ipc-queue", "io"):
        return None
    party = view.parties[0]
    files = [frame.file or "" for frame in party.thread.frames] if party.thread is not None else []
    names = _names(party)
    if not _any(_LOADS_DATA, names) or not any(_DISTRIBUTED.search(text) for text in (*files, *names)):
        return None
    summary = (
        f"{start(who([party]))} waits for input data in {where(party)} and is in no collective. "
        "It is a member of a distributed job, so the others wait for it as soon as they reach the next collective."
    )
    return Candidate("missing-rank", "low", 44, summary, (party,), (), (), (shows(party),))


def profiler_lock(view: JobView) -> Optional[Candidate]:
    """Threads of the profiler and of the driver wait for each other's locks."""
    inside = [party for party in _threads(view, ("mutex",)) if _any(_CUPTI, _names(party))]
    if not inside:
        return None
    summary = (
        f"{start(who(inside))} {verb(inside, 'waits', 'wait')} for a lock between the profiler (CUPTI) and the driver. "
        "Such deadlocks were fixed by newer drivers or a CUPTI that fits the driver."
    )
    return Candidate("driver-bug", "low", 43, summary, tuple(inside), (), (), evidence_of(inside, ()))


def kernel_driver(view: JobView) -> Optional[Candidate]:
    """A thread that cannot be interrupted inside the kernel's GPU driver."""
    for party in _threads(view):
        thread = party.thread
        if thread is not None and thread.state in _DRIVER_STATES and _NVIDIA_WAITS.match(thread.wchan or ""):
            summary = (
                f"{start(who([party]))} is in state D inside the kernel's GPU driver ({thread.wchan}): it cannot "
                f"even be killed. "
                "The driver or the GPU is stuck; the kernel log has the Xid."
            )
            return Candidate("driver-bug", "medium", 87, summary, (party,), (), (), (shows(party),))
    return None


def fatal(view: JobView) -> Optional[Candidate]:
    """A bus error, or an error of CUDA that is being thrown."""
    for kind, judge in _FATAL:
        dying = list(_threads(view, (kind,)))
        if dying:
            dead = {one.index for one in dying}
            return judge(dying, [party for party in view.of(*COMMUNICATION, "init") if party.index not in dead])
    return None


def _bus_error(dying: List[Party], victims: List[Party]) -> Candidate:
    shared = any(_SHARED_MEMORY.search(name) for one in dying for name in _names(one))
    summary = f"{start(who(dying))} got SIGBUS in {where(dying[0])}: the memory behind a mapping is not there. " + (
        "For NCCL's shared memory that means /dev/shm is full."
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


def _gpu_error(dying: List[Party], victims: List[Party]) -> Candidate:
    summary = (
        f"{start(who(dying))} is throwing because a CUDA call failed, in {where(dying[0])}. "
        "What the others wait for cannot complete; the error's text and the kernel log (Xid) say which fault it was."
    )
    return Candidate(
        "gpu-fault",
        "medium" if victims else "low",
        92,
        summary,
        tuple(dying),
        tuple(victims),
        (),
        evidence_of(dying, victims),
    )


_FATAL: Tuple[Tuple[str, Callable[[List[Party], List[Party]], Candidate]], ...] = (
    ("sigbus", _bus_error),
    ("cuda-error-throw", _gpu_error),
)


def forked_child(view: JobView) -> Optional[Candidate]:
    """A child that was forked, has one thread, and waits for a lock that its parent's thread held."""
    waiting = [party for party in view.parties if party.group in ("lock", "implicit") or party.judged.rule in _POOLS]
    for party in waiting:
        names = _names(party)
        if len(party.process.threads) <= 2 and _any(_FORK, names) and party.kind != "gil":
            summary = (
                f"{start(who([party]))} is a forked child and waits in {where(party)}. "
                "A lock, a pool of threads or a CUDA context that its parent had at the moment of the fork does not "
                "work in the child."
            )
            return Candidate("fork-after-cuda", "low", 71, summary, (party,), (), (), (shows(party),))
    return None


PATTERNS = (
    fatal,
    kernel_driver,
    gil_deadlock,
    lock_inside_driver,
    loader_lock,
    teardown,
    communicators_in_threads,
    local_barrier,
    leader_first,
    starved,
    profiler_lock,
    forked_child,
)
