"""What the check commands may ask of the debugger. `inside_gdb/failed_checks/check_watch.py` is the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Protocol, Sequence

from gdbext.commands.session_port import Session
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.check_report import CheckReport, CheckStatus, SwitchResults


@dataclass(frozen=True)
class CheckOptions:
    """What to watch for, and what happens at a failure."""

    action: str = "stop"  # or "log"
    log: Optional[str] = None  # file to which every report is appended as a JSON line
    engine: Optional[str] = None  # only checks of this engine
    pids: Optional[Sequence[int]] = None  # None: all ranks, those to come too


class CheckPort(Protocol):
    """Watching for failed checks in the processes of this gdb."""

    def on(self, options: CheckOptions) -> CheckStatus:
        """Set the breakpoints. Raises GdbextError."""

    def off(self) -> CheckStatus:
        """Take all of them away."""

    def status(self) -> CheckStatus:
        """What is watched, and what has been seen."""

    def report(self, rank: AttachedRank) -> CheckReport:
        """What stopped (or killed) the selected thread. Raises GdbextError when that was no failure."""

    def switch(self, ranks: Sequence[AttachedRank], on: bool) -> SwitchResults:
        """Switch the engines' own debug checks in the running processes; writes to them."""


class CheckSession(Session, Protocol):
    """The session of the check commands."""

    checks: CheckPort
