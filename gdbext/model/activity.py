"""What a process did between the two copies of a look, by the kernel's counters: tells slow from stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Child:
    """A process below the rank that used the processor. `cpu` is a fraction of one core."""

    name: str
    pid: int
    cpu: float


@dataclass(frozen=True)
class Ended:
    """A child that has ended, and whose parent has not asked for its exit status."""

    name: str
    pid: int
    signal: int  # that killed it; 0: none did
    status: int = 0  # with which it ended by itself

    @property
    def failed(self) -> bool:
        return bool(self.signal or self.status)


@dataclass(frozen=True)
class Activity:
    """Differences over `seconds`; None where the kernel does not say."""

    seconds: float
    major_faults: Optional[int] = None  # pages that had to come from a disk or from swap
    read_bytes: Optional[int] = None  # what read calls brought, from a disk or from memory
    swapped_bytes: Optional[int] = None  # how much of it is swapped out now
    children: Tuple[Child, ...] = ()  # the busiest first; other ranks of the job are not among them
    written_bytes: Optional[int] = None  # what write calls took, to a disk or to memory
    own_bytes: Optional[int] = None  # what its main thread alone read or wrote, the greater of the two
    napping: Optional[int] = None  # how many processes below it are in a sleep of a length that they chose
    ended: Tuple[Ended, ...] = ()  # its own children alone
    resting: int = 0  # how many processes below it that are no ranks did not use the processor
    replaced: int = 0  # how many of its own children are new, where none of those that it had before is left

    @property
    def child_lives(self) -> bool:
        """Whether there is a process below it that is no rank and has not ended."""
        return bool(self.children or self.resting)

    @property
    def failed(self) -> Tuple[Ended, ...]:
        """The children that a signal ended, or that ended with another status than 0."""
        return tuple(one for one in self.ended if one.failed)

    @property
    def killed(self) -> Tuple[Ended, ...]:
        """The children that a signal ended."""
        return tuple(one for one in self.ended if one.signal)
