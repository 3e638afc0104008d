"""Blocks of memory with the shape of a communicator, and memory that they lie in."""

from __future__ import annotations

import struct

from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.nccl.communicator_memory import Layout
from gdbext.capture.nccl.library import Layouts, NcclLibrary, rows_for
from gdbext.knowledge.runtimes.nccl import MAGIC

HASH = 0x7C1E55AA12345678
FORMATS = {"u8": "<B", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q", "pointer": "<Q"}
HEAP = 0x7F00_0000_0000


def layout_of(release):
    row = rows_for(release)[-1]
    return Layout(row, f"offsets of NCCL {release}")


def values(**changes):
    """What a healthy communicator of rank 1 of 4 holds."""
    numbers = {
        "startMagic": MAGIC,
        "endMagic": MAGIC,
        "commHash": HASH,
        "rank": 1,
        "nRanks": 4,
        "cudaDev": 1,
        "busId": 0x3B000,
        "localRank": 1,
        "asyncResult": 0,
        "abortFlag": HEAP,  # where a zero lies
        "destroyFlag": 0,
        "revokedFlag": 0,
        "initState": 0,
        "finalizeCalled": 0,
        "seqNumber": (0, 0, 3, 0, 4),
    }
    numbers.update(changes)
    return numbers


def block(row, **changes):
    """The bytes of one communicator."""
    data = bytearray(row.size)
    for name, value in values(**changes).items():
        field = row.fields.get(name)
        if field is not None:
            numbers = value if isinstance(value, tuple) else (value,)
            for position, number in enumerate(numbers):
                struct.pack_into(FORMATS[field.type], data, field.offset + 8 * position, number)
    return bytes(data)


class Memory:
    """Bytes at addresses, and every read that was asked for."""

    def __init__(self, **pieces):
        self.pieces = {int(address.strip("_"), 16): data for address, data in pieces.items()}
        self.asked = []

    def put(self, address, data):
        self.pieces[address] = data
        return self

    def read(self, address, size):
        self.asked.append((address, size))
        for start, data in self.pieces.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    def read_many(self, ranges):
        return [self.read(address, size) for address, size in ranges]


def mapped(start, size, permissions="rw-p", path="", inode=0):
    return Mapping(start, start + size, permissions, 0, "00:00", inode, path)


def layouts(*release):
    return Layouts(tuple(map(layout_of, release)), (NcclLibrary("/lib/libnccl.so.2", "/lib/libnccl.so.2", release[0]),))


def memory_map(*mappings):
    return MemoryMap(mappings)
