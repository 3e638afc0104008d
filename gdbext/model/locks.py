"""Who waits for which lock, and who holds it; what two processes have between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing

KINDS = {
    "mutex": "a mutex",
    "rwlock": "a reader-writer lock",
    "condvar": "a condition variable",
    "semaphore": "a semaphore",
    "once": "a one-time initialiser",
    "join": "the end of a thread",
    "barrier": "a barrier",
    "gil": "Python's GIL",
    "malloc": "a lock of malloc",
    "loader": "the dynamic loader's lock",
    "driver": "a CUDA driver lock",
    "futex": "something that no frame names",
}
"""Every kind of wait for another thread, as a person would name what is waited for."""


@dataclass(frozen=True)
class LockWait:
    """A thread that the kernel holds in a futex call, as one stop saw it. Ids are LWPs."""

    thread: int  # 0 where the source, a text, does not tell it
    kind: str  # a key of `KINDS`
    address: int  # of the lock; of the word it sleeps on where the lock's own address cannot be told
    owner: Maybe[int]  # the thread that must act before it goes on: the holder, or the one being joined
    owner_process: Optional[int] = None  # pid, where the owner is a thread of another process
    gone: bool = False  # nobody will ever let it go: its owner is no thread of this process, or the kernel refused it
    timed: bool = False  # gives up by itself some time
    shared: bool = False  # lies in memory that other processes use as well
    place: Optional[str] = None  # file whose memory it lies in
    name: str = ""  # of the variable that it is, `serve::cache`
    detail: str = ""  # "recursive, taken 2 times", "held by 3 readers", ...
    still: Optional[bool] = None  # a second look found the same wait and the same owner; None when there was none
    readers: bool = False  # they hold it, whoever they are

    @property
    def moving(self) -> bool:
        """It changed hands at the moment of the look: nobody had it."""
        return isinstance(self.owner, Missing) and self.owner.code is Code.MOVING


UNOPENED = "a named pipe"
"""What stands for the file where a thread opens a named pipe to write, and nobody has opened it to read."""

LISTENING = ", listening"
"""How the name of a file ends where an event loop waits for whoever connects, and for nothing else from outside."""

NOT_ACCEPTED = ", not accepted yet"
"""How the name of a connection ends that its server has not taken."""

UNASKED = "an io_uring"
"""What stands for it where a thread waits for completions, and nobody has ever submitted a request."""

UNSET = "a timer that is not set"
"""What stands for it where a thread reads a timerfd that will not expire before somebody sets it."""


NOTHING = "no file"
"""What stands for it where a thread waits for events of files, and there is none that it watches."""


@dataclass(frozen=True)
class Peer:
    """A file that a thread waits for, and who is at its other end."""

    thread: int  # LWP
    file: str  # "pipe:[4711]", "tcp 127.0.0.1:4000 - 127.0.0.1:29500", ...
    processes: Maybe[Tuple[int, ...]]  # pids that have the other end open; empty: nobody has
    states: Tuple[str, ...] = ()  # state letter of each of them
    names: Tuple[str, ...] = ()  # comm of each of them
    lock: bool = False  # it waits for a lock on the file, and these processes hold that
    unread_by: Tuple[int, ...] = ()  # those of them that wait for events, and not for this file's
    unowed: bool = False  # it reads from a connection on which nothing that it has sent waits for an answer
    back: str = ""  # the same connection as the other end's `file` has it
    then: Tuple[Peer, ...] = ()  # what the only thread of the only one of these processes waits for in its turn

    @property
    def children(self) -> Tuple[int, ...]:
        """The processes for the end of one of which it waits; none where it waits for something else."""
        pids = () if isinstance(self.processes, Missing) else self.processes
        return pids if pids and self.file == file_of_children(pids) else ()


def file_of_children(pids: Sequence[int]) -> str:
    """What stands for the file where a thread waits for the end of a process, or of whichever ends first of several."""
    return f"pid {pids[0]}" if len(pids) == 1 else f"the first of pids {', '.join(map(str, pids))} to end"


@dataclass(frozen=True)
class LockRow:
    """One wait in words: who, for what, and who would have to act."""

    process: int  # index
    label: str  # "rank 3"
    thread: str  # as the source prints it
    name: str
    wait: LockWait
    where: str  # the call that waits
    owner: str  # "thread 31 (loader)", "thread 31 of rank 2"; "" when unknown
    owner_does: str  # what that one waits for or is in; else why nobody is named
    circle: Optional[int] = None  # number of the circle it belongs to, from 0


@dataclass(frozen=True)
class PeerRow:
    """A wait for another process in words."""

    process: int
    label: str
    thread: str
    file: str
    other_end: str


@dataclass(frozen=True)
class LockReport:
    """All waits of a job for locks and for other processes."""

    rows: Tuple[LockRow, ...]  # those that have an owner, or should have one; circles first
    stories: Tuple[str, ...]  # each circle, each lock that nobody can release, and the longest chains
    peers: Tuple[PeerRow, ...] = ()
    ownerless: Tuple[Tuple[str, int], ...] = ()  # kinds without owners (condition variables, ...), number of threads
    notes: Tuple[str, ...] = ()
    suspected: bool = False  # frames alone, without memory, make a circle likely

    @property
    def finding(self) -> bool:
        """Whether there is a circle or frames suggest one, or a lock that nobody can release any more."""
        return self.suspected or any(row.circle is not None or row.wait.gone for row in self.rows)
