"""Stacks that programs print of themselves: UCX, Open MPI and glibc's backtrace(), glog and abseil, caffe2."""

from __future__ import annotations

from dataclasses import replace
from typing import Match, Optional, Tuple

from gdbext.knowledge.log_lines.last_words import HANDLERS, HIT, HIT_ALONE
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import (
    Row,
    announcement,
    detail,
    native_frame,
    number,
    outermost_first,
    row,
)
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import (
    Event,
    FrameLine,
    FramesMissing,
    LogMessage,
    ProcessHead,
    Several,
    ThreadHead,
)

_FILE_LINE = regex(r"(\S*?):(\d{1,9})(?::\d{1,9})?\Z")
_SYMBOL = (
    r"(?P<lib>(?:/|\.|\[\.\.\.\]/|\[vdso|[A-Za-z])[^\s(]*(?: [\w.-]{1,40} \[[^\]()]{1,60}\])?)"
    r"\((?P<name>.*?)(?:\+0x[0-9a-f]{1,16})?\) ?\[(?P<pc>0x[0-9a-f]{1,16})\]"
)
_SYMBOLS = regex(_SYMBOL)


def _ucx_frame(match: Match[str]) -> Optional[Event]:
    """` 1 0x000000000008170d ncclGroupEnd()  ???:0`: the address is relative to the library. Of code without debug
    information the place is `???:0`, or `:0` where the symbols name no file."""
    name, _, place = match.group("rest").rstrip().rpartition(" ")
    found = _FILE_LINE.match(place)
    if found is None and name.rstrip().endswith(")") and place.startswith("/"):  # the terminal cut it off
        return FrameLine(named_frame(name, Place(), number(match.group("pc"))), int(match.group("number")))
    if not found or not name:
        return None
    file = None if found.group(1).startswith("?") else found.group(1) or None
    where = Place(None, file, int(found.group(2)) if file else None)
    return FrameLine(named_frame(name, where, number(match.group("pc"))), int(match.group("number")))


def _symbols_frame(match: Match[str]) -> Event:
    """What backtrace_symbols() makes: `/lib/libc.so.6(abort+0x12b) [0x7f..]`, after c++filt with arguments."""
    place = Place(match.group("lib"))
    count = match.group("number") or match.group("plain")
    return FrameLine(named_frame(match.group("name"), place, number(match.group("pc"))), int(count) if count else None)


def _coredump_frame(match: Match[str]) -> Event:
    """`#1  0x00007f.. raise (libc.so.6 + 0x3abc)`; `n/a` where there is no name."""
    name = "" if match.group("name") == "n/a" else match.group("name")
    return FrameLine(
        named_frame(name, Place(match.group("lib")), number(match.group("pc"))), int(match.group("number"))
    )


def _exception_frame(match: Match[str]) -> Event:
    """A line of TensorRT-LLM's exceptions: `2  0x7eba487ddea1 ns::f(int) + 130`, or what backtrace_symbols() makes."""
    where = _SYMBOLS.match(match.group("rest"))
    name, place = match.group("rest").rpartition(" + ")[0] or match.group("rest"), Place()
    if where is not None:
        name, place = where.group("name"), Place(where.group("lib"))
    return FrameLine(named_frame(name, place, number(match.group("pc"))), int(match.group("number")) - 1)


def _thread(match: Match[str]) -> ThreadHead:
    tid = match.group("tid")
    has = match.groupdict()
    return ThreadHead(id=tid, lwp=int(tid), name=has.get("name"), state=has.get("state"))


def _ucx_thread(match: Match[str]) -> Event:
    return replace(_thread(match), problem=HANDLERS["ucx"])


def _died(match: Match[str]) -> Event:
    """The stack of that thread follows."""
    text, tid = match.group("text"), match.group("tid")
    return Several(
        (
            LogMessage(text, int(match.group("pid")), about="next"),
            ThreadHead(id=tid, lwp=integer_or_none(tid), current=True),
        )
    )


def _caffe_thread(match: Match[str]) -> Event:
    """`SIGABRT(6), PID: 18613, Thread 18625:`"""
    tid, pid = match.group("tid"), int(match.group("pid"))
    return Several(
        (ProcessHead(pid=pid), ThreadHead(id=tid, lwp=int(tid), current=True, problem=match.group("signal")))
    )


def _java_frame(match: Match[str]) -> Event:
    """A native frame of Java's crash report: `C  [libcuda.so.1+0x1a2b3c]  cuMemFree_v2+0x12`."""
    name = (match.group("name") or "").rpartition("+0x")[0] or match.group("name") or ""
    return FrameLine(named_frame(name, Place(match.group("lib"))))


def _fortran_error(match: Match[str]) -> Event:
    """What the run time of Fortran says before the stack of the thread that failed."""
    text = match.group().strip()
    return Several((LogMessage(text, about="next"), ThreadHead(current=True)))


def _fortran_frame(match: Match[str]) -> Event:
    """A row of Intel's table: `e3sm.exe  00000000025D1AE4  pio_support_mp_pi  124  pio_support.F90`."""
    has = {name: "" if text == "Unknown" else text for name, text in match.groupdict().items()}
    place = Place(has["lib"], has["file"] or None, integer_or_none(has["line"]))
    return FrameLine(named_frame(has["name"], place, int(has["pc"], 16)))


ROWS: Tuple[Row, ...] = (
    row(
        "windows",
        "+0x",
        r"\s{1,8}#(?P<number>\d{1,4}) (?P<pc>0x[0-9a-f]{8,16}) (?:(?P<name>\S.{0,1000}?) )?"
        r"\((?:[A-Za-z]:\\[^()]{0,400}\\)?(?P<lib>[^()\\/]{1,100}\.(?:dll|exe|pyd))\+0x[0-9a-f]{1,16}\)$",
        native_frame,
    ),
    row("fortran", "forrtl: ", r"forrtl: (?:severe|error|info) \(\d{1,4}\): .*", _fortran_error),
    row("fortran", "Image  ", r"Image {2,30}PC {2,30}Routine {2,30}Line {2,20}Source", detail),
    row(
        "fortran",
        " ",
        r"(?P<lib>\S{1,80}) {1,20}(?P<pc>[0-9A-F]{8,16}) {1,8}(?P<name>\S.{0,80}?) {1,30}(?P<line>\d{1,9}|Unknown)"
        r" {1,8}(?P<file>\S{1,300})$",
        _fortran_frame,
        "fortran",
    ),
    row(
        "gfortran",
        "rogram received signal SIG",
        r"Program received signal SIG[A-Z]{2,6}: .*",
        _fortran_error,
    ),
    row("gfortran", "Backtrace for this error:", r"Backtrace for this error:$", detail),
    row("gfortran", "Error termination", r"Error termination\. Backtrace:$", _fortran_error),
    row(
        "gfortran",
        " in ",
        r"#(?P<number>\d{1,4}) {1,4}(?P<pc>0x[0-9a-f]{1,16}) in (?P<name>\?{3}|\w\S{0,300})"
        r"(?: at (?:\?{3}|(?P<file>\S{1,300})):(?P<line>\d{1,9}))?$",
        native_frame,
        "gfortran",
    ),
    row("ucx", "(tid:", r"=+ backtrace \(tid: *(?P<tid>\d{1,9})\) =+", _ucx_thread),
    row(
        "ucx",
        "() ]",
        r"(?P<file>/\S{1,400}): \[ (?P<name>[\w:~]{1,200})\(\) \]$",
        lambda match: LogMessage(
            HIT.format(match.group("name"), match.group("file").rpartition("/")[2]), about="stack"
        ),
    ),
    row(
        "ucx",
        "==>",
        r"==> {1,8}(?P<line>\d{1,7})\b",
        lambda match: LogMessage(f":{match.group('line')}", about="stack"),
    ),
    row("ucx", " 0x", r" {0,6}(?P<number>\d{1,3}) (?P<pc>0x[0-9a-f]{6,16}) (?P<rest>\S.*)", _ucx_frame),
    row("", "====", r"={20,}$", detail, "ucx"),
    row(
        "exception",
        " 0x",
        r"(?P<number>[1-9]\d{0,2})\s{2,8}(?P<pc>0x[0-9a-f]{8,16}) (?P<rest>\S.*(?: \+ \d{1,9}|\[0x[0-9a-f]{1,16}\]))$",
        _exception_frame,
    ),
    row(
        "openmpi",
        "[0x",
        r"(?:\[[\w.-]{1,80}:\d{1,9}\] ?)?\[ ?(?P<number>\d{1,3})\] ?(?P<plain>)" + _SYMBOL,
        _symbols_frame,
    ),
    row("dmlc", "[bt] (", r"\s{0,8}\[bt\] \((?P<number>\d{1,3})\)(?P<plain>) " + _SYMBOL, _symbols_frame),
    row(
        "ucx",
        "/libuc",
        r"\s{0,4}(?P<number>\d{1,3}) {2}(?P<plain>)(?=/[^\s(]*/libuc[pst]\.so)" + _SYMBOL,
        _symbols_frame,
    ),
    row("ucx", "[0x", r"\s{0,4}(?P<number>\d{1,3}) {2}(?P<plain>)" + _SYMBOL, _symbols_frame, "ucx"),
    row(
        "backtrace",
        "[0x",
        r"(?:\[[\w.-]{1,80}:\d{1,9}\] ?)?(?:\[ ?(?P<number>\d{1,3})\] ?|\s{0,4}(?P<plain>\d{1,3}):? {1,8})?"
        r"(?:0x[0-9a-f]{6,16} )?" + _SYMBOL,
        _symbols_frame,
    ),
    row("boost", "Signal (", r"Signal \(\d{1,2}\) received", announcement),
    row("glog", "Stack for thread ", r".{0,120}\bStack for thread (?P<name>[\w.-]{1,64})/(?P<tid>\d{1,9}):", _thread),
    row(
        "glog",
        "tack trace: ***",
        r"\s{0,4}(?P<text>\*\*\* .{0,80}received by PID (?P<pid>\d{1,9}) \(TID (?P<tid>0x[0-9a-f]{1,16}|\d{1,9})\).*)",
        _died,
    ),
    row(
        "glog",
        "received by PID ",
        r"\s{0,4}(?:\[SignalInfo: )?(?P<text>\*\*\* .{0,80}received by PID (?P<pid>\d{1,9}) .*)",
        lambda match: LogMessage(match.group("text").strip(" ]"), int(match.group("pid")), about="next"),
    ),
    row("backtrace", "!!! uWSGI ", r"!!! uWSGI (?:worker|process) (?P<pid>\d{1,9}) got \S.{1,60} !!!", announcement),
    row("backtrace", "*** backtrace of ", r"\*\*\* backtrace of \d{1,9} \*\*\*", detail),
    row("backtrace", "Signal: ", r"Signal: \S.*", announcement),
    row("backtrace", "Signal Received: ", r"Signal Received: \d{1,2} \(.{1,60}\)$", announcement),
    row(
        "backtrace",
        "Signal Received from ",
        r"Signal Received from pid=\d{1,9} *$",
        lambda match: LogMessage(match.group().rstrip()),
    ),
    row("backtrace", "BACKTRACE", r"\*\*\* BACKTRACE \*\*\*$", detail),
    row(
        "backtrace", "", r"(?:Signal code|Failing at address): |\*\*\* (?:Process received signal|End of error)", detail
    ),
    row(
        "paddle",
        "C++ Traceback",
        r"C\+\+ Traceback \(most recent call last\)",
        lambda _: ThreadHead(outermost_first=True),
    ),
    row("paddle", "", r"(?P<number>\d{1,3}) {2,3}(?P<name>\S.*)", outermost_first, "paddle"),
    row(
        "coredump",
        " dumped core",
        r"\s{0,40}(?:Message: )?(?P<text>Process (?P<pid>\d{1,9}) \(.{1,64}\) of user \d{1,9} dumped core.*)",
        announcement,
    ),
    row("coredump", "tack trace of thread ", r"\s{0,80}Stack trace of thread (?P<tid>\d{1,9}):", _thread),
    row(
        "coredump",
        " + 0x",
        r"\s{0,80}#(?P<number>\d{1,4})\s{1,4}(?P<pc>0x[0-9a-f]{6,16}) (?P<name>\S.{0,400}) "
        r"\((?P<lib>\S{1,300}) \+ 0x[0-9a-f]{1,16}\)",
        _coredump_frame,
    ),
    row("glog", "tack trace: ***", r"\*\*\* Check failure stack trace: \*\*\*", lambda _: ThreadHead()),
    row(
        "glog",
        "PC: @",
        r"(?:\[\d{4}-[^\]]{1,60}\] \S{1,60}:\d{1,6}: )?PC: @ {1,20}0x[0-9a-f]{1,16} {1,8}\(unknown\) {1,8}"
        r"(?P<name>[A-Za-z_~][^\s(]{0,200})(?:\(.{0,400}\))?",
        lambda match: LogMessage(HIT_ALONE.format(match.group("name")), about="stack"),
    ),
    row("glog", "PC: @", r"(?:\[\d{4}-[^\]]{1,60}\] \S{1,60}:\d{1,6}: )?PC: @ ", detail),
    row(
        "",
        "@ ... and at least",
        r".{0,120}@ \.\.\. and at least",
        lambda _: FramesMissing("the tool left out the outer frames"),
        "glog",
    ),
    row(
        "glog",
        "@",
        r"(?:\[\d{4}-[^\]]{1,60}\] \S{1,60}:\d{1,6}:\s)?"
        r"\s{1,8}@\s{1,20}(?:(?P<pc>0x[0-9a-f]+)\s{1,12})?(?:(?:\d{1,10}|\(unknown\))\s{1,8})?"
        r"(?:(?P<file>[\w./+-]{1,400}\.\w{1,4}):(?P<line>\d{1,9}) )?(?P<name>\S.*)",
        native_frame,
    ),
    row(
        "hs_err",
        "+0x",
        r"[CVjJ]\s{1,4}\[(?P<lib>[^\]+\s]{1,400})\+0x[0-9a-f]+\](?:\s{1,4}(?P<name>\S.*))?",
        _java_frame,
    ),
    row(
        "caffe2",
        ", PID: ",
        r"(?P<signal>SIG[A-Z]{2,6}\(\d{1,2}\)), PID: (?P<pid>\d{1,9}), Thread (?P<tid>\d{1,19}):",
        _caffe_thread,
    ),
    row(
        "caffe2",
        ") in ",
        r"\[(?P<number>\d{1,3})\] (?P<name>\S.{0,2000}?)(?:\+0x[0-9a-f]{1,16})?\((?P<pc>0x[0-9a-f]{6,16})\) in "
        r"(?P<lib>/\S+)$",
        native_frame,
    ),
    row("", "", r"\[\d{1,3}\] \?\?\?\(0\)$", detail, "caffe2"),
)
