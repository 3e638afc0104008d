"""gdb's machine interface (GDB/MI), as editors log it: `frame={level="0",addr="0x..",func="poll",from="libc.so.6"}`."""

from __future__ import annotations

from typing import Dict, List, Match, Optional, Tuple

from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import Row, detail, row
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import Event, FrameLine, Several, ThreadHead

_FIELD = regex(r"([a-z][\w-]{0,20})=\"((?:[^\"\\]|\\.){0,2000})\"")
_PART = regex(r"frame=\{([^{}]{0,4000})|(?:\{|,|\A)id=\"(\d[\d.]{0,9})\",target-id=\"([^\"]{0,200})\"")
_ADDRESS = regex(r"0x[0-9a-f]{1,16}\Z")
_NAME = regex(r"\bname=\"([^\"]{1,64})\"")
_LWP = regex(r"\b(?:LWP|process|Thread) (\d{1,9})\b")
_STOPPED = regex(r"[*]stopped,.{0,4000}?thread-id=\"(\d[\d.]{0,9})\"")
_MOST = 1024


def _frame_of(fields: Dict[str, str]) -> Frame:
    line, pc = fields.get("line", ""), fields.get("addr", "")
    file = fields.get("fullname") or fields.get("file")
    place = Place(fields.get("from"), file, integer_or_none(line) if file else None)
    address = int(pc, 16) if _ADDRESS.match(pc) else None
    return named_frame(fields.get("func", "").replace('\\"', '"'), place, address)


def _frames(match: Match[str]) -> Optional[Event]:
    """Threads with the frames behind them, or the frames of one thread."""
    text = match.string
    events: List[Event] = []
    stopped = _STOPPED.search(text)
    if stopped:
        events.append(ThreadHead(id=stopped.group(1), selected=True))
    last = 0
    for part in _PART.finditer(text):
        if part.group(1) is None:
            lwp = _LWP.search(part.group(3))
            name = _NAME.search(text, part.end(), part.end() + 100)
            head = ThreadHead(
                id=part.group(2), lwp=int(lwp.group(1)) if lwp else None, name=name.group(1) if name else None
            )
            events.append(head)
            last = 0
            continue
        fields = dict(_FIELD.findall(part.group(1)))
        if "addr" not in fields and "func" not in fields:
            continue
        level = integer_or_none(fields.get("level"))
        last = level if level is not None and level < _MOST else last
        events.append(FrameLine(_frame_of(fields), last, addressed=True))
        last += 1
        if len(events) >= _MOST:
            break
    return Several(tuple(events)) if events else None


ROWS: Tuple[Row, ...] = (
    row("gdb", "frame={", r".{0,4000}?\bframe=\{", _frames),
    row("gdb", 'target-id="', r".{0,400}?\bid=\"\d[\d.]{0,9}\",target-id=\"", _frames),
    row("", "", r"(?:\d{0,9}[=*^](?:thread-|library-|breakpoint-|running|done|cmd-param|tsv-)|&\")", detail),
)
