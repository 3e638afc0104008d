"""Functions for conditions of breakpoints: `$_llm_rank()` and `$_llm_tensor_stat(EXPR, "nan")`."""

from __future__ import annotations

from typing import Callable, Dict, Optional, Union

import gdb

from gdbext.analysis.tensors.statistics.statistics import statistics
from gdbext.commands.tensor_port import Description
from gdbext.debugger.base import memory
from gdbext.debugger.tensors.device_access import DeviceAccess
from gdbext.model.errors import GdbextError
from gdbext.model.tensor import TensorInfo, TensorStats
from gdbext.render import Style
from gdbext.render.safe_text import clean

Number = Union[int, float]

STATISTICS: Dict[str, Callable[[TensorStats], Optional[Union[complex, float]]]] = {
    "nan": lambda stats: stats.nan,
    "inf": lambda stats: stats.positive_infinity + stats.negative_infinity,
    "zeros": lambda stats: stats.zeros,
    "count": lambda stats: stats.count,
    "min": lambda stats: stats.minimum,
    "max": lambda stats: stats.maximum,
    "absmax": lambda stats: stats.absolute_maximum,
    "mean": lambda stats: stats.mean,
    "std": lambda stats: stats.std,
}
"""The names that `$_llm_tensor_stat` takes."""


class RankFunction(gdb.Function):
    """Rank number of the selected inferior: `$_llm_rank() == 3`. -1 when unknown."""

    def __init__(self, rank_of: Callable[[gdb.Inferior], Optional[int]]) -> None:
        self._rank_of = rank_of
        super().__init__("_llm_rank")

    def invoke(self) -> int:
        rank = self._rank_of(gdb.selected_inferior())
        return -1 if rank is None else rank


class TensorStatFunction(gdb.Function):
    """A number about a tensor: `$_llm_tensor_stat(hidden_states, "nan") > 0`.

    The tensor is an expression, or one in quotes: "hidden_states". The number is one of nan, inf, zeros, count, min,
    max, absmax, mean, std.
    """

    def __init__(self, tensors: DeviceAccess) -> None:
        self._tensors = tensors
        super().__init__("_llm_tensor_stat")

    def invoke(self, tensor: gdb.Value, name: gdb.Value) -> Number:
        wanted = _text(name)
        if wanted not in STATISTICS:
            raise gdb.GdbError(f"$_llm_tensor_stat: no {wanted or name}; one of {', '.join(STATISTICS)}")
        memory.forget()  # a condition is asked while the program runs
        expression = _text(tensor)
        try:
            if expression is not None:
                info = self._tensors.evaluate(expression, Description())
            else:
                info = self._tensors.describe(tensor, "the tensor")
            if not isinstance(info, TensorInfo):
                raise GdbextError(f"{info.name} holds {len(info.entries)} tensors", "choose one of them")
            found = STATISTICS[wanted](statistics(info, self._tensors.read_of(info)))
        except GdbextError as error:
            raise gdb.GdbError(f"$_llm_tensor_stat: {clean(str(error), Style())}") from None
        if found is None:
            raise gdb.GdbError(f"$_llm_tensor_stat: no {wanted} of {clean(info.name, Style())}: no finite value")
        return abs(found) if isinstance(found, complex) and found.imag else found.real


def _text(value: gdb.Value) -> Optional[str]:
    """A string constant of the expression; None for anything that the program has, which is not read yet. (To ask for
    its address would make gdb put it into the program's memory, by a call of malloc there.)"""
    kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_ARRAY or kind.target().strip_typedefs().sizeof != 1 or value.is_lazy:
        return None
    return str(value.string())
