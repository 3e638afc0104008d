"""Tensor layouts of every engine as rows; `inside_gdb.tensors` is the one reader that follows them."""

from __future__ import annotations

from typing import Mapping, Tuple

from gdbext.knowledge.engines.engine_list import parts, rows
from gdbext.knowledge.row_kinds import (
    DictRow,
    EnumTable,
    GraphRow,
    ReleaseRow,
    SequenceRow,
    StructRow,
    TensorLayout,
    WrapperRow,
)
from gdbext.knowledge.runtimes import numpy_arrays, std_containers

LAYOUTS: Tuple[TensorLayout, ...] = (*rows("layouts", "LAYOUTS"), *numpy_arrays.LAYOUTS)
STRUCTS: Tuple[StructRow, ...] = (*rows("layouts", "STRUCTS"), *numpy_arrays.STRUCTS)
WRAPPERS: Tuple[WrapperRow, ...] = (*rows("layouts", "WRAPPERS"), *std_containers.WRAPPERS)
SEQUENCES: Tuple[SequenceRow, ...] = (
    *rows("layouts", "SEQUENCES"),
    *numpy_arrays.SEQUENCES,
    *std_containers.SEQUENCES,
)
DICTS: Tuple[DictRow, ...] = std_containers.DICTS
GRAPHS: Tuple[GraphRow, ...] = rows("layouts", "GRAPHS")
RELEASES: Tuple[ReleaseRow, ...] = rows("layouts", "RELEASES")


def _by_id(table: str) -> Mapping[str, EnumTable]:
    found = [getattr(engine, table) for engine in parts("layouts") if hasattr(engine, table)]
    return {enum.id: enum for enum in found}


DTYPE_TABLES = {**_by_id("DTYPES"), numpy_arrays.DTYPES.id: numpy_arrays.DTYPES}
PLACE_TABLES = _by_id("PLACES")
