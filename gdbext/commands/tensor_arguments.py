"""What the words of an `llm-tensor` line mean: which tensor, which part of it, and what the options say about it.

`x [0, :]` and `x[0, :]` are an expression and an index. `x[0]` is an expression of the program's language if that has
one there, as for vectors and maps of tensors; else it is row 0 of the tensor `x` (`OneTensor`).
"""

from __future__ import annotations

from argparse import Namespace
from typing import Optional, Sequence, Tuple

from gdbext.commands.split_command_line import brackets_at_end, outside_brackets
from gdbext.commands.tensor_port import Description
from gdbext.model.errors import UsageError

_MOST_DIMENSIONS = 64


def expression_and_index(words: Sequence[str]) -> Tuple[str, str]:
    """An expression and its index, "" when it has none. Raises UsageError when there is no expression."""
    if not words:
        raise UsageError("missing expression", "llm-tensor p EXPRESSION")
    *before, last = words
    if before and last.startswith("["):
        expression, index = split_index(" ".join(before))
        return expression, index + last
    return split_index(" ".join(words))


def split_index(text: str) -> Tuple[str, str]:
    """`v[3][0, :4]` as `v[3]` and `[0, :4]`: the index begins at the first bracket that no C++ expression has."""
    groups = brackets_at_end(text)
    first = next((at for at, group in enumerate(groups) if _can_only_be_index(group)), len(groups))
    index = "".join(groups[first:])
    expression = text[: len(text) - len(index)].rstrip()
    return (expression, index) if expression else (text, "")


def _can_only_be_index(group: str) -> bool:
    """Whether brackets hold a slice, `...`, several numbers or nothing."""
    inside = outside_brackets(group[1:-1])
    slices = ":" in inside.replace("::", "") and "?" not in inside
    return slices or "," in inside or "..." in inside or not group[1:-1].strip()


def description_of(args: Namespace) -> Description:
    """What the options say about the tensor. Raises UsageError."""
    shape = _numbers("--shape", args.shape, 0)
    strides = _numbers("--strides", args.strides, -(1 << 62))
    if strides is not None and (shape is None or len(shape) != len(strides)):
        raise UsageError("--strides needs as many numbers as --shape has")
    return Description(args.dtype, shape, strides, args.where, getattr(args, "as"))  # a keyword of Python


def _numbers(option: str, text: Optional[str], least: int) -> Optional[Tuple[int, ...]]:
    """`2,3` or `[2, 3]`; `()` and the empty text are rank 0."""
    if text is None:
        return None
    parts = [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
    try:
        numbers = tuple(int(part, 0) for part in parts)
    except ValueError:
        raise UsageError(f"{option} {text}: not a list of numbers", f"{option} 2,3") from None
    if len(numbers) > _MOST_DIMENSIONS or any(number < least or number > 1 << 62 for number in numbers):
        raise UsageError(f"{option} {text}: out of range")
    return numbers
