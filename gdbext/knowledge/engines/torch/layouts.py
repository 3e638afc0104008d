"""torch's tensor: members where there is debug information, offsets by release where there is none.

Sources: the headers of torch's wheels (offsets measured by compiling those of `MEASURED`; 2.13 also on live tensors).
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.row_kinds import EnumTable, Field, SequenceRow, StructRow, TensorLayout, WrapperRow
from gdbext.knowledge.word_tables import pairs

_SOURCE = "headers of torch 2.1, 2.4, 2.6, 2.8 to 2.15"
_MEASURED = f"{_SOURCE}; measured by compiling them"

_NAMES = (
    "Byte=uint8 Char=int8 Short=int16 Int=int32 Long=int64 Half=fp16 Float=fp32 Double=fp64 "
    "ComplexHalf=complex32 ComplexFloat=complex64 ComplexDouble=complex128 Bool=bool QInt8=int8 QUInt8=uint8 "
    "QInt32=int32 BFloat16=bf16 QUInt4x2=uint4 QUInt2x4=uint2 Bits1x8=uint8 Bits2x4=uint8 Bits4x2=uint8 "
    "Bits8=uint8 Bits16=uint16 Float8_e5m2=fp8_e5m2 Float8_e4m3fn=fp8_e4m3fn Float8_e5m2fnuz=fp8_e5m2fnuz "
    "Float8_e4m3fnuz=fp8_e4m3fnuz UInt16=uint16 UInt32=uint32 UInt64=uint64 UInt1=uint1_byte UInt2=uint2_byte "
    "UInt3=uint3_byte UInt4=uint4_byte UInt5=uint5_byte UInt6=uint6_byte UInt7=uint7_byte Int1=int1_byte "
    "Int2=int2_byte Int3=int3_byte Int4=int4_byte Int5=int5_byte Int6=int6_byte Int7=int7_byte "
    "Float8_e8m0fnu=fp8_e8m0 Float4_e2m1fn_x2=fp4_e2m1*2 BComplex32=bcomplex32"
)
"""c10::ScalarType in the order of its numbers. Which number "Undefined" has depends on the release: the one behind the
last. In one up to 2.14 it is therefore 46; no tensor of 2.15 is confused with that unless it is a BComplex32."""

_PAIRS = pairs(_NAMES)

QUANTISED = tuple(number for number, name in enumerate(_PAIRS) if name.startswith(("QInt", "QUInt")))
"""Numbers of element types whose integers mean something else, by the tensor's quantizer."""

DTYPES = EnumTable(
    "torch", {**_PAIRS, "Undefined": "invalid"}, "ScalarType.h of torch 2.1 to 2.15", dict(enumerate(_PAIRS.values()))
)

_DEVICES = (
    "cpu cuda mkldnn opengl opencl ideep hip fpga maia xla vulkan metal xpu mps meta hpu ve lazy ipu mtia privateuse1"
)

PLACES = EnumTable(
    "torch",
    {
        "CPU": "cpu",
        "CUDA": "gpu",
        "HIP": "gpu",
        "Meta": "meta",
        "PrivateUse1": "npu",
        **{name: name.lower() for name in ("MKLDNN", "XLA", "XPU", "MPS", "HPU", "Lazy", "IPU", "MTIA")},
    },
    _SOURCE,
    {**dict(enumerate(_DEVICES.split())), 1: "gpu", 6: "gpu", 20: "npu"},
)


def _structs(
    releases: Tuple[str, str], size: int, storage: int, sizes: int, storage_size: int, allocator: int
) -> Tuple[StructRow, ...]:
    """The three structs of a range of releases: everything behind `sizes_and_strides_` follows from where it lies.

    The members in front of `size_bytes_` lie at the same place in both the 2.1 and the later StorageImpl, counted
    from the reference counts (`storage` is their end in both structs).
    """
    behind = sizes + 88
    return (
        StructRow(
            "c10::TensorImpl",
            size,
            {
                "storage_": Field(storage, "pointer", to="c10::StorageImpl"),
                "autograd_meta_": Field(storage + 8, "pointer"),
                "pyobj_slot_": Field(storage + 32, "pointer"),
                "sizes_and_strides_": Field(sizes, "c10::impl::SizesAndStrides"),
                "storage_offset_": Field(behind, "i64"),
                "numel_": Field(behind + 8, "i64"),
                "data_type_": Field(behind + 16, "c10::TypeMeta"),
                "device_opt_": Field(behind + 18, "c10::Device"),
            },
            _MEASURED,
            releases,
        ),
        StructRow(
            "c10::StorageImpl",
            storage_size,
            {
                "data_ptr_": Field(storage, "c10::DataPtr"),
                "size_bytes_": Field(storage + 32, "i64"),
                "allocator_": Field(allocator, "pointer"),
            },
            _MEASURED,
            releases,
        ),
    )


STRUCTS: Tuple[StructRow, ...] = (
    *_structs(("2.1", "2.3"), 192, 24, 72, 96, 72),
    *_structs(("2.4", "2.5"), 184, 16, 64, 88, 64),
    *_structs(("2.6", "2.12"), 184, 16, 64, 96, 64),
    *_structs(("2.13", "2.15"), 176, 16, 56, 96, 72),
    StructRow(
        "c10::impl::SizesAndStrides",
        88,
        {
            "size_": Field(0, "u64"),
            "inlineStorage_": Field(8, "i64", count=10),
            "outOfLineStorage_": Field(8, "pointer", to="i64"),
        },
        _SOURCE,
    ),
    StructRow("c10::TypeMeta", 2, {"index_": Field(0, "u16")}, _MEASURED),
    StructRow("c10::Device", 2, {"type_": Field(0, "i8"), "index_": Field(1, "i8")}, _MEASURED),
    StructRow("c10::DataPtr", 32, {"ptr_": Field(0, "c10::UniqueVoidPtr")}, _SOURCE),
    StructRow("c10::UniqueVoidPtr", 24, {"data_": Field(0, "pointer"), "deleter": Field(8, "pointer")}, _SOURCE),
    # The tensor is a smart pointer and nothing else.
    StructRow("at::Tensor", 8, {"impl_": Field(0, "pointer", to="c10::TensorImpl")}, _SOURCE),
)
"""2.2, 2.3 and 2.5 were not measured: they stand with their neighbours, and the reader checks what it reads by them."""

MEASURED = ("2.1", "2.4", "2.6", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

THPVARIABLE = (("2.10", 16), ("", 24))
"""First release, and bytes from a torch.Tensor's PyObject to its TensorImpl*: before 2.10 a flag stands in front."""

WRAPPERS: Tuple[WrapperRow, ...] = (
    WrapperRow("at::(Tensor|TensorBase)", ("impl_",), _SOURCE),
    WrapperRow("torch::stable::Tensor", ("ath_",), "torch stable/tensor_struct.h", cast="at::Tensor"),
    WrapperRow("(c10|at)::intrusive_ptr", ("target_",), _SOURCE),
    WrapperRow("c10::MaybeOwned", ("borrow_",), _SOURCE),
    WrapperRow("c10::(optional|OptionalRef)", ("storage_.value_", "ref_"), "torch 2.1 headers"),
    WrapperRow("c10::Storage", ("storage_impl_",), _SOURCE),
    WrapperRow("c10::ExclusivelyOwned", ("repr_",), "c10/util/ExclusivelyOwned.h"),
    WrapperRow("at::OptionalTensorRef", ("ref_",), _SOURCE),
    WrapperRow("c10::SymInt", ("data_",), _SOURCE),
)

LAYOUTS: Tuple[TensorLayout, ...] = (
    TensorLayout(
        "at::Tensor",
        "torch",
        "c10::(Undefined)?TensorImpl|c10::[A-Z]\\w*TensorImpl",
        _SOURCE,
        shape=("sizes_and_strides_",),
        strides=("sizes_and_strides_:1",),
        offset=("storage_offset_",),
        dtype=("data_type_.index_",),
        data=("storage_.data_ptr_.ptr_.data_",),
        place=("device_opt_.type_",),
        device_index=("device_opt_.index_",),
        dtypes="torch",
        places="torch",
        undefined="c10::UndefinedTensorImpl::_singleton",
        elements=("numel_",),
        storage_bytes=("storage_.size_bytes_",),
    ),
)

SEQUENCES: Tuple[SequenceRow, ...] = (
    SequenceRow("(c10|at)::ArrayRef", "Data", _SOURCE, count="Length"),
    SequenceRow("c10::SmallVector(Impl|TemplateBase|TemplateCommon)?", "BeginX", "c10 SmallVector.h", count="Size"),
    SequenceRow(
        "c10::impl::SizesAndStrides",
        "outOfLineStorage_",
        _SOURCE,
        count="size_",
        parts=2,
        inside="inlineStorage_",
        inside_items=5,
    ),
)
