"""Functions for conditions of breakpoints: `$_llm_rank()` and `$_llm_tensor_stat(EXPR, "nan")`."""

from __future__ import annotations

import gdb

from gdbext.commands.declaration import loaded
from gdbext.inside_gdb.session.one_session import rank_of

TENSOR_NUMBER = "gdbext.inside_gdb.typed_commands.tensor_number:tensor_number"


class RankFunction(gdb.Function):
    """Rank number of the selected inferior: `$_llm_rank() == 3`. -1 when unknown."""

    def __init__(self) -> None:
        super().__init__("_llm_rank")

    def invoke(self) -> int:
        rank = rank_of(gdb.selected_inferior())
        return -1 if rank is None else rank


class TensorStatFunction(gdb.Function):
    """A number about a tensor: `$_llm_tensor_stat(hidden_states, "nan") > 0`.

    The tensor is an expression, or one in quotes: "hidden_states". The number is one of nan, inf, zeros, count, min,
    max, absmax, mean, std.
    """

    def __init__(self) -> None:
        super().__init__("_llm_tensor_stat")

    def invoke(self, tensor: gdb.Value, name: gdb.Value) -> object:
        return loaded(TENSOR_NUMBER)(tensor, name)
