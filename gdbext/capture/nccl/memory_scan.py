"""Looks for communicators in the private memory of a running process, by the magic words that NCCL puts at their ends.

Never during a stop, and without a trace in the target: of each mapping only the pages that are in memory are read
(/proc/PID/pagemap, proc(5)). Reading others would fetch them from swap, or make page tables for what was only reserved.
Devices, files and shared memory are left alone.
"""

from __future__ import annotations

import itertools
import mmap
import re
import time
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.memory.maps import Mapping
from gdbext.capture.memory.process_memory import Range
from gdbext.capture.nccl.communicator_memory import Layout, Read, read_communicator
from gdbext.knowledge.runtimes.nccl import MAGIC
from gdbext.model.communicator import Communicator

ORIGIN = "scan of the memory"
BLOCK = 4 << 20  # bytes read at once
_PAGE = mmap.PAGESIZE
_ENTRY = 8  # bytes of pagemap for a page
_PRESENT = re.compile(rb"[\x80-\xff]+")  # bit 63 of an entry, the highest bit of its last byte
_MARKS = re.compile(
    re.escape(MAGIC.to_bytes(8, "little")) + rb"(?:" + re.escape(MAGIC.to_bytes(8, "little")[:2]) + rb")*"
)
_MOST_CANDIDATES = 4096  # a tensor may be full of these very numbers


@dataclass(frozen=True)
class Budget:
    """What a scan of one process may cost."""

    bytes: int = 8 << 30
    seconds: float = 10.0


class Scan(NamedTuple):
    """What a scan found, and how far it came."""

    communicators: Tuple[Communicator, ...]
    scanned: int  # bytes
    seconds: float
    problem: Optional[str] = None
    cut: bool = False  # the budget was spent


Resident = Callable[[Mapping], Iterable[Range]]
"""Which parts of a mapping may be read: those in memory for a process, those in the file for a core. Empty parts are
progress: a reservation of terabytes with nothing in it takes time as well."""


def anonymous(mappings: Iterable[Mapping]) -> List[Mapping]:
    """Private memory that belongs to no file or device and can be written: where heaps lie. The smallest come first:
    big ones hold weights and caches."""
    chosen = [mapping for mapping in mappings if _is_heap(mapping)]
    return sorted(chosen, key=lambda mapping: (mapping.end - mapping.start, mapping.start))


def _is_heap(mapping: Mapping) -> bool:
    named = mapping.path and mapping.path != "[heap]" and not mapping.path.startswith("[anon")
    return mapping.permissions[:4] in ("rw-p", "rwxp") and mapping.inode == 0 and not named


def resident_of(pid: int) -> Resident:
    """Runs of pages that are in memory. Nothing, when the kernel does not say which."""

    def parts(mapping: Mapping) -> Iterator[Range]:
        try:
            with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
                for start in range(mapping.start, mapping.end, BLOCK * 16):
                    pages = (min(mapping.end, start + BLOCK * 16) - start) // _PAGE
                    pagemap.seek(start // _PAGE * _ENTRY)
                    flags = pagemap.read(pages * _ENTRY)[_ENTRY - 1 :: _ENTRY]
                    yield start, 0
                    for run in _PRESENT.finditer(flags):
                        yield start + run.start() * _PAGE, (run.end() - run.start()) * _PAGE
        except OSError:
            return

    return parts


def in_core(mapping: Mapping) -> Iterator[Range]:
    """All of a mapping: what a core does not have, its map says already."""
    yield mapping.start, mapping.end - mapping.start


def scan(
    mappings: Iterable[Mapping], resident: Resident, read: Read, layouts: Sequence[Layout], budget: Budget
) -> Scan:
    """Every marked communicator in these mappings, as far as the budget reaches. About 0.6 GB a second."""
    begun = time.monotonic()
    marked = [layout for layout in layouts if layout.marked]
    found: List[Communicator] = []
    scanned = candidates = 0
    for address, size in _blocks(mappings, resident):
        problem = _over(budget, scanned + size, time.monotonic() - begun, candidates)
        if problem is not None:
            cut = candidates < _MOST_CANDIDATES
            return Scan(tuple(found), scanned, time.monotonic() - begun, problem, cut)
        scanned += size
        for start in itertools.islice(_marks(read(address, size) if size else None, address), _MOST_CANDIDATES):
            candidates += 1
            one = read_communicator(read, start, ORIGIN, marked)
            if one.problem is None:
                found.append(one)
    return Scan(tuple(found), scanned, time.monotonic() - begun)


def _over(budget: Budget, size: int, seconds: float, candidates: int) -> Optional[str]:
    if candidates >= _MOST_CANDIDATES:
        return f"{_MOST_CANDIDATES} places look like the start of a communicator, but are not"
    if size > budget.bytes:
        return f"limit of {budget.bytes / (1 << 30):g} GiB"
    return f"limit of {budget.seconds:.2g} s" if seconds > budget.seconds else None


def _blocks(mappings: Iterable[Mapping], resident: Resident) -> Iterator[Range]:
    for mapping in mappings:
        for address, size in resident(mapping):
            for start in range(address, address + max(size, 1), BLOCK):
                yield start, min(BLOCK, address + size - start)


def _marks(data: Optional[bytes], address: int) -> Iterator[int]:
    """Aligned addresses of magic words. Their bytes repeat: they may overlap with equal ones before them."""
    for match in _MARKS.finditer(data or b""):
        first = address + match.start()
        yield from range(first + -first % 8, address + match.end() - 7, 8)
