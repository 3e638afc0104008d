"""A Ctrl-C that came while gdb was stopping already is taken back from the rank, which would die of it once released.

gdb passes every Ctrl-C on to a rank as SIGINT. It takes the first one back as the stop that it causes; the second one,
which somebody presses when a stop takes long, is left waiting in the kernel. gdb 10 to 18 do not see it, and detach.

No call removes a signal that waits. So one thread, which gdb knows as stopped, is let go on to the signal: the kernel
stops it there again before it runs any code, and gdb later resumes or detaches it without the signal. The signal stays
where that is not certain, and where all threads block it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Optional

import gdb

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.ranks.ptrace_call import ptrace
from gdbext.inside_gdb.ranks.timed_stop import handling
from gdbext.model.missing import Missing

_PTRACE_CONT, _PTRACE_GETSIGINFO, _PTRACE_PEEKSIGINFO, _SHARED = 7, 0x4202, 0x4209, 1
_WALL = 0x40000000  # waitpid(2): threads too
_SI_USER = 0
_BIT = 1 << signal.SIGINT - 1  # in the masks of /proc/PID/status
_TAKEN_FIRST = sum(
    1 << number - 1
    for number in (
        signal.SIGHUP,
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGFPE,
        signal.SIGSYS,
    )
)
"""The kernel gives these to a thread before SIGINT: the lower number, and faults (kernel/signal.c, next_signal)."""
_BREAKPOINTS_AND_STEPS = (1, 2, 4, 0x80)  # si_code of SIGTRAP; others are system calls and events of ptrace
_MOST, _SECONDS = 64, 30.0  # signals that are looked at; how long a thread may take to its stop


class _Peek(ctypes.Structure):
    """struct __ptrace_peeksiginfo_args"""

    _fields_ = [("off", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("nr", ctypes.c_int32)]


class _SigInfo(ctypes.Structure):
    """The beginning of siginfo_t, of a signal that kill(2) has sent, on 64-bit Linux."""

    _fields_ = [
        ("si_signo", ctypes.c_int32),
        ("si_errno", ctypes.c_int32),
        ("si_code", ctypes.c_int32),
        ("_pad", ctypes.c_int32),
        ("si_pid", ctypes.c_int32),
        ("_rest", ctypes.c_byte * 108),
    ]


def take_back_interrupts(inferior: gdb.Inferior) -> None:
    """Of a process that this gdb has attached and that stands still: no SIGINT of ours waits in it any more. One that
    somebody else has sent stays, and so does ours where `handle SIGINT pass` says that the program is to get it."""
    with suppress(OSError, gdb.error), _without_ctrl_c():  # it may be killed at any moment
        if not _waits(inferior.pid) or any(thread.is_running() for thread in inferior.threads()):
            return
        if not handling("SIGINT").endswith("nopass"):
            return
        thread = _one_that_takes_it(inferior)
        sender = _as_seen_by(inferior.pid)
        if thread is not None and any(_is_sent_by(sender, info) for info in _waiting(thread)):
            _stop_with_it(inferior.pid, thread)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """One that comes now would leave a thread behind gdb's back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _waits(pid: int) -> bool:
    """Whether the process would take a SIGINT next."""
    status = ProcFS().status(pid)
    waiting = 0 if isinstance(status, Missing) else int(status.get("ShdPnd", "0"), 16)
    return bool(waiting & _BIT) and not waiting & _TAKEN_FIRST


def _one_that_takes_it(inferior: gdb.Inferior) -> Optional[int]:
    """A thread that gdb has stopped, or that a SIGINT has; else one at a breakpoint or a step, of which gdb knows all
    that it needs. What stands at a system call, a fork or a fault must be left as it is."""
    threads = [one.ptid[1] for one in inferior.threads() if _may_take_it(inferior.pid, one.ptid[1])]
    infos = {thread: _stands_at(thread) for thread in threads}
    stopped = [one for one in threads if infos[one].si_signo in (signal.SIGSTOP, signal.SIGINT)]
    trapped = [
        one for one in threads if infos[one].si_signo == signal.SIGTRAP and infos[one].si_code in _BREAKPOINTS_AND_STEPS
    ]
    return next(iter([*stopped, *trapped]), None)


def _may_take_it(pid: int, thread: int) -> bool:
    """It is ours, does not block the signal, has none of its own waiting, and gdb has heard of its stop."""
    status = ProcFS().thread_status(pid, thread)
    if isinstance(status, Missing) or status.get("TracerPid") != str(os.getpid()):
        return False
    blocked, own = (int(status.get(name, "0"), 16) for name in ("SigBlk", "SigPnd"))
    if not status.get("State", "").startswith("t") or blocked & _BIT or own:
        return False
    return os.waitid(os.P_PID, thread, os.WSTOPPED | os.WNOHANG | os.WNOWAIT | _WALL) is None


def _stands_at(thread: int) -> _SigInfo:
    """The signal of its stop; without a number for a stop of another kind."""
    info = _SigInfo()
    return info if ptrace(_PTRACE_GETSIGINFO, thread, None, ctypes.addressof(info)) == 0 else _SigInfo()


def _waiting(thread: int) -> Iterator[_SigInfo]:
    """The signals that wait in its process."""
    infos = (_SigInfo * _MOST)()
    asked = _Peek(0, _SHARED, _MOST)
    found = ptrace(_PTRACE_PEEKSIGINFO, thread, ctypes.addressof(asked), ctypes.addressof(infos))
    yield from infos[: max(found, 0)]


def _as_seen_by(pid: int) -> int:
    """The pid that a signal of this gdb carries there: 0 in another PID namespace."""
    here, there = (os.readlink(f"/proc/{one}/ns/pid") for one in ("self", pid))
    return os.getpid() if here == there else 0


def _is_sent_by(sender: int, info: _SigInfo) -> bool:
    return (info.si_signo, info.si_code, info.si_pid) == (signal.SIGINT, _SI_USER, sender)


def _stop_with_it(pid: int, thread: int) -> None:
    if ptrace(_PTRACE_CONT, thread, None, None) != 0:
        return
    until = time.monotonic() + _SECONDS
    stop = None
    while stop is None and time.monotonic() < until:  # a machine that is short of processors
        time.sleep(0.0005)
        stop = os.waitid(os.P_PID, thread, os.WSTOPPED | os.WNOHANG | _WALL)
    if stop is not None and stop.si_status not in (signal.SIGINT, signal.SIGTRAP, signal.SIGSTOP):
        os.kill(pid, stop.si_status)  # it came in between
