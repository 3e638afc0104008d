"""Locks as they lie in memory and on stacks (glibc 2.25 and later, x86-64)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.knowledge.frames.python import interpreter
from gdbext.knowledge.frames.system.code_owners import C_LIBRARY_MODULES, CUDA_DRIVER_MODULES
from gdbext.model.codes import Code
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex

SYMBOL = "symbol of what is waited for"
"""What debuggers print behind the address of a lock that is a variable, as a captured value: `gil_cond+40`."""
JOINS_THREAD = "threadid"
"""The argument of pthread_join(3) as debuggers print it: what pthread_self() returns in the thread that is to end."""

JOIN_CALLS = r"_*(GI_)?_*pthread_\w*join"
"""Its functions (glibc nptl/pthread_join_common.c); pthread_kill(3) and others have an argument of that name, too."""

UNTIL = "abstime"
"""The argument of glibc's waits that says until when: 0 for no limit."""


@dataclass(frozen=True)
class LockCall:
    """A function that waits, and what for."""

    pattern: str  # matched on the whole name
    kind: str
    source: str


_GLIBC = "glibc nptl/: names with and without debug files"

LOCK_CALLS = (
    LockCall(r"_*(GI_)?_*pthread_mutex_(cond_|timed|clock)?lock\w*", "mutex", _GLIBC),
    LockCall(r"_*(GI_)?_*pthread_rwlock_(timed|clock)?(rd|wr)lock\w*", "rwlock", _GLIBC),
    LockCall(r"_*(GI_)?_*pthread_cond_(timed|clock)?wait\w*", "condvar", _GLIBC),
    LockCall(r"_*(new_|GI_)?_*sem_(timed|clock)?wait\w*", "semaphore", _GLIBC),
    LockCall(
        r"_*(GI_)?_*pthread_once\w*|(__cxxabiv1::)?__cxa_guard_acquire",
        "once",
        "glibc nptl/pthread_once.c; libstdc++ guard.cc",
    ),
    LockCall(r"_*(GI_)?_*pthread_(timed|clock)?join\w*", "join", _GLIBC),
    LockCall(r"_*(GI_)?_*pthread_barrier_wait\w*", "barrier", _GLIBC),
    LockCall(
        r"_*(libc_|GI_)*_*(malloc|free|calloc|realloc|memalign|aligned_alloc|posix_memalign|valloc)|_int_(malloc|free\w*|realloc"
        r"|memalign)|arena_get\w*|sysmalloc\w*|tcache_init|malloc_consolidate",
        "malloc",
        "glibc malloc/: arenas have bare lock words",
    ),
)
"""The innermost frame that matches says what a thread waits for."""

_CALLS = tuple((regex(rf"(?:{row.pattern})\Z"), row.kind) for row in LOCK_CALLS)


def kind_of_call(function: str) -> Optional[str]:
    """What a thread in that function waits for, a key of `KINDS`; None where no row knows it."""
    return next((kind for pattern, kind in _CALLS if pattern.match(function)), None)


GIL_CALL = next(rule.function for rule in interpreter.RULES if rule.id == "gil-take")
"""Frames outside of the wait that make it one for the GIL."""

THREAD_STARTS = r"_*(GI_+)?clone3?$"
"""The first function of a thread that the C library has started (sysdeps/unix/sysv/linux/*/clone3.S)."""

CONDITION_LEFT = r"__condvar_quiesce_and_switch_g1$|_*(GI_+)?pthread_cond_destroy$"
"""Functions that wait until threads which were woken have left a condition variable (glibc nptl/pthread_cond_common.c,
pthread_cond_destroy.c): the former where somebody signals or broadcasts."""

INSIDE = (
    r"(\?\?|futex_\w+|_*(GI_)?_*(futex|lll)_\w+|do_futex\w*|syscall|_*(GI_)?_*libc_\w*lock\w*|PyCOND_\w+|PyThread_\w+"
    r"|_*(GI_)?_*rtld_\w+|std::\w*mutex::lock|__gthread_\w+)"
)
"""Frames that may stand inside or between the calls above without saying anything."""

LOADER_MODULES = r"ld(-linux[\w-]*)?([-.]\d[\d.]*)?\.so"
"""The file in whose memory `_rtld_global` lies, and with it `_dl_load_lock`."""

DRIVER_MODULES = CUDA_DRIVER_MODULES
LIBRARY_MODULES = C_LIBRARY_MODULES

NO_OWNER = {
    "condvar": "a condition variable has no owner: any thread that makes the condition true can wake it",
    "semaphore": "a semaphore has no owner: any thread may post it",
    "once": "the word of an initialiser does not say who runs it",
    "barrier": "a barrier has no owner: it opens when the last thread arrives",
    "malloc": "the lock word of malloc does not say who holds it",
}
"""Why some kinds never have one."""


OF_RUNTIMES = {
    4: "an illegal instruction: faulthandler and engines print a stack, and the process dies",
    5: "a trap: the same",
    6: "abort: the same",
    7: "a bus error: the same",
    8: "an arithmetic fault: the same",
    11: "a wrong address: the same",
    27: "SIGPROF: profilers take samples",
    32: "glibc's own, for pthread_cancel (nptl/nptl-init.c, SIGCANCEL)",
    33: "glibc's own, for set*id calls of all threads (SIGSETXID)",
}
"""Signals whose handlers let no thread go on."""

KEYBOARD = 2
"""SIGINT: Python always has a handler for it, which ends what waits with an exception (signal, default_int_handler)."""

TOLD_TO_END = 15
"""SIGTERM: what its handler lets go on is the end of the program."""
CHILD_ENDED = 17
"""SIGCHLD: it comes to who has children."""

BY_HANDLER = {"semaphore": True, "futex": True, "condvar": False}
"""Waits that a signal handler can end, and whether it may: it may post a semaphore, and must not wake a condition
variable (signal-safety(7)); some do."""

LET_GO = Missing("it was released just before the sample: the thread is about to run", Code.MOVING)
HANDED_OVER = Missing("no thread holds it at this moment: it is being handed over", Code.MOVING)
"""Why a lock that has owners had none at the moment of the look: it changes hands."""
PARKED = Missing(
    "glibc has put the thread to sleep for good: the kernel refused its priority-inheriting mutex, because that would "
    "close a circle or the owner has ended",
    Code.PARKED,
)


@dataclass(frozen=True)
class MutexLayout:
    """Offsets in `pthread_mutex_t` (sysdeps/x86/nptl/bits/struct_mutex.h) and the bits of `__kind`."""

    lock: int = 0
    count: int = 4
    owner: int = 8
    kind: int = 16
    size: int = 40
    known_kinds: int = 0x3FF  # bits that any release uses (nptl/pthreadP.h)
    robust: int = 0x10
    inherits: int = 0x20
    shared: int = 0x80
    owner_in_lock: int = 0x3FFFFFFF  # FUTEX_TID_MASK: robust and priority-inheriting ones keep the owner there


@dataclass(frozen=True)
class RwlockLayout:
    """Offsets in `pthread_rwlock_t` (sysdeps/x86/nptl/bits/struct_rwlock.h); waiters sleep on one of `futexes`."""

    readers: int = 0
    futexes: Tuple[int, ...] = (8, 12)
    writer: int = 24
    shared: int = 28
    size: int = 56
    reader_shift: int = 3
    write_phase: int = 1
    write_locked: int = 2


MUTEX = MutexLayout()
RWLOCK = RwlockLayout()
MUTEX_TYPES = ("", "recursive", "error-checking", "adaptive")
CONDVAR_FUTEXES = (40, 44)
"""Offsets of `__g_signals` in `pthread_cond_t`: what waiters sleep on."""
BARRIER_ROUND = 4
"""Offset of `current_round` in a barrier: in@0, current_round@4, count@8 (nptl/internaltypes.h)."""

MOST_IDS = 1 << 22
"""Ids of threads are smaller on 64-bit Linux (PID_MAX_LIMIT, linux/threads.h)."""

WAITS = {0: "WAIT", 9: "WAIT_BITSET", 11: "WAIT_REQUEUE_PI"}
LOCKS_OF_KERNEL = {6: "LOCK_PI", 13: "LOCK_PI2"}
PRIVATE, COMMAND = 128, 0x7F
"""Operations of futex(2) (linux/futex.h)."""
