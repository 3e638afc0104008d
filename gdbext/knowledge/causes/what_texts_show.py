"""Texts that are no look at a living process: of an interrupt, a time limit, a breakpoint, an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.knowledge.log_lines.last_words import (
    AS_IT_ENDS,
    CALLS,
    CURRENT,
    DUMPS,
    HANDLERS,
    STOPS_OF_GDB,
    STOPS_OF_LLDB,
    TEST_TIMEOUT,
)


@dataclass(frozen=True)
class TextKind:
    """How a text tells that it is no look at a living process, and what follows from that.

    `says` must match a line of the thread, or of its process, from the start. A group `what` fills `{what}`. Advice
    that needs a living process comes behind `again`, or gives way to `advice`.
    """

    id: str
    source: str  # where the row is from
    says: str
    pasted_from: str  # regex: RankSnapshot.source
    does: str = ""  # in place of what a thread in such a call does; `{where}` is the call
    when: str = ""  # when that was; what the thread does is then told in the past tense
    open: str = ""  # in place of what its stack leaves open
    again: str = ""
    advice: str = ""  # in its place
    reason: str = ""
    own: bool = False  # only what is said of the thread itself counts
    under: str = ""  # regex: a function of its stack
    not_inner: str = r"(?!)"  # regex: its innermost function is none of these
    alone: bool = False  # only said where the stack alone has no cause


_READ_ABOVE = (
    "Read the lines above these stacks: `Fatal Python error: ...` names what ended the process; without such a line "
    "the dump was asked for, then dump all threads again while it hangs"
)
_WHO_IS_CURRENT = "faulthandler marks the thread that a signal or a fatal error stopped, or that asked for the dump"

_ENDLESS = r"_*(?:try_)?(?:wait|acquire|enter|join|poll|select|recv|get|read|accept|sleep)\w*$"
"""Waits of the standard library, which fail less often than somebody interrupts them."""

TEXT_KINDS: Tuple[TextKind, ...] = (
    TextKind(
        "interrupted",
        "CPython signal module; a program's own handler may raise it too",
        r"\s*(?P<what>KeyboardInterrupt\b(?:: .{1,80})?)",
        r"text:traceback",
        when="when Ctrl-C or a signal handler interrupted it ({what})",
        again="At the next hang, before Ctrl-C",
        own=True,
    ),
    TextKind(
        "child-given-up",
        "torch/testing/_internal/common_distributed.py, _check_return_codes",
        r"\s*RuntimeError: (?P<what>Process \d{1,6} terminated or timed out after \d{1,6})",
        r"text:traceback",
        does="gave up on a child process in {where}",
        open="Its error: {what} seconds. What the child waited for is not in the text.",
        again="At the next hang, for the child process",
        own=True,
        alone=True,
    ),
    TextKind(
        "raised",
        "CPython traceback.py",
        r"\s*(?P<what>[\w.]{0,80}(?:Error|Exception|Timeout)(?:\(\w{1,40}\))?: \S.{0,120})",
        r"text:traceback",
        when="until it failed ({what})",
        open="What it waited for is not in the traceback; the log before it may tell.",
        again="At the next hang",
        own=True,
        alone=True,
    ),
    TextKind(
        "test-timeout",
        "pytest-timeout",
        rf"{TEST_TIMEOUT.replace('+', '[+]')}$",
        r"text:traceback",
        when="when pytest-timeout ended the test",
        again="Run the test again with a longer --timeout; while it hangs",
    ),
    TextKind(
        "torch-test-timeout",
        "torch/testing/_internal/common_distributed.py",
        r"Process \d{1,6} timed out with traceback:",
        r"text:faulthandler",
        when="when the time limit of its test was over",
        again="Run the test again with a longer time limit; while it hangs",
    ),
    TextKind(
        "dump-later",
        "CPython faulthandler.dump_traceback_later",
        r"Timeout \((?P<what>[\d:.]{1,20})\)!",
        r"text:faulthandler",
        when="when faulthandler's time limit of {what} was over",
        again="If the process still runs",
    ),
    TextKind(
        "breakpoint",
        "gdb and lldb manuals",
        rf"(?:hit|stop reason =) (?P<what>a watchpoint|{STOPS_OF_GDB}|(?:{STOPS_OF_LLDB})\S*)",
        r"text:(?:gdb|lldb)",
        open="A debugger stopped the process there ({what}), as it was asked to: that is no sign of a hang.",
        advice="Let the program go on (`continue`); when it hangs, press Ctrl-C and print all stacks (gdb: "
        "`thread apply all bt`, lldb: `thread backtrace all`)",
        reason="at a breakpoint a process stands still because the debugger stopped it",
    ),
    TextKind(
        "current-side-thread",
        "CPython faulthandler",
        CURRENT.replace("(", r"\(") + "$",
        r"text:faulthandler",
        open="faulthandler marks it as the current thread, and it is not the main thread: probably a fatal signal or "
        "error stopped it there. The line above the stacks, which tells, is not in the text.",
        advice=_READ_ABOVE,
        reason=_WHO_IS_CURRENT,
        own=True,
        under=r"_bootstrap(?:_inner)?$",
        not_inner=DUMPS,
    ),
    TextKind(
        "go-asked",
        "Go os/signal: SIGQUIT prints all goroutines and ends the program",
        r"SIGQUIT: quit$",
        r"text:go$",
        when="when SIGQUIT ended the process",
        again="At the next hang",
    ),
    TextKind(
        "go-end",
        "Go runtime/traceback.go, goroutineheader",
        rf"goroutine in state .{{1,80}}{AS_IT_ENDS}$",
        r"text:go$",
        open="Go prints goroutines like this (gp=, m=) as the process ends.",
        advice="Read the lines above the first goroutine: `fatal error:`, `panic:` or a signal names what ended the "
        "process; then the goroutine marked [running]",
        reason="goroutines at rest look the same in every Go program",
    ),
    TextKind(
        "cut-traceback",
        "CPython traceback.py",
        HANDLERS["traceback"] + "$",
        r"text:traceback",
        does="was in {where}",
        open="This traceback has lost its last line, which tells whether the call failed or Ctrl-C interrupted a wait.",
        advice="Look up the traceback's last line in the original log: an exception names what failed. If it is "
        "KeyboardInterrupt, dump all processes at the next hang before Ctrl-C: py-spy dump --native --pid PID",
        reason="a traceback is printed when a process has left the call, not while it waits",
        own=True,
        not_inner=_ENDLESS,
    ),
    TextKind(
        "cut-in-a-wait",
        "CPython traceback.py",
        HANDLERS["traceback"] + "$",
        r"text:traceback",
        when="when Ctrl-C or an exception interrupted it",
        again="At the next hang",
        own=True,
    ),
    TextKind(
        "cut-at-call",
        "traceback.format_stack: the line of a frame that has called another one",
        CALLS.format(what=r"(?P<what>.{1,80})"),
        r"text:traceback",
        open="Its last line calls {what}; what runs there is C code, or not in the text.",
        own=True,
    ),
)
"""The first that fits."""

LIVES = r"\{dump(?: of each)?\}|\bPID\b|ncclras"
"""Advice that means something only while the process lives."""
LATER = r"At the next |If it hangs again|Run it once"
"""How advice for the next run begins."""

PAST = {
    "allocates": "was allocating",
    "copies": "was copying",
    "frees": "was freeing",
    "is": "was",
    "launches": "was launching",
    "sets": "was setting",
    "sleeps": "slept",
    "waits": "waited",
}
"""The verbs with which knowledge/causes/lone_waits.py begins."""
