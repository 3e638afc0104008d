"""Clients of a server that have waited for an answer for long, as the kernel saw it (model/clients.py)."""

from __future__ import annotations

from typing import List, Sequence

from gdbext.analysis.view.job_view import JobView, Party
from gdbext.model.clients import WaitingClient
from gdbext.model.job import RANK
from gdbext.model.text.ranges import counted


def overdue_clients(view: JobView, party: Party) -> List[WaitingClient]:
    """Those of a process that have waited at least as long as a loop takes to be called endless."""
    return [one for one in waiting_clients(view, party) if one.seconds >= view.spinning_after]


def waiting_clients(view: JobView, party: Party) -> Sequence[WaitingClient]:
    """Who waits for an answer of a process. Ranks have connections with ranks of other hosts: a rank counts only where
    it is the whole engine."""
    alone = len(view.snapshot.processes) == 1 and (view.world_size or 1) == 1
    return () if party.process.role == RANK and not alone else party.process.clients


def overdue_text(clients: Sequence[WaitingClient], server: str) -> str:
    """`a client (10.0.0.5:51234) has waited 63 s for an answer from front end at 127.0.0.1:8000`; of several the one
    that has waited longest."""
    first = clients[0]
    named = f"pid {first.pids[0]}, {first.names[0]}" if first.pids and first.names else first.address
    lead = (
        f"a client ({named}) has" if len(clients) == 1 else f"{counted(len(clients), 'client')} (one is {named}) have"
    )
    unread = f"; {server} has not read {counted(first.unread, 'byte')} of it" if first.unread else ""
    waited = f"{first.seconds:.0f} s" if len(clients) == 1 else f"up to {first.seconds:.0f} s"
    return f"{lead} waited {waited} for an answer from {server} at {first.server}{unread}"
