"""Reports of the sanitizers and of valgrind: the stack that is wrong, and those of other moments."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.frames.system.checkers import FREED, OTHER_ACCESS, TAKES_LOCK
from gdbext.model.text.patterns import regex
from gdbext.parsers.formats.format_row import Row, announcement, detail, number, row
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import (
    Event,
    FrameLine,
    LogMessage,
    OtherStack,
    ProcessHead,
    Several,
    ThreadHead,
)

_FILE_LINE = regex(r"(\S+?):(\d{1,9})(?::\d{1,9})?\Z")


def _frame(match: Match[str]) -> Event:
    """`#0 pthread_mutex_lock <null> (demo+0x4a2f1)`"""
    file, line = match.group("file"), match.group("line")
    place = Place(match.group("lib"), None if file == "<null>" else file, int(line) if line else None)
    return FrameLine(named_frame(match.group("name"), place), int(match.group("number")))


def _addressed_frame(match: Match[str]) -> Optional[Event]:
    """`#1 0x4a in f /src/f.c:12:5` or `... in f (/lib/libc.so.6+0x123)`."""
    name, _, place = match.group("rest").rpartition(" ")
    found = _FILE_LINE.match(place)
    if name.endswith(" at"):
        return None  # gdb
    if place.startswith("(") and "+0x" in place:
        where = Place(place[1:].rpartition("+0x")[0])
    elif found and name:
        where = Place(None, found.group(1), int(found.group(2)))
    else:
        return None
    return FrameLine(named_frame(name, where, number(match.group("pc"))), int(match.group("number")))


def _bare_frame(match: Match[str]) -> Event:
    return FrameLine(named_frame(match.group("name"), pc=number(match.group("pc"))), int(match.group("number")))


def _valgrind_frame(match: Match[str]) -> Event:
    """`==7==    at 0x4A: f (f.c:12)` begins a stack, `==7==    by 0x4B: g (in /lib/libg.so)` goes on with it."""
    file, line = match.group("file"), match.group("line")
    place = Place(match.group("lib"), file, int(line) if line else None)
    name = "" if match.group("name") == "???" else match.group("name")
    return FrameLine(named_frame(name, place), 0 if match.group("at") == "at" else None)


def _warning(match: Match[str]) -> Event:
    """Of the thread sanitizer, which goes on: nobody died."""
    pid = int(match.group("pid"))
    return Several((ProcessHead(pid=pid), LogMessage(match.string.strip(), pid)))


def _acquires(match: Match[str]) -> Event:
    wanted, held = match.group("wanted"), match.group("held")
    id = match.group("id") or "main"
    return ThreadHead(id=id, recurs=True, problem=TAKES_LOCK.format(wanted, held))


def _other_moment(match: Match[str]) -> Event:
    """The head of a stack where the memory was freed, or of the access before this one."""
    text = match.string
    return OtherStack(FREED if "free" in text else OTHER_ACCESS if "revious " in text or "egment" in text else "")


_NAMED = (
    r"(?P<number>\d{1,3}) (?P<name>[^0\s].*) (?P<file><null>|/?[^\s:()]+)"
    r"(?::(?P<line>\d{1,9}))?(?::\d{1,9})? \((?P<lib>[^()\s]+)\+0x[0-9a-f]+\)(?: \(BuildId.*)?$"
)

ROWS: Tuple[Row, ...] = (
    row(
        "valgrind",
        "== ",
        r"==\d{1,9}==\s{1,8}(?P<at>at|by) 0x[0-9A-F]{1,16}: (?P<name>\S.{0,1000}?) "
        r"\((?:in (?P<lib>[^()]{1,400})|(?P<file>[^():\s]{1,300}):(?P<line>\d{1,9}))\)$",
        _valgrind_frame,
    ),
    row(
        "",
        "== ",
        r"==\d{1,9}==\s{1,8}(?:Address 0x|Block was alloc'd|followed by a later acquisition|Required order |Lock at "
        r"|Thread #\d{1,6} was created|This conflicts with |Uninitialised value was |Other segment (?:start|end) )",
        _other_moment,
        "valgrind",
    ),
    row("", "== Thread ", r"==\d{1,9}== Thread \d{1,6}:?$", detail),
    row(
        "valgrind",
        "== ",
        r"==\d{1,9}== (?:Invalid (?:read|write|free)|Process terminating with default action|Possible data race during "
        r"|Conflicting (?:load|store) by thread |Conditional jump or move depends on |Use of uninitialised value "
        r"|Mismatched free)",
        lambda match: Several((LogMessage(match.string.strip(), about="next"), ThreadHead(current=True))),
    ),
    row(
        "sanitizer",
        "Sanitizer:",
        r"\s{0,4}==(?P<pid>\d{1,9})==\s?"
        r"(?P<text>(?:ERROR|WARNING): (?:Address|Leak|Memory|HWAddress|Thread|UndefinedBehavior)Sanitizer: .*)",
        announcement,
    ),
    row("sanitizer", "ThreadSanitizer:", r"\s{0,4}WARNING: ThreadSanitizer: .* \(pid=(?P<pid>\d{1,9})\)", _warning),
    row(
        "sanitizer",
        " of size ",
        r"\s{0,8}(?:atomic )?(?:READ|WRITE|Read|Write|read|write) of size \d{1,12} at 0x[0-9a-f]{1,16}"
        r"(?: by| tags: \S{1,20} \(ptr/mem\) in)? (?:thread (?P<id>T\d{1,9})|main thread)\b",
        lambda match: ThreadHead(
            id=match.group("id") or "main", current=True, recurs=True, problem=match.string.strip()
        ),
    ),
    row(
        "sanitizer",
        "Mutex ",
        r"\s{0,8}Mutex (?P<wanted>M\d{1,20}) acquired here while holding mutex (?P<held>M\d{1,20}) in "
        r"(?:thread (?P<id>T\d{1,9})|main thread)",
        _acquires,
    ),
    row(
        "",
        ":",
        r"\s{0,8}(?:Mutex M\d{1,20} (?:previously acquired by|\(0x[0-9a-f]{1,16}\) created at|is already destroyed)"
        r"|Thread T\d{1,9} .{0,80}(?:created by|finished at)|Location is |Hint: Mutex|As if synchronized)",
        lambda _: OtherStack(),
        "sanitizer",
    ),
    row(
        "",
        " by ",
        r"\s{0,8}(?:Previous (?:atomic )?(?:read|write) of size \d"
        r"|(?:freed|previously allocated|allocated) by (?:main )?thread\b|Uninitialized value was (?:created|stored) )",
        _other_moment,
    ),
    row("", "SUMMARY: ", r"\s{0,8}SUMMARY: \w{1,20}Sanitizer", detail),
    row("", "Cycle in lock order", r"\s{0,8}Cycle in lock order graph: ", detail),
    row(
        "sanitizer",
        "+0x",
        r"\s{1,8}#" + _NAMED,
        _frame,
    ),
    row("sanitizer", "+0x", r"\s{1,8}" + _NAMED, _frame, "sanitizer"),  # a web page has taken `#1` for a heading
    row(
        "sanitizer",
        " in ",
        r"\s{1,8}#(?P<number>\d{1,3}) (?P<pc>0x[0-9a-f]+) in "
        r"(?P<rest>\S.* (?:\(/\S+\+0x[0-9a-f]+\)|/?[\w.+/-]+\.\w{1,4}:\d+(?::\d+)?|/\S+:\d+))(?: \(BuildId.*)?$",
        _addressed_frame,
    ),
    row(
        "",
        " in ",
        r"\s{1,8}#(?P<number>\d{1,3}) (?P<pc>0x[0-9a-f]+) in (?P<name>[A-Za-z_~][^/]{0,600})$",
        _bare_frame,
        "sanitizer",
    ),
)
