"""Python's own stacks: tracebacks, faulthandler, py-bt of gdb, py-spy and pystack."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.log_lines.last_words import IGNORED
from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.function_names import bare_name
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import (
    Row,
    detail,
    native_frame,
    process_head,
    python,
    python_outermost_first,
    row,
)
from gdbext.parsers.formats.logs import rank_in
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import (
    Chained,
    Code,
    Event,
    FrameLine,
    FramesMissing,
    Interrupted,
    Location,
    LogMessage,
    ProcessHead,
    Several,
    ThreadHead,
    Trace,
)

_LINE = regex(r"(.+):(\d{1,9})\Z")
_PYTHON_FILE = regex(r"(?:\.pyx?|\.pyi|\.pxd)\Z|<.*>\Z")
_STATES = {"active": "R", "idle": "S"}  # py-spy says idle where the thread does not run


def _spied_thread(match: Match[str]) -> Event:
    id = match.group("id")
    return ThreadHead(
        id=id,
        lwp=integer_or_none(id),
        name=match.group("name"),
        gil=True if match.group("gil") else None,
        state=_STATES[match.group("state")],
    )


_MOST_BLANKS = 3
"""In the name of a Python function, as somebody may have added to it."""


def _spied_frame(match: Match[str]) -> Optional[Event]:
    name, _, place = match.group("call").rpartition(" (")
    if not name.strip():
        return None
    frame = spied_frame(name.strip(), place)
    if is_sentence(frame):
        return None
    return FrameLine(frame) if match.group("indent") or frame.line is not None else None


def is_sentence(frame: Frame) -> bool:
    """Whether it is a line of a log, with the Python file that wrote it behind."""
    return frame.language == "python" and (frame.function or "").count(" ") > _MOST_BLANKS


def _row_of_top(match: Match[str]) -> Event:
    """A row of the table of py-spy top, which is sorted by the time that functions took themselves: the callees are
    above their callers in most programs."""
    return FrameLine(spied_frame(match.group("name"), match.group("place")))


def spied_frame(name: str, place: str, line: Optional[int] = None) -> Frame:
    """A frame of py-spy: `place` is `FILE:LINE`, a Python file alone or the library of a native frame."""
    found = _LINE.match(place)
    file = found.group(1) if found else place
    line = int(found.group(2)) if found else (line or None)
    if _PYTHON_FILE.search(file):
        return Frame(name, file=file, line=line, language="python")
    return named_frame(name, Place(None, file, line) if line is not None else Place(file))


def _version(match: Match[str]) -> Event:
    return ProcessHead(python=match.group("version"), firm=False)


def _fault_thread(match: Match[str]) -> Event:
    current = match.string.startswith("Current")
    return ThreadHead(id=match.group("id"), name=match.group("name"), outermost_first=False, current=current)


def _notebook(match: Match[str]) -> Event:
    """IPython names the exception before its traceback."""
    head = ThreadHead(outermost_first=True, marks_lines=True)
    return Several((LogMessage(match.group("text"), about="next"), head))


def _marked_line(match: Match[str]) -> Event:
    """`--> 206     results = get(dsk, keys)`: the line of the frame before, among its neighbours."""
    return Several((Location("", int(match.group("line"))), Code(match.group("code")[:400], marked=True)))


def _pystack_thread(match: Match[str]) -> Event:
    id = match.group("id")
    gil = True if "Has the GIL" in match.string else None
    return ThreadHead(id=id, lwp=int(id), name=match.group("name"), gil=gil, outermost_first=True)


def _pystack_frame(match: Match[str]) -> Event:
    file, line, rest = match.group("file"), int(match.group("line")), match.group("rest")
    if match.group("kind") != "C":
        return FrameLine(Frame(rest, file=file, line=line, language="python"), outermost_first=True)
    name, opened, library = rest.rpartition(" (/")
    if not opened:
        name, library = rest, ""
    inlined = name.endswith(" (inlined)")
    place = Place("/" + library[:-1] if library else None, None if file.startswith("?") else file, line or None)
    frame = named_frame(bare_name(name[: -len(" (inlined)")] if inlined else name), place)
    return FrameLine(
        Frame(frame.function, frame.module, frame.pc, frame.file, frame.line if frame.file else None, inlined=inlined),
        outermost_first=True,
    )


def _traced(match: Match[str]) -> Event:
    """A log of calls, vLLM's VLLM_TRACE_FUNCTION: `Call to f in FILE:9 from g in FILE:3`, `Return from f in ...`."""
    inner = Frame(match.group("name"), file=match.group("file"), line=int(match.group("line")), language="python")
    outer = Frame(match.group("outer"), file=match.group("place"), line=int(match.group("at")), language="python")
    return Trace((outer,) if match.group("done") else (inner, outer))


def _segfault(match: Match[str]) -> Event:
    """Said once by a process, right before its stack."""
    return Several((ProcessHead(), LogMessage(match.group("text"), about="next"), ThreadHead(current=True)))


def _ended_by(match: Match[str]) -> Event:
    text = match.group().strip()
    return LogMessage(text, rank=rank_in(text), about="before")


_FILE = r"[ \t]{0,12}File:? \"(?P<file>[^\"]{1,4096})\", line (?P<line>\d{1,9})"
ROWS: Tuple[Row, ...] = (
    row(
        "trace",
        " in ",
        r"(?:[\d-]{8,10} [\d:.,]{8,18} )?(?:Call to|(?P<done>Return from)) (?P<name>[\w.<>]{1,200}) in "
        r"(?P<file>\S{1,400}):(?P<line>\d{1,9})"
        r" (?:from|to) (?P<outer>[\w.<>]{1,200}) in (?P<place>\S{1,400}):(?P<at>\d{1,9})$",
        _traced,
    ),
    row("native", "egfault", r"!{3,12} (?P<text>[Ss]egfault encountered) !{3,12}", _segfault),
    row("native", 'File "<unknown>"', r"[ \t]{0,12}File \"<unknown>\", line 0, in (?P<name>\S.*)", native_frame),
    row(
        "py-spy",
        "Thread ",
        r"Thread (?:(?P<id>0x[0-9a-fA-F]+|\d+) )?\((?P<state>active|idle)(?P<gil>[+, ]{1,2}gil)?\)"
        r"(?::? ?\"(?P<name>[^\"]{0,200})\")?:?$",
        _spied_thread,
    ),
    row("py-spy", "Process ", r"Process (?P<pid>\d{1,9}): (?P<title>.*)", process_head),
    row(
        "faulthandler",
        "Process ",
        r"Process (?P<rank>\d{1,6}) timed out with traceback:\s*$",  # torch common_distributed.py
        lambda match: Several((ProcessHead(rank=int(match.group("rank"))), LogMessage(match.group().strip()))),
    ),
    row(
        "faulthandler",
        "Timeout (",
        r"(?:\s{0,8}|\S.{0,400}? )(?P<text>Timeout \(\d{1,4}:\d\d:\d\d(?:\.\d{1,9})?\)!)\s*$",
        lambda match: Several((ProcessHead(), LogMessage(match.group("text")))),
    ),
    row("py-spy", "Python v", r"Python v(?P<version>\d+\.\d+)\S* \(", _version),
    row("faulthandler", "(most recent call first)", r"Stack \(most recent call first\)", lambda _: ThreadHead()),
    row(
        "faulthandler",
        "(most recent call first)",
        r"(?:Current t|T)hread (?P<id>0x[0-9a-fA-F]+)(?: \[(?P<name>[^\]]{0,64})\])? \(most recent call first\)",
        _fault_thread,
    ),
    row(
        "faulthandler",
        " in ",
        r"[ \t]{0,12}File \"(?P<file>[^\"]{1,4096})\", line (?:(?P<line>\d{1,9})|\?{1,3})"
        r" in (?P<name>\S.*)",
        python,
    ),
    row("faulthandler", "<no Python frame>", r"\s{0,8}<no Python frame>", detail),
    row("faulthandler", "Extension modules:", r"Extension modules: ", detail),
    row(
        "traceback",
        "Traceback (most recent call first)",
        r"\s{0,8}Traceback \(most recent call first\)",
        lambda _: ThreadHead(outermost_first=False),
    ),
    row(
        "traceback",
        "Traceback (most recent call last)",
        r"[ \t+|]{0,12}(?:Exception Group )?Traceback \(most recent call last\)",
        lambda _: ThreadHead(outermost_first=True),
    ),
    row(
        "traceback",
        "─ Traceback",
        r"\s{0,8}╭─{1,200} Traceback \(most recent call last\) ─{1,200}╮?$",
        lambda _: ThreadHead(outermost_first=True),
    ),
    row(
        "traceback",
        " in ",
        r"\s{0,8}│ ?(?P<file>[~/][^│\s]{0,300}|[^│\s][^│]{0,300}\.pyx?):(?P<line>\d{1,9}) in (?P<name>[\w.<>]{1,200})"
        r" {0,200}│?$",
        python_outermost_first,
    ),
    row(
        "traceback",
        " in ",
        r"\s{0,8}│ in (?P<file>)(?P<name>[\w.<>]{1,200}):(?P<line>\d{1,9}) {1,200}│$",
        python_outermost_first,
    ),
    row("", "│", r"\s{0,8}│", detail, "traceback"),
    row("", "╰─", r"\s{0,8}╰─", detail, "traceback"),
    row(
        "traceback",
        "^CTraceback (most recent call last)",
        r"\s{0,8}(?:\^C)+Traceback \(most recent call last\)",
        lambda _: Several((Interrupted(), ThreadHead(outermost_first=True))),
    ),
    row("", "^C", r"\s{0,8}(?:\^C)+", lambda _: Interrupted()),
    row(
        "",
        "KeyboardInterrupt",
        r"\s{0,8}KeyboardInterrupt\b(?:: .{1,80})?",
        lambda match: Several((Interrupted(), _ended_by(match))),
        "traceback",
    ),
    row(
        "traceback",
        "Traceback (most recent call last)",
        r"(?P<text>[A-Z]\w{0,60}) {2,80}Traceback \(most recent call last\)$",
        _notebook,
    ),
    row(
        "pystack",
        "Traceback for thread ",
        r"Traceback for thread (?P<id>\d{1,19})(?: \((?P<name>.{0,64}?)\))?(?: \[[^\]]*\])* \(most recent call last\)",
        _pystack_thread,
    ),
    row(
        "pystack",
        'File "',
        r"[ \t]{0,12}\((?P<kind>Python|C|P|Cython)\) File \"(?P<file>[^\"]{1,4096})\", "
        r"line (?P<line>\d{1,9}), in (?P<rest>\S.*)",
        _pystack_frame,
    ),
    row(
        "traceback",
        " in ",
        r"\s{0,8}(?:File )?(?P<file>(?:[/~.]|[A-Za-z]:\\)\S{0,400}\.pyx?|<ipython-input-[\w-]{1,40}>"
        r"|<timed \w{1,8}>)(?::(?P<line>\d{1,9}),)? in "
        r"(?P<name>[\w.<>]{1,200})(?:\(.*\)?)?$",
        python_outermost_first,
    ),
    row("", "File", _FILE + r", in (?P<name>.{1,400})", python_outermost_first, "traceback"),
    row("traceback", "File", _FILE + r", in (?P<name>[\w.<>]{1,400})", python_outermost_first),
    row(
        "",
        "Exception in thread",
        r"Exception in thread (?P<name>\S.{0,63}?):$",
        lambda match: ThreadHead(name=match.group("name"), firm=False),
    ),
    row("", "ignored in atexit", r"Exception ignored in atexit callback: ", lambda _: Chained()),
    row(
        "",
        IGNORED,
        IGNORED + r"(?: on threading shutdown| sys\.unraisablehook)?: ",
        lambda match: LogMessage(match.group(), about="next"),
    ),
    row("", "bove exception", r"(?:During handling of|The above exception was)\b.*exception", lambda _: Chained()),
    row(
        "", "Previous line repeated", r"\s+\[Previous line repeated", lambda match: FramesMissing(match.string.strip())
    ),
    row("", "> ", r"-{1,8}> (?P<line>\d{1,7})\b(?P<code>.*)", _marked_line, "traceback"),
    row("", "", r"\s+[\^~ ]+$", detail, "traceback"),
    row("", "", r"\s+\S.*", lambda match: Code(match.group()[:400]), "traceback"),
    row("", "()", r"[a-z_][\w.]{0,200}\(\)$", lambda match: Code(match.group()), "traceback"),
    row(
        "",
        "",
        r"(?:(?:raise|return|await|yield|with|for|if) \S|[A-Za-z_][\w.\[\]]{0,80}(?:, ?[A-Za-z_]\w{0,80}){0,8} = \S).*",
        lambda match: Code(match.group()[:400]),
        "traceback",
    ),
    row("", "", r"\s+\S.*", detail, "pystack"),
    row("", "", r"\s+\.\.\.$", lambda _: FramesMissing("the tool left out the outer frames"), "faulthandler"),
    row(
        "",
        "",
        r"(?:[\w.]{1,200}(?:Error|Exception|Interrupt|Exit|Warning|Expired|Timeout|Empty|Full|Failed)(?:\(\w{1,80}\))?"
        r"|[A-Za-z_][\w.]{0,200}:\s.*)(?::.*)?$",
        _ended_by,
        "traceback",
    ),
    row(
        "py-spy",
        "%",
        r"\s{0,4}\d{1,3}\.\d\d%\s{1,8}\d{1,3}\.\d\d%\s{1,8}[\d.]{1,12}s\s{1,8}[\d.]{1,12}s\s{1,8}"
        r"(?P<name>\S.{0,200}?) \((?P<place>[^()]{1,400})\)$",
        _row_of_top,
    ),
    row("", ":", r"\s{8,}(?:Arguments|Locals):$|\s{12,}[\w.*]+: .*", detail, "py-spy"),
    row(
        "py-spy",
        ")",
        r"(?P<indent>\s*)(?P<call>\S.* \([^()\s][^()]*)\)(?:\s{1,4}(?:<[-=]|←|//|#).*)?$",
        _spied_frame,
        "py-spy",
    ),
)
