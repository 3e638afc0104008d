"""ggml's block-quantised types, dequantised to fp32.

Each format is written once, on columns: `byte(k)` is the k-th byte of every block, `half(k)` the fp16 number there. A
column is a numpy array where numpy is at hand, else a list that knows the same operators. Sums and products are exact
in double precision for all these formats, so the one rounding to fp32 gives ggml's own numbers.
Source: ggml-quants.c and ggml-common.h (`dequantize_row_*`), gguf-py's quants.py as the second witness.
"""

from __future__ import annotations

import operator
import struct
from array import array
from typing import Any, Callable, Iterable, List, Mapping

from gdbext.knowledge.dtypes import DType

_FP4_DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def dequantise(data: bytes, dtype: DType, numpy: Any = None) -> bytes:
    """The fp32 values of the whole blocks in `data`, in order."""
    blocks = len(data) // dtype.unit
    if numpy is None:
        columns: Any = _ListBlocks(data, blocks, dtype)
        _FORMATS[dtype.name](columns)
    else:
        columns = _NumpyBlocks(data, blocks, dtype, numpy)
        with numpy.errstate(all="ignore"):
            _FORMATS[dtype.name](columns)
    result: bytes = columns.values()
    return result


class _Column(List[Any]):
    """Numbers, one per block, with elementwise operators."""

    def _each(self, other: Any, function: Callable[[Any, Any], Any]) -> _Column:
        if isinstance(other, _Column):
            return _Column(map(function, self, other))
        return _Column([function(item, other) for item in self])

    def __and__(self, other: Any) -> _Column:
        return self._each(other, operator.and_)

    def __or__(self, other: Any) -> _Column:
        return self._each(other, operator.or_)

    def __lshift__(self, other: Any) -> _Column:
        return self._each(other, operator.lshift)

    def __rshift__(self, other: Any) -> _Column:
        return self._each(other, operator.rshift)

    def __mul__(self, other: Any) -> _Column:
        return self._each(other, operator.mul)

    def __add__(self, other: Any) -> _Column:
        return self._each(other, operator.add)

    def __sub__(self, other: Any) -> _Column:
        return self._each(other, operator.sub)


class _ListBlocks:
    """Columns of blocks without numpy."""

    def __init__(self, data: bytes, blocks: int, dtype: DType) -> None:
        self._data = data[: blocks * dtype.unit]
        self._unit, self._per_unit = dtype.unit, dtype.per_unit
        self._values = array("f", bytes(4 * blocks * dtype.per_unit))

    def byte(self, offset: int) -> Any:
        return _Column(self._data[offset :: self._unit])

    def signed(self, offset: int) -> Any:
        return _Column(array("b", self._data[offset :: self._unit]))

    def half(self, offset: int) -> Any:
        low, high = self._data[offset :: self._unit], self._data[offset + 1 :: self._unit]
        both = bytearray(2 * len(low))
        both[0::2], both[1::2] = low, high
        return _Column(struct.unpack(f"<{len(low)}e", both))

    def look_up(self, table: Iterable[float], column: Any) -> Any:
        return _Column(map(list(table).__getitem__, column))

    def put(self, position: int, column: Any) -> None:
        self._values[position :: self._per_unit] = array("f", column)

    def values(self) -> bytes:
        return self._values.tobytes()


class _NumpyBlocks:
    """The same with numpy."""

    def __init__(self, data: bytes, blocks: int, dtype: DType, numpy: Any) -> None:
        self._numpy = numpy
        self._rows = numpy.frombuffer(data, numpy.uint8, blocks * dtype.unit).reshape(blocks, dtype.unit)
        self._values = numpy.zeros((blocks, dtype.per_unit), numpy.float32)

    def byte(self, offset: int) -> Any:
        return self._rows[:, offset].astype(self._numpy.int32)

    def signed(self, offset: int) -> Any:
        return self._rows[:, offset].astype(self._numpy.int8).astype(self._numpy.int32)

    def half(self, offset: int) -> Any:
        pair = self._numpy.ascontiguousarray(self._rows[:, offset : offset + 2])
        return pair.view(self._numpy.float16)[:, 0].astype(self._numpy.float64)

    def look_up(self, table: Iterable[float], column: Any) -> Any:
        return self._numpy.array(list(table), self._numpy.float64)[column]

    def put(self, position: int, column: Any) -> None:
        self._values[:, position] = column

    def values(self) -> bytes:
        raw: bytes = self._values.tobytes()
        return raw


def _q4_0(blocks: Any) -> None:
    scale = blocks.half(0)
    for at in range(16):
        pair = blocks.byte(2 + at)
        blocks.put(at, scale * ((pair & 15) - 8))
        blocks.put(at + 16, scale * ((pair >> 4) - 8))


def _q4_1(blocks: Any) -> None:
    scale, least = blocks.half(0), blocks.half(2)
    for at in range(16):
        pair = blocks.byte(4 + at)
        blocks.put(at, scale * (pair & 15) + least)
        blocks.put(at + 16, scale * (pair >> 4) + least)


def _fifth_bit(blocks: Any, offset: int, number: int) -> Any:
    """Bit `number` of the 32-bit word at `offset`, moved to where the fifth bit of a value stands."""
    return ((blocks.byte(offset + number // 8) >> (number % 8)) & 1) << 4


def _q5_0(blocks: Any) -> None:
    scale = blocks.half(0)
    for at in range(16):
        pair = blocks.byte(6 + at)
        blocks.put(at, scale * (((pair & 15) | _fifth_bit(blocks, 2, at)) - 16))
        blocks.put(at + 16, scale * (((pair >> 4) | _fifth_bit(blocks, 2, at + 16)) - 16))


def _q5_1(blocks: Any) -> None:
    scale, least = blocks.half(0), blocks.half(2)
    for at in range(16):
        pair = blocks.byte(8 + at)
        blocks.put(at, scale * ((pair & 15) | _fifth_bit(blocks, 4, at)) + least)
        blocks.put(at + 16, scale * ((pair >> 4) | _fifth_bit(blocks, 4, at + 16)) + least)


def _q8_0(blocks: Any) -> None:
    scale = blocks.half(0)
    for at in range(32):
        blocks.put(at, scale * blocks.signed(2 + at))


def _q4_k(blocks: Any) -> None:
    """Eight groups of 32, each with a scale and a minimum of six bits; the upper two bits of the last four groups'
    stand in the spare bits of the first four's."""
    scale, least = blocks.half(0), blocks.half(2)
    for group in range(8):
        if group < 4:
            group_scale, group_least = blocks.byte(4 + group) & 63, blocks.byte(8 + group) & 63
        else:
            low = blocks.byte(8 + group)
            group_scale = (low & 15) | ((blocks.byte(group) >> 6) << 4)
            group_least = (low >> 4) | ((blocks.byte(4 + group) >> 6) << 4)
        step, start = scale * group_scale, least * group_least
        for at in range(32):
            pair = blocks.byte(16 + group // 2 * 32 + at)
            blocks.put(group * 32 + at, step * ((pair >> 4) if group % 2 else (pair & 15)) - start)


def _q6_k(blocks: Any) -> None:
    """Sixteen groups of 16, each with a signed byte as scale; four low bits in one place, two high ones in another."""
    scale = blocks.half(208)
    for group in range(16):
        step = scale * blocks.signed(192 + group)
        half, quarter = divmod(group * 16, 128)
        quarter //= 32
        for at in range(16):
            lane = group * 16 + at
            low = blocks.byte(half * 64 + lane % 64)
            low = (low >> 4) if quarter >= 2 else (low & 15)
            high = (blocks.byte(128 + half * 32 + lane % 32) >> (2 * quarter)) & 3
            blocks.put(lane, step * ((low | (high << 4)) - 32))


def _mxfp4(blocks: Any) -> None:
    scale = blocks.look_up((2.0 ** (exponent - 128) for exponent in range(256)), blocks.byte(0))
    for at in range(16):
        pair = blocks.byte(1 + at)
        blocks.put(at, scale * blocks.look_up(_FP4_DOUBLED, pair & 15))
        blocks.put(at + 16, scale * blocks.look_up(_FP4_DOUBLED, pair >> 4))


_FORMATS: Mapping[str, Callable[[Any], None]] = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q4_k": _q4_k,
    "q6_k": _q6_k,
    "mxfp4": _mxfp4,
}
