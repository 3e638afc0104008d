"""What `$_llm_tensor_stat(EXPR, "nan")` is."""

from __future__ import annotations

from typing import Callable, Dict, Optional, Union

import gdb

from gdbext.analysis.tensors.whole_tensor import statistics
from gdbext.commands.tensor_port import Description
from gdbext.inside_gdb.base import memory
from gdbext.inside_gdb.session.one_session import session
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


def tensor_number(tensor: gdb.Value, name: gdb.Value) -> Number:
    """One number of a tensor. Raises gdb.GdbError."""
    wanted = _text(name)
    if wanted not in STATISTICS:
        raise gdb.GdbError(f"$_llm_tensor_stat: no {wanted or name}; one of {', '.join(STATISTICS)}")
    memory.clear_cache()  # a condition is asked while the program runs
    expression, tensors = _text(tensor), session().tensors
    try:
        if expression is not None:
            info = tensors.evaluate(expression, Description())
        else:
            info = tensors.describe(tensor, "the tensor")
        if not isinstance(info, TensorInfo):
            raise GdbextError(f"{info.name} holds {len(info.entries)} tensors", "choose one of them")
        found = STATISTICS[wanted](statistics(info, tensors.read_of(info)))
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
