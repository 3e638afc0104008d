"""Frame rows that many engines have alike: calls that name a collective, and Python functions that wait."""

from __future__ import annotations

from functools import partial
from typing import Optional, Tuple

from gdbext.knowledge.frame_precedence import LEAF, LOCK, PYTHON, STEP
from gdbext.knowledge.row_kinds import FrameRule

EXCHANGES_ID = r"(?!\w*(?:Unique\w*|Master|Root)_?I[Dd]s?)"
"""Stands before a collective's name: a function that passes a communicator's id through a store is none."""

COLLECTIVE_NAMES = (
    (r"\w*[Aa]ll_?[Rr]educe\w*", "all_reduce"),
    (r"\w*[Aa]ll_?[Gg]ather\w*", "all_gather"),
    (r"\w*[Bb]road_?[Cc]ast\w*", "broadcast"),
    (r"\w*[Rr]educe_?[Ss]catter\w*", "reduce_scatter"),
    (r"\w*[Aa]ll_?2?[Tt]o_?[Aa]ll\w*", "all_to_all"),
)


def collectives(id: str, home: str, source: str, captures: Tuple[str, ...] = ()) -> Tuple[FrameRule, ...]:
    """An engine's functions that are called like a collective; `home` stands before the collective's name."""
    return tuple(
        FrameRule(
            f"{id}-{collective}",
            "nccl-group-launch",
            home + f"{EXCHANGES_ID}({names})",
            source,
            rank=LOCK,
            collective=collective,
            captures=captures,
        )
        for names, collective in COLLECTIVE_NAMES
    )


step = partial(FrameRule, rank=STEP)
"""A frame of what an engine does in each of its steps."""


def lock(id: str, function: str, source: str, rank: int = LOCK, captures: Tuple[str, ...] = ()) -> FrameRule:
    """A function that takes a lock."""
    return FrameRule(id, "mutex", function, source, rank=rank, captures=captures)


def message(id: str, function: str, source: str, rank: int = STEP) -> FrameRule:
    """A function that waits for a message of another process, or makes progress until one comes."""
    return FrameRule(id, "mpi", function, source, rank=rank)


def python_wait(
    id: str,
    kind: str,
    function: str,
    file: str,
    source: str,
    rank: int = PYTHON,
    idle: bool = False,
    by: str = "",
    leaf: bool = False,
    collective: Optional[str] = None,
    from_line: int = 0,
    helper: Optional[str] = None,
    captures: Tuple[str, ...] = (),
    calls: str = "",
) -> FrameRule:
    """A Python function that waits. `by`: only where a function of this name calls it; `leaf`: only while it calls no
    other Python function, where the library below is C; `calls`: only while it calls none of this name."""
    return FrameRule(
        id,
        kind,
        rf"({function})$",
        source,
        file=file,
        language="python",
        rank=rank,
        idle=idle,
        by=rf"({by})$" if by else "",
        leaf=leaf,
        collective=collective,
        from_line=from_line,
        helper=helper,
        captures=captures,
        calls=rf"(\w+\.)*({calls})$" if calls else "",
    )


python_in_c = partial(python_wait, leaf=True)


def python_thread(
    id: str,
    function: str,
    file: str,
    source: str,
    helper: str,
    leaf: bool = True,
    by: str = "",
    under: str = "",
    calls: str = "",
) -> FrameRule:
    """The own function of a thread that serves others. `leaf`: only while it waits for work or sleeps, for a function
    that also runs what it is given; `under`: only where a frame of this name stands further out; `calls`: not where one
    stands further in."""
    return FrameRule(
        id,
        "condvar-idle",
        rf"({function})$",
        source,
        file=file,
        language="python",
        rank=LEAF,
        helper=helper,
        leaf=leaf,
        by=rf"({by})$" if by else "",
        under=under,
        calls=rf"(\w+\.)?({calls})$" if calls else "",
    )


QUEUE_FILES = r"(^|/)queue\.py$|(multiprocess(ing)?|billiard)/(queues|connection)\.py$|(^|/)zmq/|(^|/)threading\.py$"
"""Where the standard library and pyzmq wait for a message."""
QUEUE_WAITS = r"get|recv\w*|poll|wait(_for)?|select"
"""Their functions, as a loop that waits for work calls them."""
