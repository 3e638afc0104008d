"""TurboMind since lmdeploy 0.8.0: Tensor, Buffer and Layout of `turbomind::core`. Its layout is the same to 2026-08."""

from typing import Tuple

from gdbext.knowledge.engines.fastertransformer.layouts import releases
from gdbext.knowledge.row_kinds import EnumTable, Field, ReleaseRow, StructRow, TensorLayout, WrapperRow
from gdbext.knowledge.std_offsets import HOLDER, PLAIN, SIGNED_VECTOR, containers_of, map_of
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

_CORE_NAME = r"9turbomind(\w*NS_)?4core6Tensor"
_CORE = "turbomind::core::Tensor"
_MEASURED = "InternLM/lmdeploy v0.8.0, v0.10.2, v0.12.3 and 1263d5cd8; read in programs built of them"

_STRUCTS: Tuple[StructRow, ...] = (
    StructRow(
        _CORE,
        104,
        {"layout_": Field(0, "turbomind::core::Layout"), "buffer_": Field(56, "turbomind::core::Buffer")},
        _MEASURED,
    ),
    StructRow(
        "turbomind::core::Layout",
        56,
        {"shape_": Field(0, SIGNED_VECTOR), "stride_": Field(24, SIGNED_VECTOR), "size_": Field(48, "i64")},
        _MEASURED,
    ),
    StructRow(
        "turbomind::core::Buffer",
        48,
        {
            "data_": Field(0, HOLDER),
            "base_": Field(16, "i64"),
            "size_": Field(24, "i64"),
            "device_": Field(32, "turbomind::core::Device"),
            "dtype_": Field(40, "i32"),
        },
        _MEASURED,
    ),
    StructRow("turbomind::core::Device", 8, {"type": Field(0, "i32"), "id": Field(4, "i32")}, _MEASURED),
)

RELEASES: Tuple[ReleaseRow, ...] = (
    ReleaseRow(
        "TurboMind 0.8.0 to main",
        (_CORE_NAME,),
        (*_STRUCTS, *PLAIN, *containers_of(_CORE)),
        (_CORE,),
        _MEASURED,
        same={"turbomind::core::TensorMap": map_of(_CORE), "turbomind::core::Tensor_": _CORE},
    ),
    releases(
        "TurboMind 0.0.14 to 0.7.3",
        "InternLM/lmdeploy v0.7.0 and v0.7.3; measured by compiling them",
        "turbomind::Tensor",
        (r"9turbomind(\w*NS_)?6Tensor",),
        (_CORE_NAME,),
        size=64,
    ),
)
