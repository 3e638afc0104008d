"""A thread while its lines are read: its frames in the order of the text, turned over in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional, Tuple

from gdbext.knowledge.frames.system.checkers import BELOW_PROGRAM, FREED, FREES, RUNTIMES
from gdbext.knowledge.log_lines.last_words import CALLS, CURRENT, CUT_BEHIND, HANDLERS, LOGGED, NULL_CALL, RAISED
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import counted
from gdbext.parsers.line_events import LONGEST_PROBLEM, FrameLine, ThreadHead
from gdbext.parsers.source_line import call_frame

MOST_FRAMES = 1024
"""Frames that are kept of one thread, innermost first; a deep recursion says nothing more behind them."""

MOST_PROBLEMS = 12
_BEGINS = ("<module>", "_bootstrap", "_run_module_as_main", "_main")
_BELOW, _FREES, _RUNTIME = regex(BELOW_PROGRAM), regex(FREES), regex(RUNTIMES)
_RAISE = regex(r"\s{0,200}raise(?:$| \(| [A-Za-z_][\w.]{0,200}(?:$|[\[(]| from ))")
_CALLED = regex(
    r"\s{0,200}(?:(?:return|await|yield) |[\w., ]{1,80} = )?(?P<name>[A-Za-z_][\w.]{0,60})\(.{0,200}\)\s{0,8}$"
)

INTERRUPT = "KeyboardInterrupt"
"""What a Ctrl-C raises: whoever is interrupted was alive, in the wait that the traceback shows."""


@dataclass
class Thread:
    """A thread whose lines are being read. `numbers` are those the text gives its frames."""

    head: ThreadHead
    kind: str = ""
    frames: List[Frame] = field(default_factory=list)
    numbers: List[Optional[int]] = field(default_factory=list)
    addressed: List[bool] = field(default_factory=list)
    reversed: Optional[bool] = None
    problems: List[str] = field(default_factory=list)
    truncated: Optional[str] = None
    dropped: int = 0
    aside: str = ""  # how the place of a stack of another moment is told
    superseded: Optional[Thread] = None  # the same thread, printed earlier
    last: int = -1  # highest frame number so far
    interrupted: bool = False  # by Ctrl-C, as all of its text
    code: str = ""  # source line of the last frame
    ended: bool = False  # the line that ends it was read
    raises: bool = False  # a source line is a `raise`
    runs: str = ""  # the Python frame that the frame read last runs: one function calls another with it
    logged: bool = False  # a logger has called its stack an error
    _shown: Dict[int, Frame] = field(default_factory=dict)

    def add(self, line: FrameLine, kind: str) -> bool:
        """Take a frame; whether there was room for it."""
        self.kind = (self.kind or kind) if self.frames else (kind or self.kind)
        if self.reversed is None:
            self.reversed = line.outermost_first if self.head.outermost_first is None else self.head.outermost_first
        if len(self.frames) >= MOST_FRAMES and not self.reversed:
            self.truncated = f"only the innermost {MOST_FRAMES} frames are kept"
            return False
        runs = line.runs.address if line.runs is not None else ""
        self.frames.append(line.runs.code if line.runs is not None and runs == self.runs else line.frame)
        self.runs = runs
        self.code = ""
        self.numbers.append(line.number)
        if line.number is not None:
            self.last = max(self.last, line.number)
            self._shown[line.number] = line.frame
        self.addressed.append(line.addressed)
        return True

    def leave_out(self, frame: Frame) -> None:
        """Of the stack of another moment: only its place is kept, where the report's reader needs it."""
        self.dropped += 1
        name = frame.function or ""
        if self.aside and _FREES.match(name):
            self.aside = FREED
        elif self.aside and name and not (_BELOW.match(name) or _RUNTIME.match(frame.library or "")):
            file = (frame.file or "").rpartition("/")[2]
            at = f"{file}:{frame.line}" if file else frame.library
            self.complain(f"{self.aside}{name}{f' ({at})' if at else ''}")
            self.aside = ""

    def is_reversed(self, line: FrameLine) -> bool:
        """Whether a stack that began with the outermost frame goes on, as people turn it over: #6, #5, #4."""
        before = self.numbers[-1] if self.numbers else None
        falls = line.number is not None and before is not None and line.number == before - 1
        if not falls or self.numbers[0] != self.last or len(self.numbers) != self.last - before + 1:  # type: ignore[operator]
            return False
        self.reversed = True
        return True

    def shows(self, line: FrameLine) -> bool:
        """Whether this very frame was read already (`up`, `down`, `frame 3` print it again)."""
        frame = None if line.number is None else self._shown.get(line.number)
        return frame is not None and frame.function == line.frame.function and frame.pc in (None, line.frame.pc)

    def read_source(self, line: str, marked: bool = False) -> None:
        """The source line of the frame read last."""
        if self.head.marks_lines and not marked:
            return
        self.code = self.code or line
        self.raises = self.raises or _RAISE.match(line) is not None

    def with_condition(self, text: str) -> str:
        """An exception that says nothing itself, with the `assert` that raised it."""
        code = self.code.strip()
        return f"{text}: {code}" if text == "AssertionError" and code.startswith("assert") else text

    def clear(self) -> None:
        """Forget the frames: the whole stack follows."""
        self.frames, self.numbers, self.addressed = [], [], []
        self.last, self._shown = -1, {}

    def is_only(self, frame: Frame) -> bool:
        """Whether nothing was read but that function."""
        return len(self.frames) == 1 and self.frames[0].function == frame.function

    def places(self) -> Dict[Tuple[str, str], int]:
        """Where the functions of libraries stand, as far as the text tells."""
        return {
            (frame.function, frame.module): frame.pc
            for frame in self.frames
            if frame.function is not None and frame.module is not None and frame.pc is not None
        }

    @property
    def lacks_inner(self) -> bool:
        """Whether the text has lost the innermost frames, by its numbers."""
        return min((number for number in self.numbers if number is not None), default=0) > 0

    def calls_function(self, name: str) -> bool:
        """Whether a function of that name, of any class, is on the stack."""
        return any((frame.function or "").rpartition("::")[2].partition("(")[0] == name for frame in self.frames)

    def complain(self, text: str) -> None:
        if text and len(self.problems) < MOST_PROBLEMS:
            self.problems.append(text[:LONGEST_PROBLEM])

    def finished(self, id: str) -> ThreadStack:
        frames = list(self.frames)
        if not frames and self.head.only is not None:
            frames = [self.head.only]
        frames = self._with_inlining(frames)
        truncated = self.truncated
        if self.code and self.reversed and (self._was_alive() or not self.problems):
            frames += self._called()
        if self.reversed:
            frames.reverse()
            if len(frames) > MOST_FRAMES:
                frames, truncated = frames[:MOST_FRAMES], f"only the innermost {MOST_FRAMES} frames are kept"
        if self.dropped:
            what = (
                "other moments" if self.kind in ("sanitizer", "valgrind") else "exceptions that followed from the first"
            )
            self.complain(f"left out: {counted(self.dropped, 'frame')} of {what}")
        if self.superseded is not None:
            self.complain("this thread is printed more than once; the last print counts")
        head = self.head
        if (head.id is None or self.kind == "ucx") and not (self.kind == "traceback" and self._ended_well()):
            self.complain(self._made_by())
        if self.kind == "traceback" and self.logged:
            called = _CALLED.match(self.code) if self.reversed else None
            self.complain(LOGGED)
            self.complain(CALLS.format(what=f"{called['name']}()") if called is not None else "")
        if self.kind == "faulthandler" and head.current and frames and not self.problems:
            self.complain(CURRENT)
        if len(frames) > 1 and (frames[0].pc, frames[0].function) == (0, None) and frames[1].function:
            self.complain(NULL_CALL)
        gaps = self._gaps()
        problems = (*self.problems, gaps) if gaps else tuple(self.problems)
        return ThreadStack(
            id=id,
            frames=tuple(frames),
            lwp=head.lwp,
            name=head.name,
            state=head.state,
            truncated=truncated,
            gil=head.gil,
            problems=problems,
            numbers=self._own_numbers(len(frames)) if gaps else (),
        )

    def _called(self) -> List[Frame]:
        """What the last source line calls, where C code has no frame. Of a notebook's traceback that is cut the call
        may have had frames: only that of a method is known."""
        cut = self.head.marks_lines and not self.ended
        called = _CALLED.match(self.code)
        frame = None if cut and called is not None and "." not in called["name"] else call_frame(self.code)
        if frame is None and cut:
            self.complain(CUT_BEHIND.format(what=f"a call of {called['name']}()" if called else "that line"))
        elif frame is None and called is not None and self.head.id is not None:
            self.complain(CALLS.format(what=f"{called['name']}()"))
        return [] if frame is None else [frame]

    def _own_numbers(self, count: int) -> Tuple[int, ...]:
        known = sorted({number for number in self.numbers if number is not None})
        return tuple(known) if len(known) == len(self.numbers) == count else ()

    def _with_inlining(self, frames: List[Frame]) -> List[Frame]:
        """gdb prints no address where the callee of a frame is inlined into it, eu-stack the callee's."""
        if not any(frame.pc is not None for frame in frames):
            return frames
        for index in range(1, min(len(frames), len(self.addressed))):
            hidden = self.addressed[index] and frames[index].pc is None and frames[index].function is not None
            if hidden or (self.kind == "eu-stack" and frames[index].pc == frames[index - 1].pc):
                frames[index - 1] = replace(frames[index - 1], inlined=True)
        return frames

    def _was_alive(self) -> bool:
        """Whether a traceback shows where the thread was when somebody looked, or pressed Ctrl-C."""
        return self.interrupted or self.head.id is not None or any(INTERRUPT in one for one in self.problems)

    def _ended_well(self) -> bool:
        """Whether a traceback has its exception, or is none: of a stack that a program prints of itself, which begins
        without a head where the thread does."""
        outward = self.head.outermost_first if self.reversed is None else self.reversed
        return bool(self.problems) or not outward or (self._is_whole() and not self.raises)

    def _is_whole(self) -> bool:
        """Whether it begins where the thread does: who catches an exception and logs it stands further in."""
        return self.head.outermost_first is None and bool(self.frames) and self.frames[0].function in _BEGINS

    def _made_by(self) -> str:
        """What makes stacks of this kind, which have no head of a live thread."""
        if self.kind == "traceback":
            raised = self.raises or (self.logged and not self._is_whole())
            return INTERRUPT if self.interrupted else RAISED if raised else HANDLERS[self.kind]
        return HANDLERS.get(self.kind, "")

    def _gaps(self) -> str:
        """Which frame numbers are missing in the text."""
        seen = sorted({number for number in self.numbers if number is not None})
        gaps: List[str] = []
        expected = 0
        for number in seen:
            if number > expected:
                gaps.append(str(expected) if number == expected + 1 else f"{expected}-{number - 1}")
            expected = number + 1
        if not gaps:
            return ""
        shown = ", ".join(gaps[:8]) + (", ..." if len(gaps) > 8 else "")
        return f"not in the text: frame{'' if shown.isdigit() else 's'} {shown}"
