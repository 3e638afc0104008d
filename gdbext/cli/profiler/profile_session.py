"""One profile of one server: started, always stopped, its files awaited."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from typing import Dict, Iterator, List, Optional, Tuple, Union

from gdbext.cli.profiler.profile_files import Folder, count_missing_traces
from gdbext.cli.profiler.profile_guard import Guard
from gdbext.cli.profiler.profile_http import Answer, Http, NoServer, matches
from gdbext.cli.profiler.profile_requests import Sender, read_requests
from gdbext.cli.profiler.profile_server import is_here, row_of
from gdbext.cli.terminal import Progress
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.profilers import STEPS_A_SECOND, ProfilerRow
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.profiling import ProfileAnswer, ProfileServer, WrittenTrace
from gdbext.model.text.ranges import counted

TOKEN = "GDBEXT_TOKEN"  # noqa: S105 - the name of a variable
_POLL = 0.25
_START_PATIENCE = 60.0
_STOP_SECONDS = 30.0  # seconds for the answer to a stop when something went wrong; the guard waits for longer
_NOTHING = 60.0  # seconds without any trace, after the engine said that it has stopped
_QUIET = 2.0  # seconds without anything new, where nobody knows how many traces there will be
_LEAST_ROOM = 64 << 20  # bytes: less is a full disk for any trace


def ways(row: ProfilerRow) -> Tuple[str, ...]:
    return row.switch_on or ("name the server itself: this may be a router in front of it",)


class Session:
    """One profile of one server."""

    def __init__(
        self, options: argparse.Namespace, http: Http, server: ProfileServer, ranks: int, pids: Tuple[int, ...]
    ) -> None:
        self._options, self._http, self._server, self._ranks, self._pids = options, http, server, ranks, pids
        self._row = row_of(server.engine)
        self.progress = Progress(options.quiet)
        self._notes: List[str] = []
        self._ended = False  # it was told to stop, or has stopped by itself
        self._seconds: Optional[float] = None

    def begin(self) -> ProfileAnswer:
        """`profile start`."""
        body, folder = self._body(None)
        self._start(body)
        return self._answer("start", body, folder, next_step=f"gdbext profile stop{self._again()}")

    def end(self) -> ProfileAnswer:
        """`profile stop`."""
        self._stop()
        return self._answer("stop", {}, self._server.folder)

    def whole(self) -> ProfileAnswer:
        """`profile run`."""
        options = self._options
        requests = read_requests(options.request) if options.request else ()
        self._seconds = options.seconds
        body, folder = self._body(options.seconds)
        if folder is None:
            hint = "give --dir: the folder is configured where the command line does not show it"
            raise UsageError("the folder of the traces is not known", hint)
        traces = Folder(self._server.root + folder)
        _check_room(traces, self._ranks)
        traces.remember()
        sender = Sender(self._http, self._server, requests)
        self.progress.say(f"{self._row.engine} at {self._server.url}: profile of {options.seconds:g} s into {folder}")
        stages = _stages(options)
        with self._guarded():
            self._start(body)
            with sender:
                self._wait_for_traffic(traces, sender, stages if "steps" in self._chosen() else 0)
            self._stop()
        if self._server.pid is None and not is_here(self._server.host):
            self._notes.append(f"the traces are on {self._server.host}: merge them there, or copy them from {folder}")
            return self._answer("run", body, folder, None, sender)
        files = self._wait_for_files(traces)
        return self._answer("run", body, folder, files, sender)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Whatever happens in the block, the profiler is stopped: by us, or by the guard when we are killed."""
        guard = Guard(self._server, self._row.stop, self._http.token)
        try:
            yield
        except BaseException:
            if not self._ended:
                self.progress.say("stopping the profiler")
                with contextlib.suppress(GdbextError):
                    self._stop(_STOP_SECONDS)
            raise
        finally:
            if self._ended:
                guard.release()
            else:
                guard.leave()

    def _chosen(self) -> Dict[str, object]:
        """The options that were given, by the names of `knowledge.profilers`."""
        options = self._options
        asked = {
            "steps": options.steps,
            "start_step": options.start_step,
            "activities": tuple(options.activities.split(",")) if options.activities else None,
            "by_stage": options.by_stage or None,
            "stages": tuple(options.stages.split(",")) if options.stages else None,
            "stack": True if options.stack else False if options.no_stack else None,
            "shapes": options.shapes or None,
            "engine_merge": options.engine_merge or None,
            "prefix": options.prefix,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def _body(
        self, seconds: Optional[float]
    ) -> Tuple[Dict[str, Union[str, int, bool, Tuple[str, ...]]], Optional[str]]:
        """What is sent, and the folder of the traces as the server sees it. Raises UsageError for an option that this
        engine does not know: it would be dropped silently."""
        row, chosen = self._row, self._chosen()
        unknown = [name for name in chosen if name not in row.fields]
        if unknown:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in unknown)
            known = ", ".join(f"--{name.replace('_', '-')}" for name in row.fields)
            raise UsageError(f"{row.engine}'s profiler does not support {flags}", f"it supports {known}")
        if "steps" in row.fields and "steps" not in chosen and seconds is not None:
            chosen["steps"] = max(1, int(seconds * STEPS_A_SECOND))
        folder = self._server.folder
        if "dir" in row.fields:
            folder = folder or _new_folder(self._server)
            chosen["dir"] = folder
        elif self._options.dir and self._options.dir != folder:
            raise UsageError(f"{row.engine} writes where it was configured to", "omit --dir")
        if row.steps_limited_by and self._options.steps is not None:
            self._notes.append(
                f"older releases of {row.engine} ignore the number of steps: they profile until they are stopped, "
                f"or as {row.steps_limited_by} says"
            )
        return {row.fields[name]: value for name, value in chosen.items()}, folder  # type: ignore[misc]

    def _start(self, body: Dict[str, Union[str, int, bool, Tuple[str, ...]]]) -> None:
        answer = self._http.post(self._server, self._row.start, body or None, _START_PATIENCE)
        if answer.good:
            self.progress.say(f"started: {self._row.start} {_in_words(body)}".rstrip())
            return
        self._ended = True  # it runs not, or for somebody else
        raise self._refused(answer, "start")

    def _stop(self, patience: Optional[float] = None) -> None:
        """Raises `GdbextError`."""
        try:
            answer = self._http.post(
                self._server, self._row.stop, None, patience or max(self._options.flush, _START_PATIENCE)
            )
        except NoServer:
            self._check_alive()
            raise
        self._ended = True
        if answer.good:
            self.progress.say("stopped")
        elif matches(self._row.stopped, answer) and self._options.action == "run":
            self.progress.say("it had stopped by itself")
        else:
            raise self._refused(answer, "stop")

    def _refused(self, answer: Answer, verb: str) -> GdbextError:
        """What a status means, and the next step."""
        row, server = self._row, self._server
        if answer.status == 404:
            return GdbextError(
                f"{server.url} has no {row.start}: {row.engine}'s profiler is off", "; or ".join(ways(row))
            )
        if answer.status in (401, 403):
            option = (row.token_options or ("--api-key",))[0]
            why = "rejects our token" if self._http.token else "requires a token"
            hint = f"put the token of its {option} into a file: --token-file FILE, or into {TOKEN}"
            return GdbextError(f"{server.url} {why} ({answer.status})", hint)
        if verb == "start" and (answer.status == 409 or matches(row.running, answer)):
            return GdbextError(f"a profile runs already: {answer.said}", f"gdbext profile stop{self._again()}")
        if matches(row.stopped, answer):
            return GdbextError("no profile runs", f"gdbext profile start{self._again()}")
        full = "no space left" in answer.text.lower()
        hint = f"free space in {server.folder or 'its folder'}" if full else "see the log of the server"
        return GdbextError(f"{server.url} could not {verb} the profile ({answer.status}): {answer.said}", hint)

    def _again(self) -> str:
        """The words that name the same server again."""
        return f" --url {self._options.url}" if self._options.url else f" {self._server.pid}"

    def _wait_for_traffic(self, traces: Folder, sender: Sender, stages: int) -> None:
        """Until the time is over, all requests are answered, or all steps are done (`stages` above 0: their number is
        given, so that traces come before the end)."""
        until = time.monotonic() + self._options.seconds
        while time.monotonic() < until:
            if sender.given and sender.wait(min(_POLL, until - time.monotonic())):
                return
            if not sender.given:
                time.sleep(max(0.0, min(_POLL, until - time.monotonic())))
            self._check_alive()
            _check_room(traces, self._ranks)
            if stages and self._ranks:
                files = traces.look()
                if not count_missing_traces(files, self._ranks, stages):
                    self.progress.say("all steps are done")
                    return

    def _wait_for_files(self, traces: Folder) -> Tuple[WrittenTrace, ...]:
        """Until every rank's trace is whole, or nothing has happened to any of them for as long as --flush says."""
        said, quiet_since, before = "", time.monotonic(), None
        while True:
            files = traces.look()
            left = count_missing_traces(files, self._ranks)
            whole = [one for one in files if one.state == "whole"]
            size = sum(one.bytes for one in files) / (1 << 20)
            line = f"{len(whole)} of {max(len(files), self._ranks)} traces are complete, {size:,.1f} MB"
            if line != said:
                said = line
                self.progress.say(line)
            state = tuple((one.path, one.bytes, one.state) for one in files)
            if state != before:
                before, quiet_since = state, time.monotonic()
            idle = time.monotonic() - quiet_since
            if not left and whole and len(whole) == len(files) and (self._ranks or idle > _QUIET):
                return files
            patience = self._options.flush if files else min(self._options.flush, _NOTHING)
            if idle > patience or (idle > _POLL * 8 and not self._alive()):
                self._notes.append(self._incomplete(files, left))
                return files
            _check_room(traces, self._ranks)
            time.sleep(_POLL)

    def _incomplete(self, files: Tuple[WrittenTrace, ...], left: int) -> str:
        why = "no more data arrived" if self._alive() else "the server has ended"
        if not files:
            return f"no trace was written ({why}): was there any traffic? --request FILE sends some"
        return f"{counted(left, 'trace')} missing or incomplete ({why})"

    def _alive(self) -> bool:
        return not any(map(_has_ended, self._pids))

    def _check_alive(self) -> None:
        """Raises GdbextError when a process of the job has ended."""
        gone = [pid for pid in self._pids if _has_ended(pid)]
        if self._server.pid in gone:
            self._ended = True
            raise GdbextError(
                f"the server (pid {self._server.pid}) ended while it was profiled", "see its log for the reason"
            )
        if gone:
            raise GdbextError(f"pid {gone[0]} of the job ended while it was profiled", "gdbext diagnose LOGS")

    def _answer(
        self,
        action: str,
        body: Dict[str, Union[str, int, bool, Tuple[str, ...]]],
        folder: Optional[str],
        files: Optional[Tuple[WrittenTrace, ...]] = None,
        sender: Optional[Sender] = None,
        next_step: str = "",
    ) -> ProfileAnswer:
        whole = files is not None and bool(files) and all(one.state == "whole" for one in files)
        return ProfileAnswer(
            action=action,
            server=self._server,
            ranks=self._ranks,
            sent=body,
            seconds=self._seconds,
            requests=None if sender is None or not sender.given else sender.sent,
            failed_requests=0 if sender is None else sender.failed,
            folder=folder,
            files=files or (),
            complete=None if files is None else whole and not count_missing_traces(files, self._ranks),
            notes=(*self._notes, *(self._row.notes if action == "start" else ()), *(sender.problems if sender else ())),
            next_step=next_step,
        )


def _has_ended(pid: int) -> bool:
    status = ProcFS().stat(pid)
    return isinstance(status, Missing) or status.state in "ZX"


def _stages(options: argparse.Namespace) -> int:
    """How many traces each rank will write."""
    if not options.by_stage:
        return 1
    return len(options.stages.split(",")) if options.stages else 2


def _in_words(body: Dict[str, Union[str, int, bool, Tuple[str, ...]]]) -> str:
    parts = (f"{key}={','.join(value) if isinstance(value, tuple) else value}" for key, value in body.items())
    return " ".join(parts)


def _new_folder(server: ProfileServer) -> str:
    """A name that nobody has: here where the server can write here, else where everybody can."""
    name = f"gdbext-profile-{time.strftime('%Y%m%d-%H%M%S')}"
    ours = not server.root and server.pid is not None and ProcFS().owner(server.pid) in (0, os.getuid())
    return os.path.join(os.getcwd() if ours else "/tmp", name)  # noqa: S108 - the engine makes it, we only read there


def _check_room(traces: Folder, ranks: int) -> None:
    """Raises GdbextError where the disk of the traces is full."""
    room = traces.room()
    if room is not None and room < _LEAST_ROOM:
        hint = "free space, or configure another folder (--dir)"
        raise GdbextError(f"the disk of {traces.path} is full: {room >> 20} MB are free", hint)
