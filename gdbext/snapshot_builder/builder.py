"""The one way from what is read of a process to its snapshot: the same questions in the same order, whoever reads it.

A running rank (its copy), a rank that gdb holds, a core file, communicators alone and a pasted text differ in how they
answer, not in what a snapshot is.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.stacks.engine import engine_of
from gdbext.analysis.stacks.interleave import interleave_all
from gdbext.knowledge.runtimes.telling_libraries import TELLING
from gdbext.model.activity import Activity
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import Given, ReadState
from gdbext.model.communicator import Searched
from gdbext.model.job import RankProcess, RankSnapshot, Refusal
from gdbext.model.locks import LockWait, Peer
from gdbext.model.python import PythonStacks
from gdbext.model.stack import LoopInText, ThreadStack

Stacks = Tuple[ThreadStack, ...]


class ProcessReading:
    """What one process tells. Each question is asked once, in the order in which they stand here; what a source cannot
    know keeps the answer that is given here. `problems` is asked last: answering may bring some."""

    source: str = Given.LIVE  # as `RankSnapshot.source`

    def __init__(self, process: RankProcess) -> None:
        self.process = process

    def native_stacks(self) -> Stacks:
        """Threads with their native frames, and with what the kernel says of them."""
        return ()

    def python_stacks(self, stacks: Stacks) -> Optional[PythonStacks]:
        """Its Python frames, by thread id; None where there are none to be had."""
        return None

    def joined(self, stacks: Stacks, python: Optional[PythonStacks]) -> Stacks:
        """The native stacks with the Python frames in their places."""
        return interleave_all(stacks, python.threads if python else {})

    def communicators(self, stacks: Stacks) -> Searched:
        """NCCL's communicators in its memory, and what kept them from being read."""
        return Searched()

    def locks(self, stacks: Stacks) -> Tuple[LockWait, ...]:
        """Threads that wait for other threads."""
        return ()

    def peers(self, stacks: Stacks) -> Tuple[Peer, ...]:
        """What its threads wait for from other processes."""
        return ()

    def handlers(self) -> Optional[Tuple[int, ...]]:
        """Signals that it has handlers for; None: not known."""
        return None

    def clients(self) -> Tuple[WaitingClient, ...]:
        """Who has asked it for something and has got no answer."""
        return ()

    def held_back(self) -> Tuple[int, ...]:
        """Signals that have come for it, and that all its threads block."""
        return ()

    def loops_in_text(self, stacks: Stacks, peers: Sequence[Peer]) -> Tuple[LoopInText, ...]:
        """What the text of its files of Python says of the loops that its threads are in."""
        return ()

    def host(self) -> Optional[str]:
        return self.process.host

    def title(self) -> Optional[str]:
        return self.process.title

    def engine(self, stacks: Stacks) -> Optional[str]:
        """The engine that it runs, by its stacks where nothing else tells."""
        return engine_of(stacks, self.process.engine)

    def environment(self) -> Mapping[str, str]:
        """Known tuning and rank variables only."""
        return {}

    def mapped_files(self) -> Iterable[str]:
        """Paths of the object files in its memory."""
        return ()

    def activity(self) -> Optional[Activity]:
        """What the kernel counted between the two copies of a look."""
        return None

    def said(self) -> Tuple[str, ...]:
        """Log lines of its own that are evidence."""
        return ()

    def pause_ms(self) -> Optional[float]:
        """How long a thread of it stood still by this look, the longest of all stops."""
        return None

    def alive(self) -> Optional[bool]:
        """Whether it is there now; None when nobody can say."""
        return None

    def state(self, stacks: Stacks) -> ReadState:
        """How much of it was read."""
        return ReadState.OK

    def problems(self) -> Tuple[str, ...]:
        """What could not be read, and why."""
        return ()

    def refusal(self) -> Optional[Refusal]:
        """The first of these problems, where a right or a setting stands in the way."""
        return None


def rank_snapshot(index: int, reading: ProcessReading) -> RankSnapshot:
    """Ask all of it. `index` is its place in `JobSnapshot.processes`."""
    native = reading.native_stacks()
    python = reading.python_stacks(native)
    stacks = reading.joined(native, python)
    communicators = reading.communicators(stacks)
    locks, peers, handlers = reading.locks(stacks), reading.peers(stacks), reading.handlers()
    process = reading.process
    return RankSnapshot(
        index=index,
        threads=stacks,
        pid=process.pid or None,
        rank=process.rank,
        local_rank=process.local_rank,
        world_size=process.world_size,
        host=reading.host(),
        engine=reading.engine(stacks),
        title=reading.title(),
        device=process.device,
        state=reading.state(stacks),
        alive=reading.alive(),
        problems=reading.problems(),
        pause_ms=reading.pause_ms(),
        environment=reading.environment(),
        libraries=tuple(path for path in dict.fromkeys(reading.mapped_files()) if TELLING.search(path)),
        python=python.version if python else None,
        tasks=python.tasks if python else (),
        started=process.start_time,
        said=reading.said(),
        source=reading.source,
        activity=reading.activity(),
        communicators=communicators.found,
        communicator_notes=communicators.notes,
        locks=locks,
        peers=peers,
        clients=reading.clients(),
        handlers=handlers,
        held_back=reading.held_back(),
        loops_in_text=reading.loops_in_text(stacks, peers),
        refusal=reading.refusal(),
        search_cut=communicators.cut,
        labels=process.labels,
        role=process.role,
    )
