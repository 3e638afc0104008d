"""What a torch tensor has behind its TensorImpl: the quantizer of a quantised one, the tensors of a sparse one.

By what stands there, not by its class: a wheel has no debug information, and which bits of a key set mean sparse
depends on the release. Sources: ATen/quantized/Quantizer.h, ATen/SparseTensorImpl.h, SparseCsrTensorImpl.h; read so
in torch 2.13.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Callable, List, Tuple

from gdbext.inside_gdb.tensors.member_paths import integer
from gdbext.inside_gdb.tensors.target_object import Node, Read, StructNode, Unreadable
from gdbext.inside_gdb.tensors.torch_offsets import TENSOR, is_plausible_tensor
from gdbext.knowledge.engines.torch.layouts import QUANTISED
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo

_WORD = struct.Struct("<Q")
_SCALES = (1e-30, 1e30)
_LARGEST_ZERO_POINT = 1 << 31
Describe = Callable[[Node, str], TensorInfo]


def with_torch_kind(node: Node, info: TensorInfo, read: Read, describe: Describe) -> TensorInfo:
    """The tensor with what its kind says: how its integers are meant, or that other tensors hold its values."""
    if node.type_name != TENSOR or not isinstance(node, StructNode) or not node.address:
        return info
    try:
        if integer(node, ("data_type_.index_",)) in QUANTISED:
            return replace(info, notes=(*info.notes, _quantised(node, read)))
        if integer(node, ("storage_",)) or info.where == "meta" or not integer(node, ("numel_",)):
            return info
        return _sparse(node, info, read, describe)
    except Unreadable:
        return info


def _quantised(node: StructNode, read: Read) -> str:
    """By one scale, or by many; the quantizer's own members stand behind its reference counts, as a TensorImpl's do."""
    quantizer = _word(read, (node.address or 0) + node.size)
    data = read(quantizer + node.offset("storage_") + 8, 16) if quantizer else None
    if data is None:
        return "quantised, by what cannot be read: the values are the stored integers"
    scale, zero = struct.unpack("<dq", data)
    if _SCALES[0] < scale < _SCALES[1] and abs(zero) < _LARGEST_ZERO_POINT:
        return f"quantised: {scale:.9g} * (the stored integer - {zero}); the values here are the stored integers"
    return "quantised by channel, with a scale for each: the values here are the stored integers"


def _sparse(node: StructNode, info: TensorInfo, read: Read, describe: Describe) -> TensorInfo:
    """The tensors that a sparse one is made of, if they are where those of a sparse one are."""
    words = [_word(read, (node.address or 0) + node.size + 8 * number) for number in range(4)]
    rank = 0 if isinstance(info.shape, Missing) else len(info.shape)
    kinds: List[Tuple[str, Tuple[Tuple[str, int], ...]]] = []
    if 0 < words[0] <= rank and words[0] + words[1] == rank:
        kinds.append(("sparse (COO)", (("indices", words[2]), ("values", words[3]))))
    kinds.append(("sparse (compressed)", (("pointers", words[0]), ("indices", words[1]), ("values", words[2]))))
    for kind, named in kinds:
        nodes = [(name, node.like(address)) for name, address in named if address]
        if len(nodes) == len(named) and all(is_plausible_tensor(part) for _, part in nodes):
            parts = tuple(describe(part, name) for name, part in nodes)
            reason = Missing(f"{kind}: its values are a tensor of their own")
            return replace(info, address=reason, strides=None, parts=parts, unreadable=None)
    return replace(info, address=Missing("it has no storage: a sparse tensor, or one that wraps another"))


def _word(read: Read, address: int) -> int:
    data = read(address, 8)
    return _WORD.unpack(data)[0] if data is not None else 0
