"""FasterTransformer, and what kept its tensor: early TurboMind and RTP-LLM, TensorRT-LLM's `common::Tensor`, triton's.

Sources: the headers at the tags and commits that the rows name.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, Field, ReleaseRow, StructRow, TensorLayout
from gdbext.knowledge.std_offsets import PLAIN, VECTOR, containers_of, map_of, shared_containers_of
from gdbext.knowledge.word_tables import pairs

_FT = "NVIDIA/FasterTransformer"
_RTP = "alibaba/rtp-llm"
_TRT = "NVIDIA/TensorRT-LLM common/tensor.h (23bc5b7)"

_NAMES = pairs(
    "INVALID=invalid BOOL=bool UINT8=uint8 UINT16=uint16 UINT32=uint32 UINT64=uint64 INT8=int8 INT16=int16 INT32=int32 "
    "INT64=int64 FP16=fp16 FP32=fp32 FP64=fp64 BYTES=uint8 BF16=bf16 FP8_E4M3=fp8_e4m3fn FP8_E8M0=fp8_e8m0 STR=string "
    "VOID=void INT32_PTR=uint64 QINT8=int8 INT4X2=int4*2 QINT4X2=int4*2 QFP8_E4M3=fp8_e4m3fn"
)

_FIRST = (
    *("invalid", "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("fp16", "fp32", "fp64", "uint8", "bf16"),
)
"""What 0 to 14 mean in every release."""

DTYPES = EnumTable(
    "fastertransformer",
    {f"{prefix}{name}": dtype for prefix in ("TYPE_", "TRITONSERVER_TYPE_") for name, dtype in _NAMES.items()},
    f"{_FT} v5.0 to v5.3 Tensor.h; {_RTP} Types.h; {_TRT}; tritonserver.h",
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
    f"{_FT} v5.0 to v5.3 Tensor.h; tritonserver.h",
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
    _layout(
        "fastertransformer::Tensor",
        "fastertransformer",
        "fastertransformer::Tensor",
        f"{_FT} v5.0 to v5.3 Tensor.h; {_RTP} v0.1.0 to v0.1.13 Tensor.h",
    ),
    _layout("turbomind::Tensor", "turbomind", "turbomind::Tensor", "InternLM/lmdeploy v0.0.14 to v0.7.3 Tensor.h"),
    _layout("tensorrt_llm::common::Tensor", "tensorrt-llm", "tensorrt_llm::common::Tensor", _TRT),
    _layout(
        "triton::Tensor",
        "fastertransformer",
        "triton::Tensor",
        f"{_FT} transformer_triton_backend.hpp",
        rank0_elements=1,
    ),
)


def releases(
    id: str,
    source: str,
    type: str,
    names: Tuple[str, ...],
    without: Tuple[str, ...] = (),
    members: str = "",
    size: int = 40,
) -> ReleaseRow:
    """The four members, which lie at the same place in every engine that has kept the struct; `members` is what
    stands behind their names, `size` counts what other members follow: a vector of offsets, an allocator."""
    fields = {
        f"where{members}": Field(0, "u32"),
        f"type{members}": Field(4, "u32"),
        f"shape{members}": Field(8, VECTOR),
        f"data{members}": Field(32, "pointer"),
    }
    tensor = StructRow(type, size, fields, source)
    same = {type + "Map": map_of(type)}
    structs = (tensor, *PLAIN, *containers_of(type), *shared_containers_of(map_of(type)))
    return ReleaseRow(id, names, structs, (type,), source, without, same)


OF_RTP_LLM = r"7rtp_llm|17fastertransformer\w*10DeviceBase"
"""Names that RTP-LLM has, which kept the namespace: in its first releases with a base class of devices."""
_TENSOR, _MAP = r"17fastertransformer(\w*NS_)?6Tensor", r"17fastertransformer(\w*NS_)?9TensorMap"

RELEASES: Tuple[ReleaseRow, ...] = (
    releases(
        "FasterTransformer 5.1 to main",
        f"{_FT} v5.1.1, v5.2.1, v5.3 and df4a753; measured by compiling them",
        "fastertransformer::Tensor",
        (_TENSOR, _MAP),
        (OF_RTP_LLM,),
        size=64,
    ),
    releases(
        "FasterTransformer 5.0",
        f"{_FT} v5.0; measured by compiling it",
        "fastertransformer::Tensor",
        (_TENSOR,),
        (_MAP, OF_RTP_LLM),
    ),
    releases(
        "the Triton back ends of FasterTransformer 5.0 to main and TurboMind 0.0.14 to 0.6.3",
        f"{_FT} v5.0, v5.3 and main, InternLM/lmdeploy v0.0.14 to v0.6.3 transformer_triton_backend.hpp",
        "triton::Tensor",
        (r"N6triton6Tensor[E0-9]",),
    ),
)
