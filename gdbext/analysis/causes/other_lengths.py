"""Ranks in different collectives that one function called: a rank whose list there is longer or shorter than those of
the others, or whose loop has another number of items left, called a different number of collectives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.wording import who
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_OF_TORCH = regex(r".*(^|/)torch/")
_FEWEST = 3


class _Odd(NamedTuple):
    """What differs, those that have another number than most with theirs, and the number that most have."""

    what: str
    counts: Sequence[Tuple[Party, int]]
    usual: int


def odd_by_length(view: JobView, best: Candidate) -> Candidate:
    """The same verdict; where one list or loop is longer or shorter in a minority of ranks, these are its culprits:
    with low confidence where the stacks alone name others, since they may differ for another reason."""
    if best.cause != "collective-mismatch" or len(view.parties) < _FEWEST or best.absent:
        return best
    found = _odd(view.parties, _lengths) or _odd(view.parties, _loops)
    if found is None:
        return best
    odd = [one for one, _ in found.counts]
    numbers = " or ".join(map(str, sorted({number for _, number in found.counts})))
    text = f"On {who(odd)}, {found.what.format(numbers)}; elsewhere, {found.usual}"
    same = {one.index for one in odd} == {one.index for one in best.culprits}
    guess = "So" if same else "Most likely"
    return replace(
        best,
        confidence=best.confidence if same else "low",
        culprits=tuple(odd),
        victims=tuple(parties_without(view.parties, odd)),
        summary=f"{best.summary} {text}. {guess} {who(odd)} called a different number of collectives.",
        evidence=(*best.evidence, Evidence(text, odd[0].index, odd[0].id or None)),
    )


def _odd(parties: Sequence[Party], counts_of: Callable[[Party], Mapping[str, int]]) -> Optional[_Odd]:
    """Of what differs in the function that called all collectives; None where several things differ, or one was not
    read."""
    callers = {_caller(one) for one in parties}
    if len(callers) != 1 or None in callers:
        return None
    counts = [counts_of(one) for one in parties]
    found: List[_Odd] = []
    for what in sorted({what for one in counts for what in one}):
        numbers = [one.get(what) for one in counts]
        usual, count = Counter(numbers).most_common(1)[0]
        if usual is None or None in numbers:
            return None
        if count < len(parties):
            pairs = [(one, number) for one, number in zip(parties, numbers) if number is not None and number != usual]
            found.append(_Odd(what, pairs, usual))
    return found[0] if len(found) == 1 and 2 * len(found[0].counts) < len(parties) else None


def _lengths(party: Party) -> Mapping[str, int]:
    """How many items the lists have of the function that called its collective, by what to say of the number."""
    function, thread = _caller(party), party.thread
    lengths = thread.lengths.items() if thread is not None else ()
    own = ((name.rpartition("."), count) for name, count in lengths)
    return {f"`{name[2]}` in {function}() has {{}} items": count for name, count in own if name[0] == function}


def _loops(party: Party) -> Mapping[str, int]:
    """The same of the items that the innermost loop of that function has left."""
    function, thread = _caller(party), party.thread
    own = [one.left for one in (thread.loops if thread is not None else ()) if one.function == function]
    return {f"a loop in {function}() has {{}} items left": own[0]} if own else {}


def _caller(party: Party) -> Optional[str]:
    """The function of the program that called the collective."""
    python = (one for one in party.calls if one.language == "python" and not _OF_TORCH.match(one.file or ""))
    return next((one.function for one in python), None)
