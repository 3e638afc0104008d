"""What the batch gdb is asked to read: a core for each copy, and the object files that its stacks run through.

Of a big file without debug information gdb gets an excerpt (capture/excerpt.py), one for all ranks together.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from gdbext.capture import minicore, user_cache
from gdbext.capture.excerpt import write_excerpt
from gdbext.capture.libraries import Finder, MappedFile, libraries_on_stacks, words_of
from gdbext.capture.stop import ProcessCopy


@dataclass(frozen=True)
class Dump:
    """Where the files and the memory of a process are that is gone."""

    finder: Finder
    exe: str  # empty: not here
    memory: str  # path of the whole core


def ranks_of(
    copies: Sequence[ProcessCopy], folder: Path, dumps: Sequence[Dump] = ()
) -> Tuple[List[Dict[str, Any]], List[List[str]]]:
    """The `ranks` of a request (protocol of debugger/batch.py), and what is wrong with the files of each rank.

    Cores and excerpts are written into `folder`. `dumps`: one for each copy,
    where they are of core files. Raises `GdbextError` when there is no room for them.
    """
    finders: Sequence[Optional[Finder]] = [dump.finder for dump in dumps] or [None] * len(copies)
    files = [libraries_on_stacks(copy, finder) for copy, finder in zip(copies, finders)]
    excerpts = _excerpts(copies, files, folder)
    ranks: List[Dict[str, Any]] = []
    problems: List[List[str]] = []
    for number, (copy, mapped) in enumerate(zip(copies, files)):
        core = folder / f"core.{number}"
        minicore.write_core(copy, str(core))
        good = [file for file in mapped if not file.problem]
        rows = [{"path": excerpts.get(file.opens_as, file.opens_as), "bias": file.bias} for file in good]
        rank = {"index": number, "pid": copy.pid, "core": str(core), "exe": f"/proc/{copy.pid}/exe", "files": rows}
        ranks.append({**rank, "exe": dumps[number].exe, "memory": dumps[number].memory} if dumps else rank)
        problems.append([file.problem for file in mapped if file.problem])
    return ranks, problems


def _excerpts(copies: Sequence[ProcessCopy], files: Sequence[Sequence[MappedFile]], folder: Path) -> Dict[str, str]:
    """Path of a file -> path of its excerpt, for the files that are worth one."""
    addresses: Dict[str, Set[int]] = {}
    for copy, mapped in zip(copies, files):
        words = words_of(copy)
        for file in mapped:
            inside = words[bisect.bisect_left(words, file.start) : bisect.bisect_left(words, file.end)]
            addresses.setdefault(file.opens_as, set()).update(word - file.bias for word in inside)
    found: Dict[str, str] = {}
    cache = user_cache.folder_of()
    for number, (path, linked) in enumerate(addresses.items()):
        target = str(folder / f"excerpt.{number}")
        if write_excerpt(path, sorted(linked), target, cache):
            found[path] = target
    return found
