"""Tasks of asyncio, as one look at the memory of a process saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.model.stack import Frame

MOST_TASKS = 256
"""Of one loop: where so many were read, there may be more."""


@dataclass(frozen=True)
class PythonTask:
    """A task that has not ended: its coroutines, innermost first. Locks are told apart by their addresses."""

    thread: int  # LWP of the thread that runs its loop
    frames: Tuple[Frame, ...]  # (): where it stands could not be read
    name: str = ""  # as the program gave it
    waits_for: str = ""  # the class of the future or task that it waits for; of several that of one which is no task
    wants: int = 0  # the lock that it asks for
    holds: Tuple[int, ...] = ()  # the locks in whose `async with` it is
    limited: bool = False  # a time-out may end its wait
