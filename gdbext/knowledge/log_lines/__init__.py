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
from gdbext.knowledge.log_lines.writers import LAUNCHER_SAW, NAMED, RANK, WRITERS
from gdbext.knowledge.row_kinds import LogRule

__all__ = [
    "GROUP",
    "JOINED",
    "LAUNCHER_SAW",
    "LOG_RULES",
    "NAMED",
    "PROGRESS",
    "RANK",
    "READY",
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

TIMED_OUT = (
    r"Work(?:N|H|X|M|E)CCL\(SeqNum=(?P<seq>\d{1,12}), OpType=(?P<op>\w{1,40})"
    r"(?:, NumelIn=(?P<count>\d{1,20}))?"
)
"""The collective that torch's watchdog gave up, with its number in the order of its process group."""

READY = r"(?P<tensor>[^\s,]{1,300}) \[ready ranks: ?(?P<ranks>\d+(?:, ?\d+)*)\]"
"""An operation that waits in Horovod's coordinator, and the ranks that have submitted it."""

PROGRESS = (
    r"last enqueued (?:\w{4} )?work: (?P<enqueued>-?\d{1,12}), "
    r"last completed (?:\w{4} )?work: (?P<completed>-?\d{1,12})"
)
"""How far a rank got in its process group."""

JOINED = (
    r"rank:? (?P<rank>\d{1,6}),.{0,120}"
    r"\(world_size=(?P<all>\d{1,6}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,6})"
)
"""torch's store counts who has joined; the name of the number is another one from torch 2.1 on."""

GROUP = r"PG(?: ID \S{1,20})? GUID (?P<group>[^\s\])]{1,80})"
"""Name of the process group; lines without it are of the default one."""

WHAT = r"^what\(\): +(?P<text>\S.*)"
"""How C++'s runtime begins the line behind that of an exception that nobody caught: the exception's text."""

UNEVEN = ("ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV", "GATHER", "SCATTER", "BROADCAST", "COALESCED", "UNKNOWN")
"""Operations whose sizes may differ between ranks, or whose number means something else on the two sides."""
