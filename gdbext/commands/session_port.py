"""What a command body may ask of the debugger: `inside_gdb/session/gdb_session.py`, or what a test brings."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Callable, Iterable, Optional, Protocol, Sequence

from gdbext.model.attached_ranks import AttachedRank, RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace
from gdbext.model.checkup import Point
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.page import AskedBefore

if TYPE_CHECKING:
    from gdbext.snapshot_builder.core_job import Cores  # loads the readers of core files


class Session(Protocol):
    """The inferiors of this gdb, seen as ranks."""

    def say(self, text: str) -> None:
        """Show a line of progress."""

    def confirm(self, question: str) -> bool:
        """Ask a person at the terminal, as gdb's own commands do. True where nobody is to be asked."""

    def ranks(self) -> Sequence[AttachedRank]:
        """Every inferior that has a process or a core file, in rank order."""

    def about(self) -> Iterable[Point]:
        """What this gdb can do, and what of it stands in the way."""

    def attach(self, jobs: Sequence[Job]) -> RankTable:
        """Attach all ranks of the jobs. One that cannot be attached has its `problem`; the others go on."""

    def open_cores(self, cores: Cores) -> RankTable:
        """Each core file as an inferior. One that cannot be opened has its `problem`; the others go on."""

    def detach_all(self) -> RankTable:
        """Let all attached processes go."""

    def select(self, number: int) -> None:
        """Make the inferior `number` the current one."""

    def apply(self, numbers: Sequence[int], command: str) -> RankOutputs:
        """Run a gdb command in each of the inferiors; the selection comes back."""

    def backtraces(self, rank: AttachedRank, every: bool) -> Sequence[Backtrace]:
        """The selected thread of a rank, or every one, within the budget of `set llm`. Raises UsageError."""

    def snapshot(self, scan: bool = False) -> JobSnapshot:
        """The stacks of all attached ranks, walked once within the budget of `set llm`, and their communicators;
        with `scan` all of their memory is searched for these."""

    def with_engine_processes(self, snapshot: JobSnapshot) -> JobSnapshot:
        """The snapshot of the attached ranks, and what a brief stop shows of the processes beside them."""

    def while_they_run(self, look: Callable[[], JobSnapshot]) -> JobSnapshot:
        """Release the attached processes, `look`, attach to them again."""

    def asked_before(self) -> Sequence[AskedBefore]:
        """What commands about tensors and streams answered in this gdb, the last ones."""

    def core_files(self) -> Sequence[str]:
        """Paths of the core files that are open, as the snapshot of them has no names."""

    def snapshot_from_outside(self, arguments: Sequence[str], command: str = "diagnose") -> JobSnapshot:
        """Let a `gdbext diagnose` (or `comms`) of its own look at ranks that are not attached, with these selectors."""


Body = Callable[[Session, Namespace], object]
"""Does the work of a command and returns a model object (or None); never prints. Raises `GdbextError` for the user."""


def chosen_by_current(ranks: Sequence[AttachedRank]) -> Optional[AttachedRank]:
    """The rank that gdb has selected, if it is one."""
    return next((rank for rank in ranks if rank.current), None)
