"""The stacks of a rank's threads with gdb's numbers of the frames."""

from __future__ import annotations

from typing import Optional, Tuple

import gdb

from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.stacks.held_ranks import ThreadLook, some_threads
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.backtrace import Backtrace
from gdbext.model.codes import RankState
from gdbext.model.errors import UsageError
from gdbext.snapshot_builder.core_job import OpenCore


def backtraces(
    inferior: gdb.Inferior, rank: AttachedRank, core: Optional[OpenCore], every: bool
) -> Tuple[Backtrace, ...]:
    """The selected thread of the inferior (its first, when another inferior is selected), or every one."""
    with compat.inferior_selected(inferior):
        chosen = gdb.selected_thread()
    threads = sorted(inferior.threads(), key=lambda thread: thread.num)
    if not every:
        threads = [chosen or threads[0]] if threads else []
    if not threads:
        raise UsageError("this rank has no thread")
    if any(thread.is_running() for thread in threads):
        raise UsageError("this rank runs", "stop it first: Ctrl-C, or `interrupt`")
    looks = some_threads(inferior, threads, rank.state == RankState.CORE, core)
    return tuple(_numbered(look, rank) for look in looks)


def _numbered(look: ThreadLook, rank: AttachedRank) -> Backtrace:
    # The native frames of the whole stack are the very objects of the native one.
    numbers = {id(frame): number for number, frame in enumerate(look.native.frames)}
    process = rank.process
    problems = tuple(problem for problem in look.problems if problem not in look.stack.problems)
    return Backtrace(
        pid=process.pid,
        rank=process.rank,
        thread=look.stack,
        numbers=tuple(numbers.get(id(frame)) for frame in look.stack.frames),
        problems=problems,
    )
