"""Remedies of locks, forks, ends of programs and shared memory."""

from typing import Tuple

from gdbext.knowledge.causes.held_by_frames import INTERRUPTED
from gdbext.knowledge.causes.remedies.remedy_constants import (
    ABORTS_COMMUNICATOR,
    ALLOCATES,
    BY_OPENJDK,
    FOR_THE_GPU,
    GIL_HOLDER,
    JOINS_CHILDREN,
    JOINS_OF_PYTHON,
    OF_CUDA,
    READER_WRITER,
    SAMPLES,
    SHUTS_DOWN,
    SLEEPS,
    STATIC_INITIALIZER,
    WAITS_FOR_SIGNAL,
)
from gdbext.knowledge.frames.failures import LOCK_CHECKS
from gdbext.knowledge.frames.python.interpreter import TAKES_LOCK
from gdbext.knowledge.frames.system.libc import ENDS_ZMQ
from gdbext.knowledge.frames.system.library_locks import LOCKS_OF_ALLOCATORS
from gdbext.knowledge.log_lines.last_words import FATAL, IGNORED
from gdbext.knowledge.row_kinds import RemedyRule
from gdbext.knowledge.runtimes.cpython_frames import JOINED

_DEAD_OR_LOCKED = ("exited-or-crashed", "mutex")
_TEARS_DOWN = ("nccl-destroy-abort", "nccl-init", "mpi", "gloo", *ALLOCATES, *FOR_THE_GPU)
_OUTSIDE = ("mutex", "condvar-idle", "io", "ipc-queue", "python-code")
_SEMAPHORES = r"_multiprocessing_SemLock_acquire|(__new_)?sem_(timed|clock)?wait(?!\w)"
_OF_PYTHON = r"PyThread_acquire_lock(?:_timed)?$"
"""Whoever waits for a Lock or RLock of threading: in a semaphore too."""
_ONE_ORDER = "Make all threads take these locks in the same order, or use one lock instead"
_IN_A_CIRCLE = "in a deadlock each thread holds what another one waits for"
_JOINS = (r"(?:.*\.)?join$", JOINED)
_JOINED = "a shutdown that joins a thread waits as long as that thread waits for something itself"
_SPAWN = (
    "Start workers with spawn: multiprocessing.set_start_method('spawn') (vLLM: "
    "VLLM_WORKER_MULTIPROC_METHOD=spawn); or fork them before CUDA is used or any thread is started"
)

REMEDIES: Tuple[RemedyRule, ...] = (
    RemedyRule(
        "gil-deadlock",
        GIL_HOLDER,
        "what that thread waits for is the cause; a thread that waits for the GIL is its victim",
        "py-spy documentation, dump",
        named=False,
    ),
    RemedyRule(
        "gil-deadlock",
        "Release the GIL around the native call (py::call_guard<py::gil_scoped_release>, Py_BEGIN_ALLOW_THREADS)",
        "a thread that waits for a lock or the device while holding the GIL blocks every thread that needs the GIL, "
        "also the one that it waits for",
        "rapidsai/ucx-py#187",
    ),
    RemedyRule(
        "gil-deadlock",
        "Do not call Python from callbacks of the driver or the loader (stream callbacks, dl_iterate_phdr)",
        "they run while the driver or the loader holds its lock",
        "auto-round#1701",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Read the detector's whole report: in each thread, the innermost function of your own code takes the lock "
        "that it waits for; if the report has one thread only, that one already holds the lock",
        "threads in a circle: take their locks in one order everywhere",
        "parking_lot deadlock.rs",
        rules=("circle-found-by-its-runtime",),
        pasted_from=r"text:(?:rust|loose)",
        given=("text",),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Print all stacks (gdb -p PID -batch -ex 'thread apply all bt'). In each thread that the line names, the "
        "caller of the lock function shows which lock it asks for; take these locks in the same order everywhere",
        "the line names the threads, not their locks",
        "gdb-pthread-mutex helpers",
        rules=("threads-in-a-circle",),
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Read the detector's whole report around that line: it names the threads and their locks; take these locks "
        "in the same order everywhere",
        "the detector knows who holds what",
        "OpenJDK vframe.cpp; ThreadSanitizer; Linux lockdep",
        pasted_from=r"(?!text:(?:rust|loose))",
        rules=("circle-found-by-its-runtime", "opposite-orders-seen", "rows-in-a-circle"),
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Read the JVM's whole deadlock report around that line: it names the threads and their locks; take these locks "
        "in the same order everywhere",
        "the detector knows who holds what",
        "OpenJDK vframe.cpp",
        rules=("locked-twice",),
        line=BY_OPENJDK,
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Read the report on stderr just before this stack (absl: `Potential Mutex deadlock`): it names the locks and "
        "where each was taken; take these locks in the same order everywhere",
        "the lock found two orders and ended the program on purpose; nothing hung",
        "abseil-cpp synchronization/mutex.cc",
        through=LOCK_CHECKS,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Find where this thread first took the lock: in an outer frame of its stack, such as the caller of a "
        "callback; release it there, or make the lock recursive",
        "the lock noticed that its owner asked for it again, and refused",
        "pthread_mutex_lock(3), EDEADLK",
        rules=("would-wait-for-itself",),
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Find where the thread of that line first took the lock: in an outer frame of its stack, such as the caller of "
        "a callback; release it there, or make the lock recursive",
        "a lock that is not recursive blocks its own owner",
        "pthread_mutex_lock(3)",
        rules=("locked-twice",),
        not_line=BY_OPENJDK,
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Break the circle between the static initializers on the stacks, or load one of these classes from a single "
        "thread at start (Class.forName)",
        "the JVM initializes a class once, and holds a lock of that class meanwhile",
        "JVM specification, 5.5 Initialization",
        through=STATIC_INITIALIZER,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Before the join, release the locks that the thread still needs, and tell it to end (set its event, put its "
        "last item)",
        "while a thread joins another one, it can do nothing that this one waits for",
        "Python Lib/threading.py, Thread.join",
        itself=False,
        knows=_JOINS,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Find the code that should wake the waiting threads (notify, put, release, set): no thread is left to run it, "
        "or it ran before they waited",
        "what they wait for has no owner: any thread of the process could have given it",
        "pthread_cond_wait(3)",
        kinds=("condvar-idle", "ipc-queue"),
        itself=False,
        lacks=_JOINS,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Find the code that should release this semaphore (release(), sem_post()): a process that was killed, or ended "
        "early, between acquire and release has never given it back",
        "a semaphore, and a Lock of multiprocessing, has no owner, and is not released when a process ends",
        "sem_overview(7); CPython Modules/_multiprocessing/semaphore.c",
        kinds=("mutex",),
        itself=False,
        through=_SEMAPHORES,
        not_through=_OF_PYTHON,
    ),
    RemedyRule(
        "lock-order-deadlock",
        _ONE_ORDER,
        _IN_A_CIRCLE,
        "Python Lib/threading.py",
        kinds=("mutex",),
        itself=False,
        through=_OF_PYTHON,
    ),
    RemedyRule(
        "lock-order-deadlock",
        _ONE_ORDER,
        _IN_A_CIRCLE,
        "pthread_mutex_lock(3)",
        itself=False,
        not_rules=("would-wait-for-itself",),
        not_through=f"{LOCK_CHECKS}|{_SEMAPHORES}",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not call a library (CUDA, an allocator) while holding a lock that its hooks or callbacks also take",
        "the library holds its own lock while it calls them",
        "ofiwg/libfabric#9003",
        kinds=("mutex",),
        itself=False,
        not_through=LOCK_CHECKS,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Run without the profiler, or update it; if it is your own, let what its handler uses initialize before the "
        "sampling starts, and block its signal around that",
        "the sample interrupted code that holds the lock, and that code continues only when the handler returns",
        "HPCToolkit perf/linux_perf.c; gperftools profile-handler.cc; signal-safety(7)",
        itself=True,
        through=SAMPLES,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not allocate memory, take locks or write logs in a signal handler: set a flag or write() to a pipe "
        "there, and do the work outside the handler",
        "the signal interrupted code that holds the lock, and that code continues only when the handler returns",
        "signal-safety(7)",
        itself=True,
        through=INTERRUPTED,
        not_through=SAMPLES,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Update the allocator, whose own code takes the lock twice, or run with another allocator",
        "an allocator that allocates, frees or unwinds a stack while it holds its lock waits for itself; the program "
        "cannot release that lock",
        "gperftools debugallocation.cc; malloc(3)",
        itself=True,
        rules=LOCKS_OF_ALLOCATORS,
        not_through=INTERRUPTED,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Take no lock and write no log in a signal handler, a __del__ or a callback that can run inside the locked "
        "code; else use a threading.RLock",
        "Python runs signal handlers and finalisers between any two instructions of that thread",
        "Python documentation, signal, Execution of Python signal handlers; threading, RLock",
        itself=True,
        rules=(TAKES_LOCK,),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Release the lock before the call or callback that takes it again, or make the lock recursive",
        "a lock that is not recursive blocks its own owner",
        "pthread_mutex_lock(3)",
        itself=True,
        not_rules=(*LOCKS_OF_ALLOCATORS, TAKES_LOCK),
        not_through=f"{INTERRUPTED}|{READER_WRITER}",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Release the reader-writer lock before the call or callback that takes it again",
        "whoever holds it, even only for reading, blocks itself when it asks for it for writing; such a lock cannot be "
        "made recursive",
        "pthread_rwlock_wrlock(3)",
        itself=True,
        not_rules=LOCKS_OF_ALLOCATORS,
        through=READER_WRITER,
        not_through=INTERRUPTED,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not join or wait for a thread while holding a lock that it needs (in a library's constructor: the "
        "loader's lock)",
        "the other thread cannot end before it gets the lock",
        "pthread_join(3); dlopen(3), initialisation functions",
        kinds=("mutex", "condvar-idle"),
        itself=False,
        not_through=LOCK_CHECKS,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread that holds the lock: {dump} > dump.txt; then gdbext diagnose dump.txt",
        "a shutdown that needs a lock waits as long as another thread keeps it",
        "pthread_mutex_lock(3), atexit(3)",
        kinds=("mutex",),
        through=SHUTS_DOWN,
        not_through=JOINS_OF_PYTHON,
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the non-daemon thread that Python waits for at exit (py-spy dump --pid {pid}), and change the code to "
        "stop it before exit, or make it a daemon thread",
        "Python waits at its end for every thread that is no daemon, by a lock that such a thread releases as it ends",
        "CPython pylifecycle.c, wait_for_thread_shutdown",
        kinds=("mutex",),
        through=JOINS_OF_PYTHON,
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Dump the child that has not ended (py-spy dump --native --pid CHILD; `ps --ppid {pid}` lists the children): "
        "it is itself waiting, or has not been told to stop",
        "a parent that joins a child waits as long as the child runs",
        "multiprocessing/popen_fork.py; wait(2)",
        kinds=_OUTSIDE[1:],
        through=JOINS_CHILDREN,
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Close every socket of that context before you end it, in the thread that uses it, with linger 0: "
        "socket.close(linger=0), ZMQ_LINGER",
        "the end of a ZeroMQ context waits for its sockets, and for messages that nobody takes",
        "zmq_ctx_term(3), zmq_setsockopt(3)",
        rules=(ENDS_ZMQ,),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread that has not ended ({dump}), and change the code to stop it before the join",
        _JOINED,
        "std::thread, atexit(3), threading._shutdown",
        kinds=_OUTSIDE[1:],
        not_through=f"{JOINS_CHILDREN}|{SLEEPS}|{WAITS_FOR_SIGNAL}",
        not_rules=(ENDS_ZMQ,),
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find out what that function waits for between its sleeps: read its code, and dump all threads ({dump})",
        "a shutdown that sleeps in a loop waits until something else is done, usually by another thread",
        "nanosleep(2); Sleep function (synchapi.h)",
        kinds=_OUTSIDE[1:],
        through=SLEEPS,
        not_through=JOINS_CHILDREN,
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread or process that the shutdown waits for (gdbext stacks), and change the code to stop it "
        "before that",
        _JOINED,
        "std::thread, atexit(3), threading._shutdown",
        kinds=_OUTSIDE,
        given=("live", "core"),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Abort the communicator on all ranks at the same time, with one thread per communicator; if the abort still "
        "hangs, kill the process",
        "an abort waits for kernels that wait for a peer; these end once the peer aborts too",
        "NCCL user guide, ncclCommAbort",
        through=ABORTS_COMMUNICATOR,
        kinds=_TEARS_DOWN,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Wait until all work of a communicator has finished before you destroy it; to abort several, abort them in "
        "the order in which their collectives were launched, or from separate threads",
        "the teardown waits for kernels and threads, and these wait for a peer or for another communicator's work",
        "NVIDIA/nccl#1013, #1777",
        kinds=_TEARS_DOWN,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Stop the daemon thread before the script ends (set an event that it checks, then join() it), or make it a "
        "non-daemon thread",
        "a daemon thread is stopped where it stands as Python shuts down, and keeps the locks that it holds",
        "Python documentation, threading, daemon threads",
        rules=("stream-locked-at-its-end",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "If something else is wrong, look for its error elsewhere in the log; to end the message, close the object "
        "yourself (`with`, close()), or update its library",
        "Python prints and ignores an exception in __del__, which may run in any thread and at any time",
        "Python documentation, object.__del__, sys.unraisablehook",
        line=IGNORED,
        not_line=FATAL,
    ),
    *(
        RemedyRule(
            "destructor-or-teardown",
            "Stop threads and free CUDA objects before main() returns (in Python: before the script ends), not in "
            "static destructors or exit handlers",
            "during exit the driver or the interpreter may already be shut down",
            "NVIDIA/nccl#829",
            kinds=kinds,
            through=through,
            line=line,
            not_rules=("stream-locked-at-its-end",),
        )
        for kinds, through, line in (
            ((*ALLOCATES, "stream-sync", "device-sync", "cuda-error-throw"), "", ""),
            (_DEAD_OR_LOCKED, OF_CUDA, ""),
            (_DEAD_OR_LOCKED, "", OF_CUDA),
        )
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Stop threads and free objects before main() returns (in Python: before the script ends), not in static "
        "destructors or exit handlers",
        "during exit libraries and the interpreter may already be shut down",
        "ISO C++, basic.start.term; CPython pylifecycle.c",
        kinds=_DEAD_OR_LOCKED,
        not_rules=("stream-locked-at-its-end",),
        not_through=OF_CUDA,
        not_line=f"{OF_CUDA}|{IGNORED}",
    ),
    RemedyRule(
        "shm-too-small",
        "Check how full /dev/shm is (df -h /dev/shm). In a container, enlarge it: docker run --shm-size=1g "
        "(Kubernetes: an emptyDir with medium: Memory); otherwise delete old files there, or use fewer loader workers",
        "NCCL needs about 10 MB per connection there, data loaders more; docker's default is 64 MB",
        "NCCL user guide, troubleshooting",
        not_said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Check whether the rank's cgroup reached its limit (memory.events, memory.max), and whether a mapped file "
        "was truncated or removed: grep deleted /proc/PID/maps; ls -lL /proc/PID/map_files as root",
        "the page may be missing because the container reached its memory limit, or because the mapped file ends "
        "before the page",
        "mmap(2), SIGBUS; kernel documentation, cgroup-v2 memory.max",
        said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Check the RAM, on the host: dmesg -T | grep -i 'memory failure'",
        "the kernel also sends SIGBUS for access to a page that the hardware reported as broken",
        "sigaction(2), BUS_MCEERR_AR",
        said="shm-room",
    ),
    RemedyRule(
        "fork-after-cuda",
        _SPAWN,
        "a forked child has its parent's locks, but not the threads that would release them",
        "torch.multiprocessing notes",
        python=True,
    ),
    RemedyRule(
        "fork-after-cuda",
        _SPAWN,
        "CUDA cannot be used in a child that was forked after its parent had initialised it",
        "torch.multiprocessing notes",
        python=False,
        rules=("fork-after-cuda",),
    ),
    RemedyRule(
        "fork-after-cuda",
        "Take no lock in the child between fork() and exec(), or use posix_spawn(); in a library, protect the locks "
        "with pthread_atfork()",
        "a forked child has its parent's locks, but not the threads that would release them",
        "fork(2), pthread_atfork(3)",
        python=False,
        not_rules=("fork-after-cuda",),
    ),
)
