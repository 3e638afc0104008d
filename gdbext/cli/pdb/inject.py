"""`gdbext pdb --inject FILE:LINE`: a breakpoint in running Python ranks, for the life of this terminal, once."""

from __future__ import annotations

import argparse
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gdbext.capture.python.runtime import interpreter_of
from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.pdb import remote_exec
from gdbext.cli.terminal import Progress, style_for
from gdbext.collect.cleanup_on_signals import private_folder
from gdbext.collect.gdb_runs import batch_runs
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.text.digits import is_whole
from gdbext.rankpdb.wire import Message, Wire
from gdbext.render.safe_text import clean_line

PACKAGE = str(Path(batch_runs.INIT).parent)
_GDB_SECONDS = 60.0  # and as much again for every eight ranks: it reads the symbols of all their libraries
_TEXT = """exec({body!r},{{"__name__":"gdbext"}})"""
_BODY = """
try:
    import sys, time
    if time.monotonic() < {until}:
        try:
            from gdbext.rankpdb import injected as planted
        except ImportError:
            from importlib import util
            if "gdbext" in sys.modules:
                raise
            places = [{package!r}]
            spec = util.spec_from_file_location("gdbext", places[0] + "/__init__.py", submodule_search_locations=places)
            sys.modules["gdbext"] = util.module_from_spec(spec)
            from gdbext.rankpdb import injected as planted
        planted.take({request!r})
except BaseException as error:
    try:
        import json, socket
        wire = socket.socket(socket.AF_UNIX)
        wire.connect("\\0" + {report!r})
        wire.sendall(json.dumps({{"error": type(error).__name__ + ": " + str(error)}}).encode() + b"\\n")
        wire.close()
    except BaseException:
        pass
"""
"""Runs in the rank. Nothing of it may raise, and it leaves no name in the program."""


@dataclass
class Asked:
    """A rank that was asked, and what it said."""

    process: RankProcess
    listener: socket.socket
    text: str
    problem: Optional[str] = None
    wire: Optional[Wire] = None
    answer: Message = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"rank {self.process.rank} (pid {self.process.pid})"

    @property
    def is_gone(self) -> bool:
        """Whether it has ended; its pid may be another process by now."""
        stat = ProcFS().stat(self.process.pid)
        return isinstance(stat, Missing) or stat.start_time != self.process.start_time

    def close(self) -> None:
        self.listener.close()
        if self.wire is not None:
            self.wire.close()


def parse_place(text: str) -> Tuple[str, int]:
    """FILE:LINE. Raises UsageError."""
    file, colon, line = text.rpartition(":")
    if not colon or not file or not is_whole(line):
        raise UsageError(f"{text} is not FILE:LINE", "for example: gdbext pdb --inject train.py:33 --rank 2")
    return file, int(line)


def inject(options: argparse.Namespace, progress: Progress) -> Standing:
    """Ask all ranks of the job, the chosen one first. Raises GdbextError when that one cannot be had."""
    place = parse_place(options.inject) if options.inject else None
    asked = _ask(_wanted(options), options, place)
    try:
        _hand_out(asked, options, progress)
        _collect(asked, time.monotonic() + options.deadline)
        _settle(asked, progress, options.inject or "where it is")
        for one in reversed(asked):  # the others know of it before the chosen rank stops
            if one.wire is not None:
                one.wire.send({"go": True})
        return Standing(asked)
    except BaseException:
        for one in asked:
            one.close()
            remote_exec.clear(one.process.pid)
        raise


def _line(options: argparse.Namespace) -> str:
    """The command that chooses one of several jobs, when a pid stands behind it."""
    rank = "" if options.rank is None else f" --rank {options.rank}"
    return f"gdbext pdb{f' --inject {options.inject}' if options.inject else ''}{rank}"


def _wanted(options: argparse.Namespace) -> List[RankProcess]:
    """The chosen rank, and behind it the others of its job."""
    selector = Selector(pids=(options.pid,) if options.pid else ())
    job: Job = choose_job(find_jobs(ProcFS(), selector, read_environ), selector, _line(options))
    ranks = list(job.ranks)
    if options.pid and options.rank is None:
        first = [process for process in ranks if process.pid == options.pid]
    else:
        first = [process for process in ranks if process.rank == (options.rank or 0)] or (
            ranks[:1] if options.rank is None else []
        )
    if not first:
        known = ", ".join(str(process.rank) for process in ranks)
        raise UsageError(f"no rank {options.rank} on this host", f"there are: {known}")
    if options.inject is None:
        return first[:1]
    return first[:1] + [process for process in ranks if process.pid != first[0].pid]


def _ask(wanted: Sequence[RankProcess], options: argparse.Namespace, place: Optional[Tuple[str, int]]) -> List[Asked]:
    """What each rank is to be handed, and where it reports: an abstract socket leaves no file behind."""
    token, asked = os.urandom(6).hex(), []
    proc = ProcFS()
    until = time.monotonic() + options.deadline + _seconds(wanted)
    for process in wanted:
        if proc.namespace(process.pid, "net") != proc.namespace(os.getpid(), "net"):
            raise GdbextError(f"pid {process.pid} is in another network namespace", "start gdbext inside its container")
        name = f"gdbext-{token}-{process.pid}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind("\0" + name)
        listener.listen(4)
        request: Dict[str, Any] = {
            "report": name,
            "token": token,
            "rank": process.rank or 0,
            "chosen": wanted[0].rank or 0,
            "world": process.world_size,
            "file": os.path.abspath(place[0]) if place and os.path.exists(place[0]) else place and place[0],
            "line": place and place[1],
        }
        body = _BODY.format(until=until, package=PACKAGE, request=request, report=name)
        asked.append(Asked(process=process, listener=listener, text=_TEXT.format(body=body)))
    return asked


def _seconds(wanted: Sequence[Any]) -> float:
    return _GDB_SECONDS * (1 + len(wanted) // 8)


def _hand_out(asked: Sequence[Asked], options: argparse.Namespace, progress: Progress) -> None:
    """Python 3.14 takes the text by itself, gdb hands it to the others."""
    by_gdb: List[Asked] = []
    for one in asked:
        found = interpreter_of(one.process.pid)
        if one.is_gone:
            one.problem = "it has ended"
        elif isinstance(found, Missing):
            one.problem = found.reason
        elif found.version >= remote_exec.SINCE and not options.gdb:
            progress.say(f"{one.name}: asks its interpreter to run a script (sys.remote_exec)")
            one.problem = remote_exec.send_script(one.process.pid, one.text)
            if one.problem:
                progress.say(f"{one.name}: {one.problem}; through gdb, then")
                one.problem = None
                by_gdb.append(one)
        else:
            by_gdb.append(one)
    if not by_gdb:
        return
    names = ", ".join(one.name for one in by_gdb)
    progress.say(f"stops {names} for a moment each, and calls mmap and Py_AddPendingCall there")
    ranks = [
        {"pid": one.process.pid, "start": one.process.start_time, "rank": one.process.rank, "text": one.text}
        for one in by_gdb
    ]
    with private_folder() as folder:
        request = {"schema": 1, "ranks": ranks}
        gdb = batch_runs.find_gdb(options.gdb)
        record = batch_runs.run_batch(gdb, request, folder, _seconds(asked), progress.say, "pending")
    problems = {row["pid"]: row["problem"] for row in record["ranks"]}
    for one in by_gdb:
        one.problem = problems.get(one.process.pid, "gdb did not reach it in time")


def _collect(asked: Sequence[Asked], until: float) -> None:
    """What the ranks report."""
    waiting = {one.listener: one for one in asked if one.problem is None}
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            break
        for listener in ready:
            one, wire = waiting[listener], Wire(listener.accept()[0])
            if wire.peer()[0] != one.process.pid:  # the name of the socket is in /proc/net/unix for everybody
                wire.close()
                continue
            del waiting[listener]
            try:
                answer = wire.receive(5.0)
            except socket.timeout:
                answer = None
            one.wire, one.answer = wire, answer or {"error": "it did not report a result"}
            one.problem = one.answer.get("error")
            remote_exec.clear(one.process.pid)
    for one in waiting.values():
        one.problem = (
            "its main thread executed no Python code in time (it waits in C, or another thread holds the GIL); "
            "nothing happens when it does"
        )
        one.listener.close()
        remote_exec.withdraw(one.process.pid)


def _settle(asked: List[Asked], progress: Progress, place: str) -> None:
    """Say what stands. Raises GdbextError when the chosen rank has no breakpoint."""
    chosen, style = asked[0], style_for(sys.stderr, os.environ)
    if chosen.problem is not None:
        raise GdbextError(f"no breakpoint in {chosen.name}: {clean_line(chosen.problem, style)}")
    for one in asked:
        if one.problem is not None:
            progress.say(f"{one.name} will not wait: {clean_line(one.problem, style)}")
        else:
            cost = clean_line(str(one.answer.get("cost") or ""), style)
            progress.say(
                f"{one.name}: breakpoint at {place} in {clean_line(str(one.answer.get('placed')), style)}"
                + (f"; {cost}" if one is chosen and cost else "")
            )


class Standing:
    """The breakpoint as its terminal sees it. `close` takes it away."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._asked = asked
        self.pids = {one.process.pid for one in asked if one.problem is None}
        self.over = False

    def is_over(self) -> bool:
        """Whether the chosen rank has been here, or has ended."""
        wire = self._asked[0].wire
        if wire is not None and not self.over and wire.has_more():
            wire.receive(1.0)
            self.over = True
        return self.over

    def close(self) -> None:
        for one in self._asked:
            one.close()
