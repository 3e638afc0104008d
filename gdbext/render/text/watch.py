"""A line for each thing that a watch reports."""

from __future__ import annotations

import shlex
import time
from typing import List

from gdbext.model.watching import WatchEvent
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

_ACCENTS = {"hang": "bad", "undecided": "doubt", "no-hang": "good", "trouble": "doubt"}


def event_lines(event: WatchEvent, style: Style) -> List[str]:
    """`12:00:03  stands still: ...`, over as many lines as it takes."""
    lead = time.strftime("%H:%M:%S  ", time.localtime(event.at))
    lines = wrapped(clean(event.text, style), style, indent=" " * len(lead), first=lead, most=5)
    lines = [style.paint(line, _ACCENTS.get(event.kind, "")) for line in lines]
    if event.cause:
        head = cause_and_confidence(event.cause, event.confidence)
        lines.append(f"{' ' * len(lead)}cause  {clean(head, style)}")
    if event.bundle:
        lines.append(f"{' ' * len(lead)}bundle {clean(event.bundle, style)}")
        lines.append(f"{' ' * len(lead)}next   gdbext diagnose -v {shlex.quote(clean(event.bundle, style))}")
    return lines
