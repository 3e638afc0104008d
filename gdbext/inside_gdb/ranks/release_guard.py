"""Ranks that gdb holds run on when gdb is killed, even in the middle of an attach.

`attach` stops a process by SIGSTOP. A gdb that dies between that signal and its stop leaves the signal to the process,
which then stands still for good (seen with SIGHUP to gdb). A shell that outlives gdb looks after them and continues
those that gdb held, that nobody traces, and that stand stopped.

An exec() that crosses an attach or a release has the same end while gdb lives: the thread that called it becomes the
main thread with the SIGSTOP of the attach, or with gdb as its tracer, and gdb knows only of the one that it replaced
("Couldn't get registers: No such process" in 13.1). gdb says that it has let go, and the process stands still for good.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import Dict, Iterable, Mapping, Optional, Sequence

import gdb

from gdbext.capture.cleanup_shell import Outliving
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.ranks.ptrace_call import ptrace
from gdbext.model.missing import Maybe, Missing

_PTRACE_DETACH = 17
_SIGSTOP = 1 << signal.SIGSTOP - 1  # in SigPnd of /proc/PID/task/TID/status
_TAKES_IT, _COMES_TO_ITS_STOP = 0.05, 1.0  # seconds

# Fields of /proc/PID/stat behind the name (proc_pid_stat(5)): the first is the state, the 20th the start time.
_CONTINUE = """
set -f
held=
while read -r line; do [ -n "$line" ] || exit; held=$line; done
case $held in
'' | -*) ;;
*) echo "gdbext: gdb ended while it held processes ($held); they keep running" >&2 ;;
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


@dataclass(frozen=True)
class _Before:
    """A process right before its attach."""

    start_time: int
    image: Maybe[bytes]  # another one after an exec()


class Guard:
    """Knows which of the processes that gdb holds were not stopped before; one shell while there are any."""

    def __init__(self) -> None:
        self._shell: Optional[Outliving] = None
        self._held: Dict[int, _Before] = {}  # by pid
        self._quiet = ""
        gdb.events.before_prompt.connect(self.keep_attached)
        compat.on_exit(self._quietly)

    def hold(self, pids: Sequence[int]) -> None:
        """From now on these, besides those from before. Who is stopped already is left as it is. "Z" is held, too: so a
        process looks while its exec() waits for the other threads, once the main thread has ended."""
        for pid in pids:
            stat = ProcFS().stat(pid)
            if not isinstance(stat, Missing) and stat.state not in "TtX":
                self._held[pid] = _Before(stat.start_time, ProcFS().auxv(pid))
        self._tell()

    def keep_attached(self) -> None:
        """The ranks that gdb no longer holds run on, and are watched no longer."""
        attached = {inferior.pid for inferior in gdb.inferiors()}
        if not attached.issuperset(self._held):
            for pid, before in self._held.items():
                if pid not in attached:
                    _see_off(pid, before)
            self._held = {pid: before for pid, before in self._held.items() if pid in attached}
            self._tell()

    def mend(self) -> None:
        """An attach was broken off, and gdb has let go: continue whom it left stopped."""
        for pid, before in self._held.items():
            stat = ProcFS().stat(pid)
            if not isinstance(stat, Missing) and (stat.state, stat.start_time) == ("T", before.start_time):
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
                self._quiet * bool(self._held) + " ".join(f"{pid}:{one.start_time}" for pid, one in self._held.items())
            )
        if self._shell is not None and not self._held:
            self._shell.end()
            self._shell = None


def _see_off(pid: int, before: _Before) -> None:
    """Take back what an exec() has left to a process. A SIGSTOP that somebody else has sent stays: kill(2) sends it to
    the process, ptrace(2) to a thread."""
    proc, begin = ProcFS(), time.monotonic()
    while True:
        lines = [proc.thread_status(pid, tid) for tid in proc.tasks(pid)]
        threads = [status for status in lines if not isinstance(status, Missing)]
        stat = proc.stat(pid)  # after the threads: who has taken the signal by now is stopped
        if isinstance(stat, Missing) or stat.start_time != before.start_time:
            return
        became_another = proc.auxv(pid) != before.image
        traced = [int(status["Pid"]) for status in threads if status.get("TracerPid") == str(os.getpid())]
        for (
            tid
        ) in traced:  # one that is on its way to its stop cannot be let go yet, and SIGCONT would keep it from there
            ptrace(_PTRACE_DETACH, tid, None, None)
        if not traced and (_stop_waits(threads) or (stat.state == "T" and became_another)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        if time.monotonic() - begin > (_COMES_TO_ITS_STOP if traced else _TAKES_IT if became_another else 0.0):
            return
        time.sleep(0.001)


def _stop_waits(threads: Iterable[Mapping[str, str]]) -> bool:
    return any(int(status.get("SigPnd", "0"), 16) & _SIGSTOP for status in threads)
