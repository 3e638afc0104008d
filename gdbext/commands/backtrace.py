"""llm-bt: native and Python frames of a thread in one stack."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Tuple

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.selection import pick_all
from gdbext.commands.session import Session, chosen_by_current
from gdbext.model.backtrace import Backtrace
from gdbext.model.errors import UsageError
from gdbext.model.text.digits import whole


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


def frame_count(text: str) -> int:
    """How many innermost frames. Raises ValueError."""
    if not whole(text):
        raise ValueError
    return int(text)


COMMANDS = (
    Command(
        "llm-bt",
        "Show native and Python frames of a thread in one stack",
        backtrace,
        "stack",
        (
            Argument("count", "only so many innermost frames", "COUNT", frame_count, nargs="?", default=0),
            Argument("--ranks", "of these ranks instead of the selected one: 0-3,7 or all", "RANKS", completes="ranks"),
            Argument("--all", "every thread, not the selected one", flag=True),
        ),
        description=(
            "Frames of Python stand in place of the interpreter's frames that execute them, marked py; the numbers are "
            "gdb's, so `frame 7` selects the frame that is numbered 7 here. Frames of the interpreter are left out."
        ),
        examples=("llm-bt", "llm-bt 20 --ranks all", "llm-bt --all --ranks 1"),
        repeats=True,
    ),
)
