"""Where a member function stores its first argument in its object, by its machine code (x86-64, AT&T syntax of gdb).

`void Logger::setBaseLevel(unsigned level)` of a release build says so where the level lies in a logger. The code is
followed from its first instruction along every path: which registers and stack slots hold `this` and the argument. What
is not certain is not known: an argument that is stored at two offsets, or overwritten there, gives no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.capture.machine.interface import Instruction
from gdbext.capture.machine.x86_64.call_argument import KEPT, whole_register
from gdbext.model.missing import Maybe, Missing

_OWN_OBJECT, _ARGUMENT, _STACK = "this", "argument", "stack"
_Value = Optional[Tuple[str, int]]  # what a register holds, and how many bytes behind that; None: something else
_MOST_STEPS = 2000
_WIDEST = 64  # bytes that one instruction stores
_PREFIX = re.compile(r"(?:notrack|bnd|lock|repz?|repnz|data16|cs|ds) ")
_OPERAND = re.compile(r"(?:[^,(]|\([^)]*\))+")
_PLACE = re.compile(r"(-?)(?:0x([0-9a-f]+))?\(%(\w+)\)\Z")
_TARGET = re.compile(r"0x([0-9a-f]+)\b")
_READS = re.compile(r"(?:cmp|test|nop|endbr|u?comis|bt|prefetch|ptest)\w*\Z")
_MOVES = ("mov", "movq", "movl", "movabs")
_WIDTH = {"q": 8, "l": 4, "w": 2, "b": 1}
_NEVER_RETURNS = re.compile(
    r"<(?:__stack_chk_fail|_Unwind_Resume|__cxa_(?:re)?throw|abort|_ZSt\d+(?:__throw|terminate))"
)


@dataclass
class _State:
    registers: Dict[str, _Value]
    slots: Dict[int, Tuple[int, _Value]] = field(default_factory=dict)  # by distance from the entry's sp: bytes, value

    def copy(self) -> _State:
        return _State(dict(self.registers), dict(self.slots))

    def called(self) -> None:
        """Forget what a call may change."""
        self.registers = {name: value for name, value in self.registers.items() if name in KEPT}

    def store(self, at: int, width: int, value: _Value) -> None:
        for slot, (bytes_of, _) in list(self.slots.items()):
            if slot < at + width and at < slot + bytes_of:
                del self.slots[slot]
        self.slots[at] = width, value


def stored_at(code: Sequence[Instruction]) -> Maybe[int]:
    """The offset in the object, or what the function does instead; `code` begins with its first instruction."""
    walk = _Walk(code)
    walk.run()
    if walk.problem or walk.is_long:
        return Missing(walk.problem or "is too long")
    if not walk.offsets:
        return Missing("is not seen to store its argument")
    return walk.offsets.pop() if len(walk.offsets) == 1 else Missing("stores its argument at several offsets")


class _Walk:
    def __init__(self, code: Sequence[Instruction]) -> None:
        self._code = list(code)
        self._at = {one.address: number for number, one in enumerate(self._code)}
        self._seen: Set[int] = set()
        self.offsets: Set[int] = set()
        self.problem = ""

    @property
    def is_long(self) -> bool:
        return len(self._seen) >= _MOST_STEPS

    def run(self) -> None:
        entry = _State({"rdi": (_OWN_OBJECT, 0), "rsi": (_ARGUMENT, 0), "rsp": (_STACK, 0)})
        paths: List[Tuple[int, _State]] = [(0, entry)]
        while paths and not self.is_long and not self.problem:
            number, state = paths.pop()
            while number < len(self._code) and number not in self._seen:
                self._seen.add(number)
                mnemonic, operands = _parts(self._code[number].text)
                if mnemonic.startswith("j"):
                    found = _TARGET.match(operands[0]) if operands else None
                    target = self._at.get(int(found[1], 16)) if found else None
                    if target is not None:
                        paths.append((target, state.copy()))
                    if mnemonic.startswith("jmp"):
                        break
                elif mnemonic.startswith("call"):
                    if _NEVER_RETURNS.search(self._code[number].text):
                        break
                    state.called()
                elif mnemonic.startswith(("ret", "ud2", "hlt", "int")) or (mnemonic == "endbr64" and number):
                    break
                else:
                    self._step(state, mnemonic, operands)
                number += 1

    def _step(self, state: _State, mnemonic: str, operands: Sequence[str]) -> None:
        for name in _changed_unnamed(mnemonic, operands):
            state.registers[name] = None
        if not operands or _READS.match(mnemonic):
            return
        last = operands[-1]
        if mnemonic.startswith(("push", "pop")):
            self._stack(state, mnemonic, last)
        elif mnemonic in _MOVES and len(operands) == 2:
            self._move(state, mnemonic, operands[0], last)
        elif mnemonic.startswith("lea") and last.startswith("%"):
            state.registers[whole_register(last)] = _address(state, operands[0])
        elif mnemonic.startswith(("add", "sub")) and operands[0].startswith("$") and last.startswith("%r"):
            value = state.registers.get(whole_register(last))
            step = _signed(operands[0][1:]) * (1 if mnemonic.startswith("add") else -1)
            state.registers[whole_register(last)] = (value[0], value[1] + step) if value else None
        elif last.startswith("%") and ":" not in last:
            for operand in operands if mnemonic.startswith(("xchg", "xadd", "cmpxchg")) else (last,):
                state.registers[whole_register(operand)] = None
        else:
            self._write(state, _address(state, last), None, _WIDEST)

    def _stack(self, state: _State, mnemonic: str, operand: str) -> None:
        top = state.registers.get("rsp")
        register = whole_register(operand) if operand.startswith("%") else ""
        if mnemonic.startswith("push"):
            state.registers["rsp"] = (_STACK, top[1] - 8) if top else None
            if top:
                state.store(top[1] - 8, 8, state.registers.get(register))
            return
        width, value = state.slots.get(top[1], (0, None)) if top else (0, None)
        state.registers["rsp"] = (_STACK, top[1] + 8) if top else None
        if register:
            state.registers[register] = value if width == 8 else None

    def _move(self, state: _State, mnemonic: str, source: str, target: str) -> None:
        width = _WIDTH.get(mnemonic[3:]) or _register_width(target) or _register_width(source) or _WIDEST
        value: _Value = None
        if source.startswith("%") and ":" not in source:
            value = state.registers.get(whole_register(source))
        elif not source.startswith("$"):
            place = _address(state, source)
            bytes_of, kept = state.slots.get(place[1], (0, None)) if place and place[0] == _STACK else (0, None)
            value = kept if bytes_of == width or (bytes_of > width and kept == (_ARGUMENT, 0)) else None
        if value is not None and width < (4 if value[0] == _ARGUMENT else 8):
            value = None
        if target.startswith("%") and ":" not in target:
            state.registers[whole_register(target)] = value
        else:
            self._write(state, _address(state, target), value, width)

    def _write(self, state: _State, place: _Value, value: _Value, width: int) -> None:
        if place is None:
            return
        if place[0] == _STACK:
            state.store(place[1], width, value)
        elif place[0] == _OWN_OBJECT and value == (_ARGUMENT, 0) and width == 4:
            self.offsets.add(place[1])
        elif place[0] == _OWN_OBJECT and any(place[1] < one + 4 and one < place[1] + width for one in self.offsets):
            self.problem = "changes what it stored"


def _parts(text: str) -> Tuple[str, List[str]]:
    text = _PREFIX.sub("", text.split("#")[0].strip())
    mnemonic, _, rest = text.partition(" ")
    return mnemonic, [operand.strip() for operand in _OPERAND.findall(rest)]


def _changed_unnamed(mnemonic: str, operands: Sequence[str]) -> Sequence[str]:
    """Registers that an instruction may change without naming them as its last operand."""
    if mnemonic == "leave":
        return ("rsp", "rbp")
    if not operands and not mnemonic.startswith(("nop", "endbr")):
        return ("rax", "rbx", "rcx", "rdx")
    if len(operands) == 1 and mnemonic.startswith(("mul", "imul", "div", "idiv")):
        return ("rax", "rdx")
    return ("rax", "rcx", "rsi", "rdi") if any("%es:" in operand for operand in operands) else ()


def _signed(number: str) -> int:
    value = int(number, 0)
    return value - (1 << 64) if value >= 1 << 63 else value


def _register_width(operand: str) -> int:
    """Bytes of a register; 0 for anything else."""
    if not operand.startswith("%"):
        return 0
    if operand[1:].startswith(("xmm", "ymm", "zmm", "st", "mm", "k")):
        return _WIDEST
    if operand.startswith("%r") and operand[2:3].isdigit():
        return {"d": 4, "w": 2, "b": 1}.get(operand[-1], 8)
    return 8 if operand.startswith("%r") else 4 if operand.startswith("%e") else 2


def _address(state: _State, operand: str) -> _Value:
    """What an operand in memory lies in, and where; None when that is not known."""
    found = _PLACE.match(operand)
    base = state.registers.get(found[3]) if found else None
    if found is None or base is None:
        return None
    offset = int(found[2] or "0", 16)
    return base[0], base[1] + (-offset if found[1] else offset)
