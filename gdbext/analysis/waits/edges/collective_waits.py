"""Where ranks meet: collectives, the GPU that runs them, the set-up of communicators; and who has not come."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.communicators.launch_counts import ahead_in
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, calls_of, matches_any, parties_without
from gdbext.analysis.view.places import operation
from gdbext.analysis.view.resident_kernels import collective_of, kernel_text, label, running_kernels
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import sent_messages
from gdbext.analysis.waits.edges.absent_members import OUTSIDE, Sure, is_ending, is_late
from gdbext.analysis.waits.edges.members import ON_DEVICE, UNNAMED, Meeting, Members, is_member
from gdbext.analysis.waits.edges.other_frames import (
    asks_store,
    blocked_inside,
    launches_nccl,
    opens_peer_memory,
    waits_for_peers,
)
from gdbext.knowledge.causes.remedies.remedy_constants import CONNECTS_TO_STORE
from gdbext.knowledge.causes.wait_kinds import LEFT_EARLY, NOT_JOINED, OF_PARENT, WAITS
from gdbext.knowledge.frames.networks.mpi import OF_SOME_RANKS
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS
from gdbext.model.codes import KERNEL_TEXT
from gdbext.model.evidence import Evidence
from gdbext.model.text.digits import is_whole
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks as ranks_in_words
from gdbext.model.waits import ANY, Node

_CONNECTS = regex(CONNECTS_TO_STORE)
_OF_SOME_RANKS = regex(OF_SOME_RANKS)

MOST_MEETINGS = 32
"""Different collectives that are compared, each with each, the largest first."""


def draw(drawing: Drawing) -> None:
    """Collectives, devices and rendezvous with their edges."""
    view = drawing.view
    members = [party for party in _members(view) if party not in drawing.taken]
    inside = [party for party in members if _is_inside(party)]
    known = Members(view)
    meetings = _meetings(drawing, inside, known)
    sent_messages.draw(drawing, known, members, [party for party in members if is_late(party)], meetings)
    ending = frozenset(party for party in view.parties if is_ending(party))
    blocked = frozenset(party for party in view.of("implicit") if not opens_peer_memory(party)) - ending
    launching = [party for party in members if party.group == "launch" and not party.in_collective]
    waiting = [party for party in members if party.group == "device" and not (party.in_collective or party in ending)]
    late = [party for party in members if is_late(party) or party in blocked or party in ending]
    accounted = len(launching) + len(view.of("collective", "device"))
    if 2 * len(launching) <= len(members) and (waiting or meetings) and accounted >= len(view.parties):
        late += launching
    missing = view.snapshot.absent or [party for party in late if party.group != "idle"]
    if not meetings and waiting and missing:
        name = ahead_in(view, waiting, [party for party in late if party.group != "idle"])
        node = drawing.resource("collective", ON_DEVICE, name or UNNAMED)
        meetings = [Meeting(node, waiting)]
        meetings[0].named = False
    main = max(meetings, key=lambda one: len(one.parties), default=None)
    for party in [*waiting, *launching, *(party for party in view.parties if party in blocked)]:
        _device(drawing, party, main)
    _all_launch(drawing)
    sure = Sure(view, members)
    for meeting in meetings:
        for party in late:
            wanted = party not in meeting.members and is_member(meeting.ranks, party) and not sure.asks(meeting, party)
            if wanted and (party.group != "idle" or meeting.named):
                strength = sure.of(meeting, party)
                drawing.join(meeting.node, drawing.rank(party), "member", strength, drawing.fact(party))
        _absent(drawing, meeting)
    _each_other(drawing, meetings, members)
    _rendezvous(drawing, meetings)
    _store_keys(drawing, meetings)
    for party in (one for one in view.parties if one in ending):
        _ends(drawing, party, main)


def _members(view: JobView) -> List[Party]:
    """Those that take part in collectives: of ranks that have numbers the others are front ends; a process without one
    that waits for what it let others do gives them their work, and a task of the kernel's log may be of any program."""
    numbered = any(party.process.rank is not None for party in view.of(*COMMUNICATION, "init"))
    return [
        party
        for party in view.parties
        if party.process.rank is not None
        or not (numbered or party.judged.rule in RESULTS_OF_OTHERS or party.process.source == KERNEL_TEXT)
    ]


def _is_inside(party: Party) -> bool:
    if party.judged.rule in (*LEFT_EARLY, *NOT_JOINED) or party.judged.collective in sent_messages.PAIRS:
        return False
    return party.group == "collective" or (party.group in COMMUNICATION and party.in_collective)


def _all_launch(drawing: Drawing) -> None:
    """Every rank is in a launch: launches are blocking, or all queues are full."""
    view = drawing.view
    launching = view.of("launch")
    blocking = view.environment("CUDA_LAUNCH_BLOCKING") not in (None, "", "0")
    several = len(launching) > 1
    if (
        not launching
        or len(launching) < len(view.parties)
        or not (blocking or several or any(map(launches_nccl, launching)))
    ):
        return
    for party in launching:
        rank = drawing.rank(party)
        node = drawing.resource("device", f"launch:{rank.id}", f"launch queue of {rank.label}", "external")
        strength = "inferred" if several or blocking else "assumed"
        drawing.join(rank, node, "blocked launch", strength, drawing.fact(party))


def _meetings(drawing: Drawing, inside: Sequence[Party], members: Members) -> List[Meeting]:
    """Ranks by what they are in, the most numerous first; what was not read of a call tells it from no other one."""
    groups: Dict[Tuple[object, ...], List[Party]] = {}
    known = {party.communicator for party in inside}
    for party in sorted(inside, key=_half_read):
        key = (party.communicator if len(known) > 1 else "", operation(party), party.count, party.root)
        alike = [one for one in groups if all(ours in (None, theirs) for ours, theirs in zip(key, one))]
        groups.setdefault(max(alike, key=lambda one: len(groups[one]), default=key), []).append(party)
    found = []
    by_size = sorted(groups.values(), key=len, reverse=True)[:MOST_MEETINGS]
    firsts = [parties[0] for parties in by_size]
    for number, parties in enumerate(by_size):
        node = drawing.resource("collective", number, _called(parties[0], firsts))
        found.append(Meeting(node, parties, members.of(parties)))
        for party in parties:
            strength = "named" if party.judged.collective or party.group == "collective" else "inferred"
            drawing.join(drawing.rank(party), node, party.kind, strength, drawing.fact(party))
    return found


def _half_read(party: Party) -> bool:
    """Whether arguments of the call that it is in were not read."""
    return party.communicator is None or party.count is None


def _called(party: Party, others: Sequence[Party]) -> str:
    """`all_reduce`, with the communicator where there are several, else with the size where that alone differs. Never
    with a number: NCCL's opCount counts plans with proxy work, not collectives."""
    name = operation(party)
    if party.communicator and len({one.communicator for one in others if one.communicator}) > 1:
        return f"{name} of {party.communicator}"
    alike = [one for one in others if operation(one) == name]
    if len({one.count for one in alike}) > 1 and party.count is not None:
        return f"{name} of {party.count} elements"
    return f"{name} with root {party.root}" if len({one.root for one in alike}) > 1 and party.root is not None else name


def _device(drawing: Drawing, party: Party, main: Optional[Meeting]) -> None:
    kernels = running_kernels(party.process)
    elsewhere = "external" if kernels and not collective_of(kernels[0].name) else None
    name = f"GPU of {drawing.rank(party).label}{label(party.process)}"
    node = drawing.resource("device", drawing.rank(party).id, name, elsewhere)
    row = WAITS.get(party.kind)
    lazy = party.group == "launch" and (drawing.view.environment("CUDA_MODULE_LOADING") or "").upper() == "LAZY"
    kind = "lazy launch" if lazy else party.kind
    drawing.join(drawing.rank(party), node, kind, row.strength if row else "inferred", drawing.fact(party))
    if main is None:
        return
    complete = drawing.view.complete and main.named and not drawing.view.threads_as_ranks
    strength = "named" if complete else "inferred"
    if party.process.kernels is None:
        drawing.join(node, main.node, "runs", strength)
        return
    asked = {party.judged.collective for party in main.parties} - {None}
    for one in kernels:
        found = (collective_of(one.name) or "").replace("-", "_")
        if found and (not asked or found in asked or found == "collective"):
            proven = "proven" if found in asked else strength
            drawing.join(
                node, main.node, "runs", proven, [Evidence(f"its GPU core shows {kernel_text(one)}", party.index)]
            )
            return


def _absent(drawing: Drawing, meeting: Meeting) -> None:
    absent = drawing.view.snapshot.absent
    for rank in absent if meeting.ranks is None else meeting.ranks.intersection(absent):
        drawing.join(meeting.node, drawing.absent(rank), "member", "named" if meeting.named else "inferred")


def _each_other(drawing: Drawing, meetings: Sequence[Meeting], members: Sequence[Party]) -> None:
    """Ranks in one collective have not come to the others, where both are of one communicator or of the same ranks."""
    for one in meetings:
        for other in meetings:
            strength = "" if one is other else _apart(drawing.view, one, other, members)
            for party in other.parties if strength else ():
                if not is_member(one.ranks, party):
                    continue
                apart = None not in (one.communicator, other.communicator) and one.communicator != other.communicator
                kind = "other communicator" if apart else "called elsewhere"
                drawing.join(one.node, drawing.rank(party), kind, strength, drawing.fact(party))


def _apart(view: JobView, one: Meeting, other: Meeting, members: Sequence[Party]) -> str:
    """How sure ranks of one meeting are waited for in the other; "" where they may well be in different groups."""
    known = one.communicators | other.communicators
    if len(known) > 1 and None not in known:
        if one.ranks is not None and other.ranks is not None:
            return "named"
        sizes = one.sizes | other.sizes
        full = sizes == {len(members)} or (view.world_size is not None and sizes == {view.world_size})
        return "named" if full else "assumed"
    if not (one.all_named and other.all_named):
        everybody = len(one.parties) + len(other.parties) == len(view.parties)
        return "assumed" if everybody and not view.threads_as_ranks else ""
    if one.roots != other.roots and one.operations == other.operations:
        return "inferred"  # the root of one may be past it, and in the next
    counts = one.counts | other.counts
    at_once = (len(counts) == 1 and None not in counts) or view.stands_still
    same = len(known) == 1 and None not in known
    return "named" if same and at_once and not view.threads_as_ranks else "inferred"


def _rendezvous(drawing: Drawing, meetings: Sequence[Meeting]) -> None:
    view = drawing.view
    inside = [party for party in view.of("init") if party not in drawing.taken and not asks_store(party)]
    if _different_groups(drawing, inside, meetings):
        return
    opening = [party for party in view.of("init", "implicit") if opens_peer_memory(party)]
    waiting = parties_without(inside, opening)
    for party in opening:
        rank = drawing.rank(party)
        device = drawing.resource("device", f"peer:{rank.id}", "the memory of another GPU", "external")
        strength = "inferred" if len(opening) > 1 or waiting else "assumed"
        drawing.join(rank, device, "peer memory", strength, drawing.fact(party))
    if not waiting:
        return
    size = max((party.members or 0 for party in waiting), default=0)
    away = [party for party in view.parties if party.group in (*OUTSIDE, "implicit") and party.group != "fatal"]
    away += [party for party in opening if party.group == "init"]
    of_parent = all(one.judged.rule in OF_PARENT for one in waiting)
    left = [party for party in view.parties if party.judged.rule in LEFT_EARLY] if of_parent else []
    away += left
    connecting = [party for party in waiting if matches_any(_CONNECTS, calls_of(party))]
    if len(connecting) < len(waiting):  # they have not reached the store that the others are at
        away, waiting = [*away, *connecting], parties_without(waiting, connecting)
        for party in connecting:
            rank = drawing.rank(party)
            host = drawing.resource("peer", f"store:{rank.id}", "the host of the store that it looks for", "external")
            drawing.join(rank, host, party.kind, "named", drawing.fact(party))
    alone = not away and not view.snapshot.absent
    for_peers = any(map(waits_for_peers, waiting))
    kind = "collective" if left else "rendezvous"  # one of the communicator that it is made of
    node = drawing.resource(kind, "", "the set-up of a communicator", "unread" if alone and for_peers else None)
    certain = "named" if not alone else "inferred" if len(waiting) > 1 and view.complete else "assumed"
    for party in waiting:
        drawing.join(drawing.rank(party), node, party.kind, certain, drawing.fact(party))
    for party in away:
        strength = "named" if size > len(waiting) or view.snapshot.absent else "inferred"
        drawing.join(node, drawing.rank(party), "member", strength, drawing.fact(party))
    of_some = all(matches_any(_OF_SOME_RANKS, calls_of(party)) for party in waiting)
    for number in view.snapshot.absent:
        drawing.join(node, drawing.absent(number), "member", "assumed" if of_some else "named")
    _parents(drawing, node, waiting, meetings)
    _instead(drawing, node, waiting, meetings)


def _instead(drawing: Drawing, node: Node, waiting: Sequence[Party], meetings: Sequence[Meeting]) -> None:
    """Most ranks set up a communicator, and the few others wait in a collective, where two copies show the same."""
    view = drawing.view
    others = [party for meeting in meetings for party in meeting.parties]
    whole = view.complete and len(waiting) + len(others) == len(view.parties)
    stand = all(party.index in view.still for party in others)
    if len(meetings) != 1 or not whole or not stand or len(waiting) <= len(others):
        return
    for party in others:
        drawing.join(node, drawing.rank(party), "set up elsewhere", "inferred", drawing.fact(party))
    for party in waiting:
        drawing.join(meetings[0].node, drawing.rank(party), "member", "inferred", drawing.fact(party))


def _parents(drawing: Drawing, node: Node, waiting: Sequence[Party], meetings: Sequence[Meeting]) -> None:
    """A communicator that is made of another one is a collective of that: nobody may be in another one meanwhile."""
    others = [party for meeting in meetings for party in meeting.parties if party.kind == "mpi"]
    if all(one.judged.rule in OF_PARENT for one in waiting) and len(others) + len(waiting) == len(drawing.view.parties):
        for party in others:
            drawing.join(node, drawing.rank(party), "called elsewhere", "assumed", drawing.fact(party))
        for meeting in meetings:
            for party in waiting:
                drawing.join(meeting.node, drawing.rank(party), "called elsewhere", "assumed", drawing.fact(party))


def _different_groups(drawing: Drawing, inside: Sequence[Party], meetings: Sequence[Meeting]) -> bool:
    """Whether ranks make different groups, or some make one and others are in a collective: a group waits until its
    members make it, and one that has a number for a name until all ranks of the job do."""
    made: Dict[Tuple[str, Tuple[int, ...]], List[Party]] = {}
    for party in inside:
        made.setdefault(party.makes, []).append(party)
    if len(made) + len(meetings) < 2 or not all(ranks for _, ranks in made):
        return False
    sure = "named" if drawing.view.stands_still else "inferred"
    others = [party for meeting in meetings for party in meeting.parties]
    for (name, ranks), parties in made.items():
        node = drawing.resource("collective", f"{name}:{ranks}", f"the set-up of a group of {ranks_in_words(ranks)}")
        for party in parties:
            drawing.join(drawing.rank(party), node, party.kind, "named", drawing.fact(party))
        for party in [*parties_without(inside, parties), *others]:
            is_in = party.process.rank in ranks
            if is_in or is_whole(name):
                strength = sure if is_in else "inferred"
                drawing.join(node, drawing.rank(party), "called elsewhere", strength, drawing.fact(party))
    for meeting in meetings:
        for party in inside:
            if is_member(meeting.ranks, party):
                strength = "inferred" if meeting.ranks is None else sure
                drawing.join(meeting.node, drawing.rank(party), "called elsewhere", strength, drawing.fact(party))
    return True


def _store_keys(drawing: Drawing, meetings: Sequence[Meeting]) -> None:
    """Keys of the store that the program itself waits for: any of the other ranks may be who sets them. Who waits for
    one is in no collective meanwhile."""
    waiting = [party for party in drawing.view.of("init") if asks_store(party)]
    for party in waiting:
        node = drawing.resource("collective", "key", "a key of the store")
        drawing.join(drawing.rank(party), node, party.kind, "named", drawing.fact(party))
    for meeting in meetings:
        for party in waiting:
            if is_member(meeting.ranks, party):
                sure = "named" if meeting.ranks is not None and drawing.view.stands_still else "inferred"
                drawing.join(meeting.node, drawing.rank(party), "seeks key", sure, drawing.fact(party))
    others = parties_without(_members(drawing.view), waiting) if waiting else []
    everybody = len(waiting) > 1 and not others and drawing.view.complete and drawing.view.stands_still
    for party in waiting if everybody else others:
        node = drawing.resource("collective", "key", "a key of the store")
        kind = "called elsewhere" if everybody else "member"
        drawing.join(node, drawing.rank(party), kind, "inferred", drawing.fact(party), ANY)


def _ends(drawing: Drawing, party: Party, main: Optional[Meeting]) -> None:
    rank = drawing.rank(party)
    node = drawing.resource("communicator", rank.id, f"work in flight of {rank.label}", "external")
    sure = blocked_inside(party) and (main is not None or len(drawing.view.parties) > 1)
    kind = party.kind if party.group == "teardown" else "exit"
    drawing.join(rank, node, kind, "named" if sure else "inferred", drawing.fact(party))
    if main is not None:
        drawing.join(node, main.node, "runs", "named" if sure else "inferred")
