"""Tools that look from outside: perf's reports, sample, spindump and crash reports of macOS, strace, WinDbg."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.log_lines.last_words import DEFUNCT
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import Row, detail, native_frame, outermost_first, row
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import Event, FrameLine, LogMessage, Several, ThreadHead

_RESUMED = regex(r"<\.\.\. resuming interrupted (?:system call|(?P<call>[a-z_0-9]{2,20}))")
_CALLS = {"futex": "futex_wait", "pselect6": "pselect", "select": "select", "rt_sigtimedwait": "sigtimedwait"}
"""System calls whose function in the C library is called otherwise."""


def _sampled(match: Match[str]) -> Event:
    """perf report: `62.31%  python  libnccl.so.2  [.] ncclProxyProgress`, what a process does most of the time."""
    library = "[kernel]" if match.group("where") == "k" else match.group("lib")
    name = match.group("name")
    return FrameLine(named_frame("" if name.startswith("0x") else name, Place(library)))


def _sample_thread(match: Match[str]) -> Event:
    """`2866 Thread_93633365   DispatchQueue_1: com.apple.main-thread  (serial)`"""
    name = "MainThread" if "com.apple.main-thread" in match.group("name") else None
    return ThreadHead(id=match.group("id"), name=name, outermost_first=True)


def _report_thread(match: Match[str]) -> Event:
    """macOS: `Thread 16 Crashed:: Dispatch queue: com.apple.main-thread`, of spindump with an id and its samples."""
    crashed = match.groupdict().get("crashed")
    return ThreadHead(
        id=match.group("id"),
        name="MainThread" if "com.apple.main-thread" in match.string else None,
        outermost_first="samples" in match.string,
        current=bool(crashed),
        problem=f"Thread {match.group('id')}{crashed}" if crashed else "",
    )


def _windbg_frame(match: Match[str]) -> Event:
    return FrameLine(named_frame(match.group("name"), Place(match.group("lib"))), int(match.group("number"), 16))


def _visual_studio_frame(match: Match[str]) -> Event:
    line = match.group("line")
    return FrameLine(named_frame(match.group("name"), Place(match.group("lib"), None, int(line) if line else None)))


def _unfinished(match: Match[str]) -> Optional[Event]:
    """A system call that strace has seen begin: the thread is in it."""
    call, pid = match.group("call"), match.group("pid")
    if call == "restart_syscall":
        resumed = _RESUMED.search(match.string)
        call = (resumed.group("call") if resumed else None) or "futex"
    frame = named_frame(_CALLS.get(call, call), Place("libc.so.6"))
    head = ThreadHead(id=pid, lwp=int(pid)) if pid else ThreadHead(firm=False)
    return Several((head, FrameLine(frame, 0)))


_SYSTEM_CALLS = (
    r"futex|epoll_p?wait|p?poll|p?select6?|read|recvfrom|recvmsg|write|sendmsg|wait4|waitid|nanosleep|clock_nanosleep"
    r"|restart_syscall|ioctl|accept4?|connect|flock|fcntl|fsync|rt_sigtimedwait|pause"
)
_TREE = r"[ \t|+!:]{1,200}"

ROWS: Tuple[Row, ...] = (
    row("", "<defunct>", DEFUNCT, lambda match: LogMessage(match.group().strip())),
    row(
        "perf",
        "% ",
        r"\s{1,8}(?:\d{1,3}\.\d\d%\s{1,10}){1,2}\S{1,40}\s{1,30}(?P<lib>\S{1,200})\s{1,40}\[(?P<where>[.kguH])\] "
        r"(?P<name>\S.{0,400})",
        _sampled,
    ),
    row(
        "perf",
        "--",
        _TREE + r"-{1,3}(?:\d{1,3}\.\d\d%-{1,2})?(?P<name>[A-Za-z_~][^\s-]\S{0,300})$",
        native_frame,
        "perf",
    ),
    row("perf", "|", r"[ \t|]{8,200}(?P<name>[A-Za-z_~][\w:<>~.@]{1,300})$", native_frame, "perf"),
    row("", "", r"[ \t|-]{4,400}(?:-{1,3}\d{1,3}\.\d\d%-{1,2}0|0)?$|#", detail, "perf"),
    row(
        "sample",
        " Thread_",
        r"[ \t+!:|]{0,200}\d{1,9} Thread_(?P<id>[0-9a-f]{1,16})(?P<name>.{0,200})$",
        _sample_thread,
    ),
    row(
        "sample",
        "(in ",
        r"[ \t+!:|]{0,400}\d{1,9} (?P<name>\S.{0,600}?) {1,2}\(in (?P<lib>[^()]{1,120})\)(?: \+ [\d,.]{1,60})? {1,2}"
        r"\[(?P<pc>0x[0-9a-f]{1,16})",
        outermost_first,
    ),
    row("macos", "hread ", r"Thread (?P<id>\d{1,5})(?P<crashed> Crashed)?:(?:: .{0,200}|$)", _report_thread),
    row("spindump", " samples (", r"\s{1,8}Thread (?P<id>0x[0-9a-f]{1,16})\s.{0,200}\d samples \(", _report_thread),
    row(
        "macos",
        "0x",
        r"(?P<number>\d{1,4})\s{1,4}(?P<lib>[A-Za-z][\w.+-]{1,80}(?: [\w.+-]{1,40}){0,3})\s{1,40}"
        r"(?P<pc>0x[0-9a-f]{9,16}) (?P<name>(?!0x)\S.{0,1000}?) \+ \d{1,12}(?: \(\S{1,400}:\d{1,9}\))?$",
        native_frame,
    ),
    row(
        "spindump",
        "[0x",
        r"\s{1,400}\*?\d{1,9} {2}(?P<name>\S.{0,600}?)(?: \+ \d{1,12})? \((?P<lib>[^()]{1,120}?) \+ \d{1,12}\) "
        r"\[(?P<pc>0x[0-9a-f]{1,16})\]",
        outermost_first,
        "spindump",
    ),
    row(
        "windbg",
        "!",
        r"(?P<number>[0-9a-f]{2,3}) (?:\(Inline(?: Function)?\) -{8}`-{8}|[0-9a-f]{8}`[0-9a-f]{8}"
        r" [0-9a-f]{8}`[0-9a-f]{8}) {1,8}(?P<lib>[\w.-]{1,80})!(?P<name>[^+\s]{1,400})"
        r"(?:\+0x[0-9a-f]{1,12})?(?: .{0,600})?$",
        _windbg_frame,
    ),
    row(
        "visual-studio",
        "!",
        r"[ \t>]{0,40}(?:\[Inline Frame\] )?(?P<lib>[\w.-]{1,80}\.(?:dll|exe|pyd))!(?P<name>[^\s(+\u2011]{1,600})"
        r"(?:[\u2011(+ ].{0,3000}?)?(?: [Ll]ine (?P<line>\d{1,7})\b.{0,200})?$",
        _visual_studio_frame,
    ),
    row(
        "strace",
        "(",
        r"(?:\[pid {1,4}(?P<pid>\d{1,9})\] |(?=\w{2,20}\())(?P<call>"
        + _SYSTEM_CALLS
        + r")\((?![^=]{0,4000}\) {1,40}= )",
        _unfinished,
        "strace",
    ),
    row("strace", "[pid ", r"\[pid {1,4}\d{1,9}\] \w{2,30}\(.{0,4000}\) {1,40}= ", detail),
    row(
        "strace",
        "strace: Process ",
        r"strace: Process (?P<pid>\d{1,9}) attached",
        lambda match: ThreadHead(id=match.group("pid"), lwp=int(match.group("pid"))),
    ),
    row(
        "strace",
        "[pid ",
        r"\[pid {1,4}(?P<pid>\d{1,9})\] (?P<call>" + _SYSTEM_CALLS + r")\((?![^=]{0,4000}\) {1,40}= )",
        _unfinished,
    ),
)
