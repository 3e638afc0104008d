"""Which processes (by selectors) and which attached ranks (by number) a command is about."""

from __future__ import annotations

from argparse import Namespace
from typing import List, Sequence, Tuple

from gdbext.capture.symbols.environ import read_environ
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.errors import UsageError
from gdbext.model.job import Job
from gdbext.model.text.digits import is_whole
from gdbext.model.text.ranges import ranges_text

_MOST_RANKS = 100_000


def selector_of(args: Namespace) -> Selector:
    return Selector(tuple(args.pids), args.name, args.pgid, args.parent, args.engine)


def as_words(args: Namespace) -> Tuple[str, ...]:
    """The same selectors as words for the shell's `gdbext`."""
    words: List[str] = []
    for option in ("name", "pgid", "parent", "engine"):
        value = getattr(args, option)
        if value is not None:
            words.append(f"--{option}={value}")
    return tuple(words) + tuple(str(pid) for pid in args.pids)


def jobs_of(args: Namespace) -> Tuple[Job, ...]:
    """The job that is meant, or with `--all` every job found. Raises UsageError, NothingFound."""
    selector = selector_of(args)
    jobs = find_jobs(ProcFS(), selector, read_environ)
    if getattr(args, "all", False) and jobs:
        return tuple(jobs)
    return (choose_job(jobs, selector, "llm-attach-all"),)


def parse_ranks(text: str) -> Tuple[int, ...]:
    """`0-3,7` as (0, 1, 2, 3, 7). Raises UsageError."""
    chosen: List[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not is_whole(first) or (dash and not is_whole(last)):
            raise UsageError(f"not a list of ranks: {text}", "write for example 0-3,7 or all")
        low, high = int(first), int(last or first)
        if high < low or high - low > _MOST_RANKS:
            raise UsageError(f"not a range of ranks: {part}")
        chosen += [rank for rank in range(low, high + 1) if rank not in chosen]
    return tuple(chosen)


def pick_rank(ranks: Sequence[AttachedRank], wanted: int) -> AttachedRank:
    """The attached rank with this number; a pid serves too, for ranks whose number is not known. Raises UsageError."""
    found = [rank for rank in ranks if rank.process.rank == wanted] or [
        rank for rank in ranks if rank.process.pid == wanted
    ]
    if not found:
        known = ranges_text(rank.process.rank for rank in ranks if rank.process.rank is not None)
        hint = f"attached ranks: {known}" if known else "llm-ranks lists what is attached"
        raise UsageError(f"no rank {wanted} is attached", hint)
    if len(found) > 1:
        pids = ", ".join(str(rank.process.pid) for rank in found)
        raise UsageError(f"{len(found)} attached processes are rank {wanted}", f"give the pid instead: {pids}")
    return found[0]


def pick_all(ranks: Sequence[AttachedRank], text: str) -> Tuple[AttachedRank, ...]:
    """`all`, or a list like `0-3,7` (of which every one must be attached). Raises UsageError."""
    if not ranks:
        raise UsageError("no rank is attached", "llm-attach-all attaches them")
    if text.strip() == "all":
        return tuple(ranks)
    return tuple(pick_rank(ranks, wanted) for wanted in parse_ranks(text))
