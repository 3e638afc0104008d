"""One tensor over ranks: who holds the same values, and from where on the others differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.arithmetic.elements import Tolerance
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.analysis.tensors.whole_tensor import Progress, no_progress
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import HashGroup, RankProblem, TensorAgreement

_EXACT = Tolerance()


@dataclass(frozen=True)
class RankDigest:
    """What `index` selects of one rank's tensor, and the digest of that."""

    source: Source
    index: str
    digest: str


def digested(
    source: Source, index: str = "", calculator: Optional[Calculator] = None, progress: Progress = no_progress
) -> Maybe[RankDigest]:
    """The digest of one rank's tensor; Missing where not all of it can be read. Raises GdbextError as `digest`."""
    found = digest(source.info, source.read, index, calculator, progress)
    if found.digest is None:
        return Missing(found.problem or "not all elements can be read")
    return RankDigest(source, index.strip(), found.digest)


def agreement(
    name: str,
    ranks: Sequence[Tuple[int, Maybe[RankDigest]]],
    tolerance: Tolerance = _EXACT,
    calculator: Optional[Calculator] = None,
    progress: Progress = no_progress,
) -> TensorAgreement:
    """Group ranks by digest, the largest group first (of equal ones that of the lowest rank), and compare one rank of
    every other group with one of the first. A rank that cannot be read is named with its reason.
    """
    members: Dict[str, List[int]] = {}
    first: Dict[str, RankDigest] = {}
    unread: List[RankProblem] = []
    for rank, found in sorted(ranks, key=lambda one: one[0]):
        if isinstance(found, Missing):
            unread.append(RankProblem(rank, found.reason))
        else:
            members.setdefault(found.digest, []).append(rank)
            first.setdefault(found.digest, found)
    groups: List[HashGroup] = []
    for key in sorted(members, key=lambda key: (-len(members[key]), members[key])):
        one = first[key]
        other = first[groups[0].digest] if groups else None
        differs = difference(other.source, one.source, one.index, tolerance, calculator, progress) if other else None
        groups.append(HashGroup(tuple(members[key]), key, one.source.info, differs))
    index = first[groups[0].digest].index if groups else ""
    return TensorAgreement(name, tuple(groups), index, tuple(unread))
