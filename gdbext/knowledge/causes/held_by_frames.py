"""What the frames of a thread tell that it has or ends, besides what it waits for. Rows, no logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class HeldLock:
    """A lock of a library, by functions: inside `wants` one waits for it, and whatever `holds` calls runs with it held.

    Both are matched from the beginning of a function's name. `hooks`: it calls code of others on purpose, so that a
    wait for another lock there is worth a warning as well.
    """

    name: str
    wants: str
    holds: str
    source: str
    hooks: bool = False


_GLIBC = r"_*(?:GI_)?_*(?:libc_)?"

IN_LOADER = (
    r"_*(?:GI_)?_*(?:dl_iterate_phdr|dl_open\w*|dlopen\w*|dl_close\w*|dlclose|dl_fini|dl_init|call_init\w*)$"
    r"|(?:ntdll!)?(?:LdrpCallInitRoutine\w*|LdrShutdown\w*|LdrpInitialize\w*|LdrLoadDll|LdrUnloadDll|LoadLibrary\w*)"
)
"""Functions that hold the dynamic loader's lock while they run code of a library."""

HELD: Tuple[HeldLock, ...] = (
    HeldLock(
        "the allocator's lock",
        _GLIBC + r"(?:(?:m|c|re|p?v|aligned_)alloc|free|\w*memalign|cfree|int_\w*(?:alloc|free)\w*|malloc_\w+"
        r"|arena_get\w*|sysmalloc|systrim)(?:_impl)?$|(?:je|mi|rp|default|tc|scudo)_\w*(?:alloc|free|tcache|arena)\w*"
        r"|tcmalloc::|arena_\w+$|tcache_\w+$|huge_\w*alloc|operator (?:new|delete)",
        _GLIBC + r"(?:int_\w*(?:alloc|free)\w*|malloc_consolidate|sysmalloc|systrim|unlink_chunk\w*|malloc_trim|mtrim"
        r"|(?:default_|glibc_)?morecore)$"
        r"|(?:je_)?(?:arena|tcache|extent|huge|chunk)_\w+$|tcmalloc::|default_malloc$|alloc_slot$|alloc_group$",
        "glibc malloc/malloc.c; gperftools central_freelist.cc; jemalloc arena.c; musl mallocng",
        hooks=True,
    ),
    HeldLock(
        "the dynamic loader's lock",
        r"_*(?:GI_)?_*(?:dl_\w+|dlopen\w*|dlclose|dlsym|dlvsym|dladdr\w*|libc_dlopen\w*|tls_get_addr\w*)$"
        r"|(?:ntdll!)?(?:Ldr\w*|LoadLibrary\w*|FreeLibrary\w*|GetModuleHandle\w*)",
        IN_LOADER,
        "glibc elf/dl-open.c, dl-iteratephdr.c; Windows: Dynamic-Link Library Best Practices",
        hooks=True,
    ),
    HeldLock(
        "the lock of the time zone",
        r"_*(?:tz_convert|tzset\w*|localtime\w*|mktime|strftime\w*|offtime)$",
        r"_*(?:tz_convert|tzset\w*|tzfile_\w+|localtime\w*|mktime)$",
        "glibc time/tzset.c",
    ),
)
"""A new lock is a row. A thread inside of `holds` again, by a signal or a hook, waits for itself."""

INSIDE_LOCKS = r"(?i:.*(?:(?<![bc])lock|mutex|futex|wait|delay|syscall))"
"""Frames between a wait and the call that asked for the lock, by name; so are those of the C library."""

LOOPS = (
    r"(?i:\w*(?:run|loop|main|work|thread|exec|start|spin|serve|listen|poll|invoke|call|entry|join)\w*)$|operator\(\)"
)
"""Functions that call other code for as long as they live, and with nothing held: not those that tell of a change."""

NAME_ENDINGS = (
    r"(?:::)?(?:\{lambda|<lambda|\$_\d|\(anonymous class\)|\{\{closure).*"
    r"|\.(?:constprop|isra|part|cold)\.?\d*$|\.func\d+.*"
)
"""Ends of a function's name that are no part of the place that it belongs to."""

LET_GO_IN = (
    r"PyThread_acquire_lock\w*|lock_PyThread\w*|PyEval_SaveThread|.*gil_scoped_release|.*allow_threads"
    r"|time_sleep|pysleep"
)
"""Calls with which a thread of Python lets the GIL go before it waits."""

_LOCK = r"<(?P<lock>[^<>]{3,240})>"
WANTS_LINE = (
    r"- (?:waiting to (?:re-)?lock(?: in wait\(\))?|parking to wait for) {1,2}"
    + _LOCK
    + r"(?:, which is held by \"?(?P<holder>[^\"]{1,200}))?"
)
WANTS_CLASS_LINE = r"- waiting on the Class initialization monitor for (?P<lock>[\w.$]{1,240})"
HAS_LINE = r"- (?:locked {1,2})?" + _LOCK
LEFT_LINE = r"- waiting on {1,2}" + _LOCK
BLOCKS_LINE = r"- blocks (?P<thread>\S.{0,200})"
INITIALISES = r"(?P<lock>[\w.$]{1,240})\.<clinit>$"
"""Lines of a thread's stack by which a runtime names its locks: OpenJDK vframe.cpp. Who waits on one has let it go."""

FILE_LOCKS = ("extension-lock", "file-lock", "os-file-lock")
"""Frame rules of waits for locks that are files."""

INTERRUPTED = r"<signal handler called>$|_*restore_rt$|_sigtramp$|KiUserExceptionDispatch\w*|.*handle_fatal_signal$"
"""Frames whose caller did not call: what stands further out was interrupted, and goes on when this returns."""

SIGNAL_HANDLERS, SIGNAL_NUMBERS = r".*(?:[Hh]andler|[Ss]ig)", ("sig", "signum", "signo")
"""Functions that handle a signal, by their names, and the arguments by which they get its number: sigaction(2)."""

_NAMES = r"(?:.*(?:::|\.))?"
_RAII = (
    r"(?i:\w*(?:guard|lock(?:er)?|thread|future|scope\w*|scoped\w*|release|acquire|barrier|latch|wait\w*|join\w*"
    r"|group|message|log\w*|timer|state\w*|result|counter|block\w*)\b)"
)
_BUILDS = r"(?!.*(?i:cudnn.*finali[sz]e))"
"""Not what completes a plan or a descriptor, and calls that to finalize it (cudnnBackendFinalize)."""
_WAITS_FOR_AN_ORDER = r"(?!\w*(?i:wait|until|listen|signal|handler|watch|monitor|loop|should|request|_on_))"
ENDS = (
    rf".*~(?!{_RAII})\w+(?:<.*>)?(?:\(.*\))?$|.*destructor'?$|core::ptr::drop_in_place<|.*::drop$|.*_M_dispose$|.*__on_zero_shared\w*"
    r"|zmq_(?:ctx_)?(?:term|destroy)$|zmq::ctx_t::terminate"
    r"|__del__$|(?:.*\.)?(?:_python_exit|_exit_function|_run_exitfuncs|_shutdown_workers|_clean_exit)$"
    rf"|{_BUILDS}{_NAMES}{_WAITS_FOR_AN_ORDER}(?:\w*_)?(?:destroy|shutdown|finalize|uninit|deinit|fini|teardown|tear_down|dispose)\d?"
    r"(?:_all|_impl)?$"
    rf"|{_BUILDS}{_NAMES}{_WAITS_FOR_AN_ORDER}\w*(?:(?<=[a-z])|(?<=_)|\b)(?:Destroy|Shut[dD]own|Finali[sz]e|Uninit|TearDown|Dispose)"
    r"(?:Async|Impl|All|Internal|Once|Now|Locked|Threads?|Pool|Workers?)?\d?$"
)
"""Calls that end an object, a pool or a library. Not those of guards and joins, whose end is a wait in normal work, and
not of who waits for the order to end."""
STOPS = (
    rf"{_NAMES}{_WAITS_FOR_AN_ORDER}(?:\w*_)?(?:close|stop|quit|disconnect|terminate|exit|cleanup|unload|halt)\d?$"
    rf"|{_NAMES}{_WAITS_FOR_AN_ORDER}\w*(?:(?<=[a-z])|(?<=_)|\b)(?:Close|Stop|Quit|Disconnect|Terminate|Exit|Cleanup|Unload)\d?$"
)
"""Calls that end something where they wait for the end of a thread."""
SCOPES = r"__a?exit__$"
"""Callers of an end that is the end of a block of the program: `with` an executor waits for its tasks."""
EXITS = (
    r"_*(?:GI_)?_*(?:exit|run_exit_handlers|cxa_finalize|dl_fini|do_global_dtors_aux|common_exit|doexit)$|_shutdown$"
    r"|Py_Finalize\w*|wait_for_thread_shutdown|finalize_modules|atexit\w*$|call_py_exitfuncs|.*execute_onexit_table"
    r"|(?:ntdll!)?(?:RtlExitUserProcess|LdrShutdownProcess)|(?:KERNEL32!)?ExitProcess|jl_atexit_hook|ijl_atexit_hook"
    r"|java\.lang\.(?:Shutdown|ApplicationShutdownHooks)\b|os\.Exit$|rb_ec_(?:teardown|cleanup)|ruby_cleanup"
)
"""Where a process ends, and what it runs then."""
BREAKS_IN = rf"{EXITS}|{INTERRUPTED}|_*(?:GI_)?(?:abort|raise|gsignal)$"
"""Behind these other code runs while the function further out is still at work, with what it holds."""
