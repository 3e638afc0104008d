"""The line behind `llm-tensor ...`: expressions of the program's language, an index, and options, in any order.

A gdb expression has quotes, brackets and spaces of its own, so the words of the line are those that stand between
spaces outside of all brackets and quotes. `x [0, :]` is an expression and an index, `x[0]` is an expression.
"""

from __future__ import annotations

from argparse import Namespace
from typing import List, Optional, Sequence, Tuple

from gdbext.commands.declaration import Argument
from gdbext.commands.tensor_port import Description
from gdbext.model.errors import UsageError

_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "\"'"
_MOST_DIMENSIONS = 64


def words_of(line: str) -> List[str]:
    """The line cut at spaces outside of brackets and quotes. Raises UsageError for a quote that is not closed."""
    found: List[str] = []
    word, depth, quote, escaped = "", 0, "", False
    for character in line:
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in _QUOTES:
            quote = character
        elif character.isspace() and not depth:
            found += [word] if word else []
            word = ""
            continue
        else:
            depth = max(0, depth + (character in _OPEN) - (character in _CLOSE))
        word += character
    if quote:
        raise UsageError(f"a {quote} is not closed in: {line}")
    return found + ([word] if word else [])


def take_options(args: Namespace, line: str, options: Sequence[Argument]) -> List[str]:
    """The words that are no options; those that are go into `args`, like those in front of the expression did."""
    known = {option.name: option for option in options if option.option}
    rest: List[str] = []
    words = words_of(line)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        option = known.get(name)
        if name == "--json":
            args.json = value if equals else words.pop(0) if words and not words[0].startswith("--") else "-"
        elif option is None:
            rest.append(word)
        elif option.flag:
            setattr(args, _attribute(name), True)
        else:
            if not equals and not words:
                raise UsageError(f"{name} needs a value", f"{name} {option.metavar or 'VALUE'}")
            setattr(args, _attribute(name), value if equals else words.pop(0))
    return rest


def _attribute(name: str) -> str:
    return {"--as": "type_name"}.get(name, name.lstrip("-").replace("-", "_"))


def expression_and_index(words: Sequence[str]) -> Tuple[str, str]:
    """The last word is an index when it begins with a bracket. Raises UsageError when there is no expression."""
    if not words:
        raise UsageError("which tensor? An expression is missing", "llm-tensor p EXPRESSION")
    if len(words) > 1 and words[-1].startswith("["):
        return " ".join(words[:-1]), words[-1]
    return " ".join(words), ""


def description_of(args: Namespace) -> Description:
    """What the options say about the tensor. Raises UsageError."""
    shape = _numbers("--shape", getattr(args, "shape", None), 0)
    strides = _numbers("--strides", getattr(args, "strides", None), -(1 << 62))
    if strides is not None and (shape is None or len(shape) != len(strides)):
        raise UsageError("--strides needs as many numbers as --shape has")
    kind = getattr(args, "type_name", None) or getattr(args, "as", None)
    return Description(getattr(args, "dtype", None), shape, strides, getattr(args, "where", None), kind)


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
