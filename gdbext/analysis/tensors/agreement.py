"""One tensor over ranks: who holds the same values, and from where on the others differ."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Union

from gdbext.analysis.tensors.calculator import Calculator
from gdbext.analysis.tensors.comparing import Tolerance
from gdbext.analysis.tensors.difference import Source, difference
from gdbext.analysis.tensors.digest import digest
from gdbext.analysis.tensors.statistics import Progress, silent
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import HashGroup, RankProblem, TensorAgreement, TensorDiff

_EXACT = Tolerance()


def agreement(
    name: str,
    sources: Mapping[int, Union[Source, Missing]],
    index: str = "",
    tolerance: Tolerance = _EXACT,
    calculator: Optional[Calculator] = None,
    progress: Progress = silent,
) -> TensorAgreement:
    """Group ranks by digest, the largest group first (of equal ones that of the lowest rank), and compare one rank of
    every other group with one of the first. A rank that cannot be read is named with its reason; an index that is
    typed wrongly raises `UsageError`.
    """
    found: Dict[str, List[int]] = {}
    unread: List[RankProblem] = []
    for rank, source in sorted(sources.items()):
        key = _digest_of(source, index, calculator, progress)
        if isinstance(key, Missing):
            unread.append(RankProblem(rank, key.reason))
        else:
            found.setdefault(key, []).append(rank)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[1]))
    groups: List[HashGroup] = []
    for key, ranks in ordered:
        source = sources[ranks[0]]
        assert isinstance(source, Source)
        differs = _compared(sources, ranks[0], groups[0].ranks[0], index, tolerance, calculator) if groups else None
        groups.append(HashGroup(tuple(ranks), key, source.info, differs))
    return TensorAgreement(name, tuple(groups), index.strip(), tuple(unread))


def _digest_of(
    source: Union[Source, Missing], index: str, calculator: Optional[Calculator], progress: Progress
) -> Union[str, Missing]:
    if isinstance(source, Missing):
        return source
    try:
        found = digest(source.info, source.read, index, calculator, progress)
    except UsageError:
        raise
    except GdbextError as error:
        return Missing(str(error))
    return found.digest or Missing(found.problem or "not read")


def _compared(
    sources: Mapping[int, Union[Source, Missing]],
    rank: int,
    first: int,
    index: str,
    tolerance: Tolerance,
    calculator: Optional[Calculator],
) -> TensorDiff:
    here, there = sources[rank], sources[first]
    assert isinstance(here, Source) and isinstance(there, Source)
    return difference(here, there, index, tolerance, calculator)
