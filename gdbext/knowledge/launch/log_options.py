"""How each launcher is told to keep a log of every rank: options that are put right behind its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class LogOptions:
    """`words` are the launcher's programs; `{logs}` in `options` is the folder for the logs."""

    words: Tuple[str, ...]  # file name of the program, or the module after `python -m`
    options: Tuple[str, ...]
    taken: Tuple[str, ...]  # the user has chosen already when one of these stands in the command
    source: str


LOG_OPTIONS = (
    LogOptions(
        ("torchrun", "torch.distributed.run", "torch.distributed.launch"),
        ("--log-dir", "{logs}", "--redirects", "3"),
        ("--log-dir", "--log_dir", "-r", "--redirects", "-t", "--tee"),
        "torch 2.13 torchrun --help",
    ),
    LogOptions(
        ("mpirun", "mpiexec", "orterun"),
        ("--output-filename", "{logs}"),
        ("--output-filename", "-output-filename", "--output"),
        "Open MPI 4.1 mpirun(1)",
    ),
    LogOptions(
        ("msrun",),
        ("--log_dir={logs}", "--join=True"),
        ("--log_dir", "--join"),
        "MindSpore documentation, msrun; --join keeps msrun until the ranks have ended",
    ),
)
