"""Locks and waits that libraries, languages and other systems make themselves: not those of the C library."""

from gdbext.knowledge.engines.frame_rows import lock
from gdbext.knowledge.frame_precedence import LEAF, LOCK
from gdbext.knowledge.row_kinds import FrameRule

_ABSL = r"absl::(lts_\w+::|debian\w*::)?"


def _sleep(id: str, function: str, source: str, under: str = "") -> FrameRule:
    """A function in which a thread sleeps until another one wakes it."""
    return FrameRule(id, "condvar-idle", function, source, rank=LEAF, under=under)


LOCKS_OF_ALLOCATORS = ("lock-tcmalloc", "lock-jemalloc", "lock-malloc-private")
"""Rows of locks that a program gets only by allocating or freeing memory."""

RULES = (
    lock(
        "lock-sqlite",
        r"(sqlite3InvokeBusyHandler|btreeInvokeBusyHandler|walBusyLock|sqliteDefaultBusyCallback)$",
        "sqlite.org/c3ref/busy_handler.html: sleeps and tries again while another connection has the database locked",
    ),
    _sleep(
        "wait-absl-condition",
        rf"{_ABSL}Mutex::(\w*LockSlow\w*|Block|UnlockSlow)$",
        "abseil-cpp synchronization/mutex.cc, notification.cc: takes the lock once a condition holds",
        under=rf"{_ABSL}(Mutex::(\w*LockWhen\w*|\w*Await\w*)|MutexLock\w*::MutexLock\w*When|Notification::WaitFor|BlockingCounter::Wait|Barrier::Block)",
    ),
    _sleep("wait-absl", rf"{_ABSL}Mutex::(Reader|Writer)?LockWhen\w*", "abseil-cpp synchronization/mutex.h"),
    lock(
        "lock-absl",
        rf"{_ABSL}(base_internal::(SpinLock|CallOnce|call_once)|Mutex::((Reader|Writer)?Lock|lock(_shared)?$)|call_once)"
        rf"|AbslInternalSpinLockDelay",
        "abseil-cpp base/internal/spinlock.cc, synchronization/mutex.cc; grpc#38020",
        captures=("w",),
    ),
    lock(
        "lock-tcmalloc",
        r"(base::(internal|subtle)::)?SpinLock(Delay|Holder|::)|tcmalloc::CentralCacheLockAll"
        r"|tcmalloc::tcmalloc_internal::AllocationGuard",
        "gperftools src/base/spinlock.cc; gperftools#932, #1212",
        captures=("w",),
    ),
    lock(
        "lock-jemalloc",
        r"(je_|_rjem_je_)?(malloc_mutex_(lock|prefork)\w*|mutex_pool_lock\w*|jemalloc_prefork|arena_prefork\w*"
        r"|tcache_prefork|extents_prefork|base_prefork)",
        "jemalloc src/mutex.c; jemalloc#2402",
    ),
    lock("lock-malloc-private", r"mi_lock_\w+|_mi_prim_\w*lock|ptmalloc_lock", "mimalloc, ptmalloc"),
    lock(
        "lock-nsync",
        r"nsync::nsync_(mu_r?lock|spin_test_and_set|mu_wait)|(tensorflow|tsl)::mutex::lock",
        "nsync internal/mu.c",
    ),
    lock(
        "lock-rust",
        r"(parking_lot::|lock_api::|std::(sys|sync|sys_common)::|spin::)(\w+::)*(Raw)?(Mutex|RwLock|FairMutex"
        r"|ReentrantLock|ReentrantMutex|Once)"
        r"(<.*>)?::(lock|read|write|call|wait)",
        "Rust std::sync, parking_lot, spin",
    ),
    lock(
        "lock-zig",
        r"Thread\.(Mutex|RwLock)(\.\w+)*\.(lock\w*|writeLock\w*|readLock\w*)$",
        "Zig lib/std/Thread/Mutex.zig, RwLock.zig",
    ),
    lock(
        "lock-postgres",
        r"LWLock(Acquire\w*|WaitForVar)$",
        "PostgreSQL storage/lwlock.h: sleeps on a semaphore until the holder of the lock wakes it",
    ),
    _sleep(
        "wait-zig", r"Thread\.(Condition|ResetEvent|Semaphore|Futex)(\.\w+)*\.(wait|timedWait)$", "Zig lib/std/Thread"
    ),
    lock(
        "lock-folly",
        r"folly::(\w*SpinLock|SharedMutex|DistributedMutex|detail::distributed_mutex)\w*(<.*>)?::\w*[lL]ock",
        "folly/synchronization",
    ),
    lock(
        "lock-library",
        r"ucs_(recursive_)?(spin|mutex)_lock|bthread_mutex_\w*lock|bthread::\w*Mutex\w*::lock"
        r"|boost::(\w+::)*\w*mutex::\w*lock|bthread::mutex_lock_contended\w*"
        r"|Q(Basic|Recursive)?Mutex::lock|tbb::(\w+::)*\w*(spin|queuing|rw)_\w*mutex|uv_(mutex|rwlock)_\w*lock"
        r"|CRYPTO_THREAD_\w+_lock"
        r"|H5TS_mutex_\w*lock|H5_api_lock|sqlite3_mutex_enter|pthreadMutexEnter|i?jl_mutex_(lock|wait)|jl_spin_wait",
        "UCX, brpc, Boost, Qt, TBB, libuv, OpenSSL, HDF5, SQLite, Julia",
    ),
    lock(
        "lock-openmp",
        r"GOMP_critical(_name)?_start|gomp_mutex_lock|omp_set_(nest_)?lock|__kmpc_(critical|set_lock)"
        r"|__kmp_(acquire_\w*lock|lock_suspend_mx)",
        "libgomp, libomp",
        rank=LOCK + 1,
    ),
    lock(
        "lock-darwin",
        r"(__psynch_(mutexwait|rw_\w+)|_pthread_mutex_(firstfit_)?lock\w*|_?os_unfair_(recursive_)?lock_\w*"
        r"|OSSpinLockLock|objc_sync_enter"
        r"|_dispatch_once_wait|dispatch_once(_f)?|_dispatch_sync_(wait|f_slow)|__DISPATCH_WAIT_FOR_QUEUE__)$",
        "Darwin libpthread, libplatform and libdispatch",
    ),
    lock(
        "lock-spin-public",
        r"(__)?pthread_spin_(try)?lock$|_?_?raw_spin_lock\w*$",
        "POSIX: who tries again and again waits",
        rank=LEAF + 3,
    ),
    _sleep(
        "wait-darwin",
        r"(__psynch_cvwait|semaphore_(timed)?wait(_signal)?_(trap|continue)|__ulock_wait2?|__semwait_signal(_nocancel)?"
        r"|__workq_kernreturn|swtch_pri|_dlock_wait"
        r"|cthread_yield|_?dispatch_(semaphore|sema4|group|thread_event)_wait\w*)$",
        "Darwin",
    ),
    FrameRule(
        "io-darwin",
        "io",
        r"(mach_msg2?(_trap|_overwrite|_internal)*|kevent(64|_id|_qos)?|__CFRunLoopServiceMachPort|CFRunLoopRun\w*)$",
        "Darwin",
        rank=LEAF,
    ),
    _sleep(
        "wait-nsync",
        r"nsync::(nsync_(cv|mu_semaphore|sem|note|counter|wait)_?\w*|futex)|(tensorflow|tsl)::condition_variable::wait",
        "nsync, TensorFlow",
    ),
    _sleep(
        "wait-absl",
        rf"{_ABSL}(synchronization_internal::|Mutex::(Block|Await)|CondVar::|Notification::WaitFor"
        rf"|BlockingCounter::Wait|Barrier::Block)"
        r"|AbslInternalPerThreadSem",
        "abseil-cpp synchronization/",
    ),
    _sleep(
        "wait-standard",
        r"_*(GI_)?_*pthread_barrier_wait|std::(latch|barrier(<.*>)?|counting_semaphore(<.*>)?|__atomic\w*wait\w*"
        r"|__atomic_semaphore\w*)",
        "POSIX, C++20",
    ),
    _sleep(
        "wait-rust",
        r"std::(thread::park|sys::(\w+::)*(futex_wait|Parker::park|Condvar::wait)|sync::mpsc::)"
        r"|parking_lot::condvar::|crossbeam_(channel|utils)::"
        r"|tokio::(runtime::park|runtime::context|runtime::runtime|loom|sync)::|futures_executor::|pollster::",
        "Rust std, parking_lot, crossbeam, tokio",
    ),
    _sleep(
        "wait-library",
        r"folly::(Baton|LifoSem|detail::(Futex|\(anonymous namespace\)::\w*[fF]utexWait)|Latch"
        r"|futures::detail::waitImpl|coro::\w*[bB]locking\w*)"
        r"|boost::(\w+::)*(condition_variable\w*|barrier|interprocess_\w*(sem|cond)\w*)::\w*wait"
        r"|c10::ivalue::Future::wait|(tsl|xla|tensorflow)::(BlockUntilReady|Notification::WaitFor"
        r"|BlockingCounter::Wait)|Eigen::(Barrier|Notification)::Wait"
        r"|iree_(notification_\w*wait|futex_wait)|Q(WaitCondition::wait|Semaphore::acquire)|uv_(cond|sem"
        r"|barrier)_\w*wait|amd::(Semaphore|Monitor)::"
        r"|bthread::butex_wait|bthread_(join|id_join)",
        "folly, Boost, torch, XLA, Eigen, Qt, libuv, ROCclr, brpc",
    ),
)
