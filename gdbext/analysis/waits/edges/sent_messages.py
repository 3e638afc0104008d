"""Sends and receives: who is on the other side, by the call's arguments, else any of those that are elsewhere."""

from __future__ import annotations

from typing import Dict, List, Sequence

from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.places import where
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.members import Meeting, Members, is_member
from gdbext.model.codes import Given
from gdbext.model.waits import ANY, Node

PAIRS = ("send", "recv", "send_recv")
_OTHER = {"send": "recv", "recv": "send"}
SAID = {"send": "send to", "recv": "recv from"}


def draw(
    drawing: Drawing, known: Members, members: Sequence[Party], away: Sequence[Party], meetings: Sequence[Meeting]
) -> None:
    """Their edges. `away`: members outside of any communication."""
    pairs = [party for party in members if party.judged.collective in PAIRS]
    drawn = [party for party in pairs if _draw_named_partner(drawing, known, party, away)]
    pairs = parties_without(pairs, drawn)
    if _nobody_else(drawing, pairs, members, meetings):
        elsewhere = [party for meeting in meetings for party in meeting.parties] or _odd_ones(drawing.view, pairs)
        if len(members) == len(elsewhere) == 2 and not meetings:  # each means the other
            drawn += _draw_both(drawing, pairs)
            pairs = []
        else:
            for party in elsewhere:
                node = _node(drawing, pairs[0])
                drawing.join(node, drawing.rank(party), "called elsewhere", "inferred", drawing.fact(party), ANY)
            drawn += pairs
    elif _past_each_other(drawing.view, pairs, members, meetings):
        for one in {party.judged.collective: party for party in pairs}.values():
            for party in pairs:
                if _answers(one, party):
                    node = _node(drawing, one)
                    drawing.join(node, drawing.rank(party), "called elsewhere", "inferred", drawing.fact(party), ANY)
        drawn += pairs
    for meeting in meetings:
        for party in drawn:
            if is_member(meeting.ranks, party):
                strength = "inferred" if meeting.ranks is None else "named"
                drawing.join(meeting.node, drawing.rank(party), "called elsewhere", strength, drawing.fact(party))
    for party in pairs:
        drawing.join(drawing.rank(party), _node(drawing, party), party.kind, "named", drawing.fact(party))
    strength = "inferred" if 2 * len(away) <= len(members) else "assumed"
    for one in {party.judged.collective: party for party in pairs}.values():
        for party in away:
            drawing.join(_node(drawing, one), drawing.rank(party), "member", strength, drawing.fact(party), ANY)


def _node(drawing: Drawing, party: Party) -> Node:
    return drawing.resource("collective", party.judged.collective, f"{party.judged.collective}")


def _draw_named_partner(drawing: Drawing, known: Members, party: Party, away: Sequence[Party]) -> bool:
    """Whether the call says whom it waits for. One that is at its side of the message may be about to answer."""
    other, rank = known.other_side(party), drawing.rank(party)
    if other is None or (isinstance(other, Party) and known.other_side(other) == party and _answers(party, other)):
        return False
    number = other if isinstance(other, int) else other.process.rank
    node = drawing.resource("collective", f"{rank.id}:{number}", f"{SAID[str(party.judged.collective)]} rank {number}")
    drawing.join(rank, node, party.kind, "named", drawing.fact(party))
    if isinstance(other, int):
        drawing.join(node, drawing.absent(other), "member", "named")
    else:
        kind = "member" if other in away else "called elsewhere"
        strength = "assumed" if other.judged.collective == "send_recv" else "named"
        drawing.join(node, drawing.rank(other), kind, strength, drawing.fact(other))
    return True


def _draw_both(drawing: Drawing, pairs: Sequence[Party]) -> Sequence[Party]:
    for party, other in zip(pairs, reversed(pairs)):
        said = str(party.judged.collective)
        node = drawing.resource("collective", f"{drawing.rank(party).id}:{said}", said)
        drawing.join(drawing.rank(party), node, party.kind, "named", drawing.fact(party))
        drawing.join(node, drawing.rank(other), "called elsewhere", "inferred", drawing.fact(other))
    return pairs


def _answers(party: Party, other: Party) -> bool:
    return other.judged.collective == _OTHER.get(party.judged.collective or "")


def _odd_ones(view: JobView, pairs: Sequence[Party]) -> Sequence[Party]:
    """Of those that all wait for a message the ones that were called from another place than most; else all. At one
    place all of them may be in the middle of their messages: unless none got on."""
    if len({where(party) for party in pairs}) == 1:
        return pairs if _stands(view) else []
    places: Dict[str, List[Party]] = {}
    for party in pairs:
        places.setdefault(where(party), []).append(party)
    *fewer, most = sorted(places.values(), key=len)
    odd = [party for some in fewer for party in some]
    return odd if len(odd) < len(most) else pairs


def _past_each_other(
    view: JobView, pairs: Sequence[Party], members: Sequence[Party], meetings: Sequence[Meeting]
) -> bool:
    """Whether some send and others receive, all of the job are inside of their calls, and none of them got on between
    two copies: they do not mean the same message."""
    if {party.judged.collective for party in pairs} != {"send", "recv"} or not view.complete:
        return False
    inside = sum(len(meeting.parties) for meeting in meetings)
    return _stands(view) and len(pairs) + inside >= len(members)


def _stands(view: JobView) -> bool:
    return view.given is Given.LIVE and view.has_two_looks and not view.moved


def _nobody_else(
    drawing: Drawing, pairs: Sequence[Party], members: Sequence[Party], meetings: Sequence[Meeting]
) -> bool:
    """Whether all ranks were read and nobody is on the other side: it is one of those that wait for something else."""
    said = {party.judged.collective for party in pairs}
    inside = sum(len(meeting.parties) for meeting in meetings)
    return len(said) == 1 and "send_recv" not in said and drawing.view.complete and len(pairs) + inside >= len(members)
