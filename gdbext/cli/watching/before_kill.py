"""`gdbext watch --before-kill`: one look and its bundle before a job is restarted, and never a late restart.

The look is a child of ours. We do nothing but wait for it, so nothing that it meets (a rank that cannot be stopped, a
gdb that hangs, a full disk, a reader that reads nothing) can keep us longer than asked: it is killed then, the kernel
lets go of every thread that it traces, and what it had begun to write goes away.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from gdbext.capture.without_stop.kernel_threads import look
from gdbext.cli.terminal import Progress
from gdbext.model.errors import NOTHING, UNTOLD, UsageError

SECONDS = 30.0
"""Unless `--deadline` says otherwise: the least that kubelet and torchrun wait for before they kill."""
_RESERVE = 0.4  # seconds in which the child is killed and we end
_LONGEST = 86400.0
_SET_PDEATHSIG = 1  # linux/prctl.h
_TICKS = os.sysconf("SC_CLK_TCK")


def run(options: argparse.Namespace) -> int:
    """Status 0, 1 or 3 as `gdbext diagnose`; 3 also when time was up."""
    seconds = SECONDS if options.deadline is None else options.deadline
    if not 2 <= seconds <= _LONGEST:
        raise UsageError("--deadline must be from 2 s to a day")
    into = Path(options.into)
    end = time.monotonic() + seconds - _age() - _RESERVE
    ours = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != ours:  # it had ended before
            return UNTOLD
        status: int = importlib.import_module("gdbext.cli.watching.look_before_kill").run(options, into, end)
        return status
    try:
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, end - time.monotonic()))
        _, code = os.waitpid(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        _kill(child)
        raise
    except _TimeUp:
        signal.signal(signal.SIGALRM, _leave)
        signal.setitimer(signal.ITIMER_REAL, _RESERVE / 2)  # whatever holds us up in the next lines
        _kill(child)
        Progress().warn(f"no complete bundle within {seconds:g} s: gdbext gave up to meet the deadline")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        _forget_draft(into, child)
        _leave()
    if os.WIFEXITED(code):
        return os.WEXITSTATUS(code)
    Progress().warn(f"the diagnosis was ended by signal {os.WTERMSIG(code)}; every process keeps running")
    _forget_draft(into, child)
    return NOTHING


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


class _TimeUp(Exception):
    """Time is up."""


def _late(*_: object) -> None:
    raise _TimeUp


def _leave(*_: object) -> None:
    os._exit(UNTOLD)


def _age() -> float:
    """Seconds since this process was started: Python's start counts."""
    own = look(os.getpid()).get(os.getpid())
    if own is None or own.started is None:
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - own.started / _TICKS)


def _forget_draft(into: Path, child: int) -> None:
    """What a bundle is called before it is whole ends in the pid of who writes it."""
    for draft in into.glob(f".*.{child}"):
        shutil.rmtree(draft, ignore_errors=True)
