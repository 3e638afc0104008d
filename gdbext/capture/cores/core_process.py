"""The process of a core file: its arguments and environment, by the block that the kernel left above the first stack.

Layout of that block (linux fs/binfmt_elf.c, create_elf_tables): argc, pointers to the arguments, NULL, pointers to the
environment, NULL, the auxiliary vector; above it the strings. The vector also stands in NT_AUXV: by it the block is
found.
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.capture.cores.core_file import CoreFile
from gdbext.capture.cores.core_objects import CoreObjects
from gdbext.capture.memory.auxiliary_vector import auxiliary
from gdbext.capture.symbols.environ import environ_in, variables_at
from gdbext.model.missing import Maybe, Missing

_AT_RANDOM = 25  # points to 16 bytes between the vector and the strings
_SEARCHED = 1 << 20  # bytes below them: 128,000 arguments and variables
_KNOWN = 64  # bytes of the vector that are compared
_MOST_ARGUMENTS = 4096
_MOST_TEXT = 64 << 10


class StartBlock(NamedTuple):
    """Where the stack of the first thread begins (its frames lie below), and what stands above that address."""

    address: int
    arguments: Tuple[int, ...]
    variables: Tuple[int, ...]


def start_block(core: CoreFile) -> Optional[StartBlock]:
    """The block; None when its memory is not in the core."""
    random = auxiliary(core.notes.auxv).get(_AT_RANDOM, 0)
    part = core.part_at(random)
    if part is None or len(core.notes.auxv) < _KNOWN:
        return None
    low = max(part.start, random - _SEARCHED) & ~7
    data = core.present(low, random - low)
    found = data.rfind(core.notes.auxv[:_KNOWN])
    while found > 0 and found % 8:
        found = data.rfind(core.notes.auxv[:_KNOWN], 0, found)
    if found < 8:
        return None
    words = struct.unpack_from(f"<{found // 8}Q", data)
    variables, at = _pointers(words, len(words) - 1)
    arguments, at = _pointers(words, at)
    while arguments and words[at] != len(arguments):  # argc itself ends the list; it looks like no pointer
        arguments, at = arguments[1:], at + 1
    return StartBlock(low + 8 * at, tuple(arguments), tuple(variables))


def _pointers(words: Tuple[int, ...], end: int) -> Tuple[List[int], int]:
    """The pointers before the NULL at `end`, and the position of what stands before them: NULL, or argc."""
    at = end - 1
    while at >= 0 and words[at] > _MOST_ARGUMENTS:
        at -= 1
    return list(words[at + 1 : end]), max(at, 0)


def arguments_of(core: CoreFile, block: Optional[StartBlock]) -> Tuple[str, ...]:
    """As /proc/PID/cmdline shows them: a title, where setproctitle has written one; else what NT_PRPSINFO keeps."""
    if block is None or not block.arguments:
        return tuple(core.notes.arguments.split())
    start = block.arguments[0]
    end = block.variables[0] if block.variables else block.arguments[-1]
    data = core.present(start, max(0, min(end - start, _MOST_TEXT)))
    if data and data[-1]:  # the title is longer than the arguments were
        return (core.read_cstring(start, _MOST_TEXT) or "",)
    texts = data.rstrip(b"\0").split(b"\0")[:_MOST_ARGUMENTS]
    return tuple(text.decode("utf-8", "replace") for text in texts) if data.strip(b"\0") else (core.notes.arguments,)


def environ_of(core: CoreFile, objects: CoreObjects, block: Optional[StartBlock]) -> Maybe[Dict[str, str]]:
    """The variables at the moment of the dump, else those of the start, else why there are none."""
    mappings = [mapping for mapping in objects.maps if mapping.is_file]
    found = environ_in(core, mappings, objects.program, objects.opens)
    if isinstance(found, dict) and found:
        return found
    variables = variables_at(core, block.variables) if block is not None else {}
    return variables or Missing("the environment is not in the core")
