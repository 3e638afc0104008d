"""A value that could not be had is a value too: it carries the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, TypeVar, Union

from gdbext.model.codes import Code

T = TypeVar("T")


@dataclass(frozen=True)
class Missing:
    """Stands where a value should be, and says why it is not there ("optimized out", "no symbols", ...): in words for
    people, and by a code for what depends on it."""

    reason: str
    code: Code = Code.OTHER

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"<{self.reason}>"


Maybe = Union[T, Missing]


def value_or_none(value: Maybe[T]) -> Optional[T]:
    """The value, or None where it is missing: as documents have it."""
    return None if isinstance(value, Missing) else value
