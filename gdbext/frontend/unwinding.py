"""Copies in, stacks out: a batch gdb unwinds and names what was copied of running ranks or of core files."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.stop import ProcessCopy
from gdbext.frontend import gdbrun
from gdbext.frontend.capacity import gdbs_for, most_gdbs
from gdbext.frontend.request import Dump, ranks_of
from gdbext.model.errors import GdbextError
from gdbext.model.frame_table import frames_of, stacks_of
from gdbext.model.stack import ThreadStack

FEW = 16  # ranks of which each is a line of progress
_EVERY = 1.0  # seconds between two lines when there are more
_PATIENCE = 10.0  # seconds without a line


class Unwound(NamedTuple):
    """The stacks of one copy. Without any, `problems` says why."""

    stacks: Tuple[ThreadStack, ...] = ()
    problems: Tuple[str, ...] = ()
    files: Tuple[str, ...] = ()  # what is wrong with its object files
    cut: Tuple[str, ...] = ()  # what the stop did not bring home


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
    jobs: int = 0,
    begun: gdbrun.Begun = (),
    meanwhile: Callable[[], object] = lambda: None,
) -> Result:
    """Find symbols and let `gdb` work for at most `deadline` seconds, half of them for the symbols, with files in
    `folder`; at most `frames` of a thread.

    `jobs`: so many gdbs side by side; 0: as many as pay. `begun`: those that wait for work in `folder` already.
    `meanwhile` is called once they all work. Raises `GdbextError` when there is no room for the files.
    When no gdb gives a result, `failure` of ours says why; what one of several failed in is a problem of its copies.
    """
    started = time.monotonic()
    size = sum(len(block.data) for copy in copies for block in copy.blocks)
    with contextlib.ExitStack() as stack:
        begun = begun or stack.enter_context(gdbrun.begin(gdb, most_gdbs(len(copies), size, jobs), folder))
        early = functools.partial(gdbrun.read, begun)
        rows, files = ranks_of(copies, folder, dumps, say, started + deadline / 2, early)
        deadline = max(deadline / 2, round(started + deadline - time.monotonic(), 1))
        found: List[Unwound] = [Unwound(files=tuple(texts)) for texts in files]
        count = gdbs_for(rows, size, jobs)
        shares = [rows[number::count] for number in range(count)]
        budget = {"seconds": deadline / max(1, len(shares[0])), "frames": frames}
        requests = [{"schema": 1, "budget": budget, "ranks": share} for share in shares]
        if count > 1:
            say(f"{count} gdbs side by side")
        with _Count(len(copies), deadline, say) as progress:
            records = gdbrun.run_batches(gdb, requests, folder, deadline, progress.said, "batch", begun, meanwhile)
    problems: Dict[str, None] = {}
    failures = [record for record in records if isinstance(record, GdbextError)]
    if len(failures) == count:
        return Result(tuple(found), (), failures[0])
    for share, record in zip(shares, records):
        if isinstance(record, GdbextError):
            for row in share:
                found[row["index"]] = found[row["index"]]._replace(problems=(f"no native frames: {record}",))
            continue
        problems.update(dict.fromkeys(map(str, record.get("problems", []))))
        shared = frames_of(record["frames"])
        for entry in record["ranks"]:
            stacks = stacks_of(shared, entry["threads"])
            found[entry["index"]] = found[entry["index"]]._replace(stacks=stacks, problems=tuple(entry["problems"]))
    for number, copy in enumerate(copies):
        if copy.pause_ms is not None:
            found[number] = _complete(found[number], copy)
    return Result(tuple(found), tuple(problems))


def _complete(found: Unwound, copy: ProcessCopy) -> Unwound:
    """With the threads that the stop was too short for: what gdb never saw must not be missing without a word."""
    unread = [thread for thread in copy.threads if not thread.registers]
    short = {thread.tid: thread.truncated for thread in copy.threads if thread.registers and thread.truncated}
    cut: List[str] = []
    if unread:
        reasons = Counter(str(thread.problem) for thread in unread).most_common(1)
        cut.append(f"{len(unread)} of {len(copy.threads)} threads were not read ({reasons[0][0]})")
    if short:
        cut.append(
            f"the stacks of {len(short)} of {len(copy.threads)} threads were not copied to their outer end:"
            " the time for standing still (--max-pause) or the room for the copy was used up"
        )
    stacks = [replace(one, truncated=short.get(one.lwp or 0) or one.truncated) for one in found.stacks]
    stacks += [ThreadStack(str(one.tid), (), one.tid, truncated=one.problem) for one in unread if found.stacks]
    return found._replace(stacks=tuple(stacks), cut=tuple(cut))


class _Count:
    """Makes one progress of those of several gdbs, and says that they are at work while they say nothing."""

    def __init__(self, total: int, deadline: float, say: Callable[[str], None]) -> None:
        self._total, self._deadline, self._say = total, deadline, say
        self._begun, self._said_at, self._since = 0, time.monotonic(), time.monotonic()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._while_silent, name="gdbext-progress", daemon=True)

    def __enter__(self) -> _Count:
        with contextlib.suppress(RuntimeError):  # no more threads for this user: the work is done in silence
            self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._watch.ident is not None:
            self._watch.join()

    def said(self, number: int, line: str) -> None:
        """A gdb begins with a copy."""
        self._begun += 1
        now = time.monotonic()
        if self._total <= FEW or now - self._said_at >= _EVERY or self._begun == self._total:
            self._said_at = now
            self._say(f"stacks of {self._begun}/{self._total}")

    def _while_silent(self) -> None:
        while not self._ended.wait(_PATIENCE):
            now = time.monotonic()
            if now - self._said_at >= _PATIENCE:
                self._say(f"gdb is at work for {now - self._since:.0f} s, of {self._deadline:g} that it may take")
