"""Log lines of libraries, the kernel, launchers and engines that say what went wrong, the most telling first.

A new line is a row: its pattern, what it means, where it is printed; the cause if it proves one; and what a process
that says so waits in, for texts that have no stack of it.
"""

from typing import Tuple

from gdbext.knowledge.log_lines import (
    communicator_setup,
    deaths,
    device_faults,
    lock_files,
    missing_ranks,
    own_deaths,
    timeouts_and_warnings,
)
from gdbext.knowledge.log_lines.steps_reached import (
    ANNOUNCED,
    DEFAULT_GROUP,
    FIRST_FAULTS,
    GROUP,
    JOINED,
    PASSED,
    PROGRESS,
    READY,
    STORE_KEY,
    TIMED_OUT,
    UNEVEN,
    WHAT,
)
from gdbext.knowledge.log_lines.writers import LAUNCHER_SAW, NAMED, RANK, WRITERS
from gdbext.knowledge.row_kinds import LogRule

__all__ = [
    "ANNOUNCED",
    "DEFAULT_GROUP",
    "FIRST_FAULTS",
    "GROUP",
    "JOINED",
    "LAUNCHER_SAW",
    "LOG_RULES",
    "NAMED",
    "PASSED",
    "PROGRESS",
    "RANK",
    "READY",
    "STORE_KEY",
    "TIMED_OUT",
    "UNEVEN",
    "WHAT",
    "WRITERS",
]

LOG_RULES: Tuple[LogRule, ...] = (
    *device_faults.RULES,
    *missing_ranks.RULES,
    *deaths.RULES,
    *communicator_setup.RULES,
    *lock_files.RULES,
    *own_deaths.RULES,
    *timeouts_and_warnings.RULES,
)
