"""`gdbext launch -- COMMAND`: a launcher in the background, one rank's prompt here, nothing left behind."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import ContextManager, Dict, List, Optional, Sequence, Set

from gdbext.cli.pdb import command
from gdbext.cli.terminal import Progress
from gdbext.collect.cleanup_on_signals import handled
from gdbext.discovery.proc.process_table import read_table
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch.log_options import LOG_OPTIONS
from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.text.ranges import counted
from gdbext.rankpdb import folder

GRACE = 10.0  # seconds between the gentle and the last signal to a job that is to end
_NAP = 0.05  # seconds between two looks at it
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2): orphans of the job become our children
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(options: argparse.Namespace) -> int:
    """Start the command and stay until it has ended; returns its exit status. Raises GdbextError."""
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise UsageError("no command to start", "gdbext launch --rank 1 -- torchrun --nproc-per-node 8 train.py")
    progress = Progress()
    logs = _folder(options.logs)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    environment = dict(os.environ) if options.rank is None else {**os.environ, "RANK_TO_DEBUG": str(options.rank)}
    job = _start(with_logs(words, logs), environment, logs)
    with _forwarding(job, _FORWARDED):
        try:
            with _forwarding(job, (signal.SIGINT,) if options.rank is None else ()):
                progress.say(f"started pid {job.pid}; logs are in {logs}")
                if options.rank is not None:
                    _debug(options.rank, job, progress)
                status = _wait(job)
        except KeyboardInterrupt:  # one that neither a prompt nor `_wait` was there to take
            progress.say("interrupted; asking the job to end")
            return 128 + signal.SIGINT
        finally:
            left = _end_job(job)
            folder.remove_stale_sockets()  # ranks that were killed at a breakpoint
    if left:
        progress.say(f"ended {counted(left, 'process', 'processes')} that outlived the launcher")
    if status:
        progress.say(f"the launcher ended with status {status}; see {logs / 'launcher.log'}")
    return status


def with_logs(words: Sequence[str], logs: Path) -> List[str]:
    """The command with the options that make its launcher keep a log of each rank, unless it has some."""
    for row in LOG_OPTIONS:
        for position, word in enumerate(words):
            if word.rpartition("/")[2] in row.words and (position == 0 or words[position - 1] == "-m"):
                if any(word.split("=")[0] in row.taken for word in words):
                    return list(words)
                extra = [option.format(logs=logs) for option in row.options]
                return [*words[: position + 1], *extra, *words[position + 1 :]]
    return list(words)


def _folder(asked: Optional[str]) -> Path:
    """The folder for the logs: what ranks print is for their user. One that is there already keeps its mode."""
    logs = Path(asked or f"gdbext-logs-{time.strftime('%Y%m%d-%H%M%S')}").absolute()
    with refused_as(f"cannot make {logs}", "give another folder with --logs"):
        logs.parent.mkdir(parents=True, exist_ok=True)
        try:
            logs.mkdir(0o700)
            logs.chmod(0o700)  # whatever the umask is
        except FileExistsError:
            if not asked or not logs.is_dir():  # a name that nobody asked for is not somebody else's folder
                raise
    return logs


def _open_log(path: Path) -> int:
    """For this user alone, and in the folder that was asked for: never through a link, nor into a file of others."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with refused_as(f"cannot write {path}", "give another folder with --logs"):
        log = os.open(path, flags, 0o600)
    found = os.fstat(log)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(log)
        raise GdbextError(f"{path} is not a file of this user alone", "give another folder with --logs")
    os.fchmod(log, 0o600)
    os.set_blocking(log, True)
    return log


def _start(words: List[str], environment: Dict[str, str], logs: Path) -> subprocess.Popen[bytes]:
    descriptor = _open_log(logs / "launcher.log")
    with refused_as(f"cannot start {words[0]}"), open(descriptor, "ab") as log:
        return subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_end_with_us,
        )


def _end_with_us() -> None:
    """In the launcher before it begins: should we be killed, it is asked to end, and ends its ranks."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM)


def _debug(rank: int, job: subprocess.Popen[bytes], progress: Progress) -> None:
    """The prompt of the rank, here, until the job has ended or Ctrl-C."""
    left = command.prompt_ranks(
        lambda: command.ranks_below(_descendants), rank, progress, lambda: job.poll() is not None
    )
    if left and job.poll() is None:
        progress.say("the job keeps running; Ctrl-C interrupts it")


def _wait(job: subprocess.Popen[bytes]) -> int:
    """Its exit status, as a shell says it. A Ctrl-C goes to the job, and a second one ends it."""
    while True:
        try:
            status = job.wait()
            return 128 - status if status < 0 else status
        except KeyboardInterrupt:
            _signal(job, signal.SIGINT)


def _signal(job: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, number)


def _forwarding(job: subprocess.Popen[bytes], numbers: Sequence[signal.Signals]) -> ContextManager[None]:
    """Signals that mean us mean the job."""
    return handled(numbers, lambda got, _: _signal(job, got))


def _end_job(job: subprocess.Popen[bytes]) -> int:
    """End what is left of the job, gently first, and at once after a Ctrl-C; returns how many processes outlived their
    launcher."""
    interrupts: List[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        if job.poll() is None:
            _signal(job, signal.SIGTERM)
            until = time.monotonic() + GRACE
            while job.poll() is None and not interrupts and time.monotonic() < until:
                time.sleep(_NAP)
        return _end_descendants(interrupts)
    finally:
        signal.signal(signal.SIGINT, before)


def _end_descendants(interrupts: Sequence[int]) -> int:
    """All that is left below us; how many there were. No patience is left when there is something in `interrupts`."""
    left = alive = _descendants()
    signalled: Dict[signal.Signals, Set[int]] = {signal.SIGTERM: set(), signal.SIGKILL: set()}
    begun = time.monotonic()
    while alive and time.monotonic() < begun + 2 * GRACE:  # one in state D, or another user's, is not waited for
        gently = time.monotonic() < begun + GRACE and not interrupts
        number = signal.SIGTERM if gently else signal.SIGKILL
        for pid in alive - signalled[number]:  # once: a second one may mean that there is no time to tidy up
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        signalled[number] |= alive
        time.sleep(_NAP)
        alive = _descendants()
    with contextlib.suppress(ChildProcessError):  # the last ones are zombies of ours
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return len(left)


def _descendants() -> Set[int]:
    """Pids of all processes below this one, zombies left out. We are the reaper of orphans, so none is missing."""
    return {entry.pid for entry in read_table(ProcFS()).descendants(os.getpid()) if entry.state not in "ZX"}
