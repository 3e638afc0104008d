"""Reads one NCCL communicator in the memory of a rank, and believes it only when its marks and numbers make sense."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Sequence

from gdbext.knowledge.row_kinds import Field, StructRow
from gdbext.knowledge.runtimes.nccl import COUNTED, MAGIC, NO_COUNTS, RESULTS
from gdbext.model.communicator import Communicator
from gdbext.model.missing import Maybe, Missing

Read = Callable[[int, int], Optional[bytes]]
"""(address, size) -> bytes, or None when they cannot be read."""

MOST_RANKS = 1 << 20
MOST_DEVICES = 1 << 10
MOST_LAUNCHED = 1 << 56  # a count beyond it is no count
_FORMATS = {"u8": "<B", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q", "pointer": "<Q"}


@dataclass(frozen=True)
class Layout:
    """Where the members of a communicator lie, and who says so."""

    row: StructRow
    name: str  # "DWARF of libnccl.so.2", "offsets of NCCL 2.27.3-2.27.7"

    @property
    def marked(self) -> bool:
        """Whether this release writes magic words at both ends (since 2.21)."""
        return "startMagic" in self.row.fields and "endMagic" in self.row.fields


def read_communicator(read: Read, address: int, origin: str, layouts: Sequence[Layout]) -> Communicator:
    """The communicator at `address`, by the first of the layouts that fits; else one with the problem said."""
    problem = "the offsets of its members are not known"
    for layout in layouts:
        found = _Reader(read, address, layout.row).communicator(origin, layout.name)
        if found.problem is None:
            return found
        problem = found.problem
    return Communicator(address=address, origin=origin, problem=problem)


class _Reader:
    """The members of one communicator, read once each."""

    def __init__(self, read: Read, address: int, row: StructRow) -> None:
        self._read, self._address, self._row = read, address, row

    def communicator(self, origin: str, layout: str) -> Communicator:
        problem = self._doubt()
        if problem is not None:
            return Communicator(address=self._address, origin=origin, layout=layout, problem=problem)
        return Communicator(
            address=self._address,
            origin=origin,
            layout=layout,
            hash=self._number("commHash"),
            rank=self._number("rank"),
            n_ranks=self._number("nRanks"),
            local_rank=self._number("localRank"),
            device=self._number("cudaDev"),
            bus_id=_bus(self._number("busId")),
            init_state=_result(self._number("initState")),
            async_error=_result(self._number("asyncResult")),
            aborted=self._pointed_flag("abortFlag"),
            destroyed=self._flag("destroyFlag"),
            revoked=self._flag("revokedFlag"),
            finalized=self._flag("finalizeCalled"),
            counts=self._counts(),
        )

    def _doubt(self) -> Optional[str]:
        """Why this is no communicator; None when it looks like one."""
        if self._address % 8:
            return "there is no communicator: the address is not aligned"
        marks = [name for name in ("startMagic", "endMagic") if name in self._row.fields]
        for name in marks:
            value = self._number(name)
            if isinstance(value, Missing):
                return f"{name} {value.reason}"
            if value != MAGIC:
                return f"there is no communicator of this layout: {name} is {value:#x}, not {MAGIC:#x}"
        rank, n_ranks, device = (self._number(name) for name in ("rank", "nRanks", "cudaDev"))
        for value in (rank, n_ranks, device, self._number("commHash")):
            if isinstance(value, Missing):
                return value.reason
        if not 0 < _int(n_ranks) <= MOST_RANKS or not 0 <= _int(rank) < _int(n_ranks):
            return f"its values are implausible: rank {rank} of {n_ranks}"
        if not 0 <= _int(device) < MOST_DEVICES:
            return f"its values are implausible: device {device}"
        return None

    def _counts(self) -> Maybe[Dict[str, int]]:
        field = self._row.fields.get("seqNumber")
        if field is None:
            return Missing(NO_COUNTS)
        data = self._read(self._address + field.offset, 8 * field.count)  # at once: the rank may launch meanwhile
        if data is None:
            return Missing(f"at {self._address + field.offset:#x} cannot be read")
        counts = dict(zip(COUNTED, struct.unpack(f"<{field.count}Q", data)))
        return Missing("the counts are implausible") if max(counts.values()) >= MOST_LAUNCHED else counts

    def _flag(self, name: str) -> Maybe[bool]:
        value = self._number(name)
        return value if isinstance(value, Missing) else bool(value)

    def _pointed_flag(self, name: str) -> Maybe[bool]:
        pointer = self._number(name)
        if isinstance(pointer, Missing):
            return pointer
        data = self._read(pointer, 4) if pointer else None
        return Missing(f"{name} points to unreadable memory") if data is None else any(data)

    def _number(self, name: str) -> Maybe[int]:
        field = self._row.fields.get(name)
        return Missing(f"this release has no {name}") if field is None else self._value(field)

    def _value(self, field: Field) -> Maybe[int]:
        form = _FORMATS[field.type]
        data = self._read(self._address + field.offset, struct.calcsize(form))
        if data is None:
            return Missing(f"at {self._address + field.offset:#x} cannot be read")
        return int(struct.unpack(form, data)[0])


def _int(value: Maybe[int]) -> int:
    return -1 if isinstance(value, Missing) else value


def _result(value: Maybe[int]) -> Maybe[str]:
    return value if isinstance(value, Missing) else RESULTS.get(value, f"ncclResult_t {value}")


def _bus(value: Maybe[int]) -> Maybe[str]:
    """NCCL packs domain, bus, device and function into hexadecimal digits: 0x3b000 is 0000:3b:00.0."""
    if isinstance(value, Missing):
        return value
    if not 0 < value < 1 << 48:
        return Missing("no bus id")
    return f"{value >> 20:04x}:{value >> 12 & 0xFF:02x}:{value >> 4 & 0xFF:02x}.{value & 0xF:x}"
