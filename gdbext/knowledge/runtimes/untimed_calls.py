"""System calls that wait until something comes: whoever was woken from one has got something."""

from typing import Mapping, Optional, Sequence, Tuple

from gdbext.knowledge.runtimes import system_calls as known

_FOR_EVER = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)  # a timeout of -1, as a register holds it

UNTIMED: Mapping[int, Optional[Tuple[int, Sequence[int]]]] = {
    known.READ: None,
    known.WRITE: None,
    known.READV: None,
    known.WRITEV: None,
    known.ACCEPT: None,
    known.RECVFROM: None,
    known.RECVMSG: None,
    known.WAIT4: None,
    known.FLOCK: None,
    known.FCNTL: None,  # F_SETLKW alone waits
    known.WAITID: None,
    known.ACCEPT4: None,
    known.POLL: (3, _FOR_EVER),
    known.SELECT: (5, (0,)),
    known.FUTEX: (4, (0,)),
    known.EPOLL_WAIT: (4, _FOR_EVER),
    known.PSELECT6: (5, (0,)),
    known.PPOLL: (3, (0,)),
    known.EPOLL_PWAIT: (4, _FOR_EVER),
    known.MQ_TIMEDSEND: (5, (0,)),
    known.MQ_TIMEDRECEIVE: (5, (0,)),
    known.SEMOP: None,
    known.SEMTIMEDOP: (4, (0,)),
    known.MSGSND: None,
    known.MSGRCV: None,
}
"""By number: the place of its timeout in (number, arguments ...) and the values for none; None: it has no timeout."""

_MILLISECONDS = (known.POLL, known.EPOLL_WAIT, known.EPOLL_PWAIT)
_HOUR, _NEGATIVE = 3_600_000, 1 << 31
"""Of calls whose timeout is in milliseconds: such long ones stand for none (trio 0.27 _core/_run.py: a day; gevent's
libev: 17 days)."""


def has_no_limit(call: Optional[Sequence[int]]) -> bool:
    """Whether a system call (number and arguments) waits for as long as it takes, or for hours."""
    if not call:
        return False
    timeout = UNTIMED.get(call[0])
    place = timeout[0] if timeout is not None else 0
    hours = call[0] in _MILLISECONDS and len(call) > place and _HOUR <= call[place] < _NEGATIVE
    return hours or has_no_timeout(call)


def has_no_timeout(call: Optional[Sequence[int]]) -> bool:
    """Whether it has none at all. Who has one is woken by a stop, and waits again for the rest of it."""
    if not call or call[0] not in UNTIMED:
        return False
    timeout = UNTIMED[call[0]]
    return timeout is None or (len(call) > timeout[0] and call[timeout[0]] in timeout[1])


RUNS_COMMAND = "python-subprocess"
CHILD_WAITS: Tuple[str, ...] = ("os-child", "os-spawn", "python-child", RUNS_COMMAND)
"""Frame rules of a wait for a child process."""

LOADER_WAITS: Tuple[str, ...] = ("python-loader",)
"""Frame rules of a wait for worker processes of its own, which load data."""

FROM_ONE: Tuple[str, ...] = ("broadcast", "scatter", "recv")
"""Collectives whose data comes from one rank: the others may wait in them for its next order, as long as it likes."""

TO_ONE: Tuple[str, ...] = ("gather", "reduce", "recv")
"""Operations in which one rank waits for data of others, who need not wait for it."""

OF_ALL: Tuple[str, ...] = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "barrier")
"""Collectives that no member can leave before all others have come."""

FROM_SEVERAL: Tuple[str, ...] = ("zmq-python", "os-zmq", "python-selector")
"""Frame rules of waits for messages of several senders, or of whoever connects: which, the frames do not say."""

BY_THREADS = {"zmq-python": "ZeroMQ", "os-zmq": "ZeroMQ"}
"""Frame rules of waits whose connections a thread of the library takes, and what that thread is called."""

AT_EXIT = "python-exit"
"""Frame rule of an interpreter that waits for its threads at its end."""

POOL_WORKER = "pool-worker-idle"
"""Frame rule of a pool's worker that waits for tasks."""

THREAD_TASK = (r"(_WorkItem\.)?run$", r"concurrent/futures/thread\.py$")
"""The function of Python that runs a task in a pool of threads, and its file."""

POOL_TASKS: Tuple[Tuple[str, str], ...] = (
    THREAD_TASK,
    (r"_process_worker$", r"concurrent/futures/process\.py$"),
    (r"worker$", r"multiprocess(ing)?/pool\.py$"),
    (r"_run_function$", r"torch/distributed/rpc/internal\.py$"),
    (r"(\w+\.)?_execute$", r"(^|/)huey/api\.py$"),
)
"""Functions of Python, with their files, that run a task of a pool; `asyncio.to_thread` ends there."""

POOL_THREAD = (r"_worker$", r"concurrent/futures/thread\.py$")
"""The function of a thread of an executor, and its file."""

POOL_RESULTS = (
    r"(\w*Result|IMap\w*Iterator|Future)\.(get|wait|next|__next__|result)$|result$|_M_get_result$|__sub_wait$"
)
"""Functions in which the parent of a pool waits for what its workers do; the last two of std::future (libstdc++ future,
libc++ future.cpp)."""

TAKES_RESULTS = (r"(\w+\.)?_handle_results$", r"(^|/)(multiprocess(ing)?|billiard)/pool\.py$")
"""The function of a pool of processes that takes what its workers send, and its file; a worker that ends is replaced
without a word to who waits (multiprocessing/pool.py `_maintain_pool`)."""

POLLED = -1
"""No call of the kernel: a poll of several files to read, whose descriptors stand in place of its arguments."""

YIELD = r"_*(GI_)?_*(sched_yield|pthread_yield)$"
"""The innermost function of a thread that waits for a change of memory, and lets others run meanwhile."""

ANSWERED_AT_ONCE = r"c10d::\w*Store::(add|check|compareSet|deleteKey|getNumKeys|set)$"
"""Calls of a rendezvous store that wait for no key: that one has returned is no progress (torch TCPStore.cpp)."""

ENDS_BY_NAME = (
    r"_*(join|shut_?down|stop|close|drain|flush|finish|finali[sz]e|terminate|tear_?down|destroy|quit)(?![a-z])"
    r"(?!\w*(loop|period|forever|every|request|watch|cluster|group|room|session|network|quorum))\w*$"
    r"|_*(wait|await|block)_?(for|until|till|on)?_?all_?\w*(workers?|threads?|tasks?|jobs?|child(ren)?|pending)$"
    r"|_*(wait|await|block)_?(for|until|till|on)?_?(\w*_)?(workers?|threads?|child(ren)?|completion"
    r"|exit|end|finish(ed)?|done|drained|stopped|empty)$"
    r"|~\w+|__a?exit__$|__del__$"
)
"""The last part of a function's name, as `words_of` writes it: it ends something and waits for that, not for work.
One joins a thread, and a cluster, too."""

LOCKS_BY_NAME = (
    r"_*((spin_?)?lock|spin_?acquire)(_(slow|contended|shared|exclusive|internal|impl))*$"
    r"|_*acquire(_(slow|contended|shared|exclusive|internal|impl))+$|_*slow_lock$|spin_lock_delay$"
)
"""The last part of a function's name, as `words_of` writes it: it takes a lock, here one that looks again and again.
Slots of a queue, leases and files are acquired, too."""

LOCKS_OF_PYTHON = (
    r"(\w+\.)*\w*[Ll]ock\w*\.(__a?enter__|_*a?(acquire|lock)\w*)$"
    r"|(\w+\.)*_*(acquire|wait|take|get|obtain)_(\w+_)?lock(_\w+)?$"
)
"""Names of functions and classes of Python that take a lock: one that tries again and again wants that of a file or of
a server."""

GIVES_BY_NAME = r"_*(en_?queue|put|push|publish|produce|send|write|acquire_write|reserve|broadcast)(_[a-z]\w*)?$"
"""The last part of a function's name, as `words_of` writes it: it gives something to others, and needs room for it."""

_PARTS = r"(\w+_)?(blocks?|slots?|pages?|chunks?|buffers?|memory|space|room)$"
ALLOCATES_BY_NAME = (
    rf"_*(try_)?(re)?alloc(ate)?$|_*(alloc(ate)?|acquire|reserve|take|get_free)_{_PARTS}|_*wait_for_(space|room)$"
)
"""As above: it takes a part of a store that the process has, and needs another part to be given back."""

TAKES_BY_NAME = r"_*(de_?queue|get|pop|consume|recv|receive|read|acquire_read|take|next|poll|wait)(_[a-z]\w*)?$"
"""As above: it takes something from others."""

WAITS_BY_NAME = r"_*(busy_|spin_)?(wait|await|block|poll|spin)(_[a-z]\w*)?$|_*(is_)?(ready|done|synchroni[sz]ed?)$"
"""The last part of a function's name, as `words_of` writes it: it waits until something is so."""

STOPS_BY_NAME = r"_*(stop|shut_?down|close|quit|terminate|tear_?down|destroy|cancel|halt)(_[a-z]\w*)?$|~\w+"
"""The last part of a function's name, as `words_of` writes it: it ends something that runs."""

LOOPS_BY_NAME = (
    r"(\w+_)?(loop|run|serve|forever|work(er)?|main|step|poll|process|handle|target|once|bootstrap|inner)(_\w+)?$"
)
"""The last part of a function's name, as `words_of` writes it: it goes on from one piece of work to the next."""

WATCHES_BY_NAME = (
    r"(\w+_)?(heart_?beats?|monitor|watch(er|dog)?|report(er)?|keep_?alive|ping(er)?|log(ger)?|stat(istic)?s|progress"
    r"|metrics|refresh(er)?|tick(er)?|timer|status)(_\w+)?$"
)
"""The last part of a function's name, as `words_of` writes it: what it does from time to time gives nobody a result."""

SETS_UP_BY_NAME = (
    r"__init__$|_*(init(iali[sz]e)?|set_?up|bootstrap|connect|rendezvous|hand_?shake|form|join)(_[a-z]\w*)?$"
    r"|_*(accept|wait)_?(for|until|till)?_?(all_?)?(the_?)?(workers?|peers?|ranks?|members?|nodes?)(_[a-z]\w*)?$"
)
"""The last part of a function's name, as `words_of` writes it: it connects the processes of a job with each other."""

COLLECTIVES_BY_NAME = (
    r"_*(i_?|async_?)?(all_?reduce|all_?gather|all_?to_?all|reduce_?scatter)"
    r"(_?(async|grad\w*|tensors?|coalesced|bucket\w*|object\w*|sync))?_?$"
)
"""The last part of a function's name, as `words_of` writes it: the operation of a library that a program has made
itself."""
