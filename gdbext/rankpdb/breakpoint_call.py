"""`breakpoint_()`: one rank gets a prompt, the others wait for it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import Callable, Dict, List, Optional, Tuple

from gdbext.rankpdb.announcements import as_text, say
from gdbext.rankpdb.channel import Channel
from gdbext.rankpdb.debugger import HELP, RankPdb
from gdbext.rankpdb.folder import socket_folder_note
from gdbext.rankpdb.identity import Identity, identity, integer_or_none
from gdbext.rankpdb.rank_server import Place, Station, answer_without_prompt
from gdbext.rankpdb.tidying import tidied
from gdbext.rankpdb.waiting import OUR_TURN, not_here, wait_for_turn
from gdbext.rankpdb.wire import Message, Wire

CHOICE = "RANK_TO_DEBUG"
"""The variable that chooses the rank of all breakpoints that name none. `none`: no breakpoint stops anybody."""
LIMIT = "GDBEXT_PDB_TIMEOUT"
"""Seconds that ranks wait at most when the call does not say. Default: an hour."""
HOUR = 3600.0


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
        station = self.at_station()
        if station is None:
            return
        place = self._count(frame)
        until = time.monotonic() + _limit(timeout)
        chosen = _chosen(station, rank)
        if station.me.world is not None and not 0 <= chosen < station.me.world:
            say(
                f"rank {chosen} was chosen, but the job has {station.me.world} ranks; no rank stops at {as_text(place)}"
            )
            return
        if chosen == station.me.rank:
            self._debug(frame, place, until, block)
        elif block:
            self._wait(frame, chosen, place, until)
        else:
            self._unmet.append((chosen, place, until))

    def clear(self) -> None:
        """What `clear_` does: ranks that went on while one was debugged wait here until it has come here, too."""
        station = self.at_station() if self._unmet or self._opened else None
        if station is None:
            return
        opened, self._opened = self._opened, []
        for place in opened:
            self._passes(place)
        unmet, self._unmet = self._unmet, []
        for chosen, place, until in unmet:
            self._wait(sys._getframe(2), chosen, place, until)

    def meet(self, frame: FrameType, place: Place, rank: int, patience: float, opened: Callable[[], None]) -> bool:
        """Stop at a place that was put into the running program; `opened` is called when it is our prompt.

        False when the chosen rank did not come: the ranks are out of step, and it may be waiting for us elsewhere.
        """
        station = self.at_station()
        if station is None:
            return True
        until = time.monotonic() + _limit(None)
        chosen = _chosen(station, rank)
        if chosen != station.me.rank:
            said = self._answer_of(chosen, place, until, patience)
            if said != OUR_TURN:
                return said != not_here(chosen)
        self._debug(frame, place, until, True, opened)
        return True

    # --- the debugged rank ---

    def _debug(
        self, frame: FrameType, place: Place, until: float, block: bool, opened: Callable[[], None] = lambda: None
    ) -> None:
        station = self._station
        assert station is not None
        if self._prompt is not None:  # it stepped to here, or breakpoints of pdb are set
            opened()
            self._join(self._prompt, frame, place)
            return
        prompt: _Prompt
        channel = None if _has_foreground() else Channel(until)
        debugger = RankPdb(channel, lambda: self._left(prompt), lambda: self._held_by(prompt))
        prompt = _Prompt(
            debugger=debugger,
            thread=threading.get_ident(),
            frame=frame,
            places=[place],
            block=block,
            until=until,
            channel=channel,
        )
        self._open(prompt)
        opened()
        debugger.set_trace(frame)

    def _open(self, prompt: _Prompt) -> None:
        station = self._station
        assert station is not None
        self._prompt = prompt
        place, channel = prompt.places[0], prompt.channel
        if channel is not None:
            channel.tidy = station.close
        station.far.opens(place)
        station.doing = {"state": "prompt", "at": as_text(place)}
        station.opens(place)
        station.on_release = prompt.debugger.leave
        text = f"rank {station.me.rank} (pid {os.getpid()}) at {as_text(place)} in {prompt.frame.f_code.co_name}"
        if channel is None:
            say(f"{text}\n{HELP}")
            return
        channel.write(f"{text}\n{HELP}\n")
        station.on_terminal = lambda wire, message: _offer(prompt, wire, message)
        limit = prompt.until - time.monotonic()
        say(f"{text}: `gdbext pdb` on this host opens its prompt; every rank resumes after {limit:.0f} s at the latest")

    def _join(self, prompt: _Prompt, frame: FrameType, place: Place) -> None:
        """A breakpoint met while a prompt is open."""
        if prompt.thread != threading.get_ident():
            say(f"another thread of this rank is being debugged; this one continues at {as_text(place)}")
            self._passes(place)
            return
        prompt.places.append(place)
        if self._station is not None:
            self._station.far.opens(place)
        prompt.debugger.block_others()
        prompt.debugger.set_trace(frame)

    def _held_by(self, prompt: _Prompt) -> str:
        """Who waits for a prompt, or will: ranks of other hosts are not counted."""
        assert self._station is not None
        found = sorted({rank for place in list(prompt.places) for rank in self._station.waiters(place)})
        if found:
            return f"rank {found[0]} is" if len(found) == 1 else f"ranks {', '.join(map(str, found))} are"
        return "the other ranks are" if prompt.block and self._station.me.world not in (None, 1) else ""

    def _left(self, prompt: _Prompt) -> None:
        """The others need not wait for this prompt any more."""
        station = self._station
        assert station is not None
        places, prompt.places = prompt.places, []
        if not prompt.debugger.breaks:
            self._prompt = None
            station.on_terminal, station.on_release = answer_without_prompt, None
            station.doing = {"state": "running"}
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
        if self._answer_of(heir, place, prompt.until) != OUR_TURN:
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
        self._station.far.passes(place)

    # --- the ranks that wait ---

    def _wait(self, frame: FrameType, chosen: int, place: Place, until: float) -> None:
        if self._answer_of(chosen, place, until) == OUR_TURN:
            self._debug(frame, place, until, True)

    def _answer_of(self, chosen: int, place: Place, until: float, patience: Optional[float] = None) -> str:
        """Wait for another rank; why that is over: OUR_TURN when a terminal asked for this one instead."""
        station = self._station
        assert station is not None
        station.doing = {"state": "waits", "at": as_text(place), "for": chosen}
        limit = until - time.monotonic() if patience is None else patience
        here = station.me.is_here(chosen)
        absent = station.absent(chosen) if here else None
        chosen_name = f"rank {chosen}" + (
            f" (pid {absent.pid}, which has not arrived yet)" if absent and absent.pid else ""
        )
        say(
            f"rank {station.me.rank} waits at {as_text(place)} for {chosen_name}, {limit:.0f} s at most"
            + (" until it arrives" if patience else "")
            + ("" if here else f" (on another host: {station.far.transport()})")
        )
        try:
            with tidied(station.close):
                said = wait_for_turn(station, chosen, place, until, patience)
        finally:
            station.doing = {"state": "running"}
        if said != OUR_TURN:
            say(f"rank {station.me.rank} resumes: {said}")
        return said

    # --- small things ---

    def _count(self, frame: FrameType) -> Place:
        site = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self._counts[site] = self._counts.get(site, 0) + 1
        return site, self._counts[site]

    def at_station(self, me: Optional[Identity] = None) -> Optional[Station]:
        """Ours, started now if need be (as `me`). None in a child that was forked: it is no rank."""
        if os.getpid() != self._pid:
            return None
        if self._station is None:
            try:
                self._station = Station(me or identity())
            except OSError as error:
                say(f"no breakpoint: {error}")
                return None
            said = socket_folder_note(self._station.path)
            if said is not None:
                say(said)
        return self._station

    def leave_station(self) -> None:
        """Nothing came of what it was started for: take it away, unless it is in use by now."""
        if self._station is not None and self._prompt is None and not self._counts and not self._opened:
            station, self._station = self._station, None
            station.close()
            atexit.unregister(station.close)

    def release_unclaimed(self) -> None:
        """The terminal that asked for a prompt is gone; unless it has it, the rank goes on."""
        channel = self._prompt.channel if self._prompt is not None else None
        if channel is not None and not channel.has_terminal:
            channel.give_up()

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
    return integer_or_none(text) or 0


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


gate = Gate()
os.register_at_fork(after_in_child=gate.forked)
