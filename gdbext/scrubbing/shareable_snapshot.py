"""An answer without the secrets that its texts may hold, for people who have no right to see the processes."""

from __future__ import annotations

import functools
from collections.abc import Mapping as AbstractMapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Dict, Tuple, TypeVar

from gdbext.model.stack import Placed
from gdbext.model.text.digits import is_whole
from gdbext.scrubbing.secrets_in_text import scrub_text

Value = TypeVar("Value")

_scrubbed = functools.lru_cache(maxsize=4096)(scrub_text)


_NO_TEXTS = (int, float, bool)


@functools.lru_cache(maxsize=None)
def _names(kind: type) -> Tuple[str, ...]:
    """Of the fields that an object of that type is made of."""
    return tuple(field.name for field in fields(kind) if field.init)


def shareable(value: Value) -> Value:
    """The same with every text in it scrubbed: names of functions and files as well, whoever chose them."""
    shared: Value = _Scrubbing().of(value)
    return shared


class _Scrubbing:
    """One walk. What is one object stays one: stacks of many threads share their frames."""

    def __init__(self) -> None:
        self._seen: Dict[int, Tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        if type(value) is str:
            if is_whole(value):  # a thread's id: of a large job there are hundreds of thousands
                return value
            scrubbed = _scrubbed(value)
            return value if scrubbed == value else scrubbed  # it stays the same object, as what it stands in does
        if isinstance(value, (str, bytes, int, float, type(None))):  # words of the model are texts of ours
            return value
        if id(value) not in self._seen:
            self._seen[id(value)] = (value, self._inside(value))  # kept: an id is unique while its object lives
        return self._seen[id(value)][1]

    def _inside(self, value: Any) -> Any:
        if isinstance(value, AbstractMapping):
            return {name: self.of(item) for name, item in value.items()}
        if isinstance(value, Placed):
            calls = self.of(value.calls)
            return value if calls is value.calls else Placed(calls, value.pc, value.pcs, value.sp, value.sps)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for name in _names(type(value)):
                old = getattr(value, name)
                if old is None or type(old) in _NO_TEXTS:
                    continue
                new = self.of(old)
                if new is not old:
                    changed[name] = new
            return replace(value, **changed) if changed else value
        if isinstance(value, (tuple, list)):
            items = [self.of(item) for item in value]
            return value if all(new is old for new, old in zip(items, value)) else tuple(items)
        return value
