"""The C library and the loader: how a thread waits. These rows decide only where nothing better stands further out."""

from gdbext.knowledge.frame_precedence import FATAL, LEAF, LOCK
from gdbext.knowledge.frames.failures import CRASH_HANDLERS, RUST_PANICS, UNWRAPS
from gdbext.knowledge.row_kinds import FrameRule

_GLIBC = "glibc sources"

# The frame a signal leaves. killpg and __sigaction are its nearest names in stripped C libraries (Megatron-LM#516).
SIGNAL = r"(<signal handler called>|__restore_rt|__sigaction|killpg)$"

JOINS = ("os-join", "python-join")
"""Rules of waits for the end of a thread: whoever serves others waits for none."""

RUNS_ONCE = r"_*(GI_+)?_*pthread_once(_slow)?$"
"""Waits for an initialiser, or has called it (pthread_once(3), std::call_once)."""

ENDS_ZMQ = "zmq-term"
"""Frame rule of the end of a ZeroMQ context."""

UNTIL_THEN = {
    **dict.fromkeys(JOINS, "for a thread to end"),
    ENDS_ZMQ: "until all sockets of that context are closed and what they were to send is sent",
}
"""What a shutdown waits for, by frame rule."""

GO_PARK = "go-park"
"""Frame rule of a thread of Go's run-time that has no goroutine to run."""

STUCK_HANDLER = dict.fromkeys(("os-signal", "signal-in-wait", "os-abort", "crash-handler"), ("mutex", "gil"))
"""Rules of a signal's frame, and waits inside of it that no handler comes back from: the thread is stuck, not dead."""

ASLEEP = r"_*(GI_)?_*(lll_(mutex_)?lock_wait|futex_|do_futex|syscall)"
"""What a thread that got no lock sleeps in."""

CANCELLABLE = r"__(?:internal_)?syscall_cancel$"
"""What the C library makes such calls by since glibc 2.41; the argument `nr` is their number."""

_EVENTS = r"_*(GI_)?_*(select|pselect|epoll_p?wait|p?poll|accept4?|recv(from|msg)?|read)$"
"""Calls that wait for an event. A signal that comes in one was sent by another process, and a handler that waits for
events in turn goes on: so a server of PostgreSQL forks its helpers."""

RULES = (
    FrameRule(
        "signal-shared-memory",
        "sigbus",
        SIGNAL,
        "NCCL 2.12-2.18 extends /dev/shm files and writes to them: SIGBUS when it is full",
        rank=FATAL + 1,
        under=r"(ncclShm\w*|shm(Open|Map|Setup|Allocate)\w*|\w*(::)?\w*SharedMemory\w*|at::\w*MapAllocator)",
    ),
    FrameRule(
        "signal-in-nccl",
        "sigbus",
        SIGNAL,
        "where NCCL has no symbols: the memory that it clears or copies to itself is shared memory",
        rank=FATAL + 1,
        under=r"_*(GI_)?_*mem(set|cpy|move)\w*",
        caller=r"lib(nccl|rccl)",
    ),
    FrameRule("os-signal", "exited-or-crashed", SIGNAL, _GLIBC, rank=FATAL, not_under=_EVENTS),
    FrameRule("signal-in-wait", "exited-or-crashed", SIGNAL, _GLIBC, rank=FATAL, under=_EVENTS, calls=_EVENTS),
    FrameRule(
        "os-abort",
        "exited-or-crashed",
        r"(abort|__GI_abort|__abort|__assert_(fail|rtn)\w*|__pthread_kill_implementation|__pthread_kill_internal|raise"
        r"|__fortify_fail\w*|__stack_chk_fail|__libc_message\w*|malloc_printerr|abort_message|_?Py_FatalError\w*"
        r"|std::terminate|__verbose_terminate_handler|__gnu_cxx::__verbose_terminate_handler|ncclDebugAbort"
        r"|runtime\.(throw|fatalthrow|fatalpanic|gopanic|sigpanic|dieFromSignal|panicmem)|VMError::report_and_die"
        r"|core::panicking::\w+|rust_panic|rust_begin_unwind|V8_Fatal|node::Abort|objc_exception_throw"
        r"|KiUserExceptionDispatch\w*|RtlRaiseException|RaiseException|UnhandledExceptionFilter)$",
        _GLIBC,
        rank=FATAL,
    ),
    FrameRule(
        "crash-handler",
        "exited-or-crashed",
        CRASH_HANDLERS,
        "UCX debug.c; glog signalhandler.cc; ggml.c; folly SignalHandler.cpp; absl failure_signal_handler.cc; "
        "backward.hpp; breakpad exception_handler.cc; LLVM Signals.inc; Open MPI stacktrace.c; MVAPICH; Julia",
        rank=FATAL,
    ),
    FrameRule(
        "rust-panic",
        "exited-or-crashed",
        rf"({RUST_PANICS}|{UNWRAPS}|core::panicking::|rust_begin_unwind|rust_panic\b|__rust_start_panic)",
        "Rust library/std/src/panicking.rs",
        rank=FATAL - 1,
    ),
    FrameRule("os-exit", "exited-or-crashed", r"(_exit|exit_group)$", _GLIBC, rank=FATAL),
    FrameRule(
        "os-mutex",
        "mutex",
        r"(_*(pthread_mutex_(timed|clock)?lock\w*|lll_lock_wait\w*|lll_mutex_lock\w*|pthread_rwlock_\w*(rd|wr)lock\w*)|__lll_lock_wait\w*"
        r"|pthread_spin_lock|__lock(file)?|std::(__\w+::)?(shared_|timed_|recursive_|__shared_mutex_|shared_timed_)*(mutex|base|pthread)::lock\w*"
        r"|_thr_(umutex|rwlock)_(rd|wr)?lock\w*|__thr_(umutex|rwlock)_(rd|wr)?lock\w*|_*GI_+(pthread_mutex_(timed|clock)?lock\w*|pthread_rwlock_\w*(rd|wr)lock\w*)|mtx_(timed)?lock"
        r"|(__cxxabiv1::)?__cxa_guard_acquire|__gthread_(recursive_)?mutex_(timed)?lock|absl::(lts_\w+::)?Mutex::Lock\w*)$",
        _GLIBC,
        rank=LOCK,
    ),
    FrameRule(
        "os-once",
        "mutex",
        r"(pthread_once|_*pthread_once_slow)$",
        "glibc nptl/pthread_once.c: whoever runs the initialiser itself waits for nobody",
        rank=LOCK,
        calls=r"(?!_*(GI_)?_*(futex|syscall|lll_|internal_syscall))",
    ),
    FrameRule(
        "os-loader-lock",
        "mutex",
        r"_*(dl_iterate_phdr|dl_open\w*|dlopen\w*|dl_close\w*|dlclose|tls_get_addr\w*|dl_fixup|dl_runtime_resolve\w*|rtld_mutex\w*)$",
        "the loader's lock; auto-round#1701, threadpoolctl#239. A join or a wait inside is an initialiser's that the "
        "loader runs: pytorch#189110",
        rank=LOCK - 1,
        calls=r"_*(GI_)?_*(pthread_(clock|timed)?join|pthread_cond_\w*wait|__gthread_(active_)?join)|std::(__\w+::)?j?thread::join|std::\w*condition_variable",
    ),
    FrameRule(
        "os-malloc-lock",
        "mutex",
        r"_*(malloc_fork_lock\w*|arena_get\w*|malloc_atfork|fork_\w+lock)$",
        _GLIBC,
        rank=LOCK,
    ),
    FrameRule(
        "os-condvar",
        "condvar-idle",
        r"_*(GI_)?_*(pthread_cond_(\w*wait\w*|destroy\b)|cnd_(timed)?wait\b|std::\w*condition_variable\w*::wait\w*)|std::(_V2::|__\w+::)?condition_variable\w*::(?!notify)|_thr_ucond_wait|__gthread_cond_(timed)?wait",
        _GLIBC,
        rank=LEAF,
    ),
    FrameRule(
        "os-join",
        "condvar-idle",
        r"_*(GI_)?_*(pthread_(clock|timed)?join\w*|thrd_join$|__gthread_(active_)?join$|std::(__\w+::)?j?thread::join|std::(sys::[\w:]+::)?thread::(Thread|Join\w+(<.*>)?)::join$|uv_thread_join$|std::__future_base::_State_base\w*::wait\w*|std::(__basic_|__\w+::)?(shared_)?(future\w*(<.*>)?|__assoc_sub_state)::(get|wait)\w*)",
        _GLIBC,
        rank=LEAF + 2,
    ),
    FrameRule(
        "os-semaphore",
        "condvar-idle",
        r"_*(GI_)?_*(new_)?sem_(timed|clock)?wait\w*|do_futex_wait\w*|_*(GI_)?_*sem(timed)?op(_time64)?$",
        _GLIBC,
        rank=LEAF,
    ),
    FrameRule(
        "os-futex",
        "condvar-idle",
        r"_*(GI_)?_*futex_?\w*wait\w*|syscall$|__syscall_cancel\w*$|__timedwait(_cp)?$",
        _GLIBC,
        rank=LEAF - 1,
    ),
    FrameRule(
        "os-sleep-python",
        "python-code",
        r"_*(GI_)?_*(clock_nanosleep|nanosleep|usleep|sleep|select|pselect)(_nocancel|_time64|64)?$",
        _GLIBC,
        rank=LEAF + 2,
        caller="python",
    ),
    FrameRule(
        "os-sleep",
        "condvar-idle",
        r"_*(GI_)?_*(libc_)?(clock_nanosleep|nanosleep|usleep|sleep|pause|sigsuspend|sigtimedwait)(_nocancel|_time64|64)?$|thrd_sleep$|std::(__\w+::)?this_thread::sleep",
        _GLIBC,
        rank=LEAF,
    ),
    FrameRule(
        "os-copy",
        "native-compute",
        r"_*(GI_)?_*mem(cpy|move|set|cmp|chr)(_\w+)?$",
        f"{_GLIBC}; a thread of a pool that copies is at no rest: kvcache-ai/Mooncake#1986",
        rank=LEAF + 3,
        leaf=True,
    ),
    FrameRule("go-join", "condvar-idle", r"sync\.\(\*WaitGroup\)\.Wait$", "Go sync/waitgroup.go", rank=LEAF),
    FrameRule(
        GO_PARK,
        "condvar-idle",
        r"runtime\.(gopark|goparkunlock|chanrecv1|chanrecv2|selectgo|notesleep\w*|futexsleep)$|sync\.\(\*Cond\)\.Wait$|time\.Sleep$",
        "Go runtime/proc.go, chan.go",
        rank=LEAF,
    ),
    FrameRule(
        "go-mutex",
        "mutex",
        r"(internal/)?sync\.(runtime_Semacquire(RW)?Mutex\w*|\(\*(RW)?Mutex\)\.(R?Lock|lockSlow))|runtime\.(lock2?|lockWithRank)$",
        "Go sync, runtime",
        rank=LOCK,
    ),
    FrameRule(
        "go-io", "io", r"internal/poll\.|poll\.\(\*(FD|pollDesc)\)|runtime\.netpollblock$", "Go netpoll", rank=LEAF + 1
    ),
    FrameRule(
        "java-park",
        "condvar-idle",
        r"(jdk\.internal\.misc|sun\.misc)\.Unsafe\.park$|java\.lang\.(Object\.wait0?|Thread\.sleep0?)$",
        "OpenJDK",
        rank=LEAF,
    ),
    FrameRule(
        "java-lock",
        "mutex",
        r"java\.util\.concurrent\.locks\.(Reentrant(ReadWrite)?Lock|StampedLock)(\$\w+)*\.(lock\w*|(read|write)Lock\w*)$",
        "OpenJDK java/util/concurrent/locks: whoever waits for such a lock is parked inside of it",
        rank=LOCK,
    ),
    FrameRule(
        "java-io",
        "io",
        r"sun\.nio\.ch\.(EPoll|KQueue|WEPoll|Net)\.(wait|poll)0?$|java\.net\.\w*SocketI(nput|mpl)\w*\.(socketRead0?|socketAccept|accept0?)$"
        r"|sun\.nio\.ch\.NioSocketImpl\.park$",
        "OpenJDK sun/nio/ch, java/net",
        rank=LEAF + 1,
    ),
    FrameRule(
        "julia-wait",
        "condvar-idle",
        r"(jl_task_get_next|poptask|try_yieldto|task_done_hook)$",
        "Julia task.jl",
        rank=LEAF,
    ),
    FrameRule(
        "clr-lock",
        "mutex",
        r"AwareLock::\w*(Enter|Contention)\w*|JIT_Mon(Enter|Reliable)\w*|CrstBase::Enter|System\.Threading\.(Monitor|Lock|SpinLock|ReaderWriterLockSlim)"
        r"\.\w*Enter\w*|Rtl\w*EnterCriticalSection\w*|(Rtl)?AcquireSRWLock\w*|_?(Mtx_lock|mtx_do_lock)$|Ldrp(AcquireLoaderLock|DrainWorkQueue)$",
        "dotnet/runtime#40190: CoreCLR vm/syncblk.cpp; Windows",
        rank=LOCK,
    ),
    FrameRule(
        "clr-wait",
        "condvar-idle",
        r"CorUnix::\w*(Wait|BlockThread)\w*|CorUnix::CPalSynchronizationManager::BlockThread|(Nt|Zw)?(WaitFor|SignalAndWaitFor)(Single|Multiple)Objects?(Ex)?$|(Nt|Zw)DelayExecution|SleepEx?$"
        r"|(Nt|Zw)(WaitForAlertByThreadId|YieldExecution)|SwitchToThread$|RtlpWaitOnAddress\w*|SleepConditionVariable\w*|CLREventBase::Wait\w*"
        r"|System\.Threading\.[\w.]*\.(\w*Wait\w*|Join|Sleep\w*)$",
        "dotnet/runtime#40190: CoreCLR pal/; Windows",
        rank=LEAF,
    ),
    FrameRule(
        "windows-io",
        "io",
        r"(Nt|Zw)(RemoveIoCompletion(Ex)?|ReadFile|WriteFile|DeviceIoControlFile)$|GetQueuedCompletionStatus(Ex)?$|WSP(Recv|Send|Select)\w*$",
        "Windows ntifs.h, ioapiset.h, ws2spi.h: completion ports, files and sockets",
        rank=LEAF + 1,
    ),
    FrameRule(
        "os-spawn",
        "io",
        r"_*(GI_)?_*(vfork|posix_spawnp?|spawni|spawnix)$",
        "posix_spawn(3), vfork(2): the caller waits until the child has begun its own program",
        rank=LEAF + 1,
    ),
    FrameRule("os-child", "io", r"_*(GI_)?_*(wait4|waitpid|waitid|libc_wait(?:pid)?$)\w*$", _GLIBC, rank=LEAF + 1),
    FrameRule(
        "os-file-lock",
        "io",
        r"_*(GI_)?_*(libc_)?(flock|lockf)(64)?(\$NOCANCEL)?$|(Nt|Zw)LockFile$|LockFileEx$|(flock|posix|locks)_lock_(file|inode)_wait|fcntl_setlk"
        r"|sun\.nio\.ch\.FileDispatcherImpl\.lock0$|syscall\.Flock$|filelock\.(L|RL)ock$|(fs2|fd_lock|fs4)::.*\block(_exclusive|_shared)?$"
        r"|ADIOI_\w*Set_?[lL]ock\w*$|unixLock$|H5FD_\w+_lock$",
        "flock(2), lockf(3); Linux fs/locks.c; Windows; OpenJDK; Go; ROMIO; SQLite; HDF5: only file locks wait here",
        rank=LEAF + 1,
    ),
    FrameRule(
        "os-io",
        "io",
        r"_*(GI_)?_*(libc_|lx_)?(poll|ppoll|select|pselect|epoll_p?wait|read|readv|pread\w*|write|writev|pwrite\w*|recv|recvfrom|recvmsg|send|sendto"
        r"|sendmsg|accept4?|connect|open(at)?|close|fsync|fdatasync|ioctl|fcntl\w*|io_getevents|io_uring_\w+|getdents\w*|msync|kevent|getaddrinfo"
        r"|(recv|send)mmsg|sendfile|copy_file_range|epoll_pwait2|sync_file_range|syncfs|posix_fallocate|fallocate|ftruncate|statx|sys_io_uring_\w+)(64)?(v2)?"
        r"(_chk|_nocancel|64|_time64|_2|\$NOCANCEL)?$",
        _GLIBC,
        rank=LEAF,
    ),
    FrameRule(
        "os-file-system",
        "io",
        r"_*(GI_)?_*(libc_)?([lf]?x?stat(at)?|fxstatat|f?statv?fs|f?access(at)?|unlink(at)?|rename(at2?)?|mkdir(at)?|rmdir|readlink(at)?|splice"
        r"|truncate)(64)?(_nocancel|_time64)?$",
        "stat(2), rename(2), ...: looks up a name, on a network's file system by asking its server",
        module=r"(libc|libpthread|libsystem_\w+|ld-musl[-\w]*|musl)([-.]|$)|$",
        rank=LEAF,
        leaf=True,
    ),
    FrameRule(
        "os-message-queue",
        "ipc-queue",
        r"_*(GI_)?_*(mq_(timed)?(send|receive)(_time64)?|msg(snd|rcv))$",
        "mq_overview(7), sysvipc(7)",
        rank=LEAF + 1,
    ),
    FrameRule(
        ENDS_ZMQ,
        "condvar-idle",
        r"zmq_(ctx_)?(term|destroy)$|zmq::ctx_t::terminate",
        "zmq_ctx_term(3): waits until all sockets of the context are closed, and what they were to send is sent",
        rank=LOCK + 1,
    ),
    FrameRule(
        "os-zmq",
        "ipc-queue",
        r"(zmq::|zmq_(poll|msg_recv|recv\w*|send\w*|msg_send)$|nng_|nanomsg)",
        "libzmq: message queues of the engines",
        rank=LOCK,
    ),
    FrameRule("os-grpc-wait", "io", r"grpc_completion_queue_(next|pluck)|grpc::CompletionQueue", "gRPC", rank=LOCK),
)
