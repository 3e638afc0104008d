"""All that one page shows of a look: the answer, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.job import JobSnapshot
from gdbext.model.locks import LockReport
from gdbext.model.look_origin import Origin
from gdbext.model.stack import Frame
from gdbext.model.verdict import Diagnosis, Wait


@dataclass(frozen=True)
class Sample:
    """What the processes of a look were in at an earlier one."""

    taken_at: Optional[float]
    waits: Tuple[Optional[Wait], ...]  # by index in the look of the page; None of one that was not there
    calls: Tuple[Optional[Frame], ...]  # the frames that decided so


@dataclass(frozen=True)
class AskedBefore:
    """A command of this gdb about tensors or streams, and what it answered."""

    command: str
    lines: Tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """`subject` is the command that was asked: its part of the page comes first."""

    subject: str
    snapshot: JobSnapshot
    diagnosis: Optional[Diagnosis] = None  # with its tree; None where no stack was read
    locks: Optional[LockReport] = None
    communicators: Optional[CommunicatorTable] = None
    origin: Optional[Origin] = None  # of a look that was read from a file
    samples: Tuple[Sample, ...] = ()  # earlier looks, oldest first, and this one; () where there is only this one
    releases: Tuple[str, ...] = ()  # `torch 2.13.0`, `libnccl 2.28.9 (rank 3)`
    asked: Tuple[AskedBefore, ...] = ()


@dataclass(frozen=True)
class WithPage:
    """An answer, and the page that shall be written of it."""

    answer: object
    page: Page
