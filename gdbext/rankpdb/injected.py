"""A breakpoint that is put into a running rank from outside: `gdbext pdb --inject FILE:LINE`.

`take` is called at a safe point of the main thread. It reports to the terminal that asked, which says when all ranks
are ready, and holds on to that connection: when the terminal goes, the breakpoint goes. It stops once. Nothing happens
when nobody asks any more.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Dict, List, Optional, Sequence

from gdbext.rankpdb.announcements import say
from gdbext.rankpdb.breakpoint_call import gate
from gdbext.rankpdb.code_lines import with_line
from gdbext.rankpdb.identity import Identity, identity, rank_of, torch_distributed
from gdbext.rankpdb.wire import Wire

PATIENCE = 5.0
"""Seconds that a rank waits at the line for the chosen one, each of three times. The ranks may be out of step there,
one of them a round ahead in a collective: then it has to be let go before the chosen one can come."""
_TIMES = 3
_NAME = "gdbext"


def take(request: Dict[str, Any]) -> None:
    """Place what is asked for. Never raises: an exception would go through the program."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect("\0" + request["report"])
    except OSError:
        connection.close()
        return
    wire = Wire(connection)
    planted: Optional[Planted] = None
    try:
        if not wire.is_ours():
            raise LookupError("another user asks")
        planted = _place(request, wire)
        answer = {"placed": planted.where, "cost": planted.cost}
    except Exception as error:  # noqa: BLE001  what goes wrong is the terminal's to say
        answer = {"error": str(error) or type(error).__name__}
        gate.leave_station()
    wire.send({"pid": os.getpid(), **answer})
    if planted is None:
        wire.close()
        return
    threading.Thread(target=planted.watch, name="gdbext-pdb", daemon=True).start()
    if request["file"] is None:
        planted.now()


def _place(request: Dict[str, Any], wire: Wire) -> Planted:
    me = identity()
    if rank_of(os.environ) is None and torch_distributed() is None:  # its launcher did not say, but others know
        me = Identity(request["rank"], request["world"], None, request["token"])
    if gate.at_station(me) is None:
        raise LookupError("cannot connect to the rank: see its stderr")
    if request["file"] is None:
        return Planted(request, wire, [])
    codes = with_line(request["file"], request["line"])
    planted: Planted = (_Monitored if sys.version_info >= (3, 12) else _Traced)(request, wire, codes)
    planted.arm()
    return planted


class Planted:
    """One of them. `met` is called on the line."""

    cost = ""

    def __init__(self, request: Dict[str, Any], wire: Wire, codes: Sequence[CodeType]) -> None:
        self.where = ", ".join(sorted({code.co_name for code in codes})) or "what it runs now"
        self._codes, self._wire, self._line = set(codes), wire, int(request["line"] or 0)
        self._chosen, self._pid = int(request["chosen"]), os.getpid()
        where = f"{request['file']}:{request['line']}" if request["file"] else ""
        self._place = (f"{where}\t{request['token']}", 1)
        self._left, self._live, self._over, self._met = _TIMES, False, False, False

    def arm(self) -> None: ...

    def disarm(self) -> None: ...

    def now(self) -> None:
        """Stop the program where it is."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _NAME:
            frame = frame.f_back
        frame = frame.f_back if frame is not None else None  # the text that was handed in
        if frame is not None:
            self._stop(frame, True)

    def watch(self) -> None:
        """Until the terminal goes, or has seen that all is over. It says when all ranks have the breakpoint."""
        self._live = self._wire.receive() is not None
        if self._live:
            self._wire.receive()
        self._end()
        if self._met:
            gate.release_unclaimed()
        else:
            gate.leave_station()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self.disarm()

    def _opens(self) -> None:
        """The prompt can be seen. Whatever is called behind this is traced."""
        self._end()
        self._met = True
        if not self._wire.send({"over": True}):
            gate.release_unclaimed()  # the terminal went just now, and `watch` was too early to know of the prompt

    def met(self, frame: FrameType) -> Any:
        """The thread is at the line; returns the function that traces it from now on, if any."""
        if os.getpid() != self._pid:
            self._end()
        return self._stop(frame) if self._live and not self._over else None

    def _stop(self, frame: FrameType, at_next_line: bool = False) -> Any:
        before = sys.gettrace()
        self._left -= 1
        over = gate.meet(frame, self._place, self._chosen, PATIENCE, self._opens)
        if over and not self._over:
            self._end()
        self._met = self._met or over
        if not over and not self._left:
            self._end()
            say("breakpoint removed here: the chosen rank failed to arrive three times")
        tracer: Any = sys.gettrace()
        if tracer is None or tracer is before:
            return None
        if at_next_line:
            sys.settrace(None)
            tracer.__self__.set_next(frame)  # not in what we call until then
            sys.settrace(tracer)
            return None
        return tracer(frame, "line", None)  # the prompt opens in front of the line, not behind it


class _Traced(Planted):
    """Before Python 3.12: by a trace function. Costs each call of the main thread, and each line of the function."""

    cost = "until then each call in the main thread takes 0.7 µs more; other threads do not stop there (Python < 3.12)"

    def arm(self) -> None:
        if sys.gettrace() is not None:
            raise LookupError("the rank is traced already, by a debugger or a coverage tool")
        sys.settrace(self._called)
        frame: Optional[FrameType] = sys._getframe()
        while frame is not None:
            if frame.f_code in self._codes:
                frame.f_trace = self._ran
            frame = frame.f_back

    def disarm(self) -> None:
        """Another thread cannot: the next event in the main thread does."""
        if sys.gettrace() == self._called:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._over:
            self.disarm()
            return None
        return self._ran if frame.f_code in self._codes else None

    def _ran(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._over:
            self.disarm()
            frame.f_trace = None
        elif event == "line" and frame.f_lineno == self._line:
            return self.met(frame)
        return None if self._over else self._ran


class _Monitored(Planted):
    """By sys.monitoring: costs nothing outside of the lines of these functions."""

    cost = "until then only the lines of that function are watched (sys.monitoring)"

    def arm(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._monitoring = monitoring
        free: List[int] = [number for number in (0, 3, 4) if monitoring.get_tool(number) is None]
        if not free:
            raise LookupError("all tool ids of sys.monitoring are in use")
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, _NAME)
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._ran)
        for code in self._codes:
            monitoring.set_local_events(self._tool, code, monitoring.events.LINE)

    def disarm(self) -> None:
        for code in self._codes:
            self._monitoring.set_local_events(self._tool, code, 0)
        self._monitoring.register_callback(self._tool, self._monitoring.events.LINE, None)
        self._monitoring.free_tool_id(self._tool)

    def _ran(self, code: CodeType, line: int) -> Any:
        if line != self._line:
            return self._monitoring.DISABLE
        self.met(sys._getframe(1))
        return None
