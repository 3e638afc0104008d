"""Constants that a caller hands over: what its code loads into the registers of arguments right before a call (x86-64).

A check that is always called gets its file and line so; by the time it throws they are nowhere else.
"""

from __future__ import annotations

import re
import struct
from typing import Dict, Iterator

_DISTANCE = rb"(....)"
# By number of the argument: rdi, rsi, rdx, rcx. First lea distance(%rip),%register; GCC at -O0 goes through %rax.
_ADDRESSES = {
    0: rb"\x48\x8d(?:\x3d%s|\x05%s\x48\x89\xc7)",
    1: rb"\x48\x8d(?:\x35%s|\x05%s\x48\x89\xc6)",
    2: rb"\x48\x8d(?:\x15%s|\x05%s\x48\x89\xc2)",
    3: rb"\x48\x8d(?:\x0d%s|\x05%s\x48\x89\xc1)",
}
_NUMBERS = {0: rb"\xbf", 1: rb"\xbe", 2: rb"\xba", 3: rb"\xb9"}  # mov $number,%register
_PATTERNS = [
    (number, True, re.compile(pattern % (_DISTANCE, _DISTANCE), re.DOTALL)) for number, pattern in _ADDRESSES.items()
] + [(number, False, re.compile(opcode + _DISTANCE, re.DOTALL)) for number, opcode in _NUMBERS.items()]
_ANY = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]" + _DISTANCE, re.DOTALL)


def constants_before(code: bytes, end: int) -> Dict[int, int]:
    """By number of the argument, the last constant that `code` loads for it; the code ends at `end`, behind the call.

    Code is not decoded from an instruction's beginning on: what is found must look like what is expected.
    """
    found: Dict[int, int] = {}
    last: Dict[int, int] = {}
    for argument, relative, pattern in _PATTERNS:
        for match in pattern.finditer(code):
            if match.start() < last.get(argument, 0):
                continue
            number = next(group for group in match.groups() if group is not None)
            at = end - len(code) + match.start() + 7  # behind the lea
            value = struct.unpack("<i" if relative else "<I", number)[0] + (at if relative else 0)
            last[argument], found[argument] = match.start(), value & ((1 << 64) - 1)
    return found


def addresses_before(code: bytes, end: int) -> Iterator[int]:
    """Every address that an instruction of the code computes, in order: where a caller keeps it in a register."""
    for match in _ANY.finditer(code):
        yield end - len(code) + match.end() + struct.unpack("<i", match[1])[0]
