"""Tensor layouts of every engine as rows; `inside_gdb.tensors` is the one reader that follows them."""

from __future__ import annotations

from typing import Mapping, Tuple

from gdbext.knowledge.engines import parts, rows
from gdbext.knowledge.row_kinds import DictRow, EnumTable, GraphRow, SequenceRow, StructRow, TensorLayout, WrapperRow
from gdbext.knowledge.runtimes import std_containers

LAYOUTS: Tuple[TensorLayout, ...] = rows("layouts", "LAYOUTS")
STRUCTS: Tuple[StructRow, ...] = rows("layouts", "STRUCTS")
WRAPPERS: Tuple[WrapperRow, ...] = (*rows("layouts", "WRAPPERS"), *std_containers.WRAPPERS)
SEQUENCES: Tuple[SequenceRow, ...] = (*rows("layouts", "SEQUENCES"), *std_containers.SEQUENCES)
DICTS: Tuple[DictRow, ...] = std_containers.DICTS
GRAPHS: Tuple[GraphRow, ...] = rows("layouts", "GRAPHS")


def _by_id(table: str) -> Mapping[str, EnumTable]:
    found = [getattr(engine, table) for engine in parts("layouts") if hasattr(engine, table)]
    return {enum.id: enum for enum in found}


DTYPE_TABLES = _by_id("DTYPES")
PLACE_TABLES = _by_id("PLACES")
