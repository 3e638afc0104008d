"""Copies what the stacks of a process are made of and stops nothing: only threads that are blocked can be read so.

A thread that is blocked neither moves nor changes its stack. So its place is read, its stack twice, and its place again
(capture/without_stop/sleeping_threads.py): equal marks prove that it did not run in between. One that did is read
again, a few times; one that runs is told as running. No call of ptrace(2) is made, nothing waits for us, nothing has to
be released."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from typing import Any, Collection, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.capture.copies.copied_process import Budget, Hook, ProcessCopy, ThreadCopy, read_proc, vdso_of
from gdbext.capture.copies.stack_bytes import DEEP, FIRST, Registers, StackCopier
from gdbext.capture.copies.syscall_line import GONE, REFUSED
from gdbext.capture.copies.thread_status import thread_state, why_refused
from gdbext.capture.machine import Architecture, known_machine
from gdbext.capture.memory.maps import MemoryMap, parse_maps, read_maps_text
from gdbext.capture.memory.overlapping_pieces import Pieces, same_frames
from gdbext.capture.memory.process_memory import Block, CopyBuffer, ProcessMemory, merge
from gdbext.capture.proc_texts import threads_of
from gdbext.capture.without_stop.sleeping_threads import Mark, processor_time, registers_of, sleep_mark, thread_pointers
from gdbext.model.codes import Code
from gdbext.model.missing import Missing
from gdbext.model.stack import UNREAD

TRIES = 6
"""How often a thread that runs is looked at."""
_MOST_TRIES = 24
"""One that uses little processor time, but was never caught asleep: on a busy machine it waits for its processor."""
_NAP, _LONGEST_NAP = 0.001, 0.016  # seconds before the second try, doubled before each further one: 31 ms, then 0.3 s
_BUSY = 0.3  # fraction of a processor from which a thread runs, however often it is looked at
_TOGETHER = 64  # threads whose stacks are copied between one look at their marks and the next
_ROOM = 32 << 10  # bytes of the copy buffer that are at hand at once
_RAN = f"it ran while it was read, {{}} times: {UNREAD}"
_NO_RIGHT = (
    "{} cannot be read without a stop either: /proc/PID/task/TID/syscall and process_vm_readv need the right to trace "
    "it; it is {}"
)


class Moment(NamedTuple):
    """What the `during` hook returned, and the threads that did not run from the copy of their stack until after it."""

    found: Any
    tids: FrozenSet[int]


@dataclass(frozen=True)
class OutsideCopy:
    """One process. Threads in `copy` of which nothing was read have no registers and say why in `problem`."""

    copy: ProcessCopy
    moments: Tuple[Moment, ...] = ()


def copy_outside(
    pid: int,
    budget: Optional[Budget] = None,
    during: Optional[Hook] = None,
    tids: Optional[Collection[int]] = None,
) -> OutsideCopy:
    """Copy the blocked threads of a process, or those of `tids`, while it runs on.

    `during(pid)` reads what belongs to the same moment. Never raises because of the target: one that is gone or not
    ours gives a copy whose state is "lost" and whose problems say why. Raises `GdbextError` on an unknown machine.
    """
    return _Look(pid, known_machine(), budget or Budget(), during, tids).take()


class _Reading(NamedTuple):
    """One thread that was blocked before and after its stack was copied."""

    mark: Mark
    blocks: Tuple[Block, ...]
    truncated: Optional[str]
    problem: Optional[str]


class _Look:
    """One look at one process."""

    def __init__(
        self, pid: int, row: Architecture, budget: Budget, during: Optional[Hook], tids: Optional[Collection[int]]
    ) -> None:
        self._pid, self._row, self._budget, self._during, self._wanted = pid, row, budget, during, tids
        self._memory = ProcessMemory(pid)
        self._maps = MemoryMap(())
        self._main_top = 0
        self._contained = _innermost(pid, pid) != pid
        self._pointers: Dict[int, int] = {}
        self._deadline = time.monotonic() + budget.seconds
        self._readings: Dict[int, _Reading] = {}
        self._done: Set[int] = set()  # threads with a reading that did not run until `during` was done
        self._reasons: Dict[int, Missing] = {}  # of the last try, of threads without a reading
        self._awake: Dict[int, Tuple[float, Optional[int]]] = {}  # since when, and the processor time until then
        self._given_up: Set[int] = set()
        self._ran: Dict[int, int] = {}  # how often a thread ran while it was read
        self._moments: List[Moment] = []
        self._problems: List[str] = []

    def take(self) -> OutsideCopy:
        """All tries, and what they brought."""
        try:
            self._maps = parse_maps(read_maps_text(self._pid))
            auxv = read_proc(self._pid, "auxv")
            exe = os.readlink(f"/proc/{self._pid}/exe").replace(" (deleted)", "")
            stat = read_proc(self._pid, "stat").rpartition(b")")[2].split()
        except OSError as error:
            return self._nothing(isinstance(error, PermissionError))
        self._main_top = int(stat[25]) + 16  # above it lie arguments and environment: no frames, but secrets
        for number in range(_MOST_TRIES):
            if not self._try(number) or time.monotonic() >= self._deadline:
                break
            time.sleep(min(_NAP * (1 << number), _LONGEST_NAP))
        if not self._readings and not any(reason.code is Code.RAN for reason in self._reasons.values()):
            return self._nothing(REFUSED in self._reasons.values())
        if not self._readings:
            self._problems.append(f"every thread of {self._pid} ran: {UNREAD}; run again without --no-stop")
        try:
            if read_proc(self._pid, "auxv") != auxv:
                self._problems.append("it replaced its program (exec) while it was read: stacks and files may not fit")
            else:
                self._maps = parse_maps(read_maps_text(self._pid))  # libraries may have come meanwhile
        except OSError:
            self._problems.append(f"pid {self._pid} ended while it was read")
        stacks = [block for each in self._readings.values() for block in each.blocks]
        copy = ProcessCopy(
            pid=self._pid,
            threads=self._threads(),
            blocks=tuple(merge([*vdso_of(self._pid, self._maps), *stacks])),
            maps=self._maps,
            auxv=auxv,
            exe=exe,
            architecture=self._row,
            was_stopped=stat[0] == b"T",
            problems=tuple(self._problems),
        )
        return OutsideCopy(copy, tuple(self._moments))

    # --- reading ---

    def _try(self, number: int) -> bool:
        """Read the threads that are not read yet, or ran before all was; whether there may be more to get."""
        pending = [tid for tid in self._tids() if tid not in self._done and tid not in self._given_up]
        fresh: Dict[int, Mark] = {}
        size = max(1, _TOGETHER >> 2 * number)
        for start in range(0, len(pending), size):
            fresh.update(self._read_group(pending[start : start + size]))
            if time.monotonic() >= self._deadline:
                break
        if fresh:
            found = self._call(self._during) if self._during is not None else None
            same = frozenset(tid for tid, seen in fresh.items() if sleep_mark(self._pid, tid) == seen)
            self._done |= same if found is not None else fresh.keys()
            if found is not None:
                self._moments.append(Moment(found, same))
        left = [tid for tid in pending if tid not in self._done and self._reasons.get(tid) not in (REFUSED, GONE)]
        for tid in left:
            self._awake.setdefault(tid, (time.monotonic(), processor_time(self._pid, tid)))
        if number + 1 >= TRIES:
            self._given_up.update(tid for tid in left if self._runs(tid))
        return any(tid not in self._given_up for tid in left)

    def _runs(self, tid: int) -> bool:
        """Whether a thread that was never caught asleep has used the processor since, or nobody can tell."""
        since, before = self._awake[tid]
        now = processor_time(self._pid, tid)
        if before is None or now is None:
            return True
        return (now - before) / 1e9 >= _BUSY * (time.monotonic() - since)

    def _tids(self) -> List[int]:
        """The threads that there are now, at most as many as the budget allows."""
        found = [tid for tid in threads_of(self._pid) if self._wanted is None or tid in self._wanted]
        left_out = len(found) - self._budget.threads
        note = f"threads beyond the limit of {self._budget.threads} were not read"
        if left_out > 0 and note not in self._problems:
            self._problems.append(note)
        return found[: self._budget.threads]

    def _read_group(self, tids: Sequence[int]) -> Dict[int, Mark]:
        """Those of the threads that could be read; their marks."""
        before: Dict[int, Mark] = {}
        for tid in tids:
            seen = sleep_mark(self._pid, tid)
            if isinstance(seen, Mark):
                before[tid] = seen
            else:
                self._reasons[tid] = seen
        if not before:
            return {}
        self._find_pointers(before)
        words: Registers = {tid: self._registers(tid, one) for tid, one in before.items()}
        room = min(len(before) * FIRST + DEEP, self._budget.total)
        try:
            buffer = CopyBuffer(room, min(len(before) * _ROOM, room))
            stacks = StackCopier(self._pid, self._maps, self._main_top, self._row, buffer, self._budget.stack)
            stacks.copy(words, self._deadline)
        except ProcessLookupError:
            return {}
        except OSError as error:
            self._problems.append(f"no room of {room} bytes for the copy: {error.strerror}")
            return {}
        pieces = Pieces(buffer.blocks())
        blocks = {tid: tuple(pieces.cut(*one) for one in stacks.copied(tid)) for tid in before}
        again = self._again(blocks)
        for tid, one in before.items():
            if sleep_mark(self._pid, tid) != one or not all(
                map(same_frames, blocks[tid], again[tid], itertools.repeat(self._maps))
            ):
                self._ran[tid] = self._ran.get(tid, 0) + 1
                self._reasons[tid] = Missing(_RAN.format(self._ran[tid]), Code.RAN)
                continue
            self._readings[tid] = _Reading(one, blocks[tid], stacks.truncated(tid), stacks.problem(tid))
        return {tid: one for tid, one in before.items() if tid in self._readings and self._readings[tid].mark == one}

    def _again(self, blocks: Dict[int, Tuple[Block, ...]]) -> Dict[int, List[Optional[bytes]]]:
        """The same bytes, read a second time."""
        ranges = [(one.address, len(one.data)) for each in blocks.values() for one in each]
        data = iter(self._memory.read_many(ranges))
        return {tid: [next(data) for _ in each] for tid, each in blocks.items()}

    def _call(self, during: Hook) -> Any:
        try:
            return during(self._pid)
        except Exception as error:  # noqa: BLE001  one rank's odd memory must not cost the answer of the others
            text = f"reading its memory failed: {type(error).__name__}: {error}"
            if text not in self._problems:
                self._problems.append(text)
            return None

    def _find_pointers(self, marks: Mapping[int, Mark]) -> None:
        new = {tid: one.standing.sp for tid, one in marks.items() if tid not in self._pointers}
        own_ids = {tid: _innermost(self._pid, tid) if self._contained else tid for tid in new}
        self._pointers.update(thread_pointers(self._pid, new, own_ids, self._maps, self._memory, self._row))

    def _registers(self, tid: int, one: Mark) -> Tuple[int, ...]:
        return registers_of(one.standing, self._row, self._pointers.get(tid, 0))

    # --- what came of it ---

    def _threads(self) -> Tuple[ThreadCopy, ...]:
        current = set(self._tids())
        copies = []
        for tid, one in self._readings.items():
            standing = one.mark.standing
            words = self._registers(tid, one.mark)
            copies.append(
                ThreadCopy(
                    tid=tid,
                    registers=words,
                    pc=standing.pc,
                    sp=standing.sp,
                    signal=0,
                    truncated=one.truncated,
                    problem=one.problem,
                    stacks=tuple((block.address, len(block.data)) for block in one.blocks),
                )
            )
        copies += [
            ThreadCopy(tid=tid, problem=reason.reason, ran=reason.code is Code.RAN)
            for tid, reason in self._reasons.items()
            if tid not in self._readings and tid in current and thread_state(self._pid, tid) not in "ZX"
        ]
        return tuple(sorted(copies, key=lambda copy: copy.tid != self._pid))

    def _nothing(self, denied: bool) -> OutsideCopy:
        state = thread_state(self._pid, self._pid)
        if state == "X":
            why = f"there is no process {self._pid} (any more)"
        elif state == "Z":
            why = f"pid {self._pid} has ended and was not reaped by its parent yet (zombie)"
        elif denied:
            why = _NO_RIGHT.format(self._pid, why_refused(self._pid, self._pid))
        else:
            why = f"pid {self._pid} has no memory to copy: it is a kernel thread, or is just ending"
        return OutsideCopy(ProcessCopy(pid=self._pid, problems=(why, *self._problems)))


def _innermost(pid: int, tid: int) -> int:
    """The id of a thread as the process itself knows it: another one in a container (NSpid, proc_pid_status(5))."""
    try:
        lines = read_proc(pid, f"task/{tid}/status").split(b"\n")
        return int(next(line for line in lines if line.startswith(b"NSpid:")).split()[-1])
    except (OSError, StopIteration, ValueError, IndexError):
        return tid
