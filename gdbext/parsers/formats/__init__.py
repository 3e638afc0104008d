"""Rows of all formats in the order in which they are tried: exact ones first, loose ones last."""

from gdbext.parsers.formats import crashes, debuggers, gdb_mi, headings, logs, runtimes, sanitizers, unknown_frames
from gdbext.parsers.formats import python_tools as python
from gdbext.parsers.formats import system_tools as samplers
from gdbext.parsers.formats.format_row import Grammar

GRAMMAR = Grammar(
    (
        *sanitizers.ROWS,
        *crashes.ROWS,
        *gdb_mi.ROWS,
        *runtimes.ROWS,
        *samplers.ROWS,
        *debuggers.ROWS,
        *python.ROWS,
        *logs.ROWS,
        *headings.ROWS,
        *unknown_frames.ROWS,
    )
)
"""On one line the first row that can read it decides."""
