"""Python stacks of another process, by its memory alone: no code runs in it and no debug information is needed.

Three steps. `interpreter_of` (runtime.py) before the target is stopped; `freeze` while it stands still copies
thread states and frames, nothing else; `resolve` after it runs again turns them into functions, files and lines.
What a frame points to (code objects) outlives the stop: a function that is executing keeps its code alive.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from gdbext.capture.machine import SMALLEST_PAGE, this_machine
from gdbext.capture.python.objects import Objects
from gdbext.capture.python.runtime import Interpreter, Read
from gdbext.knowledge.runtimes.cpython import FrameLayout, InterpreterLayout
from gdbext.model.python import PythonStacks, PythonThread
from gdbext.model.stack import Captured, Frame, Loop
from gdbext.model.tasks import PythonTask

_PAGE = SMALLEST_PAGE
_WORD = struct.Struct("<Q")
_INT = struct.Struct("<i")
_MAX_INTERPRETERS = 64
_MOST_PAGES = 4096  # that are kept
MOST_MARKED = 8  # threads of a process whose local variables are compared between looks


@dataclass(frozen=True)
class Limits:
    """How much of a target is believed: its lists may be endless."""

    threads: int = 4096
    frames: int = 2000  # of one thread; the innermost are kept
    all_frames: int = 1 << 18  # of all threads
    seconds: float = 0.5  # of the whole freeze


class FrozenThread(NamedTuple):
    """One thread state as it was. `frames` are the raw bytes of the frame structs, innermost first, and `addresses`
    where they lie."""

    pthread: int
    native_id: Optional[int]
    frames: Tuple[bytes, ...]
    truncated: Optional[str]
    gil: Optional[bool]
    addresses: Tuple[int, ...] = ()


@dataclass(frozen=True)
class Frozen:
    """Everything that had to be read while the target stood still."""

    interpreter: Interpreter
    threads: Tuple[FrozenThread, ...]
    problems: Tuple[str, ...] = ()


# --- while the target is stopped ---


def freeze(interpreter: Interpreter, read: Read, limits: Optional[Limits] = None) -> Frozen:
    """Copy all thread states and frames. Never raises on what it reads; what is missing is in `problems`."""
    return _Walk(interpreter, read, limits or Limits()).run()


class Pages:
    """Reads by whole pages and keeps them: neighbouring structs cost one system call."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._pages: Dict[int, Optional[bytes]] = {}

    def read(self, address: int, size: int) -> Optional[bytes]:
        """Like the `read` it stands before. A page that cannot be read whole may still be in part."""
        number, offset = divmod(address, _PAGE)
        if offset + size > _PAGE:
            return self._read(address, size)
        if number in self._pages:
            page = self._pages[number]
        else:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page = self._pages[number] = self._read(number * _PAGE, _PAGE)
        return self._read(address, size) if page is None else page[offset : offset + size]

    def word(self, address: int) -> Optional[int]:
        """The 64-bit number at `address`."""
        data = self.read(address, 8)
        return None if data is None else int(_WORD.unpack(data)[0])


class _Walk:
    """One freeze: interpreters, their thread states, their frames."""

    def __init__(self, interpreter: Interpreter, read: Read, limits: Limits) -> None:
        self.interpreter = interpreter
        self.layout = interpreter.layout
        self.pages = Pages(read)
        self.limits = limits
        self.deadline = time.monotonic() + limits.seconds
        self.threads: List[FrozenThread] = []
        self.frames = 0
        self.problems: List[str] = []

    def run(self) -> Frozen:
        layout = self.layout
        address = self.pages.word(self.interpreter.runtime + layout.interpreters)
        seen: Set[int] = set()
        while address and address not in seen and len(seen) < _MAX_INTERPRETERS:
            seen.add(address)
            self._thread_states(address)
            address = self.pages.word(address + layout.next_interpreter)
        if address is None:
            self.problems.append("Python's list of interpreters cannot be read")
        return Frozen(self.interpreter, tuple(self.threads), tuple(dict.fromkeys(self.problems)))

    def _thread_states(self, interpreter: int) -> None:
        layout = self.layout
        holder = self._gil_holder(interpreter)
        size = 8 + max(layout.next_thread, layout.pthread, layout.native_id or 0, layout.frame)
        address = self.pages.word(interpreter + layout.threads)
        seen: Set[int] = set()
        while address:
            full = len(self.threads) >= self.limits.threads or self.frames >= self.limits.all_frames
            if full or time.monotonic() > self.deadline:
                self.problems.append(f"only the first {len(self.threads)} Python threads were read")
                return
            state = self.pages.read(address, size)
            if state is None or address in seen:
                self.problems.append("Python's list of threads is damaged or cannot be read")
                return
            seen.add(address)
            addresses: List[int] = []
            frames, truncated = self._frames(_WORD.unpack_from(state, layout.frame)[0], addresses)
            self.frames += len(frames)
            native = None if layout.native_id is None else _WORD.unpack_from(state, layout.native_id)[0]
            gil = None if holder is None else holder == address
            pthread = _WORD.unpack_from(state, layout.pthread)[0]
            self.threads.append(FrozenThread(pthread, native, frames, truncated, gil, tuple(addresses)))
            address = _WORD.unpack_from(state, layout.next_thread)[0]
        if address is None:
            self.problems.append("Python's list of threads cannot be read")

    def _frames(self, address: Optional[int], found: List[int]) -> Tuple[Tuple[bytes, ...], Optional[str]]:
        layout, read = self.layout.frames, self.pages.read
        frames: List[bytes] = []
        seen: Set[int] = set()
        if address and self.layout.frame_through is not None:
            address = self.pages.word(address + self.layout.frame_through)
            if address is None:
                return (), "the innermost Python frame cannot be read"
        size, previous = _frame_size(layout), layout.previous
        while address:
            if len(frames) >= self.limits.frames:
                return tuple(frames), f"more than {self.limits.frames} Python frames"
            frame = read(address, size)
            if frame is None:
                return tuple(frames), "a Python frame cannot be read"
            if address in seen:
                return tuple(frames), "the Python frames form a circle"
            seen.add(address)
            frames.append(frame)
            found.append(address)
            address = _WORD.unpack_from(frame, previous)[0]
        return tuple(frames), None

    def _gil_holder(self, interpreter: int) -> Optional[int]:
        """Address of the thread state that holds the lock, 0 when nobody does, None when that cannot be told."""
        gil = self.layout.gil
        lock: Optional[int] = self.interpreter.runtime + gil.at
        if gil.per_interpreter:
            lock = self.pages.word(interpreter + gil.at)
        if not lock:
            return None
        holder, locked = self.pages.word(lock + gil.last_holder), self.pages.read(lock + gil.locked, 4)
        if holder is None or locked is None or _INT.unpack(locked)[0] not in (-1, 0, 1):
            return None
        return holder if _INT.unpack(locked)[0] == 1 else 0


def _frame_size(layout: FrameLayout) -> int:
    return max(layout.previous + 8, layout.code + 8, layout.instruction + 8, (layout.boundary or 0) + 1)


# --- after the target was released ---


def resolve(
    frozen: Frozen,
    read: Read,
    tids: Optional[Collection[int]] = None,
    pthreads: Optional[Mapping[int, int]] = None,
    arguments: Callable[[Frame, int, bytes], Mapping[str, Captured]] = lambda frame, address, data: {},
    marks: Callable[[FrozenThread], Tuple[int, ...]] = lambda thread: (),
    lengths: Callable[[FrozenThread], Mapping[str, int]] = lambda thread: {},
    loops: Callable[[FrozenThread], Tuple[Loop, ...]] = lambda thread: (),
    tasks: Callable[[FrozenThread, int], Tuple[PythonTask, ...]] = lambda thread, tid: (),
) -> PythonStacks:
    """Name the frames and find the kernel's id of each thread. `arguments`: python_arguments.reader; `marks`:
    local_marks.reader, asked for a few threads.

    `lengths` and `loops`: item_counts; `tasks`: asyncio_tasks.reader. `tids` are the
    threads that exist (a forked child may carry its parent's ids); `pthreads` maps pthread_self(), which is the thread
    pointer of its registers, to the thread's id, where these are at hand.
    """
    layout = frozen.interpreter.layout
    pages = Pages(read)
    objects = Objects(layout, pages.read)
    threads: Dict[int, PythonThread] = {}
    problems = list(frozen.problems)
    lost = 0
    suspended: List[PythonTask] = []
    marked = frozenset(id(one) for one in frozen.threads[-MOST_MARKED:])  # the main thread comes last
    for thread in frozen.threads:
        tid = _tid(thread, pages, tids, pthreads)
        if tid is None:
            lost += bool(thread.frames)
            continue
        groups = _groups(thread, layout, objects, arguments)
        named = PythonThread(groups=groups, gil=thread.gil, truncated=thread.truncated)
        if id(thread) in marked:
            named = replace(named, marks=marks(thread), lengths=lengths(thread), loops=loops(thread))
        suspended += tasks(thread, tid)
        known = threads.get(tid)
        if known is not None and known.groups and named.groups:
            problems.append(f"thread {tid} has frames in several interpreters; the longest stack is shown")
        if known is None or len(known.frames) < len(named.frames):
            threads[tid] = named
    if lost:
        problems.append(f"{lost} Python threads could not be told apart from the others of the process")
    problems += (f"{count} x {text}" for text, count in Counter(objects.problems).items())
    problems += objects.limits
    version = "{}.{}".format(*frozen.interpreter.version)
    return PythonStacks(version, threads, tuple(dict.fromkeys(problems)), tuple(suspended))


def thread_of(frozen: Frozen, read: Read, tid: int) -> Optional[FrozenThread]:
    """The state of one thread of the kernel that has Python frames; the longest stack when it has several."""
    pages = Pages(read)
    own = [thread for thread in frozen.threads if thread.frames and _tid(thread, pages, (tid,), None) == tid]
    return max(own, key=lambda thread: len(thread.frames), default=None)


def _tid(
    thread: FrozenThread, pages: Pages, tids: Optional[Collection[int]], pthreads: Optional[Mapping[int, int]]
) -> Optional[int]:
    if pthreads and thread.pthread in pthreads:
        return pthreads[thread.pthread]
    if thread.native_id and (tids is None or thread.native_id in tids):
        return thread.native_id
    row = this_machine()
    if not thread.pthread or row is None or row.glibc_tid is None:
        return None
    data = pages.read(thread.pthread + row.glibc_tid, 4)
    tid = _INT.unpack(data)[0] if data else 0
    plausible = tid in tids if tids is not None else 0 < tid < 1 << 22  # PID_MAX_LIMIT of 64-bit Linux
    return tid if plausible else None


def _groups(
    thread: FrozenThread,
    layout: InterpreterLayout,
    objects: Objects,
    arguments: Callable[[Frame, int, bytes], Mapping[str, Captured]],
) -> Tuple[Tuple[Frame, ...], ...]:
    """Frames in the groups that a native eval frame executes, innermost first."""
    rows = layout.frames
    groups: List[List[Frame]] = [[]]
    for address, data in zip(thread.addresses, thread.frames):
        boundary = data[rows.boundary] if rows.boundary is not None else 1
        if boundary in rows.shim_owners:
            outermost = _WORD.unpack_from(data, rows.previous)[0] == 0
            if not (rows.base_frame and outermost and not groups[-1]):
                groups.append([])
            continue
        frame = _frame(data, layout, objects)
        captures = arguments(frame, address, data)
        groups[-1].append(replace(frame, captures=captures) if captures else frame)
        if boundary and not rows.shim_owners:
            groups.append([])
    if not groups[-1]:
        groups.pop()
    return tuple(map(tuple, groups))


def _frame(data: bytes, layout: InterpreterLayout, objects: Objects) -> Frame:
    rows = layout.frames
    code = _WORD.unpack_from(data, rows.code)[0] & ~rows.code_tag_mask
    form = _WORD if layout.code.table == "locations" else _INT
    instruction = form.unpack_from(data, rows.instruction)[0]
    function, file, line = objects.place(code, instruction)
    return Frame(function=function, file=file, line=line, language="python")
