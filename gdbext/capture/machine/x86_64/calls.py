"""Which function the x86-64 instruction before a return address calls."""

from __future__ import annotations

from typing import Optional

from gdbext.capture.machine.interface import Read

_LONGEST_CALL = 7


def calls_function(address: int, function: int, read: Read) -> bool:
    """Whether the instruction in front of a return address calls the function: itself, by a jump, or by a pointer."""
    code = read(address - _LONGEST_CALL, _LONGEST_CALL)
    if code is None:
        return False
    if code[2] == 0xE8:
        target = address + int.from_bytes(code[3:], "little", signed=True)
        if target == function or _jump(target, read) == function:
            return True
    if code[1:3] == b"\xff\x15":  # through a word of the global offset table
        return _pointer(address + int.from_bytes(code[3:], "little", signed=True), read) == function
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 and _length(code[1 - size :]) == size - 1
               for size in (2, 3, 4, 6, 7))  # fmt: skip


def _length(operand: bytes) -> int:
    """Bytes of the operand of a call by pointer."""
    mode, register = operand[0] >> 6, operand[0] & 7
    sib = register == 4 and mode != 3
    if mode == 3:
        return 1
    if mode == 1:
        return 2 + sib
    base = operand[1] & 7 if sib and len(operand) > 1 else register
    return (5 if mode == 2 or base == 5 else 1) + sib


def _jump(address: int, read: Read) -> Optional[int]:
    """Where a stub jumps to: an entry of the procedure linkage table, a thunk."""
    code = read(address, 16) or b""
    code = code[4:] if code.startswith(b"\xf3\x0f\x1e\xfa") else code  # endbr64
    here = address + 16 - len(code)
    if code.startswith(b"\xf2"):  # bnd
        code, here = code[1:], here + 1
    if code.startswith(b"\xff\x25"):
        return _pointer(here + 6 + int.from_bytes(code[2:6], "little", signed=True), read)
    if code.startswith(b"\xe9"):
        return here + 5 + int.from_bytes(code[1:5], "little", signed=True)
    return None


def _pointer(address: int, read: Read) -> Optional[int]:
    data = read(address, 8)
    return None if data is None else int.from_bytes(data, "little")
