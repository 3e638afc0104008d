"""The communicators of all ranks, joined by their hash: which members are there, who has launched less, what failed."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from gdbext.knowledge.runtimes.nccl import COUNTED, RESULTS
from gdbext.model.communicator import Communicator, CommunicatorGroup, Member, Uneven
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.job import RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import pieces, ranks

FINE, IN_PROGRESS = RESULTS[0], RESULTS[7]
MOST_UNSEEN = 4096  # ranks that are named as not seen; a communicator may claim a million members
_MOST_SIDES = 4
_MOST_PIECES = 12  # of a set of ranks: `0-3,7` has two

CAVEAT = (
    "Counts are launches by the host, not completed work. They do not include sends and receives, and may miss "
    "launches of replayed CUDA graphs."
)

Labels = Mapping[int, RankSnapshot]
"""Processes by their index."""


def communicator_table(processes: Sequence[RankSnapshot]) -> CommunicatorTable:
    """All communicators of the processes; linear in their number."""
    ends: Dict[Tuple[int, int], List[Member]] = {}
    unreadable: List[Member] = []
    by_index = {process.index: process for process in processes}
    for process in processes:
        for one in process.communicators:
            member = Member(process.index, one)
            if one.readable and isinstance(one.hash, int) and isinstance(one.n_ranks, int):
                ends.setdefault((one.hash, one.n_ranks), []).append(member)
            else:
                unreadable.append(member)
    groups = tuple(_group(hash, n_ranks, members, by_index) for (hash, n_ranks), members in ends.items())
    counted = any(not isinstance(one.communicator.counts, Missing) for group in groups for one in group.members)
    return CommunicatorTable(groups, tuple(processes), tuple(unreadable), (CAVEAT,) if counted else ())


def _group(hash: int, n_ranks: int, members: List[Member], labels: Labels) -> CommunicatorGroup:
    members.sort(key=lambda member: (rank_of(member.communicator), member.process))
    seen = {rank_of(member.communicator) for member in members}
    unseen = tuple(rank for rank in range(min(n_ranks, MOST_UNSEEN)) if rank not in seen)
    moving = any(member.communicator.moved for member in members)
    uneven = tuple(_uneven(members))
    notes = [difference(members, one, labels) for one in uneven]
    if uneven and moving:
        notes.append("it is in use: gdbext read these counts at different times")
    notes += _failures(members, labels)
    return CommunicatorGroup(
        hash=hash,
        n_ranks=n_ranks,
        members=tuple(members),
        unseen=unseen,
        uneven=uneven,
        notes=tuple(notes),
        moving=moving,
    )


def rank_of(one: Communicator) -> int:
    """Its rank in the communicator."""
    return one.rank if isinstance(one.rank, int) else -1


def _uneven(members: Sequence[Member]) -> Iterator[Uneven]:
    """Kinds that those members whose counts were read have launched unequally often."""
    counted = {
        rank_of(member.communicator): member.communicator.counts
        for member in members
        if not isinstance(member.communicator.counts, Missing)
    }
    for kind in COUNTED:
        counts = {rank: known[kind] for rank, known in counted.items() if kind in known}
        if len(set(counts.values())) > 1:
            yield Uneven(kind, counts)


def difference(members: Sequence[Member], uneven: Uneven, labels: Labels) -> str:
    """`ranks 0,2 have launched all_reduce 4 times, rank 1 only 3 times`."""
    places = {rank_of(member.communicator): member.process for member in members}
    sides: Dict[int, List[int]] = {}
    for rank, count in uneven.counts.items():
        sides.setdefault(count, []).append(places[rank])
    first, *others = sorted(sides.items(), reverse=True)
    text = f"{_names(first[1], labels)} launched {uneven.kind} {_times(first[0])}"
    more = f" and {len(others) - _MOST_SIDES} other counts" if len(others) > _MOST_SIDES else ""
    return text + "".join(f", {_names(side, labels)} {_only(count)}" for count, side in others[:_MOST_SIDES]) + more


def _only(count: int) -> str:
    return f"only {_times(count)}" if count else _times(count)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times" if count else "never"


def _failures(members: Sequence[Member], labels: Labels) -> Iterator[str]:
    found: Dict[str, List[int]] = {}
    for member in members:
        text = failure(member.communicator) or (
            "it is still being set up" if is_unfinished(member.communicator) else ""
        )
        if text:
            found.setdefault(text, []).append(member.process)
    for text, processes in found.items():
        yield f"{_names(processes, labels)}: {text}"


def _names(processes: Iterable[int], labels: Labels) -> str:
    known = [labels[index] for index in dict.fromkeys(processes)]
    numbers = [process.rank for process in known if process.rank is not None]
    if len(numbers) == len(known):
        apart = pieces(numbers)
        if len(apart) <= _MOST_PIECES:
            return ranks(numbers)
        return f"{len(numbers):,} ranks ({','.join(apart[:_MOST_PIECES])},...)"
    names = [process.label for process in known]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def failure(one: Communicator) -> str:
    """What is wrong with one end by its own marks: an error, an abort, a revocation; "" when there is nothing."""
    if isinstance(one.async_error, str) and one.async_error not in (FINE, IN_PROGRESS):
        return f"asynchronous error {one.async_error}"
    if isinstance(one.init_state, str) and one.init_state not in (FINE, IN_PROGRESS):
        return f"its set-up failed with {one.init_state}"
    if one.aborted is True:
        return "it was aborted"
    return "it was revoked" if one.revoked is True else ""


def is_unfinished(one: Communicator) -> bool:
    """Whether it is still being set up."""
    return one.init_state == IN_PROGRESS


def is_wrong(group: CommunicatorGroup) -> bool:
    """Whether a person should look at it: an error, or members that stand still and have launched unequally often."""
    ends = [member.communicator for member in group.members]
    return any(failure(one) for one in ends) or (bool(group.uneven) and not group.moving)


def why_nothing(processes: Sequence[RankSnapshot]) -> str:
    """Why there is no communicator to show, in one line."""
    notes = dict.fromkeys(note for process in processes for note in process.communicator_notes + process.problems)
    return "; ".join(["no NCCL communicator was found", *list(notes)[:3]])
