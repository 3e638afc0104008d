"""Stacks of Linux's tasks: reports of hung tasks, sysrq-w and sysrq-t in the kernel's log, /proc/PID/stack."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.parsers.formats.format_row import Row, detail, row
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import Event, FrameLine, LogMessage, ProcessHead, Several, ThreadHead


def _task(match: Match[str]) -> Several:
    """A task and its stack: the kernel has a number and a name for every thread, and tells of none which process it
    is of but by `tgid:`, in newer releases. So each is a process of its own here."""
    has = match.groupdict()
    tid, name = match.group("tid"), has.get("name")
    head = ThreadHead(id=tid, lwp=int(tid), name=name, state=has.get("state"))
    return Several((ProcessHead(title=name or "", pid=int(tid), task=True), head))


def _hung(match: Match[str]) -> Event:
    """The kernel's watchdog: the stack of that task follows, which sleeps uninterruptibly."""
    process, head = _task(match).events
    return Several((process, head, LogMessage(match.group().strip())))


def _stack_file(match: Match[str]) -> Event:
    """A command that prints /proc/PID/stack, or a heading of what it prints."""
    process, tid = ProcessHead(pid=int(match.group("pid"))), match.group("tid")
    return Several((process, ThreadHead(id=tid, lwp=int(tid)))) if tid else process


def _frame(match: Match[str]) -> Optional[Event]:
    """A line of /proc/PID/task/TID/stack."""
    return FrameLine(named_frame(match.group("name"), Place(match.group("module") or "[kernel]")))


_CLOCK = r"(?:\[(?:[ \d.+]{5,20}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\])?\s{0,12}"
"""The kernel's clock before a line, where nothing has taken it off; with `dmesg -T` as a date."""

_ADDRESSED = r"\[<[0-9a-f]{1,16}>\] (?P<name>[\w.]{1,200})\+0x[^\[]{0,40}(?P<module>\[[\w-]{1,60}\])?"

ROWS: Tuple[Row, ...] = (
    row(
        "kernel",
        "INFO: task ",
        _CLOCK + r"INFO: task (?P<name>\S.{0,40}?):(?P<tid>\d{1,9}) blocked for more than(?: \d{1,6} seconds)?",
        _hung,
    ),
    row(
        "kernel",
        "state:",
        _CLOCK + r"task:(?P<name>\S.{0,40}?)\s{1,40}state:(?P<state>[A-Z])\s.{0,80}?\bpid: {0,6}(?P<tid>\d{1,9})\b",
        _task,
    ),
    row(
        "kernel",
        " 0x",
        _CLOCK
        + r"(?P<name>\S{1,40})\s{1,30}(?P<state>[DRSTXZIt])\s{1,4}(?:[0-9a-f]{16}\s{1,8})?\d{1,6}\s{1,8}"
        + r"(?P<tid>\d{1,9})\s{1,8}\d{1,9} 0x[0-9a-f]{8}\b",
        _task,
    ),
    row(
        "kernel",
        "/stack",
        r"(?:.{0,80}?[$#%>+] ?)?(?:sudo )?(?:(?:cat|head|more|tail)(?: -\S{1,12}){0,3} )?"
        r"/proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?stack\s{0,4}(?::|<==)?\s{0,8}$",
        _stack_file,
    ),
    row("kernel", "+0x", _CLOCK + r"(?:\[<[0-9a-f]{1,16}>\] )?\? [\w.]{1,200}\+0x[0-9a-f]{1,9}/0x", detail),
    row("kernel", "+0x", _CLOCK + _ADDRESSED, _frame),
    row(
        "kernel",
        "+0x",
        _CLOCK + r"(?P<name>[\w.]{1,200})\+0x[0-9a-f]{1,9}/0x[0-9a-f]{1,9}(?: (?P<module>\[[\w-]{1,60}\])|$)",
        _frame,
        "kernel",
    ),
    row(
        "kernel",
        "",
        _CLOCK
        + r"(?:(?:[0-9a-f]{16} ?){2,4}$|(?i:call trace):|</?TASK>|R[A-Z0-9]{2}: |\"echo 0 > |Not tainted|Tainted: )",
        detail,
        "kernel",
    ),
)
