"""What the environment of a process claims about its rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Tuple

from gdbext.knowledge.launch.launchers import LOOPBACK, VARIABLES
from gdbext.knowledge.row_kinds import RankVariable
from gdbext.model.text.digits import integer_or_none

_LARGEST = 10_000_000
"""No job has more ranks: a larger number is something else."""


@dataclass(frozen=True)
class Claim:
    """What the variables of one launcher say. `role` is "rank" unless the row excludes the process."""

    row: RankVariable
    rank: int
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    local_size: Optional[int] = None
    node: Optional[int] = None
    one_host: bool = False  # all ranks are on this host
    job: Tuple[Tuple[str, str], ...] = ()  # variables that tell this job from others
    role: str = "rank"

    @property
    def marked(self) -> bool:
        """The launcher left a mark of its own: the numbers are not just inherited from a pod or a batch script."""
        return bool(self.row.needs)


def claims_of(environ: Mapping[str, str], rows: Sequence[RankVariable] = VARIABLES) -> Tuple[Claim, ...]:
    """Every row that the environment satisfies, in order of trust."""
    claims = (_claim(environ, row) for row in rows)
    return tuple(claim for claim in claims if claim is not None)


def _claim(environ: Mapping[str, str], row: RankVariable) -> Optional[Claim]:
    rank = number(environ.get(row.rank))
    if rank is None or any(name not in environ for name in row.needs):
        return None
    nodes = number(environ.get(row.nodes))
    size, local_size = number(environ.get(row.world_size)), number(environ.get(row.local_size))
    job = tuple((name, environ[name]) for name in row.job if environ.get(name))
    # without an address to meet at, or with one of this host only, ranks of other hosts could not join
    unreachable = (bool(row.job) and not job) or any(value in LOOPBACK for _, value in job)
    alone = nodes == 1 or (nodes is None and unreachable) or (size is not None and size == local_size)
    roles = [role for name, pattern, role in row.excludes if re.search(pattern, environ.get(name, ""))]
    return Claim(
        row=row,
        rank=rank,
        local_rank=number(environ.get(row.local_rank)),
        world_size=size,
        local_size=local_size,
        node=number(environ.get(row.node)),
        one_host=alone,
        job=job,
        role=roles[0] if roles else "rank",
    )


def number(text: Optional[str]) -> Optional[int]:
    """A count or rank written in decimal; None for anything else."""
    value = integer_or_none(text)
    return value if value is not None and value <= _LARGEST else None
