"""Which rank each process of a job is, how many there should be, and which of them are not here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.discovery.ranks import argument_words
from gdbext.discovery.ranks.roles import Member
from gdbext.knowledge.launch.launchers import HOST_COUNT_ARGUMENTS, LOCAL_SIZE_ARGUMENTS, WORLD_SIZE_ARGUMENTS
from gdbext.knowledge.row_kinds import EngineProfile
from gdbext.model.missing import Missing

_MOST_RANKS = 100_000
"""Sizes in arguments are the user's text: a larger job is a typing error, and its missing ranks are not listed."""

_NO_ENGINE = EngineProfile("")

Commands = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Numbered:
    """A rank process with its numbers. `source` says where the rank comes from, or "unknown: why"."""

    member: Member
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    source: str = "unknown: no rank variable, option or title"
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Sizes:
    """How many ranks the job has, in all and on this host. None: cannot be told."""

    world: Optional[int] = None
    local: Optional[int] = None
    one_host: bool = False


def number(ranks: Sequence[Member], commands: Commands) -> Tuple[List[Numbered], Sizes]:
    """Give every rank process of one job its number. `commands` are the arguments of all processes of the job."""
    sizes = _sizes_from_claims(ranks, commands)
    numbered = [_number_one(member) for member in ranks]
    labelled = [one for one in numbered if one.rank is None and _has_labels(one)]
    if labelled:
        by_pid, sizes = _number_by_labels(labelled, commands, sizes)
        numbered = [by_pid.get(one.member.pid, one) for one in numbered]
    return [_complete_local(one, numbered, sizes) for one in numbered], sizes


def missing_ranks(numbered: Sequence[Numbered], sizes: Sizes) -> Tuple[int, ...]:
    """Ranks that should run on this host and do not; empty when it cannot be told which should."""
    present = {one.rank for one in numbered if one.rank is not None}
    if not present or any(one.rank is None for one in numbered):
        return ()
    return tuple(sorted(_expected(numbered, sizes) - present))


def _number_one(member: Member) -> Numbered:
    """What the process itself says, without looking at the others."""
    one = Numbered(member, labels={name: value for name, value in member.groups.items() if "rank" not in name})
    claim = member.claim
    local = member.groups.get("local_rank", claim.local_rank if claim else None)
    if "rank" in member.groups:
        return replace(one, rank=member.groups["rank"], local_rank=local, source="title")
    if claim is not None:
        return replace(one, rank=claim.rank, local_rank=local, source=f"environment {claim.row.rank}")
    if member.numbered:
        return replace(one, local_rank=local)
    found = argument_words.rank_arguments(member.facts.entry.title)
    local = found["local_rank"][0] if "local_rank" in found else None
    if "rank" in found:
        rank, where = found["rank"]
        return replace(one, rank=rank, local_rank=local, source=f"argument {where}")
    labels = {name: value for name, (value, _) in found.items() if "rank" not in name}
    if found:
        return replace(one, local_rank=local, labels=labels, source="unknown: the arguments say only the local rank")
    if member.rule is not None and member.rule.alone:
        return replace(one, rank=0, source="title: the only process of its engine")
    if member.profile is not None and member.profile.threads_are_ranks:
        return replace(one, rank=0, source="one process: its threads are the ranks")
    if isinstance(member.facts.environ, Missing):
        return replace(one, source=f"unknown: {member.facts.environ.reason}")
    return one


def _has_labels(one: Numbered) -> bool:
    """Its title or arguments name parallel groups, or would if there were more than one rank."""
    return bool(one.labels) or (one.member.numbered and not _is_local(one.member))


def _is_local(member: Member) -> bool:
    return member.rule is not None and member.rule.local


def _sizes_from_claims(ranks: Sequence[Member], commands: Commands) -> Sizes:
    claims = [member.claim for member in ranks if member.claim is not None]
    world = _most_common([claim.world_size for claim in claims]) or argument_words.option_value(
        commands, WORLD_SIZE_ARGUMENTS
    )
    local = _most_common([claim.local_size for claim in claims]) or argument_words.option_value(
        commands, LOCAL_SIZE_ARGUMENTS
    )
    hosts = argument_words.option_value(commands, HOST_COUNT_ARGUMENTS)
    one_host = any(claim.one_host for claim in claims) or hosts == 1 or (world is not None and world == local)
    return Sizes(world, local, one_host and (hosts or 1) == 1)


def _most_common(values: Sequence[Optional[int]]) -> Optional[int]:
    known = [value for value in values if value]
    return Counter(known).most_common(1)[0][0] if known else None


def _number_by_labels(
    labelled: Sequence[Numbered], commands: Commands, sizes: Sizes
) -> Tuple[Dict[int, Numbered], Sizes]:
    """Parallel groups in the titles make the rank: outermost group first, as the engine's row orders them."""
    profile = next((one.member.profile for one in labelled if one.member.profile is not None), _NO_ENGINE)
    groups = _group_sizes(labelled, profile, commands)
    order = _order(labelled, profile)
    result = {}
    for one in labelled:
        rank = 0
        for name in order:
            rank = rank * groups[name] + one.labels.get(name, 0)
        result[one.member.pid] = replace(one, rank=rank, source="title" if one.member.numbered else "arguments")
    if len(labelled) > 1 and not any(one.labels for one in labelled):
        why = "unknown: the title has no parallel group yet"
        result = {pid: replace(one, rank=None, source=why) for pid, one in result.items()}
        return result, sizes
    world = 1
    for name in order:
        world *= groups[name]
    several = (argument_words.option_value(commands, HOST_COUNT_ARGUMENTS) or 1) > 1 or any(
        argument_words.option(command, profile.several_hosts) is not None for command in commands
    )
    return result, Sizes(world if world <= _MOST_RANKS else None, sizes.local if several else None, not several)


def _group_sizes(labelled: Sequence[Numbered], profile: EngineProfile, commands: Commands) -> Dict[str, int]:
    """Size of each parallel group: what the front end was told, and at least what the titles show."""
    return {
        name: max(
            argument_words.option_value(commands, profile.sizes.get(name, ())) or 1,
            max(one.labels.get(name, 0) for one in labelled) + 1,
        )
        for name in profile.order
    }


def _order(labelled: Sequence[Numbered], profile: EngineProfile) -> Tuple[str, ...]:
    """The groups that count. One that lies inside another (attention dp inside tp) adds no ranks: without it, all
    processes still differ."""
    order = profile.order
    for name in profile.overlapping:
        rest = tuple(other for other in order if other != name)
        distinct = {tuple(one.labels.get(other, 0) for other in rest) for one in labelled}
        if len(distinct) == len(labelled) and any(one.labels.get(name) is not None for one in labelled):
            order = rest
    return order


def _complete_local(one: Numbered, others: Sequence[Numbered], sizes: Sizes) -> Numbered:
    """Rank from local rank on a single host, and the other way round."""
    one = replace(one, local_rank=_trusted_local(one, others, sizes))
    if one.rank is not None or one.local_rank is None:
        return one
    several = sizes.world is not None and sizes.local is not None and sizes.world > sizes.local
    if several or not _is_local(one.member):
        return one
    return replace(one, rank=one.local_rank, source="title (local rank; no sign of a second host)")


def _trusted_local(one: Numbered, others: Sequence[Numbered], sizes: Sizes) -> Optional[int]:
    """The local rank, unless all ranks claim the same one (torchrun --virtual-local-rank says 0 to everybody)."""
    local = [other.local_rank for other in others]
    if one.local_rank is not None and (len(local) < 2 or len(set(local)) > 1):
        return one.local_rank
    if one.rank is None:
        return one.local_rank
    claim = one.member.claim
    if claim is not None and claim.node is not None and sizes.local:
        base = claim.node * sizes.local
        return one.rank - base if base <= one.rank < base + sizes.local else None
    if sizes.local and len(local) > 1:
        return one.rank % sizes.local
    return one.rank if sizes.one_host and sizes.world else one.local_rank


def _expected(numbered: Sequence[Numbered], sizes: Sizes) -> Set[int]:
    """The ranks of this host: all when it is the only one, else a block per node when the blocks fit together."""
    if sizes.world is None or sizes.world > _MOST_RANKS:
        return _up_to_highest(numbered)
    if sizes.one_host or sizes.local == sizes.world:
        return set(range(sizes.world))
    if not sizes.local:
        return set()
    first = {one.rank - one.local_rank for one in numbered if one.rank is not None and one.local_rank is not None}
    blocks = [rank for start in first for rank in range(start, start + sizes.local)]
    fits = len(set(blocks)) == len(blocks) and all(0 <= rank < sizes.world for rank in blocks)
    return set(blocks) if fits else set()


def _up_to_highest(numbered: Sequence[Numbered]) -> Set[int]:
    """Without a size, titles with local ranks still show a gap."""
    local = [one.local_rank for one in numbered if _is_local(one.member) and one.rank == one.local_rank]
    highest = max((rank for rank in local if rank is not None), default=-1)
    return set(range(min(highest, _MOST_RANKS) + 1))
