"""Below all formats: lines with the shape of a frame that no tool's row has read.

They open or continue a stack without a head; what is known of a frame is a name and perhaps a place.

`name (library)` without a header, `0# name in library` (Boost), `0: name` (Rust), `0x7f.. name`, `in name () from lib`,
`name+0x1f` (kernel, perf, bpftrace), `file.py:12 in name`, chains of arrows, and runs of known API names.
"""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.frames.helper_threads import ENTRIES
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.frames.system.linux_kernel import KERNEL_ENTRIES
from gdbext.knowledge.vendor_calls import RULES as API_RULES
from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none, is_whole
from gdbext.model.text.patterns import regex, union_pattern
from gdbext.parsers.formats.format_row import Row, location, native_frame, number, python, row
from gdbext.parsers.formats.python_tools import is_sentence, spied_frame
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import Chain, Event, FrameLine, LogMessage, ThreadHead

_HASH = regex(r"::h[0-9a-f]{16}\Z")
_SIZED = regex(r"\w\+0x[0-9a-f]+/0x[0-9a-f]+")  # with the size of the function: the kernel's way
_STOP = regex(r"point \d{1,4}\b|received signal ")  # where a debugger says that it has stopped; the stack follows
_WORDS = regex(r"(?!.*(?:[<(]|operator|\[clone))\S+ \S+")
_IDENTIFIER = regex(r"(?:[A-Za-z_~<][\w:~<>@.$, *&\[\]]*(?:\(.*\))?|[-+]\[\w{1,80}(?:\(\w{1,80}\))? [\w:]{1,200}\])\Z")
_REMARK = regex(r" +\((?:[a-z']{1,20} ){1,8}[a-z']{1,20}\)\Z")
"""What somebody says of the last call of a chain: `(never returns)`."""
_TELLING = regex(r"::|_|\(|[a-z][A-Z]|@")
_ARROWS = regex(r"\s*(?:<-+|<=+|-+>|=+>|←|→|⟵|⟶|⇐|⇒)\s*")
_INWARDS = ("<", "←", "⟵", "⇐")
_LABEL = regex(r"\s{0,8}[\w ]{1,40}:\s{1,8}(?=\S)")
_KERNEL_ENTRY = regex(KERNEL_ENTRIES + r"\b")
_ENTRY = regex(ENTRIES + r"|(__libc_start\w*|main)\b|" + KERNEL_ENTRIES + r"\b")
_KNOWN = union_pattern([*(rule.function for rule in API_RULES), code_owners.PUBLIC])
_WAITS = regex(code_owners.C_LIBRARY_FUNCTIONS)


def _pyspy_frame(match: Match[str]) -> Optional[Event]:
    name = match.group("name").strip()
    frame = spied_frame(name, match.group("place"))
    return None if _WORDS.match(name) or is_sentence(frame) else FrameLine(frame)


def _boost_frame(match: Match[str]) -> Event:
    place = match.group("place") or ""
    file, _, line = place.rpartition(":")
    at = Place(None, file, integer_or_none(line)) if is_whole(line) and file else Place(place or None)
    return FrameLine(named_frame(match.group("name"), at), int(match.group("number")))


def _rust(match: Match[str]) -> Optional[Event]:
    name = _HASH.sub("", match.group("name").strip())
    if match.group("pc") is None and "::" not in name and not _IDENTIFIER.match(name):
        return None
    return FrameLine(named_frame(name, Place(), number(match.group("pc"))), int(match.group("number")))


def _panic_frame(match: Match[str]) -> Event:
    return LogMessage(match.string.strip(), about="next")


def _offset(match: Match[str]) -> Event:
    library = match.group("before") or match.group("behind") or ("[kernel]" if _SIZED.search(match.string) else None)
    pc = match.group("pc")
    return FrameLine(named_frame(match.group("name"), Place(library), int(pc, 16) if pc else None))


def _native_place(match: Match[str]) -> Optional[Event]:
    name = match.group("name").strip()
    if _WORDS.match(name) or not _names_function(name):
        return None
    return FrameLine(named_frame(name, Place(None, match.group("file"), int(match.group("line")))))


def _chain(match: Match[str]) -> Optional[Event]:
    """`a -> b -> c`: a calls b. `c <- b <- a`: c is called by b. If one end alone can be a wait, that end is inside."""
    text = _REMARK.sub("", _LABEL.sub("", match.string.strip().strip("`")))
    parts = [part.strip(" `*") for part in _ARROWS.split(text)]
    parts = [part for part in parts if part]
    named = [part for part in parts if _IDENTIFIER.match(part) and len(part) <= 300]
    if len(parts) < 3 or len(named) < len(parts) or 2 * sum(map(_names_function, parts)) <= len(parts):
        return None
    arrow = _ARROWS.search(text)
    inwards = arrow is not None and arrow.group().strip().startswith(_INWARDS)
    ends = _waits(parts[0]), _waits(parts[-1])
    is_entry = bool(_ENTRY.match(parts[0])), bool(_ENTRY.match(parts[-1]))
    if is_entry[0] != is_entry[1]:
        inwards = is_entry[1]
    elif ends[0] != ends[1]:
        inwards = ends[0]
    outermost = parts[-1] if inwards else parts[0]
    kernel = Place("[kernel]") if _KERNEL_ENTRY.match(outermost) else Place()
    frames = [named_frame(part, kernel) for part in parts]
    return Chain(tuple(frames if inwards else reversed(frames)))


def _names_function(part: str) -> bool:
    return bool(_TELLING.search(part))


def _waits(part: str) -> bool:
    name = part.split("(", 1)[0]
    return bool(_WAITS.match(name) or _KNOWN.match(name))


def _numbered(match: Match[str]) -> Optional[Event]:
    """`1: torch::autograd::Engine::execute()`, of whatever tool."""
    name = match.group("name").strip()
    return None if _WORDS.match(name) else FrameLine(named_frame(name), int(match.group("number")))


def _anywhere(match: Match[str]) -> Optional[Event]:
    """A frame behind whatever a tool puts before it: its number, a time, a thread, an address, a box."""
    if _STOP.search(match.string):
        return None
    text = match.groupdict()
    name, line = text["name"] or "", integer_or_none(text.get("line"))
    if text.get("python") is not None:
        return FrameLine(Frame(name, file=text["python"], line=line, language="python"), None, "first" in text)
    kernel = "[kernel]" if _SIZED.search(match.string) else None
    place = Place(text.get("before") or text.get("behind") or kernel, text.get("file"), line)
    return FrameLine(named_frame(name, place), integer_or_none(text.get("number")))


def _known(match: Match[str]) -> Optional[Event]:
    name = match.group("name")
    return FrameLine(named_frame(name)) if _KNOWN.match(name) or _WAITS.fullmatch(name) else None


_LIBRARY = r"[\w./+-]{1,300}(?:\.so[\w.]{0,40}|\.py[xid]?|python\d[\w.]{0,10}|\.(?:cc?|cpp|cxx|cu|h|hpp|rs|go))"
_SOURCE = r"[\w./+<>-]{1,300}\.(?:cc?|cpp|cxx|cu|cuh|h|hpp|rs|go|S)"
_OBJECT = r"[\w./+-]{0,300}\.(?:so|dylib|dll|exe)(?:\.[\w.]{1,40})?"
_SYMBOL = r"[A-Za-z_][\w:~<>@.$]{0,300}"


_OFFSET = r" ?\+ ?0x[0-9a-f]{1,12}"
_NUMBERED = rf"(?:#(?P<number>\d{{1,4}})\b|\bin ).{{0,40}}?(?<![\w:])(?P<name>{_SYMBOL}) ?\(.{{0,600}}\)"
_FILED = r"File \"(?P<python>[^\"]{1,400}\.pyx?)\", line (?P<line>\d{1,9})"
_MANAGED = r"[\w./-]{1,300}\.(?:java|scala|kt|cs|fs|jl|rb|js|mjs|ts|go|rs|swift|erl|ex)"

_ANYWHERE = (
    ("+0x", rf"(?P<before>{_OBJECT})[(`!:] ?(?P<name>{_SYMBOL}(?:\(.{{0,600}}\))?)" + _OFFSET),
    ("+0x", rf"(?P<before>{_OBJECT})(?P<name>)\(?" + _OFFSET),
    (
        "+0x",
        rf"(?<![\w:~.$@/-])(?P<name>{_SYMBOL}(?:\(.{{0,600}}?\))?){_OFFSET}(?:/0x[0-9a-f]{{1,12}})?"
        r"(?:,? [\[(](?P<behind>[\w./-]{1,300})[\])]|[\s)\]]|$)",
    ),
    ("`", rf"(?<![\w`])(?P<before>[\w.+-]{{2,80}})`(?P<name>{_SYMBOL})(?=[(+ ])"),
    (
        "0x",
        rf"\b0x[0-9a-f]{{6,16}}[)\]:,>]{{0,2}} {{1,8}}(?:in |: |- |@ )?(?P<name>{_SYMBOL})(?:\(.{{0,600}}?\))?"
        r"(?= {1,4}(?:at|from|in|\+|\?\?\?:)| ?\+|$)",
    ),
    (":", rf"(?<![\w.])(?P<name>{_SYMBOL}) ?\((?P<file>{_MANAGED}):(?P<line>\d{{1,9}})(?::\d{{1,9}})?\)"),
    ("File", _FILED + r",(?P<first>) in (?P<name>[\w.<>]{1,200})"),
    ("File", _FILED + r" in (?P<name>[\w.<>]{1,200})"),
    (" at ", rf"{_NUMBERED} at (?P<file>{_SOURCE}):(?P<line>\d{{1,9}})"),
    (" from ", rf"{_NUMBERED} from (?P<before>{_OBJECT})"),
)
"""Frames behind any prefix, as no tool's row knows it: text that the line must hold, and how a frame shows there."""


def is_telling(frame: Frame) -> bool:
    """Whether a frame that stands alone is worth a stack: a public call or a wait, or one whose library is named."""
    name = frame.function or ""
    return frame.module is not None or frame.language == "python" or bool(_KNOWN.match(name) or _WAITS.match(name))


KINDS = ("loose", "chain", "boost")
"""What these rows call their stacks, where no tool is known."""

ROWS: Tuple[Row, ...] = (
    row("rust", "panicked at", r"\s{0,4}thread '[^']{0,80}' (?:\(\d{1,9}\) )?panicked at ", _panic_frame),
    row(
        "rust", "Thread Id ", r".{0,120}?\bThread Id (?P<id>\d{1,20})$", lambda match: ThreadHead(id=match.group("id"))
    ),
    row("rust", "stack backtrace:", r"\s{0,4}stack backtrace:", lambda _: ThreadHead()),
    row("", "at ", r"\s{4,24}at (?P<file>\S{1,400}?):(?P<line>\d{1,9})(?::\d{1,9})?$", location, "rust"),
    row(
        "rust",
        ":",
        r"\s{0,6}(?P<number>\d{1,4}):\s{1,8}(?:(?P<pc>0x[0-9a-f]{1,16}) - )?(?P<name>[A-Za-z_<][^\s].{0,600})",
        _rust,
        "rust",
    ),
    row(
        "rust",
        "::",
        r"(?:.{0,120}\| )?\s{0,12}(?P<number>\d{1,4}):\s{1,8}(?:(?P<pc>0x[0-9a-f]{1,16}) - )"
        r"(?P<name>[A-Za-z_<]\S.{0,600})",
        _rust,
    ),
    row(
        "boost",
        "# ",
        r"\s{0,4}(?P<number>\d{1,3})# (?P<name>\S.{0,600}?)(?: (?:in|at) (?P<place>/?[\w./+:-]{1,400}))?$",
        _boost_frame,
    ),
    row(
        "py-spy",
        "(",
        r"\s{0,12}(?P<name>\S.{0,600}?) \((?P<place>" + _LIBRARY + r"(?::\d{1,9})?)\)(?:\s{1,4}(?:<[-=]|←|//|#).*)?$",
        _pyspy_frame,
    ),
    row(
        "loose",
        " is in ",
        r"\s{0,8}0x[0-9a-f]{1,16} is (?:in|at) (?P<name>\S.{0,400}?) \((?P<file>[^():]{1,400}):(?P<line>\d{1,9})\)\.?$",
        native_frame,
    ),
    row(
        "loose",
        "+",
        r"\s{0,16}(?:(?P<pc>[0-9a-f]{6,16}) )?(?:(?P<before>[\w./-]{1,200}\.so[\w.]{0,40})[!`:])?(?P<name>"
        + _SYMBOL
        + r")\s?\+\s?(?:0x)?[0-9a-f]{1,12}(?:/0x[0-9a-f]{1,12})?(?: [\[(]?(?P<behind>[\w./-]{1,300})[\])]?)?$",
        _offset,
    ),
    *(row("loose", need, r".{0,160}?" + pattern, _anywhere) for need, pattern in _ANYWHERE),
    row(
        "loose",
        ".py:",
        r"\s{0,12}(?P<file>[\w./<>-]{1,400}\.py):(?P<line>\d{1,9}),?:? (?:in )?(?P<name>[\w.<>]{1,200})(?:\(\))?$",
        python,
    ),
    row(
        "loose",
        ".py:",
        r"\s{0,12}(?P<name>[\w.<>]{1,200})(?:\(\))? (?:at |in |@ ?|\()?"
        r"(?P<file>[\w./<>-]{1,400}\.py):(?P<line>\d{1,9})\)?$",
        python,
    ),
    row(
        "loose",
        ":",
        r"\s{0,12}(?P<name>\S.{0,400}?) (?:at |in |@ ?|\()?(?P<file>"
        + _SOURCE
        + r"):(?P<line>\d{1,9})(?::\d{1,9})?\)?$",
        _native_place,
    ),
    row(
        "loose",
        "::",
        r"\s{0,6}(?P<number>\d{1,3})[:)] {1,4}(?P<name>[A-Za-z_~<][\w~<>]{0,200}::\S.{0,400})$",
        _numbered,
    ),
    row("chain", ">", r".{0,200}(?:->|=>)", _chain),
    row("chain", "<-", r".{0,200}<-", _chain),
    row("chain", "←", r".{0,200}←", _chain),
    row("chain", "→", r".{0,200}→", _chain),
    row("loose", "", r"\s{0,12}[`*-]{0,2}\s?(?P<name>" + _SYMBOL + r")(?:\(\))?`?$", _known),
)
