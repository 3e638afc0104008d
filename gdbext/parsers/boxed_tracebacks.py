"""Rich draws a traceback as a box: put the place of a frame, which it wraps to the width of the box, on one line."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Optional

from gdbext.model.text.patterns import regex

_IN_BOX = regex(r"(?P<before>[^│]{0,120}│ ?)(?P<text>[^│]{0,400}?) {0,400}│?\s*\Z")
_BEGINS = regex(r"(?:[~/<]|\.{1,2}/|[A-Za-z]:\\)\S{0,400}(?: in)?\Z")
_PLACE = regex(r"\S.{0,800}:\d{1,9} in [\w.<>]{1,200}\Z")
_MOST_LINES = 6


def whole_places(lines: Iterable[str]) -> Iterator[str]:
    """The lines, those of a wrapped place `FILE:LINE in NAME` as one. Other lines of a box, such as its source code,
    and lines of no box, are left as they are."""
    held: List[str] = []
    place = ""
    for line in lines:
        text = _text_in_box(line) if "│" in line else None
        if held and text:
            at_blank = place.endswith(" in") or text.startswith("in ")  # elsewhere a long path was cut anywhere
            joined = f"{place} {text}" if at_blank else place + text
            if _PLACE.match(joined):
                yield f"{held[0].partition('│')[0]}│ {joined} │"
                held = []
                continue
            if len(held) < _MOST_LINES and " " not in text:
                held, place = [*held, line], joined
                continue
        yield from held
        held = []
        if text and _BEGINS.match(text):
            held, place = [line], text
        else:
            yield line
    yield from held


def _text_in_box(line: str) -> Optional[str]:
    """What the line says, without the box around it. None: it is a line of source code, or of no box."""
    found = _IN_BOX.match(line)
    return None if found is None else found["text"]
