"""How many gdbs read copies side by side: what the work is worth, and what cores and memory there are."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence

from gdbext.capture.proc_texts import text_of

PARALLEL_SYMBOL_BYTES = 2 << 20
"""Bytes of stacks from which a gdb more is worth its start: a torch rank with 100 threads, 1,900 frames, has 0.6 MiB.

For 16 ranks of 50 short stacks two gdbs took twice the processor time of one, and longer.
"""
MOST = 16
_BASE = 96 << 20  # bytes of a gdb with the excerpts of torch and the copies of eight ranks
_LEAST = 512 << 20  # bytes
_STACK = 16 << 20  # bytes that a thread of gdb reserves
_SHARE = 2  # we take at most one in so many of the bytes at hand
_GROWTH = 8  # bytes that gdb 13.1 took for a byte of symbol table or .debug_info, when these hold nothing but functions


def gdbs_for(ranks: Sequence[Dict[str, Any]], stacks: int, wanted: int = 0) -> int:
    """How many gdbs for the rows of a request (collect/gdb_runs/request.py) with so many bytes of stacks.

    `wanted`: so many were asked for.
    """
    return most_gdbs(len(ranks), stacks, wanted, _bytes_of_one(ranks))


def most_gdbs(ranks: int, stacks: int, wanted: int = 0, each: int = _BASE) -> int:
    """The same, as long as nobody knows the files. `each`: bytes that a gdb needs."""
    if wanted > 0:
        return max(1, min(wanted, ranks))
    count = min(ranks, stacks // PARALLEL_SYMBOL_BYTES, len(os.sched_getaffinity(0)), MOST)
    memory = memory_at_hand() if count > 1 else None
    if memory is not None:
        count = min(count, memory // _SHARE // each)
    return max(1, count)


def memory_of_gdb(processes: int = 1) -> Optional[int]:
    """Bytes of data that one of so many gdbs may have with the memory at hand; None when unknown. The threads of a gdb
    take some by their number alone."""
    memory = memory_at_hand()
    return None if memory is None else max(memory // _SHARE // processes, _LEAST) + _STACK * (os.cpu_count() or 1)


def readable() -> Optional[int]:
    """Bytes of symbols and debug information that one gdb may go through with the memory at hand; None when unknown."""
    memory = memory_at_hand()
    return None if memory is None else max(0, memory // _SHARE - _BASE) // _GROWTH


def _bytes_of_one(ranks: Sequence[Dict[str, Any]]) -> int:
    """Of every file with debug information a gdb keeps an index, and maps what it reads of it."""
    sizes: Dict[str, int] = {file["path"]: file["size"] for rank in ranks for file in rank["files"]}
    return _BASE + sum(sizes.values())


def memory_at_hand(proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> Optional[int]:
    """Bytes that can be had without swapping, of the host and of the container we are in; None when unknown."""
    found = [_available(f"{proc}/meminfo"), _left(groups, "memory.max", "memory.current")]
    found.append(_left(f"{groups}/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))
    known = [one for one in found if one is not None]
    return min(known) if known else None


def _available(path: str) -> Optional[int]:
    for line in text_of(path).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _left(folder: str, limit: str, used: str) -> Optional[int]:
    most, now = text_of(f"{folder}/{limit}").strip(), text_of(f"{folder}/{used}").strip()
    return max(0, int(most) - int(now)) if most.isdigit() and now.isdigit() else None
