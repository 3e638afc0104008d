"""Who runs the one-time initialiser that a thread waits for: its memory does not say that, the stacks do."""

from __future__ import annotations

from typing import Dict, List

from gdbext.analysis.view.job_view import Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import one_process
from gdbext.analysis.waits.thread_numbers import Threads
from gdbext.knowledge.frames.system.libc import RUNS_ONCE
from gdbext.model.text.patterns import regex

_RUNS = regex(RUNS_ONCE)


def draw(drawing: Drawing, threads: Threads) -> None:
    """An edge to the one thread of the process that runs an initialiser; a signal may have led it to the same again.
    That it is the same one, no memory shows."""
    running: Dict[int, List[Party]] = {}
    for waiter, wait in threads.waits():
        if wait.kind != "once" or waiter.judged.rule != "os-once" or drawing.waits(drawing.of(waiter)):
            continue
        if waiter.index not in running:
            running[waiter.index] = [one for one in threads_of(drawing.view, waiter.index) if _runs_one(one)]
        if len(running[waiter.index]) != 1:
            continue
        owner = running[waiter.index][0]
        node = drawing.of(waiter)
        lock = drawing.resource("lock", f"{waiter.index}:{wait.address:#x}", one_process.name(wait))
        drawing.join(node, lock, "mutex", "named", drawing.fact(waiter))
        drawing.join(lock, drawing.of(owner), "holds", "assumed", drawing.fact(owner))


def _runs_one(one: Party) -> bool:
    """Whether the function that runs an initialiser has called something: behind a wait for one it stands innermost,
    with its callers of the C library."""
    names: List[str] = [frame.function or "" for frame in one.calls]
    at = [number for number, name in enumerate(names) if _RUNS.match(name)]
    if at and one.judged.rule == "os-once":
        while len(at) > 1 and at[1] == at[0] + 1:
            at.pop(0)
        at.pop(0)
    return bool(at)
