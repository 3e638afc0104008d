"""MindSpore's tensor. Sources: the headers of the 2.10.0 wheel."""

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, TensorLayout
from gdbext.knowledge.word_tables import pairs

_SOURCE = "mindspore 2.10.0 ir/tensor.h, meta_tensor.h, device_address.h"

DTYPES = EnumTable(
    "mindspore",
    pairs(
        "kTypeUnknown=invalid kNumberTypeBool=bool kNumberTypeInt8=int8 kNumberTypeInt16=int16 kNumberTypeInt=int32 "
        "kNumberTypeInt32=int32 kNumberTypeInt64=int64 kNumberTypeUInt=uint32 kNumberTypeUInt8=uint8 "
        "kNumberTypeUInt16=uint16 kNumberTypeUInt32=uint32 kNumberTypeUInt64=uint64 kNumberTypeFloat=fp32 "
        "kNumberTypeFloat16=fp16 kNumberTypeFloat32=fp32 kNumberTypeFloat64=fp64 kNumberTypeDouble=fp64 "
        "kNumberTypeBFloat16=bf16 kNumberTypeFloat8E4M3FN=fp8_e4m3fn kNumberTypeFloat8E5M2=fp8_e5m2 "
        "kNumberTypeComplex=complex64 kNumberTypeComplex64=complex64 kNumberTypeComplex128=complex128 "
        "kNumberTypeInt4=int4"
    ),
    "mindspore 2.10.0 headers (TypeId)",
    # No numbers: they shift with nearly every release.
)

PLACES = EnumTable(
    "mindspore", {"kUnknown": "", "kCPU": "cpu", "kAscend": "npu", "kGPU": "gpu"}, "mindspore device_type.h"
)

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        "mindspore::tensor::Tensor",
        "mindspore",
        "mindspore::tensor::Tensor",
        _SOURCE,
        shape=("storage_info_.shape", "shape_"),
        strides=("storage_info_.strides",),
        offset=("storage_info_.storage_offset",),
        dtype=("data_type_",),
        data=("device_sync_.device_pointer_.ptr_", "device_sync_.data_"),
        place=("device_sync_.device_type_",),
        dtypes="mindspore",
        places="mindspore",
        name=("tensor_name_",),
    ),
)
