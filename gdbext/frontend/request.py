"""What the batch gdb is asked to read: a core for each copy, and the object files that its stacks run through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from gdbext.capture import minicore
from gdbext.capture.libraries import Finder, libraries_on_stacks
from gdbext.capture.stop import ProcessCopy
from gdbext.frontend.symbol_files import SymbolFiles


@dataclass(frozen=True)
class Dump:
    """Where the files and the memory of a process are that is gone."""

    finder: Finder
    exe: str  # empty: not here
    memory: str  # path of the whole core


def ranks_of(
    copies: Sequence[ProcessCopy],
    folder: Path,
    dumps: Sequence[Dump] = (),
    say: Callable[[str], None] = lambda text: None,
    until: float = math.inf,
    early: Callable[[str], None] = lambda path: None,
) -> Tuple[List[Dict[str, Any]], List[List[str]]]:
    """The `ranks` of a request (protocol of debugger/batch.py), and what is wrong with the files of each rank.

    Cores and excerpts are written into `folder`. `dumps`: one for each copy,
    where they are of core files. `until` then (CLOCK_MONOTONIC) symbols may be looked for. `early` is told, as
    soon as that is known, which libraries gdb is to read as they are. Raises `GdbextError` when there is no room for
    the files.
    """
    finders: Sequence[Optional[Finder]] = [dump.finder for dump in dumps] or [None] * len(copies)
    files = [libraries_on_stacks(copy, finder) for copy, finder in zip(copies, finders)]
    symbols = SymbolFiles(folder, say, until, early)
    symbols.make(copies, files)
    ranks: List[Dict[str, Any]] = []
    problems: List[List[str]] = []
    for number, (copy, mapped) in enumerate(zip(copies, files)):
        core = folder / f"core.{number}"
        minicore.write_core(copy, str(core))
        good = [file for file in mapped if not file.problem]
        # gdb would read the whole program once more beside its excerpt.
        whole = all(symbols.is_whole(file.opens_as) for file in good if file.path == copy.exe)
        exe = (dumps[number].exe if dumps else f"/proc/{copy.pid}/exe") if whole else ""
        rows = symbols.rows(number, good)
        rank = {"index": number, "pid": copy.pid, "core": str(core), "exe": exe, "files": rows}
        ranks.append({**rank, "memory": dumps[number].memory} if dumps else rank)
        problems.append([file.problem for file in mapped if file.problem] + symbols.notes(good))
    return ranks, problems
