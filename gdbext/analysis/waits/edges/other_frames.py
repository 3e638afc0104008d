"""What frames of a thread besides the one that decides give away: whose lock it holds, who called it, what it is at."""

from __future__ import annotations

import re
from typing import Iterator, Optional

from gdbext.analysis.progress.begun import wants_lock
from gdbext.analysis.progress.named_waits import naps_for_lock
from gdbext.analysis.progress.own_work import is_yielding, looked_long
from gdbext.analysis.progress.pool_tasks import inside_task, waits_for_result
from gdbext.analysis.progress.running import ended_by_handlers, handler_of, has_acted, own_locks
from gdbext.analysis.progress.waits_for_ranks import waits_for_absent_pool
from gdbext.analysis.stacks.thread_kind import known_frames
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, calls_of, matches_any, threads_of
from gdbext.knowledge.causes.held_by_frames import EXITS
from gdbext.knowledge.frames.python import interpreter as python
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.glibc_locks import BY_HANDLER, NO_OWNER
from gdbext.knowledge.runtimes.system_calls import FUTEX
from gdbext.model.codes import Given
from gdbext.model.text.patterns import regex

_DRIVER = regex(code_owners.CUDA_DRIVER_MODULES)
_LOADER = regex(r"_*(GI_)?_*(dl_iterate_phdr|dl_open\w*|dlopen\w*|dl_close\w*|dlclose|dl_fini)$")
_POOLS = ("openmp-caller", "rayon-caller")
"""Frame rules of waits for a pool of threads, which a forked child does not have."""
_IN_MEMORY = ("futex", *(kind for kind in NO_OWNER if not BY_HANDLER.get(kind)))
"""Kinds of waits for a change of memory, without those that a signal's handler may end."""
_FORK = regex(r"(_*(?:libc_|os_)?fork(?:_me|_child|_worker|_process)?|_launch)$")
_DESTROYS = regex(r"_*(GI_+)?pthread_cond_destroy$")
_CUPTI = regex(r"(cupti\w+|_nv\d+cupti)")
_EXIT = regex(EXITS)
_ENDS_IN = regex(r"(.*join|cu(da)?[A-Z])")
_LEADER_FIRST = regex(python.LEADER_FIRST)
_LOADS_DATA = regex(r"(__next__|__iter__|_next_data|_get_data|_try_get_data|get_batch\w*|next_batch\w*|prefetch\w*)$")
_DISTRIBUTED = regex(r"(distributed|ddp|fsdp|deepspeed|megatron|horovod|torchrun|launch)", re.IGNORECASE)
_OF_TORCH = regex(r"torch/distributed/")
_PEER_MEMORY = regex(
    r"(cu(da)?IpcOpenMemHandle|cudaDeviceEnablePeerAccess|cuCtxEnablePeerAccess|cuMemImportFromShareableHandle|cuMemSetAccess)"
)
_NOT_NCCL = ("gloo", "store-wait")
"""Waits in torch that need no other thread of the process to launch anything."""
_ON_NETWORK = ("bootstrap", "ncclSocketAccept", "socketPoll")


def wants_loader(party: Party) -> bool:
    """Whether it waits for a lock inside the dynamic loader."""
    return party.kind == "mutex" and matches_any(_LOADER, calls_of(party))


def called_by_loader(party: Party) -> bool:
    """Whether it waits in a hook that the dynamic loader called with its lock held."""
    return matches_any(_LOADER, calls_of(party, party.judged.frame or 0))


def under_driver(party: Party) -> bool:
    """Whether the wait stands in code that the CUDA driver called: a callback, or a hook of its allocations."""
    if party.thread is None or party.judged.frame is None:
        return False
    stack = known_frames(party.thread.calls)
    inside = True
    for frame in stack[party.judged.frame + 1 :]:
        if _DRIVER.match(frame.library):
            return not inside
        inside = inside and (frame.system or frame.name is None)
    return False


def owners_of_gil(view: JobView, waiter: Party) -> Iterator[Party]:
    """Threads of the waiter's process that may own the GIL: the known one, else those blocked in native code."""
    others = [one for one in threads_of(view, waiter.index) if one.id != waiter.id and one.kind != "gil"]
    certain = [one for one in others if one.thread is not None and one.thread.gil]
    for one in certain or others:
        if one.judged.helper is None and one.group in ("lock", "implicit", *COMMUNICATION, "teardown"):
            yield one


def in_profiler(party: Party) -> bool:
    """Inside CUPTI."""
    return matches_any(_CUPTI, calls_of(party))


def left_by_fork(view: JobView, party: Party) -> Optional[str]:
    """How sure it is that a forked child waits for what only a thread of its parent could give; None: it may not."""
    if not (_is_forked(party) or _has_program_of_parent(view, party) or _destroys_condition(party)):
        return None
    asked = wants_lock(party) or waits_for_result(party) or party.judged.rule in _POOLS or inside_task(party)
    by_handler = ended_by_handlers(party) and not asked
    if by_handler and handler_of(party.process) is not None:
        return None
    rests = naps_for_lock(party) or by_handler  # it may well mean to
    alone = view.given is Given.LIVE and len(party.process.threads) == 1
    return "inferred" if alone and not rests else "assumed"


def _is_forked(party: Party) -> bool:
    """A child by fork with one thread, which waits for what only a thread of its parent can give."""
    waits = (party.group == "lock" and not _tries_again(party)) or party.group == "implicit"
    waits = waits or party.judged.rule in _POOLS
    # A thread gives what a task returns, and there is no other one.
    waits = waits or (len(party.process.threads) == 1 and waits_for_result(party))
    waits = waits or (len(party.process.threads) == 1 and not party.judged.idle and _waits_for_memory(party))
    alone = len(party.process.threads) <= 2 and party.kind != "gil"
    shared = any(wait.shared for wait in own_locks(party))
    called = (name.rsplit(".", 1)[-1] for name in calls_of(party))
    return waits and alone and not shared and matches_any(_FORK, called)


def _destroys_condition(party: Party) -> bool:
    """The only thread of a process waits until nobody waits for a condition variable any more (glibc,
    pthread_cond_destroy.c): whoever did so is in the process that it was forked from."""
    stands = any(wait.still and not (wait.timed or wait.shared) for wait in own_locks(party))
    return len(party.process.threads) == 1 and stands and matches_any(_DESTROYS, calls_of(party))


def _waits_for_memory(party: Party) -> bool:
    """Whether it waits without a limit for a change of memory that only another thread of its process can make: a
    semaphore may be posted by a signal's handler, too."""
    own = (wait for wait in own_locks(party) if wait.kind in _IN_MEMORY)
    return any(wait.still is True and not (wait.timed or wait.shared) for wait in own)


def _tries_again(party: Party) -> bool:
    """Whether it sleeps and looks again, or waits in the kernel for something else than memory: a lock of a file. What
    a fork leaves locked lies in memory."""
    thread = party.thread
    call = thread.syscall if thread is not None else None
    return thread is not None and (bool(thread.switches) or (call is not None and call[0] != FUTEX))


def _has_program_of_parent(view: JobView, party: Party) -> bool:
    """The only thread of a process with its parent's program; the parent has more threads, or had one that ran an
    initialiser, and waits for the child's end or its data."""
    process, own = party.process, own_locks(party)
    if len(process.threads) != 1 or process.title is None or party.judged.idle or any(wait.shared for wait in own):
        return False
    nameless = any(wait.kind == "futex" and wait.still for wait in own)
    without_pool = waits_for_absent_pool(party)
    if not without_pool and party.kind not in ("mutex", "condvar-idle") and not (party.kind == "unknown" and nameless):
        return False
    tries_lock = naps_for_lock(party) or _spins_for_pool(party) or without_pool
    if tries_lock and not (looked_long(view) and _only_one_acts(view, party)):
        return False
    if not tries_lock and (party.judged.rule in OWN_SLEEPS or _tries_again(party)):
        return False
    sure = tries_lock or _waits_for_memory(party)
    initialises = any(wait.kind == "once" for wait in own)
    return any(
        (len(one.threads) > 1 or initialises)
        and one.title == process.title
        and any(process.pid in peer.children or (sure and peer.processes == (process.pid,)) for peer in one.peers)
        for one in view.snapshot.processes
    )


def _spins_for_pool(party: Party) -> bool:
    """Whether it gives its processor away again and again until the threads of a pool have done their shares."""
    return party.judged.rule in _POOLS and is_yielding(party)


def _only_one_acts(view: JobView, party: Party) -> bool:
    others = (index for index in range(len(view.processes)) if index != party.index)
    return not any(has_acted(one) for index in others for one in threads_of(view, index))


def is_exiting(party: Party) -> bool:
    """Inside a destructor that runs because the process ends."""
    return matches_any(_EXIT, calls_of(party, party.judged.frame or 0))


def blocked_inside(party: Party) -> bool:
    """Whether the stack inside of a teardown shows a join, a CUDA call or a lock: it is stuck, not about to start."""
    frames = known_frames(party.thread.calls if party.thread else ())
    return matches_any(_ENDS_IN, [frame.name or "" for frame in frames][: party.judged.frame or 0])


def in_nccl(party: Party) -> bool:
    """In a call of NCCL, also where it launches."""
    if party.group in ("collective", "init", "teardown"):
        return party.kind not in _NOT_NCCL and (party.judged.rule or "").startswith(("nccl-", "torch-"))
    return party.group == "launch" and launches_nccl(party)


def launches_nccl(party: Party) -> bool:
    """Whether NCCL is on the stack."""
    return any("nccl" in name.lower() for name in calls_of(party))


def waits_for_leader(party: Party) -> bool:
    """Waits on purpose until the first rank has worked alone."""
    return matches_any(_LEADER_FIRST, calls_of(party))


def is_starved(party: Party) -> bool:
    """A member of a distributed job that waits for its input data."""
    if party.kind not in ("ipc-queue", "io"):
        return False
    files = [frame.file or "" for frame in party.thread.calls] if party.thread is not None else []
    names = calls_of(party)
    return matches_any(_LOADS_DATA, names) and any(_DISTRIBUTED.search(text) for text in (*files, *names))


def opens_peer_memory(party: Party) -> bool:
    """Opening the memory of another GPU for NCCL."""
    return matches_any(_PEER_MEMORY, calls_of(party)) and launches_nccl(party)


def waits_for_peers(party: Party) -> bool:
    """A set-up that waits on the network for other members."""
    return party.kind == "store-wait" or any(name.startswith(_ON_NETWORK) for name in calls_of(party))


def asks_store(party: Party) -> bool:
    """A key of the store that the program itself waits for: no function of torch.distributed's own asked for it."""
    if party.kind != "store-wait" or party.thread is None:
        return False
    python = [frame for frame in party.thread.frames if frame.language == "python"]
    return bool(python) and not any(_OF_TORCH.search(frame.file or "") for frame in python)
