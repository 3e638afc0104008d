"""Folded stacks, as flamegraph.pl and its kin read them: `rank 0;engine;main;forward (model.py:41) 3`, outermost first.

A semicolon separates calls and the last word is a number, so a semicolon in a name becomes a comma.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Optional

from gdbext.model.look_origin import Origin
from gdbext.model.stack import Frame
from gdbext.model.verdict import Diagnosis
from gdbext.render.safe_text import clean, place_of
from gdbext.render.style import Style

_STYLE = Style()


def stacks(diagnosis: Diagnosis, _origin: Optional[Origin]) -> List[str]:
    """A line for each stack that is different, and how many threads have it."""
    counts: Counter[str] = Counter()
    folded: Dict[int, str] = {}  # by the object: equal stacks are one
    for process in diagnosis.snapshot.processes:
        for thread in process.threads:
            if thread.frames:
                if id(thread.calls) not in folded:
                    folded[id(thread.calls)] = ";".join(_part(_named(frame)) for frame in reversed(thread.calls))
                stack = folded[id(thread.calls)]
                counts[f"{_part(process.label)};{_part(thread.name or 'thread')};{stack}"] += 1
    return [f"{stack} {count}" for stack, count in counts.items()]


def _named(frame: Frame) -> str:
    place = place_of(frame.file, frame.line, frame.module, _STYLE)
    place = f" ({place.strip('()')})" if place else ""
    return f"{frame.function or '??'}{place}"


def _part(text: str) -> str:
    return clean(text, _STYLE).replace(";", ",") or "??"
