"""How the standard library's and torch's containers hold what is inside them.

Facts: the headers of libstdc++ (GCC 5 to 15, unchanged over them where only one path stands), libc++ 14 to 20, c10.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.schema import DictRow, SequenceRow, WrapperRow

_STD = "libstdc++, libc++ headers"
_TORCH = "headers of torch 2.1, 2.4, 2.6, 2.8 to 2.15"
_TM = "InternLM/lmdeploy"

WRAPPERS: Tuple[WrapperRow, ...] = (
    WrapperRow("std::(shared_ptr|__shared_ptr|__shared_ptr_access)", ("_M_ptr", "__ptr_"), _STD),
    WrapperRow(
        "std::unique_ptr",
        ("_M_t._M_t.<std::_Head_base<0>._M_head_impl", "_M_t.<std::_Head_base<0>._M_head_impl", "__ptr_"),
        _STD,
    ),
    WrapperRow(
        "std::optional",
        ("_M_payload._M_payload._M_value", "_M_payload._M_value", "__val_"),
        _STD,
        engaged="_M_payload._M_engaged",
    ),
    WrapperRow("std::reference_wrapper", ("_M_data", "__f_"), _STD),
    WrapperRow("std::atomic", ("_M_b._M_p", "_M_i"), _STD),
    WrapperRow("turbomind::(core::)?Ref", ("ref_",), f"{_TM} v0.8.0 and newer, core/buffer.h"),
    WrapperRow(
        "(fastertransformer|turbomind|tensorrt_llm::common)::TensorMap",
        ("tensor_map_",),
        f"NVIDIA/FasterTransformer v5.1 Tensor.h, and those of alibaba/rtp-llm v0.1, {_TM} v0.7.3, NVIDIA/TensorRT-LLM",
    ),
    WrapperRow("turbomind::ManagedTensor", ("tensor",), f"{_TM} v0.7.3"),
)

SEQUENCES: Tuple[SequenceRow, ...] = (
    SequenceRow("std::vector", "_M_impl._M_start", _STD, end="_M_impl._M_finish"),
    SequenceRow("std::vector", "__begin_", _STD, end="__end_"),
    SequenceRow("std::array", "_M_elems", _STD),
    SequenceRow("std::array", "__elems_", _STD),
    SequenceRow("(c10|at)::ArrayRef", "Data", _TORCH, count="Length"),
    SequenceRow("c10::SmallVector(Impl|TemplateBase|TemplateCommon)?", "BeginX", "c10 SmallVector.h", count="Size"),
    SequenceRow(
        "c10::impl::SizesAndStrides",
        "outOfLineStorage_",
        _TORCH,
        count="size_",
        parts=2,
        inside="inlineStorage_",
        inside_items=5,
    ),
    SequenceRow(
        "(nvinfer1|tensorrt_llm(::runtime|::common)?)::(Dims(32|64)?|Shape)",
        "d",
        "NVIDIA/TensorRT-LLM iTensor.h, tllmDataType.h (01edcea)",
        count="nbDims",
    ),
    SequenceRow("std::span", "_M_ptr", _STD, count="_M_extent._M_extent_value"),
)

DICTS: Tuple[DictRow, ...] = (
    DictRow(
        "std::unordered_(multi)?map", "list", "_M_h._M_before_begin._M_nxt", 8, _STD, count="_M_h._M_element_count"
    ),
    DictRow("std::unordered_(multi)?map", "list", "__table_.__p1_.__value_.__next_", 16, _STD),
    DictRow(
        "std::(multi)?map", "tree", "_M_t._M_impl._M_header._M_parent", 32, _STD, count="_M_t._M_impl._M_node_count"
    ),
)
"""List nodes are {next, pair, hash} in libstdc++ and {next, hash, pair} in libc++, tree nodes {colour, parent, left,
right, pair}."""
