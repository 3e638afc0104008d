"""Objects of any type of the model, built from its annotations: a new type, or a new field, needs no sample of its own.

full(TensorStats)    every field set, two entries in each tuple
bare(TensorStats)    nothing but what the type demands
missing(TensorStats) as full, with `Missing` wherever it may stand
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import typing

from gdbext.model.codes import Word
from gdbext.model.errors import GdbextError
from gdbext.model.job import RankSnapshot  # communicators know it by name only
from gdbext.model.missing import Missing

WORDS = {
    "Point.state": ("hindrance", "warning", "ok"),
    "Frame.language": ("native", "python"),
    "ThreadJudgement.kind": ("mutex", "stream-sync"),
    "Verdict.confidence": ("high",),
    "WatchEvent.kind": ("hang", "no-hang"),
    "Witness.state": ("present", "absent"),
    "NearestAllocation.side": ("after", "inside"),
    "NumberFormat.kind": ("float",),
    "RankSnapshot.after": ("runs", "stopped"),
    "LockWait.kind": ("mutex", "futex"),
    "BreakPoint.others": ("stop", "hold"),
    "CheckReport.engine_frame": (1,),
    "TensorValues.shape": ((2,),),
    "TensorValues.edge_items": (0,),
}
"""Fields of which only some values mean something; several objects in one tuple take them in turns."""
_DEEPEST = 6
_PLAIN = {int: 3, float: 1.5, complex: 1.5 + 0j, bool: True, bytes: b"bytes", object: "object", typing.Any: "any"}


@functools.lru_cache(maxsize=None)
def _hints_of(kind):
    return typing.get_type_hints(kind, localns={"RankSnapshot": RankSnapshot})


class Maker:
    """Makes objects: `fill` sets what could be left out, `lacking` puts `Missing` wherever it is allowed."""

    def __init__(self, fill, lacking=False):
        self._fill, self._lacking = fill, lacking

    def __call__(self, kind, name="", number=0, depth=0):
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if name in WORDS and self._fill:
            return WORDS[name][number % len(WORDS[name])]
        if kind is str:
            return WORDS[name][0] if name in WORDS else name.rpartition(".")[2] or "text"
        if kind is type(None):
            return None
        if kind in _PLAIN:
            return _PLAIN[kind] if kind is not int else _PLAIN[int] + number
        if kind is Missing:
            return Missing("not read")
        if origin is typing.Union:
            return self._one_of(arguments, name, number, depth)
        if origin is tuple:
            return self._tuple(arguments, name, depth)
        if origin in (collections.abc.Sequence, list):
            return [self(arguments[0], name, one, depth + 1) for one in range(2 * self._fill)]
        if origin in (collections.abc.Mapping, dict):
            return {self(arguments[0], name): self(arguments[1], name, 0, depth + 1)} if self._fill else {}
        if origin is frozenset:
            return frozenset({self(arguments[0], name)}) if self._fill else frozenset()
        if isinstance(kind, type) and issubclass(kind, GdbextError):
            return kind("what went wrong", "what to do")
        if isinstance(kind, type) and issubclass(kind, Word):
            return list(kind)[number % len(kind)]
        return self._object(kind, number, depth)

    def _one_of(self, kinds, name, number, depth):
        if self._lacking and Missing in kinds:
            return Missing("not read")
        if type(None) in kinds and (not self._fill or depth > _DEEPEST):
            return None
        rest = [kind for kind in kinds if kind not in (type(None), Missing)]
        return self(rest[number % len(rest)], name, number, depth)

    def _tuple(self, kinds, name, depth):
        if kinds[-1:] != (Ellipsis,):
            return tuple(self(kind, name, 0, depth + 1) for kind in kinds)
        return tuple(self(kinds[0], name, one, depth + 1) for one in range(2 * self._fill * (depth < _DEEPEST)))

    def _object(self, kind, number, depth):
        assert dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"), f"how is a {kind} made?"
        hints = _hints_of(kind)
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        given = {one.name for one in fields if not demands(one)} if not self._fill else set()
        return kind(
            **{
                field: self(hint, f"{kind.__name__}.{field}", number, depth + 1)
                for field, hint in hints.items()
                if field not in given and typing.get_origin(hint) is not typing.ClassVar
            }
        )


def demands(field):
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


full, bare, missing = Maker(True), Maker(False), Maker(True, lacking=True)
