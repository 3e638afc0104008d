"""The communicators of ranks that were copied: by what their stacks lead to, else by a short scan as they run on."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from gdbext.capture.core_file import CoreFile
from gdbext.capture.core_objects import CoreObjects
from gdbext.capture.libraries import words_of
from gdbext.capture.nccl_dwarf import layout_of
from gdbext.capture.nccl_library import layouts_of
from gdbext.capture.nccl_scan import Budget, in_core
from gdbext.capture.nccl_search import Search, scan_where_some_are_missing, search_of_process
from gdbext.capture.stop import ProcessCopy
from gdbext.model.stack import ThreadStack

SCAN = Budget(bytes=1 << 30, seconds=1.0)
"""For all ranks together: as long as a diagnosis may wait for it."""


def find_in_core(copy: ProcessCopy, core: CoreFile, objects: CoreObjects, stacks: Sequence[ThreadStack]) -> Search:
    """The same in a core file, and a scan of all of it where nothing leads to a communicator."""
    memory = core.maps()
    search = Search(memory, layouts_of(memory, objects.opens, layout_of), core.read, core.read_many, in_core)
    if search.possible:
        search.from_frames(stacks)
        search.from_words(words_of(copy))
        if not search.hashes:
            search.by_scan(SCAN)
    return search


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
