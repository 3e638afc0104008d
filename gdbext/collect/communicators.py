"""The communicators of ranks that were copied: by what their stacks lead to, else by a short scan as they run on."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.nccl import dwarf_layout
from gdbext.capture.nccl.memory_scan import Budget
from gdbext.capture.nccl.pointer_search import Search, scan_where_some_are_missing, search_of_process
from gdbext.capture.symbols.mapped_libraries import words_of
from gdbext.collect.ctrl_c_while_loading import interrupts_wait
from gdbext.knowledge.row_kinds import StructRow
from gdbext.model.stack import ThreadStack

SCAN = Budget(bytes=1 << 30, seconds=1.0)
"""For all ranks together: as long as a diagnosis may wait for it."""


def layout_of(path: str) -> Optional[StructRow]:
    """By the debug information of a library; its reader is loaded when it is needed."""
    with interrupts_wait():
        return dwarf_layout.layout_of(path)


def find(copies: Sequence[Tuple[ProcessCopy, Sequence[ThreadStack]]]) -> List[Search]:
    """One search for each copy, in their order."""
    searches = []
    for copy, stacks in copies:
        search = search_of_process(copy.pid, copy.maps, layout_of)
        if search.possible:
            search.from_frames(stacks)
            search.from_words(words_of(copy))
        searches.append(search)
    scan_where_some_are_missing(searches, SCAN)
    return searches
