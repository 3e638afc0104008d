"""Copied pieces of memory that overlap, or were read twice."""

from __future__ import annotations

import bisect
import struct
from typing import List, Optional, Sequence

from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.memory.process_memory import Block

_STEP = 512  # bytes compared at once


class Pieces:
    """Blocks that do not overlap, to cut ranges out of."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        """`blocks` in address order."""
        self._blocks, self._starts = blocks, [block.address for block in blocks]

    def cut(self, address: int, size: int) -> Block:
        """These bytes, as far as they are there."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return Block(address, b"")
        block = self._blocks[index]
        return Block(address, block.data[address - block.address : address - block.address + size])


def same_frames(block: Block, again: Optional[bytes], maps: MemoryMap) -> bool:
    """Whether nothing changed in a stack, read again, that frames are made of: no address of code, none of the stack.

    Others may write to a flag that lies there; at its upper end a stack has the thread's own variables (errno) and
    where the kernel notes the processor (rseq(2))."""
    if again is None or len(again) != len(block.data):
        return False
    return block.data == again or not any(
        block.address <= word < block.end or _is_code(word, maps) for word in changed_words(block.data, again)
    )


def _is_code(word: int, maps: MemoryMap) -> bool:
    home = maps.find(word)
    return home is not None and home.executable


def changed_words(one: bytes, two: bytes) -> List[int]:
    """The aligned 64-bit words that differ, as they were and as they are."""
    size, words = min(len(one), len(two)) & ~7, []
    for start in range(0, size, _STEP):
        old, new = one[start : min(start + _STEP, size)], two[start : min(start + _STEP, size)]
        if old != new:
            pairs = zip(struct.iter_unpack("<Q", old), struct.iter_unpack("<Q", new))
            words += [word for before, after in pairs if before != after for word in (*before, *after)]
    return words
