"""Many hosts asked at once, by ClusterShell: its window, its time-outs, any command that leads to a shell there.

A conversation is a small machine: hello, three exchanges of clocks, the one file, one look at an agreed time, the
answer. What a host sends is data: bounded, checked against its digest, and read like any other snapshot.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib.util
import json
import logging
import shlex
import signal
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ClusterShell.Event import EventHandler
from ClusterShell.Task import Task, task_self
from ClusterShell.Worker.EngineClient import EngineClientEOF
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

from gdbext.collect.hosts import on_host
from gdbext.model.errors import GdbextError

MOST_SENT = 64 << 20  # bytes that one host may send
_LONGEST_LINE = 1 << 20
_MOST_LOOK = 512 << 20  # bytes of a snapshot when it is unpacked
_CLOCKS = 3
_PIECE = 256 << 10  # bytes of the one file that wait for a host at a time
_AHEAD = 0.5  # seconds from the last host's word to the agreed time
_LEAVING = 40.0  # seconds in which a program that was told to end does: a look that is interrupted takes 25
_GRACE = 5.0  # seconds for one that failed
_CTRL_C_SECONDS = 0.2  # seconds between two looks whether Ctrl-C was pressed
_NOISE = 3  # lines that are not of ours and are kept, for the reason of a failure

_START = """c={program}
for p in python3 python /usr/bin/python3 /usr/libexec/platform-python; do
  "$p" -S -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && exec "$p" -S -c "$c"
done
echo '{mark}["problem", {{"text": "no python3 (3.8 or newer) is on its PATH"}}]'
"""


@dataclass(frozen=True)
class Plan:
    """What every host is asked. `via`: a command with %h, to which ` sh` is added; `words`: arguments of gdbext, with
    {LOOK} for the file that it writes."""

    via: str
    words: Tuple[str, ...]
    program: bytes  # gdbext as one file
    compiled: bytes = b""  # the same for hosts whose Python is ours
    without_gdb: Tuple[str, ...] = ()  # further arguments where there is no gdb
    at_once: int = 256
    connect: float = 30.0  # seconds until a host says hello
    deadline: float = 180.0  # seconds for its look


@dataclass
class HostAnswer:
    """`offset`: seconds that its clock is ahead of ours, known to `error` seconds."""

    host: str
    look: Optional[bytes] = None  # the text of a snapshot
    problem: Optional[str] = None
    offset: float = 0.0
    error: float = 0.0
    sent: int = 0  # bytes that came from it
    has_gdb: Optional[bool] = None


def ask_hosts(hosts: Sequence[str], plan: Plan, say: Callable[[str], None]) -> List[HostAnswer]:
    """The answers in the order of the hosts. On Ctrl-C each look is ended as by Ctrl-C there, and its ranks run on."""
    logging.getLogger("ClusterShell").setLevel(logging.ERROR)  # a pipe that breaks is said by us
    task = task_self()
    task.set_info("fanout", min(plan.at_once, len(hosts)))
    meeting = _Meeting(task, plan, say, len(hosts))
    connections = []
    for host in hosts:
        connection = _HostConnection(host, plan, meeting)
        worker = _Worker(
            host,
            connection,
            timeout=plan.connect + plan.deadline + 60,
            command=command(plan.via),
            stderr=True,
            autoclose=False,
        )
        worker.write(start_text().encode())
        task.schedule(worker)
        connections.append(connection)
    pressed: List[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: _ctrl_c(pressed, number))
    ends = _Ending(pressed, connections)
    task.timer(_CTRL_C_SECONDS, ends, interval=_CTRL_C_SECONDS, autoclose=True)
    try:
        task.resume()
    except KeyboardInterrupt:
        task.abort()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
    return [connection.answer for connection in connections]


def _ctrl_c(pressed: List[int], number: int) -> None:
    """The first is an orderly end, for which `_Ending` looks; the second is not."""
    pressed.append(number)
    if len(pressed) > 1:
        raise KeyboardInterrupt


def command(via: str) -> str:
    """What is run here for a host. `exec`: when it is ended, so is the connection."""
    if "%h" not in via.replace("%%", ""):
        raise GdbextError("--via has no %h", "--via 'ssh %h', 'srun --overlap -w %h', 'kubectl exec -i %h --'")
    return f"exec {via} sh"


def start_text() -> str:
    """What the shell there is told first: our program for whatever Python it has."""
    program = "# gdbext on a host\n" + Path(on_host.__file__).read_text(
        "utf-8"
    )  # a title that nobody takes for a rank's
    return _START.format(program=shlex.quote(program), mark=on_host.MARK)


class _Client(ExecClient):  # type: ignore[misc]
    """Reads no more than a host may send."""

    def _read(self, sname: str, size: int = 65536) -> bytes:
        found: bytes = super()._read(sname, size)
        self.worker.eh.answer.sent += len(found)
        if self.worker.eh.answer.sent > MOST_SENT or len(self.streams[sname].rbuf) > _LONGEST_LINE:
            self.worker.eh.fail(f"it sent a line of over {_LONGEST_LINE >> 20} MiB, or more than {MOST_SENT >> 20} MiB")
            raise EngineClientEOF
        return found


class _Worker(ExecWorker):  # type: ignore[misc]
    SHELL_CLASS = _Client


class _Meeting:
    """All hosts that are ready start their look at one time: as soon as all are, or when the last had its time."""

    def __init__(self, task: Task, plan: Plan, say: Callable[[str], None], hosts: int) -> None:
        self._task, self._plan, self.say = task, plan, say
        self._hosts = hosts
        self._expected = min(hosts, plan.at_once)
        self._waiting: List[_HostConnection] = []
        self._over = 0
        self._open = False
        self._timer: Any = None

    def arrives(self, connection: _HostConnection) -> None:
        self._waiting.append(connection)
        if self._timer is None:
            self._timer = self._task.timer(self._plan.connect, _TimeIsUp(self.start), autoclose=True)
        self._start_if_all()

    def leaves(self) -> None:
        """One ended, whether it had arrived or not."""
        self._over += 1
        self._start_if_all()

    def _start_if_all(self) -> None:
        if self._open or len(self._waiting) + self._over >= self._expected:
            self.start()

    def start(self) -> None:
        """Nobody waits for those who come later."""
        self._open = True
        at = time.time() + _AHEAD
        waiting, self._waiting = self._waiting, []
        for connection in waiting:
            connection.look(at)

    def progress(self) -> None:
        self.say(f"{self._over} of {self._hosts} hosts have answered")


class _HostConnection(EventHandler):  # type: ignore[misc]
    """The conversation with one host."""

    def __init__(self, host: str, plan: Plan, meeting: _Meeting) -> None:
        super().__init__()
        self.answer = HostAnswer(host=host)
        self._plan, self._meeting = plan, meeting
        self._worker: Any = None
        self._asked = 0.0
        self._clocks: List[Tuple[float, float]] = []  # (error, offset)
        self._data: List[bytes] = []
        self._noise: List[str] = []
        self._over = False
        self._hello: Any = None
        self._program = plan.program
        self._unsent = memoryview(b"")  # of it
        self._queued = len(start_text().encode())  # bytes that are not yet written
        self._last: Any = None

    def ev_start(self, worker: Any) -> None:
        self._worker = worker
        self._hello = worker.task.timer(self._plan.connect, _TimeIsUp(self.fail_without_greeting), autoclose=True)

    def fail_without_greeting(self) -> None:
        if self.answer.has_gdb is None:
            self.fail(f"no shell answered within {self._plan.connect:g} s{self._said()}")
            self._worker.abort()

    def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
        text = msg.decode("utf-8", "replace")
        if sname != worker.SNAME_STDOUT or not text.startswith(on_host.MARK):
            if text.strip():
                self._noise = [*self._noise, text.strip()[:200]][-_NOISE:]
            return
        try:
            word, what = json.loads(text[len(on_host.MARK) :])
            self._takes(word, what)
        except (ValueError, TypeError, KeyError, AttributeError, zlib.error, binascii.Error) as error:
            self.fail(f"unexpected output instead of an answer ({str(error)[:80]})")

    def _takes(self, word: str, what: Dict[str, Any]) -> None:
        if word == "hello":
            self.answer.has_gdb = what["gdb"] is not None
            if what.get("magic") == importlib.util.MAGIC_NUMBER.hex() and self._plan.compiled:
                self._program = self._plan.compiled
            self._ask_clock()
        elif word == "clock":
            now = time.time()
            self._clocks.append(((now - self._asked) / 2, float(what["time"]) - (now + self._asked) / 2))
            if len(self._clocks) < _CLOCKS:
                self._ask_clock()
                return
            self.answer.error, self.answer.offset = min(self._clocks)
            self._tell(do="file", size=len(self._program), sha256=_digest(self._program))
            self._unsent = memoryview(self._program)
            self._send_queued()
        elif word == "ready":
            self._meeting.arrives(self)
        elif word == "data":
            self._data.append(base64.b64decode(what["text"], validate=True))
        elif word == "end":
            self._ends(str(what["sha256"]))
        elif word == "problem":
            self.fail(str(what["text"])[:300])

    def ev_written(self, worker: Any, node: str, sname: str, size: int) -> None:
        """A piece of the file after the other: what a slow host has not taken is kept for each host."""
        self._queued -= size
        self._send_queued()

    def _send_queued(self) -> None:
        if self._unsent and self._queued < _PIECE:
            piece, self._unsent = bytes(self._unsent[:_PIECE]), self._unsent[_PIECE:]
            self._write(piece)

    def _write(self, data: bytes) -> None:
        self._queued += len(data)
        self._worker.write(data)

    def _ask_clock(self) -> None:
        self._asked = time.time()
        self._tell(do="clock")

    def look(self, at: float) -> None:
        """`at` by our clock."""
        words = self._plan.words + (() if self.answer.has_gdb else self._plan.without_gdb)
        self._tell(do="look", at=at + self.answer.offset, words=words, deadline=self._plan.deadline)

    def _ends(self, digest: str) -> None:
        packed = b"".join(self._data)
        if _digest(packed) != digest:
            raise ValueError("its digest is another")
        unpacker = zlib.decompressobj()
        self.answer.look = unpacker.decompress(packed, _MOST_LOOK)
        if unpacker.unconsumed_tail:
            self.answer.look = None
            raise ValueError(f"more than {_MOST_LOOK >> 20} MiB")
        self._tell(do="end")
        self._worker.set_write_eof()

    def _tell(self, **what: Any) -> None:
        self._write(json.dumps(what).encode() + b"\n")

    def fail(self, why: str, grace: float = _GRACE) -> None:
        """The first reason counts. `grace`: seconds until the connection is cut."""
        if self.answer.problem is None and self.answer.look is None:
            self.answer.problem = why
            if self._worker is None:  # it has not begun
                return
            self._unsent = memoryview(b"")
            self._worker.set_write_eof()  # a program of ours ends with that, and leaves nothing there
            self._last = self._worker.task.timer(grace, _TimeIsUp(self._worker.abort), autoclose=True)

    def ev_hup(self, worker: Any, node: str, rc: int) -> None:
        if self.answer.look is None and self.answer.problem is None:
            self.answer.problem = f"the connection ended with status {rc}{self._said()}"

    def ev_close(self, worker: Any, timedout: bool) -> None:
        if self.answer.look is None and self.answer.problem is None:
            self.answer.problem = "no answer in time" if timedout else f"the connection ended{self._said()}"
        if not self._over:
            self._over = True
            for timer in filter(None, (self._hello, self._last)):
                timer.invalidate()
            self._meeting.leaves()
            self._meeting.progress()

    def _said(self) -> str:
        return f" ({self._noise[-1]})" if self._noise else ""


class _Ending(EventHandler):  # type: ignore[misc]
    """Tells all hosts to end when Ctrl-C was pressed."""

    def __init__(self, pressed: Sequence[int], connections: Sequence[_HostConnection]) -> None:
        super().__init__()
        self._pressed, self._talks = pressed, connections

    def ev_timer(self, timer: Any) -> None:
        for connection in self._talks if self._pressed else ():
            connection.fail("interrupted", _LEAVING)


class _TimeIsUp(EventHandler):  # type: ignore[misc]
    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def ev_timer(self, timer: Any) -> None:
        self._act()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
