"""What a kernel log tells, beside the line that names a hang of the GPU, of the ring and of the reset that followed."""

from __future__ import annotations

from typing import Optional, Pattern, Sequence

from gdbext.analysis.logs.lines_of_logs import all_lines
from gdbext.analysis.view.job_view import JobView
from gdbext.analysis.view.wording import label_list
from gdbext.knowledge.log_lines.device_faults import RESET_BEGINS, RESET_DONE, RESET_FAILS, RING_TIMEOUT
from gdbext.model.text.patterns import regex

RULES = ("gpu-work-timed-out", "gpu-hang", "gpu-reset")
"""Rows of log lines beside which that is told."""
_RING, _BEGINS, _FAILS, _DONE = map(regex, (RING_TIMEOUT, RESET_BEGINS, RESET_FAILS, RESET_DONE))


def reset_told(view: JobView, quoted: str) -> str:
    """`Ring gfx_0.0.0 timed out. The driver then began to reset the GPU.`, without what is quoted already."""
    texts = [text for _, text in all_lines(view)]
    rings = [match["ring"] or match["ring2"] for match in map(_RING.search, texts) if match is not None]
    ring = next((f"Ring {ring} timed out." for ring in rings if ring not in quoted), "")
    begun, done = (_last(pattern, texts) for pattern in (_BEGINS, _DONE))
    steps = [f'"{match["step"]}"' for match in map(_FAILS.search, texts) if match is not None]
    failed = f"During the reset it reported {label_list(steps)}." if steps else ""
    if done is not None and (begun is None or done > begun):
        reset = "A later line says that the driver has reset the GPU."
    elif begun is None or _BEGINS.search(quoted):
        reset = failed.replace(" it ", " the driver ")
    else:
        reset = f"The driver then began to reset the GPU. {failed}"
    return f"{ring} {reset}".strip()


def _last(pattern: Pattern[str], texts: Sequence[str]) -> Optional[int]:
    """Where the last line is that the pattern knows."""
    return max((number for number, text in enumerate(texts) if pattern.search(text)), default=None)
