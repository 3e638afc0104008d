"""GPU core files (.nvcudmp): sections, tables, and what their numbers are called.

Source: NVIDIA's public headers cudacoredump.h ("Public format description of the CUDA coredump") and cudadebugger.h
(CUDA 13.x), as they stand in the sources of cuda-gdb. Rows of a table grow with the driver: whoever reads one takes the
size of a row from the section's header, and the fields that are in it.
"""

from __future__ import annotations

from struct import Struct
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

_USER = 0x80000000
GLOBAL_MEMORY, LOCAL_MEMORY, SHARED_MEMORY = _USER + 2, _USER + 3, _USER + 4
IMAGE, RELOCATED_IMAGE, BACKTRACE = _USER + 6, _USER + 7, _USER + 8
DEVICES, CONTEXTS, SMS, GRIDS, BLOCKS, WARPS, LANES, MODULES = (_USER + number for number in range(9, 17))
METADATA = _USER + 22


class Field(NamedTuple):
    """An unsigned number of 8 or 4 bytes."""

    name: str
    offset: int
    bytes: int = 4


class Table(NamedTuple):
    """One kind of table. A row that does not reach `needed` bytes cannot be understood."""

    title: str
    needed: int
    fields: Tuple[Field, ...]

    def row(self, data: bytes) -> Dict[str, Optional[int]]:
        """Every field; None for one that the driver that wrote the row does not know."""
        return {
            one.name: _NUMBER[one.bytes].unpack_from(data, one.offset)[0]
            if one.offset + one.bytes <= len(data)
            else None
            for one in self.fields
        }


_NUMBER = {4: Struct("<I"), 8: Struct("<Q")}


def _fields(wide: str, narrow: str, start: int = 0) -> Tuple[Field, ...]:
    """Fields one behind the other: those of 8 bytes, then those of 4."""
    names = wide.split()
    first = [Field(name, start + 8 * number, 8) for number, name in enumerate(names)]
    after = start + 8 * len(names)
    return (*first, *(Field(name, after + 4 * number) for number, name in enumerate(narrow.split())))


TABLES: Mapping[int, Table] = {
    DEVICES: Table(
        "devices",
        72,
        _fields(
            "name type sm_type",
            "number pci_bus pci_device sms warps_per_sm lanes_per_warp registers predicates sm_major sm_minor"
            " instruction_size status",
        ),
    ),
    CONTEXTS: Table("contexts", 40, _fields("context shared_window local_window global_window", "device tid")),
    MODULES: Table("modules", 8, _fields("module", "")),
    GRIDS: Table(
        "grids",
        104,
        _fields(
            "grid context function entry module parent parameters",
            "kernel_type origin status registers grid_x grid_y grid_z block_x block_y block_z blocking host_tid"
            " cluster_x cluster_y cluster_z",  # since r525
        ),
    ),
    SMS: Table(
        "SMs",
        4,
        (Field("sm", 0), Field("exception", 8), Field("has_error_pc", 12), Field("error_pc", 16, 8)),  # since r555
    ),
    BLOCKS: Table("blocks", 20, _fields("grid", "x y z")),
    WARPS: Table("warps", 28, _fields("error_pc", "warp valid active broken has_error_pc")),
    LANES: Table(
        "threads", 40, _fields("pc offset", "lane x y z exception depth system_depth condition state")
    ),  # state since r575
    BACKTRACE: Table("calls", 20, _fields("offset pc", "level")),
    METADATA: Table("metadata", 24, _fields("generator", "driver driver_minor cuda cuda_minor flags written")),
}
"""By the type of the section."""

FLAGS: Mapping[int, str] = {
    1 << 0: "skip_nonrelocated_elf_images",
    1 << 1: "skip_global_memory",
    1 << 2: "skip_shared_memory",
    1 << 3: "skip_local_memory",
    1 << 4: "skip_abort",
    1 << 5: "skip_constbank_memory",
    1 << 6: "gzip_compress",
    1 << 7: "faulted_contexts_only",
}
"""CUDA_COREDUMP_GENERATION_FLAGS by bit (CUDBGCoredumpGenerationFlags, and cuda-python's CoredumpGenerationFlags)."""

GRID_STATES: Mapping[int, str] = {
    0: "invalid",
    1: "pending",
    2: "active",
    3: "sleeping",
    4: "terminated",
    5: "undetermined",
}
"""CUDBGGridStatus. Pending: launched, and not running yet. Sleeping: it waits for kernels that it has launched."""


class ExceptionRow(NamedTuple):
    """`whose`: what the hardware knows of its place: "thread", "warp", "block cluster" or "device"."""

    name: str
    means: str
    whose: str
    advice: str = ""


_SANITIZER = "compute-sanitizer memcheck tells the distance to the nearest allocation"
_STACK = "a call chain on the device is deeper than its stack: raise cudaLimitStackSize, or look for recursion"

EXCEPTIONS: Mapping[int, ExceptionRow] = {
    1: ExceptionRow("LANE_ILLEGAL_ADDRESS", "a thread accesses memory that is not mapped", "thread", _SANITIZER),
    2: ExceptionRow("LANE_USER_STACK_OVERFLOW", "a thread needs more stack than it has", "thread", _STACK),
    3: ExceptionRow(
        "DEVICE_HARDWARE_STACK_OVERFLOW", "a block needs more hardware stack than it has", "device", _STACK
    ),
    4: ExceptionRow(
        "WARP_ILLEGAL_INSTRUCTION",
        "a warp comes to something that is not an instruction of this GPU",
        "warp",
        "the code is of another architecture, or has been written over",
    ),
    5: ExceptionRow(
        "WARP_OUT_OF_RANGE_ADDRESS",
        "a thread accesses an address outside of local or shared memory",
        "warp",
        _SANITIZER,
    ),
    6: ExceptionRow(
        "WARP_MISALIGNED_ADDRESS",
        "a thread accesses memory at an address that is not a multiple of the access's size",
        "warp",
        "vector loads (float4, half8) need aligned pointers: look at the offset of the tensor or slice",
    ),
    7: ExceptionRow(
        "WARP_INVALID_ADDRESS_SPACE", "an instruction accesses a memory space that it is not made for", "warp"
    ),
    8: ExceptionRow(
        "WARP_INVALID_PC", "a warp jumps to where no code is", "warp", "a damaged or null function pointer"
    ),
    9: ExceptionRow("WARP_HARDWARE_STACK_OVERFLOW", "a warp needs more hardware stack than it has", "warp", _STACK),
    10: ExceptionRow("DEVICE_ILLEGAL_ADDRESS", "a thread accesses memory that is not mapped", "device", _SANITIZER),
    11: ExceptionRow(
        "LANE_MISALIGNED_ADDRESS",
        "a thread accesses memory at an address that is not a multiple of the access's size",
        "thread",
    ),
    12: ExceptionRow(
        "WARP_ASSERT", "an assert() in the kernel failed", "warp", "its text was printed to stderr of the process"
    ),
    13: ExceptionRow(
        "LANE_SYSCALL_ERROR", "a call of malloc or free in the kernel failed on damaged memory", "thread", _SANITIZER
    ),
    14: ExceptionRow("WARP_ILLEGAL_ADDRESS", "a thread accesses memory that is not mapped", "warp", _SANITIZER),
    15: ExceptionRow(
        "LANE_NONMIGRATABLE_ATOMSYS", "an atomic operation on memory that must move to this GPU and cannot", "thread"
    ),
    16: ExceptionRow("LANE_INVALID_ATOMSYS", "an atomic operation on memory where none is possible", "thread"),
    17: ExceptionRow(
        "CLUSTER_OUT_OF_RANGE_ADDRESS",
        "a thread accesses shared memory of its cluster outside of what the other block has",
        "block cluster",
    ),
    18: ExceptionRow(
        "CLUSTER_BLOCK_NOT_PRESENT",
        "a thread accesses shared memory of a block of its cluster that is not there",
        "block cluster",
        "a block has ended before others read from it: a cluster barrier is missing at the end",
    ),
    19: ExceptionRow("WARP_STACK_CANARY", "the stack of a thread has been written over", "warp"),
    20: ExceptionRow("WARP_TMEM_ACCESS_CHECK", "an access to tensor memory that is not allocated", "warp"),
    21: ExceptionRow("WARP_TMEM_LEAK", "a block ends with tensor memory that it has not given back", "warp"),
    22: ExceptionRow("WARP_CALL_REQUIRES_NEWER_DRIVER", "the kernel calls what this driver does not have", "warp"),
}
"""CUDBGException_t."""

UNKNOWN_EXCEPTION = ExceptionRow(
    "exception {number}", "an exception that this release of gdbext does not know", "device"
)


def exception_row(number: int) -> ExceptionRow:
    return EXCEPTIONS.get(number) or UNKNOWN_EXCEPTION._replace(name=UNKNOWN_EXCEPTION.name.format(number=number))
