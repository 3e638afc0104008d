"""llm-bt: native and Python frames of a thread in one stack. llm-py-up, -down, -frame: the selected Python frame."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Optional, Protocol, Tuple, cast

from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.session_port import Session, chosen_by_current
from gdbext.model.backtrace import Backtrace, PythonPlace, PythonVariable
from gdbext.model.errors import UsageError


def backtrace(session: Session, args: Namespace) -> Tuple[Backtrace, ...]:
    ranks = session.ranks()
    if not ranks:
        raise UsageError("nothing is attached", "llm-attach-all attaches the ranks of a job")
    if args.ranks is not None:
        chosen = pick_all(ranks, args.ranks)
    else:
        chosen = (chosen_by_current(ranks) or ranks[0],)
    found: Tuple[Backtrace, ...] = ()
    for rank in chosen:
        assert rank.number is not None
        stacks = [_cut(one, args.count) for one in session.backtraces(rank, args.all)]
        if args.locals:
            python, number = cast(PythonSession, session).python, rank.number
            stacks = [replace(one, variables=python.variables(number, one.thread.lwp or 0)) for one in stacks]
        found += tuple(stacks)
    return found


class PythonPort(Protocol):
    """The Python frames of what is selected. `inside_gdb/expressions/printed_frames.py` is the real one."""

    def select(self, number: Optional[int], step: int) -> PythonPlace:
        """Select a frame by its number, or so many steps further out; without both the selected one. Raises
        GdbextError."""

    def variables(self, inferior: int, tid: int) -> Tuple[Tuple[PythonVariable, ...], ...]:
        """The local variables of each Python frame of a thread, from the innermost one on."""


class PythonSession(Session, Protocol):
    """The session of the commands about Python frames."""

    python: PythonPort


def up(session: Session, args: Namespace) -> PythonPlace:
    return cast(PythonSession, session).python.select(None, args.count or 1)


def down(session: Session, args: Namespace) -> PythonPlace:
    return cast(PythonSession, session).python.select(None, -(args.count or 1))


def frame(session: Session, args: Namespace) -> PythonPlace:
    return cast(PythonSession, session).python.select(args.number, 0)


def _cut(one: Backtrace, count: int) -> Backtrace:
    frames = one.thread.frames
    if not count or len(frames) <= count:
        return one
    thread = replace(one.thread, frames=frames[:count])
    return replace(one, thread=thread, numbers=one.numbers[:count], left_out=len(frames) - count)
