"""The document of a snapshot file, read piece by piece within the limits of model/snapshot_files/limits.py."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

from gdbext.model.codes import ReadState
from gdbext.model.errors import GdbextError
from gdbext.model.job import SAVED, JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files import limits
from gdbext.model.snapshot_files.consistency import check
from gdbext.model.snapshot_files.data_errors import Unfit
from gdbext.model.snapshot_files.fields_from_json import MEMBER_NAME, Field, Reader, built, fields_of, place_of, reader
from gdbext.model.snapshot_files.json_pieces import LONG, JsonPieces
from gdbext.model.snapshot_files.stack_table import SavedStacks
from gdbext.model.snapshot_files.words_before_codes import COMPLETED, refusal_of
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.witness import Witness

_FRAME = reader(Frame)
_OF_THREAD = {name: (field.read, field.item is not None) for name, field in fields_of(ThreadStack).items()}
_LIMITS = ("PROCESSES", "THREADS", "FRAMES", "PLACED", "NUMBERS", "OBJECTS", "TEXTS")
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
        self._stacks = SavedStacks()
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
            raise Unfit(f"is not {SAVED}").within("schema")
        if schema > SAVED:
            raise GdbextError(f"snapshot has schema {schema}, this gdbext reads 1 to {SAVED}")
        return schema

    def _job(self) -> JobSnapshot:
        left: _Left = {}
        own: _Own = {
            "stacks": self._table,
            "processes": lambda: self._bounded("processes", self._process, left),
            "earlier": lambda: self._list(self._job),
            "witnesses": lambda: self._list(self._witness),
        }
        found = self._object(JobSnapshot, own)
        found.pop("stacks", None)
        if left.get("processes"):
            text = f"{left['processes']:,} processes were left out: at most {limits.PROCESSES:,} are judged"
            found["problems"] = (text, *found.get("problems", ()))
        return built(JobSnapshot, found)

    def _table(self) -> None:
        """The stacks of this look and of those before it; they stand before the threads that have them."""
        rows = {"stacks": self._stacks.add_stack, "offsets": self._stacks.add_offsets}
        for name in self._text.names():
            try:
                if name == "calls":
                    self._stacks.calls += self._list(lambda: _FRAME(self._text.value()), "frames")
                elif name in rows:
                    self._list(partial(self._row, rows[name]))
                else:
                    self._text.skip(_DEEPEST)
            except Unfit as problem:
                raise problem.within(name) from None

    def _row(self, add: Callable[[List[Any], int], None]) -> None:
        """A row of numbers, as far as they are kept, and how many there are."""
        kept: List[Any] = []
        size = 0
        for size, number in enumerate(self._text.values(), 1):
            if size <= limits.FRAMES_OF_A_THREAD:
                self._take("numbers")
                kept.append(number)
        add(kept, size)

    def _process(self) -> RankSnapshot:
        self._cut_threads = 0
        left: _Left = {}
        found = self._object(RankSnapshot, {"threads": lambda: self._threads(left)})
        problems = []
        if left.get("threads"):
            found["state"] = ReadState.PARTIAL
            problems.append(f"{left['threads']:,} threads were left out: at most {limits.THREADS:,} are judged")
        if self._cut_threads:
            most = limits.PLACED if self._stacks.calls else limits.FRAMES
            problems.append(
                f"the outer frames of {self._cut_threads:,} threads were left out: at most "
                f"{limits.FRAMES_OF_A_THREAD:,} of a thread and {most:,} of all are judged"
            )
        if problems:
            found["problems"] = (*problems, *found.get("problems", ()))
        return refusal_of(built(RankSnapshot, found))

    def _threads(self, left: _Left) -> Tuple[ThreadStack, ...]:
        """There are many, so those that are short are read in one go."""
        kept: List[ThreadStack] = []
        for number, data in enumerate(self._text.entries()):
            try:
                if self._room["threads"]:
                    self._room["threads"] -= 1
                    kept.append(self._thread(data))
                else:
                    left["threads"] = left.get("threads", 0) + 1
                    if data is LONG:
                        self._text.skip(_LEVELS["threads"])
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None
        return tuple(kept)

    def _thread(self, data: Any) -> ThreadStack:
        left: _Left = {}
        if data is LONG:
            found = self._object(ThreadStack, {"frames": lambda: self._frames(self._text.values(), left)})
        elif type(data) is not dict:
            raise Unfit("is not an object")
        else:
            found = self._fields_of_thread(data, left)
        if left.get("frames"):
            self._cut_threads += 1
            found["truncated"] = f"the outer {left['frames']:,} frames were left out"
        thread: ThreadStack = COMPLETED[ThreadStack](built(ThreadStack, found), found)
        return thread

    def _fields_of_thread(self, data: Mapping[str, Any], left: _Left) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        if "stack" in data:
            room = min(limits.FRAMES_OF_A_THREAD, self._room["placed"])
            found["frames"], left["frames"] = self._stacks.frames_of(data, room)
            self._room["placed"] -= len(found["frames"])
        for name, value in data.items():
            if name not in _OF_THREAD or name in found:
                continue
            read, is_list = _OF_THREAD[name]
            try:
                if name == "frames" and type(value) is list:
                    found[name] = self._frames(value, left)
                else:
                    found[name] = read(value)
                    if is_list:
                        self._take("texts", len(value))
            except Unfit as problem:
                raise problem.within(name) from None
        return found

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
                if name in own:
                    found[name] = own[name]()
                elif field is None:  # of a later release
                    self._text.skip(_DEEPEST)
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

    def _take(self, what: str, count: int = 1) -> None:
        if self._room[what] < count:
            raise Unfit(f"is one too many: at most {getattr(limits, what.upper()):,} {what} are read")
        self._room[what] -= count

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

    def _frames(self, values: Iterable[Any], left: _Left) -> Tuple[Frame, ...]:
        """The frames of a thread that stand in it."""
        kept: List[Frame] = []
        room = min(limits.FRAMES_OF_A_THREAD, self._room["frames"])
        number = -1
        for number, data in enumerate(values):
            try:
                if number < room:
                    kept.append(_FRAME(data))
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None
        self._room["frames"] -= len(kept)
        left["frames"] = number + 1 - len(kept)
        return tuple(kept)
