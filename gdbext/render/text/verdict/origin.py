"""The line that dates a look read from a file, so that nobody takes it for the present."""

from __future__ import annotations

import time
from typing import List, Optional

from gdbext.model.look_origin import Origin
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import clean, utc_text, wrapped
from gdbext.render.style import Style

_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))
_MOST_HOSTS = 4
INVALID = "at an invalid time"


def origin_lines(origin: Origin, style: Style, now: Optional[float] = None) -> List[str]:
    """`Snapshot taken 2026-11-20 14:03:11 UTC, 2 days ago, on node17.`"""
    what = ("Core file" if len(origin.files) == 1 else "Core files") if origin.cores else "Snapshot"
    verb = "written" if origin.cores else "taken"
    text = f"{what} {verb} {origin_text(origin, style, now)}."
    return [style.paint(line, "dim") for line in wrapped(text, style)]


def origin_text(origin: Origin, style: Style, now: Optional[float] = None) -> str:
    """`2026-11-20 14:03:11 UTC, 2 days ago, on node17`."""
    when = _date(origin.taken_at, now) if origin.taken_at is not None else "at an unknown time"
    return f"{when}, {_hosts(origin, style)}"


def _date(taken_at: float, now: Optional[float]) -> str:
    text = utc_text(taken_at)
    if not text:
        return INVALID
    age = (time.time() if now is None else now) - taken_at
    unit = next(((size, name) for size, name in _UNITS if age >= size), None)
    return text if unit is None else f"{text}, {counted(int(age // unit[0]), unit[1])} ago"


def _hosts(origin: Origin, style: Style) -> str:
    if not origin.hosts:
        return "on an unknown host" + (" (a core file names none)" if origin.cores else "")
    shown = [clean(host, style) for host in origin.hosts[:_MOST_HOSTS]]
    more = len(origin.hosts) - len(shown)
    return f"on {', '.join(shown)}" + (f" and {counted(more, 'more host')}" if more else "")
