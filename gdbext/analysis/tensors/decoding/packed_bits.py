"""Values of 1 to 7 bits that share bytes, spread to one byte each: whole columns at a time, no loop over values."""

from __future__ import annotations

import functools

from gdbext.knowledge.dtypes import DType


def spread(data: bytes, dtype: DType) -> bytes:
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
