"""Processes while their lines are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple

from gdbext.knowledge.frames.system.linux_kernel import ONLY_BEGINS
from gdbext.knowledge.launch.launchers import LAUNCHER_FILES
from gdbext.knowledge.runtimes.glibc_locks import JOIN_CALLS, JOINS_THREAD
from gdbext.model.job import RankProcess, RankSnapshot
from gdbext.model.locks import LockWait
from gdbext.model.python import PythonStacks
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex
from gdbext.parsers.assemble.threads import Thread
from gdbext.parsers.formats.unknown_frames import KINDS as LOOSE_KINDS
from gdbext.parsers.formats.unknown_frames import is_telling
from gdbext.parsers.line_events import LONGEST_PROBLEM, ProcessHead, ThreadHead
from gdbext.snapshot_builder.builder import ProcessReading, Stacks, rank_snapshot

MOST_LOG_MESSAGES = 24
_SEVERAL, _MOST_APART = 2, 64
_MOST_INSIDE = 8
"""Frames of the C library in which a thread waits for the end of another one, at most."""
_JOINS = regex(JOIN_CALLS)
_LARGEST = 1 << 24
"""Bytes of code that no function has."""

_LAUNCHER, _ONLY_BEGINS = map(regex, (LAUNCHER_FILES, ONLY_BEGINS))


@dataclass
class Process:
    """A process whose lines are being read."""

    head: ProcessHead
    group: Optional[str] = None
    threads: List[Thread] = field(default_factory=list)
    said: List[str] = field(default_factory=list)  # log lines that are evidence
    stop: str = ""  # how a debugger stopped it last, where that was no signal
    stopped: List[Thread] = field(default_factory=list)  # threads of that stop
    died_as: Optional[int] = None  # the pid in the line behind its stack
    standing: Optional[Frame] = None  # where gdb found it, of use where no stack is printed
    _by_id: Dict[str, Thread] = field(default_factory=dict)
    _lwps: Set[int] = field(default_factory=set)
    _only: Dict[str, Optional[str]] = field(default_factory=dict)  # kind -> id of the thread that a process has once

    @property
    def shows_stacks(self) -> bool:
        return bool(self.threads) or self.standing is not None

    @property
    def died(self) -> bool:
        """Whether the thread was read that faulthandler names as the one it died in."""
        return "faulthandler" in self._only

    def find(self, id: Optional[str]) -> Optional[Thread]:
        """The thread of that id, the one printed last."""
        return self._by_id.get(id) if id is not None else None

    def has_task(self, task: Optional[int]) -> bool:
        """Whether that task of the kernel is a thread of it."""
        return task is not None and task in self._lwps

    def add(self, thread: Thread) -> None:
        self.threads.append(thread)
        if thread.head.lwp is not None:
            self._lwps.add(thread.head.lwp)
        if thread.head.id is not None:
            self._by_id[thread.head.id] = thread
        if _is_only(thread.head, thread.kind):
            self._only[thread.kind] = thread.head.id

    def rename(self, thread: Thread, head: ThreadHead) -> None:
        """Give a thread that had none its head."""
        thread.head = head
        if head.id is not None:
            self._by_id[head.id] = thread

    def has_its_only(self, head: ThreadHead, kind: str) -> bool:
        """Whether a process has one thread of this sort, and it was read: its main thread, the thread it died in."""
        if not _is_only(head, kind) or kind not in self._only:
            return False
        return head.id is None or head.id != self._only[kind]

    def tell(self, text: str) -> None:
        if text and len(self.said) < MOST_LOG_MESSAGES and text[:LONGEST_PROBLEM] not in self.said:
            self.said.append(text[:LONGEST_PROBLEM])

    def drop_what_says_nothing(self) -> None:
        """Forget single lines that only looked like frames, and beside stacks one that is only a heading."""
        self.threads = [thread for thread in self.threads if not _says_nothing(thread)]
        if any(thread.frames for thread in self.threads):
            self.threads = [thread for thread in self.threads if not _is_heading(thread)]

    def drop_launcher(self) -> None:
        """Forget the traceback of a launcher, where the text tells of somebody else: it tells of a rank that died."""
        self.threads = [thread for thread in self.threads if not _is_of_launcher(thread)]

    def by_address(self) -> List[Process]:
        """The processes whose stacks these are: one function of one library stands at one place in each. Heads tell of
        themselves who is meant."""
        if len(self.threads) < _SEVERAL or any(one.head != ThreadHead() for one in self.threads):
            return [self]
        found: List[Tuple[Dict[Tuple[str, str], int], Process]] = []
        for thread in self.threads:
            places = thread.places()
            owner = next((process for known, process in found if not _are_apart(known, places)), None)
            if owner is None and len(found) == _MOST_APART:
                return [self]  # no job prints so many
            if owner is None:
                bare = replace(self, threads=[], _by_id={}, _lwps=set(), _only={})
                owner = Process(head=ProcessHead()) if found else bare
                found.append((places, owner))
            owner.add(thread)
        return [process for _, process in found]

    @property
    def is_launcher(self) -> bool:
        """Whether nothing is here but the traceback of a launcher."""
        return not self.said and all(map(_is_of_launcher, self.threads))

    def has_gone_on(self) -> None:
        """A debugger stops the process anew: where a thread was at the stop before says nothing of it now."""
        for thread in self.stopped:
            thread.head = replace(thread.head, only=None)
        self.stopped.clear()

    def finished(self, index: int) -> RankSnapshot:
        self.tell(self.stop)
        if not self.threads and self.standing is not None:
            self.threads.append(Thread(head=ThreadHead(only=self.standing), kind="gdb"))
        elif self.standing is not None and self._standing_is_missing(self.standing):
            self.threads.append(Thread(head=ThreadHead(id="1", only=self.standing), kind="gdb"))
        elif self.standing is not None:
            self._give_to_the_selected(self.standing)
        self._name_by_list()
        gone = {id(thread.superseded) for thread in self.threads if thread.frames}  # printed again later
        shown = [
            thread for thread in self.threads if id(thread) not in gone and (thread.frames or thread.superseded is None)
        ]
        stacks = tuple(thread.finished(id) for thread, id in zip(shown, thread_ids(shown)))
        kinds = Counter(thread.kind for thread in shown if thread.kind)
        source = f"text:{kinds.most_common(1)[0][0]}" if kinds else "text"
        threads = {one.head.pthread: one.head.lwp for one in self.threads if one.head.pthread and one.head.lwp}
        return rank_snapshot(index, _TextReading(self.head, stacks, tuple(self.said), source, threads))

    def _give_to_the_selected(self, frame: Frame) -> None:
        """`Thread 1 received signal SIGINT` and the frame it stands in, where its stack is not in the text."""
        if frame.function is None and (frame.library or "libc.").startswith("libc."):
            return
        bare = [one for one in self.threads if one.head.selected and not (one.frames or one.head.only)]
        if len(bare) == 1:
            bare[0].head = replace(bare[0].head, only=frame)

    def _standing_is_missing(self, frame: Frame) -> bool:
        """gdb says where the thread stands that it has selected, which after an attach is thread 1; its stack is not in
        the text."""
        stacks = [thread for thread in self.threads if thread.kind == "gdb"]
        if len(stacks) < len(self.threads) or any(thread.head.id in (None, "1") for thread in stacks):
            return False
        return not any(one.function == frame.function for thread in stacks for one in thread.frames[:1])

    def _name_by_list(self) -> None:
        """A stack without a head is that of the listed thread which stands in its innermost frame."""
        listed = {one.head.only.pc: one for one in self.threads if one.head.only is not None and not one.frames}
        starred = [one for one in self.threads if one.head.starred and not one.frames]
        taken: Set[int] = set()
        for thread in self.threads:
            inner = thread.frames[0] if thread.frames and thread.head.id is None else None
            one = listed.pop(inner.pc, None) if inner is not None and inner.pc is not None else None
            if one is None and starred and inner is not None and inner == starred[0].head.only:
                one = starred.pop(0)
            if one is not None:
                thread.head = replace(one.head, gil=thread.head.gil)
                taken.add(id(one))
        self.threads = [thread for thread in self.threads if id(thread) not in taken]


class _TextReading(ProcessReading):
    """What a text tells of one process."""

    def __init__(
        self, head: ProcessHead, stacks: Stacks, said: Tuple[str, ...], source: str, threads: Mapping[int, int]
    ) -> None:
        pid = head.pid or _main_thread(stacks) or 0
        super().__init__(RankProcess(pid=pid, role="rank", title=head.title, rank=head.rank, host=head.host))
        self._python, self._stacks, self._said, self.source = head.python, stacks, said, source
        self._threads = threads

    def native_stacks(self) -> Stacks:
        return self._stacks

    def locks(self, stacks: Stacks) -> Tuple[LockWait, ...]:
        """Whose end threads wait for, where a debugger printed the argument of the call."""
        return tuple(_joins(stacks, self._threads))

    def python_stacks(self, stacks: Stacks) -> Optional[PythonStacks]:
        """None of its own: tools print them among the native ones."""
        return PythonStacks(self._python, {}) if self._python else None

    def title(self) -> Optional[str]:
        return self.process.title or None

    def engine(self, stacks: Stacks) -> None:
        """The verdict tells it, of all processes of the text together."""
        return

    def said(self) -> Tuple[str, ...]:
        return self._said


def _joins(stacks: Stacks, threads: Mapping[int, int]) -> Iterator[LockWait]:
    """`threads`: by what pthread_self() returns in them."""
    for stack in stacks if threads else ():
        calls = (frame for frame in stack.frames[:_MOST_INSIDE] if _JOINS.match(frame.function or ""))
        printed = (frame.captures.get(JOINS_THREAD) for frame in calls)
        joined = next((one for one in printed if isinstance(one, int)), 0)
        owner = threads.get(joined)
        if stack.lwp is not None and owner is not None and owner != stack.lwp:
            yield LockWait(thread=stack.lwp, kind="join", address=joined, owner=owner)


def _are_apart(places: Dict[Tuple[str, str], int], others: Dict[Tuple[str, str], int]) -> bool:
    """One function of a library is at two places, and none of a shared library at one: a large library has several
    functions of one name."""
    both = places.keys() & others.keys()
    near = [one for one in both if abs(places[one] - others[one]) <= _LARGEST]
    return len(near) < len(both) and not any(".so" in module for _, module in near)


def _says_nothing(thread: Thread) -> bool:
    """A single line that only looked like a frame, or the last lines of a stack whose others are not in the text."""
    loose = thread.kind in LOOSE_KINDS and thread.head.id is None
    if loose and thread.frames and all(_ONLY_BEGINS.match(frame.function or "") for frame in thread.frames):
        return True
    return loose and len(thread.frames) == 1 and not is_telling(thread.frames[0])


def _is_of_launcher(thread: Thread) -> bool:
    return thread.kind == "traceback" and any(_LAUNCHER.search(frame.file or "") for frame in thread.frames)


def _is_heading(thread: Thread) -> bool:
    return thread.kind == "traceback" and thread.head.id is None and not (thread.frames or thread.problems)


def _is_only(head: ThreadHead, kind: str) -> bool:
    """Whether a process has one thread of this sort: its main thread, or the one it died in."""
    if kind == "traceback":
        return head.id is None and head.name is None
    return (kind == "faulthandler" and head.current) or (kind == "py-spy" and head.name == "MainThread")


def _main_thread(stacks: Tuple[ThreadStack, ...]) -> Optional[int]:
    """The pid, which on Linux is the LWP of the main thread; py-spy names it."""
    return next((stack.lwp for stack in stacks if stack.name == "MainThread"), None)


def thread_ids(threads: List[Thread]) -> Tuple[str, ...]:
    """The ids that the text gives, or py-spy's names; threads without one continue the numbering of their neighbours.

    gdb lists threads from the highest number down, so a stack that lost its head before "Thread 4" is thread 5. A
    stack without neighbours that have numbers is thread 1.
    """
    step = _direction(threads)
    names = Counter(thread.head.name for thread in threads)
    ids = [
        one.head.id or (one.head.name if one.kind == "py-spy" and names[one.head.name] == 1 else None)
        for one in threads
    ]
    used: Dict[str, None] = dict.fromkeys(one for one in ids if one is not None)
    for order, shift in ((range(len(ids)), step), (reversed(range(len(ids))), -step)):
        previous: Optional[int] = None
        for at in order:
            if ids[at] is None and previous is not None:
                guess = str(previous + shift)
                if int(guess) > 0 and guess not in used:
                    ids[at] = guess
                    used[guess] = None
            previous = _number(threads[at], ids[at])
    free = 1
    for at, id in enumerate(ids):
        if id is None:
            while str(free) in used:
                free += 1
            ids[at] = str(free)
            used[str(free)] = None
    return tuple(str(one) for one in ids)


def _number(thread: Thread, id: Optional[str]) -> Optional[int]:
    """The number of a thread in gdb's listing, which its neighbours in the text continue."""
    listed = thread.kind == "gdb" and not thread.head.selected
    return integer_or_none(id) if listed else None


def _direction(threads: List[Thread]) -> int:
    """-1 for a listing from the highest number down, which is gdb's way, else 1."""
    known = [number for number in (integer_or_none(thread.head.id) for thread in threads) if number is not None]
    rising = sum(later > earlier for earlier, later in zip(known, known[1:]))
    return 1 if 2 * rising > len(known) - 1 else -1
