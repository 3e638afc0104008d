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
from typing import Any, Callable, Iterable, List, Mapping, Sequence

from gdbext.analysis.tensors.decoding.ggml_k_formats import K_FORMATS
from gdbext.knowledge.dtypes import DType

_NOT_LINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_FP4_DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def _ue4m3_halved(pattern: int) -> float:
    """Half of e4m3 without a sign; its NaN is 0 (ggml_ue4m3_to_fp32). Bit 7 says nothing."""
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    if pattern == 0x7F:
        return 0.0
    return 0.5 * (fraction * 2.0**-9 if not exponent else (1 + fraction / 8) * 2.0 ** (exponent - 7))


_UE4M3_HALVED = tuple(map(_ue4m3_halved, range(256)))


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


def _pairs(blocks: Any, source: int, target: int, count: int, scale: Any, table: Sequence[float]) -> None:
    """So many bytes with two values each, which are looked up; the upper halves come behind all lower ones."""
    for at in range(count):
        pair = blocks.byte(source + at)
        blocks.put(target + at, scale * blocks.look_up(table, pair & 15))
        blocks.put(target + at + count, scale * blocks.look_up(table, pair >> 4))


def _mxfp4(blocks: Any) -> None:
    scale = blocks.look_up((2.0 ** (exponent - 128) for exponent in range(256)), blocks.byte(0))
    _pairs(blocks, 1, 0, 16, scale, _FP4_DOUBLED)


def _nvfp4(blocks: Any) -> None:
    """Four groups of 16, each with a byte as scale: e4m3 without a sign, halved because the values are doubled."""
    for group in range(4):
        scale = blocks.look_up(_UE4M3_HALVED, blocks.byte(group))
        _pairs(blocks, 4 + group * 8, group * 16, 8, scale, _FP4_DOUBLED)


def _iq4_nl(blocks: Any) -> None:
    _pairs(blocks, 2, 0, 16, blocks.half(0), _NOT_LINEAR)


def _iq4_xs(blocks: Any) -> None:
    """Eight groups of 32, each with a scale of six bits: four in one place, two in another."""
    scale = blocks.half(0)
    for group in range(8):
        low = (blocks.byte(4 + group // 2) >> (4 * (group % 2))) & 15
        high = (blocks.byte(2 + group // 4) >> (2 * (group % 4))) & 3
        step = scale * ((low | (high << 4)) - 32)
        _pairs(blocks, 8 + group * 16, group * 32, 16, step, _NOT_LINEAR)


_FORMATS: Mapping[str, Callable[[Any], None]] = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "mxfp4": _mxfp4,
    "nvfp4": _nvfp4,
    "iq4_nl": _iq4_nl,
    "iq4_xs": _iq4_xs,
    **K_FORMATS,
}
