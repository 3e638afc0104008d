"""What statistics are made of: a tally of elements that can be added to the tally of those before."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

BINS = 8


@dataclass
class Tally:
    """What was counted. Positions are those of the stream (row-major); `spread` is the sum of squared deviations.

    NaN and infinities are counted and left out of the rest; `finite` is how many elements are neither. Of complex
    numbers the magnitudes are meant, except in `mean`.
    """

    count: int = 0
    finite: int = 0
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    zeros: int = 0
    subnormals: int = 0
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    mean: complex = 0.0
    spread: float = 0.0
    absolute_maximum: Optional[float] = None
    absolute_maximum_at: Optional[int] = None
    first_nan: Optional[int] = None
    bins: Optional[Tuple[int, ...]] = None

    def add(self, other: Tally) -> None:
        """Take in the tally of the elements that follow (Chan, Golub and LeVeque for mean and spread)."""
        for name in ("count", "nan", "positive_infinity", "negative_infinity", "zeros", "subnormals"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.first_nan is None:
            self.first_nan = other.first_nan
        if not other.finite:
            return
        both = self.finite + other.finite
        apart = magnitude(other.mean - self.mean)
        self.spread += other.spread + apart * apart * (self.finite / both) * other.finite
        self.mean += (other.mean - self.mean) * (other.finite / both)
        self.finite = both
        self.minimum = _better(min, self.minimum, other.minimum)
        self.maximum = _better(max, self.maximum, other.maximum)
        if _better(max, self.absolute_maximum, other.absolute_maximum) != self.absolute_maximum:
            self.absolute_maximum, self.absolute_maximum_at = other.absolute_maximum, other.absolute_maximum_at

    def as_json(self) -> Dict[str, Any]:
        """Plain data; `mean` as its two parts."""
        return {**asdict(self), "mean": [self.mean.real, self.mean.imag]}


def tally_of(data: Mapping[str, Any]) -> Tally:
    """The inverse of `Tally.as_json`."""
    real, imaginary = data["mean"]
    bins = data["bins"]
    mean = complex(real, imaginary) if imaginary else real
    return Tally(**{**data, "mean": mean, "bins": tuple(bins) if bins else None})


def _better(
    choose: Callable[[float, float], float], first: Optional[float], second: Optional[float]
) -> Optional[float]:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)


def magnitude(number: complex) -> float:
    """The magnitude; infinite where `abs` would raise OverflowError."""
    return math.hypot(number.real, number.imag)


def bin_borders(low: float, high: float) -> List[float]:
    """The BINS + 1 borders of the bins of a histogram from `low` to `high`; bins include their lower border, the last
    one both. One value alone stands in the middle of a histogram that is 1 wide (all as numpy.histogram does)."""
    low, high = float(low), float(high)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [low + number * ((high - low) / BINS) for number in range(BINS)] + [high]
