"""Which symbol files gdb gets for the copies of some ranks: whole files, excerpts (capture/excerpt.py), or one excerpt
of many files for each rank.

Of a big file without debug information gdb gets an excerpt, one for all ranks together; of one whose debug information
is too much for it, too. Where a rank has code of very many files on its stacks, those of which gdb says the same with
an excerpt become one file.
"""

from __future__ import annotations

import bisect
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Set, Tuple

from gdbext.capture import user_cache
from gdbext.capture.excerpt import LIMIT, parts_of, weight_of
from gdbext.capture.excerpt_file import MOST_SECTIONS, Parts, Placed, write_file
from gdbext.capture.libraries import MappedFile, words_of
from gdbext.capture.stop import ProcessCopy
from gdbext.frontend.capacity import readable, size_of

MANY = 100
"""Files of one rank from which they are made one: gdb's time for each grows with all the others."""
MOST_WHOLE = 200
"""Files that gdb gets whole where there are many. With debug information in 400 files it took 2 ms for a frame."""

_EVERY = 5.0  # seconds between two lines of progress
_NAMED = 3  # files whose names stand in a line


class Note(NamedTuple):
    """What gdb does not get of a file: `text` of one, `texts` of several."""

    text: str
    texts: str


class SymbolFiles:
    """One for each file that is worth one; what gdb then reads whole fits into the memory at hand."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], until: float, early: Callable[[str], None] = lambda path: None
    ) -> None:
        """Excerpts are written into `folder`; `until` then (CLOCK_MONOTONIC) symbols may be looked for. `early` is told
        each library that gdb gets as it is, at once: gdb can begin with it."""
        self._folder, self._say, self._until, self._early = folder, say, until, early
        self._cache = user_cache.folder_of()
        self._left = readable()
        self._said_at = 0.0
        self._many = False
        self._programs: Set[str] = set()
        self._whole = 0
        self._parts: Dict[str, Parts] = {}  # of files that become one
        self._places: Dict[str, str] = {}  # what gdb gets instead of a file; empty: nothing
        self._notes: Dict[str, Note] = {}

    def make(self, copies: Sequence[ProcessCopy], files: Sequence[Sequence[MappedFile]]) -> None:
        """Find out what gdb gets of the files on these stacks; the small ones first, while there is time."""
        addresses: Dict[str, Set[int]] = {}
        for copy, mapped in zip(copies, files):
            words = words_of(copy)
            self._programs.update(file.opens_as for file in mapped if file.path == copy.exe)
            for file in mapped:
                if not file.problem:
                    inside = words[bisect.bisect_left(words, file.start) : bisect.bisect_left(words, file.end)]
                    addresses.setdefault(file.opens_as, set()).update(word - file.bias for word in inside)
        self._many = max((len(mapped) for mapped in files), default=0) > MANY
        for number, path in enumerate(sorted(addresses, key=size_of)):
            self._one(path, str(self._folder / f"excerpt.{number}"), sorted(addresses[path]))

    def is_whole(self, path: str) -> bool:
        """Whether gdb gets a file as it is."""
        return path not in self._parts and self._places.get(path, path) == path

    def rows(self, number: int, mapped: Sequence[MappedFile]) -> List[Dict[str, Any]]:
        """What the gdb of a rank is to load (protocol of debugger/batch.py)."""
        rows: List[Dict[str, Any]] = []
        merged: List[List[Placed]] = []
        places: List[List[Tuple[str, int]]] = []
        sections = MOST_SECTIONS
        for file in mapped:
            parts = self._parts.get(file.opens_as)
            place = self._places.get(file.opens_as, file.opens_as)
            if parts is not None:
                sections += len(parts.code)
                if sections > MOST_SECTIONS:
                    sections = len(parts.code)
                    merged.append([])
                    places.append([])
                merged[-1].append(Placed(parts, file.bias))
                places[-1].append((file.opens_as, file.bias))
            elif place:
                rows.append({"path": place, "bias": file.bias})
        for one, placed in enumerate(merged):
            path = str(self._folder / f"excerpts.{number}.{one}")
            if _is_written(path, placed):
                rows.append({"path": path, "bias": 0})
            else:
                rows += [{"path": file, "bias": bias} for file, bias in places[one]]
        return rows

    def notes(self, mapped: Sequence[MappedFile]) -> List[str]:
        """What gdb does not get of these files, one line for those that lack the same."""
        lacking: Dict[str, List[Note]] = {}
        names: Dict[str, List[str]] = {}
        for file in mapped:
            note = self._notes.get(file.opens_as)
            if note:
                lacking.setdefault(note.texts, []).append(note)
                names.setdefault(note.texts, []).append(os.path.basename(file.path))
        lines: List[str] = []
        for texts, notes in lacking.items():
            if len(notes) <= _NAMED:
                lines += [f"{name}: {note.text}" for name, note in zip(names[texts], notes)]
            else:
                some = ", ".join(names[texts][:_NAMED])
                lines.append(f"{len(notes)} files ({some}, ...): {texts}")
        return lines

    def _one(self, path: str, target: str, linked: Sequence[int]) -> None:
        name = os.path.basename(path)
        limit = LIMIT if self._left is None else min(LIMIT, self._left)
        many = self._many and path not in self._programs  # gdb looks for `main` in a program only
        crowded = many and self._whole >= MOST_WHOLE

        def going_through(done: int, symbols: int) -> None:
            now = time.monotonic()
            if not done or now - self._said_at >= _EVERY:
                self._said_at = now
                begun = f", {done / 1e6:.1f} done" if done else ""
                self._say(f"going through the {symbols / 1e6:.1f} million symbols of {name}{begun}")

        parts = parts_of(path, linked, self._cache, 0 if crowded else limit, going_through, self._until, many)
        if parts is not None:
            why = f"that of {MOST_WHOLE} other files was" if crowded else f"{_mib(limit)} can be"
            self._take(path, target, parts, why)
            return
        weight = weight_of(path)
        if weight > limit:
            self._places[path] = ""
            self._notes[path] = Note(
                f"its symbols ({_mib(weight)}) are too many to be read: no names for its frames",
                "their symbols are too many to be read: no names for their frames",
            )
            return
        self._whole += 1
        if path not in self._programs and not self._many:  # what gdb 13 read of a library it cannot use for a program
            self._early(path)
        if self._left is not None:
            self._left -= weight

    def _take(self, path: str, target: str, parts: Parts, why: str) -> None:
        """An excerpt is what gdb gets of a file; `why` it does not get debug information."""
        if not parts.code:
            self._places[path] = ""  # no address is of its code
        elif self._many:
            self._parts[path] = parts
        elif _is_written(target, [Placed(parts, 0)]):
            self._places[path] = target
        else:
            return
        if not parts.named:
            self._notes[path] = _late(self._cache is not None)
        elif parts.debug:
            lacking = "neither lines nor arguments" + (", and only exported functions a name" * parts.exported)
            self._notes[path] = Note(
                f"its {_mib(parts.debug)} of debug information were not read ({why}): its frames have {lacking}",
                f"their debug information was not read: their frames have {lacking}",
            )


def _late(kept: bool) -> Note:
    """There was no time for a file's symbols; whether a second look goes on where this one ended."""
    found = "were not found in half of the time of --deadline. "
    found += (
        "What was read of them is kept, so that a second look is quicker"
        if kept
        else "Nothing is kept of them for a second look: it needs a longer --deadline"
    )
    return Note(f"no names for its frames: its symbols {found}", f"no names for their frames: their symbols {found}")


def _is_written(path: str, libraries: Sequence[Placed]) -> bool:
    """Where there is no room for an excerpt gdb gets the files themselves."""
    try:
        write_file(path, libraries)
    except OSError:
        return False
    return True


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
