"""What the names of functions further out tell of a lone wait: work that was begun, a lock that is held."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from gdbext.analysis.stacks.thread_kind import known_frames
from gdbext.knowledge.frames.system.code_owners import BEGUN_CALLS, BEGUN_WORK, LOOPS_FOR_WORK, RUNS_LOCKED
from gdbext.model.job import RankSnapshot
from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex

_calls = regex(BEGUN_CALLS)
_begun, _loop, _locked, _templates = map(regex, (BEGUN_WORK, LOOPS_FOR_WORK, RUNS_LOCKED, r"<[^<>]*>"))
_DEEPEST = 8  # template arguments within template arguments
_ID = 10_000
"""Numbers from here on are no debugger's, but ids that the kernel gave."""
_COUNT_THREADS = ("text:gdb", "text:lldb")
"""Debuggers whose numbers of threads begin with 1, the main thread."""


def begun_work(calls: Sequence[Frame]) -> Optional[Frame]:
    """The innermost function that is called like work which somebody began; none where a loop for work is nearer."""
    for frame, name in _own(calls):
        if _begun.search(name) or _calls.match(frame.function or ""):
            return frame
        if _loop.search(name):
            return None
    return None


def is_wait(frame: Frame) -> bool:
    """Whether its own name says that it waits."""
    return _last(frame.function or "").lower().startswith("wait")


def runs_locked(calls: Sequence[Frame]) -> Optional[Frame]:
    """Who has, by its name, a lock already, among the callers of the function that asks for one."""
    return next((frame for frame, name in _own(calls)[1:] if _locked.match(name)), None)


def lacks_main(process: RankSnapshot) -> bool:
    """Whether a debugger has numbered the threads, and the first is not among them."""
    numbers = [integer_or_none(thread.id) or 0 for thread in process.threads]
    return process.source in _COUNT_THREADS and bool(numbers) and all(1 < number < _ID for number in numbers)


def _own(calls: Sequence[Frame]) -> Sequence[Tuple[Frame, str]]:
    """Frames that are no C library's, with their function's own name."""
    known = known_frames(calls)
    return [(frame, _last(one.name)) for frame, one in zip(calls, known) if one.name and not (one.system or one.entry)]


def _last(name: str) -> str:
    """`Init` of `ns::Pool<int>::Init`."""
    for _ in range(_DEEPEST):
        name, changed = _templates.subn("", name)
        if not changed:
            break
    return name.rpartition("::")[2].rpartition(".")[2]
