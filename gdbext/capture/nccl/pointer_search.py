"""Where the communicators of a process lie: arguments of frames, pointers on stacks and in the objects they lead to.

What a pointer leads to is believed only when the communicator's own marks are there
(capture/nccl/communicator_memory.py)."""

from __future__ import annotations

import bisect
import re
import time
from array import array
from dataclasses import replace
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import ProcessMemory, Range
from gdbext.capture.nccl.communicator_memory import Read, read_communicator
from gdbext.capture.nccl.library import FromDebugInfo, Layouts, layouts_of
from gdbext.capture.nccl.memory_scan import Budget, Resident, anonymous, resident_of, scan
from gdbext.knowledge.runtimes.nccl import MAGIC
from gdbext.model.communicator import Communicator, Searched
from gdbext.model.stack import ThreadStack

ReadMany = Callable[[Sequence[Range]], Sequence[Optional[bytes]]]
"""One answer for each range, as `Read` gives it."""

ON_STACK, IN_OBJECT = "a pointer on a stack", "a pointer in an object that a stack leads to"
MOST_POINTERS = 1 << 16  # that are looked behind
MOST_PAGES = 2048  # of objects that stacks lead to
MOST_COMMUNICATORS = 256  # of one process
_TOO_MANY = f"only the first {MOST_COMMUNICATORS} communicators are kept"
_UNMARKED = (
    "this release of NCCL (before 2.21) does not mark its communicators: gdbext finds only those in arguments of frames"
)
_PAGE = SMALLEST_PAGE
_MARK = MAGIC.to_bytes(8, "little")
_ARGUMENT = re.compile(r"(^|->|\.)(comm|nccl_comm_?)$")
_TYPED = re.compile(r"nccl", re.IGNORECASE)
_UNREADABLE = re.compile(r"/dev/(?!shm/|zero\b|nvidiactl\b)|\[v")  # memory of devices; the kernel's own pages


def host_only(read: Read, memory: MemoryMap) -> Read:
    """`read`, but for what is no memory of the host: a pointer out of garbage may lead to a device."""

    def safely(address: int, size: int) -> Optional[bytes]:
        mapping = memory.find(address)
        if mapping is None or mapping.permissions[:1] != "r" or _UNREADABLE.match(mapping.path):
            return None
        return read(address, size) if address + size <= mapping.end else None

    return safely


class Search:
    """Collects the communicators of one process. `found` has each once, in the order in which they were found."""

    def __init__(
        self, memory: MemoryMap, layouts: Layouts, read: Read, read_many: ReadMany, resident: Resident
    ) -> None:
        self._heap = anonymous(memory)
        self._layouts, self._read_many, self._resident = layouts, read_many, resident
        self._read = host_only(read, memory)
        self._found: Dict[int, Communicator] = {}
        self.notes: List[str] = list(layouts.problems)
        self.cut = False

    @property
    def possible(self) -> bool:
        """Whether NCCL is there and its layout known."""
        return bool(self._layouts.layouts)

    @property
    def found(self) -> Tuple[Communicator, ...]:
        return tuple(self._found.values())

    @property
    def hashes(self) -> Set[object]:
        """Of those that could be read."""
        return {one.hash for one in self._found.values() if one.readable}

    def from_frames(self, threads: Iterable[ThreadStack]) -> None:
        """What frames were called with. An address of theirs that cannot be read is kept, with the reason."""
        for address, origin in addresses_of(threads).items():
            self._add(address, origin, keep=bool(self._layouts.libraries))

    def from_words(self, words: Iterable[int]) -> None:
        """Words of stacks and registers, and of the objects that they point to."""
        pointers = self._inside(words)
        self._from_pointers(pointers, ON_STACK)
        pages = sorted({page for pointer in pointers for page in (pointer & -_PAGE, (pointer & -_PAGE) + _PAGE)})
        inner: Set[int] = set()
        for data in self._read_many([(page, _PAGE) for page in pages[:MOST_PAGES]]):
            inner.update(array("Q", data) if data else ())
        self._from_pointers(self._inside(inner - set(pointers)), IN_OBJECT)

    def by_scan(self, budget: Budget) -> None:
        """Everything that is marked in the private memory of the process, as far as the budget reaches."""
        if not any(layout.marked for layout in self._layouts.layouts):
            self.notes += [_UNMARKED] if self.possible else []
            return
        result = scan(self._heap, self._resident, self._read, self._layouts.layouts, budget)
        for one in result.communicators:
            self._keep(one)
        self.cut = result.cut
        size = f"{result.scanned / (1 << 20):,.0f} MiB scanned in {result.seconds:.1f} s"
        self.notes.append(f"{size}, then stopped: {result.problem}" if result.problem else size)

    def again(self) -> None:
        """Read all of them once more: what a rank that runs on has launched in between shows in `moved`."""
        for address, one in self._found.items():
            if one.readable:
                later = read_communicator(self._read, address, one.origin, self._layouts.layouts)
                self._found[address] = replace(later, moved=later.counts != one.counts) if later.readable else later

    def _add(self, address: int, origin: str, keep: bool = False) -> None:
        if address not in self._found and address:
            one = read_communicator(self._read, address, origin, self._layouts.layouts)
            if one.readable or (keep and self.possible):
                self._keep(one)

    def _keep(self, one: Communicator) -> None:
        if len(self._found) < MOST_COMMUNICATORS:
            self._found.setdefault(one.address, one)
        elif one.address not in self._found and self.notes[-1:] != [_TOO_MANY]:
            self.notes.append(_TOO_MANY)

    def _inside(self, words: Iterable[int]) -> List[int]:
        """Aligned words that point into private memory."""
        ordered = sorted(set(words))
        pointers: List[int] = []
        for mapping in self._heap:
            part = ordered[bisect.bisect_left(ordered, mapping.start) : bisect.bisect_left(ordered, mapping.end)]
            pointers += [word for word in part if word % 8 == 0]
        return pointers[:MOST_POINTERS]

    def _from_pointers(self, pointers: Sequence[int], origin: str) -> None:
        if not any(layout.marked for layout in self._layouts.layouts):
            return
        for pointer, data in zip(pointers, self._read_many([(pointer, 8) for pointer in pointers])):
            if data == _MARK:
                self._add(pointer, origin)


def search_of_process(pid: int, memory: MemoryMap, from_debug_info: FromDebugInfo) -> Search:
    """A search in a running process, which needs permission and no stop."""
    process = ProcessMemory(pid)
    layouts = layouts_of(memory, lambda path: f"/proc/{pid}/root{path}", from_debug_info)
    return Search(memory, layouts, process.read, process.read_many, resident_of(pid))


def scan_where_some_are_missing(searches: Sequence[Search], budget: Budget) -> None:
    """Scan the processes in which nothing was found, or not all that was found in others, each once: what a scan brings
    to light may be lacking in those that seemed to have all. `budget` is for all of them together: each gets an equal
    share of the time that is left."""
    end = time.monotonic() + budget.seconds
    unscanned = [search for search in searches if search.possible]
    while True:
        known = set().union(*(search.hashes for search in searches))
        wanting = [search for search in unscanned if not (search.hashes and search.hashes == known)]
        if not wanting:
            return
        share = max(0.0, end - time.monotonic()) / len(wanting)
        for search in wanting:
            search.by_scan(Budget(budget.bytes, share))
        unscanned = [search for search in unscanned if search not in wanting]


def addresses_of(threads: Iterable[ThreadStack]) -> Dict[int, str]:
    """Addresses of communicators that frames were called with, and who says so."""
    found: Dict[int, str] = {}
    for thread in threads:
        for frame in thread.frames:
            for name, value in frame.captures.items():
                argument = _ARGUMENT.search(name)
                if argument and isinstance(value, int) and value and _TYPED.search(f"{name} {frame.function}"):
                    found.setdefault(value, f"{argument.group(2)} of {frame.function}")
    return found


def words_in(read: Read, ranges: Iterable[Range]) -> Set[int]:
    """Every different word in these ranges, as far as they can be read at once."""
    words: Set[int] = set()
    for address, size in ranges:
        data = read(address & -8, size & -8)
        words.update(array("Q", data) if data else ())
    return words


def stack_ranges(memory: MemoryMap, pointers: Iterable[int], most: int) -> List[Range]:
    """From each stack pointer to the end of its mapping, at most `most` bytes."""
    ranges: List[Range] = []
    for pointer in pointers:
        mapping: Optional[Mapping] = memory.find(pointer)
        if mapping is not None:
            ranges.append((pointer, min(mapping.end - pointer, most)))
    return ranges


def search_result(search: Optional[Search]) -> Searched:
    """What it came to; nothing without one."""
    return Searched(search.found, tuple(search.notes), search.cut) if search else Searched()
