"""Tensor layouts of every engine as rows; `debugger.tensors` is the one reader that follows them."""

from __future__ import annotations

from typing import Mapping, Tuple

from gdbext.knowledge.layouts import (
    containers,
    fastertransformer,
    ggml,
    mindspore,
    rtp_llm,
    tensorrt_llm,
    torch,
    turbomind,
)
from gdbext.knowledge.schema import DictRow, EnumTable, GraphRow, SequenceRow, StructRow, TensorLayout, WrapperRow

LAYOUTS: Tuple[TensorLayout, ...] = (
    *torch.LAYOUTS,
    *rtp_llm.LAYOUTS,
    *turbomind.LAYOUTS,
    *tensorrt_llm.LAYOUTS,
    *fastertransformer.LAYOUTS,
    *ggml.LAYOUTS,
    *mindspore.LAYOUTS,
)
STRUCTS: Tuple[StructRow, ...] = (*torch.STRUCTS, *ggml.STRUCTS)
WRAPPERS: Tuple[WrapperRow, ...] = (*torch.WRAPPERS, *containers.WRAPPERS)
SEQUENCES: Tuple[SequenceRow, ...] = containers.SEQUENCES
DICTS: Tuple[DictRow, ...] = containers.DICTS
GRAPHS: Tuple[GraphRow, ...] = ggml.GRAPHS

DTYPE_TABLES: Mapping[str, EnumTable] = {
    engine.DTYPES.id: engine.DTYPES for engine in (fastertransformer, turbomind, tensorrt_llm, ggml, mindspore, torch)
}
PLACE_TABLES: Mapping[str, EnumTable] = {
    engine.PLACES.id: engine.PLACES for engine in (fastertransformer, turbomind, mindspore, torch)
}
