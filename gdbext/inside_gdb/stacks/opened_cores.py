"""Core files as inferiors: the program and the libraries that its stacks run through by build-id, then the core."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence, Tuple

import gdb

from gdbext.capture.cores.core_copy import copy_core
from gdbext.capture.gdb_traps import WAY, trap_among
from gdbext.capture.symbols.link_map import names_in
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.inside_gdb.base import compat, symbols
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack
from gdbext.snapshot_builder.core_job import OpenCore, crash, mark_crashed_thread, python_of, without_files

_WHILE_LOADING = {"auto-solib-add": "off"}  # gdb would take what lies under a path, whatever build it is


def load(one: OpenCore) -> Tuple[str, ...]:
    """Program, libraries and core into the selected inferior; returns what is missing. Raises gdb.error.

    The other libraries are listed by `info sharedlibrary`, and `sharedlibrary REGEX` reads them.
    """
    objects = one.objects
    # gdb opens every file that the core names, and every library that its linker knew.
    trap = trap_among([*(mapping.file for mapping in one.core.notes.files), *names_in(one.core, one.core.notes.auxv)])
    if trap:
        raise gdb.error(f"{trap}; {WAY}")
    copy = copy_core(one.core, objects, one.block)
    files = libraries_on_stacks(copy, objects)
    problems: List[str] = list(copy.problems)
    with compat.settings(_WHILE_LOADING):
        program = objects.opens(objects.program) if objects.program else None
        if program:
            problems += symbols.read_program(program)
        good = [file for file in files if not file.problem and file.path != objects.program]
        problems += symbols.add(symbols.SymbolFile(file.opens_as, file.bias, file.path) for file in good)
        compat.open_core(os.path.abspath(one.path))
    problems += without_files([file.problem for file in files if file.problem], objects.unchecked)
    return tuple(problems)


def told_to_dump(one: OpenCore) -> Tuple[str, ...]:
    """Who made a program dump that had not crashed."""
    crashed, text = crash(one.core.notes)
    return (text,) if text and crashed is None else ()


def with_crash(stacks: Sequence[ThreadStack], one: OpenCore) -> Tuple[ThreadStack, ...]:
    """The stacks, with what killed the process at the thread that it happened to."""
    return mark_crashed_thread(stacks, *crash(one.core.notes))


def python(one: OpenCore, stacks: Sequence[ThreadStack], problems: List[str]) -> Optional[PythonStacks]:
    """Python's frames, by the memory of the core."""
    found, more = python_of(one, [stack.lwp for stack in stacks if stack.lwp])
    problems += more
    return found
