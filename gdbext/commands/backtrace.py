"""llm-bt: native and Python frames of a thread in one stack."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Tuple

from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.session_port import Session, chosen_by_current
from gdbext.model.backtrace import Backtrace
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
        found += tuple(_cut(one, args.count) for one in session.backtraces(rank, args.all))
    return found


def _cut(one: Backtrace, count: int) -> Backtrace:
    frames = one.thread.frames
    if not count or len(frames) <= count:
        return one
    thread = replace(one.thread, frames=frames[:count])
    return replace(one, thread=thread, numbers=one.numbers[:count], left_out=len(frames) - count)
