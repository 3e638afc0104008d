"""What stands for a name in advice, and how to print all stacks of a process, by the tool that printed the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.knowledge.frames.system.linux_kernel import KERNEL

PLACE = "{dump}"
"""Stands for the command in the advice of knowledge/causes/remedies."""

OF_EACH = "{dump of each}"
"""Stands for the command where it is for several processes: their pids stay open."""

PID, MUTEX = "{pid}", "{mutex}"
"""Stand there for the process, and for the address of the mutex that it waits for, where the text says them."""

LOCK_FILE, LOCK_NAMES = "{lock}", r"(?<![\w/])(?P<path>/[^\s'\":]{1,300}\.(?:lock|lck))\b"
"""Stands there for the file, where a line names it."""

LOG_FILE, LOG_NAMES = "{log}", r"\blog (?P<path>[\w./+-]{1,300})$"
"""Stands there for the log of the process that a launcher's line is about, where the line names it."""

DUMP_FILE = "{saved}"
"""Stands there for the file that has the whole dump, where a line names it."""

CORE = "{core}"
"""Stands there for the file that has all threads and values of a process that died."""

ERROR, ERROR_NAMES = "{error}", r"\((?P<error>[A-Za-z]\w+), \d+\)"
"""Stands there for the error that the verdict names."""


@dataclass(frozen=True)
class DumpTool:
    """`sources`, `functions` and `modules` are regular expressions, matched from the start: one of them must match."""

    command: str
    sources: str  # RankSnapshot.source
    functions: str = r"(?!)"  # of a frame
    modules: str = r"(?!)"  # of every frame of a stack
    when: str = ""  # the command works, in words that stand before the advice
    otherwise: str = ""  # what to do where it does not work, in words that stand behind the advice if there is room
    of_python: bool = False  # only where frames of Python were read


CORE_FILES: Tuple[Tuple[str, str], ...] = (
    (r"[A-Za-z]:\\|.*\.(?:dll|pyd)\b", "a minidump of the process (WinDbg or Visual Studio)"),
    (r"/Users/|/System/Library/|.*\.dylib\b", "the crash report in ~/Library/Logs/DiagnosticReports"),
    ("", "the core file (coredumpctl gdb, then `thread apply all bt full`)"),
)
"""By the paths of its frames, what a system keeps of a process that died; the last row fits everything."""

UNREAD_TEXTS: Tuple[Tuple[str, str], ...] = (
    (
        r"\.<clinit>|\$init\$|\b(?:java|javax|scala|kotlin)\.[a-z]\w*\.|\w\.(?:java|scala|kt):\d",
        "jstack -l PID > dump.txt",
    ),
    (
        "",
        "py-spy dump --native --pid PID > dump.txt; without Python: gdb -p PID -batch -ex 'thread apply all bt' > "
        "dump.txt",
    ),
)
"""By the words of a text in which no stack was found, how to print all stacks of such a process: OpenJDK's jstack for
what the JVM runs; the last row fits everything."""

DUMP_TOOLS: Tuple[DumpTool, ...] = (
    DumpTool("jstack -l PID", r"text:java"),
    DumpTool("dotnet-stack report -p PID", r"text:clr"),
    DumpTool(
        "curl -s 'localhost:6060/debug/pprof/goroutine?debug=2'",
        r"text:go$",
        otherwise="without net/http/pprof: kill -QUIT PID, which ends the process",
    ),
    DumpTool(
        "lldb -p PID --batch -o 'thread backtrace all'",
        r"text:(?:lldb|macos|sample|spindump)",
        r"-\[|MTL|at::mps::|__psynch_|__ulock_|mach_msg",
    ),
    DumpTool(
        'cdb -pv -p PID -c "~*k;qd"',
        r"text:(?:windbg|visual-studio)",
        r"(?:ntdll!)?(?:Zw|Nt|Rtl)[A-Z]\w+|KERNELBASE|KernelBase",
    ),
    DumpTool("coredumpctl debug PID -A \"-batch -ex 'thread apply all bt'\"", r"text:coredump"),
    DumpTool("py-spy dump --native --pid PID", r"text:(?:py-spy|pystack|traceback|faulthandler)", of_python=True),
    DumpTool(
        "echo ::stacks | mdb -k",
        r"(?!)",
        r"taskq_thread_wait$|cv_wait_sig_swap\w*$|shuttle_swtch$",  # of the illumos kernel, which mdb prints
        when="As root",
    ),
    DumpTool(
        "cat /proc/PID/task/*/stack",
        r"(?!)",
        modules=KERNEL,
        when="As root (no debugger can attach to a process in state D)",
    ),
    DumpTool("gdb -p PID -batch -ex 'thread apply all bt'", ""),
)
"""The first row that fits; the last one fits everything."""

DEBUGGER_RUNS = r"(?:gdb -p \S+ -batch -ex|lldb -p \S+ --batch -o) '(?P<command>[^']+)'(?P<file> > dump\.txt)?(?! >)"
AT_PROMPT, TO_FILE = "`{command}` at the ({debugger}) prompt", " (no second debugger can attach), saved as dump.txt"
"""A command for one process, and how the debugger that has the process runs the same."""
RUNS_TWICE = (
    r", 30 s apart \((?:gdb -p \S+ -batch -ex|lldb -p \S+ --batch -o) '(?P<command>[^']+)'"
    r" > dump1\.txt, then dump2\.txt\), and compare"
)
TWICE_AT_PROMPT = (
    " at the ({debugger}) prompt (`{command}`, `continue`, Ctrl-C 30 s later, `{command}` again), and compare"
)
"""The same of two looks, between which the process must run."""

STANDS_FOR = {
    PLACE: DUMP_TOOLS[-1].command,
    OF_EACH: DUMP_TOOLS[-1].command,
    PID: "PID",
    MUTEX: "ADDRESS",
    LOCK_FILE: "FILE",
    LOG_FILE: "the log of that process",
    CORE: CORE_FILES[-1][1],
    ERROR: "NAME",
}
"""What people read instead, where no look gives it."""
