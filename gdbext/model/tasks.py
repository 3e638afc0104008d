"""Tasks of asyncio, as one look at the memory of a process saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.model.stack import Frame


@dataclass(frozen=True)
class PythonTask:
    """A task that is suspended: its coroutines, innermost first. Locks are told apart by their addresses."""

    thread: int  # LWP of the thread that runs its loop
    frames: Tuple[Frame, ...]
    name: str = ""  # as the program gave it
    waits_for: str = ""  # the class of the future or task that it waits for
    wants: int = 0  # the lock that it asks for
    holds: Tuple[int, ...] = ()  # the locks in whose `async with` it is
