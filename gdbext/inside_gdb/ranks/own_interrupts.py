"""A Ctrl-C that came while gdb was stopping already is taken back from the rank, which would die of it once released.

gdb passes every Ctrl-C on to a rank as SIGINT. It takes the first one back as the stop that it causes; the second one,
which somebody presses when a stop takes long, is left waiting in the kernel. gdb 10 to 18 do not see it, and detach.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Iterator, Optional

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

_PTRACE_CONT, _PTRACE_PEEKSIGINFO, _SHARED = 7, 0x4209, 1
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
_MOST, _SECONDS = 64, 1.0  # signals that are looked at; how long a thread may take to its stop
_ptrace = ctypes.CDLL(None).ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


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


def take_back_interrupts(pid: int) -> None:
    """Of a process that stands still, traced by this gdb: no SIGINT of ours waits in it any more. One that somebody
    else has sent stays, and so does ours where another signal would be taken before it."""
    status = ProcFS().status(pid)
    waiting = 0 if isinstance(status, Missing) else int(status.get("ShdPnd", "0"), 16)
    if not waiting & _BIT or waiting & _TAKEN_FIRST:
        return
    thread = _one_that_takes_it(pid)
    if thread is not None and any(_is_ours(info) for info in _waiting(thread)):
        _stop_with_it(pid, thread)


def _one_that_takes_it(pid: int) -> Optional[int]:
    """A thread that we trace, that does not block the signal, and for which none of its own waits."""
    for thread in ProcFS().tasks(pid):
        status = ProcFS().thread_status(pid, thread)
        if isinstance(status, Missing) or status.get("TracerPid") != str(os.getpid()):
            continue
        blocked, own = (int(status.get(name, "0"), 16) for name in ("SigBlk", "SigPnd"))
        if status.get("State", "").startswith("t") and not (blocked & _BIT or own):
            return thread
    return None


def _waiting(thread: int) -> Iterator[_SigInfo]:
    """The signals that wait in its process."""
    infos = (_SigInfo * _MOST)()
    asked = _Peek(0, _SHARED, _MOST)
    found = _ptrace(_PTRACE_PEEKSIGINFO, thread, ctypes.addressof(asked), ctypes.addressof(infos))
    yield from infos[: max(found, 0)]


def _is_ours(info: _SigInfo) -> bool:
    """By its sender: this gdb, which a process in a PID namespace below sees as 0."""
    return (info.si_signo, info.si_code) == (signal.SIGINT, _SI_USER) and info.si_pid in (0, os.getpid())


def _stop_with_it(pid: int, thread: int) -> None:
    """Let the thread go on to the signal: it stops there before it runs any code, and gdb, which knows it as stopped,
    resumes or detaches it without the signal."""
    _ptrace(_PTRACE_CONT, thread, None, None)
    until = time.monotonic() + _SECONDS
    while os.waitid(os.P_PID, thread, os.WSTOPPED | os.WNOHANG | _WALL) is None:
        if time.monotonic() > until:  # nothing known comes here; whatever it was, the thread must stand again
            os.kill(pid, signal.SIGSTOP)  # all others stand, so this one takes it
            os.waitid(os.P_PID, thread, os.WSTOPPED | os.WEXITED | os.WNOWAIT | _WALL)
            return
        time.sleep(0.0005)
