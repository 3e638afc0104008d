"""Copied pieces of memory that overlap, or were read twice."""

from __future__ import annotations

import struct
from typing import Iterable, List, Sequence, Tuple

from gdbext.capture.memory import Block


class Pieces:
    """Blocks that do not overlap, to cut ranges out of."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks

    def cut(self, address: int, size: int) -> Block:
        """These bytes, as far as they are there."""
        for block in self._blocks:
            if block.address <= address < block.end:
                return Block(address, block.data[address - block.address :][:size])
        return Block(address, b"")


def layered(blocks: Iterable[Block]) -> List[Block]:
    """The same memory as blocks that neither touch nor overlap, in address order. Where blocks disagree the one counts
    that begins later: stacks grow down, and bytes above the sp of another thread are that thread's."""
    merged: List[Tuple[int, bytearray]] = []
    for block in sorted(block for block in blocks if block.data):
        if merged and block.address <= merged[-1][0] + len(merged[-1][1]):
            address, data = merged[-1]
            data[block.address - address : block.end - address] = block.data
        else:
            merged.append((block.address, bytearray(block.data)))
    return [Block(address, bytes(data)) for address, data in merged]


def changed_words(one: bytes, two: bytes) -> List[int]:
    """The aligned 64-bit words that differ, as they were and as they are."""
    size = min(len(one), len(two)) & ~7
    pairs = zip(struct.iter_unpack("<Q", one[:size]), struct.iter_unpack("<Q", two[:size]))
    return [word for old, new in pairs if old != new for word in (*old, *new)]
