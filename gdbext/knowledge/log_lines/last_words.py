"""Lines printed beside a stack that say what its thread died or waited in."""

from gdbext.knowledge.row_kinds import MessageRule

_EXITED = (
    r"\b[Ee]xit(?:[ _]?(?:[Cc]ode|[Ss]tatus)|(?:s|ed)(?: with)?(?: exit)?(?: return)?(?: code| status)?)[\"'=: (]{1,8}"
)
"""How shells, containers, schedulers and launchers begin to tell with which number a process ended."""

STOPS_OF_GDB = (
    r"(?:(?:Temporary )?[Bb]reakpoint|[Cc]atchpoint|(?:Hardware )?(?:(?:read|access \(read/write\)) )?[Ww]atchpoint"
    r"|Probe) \d{1,6}(?:\.\d{1,6})?(?! \(exception)(?: \([^()]{1,200}(?:\([^()]{0,80}\))?[^()]{0,80}\))?"
)
STOPS_OF_LLDB = (
    r"breakpoint \d|watchpoint \d|(?:instruction )?step |one-shot breakpoint|exception breakpoint|plan complete"
)
"""Where a debugger stops a process because somebody asked it to; `catch throw` finds an error all the same."""

RULES = (
    MessageRule(
        rf"^hit (?:a watchpoint|{STOPS_OF_GDB})$|^stop reason = (?:{STOPS_OF_LLDB})",
        "unknown",
        "gdb and lldb manuals",
    ),
    MessageRule(
        r"^(?!.*DataLoader worker \(pid).*(Bus error|SIGBUS|exitcode: -7\b|[Ss]ignal[: ]+7\b|[Ss]ignal \(7|BUS_ADRERR|"
        + _EXITED
        + r"(?:135|-7)\b|due to hardware memory corruption|caught bus error)",
        "sigbus",
        "Megatron-LM#516; bash: 128 + the signal's number; Linux mm/memory-failure.c; R errors.c",
    ),
    MessageRule(
        r"(CUDA (runtime )?error|(CUDA|HIP)_ERROR_(?!NOT_READY)[A-Z_]+|(cuda|hip)Error[A-Z]\w+"
        r"|CUBLAS_STATUS_(?!SUCCESS)|AcceleratorError|device-side assert|Memory access fault by GPU"
        r"|CUDA_EXCEPTION_\d|CUDA Exception: )",
        "cuda-error-throw",
        "check functions",
    ),
    MessageRule(
        r"^(?!.*(?:[Ii]nstall|[Rr]egist|[Ee]nabl)\w* .{0,40}(?:[Hh]andler|SIG))"
        r".*(Segmentation (?:[Ff]ault|[Vv]iolation)|segmentation fault (?:occurred|detected)"
        r"|SIGSEGV|SIGABRT|SIGILL|SIGFPE|Fatal Python error|Aborted \(core dumped\)"
        r"|[Ss]ignal(?: number)?[: ]+(4|6|8|11)\b|[Ss]ignal \((4|6|8|11)|^Signal: [A-Z].{2,40}\((4|6|8|11)\)"
        r"|\([Ss]ignal 9\)|\*\*\* caught (segfault|illegal operation)|Exiting: Caught Signal"
        r"|of user \d+ dumped core|^Thread \d+ Crashed\b|"
        + _EXITED
        + r"(?:13[24679]|-(?:4|6|8|9|11))\b|^(Aborted|Killed|Illegal instruction|Floating point exception)( \(core|$))",
        "exited-or-crashed",
        "sgl-project/sglang#4205; faulthandler; systemd-coredump; macOS; bash; R errors.c; Charm++ init.C; PETSc",
    ),
    MessageRule(
        r"((Address|Leak|Memory)Sanitizer: |(READ|WRITE) of size \d"
        r"|double free or corruption"
        r"|(?:free|alloc)\(\): [a-z]|munmap_chunk\(\): |\bcorrupted (?:size vs|double-linked)|stack smashing detected"
        r"|Segfault encountered|segmentation violation|Fatal error in (?:P?MPI|internal)_|Windows fatal exception: "
        r"|Exception Code: 0x|\b[Cc]ode:? (?:0x)?[cC]0000(?:005|006|01[dD]|094|0[fF][dD]|374|409)\b"
        r"|Sanitizer: SEGV on |^==\d+== (?:Invalid (?:read|write|free)|Process terminating with default action)"
        r"|stop reason = (EXC_(?!BREAKPOINT)|hit program assert|signal SIG(ABRT|SEGV|BUS|ILL|FPE))"
        r"|hit an exception:|[Uu]n(caught|handled) exception)",
        "exited-or-crashed",
        "LLVM compiler-rt; glibc malloc.c; valgrind; Windows ntstatus.h; vllm-project/vllm#44780",
    ),
    MessageRule(
        r"(panicked at|^Signal Received: (?:4|6|8|11|15) \(|^\*{3} SIGTERM (?:\(|received )"
        r"|^forrtl: (?:severe|error) \(|^Fortran runtime error: |^Error termination\. Backtrace"
        r"|forked subprocess|^Exception in device=\w|^Process \w*Process-|terminated abnormally with signal"
        r"|failed \(exitcode: |: line \d+: .*(Killed|Aborted|Segmentation fault|Terminated))",
        "exited-or-crashed",
        "Rust's panic hook; torch; torch_xla xla_multiprocessing.py; bash",
    ),
    MessageRule(
        r"goroutine in state (chan (receive|send)|select|sleep|sync\.(Cond|WaitGroup)\.Wait|finalizer wait"
        r"|GC \w+ (wait|\(idle\))|force gc)",
        "condvar-idle",
        "Go runtime/runtime2.go waitReasonStrings",
    ),
    MessageRule(r"goroutine in state sync\.(RW)?Mutex\.R?Lock", "mutex", "Go runtime/runtime2.go waitReasonStrings"),
    MessageRule(
        r"^- waiting (?:to (?:re-)?lock |on the Class init)|^java\.lang\.Thread\.State: BLOCKED",
        "mutex",
        "OpenJDK vframe.cpp, javaThreadStatus.hpp",
    ),
    MessageRule(r"goroutine in state IO wait", "io", "Go runtime/runtime2.go waitReasonStrings"),
    MessageRule(
        r"(stream synchronize failed|StreamSynchronize failed|synchronize stream failed|SynchronizeStream failed)",
        "stream-sync",
        "Ascend/pytorch#54; CANN acl_rt.h",
    ),
    MessageRule(
        r"(store->get\(|c10d key-value store|TCPStore\b.*(time|Time)|Timed out after .* waiting for"
        r"|wait timeout .* keys?:(?! /?(?:send_to|broadcast_from)/))",
        "store-wait",
        "NVIDIA/nccl#865",
    ),
    MessageRule(
        r"^(?!.*(?:[Tt]im(?:e|ed)[ _-]?out|synchronize failed|DistBackendError|Barrier))"
        r"[\w.]*(Error|Exception|OutOfMemory\w*)(?:\(\w+\))?(: |:$|$)",
        "exited-or-crashed",
        "the last line of a Python traceback: the thread has left the place with an exception",
    ),
)

OF_ANOTHER = r"\b(?:EngineDeadError|ActorDiedError|ActorUnavailableError|WorkerCrashedError|RayActorError)\b"
"""Exceptions by which a process hears of the end of another one: vLLM v1/engine/exceptions.py, ray/exceptions.py."""

OF_ITSELF = (
    r"\*{3} (?:Process received signal|SIG[A-Z]{2,6} )|Caught signal \d|^Signal: [A-Z].{2,40}\(\d|Sanitizer: SEGV"
    r"|^signal \(?\d|[Rr]eceived by PID \d|^terminate called|^Fatal Python error|Proc hit an exception"
)
"""With what a process that dies begins its own report: it is one of the job, also where the text lacks its stack."""

SENT_BY = r"\*{3} SIGTERM .{0,160} from PID (?P<pid>\d{1,9});|^Signal Received from pid=(?P<sender>\d{1,9})"
"""Lines of handlers that name the process which has sent the signal: si_pid, sigaction(2)."""

IN_NATIVE_CODE = (
    r"Fatal Python error: (?:Segmentation|Aborted|Bus|Illegal|Floating)|Windows fatal exception: (?!code 0xe|stack)"
    r"|Segfault encountered"
)
"""What is said of a signal or a fault that the interpreter's own code does not raise."""

FATAL_ERROR = ("Fatal Python error", "Windows fatal exception: ")
"""How CPython begins, as it dies, before it prints the stacks of its threads."""

AS_IT_ENDS = ", as the process ends"
"""Said of a goroutine that is printed with the addresses of its g and m: Go does that for a throw and a fatal signal
(runtime/traceback.go, goroutineheader)."""

CUT_BEHIND = "the traceback is cut behind {what}"
"""Of a notebook's traceback, whose last line is the exception."""

CALLS = "its last line calls {what}"
"""Said of a Python stack that ends with a call, inside of which nothing is shown."""

PROMPT = "printed at the prompt ({})"
"""Said of a stack that somebody asked a debugger for, whose session may still be open."""

TEST_TIMEOUT = "+++ Timeout +++"
"""pytest-timeout's word before the stacks of a test that it ends."""

GO_AT_REST = r"goroutine in state (?:GC |force gc|finalizer wait|cleanup wait|GOMAXPROCS updater)"
"""Goroutines of Go's own run-time, which are in every program (runtime2.go)."""

HIT_ALONE = "the signal hit {}"
"""What abseil tells before the stack: the function whose code the signal interrupted."""
HIT = "the signal hit {} at {}"
"""What UCX's excerpt of the source tells before the stack: function and file; the line follows."""

IGNORED = "Exception ignored in"
"""CPython prints this for an exception in __del__ or in a callback (sys.unraisablehook), and the program continues."""
FATAL = "Fatal Python error"
"""CPython prints this when it aborts the process (Py_FatalError, faulthandler)."""

CURRENT = "faulthandler's current thread: it asked for this dump, or a signal stopped it"
"""Said of a thread whose dump has lost its head, in which the signal stands."""

NULL_CALL = "the innermost frame is at address 0: SIGSEGV, by a call through a null pointer"
"""Said of a thread whose innermost frame is no code: only who had jumped there stands below it."""

DUMPS = r"(?i).*(?:dump|stack|trace|watch|monitor|debug|signal|handler|time_?out)"
"""Functions of a program that ask for a dump themselves: what the other threads do is what they want to know."""

UNCAUGHT_LINE = r"terminate called (?:after throwing|without an active)|libc\+\+abi: terminating"
"""What the C++ runtime prints as it aborts: a stack beside it is what was left."""

HANDLERS = {
    "traceback": "the traceback of an exception, which is not in the text",
    "ucx": "UCX prints a stack as the process dies",
    "openmpi": "Open MPI's handler of a fatal signal prints this stack",
    "glog": "the handler of a fatal signal, or a failed check, prints this stack",
    "exception": "the stack of an exception that was thrown",
    "torch": "the stack of an exception of torch",
    "dmlc": "the stack of a failed check of MXNet, XGBoost or TVM",
    "paddle": "the stack of an error or a fatal signal that Paddle reports",
    "caffe2": "the handler of a fatal signal prints this stack",
    "cstack": "faulthandler prints the C stack as the process dies",
    "hs_err": "Java's report of a crash",
}
"""Kinds of stacks that nothing prints but the end of a process, where they have no head of a live thread."""

RAISED = "the traceback of an exception: a line of it raises one, or a logger printed it as an error"

LOGGED = "a logger printed this traceback as an error"
"""Said of a traceback whose exception the program has caught: no proof that the process ended."""
ENDED = (
    rf"{OF_ITSELF}|{IN_NATIVE_CODE}|{_EXITED}|\b(?:[Aa]borted|[Kk]illed|[Tt]erminated|core dumped)\b"
    r"|^Process \w{0,60}Process-\d"
)
"""Searched in the lines beside it: what proves it all the same."""

LAST_WORDS = frozenset((RAISED, *(text for kind, text in HANDLERS.items() if kind not in ("traceback", "torch"))))
"""Of a traceback that is cut off nobody knows whether an interrupt made it, and torch prints where an exception is
made, which is where the thread waited: a wait that their frames name says more."""

CHILD = r"Process (?P<child>[\w.-]{0,60}Process-\d+(?::\d+)*):$"
"""What Python's multiprocessing prints before the traceback of a child that an exception has ended."""

REPEATED_BY_RAY = r" \[repeated (?P<times>\d{1,9})x across cluster\]"
"""Behind a line of which Ray prints one for several processes (ray/_private/ray_logging; RAY_DEDUP_LOGS)."""

DEFUNCT = r"\s{0,12}(?:[a-z_][\w.+-]{0,31}\s{1,12})?(?P<pid>\d{1,9})\s.{0,160}?\s<defunct>$"
"""A line of ps about a process that has ended, and whose parent has not asked how (ps(1), state Z)."""

SAVED = "all stacks were saved in {path}"
"""Said where a text names the file of the dump of which it is a part."""
SAVED_BY_SHELL = r"(?:(?<![\d&])>{1,2} ?|\| ?tee (?:-a )?)(?P<path>[\w./+@%=-]{1,200})\s{0,4}$"
SAVED_BY_SCRIPT = (
    r".{0,120}?\b(?i:dump(?:ing|ed)|writing|saving) .{0,40}\b(?i:(?:backtraces?|stack ?traces?|stacks) (?:in)?to) "
    r"\[?(?P<path>[\w./+@%=-]{0,200}[/.][\w./+@%=-]{1,200})"
)
TEE = r"\+ tee (?:-a )?(?P<path>[\w./+@%=-]{0,200}(?:gdb|bt|stack|trace|dump)[\w./+@%=-]{0,200})$"
"""How: behind the command, in a script's own words, in the trace of a shell (set -x)."""
