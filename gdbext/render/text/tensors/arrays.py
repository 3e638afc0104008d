"""Elements laid out as numpy prints arrays: aligned points, edge items, nested brackets. The rules are those of numpy
2.4's arrayprint (precision 8, `floatmode` "maxprec"); numpy itself is not needed, and not there in gdb's Python.

Types of 16 bits and less are written with the digits that their numbers have, up to eight: bf16 10.1875 is not "10.2",
which is another number to whoever compares."""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Sequence, Tuple

from gdbext.model.missing import Missing
from gdbext.model.tensor import Element, NumberFormat, TensorValues

PRECISION = 8  # digits after the point
_SMALL = 10  # bits of the mantissa of the largest type whose numbers are written exactly: fp16
_SMALL_PLACES = 12  # after the point: eight digits of what is still written without an exponent
UNREADABLE = "??"
SUMMARY = "..."

Format = Callable[[Element], str]


def array_lines(values: TensorValues, width: int = 75) -> List[str]:
    """The lines of a nested list of elements, at most `width` columns where a line can be divided at all."""
    if not values.shape:
        return [_scalar(values)]
    if not values.elements:
        return ["[]"]
    return _Layout(values, width).block(0, 0, "", width).split("\n")


def _scalar(values: TensorValues) -> str:
    if not values.elements:
        return UNREADABLE
    return element_format(values.elements, values.number, padded=False)(values.elements[0])


class _Layout:
    """The recursion over dimensions."""

    def __init__(self, values: TensorValues, width: int) -> None:
        self._values = values
        self._format = element_format(values.elements, values.number)
        grid = values.grid
        self._steps = [1] * len(grid)
        for dimension in reversed(range(len(grid) - 1)):
            self._steps[dimension] = self._steps[dimension + 1] * grid[dimension + 1]

    def block(self, dimension: int, first: int, indent: str, width: int) -> str:
        """The text of everything below one entry, whose first element is `first`; its first line without indent."""
        values = self._values
        count, step = values.grid[dimension], self._steps[dimension]
        cut = values.edge_items if values.shape[dimension] > count else None
        inner = indent + " "
        if dimension == len(values.grid) - 1:
            words = [self._format(values.elements[first + number]) for number in range(count)]
            if cut is not None:
                words.insert(cut, SUMMARY)
            return "[" + _filled(words, inner, width - 1)[len(inner) :] + "]"
        parts = [self.block(dimension + 1, first + number * step, inner, width - 1) for number in range(count)]
        if cut is not None:
            parts.insert(cut, SUMMARY)
        between = "\n" * (len(values.grid) - dimension - 1)
        return "[" + (between + inner).join(parts) + "]"


def _filled(words: Sequence[str], indent: str, width: int) -> str:
    """Words on as many lines as they need, each line starting with `indent`."""
    lines: List[str] = []
    line = indent
    for number, word in enumerate(words):
        if len(line) + len(word) > width and len(line) > len(indent):
            lines.append(line.rstrip())
            line = indent
        line += word + (" " if number < len(words) - 1 else "")
    return "\n".join([*lines, line])


def element_format(elements: Sequence[Element], number: NumberFormat, padded: bool = True) -> Format:
    """How each of these elements is written so that they line up; `padded` False for one alone."""
    known = [element for element in elements if not isinstance(element, Missing)]
    if number.kind == "complex":
        write = _complex_format(known, number)
    elif number.kind == "float":
        write = _FloatFormat([_real(element) for element in known], number)
    else:
        write = _word_format(known, number.kind, padded)
    room = max((len(write(element)) for element in known[:1]), default=0)

    def text(element: Element) -> str:
        return UNREADABLE.rjust(room) if isinstance(element, Missing) else write(element)

    return text


def _real(element: Element) -> float:
    return element.real if isinstance(element, complex) else float(element) if not isinstance(element, Missing) else 0.0


def _word_format(known: Sequence[Element], kind: str, padded: bool) -> Format:
    if kind == "bool":
        return lambda element: (" True" if padded else "True") if element else "False"
    width = max((len(str(element)) for element in known), default=0)
    return lambda element: str(element).rjust(width)


def _complex_format(known: Sequence[Element], number: NumberFormat) -> Format:
    real = _FloatFormat([complex(element).real for element in known], number)  # type: ignore[arg-type]
    imaginary = _FloatFormat([complex(element).imag for element in known], number, plus=True)  # type: ignore[arg-type]

    def text(element: Element) -> str:
        pair = complex(element)  # type: ignore[arg-type]
        second = imaginary(pair.imag)
        digits = second.rstrip()
        return real(pair.real) + digits + "j" + second[len(digits) :]

    return text


class _FloatFormat:
    """One way to write all of some floats: with an exponent or without, with as many digits as one of them needs."""

    def __init__(self, numbers: Sequence[float], number: NumberFormat, plus: bool = False) -> None:
        self._number, self._plus = number, plus
        self._known: Dict[float, Tuple[str, int]] = {}
        finite = [value for value in numbers if math.isfinite(value)]
        self._scientific = _wants_exponent(finite, number)
        self._left = self._right = self._exponent = 0
        if finite and self._scientific:
            mantissas, powers = zip(*map(self._mantissa, finite))
            self._right = max(len(mantissa) - 2 for mantissa in mantissas)
            self._exponent = max(len(power) - 1 for power in powers)
            self._left = max(len(self._sign(value)) + 1 for value in finite)
            room = self._left + self._right + self._exponent + 3
        elif finite:
            whole, fraction = zip(*(self._positional(value).split(".") for value in finite))
            self._left, self._right = max(map(len, whole)), max(map(len, fraction))
            room = self._left + self._right + 1
        else:
            room = 1
        others = [value for value in numbers if not math.isfinite(value)]
        self._room = max([room, *(len(self._special(value)) for value in others)])

    def __call__(self, element: Element) -> str:
        value = _real(element)
        if not math.isfinite(value):
            return self._special(value).rjust(self._room)
        if self._scientific:
            mantissa, power = self._mantissa(value)
            if len(mantissa) - 2 < self._right:  # further digits are true ones, not zeros
                mantissa, _, power = f"{abs(value):.{self._right}e}".partition("e")
            return f"{self._sign(value)}{mantissa}e{power[0]}{power[1:].rjust(self._exponent, '0')}".rjust(self._room)
        whole, fraction = self._positional(value).split(".")
        return f"{whole}.{fraction.ljust(self._right)}".rjust(self._room)

    def _sign(self, value: float) -> str:
        return "-" if math.copysign(1.0, value) < 0 else "+" if self._plus else ""

    def _special(self, value: float) -> str:
        plus = "+" if self._plus else ""
        return f"{plus}nan" if value != value else f"{'-' if value < 0 else plus}inf"

    def _shortest(self, value: float) -> Tuple[str, int]:
        """As `shortest_digits`; each number is asked for twice, first for the width and then for the text."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = shortest_digits(value, self._number)
        return found

    def _positional(self, value: float) -> str:
        """Without exponent, no more digits after the point than needed; always with a point."""
        digits, exponent = self._shortest(abs(value))
        places = len(digits) - 1 - exponent
        most = _SMALL_PLACES if self._number.mantissa <= _SMALL else PRECISION
        if 0 <= places <= most:  # the digits as they are: the shortest is not always the nearest
            digits = digits.rjust(places + 1, "0")
            whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
        else:
            whole, _, fraction = f"{abs(value):.{min(max(places, 0), PRECISION)}f}".partition(".")
        return f"{self._sign(value)}{whole}.{fraction.rstrip('0')}"

    def _mantissa(self, value: float) -> Tuple[str, str]:
        """Digits as `1.25`, as many as needed, and the exponent as `e` has it: sign and two digits at least."""
        digits, exponent = self._shortest(abs(value))
        if len(digits) - 1 > PRECISION:
            mantissa, _, power = f"{abs(value):.{PRECISION}e}".partition("e")
            return mantissa.rstrip("0"), power
        return f"{digits[0]}.{digits[1:]}", f"{exponent:+03d}"


def _wants_exponent(finite: Sequence[float], number: NumberFormat) -> bool:
    sizes = [abs(value) for value in finite if value]
    if not sizes:
        return False
    smallest, largest = min(sizes), max(sizes)
    ratio = round_to(largest / smallest, number) if largest / smallest < math.inf else math.inf
    return largest >= 10.0 ** _whole_digits(number) or smallest < round_to(0.0001, number) or ratio > 1000.0


def _whole_digits(number: NumberFormat) -> int:
    """How many digits before the point are still written without an exponent. Types smaller than fp16 are not
    numpy's: five digits suffice for bf16 and for all that fp8 can say."""
    return min(8, int(number.mantissa * math.log10(2))) if number.mantissa >= 10 else 5


def shortest_digits(value: float, number: NumberFormat) -> Tuple[str, int]:
    """Digits and decimal exponent of the shortest decimal that rounds to `value` (not negative) in its own type; of a
    type of 16 bits or less its own digits, all of them or the first eight."""
    if number.mantissa >= 52 or not value:
        return _digits(repr(value))
    if number.mantissa <= _SMALL:
        return _digits(f"{value:.{PRECISION - 1}e}")
    fewest, most = 0, int((number.mantissa + 1) * math.log10(2)) + 1  # places after the first digit
    while fewest < most:
        places = (fewest + most) // 2
        if round_to(float(f"{value:.{places}e}"), number) == value:
            most = places
        else:
            fewest = places + 1
    if most and math.frexp(value)[0] == 0.5:
        # Above a power of two the neighbours are twice as far as below: the next decimal may do, though not nearest.
        mantissa, _, power = f"{value:.{most - 1}e}".partition("e")
        above = f"{int(mantissa.replace('.', '')) + 1}e{int(power) - most + 1}"
        if round_to(float(above), number) == value:
            return _digits(above)
    return _digits(f"{value:.{most}e}")


def _digits(text: str) -> Tuple[str, int]:
    """`12.50e-3` is the digits 125 and the exponent -2 (of the first of them)."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    return (digits.rstrip("0"), exponent) if digits else ("0", 0)


def round_to(value: float, number: NumberFormat) -> float:
    """The nearest number that a float type has (ties to even; its largest is not looked at)."""
    if number.mantissa >= 52 or not math.isfinite(value) or not value:
        return value
    exponent = max(math.frexp(value)[1] - 1, number.least_exponent)
    unit = math.ldexp(1.0, exponent - number.mantissa)
    return round(value / unit) * unit
