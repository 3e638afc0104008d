"""How the standard library's containers, and a map that several engines have, hold what is inside them.

Facts: the headers of libstdc++ (GCC 5 to 15, unchanged over them where only one path stands), libc++ 14 to 20.
"""

from typing import Tuple

from gdbext.knowledge.row_kinds import DictRow, SequenceRow, WrapperRow

_STD = "libstdc++, libc++ headers"

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
    WrapperRow(
        "(fastertransformer|turbomind|tensorrt_llm::common)::TensorMap",
        ("tensor_map_",),
        "NVIDIA/FasterTransformer v5.1 Tensor.h, and those of alibaba/rtp-llm v0.1, InternLM/lmdeploy v0.7.3, "
        "NVIDIA/TensorRT-LLM",
    ),
)

SEQUENCES: Tuple[SequenceRow, ...] = (
    SequenceRow("std::vector", "_M_impl._M_start", _STD, end="_M_impl._M_finish"),
    SequenceRow("std::vector", "__begin_", _STD, end="__end_"),
    SequenceRow("std::array", "_M_elems", _STD),
    SequenceRow("std::array", "__elems_", _STD),
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
