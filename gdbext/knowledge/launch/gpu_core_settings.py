"""Variables with which the CUDA driver writes GPU cores, by the driver's release: names were added and removed.

They are read when the process initialises CUDA: set later they do nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

_BLOG = "vLLM's posts of 2025-08-11 and 2025-11-27; SGLang --crash-dump-folder"
_RELEASES = "cuda-gdb manual, release notes 12.5 and 13.0"


class ArmRow(NamedTuple):
    """`first` to `last`: the branches of the driver that know it, 0: no bound. `full`: for a core with memory, too."""

    name: str
    value: str  # {folder}
    why: str
    source: str
    first: int = 0
    last: int = 0
    full: bool = True

    def fits(self, driver: int) -> bool:
        return self.first <= driver and (not self.last or driver <= self.last)


ON_EXCEPTION, ON_DEMAND = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"
FILE, PIPE = "CUDA_COREDUMP_FILE", "CUDA_COREDUMP_PIPE"
FLAGS = "CUDA_COREDUMP_GENERATION_FLAGS"
LIGHTWEIGHT = "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP"
_SMALL = "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory"

ARM: Tuple[ArmRow, ...] = (
    ArmRow(ON_EXCEPTION, "1", "a core when a kernel fails", _BLOG),
    ArmRow(ON_DEMAND, "1", "a core when it is asked for, by a pipe of each process", _BLOG),
    ArmRow(FILE, "{folder}/gpucore.%h.%p.%t.nvcudmp", "a file for each process: host, pid, time", _BLOG),
    ArmRow(PIPE, "{folder}/corepipe.cuda.%h.%p", "where each process waits to be asked", _BLOG),
    ArmRow("CUDA_COREDUMP_SHOW_PROGRESS", "1", "the driver says on stderr what failed and how far it is", _BLOG),
    ArmRow(LIGHTWEIGHT, "1", "registers, code and tables; no memory", _RELEASES, last=554, full=False),
    ArmRow(FLAGS, _SMALL, "registers, code and tables; no memory", _RELEASES, 555, 559, full=False),
    ArmRow(
        FLAGS, f"{_SMALL},skip_constbank_memory", "registers, code and tables; no memory", _RELEASES, 560, full=False
    ),
)
"""In the order in which they are shown."""

NEWEST = 580
"""The branch that is taken where nobody knows the driver: CUDA 13.0."""


class OldRow(NamedTuple):
    """A variable, or a word in its value, that no longer does what it did."""

    name: str
    word: str  # in its value; "": the variable itself
    first: int  # branch of the driver from which on this holds
    says: str
    source: str


OLD: Tuple[OldRow, ...] = (
    OldRow(
        LIGHTWEIGHT, "", 580, f"was removed in CUDA 13.0 and does nothing: {FLAGS} says what is left out", _RELEASES
    ),
    OldRow(LIGHTWEIGHT, "", 555, f"is deprecated since CUDA 12.5: {FLAGS} takes its place", _RELEASES),
    OldRow("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "", 555, "is deprecated since CUDA 12.5", _RELEASES),
    OldRow(
        FLAGS, "skip_abort", 0, "skip_abort can swallow the error: the process continues with a broken context", _BLOG
    ),
)
"""The first that fits a variable counts."""

DEFAULT_PIPE = r"corepipe[._](?:cuda\.)?"
"""How the pipe is called where the variable does not say it: corepipe.cuda.HOST.PID, with some drivers
corepipe_HOST_PID (SGLang, cudacore_pyspy_dump_utils.py)."""

WAITS_AT_PIPE = ("wait_for_partner", "fifo_open")
"""Kernel functions (wchan) of a thread that opens a FIFO for reading and waits for a writer (linux, fs/pipe.c)."""

REQUEST_BYTES = 1 << 20
"""Of zeros, that ask for a core: a short line may be too little (vLLM's post of 2025-11-27)."""

LEAST_FREE = 1 << 30
"""Bytes that must be free for each GPU: a caution of ours, no figure of the driver's."""

DRIVER = r"\bKernel Module\b[^\n]{0,60}?\s(\d{3,4})\.\d{1,4}"
"""The branch, in /proc/driver/nvidia/version: `NVRM version: NVIDIA UNIX ... Kernel Module  535.129.03  ...`."""


def old_row(name: str, value: str, driver: int) -> Optional[OldRow]:
    return next((one for one in OLD if one.name == name and one.word in value and driver >= one.first), None)
