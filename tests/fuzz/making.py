"""Objects of any dataclass of the model, every field filled by its type."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Mapping
from collections.abc import Sequence as AbstractSequence
from typing import Any, Dict, Sequence, Tuple, Union, get_type_hints

from gdbext.model.codes import Word
from gdbext.model.job import RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.field_rules import RULES

WORDS = ("", "rank 0", "ncclAllReduce", "cudaMallocHost", "libnccl.so.2", "/usr/lib/libcuda.so.1", "all_reduce", "S")
NUMBERS = (0, 1, 2, 3, 7, 4711, 1 << 33)
_DEEP = 6
_NAMES = {"RankSnapshot": RankSnapshot}  # imported for type checkers only, somewhere


@functools.lru_cache(maxsize=None)
def hints_of(kind: type) -> Dict[str, Any]:
    """The types of its fields. Kept: to resolve them anew for each object took most of a campaign's time."""
    return get_type_hints(kind, None, _NAMES)


class Maker:
    """`words` is what texts are chosen of; by default some that mean something to the analysis. `full`: no optional
    value is left out."""

    def __init__(self, chance: random.Random, words: Sequence[str] = WORDS, full: bool = False) -> None:
        self._chance, self._words, self._full = chance, words, full

    def of(self, kind: Any, rule: Any = None, depth: int = 0) -> Any:
        """A value of that type."""
        if dataclasses.is_dataclass(kind):
            hints, rules = hints_of(kind), RULES.get(kind, {})
            names = [field.name for field in dataclasses.fields(kind)]
            return kind(*(self.of(hints[name], rules.get(name), depth + 1) for name in names))
        origin, arguments = getattr(kind, "__origin__", None), getattr(kind, "__args__", ())
        if origin is Union:
            return self.of(self._chance.choice(self._choices(arguments, depth)), rule, depth)
        if origin is AbstractSequence or (origin is tuple and arguments[-1] is Ellipsis):
            return tuple(self.of(arguments[0], rule, depth) for _ in range(self._several(depth)))
        if origin is tuple:
            return tuple(self.of(one, rule, depth) for one in arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {self.of(arguments[0]): self.of(arguments[1], rule, depth) for _ in range(self._several(depth))}
        return self._scalar(kind, rule)

    def _several(self, depth: int) -> int:
        return 0 if depth > _DEEP else self._chance.randint(int(self._full), 2)

    def _choices(self, kinds: Tuple[Any, ...], depth: int) -> Tuple[Any, ...]:
        if self._full and depth <= _DEEP:
            return tuple(one for one in kinds if one not in (type(None), Missing))
        return tuple(one for one in kinds if one in (type(None), Missing)) if depth > _DEEP else kinds

    def _scalar(self, kind: Any, rule: Any) -> Any:
        if isinstance(kind, type) and issubclass(kind, Word):
            return self._chance.choice(list(kind))
        if kind is str and rule is not None and rule.labels:
            return self._chance.choice(rule.labels)
        if kind is str:
            return self._chance.choice(self._words)
        if kind is int:
            return self._chance.choice(NUMBERS)
        if kind is bool:
            return self._chance.random() < 0.5
        if kind in (float, complex):
            return kind(self._chance.choice((0.0, 0.25, 1.5, 900.0)))
        if kind is type(None):
            return None
        raise TypeError(f"nothing is known of {kind}")
