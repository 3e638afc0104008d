"""Which places of its frame a function's clean-up code refers to (x86-64, AT&T syntax as gdb prints it).

What an exception would make it destroy is what is in use: the compiler says so for every call. Only operands by
registers that are as they were at the call count.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, Set, Tuple

from gdbext.capture.machine.interface import Instruction, Read
from gdbext.capture.machine.x86_64.call_argument import KEPT, whole_register

Fetch = Callable[[int], Iterable[Instruction]]

_MOST = 2048  # instructions
_MOST_PATHS = 128
_OPERAND = re.compile(r"(?P<sign>-?)(?:0x(?P<offset>[0-9a-f]+))?\(%(?P<base>\w+)\)")
_MOVE = re.compile(r"movq?\s+%(?P<source>\w+),%rdi")
_LOAD = re.compile(r"movq?\s+[^,]*\(%\w+\),%rdi")
_LEA = re.compile(r"leaq?\s+[^,]*\(%\w+\),%(?P<target>\w+)")
_JUMP = re.compile(r"(?:bnd |notrack )*(?P<name>j\w+)\s+0x(?P<target>[0-9a-f]+)")
_ENDS = re.compile(r"(?:bnd |repz? )*(?:ret|ud2|hlt)|.*<(?:_Unwind_Resume|__cxa_begin_catch|__cxa_rethrow)")
_WRITES = re.compile(r"[a-z]\w*\s+(?:.*,)?%(?P<target>\w+)\Z")
_ONLY_READS = re.compile(r"(?:cmp|test|push|call|j)\w*\b")
_POINTERS = ("rdi", "rax")  # a destructor's object goes through these; ends of arrays do through others


def referenced_addresses(fetch: Fetch, start: int, registers: Mapping[str, int], read: Read) -> Set[int]:
    """Addresses that the code from `start` on reads, or hands to a destructor. `registers`: those that are kept."""
    found: Set[int] = set()
    paths: List[Tuple[int, FrozenSet[str]]] = [(start, frozenset())]
    seen: Set[Tuple[int, FrozenSet[str]]] = set()
    left = _MOST
    while paths and left > 0 and len(seen) < _MOST_PATHS:
        path = paths.pop()
        if path in seen:
            continue
        seen.add(path)
        address, changed = path
        for one in fetch(address):
            left -= 1
            text = one.text.split("#")[0].strip()
            places = _addresses(text, {name: at for name, at in registers.items() if name not in changed})
            found.update(places)
            if _LOAD.fullmatch(text):  # the object's address was kept on the stack
                found.update(int.from_bytes(read(place, 8) or b"", "little") for place in places)
            if _ENDS.match(one.text.strip()):
                break
            jump = _JUMP.match(text)
            if jump is not None:
                paths.append((int(jump["target"], 16), changed))
                if jump["name"].startswith("jmp"):
                    break
            elif text.startswith(("jmp", "notrack jmp", "bnd jmp")):
                break
            target = _WRITES.match(text)
            if target is not None and not _ONLY_READS.match(text):
                whole = whole_register(target["target"])
                changed = changed | {whole} if whole in KEPT else changed
    return found


def _addresses(text: str, registers: Dict[str, int]) -> Set[int]:
    found: Set[int] = set()
    move = _MOVE.fullmatch(text)
    if move is not None and move["source"] in registers:
        found.add(registers[move["source"]])
    lea = _LEA.fullmatch(text)
    if lea is not None and lea["target"] not in _POINTERS:
        return found
    for place in _OPERAND.finditer(text):
        base = registers.get(place["base"])
        if base is not None:
            offset = int(place["offset"] or "0", 16)
            found.add(base - offset if place["sign"] else base + offset)
    return found
