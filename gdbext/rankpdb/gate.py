"""`breakpoint_()`: one rank gets a prompt, the others wait for it."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import Dict, List, Optional, Tuple

from gdbext.rankpdb import distant
from gdbext.rankpdb.channel import Channel
from gdbext.rankpdb.debugger import HELP, RankPdb
from gdbext.rankpdb.distant import SignOfLife
from gdbext.rankpdb.identity import identity
from gdbext.rankpdb.station import Place, Station, nobody
from gdbext.rankpdb.wire import Message, Wire

CHOICE = "RANK_TO_DEBUG"
"""The variable that chooses the rank of all breakpoints that name none. `none`: no breakpoint stops anybody."""
LIMIT = "GDBEXT_PDB_TIMEOUT"
"""Seconds that ranks wait at most when the call does not say. Default: an hour."""
HOUR = 3600.0
_REDIRECTIONS = 8
_OUR_TURN = "it is our turn"


@dataclass
class _Prompt:
    """One that is open."""

    debugger: RankPdb
    thread: int
    frame: FrameType
    places: List[Place]  # who waits at these waits for us
    block: bool
    until: float
    channel: Optional[Channel]  # None: in the foreground
    life: Optional[SignOfLife] = None
    heir: Optional[int] = None  # the rank that a terminal asked for in our place


class Gate:
    """All breakpoints of this process."""

    def __init__(self) -> None:
        self._station: Optional[Station] = None
        self._counts: Dict[str, int] = {}
        self._unmet: List[Tuple[int, Place, float]] = []  # of breakpoints that did not block: rank, place, until
        self._opened: List[Place] = []  # our own of that kind, not passed yet
        self._prompt: Optional[_Prompt] = None
        self._pid = os.getpid()

    # --- the two calls ---

    def stop(self, frame: FrameType, block: bool, rank: Optional[int], timeout: Optional[float]) -> None:
        """What `breakpoint_` does when breakpoints are on."""
        station = self._at_station()
        if station is None:
            return
        place = self._count(frame)
        limit = _limit(timeout)
        until = time.monotonic() + limit
        chosen = _chosen(station, rank)
        if station.me.world is not None and not 0 <= chosen < station.me.world:
            _say(f"rank {chosen} was chosen, but there are {station.me.world} ranks; nobody stops at {_words(place)}")
            return
        if chosen == station.me.rank:
            self._debug(frame, place, until, block)
        elif block:
            self._wait(frame, chosen, place, until)
        else:
            self._unmet.append((chosen, place, until))

    def clear(self) -> None:
        """What `clear_` does: ranks that went on while one was debugged wait here until it has come here, too."""
        station = self._at_station() if self._unmet or self._opened else None
        if station is None:
            return
        opened, self._opened = self._opened, []
        for place in opened:
            self._passes(place)
        unmet, self._unmet = self._unmet, []
        for chosen, place, until in unmet:
            self._wait(sys._getframe(2), chosen, place, until)

    # --- the debugged rank ---

    def _debug(self, frame: FrameType, place: Place, until: float, block: bool) -> None:
        station = self._station
        assert station is not None
        if self._prompt is not None:  # it stepped to here, or breakpoints of pdb are set
            self._join(self._prompt, frame, place)
            return
        prompt: _Prompt
        channel = None if _has_foreground() else Channel(until)
        debugger = RankPdb(channel, lambda: self._left(prompt))
        prompt = _Prompt(debugger, threading.get_ident(), frame, [place], block, until, channel)
        self._open(prompt)
        debugger.set_trace(frame)

    def _open(self, prompt: _Prompt) -> None:
        station = self._station
        assert station is not None
        self._prompt = prompt
        place, channel = prompt.places[0], prompt.channel
        prompt.life = SignOfLife(station.me, place)
        station.doing = {"state": "prompt", "at": _words(place)}
        text = f"rank {station.me.rank} (pid {os.getpid()}) at {_words(place)} in {prompt.frame.f_code.co_name}"
        if channel is None:
            _say(f"{text}\n{HELP}")
            return
        channel.write(f"{text}\n{HELP}\n")
        station.on_terminal = lambda wire, message: _offer(prompt, wire, message)
        limit = prompt.until - time.monotonic()
        _say(f"{text}: `gdbext pdb` on this host opens its prompt; everybody goes on after {limit:.0f} s at the latest")

    def _join(self, prompt: _Prompt, frame: FrameType, place: Place) -> None:
        """A breakpoint met while a prompt is open."""
        if prompt.thread != threading.get_ident():
            _say(f"another thread of this rank is being debugged; this one goes on at {_words(place)}")
            self._passes(place)
            return
        prompt.places.append(place)
        prompt.debugger.stays()
        prompt.debugger.set_trace(frame)

    def _left(self, prompt: _Prompt) -> None:
        """The others need not wait for this prompt any more."""
        station = self._station
        assert station is not None
        places, prompt.places = prompt.places, []
        if not prompt.debugger.breaks:
            self._prompt = None
            station.on_terminal = nobody
            station.doing = {"state": "running"}
        if prompt.life is not None:
            prompt.life.end()
        if prompt.heir is not None:
            self._give_way(prompt, places[-1], prompt.heir)
            return
        for place in places:
            if prompt.block:
                self._passes(place)
            else:
                self._opened.append(place)

    def _give_way(self, prompt: _Prompt, place: Place, heir: int) -> None:
        """Wait for the rank that a terminal asked for in our place, until it is our turn again or it has gone on."""
        assert self._station is not None
        self._station.hands(place, heir)
        prompt.heir = None
        if not self._is_our_turn(heir, place, prompt.until):
            self._passes(place)
            return
        prompt.places, prompt.channel = [place], Channel(prompt.until)
        prompt.debugger.use(prompt.channel)
        self._open(prompt)
        sys.settrace(prompt.debugger.trace_dispatch)
        prompt.debugger.set_step()

    def _passes(self, place: Place) -> None:
        assert self._station is not None
        self._station.passes(place)
        distant.passes(self._station.me, place)

    # --- the ranks that wait ---

    def _wait(self, frame: FrameType, chosen: int, place: Place, until: float) -> None:
        if self._is_our_turn(chosen, place, until):
            self._debug(frame, place, until, True)

    def _is_our_turn(self, chosen: int, place: Place, until: float) -> bool:
        """Wait for another rank. True when a terminal asked for this one instead."""
        station = self._station
        assert station is not None
        station.doing = {"state": "waits", "at": _words(place), "for": chosen}
        limit = until - time.monotonic()
        absent = station.absent(chosen) if station.me.is_here(chosen) else None
        whom = f"rank {chosen}" + (f" (pid {absent.pid}, which is not here yet)" if absent and absent.pid else "")
        _say(f"rank {station.me.rank} waits at {_words(place)} for {whom}, {limit:.0f} s at most")
        try:
            said = self._passed(chosen, place, until)
        finally:
            station.doing = {"state": "running"}
        if said != _OUR_TURN:
            _say(f"rank {station.me.rank} goes on: {said}")
        return said == _OUR_TURN

    def _passed(self, chosen: int, place: Place, until: float) -> str:
        station = self._station
        assert station is not None
        if not station.me.is_here(chosen):
            return distant.wait(station.me, chosen, place, until)
        for _ in range(_REDIRECTIONS):
            question = {"wait": place[0], "hit": place[1], "rank": station.me.rank}
            wire = station.ask(chosen, question, max(0.0, until - time.monotonic()))
            if isinstance(wire, str):
                return f"rank {chosen} {wire}"
            try:
                answer = wire.receive(max(0.001, until - time.monotonic()))
            except socket.timeout:
                return f"the time for rank {chosen} is up"
            finally:
                wire.close()
            if answer is None:
                station.lost(chosen)
                return f"rank {chosen} has ended"
            if "now" not in answer:
                return f"rank {chosen} has gone on"
            chosen = int(answer["now"])
            if chosen == station.me.rank:
                return _OUR_TURN
        return "the choice of the rank went round in a circle"

    # --- small things ---

    def _count(self, frame: FrameType) -> Place:
        site = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self._counts[site] = self._counts.get(site, 0) + 1
        return site, self._counts[site]

    def _at_station(self) -> Optional[Station]:
        """Ours, started now if need be. None in a child that was forked: it is no rank."""
        if os.getpid() != self._pid:
            return None
        if self._station is None:
            try:
                self._station = Station(identity())
            except OSError as error:
                _say(f"no breakpoint: {error}")
                return None
        return self._station

    def forked(self) -> None:
        """In the child."""
        if self._station is not None:
            self._station.forget()


def _offer(prompt: _Prompt, wire: Wire, message: Message) -> Optional[str]:
    """A terminal comes, for us or to ask for another rank in our place; why not, if so."""
    channel = prompt.channel
    assert channel is not None
    heir = message.get("heir")
    if heir is None:
        return None if channel.attach(wire) else "another terminal has its prompt"
    if channel.has_terminal:
        return "another terminal has its prompt: continue there first"
    prompt.heir = int(heir)
    channel.give_up()
    return "handed over"


def _chosen(station: Station, asked: Optional[int]) -> int:
    """At run time by a terminal, else by the call, else by the environment, else rank 0."""
    if station.chosen is not None:
        return station.chosen
    if asked is not None:
        return asked
    text = os.environ.get(CHOICE, "")
    return int(text) if text.isdigit() else 0


def _limit(asked: Optional[float]) -> float:
    if asked is not None:
        return float(asked)
    try:
        return float(os.environ.get(LIMIT, "")) or HOUR
    except ValueError:
        return HOUR


def _has_foreground() -> bool:
    """Whether a person sits before this very process: its terminal takes input for it."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _words(place: Place) -> str:
    name = os.path.basename(place[0])
    return name if place[1] == 1 else f"{name} (time {place[1]})"


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"gdbext: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # a rank without stderr debugs as well


gate = Gate()
os.register_at_fork(after_in_child=gate.forked)
