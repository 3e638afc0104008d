"""What the counts in NCCL's communicators prove: ranks that launched different things, or the same in another order.

A rank counts a collective when it launches it. Ranks that run the same program launch the same sequence, so at any
moment one of two ranks has launched a beginning of what the other has: it can be behind in some counts and ahead in
none. Ahead in one and behind in another means that their sequences differ.
"""

from __future__ import annotations

import dataclasses
from itertools import combinations
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.communicators.joined_communicators import communicator_table, failure
from gdbext.analysis.unread.open_stacks import memory_alone
from gdbext.analysis.unread.unread_ranks import labels
from gdbext.analysis.view.candidate import Candidate, blame, one_lower
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.model.codes import Given
from gdbext.model.communicator import CommunicatorGroup
from gdbext.model.missing import Missing
from gdbext.model.verdict import Evidence

MOST_COMPARED = 32  # communicators, each with each
_MOST_LINES = 4
_NOT_LAUNCHED = ("implicit-sync-vs-collective", "lazy-module-load-vs-collective", "missing-rank")
"""Causes that say: the culprits have not launched what the others have."""

Counts = Tuple[int, ...]
"""Launches by kind, in one order for all members of a communicator."""


class _Launches:
    """The counts of one communicator by process; only where every process has one end of it."""

    def __init__(self, group: CommunicatorGroup) -> None:
        self.group = group
        kinds = tuple(one.kind for one in group.uneven)
        self.by_process: Dict[int, Counts] = {}
        for member in group.members:
            counts = member.communicator.counts
            if not isinstance(counts, Missing):
                self.by_process[member.process] = tuple(counts.get(kind, 0) for kind in kinds)
        self.usable = len(self.by_process) == len(group.members) and not group.moving

    def sure(self, view: JobView) -> str:
        """ "high" when no count changed while it was read: two reads agree, or the ranks were held."""
        held = {process.index for process in view.snapshot.processes if process.given in (Given.HELD, Given.CORE)}
        quiet = all(member.communicator.moved is False or member.process in held for member in self.group.members)
        return "high" if quiet else "medium"

    def behind(self) -> List[int]:
        """Processes that have launched fewer than others, and more of nothing."""
        most = tuple(map(max, zip(*self.by_process.values()))) if self.group.uneven else ()
        return [index for index, counts in self.by_process.items() if counts != most]

    def crossed(self) -> bool:
        """Whether two members are ahead of each other, each in another kind of collective."""
        return _crossed(self.by_process)


def _crossed(launched: Mapping[int, Counts]) -> bool:
    """Whether two of them are ahead of each other: when none are, each contains the one before it in sorted order."""
    ordered = sorted(set(launched.values()))
    return any(any(a > b for a, b in zip(low, high)) for low, high in zip(ordered, ordered[1:]))


def _launches(view: JobView) -> List[_Launches]:
    if memory_alone(view):
        return []  # ranks that run may be between two launches
    if view.threads_as_ranks:
        return []
    groups = communicator_table(view.snapshot.processes).groups
    return [one for one in map(_Launches, groups) if one.usable and len(one.by_process) > 1]


def different_launches(view: JobView) -> Optional[Candidate]:
    """Members of one communicator have launched different collectives on it."""
    for one in _launches(view):
        if one.crossed():
            text = f"The ranks launched different collectives on communicator {one.group.name}"
            ending = "The last collective of each rank cannot complete"
            return _candidate(view, "collective-mismatch", text, ending, one.by_process, [one.group], one.sure(view))
    return None


def crossed_order(view: JobView) -> Optional[Candidate]:
    """Of two communicators some ranks are ahead in one and others in the other: they use them in different order."""
    uneven = [one for one in _launches(view) if one.group.uneven and not one.crossed()]
    for one, other in combinations(uneven[:MOST_COMPARED], 2):
        shared = [index for index in one.by_process if index in other.by_process]
        joined = {index: (*one.by_process[index], *other.by_process[index]) for index in shared}
        if _crossed(joined) and all(_waits_for_others(party) for party in _parties(view, shared)):
            text = f"The ranks use communicators {one.group.name} and {other.group.name} in different order"
            ending = "Each side waits for what the other launches later"
            sure = "high" if view.stands_still else "medium"  # threads of their own may use each without an order
            return _candidate(view, "multi-comm-ordering", text, ending, joined, [one.group, other.group], sure)
    return None


def _waits_for_others(party: Party) -> bool:
    """Whether its wait can be for what the others launch later; a kernel of its own that it cannot launch is another
    reason to be behind."""
    return party.group in COMMUNICATION and (party.group != "launch" or party.in_collective)


def ahead_in(view: JobView, ahead: Sequence[Party], behind: Sequence[Party]) -> Optional[str]:
    """The kind of collective that all of these have launched and none of those, if there is one such kind."""
    found = set()
    for one in _launches(view):
        if not all(party.index in one.by_process for party in (*ahead, *behind)):
            continue
        for at, uneven in enumerate(one.group.uneven):
            fewest = min((one.by_process[party.index][at] for party in ahead), default=0)
            most = max((one.by_process[party.index][at] for party in behind), default=fewest)
            if fewest > most:
                found.add(uneven.kind)
    return found.pop() if len(found) == 1 else None


def launched_less(view: JobView) -> Optional[Candidate]:
    """Nothing else tells the ranks apart, and few of them have launched fewer collectives while nobody moves."""
    for one in _launches(view):
        late = _parties(view, one.behind())
        if one.crossed() or not late or 2 * len(late) >= len(one.by_process) or not view.stands_still:
            continue
        others = parties_without(_parties(view, list(one.by_process)), late)
        summary = (
            f"No rank is making progress, and {who(late)} {verb(late, 'has', 'have')} launched fewer collectives on "
            f"communicator {one.group.name} than {who(others)}: {one.group.notes[0]}. {start(who(late[:1]))} is in "
            f"{where(late[0])}."
        )
        return blame("missing-rank", "medium", summary, late, others)
    return None


PATTERNS = (different_launches, crossed_order, launched_less)


def _candidate(
    view: JobView,
    cause: str,
    text: str,
    ending: str,
    counts: Dict[int, Counts],
    groups: Sequence[CommunicatorGroup],
    confidence: str,
) -> Candidate:
    """The culprits are the ranks with the rarest counts, unless they are half of all."""
    sides: Dict[Counts, List[int]] = {}
    for index, vector in counts.items():
        sides.setdefault(vector, []).append(index)
    largest = max(sides.values(), key=len)
    members = _parties(view, list(counts))
    odd = [party for party in members if party.index not in largest]
    odd = odd if 2 * len(odd) < len(members) else members
    victims = parties_without(members, odd)
    notes = "; ".join(
        f"{note} on {group.name}" if len(groups) > 1 else note for group in groups for note in group.notes
    )
    summary = f"{text}: {notes}. {ending}."
    return blame(cause, confidence, summary, odd, victims)


def _parties(view: JobView, indexes: Sequence[int]) -> List[Party]:
    wanted = set(indexes)
    return [party for party in view.parties if party.index in wanted]


def with_launch_counts(view: JobView, best: Candidate) -> Candidate:
    """The candidate with what the communicators say: surer where they prove it, less sure where they contradict it."""
    lines = [Evidence(text, process) for text, process in _lines(view)]
    confidence = best.confidence
    if best.cause in _NOT_LAUNCHED and best.culprits:
        support = _support(view, best)
        if support is False:
            confidence = one_lower(confidence)
            text = (
                f"{who(best.culprits)} launched as many collectives as the others on every communicator that they share"
            )
            lines.insert(0, Evidence(f"against it: {text}", best.culprits[0].index))
        elif support is True and confidence == "medium" and _stuck(view, best.culprits):
            confidence = "high"
    return dataclasses.replace(best, confidence=confidence, evidence=(*best.evidence, *lines[:_MOST_LINES]))


def _stuck(view: JobView, culprits: Sequence[Party]) -> bool:
    """Whether two looks saw the culprits in the same calls, none a wait for peers, and no rank launched more."""
    away = all(one.group not in COMMUNICATION and one.index not in view.moved for one in culprits)
    ends = [one for process in view.snapshot.processes for one in process.communicators if one.readable]
    return view.has_two_looks and away and all(one.moved is False for one in ends)


def _support(view: JobView, best: Candidate) -> Optional[bool]:
    """Whether the culprits are behind on a communicator that they share with victims; None when that is not known."""
    culprits, victims = ({party.index for party in parties} for parties in (best.culprits, best.victims))
    known = False
    for one in _launches(view):
        members = set(one.by_process)
        if culprits <= members and victims & members:
            behind = set(one.behind())
            if behind & culprits:
                return True if behind <= culprits else None
            known = True
    return False if known else None


def _lines(view: JobView) -> Iterator[Tuple[str, Optional[int]]]:
    """What is worth a line of evidence: errors first, then counts that differ, then what is still being set up."""
    groups = [group for group in communicator_table(view.snapshot.processes).groups if group.notes and not group.moving]
    for group in sorted(groups, key=_weight):
        members = [member for member in group.members if failure(member.communicator)] or group.members
        indexes = tuple(dict.fromkeys(member.process for member in members))
        read = labels([process for process in view.snapshot.processes if process.index in indexes])
        text = f"communicator {group.name} ({group.n_ranks} ranks{f', read in {read}' if len(indexes) > 1 else ''})"
        yield f"{text}: {'; '.join(group.notes)}", indexes[0] if len(indexes) == 1 else None


def _weight(group: CommunicatorGroup) -> int:
    if any(failure(member.communicator) for member in group.members):
        return 0
    return 1 if group.uneven else 2
