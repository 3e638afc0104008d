"""A diagnosis for a person who was woken up: the table, then what stands on the screen at the end, the answer."""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional

from gdbext.model.command_typed import BRIEF, FULL
from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.render.lines import joined
from gdbext.render.style import Style
from gdbext.render.text.ending.short_answer import ending
from gdbext.render.text.verdict.considered_hypotheses import considered_lines
from gdbext.render.text.verdict.details import detail_sections
from gdbext.render.text.verdict.gpu_errors import gpu_error_lines, kernel_lines
from gdbext.render.text.verdict.rank_table import is_one_stack, wait_table
from gdbext.render.text.verdict.short_verdict import facts, sentence
from gdbext.render.text.verdict.user_frames import user_frames

MOST_ROWS = 10

_ACCENT_OF_CAUSE = {"not-a-hang": "good", "unknown": "doubt", "other": "doubt"}


def diagnosis_lines(diagnosis: Diagnosis, style: Style, origin: Optional[Origin] = None) -> List[str]:
    """The table and the answer, or as much as was asked for. The answer is always last, in 8 lines.

    `origin`: the file that it was read from.
    """
    verdict = diagnosis.verdict
    accent = _ACCENT_OF_CAUSE.get(verdict.cause, "bad")
    answer = ending(sentence(diagnosis, style), accent, facts(diagnosis, style, origin), style)
    if style.typed.detail == BRIEF:
        return answer
    is_healthy = not (verdict.finding or verdict.decided_by)
    sections = []
    if style.typed.detail == FULL or not is_one_stack(diagnosis):
        sections.append(wait_table(diagnosis, style, 4, 0) if is_healthy else wait_table(diagnosis, style, MOST_ROWS))
        sections.append(user_frames(diagnosis, style))
    sections.append(gpu_error_lines(diagnosis, style))
    sections.append(kernel_lines(diagnosis, style))
    if style.typed.detail == FULL:
        sections += detail_sections(diagnosis, style)
    if diagnosis.explains:
        sections.append(considered_lines(diagnosis, style))
    return joined([*sections, answer])


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Diagnosis: diagnosis_lines}
DATED = RENDERERS
"""Renderers that say themselves when and where a look was taken."""
