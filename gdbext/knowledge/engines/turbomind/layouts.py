"""TurboMind since lmdeploy 0.8.0: Tensor, Buffer and Layout of `turbomind::core`. Its layout is the same to 2026-08."""

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, TensorLayout, WrapperRow
from gdbext.knowledge.word_tables import numbered

_HEADERS = "InternLM/lmdeploy v0.8.0 to 1263d5cd8, core/"

_NUMBERS = numbered(
    "0=invalid 1=bool 2=uint2 4=uint4 6=uint6 7=uint64 8=uint8 16=uint16 32=uint32 64=uint64 0x10008=int8 "
    "0x10010=int16 0x10020=int32 0x10040=int64 0x1050A=fp16 0x10807=bf16 0x10817=fp32 0x10B34=fp64 0x10403=fp8_e4m3fn "
    "0x10502=fp8_e5m2 0x10201=fp4_e2m1 0x10203=fp6_e2m3 0x10302=fp6_e3m2"
)
"""sign << 16 | exponent bits << 8 | mantissa bits: the number says the format, in every release."""

DTYPES = EnumTable("turbomind", {"kNull": "invalid"}, _HEADERS + "data_type.h", _NUMBERS)

PLACES = EnumTable(
    "turbomind",
    {"kCPU": "cpu", "kCPUpinned": "pinned", "kDEVICE": "gpu"},
    _HEADERS + "allocator.h, data_type.h",
    {0: "cpu", 1: "pinned", 2: "gpu"},
)

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        "turbomind::core::Tensor",
        "turbomind",
        "turbomind::core::Tensor",
        _HEADERS + "tensor.h",
        shape=("layout_.shape_",),
        strides=("layout_.stride_",),
        dtype=("buffer_.dtype_",),
        data=("buffer_.data_",),
        offset=("buffer_.base_",),
        place=("buffer_.device_.type",),
        device_index=("buffer_.device_.id",),
        dtypes="turbomind",
        places="turbomind",
        elements=("layout_.size_",),
    ),
    TensorLayout(
        "turbomind::core::Buffer",
        "turbomind",
        "turbomind::core::Buffer",
        _HEADERS + "buffer.h",
        count=("size_",),
        dtype=("dtype_",),
        data=("data_",),
        offset=("base_",),
        place=("device_.type",),
        device_index=("device_.id",),
        dtypes="turbomind",
        places="turbomind",
    ),
    TensorLayout(
        "turbomind::core::Layout",
        "turbomind",
        "turbomind::core::Layout",
        _HEADERS + "layout.h",
        shape=("shape_",),
        strides=("stride_",),
        elements=("size_",),
    ),
)

WRAPPERS: Tuple[WrapperRow, ...] = (
    WrapperRow("turbomind::(core::)?Ref", ("ref_",), "InternLM/lmdeploy v0.8.0 and newer, core/buffer.h"),
    WrapperRow("turbomind::ManagedTensor", ("tensor",), "InternLM/lmdeploy v0.7.3"),
)
