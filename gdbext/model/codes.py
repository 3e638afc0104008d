"""The words by which code decides. What people read stands beside them as a text, and no code looks into that."""

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """One of a fixed set of words. It is the text that documents and people get, whatever Python prints it."""

    def __str__(self) -> str:
        return str.__str__(self)

    def __format__(self, form: str) -> str:
        return str.__format__(self, form)


class Code(Word):
    """Why a value is missing (`Missing.code`), where somebody asks; OTHER where nobody does."""

    OTHER = "other"
    GONE = "gone"  # the process or the thread has ended
    DENIED = "denied"  # we have no right to read it
    OVERWRITTEN = "overwritten"  # something else was written over it
    RAN = "ran"  # the thread ran, and nobody was stopped
    NOT_PYTHON = "not python"  # the process has no interpreter
    MOVING = "moving"  # the lock changed hands at the moment of the look
    PARKED = "parked"  # the C library lets the thread sleep for good: nobody can end its wait
    SENDERS = "senders"  # a socket of datagrams without another end: whoever knows its name may send
    NOT_ASKED = "not asked"  # only the driver knows it
    ANYBODY = "anybody"  # a socket that listens: whoever connects is its other end
    CHANGES = "changes"  # it waits for changes of files (inotify(7)): whoever makes one is its other end
    UNREADABLE = "unreadable"  # its memory could not be read
    GIVEN_UP = "given up"  # the driver failed before, and is not asked any more


class StackEnd(Word):
    """Why frames of a thread are missing (`ThreadStack.end`), where more depends on it than that some are."""

    OTHER = "other"  # `ThreadStack.truncated` says it; None there: they are all there
    RAN = "ran"  # it ran, and nobody was stopped
    OUTLINE = "outline"  # nothing but names, states and counters of the process was within reach
    NOT_WALKED = "not walked"  # a limit was reached before its turn
    REGISTERS = "registers"  # outer frames need registers that only a stop shows
    MEMORY = "memory"  # gdb came to an address that cannot be read


class LoopKind(Word):
    """What the text of a thread's Python functions says of the innermost loop that they are in."""

    NONE = "none"  # they are in no loop
    ENDLESS = "endless"  # it has no way out: `while True` without a break
    SLEEPS = "sleeps"  # the same, and it does nothing but sleep


class ReadState(Word):
    """How much of a process was read (`RankSnapshot.state`)."""

    OK = "ok"
    PARTIAL = "partial"  # something is missing, see its problems
    LOST = "lost"


class Given(Word):
    """What a look read: how `RankSnapshot.source` begins."""

    LIVE = "live"
    HELD = "held"  # by the gdb that looked
    CORE = "core"
    TEXT = "text"
    UNASKED = "unasked"  # nothing: it may be on a host that did not answer
    LOG = "log"  # a text without any stack


KERNEL_TEXT = "text:kernel"
"""`RankSnapshot.source` of stacks in the kernel: its log, /proc/PID/stack. Each is of a task, which is a thread."""


class RankState(Word):
    """What became of a rank of this gdb (`AttachedRank.state`)."""

    UNKNOWN = ""
    STOPPED = "stopped"
    RUNNING = "running"
    KILLED = "killed"
    CORE = "core file"
    NOT_ATTACHED = "not attached"
    NOT_OPENED = "not opened"
    CLOSED = "closed"
    ENDED = "ended"
    RELEASED = "released"
    STILL_STOPPED = "released, stopped by SIGSTOP"  # as it was before, or by a signal that came meanwhile
