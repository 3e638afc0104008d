"""Which objects on the stack are in use: those that the clean-up code of the frame's present call would destroy.

A frame keeps the bytes of every temporary that it has destroyed. What an exception out of the call would destroy is
written in the exception tables of release builds too, and tells the two apart.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Set, Tuple

import gdb

from gdbext.capture.elf.call_sites import landing_pad
from gdbext.capture.machine import gdb_registers
from gdbext.capture.machine.disassembly import disassembly_here
from gdbext.capture.machine.interface import Instruction
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.base.modules import Modules
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.stacks.unwind_tables import unwind_entry

_MOST_FRAMES = 64  # of callers, in whose frames an object may lie
_MOST_TABLE = 1 << 16  # bytes of a function's exception data
_PREVIOUS = re.compile(r"Previous frame's sp is 0x([0-9a-f]+)")
_INSTRUCTIONS_AT_ONCE = 64  # instructions at a time


class StackInUse:
    """Of the frames of one thread, from one frame outwards."""

    def __init__(self, frame: gdb.Frame, bytes_of: TargetMemory, modules: Modules) -> None:
        self._bytes_of, self._modules = bytes_of, modules
        self._frames = list(_with_bounds(frame))
        self._referred: Dict[int, Optional[Set[int]]] = {}
        self._end = bytes_of.classify(self._frames[0][1]).end if self._frames else 0

    def holds(self, address: int) -> bool:
        """Whether an address lies on this stack."""
        return bool(self._frames) and self._frames[0][1] - 4096 <= address < (self._end or self._frames[-1][2])

    def uses(self, address: int, size: int) -> bool:
        """Whether the frame that an object lies in would destroy it. Code that cannot be read uses nothing."""
        for number, (frame, start, end) in enumerate(self._frames):
            if start <= address < end:
                referred = self._of(number, frame)
                return any(address <= one < address + size for one in referred or ())
        return False

    def has_clean_up(self, address: int) -> bool:
        """Whether there is clean-up code for the present call of the frame that an address lies in."""
        for number, (frame, start, end) in enumerate(self._frames):
            if start <= address < end:
                return self._of(number, frame) is not None
        return False

    def _of(self, number: int, frame: gdb.Frame) -> Optional[Set[int]]:
        if number not in self._referred:
            try:
                self._referred[number] = self._clean_up(frame, number == 0 and frame == gdb.newest_frame())
            except (gdb.error, RuntimeError, ValueError):
                self._referred[number] = None
        return self._referred[number]

    def _clean_up(self, frame: gdb.Frame, is_newest: bool) -> Optional[Set[int]]:
        names, reader = gdb_registers(), disassembly_here()
        pc = int(frame.pc()) - (0 if is_newest else 1)
        entry = unwind_entry(self._bytes_of, self._modules, pc)
        if names is None or reader is None or entry is None or entry.call_sites is None:
            return None
        pad = landing_pad(self._table(entry.call_sites), entry.call_sites, entry.start, pc)
        if pad is None:
            return None
        kept = {name: register(frame, name) for name in (*names.kept, names.stack)}
        registers = {name: value for name, value in kept.items() if value is not None}
        architecture = frame.architecture()

        def fetch(address: int) -> Iterator[Instruction]:
            while True:
                rows: List[Dict[str, object]] = architecture.disassemble(address, count=_INSTRUCTIONS_AT_ONCE)
                for row in rows:
                    yield Instruction(int(str(row["addr"])), str(row["asm"]))
                last = rows[-1]
                address = int(str(last["addr"])) + int(str(last["length"]))

        with compat.settings({**reader.settings, "print asm-demangle": "off"}):
            return reader.referred(fetch, pad, registers, self._bytes_of.read)

    def _table(self, address: int) -> bytes:
        size = _MOST_TABLE
        while size >= 16:
            data = self._bytes_of.read(address, size)
            if data is not None:
                return data
            size //= 2
        raise ValueError("exception data that cannot be read")


def _with_bounds(frame: gdb.Frame) -> Iterator[Tuple[gdb.Frame, int, int]]:
    """Frames with the stack that is theirs alone."""
    here: Optional[gdb.Frame] = frame
    for _ in range(_MOST_FRAMES):
        if here is None:
            return
        bounds = bounds_of(here)
        if bounds is not None:
            yield here, *bounds
        here = here.older()


def bounds_of(frame: gdb.Frame) -> Optional[Tuple[int, int]]:
    """From the stack pointer of a frame to that of its caller; None where they are not known."""
    older = frame.older()
    start = register(frame, "sp")
    end = register(older, "sp") if older is not None else _end_of_outermost(frame)
    return (start, end) if start is not None and end is not None and start < end else None


def _end_of_outermost(frame: gdb.Frame) -> Optional[int]:
    """gdb ends at `main`, and knows where its caller's stack begins."""
    level = getattr(frame, "level", None)  # gdb 11
    try:
        found = _PREVIOUS.search(gdb.execute(f"info frame level {level()}", to_string=True)) if level else None
    except gdb.error:
        return None
    return int(found.group(1), 16) if found else None
