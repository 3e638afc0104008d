"""FasterTransformer, and what kept its tensor: early TurboMind and RTP-LLM, TensorRT-LLM's `common::Tensor`, triton's.

Facts: engines.md 1.1 to 1.4 (the headers of every tag named there).
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.schema import EnumTable, TensorLayout

_NAMES = {
    "INVALID": "invalid",
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "fp16",
    "FP32": "fp32",
    "FP64": "fp64",
    "BYTES": "uint8",
    "BF16": "bf16",
    "FP8_E4M3": "fp8_e4m3fn",
    "FP8_E8M0": "fp8_e8m0",
    "STR": "string",
    "VOID": "void",
    "INT32_PTR": "uint64",
    "QINT8": "int8",
    "INT4X2": "int4*2",
    "QINT4X2": "int4*2",
    "QFP8_E4M3": "fp8_e4m3fn",
}

_FIRST = (
    *("invalid", "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("fp16", "fp32", "fp64", "uint8", "bf16"),
)
"""What 0 to 14 mean in every release."""

DTYPES = EnumTable(
    "fastertransformer",
    {f"{prefix}{name}": dtype for prefix in ("TYPE_", "TRITONSERVER_TYPE_") for name, dtype in _NAMES.items()},
    "engines.md 1.1, 1.3, 1.4; tritonserver.h",
    # 15 and above moved between releases: without enumerators they say nothing.
    dict(enumerate(_FIRST)),
)

PLACES = EnumTable(
    "fastertransformer",
    {
        "MEMORY_CPU": "cpu",
        "MEMORY_CPU_PINNED": "pinned",
        "MEMORY_GPU": "gpu",
        "TRITONSERVER_MEMORY_CPU": "cpu",
        "TRITONSERVER_MEMORY_CPU_PINNED": "pinned",
        "TRITONSERVER_MEMORY_GPU": "gpu",
    },
    "engines.md 1.1; tritonserver.h",
    {0: "cpu", 1: "pinned", 2: "gpu"},
)


def _layout(id: str, engine: str, type: str, source: str, rank0_elements: int = 0) -> TensorLayout:
    """The four members, with RTP-LLM's underscores (v0.1.3 to v0.1.13) or without."""
    return TensorLayout(
        id,
        engine,
        type,
        source,
        shape=("shape_", "shape"),
        dtype=("type_", "type"),
        data=("data_", "data"),
        place=("where_", "where"),
        dtypes="fastertransformer",
        places="fastertransformer",
        rank0_elements=rank0_elements,
    )


LAYOUTS: Tuple[TensorLayout, ...] = (
    _layout("fastertransformer::Tensor", "fastertransformer", "fastertransformer::Tensor", "engines.md 1.1, 1.3"),
    _layout("turbomind::Tensor", "turbomind", "turbomind::Tensor", "engines.md 1.2, lmdeploy to 0.7.3"),
    _layout("tensorrt_llm::common::Tensor", "tensorrt-llm", "tensorrt_llm::common::Tensor", "engines.md 1.4"),
    _layout("triton::Tensor", "fastertransformer", "triton::Tensor", "engines.md 1.1", rank0_elements=1),
)
