"""Which rank of which job this process is, by the variables of its launcher.

Sources: torchrun (torch/distributed/elastic, environment variables), msrun (MindSpore documentation, RANK_ID, MS_*),
Open MPI (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_*, MPI_LOCALNRANKS), MVAPICH2 (MV2_*), Slurm (srun, SLURM_*).
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "RANK_ID", "SLURM_PROCID")
LOCAL_RANK = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
)
WORLD = (
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "RANK_SIZE",
    "MS_WORKER_NUM",
    "SLURM_NTASKS",
)
LOCAL_WORLD = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")
JOB = (
    ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ("MASTER_ADDR", "MASTER_PORT"),
    ("MS_SCHED_HOST", "MS_SCHED_PORT"),
    ("PMIX_NAMESPACE",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
)
"""What the ranks of a job have in common and those of another job have not; the first that is whole counts."""


@dataclass(frozen=True)
class Identity:
    """`here`: the ranks of this host as far as they are known, None when they may be all of them."""

    rank: int
    world: Optional[int]
    here: Optional[range]
    job: str  # twelve hexadecimal digits, the same in all ranks of the job

    def is_here(self, rank: int) -> bool:
        return self.here is None or rank in self.here


def identity(environ: Optional[Mapping[str, str]] = None) -> Identity:
    """This process's place. Without any variable of a launcher it is rank 0 of a job of its own."""
    environ = os.environ if environ is None else environ
    group = _group()
    rank = group[0] if group else rank_of(environ)
    world = group[1] if group else _number(environ, WORLD)
    local, many = _number(environ, LOCAL_RANK), _number(environ, LOCAL_WORLD)
    if environ.get("MS_ROLE") == "MS_WORKER":
        local, many = _number(environ, ("DEVICE_ID",)), _workers_of_msrun(os.getppid())
    here = None
    if rank is not None and local is not None and many and world and many < world:
        here = range(rank - local, rank - local + many)
    return Identity(rank or 0, world, here, job_of(environ, os.getppid()))


def _workers_of_msrun(parent: int) -> Optional[int]:
    """How many ranks it has started on this host; no variable says it (mindspore 2.10 parallel/cluster/run.py)."""
    try:
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            words = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    if not any(word.rpartition("/")[2] in ("msrun", "run.py") for word in words[:2]):
        return None
    option, after = "--local_worker_num", dict(zip(words, words[1:]))
    given = next((word.partition("=")[2] for word in words if word.startswith(f"{option}=")), after.get(option, "8"))
    return integer_or_none(given)


def integer_or_none(text: str) -> Optional[int]:
    """A number as launchers write it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def rank_of(environ: Mapping[str, str]) -> Optional[int]:
    """The rank that a launcher gave to the process of this environment."""
    return None if is_no_rank(environ) else _number(environ, RANK)


def is_no_rank(environ: Mapping[str, str]) -> bool:
    """msrun's scheduler runs the ranks' script as well, with RANK_ID=0 (mindspore 2.10 process_entity/_api.py)."""
    return environ.get("MS_ROLE", "MS_WORKER") != "MS_WORKER"


def _number(environ: Mapping[str, str], names: Tuple[str, ...]) -> Optional[int]:
    return next(
        (number for number in (integer_or_none(environ.get(name, "")) for name in names) if number is not None), None
    )


def torch_distributed() -> Any:
    """torch.distributed when the process has it and its process group stands, else None. Imports nothing."""
    module = sys.modules.get("torch.distributed")
    return None if module is None or not module.is_available() or not module.is_initialized() else module


def _group() -> Optional[Tuple[int, int]]:
    module = torch_distributed()
    return (module.get_rank(), module.get_world_size()) if module else None


def job_of(environ: Mapping[str, str], parent: int) -> str:
    """The job of a process with this environment, which `parent` has started."""
    for names in JOB:
        if all(environ.get(name) for name in names):
            return _digest([f"{name}={environ[name]}" for name in names])
    return _digest([f"children of {parent}, started {start_time(parent)}"])


def _digest(parts: List[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def start_time(pid: int) -> str:
    """When a process was started (clock ticks after boot): with its pid it names the process for good."""
    fields = _stat(pid)
    return fields[19] if fields else "0"


def is_ending(pid: int, start: str) -> bool:
    """Whether this very process is seen to be on its way out: its sockets may still answer for a moment."""
    fields = _stat(pid)
    return bool(fields) and fields[19] == start and (fields[0] in "ZX" or bool(int(fields[6]) & _EXITING))


def parent_of(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


_EXITING = 0x4
"""PF_EXITING in the flags of /proc/PID/stat (linux include/linux/sched.h)."""


def _stat(pid: int) -> List[str]:
    """The fields of /proc/PID/stat behind the name (proc_pid_stat(5)); none when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []
    return fields if len(fields) > 19 else []
