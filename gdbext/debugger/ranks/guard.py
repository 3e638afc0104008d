"""Ranks that gdb holds run on when gdb is killed, even in the middle of an attach.

`attach` stops a process by SIGSTOP. A gdb that dies between that signal and its stop leaves the signal to the process,
which then stands still for good (seen with SIGHUP to gdb). A shell that outlives gdb looks after them and continues
those that gdb held, that nobody traces, and that stand stopped.
"""

from __future__ import annotations

import os
import signal
from typing import Dict, Optional, Sequence

import gdb

from gdbext.capture.outliving import Outliving
from gdbext.debugger.base import compat
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

# Fields of /proc/PID/stat behind the name (proc_pid_stat(5)): the first is the state, the 20th the start time.
_CONTINUE = """
set -f
held=
while read -r line; do [ -n "$line" ] || exit; held=$line; done
case $held in
'' | -*) ;;
*) echo "gdbext: gdb ended while it held processes ($held); they run on" >&2 ;;
esac
exec 2>/dev/null
look() {
    pid=${1%:*} start=${1#*:}
    read -r stat </proc/$pid/stat || return
    set -- ${stat##*) }
    [ "$1" = T ] && shift 19 && [ "$1" = "$start" ] && kill -CONT $pid
}
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    [ -n "$held" ] || exit
    for one in $held; do look $one; done
    sleep 0.2
done
"""


class Guard:
    """Knows which of the processes that gdb holds were not stopped before; one shell while there are any."""

    def __init__(self) -> None:
        self._shell: Optional[Outliving] = None
        self._held: Dict[int, int] = {}  # pid -> start time
        self._quiet = ""
        gdb.events.before_prompt.connect(self.keep_attached)
        compat.on_exit(self._quietly)

    def hold(self, pids: Sequence[int]) -> None:
        """From now on these, besides those from before. Who is stopped already is left as it is."""
        for pid in pids:
            stat = ProcFS().stat(pid)
            if not isinstance(stat, Missing) and stat.state not in "TtZX":
                self._held[pid] = stat.start_time
        self._tell()

    def keep_attached(self) -> None:
        """What becomes of those that are free is none of our business any more."""
        attached = {inferior.pid for inferior in gdb.inferiors()}
        if not attached.issuperset(self._held):
            self._held = {pid: start for pid, start in self._held.items() if pid in attached}
            self._tell()

    def mend(self) -> None:
        """An attach was broken off, and gdb has let go: continue whom it left stopped."""
        for pid, start in self._held.items():
            stat = ProcFS().stat(pid)
            if not isinstance(stat, Missing) and (stat.state, stat.start_time) == ("T", start):
                os.kill(pid, signal.SIGCONT)

    def _quietly(self) -> None:
        """gdb ends as it should and detaches: nothing to say."""
        self._quiet = "- "
        if self._held:
            self._tell()

    def _tell(self) -> None:
        if self._shell is None and self._held:
            self._shell = Outliving(_CONTINUE, "gdbext-guard", speaks=True)
        if self._shell is not None:
            self._shell.tell(
                self._quiet * bool(self._held) + " ".join(f"{pid}:{start}" for pid, start in self._held.items())
            )
        if self._shell is not None and not self._held:
            self._shell.end()
            self._shell = None
