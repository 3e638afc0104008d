"""Ranks in different collectives that one function called: a rank whose list there is longer or shorter than those of
the others called a different number of collectives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.wording import who
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_OF_TORCH = regex(r".*(^|/)torch/")
_FEWEST = 3


def odd_by_length(view: JobView, best: Candidate) -> Candidate:
    """The same verdict; where one list is longer or shorter in a minority of ranks, these are its culprits: with
    low confidence where the stacks alone name others, since lists may differ for another reason."""
    if best.cause != "collective-mismatch" or len(view.parties) < _FEWEST or best.absent:
        return best
    found = _odd(view.parties)
    if found is None:
        return best
    name, odd, usual = found
    lengths = sorted({one.thread.lengths[name] for one in odd if one.thread is not None})
    function, _, variable = name.rpartition(".")
    text = f"On {who(odd)}, `{variable}` in {function}() has {' or '.join(map(str, lengths))} items; elsewhere, {usual}"
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


def _odd(parties: Sequence[Party]) -> Optional[Tuple[str, List[Party], int]]:
    """The name of the only variable whose length differs, of the function that called all collectives; the parties with
    another length than most; and how many items most have."""
    callers = {_caller(one) for one in parties}
    if len(callers) != 1 or None in callers:
        return None
    function = str(callers.pop())
    names = {name for one in parties if one.thread for name in one.thread.lengths if name.startswith(f"{function}.")}
    told: List[Tuple[str, List[Party], int]] = []
    for name in sorted(names):
        lengths = [one.thread.lengths.get(name) if one.thread is not None else None for one in parties]
        usual, count = Counter(lengths).most_common(1)[0]
        if usual is None or None in lengths:
            return None
        if count < len(parties):
            odd = [one for one, length in zip(parties, lengths) if length != usual]
            told.append((name, odd, usual))
    if len(told) != 1 or 2 * len(told[0][1]) >= len(parties):
        return None
    return told[0]


def _caller(party: Party) -> Optional[str]:
    """The function of the program that called the collective."""
    python = (one for one in party.calls if one.language == "python" and not _OF_TORCH.match(one.file or ""))
    return next((one.function for one in python), None)
