"""Frame rows that many engines have alike: calls that name a collective, and Python functions that wait."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.frame_precedence import LOCK, PYTHON
from gdbext.knowledge.row_kinds import FrameRule

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
            home + f"({names})",
            source,
            rank=LOCK,
            collective=collective,
            captures=captures,
        )
        for names, collective in COLLECTIVE_NAMES
    )


def python_wait(
    id: str, kind: str, function: str, file: str, source: str, rank: int = PYTHON, idle: bool = False
) -> FrameRule:
    """A Python function of an engine that waits."""
    return FrameRule(id, kind, rf"({function})$", source, file=file, language="python", rank=rank, idle=idle)
