"""Ranks that others wait for: gone, elsewhere, idle, or blocked by the device. Each pattern looks at the whole job."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence

from gdbext.analysis.candidate import Candidate, evidence_of, majority
from gdbext.analysis.classify import BUSY
from gdbext.analysis.view import COMMUNICATION, JobView, Party, without
from gdbext.analysis.wording import start, verb, what, where, who
from gdbext.model.ranges import ranks
from gdbext.model.verdict import Evidence

_LAZY = ("module-load",)
# A thread that sits in one of these does nothing for the job; in the others it may be making progress.
_STANDS = ("ipc-queue", "condvar-idle", "mutex", "gil", "exited-or-crashed", "sigbus", "cuda-error-throw")


# Waits that cannot be part of a collective or a GPU call that was cut off or has no names.
_PLAINLY_AWAY = ("io", "ipc-queue", "python-code", "mutex")


def waiting_for_others(view: JobView) -> List[Party]:
    """Ranks in a collective, or waiting for the GPU, which may run one."""
    return without(view.of(*COMMUNICATION), view.gone)


def dead_rank(view: JobView) -> Optional[Candidate]:
    """A rank is dead, stopped or absent while others wait for it."""
    waiting, absent = waiting_for_others(view) + view.of("init", "teardown"), view.snapshot.absent
    gone = list(view.gone) + [party for party in view.of("fatal") if party.kind == "exited-or-crashed"]
    if not waiting or not (gone or absent) or all(party.group == "init" for party in waiting):
        return None
    stopped = [party for party in gone if party.group == "stopped"]
    pieces = []
    if absent:
        pieces.append(f"{ranks(absent)} {'has' if len(absent) == 1 else 'have'} no process")
    if stopped:
        pieces.append(f"{who(stopped)} {verb(stopped, 'is', 'are')} stopped by a signal")
    dead = without(gone, stopped)
    if dead:
        pieces.append(f"{who(dead)} {verb(dead, 'is', 'are')} dead or dying")
    proven = any(party.group == "collective" or party.judged.collective for party in waiting)
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {what(waiting)}. "
        f"{start(' and '.join(pieces))}, so what the others wait for cannot complete."
    )
    return Candidate(
        "missing-rank",
        "high" if proven else "medium",
        86,
        summary,
        tuple(gone),
        tuple(waiting),
        absent,
        evidence_of(gone, waiting),
    )


def rank_elsewhere(view: JobView) -> Optional[Candidate]:
    """Some ranks wait in a collective or for the GPU, a few others are outside of any communication."""
    waiting = waiting_for_others(view)
    away = without(view.of("elsewhere", "lock"), view.gone)
    if any(party.process.rank is not None for party in waiting):
        away = [party for party in away if party.process.rank is not None]  # the others are front ends
    if not waiting or not away or view.threads_as_ranks or any(map(may_progress, away)):
        return None
    explicit = any(party.judged.collective is not None or party.group == "collective" for party in waiting)
    few = 2 * len(away) <= len(view.parties)
    numbered = all(party.process.rank is not None for party in (*waiting, *away))
    plain = all(party.kind in _PLAINLY_AWAY for party in away)
    proven = explicit and few and plain and numbered and view.complete
    confidence = "high" if proven else "medium" if few and (explicit or numbered) else "low"
    outside = "never entered it" if explicit else verb(away, "waits", "wait") + " for neither the GPU nor a collective"
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {what(waiting)}; {who(away)} {outside}. "
        f"{start(who(away[:1]))} is in {where(away[0])}."
    )
    evidence = (*evidence_of(away, waiting), *_sleeps_on(away))
    return Candidate("missing-rank", confidence, 82, summary, tuple(away), tuple(waiting), (), evidence)


def _sleeps_on(away: Sequence[Party]) -> Iterator[Evidence]:
    for party in away:
        ends = party.thread.sleeps if party.thread is not None else None
        if ends is not None:
            text = f"{who([party])} has asked to sleep, for {ends:,.0f} s more at most"
            yield Evidence(text, party.index, party.judged.id or None)


def may_progress(party: Party) -> bool:
    """Computing, or running Python code: slow looks like this as well."""
    if party.kind in _STANDS:
        return False
    used = party.thread.cpu if party.thread is not None else None
    return party.kind == "native-compute" or (used or 0.0) >= BUSY or (party.judged.running and party.kind != "io")


def idle_peer(view: JobView) -> Optional[Candidate]:
    """Some ranks wait in a collective while others sit where idle workers sit: these never got the order."""
    waiting, idle = waiting_for_others(view), view.of("idle")
    if not idle or not any(party.in_collective for party in waiting) or len(waiting) + len(idle) < len(view.parties):
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {what(waiting)}, {who(idle)} "
        f"{verb(idle, 'waits', 'wait')} for the next order of the engine. Either the order did not reach "
        f"{'it' if len(idle) == 1 else 'them'}, or the ranks disagree about how many steps there are."
    )
    return Candidate("missing-rank", "low", 64, summary, tuple(idle), tuple(waiting), (), evidence_of(idle, waiting))


def implicit_sync(view: JobView) -> Optional[Candidate]:
    """A call that waits for the device on some ranks, while their peers wait for the GPU or in a collective."""
    waiting, stuck = waiting_for_others(view), view.of("implicit")
    if not waiting or not stuck:
        return None
    lazy = [party for party in stuck if party.kind in _LAZY]
    only_lazy = len(lazy) == len(stuck)
    seen = view.complete and not view.of("elsewhere", "lock", "idle", "unknown", "init", "teardown")
    named = any(party.in_collective for party in (*waiting, *stuck))
    confidence = "high" if seen and named and not view.threads_as_ranks and not majority(stuck, view) else "medium"
    summary = (
        f"{start(who(stuck))} {verb(stuck, 'is', 'are')} in {where(stuck[0])}, which waits for the device, and "
        f"the device runs a collective. "
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {what(waiting)} for the part of it that "
        f"{who(stuck)} "
        f"cannot {'launch' if not only_lazy else 'launch before its code is loaded'}."
    )
    cause = "lazy-module-load-vs-collective" if only_lazy else "implicit-sync-vs-collective"
    return Candidate(cause, confidence, 80, summary, tuple(stuck), tuple(waiting), (), evidence_of(stuck, waiting))


def blocked_launch(view: JobView) -> Optional[Candidate]:
    """One or few ranks cannot launch a kernel of their own while the others wait for the GPU."""
    launching = [party for party in view.of("launch") if not party.in_collective]
    others = view.of("collective", "device")
    if not launching or not others or majority(launching, view) or len(launching) + len(others) < len(view.parties):
        return None
    lazy = (view.environment("CUDA_MODULE_LOADING") or "").upper() == "LAZY"
    cause = "lazy-module-load-vs-collective" if lazy else "launch-serialisation"
    summary = (
        f"{start(who(launching))} {verb(launching, 'does', 'do')} not get out of a kernel launch "
        f"({where(launching[0])}): its launch queue is full "
        "behind a collective, or the kernel must be loaded first and loading waits for the device. "
        f"{start(who(others))} {verb(others, 'waits', 'wait')} in {what(others)} for work that it has not launched."
    )
    return Candidate(cause, "medium", 66, summary, tuple(launching), tuple(others), (), evidence_of(launching, others))


def all_in_launch(view: JobView) -> Optional[Candidate]:
    """Every rank is in a kernel launch: launches are blocking, or all queues are full."""
    launching = view.of("launch")
    if not launching or len(launching) < len(view.parties):
        return None
    blocking = view.environment("CUDA_LAUNCH_BLOCKING") not in (None, "", "0")
    nccl = [party for party in launching if _launches_nccl(party)]
    if not (blocking or len(launching) > 1 or nccl):
        return None
    several = len(launching) > 1
    why = "CUDA_LAUNCH_BLOCKING is set" if blocking else "launches are blocking, or the launch queue is full"
    what = "the launch of an NCCL kernel" if nccl else "a kernel launch"
    summary = (
        f"{start(who(launching))} {verb(launching, 'does', 'do')} not get out of {what}. "
        f"{start(why)}: the launch of a collective can then wait for a peer that waits for this rank."
    )
    confidence = "medium" if several or blocking else "low"
    return Candidate(
        "launch-serialisation", confidence, 62, summary, tuple(launching), (), (), evidence_of(launching, ())
    )


def _launches_nccl(party: Party) -> bool:
    frames = party.thread.frames if party.thread is not None else ()
    return any("nccl" in (frame.function or "").lower() for frame in frames)


PATTERNS = (dead_rank, rank_elsewhere, idle_peer, implicit_sync, blocked_launch, all_in_launch)
