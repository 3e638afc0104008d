"""Which ranks a call needs, by what it says itself: the members of its group, the other side of a message."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Sequence, Union

from gdbext.analysis.view.job_view import JobView, Party
from gdbext.knowledge.runtimes.untimed_calls import FROM_ONE, OF_ALL
from gdbext.model.waits import Node

ON_DEVICE, UNNAMED = "device", "a collective"
"""Key and label of what ranks wait for who only wait for their GPU: no call on their stacks says which it is."""


class Members:
    """Ranks by their numbers. Where these are not unique, or a rank is no member of the group that it is in, the calls
    number ranks in another way than the processes: then nothing is known."""

    def __init__(self, view: JobView) -> None:
        self._absent = frozenset(view.snapshot.absent)
        numbered = [party for party in view.parties if party.process.rank is not None]
        self._parties: Dict[Optional[int], Party] = {party.process.rank: party for party in numbered}
        inside = (party for party in view.parties if party.ranks and party.group != "init")
        fits = len(self._parties) == len(numbered) and not view.threads_as_ranks
        self._fits = fits and all(party.process.rank in party.ranks for party in inside)

    def of(self, parties: Sequence[Party]) -> Optional[FrozenSet[int]]:
        """The members of the group that these ranks are in; None where that is not known."""
        groups = {party.ranks for party in parties}
        return frozenset(groups.pop()) if self._fits and len(groups) == 1 and () not in groups else None

    def other_side(self, party: Party) -> Union[Party, int, None]:
        """Whom a send or receive waits for; the number of a rank that has no process."""
        number = party.other_side if self._fits else None
        if number is None or number == party.process.rank:
            return None
        return number if number in self._absent else self._parties.get(number)


def is_member(ranks: Optional[FrozenSet[int]], party: Party) -> bool:
    """Whether it may be one of these."""
    return ranks is None or party.process.rank is None or party.process.rank in ranks


class Meeting:
    """Ranks in the same collective, or those whose GPUs run it."""

    def __init__(self, node: Node, parties: List[Party], ranks: Optional[FrozenSet[int]] = None) -> None:
        self.node = node
        self.parties = parties
        self.ranks = ranks  # that must come, where the call says it
        self.members = frozenset(parties)
        self.communicators = {party.communicator for party in parties}
        self.sizes = {party.members for party in parties}
        self.counts = {party.operations for party in parties}
        self.roots = {party.root for party in parties}
        self.operations = {party.judged.collective for party in parties}
        self.of_all = all(party.judged.collective in OF_ALL for party in parties)
        self.from_one = all(party.judged.collective in FROM_ONE for party in parties)
        self.all_named = all(party.judged.collective for party in parties)
        self.named = any(party.judged.collective for party in parties) or any(
            party.group == "collective" for party in parties
        )

    @property
    def communicator(self) -> Optional[str]:
        return self.parties[0].communicator
