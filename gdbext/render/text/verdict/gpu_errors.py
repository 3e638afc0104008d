"""What a sanitizer or a GPU core says of kernels: a line or three for each kind of error, the gravest first."""

from __future__ import annotations

from typing import List

from gdbext.model.verdict import Diagnosis
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

MOST = 8
_LINES = 6
_OF_KERNELS = ("spins", "kernel", "behind")


def kernel_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """Which kernel is on whose GPU, where GPU cores show it."""
    if all(process.kernels is None for process in diagnosis.snapshot.processes):
        return []
    statements = [
        one.text for each in diagnosis.snapshot.witnesses for one in each.statements if one.says in _OF_KERNELS
    ]
    lines = [style.paint("Kernels on the GPUs", "strong")]
    for text in statements[:MOST]:
        lines += wrapped(clean(text, style), style, indent="    ", first="  ", most=_LINES)
    more = len(statements) - MOST
    return lines + ([style.paint(f"  {style.ellipsis} {more:,} more, all in --json", "dim")] if more > 0 else [])


def gpu_error_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """With their counts; those beyond are in the document."""
    if not diagnosis.gpu_errors:
        return []
    lines = [style.paint("Errors of kernels", "strong")]
    for one in diagnosis.gpu_errors[:MOST]:
        lines += wrapped(clean(one.text, style), style, indent="    ", first="  ", most=_LINES)
    more = len(diagnosis.gpu_errors) - MOST
    return lines + ([style.paint(f"  {style.ellipsis} {more:,} more, all in --json", "dim")] if more > 0 else [])
