"""What one thread does, in words, and what its stack alone leaves open: by label of labels.WAIT_KINDS."""

from dataclasses import dataclass
from typing import Mapping, Tuple

from gdbext.knowledge.causes.held_by_frames import IN_LOADER
from gdbext.knowledge.causes.remedies.remedy_constants import (
    ALLOCATES,
    APPLE,
    CHILD_WAITS,
    FOR_THE_GPU,
    GRPC_CALLS,
    GRPC_IN_PYTHON,
    PARENTS,
    RDMA_COMMANDS,
)
from gdbext.knowledge.frames.networks.fabrics import JOB_STARTS, PMIX_CALLS, PMIX_GET
from gdbext.knowledge.frames.networks.mpi import RETURNS_AT_ONCE
from gdbext.knowledge.frames.other_engines import BEGUN_IN_REALM, XRT_SERVERS
from gdbext.knowledge.frames.python.interpreter import COLLECTS_GARBAGE, LOCK_OF_PYTHON, THREADS_QUEUE
from gdbext.knowledge.frames.system.code_owners import CUDA_DRIVER_MODULES
from gdbext.knowledge.frames.system.linux_kernel import KERNEL

_FOR_THE_GPU = "waits for the GPU in {where}"
_FOR_A_THREAD = "waits for another thread, in {where}"
_FOR_A_THREAD_OR_TIMER = "waits for another thread or a timer, in {where}"
_IN_THE_DRIVER = (*FOR_THE_GPU, *ALLOCATES, "module-load", "cublas")

DOES: Mapping[str, str] = {
    "pinned-host-alloc": "is allocating or freeing page-locked memory, which waits for the GPU, in {where}",
    "device-alloc": "allocates GPU memory, which may wait for the GPU, in {where}",
    "device-free": "frees GPU memory, which waits for the GPU, in {where}",
    "kernel-launch": "launches GPU work in {where}",
    "stream-sync": _FOR_THE_GPU,
    "event-sync": _FOR_THE_GPU,
    "device-sync": _FOR_THE_GPU,
    "memcpy-sync": "copies memory, which waits for the GPU, in {where}",
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

IDLE_OR_LOST = "{Unseen} whether it is merely idle or should have been woken by another thread."
_OF_THE_GPU = (
    "{Unseen} what keeps the GPU busy; in a job with several ranks it is often a collective that waits for another "
    "rank."
)
_OF_THE_DRIVER = (
    "{Unseen} why the call does not return; the GPU may be busy, or another thread may hold a lock of the driver."
)
_OF_CHILD = "{Unseen} what the child is doing."
_OF_PEERS = "It is probably waiting for a peer; {unseen} which."
_OF_LAUNCHER = (
    "That server is the launcher's daemon on this host; {unseen} why it has not answered. If the value comes from "
    "another rank, the server first waits for that rank."
)
_OF_CALL = "{Unseen} why that call has not completed: its server may not answer, or the connection may be stuck."
_OF_EVENTS = (
    "{Unseen} which code runs that loop: helper threads, of Open MPI and PMIx among others, rest there; a thread that "
    "waits for a message in MPI may poll there too."
)
ENDS_WITH_ALL = (
    "The kernel of a collective ends only when every rank of its communicator has launched its own. {Unseen} which "
    "rank, if any, has not."
)
"""Behind a kernel of NCCL that is on the GPU."""
UNENDED = "{Unseen} why that kernel has not ended."
"""Behind any other one."""
BEGUN = (
    "Judging by its name, {caller} does work, so the thread is probably not idle. {Unseen} which thread should wake it."
)
"""In place of that, where a frame further out is called so."""
BEGUN_WAIT = BEGUN.replace("does work", "waits for the end of work")
"""The same where that frame's own name begins with `Wait`."""
RUNS_LOCKED = (
    "The name of its caller {caller} suggests that a lock is already held there: if it is this lock, the thread waits "
    "for itself. If not, {unseen} which thread holds it."
)
MAIN_UNREAD = "The main thread, thread 1, {unread}."
"""Behind that, where a debugger's first thread is not in the text."""

MOVES = "A single dump cannot show whether it is making progress."
MOVED = "A core file shows one moment, so it cannot tell slow from stuck."
"""In place of that, of a core file."""
FOR_A_TASK = "Thread {waiter} {waits} for a pool's task in {where}: probably for this one, the only one in the text."
"""Behind a worker of a pool."""
FOLLOWS = (
    "It waits for what the first rank of its group will tell it to do: while that rank is idle, or while it is stuck."
)
"""Of a rank in a broadcast by which an engine hands out its work."""
LOST_INSIDE = "is in a function that the text does not show ({frames} missing), reached through {where}"
LOST_PLACE = "has only its outermost frames in the text, where every thread begins ({frames} missing)"
"""Where the text has lost the innermost frames: those that it has are not where the thread is."""
UNSEEN_PLACE = "The text does not show what the thread is in."

OPEN: Mapping[str, str] = {
    "pinned-host-alloc": _OF_THE_GPU,
    "device-alloc": _OF_THE_DRIVER,
    "device-free": _OF_THE_GPU,
    "cublas": _OF_THE_DRIVER,
    "module-load": _OF_THE_DRIVER,
    "kernel-launch": "{Unseen} why the launch blocks; possible reasons are a full launch queue, "
    "CUDA_LAUNCH_BLOCKING=1, or a kernel that must be loaded first.",
    "stream-sync": _OF_THE_GPU,
    "event-sync": _OF_THE_GPU,
    "device-sync": _OF_THE_GPU,
    "memcpy-sync": _OF_THE_GPU,
    "nccl-init": "{Unseen} which rank, if any, has not joined.",
    "nccl-group-launch": "{Unseen} which rank, if any, has not reached this call.",
    "nccl-destroy-abort": "{Unseen} which rank or kernel it waits for.",
    "mpi": _OF_PEERS,
    "gloo": _OF_PEERS,
    "store-wait": "{Unseen} which rank, if any, has not joined.",
    "ipc-queue": "The process that should send it {unread}.",
    "gil": "The thread that holds the GIL {unread}.",
    "mutex": "The thread that holds the lock {unread}.",
    "condvar-idle": IDLE_OR_LOST,
    "io": "{Unseen} which file, socket or device it waits for.",
}
"""Kinds without a row: `MOVES`."""

BESIDE_MAIN = (IDLE_OR_LOST, OPEN["io"], _OF_CALL, _OF_EVENTS)
"""Behind these the main thread is missed: helpers and workers wait so."""


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
    under: str = ""  # a frame further out must match this; `{call}` of `does` is the innermost such frame
    rules: Tuple[str, ...] = ()  # of the frame that waits
    asleep: bool = False  # only where the text says that the thread slept (py-spy: idle)


FORKED_CHILD = r"_launch$"
"""Below a child's own frames only if it was forked (multiprocessing/popen_fork.py): a spawned one starts anew."""

_JOINS = (
    r"_*(?:GI_+)?_*pthread_(?:timed|clock)?join\w*(?:@\S*)?$|__gthread_(?:active_)?join$"
    r"|std::(?:__\w+::)?j?thread::join"
)

OPEN_THERE: Tuple[OpenThere, ...] = (
    OpenThere(
        ("condvar-idle", "io"),
        "{Unseen} what those processes are doing.",
        does="waits for its child processes, in {where}",
        rules=PARENTS,
    ),
    OpenThere(
        ("condvar-idle",),
        "{Unseen} whether one of them is stuck or still working.",
        does="waits for the other threads of its pool, in {where}",
        rules=("openmp-caller", "rayon-caller", "tbb-caller", "pool-caller"),
    ),
    OpenThere(
        ("mpi",),
        "{Unseen} whether it waits for another rank, for the launcher or for a thread of its own.",
        function=r"(?:ompi_mpi_(?:instance_)?|P?MPI_|MPID_|internal_)[Ff]inali[sz]e\w*$",
    ),
    OpenThere(
        ("nccl-init", "device-alloc"),
        "Every rank of the communicator must make that call; {unseen} which rank, if any, has not.",
        function=r"ncclComm(?:Window)?(?:Register|Deregister)\w*$",
        does="registers a buffer with a communicator in {where}",
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} whether the driver has exported that function.",
        function=r"fetch_registered_method$|_wait_for_function$|fetch_and_register_\w+$",
        does="has a Ray task and waits for the task's function to be exported, in {where}",
    ),
    OpenThere(
        ("io",),
        MOVES,
        function=r"spawnv_passfds$|_?fork_exec$",
        does="is in {where}, which starts a child process",
    ),
    OpenThere(
        ("mpi", "stream-sync", "event-sync", "nccl-group-launch", "native-compute", "unknown"),
        "That call returns at once. {Unseen} whether it is called in a loop, or for which peer that loop waits.",
        function=RETURNS_AT_ONCE,
        does="is in {where}",
    ),
    OpenThere(
        ("condvar-idle",),
        "{Unseen} what should trigger that event; the trigger may be on another node.",
        function=BEGUN_IN_REALM,
        does="is in a task that waits for a Realm event, in {where}",
    ),
    OpenThere(
        ("condvar-idle",),
        "{Unseen} which server has not answered.",
        function=XRT_SERVERS,
        does="waits for the XRT servers, in {where}",
    ),
    OpenThere(
        ("mutex",),
        "{Unseen} the Python line; it may use a Lock, a Condition or a Queue, all of which wait in this function.",
        function=LOCK_OF_PYTHON,
        does="waits to acquire a Python lock, in {where}",
    ),
    OpenThere(
        ("python-code",),
        "{Unseen} the native call in which it sleeps. The process is a forked child: a lock that another thread held "
        "in the parent at the time of the fork is never released in the child.",
        under=FORKED_CHILD,
        does="sleeps in {where}",
        asleep=True,
    ),
    OpenThere(
        ("python-code",),
        "{Unseen} the native call in which it sleeps; it may also wait for the GIL.",
        does="sleeps in {where}",
        asleep=True,
    ),
    OpenThere(
        ("native-compute",),
        f"{MOVES} If it died there, an extension has probably corrupted an object.",
        function=COLLECTS_GARBAGE,
        does="is in Python's garbage collector, in {where}",
    ),
    OpenThere(
        ("io",),
        _OF_EVENTS,
        does="waits for events in libevent's loop, in {where}",
        rules=("event-loop-wait",),
    ),
    OpenThere(
        ("io",),
        _OF_CALL,
        under=GRPC_CALLS,
        does="waits as a gRPC client, in {call}",
    ),
    OpenThere(
        ("io",),
        _OF_CALL,
        does="waits as a gRPC client, in {where}",
        rules=(GRPC_IN_PYTHON,),
    ),
    OpenThere(
        ("io",),
        "{Unseen} which code runs that loop, or what that code waits for.",
        function=r"update_time_cache$",
        does="polls in libevent's loop, in {where}",
    ),
    OpenThere(
        _IN_THE_DRIVER,
        "The thread that holds the lock {unread}; usually that thread is in a CUDA call too.",
        module=CUDA_DRIVER_MODULES,
        does="waits for a lock inside the CUDA driver, in {where}",
        through=r"_*(?:GI_+)?_*(?:lll_lock_wait|lll_mutex_lock|pthread_(?:mutex_|rwlock_(?:rd|wr))lock)\w*$",
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "This join runs while a library is loaded or unloaded, with the dynamic loader's lock held: if the other "
        "thread loads a library too, both wait forever. {Unseen} what that thread is doing.",
        does="waits for another thread to end, in {where}",
        through=_JOINS,
        under=IN_LOADER,
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "{Unseen} which thread that is.",
        function=r"(?:.*[.:])?_wait_for_tstate_lock$",
        does="waits for another thread to end, in {where}",
    ),
    OpenThere(
        ("condvar-idle", "mutex"),
        "{Unseen} which thread that is.",
        does="waits for another thread to end, in {where}",
        through=_JOINS,
    ),
    OpenThere(
        ("io",),
        "{Unseen} what it does between sleeps.",
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
        does=_FOR_A_THREAD,
        through=r"_*(?:GI_+)?_*(?:new_)?sem_wait\w*(?:@\S*)?$",
        rules=("python-wait",),  # which uses a semaphore for its lock
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
        _OF_LAUNCHER,
        function=PMIX_GET,
        does="waits for an answer of the local PMIx or PMI server, in {where}",
    ),
    OpenThere(
        ("mpi",),
        _OF_LAUNCHER,
        function=JOB_STARTS,
        under=PMIX_GET,
        does="is initializing MPI in {where} and waits in {call} for an answer of the local PMIx or PMI server",
    ),
    OpenThere(
        ("mpi",),
        "{Unseen} why the server has not answered; it may wait for the same call of other processes.",
        function=PMIX_CALLS,
        does="waits for an answer of the launcher's PMIx or PMI server, in {where}",
    ),
    OpenThere(
        ("mpi",),
        "{Unseen} whether it waits for a peer or for the launcher.",
        function=JOB_STARTS,
        does="is initializing MPI in {where}",
    ),
    OpenThere(
        FOR_THE_GPU,
        "{Unseen} whether the GPU is still executing its command buffer, or the buffer was never committed.",
        function=APPLE,
    ),
    OpenThere(
        FOR_THE_GPU,
        "{Unseen} what the GPU driver waits for; the kernel log may name it.",
        module=KERNEL,
    ),
    OpenThere(
        ("io",),
        "{Unseen} whether the driver is stuck or only slow.",
        function=RDMA_COMMANDS,
        does="waits for the kernel driver of the network adapter, in {where}",
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} what the workers are doing.",
        function=r"(?:.*[.:])?(?:_try_get_data|_get_data|_next_data)$",
        does="waits for a batch from the DataLoader's workers, in {where}",
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} which thread should take items from that queue.",
        function=r"(?:.*[.:])?put$",
        does="waits for room in a queue of its own process, in {where}",
        rules=(THREADS_QUEUE,),
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} which thread works on those items.",
        function=r"(?:.*[.:])?join$",
        does="waits until all items of a queue of its own process are done, in {where}",
        rules=(THREADS_QUEUE,),
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} which thread should put it there.",
        does="waits for an item in a queue of its own process, in {where}",
        rules=(THREADS_QUEUE,),
    ),
    OpenThere(
        ("ipc-queue",),
        "{Unseen} which process has not taken its messages.",
        function=r"(?:.*[.:])?(?:acquire_write|enqueue\w*|put\w*|_?send\w*)$",
        does="waits for room in a queue to another process, in {where}",
    ),
    OpenThere(
        ("mutex",),
        "{Unseen} whether it waits for a kernel lock there.",
        function=r"dup_mm(?:ap)?$",
        module=KERNEL,
        does="is forking, and copies the address space in {where}",
    ),
    OpenThere(
        ("mutex",),
        "{Unseen} which task holds this kernel lock.",
        module=KERNEL,
    ),
    OpenThere(
        ("mutex",),
        "The thread that holds the lock {unread}; usually that thread is in a CUDA call too.",
        module=CUDA_DRIVER_MODULES,
    ),
)
"""The first that fits comes before the row of the kind."""
