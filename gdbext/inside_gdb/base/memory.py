"""Bytes of the target, and what lies at an address: host memory is read in one block, device memory never as zeros.

Reading a device's reservation through ptrace succeeds and yields zeros (measured with gdb 13.1 on a PROT_NONE
mapping; the cuda-gdb manual shows it of device memory), so every address is looked up before it is read. /dev/nvidiaN
is hardware and is never read; managed memory may make the reader wait for the GPU.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

import gdb

from gdbext.capture.cores.core_file import ABSENT_INODE, maps_of
from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.capture.memory.maps import MemoryMap, read_maps
from gdbext.capture.memory.process_memory import READ_LIMIT, Memory, ProcessMemory
from gdbext.inside_gdb.base import compat
from gdbext.model.errors import GdbextError

ZEROS = (
    "plain gdb cannot read device memory (it would show zeros); use cuda-gdb, a GPU core, or `set llm allow-calls on`"
)
NO_CALLS = "gdb cannot read device memory; llm-tensor copies it by calls in a live process; or use cuda-gdb, a GPU core"
NO_DEVICE = "this cuda-gdb sees no CUDA device of it, and would show zeros; use a GPU core, or `set llm allow-calls on`"
HOST, PINNED, MANAGED, RESERVED, REGISTERS, UNMAPPED, ABSENT = (
    *("host", "pinned", "managed", "device", "device registers", "unmapped", "not in the core file"),
)
READABLE = (HOST, PINNED)

_REASONS = {
    RESERVED: "in an address range without access, as CUDA reserves for device memory",
    MANAGED: "managed memory (/dev/nvidia-uvm): reading it from outside can wait for the GPU; use cuda-gdb",
    REGISTERS: "device registers: reading them disturbs the hardware",
    UNMAPPED: "no memory is mapped there",
    ABSENT: "not in the core file, which has no device memory and not all of the host's",
}
_DEVICES = (
    (re.compile(r"/dev/nvidiactl\b"), PINNED),
    (re.compile(r"/dev/nvidia-uvm\b"), MANAGED),
    (re.compile(r"/dev/nvidia\d"), REGISTERS),
    (re.compile(r"/dev/(davinci|kfd|dri)"), REGISTERS),
)
_PAGE = SMALLEST_PAGE
_GLOBAL_PIECE = 1 << 16


class Place(NamedTuple):
    """What lies at an address. `end` is where that ends."""

    kind: str
    name: str = ""
    end: int = 0

    @property
    def reason(self) -> Optional[str]:
        """Why it cannot be read from here; None when it can."""
        reason = _REASONS.get(self.kind)
        return f"{reason}; {why_not_device()}" if self.kind == RESERVED else reason


class MemoryNow(Memory):
    """The selected inferior as it is in this moment, for what runs between two stops: nothing is looked up or kept.

    No address is judged: only for the host's own objects.
    """

    def read(self, address: int, size: int) -> Optional[bytes]:
        if not 0 < address < (1 << 64) - size:
            return None
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.error:
            return None


NOW = MemoryNow()


class TargetMemory:
    """The memory of one inferior, for one command: the map is looked at once.

    Create it anew after the target has run.
    """

    def __init__(self, inferior: Optional[gdb.Inferior] = None) -> None:
        self._inferior = inferior or gdb.selected_inferior()
        self.pid = self._inferior.pid
        self._live = compat.kind_of(self._inferior) == compat.HAS_PROCESS
        self._process = ProcessMemory(self._inferior.pid) if self._live else None
        self._map = map_of(self._inferior)
        self._pages: Dict[int, Optional[bytes]] = {}

    def files(self) -> Tuple[str, ...]:
        """Paths of all mapped files, as the target sees them."""
        return tuple(dict.fromkeys(mapping.path for mapping in self._map or () if mapping.is_file))

    @property
    def root(self) -> str:
        """What stands before the target's paths to open them from here: it may live in a container."""
        return f"/proc/{self.pid}/root" if self._live else ""

    def classify(self, address: int) -> Place:
        """What lies there, by the map alone: nothing is read."""
        if self._map is None:
            return Place(HOST)
        mapping = self._map.find(address)
        if mapping is None:
            return Place(UNMAPPED if self._live else ABSENT)
        for pattern, kind in _DEVICES:
            if pattern.match(mapping.path):
                return Place(kind, mapping.path, mapping.end)
        if mapping.permissions.startswith("---"):
            return Place(RESERVED, mapping.path, mapping.end)
        if not self._live and mapping.inode == ABSENT_INODE:
            return Place(ABSENT, mapping.path, mapping.end)
        return Place(HOST, mapping.path, mapping.end)

    def read(self, address: int, size: int) -> Optional[bytes]:
        """All of the bytes in one block read, or None. Never reads what is not host memory."""
        if size < 0 or size > READ_LIMIT or not 0 <= address < (1 << 64) - size:
            return None
        if not size:
            return b""
        if size <= 256 and address % _PAGE + size <= _PAGE:  # members of objects: neighbours are asked for next
            page = self._page(address - address % _PAGE)
            if page is not None:
                return page[address % _PAGE : address % _PAGE + size]
        return self._read(address, size)

    def _page(self, start: int) -> Optional[bytes]:
        if start not in self._pages:
            if len(self._pages) > 512:
                self._pages.clear()
            self._pages[start] = self._read(start, _PAGE)
        return self._pages[start]

    def _read(self, address: int, size: int) -> Optional[bytes]:
        if not self._allowed(address, size):
            return None
        if self._process is not None:
            data = self._process.read(address, size)
            if data is not None:
                return data
        try:  # core files, remote targets, and processes that only the attached debugger may read
            if gdb.selected_inferior().num == self._inferior.num:
                return bytes(self._inferior.read_memory(address, size))
            with compat.inferior_selected(self._inferior):
                return bytes(self._inferior.read_memory(address, size))
        except (gdb.MemoryError, gdb.error, OverflowError, ValueError):
            return None

    def _allowed(self, address: int, size: int) -> bool:
        at = address
        while at < address + size:
            place = self.classify(at)
            if place.kind not in READABLE:
                return False
            if not place.end:
                return True
            at = place.end
        return True


def map_of(inferior: gdb.Inferior) -> Optional[MemoryMap]:
    """None where there is none to look at: of an executable alone, of a remote target."""
    try:
        if compat.kind_of(inferior) == compat.HAS_PROCESS:
            return read_maps(inferior.pid)
        core = compat.core_path(inferior)
        return maps_of(core) if core else None
    except (OSError, ValueError, GdbextError):
        return None


_known: Dict[int, TargetMemory] = {}
_watching: List[object] = []


def current() -> TargetMemory:
    """The memory of the selected inferior. Looked up once until something runs or is written."""
    if not _watching:
        _watch()
    inferior = gdb.selected_inferior()
    known = _known.get(inferior.num)
    if known is None or known.pid != inferior.pid:
        known = _known[inferior.num] = TargetMemory(inferior)
    return known


def clear_cache(event: object = None) -> None:
    """What was read is old: a thread ran, memory was written, a file was loaded."""
    _known.clear()


def _watch() -> None:
    for name in ("cont", "stop", "exited", "inferior_call", "memory_changed", "new_objfile", "clear_objfiles"):
        registry = getattr(gdb.events, name, None)
        if registry is not None:
            registry.connect(clear_cache)
            _watching.append(registry)


def calls_allowed() -> bool:
    """`set llm allow-calls on`."""
    return bool(compat.parameter("llm allow-calls"))


def why_not_device() -> str:
    """Why values in device memory are not shown, and what would show them."""
    if calls_allowed():
        return NO_CALLS
    return NO_DEVICE if compat.is_cuda_gdb() else ZEROS


def read_global(address: int, size: int) -> Optional[bytes]:
    """Global memory of the GPU, by cuda-gdb's own expression for it; None when it says no. Untested without a GPU."""
    data = b""
    try:
        while len(data) < size:
            count = min(size - len(data), _GLOBAL_PIECE)
            value = gdb.parse_and_eval(f"*(@global unsigned char*){address + len(data):#x}@{count}")
            whole = getattr(value, "bytes", None)  # gdb 15
            data += whole if whole is not None else bytes(int(value[number]) for number in range(count))
    except (gdb.error, RuntimeError, ValueError):
        return None
    return data
