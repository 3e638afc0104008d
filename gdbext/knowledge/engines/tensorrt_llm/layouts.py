"""TensorRT-LLM: the classes behind IBuffer and ITensor, told by their dynamic type. Sources: the headers named."""

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, SequenceRow, TensorLayout
from gdbext.knowledge.word_tables import pairs

_REPOSITORY = "NVIDIA/TensorRT-LLM"
_BUFFERS = f"{_REPOSITORY} tllmBuffers.h (035b99e and newer)"
_RUNTIME = "tensorrt_llm::runtime::"

_NAMES = pairs(
    "kFLOAT=fp32 kHALF=fp16 kINT8=int8 kINT32=int32 kBOOL=bool kUINT8=uint8 kFP8=fp8_e4m3fn kBF16=bf16 kINT64=int64 "
    "kINT4=int4 kFP4=fp4_e2m1 kE8M0=fp8_e8m0"
)
"""In the order of their numbers, which never changed."""

DTYPES = EnumTable("tensorrt", _NAMES, f"{_REPOSITORY} tllmDataType.h (01edcea)", dict(enumerate(_NAMES.values())))

_PLACE_BY_TYPE: Tuple[Tuple[str, str], ...] = (
    (r"Pinned(Pool)?Allocator\b|PoolAllocator<", "pinned"),
    (r"\bHostAllocator\b", "cpu"),
    (r"\bUVMAllocator\b", "managed"),
    (r"\bCudaAllocator(Async)?\b|\bCudaVirtualMemoryAllocator\w*\b", "gpu"),
    (r"BorrowingAllocator<[^<>]*(kGPU|MemoryType\)0)>", "gpu"),
    (r"BorrowingAllocator<[^<>]*(kCPU|MemoryType\)1)>", "cpu"),
    (r"BorrowingAllocator<[^<>]*(kPINNED|MemoryType\)2)>", "pinned"),
    (r"BorrowingAllocator<[^<>]*(kUVM|MemoryType\)3)>", "managed"),
    (r"BorrowingAllocator<[^<>]*(kPINNEDPOOL|MemoryType\)4)>", "pinned"),
)
"""The memory type is a template argument of the allocator and stands nowhere in the object."""

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        _RUNTIME + "TorchView",
        "tensorrt-llm",
        _RUNTIME + "TorchView",
        f"{_REPOSITORY} torchView.h",
        shape=("mDims",),
        parent=("mTensor",),
        rank0_elements=0,
    ),
    TensorLayout(
        _RUNTIME + "TensorView",
        "tensorrt-llm",
        _RUNTIME + "TensorView",
        f"{_REPOSITORY} tensorView.h",
        shape=("mDims",),
        parent=("mBuffer",),
        offset=("mOffset",),
        rank0_elements=0,
    ),
    TensorLayout(
        _RUNTIME + "BufferView",
        "tensorrt-llm",
        _RUNTIME + "BufferView",
        f"{_REPOSITORY} bufferView.h",
        count=("mSize",),
        parent=("mBuffer",),
        offset=("mOffset",),
    ),
    TensorLayout(
        _RUNTIME + "GenericTensor",
        "tensorrt-llm",
        _RUNTIME + "(GenericTensor|MulticastTensor)",
        _BUFFERS,
        shape=("mDims",),
        dtype=("mType",),
        data=("mBuffer",),
        dtypes="tensorrt",
        place_by_type=_PLACE_BY_TYPE,
        rank0_elements=0,
    ),
    TensorLayout(
        _RUNTIME + "GenericBuffer",
        "tensorrt-llm",
        _RUNTIME + "(GenericBuffer|MulticastBuffer)",
        _BUFFERS,
        count=("mSize",),
        dtype=("mType",),
        data=("mBuffer",),
        dtypes="tensorrt",
        place_by_type=_PLACE_BY_TYPE,
    ),
    TensorLayout(
        _RUNTIME + "ITensor",
        "tensorrt-llm",
        _RUNTIME + "I(Tensor|Buffer)",
        f"{_REPOSITORY} iTensor.h (063e02f), iBuffer.h (0c90a6c)",
        interface=True,
    ),
)

SEQUENCES: Tuple[SequenceRow, ...] = (
    SequenceRow(
        "(nvinfer1|tensorrt_llm(::runtime|::common)?)::(Dims(32|64)?|Shape)",
        "d",
        "NVIDIA/TensorRT-LLM iTensor.h, tllmDataType.h (01edcea)",
        count="nbDims",
    ),
)
