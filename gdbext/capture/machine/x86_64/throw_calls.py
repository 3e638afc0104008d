"""The calls of __cxa_throw in x86-64 code, found in its bytes."""

from __future__ import annotations

import re
import struct
from typing import Iterator, List, Sequence, Set

from gdbext.capture.machine.interface import CodePiece, ThrowSite

_JUMP, _CALL = b"\xff\x25", b"\xff\x15"  # through the table of addresses, relative to the next instruction
_MARKS = (0, -4, -1, -5)  # of a stub's entry before its jump: nothing, endbr64, bnd, both
_BEFORE = 96
_PIECE = 1 << 16  # code in which the calls of one function have nearly the same upper bytes
# Loads of the second argument, the typeinfo: `lea x(%rip),%rsi`, `mov x(%rip),%rsi`; through %rax at -O0.
_LOADS = re.compile(rb"\x48([\x8d\x8b])(?:\x35(....)|\x05(....)\x48\x89\xc6)", re.DOTALL)


def throw_sites(code: Sequence[CodePiece], slots: Set[int], own: Set[int]) -> List[ThrowSite]:
    """All calls, in order of their addresses. `slots`: words that hold the address of __cxa_throw; `own`: where it lies
    in the file itself."""
    entries = set(own)
    sites: List[ThrowSite] = []
    for piece in code:
        for at in _through(piece, _JUMP, slots):
            entries.update(piece.address + at + mark for mark in _MARKS)
        sites += [_site(piece, at) for at in _through(piece, _CALL, slots)]
    for piece in code:
        sites += [_site(piece, at) for at in _direct(piece, entries)]
    return sorted(sites)


def _through(piece: CodePiece, opcode: bytes, slots: Set[int]) -> Iterator[int]:
    """Offsets of the jumps or calls through one of the slots."""
    if not slots:
        return
    data = piece.data
    for found in re.finditer(re.escape(opcode), data):
        at = found.start()
        if at + 6 <= len(data):
            (distance,) = struct.unpack_from("<i", data, at + 2)
            if piece.address + at + 6 + distance in slots:
                yield at


def _direct(piece: CodePiece, entries: Set[int]) -> Iterator[int]:
    """Offsets of the relative calls of one of the entries. The upper bytes of the distance are all but known, so that
    the search stays in the regular expression: code has millions of bytes that look like a call."""
    data, unpack, base = piece.data, struct.Struct("<i").unpack_from, piece.address + 5
    for start in range(0, len(data) if entries else 0, _PIECE):
        upper: Set[int] = set()
        for entry in entries:
            most = entry - base - start
            upper.update(range(most - _PIECE >> 16, (most >> 16) + 1))
        third, fourth = (b"".join({b"\\x%02x" % (one >> shift & 0xFF) for one in upper}) for shift in (0, 8))
        call = re.compile(rb"\xe8(?=..[" + third + rb"][" + fourth + rb"])", re.DOTALL)
        for found in call.finditer(data, start, min(len(data), start + _PIECE + 4)):
            at = found.start()
            if at < start + _PIECE and base + at + unpack(data, at + 1)[0] in entries:
                yield at


def _site(piece: CodePiece, at: int) -> ThrowSite:
    start = max(0, at - _BEFORE)
    loads: Sequence[re.Match[bytes]] = list(_LOADS.finditer(piece.data, start, at))
    if not loads:
        return ThrowSite(piece.address + at)
    load = loads[-1]
    (distance,) = struct.unpack("<i", load[2] or load[3])
    after = load.start() + 7
    return ThrowSite(piece.address + at, piece.address + after + distance, load[1] == b"\x8b")
