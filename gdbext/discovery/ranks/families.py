"""Parents and children: which of several processes with the same variables is the rank itself.

Everything that a rank starts inherits its variables (data loaders, trackers, compilers), and a launcher that is itself
started by another launcher carries that one's. So a child is a rank only by what it has and its parent has not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, Optional, Sequence

from gdbext.discovery.proc.process_table import INIT, ProcessTable
from gdbext.discovery.ranks.rank_variables import Claim
from gdbext.discovery.ranks.roles import Member
from gdbext.model.job import RANK

LAUNCHER = "launcher"
HELPER = "helper"
TRACKER = "resource tracker"
LEFT = "left by a rank that has ended"


def settle_roles(members: Mapping[int, Member], table: ProcessTable) -> Dict[int, Member]:
    """The same members with their final roles."""
    members = {pid: _below_engine(member, members, table) for pid, member in members.items()}
    members = _settle_ranks(members, table)
    alone = [member for member in members.values() if _works_alone(member, members, table)]
    promoted = {member.pid: replace(member, role=RANK) for member in alone}
    members = _settle_ranks({**members, **promoted}, table) if promoted else members
    return {pid: _as_left(member, members, table) for pid, member in members.items()}


def _as_left(member: Member, members: Mapping[int, Member], table: ProcessTable) -> Member:
    """A process with one thread that a rank has forked and that outlives it has the rank's title and variables. The
    other ranks have threads, and one parent, which is not its own: it was handed to a process further up."""
    entry = member.facts.entry
    if member.role != RANK or member.titled or member.numbered or entry.threads != 1:
        return member
    others = (one.facts.entry for one in members.values() if one.role == RANK and one.pid != member.pid)
    mates = [one for one in others if one.title == entry.title]
    parents = {one.parent for one in mates}
    above = {one.pid for parent in parents for one in table.ancestors(parent)} | {INIT}
    left = len(parents) == 1 and parents <= set(table.entries) and entry.parent in above - parents
    if not left or any(one.threads < 2 or one.start_time > entry.start_time for one in mates):
        return member
    return replace(member, role=LEFT)


def _below_engine(member: Member, members: Mapping[int, Member], table: ProcessTable) -> Member:
    """Below an engine that names its ranks by titles, variables of pods and batch scripts make no rank."""
    claim = member.claim
    if member.role != RANK or member.titled or claim is None or claim.marked:
        return member
    above = (members.get(entry.pid) for entry in table.ancestors(member.pid))
    engine = next((other.profile for other in above if other is not None and other.titled), None)
    if engine is None or claim.row in engine.variables:
        return member
    return replace(member, role=HELPER, profile=engine)


def _works_alone(member: Member, members: Mapping[int, Member], table: ProcessTable) -> bool:
    """A front end or engine core without any rank process beside it computes itself."""
    if member.rule is None or not member.rule.alone or member.role == RANK:
        return False
    above = [members[entry.pid] for entry in table.ancestors(member.pid) if entry.pid in members]
    launchers = [other.pid for other in above if other.role == LAUNCHER]
    for root in [member.pid] + launchers[:1]:
        below = (members.get(entry.pid) for entry in table.descendants(root))
        if any(other is not None and other.role == RANK for other in below):
            return False
    return True


def _settle_ranks(members: Mapping[int, Member], table: ProcessTable) -> Dict[int, Member]:
    """Walk from the outside in; when an outer rank turns out to be a launcher, what lies below it is judged again."""
    start = dict(members)
    order = sorted((pid for pid, member in start.items() if member.role == RANK), key=table.depth)
    for _ in range(len(order) + 1):
        settled = dict(start)
        launcher = _walk(order, settled, table)
        if launcher is None:
            return settled
        start[launcher] = replace(start[launcher], role=LAUNCHER, claim=None)
        order.remove(launcher)
    return start


def _walk(order: Sequence[int], settled: Dict[int, Member], table: ProcessTable) -> Optional[int]:
    """Settle ranks in place. Returns the pid of one that must be a launcher instead, and stops there."""
    for pid in order:
        upper = _rank_above(pid, settled, table)
        if upper is None:
            continue
        judged = _judge(settled[pid], upper)
        if judged is None:
            return upper.pid
        settled[pid] = judged
    return None


def _rank_above(pid: int, settled: Mapping[int, Member], table: ProcessTable) -> Optional[Member]:
    for entry in table.ancestors(pid):
        member = settled.get(entry.pid)
        if member is not None and member.child_of is not None:
            return settled[member.child_of]
        if member is not None and member.role == RANK:
            return member
    return None


def _judge(lower: Member, upper: Member) -> Optional[Member]:
    """The lower one as a rank of its own or as a child of the upper one; None when the upper one is no rank."""
    if lower.family is not None and lower.family == upper.family:
        return lower
    child = replace(lower, role="child", child_of=upper.pid)
    if lower.titled and upper.titled and lower.facts.entry.title == upper.facts.entry.title:
        return child
    if lower.numbered:
        return lower if upper.titled or (upper.claim and upper.claim.marked) else None
    if upper.titled and not lower.titled:
        return child
    own = own_claim(lower, upper)
    if own is None:
        unclaimed = not lower.facts.claims and not upper.facts.claims
        if unclaimed and lower.facts.entry.title != upper.facts.entry.title:
            return lower
        return None if lower.facts.evidence and not upper.facts.evidence else child
    if any(claim.row == own.row for claim in upper.facts.claims):
        return replace(lower, claim=own)
    return child if upper.claim is not None and upper.claim.marked else None


def own_claim(lower: Member, upper: Member) -> Optional[Claim]:
    """The first claim of the lower process that it has not inherited from the upper one."""
    inherited = {(claim.row.rank, claim.rank) for claim in upper.facts.claims}
    return next((claim for claim in lower.facts.claims if (claim.row.rank, claim.rank) not in inherited), None)
