"""NCCL communicators as they lie in the memory of the ranks, and one communicator seen from all of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from gdbext.model.missing import Maybe, Missing

UNREAD = Missing("not read")


@dataclass(frozen=True)
class Communicator:
    """One rank's end of a communicator. With a `problem` there is nothing at the address that could be read as one.

    `counts` are the collectives that this rank has launched, by kind. The host counts them when it launches: they say
    nothing of completion, and sends and receives are not among them.
    """

    address: int
    origin: str  # how it was found: "comm of ncclAllReduce", "a pointer on a stack", "scan of the memory"
    layout: Optional[str] = None  # "DWARF of libnccl.so.2", "offsets of NCCL 2.27.3-2.27.7"
    problem: Optional[str] = None
    hash: Maybe[int] = UNREAD  # the same in every rank of the communicator
    rank: Maybe[int] = UNREAD  # in this communicator
    n_ranks: Maybe[int] = UNREAD
    local_rank: Maybe[int] = UNREAD  # among its ranks on this host
    device: Maybe[int] = UNREAD  # CUDA's number in this process
    bus_id: Maybe[str] = UNREAD  # "0000:3b:00.0"
    init_state: Maybe[str] = UNREAD  # "ncclSuccess": it is set up; "ncclInProgress": it is being
    async_error: Maybe[str] = UNREAD  # "ncclSuccess": there is none
    aborted: Maybe[bool] = UNREAD
    destroyed: Maybe[bool] = UNREAD  # its destruction has begun
    revoked: Maybe[bool] = UNREAD
    finalized: Maybe[bool] = UNREAD  # ncclCommFinalize was called
    counts: Maybe[Mapping[str, int]] = UNREAD  # {"all_reduce": 4, ...}
    moved: Optional[bool] = None  # the counts grew between two reads of a running rank; None when it was read once

    @property
    def readable(self) -> bool:
        return self.problem is None and isinstance(self.hash, int)


@dataclass(frozen=True)
class Searched:
    """What a search in one process found, what kept it from more, and whether it came to its limit."""

    found: Tuple[Communicator, ...] = ()
    notes: Tuple[str, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Member:
    """One rank's end, and the process that it lies in."""

    process: int  # index in the snapshot
    communicator: Communicator


@dataclass(frozen=True)
class Uneven:
    """A kind of collective that not all members have launched equally often."""

    kind: str
    counts: Mapping[int, int]  # by rank in the communicator

    @property
    def most(self) -> int:
        return max(self.counts.values())

    @property
    def behind(self) -> Tuple[int, ...]:
        """Ranks of the communicator that have launched fewer than others."""
        return tuple(sorted(rank for rank, count in self.counts.items() if count < self.most))


@dataclass(frozen=True)
class CommunicatorGroup:
    """One communicator with all of its ends that were found, in rank order."""

    hash: int
    n_ranks: int
    members: Tuple[Member, ...]
    unseen: Tuple[int, ...] = ()  # its ranks of which no end was found
    uneven: Tuple[Uneven, ...] = ()
    notes: Tuple[str, ...] = ()  # what a person should know of it
    moving: bool = False  # some member launched more between two reads: counts are of different moments

    @property
    def name(self) -> str:
        return f"{self.hash:#x}"
