"""Copies in, stacks out: a batch gdb unwinds and names what was copied of running ranks or of core files."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.stop import ProcessCopy
from gdbext.frontend import gdbrun
from gdbext.frontend.request import Dump, ranks_of
from gdbext.model.errors import GdbextError
from gdbext.model.frame_table import unpack
from gdbext.model.stack import ThreadStack


class Unwound(NamedTuple):
    """The stacks of one copy. Without any, `problems` says why."""

    stacks: Tuple[ThreadStack, ...] = ()
    problems: Tuple[str, ...] = ()
    files: Tuple[str, ...] = ()  # what is wrong with its object files


class Result(NamedTuple):
    """One entry for each copy, in their order."""

    ranks: Tuple[Unwound, ...]
    problems: Tuple[str, ...]  # what is wrong with all of them
    failure: Optional[GdbextError] = None  # why gdb gave no result at all


def unwind(
    copies: Sequence[ProcessCopy],
    gdb: str,
    folder: Path,
    frames: int,
    deadline: float,
    say: Callable[[str], None],
    dumps: Sequence[Dump] = (),
) -> Result:
    """Let `gdb` work for at most `deadline` seconds, with its files in `folder`; at most `frames` of a thread.

    Raises `GdbextError` when there is no room for the files. A gdb that fails is `failure` of the result.
    """
    rows, files = ranks_of(copies, folder, dumps)
    budget = {"seconds": deadline / max(1, len(copies)), "frames": frames}
    found: List[Unwound] = [Unwound(files=tuple(texts)) for texts in files]
    try:
        record = gdbrun.run_batch(gdb, {"schema": 1, "budget": budget, "ranks": rows}, folder, deadline, say)
    except GdbextError as error:
        return Result(tuple(found), (), error)
    for entry in record["ranks"]:
        stacks = unpack(record["frames"], entry["threads"])
        found[entry["index"]] = found[entry["index"]]._replace(stacks=stacks, problems=tuple(entry["problems"]))
    return Result(tuple(found), tuple(map(str, record.get("problems", []))))
