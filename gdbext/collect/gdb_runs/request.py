"""What the batch gdb is asked to read: a core for each copy, and the object files that its stacks run through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.cores import minicore
from gdbext.capture.symbols.mapped_libraries import Finder, libraries_on_stacks
from gdbext.collect.gdb_runs.symbol_files import SymbolFiles
from gdbext.safe_open.kept_open_files import Shelf


@dataclass(frozen=True)
class Dump:
    """Where the files and the memory of a process are that is gone."""

    finder: Finder
    memory: str  # path of the whole core


def ranks_of(
    copies: Sequence[ProcessCopy],
    folder: Path,
    shelf: Shelf,
    dumps: Sequence[Dump] = (),
    say: Callable[[str], None] = lambda text: None,
    until: float = math.inf,
    early: Callable[[str], None] = lambda path: None,
) -> Tuple[List[Dict[str, Any]], List[List[str]]]:
    """The `ranks` of a request (see inside_gdb/stacks/read_copies.py), and what is wrong with each rank's files.

    Cores, excerpts and copies are written into `folder`; files that gdb reads where they are stay open as long as
    `shelf` is kept. `dumps`: one for each copy, where they are of core files. `until` then (CLOCK_MONOTONIC)
    symbols may be looked for. `early` is told, as soon as that is known, which libraries gdb is to read as they are.
    Raises `GdbextError` when there is no room for the files.
    """
    finders: Sequence[Optional[Finder]] = [dump.finder for dump in dumps] or [None] * len(copies)
    files = [libraries_on_stacks(copy, finder, shelf) for copy, finder in zip(copies, finders)]
    symbols = SymbolFiles(folder, say, until, early)
    symbols.make(copies, files)
    ranks: List[Dict[str, Any]] = []
    problems: List[List[str]] = []
    for number, (copy, mapped) in enumerate(zip(copies, files)):
        core = folder / f"core.{number}"
        links = {file.path: file.opened.link for file in mapped if file.opened}
        minicore.write_core(copy, str(core), links)
        good = [file for file in mapped if not file.problem]
        rank = {"index": number, "pid": copy.pid, "core": str(core), "files": symbols.rows(number, good, copy.exe)}
        rank["modules"] = _modules(copy, links)
        ranks.append({**rank, "memory": dumps[number].memory} if dumps else rank)
        problems.append([file.problem for file in mapped if file.problem] + symbols.notes(copy, good))
    return ranks, problems


def _modules(copy: ProcessCopy, links: Dict[str, str]) -> List[Tuple[int, int, int, str, Optional[str]]]:
    """Which file lies where, and how it is opened."""
    return [(one.start, one.end, one.offset, one.file, links.get(one.file)) for one in copy.maps if one.is_file]
