"""The document of a snapshot file, read piece by piece within the limits of model/limits.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

from gdbext.model import limits
from gdbext.model.consistency import check
from gdbext.model.decoding import MEMBER_NAME, Field, Reader, built, fields_of, place_of, reader
from gdbext.model.errors import GdbextError
from gdbext.model.job import SCHEMA, JobSnapshot, RankSnapshot
from gdbext.model.json_pieces import JsonPieces
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.unfit import Unfit
from gdbext.model.witness import Witness

_FRAME = reader(Frame)
_LIMITS = ("PROCESSES", "THREADS", "FRAMES", "OBJECTS", "TEXTS")
_LEVELS = {"processes": 4, "threads": 2}
"""How deep one has to go into an item of these lists to what is never long."""
_DEEPEST = 8
_LONGEST_TOOL = 40

_Own = Mapping[str, Callable[[], Any]]
_Left = Dict[str, int]
"""How many items of a list were left out."""


class SnapshotReader:
    """Reads one document. `tool` is what wrote it, "" as long as that is not known."""

    def __init__(self, data: bytes) -> None:
        self._text = JsonPieces(data)
        self._room = {name.lower(): getattr(limits, name) for name in _LIMITS}  # for so many more
        self._cut_threads = 0  # of the process that is being read
        self.tool = ""

    def snapshot(self) -> JobSnapshot:
        """What the document has. Raises `Unfit` with the path of a field, as seen from the snapshot, and `GdbextError`
        for a document of another schema."""
        schema, found = None, None
        for name in self._text.names():
            if name == "snapshot":
                found = self._job()
            elif name == "schema":
                schema = self._schema()
            elif name == "tool":
                tool = self._text.value()
                self.tool = tool[:_LONGEST_TOOL] if isinstance(tool, str) else ""
            else:
                self._text.skip(_DEEPEST)
        self._text.end()
        if schema is None or found is None:
            raise Unfit("is missing").within("schema" if schema is None else "snapshot")
        check(found)
        return found

    def _schema(self) -> int:
        schema = self._text.value()
        if type(schema) is not int or not 0 < schema < 1000:
            raise Unfit(f"is not {SCHEMA}").within("schema")
        if schema != SCHEMA:
            raise GdbextError(f"snapshot has schema {schema}, this gdbext reads {SCHEMA}")
        return schema

    def _job(self) -> JobSnapshot:
        left: _Left = {}
        own: _Own = {
            "processes": lambda: self._bounded("processes", self._process, left),
            "earlier": lambda: self._list(self._job),
            "witnesses": lambda: self._list(self._witness),
        }
        found = self._object(JobSnapshot, own)
        if left.get("processes"):
            text = f"{left['processes']:,} processes were left out: at most {limits.PROCESSES:,} are judged"
            found["problems"] = (text, *found.get("problems", ()))
        return built(JobSnapshot, found)

    def _process(self) -> RankSnapshot:
        self._cut_threads = 0
        left: _Left = {}
        found = self._object(RankSnapshot, {"threads": lambda: self._bounded("threads", self._thread, left)})
        problems = []
        if left.get("threads"):
            found["state"] = "partial"
            problems.append(f"{left['threads']:,} threads were left out: at most {limits.THREADS:,} are judged")
        if self._cut_threads:
            problems.append(
                f"the outer frames of {self._cut_threads:,} threads were left out: at most "
                f"{limits.FRAMES_OF_A_THREAD:,} of a thread and {limits.FRAMES:,} of all are judged"
            )
        if problems:
            found["problems"] = (*problems, *found.get("problems", ()))
        return built(RankSnapshot, found)

    def _thread(self) -> ThreadStack:
        left: _Left = {}
        found = self._object(ThreadStack, {"frames": lambda: self._frames(left)})
        if left.get("frames"):
            self._cut_threads += 1
            found["truncated"] = f"the outer {left['frames']:,} frames were left out"
        return built(ThreadStack, found)

    def _witness(self) -> Witness:
        return built(Witness, self._object(Witness, {}))

    def _object(self, kind: Any, own: _Own) -> Dict[str, Any]:
        """The fields of an object that may be long: some of them read in a way of their `own`."""
        fields = fields_of(kind)
        found: Dict[str, Any] = {}
        for name in self._text.names():
            field = fields.get(name)
            try:
                if name in found:
                    raise Unfit("is there twice")
                if field is None:  # of a later release
                    self._text.skip(_DEEPEST)
                elif name in own:
                    found[name] = own[name]()
                else:
                    found[name] = self._field(field)
            except Unfit as problem:
                raise problem.within(name) from None
        return found

    def _field(self, field: Field) -> Any:
        if field.item is not None:
            item = field.item
            return self._list(lambda: item(self._text.value()), "objects" if field.objects else "texts")
        return field.read(self._text.value()) if field.member is None else self._mapping(field.member)

    def _list(self, one: Callable[[], Any], what: str = "objects") -> Tuple[Any, ...]:
        kept = []
        for number in self._text.items():
            try:
                self._take(what)
                kept.append(one())
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None
        return tuple(kept)

    def _mapping(self, one: Reader) -> Dict[str, Any]:
        kept = {}
        for name in self._text.names():
            try:
                self._take("texts")
                kept[MEMBER_NAME(name)] = one(self._text.value())
            except Unfit as problem:
                raise problem.within(place_of(name)) from None
        return kept

    def _take(self, what: str) -> None:
        if not self._room[what]:
            raise Unfit(f"is one too many: at most {getattr(limits, what.upper()):,} {what} are read")
        self._room[what] -= 1

    def _bounded(self, what: str, one: Callable[[], Any], left: _Left) -> Tuple[Any, ...]:
        """A list of long objects, as far as there is room for them; `left` is told how many are left out."""
        kept: List[Any] = []
        for number in self._text.items():
            try:
                if self._room[what]:
                    self._room[what] -= 1
                    kept.append(one())
                else:
                    left[what] = left.get(what, 0) + 1
                    self._text.skip(_LEVELS[what])
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None
        return tuple(kept)

    def _frames(self, left: _Left) -> Tuple[Frame, ...]:
        kept: List[Frame] = []
        room = min(limits.FRAMES_OF_A_THREAD, self._room["frames"])
        number = -1
        for number, data in enumerate(self._text.values()):
            try:
                if number < room:
                    kept.append(_FRAME(data))
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None
        self._room["frames"] -= len(kept)
        left["frames"] = number + 1 - len(kept)
        return tuple(kept)
