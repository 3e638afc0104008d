"""NCCL communicators of an inferior: their layout by the types that gdb knows, their bytes from process or core."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence

import gdb

from gdbext.capture.memory.process_memory import Range
from gdbext.capture.nccl.dwarf_layout import layout_of
from gdbext.capture.nccl.library import layouts_of
from gdbext.capture.nccl.memory_scan import Budget, in_core, resident_of
from gdbext.capture.nccl.pointer_search import Search, stack_ranges, words_in
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory, map_of
from gdbext.knowledge.row_kinds import StructRow
from gdbext.knowledge.runtimes.nccl import STRUCT, struct_row
from gdbext.model.stack import ThreadStack

WHOLE = Budget()
_STACK = 256 << 10  # bytes of each stack that are looked through for pointers


def find(inferior: gdb.Inferior, stacks: Sequence[ThreadStack], is_core: bool, scan: bool) -> Optional[Search]:
    """What frames, stacks and (if asked for) a scan lead to; None when the inferior has no map of its memory."""
    memory = map_of(inferior)
    if memory is None:
        return None
    with compat.inferior_selected(inferior):
        target = TargetMemory(inferior)

        def read_many(ranges: Sequence[Range]) -> List[Optional[bytes]]:
            return [target.read(address, size) for address, size in ranges]

        layouts = layouts_of(memory, lambda path: target.root + path, _by_types)
        search = Search(memory, layouts, target.read, read_many, in_core if is_core else resident_of(inferior.pid))
        if search.possible:
            search.from_frames(stacks)
            tops = [stack.frames[0].sp for stack in stacks if stack.frames and stack.frames[0].sp]
            search.from_words(words_in(target.read, stack_ranges(memory, filter(None, tops), _STACK)))
            if scan:
                search.by_scan(WHOLE)
    return search


def _by_types(path: str) -> Optional[StructRow]:
    """By the type that gdb knows, also from a separate file of debug information; else by the library's own file, where
    gdb has not read it (a core without its program)."""
    known = _known_type(os.path.basename(path))
    if known is not None:
        return known
    try:
        return layout_of(path)
    except (ImportError, SyntaxError):  # pyelftools is not there, or too new for gdb's Python
        return None


def _known_type(library: str) -> Optional[StructRow]:
    try:
        kind = gdb.lookup_type(STRUCT)
        offsets = {str(field.name): field.bitpos // 8 for field in kind.fields() if hasattr(field, "bitpos")}
        size = kind.sizeof
    except (gdb.error, TypeError, RuntimeError):
        return None
    if not {"rank", "nRanks", "commHash"} <= set(offsets):
        return None
    return struct_row(size, offsets, f"DWARF of {library}")
