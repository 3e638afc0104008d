"""asyncio from outside: where a suspended coroutine has its frame, and what a task waits for by its innermost one.

Offsets as `ctypes` reads them in running interpreters of 3.11.7, 3.12.1 and 3.13.0 (tests/inferiors/python_tasks.py);
of other releases no tasks are read.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Tuple


class CoroutineRow(NamedTuple):
    """Offsets in a coroutine, and in its frame."""

    state: int  # cr_frame_state, a byte; below 0 while it can be resumed
    frame: int  # cr_iframe
    stack_top: int  # in the frame: how many values it has, variables and the stack
    tasks: str  # the WeakSet of asyncio.tasks that has all tasks


COROUTINES: Mapping[Tuple[int, int], CoroutineRow] = {
    (3, 11): CoroutineRow(75, 80, 64, "_all_tasks"),
    (3, 12): CoroutineRow(67, 72, 64, "_scheduled_tasks"),
    (3, 13): CoroutineRow(67, 72, 64, "_scheduled_tasks"),
}

MODULE_NAMES = 16
"""Offset of `md_dict` in a module."""

SET_MASK, SET_TABLE = 32, 40
"""Offsets in a set: mask and table; an entry is a key and its hash."""

WEAK_TARGET = 16
"""Offset of `wr_object` in a weak reference."""

OF_LOOP = 16
"""Offset of `fut_loop` in a task or future of C."""

BOUND_TO = 24
"""Offset of `im_self` in a bound method."""

HAS_TASKS = r"(^|/)asyncio/(base_events|runners)\.py$"
"""Files of asyncio that know the module `tasks` by that name."""
RUNS_LOOP = r"(\w+\.)?(run_forever|run_until_complete|run)$"

# --- what the innermost coroutine of a task says ---

LOCKS = "lock"
TURNS = "turn"
WORK = "work"
OTHERS = "tasks"
CLIENTS = "clients"

WAITS: Tuple[Tuple[str, str, str], ...] = (
    (LOCKS, r"(Lock|Semaphore|BoundedSemaphore)\.acquire$", r"(^|/)asyncio/locks\.py$"),
    (TURNS, r"(Queue\.(put|join)|Barrier\.\w+)$", r"(^|/)asyncio/(queues|locks)\.py$"),
    (WORK, r"(Queue\.get|Event\.wait|Condition\.wait\w*)$", r"(^|/)asyncio/(queues|locks)\.py$"),
    (OTHERS, r"(_wait|wait|wait_for|_cancel_and_wait|TaskGroup\.__aexit__)$", r"(^|/)asyncio/(tasks|taskgroups)\.py$"),
    (CLIENTS, r"(Server\.(serve_forever|wait_closed))$", r"(^|/)asyncio/base_events\.py$"),
)
"""What only another task gives (a lock, a turn), what may come at any time (work, clients), and the end of other tasks.
All else may come from outside: a reply, a timer, a thread."""

JOINED = ("Task", "_asyncio.Task", "_GatheringFuture")
"""Classes of what a task waits for that are the end of other tasks."""
