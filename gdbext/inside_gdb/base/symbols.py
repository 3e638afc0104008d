"""Loading symbol files at the addresses where a process has them, ahead of the stop or for a copy without a linker map.

What gdb reads of a file is kept per file and shared between inferiors, so a later `attach` finds it done: the stop of a
torch rank shrinks from 6.2 s to 0.5 s (gdb 13.1, 232 libraries).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import gdb

from gdbext.capture.copies.copied_process import read_proc
from gdbext.capture.gdb_traps import trap_among
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.symbols.link_map import names_in
from gdbext.inside_gdb.base import compat
from gdbext.safe_open import files
from gdbext.safe_open.regular_files import identity_of

LITERALLY = "target:"
"""Before a path: gdb neither resolves its links nor calls the file by what is behind them. Of a target that has no
files of its own, as a core, it is a path of ours (gdb 10 to 18)."""


class SymbolFile(NamedTuple):
    """An object file and what to add to its addresses; the same in every rank, but for the bias. `path` is what gdb
    opens, `name` what people call it."""

    path: str
    bias: int
    name: str


def add(files: Iterable[SymbolFile]) -> Tuple[str, ...]:
    """Load the files into the current inferior; returns what could not be loaded, one line each."""
    problems: List[str] = []
    for file in files:
        try:
            compat.run(f"add-symbol-file {compat.quoted(file.path)} -o {file.bias:#x}")
        except gdb.error as error:
            problems.append(_lacking(file, error))
    return tuple(problems)


def add_program(file: SymbolFile) -> Tuple[str, ...]:
    """Load a file as that in which gdb looks for `main`, into the current inferior; returns what could not be."""
    try:
        compat.run(f"symbol-file -o {file.bias:#x} {compat.quoted(file.path)}")
    except gdb.error as error:
        return (_lacking(file, error),)
    return ()


def symbol_at(address: int) -> Optional[str]:
    """The symbol that an address lies in."""
    try:
        text = gdb.execute(f"info symbol {address:#x}", to_string=True)
    except gdb.error:
        return None
    return None if text.startswith("No symbol") else text


def _lacking(file: SymbolFile, error: gdb.error) -> str:
    opened = file.path[len(LITERALLY) :] if file.path.startswith(LITERALLY) else file.path
    return f"no symbols of {file.name}: {first_line(error).replace(file.path, file.name).replace(opened, file.name)}"


def executable_files(pid: int) -> Tuple[str, ...]:
    """Paths of all files that a process has mapped as code, as this process can open them; () when it is gone."""
    try:
        memory = read_maps(pid)
    except OSError:
        return ()
    found = {mapping.file: None for mapping in memory if mapping.is_file and mapping.executable and not mapping.deleted}
    return tuple(path for path in found if _same_file(pid, path))


def trap_of(pid: int) -> Optional[str]:
    """Why gdb must not attach to a process: it would open a file of it that keeps it waiting, and hold the process."""
    try:
        paths = [mapping.file for mapping in read_maps(pid) if mapping.is_file and mapping.executable]
        named = names_in(ProcessMemory(pid), read_proc(pid, "auxv"))
    except OSError:
        return None  # the attach will say why
    return trap_among([*paths, *named], f"/proc/{pid}/root")


def _same_file(pid: int, path: str) -> bool:
    """Whether the path means the same file to us as to the process, which may live in a container: a regular one that
    can be read at once."""
    try:
        return identity_of(files.status(path)) == identity_of(files.status(f"/proc/{pid}/root{path}"))
    except OSError:
        return False


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
                compat.switch_inferior(holders[-1])
                if program:
                    read_program(program)  # the attach says what is wrong with it
            add(SymbolFile(path, 0, path) for path in libraries)
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


def read_program(path: str) -> Tuple[str, ...]:
    """Make a file the program of the current inferior; returns why its symbols cannot be read, as one line."""
    try:
        compat.run(f"file {compat.quoted(path)}")
    except gdb.error as error:
        return (f"no symbols of the program: {first_line(error)}",)
    return ()


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
