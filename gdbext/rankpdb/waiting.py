"""Waiting at a place until another rank has passed it."""

from __future__ import annotations

import socket
import time
from typing import Optional

from gdbext.rankpdb.rank_server import NOT_IN_TIME, Place, Station

OUR_TURN = "it is our turn"
_REDIRECTIONS = 8


def not_here(rank: int) -> str:
    """What `wait_for_turn` says when the patience is at its end."""
    return f"rank {rank} has not come"


def wait_for_turn(station: Station, chosen: int, place: Place, until: float, patience: Optional[float] = None) -> str:
    """Wait for a rank; returns why the wait is over: OUR_TURN when a terminal asked for this one instead.

    `patience`: seconds after which a rank that has not come to the place is not waited for any longer.
    """
    if not station.me.is_here(chosen):
        return station.far.wait(chosen, place, until)
    begun = time.monotonic()
    for _ in range(_REDIRECTIONS):
        limit = until if patience is None else min(until, begun + patience)
        question = {"wait": place[0], "hit": place[1], "rank": station.me.rank}
        wire = station.ask(chosen, question, max(0.0, limit - time.monotonic()))
        if isinstance(wire, str):
            return not_here(chosen) if limit < until and wire == NOT_IN_TIME else f"rank {chosen} {wire}"
        try:
            answer = wire.receive(max(0.001, limit - time.monotonic()))
            while answer == {"here": True}:  # from now on it is debugged: we wait as long as it takes
                limit = until
                answer = wire.receive(max(0.001, limit - time.monotonic()))
        except socket.timeout:
            return not_here(chosen) if limit < until else f"the time for rank {chosen} is up"
        finally:
            wire.close()
        if answer is None:
            station.lost(chosen)
            return f"rank {chosen} has ended"
        if "now" not in answer:
            return f"rank {chosen} has gone on"
        chosen, patience = int(answer["now"]), None
        if chosen == station.me.rank:
            return OUR_TURN
    return "the ranks choose one another in a circle"
