"""What a sanitizer or a GPU core says of kernels: a line or three for each kind of error, the gravest first."""

from __future__ import annotations

from typing import List

from gdbext.model.verdict import Diagnosis
from gdbext.render.style import Style
from gdbext.render.text.verdict.details import listed

MOST = 8
_LINES = 6
_OF_KERNELS = ("spins", "kernel", "behind")


def kernel_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """Which kernel is on whose GPU, where GPU cores show it."""
    if all(process.kernels is None for process in diagnosis.snapshot.processes):
        return []
    statements = (one for each in diagnosis.snapshot.witnesses for one in each.statements)
    return listed(
        "Kernels on the GPUs", [one.text for one in statements if one.says in _OF_KERNELS], style, MOST, _LINES
    )


def gpu_error_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """With their counts; those beyond are in the document."""
    return listed("Kernel errors", [one.text for one in diagnosis.gpu_errors], style, MOST, _LINES)
