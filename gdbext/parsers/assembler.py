"""Events of one stream of lines -> processes with threads."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional

from gdbext.parsers.building import Process, Thread
from gdbext.parsers.cleaning import Stream, Unwrapper
from gdbext.parsers.events import (
    Chain,
    Chained,
    Cut,
    Detail,
    Event,
    FrameLine,
    Location,
    ProcessHead,
    Prompt,
    Said,
    Standing,
    ThreadHead,
)
from gdbext.parsers.formats import GRAMMAR
from gdbext.parsers.heads import is_about, joined, mentioned
from gdbext.parsers.tally import Tally

_MOST_REMEMBERED = 2048
MOST_THREADS = 300_000
MOST_FRAMES = 2_000_000


class Assembler:
    """Feed it the lines of one writer; `processes` has what they showed."""

    def __init__(self, stream: Stream, tally: Tally) -> None:
        self.stream = stream
        self.processes: List[Process] = []
        self.messages: List[Said] = []  # before the first process, or of ranks that may be in another stream
        self._tally = tally
        self._unwrapper = Unwrapper()
        self._pending: Optional[ProcessHead] = None  # the next thread begins this process
        self._process: Optional[Process] = None
        self._thread: Optional[Thread] = None
        self._mention: Optional[ThreadHead] = None
        self._kind = ""
        self._writer = ""
        self._next_problem: Optional[Said] = None
        self._chained = False  # the next traceback is of the same thread,
        self._dropping = False  # and its frames are counted only
        self._interactive = False  # commands of a debugger were seen
        self._ended = False  # the stack at hand is whole: a frame without a head begins another one

    def feed(self, line: str) -> None:
        for whole in self._unwrapper.feed(line):
            self._take(whole)

    def finish(self) -> None:
        for whole in self._unwrapper.flush():
            self._take(whole)
        if self._next_problem is not None:
            self._say(replace(self._next_problem, about=""))

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        found = GRAMMAR.read(line, self._kind)
        if found is None:
            self._mention = None
            self._tally.other(line)
            return
        kind, event = found
        if isinstance(event, FrameLine):
            self._frame(event, kind or self._kind)
            self._mention = None
            return
        if not isinstance(event, (ThreadHead, Prompt, Detail)):
            self._mention = None
        self._other_event(event, kind)

    def _other_event(self, event: Event, kind: str) -> None:
        if isinstance(event, ThreadHead):
            self._head(event, kind)
        elif isinstance(event, ProcessHead):
            self._process_head(event)
        elif isinstance(event, Said):
            self._say(event)
        elif isinstance(event, Chain):
            self._whole(event, kind)
        elif isinstance(event, Chained):
            self._chained = self._thread is not None
        elif isinstance(event, Cut):
            if self._thread is not None:
                self._thread.truncated = event.reason[:120]
        elif isinstance(event, Prompt):
            self._interactive = True
        elif isinstance(event, Standing):
            process = self._open_process()
            process.standing = process.standing or event.frame
        elif isinstance(event, Location):
            self._locate(event)

    # Processes --------------------------------------------------------------------------------------------------------

    def _process_head(self, head: ProcessHead) -> None:
        if head.ends:
            self._end(head)
        elif head.firm:
            self._begin(head)
        elif head.writer:
            if head.writer != self._writer and self._process is not None and self._process.threads:
                self._begin(ProcessHead(head.writer))
            self._writer = head.writer
        else:
            target = self._pending or (self._process.head if self._process else ProcessHead())
            told = replace(target, python=head.python)
            if self._pending is None and self._process is not None:
                self._process.head = told
            else:
                self._pending = told

    def _end(self, head: ProcessHead) -> None:
        if self._process is not None and self._pending is None and self._process.head.pid in (None, head.pid):
            self._process.head = replace(self._process.head, pid=head.pid)
            self._begin(ProcessHead())

    def _begin(self, head: ProcessHead) -> None:
        known = self._find(head.pid) or self._sampled_again(head)
        self._thread, self._kind, self._chained, self._dropping = None, "", False, False
        if known is not None and known.threads:
            known.head = joined(known.head, head)
            self._process, self._pending = known, None
        else:
            self._pending = joined(self._pending, head) if self._pending else head

    def _find(self, pid: Optional[int]) -> Optional[Process]:
        """The process of that pid among the last ones: tools print one process in one go."""
        if pid is None:
            return None
        return next((one for one in self.processes[-_MOST_REMEMBERED:] if one.head.pid == pid), None)

    def _sampled_again(self, head: ProcessHead) -> Optional[Process]:
        """A second look at a rank whose threads the text numbers: their numbers come again."""
        if head.rank is None or head.pid is not None:
            return None
        alike = (one for one in self.processes[-_MOST_REMEMBERED:] if one.head.rank == head.rank)
        return next((one for one in alike if one.threads and all(thread.head.id for thread in one.threads)), None)

    def _open_process(self) -> Process:
        if self._pending is not None or self._process is None:
            head = self._pending or ProcessHead()
            if self.stream.rank is not None or self.stream.pid is not None:
                head = joined(ProcessHead(rank=self.stream.rank, pid=self.stream.pid), head)
            self._process = Process(head)
            self._pending = None
            self.processes.append(self._process)
            for said in self.messages:
                if is_about(self._process, said):
                    self._process.tell(said.text)
            self.messages = [said for said in self.messages if not is_about(self._process, said)]
        return self._process

    def _inferior(self, group: Optional[str]) -> Process:
        """The process for an inferior's number; threads of one number are of one process."""
        process = self._open_process()
        if group is None or process.group == group:
            return process
        known = next((one for one in self.processes[-_MOST_REMEMBERED:] if one.group == group), None)
        if known is None and (process.group is None and not process.threads):
            known = process
        if known is None:
            known = Process(ProcessHead())
            self.processes.append(known)
        known.group = group
        self._process = known
        return known

    # Threads ----------------------------------------------------------------------------------------------------------

    def _head(self, head: ThreadHead, kind: str) -> None:
        if not head.firm:
            self._mention = head
            return
        if self._chained and head.id is None and self._thread is not None:
            self._dropping, self._kind = True, kind
            return
        self._chained = self._dropping = False
        if self._mention is not None:
            head = mentioned(head, self._mention)
            self._mention = None
        if self._pending is None and self._process is not None and self._is_elsewhere(self._process, head, kind):
            self._begin(ProcessHead())
        process = self._inferior(head.group)
        if head.selected and self._stands_alone():
            self._adopt(process, head)
            return
        known = process.find(head.id)
        same = known is not None and (known.head.lwp is None or head.lwp is None or known.head.lwp == head.lwp)
        if known is not None and same and head.selected:
            self._resume(known, head)
        elif known is not None and same and (known.head.selected or not known.frames):
            known.clear()
            self._resume(known, replace(head, selected=False))
        elif known is not None and not (same and head.lwp is not None):
            self._begin(ProcessHead())
            self._start(head, kind)
        else:
            self._start(head, kind, known)

    def _is_elsewhere(self, process: Process, head: ThreadHead, kind: str) -> bool:
        """Whether a thread cannot be of this process: it has its main thread, or died before the fatal error said."""
        fatal = kind == "faulthandler" and self._next_problem is not None and self._next_problem.fatal
        return process.has_its_only(head, kind) or (fatal and process.died)

    def _stands_alone(self) -> bool:
        """Whether the last frame read is the one that gdb shows of a core before it says which thread that is."""
        thread = self._thread
        return thread is not None and thread.head.id is None and thread.kind == "gdb" and len(thread.frames) == 1

    def _adopt(self, process: Process, head: ThreadHead) -> None:
        thread = self._thread
        if thread is not None and thread in process.threads and process.find(head.id) is None:
            process.rename(thread, head)
            self._interactive = True

    def _resume(self, thread: Thread, head: ThreadHead) -> None:
        self._ended = False
        old = thread.head
        thread.head = replace(
            head, id=old.id or head.id, lwp=head.lwp or old.lwp, name=head.name or old.name, only=old.only or head.only
        )
        thread.complain(head.problem)
        self._thread, self._kind = thread, thread.kind

    def _start(self, head: ThreadHead, kind: str, earlier: Optional[Thread] = None) -> Optional[Thread]:
        process = self._open_process()
        self._kind = kind
        if self._tally.threads >= MOST_THREADS:
            self._tally.beyond += 1
            self._thread = None
            return None
        self._tally.threads += 1
        self._ended = False
        thread = Thread(head, kind, superseded=earlier)
        thread.complain(head.problem)
        if self._next_problem is not None and (head.current or kind != "faulthandler"):
            thread.complain(self._next_problem.text)
            self._next_problem = None
        process.add(thread)
        self._thread = thread
        return thread

    # Frames -----------------------------------------------------------------------------------------------------------

    def _frame(self, line: FrameLine, kind: str) -> None:
        thread = self._thread
        if self._dropping and thread is not None:
            thread.dropped += 1
            return
        if thread is None or self._ended or self._is_of_another(thread, line, kind):
            thread = self._start(self._unheaded(), kind)
        elif self._is_repeated(thread, line):
            return
        if thread is None or self._tally.frames >= MOST_FRAMES or not thread.add(line, kind):
            self._tally.beyond += 1
            return
        self._kind = thread.kind
        self._tally.frames += 1

    def _whole(self, chain: Chain, kind: str) -> None:
        """A stack on one line: a thread of its own, or of the head before it."""
        if self._thread is None or self._thread.frames or self._pending is not None:
            self._start(self._unheaded(), kind)
        for frame in chain.frames:
            self._frame(FrameLine(frame), kind)
        self._kind = ""
        self._ended = True

    def _unheaded(self) -> ThreadHead:
        """The head of a stack that has none, or only a mention in the prose before it."""
        head = replace(self._mention or ThreadHead(), firm=True)
        taken = self._pending is None and self._process is not None and self._process.find(head.id) is not None
        return replace(head, id=None) if taken else head

    def _is_of_another(self, thread: Thread, line: FrameLine, kind: str) -> bool:
        """Whether a frame cannot continue the stack at hand: its numbers start over, or another tool prints it."""
        if self._pending is not None or (thread.frames and thread.kind and kind != thread.kind):
            return True
        if self._mention is not None and thread.frames and (line.number is None or line.number <= thread.last):
            return True
        return line.number is not None and line.number <= thread.last and not self._is_repeated(thread, line)

    def _is_repeated(self, thread: Thread, line: FrameLine) -> bool:
        """Whether `up` or `frame 0` printed a frame again. Without commands in the text, #0 begins a stack."""
        return thread.shows(line) and (line.number != 0 or self._interactive or len(thread.frames) == 1)

    def _locate(self, place: Location) -> None:
        if self._thread is not None and self._thread.frames:
            self._thread.frames[-1] = replace(self._thread.frames[-1], file=place.file, line=place.line)

    # Messages ---------------------------------------------------------------------------------------------------------

    def _say(self, said: Said) -> None:
        thread, process = self._thread, self._process
        if said.about == "before" and thread is not None:
            thread.complain(said.text)
            if said.rank is not None and process is not None and process.head.rank is None:
                process.head = replace(process.head, rank=said.rank)
            self._kind, self._chained, self._dropping = "", False, False
            self._ended = thread.kind == "traceback"
        elif said.about == "next":
            self._next_problem = said
            if process is not None and process.head.pid is None and self._kind == "glog":
                process.head, self._thread = replace(process.head, pid=said.pid), None  # the check, then its signal
            elif said.pid is not None and (process is None or process.head.pid != said.pid):
                self._begin(ProcessHead(pid=said.pid))
        elif process is None or self._pending is not None or not is_about(process, said):
            if len(self.messages) < 200 and (said.text or said not in self.messages):
                self.messages.append(said)
        else:
            process.tell(said.text)
