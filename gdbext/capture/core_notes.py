"""The notes of a core file: threads with their registers, the process, the signal, and which file lay where.

Layouts: sys/procfs.h (elf_prstatus, elf_prpsinfo), asm-generic/siginfo.h, core(5) for NT_FILE; 64-bit Linux.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from gdbext.capture.maps import Mapping

NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_FILE, NT_SIGINFO = 1, 3, 6, 0x46494C45, 0x53494749
PRSTATUS_HEAD = struct.Struct("<iiihxxQQiiii64x")  # signal, code, errno, cursig, pending, held, pid, ppid, pgrp, sid
PRPSINFO = struct.Struct("<bbbbxxxxQIIiiii16s80s")
_MOST_THREADS = 1 << 16
_MOST_FILES = 1 << 18
_FROM_USER = 0  # si_code SI_USER: by kill(2); values below it by tgkill(2), sigqueue(3), ...; above it by the kernel


@dataclass(frozen=True)
class NotedThread:
    """One NT_PRSTATUS. `registers` are the words of the note, as many as there are."""

    tid: int
    signal: int  # pr_cursig
    registers: Tuple[int, ...]


@dataclass(frozen=True)
class NotedSignal:
    """The first NT_SIGINFO: why the first thread got its signal."""

    number: int
    code: int
    sender: Optional[int] = None  # pid, where a process sent it
    address: Optional[int] = None  # where the kernel sent it: the memory that was touched


@dataclass(frozen=True)
class Notes:
    """What the notes say. Parts that are missing or damaged are empty."""

    threads: Tuple[NotedThread, ...] = ()  # in the order of the file: the one that got the signal comes first
    pid: Optional[int] = None
    parent: int = 0
    group: int = 0
    state: str = ""
    command: str = ""  # pr_fname: 15 bytes
    arguments: str = ""  # pr_psargs: 79 bytes, joined by blanks
    signal: Optional[NotedSignal] = None
    auxv: bytes = b""
    files: Tuple[Mapping, ...] = ()


def read_notes(data: bytes) -> Notes:
    """Never raises: what cannot be understood is left out."""
    threads: List[NotedThread] = []
    found: Dict[int, bytes] = {}
    for kind, note in _notes(data):
        if kind == NT_PRSTATUS:
            thread = _thread(note)
            if thread is not None and len(threads) < _MOST_THREADS:
                threads.append(thread)
        else:
            found.setdefault(kind, note)
    notes = Notes(
        tuple(threads),
        signal=_signal(found.get(NT_SIGINFO, b"")),
        auxv=found.get(NT_AUXV, b""),
        files=tuple(_files(found.get(NT_FILE, b""))),
    )
    return _with_process(notes, found.get(NT_PRPSINFO, b""))


def auxiliary(auxv: bytes) -> Dict[int, int]:
    """The auxiliary vector (getauxval(3)) by its AT_ numbers."""
    words = struct.unpack_from(f"<{len(auxv) // 16 * 2}Q", auxv)
    return dict(zip(words[::2], words[1::2]))


def _notes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """(type, content) of the notes of core files; those of others (LINUX: vector registers) are passed over."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        name = at + 12
        at = name + (name_size + 3 & ~3)
        if at + size > len(data) and kind != NT_FILE:
            return
        if data[name : name + 5] == b"CORE\0":
            yield kind, data[at : at + size]
        at += size + 3 & ~3


def _thread(note: bytes) -> Optional[NotedThread]:
    if len(note) < PRSTATUS_HEAD.size + 8:
        return None
    head = PRSTATUS_HEAD.unpack_from(note)
    count = (len(note) - PRSTATUS_HEAD.size - 8) // 8  # pr_fpvalid and padding stand behind the registers
    return NotedThread(head[6], head[3], struct.unpack_from(f"<{count}Q", note, PRSTATUS_HEAD.size))


def _signal(note: bytes) -> Optional[NotedSignal]:
    if len(note) < 24:
        return None
    number, _errno, code = struct.unpack_from("<iii", note)
    if number <= 0:
        return None
    if code <= _FROM_USER:
        return NotedSignal(number, code, sender=struct.unpack_from("<i", note, 16)[0])
    return NotedSignal(number, code, address=struct.unpack_from("<Q", note, 16)[0])


def _with_process(notes: Notes, note: bytes) -> Notes:
    if len(note) < PRPSINFO.size:
        pid = notes.threads[0].tid if notes.threads else None
        return Notes(notes.threads, pid, signal=notes.signal, auxv=notes.auxv, files=notes.files)
    _, state, _, _, _, _, _, pid, parent, group, _, command, arguments = PRPSINFO.unpack_from(note)
    return Notes(
        notes.threads,
        pid,
        parent,
        group,
        chr(state) if 32 < state < 127 else "",
        _text(command),
        _text(arguments),
        notes.signal,
        notes.auxv,
        notes.files,
    )


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def _files(note: bytes) -> Iterator[Mapping]:
    """NT_FILE: count, page size, (start, end, offset in pages) of each mapping, then the names."""
    if len(note) < 16:
        return
    count, page = struct.unpack_from("<QQ", note, 0)
    count = min(count, len(note) // 24, _MOST_FILES)
    names: List[bytes] = note[16 + 24 * count :].split(b"\0")
    for index in range(min(count, len(names))):
        start, end, offset = struct.unpack_from("<QQQ", note, 16 + 24 * index)
        # The note does not say the protection; "r-xp" lets every entry count as code.
        yield Mapping(start, end, "r-xp", offset * page, "", 0, names[index].decode("utf-8", "surrogateescape"))
