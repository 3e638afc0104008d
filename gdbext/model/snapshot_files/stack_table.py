"""The stacks of a saved snapshot: each stands once, and threads name it by its number.

    "calls": [frames without their addresses]
    "stacks": [[numbers of calls, innermost first]]
    "offsets": [[addresses of a stack's frames as seen from the first that is known, null where none is]]

A thread has the numbers of its stack and of its offsets: {"stack": 7, "pc": [ADDRESS, 3], "sp": [ADDRESS, 4]}; no "pc"
or "sp" where none is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

from gdbext.model.snapshot_files import limits
from gdbext.model.snapshot_files.data_errors import Unfit
from gdbext.model.stack import Frame, Offsets, Placed, pcs_of, sps_of

T = TypeVar("T")


class StackTable:
    """Gathers stacks. `calls` is yet to be encoded."""

    def __init__(self) -> None:
        self.calls: List[Frame] = []
        self._calls: Dict[Any, int] = {}
        self._stacks: Dict[Tuple[int, ...], int] = {}
        self._offsets: Dict[Offsets, int] = {}
        self._seen: Dict[int, Tuple[Sequence[Frame], int]] = {}

    def rows(self) -> Dict[str, Any]:
        return {"stacks": list(self._stacks), "offsets": list(self._offsets)}

    def place(self, frames: Sequence[Frame]) -> Dict[str, Any]:
        """What a thread with these frames says of them."""
        shared = frames.calls if isinstance(frames, Placed) else frames
        if id(shared) not in self._seen:
            self._seen[id(shared)] = shared, _number(self._stacks, tuple(map(self._call, shared)))
        placed: Dict[str, Any] = {"stack": self._seen[id(shared)][1]}
        for name, (first, offsets) in (("pc", pcs_of(frames)), ("sp", sps_of(frames))):
            if offsets:
                placed[name] = [first, _number(self._offsets, offsets)]
        return placed

    def _call(self, frame: Frame) -> int:
        where = (frame.module, frame.module_offset, frame.file, frame.line)
        key = (frame.function, where, frame.language, frame.inlined, *sorted(frame.captures.items()))
        if key not in self._calls:
            self._calls[key] = len(self.calls)
            self.calls.append(replace(frame, pc=None, sp=None))
        return self._calls[key]


def _number(table: Dict[Tuple[Any, ...], int], row: Tuple[Any, ...]) -> int:
    return table.setdefault(row, len(table))


class _Row(NamedTuple):
    """A row of a table as far as it was kept: what is further out than `limits.FRAMES_OF_A_THREAD` says nothing."""

    kept: Tuple[Any, ...]
    size: int
    least: int = 0  # of offsets
    most: int = 0


class SavedStacks:
    """The tables of a document, by which its threads are read."""

    def __init__(self) -> None:
        self.calls: List[Frame] = []
        self._stacks: List[_Row] = []
        self._offsets: List[_Row] = []

    def add_stack(self, numbers: Sequence[Any], size: int) -> None:
        """A row of `stacks`, or how it begins. Raises `Unfit`."""
        self._stacks.append(_Row(tuple(_item(self.calls, number) for number in numbers), size))

    def add_offsets(self, offsets: Sequence[Any], size: int) -> None:
        """A row of `offsets`, or how it begins. Raises `Unfit`."""
        known = [one for one in offsets if one is not None]
        if not all(type(one) is int and abs(one) <= 2 * limits.INTEGER for one in known):
            raise Unfit("has something that is not an offset of an address")
        self._offsets.append(_Row(tuple(offsets), size, min(known, default=0), max(known, default=0)))

    def frames_of(self, thread: Mapping[str, Any], room: int) -> Tuple[Placed, int]:
        """The innermost frames of a thread, as there is room for, and how many were left out. Raises `Unfit`."""
        try:
            calls, size, _, _ = _item(self._stacks, thread["stack"])
        except Unfit as problem:
            raise problem.within("stack") from None
        pc, pcs = self._place(thread, "pc", size)
        sp, sps = self._place(thread, "sp", size)
        if len(calls) > room:
            calls, pcs, sps = calls[:room], pcs[:room], sps[:room]
        return Placed(calls, pc, pcs, sp, sps), size - len(calls)

    def _place(self, thread: Mapping[str, Any], name: str, size: int) -> Tuple[int, Offsets]:
        place = thread.get(name)
        if place is None:
            return 0, ()
        try:
            if type(place) is not list or len(place) != 2 or type(place[0]) is not int:
                raise Unfit("is not a pair of an address and the number of its offsets")
            first, row = place[0], _item(self._offsets, place[1])
            if row.size != size:
                raise Unfit(f"has {row.size:,} offsets for {size:,} frames")
            if first + row.least < -limits.INTEGER or first + row.most > limits.INTEGER:
                raise Unfit("is not an address")
        except Unfit as problem:
            raise problem.within(name) from None
        return first, row.kept


def _item(table: Sequence[T], number: Any) -> T:
    if type(number) is not int or not 0 <= number < len(table):
        raise Unfit(f"is not a row number: there are {len(table):,}")
    return table[number]
