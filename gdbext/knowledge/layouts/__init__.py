"""Tensor layouts of every engine as rows; `debugger.tensors` is the one reader that follows them."""

from __future__ import annotations

from typing import Mapping, Tuple

from gdbext.knowledge.engines.fastertransformer import layouts as fastertransformer
from gdbext.knowledge.engines.llama_cpp import layouts as ggml
from gdbext.knowledge.engines.mindspore import layouts as mindspore
from gdbext.knowledge.engines.rtp_llm import layouts as rtp_llm
from gdbext.knowledge.engines.tensorrt_llm import layouts as tensorrt_llm
from gdbext.knowledge.engines.torch import layouts as torch
from gdbext.knowledge.engines.turbomind import layouts as turbomind
from gdbext.knowledge.layouts import containers
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
