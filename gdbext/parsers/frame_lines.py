"""One frame as debuggers of the gdb family print it; lldb, eu-stack and crash handlers share parts of it.

#3  0x00007f.. in ns::f<int>(int) (this=0x.., count=3) at file.cc:12
#4  0x00007f.. in ?? () from target:/usr/lib/libcuda.so.1      (also: `at LIB`, no parentheses, no address)
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple, Optional, Tuple

from gdbext.knowledge.frames.system.libc import CANCELLABLE
from gdbext.knowledge.runtimes.system_calls import FUNCTIONS
from gdbext.model.stack import Frame
from gdbext.model.text.function_names import bare_name
from gdbext.model.text.mangled import qualified_name
from gdbext.model.text.patterns import regex
from gdbext.parsers.argument_lists import captured_arguments, split_call

_ADDRESS = regex(r"(0x[0-9a-fA-F]{1,16})(?:\s+|\Z)(?:in\s+)?")
_LOCATION = regex(r"\s(at|from)\s+(\S+)")
_LINE = regex(r"(.+?):(?:(\d{1,9})|[X?*]+)(?::\d+)?\Z")
_GRID = regex(r"<<<[^>]*>>>")  # cuda-gdb shows the launch dimensions of a kernel
_LIBRARY = regex(r"\.so\b|\.dylib\b|(?:^|/)\[?vdso\]?|/lib(?:32|64)?/[^/]+\Z|\.exe\Z")
_SOURCE = regex(r"\.(?:c|cc|cpp|cxx|c\+\+|cu|cuh|h|hh|hpp|hxx|inc|inl|S|s|asm|rs|go|py|pyx|pxd|f90|tcc)\Z")
_NAMELESS = regex(
    r"(?:\?\?+|\(\)|0x[0-9a-fA-F]+|[0-9a-fA-F]{12,16}"
    r"|<unknown(?: function)?>|\(unknown\)|\[unknown\]|___?lldb_unnamed_\S*)?\Z"
)
_INLINE = regex(r" \(inlined?\)\Z")
_SINGLE = regex(r"[A-Za-z_?~][\w:~$.@?]*(?:<.*>)?(?: \(\w*\.*|\Z)")  # `poll`, or an argument list that was cut
_PROSE = regex(r"(?!.*(?:[<(]|operator|\[clone))\S+ \S+ \S")  # three words are no name
_OF_WINDOWS = regex(r"([\w.-]{1,80})!(?=[A-Za-z_?])")  # gdb and WinDbg: `ntdll!ZwWaitForSingleObject`
_CANCELLABLE, _NUMBER = regex(CANCELLABLE), regex(r"\bnr=(\d{1,4})\b")
_HIDDEN_LIBRARY = regex(r"___lldb_unnamed_\w+\$\$([^\s:`]+)")


class Place(NamedTuple):
    """Where a frame is: an object file or a source position."""

    module: Optional[str] = None
    file: Optional[str] = None
    line: Optional[int] = None


def read_frame(body: str) -> Frame:
    """A frame without its number."""
    body = _INLINE.sub("", body.strip())
    found = _ADDRESS.match(body)
    if not found:
        return _read_call(body)
    return replace(_read_call(body[found.end() :]), pc=int(found.group(1), 16))


@functools.lru_cache(maxsize=16384)
def _read_call(body: str) -> Frame:
    """A frame without its address: ranks of one job show the same calls over and over."""
    if body.startswith(("<signal", "<function called")):
        return Frame(body.split(">", 1)[0] + ">")
    name, arguments, rest = split_call(_GRID.sub("", body))
    if not arguments and not rest:
        name, rest = _without_arguments(name)
    place = read_place(rest)
    return named_frame(name, place, None, arguments)


def named_frame(name: str, place: Place = Place(), pc: Optional[int] = None, arguments: str = "") -> Frame:  # noqa: B008
    """A native frame from its parts; a malformed name becomes None, an address as name becomes the address."""
    name = name.strip()
    of_windows = _OF_WINDOWS.match(name)
    hidden = of_windows or _HIDDEN_LIBRARY.match(name)
    module = place.module or (hidden.group(1) if hidden else None)
    name = name[of_windows.end() :] if of_windows else name
    if pc is None and name.startswith("0x") and _NAMELESS.match(name):
        pc = int(name[:18], 16)
    bare = bare_name(name)
    function = None if _NAMELESS.match(bare) else qualified_name(bare) or bare
    if function is not None and _CANCELLABLE.match(function):
        number = _NUMBER.search(arguments)
        function = FUNCTIONS.get(int(number.group(1)), function) if number else function
    captures = captured_arguments(function, arguments)
    if place.file is not None and place.file.endswith(".py"):  # as torch's watchdog and flight recorder number frames
        return Frame(function, module, pc, place.file, place.line, "python", captures=captures)
    return Frame(function, module, pc, place.file, place.line, captures=captures)


def looks_like_frame(body: str) -> bool:
    """Whether what stands behind `#4 ` is a frame rather than prose: "#4 fix the leak (see below)" is none."""
    if _ADDRESS.match(body) or body.startswith(("<signal", "<function called")):
        return True
    body = _INLINE.sub("", body)
    name, arguments, rest = split_call(body)
    if not arguments and not rest:
        name, rest = _without_arguments(name)
        if _PROSE.match(name):
            return False
    if (
        _LOCATION.match(rest)
        or "=" in arguments
        or name.rstrip().endswith(")")
        or body.rstrip().endswith(("()", "(...)"))
    ):
        return True
    return bool(_SINGLE.match(body))


def read_place(text: str) -> Place:
    """` at FILE:LINE`, ` from LIB`, ` at LIB`; words behind it are notes of a person."""
    found = _LOCATION.search(text)
    if not found:
        return Place()
    value = found.group(2).rstrip(",;")
    value = value[len("target:") :] if value.startswith("target:") else value
    line = _LINE.match(value)
    if line:
        file = None if line.group(1).startswith("??") else line.group(1)
        return Place(None, file, int(line.group(2) or 0) or None)
    if found.group(1) == "from" or is_library(value):
        return Place(value)
    return Place(None, value)


def is_library(path: str) -> bool:
    """Whether a path without a line number is an object file rather than a source file."""
    return bool(_LIBRARY.search(path)) or not _SOURCE.search(path)


def _without_arguments(text: str) -> Tuple[str, str]:
    """`name from LIB` and `name at FILE:1`, as people shorten frames."""
    found = _LOCATION.search(text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")
