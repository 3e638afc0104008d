"""Texts that are no look at a living process: of an interrupt, a time limit, a breakpoint, an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.knowledge.log_lines.last_words import (
    AS_IT_ENDS,
    CALLS,
    CURRENT,
    CUT_BEHIND,
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
    inside: str = ""  # the same, only of a thread in code of which no row knows that it waits
    when: str = ""  # when that was; what the thread does is then told in the past tense
    open: str = ""  # in place of what its stack leaves open
    moves: str = ""  # in place of the words that a single dump cannot show progress
    again: str = ""
    once: str = ""  # in place of advice to dump twice
    advice: str = ""  # in its place
    reason: str = ""
    own: bool = False  # only what is said of the thread itself counts
    under: str = ""  # regex: a function of its stack
    not_inner: str = r"(?!)"  # regex: its innermost function is none of these
    alone: bool = False  # only said where the stack alone has no cause


_READ_ABOVE = (
    "Read the lines above these stacks: `Fatal Python error: ...` names what ended the process; if there is none, the "
    "dump was requested, so dump all threads again during the hang"
)
_WHO_IS_CURRENT = "faulthandler marks the thread that a signal or a fatal error stopped, or that asked for the dump"

_ENDLESS = r"_*(?:try_)?(?:wait|acquire|enter|join|poll|select|recv|get|read|accept|sleep)\w*$"
"""Waits of the standard library, which fail less often than somebody interrupts them."""

TEXT_KINDS: Tuple[TextKind, ...] = (
    TextKind(
        "cut-notebook",
        "IPython core/ultratb.py",
        CUT_BEHIND.format(what=r"(?P<what>.{1,80}(?:\(\)|line))$"),
        r"text:traceback",
        inside="was in a call from {where} when Ctrl-C or a signal handler interrupted it",
        when="when Ctrl-C or a signal handler interrupted it",
        open="The traceback is cut behind {what}: the frames further in, and its last line, are not in the text.",
        advice="Read the rest of the traceback in the notebook; if it is gone, dump all threads at the next hang "
        "before you interrupt it: py-spy dump --native --pid PID > dump.txt; then gdbext diagnose dump.txt",
        reason="the last frame of a whole traceback is where the process was",
        own=True,
    ),
    TextKind(
        "interrupted",
        "CPython signal module; a program's own handler may raise it too",
        r"\s*(?P<what>KeyboardInterrupt\b(?:: .{1,80})?)",
        r"text:traceback",
        when="when Ctrl-C or a signal handler interrupted it ({what})",
        again="At the next hang, before you press Ctrl-C",
        own=True,
    ),
    TextKind(
        "child-given-up",
        "torch/testing/_internal/common_distributed.py, _check_return_codes",
        r"\s*RuntimeError: (?P<what>Process \d{1,6} terminated or timed out after \d{1,6})",
        r"text:traceback",
        does="gave up on a child process in {where}",
        open="It raised: {what} seconds. The text does not show what the child was doing.",
        again="At the next hang, with the PID of the child process",
        own=True,
        alone=True,
    ),
    TextKind(
        "raised",
        "CPython traceback.py",
        r"\s*(?P<what>[\w.]{0,80}(?:Error|Exception|Timeout)(?:\(\w{1,40}\))?: \S.{0,120})",
        r"text:traceback",
        when="and failed there ({what})",
        open="The traceback does not show what the process waited for; the log lines above it may.",
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
        when="when its test timed out",
        again="Run the test again with a longer time limit; while it hangs",
    ),
    TextKind(
        "dump-later",
        "CPython faulthandler.dump_traceback_later",
        r"Timeout \((?P<what>[\d:.]{1,20})\)!",
        r"text:faulthandler",
        when="when faulthandler's timeout of {what} expired",
        moves="What the timer watched had not ended by then; the text does not show whether it was stuck or slow.",
        again="If the process is still running",
        once="If the process is still running (faulthandler may have ended it), or at the next hang, dump all threads "
        "with their native frames: {dump} > dump.txt; then gdbext diagnose dump.txt",
    ),
    TextKind(
        "breakpoint",
        "gdb and lldb manuals",
        rf"(?:hit|stop reason =) (?P<what>a watchpoint|{STOPS_OF_GDB}|(?:{STOPS_OF_LLDB})\S*)",
        r"text:(?:gdb|lldb)",
        open="A debugger stopped the process there, at {what}; this is no sign of a hang.",
        advice="Resume the program (`continue`); when it hangs, press Ctrl-C and print all stacks (gdb: `thread apply "
        "all bt`, lldb: `thread backtrace all`)",
        reason="at a breakpoint a process stands still because the debugger stopped it",
        not_inner=r"(?:__(?:GI_)?)?(?:abort|raise)$|__cxa_throw$|std::terminate$|__assert_fail",
    ),
    TextKind(
        "current-side-thread",
        "CPython faulthandler",
        CURRENT.replace("(", r"\(") + "$",
        r"text:faulthandler",
        open="faulthandler marks it as the current thread although it is not the main thread, so a fatal signal or "
        "error probably stopped it there. The line above the stacks that would tell is not in the text.",
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
        open="Go prints goroutines in this format (gp=, m=) when a process crashes.",
        advice="Read the lines above the first goroutine (`fatal error:`, `panic:` or a signal says what ended the "
        "process), then the goroutine marked [running]",
        reason="goroutines at rest look the same in every Go program",
    ),
    TextKind(
        "cut-traceback",
        "CPython traceback.py",
        HANDLERS["traceback"] + "$",
        r"text:traceback",
        does="was in {where}",
        open="The last line of this traceback is missing; it would tell whether the call failed or Ctrl-C interrupted "
        "a wait.",
        advice="Look up the traceback's last line in the log: an error says what failed; after KeyboardInterrupt, dump "
        "every process at the next hang: py-spy dump --native --pid PID > rank0.txt (rank1.txt, ...)",
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
        open="The innermost line shown calls {what}; the frames of that call are C code, or were left out of the text.",
        own=True,
    ),
)
"""The first that fits."""

LIVES = r"\{(?:dump(?: of each)?|pid)\}|\bPID\b|ncclras"
"""Advice that means something only while the process lives."""
TWICE = ", 30 s apart ({dump} > dump1.txt, then dump2.txt), and compare"
"""In advice to dump twice."""
LATER = r"At the next |If it hangs again|Run it once"
"""How advice for the next run begins."""

PAST = {
    "allocates": "was allocating",
    "copies": "was copying",
    "frees": "was freeing",
    "is": "was",
    "launches": "was launching",
    "sets": "was setting",
    "sleeps": "was sleeping",
    "waits": "was waiting",
}
"""The verbs with which knowledge/causes/lone_waits.py begins."""
