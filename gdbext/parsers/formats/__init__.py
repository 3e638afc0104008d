"""Rows of all formats in the order in which they are tried: exact ones first, loose ones last."""

from __future__ import annotations

from gdbext.parsers.formats import (
    crashes,
    debuggers,
    logs,
    loose,
    machine,
    people,
    python,
    runtimes,
    samplers,
    sanitizers,
)
from gdbext.parsers.formats.row import Grammar

GRAMMAR = Grammar(
    (
        *sanitizers.ROWS,
        *crashes.ROWS,
        *machine.ROWS,
        *runtimes.ROWS,
        *samplers.ROWS,
        *debuggers.ROWS,
        *python.ROWS,
        *logs.ROWS,
        *people.ROWS,
        *loose.ROWS,
    )
)
"""On one line the first row that can read it decides."""
