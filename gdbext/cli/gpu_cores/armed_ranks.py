"""`gdbext gpucore status [JOB]`: whether each rank will write GPU cores. Nothing is opened that the driver reads from:
that alone may ask it for a core."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import stat
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from gdbext.analysis.verdict.running_timeouts import timeouts_of
from gdbext.capture.gpu_cores.gpu_core_file import is_complete
from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.answer_output import show
from gdbext.cli.chosen_processes import chosen_job
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch import gpu_core_settings as settings
from gdbext.model.errors import UsageError
from gdbext.model.exit_status import exit_status
from gdbext.model.gpu_core_arming import ArmedJob, ArmedRank
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.text.digits import is_whole
from gdbext.safe_open import files

_MOST_NAMES = 1 << 16
_MOST_TIMEOUTS = 3


def run(options: argparse.Namespace) -> int:
    """The whole command; status 1 when some rank is not armed."""
    proc = ProcFS()
    _, status = armed(proc, chosen_job(proc, options, pids_of(options)))
    show(status, options)
    return exit_status(not status.ready)


def pids_of(options: argparse.Namespace) -> Tuple[int, ...]:
    """The pids on the command line. Raises `UsageError` for anything else."""
    wrong = next((word for word in options.inputs if not is_whole(word)), None)
    if wrong is not None:
        raise UsageError(f"not a process id: {wrong}", f"gdbext gpucore {options.action} [PID]")
    return tuple(int(word) for word in options.inputs)


@dataclass
class DumpPipe:
    """Where one process writes its cores, and where it is asked for them: in its own view of the files."""

    pid: int
    inner: int  # its pid as it sees it
    folder: str = ""
    name: Optional[re.Pattern[str]] = None  # of its files
    pipe_folder: str = ""
    pipe_name: Optional[re.Pattern[str]] = None
    problems: List[str] = field(default_factory=list)
    seen_at: str = ""  # its folder for us
    held: Optional[int] = None  # the folder, open: it is there when the process has ended

    @property
    def root(self) -> str:
        return f"/proc/{self.pid}/root"

    def pipe(self) -> Optional[str]:
        """The name of the pipe in its folder; None where there is none."""
        if self.pipe_name is None:
            return None
        try:
            with files.folder(self.pipe_folder, self.root) as opened:
                for name in os.listdir(opened)[:_MOST_NAMES]:
                    if self.pipe_name.match(name) and stat.S_ISFIFO(_status(name, opened)):
                        return name
        except OSError:
            return None
        return None

    def cores(self) -> Dict[str, Tuple[int, int]]:
        """Size and time of each of its files."""
        if self.name is None or self.held is None:
            return {}
        found: Dict[str, Tuple[int, int]] = {}
        with contextlib.suppress(OSError):
            for name in os.listdir(self.held)[:_MOST_NAMES]:
                if self.name.match(name):
                    with contextlib.suppress(OSError):
                        status = os.stat(name, dir_fd=self.held, follow_symlinks=False)
                        found[name] = status.st_size, status.st_mtime_ns
        return found

    def hold(self, stack: contextlib.ExitStack) -> None:
        """Keep the folder open until the end of `stack`."""
        with contextlib.suppress(OSError):
            self.held = stack.enter_context(files.folder(self.folder, self.root))
            self.seen_at = self.folder if _same_root(self.pid) else self.root + self.folder

    def is_whole(self, name: str) -> bool:
        """Whether one of its files reaches its end."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(name, flags, dir_fd=self.held), "rb") as stream:
                return stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and is_complete(stream)
        except OSError:
            return False

    def free(self) -> Optional[int]:
        """Bytes that are free where its files go."""
        try:
            with files.folder(self.folder, self.root) as opened:
                room = os.fstatvfs(opened)
        except OSError:
            return None
        return room.f_bavail * room.f_frsize

    def seen_from_here(self, name: str) -> str:
        """A file of it, by a path that works for us."""
        return os.path.join(self.seen_at or self.folder, name)


def armed(proc: ProcFS, job: Job) -> Tuple[List[DumpPipe], ArmedJob]:
    """Every rank of the job, with what the engine's timers will do while they stand still."""
    outlets: List[DumpPipe] = []
    found: List[ArmedRank] = []
    timers: List[str] = []
    for process in job.ranks:
        outlet, rank, environ = _rank(proc, process)
        outlets.append(outlet)
        found.append(rank)
        mapped = proc.mapped_files(process.pid)
        if not timers and environ:
            known = timeouts_of(environ, () if isinstance(mapped, Missing) else mapped, process.engine or job.engine)
            timers = [one.words() for one in known[:_MOST_TIMEOUTS]]
    return outlets, ArmedJob(key=job.key, ranks=tuple(found), timeouts=tuple(timers))


def _rank(proc: ProcFS, process: RankProcess) -> Tuple[DumpPipe, ArmedRank, Mapping[str, str]]:
    pid = process.pid
    status = proc.status(pid)
    inner = str(pid) if isinstance(status, Missing) else status.get("NSpid", str(pid)).split()[-1]
    outlet = DumpPipe(pid=pid, inner=int(inner) if is_whole(inner) else pid)
    label = f"rank {process.rank}" if process.rank is not None else f"pid {pid}"
    environ = read_environ(pid)
    if isinstance(environ, Missing):
        environ = proc.environ(pid)
    if isinstance(environ, Missing):
        return outlet, ArmedRank(label=label, pid=pid, rank=process.rank, problems=(environ.reason,)), {}
    _places(outlet, environ)
    pipe = outlet.pipe()
    waiting = _waits(proc, pid, pipe)
    if not isinstance(status, Missing) and status.get("TracerPid", "0") != "0":
        outlet.problems.append("a debugger is attached, and the driver may write no core beside it")
    problems = [*outlet.problems, *_old(environ)]
    on_demand = _is_on(environ.get(settings.ON_DEMAND))
    if on_demand and waiting is False:
        problems.append("its pipe is not there: it has not initialised CUDA yet, or cannot write the folder")
    rank = ArmedRank(
        label=label,
        pid=pid,
        rank=process.rank,
        on_exception=_is_on(environ.get(settings.ON_EXCEPTION)),
        on_demand=on_demand,
        file=environ.get(settings.FILE, ""),
        pipe=os.path.join(outlet.pipe_folder, pipe) if pipe else "",
        pipe_open=waiting,
        free=outlet.free(),
        problems=tuple(problems),
    )
    return outlet, rank, environ


def _places(outlet: DumpPipe, environ: Mapping[str, str]) -> None:
    """Folders and names, out of the process's own variables."""
    file = environ.get(settings.FILE) or "core_%t_%h_%p.nvcudmp"
    if file.lstrip().startswith("|"):
        outlet.problems.append("its cores go to a command, not to a file")
    else:
        outlet.folder, name = os.path.split(_absolute(outlet.pid, file))
        outlet.name = _pattern(name, outlet)
    pipe = environ.get(settings.PIPE)
    folder, name = os.path.split(_absolute(outlet.pid, pipe or "x"))
    outlet.pipe_folder = folder
    default = settings.DEFAULT_PIPE + rf"[\w.-]{{1,255}}[._]{outlet.inner}\Z"
    outlet.pipe_name = _pattern(name, outlet) if pipe else re.compile(default)


def _pattern(name: str, outlet: DumpPipe) -> re.Pattern[str]:
    """A name with the driver's %h, %p and %t as a pattern."""
    meant = {"%h": r"[^/]{1,255}?", "%p": str(outlet.inner), "%t": r"\d{1,20}", "%%": "%"}
    parts = re.split(r"(%[hpt%])", name)
    return re.compile("".join(meant.get(part, re.escape(part)) for part in parts) + r"(?:\.gz)?\Z")


def _absolute(pid: int, path: str) -> str:
    if path.startswith("/"):
        return os.path.normpath(path)
    try:
        return os.path.normpath(os.path.join(os.readlink(f"/proc/{pid}/cwd"), path))
    except OSError:
        return os.path.normpath(f"/{path}")


def _waits(proc: ProcFS, pid: int, pipe: Optional[str]) -> Optional[bool]:
    """Whether the process waits at its pipe: it has it open, or a thread sleeps while it opens one; None: a pipe is
    there, and nobody can see who waits."""
    if pipe is None:
        return False
    opened = proc.open_files(pid)
    if isinstance(opened, tuple) and any(os.path.basename(one) == pipe for one in opened):
        return True
    sleeping = (proc.text(f"{pid}/task/{tid}/wchan") for tid in proc.tasks(pid))
    return True if any(one in settings.WAITS_AT_PIPE for one in sleeping if isinstance(one, str)) else None


def _old(environ: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(environ):
        old = settings.old_row(name, environ[name], settings.NEWEST) if name.startswith("CUDA_") else None
        if old is not None:
            yield f"{name}: {old.says}"


def _is_on(value: Optional[str]) -> bool:
    return value not in (None, "", "0")


def _status(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return 0


def _same_root(pid: int) -> bool:
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/root/"), os.stat("/"))
    except OSError:
        return True
