"""Ranks that call different things: other collectives, other sizes, other communicators."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

from gdbext.analysis.across import waiting_for_others
from gdbext.analysis.candidate import Candidate, evidence_of
from gdbext.analysis.view import JobView, Party, by_key
from gdbext.analysis.wording import operation, who


def different_collectives(view: JobView) -> Optional[Candidate]:
    """Ranks wait in different collectives, or in the same one with different sizes."""
    members = [party for party in waiting_for_others(view) if party.in_collective]
    if len(members) < 2:
        return None
    for key, text in _DIFFERENCES:
        groups = by_key(members, key)
        if len(groups) > 1 and None not in groups:
            return _mismatch(view, members, list(groups.values()), text)
    return None


def _mismatch(view: JobView, members: List[Party], groups: List[List[Party]], text: str) -> Optional[Candidate]:
    known = {party.communicator for party in members}
    if len(known) > 1 and None not in known:
        return None  # different communicators: that may be in order, or a matter of ordering
    groups.sort(key=len)
    minority = [party for group in groups[:-1] for party in group]
    odd = minority if len(minority) < len(groups[-1]) else members
    same = len(known) == 1 and None not in known
    # A rank may be one collective ahead of another for a moment: the same operation must differ, or nobody move.
    counts = {party.operations for party in members}
    at_once = (len(counts) == 1 and None not in counts) or view.stands_still
    confidence = "high" if same and at_once and not view.threads_as_ranks else "medium"
    sides = "; ".join(f"{who(group)} in {_describe(group[0])}" for group in groups[:4])
    summary = (
        f"The ranks are in {text}: {sides}. "
        f"{'It is the same communicator, so' if same else 'If it is the same communicator,'} none of them can complete."
    )
    victims = [party for party in members if party not in odd]
    return Candidate(
        "collective-mismatch", confidence, 84, summary, tuple(odd), tuple(victims), (), evidence_of(odd, victims)
    )


def _describe(party: Party) -> str:
    return operation(party) + (f" of {party.count} elements" if party.count is not None else "")


_DIFFERENCES: Tuple[Tuple[Callable[[Party], object], str], ...] = (
    (lambda party: party.judged.collective, "different collectives"),
    (lambda party: party.count, "the same collective with different sizes"),
)


def opposite_order(view: JobView) -> Optional[Candidate]:
    """Ranks of the same two communicators wait in one each: they use them in different order."""
    members = [party for party in waiting_for_others(view) if party.communicator is not None]
    groups = by_key(members, lambda party: party.communicator)
    if len(groups) < 2 or len(members) < 2:
        return None
    sizes = {party.members for party in members}
    full = {len(members)} == sizes or (view.world_size is not None and sizes == {view.world_size})
    ordered = sorted(groups.values(), key=len)
    minority = [party for group in ordered[:-1] for party in group]
    odd = minority if len(minority) < len(ordered[-1]) else members
    victims = [party for party in members if party not in odd]
    sides = "; ".join(
        f"{who(group)} in {operation(group[0])} of communicator {group[0].communicator}" for group in ordered[:4]
    )
    summary = (
        f"The ranks wait in different communicators: {sides}. "
        f"{'All ranks belong to both, so' if full else 'Where they belong to both,'} each side waits for the other."
    )
    return Candidate(
        "multi-comm-ordering",
        "high" if full else "low",
        83 if full else 45,
        summary,
        tuple(odd),
        tuple(victims),
        (),
        evidence_of(odd, victims),
    )


def different_calls(view: JobView) -> Optional[Candidate]:
    """Ranks are in different calls of NCCL, of which at least one does not say which collective it is."""
    members = view.of("collective")
    if len(members) < 2 or len(members) < len(view.parties) or view.threads_as_ranks:
        return None
    groups = sorted(by_key(members, operation).values(), key=len)
    if len(groups) < 2 or all(party.judged.collective for party in members):
        return None
    minority = [party for group in groups[:-1] for party in group]
    odd = minority if len(minority) < len(groups[-1]) else members
    victims = [party for party in members if party not in odd]
    sides = "; ".join(f"{who(group)} in {operation(group[0])}" for group in groups[:4])
    summary = (
        f"The ranks are in different calls of the library: {sides}. "
        "If these are different collectives of one communicator, none of them can complete."
    )
    return Candidate(
        "collective-mismatch", "low", 61, summary, tuple(odd), tuple(victims), (), evidence_of(odd, victims)
    )


PATTERNS = (different_calls, different_collectives, opposite_order)
