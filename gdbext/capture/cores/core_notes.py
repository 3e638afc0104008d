"""The notes of a core file: threads with their registers, the process, the signal, and which file lay where.

Layouts: elf/core_layout.py; asm-generic/siginfo.h, 64-bit Linux.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from dataclasses import dataclass, replace
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from gdbext.capture.elf.core_notes_layout import (
    FILES_HEAD,
    FILES_ROW,
    NT_AUXV,
    NT_FILE,
    NT_PRPSINFO,
    NT_PRSTATUS,
    NT_SIGINFO,
    PRPSINFO,
    PRSTATUS_HEAD,
)
from gdbext.capture.elf.layout import NOTE, padded
from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.capture.memory.maps import Mapping

MOST_THREADS = 4096
"""Threads whose registers are kept: the first ones of the file, and the main thread. All are counted."""
_MOST_NOTES = 1 << 21  # of which the kernel writes four or five for a thread
_LONGEST = {NT_PRPSINFO: 4096, NT_AUXV: 4096, NT_SIGINFO: 4096, NT_FILE: 64 << 20}
"""Bytes that are read of a note. The list of files has 4 MiB at most, where the kernel wrote it (core(5))."""
_MOST_FILES = 1 << 18
_LARGEST_PAGE = 1 << 16
_WINDOW = 4096  # bytes that are read at once: the notes with vector registers in between are passed over
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
    page: int = mmap.PAGESIZE  # bytes of a page, by the list of files
    count: int = 0  # of all threads, also of those that are not among `threads`
    cut: bool = False  # there are more notes than are looked at


Read = Callable[[int, int], bytes]
"""(position in the notes, size) -> bytes."""


def read_notes(read: Read, length: int) -> Notes:
    """Those of all that is no thread, and of the threads that are kept; `length` bytes of notes there are. Never
    raises: what cannot be understood is left out."""
    threads: List[NotedThread] = []
    others, places = array("i"), array("Q")  # ids of those beyond the limit, and where their notes stand
    found: Dict[int, bytes] = {}
    walk = _Walk(read, length)
    for kind, at, size in walk:
        if kind in _LONGEST:
            if kind not in found:
                found[kind] = walk.at(at, min(size, _LONGEST[kind]))
        elif kind != NT_PRSTATUS:
            continue
        elif len(threads) < MOST_THREADS:
            thread = _thread(walk.at(at, min(size, _WINDOW)))
            threads += [thread] if thread is not None else []
        else:
            head = walk.at(at, PRSTATUS_HEAD.size)
            if len(head) == PRSTATUS_HEAD.size:
                others.append(PRSTATUS_HEAD.unpack(head)[6])
                places.append(at)
    notes = _with_process(
        Notes(threads=tuple(threads), count=len(threads) + len(others), cut=walk.cut), found.get(NT_PRPSINFO, b"")
    )
    if notes.pid is not None and notes.pid in others:
        main = _thread(walk.at(places[others.index(notes.pid)], _WINDOW))
        notes = replace(notes, threads=(*threads, main)) if main is not None else notes
    return replace(
        notes,
        signal=_signal(found.get(NT_SIGINFO, b"")),
        auxv=found.get(NT_AUXV, b""),
        files=tuple(_files(found.get(NT_FILE, b""))),
        page=_page(found.get(NT_FILE, b"")),
    )


class _Walk:
    """(type, position, size) of the notes of core files; those of others (LINUX: vector registers) are passed over."""

    def __init__(self, read: Read, length: int) -> None:
        self._read, self._length = read, length
        self._from, self._window = 0, b""
        self.cut = False

    def at(self, at: int, size: int) -> bytes:
        """Of the notes, from `at` on."""
        if not self._from <= at <= at + size <= self._from + len(self._window):
            self._from, self._window = at, self._read(at, max(size, _WINDOW))
        return self._window[at - self._from : at - self._from + size]

    def __iter__(self) -> Iterator[Tuple[int, int, int]]:
        at = 0
        for _ in range(_MOST_NOTES):
            head = self.at(at, 20)
            if len(head) < NOTE.size:
                return
            name_size, size, kind = NOTE.unpack_from(head)
            at += NOTE.size + padded(name_size)
            if head[NOTE.size : NOTE.size + 5] == b"CORE\0":
                if at + size > self._length and kind != NT_FILE:
                    return
                yield kind, at, size
            at += padded(size)
        self.cut = True


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
        return replace(notes, pid=notes.threads[0].tid if notes.threads else None)
    _, state, _, _, _, _, _, pid, parent, group, _, command, arguments = PRPSINFO.unpack_from(note)
    return replace(
        notes,
        pid=pid,
        parent=parent,
        group=group,
        state=chr(state) if 32 < state < 127 else "",
        command=_text(command),
        arguments=_text(arguments),
    )


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def _files(note: bytes) -> Iterator[Mapping]:
    """NT_FILE: count, page size, (start, end, offset in pages) of each mapping, then the names."""
    if len(note) < FILES_HEAD.size:
        return
    count, page = FILES_HEAD.unpack_from(note)
    count = min(count, len(note) // FILES_ROW.size, _MOST_FILES)
    names: List[bytes] = note[FILES_HEAD.size + FILES_ROW.size * count :].split(b"\0", count)
    for index in range(min(count, len(names))):
        start, end, offset = FILES_ROW.unpack_from(note, FILES_HEAD.size + FILES_ROW.size * index)
        # The note does not say the protection; "r-xp" lets every entry count as code.
        yield Mapping(start, end, "r-xp", offset * page, "", 0, names[index].decode("utf-8", "surrogateescape"))


def _page(note: bytes) -> int:
    page = FILES_HEAD.unpack_from(note)[1] if len(note) >= FILES_HEAD.size else 0
    return page if SMALLEST_PAGE <= page <= _LARGEST_PAGE and not page & page - 1 else mmap.PAGESIZE
