"""Snapshots of before codes were saved said by their words alone what code depends on. Here these words are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Mapping

from gdbext.model.codes import Code, StackEnd
from gdbext.model.job import RankSnapshot, Refusal
from gdbext.model.locks import LockWait
from gdbext.model.stack import ThreadStack

_REASONS = {
    "it was let go just before the look: the thread is about to run": Code.MOVING,
    "nobody holds it at this moment: it is being handed over": Code.MOVING,
    "glibc has put the thread to sleep for good: the kernel refused its priority-inheriting mutex, because that would "
    "close a circle or the owner has ended": Code.PARKED,
}
_ENDS = {"not read without a stop": StackEnd.RAN, "not read, only what /proc says of it": StackEnd.OUTLINE}
_READERS = "held by "


def code_of(reason: str) -> Code:
    """Of a missing value that was saved without its code."""
    return _REASONS.get(reason, Code.OTHER)


def _stack(stack: ThreadStack, saved: Mapping[str, Any]) -> ThreadStack:
    if stack.truncated is None or stack.frames or "end" in saved:
        return stack
    end = next((end for text, end in _ENDS.items() if stack.truncated.endswith(text)), None)
    return stack if end is None else replace(stack, end=end)


def _wait(wait: LockWait, saved: Mapping[str, Any]) -> LockWait:
    return replace(wait, readers=True) if wait.detail.startswith(_READERS) and "readers" not in saved else wait


def refusal_of(process: RankSnapshot) -> RankSnapshot:
    """A process that nobody could read, with the way out: it stood behind the first problem, in its text."""
    if process.refusal is not None or not process.problems or not process.outlined:
        return process
    text, _, remedy = process.problems[0].partition("; ")
    return replace(process, refusal=Refusal(text, remedy)) if remedy else process


COMPLETED: Mapping[type, Callable[[Any, Mapping[str, Any]], Any]] = {ThreadStack: _stack, LockWait: _wait}
"""Objects with what an earlier release did not save, by the fields that were saved."""
