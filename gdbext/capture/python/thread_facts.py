"""All that is read of the Python threads of a process that can be looked at again, whoever holds it."""

from __future__ import annotations

from typing import Collection

from gdbext.capture.python import asyncio_tasks, item_counts, local_marks, python_arguments
from gdbext.capture.python.python_frames import Frozen, resolve
from gdbext.capture.python.runtime import Read
from gdbext.model.python import PythonStacks


def resolve_all(frozen: Frozen, read: Read, tids: Collection[int]) -> PythonStacks:
    """Frames with their arguments, marks and lengths of local variables, loops, and tasks. `tids`: threads that
    exist."""
    found = resolve(
        frozen,
        read,
        tids,
        arguments=python_arguments.reader(frozen, read),
        marks=local_marks.reader(frozen, read),
        lengths=item_counts.lengths(frozen, read),
        loops=item_counts.loops(frozen, read),
        tasks=asyncio_tasks.reader(frozen, read),
    )
    return asyncio_tasks.with_unread(found)
