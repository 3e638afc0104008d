"""What stands in files that torch.save wrote (rows)."""

from typing import Mapping

from gdbext.knowledge.word_tables import pairs

SOURCE = "torch/serialization.py, torch/_utils.py, torch/storage.py; measured with torch 2.13"

STORAGES: Mapping[str, str] = pairs(
    "DoubleStorage=fp64 FloatStorage=fp32 HalfStorage=fp16 BFloat16Storage=bf16 LongStorage=int64 IntStorage=int32 "
    "ShortStorage=int16 CharStorage=int8 ByteStorage=uint8 BoolStorage=bool ComplexFloatStorage=complex64 "
    "ComplexDoubleStorage=complex128"
)
"""Class of a storage -> its element type; UntypedStorage leaves that to the tensor."""

TYPES: Mapping[str, str] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    **{name: name for name in ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool")},
    **{name: name for name in ("complex64", "complex128")},
    "float8_e4m3fn": "fp8_e4m3fn",
    "float8_e5m2": "fp8_e5m2",
    "float8_e8m0fnu": "fp8_e8m0",
}
"""torch.dtype by its name, as `_rebuild_tensor_v3` gets it."""

TENSOR, TENSOR_WITH_TYPE = "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3"
PARAMETER = "torch._utils _rebuild_parameter"
DICTIONARY = "collections OrderedDict"
"""What a pickle calls to make a tensor. Nothing is called here: its arguments say all."""
