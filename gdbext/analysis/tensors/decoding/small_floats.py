"""Small floating point formats by their fields: one rule for all of them, and tables made of it once."""

from __future__ import annotations

import functools
import math
from typing import Tuple

from gdbext.knowledge.dtypes import DTYPES, DType


def float_of(pattern: int, dtype: DType) -> float:
    """The number that the lowest `dtype.bits` bits of `pattern` mean in a float dtype."""
    if dtype.specials == "e8m0":
        return math.nan if pattern & 0xFF == 0xFF else math.ldexp(1.0, (pattern & 0xFF) - dtype.bias)
    fraction = pattern & ((1 << dtype.mantissa) - 1)
    highest = (1 << dtype.exponent) - 1
    exponent = (pattern >> dtype.mantissa) & highest
    negative = pattern >> (dtype.exponent + dtype.mantissa) & 1
    if dtype.specials == "ieee" and exponent == highest:
        value = math.nan if fraction else math.inf
    elif _is_finite_nan(dtype, bool(negative), exponent, fraction):
        value = math.nan
    elif exponent == 0:
        value = math.ldexp(fraction, 1 - dtype.bias - dtype.mantissa)
    else:
        value = math.ldexp(fraction | 1 << dtype.mantissa, exponent - dtype.bias - dtype.mantissa)
    return -value if negative else value


def _is_finite_nan(dtype: DType, negative: bool, exponent: int, fraction: int) -> bool:
    """NaN of the types that gave up their infinities."""
    if dtype.specials == "fn":
        return exponent == (1 << dtype.exponent) - 1 and fraction == (1 << dtype.mantissa) - 1
    return dtype.specials == "fnuz" and negative and not exponent and not fraction


def integer_of(pattern: int, dtype: DType) -> int:
    """The number in the lowest `dtype.bits` bits, with two's complement for "int"."""
    value = pattern & ((1 << dtype.bits) - 1)
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


@functools.lru_cache(maxsize=None)
def byte_table(name: str) -> Tuple[float, ...]:
    """What each of the 256 bytes means in a dtype of at most 8 bits (higher bits of the byte are ignored)."""
    dtype = DTYPES[name]
    if dtype.kind == "bool":
        return tuple(byte != 0 for byte in range(256))
    meaning = float_of if dtype.kind == "float" else integer_of
    return tuple(meaning(byte, dtype) for byte in range(256))
