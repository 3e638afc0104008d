"""Ranks that all wait for threads of their own, which carry out a collective once every rank has asked for it, or
several collectives of Gloo at once."""

from __future__ import annotations

from collections import Counter
from typing import Optional, Sequence, Tuple

from gdbext.analysis.progress.named_waits import collective_call, goes_round, mains_in_collective
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_active, looked_long
from gdbext.analysis.progress.running import has_acted, stood
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without, threads_of
from gdbext.analysis.view.places import place, told_apart, where
from gdbext.analysis.view.wording import closed, label_list, start, verb, who
from gdbext.model.codes import Given
from gdbext.model.job import RANK
from gdbext.model.missing import Missing

_Place = Tuple[Optional[str], Optional[int]]


def no_rank_served(view: JobView) -> Optional[Candidate]:
    """No main thread moved, for as long as an endless loop takes to be called one: what the ranks ask for does not
    fit. Who asks at another line than most is named."""
    parties = mains_in_collective(view)
    if not parties or view.given is not Given.LIVE or not view.has_two_looks:
        return None
    if view.unseen or view.gone or view.snapshot.absent or view.of("fatal"):
        return None
    calls = {one.index: place(collective_call(one)) for one in parties}
    places = closed(told_apart(_processes(view, parties), lambda one: calls[one.index]))
    what = f"{who(_processes(view, parties))} wait in {places} for threads of their own to carry it out"
    computing = any(_computes(one) for party in parties for one in threads_of(view, party.index))
    (usual, count), *others = Counter(map(_asked_at, parties)).most_common()
    served = not others and _wait_for_server(view, parties)
    if computing or served or not looked_long(view) or not stood(view, parties):
        summary = f"It is not clear yet whether anything hangs: {what}. It may just take long."
        return not_clear(view, summary, evidence_of((), parties), parties)
    odd = [party for party in parties if _asked_at(party) != usual] if others and count > others[0][1] else []
    differs = "In what their requests differ the stacks do not show."
    if others:
        differs = "Most likely the ranks asked for different operations."
    if odd:
        differs += f" {start(who(_processes(view, odd)))} asked for it elsewhere: in {_differs(odd[0], usual)}."
    elif others:
        sides = [next(party for party in parties if _asked_at(party) == most) for most in (usual, others[0][0])]
        lines = (_differs(one, _asked_at(other)) for one, other in (sides, sides[::-1]))
        differs = " ".join(
            [differs, *(f"{start(who(_processes(view, [one])))} asked in {line}." for one, line in zip(sides, lines))]
        )
    summary = (
        f"{start(what)}, and none of them moved. Such a library waits until every rank has asked for the same. "
        f"{differs}"
    )
    rest = parties_without(parties, odd)
    return blame("collective-mismatch", "low", summary, odd, rest)


def several_at_once(view: JobView) -> Optional[Candidate]:
    """Every rank has begun the same collectives of Gloo, and none of them ends. Calls of ranks are matched by the order
    in which each began them."""
    parties = view.parties
    if len(parties) < 2 or view.given is not Given.LIVE or not view.has_two_looks:
        return None
    if view.unseen or view.snapshot.absent or any(party.kind != "gloo" for party in parties):
        return None
    under_way = [_under_way(view, party) for party in parties]
    names = [sorted(one.judged.collective or "" for one in threads) for threads in under_way]
    if len(set(names[0])) < 2 or any(some != names[0] for some in names):
        return None
    if any(has_acted(one) for threads in under_way for one in threads):
        return None
    summary = (
        f"{start(who(parties))} have begun the same collectives of Gloo ({label_list(names[0])}), and none of them "
        "ends. Most likely not all ranks began them in the same order: then each waits for the other. "
        f"{start(who(parties[:1]))} is in {where(parties[0])}."
    )
    evidence = evidence_of([one for threads in under_way for one in threads], ())
    return Candidate(
        cause="collective-mismatch", confidence="low", summary=summary, culprits=parties, evidence=evidence
    )


def one_beside(view: JobView) -> Optional[Candidate]:
    """All ranks stand in one collective, and a few of them in another one too, in a thread beside: in one communicator
    each would wait for the other."""
    ranks = [party for party in view.parties if party.process.role == RANK]
    if len(ranks) < 2 or view.given is not Given.LIVE or not view.has_two_looks or view.unseen or view.snapshot.absent:
        return None
    names = {party.judged.collective for party in ranks}
    if len(names) > 1 or None in names or any(map(has_acted, ranks)):
        return None
    beside = [one for party in ranks for one in _beside(view, party)]
    odd = _processes(view, beside)
    if not odd or 2 * len(odd) > len(ranks):
        return None
    summary = (
        f"{start(who(ranks))} all wait in {ranks[0].judged.collective}, and {who(beside)} "
        f"{verb(beside, 'waits', 'wait')} in {beside[0].judged.collective}, too, in {closed(where(beside[0]))} which "
        "no other rank does. If it is the same communicator, the ranks have begun these in different orders, and none "
        "of them can complete."
    )
    return blame("collective-mismatch", "low", summary, odd, parties_without(ranks, odd), beside)


def _beside(view: JobView, party: Party) -> Sequence[Party]:
    """Its other threads of Python that stand in another collective, and not in a loop that takes orders there."""
    own = (one for one in threads_of(view, party.index) if one.thread is not party.thread and any(one.python_calls()))
    inside = (one for one in own if one.group in COMMUNICATION and one.judged.collective and not has_acted(one))
    other = (one for one in inside if one.judged.collective != party.judged.collective)
    return [one for one in other if not (one.takes_orders and goes_round(one))]


def _under_way(view: JobView, party: Party) -> Sequence[Party]:
    """The threads of Gloo that carry out collectives: those that asked for one run Python."""
    every = (one for one in threads_of(view, party.index) if one.kind == "gloo" and one.judged.collective)
    return [one for one in every if not any(one.python_calls())]


def _wait_for_server(view: JobView, parties: Sequence[Party]) -> bool:
    """Whether a thread of the ranks waits for what others than these send: all may have asked for the same, and a
    server still work on it."""
    pids = {process.pid for process in view.snapshot.processes}
    ends = (peer.processes for party in parties for peer in party.process.peers)
    return any(isinstance(one, Missing) or not pids.issuperset(one) for one in ends)


def _computes(one: Party) -> bool:
    """Whether it works on something; who looks again and again for what was asked only naps in between."""
    return is_active(one) and one.thread is not None and one.thread.sleeps is None


def _processes(view: JobView, mains: Sequence[Party]) -> Sequence[Party]:
    """What stands for the processes of these threads."""
    indexes = {one.index for one in mains}
    return [party for party in view.parties if party.index in indexes]


def _differs(party: Party, usual: Sequence[_Place]) -> str:
    """The outermost line of Python at which it is not where most are."""
    own = list(party.python_calls())
    pairs = zip(reversed(own), reversed(usual))
    return next((place(frame) for frame, most in pairs if (frame.function, frame.line) != most), where(party))


def _asked_at(party: Party) -> Tuple[_Place, ...]:
    """The lines of Python from the program's outermost function to the wait."""
    return tuple((frame.function, frame.line) for frame in party.python_calls())


LOST = (several_at_once, one_beside)
PATTERNS = (no_rank_served,)
"""Threads beside the main ones move, whatever these wait for: no rank is missing because of where its own is."""
