"""Rows of all formats in the order in which they are tried: exact ones first, loose ones last."""

from gdbext.parsers.formats import (
    address_sanitizer,
    crashes,
    debuggers,
    gdb_mi,
    headings,
    kernel_stacks,
    logs,
    python_tools,
    runtimes,
    system_tools,
    unknown_frames,
)
from gdbext.parsers.formats.format_row import Grammar

GRAMMAR = Grammar(
    (
        *address_sanitizer.ROWS,
        *crashes.ROWS,
        *kernel_stacks.ROWS,
        *gdb_mi.ROWS,
        *runtimes.ROWS,
        *system_tools.ROWS,
        *debuggers.ROWS,
        *python_tools.ROWS,
        *logs.ROWS,
        *headings.ROWS,
        *unknown_frames.ROWS,
    )
)
"""On one line the first row that can read it decides."""
