"""The processes that one writer's lines show: which is at hand, and which one a head means."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Set, Tuple

from gdbext.knowledge.log_lines.steps_reached import STORE_KEY
from gdbext.model.text.patterns import regex
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.assemble.joined_headings import is_about, merge_process_heads
from gdbext.parsers.cleaning import Stream
from gdbext.parsers.line_events import LogMessage, Passed, ProcessHead

_OF_CHILD = regex(r"\s*Process \S{0,80}Process-\d")
_KEY, _WAITS = map(regex, (STORE_KEY, r"Waiting in store based barrier"))
_MOST_REMEMBERED = 2048
_MOST_MESSAGES = 200


class ProcessList:
    """`here` is the process that threads are added to. A head that was read is `pending` until its first thread comes,
    so that two headings in a row are of one process."""

    def __init__(self, stream: Stream) -> None:
        self.processes: List[Process] = []
        self.messages: List[LogMessage] = []  # before the first process, or of ranks that may be in another stream
        self._again: Set[Tuple[Optional[int], Optional[int]]] = set()  # pid and rank of who says the same over and over
        self._keys: Set[str] = set()  # of barriers at which somebody waits
        self.here: Optional[Process] = None
        self.pending: Optional[ProcessHead] = None
        self._stream = stream

    def begin(self, head: ProcessHead) -> None:
        """What follows is of the process of this head: a known one where pid or rank say so."""
        known = self._of_pid(head.pid) or self._of_task(head) or self._sampled_again(head)
        if known is not None and known.threads:
            if not head.task:
                known.head = merge_process_heads(known.head, head)
            self.here, self.pending = known, None
        else:
            self.pending = merge_process_heads(self.pending, head) if self.pending else head

    def interrupted(self) -> None:
        """Somebody typed Ctrl-C: a traceback without its exception is of a process that lived, and so is the line with
        which a child begins one."""
        self.messages = [one for one in self.messages if not _OF_CHILD.match(one.text)]
        for process in self.processes:
            process.said = [text for text in process.said if not _OF_CHILD.match(text)]
            for thread in process.threads:
                thread.interrupted = True

    def apart(self) -> None:
        """Stacks without heads are of several processes where one library stands at different addresses."""
        self.processes = [one for process in self.processes for one in process.by_address()]

    def learn(self, head: ProcessHead) -> None:
        """A line about the process at hand tells its Python."""
        if self.pending is None and self.here is not None:
            self.here.head = replace(self.here.head, python=head.python)
        else:
            self.pending = replace(self.pending or ProcessHead(), python=head.python)

    def opened(self) -> Process:
        """The process that a thread is to be added to."""
        if self.pending is not None or self.here is None:
            head = self.pending or ProcessHead()
            if self._stream.rank is not None or self._stream.pid is not None:
                head = merge_process_heads(ProcessHead(rank=self._stream.rank, pid=self._stream.pid), head)
            self.here, self.pending = Process(head=head), None
            self.processes.append(self.here)
            self._hand_over(self.here)
        return self.here

    def of_inferior(self, group: Optional[str]) -> Process:
        """The process for an inferior's number; threads of one number are of one process."""
        process = self.opened()
        if group is None or process.group == group:
            return process
        known = next((one for one in self._last() if one.group == group), None)
        if known is None and (process.group is None and not process.threads):
            known = process
        if known is None:
            known = Process(head=ProcessHead())
            self.processes.append(known)
        known.group = group
        self.here = known
        return known

    def tell(self, said: LogMessage) -> None:
        """A message to the process at hand if it can be its own; else it is kept for whoever it is about. Under a
        heading whose stacks have not come it is of that process."""
        if self.pending is not None and said.rank is None and said.pid in (None, self.pending.pid or said.pid):
            said = replace(said, pid=said.pid or self.pending.pid, rank=self.pending.rank)
        key = _KEY.search(said.text) if "barrier" in said.text else None
        if key is not None:
            self._keys.add(key["key"])
        if said.about == "again":
            self._forget(said)
        elif self.here is not None and self.pending is None and is_about(self.here, said):
            self.here.tell(said.text)
            return
        if len(self.messages) < _MOST_MESSAGES and (said.text or said not in self.messages):
            self.messages.append(said)

    def _forget(self, said: LogMessage) -> None:
        """What the same writer said before."""
        who = (said.pid, said.rank)
        if who in self._again:
            self.messages = [one for one in self.messages if (one.about, one.pid, one.rank) != ("again", *who)]
        self._again.add(who)

    def passed(self, barrier: Passed) -> None:
        """Nobody waits any more at a barrier that is complete."""
        if barrier.key in self._keys:
            self._keys.discard(barrier.key)
            self.messages = [one for one in self.messages if not _waits_at(one.text, barrier.key)]
            for process in self._last():
                process.said = [text for text in process.said if not _waits_at(text, barrier.key)]
        self.tell(LogMessage("", rank=barrier.rank))

    def _hand_over(self, process: Process) -> None:
        for said in self.messages:
            if is_about(process, said):
                process.tell(said.text)
        self.messages = [said for said in self.messages if not is_about(process, said)]

    def _last(self) -> List[Process]:
        """Tools print one process in one go: only the last ones are looked through."""
        return self.processes[-_MOST_REMEMBERED:]

    def _of_pid(self, pid: Optional[int]) -> Optional[Process]:
        if pid is None:
            return None
        return next((one for one in self._last() if one.head.pid == pid), None)

    def _of_task(self, head: ProcessHead) -> Optional[Process]:
        """The process that has the task of the kernel's log as a thread, by another tool's stack of it."""
        if not head.task:
            return None
        return next((one for one in self._last() if one.has_task(head.pid)), None)

    def _sampled_again(self, head: ProcessHead) -> Optional[Process]:
        """A second look at a rank whose threads the text numbers: their numbers come again."""
        if head.rank is None or head.pid is not None:
            return None
        alike = (one for one in self._last() if one.head.rank == head.rank)
        return next((one for one in alike if one.threads and all(thread.head.id for thread in one.threads)), None)


def _waits_at(text: str, key: str) -> bool:
    found = _KEY.search(text) if _WAITS.search(text) else None
    return found is not None and found["key"] == key
