"""`p x`, `info locals` and IDEs show a tensor in one line, with its parts as children that are read when looked at."""

from __future__ import annotations

from typing import Iterator, List, Tuple, Union

import gdb

from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.inside_gdb.expressions.tensor_access import TensorAccess
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorMapInfo

MOST_SHOWN = 200
"""Values or entries, whatever `print elements` says: a screenful."""
_LONGEST = 300  # characters of a text from the target

Child = Tuple[str, Union[str, gdb.Value]]

access = TensorAccess()


class Printer:
    """One value."""

    def __init__(self, value: gdb.Value) -> None:
        self._value = value

    def _described(self) -> Union[TensorInfo, TensorMapInfo, Missing]:
        try:
            return access.describe(self._value, "")
        except (GdbextError, gdb.error, RuntimeError) as error:
            return Missing(" ".join(str(error).split())[:_LONGEST])

    def to_string(self) -> str:
        return summary(self._described())

    def children(self) -> Iterator[Child]:
        found = self._described()
        if isinstance(found, TensorMapInfo):
            yield from ((f"[{entry.name[:_LONGEST]}]", summary(entry)) for entry in found.entries[: _limit()])
        elif isinstance(found, TensorInfo):
            yield from self._parts(found)

    def _parts(self, info: TensorInfo) -> Iterator[Child]:
        yield "dtype", str(info.dtype)
        yield "shape", _dims(info.shape)
        if info.strides is not None:
            yield "strides", _dims(info.strides)
        yield "where", str(info.where)
        if not isinstance(info.address, Missing):
            yield "data", gdb.Value(info.address).cast(gdb.lookup_type("void").pointer())
        yield "values", _values(info)
        yield from ((part.name, summary(part)) for part in info.parts)


def summary(found: Union[TensorInfo, TensorMapInfo, Missing]) -> str:
    """`fp16 [4, 128] on cpu at 0x55..`, `3 tensors`, or the reason why there is neither."""
    if isinstance(found, Missing):
        return str(found)
    if isinstance(found, TensorMapInfo):
        return f"{found.total} tensor{'' if found.total == 1 else 's'}"
    if isinstance(found.dtype, Missing) and isinstance(found.shape, Missing):
        return f"<{(found.problems or (found.dtype.reason,))[0]}>"
    words: List[str] = [str(found.dtype), _dims(found.shape)]
    if found.strides is not None:
        words.append(f"strides {_dims(found.strides)}")
    words.append(f"on {found.where}")
    words.append(f"at {found.address:#x}" if not isinstance(found.address, Missing) else f"({found.address.reason})")
    return " ".join(words + [f"<{problem}>" for problem in found.problems[:1]])[: 2 * _LONGEST]


def _dims(numbers: object) -> str:
    return str(numbers) if isinstance(numbers, Missing) else str(list(numbers))  # type: ignore[call-overload]


def _limit() -> int:
    wanted = gdb.parameter("print elements")
    return min(wanted if isinstance(wanted, int) and wanted > 0 else MOST_SHOWN, MOST_SHOWN)


def _values(info: TensorInfo) -> str:
    """The first values in the order of the tensor, or why they are not there."""
    try:
        shown = read_values(info, access.read_of(info), threshold=_limit(), edge_items=1)
    except GdbextError as error:
        return f"<{info.unreadable or str(error).lstrip(': ')}>"  # the value has no name here
    limit = _limit()
    text = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in shown.elements[:limit])
    whole = len(shown.elements) <= limit and not shown.edge_items
    return text if whole else f"{text}, ... (llm-tensor p shows more)"
