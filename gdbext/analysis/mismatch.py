"""Ranks that call different things: other collectives, other sizes, other communicators."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Tuple

from gdbext.analysis.across import waiting_for_others
from gdbext.analysis.candidate import Candidate, evidence_of
from gdbext.analysis.view import JobView, Party, by_key, without
from gdbext.analysis.wording import operation, who

_Groups = Dict[object, List[Party]]
_MOST_SIDES = 4


def different_collectives(view: JobView) -> Optional[Candidate]:
    """Ranks wait in different collectives, or in the same one with different sizes."""
    members = [party for party in waiting_for_others(view) if party.in_collective]
    if len(members) < 2:
        return None
    for key, text in _DIFFERENCES:
        groups = by_key(members, key)
        if len(groups) > 1 and None not in groups:
            return _mismatch(view, members, groups, text)
    return None


def _mismatch(view: JobView, members: List[Party], groups: _Groups, text: str) -> Optional[Candidate]:
    known = {party.communicator for party in members}
    if len(known) > 1 and None not in known:
        return None  # different communicators: that may be in order, or a matter of ordering
    same = len(known) == 1 and None not in known
    # A rank may be one collective ahead of another for a moment: the same operation must differ, or nobody move.
    counts = {party.operations for party in members}
    at_once = (len(counts) == 1 and None not in counts) or view.stands_still
    confidence = "high" if same and at_once and not view.threads_as_ranks else "medium"
    lead = "It is the same communicator, so" if same else "If it is the same communicator,"
    return _candidate(
        ("collective-mismatch", confidence, 84),
        *(members, groups, _with_size),
        *(f"The ranks are in {text}", f"{lead} none of them can complete."),
    )


def _with_size(party: Party) -> str:
    return operation(party) + (f" of {party.count} elements" if party.count is not None else "")


def _with_communicator(party: Party) -> str:
    return f"{operation(party)} of communicator {party.communicator}"


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
    lead = "All ranks belong to both, so" if full else "Where they belong to both,"
    return _candidate(
        ("multi-comm-ordering", "high" if full else "low", 83 if full else 45),
        *(members, groups, _with_communicator),
        *("The ranks wait in different communicators", f"{lead} each side waits for the other."),
    )


def different_calls(view: JobView) -> Optional[Candidate]:
    """Ranks are in different calls of NCCL, of which at least one does not say which collective it is."""
    members = view.of("collective")
    if len(members) < 2 or len(members) < len(view.parties) or view.threads_as_ranks:
        return None
    groups = by_key(members, operation)
    if len(groups) < 2 or all(party.judged.collective for party in members):
        return None
    return _candidate(
        ("collective-mismatch", "low", 61),
        *(members, groups, operation),
        "The ranks are in different calls of the library",
        "If these are different collectives of one communicator, none of them can complete.",
    )


def _candidate(
    verdict: Tuple[str, str, int],
    members: List[Party],
    groups: _Groups,
    describe: Callable[[Party], str],
    text: str,
    ending: str,
) -> Candidate:
    """All but the largest group are to blame, unless they are half of the members: then everybody is."""
    *smaller, largest = sorted(groups.values(), key=len)
    minority = [party for group in smaller for party in group]
    odd = minority if len(minority) < len(largest) else members
    victims = without(members, odd)
    sides = "; ".join(f"{who(group)} in {describe(group[0])}" for group in [*smaller, largest][:_MOST_SIDES])
    summary = f"{text}: {sides}. {ending}"
    return Candidate(*verdict, summary, tuple(odd), tuple(victims), (), evidence_of(odd, victims))


PATTERNS = (different_calls, different_collectives, opposite_order)
