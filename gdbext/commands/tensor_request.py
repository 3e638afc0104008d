"""What one command line of llm-tensor asks for: which tensor, of which ranks; and how far the work is."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Callable, List, Optional, Sequence, Tuple, Union, cast

from gdbext.analysis.tensors.whole_tensor import Progress
from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.session_port import Session
from gdbext.commands.split_command_line import words_of
from gdbext.commands.tensor_arguments import description_of
from gdbext.commands.tensor_port import OneTensor, TensorPort, TensorSession
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import RankTensor, RankTensors, TensorInfo, TensorMapInfo

_PROGRESS_SECONDS = 1.0
_STEADY_SECONDS = 3.0  # of work, until which every guess at the rest is a wrong one


class Asked:
    """One command line: the words, the options, and the port."""

    def __init__(self, session: Session, args: Namespace) -> None:
        self.session = cast(TensorSession, session)
        self.args = args
        self.words = words_of(args.expression or "")
        self.port: TensorPort = self.session.tensors
        if getattr(args, "gpu_core", None):
            self.port = self.port.with_gpu_core(args.gpu_core)

    def find(self, expression: str, index: str) -> Tuple[Union[TensorInfo, TensorMapInfo], str]:
        """What an expression means, and the whole index into it. Raises GdbextError."""
        description = description_of(self.args)
        try:
            return self.port.evaluate(expression, description), index
        except OneTensor as one:
            return self.port.evaluate(one.expression, description), one.index + index

    def one(self, expression: str, index: str) -> Tuple[TensorInfo, str]:
        """The one tensor that an expression means, and the whole index into it. Raises GdbextError."""
        found, index = self.find(expression, index)
        if isinstance(found, TensorMapInfo):
            names = ", ".join(entry.name for entry in found.entries[:8])
            raise UsageError(f"{expression} holds {len(found.entries)} tensors", f"choose one of them: {names}")
        return found, index

    def progress(self, verb: str) -> Progress:
        """Says how far a long work is: each second at first, and less often the longer it takes."""
        started = said = begun = time.monotonic()
        base = reached = 0

        def tell(done: int, total: int) -> None:
            nonlocal said, begun, base, reached
            now = time.monotonic()
            if done < reached or not reached:  # the start of a helper, or of a second look, is no part of the pace
                begun, base = now, done
            reached = done
            if now - said < max(_PROGRESS_SECONDS, (now - started) / 8) or not done:
                return
            first, said = said == started, now
            text = f"{verb} {100 * done // total}% of {total:,} elements"
            if now - begun > _STEADY_SECONDS and done > base:
                text += f", {_duration((now - begun) * (total - done) / (done - base))} left"
            self.session.say(f"{text}; Ctrl-C stops, an index selects a part" if first else text)

        return tell

    def chosen_ranks(self) -> Optional[Sequence[AttachedRank]]:
        """The ranks that were asked for; None when the selected one is meant."""
        if self.args.all_ranks:
            return pick_all(self.session.ranks(), "all")
        return pick_all(self.session.ranks(), self.args.ranks) if self.args.ranks else None


def _duration(seconds: float) -> str:
    """`40 s`, `7 min`, `3 h`, `over a day`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return (
        f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h" if seconds < 86400 else "over a day"
    )


def over_ranks(asked: Asked, name: str, body: Callable[[], object]) -> object:
    """The answer of `body`, or those of the ranks that were asked for. A rank that fails does not stop the others."""
    ranks = asked.chosen_ranks()
    if ranks is None:
        return body()
    answers: List[RankTensor] = []
    for rank in ranks:
        try:
            answer = asked.port.on_rank(inferior_of(rank), body)
        except GdbextError as error:
            answer = Missing(str(error))
        answers.append(RankTensor(number_of(rank), answer))  # type: ignore[arg-type]
    return RankTensors(name, tuple(answers))


def inferior_of(rank: AttachedRank) -> int:
    """The number of its inferior."""
    assert rank.number is not None
    return rank.number


def number_of(rank: AttachedRank) -> int:
    """What people call it: its number, else its pid."""
    return rank.process.rank if rank.process.rank is not None else rank.process.pid


def current_number(asked: Asked) -> int:
    """The number of the selected rank, for names of files."""
    return next((number_of(rank) for rank in asked.session.ranks() if rank.current), 0)
