"""Lines of dying processes that Ray printed once for several: others died of whom the text names none."""

from __future__ import annotations

from typing import Dict

from gdbext.analysis.logs.lines_of_logs import all_lines
from gdbext.analysis.view.job_view import JobView
from gdbext.analysis.view.wording import label_list
from gdbext.knowledge.log_lines.last_words import REPEATED_BY_RAY
from gdbext.model.text.patterns import regex

_REPEATED = regex(REPEATED_BY_RAY + "$")


def deaths_left_out(view: JobView) -> str:
    """` Ray left out ...`: how many such lines Ray has counted; "" where it has left out none."""
    counts: Dict[str, int] = {}
    for process, text in all_lines(view):
        found = _REPEATED.search(text) if process is not None else None
        if process is not None and found is not None:
            counts[process.label] = max(counts.get(process.label, 0), int(found["times"]))
    if not counts:
        return ""
    counted = label_list([f"{times} like that of {label}" for label, times in counts.items()])
    return (
        f" Ray left out equal lines of other processes: it counted {counted}, so more processes probably died than the "
        "text names."
    )
