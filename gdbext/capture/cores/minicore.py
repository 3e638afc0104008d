"""A copy as an ELF core file that a debugger opens: registers, stacks, and which file lies where (core(5), elf.h).

Code is not in it: the debugger takes it from the files. Neither are heap and data, nor, on purpose, the environment.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from typing import Dict, Optional, Sequence

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.elf import writer
from gdbext.capture.elf.core_notes_layout import (
    FILES_HEAD,
    FILES_ROW,
    NT_AUXV,
    NT_FILE,
    NT_PRPSINFO,
    NT_PRSTATUS,
    PRPSINFO,
    PRSTATUS_HEAD,
    PRSTATUS_TAIL,
)
from gdbext.capture.machine import Architecture
from gdbext.capture.symbols.mapped_libraries import MappedFile, libraries_on_stacks
from gdbext.model.errors import GdbextError

__all__ = ["MappedFile", "libraries_on_stacks", "write_core"]


def write_core(copy: ProcessCopy, path: str, opens: Optional[Dict[str, str]] = None) -> None:
    """Write the copy as a new core file that only its owner can read. Its first thread is the main thread.

    A debugger opens every file that a core names, a FIFO or /dev/nvidia0 too. `opens` says which, and under what name;
    None: all of them by their own names.

    Raises `GdbextError` when there is nothing to write, when the file exists already, or when it cannot be written;
    what was begun is removed then.
    """
    row = copy.architecture
    threads = [thread for thread in copy.threads if thread.registers]
    if row is None or not threads:
        raise GdbextError(f"nothing was copied of pid {copy.pid}: there is no core to write")
    if len(copy.blocks) > writer.MOST_SEGMENTS:
        raise GdbextError(f"the copy of pid {copy.pid} has {len(copy.blocks)} pieces: too many for a core file")
    notes = _notes(copy, row, threads, opens)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_write(copy.pid, path, error) from None
    try:
        with open(descriptor, "wb") as stream:
            writer.write_core(stream, row.e_machine, notes, copy.blocks)
    except OSError as error:
        os.unlink(path)
        raise _cannot_write(copy.pid, path, error) from None


def _cannot_write(pid: int, path: str, error: OSError) -> GdbextError:
    hint = "set TMPDIR to a folder with more room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return GdbextError(f"the core of pid {pid} cannot be written to {path}: {error.strerror}", hint)


def _notes(
    copy: ProcessCopy, row: Architecture, threads: Sequence[ThreadCopy], opens: Optional[Dict[str, str]]
) -> bytes:
    """The process stands behind the first thread: the debugger takes the first register set for the selected thread."""
    notes = [writer.note(NT_PRSTATUS, _status(copy.pid, row, thread)) for thread in threads]
    notes[1:1] = [
        writer.note(NT_PRPSINFO, _process(copy)),
        writer.note(NT_AUXV, copy.auxv),
        writer.note(NT_FILE, _files(copy, opens)),
    ]
    return b"".join(notes)


def _status(pid: int, row: Architecture, thread: ThreadCopy) -> bytes:
    head = PRSTATUS_HEAD.pack(thread.signal, 0, 0, thread.signal, 0, 0, thread.tid, 0, pid, pid)
    return head + struct.pack(f"<{row.registers}Q", *thread.registers) + PRSTATUS_TAIL.pack(0)


def _process(copy: ProcessCopy) -> bytes:
    """The debugger compares the command with the executable; the arguments, which may hold secrets, are left out."""
    command = os.fsencode(os.path.basename(copy.exe))
    return PRPSINFO.pack(0, ord("S"), 0, 0, 0, 0, 0, copy.pid, 0, copy.pid, copy.pid, command[:15], command[:79])


def _files(copy: ProcessCopy, opens: Optional[Dict[str, str]]) -> bytes:
    """NT_FILE: count, page size, (start, end, offset in pages) of each mapping, then the names."""
    mappings = [mapping for mapping in copy.maps if mapping.is_file and (opens is None or mapping.file in opens)]
    page = mmap.PAGESIZE
    rows = (FILES_ROW.pack(mapping.start, mapping.end, mapping.offset // page) for mapping in mappings)
    paths = (mapping.path if opens is None else opens[mapping.file] for mapping in mappings)
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    return FILES_HEAD.pack(len(mappings), page) + b"".join(rows) + names
