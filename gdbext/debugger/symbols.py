"""Loading symbol files at the addresses where a process has them, ahead of the stop or for a copy without a linker map.

What gdb reads of a file is kept per file and shared between inferiors, so a later `attach` finds it done: the stop of a
torch rank shrinks from 6.2 s to 0.5 s (gdb 13.1, 232 libraries).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple

import gdb

from gdbext.capture.maps import read_maps
from gdbext.debugger import compat


class SymbolFile(NamedTuple):
    """An object file and what to add to its addresses; the same in every rank, but for the bias."""

    path: str
    bias: int


def add(files: Iterable[SymbolFile]) -> Tuple[str, ...]:
    """Load the files into the current inferior; returns what could not be loaded, one line each."""
    problems: List[str] = []
    for file in files:
        try:
            compat.run(f"add-symbol-file {quoted(file.path)} -o {file.bias:#x}")
        except gdb.error as error:
            problems.append(f"no symbols of {file.path}: {first_line(error)}")
    return tuple(problems)


def executable_files(pid: int) -> Tuple[str, ...]:
    """Paths of all files that a process has mapped as code, as this process can open them; () when it is gone."""
    try:
        memory = read_maps(pid)
    except OSError:
        return ()
    found = {mapping.file: None for mapping in memory if mapping.is_file and mapping.executable and not mapping.deleted}
    return tuple(path for path in found if _same_file(pid, path))


def _same_file(pid: int, path: str) -> bool:
    """Whether the path means the same file to us as to the process, which may live in a container."""
    try:
        here, there = os.stat(path), os.stat(f"/proc/{pid}/root{path}")
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


@contextmanager
def preloaded(pids: Sequence[int]) -> Iterator[None]:
    """Have the symbols of these processes in memory while the block runs, in inferiors of their own.

    Whoever attaches inside shares them and keeps them afterwards. A program is read as a program: its symbols read as
    those of a library, and later used as those of a program, end gdb 13 (assertion in get_msymbol_address).
    """
    programs = list(dict.fromkeys(path for pid in pids for path in _program(pid)))
    libraries = dict.fromkeys(path for pid in pids for path in executable_files(pid) if path not in programs)
    holders: List[gdb.Inferior] = []
    try:
        with compat.kept_selection():
            for program in programs or [""]:
                holders.append(compat.add_inferior())
                compat.switch(holders[-1])
                _read_program(program)
            add(SymbolFile(path, 0) for path in libraries)
        yield
    finally:
        for holder in holders:
            compat.remove_inferior(holder)


def _program(pid: int) -> Tuple[str, ...]:
    """Path of the program of a process, if it means the same file to us."""
    try:
        path = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ()
    return (path,) if _same_file(pid, path) else ()


def _read_program(path: str) -> None:
    if path:
        try:
            compat.run(f"file {quoted(path)}")
        except gdb.error:
            pass  # the attach says what is wrong with it


def quoted(path: str) -> str:
    """One word for gdb_buildargv, which knows backslashes and quotes."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
