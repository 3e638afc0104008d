"""A copy as an ELF core file that a debugger opens: registers, stacks, and which file lies where (core(5), elf.h).

Code is not in it: the debugger takes it from the files. Neither are heap and data, nor, on purpose, the environment.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import BinaryIO, Dict, List, Optional, Sequence

from gdbext.capture.libraries import MappedFile, libraries_on_stacks
from gdbext.capture.machine import Architecture
from gdbext.capture.memory import Block
from gdbext.capture.stop import ProcessCopy, ThreadCopy
from gdbext.model.errors import GdbextError

__all__ = ["MappedFile", "libraries_on_stacks", "write_core"]

_ET_CORE, _PT_LOAD, _PT_NOTE = 4, 1, 4
_NT_PRSTATUS, _NT_PRPSINFO, _NT_AUXV, _NT_FILE = 1, 3, 6, 0x46494C45
_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_MOST_SEGMENTS = 0xFFFE  # e_phnum has 16 bits, its last value means something else
# struct elf_prstatus and elf_prpsinfo of 64-bit Linux (sys/procfs.h), the same on every architecture we know.
_PRSTATUS_HEAD = struct.Struct("<iiihxxQQiiii64x")
_PRSTATUS_TAIL = struct.Struct("<ixxxx")
_PRPSINFO = struct.Struct("<bbbbxxxxQIIiiii16s80s")


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
    if len(copy.blocks) > _MOST_SEGMENTS:
        raise GdbextError(f"the copy of pid {copy.pid} has {len(copy.blocks)} pieces: too many for a core file")
    notes = _notes(copy, row, threads, opens)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_write(copy.pid, path, error) from None
    try:
        with open(descriptor, "wb") as stream:
            _write(stream, row, notes, copy.blocks)
    except OSError as error:
        os.unlink(path)
        raise _cannot_write(copy.pid, path, error) from None


def _cannot_write(pid: int, path: str, error: OSError) -> GdbextError:
    hint = "set TMPDIR to a folder with more room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return GdbextError(f"the core of pid {pid} cannot be written to {path}: {error.strerror}", hint)


def _write(stream: BinaryIO, row: Architecture, notes: bytes, blocks: Sequence[Block]) -> None:
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bit, little-endian
    count = len(blocks) + 1
    stream.write(_EHDR.pack(identity, _ET_CORE, row.e_machine, 1, 0, 64, 0, 0, 64, _PHDR.size, count, 0, 0, 0))
    offset = _EHDR.size + count * _PHDR.size
    stream.write(_PHDR.pack(_PT_NOTE, 0, offset, 0, 0, len(notes), 0, 4))
    offset += len(notes)
    for block in blocks:
        size = len(block.data)
        stream.write(_PHDR.pack(_PT_LOAD, 6, offset, block.address, 0, size, size, 1))
        offset += size
    stream.write(notes)
    for block in blocks:
        stream.write(block.data)


def _notes(
    copy: ProcessCopy, row: Architecture, threads: Sequence[ThreadCopy], opens: Optional[Dict[str, str]]
) -> bytes:
    """The process stands behind the first thread: the debugger takes the first register set for the selected thread."""
    notes = [_note(_NT_PRSTATUS, _status(copy.pid, row, thread)) for thread in threads]
    notes[1:1] = [
        _note(_NT_PRPSINFO, _process(copy)),
        _note(_NT_AUXV, copy.auxv),
        _note(_NT_FILE, _files(copy, opens)),
    ]
    return b"".join(notes)


def _note(kind: int, data: bytes) -> bytes:
    return struct.pack("<III8s", 5, len(data), kind, b"CORE") + data + bytes(-len(data) % 4)


def _status(pid: int, row: Architecture, thread: ThreadCopy) -> bytes:
    head = _PRSTATUS_HEAD.pack(thread.signal, 0, 0, thread.signal, 0, 0, thread.tid, 0, pid, pid)
    return head + struct.pack(f"<{row.registers}Q", *thread.registers) + _PRSTATUS_TAIL.pack(0)


def _process(copy: ProcessCopy) -> bytes:
    """The debugger compares the command with the executable; the arguments, which may hold secrets, are left out."""
    command = os.fsencode(os.path.basename(copy.exe))
    return _PRPSINFO.pack(0, ord("S"), 0, 0, 0, 0, 0, copy.pid, 0, copy.pid, copy.pid, command[:15], command[:79])


def _files(copy: ProcessCopy, opens: Optional[Dict[str, str]]) -> bytes:
    """NT_FILE: count, page size, (start, end, offset in pages) of each mapping, then the names."""
    mappings = [mapping for mapping in copy.maps if mapping.is_file and (opens is None or mapping.file in opens)]
    page = os.sysconf("SC_PAGE_SIZE")
    numbers: List[int] = [len(mappings), page]
    for mapping in mappings:
        numbers += (mapping.start, mapping.end, mapping.offset // page)
    paths = (mapping.path if opens is None else opens[mapping.file] for mapping in mappings)
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    return struct.pack(f"<{len(numbers)}Q", *numbers) + names
