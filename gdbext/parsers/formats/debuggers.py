"""gdb, cuda-gdb, gstack/pstack (which are gdb), lldb and eu-stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Match, Optional, Tuple

from gdbext.knowledge.device_code import DEVICE_FOCUS, WAVEFRONT
from gdbext.knowledge.log_lines.last_words import STOPS_OF_GDB, STOPS_OF_LLDB
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.parsers.argument_lists import split_call
from gdbext.parsers.formats.format_row import Row, announcement, detail, location, number, process_head, row
from gdbext.parsers.frame_lines import Place, looks_like_frame, named_frame, read_frame, read_place
from gdbext.parsers.line_events import (
    DeviceFocus,
    Event,
    FrameLine,
    FramesMissing,
    LogMessage,
    ProcessHead,
    Prompt,
    Raised,
    Runs,
    Several,
    Standing,
    Stopped,
    ThreadHead,
)

_LWP = regex(r"\b(?:LWP|process|pid|tid =) (\d{1,9}|0x[0-9a-f]{1,8})")
_PTHREAD = regex(r"\bThread (?:\d{1,9}\.)?(0x[0-9a-f]{1,16}) \(LWP ")
_NAME = regex(r"\"([^\"]{1,64})\"|\bname = '([^']{1,64})'")
_HOLDS_GIL = regex(r"(?i)\b(?:has|holds|holding|owns) the GIL\b")
_DIED = regex(r"stop reason = (?:EXC_(?!BREAKPOINT)|hit program assert|signal SIG(?:ABRT|SEGV|BUS|ILL|FPE)).{0,80}")
_AT_A_STOP = regex(r"stop reason = (?:" + STOPS_OF_LLDB + r")[^,\n]{0,80}")
_PYTHON_FRAME = regex(r"Frame 0x[0-9a-f]{1,16}, for file ([^,]{1,4096}), line (\d{1,9}), in ([\w.<>]{1,400})")
_RUN_FRAME = regex(
    r"[(, ]\w{1,20}= {0,8}Frame (?P<address>0x[0-9a-f]{1,16}), for file (?P<file>[^,]{1,4096}), "
    r"line (?P<line>\d{1,9}), "
    r"in (?P<name>[\w.<>]{1,400})(?: \(|$)"
)
"""What CPython's python-gdb.py prints for a frame object among the arguments of C code."""
_EVALUATES = regex(r"_?PyEval_EvalFrame(?:Ex|Default)?$")
_SHOWS_STACK = regex(r"(?:thread apply|taas|bt|ba|where|backtrace|info stack|thread backtrace|py-bt)")
_LETS_GO = regex(r"(?:q|quit|exit|k|kill|detach|process (?:detach|kill))\b")
_ATTACH = regex(r"(?:attach|process attach --pid|process attach -p) (\d{1,9})")


def _lwp(text: str) -> Optional[int]:
    found = _LWP.search(text)
    return number(found.group(1)) if found else None


def _pthread(text: str) -> Optional[int]:
    found = _PTHREAD.search(text)
    return int(found.group(1), 16) if found else None


def _name(text: str) -> Optional[str]:
    found = _NAME.search(text)
    return (found.group(1) or found.group(2)) if found else None


def _gdb_thread(match: Match[str]) -> Event:
    id, rest = match.group("id"), match.group("rest")
    gil = True if _HOLDS_GIL.search(rest) else None
    stopped = _DIED.search(rest)
    return ThreadHead(
        id=id,
        lwp=_lwp(rest),
        pthread=_pthread(rest),
        name=_name(rest),
        gil=gil,
        group=_group(id),
        problem=stopped.group() if stopped else "",
        stop=_stop_of_lldb(rest),
    )


def _stop_of_lldb(rest: str) -> Optional[str]:
    """`stop reason = breakpoint 1.1`; "" for another reason, as signal SIGSTOP."""
    found = _AT_A_STOP.search(rest)
    return found.group() if found else "" if "stop reason = " in rest else None


def _lwp_alone(match: Match[str]) -> Event:
    lwp = match.group("lwp")
    return ThreadHead(id=lwp, lwp=int(lwp), name=_name(match.group("rest")))


def _stopped(match: Match[str]) -> Event:
    id = match.group("id")
    problem = "" if "SIGINT" in match.group("rest") else match.string.strip()
    head = ThreadHead(id=id, lwp=_lwp(match.string), name=_name(match.string), group=_group(id), selected=True)
    return replace(head, problem=problem, stop="")


def _at_a_stop(match: Match[str]) -> Event:
    """`Thread 2 "python3" hit Breakpoint 1, 0x7fff in ncclAllReduce ()`"""
    id, stop, body = match.group("id"), match.group("stop"), match.group("body")
    frame = read_frame(body) if body and looks_like_frame(body) else None
    head = ThreadHead(id=id, name=_name(match.string), group=_group(id), selected=True)
    return replace(head, stop=f"hit {stop}", only=frame)


def _alone_at_a_stop(match: Match[str]) -> Event:
    """`Breakpoint 2, decode (step=3) at gpt.cc:66`: of a program that had no threads yet."""
    body = match.group("body")
    return Stopped(f"hit {match.group('stop')}", read_frame(body) if body and looks_like_frame(body) else None)


def _selected(match: Match[str]) -> Event:
    id, body = match.group("id"), match.group("body")
    head = ThreadHead(
        id=id,
        lwp=_lwp(match.string),
        pthread=_pthread(match.string),
        name=_name(match.string),
        group=_group(id),
        selected=True,
    )
    if not body or not looks_like_frame(body):
        return head
    return Several((head, FrameLine(read_frame(body), int(match.group("number")), addressed=True)))


def _listed(match: Match[str]) -> Event:
    """A line of `info threads`, which shows the innermost frame."""
    id, rest = match.group("id"), match.group("rest")
    name = _NAME.match(rest)
    body = rest[name.end() :].strip() if name else rest
    frame = None if body.startswith("(running)") else read_frame(body)
    return ThreadHead(
        id=id,
        lwp=int(match.group("lwp")),
        pthread=_pthread(match.string),
        name=name.group(1) if name else None,
        group=_group(id),
        selected=True,
        starred=match.string.lstrip().startswith("*"),
        only=frame,
    )


def _group(id: str) -> Optional[str]:
    return id.split(".", 1)[0] if "." in id else None


def _gdb_frame(match: Match[str]) -> Optional[Event]:
    body, count = match.group("body"), int(match.group("number"))
    python = _PYTHON_FRAME.match(body)
    if python:
        frame = Frame(python.group(3), file=python.group(1), line=int(python.group(2)), language="python")
        return FrameLine(frame, count)
    if not looks_like_frame(body):
        return None
    native, run = read_frame(body), _RUN_FRAME.search(body) if ", for file " in body else None
    if run is None or not _EVALUATES.match(native.function or ""):
        return FrameLine(native, count, addressed=True)
    frame = Frame(run["name"], file=run["file"], line=int(run["line"]), language="python")
    return FrameLine(frame, count, runs=Runs(native, run["address"]))


def _standing(match: Match[str]) -> Event:
    return Standing(read_frame(match.group()))


def _inlined_on_device(match: Match[str]) -> Event:
    """`kernel () at FILE:128 in _ZN..waitPeer.. inlined from FILE:227`: the function in which the kernel stands."""
    place = Place(None, match.group("file"), int(match.group("line")))
    return Standing(replace(named_frame(match.group("name"), place), inlined=True))


def _prompt(match: Match[str]) -> Event:
    command = match.group("command")
    attach = _ATTACH.match(command)
    return (
        ProcessHead(pid=int(attach.group(1)))
        if attach
        else Prompt(
            bool(_SHOWS_STACK.match(command)),
            command.strip() == "thread",
            "" if _LETS_GO.match(command) else match.group("debugger"),
        )
    )


def _lldb_frame(match: Match[str]) -> Event:
    pc, body = number(match.group("pc")), match.group("body")
    library, _, call = body.rpartition("`") if "`" in body.split("(", 1)[0] else ("", "", body)
    name, arguments, rest = split_call(call, spaced=False)
    name, _, offset = name.partition(" + ")
    place = read_place(rest) if arguments or rest else read_place(" " + offset)
    frame = named_frame(name, Place(library or None, place.file, place.line), pc, arguments)
    return FrameLine(frame, int(match.group("number")))


def _torch_frame(match: Match[str]) -> Event:
    name = match.group("name").rpartition(" + ")[0] or match.group("name")
    return FrameLine(
        named_frame(name, Place(match.group("lib")), number(match.group("pc"))), int(match.group("number"))
    )


def _eu_frame(match: Match[str]) -> Event:
    name, _, module = match.group("name").partition(" - /")
    frame = named_frame(name, Place(f"/{module}" if module else None), number(match.group("pc")))
    return FrameLine(frame, int(match.group("number")))


_COUNT = r"#(?P<number>\d{1,7}):?[ \t]+"
ROWS: Tuple[Row, ...] = (
    row("gdb", "Thread ", r"Thread (?P<id>(?:\d+\.)?\d+)\b(?P<rest> .*\b(?:LWP|process) \d.*)", _gdb_thread),
    row("gdb", "(Thread ", r"Thread (?P<id>(?:\d+\.)?\d+) (?P<rest>\(Thread (?:\d{1,9}\.)?0x.*)", _gdb_thread),
    row("gdb", "LWP ", r"(?:Thread 0x[0-9a-f]+ \()?LWP (?P<lwp>\d{1,9})\)?(?P<rest>[^,]{0,80}):$", _lwp_alone),
    row("gdb", " received signal ", r"Thread (?P<id>[\d.]+) (?P<rest>.*received signal .*)", _stopped),
    row(
        "gdb",
        "Program ",
        r"(?P<text>Program (?:terminated with|received) signal SIG(?:ABRT|BUS|FPE|ILL|SEGV|SYS)\b.*)",
        lambda match: Several((Stopped(""), announcement(match))),
    ),
    row("gdb", "Core was", r"Core was generated by `.{1,200}", lambda match: LogMessage(match.group().strip())),
    row("gdb", "Program received signal ", r"Program received signal SIG", lambda _: Stopped("")),
    row(
        "gdb",
        " hit ",
        r"Thread (?P<id>[\d.]+) (?:\"[^\"]*\" )?hit (?P<stop>" + STOPS_OF_GDB + r")(?:, (?P<body>\S.*)|.*)",
        _at_a_stop,
    ),
    row("gdb", " hit ", r"Thread (?P<id>[\d.]+) (?P<rest>\"[^\"]*\" hit .*)", _stopped),
    row("gdb", ", ", r"(?P<stop>" + STOPS_OF_GDB + r"), (?P<body>\S.*)", _alone_at_a_stop),
    row("gdb", "Old value = ", r"Old value = ", lambda _: Stopped("hit a watchpoint")),
    row(
        "gdb",
        "hread ",
        r"\[(?:Switching to|Current) thread (?:is )?(?P<id>\d[\d.]*)\b(?:[^\]]{0,200}\] ?#(?P<number>\d{1,7})[ \t]+"
        r"(?P<body>\S.*))?",
        _selected,
    ),
    row(
        "gdb", "(LWP ", r"[* ]{0,9}(?P<id>\d[\d.]*) +Thread 0x[0-9a-f]+ \(LWP (?P<lwp>\d{1,9})\) +(?P<rest>.+)", _listed
    ),
    row("gdb", " LWP ", r"[* ]{1,9}(?P<id>\d[\d.]*) +LWP (?P<lwp>\d{1,9}) +(?P<rest>\S.+)", _listed),
    row("eu-stack", "PID ", r"PID (?P<pid>\d{1,9}) - (?:process|core)", process_head),
    row("eu-stack", "TID ", r"TID (?P<lwp>\d{1,9})\b(?P<rest>[^:]{0,80}):$", _lwp_alone),
    row("", "#", r"\s{0,12}" + _COUNT + r"(?P<pc>0x[0-9a-f]+) +(?:- 1 )?(?P<name>.+)", _eu_frame, "eu-stack"),
    row("", ":", r" {4}(?P<file>\S+?):(?P<line>\d{1,9})(?::\d{1,9})?$", location, "eu-stack"),
    row("lldb", "hread #", r"\s{0,4}\*?\s{0,4}thread #(?P<id>\d{1,9})(?P<rest>[:,].*|$)", _gdb_thread),
    row(
        "",
        "Exception raised from ",
        r"(?P<text>Exception raised from (?P<name>[\w~:]{1,120}) at \S{1,400}:\d{1,9}) \(most recent call first\)",
        lambda match: Raised(match.group("text"), match.group("name").rpartition("::")[2]),
    ),
    row(
        "torch",
        "frame #",
        r"\s{0,8}frame " + _COUNT + r"(?P<name>.+) \((?P<pc>0x[0-9a-f]+) in (?P<lib>[^()]+)\)$",
        _torch_frame,
    ),
    row(
        "torch",
        "() [0x",
        r"\s{0,8}frame " + _COUNT + r"(?P<lib>[^\s()]{1,400})\((?P<name>)\) \[(?P<pc>0x[0-9a-f]+)\]$",
        _torch_frame,
    ),
    row("lldb", "frame #", r"\s{0,8}\*?\s{0,4}frame " + _COUNT + r"(?:(?P<pc>0x[0-9a-f]+) )?(?P<body>.+)", _lldb_frame),
    row("gdb", "#", r"\s{0,12}(?:=>|\*)?\s{0,4}" + _COUNT + r"(?P<body>\S.*)", _gdb_frame),
    row("", "db) ", r"\((?P<debugger>(?:cuda-)?(?:gdb|lldb))\) (?P<command>.*)", _prompt),
    row("gdb", "ttaching to ", r"Attaching to (?:program: .*, )?(?:process|pid) (?P<pid>\d{1,9})", process_head),
    row(
        "gdb",
        "Backtrace stopped",
        r"(?P<reason>Backtrace stopped: .*)",
        lambda match: FramesMissing(match.group("reason")),
    ),
    row(
        "gdb", "(More stack", r"\(More stack frames follow", lambda match: FramesMissing("more frames were not printed")
    ),
    row(
        "gdb",
        "(process ",
        r"\[Inferior \d{1,6} \(process (?P<pid>\d{1,9})\) (?:detached|killed|exited)",
        lambda match: ProcessHead(pid=int(match.group("pid")), ends=True),
    ),
    row("gdb", "WFs: (", WAVEFRONT, lambda match: DeviceFocus(match.string.strip())),
    row("gdb", "CUDA kernel ", DEVICE_FOCUS, lambda match: DeviceFocus(match.string.strip())),
    row("gdb", "[Switching to Thread ", r"\[Switching to Thread 0x", lambda _: DeviceFocus("")),
    row(
        "gdb",
        " in _Z",
        r"[A-Za-z_]\w{0,200} \([^()]{0,400}\) at (?P<file>\S{1,400}):(?P<line>\d{1,9}) in (?P<name>_Z\w{1,4000})",
        _inlined_on_device,
    ),
    row("", " inlined from ", r"\w{1,4000} inlined from \S{1,400}:\d{1,9}\s{0,80}$", detail, "gdb"),
    row("gdb", " in ", r"0x[0-9a-f]{8,16} in \S.* \(.*", _standing),
    row("gdb", ") at ", r"[A-Za-z_][\w:~<>]* \((?:\w+=.*)?\) at \S+\.\w{1,4}:\d+$", _standing),
    row("gdb", "[", r"\[(?:Switching|Inferior|New|Thread|Using|Detaching|Attaching|Loading|\w+ exited)\b.*\]$", detail),
    row("gdb", "ibthread_db", r"Using host libthread_db", detail),
    row("", "No ", r"No (?:locals|symbol table info available|symbol table)\.?", detail),
    row("", " = ", r"\s{4,12}[\w$<>]+ = .*", detail, "gdb"),
    row("", "\t", r"\d{1,7}\t.*", detail, "gdb"),
)
