"""Markdown for a ticket: the answer first, then what it rests on.

Whatever comes from a target stands between fences, where nothing is markup, a link or a mention; the fences are longer
than any row of backticks in it. Outside of them are words of ours alone.
"""

from __future__ import annotations

import re
from typing import List, Optional, Sequence, Tuple

from gdbext.model.command_typed import BRIEF, FULL, Typed
from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.style import Style
from gdbext.render.text.verdict.details import detail_sections
from gdbext.render.text.verdict.rank_table import wait_table
from gdbext.render.text.verdict.stacks import tree_lines
from gdbext.render.text.verdict.user_frames import user_frames
from gdbext.render.text.verdict.verdict import diagnosis_lines

MOST = 65_536
"""Characters of a comment that GitHub takes."""
_SPARE = 256
_WIDTH = 120
_ROWS = 64
_TICKS = re.compile("`+")

_Section = Tuple[str, Sequence[str]]


def markdown(diagnosis: Diagnosis, origin: Optional[Origin]) -> List[str]:
    lines = _head(diagnosis, origin)
    for title, body in _sections(diagnosis):
        lines += ["", f"#### {title}", "", *_fenced(body)]
    return lines


def github(diagnosis: Diagnosis, origin: Optional[Origin]) -> List[str]:
    """What is long is folded; what would be too long in all is cut, the last sections first."""
    lines = _head(diagnosis, origin)
    left = MOST - _SPARE - _size(lines)
    for title, body in _sections(diagnosis):
        frame = ["", f"<details><summary>{title}</summary>", "", *_fenced([]), "", "</details>"]
        room = left - _size(frame) - _SPARE
        kept = _fitting(body, room)
        if not kept:
            continue
        section = [*frame[:3], *_fenced(kept), *frame[-2:]]
        lines += section
        left -= _size(section)
    return lines


def _head(diagnosis: Diagnosis, origin: Optional[Origin]) -> List[str]:
    verdict = diagnosis.verdict
    answer = diagnosis_lines(diagnosis, Style(_WIDTH, typed=Typed(BRIEF)), origin)
    return [f"### {cause_and_confidence(_plain(verdict.cause), _plain(verdict.confidence))}", "", *_fenced(answer)]


def _plain(label: str) -> str:
    return re.sub(r"[^\w -]", "", label)


def _sections(diagnosis: Diagnosis) -> List[_Section]:
    style = Style(_WIDTH, typed=Typed(FULL))
    found: List[_Section] = [
        ("Ranks", wait_table(diagnosis, style, _ROWS)),
        ("Source lines", user_frames(diagnosis, style)),
    ]
    for section in detail_sections(diagnosis, style):
        if section and section[0] != "Stacks":
            titled = not section[0].startswith("Asked")
            found.append((section[0], section[1:]) if titled else ("Witnesses", section))
    if diagnosis.tree is not None and diagnosis.tree.roots:
        found.append(("Stacks", tree_lines(diagnosis.tree, style)))
    return [(title, body) for title, body in found if body]


def _fenced(lines: Sequence[str]) -> List[str]:
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence]


def _fitting(lines: Sequence[str], room: int) -> List[str]:
    """As many as fit, and how many do not."""
    taken = 0
    for number, line in enumerate(lines):
        taken += len(line) + 1 + 2 * max(map(len, _TICKS.findall(line)), default=0)
        if taken > room:
            return [*lines[:number], f"… {len(lines) - number:,} more lines"] if number else []
    return list(lines)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
