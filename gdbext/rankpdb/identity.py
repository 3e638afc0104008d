"""Which rank of which job this process is, by the variables of its launcher.

Sources: torchrun (torch/distributed/elastic, environment variables), msrun (MindSpore documentation, RANK_ID, MS_*),
Open MPI (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_*, MPI_LOCALNRANKS), MVAPICH2 (MV2_*), Slurm (srun, SLURM_*).
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

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
    rank = group[0] if group else _number(environ, RANK)
    world = group[1] if group else _number(environ, WORLD)
    local, many = _number(environ, LOCAL_RANK), _number(environ, LOCAL_WORLD)
    here = None
    if rank is not None and local is not None and many and world and many < world:
        here = range(rank - local, rank - local + many)
    return Identity(rank or 0, world, here, _job(environ))


def _number(environ: Mapping[str, str], names: Tuple[str, ...]) -> Optional[int]:
    return next((int(environ[name]) for name in names if environ.get(name, "").isdigit()), None)


def torch_distributed() -> Any:
    """torch.distributed when the process has it and its process group stands, else None. Imports nothing."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _group() -> Optional[Tuple[int, int]]:
    module = torch_distributed()
    return (module.get_rank(), module.get_world_size()) if module else None


def _job(environ: Mapping[str, str]) -> str:
    for names in JOB:
        if all(environ.get(name) for name in names):
            return _digest([f"{name}={environ[name]}" for name in names])
    return _digest([f"children of {os.getppid()}, started {started(os.getppid())}"])


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def started(pid: int) -> str:
    """When a process was started (clock ticks after boot): with its pid it names the process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return "0"
