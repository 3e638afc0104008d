"""Events of one stream of lines -> processes with threads: a machine whose states say what a frame would belong to.

    state    what was read                          a frame                a head of a thread   a message about it
    CLOSED   nothing yet, or a heading of a process opens a stack: OPEN    opens one: OPEN      no change
    OPEN     a head, or frames of a stack           continues it; opens    opens another: OPEN  ends a traceback: WHOLE
                                                    another where numbers
                                                    start over or the tool
                                                    is another
    WHOLE    a stack and the line that ends it      opens another: OPEN    opens another: OPEN  no change
    CHAINED  that another exception of it follows   opens another: OPEN    without id: ASIDE    ends a traceback: WHOLE
    ASIDE    frames of another moment of it follow  is counted only        opens another: OPEN  ends a traceback: WHOLE

A heading of a process leads from every state to CLOSED.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Type

from gdbext.knowledge.log_lines import RANK
from gdbext.knowledge.log_lines.last_words import PROMPT
from gdbext.knowledge.log_lines.writers import FATAL_OF_UCX
from gdbext.model.text.patterns import regex
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.assemble.joined_headings import merge_mention
from gdbext.parsers.assemble.processes import ProcessList
from gdbext.parsers.assemble.text_limits import Tally
from gdbext.parsers.assemble.threads import Thread
from gdbext.parsers.cleaning import Stream, Unwrapper
from gdbext.parsers.formats import GRAMMAR
from gdbext.parsers.line_events import (
    Chain,
    Chained,
    Code,
    Detail,
    DeviceFocus,
    Event,
    FrameLine,
    FramesMissing,
    Interrupted,
    Location,
    LogMessage,
    OtherStack,
    Passed,
    ProcessHead,
    Prompt,
    Raised,
    Several,
    Standing,
    Stopped,
    ThreadHead,
    Trace,
)

MOST_THREADS = 300_000
MOST_FRAMES = 2_000_000
_MOST_DYING = 1024
_FIRST = 1
"""The main thread of every container: no identity."""


_LISTED = {False: ("faulthandler", "gdb"), True: ("faulthandler", "gdb", "traceback")}
"""Stacks that may be of threads which did not die, after a fatal signal and after CPython's own word of one."""
_OF_UCX = regex(rf"\[[^\]\s]{{1,80}}:\d{{1,9}} {{0,9}}:\w{{1,6}}:(?P<hit>\d{{1,9}})\] Caught signal|{FATAL_OF_UCX}")
"""UCX's word of a signal, whose stack follows with the number of its thread: several ranks may die at once."""
_THROWN_BY = regex(rf"\s{{0,8}}what\(\): {{0,4}}.{{0,80}}?{RANK}")
"""The words of torch's exception that ends a process; the stack of it follows."""
_AT_PROMPTS = ("gdb", "lldb")
_OF_A_CORE = "Program terminated with signal"
"""gdb's word for a core, in which the thread that died is the first."""


class State(enum.Enum):
    """What the next frame would belong to; see the table above."""

    CLOSED = enum.auto()
    OPEN = enum.auto()
    WHOLE = enum.auto()
    CHAINED = enum.auto()
    ASIDE = enum.auto()


class Assembler:
    """Feed it the lines of one writer; `processes` has what they showed, `messages` what is of somebody else.

    Beside the state it knows the thread that was read last (None once a process begins), the tool that prints at the
    moment, what prose before a stack said of it, and a fatal message whose stack is still to come.
    """

    def __init__(self, stream: Stream, tally: Tally) -> None:
        self.stream = stream
        self._roll = ProcessList(stream)
        self._tally = tally
        self._unwrapper = Unwrapper()
        self._state = State.CLOSED
        self._thread: Optional[Thread] = None
        self._tool = ""  # the kind of stack that lines are read as
        self._mention: Optional[ThreadHead] = None
        self._fatal: Optional[LogMessage] = None
        self._dying: Dict[str, LogMessage] = {}  # by the thread that a signal has hit
        self._thrown_by: Optional[int] = None  # the rank whose exception ends its process, where the words say so
        self._beside = ""  # what was said of the stack that comes
        self._writer = ""
        self._repeated = ""  # behind the line at hand
        self._device = ""  # where cuda-gdb shows a thread of the GPU: how it says so
        self._is_interrupted = False
        self._has_commands = False  # somebody typed at a debugger: frames are printed again by `up` and `frame 3`
        self._asked = False  # the last of them asks which thread is selected
        self._debugger = ""  # at whose prompt they were typed
        self._taking: Dict[Type[Event], Callable[..., None]] = {
            ThreadHead: self._head,
            ProcessHead: self._process_head,
            LogMessage: self._say,
            Chain: self._whole,
            Trace: self._trace,
            Chained: lambda event, tool: self._set_aside(State.CHAINED),
            OtherStack: lambda event, tool: self._set_aside(State.ASIDE, event.about),
            FramesMissing: self._cut,
            Prompt: self._command,
            Interrupted: self._interrupt,
            Standing: self._stands,
            DeviceFocus: self._look_at_device,
            Stopped: self._stop,
            Raised: self._raise,
            Passed: lambda event, tool: self._roll.passed(event),
            Location: self._locate,
            Several: self._take_several,
            Code: self._source_line,
            Detail: lambda event, tool: None,
        }

    @property
    def processes(self) -> List[Process]:
        return self._roll.processes

    @property
    def messages(self) -> List[LogMessage]:
        return self._roll.messages

    def feed(self, line: str, error: bool = False, repeated: str = "") -> None:
        """Take a line. `error`: a logger has printed it as one. `repeated`: how often Ray counted it."""
        for whole in self._unwrapper.feed(line):
            self._repeated = repeated if whole == line else ""
            self._take(whole)
        self._repeated = ""
        if error and self._thread is not None:
            self._thread.logged = True  # what a logger calls an error is hardly a look at a thread that lives

    def line_is_cut(self, rest: str) -> bool:
        """Whether a terminal has broken the last line, and `rest` goes on with it."""
        return self._unwrapper.continues(rest)

    def then_died(self, pid: int) -> None:
        """Behind the last stack the handler of another library names who died: that is of the same process."""
        if self._tool == "ucx" and self._roll.here is not None:
            self._roll.here.died_as = pid

    def finish(self) -> None:
        for whole in self._unwrapper.flush():
            self._take(whole)
        if self._fatal is not None:
            self._roll.tell(replace(self._fatal, about=""))
        if self._is_interrupted:
            self._roll.interrupted()
        self._roll.apart()

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        found = GRAMMAR.read(line, self._tool)
        if found is None:
            self._mention = None
            self._tally.other(line)
            return
        tool, event = found
        if isinstance(event, FrameLine):
            self._frame(event, tool or self._tool)
            self._mention = None
            return
        if not isinstance(event, (ThreadHead, Prompt, Detail, DeviceFocus, Code)):
            self._mention = None
        if (isinstance(event, LogMessage) and not event.text) or (isinstance(event, ProcessHead) and event.writer):
            self._tally.unknown(line)
        self._taking[type(event)](event, tool)

    def _take_several(self, several: Several, tool: str) -> None:
        for event in several.events:
            if isinstance(event, FrameLine):
                self._frame(event, tool or self._tool)
            else:
                self._taking[type(event)](event, tool)

    # Processes --------------------------------------------------------------------------------------------------------

    def _process_head(self, head: ProcessHead, tool: str) -> None:
        here = self._roll.here
        if head.ends:
            if here is not None and self._roll.pending is None and here.head.pid in (None, head.pid):
                here.head = replace(here.head, pid=head.pid)
                self._begin(ProcessHead())
        elif head.firm:
            self._begin(head)
        elif head.writer:
            if head.writer != self._writer and here is not None and here.threads:
                self._begin(ProcessHead(title=head.writer))
            self._writer = head.writer
        else:
            self._roll.learn(head)

    def _begin(self, head: ProcessHead) -> None:
        self._thrown_by = None
        self._roll.begin(head)
        self._thread, self._tool, self._state = None, "", State.CLOSED

    # Heads of threads -------------------------------------------------------------------------------------------------

    def _head(self, head: ThreadHead, tool: str) -> None:
        if not head.firm:
            self._mention = head
            return
        self._device, self._thrown_by = "", None
        if self._state is State.CHAINED and head.id is None and self._thread is not None:
            self._state, self._tool = State.ASIDE, tool
            return
        if self._state in (State.CHAINED, State.ASIDE):
            self._state = State.OPEN if self._thread is not None else State.CLOSED
        if self._mention is not None:
            head = merge_mention(head, self._mention)
            self._mention = None
        thread, here = self._thread, self._roll.here
        if tool == "traceback" and head.outermost_first is False and thread is not None and not thread.frames:
            thread.kind = self._tool = tool  # `thread apply all py-bt`: gdb named the thread in the line before
            thread.head = replace(thread.head, outermost_first=False)
            return
        dying = self._dying.pop(head.id or "", None) if tool == "ucx" else None
        if dying is not None:
            self._next_fatal(dying)
            self._begin(ProcessHead(pid=dying.pid))
        elif self._roll.pending is None and here is not None and self._is_elsewhere(here, head, tool):
            self._begin(ProcessHead())
        process = self._roll.of_inferior(head.group)
        if head.stop is not None:
            process.has_gone_on()
        if head.selected and self._stands_alone():
            self._adopt(process, head)
        else:
            self._show(process, head, tool)
        if head.stop is not None and self._roll.here is not None:
            self._roll.here.stop = head.stop
            self._roll.here.stopped += [self._thread] if self._thread is not None else []

    def _show(self, process: Process, head: ThreadHead, tool: str) -> None:
        """Open the thread of a head, or go on with it where the process has it already."""
        known = process.find(head.id)
        same = known is not None and (known.head.lwp is None or head.lwp is None or known.head.lwp == head.lwp)
        same = same and (head.lwp != _FIRST or head.selected)
        if known is not None and head.recurs:
            self._start(replace(head, id=None), tool)
        elif known is not None and same and head.selected:
            self._resume(known, head)
        elif known is not None and same and (known.head.selected or not known.frames):
            known.clear()
            self._resume(known, replace(head, selected=False))
        elif known is not None and not (same and (head.lwp is not None or (tool == "lldb" and self._has_commands))):
            self._begin(ProcessHead())
            self._start(head, tool)
        else:
            self._start(head, tool, known)

    def _is_elsewhere(self, process: Process, head: ThreadHead, tool: str) -> bool:
        """Whether a thread cannot be of this process: it has its main thread, or died before the fatal error said."""
        fatal = tool == "faulthandler" and self._fatal is not None and self._fatal.fatal
        return process.has_its_only(head, tool) or (fatal and process.died)

    def _stands_alone(self) -> bool:
        """Whether the last frame read is the one that gdb shows of a core before it says which thread that is, or
        somebody asked of which thread the stack before is."""
        thread = self._thread
        if thread is None or thread.head.id is not None or thread.kind != "gdb":
            return False
        return len(thread.frames) == 1 or (self._asked and bool(thread.frames))

    def _adopt(self, process: Process, head: ThreadHead) -> None:
        thread = self._thread
        if thread is not None and thread in process.threads and process.find(head.id) is None:
            process.rename(thread, head)
            self._has_commands = True

    def _resume(self, thread: Thread, head: ThreadHead) -> None:
        old = thread.head
        thread.head = replace(
            head, id=old.id or head.id, lwp=head.lwp or old.lwp, name=head.name or old.name, only=old.only or head.only
        )
        thread.complain(head.problem)
        self._thread, self._tool, self._state = thread, thread.kind, State.OPEN

    def _start(self, head: ThreadHead, tool: str, earlier: Optional[Thread] = None) -> Optional[Thread]:
        process = self._roll.opened()
        self._tool = tool
        if self._tally.threads >= MOST_THREADS:
            self._tally.beyond += 1
            self._thread, self._state = None, State.CLOSED
            return None
        self._tally.threads += 1
        if tool in ("ucx", "backtrace") and head.id is None and self._fatal is not None:
            head = _hit_by_ucx(head, self._fatal.text)
        thread = Thread(head=head, kind=tool, superseded=earlier)
        if self._fatal is not None and _died_in(head, tool, self._fatal):
            thread.complain(self._fatal.text)
            self._fatal = None
        thread.complain(head.problem)
        thread.complain(self._device)
        thread.complain(self._beside)
        thread.complain(PROMPT.format(self._debugger) if self._debugger and tool in _AT_PROMPTS else "")
        self._beside = ""
        process.add(thread)
        self._thread, self._state = thread, State.OPEN
        return thread

    # Frames -----------------------------------------------------------------------------------------------------------

    def _frame(self, line: FrameLine, tool: str) -> None:
        thread = self._thread
        if self._state is State.ASIDE:
            if thread is not None:
                thread.leave_out(line.frame)
            return
        if thread is None or self._state is not State.OPEN or self._is_of_another(thread, line, tool):
            thread = self._start(self._head_or_mention(), tool)
        elif self._is_repeated(thread, line):
            return
        elif self._device and line.number == 0 and thread.is_only(line.frame):
            thread.clear()  # where the kernel stands, which its stack begins with
        if thread is None or self._tally.frames >= MOST_FRAMES or not thread.add(line, tool):
            self._tally.beyond += 1
            return
        self._tool = thread.kind
        self._tally.frames += 1

    def _whole(self, chain: Chain, tool: str) -> None:
        """A stack on one line: a thread of its own, or of the head before it."""
        if self._thread is None or self._thread.frames or self._roll.pending is not None:
            self._start(self._head_or_mention(), tool)
        for frame in chain.frames:
            self._frame(FrameLine(frame), tool)
        self._tool, self._state = "", State.WHOLE

    def _trace(self, trace: Trace, tool: str) -> None:
        """A call in a log of calls: the thread stands in the last one."""
        if self._thread is not None and self._thread.kind == tool and self._state is State.OPEN:
            self._thread.clear()
        else:
            self._start(self._head_or_mention(), tool)
        for frame in trace.frames:
            self._frame(FrameLine(frame), tool)

    def _head_or_mention(self) -> ThreadHead:
        """The head of a stack that has none, or only a mention in the prose before it."""
        head = replace(self._mention or ThreadHead(), firm=True)
        here = self._roll.here
        taken = self._roll.pending is None and here is not None and here.find(head.id) is not None
        return replace(head, id=None) if taken else head

    def _is_of_another(self, thread: Thread, line: FrameLine, tool: str) -> bool:
        """Whether a frame cannot continue the stack at hand: its numbers start over, or another tool prints it."""
        if self._roll.pending is not None or (thread.frames and thread.kind and tool != thread.kind):
            return True
        if thread.head.starred is not None and not thread.frames and line.number == 0:
            return True  # gdb prints the stack of the thread that it has selected, which need not be the list's last
        if not self._has_commands and thread.is_reversed(line):
            return False
        if self._mention is not None and thread.frames and (line.number is None or line.number <= thread.last):
            return True
        return line.number is not None and line.number <= thread.last and not self._is_repeated(thread, line)

    def _is_repeated(self, thread: Thread, line: FrameLine) -> bool:
        """Whether `up` or `frame 0` printed a frame again. Without commands in the text, #0 begins a stack."""
        return thread.shows(line) and (line.number != 0 or self._has_commands or len(thread.frames) == 1)

    # Lines about what was read, or comes ------------------------------------------------------------------------------

    def _set_aside(self, state: State, about: str = "") -> None:
        """What follows belongs to the thread at hand, and is not where it stands."""
        if self._thread is not None or state is State.ASIDE:
            self._state = state
        if self._thread is not None:
            self._thread.aside = about

    def _cut(self, cut: FramesMissing, tool: str) -> None:
        if self._thread is not None:
            self._thread.truncated = cut.reason[:120]

    def _command(self, prompt: Prompt, tool: str) -> None:
        self._has_commands = True
        self._asked = prompt.asks
        self._debugger = prompt.debugger

    def _interrupt(self, _: Interrupted, tool: str) -> None:
        self._is_interrupted = True

    def _look_at_device(self, focus: DeviceFocus, tool: str) -> None:
        """What follows are frames of the GPU, or of the host again."""
        if focus.text or self._device:
            self._thread, self._state = None, State.CLOSED
        self._device = focus.text

    def _stands(self, standing: Standing, tool: str) -> None:
        if self._device:
            self._frame(FrameLine(standing.frame), tool or "gdb")
            return
        process = self._roll.opened()
        process.standing = process.standing or standing.frame

    def _stop(self, stopped: Stopped, tool: str) -> None:
        if not stopped.how and (self._roll.here is None or self._roll.pending is not None):
            return
        process = self._roll.opened()
        process.has_gone_on()
        process.stop = stopped.how
        process.standing = stopped.frame or process.standing

    def _raise(self, raised: Raised, tool: str) -> None:
        """The stack of an exception; of one that is thrown again while the first is handled the first one counts."""
        thread, thrown_by, self._thrown_by = self._thread, self._thrown_by, None
        if thread is not None and thread.kind == "torch" and thread.calls_function(raised.function):
            self._roll.tell(LogMessage(raised.text))
            self._set_aside(State.ASIDE)
        elif self._fatal is None:
            here = self._roll.here
            if thrown_by is not None and (here is None or here.head.rank != thrown_by):
                self._begin(ProcessHead(rank=thrown_by))
            self._next_fatal(LogMessage(raised.text, about="next"))

    def _locate(self, place: Location, tool: str) -> None:
        if self._thread is not None and self._thread.frames:
            frame = self._thread.frames[-1]
            self._thread.frames[-1] = replace(frame, file=place.file or frame.file, line=place.line)

    def _source_line(self, code: Code, tool: str) -> None:
        if self._thread is not None and self._state is State.OPEN:
            self._thread.read_source(code.text, code.marked)

    def _say(self, said: LogMessage, tool: str) -> None:
        self._tally.evidence(said.text)
        thread, process = self._thread, self._roll.here
        if said.about == "before" and thread is not None:
            thread.complain(thread.with_condition(said.text))
            thread.ended = True
            if said.rank is not None and process is not None and process.head.rank is None:
                process.head = replace(process.head, rank=said.rank)
            self._tool = ""
            self._state = State.WHOLE if thread.kind == "traceback" else State.OPEN
        elif said.about == "stack":
            self._beside += said.text
        elif said.about == "next":
            said = replace(said, text=f"{said.text}{self._repeated}")
            self._next_fatal(said)
            hit = _OF_UCX.match(said.text)
            dying = (hit.group("hit") or hit.group("tid")) if hit is not None else None
            if dying and len(self._dying) < _MOST_DYING:
                self._dying[dying] = said
            if process is not None and process.head.pid is None and self._tool == "glog":
                process.head = replace(process.head, pid=said.pid)  # the check, then its signal
                self._thread, self._state = None, State.CLOSED
            elif said.pid is not None and (process is None or process.head.pid != said.pid):
                self._begin(ProcessHead(pid=said.pid))
        else:
            thrown = _THROWN_BY.match(said.text)
            self._thrown_by = (
                int(thrown["rank"]) if thrown is not None and self.stream.rank is None else self._thrown_by
            )
            self._roll.tell(said)

    def _next_fatal(self, said: LogMessage) -> None:
        if self._fatal is not None and self._fatal.pid != said.pid:
            self._roll.tell(replace(self._fatal, about=""))  # no stack of that one came
        self._fatal = said


def _hit_by_ucx(head: ThreadHead, text: str) -> ThreadHead:
    """The thread that UCX's word of a signal names, where its stack has no number."""
    hit = _OF_UCX.match(text)
    tid = hit.group("hit") if hit is not None else None
    return head if tid is None else replace(head, id=tid, lwp=int(tid))


def _died_in(head: ThreadHead, tool: str, fatal: LogMessage) -> bool:
    """Whether the fatal message is about this thread. gdb prints the stack of the thread that it has selected without a
    head, or says so; of a list of threads only the first of a core is known to have died."""
    if head.current or tool not in _LISTED[fatal.fatal]:
        return True
    return tool == "gdb" and (
        head.id is None or head.selected or (head.id == "1" and fatal.text.startswith(_OF_A_CORE))
    )
