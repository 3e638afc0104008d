"""The thread of a process that does the work and whose wait explains the standstill."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.stacks.thread_kind import group_of
from gdbext.knowledge.causes.held_by_frames import EXITS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.log_lines.last_words import FATAL_ERROR
from gdbext.model.codes import Given
from gdbext.model.job import RankSnapshot
from gdbext.model.stack import ThreadStack
from gdbext.model.text.digits import is_whole
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import ThreadJudgement, grouped

# How much a wait explains: (on the main thread, on another one). Work for the GPU explains most, a pool least.
_KIND_WEIGHTS = {
    "fatal": (100, 100),
    "implicit": (84, 84),
    "collective": (82, 82),
    "launch": (81, 81),
    "device": (80, 80),
    "init": (79, 79),
    "teardown": (78, 78),
    "lock": (60, 25),
    "elsewhere": (50, 15),
    "unknown": (14, 4),  # a main thread that nobody knows says more than a side thread that listens
}
_IDLE = 20
_FOR_ANOTHER = {"python-backward": 29}
_JOINS = {"os-join": 24, "python-join": 24, "go-join": 24}
"""Rules of a main thread that waits for a thread of its own process: one that works, or waits for a lock, decides. Of a
text: of what was read alive the graph has whom it waits for."""
_KINDS = {
    "condvar-idle": (45, 10),
    "io": (50, 12),
    "python-code": (50, 30),
    "native-compute": (50, 40),
    "gil": (55, 24),
}
_AT_WORK = ("python-code", "native-compute")
"""Of two side threads in such code one that runs says more."""
_NAPS = 16
"""A side thread that sleeps for as long as it chose, and looks again and again: an idle main one says more."""
_HELPER = (1, 0)
_EXIT = regex(EXITS)
_LONG_IDS = ("text:backtrace", "text:faulthandler", "text:openmpi", "text:traceback", "text:ucx")
_FEW = 4
"""Digits of a number that a debugger counts threads with; ids of threads have more."""
_MAIN_FUNCTIONS = (
    "main",
    "_start",
    "__libc_start_main",
    "Py_BytesMain",
    "pymain_run_python",
    "Py_RunMain",
    "__libc_start_call_main",
)


def decisive_thread(process: RankSnapshot, judged: Sequence[ThreadJudgement]) -> Optional[int]:
    """Position of the decisive thread; None when no thread has a frame or a judgement that says anything."""
    best: Optional[Tuple[int, int, int, int]] = None
    parts = _parts(process)
    others = _FOR_ANOTHER if process.given is not Given.TEXT else {**_FOR_ANOTHER, **_JOINS}
    named = {at for at, one in enumerate(process.threads) if _is_named(one) and group_of(judged[at]) == "fatal"}
    mains = named or {position for position, thread in enumerate(process.threads) if is_main(process, thread)}
    for judgement, positions in grouped(judged):
        for main in (True, False):
            says = [one for one in positions if (one in mains) == main and _says(process, one, judgement)]
            first = min(says, key=lambda one: (one in parts, one), default=None)
            if first is not None:
                naps = process.given is Given.LIVE and not main and judgement.rule in OWN_SLEEPS
                weight = _NAPS if naps else _weight(judgement, main, others)
                key = (weight, int(first not in parts), int(main), -first)
                best = key if best is None else max(best, key)
    if best is None or _may_be_another(process, judged, best[0], bool(best[2])):
        return None
    return -best[3] if best[0] > _KIND_WEIGHTS["elsewhere"][0] else _exiting(process, judged, -best[3])


def _exiting(process: RankSnapshot, judged: Sequence[ThreadJudgement], chosen: int) -> int:
    """The side thread that ends the process from within a call of exit(), where the main one only waits."""
    if process.given is not Given.LIVE:
        return chosen
    first: Dict[int, int] = {}  # by stack, of which many threads may share one
    for at, one in enumerate(judged):
        if at != chosen and one.helper is None:
            first.setdefault(id(process.threads[at].calls), at)
    return next((at for at in first.values() if exits(process.threads[at])), chosen)


def exits(thread: ThreadStack) -> bool:
    """Whether it is inside of a call that ends its process."""
    return any(_EXIT.match(frame.function or "") for frame in thread.calls)


def _is_named(thread: ThreadStack) -> bool:
    """Whether CPython's fatal error names this thread as the one that died: nobody else is the one, whatever it ran."""
    return any(problem.startswith(FATAL_ERROR) for problem in thread.problems)


def _says(process: RankSnapshot, position: int, judged: ThreadJudgement) -> bool:
    return judged.kind != "unknown" or bool(process.threads[position].calls)


def _may_be_another(process: RankSnapshot, judged: Sequence[ThreadJudgement], weight: int, main: bool) -> bool:
    """Whether a thread that was not read (it ran, and nobody was stopped) may be the one that does the work. A call
    that explains the standstill by itself decides all the same, and so does a main thread that does something."""
    if weight >= _KIND_WEIGHTS["teardown"][0] or (main and weight >= _KIND_WEIGHTS["elsewhere"][0]):
        return False
    return any(thread.unread and one.helper is None for thread, one in zip(process.threads, judged))


def _weight(judged: ThreadJudgement, main: bool, others: Mapping[str, int]) -> int:
    if judged.helper is not None:
        fatal = group_of(judged) == "fatal"
        return 100 if fatal else _HELPER[0] if judged.rule or judged.running else _HELPER[1]
    if judged.idle:
        return _IDLE + int(main)
    if main and judged.rule is not None and judged.rule in others:
        return others[judged.rule]
    pair = _KINDS.get(judged.kind) or _KIND_WEIGHTS[group_of(judged)]
    return pair[0] if main else pair[1] + int(judged.running and judged.kind in _AT_WORK)


def is_main(process: RankSnapshot, thread: ThreadStack) -> bool:
    """Whether it is the thread the process began with: by its id, its name, or how its stack begins."""
    if thread.lwp is not None and process.pid is not None:
        return thread.lwp == process.pid
    if thread.name == "MainThread" or (process.pid is not None and thread.id == str(process.pid)):
        return True
    outer = thread.calls[-3:]
    if any(frame.function in _MAIN_FUNCTIONS or frame.function == "<module>" for frame in outer):
        return True
    return thread.id == "1" and process.source not in ("text:py-spy",) and not _parts(process)


def lacks_head(process: RankSnapshot, thread: ThreadStack) -> bool:
    """Whether the number of a thread is ours, where the text names threads by long ids and has lost this one's."""
    return any(process.threads[number] is thread for number in _parts(process))


def _parts(process: RankSnapshot) -> Tuple[int, ...]:
    """Where a stack has lost its head, and with it who it is of, among threads that a tool has named by long ids: the
    short ones are ours."""
    if process.source not in _LONG_IDS:
        return ()
    short = tuple(
        number
        for number, one in enumerate(process.threads)
        if is_whole(one.id) and len(one.id) <= _FEW and one.lwp is None and one.name is None
    )
    return () if len(short) == len(process.threads) else short
