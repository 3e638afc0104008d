"""Which symbol files gdb gets for the copies of some ranks: whole files, excerpts (capture/symbols/excerpt.py), or one
excerpt of many files for each rank.

Of a big file without debug information gdb gets an excerpt, one for all ranks together; of one whose debug information
is too much for it, too. Where a rank has code of very many files on its stacks, those of which gdb says the same with
an excerpt become one file.
"""

from __future__ import annotations

import bisect
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Set

from gdbext.capture import user_cache
from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.elf.excerpt_file import MOST_SECTIONS, Parts, Placed, write_file
from gdbext.capture.symbols.excerpt import LIMIT, Look, look
from gdbext.capture.symbols.mapped_libraries import MOST_WORDS, MappedFile, words_of
from gdbext.collect.gdb_runs.opened_files import GdbFiles
from gdbext.collect.gdbs_side_by_side import readable
from gdbext.safe_open.kept_open_files import Opened

MANY = 100
"""Files of one rank from which they are made one: gdb's time for each grows with all the others."""
MOST_WHOLE = 200
"""Files that gdb gets whole where there are many. With debug information in 400 files it took 2 ms for a frame."""

_TOO_MANY_WORDS = f"its stacks hold more than {MOST_WORDS} different words: frames in the rest of them may lack names"
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
        """Excerpts and copies are written into `folder`; `until` then (CLOCK_MONOTONIC) symbols may be looked for.
        `early` is told each library that gdb gets as it is, at once: gdb can begin with it."""
        self._folder, self._say, self._until, self._early = folder, say, until, early
        self._gdb_files = GdbFiles(folder)
        self._cache = user_cache.folder_of()
        self._left = readable()
        self._said_at = 0.0
        self._many = False
        self._cut: Set[int] = set()  # pids
        self._programs: Set[Opened] = set()
        self._whole: Set[Opened] = set()  # those that gdb gets as they are
        self._parts: Dict[Opened, Parts] = {}  # of files that become one
        self._places: Dict[Opened, str] = {}  # what gdb gets of the others; empty: nothing
        self._looks: Dict[Opened, Look] = {}
        self._notes: Dict[Opened, Note] = {}

    def make(self, copies: Sequence[ProcessCopy], files: Sequence[Sequence[MappedFile]]) -> None:
        """Find out what gdb gets of the files on these stacks; the small ones first, while there is time."""
        addresses: Dict[Opened, Set[int]] = {}
        names: Dict[Opened, str] = {}
        for copy, mapped in zip(copies, files):
            words = words_of(copy)
            if len(words) >= MOST_WORDS:
                self._cut.add(copy.pid)
            self._programs.update(file.opened for file in mapped if file.path == copy.exe and file.opened)
            for file in mapped:
                if file.opened is not None:
                    inside = words[bisect.bisect_left(words, file.start) : bisect.bisect_left(words, file.end)]
                    addresses.setdefault(file.opened, set()).update(word - file.bias for word in inside)
                    names.setdefault(file.opened, os.path.basename(file.path))
        self._many = max((len(mapped) for mapped in files), default=0) > MANY
        for number, opened in enumerate(sorted(addresses, key=lambda one: one.size)):
            self._one(opened, names[opened], str(self._folder / f"excerpt.{number}"), sorted(addresses[opened]))

    def rows(self, number: int, mapped: Sequence[MappedFile], exe: str) -> List[Dict[str, Any]]:
        """What the gdb of a rank is to load (protocol of inside_gdb/stacks/read_copies.py). `exe` is the path of its
        program."""
        rows: List[Dict[str, Any]] = []
        merged: List[List[MappedFile]] = []
        sections = MOST_SECTIONS
        for file in mapped:
            parts = self._parts.get(file.opened) if file.opened else None
            if parts is None:
                rows += self._row(file, exe)
                continue
            sections += len(parts.code)
            if sections > MOST_SECTIONS:
                sections = len(parts.code)
                merged.append([])
            merged[-1].append(file)
        for one, files in enumerate(merged):
            path = str(self._folder / f"excerpts.{number}.{one}")
            if _is_written(path, [Placed(self._parts[file.opened], file.bias) for file in files if file.opened]):
                rows.append({"path": path, "bias": 0, "name": path, "size": 0})
            else:
                rows += [row for file in files for row in self._row(file, exe)]
        return rows

    def _row(self, file: MappedFile, exe: str) -> List[Dict[str, Any]]:
        place = self._place(file.opened) if file.opened else ""
        if not place:
            return []
        # gdb looks for `main` in a program only; an excerpt is no program.
        program = file.path == exe and file.opened in self._whole
        size = file.opened.size if file.opened in self._whole else 0
        return [{"path": place, "bias": file.bias, "name": file.path, "program": program, "size": size}]

    def _place(self, file: Opened) -> str:
        """What gdb is told to open; empty: nothing."""
        if file not in self._places:
            try:
                self._places[file] = self._gdb_files.name_of(file, self._looks[file])
                self._whole.add(file)
            except OSError as error:
                self._places[file] = ""
                self._notes[file] = _no_room(error)
        return self._places[file]

    def notes(self, copy: ProcessCopy, mapped: Sequence[MappedFile]) -> List[str]:
        """What gdb does not get of the files of a copy, one line for those that lack the same."""
        lacking: Dict[str, List[Note]] = {}
        names: Dict[str, List[str]] = {}
        for file in mapped:
            note = self._notes.get(file.opened) if file.opened else None
            if note:
                lacking.setdefault(note.texts, []).append(note)
                names.setdefault(note.texts, []).append(os.path.basename(file.path))
        lines = [_TOO_MANY_WORDS] if copy.pid in self._cut else []
        for texts, notes in lacking.items():
            if len(notes) <= _NAMED:
                lines += [f"{name}: {note.text}" for name, note in zip(names[texts], notes)]
            else:
                some = ", ".join(names[texts][:_NAMED])
                lines.append(f"{len(notes)} files ({some}, ...): {texts}")
        return lines

    def _one(self, file: Opened, name: str, target: str, linked: Sequence[int]) -> None:
        limit = LIMIT if self._left is None else min(LIMIT, self._left)
        many = self._many and file not in self._programs  # gdb looks for `main` in a program only
        crowded = many and len(self._whole) >= MOST_WHOLE

        def going_through(done: int, symbols: int) -> None:
            now = time.monotonic()
            if not done or now - self._said_at >= _EVERY:
                self._said_at = now
                begun = f", {done / 1e6:.1f} done" if done else ""
                self._say(f"scanning the {symbols / 1e6:.1f} million symbols of {name}{begun}")

        found = look(file, linked, self._cache, 0 if crowded else limit, going_through, self._until, many)
        self._looks[file] = found
        if found.parts is not None:
            why = found.problem or (f"that of {MOST_WHOLE} other files was" if crowded else f"{_mib(limit)} can be")
            if self._take(file, target, found.parts, why):
                return
        if found.problem:
            self._places[file] = ""
            self._notes[file] = Note(f"no names for its frames: {found.problem}", f"no names: {found.problem}")
            return
        if found.parts is None and found.symbol_bytes > limit:
            self._places[file] = ""
            self._notes[file] = Note(
                f"its symbols ({_mib(found.symbol_bytes)}) are too many to read: no names for its frames",
                "their symbols are too many to read: no names for their frames",
            )
            return
        place = self._place(file)
        # What gdb 13 read of a library it cannot use for a program.
        if place and file not in self._programs and not self._many:
            self._early(place)
        if self._left is not None:
            self._left -= found.symbol_bytes

    def _take(self, file: Opened, target: str, parts: Parts, why: str) -> bool:
        """An excerpt is what gdb gets of a file; `why` it does not get debug information. False: there is no room."""
        if not parts.code:
            self._places[file] = ""  # no address is of its code
        elif self._many:
            self._parts[file] = parts
        elif _is_written(target, [Placed(parts, 0)]):
            self._places[file] = target
        else:
            return False
        if not parts.named:
            self._notes[file] = _late(self._cache is not None)
        elif parts.debug:
            lacking = "no lines and no arguments" + (", and only exported functions have names" * parts.exported)
            self._notes[file] = Note(
                f"its {_mib(parts.debug)} of debug information were not read ({why}): its frames have {lacking}",
                f"their debug information was not read: their frames have {lacking}",
            )
        return True


def _no_room(error: OSError) -> Note:
    why = f"no room for a copy ({error.strerror}); set TMPDIR to a folder with more room"
    return Note(f"no names for its frames: {why}", f"no names for their frames: {why}")


def _late(kept: bool) -> Note:
    """There was no time for a file's symbols; whether a second look goes on where this one ended."""
    found = "were not found in half of --deadline. "
    found += (
        "gdbext keeps the part that it read, so a second run is faster"
        if kept
        else "Without a cache a second run needs a longer --deadline"
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
