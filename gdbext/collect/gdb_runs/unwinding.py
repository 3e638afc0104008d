"""Copies in, stacks out: a batch gdb unwinds and names what was copied of running ranks or of core files."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.collect.gdb_runs import batch_runs
from gdbext.collect.gdb_runs.request import Dump, ranks_of
from gdbext.collect.gdbs_side_by_side import gdbs_for, most_gdbs
from gdbext.model.codes import StackEnd
from gdbext.model.errors import GdbextError
from gdbext.model.snapshot_files.frame_table import frames_of, stacks_of
from gdbext.model.stack import ThreadStack
from gdbext.safe_open.kept_open_files import Shelf

FEW = 16  # ranks of which each is a line of progress
_EVERY = 1.0  # seconds between two lines when there are more
_SILENT_SECONDS = 5.0  # seconds without a line
_READS = re.compile(r"reading (\d+) (.+)")  # which copy's file (inside_gdb/stacks/read_copies.py)
_LEAST = 1.0  # second that a gdb gets

Row = Dict[str, Any]
"""Of a request or of a record (protocol of inside_gdb/stacks/read_copies.py)."""


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
    begun: batch_runs.Begun = (),
    meanwhile: Callable[[], object] = lambda: None,
    names: Sequence[str] = (),
) -> Result:
    """Find symbols and let `gdb` work for at most `deadline` seconds, half of them for the symbols, with files in
    `folder`; at most `frames` of a thread.

    `jobs`: so many gdbs side by side; 0: as many as pay. `begun`: those that wait for work in `folder` already.
    `meanwhile` is called once they all work; `names` are what people call the copies. Raises `GdbextError` when there
    is no room for the files. When no gdb gives a result, `failure` of ours says why; what one of several failed in is a
    problem of its copies.
    """
    started = time.monotonic()
    shelf = Shelf()  # what gdb reads must stay open until it has ended
    size = sum(len(block.data) for copy in copies for block in copy.blocks)
    with contextlib.ExitStack() as stack:
        begun = begun or stack.enter_context(batch_runs.begin(gdb, most_gdbs(len(copies), size, jobs), folder))
        early = functools.partial(batch_runs.read, begun)
        rows, files = ranks_of(copies, folder, shelf, dumps, say, started + deadline / 2, early)
        deadline = max(deadline / 2, round(started + deadline - time.monotonic(), 1))
        found: List[Unwound] = [Unwound(files=tuple(texts)) for texts in files]
        count = gdbs_for(rows, size, jobs)
        if count > 1:
            say(f"{count} gdbs side by side")
        with _Count(len(copies), deadline, say, names) as progress:
            work = _Work(gdb, folder, found, frames, time.monotonic() + deadline, progress.said)
            work.do([rows[number::count] for number in range(count)], begun, meanwhile)
    if not work.done:
        return Result(tuple(found), (), work.failure)
    for number, one in work.lost.items():
        found[number] = found[number]._replace(problems=(f"no native frames: {one}",))
    for number, copy in enumerate(copies):
        if copy.pause_ms is not None:
            found[number] = _complete(found[number], copy)
    return Result(tuple(found), tuple(work.problems))


class _Work:
    """Lets gdbs read copies. One whose files end a gdb, or keep it busy, is left out: the others get a new one."""

    def __init__(
        self, gdb: str, folder: Path, found: List[Unwound], frames: int, until: float, said: Callable[[int, str], None]
    ) -> None:
        self._gdb, self._folder, self._found, self._frames = gdb, folder, found, frames
        self._until, self._said = until, said
        self.done: Set[int] = set()
        self.lost: Dict[int, GdbextError] = {}
        self.failure: Optional[GdbextError] = None
        self.problems: Dict[str, None] = {}  # what is wrong with all

    def do(self, shares: Sequence[Sequence[Row]], begun: batch_runs.Begun, meanwhile: Callable[[], object]) -> None:
        """Each of `shares` is for a gdb of its own, as long as none fails."""
        while shares:
            early = bool(begun)
            left = max(_LEAST, round(self._until - time.monotonic(), 1))
            budget = {"seconds": left / max(1, len(shares[0])), "frames": self._frames}
            requests = [{"schema": 1, "budget": budget, "ranks": list(share)} for share in shares]
            records = batch_runs.run_batches(
                self._gdb, requests, self._folder, left, self._said, "batch", begun, meanwhile
            )
            rests = [self._take(share, record, early) for share, record in zip(shares, records)]
            shares, begun, meanwhile = [rest for rest in rests if rest], (), lambda: None

    def _take(self, share: Sequence[Row], record: Union[Row, GdbextError], early: bool) -> Sequence[Row]:
        """Keep what a gdb brought; the rows that another one may still bring. `early`: it had read libraries before."""
        in_time = time.monotonic() < self._until - _LEAST
        if isinstance(record, GdbextError):
            return share if early and in_time else self._lose(share, record)
        self.problems.update(dict.fromkeys(map(str, record.get("problems", []))))
        try:
            shared = frames_of(record["frames"])
            read = [(entry, stacks_of(shared, entry["threads"])) for entry in record["ranks"]]
        except ValueError as error:  # names and numbers of a hostile program are in it
            return self._lose(share, GdbextError(f"gdb returned invalid frames: {error}"))
        for entry, stacks in read:
            number = entry["index"]
            self._found[number] = self._found[number]._replace(stacks=stacks, problems=tuple(entry["problems"]))
            self.done.add(number)
        if record.get("complete", True):
            return ()
        why: GdbextError = record["failure"]
        rest = [row for row in share if row["index"] not in self.done]
        others = [row for row in rest if row["index"] != record.get("at")]
        if not in_time or len(others) == len(rest):
            return self._lose(rest, why)
        self._lose([row for row in rest if row not in others], why)
        return others

    def _lose(self, rows: Sequence[Row], why: GdbextError) -> Sequence[Row]:
        self.lost.update(dict.fromkeys((row["index"] for row in rows), why))
        self.failure = why if rows else self.failure
        return ()


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
            " --max-pause or the space for the copy was used up"
        )
    stacks = [replace(one, truncated=short.get(one.lwp or 0) or one.truncated) for one in found.stacks]
    stacks += [unread_stack(one) for one in unread if found.stacks]
    return found._replace(stacks=tuple(stacks), cut=tuple(cut))


def unread_stack(thread: ThreadCopy) -> ThreadStack:
    """Of a thread that could not be copied."""
    end = StackEnd.RAN if thread.ran else StackEnd.OTHER
    return ThreadStack(id=str(thread.tid), frames=(), lwp=thread.tid, truncated=thread.problem, end=end)


class _Count:
    """Makes one progress of those of several gdbs, and says that they are at work while they say nothing."""

    def __init__(self, total: int, deadline: float, say: Callable[[str], None], names: Sequence[str] = ()) -> None:
        self._total, self._deadline, self._say, self._names = total, deadline, say, names
        self._reads = "gdb is working"
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
        """A gdb begins with a copy, some more than once, where another gdb has ended before; or with a file of it."""
        reads = _READS.fullmatch(line)
        if reads:
            at = int(reads[1])
            name = self._names[at] if at < len(self._names) else f"copy {at + 1} of {self._total}"
            self._reads = f"{name}: reading {os.path.basename(reads[2])}"
            return
        self._begun = min(self._begun + 1, self._total)
        now = time.monotonic()
        if self._total <= FEW or now - self._said_at >= _EVERY or self._begun == self._total:
            self._said_at = now
            self._say(f"stacks of {self._begun}/{self._total}")

    def _while_silent(self) -> None:
        while not self._ended.wait(_SILENT_SECONDS):
            self.silent_for(_SILENT_SECONDS)

    def silent_for(self, seconds: float) -> None:
        """Tell what gdb does, when it has said nothing for so long."""
        now = time.monotonic()
        if now - self._said_at >= seconds:
            self._say(f"{self._reads}; {now - self._since:.0f} s of {self._deadline:g}")
