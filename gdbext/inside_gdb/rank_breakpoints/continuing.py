"""llm-continue: all ranks together, up to the next stop; who is no rank any more is let go before, and named."""

from __future__ import annotations

from functools import partial
from typing import Callable, List, Optional, Protocol, Sequence

import gdb

from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.alarm import stirred
from gdbext.inside_gdb.rank_breakpoints.gathering import Gathering
from gdbext.inside_gdb.rank_breakpoints.rank_points import RankPoint, chosen
from gdbext.inside_gdb.ranks.ended_ranks import RankEnd, RankEnds
from gdbext.inside_gdb.ranks.timed_stop import NextStop, running_pids
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.job import RankProcess, ranks_or_pids

_CTRL_C = "Ctrl-C"


class Holder(Protocol):
    """The session: who attaches and detaches."""

    def ranks(self) -> Sequence[AttachedRank]: ...

    def let_go(self, numbers: Sequence[int]) -> Sequence[RankProcess]: ...

    def take_back(self, processes: Sequence[RankProcess]) -> Sequence[str]: ...

    def say(self, text: str) -> None: ...

    def rank_of(self, inferior: gdb.Inferior) -> Optional[int]: ...


class Continuation:
    """One per gdb."""

    def __init__(self, holder: Holder, gathering: Gathering, say: Callable[[str], None], next_stop: NextStop) -> None:
        self.away: List[RankProcess] = []  # of `--others run`: not attached until llm-continue
        self._holder, self._gathering, self._say, self._next_stop = holder, gathering, say, next_stop
        self._fates = RankEnds(self._handle_end)

    def prepare(self) -> None:
        """Only ranks that can be resumed are left, and those that were away are back."""
        self._remove_killed()
        self._call_back()
        self._fates.learn([inferior.pid for inferior in gdb.inferiors() if inferior.pid])

    def holding(self, points: Sequence[RankPoint]) -> List[RankPoint]:
        """Of the breakpoints those for which the others are to come to the place."""
        live = [inferior for inferior in gdb.inferiors() if inferior.pid]
        if points and live and not chosen([*points], live):
            self._say("no rank that may stop here is left: the others run until Ctrl-C")
        return [point for point in points if point.options.others == "hold" and chosen([point], live)]

    def run(self, holding: Sequence[RankPoint], ours: Sequence[RankPoint]) -> bool:
        """Until somebody stops; whether a rank stands at one of `holding`, and the others had time to come there."""
        with self._fates.watching(), stirred():
            stands = self._resumed(holding, ours)
        self._remove_killed()
        why = self._gathering.stranger
        if why is not None and not stands and not self._still_running(why):
            self._say(f"stopped on the way: {why}; llm-continue resumes all")
        return stands

    def _resumed(self, holding: Sequence[RankPoint], ours: Sequence[RankPoint]) -> bool:
        gathering = self._gathering
        try:
            if not holding:
                gathering.run_free()
                return False
            return gathering.run(holding, max(point.options.wait for point in holding), ours)
        except gdb.error as error:  # a rank has ended, or has become another program, at that moment
            if not holding and not any(inferior.pid for inferior in gdb.inferiors()):
                raise
            self._fates.settle()
            endings = self._fates.of_all()
            gathering.disturbed(_words(endings[0]) if endings else " ".join(str(error).split()))
            return bool(holding) and gathering.focus is not None
        except KeyboardInterrupt:  # it came while gdb was in a function of ours: gdb has not stopped the ranks for it
            gathering.disturbed(_CTRL_C)
            return False

    def _still_running(self, why: str) -> bool:
        """gdb could not resume every rank, or was interrupted: those that run stop as soon as gdb comes to that."""
        pids = running_pids()
        if pids:
            what = why if why == _CTRL_C else f"gdb failed at a rank ({why})"
            self._say(f"{what}; the ranks that it resumed are being stopped")
            self._next_stop.do(pids, partial(self._say, "stopped on the way; llm-continue resumes all"))
        return bool(pids)

    def _call_back(self) -> None:
        """Those of `--others run`, as far as they still are what they were."""
        lost = {ending.pid: ending.words for ending in self._fates.of([one.pid for one in self.away], "has ended")}
        for process in self.away:
            if process.pid in lost:
                self._say(f"{ranks_or_pids([process])} {lost[process.pid]}, and is not attached again")
        back = [process for process in self.away if process.pid not in lost]
        self.away = []
        for problem in self._holder.take_back(back) if back else ():
            self._say(problem)

    def _remove_killed(self) -> None:
        """Let go of what was killed while it stood still, and of what is no rank any more: gdb would fail to resume the
        one, and loses breakpoints by the other."""
        ranks = {
            rank.process.pid: rank
            for rank in self._holder.ranks()
            if rank.state in (RankState.STOPPED, RankState.KILLED)
        }
        for ending in self._fates.of(list(ranks)):
            process = ranks[ending.pid].process
            self._say(f"{ranks_or_pids([process])} {ending.words}, and is let go")
            self._holder.let_go([ranks[ending.pid].number or 0])
        if gdb.selected_thread() is None:
            self._select_any()

    @staticmethod
    def _select_any() -> None:
        """gdb resumes nobody while the selected inferior is one that has ended."""
        for inferior in gdb.inferiors():
            if inferior.threads():
                compat.switch_inferior(inferior)
                return

    def _handle_end(self, ending: RankEnd) -> None:
        """While the ranks run."""
        self._gathering.disturbed(_words(ending))


def _words(ending: RankEnd) -> str:
    return f"process {ending.pid} {ending.words}"
