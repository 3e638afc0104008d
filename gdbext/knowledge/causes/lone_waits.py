"""What one thread does, in words, and what its stack alone leaves open: by label of labels.WAIT_KINDS."""

from dataclasses import dataclass
from typing import Mapping, Tuple

from gdbext.knowledge.causes.held_by_frames import IN_LOADER
from gdbext.knowledge.causes.remedies.remedy_constants import (
    ALLOCATES,
    APPLE,
    CHILD_WAITS,
    FOR_THE_GPU,
    PARENTS,
    RDMA_COMMANDS,
)
from gdbext.knowledge.frames.networks.fabrics import JOB_STARTS, PMIX_CALLS
from gdbext.knowledge.frames.networks.mpi import RETURNS_AT_ONCE
from gdbext.knowledge.frames.other_engines import BEGUN_IN_REALM, XRT_SERVERS
from gdbext.knowledge.frames.python.interpreter import COLLECTS_GARBAGE, LOCK_OF_PYTHON
from gdbext.knowledge.frames.system.code_owners import CUDA_DRIVER_MODULES
from gdbext.knowledge.frames.system.linux_kernel import KERNEL

_FOR_THE_GPU = "waits for the GPU in {where}"
_FOR_A_THREAD = "waits for another thread in {where}"
_FOR_A_THREAD_OR_TIMER = "waits in {where} for another thread or a timer"
_IN_THE_DRIVER = (*FOR_THE_GPU, *ALLOCATES, "module-load", "cublas")

DOES: Mapping[str, str] = {
    "pinned-host-alloc": "allocates or frees page-locked memory in {where}, which waits for the GPU",
    "device-alloc": "allocates GPU memory in {where}, which may wait for the GPU",
    "device-free": "frees GPU memory in {where}, which waits for the GPU",
    "kernel-launch": "launches GPU work in {where}",
    "stream-sync": _FOR_THE_GPU,
    "event-sync": _FOR_THE_GPU,
    "device-sync": _FOR_THE_GPU,
    "memcpy-sync": "copies memory in {where}, which waits for the GPU",
    "nccl-init": "sets up a communicator in {where}",
    "gloo": "waits for a Gloo peer in {where}",
    "store-wait": "waits at the rendezvous store in {where}",
    "ipc-queue": "waits for a message from another process, in {where}",
    "gil": "waits for the GIL in {where}",
    "mutex": "waits for a lock in {where}",
    "condvar-idle": _FOR_A_THREAD_OR_TIMER,
    "io": "waits for I/O in {where}",
}
"""Kinds without a row: `is in {where}`."""

WITHOUT_TIMER = {_FOR_A_THREAD_OR_TIMER: _FOR_A_THREAD}
"""Where the call's time limit was printed, and there is none."""
NAMED_LOCK = "waits for the lock {lock} in {where}"
"""Of a mutex whose variable the text names."""

IDLE_OR_LOST = "Whether it is only idle, or another thread should have woken it, {unread}."
_OF_THE_GPU = (
    "What keeps the GPU busy {unread}; in a job with several ranks it is often a collective that waits for one of them."
)
_OF_THE_DRIVER = "Why it does not return {unread}: the GPU may be busy, or another thread may hold the driver's lock."
_OF_CHILD = "What the child does {unread}."
_OF_PEERS = "Which peer it waits for {unread}."
BEGUN = "By its name, {caller} is work in progress, so the thread is hardly idle. Which thread should wake it {unread}."
"""In place of that, where a frame further out is called so."""
RUNS_LOCKED = (
    "{caller}, further out, by its name runs with a lock held: if it is the same lock, the thread waits for itself. "
    "If not, the thread that holds it {unread}."
)
MAIN_UNREAD = "Thread 1, the main thread, {unread} either."
"""Behind that, where a debugger's first thread is not in the text."""

OPEN: Mapping[str, str] = {
    "pinned-host-alloc": _OF_THE_GPU,
    "device-alloc": _OF_THE_DRIVER,
    "device-free": _OF_THE_GPU,
    "cublas": _OF_THE_DRIVER,
    "module-load": _OF_THE_DRIVER,
    "kernel-launch": "Why it blocks {unread}: a full launch queue, CUDA_LAUNCH_BLOCKING=1, or a kernel that must be "
    "loaded first.",
    "stream-sync": _OF_THE_GPU,
    "event-sync": _OF_THE_GPU,
    "device-sync": _OF_THE_GPU,
    "memcpy-sync": _OF_THE_GPU,
    "nccl-init": "Whether a rank has not joined, and which, {unread}.",
    "nccl-group-launch": "Whether a rank has not arrived there, and which, {unread}.",
    "nccl-destroy-abort": "Which rank or kernel it waits for {unread}.",
    "mpi": _OF_PEERS,
    "gloo": _OF_PEERS,
    "store-wait": "Whether a rank has not joined, and which, {unread}.",
    "ipc-queue": "The process that should send it {unread}.",
    "gil": "The thread that holds the GIL {unread}.",
    "mutex": "The thread that holds the lock {unread}.",
    "condvar-idle": IDLE_OR_LOST,
    "io": "What it waits for {unread}.",
}
"""Kinds without a row: one look cannot show whether it makes progress."""


@dataclass(frozen=True)
class OpenThere:
    """What a thread does, and what its stack leaves open, where the call that waits is of special code: the innermost
    frame that is no wait of the C library must match `function` and `module`, from the start."""

    kinds: Tuple[str, ...]
    open: str
    function: str = ""
    module: str = ""
    does: str = ""  # in place of the row of DOES
    through: str = ""  # a wait of the C library inside that frame must match this; even of a frame without a name
    under: str = ""  # a frame further out must match this
    rules: Tuple[str, ...] = ()  # of the frame that waits


_JOINS = (
    r"_*(?:GI_+)?_*pthread_(?:timed|clock)?join\w*(?:@\S*)?$|__gthread_(?:active_)?join$"
    r"|std::(?:__\w+::)?j?thread::join"
)

OPEN_THERE: Tuple[OpenThere, ...] = (
    OpenThere(
        ("condvar-idle", "io"),
        "What those processes do {unread}.",
        does="waits for the processes that it started, in {where}",
        rules=PARENTS,
    ),
    OpenThere(
        ("condvar-idle",),
        "Whether one of them is stuck or still at work {unread}.",
        does="waits for the other threads of its pool, in {where}",
        rules=("openmp-caller", "tbb-caller", "pool-caller"),
    ),
    OpenThere(
        ("mpi",),
        "Whether the end of MPI waits for another rank, for the launcher or for a thread of its own {unread}.",
        function=r"(?:ompi_mpi_(?:instance_)?|P?MPI_|MPID_|internal_)[Ff]inali[sz]e\w*$",
    ),
    OpenThere(
        ("nccl-init", "device-alloc"),
        "Every rank of the communicator must make that call; whether one has not, and which, {unread}.",
        function=r"ncclComm(?:Window)?(?:Register|Deregister)\w*$",
        does="registers a buffer with a communicator in {where}",
    ),
    OpenThere(
        ("ipc-queue",),
        "Whether the driver has exported that function {unread}.",
        function=r"fetch_registered_method$|_wait_for_function$|fetch_and_register_\w+$",
        does="has a task of Ray and waits for its function in {where}",
    ),
    OpenThere(
        ("io",),
        "One look cannot show whether it makes progress.",
        function=r"spawnv_passfds$|_?fork_exec$",
        does="is in {where}, which starts a child process",
    ),
    OpenThere(
        ("mpi", "stream-sync", "event-sync", "nccl-group-launch", "native-compute", "unknown"),
        "That call returns at once. Whether a loop around it waits, and for whom, {unread}.",
        function=RETURNS_AT_ONCE,
        does="is in {where}",
    ),
    OpenThere(
        ("condvar-idle",),
        "Who should trigger that event {unread}; it can be on another node.",
        function=BEGUN_IN_REALM,
        does="runs a task that waits for an event of Realm, in {where}",
    ),
    OpenThere(
        ("condvar-idle",),
        "Which server has not answered {unread}.",
        function=XRT_SERVERS,
        does="waits for the XRT servers in {where}",
    ),
    OpenThere(
        ("mutex",),
        "The line of Python {unread}: it may use a Lock, a Condition or a Queue, which all wait in this function.",
        function=LOCK_OF_PYTHON,
        does="waits in acquire() of a lock of Python code, in {where}",
    ),
    OpenThere(
        ("native-compute",),
        "One look cannot show whether it makes progress. If it died there, an extension has damaged an object.",
        function=COLLECTS_GARBAGE,
        does="is in Python's garbage collector, in {where}",
    ),
    OpenThere(
        ("io",),
        "Which code runs that loop, and what it waits for, {unread}.",
        function=r"update_time_cache$",
        does="polls in libevent's loop, in {where}",
    ),
    OpenThere(
        _IN_THE_DRIVER,
        "The thread that holds the lock {unread}; usually it is in a CUDA call too.",
        module=CUDA_DRIVER_MODULES,
        does="waits for a lock inside the CUDA driver, in {where}",
        through=r"_*(?:GI_+)?_*(?:lll_lock_wait|lll_mutex_lock|pthread_(?:mutex_|rwlock_(?:rd|wr))lock)\w*$",
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "It runs while a library is loaded or unloaded, with the dynamic loader's lock held: if the thread it joins "
        "loads a library too, both wait for ever. What that thread does {unread}.",
        does="waits for another thread to end, in {where}",
        through=_JOINS,
        under=IN_LOADER,
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "Which thread it joins {unread}.",
        function=r"(?:.*[.:])?_wait_for_tstate_lock$",
        does="waits for another thread to end, in {where}",
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "Which thread it joins {unread}.",
        does="waits for another thread to end, in {where}",
        through=_JOINS,
    ),
    OpenThere(
        ("io",),
        "What it does in between {unread}.",
        function=r"(?:apr_sleep|g_usleep|SDL_Delay|\w*_sleep)$",  # of libraries that sleep in select() or poll()
        does="sleeps for a fixed time in {where}",
    ),
    OpenThere(
        ("io",),
        _OF_CHILD,
        function=CHILD_WAITS,
        does="waits for a child process to end, in {where}",
    ),
    OpenThere(
        ("io",),
        _OF_CHILD,
        does="waits for a child process to end, in {where}",
        through=CHILD_WAITS,
    ),
    OpenThere(
        ("condvar-idle",),
        IDLE_OR_LOST,
        does="waits for a semaphore in {where}",
        through=r"_*(?:GI_+)?_*(?:new_)?sem_wait\w*(?:@\S*)?$",
    ),
    OpenThere(
        ("condvar-idle",),
        IDLE_OR_LOST,
        does=_FOR_A_THREAD,
        through=r"_*(?:GI_+)?_*pthread_cond_wait(?:@\S*)?$",  # the waits with a timeout have other names
    ),
    OpenThere(
        ("mpi",),
        "Why the server has not answered {unread}: it may wait for the same call of other processes.",
        function=PMIX_CALLS,
        does="waits for an answer of the launcher's PMIx or PMI server, in {where}",
    ),
    OpenThere(
        ("mpi",),
        "Whether it waits for a peer or for the launcher {unread}.",
        function=JOB_STARTS,
        does="is joining the MPI job in {where}",
    ),
    OpenThere(
        FOR_THE_GPU,
        "Whether the GPU still works on its commands, or they were never committed, {unread}.",
        function=APPLE,
    ),
    OpenThere(
        FOR_THE_GPU,
        "What the GPU's driver waits for {unread}; the kernel's log may name it.",
        module=KERNEL,
    ),
    OpenThere(
        ("io",),
        "Whether the driver is stuck or only slow {unread}.",
        function=RDMA_COMMANDS,
        does="waits in {where} for the kernel's driver of the network adapter",
    ),
    OpenThere(
        ("ipc-queue",),
        "What the workers do {unread}.",
        function=r"(?:.*[.:])?(?:_try_get_data|_get_data|_next_data)$",
        does="waits for a batch from the DataLoader's workers, in {where}",
    ),
    OpenThere(
        ("ipc-queue",),
        "Which process has not taken its messages {unread}.",
        function=r"(?:.*[.:])?(?:acquire_write|enqueue\w*|put\w*|_?send\w*)$",
        does="waits for room in a queue to another process, in {where}",
    ),
    OpenThere(
        ("mutex",),
        "Whether it waits for a lock of the kernel there {unread}.",
        function=r"dup_mm(?:ap)?$",
        module=KERNEL,
        does="is in a fork, and copies the address space in {where}",
    ),
    OpenThere(
        ("mutex",),
        "The task that holds this lock of the kernel {unread}.",
        module=KERNEL,
    ),
    OpenThere(
        ("mutex",),
        "The thread that holds the lock {unread}; usually it is in a CUDA call too.",
        module=CUDA_DRIVER_MODULES,
    ),
)
"""The first that fits comes before the row of the kind."""
