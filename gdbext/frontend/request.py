"""What the batch gdb is asked to read: a core for each copy, and the object files that its stacks run through.

Of a big file without debug information gdb gets an excerpt (capture/excerpt.py), one for all ranks together; of one
whose debug information is too much for it, too.
"""

from __future__ import annotations

import bisect
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from gdbext.capture import minicore, user_cache
from gdbext.capture.excerpt import LIMIT, weight_of, write_excerpt
from gdbext.capture.libraries import Finder, MappedFile, libraries_on_stacks, words_of
from gdbext.capture.stop import ProcessCopy
from gdbext.frontend.capacity import readable

_EVERY = 5.0  # seconds between two lines of progress


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
) -> Tuple[List[Dict[str, Any]], List[List[str]]]:
    """The `ranks` of a request (protocol of debugger/batch.py), and what is wrong with the files of each rank.

    Cores and excerpts are written into `folder`. `dumps`: one for each copy,
    where they are of core files. Raises `GdbextError` when there is no room for them.
    """
    finders: Sequence[Optional[Finder]] = [dump.finder for dump in dumps] or [None] * len(copies)
    files = [libraries_on_stacks(copy, finder) for copy, finder in zip(copies, finders)]
    excerpts = _Excerpts(folder, say)
    excerpts.make(copies, files)
    ranks: List[Dict[str, Any]] = []
    problems: List[List[str]] = []
    for number, (copy, mapped) in enumerate(zip(copies, files)):
        core = folder / f"core.{number}"
        minicore.write_core(copy, str(core))
        good = [(file, excerpts.place(file.opens_as)) for file in mapped if not file.problem]
        rows = [{"path": place, "bias": file.bias} for file, place in good if place]
        # gdb would read the whole program once more beside its excerpt.
        whole = all(place == file.opens_as for file, place in good if file.path == copy.exe)
        exe = (dumps[number].exe if dumps else f"/proc/{copy.pid}/exe") if whole else ""
        rank = {"index": number, "pid": copy.pid, "core": str(core), "exe": exe, "files": rows}
        ranks.append({**rank, "memory": dumps[number].memory} if dumps else rank)
        problems.append([file.problem for file in mapped if file.problem])
        problems[-1] += [excerpts.notes[file.opens_as] for file, _ in good if file.opens_as in excerpts.notes]
    return ranks, problems


class _Excerpts:
    """One for each file that is worth one; what gdb then reads whole fits into the memory at hand."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._places: Dict[str, str] = {}
        self._cache = user_cache.folder_of()
        self._left = readable()
        self._said_at = 0.0
        self.notes: Dict[str, str] = {}  # path of a file -> what gdb does not get of it

    def place(self, path: str) -> str:
        """What gdb gets for a file; empty: nothing."""
        return self._places.get(path, path)

    def make(self, copies: Sequence[ProcessCopy], files: Sequence[Sequence[MappedFile]]) -> None:
        addresses: Dict[str, Set[int]] = {}
        for copy, mapped in zip(copies, files):
            words = words_of(copy)
            for file in mapped:
                inside = words[bisect.bisect_left(words, file.start) : bisect.bisect_left(words, file.end)]
                addresses.setdefault(file.opens_as, set()).update(word - file.bias for word in inside)
        for number, (path, linked) in enumerate(addresses.items()):
            self._one(path, str(self._folder / f"excerpt.{number}"), sorted(linked))

    def _one(self, path: str, target: str, linked: Sequence[int]) -> None:
        name = os.path.basename(path)
        limit = LIMIT if self._left is None else min(LIMIT, self._left)

        def going_through(done: int, symbols: int) -> None:
            now = time.monotonic()
            if not done or now - self._said_at >= _EVERY:
                self._said_at = now
                begun = f", {done / 1e6:.1f} done" if done else ""
                self._say(f"going through the {symbols / 1e6:.1f} million symbols of {name}{begun}")

        written = write_excerpt(path, linked, target, self._cache, limit, going_through)
        if written is not None:
            self._places[path] = target
            if written.debug:
                self.notes[path] = (
                    f"{name}: its {_mib(written.debug)} of debug information were not read"
                    f" ({_mib(limit)} can be): its frames have names, but neither lines nor arguments"
                )
            return
        weight = weight_of(path)
        if weight > limit:
            self._places[path] = ""
            self.notes[path] = f"{name}: its symbols ({_mib(weight)}) are too many to be read: no names for its frames"
        elif self._left is not None:
            self._left -= weight


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
