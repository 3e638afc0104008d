"""Stop the threads of a process, read their registers, let them go: ptrace(2) by ctypes.

The target is seized, never attached in the old way: seizing sends no signal and stops nothing, a thread that stood in a
job-control stop goes back to it when it is let go, and when we die the kernel lets go of everything.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from array import array
from typing import Dict, Iterable, List, Optional, Sequence, Set, Tuple

from gdbext.capture.copies.syscall_line import parse_standing
from gdbext.capture.copies.thread_status import thread_state, why_refused
from gdbext.capture.machine import Architecture
from gdbext.capture.proc_texts import text_of, threads_of
from gdbext.model.missing import Missing

# linux/ptrace.h, linux/elf.h, linux/wait.h
_DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_NT_PRSTATUS = 1
_EVENT_STOP = 128
_WAIT = os.WNOHANG | 0x40000000 | 0x20000000  # __WALL: threads too; __WNOTHREAD: tracees of this thread only

_ROUNDS = 50  # of looking for threads that were made while we stopped the others
_STUCK_THREAD_SECONDS = 0.02  # seconds until we ask why a thread does not stop
_NAP, _NAP_EACH = 50e-6, 3e-6  # seconds between two looks, per thread: they need the processor to reach their stop
_READ = 16  # threads that did not stop whose place is read, 50 us each
_NO_TIME = "it did not stop in time"
_UNSTOPPABLE = {
    "D": "uninterruptible sleep in the kernel (state D)",
    "Z": "it has ended (state Z)",
    "X": "it has ended (state X)",
}

# PyDLL keeps the interpreter lock: these calls do not block, and a stop must not wait for another Python thread. The
# call that seizes may block (`Tracees.reap`), so it leaves the lock to others.
_ptrace = ctypes.PyDLL(None, use_errno=True).ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_ptrace.restype = ctypes.c_long
_seize = ctypes.CDLL(None, use_errno=True).ptrace
_seize.argtypes, _seize.restype = _ptrace.argtypes, _ptrace.restype
_ENDED = os.WEXITED | os.WNOHANG | 0x40000000  # __WALL, but of all our threads


class Tracees:
    """The threads of one process while we hold them. All calls must come from one OS thread.

    `seize_new`, `interrupt` and `settle` (again while new threads appear: `stop_all`), `read_registers`, `release`.
    Or the same for a few threads at a time (`seize`). Threads that never stop cannot be let go by a call: the kernel
    does it when the calling OS thread ends.
    """

    def __init__(self, pid: int, row: Architecture, limit: int) -> None:
        self.pid = pid
        self.refused: Dict[int, str] = {}  # tid -> why it was not stopped, or not read
        self.left_out = 0  # threads beyond the limit, left running
        self.problems: List[str] = []
        self.registers: Dict[int, Sequence[int]] = {}  # words; of a refused thread: as far as /proc knows them
        self._row, self._limit = row, limit
        self._known: Set[int] = set()
        self._ours: Set[int] = set()  # seized, not let go
        self._seized: List[int] = []  # not told to stop yet
        self._pending: List[int] = []  # told to stop, not reported yet
        self._signals: Dict[int, int] = {}  # stopped tid -> signal to hand over when it is let go, 0 for none
        self._seizing: Optional[float] = None  # since when the call that seizes has been under way
        self.longest = 0.0  # seconds that the thread stood still which did so longest
        self._interrupted_at: Dict[int, float] = {}  # tid, not let go -> when it was told to stop, CLOCK_MONOTONIC

    def signal_of(self, tid: int) -> int:
        """The signal that was on its way to a thread when it stopped, 0 for none; it gets it when it is let go."""
        return self._signals.get(tid, 0)

    @property
    def all_free(self) -> bool:
        """Whether no thread is ours (any more), not even one that may still come to its stop."""
        return not self._ours

    def leave(self, tids: Iterable[int]) -> None:
        """These are neither seized nor stopped."""
        self._known.update(tids)

    def seize_new(self) -> bool:
        """Seize the threads that we do not have yet; nothing stops by this. False when there was none."""
        new = [tid for tid in threads_of(self.pid) if tid not in self._known]
        room = max(0, self._limit - len(self._known))
        self.left_out = len(new[room:])
        self.seize(new[:room])
        return bool(new[:room])

    def seize(self, tids: Iterable[int]) -> None:
        """Seize these threads; nothing stops by this."""
        for tid in tids:
            self._known.add(tid)
            self._seizing = time.monotonic()
            answer = _seize(_SEIZE, tid, None, None)
            self._seizing = None
            if answer == 0:
                self._ours.add(tid)
                self._seized.append(tid)
                continue
            number = ctypes.get_errno()
            if number != errno.ESRCH:  # else it has ended meanwhile
                self.refused[tid] = why_refused(self.pid, tid) if number == errno.EPERM else os.strerror(number)

    def reap(self) -> None:
        """Called from another OS thread now and then. An exec() of the target ends its other threads and waits until
        their tracer has noticed; the kernel lets nobody seize one of them meanwhile. So both would wait for ever."""
        since = self._seizing
        if since is not None and time.monotonic() - since > _STUCK_THREAD_SECONDS:
            for tid in tuple(self._known):
                try:
                    os.waitid(os.P_PID, tid, _ENDED)
                except OSError:
                    pass  # never ours, or noticed before

    def interrupt(self, deadline: float) -> None:
        """Tell the seized threads to stop, those for which there is time until `deadline`."""
        seized, self._seized = self._seized, []
        for number, tid in enumerate(seized):
            now = time.monotonic()
            if now >= deadline:
                self._give_up(dict.fromkeys(seized[number:], _NO_TIME))
                seized = seized[:number]
                break
            self._interrupted_at[tid] = now
            _ptrace(_INTERRUPT, tid, None, None)
        self._pending += seized

    def settle(self, deadline: float) -> None:
        """Wait until those threads stand still, at most until `deadline` (CLOCK_MONOTONIC seconds)."""
        ask = time.monotonic() + _STUCK_THREAD_SECONDS
        while True:
            self._pending = [tid for tid in self._pending if not self._reported(tid)]
            if not self._pending:
                return
            now = time.monotonic()
            if now >= deadline:
                self._give_up(dict.fromkeys(self._pending, _NO_TIME))
            elif now >= ask:
                ask = now + _STUCK_THREAD_SECONDS
                states = {tid: _UNSTOPPABLE.get(thread_state(self.pid, tid)) for tid in self._pending}
                self._give_up({tid: state for tid, state in states.items() if state})
            time.sleep(max(_NAP, _NAP_EACH * len(self._pending)))

    def _give_up(self, reasons: Dict[int, str]) -> None:
        self.refused.update(reasons)
        for tid in list(reasons)[:_READ]:  # others stand still meanwhile
            words = _blocked_registers(self.pid, tid, self._row)
            if words:
                self.registers[tid] = words
        self._pending = [tid for tid in self._pending if tid not in reasons]

    def _reported(self, tid: int) -> bool:
        """True when the kernel has said what became of a thread: it stands still, or it is gone."""
        try:
            got, status = os.waitpid(tid, _WAIT)
        except ChildProcessError:
            self._ours.discard(tid)
            return True  # another thread's exec() ended it
        if got == 0:
            return False
        if os.WIFSTOPPED(status):
            # Our own interrupt and a job-control stop come as EVENT_STOP. Anything else is a signal on its way to the
            # thread, which has to get it.
            self._signals[tid] = 0 if status >> 16 == _EVENT_STOP else os.WSTOPSIG(status)
        else:
            self._ours.discard(tid)
        return True

    def stop_all(self, deadline: float) -> None:
        """Stop every thread, also those that others make before they stop."""
        for _ in range(_ROUNDS):
            self.interrupt(deadline)
            self.settle(deadline)
            if not self.seize_new():
                return
            if time.monotonic() >= deadline:
                break
        self.interrupt(deadline)
        self.settle(deadline)
        self.problems.append("new threads kept appearing while the process was being stopped: some are missing")

    def read_registers(self) -> None:
        """Read the registers of the stopped threads into `registers`."""
        count, size = self._row.registers, 8 * self._row.registers
        stopped = [tid for tid in self._interrupted_at if tid in self._signals]
        words = array("Q", bytes(size * len(stopped)))
        view, start = memoryview(words), words.buffer_info()[0]
        iovec = array("Q", (start, size))
        address = iovec.buffer_info()[0]
        for index, tid in enumerate(stopped):
            iovec[0], iovec[1] = start + index * size, size
            if _ptrace(_GETREGSET, tid, _NT_PRSTATUS, address) != 0:
                continue  # killed while it stood still
            if iovec[1] == size:
                self.registers[tid] = view[index * count : index * count + count]
            else:
                self.refused[tid] = f"its register set has {iovec[1]} bytes instead of {size} (a 32-bit program?)"

    def release(self) -> None:
        """Let every stopped thread go on, each with the signal that was on its way. May be called again."""
        for (
            tid,
            interrupted_at,
        ) in self._interrupted_at.items():  # who was told first goes first: nobody waits for all the others
            if tid in self._signals:
                _ptrace(_DETACH, tid, None, self._signals[tid] or None)
                self._ours.discard(tid)
                self.longest = max(self.longest, time.monotonic() - interrupted_at)
        self._interrupted_at.clear()


def _blocked_registers(pid: int, tid: int, row: Architecture) -> Optional[Tuple[int, ...]]:
    """The registers of a thread that cannot be stopped, as far as /proc/PID/task/TID/syscall knows them: sp and pc, all
    others 0. `None` when the thread runs or may not be looked at."""
    found = parse_standing(text_of(f"/proc/{pid}/task/{tid}/syscall"))
    if isinstance(found, Missing):
        return None
    words = [0] * row.registers
    words[row.sp], words[row.pc] = found.sp, found.pc
    return tuple(words)
