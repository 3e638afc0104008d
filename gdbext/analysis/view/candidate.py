"""What a pattern found: a cause with who and how sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import who
from gdbext.knowledge.labels import CONFIDENCE, OWN_SLEEPS, WAIT_KINDS
from gdbext.model.considered_hypotheses import Considered
from gdbext.model.verdict import Evidence
from gdbext.model.waits import Edge, Hypothesis, Node

MOST_EVIDENCE = 12


@dataclass(frozen=True)
class Candidate:
    """One possible verdict. Which one is given, analysis/waits/which_cause_wins.py says."""

    cause: str
    confidence: str
    summary: str
    culprits: Tuple[Party, ...] = ()
    victims: Tuple[Party, ...] = ()
    absent: Tuple[int, ...] = ()
    evidence: Tuple[Evidence, ...] = ()
    decided_by: Optional[str] = None  # as in `Verdict`
    chain: Tuple[Edge, ...] = ()  # as in `Verdict`, and so are the next four
    root: Optional[Node] = None
    alternatives: Tuple[Hypothesis, ...] = ()
    unexplained: Tuple[int, ...] = ()
    considered: Considered = field(default_factory=Considered)
    itself: bool = False  # its culprit waits for what it holds, where no chain shows that


def shows(party: Party, text: str = "") -> Evidence:
    """The party's decisive frame as evidence."""
    judged = party.judged
    meaning = "sleeps" if _sleeps(party) else WAIT_KINDS[judged.kind].split(":")[0]
    said = text or f"{who([party])} is in {where(party)}: {meaning}"
    if not text and party.group == "stopped" and (judged.helper is not None or judged.idle):
        return Evidence(f"{who([party])} is stopped by a signal", party.index)  # its helper's wait says nothing of it
    return Evidence(said, party.index, party.id or None, judged.frame)


def _sleeps(party: Party) -> bool:
    """Whether it asked for the time itself: nobody wakes it. The same frame rules know calls that wait for a signal."""
    frame = party.frame(party.judged.frame)
    return party.judged.rule in OWN_SLEEPS and frame is not None and "sleep" in (frame.function or "")


def shown_together(parties: Iterable[Party]) -> List[Evidence]:
    """One line for all parties that wait in the same call from the same place."""
    groups: Dict[object, List[Party]] = {}
    for party in parties:
        key = (party.kind, where(party), party.is_thread)
        groups.setdefault(key, []).append(party)
    lines: List[Evidence] = []
    for members in groups.values():
        first = members[0]
        text = f"{who(members)} {'is' if len(members) == 1 else 'are'} in {where(first)}"
        lines.append(Evidence(text, first.index, first.id or None, first.judged.frame))
    return lines


def evidence_of(culprits: Sequence[Party], victims: Sequence[Party]) -> Tuple[Evidence, ...]:
    """Culprits one by one (the first few), victims together."""
    lines = [shows(party) for party in culprits[:6]]
    if len(culprits) > 6:
        lines += shown_together(culprits[6:])
    return tuple((lines + shown_together(victims))[:MOST_EVIDENCE])


def blame(
    cause: str,
    confidence: str,
    summary: str,
    culprits: Sequence[Party],
    victims: Sequence[Party] = (),
    shown: Sequence[Party] = (),
) -> Candidate:
    """Both with what they are in as evidence; `shown`: threads of the culprits that show more than their main ones."""
    return Candidate(
        cause=cause,
        confidence=confidence,
        summary=summary,
        culprits=tuple(culprits),
        victims=tuple(victims),
        evidence=evidence_of(shown or culprits, victims),
    )


def one_lower(confidence: str) -> str:
    """The next grade below; the lowest stays."""
    return CONFIDENCE[max(0, CONFIDENCE.index(confidence) - 1)]


def is_majority(parties: Sequence[Party], view: JobView) -> bool:
    """Whether these are more than half of all that could be judged."""
    return 2 * len(parties) > len(view.parties)
