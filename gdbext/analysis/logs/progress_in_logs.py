"""How far ranks came, as their logs count it: work of torch, collectives that it announces, members of a store."""

from __future__ import annotations

from typing import Dict, List, Match, Optional, Tuple

from gdbext.analysis.logs.lines_of_logs import Line, all_lines
from gdbext.analysis.view.job_view import JobView
from gdbext.analysis.view.wording import start
from gdbext.knowledge.log_lines import ANNOUNCED, DEFAULT_GROUP, JOINED, PROGRESS, STORE_KEY
from gdbext.model.job import RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks

_PROGRESS, _COUNTED, _ANNOUNCED = map(regex, (PROGRESS, JOINED, ANNOUNCED))
_OF_ALL, _KEY = map(regex, (DEFAULT_GROUP, STORE_KEY))


def how_far(view: JobView, process: Optional[RankSnapshot]) -> str:
    """` Rank 1 had completed work 715 ...`: what torch's counters say of the rank whose watchdog gave up."""
    counted = (_PROGRESS.search(text) for one, text in all_lines(view) if one is process)
    done, asked = next(((int(one["completed"]), int(one["enqueued"])) for one in counted if one), (0, 0))
    if process is None or done >= asked:
        return ""
    reached = f"work item {done}" if done >= 0 else "no work item"
    return (
        f" {start(process.label)} had completed {reached} and enqueued items up to {asked}, so it did make the call "
        "that timed out. Compare the other ranks' logs to see how far each of them got."
    )


def counted_by_one(view: JobView) -> bool:
    """Whether torch's counters are those of one rank alone, so that nothing can be compared with them."""
    return len({process.index for process, text in all_lines(view) if process and _PROGRESS.search(text)}) == 1


def announced(view: JobView, telling: Line) -> str:
    """Which ranks are behind in the collectives that torch announces, where no line tells more than that."""
    if not _ANNOUNCED.search(telling.text):
        return ""
    last: Dict[int, Tuple[int, str]] = {}
    for process, text in all_lines(view):
        found = _ANNOUNCED.search(text)
        if found is not None and process is not None and process.rank is not None:
            last[process.rank] = max(last.get(process.rank, (-1, "")), (int(found["seq"]), found["op"].lower()))
    if len(last) < 2:
        return ""
    places: Dict[Tuple[int, str], List[int]] = {}
    for rank, reached in last.items():
        places.setdefault(reached, []).append(rank)
    told = "; ".join(f"{ranks(places[one])} no. {one[0]} ({one[1]})" for one in sorted(places, reverse=True)[:4])
    text = f"The last collectives that torch logged: {told}."
    behind = sorted(rank for rank, (number, _) in last.items() if number < max(last.values())[0])
    if not behind:
        return f"{text} None of these ranks is behind."
    late = f"{start(ranks(behind))} {'is' if len(behind) == 1 else 'are'} behind"
    return (
        f"{text} {late}, unless the log was cut off before the next line of {ranks(behind)}, or the numbers belong to "
        "different process groups (each group counts separately)."
    )


def members_counted(view: JobView) -> str:
    """` According to the log, rank 0 has joined, and rank 1 has not.`, where torch's store counts the members."""
    found = _counts(view)
    if not found:
        return ""
    joined, members = max(int(one["joined"]) for one in found), int(found[-1]["all"])
    if is_crowded(view):
        return (
            f" The log counts {joined} members where the world size is {members}: another job, or what is left of an "
            "earlier run, uses the same store, or the ranks were started with different world sizes."
        )
    waiting = sorted({int(one["rank"]) for one in found if one["rank"]})
    missing = [rank for rank in range(members) if rank not in waiting]
    of_all = all(_OF_ALL.search(one.string) for one in found) and len(missing) == members - len(waiting)
    if of_all and joined == len(waiting) and missing:
        here, not_here = (f"{ranks(some)} {_have(some)}" for some in (waiting, missing))
        return f" According to the log, {here} joined, and {not_here} not."
    those = f", among them {ranks(waiting)}" if waiting else ""
    return f" According to the log, {joined} of {members} members {'has' if joined == 1 else 'have'} joined{those}."


def is_crowded(view: JobView) -> bool:
    """Whether torch's store counts more members than its group has."""
    return any(int(one["joined"]) > int(one["all"]) for one in _counts(view))


def _counts(view: JobView) -> List[Match[str]]:
    """Of one group: the last that the lines tell of."""
    found = [match for _, text in all_lines(view) for match in [_COUNTED.search(text)] if match]
    keys = [_KEY.search(one.group()) for one in found]
    last = keys[-1] if keys else None
    return [one for one, key in zip(found, keys) if last is None or key is None or key["key"] == last["key"]]


def _have(some: List[int]) -> str:
    return "has" if len(some) == 1 else "have"
