"""One stack of two: Python frames in place of the interpreter's frames that execute them.

A native eval frame executes one group of Python frames, so the n-th eval frame of the native stack becomes the n-th
group. Where the counts differ, only what can be proved from one end is paired; the rest is shown and said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.knowledge.runtimes.cpython_frames import (
    CLONE_SUFFIX,
    EVAL_FUNCTIONS,
    INTERPRETER_FILES,
    KEPT,
    MACHINERY,
    STANDARD_LIBRARY_PATHS,
)
from gdbext.model.python import PythonThread
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_FILE, _STANDARD_LIBRARY, _MACHINERY, _KEPT = (
    regex("|".join(f"(?:{pattern})" for pattern in patterns))
    for patterns in (INTERPRETER_FILES, STANDARD_LIBRARY_PATHS, MACHINERY, KEPT)
)
_SUFFIX = regex(CLONE_SUFFIX)

Group = Tuple[Frame, ...]


def interleave(native: ThreadStack, python: PythonThread) -> ThreadStack:
    """The stack of a thread with its Python frames in it and the interpreter's own frames folded away.

    What means something stays: libraries, extension modules, waits for the GIL. When eval frames and groups do not
    match, `problems` of the result says how far the order of the stack can be relied on.
    """
    groups = list(python.groups)
    if not any(groups):
        return replace(native, gil=python.gil)
    frames = native.frames
    evals = _eval_frames(frames)
    placed, problems = _place(native, python, evals, groups)
    merged, numbers = _merge(frames, evals, placed)
    return replace(
        native,
        frames=tuple(merged),
        still=None if native.still is None else numbers[native.still],
        left=None if native.left is None else numbers[native.left],
        gil=python.gil,
        marks=python.marks,
        lengths=python.lengths,
        loops=python.loops,
        truncated=native.truncated or python.truncated,
        problems=native.problems + problems,
    )


def python_frame_at(native: ThreadStack, python: PythonThread, index: int) -> int:
    """The number of the innermost Python frame that is executed by a native frame or by one outside of it, counted from
    the innermost Python frame on; 0 where no frame of the interpreter has a name."""
    evals, groups = _eval_frames(native.frames), list(python.groups)
    if not evals or not any(groups):
        return 0
    placed, _ = _place(native, python, evals, groups)
    inside = sum(len(group) for place, group in placed.items() if place < index)
    return min(inside, len(python.frames) - 1)


def interleave_all(stacks: Iterable[ThreadStack], python: Mapping[int, PythonThread]) -> Tuple[ThreadStack, ...]:
    """The stacks of a process with its Python frames, by thread id; threads without a native stack come last."""
    whole: List[ThreadStack] = []
    seen: Set[int] = set()
    for stack in stacks:
        found = None if stack.lwp is None else python.get(stack.lwp)
        whole.append(interleave(stack, found) if found else stack)
        seen.add(stack.lwp or 0)
    whole += [
        interleave(ThreadStack(id=str(tid), frames=(), lwp=tid), one) for tid, one in python.items() if tid not in seen
    ]
    return tuple(whole)


# --- which frames are the interpreter's ---


def _name(frame: Frame) -> str:
    return _SUFFIX.sub("", frame.function or "")


def _in_interpreter(frame: Frame) -> bool:
    return frame.library is not None and _FILE.fullmatch(frame.library) is not None


def _in_standard_library(frame: Frame) -> bool:
    return frame.module is not None and _STANDARD_LIBRARY.fullmatch(frame.module) is not None


def _eval_frames(frames: Sequence[Frame]) -> List[int]:
    """Indexes of the frames that execute Python code, innermost first."""
    for function in EVAL_FUNCTIONS:
        found = [index for index, frame in enumerate(frames) if _name(frame) == function and not frame.inlined]
        if found:
            return found
    return []


def _nameless(frame: Frame) -> bool:
    return frame.function is None and _in_interpreter(frame)


def _folded(frame: Frame, calling: bool, homes: Sequence[Optional[str]]) -> bool:
    """Whether a frame goes. `calling`: Python frames lie further in, so that all it did was to call them."""
    name = _name(frame)
    if name and _KEPT.fullmatch(name):
        return False
    if calling and (_in_interpreter(frame) or _in_standard_library(frame)):
        return True
    at_home = frame.module is None or frame.module in homes or _in_interpreter(frame)
    return _nameless(frame) or (at_home and bool(name) and _MACHINERY.fullmatch(name) is not None)


# --- which group goes where ---

Placed = Dict[int, Group]
"""Native frame index -> Python frames that take its place. The index behind the last frame stands for the outer end."""


def _place(
    native: ThreadStack, python: PythonThread, evals: List[int], groups: List[Group]
) -> Tuple[Placed, Tuple[str, ...]]:
    frames = native.frames
    if len(evals) == len(groups):
        return dict(zip(evals, groups)), ()
    if not frames:
        return {0: _joined(groups)}, ()
    if not evals:
        return {_first_folded_frame(frames): _joined(groups)}, (
            "no frame of the interpreter has a name: where Python frames lie between native ones is not known",
        )
    difference = f"{len(evals)} eval frames for {len(groups)} groups of Python frames"
    if python.truncated and len(evals) > len(groups):
        return dict(zip(evals, groups)), (f"the Python stack is cut off: {difference}",)
    if len(evals) > len(groups):
        # An eval frame that just begins has no Python frame yet; such a frame is an innermost one.
        extra = len(evals) - len(groups)
        return dict(zip(evals[extra:], groups)), (f"{difference}: paired from the outermost",)
    if native.truncated:
        paired = dict(zip(evals, groups))
        paired[len(frames)] = _joined(groups[len(evals) :])
        return paired, (f"the native stack is cut off: {difference}, the outermost Python frames follow it",)
    return _place_among_nameless(frames, evals, groups, difference, whole=not python.truncated)


def _first_folded_frame(frames: Sequence[Frame]) -> int:
    """Where Python frames go when no eval frame is known: behind the innermost frames that mean something."""
    for index, frame in enumerate(frames):
        if _folded(frame, calling=False, homes=()):
            return index
    return len(frames)


def _place_among_nameless(
    frames: Sequence[Frame], evals: List[int], groups: List[Group], difference: str, whole: bool
) -> Tuple[Placed, Tuple[str, ...]]:
    """Fewer eval frames than groups: frames without a name may be eval frames too (split-off parts of a stripped one).

    Up to the first such frame from either end the pairs are certain; what lies between is put together. The outer end
    counts only when the Python stack is `whole`.
    """
    nameless = [index for index, frame in enumerate(frames) if _nameless(frame)]
    candidates = sorted(evals + nameless)
    if len(candidates) == len(groups):
        return dict(zip(candidates, groups)), ()
    first = nameless[0] if nameless else len(frames)
    last = nameless[-1] if nameless else -1
    inner = [index for index in evals if index < first]
    outer = [index for index in evals if index > last and index not in inner] if whole else []
    middle_evals = evals[len(inner) : len(evals) - len(outer)]
    placed: Placed = dict(zip(inner, groups))
    placed.update(zip(outer, groups[len(groups) - len(outer) :]))
    rest = groups[len(inner) : len(groups) - len(outer)]
    anchor = min([*middle_evals, *nameless], default=len(frames))
    placed[anchor] = _joined(rest)
    for index in middle_evals:
        placed.setdefault(index, ())
    return placed, (f"{difference}: those between the certain pairs are shown together",)


def _joined(groups: Sequence[Group]) -> Group:
    return tuple(frame for group in groups for frame in group)


def _merge(frames: Sequence[Frame], evals: Sequence[int], placed: Placed) -> Tuple[List[Frame], List[int]]:
    """The frames, and the new number of each native one; of one that goes, that of the next one further out."""
    homes = [frames[index].module for index in evals]  # a program that contains the interpreter, whatever its name
    merged: List[Frame] = []
    numbers: List[int] = []
    calling = False
    for index, frame in enumerate(frames):
        numbers.append(len(merged))
        if index in placed:
            # They run in this call of the interpreter, so they lie where it lies on the stack.
            merged += [replace(python, sp=frame.sp) for python in placed[index]]
            calling = True
        elif index in evals or not _folded(frame, calling, homes):
            merged.append(frame)
    merged += placed.get(len(frames), ())
    return merged, [*numbers, len(merged)]
