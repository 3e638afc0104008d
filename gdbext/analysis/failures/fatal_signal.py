"""Why the kernel sent a fatal signal: the fault address, what is mapped there, and what its file system has left."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import List, Optional, Tuple

from gdbext.knowledge.causes.witnesses import SHM_PER_CONNECTION

SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV = 4, 6, 7, 8, 11
NAMES = {SIGILL: "SIGILL", SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGSEGV: "SIGSEGV"}
FATAL = tuple(NAMES.values())
_BUS_ADRALN, _BUS_ADRERR, _MCEERR_AR, _MCEERR_AO = 1, 2, 4, 5  # siginfo.h
_SHARED = re.compile(r"/dev/shm/")  # noqa: S108 - a place, no file of ours


@dataclass(frozen=True)
class Fault:
    """What the kernel and /proc say. `total` and `free` are bytes of the file system that `path` lies in."""

    signal: str
    code: Optional[int] = None  # si_code
    address: Optional[int] = None  # si_addr
    path: str = ""  # of the mapping at the address, as the process sees it
    offset: Optional[int] = None  # of the address in that file
    size: Optional[int] = None  # of the file
    allocated: Optional[int] = None  # bytes of it that exist
    total: Optional[int] = None
    free: Optional[int] = None
    mapped: Optional[bool] = None  # whether anything is mapped at the address
    access: str = ""  # permissions of the mapping: "r--p"


def ended_by(code: int) -> str:
    """` (SIGABRT)`: the signal of an exit code, as Python (-6) and shells (134) tell it."""
    number = -code if code < 0 else code - 128
    names = {int(one): one.name for one in signal.Signals}
    return f" ({names[number]})" if number in names else ""


def explain_fault(fault: Fault) -> Tuple[str, ...]:
    """Sentences, the most telling one first."""
    if fault.signal == "SIGBUS":
        return tuple(_bus(fault))
    if fault.signal == "SIGSEGV":
        return tuple(_segment(fault))
    return ()


def steps(fault: Fault) -> Tuple[str, ...]:
    """What to do about it."""
    if fault.signal == "SIGBUS" and fault.code in (_MCEERR_AR, _MCEERR_AO):
        return ("dmesg | grep -i 'memory failure\\|hardware error'; take this host out of service",)
    if fault.signal == "SIGBUS" and _SHARED.match(fault.path):
        more = "give the container more: docker run --shm-size=16g, or --ipc=host; in Kubernetes an emptyDir with "
        found = [more + "medium: Memory at /dev/shm"]
        if _is_full(fault) is False:
            found = [f"if it was full a moment ago: {found[0]}"]
            found.insert(0, "compare memory.current of the container's cgroup with memory.max: files in /dev/shm count")
        if "/nccl-" in fault.path:
            found.append("NCCL 2.19 and newer report this as an error instead; NCCL_SHM_DISABLE=1 avoids /dev/shm")
        return tuple(found)
    if fault.signal == "SIGBUS" and fault.path:
        return ("do not replace or cut files that a running server has mapped; copy the weights and restart",)
    return ()


def _bus(fault: Fault) -> List[str]:
    if fault.code in (_MCEERR_AR, _MCEERR_AO):
        return [
            f"The hardware reported a memory error at {_hex(fault.address)}: failing RAM, not a fault of the program."
        ]
    if fault.code == _BUS_ADRALN:
        return [f"The access at {_hex(fault.address)} was not aligned."]
    if not fault.path:
        return [f"A page at {_hex(fault.address)} could not be loaded; no file is known to be mapped there."]
    found = [f"The address {_hex(fault.address)} lies in {fault.path}{_inside(fault)}: its page could not be loaded."]
    if fault.total is not None and fault.free is not None:
        folder = fault.path.rpartition("/")[0] or "/"
        room = f"The file system of {folder} has {_size(fault.free)} of {_size(fault.total)} free"
        found.append(room + (": it is full, so the kernel could not allocate this page." if _is_full(fault) else _ROOM))
    if fault.size is not None and fault.offset is not None and fault.offset >= fault.size:
        found.append(
            f"The file ends at {_size(fault.size)}, before that address: it was truncated after it was mapped."
        )
    return found


_ROOM = (
    " now, which does not explain it. It may have been full a moment ago, the file may have been truncated, or the "
    "container may have reached its memory limit."
)


def _is_full(fault: Fault) -> Optional[bool]:
    """Whether the file system has less than one connection of NCCL needs; None where it is not known."""
    if fault.total is None or fault.free is None:
        return None
    return fault.free < max(4096, min(SHM_PER_CONNECTION, fault.total // 64))


def _inside(fault: Fault) -> str:
    pieces = [f"at offset {fault.offset:,}"] if fault.offset is not None else []
    if fault.size is not None and fault.allocated is not None:
        pieces.append(f"of {fault.size:,} bytes only {fault.allocated:,} exist" if fault.allocated < fault.size else "")
    said = [piece for piece in pieces if piece]
    return f" ({'; '.join(said)})" if said else ""


def _segment(fault: Fault) -> List[str]:
    if fault.address is None:
        return []
    if fault.address < 65536:
        return [f"A null pointer: the access was at {_hex(fault.address)}."]
    if fault.mapped is False:
        return [f"Nothing is mapped at {_hex(fault.address)}: a dangling or overwritten pointer."]
    if fault.access.startswith("---"):
        return [
            f"{_hex(fault.address)} is reserved without access, as CUDA reserves device memory: "
            "host code used a device pointer."
        ]
    if fault.mapped:
        return [f"{_hex(fault.address)} is mapped {fault.access}{' from ' + fault.path if fault.path else ''}."]
    return [f"The access was at {_hex(fault.address)}."]


def _hex(address: Optional[int]) -> str:
    return "an unknown address" if address is None else f"{address:#x}"


def _size(count: int) -> str:
    """`64 MiB`, `1.5 GiB`, `12 KiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
