"""Stacks as rows that they share: of 15,000 frames of a job, a few hundred differ in more than where their stack lies.

Writing and reading them one by one took longer than unwinding them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from gdbext.model.snapshot_files.codec import decode, encode
from gdbext.model.stack import Frame, Placed, ThreadStack, relative


class FrameTable:
    """Gathers the stacks of several processes. `rows` is plain JSON data that belongs to what `pack` returns."""

    def __init__(self) -> None:
        self.rows: List[Any] = []
        self._numbers: Dict[Tuple[Any, ...], int] = {}

    def pack(self, stacks: Iterable[ThreadStack]) -> List[Any]:
        """Plain JSON data of the stacks, in which a frame is the number of its row and its stack pointer."""
        return [
            {**encode(replace(stack, frames=())), "frames": [[self._number(frame), frame.sp] for frame in stack.frames]}
            for stack in stacks
        ]

    def _number(self, frame: Frame) -> int:
        if frame.captures or frame.language != "native":  # what was captured belongs to one call alone
            return self._new_row(frame)
        key = (frame.pc, frame.function, frame.module, frame.module_offset, frame.file, frame.line, frame.inlined)
        if key not in self._numbers:
            self._numbers[key] = self._new_row(frame)
        return self._numbers[key]

    def _new_row(self, frame: Frame) -> int:
        self.rows.append(encode(replace(frame, sp=None)))
        return len(self.rows) - 1


def unpack(rows: Sequence[Any], threads: Sequence[Any]) -> Tuple[ThreadStack, ...]:
    """The stacks that `pack` took. Raises `ValueError` on data of another shape."""
    return stacks_of(frames_of(rows), threads)


def frames_of(rows: Sequence[Any]) -> Tuple[Frame, ...]:
    """The frames of a table, for the stacks of all processes in it. Raises `ValueError` on data of another shape."""
    frames: Tuple[Frame, ...] = decode(Tuple[Frame, ...], list(rows))
    return frames


def stacks_of(frames: Sequence[Frame], threads: Sequence[Any]) -> Tuple[ThreadStack, ...]:
    """The stacks of one process, equal ones as one object. Raises `ValueError` on data of another shape."""
    known: Dict[Any, Any] = {}
    try:
        return tuple(
            replace(decode(ThreadStack, {**thread, "frames": []}), frames=_placed(frames, thread["frames"], known))
            for thread in threads
        )
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(f"not a table of frames ({error})") from None


def _placed(frames: Sequence[Frame], rows: Sequence[Any], known: Dict[Any, Any]) -> Placed:
    numbers = tuple(number for number, _ in rows)
    pointers = [pointer for _, pointer in rows]
    if any(number < 0 for number in numbers) or not all(one is None or type(one) is int for one in pointers):
        raise ValueError("not a table of frames")
    if numbers not in known:
        known[numbers] = tuple(frames[number] for number in numbers)
    first, offsets = relative(pointers)
    return Placed(known[numbers], 0, (), first, known.setdefault(("offsets", offsets), offsets))
