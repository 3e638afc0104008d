"""Processes by their ranks, and where a piece of evidence was seen."""

from __future__ import annotations

from typing import Sequence

from gdbext.model.job import RankSnapshot
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Evidence
from gdbext.render.safe_text import clean, rank_set
from gdbext.render.style import Style


def names_of_processes(
    processes: Sequence[RankSnapshot], indexes: Sequence[int], style: Style, details: bool = False, most: int = 0
) -> str:
    """`ranks 0-2,5`; with `details` and few of them `rank 3 (pid 4714, node17)`; pids where ranks are unknown.

    `most`: characters of a set of ranks, half the width without it."""
    named = set(indexes)
    meant = [one for one in processes if one.index in named]
    if details and 0 < len(meant) <= 3:
        return ", ".join(_in_full(one, style) for one in meant)
    ranks = sorted(one.rank for one in meant if one.rank is not None)
    others = [one.label for one in meant if one.rank is None]
    pieces = [f"{rank_noun(ranks)} {rank_set(ranks, style, most or style.width // 2)}"] if ranks else []
    if len(others) > 3:
        others = [*others[:3], f"{counted(len(others) - 3, 'more process', 'more processes')}"]
    return ", ".join(pieces + others)


def _in_full(process: RankSnapshot, style: Style) -> str:
    pid = f"pid {process.pid}" if process.is_named and process.pid is not None else ""
    details = ", ".join(filter(None, [pid, clean(process.host, style)]))
    return f"{process.label} ({details})" if details else process.label


def rank_noun(ranks: Sequence[int]) -> str:
    """`rank` or `ranks`."""
    return "rank" if len(ranks) == 1 else "ranks"


def statement(processes: Sequence[RankSnapshot], item: Evidence, style: Style) -> str:
    """`rank 3 waits for the device in cudaMallocHost [rank 3, thread 12, frame 4]`: what was seen, and where."""
    return " ".join(filter(None, [clean(item.text, style), seen_at(processes, item, style)]))


def seen_at(processes: Sequence[RankSnapshot], item: Evidence, style: Style) -> str:
    """`[rank 3, thread 12, frame 4]`; "" where that is not known."""
    process = next((one for one in processes if one.index == item.process), None)
    place = [process.label] if process else []
    if item.thread is not None:
        place.append(f"thread {clean(item.thread, style)}")
    if item.frame is not None:
        threads = process.threads if process else ()
        thread = next((one for one in threads if one.id == item.thread), None)
        place.append(f"frame {thread.number_of(item.frame) if thread else item.frame}")
    return f"[{', '.join(place)}]" if place else ""
