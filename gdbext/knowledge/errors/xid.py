"""Xid numbers: what the kernel's NVIDIA driver logs (`NVRM: Xid`), and whether the work on the GPU ends with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict

_CATALOGUE = "NVIDIA, XID errors (docs.nvidia.com/deploy/xid-errors); never seen from a GPU here"
_UNCHECKED = (
    "NVIDIA's catalogue from memory: number and meaning were not compared with it, and never seen from a GPU here"
)
_HEADER = "nverror.h of NVIDIA's open kernel modules 535.261.03 has the number; never seen from a GPU here"


@dataclass(frozen=True)
class Xid:
    """One number. `ends_work`: what runs on the GPU cannot complete after it. `of_program`: usually an error of the
    program that the line names, not of the GPU."""

    number: int
    meaning: str
    ends_work: bool = True
    of_program: bool = False
    source: str = _CATALOGUE


XIDS: Dict[int, Xid] = {
    row.number: row
    for row in (
        Xid(
            13,
            "graphics engine exception: a kernel executed an illegal instruction or made an illegal access",
            of_program=True,
        ),
        Xid(31, "GPU memory page fault: a kernel used an address that is not mapped", of_program=True),
        Xid(32, "invalid or corrupted push buffer stream", source=_HEADER),
        Xid(38, "driver firmware error", source=_UNCHECKED),
        Xid(43, "GPU stopped processing: usually an error in the program", of_program=True),
        Xid(45, "preemptive cleanup: the program was torn down because of an earlier error"),
        Xid(48, "double bit ECC error"),
        Xid(61, "internal micro-controller breakpoint", source=_HEADER),
        Xid(62, "internal micro-controller halt", source=_HEADER),
        Xid(63, "ECC page retirement or row remapping was recorded", ends_work=False),
        Xid(64, "ECC page retirement or row remapping could not be recorded"),
        Xid(68, "video processor exception", ends_work=False, source=_HEADER),
        Xid(69, "graphics engine class error", source=_HEADER),
        Xid(74, "NVLink error"),
        Xid(79, "the GPU has fallen off the bus"),
        Xid(92, "high rate of single bit ECC errors", ends_work=False, source=_HEADER),
        Xid(94, "contained ECC error: the program that used the memory ends"),
        Xid(95, "uncontained ECC error: every program on the GPU ends"),
        Xid(119, "the GPU system processor (GSP) did not answer in time"),
        Xid(120, "error of the GPU system processor (GSP)"),
        Xid(121, "corrected error of the chip-to-chip link", ends_work=False, source=_HEADER),
        Xid(140, "unrecovered ECC error", source=_HEADER),
        Xid(145, "NVLink error (remote write)", source=_UNCHECKED),
        Xid(149, "NVLink error (link layer)", source=_UNCHECKED),
        Xid(154, "recovery action of the GPU changed", ends_work=False, source=_UNCHECKED),
    )
}


def meaning_of(number: int) -> Xid:
    """The row of a number; an unknown one is named and ends no work."""
    return XIDS.get(number) or Xid(number, "not in the table", ends_work=False)


XID_LINE = (
    r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]{4,20})\): (?P<number>\d{1,5}),?"
    r"(?: pid='?(?P<pid>\d{1,9}|<unknown>)'?,?)?(?: name='?(?P<name>[^',]{0,60})'?,?)? ?(?P<rest>.{0,200})"
)
"""A line of the kernel's log. The pid in it is the host's."""

BUS_OF_PROCESS = (
    r"(?P<host>[\w.-]{1,253}):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,4}\] NCCL INFO .{0,400}?"
    r"\bbusId (?P<bus>[0-9a-fA-F]{1,12})\b"
)
"""A line of NCCL (init.cc: `Init START`, `Init COMPLETE`): which GPU a process uses."""
