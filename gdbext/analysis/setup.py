"""Patterns in the set-up of communicators: a member that does not come, or a peer's memory that cannot be opened."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.analysis.candidate import Candidate, evidence_of
from gdbext.analysis.view import JobView, Party, without
from gdbext.analysis.wording import start, verb, what, where, who
from gdbext.model.patterns import regex
from gdbext.model.ranges import ranks

_PEER_MEMORY = regex(
    r"(cu(da)?IpcOpenMemHandle|cudaDeviceEnablePeerAccess|cuCtxEnablePeerAccess|cuMemImportFromShareableHandle|cuMemSetAccess)"
)


def rendezvous(view: JobView) -> Optional[Candidate]:
    """A communicator is being set up and a member does not come."""
    waiting = view.of("init")
    if not waiting:
        return None
    gone = frozenset(view.gone)
    away = [
        party for party in view.parties if party.group in ("elsewhere", "lock", "idle", "implicit") or party in gone
    ]
    absent = view.snapshot.absent
    if not (away or absent):
        return _init_alone(view, waiting)
    pieces = [f"{ranks(absent)} {'has' if len(absent) == 1 else 'have'} no process"] if absent else []
    if away:
        pieces.append(f"{who(away)} {verb(away, 'is', 'are')} in {where(away[0])}")
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {what(waiting)} for the other members. "
        f"{start(' and '.join(pieces))}, so the communicator cannot be set up."
    )
    members = max((party.members or 0 for party in waiting), default=0)
    confidence = "high" if absent or members > len(waiting) else "medium"  # else it may be a group without the others
    return Candidate(
        "init-rendezvous", confidence, 85, summary, tuple(away), tuple(waiting), absent, evidence_of(away, waiting)
    )


def _init_alone(view: JobView, waiting: Sequence[Party]) -> Optional[Candidate]:
    """All that can be seen are in the set-up; that a member is missing shows only where they wait on the network."""
    if len(waiting) < len(view.parties):
        return None
    on_network = [party for party in waiting if party.kind == "store-wait" or _waits_for_peers(party)]
    if not on_network:
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'sets', 'set')} up a communicator and "
        f"{verb(waiting, 'waits', 'wait')} for the other members "
        f"in {where(on_network[0])}. Which member does not come, or cannot be reached, these stacks do not show."
    )
    confidence = "medium" if len(waiting) > 1 and view.complete else "low"
    return Candidate("init-rendezvous", confidence, 48, summary, (), tuple(waiting), (), evidence_of((), waiting))


def _waits_for_peers(party: Party) -> bool:
    frames = party.thread.frames if party.thread is not None else ()
    return any((frame.function or "").startswith(("bootstrap", "ncclSocketAccept", "socketPoll")) for frame in frames)


def peer_access(view: JobView) -> Optional[Candidate]:
    """A rank that sets up a communicator is opening a peer's memory and does not come out of the driver."""
    opening = [party for party in view.of("init", "implicit") if _opens_peer_memory(party)]
    others = without(view.of("init"), opening)
    if not opening or len(opening) + len(others) < len(view.parties):
        return None
    summary = (
        f"{start(who(opening))} {verb(opening, 'is', 'are')} opening another GPU's memory in {where(opening[0])} and "
        f"{verb(opening, 'does', 'do')} not come out of the driver. Direct access between these GPUs is announced but "
        "may not work here; one look cannot tell that from a slow first mapping."
    )
    confidence = "medium" if others or len(opening) > 1 else "low"
    return Candidate(
        "p2p-or-topology",
        confidence,
        55,
        summary,
        tuple(opening),
        tuple(others),
        (),
        evidence_of(opening, others),
    )


def _opens_peer_memory(party: Party) -> bool:
    names = [frame.function or "" for frame in party.thread.frames] if party.thread is not None else []
    return any(_PEER_MEMORY.match(name) for name in names) and any("nccl" in name.lower() for name in names)


PATTERNS = (rendezvous, peer_access)
