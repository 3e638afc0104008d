"""What tasks of asyncio wait for, by their innermost coroutines, and where asyncio keeps its tasks. Rows, no logic."""

from __future__ import annotations

from typing import Tuple

HAS_TASKS = r"(^|/)asyncio/(base_events|runners)\.py$"
"""Files of asyncio that know the module `tasks` by that name."""
RUNS_LOOP = r"(\w+\.)?(run_forever|run_until_complete|run)$"

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
