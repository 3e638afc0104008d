"""Bytes to numbers. Two steps: storage to elements of whole bytes (`expand`), elements to Python numbers (`values`).

Elements are what everything in bulk works on: the type's own bytes where a value has whole bytes, one byte per value
for packed types, fp32 for block types. Little-endian, as all the machines are.
"""

from __future__ import annotations

import functools
import struct
from array import array
from typing import Any, Sequence, Tuple

from gdbext.analysis.tensors.decoding import ggml_blocks
from gdbext.analysis.tensors.decoding.small_floats import byte_table
from gdbext.knowledge.dtypes import DTYPES, DType

ARRAY_CODES = {
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "fp32": "f",
    "fp64": "d",
}
"""Element types that Python's arrays have themselves."""


def element_type(dtype: DType) -> DType:
    """The dtype of the elements that `expand` makes: fp32 of block types, else the same."""
    return DTYPES["fp32"] if dtype.kind == "block" else dtype


def element_size(dtype: DType) -> int:
    """Bytes of one element as `expand` makes them."""
    return 1 if dtype.packed else element_type(dtype).unit


def expand(data: bytes, dtype: DType, numpy: Any = None) -> bytes:
    """Elements of the whole storage units in `data`."""
    if dtype.kind == "block":
        return ggml_blocks.dequantise(data, dtype, numpy)
    return _spread(data, dtype) if dtype.packed else data


def values(data: bytes, dtype: DType) -> Sequence[Any]:
    """Python numbers of elements; their exact values. Complex types give complex, bool gives bool."""
    dtype = element_type(dtype)
    code = ARRAY_CODES.get(dtype.name)
    if code:
        return array(code, data)
    if dtype.kind == "complex":
        numbers = values(data, DTYPES[dtype.part or ""])
        return list(map(complex, numbers[0::2], numbers[1::2]))
    if dtype.name == "fp16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if dtype.name == "bf16":
        return _bf16(data)
    return list(map(byte_table(dtype.name).__getitem__, data))


def _bf16(data: bytes) -> Sequence[float]:
    """The upper half of an fp32 number, the lower half zero."""
    whole = bytearray(2 * len(data))
    whole[2::4], whole[3::4] = data[0::2], data[1::2]
    return array("f", bytes(whole))


def subnormal_limit(dtype: DType) -> Tuple[float, bool]:
    """The smallest normal number of a float type, and whether there are any below it."""
    part = DTYPES[dtype.part] if dtype.part else element_type(dtype)
    return (0.0, False) if part.kind != "float" or not part.mantissa else (2.0 ** (1 - part.bias), True)


# --- values of 1 to 7 bits that share bytes: whole columns at a time, no loop over values ---


def _spread(data: bytes, dtype: DType) -> bytes:
    """One byte per value of the whole units in `data`; the value stands in its lowest bits."""
    count = len(data) // dtype.unit
    spread_out = bytearray(count * dtype.per_unit)
    for lane in range(dtype.per_unit):
        spread_out[lane :: dtype.per_unit] = _lane(data[: count * dtype.unit], lane, dtype)
    return bytes(spread_out)


def _lane(data: bytes, lane: int, dtype: DType) -> bytes:
    """The lane-th value of every unit. One that crosses a byte boundary is put together from two columns."""
    if dtype.high_first:
        lane = dtype.per_unit - 1 - lane
    at, shift = divmod(lane * dtype.bits, 8)
    low = data[at :: dtype.unit].translate(_shifted(shift, dtype.bits))
    if shift + dtype.bits <= 8:
        return low
    high = data[at + 1 :: dtype.unit].translate(_shifted(shift - 8, dtype.bits))
    both = int.from_bytes(low, "little") | int.from_bytes(high, "little")
    return both.to_bytes(len(low), "little")


@functools.lru_cache(maxsize=None)
def _shifted(right: int, bits: int) -> bytes:
    """For each byte its bits moved `right` (left when negative), the lowest `bits` of that."""
    mask = (1 << bits) - 1
    return bytes(((byte >> right) if right >= 0 else (byte << -right)) & mask for byte in range(256))
