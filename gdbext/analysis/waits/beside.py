"""What stands beside the wait-for graph: progress, idle jobs, logs, witnesses and counters; and what became of it."""

from __future__ import annotations

from typing import Callable, Dict, Mapping, NamedTuple, Optional, Tuple

from gdbext.analysis import failed_checks, healthy, locking, outline, told
from gdbext.analysis.candidate import Candidate
from gdbext.analysis.launches import PATTERNS as COUNTS
from gdbext.analysis.running import PATTERNS as RUNNING
from gdbext.analysis.slow import PATTERNS as SLOW
from gdbext.analysis.view import JobView
from gdbext.analysis.witnesses import PATTERNS as WITNESSES
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.considered import Beside

_Pattern = Callable[[JobView], Optional[Candidate]]

_SOURCES: Mapping[str, Tuple[_Pattern, ...]] = {
    "progress": (*SLOW, *RUNNING, healthy.goes_on),
    "idle": (healthy.nothing_to_do, healthy.all_busy, locking.changing_hands),
    "witnesses": WITNESSES,
    "checks": failed_checks.PATTERNS,
    "logs": told.PATTERNS,
    "counters": COUNTS,
    "unread": outline.PATTERNS,
}
"""By key of model/considered.py SOURCES. All but the first two say something of the cause."""

PATTERNS: Tuple[_Pattern, ...] = tuple(pattern for some in _SOURCES.values() for pattern in some)


class Voices(NamedTuple):
    """All that was found, with its source; of each group the surest."""

    found: Tuple[Tuple[str, Candidate], ...]
    moves: Optional[Candidate]
    idles: Optional[Candidate]
    said: Optional[Candidate]


def voices(view: JobView) -> Voices:
    """Each pattern is asked once."""
    found = []
    groups: Dict[str, Candidate] = {}
    for source, patterns in _SOURCES.items():
        for pattern in patterns:
            one = pattern(view)
            if one is not None:
                found.append((source, one))
                group = _group(source)
                if group not in groups or _weight(one) > _weight(groups[group]):
                    groups[group] = one
    return Voices(tuple(found), groups.get("progress"), groups.get("idle"), groups.get("said"))


def _group(source: str) -> str:
    return source if source in ("progress", "idle") else "said"


def _weight(one: Candidate) -> Tuple[int, int]:
    return CONFIDENCE.index(one.confidence), one.strength


def told_beside(heard: Voices, winner: str, proven: bool, joined: bool) -> Tuple[Beside, ...]:
    """What became of each. `winner`: "progress", "idle", "said" or "graph"; `proven`: memory proves a circle;
    `joined`: what was said names the cause, and the graph who is to blame."""
    surest = {"progress": heard.moves, "idle": heard.idles, "said": heard.said}
    lost = {
        "progress": "circle" if proven else "surer",
        "idle": {"progress": "progress", "said": "surer"}.get(winner, "explained"),
        "said": "progress" if winner == "progress" else "graph",
    }
    lines = []
    for source, one in heard.found:
        group = _group(source)
        outcome = lost[group]
        if one is not surest[group]:
            outcome = "weaker"
        elif group == winner:
            outcome = "cause" if joined else "answer"
        culprits = tuple(sorted({party.index for party in one.culprits}))
        lines.append(Beside(source, one.cause, one.confidence, one.summary, culprits, outcome))
    return tuple(lines)
