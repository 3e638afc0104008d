"""What one thread does: the frame that decides, and whether the thread does the work or only serves."""

from __future__ import annotations

import functools
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Pattern, Sequence, Tuple

from gdbext.analysis.stacks.device_threads import device_of
from gdbext.analysis.stacks.frame_facts import FrameBook, Known, without_lies
from gdbext.analysis.stacks.resting_threads import AT_REST, is_resting
from gdbext.analysis.stacks.shown_frames import engine_frame, tells
from gdbext.knowledge.causes.held_by_frames import ENDS, STOPS
from gdbext.knowledge.frame_precedence import API, GIL, LEAF, NAMED, OUTER, SILENT
from gdbext.knowledge.frames import MESSAGES, THREAD_NAMES
from gdbext.knowledge.frames.helper_threads import CALLERS, POOL_SYMBOLS, TASK_POOLS
from gdbext.knowledge.frames.python.interpreter import GIL_SYMBOLS
from gdbext.knowledge.frames.python.python_helpers import WAITS_FOR_WORK
from gdbext.knowledge.frames.python.python_libraries import WORKERS_IN_LOOPS
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.frames.system.libc import ASLEEP, JOINS, STUCK_HANDLER
from gdbext.knowledge.labels import POLLING, RULE_GROUPS, WAIT_GROUPS
from gdbext.knowledge.log_lines import LOG_RULES
from gdbext.knowledge.log_lines.last_words import CURRENT, DUMPS, GO_AT_REST, HANDLERS, LAST_WORDS, UNCAUGHT_LINE
from gdbext.knowledge.row_kinds import EngineProfile, FrameRule
from gdbext.knowledge.runtimes.glibc_locks import SYMBOL
from gdbext.model.missing import Missing
from gdbext.model.stack import Captured, Frame, ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import ThreadJudgement

BUSY = 0.3
"""CPU use (fraction of a core) from which a thread counts as running."""

_COMMUNICATORS = ("comm", "info->comm", "nccl_param.nccl_comm_", "nccl_comm", "comm_")
_MESSAGES = [(regex(rule.pattern), rule.kind) for rule in MESSAGES]
_LOG_RULES = [(regex(rule.pattern), rule) for rule in LOG_RULES if rule.wait]
_TERMINATES = regex(UNCAUGHT_LINE)
_HANDLED = LAST_WORDS.union(HANDLERS.values())
_VAGUE_KINDS = ("unknown", "native-compute", "python-code", "condvar-idle")
_OTHER_INTERPRETER = regex(r"rb_|ruby_|gvl_|vm_exec|switch_(?:core|thread|mutex|queue|loadable)_")  # Ruby, FreeSWITCH
_BY_SYMBOL, _GIL = ("mutex", "condvar-idle", "unknown"), regex(GIL_SYMBOLS)
_RAISED = regex(r"[\w.]{0,200}(?:Error|Exception|Timeout|Expired)(?:\(\w{1,80}\))?(?::|$)")
"""Whoever raises does not wait for work."""
_CUT_INSIDE = regex(r"not in the text: frames? 0\b")  # what it calls there may well wait
_ASLEEP = regex(ASLEEP)
_GO_AT_REST = regex(GO_AT_REST)
_DUMPS, _TASK_POOL = regex(DUMPS), regex(TASK_POOLS)
_END = regex(f"{ENDS}|{STOPS}")
_NAMES = [(regex(row.pattern), row.helper) for row in THREAD_NAMES]
_OWN_THREADS = [(regex(pattern), helper) for pattern, helper in code_owners.OWN_THREADS]
_POOL_SYMBOLS = [(regex(pattern), helper) for pattern, helper in POOL_SYMBOLS]
_BOOK = FrameBook()


class _Reading(NamedTuple):
    """What the frames of a stack alone say. Stacks of equal frames share one."""

    rule: Optional[FrameRule]
    frame: Optional[int]
    helper: Optional[str]  # by frames
    collective: Optional[str]
    python: Optional[int]  # innermost Python frame, where nothing but the C library and the interpreter is inside
    busy: Optional[int]  # innermost frame, where it is code that is not known to wait
    own: bool  # which is code of the program itself
    engine: Optional[int]
    caller: Optional[int]
    innermost: Optional[int]  # the first frame that says more than how it waits


class Judged:
    """Judgements of the threads of a look: those with one stack, of which the same is known, share one."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[object, ...], ThreadJudgement] = {}

    def of(self, thread: ThreadStack, profile: Optional[EngineProfile], messages: Tuple[str, ...]) -> ThreadJudgement:
        calls, cpu = thread.calls, thread.cpu
        busy = cpu if cpu is None else cpu >= BUSY
        about = (thread.name, thread.state, busy, bool(thread.switches), thread.truncated, thread.problems, messages)
        key = (id(calls), profile and profile.name, *about)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = judge_thread(thread, profile, messages)
        return found


def judge_thread(
    thread: ThreadStack, profile: Optional[EngineProfile] = None, messages: Iterable[str] = ()
) -> ThreadJudgement:
    """What `thread` does. `messages` are error lines printed beside its stack (its own problems count as well)."""
    if thread.unread:
        kind = kind_said((*thread.problems, *messages)) or _sleep(thread) or "unknown"
        return ThreadJudgement(kind=kind, helper=_named_helper(thread.name))
    if device_of(thread) is not None:  # no row of the host's functions knows its frames
        return ThreadJudgement(kind=kind_said((*thread.problems, *messages)) or "unknown", frame=0)
    reading = _read(thread.calls, profile)
    rule = reading.rule
    kind, frame, running = _kind(thread, reading)
    helper = reading.helper
    if helper is None and any(map(_GO_AT_REST.match, thread.problems)):
        helper = "Go run-time"
    if helper is None and (rule is None or rule.rank <= LEAF + 2):
        # Without a task the stack of a pool's thread ends in the pool's own code, which rows know.
        has_task = rule is None and reading.python == 0 and _TASK_POOL.match(thread.name or "")
        helper = None if has_task else _named_helper(thread.name)
    if helper and (rule is None or (rule.rank <= LEAF + 2 and kind in ("io", "condvar-idle"))):
        kind, running = "condvar-idle", running and rule is None and kind != "unknown"
    inner = [frame.function or "" for frame in thread.calls[:1]]
    if helper and CURRENT in thread.problems and inner and not _DUMPS.match(inner[0]):
        kind, helper, rule = "python-code", None, None  # whoever takes a signal of its own was at work
    said = kind_said((*thread.problems, *messages))
    if said in ("exited-or-crashed", "unknown") and WAIT_GROUPS[kind] == "fatal":
        said = None  # the frames say of what
    if said is None and not (_HANDLED if kind in _VAGUE_KINDS else _dies_in(kind)).isdisjoint(thread.problems):
        said = "exited-or-crashed"
    if said is None and kind in _VAGUE_KINDS and any(map(_TERMINATES.match, messages)):
        said = "exited-or-crashed"
    if said and rule is not None and rule.kind == "mpi" and rule.rank < API and WAIT_GROUPS[said] == "fatal":
        frame = reading.innermost  # it died in what that wait has called
    captures = _captures(thread.calls)
    others = any(map(_OTHER_INTERPRETER.match, (frame.function or "" for frame in thread.calls)))
    if kind in _BY_SYMBOL and not others and _GIL.match(str(captures.get(SYMBOL, ""))):
        kind = "gil"
    if kind == "condvar-idle" and said is None and helper is None:
        helper = _pool_of(str(captures.get(SYMBOL, "")))
    return ThreadJudgement(
        kind=said or kind,
        frame=frame,
        engine_frame=reading.engine,
        caller=reading.caller,
        collective=reading.collective,
        communicator=_communicator(captures),
        helper=helper,
        idle=bool(rule and rule.idle and not said) and not any(map(_RAISED.match, thread.problems)),
        running=running,
        rule=rule.id if rule else None,
        captures=captures,
    )


def _pool_of(symbol: str) -> Optional[str]:
    """The pool whose threads wait for that variable while they have no work."""
    return next((helper for pattern, helper in _POOL_SYMBOLS if pattern.match(symbol)), None)


def _sleep(thread: ThreadStack) -> Optional[str]:
    """What a thread without a stack waits in that nothing can interrupt, by the kernel's function. Any other sleep may
    have ended since it was read."""
    if thread.state != "D" or not thread.wchan:
        return None
    return next((row.kind for row in rules_matching(Frame(thread.wchan, module="[kernel]"))), None)


def group_of(judged: ThreadJudgement) -> str:
    """What its wait has in common with those of other ranks (labels.WAIT_GROUPS)."""
    group = WAIT_GROUPS[judged.kind]
    return group if group == "fatal" else RULE_GROUPS.get(judged.rule or "") or group


def _dies_in(kind: str) -> FrozenSet[str]:
    """What is printed of a thread that dies, whatever it was in; of what, its frames may say."""
    return frozenset() if WAIT_GROUPS[kind] == "fatal" else LAST_WORDS


def rules_matching(frame: Frame) -> Tuple[FrameRule, ...]:
    """All rules that match a frame by itself, in order."""
    return _BOOK.known_frame(frame).rules


def known_frames(frames: Sequence[Frame]) -> List[Known]:
    """What is known of each frame, lies left out."""
    return without_lies([_BOOK.known_frame(frame) for frame in frames])


def _kind(thread: ThreadStack, reading: _Reading) -> Tuple[str, Optional[int], bool]:
    """(kind, deciding frame, is running). Without a rule: Python code, computing, or nothing known."""
    active = thread.state == "R" or (thread.cpu is not None and thread.cpu >= BUSY)
    if reading.rule is not None and not (active and reading.rule.rank <= NAMED):
        spins = thread.cpu is not None and thread.cpu >= BUSY and reading.rule.rank <= LEAF
        return reading.rule.kind, reading.frame, spins
    if reading.python is not None:
        return "python-code", reading.python, active
    unseen = thread.cpu is None and thread.state is None and reading.own
    # It ran, and the copy found it in code of its own, in no call: wherever it sleeps by now, that is no wait.
    caught = reading.own and reading.busy == 0 and bool(thread.switches)
    if reading.busy is not None and (active or caught or (unseen and not any(map(_CUT_INSIDE.match, thread.problems)))):
        return "native-compute", reading.busy, True
    return "unknown", reading.busy, active


def _named_helper(name: Optional[str]) -> Optional[str]:
    if name:
        for pattern, helper in _NAMES:
            if pattern.match(name):
                return helper
    return None


def kind_said(messages: Iterable[str]) -> Optional[str]:
    """What a thread died or waited in, by lines that were printed beside its stack."""
    lines = tuple(messages)
    return next((kind for pattern, kind in _MESSAGES if any(pattern.search(line) for line in lines)), None)


def kind_of_log(lines: Sequence[str]) -> Optional[str]:
    """Where a process stands of which only log lines were read: by the lines, then by the row that knows one; who
    raised an exception has left the wait that nobody knows."""
    said = kind_said(lines)
    known = (rule.wait for pattern, rule in _LOG_RULES if any(pattern.search(line) for line in lines))
    kind = said or next(filter(None, known), None)
    return "exited-or-crashed" if kind in (None, "unknown") and any(map(_RAISED.match, lines)) else kind


def _captures(frames: Sequence[Frame]) -> Mapping[str, Captured]:
    """Values that the rules asked for; the innermost frame that has one wins."""
    found: Dict[str, Captured] = {}
    for frame in frames:
        for name, value in frame.captures.items():
            if isinstance(found.get(name, Missing("")), Missing):
                found[name] = value
    return found


def _communicator(captures: Mapping[str, Captured]) -> Optional[str]:
    for name in _COMMUNICATORS:
        value = captures.get(name)
        if isinstance(value, int):
            return hex(value)
        if isinstance(value, str):
            return value
    return None


# Reading a stack -----------------------------------------------------------------------------------------------------

_READINGS: Dict[Tuple[object, ...], _Reading] = {}
_MOST_READINGS = 20000  # stacks of different shape remembered; a job has far fewer


def _read(frames: Sequence[Frame], profile: Optional[EngineProfile]) -> _Reading:
    stack = [_BOOK.known_frame(frame) for frame in frames]
    key = (profile.name if profile else None, *map(id, stack))
    reading = _READINGS.get(key)
    if reading is None:
        if len(_READINGS) >= _MOST_READINGS:
            _READINGS.clear()
        reading = _READINGS[key] = _read_new(without_lies(stack), frames, profile)
    return reading


def _read_new(stack: List[Known], frames: Sequence[Frame], profile: Optional[EngineProfile]) -> _Reading:
    rule: Optional[FrameRule] = None
    at: Optional[int] = None
    server: Optional[FrameRule] = None
    collective: Optional[str] = None
    transparent = True  # nothing but nameless and C library frames so far
    quiet = True  # nothing of Python's own, nor of a library, so far
    for number, frame in enumerate(stack):
        alone = quiet if frame.python else transparent
        matching = [row for row in frame.rules if _fits(row, stack, number, alone if row.helper else transparent)]
        for row in matching:
            if row.helper is None and row.rank > SILENT:
                if rule is None or (row.rank > rule.rank and not _stays(rule, row, stack[: (at or 0) + 1])):
                    rule, at = row, number
                break
        if server is None and not _ends(frame.name or ""):
            server = next((row for row in matching if row.helper), None)
        collective = next((row.collective for row in matching if row.collective), collective)
        transparent = transparent and (frame.name is None or frame.system)
        quiet = quiet and (frame.name is None or _is_quiet(frame))
    if server is not None and rule is not None and _does_more(server, rule):
        server = None
    helper = server.helper if server is not None else None if _calls_pool(rule) else _own_thread(stack)
    if helper is None and rule is not None and is_resting(rule, stack):
        helper = AT_REST
    python = next((number for number, frame in enumerate(stack) if frame.python), None)
    if python is not None and any(not _is_interpreter(frame) for frame in stack[:python]):
        python = None
    busy = next((number for number, frame in enumerate(stack) if not (frame.system or frame.entry)), None)
    if busy is not None and (stack[busy].name is None and not _may_compute(stack[busy])):
        busy = None
    own = busy is not None and not stack[busy].vendor
    fatal = rule is not None and WAIT_GROUPS[rule.kind] == "fatal"
    locks = rule is not None and rule.kind == "mutex"
    engine = engine_frame(stack, frames, at or 0, profile, fatal, locks)
    telling = [number for number, frame in enumerate(stack) if tells(frame)]
    caller = next((number for number in telling if number >= (at or 0)), None)
    return _Reading(rule, at, helper, collective, python, busy, own, engine, caller, next(iter(telling), None))


def _stays(rule: FrameRule, outer: FrameRule, inside: Sequence[Known]) -> bool:
    """Whether a wait decides although it stands inside of what weighs more: a handler that no signal comes back from,
    a loop for work where the thread sleeps for a lock, or a library that polls, where it does so or waits for the
    device."""
    if rule.kind in STUCK_HANDLER.get(outer.id, ()):
        return True
    asleep = rule.id == "os-mutex" and any(_ASLEEP.match(one.name or "") for one in inside)
    if outer.kind not in POLLING:
        return asleep and outer.idle
    return asleep or WAIT_GROUPS[rule.kind] == "device"


@functools.lru_cache(maxsize=4096)
def _ends(name: str) -> bool:
    """Whether a function ends something: who ends a pool is no thread of it."""
    return _END.match(name) is not None


def _is_quiet(frame: Known) -> bool:
    """The interpreter, or a wait of Python's standard library: what stands inside a thread that has no work."""
    return any(row.id in WAITS_FOR_WORK for row in frame.rules) if frame.python else _is_interpreter(frame)


def _does_more(server: FrameRule, rule: FrameRule) -> bool:
    """Whether a thread with frames of a helper makes a public call that no helper makes, called the pool itself, or is
    the worker of a library that waits for tasks in its event loop."""
    more = (server.leaf and rule.rank >= API) or OUTER <= rule.rank < GIL or rule.id in WORKERS_IN_LOOPS
    return more or _calls_pool(rule) or rule.id in JOINS


def _calls_pool(rule: Optional[FrameRule]) -> bool:
    return rule is not None and rule.id in CALLERS


def _fits(rule: FrameRule, stack: List[Known], number: int, transparent: bool) -> bool:
    """Whether the conditions of a rule on the neighbours of its frame hold."""
    if rule.leaf and not transparent:
        return False
    if rule.caller and not _called_by(rule.caller, stack, number):
        return False
    if rule.by and not _called_by_function(rule.by, stack, number):
        return False
    if rule.calls:
        pattern = _pattern(rule.calls)
        if any(frame.name is not None and pattern.match(frame.name) for frame in stack[:number]):
            return False
    outer = [frame.name for frame in stack[number + 1 :] if frame.name is not None]
    if rule.not_under and any(map(_pattern(rule.not_under).match, outer)):
        return False
    return not rule.under or any(map(_pattern(rule.under).match, outer))


@functools.lru_cache(maxsize=None)
def _pattern(text: str) -> Pattern[str]:
    return regex(text)


def _called_by(caller: str, stack: List[Known], number: int) -> bool:
    for frame in stack[number + 1 :]:
        if frame.python:
            return caller == "python"
        if caller == "python" and _is_interpreter(frame):
            continue
        if not frame.system and not _COPIES.match(frame.name or ""):
            return caller != "python" and bool(_pattern(caller).match(frame.library))
    return False


def _called_by_function(name: str, stack: List[Known], number: int) -> bool:
    nearest = next((frame.name or "" for frame in stack[number + 1 :] if frame.python), "")
    return bool(_pattern(name).match(nearest.rsplit(".", 1)[-1]))


_COPIES = regex(r"_*(GI_)?_*mem(set|cpy|move|cmp)\w*")
_INTERPRETER = regex(code_owners.INTERPRETER)
_INTERPRETER_MODULE = regex(code_owners.INTERPRETER_MODULES)


def _is_interpreter(frame: Known) -> bool:
    """C library or CPython itself: what may stand between a Python function and its wait."""
    return frame.system or bool(
        _INTERPRETER_MODULE.match(frame.library) or (frame.name and _INTERPRETER.match(frame.name))
    )


_DRIVER = regex(code_owners.DRIVER_MODULES)


def _may_compute(frame: Known) -> bool:
    """A nameless frame on top: running code, unless it is the driver (which polls) or nobody knows whose it is."""
    return bool(frame.library) and not _DRIVER.match(frame.library)


def _own_thread(stack: List[Known]) -> Optional[str]:
    """A thread of a library itself: only nameless frames of one library between the C library and the entry.

    An excerpt without its outer end counts when it sleeps in the kernel: the driver polls the clock for a caller,
    its own threads sleep in poll.
    """
    middle = [frame for frame in stack if not frame.system and not frame.entry]
    if not middle or any(frame.name is not None for frame in middle):
        return None
    complete = stack[-1].entry or stack[-1].system
    asleep = stack[0].name in code_owners.SLEEPS_IN_KERNEL
    if not (complete or asleep):
        return None
    for pattern, helper in _OWN_THREADS:
        if all(pattern.match(frame.library) for frame in middle):
            return helper
    return None
