"""Which code of a running program has a line: functions that are loaded, and what runs at this moment."""

from __future__ import annotations

import dis
import gc
import os
import sys
from types import CodeType, FunctionType
from typing import Dict, Iterator, List, Set

_MOST = 64
"""Code objects of one line that get a breakpoint: a function that was made a thousand times is no line of a program."""


def with_line(file: str, line: int) -> List[CodeType]:
    """The code objects that have this line. `file`: an absolute path, or its end. Raises LookupError."""
    named = [code for code in _all() if _is_named(code.co_filename, file)]
    if not named:
        raise LookupError(f"no code of {file} is loaded")
    files = sorted({code.co_filename for code in named})
    if len(files) > 1:
        raise LookupError(f"{file} may be any of {', '.join(files[:4])}: give more of its path")
    found = [code for code in named if line in lines_of(code)]
    if not found:
        lines = sorted({number for code in named for number in lines_of(code)}, key=lambda number: abs(number - line))
        line_numbers = ", ".join(map(str, sorted(lines[:4])))
        raise LookupError(f"line {line} of {files[0]} has no code; near it lines {line_numbers} have")
    inner = {constant for code in found for constant in _below(code)} - set(found)
    return [code for code in found if code not in inner][:_MOST]


def lines_of(code: CodeType) -> Set[int]:
    return {line for _, line in dis.findlinestarts(code) if line}


def _is_named(path: str, file: str) -> bool:
    path = os.path.abspath(path) if not path.startswith("<") else path
    return path == file or path.endswith("/" + file.lstrip("./"))


def _all() -> Iterator[CodeType]:
    seen: Dict[int, CodeType] = {}
    frames = list(sys._current_frames().values())
    roots = [one.__code__ for one in gc.get_objects() if type(one) is FunctionType]
    for frame in frames:
        above = frame
        while above is not None:
            roots.append(above.f_code)
            above = above.f_back  # type: ignore[assignment]
    for root in roots:
        for code in [root, *_below(root)]:
            if id(code) not in seen:
                seen[id(code)] = code
                yield code


def _below(code: CodeType) -> Iterator[CodeType]:
    """Functions that are defined in it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _below(constant)
