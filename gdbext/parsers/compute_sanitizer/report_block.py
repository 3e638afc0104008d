"""The lines of one report -> one error of a kernel. The details are alike in all four generations of the tool."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Match, Optional, Sequence, Tuple

from gdbext.knowledge.errors.compute_sanitizer import (
    ADDRESS,
    BY_THREAD,
    HAZARD_SIDE,
    HEADS,
    NEAREST,
    OTHER_SIDE,
    TOOLS,
    UNWRITTEN,
)
from gdbext.model.gpu_errors import DevicePlace, GpuError, NearestAllocation
from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.mangled import qualified_name
from gdbext.model.text.patterns import regex
from gdbext.parsers.frame_lines import Place, named_frame

_HEADS = tuple((row, regex(row.pattern)) for row in HEADS)
_OTHER_SIDE, _HAZARD_SIDE, _BY_THREAD = regex(OTHER_SIDE), regex(HAZARD_SIDE), regex(BY_THREAD)
_ADDRESS, _NEAREST, _UNWRITTEN = regex(ADDRESS), regex(NEAREST), regex(UNWRITTEN)
_PC_FIRST = regex(r"(0x[0-9a-fA-F]{1,16})(?: in (.+))?\Z")
_FILE_FIRST = regex(r"([^():<>]{1,600}\.\w{1,5}):(\d{1,9}):(?=\S)")
_IN_BLOCK = regex(r".* in block (\([\d, ]{1,40}\))")
_OFFSET = regex(r"(.*?) ?\[(0x[0-9a-fA-F]{1,16})\]\Z")
_WITH_FUNCTION = regex(r"(\S+) \((.{1,2000}) \+ 0x[0-9a-fA-F]{1,16}\)\Z")
_OF_KERNEL = regex(r"(.{1,8000}?) \(.{1,8000} ?: ?0x[0-9a-fA-F]{1,16}\)\Z")
_HAZARDS = regex(r"(.*) \[([\d,]{1,20}) hazards?\]\Z")
_LONGEST_HEAD = 300
MOST_FRAMES = 128


def is_head(text: str) -> bool:
    """Whether a line is the first of a report that a row knows."""
    return _head(text) is not None


def error_of(lines: Sequence[str]) -> Optional[GpuError]:
    """The error that a report tells of; None: it is none."""
    head = lines[0].strip()
    found = _head(head)
    places: List[DevicePlace] = []
    for line in lines[1:]:
        _add_place(places, line.strip())
    if found is None and not places:
        return None
    kind, groups = (found[0], found[1].groupdict()) if found is not None else ("other", {})
    unwritten = next((found for found in (_UNWRITTEN.match(line.strip()) for line in lines[1:3]) if found), None)
    if kind == "host-api-access" and unwritten:
        kind, groups = "uninitialized", {**groups, "access": "access", "call": unwritten.group(1)}
    hazards = None
    if groups.get("place"):
        side = replace(device_place(str(groups["place"])), access=str(groups["access"]).lower())
        places.insert(0, side)
    if kind == "race":
        counts = [match.group(2) for match in (_HAZARDS.match(line.strip()) for line in lines) if match]
        hazards = sum(number(one) or 0 for one in counts) if counts else None
        block = _IN_BLOCK.match(head)
        places = [replace(one, block=_without_blanks(block.group(1))) for one in places] if block else places
    on_device = [_device_frame(line.strip()[13:].strip()) for line in lines if line.strip().startswith("Device Frame:")]
    outermost = on_device[-1].function if on_device else places[0].function if places else ""
    address, problem, nearest = _address(lines)
    return GpuError(
        kind=kind,
        text=head[:_LONGEST_HEAD],
        tool=TOOLS.get(kind, ""),
        space=groups.get("space") or "",
        access=(groups.get("access") or "").lower() if kind != "race" else "",
        size=number(groups.get("size")),
        address=_hex(groups.get("address")) if address is None else address,
        problem=problem,
        kernel=outermost,
        places=tuple(places[:8]),
        nearest=nearest,
        call=groups.get("call") or "",
        error=groups.get("error") or (f"error {groups['number']}" if groups.get("number") else ""),
        hazards=hazards,
        device_frames=tuple(
            Frame(one.function or None, file=one.file or None, line=one.line) for one in on_device[:MOST_FRAMES]
        ),
        host_frames=tuple(_host_frames(lines)),
    )


def _head(text: str) -> Optional[Tuple[str, Match[str]]]:
    for row, pattern in _HEADS:
        match = pattern.match(text)
        if match:
            return row.kind, match
    return None


def _add_place(places: List[DevicePlace], text: str) -> None:
    """What one line says of where it happened."""
    by, hazard, other = _BY_THREAD.match(text), _HAZARD_SIDE.match(text), _OTHER_SIDE.match(text)
    if text.startswith("at ") and not text.startswith("at error"):
        places.append(device_place(text[3:]))
    elif by and places:
        places[-1] = replace(places[-1], thread=by.group(1), block=by.group(2) or "")
    elif hazard:
        place = device_place(hazard.group(3))
        places.append(replace(place, access=hazard.group(1).lower(), thread=_without_blanks(hazard.group(2))))
    elif other:
        places.append(replace(device_place(other.group(2)), access=other.group(1).lower()))


def device_place(text: str) -> DevicePlace:
    """`0x250 in /p/f.cu:9:k(int*)`, `k(int *)+0x70 in f.cu:41`, `/p/f.cu:9:k(int*)`."""
    counted = _HAZARDS.match(text)
    text = (counted.group(1) if counted else text).strip()
    first = _PC_FIRST.match(text)
    rest = (first.group(2) or "") if first else text
    before = _FILE_FIRST.match(rest)
    if first or before:
        file, line = (before.group(1), integer_or_none(before.group(2))) if before else ("", None)
        name = rest[before.end() :] if before else rest
        return DevicePlace(
            function=_readable(name), file=file, line=line, offset=_hex(first.group(1)) if first else None
        )
    name, file, line = _placed(text)
    function, plus, offset = name.rpartition("+0x")
    if plus and len(offset) <= 16 and all(one in "0123456789abcdefABCDEF" for one in offset):
        return DevicePlace(function=_readable(function), file=file, line=line, offset=_hex("0x" + offset))
    return DevicePlace(function=_readable(name), file=file, line=line)


def _readable(name: str) -> str:
    """A mangled name, of `--demangle no` and of cuda-memcheck's hazards, without its arguments."""
    return (qualified_name(name) or name) if name.startswith("_Z") else name


def _without_blanks(triple: str) -> str:
    return triple.replace(" ", "")


def _device_frame(text: str) -> DevicePlace:
    """As `device_place`; cuda-memcheck adds the kernel again, in parentheses."""
    again = _OF_KERNEL.match(text)
    return device_place(again.group(1) if again else text)


def _address(lines: Sequence[str]) -> Tuple[Optional[int], str, Optional[NearestAllocation]]:
    address, problem, nearest = None, "", None
    for line in lines[1:]:
        text = line.strip()
        said, allocation = _ADDRESS.match(text), _NEAREST.match(text)
        if said and address is None:
            address, problem = _hex(said.group(1)), said.group(2).strip()
        elif allocation and nearest is None:
            nearest = NearestAllocation(
                allocation["side"] or "inside",
                number(allocation["distance"]),
                _hex(allocation["address"]),
                number(allocation["size"]),
            )
    return address, problem, nearest


def _host_frames(lines: Sequence[str]) -> List[Frame]:
    """Those of the launch or of the call; of the allocation only where no others are."""
    stacks: List[Tuple[bool, List[Frame]]] = []
    for line in lines[1:]:
        text = line.strip()
        if text.startswith(("Saved host backtrace", "Host backtrace")):
            stacks.append(("allocation" in text, []))
        elif text.startswith("Host Frame:"):
            if not stacks:
                stacks.append((False, []))
            if len(stacks[-1][1]) < MOST_FRAMES:
                stacks[-1][1].append(host_frame(text[11:].strip()))
        elif text.startswith("in ") and stacks and stacks[-1][1]:
            stacks[-1][1][-1] = _with_place(stacks[-1][1][-1], text[3:].strip())
    full = [one for one in stacks if one[1]]
    launch = [frames for of_allocation, frames in full if not of_allocation]
    return (launch or [frames for _, frames in full] or [[]])[0]


def host_frame(text: str) -> Frame:
    """One frame of a host backtrace, of any generation; Python's frames stand among them."""
    before, at, place = text.rpartition("] in ")
    offset = _OFFSET.match(f"{before}]" if at else text)
    text, where = (offset.group(1), _hex(offset.group(2))) if offset else (text, None)
    if at and offset:
        return replace(_with_place(named_frame(text), place), module_offset=where)
    of_library = _WITH_FUNCTION.match(text)
    if of_library:
        return replace(named_frame(of_library.group(2), Place(of_library.group(1))), module_offset=where)
    if text.startswith(("/", "./")) and "(" not in text:
        return replace(named_frame("", Place(text)), module_offset=where)
    placed = _FILE_FIRST.match(text)
    if placed:
        at_line = Place(None, placed.group(1), integer_or_none(placed.group(2)))
        return replace(named_frame(text[placed.end() :], at_line), module_offset=where)
    name, file, line = _placed(text)
    if line is None and " in " in text:
        name, _, module = text.rpartition(" in ")
        return replace(named_frame(name, Place(module.strip())), module_offset=where)
    if _is_python(file):
        return Frame(name, file=file, line=line, language="python")
    return replace(named_frame(name, Place(None, file or None, line)), module_offset=where)


def _with_place(frame: Frame, text: str) -> Frame:
    """A frame with what stands behind its `in`."""
    file, colon, digits = text.rpartition(":")
    line = integer_or_none(digits)
    if colon and line is not None:
        if _is_python(file):
            return Frame(frame.function, file=file, line=line, language="python")
        return replace(frame, file=file, line=line)
    return frame if frame.module else replace(frame, module=text)


def _placed(text: str) -> Tuple[str, str, Optional[int]]:
    """`NAME in FILE:LINE` in its parts; all is name where it does not end like that."""
    name, inside, place = text.rpartition(" in ")
    file, colon, digits = place.rpartition(":")
    line = integer_or_none(digits)
    return (name, file, line) if inside and colon and line is not None else (text, "", None)


def _is_python(file: str) -> bool:
    return file.endswith((".py", ".pyx"))


def number(text: Optional[str]) -> Optional[int]:
    """A number that may carry commas: `9,665`."""
    return integer_or_none(text.replace(",", "")) if text else None


def _hex(text: Optional[str]) -> Optional[int]:
    return int(text, 16) if text else None
