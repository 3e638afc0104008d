"""What the first instructions of an x86-64 function do to the stack, as far as frame pointers go.

A small part of the instruction set (Intel SDM, volume 2, appendix A): what compilers put before they have made room
for the locals. Anything else is not guessed at.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

_HARMLESS, _ENDS, _UNKNOWN = "harmless", "ends", "unknown"
_LONGEST = 16  # bytes of an instruction


class _Step(NamedTuple):
    """One instruction. `pushed`: bytes that it takes off the stack."""

    length: int
    kind: str = _HARMLESS
    pushed: int = 0
    sets_frame: bool = False


def room_below_frame(code: bytes) -> Optional[int]:
    """Bytes between sp and rbp once the locals have their room, by the code from the start of a function on.

    Read up to the instruction that makes that room, else to the first branch or call, else to the end of `code`. None
    where rbp does not become the frame pointer before that, or where an instruction is not known.
    """
    at, depth = 0, 0
    frame: Optional[int] = None
    while at < len(code):
        step = _step(code, at)
        if step.kind == _UNKNOWN:
            return None
        depth += step.pushed
        at += step.length
        if step.sets_frame:
            frame = depth
        if step.kind == _ENDS:
            break
    return None if frame is None else depth - frame


def _step(code: bytes, at: int) -> _Step:
    rest = code[at : at + _LONGEST]
    if 0x50 <= rest[0] <= 0x57:
        return _Step(1, pushed=8)
    if rest[0] == 0x41 and 0x50 <= _byte(rest, 1) <= 0x57:
        return _Step(2, pushed=8)
    if rest[:3] in (b"\x48\x89\xe5", b"\x48\x8b\xec"):  # mov %rsp,%rbp
        return _Step(3, sets_frame=True)
    if rest[:3] == b"\x48\x83\xec":  # sub $imm8,%rsp
        return _Step(4, _ENDS, _byte(rest, 3)) if _byte(rest, 3) < 0x80 else _Step(4, _UNKNOWN)
    if rest[:3] == b"\x48\x81\xec":  # sub $imm32,%rsp
        return _Step(7, _ENDS, int.from_bytes(rest[3:7], "little")) if len(rest) >= 7 else _Step(7, _UNKNOWN)
    return _other(rest)


def _other(rest: bytes) -> _Step:
    """An instruction that leaves the stack pointer alone."""
    at = 0
    while _byte(rest, at) in (0x64, 0x66, 0xF2, 0xF3):  # segment fs, operand size, repeat and scalar
        at += 1
    rex = _byte(rest, at) if 0x40 <= _byte(rest, at) <= 0x4F else 0
    at += bool(rex)
    opcode = _byte(rest, at)
    at += 1
    if opcode in _BRANCHES:
        return _Step(at, _ENDS)
    if opcode == 0x90:
        return _Step(at)
    if 0xB8 <= opcode <= 0xBF:  # mov $imm,register
        return _Step(at + (8 if rex & 8 else 4), _UNKNOWN if opcode == 0xBC and not rex & 1 else _HARMLESS)
    if opcode in (0x0F, 0xC5):
        at += opcode == 0xC5  # a VEX prefix of two bytes has its second before the opcode of the same map
        second = _byte(rest, at)
        at += 1
        if opcode == 0x0F and (second in _LONG_BRANCHES):
            return _Step(at, _ENDS)
        if second in _LONG_WITH_MODRM:
            return _Step(at + _modrm(rest, at) + (second in _LONG_WITH_BYTE))
        return _Step(at, _UNKNOWN)
    if opcode in _TO_MEMORY or opcode in _TO_REGISTER:
        modrm = _byte(rest, at)
        register, operand = modrm >> 3 & 7, modrm & 7
        if opcode in _TO_REGISTER:
            writes_sp = register == 4 and not rex & 4
        else:
            writes_sp = modrm >= 0xC0 and operand == 4 and not rex & 1
        more = {0x80: 1, 0x83: 1, 0xC6: 1, 0xC7: 4, 0x81: 4}.get(opcode, 0)
        return _Step(at + _modrm(rest, at) + more, _UNKNOWN if writes_sp else _HARMLESS)
    return _Step(at, _UNKNOWN)


_BRANCHES = {*range(0x70, 0x80), 0xC3, 0xE8, 0xE9, 0xEB, 0xFF}  # Jcc, RET, CALL, JMP, and calls by register
_LONG_BRANCHES = {*range(0x80, 0x90), 0x05}  # Jcc, SYSCALL
_TO_MEMORY = {0x01, 0x09, 0x21, 0x29, 0x31, 0x38, 0x39, 0x80, 0x81, 0x83, 0x84, 0x85, 0x88, 0x89, 0xC6, 0xC7}
"""ADD, OR, AND, SUB, XOR, CMP, TEST, MOV into a register or memory; of the last four the operand follows."""
_TO_REGISTER = {0x03, 0x0B, 0x23, 0x2B, 0x33, 0x3A, 0x3B, 0x63, 0x8A, 0x8B, 0x8D}
"""ADD, OR, AND, SUB, XOR, CMP, MOVSXD, MOV, LEA into a register."""
_LONG_WITH_MODRM = {
    *(0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x1E, 0x1F, 0x28, 0x29, 0x57, 0x6C, 0x6E, 0x6F, 0x70, 0x7E, 0x7F),
    *range(0x90, 0xA0), 0xAF, 0xB6, 0xB7, 0xBE, 0xBF, 0xC6, 0xD6, 0xEF,
}  # fmt: skip
"""Moves of vector registers, ENDBR, NOP, XORPS, SETcc, IMUL, MOVZX, MOVSX, PXOR: none of them into sp."""
_LONG_WITH_BYTE = (0x70, 0xC6)


def _modrm(rest: bytes, at: int) -> int:
    """Bytes of the operand that begins with a ModR/M byte."""
    modrm = _byte(rest, at)
    mode, operand = modrm >> 6, modrm & 7
    if mode == 3:
        return 1
    length = 1 + (operand == 4)
    base = _byte(rest, at + 1) & 7 if operand == 4 else operand
    if mode == 1:
        return length + 1
    return length + 4 if mode == 2 or base == 5 else length


def _byte(data: bytes, at: int) -> int:
    """A byte, 0 behind the end: what comes of that is found to be too long by the caller."""
    return data[at] if at < len(data) else 0
