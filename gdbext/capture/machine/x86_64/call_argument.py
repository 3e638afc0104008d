"""What a call passed in a register, by the machine code before it (x86-64, AT&T syntax as gdb prints it).

For functions without debug information, as libcudart's are: at the call a register that the caller keeps, or memory of
its own, was copied into the argument's register, and both can still be read in the caller's frame. Read backwards from
the call, and only as long as the code runs straight: what is not certain is not known.
"""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence, Set, Tuple

from gdbext.capture.machine.interface import Constant, Instruction, Kept, Operand
from gdbext.capture.machine.x86_64.registers import ARGUMENTS
from gdbext.model.missing import Missing

KEPT = frozenset(("rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"))
"""Registers that a function gives back as they were: the unwinder knows their values in outer frames."""
_STEPS = 24
_NOT_KEPT = Missing("what was passed is not kept anywhere")
_LEGACY = {"ax": "rax", "bx": "rbx", "cx": "rcx", "dx": "rdx", "si": "rsi", "di": "rdi", "bp": "rbp", "sp": "rsp"}
_CALL = re.compile(r"(?:notrack |bnd )*callq?\s+(?P<target>.*)")
_JUMP = re.compile(r"(?:notrack |bnd )*(?:j\w+|loop\w*|xbegin)\s+(?:0x(?P<target>[0-9a-f]+))?")
_LEAVES = re.compile(r"(?:notrack |bnd |repz? )*(?:call|ret|j|loop|syscall|int|ud2|hlt|x?begin)\w*\b")
_MOVE = re.compile(r"mov[ql]?\s+(?P<source>[^,(]*(?:\([^)]*\))?),(?P<target>%\w+)")
_ADDRESS = re.compile(r"leaq?\s+(?P<source>[^,(]*\([^),]*\)),(?P<target>%\w+)")
_SAVE = re.compile(r"movq?\s+(?P<source>%\w+),(?P<target>%\w+|-?(?:0x[0-9a-f]+)?\(%\w+\))")
_CLEAR = re.compile(r"xor[ql]?\s+(?P<one>%\w+),(?P<two>%\w+)")
_PLACE = re.compile(r"(?P<sign>-?)(?:0x(?P<offset>[0-9a-f]+))?\(%(?P<base>\w+)\)")
_NAME = re.compile(r"<(?P<name>[^>]*(?:<.*>)?[^>]*)>")
# Instructions that only read what stands last, or have nothing to write to.
_READS = re.compile(r"(?:cmp|test|push|nop|endbr|bt|comis|ucomis|prefetch)\w*\b")


def argument_operand(code: Sequence[Instruction], function: str, number: int) -> Operand:
    """Where the value of one of the arguments came from."""
    return argument(code, function, ARGUMENTS[number])


def argument(code: Sequence[Instruction], function: str, register: str) -> Operand:
    """Where the register's value came from at the call that is the last instruction of `code`."""
    if not code:
        return Missing("the code of the caller cannot be read")
    call = _CALL.match(code[-1].text.strip())
    if call is None:
        return Missing("it was not called by the code that it returns to")
    named = _NAME.search(call["target"])
    if named is None or re.split(r"[@+]", named["name"])[0].split("(")[0] != function:
        return Missing("the call goes through a pointer, or to another name")
    targets = _targets(code)
    wanted = register
    offsets: Tuple[int, ...] = ()
    plus = 0
    for position in range(len(code) - 2, max(-1, len(code) - 2 - _STEPS), -1):
        if code[position + 1].address in targets:
            return Missing("other code jumps to where the call is prepared")
        text = code[position].text.split("#")[0].strip()
        if _LEAVES.match(text):
            return Missing("the call is prepared before another call or jump")
        copy = _copy(text, wanted)
        if copy is not None and _unchanged(copy.register, code[position + 1 : -1]):
            return Kept(copy.register, (*copy.offsets, *offsets), plus)
        found = _source(text, wanted)
        if isinstance(found, Kept):
            if offsets:
                offsets = (found.plus + offsets[0], *offsets[1:])
            else:
                plus += found.plus
            wanted, offsets = found.register, (*found.offsets, *offsets)
            if wanted in KEPT:
                return Kept(wanted, offsets, plus) if _unchanged(wanted, code[position + 1 : -1]) else _NOT_KEPT
        elif found is not None:
            return _NOT_KEPT if (offsets or plus) and isinstance(found, Constant) else found
    near_entry = len(code) - 2 < _STEPS
    return Missing("the caller was given it itself, and keeps it nowhere") if near_entry else _NOT_KEPT


def _targets(code: Sequence[Instruction]) -> Set[int]:
    """Where jumps of the same function lead to."""
    found = (_JUMP.match(one.text.strip()) for one in code)
    return {int(one["target"], 16) for one in found if one and one["target"]}


def _copy(text: str, wanted: str) -> Optional[Kept]:
    """Where an instruction saves a register: in one that is kept, or on the stack."""
    move = _SAVE.fullmatch(text)
    if move is None or move["source"] != f"%{wanted}":
        return None
    target = move["target"]
    if target.startswith("%"):
        return Kept(target[1:]) if target[1:] in KEPT else None
    place = _PLACE.fullmatch(target)
    return _at(place) if place is not None and place["base"] in ("rbp", "rsp") else None


def _at(place: re.Match[str]) -> Kept:
    offset = int(place["offset"] or "0", 16)
    return Kept(whole_register(place["base"]), (-offset if place["sign"] else offset,))


def _source(text: str, wanted: str) -> Optional[Operand]:
    """What an instruction puts into a register, by any other register; None when it leaves it alone."""
    address = _ADDRESS.fullmatch(text)
    if address and address["target"] == f"%{wanted}":
        place = _PLACE.fullmatch(address["source"])
        if place is None or place["base"] == "rip":
            return Missing("what was passed was computed")
        at = _at(place)
        return Kept(at.register, (), at.offsets[0])
    move = _MOVE.fullmatch(text)
    if move and whole_register(move["target"]) == wanted:
        source = move["source"].strip()
        if source.startswith("$"):
            return _constant(source)
        place = _PLACE.fullmatch(source)
        if not _is_whole(move["target"]) or not (place or _is_whole(source)):
            return Missing("what was passed was computed")
        if place is None:
            return Kept(whole_register(source))
        return _at(place)
    clear = _CLEAR.fullmatch(text)
    if clear and clear["one"] == clear["two"] and whole_register(clear["one"]) == wanted:
        return Constant(0)
    return Missing("what was passed was computed") if _writes(text, wanted) else None


def _constant(text: str) -> Operand:
    try:
        return Constant(int(text[1:], 0) & ((1 << 64) - 1))
    except ValueError:
        return Missing("what was passed was computed")


def _unchanged(register: str, after: Sequence[Instruction]) -> bool:
    """Whether the register is the same until the call."""
    return not any(_writes(one.text.split("#")[0].strip(), register) for one in after)


def _writes(text: str, register: str) -> bool:
    """Whether an instruction may change a register: it stands last, or the instruction has one operand, or two."""
    if _READS.match(text):
        return register == "rsp" and text.startswith("push")
    mnemonic, _, operands = text.partition(" ")
    if mnemonic.startswith(
        ("xchg", "xadd", "cmpxchg", "mul", "imul", "div", "idiv", "cqto", "cltd", "rep", "pop", "leave")
    ):
        return True  # write more than their last operand
    last = operands.strip().rpartition(",")[2] if "(" not in operands.rpartition(",")[2] else ""
    return last.startswith("%") and whole_register(last) == register


def _is_whole(name: str) -> bool:
    return name.startswith("%r") and whole_register(name) == name[1:]


_WHOLE: Dict[str, str] = {}


def whole_register(name: str) -> str:
    """The 64-bit register that a register is a part of."""
    name = name.lstrip("%")
    if name not in _WHOLE:
        short = re.sub(r"^[re]", "", name) if not name[1:2].isdigit() else name
        numbered = re.fullmatch(r"(r\d+)[dwb]?", name)
        bytes_of = {"l": "x", "h": "x"}
        if len(short) == 2 and short[1] in bytes_of and short[0] in "abcd":
            short = short[0] + "x"
        elif short in ("sil", "dil", "bpl", "spl"):
            short = short[:2]
        _WHOLE[name] = numbered[1] if numbered else _LEGACY.get(short, name)
    return _WHOLE[name]
